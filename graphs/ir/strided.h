/* strided.h -- views: strided boxes of the elements of one tensor, their composition, and which
 * elements two of them share.
 *
 * A view is (dims, strides, offset) of a root, counted in elements. What is made here stays inside
 * of the box that it is made of, so no stride that is ever taken can overflow. */
#ifndef MPL_STRIDED_H
#define MPL_STRIDED_H

#include "graphs/graph.h"

typedef struct mpl_strided {
    mpl_shape shape;
    int64_t stride[MPL_MAX_RANK]; /* [element] 0: repeated; negative: backwards */
    int64_t offset;               /* of index 0, 0, .. [element] */
} mpl_strided;

/* All of a tensor, row-major. */
mpl_strided mpl_strided_all(const mpl_shape *shape);
/* The same dims, strides and offset; those of dims that are never stepped along do not count. */
bool mpl_strided_equal(const mpl_strided *a, const mpl_strided *b);
/* The elements lie one after another, in the order of the indices. */
bool mpl_strided_contiguous(const mpl_strided *v);
/* All elements of a root of `count`, in its order. */
bool mpl_strided_whole(const mpl_strided *v, uint64_t count);
/* Least and greatest element; false when the view is empty or an element lies outside of [0,
 * 2^62). */
bool mpl_strided_bounds(const mpl_strided *v, int64_t *least, int64_t *most);
/* The same elements in the same order, over fewer dims: none of 1, neighbours that one stride can
 * walk as one. Not of an empty view. */
void mpl_strided_join(const mpl_strided *v, mpl_strided *out);
/* No element stands at two indices: it may be written through. May say false of one that has none
 * twice. */
bool mpl_strided_distinct(const mpl_strided *v);

/* ---- views of views; false, *v untouched, where there is no such view ---- */

/* Elements start, start + step, .. of an axis, n of them. */
bool mpl_strided_take(mpl_strided *v, uint32_t axis, int64_t start, int64_t step, int64_t n);
bool mpl_strided_select(mpl_strided *v, uint32_t axis, int64_t index);
/* Axis i is axis[i] of v. */
bool mpl_strided_permute(mpl_strided *v, const uint32_t axis[MPL_MAX_RANK]);
/* As NumPy broadcasts. */
bool mpl_strided_expand(mpl_strided *v, const mpl_shape *to);
/* The same elements in the same order under other dims; false where strides do not allow it: then
 * it is a copy. */
bool mpl_strided_reshape(mpl_strided *v, const mpl_shape *to);
/* What NumPy's index "1,::2,-1:0:-1,...,None" takes. MPL_EINPUT: what is wrong with it, in one
 * line. */
mpl_status mpl_strided_index(mpl_ctx *ctx, mpl_strided *v, const char *text);
/* `inner`, a view of the elements of `outer` in row-major order, as a view of outer's root. False
 * where strides cannot say it; may be false where they could. */
bool mpl_strided_compose(const mpl_strided *outer, const mpl_strided *inner, mpl_strided *out);

/* ---- two views of one root ---- */

typedef enum mpl_meeting {
    MPL_APART,     /* no element is in both */
    MPL_MEET,      /* one is */
    MPL_UNDECIDED, /* not found out within the limit: to be taken as MPL_MEET */
} mpl_meeting;

/* Whether two views share an element. Exact whenever the search ends within `limit` steps (0: a
 * default of thousands); bounds, the greatest common divisor of the strides, and equal strides
 * taken together decide nearly all in a few. */
mpl_meeting mpl_strided_meet(const mpl_strided *a, const mpl_strided *b, uint32_t limit);

/* "([3,2,5],[20,10,1],5)" into text (at least 400 bytes); returns text. */
const char *mpl_strided_text(const mpl_strided *v, char *text);

#endif
