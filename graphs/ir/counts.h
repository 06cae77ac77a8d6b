/* counts.h -- numbers of operators and attributes, for tables indexed by them.
 *
 * Only files that include this are recompiled when an operator or attribute is added (Makefile). */
#pragma once

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
