/* entries.h -- graphs that share one memory: what lies in state, and the problem of all of them. */
#pragma once

#include "graphs/passes/keep_state.h"
#include "graphs/problem/places.h"

/* What one graph does to each state, in one order. */
typedef struct mpl_held {
    uint32_t n;       /* states */
    uint32_t *state;  /* [n_values] of a root that lies in a state: which; else MPL_NONE */
    uint8_t *is_held; /* [n_values] the same as a flag: mpl_problem_options.held */
    uint32_t *from;   /* [n] steps [from, to) at which nothing in the graph needs the contents of */
    uint32_t *to;     /* [n] the state, as they are written whole at `to`; equal: there are none */
    uint8_t *refused; /* [n] 1: its output cannot be written where the state lies */
} mpl_held;

/* Decides which outputs are made where their state lies: nothing reads the old contents once the
 * first byte of the new ones is written, unless by operations that may overwrite what they read
 * (mpl_in_place_operand), each the last reader of what the one before it left. map is of the same
 * order, with all inputs and outputs pinned. state[n] are of the whole state's shape
 * (mpl_graph_keep_state). O(size * n). */
mpl_status mpl_held_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                        const mpl_value_map *map, uint32_t n, const mpl_kept *state,
                        mpl_held **out);
void mpl_held_free(mpl_ctx *ctx, mpl_held *held);

typedef struct mpl_entry_part {
    const char *name;
    const mpl_problem *p; /* serial, without what lies in states */
    const mpl_held *held;
    uint32_t first; /* written: its buffer b is buffer first + b of the problem */
} mpl_entry_part;

/* One problem of n_states states, the first buffers, and of n graphs, one after the other in time.
 * A state is needed at all steps but those that mpl_held names, so a plan is right for any sequence
 * of calls: whatever was called before, and whatever comes after. Its bound is the states and the
 * most that one graph needs at once, or less where a graph makes the state anew. Names of buffers
 * begin with "ENTRY/". MPL_EINPUT: more than 2^32 steps, pools of their own. O(size). */
mpl_status mpl_problem_of_entries(mpl_ctx *ctx, const char *name, uint32_t n_states,
                                  const char *const *state_name, const uint64_t *state_bytes,
                                  uint32_t align, uint32_t n, mpl_entry_part *part,
                                  mpl_problem **out);
