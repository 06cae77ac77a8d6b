/* residency_job.c -- plans, executes and certifies residency in time. See residency_job.h. */
#include "harness/residency/residency_job.h"

#include "graphs/core/size.h"
#include "graphs/orders/op_streams.h"
#include "harness/cli/quote.h"
#include "harness/report/grid.h"
#include "harness/tune/tuned.h"
#include "planners/residency/residency.h"
#include "planners/verify/verify_residency.h"

#include <stdlib.h>

#define KIND "residency"

mpl_status mpl_residency_asked(mpl_ctx *ctx, const mpl_options *options, bool *asked)
{
    *asked =
        options->residency || (options->plan != NULL && mpl_plan_of_kind(ctx, options->plan, KIND));
    if (options->residency && options->plan == NULL && options->memories == NULL)
        return MPL_REFUSE(ctx, "--residency: which memories? --memories fast:2MiB:1,slow:inf:8");
    if (!options->residency && options->memories != NULL)
        return MPL_REFUSE(ctx, "--memories: add --residency; a buffer that lies in one memory for "
                               "its whole life is a matter of --planner spill");
    return MPL_OK;
}

/* ---- --memories ---- */

typedef struct memories {
    uint64_t capacity, percent; /* of fast memory; percent 0: capacity counts [byte] */
    uint64_t move_price, slow_price;
    uint64_t bandwidth; /* [byte/s] 0: moves take no time */
} memories;

#define RATE ",bandwidth="

/* A price: a whole number from 1, or '-' where `none` is allowed: 0. */
static mpl_status parse_price(mpl_ctx *ctx, const char *text, bool none, uint64_t *out)
{
    char *end;

    *out = 0;
    if (none && strcmp(text, "-") == 0)
        return MPL_OK;
    *out = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || *out == 0 || *out > 1000000)
        return MPL_REFUSE(ctx, "--memories: price '%.40s' is no whole number from 1 to 1000000%s",
                          text, none ? ", nor '-' (no step may use what lies there)" : "");
    return MPL_OK;
}

static mpl_status parse_fast(mpl_ctx *ctx, const char *text, memories *out)
{
    const char *end = text;

    if (strchr(text, '%') == NULL)
        return mpl_parse_bytes(ctx, "--memories, capacity", text, &out->capacity);
    out->percent = strtoull(text, (char **)(uintptr_t)&end, 10);
    if (strcmp(end, "%") != 0 || out->percent < 1 || out->percent > 100)
        return MPL_REFUSE(ctx,
                          "--memories: '%.40s' is none of 1%% to 100%% of the plan in one "
                          "memory",
                          text);
    return MPL_OK;
}

/* "fast:2MiB:1,slow:inf:8" */
static mpl_status parse_memories(mpl_ctx *ctx, const char *text, memories *out)
{
    char part[2][3][64] = {{{0}}}, rest[2] = {0}, plain[400];
    const char *rate = strstr(text, RATE);

    *out = (memories){0};
    if (rate != NULL) {
        MPL_PASS(
            mpl_parse_bytes(ctx, "--memories, bandwidth", rate + strlen(RATE), &out->bandwidth));
        if (out->bandwidth == 0 || rate - text >= (ptrdiff_t)sizeof plain)
            return MPL_REFUSE(ctx, "--memories: the bandwidth is at least a byte a second");
        snprintf(plain, sizeof plain, "%.*s", (int)(rate - text), text);
        text = plain;
    }
    if (sscanf(text, "%63[^:,]:%63[^:,]:%63[^:,],%63[^:,]:%63[^:,]:%63[^:,]%1c", part[0][0],
               part[0][1], part[0][2], part[1][0], part[1][1], part[1][2], rest) != 6 ||
        strcmp(part[1][1], "inf") != 0)
        return MPL_REFUSE(
            ctx,
            "--memories %.100s: of the form fast:2MiB:1,slow:inf:8[,bandwidth=10GiB]: capacity in "
            "bytes or %% and the price of a byte moved; the price of one that a step "
            "uses in slow memory, or -; bytes a second between them",
            text);
    MPL_PASS(parse_fast(ctx, part[0][1], out));
    MPL_PASS(parse_price(ctx, part[0][2], false, &out->move_price));
    return parse_price(ctx, part[1][2], true, &out->slow_price);
}

static mpl_status ask_memories(mpl_ctx *ctx, const mpl_options *options, memories *out)
{
    MPL_PASS(parse_memories(ctx, options->memories, out));
    if (out->bandwidth == 0 && options->given[MPL_OPT_op_times] &&
        options->layout != MPL_layout_tuned)
        return MPL_REFUSE(ctx, "--op-times: durations of steps count only where moves take time; "
                               "add ,bandwidth=10GiB to --memories");
    return MPL_OK;
}

/* ---- planning ---- */

static mpl_status check_options(mpl_ctx *ctx, const mpl_options *options)
{
    if (options->planner != NULL || options->near != NULL || options->given[MPL_OPT_capacity] ||
        options->args.n != 1)
        return MPL_REFUSE(ctx, "residency: one GRAPH, without --planner, --near and --capacity");
    if (options->safety.kind != MPL_safety_serial || options->workers > 1 || options->checked ||
        options->workspaces == MPL_workspaces_plan || options->pools != 0 || options->pin != 7 ||
        options->given[MPL_OPT_iterations])
        return MPL_REFUSE(ctx, "residency: serial plans, with weights, inputs and outputs pinned "
                               "and workspaces in their pool, run by one worker, unchecked");
    return MPL_OK;
}

/* The plan in one memory, as GRAPH's options have it. */
static mpl_status plan_without(mpl_ctx *ctx, const mpl_options *options, uint64_t *bytes)
{
    mpl_options plain = *options;
    mpl_made made = {0};
    mpl_status st;

    plain.plan = NULL;
    st = mpl_make(ctx, &plain, options->args.item[0], MPL_TO_PLAN, &made);
    if (st == MPL_OK)
        *bytes = made.plan->peak_bytes;
    mpl_made_fini(ctx, &made);
    return st;
}

/* Nothing lies over or inside another. */
static void keep_apart(mpl_options *options)
{
    options->in_place = false;
    options->concat = MPL_concat_copy;
    options->plan = NULL;
}

/* The row, and which step uses which buffer. */
static mpl_status take_problem(mpl_ctx *ctx, const mpl_options *options, mpl_residency_job *job)
{
    MPL_PASS(mpl_job_row(ctx, options, &job->made.job, NULL, &job->made.row));
    return mpl_residency_uses(ctx, &job->made.job, &job->found.p, &job->found.of_buffer);
}

/* GRAPH in the order of the options; in that of a plan file at `path`, if its fields have one. */
static mpl_status open_graph(mpl_ctx *ctx, mpl_options *options, const char *path,
                             const char *fields, mpl_residency_job *job)
{
    mpl_job *to = &job->made.job;
    mpl_plan_choices chosen = {0};

    keep_apart(options);
    MPL_PASS(mpl_job_read(ctx, options, options->args.item[0], to));
    MPL_PASS(mpl_job_passes(ctx, options, to));
    if (to->source.graph != NULL && !options->given[MPL_OPT_order])
        MPL_PASS(mpl_plan_read_choices(ctx, path, fields, to->source.graph->n_ops, &chosen));
    if (chosen.order != NULL)
        mpl_job_order_chosen(&chosen, to);
    else
        MPL_PASS(mpl_job_order(ctx, options, to));
    MPL_PASS(mpl_job_problem_here(ctx, options, to));
    return take_problem(ctx, options, job);
}

/* Durations of steps: measured ones of --op-times, else the estimate that streams go by. */
static mpl_status time_steps(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                             mpl_residency_problem *p)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = job->source.graph;
    uint64_t *ns = NULL;

    MPL_TRY(mpl_new(ctx, ns, g->n_ops));
    MPL_TRY(mpl_new(ctx, p->step_ns, p->n_steps));
    if (options->given[MPL_OPT_op_times])
        MPL_TRY(mpl_tuned_times(ctx, g, options->op_times, ns));
    else
        mpl_streams_estimate(g, ns);
    for (uint32_t s = 0; s < g->n_ops; s++)
        p->step_ns[s] = job->map->op_nothing != NULL && job->map->op_nothing[job->order[s]]
                            ? 0
                            : ns[job->order[s]];
out:
    mpl_free(ctx, ns);
    return st;
}

static uint64_t capacity_of(const memories *self, uint64_t without_bytes)
{
    return self->percent > 0 ? without_bytes / 100 * self->percent : self->capacity;
}

/* Plans the problem in these memories, beside the two rules. */
static mpl_status solve(mpl_ctx *ctx, const mpl_options *options, const memories *m,
                        mpl_residency_job *job, mpl_run *run)
{
    mpl_residency_problem *p = job->found.p;
    int64_t begin = mpl_clock_ns();

    p->capacity = capacity_of(m, job->without_bytes);
    p->move_price = m->move_price;
    p->slow_price = m->slow_price;
    p->bandwidth = m->bandwidth;
    if (p->bandwidth > 0)
        MPL_PASS(time_steps(ctx, options, &job->made.job, p));
    if (p->bandwidth > 0 && options->given[MPL_OPT_op_times])
        mpl_record_text(job->made.row, MPL_FIELD_op_times, options->op_times);
    MPL_PASS(mpl_residency_solve(run, p, &job->found.plan));
    run->plan_ns = mpl_clock_ns() - begin;
    MPL_PASS(mpl_residency_belady(ctx, p, &job->furthest_cost, &job->furthest_ns));
    MPL_PASS(mpl_residency_greedy(ctx, p, &job->density_cost, &job->density_ns));
    mpl_record_text(job->made.row, MPL_FIELD_two_memories, options->memories);
    return MPL_OK;
}

static mpl_status plan_graph(mpl_ctx *ctx, mpl_options *options, mpl_residency_job *job,
                             mpl_run *run)
{
    mpl_params none = {0};
    memories m;

    MPL_PASS(ask_memories(ctx, options, &m));
    MPL_PASS(plan_without(ctx, options, &job->without_bytes));
    MPL_PASS(open_graph(ctx, options, NULL, NULL, job));
    mpl_asked_run(ctx, options, &none, run);
    return solve(ctx, options, &m, job, run);
}

/* Whether the file's problem is the graph's own. */
static bool same_uses(const mpl_residency_problem *a, const mpl_residency_problem *b)
{
    return a->n == b->n && a->n_steps == b->n_steps && a->align == b->align &&
           memcmp(a->begin, b->begin, ((size_t)a->n + 1) * sizeof *a->begin) == 0 &&
           memcmp(a->bytes, b->bytes, a->n * sizeof *a->bytes) == 0 &&
           memcmp(a->at, b->at, a->begin[a->n] * sizeof *a->at) == 0 &&
           memcmp(a->writes, b->writes, a->begin[a->n]) == 0;
}

static mpl_status take_file(mpl_ctx *ctx, mpl_options *options, mpl_residency_job *job)
{
    mpl_status st = MPL_OK;
    mpl_residency_problem *p = NULL;
    mpl_record *row = NULL;
    const char *path = options->plan;
    char *fields = NULL;

    MPL_TRY(mpl_residency_read(ctx, path, &p, &job->found.plan, &fields));
    MPL_TRY(mpl_record_read(ctx, path, fields, strlen(fields), &row));
    MPL_TRY(mpl_job_adopt(ctx, options, false, row));
    MPL_TRY(check_options(ctx, options));
    if (options->backend == NULL)
        options->backend = mpl_backend_default()->name;
    MPL_TRY(open_graph(ctx, options, path, fields, job));
    if (!same_uses(p, job->found.p))
        MPL_FAIL(ctx, MPL_EINPUT, "%.200s: a plan of another graph than %.100s under these options",
                 path, options->args.item[0]);
    job->found.p->capacity = p->capacity;
    job->found.p->move_price = p->move_price;
    job->found.p->slow_price = p->slow_price;
    job->found.p->bandwidth = p->bandwidth;
    job->found.p->step_ns = p->step_ns, p->step_ns = NULL;
    (void)mpl_record_get_int(row, MPL_FIELD_without_bytes, &job->without_bytes);
    (void)mpl_record_get_int(row, MPL_FIELD_cost_furthest, &job->furthest_cost);
    (void)mpl_record_get_int(row, MPL_FIELD_cost_density, &job->density_cost);
    (void)mpl_record_get_int(row, MPL_FIELD_stall_furthest_ns, &job->furthest_ns);
    (void)mpl_record_get_int(row, MPL_FIELD_stall_density_ns, &job->density_ns);
    mpl_record_text(job->made.row, MPL_FIELD_two_memories,
                    mpl_record_get_text(row, MPL_FIELD_two_memories));
    mpl_record_text(job->made.row, MPL_FIELD_op_times,
                    mpl_record_get_text(row, MPL_FIELD_op_times));
out:
    mpl_residency_problem_free(ctx, p);
    mpl_record_free(ctx, row);
    mpl_free(ctx, fields);
    return st;
}

/* Both memories as a pool 0 that is spread, with each buffer where it is first used. */
static mpl_status spread(mpl_ctx *ctx, mpl_residency_job *job)
{
    const mpl_problem *q = job->made.job.problem;
    const mpl_residency_plan *plan = job->found.plan;
    mpl_plan *out;

    MPL_PASS(mpl_plan_new(ctx, q, &job->plan));
    out = job->plan;
    MPL_PASS(mpl_plan_spread(ctx, out, 2));
    out->claim = MPL_FEASIBLE;
    out->spread.bytes[0] = plan->fast_bytes;
    out->spread.bytes[1] = plan->slow_arena;
    for (mpl_buffer b = 0; b < q->n; b++) {
        uint32_t id = job->found.of_buffer[b], first = id != MPL_NONE ? job->found.p->begin[id] : 0;
        uint64_t *bytes = q->pool[b] != 0 ? &out->pool_bytes[q->pool[b]] : &out->spread.bytes[0];

        if (id == MPL_NONE) { /* unused, or a workspace: never two at once */
            *bytes = mpl_max_u64(*bytes, q->bytes[b]);
            continue;
        }
        out->spread.memory[b] = plan->fast[first] ? 0 : 1;
        out->offset[b] = plan->place[first] + (q->inside != NULL ? q->inside_at[b] : 0);
    }
    return MPL_OK;
}

static uint64_t all_steps(const mpl_residency_problem *p)
{
    uint64_t sum = 0;

    for (uint32_t s = 0; s < p->n_steps; s++)
        sum += p->step_ns[s];
    return sum;
}

const char *mpl_residency_proof(const mpl_residency_plan *plan)
{
    return plan->programmed ? "program" : plan->searched ? "search" : "prices";
}

static void put_fields(const mpl_residency_job *job, const mpl_run *run, mpl_record *row)
{
    const mpl_residency_plan *plan = job->found.plan;
    bool is_least = job->found.p->bandwidth > 0 ? plan->stall_ns == plan->stall_bound
                                                : plan->cost == plan->bound;

    mpl_record_text(row, MPL_FIELD_status, "ok");
    mpl_record_text(row, MPL_FIELD_planner, KIND);
    mpl_record_text(row, MPL_FIELD_claim, is_least ? "optimal" : "feasible");
    mpl_record_bool(row, MPL_FIELD_verified, true);
    mpl_record_int(row, MPL_FIELD_planned_bytes, plan->fast_bytes);
    mpl_record_int(row, MPL_FIELD_without_bytes, job->without_bytes);
    mpl_record_int(row, MPL_FIELD_fast_capacity, job->found.p->capacity);
    mpl_record_int(row, MPL_FIELD_slow_bytes, plan->slow_arena);
    mpl_record_int(row, MPL_FIELD_moved_bytes, plan->moved_bytes);
    mpl_record_int(row, MPL_FIELD_slow_used_bytes, plan->slow_bytes);
    mpl_record_int(row, MPL_FIELD_cost, plan->cost);
    mpl_record_int(row, MPL_FIELD_cost_bound, plan->bound);
    mpl_record_text(row, MPL_FIELD_cost_proof, mpl_residency_proof(plan));
    if (job->found.p->bandwidth > 0) {
        mpl_record_int(row, MPL_FIELD_bandwidth, job->found.p->bandwidth);
        mpl_record_int(row, MPL_FIELD_steps_ns, all_steps(job->found.p));
        mpl_record_int(row, MPL_FIELD_stall_ns, plan->stall_ns);
        mpl_record_int(row, MPL_FIELD_stall_bound_ns, plan->stall_bound);
        mpl_record_text(row, MPL_FIELD_stall_proof, plan->stall_searched ? "search" : "prices");
        mpl_record_int(row, MPL_FIELD_stall_furthest_ns, job->furthest_ns);
        mpl_record_int(row, MPL_FIELD_stall_density_ns, job->density_ns);
    }
    mpl_record_int(row, MPL_FIELD_cost_furthest, job->furthest_cost);
    mpl_record_int(row, MPL_FIELD_cost_density, job->density_cost);
    mpl_record_null(row, MPL_FIELD_bound_bytes);
    mpl_record_null(row, MPL_FIELD_bound_kind);
    mpl_record_int(row, MPL_FIELD_ticks, run->ticks);
    mpl_record_int(row, MPL_FIELD_plan_ns, (uint64_t)run->plan_ns);
}

mpl_status mpl_residency_job_plan(mpl_ctx *ctx, mpl_options *options, mpl_residency_job *job)
{
    mpl_run run = mpl_run_default(ctx);

    *job = (mpl_residency_job){0};
    MPL_PASS(check_options(ctx, options));
    if (options->plan != NULL) {
        MPL_PASS(take_file(ctx, options, job));
    } else {
        MPL_PASS(plan_graph(ctx, options, job, &run));
    }
    MPL_PASS(mpl_verify_residency(ctx, job->found.p, job->found.plan));
    put_fields(job, &run, job->made.row);
    return MPL_OK;
}

mpl_status mpl_residency_job_check(mpl_ctx *ctx, const mpl_options *options, uint64_t bytes,
                                   uint64_t *capacity)
{
    memories m;

    MPL_PASS(ask_memories(ctx, options, &m));
    *capacity = capacity_of(&m, bytes);
    return check_options(ctx, options);
}

mpl_status mpl_residency_job_of(mpl_run *run, const mpl_options *options, const mpl_job *from,
                                const mpl_op *order, uint64_t without_bytes, mpl_residency_job *job)
{
    mpl_ctx *ctx = run->ctx;
    mpl_options own = *options;
    memories m;

    *job = (mpl_residency_job){.without_bytes = without_bytes};
    keep_apart(&own);
    MPL_PASS(ask_memories(ctx, &own, &m));
    MPL_PASS(mpl_job_borrow(ctx, from, order, &job->made.job));
    MPL_PASS(mpl_job_problem(ctx, &own, from->backend, from->workspace_bytes, &job->made.job));
    MPL_PASS(take_problem(ctx, &own, job));
    MPL_PASS(solve(ctx, &own, &m, job, run));
    MPL_PASS(mpl_verify_residency(ctx, job->found.p, job->found.plan));
    put_fields(job, run, job->made.row);
    return MPL_OK;
}

mpl_status mpl_residency_job_write(mpl_ctx *ctx, const mpl_residency_job *job,
                                   const mpl_record *row, const char *path)
{
    mpl_status st = MPL_OK;
    char *fields = NULL;

    MPL_TRY(mpl_record_write(ctx, row, &fields));
    MPL_TRY(mpl_job_add_members(ctx, &job->made.job, &fields));
    MPL_TRY(mpl_residency_write(ctx, path, job->found.p, job->found.plan, fields));
out:
    mpl_free(ctx, fields);
    return st;
}

void mpl_residency_job_fini(mpl_ctx *ctx, mpl_residency_job *job)
{
    mpl_residency_problem_free(ctx, job->found.p);
    mpl_residency_plan_free(ctx, job->found.plan);
    mpl_free(ctx, job->found.of_buffer);
    mpl_plan_free(ctx, job->plan);
    mpl_made_fini(ctx, &job->made);
}

/* ---- running ---- */

mpl_status mpl_residency_job_run(mpl_ctx *ctx, mpl_options *options, mpl_residency_job *job)
{
    mpl_made *made = &job->made;
    const mpl_executed *executed;

    MPL_PASS(spread(ctx, job));
    MPL_PASS(mpl_new(ctx, made->executed, 1));
    made->job.residency = &job->found;
    MPL_PASS(mpl_execute(ctx, options, &made->job, job->plan, made->executed));
    executed = made->executed;
    mpl_executed_fields(ctx, executed, made->row);
    MPL_PASS(mpl_executed_judge(ctx, made->job.text, executed));
    if (executed->error != 0)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "%.200s: outputs are not the bits of the run that shares nothing",
                         made->job.text);
    if (executed->measured.facts.moved_bytes != job->found.plan->moved_bytes)
        return MPL_ERROR(ctx, MPL_EINVALID, "%.200s: %" PRIu64 " bytes moved, planned are %" PRIu64,
                         made->job.text, executed->measured.facts.moved_bytes,
                         job->found.plan->moved_bytes);
    return MPL_OK;
}

/* ---- what is printed ---- */

static void print_stall(const mpl_residency_job *job)
{
    const mpl_residency_plan *plan = job->found.plan;
    char gap[32];

    printf("stall     %12" PRIu64 " ns     beside %" PRIu64 " ns of steps, by %s; bound %" PRIu64
           " by %s, gap %s\n",
           plan->stall_ns, all_steps(job->found.p),
           mpl_record_get_text(job->made.row, MPL_FIELD_op_times) != NULL ? "measured times"
                                                                          : "estimate",
           plan->stall_bound, plan->stall_searched ? "search" : "prices",
           mpl_gap_text(plan->stall_ns, plan->stall_bound, gap));
    printf("rules     %12" PRIu64 " ns     furthest next use; %" PRIu64 " ns by density\n",
           job->furthest_ns, job->density_ns);
}

void mpl_residency_job_print(const mpl_residency_job *job)
{
    const mpl_residency_problem *p = job->found.p;
    const mpl_residency_plan *plan = job->found.plan;
    const mpl_executed *executed = job->made.executed;
    int64_t median = 0;
    char gap[32];

    printf("graph     %s: %" PRIu32 " buffers, %" PRIu32 " steps, serial\n",
           mpl_shown(job->made.job.text), p->n, p->n_steps);
    printf("without   %12" PRIu64 " bytes  %14s  in one memory\n", job->without_bytes,
           mpl_sized(job->without_bytes).text);
    printf("fast      %12" PRIu64 " bytes  %14s  of %s, verified\n", plan->fast_bytes,
           mpl_sized(plan->fast_bytes).text, mpl_sized(p->capacity).text);
    printf("slow      %12" PRIu64 " bytes  %14s\n", plan->slow_arena,
           mpl_sized(plan->slow_arena).text);
    printf("moved     %12" PRIu64 " bytes  %14s  in %" PRIu32 " moves\n", plan->moved_bytes,
           mpl_sized(plan->moved_bytes).text, plan->n_moves);
    if (p->slow_price > 0)
        printf("used      %12" PRIu64 " bytes  %14s  in slow memory, at %" PRIu64 " a byte\n",
               plan->slow_bytes, mpl_sized(plan->slow_bytes).text, p->slow_price);
    printf("cost      %12" PRIu64 "  bound %" PRIu64 " by %s, gap %s\n", plan->cost, plan->bound,
           mpl_residency_proof(plan), mpl_gap_text(plan->cost, plan->bound, gap));
    printf("rules     %12" PRIu64 "  furthest next use; %" PRIu64 " by density\n",
           job->furthest_cost, job->density_cost);
    if (p->bandwidth > 0)
        print_stall(job);
    if (executed == NULL)
        return;
    (void)mpl_record_median(job->made.row, MPL_FIELD_run_ns, &median);
    printf("executed  on %s: outputs %s to the run that shares nothing, %" PRIu64
           " bytes moved, %.3f ms\n",
           job->made.job.backend->name, mpl_outputs_word(executed->error),
           executed->measured.facts.moved_bytes, (double)median / 1e6);
}

mpl_status mpl_residency_certify(mpl_ctx *ctx, mpl_options *options, const char *path)
{
    mpl_status st = MPL_OK, judged;
    mpl_residency_job job = {0};
    char *fields = NULL, message[sizeof ctx->message];

    MPL_TRY(mpl_residency_read(ctx, path, &job.found.p, &job.found.plan, &fields));
    MPL_TRY(mpl_record_read(ctx, path, fields, strlen(fields), &job.made.row));
    judged = mpl_verify_residency(ctx, job.found.p, job.found.plan);
    memcpy(message, ctx->message, sizeof message);
    if (options->json) {
        if (judged != MPL_OK)
            mpl_row_fail(job.made.row, mpl_row_status(judged), message);
        MPL_TRY(mpl_record_write(ctx, job.made.row, &options->result));
    } else if (judged == MPL_OK && !options->quiet) {
        const mpl_residency_plan *plan = job.found.plan;

        printf("%s: certified: every operand is whole where it is used, %" PRIu64
               " bytes move; a cost of %" PRIu64 ", %s %" PRIu64 "\n",
               mpl_shown(path), plan->moved_bytes, plan->cost,
               plan->searched ? "by a search that the file does not hold at least"
                              : "by the prices of its steps at least",
               plan->bound);
    }
    if (judged != MPL_OK)
        MPL_FAIL(ctx, judged, "%.100s: %.400s", path, message);
out:
    mpl_free(ctx, fields);
    mpl_residency_job_fini(ctx, &job);
    return st;
}
