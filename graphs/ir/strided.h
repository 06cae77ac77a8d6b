/* strided.h -- views as strided boxes of one tensor: composition and overlap.
 *
 * A view is (dims, strides, offset) of a root, in elements. Derived views stay inside the box they
 * are derived from, so no stride that is used can overflow. */
#pragma once

#include "graphs/graph.h"

typedef struct mpl_strided {
    mpl_shape shape;
    int64_t stride[MPL_MAX_RANK]; /* [element] 0: repeated; negative: backwards */
    int64_t offset;               /* of index 0, 0, .. [element] */
} mpl_strided;

/* The whole tensor, row-major. */
mpl_strided mpl_strided_all(const mpl_shape *shape);
/* Equal dims, strides and offset; strides of dims of size 1 or 0 are ignored. */
bool mpl_strided_equal(const mpl_strided *a, const mpl_strided *b);
/* The elements are adjacent, in index order. */
bool mpl_strided_contiguous(const mpl_strided *view);
/* All elements of a root of `count`, in order. */
bool mpl_strided_whole(const mpl_strided *view, uint64_t count);
/* Least and greatest element; false if the view is empty or exceeds [0, 2^62). */
bool mpl_strided_bounds(const mpl_strided *view, int64_t *least, int64_t *most);
/* The same elements in the same order with fewer dims: drops dims of 1 and merges neighbours that
 * one stride covers. The view must not be empty. */
void mpl_strided_join(const mpl_strided *view, mpl_strided *out);
/* No two indices share an element, so the view may be written. May give false negatives. */
bool mpl_strided_distinct(const mpl_strided *view);

/* ---- views of views; false, with *v unchanged, if no such view exists ---- */

/* Takes n elements start, start + step, .. of an axis. */
bool mpl_strided_take(mpl_strided *view, uint32_t axis, int64_t start, int64_t step, int64_t n);
/* Axis i becomes axis[i] of v. */
bool mpl_strided_permute(mpl_strided *v, const uint32_t axis[MPL_MAX_RANK]);
/* Broadcasts as NumPy does. */
bool mpl_strided_expand(mpl_strided *view, const mpl_shape *to);
/* The same elements in the same order with other dims; false if strides cannot express it and a
 * copy is needed. */
bool mpl_strided_reshape(mpl_strided *view, const mpl_shape *to);
/* Applies a NumPy index such as "1,::2,-1:0:-1,...,None". MPL_EINPUT, with one line that says what
 * is wrong. */
mpl_status mpl_strided_index(mpl_ctx *ctx, mpl_strided *view, const char *text);
/* Expresses `inner`, a view of the elements of `outer` in row-major order, as a view of outer's
 * root. False if strides cannot express it; may give false negatives. */
bool mpl_strided_compose(const mpl_strided *outer, const mpl_strided *inner, mpl_strided *out);

/* ---- two views of one root ---- */

typedef enum mpl_meeting {
    MPL_APART,     /* no common element */
    MPL_MEET,      /* a common element */
    MPL_UNDECIDED, /* step limit reached; treat as MPL_MEET */
} mpl_meeting;

/* Whether two views share an element; exact if the search ends within `limit` steps (0: a default
 * of thousands). Bounds, the divisor of the strides, and merged equal strides decide nearly all
 * cases in a few steps. */
mpl_meeting mpl_strided_meet(const mpl_strided *a, const mpl_strided *b, uint32_t limit);

/* Writes "([3,2,5],[20,10,1],5)" into text (at least 400 bytes); returns text. */
const char *mpl_strided_text(const mpl_strided *view, char *text);
