/* random_rows.h -- random graphs of concats and slices of rows. */
#pragma once

#include "tests/support/test.h"

#include "graphs/core/rng.h"

static const mpl_shape row = {2, {1, 16}};

/* Values of [1, 16 k] floats: computed element by element, concatenated, split along axis 1. */
static inline mpl_graph *random_rows(mpl_ctx *ctx, uint64_t seed)
{
    mpl_graph *g = NULL;
    mpl_value v[64];
    uint32_t n = 0;
    mpl_rng rng = mpl_rng_of(seed);
    char name[3][16];

    assert_ok(ctx, mpl_graph_new(ctx, "rows", &g));
    assert_ok(ctx, mpl_graph_add_value(ctx, g, "x", MPL_INPUT, MPL_TYPE_f32, &row, &v[n++]));
    for (uint32_t i = 0; i < 6 + seed % 14; i++) {
        uint32_t what = (uint32_t)mpl_rng_below(&rng, 6), a = (uint32_t)mpl_rng_below(&rng, n),
                 b = (uint32_t)mpl_rng_below(&rng, n), c = (uint32_t)mpl_rng_below(&rng, n);
        int64_t width = g->value_shape[v[a]].dim[1];
        const char *out[] = {name[0], name[1]};

        for (int k = 0; k < 2; k++)
            snprintf(name[k], sizeof name[k], "v%u_%d", i, k);
        if (what < 2 && width + g->value_shape[v[b]].dim[1] + g->value_shape[v[c]].dim[1] <= 512) {
            assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_concat, name[0], 2 + what,
                                            (mpl_value[]){v[a], v[b], v[c]}, 1,
                                            (mpl_attr[]){MPL_INT(axis, 1)}, 1, out, &v[n]));
            n++;
        } else if (what == 2 && width > 16) {
            const int64_t cut = 16 * (1 + (int64_t)mpl_rng_below(&rng, (uint64_t)width / 16 - 1));
            const int64_t sizes[] = {cut, width - cut};

            assert_ok(ctx,
                      mpl_graph_add_op(ctx, g, MPL_OP_split, name[0], 1, &v[a], 2,
                                       (mpl_attr[]){MPL_INT(axis, 1), MPL_INTS(split, 2, sizes)}, 2,
                                       out, &v[n]));
            n += 2;
        } else if (what == 3) {
            const int64_t from = 8 * (int64_t)mpl_rng_below(&rng, (uint64_t)width / 8 - 1),
                          to = from + 16;
            const int64_t one = 1;

            assert_ok(
                ctx, mpl_graph_add_op(ctx, g, MPL_OP_slice, name[0], 1, &v[a], 3,
                                      (mpl_attr[]){MPL_INTS(starts, 1, &from),
                                                   MPL_INTS(ends, 1, &to), MPL_INTS(axes, 1, &one)},
                                      1, out, &v[n]));
            n++;
        } else if (what == 4 && width == g->value_shape[v[b]].dim[1]) {
            assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_add, name[0], 2,
                                            (mpl_value[]){v[a], v[b]}, 0, NULL, 1, out, &v[n]));
            n++;
        } else {
            assert_ok(ctx, mpl_graph_add_op(ctx, g, what % 2 == 0 ? MPL_OP_tanh : MPL_OP_softplus,
                                            name[0], 1, &v[a], 0, NULL, 1, out, &v[n]));
            n++;
        }
    }
    assert_ok(ctx, mpl_graph_add_output(ctx, g, v[n - 1]));
    if (seed % 3 == 0 && n > 4)
        assert_ok(ctx, mpl_graph_add_output(ctx, g, v[n / 2]));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}
