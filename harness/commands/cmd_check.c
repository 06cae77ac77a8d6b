/* cmd_check.c -- memplan check: the regression gate. Verifies a plan, then compares its bytes with
 * the proven optimum, the best bound, or a baseline. Reports by an exit status, a last line for
 * logs, a row, and JUnit XML. */
#include <unistd.h>

#include "graphs/core/file.h"
#include "graphs/problem/bounds/bounds.h"
#include "harness/cli/carried.h"
#include "graphs/core/size.h"
#include "harness/cli/command.h"
#include "harness/gate/gate.h"
#include "harness/report/grid.h"

typedef enum verdict { OK, IMPROVED, BEYOND, UNDECIDED, REFUSED, IMPOSSIBLE } verdict;
static const char *const verdict_name[] = {"ok",        "improved", "beyond",
                                           "undecided", "refused",  "impossible"};

typedef struct gate {
    mpl_ctx *ctx;
    mpl_options *options;
    char name[200], label[120];
    mpl_import import;      /* empty with --planner */
    mpl_made made;          /* result of --planner; otherwise import.plan */
    uint64_t parts;         /* tolerance above the reference, in millionths */
    uint64_t planned_bytes; /* 0: not verified */
    mpl_optimum optimum;
    uint64_t baseline_bytes; /* 0: compared with the optimum */
    const char *pool;        /* the pool that decides the verdict, if not the first; else NULL */
    uint64_t pool_bytes;
    mpl_optimum pool_optimum;
    verdict verdict;
    char summary[700];
} gate;

/* The largest size within the tolerance of `bytes`. */
static uint64_t allowed(const gate *g, uint64_t bytes)
{
    uint64_t whole, rest = bytes % 1000000 * g->parts / 1000000; /* parts are at most 10^7 */

    if (!mpl_mul_bytes(bytes / 1000000, g->parts, &whole) || !mpl_add_bytes(whole, rest, &whole) ||
        !mpl_add_bytes(bytes, whole, &whole))
        return UINT64_MAX;
    return whole;
}

/* ---- what is known ---- */

static mpl_status open_subject(gate *g)
{
    mpl_status st = MPL_OK;
    mpl_options *o = g->options;
    const char *graph = o->args.n > 0 ? o->args.item[0] : NULL;

    if ((o->planner != NULL) == (o->plan != NULL))
        MPL_FAIL(g->ctx, MPL_EINPUT, "check: one of --plan FILE and --planner P is needed%s",
                 o->plan != NULL ? ", not both" : "");
    if (o->plan != NULL) {
        snprintf(g->name, sizeof g->name, "%s", o->plan);
        MPL_TRY(mpl_gate_open_plan(g->ctx, o, graph, o->plan, g->name, &g->import, &g->made.row,
                                   &g->made.job));
        MPL_TRY(mpl_job_verify_file(g->ctx, &g->made.job, g->import.plan));
        MPL_TRY(mpl_job_plan_fields(g->ctx, &g->made.job, g->import.plan, g->made.row));
        g->planned_bytes = mpl_gate_bytes(&g->import, g->import.plan);
    } else {
        if (graph == NULL)
            MPL_FAIL(g->ctx, MPL_EINPUT, "check: --planner needs a GRAPH to plan");
        snprintf(g->name, sizeof g->name, "%s", graph);
        MPL_TRY(mpl_make(g->ctx, o, graph, MPL_TO_PLAN, &g->made));
        g->planned_bytes = g->made.plan->peak_bytes;
    }
    if ((g->made.plan != NULL ? g->made.plan : g->import.plan)->spread.n > 0)
        MPL_FAIL(g->ctx, MPL_EUNAVAIL,
                 "check: a plan over several memories is one of cost, and no optimum of that is "
                 "known here; "
                 "certify checks what it claims of it");
    mpl_record_int(g->made.row, MPL_FIELD_planned_bytes, g->planned_bytes);
out:
    if (g->made.row != NULL && g->made.job.text != NULL && g->made.job.text != g->name)
        snprintf(g->name, sizeof g->name, "%s", g->made.job.text);
    return st;
}

static mpl_status baseline_path(mpl_ctx *ctx, const char *text, char path[400])
{
    snprintf(path, 400, "%s", text);
    if (access(path, F_OK) == 0)
        return MPL_OK;
    snprintf(path, 400, "results/baselines/%s.json", text);
    if (access(path, F_OK) != 0 && !mpl_is_carried(path))
        return MPL_REFUSE(
            ctx, "--against: no file '%.150s', and no %.150s; memplan baseline update makes one",
            text, path);
    return MPL_OK;
}

/* Finds the plan's row in the baseline. Its optimum is read there, not searched for again. */
static mpl_status look_up(gate *g)
{
    mpl_status st = MPL_OK;
    mpl_rows rows = {0};
    const mpl_record *was;
    const char *hash = mpl_record_get_text(g->made.row, MPL_FIELD_problem_hash);
    char path[400];

    MPL_TRY(baseline_path(g->ctx, g->options->against, path));
    MPL_TRY(mpl_baseline_read(g->ctx, path, &rows));
    if ((was = mpl_baseline_find(&rows, hash, g->label)) == NULL)
        MPL_FAIL(
            g->ctx, MPL_EINPUT,
            "%.150s: no plan by %s of this problem (hash %s); memplan baseline update records one",
            path, g->label, hash);
    mpl_record_get_int(was, MPL_FIELD_planned_bytes, &g->baseline_bytes);
    mpl_record_get_int(was, MPL_FIELD_bound_bytes, &g->optimum.bound_bytes);
    g->optimum.bound_bytes = mpl_max_u64(g->optimum.bound_bytes, g->made.job.bound_bytes);
    g->optimum.bound_kind = "baseline";
    g->optimum.best_bytes = UINT64_MAX;
    g->optimum.proved = mpl_record_get_int(was, MPL_FIELD_optimum_bytes, &g->optimum.best_bytes);
    if (g->optimum.proved)
        g->optimum.bound_bytes = g->optimum.best_bytes;
    g->optimum.by = "the baseline";
out:
    mpl_rows_fini(g->ctx, &rows);
    return st;
}

static mpl_status find_reference(gate *g)
{
    const char *against = g->options->against;
    bool searched = !g->import.returns_memory; /* false: no placement is its optimum */

    if (against != NULL && strcmp(against, "optimum") != 0)
        return look_up(g);
    g->optimum = (mpl_optimum){.bound_bytes = g->made.job.bound_bytes,
                               .bound_kind = g->made.job.bound_kind,
                               .best_bytes = UINT64_MAX};
    if (g->planned_bytes == g->made.job.bound_bytes) { /* at the bound: nothing to search */
        g->optimum.best_bytes = g->planned_bytes;
        g->optimum.proved = true;
        g->optimum.by = "the bound";
    } else if (searched) {
        MPL_PASS(mpl_optimum_find(g->ctx, g->options, &g->made.job, &g->optimum));
    }
    return MPL_OK;
}

/* ---- the judgement ---- */

/* Judges a size. Too far above the bound is BEYOND, unless the search ended early and the optimum
 * may still be near enough. */
static verdict hold(const gate *g, uint64_t bytes, const mpl_optimum *o)
{
    if (bytes < o->bound_bytes)
        return IMPOSSIBLE;
    if (bytes <= allowed(g, o->bound_bytes))
        return OK;
    return o->proved || bytes > allowed(g, o->best_bytes) || g->import.returns_memory ? BEYOND
                                                                                      : UNDECIDED;
}

static verdict judge(const gate *g)
{
    if (g->planned_bytes < g->optimum.bound_bytes || g->baseline_bytes == 0)
        return hold(g, g->planned_bytes, &g->optimum);
    return g->planned_bytes > allowed(g, g->baseline_bytes) ? BEYOND
           : g->planned_bytes < g->baseline_bytes           ? IMPROVED
                                                            : OK;
}

/* The optimum of pool k: solves the same problem with that pool first, since planners minimise the
 * first pool. */
static mpl_status find_pool_optimum(gate *g, uint32_t k, mpl_optimum *out)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = g->made.job.problem;
    mpl_problem swapped = *p;
    mpl_job job = g->made.job;
    uint32_t *pool = NULL;
    uint64_t *capacity = NULL;

    MPL_TRY(mpl_new(g->ctx, pool, p->n));
    MPL_TRY(mpl_new(g->ctx, capacity, p->n_pools));
    for (mpl_buffer b = 0; b < p->n; b++)
        pool[b] = p->pool[b] == k ? 0 : p->pool[b] == 0 ? k : p->pool[b];
    for (uint32_t i = 0; i < p->n_pools; i++)
        capacity[i] = p->pool_capacity[i == k ? 0 : i == 0 ? k : i];
    swapped.pool = pool;
    swapped.pool_capacity = capacity;
    job.problem = &swapped;
    job.bound_kind = p->before != NULL ? "antichain" : "peak_live";
    MPL_TRY(mpl_lower_bound(g->ctx, p, k, &job.bound_bytes, NULL));
    *out = (mpl_optimum){job.bound_bytes, job.bound_kind, UINT64_MAX, .by = NULL};
    MPL_TRY(mpl_optimum_find(g->ctx, g->options, &job, out));
out:
    mpl_free_each(g->ctx, pool, capacity);
    return st;
}

/* A plan is optimal only if each of its pools is. The first pool that is not decides. */
static mpl_status judge_other_pools(gate *g)
{
    const mpl_plan *plan = g->made.plan != NULL ? g->made.plan : g->import.plan;
    verdict worst = g->verdict;

    for (uint32_t k = 1; worst == OK && g->baseline_bytes == 0 && k < plan->n_pools; k++) {
        g->pool_optimum = (mpl_optimum){.best_bytes = UINT64_MAX};
        MPL_PASS(
            mpl_lower_bound(g->ctx, g->made.job.problem, k, &g->pool_optimum.bound_bytes, NULL));
        if (plan->pool_bytes[k] <= allowed(g, g->pool_optimum.bound_bytes))
            continue;
        /* Otherwise no placement is its optimum, as for the first pool. */
        if (!g->import.returns_memory)
            MPL_PASS(find_pool_optimum(g, k, &g->pool_optimum));
        worst = hold(g, plan->pool_bytes[k], &g->pool_optimum);
        if (worst == OK)
            continue;
        g->pool = g->made.job.problem->pool_name[k];
        g->pool_bytes = plan->pool_bytes[k];
    }
    g->verdict = worst;
    return MPL_OK;
}

static void write_summary(gate *g)
{
    const mpl_optimum *o = g->pool != NULL ? &g->pool_optimum : &g->optimum;
    uint64_t bytes = g->pool != NULL ? g->pool_bytes : g->planned_bytes;
    bool held = g->baseline_bytes > 0;
    uint64_t reference = held ? g->baseline_bytes : o->bound_bytes;
    const char *what = held ? "baseline" : o->proved ? "optimum" : "bound";
    char gap[32], relation[64], tail[160] = "", pool[80] = "";

    if (g->pool != NULL)
        snprintf(pool, sizeof pool, "pool '%.60s', ", g->pool);
    mpl_gap_text(bytes, reference, gap);
    snprintf(relation, sizeof relation, "%s %s", bytes == reference ? "at" : gap + 1,
             bytes == reference  ? "the"
             : bytes > reference ? "above the"
                                 : "below the");
    if (g->verdict == UNDECIDED)
        snprintf(tail, sizeof tail, "; the search ended, the best plan known has %" PRIu64 " bytes",
                 mpl_min_u64(o->best_bytes, bytes));
    else if (g->verdict == IMPOSSIBLE)
        snprintf(tail, sizeof tail,
                 "; no plan can be below the %s of %" PRIu64
                 " bytes: what proved it, or what verified this, is wrong",
                 o->proved ? "proven optimum" : "bound", o->bound_bytes);
    snprintf(g->summary, sizeof g->summary,
             "check: %s: %.150s by %s: %s%" PRIu64 " bytes, %s %s of %" PRIu64 " (allowed %g %%)%s",
             verdict_name[g->verdict], g->name, g->label, pool, bytes, relation, what, reference,
             (double)g->parts / 10000, tail);
}

static mpl_status outcome(gate *g)
{
    static const mpl_status status[] = {[OK] = MPL_OK,
                                        [IMPROVED] = MPL_OK,
                                        [BEYOND] = MPL_EINVALID,
                                        [UNDECIDED] = MPL_ELIMIT,
                                        [REFUSED] = MPL_EINVALID,
                                        [IMPOSSIBLE] = MPL_EINVALID};

    if (status[g->verdict] != MPL_OK)
        return MPL_ERROR(g->ctx, status[g->verdict], "%s", g->summary);
    return MPL_OK;
}

static void fill_row(gate *g)
{
    mpl_record_text(g->made.row, MPL_FIELD_verdict, verdict_name[g->verdict]);
    if (g->verdict == REFUSED)
        return;
    mpl_record_int(g->made.row, MPL_FIELD_bound_bytes, g->optimum.bound_bytes);
    mpl_record_text(g->made.row, MPL_FIELD_bound_kind, g->optimum.bound_kind);
    if (g->optimum.proved)
        mpl_record_int(g->made.row, MPL_FIELD_optimum_bytes, g->optimum.best_bytes);
    if (g->baseline_bytes > 0)
        mpl_record_int(g->made.row, MPL_FIELD_baseline_bytes, g->baseline_bytes);
}

/* ---- what is printed ---- */

static void print_report(const gate *g)
{
    const mpl_optimum *o = &g->optimum;
    char gap[32];

    printf("graph    %s: %" PRIu32 " buffers, %s\n", mpl_shown(g->name), g->made.job.problem->n,
           mpl_record_get_text(g->made.row, MPL_FIELD_safety));
    printf("plan     %s%s%s\n", mpl_shown(g->label), g->import.note[0] != '\0' ? ": " : "",
           mpl_shown(g->import.note));
    printf("planned  %12" PRIu64 " bytes  %14s  verified\n", g->planned_bytes,
           mpl_sized(g->planned_bytes).text);
    if (o->proved)
        printf("optimum  %12" PRIu64 " bytes  %14s  proved by %s", o->best_bytes,
               mpl_sized(o->best_bytes).text, mpl_shown(o->by));
    else
        printf("bound    %12" PRIu64 " bytes  %14s  %s; the optimum is not proved", o->bound_bytes,
               mpl_sized(o->bound_bytes).text, o->bound_kind);
    printf(", gap %s\n", mpl_gap_text(g->planned_bytes, o->bound_bytes, gap));
    if (!o->proved && o->best_bytes != UINT64_MAX)
        printf("best     %12" PRIu64 " bytes  %14s  found by %s%s\n", o->best_bytes,
               mpl_sized(o->best_bytes).text, mpl_shown(o->by),
               o->by_clock ? ", ended by the clock" : "");
    if (g->baseline_bytes > 0)
        printf("baseline %12" PRIu64 " bytes  %14s  %s, change %s\n", g->baseline_bytes,
               mpl_sized(g->baseline_bytes).text, mpl_shown(g->options->against),
               mpl_gap_text(g->planned_bytes, g->baseline_bytes, gap));
}

/* One JUnit suite of one case. A rejected plan or one beyond the tolerance is a failure; no
 * judgement is an error. */
static mpl_status write_junit(gate *g, mpl_status how, const char *message)
{
    mpl_status st = MPL_OK;
    mpl_new_file file = {0};
    const char *kind = how == MPL_EINVALID ? "failure" : "error";

    MPL_TRY(mpl_file_begin(g->ctx, g->options->junit, &file));
    fprintf(file.stream,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"memplan "
            "check\" "
            "tests=\"1\" "
            "failures=\"%d\" errors=\"%d\">\n<testcase classname=\"memplan.",
            how == MPL_EINVALID, how != MPL_OK && how != MPL_EINVALID);
    mpl_put_markup(file.stream, g->label[0] != '\0' ? g->label : "check");
    fputs("\" name=\"", file.stream);
    mpl_put_markup(file.stream, g->name[0] != '\0' ? g->name : "check");
    fputs("\">\n", file.stream);
    if (how != MPL_OK) {
        fprintf(file.stream, "<%s type=\"%s\" message=\"", kind,
                how == MPL_EINVALID || how == MPL_ELIMIT ? verdict_name[g->verdict]
                                                         : mpl_status_name(how));
        mpl_put_markup(file.stream, message);
        fputs("\"/>\n", file.stream);
    }
    fputs("<system-out>", file.stream);
    mpl_put_markup(file.stream, message);
    fputs("</system-out>\n</testcase>\n</testsuite>\n</testsuites>\n", file.stream);
    MPL_TRY(mpl_file_commit(g->ctx, &file));
out:
    mpl_file_end(g->ctx, &file);
    return st;
}

/* Prints the row, or the report. After success the summary is the last line; after a failure its
 * message is. */
static mpl_status print_outcome(gate *g)
{
    if (g->options->json && g->made.row != NULL) {
        MPL_PASS(mpl_record_write(g->ctx, g->made.row, &g->options->result));
    } else if (!g->options->json && !g->options->quiet && g->planned_bytes > 0 &&
               g->summary[0] != '\0') {
        print_report(g);
        if (g->verdict == OK || g->verdict == IMPROVED)
            printf("%s\n", mpl_shown(g->summary));
    }
    fflush(stdout); /* a failure's message must follow it in a shared log */
    return MPL_OK;
}

static mpl_status check(gate *g)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_parse_percent(g->ctx, "--tolerance", g->options->tolerance, &g->parts));
    MPL_TRY(mpl_job_check_options(g->ctx, g->options));
    st = open_subject(g);
    if (g->made.row != NULL)
        mpl_planner_label(g->made.row, g->label);
    if (st == MPL_EINVALID && g->made.row != NULL) {
        g->verdict = REFUSED;
        snprintf(g->summary, sizeof g->summary, "%s", g->ctx->message);
        mpl_row_fail(g->made.row, "refused", g->summary);
        fill_row(g);
        MPL_FAIL(g->ctx, MPL_EINVALID, "check: refused: %.100s by %s: %.300s", g->name, g->label,
                 g->summary);
    }
    MPL_TRY(st);
    MPL_TRY(find_reference(g));
    g->verdict = judge(g);
    MPL_TRY(judge_other_pools(g));
    write_summary(g);
    fill_row(g);
    st = outcome(g);
out:
    return st;
}

mpl_status mpl_cmd_check(mpl_ctx *ctx, mpl_options *options)
{
    gate g = {.ctx = ctx, .options = options};
    mpl_status st = check(&g), then;
    char message[sizeof g.summary];

    snprintf(message, sizeof message, "%s", st == MPL_OK ? g.summary : ctx->message);
    then = print_outcome(&g);
    if (options->junit != NULL && then == MPL_OK)
        then = write_junit(&g, st, message);
    if (st == MPL_OK)
        st = then;
    else
        snprintf(ctx->message, sizeof ctx->message, "%.*s", (int)sizeof ctx->message - 1, message);
    mpl_import_fini(ctx, &g.import);
    mpl_made_fini(ctx, &g.made);
    return st;
}
