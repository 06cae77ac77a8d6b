/* ranges.h -- ranges of sizes and relations between them, as the command line gives them. */
#ifndef MPL_RANGES_H
#define MPL_RANGES_H

#include "graphs/symbols/symbols.h"
#include "harness/shapes/one_shape.h"

/* Of --dim NAME=LO..HI[:STEP] and --dim "past + seq <= 4096", and of a network's parameters
 * ("bert:seq=1..512"). With STEP, those of LO..HI that it divides. */
typedef struct mpl_ranges {
    char *graph;         /* GRAPH without ranges */
    mpl_options options; /* as given; `dim` has only what is no range */
    mpl_strings asked;   /* ranges and relations, in the order given */
    char *store;         /* of some of these texts */
    mpl_exprs *exprs;    /* the same, as symbols */
    char *text;          /* the same, as one: "seq=1..4096,past=1..4096,past+seq<=4096" */
} mpl_ranges;

/* Whether any size is a range. */
bool mpl_ranges_asked(const mpl_options *options, const char *graph);
/* Reads them. MPL_EINPUT: an empty range, one that crosses 0, a relation of no such names, or that
 * no shape satisfies. The caller calls mpl_ranges_fini even after a failure, here and below. */
mpl_status mpl_ranges_read(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                           mpl_ranges *out);
/* Shapes of `exprs`, but for what GRAPH or --dim gives of a symbol: NAME=N or NAME=LO..HI[:STEP].
 */
mpl_status mpl_ranges_within(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                             const mpl_exprs *exprs, mpl_ranges *out);
void mpl_ranges_fini(mpl_ctx *ctx, mpl_ranges *ranges);

/* A shape near the middle, where sizes differ that are equal at corners: value[symbols]. */
mpl_status mpl_ranges_middle(mpl_ctx *ctx, const mpl_exprs *exprs, int64_t *value);
/* GRAPH and options at one shape. The caller calls mpl_one_shape_fini even after a failure. */
mpl_status mpl_ranges_shape(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                            const mpl_exprs *exprs, const int64_t *value, mpl_one_shape *out);
#endif
