/* fused.h -- the little programs of the operator `fused`, for the pass that makes them and for
 * backends. */
#ifndef MPL_FUSED_H
#define MPL_FUSED_H

#include "graphs/graph.h"
#include "graphs/ir/strided.h"

/* In place of an operator: the step that pushes a load. */
#define MPL_STEP_LOAD ((mpl_op_kind)UINT16_MAX)

enum { MPL_FUSED_LOADS = 12, MPL_FUSED_STEPS = 32, MPL_FUSED_DEPTH = 8 };

typedef struct mpl_fused_load {
    uint32_t input;
    mpl_strided from; /* of the input's elements; dims are those of the box */
} mpl_fused_load;

typedef struct mpl_fused {
    uint32_t n_loads, n_steps;
    mpl_fused_load load[MPL_FUSED_LOADS];
    struct {
        mpl_op_kind kind; /* MPL_STEP_LOAD: pushes load `of` */
        uint32_t of;
    } step[MPL_FUSED_STEPS];
    mpl_strided to; /* where the result goes: in input 0, or all of an output of its own */
} mpl_fused;

/* Operands of an operator that a step may be: 1 or 2, of floats, without attributes; 0: it may
 * not. */
uint32_t mpl_fused_arity(mpl_op_kind kind);

/* What the attributes of a `fused` operation say. MPL_EINPUT where they are none; what else must
 * hold is for the shape rule. */
mpl_status mpl_fused_read(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_fused *f);

#endif
