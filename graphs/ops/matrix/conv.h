/* conv.h -- convolutions and matrix products fused with subsequent operations: conv_act, conv_sum,
 * gemm_act, gemm_sum. */
#pragma once

#include "graphs/graph.h"

/* Attribute `activation`: none, relu, relu6 (0 to 6). */
typedef enum mpl_activation {
    MPL_ACT_NONE,
    MPL_ACT_RELU,
    MPL_ACT_RELU6,
    MPL_N_ACTIVATIONS
} mpl_activation;

const char *mpl_activation_name(mpl_activation a);

/* Activation of an operation; none if absent, MPL_N_ACTIVATIONS if unknown. */
mpl_activation mpl_activation_of(const mpl_graph *g, mpl_op op);

/* conv, conv_act or conv_sum. */
static inline bool mpl_is_conv(mpl_op_kind kind)
{
    return kind == MPL_OP_conv || kind == MPL_OP_conv_act || kind == MPL_OP_conv_sum;
}

/* gemm, gemm_act or gemm_sum. */
static inline bool mpl_is_gemm(mpl_op_kind kind)
{
    return kind == MPL_OP_gemm || kind == MPL_OP_gemm_act || kind == MPL_OP_gemm_sum;
}

/* Dims of operand a or the result as one matrix: all dims but the last are rows. */
static inline mpl_shape mpl_as_matrix(const mpl_shape *shape)
{
    return (mpl_shape){2, {mpl_count_dims(shape, 0, shape->rank - 1), shape->dim[shape->rank - 1]}};
}

/* Applies the activation to x. */
static inline double mpl_activate(mpl_activation a, double x)
{
    return a == MPL_ACT_NONE ? x : x < 0 ? 0 : a == MPL_ACT_RELU6 && x > 6 ? 6 : x;
}

/* MPL_EINPUT: the attribute is unknown. */
mpl_status mpl_check_activation(mpl_ctx *ctx, const mpl_graph *g, mpl_op op);

/* Input number of x, or a. Weight and bias, or b and c, follow it; the addend precedes it. */
static inline uint32_t mpl_fused_first(mpl_op_kind kind)
{
    return kind == MPL_OP_conv_sum || kind == MPL_OP_gemm_sum ? 1 : 0;
}
