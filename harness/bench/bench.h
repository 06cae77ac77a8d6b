/* bench.h -- one bench at work: what it is to measure, the rows that it has, and a group of its
 * graphs measured.
 *
 * A unit is a graph of the suite under one safety; units count graphs, and safeties within each. */
#ifndef MPL_BENCH_H
#define MPL_BENCH_H

#include "harness/job/job.h"
#include "harness/cli/progress.h"
#include "harness/rows/rows.h"
#include "harness/bench/suite.h"

typedef struct mpl_bench {
    mpl_ctx *ctx;
    mpl_options *options;
    mpl_suite suite;
    uint32_t n_specs, n_peers, n_backends;
    mpl_planner_spec *spec; /* peers last */
    size_t spec_cap;
    const mpl_backend **backend; /* NULL entry: plan only */
    mpl_strings safeties;        /* a NULL item: each graph's own */
    char *safety_store;
    uint32_t shard, n_shards;
    uint32_t turns;  /* units whose timed runs go round together */
    uint32_t repeat; /* timed runs; 0 among other workers */
    FILE *crew;      /* in a worker of several: rows go there; NULL: to the file */
    bool *seen;      /* [n_units * n_backends * n_specs] with workers: rows that came back */
    char **done;     /* sorted keys that the file has with status ok */
    uint32_t n_done;
    mpl_rows rows; /* of this bench, those found in the file included */
    mpl_rows old;  /* of the file */
    mpl_row_file file;
    char *path;    /* owned; NULL: --output names it */
    char *skipped; /* owned: the last graph that was not there */
    mpl_progress progress;
    bool bad; /* a row is neither ok nor unavailable */
} mpl_bench;

/* ---- cmd_bench.c ---- */

uint32_t mpl_bench_units(const mpl_bench *b);
/* Whether a unit's run by planner p on a backend is this shard's. */
bool mpl_bench_is_mine(const mpl_bench *b, uint32_t unit, uint32_t backend, uint32_t p);
/* The options of one unit: those of the bench, the safety, what the graph's line of the suite
 * has. */
mpl_status mpl_bench_unit_options(mpl_bench *b, uint32_t unit, mpl_options *own);
/* Whether the file has the run of `row` already. */
mpl_status mpl_bench_is_done(mpl_bench *b, const mpl_record *row, bool *found);

/* The number of a unit's run, by backend and planner. */
typedef struct mpl_bench_run {
    uint32_t backend, planner;
} mpl_bench_run;

/* The row of the file that has the run of `row` joins those of this bench. */
mpl_status mpl_bench_take_done(mpl_bench *b, mpl_bench_run run, const mpl_record *row);
/* The row is finished: on the disk, to stdout if asked for, among those of this bench, which takes
 * it over; from a worker, on its way there. */
mpl_status mpl_bench_finish_row(mpl_bench *b, mpl_bench_run run, mpl_record **row);

/* ---- bench_group.c ---- */

/* Runs of a unit that are this shard's. */
uint32_t mpl_bench_count_mine(const mpl_bench *b, uint32_t unit);
/* Measures n units from the first on, on every backend: workspaces asked, problems made, every
 * planner planned and verified, then the plans executed in processes of their own, repeats going
 * round over all of them, against one run of each unit that shares nothing. What fails is a row; a
 * failure is memory, the disk or options. Ends early when interrupted. */
mpl_status mpl_bench_group(mpl_bench *b, uint32_t first, uint32_t n);
/* The runs that the file has already, for --resume. */
mpl_status mpl_bench_read_done(mpl_bench *b);
/* The row is finished: on the disk, to stdout if asked for, among those of this bench. */
mpl_status mpl_bench_keep_row(mpl_bench *b, mpl_record **row);

#endif
