/* ways.c -- chooses a way for each operation within a limit of bytes. See ways.h.
 *
 * Idea     Only a workspace in the witness of the bound can exceed the limit: one of these must
 *          step down.
 * Source   this project
 * Limits   The choice is greedy under parallel, and for the bytes of a plan above the bound. */
#include "planners/search/ways.h"
#include "graphs/problem/bounds/bounds.h"

typedef struct search {
    mpl_ctx *ctx;
    const mpl_ways_task *task;
    const mpl_ways *ways;
    uint32_t *way;       /* [n_ops] */
    uint64_t *workspace; /* [n_ops] bytes of the chosen ways */
    mpl_problem *p;
    mpl_value_map *map;
    uint8_t *member; /* [p->n] witness of the bound */
    mpl_ways_point at;
    bool witnessed;   /* member is not empty */
    mpl_op at_peak;   /* without a witness: operation at the peak, or MPL_NONE */
    bool free_choice; /* an operation stepped down where another one could have */
} search;

void mpl_ways_free(mpl_ctx *ctx, mpl_ways *ways)
{
    if (ways == NULL)
        return;
    mpl_free(ctx, ways->begin);
    mpl_free(ctx, ways->bytes);
    mpl_free(ctx, ways->cost);
    mpl_free(ctx, ways->name);
    mpl_free(ctx, ways);
}

static void forget(search *self)
{
    mpl_free(self->ctx, self->member);
    mpl_value_map_free(self->ctx, self->map);
    mpl_problem_free(self->ctx, self->p);
    self->member = NULL, self->map = NULL, self->p = NULL;
}

static uint32_t way_index(const search *self, mpl_op op)
{
    return self->ways->begin[op] + self->way[op];
}

static bool can_step_down(const search *self, mpl_op op)
{
    return way_index(self, op) + 1 < self->ways->begin[op + 1];
}

/* Finds the operation at the peak where there is no witness. Steps of graphs with blocks are not
 * those of the order. */
static mpl_status find_peak(search *self)
{
    uint64_t peak = 0;
    uint32_t step = 0;

    self->witnessed = false;
    self->at_peak = MPL_NONE;
    for (mpl_buffer b = 0; b < self->p->n; b++)
        self->witnessed |= self->member[b] != 0;
    if (self->witnessed || self->p->before != NULL || self->task->g->n_blocks > 1)
        return MPL_OK;
    MPL_PASS(mpl_peak_live(self->ctx, self->p, 0, &peak, NULL, &step));
    self->at_peak = step < self->task->g->n_ops ? self->task->order[step] : MPL_NONE;
    return MPL_OK;
}

/* Makes the problem of the current ways, with its bound, witness, planned bytes and cost. */
static mpl_status evaluate(search *self)
{
    mpl_status st = MPL_OK;
    mpl_problem_options options = *self->task->options;
    mpl_plan *plan = NULL;
    mpl_run run;

    forget(self);
    self->at = (mpl_ways_point){0};
    for (mpl_op op = 0; op < self->ways->n_ops; op++) {
        self->workspace[op] = self->ways->bytes[way_index(self, op)];
        self->at.n_slower += self->way[op] > 0;
        if (__builtin_add_overflow(self->at.cost, self->ways->cost[way_index(self, op)],
                                   &self->at.cost))
            self->at.cost = UINT64_MAX;
    }
    options.plan_workspaces = true;
    options.op_workspace_bytes = self->workspace;
    options.capacity = MPL_NO_CAPACITY;
    MPL_TRY(mpl_problem_from_graph(self->ctx, self->task->g, self->task->order, &options, &self->p,
                                   &self->map));
    MPL_TRY(mpl_new(self->ctx, self->member, self->p->n));
    MPL_TRY(mpl_lower_bound(self->ctx, self->p, 0, &self->at.bound_bytes, self->member));
    MPL_TRY(find_peak(self));
    if (self->task->planner == NULL)
        goto out;
    run = mpl_run_default(self->ctx);
    MPL_TRY(mpl_planner_run(self->task->planner, &run, self->p, &plan));
    self->at.planned_bytes = plan->pool_bytes[0];
out:
    mpl_plan_free(self->ctx, plan);
    return st;
}

static bool keeps(const search *self, uint64_t limit)
{
    return self->at.bound_bytes <= limit && self->at.planned_bytes <= limit;
}

static bool in_witness(const search *self, mpl_op op)
{
    mpl_buffer b = self->map->op_workspace[op];

    return op == self->at_peak || (b != MPL_NONE && self->member[b] != 0);
}

/* Whether a step of `a` costs less per byte saved than one of `b`; ties by id. */
static bool cheaper_step(const search *self, mpl_op a, mpl_op b)
{
    const uint64_t *bytes = self->ways->bytes, *cost = self->ways->cost;
    uint32_t i = way_index(self, a), k = way_index(self, b);
    __extension__ typedef unsigned __int128 wide;
    wide left = (wide)(cost[i + 1] - cost[i]) * (bytes[k] - bytes[k + 1]);
    wide right = (wide)(cost[k + 1] - cost[k]) * (bytes[i] - bytes[i + 1]);

    return left != right ? left < right : a < b;
}

/* The operation to step down: the cheapest step in the witness. If none is there and `beyond` is
 * set, the largest workspace. MPL_NONE: there is none. */
static mpl_op next_down(search *self, bool beyond)
{
    mpl_op best = MPL_NONE;
    uint32_t n = 0;

    for (mpl_op op = 0; op < self->ways->n_ops; op++) {
        if (!can_step_down(self, op) || !in_witness(self, op))
            continue;
        n++;
        if (best == MPL_NONE || cheaper_step(self, op, best))
            best = op;
    }
    for (mpl_op op = 0; n == 0 && beyond && op < self->ways->n_ops; op++)
        if (can_step_down(self, op) &&
            (best == MPL_NONE || self->workspace[op] > self->workspace[best]))
            best = op;
    self->free_choice |= n > 1 || beyond;
    return best;
}

/* Steps down until the limit holds. */
static mpl_status step_down(search *self, uint64_t limit)
{
    MPL_PASS(evaluate(self));
    while (!keeps(self, limit)) {
        bool beyond =
            self->at.bound_bytes <= limit || (!self->witnessed && self->at_peak == MPL_NONE);
        mpl_op op = next_down(self, beyond);

        if (op == MPL_NONE)
            return MPL_ERROR(
                self->ctx, beyond ? MPL_ELIMIT : MPL_EINVALID,
                "graph '%s': %" PRIu64
                " bytes are allowed; with workspaces as small as they get it %s %" PRIu64,
                self->task->g->name, limit, beyond ? "was planned in" : "needs at least",
                beyond ? mpl_max_u64(self->at.planned_bytes, self->at.bound_bytes)
                       : self->at.bound_bytes);
        self->way[op]++;
        MPL_PASS(evaluate(self));
    }
    return MPL_OK;
}

/* Tries `way` for op; keeps the old way if the limit breaks. */
static mpl_status try_way(search *self, mpl_op op, uint32_t way, uint64_t limit)
{
    uint32_t kept = self->way[op];

    self->way[op] = way;
    MPL_PASS(evaluate(self));
    if (!keeps(self, limit))
        self->way[op] = kept;
    return MPL_OK;
}

static mpl_status step_up(search *self, uint64_t limit)
{
    bool any = true;

    while (any) {
        any = false;
        for (mpl_op op = 0; op < self->ways->n_ops; op++)
            for (uint32_t way = 0, kept = self->way[op]; way < self->way[op]; way++) {
                MPL_PASS(try_way(self, op, way, limit));
                any |= self->way[op] < kept;
            }
    }
    return evaluate(self);
}

static mpl_status begin(mpl_ctx *ctx, const mpl_ways_task *task, search *s)
{
    *s = (search){.ctx = ctx, .task = task, .ways = task->ways};
    mpl_assert(task->ways->n_ops == task->g->n_ops);
    MPL_PASS(mpl_new(ctx, s->way, task->ways->n_ops));
    return mpl_new(ctx, s->workspace, task->ways->n_ops);
}

static void end(search *self)
{
    forget(self);
    mpl_free_each(self->ctx, self->way, self->workspace);
}

/* The ways that the search comes to within a limit. */
static mpl_status settle(search *self, uint64_t limit, uint32_t *way, mpl_ways_point *found)
{
    MPL_PASS(step_down(self, limit));
    if (self->free_choice)
        MPL_PASS(step_up(self, limit));
    memcpy(way, self->way, self->ways->n_ops * sizeof *way);
    *found = self->at;
    return MPL_OK;
}

mpl_status mpl_ways_choose(mpl_ctx *ctx, const mpl_ways_task *task, uint64_t limit, uint32_t *way,
                           mpl_ways_point *found)
{
    mpl_status st = MPL_OK;
    search s;

    MPL_TRY(begin(ctx, task, &s));
    MPL_TRY(settle(&s, limit, way, found));
out:
    end(&s);
    return st;
}

mpl_status mpl_ways_least(mpl_ctx *ctx, const mpl_ways_task *task, uint32_t *way,
                          mpl_ways_point *found)
{
    mpl_status st = MPL_OK;
    uint64_t limit = 0;
    search s;

    MPL_TRY(begin(ctx, task, &s));
    for (mpl_op op = 0; op < s.ways->n_ops; op++)
        s.way[op] = s.ways->begin[op + 1] - s.ways->begin[op] - 1;
    MPL_TRY(evaluate(&s));
    limit = mpl_max_u64(s.at.bound_bytes, s.at.planned_bytes);
    memset(s.way, 0, s.ways->n_ops * sizeof *s.way);
    MPL_TRY(settle(&s, limit, way, found));
out:
    end(&s);
    return st;
}

mpl_status mpl_ways_curve(mpl_ctx *ctx, const mpl_ways_task *task, mpl_ways_point **point,
                          uint32_t *n)
{
    mpl_status st = MPL_OK;
    mpl_ways_point *p = NULL;
    size_t room = 0;
    uint32_t k = 0;
    search s;

    MPL_TRY(begin(ctx, task, &s));
    for (mpl_op op = 0; op != MPL_NONE;) {
        MPL_TRY(evaluate(&s));
        if (k == 0 || s.at.bound_bytes < p[k - 1].bound_bytes) {
            MPL_TRY(mpl_reserve(ctx, p, room, (size_t)k + 1));
            p[k++] = s.at;
        }
        if ((op = next_down(&s, !s.witnessed && s.at_peak == MPL_NONE)) != MPL_NONE)
            s.way[op]++;
    }
    *point = p, p = NULL;
    *n = k;
out:
    mpl_free(ctx, p);
    end(&s);
    return st;
}
