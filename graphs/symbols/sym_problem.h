/* sym_problem.h -- the problem of a graph over a range: one structure, sizes as expressions.
 *
 * Which buffers conflict does not depend on sizes, if the same values are views and the same
 * concats share their storage everywhere. So a split or slice that is no view at some point of the
 * range (its pieces are not in one run, or not at multiples of the alignment) copies at all points,
 * and a concat that cannot share somewhere never does: `copied` and `shared`, the decisions that
 * make the graph's own problem at any shape have this structure. */
#pragma once

#include "graphs/problem/derive/from_graph.h"
#include "graphs/symbols/sym_graph.h"

typedef struct mpl_sym_problem {
    mpl_exprs *exprs;    /* borrowed */
    mpl_problem *at;     /* at the first point of the readings: live ranges, pools, families, .. */
    mpl_expr *bytes;     /* [n] [byte] */
    mpl_expr *inside_at; /* [n] [byte]; NULL: no families */
    /* In-place pairs of `at` are those of every reading whose bytes(out) <= bytes(in) is proved. */
    uint32_t n_unproved; /* pairs dropped because that was not proved */
    uint64_t structure;  /* mpl_sym_structure of the graph */
    uint32_t n_ops, n_bounded;
    char *bounded;   /* a size that is a bound, the first; NULL: none (n_bounded of them) */
    uint8_t *shared; /* [n_ops] of mpl_problem_options.concat_shared */
    uint8_t *copied; /* [n_ops] of mpl_problem_options.split_copied */
} mpl_sym_problem;

/* `order` is one of graph->graph[0], hence of all. options: as for mpl_problem_from_graph, without
 * workspaces (MPL_EINPUT). MPL_EINPUT: the problem has another structure at some point, or a size
 * has no expression and `bounded` does not allow to take the most; what differs is named. O(points
 * * mpl_problem_from_graph * (1 + splits and concats that change their minds)). */
mpl_status mpl_sym_problem_new(mpl_ctx *ctx, const mpl_sym_graph *graph, const mpl_op *order,
                               const mpl_problem_options *options, bool bounded,
                               mpl_sym_problem **out);
void mpl_sym_problem_free(mpl_ctx *ctx, mpl_sym_problem *sp);

/* The options with which a graph of the range has a problem of this structure: *options, with
 * `shared` and `copied` borrowed from sp. */
mpl_problem_options mpl_sym_options(const mpl_sym_problem *sp, const mpl_problem_options *options);
/* The structure with sizes at value[symbols]. MPL_EINPUT: not in the range, or an overflow. */
mpl_status mpl_sym_problem_at(mpl_ctx *ctx, const mpl_sym_problem *sp, const int64_t *value,
                              mpl_problem **out);
/* MPL_EINPUT: p, the graph's own problem at a shape, differs from want = mpl_sym_problem_at: what
 * planners see but in-place pairs, which must be in p if they are in `want`, and sizes, which are
 * equal, or, where sizes are bounds, not above. */
mpl_status mpl_sym_problem_compare(mpl_ctx *ctx, const mpl_problem *want, const mpl_problem *p,
                                   bool bounded, const char *where);
