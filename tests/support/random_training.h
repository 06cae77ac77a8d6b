/* random_training.h -- small random graphs that update weights. */
#pragma once

#include "tests/support/random_graph.h"

/* Whether `op` depends on `other`; ids ascend. */
static inline bool waits_for(const mpl_graph *g, mpl_op op, mpl_op other)
{
    bool waits = false;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1] && !waits; i++) {
        mpl_op maker = g->value_op[g->op_in[i]];

        waits =
            maker != MPL_NONE && maker >= other && (maker == other || waits_for(g, maker, other));
    }
    return waits;
}

/* The weight or input that v is, directly or through views; else MPL_NONE. */
static inline mpl_value shown_by(const mpl_graph *g, mpl_value v)
{
    while (g->value_op[v] != MPL_NONE && mpl_may_be_view(g, g->value_op[v]))
        v = g->op_in[g->op_in_begin[g->value_op[v]]];
    return g->value_op[v] == MPL_NONE ? v : MPL_NONE;
}

/* Adds an update of weight w by a value of its size, with momentum if there is a state. It also
 * takes as inputs all readers of w that it would not depend on. Adds nothing if no value fits. */
static inline void add_update(mpl_ctx *ctx, mpl_graph *g, mpl_rng *rng, mpl_value w,
                              mpl_value state)
{
    mpl_value in[16], fit[64], out[2];
    uint32_t n = 0, n_fit = 0, n_ops = g->n_ops;
    bool momentum = state != MPL_NONE;
    char name[2][16];

    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_value v = g->op_out[g->op_out_begin[op]];

        if (mpl_n_updates((mpl_op_kind)g->op_kind[op]) == 0 && shown_by(g, v) == MPL_NONE &&
            mpl_shape_equal(&g->value_shape[v], &g->value_shape[w]))
            fit[n_fit++] = v;
    }
    if (n_fit == 0)
        return;
    in[n++] = fit[mpl_rng_below(rng, n_fit)];
    in[n++] = w;
    if (momentum)
        in[n++] = state;
    for (mpl_op op = n_ops; op-- > 0;)
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
            bool waits = shown_by(g, g->op_in[i]) != w;

            for (uint32_t k = 0; k < n && !waits; k++)
                waits = g->value_op[in[k]] != MPL_NONE &&
                        (g->value_op[in[k]] == op || waits_for(g, g->value_op[in[k]], op));
            if (!waits)
                in[n++] = g->op_out[g->op_out_begin[op]];
        }
    snprintf(name[0], sizeof name[0], "next%u", w);
    snprintf(name[1], sizeof name[1], "state%u", w);
    assert_ok(ctx, mpl_graph_add_op(ctx, g, momentum ? MPL_OP_momentum_update : MPL_OP_sgd_update,
                                    name[0], n, in, 0, NULL, 1 + momentum,
                                    (const char *[]){name[0], name[1]}, out));
    for (int i = 0; i <= momentum; i++)
        assert_ok(ctx, mpl_graph_add_output(ctx, g, out[i]));
}

/* At most n_ops operations over inputs and weights, then at most three updates. Weights are also
 * read directly, so most updates wait for more than their gradient. */
static inline mpl_graph *random_update_graph(mpl_ctx *ctx, uint64_t seed, uint32_t n_ops)
{
    static const int64_t sizes[] = {16, 16, 40, 40, 40};
    mpl_graph *g = NULL;
    mpl_value first[5], v, state = MPL_NONE;
    mpl_rng rng = mpl_rng_of(seed);

    assert_ok(ctx, mpl_graph_new(ctx, "updates", &g));
    for (uint32_t i = 0; i < 5; i++) { /* two inputs, three weights */
        char name[16];

        snprintf(name, sizeof name, "x%u", i);
        assert_ok(ctx,
                  mpl_graph_add_value(ctx, g, name, i % 2 == 0 && i < 4 ? MPL_INPUT : MPL_WEIGHT,
                                      MPL_TYPE_f32, &(mpl_shape){1, {sizes[i]}}, &first[i]));
    }
    if (seed % 2)
        assert_ok(ctx, mpl_graph_add_value(ctx, g, "state", MPL_WEIGHT, MPL_TYPE_f32,
                                           &(mpl_shape){1, {sizes[1]}}, &state));
    for (uint32_t i = 0; i < n_ops; i++) {
        mpl_value in[2];
        char name[16];
        mpl_op_kind kind;
        uint32_t n;

        snprintf(name, sizeof name, "v%u", i);
        for (int k = 0; k < 2; k++)
            do
                in[k] = (mpl_value)mpl_rng_below(&rng, g->n_values);
            while (in[k] == state);
        n = mpl_rng_below(&rng, 2) &&
                    mpl_shape_equal(&g->value_shape[in[0]], &g->value_shape[in[1]])
                ? 2
                : 1;
        kind = n == 2 ? MPL_OP_mul : mpl_rng_below(&rng, 4) ? MPL_OP_relu : MPL_OP_identity;
        assert_ok(ctx, mpl_graph_add_op(ctx, g, kind, name, n, in, 0, NULL, 1,
                                        (const char *[]){name}, &v));
    }
    for (uint32_t i = 1; i < 5; i++)
        if (g->value_role[first[i]] == MPL_WEIGHT)
            add_update(ctx, g, &rng, first[i], i == 1 ? state : MPL_NONE);
    if (g->n_outputs == 0)
        assert_ok(ctx, mpl_graph_add_output(ctx, g, v));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

/* The training graph of a random network of `layers` layers: products, activations, sums of earlier
 * values, under all options. */
static inline mpl_graph *random_training(mpl_ctx *ctx, uint64_t seed, uint32_t layers)
{
    char text[4000];
    size_t n = (size_t)snprintf(text, sizeof text, "graph net\ninput h0 f32 [2,6]\n"), at;
    mpl_autodiff_options o = {.update = (mpl_optimiser)(MPL_OPTIMISER_SGD + seed % 4),
                              .chained = seed % 3 == 0,
                              .apart = seed % 5 == 0};
    mpl_graph *forward = NULL, *g = NULL;
    mpl_rng rng = mpl_rng_of(seed);

    for (uint32_t i = 0; i < layers; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "weight w%u f32 [6,6]\n", i);
    for (uint32_t i = 0; i < layers; i++) {
        at = i - mpl_rng_below(&rng, mpl_min_u64(i + 1, 3));
        switch (i == 0 || i + 1 == layers ? 0 : mpl_rng_below(&rng, 4)) {
        case 0:
        case 1: /* at times a weight is used twice */
            n += (size_t)snprintf(text + n, sizeof text - n, "h%u = matmul(h%zu, w%u)\n", i + 1, at,
                                  i - (i > 0 && mpl_rng_below(&rng, 3) == 0));
            break;
        case 2:
            n += (size_t)snprintf(text + n, sizeof text - n, "h%u = %s(h%zu)\n", i + 1,
                                  mpl_rng_below(&rng, 2) ? "tanh" : "relu", at);
            break;
        default:
            n +=
                (size_t)snprintf(text + n, sizeof text - n, "h%u = add(h%u, h%zu)\n", i + 1, i, at);
        }
    }
    snprintf(text + n, sizeof text - n, "output h%u\n", layers);
    assert_ok(ctx, mpl_text_read_memory(ctx, "net", text, strlen(text), &forward));
    assert_ok(ctx, mpl_autodiff(ctx, forward, &o, &g));
    mpl_graph_free(ctx, forward);
    return g;
}
