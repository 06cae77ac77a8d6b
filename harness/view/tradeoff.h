/* tradeoff.h -- memplan plot --tradeoff: time, or work, against the memory of a training graph
 * where operations run again. */
#ifndef MPL_TRADEOFF_H
#define MPL_TRADEOFF_H

#include "harness/job/job.h"

/* Draws the curve of a graph into path, an SVG or PNG. With options->rows: the executed runs of
 * that graph in these files, alike in all but --recompute, on options->backend or that of the
 * first: median time against planned memory, work on an axis of its own. Without: nothing is run,
 * and work stands against peak live bytes, a point a budget between the peak and the least peak of
 * segments. Prints the points, and what was drawn, unless options->quiet. MPL_EINPUT: no training
 * graph, no such row, rows of different builds or machines; MPL_EUNAVAIL: no gnuplot. */
mpl_status mpl_tradeoff_draw(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                             const char *path, bool png);

#endif
