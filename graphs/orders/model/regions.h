/* regions.h -- a model in which parts that can be ordered by themselves are ordered already. */
#pragma once

#include "graphs/orders/model/model.h"

typedef struct mpl_order_reduced {
    mpl_order_model *model; /* its operations are runs of operations of the original */
    uint32_t *begin, *item; /* [model->n + 1] into item: the operations of a run, in order */
} mpl_order_reduced;

/* Some best order of model, a forward model, is an order of the reduced model, at the same peak.
 * The model of a series-parallel graph becomes a chain. Regions of more than some 10,000 closed
 * sets stay as they are. Adds its work to *ticks. O(size log size) for each level of nested
 * regions. */
mpl_status mpl_order_reduce(mpl_ctx *ctx, const mpl_order_model *model, uint64_t *ticks,
                            mpl_order_reduced *out);
void mpl_order_reduced_fini(mpl_ctx *ctx, mpl_order_reduced *r);
