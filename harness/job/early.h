/* early.h -- loops that stack one row a round and may end early: counts the valid rows. Open
 * dimensions are planned at their maximum; rows of rounds that did not run are zero. */
#ifndef MPL_EARLY_H
#define MPL_EARLY_H

#include "runtime/exec.h"

typedef struct mpl_early {
    uint64_t *rows; /* [n_outputs] rows made, of an output that stacks a loop's rows; UINT64_MAX:
                       all */
    char *text;     /* for people: loops separated by '; '; empty: none ended early */
} mpl_early;

/* Facts of the last run. */
mpl_status mpl_early_new(mpl_ctx *ctx, const mpl_exec *exec, const mpl_graph *g, mpl_early *out);
void mpl_early_fini(mpl_ctx *ctx, mpl_early *early);

/* Whether output i may have fewer rows than planned. */
bool mpl_early_may(const mpl_graph *g, uint32_t i);
/* Dims of the valid part of output i. rows NULL: as planned. */
mpl_shape mpl_early_shape(const mpl_graph *g, const uint64_t *rows, uint32_t i);

#endif
