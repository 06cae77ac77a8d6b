/* order_random.c -- random topological orders, to test plans under `parallel`. See order.h. */
#include "graphs/orders/order.h"
#include "graphs/orders/order_blocks.h"
#include "graphs/core/rng.h"

/* `how` is the random generator, whose state carries over from block to block. */
static mpl_status make_random(mpl_ctx *ctx, const mpl_graph *g, uint32_t block, void *how,
                              mpl_op *order)
{
    mpl_status st = MPL_OK;
    mpl_rng *rng = how;
    uint32_t *waiting = NULL, n_ready = 0;
    mpl_op *ready = NULL;

    (void)block;
    MPL_TRY(mpl_new_each(ctx, g->n_ops, waiting, ready));
    mpl_count_waits(g, NULL, waiting);
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (waiting[op] == 0)
            ready[n_ready++] = op;
    for (uint32_t step = 0; step < g->n_ops; step++) {
        uint32_t pick = (uint32_t)mpl_rng_below(rng, n_ready);
        mpl_op op = ready[pick];

        order[step] = op;
        ready[pick] = ready[--n_ready];
        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
            mpl_value v = g->op_out[i];

            for (uint32_t k = v != MPL_NONE ? g->value_use_begin[v] : 0;
                 v != MPL_NONE && k < g->value_use_begin[v + 1]; k++)
                if (--waiting[g->value_use[k]] == 0)
                    ready[n_ready++] = g->value_use[k];
        }
    }
out:
    mpl_free_each(ctx, waiting, ready);
    return st;
}

mpl_status mpl_order_random(mpl_ctx *ctx, const mpl_graph *g, uint64_t seed, mpl_op *order)
{
    mpl_rng rng = mpl_rng_of(seed);

    return mpl_order_by_blocks(ctx, g, false, make_random, &rng, order);
}

mpl_status mpl_order_shuffle(mpl_ctx *ctx, const mpl_graph *g, uint64_t seed, mpl_op *order)
{
    mpl_status st = MPL_OK;
    mpl_op *drawn = NULL, *old = NULL;
    uint32_t *begin = NULL, n = 0;

    MPL_TRY(mpl_new_each(ctx, g->n_ops, drawn, old, begin));
    MPL_TRY(mpl_order_random(ctx, g, seed, drawn));
    for (uint32_t i = 0, from = 0; i < g->n_ops; i++) {
        old[i] = order[i];
        if (g->op_block[order[i]] == 0)
            begin[order[i]] = from, from = i + 1;
    }
    for (uint32_t i = 0; i < g->n_ops; i++)
        for (uint32_t at = begin[drawn[i]]; g->op_block[drawn[i]] == 0; at++) {
            order[n++] = old[at];
            if (old[at] == drawn[i])
                break;
        }
out:
    mpl_free_each(ctx, drawn, old, begin);
    return st;
}
