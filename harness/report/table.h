/* table.h -- tables made from rows, and formats of export: each a line in its table. */
#ifndef MPL_TABLE_H
#define MPL_TABLE_H

#include "harness/report/grid.h"
#include "harness/job/job.h"
#include "harness/rows/rows.h"

typedef struct mpl_table_kind {
    const char *name;
    const char *about;
    mpl_status (*print)(mpl_ctx *ctx, const struct mpl_table_kind *kind, const mpl_rows *rows,
                        FILE *to, bool tsv);
    mpl_field field; /* what the cells of planners x graphs show; of others, what a row must have
                        for the table to be of it */
    bool rowless;    /* computed, whatever the rows are: none are read */
} mpl_table_kind;

extern const mpl_table_kind mpl_tables[]; /* ends with name NULL */
const mpl_table_kind *mpl_table_find(const char *name);

/* Cells of one row's line; none: it has no line. */
typedef mpl_status mpl_table_line(mpl_ctx *ctx, const mpl_rows *rows, const mpl_record *row,
                                  mpl_grid *grid);
/* A table of such lines below head[n_cols]. */
mpl_status mpl_table_lines(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                           bool tsv, uint32_t n_cols, const char *const *head,
                           mpl_table_line *line);

/* Begins the head of a column of times, which differ from run to run. */
#define MPL_TIMED "~"

/* table_published.c: results/published.tsv against the rows. */
mpl_status mpl_table_published(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                               FILE *to, bool tsv);

/* The same: a line a graph with what every planner needs and how long a run takes, beside what is
 * published of whole programs. */
mpl_status mpl_table_networks(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                              FILE *to, bool tsv);

/* table_peers.c: plans timed in turns with those of peers. */
mpl_status mpl_table_peers(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                           bool tsv);
/* table_paper.c: a line a planner over all graphs; the best plans on the two sides of kind->field;
 * a line a run. */
/* A line a graph that was planned in the order that it has and in another; what is saved on
 * average. */
mpl_status mpl_table_orders(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                            FILE *to, bool tsv);
mpl_status mpl_table_summary(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                             FILE *to, bool tsv);
mpl_status mpl_table_sides(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                           bool tsv);
mpl_status mpl_table_malloc(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                            FILE *to, bool tsv);
mpl_status mpl_table_executed(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                              FILE *to, bool tsv);
/* table_switches.c: a line a run with the options that change its problem, beside the first of its
 * graph and planner. */
mpl_status mpl_table_switches(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                              FILE *to, bool tsv);
/* table_ablation.c: a line for each engine or rule that a search did without. */
mpl_status mpl_table_ablation(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                              FILE *to, bool tsv);
/* table_recompute.c: a line a run of a training graph: what runs again, the memory, the work. */
mpl_status mpl_table_recompute(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                               FILE *to, bool tsv);
/* table_gpu.c: a line for each run on a GPU: its memory and times; what allocators without a plan
 * take. */
mpl_status mpl_table_gpu(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                         bool tsv);
mpl_status mpl_table_allocators(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                                FILE *to, bool tsv);
/* table_overview.c: planners over inference and training, serial and parallel, and over families of
 * networks; the graphs' names say which they are. */
mpl_status mpl_table_overview(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                              FILE *to, bool tsv);
mpl_status mpl_table_families(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                              FILE *to, bool tsv);
/* table_savings.c: graphs, and what each switch of their rows saves. */
mpl_status mpl_table_savings(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                             FILE *to, bool tsv);
/* The same graphs under choices of the optimiser's passes, a column each. */
mpl_status mpl_table_passes(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                            FILE *to, bool tsv);
/* table_views.c: programs, what each way of making SSA of them copies, runs and needs. */
mpl_status mpl_table_views(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows, FILE *to,
                           bool tsv);
/* "resnet50", "A" of ../lists/A.1048576.csv: a row's graph in a table; text holds 200 bytes. */
const char *mpl_graph_label(const mpl_record *row, char *text);
/* "pool:level=0", "exec:minimalloc": a row's planner in a table; text holds 120 bytes. */
const char *mpl_planner_label(const mpl_record *row, char *text);

/* table_pebble.c: all connected graphs of up to 6 vertices by what the pebble game takes, results
 * in place or not. */
mpl_status mpl_table_pebble(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                            FILE *to, bool tsv);
mpl_status mpl_table_pebble_still(mpl_ctx *ctx, const mpl_table_kind *kind, const mpl_rows *rows,
                                  FILE *to, bool tsv);

/* What an export may use; plan and row NULL: none was asked for. */
typedef struct mpl_export {
    const mpl_options *options;
    const mpl_job *job;
    const mpl_record *row;
    const mpl_plan *plan;
} mpl_export;

typedef struct mpl_export_format {
    const char *name;
    const char *about;
    bool needs_graph, needs_plan;
    mpl_status (*write)(mpl_ctx *ctx, const mpl_export *what, const char *path);
} mpl_export_format;

extern const mpl_export_format mpl_export_formats[]; /* ends with name NULL */

/* export_offline.c, export_onnx.c, export_trace.c */
mpl_status mpl_export_offline(mpl_ctx *ctx, const mpl_export *what, const char *path);
mpl_status mpl_export_trace(mpl_ctx *ctx, const mpl_export *what, const char *path);
mpl_status mpl_export_onnx(mpl_ctx *ctx, const mpl_export *what, const char *path);
mpl_status mpl_export_onnx_metadata(mpl_ctx *ctx, const mpl_export *what, const char *path);

#endif
