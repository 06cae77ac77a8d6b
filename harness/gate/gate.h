/* gate.h -- the regression gate: what is known of the least bytes of a problem, recorded baselines,
 * the judgement of a plan. */
#ifndef MPL_GATE_H
#define MPL_GATE_H

#include "harness/job/job.h"
#include "harness/rows/rows.h"
#include "planners/import/import.h"

/* What no plan of a problem can beat, and the best that is known. */
typedef struct mpl_optimum {
    uint64_t bound_bytes;
    const char *bound_kind;
    uint64_t best_bytes; /* of a verified plan; UINT64_MAX: none is known */
    bool proved;         /* best_bytes is the optimum, and bound_bytes equals it */
    const char *by;      /* the planner that found best_bytes, or NULL */
    bool by_clock;       /* the time limit ended the search */
} mpl_optimum;

/* Quick planners, then `exact`, under --budget (MPL_GATE_TICKS where none is given), --seed,
 * --threads and --time-limit. */
#define MPL_GATE_TICKS UINT64_C(1000000000) /* a few seconds */
mpl_status mpl_optimum_find(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                            mpl_optimum *out);

/* A plan from a file as a job of its own, or as one of GRAPH (may be NULL): job, row, and the plan,
 * not verified. job->text and the row's graph become the last part of the path up to its first dot
 * where there is no GRAPH and the file names none; `name` holds 200 bytes for it and must outlive
 * the job. The row's planner is the format's name, or the file's own planner. */
mpl_status mpl_gate_open_plan(mpl_ctx *ctx, mpl_options *options, const char *graph,
                              const char *path, char *name, mpl_import *import, mpl_record **row,
                              mpl_job *job);
/* Bytes that the plan takes: what production says, else the furthest end. For verified plans. */
uint64_t mpl_gate_bytes(const mpl_import *import, const mpl_plan *plan);

/* results/baselines/NAME.json: rows with graph, problem_hash, safety, planner (with its
 * parameters), planned_bytes, bound_bytes, optimum_bytes, claim, one a line, sorted by graph,
 * safety, planner, hash. */
mpl_status mpl_baseline_read(mpl_ctx *ctx, const char *path, mpl_rows *rows);
/* Sorts the rows; of several with one key one stays. */
mpl_status mpl_baseline_write(mpl_ctx *ctx, const char *path, mpl_rows *rows);
/* The row of this problem and planner (as mpl_planner_label has it), or NULL. */
const mpl_record *mpl_baseline_find(const mpl_rows *rows, const char *problem_hash,
                                    const char *planner);

#endif
