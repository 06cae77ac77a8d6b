/* random_control.h -- small random graphs of nested loops and branches that end, and what they
 * compute, found without programs, places or plans: block by block, each value in memory of its
 * own. */
#ifndef MPL_RANDOM_CONTROL_H
#define MPL_RANDOM_CONTROL_H

#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "graphs/graph.h"

/* Loops in branches in loops: carried values that rotate, shift, are doubled, stay as they are, are
 * weights, or that nobody reads; captures; scans and rows in both directions; exit tests anywhere
 * in a body; no rounds; bypasses. The same seed gives the same graph. */
mpl_graph *random_control(mpl_ctx *ctx, uint64_t seed);
/* Of about so many operations. */
mpl_graph *random_control_of(mpl_ctx *ctx, uint64_t seed, uint32_t most_ops);
/* The same, of values of 1 to 32 bytes. */
mpl_graph *random_control_tiny(mpl_ctx *ctx, uint64_t seed, uint32_t most_ops);

/* Contents for input i: what decides about rounds and branches is small. */
void random_control_input(const mpl_graph *g, uint32_t i, uint64_t seed, void *data);

/* Output i of the graph into output[i], value_bytes each, from input[i]. */
void direct_run(mpl_ctx *ctx, const mpl_graph *g, const void *const *input, void *const *output);

#endif
