/* Regions ordered once and for all: the reduced model keeps the least peak, expands to real orders,
 * and is a chain if the graph is series-parallel. */
#include "tests/support/test.h"

#include "graphs/orders/model/model_priv.h"
#include "graphs/orders/model/regions.h"
#include "graphs/orders/model/valleys.h"
#include "graphs/orders/orders_priv.h"

enum { MOST_OPS = 12 };

/* ---- random models ---- */

typedef struct draft {
    mpl_ctx *ctx;
    mpl_rng rng;
    mpl_order_arcs arcs;
    uint32_t n, edges[MOST_OPS * MOST_OPS][2], n_edges;
} draft;

static void add_edge(draft *d, uint32_t from, uint32_t to)
{
    d->edges[d->n_edges][0] = from;
    d->edges[d->n_edges++][1] = to;
    assert_ok(d->ctx, mpl_order_add(d->ctx, &d->arcs.before, to, from));
}

/* Puts n operations after `entry`; returns the last, which all others are before. */
static uint32_t draft_part(draft *d, uint32_t entry, uint32_t n)
{
    uint32_t end[2], k;

    if (n < 3 || mpl_rng_below(&d->rng, 3) == 0) {
        uint32_t v = d->n++;

        if (entry != MPL_NONE)
            add_edge(d, entry, v);
        return n > 1 ? draft_part(d, v, n - 1) : v;
    }
    if (mpl_rng_below(&d->rng, 3) == 0) {
        k = 1 + (uint32_t)mpl_rng_below(&d->rng, n - 1);
        return draft_part(d, draft_part(d, entry, k), n - k);
    }
    k = 1 + (uint32_t)mpl_rng_below(&d->rng, n - 2);
    end[0] = draft_part(d, entry, k);
    end[1] = draft_part(d, entry, n - 1 - k);
    add_edge(d, end[0], d->n);
    add_edge(d, end[1], d->n);
    return d->n++;
}

/* An operation makes one or two buffers, which some of those after it use; buffers from the start,
 * kept ones, ones with several makers, and ways to write in place are among them. */
static void draft_buffers(draft *d, mpl_order_model *m)
{
    for (uint32_t v = 0; v < d->n; v++)
        for (uint32_t k = 0; k < 1 + mpl_rng_below(&d->rng, 2); k++) {
            uint32_t b = m->n_buffers++, n_users = 0;

            m->bytes[b] = 16 * (1 + mpl_rng_below(&d->rng, 9));
            m->from_start[b] = mpl_rng_below(&d->rng, 12) == 0;
            if (!m->from_start[b])
                assert_ok(d->ctx, mpl_order_add(d->ctx, &d->arcs.makers, b, v));
            for (uint32_t i = 0; i < d->n_edges; i++) {
                uint32_t user = d->edges[i][1];

                if (d->edges[i][0] != v || (k > 0 && mpl_rng_below(&d->rng, 2) == 0))
                    continue;
                assert_ok(d->ctx, mpl_order_add(d->ctx, &d->arcs.users, b, user));
                n_users++;
                if (mpl_rng_below(&d->rng, 3) > 0)
                    continue;
                m->saves[user] = 16 * (1 + mpl_rng_below(&d->rng, 3));
                assert_ok(d->ctx, mpl_order_add(d->ctx, &d->arcs.ways, user, m->n_ways));
                assert_ok(d->ctx, mpl_order_add(d->ctx, &d->arcs.under, m->n_ways++, b));
            }
            m->kept[b] = n_users == 0 || mpl_rng_below(&d->rng, 12) == 0;
        }
    for (uint32_t v = 0; v < d->n; v++) /* what an operation saves it also makes */
        m->extra[v] = 16 * mpl_rng_below(&d->rng, 4) + m->saves[v];
}

static mpl_order_model *random_model(mpl_ctx *ctx, uint64_t seed)
{
    draft d = {.ctx = ctx};
    mpl_order_model *m = NULL;
    uint32_t n, more;

    d.rng = mpl_rng_of(seed);
    n = 2 + (uint32_t)mpl_rng_below(&d.rng, MOST_OPS - 1);
    draft_part(&d, MPL_NONE, n);
    more = seed % 3 == 0 ? 0 : (uint32_t)mpl_rng_below(&d.rng, 4);
    for (uint32_t i = 0; i < more; i++) { /* no longer series-parallel */
        uint32_t to = 1 + (uint32_t)mpl_rng_below(&d.rng, n - 1);

        add_edge(&d, (uint32_t)mpl_rng_below(&d.rng, to), to);
    }
    assert_ok(ctx, mpl_order_model_alloc(ctx, d.n, 2 * d.n, &m));
    m->n_buffers = 0;
    m->base = 16 * mpl_rng_below(&d.rng, 3);
    draft_buffers(&d, m);
    assert_ok(ctx, mpl_order_model_finish(ctx, m, &d.arcs));
    mpl_order_arcs_fini(ctx, &d.arcs);
    return m;
}

/* ---- oracle ---- */

/* The least peak over all orders: over all sets of done operations, by their number. */
static uint64_t least_peak(mpl_ctx *ctx, const mpl_order_model *m)
{
    static uint64_t least[1 << MOST_OPS];
    mpl_order_walk walk;

    assert_true(m->n <= MOST_OPS);
    memset(least, 0xff, sizeof least);
    least[0] = 0;
    assert_ok(ctx, mpl_order_walk_init(ctx, m, &walk));
    for (uint32_t set = 0; set + 1 < UINT32_C(1) << m->n; set++) {
        if (least[set] == UINT64_MAX)
            continue;
        mpl_order_walk_reset(&walk);
        for (uint32_t v = 0; v < m->n; v++)
            if (set >> v & 1)
                mpl_order_walk_run(&walk, v);
        for (uint32_t v = 0; v < m->n; v++)
            if (!walk.done[v] && walk.waits[v] == 0)
                least[set | 1u << v] = mpl_min_u64(
                    least[set | 1u << v], mpl_max_u64(least[set], mpl_order_walk_cost(&walk, v)));
    }
    mpl_order_walk_fini(ctx, &walk);
    return least[(UINT32_C(1) << m->n) - 1];
}

/* Any order of the reduced model is one of m, at no higher peak. */
static void check_unfolding(mpl_ctx *ctx, const mpl_order_model *m, const mpl_order_reduced *r)
{
    mpl_order_walk walk, runs;
    uint64_t peak = 0, reduced = 0;

    assert_ok(ctx, mpl_order_walk_init(ctx, m, &walk));
    assert_ok(ctx, mpl_order_walk_init(ctx, r->model, &runs));
    for (uint32_t i = 0; i < r->model->n; i++) {
        assert_true(runs.waits[i] == 0);
        reduced = mpl_max_u64(reduced, mpl_order_walk_cost(&runs, i));
        mpl_order_walk_run(&runs, i);
        for (uint32_t k = r->begin[i]; k < r->begin[i + 1]; k++) {
            assert_true(!walk.done[r->item[k]] && walk.waits[r->item[k]] == 0);
            peak = mpl_max_u64(peak, mpl_order_walk_cost(&walk, r->item[k]));
            mpl_order_walk_run(&walk, r->item[k]);
        }
        assert_int_equal(walk.live, runs.live);
    }
    assert_int_equal(walk.n_done, m->n);
    assert_int_equal(peak, reduced);
    mpl_order_walk_fini(ctx, &walk);
    mpl_order_walk_fini(ctx, &runs);
}

TEST(least_peak_stays)
{
    uint64_t n_models = number_asked("MPL_MODELS", 3000), n_chains = 0, n_ops = 0, n_left = 0;

    for (uint64_t seed = 0; seed < n_models; seed++) {
        mpl_order_model *m = random_model(ctx, seed);
        mpl_order_reduced r = {0};
        uint64_t ticks = 0, least = least_peak(ctx, m);

        assert_ok(ctx, mpl_order_reduce(ctx, m, &ticks, &r));
        check_unfolding(ctx, m, &r);
        if (least_peak(ctx, r.model) != least)
            fail_msg("model %" PRIu64 ": the least peak is %" PRIu64 ", %" PRIu64 " when reduced",
                     seed, least, least_peak(ctx, r.model));
        n_chains += r.model->before.begin[r.model->n] + 1 == r.model->n;
        n_ops += m->n;
        n_left += r.model->n;
        mpl_order_reduced_fini(ctx, &r);
        mpl_order_model_free(ctx, m);
    }
    print_message("%" PRIu64 " models of %" PRIu64 " operations, of which %" PRIu64 " stay\n",
                  n_models, n_ops, n_left);
    assert_int_equal(n_chains, n_models); /* so small that a whole model is one region */
    assert_true(4 * n_left < n_ops);
}

/* ---- networks ---- */

TEST(series_parallel_graphs_are_chains)
{
    for (int seed = 1; seed <= 20; seed++) {
        char spec[64];
        owned_graph *g = NULL;
        mpl_order_model *m = NULL;
        mpl_order_reduced r = {0};
        mpl_sets sets = {0};
        uint64_t ticks = 0;
        bool whole;

        snprintf(spec, sizeof spec, "series_parallel:ops=%d,seed=%d", 20 * seed, seed);
        assert_ok(ctx, mpl_zoo_build(ctx, spec, &g));
        assert_ok(ctx, mpl_order_model_new(ctx, g, NULL, &m));
        assert_ok(ctx, mpl_order_reduce(ctx, m, &ticks, &r));
        check_unfolding(ctx, m, &r);
        assert_ok(ctx, mpl_sets_of(ctx, r.model, 1000, &ticks, &sets, &whole));
        assert_true(whole && sets.n == r.model->n + 1);
        mpl_sets_fini(ctx, &sets);
        mpl_order_reduced_fini(ctx, &r);
        mpl_order_model_free(ctx, m);
    }
}

TEST(memory_runs_out)
{
    mpl_order_model *m = random_model(ctx, 3);

    EACH_ALLOCATION_FAILS (ctx, st) {
        mpl_order_reduced r = {0};
        uint64_t ticks = 0;

        st = mpl_order_reduce(ctx, m, &ticks, &r);
        assert_true(st == MPL_EMEM ? r.model == NULL : st == MPL_OK);
        mpl_order_reduced_fini(ctx, &r);
    }
    mpl_order_model_free(ctx, m);
}

TESTS(least_peak_stays, series_parallel_graphs_are_chains, memory_runs_out)
