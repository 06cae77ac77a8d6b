/* dominators.h -- which operations every way to another one passes. Private to the model. */
#pragma once

#include "graphs/orders/model/model.h"

/* A tree over operations; its root, n, stands for the start (or the end) of all of them. The parent
 * of v is the last operation that every way from the root to v passes. */
typedef struct mpl_dominators {
    uint32_t n;
    uint32_t *parent; /* [n + 1]; of the root: itself */
    uint32_t *depth, *jump;
    uint32_t *size;  /* [n + 1] vertices of the subtree */
    uint32_t *place; /* [n + 1] position in `at`; a subtree is place .. place + size */
    uint32_t *at;    /* [n + 1] vertices by place */
} mpl_dominators;

/* From the start, over model->before; or from the end, over model->after. O(size log n). */
mpl_status mpl_dominators_new(mpl_ctx *ctx, const mpl_order_model *model, bool from_end,
                              mpl_dominators *dominators);
void mpl_dominators_fini(mpl_ctx *ctx, mpl_dominators *d);

/* Whether u is v or an ancestor of it. */
static inline bool mpl_dominates(const mpl_dominators *dominators, uint32_t u, uint32_t v)
{
    return dominators->place[v] - dominators->place[u] < dominators->size[u];
}
