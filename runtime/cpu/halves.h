/* halves.h -- 16-bit floats on the backend `cpu`: oneDNN 2.6 computes f32 alone, and plain loops
 * are slow.
 *
 * A piece of the operands that fits a cache is widened to f32 in the workspace, the operation runs
 * on it as on any f32, and each element of the result is rounded once. Pieces are equal, so that
 * one primitive computes all of them; they do not change a result. Weights are widened once, in the
 * first run, and kept. */
#ifndef MPL_HALVES_H
#define MPL_HALVES_H

#include "runtime/backend.h"

typedef struct mpl_halves mpl_halves;

enum { MPL_HALVES_PIECE = 512 * 1024 }; /* half of a core's cache [byte] */

/* Prepares an operation on f16 or bf16 by one of `inner` on f32. *out is NULL if no operand is a
 * half, or if the operation only moves elements or is better left to loops. piece_bytes: of the
 * widened operands of a piece, if more than one entry fits. *how names the implementation, valid
 * until mpl_halves_free. MPL_EMEM. */
mpl_status mpl_halves_new(mpl_device *dev, const mpl_backend *inner, int64_t piece_bytes,
                          const mpl_graph *g, mpl_op op, mpl_halves **out,
                          uint64_t *workspace_bytes, const char **how);
void mpl_halves_free(mpl_device *dev, mpl_halves *halves); /* NULL is allowed */
mpl_status mpl_halves_run(mpl_device *dev, mpl_halves *halves, const mpl_op_call *call);
/* Bytes of weights kept as f32, and what the inner operation keeps. */
uint64_t mpl_halves_packed_bytes(const mpl_halves *halves);

#endif
