/* viewer.h -- where a picture puts the buffers of a plan, and the plan as one HTML page. */
#ifndef MPL_VIEWER_H
#define MPL_VIEWER_H

#include "harness/job/job.h"

/* From where to where each buffer reaches on the axis across. Serial: its lifetime, in steps.
 * Parallel: from the length of the longest chain of buffers before it to the least such length
 * among those that it is before. A valid plan puts no two rectangles over one another then
 * (in-place pairs apart), but buffers side by side may still be alive at once. */
typedef struct mpl_spans_across {
    uint32_t *from, *to; /* [n] from < to */
    uint32_t n_steps;    /* every `to` is <= n_steps */
    const char *unit;    /* "time [step]" */
    const char *about;   /* one or two sentences on the axis */
} mpl_spans_across;

mpl_status mpl_across(mpl_ctx *ctx, const mpl_problem *p, mpl_spans_across *out);
void mpl_across_fini(mpl_ctx *ctx, mpl_spans_across *across);

/* Writes one page that needs nothing else: zoom, pan, search, and for a buffer its size, place and
 * conflicts. The same bytes for the same plan. Names are cut to 80 bytes. About 60 bytes and the
 * name a buffer. */
mpl_status mpl_viewer_write(mpl_ctx *ctx, FILE *to, const char *title, const char *planner,
                            const mpl_job *job, const mpl_plan *plan);

#endif
