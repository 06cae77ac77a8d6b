/* passes.h -- what makes a graph from a graph, and folding, which readers use while they build
 * one. */
#ifndef MPL_PASSES_H
#define MPL_PASSES_H

#include "graphs/graph.h"

/* mpl_graph_add_op, but that an operation of constants alone is computed at once, and its results
 * become constants. A constant that is one element for all stays so through element-wise operations
 * and those that only move elements. Kept as an operation: what has MPL_NO_FOLD, needs more than
 * 256 MiB for operands and results, or takes too long (products of large matrices). MPL_EINPUT as
 * mpl_graph_add_op, or where the loops refuse an index; the graph may hold a part of the results
 * then. */
mpl_status mpl_graph_add_folded(mpl_ctx *ctx, mpl_graph *g, mpl_op_kind kind, const char *name,
                                uint32_t n_in, const mpl_value *in, uint32_t n_attr,
                                const mpl_attr *attr, uint32_t n_out, const char *const *out_name,
                                mpl_value *out);

/* Replaces *g (outputs named, not finished) by a finished graph without the operations and
 * constants that no output depends on. Inputs stay, bound ones too. Order, names and constants'
 * data are kept; the data moves over, it is not copied. *g is left whole on failure, but for
 * constants that moved: free it. O(size). */
mpl_status mpl_graph_prune(mpl_ctx *ctx, mpl_graph **g);

/* Replaces *g by one that computes its convolutions, and what keeps layouts between them
 * (graphs/ir/layout.h), with their channels last; values that are needed in both layouts are
 * reordered once. Names of inputs and outputs stay, and both are plain. *g stays as it is where it
 * has no convolution of 2 spatial dims in f32, or control flow, updates or reorders. On failure *g
 * is fit for mpl_graph_free alone. O(size). */
mpl_status mpl_graph_channels_last(mpl_ctx *ctx, mpl_graph **g);

/* How far tensor_ssa goes. */
typedef enum mpl_ssa_level {
    MPL_SSA_COPY,  /* each read of a view copies it, each write goes to its root */
    MPL_SSA_VIEWS, /* a view is copied once until its root is written */
    MPL_SSA_FULL,
    MPL_SSA_BOXES, /* the same without fusion: every operation has a gradient */
    MPL_N_SSA_LEVELS
} mpl_ssa_level;
extern const char *const mpl_ssa_level_name[MPL_N_SSA_LEVELS]; /* "copy", "views", "full", "boxes"
                                                                */

enum { MPL_SSA_STEPS = 4 };
extern const char *const mpl_ssa_step_name[MPL_SSA_STEPS]; /* "rewritten", "removed", "merged",
                                                              "fused" */

/* What the pass did. Boxes are compared while removing, merging and fusing. */
typedef struct mpl_ssa_facts {
    uint32_t n_views, n_writes; /* of the program */
    uint32_t n_access[MPL_SSA_STEPS], n_assign[MPL_SSA_STEPS],
        n_fused[MPL_SSA_STEPS];            /* behind each step */
    uint32_t n_apart, n_meet, n_undecided; /* pairs of boxes: the first two exactly */
} mpl_ssa_facts;

/* Called with the graph behind each step; borrowed. */
typedef struct mpl_ssa_watch {
    mpl_status (*step)(void *arg, uint32_t step, const mpl_graph *g);
    void *arg;
} mpl_ssa_watch;

/* TensorSSA: a program as a graph in SSA that gives the same outputs (after the proposal of that
 * name). 1: views become `access` of their parent; a write makes a new value, `assign`ed into every
 * ancestor up to the root, and every other view of the tree is accessed anew. 2: what nobody reads
 * goes, and a view apart from the box that was written stays what it was. 3: accesses of accesses,
 * and assigns into what is assigned, become one of the root. 4: element-wise operations are fused
 * with those that feed them and with the boxes that they read and write. Level MPL_SSA_COPY has
 * step 1 only, MPL_SSA_VIEWS 1 and 4, both in the forms said there; MPL_SSA_BOXES 1 to 3. facts and
 * watch may be NULL. At most O(nodes^3). */
mpl_status mpl_tensor_ssa(mpl_ctx *ctx, const mpl_graph *program, mpl_ssa_level level,
                          const mpl_ssa_watch *watch, mpl_ssa_facts *facts, mpl_graph **out);

#endif
