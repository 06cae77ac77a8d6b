/* passes.h -- passes from graph to graph, and constant folding for readers while they build one. */
#pragma once

#include "graphs/graph.h"

/* As mpl_graph_add_op, but computes an operation of constants at once; its results become
 * constants. A constant with one element for all keeps that form through element-wise operations
 * and those that only move elements. Not folded: operations with MPL_NO_FOLD, with more than 256
 * MiB of operands and results, or with too much work (products of large matrices). MPL_EINPUT as
 * mpl_graph_add_op, or where the reference loops reject an index; the graph may then hold a part of
 * the results. */
mpl_status mpl_graph_add_folded(mpl_ctx *ctx, mpl_graph *g, mpl_op_kind kind, const char *name,
                                uint32_t n_in, const mpl_value *in, uint32_t n_attr,
                                const mpl_attr *attr, uint32_t n_out, const char *const *out_name,
                                mpl_value *out);

/* Replaces *g (outputs named, not finished) by a finished graph without operations and constants
 * that no output depends on. Inputs stay, bound ones too. Order and names stay; constants' data
 * moves. On failure *g has lost the constants that moved: free it. O(size). */
mpl_status mpl_graph_prune(mpl_ctx *ctx, mpl_graph **g);

/* Replaces *g by one that computes convolutions, and operations that keep layouts between them
 * (graphs/ir/layout.h), with channels last. Values needed in both layouts are reordered once.
 * Inputs and outputs keep their names and the plain layout. *g is unchanged if it has no f32
 * convolution of 2 spatial dims, or has control flow, updates or reorders. On failure only
 * mpl_graph_free may be called on *g. O(size). */
mpl_status mpl_graph_channels_last(mpl_ctx *ctx, mpl_graph **g);

/* Makes *out of g, named `name`: all f32 values have this floating type, constants are rounded, and
 * a cast to f32 becomes one to it. MPL_EINPUT: an operator does not take the type. O(size). */
mpl_status mpl_graph_retype(mpl_ctx *ctx, const mpl_graph *g, const char *name, mpl_type type,
                            mpl_graph **out);

/* Makes *out of g, named `name`: activations and weights are int8, with fixed scales; an operator
 * without a quantised form computes in f32 between a dequantize and a quantize. MPL_EINPUT: loops,
 * branches, a program. O(size). */
mpl_status mpl_graph_int8(mpl_ctx *ctx, const mpl_graph *g, const char *name, mpl_graph **out);

/* How much of tensor_ssa to do. */
typedef enum mpl_ssa_level {
    MPL_SSA_COPY,  /* each read of a view copies it, each write goes to its root */
    MPL_SSA_VIEWS, /* a view is copied once until its root is written */
    MPL_SSA_FULL,
    MPL_SSA_BOXES, /* as FULL without fusion: every operation has a gradient */
    MPL_N_SSA_LEVELS
} mpl_ssa_level;
extern const char *const mpl_ssa_level_name[MPL_N_SSA_LEVELS]; /* "copy", .. */

enum { MPL_SSA_STEPS = 4 };
extern const char *const mpl_ssa_step_name[MPL_SSA_STEPS]; /* "rewritten", .. */

/* Facts of a run. Boxes are compared while removing, merging and fusing. */
typedef struct mpl_ssa_facts {
    uint32_t n_views, n_writes; /* of the program */
    uint32_t n_access[MPL_SSA_STEPS], n_assign[MPL_SSA_STEPS], n_fused[MPL_SSA_STEPS]; /* by step */
    uint32_t n_apart, n_meet, n_undecided; /* pairs of boxes; the first two are exact */
} mpl_ssa_facts;

/* Called with the graph after each step; borrows it. */
typedef struct mpl_ssa_watch {
    mpl_status (*step)(void *arg, uint32_t step, const mpl_graph *g);
    void *arg;
} mpl_ssa_watch;

/* The blocks of a program, if it has any, are converted one by one; what a block writes outside of
 * itself it returns, and a loop carries (tensor_ssa_blocks.c).
 * TensorSSA: turns a program into a graph in SSA with the same outputs (after the proposal of that
 * name). Step 1: views become `access` of their parent. A write makes a new value, `assign`ed into
 * every ancestor up to the root, and every other view of the tree is accessed anew. Step 2: removes
 * unread nodes; a view that does not overlap the written box keeps its value. Step 3: merges
 * accesses of accesses, and assigns into assigned values, into one of the root. Step 4: fuses
 * element-wise operations with their producers and with the boxes that they read and write.
 * MPL_SSA_COPY does step 1, MPL_SSA_VIEWS steps 1 and 4, both in the forms said above;
 * MPL_SSA_BOXES steps 1 to 3. facts and watch may be NULL. At most O(nodes^3). */
mpl_status mpl_tensor_ssa(mpl_ctx *ctx, const mpl_graph *program, mpl_ssa_level level,
                          const mpl_ssa_watch *watch, mpl_ssa_facts *facts, mpl_graph **out);
