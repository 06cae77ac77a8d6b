/* blocks.h -- shared by the planners that hand out whole blocks: the walk over the steps and the
 * free blocks by size. Private to planners/.
 *
 * A step's outputs are the buffers born at it; its dying inputs are those born earlier whose last
 * use it is. A block is as large as the largest buffer it ever held. So all possible sizes are
 * known beforehand and numbered (`class`). Each class has a shelf of free blocks, in order of
 * release. Blocks have no offsets and cannot keep the parts of a family at their distances, so each
 * family is one buffer. */
#pragma once

#include "planners/planner.h"

/* Blocks of different groups are never exchanged. */
typedef enum mpl_block_group {
    MPL_GROUP_POOL,  /* the pool alone */
    MPL_GROUP_TYPE,  /* pool and element type */
    MPL_GROUP_SHAPE, /* pool, element type, shape (or bytes) */
} mpl_block_group;

typedef struct mpl_blocks {
    mpl_run *run;
    const mpl_problem *p;
    uint32_t n_classes;
    uint64_t *class_bytes;  /* [n_classes] rising within a group [byte] */
    uint32_t *class_first;  /* [n_classes] first class of its group */
    uint32_t *class_end;    /* [n_classes] first class of the next group */
    uint32_t *buffer_class; /* [n] */
    uint32_t *shelf_oldest; /* [n_classes] block released first; MPL_NONE: empty */
    uint32_t *shelf_newest; /* [n_classes] */
    uint32_t n_leaves;      /* power of two >= n_classes */
    uint32_t *oldest_age;   /* [2 * n_leaves] tree of least release numbers; MPL_NONE: no block */
    uint32_t n_releases;
    uint32_t n_blocks;
    uint32_t *block_class; /* [n_blocks] class of its size */
    uint32_t *block_age;   /* [n_blocks] release number, while on a shelf */
    uint32_t *block_older; /* [n_blocks] neighbours on the shelf, or MPL_NONE */
    uint32_t *block_newer;
    uint32_t *block_of;   /* [n] */
    uint8_t *handed_on;   /* [n] an output inherited this dying buffer's block */
    mpl_buffer *by_birth; /* [n] ids by (birth, id) */
    mpl_buffer *by_size;  /* [n] ids by (birth, largest first, id) */
    mpl_buffer *by_death; /* [n] ids by (death, inputs before unused outputs, id) */
    uint32_t *pair_first; /* [n] in-place pairs of each output; NULL: there are none */
    uint32_t *pair_end;   /* [n] */
} mpl_blocks;

/* Gives each output of one step, by_birth[begin..end) and by_size[begin..end), a block. It calls
 * mpl_blocks_inherit, mpl_blocks_take or mpl_blocks_open once for each. */
typedef void mpl_blocks_rule(mpl_blocks *blocks, const void *params, uint32_t begin, uint32_t end);

mpl_status mpl_blocks_new(mpl_run *run, const mpl_problem *p, mpl_block_group group,
                          mpl_blocks **out);
void mpl_blocks_free(mpl_ctx *ctx, mpl_blocks *blocks);

/* Walks over all steps. Calls the rule for the outputs, then frees the blocks of dying inputs and,
 * unless keep_unused, of unused outputs. May be called again. O(n log n) plus the rule. */
void mpl_blocks_walk(mpl_blocks *blocks, mpl_blocks_rule *rule, const void *params,
                     bool keep_unused);

/* The sum of all blocks. MPL_EINPUT if it exceeds 2^63. [byte] */
mpl_status mpl_blocks_total(const mpl_blocks *blocks, uint64_t *bytes);

/* Writes block[], offset[] and the claim. Each pool's blocks lie end to end in order of opening,
 * each aligned for all its buffers. MPL_EINPUT if they exceed 2^63. */
mpl_status mpl_blocks_write(const mpl_blocks *blocks, mpl_plan *out);

/* ---- queries and actions of a rule ---- */

/* Whether x must have memory of its own. */
bool mpl_blocks_alone(const mpl_blocks *blocks, mpl_buffer x);
/* The i-th dying input, by id, whose block x may overwrite and no output inherited; or MPL_NONE. */
mpl_buffer mpl_blocks_partner(const mpl_blocks *blocks, mpl_buffer x, uint32_t i);
uint64_t mpl_blocks_bytes(const mpl_blocks *blocks, uint32_t block);

/* The lowest or highest class in [first, end) with a free block, or the class of the block released
 * first; MPL_NONE: there is none. O(log n) */
uint32_t mpl_blocks_lowest(const mpl_blocks *blocks, uint32_t first, uint32_t end);
uint32_t mpl_blocks_highest(const mpl_blocks *blocks, uint32_t first, uint32_t end);
uint32_t mpl_blocks_oldest(const mpl_blocks *blocks, uint32_t first, uint32_t end);

void mpl_blocks_inherit(mpl_blocks *blocks, mpl_buffer x, mpl_buffer partner);
/* Takes a free block of the class, released first or last, and enlarges it to x's size if
 * needed. */
void mpl_blocks_take(mpl_blocks *blocks, mpl_buffer x, uint32_t class, bool oldest);
void mpl_blocks_open(mpl_blocks *blocks, mpl_buffer x);
