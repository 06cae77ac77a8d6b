/* keep_state.h -- gives the state that a graph reads and writes one shape. */
#pragma once

#include "graphs/graph.h"

/* State as one graph sees it. Its input and its output may have fewer rows along one axis than the
 * state; they are its first rows. */
typedef struct mpl_kept {
    const char *name; /* borrowed */
    mpl_shape shape;
    mpl_value before;      /* the input that reads it; MPL_NONE: none */
    mpl_value after;       /* the output with its new contents; MPL_NONE: none */
    bool copied;           /* copy the output into the state after all operations */
    uint64_t copied_bytes; /* grows: by this copy [byte] */
} mpl_kept;

/* Replaces *g by a graph whose inputs and outputs of states have the whole state's shape. A concat
 * of the input and new rows, as a cache that grows has it, becomes a write of the rows (assign);
 * any other reader of a smaller input gets its first rows (access). Outputs with `copied`, or with
 * fewer rows, are assigned to the state by operations after all others, in the order of the states;
 * `copied_bytes` grows by what these move. Updates before and after. *g and its ids stay as they
 * are if nothing of this is needed; else, without smaller inputs, operations keep their ids.
 * MPL_EINPUT: an input inside a block. On failure only mpl_graph_free may be called on *g. O(size *
 * n). */
mpl_status mpl_graph_keep_state(mpl_ctx *ctx, mpl_graph **g, uint32_t n, mpl_kept *state);
