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
static uint64_t allowed(const gate *self, uint64_t bytes)
{
    return within(bytes, self->parts);
}

/* ---- what is known ---- */

static mpl_status open_subject(gate *self)
{
    mpl_status st = MPL_OK;
    mpl_options *options = self->options;
    const char *graph = options->args.n > 0 ? options->args.item[0] : NULL;

    if ((options->planner != NULL) == (options->plan != NULL))
        MPL_FAIL(self->ctx, MPL_EINPUT, "check: %s",
                 options->plan != NULL
                     ? "one of --plan FILE and --planner P is needed, not both"
                     : "--plan FILE, --planner P beside a GRAPH, or a FOLDER that is "
                       "there is needed");
    if (options->plan != NULL) {
        snprintf(self->name, sizeof self->name, "%s", options->plan);
        MPL_TRY(mpl_gate_open_plan(self->ctx, options, graph, options->plan, self->name,
                                   &self->import, &self->made.row, &self->made.job));
        MPL_TRY(mpl_job_verify_file(self->ctx, &self->made.job, self->import.plan));
        MPL_TRY(mpl_job_plan_fields(self->ctx, &self->made.job, self->import.plan, self->made.row));
        self->planned_bytes = mpl_gate_bytes(&self->import, self->import.plan);
    } else {
        if (graph == NULL)
            MPL_FAIL(self->ctx, MPL_EINPUT, "check: --planner needs a GRAPH to plan");
        snprintf(self->name, sizeof self->name, "%s", graph);
        MPL_TRY(mpl_make(self->ctx, options, graph, MPL_TO_PLAN, &self->made));
        self->planned_bytes = self->made.plan->peak_bytes;
    }
    if ((self->made.plan != NULL ? self->made.plan : self->import.plan)->spread.n > 0)
        MPL_FAIL(self->ctx, MPL_EUNAVAIL,
                 "check: a plan over several memories is one of cost, and no optimum of that is "
                 "known here; "
                 "certify checks what it claims of it");
    self->verified = true;
    mpl_record_int(self->made.row, MPL_FIELD_planned_bytes, self->planned_bytes);
out:
    if (self->made.row != NULL && self->made.job.text != NULL && self->made.job.text != self->name)
        snprintf(self->name, sizeof self->name, "%s", self->made.job.text);
    return st;
}

/* The time of planning now and before, for --max-slowdown. */
static mpl_status find_times(gate *self, const mpl_reference *was)
{
    if (self->options->max_slowdown == NULL)
        return MPL_OK;
    MPL_PASS(mpl_parse_percent(self->ctx, "--max-slowdown", self->options->max_slowdown,
                               &self->slow_parts));
    self->baseline_ns = was->plan_ns;
    mpl_record_get_int(self->made.row, MPL_FIELD_plan_ns, &self->plan_ns);
    if (self->plan_ns == 0)
        return MPL_REFUSE(self->ctx,
                          "--max-slowdown: the plan has no time of planning; --planner P has, and "
                          "a plan file of memplan");
    if (self->baseline_ns == 0)
        return MPL_REFUSE(self->ctx,
                          "--max-slowdown: %.200s has no time of planning; --against a plan file "
                          "of memplan, or what baseline update --times records",
                          self->options->against != NULL ? self->options->against : "the optimum");
    return MPL_OK;
}

static mpl_status find_reference(gate *self)
{
    const char *against = self->options->against;
    bool searched = !self->import.returns_memory; /* false: no placement is its optimum */
    mpl_reference was = {0};

    if (against != NULL && strcmp(against, "optimum") != 0)
        MPL_PASS(mpl_gate_against(self->ctx, self->options, self->made.row, self->label, &was));
    MPL_PASS(find_times(self, &was));
    self->baseline_bytes = was.planned_bytes;
    self->optimum = was.optimum;
    if (was.searched) {
        self->optimum.bound_bytes =
            mpl_max_u64(self->optimum.bound_bytes, self->made.job.bound_bytes);
        return MPL_OK;
    }
    self->optimum = (mpl_optimum){.bound_bytes = self->made.job.bound_bytes,
                                  .bound_kind = self->made.job.bound_kind,
                                  .best_bytes = UINT64_MAX};
    if (self->planned_bytes == self->made.job.bound_bytes) { /* at the bound: nothing to search */
        self->optimum.best_bytes = self->planned_bytes;
        self->optimum.proved = true;
        self->optimum.by = "the bound";
    } else if (searched) {
        MPL_PASS(mpl_optimum_find(self->ctx, self->options, &self->made.job, &self->optimum));
    }
    return MPL_OK;
}

/* ---- the judgement ---- */

/* Whether the bytes above the bound are padding of the last buffer. */
static bool is_padded(const gate *self, uint64_t bytes, const mpl_optimum *optimum)
{
    uint64_t end;

    return self->import.granule > 1 && bytes > optimum->bound_bytes &&
           mpl_align_bytes(optimum->bound_bytes, self->import.granule, &end) && bytes <= end;
}

/* Judges a size. Too far above the bound is BEYOND, unless the search ended early and the optimum
 * may still be near enough. */
static verdict hold(const gate *self, uint64_t bytes, const mpl_optimum *optimum)
{
    if (bytes < optimum->bound_bytes)
        return IMPOSSIBLE;
    if (bytes <= allowed(self, optimum->bound_bytes) || is_padded(self, bytes, optimum))
        return OK;
    return optimum->proved || bytes > allowed(self, optimum->best_bytes) ||
                   self->import.returns_memory
               ? BEYOND
               : UNDECIDED;
}

enum { NOISE_NS = 1000000 }; /* of planning: less is no slowdown */

static verdict judge(const gate *self)
{
    if (self->planned_bytes < self->optimum.bound_bytes || self->baseline_bytes == 0)
        return hold(self, self->planned_bytes, &self->optimum);
    if (self->planned_bytes > allowed(self, self->baseline_bytes))
        return BEYOND;
    if (self->plan_ns > within(self->baseline_ns, self->slow_parts) &&
        self->plan_ns - self->baseline_ns >= NOISE_NS)
        return SLOWER;
    return self->planned_bytes < self->baseline_bytes ? IMPROVED : OK;
}

/* The optimum of pool k: solves the same problem with that pool first, since planners minimise the
 * first pool; reserved ranges and chunks, which are the first pool's, are left out. */
static mpl_status find_pool_optimum(gate *self, uint32_t k, mpl_optimum *out)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->made.job.problem;
    mpl_problem swapped = *p;
    mpl_constraints constraints;
    mpl_job job = self->made.job;
    uint32_t *pool = NULL;
    uint64_t *capacity = NULL;

    MPL_TRY(mpl_new(self->ctx, pool, p->n));
    MPL_TRY(mpl_new(self->ctx, capacity, p->n_pools));
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
    MPL_TRY(mpl_lower_bound(self->ctx, p, k, &job.bound_bytes, NULL));
    *out = (mpl_optimum){job.bound_bytes, job.bound_kind, UINT64_MAX, .by = NULL};
    MPL_TRY(mpl_optimum_find(self->ctx, self->options, &job, out));
out:
    mpl_free_each(self->ctx, pool, capacity);
    return st;
}

/* A plan is optimal only if each of its pools is. The first pool that is not decides. */
static mpl_status judge_other_pools(gate *self)
{
    const mpl_plan *plan = self->made.plan != NULL ? self->made.plan : self->import.plan;
    verdict worst = self->verdict;

    for (uint32_t k = 1; worst == OK && self->baseline_bytes == 0 && k < plan->n_pools; k++) {
        self->pool_optimum = (mpl_optimum){.best_bytes = UINT64_MAX};
        MPL_PASS(mpl_lower_bound(self->ctx, self->made.job.problem, k,
                                 &self->pool_optimum.bound_bytes, NULL));
        if (plan->pool_bytes[k] <= allowed(self, self->pool_optimum.bound_bytes))
            continue;
        /* Otherwise no placement is its optimum, as for the first pool. */
        if (!self->import.returns_memory)
            MPL_PASS(find_pool_optimum(self, k, &self->pool_optimum));
        worst = hold(self, plan->pool_bytes[k], &self->pool_optimum);
        if (worst == OK)
            continue;
        self->pool = self->made.job.problem->pool_name[k];
        self->pool_bytes = plan->pool_bytes[k];
    }
    self->verdict = worst;
    return MPL_OK;
}

static void write_summary(gate *self)
{
    const mpl_optimum *optimum = self->pool != NULL ? &self->pool_optimum : &self->optimum;
    uint64_t bytes = self->pool != NULL ? self->pool_bytes : self->planned_bytes;
    bool held = self->baseline_bytes > 0;
    uint64_t reference = held ? self->baseline_bytes : optimum->bound_bytes;
    const char *what = held ? "baseline" : optimum->proved ? "optimum" : "bound";
    char gap[32], relation[64], tail[160] = "", pool[80] = "";

    if (self->pool != NULL)
        snprintf(pool, sizeof pool, "pool '%.60s', ", self->pool);
    mpl_gap_text(bytes, reference, gap);
    snprintf(relation, sizeof relation, "%s %s", bytes == reference ? "at" : gap + 1,
             bytes == reference  ? "the"
             : bytes > reference ? "above the"
                                 : "below the");
    if (self->verdict == SLOWER)
        snprintf(tail, sizeof tail, "; planned in %.3f ms, %.3f ms before (allowed %s more)",
                 (double)self->plan_ns / 1e6, (double)self->baseline_ns / 1e6,
                 self->options->max_slowdown);
    else if (self->verdict == UNDECIDED)
        snprintf(tail, sizeof tail, "; the search ended, the best plan known has %" PRIu64 " bytes",
                 mpl_min_u64(optimum->best_bytes, bytes));
    else if (!held && is_padded(self, bytes, optimum))
        snprintf(tail, sizeof tail, ": the least that its alignment of %u bytes allows",
                 self->import.granule);
    else if (self->verdict == IMPOSSIBLE)
        snprintf(tail, sizeof tail,
                 "; no plan can be below the %s of %" PRIu64
                 " bytes: what proved it, or what verified this, is wrong",
                 optimum->proved ? "proven optimum" : "bound", optimum->bound_bytes);
    snprintf(self->summary, sizeof self->summary,
             "check: %s: %.150s by %s: %s%" PRIu64 " bytes, %s %s of %" PRIu64 " (allowed %g %%)%s",
             verdict_name[self->verdict], self->name, self->label, pool, bytes, relation, what,
             reference, (double)self->parts / 10000, tail);
}

static mpl_status outcome(gate *self)
{
    static const mpl_status status[] = {[OK] = MPL_OK,
                                        [IMPROVED] = MPL_OK,
                                        [BEYOND] = MPL_EINVALID,
                                        [SLOWER] = MPL_EINVALID,
                                        [UNDECIDED] = MPL_ELIMIT,
                                        [REFUSED] = MPL_EINVALID,
                                        [IMPOSSIBLE] = MPL_EINVALID};

    if (status[self->verdict] != MPL_OK)
        return MPL_ERROR(self->ctx, status[self->verdict], "%s", self->summary);
    return MPL_OK;
}

static void fill_row(gate *self)
{
    mpl_record_text(self->made.row, MPL_FIELD_verdict, verdict_name[self->verdict]);
    if (self->verdict == REFUSED)
        return;
    mpl_record_int(self->made.row, MPL_FIELD_bound_bytes, self->optimum.bound_bytes);
    mpl_record_text(self->made.row, MPL_FIELD_bound_kind, self->optimum.bound_kind);
    if (self->optimum.proved)
        mpl_record_int(self->made.row, MPL_FIELD_optimum_bytes, self->optimum.best_bytes);
    if (self->baseline_bytes > 0)
        mpl_record_int(self->made.row, MPL_FIELD_baseline_bytes, self->baseline_bytes);
}

/* ---- what is printed ---- */

static void print_report(const gate *self)
{
    const mpl_optimum *optimum = &self->optimum;
    char gap[32];

    printf("graph    %s: %" PRIu32 " buffers, %s\n", mpl_shown(self->name),
           self->made.job.problem->n, mpl_record_get_text(self->made.row, MPL_FIELD_safety));
    printf("plan     %s%s%s\n", mpl_shown(self->label), self->import.note[0] != '\0' ? ": " : "",
           mpl_shown(self->import.note));
    printf("planned  %12" PRIu64 " bytes  %14s  verified\n", self->planned_bytes,
           mpl_sized(self->planned_bytes).text);
    if (optimum->proved)
        printf("optimum  %12" PRIu64 " bytes  %14s  proved by %s", optimum->best_bytes,
               mpl_sized(optimum->best_bytes).text, mpl_shown(optimum->by));
    else
        printf("bound    %12" PRIu64 " bytes  %14s  %s; the optimum is not proved",
               optimum->bound_bytes, mpl_sized(optimum->bound_bytes).text, optimum->bound_kind);
    printf(", gap %s\n", mpl_gap_text(self->planned_bytes, optimum->bound_bytes, gap));
    if (!optimum->proved && optimum->best_bytes != UINT64_MAX)
        printf("best     %12" PRIu64 " bytes  %14s  found by %s%s\n", optimum->best_bytes,
               mpl_sized(optimum->best_bytes).text, mpl_shown(optimum->by),
               optimum->by_clock ? ", ended by the clock" : "");
    if (self->baseline_bytes > 0)
        printf("baseline %12" PRIu64 " bytes  %14s  %s, change %s\n", self->baseline_bytes,
               mpl_sized(self->baseline_bytes).text, mpl_shown(self->options->against),
               mpl_gap_text(self->planned_bytes, self->baseline_bytes, gap));
}

/* One JUnit suite of one case. A rejected plan or one beyond the tolerance is a failure; no
 * judgement is an error. */
static mpl_status write_junit(gate *self, mpl_status how, const char *message)
{
    mpl_status st = MPL_OK;
    mpl_new_file file = {0};
    const char *kind = how == MPL_EINVALID ? "failure" : "error";

    MPL_TRY(mpl_file_begin(self->ctx, self->options->junit, &file));
    fprintf(file.stream,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"memplan "
            "check\" "
            "tests=\"1\" "
            "failures=\"%d\" errors=\"%d\">\n<testcase classname=\"memplan.",
            how == MPL_EINVALID, how != MPL_OK && how != MPL_EINVALID);
    mpl_put_markup(file.stream, self->label[0] != '\0' ? self->label : "check");
    fputs("\" name=\"", file.stream);
    mpl_put_markup(file.stream, self->name[0] != '\0' ? self->name : "check");
    fputs("\">\n", file.stream);
    if (how != MPL_OK) {
        fprintf(file.stream, "<%s type=\"%s\" message=\"", kind,
                how == MPL_EINVALID || how == MPL_ELIMIT ? verdict_name[self->verdict]
                                                         : mpl_status_name(how));
        mpl_put_markup(file.stream, message);
        fputs("\"/>\n", file.stream);
    }
    fputs("<system-out>", file.stream);
    mpl_put_markup(file.stream, message);
    fputs("</system-out>\n</testcase>\n</testsuite>\n</testsuites>\n", file.stream);
    MPL_TRY(mpl_file_commit(self->ctx, &file));
out:
    mpl_file_end(self->ctx, &file);
    return st;
}

/* Prints the row, or the report. After success the summary is the last line; after a failure its
 * message is. */
static mpl_status print_outcome(gate *self)
{
    if (self->options->json && self->made.row != NULL) {
        MPL_PASS(mpl_record_write(self->ctx, self->made.row, &self->options->result));
    } else if (!self->options->json && !self->options->quiet && self->verified &&
               self->summary[0] != '\0') {
        print_report(self);
        if (self->verdict == OK || self->verdict == IMPROVED)
            printf("%s\n", mpl_shown(self->summary));
    }
    fflush(stdout); /* a failure's message must follow it in a shared log */
    return MPL_OK;
}

static mpl_status judge_all(gate *self)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_parse_percent(self->ctx, "--tolerance", self->options->tolerance, &self->parts));
    MPL_TRY(mpl_job_check_options(self->ctx, self->options));
    st = open_subject(self);
    if (self->made.row != NULL)
        mpl_planner_label(self->made.row, self->label);
    if (st == MPL_EINVALID && self->made.row != NULL) {
        self->verdict = REFUSED;
        snprintf(self->summary, sizeof self->summary, "%s", self->ctx->message);
        mpl_row_fail(self->made.row, "refused", self->summary);
        fill_row(self);
        MPL_FAIL(self->ctx, MPL_EINVALID, "check: refused: %.100s by %s: %.300s", self->name,
                 self->label, self->summary);
    }
    MPL_TRY(st);
    MPL_TRY(find_reference(self));
    self->verdict = judge(self);
    MPL_TRY(judge_other_pools(self));
    write_summary(self);
    fill_row(self);
    st = outcome(self);
out:
    return st;
}

/* Adds the outcome to the table of --markdown. */
static mpl_status write_line(const gate *self, mpl_status how)
{
    bool judged = how == MPL_OK || how == MPL_EINVALID || how == MPL_ELIMIT;
    mpl_gate_line line = {self->name[0] != '\0' ? self->name : "-",
                          self->label,
                          judged ? verdict_name[self->verdict] : mpl_status_name(how),
                          self->baseline_bytes,
                          self->planned_bytes,
                          self->optimum.bound_bytes,
                          self->optimum.proved,
                          self->baseline_ns,
                          self->plan_ns};

    return mpl_gate_table_add(self->ctx, self->options->markdown, &line,
                              self->options->max_slowdown != NULL);
}

static mpl_status check(gate *self)
{
    mpl_status st = judge_all(self);
    char message[sizeof self->ctx->message];

    if (self->options->markdown == NULL)
        return st;
    memcpy(message, self->ctx->message, sizeof message);
    if (st == MPL_OK)
        return write_line(self, st);
    MPL_PASS(write_line(self, st));
    memcpy(self->ctx->message, message, sizeof message);
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
