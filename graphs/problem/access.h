/* access.h -- first and last operations that touch each buffer. Private to graphs/. */
#pragma once

#include "graphs/graph.h"
#include "graphs/problem/problem.h"

/* Value v touches value_buffers[v] buffers from value_buffer[v] on, where it is made and read. An
 * operation also touches its workspace. MPL_NONE: no buffer. */
typedef struct mpl_touches {
    const mpl_buffer *value_buffer; /* [n_values] */
    const uint32_t *value_buffers;  /* [n_values] NULL: one each */
    const mpl_buffer *op_workspace; /* [n_ops] */
    const uint8_t *nothing;         /* [n_ops] 1: touches no buffer; NULL: none such */
    const uint32_t *op_stream;      /* [n_ops] < n_ops; NULL: no streams */
    const mpl_op *order;            /* [n_ops] of streams */
} mpl_touches;

/* The access graph of problem.h for n buffers. Events are the operations, edges the data
 * dependences; with streams also from each operation to the next on its stream, and events are
 * numbered by the order. Runs one search per event of a buffer, within the buffer's range of event
 * ids. */
mpl_status mpl_access_new(mpl_ctx *ctx, const mpl_graph *g, uint32_t n, const mpl_touches *touches,
                          mpl_access **out);
