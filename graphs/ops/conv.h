/* conv.h -- convolutions that have taken in what followed them: conv_act, conv_sum. */
#ifndef MPL_OPS_CONV_H
#define MPL_OPS_CONV_H

#include "graphs/graph.h"

/* The attribute `activation`: none, relu, relu6 (0 to 6). */
typedef enum mpl_activation { MPL_ACT_NONE, MPL_ACT_RELU, MPL_ACT_RELU6, MPL_N_ACTIVATIONS } mpl_activation;

const char *mpl_activation_name(mpl_activation a);

/* That of an operation; none where it has none, MPL_N_ACTIVATIONS for another word. */
mpl_activation mpl_activation_of(const mpl_graph *g, mpl_op op);

/* conv, conv_act or conv_sum. */
static inline bool mpl_is_conv(mpl_op_kind kind)
{
    return kind == MPL_OP_conv || kind == MPL_OP_conv_act || kind == MPL_OP_conv_sum;
}

/* Which input of such an operation is x; weight and bias stand behind it, what is added before it. */
static inline uint32_t mpl_conv_first(mpl_op_kind kind)
{
    return kind == MPL_OP_conv_sum ? 1 : 0;
}

#endif
