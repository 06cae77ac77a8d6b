/* template_job.c -- plans GRAPH over ranges. See template_job.h. */
#include "harness/shapes/template_job.h"

#include <sys/stat.h>

#include "graphs/core/size.h"
#include "harness/cli/quote.h"
#include "harness/cli/scratch.h"
#include "harness/job/asked.h"

/* ---- the way ---- */

/* Planners of --planner over ranges: what others do. */
static const struct {
    const char *name;
    mpl_template_method method;
} others[] = {
    {"upper", MPL_TEMPLATE_CONSTANT}, {"equal", MPL_TEMPLATE_EQUAL},
    {"slab", MPL_TEMPLATE_SLAB},      {"example", MPL_TEMPLATE_EXAMPLE},
    {"replan", MPL_TEMPLATE_METHODS},
};

static mpl_status choose_way(mpl_ctx *ctx, const mpl_options *options, mpl_template_ask *ask,
                             const char **way)
{
    if (options->cells < 1 || options->cells > 4096)
        return MPL_REFUSE(ctx, "--cells: %" PRIu64 " is not from 1 to 4096", options->cells);
    *ask = (mpl_template_ask){.cells = (uint32_t)options->cells,
                              .method = options->constant ? MPL_TEMPLATE_CONSTANT
                                        : options->template == MPL_template_exact
                                            ? MPL_TEMPLATE_EXACT
                                            : MPL_TEMPLATE_SEARCH};
    *way = mpl_template_method_name[ask->method];
    if (options->given[MPL_OPT_capacity] || mpl_asks_constraints(options))
        return MPL_REFUSE(ctx, "--capacity, --fix, --reserve, --chunk, --apart and --together are "
                               "of one shape: over ranges all buffers move with the sizes");
    if (options->planner == NULL)
        return MPL_OK;
    if (options->constant || options->given[MPL_OPT_template])
        return MPL_REFUSE(ctx, "one of --planner, --template and --constant is needed, not two");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, options->planner) == 0) {
            ask->method = others[i].method;
            *way = others[i].name;
            return MPL_OK;
        }
    return MPL_REFUSE(ctx,
                      "--planner %.60s: over ranges there are upper, equal, slab, example, replan; "
                      "without --planner, memplan's own template",
                      options->planner);
}

/* ---- planning ---- */

/* Reads the graph at a shape, for the symbolic analysis. */
static mpl_status read_at(mpl_ctx *ctx, void *arg, const mpl_exprs *exprs, const int64_t *value,
                          mpl_graph **out)
{
    const mpl_ranges *ranges = arg;
    mpl_shape_job at;
    mpl_status st = mpl_shape_open(ctx, &ranges->options, ranges->graph, exprs, value, &at);

    if (st == MPL_OK)
        *out = at.job.source.graph, at.job.source.graph = NULL;
    mpl_shape_job_fini(ctx, &at);
    return st;
}

/* Opens the graph in the middle of the range and expresses the sizes of its problem. */
static mpl_status open_range(mpl_ctx *ctx, const mpl_options *options, mpl_template_job *job)
{
    mpl_ranges *ranges = &job->ranges;
    int64_t middle[MPL_MAX_SYMBOLS];
    mpl_sym_reader reader = {read_at, ranges};
    mpl_problem_options po;

    MPL_PASS(mpl_ranges_read(ctx, options, options->args.item[0], ranges));
    MPL_PASS(mpl_ranges_middle(ctx, ranges->exprs, middle));
    MPL_PASS(
        mpl_shape_open(ctx, &ranges->options, ranges->graph, ranges->exprs, middle, &job->middle));
    MPL_PASS(mpl_shape_order(ctx, &job->middle, &po));
    MPL_PASS(mpl_sym_graph_new(ctx, ranges->exprs, &reader, middle, options->bounded, &job->graph));
    return mpl_sym_problem_new(ctx, job->graph, job->middle.job.order, &po, options->bounded,
                               &job->sp);
}

/* Draws shapes, and evaluates or plans each. */
static mpl_status draw(mpl_ctx *ctx, const mpl_options *options, mpl_run *run, uint32_t n,
                       mpl_template_job *job)
{
    mpl_status st = MPL_OK;
    const mpl_exprs *exprs = job->ranges.exprs;
    uint32_t n_symbols = mpl_exprs_n_symbols(exprs);
    int64_t value[MPL_MAX_SYMBOLS], begin, ns;
    uint64_t bound, *offset = NULL, *pool = NULL;
    mpl_rng rng;

    mpl_rng_init(&rng, options->seed);
    MPL_TRY(mpl_new(ctx, job->drawn.ns, n + 1));
    MPL_TRY(mpl_new(ctx, offset, job->sp->at->n));
    MPL_TRY(mpl_new(ctx, pool, job->sp->at->n_pools));
    for (uint32_t i = 0; i <= n; i++) { /* the smallest shape, then those drawn */
        MPL_TRY(i == 0 ? mpl_point_corner(ctx, exprs, 0, value)
                       : mpl_point_draw(ctx, exprs, &rng, value));
        begin = mpl_clock_ns();
        MPL_TRY(job->tmpl != NULL ? mpl_template_offsets(ctx, job->tmpl, value, offset, NULL, pool)
                                  : mpl_template_replan(run, job->sp, value, &pool[0]));
        ns = mpl_clock_ns() - begin;
        MPL_TRY(mpl_template_bound(ctx, job->sp, value, &bound));
        if (i == 0)
            job->drawn.corner = bound > 0 ? (double)pool[0] / (double)bound : 1;
        else
            mpl_drawn_add(&job->drawn, n_symbols, value, pool[0], bound, ns);
        job->evaluate_ns = ns;
    }
    if (n > 0)
        job->evaluate_ns = mpl_drawn_ns(&job->drawn);
out:
    mpl_free_each(ctx, offset, pool);
    return st;
}

/* The bytes of the template's file without a row. */
static mpl_status measure_file(mpl_ctx *ctx, mpl_template_job *job)
{
    mpl_status st = MPL_OK;
    char folder[MPL_SCRATCH_ROOM], path[MPL_SCRATCH_ROOM + 16];
    struct stat facts = {0};

    MPL_PASS(mpl_scratch_new(ctx, folder));
    snprintf(path, sizeof path, "%s/template", folder);
    st = mpl_template_write(ctx, path, job->tmpl, NULL);
    if (st == MPL_OK && stat(path, &facts) == 0)
        job->file_bytes = (uint64_t)facts.st_size;
    mpl_scratch_remove(folder);
    return st;
}

static mpl_status make_row(mpl_ctx *ctx, const mpl_options *options, mpl_template_job *job)
{
    mpl_record *row;

    MPL_PASS(mpl_job_row(ctx, &job->middle.shape.options, &job->middle.job, NULL, &job->row));
    row = job->row;
    mpl_record_text(row, MPL_FIELD_graph, options->args.item[0]);
    mpl_record_null(row, MPL_FIELD_problem_hash); /* of one shape */
    mpl_record_null(row, MPL_FIELD_dims);
    for (uint32_t i = 0; i < job->ranges.options.dim.n; i++) {
        const char *text = job->ranges.options.dim.item[i];
        char name[200];

        snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
        mpl_record_member_text(row, MPL_FIELD_dims, name, text + strcspn(text, "=") + 1);
    }
    mpl_record_text(row, MPL_FIELD_ranges, job->ranges.text);
    mpl_record_text(row, MPL_FIELD_template, job->way);
    mpl_record_int(row, MPL_FIELD_n_cells, options->cells);
    mpl_record_text(row, MPL_FIELD_bounded, job->sp->bounded);
    mpl_record_int(row, MPL_FIELD_n_ruled, job->graph->n_ruled);
    mpl_record_int(row, MPL_FIELD_n_fitted, job->graph->n_fitted);
    mpl_record_text(row, MPL_FIELD_fitted, job->graph->fitted);
    mpl_record_int(row, MPL_FIELD_ticks, job->ticks);
    mpl_record_int(row, MPL_FIELD_plan_ns, (uint64_t)job->plan_ns);
    mpl_record_int(row, MPL_FIELD_evaluate_ns, (uint64_t)job->evaluate_ns);
    mpl_drawn_fields(&job->drawn, job->ranges.exprs, row);
    if (job->tmpl == NULL)
        return MPL_OK;
    mpl_record_bool(row, MPL_FIELD_verified, true);
    mpl_record_int(row, MPL_FIELD_template_bytes, job->file_bytes);
    mpl_regret_fields(job->tmpl, row);
    return MPL_OK;
}

mpl_status mpl_template_job_plan(mpl_ctx *ctx, const mpl_options *options, mpl_template_job *job)
{
    mpl_template_ask ask;
    mpl_params none = {0};
    uint32_t n;
    mpl_run run;
    int64_t begin;

    memset(job, 0, sizeof *job);
    MPL_PASS(choose_way(ctx, options, &ask, &job->way));
    MPL_PASS(mpl_shapes_count(ctx, options, &n));
    MPL_PASS(open_range(ctx, options, job));
    mpl_asked_run(ctx, options, &none, &run);
    begin = mpl_clock_ns();
    if (ask.method != MPL_TEMPLATE_METHODS)
        MPL_PASS(mpl_template_plan(&run, job->sp, &ask, &job->tmpl));
    job->plan_ns = mpl_clock_ns() - begin;
    job->ticks = run.ticks;
    MPL_PASS(draw(ctx, options, &run, n, job));
    if (job->tmpl != NULL)
        MPL_PASS(measure_file(ctx, job));
    return make_row(ctx, options, job);
}

mpl_status mpl_template_job_write(mpl_ctx *ctx, const mpl_template_job *job, const char *path)
{
    mpl_status st = MPL_OK;
    const mpl_job *middle = &job->middle.job;
    mpl_plan_choices choices = {middle->order, job->sp->shared, job->sp->copied};
    char *fields = NULL;

    if (job->tmpl == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "--planner replan: each shape has a plan of its own, no file");
    MPL_TRY(mpl_record_write(ctx, job->row, &fields));
    MPL_TRY(mpl_plan_add_choices(ctx, middle->source.graph->n_ops, &choices, &fields));
    MPL_TRY(mpl_plan_add_streams(ctx, middle->streams, &fields));
    MPL_TRY(mpl_template_write(ctx, path, job->tmpl, fields));
out:
    mpl_free(ctx, fields);
    return st;
}

void mpl_template_job_fini(mpl_ctx *ctx, mpl_template_job *job)
{
    mpl_template_free(ctx, job->tmpl);
    mpl_sym_problem_free(ctx, job->sp);
    mpl_sym_graph_free(ctx, job->graph);
    mpl_shape_job_fini(ctx, &job->middle);
    mpl_ranges_fini(ctx, &job->ranges);
    mpl_record_free(ctx, job->row);
    mpl_free(ctx, job->drawn.ns);
    memset(job, 0, sizeof *job);
}

/* ---- what is printed ---- */

static void print_regret(const mpl_template_job *job)
{
    char text[MPL_SHAPE_TEXT];
    uint32_t worst = 0;
    uint64_t most = mpl_template_most(job->tmpl, &worst);
    const mpl_regret *regret = &job->tmpl->cell[worst].regret;

    if (regret->at != NULL && regret->bound > 0)
        printf("regret   %.4f of the bound at %s: %" PRIu64 " bytes, bound %" PRIu64 "\n",
               (double)regret->arena / (double)regret->bound,
               mpl_shape_words(job->ranges.exprs, regret->at, text), regret->arena, regret->bound);
    if (most != UINT64_MAX)
        printf("proved   no shape needs more than %.4f of its bound\n",
               (double)most / (double)MPL_REGRET_ONE);
}

void mpl_template_job_print(const mpl_template_job *job)
{
    char text[MPL_SHAPE_TEXT];
    uint32_t n_relations = 0, n = job->tmpl != NULL ? job->tmpl->n_cells : 0;

    printf("graph    %s: %" PRIu32 " buffers, %s\n", mpl_shown(job->ranges.graph), job->sp->at->n,
           job->middle.job.safety.text);
    printf("ranges   %s\n", job->ranges.text);
    printf("sizes    of %" PRIu32 " results by their operators' rules, %" PRIu32
           " numbers of attributes fitted\n",
           job->graph->n_ruled, job->graph->n_leaves);
    if (job->graph->n_fitted > 0)
        printf("fitted   sizes of %" PRIu32 " results, the first %s\n", job->graph->n_fitted,
               job->graph->fitted);
    for (uint32_t i = 0; i < n; i++)
        n_relations += job->tmpl->cell[i].n_relations;
    if (job->tmpl != NULL) {
        printf("template %s: %" PRIu32 " cell%s, %" PRIu32 " relations, checked\n", job->way, n,
               n == 1 ? "" : "s", n_relations);
        print_regret(job);
    }
    if (job->drawn.n > 0)
        printf("drawn    %" PRIu32 " shapes: worst %.4f at %s, mean %.4f; %s to %s\n", job->drawn.n,
               job->drawn.worst, mpl_shape_words(job->ranges.exprs, job->drawn.worst_at, text),
               job->drawn.sum / job->drawn.n, mpl_sized(job->drawn.least_bytes).text,
               mpl_sized(job->drawn.most_bytes).text);
    printf("time     %.3f ms, and %.3f us a shape of %" PRIu32 " buffers\n",
           (double)job->plan_ns / 1e6, (double)job->evaluate_ns / 1e3, job->sp->at->n);
}
