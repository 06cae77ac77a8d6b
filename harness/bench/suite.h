/* suite.h -- suites: text files that list graphs, built into the program or read from a path.
 *
 * Each line names one graph, as on the command line. `{data}/` at its start stands for the folder
 * of `--data`; an absent file is skipped. A line `--option value` sets an option of `bench` unless
 * the command line does. Options after a graph, `GRAPH --loop copy`, hold for that line alone. They
 * must be options that distinguish rows, and the suite must not set them for all. `#` begins a
 * comment; the first comment line describes the suite. */
#pragma once

#include "harness/cli/options.h"

typedef struct mpl_builtin_suite {
    const char *name;
    const char *text;
} mpl_builtin_suite;

extern const mpl_builtin_suite mpl_builtin_suites[]; /* ends with name NULL; sorted by name */

typedef struct mpl_suite_option {
    uint32_t graph; /* index of its graph */
    const char *name, *value;
} mpl_suite_option;

typedef struct mpl_suite {
    char *name; /* of a built-in suite, or the path's last part without .suite */
    char *text; /* owned; cut into the lines that graph[] points to */
    mpl_strings graph;
    uint32_t n_own;
    size_t own_cap;
    mpl_suite_option *own; /* options of single graphs */
} mpl_suite;

/* Opens a built-in suite, else a file with that path. Options that it sets go into `options`.
 * MPL_EINPUT with file and line. */
mpl_status mpl_suite_open(mpl_ctx *ctx, const char *name, mpl_options *options, mpl_suite *out);
void mpl_suite_fini(mpl_ctx *ctx, mpl_suite *suite);
/* Copies the own options of a suite's i-th graph into `options`, except where the command line sets
 * them. MPL_EINPUT: an invalid value. */
mpl_status mpl_suite_own(mpl_ctx *ctx, const mpl_suite *suite, uint32_t i, mpl_options *options);
/* Which of n shards, from 0, does this run. Each block of n runs gives one run to every shard, and
 * the assignment changes from block to block. So shards differ by at most one run, and no planner
 * always falls to the same shard. */
uint32_t mpl_shard_of(uint64_t run, uint32_t n);
/* Parses "I/N" of --shard, I from 1; *index from 0. MPL_EINPUT. */
mpl_status mpl_shard_parse(mpl_ctx *ctx, const char *text, uint32_t *index, uint32_t *n);
/* The graph's name in rows: without a leading `{data}/`. */
const char *mpl_suite_graph_name(const char *graph);
/* The path of a graph that begins with `{data}/`, with any suffix after ':'; the caller frees it.
 * NULL for other graphs. The folder is --data, else MEMPLAN_DATA, else ../shared/data if it exists,
 * else memplan/data in the user's cache, where scripts/data.sh puts files. */
mpl_status mpl_suite_graph_path(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                                char **path);
/* Bytes of such a path up to the ':' that introduces options of the graph. */
size_t mpl_suite_file_length(const char *path);
/* Copies the first comment line of a suite's text into line; empty if there is none. */
void mpl_suite_about(const char *text, char *line, size_t size);
