/* tradeoff.h -- memplan plot --tradeoff: work against peak memory of a training graph, where operations run again. */
#ifndef MPL_TRADEOFF_H
#define MPL_TRADEOFF_H

#include "harness/job.h"

/* Draws the curve of a job's graph into path, an SVG or PNG: a point a budget between the peak and the least peak of segments, by
 * segments. Prints the points unless options->quiet. MPL_EINPUT: no training
 * graph; MPL_EUNAVAIL: no gnuplot. */
mpl_status mpl_tradeoff_draw(mpl_ctx *ctx, const mpl_options *options, const char *graph, const char *path,
                             bool png);

#endif
