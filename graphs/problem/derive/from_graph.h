/* from_graph.h -- makes the problem of a graph and an order. */
#pragma once

#include "graphs/problem/places.h"

/* Operands of a concat are copied into its result, or made inside it. Inside, they are parts with
 * live ranges of their own (`inside`) where their bytes are consecutive; else they are boxes, and
 * the whole result is live from the first operand on. */
typedef enum mpl_concat {
    MPL_CONCAT_AUTO,  /* share if the bound stays that of copying all (see concats.c) */
    MPL_CONCAT_SHARE, /* share all that can be shared */
    MPL_CONCAT_COPY,
} mpl_concat;

typedef struct mpl_problem_options {
    bool in_place; /* offer in-place pairs */
    bool views;    /* views, contiguous pieces of splits and slices take no memory; else copy */
    mpl_concat concat;
    const uint8_t *concat_shared; /* [n_ops] for MPL_CONCAT_AUTO: 1: share, 2: as boxes (alias.h);
                                     NULL: use bounds */
    const uint8_t *split_copied;  /* [n_ops] 1: a split or slice copies its pieces; NULL: none does
                                   */
    bool boxes; /* operands of concats may be strided boxes of the result; false: runs only */
    bool pin_weights, pin_inputs, pin_outputs;
    const uint8_t *held; /* [n_values] 1: a root that the caller places; pinned. NULL: none */
    unsigned own_pools;  /* bit k: plan values of mpl_part k, even pinned ones, in their own pool */
    uint32_t align;      /* of every buffer, power of two [byte] */
    uint64_t capacity;   /* of the value pool, or MPL_NO_CAPACITY [byte] */
    bool parallel;       /* safe in every execution: `before` decides, lifetimes are 0 */
    /* [n_ops] < n_ops, of a unit one stream (mpl_streams). Parallel: only executions in which each
     * stream keeps the order. NULL: a stream for each unit. */
    const uint32_t *op_stream;
    bool plan_workspaces; /* put workspaces into the value pool instead of a pool of their own */
    bool loop_copy;       /* copy every carried value each round: the baseline */
    const uint64_t *op_workspace_bytes; /* [n_ops] [byte] NULL: no workspaces */
} mpl_problem_options;

/* In-place pairs and views on; weights, inputs and outputs pinned; 64-byte alignment; no
 * capacity. */
mpl_problem_options mpl_problem_options_default(void);

/* Computes liveness over the order, then makes one buffer for each value that needs memory.
 * order[n_ops] must be a permutation that respects the graph, else MPL_EINPUT. An unused value
 * lives for one step. Pool 0 is "value"; then come the pools of options->own_pools that have
 * values, then "workspace" if workspaces have a pool of their own. Storage in a pool of its own is
 * not shared across pools: no operand outside the pool is overwritten. Zero-byte values get no
 * buffer. With options->parallel, the relation comes from the graph; the order only numbers the
 * steps of in-place pairs, and is that of streams. O(size log size); parallel O(ops * edges / 64 +
 * buffers^2) and buffers^2 / 8 bytes. */
mpl_status mpl_problem_from_graph(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                                  const mpl_problem_options *options, mpl_problem **problem,
                                  mpl_value_map **map);

/* As mpl_problem_from_graph, with the operands of the concats in `shared` inside their results. All
 * of these must be sharable. NULL: none. */
mpl_status mpl_problem_build(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                             const mpl_problem_options *options, const uint8_t *shared,
                             mpl_problem **problem, mpl_value_map **map);
