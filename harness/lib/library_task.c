/* library_task.c -- tasks of the library: loaded, or built one buffer at a time. See memplan.h. */
#include "harness/lib/library_priv.h"

#include <stdlib.h>

#include "graphs/problem/before.h"
#include "planners/search/concat.h"
#include "planners/search/joint.h"

/* ---- loaded ---- */

extern const mpl_planner mpl_planner_portfolio;

enum { JUDGE_TICKS = 20000000 }; /* of the plans that choose between orders */

/* options: but for the safety. */
static mpl_status order_problem(mpl_ctx *ctx, const mpl_graph *g, const mpl_order_kind *kind,
                                const mpl_safety *safety, mpl_problem_options options,
                                mpl_problem **problem, mpl_value_map **map)
{
    mpl_status st = MPL_OK;
    mpl_order_run run = mpl_order_run_default(ctx);
    mpl_concat_found concats;
    mpl_op *order = NULL;
    uint8_t *shared = NULL;
    mpl_streams *streams = NULL;

    run.options = &options;
    options.parallel = safety->kind == MPL_safety_parallel;
    MPL_TRY(mpl_new(ctx, order, g->n_ops));
    MPL_TRY(mpl_order_make(&run, kind, g, order));
    if (safety->kind == MPL_safety_streams) {
        MPL_TRY(mpl_streams_new(ctx, g, order, safety->n_streams, safety->rule, NULL, &streams));
        mpl_streams_ask(streams, &options);
    }
    MPL_TRY(mpl_new(ctx, shared, g->n_ops));
    MPL_TRY(mpl_concat_decide(ctx, g, order, &options, shared, &concats));
    options.concat_shared = shared;
    MPL_TRY(mpl_problem_from_graph(ctx, g, order, &options, problem, map));
out:
    mpl_free_each(ctx, order, shared);
    mpl_streams_free(ctx, streams);
    return st;
}

static mpl_status judge(mpl_ctx *ctx, const mpl_problem *p, uint64_t *bytes)
{
    mpl_plan *plan = NULL;
    mpl_status st;
    mpl_run run = mpl_run_default(ctx);

    run.budget_ticks = JUDGE_TICKS;
    st = mpl_planner_run(&mpl_planner_portfolio, &run, p, &plan);
    *bytes = st == MPL_OK && plan->claim != MPL_INFEASIBLE ? plan->pool_bytes[0] : UINT64_MAX;
    mpl_plan_free(ctx, plan);
    return st == MPL_EMEM ? st : MPL_OK;
}

/* Chooses between the searched and the given order. The search assumes that concats copy, so the
 * given order may have the lower plan. Then it is kept. */
static mpl_status keep_better(mpl_ctx *ctx, mpl_problem_options options, memplan_task *task)
{
    mpl_status st = MPL_OK;
    mpl_problem *given = NULL;
    mpl_value_map *map = NULL;
    uint64_t searched_bytes, given_bytes;

    MPL_TRY(order_problem(ctx, task->graph, mpl_order_find("given"), &task->set.safety, options,
                          &given, &map));
    MPL_TRY(judge(ctx, task->problem, &searched_bytes));
    MPL_TRY(judge(ctx, given, &given_bytes));
    if (given_bytes < searched_bytes) {
        mpl_problem *problem = task->problem;
        mpl_value_map *of = task->map;

        task->problem = given, given = problem;
        task->map = map, map = of;
        task->kept_given = true;
    }
out:
    mpl_problem_free(ctx, given);
    mpl_value_map_free(ctx, map);
    return st;
}

static mpl_status graph_problem(mpl_ctx *ctx, const mpl_options *set, memplan_task *task)
{
    mpl_problem_options options = mpl_asked_problem(set);
    const mpl_order_kind *order = mpl_any_order_find(set->order);

    MPL_PASS(
        order_problem(ctx, task->graph, order, &set->safety, options, &task->problem, &task->map));
    if (order->search != NULL)
        MPL_PASS(keep_better(ctx, options, task));
    return MPL_OK;
}

memplan_status memplan_load(memplan_ctx *owner, const char *graph, memplan_task **out)
{
    mpl_ctx *ctx = &owner->ctx;
    mpl_status st = MPL_OK;
    mpl_reading read = {.options = {.spare_dims = true}};
    mpl_source source = {0};
    memplan_task *task = NULL;

    MPL_TRY(mpl_new(ctx, task, 1));
    task->owner = owner;
    task->set = owner->set;
    task->set.dim = (mpl_strings){0};
    task->complete = true;
    MPL_TRY(mpl_copy_text(ctx, task->text, graph));
    MPL_TRY(mpl_asked_dims(ctx, &owner->set, &read));
    MPL_TRY(mpl_source_open(ctx, graph, &read.options, &source));
    task->graph = source.graph, source.graph = NULL;
    task->problem = source.problem, source.problem = NULL;
    if (task->graph != NULL)
        MPL_TRY(graph_problem(ctx, &owner->set, task));
    else
        MPL_TRY(mpl_asked_safety(ctx, &owner->set, task->text, task->problem));
    if (task->graph == NULL)
        mpl_asked_limits(&owner->set, task->problem);
    *out = task, task = NULL;
out:
    mpl_reading_fini(ctx, &read);
    mpl_source_fini(ctx, &source);
    memplan_task_free(task);
    return (memplan_status)st;
}

void memplan_task_free(memplan_task *task)
{
    mpl_ctx *ctx = task != NULL ? &task->owner->ctx : NULL;

    if (task == NULL)
        return;
    mpl_value_map_free(ctx, task->map);
    mpl_problem_free(ctx, task->problem);
    mpl_graph_free(ctx, task->graph);
    mpl_free_each(ctx, task->arcs.a, task->arcs.b, task->in_place.a, task->in_place.b, task->text,
                  task);
}

/* ---- built ---- */

memplan_status memplan_task_new(memplan_ctx *owner, const char *name, memplan_task **out)
{
    mpl_ctx *ctx = &owner->ctx;
    mpl_status st = MPL_OK;
    memplan_task *task = NULL;

    MPL_TRY(mpl_new(ctx, task, 1));
    task->owner = owner;
    mpl_options_init(&task->set);
    MPL_TRY(mpl_problem_new(ctx, name != NULL ? name : "buffers", 0, &task->problem));
    task->problem->pool_capacity[0] = MPL_NO_CAPACITY;
    *out = task, task = NULL;
out:
    memplan_task_free(task);
    return (memplan_status)st;
}

/* Checks that buffers a and b exist and that the task is not complete. */
static mpl_status check_open(memplan_task *task, uint32_t a, uint32_t b)
{
    mpl_ctx *ctx = &task->owner->ctx;
    uint32_t largest = a > b ? a : b;

    if (task->complete)
        return MPL_REFUSE(ctx, "the task is complete: it was loaded, planned or checked");
    if (largest >= task->problem->n)
        return MPL_REFUSE(ctx, "there is no buffer %" PRIu32 "; there are %" PRIu32, largest,
                          task->problem->n);
    return MPL_OK;
}

/* Makes room for n more buffers. */
static mpl_status grow(memplan_task *task, uint32_t n)
{
    mpl_ctx *ctx = &task->owner->ctx;
    mpl_problem *p = task->problem;
    size_t all = (size_t)p->n + n;

    if (task->complete)
        return MPL_REFUSE(ctx, "the task is complete: it takes no more buffers");
    if (all >= MPL_NONE)
        return MPL_REFUSE(ctx, "the task would have %zu buffers; 2^32 - 2 are the most", all);
    MPL_PASS(mpl_reserve(ctx, p->bytes, task->cap[0], all));
    MPL_PASS(mpl_reserve(ctx, p->align, task->cap[1], all));
    MPL_PASS(mpl_reserve(ctx, p->pool, task->cap[2], all));
    MPL_PASS(mpl_reserve(ctx, p->birth, task->cap[3], all));
    MPL_PASS(mpl_reserve(ctx, p->death, task->cap[4], all));
    MPL_PASS(mpl_reserve(ctx, p->buffer_name, task->cap[5], all));
    return mpl_reserve(ctx, p->fixed, task->cap[6], all);
}

/* Into room made by grow. */
static void append(mpl_problem *p, char *name, uint64_t bytes, uint32_t align, uint32_t birth,
                   uint32_t death)
{
    uint32_t n = p->n++;

    p->bytes[n] = bytes;
    p->align[n] = align;
    p->birth[n] = birth;
    p->death[n] = death;
    p->buffer_name[n] = name;
    p->fixed[n] = MPL_UNFIXED;
    p->n_steps = death > p->n_steps ? death : p->n_steps;
}

memplan_status memplan_add(memplan_task *task, const char *name, uint64_t bytes, uint32_t align,
                           uint32_t birth, uint32_t death, uint32_t *id)
{
    mpl_ctx *ctx = &task->owner->ctx;
    mpl_status st = MPL_OK;
    char *copy = NULL;

    MPL_TRY(grow(task, 1));
    if (name != NULL)
        MPL_TRY(mpl_copy_text(ctx, copy, name));
    append(task->problem, copy, bytes, align, birth, death);
    if (id != NULL)
        *id = task->problem->n - 1;
out:
    return (memplan_status)st;
}

memplan_status memplan_add_all(memplan_task *task, uint32_t n, const uint64_t *bytes,
                               const uint32_t *align, const uint32_t *birth, const uint32_t *death)
{
    mpl_status st = MPL_OK;

    MPL_TRY(grow(task, n));
    for (uint32_t i = 0; i < n; i++)
        append(task->problem, NULL, bytes[i], align[i], birth[i], death[i]);
out:
    return (memplan_status)st;
}

static memplan_status add_pair(memplan_task *task, library_pairs *pairs, uint32_t a, uint32_t b)
{
    mpl_ctx *ctx = &task->owner->ctx;
    mpl_status st = MPL_OK;

    MPL_TRY(check_open(task, a, b));
    MPL_TRY(mpl_reserve(ctx, pairs->a, pairs->a_cap, pairs->n + 1));
    MPL_TRY(mpl_reserve(ctx, pairs->b, pairs->b_cap, pairs->n + 1));
    pairs->a[pairs->n] = a;
    pairs->b[pairs->n++] = b;
out:
    return (memplan_status)st;
}

memplan_status memplan_add_before(memplan_task *task, uint32_t a, uint32_t b)
{
    return add_pair(task, &task->arcs, a, b);
}

memplan_status memplan_add_in_place(memplan_task *task, uint32_t in, uint32_t out)
{
    return add_pair(task, &task->in_place, in, out);
}

memplan_status memplan_fix(memplan_task *task, uint32_t buffer, uint64_t offset)
{
    mpl_status st = MPL_OK;

    MPL_TRY(check_open(task, buffer, buffer));
    task->problem->fixed[buffer] = offset;
out:
    return (memplan_status)st;
}

memplan_status memplan_set_capacity(memplan_task *task, uint64_t bytes)
{
    mpl_status st = MPL_OK;

    if (task->complete)
        MPL_FAIL(&task->owner->ctx, MPL_EINPUT,
                 "the task is complete: it was loaded, planned or checked");
    task->problem->pool_capacity[0] = bytes;
out:
    return (memplan_status)st;
}

typedef struct pair {
    uint32_t step, out, in;
} pair;

MPL_ORDER_BY(by_step, pair, MPL_RISING(step) MPL_RISING(out) MPL_RISING(in))

/* Makes the pairs in the problem's order, without duplicates; the step is the birth of `out`. */
static mpl_status make_pairs(mpl_ctx *ctx, const memplan_task *task, mpl_problem *p)
{
    mpl_status st = MPL_OK;
    pair *pairs = NULL;
    uint32_t n = 0;

    MPL_TRY(mpl_new(ctx, pairs, task->in_place.n));
    for (size_t i = 0; i < task->in_place.n; i++)
        pairs[i] = (pair){p->birth[task->in_place.b[i]], task->in_place.b[i], task->in_place.a[i]};
    qsort(pairs, task->in_place.n, sizeof *pairs, by_step);
    MPL_TRY(mpl_new_each(ctx, task->in_place.n, p->in_place_in, p->in_place_out, p->in_place_step));
    for (size_t i = 0; i < task->in_place.n; i++) {
        if (i > 0 && by_step(&pairs[i - 1], &pairs[i]) == 0)
            continue;
        p->in_place_in[n] = pairs[i].in;
        p->in_place_out[n] = pairs[i].out;
        p->in_place_step[n++] = pairs[i].step;
    }
    p->n_in_place = n;
out:
    mpl_free(ctx, pairs);
    return st;
}

/* Makes names for all buffers or none, and fixed offsets only if there are any, as a file of the
 * same problem would. */
static mpl_status make_optional(mpl_ctx *ctx, mpl_problem *p)
{
    char text[24];
    bool any = false, fixed = false;

    for (uint32_t b = 0; b < p->n; b++) {
        any |= p->buffer_name[b] != NULL;
        fixed |= p->fixed[b] != MPL_UNFIXED;
    }
    for (uint32_t b = 0; any && b < p->n; b++)
        if (p->buffer_name[b] == NULL)
            MPL_PASS(mpl_copy_text(ctx, p->buffer_name[b], mpl_buffer_label(p, b, text)));
    if (!any) {
        mpl_free(ctx, p->buffer_name);
        p->buffer_name = NULL;
    }
    if (!fixed) {
        mpl_free(ctx, p->fixed);
        p->fixed = NULL;
    }
    return MPL_OK;
}

/* Frees the results of an earlier attempt, since a wrong task may be corrected and tried again. */
static void forget(mpl_ctx *ctx, mpl_problem *p)
{
    mpl_before_free(ctx, (mpl_before *)p->before);
    mpl_free_each(ctx, p->in_place_in, p->in_place_out, p->in_place_step);
    p->before = NULL;
    p->in_place_in = p->in_place_out = p->in_place_step = NULL;
    p->n_in_place = 0;
}

memplan_status memplan_check(memplan_task *task)
{
    mpl_ctx *ctx = &task->owner->ctx;
    mpl_status st = MPL_OK;
    mpl_problem *p = task->problem;
    mpl_before *before = NULL;
    uint32_t without = 0;

    if (task->complete)
        return MEMPLAN_OK;
    if (p->n == 0)
        MPL_FAIL(ctx, MPL_EINPUT, "the task has no buffer");
    for (uint32_t b = 0; b < p->n; b++)
        without += p->birth[b] == 0 && p->death[b] == 0;
    if (without != 0 && without != p->n)
        MPL_FAIL(ctx, MPL_EINPUT, "%" PRIu32 " of %" PRIu32 " buffers have no steps: all or none",
                 without, p->n);
    if (without == 0 && task->arcs.n > 0)
        MPL_FAIL(ctx, MPL_EINPUT, "buffers with steps have no partial order beside them");
    forget(ctx, p);
    if (without > 0)
        MPL_TRY(mpl_before_from_arcs(ctx, p->n, task->arcs.n, task->arcs.a, task->arcs.b, &before));
    p->before = before;
    MPL_TRY(make_pairs(ctx, task, p));
    MPL_TRY(mpl_problem_check(ctx, p));
    MPL_TRY(make_optional(ctx, p));
    task->complete = true;
out:
    return (memplan_status)st;
}

/* ---- buffers ---- */

uint32_t memplan_count(const memplan_task *task)
{
    return task->problem->n;
}

const char *memplan_name(const memplan_task *task, uint32_t b)
{
    return b < task->problem->n && task->problem->buffer_name != NULL
               ? task->problem->buffer_name[b]
               : NULL;
}

uint32_t memplan_find(const memplan_task *task, const char *name)
{
    for (uint32_t b = 0; b < task->problem->n; b++)
        if (memplan_name(task, b) != NULL && strcmp(memplan_name(task, b), name) == 0)
            return b;
    return MEMPLAN_NO_BUFFER;
}

uint64_t memplan_bytes(const memplan_task *task, uint32_t b)
{
    return b < task->problem->n ? task->problem->bytes[b] : 0;
}

uint32_t memplan_birth(const memplan_task *task, uint32_t b)
{
    return b < task->problem->n ? task->problem->birth[b] : 0;
}

uint32_t memplan_death(const memplan_task *task, uint32_t b)
{
    return b < task->problem->n ? task->problem->death[b] : 0;
}
