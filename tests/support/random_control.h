/* random_control.h -- small random graphs with nested loops and branches that terminate, and their
 * results. The direct evaluation needs no programs, places or plans: it runs block by block, with
 * separate memory for each value. */
#pragma once

#include "tests/support/test.h"

#include "graphs/core/rng.h"

/* Loops nested in branches and loops. Carried values rotate, shift, are doubled, stay, are weights,
 * or are never read. Also captures; scans and rows in both directions; exit tests anywhere in a
 * body; zero rounds; bypasses. The same seed gives the same graph. */
mpl_graph *random_control(mpl_ctx *ctx, uint64_t seed);
/* With about most_ops operations. */
mpl_graph *random_control_of(mpl_ctx *ctx, uint64_t seed, uint32_t most_ops);
/* The same, with values of 1 to 32 bytes. */
mpl_graph *random_control_tiny(mpl_ctx *ctx, uint64_t seed, uint32_t most_ops);

/* Contents of input i; those that decide on rounds and branches are small. */
void random_control_input(const mpl_graph *g, uint32_t i, uint64_t seed, void *data);

/* Computes output i into output[i], value_bytes each, from input[i]. */
void direct_run(mpl_ctx *ctx, const mpl_graph *g, const void *const *input, void *const *output);
