/* run_shapes.c -- executes a template's plans at shapes of its range. See template_job.h. */
#include "graphs/core/size.h"
#include "harness/cli/quote.h"
#include "harness/shapes/template_job.h"

#include <unistd.h>

/* The open symbol of a range; NULL: it is one shape. */
static const char *open_symbol(const mpl_exprs *exprs)
{
    for (uint32_t i = 0; i < mpl_exprs_n_symbols(exprs); i++)
        if (mpl_exprs_symbol(exprs, i)->first < mpl_exprs_symbol(exprs, i)->last)
            return mpl_exprs_symbol(exprs, i)->name;
    return NULL;
}

/* The shapes that are asked for: --shapes, else one. */
static mpl_status ask(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                      const mpl_exprs *exprs, uint32_t *n_shapes, mpl_ranges *asked)
{
    const char *name;

    MPL_PASS(mpl_shapes_count(ctx, options, n_shapes));
    MPL_PASS(mpl_ranges_within(ctx, options, graph, exprs, asked));
    name = open_symbol(asked->exprs);
    if (*n_shapes == 0 && name != NULL)
        return MPL_REFUSE(ctx,
                          "run: the size of '%s' is open: --dim %s=N gives it, --shapes N draws it",
                          name, name);
    *n_shapes += *n_shapes == 0;
    return MPL_OK;
}

/* ---- one shape ---- */

static mpl_status other_graph(mpl_ctx *ctx, const mpl_shapes_run *run, const char *graph,
                              const char *why)
{
    return MPL_REFUSE(ctx, "%.150s: a template of another graph than %.150s: %.150s",
                      run->opened.path, graph, why);
}

/* Whether the graph is the one that was planned: the same operations, attributes and dims at the
 * shape where that was read. */
static mpl_status check_graph(mpl_ctx *ctx, const mpl_ranges *ranges, const mpl_shapes_run *run)
{
    mpl_status st = MPL_OK;
    const mpl_exprs *exprs = run->opened.tmpl->problem->exprs;
    const char *want = mpl_record_get_text(run->opened.row, MPL_FIELD_graph_hash);
    int64_t middle[MPL_MAX_SYMBOLS];
    char hash[17], shape[MPL_SHAPE_TEXT], why[MPL_SHAPE_TEXT + 100];
    mpl_shape_job at = {0};

    if (want == NULL)
        return MPL_OK;
    MPL_TRY(mpl_ranges_middle(ctx, exprs, middle));
    MPL_TRY(mpl_shape_open(ctx, &ranges->options, ranges->graph, exprs, middle, &at));
    snprintf(hash, sizeof hash, "%016" PRIx64, mpl_graph_hash(at.job.source.graph));
    snprintf(why, sizeof why, "at %s its operations, attributes or dims differ",
             mpl_shape_words(exprs, middle, shape));
    if (strcmp(hash, want) != 0)
        st = other_graph(ctx, run, ranges->graph, why);
out:
    mpl_shape_job_fini(ctx, &at);
    return st;
}

/* Takes what the file holds fixed over all shapes: order, choices, streams. */
static mpl_status decide(mpl_ctx *ctx, const char *graph, mpl_shapes_run *run)
{
    mpl_status st = MPL_OK;
    mpl_job *job = &run->at.job;
    const char *path = run->opened.path, *fields = run->opened.fields_json;
    mpl_plan_choices choices = {0};

    st = mpl_plan_read_choices(ctx, path, fields, job->source.graph->n_ops, &choices);
    if (st == MPL_OK && choices.order == NULL)
        st = MPL_REFUSE(ctx, "%.150s: 'op_order' is missing", path);
    if (st == MPL_OK && job->safety.kind == MPL_safety_streams)
        st = mpl_plan_read_streams(ctx, path, fields, job->source.graph, &job->streams);
    if (st == MPL_OK)
        st = mpl_shape_decided(ctx, &choices, &run->at);
    if (st == MPL_EINPUT) { /* the file is named once */
        const char *why = ctx->message;

        if (strncmp(why, path, strlen(path)) == 0)
            why += strlen(path) + strspn(why + strlen(path), ": ");
        st = other_graph(ctx, run, graph, why);
    }
    mpl_plan_choices_fini(ctx, &choices);
    return st;
}

/* Whether the buffers are the graph's own, with the sizes that they have at this shape; of sizes
 * that have bounds, no larger ones. */
static mpl_status check_sizes(mpl_ctx *ctx, const char *graph, const uint64_t *bytes,
                              const mpl_shapes_run *run)
{
    const mpl_problem *p = run->opened.tmpl->problem->at, *own = run->at.job.problem;
    char why[200], a[24], b[24];
    bool bounded = !mpl_record_is_null(run->opened.row, MPL_FIELD_bounded);

    if (own->n < p->n || own->n_pools < p->n_pools) {
        snprintf(why, sizeof why, "it has %" PRIu32 " buffers, the graph %" PRIu32, p->n, own->n);
        return other_graph(ctx, run, graph, why);
    }
    for (mpl_buffer i = 0; i < own->n; i++) {
        bool there = i < p->n;

        if (there ? (own->bytes[i] == bytes[i] || (bounded && own->bytes[i] < bytes[i])) &&
                        own->pool[i] == p->pool[i] &&
                        strcmp(mpl_buffer_label(own, i, a), mpl_buffer_label(p, i, b)) == 0
                  : own->pool[i] >= p->n_pools)
            continue;
        snprintf(why, sizeof why,
                 "buffer %" PRIu32 " is '%.50s' of %" PRIu64
                 " bytes, the graph's '%.50s' has %" PRIu64,
                 i, there ? mpl_buffer_label(p, i, b) : "none", there ? bytes[i] : 0,
                 mpl_buffer_label(own, i, a), own->bytes[i]);
        return other_graph(ctx, run, graph, why);
    }
    return MPL_OK;
}

/* Places workspaces, which are a backend's and in no template. In serial they are never alive
 * together. */
static mpl_status place_others(mpl_ctx *ctx, const mpl_problem *p, uint32_t n, uint64_t *offset)
{
    mpl_plan *plan = NULL;
    mpl_run run;

    if (p->n == n || p->before == NULL)
        return MPL_OK;
    mpl_run_init(&run, ctx);
    MPL_PASS(mpl_planner_run(mpl_planner_find("greedy_size"), &run, p, &plan));
    memcpy(offset + n, plan->offset + n, (p->n - n) * sizeof *offset);
    mpl_plan_free(ctx, plan);
    return MPL_OK;
}

/* Evaluates the template at a shape, and verifies the offsets as a plan of the graph's own
 * problem. *arena: what is taken of pool 0, of a constant plan what is reserved [byte]. */
static mpl_status evaluate(mpl_ctx *ctx, const char *graph, const int64_t *value, int64_t *ns,
                           uint64_t *arena, mpl_shapes_run *run)
{
    mpl_status st = MPL_OK;
    const mpl_template *tmpl = run->opened.tmpl;
    mpl_job *job = &run->at.job;
    uint32_t n = tmpl->problem->at->n;
    uint64_t *bytes = NULL, *pool = NULL, *offset = NULL;
    int64_t begin;

    MPL_TRY(mpl_new(ctx, bytes, n));
    MPL_TRY(mpl_new(ctx, offset, n));
    MPL_TRY(mpl_new(ctx, pool, tmpl->problem->at->n_pools));
    begin = mpl_clock_ns();
    MPL_TRY(mpl_template_offsets(ctx, tmpl, value, offset, bytes, pool));
    *ns = mpl_clock_ns() - begin;
    MPL_TRY(check_sizes(ctx, graph, bytes, run));
    MPL_TRY(mpl_plan_new(ctx, job->problem, &run->plan));
    memcpy(run->plan->offset, offset, n * sizeof *offset);
    MPL_TRY(place_others(ctx, job->problem, n, run->plan->offset));
    run->plan->claim = MPL_FEASIBLE;
    MPL_TRY(mpl_verify_all(ctx, job->source.graph, job->map, job->problem, run->plan));
    MPL_TRY(mpl_plan_bound(ctx, job->problem, run->plan));
    if (mpl_record_is_null(run->opened.row, MPL_FIELD_bounded) &&
        (tmpl->cell[0].arena != NULL ? run->plan->peak_bytes > pool[0]
                                     : run->plan->peak_bytes != pool[0]))
        MPL_FAIL(ctx, MPL_EINVALID,
                 "%.150s: its arena was evaluated to %" PRIu64 " bytes, its plan ends at %" PRIu64,
                 run->opened.path, pool[0], run->plan->peak_bytes);
    *arena = tmpl->cell[0].arena != NULL ? pool[0] : run->plan->peak_bytes;
out:
    mpl_free_each(ctx, bytes, pool, offset);
    return st;
}

/* Outputs are those of the run that shares nothing, bit for bit, and the arena is the one that was
 * evaluated: no page beyond it became resident. */
static mpl_status judge(mpl_ctx *ctx, const char *shape, const mpl_shapes_run *run)
{
    const mpl_exec_facts *facts = &run->executed.measured.facts;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    MPL_PASS(mpl_executed_judge(ctx, run->at.job.text, &run->executed));
    if (run->executed.error != 0)
        return MPL_ERROR(
            ctx, MPL_EINVALID,
            "%.200s at %.200s: outputs are not the bits of the run that shares nothing",
            run->at.job.text, shape);
    if (facts->arena_bytes != run->plan->peak_bytes ||
        facts->measured_bytes > mpl_align_up(run->plan->peak_bytes, page))
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "%.200s at %.200s: %" PRIu64 " bytes evaluated, %" PRIu64
                         " taken, %" PRIu64 " resident",
                         run->at.job.text, shape, run->plan->peak_bytes, facts->arena_bytes,
                         facts->measured_bytes);
    return MPL_OK;
}

static void forget_shape(mpl_ctx *ctx, mpl_shapes_run *run)
{
    mpl_executed_fini(ctx, &run->executed);
    memset(&run->executed, 0, sizeof run->executed);
    mpl_plan_free(ctx, run->plan);
    run->plan = NULL;
    mpl_shape_job_fini(ctx, &run->at);
}

static mpl_status run_one(mpl_ctx *ctx, const mpl_ranges *ranges, const int64_t *value,
                          mpl_shapes_run *run)
{
    char shape[MPL_SHAPE_TEXT];
    int64_t ns = 0;
    uint64_t arena = 0;

    forget_shape(ctx, run);
    MPL_PASS(mpl_shape_open(ctx, &ranges->options, ranges->graph, ranges->exprs, value, &run->at));
    if (ranges->options.shapes != NULL && !ranges->options.given[MPL_OPT_repeat])
        run->at.shape.options.repeat = 0; /* one run of each, which is not timed */
    MPL_PASS(mpl_graph_check_computed(ctx, run->at.job.source.graph));
    MPL_PASS(decide(ctx, ranges->graph, run));
    MPL_PASS(evaluate(ctx, ranges->graph, value, &ns, &arena, run));
    mpl_drawn_add(&run->drawn, mpl_exprs_n_symbols(ranges->exprs), value, arena,
                  run->at.job.bound_bytes, ns);
    MPL_PASS(mpl_execute(ctx, &run->at.shape.options, &run->at.job, run->plan, &run->executed));
    run->error = run->executed.error > run->error ? run->executed.error : run->error;
    return judge(ctx, mpl_shape_words(ranges->exprs, value, shape), run);
}

/* ---- all of them ---- */

static mpl_status make_row(mpl_ctx *ctx, const mpl_options *options, const mpl_ranges *ranges,
                           const char *graph, mpl_shapes_run *run)
{
    const mpl_record *of = run->opened.row;
    mpl_record *row;
    uint64_t n_cells = 1;

    MPL_PASS(mpl_job_row(ctx, &run->at.shape.options, &run->at.job, NULL, &run->row));
    row = run->row;
    MPL_PASS(mpl_job_plan_fields(ctx, &run->at.job, run->plan, row));
    mpl_executed_fields(ctx, &run->executed, row);
    mpl_record_text(row, MPL_FIELD_graph, graph);
    mpl_record_text(row, MPL_FIELD_ranges, mpl_record_get_text(of, MPL_FIELD_ranges));
    mpl_record_text(row, MPL_FIELD_template, mpl_record_get_text(of, MPL_FIELD_template));
    mpl_record_get_int(of, MPL_FIELD_n_cells, &n_cells);
    mpl_record_int(row, MPL_FIELD_n_cells, n_cells);
    mpl_record_int(row, MPL_FIELD_evaluate_ns, (uint64_t)mpl_drawn_ns(&run->drawn));
    mpl_regret_fields(run->opened.tmpl, row);
    mpl_drawn_fields(&run->drawn, ranges->exprs, row);
    mpl_record_text(row, MPL_FIELD_outputs, mpl_outputs_word(run->error));
    mpl_record_real(row, MPL_FIELD_max_rel_error, run->error);
    mpl_record_text(row, MPL_FIELD_shapes, options->shapes);
    if (options->shapes == NULL)
        return MPL_OK;
    mpl_record_int(row, MPL_FIELD_planned_bytes, run->drawn.most_bytes);
    mpl_record_null(row, MPL_FIELD_problem_hash); /* these are of the last shape alone */
    mpl_record_null(row, MPL_FIELD_naive_bytes);
    mpl_record_null(row, MPL_FIELD_packed_bytes);
    mpl_record_null(row, MPL_FIELD_bound_bytes);
    mpl_record_null(row, MPL_FIELD_measured_bytes);
    return MPL_OK;
}

mpl_status mpl_shapes_execute(mpl_ctx *ctx, mpl_options *options, const char *graph,
                              mpl_shapes_run *run)
{
    mpl_status st = MPL_OK;
    mpl_ranges a = {0};
    int64_t value[MPL_MAX_SYMBOLS];
    bool in_place = true;
    uint32_t n;
    mpl_rng rng;

    memset(run, 0, sizeof *run);
    MPL_TRY(mpl_template_open(ctx, options->plan, &run->opened));
    mpl_record_get_bool(run->opened.row, MPL_FIELD_in_place, &in_place);
    MPL_TRY(mpl_job_adopt(ctx, options, in_place, run->opened.row));
    if (options->backend == NULL)
        options->backend = mpl_backend_default()->name;
    MPL_TRY(ask(ctx, options, graph, run->opened.tmpl->problem->exprs, &n, &a));
    MPL_TRY(check_graph(ctx, &a, run));
    MPL_TRY(mpl_new(ctx, run->drawn.ns, n));
    mpl_rng_init(&rng, options->seed);
    for (uint32_t i = 0; i < n; i++) {
        MPL_TRY(mpl_point_draw(ctx, a.exprs, &rng, value));
        MPL_TRY(run_one(ctx, &a, value, run));
    }
    MPL_TRY(make_row(ctx, options, &a, graph, run));
out:
    mpl_ranges_fini(ctx, &a);
    return st;
}

void mpl_shapes_print(const mpl_options *options, const mpl_shapes_run *run)
{
    const mpl_drawn *drawn = &run->drawn;
    const mpl_template *tmpl = run->opened.tmpl;
    char text[MPL_SHAPE_TEXT];

    printf("graph     %s on %s (%s)\n", mpl_shown(options->args.item[0]), run->at.job.backend->name,
           run->at.job.backend->about);
    printf("template  %s: %" PRIu32 " buffers, %" PRIu32 " cell%s\n", mpl_shown(run->opened.path),
           tmpl->problem->at->n, tmpl->n_cells, tmpl->n_cells == 1 ? "" : "s");
    printf("outputs:  %s to the run that shares nothing, at each of %" PRIu32 " shapes%s\n",
           mpl_outputs_word(run->error), drawn->n, options->checked ? ", red zones whole" : "");
    printf("arenas    %s to %s, as evaluated\n", mpl_sized(drawn->least_bytes).text,
           mpl_sized(drawn->most_bytes).text);
    printf("regret    worst %.4f of the bound at %s, mean %.4f\n", drawn->worst,
           mpl_shape_words(tmpl->problem->exprs, drawn->worst_at, text), drawn->sum / drawn->n);
    printf("evaluated in %.3f us (median)\n", (double)mpl_drawn_ns(drawn) / 1e3);
}

void mpl_shapes_run_fini(mpl_ctx *ctx, mpl_shapes_run *run)
{
    forget_shape(ctx, run);
    mpl_record_free(ctx, run->row);
    mpl_free(ctx, run->drawn.ns);
    mpl_template_opened_fini(ctx, &run->opened);
    memset(run, 0, sizeof *run);
}
