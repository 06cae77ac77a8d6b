/* Search orders: never worse than another order, equal to the least over all orders on small
 * graphs, and with bounds never above it. */
#include "tests/support/all_orders.h"

#include "graphs/orders/orders_priv.h"

static const char *const searching[] = {"least_peak", "beam", "anneal"};

TEST(least_of_all_orders)
{
    uint64_t n_graphs = number_asked("MPL_ORDERS", 1500), better = 0;

    for (uint64_t seed = 0; seed < n_graphs; seed++) {
        owned_graph *g =
            random_graph(ctx, seed, 2 + (uint32_t)(seed % 7), 3 + (uint32_t)(seed / 7 % 4));
        mpl_problem_options o = random_options(seed);
        uint64_t n_orders, least = least_live_peak(ctx, g, &o, 0, &n_orders);
        mpl_op order[16], given[16];

        count_up(g->n_ops, given);
        for (size_t k = 0; k < sizeof searching / sizeof *searching; k++) {
            mpl_order_run run = mpl_order_run_default(ctx);
            uint64_t peak;

            run.options = &o;
            assert_ok(ctx, mpl_order_make(&run, mpl_order_find(searching[k]), g, order));
            peak = live_peak(ctx, g, order, &o);
            if (o.pin_inputs) { /* else the first step counts for more than in the model */
                assert_int_equal(run.live_bytes, peak);
                if (k == 0)
                    assert_int_equal(peak, least);
            }
            assert_true(run.bound_bytes <= least);
            assert_true(peak >= least);
            if (k == 0)
                assert_int_equal(run.bound_bytes, run.live_bytes);
        }
        better += least < live_peak(ctx, g, given, &o);
    }
    print_message("%" PRIu64 " graphs, of which %" PRIu64
                  " have a better order than the given one\n",
                  n_graphs, better);
    assert_true(better * 5 > n_graphs);
}

/* ---- each part by itself ---- */

/* The peak of an order under a model; checks that it is a permutation that respects the model. */
static uint64_t peak_of(mpl_ctx *ctx, const mpl_order_model *m, const uint32_t *order)
{
    mpl_order_walk walk;
    uint64_t peak;
    uint8_t seen[64] = {0};

    for (uint32_t i = 0; i < m->n; i++) {
        assert_true(order[i] < m->n && !seen[order[i]]);
        seen[order[i]] = 1;
        for (uint32_t j = m->before.begin[order[i]]; j < m->before.begin[order[i] + 1]; j++)
            assert_true(seen[m->before.item[j]]);
    }
    assert_ok(ctx, mpl_order_walk_init(ctx, m, &walk));
    peak = mpl_order_model_peak(&walk, order);
    mpl_order_walk_fini(ctx, &walk);
    return peak;
}

/* Best-first search from the id order alone; checks its claim and result. */
static void search_alone(mpl_ctx *ctx, const mpl_order_model *m, size_t states, uint64_t budget,
                         uint64_t *peak, uint64_t *bound, bool *done)
{
    mpl_effort effort = {.budget = budget, .deadline_ns = INT64_MAX};
    uint32_t order[64];

    count_up(m->n, order);
    *peak = peak_of(ctx, m, order);
    assert_ok(ctx, mpl_order_best_first(ctx, m, 0, states, &effort, order, peak, bound, done));
    assert_int_equal(*peak, peak_of(ctx, m, order));
    assert_true(*bound <= *peak && (!*done || *bound == *peak));
}

typedef struct mended {
    uint32_t n, better, least, proved;
} mended_counts;

static void check_parts(mpl_ctx *ctx, const mpl_order_model *m, uint64_t least,
                        mended_counts *mended)
{
    mpl_effort effort = {.budget = UINT64_MAX, .deadline_ns = INT64_MAX};
    mpl_order_model *reverse = NULL;
    uint32_t order[64], result[64];
    uint64_t peak, bound, given;
    bool done;

    count_up(m->n, order);
    given = peak_of(ctx, m, order);
    assert_ok(ctx, mpl_order_cut_bound(ctx, m, order, 0, &effort, &bound));
    assert_true(bound <= least);
    for (int start = 0; start < 3; start++) { /* the group bound, from three orders */
        peak = given;
        memcpy(result, order, m->n * sizeof *order);
        if (start > 0)
            assert_ok(ctx, mpl_order_mend(ctx, m, 0, start == 2, &effort, result, &peak));
        assert_int_equal(peak, peak_of(ctx, m, result));
        assert_true(peak <= given && peak >= least);
        assert_ok(ctx, mpl_order_group_bound(ctx, m, 0, &effort, result, &peak, &bound));
        assert_int_equal(peak, peak_of(ctx, m, result));
        assert_true(bound <= least && peak >= least);
        mended->better += peak < given;
        mended->least += peak == least;
        mended->proved += bound == least;
        mended->n++;
    }
    assert_ok(ctx, mpl_order_model_reverse(ctx, m, &reverse));
    for (int back = 0; back < 2; back++) {
        const mpl_order_model *x = back ? reverse : m;

        search_alone(ctx, x, 1000000, UINT64_MAX, &peak, &bound, &done);
        assert_true(done && peak == least);
        for (uint64_t little = 1; little < 1000; little *= 3) {
            search_alone(ctx, x, little, UINT64_MAX, &peak, &bound, &done);
            assert_true(bound <= least && peak >= least);
            search_alone(ctx, x, 1000000, 10 * little, &peak, &bound, &done);
            assert_true(bound <= least && peak >= least);
        }
    }
    for (int way = 0; way < 2; way++) {
        count_up(m->n, order);
        peak = given;
        if (way == 0)
            assert_ok(ctx, mpl_order_beam(ctx, m, 0, 3, &effort, order, &peak));
        else
            assert_ok(ctx, mpl_order_anneal(ctx, m, 0, 7, 300, &effort, order, &peak));
        assert_int_equal(peak, peak_of(ctx, m, order));
        assert_true(peak <= given && peak >= least);
    }
    mpl_order_model_free(ctx, reverse);
}

TEST(parts_by_themselves)
{

    mended_counts mended = {0};

    for (uint64_t seed = 0; seed < draws(500); seed++) {
        owned_graph *g =
            random_graph(ctx, seed, 2 + (uint32_t)(seed % 7), 3 + (uint32_t)(seed / 7 % 4));
        mpl_problem_options o = random_options(seed);
        mpl_order_model *m = NULL;
        uint64_t n_orders, least;

        o.pin_inputs = true;
        least = least_live_peak(ctx, g, &o, 0, &n_orders);
        assert_ok(ctx, mpl_order_model_new(ctx, g, &o, &m));
        check_parts(ctx, m, least, &mended);
        mpl_order_model_free(ctx, m);
    }

    print_message("mending: of %u orders %u got better, %u the least, %u proved by groups\n",
                  mended.n, mended.better, mended.least, mended.proved);

    assert_true(mended.least * 4 > mended.n * 3 && mended.proved * 4 > mended.n * 3);
}

/* Trees of relus, sums and concats: every value is read once. */
static mpl_graph *random_tree(mpl_ctx *ctx, uint64_t seed, uint32_t n_ops)
{
    mpl_graph *g = NULL;
    mpl_value pool[64];
    uint32_t n = 0;
    mpl_rng rng = mpl_rng_of(seed);

    assert_ok(ctx, mpl_graph_new(ctx, "tree", &g));
    for (uint32_t i = 0; i < n_ops; i++) {
        uint32_t a = n > 0 ? (uint32_t)mpl_rng_below(&rng, n) : 0,
                 kind = (uint32_t)mpl_rng_below(&rng, 4);
        mpl_value in[2];
        char name[16];

        snprintf(name, sizeof name, "v%u", i);
        if (n < 2 || (kind == 0 && i + n < n_ops - 1)) { /* a leaf with its own input */
            mpl_shape shape = {1, {(int64_t)(16 * (1 + mpl_rng_below(&rng, 9)))}};
            char input[16];

            snprintf(input, sizeof input, "in%u", i);
            assert_ok(ctx,
                      mpl_graph_add_value(ctx, g, input, MPL_INPUT, MPL_TYPE_f32, &shape, &in[0]));
            assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_relu, name, 1, in, 0, NULL, 1,
                                            (const char *[]){name}, &pool[n++]));
            continue;
        }
        if (kind == 1) {
            in[0] = pool[a];
            assert_ok(ctx, mpl_graph_add_op(
                               ctx, g, mpl_rng_below(&rng, 2) ? MPL_OP_reduce_sum : MPL_OP_relu,
                               name, 1, in, 0, NULL, 1, (const char *[]){name}, &pool[a]));
        } else {
            in[0] = pool[a];
            pool[a] = pool[--n];
            in[1] = pool[a = (uint32_t)mpl_rng_below(&rng, n)];
            assert_ok(ctx,
                      mpl_graph_add_op(ctx, g, MPL_OP_concat, name, 2, in, 1, &MPL_INT(axis, 0), 1,
                                       (const char *[]){name}, &pool[a]));
        }
    }
    for (uint32_t i = 0; i < n; i++)
        assert_ok(ctx, mpl_graph_add_output(ctx, g, pool[i]));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

/* Trees too large to enumerate: cuts alone prove the least peak, which both searches reach. */
TEST(larger_trees)
{
    uint32_t better = 0, proved = 0;

    for (uint64_t seed = 0; seed < draws(300); seed++) {
        owned_graph *g = random_tree(ctx, seed, 10 + (uint32_t)seed % 20);
        mpl_problem_options o = random_options(seed);
        mpl_order_model *m = NULL, *reverse = NULL;
        mpl_order_run run;
        mpl_op order[64];
        uint64_t bound, peak, least;
        bool done;

        o.pin_inputs = true;
        assert_ok(ctx, mpl_order_model_new(ctx, g, &o, &m));
        assert_ok(ctx, mpl_order_model_reverse(ctx, m, &reverse));
        run = mpl_order_run_default(ctx);
        run.options = &o;
        run.n_params = 1;
        run.param_key = (const char *const[]){"without"};
        run.param_value = (const char *const[]){"plain+beam+search"};
        assert_ok(ctx, mpl_order_make(&run, mpl_order_find("least_peak"), g, order));
        count_up(m->n, order);
        better += run.live_bytes < peak_of(ctx, m, order);
        proved += run.bound_bytes == run.live_bytes;
        search_alone(ctx, m, 1000000, UINT64_MAX, &least, &bound, &done);
        assert_true(done && run.bound_bytes <= least && least <= run.live_bytes);
        search_alone(ctx, reverse, 1000000, UINT64_MAX, &peak, &bound, &done);
        assert_true(done && peak == least);
        mpl_order_model_free(ctx, m);
        mpl_order_model_free(ctx, reverse);
    }
    print_message("of 300 trees %u have a better order than the given one, %u proved by cuts\n",
                  better, proved);
    assert_true(often(better > 60 && proved > 250));
}

/* Larger graphs: both directions agree with the combination of all parts, deterministically. */
TEST(larger_graphs)
{
    for (uint64_t seed = 0; seed < draws(120); seed++) {
        owned_graph *g = random_graph(ctx, seed, 12 + (uint32_t)(seed % 18), 5);
        mpl_problem_options o = random_options(seed);
        mpl_order_model *m = NULL, *reverse = NULL;
        mpl_op order[2][64];
        uint64_t bound, peak[2];
        bool done;

        o.pin_inputs = true;
        assert_ok(ctx, mpl_order_model_new(ctx, g, &o, &m));
        assert_ok(ctx, mpl_order_model_reverse(ctx, m, &reverse));
        search_alone(ctx, m, 1000000, UINT64_MAX, &peak[0], &bound, &done);
        search_alone(ctx, reverse, 1000000, UINT64_MAX, &peak[1], &bound, &done);
        assert_int_equal(peak[0], peak[1]);
        for (int again = 0; again < 2; again++) {
            mpl_order_run run = mpl_order_run_default(ctx);

            run.options = &o;
            assert_ok(ctx, mpl_order_make(&run, mpl_order_find("least_peak"), g, order[again]));
            assert_int_equal(run.live_bytes, peak[0]);
            assert_int_equal(run.bound_bytes, peak[0]);
            assert_int_equal(live_peak(ctx, g, order[again], &o), peak[0]);
        }
        assert_memory_equal(order[0], order[1], g->n_ops * sizeof **order);
        mpl_order_model_free(ctx, m);
        mpl_order_model_free(ctx, reverse);
    }
}

/* The zoo's random-wired network: its proven least peak, and the saving. */
TEST(random_wiring)
{
    static const struct {
        const char *spec;
        double ratio; /* least saving over program order */
    } rows[] = ROW({"randwire:regime=cell,image=32,nodes=32", 1.2},
                   {"randwire:regime=cell,image=32,neighbours=2,rewired=100", 1.7},
                   {"randwire:regime=cell,image=32,neighbours=2,form=fused,nodes=48,seed=2", 1.7});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mpl_problem_options o = mpl_problem_options_default();
        mpl_op *order;
        mpl_order_run run;
        uint64_t given;
        owned_graph *g = zoo_graph(ctx, rows[i].spec);

        assert_true(g->n_ops <= 150);
        order = calloc(g->n_ops, sizeof *order);
        assert_non_null(order);
        assert_ok(ctx, mpl_order_find("given")->make(ctx, g, order));
        given = live_peak(ctx, g, order, &o);
        run = mpl_order_run_default(ctx);
        assert_ok(ctx, mpl_order_make(&run, mpl_order_find("least_peak"), g, order));
        assert_int_equal(run.live_bytes, live_peak(ctx, g, order, &o));
        assert_int_equal(run.bound_bytes, run.live_bytes);
        assert_true((double)given >= rows[i].ratio * (double)run.live_bytes);
        free(order);
    }
}

/* With any one rule disabled, no bound exceeds the least peak and no order goes below it. */
/* Graphs of some 2,000 operations: proved where they are narrow, deep or series-parallel, in few
 * ticks. Of rows of layers wired at random the order is no worse than the best plain one. */
TEST(two_thousand_operations)
{
    static const struct {
        const char *spec;
        uint64_t ticks;
        double most; /* live bytes over the bound */
    } rows[] =
        ROW({"lstm:layers=2,steps=48", 20000000, 1},
            {"resnet_cifar:blocks=34,mode=train,update=sgd", 20000000, 1},
            {"series_parallel:ops=2000", 20000000, 1},
            {"series_parallel:ops=2000,seed=2", 20000000, 1}, {"layered:ops=2000", 3000000, 2});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        owned_graph *g = NULL;
        mpl_order_run run;
        owned_memory mpl_op *order = NULL;
        mpl_order_model *m = NULL;
        mpl_order_walk walk;

        assert_ok(ctx, mpl_zoo_build(ctx, rows[i].spec, &g));
        assert_ok(ctx, mpl_new(ctx, order, g->n_ops));
        run = mpl_order_run_default(ctx);
        run.budget_ticks = rows[i].ticks;
        assert_ok(ctx, mpl_order_make(&run, mpl_order_find("least_peak"), g, order));
        assert_ok(ctx, mpl_order_model_new(ctx, g, NULL, &m));
        assert_ok(ctx, mpl_order_walk_init(ctx, m, &walk));
        assert_int_equal(run.live_bytes, mpl_order_model_peak(&walk, order));
        mpl_order_walk_fini(ctx, &walk);
        mpl_order_model_free(ctx, m);
        assert_true(run.bound_bytes > 0 && run.bound_bytes <= run.live_bytes);
        if ((double)run.live_bytes > rows[i].most * (double)run.bound_bytes)
            fail_msg("%s: %" PRIu64 " live, bound %" PRIu64, rows[i].spec, run.live_bytes,
                     run.bound_bytes);
    }
}

TEST(rules_left_out)
{
    static const char *const rules[] = {
#define RULE(name, about) #name,
#include "graphs/orders/order_rules.def"
#undef RULE
    };
    uint32_t n_proved = 0;

    for (uint64_t seed = 0; seed < draws(100); seed++) {
        owned_graph *g = random_graph(ctx, seed, 2 + (uint32_t)(seed % 7), 4);
        mpl_problem_options o = random_options(seed);
        uint64_t n_orders, least;

        o.pin_inputs = true;
        least = least_live_peak(ctx, g, &o, 0, &n_orders);
        for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
            mpl_order_run run = mpl_order_run_default(ctx);
            mpl_op order[64];

            run.options = &o;
            run.n_params = 1;
            run.param_key = (const char *const[]){"without"};
            run.param_value = &rules[i];
            assert_ok(ctx, mpl_order_make(&run, mpl_order_find("least_peak"), g, order));
            if (run.bound_bytes > least || run.live_bytes < least)
                fail_msg("seed %" PRIu64 " without %s: %" PRIu64 " live, bound %" PRIu64
                         ", the least is %" PRIu64,
                         seed, rules[i], run.live_bytes, run.bound_bytes, least);
            n_proved += run.bound_bytes == run.live_bytes;
        }
    }
    assert_true(often(n_proved > 900));
}

TEST(parameters)
{
    static const struct {
        const char *order, *key, *value;
        mpl_status st;
    } rows[] = ROW(
        {"least_peak", "states", "10", MPL_OK}, {"least_peak", "states", "0", MPL_EINPUT},
        {"least_peak", "rounds", "5", MPL_EINPUT}, {"least_peak", "ticks", "1", MPL_OK},
        {"beam", "width", "2", MPL_OK}, {"beam", "width", "-2", MPL_EINPUT},
        {"anneal", "rounds", "1x", MPL_EINPUT}, {"anneal", "rounds", "10", MPL_OK},
        {"given", "width", "2", MPL_EINPUT}, {"least_peak", "without", "cut+mend+search", MPL_OK},
        {"least_peak", "without", "cut+all", MPL_EINPUT});
    owned_graph *g = random_graph(ctx, 5, 30, 5);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mpl_order_run run = mpl_order_run_default(ctx);
        mpl_op order[64];

        run.n_params = 1;
        run.param_key = &rows[i].key;
        run.param_value = &rows[i].value;
        assert_status(ctx, mpl_order_make(&run, mpl_order_find(rows[i].order), g, order),
                      rows[i].st);
        assert_true(rows[i].st != MPL_OK || run.bound_bytes <= run.live_bytes);
    }
}

TESTS(least_of_all_orders, parts_by_themselves, larger_trees, larger_graphs, random_wiring,
      two_thousand_operations, rules_left_out, parameters)
