/* asked.h -- translates options for problems, planners and the verifier. libmemplan contains this
 * file too, so nothing here knows a backend. */
#pragma once

#include "graphs/source.h"
#include "harness/cli/options.h"
#include "harness/rows/record.h"
#include "planners/planner.h"

/* --dim, --loss, --trainable and the caller's additions, as readers take them. */
typedef struct mpl_reading {
    mpl_read_options options;
    uint32_t n_names; /* owned */
    char **name_store;
    const char **dim_name;
    int64_t *dim_value;
} mpl_reading;

/* MPL_EINPUT: a --dim that is not NAME=N. The caller frees the reading even then. */
mpl_status mpl_asked_dims(mpl_ctx *ctx, const mpl_options *options, mpl_reading *out);
void mpl_reading_fini(mpl_ctx *ctx, mpl_reading *reading);

/* Options for making a problem of a graph, without --safety and a backend's part. */
mpl_problem_options mpl_asked_problem(const mpl_options *options);
/* Sets the safety of a list. A partial order makes it parallel. Without one, steps are read as
 * interval precedence if parallel is asked for. MPL_EINPUT: --safety serial of a partial order,
 * streams of a list. */
mpl_status mpl_asked_safety(mpl_ctx *ctx, const mpl_options *options, const char *name,
                            mpl_problem *list);
/* The safety that a list of buffers is of. */
mpl_safety mpl_list_safety(const mpl_problem *list);
/* Applies --in-place and --capacity to a list. */
void mpl_asked_limits(const mpl_options *options, mpl_problem *list);
/* Gives the problem what --fix, --reserve, --chunk, --apart and --together ask for. MPL_EINPUT: no
 * such buffer, or they contradict each other. */
mpl_status mpl_asked_constraints(mpl_ctx *ctx, const mpl_options *options, mpl_problem *p);
/* Whether one of them is given. */
bool mpl_asks_constraints(const mpl_options *options);
/* Sets up one call of a planner. */
void mpl_asked_run(mpl_ctx *ctx, const mpl_options *options, const mpl_params *params,
                   mpl_run *run);

/* Runs the independent verifier; under parallel or with control flow, the one that also reads the
 * graph. g, map: NULL for a list. */
mpl_status mpl_verify_all(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                          const mpl_problem *p, mpl_plan *plan);
/* Writes the words of a SET as an array of a row. */
void mpl_row_words(mpl_record *row, mpl_field field, mpl_option_id id, uint32_t set);
