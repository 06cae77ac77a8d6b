/* execute.c -- executes a plan and compares its outputs. See execute.h. */
#include "harness/job/execute.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>

#include "harness/cli/quote.h"

static mpl_status run_planned(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                              const mpl_plan *plan, const mpl_exec_options *exec_options,
                              const mpl_inputs *inputs, mpl_device *dev, mpl_executed *executed)
{
    mpl_status st = MPL_OK;
    mpl_exec *exec = NULL;
    mpl_malloced *malloced = NULL;

    MPL_TRY(mpl_measure_new(ctx, job, plan, exec_options, inputs, dev, &exec));
    MPL_TRY(mpl_exec_run(exec, NULL));
    MPL_TRY(mpl_exec_facts_get(exec, &executed->measured.facts));
    if (executed->measured.facts.two_ways)
        MPL_TRY(mpl_exec_run(exec, NULL));
    MPL_TRY(mpl_measure_malloced(ctx, options, exec, &malloced, &executed->measured.malloc_bytes));
    for (uint64_t i = 0; i < options->repeat; i++) {
        MPL_TRY(mpl_measure_pair(exec, malloced, i, &executed->run_ns[i], &executed->other_ns[i]));
        if (executed->measured.facts.two_ways)
            MPL_TRY(mpl_exec_run(exec, &executed->other_ns[i]));
    }
    MPL_TRY(mpl_measure_times(ctx, job, exec, &executed->measured));
    MPL_TRY(mpl_exec_facts_get(exec, &executed->measured.facts));
    executed->measured.rss_bytes = mpl_rss_peak(); /* before another copy of the graph is made */
    MPL_TRY(mpl_outputs_get(exec, job->source.graph, executed->outputs));
    MPL_TRY(mpl_early_new(ctx, exec, job->source.graph, &executed->early));
out:
    mpl_malloced_free(ctx, malloced);
    mpl_exec_free(ctx, exec);
    return st;
}

/* Compares with a run without memory sharing. */
static mpl_status compare_unshared(mpl_ctx *ctx, const mpl_job *job,
                                   const mpl_exec_options *exec_options, const mpl_inputs *inputs,
                                   mpl_device *dev, mpl_executed *executed)
{
    mpl_status st = MPL_OK;
    mpl_exec *exec = NULL;
    void *outputs = mpl_alloc(ctx, mpl_outputs_bytes(job->source.graph), 1);

    if (outputs == NULL)
        MPL_TRY(MPL_EMEM);
    MPL_TRY(mpl_measure_new(ctx, job, NULL, exec_options, inputs, dev, &exec));
    MPL_TRY(mpl_exec_run(exec, NULL));
    MPL_TRY(mpl_outputs_get(exec, job->source.graph, outputs));
    executed->error = mpl_outputs_error(job->source.graph, executed->outputs, outputs);
out:
    mpl_exec_free(ctx, exec);
    mpl_free(ctx, outputs);
    return st;
}

static mpl_status find_output(mpl_ctx *ctx, const mpl_graph *g, const mpl_binding *binding,
                              uint32_t *i)
{
    for (*i = 0; binding->name != NULL && *i < g->n_outputs &&
                 strcmp(g->value_name[g->output[*i]], binding->name) != 0;)
        ++*i;
    if (binding->name == NULL || *i == g->n_outputs)
        *i = binding->index;
    if (*i == MPL_NONE)
        return MPL_REFUSE(ctx, "--expect: no output '%s'; the first is '%s'", binding->name,
                          g->value_name[g->output[0]]);
    if (*i >= g->n_outputs)
        return MPL_REFUSE(ctx, "--expect: no output of index %" PRIu32 ": there are %" PRIu32,
                          binding->index, g->n_outputs);
    if (binding->ramp)
        return MPL_REFUSE(ctx, "--expect: takes a file");
    return MPL_OK;
}

/* Keeps the output that misses its tolerance by most, or else comes closest to it. */
static void judge_expected(const mpl_graph *g, const mpl_binding *binding, uint32_t i, uint64_t n,
                           const void *outputs, mpl_executed *executed)
{
    const mpl_tensor *tensor = &binding->tensor;
    const void *got = mpl_outputs_at(g, outputs, i);
    double share = mpl_compare_within(tensor->type, n, got, tensor->data, binding->relative,
                                      binding->absolute);

    if (executed->expect_allowed > 0 && share <= executed->expect_share)
        return;
    executed->expect_share = share;
    executed->expect_allowed = binding->relative;
    executed->expect_error = mpl_compare(tensor->type, n, got, tensor->data);
}

/* --expect: checked before any run (outputs and rows NULL), compared after. */
static mpl_status compare_expected(mpl_ctx *ctx, const mpl_graph *g, const mpl_bindings *expect,
                                   const void *outputs, const uint64_t *rows,
                                   mpl_executed *executed)
{
    char want[200], got[200];

    for (uint32_t k = 0; k < expect->n; k++) {
        const mpl_tensor *tensor = &expect->item[k].tensor;
        uint32_t i, axis;
        uint64_t n = 0;
        mpl_value v;
        mpl_shape shape;

        MPL_PASS(find_output(ctx, g, &expect->item[k], &i));
        v = g->output[i];
        shape = mpl_early_shape(g, rows, i);
        if (outputs == NULL && mpl_early_may(g, i, &axis) && tensor->shape.rank > axis &&
            tensor->shape.dim[axis] < shape.dim[axis])
            shape.dim[axis] = tensor->shape.dim[axis]; /* the run decides the number of slices */
        if (tensor->type != g->value_type[v] || !mpl_shape_equal(&tensor->shape, &shape))
            return MPL_ERROR(ctx, outputs == NULL ? MPL_EINPUT : MPL_EINVALID,
                             "--expect: output '%s' is %s%s; the file has %s%s", g->value_name[v],
                             mpl_type_name(g->value_type[v]), mpl_shape_text(&shape, want),
                             mpl_type_name(tensor->type), mpl_shape_text(&tensor->shape, got));
        if (outputs == NULL || !mpl_shape_count(&tensor->shape, &n))
            continue;
        judge_expected(g, &expect->item[k], i, n, outputs, executed);
    }
    return MPL_OK;
}

/* Writes DIR/NAME.npy of each output. */
static mpl_status dump_outputs(mpl_ctx *ctx, const mpl_graph *g, const char *folder,
                               const void *outputs, const uint64_t *rows)
{
    char path[4096], name[MPL_FILE_NAME];

    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return MPL_REFUSE(ctx, "%s: cannot make the folder: %s", folder, strerror(errno));
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        mpl_value v = g->output[i];
        mpl_tensor t = {(mpl_type)g->value_type[v], mpl_early_shape(g, rows, i),
                        (void *)(uintptr_t)mpl_outputs_at(g, outputs, i)};

        if (snprintf(path, sizeof path, "%s/%s.npy", folder,
                     mpl_file_name(g->value_name[v], i, name)) >= (int)sizeof path)
            return MPL_REFUSE(ctx, "%s: the path is too long", folder);
        MPL_PASS(mpl_tensor_write(ctx, path, &t));
    }
    return MPL_OK;
}

mpl_status mpl_execute_check(mpl_ctx *ctx, const mpl_job *job)
{
    if (job->source.graph == NULL)
        return MPL_REFUSE(ctx, "run: %s is a list of buffers: it can be planned, not executed",
                          job->text);
    if (job->backend == NULL)
        return MPL_REFUSE(
            ctx, "run: the plan names no backend; plan with --backend B, or name one here");
    return MPL_OK;
}

mpl_status mpl_execute(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                       const mpl_plan *plan, mpl_executed *executed)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = job->source.graph;
    mpl_device_options device_options = {.n_threads = mpl_job_threads(options, &job->machine),
                                         .params = options->device};
    mpl_exec_options exec_options;
    mpl_inputs inputs = {0};
    mpl_bindings expect = {0};
    mpl_device *dev = NULL;

    MPL_TRY(mpl_execute_check(ctx, job));
    MPL_TRY(mpl_bindings_read(ctx, "--expect", &options->expect, &expect));
    executed->repeat = (uint32_t)options->repeat;
    executed->expected = expect.n > 0;
    MPL_TRY(mpl_measure_options(ctx, options, &exec_options));
    MPL_TRY(compare_expected(ctx, g, &expect, NULL, NULL, executed));
    MPL_TRY(mpl_inputs_make(ctx, options, job, &inputs));
    MPL_TRY(mpl_new_each(ctx, options->repeat, executed->run_ns, executed->other_ns));
    if ((executed->outputs = mpl_alloc(ctx, mpl_outputs_bytes(g), 1)) == NULL)
        MPL_TRY(MPL_EMEM);
    MPL_TRY(job->backend->open(ctx, &device_options, &dev));
    executed->measured.workers = exec_options.n_workers;
    executed->measured.before_bytes = mpl_rss_now();
    MPL_TRY(run_planned(ctx, options, job, plan, &exec_options, &inputs, dev, executed));
    if (job->backend->replay != NULL && job->problem->before == NULL)
        MPL_TRY(mpl_allocators_play(ctx, job->problem, job->backend, dev,
                                    &executed->measured.allocators));
    MPL_TRY(compare_unshared(ctx, job, &exec_options, &inputs, dev, executed));
    if (job->twice.n_ops > 0)
        MPL_TRY(mpl_again_check(ctx, options, job, &inputs, dev, executed->outputs));
    mpl_early_cut(g, executed->early.rows, executed->outputs);
    MPL_TRY(compare_expected(ctx, g, &expect, executed->outputs, executed->early.rows, executed));
    if (options->dump != NULL)
        MPL_TRY(dump_outputs(ctx, g, options->dump, executed->outputs, executed->early.rows));
out:
    if (dev != NULL)
        job->backend->close(dev);
    mpl_inputs_fini(ctx, &inputs);
    mpl_bindings_fini(ctx, &expect);
    return st;
}

void mpl_executed_fields(mpl_ctx *ctx, const mpl_executed *executed, mpl_record *row)
{
    mpl_status held = mpl_measure_check(ctx, &executed->measured);

    mpl_record_int(row, MPL_FIELD_repeat, executed->repeat);
    mpl_record_ints(row, MPL_FIELD_run_ns, executed->repeat, executed->run_ns);
    if (executed->measured.facts.two_ways)
        mpl_record_ints(row, MPL_FIELD_replay_ns, executed->repeat, executed->other_ns);
    if (executed->measured.malloc_bytes > 0)
        mpl_record_ints(row, MPL_FIELD_malloc_ns, executed->repeat, executed->other_ns);
    if (executed->measured.workers > 1)
        mpl_record_ints(row, MPL_FIELD_concurrent_ns, executed->repeat, executed->other_ns);
    mpl_measure_fields(&executed->measured, row);
    if (held != MPL_OK) {
        mpl_record_text(row, MPL_FIELD_status, mpl_row_status(held));
        mpl_record_text(row, MPL_FIELD_reason, ctx->message);
    }
    mpl_record_text(row, MPL_FIELD_outputs, mpl_outputs_word(executed->error));
    mpl_record_real(row, MPL_FIELD_max_rel_error, executed->error);
    if (executed->early.text != NULL && executed->early.text[0] != '\0')
        mpl_record_text(row, MPL_FIELD_ended_early, executed->early.text);
}

mpl_status mpl_executed_judge(mpl_ctx *ctx, const char *graph, const mpl_executed *executed)
{
    MPL_PASS(mpl_measure_check(ctx, &executed->measured));
    if (executed->error > MPL_REL_TOLERANCE)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "%s: outputs differ from the run that shares nothing: relative error %.3g",
                         graph, executed->error);
    if (executed->expected && executed->expect_share > 1)
        return MPL_ERROR(
            ctx, MPL_EINVALID,
            "%s: outputs differ from what was expected: relative error %.3g, %.3g is allowed",
            graph, executed->expect_error, executed->expect_allowed);
    return MPL_OK;
}

void mpl_executed_fini(mpl_ctx *ctx, mpl_executed *executed)
{
    mpl_free_each(ctx, executed->run_ns, executed->other_ns, executed->outputs);
    mpl_early_fini(ctx, &executed->early);
}
