/* train.c -- see train.h. */
#include "harness/job/train.h"

#include "graphs/core/text.h"
#include "harness/job/digits.h"

enum { COMPARED = 3, DRAWN = 10000 };

typedef struct trainer {
    mpl_ctx *ctx;
    const mpl_options *options;
    const mpl_job *job;
    const mpl_plan *plan;
    uint32_t data, labels; /* among the inputs */
    uint32_t batch, side;
    mpl_digits digits;
    float *image;
    int64_t *label;
    mpl_device *dev;
    mpl_exec *planned, *alone;
    char *got, *want; /* all outputs */
} trainer;

static bool is_loss(const mpl_graph *g)
{
    mpl_op op = g->value_op[g->output[0]];

    return op != MPL_NONE && g->op_kind[op] == MPL_OP_softmax_cross_entropy &&
           g->value_type[g->output[0]] == MPL_TYPE_f32;
}

static bool has_updates(const mpl_graph *g)
{
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (mpl_n_updates((mpl_op_kind)g->op_kind[op]) > 0 &&
            g->op_kind[op] != MPL_OP_batch_norm_train)
            return true;
    return false;
}

/* Which inputs are pictures and labels, and how large the pictures are. */
static mpl_status find_inputs(trainer *t)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = t->job->source.graph;
    const mpl_shape *s;
    uint64_t features = 0;
    char text[200];

    if (!is_loss(g) || !has_updates(g) || g->n_inputs != 2)
        MPL_FAIL(t->ctx, MPL_EINPUT,
                 "--iterations: '%s' does not train one picture input; take "
                 "mnist_conv:mode=train,update=adagrad or "
                 "another classifier",
                 t->job->text);
    t->labels = g->value_type[g->input[0]] == MPL_TYPE_i64 ? 0 : 1;
    t->data = 1 - t->labels;
    s = &g->value_shape[g->input[t->data]];
    t->batch = (uint32_t)g->value_shape[g->input[t->labels]].dim[0];
    mpl_shape_count(s, &features);
    features = t->batch > 0 ? features / t->batch : 0;
    while ((uint64_t)t->side * t->side < features)
        t->side++;
    if (g->value_type[g->input[t->data]] != MPL_TYPE_f32 ||
        (uint64_t)t->side * t->side != features || t->side < 8 || t->side > 1024 ||
        s->dim[0] != t->batch)
        MPL_FAIL(t->ctx, MPL_EINPUT,
                 "--iterations: input '%s' %s is no batch of square pictures of one channel",
                 g->value_name[g->input[t->data]], mpl_shape_text(s, text));
    if (g->value_shape[g->op_in[g->op_in_begin[g->value_op[g->output[0]]]]].dim[1] < 10)
        MPL_FAIL(t->ctx, MPL_EINPUT, "--iterations: '%s' tells fewer than 10 classes apart",
                 t->job->text);
out:
    return st;
}

static mpl_status get_digits(trainer *t)
{
    mpl_status st = MPL_OK;

    if (t->options->data == NULL) {
        MPL_TRY(mpl_digits_draw(t->ctx, DRAWN, t->side, 1, &t->digits));
        if (!t->options->json && !t->options->quiet)
            printf("data      %d drawn digits, no handwriting: give MNIST's folder by --data\n",
                   DRAWN);
        goto out;
    }
    MPL_TRY(mpl_digits_read(t->ctx, t->options->data, &t->digits));
    if (t->digits.side != t->side)
        MPL_FAIL(t->ctx, MPL_EINPUT, "%s: pictures of %u pixels a side; the graph takes %u",
                 t->options->data, t->digits.side, t->side);
    if (!t->options->json && !t->options->quiet)
        printf("data      %u pictures of %s\n", t->digits.n, mpl_shown(t->options->data));
out:
    return st;
}

static mpl_status open_both(trainer *t)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = t->job->source.graph;
    mpl_device_options device = {.n_threads = (uint32_t)t->options->threads,
                                 .params = t->options->device};
    mpl_exec_options exec;

    MPL_TRY(mpl_measure_options(t->ctx, t->options, &exec));
    exec.iterate = true;
    exec.work_limit = t->job->work_limit;
    MPL_TRY(t->job->backend->open(t->ctx, &device, &t->dev));
    MPL_TRY(mpl_exec_new(t->ctx, t->job->backend, t->dev, g, t->job->order, t->job->problem,
                         t->job->map, t->plan, &exec, &t->planned));
    exec.checked = false;
    MPL_TRY(mpl_exec_new(t->ctx, t->job->backend, t->dev, g, t->job->order, NULL, NULL, NULL, &exec,
                         &t->alone));
    MPL_TRY(mpl_new(t->ctx, t->image, (size_t)t->batch * t->side * t->side));
    MPL_TRY(mpl_new(t->ctx, t->label, t->batch));
    MPL_TRY(mpl_new(t->ctx, t->got, mpl_outputs_bytes(g)));
    MPL_TRY(mpl_new(t->ctx, t->want, mpl_outputs_bytes(g)));
out:
    return st;
}

static mpl_status run_one(trainer *t, mpl_exec *exec, int64_t *ns)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_exec_set_input(exec, t->data, t->image));
    MPL_TRY(mpl_exec_set_input(exec, t->labels, t->label));
    MPL_TRY(mpl_exec_run(exec, ns));
out:
    return st;
}

/* The next pictures, in the order of the set and round again. */
static void fill_batch(trainer *t, uint64_t iteration)
{
    size_t pixels = (size_t)t->side * t->side;

    for (uint32_t i = 0; i < t->batch; i++) {
        size_t from = (size_t)((iteration * t->batch + i) % t->digits.n);

        memcpy(t->image + i * pixels, t->digits.pixel + from * pixels, pixels * sizeof *t->image);
        t->label[i] = t->digits.label[from];
    }
}

static mpl_status iterate(trainer *t, uint64_t iteration)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = t->job->source.graph;
    float loss = 0;
    int64_t ns = 0;

    fill_batch(t, iteration);
    MPL_TRY(run_one(t, t->planned, &ns));
    MPL_TRY(mpl_exec_output(t->planned, 0, &loss));
    if (t->options->json)
        printf("{\"iteration\": %" PRIu64 ", \"loss\": %.9g, \"run_ns\": %" PRId64 "}\n",
               iteration + 1, (double)loss, ns);
    else if (!t->options->quiet)
        printf("iteration %5" PRIu64 "  loss %.9g  %.3f ms\n", iteration + 1, (double)loss,
               (double)ns / 1e6);
    if (iteration >= COMPARED)
        goto out;
    MPL_TRY(run_one(t, t->alone, NULL));
    MPL_TRY(mpl_outputs_get(t->planned, g, t->got));
    MPL_TRY(mpl_outputs_get(t->alone, g, t->want));
    if (memcmp(t->got, t->want, mpl_outputs_bytes(g)) != 0)
        MPL_FAIL(t->ctx, MPL_EINVALID,
                 "%s: iteration %" PRIu64 ": outputs differ from the run that shares nothing",
                 t->job->text, iteration + 1);
out:
    return st;
}

mpl_status mpl_train(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                     const mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    trainer t = {.ctx = ctx, .options = options, .job = job, .plan = plan};

    MPL_TRY(find_inputs(&t));
    MPL_TRY(get_digits(&t));
    mpl_digits_centre(&t.digits);
    MPL_TRY(open_both(&t));
    for (uint64_t i = 0; i < options->iterations; i++)
        MPL_TRY(iterate(&t, i));
    if (!options->json && !options->quiet)
        printf(
            "outputs   equal to the run that shares nothing, bit for bit, over the first %" PRIu64
            " iterations\n",
            options->iterations < COMPARED ? options->iterations : (uint64_t)COMPARED);
out:
    mpl_exec_free(ctx, t.planned);
    mpl_exec_free(ctx, t.alone);
    if (t.dev != NULL)
        job->backend->close(t.dev);
    mpl_digits_fini(ctx, &t.digits);
    mpl_free(ctx, t.image);
    mpl_free(ctx, t.label);
    mpl_free(ctx, t.got);
    mpl_free(ctx, t.want);
    return st;
}
