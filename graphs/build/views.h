/* views.h -- the root and parent of each view in a program.
 *
 * These operators make views: view, identity, reshape, flatten, squeeze, unsqueeze, slice, split,
 * transpose, expand. A reshape that strides cannot express is a copy. All other operators make
 * roots. The views of a root form a tree; a view's parent is the value that it was made from. */
#pragma once

#include "graphs/ir/strided.h"

typedef struct mpl_views {
    uint32_t n;
    mpl_value *root;        /* [n] a root's own id */
    mpl_value *parent;      /* [n] MPL_NONE for a root; of a `view` with strides: the root */
    mpl_strided *of_root;   /* [n] as a box of the root's elements */
    mpl_strided *of_parent; /* [n] as a box of the parent's elements in row-major order */
} mpl_views;

/* MPL_EINPUT: a view exceeds its root. O(size). */
mpl_status mpl_views_new(mpl_ctx *ctx, const mpl_graph *g, mpl_views **out);
void mpl_views_free(mpl_ctx *ctx, mpl_views *views); /* accepts NULL */
