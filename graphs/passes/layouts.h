/* layouts.h -- which operations have the channels of their images last, or in blocks, chosen by
 * times. */
#pragma once

#include "graphs/ir/layout.h"

/* Implementations of an operation in one layout that are told apart. */
enum { MPL_N_WAYS = 4 };

/* How one operation is computed: its layout, and which of a backend's implementations. */
typedef struct mpl_laid {
    uint8_t layout; /* mpl_layout */
    uint8_t way;    /* attribute `way`, below MPL_N_WAYS; 0: the backend's preferred one */
} mpl_laid;

/* Times of a graph's operations in each layout. A layout in which an operation cannot run has
 * UINT64_MAX. [ns] */
typedef struct mpl_layout_times {
    uint64_t *op[MPL_N_LAYOUTS];      /* [n_ops] */
    uint64_t *reorder[MPL_N_LAYOUTS]; /* [n_values] to that layout */
} mpl_layout_times;

/* Whether layouts of a graph can be chosen: no updates, no reorders yet. */
bool mpl_layouts_open(const mpl_graph *g);
/* Whether the operation can run with its images' channels last; with its images in `layout`. What
 * is in loops and branches stays plain. */
bool mpl_op_may_be_last(const mpl_graph *g, mpl_op op);
bool mpl_op_may_be(const mpl_graph *g, mpl_op op, mpl_layout layout);

/* Layouts of all operations with a small sum of their times and of the reorders between them: a
 * value that is read in another layout than its own is reordered once for each; inputs, weights and
 * outputs are plain. Beginning with all plain, each layout in turn is offered to all operations at
 * once, as long as one of them lowers the sum; which of them take it is a minimum cut. So *ns is
 * the least where no operation has the choice of more than two layouts, plain and one other, and
 * else no offer to several operations lowers it; no choice needs less than *bound_ns. laid[n_ops]:
 * only .layout is set. MPL_ELIMIT: the times sum to 2^53 ns and more. O(a few maximum flows of four
 * nodes an operation). */
mpl_status mpl_layouts_choose(mpl_ctx *ctx, const mpl_graph *g, const mpl_layout_times *times,
                              mpl_laid *laid, uint64_t *ns, uint64_t *bound_ns);
/* The sum for any layouts. UINT64_MAX: an operation cannot run so. O(size). */
uint64_t mpl_layouts_ns(const mpl_graph *g, const mpl_layout_times *times, const mpl_laid *laid);

/* Replaces *g by one computed so, with explicit reorders, as mpl_graph_channels_last does.
 * laid[n_ops]; MPL_EINVALID: an operation cannot run in its layout. */
mpl_status mpl_graph_lay(mpl_ctx *ctx, mpl_graph **g, const mpl_laid *laid);

/* The layout in which operation op, computed in `layout`, reads operand i. */
mpl_layout mpl_operand_layout(const mpl_graph *g, mpl_op op, uint32_t i, mpl_layout layout);
