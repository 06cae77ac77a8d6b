/* asked.h -- what options ask of problems, planners and the verifier. libmemplan has this too, so
 * nothing here knows a backend. */
#ifndef MPL_ASKED_H
#define MPL_ASKED_H

#include "graphs/problem/derive/from_graph.h"
#include "graphs/source.h"
#include "harness/cli/options.h"
#include "harness/rows/record.h"
#include "planners/planner.h"

/* --dim, and what a caller adds, as readers take it. */
typedef struct mpl_reading {
    mpl_read_options options;
    uint32_t n_names; /* owned */
    char **name_store;
    const char **dim_name;
    int64_t *dim_value;
} mpl_reading;

/* MPL_EINPUT: a --dim that is no NAME=N. The reading is to be freed even then. */
mpl_status mpl_asked_dims(mpl_ctx *ctx, const mpl_options *options, mpl_reading *out);
void mpl_reading_fini(mpl_ctx *ctx, mpl_reading *reading);

/* How a problem is made of a graph, but for --safety and what a backend decides. */
mpl_problem_options mpl_asked_problem(const mpl_options *options);
/* A list with a partial order is parallel; one without is read as interval precedence where that is
 * asked for. MPL_EINPUT: --safety serial of a partial order. */
mpl_status mpl_asked_safety(mpl_ctx *ctx, const mpl_options *options, const char *name,
                            mpl_problem *list);
/* --in-place and --capacity of a list. */
void mpl_asked_limits(const mpl_options *options, mpl_problem *list);
/* One call of a planner. */
void mpl_asked_run(mpl_ctx *ctx, const mpl_options *options, const mpl_params *params,
                   mpl_run *run);

/* The independent verifier; of a graph with control flow, or under parallel, the one that reads the
 * graph too. g, map: NULL for a list. */
mpl_status mpl_verify_all(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                          const mpl_problem *p, mpl_plan *plan);
/* The words of a SET as an array of a row. */
void mpl_row_words(mpl_record *row, mpl_field field, mpl_option_id id, uint32_t set);

#endif
