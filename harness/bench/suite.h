/* suite.h -- suites: text files that list graphs, built into the program or read from a path.
 *
 * One graph a line, as on the command line; one that begins with `{data}/` is a file in the folder
 * of `--data`, and is skipped where it is absent. A line `--option value` sets an option of `bench`
 * where the command line does not. What follows a graph, `GRAPH --loop copy`, holds for that
 * line alone: options that tell rows apart, of which the suite sets none for all. `#` begins a
 * comment; the first comment line says what the suite is for. */
#ifndef MPL_SUITE_H
#define MPL_SUITE_H

#include "harness/cli/options.h"

typedef struct mpl_builtin_suite {
    const char *name;
    const char *text;
} mpl_builtin_suite;

extern const mpl_builtin_suite mpl_builtin_suites[]; /* ends with name NULL; by name */

typedef struct mpl_suite_option {
    uint32_t graph; /* whose it is */
    const char *name, *value;
} mpl_suite_option;

typedef struct mpl_suite {
    char *name; /* of the built-in one, or the path's last part without .suite */
    char *text; /* owned; cut into lines, which graph[] points to */
    mpl_strings graph;
    uint32_t n_own;
    size_t own_cap;
    mpl_suite_option *own; /* options of single graphs */
} mpl_suite;

/* A built-in suite, else a file of that path; options that it sets go into `options`. MPL_EINPUT
 * with file and line. */
mpl_status mpl_suite_open(mpl_ctx *ctx, const char *name, mpl_options *options, mpl_suite *out);
void mpl_suite_fini(mpl_ctx *ctx, mpl_suite *suite);
/* The own options of a suite's i-th graph, into `options`, where the command line does not set
 * them. MPL_EINPUT: a value that none of them takes. */
mpl_status mpl_suite_own(mpl_ctx *ctx, const mpl_suite *suite, uint32_t i, mpl_options *options);
/* Which of n shards, from 0, has the run of that number: of each n runs in a row, every shard has
 * one, and which one changes from row to row, so that shards differ by at most one run and no
 * planner always falls to the same. */
uint32_t mpl_shard_of(uint64_t run, uint32_t n);
/* "I/N" as --shard takes it, I from 1; *index from 0. MPL_EINPUT. */
mpl_status mpl_shard_parse(mpl_ctx *ctx, const char *text, uint32_t *index, uint32_t *n);
/* The graph's name in rows: without the `{data}/` that it may begin with. */
const char *mpl_suite_graph_name(const char *graph);
/* The path of a graph that begins with `{data}/`, with what may follow a ':', to be freed; NULL of
 * another. The folder is --data's, else MEMPLAN_DATA, else ../shared/data where it is there, else
 * memplan/data in the user's cache, where scripts/data.sh puts it. */
mpl_status mpl_suite_graph_path(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                                char **path);
/* Bytes of such a path up to the ':' that says what becomes of the file. */
size_t mpl_suite_file_length(const char *path);
/* The first comment line of a suite's text, into line; empty where there is none. */
void mpl_suite_about(const char *text, char *line, size_t size);

#endif
