/* normal.h -- softmax along the last dim, and norms and lengths of contiguous rows or groups of
 * channels, of f32. oneDNN 2 lacks most, and in softmax it loses NaNs and takes longer. Private to
 * runtime/. */
#ifndef MPL_NORMAL_H
#define MPL_NORMAL_H

#include "graphs/graph.h"

/* Whether mpl_normal_run computes the operation: softmax, layer_norm, rms_norm, instance_norm or
 * group_norm whose scale and bias have an element for each of a row, or for each channel; reduce_l2
 * of the last dims. *how (may be NULL) names it. Within rounding of the plain loops. */
bool mpl_normal_fits(const mpl_graph *g, mpl_op op, const char **how);
/* Allocates nothing. */
void mpl_normal_run(const mpl_op_call *call, uint32_t n_threads);

#endif
