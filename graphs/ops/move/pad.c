/* pad.c -- pad: constant, edge, reflect and wrap. */
#include "graphs/ops/ops_priv.h"

typedef enum pad_mode { CONSTANT, EDGE, REFLECT, WRAP, N_PAD_MODES } pad_mode;

static pad_mode mode_of(const mpl_graph *g, mpl_op op)
{
    static const char *const names[N_PAD_MODES] = {"constant", "edge", "reflect", "wrap"};

    return (pad_mode)mpl_choice_of(g, op, MPL_ATTR_mode, names, N_PAD_MODES);
}

/* Elements added before and after each axis; negative counts cut. */
static mpl_status pads_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, uint32_t rank,
                          int64_t before[MPL_MAX_RANK], int64_t after[MPL_MAX_RANK])
{
    uint32_t n, n_axes, axis, set;
    const int64_t *pads = mpl_attr_ints(g, op, MPL_ATTR_pads, &n);
    const int64_t *axes = mpl_attr_ints(g, op, MPL_ATTR_axes, &n_axes);

    if (axes == NULL)
        n_axes = rank;
    else
        MPL_PASS(mpl_axis_set(ctx, axes, n_axes, rank, &set));
    if (n != 2 * n_axes)
        return MPL_REFUSE(ctx, "pads has %u items for %u axes; there must be two of each", n,
                          n_axes);
    memset(before, 0, MPL_MAX_RANK * sizeof *before);
    memset(after, 0, MPL_MAX_RANK * sizeof *after);
    for (uint32_t i = 0; i < n_axes; i++) {
        MPL_PASS(mpl_axis(ctx, axes != NULL ? axes[i] : (int64_t)i, rank, &axis));
        before[axis] = pads[i];
        after[axis] = pads[n_axes + i];
    }
    return MPL_OK;
}

mpl_status mpl_shape_pad(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const int64_t limit = INT64_C(1) << 61; /* sums of three do not overflow */
    int64_t before[MPL_MAX_RANK], after[MPL_MAX_RANK];
    mpl_shape *to = &call->out_shape[0];
    pad_mode mode = mode_of(call->graph, call->op);
    uint64_t n;

    if (mode == N_PAD_MODES)
        return MPL_REFUSE(ctx, "mode '%.40s' is none of constant, edge, reflect, wrap",
                          mpl_attr_text(call->graph, call->op, MPL_ATTR_mode, ""));
    mpl_like_input(call, 0, call->in_type[0]);
    MPL_PASS(pads_of(ctx, call->graph, call->op, to->rank, before, after));
    for (uint32_t i = 0; i < to->rank; i++) {
        int64_t dim = to->dim[i];

        if (dim > limit || before[i] > limit || after[i] > limit || before[i] < -limit ||
            after[i] < -limit || dim + before[i] + after[i] < 0)
            return MPL_REFUSE(
                ctx, "axis %u of %" PRId64 " elements cannot be padded by %" PRId64 " and %" PRId64,
                i, dim, before[i], after[i]);
        to->dim[i] = dim + before[i] + after[i];
        if (mode != CONSTANT && dim == 0 && to->dim[i] > 0)
            return MPL_REFUSE(ctx, "axis %u has no element to repeat", i);
    }
    if (call->n_in > 1 && call->in_shape[1] != NULL) {
        MPL_PASS(mpl_check_same_type(ctx, call, 1, 0));
        if (!mpl_shape_count(call->in_shape[1], &n) || n != 1)
            return MPL_REFUSE(ctx, "the value to pad with must be one element");
    }
    return MPL_OK;
}

/* Source of padded element i in an axis of `dim` elements; -1: none. */
static int64_t source(pad_mode mode, int64_t i, int64_t dim)
{
    int64_t period;

    if (i >= 0 && i < dim)
        return i;
    switch (mode) {
    case EDGE:
        return i < 0 ? 0 : dim - 1;
    case REFLECT: /* without repeating the edge elements */
        period = dim > 1 ? 2 * (dim - 1) : 1;
        i = (i % period + period) % period;
        return i < dim ? i : period - i;
    case WRAP:
        return (i % dim + dim) % dim;
    default:
        return -1;
    }
}

mpl_status mpl_eval_pad(mpl_ctx *ctx, const mpl_op_call *call)
{
    static const uint64_t zero = 0;
    const mpl_shape *in = &call->in[0].shape, *to = &call->out[0].shape;
    bool valued = call->n_in > 1 && call->in[1].data != NULL;
    int64_t before[MPL_MAX_RANK], after[MPL_MAX_RANK], index[MPL_MAX_RANK] = {0},
                                                       stride[MPL_MAX_RANK];
    uint32_t bytes = mpl_type_bytes(call->in[0].type), outer = to->rank > 0 ? to->rank - 1 : 0;
    pad_mode mode = mode_of(call->graph, call->op);
    char *at = call->out[0].data;

    MPL_PASS(pads_of(ctx, call->graph, call->op, in->rank, before, after));
    if (to->rank == 0)
        return mpl_eval_copy(ctx, call);
    if (mpl_count(to) == 0)
        return MPL_OK;
    mpl_strides(in, stride);
    do {
        int64_t base = 0;
        bool outside = false;

        for (uint32_t i = 0; i < outer; i++) {
            int64_t from = source(mode, index[i] - before[i], in->dim[i]);

            outside |= from < 0;
            base += from * stride[i];
        }
        for (int64_t i = 0, n; i < to->dim[outer]; i += n, at += n * bytes) {
            int64_t from = outside ? -1 : source(mode, i - before[outer], in->dim[outer]);
            int64_t left = to->dim[outer] - i, there = in->dim[outer] - from;

            n = from < 0 || from != i - before[outer] ? 1 : there < left ? there : left;
            memcpy(at,
                   from >= 0 ? (const char *)call->in[0].data + (base + from) * bytes
                   : valued  ? call->in[1].data
                             : (const void *)&zero,
                   (size_t)n * bytes);
        }
    } while (mpl_step(to->dim, outer, index, 0, NULL, NULL));
    return MPL_OK;
}
