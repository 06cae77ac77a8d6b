/* access.h -- which operations touch which buffer first and last. Private to graphs/. */
#ifndef MPL_ACCESS_H
#define MPL_ACCESS_H

#include "graphs/graph.h"
#include "graphs/problem/problem.h"

/* Who touches what: those that make or read a value in buffers value_buffer[v] to value_buffer[v] +
 * value_buffers[v] - 1, and those that have a buffer as workspace; MPL_NONE means no buffer. */
typedef struct mpl_touches {
    const mpl_buffer *value_buffer; /* [n_values] */
    const uint32_t *value_buffers;  /* [n_values] NULL: one each */
    const mpl_buffer *op_workspace; /* [n_ops] */
    const uint8_t *nothing; /* [n_ops] 1: it touches nothing; NULL: all touch what they name */
} mpl_touches;

/* The access graph of problem.h: events are the operations, edges the data dependences, each of n
 * buffers is touched. A search per event of a buffer, within the ids that the buffer spans. */
mpl_status mpl_access_new(mpl_ctx *ctx, const mpl_graph *g, uint32_t n, const mpl_touches *touches,
                          mpl_access **out);

#endif
