/* model_blocks.h -- the memory models of the blocks of a graph with control flow. Private to
 * graphs/ and its tests.
 *
 * A value that is alive before and after a loop or case is alive while it runs, whatever the order
 * of its blocks. So each block is ordered by itself, and its owner counts as one operation that
 * needs at least as many bytes as the block. */
#pragma once

#include "graphs/orders/model/model.h"
#include "graphs/problem/alias.h"
#include "graphs/problem/control/storage.h"

typedef struct mpl_block_models {
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_problem_options options;
    mpl_alias alias;
    mpl_storage_facts facts;
    /* [n_blocks] No order of the block needs less at its highest step, not counting what is alive
     * across it; set by the caller, for nested blocks first. Of a branch it counts the values of
     * its owner's block that the branch reads, as long as it does. [byte] */
    uint64_t *need;
} mpl_block_models;

/* MPL_EINPUT: values pass 2^61 bytes. options NULL: the defaults. */
mpl_status mpl_block_models_new(mpl_ctx *ctx, const mpl_graph *g,
                                const mpl_problem_options *options, mpl_block_models **out);
void mpl_block_models_free(mpl_block_models *models);

/* The model of the direct operations of block b, in the order of their ids. In no order of all
 * blocks, under no storage that control flow derives for it and no choice of pairs, are fewer bytes
 * alive at some step than the model's least peak: a value counts only while its contents are
 * needed, once for all names that it may have, and only where its place is certainly no other's.
 * Needs models->need of the blocks within. O(size * depth). */
mpl_status mpl_block_model_new(const mpl_block_models *models, uint32_t b, mpl_order_model **out);
/* Bytes alive as the block begins, at least. */
uint64_t mpl_order_model_start(const mpl_order_model *model);
