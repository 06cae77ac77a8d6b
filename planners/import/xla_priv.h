/* xla_priv.h -- values of XLA that are one buffer. */
#ifndef MPL_XLA_PRIV_H
#define MPL_XLA_PRIV_H

#include "planners/import/base/import_priv.h"

/* Steps in which a buffer of the list is not needed: half-open, by buffer, ascending. */
typedef struct mpl_xla_gap {
    uint32_t b, from, to;
} mpl_xla_gap;

typedef struct mpl_xla_gaps {
    uint32_t n;
    size_t cap;
    mpl_xla_gap *item;
} mpl_xla_gaps;

/* Makes one buffer of the values of a loop or branch that XLA keeps at one address, and drops
 * values that another stands for. mark[list->n]: 0, or an id of the index within a loop's tuple, of
 * values that join several ("(phi)"). O(n log n), and pairs of values that share a place and a
 * step. */
mpl_status mpl_xla_merge(mpl_ctx *ctx, mpl_import_list *list, const uint32_t *mark,
                         mpl_xla_gaps *gaps);
/* Gives the gaps to the problem, then offers the pairs that the plan uses: a buffer that begins at
 * the place and step where a large enough one ends. */
mpl_status mpl_xla_offer_pairs(mpl_ctx *ctx, mpl_problem *p, const mpl_plan *plan,
                               const mpl_xla_gaps *gaps);

/* Adds to the names of the list what the HLO beside the dump at `path` says of their instructions,
 * where that is there; *n_named buffers have it. */
mpl_status mpl_xla_names(mpl_ctx *ctx, const char *path, mpl_import_list *list, uint32_t *n_named);

#endif
