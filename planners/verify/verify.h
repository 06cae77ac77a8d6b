/* verify.h -- the independent verifier: the plainest check of a plan, sharing no helper with any
 * planner. */
#ifndef MPL_VERIFY_H
#define MPL_VERIFY_H

#include "graphs/problem/places.h"
#include "planners/plan/plan.h"

/* Checks `plan` against `p`: one aligned offset per buffer, fixed places kept, parts of families at
 * their very distances, ends inside the capacity and below 2^63, no two conflicting buffers of a
 * pool overlap unless they are an in-place pair at the same offset (serial: no two that are needed
 * at one step; in the gaps of its lifetime a buffer is not). On success writes pool_bytes and
 * peak_bytes into the plan and checks its bound and claim against them (a plan below its own bound
 * is refused). A plan that claims neither feasible nor optimal has nothing to check and is refused;
 * blocks must not overlap each other. Where pool 0 is spread over memories: each buffer's memory is
 * there, the above holds in each memory, and the cost is what the plan says, not below its bound.
 * MPL_EINVALID with one line that names the two buffers, the step and the byte range of the first
 * conflict in (step, lower id, higher id) order. MPL_EINPUT: the problem itself is broken. Serial:
 * O(n log n) sweep.
 */
mpl_status mpl_verify(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan);

/* Whether a and b, of one pool, are needed at one step, or neither is before the other: what the
 * problem says, as the verifier reads it, for those who must not rely on what planners use.
 * O(gaps). */
bool mpl_verify_conflict(const mpl_problem *p, mpl_buffer a, mpl_buffer b);

/* Parallel safety from the graph itself, by reachability of its own (the planner's relation is not
 * looked at): of two buffers that overlap in memory, every operation that touches the one must have
 * run before any that touches the other can start, or one may overwrite the other in place (checked
 * against the operator table). For a plan that mpl_verify accepted. MPL_EINVALID naming two buffers
 * and two operations. O(ops * edges / 64 + overlaps); ops^2 / 8 bytes. */
mpl_status mpl_verify_graph(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                            const mpl_problem *p, const mpl_plan *plan);

/* Control flow, from the graph and the plan: whether each value is certainly whole where it is said
 * to lie (map->places) whenever it is read, in each class of rounds of the loops around it,
 * whichever branches are taken, for any number of rounds and at each exit test; and whether what is
 * not copied from round to round, or into or out of a block, lies at one address on both sides.
 * Parallel: in one order; and no two operations of the whole graph, with their blocks, that may run
 * at the same time touch each other's memory, so that every order does the same. For a plan that
 * mpl_verify accepted. MPL_EINVALID naming the operation, the value and the round; MPL_EINPUT:
 * cycles of so many lengths that the classes are too many. */
mpl_status mpl_verify_places(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                             const mpl_problem *p, const mpl_plan *plan);

#endif
