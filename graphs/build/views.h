/* views.h -- what each value of a program is a view of.
 *
 * Operators that only say where elements lie give views: view, identity, reshape, flatten, squeeze,
 * unsqueeze, slice, split, transpose and expand; a reshape that strides cannot say is a copy. All
 * others make tensors of their own, the roots. The views of a root form a tree: each hangs under
 * the value that it was made from. */
#ifndef MPL_VIEWS_H
#define MPL_VIEWS_H

#include "graphs/ir/strided.h"

typedef struct mpl_views {
    uint32_t n;
    mpl_value *root;      /* [n] itself, of a root */
    mpl_value *parent;    /* [n] MPL_NONE, of a root; a `view` with strides hangs under the root */
    mpl_strided *of_root; /* [n] of the root's elements */
    mpl_strided *of_parent; /* [n] of the parent's elements in row-major order, the parent taken as
                               a plain tensor */
} mpl_views;

/* MPL_EINPUT: a view reaches outside of its root. O(size). */
mpl_status mpl_views_new(mpl_ctx *ctx, const mpl_graph *g, mpl_views **out);
void mpl_views_free(mpl_ctx *ctx, mpl_views *views); /* NULL is allowed */

#endif
