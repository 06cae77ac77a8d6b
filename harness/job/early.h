/* early.h -- outputs with fewer slices than planned: rows of loops that end early, and values whose
 * length depends on data (`first`). Open dimensions are planned at their maximum; the slices behind
 * are zero. */
#pragma once

#include "runtime/exec.h"

typedef struct mpl_early {
    uint64_t *rows; /* [n_outputs] slices made, of an output that may have fewer; UINT64_MAX: all */
    char *text;     /* for people: separated by '; '; empty or NULL: all are there */
} mpl_early;

/* Facts of the last run. */
mpl_status mpl_early_new(mpl_ctx *ctx, mpl_exec *exec, const mpl_graph *g, mpl_early *out);
void mpl_early_fini(mpl_ctx *ctx, mpl_early *early);

/* Whether output i may have fewer slices than planned, along *axis. */
bool mpl_early_may(const mpl_graph *g, uint32_t i, uint32_t *axis);
/* Dims of the valid part of output i. rows NULL: as planned. */
mpl_shape mpl_early_shape(const mpl_graph *g, const uint64_t *rows, uint32_t i);
/* Moves the valid parts of `outputs` together, each in the place of the whole. */
void mpl_early_cut(const mpl_graph *g, const uint64_t *rows, void *outputs);
