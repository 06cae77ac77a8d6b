/* test_planners_ways.c -- choosing an algorithm for each operation, against every possible choice
 * on small graphs.
 *
 * Fault: an exceeded limit, a limit refused although some choice meets it, a choice that costs more
 * than necessary, a missed improvement, curves that rise. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/random_graph.h"

#include "planners/search/ways.h"

#define MOST_OPS 6

typedef struct instance {
    mpl_ctx ctx;
    mpl_graph *g;
    mpl_op order[MOST_OPS];
    mpl_problem_options options;
    mpl_ways *ways;
    mpl_ways_task task;
} instance;

/* One to three ways per operation with whole slots; the last way of some has no workspace. */
static mpl_ways *random_ways(mpl_ctx *ctx, uint32_t n_ops, mpl_rng *rng)
{
    mpl_ways *w = NULL;

    assert_ok(ctx, mpl_new(ctx, w, 1));
    w->n_ops = n_ops;
    assert_ok(ctx, mpl_new(ctx, w->begin, n_ops + 1));
    assert_ok(ctx, mpl_new(ctx, w->bytes, 3 * n_ops));
    assert_ok(ctx, mpl_new(ctx, w->cost, 3 * n_ops));
    for (uint32_t op = 0; op < n_ops; op++) {
        uint32_t n = 1 + (uint32_t)mpl_rng_below(rng, 3), at = w->begin[op];
        uint64_t bytes = 64 * (n - 1 + mpl_rng_below(rng, 12)), cost = 1 + mpl_rng_below(rng, 9);

        for (uint32_t i = 0; i < n; i++) {
            w->bytes[at + i] = bytes;
            w->cost[at + i] = cost;
            bytes = i + 2 == n && mpl_rng_below(rng, 2)
                        ? 0
                        : 64 * mpl_rng_below(rng, bytes / 64 + (bytes == 0));
            bytes = bytes < 64 * (n - i - 2) && i + 2 < n ? 64 * (n - i - 2) : bytes;
            cost += 1 + mpl_rng_below(rng, 20);
        }
        for (uint32_t i = 1; i < n; i++) /* never more than the previous one */
            if (w->bytes[at + i] >= w->bytes[at + i - 1])
                n = i;
        w->begin[op + 1] = at + n;
    }
    return w;
}

static void make(instance *x, uint64_t seed)
{
    mpl_rng rng;

    *x = (instance){.options = random_options(seed)};
    x->ctx = mpl_ctx_default();
    rng = mpl_rng_of(seed + 1000);
    x->g = random_graph(&x->ctx, seed, 2 + (uint32_t)(seed % (MOST_OPS - 1)), 3);
    count_up(x->g->n_ops, x->order);
    x->options.align = 4; /* whole slots: no rounding, which depends on ties */
    x->options.parallel = seed % 2 == 1;
    x->ways = random_ways(&x->ctx, x->g->n_ops, &rng);
    x->task =
        (mpl_ways_task){.g = x->g, .order = x->order, .options = &x->options, .ways = x->ways};
}

static void unmake(instance *x)
{
    mpl_ways_free(&x->ctx, x->ways);
    mpl_graph_free(&x->ctx, x->g);
    assert_int_equal(x->ctx.n_live, 0);
}

/* Bytes of one choice: the bound, or the planner's result. */
static uint64_t judge(instance *x, const uint32_t *way, uint64_t *cost)
{
    uint64_t bytes[MOST_OPS], got = 0;
    mpl_problem_options o = x->options;
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    mpl_plan *plan = NULL;
    mpl_run run;

    *cost = 0;
    for (mpl_op op = 0; op < x->g->n_ops; op++) {
        bytes[op] = x->ways->bytes[x->ways->begin[op] + way[op]];
        *cost += x->ways->cost[x->ways->begin[op] + way[op]];
    }
    o.plan_workspaces = true;
    o.op_workspace_bytes = bytes;
    assert_ok(&x->ctx, mpl_problem_from_graph(&x->ctx, x->g, x->order, &o, &p, &map));
    assert_ok(&x->ctx, mpl_lower_bound(&x->ctx, p, 0, &got, NULL));
    if (x->task.planner != NULL) {
        run = mpl_run_default(&x->ctx);
        assert_ok(&x->ctx, mpl_planner_run(x->task.planner, &run, p, &plan));
        got = plan->pool_bytes[0];
    }
    mpl_plan_free(&x->ctx, plan);
    mpl_problem_free(&x->ctx, p);
    mpl_value_map_free(&x->ctx, map);
    return got;
}

typedef struct choice {
    uint64_t bytes, cost;
} choice;

/* Lists every choice; returns their number. */
static uint32_t list_all(instance *x, choice *all)
{
    uint32_t way[MOST_OPS] = {0}, n = 0, op = 0;

    while (op < x->g->n_ops) {
        all[n].bytes = judge(x, way, &all[n].cost);
        n++;
        for (op = 0; op < x->g->n_ops; op++) {
            if (++way[op] < x->ways->begin[op + 1] - x->ways->begin[op])
                break;
            way[op] = 0;
        }
    }
    return n;
}

static uint64_t least_cost(const choice *all, uint32_t n, uint64_t limit)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < n; i++)
        if (all[i].bytes <= limit)
            least = mpl_min_u64(least, all[i].cost);
    return least;
}

static void check_no_step_up(instance *x, const uint32_t *way, uint64_t limit)
{
    for (mpl_op op = 0; op < x->g->n_ops; op++)
        for (uint32_t k = 0; k < way[op]; k++) {
            uint32_t other[MOST_OPS];
            uint64_t cost;

            memcpy(other, way, x->g->n_ops * sizeof *other);
            other[op] = k;
            assert_true(judge(x, other, &cost) > limit);
        }
}

typedef struct tally {
    uint64_t kept, refused, undecided, cost, least;
} tally;

/* Compares the result for one limit with all choices. */
static void check_limit(instance *x, const choice *all, uint32_t n, uint64_t limit, tally *t)
{
    uint32_t way[MOST_OPS];
    mpl_ways_point found;
    uint64_t least = least_cost(all, n, limit), cost = 0;
    mpl_status st = mpl_ways_choose(&x->ctx, &x->task, limit, way, &found);

    if (st != MPL_OK) {
        assert_true(st == MPL_EINVALID || (st == MPL_ELIMIT && x->task.planner != NULL));
        if (st == MPL_EINVALID)
            assert_true(least == UINT64_MAX);
        t->refused += st == MPL_EINVALID;
        t->undecided += st == MPL_ELIMIT && least != UINT64_MAX;
        return;
    }
    assert_true(judge(x, way, &cost) <= limit);
    assert_int_equal(cost, found.cost);
    assert_true(cost >= least);
    if (x->task.planner == NULL && !x->options.parallel)
        assert_int_equal(cost, least);
    check_no_step_up(x, way, limit);
    t->kept++, t->cost += cost, t->least += least;
}

static void check_curve(instance *x, const choice *all, uint32_t n)
{
    mpl_ways_point *point = NULL;
    uint32_t n_points = 0;
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < n; i++)
        least = mpl_min_u64(least, all[i].bytes);
    assert_ok(&x->ctx, mpl_ways_curve(&x->ctx, &x->task, &point, &n_points));
    assert_int_equal(point[0].n_slower, 0);
    assert_int_equal(point[n_points - 1].bound_bytes, least);
    for (uint32_t i = 0; i < n_points; i++) {
        assert_true(i == 0 || (point[i].bound_bytes < point[i - 1].bound_bytes &&
                               point[i].cost > point[i - 1].cost));
        if (!x->options.parallel)
            assert_int_equal(point[i].cost, least_cost(all, n, point[i].bound_bytes));
    }
    mpl_free(&x->ctx, point);
}

static void check_least(instance *x, const choice *all, uint32_t n)
{
    uint32_t way[MOST_OPS];
    mpl_ways_point found;
    uint64_t cost, least = UINT64_MAX;

    for (uint32_t i = 0; i < n; i++)
        least = mpl_min_u64(least, all[i].bytes);
    assert_ok(&x->ctx, mpl_ways_least(&x->ctx, &x->task, way, &found));
    if (x->task.planner == NULL)
        assert_int_equal(judge(x, way, &cost), least);
    check_no_step_up(x, way, mpl_max_u64(found.bound_bytes, found.planned_bytes));
}

TEST(equal_to_every_choice)
{
    static const char *const planners[] = {NULL, "greedy_size"};

    for (int k = 0; k < 2; k++) {
        tally t = {0};

        for (uint64_t seed = 0; seed < draws(240); seed++) {
            static choice all[729];
            instance x;
            uint32_t n;

            make(&x, seed);
            x.task.planner = planners[k] != NULL ? mpl_planner_find(planners[k]) : NULL;
            n = list_all(&x, all);
            for (uint32_t i = 0; i < n; i += 1 + n / 12) {
                check_limit(&x, all, n, all[i].bytes, &t);
                check_limit(&x, all, n, all[i].bytes - 1, &t);
            }
            if (k == 0)
                check_curve(&x, all, n);
            check_least(&x, all, n);
            unmake(&x);
        }
        print_message("%s: %" PRIu64 " limits kept, %" PRIu64 " refused, %" PRIu64
                      " missed; cost %.3f of the least\n",
                      k == 0 ? "by the bound" : planners[k], t.kept, t.refused, t.undecided,
                      (double)t.cost / (double)t.least);
        assert_true(often(t.kept > 500 && t.refused > 50));
        assert_true(k == 1 || t.undecided == 0);
        assert_true(often(t.undecided * 20 < t.kept));
        assert_true(often((double)t.cost < 1.015 * (double)t.least)); /* greedy, but close */
    }
}

TEST(memory_fails_at_every_allocation)
{
    mpl_status st = MPL_EMEM;

    for (int64_t k = 0; st == MPL_EMEM; k++) {
        uint32_t way[MOST_OPS];
        mpl_ways_point found, *point = NULL;
        uint32_t n;
        instance x;

        make(&x, 7);
        x.task.planner = mpl_planner_find("greedy_size");
        x.ctx.fail_after = x.ctx.n_allocs + k;
        st = mpl_ways_least(&x.ctx, &x.task, way, &found);
        if (st == MPL_OK)
            st = mpl_ways_curve(&x.ctx, &x.task, &point, &n);
        x.ctx.fail_after = -1;
        mpl_free(&x.ctx, point);
        unmake(&x);
    }
    assert_int_equal(st, MPL_OK);
}

TESTS(equal_to_every_choice, memory_fails_at_every_allocation)
