/* gnuplot.h -- draws pictures with gnuplot, and detects SVG files that are out of date. */
#pragma once

#include "graphs/core/base.h"

#define MPL_STYLE "scripts/style.gp" /* loaded by all figures of the project */

/* Runs gnuplot on a script; settings (may be NULL) are executed before it. MPL_EUNAVAIL: not
 * installed, or failed. */
mpl_status mpl_gnuplot(mpl_ctx *ctx, const char *settings, const char *script);

/* Temporary files: a script to be written, and the picture that gnuplot draws with it. Starts as
 * {0}. */
typedef struct mpl_picture {
    FILE *script;
    char path[264]; /* of the picture, for `set output` */
    char script_path[256];
} mpl_picture;

mpl_status mpl_picture_begin(mpl_ctx *ctx, mpl_picture *picture);
/* The picture's bytes; freed by mpl_free. */
mpl_status mpl_picture_draw(mpl_ctx *ctx, mpl_picture *picture, char **data, size_t *size);
/* Removes both files. */
void mpl_picture_end(mpl_picture *picture);

/* Writes an SVG whose last line is a comment with two hashes: of its inputs, and of itself.
 * Pictures cannot be compared directly, since other versions of gnuplot draw other bytes. */
void mpl_svg_put(FILE *to, const char *svg, size_t size, uint64_t inputs);
/* Whether such an SVG was made from these inputs and is unchanged. */
bool mpl_svg_fresh(const char *svg, size_t size, uint64_t inputs);
