/* bench.h -- the state of one bench, and the measurement of a group of its units. A unit is a graph
 * of the suite under one safety. Units are numbered by graph, then by safety. */
#pragma once

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
    mpl_strings safeties;        /* a NULL item: the graph's own safety */
    char *safety_store;
    uint32_t shard, n_shards;
    uint32_t turns;  /* units whose timed runs are interleaved */
    uint32_t repeat; /* timed runs; 0 in a worker of several */
    FILE *crew;      /* stream for rows in a worker of several; NULL: write to the file */
    bool *seen;      /* [n_units * n_backends * n_specs] with workers: rows received */
    char **done;     /* sorted keys of the file's rows with status ok */
    uint32_t n_done;
    mpl_rows rows; /* of this bench, with those taken from the file */
    mpl_rows old;  /* rows of the file */
    mpl_row_file file;
    char *path;    /* owned; NULL: --output names it */
    char *skipped; /* owned: the last absent graph */
    mpl_progress progress;
    bool bad; /* some row is neither ok nor unavailable */
} mpl_bench;

/* ---- cmd_bench.c ---- */

uint32_t mpl_bench_units(const mpl_bench *bench);
/* Whether a unit's run by planner p on a backend belongs to this shard. */
bool mpl_bench_is_mine(const mpl_bench *bench, uint32_t unit, uint32_t backend, uint32_t p);
/* The options of one unit: those of the bench, its safety, and those on the graph's suite line. */
mpl_status mpl_bench_unit_options(mpl_bench *bench, uint32_t unit, mpl_options *own);
/* Whether the file already has the run of `row`. */
mpl_status mpl_bench_is_done(mpl_bench *bench, const mpl_record *row, bool *found);

typedef struct mpl_bench_run {
    uint32_t backend, planner;
} mpl_bench_run;

/* Adds the file's row for the run of `row` to the rows of this bench. */
mpl_status mpl_bench_take_done(mpl_bench *bench, mpl_bench_run run, const mpl_record *row);
/* Finishes a row, takes ownership of it, and adds it to this bench. Writes it to disk, and to
 * stdout if asked for; a worker sends it to its parent instead. */
mpl_status mpl_bench_finish_row(mpl_bench *bench, mpl_bench_run run, mpl_record **row);

/* ---- bench_group.c ---- */

/* Number of runs of a unit in this shard. */
uint32_t mpl_bench_count_mine(const mpl_bench *bench, uint32_t unit);
/* Measures units first .. first + n - 1 on every backend. For each backend it asks for workspaces,
 * builds the problems, plans and verifies with every planner, and executes the plans in separate
 * processes with interleaved repeats. Each unit's outputs are compared with one run without memory
 * sharing. A failed run becomes a row; a failure status means memory, the disk or options. An
 * interrupt ends it early. */
mpl_status mpl_bench_group(mpl_bench *bench, uint32_t first, uint32_t n);
/* Reads the runs that the file already has, for --resume. */
mpl_status mpl_bench_read_done(mpl_bench *bench);
/* Finishes a row: writes it to disk, and to stdout if asked for, and adds it to this bench. */
mpl_status mpl_bench_keep_row(mpl_bench *bench, mpl_record **row);
