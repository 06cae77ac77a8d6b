/* gnuplot.h -- pictures through gnuplot, and how it is told whether an SVG is still what its data
 * make. */
#ifndef MPL_GNUPLOT_H
#define MPL_GNUPLOT_H

#include "graphs/core/base.h"

#define MPL_STYLE "scripts/style.gp" /* what all figures of the project load */

/* Runs gnuplot on a script; settings (may be NULL) are executed before it. MPL_EUNAVAIL: it is not
 * installed, or failed. */
mpl_status mpl_gnuplot(mpl_ctx *ctx, const char *settings, const char *script);

/* A script that is being written, and the picture that gnuplot shall draw by it: files for a while.
 * Starts as {0}. */
typedef struct mpl_picture {
    FILE *script;
    char path[264]; /* of the picture, for `set output` */
    char script_path[256];
} mpl_picture;

mpl_status mpl_picture_begin(mpl_ctx *ctx, mpl_picture *picture);
/* The picture's bytes; the caller's (mpl_free). */
mpl_status mpl_picture_draw(mpl_ctx *ctx, mpl_picture *picture, char **data, size_t *size);
/* Removes both files. */
void mpl_picture_end(mpl_picture *picture);

/* Writes an SVG and, as its last line, a comment with two hashes: of what it was made from, and of
 * itself. Another gnuplot draws other bytes from the same data, so that comparing pictures would
 * tell nothing. */
void mpl_svg_put(FILE *to, const char *svg, size_t size, uint64_t inputs);
/* Whether an SVG so written was made from these inputs, and is as it was written. */
bool mpl_svg_fresh(const char *svg, size_t size, uint64_t inputs);

#endif
