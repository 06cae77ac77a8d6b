/* valleys.h -- the best way through all sets of operations of a small part of a model. Private to
 * the model. */
#pragma once

#include "graphs/orders/model/model.h"

/* An operation that leads from one closed set to another. */
typedef struct mpl_move {
    uint32_t from, to, op;
    uint64_t cost;
} mpl_move;

/* Closed sets, each after those that it contains: the first is empty, the last has everything. */
typedef struct mpl_sets {
    uint32_t n;
    uint64_t *live; /* [n] */
    size_t n_moves, move_cap, live_cap;
    mpl_move *moves; /* by from */
} mpl_sets;

/* All closed sets of model; *whole false: they are more than `most`. Live bytes and costs leave out
 * model->base. Adds its work to *ticks. */
mpl_status mpl_sets_of(mpl_ctx *ctx, const mpl_order_model *model, uint32_t most, uint64_t *ticks,
                       mpl_sets *sets, bool *whole);
/* The sets along the order 0, 1, .. of model. */
mpl_status mpl_sets_along(mpl_ctx *ctx, const mpl_order_model *model, mpl_sets *sets);
void mpl_sets_fini(mpl_ctx *ctx, mpl_sets *sets);

/* Operations run in one go, from one valley of live bytes to the next. */
typedef struct mpl_leg {
    uint64_t hill, level; /* the highest cost on the way; live bytes after it */
    uint32_t begin, n;    /* operations, in an array beside */
} mpl_leg;

/* Writes legs[n_ops] that lead through valleys from the first set to the last, and their operations
 * to ops[n_ops]; returns the number of legs. *exact: whatever else goes on beside these operations,
 * without regard to them, some order of least peak runs these legs, each in one go. */
mpl_status mpl_valleys(mpl_ctx *ctx, const mpl_sets *sets, uint32_t n_ops, mpl_leg *legs,
                       uint32_t *ops, uint32_t *n_legs, bool *exact);
