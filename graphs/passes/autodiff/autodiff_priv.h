/* autodiff_priv.h -- what autodiff.c and autodiff_blocks.c share. */
#ifndef MPL_AUTODIFF_PRIV_H
#define MPL_AUTODIFF_PRIV_H

#include "graphs/build/graph_priv.h"
#include "graphs/passes/autodiff/gradients_priv.h"

enum { MPL_GRAD_NAME = 256 };

/* ---- autodiff.c */

/* A new name: `base`, `suffix`, `number` unless it is MPL_NONE. text[MPL_GRAD_NAME]. */
const char *mpl_grad_fresh(const mpl_grad *d, char *text, const char *base, const char *suffix,
                           uint32_t number);
/* Name of a copy: the same where it is the first. */
const char *mpl_grad_copy_name(const mpl_grad *d, char *text, const char *base);
/* A part of the gradient of v, a value of the old graph; all parts added, once they are there. */
void mpl_grad_part(mpl_grad *d, mpl_value v, mpl_value part);
mpl_status mpl_grad_complete(mpl_grad *d, mpl_value v);
/* An operation without blocks, forward; any, backward. */
mpl_status mpl_grad_copy(mpl_grad *d, mpl_op op);
mpl_status mpl_grad_back(mpl_grad *d, mpl_op op);

/* ---- autodiff_blocks.c */

/* Outside values that the blocks of `op` read, ascending; varying: only such. */
mpl_status mpl_grad_captured(mpl_grad *d, mpl_op op, bool varying, uint32_t *n, mpl_value **list);
/* What varies in and behind a loop or case; whether anything new does. */
bool mpl_grad_vary_control(mpl_grad *d, mpl_op op);
/* Counts the slots of what leading operations of block b read, and finds who else leads. */
mpl_status mpl_grad_count_slots(mpl_grad *d, uint32_t b);
/* Makes v, of the block at hand or one around it, again, if it is not there. */
mpl_status mpl_grad_now(mpl_grad *d, mpl_value v);
/* A loop or case as it stands; tape: of a loop, with what each round began with as rows. */
mpl_status mpl_grad_copy_control(mpl_grad *d, mpl_op op, bool tape);
/* Its backward loop or case. */
mpl_status mpl_grad_back_control(mpl_grad *d, mpl_op op);

#endif
