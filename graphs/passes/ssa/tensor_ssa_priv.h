/* tensor_ssa_priv.h -- the list of nodes that rules of tensor_ssa rewrite in place.
 *
 * Values are made once and never change; a value found to equal another forwards to it. The order
 * of nodes is always executable: a rule only lets a node read what is above it. */
#pragma once

#include "graphs/build/views.h"
#include "graphs/ops/move/fused.h"
#include "graphs/ops/move/move_strided_priv.h"
#include "graphs/passes/passes.h"

typedef struct mpl_ssa_value {
    uint32_t node;    /* its maker; MPL_NONE: an input or weight */
    uint32_t forward; /* the value that it equals; MPL_NONE: none */
    mpl_value source; /* of the program; gives the name */
    mpl_type type;
    mpl_shape shape;
    uint32_t n_uses; /* reads by live nodes and outputs; mpl_ssa_count */
} mpl_ssa_value;

typedef struct mpl_ssa_node {
    mpl_op_kind kind;
    mpl_op from;                   /* operation of the program that gives attributes; MPL_NONE */
    uint32_t in, n_in, out, n_out; /* ranges of items: values or MPL_NONE */
    mpl_strided box;               /* access and assign: box of input 0's elements */
    mpl_fused *fused;              /* step 4: the fused operation on the base; NULL: not fused */
    bool live;
} mpl_ssa_node;

typedef struct mpl_ssa {
    mpl_ctx *ctx;
    const mpl_graph *g; /* the program */
    mpl_views *views;
    uint32_t n_nodes, n_values, n_items;
    size_t node_cap, value_cap, item_cap;
    mpl_ssa_node *node;
    mpl_ssa_value *value;
    uint32_t *item;
    uint32_t *output; /* [g->n_outputs] values */
    bool dropping;    /* unread nodes are removed for good: rules have relied on it */
    mpl_ssa_facts *facts;
} mpl_ssa;

/* mpl_tensor_ssa of a program without blocks. */
mpl_status mpl_tensor_ssa_straight(mpl_ctx *ctx, const mpl_graph *program, mpl_ssa_level level,
                                   const mpl_ssa_watch *watch, mpl_ssa_facts *facts,
                                   mpl_graph **out);

/* Resolves v through its forwards. */
uint32_t mpl_ssa_find(const mpl_ssa *ssa, uint32_t v);
/* Input i of a node, resolved; MPL_NONE: left out. */
uint32_t mpl_ssa_in(const mpl_ssa *ssa, const mpl_ssa_node *node, uint32_t i);
uint32_t mpl_ssa_out(const mpl_ssa *ssa, const mpl_ssa_node *node);
mpl_status mpl_ssa_set_in(mpl_ssa *ssa, uint32_t node, uint32_t n, const uint32_t *in);
/* The live node of `kind` that makes v; NULL: none. */
mpl_ssa_node *mpl_ssa_maker(const mpl_ssa *ssa, uint32_t v, mpl_op_kind kind);
/* Marks as live what outputs need (`all`: everything), and counts uses. */
void mpl_ssa_count(mpl_ssa *ssa, bool all);
/* Whether the boxes certainly share no element; counted in the facts. */
bool mpl_ssa_apart(mpl_ssa *ssa, const mpl_strided *a, const mpl_strided *b);
/* Finds the value that node `at` can read for the box of `v`: v itself or, if v may be overwritten
 * above `at`, its last version there that still has the box. False: none, so the box must be copied
 * before the write. */
bool mpl_ssa_version(mpl_ssa *ssa, uint32_t v, const mpl_strided *box, uint32_t at,
                     uint32_t *version);

/* Step 2: removes accesses and assigns that are not needed. Step 3, with `merge`: merges chains of
 * them. */
mpl_status mpl_ssa_reduce(mpl_ssa *ssa, bool merge);
/* Step 4: fuses element-wise chains; `across`: also with the boxes that they read and write. */
mpl_status mpl_ssa_fuse(mpl_ssa *ssa, bool across);
