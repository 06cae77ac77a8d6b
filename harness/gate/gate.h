/* gate.h -- the regression gate: the least known bytes of a problem, recorded baselines, and checks
 * of plans against them. */
#pragma once

#include "harness/job/job.h"
#include "harness/rows/rows.h"
#include "planners/import/import.h"

/* A lower bound of a problem, and its best known plan. */
typedef struct mpl_optimum {
    uint64_t bound_bytes;
    const char *bound_kind;
    uint64_t best_bytes; /* of a verified plan; UINT64_MAX: none known */
    bool proved;         /* best_bytes is optimal and equals bound_bytes */
    const char *by;      /* the planner that found best_bytes, or NULL */
    bool by_clock;       /* the time limit ended the search */
} mpl_optimum;

/* Runs quick planners, then `exact`, under --budget (default MPL_GATE_TICKS), --seed, --threads and
 * --time-limit. */
#define MPL_GATE_TICKS UINT64_C(1000000000) /* a few seconds */
mpl_status mpl_optimum_find(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                            mpl_optimum *out);

/* Opens a plan from a file as a job of its own, or as a plan of GRAPH (may be NULL). Fills job, row
 * and the plan, which is not verified. Without GRAPH and a name in the file, job->text and the
 * row's graph are the last part of the path up to its first dot. `name` holds 200 bytes for it and
 * must outlive the job. The row's planner is the format's name, or the file's own planner. */
mpl_status mpl_gate_open_plan(mpl_ctx *ctx, mpl_options *options, const char *graph,
                              const char *path, char *name, mpl_import *import, mpl_record **row,
                              mpl_job *job);
/* Bytes that a verified plan takes: the number that its allocator reports, else the highest end. */
uint64_t mpl_gate_bytes(const mpl_import *import, const mpl_plan *plan);

/* What --against names, beside the optimum. */
typedef struct mpl_reference {
    uint64_t planned_bytes;
    uint64_t plan_ns;    /* time of planning; 0: not recorded */
    bool searched;       /* a baseline: the optimum stands there as well */
    mpl_optimum optimum; /* of a baseline */
} mpl_reference;
/* Finds it for a plan with this row and label (mpl_planner_label): its line of a baseline, another
 * plan, which is verified, or the file of the same name in a folder of plans. MPL_EINPUT: there is
 * none, or the other plan is no valid one. */
mpl_status mpl_gate_against(mpl_ctx *ctx, const mpl_options *options, const mpl_record *row,
                            const char *label, mpl_reference *out);

/* A line of the table that --markdown writes; 0: not known. */
typedef struct mpl_gate_line {
    const char *name, *by, *verdict;
    uint64_t before, now, bound;
    bool proved; /* the bound is the optimum */
    uint64_t before_ns, now_ns;
} mpl_gate_line;
/* Begins the file with the table's head, or adds a line to it. times: with the columns of times.
 * MPL_EINPUT: the file cannot be written. */
mpl_status mpl_gate_table_begin(mpl_ctx *ctx, const char *path, bool times);
mpl_status mpl_gate_table_add(mpl_ctx *ctx, const char *path, const mpl_gate_line *line,
                              bool times);
/* Checks the plan that the options name: memplan check without its report. line: the outcome, if it
 * is MPL_OK; else the message has it. */
enum { MPL_GATE_LINE = 700 };
typedef mpl_status mpl_gate_check(mpl_ctx *ctx, mpl_options *options, char line[MPL_GATE_LINE]);
bool mpl_gate_is_folder(const char *path);
/* Checks the files of a folder, not those of folders in it, by name. Files of no known format are
 * counted. Prints a line each, or with --json an object. The status is the worst: bad input, then a
 * plan beyond what it is held to, then an undecided one. MPL_EINPUT: no plan. */
mpl_status mpl_gate_folder(mpl_ctx *ctx, mpl_options *options, const char *folder,
                           mpl_gate_check *check);

/* Reads results/baselines/NAME.json: rows with graph, problem_hash, safety, planner (with its
 * parameters), planned_bytes, bound_bytes, optimum_bytes, claim, and plan_ns if it was recorded.
 * They stand one a line, sorted by graph, safety, planner, hash. */
mpl_status mpl_baseline_read(mpl_ctx *ctx, const char *path, mpl_rows *rows);
/* Whether the file begins as one. */
bool mpl_is_baseline(const char *path);
/* Sorts the rows and keeps one of each key. */
mpl_status mpl_baseline_write(mpl_ctx *ctx, const char *path, mpl_rows *rows);
/* The row of this problem and planner (a label of mpl_planner_label), or NULL. */
const mpl_record *mpl_baseline_find(const mpl_rows *rows, const char *problem_hash,
                                    const char *planner);
