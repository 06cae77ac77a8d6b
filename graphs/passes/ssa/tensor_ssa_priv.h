/* tensor_ssa_priv.h -- what the files of the pass tensor_ssa share: a list of nodes that rules
 * rewrite in place.
 *
 * Values are made once and never change; a value that turned out to be another one forwards to it.
 * Nodes stand in an order in which they can run; a rule only ever makes a node read what stands
 * above it. */
#ifndef MPL_TENSOR_SSA_PRIV_H
#define MPL_TENSOR_SSA_PRIV_H

#include "graphs/build/views.h"
#include "graphs/ops/move/fused.h"
#include "graphs/ops/move/move_strided_priv.h"
#include "graphs/passes/passes.h"

typedef struct mpl_ssa_value {
    uint32_t node;    /* that makes it; MPL_NONE: an input or weight */
    uint32_t forward; /* the value that it is; MPL_NONE: itself */
    mpl_value source; /* of the program: whose name it has */
    mpl_type type;
    mpl_shape shape;
    uint32_t n_uses; /* by live nodes and outputs; mpl_ssa_count */
} mpl_ssa_value;

typedef struct mpl_ssa_node {
    mpl_op_kind kind;
    mpl_op from;                   /* the program's operation with its attributes; MPL_NONE: none */
    uint32_t in, n_in, out, n_out; /* ranges of items: values or MPL_NONE */
    mpl_strided box;               /* of access and assign: of input 0's elements */
    mpl_fused *fused;              /* step 4: as a fused operation on the base; NULL: it is none */
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
    bool dropping;    /* what nobody reads is gone for good: rules have relied on it */
    mpl_ssa_facts *facts;
} mpl_ssa;

/* The value that v is. */
uint32_t mpl_ssa_find(const mpl_ssa *s, uint32_t v);
/* Input i of a node, resolved; MPL_NONE: left out. */
uint32_t mpl_ssa_in(const mpl_ssa *s, const mpl_ssa_node *node, uint32_t i);
/* Its only output. */
uint32_t mpl_ssa_out(const mpl_ssa *s, const mpl_ssa_node *node);
/* Replaces the inputs of a node. */
mpl_status mpl_ssa_set_in(mpl_ssa *s, uint32_t node, uint32_t n, const uint32_t *in);
/* The live node of `kind` that makes v; NULL: another makes it. */
mpl_ssa_node *mpl_ssa_maker(const mpl_ssa *s, uint32_t v, mpl_op_kind kind);
/* Marks what outputs need as live (with `all`, everything), and counts uses. */
void mpl_ssa_count(mpl_ssa *s, bool all);
/* Whether the boxes share no element, for sure; noted in the facts. */
bool mpl_ssa_apart(mpl_ssa *s, const mpl_strided *a, const mpl_strided *b);
/* What node `at` should read for the box of `v`: v, or where v may be overwritten above `at`, the
 * last version of it there that still has the box. False: there is none, so the box must be copied
 * before. */
bool mpl_ssa_version(mpl_ssa *s, uint32_t v, const mpl_strided *box, uint32_t at,
                     uint32_t *version);

/* Step 2: accesses and assigns that nobody needs. Step 3 with `merge`: chains of them as one. */
mpl_status mpl_ssa_reduce(mpl_ssa *s, bool merge);
/* Step 4: element-wise chains as one node; `across`: with the boxes they read and write. */
mpl_status mpl_ssa_fuse(mpl_ssa *s, bool across);

#endif
