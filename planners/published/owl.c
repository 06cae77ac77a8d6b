/* owl.c -- blocks that grow: the smallest free block that is large enough, else the largest,
 * enlarged.
 *
 * Idea     A finished node's block goes to the next node that fits it best. If none fits, enlarging
 *          the largest costs least. An operation that can overwrite its parent does so.
 * Source   P. Vandenhove, "Functional Design of Computation Graph", Algorithm 1, and Owl's code.
 * Differs  The text's "always favour in-place" is a rule here (rule=paper). In Owl's code it is
 *          only an effect: a parent's block is free just before the node chooses, and the last
 *          released block goes first among equals (rule=code). Here a parent's block that the node
 *          does not take becomes free with the other parents', so no other output of the step can
 *          take it. A node used twice by one consumer (x * x) is released once; Owl's code leaks
 *          it.
 * Cost     O(n log n) time, 80 n bytes of scratch.
 * Limits   The total is the sum of the blocks as finally grown. Blocks are not split, so one large
 *          buffer fixes a block's size. */
#include "planners/published/blocks.h"

/* The free partner with the smallest block, the first among equals (last: the last released);
 * MPL_NONE: there is none. */
static mpl_buffer smallest_partner(const mpl_blocks *blocks, mpl_buffer x, bool last)
{
    mpl_buffer best = MPL_NONE, partner;

    for (uint32_t i = 0; (partner = mpl_blocks_partner(blocks, x, i)) != MPL_NONE; i++) {
        uint64_t bytes = mpl_blocks_bytes(blocks, blocks->block_of[partner]);
        uint64_t least =
            best != MPL_NONE ? mpl_blocks_bytes(blocks, blocks->block_of[best]) : UINT64_MAX;

        if (bytes < least || (last && bytes == least))
            best = partner;
    }
    return best;
}

static void place(mpl_blocks *blocks, mpl_buffer x, bool paper)
{
    uint32_t class = blocks->buffer_class[x];
    uint32_t enough = mpl_blocks_lowest(blocks, class, blocks->class_end[class]);
    mpl_buffer partner = smallest_partner(blocks, x, !paper);
    bool in_place = partner != MPL_NONE && (paper || enough == MPL_NONE ||
                                            mpl_blocks_bytes(blocks, blocks->block_of[partner]) <=
                                                blocks->class_bytes[enough]);
    uint32_t largest = mpl_blocks_highest(blocks, blocks->class_first[class], class);

    if (in_place)
        mpl_blocks_inherit(blocks, x, partner);
    else if (enough != MPL_NONE)
        mpl_blocks_take(blocks, x, enough, false);
    else if (largest != MPL_NONE)
        mpl_blocks_take(blocks, x, largest, false);
    else
        mpl_blocks_open(blocks, x);
}

static void rule(mpl_blocks *blocks, const void *params, uint32_t begin, uint32_t end)
{
    const bool *paper = params;

    for (uint32_t i = begin; i < end; i++) {
        mpl_buffer x = blocks->by_birth[i];

        if (mpl_blocks_alone(blocks, x))
            mpl_blocks_open(blocks, x);
        else
            place(blocks, x, *paper);
    }
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    const char *text = mpl_run_param(run, "rule");
    bool paper = text == NULL || strcmp(text, "paper") == 0;
    mpl_blocks *blocks = NULL;

    MPL_TRY(mpl_blocks_new(run, p, MPL_GROUP_POOL, &blocks));
    mpl_blocks_walk(blocks, rule, &paper, false);
    MPL_TRY(mpl_blocks_write(blocks, out));
out:
    mpl_blocks_free(run->ctx, blocks);
    return st;
}

const mpl_planner mpl_planner_owl = {
    .name = "owl",
    .about = "growing blocks: smallest free one that is big enough, else the largest, enlarged",
    .source = "owl",
    .params = "rule=paper|code",
    .traits = MPL_BLOCKS | MPL_SERIAL_ONLY | MPL_USES_IN_PLACE,
    .plan = plan,
};
