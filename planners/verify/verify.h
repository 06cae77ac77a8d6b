/* verify.h -- the independent verifier: checks plans plainly, shares no helper with any planner. */
#pragma once

#include "graphs/problem/places.h"
#include "planners/plan/plan.h"

/* Checks `plan` against `p`. Every buffer has one aligned offset; fixed offsets and the distances
 * within families are kept; ends stay inside the capacity and below 2^63. Conflicting buffers of a
 * pool do not overlap, except an in-place pair at the same offset. Serial: two buffers conflict if
 * one step needs both; a step in a gap needs no bytes. Blocks must not overlap each other.
 * A spread pool 0: each buffer's memory exists, the above holds in each memory, and the cost equals
 * the plan's and is not below its bound.
 * On success writes pool_bytes and peak_bytes into the plan and checks its bound and claim against
 * them. Rejects a plan below its own bound, and one that claims neither feasible nor optimal.
 * MPL_EINVALID with one line that names the buffers, the step and the byte range of the first
 * conflict in (step, lower id, higher id) order. MPL_EINPUT: the problem is broken. Serial: O(n log
 * n) sweep. */
mpl_status mpl_verify(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan);

/* Whether a and b, of one pool, conflict: one step needs both, or neither is before the other. The
 * verifier's own reading of the problem, for callers that must not rely on the planners' code.
 * O(gaps). */
bool mpl_verify_conflict(const mpl_problem *p, mpl_buffer a, mpl_buffer b);

/* Checks parallel safety, or that of map->op_stream, against the graph, with reachability of its
 * own instead of the planner's relation. If two buffers overlap in memory, every operation that
 * touches one must precede every operation that touches the other, or one may overwrite the other
 * in place by the operator table. For a plan that mpl_verify accepted. MPL_EINVALID names two
 * buffers and two operations. O(ops * edges / 64 + overlaps) time; ops^2 / 8 bytes. */
mpl_status mpl_verify_graph(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                            const mpl_problem *p, const mpl_plan *plan);

/* Checks control flow against the graph and the plan. Whenever a value is read, its contents must
 * be whole in its place (map->places): in each class of rounds of the loops around it, for any
 * branches and any number of rounds, and at each exit test. What is not copied between rounds, or
 * into or out of a block, must have one address on both sides.
 * Parallel: the above in one order; in addition no two top-level operations, with their blocks,
 * that may run at the same time touch each other's memory, so every order has the same effect.
 * Under streams, operations of one stream do not.
 * For a plan that mpl_verify accepted. MPL_EINVALID names the operation, the value and the round.
 * MPL_EINPUT: cycles of many different lengths make too many classes. */
mpl_status mpl_verify_places(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                             const mpl_problem *p, const mpl_plan *plan);

/* States of several graphs over one arena. */
typedef struct mpl_states_at {
    uint32_t n;
    const char *const *name;
    const uint64_t *at, *bytes; /* [n] [byte] */
    uint64_t arena_bytes;
} mpl_states_at;

/* One of the graphs, as it is planned and executed. */
typedef struct mpl_called {
    const char *name;
    const mpl_graph *g;
    const mpl_value_map *map;
    const mpl_problem *p;            /* serial; without what is held */
    const mpl_plan *plan;            /* of p, in the common arena; verified */
    const mpl_value *before, *after; /* [states] input and output of each; MPL_NONE: none */
    const uint64_t *held_at;         /* [n_values] of roots held in the arena; UINT64_MAX: none */
} mpl_called;

/* Checks that any sequence of calls computes with the contents of states that the calls before
 * left: each state lies at one offset in all graphs; when a value in it is read, its contents are
 * there; an output that is a state's new contents is written where the state lies, over old
 * contents that nothing needs any more, or by an operation that may; at the end of each call,
 * whatever lies over the state has not touched it, or it was written anew. By one walk over each
 * graph's steps; ranges of the plan and of the graphs themselves, which the caller verifies with
 * mpl_verify and its like, are taken as right. MPL_EINVALID names the entry, the value and the
 * state. O(states * (buffers + steps)) and states * steps bytes. */
mpl_status mpl_verify_calls(mpl_ctx *ctx, const mpl_states_at *states, uint32_t n,
                            const mpl_called *called);
