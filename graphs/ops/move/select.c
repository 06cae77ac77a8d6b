/* select.c -- results whose length depends on data: non_zero, compress, nms; and `first`, which
 * says of a value that only as many of its slices count as a scalar tells.
 *
 * Each is planned with as many slices as there can be and has its length as its last output, an i64
 * scalar; slices behind the length are zero. */
#include "graphs/ops/ops_priv.h"

#include <stdlib.h>

/* Output `i` is a length. */
static mpl_status shape_length(const mpl_shape_call *call, uint32_t i)
{
    call->out_shape[i].rank = 0;
    call->out_type[i] = MPL_TYPE_i64;
    return MPL_OK;
}

static void put_length(const mpl_op_call *call, uint32_t i, int64_t length)
{
    *(int64_t *)call->out[i].data = length;
}

mpl_status mpl_shape_first(mpl_ctx *ctx, const mpl_shape_call *call)
{
    uint32_t axis;

    MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET(i64)));
    MPL_PASS(mpl_check_rank(ctx, call, 1, 0, 0));
    MPL_PASS(mpl_axis_attr(ctx, call, 0, call->in_shape[0]->rank, &axis));
    return mpl_like_input(call, 0, call->in_type[0]);
}

/* ---- non_zero ---- */

mpl_status mpl_shape_non_zero(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *in = call->in_shape[0];

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_ANY));
    call->out_shape[0] = (mpl_shape){2, {in->rank, mpl_count(in)}};
    call->out_type[0] = MPL_TYPE_i64;
    return shape_length(call, 1);
}

mpl_status mpl_eval_non_zero(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *in = &call->in[0];
    int64_t *out = call->out[0].data, n = mpl_count(&in->shape), found = 0;
    int64_t index[MPL_MAX_RANK] = {0};

    (void)ctx;
    memset(out, 0, (size_t)(in->shape.rank * n) * sizeof *out);
    for (int64_t i = 0; i < n; i++) {
        if (mpl_get(in->type, in->data, i) != 0) {
            for (uint32_t k = 0; k < in->shape.rank; k++)
                out[k * n + found] = index[k];
            found++;
        }
        mpl_step(in->shape.dim, in->shape.rank, index, 0, NULL, NULL);
    }
    put_length(call, 1, found);
    return MPL_OK;
}

/* ---- compress: the slices along an axis whose condition is true ---- */

mpl_status mpl_shape_compress(mpl_ctx *ctx, const mpl_shape_call *call)
{
    uint32_t axis;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_ANY));
    MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET(bool)));
    MPL_PASS(mpl_check_rank(ctx, call, 1, 1, 1));
    MPL_PASS(mpl_axis_attr(ctx, call, 0, call->in_shape[0]->rank, &axis));
    mpl_like_input(call, 0, call->in_type[0]);
    if (call->in_shape[1]->dim[0] < call->out_shape[0].dim[axis])
        call->out_shape[0].dim[axis] = call->in_shape[1]->dim[0];
    return shape_length(call, 1);
}

mpl_status mpl_eval_compress(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *in = &call->in[0].shape, *to = &call->out[0].shape;
    uint32_t axis = mpl_axis_of(call, 0, in->rank);
    size_t row = (size_t)mpl_count_dims(in, axis + 1, in->rank) * mpl_type_bytes(call->in[0].type);
    int64_t outer = mpl_count_dims(in, 0, axis), found = 0;

    (void)ctx;
    memset(call->out[0].data, 0, (size_t)(outer * to->dim[axis]) * row);
    for (int64_t i = 0; i < to->dim[axis]; i++) {
        if (((const uint8_t *)call->in[1].data)[i] == 0)
            continue;
        for (int64_t o = 0; o < outer && row > 0; o++)
            memcpy((char *)call->out[0].data + (size_t)(o * to->dim[axis] + found) * row,
                   (const char *)call->in[0].data + (size_t)(o * in->dim[axis] + i) * row, row);
        found++;
    }
    put_length(call, 1, found);
    return MPL_OK;
}

/* ---- nms: boxes that overlap no better one of their batch and class ---- */

mpl_status mpl_shape_nms(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *boxes = call->in_shape[0], *scores = call->in_shape[1];
    int64_t most = mpl_attr_int(call->graph, call->op, MPL_ATTR_k, 0);
    uint64_t rows = 0;
    char text[2][200];

    for (uint32_t i = 0; i < call->n_in; i++)
        if (call->in_shape[i] != NULL)
            MPL_PASS(mpl_check_type(ctx, call, i, MPL_SET(f32)));
    for (uint32_t i = 2; i < call->n_in; i++)
        if (call->in_shape[i] != NULL && mpl_count(call->in_shape[i]) != 1)
            return MPL_REFUSE(ctx, "a threshold has %" PRId64 " elements; one is needed",
                              mpl_count(call->in_shape[i]));
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dim[2] != 4 ||
        boxes->dim[0] != scores->dim[0] || boxes->dim[1] != scores->dim[2])
        return MPL_REFUSE(
            ctx,
            "boxes of dims %s and scores of dims %s; [batch,n,4] and [batch,classes,n] are needed",
            mpl_shape_text(boxes, text[0]), mpl_shape_text(scores, text[1]));
    most = most < 0 ? 0 : most > boxes->dim[1] ? boxes->dim[1] : most;
    if (!mpl_shape_count(&(mpl_shape){3, {scores->dim[0], scores->dim[1], most}}, &rows))
        return MPL_REFUSE(ctx, "it may select more than 2^63 boxes");
    call->out_shape[0] = (mpl_shape){2, {(int64_t)rows, 3}};
    call->out_type[0] = MPL_TYPE_i64;
    return shape_length(call, 1);
}

/* Corners of a box: low and high y, then x; or both axes swapped, which is no matter here. */
MPL_INLINE void corners(const float *box, bool centre, double at[2][2])
{
    for (int k = 0; k < 2; k++) {
        double a = (double)box[k], b = (double)box[2 + k];

        at[k][0] = centre ? a - b / 2 : a < b ? a : b;
        at[k][1] = centre ? a + b / 2 : a < b ? b : a;
    }
}

/* Area of the intersection over that of the union, of corners. */
MPL_INLINE double overlap(double a[2][2], double b[2][2])
{
    double both = 1;

    for (int k = 0; k < 2; k++) {
        double low = a[k][0] > b[k][0] ? a[k][0] : b[k][0];
        double high = a[k][1] < b[k][1] ? a[k][1] : b[k][1];

        if (!(high > low))
            return 0;
        both *= high - low;
    }
    return both > 0 ? both / ((a[0][1] - a[0][0]) * (a[1][1] - a[1][0]) +
                              (b[0][1] - b[0][0]) * (b[1][1] - b[1][0]) - both)
                    : 0;
}

enum { AT_ONCE = 8 };

/* The corners of the boxes that a row has selected so far: [AT_ONCE] of each side in turn. */
typedef struct selection {
    double (*side)[4][AT_ONCE];
    int64_t n;
} selection;

typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));
typedef int64_t mask __attribute__((vector_size(16)));

/* Whether a box meets one of a group at all: most pairs of boxes lie apart. A corner that is no
 * number meets nothing. side: [4][AT_ONCE]. */
static bool meets(double a[2][2], const double *side)
{
    const pair low[2] = {{a[0][0], a[0][0]}, {a[1][0], a[1][0]}};
    const pair high[2] = {{a[0][1], a[0][1]}, {a[1][1], a[1][1]}};
    mask any = {0};

    _Pragma("GCC unroll 4") for (int i = 0; i < AT_ONCE; i += 2)
    {
        const double *at = side + i;

        any |= (high[0] > *(const pair *)at) & (*(const pair *)(at + AT_ONCE) > low[0]) &
               (high[1] > *(const pair *)(at + 2 * AT_ONCE)) &
               (*(const pair *)(at + 3 * AT_ONCE) > low[1]);
    }
    return (any[0] | any[1]) != 0;
}

/* Whether a box shares no more than `most` with each box selected. */
static bool is_free(const selection *self, double a[2][2], double most)
{
    for (int64_t k = 0; k < self->n; k += AT_ONCE) {
        double(*side)[AT_ONCE] = self->side[k / AT_ONCE];
        int64_t n = self->n - k < AT_ONCE ? self->n - k : AT_ONCE;

        if (most >= 0 && n == AT_ONCE && !meets(a, (const double *)side))
            continue;
        for (int64_t i = 0; i < n; i++) {
            double b[2][2] = {{side[0][i], side[1][i]}, {side[2][i], side[3][i]}};

            if (overlap(a, b) > most)
                return false;
        }
    }
    return true;
}

static void keep(selection *self, double a[2][2])
{
    for (int k = 0; k < 4; k++)
        self->side[self->n / AT_ONCE][k][self->n % AT_ONCE] = a[k / 2][k % 2];
    self->n++;
}

typedef struct candidate {
    float score;
    int64_t box;
} candidate;

/* Best score first, ties by number. */
static int by_score(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->box > y->box) - (x->box < y->box);
}

/* The boxes whose score is above *least (NULL: all that have one), in order. Returns how many. */
static int64_t candidates_of(const float *score, int64_t n, const float *least, candidate *out)
{
    int64_t found = 0;

    for (int64_t i = 0; i < n; i++)
        if (least != NULL ? score[i] > *least : score[i] == score[i])
            out[found++] = (candidate){score[i], i};
    qsort(out, (size_t)found, sizeof *out, by_score);
    return found;
}

uint64_t mpl_nms_workspace(const mpl_graph *g, mpl_op op)
{
    uint64_t n = (uint64_t)g->value_shape[mpl_op_input(g, op, 1)].dim[2];

    return n * sizeof(candidate) + (n + AT_ONCE - 1) / AT_ONCE * sizeof(double[4][AT_ONCE]);
}

/* Selects boxes row by row; `best` has room for the candidates of one row, and then for the
 * selection. */
static void select_boxes(const mpl_op_call *call, candidate *best)
{
    const int64_t *dim = call->in[1].shape.dim, n = dim[2];
    const float *limit[2] = {NULL, NULL}; /* of overlap, of scores */
    double most_shared;
    int64_t most = mpl_attr_int(call->graph, call->op, MPL_ATTR_k, 0), found = 0;
    int64_t *out = call->out[0].data;
    bool centre = mpl_attr_int(call->graph, call->op, MPL_ATTR_center_point_box, 0) != 0;

    for (uint32_t i = 2; i < call->n_in; i++)
        limit[i - 2] = call->in[i].data;
    most_shared = limit[0] != NULL ? (double)*limit[0] : 0;
    memset(out, 0, (size_t)mpl_count(&call->out[0].shape) * sizeof *out);
    for (int64_t row = 0; row < dim[0] * dim[1]; row++) {
        const float *box = (const float *)call->in[0].data + row / dim[1] * n * 4;
        int64_t count = candidates_of((const float *)call->in[1].data + row * n, n, limit[1], best);
        selection s = {.side = (double(*)[4][AT_ONCE])(void *)(best + n)};

        for (int64_t c = 0; c < count && s.n < most; c++) {
            const int64_t index[3] = {row / dim[1], row % dim[1], best[c].box};
            double at[2][2];

            corners(box + 4 * best[c].box, centre, at);
            if (!is_free(&s, at, most_shared))
                continue;
            keep(&s, at);
            memcpy(out + 3 * found++, index, sizeof index);
        }
    }
    put_length(call, 1, found);
}

mpl_status mpl_eval_nms(mpl_ctx *ctx, const mpl_op_call *call)
{
    char *own = NULL;

    if (call->workspace == NULL)
        MPL_PASS(mpl_new(ctx, own, (size_t)mpl_nms_workspace(call->graph, call->op) + 1));
    select_boxes(call, own != NULL ? (void *)own : call->workspace);
    mpl_free(ctx, own);
    return MPL_OK;
}
