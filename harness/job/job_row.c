/* job_row.c -- planning a job, and what a row says of it. See job.h. */
#include "harness/job/job.h"

#include <stdlib.h>

#include "harness/foreign/foreign.h"
#include "harness/job/measure.h"
#include "harness/cli/version.h"
#include "planners/verify/certify.h"
#include "planners/verify/verify.h"

enum { TIMED = 5 }; /* plans timed where one is quick */
static const int64_t QUICK_NS = 20000000;

static void put_build(mpl_record *row)
{
    const mpl_build *b = &mpl_this_build;

    mpl_record_null(row, MPL_FIELD_memplan);
    mpl_record_member_text(row, MPL_FIELD_memplan, "version", b->version);
    mpl_record_member_text(row, MPL_FIELD_memplan, "commit", b->commit);
    mpl_record_member_bool(row, MPL_FIELD_memplan, "dirty", b->dirty);
    mpl_record_member_text(row, MPL_FIELD_memplan, "compiler", b->compiler);
    mpl_record_member_text(row, MPL_FIELD_memplan, "flags", b->flags);
}

static void put_machine(const mpl_machine *m, mpl_record *row)
{
    mpl_record_null(row, MPL_FIELD_machine);
    mpl_record_member_text(row, MPL_FIELD_machine, "host", m->host);
    mpl_record_member_text(row, MPL_FIELD_machine, "cpu", m->cpu);
    mpl_record_member_text(row, MPL_FIELD_machine, "isa", m->isa);
    mpl_record_member_text(row, MPL_FIELD_machine, "os", m->os);
    mpl_record_member_int(row, MPL_FIELD_machine, "cores", m->n_cores);
    mpl_record_member_int(row, MPL_FIELD_machine, "threads", m->n_threads);
    mpl_record_member_int(row, MPL_FIELD_machine, "numa_nodes", m->n_nodes);
    mpl_record_member_int(row, MPL_FIELD_machine, "memory_bytes", m->memory_bytes);
    mpl_record_member_int(row, MPL_FIELD_machine, "page_bytes", m->page_bytes);
}

/* "weights,inputs" as an array; none of "none". */
static void put_names(mpl_record *row, mpl_field field, const char *text)
{
    char name[64];

    for (const char *at = text; strcmp(text, "none") != 0 && *at != '\0';) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        mpl_record_item_text(row, field, name);
        at += strcspn(at, ",");
        at += *at == ',';
    }
}

static void put_recomputed(const mpl_options *o, const mpl_job *job, mpl_record *row)
{
    const mpl_recompute_found *f = &job->recomputed;

    if (job->recompute_ns == 0)
        return;
    mpl_record_text(row, MPL_FIELD_recompute, o->recompute);
    mpl_record_int(row, MPL_FIELD_recompute_before_bytes, f->before_bytes);
    mpl_record_int(row, MPL_FIELD_recompute_ops, f->facts.n_again);
    mpl_record_int(row, MPL_FIELD_recompute_ticks, f->ticks);
    mpl_record_int(row, MPL_FIELD_recompute_ns, (uint64_t)job->recompute_ns);
    mpl_record_int(row, MPL_FIELD_forward_work, f->facts.forward_work);
    mpl_record_int(row, MPL_FIELD_all_work, f->facts.all_work);
    mpl_record_int(row, MPL_FIELD_extra_work, f->facts.extra_work);
    if (f->has_bound)
        mpl_record_int(row, MPL_FIELD_extra_work_bound, f->bound_work);
    mpl_record_text(row, MPL_FIELD_recompute_claim,
                    f->claim == MPL_RECOMPUTE_OPTIMAL ? "optimal" : "feasible");
}

/* What was asked of the problem. */
static void put_options(const mpl_options *o, const mpl_job *job, mpl_record *row)
{
    const mpl_graph *g = job->source.graph;
    char name[200];

    mpl_record_text(row, MPL_FIELD_safety, job->safety == MPL_SERIAL ? "serial" : "parallel");
    mpl_record_text(row, MPL_FIELD_order, g != NULL ? o->order : NULL);
    if (job->order_found.ns > 0) {
        mpl_record_int(row, MPL_FIELD_order_live_bytes, job->order_found.live_bytes);
        mpl_record_int(row, MPL_FIELD_order_bound_bytes, job->order_found.bound_bytes);
        mpl_record_text(row, MPL_FIELD_order_proof, job->order_found.method);
        mpl_record_text(row, MPL_FIELD_order_scope, mpl_order_scope(job));
        mpl_record_int(row, MPL_FIELD_order_ticks, job->order_found.ticks);
        mpl_record_int(row, MPL_FIELD_order_ns, (uint64_t)job->order_found.ns);
    }
    mpl_record_bool(row, MPL_FIELD_in_place, o->in_place);
    mpl_record_bool(row, MPL_FIELD_views, o->views);
    mpl_record_text(row, MPL_FIELD_concat, g == NULL ? NULL : mpl_job_concat(o));
    mpl_record_text(row, MPL_FIELD_loop, g != NULL && mpl_graph_has_loop(g) ? o->loop : NULL);
    mpl_record_text(row, MPL_FIELD_ssa, job->is_program ? o->ssa : NULL);
    mpl_record_text(row, MPL_FIELD_optimise,
                    g != NULL && strcmp(o->optimise, "none") != 0 ? o->optimise : NULL);
    if (job->twice.n_ops > 0) {
        mpl_record_text(row, MPL_FIELD_changed, o->changed);
        mpl_record_int(row, MPL_FIELD_changed_ops, job->twice.n_again);
        mpl_record_int(row, MPL_FIELD_all_ops, job->twice.n_ops);
        mpl_record_int(row, MPL_FIELD_kept_bytes, job->twice.kept_bytes);
    }
    put_recomputed(o, job, row);
    mpl_record_text(row, MPL_FIELD_layout,
                    g != NULL && strcmp(o->layout, "plain") != 0 ? o->layout : NULL);
    for (uint32_t i = 0; i < o->dim.n; i++) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(o->dim.item[i], "="), o->dim.item[i]);
        mpl_record_member_int(row, MPL_FIELD_dims, name,
                              strtoull(strchr(o->dim.item[i], '=') + 1, NULL, 10));
    }
    for (uint32_t i = 0; g != NULL && i < g->n_bound; i++)
        mpl_record_member_text(row, MPL_FIELD_dims, g->bound_input[i], "bound");
    if (o->given[MPL_OPT_capacity])
        mpl_record_int(row, MPL_FIELD_capacity, o->capacity);
    mpl_record_text(row, MPL_FIELD_gap, o->gap);
    if (o->budget <= INT64_MAX)
        mpl_record_int(row, MPL_FIELD_budget, o->budget);
    if (o->threads > 0)
        mpl_record_int(row, MPL_FIELD_threads, o->threads);
    mpl_record_text(row, MPL_FIELD_workspaces, job->backend != NULL ? o->workspaces : NULL);
    if (job->backend != NULL && strcmp(o->algorithms, "fastest") != 0)
        mpl_record_text(row, MPL_FIELD_algorithms, o->algorithms);
    if (o->compare != NULL)
        mpl_record_text(row, MPL_FIELD_malloc_by, mpl_malloc_by(name, sizeof name));
    if (g != NULL) {
        put_names(row, MPL_FIELD_pinned, o->pin);
        put_names(row, MPL_FIELD_own_pools, o->pools);
    }
}

/* Which problem it is, and how the planner sees it. */
static void put_problem(const mpl_job *job, const mpl_planner_spec *spec, mpl_record *row)
{
    const mpl_problem *p = job->problem;
    char hash[17];

    if (p == NULL)
        return;
    snprintf(hash, sizeof hash, "%016" PRIx64, mpl_problem_hash(p));
    mpl_record_text(row, MPL_FIELD_problem_hash, hash);
    if (spec != NULL && (p->gap_begin != NULL || p->inside != NULL))
        mpl_record_text(row, MPL_FIELD_lifetimes,
                        mpl_planner_sees_hull(spec->planner, p) ? "hull" : "exact");
}

mpl_status mpl_job_row(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                       const mpl_planner_spec *spec, mpl_record **out)
{
    mpl_status st = MPL_OK;
    mpl_record *row = NULL;
    char hash[17];

    MPL_TRY(mpl_record_new(ctx, &row));
    put_build(row);
    if (job->machine.page_bytes > 0)
        put_machine(&job->machine, row);
    mpl_record_text(row, MPL_FIELD_status, "ok");
    mpl_record_text(row, MPL_FIELD_graph, job->text);
    snprintf(hash, sizeof hash, "%016" PRIx64, job->graph_hash);
    if (job->source.graph != NULL || job->source.problem != NULL)
        mpl_record_text(row, MPL_FIELD_graph_hash, hash);
    put_problem(job, spec, row);
    put_options(options, job, row);
    mpl_record_int(row, MPL_FIELD_seed, options->seed);
    if (job->backend != NULL) {
        mpl_record_text(row, MPL_FIELD_backend, job->backend->name);
        mpl_record_text(row, MPL_FIELD_device, job->backend->about);
    }
    if (spec != NULL) {
        mpl_record_text(row, MPL_FIELD_planner, spec->planner->name);
        if (spec->foreign != NULL)
            mpl_record_member_text(row, MPL_FIELD_params, spec->foreign->kind,
                                   spec->foreign->target);
        for (uint32_t i = 0; i < spec->key.n; i++)
            mpl_record_member_text(row, MPL_FIELD_params, spec->key.item[i], spec->value.item[i]);
    }
    *out = row;
out:
    return st;
}

/* Why a claim has no certificate. */
static const char *absence(const mpl_plan *plan)
{
    return plan->refutation.absent != NULL ? plan->refutation.absent : "the planner writes none";
}

static void put_proof(const mpl_plan *plan, mpl_record *row)
{
    char text[100];

    snprintf(text, sizeof text, "none: %s", absence(plan));
    if (plan->refutation.steps != NULL)
        mpl_record_text(row, MPL_FIELD_proof, "refutation");
    else if (plan->n_witness > 0)
        mpl_record_text(row, MPL_FIELD_proof, "clique");
    else if (plan->bound_bytes > 0)
        mpl_record_text(row, MPL_FIELD_proof, text);
    else
        mpl_record_null(row, MPL_FIELD_proof);
}

mpl_status mpl_job_plan_fields(mpl_ctx *ctx, const mpl_job *job, const mpl_plan *plan,
                               mpl_record *row)
{
    mpl_status st = MPL_OK;
    uint64_t packed;
    bool searched = plan->bound_bytes > job->bound_bytes;

    MPL_TRY(mpl_plan_packed(ctx, job->problem, plan, &packed));
    mpl_record_text(row, MPL_FIELD_claim, mpl_claim_name(plan->claim));
    mpl_record_int(row, MPL_FIELD_naive_bytes, job->naive_bytes);
    mpl_record_int(row, MPL_FIELD_planned_bytes, plan->peak_bytes);
    mpl_record_int(row, MPL_FIELD_packed_bytes, packed);
    mpl_record_int(row, MPL_FIELD_bound_bytes, searched ? plan->bound_bytes : job->bound_bytes);
    mpl_record_text(row, MPL_FIELD_bound_kind, searched ? "search" : job->bound_kind);
    put_proof(plan, row);
    mpl_record_null(row, MPL_FIELD_cost);
    mpl_record_null(row, MPL_FIELD_cost_bound);
    mpl_record_null(row, MPL_FIELD_pools);
    if (plan->spread.n > 0) { /* what the memories need together says little, and its bound nothing
                               */
        mpl_record_int(row, MPL_FIELD_cost, plan->spread.cost);
        mpl_record_int(row, MPL_FIELD_cost_bound, plan->spread.cost_bound);
        mpl_record_null(row, MPL_FIELD_bound_bytes);
        mpl_record_null(row, MPL_FIELD_bound_kind);
    }
    for (uint32_t k = 0; k < plan->spread.n; k++) {
        char name[32];

        snprintf(name, sizeof name, "memory %u", k);
        mpl_record_item_bytes(row, MPL_FIELD_pools, name, plan->spread.bytes[k]);
    }
    for (uint32_t k = plan->spread.n > 0 ? 1 : 0; k < plan->n_pools; k++)
        mpl_record_item_bytes(row, MPL_FIELD_pools, job->problem->pool_name[k],
                              plan->pool_bytes[k]);
    mpl_record_bool(row, MPL_FIELD_verified, true);
out:
    return st;
}

/* At most a year: later clocks cannot overflow. */
static int64_t seconds_ns(double seconds)
{
    return (int64_t)((seconds < 3e7 ? seconds : 3e7) * 1e9);
}

mpl_status mpl_job_verify(mpl_ctx *ctx, const mpl_job *job, mpl_plan *plan)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_verify(ctx, job->problem, plan));
    if (job->source.graph != NULL && job->source.graph->n_blocks > 1)
        MPL_TRY(mpl_verify_places(ctx, job->source.graph, job->map, job->problem, plan));
    else if (job->safety == MPL_PARALLEL && job->source.graph != NULL)
        MPL_TRY(mpl_verify_graph(ctx, job->source.graph, job->map, job->problem, plan));
out:
    return st;
}

/* Whether what the plan claims beyond the problem's own bound is proved by what stands beside
 * it. */
static mpl_status is_proved(mpl_ctx *ctx, const mpl_job *job, mpl_plan *plan, bool *proved)
{
    mpl_status st = MPL_OK;
    mpl_certified found = {0};

    st = mpl_certify(ctx, job->problem, plan, &found);
    *proved =
        st == MPL_OK && (plan->claim != MPL_FEASIBLE || plan->bound_bytes <= job->bound_bytes ||
                         found.bound >= plan->bound_bytes);
    if (st == MPL_EINVALID)
        st = MPL_OK;
    return st;
}

mpl_status mpl_job_verify_file(mpl_ctx *ctx, const mpl_job *job, mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    bool proved;

    MPL_TRY(mpl_job_verify(ctx, job, plan));
    MPL_TRY(is_proved(ctx, job, plan, &proved));
    if (proved)
        goto out;
    plan->claim = MPL_FEASIBLE;
    plan->bound_bytes = 0;
    plan->spread.cost_bound = 0;
    MPL_TRY(mpl_plan_bound(ctx, job->problem, plan));
out:
    return st;
}

/* One call of the planner under the options; what fails stands in the row. */
static mpl_status plan_once(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                            const mpl_planner_spec *spec, mpl_record *row, mpl_run *run,
                            mpl_plan **plan)
{
    mpl_status st;

    mpl_run_init(run, ctx);
    run->seed = options->seed;
    run->budget_ticks = options->budget;
    if (options->given[MPL_OPT_time_limit])
        run->deadline_ns = mpl_clock_ns() + seconds_ns(options->time_limit);
    st = mpl_parse_percent(ctx, "--gap", options->gap, &run->gap_parts);
    mpl_assert(st == MPL_OK); /* it was looked at with all options */
    run->n_threads = options->threads > 0 ? (uint32_t)options->threads : 1;
    run->watch = options->watch;
    run->n_params = spec->key.n;
    run->param_key = spec->key.item;
    run->param_value = spec->value.item;
    st = mpl_planner_run(spec->planner, run, job->problem, plan);
    if (st != MPL_OK)
        mpl_row_fail(row, run->failure != NULL ? run->failure : mpl_row_status(st), ctx->message);
    return st;
}

mpl_status mpl_job_plan_again(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                              const mpl_planner_spec *spec, mpl_record *row, int64_t *plan_ns,
                              int64_t *self_ns)
{
    mpl_plan *plan = NULL;
    mpl_run run;
    mpl_status st = plan_once(ctx, options, job, spec, row, &run, &plan);

    *plan_ns = run.plan_ns;
    *self_ns = run.self_ns;
    mpl_plan_free(ctx, plan);
    return st;
}

/* More than the capacity is alive at once. */
static mpl_status check_bound(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job)
{
    mpl_status st = MPL_OK;

    if (options->given[MPL_OPT_capacity] && job->bound_bytes > options->capacity)
        MPL_FAIL(ctx, MPL_EINVALID,
                 "%s cannot fit: %" PRIu64 " bytes are live at step %" PRIu32
                 ", the capacity is %" PRIu64,
                 job->text, job->bound_bytes, job->peak_step, options->capacity);
out:
    return st;
}

/* Whether the search is over because the plan is near enough to the bound, and no nearer. */
static bool within_gap(const mpl_run *run, const mpl_job *job, const mpl_plan *plan)
{
    uint64_t bound = mpl_max_u64(plan->bound_bytes, job->bound_bytes);

    return run->gap_parts > 0 && run->planner->params != NULL &&
           strstr(run->planner->params, "minimise") != NULL && plan->spread.n == 0 &&
           plan->peak_bytes > bound && plan->peak_bytes <= mpl_run_enough(run, bound);
}

/* The job's problem in its one order. */
static mpl_status plan_order(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                             const mpl_planner_spec *spec, mpl_record *row, mpl_plan **out)
{
    mpl_status st = MPL_OK;
    mpl_plan *plan = NULL;
    mpl_run run = {0};
    int64_t ns[TIMED];
    int n = 0;
    bool proves = (spec->planner->traits & (MPL_EXACT | MPL_ROUNDED)) == MPL_EXACT;

    *out = NULL;
    if (!proves)
        MPL_TRY(check_bound(ctx, options, job));
    do {
        mpl_plan_free(ctx, plan);
        plan = NULL;
        MPL_TRY(plan_once(ctx, options, job, spec, row, &run, &plan));
        ns[n++] = run.plan_ns;
    } while (n < TIMED && run.plan_ns < QUICK_NS);
    if (plan->claim == MPL_INFEASIBLE) {
        *out = plan;
        MPL_TRY(check_bound(ctx, options, job));
        MPL_FAIL(ctx, MPL_EINVALID,
                 "%s cannot fit: planner %s refuted every plan within the capacity, %s%s",
                 job->text, spec->planner->name,
                 plan->refutation.steps != NULL ? "with a certificate" : "without a certificate: ",
                 plan->refutation.steps != NULL ? "" : absence(plan));
    }
    MPL_TRY(mpl_job_verify(ctx, job, plan));
    mpl_sort_i64(ns, (size_t)n);
    mpl_record_int(row, MPL_FIELD_plan_ns, (uint64_t)ns[n / 2]);
    if (run.self_ns > 0)
        mpl_record_ints(row, MPL_FIELD_self_ns, 1, &run.self_ns);
    mpl_record_int(row, MPL_FIELD_ticks, run.ticks);
    mpl_record_text(row, MPL_FIELD_stopped,
                    run.solver_gave_up              ? "solver"
                    : run.stopped_by_clock          ? "clock"
                    : run.ticks >= run.budget_ticks ? "ticks"
                    : within_gap(&run, job, plan)   ? "gap"
                                                    : "done");
    MPL_TRY(mpl_job_plan_fields(ctx, job, plan, row));
    if ((spec->planner->traits & MPL_ROUNDED) != 0 && plan->bound_bytes > job->bound_bytes)
        mpl_record_text(row, MPL_FIELD_bound_kind, "ilp");
    *out = plan;
out:
    if (st != MPL_OK && run.failure == NULL)
        mpl_row_fail(row, mpl_row_status(st), ctx->message);
    if (*out != plan)
        mpl_plan_free(ctx, plan);
    return st;
}

/* What makes one plan better than another: the arena, or the cost of its memories. */
static uint64_t worth(const mpl_plan *plan)
{
    return plan->spread.n > 0 ? plan->spread.cost : plan->peak_bytes;
}

/* No plan of the order given can be better than this one. */
static bool is_settled(const mpl_job *given, const mpl_job *job, const mpl_plan *plan)
{
    return mpl_problem_hash(given->problem) == mpl_problem_hash(job->problem) ||
           (plan->spread.n == 0 && plan->peak_bytes <= given->bound_bytes);
}

/* Time that went into a plan that is not kept was spent on the choice of the order. */
static void add_order_time(const mpl_record *other, mpl_record *row)
{
    uint64_t other_ns, ns = 0;

    if (!mpl_record_get_int(other, MPL_FIELD_plan_ns, &other_ns))
        return;
    mpl_record_get_int(row, MPL_FIELD_order_ns, &ns);
    mpl_record_int(row, MPL_FIELD_order_ns, ns + other_ns);
}

/* Plans the order given, and keeps that plan if it is better; `planned`: how it went in the order
 * that was searched for. */
static mpl_status plan_given(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                             const mpl_planner_spec *spec, mpl_status planned, mpl_record **own,
                             mpl_record **row, mpl_plan **plan, const mpl_job **kept)
{
    mpl_status st;
    mpl_plan *other = NULL, *searched = *plan;
    mpl_record *searched_row = *row;
    char message[sizeof ctx->message];
    bool better;

    memcpy(message, ctx->message, sizeof message);
    put_problem(job->given, spec, *own);
    st = plan_order(ctx, options, job->given, spec, *own, &other);
    better = st == MPL_OK && (planned != MPL_OK || worth(other) < worth(*plan));
    if (better) {
        *row = *own, *own = searched_row;
        *plan = other, other = searched;
        *kept = job->given;
    } else {
        memcpy(ctx->message, message, sizeof message);
        st = planned;
    }
    mpl_record_text(*row, MPL_FIELD_order_kept, better ? "given" : "searched");
    if (other != NULL && other->claim != MPL_INFEASIBLE)
        mpl_record_int(*row, MPL_FIELD_order_other_bytes, other->peak_bytes);
    add_order_time(*own, *row);
    mpl_plan_free(ctx, other);
    return st;
}

mpl_status mpl_job_plan(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                        const mpl_planner_spec *spec, mpl_record **row, mpl_plan **plan,
                        const mpl_job **kept)
{
    mpl_status st = MPL_OK;
    mpl_record *own = NULL; /* of the order given */

    *kept = job;
    if (job->given == NULL)
        return plan_order(ctx, options, job, spec, *row, plan);
    MPL_TRY(mpl_record_copy(ctx, *row, &own));
    st = plan_order(ctx, options, job, spec, *row, plan);
    if (st == MPL_OK && is_settled(job->given, job, *plan))
        mpl_record_text(*row, MPL_FIELD_order_kept, "searched");
    else
        st = plan_given(ctx, options, job, spec, st, &own, row, plan, kept);
out:
    mpl_record_free(ctx, own);
    return st;
}

const char *mpl_row_status(mpl_status st)
{
    static const char *const status[] = {"ok",      "crash",   "garbage",
                                         "timeout", "refused", "unavailable"};

    return status[st];
}

void mpl_row_fail(mpl_record *row, const char *status, const char *reason)
{
    static const mpl_field results[] = {
        MPL_FIELD_claim,           MPL_FIELD_naive_bytes,
        MPL_FIELD_planned_bytes,   MPL_FIELD_packed_bytes,
        MPL_FIELD_bound_bytes,     MPL_FIELD_bound_kind,
        MPL_FIELD_proof,           MPL_FIELD_cost,
        MPL_FIELD_cost_bound,      MPL_FIELD_pools,
        MPL_FIELD_verified,        MPL_FIELD_run_ns,
        MPL_FIELD_measured_bytes,  MPL_FIELD_rss_bytes,
        MPL_FIELD_holds,           MPL_FIELD_copied_bytes,
        MPL_FIELD_kernels,         MPL_FIELD_workspace_bytes,
        MPL_FIELD_reordered_bytes, MPL_FIELD_loop_carry_bytes,
        MPL_FIELD_plan_each_ns,    MPL_FIELD_self_ns,
        MPL_FIELD_replay_ns,       MPL_FIELD_device_memory,
        MPL_FIELD_clocks,          MPL_FIELD_implementations,
        MPL_FIELD_allocators,      MPL_FIELD_malloc_ns,
        MPL_FIELD_malloc_bytes,    MPL_FIELD_executed,
    };

    mpl_record_text(row, MPL_FIELD_status, status);
    mpl_record_text(row, MPL_FIELD_reason, reason);
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        mpl_record_null(row, results[i]);
}

mpl_status mpl_job_plan_by_options(mpl_ctx *ctx, mpl_options *options, const char *graph,
                                   mpl_job *job, mpl_record **row, mpl_plan **plan)
{
    mpl_status st = MPL_OK;
    const mpl_backend *backend;
    uint64_t *workspaces = NULL;
    mpl_planner_spec spec = {0};
    mpl_plan_file file = {0};
    const mpl_job *kept;

    if (options->planner != NULL && options->plan != NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "one of --planner P and --plan FILE is needed, not both");
    if (options->plan != NULL) {
        MPL_TRY(mpl_job_open_plan(ctx, options, graph, options->plan, &file, row, job));
        MPL_TRY(mpl_job_verify_file(ctx, job, file.plan));
        MPL_TRY(mpl_job_plan_fields(ctx, job, file.plan, *row));
        put_build(*row);
        put_machine(&job->machine, *row);
        *plan = file.plan, file.plan = NULL;
        goto out;
    }
    MPL_TRY(mpl_planner_spec_parse(ctx, options->planner != NULL ? options->planner : "portfolio",
                                   &spec));
    MPL_TRY(mpl_backend_by_option(ctx, options->backend, &backend));
    MPL_TRY(mpl_job_open(ctx, options, graph, job));
    MPL_TRY(mpl_job_ask_workspaces(ctx, options, backend, job, &workspaces));
    MPL_TRY(mpl_job_problem(ctx, options, backend, workspaces, job));
    MPL_TRY(mpl_job_row(ctx, options, job, &spec, row));
    MPL_TRY(mpl_job_plan(ctx, options, job, &spec, row, plan, &kept));
    if (kept != job)
        mpl_job_take_given(job);
out:
    mpl_plan_file_fini(ctx, &file);
    mpl_planner_spec_fini(ctx, &spec);
    mpl_free(ctx, workspaces);
    return st;
}
