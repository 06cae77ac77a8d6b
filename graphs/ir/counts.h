/* counts.h -- how many operators and attributes there are, for tables with an item for each.
 *
 * Files that include this are compiled again when one is added; all others are not (Makefile). */
#ifndef MPL_COUNTS_H
#define MPL_COUNTS_H

enum {
    MPL_N_OPS = 0
#define OP(name, min_in, max_in, min_out, max_out, traits, shape, eval) +1
#include "graphs/ir/each_op.h"
};

enum {
    MPL_N_ATTRS = 0
#define ATTR(name, kind) +1
#include "graphs/ir/attrs.def"
#undef ATTR
};

#endif
