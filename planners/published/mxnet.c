/* mxnet.c -- blocks within a match range: the best fit up to R times too large, else the largest
 * down to R times too small.
 *
 * Idea     Reuse a block of about the right size and enlarge it if needed; leave a far too large
 *          one to others.
 * Source   MXNet / NNVM, PlanMemory pass ("Optimizing Memory Consumption in Deep Learning"
 *          describes it).
 * Differs  Equal element count and type mean equal bytes and equal type ids here (bytes alone where
 *          types are unknown). Shapes count in bytes; NNVM assumes four a number. The optional
 *          colouring is left out.
 * Cost     O(n log n) time, 80 n bytes of scratch; range=auto six times the time.
 * Limits   The total is the sum of the largest size of each block; blocks do not share memory. */
#include "planners/published/blocks.h"

#include <stdlib.h>

enum { DEFAULT_RANGE = 16 };

/* The first class of [first, end) with at least `bytes`; end: there is none. */
static uint32_t class_at_least(const mpl_blocks *blocks, uint32_t first, uint32_t end,
                               uint64_t bytes)
{
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;

        if (blocks->class_bytes[middle] < bytes)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* A partner of equal bytes and type, which stands for equal element count and type. */
static mpl_buffer equal_partner(const mpl_blocks *blocks, mpl_buffer x)
{
    const mpl_problem *p = blocks->p;
    mpl_buffer partner;

    for (uint32_t i = 0; (partner = mpl_blocks_partner(blocks, x, i)) != MPL_NONE; i++)
        if (p->bytes[partner] == p->bytes[x] &&
            (p->type_id == NULL || p->type_id[partner] == p->type_id[x]))
            return partner;
    return MPL_NONE;
}

static void request(mpl_blocks *blocks, mpl_buffer x, uint64_t range)
{
    uint32_t class = blocks->buffer_class[x], first = blocks->class_first[class],
             end = blocks->class_end[class], found;
    uint64_t bytes = blocks->p->bytes[x], most = UINT64_MAX;

    if (range == 0) {
        mpl_blocks_open(blocks, x);
        return;
    }
    if (mpl_mul_bytes(bytes, range, &most) && most < UINT64_MAX)
        end = class_at_least(blocks, class, end, most + 1);
    if ((found = mpl_blocks_lowest(blocks, class, end)) != MPL_NONE) {
        mpl_blocks_take(blocks, x, found, true);
        return;
    }
    first = class_at_least(blocks, first, class, bytes / range);
    if ((found = mpl_blocks_highest(blocks, first, class)) != MPL_NONE)
        mpl_blocks_take(blocks, x, found, false);
    else
        mpl_blocks_open(blocks, x);
}

/* Marks an output of this step that has no block yet. */
static const uint32_t waiting = MPL_NONE;

static void rule(mpl_blocks *blocks, const void *params, uint32_t begin, uint32_t end)
{
    const uint64_t *range = params;

    for (uint32_t i = begin; i < end; i++) {
        mpl_buffer x = blocks->by_birth[i], partner = MPL_NONE;
        bool alone = mpl_blocks_alone(blocks, x);

        blocks->block_of[x] = waiting;
        if (!alone && *range != 0)
            partner = equal_partner(blocks, x);
        if (alone)
            mpl_blocks_open(blocks, x);
        else if (partner != MPL_NONE)
            mpl_blocks_inherit(blocks, x, partner);
    }
    for (uint32_t i = begin; i < end; i++)
        if (blocks->block_of[blocks->by_size[i]] == waiting)
            request(blocks, blocks->by_size[i], *range);
}

/* The range of the least total, the smallest among equals. */
static mpl_status best_range(mpl_blocks *blocks, uint64_t *best)
{
    uint64_t least = UINT64_MAX;

    for (uint64_t range = 1; range <= DEFAULT_RANGE; range *= 2) {
        uint64_t total;

        mpl_blocks_walk(blocks, rule, &range, false);
        MPL_PASS(mpl_blocks_total(blocks, &total));
        if (total < least) {
            least = total;
            *best = range;
        }
    }
    return MPL_OK;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    const char *text = mpl_run_param(run, "range");
    uint64_t range = DEFAULT_RANGE; /* match range R; 0: no sharing */
    mpl_blocks *blocks = NULL;

    MPL_TRY(mpl_blocks_new(run, p, MPL_GROUP_POOL, &blocks));
    if (text != NULL && strcmp(text, "auto") == 0)
        MPL_TRY(best_range(blocks, &range));
    else if (text != NULL)
        range = strtoull(text, NULL, 10);
    mpl_blocks_walk(blocks, rule, &range, false);
    MPL_TRY(mpl_blocks_write(blocks, out));
out:
    mpl_blocks_free(run->ctx, blocks);
    return st;
}

const mpl_planner mpl_planner_mxnet = {
    .name = "mxnet",
    .about = "growing blocks within a match range of R, in place where count and type agree",
    .source = "mxnet",
    .params = "range=0|1|2|4|8|16|auto",
    .traits = MPL_BLOCKS | MPL_SERIAL_ONLY | MPL_USES_IN_PLACE,
    .plan = plan,
};
