/* tflite_layers.c -- rules of operators.def that slide windows, multiply matrices or keep a state.
 * Images have their channels last here and filters likewise; as_real reads them so. Source of
 * meanings: TensorFlow, tensorflow/lite/kernels/. */
#include "graphs/io/tflite/tflite_priv.h"

enum { HEIGHT = 1, WIDTH = 2, CHANNELS = 3, VALID = 1 };

static bool is_image(const tfl_tensor *tensor)
{
    return tensor != NULL && tensor->shape.rank == 4;
}

static int64_t positive(int64_t x)
{
    return x > 0 ? x : 0;
}

/* Pads of a window of `span` elements that moves by `stride` over `from` elements to `to` places.
 */
static void same_pads(int64_t from, int64_t to, int64_t stride, int64_t span, int64_t *before,
                      int64_t *after)
{
    int64_t all = positive((to - 1) * stride + span - from);

    *before = all / 2;
    *after = all - all / 2;
}

/* Sets strides and pads, of windows of those spans: `small` slides over `large`. */
static bool set_window(tfl_node *node, const mpl_shape *large, const mpl_shape *small,
                       const int64_t span[2])
{
    const flat_table *table = &node->op->options;
    const int64_t stride[2] = {tfl_int(table, TFL_Conv_stride_h),
                               tfl_int(table, TFL_Conv_stride_w)};
    int64_t pads[4] = {0};

    for (int i = 0; i < 2; i++) {
        if (stride[i] < 1 || span[i] < 1 || small->dim[HEIGHT + i] > INT32_MAX)
            return false;
        if (tfl_int(table, TFL_Conv_padding) != VALID)
            same_pads(large->dim[HEIGHT + i], small->dim[HEIGHT + i], stride[i], span[i], &pads[i],
                      &pads[2 + i]);
    }
    tfl_set_ints(node, MPL_ATTR_strides, 2, stride);
    tfl_set_ints(node, MPL_ATTR_pads, 4, pads);
    return true;
}

mpl_status tfl_lower_pool(tfl_node *node)
{
    const flat_table *table = &node->op->options;
    const int64_t kernel[2] = {tfl_int(table, TFL_Pool_filter_h),
                               tfl_int(table, TFL_Pool_filter_w)};
    tfl_operand in;

    if (!is_image(tfl_in(node, 0)) || !is_image(tfl_out(node, 0)) ||
        !set_window(node, &tfl_in(node, 0)->shape, &tfl_out(node, 0)->shape, kernel))
        return tfl_opaque(node);
    tfl_set_ints(node, MPL_ATTR_kernel_shape, 2, kernel);
    MPL_PASS(tfl_operand_of(node, 0, TFL_CHANNELS_LAST, &in));
    return tfl_add(node, node->rule->kind, 1, &in, TFL_CHANNELS_LAST);
}

/* ---- products ---- */

/* A bias counts products: its scale is that of an input times that of the filter. The new scales
 * are *owned. */
static mpl_status scale_bias(tfl_node *node, const tfl_operand *operand, const tfl_operand *weight,
                             tfl_operand *bias, double **owned)
{
    if (bias->v == MPL_NONE || operand->n_scales != 1 || weight->n_scales == 0)
        return MPL_OK;
    MPL_PASS(mpl_new(node->model->ctx, *owned, weight->n_scales));
    for (uint32_t i = 0; i < weight->n_scales; i++)
        (*owned)[i] = operand->scale[0] * weight->scale[i];
    *bias = (tfl_operand){bias->v, TFL_PLAIN, weight->n_scales, 0, 0, *owned};
    return MPL_OK;
}

/* The operands x, weight and, if there is one, a bias. */
static mpl_status add_product(tfl_node *node, uint32_t first, mpl_op_kind kind,
                              const uint32_t order[2], uint32_t bias, uint32_t out_order)
{
    mpl_status st = MPL_OK;
    double *scale = NULL;
    tfl_operand in[3];

    MPL_TRY(tfl_operand_of(node, first, order[0], &in[0]));
    MPL_TRY(tfl_operand_of(node, first == 0 ? 1 : first - 1, order[1], &in[1]));
    MPL_TRY(tfl_operand_of(node, bias, TFL_PLAIN, &in[2]));
    MPL_TRY(scale_bias(node, &in[0], &in[1], &in[2], &scale));
    MPL_TRY(tfl_add(node, kind, in[2].v == MPL_NONE ? 2 : 3, in, out_order));
out:
    mpl_free(node->model->ctx, scale);
    return st;
}

/* Filters are [out,h,w,in]; of a depthwise convolution [1,h,w,out], out a multiple of the
 * channels. */
mpl_status tfl_lower_conv(tfl_node *node)
{
    enum { DEPTHWISE = 4 };
    bool deep = node->rule->code == DEPTHWISE;
    const flat_table *table = &node->op->options;
    const int64_t dilation[2] = {
        tfl_int(table, deep ? TFL_Depthwise_dilation_h : TFL_Conv_dilation_h),
        tfl_int(table, deep ? TFL_Depthwise_dilation_w : TFL_Conv_dilation_w)};
    const tfl_tensor *tensor = tfl_in(node, 0), *weight = tfl_in(node, 1);
    int64_t span[2], inner;

    if (!is_image(tensor) || !is_image(weight) || !is_image(tfl_out(node, 0)))
        return tfl_opaque(node);
    for (int i = 0; i < 2; i++) {
        if (dilation[i] < 1 || weight->shape.dim[HEIGHT + i] > INT32_MAX)
            return tfl_opaque(node);
        span[i] = (weight->shape.dim[HEIGHT + i] - 1) * dilation[i] + 1;
    }
    if (!set_window(node, &tensor->shape, &tfl_out(node, 0)->shape, span))
        return tfl_opaque(node);
    inner = weight->shape.dim[CHANNELS];
    tfl_set_ints(node, MPL_ATTR_dilations, 2, dilation);
    if (!deep && inner == 0)
        return tfl_opaque(node);
    tfl_set_int(node, MPL_ATTR_group,
                deep ? tensor->shape.dim[CHANNELS] : tensor->shape.dim[CHANNELS] / inner);
    return add_product(
        node, 0, MPL_OP_conv,
        (const uint32_t[]){TFL_CHANNELS_LAST, deep ? TFL_FILTERS_LAST : TFL_CHANNELS_LAST}, 2,
        TFL_CHANNELS_LAST);
}

/* Inputs are the dims of the result, filters [out,h,w,in], x and a bias. Places of the window that
 * the result has beyond those of x are its output padding. */
mpl_status tfl_lower_transpose_conv(tfl_node *node)
{
    const flat_table *table = &node->op->options;
    const int64_t stride[2] = {tfl_int(table, TFL_Conv_stride_h),
                               tfl_int(table, TFL_Conv_stride_w)};
    const tfl_tensor *weight = tfl_in(node, 1), *x = tfl_in(node, 2), *y = tfl_out(node, 0);
    int64_t more[2];

    if (!is_image(x) || !is_image(weight) || !is_image(y) ||
        !set_window(node, &y->shape, &x->shape, weight->shape.dim + HEIGHT))
        return tfl_opaque(node);
    for (int i = 0; i < 2; i++) {
        if (weight->shape.dim[HEIGHT + i] > INT32_MAX || y->shape.dim[HEIGHT + i] > INT32_MAX)
            return tfl_opaque(node);
        more[i] = positive(y->shape.dim[HEIGHT + i] - (x->shape.dim[HEIGHT + i] - 1) * stride[i] -
                           weight->shape.dim[HEIGHT + i]);
    }
    tfl_set_ints(node, MPL_ATTR_output_padding, 2, more);
    return add_product(node, 2, MPL_OP_conv_transpose,
                       (const uint32_t[]){TFL_CHANNELS_LAST, TFL_FILTERS_LAST}, 3,
                       TFL_CHANNELS_LAST);
}

/* tensor is a matrix of rows as long as the filter's; other dims of tensor are run together. */
mpl_status tfl_lower_fully_connected(tfl_node *node)
{
    const tfl_tensor *tensor = tfl_in(node, 0), *weight = tfl_in(node, 1);
    mpl_status st = MPL_OK;
    double *scale = NULL;
    tfl_operand in[3];
    mpl_shape rows = {2, {0}};

    if (tensor == NULL || weight == NULL || weight->shape.rank != 2 || weight->shape.dim[1] == 0 ||
        tfl_int(&node->op->options, TFL_FullyConnected_weights_format) != 0)
        return tfl_opaque(node);
    rows.dim[1] = weight->shape.dim[1];
    rows.dim[0] = mpl_count(&tensor->shape) / rows.dim[1];
    for (uint32_t i = 0; i < 3; i++)
        MPL_TRY(tfl_operand_of(node, i, TFL_PLAIN, &in[i]));
    if (!mpl_shape_equal(&rows, &tensor->shape))
        MPL_TRY(tfl_add_view(node, in[0].v, &rows, tfl_out(node, 0)->name, ":rows", &in[0].v));
    MPL_TRY(scale_bias(node, &in[0], &in[1], &in[2], &scale));
    tfl_set_int(node, MPL_ATTR_trans_b, 1);
    node->converts = tfl_out(node, 0)->shape.rank != 2;
    MPL_TRY(tfl_add(node, MPL_OP_gemm, in[2].v == MPL_NONE ? 2 : 3, in, TFL_PLAIN));
out:
    mpl_free(node->model->ctx, scale);
    return st;
}

mpl_status tfl_lower_batch_matmul(tfl_node *node)
{
    const flat_table *table = &node->op->options;
    tfl_operand in[2];

    MPL_PASS(tfl_operand_of(node, 0, tfl_int(table, TFL_BatchMatMul_adj_x) ? TFL_TURNED : TFL_PLAIN,
                            &in[0]));
    MPL_PASS(tfl_operand_of(node, 1, tfl_int(table, TFL_BatchMatMul_adj_y) ? TFL_TURNED : TFL_PLAIN,
                            &in[1]));
    return tfl_add(node, MPL_OP_matmul, 2, in, TFL_PLAIN);
}

/* ---- images ---- */

static mpl_status add_image(tfl_node *node)
{
    tfl_operand in;

    if (!is_image(tfl_in(node, 0)))
        return tfl_opaque(node);
    MPL_PASS(tfl_operand_of(node, 0, TFL_CHANNELS_LAST, &in));
    return tfl_add(node, node->rule->kind, 1, &in, TFL_CHANNELS_LAST);
}

mpl_status tfl_lower_blocks(tfl_node *node)
{
    tfl_set_int(node, MPL_ATTR_blocksize, tfl_int(&node->op->options, TFL_Blocks_block_size));
    return add_image(node);
}

mpl_status tfl_lower_resize(tfl_node *node)
{
    enum { BILINEAR = 23 };
    bool smooth = node->rule->code == BILINEAR;
    const flat_table *table = &node->op->options;
    bool corners = tfl_int(table, smooth ? TFL_ResizeBilinear_align_corners
                                         : TFL_ResizeNearest_align_corners) != 0;
    bool half = tfl_int(table, smooth ? TFL_ResizeBilinear_half_pixel_centers
                                      : TFL_ResizeNearest_half_pixel_centers) != 0;
    const int64_t *dim = tfl_out(node, 0)->shape.dim;

    if (!is_image(tfl_out(node, 0)))
        return tfl_opaque(node);
    tfl_set_ints(node, MPL_ATTR_sizes, 4, (const int64_t[]){dim[0], dim[3], dim[1], dim[2]});
    tfl_set(node, smooth ? MPL_TEXT(mode, "linear") : MPL_TEXT(mode, "nearest"));
    tfl_set(node, corners ? MPL_TEXT(coordinate_mode, "align_corners")
                  : half  ? MPL_TEXT(coordinate_mode, "half_pixel")
                          : MPL_TEXT(coordinate_mode, "asymmetric"));
    if (!smooth)
        tfl_set(node, corners || half ? MPL_TEXT(nearest_mode, "round_prefer_ceil")
                                      : MPL_TEXT(nearest_mode, "floor"));
    return add_image(node);
}
