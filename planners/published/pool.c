/* pool.c -- a pool of blocks that never grow: outputs take from it, dead inputs return to it.
 *
 * Idea     Liveness gives the last reader of each input; the input's memory serves later outputs.
 *          An in-place operation returns its input before it takes its output's memory, every other
 *          operation after.
 * Source   PaddlePaddle, "Memory Optimization" design (memory sharing policy); level=0|1: the
 *          transpiler of that time.
 * Differs  The document does not say which block is taken: here the smallest that is large enough,
 *          the last returned among equals. Its input of an in-place operation is any input that the
 *          output may overwrite here. An unread output returns after its step. Without shape ids,
 *          level=0 compares bytes.
 * Cost     O(n log n) time, 80 n bytes of scratch.
 * Limits   A block keeps its first size. level=0|1 never works in place and loses unread
 *          outputs. */
#include "planners/published/blocks.h"

typedef enum pool_level { LEVEL_SHAPE, LEVEL_BYTES, LEVEL_DOCUMENT } pool_level;

/* The document's rule for one output: inputs that it may overwrite are already in the pool. */
static void place_document(mpl_blocks *blocks, mpl_buffer x)
{
    uint32_t class = blocks->buffer_class[x],
             found = mpl_blocks_lowest(blocks, class, blocks->class_end[class]);
    uint64_t least = found != MPL_NONE ? blocks->class_bytes[found] : UINT64_MAX;
    mpl_buffer best = MPL_NONE, partner;

    for (uint32_t i = 0; (partner = mpl_blocks_partner(blocks, x, i)) != MPL_NONE; i++) {
        uint64_t bytes = mpl_blocks_bytes(blocks, blocks->block_of[partner]);

        if (bytes <= least) { /* it was returned last */
            least = bytes;
            best = partner;
        }
    }
    if (best != MPL_NONE)
        mpl_blocks_inherit(blocks, x, best);
    else if (found != MPL_NONE)
        mpl_blocks_take(blocks, x, found, false);
    else
        mpl_blocks_open(blocks, x);
}

/* The transpiler's rule: the block returned first among those that fit. */
static void place_code(mpl_blocks *blocks, mpl_buffer x, pool_level level)
{
    uint32_t class = blocks->buffer_class[x],
             end = level == LEVEL_SHAPE ? class + 1 : blocks->class_end[class];
    uint32_t found = mpl_blocks_oldest(blocks, class, end);

    if (found != MPL_NONE)
        mpl_blocks_take(blocks, x, found, true);
    else
        mpl_blocks_open(blocks, x);
}

static void rule(mpl_blocks *blocks, const void *params, uint32_t begin, uint32_t end)
{
    const pool_level *level = params;

    for (uint32_t i = begin; i < end; i++) {
        mpl_buffer x = blocks->by_birth[i];

        if (mpl_blocks_alone(blocks, x))
            mpl_blocks_open(blocks, x);
        else if (*level == LEVEL_DOCUMENT)
            place_document(blocks, x);
        else
            place_code(blocks, x, *level);
    }
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    static const mpl_block_group group[] = {MPL_GROUP_SHAPE, MPL_GROUP_TYPE, MPL_GROUP_POOL};
    mpl_status st = MPL_OK;
    int64_t number;
    pool_level level;
    mpl_blocks *blocks = NULL;

    MPL_TRY(mpl_run_param_int(run, "level", LEVEL_SHAPE, LEVEL_BYTES, LEVEL_DOCUMENT, &number));
    level = (pool_level)number;
    MPL_TRY(mpl_blocks_new(run, p, group[level], &blocks));
    mpl_blocks_walk(blocks, rule, &level, level != LEVEL_DOCUMENT);
    MPL_TRY(mpl_blocks_write(blocks, out));
out:
    mpl_blocks_free(run->ctx, blocks);
    return st;
}

const mpl_planner mpl_planner_pool = {
    .name = "pool",
    .about = "a pool of blocks of fixed size: outputs take, dead inputs return",
    .source = "paddle",
    .params = "level=0|1",
    .traits = MPL_BLOCKS | MPL_SERIAL_ONLY | MPL_USES_IN_PLACE,
    .plan = plan,
};
