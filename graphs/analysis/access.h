/* access.h -- which operations touch which buffer first and last. Private to graphs/analysis. */
#ifndef MPL_ACCESS_H
#define MPL_ACCESS_H

#include "graphs/problem.h"

/* The access graph of problem.h: events are the operations, edges the data dependences, and each of n buffers is touched by
 * those that make or read a value in it (value_buffer[n_values]) or have it as workspace (op_workspace[n_ops]); MPL_NONE
 * there means no buffer. A search per event of a buffer, within the ids that the buffer spans. */
mpl_status mpl_access_new(mpl_ctx *ctx, const mpl_graph *g, uint32_t n, const mpl_buffer *value_buffer,
                          const mpl_buffer *op_workspace, mpl_access **out);

#endif
