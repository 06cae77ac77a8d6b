/* random_graph.h -- random small graphs and options, and the memory that an order needs, computed
 * from its problem. */
#pragma once

#include "tests/support/test.h"

#include "graphs/core/rng.h"

/* Collects values made since `from` that no operation reads, at most 8; returns their number. */
static inline uint32_t random_unread(const mpl_graph *g, mpl_value from, mpl_value *unread)
{
    uint32_t n = 0;

    for (mpl_value v = from; v < g->n_values && n < 8; v++) {
        bool read = g->value_op[v] == MPL_NONE || g->value_type[v] != MPL_TYPE_f32;

        for (uint32_t i = 0; i < g->op_in_begin[g->n_ops]; i++)
            read = read || g->op_in[i] == v;
        if (!read)
            unread[n++] = v;
    }
    return n;
}

/* Random operations on near or far values: in place or not, views, several outputs, dead ends. For
 * a third of the seeds, every fourth operation reads all unread values, and all later ones depend
 * on it. */
static inline mpl_graph *random_graph(mpl_ctx *ctx, uint64_t seed, uint32_t n_ops, uint32_t window)
{
    mpl_graph *g = NULL;
    mpl_rng rng = mpl_rng_of(seed);
    mpl_value v, funnel = 0;

    assert_ok(ctx, mpl_graph_new(ctx, "random", &g));
    for (int i = 0; i < 3; i++) {
        char name[16];
        mpl_shape shape = {1, {(int64_t[]){3, 16, 100}[i]}};

        snprintf(name, sizeof name, "in%d", i);
        assert_ok(ctx, mpl_graph_add_value(ctx, g, name, i == 2 ? MPL_WEIGHT : MPL_INPUT,
                                           MPL_TYPE_f32, &shape, &v));
    }
    for (uint32_t i = 0; i < n_ops; i++) {
        mpl_value in[8], out[2];
        char name[16], mask[16];
        mpl_op_kind kind = MPL_OP_relu;
        uint32_t n = 0, n_out = 1;
        mpl_attr attr[1] = {MPL_INT(axis, 0)};

        snprintf(name, sizeof name, "v%u", i);
        snprintf(mask, sizeof mask, "m%u", i);
        if (seed % 3 == 1 && i % 4 == 3)
            n = random_unread(g, 0, in);
        for (uint32_t k = 0; k < 3 && (i % 4 != 3 || seed % 3 != 1); k++) {
            uint32_t far = mpl_rng_below(&rng, 3) == 0 ? g->n_values : window;

            v = g->n_values - 1 -
                (mpl_value)mpl_rng_below(&rng, far < g->n_values ? far : g->n_values);
            if (k == 0 && funnel > 0)
                v = funnel + (mpl_value)mpl_rng_below(&rng, g->n_values - funnel);
            if (g->value_type[v] == MPL_TYPE_f32 && (n == 0 || mpl_rng_below(&rng, 2)))
                in[n++] = v;
        }
        if (n == 0)
            in[n++] = funnel;
        if (n == 1)
            kind = mpl_rng_below(&rng, 3) ? MPL_OP_relu : MPL_OP_dropout;
        else if (n == 2 && (g->value_shape[in[0]].dim[0] == g->value_shape[in[1]].dim[0] ||
                            g->value_shape[in[1]].dim[0] == 1)) /* a scalar operand */
            kind = MPL_OP_add;
        else
            kind = MPL_OP_concat;
        if (kind == MPL_OP_relu && mpl_rng_below(&rng, 4) == 0)
            kind = MPL_OP_reduce_sum;
        n_out = kind == MPL_OP_dropout ? 2 : 1;
        assert_ok(ctx, mpl_graph_add_op(ctx, g, kind, name, n, in, kind == MPL_OP_concat, attr,
                                        n_out, (const char *[]){name, mask}, out));
        if (seed % 3 == 1 && i % 4 == 3)
            funnel = out[0];
    }
    for (uint32_t i = 0; i < 2; i++)
        assert_ok(ctx, mpl_graph_add_output(ctx, g,
                                            (mpl_value)(g->n_values - 1 - mpl_rng_below(&rng, 4))));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

static inline mpl_problem_options random_options(uint64_t seed)
{
    mpl_problem_options o = mpl_problem_options_default();

    o.in_place = seed % 3 != 0;
    o.concat = MPL_CONCAT_COPY; /* the settings that order searches assume */
    o.views = seed % 5 != 0;
    o.pin_outputs = seed % 2 != 0;
    o.pin_inputs = seed % 7 != 0;
    o.pin_weights = seed % 11 != 0;
    o.align = seed % 4 == 0 ? 4 : 64;
    return o;
}

/* The most live bytes of an order, from its problem: whole slots; an output that may overwrite an
 * operand shares its bytes. */
static inline uint64_t live_peak(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                                 const mpl_problem_options *o)
{
    owned_problem *p = NULL;
    owned_map *map = NULL;
    uint64_t peak = 0;

    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, o, &p, &map));
    for (uint32_t s = 0; s < p->n_steps; s++) {
        uint64_t live = 0;

        for (mpl_buffer b = 0; b < p->n; b++) {
            bool over = false;

            for (uint32_t i = 0; i < p->n_in_place; i++)
                over = over || (p->in_place_step[i] == s && p->in_place_out[i] == b);
            if (p->birth[b] <= s && s < p->death[b] && !over)
                live += (p->bytes[b] + o->align - 1) / o->align * o->align;
        }
        peak = mpl_max_u64(peak, live);
    }
    return peak;
}
