/* template_job.h -- memplan plan, certify, export and run of templates: one plan for every shape of
 * a range (planners/plan/template.h). */
#ifndef MPL_TEMPLATE_JOB_H
#define MPL_TEMPLATE_JOB_H

#include "harness/job/execute.h"
#include "harness/shapes/shape_job.h"
#include "planners/template/template_plan.h"

/* Figures of shapes drawn from a range. Regret is arena over bound. */
typedef struct mpl_drawn {
    uint32_t n;
    double worst, sum, corner;         /* corner: at the smallest shape */
    int64_t worst_at[MPL_MAX_SYMBOLS]; /* [symbols] */
    uint64_t least_bytes, most_bytes;  /* of the arenas */
    int64_t *ns;                       /* [n] to evaluate each, or to plan it */
} mpl_drawn;

/* GRAPH over ranges, planned. */
typedef struct mpl_template_job {
    mpl_ranges ranges;
    mpl_shape_job middle; /* the shape at which its structure was read */
    mpl_sym_graph *graph;
    mpl_sym_problem *sp;
    const char *way;    /* as a row names it: search, exact, constant, or a planner of --planner */
    mpl_template *tmpl; /* NULL: a plan for each shape */
    mpl_drawn drawn;
    uint64_t file_bytes; /* of the template alone [byte] */
    int64_t plan_ns, evaluate_ns;
    uint64_t ticks;
    mpl_record *row;
} mpl_template_job;

/* memplan plan over ranges: the template, checked, its shapes drawn, and its row. MPL_EINPUT: no
 * such planner over ranges. The caller calls mpl_template_job_fini even after a failure. */
mpl_status mpl_template_job_plan(mpl_ctx *ctx, const mpl_options *options, mpl_template_job *out);
/* Writes the template file. MPL_EINPUT: there is none, for each shape has a plan. */
mpl_status mpl_template_job_write(mpl_ctx *ctx, const mpl_template_job *job, const char *path);
void mpl_template_job_print(const mpl_template_job *job);
void mpl_template_job_fini(mpl_ctx *ctx, mpl_template_job *job);

/* ---- template files ---- */

enum { MPL_TEMPLATE_BOXES = 1000000 }; /* that a check of regret may halve, of each cell */

typedef struct mpl_template_opened {
    const char *path;
    mpl_template *tmpl;
    char *fields_json;
    mpl_record *row;
} mpl_template_opened;

/* Whether the file is a template, and no other plan file. */
bool mpl_template_named(mpl_ctx *ctx, const char *path);
/* Reads a template file; its template is not verified yet. */
mpl_status mpl_template_open(mpl_ctx *ctx, const char *path, mpl_template_opened *out);
void mpl_template_opened_fini(mpl_ctx *ctx, mpl_template_opened *opened);
/* memplan certify: checks the template and its regret, and prints a line, or leaves the row in
 * options->result. MPL_EINVALID: it is refused. */
mpl_status mpl_template_certify(mpl_ctx *ctx, mpl_options *options, const char *path);
/* c_template.c: memplan export --format c-template. */
mpl_status mpl_template_export_c(mpl_ctx *ctx, const mpl_template_opened *opened, const char *path);

/* ---- runs ---- */

/* Shapes of a template executed one after the other. */
typedef struct mpl_shapes_run {
    mpl_template_opened opened;
    mpl_drawn drawn;
    double error;     /* the largest of all shapes, against the run that shares nothing */
    mpl_shape_job at; /* the last shape, as the rest */
    mpl_plan *plan;   /* verified */
    mpl_executed executed;
    mpl_record *row;
} mpl_shapes_run;

/* memplan run GRAPH --plan TEMPLATE: at the shape that --dim and GRAPH give, or at --shapes N
 * shapes drawn by --seed of what they leave open. Each has its offsets evaluated and verified, and
 * its outputs compared bit for bit with the run that shares nothing. MPL_EINPUT: another graph's
 * template, a shape outside of it, an open size without --shapes. MPL_EINVALID: outputs differ, or
 * the arena is not what was evaluated. */
mpl_status mpl_shapes_execute(mpl_ctx *ctx, mpl_options *options, const char *graph,
                              mpl_shapes_run *out);
void mpl_shapes_print(const mpl_options *options, const mpl_shapes_run *run);
void mpl_shapes_run_fini(mpl_ctx *ctx, mpl_shapes_run *run);

/* drawn.c: what both do. Adds shape number drawn->n, of so many bytes and so low a bound. */
void mpl_drawn_add(mpl_drawn *drawn, uint32_t n_symbols, const int64_t *value, uint64_t bytes,
                   uint64_t bound, int64_t ns);
void mpl_drawn_fields(const mpl_drawn *drawn, const mpl_exprs *exprs, mpl_record *row);
/* Writes the worst regret of its cells. */
void mpl_regret_fields(const mpl_template *tmpl, mpl_record *row);
int64_t mpl_drawn_ns(const mpl_drawn *drawn); /* the median; sorts them */
/* "batch=3,seq=17" into text[MPL_SHAPE_TEXT]. */
enum { MPL_SHAPE_TEXT = 400 };
const char *mpl_shape_words(const mpl_exprs *exprs, const int64_t *value, char *text);
/* Parses --shapes N; 0: not given. MPL_EINPUT: no number from 1 to 10^6. */
mpl_status mpl_shapes_count(mpl_ctx *ctx, const mpl_options *options, uint32_t *n);

#endif
