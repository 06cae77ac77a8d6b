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
static bool is_same(const mpl_resize_axis *a, int64_t dim)
{
    return a->at != NULL && a->n == dim && a->most == 1 && a->at[0] == 0 &&
           a->at[dim - 1] == dim - 1;
}

mpl_status mpl_resample_new(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_resample **out,
                            uint64_t *workspace_bytes, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_resample *r = NULL;
    mpl_resize_axis lead = {.at = NULL};
    const mpl_shape *x;
    bool same = true;

    *out = NULL;
    if (g->op_kind[op] != MPL_OP_resize || !fits(g, op))
        return MPL_OK;
    x = &g->value_shape[mpl_op_input(g, op, 0)];
    for (uint32_t i = 0; i + 2 < x->rank && same; i++) {
        MPL_TRY(mpl_resize_taps(ctx, g, op, i, &lead));
        same = is_same(&lead, x->dim[i]);
        mpl_free_each(ctx, lead.at, lead.weight);
        lead = (mpl_resize_axis){.at = NULL};
    }
    if (!same)
        goto out;
    MPL_TRY(mpl_new(ctx, r, 1));
    r->planes = mpl_count_dims(x, 0, x->rank - 2);
    r->rows = x->dim[x->rank - 2], r->columns = x->dim[x->rank - 1];
    MPL_TRY(mpl_resize_taps(ctx, g, op, x->rank - 2, &r->y));
    MPL_TRY(mpl_resize_taps(ctx, g, op, x->rank - 1, &r->x));
    if (r->y.at == NULL || r->x.at == NULL)
        goto out;
    *workspace_bytes = (uint64_t)r->y.most * ((uint64_t)r->x.n * sizeof(float) + sizeof(int64_t));
    *how = "taps";
    *out = r, r = NULL;
out:
    mpl_resample_free(ctx, r);
    return st;
}

void mpl_resample_free(mpl_ctx *ctx, mpl_resample *r)
{
    if (r == NULL)
        return;
    mpl_free_each(ctx, r->y.at, r->y.weight, r->x.at, r->x.weight);
    mpl_free(ctx, r);
}

/* ---- running ---- */

static bool is_finite(const float *x, int64_t n)
{
    unsigned other = 0;

    for (int64_t i = 0; i < n; i++)
        other |= !(fabsf(x[i]) < INFINITY);
    return other == 0;
}

static void along_row(const mpl_resize_axis *a, const float *restrict from, float *restrict to)
{
    const int64_t *at = a->at;
    const float *weight = a->weight;

    if (a->most == 1) {
        for (int64_t i = 0; i < a->n; i++)
            to[i] = from[at[i]];
        return;
    }
    if (a->most == 2) {
        for (int64_t i = 0; i < a->n; i++)
            to[i] = from[at[2 * i]] * weight[2 * i] + from[at[2 * i + 1]] * weight[2 * i + 1];
        return;
    }
    for (int64_t i = 0; i < a->n; i++, at += a->most, weight += a->most) {
        float sum = 0;

        for (int64_t k = 0; k < a->most; k++)
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
static void make_row(const mpl_resample *r, const float *plane, int64_t y, int64_t *kept,
                     float *row, float *to)
{
    const int64_t *at = r->y.at + y * r->y.most, n = r->x.n;
    const float *weight = r->y.weight + y * r->y.most;

    for (int64_t k = 0; k < r->y.most; k++) {
        int64_t slot = at[k] % r->y.most;

        if (kept[slot] != at[k])
            along_row(&r->x, plane + at[k] * r->columns, row + slot * n);
        kept[slot] = at[k];
    }
    if (r->y.most == 1) {
        memcpy(to, row, (size_t)n * sizeof *to);
        return;
    }
    for (int64_t k = 0; k < r->y.most; k += 2) {
        bool two = k + 1 < r->y.most;
        const float *pair[2] = {row + at[k] % r->y.most * n,
                                row + at[two ? k + 1 : k] % r->y.most * n};

        add_rows(to, pair, (const float[2]){weight[k], two ? weight[k + 1] : 0}, n, k == 0);
    }
}

mpl_status mpl_resample_run(mpl_ctx *ctx, const mpl_resample *r, const mpl_op_call *call)
{
    const float *x = call->in[0].data;
    float *y = call->out[0].data, *row = (float *)((int64_t *)call->workspace + r->y.most);
    int64_t *kept = call->workspace, size = r->rows * r->columns;

    if (!is_finite(x, r->planes * size))
        return mpl_eval(ctx, call);
    for (int64_t p = 0; p < r->planes; p++) {
        for (int64_t k = 0; k < r->y.most; k++)
            kept[k] = -1;
        for (int64_t i = 0; i < r->y.n; i++, y += r->x.n)
            make_row(r, x + p * size, i, kept, row, y);
    }
    return MPL_OK;
}
