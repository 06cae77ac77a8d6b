/* liveness.h -- live ranges: data flow over a control-flow graph, and the closed form for one
 * order. Private to graphs/, its tests, and what plans traces (runtime/tape). */
#pragma once

#include "graphs/problem/alias.h"

/* Marks the operations that produce the inputs of `op`. */
static inline void mpl_mark_makers(const mpl_graph *g, mpl_op op, uint8_t *mark)
{
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        if (g->op_in[i] != MPL_NONE && g->value_op[g->op_in[i]] != MPL_NONE)
            mark[g->value_op[g->op_in[i]]] = 1;
}

/* ---- data flow over a control-flow graph of operations ---- */

/* Nodes with successors, and the variables that each node reads and writes, as lists of lists. */
typedef struct mpl_flow {
    uint32_t n_nodes, n_vars;
    const uint32_t *succ_begin, *succ_item; /* [n_nodes + 1] into succ_item; the others likewise */
    const uint32_t *use_begin, *use_item;
    const uint32_t *def_begin, *def_item;
} mpl_flow;

/* 64-bit words of one set of variables. */
uint32_t mpl_flow_words(const mpl_flow *flow);

/* Least solution of live_in(n) = use(n) + (live_out(n) - def(n)), live_out(n) = union of live_in
 * over the successors, by a worklist (Paddle, "Memory Optimization" design; Appel, Modern Compiler
 * Implementation, 10.1). live_in and live_out have n_nodes rows of mpl_flow_words words. O(rounds *
 * edges * words). */
mpl_status mpl_flow_live(mpl_ctx *ctx, const mpl_flow *flow, uint64_t *live_in, uint64_t *live_out);

/* ---- one order ---- */

/* Writes root[v], the value in whose storage v lies: the input of a chain of views, the weight or
 * state that v updates, else v itself. O(size). */
void mpl_value_roots(const mpl_graph *g, mpl_value *root);

/* Whether output 0 of `op`, which must exist, may overwrite its input `i`, judged by operator,
 * types, dims and other operands. The caller checks that the input's last use is at `op`. offset
 * (NULL: all 0) gives values' offsets in their roots; the input's must be 0. O(inputs). */
bool mpl_in_place_operand(const mpl_graph *g, const mpl_value *root, const uint64_t *offset,
                          mpl_op op, uint32_t i);

/* The same for an input anywhere in its root's storage that fills a buffer of its own. Other values
 * there matter only where they overlap it. */
bool mpl_in_place_part(const mpl_graph *g, const mpl_alias *alias, mpl_op op, uint32_t i);

/* Live ranges of roots over an order. first is the first step that makes the root or a part of it
 * (0 for inputs and weights). last is the last step that reads it or a part (first if unread).
 * Other values have MPL_NONE. */
typedef struct mpl_ranges {
    mpl_alias alias;   /* root and offset of each value */
    uint32_t *step_of; /* [n_ops] */
    uint32_t *first;   /* [n_values] [step] */
    uint32_t *last;    /* [n_values] [step] */
} mpl_ranges;

/* MPL_EINPUT when `order` is no permutation of the operations that respects the graph; the message
 * names the operation. O(size). */
mpl_status mpl_ranges_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                          const mpl_alias_options *options, mpl_ranges **out);
void mpl_ranges_free(mpl_ctx *ctx, mpl_ranges *ranges);
