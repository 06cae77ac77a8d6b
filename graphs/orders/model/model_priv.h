/* model_priv.h -- how models are built: from a graph (model_storage.c), from models (model.c). */
#pragma once

#include "graphs/orders/model/model.h"

typedef struct mpl_order_pair {
    uint32_t of, item;
} mpl_order_pair;

typedef struct mpl_order_pairs {
    size_t n, cap;
    mpl_order_pair *at;
} mpl_order_pairs;

/* Pairs from which a model's lists are built, in any order, some perhaps twice. */
typedef struct mpl_order_arcs {
    mpl_order_pairs before, makers, users, ways, under;
} mpl_order_arcs;

mpl_status mpl_order_add(mpl_ctx *ctx, mpl_order_pairs *list, uint32_t of, uint32_t item);
void mpl_order_arcs_fini(mpl_ctx *ctx, mpl_order_arcs *arcs);

/* A model without lists, with room for n operations and n_buffers buffers. */
mpl_status mpl_order_model_alloc(mpl_ctx *ctx, uint32_t n, uint32_t n_buffers,
                                 mpl_order_model **out);
/* Builds the lists of a model with its buffers; derives after, makes and reads. */
mpl_status mpl_order_model_finish(mpl_ctx *ctx, mpl_order_model *model, mpl_order_arcs *arcs);
