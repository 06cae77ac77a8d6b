/* steps.h -- an order with the steps at which blocks begin and end. */
#pragma once

#include "graphs/graph.h"

/* An order as a program: operations, and the steps at which blocks begin and end. Without control
 * flow it has one step per operation. A block's steps are contiguous and precede its owner's;
 * branches of a case follow one another. Control goes to the next step, with these exceptions.
 * Before a `while`'s BEGIN, also to the owner (no round); from its END to BEGIN and to the owner;
 * from an exit test also to the owner. Before a case's first BEGIN, to each BEGIN and to the owner;
 * from its ENDs only to the owner. */
typedef enum mpl_step_kind { MPL_STEP_OP, MPL_STEP_BEGIN, MPL_STEP_END } mpl_step_kind;
typedef struct mpl_program {
    uint32_t n_steps;
    uint8_t *kind;        /* [n_steps] mpl_step_kind */
    uint32_t *of;         /* [n_steps] operation or block */
    uint32_t *op_step;    /* [n_ops] */
    uint32_t *begin_step; /* [n_blocks] step of BEGIN; block 0: 0 */
    uint32_t *end_step;   /* [n_blocks] step of END; block 0: n_steps */
} mpl_program;
/* MPL_EINPUT when `order` is no permutation of the operations, or splits a block. Does not check
 * that operations come after what they read. O(size). */
mpl_status mpl_program_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                           mpl_program **out);
void mpl_program_free(mpl_ctx *ctx, mpl_program *program);

/* Writes position[n_ops], the index of each operation in `order`. MPL_EINPUT as mpl_program_new. */
mpl_status mpl_order_positions(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                               uint32_t *position);
