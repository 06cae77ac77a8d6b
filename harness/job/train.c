/* train.c -- see train.h. Files of digits: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of
 * handwritten digits": numbers are big-endian; 0x803, pictures, rows, columns, then bytes; 0x801,
 * labels, then bytes. */
#include "harness/job/train.h"

#include <math.h>

#include "graphs/core/file.h"
#include "graphs/core/rng.h"
#include "graphs/core/text.h"

enum { COMPARED = 3, DRAWN = 10000 };

/* ---- digits ---- */

void mpl_digits_fini(mpl_ctx *ctx, mpl_digits *digits)
{
    mpl_free_each(ctx, digits->pixel, digits->label);
    *digits = (mpl_digits){0};
}

static mpl_status allocate(mpl_ctx *ctx, uint32_t n, uint32_t side, mpl_digits *digits)
{
    digits->n = n;
    digits->side = side;
    MPL_PASS(mpl_new(ctx, digits->pixel, (size_t)n * side * side));
    return mpl_new(ctx, digits->label, n);
}

static uint32_t number_at(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static mpl_status read_file(mpl_ctx *ctx, const char *folder, const char *name, uint32_t magic,
                            size_t head, char **data, size_t *size)
{
    char path[4096];

    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return MPL_REFUSE(ctx, "%s: the path is too long", folder);
    MPL_PASS(mpl_file_read(ctx, path, data, size));
    if (*size < head || number_at((const uint8_t *)*data) != magic)
        return MPL_REFUSE(ctx, "%s: no IDX file of MNIST, unpacked: it must begin with 0x%08x",
                          path, magic);
    return MPL_OK;
}

mpl_status mpl_digits_read(mpl_ctx *ctx, const char *folder, mpl_digits *out)
{
    mpl_status st = MPL_OK;
    char *images = NULL, *labels = NULL;
    const uint8_t *image, *label;
    size_t n_images = 0, n_labels = 0;
    mpl_digits d = {0};
    uint32_t n, side;

    MPL_TRY(read_file(ctx, folder, "train-images-idx3-ubyte", 0x803, 16, &images, &n_images));
    MPL_TRY(read_file(ctx, folder, "train-labels-idx1-ubyte", 0x801, 8, &labels, &n_labels));
    image = (const uint8_t *)images, label = (const uint8_t *)labels;
    n = number_at(image + 4), side = number_at(image + 8);
    if (n == 0 || n > 10000000 || side == 0 || side > 1024 || number_at(image + 12) != side ||
        number_at(label + 4) != n || n_images != 16 + (size_t)n * side * side ||
        n_labels != 8 + (size_t)n)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "%s: pictures and labels are cut, not square, or not equally many", folder);
    MPL_TRY(allocate(ctx, n, side, &d));
    for (size_t i = 0; i < (size_t)n * side * side; i++)
        d.pixel[i] = (float)image[16 + i] / 255;
    for (uint32_t i = 0; i < n; i++)
        d.label[i] = label[8 + i];
    *out = d, d = (mpl_digits){0};
out:
    mpl_digits_fini(ctx, &d);
    mpl_free_each(ctx, images, labels);
    return st;
}

/* Segments of each digit: bit 0 the top one, then clockwise, bit 6 the middle. */
static const uint8_t segments[10] = {0x3f, 0x06, 0x5b, 0x4f, 0x66, 0x6d, 0x7d, 0x07, 0x7f, 0x6f};

/* Ends of each segment on a grid of 1 by 2. */
static const uint8_t ends[7][4] = {{0, 0, 1, 0}, {1, 0, 1, 1}, {1, 1, 1, 2}, {0, 2, 1, 2},
                                   {0, 1, 0, 2}, {0, 0, 0, 1}, {0, 1, 1, 1}};

/* A random offset in [0, room), within room / 14 + 1 of the middle, as in MNIST. */
static uint32_t near_middle(uint32_t room, mpl_rng *rng)
{
    uint32_t most = room / 14 + 1, least = room / 2 > most ? room / 2 - most : 0;

    return least + (uint32_t)mpl_rng_below(rng, mpl_min_u64(2 * most + 1, room - least));
}

static void draw(mpl_digits *digits, uint32_t i, mpl_rng *rng)
{
    uint32_t side = digits->side, width = side / 3, height = side / 4,
             thick = side > 14 ? side / 14 : 1;
    float *pixel = digits->pixel + (size_t)i * side * side, ink = 0.6f + 0.4f * mpl_rng_float(rng);
    uint32_t left = near_middle(side - width - thick, rng),
             top = near_middle(side - 2 * height - thick, rng);

    for (uint32_t k = 0; k < side * side; k++)
        pixel[k] = 0.2f * mpl_rng_float(rng);
    for (int s = 0; s < 7; s++) {
        if ((segments[digits->label[i]] >> s & 1) == 0)
            continue;
        for (uint32_t y = top + ends[s][1] * height; y < top + ends[s][3] * height + thick; y++)
            for (uint32_t x = left + ends[s][0] * width; x < left + ends[s][2] * width + thick; x++)
                pixel[y * side + x] = ink;
    }
}

/* Normalises all pixels to mean 0 and variance 1, since networks learn faster from these. */
static void centre(mpl_digits *digits)
{
    size_t n = (size_t)digits->n * digits->side * digits->side;
    double sum = 0, squares = 0, mean, scale;

    for (size_t i = 0; i < n; i++) {
        sum += digits->pixel[i];
        squares += (double)digits->pixel[i] * digits->pixel[i];
    }
    mean = sum / (double)n;
    scale = squares / (double)n > mean * mean ? 1 / sqrt(squares / (double)n - mean * mean) : 1;
    for (size_t i = 0; i < n; i++)
        digits->pixel[i] = (float)((digits->pixel[i] - mean) * scale);
}

/* Draws seven-segment digits near the middle, with varying ink and noise. */
static mpl_status draw_digits(mpl_ctx *ctx, uint32_t side, mpl_digits *out)
{
    mpl_rng rng;

    MPL_PASS(allocate(ctx, DRAWN, side, out));
    rng = mpl_rng_of(1);
    for (uint32_t i = 0; i < out->n; i++) {
        out->label[i] = (int64_t)mpl_rng_below(&rng, 10);
        draw(out, i, &rng);
    }
    return MPL_OK;
}

/* ---- training ---- */

typedef struct trainer {
    mpl_ctx *ctx;
    const mpl_options *options;
    const mpl_job *job;
    const mpl_plan *plan;
    mpl_inputs inputs;     /* of the next run */
    bool on_digits;        /* they change from run to run */
    uint32_t data, labels; /* indices of inputs */
    uint32_t batch, side;
    mpl_digits digits;
    mpl_device *dev;
    mpl_exec *planned, *alone;
    char *got, *want; /* all outputs */
} trainer;

/* Whether the graph trains: its first output is a number, and weights are updated. */
static bool trains(const mpl_graph *g)
{
    bool updates = false;

    for (mpl_op op = 0; op < g->n_ops; op++)
        updates = updates || (mpl_n_updates((mpl_op_kind)g->op_kind[op]) > 0 &&
                              g->op_kind[op] != MPL_OP_batch_norm_train);
    return updates && g->value_bytes[g->output[0]] == sizeof(float) &&
           g->value_type[g->output[0]] == MPL_TYPE_f32;
}

/* Whether the inputs are labels of at least 10 classes and a batch of square pictures of one
 * channel, and which. */
static bool takes_digits(trainer *self)
{
    const mpl_graph *g = self->job->source.graph;
    mpl_op loss = g->value_op[g->output[0]];
    const mpl_shape *shape;
    uint64_t features = 0;

    if (g->op_kind[loss] != MPL_OP_softmax_cross_entropy || g->n_inputs != 2 ||
        g->value_shape[g->op_in[g->op_in_begin[loss]]].dim[1] < 10)
        return false;
    self->labels = g->value_type[g->input[0]] == MPL_TYPE_i64 ? 0 : 1;
    self->data = 1 - self->labels;
    shape = &g->value_shape[g->input[self->data]];
    if (g->value_type[g->input[self->data]] != MPL_TYPE_f32 || shape->rank == 0 ||
        g->op_in[g->op_in_begin[loss] + 1] != g->input[self->labels])
        return false;
    self->batch = (uint32_t)g->value_shape[g->input[self->labels]].dim[0];
    mpl_shape_count(shape, &features);
    features = self->batch > 0 ? features / self->batch : 0;
    while ((uint64_t)self->side * self->side < features)
        self->side++;
    return (uint64_t)self->side * self->side == features && self->side >= 8 && self->side <= 1024 &&
           shape->dim[0] == self->batch;
}

static mpl_status find_inputs(trainer *self)
{
    if (!trains(self->job->source.graph))
        return MPL_REFUSE(self->ctx,
                          "--iterations: '%s' does not update weights by a loss; take "
                          "mnist_conv:mode=train,update=adagrad or FILE.onnx:mode=train,update=sgd",
                          self->job->text);
    self->on_digits = self->job->inputs.n == 0 && takes_digits(self);
    if (!self->on_digits && self->options->data != NULL)
        return MPL_REFUSE(self->ctx,
                          "--iterations: '%s' does not tell 10 classes of square pictures of one "
                          "channel apart, as --data has, or its inputs are given by --input",
                          self->job->text);
    return mpl_inputs_make(self->ctx, self->options, self->job, &self->inputs);
}

static mpl_status get_digits(trainer *self)
{
    if (!self->on_digits) {
        if (!self->options->json && !self->options->quiet)
            printf("data      the same inputs each time: random, but for --input\n");
        return MPL_OK;
    }
    if (self->options->data == NULL) {
        MPL_PASS(draw_digits(self->ctx, self->side, &self->digits));
        if (!self->options->json && !self->options->quiet)
            printf("data      %d drawn digits, no handwriting: give MNIST's folder by --data\n",
                   DRAWN);
        return MPL_OK;
    }
    MPL_PASS(mpl_digits_read(self->ctx, self->options->data, &self->digits));
    if (self->digits.side != self->side)
        return MPL_REFUSE(self->ctx, "%s: pictures of %u pixels a side; the graph takes %u",
                          self->options->data, self->digits.side, self->side);
    if (!self->options->json && !self->options->quiet)
        printf("data      %u pictures of %s\n", self->digits.n, mpl_shown(self->options->data));
    return MPL_OK;
}

static mpl_status open_both(trainer *self)
{
    const mpl_graph *g = self->job->source.graph;
    mpl_device_options device = {.n_threads = mpl_job_threads(self->options, &self->job->machine),
                                 .params = self->options->device};
    mpl_exec_options exec;

    MPL_PASS(mpl_measure_options(self->ctx, self->options, &exec));
    exec.iterate = true;
    exec.work_limit = self->job->work_limit;
    MPL_PASS(self->job->backend->open(self->ctx, &device, &self->dev));
    MPL_PASS(mpl_exec_new(self->ctx, self->job->backend, self->dev, g, self->job->order,
                          self->job->problem, self->job->map, self->plan, &exec, &self->planned));
    exec.checked = false;
    exec.n_workers = 0;
    MPL_PASS(mpl_exec_new(self->ctx, self->job->backend, self->dev, g, self->job->order, NULL, NULL,
                          NULL, &exec, &self->alone));
    MPL_PASS(mpl_new(self->ctx, self->got, mpl_outputs_bytes(g)));
    return mpl_new(self->ctx, self->want, mpl_outputs_bytes(g));
}

static mpl_status run_one(trainer *self, mpl_exec *exec, int64_t *ns)
{
    for (uint32_t i = 0; i < self->inputs.n; i++)
        MPL_PASS(mpl_exec_set_input(exec, i, self->inputs.data[i]));
    return mpl_exec_run(exec, ns);
}

/* Fills in the next pictures of the set, cyclically. */
static void fill_batch(trainer *self, uint64_t iteration)
{
    size_t pixels = (size_t)self->side * self->side;
    float *image = self->inputs.data[self->data];
    int64_t *label = self->inputs.data[self->labels];

    for (uint32_t i = 0; i < self->batch && self->on_digits; i++) {
        size_t from = (size_t)((iteration * self->batch + i) % self->digits.n);

        memcpy(image + i * pixels, self->digits.pixel + from * pixels, pixels * sizeof *image);
        label[i] = self->digits.label[from];
    }
}

static mpl_status iterate(trainer *self, uint64_t iteration)
{
    const mpl_graph *g = self->job->source.graph;
    float loss = 0;
    int64_t ns = 0;

    fill_batch(self, iteration);
    MPL_PASS(run_one(self, self->planned, &ns));
    MPL_PASS(mpl_exec_output(self->planned, 0, &loss));
    if (self->options->json)
        printf("{\"iteration\": %" PRIu64 ", \"loss\": %.9g, \"run_ns\": %" PRId64 "}\n",
               iteration + 1, (double)loss, ns);
    else if (!self->options->quiet)
        printf("iteration %5" PRIu64 "  loss %.9g  %.3f ms\n", iteration + 1, (double)loss,
               (double)ns / 1e6);
    if (iteration >= COMPARED)
        return MPL_OK;
    MPL_PASS(run_one(self, self->alone, NULL));
    MPL_PASS(mpl_outputs_get(self->planned, g, self->got));
    MPL_PASS(mpl_outputs_get(self->alone, g, self->want));
    if (memcmp(self->got, self->want, mpl_outputs_bytes(g)) != 0)
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "%s: iteration %" PRIu64
                         ": outputs differ from the run that shares nothing",
                         self->job->text, iteration + 1);
    return MPL_OK;
}

mpl_status mpl_train(mpl_ctx *ctx, const mpl_options *options, const mpl_job *job,
                     const mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    trainer t = {.ctx = ctx, .options = options, .job = job, .plan = plan};

    MPL_TRY(find_inputs(&t));
    MPL_TRY(get_digits(&t));
    if (t.on_digits)
        centre(&t.digits);
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
    mpl_inputs_fini(ctx, &t.inputs);
    mpl_free_each(ctx, t.got, t.want);
    return st;
}
