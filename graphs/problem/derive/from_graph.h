/* from_graph.h -- the problem of a graph and an order. */
#ifndef MPL_FROM_GRAPH_H
#define MPL_FROM_GRAPH_H

#include "graphs/problem/places.h"

/* Operands of a concat: copied into its result, or made inside it: where their bytes follow one
 * another there, as parts that come and go (`inside`); else as boxes of its elements, and the whole
 * is there from the first operand on. */
typedef enum mpl_concat {
    MPL_CONCAT_AUTO,  /* those made inside that do not raise the bound (peak live bytes, or the
                       * heaviest antichain) above that of copying  all; of a few, the choice of the
                       * lowest bound, then of the fewest bytes copied, all of them looked at */
    MPL_CONCAT_SHARE, /* all that can be */
    MPL_CONCAT_COPY,
} mpl_concat;

typedef struct mpl_problem_options {
    bool in_place; /* offer in-place pairs */
    bool views;    /* a view, and a piece of a split or slice that is one run of bytes, takes no
                    * memory; false: each is copied,    operands of concats too */
    mpl_concat concat;
    const uint8_t *concat_shared; /* [n_ops] with MPL_CONCAT_AUTO: 1 what shares, if it can: decided
                                     before; NULL: by bounds */
    bool boxes; /* operands of concats may be boxes of the result, strided; false: runs of its bytes
                   alone */
    bool pin_weights, pin_inputs, pin_outputs;
    unsigned own_pools; /* bit k: values that are mpl_part k are planned, pinned or not, in a pool
                           of their own */
    uint32_t align;     /* of every buffer. [byte] power of two */
    uint64_t capacity;  /* of the value pool, or MPL_NO_CAPACITY */
    bool parallel; /* safe in every execution of the graph: `before` decides, lifetimes are 0 */
    bool plan_workspaces; /* workspaces join the value pool instead of having their own */
    bool loop_copy;       /* every carried value is copied from round to round: the baseline */
    const uint64_t *op_workspace_bytes; /* [n_ops] or NULL: none */
} mpl_problem_options;

/* The defaults: in-place and views on, weights, inputs and outputs pinned, 64-byte alignment, no
 * capacity. */
mpl_problem_options mpl_problem_options_default(void);

/* Liveness as data flow over the order, then one buffer for each value that needs memory.
 * order[n_ops] is a permutation that respects the graph (MPL_EINPUT if it does not). A value that
 * nobody uses lives for its one step. Pool 0 is "value"; then come options->own_pools by their
 * names, those that have values; the last one, if operations have workspaces of their own pool, is
 * "workspace". What lies in a pool of its own shares no storage with others: no operand outside is
 * overwritten. Zero-byte values get no buffer. With options->parallel the order only numbers the
 * steps of in-place pairs: the relation comes from the graph. O(size log size); parallel O(ops *
 * edges / 64 + buffers^2), buffers^2 / 8 bytes. */
mpl_status mpl_problem_from_graph(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                                  const mpl_problem_options *options, mpl_problem **problem,
                                  mpl_value_map **map);

/* As mpl_problem_from_graph, with the operands of the concats `shared` (all of which can share;
 * NULL: of none) inside their results. */
mpl_status mpl_problem_build(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                             const mpl_problem_options *options, const uint8_t *shared,
                             mpl_problem **problem, mpl_value_map **map);

#endif
