/* one_shape.h -- GRAPH at one shape: its text and its options with sizes put in. */
#pragma once

#include "harness/cli/options.h"

/* GRAPH and options of one shape. */
typedef struct mpl_one_shape {
    char *graph;         /* with the sizes of a network of the zoo */
    mpl_strings dim;     /* of the options; the last n_sized texts are owned */
    uint32_t n_sized;    /* sizes of a file's open dims */
    mpl_options options; /* borrows all else that it points to */
} mpl_one_shape;

/* GRAPH with n sizes more: parameters of a network of the zoo, else open dims of a file. Whatever
 * stands in options->dim stays. The caller calls mpl_one_shape_fini even after a failure. */
mpl_status mpl_one_shape_make(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                              uint32_t n, const char *const *name, const int64_t *size,
                              mpl_one_shape *out);
void mpl_one_shape_fini(mpl_ctx *ctx, mpl_one_shape *shape);
