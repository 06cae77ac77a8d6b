/* conv.h -- convolutions and matrix products that have taken in what followed them: conv_act,
 * conv_sum, gemm_act, gemm_sum. */
#ifndef MPL_OPS_CONV_H
#define MPL_OPS_CONV_H

#include "graphs/graph.h"

/* The attribute `activation`: none, relu, relu6 (0 to 6). */
typedef enum mpl_activation {
    MPL_ACT_NONE,
    MPL_ACT_RELU,
    MPL_ACT_RELU6,
    MPL_N_ACTIVATIONS
} mpl_activation;

const char *mpl_activation_name(mpl_activation a);

/* That of an operation; none where it has none, MPL_N_ACTIVATIONS for another word. */
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

/* x within what the activation lets through. */
static inline double mpl_activate(mpl_activation a, double x)
{
    return a == MPL_ACT_NONE ? x : x < 0 ? 0 : a == MPL_ACT_RELU6 && x > 6 ? 6 : x;
}

/* MPL_EINPUT: the attribute is another word. */
mpl_status mpl_check_activation(mpl_ctx *ctx, const mpl_graph *g, mpl_op op);

/* Which input of such an operation is x, or a; weight and bias, or b and c, stand behind it, what
 * is added before it. */
static inline uint32_t mpl_fused_first(mpl_op_kind kind)
{
    return kind == MPL_OP_conv_sum || kind == MPL_OP_gemm_sum ? 1 : 0;
}

#endif
