/* units.h -- which outermost operations of a graph with control flow may run concurrently. Private
 * to graphs/problem/.
 *
 * A unit is one operation of block 0 with all of its blocks. One worker runs its steps in program
 * order. Units are ordered only by what they read of each other, blocks included, and by
 * streams. A point is a step
 * of the program, the beginning of a unit (before its first step, where it reads the condition or
 * index), or the beginning or end of the run. */
#pragma once

#include "graphs/problem/steps.h"
#include "graphs/problem/problem.h"

typedef struct mpl_units {
    uint32_t n; /* in program order */
    uint32_t n_steps, n_points;
    uint32_t *first, *last;    /* [n] steps of a unit */
    uint32_t *of_step;         /* [n_steps] */
    uint32_t words;            /* 64-bit words of a set of units */
    uint64_t *later, *earlier; /* [n * words] units that run only after it; only before it */
    uint32_t point_words;      /* of a set of points */
    uint64_t *beside;          /* [n * point_words] points of all units that are neither */
} mpl_units;

/* op_stream[n_ops] < n_ops (NULL: no streams): a unit also runs only after the one before it in the
 * program on its stream. O(units * (reads + points) / 64). */
mpl_status mpl_units_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_program *program,
                         const uint32_t *op_stream, mpl_units **out);
void mpl_units_free(mpl_ctx *ctx, mpl_units *units);

/* Points. A step is its own number. */
static inline uint32_t mpl_point_end(const mpl_units *units)
{
    return units->n_steps;
}
static inline uint32_t mpl_point_start(const mpl_units *units)
{
    return units->n_steps + 1;
}
static inline uint32_t mpl_point_entry(const mpl_units *units, uint32_t unit)
{
    return units->n_steps + 2 + unit;
}
/* The unit that contains operation `op`, at any depth. */
static inline uint32_t mpl_unit_of(const mpl_units *units, const mpl_program *program, mpl_op op)
{
    return units->of_step[program->op_step[op]];
}

/* Adds steps `from` to `last` of one unit to a row of two sets: points that need something in every
 * run, and points that may need it in some run. Adds to the second set also all points of units
 * that may run concurrently. */
void mpl_points_set_range(const mpl_units *units, uint32_t from, uint32_t last, uint64_t *row);
/* Adds all points of a unit to one set. */
void mpl_points_set_unit(const mpl_units *units, uint32_t unit, uint64_t *points);

/* The order of n non-empty sets of points, `stride` words apart: a is before b when every point of
 * a precedes every point of b in each run. Borrows the sets. */
typedef struct mpl_extents mpl_extents;
mpl_status mpl_extents_new(mpl_ctx *ctx, const mpl_units *units, uint32_t n, const uint64_t *set,
                           size_t stride, mpl_extents **out);
void mpl_extents_free(mpl_ctx *ctx, mpl_extents *extents);
/* O(units / 64 + steps of a unit). */
bool mpl_extents_before(const mpl_extents *extents, uint32_t a, uint32_t b);
/* Whether a ends at `step`, where b begins, in every run. */
bool mpl_extents_meet_at(const mpl_extents *extents, uint32_t a, uint32_t b, uint32_t step);
