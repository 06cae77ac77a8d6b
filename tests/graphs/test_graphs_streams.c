/* Streams: what every rule promises, on random graphs with and without control flow; simulated
 * times against streams that are run from their heads. */
#include "graphs/orders/op_streams.h"
#include "tests/support/random_control.h"
#include "tests/support/random_graph.h"

/* A random graph, every third with control flow. */
static mpl_graph *draw(mpl_ctx *ctx, uint64_t seed)
{
    uint32_t n = 2 + (uint32_t)seed % 22;

    return seed % 3 == 2 ? random_control_of(ctx, seed, n) : random_graph(ctx, seed, n, 4);
}

/* Whether unit `reader` reads a result of `maker`, in any of its blocks. */
static bool reads(const mpl_graph *g, mpl_op reader, mpl_op maker)
{
    for (uint32_t i = g->op_out_begin[maker]; i < g->op_out_begin[maker + 1]; i++)
        for (uint32_t k = g->op_out[i] != MPL_NONE ? g->value_use_begin[g->op_out[i]] : 0;
             g->op_out[i] != MPL_NONE && k < g->value_use_begin[g->op_out[i] + 1]; k++)
            if (mpl_op_outermost(g, g->value_use[k]) == reader)
                return true;
    return false;
}

/* Runs what stands at the heads of the streams until nothing is left; returns when the last ends.
 */
static uint64_t run_heads(const mpl_graph *g, const mpl_op *order, const uint32_t *stream,
                          uint32_t n, const uint64_t *cost)
{
    uint64_t end[64], makespan = 0, *free_at = calloc(n, sizeof *free_at);
    uint32_t *head = calloc(n, sizeof *head), n_left = count_units(g);
    bool done[64] = {false};

    assert_true(g->n_ops <= 64);
    while (n_left > 0) {
        bool ran = false;

        for (uint32_t k = 0; k < n; k++) {
            uint64_t at = free_at[k];
            bool ready = true;
            mpl_op op;

            while (head[k] < g->n_ops &&
                   (stream[order[head[k]]] != k || g->op_block[order[head[k]]] != 0))
                head[k]++;
            if (head[k] == g->n_ops)
                continue;
            op = order[head[k]];
            for (mpl_op other = 0; other < g->n_ops; other++)
                if (g->op_block[other] == 0 && other != op && reads(g, op, other)) {
                    ready = ready && done[other];
                    at = done[other] && end[other] > at ? end[other] : at;
                }
            if (!ready)
                continue;
            for (mpl_op inner = 0; inner < g->n_ops; inner++)
                at += mpl_op_outermost(g, inner) == op ? cost[inner] : 0;
            free_at[k] = end[op] = at;
            makespan = mpl_max_u64(makespan, at);
            done[op] = ran = true;
            head[k]++, n_left--;
        }
        assert_true(ran);
    }
    free(free_at);
    free(head);
    return makespan;
}

static void check(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order, uint32_t n,
                  mpl_stream_rule rule, const uint64_t *cost)
{
    uint64_t sum = 0, span, least;
    uint32_t n_units = count_units(g), next = 0;
    mpl_streams *s = NULL, *again = NULL;

    assert_ok(ctx, mpl_streams_new(ctx, g, order, n, rule, cost, &s));
    assert_ok(ctx, mpl_streams_new(ctx, g, order, n, rule, cost, &again));
    assert_memory_equal(s->op_stream, again->op_stream, g->n_ops * sizeof *s->op_stream);
    assert_int_equal(s->rule, rule);
    assert_ok(ctx, mpl_streams_check(ctx, g, s));
    for (uint32_t i = 0; i < g->n_ops && n >= n_units; i++)
        if (g->op_block[order[i]] == 0)
            assert_int_equal(s->op_stream[order[i]], next++);
    for (mpl_op op = 0; op < g->n_ops; op++)
        sum += cost[op];
    assert_ok(ctx, mpl_streams_simulate(ctx, g, order, s->op_stream, cost, NULL, &span));
    assert_ok(ctx, mpl_streams_simulate(ctx, g, order, NULL, cost, NULL, &least));
    assert_int_equal(span, run_heads(g, order, s->op_stream, n, cost));
    assert_true(least <= span && span <= sum);
    assert_true(n > 1 || span == sum);
    assert_true(n < n_units || span == least);
    mpl_streams_free(ctx, s);
    mpl_streams_free(ctx, again);
}

TEST(rules_on_random_graphs)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        owned_graph *g = draw(ctx, seed);
        owned_memory mpl_op *order = order_by(ctx, g, seed % 2 == 0 ? "given" : "bfs");
        uint64_t cost[64];
        mpl_rng rng = mpl_rng_of(seed);

        for (mpl_op op = 0; op < g->n_ops; op++)
            cost[op] = mpl_rng_below(&rng, 5) * 10;
        for (uint32_t n = 1; n <= 5; n++)
            for (uint32_t rule = 0; rule < MPL_N_STREAM_RULES; rule++)
                check(ctx, g, order, n < 5 ? n : count_units(g) + 3, (mpl_stream_rule)rule, cost);
    }
}

/* Two chains of unequal lengths and a third one behind both. */
#define FORK                                                                                       \
    "graph g\ninput i f32 [64]\na = sin(i)\nb = cos(a)\nc = tan(b)\nd = sin(i)\ne = cos(d)\n"      \
    "f = add(c, e)\nh = sin(f)\noutput h\n"

TEST(chains_stay_together)
{
    static const struct {
        mpl_stream_rule rule;
        uint32_t stream[7];
    } rows[] = {
        {MPL_STREAMS_critical_path, {0, 0, 0, 1, 1, 0, 0}},
        {MPL_STREAMS_earliest, {0, 0, 0, 1, 1, 0, 0}},
        {MPL_STREAMS_chain, {0, 0, 0, 1, 1, 0, 0}},
        {MPL_STREAMS_round_robin, {0, 1, 0, 1, 0, 1, 0}},
    };
    owned_graph *g = text_graph(ctx, FORK);
    owned_memory mpl_op *order = order_by(ctx, g, "given");

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mpl_streams *s = NULL;
        mpl_stream_rule rule;

        assert_true(mpl_stream_rule_find(mpl_stream_rule_name(rows[i].rule), &rule));
        assert_ok(ctx, mpl_streams_new(ctx, g, order, 2, rule, NULL, &s));
        assert_memory_equal(s->op_stream, rows[i].stream, sizeof rows[i].stream);
        mpl_streams_free(ctx, s);
    }
}

TEST(what_is_wrong_is_refused)
{
    owned_graph *g = text_graph(ctx, FORK);
    owned_memory mpl_op *order = order_by(ctx, g, "given");
    mpl_streams *s = NULL;
    mpl_stream_rule rule;

    assert_false(mpl_stream_rule_find("none", &rule));
    assert_status(ctx, mpl_streams_new(ctx, g, order, 0, MPL_STREAMS_critical_path, NULL, &s),
                  MPL_EINPUT);
    assert_null(s);
    s = &(mpl_streams){.n_ops = 7, .n = 2, .op_stream = (uint32_t[]){0, 1, 0, 1, 2, 0, 0}};
    assert_status(ctx, mpl_streams_check(ctx, g, s), MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "'e' is on stream 2"));
}

TEST(lose_memory)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        owned_graph *g = draw(ctx, seed);
        owned_memory mpl_op *order = order_by(ctx, g, "given");
        uint64_t cost[64], span;

        mpl_streams_estimate(g, cost);
        EACH_ALLOCATION_FAILS (ctx, st) {
            mpl_streams *s = NULL;

            st = mpl_streams_new(ctx, g, order, 2, MPL_STREAMS_critical_path, NULL, &s);
            if (st == MPL_OK)
                st = mpl_streams_simulate(ctx, g, order, s->op_stream, cost, NULL, &span);
            mpl_streams_free(ctx, s);
        }
    }
}

TESTS(rules_on_random_graphs, chains_stay_together, what_is_wrong_is_refused, lose_memory)
