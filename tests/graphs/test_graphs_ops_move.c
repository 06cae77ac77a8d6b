/* Data movement: random shapes against the definitions, and a long box. test_graphs_ops_math.c runs
 * the table tests/data/ops/moves.txt. */
#include "tests/support/ops.h"

/* A box longer than one chunk of the loops. */
TEST(test_long_box)
{
    const mpl_attr attr[] = {LIST(dims, 650), LIST(loads, 0, 1, 2), MPL_TEXT(expr, "0,neg"),
                             LIST(strides, 2)};
    static double long_in[1300], long_out[1300];
    test_tensor in = IN(f32, DIMS(650, 2), long_in);
    test_op t;

    for (int i = 0; i < 1300; i++) {
        long_in[i] = i;
        /* the negated element of index i + 1, if the box has no offset */
        long_out[i] = i % 2 == 0 ? -i - 1 : i;
    }
    for (int place = IN_NEW_MEMORY; place < 1; place++) {
        assert_ok(&t.ctx, test_op_apply(&t, MPL_OP_fused, 1, &in, 4, attr, 1, place));
        test_expect("fused, long", &t, 0, &DIMS(650, 2), long_out, 0);
        test_op_free(&t);
    }
}

/* ---- random shapes against the definitions, one element at a time ---- */

static mpl_shape random_shape(uint64_t *seed)
{
    mpl_shape shape = {.rank = 1 + test_random(seed, 4)};

    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dim[i] = 1 + test_random(seed, 4);
    return shape;
}

static int64_t flat(const mpl_shape *shape, const int64_t *index)
{
    int64_t at = 0;

    for (uint32_t i = 0; i < shape->rank; i++)
        at = at * shape->dim[i] + index[i];
    return at;
}

static void unflat(const mpl_shape *shape, int64_t at, int64_t *index)
{
    for (uint32_t i = shape->rank; i-- > 0; at /= shape->dim[i])
        index[i] = at % shape->dim[i];
}

typedef struct random_case {
    mpl_shape in, out;
    int64_t number[2][MPL_MAX_RANK]; /* perm; starts and steps; repeats; or pads before and after */
    int64_t ends[MPL_MAX_RANK];
} random_case;

/* The input index of an output index by each operator's definition; false for padding. */
static bool source_of(mpl_op_kind kind, const random_case *c, const int64_t *out, int64_t *in)
{
    bool within = true;

    for (uint32_t i = 0; i < c->in.rank; i++) {
        if (kind == MPL_OP_transpose)
            in[c->number[0][i]] = out[i];
        else if (kind == MPL_OP_tile)
            in[i] = out[i] % c->in.dim[i];
        else if (kind == MPL_OP_slice)
            in[i] = c->number[0][i] + out[i] * c->number[1][i];
        else
            in[i] = out[i] - c->number[0][i], within &= in[i] >= 0 && in[i] < c->in.dim[i];
    }
    return within;
}

/* Draws attributes and computes the output's dims. */
static uint32_t draw(mpl_op_kind kind, uint64_t *seed, random_case *c, int64_t *pads,
                     mpl_attr *attr)
{
    uint32_t n = c->in.rank;

    c->out = c->in;
    for (uint32_t i = 0; i < n; i++) {
        int64_t dim = c->in.dim[i];

        c->number[0][i] = kind == MPL_OP_transpose ? (int64_t)i : (int64_t)test_random(seed, 3);
        c->number[1][i] = (int64_t)test_random(seed, 3);
        if (kind == MPL_OP_slice) {
            c->number[0][i] %= dim;
            c->number[1][i] =
                test_random(seed, 2) != 0 ? 1 + c->number[1][i] : -1 - c->number[1][i];
            c->ends[i] = (int64_t)test_random(seed, (uint32_t)dim);
            c->out.dim[i] = 0;
            for (int64_t k = c->number[0][i]; c->number[1][i] > 0 ? k < c->ends[i] : k > c->ends[i];
                 k += c->number[1][i])
                c->out.dim[i]++;
        } else if (kind == MPL_OP_tile) {
            c->out.dim[i] = dim * c->number[0][i];
        } else if (kind == MPL_OP_pad) {
            c->out.dim[i] = dim + c->number[0][i] + c->number[1][i];
            pads[i] = c->number[0][i], pads[n + i] = c->number[1][i];
        }
    }
    for (uint32_t i = 0; i < n && kind == MPL_OP_transpose; i++) {
        uint32_t other = test_random(seed, n);
        int64_t was = c->number[0][i];

        c->number[0][i] = c->number[0][other], c->number[0][other] = was;
    }
    for (uint32_t i = 0; i < n && kind == MPL_OP_transpose; i++)
        c->out.dim[i] = c->in.dim[c->number[0][i]];
    attr[0] = kind == MPL_OP_transpose ? MPL_INTS(perm, n, c->number[0])
              : kind == MPL_OP_tile    ? MPL_INTS(repeats, n, c->number[0])
              : kind == MPL_OP_slice   ? MPL_INTS(starts, n, c->number[0])
                                       : MPL_INTS(pads, 2 * n, pads);
    attr[1] = MPL_INTS(ends, n, c->ends);
    attr[2] = MPL_INTS(steps, n, c->number[1]);
    return kind == MPL_OP_slice ? 3 : 1;
}

TEST(test_random_moves)
{
    static const mpl_op_kind kinds[] = {MPL_OP_transpose, MPL_OP_tile, MPL_OP_slice, MPL_OP_pad};
    uint64_t seed = 1;

    for (uint32_t round = 0; round < draws(400); round++) {
        mpl_op_kind kind = kinds[round % 4];
        random_case c = {.in = random_shape(&seed)};
        int64_t pads[2 * MPL_MAX_RANK], out[MPL_MAX_RANK], in[MPL_MAX_RANK];
        mpl_attr attr[3];
        uint32_t n_attr = draw(kind, &seed, &c, pads, attr);
        double *want;
        test_op t;

        want = calloc((size_t)mpl_count(&c.out) + 1, sizeof *want);
        for (int64_t i = 0; i < mpl_count(&c.out); i++) {
            unflat(&c.out, i, out);
            want[i] = source_of(kind, &c, out, in) ? (double)flat(&c.in, in) : 0;
        }
        assert_ok(&t.ctx,
                  test_op_make(&t, kind, 1, &(test_tensor){true, MPL_TYPE_f32, c.in, NULL, NULL},
                               n_attr, attr, 1));
        assert_ok(&t.ctx, test_op_run(&t));
        test_expect(mpl_op_table[kind].name, &t, 0, &c.out, want, 0);
        test_op_free(&t);
        free(want);
    }
}

TESTS(test_long_box, test_random_moves)
