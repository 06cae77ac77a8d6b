/* needs.h -- which values of a graph with control flow may be needed from a point of its program
 * on. Derived from the graph alone, without lifetimes or plans. */
#pragma once

#include "graphs/problem/steps.h"
#include "graphs/problem/problem.h"

/* A point is a step when control comes to it (BEGIN of a body in each round, a case's own step if
 * no branch ran), the end after the last step, or the entry to a loop or case from above. */
typedef struct mpl_needs {
    const mpl_graph *g;
    const mpl_program *program;
    const mpl_value *holder; /* [n_values] value whose storage v lies in; NULL: each its own */
    uint32_t words;          /* length of a row */
    uint64_t *row;           /* [points * words] bits of needed holders */
    uint32_t *entry;         /* [n_ops] point of the entry to a loop or case */
    uint64_t *now, *scratch; /* private */
} mpl_needs;

/* g, program and holder must outlive the result. O(depth * steps * values / 64). */
mpl_status mpl_needs_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_program *program,
                         const mpl_value *holder, mpl_needs **out);
void mpl_needs_free(mpl_ctx *ctx, mpl_needs *needs); /* NULL is allowed */

/* The point at which control arrives at `step` from the step before, or from above. */
uint32_t mpl_needs_entry(const mpl_needs *needs, uint32_t step);
static inline bool mpl_needs_has(const mpl_needs *needs, uint32_t point, mpl_value v)
{
    return mpl_bit_has(needs->row + (size_t)point * needs->words, v);
}

static inline const mpl_value *mpl_control_params(const mpl_graph *g, uint32_t block)
{
    return g->block_param + g->block_param_begin[block];
}
static inline const mpl_value *mpl_control_results(const mpl_graph *g, uint32_t block)
{
    return g->block_result + g->block_result_begin[block];
}
