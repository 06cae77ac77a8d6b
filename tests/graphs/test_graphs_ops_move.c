/* Views and moved elements: shapes, elements in every type, refusals, indices from data, in-place
 * runs, empty tensors. */
#include "tests/support/ops.h"

#include <math.h>

#define MOST_ATTRS 4

typedef struct row {
    const char *name;
    mpl_op_kind kind;
    test_tensor in[4];
    mpl_attr attr[MOST_ATTRS];
    mpl_shape out[3];
    const double *value[3];
    unsigned types; /* of input 0 (and of others that are declared f32); 0: all */
} row;

static uint32_t count_in(const row *r)
{
    uint32_t n = 4;

    while (n > 0 && !r->in[n - 1].present)
        n--;
    return n;
}

/* An unused attribute slot is all zero: key 0 (axis) with n = 0. */
static uint32_t count_attrs(const row *r)
{
    uint32_t n = 0;

    while (n < MOST_ATTRS &&
           (r->attr[n].n > 0 || r->attr[n].ints != NULL || r->attr[n].text != NULL))
        n++;
    return n;
}

static uint32_t count_out(const row *r)
{
    uint32_t n = 1;

    while (n < 3 && r->value[n] != NULL)
        n++;
    return n;
}

static mpl_status make_as(test_op *t, const row *r, mpl_type type)
{
    test_tensor in[4];

    memcpy(in, r->in, sizeof in);
    for (int i = 0; i < 4; i++)
        if (in[i].type == MPL_TYPE_f32)
            in[i].type = type;
    return test_op_make(t, r->kind, count_in(r), in, count_attrs(r), r->attr, count_out(r));
}

/* Where the operator may overwrite input 0, doing so must change nothing. */
static void run_in_place(const row *r, mpl_type type)
{
    test_op t;

    assert_ok(&t.ctx, make_as(&t, r, type));
    if ((mpl_op_table[r->kind].traits & MPL_IN_PLACE_0) != 0 && r->in[0].present) {
        assert_int_equal(test_bytes(&t.in[0]), test_bytes(&t.out[0]));
        t.out[0].data = t.in[0].data;
        assert_ok(&t.ctx, test_op_run(&t));
        test_expect(r->name, &t, 0, &r->out[0], r->value[0], 1e-6);
    }
    test_op_free(&t);
}

static void run_rows(const row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (int type = 0; type < MPL_N_TYPES; type++) {
            const row *r = &rows[i];
            test_op t;
            int64_t n_allocs;

            if (r->types != 0 && !mpl_type_in((mpl_type)type, r->types))
                continue;
            assert_ok(&t.ctx, make_as(&t, r, (mpl_type)type));
            n_allocs = t.ctx.n_allocs;
            assert_ok(&t.ctx, test_op_run(&t));
            assert_int_equal(t.ctx.n_allocs, n_allocs);
            for (uint32_t k = 0; k < count_out(r); k++)
                test_expect(r->name, &t, k, &r->out[k], r->value[k], 1e-6);
            test_op_free(&t);
            run_in_place(r, (mpl_type)type);
        }
}
#define RUN(rows) run_rows(rows, sizeof rows / sizeof *rows)

#define IOTA6 VALUES(0, 1, 2, 3, 4, 5)
#define EMPTY VALUES(0)

TEST(test_views)
{
    /* clang-format off */
    const row rows[] = {
        {"reshape", MPL_OP_reshape, {IN(f32, DIMS(2, 3), NULL)}, {LIST(shape, 3, 2)}, {DIMS(3, 2)},
            {IOTA6},
         0},
        {"reshape, 0 and -1", MPL_OP_reshape, {IN(f32, DIMS(2, 3), NULL)}, {LIST(shape, 0, -1, 1)},
         {DIMS(2, 3, 1)}, {IOTA6}, 0},
        {"reshape to a scalar", MPL_OP_reshape, {IN(f32, DIMS(1), NULL)}, {NONE_OF(shape)},
            {SCALAR},
         {EMPTY}, 0},
        {"reshape of nothing", MPL_OP_reshape, {IN(f32, DIMS(0, 3, 4), NULL)}, {LIST(shape, 3, 4,
            -1)},
         {DIMS(3, 4, 0)}, {EMPTY}, 0},
        {"flatten", MPL_OP_flatten, {IN(f32, DIMS(1, 2, 3), NULL)}, {LIST(axis, 2)}, {DIMS(2, 3)},
            {IOTA6},
         0},
        {"flatten, by default", MPL_OP_flatten, {IN(f32, DIMS(2, 3, 1), NULL)}, {{0}}, {DIMS(2, 3)},
         {IOTA6}, 0},
        {"flatten at 0", MPL_OP_flatten, {IN(f32, DIMS(2, 3), NULL)}, {LIST(axis, 0)}, {DIMS(1, 6)},
         {IOTA6}, 0},
        {"flatten at the end", MPL_OP_flatten, {IN(f32, DIMS(2, 3), NULL)}, {LIST(axis, 2)},
            {DIMS(6, 1)},
         {IOTA6}, 0},
        {"flatten from the end", MPL_OP_flatten, {IN(f32, DIMS(2, 1, 3), NULL)}, {LIST(axis, -1)},
         {DIMS(2, 3)}, {IOTA6}, 0},
        {"squeeze", MPL_OP_squeeze, {IN(f32, DIMS(1, 6, 1), NULL)}, {{0}}, {DIMS(6)}, {IOTA6}, 0},
        {"squeeze one", MPL_OP_squeeze, {IN(f32, DIMS(1, 6, 1), NULL)}, {LIST(axes, -1)}, {DIMS(1,
            6)},
         {IOTA6}, 0},
        {"unsqueeze", MPL_OP_unsqueeze, {IN(f32, DIMS(2, 3), NULL)}, {LIST(axes, -1, 1)},
         {DIMS(2, 1, 3, 1)}, {IOTA6}, 0},
        {"identity", MPL_OP_identity, {IN(f32, DIMS(6), NULL)}, {{0}}, {DIMS(6)}, {IOTA6}, 0},
        {"dropout", MPL_OP_dropout, {IN(f32, DIMS(6), NULL)}, {{0}}, {DIMS(6)}, {IOTA6}, 0},
        {"dropout and mask", MPL_OP_dropout, {IN(f32, DIMS(2), NULL)}, {{0}}, {DIMS(2), DIMS(2)},
         {VALUES(0, 1), VALUES(1, 1)}, 0},
    };
    /* clang-format on */

    RUN(rows);
}

TEST(test_concat_and_split)
{
    /* clang-format off */
    const row rows[] = {
        {"concat of rows", MPL_OP_concat, {IN(f32, DIMS(1, 2), NULL), IN(f32, DIMS(2, 2), NULL)},
         {LIST(axis, 0)}, {DIMS(3, 2)}, {VALUES(0, 1, 0, 1, 2, 3)}, 0},
        {"concat of columns, one empty", MPL_OP_concat,
         {IN(f32, DIMS(2, 1), NULL), IN(f32, DIMS(2, 0), NULL), IN(f32, DIMS(2, 2), NULL)},
         {LIST(axis, -1)}, {DIMS(2, 3)}, {VALUES(0, 0, 1, 1, 2, 3)}, 0},
        {"concat of nothing", MPL_OP_concat, {IN(f32, DIMS(0), NULL)}, {LIST(axis, 0)}, {DIMS(0)},
            {EMPTY},
         0},
        {"split by sizes", MPL_OP_split, {IN(f32, DIMS(2, 4), NULL)}, {LIST(axis, 1), LIST(split, 1,
            0, 3)},
         {DIMS(2, 1), DIMS(2, 0), DIMS(2, 3)}, {VALUES(0, 4), EMPTY, VALUES(1, 2, 3, 5, 6, 7)}, 0},
        {"split, the last one smaller", MPL_OP_split, {IN(f32, DIMS(5), NULL)}, {{0}},
         {DIMS(2), DIMS(2), DIMS(1)}, {VALUES(0, 1), VALUES(2, 3), VALUES(4)}, 0},
        {"split evenly", MPL_OP_split, {IN(f32, DIMS(4, 1), NULL)}, {LIST(axis, -2)},
         {DIMS(2, 1), DIMS(2, 1)}, {VALUES(0, 1), VALUES(2, 3)}, 0},
    };
    /* clang-format on */

    RUN(rows);
}

TEST(test_slice_and_transpose)
{
    /* clang-format off */
    const row rows[] = {
        {"slice", MPL_OP_slice, {IN(f32, DIMS(3, 4), NULL)},
         {LIST(starts, 1, 0), LIST(ends, 3, 3), LIST(steps, 1, 2)}, {DIMS(2, 2)}, {VALUES(4, 6, 8,
             10)}, 0},
        {"slice of one axis", MPL_OP_slice, {IN(f32, DIMS(3, 2), NULL)},
         {LIST(starts, -2), LIST(ends, INT64_MAX), LIST(axes, -2)}, {DIMS(2, 2)}, {VALUES(2, 3, 4,
             5)}, 0},
        {"slice backwards", MPL_OP_slice, {IN(f32, DIMS(5), NULL)},
         {LIST(starts, -1), LIST(ends, INT64_MIN), LIST(axes, 0), LIST(steps, -2)}, {DIMS(3)},
         {VALUES(4, 2, 0)}, 0},
        {"slice backwards from behind the end", MPL_OP_slice, {IN(f32, DIMS(5), NULL)},
         {LIST(starts, 9), LIST(ends, -9), LIST(axes, 0), LIST(steps, -2)}, {DIMS(3)}, {VALUES(4, 2,
             0)}, 0},
        {"slice backwards by the most", MPL_OP_slice, {IN(f32, DIMS(5), NULL)},
         {LIST(starts, 3), LIST(ends, 0), LIST(axes, 0), LIST(steps, INT64_MIN)}, {DIMS(1)},
             {VALUES(3)},
         0},
        {"slice forwards by the most", MPL_OP_slice, {IN(f32, DIMS(5, 2), NULL)},
         {LIST(starts, 3), LIST(ends, 5), LIST(axes, 0), LIST(steps, INT64_MAX)}, {DIMS(1, 2)},
         {VALUES(6, 7)}, 0},
        {"slice of nothing", MPL_OP_slice, {IN(f32, DIMS(5), NULL)}, {LIST(starts, 4), LIST(ends,
            2)},
         {DIMS(0)}, {EMPTY}, 0},
        {"slice out of range", MPL_OP_slice, {IN(f32, DIMS(5), NULL)}, {LIST(starts, 9), LIST(ends,
            20)},
         {DIMS(0)}, {EMPTY}, 0},
        {"slice of an empty axis, backwards", MPL_OP_slice, {IN(f32, DIMS(0), NULL)},
         {LIST(starts, -1), LIST(ends, -9), LIST(axes, 0), LIST(steps, -1)}, {DIMS(0)}, {EMPTY}, 0},
        {"transpose", MPL_OP_transpose, {IN(f32, DIMS(2, 3), NULL)}, {{0}}, {DIMS(3, 2)},
         {VALUES(0, 3, 1, 4, 2, 5)}, 0},
        {"transpose by perm", MPL_OP_transpose, {IN(f32, DIMS(2, 1, 3), NULL)}, {LIST(perm, 1, 0,
            2)},
         {DIMS(1, 2, 3)}, {IOTA6}, 0},
        {"transpose of a scalar", MPL_OP_transpose, {IN(f32, SCALAR, NULL)}, {{0}}, {SCALAR},
            {EMPTY}, 0},
        {"transpose of nothing", MPL_OP_transpose, {IN(f32, DIMS(0, 3), NULL)}, {{0}}, {DIMS(3, 0)},
         {EMPTY}, 0},
    };
    /* clang-format on */

    RUN(rows);
}

TEST(test_repeats)
{
    /* clang-format off */
    const row rows[] = {
        {"expand", MPL_OP_expand, {IN(f32, DIMS(2, 1), NULL)}, {LIST(shape, 2, 1, 3)}, {DIMS(2, 2,
            3)},
         {VALUES(0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1)}, 0},
        {"expand both ways", MPL_OP_expand, {IN(f32, DIMS(3), NULL)}, {LIST(shape, 1)}, {DIMS(3)},
         {VALUES(0, 1, 2)}, 0},
        {"expand to nothing", MPL_OP_expand, {IN(f32, DIMS(1), NULL)}, {LIST(shape, 2, 0)}, {DIMS(2,
            0)},
         {EMPTY}, 0},
        {"expand a scalar", MPL_OP_expand, {IN(f32, SCALAR, VALUES(7))}, {LIST(shape, 2)},
            {DIMS(2)},
         {VALUES(7, 7)}, 0},
        {"tile", MPL_OP_tile, {IN(f32, DIMS(1, 2), NULL)}, {LIST(repeats, 2, 3)}, {DIMS(2, 6)},
         {VALUES(0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1)}, 0},
        {"tile by 0", MPL_OP_tile, {IN(f32, DIMS(1, 2), NULL)}, {LIST(repeats, 2, 0)}, {DIMS(2, 0)},
         {EMPTY}, 0},
        {"pad", MPL_OP_pad, {IN(f32, DIMS(1, 2), NULL)}, {LIST(pads, 1, 1, 0, 2)}, {DIMS(2, 5)},
         {VALUES(0, 0, 0, 0, 0, 0, 0, 1, 0, 0)}, 0},
        {"pad with a value, cut", MPL_OP_pad, {IN(f32, DIMS(4), NULL), IN(f32, SCALAR, VALUES(9))},
         {LIST(pads, -1, 2)}, {DIMS(5)}, {VALUES(1, 2, 3, 9, 9)}, 0},
        {"pad some axes", MPL_OP_pad, {IN(f32, DIMS(2, 1), NULL), IN(f32, DIMS(1), VALUES(9))},
         {LIST(pads, 0, 1), LIST(axes, -1)}, {DIMS(2, 2)}, {VALUES(0, 9, 1, 9)}, 0},
        {"pad nothing into something", MPL_OP_pad, {IN(f32, DIMS(0), NULL), IN(f32, DIMS(1),
            VALUES(9))},
         {LIST(pads, 1, 1)}, {DIMS(2)}, {VALUES(9, 9)}, 0},
        {"pad, edge", MPL_OP_pad, {IN(f32, DIMS(3), NULL)}, {MPL_TEXT(mode, "edge"), LIST(pads, 2,
            1)},
         {DIMS(6)}, {VALUES(0, 0, 0, 1, 2, 2)}, 0},
        {"pad, reflect", MPL_OP_pad, {IN(f32, DIMS(3), NULL)},
         {MPL_TEXT(mode, "reflect"), LIST(pads, 3, 3)}, {DIMS(9)}, {VALUES(1, 2, 1, 0, 1, 2, 1, 0,
             1)}, 0},
        {"pad, wrap", MPL_OP_pad, {IN(f32, DIMS(3), NULL)}, {MPL_TEXT(mode, "wrap"), LIST(pads, 4,
            1)},
         {DIMS(8)}, {VALUES(2, 0, 1, 2, 0, 1, 2, 0)}, 0},
        {"pad, reflect one element", MPL_OP_pad, {IN(f32, DIMS(1), VALUES(3))},
         {MPL_TEXT(mode, "reflect"), LIST(pads, 1, 1)}, {DIMS(3)}, {VALUES(3, 3, 3)}, 0},
    };
    /* clang-format on */

    RUN(rows);
}

TEST(test_gather)
{
    /* clang-format off */
    const row rows[] = {
        {"gather", MPL_OP_gather, {IN(f32, DIMS(3, 2), NULL), IN(i64, DIMS(2, 2), VALUES(0, -1, 2,
            1))},
         {{0}}, {DIMS(2, 2, 2)}, {VALUES(0, 1, 4, 5, 4, 5, 2, 3)}, 0},
        {"gather along 1, i32", MPL_OP_gather, {IN(f32, DIMS(2, 3), NULL), IN(i32, DIMS(2),
            VALUES(-3, 1))},
         {LIST(axis, -1)}, {DIMS(2, 2)}, {VALUES(0, 1, 3, 4)}, 0},
        {"gather by a scalar", MPL_OP_gather, {IN(f32, DIMS(2, 2), NULL), IN(i64, SCALAR,
            VALUES(1))},
         {{0}}, {DIMS(2)}, {VALUES(2, 3)}, 0},
        {"gather nothing", MPL_OP_gather, {IN(f32, DIMS(0, 2), NULL), IN(i64, DIMS(0), NULL)},
            {{0}},
         {DIMS(0, 2)}, {EMPTY}, 0},
        {"gather elements", MPL_OP_gather_elements,
         {IN(f32, DIMS(2, 3), NULL), IN(i64, DIMS(2, 2), VALUES(2, 0, -1, 1))}, {LIST(axis, 1)},
         {DIMS(2, 2)}, {VALUES(2, 0, 5, 4)}, 0},
        {"gather elements down", MPL_OP_gather_elements,
         {IN(f32, DIMS(3, 2), NULL), IN(i32, DIMS(1, 2), VALUES(2, -3))}, {{0}}, {DIMS(1, 2)},
         {VALUES(4, 1)}, 0},
        {"gather tuples", MPL_OP_gather_nd,
         {IN(f32, DIMS(2, 2, 2), NULL), IN(i64, DIMS(2, 2), VALUES(0, 1, -1, 0))}, {{0}}, {DIMS(2,
             2)},
         {VALUES(2, 3, 4, 5)}, 0},
        {"gather whole tuples", MPL_OP_gather_nd,
         {IN(f32, DIMS(2, 2), NULL), IN(i64, DIMS(2, 2), VALUES(0, 0, 1, 1))}, {{0}}, {DIMS(2)},
         {VALUES(0, 3)}, 0},
        {"gather tuples in batches", MPL_OP_gather_nd,
         {IN(f32, DIMS(2, 2, 2), NULL), IN(i64, DIMS(2, 1), VALUES(1, 0))}, {LIST(batch_dims, 1)},
         {DIMS(2, 2)}, {VALUES(2, 3, 4, 5)}, 0},
    };
    /* clang-format on */

    RUN(rows);
}

#define NUMBERS (MPL_SET_NUMBER)

TEST(test_scatter)
{
    /* clang-format off */
    const row rows[] = {
        {"scatter elements", MPL_OP_scatter_elements,
         {IN(f32, DIMS(1, 5), NULL), IN(i64, DIMS(1, 2), VALUES(1, -2)), IN(f32, DIMS(1, 2),
             VALUES(7, 8))},
         {LIST(axis, 1)}, {DIMS(1, 5)}, {VALUES(0, 7, 2, 8, 4)}, 0},
        {"scatter elements, the last one stays", MPL_OP_scatter_elements,
         {IN(f32, DIMS(3), NULL), IN(i32, DIMS(2), VALUES(1, 1)), IN(f32, DIMS(2), VALUES(7, 8))},
             {{0}},
         {DIMS(3)}, {VALUES(0, 8, 2)}, 0},
        {"scatter down a column", MPL_OP_scatter_elements,
         {IN(f32, DIMS(3, 2), NULL), IN(i64, DIMS(2, 1), VALUES(2, 0)), IN(f32, DIMS(2, 1),
             VALUES(7, 8))},
         {{0}}, {DIMS(3, 2)}, {VALUES(8, 1, 2, 3, 7, 5)}, 0},
        {"scatter, add", MPL_OP_scatter_elements,
         {IN(f32, DIMS(3), NULL), IN(i64, DIMS(2), VALUES(1, 1)), IN(f32, DIMS(2), VALUES(7, 8))},
         {MPL_TEXT(reduction, "add")}, {DIMS(3)}, {VALUES(0, 16, 2)}, NUMBERS},
        {"scatter, mul", MPL_OP_scatter_elements,
         {IN(f32, DIMS(3), NULL), IN(i64, DIMS(2), VALUES(2, 2)), IN(f32, DIMS(2), VALUES(3, 4))},
         {MPL_TEXT(reduction, "mul")}, {DIMS(3)}, {VALUES(0, 1, 24)}, NUMBERS},
        {"scatter, max", MPL_OP_scatter_elements,
         {IN(f32, DIMS(3), NULL), IN(i64, DIMS(2), VALUES(0, 2)), IN(f32, DIMS(2), VALUES(5, 1))},
         {MPL_TEXT(reduction, "max")}, {DIMS(3)}, {VALUES(5, 1, 2)}, NUMBERS},
        {"scatter, min", MPL_OP_scatter_elements,
         {IN(f32, DIMS(3), NULL), IN(i64, DIMS(2), VALUES(1, 2)), IN(f32, DIMS(2), VALUES(5, 1))},
         {MPL_TEXT(reduction, "min")}, {DIMS(3)}, {VALUES(0, 1, 1)}, NUMBERS},
        {"scatter nothing", MPL_OP_scatter_elements,
         {IN(f32, DIMS(3), NULL), IN(i64, DIMS(0), NULL), IN(f32, DIMS(0), NULL)}, {{0}}, {DIMS(3)},
         {VALUES(0, 1, 2)}, 0},
        {"scatter rows", MPL_OP_scatter_nd,
         {IN(f32, DIMS(3, 2), NULL), IN(i64, DIMS(2, 1), VALUES(2, -3)),
          IN(f32, DIMS(2, 2), VALUES(6, 7, 8, 9))},
         {{0}}, {DIMS(3, 2)}, {VALUES(8, 9, 2, 3, 6, 7)}, 0},
        {"scatter rows, add", MPL_OP_scatter_nd,
         {IN(f32, DIMS(2, 2), NULL), IN(i64, DIMS(2, 1), VALUES(1, 1)),
          IN(f32, DIMS(2, 2), VALUES(1, 2, 3, 4))},
         {MPL_TEXT(reduction, "add")}, {DIMS(2, 2)}, {VALUES(0, 1, 6, 9)}, NUMBERS},
        {"scatter whole tuples", MPL_OP_scatter_nd,
         {IN(f32, DIMS(2, 2), NULL), IN(i64, DIMS(1, 2), VALUES(1, 0)), IN(f32, DIMS(1),
             VALUES(9))}, {{0}},
         {DIMS(2, 2)}, {VALUES(0, 1, 9, 3)}, 0},
        {"scatter into nothing", MPL_OP_scatter_nd,
         {IN(f32, DIMS(0, 2), NULL), IN(i64, DIMS(0, 1), NULL), IN(f32, DIMS(0, 2), NULL)}, {{0}},
         {DIMS(0, 2)}, {EMPTY}, 0},
    };
    /* clang-format on */

    RUN(rows);
}

TEST(test_blocks_and_triangles)
{
    /* clang-format off */
    const row rows[] = {
        {"depth to space", MPL_OP_depth_to_space, {IN(f32, DIMS(1, 8, 1, 1), NULL)},
            {LIST(blocksize, 2)},
         {DIMS(1, 2, 2, 2)}, {VALUES(0, 2, 4, 6, 1, 3, 5, 7)}, 0},
        {"depth to space, columns first", MPL_OP_depth_to_space, {IN(f32, DIMS(1, 8, 1, 1), NULL)},
         {LIST(blocksize, 2), MPL_TEXT(mode, "CRD")}, {DIMS(1, 2, 2, 2)}, {VALUES(0, 1, 2, 3, 4, 5,
             6, 7)},
         0},
        {"depth to space, two columns", MPL_OP_depth_to_space, {IN(f32, DIMS(1, 4, 1, 2), NULL)},
         {LIST(blocksize, 2)}, {DIMS(1, 1, 2, 4)}, {VALUES(0, 2, 1, 3, 4, 6, 5, 7)}, 0},
        {"space to depth", MPL_OP_space_to_depth, {IN(f32, DIMS(1, 1, 2, 4), NULL)},
            {LIST(blocksize, 2)},
         {DIMS(1, 4, 1, 2)}, {VALUES(0, 2, 1, 3, 4, 6, 5, 7)}, 0},
        {"space to depth, two channels", MPL_OP_space_to_depth, {IN(f32, DIMS(1, 2, 2, 2), NULL)},
         {LIST(blocksize, 2)}, {DIMS(1, 8, 1, 1)}, {VALUES(0, 4, 1, 5, 2, 6, 3, 7)}, 0},
        {"space to depth of nothing", MPL_OP_space_to_depth, {IN(f32, DIMS(0, 2, 2, 2), NULL)},
         {LIST(blocksize, 2)}, {DIMS(0, 8, 1, 1)}, {EMPTY}, 0},
        {"upper triangle", MPL_OP_trilu, {IN(f32, DIMS(3, 3), VALUES(1, 2, 3, 4, 5, 6, 7, 8, 9))},
            {{0}},
         {DIMS(3, 3)}, {VALUES(1, 2, 3, 0, 5, 6, 0, 0, 9)}, 0},
        {"upper triangle, k = 1", MPL_OP_trilu, {IN(f32, DIMS(2, 3), VALUES(1, 2, 3, 4, 5, 6))},
         {LIST(k, 1)}, {DIMS(2, 3)}, {VALUES(0, 2, 3, 0, 0, 6)}, 0},
        {"lower triangles", MPL_OP_trilu, {IN(f32, DIMS(2, 2, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8))},
         {LIST(upper, 0)}, {DIMS(2, 2, 2)}, {VALUES(1, 0, 3, 4, 5, 0, 7, 8)}, 0},
        {"lower triangle, k = -1", MPL_OP_trilu, {IN(f32, DIMS(3, 2), VALUES(1, 2, 3, 4, 5, 6))},
         {LIST(upper, 0), LIST(k, -1)}, {DIMS(3, 2)}, {VALUES(0, 0, 3, 0, 5, 6)}, 0},
        {"lower triangle, k far out", MPL_OP_trilu, {IN(f32, DIMS(2, 2), VALUES(1, 2, 3, 4))},
         {LIST(upper, 0), LIST(k, INT64_MIN)}, {DIMS(2, 2)}, {VALUES(0, 0, 0, 0)}, 0},
        {"upper triangle, k far out", MPL_OP_trilu, {IN(f32, DIMS(2, 2), VALUES(1, 2, 3, 4))},
         {LIST(k, INT64_MAX)}, {DIMS(2, 2)}, {VALUES(0, 0, 0, 0)}, 0},
        {"reverse sequence", MPL_OP_reverse_sequence,
         {IN(f32, DIMS(3, 2), NULL), IN(i64, DIMS(2), VALUES(2, 3))}, {{0}}, {DIMS(3, 2)},
         {VALUES(2, 5, 0, 3, 4, 1)}, 0},
        {"reverse sequence, batch first", MPL_OP_reverse_sequence,
         {IN(f32, DIMS(2, 2, 2), NULL), IN(i64, DIMS(2), VALUES(1, 2))},
         {LIST(batch_axis, 0), LIST(time_axis, 1)}, {DIMS(2, 2, 2)}, {VALUES(0, 1, 2, 3, 6, 7, 4,
             5)}, 0},
        {"one hot", MPL_OP_one_hot, {IN(i64, DIMS(3), VALUES(1, -1, 5)), IN(f32, DIMS(2), VALUES(2,
            3))},
         {LIST(depth, 3)}, {DIMS(3, 3)}, {VALUES(2, 3, 2, 2, 2, 3, 2, 2, 2)}, 0},
        {"one hot, axis first", MPL_OP_one_hot,
         {IN(i32, DIMS(2), VALUES(1, 0)), IN(f32, DIMS(2), VALUES(0, 1))}, {LIST(depth, 2),
             LIST(axis, 0)},
         {DIMS(2, 2)}, {VALUES(0, 1, 1, 0)}, 0},
        {"one hot of floats", MPL_OP_one_hot,
         {IN(f64, DIMS(2), VALUES(1, 1e300)), IN(f32, DIMS(2), VALUES(0, 1))}, {LIST(depth, 2)},
         {DIMS(2, 2)}, {VALUES(0, 1, 0, 0)}, 0},
    };
    /* clang-format on */

    RUN(rows);
}

/* Values are those of ONNX's own examples or follow from its formulas by hand. */
TEST(test_resize)
{
    const unsigned f32 = MPL_SET(f32) | MPL_SET(f64);
    /* clang-format off */
    const row rows[] = {
        {"nearest, twice and thrice", MPL_OP_resize, {IN(f32, DIMS(1, 1, 2, 2), VALUES(1, 2, 3,
            4))},
         {MPL_FLOATS(scales, 4, VALUES(1, 1, 2, 3))}, {DIMS(1, 1, 4, 6)},
         {VALUES(1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4)}, 0},
        {"nearest, to a size, some axes", MPL_OP_resize, {IN(f32, DIMS(2, 4), NULL)},
         {LIST(sizes, 2), LIST(axes, 1)}, {DIMS(2, 2)}, {VALUES(0, 2, 4, 6)}, 0},
        {"nearest, ceil", MPL_OP_resize, {IN(f32, DIMS(4), NULL)},
         {LIST(sizes, 8), MPL_TEXT(nearest_mode, "ceil"), MPL_TEXT(coordinate_mode, "half_pixel")},
         {DIMS(8)}, {VALUES(0, 1, 1, 2, 2, 3, 3, 3)}, 0},
        {"nearest, floor, asymmetric", MPL_OP_resize, {IN(f32, DIMS(2), NULL)},
         {LIST(sizes, 5), MPL_TEXT(nearest_mode, "floor"), MPL_TEXT(coordinate_mode, "asymmetric")},
         {DIMS(5)}, {VALUES(0, 0, 0, 1, 1)}, 0},
        {"nearest, half up or down: down", MPL_OP_resize, {IN(f32, DIMS(4), NULL)}, {LIST(sizes,
            2)},
         {DIMS(2)}, {VALUES(0, 2)}, 0},
        {"nearest, half up or down: up", MPL_OP_resize, {IN(f32, DIMS(4), NULL)},
         {LIST(sizes, 2), MPL_TEXT(nearest_mode, "round_prefer_ceil")}, {DIMS(2)}, {VALUES(1, 3)},
             0},
        {"linear", MPL_OP_resize, {IN(f32, DIMS(1, 1, 2, 2), VALUES(1, 2, 3, 4))},
         {MPL_FLOATS(scales, 4, VALUES(1, 1, 2, 2)), MPL_TEXT(mode, "linear")}, {DIMS(1, 1, 4, 4)},
         {VALUES(1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4)},
             f32},
        {"linear, corners aligned", MPL_OP_resize, {IN(f32, DIMS(2), VALUES(0, 3))},
         {LIST(sizes, 4), MPL_TEXT(mode, "linear"), MPL_TEXT(coordinate_mode, "align_corners")},
             {DIMS(4)},
         {VALUES(0, 1, 2, 3)}, f32},
        {"linear, down by 0.6, corners aligned", MPL_OP_resize,
         {IN(f32, DIMS(1, 1, 2, 4), VALUES(1, 2, 3, 4, 5, 6, 7, 8))},
         {MPL_FLOATS(scales, 4, VALUES(1, 1, 0.6, 0.6)), MPL_TEXT(mode, "linear"),
          MPL_TEXT(coordinate_mode, "align_corners")},
         {DIMS(1, 1, 1, 2)}, {VALUES(1, 1 + 3 / 1.4)}, f32},
        {"linear, to one element", MPL_OP_resize, {IN(f32, DIMS(4), NULL)},
         {LIST(sizes, 1), MPL_TEXT(mode, "linear"), MPL_TEXT(coordinate_mode,
             "pytorch_half_pixel")},
         {DIMS(1)}, {VALUES(0)}, f32},
        {"linear, symmetric", MPL_OP_resize, {IN(f32, DIMS(4), NULL)},
         {MPL_FLOATS(scales, 1, VALUES(0.6)), MPL_TEXT(mode, "linear"),
          MPL_TEXT(coordinate_mode, "half_pixel_symmetric")},
         {DIMS(2)}, {VALUES(2 * (1 - 2 / 2.4) + 0.5 / 0.6 - 0.5,
             2 * (1 - 2 / 2.4) + 1.5 / 0.6 - 0.5)},
         f32},
        {"cubic", MPL_OP_resize, {IN(f32, DIMS(4), VALUES(1, 2, 3, 4))},
         {MPL_FLOATS(scales, 1, VALUES(2)), MPL_TEXT(mode, "cubic")}, {DIMS(8)},
         {VALUES(0.89453125, 1.19140625, 1.66796875, 2.296875, 2.703125, 3.33203125, 3.80859375,
             4.10546875)},
         f32},
        {"cubic, what is outside left out", MPL_OP_resize, {IN(f32, DIMS(2), VALUES(5, 5))},
         {LIST(sizes, 3), MPL_TEXT(mode, "cubic"), MPL_INT(exclude_outside, 1)}, {DIMS(3)},
         {VALUES(5, 5, 5)}, f32},
        {"nothing", MPL_OP_resize, {IN(f32, DIMS(0, 2), NULL)}, {MPL_FLOATS(scales, 2, VALUES(2,
            2))},
         {DIMS(0, 4)}, {EMPTY}, 0},
    };
    /* clang-format on */

    RUN(rows);
}

typedef struct refusal {
    mpl_op_kind kind;
    test_tensor in[4];
    mpl_attr attr[MOST_ATTRS];
    uint32_t n_out;
    const char *says;
} refusal;

/* Boxes read, written, and computed while they are. The last row is longer than a piece of the
 * loops. */
TEST(test_boxes)
{
    static double long_in[1300], long_out[1300];
    /* clang-format off */
    const row rows[] = {
        {"access", MPL_OP_access, {IN(f32, DIMS(3, 4), NULL)}, {LIST(dims, 2, 2), LIST(strides, -4,
            2),
         LIST(offset, 5)}, {DIMS(2, 2)}, {VALUES(5, 7, 1, 3)}, 0},
        {"access, repeated", MPL_OP_access, {IN(f32, DIMS(4), NULL)}, {LIST(dims, 2, 2),
            LIST(strides, 0, 3)},
         {DIMS(2, 2)}, {VALUES(0, 3, 0, 3)}, 0},
        {"access by index", MPL_OP_access, {IN(f32, DIMS(2, 3), NULL)}, {MPL_TEXT(index, "1,::-2")},
         {DIMS(2)}, {VALUES(5, 3)}, 0},
        {"access of one", MPL_OP_access, {IN(f32, DIMS(2, 3), NULL)}, {NONE_OF(dims),
            NONE_OF(strides),
         LIST(offset, 4)}, {SCALAR}, {VALUES(4)}, 0},
        {"access of nothing", MPL_OP_access, {IN(f32, DIMS(2, 3), NULL)}, {LIST(dims, 0, 2),
         LIST(strides, 99, 1)}, {DIMS(0, 2)}, {EMPTY}, 0},
        {"assign", MPL_OP_assign, {IN(f32, DIMS(2, 3), NULL), IN(f32, DIMS(2), VALUES(7, 8))},
         {LIST(dims, 2), LIST(strides, -2), LIST(offset, 4)}, {DIMS(2, 3)}, {VALUES(0, 1, 8, 3, 7,
             5)}, 0},
        {"assign, broadcast", MPL_OP_assign, {IN(f32, DIMS(2, 3), NULL), IN(f32, DIMS(1),
            VALUES(9))},
         {MPL_TEXT(index, ":,1")}, {DIMS(2, 3)}, {VALUES(0, 9, 2, 3, 9, 5)}, 0},
        {"assign nothing", MPL_OP_assign, {IN(f32, DIMS(2), NULL), IN(f32, DIMS(0), NULL)},
         {MPL_TEXT(index, "2:")}, {DIMS(2)}, {VALUES(0, 1)}, 0},
        {"fused", MPL_OP_fused, {{.present = false}, IN(f32, DIMS(2, 3), NULL), IN(f32, DIMS(3),
            VALUES(1, 2, 4))},
         {LIST(dims, 2, 2), LIST(loads, 1, 1, 3, 1, 2, 2, 0, -1), MPL_TEXT(expr, "0,1,mul,1,sub")},
         {DIMS(2, 2)}, {VALUES(0, 2, 12, 8)}, MPL_SET_FLOAT},
        {"fused into its base", MPL_OP_fused, {IN(f32, DIMS(2, 3), NULL), IN(f32, DIMS(1),
            VALUES(9))},
         {LIST(dims, 3), LIST(loads, 0, 3, 1, 1, 0, 0), MPL_TEXT(expr, "0,1,add"), LIST(strides,
             1)},
         {DIMS(2, 3)}, {VALUES(12, 13, 14, 3, 4, 5)}, MPL_SET_FLOAT},
        {"fused, long", MPL_OP_fused, {IN(f32, DIMS(650, 2), long_in)},
         {LIST(dims, 650), LIST(loads, 0, 1, 2), MPL_TEXT(expr, "0,neg"), LIST(strides, 2)},
             {DIMS(650, 2)},
         {long_out}, MPL_SET(f32)},
    };
    /* clang-format on */

    for (int i = 0; i < 1300; i++) {
        long_in[i] = i;
        long_out[i] = i % 2 == 0 ? -i - 1 : i; /* what index i + 1 held, negated, where the box has
                                                  no offset */
    }
    RUN(rows);
}

TEST(test_refusals)
{
    const int64_t big = INT64_C(1) << 62;
    /* clang-format off */
    const refusal rows[] = {
        {MPL_OP_reshape, {IN(f32, DIMS(2, 3), NULL)}, {{0}}, 1, "'shape' is missing"},
        {MPL_OP_access, {IN(f32, DIMS(2, 3), NULL)}, {LIST(dims, 2)}, 1, "needs dims and strides"},
        {MPL_OP_access, {IN(f32, DIMS(2, 3), NULL)}, {LIST(dims, 2), LIST(strides, 6)}, 1,
            "outside"},
        {MPL_OP_access, {IN(f32, DIMS(2, 3), NULL)}, {LIST(dims, 2), LIST(strides, -1)}, 1,
            "outside"},
        {MPL_OP_access, {IN(f32, DIMS(2, 3), NULL)}, {LIST(dims, 3), LIST(strides, big)}, 1,
            "outside"},
        {MPL_OP_access, {IN(f32, DIMS(2, 3), NULL)}, {LIST(dims, -1), LIST(strides, 1)}, 1,
            "negative"},
        {MPL_OP_access, {IN(f32, DIMS(2, 3), NULL)}, {MPL_TEXT(index, "2")}, 1,
            "no number in range"},
        {MPL_OP_assign, {IN(f32, DIMS(4), NULL), IN(f32, DIMS(2), NULL)}, {LIST(dims, 2),
            LIST(strides, 0)}, 1,
         "twice"},
        {MPL_OP_assign, {IN(f32, DIMS(4), NULL), IN(f32, DIMS(3), NULL)}, {LIST(dims, 2),
            LIST(strides, 1)}, 1,
         "broadcast"},
        {MPL_OP_assign, {IN(f32, DIMS(4), NULL), IN(f64, DIMS(2), NULL)}, {LIST(dims, 2),
            LIST(strides, 1)}, 1,
         "type"},
        {MPL_OP_fused, {IN(i32, DIMS(4), NULL)}, {LIST(dims, 4), LIST(loads, 0, 0, 1),
            MPL_TEXT(expr, "0,neg")}, 1,
         "type"},
        {MPL_OP_fused, {IN(f32, DIMS(4), NULL)}, {LIST(dims, 4), LIST(loads, 0, 3, -1),
            MPL_TEXT(expr, "0,neg")},
         1, "overwrite"},
        {MPL_OP_fused, {IN(f32, DIMS(4), NULL)}, {LIST(dims, 4), LIST(loads, 1, 0, 1),
            MPL_TEXT(expr, "0,neg")}, 1,
         "not there"},
        {MPL_OP_fused, {IN(f32, DIMS(4), NULL)}, {LIST(dims, 4), LIST(loads, 0, 1, 1),
            MPL_TEXT(expr, "0,neg")}, 1,
         "outside"},
        {MPL_OP_fused, {IN(f32, DIMS(4), NULL)}, {LIST(dims, 4), LIST(loads, 0, 0, 1),
            MPL_TEXT(expr, "0,add")}, 1,
         "is none"},
        {MPL_OP_fused, {IN(f32, DIMS(4), NULL)}, {LIST(dims, 4), LIST(loads, 0, 0, 1),
            MPL_TEXT(expr, "0,softmax")},
         1, "is none"},
        {MPL_OP_fused, {IN(f32, DIMS(4), NULL)}, {LIST(dims, 4), LIST(loads, 0, 0, 1),
            MPL_TEXT(expr, "0,0")}, 1,
         "is none"},
        {MPL_OP_fused, {IN(f32, DIMS(4), NULL)}, {LIST(dims, 4), LIST(loads, 0, 0), MPL_TEXT(expr,
            "0")}, 1,
         "loads of 3"},
        {MPL_OP_view, {IN(f32, DIMS(4), NULL)}, {MPL_TEXT(index, "1")}, 1, "program"},
        {MPL_OP_reshape, {IN(f32, DIMS(2, 3), NULL)}, {LIST(shape, 7)}, 1,
            "numbers of elements differ"},
        {MPL_OP_reshape, {IN(f32, DIMS(2, 3), NULL)}, {LIST(shape, -1, -1)}, 1, "one -1"},
        {MPL_OP_reshape, {IN(f32, DIMS(2, 3), NULL)}, {LIST(shape, -2)}, 1, "one -1"},
        {MPL_OP_reshape, {IN(f32, DIMS(2, 3), NULL)}, {LIST(shape, 2, 3, 0)}, 1, "one -1"},
        {MPL_OP_reshape, {IN(f32, DIMS(2, 3), NULL)}, {LIST(shape, 4, -1)}, 1, "do not divide"},
        {MPL_OP_reshape, {IN(f32, DIMS(0), NULL)}, {LIST(shape, 0, -1)}, 1, "open"},
        {MPL_OP_reshape, {IN(f32, DIMS(2, 3), NULL)}, {LIST(shape, big, 4, -1)}, 1, "2^63"},
        {MPL_OP_flatten, {IN(f32, DIMS(2, 3), NULL)}, {LIST(axis, 3)}, 1, "outside"},
        {MPL_OP_flatten, {IN(f32, DIMS(0, big, 4), NULL)}, {LIST(axis, 1)}, 1, "2^63"},
        {MPL_OP_squeeze, {IN(f32, DIMS(2, 1), NULL)}, {LIST(axes, 0)}, 1, "only an axis of 1"},
        {MPL_OP_unsqueeze, {IN(f32, DIMS(2, 1), NULL)}, {{0}}, 1, "'axes' is missing"},
        {MPL_OP_unsqueeze, {IN(f32, DIMS(2, 1), NULL)}, {LIST(axes, 1, -3)}, 1, "given twice"},
        {MPL_OP_unsqueeze, {IN(f32, DIMS(1, 1, 1, 1, 1, 1, 1, 1), NULL)}, {LIST(axes, 0)}, 1,
            "at most"},
        {MPL_OP_concat, {IN(f32, DIMS(2), NULL)}, {{0}}, 1, "'axis' is missing"},
        {MPL_OP_concat, {IN(f32, DIMS(2), NULL), IN(f64, DIMS(2), NULL)}, {LIST(axis, 0)}, 1,
            "type"},
        {MPL_OP_concat, {IN(f32, DIMS(2, 2), NULL), IN(f32, DIMS(2, 3), NULL)}, {LIST(axis, 0)}, 1,
         "differ"},
        {MPL_OP_concat, {IN(f32, DIMS(2, 2), NULL), IN(f32, DIMS(2), NULL)}, {LIST(axis, 0)}, 1,
            "differ"},
        {MPL_OP_concat, {IN(f32, DIMS(0, big), NULL), IN(f32, DIMS(0, big), NULL)}, {LIST(axis, 1)},
            1,
         "2^63"},
        {MPL_OP_split, {IN(f32, DIMS(4), NULL)}, {LIST(split, 1, 1)}, 2, "leave 2 of 4"},
        {MPL_OP_split, {IN(f32, DIMS(4), NULL)}, {LIST(split, 5, -1)}, 2, "cannot be split"},
        {MPL_OP_split, {IN(f32, DIMS(4), NULL)}, {LIST(split, 4)}, 2, "1 sizes for 2"},
        {MPL_OP_split, {IN(f32, DIMS(5), NULL)}, {{0}}, 4, "cannot be split"},
        {MPL_OP_split, {IN(f32, SCALAR, NULL)}, {{0}}, 1, "axis"},
        {MPL_OP_slice, {IN(f32, DIMS(4), NULL)}, {LIST(starts, 0)}, 1, "must be there"},
        {MPL_OP_slice, {IN(f32, DIMS(4), NULL)}, {LIST(starts, 0), LIST(ends, 1, 2)}, 1,
            "one length"},
        {MPL_OP_slice, {IN(f32, DIMS(4), NULL)}, {LIST(starts, 0), LIST(ends, 1), LIST(steps, 0)},
            1,
         "step 0"},
        {MPL_OP_slice, {IN(f32, DIMS(4, 4), NULL)},
         {LIST(starts, 0, 0), LIST(ends, 1, 1), LIST(axes, 1, -1)}, 1, "twice"},
        {MPL_OP_transpose, {IN(f32, DIMS(4, 4), NULL)}, {LIST(perm, 0)}, 1, "perm has 1"},
        {MPL_OP_transpose, {IN(f32, DIMS(4, 4), NULL)}, {LIST(perm, 1, 1)}, 1, "twice"},
        {MPL_OP_expand, {IN(f32, DIMS(3), NULL)}, {LIST(shape, 2)}, 1, "broadcast"},
        {MPL_OP_expand, {IN(f32, DIMS(1), NULL)}, {LIST(shape, -1)}, 1, "negative"},
        {MPL_OP_tile, {IN(f32, DIMS(3), NULL)}, {LIST(repeats, 2, 2)}, 1, "repeats has 2"},
        {MPL_OP_tile, {IN(f32, DIMS(3), NULL)}, {LIST(repeats, -1)}, 1, "negative"},
        {MPL_OP_tile, {IN(f32, DIMS(3, 3), NULL)}, {LIST(repeats, big, 1)}, 1, "2^63"},
        {MPL_OP_pad, {IN(f32, DIMS(3), NULL)}, {LIST(pads, 1)}, 1, "two of each"},
        {MPL_OP_pad, {IN(f32, DIMS(3), NULL)}, {LIST(pads, -2, -2)}, 1, "cannot be padded"},
        {MPL_OP_pad, {IN(f32, DIMS(3), NULL)}, {LIST(pads, INT64_MAX, 1)}, 1, "cannot be padded"},
        {MPL_OP_pad, {IN(f32, DIMS(3), NULL)}, {LIST(pads, 1, 1), MPL_TEXT(mode, "mirror")}, 1,
            "mirror"},
        {MPL_OP_pad, {IN(f32, DIMS(0), NULL)}, {LIST(pads, 1, 1), MPL_TEXT(mode, "edge")}, 1,
            "no element"},
        {MPL_OP_pad, {IN(f32, DIMS(3), NULL), IN(f64, SCALAR, NULL)}, {LIST(pads, 1, 1)}, 1,
            "type"},
        {MPL_OP_pad, {IN(f32, DIMS(3), NULL), IN(f32, DIMS(2), NULL)}, {LIST(pads, 1, 1)}, 1,
         "one element"},
        {MPL_OP_gather, {IN(f32, DIMS(3), NULL), IN(f32, DIMS(1), NULL)}, {{0}}, 1, "type"},
        {MPL_OP_gather, {IN(f32, SCALAR, NULL), IN(i64, DIMS(1), NULL)}, {{0}}, 1, "axis"},
        {MPL_OP_gather, {IN(f32, DIMS(1, 1, 1, 1, 1), NULL), IN(i64, DIMS(1, 1, 1, 1, 1), NULL)},
            {{0}}, 1,
         "9 dims"},
        {MPL_OP_gather_elements, {IN(f32, DIMS(3, 2), NULL), IN(i64, DIMS(3), NULL)}, {{0}}, 1,
         "must agree"},
        {MPL_OP_gather_elements, {IN(f32, DIMS(3, 2), NULL), IN(i64, DIMS(3, 3), NULL)}, {{0}}, 1,
         "beside axis 0"},
        {MPL_OP_gather_nd, {IN(f32, DIMS(3, 2), NULL), IN(i64, DIMS(1, 3), NULL)}, {{0}}, 1,
         "last dim is 3"},
        {MPL_OP_gather_nd, {IN(f32, DIMS(3, 2), NULL), IN(i64, DIMS(2, 1), NULL)}, {LIST(batch_dims,
            1)}, 1,
         "batch dim 0"},
        {MPL_OP_gather_nd, {IN(f32, DIMS(3), NULL), IN(i64, DIMS(3, 1), NULL)}, {LIST(batch_dims,
            1)}, 1,
         "not below"},
        {MPL_OP_scatter_elements, {IN(f32, DIMS(3), NULL), IN(i64, DIMS(1), NULL), IN(f32, DIMS(2),
            NULL)},
         {{0}}, 1, "updates"},
        {MPL_OP_scatter_elements, {IN(f32, DIMS(3), NULL), IN(i64, DIMS(1), NULL), IN(f32, DIMS(1),
            NULL)},
         {MPL_TEXT(reduction, "avg")}, 1, "avg"},
        {MPL_OP_scatter_elements,
         {IN(bool, DIMS(3), NULL), IN(i64, DIMS(1), NULL), IN(bool, DIMS(1), NULL)},
         {MPL_TEXT(reduction, "add")}, 1, "bool"},
        {MPL_OP_scatter_nd, {IN(f32, DIMS(3), NULL), IN(i64, DIMS(1, 1), NULL), IN(f32, DIMS(2),
            NULL)},
         {{0}}, 1, "updates"},
        {MPL_OP_scatter_nd, {IN(f32, DIMS(3), NULL), IN(i64, DIMS(1, 2), NULL), IN(f32, DIMS(1),
            NULL)},
         {{0}}, 1, "last dim is 2"},
        {MPL_OP_depth_to_space, {IN(f32, DIMS(1, 6, 1, 1), NULL)}, {LIST(blocksize, 2)}, 1,
         "do not divide"},
        {MPL_OP_depth_to_space, {IN(f32, DIMS(1, 4, 1, 1), NULL)}, {{0}}, 1, "blocksize"},
        {MPL_OP_depth_to_space, {IN(f32, DIMS(1, 4, 1, 1), NULL)},
         {LIST(blocksize, 2), MPL_TEXT(mode, "RCD")}, 1, "RCD"},
        {MPL_OP_space_to_depth, {IN(f32, DIMS(1, 4, 3, 2), NULL)}, {LIST(blocksize, 2)}, 1,
         "do not divide"},
        {MPL_OP_trilu, {IN(f32, DIMS(4), NULL)}, {{0}}, 1, "2 to 8 dims"},
        {MPL_OP_reverse_sequence, {IN(f32, DIMS(2, 3), NULL), IN(i64, DIMS(2), NULL)}, {{0}}, 1,
         "2 lengths"},
        {MPL_OP_reverse_sequence, {IN(f32, DIMS(2, 3), NULL), IN(i64, DIMS(2), NULL)},
            {LIST(time_axis, 2)},
         1, "time_axis 2"},
        {MPL_OP_one_hot, {IN(i64, DIMS(2), NULL), IN(f32, DIMS(3), NULL)}, {LIST(depth, 2)}, 1,
         "off and on"},
        {MPL_OP_one_hot, {IN(i64, DIMS(2), NULL), IN(f32, DIMS(2), NULL)}, {{0}}, 1, "depth"},
        {MPL_OP_resize, {IN(f32, DIMS(2), NULL)}, {{0}}, 1, "neither"},
        {MPL_OP_resize, {IN(f32, DIMS(2), NULL)}, {LIST(sizes, 1, 2)}, 1, "sizes has 2"},
        {MPL_OP_resize, {IN(f32, DIMS(2), NULL)}, {LIST(sizes, -1)}, 1, "cannot be scaled"},
        {MPL_OP_resize, {IN(f32, DIMS(0), NULL)}, {LIST(sizes, 2)}, 1, "cannot be scaled"},
        {MPL_OP_resize, {IN(f32, DIMS(2), NULL)}, {MPL_FLOATS(scales, 1, VALUES(NAN))}, 1,
         "cannot be scaled"},
        {MPL_OP_resize, {IN(f32, DIMS(2), NULL)}, {MPL_FLOATS(scales, 1, VALUES(1e300))}, 1,
         "cannot be scaled"},
        {MPL_OP_resize, {IN(f32, DIMS(2), NULL)}, {LIST(sizes, 1), MPL_TEXT(mode, "area")}, 1,
            "area"},
        {MPL_OP_resize, {IN(f32, DIMS(2), NULL)},
         {LIST(sizes, 1), MPL_TEXT(coordinate_mode, "tf_crop_and_resize")}, 1,
             "tf_crop_and_resize"},
        {MPL_OP_resize, {IN(bool, DIMS(2), NULL)}, {LIST(sizes, 1), MPL_TEXT(mode, "linear")}, 1,
            "type"},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        row as_row = {.kind = rows[i].kind};
        test_op t;

        memcpy(as_row.in, rows[i].in, sizeof as_row.in);
        memcpy(as_row.attr, rows[i].attr, sizeof as_row.attr);
        assert_status(&t.ctx,
                      test_op_make(&t, rows[i].kind, count_in(&as_row), rows[i].in,
                                   count_attrs(&as_row), rows[i].attr, rows[i].n_out),
                      MPL_EINPUT);
        if (strstr(t.ctx.message, rows[i].says) == NULL)
            fail_msg("refusal %zu: '%s' does not say '%s'", i, t.ctx.message, rows[i].says);
        test_op_free(&t);
    }
}

/* What only the data can tell: refused while running, before anything outside is touched. */
TEST(test_indices_out_of_range)
{
    /* clang-format off */
    const refusal rows[] = {
        {MPL_OP_gather, {IN(f32, DIMS(3), NULL), IN(i64, DIMS(1), VALUES(3))}, {{0}}, 1,
         "index 3 outside [-3,2]"},
        {MPL_OP_gather, {IN(f32, DIMS(3), NULL), IN(i32, DIMS(1), VALUES(-4))}, {{0}}, 1,
         "index -4 outside [-3,2]"},
        {MPL_OP_gather, {IN(f32, DIMS(0, 2), NULL), IN(i64, DIMS(1), VALUES(0))}, {{0}}, 1,
         "index 0 outside"},
        {MPL_OP_gather_elements, {IN(f32, DIMS(3), NULL), IN(i64, DIMS(1), VALUES(7))}, {{0}}, 1,
         "index 7 outside [-3,2]"},
        {MPL_OP_gather_nd, {IN(f32, DIMS(3, 2), NULL), IN(i64, DIMS(1, 2), VALUES(0, 2))}, {{0}}, 1,
         "index 2 outside [-2,1]"},
        {MPL_OP_scatter_elements,
         {IN(f32, DIMS(3), NULL), IN(i64, DIMS(1), VALUES(3)), IN(f32, DIMS(1), NULL)}, {{0}}, 1,
         "index 3 outside [-3,2]"},
        {MPL_OP_scatter_nd,
         {IN(f32, DIMS(3), NULL), IN(i64, DIMS(1, 1), VALUES(-4)), IN(f32, DIMS(1), NULL)}, {{0}},
             1,
         "index -4 outside [-3,2]"},
        {MPL_OP_reverse_sequence, {IN(f32, DIMS(2, 1), NULL), IN(i64, DIMS(1), VALUES(3))}, {{0}},
            1,
         "length 3 outside"},
        {MPL_OP_reverse_sequence, {IN(f32, DIMS(2, 1), NULL), IN(i64, DIMS(1), VALUES(-1))}, {{0}},
            1,
         "length -1 outside"},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        row as_row = {.kind = rows[i].kind};
        test_op t;

        memcpy(as_row.in, rows[i].in, sizeof as_row.in);
        assert_ok(&t.ctx, test_op_make(&t, rows[i].kind, count_in(&as_row), rows[i].in, 0, NULL,
                                       rows[i].n_out));
        assert_status(&t.ctx, test_op_run(&t), MPL_EINPUT);
        if (strstr(t.ctx.message, rows[i].says) == NULL)
            fail_msg("row %zu: '%s' does not say '%s'", i, t.ctx.message, rows[i].says);
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
    int64_t number[2][MPL_MAX_RANK]; /* perm; or starts and steps; or repeats; or pads before and
                                        after */
    int64_t ends[MPL_MAX_RANK];
} random_case;

/* The input index that an output index comes from, for each operator by its own definition; false:
 * a pad. */
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

/* Draws attributes and works out the output's dims by counting. */
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

    for (int round = 0; round < 400; round++) {
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

TESTS(test_views, test_concat_and_split, test_slice_and_transpose, test_repeats, test_gather,
      test_scatter, test_blocks_and_triangles, test_resize, test_boxes, test_refusals,
      test_indices_out_of_range, test_random_moves)
