/* resample.c -- see rescale.h. */
#include "graphs/ops/move/resize.h"
#include "runtime/cpu/loops/rescale.h"

#include <math.h>

struct mpl_resample {
    int64_t planes, rows, columns; /* of the input */
    mpl_resize_axis y, x;
};

static bool fits(const mpl_graph *g, mpl_op op)
{
    const mpl_shape *x = &g->value_shape[mpl_op_input(g, op, 0)];
    const mpl_shape *y = &g->value_shape[mpl_op_output(g, op, 0)];

    return x->rank >= 2 && g->value_type[mpl_op_input(g, op, 0)] == MPL_TYPE_f32 &&
           mpl_count(x) > 0 && mpl_count(y) > 0;
}

/* Whether each element along the axis is that of the input. */
static bool is_same(const mpl_resize_axis *axis, int64_t dim)
{
    return axis->at != NULL && axis->n == dim && axis->most == 1 && axis->at[0] == 0 &&
           axis->at[dim - 1] == dim - 1;
}

mpl_status mpl_resample_new(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_resample **out,
                            uint64_t *workspace_bytes, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_resample *resample = NULL;
    mpl_resize_axis lead = {.at = NULL};
    const mpl_shape *shape;
    bool same = true;

    *out = NULL;
    if (g->op_kind[op] != MPL_OP_resize || !fits(g, op))
        return MPL_OK;
    shape = &g->value_shape[mpl_op_input(g, op, 0)];
    for (uint32_t i = 0; i + 2 < shape->rank && same; i++) {
        MPL_TRY(mpl_resize_taps(ctx, g, op, i, &lead));
        same = is_same(&lead, shape->dim[i]);
        mpl_free_each(ctx, lead.at, lead.weight);
        lead = (mpl_resize_axis){.at = NULL};
    }
    if (!same)
        goto out;
    MPL_TRY(mpl_new(ctx, resample, 1));
    resample->planes = mpl_count_dims(shape, 0, shape->rank - 2);
    resample->rows = shape->dim[shape->rank - 2], resample->columns = shape->dim[shape->rank - 1];
    MPL_TRY(mpl_resize_taps(ctx, g, op, shape->rank - 2, &resample->y));
    MPL_TRY(mpl_resize_taps(ctx, g, op, shape->rank - 1, &resample->x));
    if (resample->y.at == NULL || resample->x.at == NULL)
        goto out;
    *workspace_bytes =
        (uint64_t)resample->y.most * ((uint64_t)resample->x.n * sizeof(float) + sizeof(int64_t));
    *how = "taps";
    *out = resample, resample = NULL;
out:
    mpl_resample_free(ctx, resample);
    return st;
}

void mpl_resample_free(mpl_ctx *ctx, mpl_resample *resample)
{
    if (resample == NULL)
        return;
    mpl_free_each(ctx, resample->y.at, resample->y.weight, resample->x.at, resample->x.weight);
    mpl_free(ctx, resample);
}

/* ---- running ---- */

static bool is_finite(const float *x, int64_t n)
{
    unsigned other = 0;

    for (int64_t i = 0; i < n; i++)
        other |= !(fabsf(x[i]) < INFINITY);
    return other == 0;
}

static void along_row(const mpl_resize_axis *axis, const float *restrict from, float *restrict to)
{
    const int64_t *at = axis->at;
    const float *weight = axis->weight;

    if (axis->most == 1) {
        for (int64_t i = 0; i < axis->n; i++)
            to[i] = from[at[i]];
        return;
    }
    if (axis->most == 2) {
        for (int64_t i = 0; i < axis->n; i++)
            to[i] = from[at[2 * i]] * weight[2 * i] + from[at[2 * i + 1]] * weight[2 * i + 1];
        return;
    }
    for (int64_t i = 0; i < axis->n; i++, at += axis->most, weight += axis->most) {
        float sum = 0;

        for (int64_t k = 0; k < axis->most; k++)
            sum += from[at[k]] * weight[k];
        to[i] = sum;
    }
}

static void add_rows(float *restrict to, const float *const row[2], const float weight[2],
                     int64_t n, bool begins)
{
    const float *restrict a = row[0], *restrict b = row[1];
    float u = weight[0], v = weight[1];

    if (begins)
        for (int64_t i = 0; i < n; i++)
            to[i] = a[i] * u + b[i] * v;
    else
        for (int64_t i = 0; i < n; i++)
            to[i] += a[i] * u + b[i] * v;
}

/* Row y of the result. kept: rows of the input that stand in `row`, resampled, one in each slot. */
static void make_row(const mpl_resample *resample, const float *plane, int64_t y, int64_t *kept,
                     float *row, float *to)
{
    const int64_t *at = resample->y.at + y * resample->y.most, n = resample->x.n;
    const float *weight = resample->y.weight + y * resample->y.most;

    for (int64_t k = 0; k < resample->y.most; k++) {
        int64_t slot = at[k] % resample->y.most;

        if (kept[slot] != at[k])
            along_row(&resample->x, plane + at[k] * resample->columns, row + slot * n);
        kept[slot] = at[k];
    }
    if (resample->y.most == 1) {
        memcpy(to, row, (size_t)n * sizeof *to);
        return;
    }
    for (int64_t k = 0; k < resample->y.most; k += 2) {
        bool two = k + 1 < resample->y.most;
        const float *pair[2] = {row + at[k] % resample->y.most * n,
                                row + at[two ? k + 1 : k] % resample->y.most * n};

        add_rows(to, pair, (const float[2]){weight[k], two ? weight[k + 1] : 0}, n, k == 0);
    }
}

mpl_status mpl_resample_run(mpl_ctx *ctx, const mpl_resample *resample, const mpl_op_call *call)
{
    const float *x = call->in[0].data;
    float *y = call->out[0].data, *row = (float *)((int64_t *)call->workspace + resample->y.most);
    int64_t *kept = call->workspace, size = resample->rows * resample->columns;

    if (!is_finite(x, resample->planes * size))
        return mpl_eval(ctx, call);
    for (int64_t p = 0; p < resample->planes; p++) {
        for (int64_t k = 0; k < resample->y.most; k++)
            kept[k] = -1;
        for (int64_t i = 0; i < resample->y.n; i++, y += resample->x.n)
            make_row(resample, x + p * size, i, kept, row, y);
    }
    return MPL_OK;
}
