/* cmd_check.c -- memplan check: the regression gate. Verifies a plan, then compares its bytes with
 * the proven optimum, the best bound, or a baseline. Reports by an exit status, a last line for
 * logs, a row, and JUnit XML. */
#include "graphs/core/file.h"
#include "graphs/problem/bounds/bounds.h"
#include "graphs/core/size.h"
#include "harness/cli/command.h"
#include "harness/gate/gate.h"
#include "harness/report/grid.h"

typedef enum verdict { OK, IMPROVED, BEYOND, SLOWER, UNDECIDED, REFUSED, IMPOSSIBLE } verdict;
static const char *const verdict_name[] = {"ok",        "improved", "beyond",    "slower",
                                           "undecided", "refused",  "impossible"};

typedef struct gate {
    mpl_ctx *ctx;
    mpl_options *options;
    char name[200], label[120];
    mpl_import import; /* empty with --planner */
    mpl_made made;     /* result of --planner; otherwise import.plan */
    uint64_t parts;    /* tolerance above the reference, in millionths */
    bool verified;
    uint64_t planned_bytes;
    mpl_optimum optimum;
    uint64_t baseline_bytes; /* 0: compared with the optimum */
    uint64_t slow_parts;     /* tolerance of --max-slowdown, in millionths */
    uint64_t plan_ns, baseline_ns;
    const char *pool; /* the pool that decides the verdict, if not the first; else NULL */
    uint64_t pool_bytes;
    mpl_optimum pool_optimum;
    verdict verdict;
    char summary[700];
} gate;

/* The largest amount within `parts` above `amount`. */
static uint64_t within(uint64_t amount, uint64_t parts)
{
    uint64_t whole, rest = amount % 1000000 * parts / 1000000; /* parts are at most 10^7 */

    if (!mpl_mul_bytes(amount / 1000000, parts, &whole) || !mpl_add_bytes(whole, rest, &whole) ||
        !mpl_add_bytes(amount, whole, &whole))
        return UINT64_MAX;
    return whole;
}

/* The largest size within the tolerance of `bytes`. */
static uint64_t allowed(const gate *g, uint64_t bytes)
{
    return within(bytes, g->parts);
}

/* ---- what is known ---- */

static mpl_status open_subject(gate *g)
{
    mpl_status st = MPL_OK;
    mpl_options *o = g->options;
    const char *graph = o->args.n > 0 ? o->args.item[0] : NULL;

    if ((o->planner != NULL) == (o->plan != NULL))
        MPL_FAIL(g->ctx, MPL_EINPUT, "check: %s",
                 o->plan != NULL ? "one of --plan FILE and --planner P is needed, not both"
                                 : "--plan FILE, --planner P beside a GRAPH, or a FOLDER that is "
                                   "there is needed");
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
    g->verified = true;
    mpl_record_int(g->made.row, MPL_FIELD_planned_bytes, g->planned_bytes);
out:
    if (g->made.row != NULL && g->made.job.text != NULL && g->made.job.text != g->name)
        snprintf(g->name, sizeof g->name, "%s", g->made.job.text);
    return st;
}

/* The time of planning now and before, for --max-slowdown. */
static mpl_status find_times(gate *g, const mpl_reference *was)
{
    if (g->options->max_slowdown == NULL)
        return MPL_OK;
    MPL_PASS(mpl_parse_percent(g->ctx, "--max-slowdown", g->options->max_slowdown, &g->slow_parts));
    g->baseline_ns = was->plan_ns;
    mpl_record_get_int(g->made.row, MPL_FIELD_plan_ns, &g->plan_ns);
    if (g->plan_ns == 0)
        return MPL_REFUSE(g->ctx,
                          "--max-slowdown: the plan has no time of planning; --planner P has, and "
                          "a plan file of memplan");
    if (g->baseline_ns == 0)
        return MPL_REFUSE(g->ctx,
                          "--max-slowdown: %.200s has no time of planning; --against a plan file "
                          "of memplan, or what baseline update --times records",
                          g->options->against != NULL ? g->options->against : "the optimum");
    return MPL_OK;
}

static mpl_status find_reference(gate *g)
{
    const char *against = g->options->against;
    bool searched = !g->import.returns_memory; /* false: no placement is its optimum */
    mpl_reference was = {0};

    if (against != NULL && strcmp(against, "optimum") != 0)
        MPL_PASS(mpl_gate_against(g->ctx, g->options, g->made.row, g->label, &was));
    MPL_PASS(find_times(g, &was));
    g->baseline_bytes = was.planned_bytes;
    g->optimum = was.optimum;
    if (was.searched) {
        g->optimum.bound_bytes = mpl_max_u64(g->optimum.bound_bytes, g->made.job.bound_bytes);
        return MPL_OK;
    }
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

/* Whether the bytes above the bound are padding of the last buffer. */
static bool is_padded(const gate *g, uint64_t bytes, const mpl_optimum *o)
{
    uint64_t end;

    return g->import.granule > 1 && bytes > o->bound_bytes &&
           mpl_align_bytes(o->bound_bytes, g->import.granule, &end) && bytes <= end;
}

/* Judges a size. Too far above the bound is BEYOND, unless the search ended early and the optimum
 * may still be near enough. */
static verdict hold(const gate *g, uint64_t bytes, const mpl_optimum *o)
{
    if (bytes < o->bound_bytes)
        return IMPOSSIBLE;
    if (bytes <= allowed(g, o->bound_bytes) || is_padded(g, bytes, o))
        return OK;
    return o->proved || bytes > allowed(g, o->best_bytes) || g->import.returns_memory ? BEYOND
                                                                                      : UNDECIDED;
}

enum { NOISE_NS = 1000000 }; /* of planning: less is no slowdown */

static verdict judge(const gate *g)
{
    if (g->planned_bytes < g->optimum.bound_bytes || g->baseline_bytes == 0)
        return hold(g, g->planned_bytes, &g->optimum);
    if (g->planned_bytes > allowed(g, g->baseline_bytes))
        return BEYOND;
    if (g->plan_ns > within(g->baseline_ns, g->slow_parts) &&
        g->plan_ns - g->baseline_ns >= NOISE_NS)
        return SLOWER;
    return g->planned_bytes < g->baseline_bytes ? IMPROVED : OK;
}

/* The optimum of pool k: solves the same problem with that pool first, since planners minimise the
 * first pool; reserved ranges and chunks, which are the first pool's, are left out. */
static mpl_status find_pool_optimum(gate *g, uint32_t k, mpl_optimum *out)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = g->made.job.problem;
    mpl_problem swapped = *p;
    mpl_constraints constraints;
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
    if (p->constraints != NULL) {
        constraints = *p->constraints;
        constraints.n_reserved = 0, constraints.chunk_bytes = 0;
        swapped.constraints = &constraints;
    }
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
    if (g->verdict == SLOWER)
        snprintf(tail, sizeof tail, "; planned in %.3f ms, %.3f ms before (allowed %s more)",
                 (double)g->plan_ns / 1e6, (double)g->baseline_ns / 1e6, g->options->max_slowdown);
    else if (g->verdict == UNDECIDED)
        snprintf(tail, sizeof tail, "; the search ended, the best plan known has %" PRIu64 " bytes",
                 mpl_min_u64(o->best_bytes, bytes));
    else if (!held && is_padded(g, bytes, o))
        snprintf(tail, sizeof tail, ": the least that its alignment of %u bytes allows",
                 g->import.granule);
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
                                        [SLOWER] = MPL_EINVALID,
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
    } else if (!g->options->json && !g->options->quiet && g->verified && g->summary[0] != '\0') {
        print_report(g);
        if (g->verdict == OK || g->verdict == IMPROVED)
            printf("%s\n", mpl_shown(g->summary));
    }
    fflush(stdout); /* a failure's message must follow it in a shared log */
    return MPL_OK;
}

static mpl_status judge_all(gate *g)
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

/* Adds the outcome to the table of --markdown. */
static mpl_status write_line(const gate *g, mpl_status how)
{
    bool judged = how == MPL_OK || how == MPL_EINVALID || how == MPL_ELIMIT;
    mpl_gate_line line = {g->name[0] != '\0' ? g->name : "-",
                          g->label,
                          judged ? verdict_name[g->verdict] : mpl_status_name(how),
                          g->baseline_bytes,
                          g->planned_bytes,
                          g->optimum.bound_bytes,
                          g->optimum.proved,
                          g->baseline_ns,
                          g->plan_ns};

    return mpl_gate_table_add(g->ctx, g->options->markdown, &line,
                              g->options->max_slowdown != NULL);
}

static mpl_status check(gate *g)
{
    mpl_status st = judge_all(g);
    char message[sizeof g->ctx->message];

    if (g->options->markdown == NULL)
        return st;
    memcpy(message, g->ctx->message, sizeof message);
    if (st == MPL_OK)
        return write_line(g, st);
    MPL_PASS(write_line(g, st));
    memcpy(g->ctx->message, message, sizeof message);
    return st;
}

/* One plan of a folder: mpl_gate_check. */
static mpl_status check_file(mpl_ctx *ctx, mpl_options *options, char line[MPL_GATE_LINE])
{
    gate g = {.ctx = ctx, .options = options};
    mpl_status st = check(&g), then = MPL_OK;

    if (options->json && g.made.row != NULL) {
        char message[sizeof ctx->message];

        memcpy(message, ctx->message, sizeof message);
        then = mpl_record_write(ctx, g.made.row, &options->result);
        memcpy(ctx->message, message, sizeof message);
    }
    snprintf(line, MPL_GATE_LINE, "%s", g.summary);
    mpl_import_fini(ctx, &g.import);
    mpl_made_fini(ctx, &g.made);
    return then == MPL_EMEM ? then : st;
}

static mpl_status check_folder(mpl_ctx *ctx, mpl_options *options, const char *folder)
{
    if (options->planner != NULL || options->plan != NULL || options->junit != NULL)
        return MPL_REFUSE(ctx,
                          "check: %.200s is a folder of plans, each alone: without --plan, "
                          "--planner and --junit",
                          folder);
    if (options->markdown != NULL)
        MPL_PASS(mpl_gate_table_begin(ctx, options->markdown, options->max_slowdown != NULL));
    return mpl_gate_folder(ctx, options, folder, check_file);
}

static mpl_status check_plan(mpl_ctx *ctx, mpl_options *options)
{
    gate g = {.ctx = ctx, .options = options};
    mpl_status st = MPL_OK, then;
    char message[sizeof g.summary];

    if (options->markdown != NULL)
        st = mpl_gate_table_begin(ctx, options->markdown, options->max_slowdown != NULL);
    if (st == MPL_OK)
        st = check(&g);
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

mpl_status mpl_cmd_check(mpl_ctx *ctx, mpl_options *options)
{
    const char *subject = options->args.n > 0 ? options->args.item[0] : NULL;

    return subject != NULL && mpl_gate_is_folder(subject) ? check_folder(ctx, options, subject)
                                                          : check_plan(ctx, options);
}
