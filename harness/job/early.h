/* early.h -- loops that stack a row a round, and end early: how many rows count. Dimensions that
 * are left open are planned at their maximum, and rows of rounds that did not come are zero. */
#ifndef MPL_EARLY_H
#define MPL_EARLY_H

#include "runtime/exec.h"

typedef struct mpl_early {
    uint64_t *rows; /* [n_outputs] that rounds made, of an output that stacks a loop's; UINT64_MAX:
                       all of it counts */
    char *text;     /* for people, a loop apart by '; '; empty: none ended early */
} mpl_early;

/* What the last run was. */
mpl_status mpl_early_new(mpl_ctx *ctx, const mpl_exec *exec, const mpl_graph *g, mpl_early *out);
void mpl_early_fini(mpl_ctx *ctx, mpl_early *early);

/* Whether output i may have fewer rows than were planned. */
bool mpl_early_may(const mpl_graph *g, uint32_t i);
/* Dims of output i, as far as it counts. rows NULL: as planned. */
mpl_shape mpl_early_shape(const mpl_graph *g, const uint64_t *rows, uint32_t i);

#endif
