/* incremental.h -- a graph that is evaluated once, then again only where some changed inputs
 * require it. */
#pragma once

#include "graphs/graph.h"

#define MPL_CHANGED ".changed" /* suffix of an input's name for its second contents */
#define MPL_AGAIN   ".again"   /* suffix of names that are evaluated again */

typedef struct mpl_incremental_facts {
    uint32_t n_ops, n_again; /* operations of the graph; those that depend on a changed input */
    uint64_t kept_bytes;     /* results that the second evaluation reads from the first [byte] */
} mpl_incremental_facts;

/* Replaces *graph by one that evaluates it twice. First come all operations; then, once more, those
 * that depend on changed[n], inputs by name. The second ones read inputs NAME.changed for the
 * changed inputs, and results of the first evaluation for whatever does not depend on them.
 * Outputs: those of the first evaluation, then those of the second, NAME.again. The results that
 * the second evaluation reads are outputs, too, so that they exist for further evaluations wherever
 * they are pinned or live to the end. A view is kept as its root.
 * Updates that depend on a changed input, those of running statistics included, run in the second
 * evaluation only, after all readers of the old contents. So weights end as after one evaluation
 * with the new contents. A loop or branch is evaluated again as a whole, or not at all; an update
 * of what it reads waits for a result of it, as it does in training. Second values are called
 * NAME.again, and where that is taken, outputs apart, NAME.again2, ..
 * MPL_EINPUT: no such input, a name twice, an update within a block that would run again, a graph
 * with views that are written through, or that reads what a later update leaves. Constants' data
 * moves, as in mpl_graph_prune; free *graph on failure. facts may be NULL. O(size). */
mpl_status mpl_graph_incremental(mpl_ctx *ctx, mpl_graph **graph, uint32_t n,
                                 const char *const *changed, mpl_incremental_facts *facts);
