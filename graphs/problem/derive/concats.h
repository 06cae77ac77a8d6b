/* concats.h -- which concats have their operands inside their results. */
#ifndef MPL_CONCATS_H
#define MPL_CONCATS_H

#include "graphs/problem/derive/from_graph.h"

/* How that was decided; by exact plans: planners/search/concat.h. */
typedef enum mpl_concat_by {
    MPL_CONCAT_BY_NOTHING, /* there was nothing to decide */
    MPL_CONCAT_BY_GREEDY,  /* by what stands at the peak, again and again */
    MPL_CONCAT_BY_BOUND,   /* by the bound of every choice */
    MPL_CONCAT_BY_EXACT,   /* by the least bytes of every choice that its bound does not exclude */
} mpl_concat_by;

typedef struct mpl_concat_choice {
    uint64_t bytes;        /* its bound, or what its best plan needs [byte] */
    uint64_t shared_bytes; /* of the results of those that share [byte] */
    uint32_t set;          /* bit i: op[i] shares */
} mpl_concat_choice;

typedef struct mpl_concats {
    uint32_t n;                /* that can share */
    uint8_t *shared;           /* [n_ops] what the options, or the bounds, choose */
    mpl_concat_by by;          /* those two are there for an open MPL_CONCAT_AUTO only: */
    mpl_op *op;                /* [n] ascending */
    uint32_t n_choices;        /* 2^n, or 0: too many to look at each */
    mpl_concat_choice *choice; /* [n_choices] by set, with their bounds */
} mpl_concats;

mpl_status mpl_concats_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                           const mpl_problem_options *options, mpl_concats **out);
void mpl_concats_free(mpl_ctx *ctx, mpl_concats *concats);
/* Fewer bytes; of as many, more that need no copy; then the lower set. */
bool mpl_concat_better(const mpl_concat_choice *a, const mpl_concat_choice *b);
const char *mpl_concat_by_name(mpl_concat_by by); /* "the bounds of all choices", .. */

#endif
