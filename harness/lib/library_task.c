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
static mpl_status keep_better(mpl_ctx *ctx, mpl_problem_options options, memplan_task *t)
{
    mpl_status st = MPL_OK;
    mpl_problem *given = NULL;
    mpl_value_map *map = NULL;
    uint64_t searched_bytes, given_bytes;

    MPL_TRY(order_problem(ctx, t->graph, mpl_order_find("given"), &t->set.safety, options, &given,
                          &map));
    MPL_TRY(judge(ctx, t->problem, &searched_bytes));
    MPL_TRY(judge(ctx, given, &given_bytes));
    if (given_bytes < searched_bytes) {
        mpl_problem *problem = t->problem;
        mpl_value_map *of = t->map;

        t->problem = given, given = problem;
        t->map = map, map = of;
        t->kept_given = true;
    }
out:
    mpl_problem_free(ctx, given);
    mpl_value_map_free(ctx, map);
    return st;
}

static mpl_status graph_problem(mpl_ctx *ctx, const mpl_options *set, memplan_task *t)
{
    mpl_problem_options options = mpl_asked_problem(set);
    const mpl_order_kind *order = mpl_any_order_find(set->order);

    MPL_PASS(order_problem(ctx, t->graph, order, &set->safety, options, &t->problem, &t->map));
    if (order->search != NULL)
        MPL_PASS(keep_better(ctx, options, t));
    return MPL_OK;
}

memplan_status memplan_load(memplan_ctx *owner, const char *graph, memplan_task **out)
{
    mpl_ctx *ctx = &owner->ctx;
    mpl_status st = MPL_OK;
    mpl_reading read = {.options = {.spare_dims = true}};
    mpl_source source = {0};
    memplan_task *t = NULL;

    MPL_TRY(mpl_new(ctx, t, 1));
    t->owner = owner;
    t->set = owner->set;
    t->set.dim = (mpl_strings){0};
    t->complete = true;
    MPL_TRY(mpl_copy_text(ctx, t->text, graph));
    MPL_TRY(mpl_asked_dims(ctx, &owner->set, &read));
    MPL_TRY(mpl_source_open(ctx, graph, &read.options, &source));
    t->graph = source.graph, source.graph = NULL;
    t->problem = source.problem, source.problem = NULL;
    if (t->graph != NULL)
        MPL_TRY(graph_problem(ctx, &owner->set, t));
    else
        MPL_TRY(mpl_asked_safety(ctx, &owner->set, t->text, t->problem));
    if (t->graph == NULL)
        mpl_asked_limits(&owner->set, t->problem);
    *out = t, t = NULL;
out:
    mpl_reading_fini(ctx, &read);
    mpl_source_fini(ctx, &source);
    memplan_task_free(t);
    return (memplan_status)st;
}

void memplan_task_free(memplan_task *t)
{
    mpl_ctx *ctx = t != NULL ? &t->owner->ctx : NULL;

    if (t == NULL)
        return;
    mpl_value_map_free(ctx, t->map);
    mpl_problem_free(ctx, t->problem);
    mpl_graph_free(ctx, t->graph);
    mpl_free_each(ctx, t->arcs.a, t->arcs.b, t->in_place.a, t->in_place.b, t->text, t);
}

/* ---- built ---- */

memplan_status memplan_task_new(memplan_ctx *owner, const char *name, memplan_task **out)
{
    mpl_ctx *ctx = &owner->ctx;
    mpl_status st = MPL_OK;
    memplan_task *t = NULL;

    MPL_TRY(mpl_new(ctx, t, 1));
    t->owner = owner;
    mpl_options_init(&t->set);
    MPL_TRY(mpl_problem_new(ctx, name != NULL ? name : "buffers", 0, &t->problem));
    t->problem->pool_capacity[0] = MPL_NO_CAPACITY;
    *out = t, t = NULL;
out:
    memplan_task_free(t);
    return (memplan_status)st;
}

/* Checks that buffers a and b exist and that the task is not complete. */
static mpl_status check_open(memplan_task *t, uint32_t a, uint32_t b)
{
    mpl_ctx *ctx = &t->owner->ctx;
    uint32_t largest = a > b ? a : b;

    if (t->complete)
        return MPL_REFUSE(ctx, "the task is complete: it was loaded, planned or checked");
    if (largest >= t->problem->n)
        return MPL_REFUSE(ctx, "there is no buffer %" PRIu32 "; there are %" PRIu32, largest,
                          t->problem->n);
    return MPL_OK;
}

/* Makes room for n more buffers. */
static mpl_status grow(memplan_task *t, uint32_t n)
{
    mpl_ctx *ctx = &t->owner->ctx;
    mpl_problem *p = t->problem;
    size_t all = (size_t)p->n + n;

    if (t->complete)
        return MPL_REFUSE(ctx, "the task is complete: it takes no more buffers");
    if (all >= MPL_NONE)
        return MPL_REFUSE(ctx, "the task would have %zu buffers; 2^32 - 2 are the most", all);
    MPL_PASS(mpl_reserve(ctx, p->bytes, t->cap[0], all));
    MPL_PASS(mpl_reserve(ctx, p->align, t->cap[1], all));
    MPL_PASS(mpl_reserve(ctx, p->pool, t->cap[2], all));
    MPL_PASS(mpl_reserve(ctx, p->birth, t->cap[3], all));
    MPL_PASS(mpl_reserve(ctx, p->death, t->cap[4], all));
    MPL_PASS(mpl_reserve(ctx, p->buffer_name, t->cap[5], all));
    return mpl_reserve(ctx, p->fixed, t->cap[6], all);
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

memplan_status memplan_add(memplan_task *t, const char *name, uint64_t bytes, uint32_t align,
                           uint32_t birth, uint32_t death, uint32_t *id)
{
    mpl_ctx *ctx = &t->owner->ctx;
    mpl_status st = MPL_OK;
    char *copy = NULL;

    MPL_TRY(grow(t, 1));
    if (name != NULL)
        MPL_TRY(mpl_copy_text(ctx, copy, name));
    append(t->problem, copy, bytes, align, birth, death);
    if (id != NULL)
        *id = t->problem->n - 1;
out:
    return (memplan_status)st;
}

memplan_status memplan_add_all(memplan_task *t, uint32_t n, const uint64_t *bytes,
                               const uint32_t *align, const uint32_t *birth, const uint32_t *death)
{
    mpl_status st = MPL_OK;

    MPL_TRY(grow(t, n));
    for (uint32_t i = 0; i < n; i++)
        append(t->problem, NULL, bytes[i], align[i], birth[i], death[i]);
out:
    return (memplan_status)st;
}

static memplan_status add_pair(memplan_task *t, library_pairs *pairs, uint32_t a, uint32_t b)
{
    mpl_ctx *ctx = &t->owner->ctx;
    mpl_status st = MPL_OK;

    MPL_TRY(check_open(t, a, b));
    MPL_TRY(mpl_reserve(ctx, pairs->a, pairs->a_cap, pairs->n + 1));
    MPL_TRY(mpl_reserve(ctx, pairs->b, pairs->b_cap, pairs->n + 1));
    pairs->a[pairs->n] = a;
    pairs->b[pairs->n++] = b;
out:
    return (memplan_status)st;
}

memplan_status memplan_add_before(memplan_task *t, uint32_t a, uint32_t b)
{
    return add_pair(t, &t->arcs, a, b);
}

memplan_status memplan_add_in_place(memplan_task *t, uint32_t in, uint32_t out)
{
    return add_pair(t, &t->in_place, in, out);
}

memplan_status memplan_fix(memplan_task *t, uint32_t buffer, uint64_t offset)
{
    mpl_status st = MPL_OK;

    MPL_TRY(check_open(t, buffer, buffer));
    t->problem->fixed[buffer] = offset;
out:
    return (memplan_status)st;
}

memplan_status memplan_set_capacity(memplan_task *t, uint64_t bytes)
{
    mpl_status st = MPL_OK;

    if (t->complete)
        MPL_FAIL(&t->owner->ctx, MPL_EINPUT,
                 "the task is complete: it was loaded, planned or checked");
    t->problem->pool_capacity[0] = bytes;
out:
    return (memplan_status)st;
}

typedef struct pair {
    uint32_t step, out, in;
} pair;

MPL_ORDER_BY(by_step, pair, MPL_RISING(step) MPL_RISING(out) MPL_RISING(in))

/* Makes the pairs in the problem's order, without duplicates; the step is the birth of `out`. */
static mpl_status make_pairs(mpl_ctx *ctx, const memplan_task *t, mpl_problem *p)
{
    mpl_status st = MPL_OK;
    pair *pairs = NULL;
    uint32_t n = 0;

    MPL_TRY(mpl_new(ctx, pairs, t->in_place.n));
    for (size_t i = 0; i < t->in_place.n; i++)
        pairs[i] = (pair){p->birth[t->in_place.b[i]], t->in_place.b[i], t->in_place.a[i]};
    qsort(pairs, t->in_place.n, sizeof *pairs, by_step);
    MPL_TRY(mpl_new_each(ctx, t->in_place.n, p->in_place_in, p->in_place_out, p->in_place_step));
    for (size_t i = 0; i < t->in_place.n; i++) {
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

memplan_status memplan_check(memplan_task *t)
{
    mpl_ctx *ctx = &t->owner->ctx;
    mpl_status st = MPL_OK;
    mpl_problem *p = t->problem;
    mpl_before *before = NULL;
    uint32_t without = 0;

    if (t->complete)
        return MEMPLAN_OK;
    if (p->n == 0)
        MPL_FAIL(ctx, MPL_EINPUT, "the task has no buffer");
    for (uint32_t b = 0; b < p->n; b++)
        without += p->birth[b] == 0 && p->death[b] == 0;
    if (without != 0 && without != p->n)
        MPL_FAIL(ctx, MPL_EINPUT, "%" PRIu32 " of %" PRIu32 " buffers have no steps: all or none",
                 without, p->n);
    if (without == 0 && t->arcs.n > 0)
        MPL_FAIL(ctx, MPL_EINPUT, "buffers with steps have no partial order beside them");
    forget(ctx, p);
    if (without > 0)
        MPL_TRY(mpl_before_from_arcs(ctx, p->n, t->arcs.n, t->arcs.a, t->arcs.b, &before));
    p->before = before;
    MPL_TRY(make_pairs(ctx, t, p));
    MPL_TRY(mpl_problem_check(ctx, p));
    MPL_TRY(make_optional(ctx, p));
    t->complete = true;
out:
    return (memplan_status)st;
}

/* ---- buffers ---- */

uint32_t memplan_count(const memplan_task *t)
{
    return t->problem->n;
}

const char *memplan_name(const memplan_task *t, uint32_t b)
{
    return b < t->problem->n && t->problem->buffer_name != NULL ? t->problem->buffer_name[b] : NULL;
}

uint32_t memplan_find(const memplan_task *t, const char *name)
{
    for (uint32_t b = 0; b < t->problem->n; b++)
        if (memplan_name(t, b) != NULL && strcmp(memplan_name(t, b), name) == 0)
            return b;
    return MEMPLAN_NO_BUFFER;
}

uint64_t memplan_bytes(const memplan_task *t, uint32_t b)
{
    return b < t->problem->n ? t->problem->bytes[b] : 0;
}

uint32_t memplan_birth(const memplan_task *t, uint32_t b)
{
    return b < t->problem->n ? t->problem->birth[b] : 0;
}

uint32_t memplan_death(const memplan_task *t, uint32_t b)
{
    return b < t->problem->n ? t->problem->death[b] : 0;
}
