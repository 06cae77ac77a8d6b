/* job_open.c -- reads GRAPH, runs its passes and orders it. See job.h. */
#include "harness/job/measure.h"
#include "harness/job/program.h"
#include "harness/tune/tuned.h"

/* ---- reading ---- */

/* --input for readers, which fold values that decide shapes. */
typedef struct input_store {
    const char **name;
    uint32_t *index;
    mpl_tensor *tensor;
} input_store;

static mpl_status fill_inputs(mpl_ctx *ctx, const mpl_bindings *inputs, input_store *store,
                              mpl_read_options *read)
{
    uint32_t n = 0;

    MPL_PASS(mpl_new_each(ctx, inputs->n, store->name, store->index, store->tensor));
    for (uint32_t i = 0; i < inputs->n; i++) {
        if (inputs->item[i].ramp)
            continue;
        store->name[n] = inputs->item[i].name;
        store->index[n] = inputs->item[i].index;
        store->tensor[n++] = inputs->item[i].tensor;
    }
    read->n_inputs = n;
    read->input_name = store->name;
    read->input_index = store->index;
    read->input_tensor = store->tensor;
    return MPL_OK;
}

/* Opens GRAPH without changes. */
static mpl_status open_source(mpl_ctx *ctx, const mpl_options *options, const char *graph,
                              mpl_job *job)
{
    mpl_status st = MPL_OK;
    mpl_reading read = {.options = {.rnn = options->rnn == MPL_rnn_unroll  ? MPL_RNN_UNROLL
                                           : options->rnn == MPL_rnn_ahead ? MPL_RNN_AHEAD
                                                                           : MPL_RNN_WHILE}};
    input_store inputs = {0};
    char *program = NULL;

    MPL_TRY(mpl_asked_dims(ctx, options, &read));
    MPL_TRY(fill_inputs(ctx, &job->inputs, &inputs, &read.options));
    MPL_TRY(mpl_program_text(ctx, options, &graph, &program));
    MPL_TRY(mpl_source_open(ctx, graph, &read.options, &job->source));
out:
    mpl_free_each(ctx, program, inputs.name, inputs.index, inputs.tensor);
    mpl_reading_fini(ctx, &read);
    return st;
}

mpl_status mpl_job_read(mpl_ctx *ctx, const mpl_options *options, const char *graph, mpl_job *job)
{
    *job = (mpl_job){.text = graph, .safety = options->safety};
    MPL_PASS(mpl_job_check_options(ctx, options));
    MPL_PASS(mpl_machine_get(ctx, &job->machine));
    MPL_PASS(mpl_bindings_read(ctx, "--input", &options->input, &job->inputs));
    if (options->opener != NULL)
        return options->opener->open(options->opener->arg, ctx, options, &job->source.problem);
    MPL_PASS(open_source(ctx, options, graph, job));
    return mpl_program_to_ssa(ctx, options, &job->source, &job->is_program, &job->ssa);
}

/* ---- passes ---- */

/* Writes the contents that a weight has when the graph runs. */
static mpl_status fill_weight(void *arg, const mpl_graph *g, mpl_value v, void *data)
{
    mpl_exec_make_weight(g, arg, v, data);
    return MPL_OK;
}

/* Under --weights, replaces the file's contents on reading, so that passes compute with the values
 * of the run. */
static mpl_status make_weights(mpl_ctx *ctx, mpl_graph *g, mpl_exec_options *run)
{
    mpl_status st = MPL_OK;
    void *data = NULL;

    for (mpl_value v = 0; v < g->n_values; v++) {
        if (g->value_role[v] != MPL_WEIGHT || g->value_data[v] == NULL ||
            !mpl_exec_is_random(g, run, v))
            continue;
        if ((data = mpl_alloc(ctx, g->value_bytes[v], 1)) == NULL)
            MPL_TRY(MPL_EMEM);
        mpl_exec_make_weight(g, run, v, data);
        mpl_free(ctx, g->value_data[v]);
        g->value_data[v] = data, data = NULL;
        g->value_splat[v] = 0;
    }
out:
    mpl_free(ctx, data);
    return st;
}

static mpl_status optimise(mpl_ctx *ctx, const mpl_options *options, mpl_job *job)
{
    mpl_exec_options run;
    mpl_pass_set set;

    if (strcmp(options->optimise, "none") == 0)
        return MPL_OK;
    MPL_PASS(mpl_pass_set_parse(ctx, options->optimise, &set));
    MPL_PASS(mpl_measure_options(ctx, options, &run));
    job->n_ops_before = job->source.graph->n_ops;
    if (mpl_pass_set_reads_weights(&set) && options->weights != NULL) {
        run.random_weights = true;
        MPL_PASS(make_weights(ctx, job->source.graph, &run));
    }
    return mpl_graph_optimise(ctx, &job->source.graph, &set,
                              &(mpl_weight_source){fill_weight, &run}, job->passes);
}

static mpl_status unroll(mpl_ctx *ctx, const mpl_options *options, const mpl_problem_options *asked,
                         mpl_job *job)
{
    uint64_t copies;

    MPL_PASS(mpl_unroll_parse(ctx, options->unroll, &copies));
    if (copies == 1)
        return MPL_OK;
    return mpl_graph_unroll(ctx, &job->source.graph, (uint32_t)copies, asked, &job->unrolled);
}

static mpl_status evaluate_twice(mpl_ctx *ctx, const mpl_options *options, mpl_job *job)
{
    mpl_status st = MPL_OK;
    mpl_strings names = {0};
    char *store = NULL;

    if (options->changed == NULL)
        goto out;
    MPL_TRY(mpl_strings_split(ctx, options->changed, "--changed", &store, &names));
    MPL_TRY(mpl_graph_incremental(ctx, &job->source.graph, names.n, names.item, &job->twice));
out:
    mpl_free_each(ctx, names.item, store);
    return st;
}

mpl_status mpl_job_passes(mpl_ctx *ctx, const mpl_options *options, mpl_job *job)
{
    mpl_problem_options asked = mpl_asked_problem(options);
    mpl_recompute_spec recompute;

    if (job->source.graph == NULL && options->changed != NULL)
        return MPL_REFUSE(ctx, "--changed: %s is a list of buffers; it has no inputs", job->text);
    if (job->source.graph == NULL && strcmp(options->unroll, "none") != 0)
        return MPL_REFUSE(ctx, "--unroll: %s is a list of buffers; it has no loops", job->text);
    if (job->source.graph == NULL)
        return MPL_OK;
    MPL_PASS(optimise(ctx, options, job));
    MPL_PASS(unroll(ctx, options, &asked, job));
    MPL_PASS(evaluate_twice(ctx, options, job));
    MPL_PASS(mpl_recompute_spec_parse(ctx, options->recompute, &recompute));
    MPL_PASS(mpl_recompute_graph(ctx, &asked, &recompute, &job->source.graph, &job->recomputed,
                                 &job->recompute_ns));
    MPL_PASS(mpl_tile_job(ctx, options->tile, &asked, &job->source.graph, &job->tiled));
    if (options->layout == MPL_layout_auto)
        MPL_PASS(mpl_graph_channels_last(ctx, &job->source.graph));
    if (options->layout == MPL_layout_tuned)
        MPL_PASS(mpl_tuned_graph(ctx, options->op_times, &job->source.graph, &job->tuned_ns));
    job->work_limit = mpl_job_work_limit(options, &job->source);
    return MPL_OK;
}

/* ---- the order ---- */

/* Keeps a copy of the job in the given order. */
static mpl_status keep_given(mpl_ctx *ctx, mpl_job *job)
{
    mpl_job *given = NULL;

    MPL_PASS(mpl_new(ctx, given, 1));
    *given = *job;
    given->order = NULL;
    job->given = given;
    MPL_PASS(mpl_new(ctx, given->order, job->source.graph->n_ops));
    return mpl_order_of(ctx, job->source.graph, mpl_order_find("given"), given->order);
}

/* Makes the order. A search depends on no backend and no clock, so that a plan file can name its
 * order. */
static mpl_status make_order(mpl_ctx *ctx, const mpl_options *options, mpl_job *job)
{
    mpl_status st = MPL_OK;
    const mpl_order_kind *kind;
    mpl_params params = {0};
    mpl_problem_options asked = mpl_asked_problem(options);
    mpl_order_run run;
    int64_t begin;

    MPL_TRY(mpl_new(ctx, job->order, job->source.graph->n_ops));
    MPL_TRY(mpl_order_spec_parse(ctx, options->order, &kind, &params));
    run = mpl_order_run_default(ctx);
    run.options = &asked;
    run.seed = options->seed;
    run.n_params = params.key.n;
    run.param_key = params.key.item;
    run.param_value = params.value.item;
    begin = mpl_clock_ns();
    MPL_TRY(mpl_order_make(&run, kind, job->source.graph, job->order));
    if (run.live_bytes > 0) /* no facts about plain orders or graphs with control flow */
        job->order_found =
            (mpl_order_found){run.live_bytes, run.bound_bytes, run.ticks,
                              run.method,     run.scope,       mpl_clock_ns() - begin};
    if (kind->search != NULL)
        MPL_TRY(keep_given(ctx, job));
out:
    mpl_params_fini(ctx, &params);
    return st;
}

void mpl_job_order_chosen(mpl_plan_choices *taken, mpl_job *job)
{
    job->graph_hash = mpl_graph_hash(job->source.graph);
    job->choices = *taken;
    job->order = job->choices.order;
    *taken = (mpl_plan_choices){0};
}

mpl_status mpl_job_order(mpl_ctx *ctx, const mpl_options *options, mpl_job *job)
{
    if (job->source.graph != NULL) {
        job->graph_hash = mpl_graph_hash(job->source.graph);
        MPL_PASS(make_order(ctx, options, job));
        return MPL_OK;
    }
    job->graph_hash = mpl_problem_hash(job->source.problem);
    MPL_PASS(mpl_asked_safety(ctx, options, job->text, job->source.problem));
    if (job->source.problem->before != NULL)
        job->safety = (mpl_safety)MPL_SAFETY(parallel);
    return MPL_OK;
}

/* ---- all of it ---- */

mpl_status mpl_job_open(mpl_ctx *ctx, const mpl_options *options, const char *graph, mpl_job *job)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_job_read(ctx, options, graph, job));
    MPL_TRY(mpl_job_passes(ctx, options, job));
    MPL_TRY(mpl_job_order(ctx, options, job));
out:
    if (st != MPL_OK)
        mpl_job_fini(ctx, job);
    return st;
}
