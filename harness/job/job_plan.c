/* job_plan.c -- plans a job's problem, in its order and the given one, and verifies. See job.h. */
#include "harness/job/job.h"
#include "planners/verify/certify.h"

enum { TIMED = 5 }; /* repetitions of a quick plan, for its time */
static const int64_t QUICK_NS = 20000000;

static mpl_status verify(mpl_ctx *ctx, const mpl_job *job, mpl_plan *plan)
{
    return mpl_verify_all(ctx, job->source.graph, job->map, job->problem, plan);
}

/* Whether the plan's claim and bound are proved by its certificate or the problem. */
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
    bool proved;

    MPL_PASS(verify(ctx, job, plan));
    MPL_PASS(is_proved(ctx, job, plan, &proved));
    if (proved)
        return MPL_OK;
    plan->claim = MPL_FEASIBLE;
    plan->bound_bytes = 0;
    plan->spread.cost_bound = 0;
    return mpl_plan_bound(ctx, job->problem, plan);
}

/* Calls the planner once under the options; the row records a failure. */
static mpl_status plan_once(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                            const mpl_planner_spec *spec, mpl_record *row, mpl_run *run,
                            mpl_plan **plan)
{
    mpl_status st = MPL_OK;

    mpl_asked_run(ctx, options, &spec->params, run);
    MPL_TRY(mpl_parse_percent(ctx, "--gap", options->gap, &run->gap_parts));
    st = mpl_planner_run(spec->planner, run, job->problem, plan);
    if (st != MPL_OK)
        mpl_row_fail(row, run->failure != NULL ? run->failure : mpl_row_status(st), ctx->message);
out:
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

/* Fails if more bytes than the capacity are alive at once. */
static mpl_status check_bound(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job)
{
    if (options->given[MPL_OPT_capacity] && job->bound_bytes > options->capacity)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "%s cannot fit: %" PRIu64 " bytes are live at step %" PRIu32
                         ", the capacity is %" PRIu64,
                         job->text, job->bound_bytes, job->peak_step, options->capacity);
    return MPL_OK;
}

/* Whether the search ended because the plan came within --gap of the bound. */
static bool within_gap(const mpl_run *run, const mpl_job *job, const mpl_plan *plan)
{
    uint64_t bound = mpl_max_u64(plan->bound_bytes, job->bound_bytes);

    return run->gap_parts > 0 && run->planner->params != NULL &&
           strstr(run->planner->params, "minimise") != NULL && plan->spread.n == 0 &&
           plan->peak_bytes > bound && plan->peak_bytes <= mpl_run_enough(run, bound);
}

/* Plans the job's problem in its one order. */
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
                 plan->refutation.steps != NULL ? "" : mpl_proof_absence(plan));
    }
    MPL_TRY(verify(ctx, job, plan));
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

/* The value that plans are compared by: the arena's size, or the cost of its memories. */
static uint64_t worth(const mpl_plan *plan)
{
    return plan->spread.n > 0 ? plan->spread.cost : plan->peak_bytes;
}

/* Whether no plan of the given order can be better than this one. */
static bool is_settled(const mpl_job *given, const mpl_job *job, const mpl_plan *plan)
{
    return mpl_problem_hash(given->problem) == mpl_problem_hash(job->problem) ||
           (plan->spread.n == 0 && plan->peak_bytes <= given->bound_bytes);
}

/* Adds the time of a discarded plan to the time of ordering. */
static void add_order_time(const mpl_record *other, mpl_record *row)
{
    uint64_t other_ns, ns = 0;

    if (!mpl_record_get_int(other, MPL_FIELD_plan_ns, &other_ns))
        return;
    mpl_record_get_int(row, MPL_FIELD_order_ns, &ns);
    mpl_record_int(row, MPL_FIELD_order_ns, ns + other_ns);
}

/* Plans the given order and keeps that plan if it is better; `planned`: status of planning the
 * searched order. */
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
    mpl_row_problem(job->given, spec, *own);
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
    mpl_record *own = NULL; /* of the given order */

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

mpl_status mpl_job_plan_best(mpl_ctx *ctx, const mpl_options *options, mpl_job *job,
                             const mpl_planner_spec *spec, mpl_record **row, mpl_plan **plan)
{
    const mpl_job *kept;
    mpl_status st = mpl_job_plan(ctx, options, job, spec, row, plan, &kept);

    if (st == MPL_OK && kept != job)
        mpl_job_take_given(job);
    return st;
}
