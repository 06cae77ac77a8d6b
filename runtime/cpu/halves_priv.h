/* halves_priv.h -- shared by the files halves*.c. See halves.h. */
#ifndef MPL_HALVES_PRIV_H
#define MPL_HALVES_PRIV_H

#include "runtime/cpu/halves.h"

/* An operand as [outer, n, inner], of which pieces cut n. */
typedef struct mpl_half_operand {
    bool half; /* widened; otherwise taken as it lies */
    bool kept; /* a weight, widened once */
    bool cut;  /* otherwise whole in each piece */
    mpl_type type;
    uint32_t axis; /* n are the entries along it, and along axes before it that are taken with it */
    int64_t outer, n, inner;
    int64_t step, low, window; /* entry i of the result needs `window` from i * step - low on */
    int64_t piece;             /* entries in a piece */
    mpl_shape shape;           /* of a piece */
    uint64_t at;               /* in the workspace, or in the kept weights [byte] */
} mpl_half_operand;

/* How an operation on the operands of `g` is cut. images: those that come one by one. */
typedef struct mpl_half_pieces {
    uint32_t n_in, n_out;
    mpl_half_operand *operand; /* [n_in + n_out] */
    int64_t images, n, piece;  /* entries of the result, and in a piece of it */
} mpl_half_pieces;

/* Operand k, inputs first; MPL_NONE: left out. */
mpl_value mpl_half_value(const mpl_graph *g, mpl_op op, uint32_t k);
/* Decides what pieces cut; operand[] has type, half, kept and shape. */
void mpl_half_cut(mpl_half_pieces *pieces, int64_t piece_bytes, const mpl_graph *g, mpl_op op);
/* Undoes it: one piece, the whole. */
void mpl_half_whole(mpl_half_pieces *pieces, const mpl_graph *g, mpl_op op);

/* n elements of a half to f32, exactly; and back, each rounded to nearest, ties to even. */
void mpl_half_widen(mpl_type type, float *to, const uint16_t *from, int64_t n);
void mpl_half_round(mpl_type type, uint16_t *to, const float *from, int64_t n);

#endif
