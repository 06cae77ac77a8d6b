/* unroll.h -- a plan of a graph with loops and branches over time, for pictures. Shows loop rounds
 * in sequence, as many as the rotation of storage needs, and the branches of a case in sequence. */
#pragma once

#include "graphs/problem/places.h"
#include "planners/plan/plan.h"

typedef struct mpl_box {
    uint32_t from, to; /* columns [from, to) */
    uint64_t offset, bytes;
    mpl_value value;   /* MPL_NONE: workspace `buffer` */
    mpl_buffer buffer; /* MPL_NONE: one or more parts of a buffer */
} mpl_box;

typedef struct mpl_mark { /* start of a round or branch */
    uint32_t column, block;
    uint32_t number; /* of the round or branch */
} mpl_mark;

typedef struct mpl_unrolled {
    uint32_t n_columns;
    uint32_t *step; /* [n_columns] of the program */
    size_t step_cap;
    mpl_box *box; /* pool 0, in the order of their ends */
    uint32_t n_boxes;
    size_t box_cap;
    mpl_mark *mark;
    uint32_t n_marks;
    size_t mark_cap;
} mpl_unrolled;

/* map->places must be set. A loop gets as many rounds as its first special pointers and the cycles
 * of its values need, at most 8; a nested loop at most 3. */
mpl_status mpl_unroll(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order, const mpl_problem *p,
                      const mpl_value_map *map, const mpl_plan *plan, mpl_unrolled *out);
void mpl_unrolled_fini(mpl_ctx *ctx, mpl_unrolled *unrolled);
