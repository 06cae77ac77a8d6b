/* Orders of graphs that update weights: readers of a weight precede its update, the order model
 * counts what the problem counts, the least peak equals the least over all orders, and savings on
 * zoo networks. Fault: an anti-dependence or a reader that the model misses, gradients freed early
 * or late, wrong bounds. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/all_orders.h"
#include "tests/support/random_training.h"

#include "graphs/orders/orders_priv.h"

/* All readers of a weight or its views precede its update; checked from the graph alone, without
 * its update dependences. */
static void check_readers(const mpl_graph *g, const mpl_op *order)
{
    uint32_t *place = calloc(g->n_ops, sizeof *place);
    mpl_value *shows = calloc(g->n_values, sizeof *shows);

    assert_true(place != NULL && shows != NULL);
    for (uint32_t i = 0; i < g->n_ops; i++)
        place[order[i]] = i;
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_op maker = g->value_op[v];

        shows[v] = maker != MPL_NONE && mpl_may_be_view(g, maker)
                       ? shows[g->op_in[g->op_in_begin[maker]]]
                       : v;
    }
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = 0; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++) {
            mpl_value w = mpl_updated(g, op, i);

            for (mpl_op other = 0; w != MPL_NONE && other < g->n_ops; other++)
                for (uint32_t k = 0; k < mpl_n_read(g, other); k++)
                    if (other != op && g->op_in[g->op_in_begin[other] + k] != MPL_NONE &&
                        shows[g->op_in[g->op_in_begin[other] + k]] == w)
                        assert_true(place[other] < place[op]);
        }
    free(place);
    free(shows);
}

/* The model's peak of an order. */
static uint64_t model_peak(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *o,
                           const mpl_op *order)
{
    mpl_order_model *m = NULL;
    mpl_order_walk walk;
    uint64_t peak;

    assert_ok(ctx, mpl_order_model_new(ctx, g, o, &m));
    assert_ok(ctx, mpl_order_walk_init(ctx, m, &walk));
    peak = mpl_order_model_peak(&walk, order);
    mpl_order_walk_fini(ctx, &walk);
    mpl_order_model_free(ctx, m);
    return peak;
}

static mpl_problem_options options_of(uint64_t seed)
{
    mpl_problem_options o = random_options(seed);

    o.pin_inputs = true; /* else the first step counts for more than in the model */
    return o;
}

static void check_least(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *o,
                        uint64_t least)
{
    static const char *const names[] = {"least_peak", "beam", "anneal"};

    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        mpl_order_run run = mpl_order_run_default(ctx);
        mpl_op order[32];
        uint64_t peak;

        run.options = o;
        assert_ok(ctx, mpl_order_make(&run, mpl_order_find(names[k]), g, order));
        check_readers(g, order);
        peak = live_peak(ctx, g, order, o);
        assert_int_equal(run.live_bytes, peak);
        assert_true(run.bound_bytes <= least && least <= peak);
        assert_true(k > 0 || (peak == least && run.bound_bytes == least));
    }
}

/* All orders of small graphs: random ones with updates, and training graphs of random networks. */
TEST(least_of_all_orders)
{
    uint64_t n_graphs = number_asked("MPL_ORDERS", draws(900)), better = 0, n = 0, orders = 0;

    for (uint64_t seed = 0; seed < n_graphs; seed++) {
        owned_graph *g = seed % 3 == 2 ? random_training(ctx, seed, 1 + (uint32_t)(seed % 4))
                                       : random_update_graph(ctx, seed, 2 + (uint32_t)(seed % 5));
        mpl_problem_options o = options_of(seed);
        const uint64_t most = 3000;
        uint64_t n_orders, least = least_live_peak(ctx, g, &o, most, &n_orders);
        mpl_op given[32];

        count_up(g->n_ops, given);
        if (n_orders < most) {
            check_least(ctx, g, &o, least);
            better += least < live_peak(ctx, g, given, &o);
            orders += n_orders;
            n++;
        }
    }
    print_message("%" PRIu64 " graphs of %" PRIu64 " orders in all; %" PRIu64
                  " have a better one than the given one\n",
                  n, orders, better);
    assert_true(n * 10 > n_graphs * 8 && better * 8 > n);
}

/* Random orders of larger graphs: the model against the problem. */
TEST(model_and_problem)
{
    static const char *const zoo[] =
        ROW("mlp:mode=train,update=adam", "mnist_conv:mode=train,update=momentum",
            "mnist_conv:mode=train,update=sgd,products=apart,accumulate=chain",
            "lstm:layers=2,steps=3,hidden=8,mode=train,update=sgd",
            "mobilenet_v2:image=32,mode=train,update=sgd");

    for (uint64_t seed = 0; seed < draws(120); seed++) {
        mpl_problem_options o = options_of(seed);
        owned_graph *g = NULL;
        mpl_op *order;

        if (seed < 10)
            assert_ok(ctx, mpl_zoo_build(ctx, zoo[seed % 5], &g));
        else
            g = seed % 2 ? random_training(ctx, seed, 4 + (uint32_t)(seed % 20))
                         : random_update_graph(ctx, seed, 30);
        order = calloc(g->n_ops, sizeof *order);
        assert_non_null(order);
        for (uint64_t k = 0; k < 5; k++) {
            assert_ok(ctx, mpl_order_random(ctx, g, 5 * seed + k, order));
            check_readers(g, order);
            assert_int_equal(model_peak(ctx, g, &o, order), live_peak(ctx, g, order, &o));
        }
        free(order);
    }
}

/* Updates last in program order against the proven least peak: on average, memory falls by a third
 * or more (OLLA's claim). */
TEST(a_third_less)
{
    static const struct {
        const char *spec;
        double less; /* least relative saving over program order */
    } rows[] =
        ROW({"resnet50:mode=train,update=sgd", 0.43}, {"mobilenet_v2:mode=train,update=sgd", 0.059},
            {"vgg16:mode=train,update=sgd", 0.22}, {"inception_v3:mode=train,update=sgd", 0.333},
            {"lstm:batch=1,mode=train,update=sgd", 0.74});
    const double n = sizeof rows / sizeof *rows;
    double sum = 0;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mpl_problem_options o = mpl_problem_options_default();
        owned_graph *g = NULL;
        mpl_op *order;
        mpl_order_run run;
        double given;

        o.concat = MPL_CONCAT_COPY;
        assert_ok(ctx, mpl_zoo_build(ctx, rows[i].spec, &g));
        order = calloc(g->n_ops, sizeof *order);
        assert_non_null(order);
        assert_ok(ctx, mpl_order_find("given")->make(ctx, g, order));
        given = (double)model_peak(ctx, g, &o, order);
        run = mpl_order_run_default(ctx);
        run.options = &o;
        assert_ok(ctx, mpl_order_make(&run, mpl_order_find("least_peak"), g, order));
        check_readers(g, order);
        assert_int_equal(run.live_bytes, model_peak(ctx, g, &o, order));
        assert_int_equal(run.bound_bytes, run.live_bytes);
        assert_true((double)run.live_bytes <= (1 - rows[i].less) * given);
        sum += 1 - (double)run.live_bytes / given;
        print_message("%s: %.1f %% less\n", rows[i].spec,
                      100 * (1 - (double)run.live_bytes / given));
        free(order);
    }
    print_message("%.1f %% less on average\n", 100 * sum / n);
    assert_true(sum / n >= 1.0 / 3);
}

/* Separate pools: each buffer lies in its values' pool, pool 0 has what the order model counts, and
 * nothing is lost. */
TEST(pools_of_their_own)
{
    for (uint64_t seed = 0; seed < draws(240); seed++) {
        owned_graph *g = seed % 2 ? random_training(ctx, seed, 2 + (uint32_t)(seed % 9))
                                  : random_update_graph(ctx, seed, 12);
        mpl_problem_options o = options_of(seed);
        uint8_t *part = calloc(g->n_values, 1);
        mpl_op *order = calloc(g->n_ops, sizeof *order);
        owned_problem *p = NULL;
        owned_map *map = NULL;
        uint64_t live = 0;

        assert_true(order != NULL && part != NULL);
        o.own_pools = (unsigned)(seed % 8) << MPL_PART_WEIGHT;
        mpl_graph_parts(g, part);
        assert_ok(ctx, mpl_order_random(ctx, g, seed, order));
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
        assert_ok(ctx, mpl_problem_check(ctx, p));
        for (mpl_value v = 0; v < g->n_values; v++) {
            bool own = (o.own_pools >> part[v] & 1) != 0 && part[v] != MPL_PART_NONE;

            if (g->value_role[v] == MPL_WEIGHT && o.pin_weights && !own && map->value_root[v] == v)
                assert_int_equal(map->value_buffer[v], MPL_NONE);
            else if (own &&
                     (map->value_root[v] == v || g->value_role[map->value_root[v]] != MPL_WEIGHT))
                assert_string_equal(p->pool_name[p->pool[map->value_buffer[v]]],
                                    mpl_part_name(part[v]));
        }
        for (uint32_t i = 0; i < p->n_in_place; i++)
            assert_int_equal(p->pool[p->in_place_in[i]], p->pool[p->in_place_out[i]]);
        assert_ok(ctx, mpl_peak_live(ctx, p, 0, &live, NULL, NULL));
        assert_true(live <= model_peak(ctx, g, &o, order));
        assert_true(live + o.align > model_peak(ctx, g, &o, order));
        free(part);
        free(order);
    }
}

/* The terms of a gradient sum lie in the sum's pool, so that it can overwrite one of them: two
 * pools need little more than one. */
TEST(parts_lie_with_their_sum)
{
    static const char *const specs[] = {
        "lstm:layers=2,steps=8,hidden=64,batch=1,mode=train,update=sgd",
        "gru:steps=8,hidden=64,batch=1,mode=train,update=sgd,accumulate=chain"};

    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        mpl_problem_options o = mpl_problem_options_default();
        uint64_t live[3] = {0};
        mpl_op *order;
        owned_graph *g = zoo_graph(ctx, specs[i]);

        order = calloc(g->n_ops, sizeof *order);
        assert_non_null(order);
        count_up(g->n_ops, order);
        for (int own = 0; own < 2; own++) {
            owned_problem *p = NULL;
            owned_map *map = NULL;

            o.own_pools = own ? 1u << MPL_PART_GRADIENT : 0;
            assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
            assert_int_equal(p->n_pools, 1 + own);
            for (uint32_t pool = 0; pool < p->n_pools; pool++)
                assert_ok(ctx, mpl_peak_live(ctx, p, pool, &live[own + pool], NULL, NULL));
        }
        if (!(live[1] + live[2] <= live[0] + live[0] / 5))
            fail_msg("%s: %" PRIu64 " and %" PRIu64 " bytes, in one pool %" PRIu64, specs[i],
                     live[1], live[2], live[0]);
        free(order);
    }
}

TEST(survive_lost_memory)
{
    mpl_problem_options o = mpl_problem_options_default();
    owned_graph *g = NULL;

    o.own_pools = 1u << MPL_PART_GRADIENT | 1u << MPL_PART_STATE;
    assert_ok(
        ctx, mpl_zoo_build(ctx, "lstm:layers=1,steps=2,hidden=8,batch=1,mode=train,update=momentum",
                           &g));
    for (int what = 0; what < 2; what++) {
        mpl_status st = MPL_EMEM;

        for (int64_t k = 0, live = ctx->n_live; st == MPL_EMEM; k += 1 + k / 50) {
            mpl_op order[400];
            mpl_problem *p = NULL;
            mpl_value_map *map = NULL;
            mpl_order_run run;

            assert_true(g->n_ops <= 400);
            count_up(g->n_ops, order);
            run = mpl_order_run_default(ctx);
            ctx->n_allocs = 0, ctx->fail_after = k;
            st = what == 0 ? mpl_order_make(&run, mpl_order_find("least_peak"), g, order)
                           : mpl_problem_from_graph(ctx, g, order, &o, &p, &map);
            ctx->fail_after = -1;
            mpl_problem_free(ctx, p);
            mpl_value_map_free(ctx, map);
            assert_int_equal(ctx->n_live, live);
        }
        assert_ok(ctx, st);
    }
}

TESTS(least_of_all_orders, model_and_problem, a_third_less, pools_of_their_own,
      parts_lie_with_their_sum, survive_lost_memory)
