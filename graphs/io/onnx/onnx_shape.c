/* onnx_shape.c -- rules of operators whose attributes depend on shapes: windows, layouts, resizing.
 * They compute the explicit pads, split sizes and full-rank lists of the IR. */
#include <math.h>

#include "graphs/io/onnx/onnx_priv.h"

#define MAX_EXTENT                                                                                 \
    (INT64_C(1) << 31) /* of a window, a stride, or a dim that pads are computed from */

typedef struct window {
    uint32_t n; /* dims of the window */
    int64_t in[MPL_MAX_RANK], kernel[MPL_MAX_RANK], stride[MPL_MAX_RANK], dilation[MPL_MAX_RANK];
} window;

/* n integers of an attribute in [least, MAX_EXTENT]; `otherwise` each if it is absent. */
static mpl_status window_ints(onnx_node *node, mpl_attr_key key, uint32_t count, int64_t least,
                              int64_t otherwise, int64_t *out)
{
    const mpl_attr *attr = onnx_get(node, key);

    if (attr != NULL && attr->n != count)
        return ONNX_REFUSE(node, "%s has %u numbers for %u dims", mpl_attr_name(key), attr->n,
                           count);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = attr != NULL ? attr->ints[i] : otherwise;
        if (out[i] < least || out[i] > MAX_EXTENT)
            return ONNX_REFUSE(node, "%s[%u] = %" PRId64 " is outside [%" PRId64 ",%" PRId64 "]",
                               mpl_attr_name(key), i, out[i], least, MAX_EXTENT);
    }
    return MPL_OK;
}

/* kernel: the weights' shape if the attribute is optional, else NULL. */
static mpl_status read_window(onnx_node *node, const mpl_shape *weights, window *w)
{
    const mpl_shape *in;

    if (onnx_in(node, 0) == MPL_NONE)
        return ONNX_REFUSE(node, "its input is missing");
    in = &node->r->g->value_shape[node->in[0]];
    if (in->rank < 3 || (weights != NULL && weights->rank != in->rank))
        return ONNX_REFUSE(
            node, "its input has %u dims; batch, channels and at least one more are needed",
            in->rank);
    w->n = in->rank - 2;
    for (uint32_t i = 0; i < w->n; i++)
        w->in[i] = in->dim[2 + i];
    if (onnx_get(node, MPL_ATTR_kernel_shape) == NULL) {
        if (weights == NULL)
            return ONNX_REFUSE(node, "attribute 'kernel_shape' is missing");
        MPL_PASS(onnx_set_ints(node, MPL_ATTR_kernel_shape, w->n, weights->dim + 2));
    }
    MPL_PASS(window_ints(node, MPL_ATTR_kernel_shape, w->n, 1, 1, w->kernel));
    MPL_PASS(window_ints(node, MPL_ATTR_strides, w->n, 1, 1, w->stride));
    return window_ints(node, MPL_ATTR_dilations, w->n, 1, 1, w->dilation);
}

static bool has_auto_pad(const onnx_node *node)
{
    return onnx_attr(node, "auto_pad") != NULL && !onnx_attr_is(node, "auto_pad", "NOTSET");
}

/* Spreads `total` over both ends of dim i; an odd one goes to the end unless `lower`. */
static void spread(const window *self, uint32_t i, int64_t total, bool lower, int64_t *pads)
{
    pads[i] = lower ? total - total / 2 : total / 2;
    pads[self->n + i] = total - pads[i];
}

/* auto_pad: VALID means no pads; SAME_* makes the output ceil(in / stride) long. */
static mpl_status set_pads(onnx_node *node, const window *w)
{
    int64_t pads[2 * MPL_MAX_RANK] = {0};
    bool lower = onnx_attr_is(node, "auto_pad", "SAME_LOWER");

    if (!has_auto_pad(node))
        return MPL_OK;
    if (!lower && !onnx_attr_is(node, "auto_pad", "SAME_UPPER") &&
        !onnx_attr_is(node, "auto_pad", "VALID"))
        return ONNX_REFUSE(node, "auto_pad is none of NOTSET, SAME_UPPER, SAME_LOWER, VALID");
    for (uint32_t i = 0; i < w->n && !onnx_attr_is(node, "auto_pad", "VALID"); i++) {
        int64_t steps = w->in[i] / w->stride[i] + (w->in[i] % w->stride[i] != 0), total;

        if (w->in[i] > MAX_EXTENT || w->kernel[i] * w->dilation[i] > MAX_EXTENT)
            return ONNX_REFUSE(node, "dim %u is too long for auto_pad", i);
        total = (steps - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - w->in[i];
        spread(w, i, total > 0 ? total : 0, lower, pads);
    }
    return onnx_set_ints(node, MPL_ATTR_pads, 2 * w->n, pads);
}

static mpl_status lower_weighted(onnx_node *node,
                                 mpl_status (*pads)(onnx_node *node, const window *w))
{
    window w;

    if (onnx_in(node, 1) == MPL_NONE)
        return ONNX_REFUSE(node, "its weights are missing");
    MPL_PASS(read_window(node, &node->r->g->value_shape[node->in[1]], &w));
    MPL_PASS(pads(node, &w));
    return onnx_finish(node, node->rule->kind, node->n_in, node->in);
}

mpl_status onnx_lower_conv(onnx_node *node)
{
    return lower_weighted(node, set_pads);
}

mpl_status onnx_lower_pool(onnx_node *node)
{
    window w;

    MPL_PASS(read_window(node, NULL, &w));
    MPL_PASS(set_pads(node, &w));
    return onnx_finish(node, node->rule->kind, node->n_in, node->in);
}

/* Pads that give the length required by output_shape or SAME_*: total = stride * (in - 1) +
 * output_padding + dilation * (kernel - 1) + 1 - length, spread over both ends. Excess is output
 * padding. */
static mpl_status transposed_pads(onnx_node *node, const window *w)
{
    const Onnx__AttributeProto *asked = onnx_attr(node, "output_shape");
    int64_t pads[2 * MPL_MAX_RANK] = {0}, extra[MPL_MAX_RANK];
    bool valid = onnx_attr_is(node, "auto_pad", "VALID"),
         upper = onnx_attr_is(node, "auto_pad", "SAME_UPPER");

    if (asked == NULL && !has_auto_pad(node))
        return MPL_OK;
    if (asked != NULL && asked->n_ints != w->n)
        return ONNX_REFUSE(node, "output_shape has %zu numbers for %u dims", asked->n_ints, w->n);
    if (has_auto_pad(node) && !valid && !upper && !onnx_attr_is(node, "auto_pad", "SAME_LOWER"))
        return ONNX_REFUSE(node, "auto_pad is none of NOTSET, SAME_UPPER, SAME_LOWER, VALID");
    MPL_PASS(window_ints(node, MPL_ATTR_output_padding, w->n, 0, 0, extra));
    for (uint32_t i = 0; i < w->n && (asked != NULL || !valid); i++) {
        int64_t length, total;

        if (w->in[i] < 1 || w->in[i] > MAX_EXTENT || w->in[i] * w->stride[i] > MAX_EXTENT ||
            w->kernel[i] * w->dilation[i] > MAX_EXTENT)
            return ONNX_REFUSE(node, "dim %u is too long", i);
        length = asked != NULL ? asked->ints[i] : w->in[i] * w->stride[i];
        if (length < 1 || length > MAX_EXTENT)
            return ONNX_REFUSE(node, "output_shape[%u] = %" PRId64 " is outside [1,%" PRId64 "]", i,
                               length, MAX_EXTENT);
        total = w->stride[i] * (w->in[i] - 1) + extra[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 -
                length;
        if (total >= 0)
            spread(w, i, total, !upper, pads);
        else
            extra[i] -= total;
    }
    MPL_PASS(onnx_set_ints(node, MPL_ATTR_pads, 2 * w->n, pads));
    return onnx_set_ints(node, MPL_ATTR_output_padding, w->n, extra);
}

mpl_status onnx_lower_conv_transpose(onnx_node *node)
{
    return lower_weighted(node, transposed_pads);
}

/* Windows over an image of dims `image`, and the elements behind the last: as output padding. */
mpl_status onnx_window_count(onnx_node *node, uint32_t dims, const int64_t *image, int64_t *count,
                             int64_t *extra)
{
    int64_t kernel[MPL_MAX_RANK], stride[MPL_MAX_RANK], wide[MPL_MAX_RANK];
    const mpl_attr *pads = onnx_get(node, MPL_ATTR_pads);

    MPL_PASS(window_ints(node, MPL_ATTR_kernel_shape, dims, 1, 1, kernel));
    MPL_PASS(window_ints(node, MPL_ATTR_strides, dims, 1, 1, stride));
    MPL_PASS(window_ints(node, MPL_ATTR_dilations, dims, 1, 1, wide));
    if (pads != NULL && pads->n != 2 * dims)
        return ONNX_REFUSE(node, "pads has %u numbers for %u dims", pads->n, dims);
    for (uint32_t i = 0; i < dims; i++) {
        int64_t before = pads != NULL ? pads->ints[i] : 0,
                after = pads != NULL ? pads->ints[dims + i] : 0, room;

        if (image[i] < 1 || image[i] > MAX_EXTENT || before < 0 || before > MAX_EXTENT ||
            after < 0 || after > MAX_EXTENT || kernel[i] * wide[i] > MAX_EXTENT)
            return ONNX_REFUSE(node, "dim %u or its pads are too long", i);
        room = image[i] + before + after - (kernel[i] - 1) * wide[i] - 1;
        if (room < 0)
            return ONNX_REFUSE(node, "its window is longer than dim %u", i);
        count[i] = room / stride[i] + 1;
        extra[i] = room % stride[i];
    }
    return MPL_OK;
}

/* Dims of the input that a pool made `pooled` of, without those behind its last window. */
mpl_status onnx_unpooled_dims(onnx_node *node, const mpl_shape *pooled, int64_t *dim)
{
    const mpl_attr *pads = onnx_get(node, MPL_ATTR_pads);
    uint32_t dims = pooled->rank - 2;
    window w;

    MPL_PASS(read_window(node, NULL, &w));
    if (pads != NULL && pads->n != 2 * dims)
        return ONNX_REFUSE(node, "pads has %u numbers for %u dims", pads->n, dims);
    memcpy(dim, pooled->dim, 2 * sizeof *dim);
    for (uint32_t i = 0; i < dims; i++) {
        if (w.in[i] < 1 || w.in[i] > MAX_EXTENT)
            return ONNX_REFUSE(node, "dim %u is too long", i);
        dim[2 + i] = (w.in[i] - 1) * w.stride[i] + w.kernel[i];
        if (pads != NULL)
            dim[2 + i] -= pads->ints[i] + pads->ints[dims + i];
    }
    return MPL_OK;
}

/* With allowzero a 0 is an empty dim. The IR's reshape cannot express it; an empty constant can. */
mpl_status onnx_lower_reshape(onnx_node *node)
{
    const mpl_attr *to = onnx_get(node, MPL_ATTR_shape);
    mpl_shape shape = {.rank = 0};
    uint64_t count = 1;
    bool has_zero = false;

    if (onnx_in(node, 0) == MPL_NONE)
        return ONNX_REFUSE(node, "its input is missing");
    if (to != NULL && to->n <= MPL_MAX_RANK && onnx_attr_int(node, "allowzero", 0) != 0) {
        shape.rank = to->n;
        for (uint32_t i = 0; i < to->n; i++) {
            shape.dim[i] = to->ints[i];
            has_zero = has_zero || to->ints[i] == 0;
        }
    }
    if (!has_zero)
        return onnx_finish(node, MPL_OP_reshape, 1, node->in);
    mpl_shape_count(&node->r->g->value_shape[node->in[0]], &count);
    if (count != 0)
        return ONNX_REFUSE(node, "a shape of no element does not hold the %" PRIu64 " of its input",
                           count);
    return onnx_blame(node, mpl_graph_add_const(node->r->ctx, node->r->g, node->out_name[0],
                                                (mpl_type)node->r->g->value_type[node->in[0]],
                                                &shape, "", false, &node->out[0]));
}

mpl_status onnx_axis(onnx_node *node, int64_t axis, uint32_t rank, uint32_t *out)
{
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return ONNX_REFUSE(node, "axis %" PRId64 " is outside [-%u,%u)", axis, rank, rank);
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return MPL_OK;
}

/* IR sizes are explicit. Default: equal parts; with num_outputs (18) the last may be smaller. */
mpl_status onnx_lower_split(onnx_node *node)
{
    const mpl_attr *given = onnx_get(node, MPL_ATTR_axis);
    const mpl_shape *in;
    int64_t *part, count = node->n_out, length;
    uint32_t axis = 0;

    if (onnx_in(node, 0) == MPL_NONE)
        return ONNX_REFUSE(node, "its input is missing");
    in = &node->r->g->value_shape[node->in[0]];
    MPL_PASS(onnx_axis(node, given != NULL ? given->ints[0] : 0, in->rank, &axis));
    if (onnx_get(node, MPL_ATTR_split) == NULL) {
        length = in->dim[axis] / count + (in->dim[axis] % count != 0);
        if (onnx_attr(node, "num_outputs") != NULL
                ? onnx_attr_int(node, "num_outputs", 0) != count ||
                      length * (count - 1) > in->dim[axis]
                : length * count != in->dim[axis])
            return ONNX_REFUSE(
                node, "dim %u of %" PRId64 " elements does not split into %" PRId64 " parts", axis,
                in->dim[axis], count);
        MPL_PASS(onnx_new(node->r, part, node->n_out));
        for (int64_t i = 0; i < count; i++)
            part[i] = i + 1 < count ? length : in->dim[axis] - length * (count - 1);
        onnx_set(node, (mpl_attr){MPL_ATTR_split, node->n_out, part, NULL, NULL});
    }
    return onnx_finish(node, MPL_OP_split, 1, node->in);
}

/* Pad-18 may name axes; the IR has pads for all dims. Before 11 the value is an attribute. */
mpl_status onnx_lower_pad(onnx_node *node)
{
    const mpl_attr *pads = onnx_get(node, MPL_ATTR_pads), *axes = onnx_get(node, MPL_ATTR_axes);
    const Onnx__AttributeProto *value = onnx_attr(node, "value");
    int64_t full[2 * MPL_MAX_RANK] = {0};
    mpl_value in[2] = {onnx_in(node, 0), onnx_in(node, 1)};
    uint32_t rank, axis = 0;

    if (in[0] == MPL_NONE || pads == NULL)
        return ONNX_REFUSE(node, "its input or its pads are missing");
    rank = node->r->g->value_shape[in[0]].rank;
    if (axes != NULL) {
        if (pads->n != 2 * (uint64_t)axes->n)
            return ONNX_REFUSE(node, "it has %u pads for %u axes; two each are needed", pads->n,
                               axes->n);
        for (uint32_t i = 0; i < axes->n; i++) {
            MPL_PASS(onnx_axis(node, axes->ints[i], rank, &axis));
            full[axis] = pads->ints[i];
            full[rank + axis] = pads->ints[axes->n + i];
        }
        onnx_drop(node, MPL_ATTR_axes);
        MPL_PASS(onnx_set_ints(node, MPL_ATTR_pads, 2 * rank, full));
    }
    if (value != NULL)
        MPL_PASS(onnx_scalar(node, (mpl_type)node->r->g->value_type[in[0]], (double)value->f,
                             "value", &in[1]));
    return onnx_finish(node, MPL_OP_pad, in[1] != MPL_NONE ? 2 : 1, in);
}

/* Resize-18 may name axes; the IR has a number for each dim: for others 1, or the dim itself, and
 * all of its length. resized[i]: axis i is named. */
static mpl_status resize_all_axes(onnx_node *node, const mpl_shape *in, bool *resized)
{
    const mpl_attr *axes = onnx_get(node, MPL_ATTR_axes), *scales = onnx_get(node, MPL_ATTR_scales);
    const mpl_attr *sizes = onnx_get(node, MPL_ATTR_sizes);
    const mpl_attr *roi = onnx_get(node, MPL_ATTR_roi);
    double *scale, *place;
    int64_t size[MPL_MAX_RANK];
    uint32_t axis = 0;

    if (roi != NULL && roi->n != 2 * axes->n)
        return ONNX_REFUSE(node, "its roi has %u numbers for %u axes; two each are needed", roi->n,
                           axes->n);
    if ((scales != NULL && scales->n != axes->n) || (sizes != NULL && sizes->n != axes->n))
        return ONNX_REFUSE(node, "it has %u axes, and scales or sizes for another number", axes->n);
    MPL_PASS(onnx_new(node->r, scale, MPL_MAX_RANK));
    MPL_PASS(onnx_new(node->r, place, 2 * MPL_MAX_RANK));
    for (uint32_t i = 0; i < in->rank; i++)
        scale[i] = place[in->rank + i] = 1, size[i] = in->dim[i], place[i] = 0;
    for (uint32_t i = 0; i < axes->n; i++) {
        MPL_PASS(onnx_axis(node, axes->ints[i], in->rank, &axis));
        scale[axis] = scales != NULL ? scales->floats[i] : 1;
        size[axis] = sizes != NULL ? sizes->ints[i] : 0;
        place[axis] = roi != NULL ? roi->floats[i] : 0;
        place[in->rank + axis] = roi != NULL ? roi->floats[axes->n + i] : 1;
        resized[axis] = true;
    }
    if (roi != NULL)
        onnx_set(node, (mpl_attr){MPL_ATTR_roi, 2 * in->rank, NULL, place, NULL});
    if (scales != NULL)
        onnx_set(node, (mpl_attr){MPL_ATTR_scales, in->rank, NULL, scale, NULL});
    if (sizes != NULL)
        MPL_PASS(onnx_set_ints(node, MPL_ATTR_sizes, in->rank, size));
    onnx_drop(node, MPL_ATTR_axes);
    return MPL_OK;
}

/* keep_aspect_ratio_policy: the axes that are resized get one scale, so that no dim is larger, or
 * smaller, than its size; dims are rounded, halves up. */
static mpl_status resize_alike(onnx_node *node, const mpl_shape *in, const bool *resized)
{
    bool most = onnx_attr_is(node, "keep_aspect_ratio_policy", "not_smaller");
    const mpl_attr *sizes = onnx_get(node, MPL_ATTR_sizes);
    int64_t size[MPL_MAX_RANK];
    double *scale, common = 0;

    if (sizes == NULL || sizes->n != in->rank)
        return ONNX_REFUSE(node, "keep_aspect_ratio_policy needs a size for each axis");
    MPL_PASS(onnx_new(node->r, scale, MPL_MAX_RANK));
    for (uint32_t i = 0; i < in->rank; i++) {
        double own = (double)sizes->ints[i] / (double)in->dim[i];

        if (resized[i] && (common == 0 || (most ? own > common : own < common)))
            common = own;
    }
    for (uint32_t i = 0; i < in->rank; i++) {
        double dim = floor(common * (double)in->dim[i] + 0.5);

        if (resized[i] && !(dim >= 0 && dim < 0x1p53))
            return ONNX_REFUSE(node, "axis %u cannot be scaled by %g", i, common);
        scale[i] = resized[i] ? common : 1;
        size[i] = resized[i] ? (int64_t)dim : in->dim[i];
    }
    onnx_set(node, (mpl_attr){MPL_ATTR_scales, in->rank, NULL, scale, NULL});
    return onnx_set_ints(node, MPL_ATTR_sizes, in->rank, size);
}

mpl_status onnx_lower_resize(onnx_node *node)
{
    const mpl_attr *scales = onnx_get(node, MPL_ATTR_scales), *sizes;
    bool resized[MPL_MAX_RANK];

    if (onnx_in(node, 0) == MPL_NONE)
        return ONNX_REFUSE(node, "its input is missing");
    for (uint32_t i = 0; i < MPL_MAX_RANK; i++)
        resized[i] = onnx_get(node, MPL_ATTR_axes) == NULL;
    if (onnx_attr_int(node, "antialias", 0) == 0)
        onnx_drop(node, MPL_ATTR_antialias);
    if (!onnx_attr_is(node, "coordinate_transformation_mode", "tf_crop_and_resize"))
        onnx_drop(node, MPL_ATTR_roi);
    if (scales != NULL && scales->n == 0)
        onnx_drop(node, MPL_ATTR_scales);
    sizes = onnx_get(node, MPL_ATTR_sizes);
    if (sizes != NULL && sizes->n == 0)
        onnx_drop(node, MPL_ATTR_sizes);
    if (onnx_get(node, MPL_ATTR_axes) != NULL)
        MPL_PASS(resize_all_axes(node, &node->r->g->value_shape[node->in[0]], resized));
    if (onnx_attr_is(node, "keep_aspect_ratio_policy", "not_larger") ||
        onnx_attr_is(node, "keep_aspect_ratio_policy", "not_smaller"))
        MPL_PASS(resize_alike(node, &node->r->g->value_shape[node->in[0]], resized));
    return onnx_finish(node, MPL_OP_resize, 1, node->in);
}

/* Upsample and Resize-10: output i reads input floor(i / scale), or interpolates its neighbours. */
mpl_status onnx_lower_upsample(onnx_node *node)
{
    onnx_set(node, MPL_TEXT(coordinate_mode, "asymmetric"));
    onnx_set(node, MPL_TEXT(nearest_mode, "floor"));
    return onnx_finish(node, MPL_OP_resize, 1, node->in);
}

/* Up to opset 20 scale and bias are per group; in 21 and the IR, per channel. */
mpl_status onnx_lower_group_norm_18(onnx_node *node)
{
    const mpl_graph *g = node->r->g;
    const mpl_attr *attr = onnx_get(node, MPL_ATTR_num_groups);
    mpl_value in[3] = {onnx_in(node, 0), onnx_in(node, 1), onnx_in(node, 2)};
    int64_t groups = attr != NULL ? attr->ints[0] : 0, channels;

    for (uint32_t i = 0; i < 3; i++)
        if (in[i] == MPL_NONE || g->value_shape[in[i]].rank == 0)
            return ONNX_REFUSE(node, "input %u is missing or a scalar", i);
    channels = g->value_shape[in[0]].rank > 1 ? g->value_shape[in[0]].dim[1] : 0;
    if (groups < 1 || channels % groups != 0)
        return ONNX_REFUSE(node, "%" PRId64 " channels do not make %" PRId64 " groups", channels,
                           groups);
    for (uint32_t i = 1; i < 3; i++) {
        const char *what = i == 1 ? "scale" : "bias";

        MPL_PASS(onnx_step(node, MPL_OP_reshape, what, 1, &in[i], 1,
                           &MPL_INTS(shape, 2, ((int64_t[]){groups, 1})), &in[i]));
        MPL_PASS(onnx_step(node, MPL_OP_expand, what, 1, &in[i], 1,
                           &MPL_INTS(shape, 2, ((int64_t[]){groups, channels / groups})), &in[i]));
        MPL_PASS(onnx_step(node, MPL_OP_reshape, what, 1, &in[i], 1,
                           &MPL_INTS(shape, 1, ((int64_t[]){channels})), &in[i]));
    }
    return onnx_finish(node, MPL_OP_group_norm, 3, in);
}
