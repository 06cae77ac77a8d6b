/* fused.h -- expressions of the operator `fused`, for the pass that makes them and for backends. */
#pragma once

#include "graphs/ir/strided.h"

/* Pseudo operator: the step pushes a load. */
#define MPL_STEP_LOAD ((mpl_op_kind)UINT16_MAX)

enum { MPL_FUSED_LOADS = 12, MPL_FUSED_STEPS = 32, MPL_FUSED_DEPTH = 8 };

typedef struct mpl_fused_load {
    uint32_t input;
    mpl_strided from; /* box of the input's elements */
} mpl_fused_load;

typedef struct mpl_fused {
    uint32_t n_loads, n_steps;
    mpl_fused_load load[MPL_FUSED_LOADS];
    struct {
        mpl_op_kind kind; /* MPL_STEP_LOAD: pushes load `of` */
        uint32_t of;
    } step[MPL_FUSED_STEPS];
    mpl_strided to; /* destination: in input 0, or all of a new output */
} mpl_fused;

/* Operands (1 or 2) of an operator allowed in a step: on floats, without attributes; 0: not
 * allowed. */
uint32_t mpl_fused_arity(mpl_op_kind kind);

/* Parses the attributes of a `fused` operation. MPL_EINPUT: malformed. The shape rule checks the
 * rest. */
mpl_status mpl_fused_read(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_fused *f);
