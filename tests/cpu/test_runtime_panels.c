/* Products by constant matrices on the backend `cpu` against the plain loops: random rows, terms
 * and columns around whole tiles, panels and blocks, either matrix order, every addend, activation
 * and sum; in two runs with other rows, the second over the addend where it has all elements. */
#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "runtime/cpu/loops/panels.h"

#include <math.h>

enum { OPERANDS = 4 };

static int64_t between(mpl_rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)mpl_rng_below(rng, (uint64_t)(high - low + 1));
}

static mpl_value add_value(mpl_ctx *ctx, mpl_graph *g, const char *name, mpl_role role,
                           mpl_shape shape)
{
    mpl_value v;

    assert_ok(ctx, mpl_graph_add_value(ctx, g, name, role, MPL_TYPE_f32, &shape, &v));
    return v;
}

/* Rows by columns; stacked: in more dims, two or one of them. */
static mpl_shape matrix(bool stacked, int64_t rows, int64_t columns)
{
    int64_t lead = rows % 2 == 0 ? 2 : 1;

    return stacked ? (mpl_shape){4, {1, lead, rows / lead, columns}}
                   : (mpl_shape){2, {rows, columns}};
}

/* y = a b + c, b in that role; or its activation, or what that makes of the sum of it and another
 * addend, operand 0. */
static mpl_graph *draw(mpl_ctx *ctx, mpl_rng *rng, mpl_role role)
{
    static const char *const out_name[] = {"y"};
    int64_t rows = mpl_rng_below(rng, 6) == 0 ? between(rng, 190, 400) : between(rng, 5, 30);
    int64_t terms = mpl_rng_below(rng, 6) == 0 ? between(rng, 250, 520) : between(rng, 1, 40);
    int64_t columns = between(rng, 16, 70), turned = between(rng, 0, 1);
    static const mpl_op_kind kinds[] = {MPL_OP_gemm, MPL_OP_gemm_act, MPL_OP_gemm_sum};
    mpl_op_kind kind = kinds[mpl_rng_below(rng, 3)];
    uint32_t first = kind == MPL_OP_gemm_sum;
    mpl_attr attr[] = {MPL_INTS(trans_b, 1, &turned),
                       MPL_TEXT(activation, mpl_rng_below(rng, 2) == 0 ? "relu" : "relu6")};
    uint32_t n_attr = kind == MPL_OP_gemm       ? 1
                      : kind == MPL_OP_gemm_act ? 2
                                                : (uint32_t)between(rng, 1, 2);
    mpl_value in[OPERANDS] = {MPL_NONE, MPL_NONE, MPL_NONE, MPL_NONE}, y;
    bool stacked = kind != MPL_OP_gemm && mpl_rng_below(rng, 2) == 0;
    int addend = (int)mpl_rng_below(rng, stacked ? 3 : 4);
    mpl_graph *g;

    assert_ok(ctx, mpl_graph_new(ctx, "panels", &g));
    if (first > 0)
        in[0] = add_value(ctx, g, "sum", MPL_INPUT, matrix(stacked, rows, columns));
    in[first] = add_value(ctx, g, "a", MPL_INPUT, matrix(stacked, rows, terms));
    in[first + 1] =
        add_value(ctx, g, "b", role,
                  (mpl_shape){2, {turned != 0 ? columns : terms, turned != 0 ? terms : columns}});
    if (addend > 0)
        in[first + 2] = add_value(ctx, g, "c", MPL_INPUT,
                                  addend == 1   ? (mpl_shape){1, {columns}}
                                  : addend == 2 ? (mpl_shape){2, {1, columns}}
                                                : (mpl_shape){2, {rows, columns}});
    assert_ok(ctx, mpl_graph_add_op(ctx, g, kind, "product", first + 3, in, n_attr, attr, 1,
                                    out_name, &y));
    assert_ok(ctx, mpl_graph_add_output(ctx, g, y));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

static void fill(mpl_rng *rng, mpl_tensor *t)
{
    for (int64_t i = 0; t->data != NULL && i < mpl_count(&t->shape); i++)
        ((float *)t->data)[i] = (float)between(rng, -1000, 1000) / 1000;
}

static mpl_tensor tensor(mpl_ctx *ctx, const mpl_graph *g, mpl_value v)
{
    mpl_tensor t = {.type = MPL_TYPE_f32};

    if (v != MPL_NONE) {
        t.shape = g->value_shape[v];
        t.data = mpl_alloc(ctx, g->value_bytes[v], 1);
        assert_non_null(t.data);
    }
    return t;
}

static void check(mpl_ctx *ctx, mpl_panels *p, const mpl_graph *g, mpl_rng *rng, uint64_t seed)
{
    mpl_tensor in[OPERANDS], want = tensor(ctx, g, mpl_op_output(g, 0, 0));
    mpl_tensor got = tensor(ctx, g, mpl_op_output(g, 0, 0)), out = got;
    uint32_t first = g->op_kind[0] == MPL_OP_gemm_sum, n_in = first + 3, over = first > 0 ? 0 : 2;
    const mpl_shape *a = &g->value_shape[mpl_op_input(g, 0, first)];
    int64_t terms = a->dim[a->rank - 1], n = mpl_count(&want.shape);

    for (uint32_t i = 0; i < n_in; i++)
        in[i] = tensor(ctx, g, mpl_op_input(g, 0, i));
    fill(rng, &in[first + 1]);
    for (int run = 0; run < 2; run++) {
        for (uint32_t i = 0; i < n_in; i++)
            if (i != first + 1)
                fill(rng, &in[i]);
        assert_ok(ctx, mpl_eval(ctx, &(mpl_op_call){g, 0, n_in, 1, in, &want, NULL}));
        if (run == 1 && in[over].data != NULL && mpl_count(&in[over].shape) == n)
            out.data = in[over].data;
        mpl_panels_run(p, &(mpl_op_call){g, 0, n_in, 1, in, &out, NULL}, 1 + seed % 2);
        for (int64_t i = 0; i < n; i++)
            if (!(fabsf(((float *)out.data)[i] - ((float *)want.data)[i]) <
                  1e-6f * (float)(terms + 1)))
                fail_msg("seed %" PRIu64 ", run %d: element %" PRId64 " is %g, not %g", seed, run,
                         i, (double)((float *)out.data)[i], (double)((float *)want.data)[i]);
    }
    for (uint32_t i = 0; i < n_in; i++)
        mpl_free(ctx, in[i].data);
    mpl_free_each(ctx, want.data, got.data);
}

TEST(products_by_packed_matrices_are_right)
{
    mpl_rng rng = mpl_rng_of(1);

    for (uint64_t seed = 0; seed < draws(300); seed++) {
        mpl_role role = seed % 10 == 9 ? MPL_INPUT : MPL_WEIGHT;
        mpl_graph *g = draw(ctx, &rng, role);
        mpl_panels *p = NULL;
        const char *how = NULL;

        assert_ok(ctx, mpl_panels_new(ctx, g, 0, &p, &how));
        if (p == NULL && role == MPL_WEIGHT) {
            mpl_graph_free(ctx, g);
            print_message("skip: AVX2 is needed\n");
            skip();
        }
        assert_true((p != NULL) == (role == MPL_WEIGHT)); /* an input may change */
        if (p != NULL)
            check(ctx, p, g, &rng, seed);
        mpl_panels_free(ctx, p);
        mpl_graph_free(ctx, g);
    }
}

TESTS(products_by_packed_matrices_are_right)
