/* FILE:mode=train: each loss against its formula, what is trained, refusals in one line, and
 * gradients against central differences in f64: of exported models, and of random graphs. Fault: a
 * loss of another output or axis, a mask or statistic that is trained, a pattern that hits nothing,
 * a softmax taken twice, an option that is ignored. MPL_TRAINED=N: that many random graphs, and 50
 * elements of each weight of all models, of large ones of the shared data fewer (make
 * train-oracle); MPL_TRAINED_ONLY=TEXT: only models with that in their path. */
#include "tests/support/folder.h"
#include "tests/support/interpret.h"

#include "graphs/ops/ops_priv.h"
#include "graphs/passes/autodiff/autodiff_priv.h"
#include "graphs/passes/autodiff/train_graph.h"

#include <math.h>

static uint32_t asked(void)
{
    return getenv("MPL_TRAINED") != NULL ? (uint32_t)strtoul(getenv("MPL_TRAINED"), NULL, 10) : 0;
}

/* ---- a graph in f64, and its contents ---- */

/* Makes f64 of all f32 of a finished graph. */
static void make_double(mpl_ctx *ctx, mpl_graph *g)
{
    for (mpl_value v = 0; v < g->n_values; v++) {
        uint64_t n = g->value_bytes[v] / sizeof(float), kept = g->value_splat[v] ? 1 : n;
        float *from = g->value_data[v];
        double *to;

        if (g->value_type[v] != MPL_TYPE_f32)
            continue;
        g->value_type[v] = MPL_TYPE_f64;
        g->value_bytes[v] = n * sizeof(double);
        if (from == NULL)
            continue;
        to = mpl_alloc(ctx, kept, sizeof *to);
        assert_non_null(to);
        for (uint64_t i = 0; i < kept; i++)
            to[i] = (double)from[i];
        mpl_free(ctx, from);
        g->value_data[v] = to;
    }
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_attr_begin[op]; i < g->op_attr_begin[op + 1]; i++)
            if (g->op_kind[op] == MPL_OP_cast && g->attr_key[i] == MPL_ATTR_to &&
                strcmp(mpl_attr_at(g, i).text, "f32") == 0)
                memcpy(g->attr_text + g->attr_begin[i], "f64", 3);
}

/* The gradient of weight w, which its update reads; MPL_NONE: it is not trained. */
static mpl_value gradient_of(const mpl_graph *g, mpl_value w)
{
    for (uint32_t i = g->value_use_begin[w]; i < g->value_use_begin[w + 1]; i++)
        if (g->op_kind[g->value_use[i]] == MPL_OP_sgd_update &&
            mpl_op_input(g, g->value_use[i], 1) == w)
            return mpl_op_input(g, g->value_use[i], 0);
    return MPL_NONE;
}

static uint64_t count_of(const mpl_graph *g, mpl_value v)
{
    uint64_t n = 0;

    mpl_shape_count(&g->value_shape[v], &n);
    return n;
}

/* Inputs, and trained weights without data or with equal elements: so small that sums stay in
 * range; vectors about 1. */
static void fill(interpreter *it, uint64_t seed)
{
    const mpl_graph *g = it->g;

    for (mpl_value v = 0; v < g->n_values; v++) {
        const mpl_shape *s = &g->value_shape[v];
        uint64_t n = count_of(g, v);
        bool labels = strncmp(g->value_name[v], "labels", 6) == 0;
        double most = s->rank > 1 ? sqrt(3 * (double)s->dim[0] / (double)n) : 0.5,
               middle = s->rank > 1 || g->value_role[v] == MPL_INPUT ? 0 : 1;

        if (g->value_op[v] != MPL_NONE || g->value_role[v] == MPL_PARAMETER ||
            (g->value_data[v] != NULL && (!g->value_splat[v] || (gradient_of(g, v) == MPL_NONE &&
                                                                 !mpl_grad_is_statistic(g, v)))))
            continue;
        if (mpl_grad_is_statistic(g, v))
            middle = 1, most = 0.1;
        for (uint64_t i = 0; i < n; i++)
            mpl_put((mpl_type)g->value_type[v], it->data[v], (int64_t)i,
                    !mpl_is_float(g, v) ? (double)(labels ? (i * 7 + 1) % 3 : 1 + i % 2)
                                        : middle + most * (2 * draw_share(&seed) - 1));
    }
}

/* ---- against central differences ---- */

typedef struct checked {
    uint32_t n_trained;
    uint64_t n_elements; /* of gradients, compared */
    double worst;        /* greatest difference, relative to the greatest element of its weight */
    double loss;
} checked;

static double loss_of(mpl_ctx *ctx, interpreter *it)
{
    assert_ok(ctx, interpret(it));
    return mpl_get((mpl_type)it->g->value_type[it->g->output[0]], it->data[it->g->output[0]], 0);
}

/* By how much the loss grows a unit of x, at x. */
static double slope(mpl_ctx *ctx, interpreter *it, double *x)
{
    const double h = 1e-5, whole = *x;
    double up, down;

    *x = whole + h;
    up = loss_of(ctx, it);
    *x = whole - h;
    down = loss_of(ctx, it);
    *x = whole;
    return (up - down) / (2 * h);
}

/* Compares `most` elements of the gradient of every skip-th weight. */
static checked check(mpl_ctx *ctx, const mpl_graph *g, uint64_t most, uint32_t skip)
{
    mpl_graph forward = *g; /* what comes up to the loss */
    interpreter back = interpret_begin(ctx, g), it = interpret_begin(ctx, &forward);
    checked c = {.n_trained = 0};
    uint64_t seed = 5;

    forward.n_ops = g->value_op[g->output[0]] + 1;
    fill(&back, 1);
    fill(&it, 1);
    c.loss = loss_of(ctx, &back);
    assert_true(loss_of(ctx, &it) == c.loss); /* not NaN */
    for (mpl_value w = 0; w < g->n_values; w++) {
        mpl_value grad = gradient_of(g, w);
        double great = 1e-5, worst = 0; /* below, rounding of the loss is as great */
        uint64_t n = count_of(g, w), step = n / most + 1;

        if (grad == MPL_NONE || c.n_trained++ % skip != 0)
            continue;
        for (uint64_t i = step > 1 ? (uint64_t)(draw_share(&seed) * (double)step) : 0; i < n;
             i += step) {
            double want = slope(ctx, &it, (double *)it.data[w] + i),
                   got = ((double *)back.data[grad])[i];

            great = fmax(great, fabs(want));
            worst = fmax(worst, fabs(got - want));
            c.n_elements++;
        }
        if (!(worst / great <= c.worst)) /* or no number */
            c.worst = worst / great;
    }
    assert_true(c.n_trained > 0);
    interpret_end(&it);
    interpret_end(&back);
    return c;
}

/* ---- exported models ---- */

typedef struct model {
    const char *path, *loss, *trainable, *dims; /* dims: as --dim, "seq=3 batch=2" */
    uint32_t skip;                              /* 0: small enough for all */
} model;

#define OWN(name)   "tests/data/trained/" name ".onnx"
#define NODE(name)  MPL_SHARED "/onnx-control-flow/test_" name "/model.onnx"
#define LIGHT(name) MPL_SHARED "/onnx-light/light_" name ".onnx"

/* The first ones are in the tree, so that they are checked everywhere. */
static const model models[] = {
    {OWN("autoencoder"), "17:square", NULL, NULL, 0},
    {OWN("convnext"), NULL, NULL, NULL, 0},
    {OWN("decoder"), NULL, NULL, NULL, 0},
    {OWN("encoder"), NULL, NULL, NULL, 0},
    {OWN("encoder_dynamo"), NULL, NULL, NULL, 0},
    {OWN("graph_convolution"), NULL, NULL, NULL, 0},
    {OWN("llama"), NULL, NULL, NULL, 0},
    {OWN("mixer"), NULL, NULL, NULL, 0},
    {OWN("mobile"), NULL, NULL, NULL, 0},
    {OWN("pixel_shuffle"), "8:square", NULL, NULL, 0},
    {OWN("recommender"), "19:square", NULL, NULL, 0},
    {OWN("recurrent_gru"), NULL, NULL, NULL, 0},
    {OWN("recurrent_lstm"), NULL, NULL, NULL, 0},
    {OWN("recurrent_rnn"), NULL, NULL, NULL, 0},
    {OWN("residual_dynamo"), NULL, NULL, NULL, 0},
    {OWN("residual_norm"), NULL, NULL, NULL, 0},
    {OWN("temporal"), NULL, NULL, NULL, 0},
    {OWN("unet"), NULL, NULL, NULL, 0},
    {OWN("variational"), "38:scalar", NULL, NULL, 0},
    {OWN("vision_transformer"), NULL, NULL, NULL, 0},
    {NODE("gru_defaults"), "Y_h:square", "W,R", NULL, 0},
    {NODE("lstm_defaults"), "Y_h:square", "W,R", NULL, 0},
    {NODE("lstm_with_initial_bias"), "Y_h:square", "W,R,B", NULL, 0},
    {NODE("lstm_with_peepholes"), "Y_h:square", "W,R,B,P", NULL, 0},
    {NODE("simple_rnn_defaults"), "Y_h:square", "W,R", NULL, 0},
    {NODE("scan9_sum"), "z:square", "initial", NULL, 0},
    {MPL_SHARED "/onnx-2026/gru_plain__tsb17/model.onnx", NULL, NULL, "seq=3 batch=2", 1},
    {MPL_SHARED "/onnx-2026/lstm_lm__tsb17/model.onnx", NULL, NULL, "batch=2 seq=3", 1},
    {LIGHT("bvlc_alexnet"), NULL, NULL, NULL, 4},
    {LIGHT("inception_v1"), NULL, NULL, NULL, 12},
    {LIGHT("resnet50"), NULL, NULL, NULL, 24},
    {LIGHT("densenet121"), NULL, NULL, NULL, 96},
    {LIGHT("vgg19"), NULL, NULL, NULL, 16},
};

/* Opens a model with its dims as a graph in f64. */
static mpl_graph *open_double(mpl_ctx *ctx, const model *m)
{
    char text[100], *more = NULL;
    const char *name[4];
    int64_t size[4];
    mpl_read_options read = {.dim_name = name, .dim_value = size};
    mpl_source source;

    snprintf(text, sizeof text, "%s", m->dims != NULL ? m->dims : "");
    for (char *dim = strtok_r(text, " ", &more); dim != NULL; dim = strtok_r(NULL, " ", &more)) {
        name[read.n_dims] = dim;
        size[read.n_dims++] = strtol(strchr(dim, '=') + 1, NULL, 10);
        *strchr(dim, '=') = '\0';
    }
    assert_ok(ctx, mpl_source_open(ctx, m->path, &read, &source));
    make_double(ctx, source.graph);
    return source.graph;
}

TEST(exported_models_agree_with_differences)
{
    uint64_t most = asked() > 0 ? 50 : 2;
    const char *only = getenv("MPL_TRAINED_ONLY");
    uint32_t n = 0;

    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const model *m = &models[i];
        mpl_train_options options = {
            m->loss, m->trainable, {.update = MPL_OPTIMISER_SGD, .frozen = i % 3 != 1}};
        owned_graph *g = NULL;
        checked c;

        if ((m->skip > 0 && asked() == 0) || access(m->path, R_OK) != 0 ||
            (only != NULL && strstr(m->path, only) == NULL))
            continue;
        g = open_double(ctx, m);
        assert_ok(ctx, mpl_graph_train(ctx, &g, &options));
        c = check(ctx, g, m->skip > 1 ? 1 : most, m->skip > 0 ? m->skip : 1);
        printf("%-55s loss %10.6f  trained %3u  elements %5" PRIu64 "  worst %.2g\n",
               strstr(m->path, "data/") + 5, c.loss, c.n_trained, c.n_elements, c.worst);
        fflush(stdout);
        if (!(c.worst < 1e-5))
            fail_msg("%s: a gradient is off by %.3g of its greatest element", m->path, c.worst);
        n++;
    }
    assert_true(n >= 20 || only != NULL);
}

/* ---- losses by hand ---- */

typedef struct loss_row {
    const char *dims, *tail, *loss; /* y = mul(x, w), then the tail */
    int64_t dim[4];
    uint32_t rank, axis; /* of the classes; NO_CLASSES: the mean of squares */
    mpl_shape labels;
} loss_row;

enum { NO_CLASSES = 9 };

static const loss_row losses[] = {
    {"[4,3]", "output y\n", NULL, {4, 3}, 2, 1, {1, {4}}},
    {"[4,3]", "output y\n", "y", {4, 3}, 2, 1, {1, {4}}},
    {"[4,3]", "z = softmax(y) axis=1\noutput z\n", "z:cross_entropy", {4, 3}, 2, 1, {1, {4}}},
    {"[4,3]", "z = softmax(y) axis=0\noutput z\n", NULL, {4, 3}, 2, 0, {1, {3}}},
    {"[4,3]", "z = log_softmax(y) axis=-1\noutput z\n", NULL, {4, 3}, 2, 1, {1, {4}}},
    {"[4,3]",
     "s = softmax(y) axis=1\nz = reshape(s) shape=[12]\noutput z\n",
     NULL,
     {4, 3},
     2,
     1,
     {1, {4}}},
    {"[4,3]",
     "z = softmax(y) axis=1\ni = cast(y) to=i64\noutput i\noutput z\n",
     NULL,
     {4, 3},
     2,
     1,
     {1, {4}}},
    {"[5]", "output y\n", NULL, {5}, 1, 0, {1, {1}}},
    {"[2,3,4]", "output y\n", NULL, {2, 3, 4}, 3, 2, {2, {2, 3}}},
    {"[2,3,4]", "z = softmax(y) axis=1\noutput z\n", NULL, {2, 3, 4}, 3, 1, {2, {2, 4}}},
    {"[2,3,2,2]", "output y\n", NULL, {2, 3, 2, 2}, 4, 1, {3, {2, 2, 2}}},
    {"[2,2,2,3]", "z = softmax(y) axis=-1\noutput z\n", NULL, {2, 2, 2, 3}, 4, 3, {3, {2, 2, 2}}},
    {"[4,3]", "z = tanh(y)\noutput z\noutput y\n", "y:square", {4, 3}, 2, NO_CLASSES, {2, {4, 3}}},
    {"[2,3,4]", "output y\n", "y:square", {2, 3, 4}, 3, NO_CLASSES, {3, {2, 3, 4}}},
};

/* Cross-entropy of y along the axis, row by row; or the mean of squares. */
static double by_hand(const loss_row *row, const double *y, const void *other)
{
    int64_t inner = 1, n = 1, classes = row->axis < 4 ? row->dim[row->axis] : 1, rows;
    double sum = 0;

    for (uint32_t i = 0; i < row->rank; i++) {
        n *= row->dim[i];
        inner *= i > row->axis ? row->dim[i] : 1;
    }
    for (int64_t i = 0; i < n && row->axis == NO_CLASSES; i++)
        sum += pow(y[i] - ((const double *)other)[i], 2) / (double)n;
    rows = row->axis == NO_CLASSES ? 0 : n / classes;
    for (int64_t r = 0; r < rows; r++) {
        const double *at = y + r / inner * inner * classes + r % inner;
        double all = 0;

        for (int64_t k = 0; k < classes; k++)
            all += exp(at[k * inner]);
        sum += (log(all) - at[((const int64_t *)other)[r] * inner]) / (double)rows;
    }
    return sum;
}

TEST(losses_are_their_formulas)
{
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        const loss_row *row = &losses[i];
        const char *target = row->axis == NO_CLASSES ? "targets" : "labels";
        mpl_train_options options = {row->loss, NULL, {.update = MPL_OPTIMISER_SGD}};
        owned_graph *g = NULL;
        interpreter it;
        char text[400];
        mpl_value other;
        double y[64], *x, *w;

        snprintf(text, sizeof text, "graph t\ninput x f32 %s\nweight w f32 %s\ny = mul(x, w)\n%s",
                 row->dims, row->dims, row->tail);
        g = text_graph(ctx, text);
        make_double(ctx, g);
        assert_ok(ctx, mpl_graph_train(ctx, &g, &options));
        assert_string_equal(g->value_name[g->output[0]], "loss");
        other = mpl_graph_find(g, target);
        assert_true(g->n_inputs == 2 && g->input[1] == other);
        assert_true(mpl_shape_equal(&g->value_shape[other], &row->labels));
        for (mpl_op op = 0; op < g->n_ops; op++) /* merged */
            assert_true(g->op_kind[op] != MPL_OP_softmax && g->op_kind[op] != MPL_OP_log_softmax);
        it = interpret_begin(ctx, g);
        fill(&it, i + 1);
        x = it.data[mpl_graph_find(g, "x")], w = it.data[mpl_graph_find(g, "w")];
        for (uint64_t k = 0; k < count_of(g, mpl_graph_find(g, "x")); k++)
            y[k] = x[k] * w[k];
        assert_true(fabs(loss_of(ctx, &it) - by_hand(row, y, it.data[other])) < 1e-12);
        interpret_end(&it);
        assert_true(check(ctx, g, 1000, 1).worst < 1e-7);
    }
}

/* Of files as of the zoo's networks: as many operations and bytes. */
TEST(files_train_as_networks_do)
{
    static const char *const specs[] = {"mlp:batch=3", "mnist_conv:batch=2,image=8", "lstm:steps=3",
                                        "resnet18:image=32"};

    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        mpl_train_options options = {NULL, NULL, {.update = MPL_OPTIMISER_MOMENTUM}};
        owned_graph *file = NULL, *zoo = NULL;
        char spec[100];
        uint64_t bytes[2] = {0, 0};

        snprintf(spec, sizeof spec, "%s,mode=train,update=momentum", specs[i]);
        assert_ok(ctx, mpl_zoo_build(ctx, specs[i], &file));
        assert_ok(ctx, mpl_graph_train(ctx, &file, &options));
        assert_ok(ctx, mpl_zoo_build(ctx, spec, &zoo));
        for (int k = 0; k < 2; k++) {
            const mpl_graph *g = k == 0 ? file : zoo;

            for (mpl_value v = 0; v < g->n_values; v++)
                bytes[k] += g->value_op[v] != MPL_NONE ? g->value_bytes[v] : 0;
        }
        assert_int_equal(file->n_ops, zoo->n_ops);
        assert_int_equal(bytes[0], bytes[1]);
        assert_int_equal(file->n_outputs, zoo->n_outputs);
    }
}

/* ---- what is trained ---- */

#define DENSE                                                                                      \
    "graph t\ninput x f32 [2,4]\nweight w f32 [4,3]\nweight b f32 [3]\nweight s f32 [] = data 2\n" \
    "weight mask f32 [3] = data 0 -1e9 0\nweight i i64 [2] = data 0 1\n"                           \
    "a = matmul(x, w)\nc = add(a, b)\nd = mul(c, s)\ny = add(d, mask)\noutput y\n"
#define NORMED                                                                                     \
    "graph t\ninput x f32 [2,3,4]\nweight k f32 [4,3,1]\nweight scale f32 [4]\nweight b f32 [4]\n" \
    "weight mean f32 [4]\nweight var f32 [4]\na = conv(x, k)\n"                                    \
    "y = batch_norm(a, scale, b, mean, var)\noutput y\n"

static const struct {
    const char *text, *trainable, *names;
} sets[] = {
    {DENSE, NULL, "w b"},
    {DENSE, "b", "b"},
    {DENSE, "s,mask", "s mask"},
    {DENSE, "*", "w b s mask"},
    {DENSE, "x,[wb]", "x w b"},
    {NORMED, NULL, "k scale b"},
    {NORMED, "*", "k scale b"},
    {NORMED, "[bks]", "k b"},
    {"graph t\nweight t f32 [5,3]\ninput i i64 [2]\nweight q f32 [3,2] = data 1 2 3 4 5 6\n"
     "weight cold f32 [3,2] = splat 0.5\nweight e f32 [2] = data 1e-5 1e-5\na = gather(t, i)\n"
     "b = transpose(q) perm=[1,0]\nc = gemm(a, b) trans_b=1\nd = gemm(a, cold)\nf = add(c, d)\n"
     "g = max(f, e)\ny = tanh(g)\noutput y\n",
     NULL, "t q cold"},
};

TEST(what_is_read_as_a_weight_is_trained)
{
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        mpl_train_options options = {
            NULL, sets[i].trainable, {.update = MPL_OPTIMISER_SGD, .frozen = true}};
        owned_graph *g = text_graph(ctx, sets[i].text);
        char names[200] = "";

        assert_ok(ctx, mpl_graph_train(ctx, &g, &options));
        for (mpl_value v = 0; v < g->n_values; v++)
            if (g->value_role[v] == MPL_WEIGHT && gradient_of(g, v) != MPL_NONE)
                sprintf(names + strlen(names), "%s%s", names[0] != '\0' ? " " : "",
                        g->value_name[v]);
        if (strcmp(names, sets[i].names) != 0)
            fail_msg("row %zu trains '%s', not '%s'", i, names, sets[i].names);
    }
}

/* ---- refusals ---- */

static const struct {
    const char *text, *suffix, *loss, *trainable, *why;
} refusals[] = {
    {DENSE, ":mode=tran", NULL, NULL, "mode=tran is none of inference, train"},
    {DENSE, ":mode=train,updat=sgd", NULL, NULL, "'updat=sgd' is no parameter"},
    {DENSE, ":update=sgd", NULL, NULL, "add mode=train"},
    {DENSE, ":layers=training", NULL, NULL, "add mode=train"},
    {DENSE, ":mode=train,mode=train", NULL, NULL, "given twice"},
    {DENSE, ":mode=train,batch=2", NULL, NULL, "has no open dim 'batch'"},
    {DENSE, "", "y", NULL, "--loss: "},
    {DENSE, ":mode=inference", NULL, "w", "--trainable: "},
    {DENSE, ":mode=train", "z", NULL, "'z' is no output of 't'"},
    {DENSE, ":mode=train", "y:cubes", NULL, "'y:cubes' is no output of 't'"},
    {DENSE, ":mode=train", "y:scalar", NULL, "has 6 elements; a scalar has one"},
    {DENSE, ":mode=train", NULL, "v", "'v' matches no weight that the loss needs; those are: 'w'"},
    {DENSE, ":mode=train", NULL, "w,,b", "empty"},
    {NORMED, ":mode=train", NULL, "mean", "none that can be trained"},
    {"graph t\ninput x f32 [2,3]\nweight w f32 [2,3]\na = relu(x)\nb = mul(x, w)\noutput a\n"
     "output b\n",
     ":mode=train", NULL, NULL, "has 2 floating outputs: 'a', 'b'; name one: --loss"},
    {"graph t\ninput x f32 [2,3]\nweight w f32 [2,3]\na = mul(x, w)\nb = cast(a) to=i64\n"
     "output b\n",
     ":mode=train", NULL, NULL, "no floating output"},
    {"graph t\ninput x f32 [2,3]\nweight w f32 [2,3]\na = mul(x, w)\nb = cast(a) to=i64\n"
     "output b\noutput a\n",
     ":mode=train", "b", NULL, "output 'b' is of i64"},
    {"graph t\ninput x i64 [2,3]\nweight w i64 [2,3]\na = mul(x, w)\nb = cast(a) to=f32\n"
     "output b\n",
     ":mode=train", NULL, NULL, "no weight that can be trained"},
    {"graph t\ninput x i64 [2,3]\nweight w i64 [2,3]\na = mul(x, w)\nb = cast(a) to=f32\n"
     "output b\n",
     ":mode=train", NULL, "w", "none that can be trained (floats"},
    {"graph t\ninput x f32 [2,3]\nweight w f32 [2,3]\na = mul(x, w)\nb = round(a) @nearest\n"
     "output b\n",
     ":mode=train", NULL, NULL, "operation 'nearest': there is no rule for the gradient of round"},
    {"graph t\ninput x f32 [2,1]\nweight w f32 [2,1]\na = mul(x, w)\noutput a\n", ":mode=train",
     NULL, NULL, "too few classes"},
    {"graph t\ninput x f32 [2]\nweight w f32 [2]\na = mul(x, w)\nb = reduce_sum(a) keepdims=0\n"
     "output b\n",
     ":mode=train", NULL, NULL, "is a single number, no classes: --loss b:scalar"},
    {"id,lower,upper,size\na,0,2,8\n", ":mode=train", NULL, NULL, "cannot be trained"},
};

TEST(what_cannot_be_trained_is_refused)
{
    char path[300], name[400];
    mpl_source source;

    temporary_file(path, sizeof path, "train");
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        mpl_read_options read = {.loss = refusals[i].loss, .trainable = refusals[i].trainable};
        FILE *f = fopen(path, "wb");

        assert_non_null(f);
        fputs(refusals[i].text, f);
        fclose(f);
        snprintf(name, sizeof name, "%s%s", path, refusals[i].suffix);
        assert_status(ctx, mpl_source_open(ctx, name, &read, &source), MPL_EINPUT);
        if (strstr(ctx->message, refusals[i].why) == NULL || strchr(ctx->message, '\n') != NULL)
            fail_msg("row %zu says: %s", i, ctx->message);
    }
    assert_int_equal(unlink(path), 0);
}

/* A file that exists by its whole name is that file; else the last colon parts its name. */
TEST(names_may_have_colons)
{
    static const char *const names[] = {"C:a.graph", "a.graph", "a.graph:mode=train",
                                        "mlp:mode=train"};
    mpl_source source;

    assert_int_equal(folder_make("colons"), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[700];
        bool trained = false;

        folder_put(names[i], DENSE, sizeof DENSE - 1);
        for (int with = 0; with < 2; with++) {
            snprintf(name, sizeof name, "%s%s", in_folder(names[i]), with ? ":mode=train" : "");
            assert_ok(ctx, mpl_source_open(ctx, name, NULL, &source));
            trained = mpl_graph_find(source.graph, "labels") != MPL_NONE;
            assert_int_equal(trained, with);
            assert_string_equal(source.graph->name, with ? "t:mode=train" : "t");
            mpl_source_fini(ctx, &source);
        }
    }
    assert_int_equal(folder_remove(), 0);
}

/* ---- random graphs ---- */

/* A line that makes v<n> [3,4] of earlier values, with weights of its own. */
static size_t random_line(char *text, size_t size, uint32_t n, uint64_t *seed)
{
    static const char *const unary[] = {"tanh", "sigmoid",  "softplus", "gelu", "swish",
                                        "mish", "softsign", "erf",      "sin",  "atan"};
    static const char *const forms[] = {
        "v%u = %s(v%u)\n",
        "weight w%u f32 [4,4]\nweight b%u f32 [4]\nv%u = gemm(v%u, w%u, b%u)\n",
        "weight s%u f32 [4]\nweight b%u f32 [4]\nv%u = layer_norm(v%u, s%u, b%u) axis=-1\n",
        "p%u = mul(v%u, v%u)\nv%u = tanh(p%u)\n",
        "v%u = sub(v%u, v%u)\n",
        "t%u = transpose(v%u) perm=[1,0]\np%u = matmul(v%u, t%u)\nq%u = softmax(p%u) axis=1\n"
        "v%u = matmul(q%u, v%u)\n",
        "h%u = slice(v%u) starts=[1] ends=[3] axes=[1]\nv%u = concat(h%u, h%u) axis=1\n",
        "m%u = reduce_mean(v%u) axes=[0] keepdims=1\nv%u = add(v%u, m%u)\n",
        "weight e%u f32 [5,4]\ng%u = gather(e%u, i) axis=0\nv%u = add(g%u, v%u)\n"};
    uint32_t a = (uint32_t)(draw_share(seed) * n), b = (uint32_t)(draw_share(seed) * n);
    uint32_t form = (uint32_t)(draw_share(seed) * 9);
    const char *f = forms[form];

    a = draw_share(seed) < 0.7 ? n - 1 : a;
    switch (form) {
    case 0:
        return (size_t)snprintf(text, size, f, n, unary[(int)(draw_share(seed) * 10)], a);
    case 1:
    case 2:
        return (size_t)snprintf(text, size, f, n, n, n, a, n, n);
    case 3:
    case 4:
        return (size_t)snprintf(text, size, f, n, a, b, n, n);
    case 5:
        return (size_t)snprintf(text, size, f, n, b, n, a, n, n, n, n, n, a);
    case 6:
        return (size_t)snprintf(text, size, f, n, a, n, n, n);
    case 7:
        return (size_t)snprintf(text, size, f, n, a, n, b, n);
    default:
        return (size_t)snprintf(text, size, f, n, n, n, n, n, a);
    }
}

TEST(random_graphs_agree_with_differences)
{
    static const char *const losses_of[] = {NULL, "y:square", "z:scalar"};
    uint32_t n = asked() > 0 ? asked() : 150;
    double worst = 0;

    for (uint32_t k = 0; k < n; k++) {
        mpl_train_options options = {
            losses_of[k % 3], NULL, {.update = MPL_OPTIMISER_SGD, .chained = k % 2 == 0}};
        char text[6000];
        uint64_t seed = k + 1;
        uint32_t lines = 2 + (uint32_t)(draw_share(&seed) * 8);
        size_t at = (size_t)snprintf(text, sizeof text,
                                     "graph t\ninput x f32 [3,4]\ninput i i64 "
                                     "[3]\nweight w f32 [3,4]\nv0 = mul(x, w)\n");
        owned_graph *g = NULL;
        checked c;

        for (uint32_t i = 1; i <= lines; i++)
            at += random_line(text + at, sizeof text - at, i, &seed);
        snprintf(text + at, sizeof text - at, "y = sin(v%u)\n%soutput %s\n", lines,
                 k % 3 == 2 ? "z = reduce_mean(y) keepdims=0\n" : "", k % 3 == 2 ? "z" : "y");
        g = text_graph(ctx, text);
        make_double(ctx, g);
        assert_ok(ctx, mpl_graph_train(ctx, &g, &options));
        c = check(ctx, g, asked() > 0 ? 1000 : 3, 1);
        if (!(c.worst < 1e-4))
            fail_msg("graph %u is off by %.3g:\n%s", k, c.worst, text);
        worst = fmax(worst, c.worst);
    }
    printf("%u random graphs, worst %.2g\n", n, worst);
}

TEST(survives_lost_memory)
{
    static const char *const texts[] = {DENSE, NORMED};

    for (int i = 0; i < 4; i++) {
        mpl_train_options options = {i < 2 ? NULL : "y:square",
                                     i < 2 ? NULL : "[bwk]",
                                     {.update = MPL_OPTIMISER_ADAM, .frozen = i % 2}};

        EACH_ALLOCATION_FAILS (ctx, st) {
            owned_graph *g = NULL;

            st = mpl_text_read_memory(ctx, "test", texts[i % 2], strlen(texts[i % 2]), &g);
            if (st == MPL_OK)
                st = mpl_graph_train(ctx, &g, &options);
        }
    }
}

TESTS(exported_models_agree_with_differences, losses_are_their_formulas, files_train_as_networks_do,
      what_is_read_as_a_weight_is_trained, what_cannot_be_trained_is_refused, names_may_have_colons,
      random_graphs_agree_with_differences, survives_lost_memory)
