/* concats.h -- decides which concats have their operands inside their results. */
#pragma once

#include "graphs/problem/derive/from_graph.h"

/* How it was decided. For exact plans see planners/search/concat.h. */
typedef enum mpl_concat_by {
    MPL_CONCAT_BY_NOTHING, /* no concat can share */
    MPL_CONCAT_BY_GREEDY,  /* by repeatedly giving up a concat at the peak */
    MPL_CONCAT_BY_BOUND,   /* by the bound of every choice */
    MPL_CONCAT_BY_EXACT,   /* by the least bytes of every choice that its bound does not exclude */
} mpl_concat_by;

typedef struct mpl_concat_choice {
    uint64_t bytes;        /* its bound, or the bytes of its best plan [byte] */
    uint64_t shared_bytes; /* total size of the shared results [byte] */
    uint32_t set;          /* bit i: op[i] shares */
} mpl_concat_choice;

typedef struct mpl_concats {
    uint32_t n;                /* concats that can share */
    uint8_t *shared;           /* [n_ops] chosen by the options or the bounds */
    mpl_concat_by by;          /* op and choice: only for an undecided MPL_CONCAT_AUTO */
    mpl_op *op;                /* [n] ascending */
    uint32_t n_choices;        /* 2^n, or 0: too many to try each */
    mpl_concat_choice *choice; /* [n_choices] indexed by set */
} mpl_concats;

mpl_status mpl_concats_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                           const mpl_problem_options *options, mpl_concats **out);
void mpl_concats_free(mpl_ctx *ctx, mpl_concats *concats);
/* Orders by fewer bytes, then by more shared bytes, then by the lower set. */
bool mpl_concat_better(const mpl_concat_choice *a, const mpl_concat_choice *b);
const char *mpl_concat_by_name(mpl_concat_by by); /* "the bounds of all choices", .. */
