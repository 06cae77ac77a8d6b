/* incremental.h -- a graph that is evaluated once, then again only as far as a change of some
 * inputs asks for. */
#ifndef MPL_INCREMENTAL_H
#define MPL_INCREMENTAL_H

#include "graphs/graph.h"

#define MPL_CHANGED ".changed" /* behind the name of an input: what it is the second time */
#define MPL_AGAIN   ".again"   /* behind the names of what is evaluated again */

typedef struct mpl_incremental_facts {
    uint32_t n_ops, n_again; /* of the graph; of them those that depend on a changed input */
    uint64_t kept_bytes;     /* results that do not, and that those read: they survive. [byte] */
} mpl_incremental_facts;

/* Replaces *graph by one that is all of it, and behind that the operations that depend on
 * changed[n], inputs by name, once more: these read inputs NAME.changed for the changed ones and,
 * of what does not depend on them, what the first evaluation left. That is an output, so that it is
 * there for any further evaluation, too, where it is pinned or alive to the end; so are the outputs
 * of both evaluations, the first ones first, then the second ones, NAME.again. A view is kept as
 * what it is a view of. Updates that depend on a changed input, those of running statistics too,
 * stand in the second evaluation alone, behind all readers of what was there before: weights become
 * what one evaluation with the new contents makes of them. MPL_EINPUT: no such input, a name twice,
 * a graph with control flow, with views that are written through, or that reads what a later update
 * leaves. Constants' data moves over, as in mpl_graph_prune; free *graph on failure. facts may be
 * NULL. O(size). */
mpl_status mpl_graph_incremental(mpl_ctx *ctx, mpl_graph **graph, uint32_t n,
                                 const char *const *changed, mpl_incremental_facts *facts);

#endif
