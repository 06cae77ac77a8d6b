/* quant_priv.h -- shared by the quantised operators. See README.md. */
#pragma once

#include <math.h>

#include "graphs/ops/elementwise_priv.h"

#define MPL_SET_QUANTISED                                                                          \
    (MPL_SET(i8) | MPL_SET(u8) | MPL_SET(i16) | MPL_SET(u16) | MPL_SET_SMALL_INT)
#define MPL_SET_SCALE (MPL_SET_FLOAT | MPL_SET(f8e8m0))

/* Operands of qconv and qmatmul. */
enum { Q_X, Q_W, Q_X_SCALE, Q_X_ZERO, Q_W_SCALE, Q_W_ZERO, Q_Y_SCALE, Q_Y_ZERO, Q_BIAS, Q_MOST };

/* How sums become elements of the output. */
typedef struct mpl_requant {
    mpl_type type;
    bool whole;       /* integers, with a scale or as they are */
    double low, high; /* clamp, in steps */
} mpl_requant;

/* Element i of an operand, or its only one; `otherwise` if it is left out. */
static inline double mpl_q_at(const mpl_op_call *call, uint32_t operand, int64_t i,
                              double otherwise)
{
    const mpl_tensor *tensor = &call->in[operand];

    if (operand >= call->n_in || tensor->data == NULL)
        return otherwise;
    return mpl_get(tensor->type, tensor->data, mpl_count(&tensor->shape) == 1 ? 0 : i);
}

static inline bool mpl_q_given(const mpl_shape_call *call, uint32_t operand)
{
    return operand < call->n_in && call->in_shape[operand] != NULL;
}

/* Whether an operand has one element. */
static inline bool mpl_q_single(const mpl_shape_call *call, uint32_t operand)
{
    return mpl_count(call->in_shape[operand]) == 1;
}

/* The limits of an integer type, narrowed by attributes low and high. */
mpl_requant mpl_requant_of(const mpl_op_call *call);

/* Stores a sum, scaled, moved by `zero`, rounded half to even and clamped; floats as they are. */
static inline void mpl_requant_put(const mpl_requant *requant, void *data, int64_t i, float x,
                                   double zero)
{
    double y = requant->whole ? (double)rintf(x) + zero : (double)x;

    if (requant->whole)
        y = y < requant->low ? requant->low : y > requant->high ? requant->high : y;
    mpl_put(requant->type, data, i, y);
}

/* MPL_EINPUT unless operand `scale` is missing or float, and `zero` missing, or of the type of `of`
 * and one element or as many as the scale; both with 1 element or `most` (0: 1 only). of is
 * MPL_NONE: any quantised type. */
mpl_status mpl_q_check(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t scale, uint32_t zero,
                       uint32_t of, int64_t most);

/* Type of the output of qconv, qmatmul: see README.md. */
mpl_status mpl_q_out_type(mpl_ctx *ctx, const mpl_shape_call *call);

/* Loads n integers from `at` on, `step` apart, less `zero`. */
void mpl_q_load(const mpl_tensor *tensor, int64_t at, int64_t step, int64_t n, int32_t zero,
                int32_t *to);

/* Whether qelementwise has that operator, of so many operands. */
bool mpl_qelementwise_has(const char *name, uint32_t n_in);
