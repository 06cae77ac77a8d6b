/* steps.h -- an order with the steps at which blocks begin and end. */
#ifndef MPL_STEPS_H
#define MPL_STEPS_H

#include "graphs/graph.h"

/* An order as it is run: operations, and where blocks begin and end. Without control flow one step
 * an operation. Steps of a block stand in one piece before its owner's; those of a case's branches
 * follow one another. Control goes from a step to the next, but: before a `while`'s BEGIN, also to
 * the owner (no round); from its END back to BEGIN, and to the owner; from an exit test also to the
 * owner; before a case's first BEGIN, to each BEGIN and to the owner; from its ENDs to the owner
 * only. */
typedef enum mpl_step_kind { MPL_STEP_OP, MPL_STEP_BEGIN, MPL_STEP_END } mpl_step_kind;
typedef struct mpl_program {
    uint32_t n_steps;
    uint8_t *kind;        /* [n_steps] mpl_step_kind */
    uint32_t *of;         /* [n_steps] the operation, or the block */
    uint32_t *op_step;    /* [n_ops] */
    uint32_t *begin_step; /* [n_blocks] of BEGIN; block 0: 0 */
    uint32_t *end_step;   /* [n_blocks] of END; block 0: n_steps */
} mpl_program;
/* MPL_EINPUT when `order` is no permutation of the operations, or tears blocks apart; that each
 * comes after what it reads is not looked at. O(size). */
mpl_status mpl_program_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                           mpl_program **out);
void mpl_program_free(mpl_ctx *ctx, mpl_program *program);

/* position[n_ops]: where each operation stands in `order`. MPL_EINPUT as mpl_program_new. */
mpl_status mpl_order_positions(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                               uint32_t *position);

#endif
