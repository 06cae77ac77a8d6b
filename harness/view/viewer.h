/* viewer.h -- horizontal positions of a plan's buffers, and the plan as one HTML page. */
#pragma once

#include "harness/job/job.h"

/* Extent of each buffer on the horizontal axis. Serial: its lifetime, in steps. Parallel: from the
 * length of the longest chain of buffers before it, to the least such length of the buffers that it
 * is before. No two rectangles of a valid plan overlap (in-place pairs apart), but under parallel
 * adjacent buffers may be alive at once. */
typedef struct mpl_spans_across {
    uint32_t *from, *to; /* [n] from < to */
    uint32_t n_steps;    /* upper limit of every `to` */
    const char *unit;    /* "time [step]" */
    const char *about;   /* one or two sentences on the axis */
} mpl_spans_across;

mpl_status mpl_across(mpl_ctx *ctx, const mpl_problem *p, mpl_spans_across *out);
void mpl_across_fini(mpl_ctx *ctx, mpl_spans_across *across);

/* A rectangle of another plan's pool 0. */
typedef struct mpl_viewer_box {
    uint32_t from, to;
    uint64_t offset, bytes;
} mpl_viewer_box;

/* A plan to show beside the page's own, while the pointer is on its line. */
typedef struct mpl_viewer_after {
    const char *kind, *command, *what;
    uint64_t planned_bytes;
    uint32_t n_steps; /* upper limit of every `to` */
    uint32_t n;
    const mpl_viewer_box *box; /* [n] */
} mpl_viewer_after;

/* What a page shows besides the plan. */
typedef struct mpl_viewer_extra {
    uint32_t n_peak;
    const mpl_buffer *peak; /* [n_peak] of pool 0 at its highest point; serial pages find it too */
    uint32_t n_after;
    const mpl_viewer_after *after; /* [n_after] */
} mpl_viewer_extra;

/* Writes one self-contained page with zoom, pan, search, size, place and conflicts of a buffer, and
 * the parts of the arena at a step. extra: may be NULL. Equal plans give equal bytes. Names are cut
 * to 80 bytes. Each buffer takes about 60 bytes and its name, each rectangle about 30. */
mpl_status mpl_viewer_write(mpl_ctx *ctx, FILE *to, const char *title, const char *planner,
                            const mpl_job *job, const mpl_plan *plan,
                            const mpl_viewer_extra *extra);
