/* tradeoff.h -- memplan plot --tradeoff: time, or work, against the memory of a training graph with
 * recomputation. */
#pragma once

#include "harness/job/job.h"

/* Draws the curve of a graph into path, an SVG or PNG.
 * With options->rows: executed runs of that graph in these files, equal in all but --recompute, on
 * options->backend or that of the first row. Plots median time against planned memory, with work on
 * a second axis. Without: runs nothing and plots work against peak live bytes, one point for each
 * budget between the peak and the least peak of segments. Prints the points and a summary, unless
 * options->quiet. MPL_EINPUT: no training graph, no such row, rows of different builds or machines;
 * MPL_EUNAVAIL: no gnuplot. */
mpl_status mpl_tradeoff_draw(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                             const char *path, bool png);
