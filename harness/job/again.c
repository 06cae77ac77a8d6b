/* again.c -- compares an incremental evaluation with a whole evaluation of the same inputs. See
 * measure.h. */
#include "harness/job/measure.h"

/* Index among n items of the value with that name plus `ending`; n: none. */
static uint32_t find_named(const mpl_graph *g, uint32_t n, const mpl_value *item, const char *name,
                           const char *ending)
{
    size_t length = strlen(name);
    uint32_t i = 0;

    while (i < n && (strncmp(g->value_name[item[i]], name, length) != 0 ||
                     strcmp(g->value_name[item[i]] + length, ending) != 0))
        i++;
    return i;
}

/* Sets the inputs of the whole graph; changed inputs get their new values. */
static mpl_status set_inputs(mpl_exec *exec, const mpl_graph *whole, const mpl_graph *g,
                             const mpl_inputs *inputs)
{
    for (uint32_t i = 0; i < whole->n_inputs; i++) {
        const char *name = whole->value_name[whole->input[i]];
        uint32_t k = find_named(g, g->n_inputs, g->input, name, MPL_CHANGED);

        if (k == g->n_inputs)
            k = find_named(g, g->n_inputs, g->input, name, "");
        mpl_assert(k < g->n_inputs);
        MPL_PASS(mpl_exec_set_input(exec, i, inputs->data[k]));
    }
    return MPL_OK;
}

static mpl_status compare(mpl_ctx *ctx, const mpl_job *whole, const mpl_job *job, const void *want,
                          const void *outputs)
{
    const mpl_graph *w = whole->source.graph, *g = job->source.graph;

    for (uint32_t i = 0; i < w->n_outputs; i++) {
        const char *name = w->value_name[w->output[i]];
        uint32_t k = find_named(g, g->n_outputs, g->output, name, MPL_AGAIN);

        if (k == g->n_outputs) /* a changed input may be an output */
            k = find_named(g, g->n_outputs, g->output, name, MPL_CHANGED);
        if (k == g->n_outputs)
            k = find_named(g, g->n_outputs, g->output, name, "");
        mpl_assert(k < g->n_outputs);
        if (memcmp(mpl_outputs_at(g, outputs, k), mpl_outputs_at(w, want, i),
                   w->value_bytes[w->output[i]]) != 0)
            return MPL_ERROR(
                ctx, MPL_EINVALID,
                "%s: output '%s', evaluated again, is not what a whole evaluation gives", job->text,
                name);
    }
    return MPL_OK;
}

mpl_status mpl_again_check(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                           const mpl_inputs *inputs, mpl_device *dev, const void *outputs)
{
    mpl_status st = MPL_OK;
    mpl_options once = *options;
    mpl_exec_options exec_options;
    mpl_job whole = {0};
    mpl_exec *exec = NULL;
    void *want = NULL;

    once.changed = NULL;
    once.input = (mpl_strings){0}; /* contents come from the other graph's inputs */
    MPL_TRY(mpl_measure_options(ctx, options, &exec_options));
    MPL_TRY(mpl_job_open(ctx, &once, job->text, &whole));
    exec_options.work_limit = whole.work_limit;
    if ((want = mpl_alloc(ctx, mpl_outputs_bytes(whole.source.graph), 1)) == NULL)
        MPL_TRY(MPL_EMEM);
    MPL_TRY(mpl_exec_new(ctx, job->backend, dev, whole.source.graph, whole.order, NULL, NULL, NULL,
                         &exec_options, &exec));
    MPL_TRY(set_inputs(exec, whole.source.graph, job->source.graph, inputs));
    MPL_TRY(mpl_exec_run(exec, NULL));
    MPL_TRY(mpl_outputs_get(exec, whole.source.graph, want));
    MPL_TRY(compare(ctx, &whole, job, want, outputs));
out:
    mpl_exec_free(ctx, exec);
    mpl_free(ctx, want);
    mpl_job_fini(ctx, &whole);
    return st;
}
