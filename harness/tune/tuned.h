/* tuned.h -- measured times of operations, kept in a file, and the layouts that they make best.
 *
 * A time is known by what the operation is: operator, attributes, types and shapes of its operands,
 * layout, implementation. So a file serves all graphs of one machine, backend and number of threads
 * (its origin), and a plan made from it is the same wherever it is made. */
#pragma once

#include "graphs/passes/layouts.h"

typedef struct mpl_op_time {
    uint64_t key, ns;
    char what[96]; /* in words */
} mpl_op_time;

typedef struct mpl_op_times {
    char origin[320];
    uint32_t n;
    size_t room;
    mpl_op_time *item; /* [n] by key */
} mpl_op_times;

/* The key and words of an operation computed so; .ns is 0. */
mpl_op_time mpl_op_time_of(const mpl_graph *g, mpl_op op, mpl_laid laid);
/* The same for a reorder of an image to `layout`. */
mpl_op_time mpl_reorder_time_of(const mpl_shape *image, mpl_layout layout);

/* The same for a whole run of the graph, laid[n_ops]; NULL: as mpl_graph_channels_last has it. */
mpl_op_time mpl_whole_time_of(const mpl_graph *g, const mpl_laid *laid);

/* Reads a file of times. MPL_EINPUT: it is absent or none. */
mpl_status mpl_op_times_read(mpl_ctx *ctx, const char *path, mpl_op_times *out);
mpl_status mpl_op_times_write(mpl_ctx *ctx, const char *path, const mpl_op_times *times);
/* Adds a time, or lowers the one that is there. O(n). */
mpl_status mpl_op_times_put(mpl_ctx *ctx, mpl_op_times *times, const mpl_op_time *item);
void mpl_op_times_free(mpl_ctx *ctx, mpl_op_times *times);

/* By how much another implementation than the preferred one must be faster, and whole runs as
 * chosen than as --layout auto, to be taken: by less, timings of one thing differ. [percent] */
enum { MPL_TUNED_MARGIN = 10, MPL_TUNED_GAIN = 3 };

/* What a choice is known to take. [ns] */
typedef struct mpl_chosen {
    uint64_t ns, bound_ns;      /* the sum, reorders counted; no choice of those times is below */
    uint64_t whole_ns, auto_ns; /* whole runs: as chosen, as mpl_graph_channels_last; 0: unknown */
    bool as_auto;               /* auto_ns is known, and about as low: take that instead */
} mpl_chosen;

/* The layout and implementation of each operation that are the fastest together, reorders counted
 * (mpl_layouts_choose), laid[n_ops]. MPL_EINPUT: `path` lacks a time. */
mpl_status mpl_tuned_choose(mpl_ctx *ctx, const mpl_graph *g, const mpl_op_times *times,
                            const char *path, mpl_laid *laid, mpl_chosen *out);
/* The fastest known time of each operation as it is laid, ns[n_ops].
 * MPL_EINPUT: `path` lacks one. */
mpl_status mpl_tuned_times(mpl_ctx *ctx, const mpl_graph *g, const char *path, uint64_t *ns);
/* --layout tuned: replaces *g by the graph that is laid so, from the times in a file; *ns: what it
 * takes by them. A graph whose layouts cannot be chosen (mpl_layouts_open) stays, *ns is 0 then. */
mpl_status mpl_tuned_graph(mpl_ctx *ctx, const char *path, mpl_graph **g, uint64_t *ns);
