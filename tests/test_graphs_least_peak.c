/* Orders that search: never above another order, equal to the least of all orders on small graphs, their bounds never above it. */
#include "tests/random_graph.h"

#include "graphs/orders/orders_priv.h"
#include "graphs/source.h"

typedef struct brute {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_problem_options *o;
    mpl_op order[16];
    bool done[16];
    uint64_t least, orders;
} brute;

/* Every order there is, each judged through its problem. */
static void try_all(brute *b, uint32_t n)
{
    const mpl_graph *g = b->g;

    if (n == g->n_ops) {
        b->least = mpl_min_u64(b->least, live_peak(b->ctx, g, b->order, b->o));
        b->orders++;
        return;
    }
    for (mpl_op op = 0; op < g->n_ops; op++) {
        bool ready = !b->done[op];

        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            ready = ready && (g->value_op[g->op_in[i]] == MPL_NONE || b->done[g->value_op[g->op_in[i]]]);
        if (!ready)
            continue;
        b->done[op] = true;
        b->order[n] = op;
        try_all(b, n + 1);
        b->done[op] = false;
    }
}

static const char *const searching[] = {"least_peak", "beam", "anneal"};

static void least_of_all_orders(void **state)
{
    const char *text = getenv("MPL_ORDERS");
    uint64_t n_graphs = text != NULL ? strtoull(text, NULL, 10) : 1500, better = 0;
    mpl_ctx ctx;

    (void)state;
    mpl_ctx_init(&ctx);
    for (uint64_t seed = 0; seed < n_graphs; seed++) {
        mpl_graph *g = random_graph(&ctx, seed, 2 + (uint32_t)(seed % 7), 3 + (uint32_t)(seed / 7 % 4));
        mpl_problem_options o = random_options(seed);
        brute all = {.ctx = &ctx, .g = g, .o = &o, .least = UINT64_MAX};
        mpl_op order[16], given[16];

        try_all(&all, 0);
        for (mpl_op op = 0; op < g->n_ops; op++)
            given[op] = op;
        for (size_t k = 0; k < sizeof searching / sizeof *searching; k++) {
            mpl_order_run run;
            uint64_t peak;

            mpl_order_run_init(&run, &ctx);
            run.options = &o;
            assert_ok(&ctx, mpl_order_make(&run, mpl_order_find(searching[k]), g, order));
            peak = live_peak(&ctx, g, order, &o);
            if (o.pin_inputs) { /* else the first step counts for more than the model says */
                assert_int_equal(run.live_bytes, peak);
                if (k == 0)
                    assert_int_equal(peak, all.least);
            }
            assert_true(run.bound_bytes <= all.least);
            assert_true(peak >= all.least);
            if (k == 0)
                assert_int_equal(run.bound_bytes, run.live_bytes);
        }
        better += all.least < live_peak(&ctx, g, given, &o);
        mpl_graph_free(&ctx, g);
    }
    print_message("%" PRIu64 " graphs, of which %" PRIu64 " have a better order than the given one\n",
                  n_graphs, better);
    assert_true(better * 5 > n_graphs);
    assert_int_equal(ctx.n_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(least_of_all_orders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
