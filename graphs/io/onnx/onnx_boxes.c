/* onnx_boxes.c -- images and boxes: GridSample, AffineGrid, DeformConv, RoiAlign, MaxRoiPool,
 * MaxUnpool, Col2Im, CenterCropPad, Det. Where other operators do, they stand for them. */
#include "graphs/io/onnx/onnx_priv.h"

#define MAX_CONSTANT (INT64_C(32) << 20) /* elements of one made here */

static const mpl_shape *shape_of(const onnx_node *node, mpl_value v)
{
    return &node->r->g->value_shape[v];
}

static mpl_status need_inputs(onnx_node *node, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (onnx_in(node, i) == MPL_NONE)
            return ONNX_REFUSE(node, "its input %u is missing", i);
    return MPL_OK;
}

mpl_status onnx_reshape(onnx_node *node, mpl_value v, uint32_t rank, const int64_t *dim,
                        mpl_value *out)
{
    return onnx_step(node, MPL_OP_reshape, "reshaped", 1, &v, 1, &MPL_INTS(shape, rank, dim), out);
}

mpl_status onnx_transpose(onnx_node *node, mpl_value v, const int64_t *perm, mpl_value *out)
{
    return onnx_step(node, MPL_OP_transpose, "transposed", 1, &v, 1,
                     &MPL_INTS(perm, shape_of(node, v)->rank, perm), out);
}

/* ---- sampling ---- */

/* Up to opset 19 the modes are called bilinear and bicubic. */
mpl_status onnx_lower_grid_sample(onnx_node *node)
{
    static const char *const mode[][2] = {{"bilinear", "linear"},
                                          {"linear", "linear"},
                                          {"nearest", "nearest"},
                                          {"bicubic", "cubic"},
                                          {"cubic", "cubic"}};
    size_t i = 0;

    while (onnx_attr(node, "mode") != NULL && i < 5 && !onnx_attr_is(node, "mode", mode[i][0]))
        i++;
    if (i == 5)
        return ONNX_REFUSE(node, "its mode is none of linear, nearest, cubic");
    onnx_set(node, MPL_TEXT(mode, mode[i][1]));
    return onnx_finish(node, MPL_OP_grid_sample, node->n_in, node->in);
}

static mpl_status set_scale(onnx_node *node)
{
    const Onnx__AttributeProto *a = onnx_attr(node, "spatial_scale");
    double *scale;

    MPL_PASS(onnx_new(node->r, scale, 1));
    scale[0] = a != NULL ? (double)a->f : 1;
    onnx_set(node, MPL_FLOATS(scales, 1, scale));
    return MPL_OK;
}

mpl_status onnx_lower_roi_align(onnx_node *node)
{
    const int64_t size[] = {onnx_attr_int(node, "output_height", 1),
                            onnx_attr_int(node, "output_width", 1)};

    MPL_PASS(set_scale(node));
    MPL_PASS(onnx_set_ints(node, MPL_ATTR_sizes, 2, size));
    if (node->r->opset < 16)
        onnx_set(node, MPL_TEXT(coordinate_mode, "output_half_pixel"));
    return onnx_finish(node, MPL_OP_roi_align, node->n_in, node->in);
}

mpl_status onnx_lower_max_roi_pool(onnx_node *node)
{
    MPL_PASS(set_scale(node));
    return onnx_finish(node, MPL_OP_max_roi_pool, node->n_in, node->in);
}

/* The eliminated matrices are a result of their own in the IR. */
mpl_status onnx_lower_det(onnx_node *node)
{
    const char *name[2] = {node->out_name[0], NULL};
    mpl_value out[2];

    MPL_PASS(onnx_fresh_name(node->r, node->label, "eliminated", &name[1]));
    MPL_PASS(
        onnx_blame(node, mpl_graph_add_folded(node->r->ctx, node->r->g, MPL_OP_det, node->label,
                                              node->n_in, node->in, 0, NULL, 2, name, out)));
    node->out[0] = out[0];
    return MPL_OK;
}

/* The places of a regular grid, x first, and 1, as rows: theta times a row is a place. */
mpl_status onnx_lower_affine_grid(onnx_node *node)
{
    const mpl_attr *size = onnx_get(node, MPL_ATTR_sizes);
    bool corners = onnx_attr_int(node, "align_corners", 0) != 0;
    uint32_t dims = size != NULL && size->n > 3 ? size->n - 2 : 0;
    int64_t to[4], count = 1;
    mpl_value base, theta, grid;
    double *x;

    MPL_PASS(need_inputs(node, 1));
    if (dims < 2 || dims > 3)
        return ONNX_REFUSE(node, "its size has %u numbers; 4 or 5 are needed",
                           size != NULL ? size->n : 0);
    to[0] = size->ints[0];
    for (uint32_t i = 0; i < dims; i++) {
        to[1 + i] = size->ints[2 + i];
        if (to[1 + i] < 1 || to[1 + i] > MAX_CONSTANT / count)
            return ONNX_REFUSE(node, "its size has a dim of %" PRId64, to[1 + i]);
        count *= to[1 + i];
    }
    MPL_PASS(onnx_new(node->r, x, (size_t)count * (dims + 1)));
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i;

        x[(i + 1) * (dims + 1) - 1] = 1;
        for (uint32_t k = 0; k < dims; k++) { /* the last axis first */
            int64_t dim = to[dims - k], at = rest % dim;

            x[i * (dims + 1) + k] = corners
                                        ? (dim > 1 ? 2.0 * (double)at / (double)(dim - 1) : 0) - 1
                                        : (2.0 * (double)at + 1) / (double)dim - 1;
            rest /= dim;
        }
    }
    MPL_PASS(onnx_constant(node, (mpl_type)node->r->g->value_type[node->in[0]],
                           &(mpl_shape){2, {count, dims + 1}}, x, "base", &base));
    MPL_PASS(onnx_transpose(node, node->in[0], (int64_t[]){0, 2, 1}, &theta));
    MPL_PASS(onnx_step(node, MPL_OP_matmul, "grid", 2, (mpl_value[]){base, theta}, 0, NULL, &grid));
    node->n_attr = 0;
    if (dims == 2)
        MPL_PASS(onnx_set_ints(node, MPL_ATTR_shape, 4, (int64_t[]){to[0], to[1], to[2], 2}));
    else
        MPL_PASS(
            onnx_set_ints(node, MPL_ATTR_shape, 5, (int64_t[]){to[0], to[1], to[2], to[3], 3}));
    return onnx_finish(node, MPL_OP_reshape, 1, &grid);
}

/* ---- DeformConv: the moved elements are sampled, then multiplied as a matrix ---- */

typedef struct deform {
    int64_t n, c, h, w, out_c, k_h, k_w, out_h, out_w, groups, moves;
} deform;

static mpl_status read_deform(onnx_node *node, deform *d)
{
    const mpl_shape *shape, *w, *by;
    int64_t taps;

    MPL_PASS(need_inputs(node, 3));
    shape = shape_of(node, node->in[0]), w = shape_of(node, node->in[1]),
    by = shape_of(node, node->in[2]);
    if (shape->rank != 4 || w->rank != 4 || by->rank != 4)
        return ONNX_REFUSE(node, "it has %u dims; batch, channels, height and width are supported",
                           shape->rank);
    *d = (deform){shape->dim[0],
                  shape->dim[1],
                  shape->dim[2],
                  shape->dim[3],
                  w->dim[0],
                  w->dim[2],
                  w->dim[3],
                  by->dim[2],
                  by->dim[3],
                  onnx_attr_int(node, "group", 1),
                  onnx_attr_int(node, "offset_group", 1)};
    taps = d->k_h * d->k_w;
    if (d->groups < 1 || d->moves < 1 || d->c % d->groups != 0 || d->c % d->moves != 0 ||
        d->out_c % d->groups != 0 || w->dim[1] != d->c / d->groups ||
        by->dim[1] != 2 * taps * d->moves || by->dim[0] != d->n)
        return ONNX_REFUSE(node,
                           "%" PRId64 " channels, %" PRId64 " groups and %" PRId64
                           " groups of offsets do not fit its weights and offsets",
                           d->c, d->groups, d->moves);
    if (taps < 1 || taps > MAX_CONSTANT || d->out_h < 1 || d->out_w < 1 ||
        d->out_h > MAX_CONSTANT / d->out_w || d->out_h * d->out_w > MAX_CONSTANT / (2 * taps))
        return ONNX_REFUSE(node, "its places are none, or more than %" PRId64, MAX_CONSTANT);
    return MPL_OK;
}

/* Places without offsets, (x, y) of each tap and output element. [pixel] */
static mpl_status regular_places(onnx_node *node, const deform *d, mpl_value *out)
{
    const mpl_attr *strides = onnx_get(node, MPL_ATTR_strides),
                   *pads = onnx_get(node, MPL_ATTR_pads);
    const mpl_attr *dilations = onnx_get(node, MPL_ATTR_dilations);
    const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
    const int64_t *stride = strides != NULL && strides->n == 2 ? strides->ints : ones;
    const int64_t *wide = dilations != NULL && dilations->n == 2 ? dilations->ints : ones;
    const int64_t *pad = pads != NULL && pads->n == 4 ? pads->ints : zeros;
    int64_t taps = d->k_h * d->k_w, places = d->out_h * d->out_w;
    double *at;

    MPL_PASS(onnx_new(node->r, at, (size_t)(2 * taps * places)));
    for (int64_t i = 0; i < taps * places; i++) {
        int64_t tap = i / places, place = i % places;

        at[2 * i] = (double)(place % d->out_w * stride[1] - pad[1]) +
                    (double)(tap % d->k_w) * (double)wide[1];
        at[2 * i + 1] = (double)(place / d->out_w * stride[0] - pad[0]) +
                        (double)(tap / d->k_w) * (double)wide[0];
    }
    return onnx_constant(node, (mpl_type)node->r->g->value_type[node->in[2]],
                         &(mpl_shape){4, {taps, d->out_h, d->out_w, 2}}, at, "places", out);
}

/* The elements that each tap reads: [batch, channels, taps, places]. */
static mpl_status sample_moved(onnx_node *node, const deform *d, mpl_value *out)
{
    int64_t taps = d->k_h * d->k_w, images = d->n * d->moves;
    const mpl_attr how[] = {MPL_TEXT(coordinate_mode, "pixels"), MPL_INT(align_corners, 1)};
    mpl_value base, grid = node->in[2], swap, in[2], mask;

    MPL_PASS(regular_places(node, d, &base));
    MPL_PASS(onnx_reshape(node, grid, 5, (int64_t[]){images, taps, 2, d->out_h, d->out_w}, &grid));
    MPL_PASS(onnx_transpose(node, grid, (int64_t[]){0, 1, 3, 4, 2}, &grid)); /* y, x */
    MPL_PASS(
        onnx_constant(node, MPL_TYPE_i64, &(mpl_shape){1, {2}}, (double[]){1, 0}, "swap", &swap));
    MPL_PASS(onnx_step(node, MPL_OP_gather, "offsets", 2, (mpl_value[]){grid, swap}, 1,
                       &MPL_INT(axis, 4), &grid));
    MPL_PASS(onnx_step(node, MPL_OP_add, "moved", 2, (mpl_value[]){grid, base}, 0, NULL, &grid));
    MPL_PASS(
        onnx_reshape(node, grid, 4, (int64_t[]){images, taps * d->out_h, d->out_w, 2}, &in[1]));
    MPL_PASS(onnx_reshape(node, node->in[0], 4, (int64_t[]){images, d->c / d->moves, d->h, d->w},
                          &in[0]));
    MPL_PASS(onnx_step(node, MPL_OP_grid_sample, "sampled", 2, in, 2, how, out));
    mask = onnx_in(node, 4);
    if (mask != MPL_NONE) {
        MPL_PASS(
            onnx_reshape(node, mask, 4, (int64_t[]){images, 1, taps * d->out_h, d->out_w}, &mask));
        MPL_PASS(onnx_step(node, MPL_OP_mul, "masked", 2, (mpl_value[]){*out, mask}, 0, NULL, out));
    }
    return MPL_OK;
}

mpl_status onnx_lower_deform_conv(onnx_node *node)
{
    deform d = {0};
    int64_t rows;
    mpl_value in[2], product, bias;

    MPL_PASS(read_deform(node, &d));
    rows = d.c / d.groups * d.k_h * d.k_w;
    MPL_PASS(sample_moved(node, &d, &in[1]));
    MPL_PASS(
        onnx_reshape(node, in[1], 4, (int64_t[]){d.n, d.groups, rows, d.out_h * d.out_w}, &in[1]));
    MPL_PASS(onnx_reshape(node, node->in[1], 3, (int64_t[]){d.groups, d.out_c / d.groups, rows},
                          &in[0]));
    MPL_PASS(onnx_step(node, MPL_OP_matmul, "product", 2, in, 0, NULL, &product));
    bias = onnx_in(node, 3);
    node->n_attr = 0;
    if (bias == MPL_NONE) {
        MPL_PASS(
            onnx_set_ints(node, MPL_ATTR_shape, 4, (int64_t[]){d.n, d.out_c, d.out_h, d.out_w}));
        return onnx_finish(node, MPL_OP_reshape, 1, &product);
    }
    MPL_PASS(onnx_reshape(node, product, 4, (int64_t[]){d.n, d.out_c, d.out_h, d.out_w}, &in[0]));
    MPL_PASS(onnx_reshape(node, bias, 3, (int64_t[]){d.out_c, 1, 1}, &in[1]));
    return onnx_finish(node, MPL_OP_add, 2, in);
}

/* ---- windows put back ---- */

/* The columns are added up where a transposed convolution by unit kernels puts them. */
mpl_status onnx_lower_col2im(onnx_node *node)
{
    const mpl_attr *image = onnx_get(node, MPL_ATTR_sizes),
                   *block = onnx_get(node, MPL_ATTR_kernel_shape);
    uint32_t dims = image != NULL ? image->n : 0;
    int64_t taps = 1, to[MPL_MAX_RANK], extra[MPL_MAX_RANK], unit[MPL_MAX_RANK];
    int64_t kernel[MPL_MAX_RANK];
    mpl_value in[2], sum;
    mpl_shape x;
    double *eye;

    MPL_PASS(need_inputs(node, 1));
    x = *shape_of(node, node->in[0]);
    if (dims < 1 || dims > 3 || block == NULL || block->n != dims || x.rank != 3)
        return ONNX_REFUSE(node,
                           "its image and its block have %u and %u dims; 1 to 3 are supported",
                           dims, block != NULL ? block->n : 0);
    for (uint32_t i = 0; i < dims; i++) {
        if (block->ints[i] < 1 || block->ints[i] > 4096 / taps)
            return ONNX_REFUSE(node, "its block has more than 4096 elements");
        taps *= kernel[i] = block->ints[i];
    }
    if (x.dim[1] % taps != 0)
        return ONNX_REFUSE(node, "%" PRId64 " rows do not hold blocks of %" PRId64, x.dim[1], taps);
    to[0] = x.dim[0] * (x.dim[1] / taps), to[1] = taps;
    MPL_PASS(onnx_window_count(node, dims, image->ints, to + 2, extra));
    MPL_PASS(onnx_reshape(node, node->in[0], dims + 2, to, &in[0]));
    MPL_PASS(onnx_new(node->r, eye, (size_t)(taps * taps)));
    for (int64_t i = 0; i < taps; i++)
        eye[i * taps + i] = 1;
    unit[0] = taps, unit[1] = 1;
    memcpy(unit + 2, kernel, dims * sizeof *kernel);
    {
        mpl_shape shape = {dims + 2, {0}};

        memcpy(shape.dim, unit, (dims + 2) * sizeof *unit);
        MPL_PASS(onnx_constant(node, (mpl_type)node->r->g->value_type[node->in[0]], &shape, eye,
                               "unit", &in[1]));
    }
    to[0] = x.dim[0], to[1] = x.dim[1] / taps;
    memcpy(to + 2, image->ints, dims * sizeof *to);
    onnx_drop(node, MPL_ATTR_sizes);
    MPL_PASS(onnx_set_ints(node, MPL_ATTR_output_padding, dims, extra));
    MPL_PASS(
        onnx_step(node, MPL_OP_conv_transpose, "image", 2, in, node->n_attr, node->attr, &sum));
    node->n_attr = 0;
    MPL_PASS(onnx_set_ints(node, MPL_ATTR_shape, dims + 2, to));
    return onnx_finish(node, MPL_OP_reshape, 1, &sum);
}

/* Indices are those of the inferred dims; a larger output has zeros behind. */
mpl_status onnx_lower_max_unpool(onnx_node *node)
{
    const mpl_attr *asked = onnx_get(node, MPL_ATTR_output_shape);
    int64_t dim[MPL_MAX_RANK], pads[2 * MPL_MAX_RANK] = {0}, count = 1, items;
    mpl_value in[3], image;
    bool padded = false;
    uint32_t rank;

    MPL_PASS(need_inputs(node, 2));
    rank = shape_of(node, node->in[0])->rank;
    items = mpl_count(shape_of(node, node->in[0]));
    MPL_PASS(onnx_unpooled_dims(node, shape_of(node, node->in[0]), dim));
    for (uint32_t i = 0; i < rank; i++) {
        if (dim[i] < 1 || dim[i] > MAX_CONSTANT / count)
            return ONNX_REFUSE(node, "its result has a dim of %" PRId64, dim[i]);
        count *= dim[i];
        if (asked != NULL && (asked->n != rank || asked->ints[i] < dim[i]))
            return ONNX_REFUSE(node, "its output_shape is less than the %" PRId64 " of dim %u",
                               dim[i], i);
        pads[rank + i] = asked != NULL ? asked->ints[i] - dim[i] : 0;
        padded = padded || pads[rank + i] != 0;
    }
    MPL_PASS(onnx_scalar(node, (mpl_type)node->r->g->value_type[node->in[0]], 0, "zero", &in[0]));
    MPL_PASS(
        onnx_step(node, MPL_OP_expand, "zeros", 1, &in[0], 1, &MPL_INTS(shape, 1, &count), &in[0]));
    MPL_PASS(onnx_reshape(node, node->in[1], 2, (int64_t[]){items, 1}, &in[1]));
    MPL_PASS(onnx_reshape(node, node->in[0], 1, (int64_t[]){items}, &in[2]));
    MPL_PASS(onnx_step(node, MPL_OP_scatter_nd, "spread", 3, in, 0, NULL, &image));
    node->n_attr = 0;
    if (padded) {
        MPL_PASS(onnx_reshape(node, image, rank, dim, &image));
        MPL_PASS(onnx_set_ints(node, MPL_ATTR_pads, 2 * rank, pads));
        return onnx_finish(node, MPL_OP_pad, 1, &image);
    }
    MPL_PASS(onnx_set_ints(node, MPL_ATTR_shape, rank, dim));
    return onnx_finish(node, MPL_OP_reshape, 1, &image);
}

/* Indices that an Expand repeats through whole slices of axis 0 name slices, each once. */
mpl_status onnx_scattered_slices(onnx_node *node, mpl_value in[3], bool *are)
{
    const mpl_graph *g = node->r->g;
    mpl_op op = g->value_op[in[1]];
    const mpl_shape *to = shape_of(node, in[0]), *from = shape_of(node, in[2]), *x;
    uint32_t axis;

    *are = false;
    if (op == MPL_NONE || g->op_kind[op] != MPL_OP_expand ||
        !mpl_shape_equal(shape_of(node, in[1]), from) || from->rank != to->rank || from->rank < 2)
        return MPL_OK;
    MPL_PASS(onnx_axis(node, onnx_attr_int(node, "axis", 0), to->rank, &axis));
    x = shape_of(node, mpl_op_input(g, op, 0));
    if (axis != 0 || mpl_count(x) != from->dim[0] || x->rank != from->rank ||
        x->dim[0] != from->dim[0])
        return MPL_OK;
    for (uint32_t i = 1; i < from->rank; i++)
        if (from->dim[i] != to->dim[i])
            return MPL_OK;
    *are = true;
    onnx_drop(node, MPL_ATTR_axis);
    return onnx_reshape(node, mpl_op_input(g, op, 0), 2, (int64_t[]){x->dim[0], 1}, &in[1]);
}

mpl_status onnx_lower_scatter(onnx_node *node)
{
    mpl_value in[3];
    bool slices;

    MPL_PASS(need_inputs(node, 3));
    memcpy(in, node->in, sizeof in);
    MPL_PASS(onnx_scattered_slices(node, in, &slices));
    return onnx_finish(node, slices ? MPL_OP_scatter_nd : MPL_OP_scatter_elements, 3, in);
}

/* Negative pads crop. An odd one is larger behind. */
mpl_status onnx_lower_center_crop_pad(onnx_node *node)
{
    const mpl_attr *to = onnx_get(node, MPL_ATTR_shape), *axes = onnx_get(node, MPL_ATTR_axes);
    int64_t pads[2 * MPL_MAX_RANK] = {0};
    const mpl_shape *in;
    uint32_t axis = 0;

    MPL_PASS(need_inputs(node, 1));
    in = shape_of(node, node->in[0]);
    if (to == NULL || to->n != (axes != NULL ? axes->n : in->rank))
        return ONNX_REFUSE(node, "its shape has %u numbers for %u axes", to != NULL ? to->n : 0,
                           axes != NULL ? axes->n : in->rank);
    for (uint32_t i = 0; i < to->n; i++) {
        MPL_PASS(onnx_axis(node, axes != NULL ? axes->ints[i] : (int64_t)i, in->rank, &axis));
        if (to->ints[i] < 0 || to->ints[i] > INT64_MAX / 2 || in->dim[axis] > INT64_MAX / 2)
            return ONNX_REFUSE(node, "its shape has a dim of %" PRId64, to->ints[i]);
        pads[axis] = (to->ints[i] - in->dim[axis]) / 2; /* toward 0 */
        pads[in->rank + axis] = to->ints[i] - in->dim[axis] - pads[axis];
    }
    node->n_attr = 0;
    MPL_PASS(onnx_set_ints(node, MPL_ATTR_pads, 2 * in->rank, pads));
    return onnx_finish(node, MPL_OP_pad, 1, node->in);
}
