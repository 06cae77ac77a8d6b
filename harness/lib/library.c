/* library.c -- contexts, settings and plans of the library. See memplan.h. */
#include "harness/lib/library_priv.h"

#include <stdlib.h>

#include "harness/cli/version.h"
#include "planners/plan/plan_bindings.h"
#include "planners/plan/plan_choices.h"
#include "planners/search/joint.h"
#include "planners/verify/verify.h"

_Static_assert((int)MEMPLAN_EMEM == (int)MPL_EMEM && (int)MEMPLAN_EINPUT == (int)MPL_EINPUT &&
                   (int)MEMPLAN_ELIMIT == (int)MPL_ELIMIT &&
                   (int)MEMPLAN_EINVALID == (int)MPL_EINVALID &&
                   (int)MEMPLAN_EUNAVAIL == (int)MPL_EUNAVAIL,
               "statuses are handed through");

const char *memplan_version(void)
{
    return mpl_this_build.version;
}

memplan_ctx *memplan_ctx_new(void)
{
    memplan_ctx *ctx = calloc(1, sizeof *ctx);

    if (ctx == NULL)
        return NULL;
    ctx->ctx = mpl_ctx_default();
    mpl_options_init(&ctx->set);
    return ctx;
}

static void forget_dims(memplan_ctx *ctx)
{
    for (uint32_t i = 0; i < ctx->set.dim.n; i++)
        mpl_free(&ctx->ctx, (char *)(uintptr_t)ctx->set.dim.item[i]);
}

void memplan_ctx_free(memplan_ctx *ctx)
{
    if (ctx == NULL)
        return;
    forget_dims(ctx);
    mpl_options_fini(&ctx->ctx, &ctx->set);
    mpl_assert(ctx->ctx.n_live == 0);
    free(ctx);
}

const char *memplan_message(const memplan_ctx *ctx)
{
    return ctx->ctx.message;
}

void memplan_fail_allocation(memplan_ctx *ctx, int64_t k)
{
    ctx->ctx.fail_after = k < 0 ? -1 : ctx->ctx.n_allocs + k;
}

int64_t memplan_live_allocations(const memplan_ctx *ctx)
{
    return ctx->ctx.n_live;
}

/* ---- settings ---- */

/* Options that are also settings. */
static const mpl_option_id settings[] = {
    MPL_OPT_safety,     MPL_OPT_order,   MPL_OPT_in_place, MPL_OPT_views,
    MPL_OPT_pin,        MPL_OPT_pools,   MPL_OPT_capacity, MPL_OPT_budget,
    MPL_OPT_time_limit, MPL_OPT_threads, MPL_OPT_seed,     MPL_OPT_dim,
};

/* The setting with that name; MPL_N_OPTIONS: none. */
static mpl_option_id setting_named(const char *name)
{
    char text[MPL_OPTION_TEXT];

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (strcmp(mpl_option_name(settings[i], text), name) == 0)
            return settings[i];
    return MPL_N_OPTIONS;
}

static mpl_status add_dim(memplan_ctx *ctx, const char *text)
{
    mpl_status st = MPL_OK;
    char *copy = NULL;
    size_t name_bytes;
    uint64_t value;

    MPL_TRY(mpl_parse_dim(&ctx->ctx, text, &name_bytes, &value));
    MPL_TRY(mpl_copy_text(&ctx->ctx, copy, text));
    MPL_TRY(mpl_strings_add(&ctx->ctx, &ctx->set.dim, copy));
    copy = NULL;
out:
    mpl_free(&ctx->ctx, copy);
    return st;
}

/* Changes any setting but dim. Rejects values that only the command line takes, and 0 for none. */
static mpl_status change(memplan_ctx *ctx, const char *name, const char *value, mpl_options *set)
{
    const mpl_order_kind *order;

    MPL_PASS(mpl_options_default(&ctx->ctx, MPL_CMD_plan, name, value, set));
    if ((order = mpl_any_order_find(set->order)) == NULL)
        return MPL_REFUSE(&ctx->ctx, "order: there is no '%.100s'", value);
    set->order = order->name; /* outlives the text */
    if (set->given[MPL_OPT_threads] && (set->threads < 1 || set->threads > 1024))
        return MPL_REFUSE(&ctx->ctx, "threads: '%.100s' is not from 1 to 1024", value);
    if (set->given[MPL_OPT_time_limit] && set->time_limit <= 0)
        return MPL_REFUSE(&ctx->ctx, "time-limit: '%.100s' is no number above 0", value);
    return MPL_OK;
}

memplan_status memplan_set(memplan_ctx *ctx, const char *name, const char *value)
{
    mpl_status st = MPL_OK;
    mpl_options set = ctx->set;
    mpl_option_id id = setting_named(name);

    if (id == MPL_N_OPTIONS)
        MPL_FAIL(&ctx->ctx, MPL_EINPUT, "there is no setting '%.100s'", name);
    if (value == NULL) {
        if (id == MPL_OPT_dim)
            forget_dims(ctx);
        mpl_options_reset(&ctx->ctx, id, &ctx->set);
    } else if (id == MPL_OPT_dim) {
        MPL_TRY(add_dim(ctx, value));
    } else {
        set.given[id] = false; /* so that it may be changed again */
        MPL_TRY(change(ctx, name, value, &set));
        ctx->set = set;
    }
out:
    return (memplan_status)st;
}

/* ---- plans ---- */

/* "P:key=value,..". */
static mpl_status find_planner(mpl_ctx *ctx, const char *text, const mpl_planner **planner,
                               mpl_params *params)
{
    const char *colon = strchr(text, ':');
    char name[100];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
    if ((*planner = mpl_planner_find(name)) == NULL)
        return MPL_REFUSE(ctx, "there is no planner '%s'", name);
    return mpl_params_parse(ctx, name, (*planner)->params, colon != NULL ? colon + 1 : NULL,
                            params);
}

static mpl_status verify(mpl_ctx *ctx, const memplan_task *task, mpl_plan *plan)
{
    return mpl_verify_all(ctx, task->graph, task->map, task->problem, plan);
}

static mpl_status new_plan(memplan_task *task, const char *planner, mpl_plan **from,
                           memplan_plan **out)
{
    mpl_ctx *ctx = &task->owner->ctx;
    mpl_status st = MPL_OK;
    memplan_plan *plan = NULL;

    MPL_TRY(mpl_new(ctx, plan, 1));
    plan->task = task;
    if (planner != NULL)
        MPL_TRY(mpl_copy_text(ctx, plan->planner, planner));
    plan->plan = *from, *from = NULL;
    *out = plan, plan = NULL;
out:
    mpl_free(ctx, plan);
    return st;
}

memplan_status memplan_run(memplan_task *task, const char *planner, memplan_plan **out)
{
    mpl_ctx *ctx = &task->owner->ctx;
    mpl_status st = MPL_OK;
    const mpl_planner *used;
    mpl_params params = {0};
    mpl_plan *plan = NULL;
    mpl_run run;

    planner = planner != NULL ? planner : "portfolio";
    MPL_TRY((mpl_status)memplan_check(task));
    MPL_TRY(find_planner(ctx, planner, &used, &params));
    mpl_asked_run(ctx, &task->owner->set, &params, &run);
    MPL_TRY(mpl_planner_run(used, &run, task->problem, &plan));
    if (plan->claim == MPL_INFEASIBLE)
        MPL_FAIL(ctx, MPL_EINVALID, "planner %s: proved: no plan fits in %" PRIu64 " bytes",
                 used->name, task->problem->pool_capacity[0]);
    if (plan->claim == MPL_UNKNOWN)
        MPL_FAIL(ctx, MPL_ELIMIT, "planner %s: the budget ended before there was a plan",
                 used->name);
    MPL_TRY(verify(ctx, task, plan));
    MPL_TRY(new_plan(task, planner, &plan, out));
out:
    mpl_plan_free(ctx, plan);
    mpl_params_fini(ctx, &params);
    return (memplan_status)st;
}

memplan_status memplan_verify(memplan_task *task, const uint64_t *offset, memplan_plan **out)
{
    mpl_ctx *ctx = &task->owner->ctx;
    mpl_status st = MPL_OK;
    mpl_plan *plan = NULL;

    MPL_TRY((mpl_status)memplan_check(task));
    MPL_TRY(mpl_plan_new(ctx, task->problem, &plan));
    memcpy(plan->offset, offset, task->problem->n * sizeof *offset);
    plan->claim = MPL_FEASIBLE;
    MPL_TRY(verify(ctx, task, plan));
    MPL_TRY(mpl_plan_bound(ctx, task->problem, plan));
    MPL_TRY(new_plan(task, NULL, &plan, out));
out:
    mpl_plan_free(ctx, plan);
    return (memplan_status)st;
}

memplan_status memplan_read(memplan_ctx *owner, const char *path, memplan_task **task,
                            memplan_plan **plan)
{
    mpl_ctx *ctx = &owner->ctx;
    mpl_status st = MPL_OK;
    mpl_plan_file file = {0};
    memplan_task *t = NULL;

    MPL_TRY(mpl_plan_read(ctx, path, &file));
    MPL_TRY(mpl_verify(ctx, file.problem, file.plan));
    MPL_TRY(mpl_plan_bound(ctx, file.problem, file.plan));
    MPL_TRY(mpl_new(ctx, t, 1));
    t->owner = owner;
    t->complete = true;
    mpl_options_init(&t->set);
    t->problem = file.problem, file.problem = NULL;
    MPL_TRY(new_plan(t, NULL, &file.plan, plan));
    *task = t, t = NULL;
out:
    memplan_task_free(t);
    mpl_plan_file_fini(ctx, &file);
    return (memplan_status)st;
}

/* Writes the fields that a reader of the plan file asks for: the origin of the problem. */
static mpl_status make_fields(mpl_ctx *ctx, const memplan_plan *plan, char **text)
{
    const memplan_task *task = plan->task;
    mpl_status st = MPL_OK;
    mpl_record *row = NULL;
    char hash[17];

    MPL_TRY(mpl_record_new(ctx, &row));
    mpl_record_member_text(row, MPL_FIELD_memplan, "version", mpl_this_build.version);
    mpl_record_member_text(row, MPL_FIELD_memplan, "commit", mpl_this_build.commit);
    mpl_record_text(row, MPL_FIELD_status, "ok");
    mpl_record_text(row, MPL_FIELD_graph, task->text);
    snprintf(hash, sizeof hash, "%016" PRIx64, mpl_problem_hash(task->problem));
    mpl_record_text(row, MPL_FIELD_problem_hash, hash);
    mpl_record_text(row, MPL_FIELD_safety,
                    task->graph != NULL ? task->set.safety.text
                                        : mpl_list_safety(task->problem).text);
    mpl_record_text(row, MPL_FIELD_planner, plan->planner);
    if (task->graph != NULL) {
        mpl_record_text(row, MPL_FIELD_order, task->set.order);
        if (mpl_any_order_find(task->set.order)->search != NULL)
            mpl_record_text(row, MPL_FIELD_order_kept, task->kept_given ? "given" : "searched");
        mpl_record_bool(row, MPL_FIELD_views, task->set.views);
        mpl_record_text(row, MPL_FIELD_concat, task->set.views ? "auto" : "copy");
        mpl_record_text(row, MPL_FIELD_loop, mpl_graph_has_loop(task->graph) ? "view" : NULL);
        mpl_row_words(row, MPL_FIELD_pinned, MPL_OPT_pin, task->set.pin);
        mpl_row_words(row, MPL_FIELD_own_pools, MPL_OPT_pools, task->set.pools);
    }
    if (task->problem->pool_capacity[0] <= INT64_MAX)
        mpl_record_int(row, MPL_FIELD_capacity, task->problem->pool_capacity[0]);
    mpl_record_bool(row, MPL_FIELD_verified, true);
    MPL_TRY(mpl_record_write(ctx, row, text));
out:
    mpl_record_free(ctx, row);
    return st;
}

/* The row's fields, where the values of loops lie, and the streams of operations. */
static mpl_status all_fields(mpl_ctx *ctx, const memplan_plan *plan, char **fields)
{
    const memplan_task *task = plan->task;

    MPL_PASS(make_fields(ctx, plan, fields));
    MPL_PASS(mpl_plan_add_bindings(ctx, task->graph, task->map, fields));
    if (task->map != NULL && task->map->op_stream != NULL)
        MPL_PASS(mpl_plan_add_streams(ctx,
                                      &(mpl_streams){.n_ops = task->graph->n_ops,
                                                     .n = task->set.safety.n_streams,
                                                     .rule = task->set.safety.rule,
                                                     .op_stream = task->map->op_stream},
                                      fields));
    return MPL_OK;
}

memplan_status memplan_write(const memplan_plan *plan, const char *path)
{
    mpl_ctx *ctx = &plan->task->owner->ctx;
    mpl_status st = MPL_OK;
    char *fields = NULL;

    MPL_TRY(all_fields(ctx, plan, &fields));
    MPL_TRY(mpl_plan_write(ctx, path, plan->task->problem, plan->plan, fields));
out:
    mpl_free(ctx, fields);
    return (memplan_status)st;
}

const char *memplan_text(memplan_plan *plan)
{
    mpl_ctx *ctx = &plan->task->owner->ctx;
    mpl_status st = MPL_OK;
    char *fields = NULL;

    if (plan->text != NULL)
        return plan->text;
    MPL_TRY(all_fields(ctx, plan, &fields));
    MPL_TRY(mpl_plan_text(ctx, plan->task->problem, plan->plan, fields, &plan->text));
out:
    mpl_free(ctx, fields);
    return st == MPL_OK ? plan->text : NULL;
}

void memplan_plan_free(memplan_plan *plan)
{
    mpl_ctx *ctx = plan != NULL ? &plan->task->owner->ctx : NULL;

    if (plan == NULL)
        return;
    mpl_plan_free(ctx, plan->plan);
    mpl_free_each(ctx, plan->planner, plan->text, plan);
}

uint64_t memplan_offset(const memplan_plan *plan, uint32_t buffer)
{
    return buffer < plan->plan->n ? plan->plan->offset[buffer] : MEMPLAN_NO_OFFSET;
}

void memplan_offsets(const memplan_plan *plan, uint64_t *offset)
{
    memcpy(offset, plan->plan->offset, plan->plan->n * sizeof *offset);
}

uint64_t memplan_peak_bytes(const memplan_plan *plan)
{
    return plan->plan->peak_bytes;
}

uint64_t memplan_bound_bytes(const memplan_plan *plan)
{
    return plan->plan->bound_bytes;
}

memplan_claim memplan_claim_of(const memplan_plan *plan)
{
    return plan->plan->claim == MPL_OPTIMAL ? MEMPLAN_IS_OPTIMAL : MEMPLAN_IS_FEASIBLE;
}

const char *memplan_planner_name(uint32_t i)
{
    uint32_t n = 0;

    while (mpl_planners[n] != NULL && n < i)
        n++;
    return mpl_planners[n] != NULL ? mpl_planners[n]->name : NULL;
}
