/* unroll_loops.h -- loops whose bodies stand there several times: the baseline of what carries
 * values in turns. */
#pragma once

#include "graphs/problem/derive/from_graph.h"

enum { MPL_MOST_BODIES = 255 }; /* operands of a concat */

typedef struct mpl_unrolled_loops {
    uint32_t n;      /* loops that were unrolled */
    uint32_t bodies; /* the most copies in one of them */
} mpl_unrolled_loops;

/* Replaces *g by a graph in which each loop of T rounds, whose number is known, has bodies of K
 * copies: T / K rounds, and the remainder as copies after it. What is scanned or stacked
 * is cut into pieces of K slices, which are views where sizes are multiples of the alignment.
 *
 * copies 0: of each loop the least K with which every chain of carried values that cannot share its
 * place is back where it began, under these options in the given order. That is the longest cycle
 * of places that a chain goes through; 1: nothing takes turns, the loop stays. The rounds are the
 * most that K can be, and MPL_MOST_BODIES.
 *
 * A loop that may end early stays as it is, and so does one that writes weights or has slices
 * without elements. MPL_EINPUT: the graph has no loop, or none that can be unrolled; copies is
 * above MPL_MOST_BODIES. On failure only mpl_graph_free may be called on *g. O(size of the
 * result). */
mpl_status mpl_graph_unroll(mpl_ctx *ctx, mpl_graph **g, uint32_t copies,
                            const mpl_problem_options *options, mpl_unrolled_loops *facts);
