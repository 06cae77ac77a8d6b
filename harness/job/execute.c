/* execute.c -- executes a plan and compares its outputs. See execute.h. */
#include "harness/job/execute.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>

#include "harness/cli/quote.h"

static mpl_status run_planned(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                              const mpl_plan *plan, const mpl_exec_options *exec_options,
                              const mpl_inputs *inputs, mpl_device *dev, mpl_executed *o)
{
    mpl_status st = MPL_OK;
    mpl_exec *exec = NULL;
    mpl_malloced *malloced = NULL;

    MPL_TRY(mpl_measure_new(ctx, job, plan, exec_options, inputs, dev, &exec));
    MPL_TRY(mpl_exec_run(exec, NULL));
    MPL_TRY(mpl_exec_facts_get(exec, &o->measured.facts));
    if (o->measured.facts.two_ways)
        MPL_TRY(mpl_exec_run(exec, NULL));
    MPL_TRY(mpl_measure_malloced(ctx, options, exec, &malloced, &o->measured.malloc_bytes));
    for (uint64_t i = 0; i < options->repeat; i++) {
        MPL_TRY(mpl_measure_pair(exec, malloced, i, &o->run_ns[i], &o->other_ns[i]));
        if (o->measured.facts.two_ways)
            MPL_TRY(mpl_exec_run(exec, &o->other_ns[i]));
    }
    MPL_TRY(mpl_measure_times(ctx, job, exec, &o->measured));
    MPL_TRY(mpl_exec_facts_get(exec, &o->measured.facts));
    o->measured.rss_bytes = mpl_rss_peak(); /* before another copy of the graph is made */
    MPL_TRY(mpl_outputs_get(exec, job->source.graph, o->outputs));
    MPL_TRY(mpl_early_new(ctx, exec, job->source.graph, &o->early));
out:
    mpl_malloced_free(ctx, malloced);
    mpl_exec_free(ctx, exec);
    return st;
}

/* Compares with a run without memory sharing. */
static mpl_status compare_unshared(mpl_ctx *ctx, const mpl_job *job,
                                   const mpl_exec_options *exec_options, const mpl_inputs *inputs,
                                   mpl_device *dev, mpl_executed *o)
{
    mpl_status st = MPL_OK;
    mpl_exec *exec = NULL;
    void *outputs = mpl_alloc(ctx, mpl_outputs_bytes(job->source.graph), 1);

    if (outputs == NULL)
        MPL_TRY(MPL_EMEM);
    MPL_TRY(mpl_measure_new(ctx, job, NULL, exec_options, inputs, dev, &exec));
    MPL_TRY(mpl_exec_run(exec, NULL));
    MPL_TRY(mpl_outputs_get(exec, job->source.graph, outputs));
    o->error = mpl_outputs_error(job->source.graph, o->outputs, outputs);
out:
    mpl_exec_free(ctx, exec);
    mpl_free(ctx, outputs);
    return st;
}

static mpl_status find_output(mpl_ctx *ctx, const mpl_graph *g, const mpl_binding *b, uint32_t *i)
{
    for (*i = 0; b->name != NULL && *i < g->n_outputs &&
                 strcmp(g->value_name[g->output[*i]], b->name) != 0;)
        ++*i;
    if (b->name == NULL || *i == g->n_outputs)
        *i = b->index;
    if (*i == MPL_NONE)
        return MPL_REFUSE(ctx, "--expect: no output '%s'; the first is '%s'", b->name,
                          g->value_name[g->output[0]]);
    if (*i >= g->n_outputs)
        return MPL_REFUSE(ctx, "--expect: no output of index %" PRIu32 ": there are %" PRIu32,
                          b->index, g->n_outputs);
    if (b->ramp)
        return MPL_REFUSE(ctx, "--expect: takes a file");
    return MPL_OK;
}

/* Keeps the output that misses its tolerance by most, or else comes closest to it. */
static void judge_expected(const mpl_graph *g, const mpl_binding *b, uint32_t i, uint64_t n,
                           const void *outputs, mpl_executed *o)
{
    const mpl_tensor *t = &b->tensor;
    const void *got = mpl_outputs_at(g, outputs, i);
    double share = mpl_compare_within(t->type, n, got, t->data, b->relative, b->absolute);

    if (o->expect_allowed > 0 && share <= o->expect_share)
        return;
    o->expect_share = share;
    o->expect_allowed = b->relative;
    o->expect_error = mpl_compare(t->type, n, got, t->data);
}

/* --expect: checked before any run (outputs and rows NULL), compared after. */
static mpl_status compare_expected(mpl_ctx *ctx, const mpl_graph *g, const mpl_bindings *expect,
                                   const void *outputs, const uint64_t *rows, mpl_executed *o)
{
    char want[200], got[200];

    for (uint32_t k = 0; k < expect->n; k++) {
        const mpl_tensor *t = &expect->item[k].tensor;
        uint32_t i, axis;
        uint64_t n = 0;
        mpl_value v;
        mpl_shape shape;

        MPL_PASS(find_output(ctx, g, &expect->item[k], &i));
        v = g->output[i];
        shape = mpl_early_shape(g, rows, i);
        if (outputs == NULL && mpl_early_may(g, i, &axis) && t->shape.rank > axis &&
            t->shape.dim[axis] < shape.dim[axis])
            shape.dim[axis] = t->shape.dim[axis]; /* the run decides the number of slices */
        if (t->type != g->value_type[v] || !mpl_shape_equal(&t->shape, &shape))
            return MPL_ERROR(ctx, outputs == NULL ? MPL_EINPUT : MPL_EINVALID,
                             "--expect: output '%s' is %s%s; the file has %s%s", g->value_name[v],
                             mpl_type_name(g->value_type[v]), mpl_shape_text(&shape, want),
                             mpl_type_name(t->type), mpl_shape_text(&t->shape, got));
        if (outputs == NULL || !mpl_shape_count(&t->shape, &n))
            continue;
        judge_expected(g, &expect->item[k], i, n, outputs, o);
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
                       const mpl_plan *plan, mpl_executed *o)
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
    o->repeat = (uint32_t)options->repeat;
    o->expected = expect.n > 0;
    MPL_TRY(mpl_measure_options(ctx, options, &exec_options));
    MPL_TRY(compare_expected(ctx, g, &expect, NULL, NULL, o));
    MPL_TRY(mpl_inputs_make(ctx, options, job, &inputs));
    MPL_TRY(mpl_new_each(ctx, options->repeat, o->run_ns, o->other_ns));
    if ((o->outputs = mpl_alloc(ctx, mpl_outputs_bytes(g), 1)) == NULL)
        MPL_TRY(MPL_EMEM);
    MPL_TRY(job->backend->open(ctx, &device_options, &dev));
    o->measured.workers = exec_options.n_workers;
    o->measured.before_bytes = mpl_rss_now();
    MPL_TRY(run_planned(ctx, options, job, plan, &exec_options, &inputs, dev, o));
    if (job->backend->replay != NULL && job->problem->before == NULL)
        MPL_TRY(mpl_allocators_play(ctx, job->problem, job->backend, dev, &o->measured.allocators));
    MPL_TRY(compare_unshared(ctx, job, &exec_options, &inputs, dev, o));
    if (job->twice.n_ops > 0)
        MPL_TRY(mpl_again_check(ctx, options, job, &inputs, dev, o->outputs));
    mpl_early_cut(g, o->early.rows, o->outputs);
    MPL_TRY(compare_expected(ctx, g, &expect, o->outputs, o->early.rows, o));
    if (options->dump != NULL)
        MPL_TRY(dump_outputs(ctx, g, options->dump, o->outputs, o->early.rows));
out:
    if (dev != NULL)
        job->backend->close(dev);
    mpl_inputs_fini(ctx, &inputs);
    mpl_bindings_fini(ctx, &expect);
    return st;
}

void mpl_executed_fields(mpl_ctx *ctx, const mpl_executed *o, mpl_record *row)
{
    mpl_status held = mpl_measure_check(ctx, &o->measured);

    mpl_record_int(row, MPL_FIELD_repeat, o->repeat);
    mpl_record_ints(row, MPL_FIELD_run_ns, o->repeat, o->run_ns);
    if (o->measured.facts.two_ways)
        mpl_record_ints(row, MPL_FIELD_replay_ns, o->repeat, o->other_ns);
    if (o->measured.malloc_bytes > 0)
        mpl_record_ints(row, MPL_FIELD_malloc_ns, o->repeat, o->other_ns);
    if (o->measured.workers > 1)
        mpl_record_ints(row, MPL_FIELD_concurrent_ns, o->repeat, o->other_ns);
    mpl_measure_fields(&o->measured, row);
    if (held != MPL_OK) {
        mpl_record_text(row, MPL_FIELD_status, mpl_row_status(held));
        mpl_record_text(row, MPL_FIELD_reason, ctx->message);
    }
    mpl_record_text(row, MPL_FIELD_outputs, mpl_outputs_word(o->error));
    mpl_record_real(row, MPL_FIELD_max_rel_error, o->error);
    if (o->early.text != NULL && o->early.text[0] != '\0')
        mpl_record_text(row, MPL_FIELD_ended_early, o->early.text);
}

mpl_status mpl_executed_judge(mpl_ctx *ctx, const char *graph, const mpl_executed *o)
{
    MPL_PASS(mpl_measure_check(ctx, &o->measured));
    if (o->error > MPL_REL_TOLERANCE)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "%s: outputs differ from the run that shares nothing: relative error %.3g",
                         graph, o->error);
    if (o->expected && o->expect_share > 1)
        return MPL_ERROR(
            ctx, MPL_EINVALID,
            "%s: outputs differ from what was expected: relative error %.3g, %.3g is allowed",
            graph, o->expect_error, o->expect_allowed);
    return MPL_OK;
}

void mpl_executed_fini(mpl_ctx *ctx, mpl_executed *o)
{
    mpl_free_each(ctx, o->run_ns, o->other_ns, o->outputs);
    mpl_early_fini(ctx, &o->early);
}
