/* Zoo networks: published numbers of parameters and multiplications, each parameter's range, wrong
 * requests. */
#include "tests/support/interpret.h"

#include <math.h>

/* Parameters as published: weights, biases, scale and bias of batch norms, 1000 classes.
 * Multiply-adds of convolutions and dense layers, in units of 10^6, to the last digit published.
 * Both: torchvision's model tables (resnet, densenet, inception_v3, vgg16, mobilenet_v2), the
 * papers (mobilenet_v1: 569), bvlc_googlenet (inception_v1), Keras' mobilenet, the PyTorch Image
 * Models tables (inception_v4). The multiplications of inception_v1 are not compared: the model
 * that it follows rounds its pools down. */
static const struct {
    const char *name;
    uint64_t params;
    double mega, tolerance;
} published[] = {
    {"resnet18", 11689512, 1810, 10},
    {"resnet34", 21797672, 3660, 10},
    {"resnet50", 25557032, 4090, 10},
    {"resnet101", 44549160, 7800, 10},
    {"resnet152", 60192808, 11510, 10},
    {"densenet121", 7978856, 2830, 10},
    {"densenet169", 14149480, 3360, 10},
    {"densenet201", 20013928, 4290, 10},
    {"inception_v1", 6998552, 0, 0},
    {"inception_v3", 23834568, 5710, 10},
    {"inception_v4", 42679816, 12280, 30},
    {"vgg16", 138357544, 15470, 10},
    {"mobilenet_v1", 4231976, 569, 1},
    {"mobilenet_v2", 3504872, 300, 1},
    {"resnet_cifar:classes=10", 269722 + 2752, 0, 0}, /* 20 layers; two projections */
    {"mask_rcnn:form=owl", 64158584, 0, 0},           /* of 2017, 81 classes, with statistics */
    /* PyTorch Image Models: 1.68 million; the authors: 0.64 million, both to the last digit said */
    {"mobilenet_v2:width=0.35", 1677128, 0, 0},
    {"mcunet", 636232, 12.8, 0.1},
    /* PyTorch Image Models and Hugging Face's models of the same names; exactly those they count */
    {"bert", 109483778, 0, 0},            /* bert-base-uncased with a classifier of 2 */
    {"gpt", 124439808, 0, 0},             /* gpt2 */
    {"encoder_decoder", 222903552, 0, 0}, /* t5-base */
    {"moe", 619339008, 0, 0},             /* switch-base-8 */
    {"vit", 86567656, 0, 0},              /* vit_base_patch16_224 */
    {"swin", 28288354, 0, 0},             /* swin_tiny_patch4_window7_224 */
    {"mamba", 129135360, 0, 0},           /* mamba-130m */
    {"unet", 35746307, 0, 0},             /* ddpm-cifar10-32 */
};

static mpl_graph *build(mpl_ctx *ctx, const char *spec)
{
    mpl_graph *g = zoo_graph(ctx, spec);

    assert_true(mpl_graph_ok(g));
    return g;
}

static uint64_t count(const mpl_graph *g, mpl_value v)
{
    return g->value_bytes[v] / mpl_type_bytes((mpl_type)g->value_type[v]);
}

/* Elements of all weights except scalars and the running mean and variance of batch norms. */
static uint64_t n_params(const mpl_graph *g)
{
    uint64_t n = 0;

    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_role[v] == MPL_WEIGHT && g->value_shape[v].rank > 0 &&
            g->value_data[v] == NULL)
            n += count(g, v);
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_kind[op] == MPL_OP_batch_norm)
            n -= count(g, g->op_in[g->op_in_begin[op] + 3]) +
                 count(g, g->op_in[g->op_in_begin[op] + 4]);
    return n;
}

/* Multiply-adds: output elements times products per sum. */
static double n_products(const mpl_graph *g)
{
    double n = 0;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_value weight = g->op_in[g->op_in_begin[op] + 1], out = g->op_out[g->op_out_begin[op]];

        /* weights: one row per output channel */
        if (g->op_kind[op] == MPL_OP_conv || g->op_kind[op] == MPL_OP_gemm)
            n += (double)count(g, out) * (double)count(g, weight) /
                 (double)g->value_shape[weight].dim[0];
    }
    return n;
}

TEST(test_published)
{
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        owned_graph *g = build(ctx, published[i].name);
        double mega = n_products(g) * 1e-6;

        if (n_params(g) != published[i].params)
            fail_msg("%s: %" PRIu64 " parameters, %" PRIu64 " published", g->name, n_params(g),
                     published[i].params);
        if (published[i].tolerance > 0 && (mega < published[i].mega - published[i].tolerance ||
                                           mega > published[i].mega + published[i].tolerance))
            fail_msg("%s: %.1f million multiply-adds, %.0f published", g->name, mega,
                     published[i].mega);
    }
}

/* Operator counts from the papers' figures and tables. */
static const struct {
    const char *name;
    uint32_t conv, norm, max, avg, concat, sum; /* avg includes global pools; sum includes add */
} counts[] = {
    {"resnet18", 20, 20, 1, 1, 0, 8},
    {"resnet34", 36, 36, 1, 1, 0, 16},
    {"resnet50", 53, 53, 1, 1, 0, 16},
    {"resnet101", 104, 104, 1, 1, 0, 33},
    {"resnet152", 155, 155, 1, 1, 0, 50},
    {"densenet121", 121, 121, 1, 4, 58, 0},
    {"densenet169", 169, 169, 1, 4, 82, 0},
    {"densenet201", 201, 201, 1, 4, 98, 0},
    {"inception_v1", 57, 0, 13, 1, 9, 0},
    {"inception_v3", 94, 94, 4, 10, 15, 0},
    {"inception_v4", 149, 149, 4, 15, 19, 0},
    {"vgg16", 13, 0, 5, 0, 0, 0},
    {"mobilenet_v1", 27, 27, 0, 1, 0, 0},
    {"mobilenet_v2", 52, 52, 0, 1, 0, 10},
    {"mnist_conv", 1, 0, 1, 0, 0, 0},
    /* 104 of the backbone, 8 of the pyramid, 15 of the proposals on five levels, 7 of the heads, of
       which 6 are normalised. The pyramid adds 3 times. */
    {"mask_rcnn", 104 + 8 + 15 + 7, 104 + 6, 2, 0, 7, 33 + 3 + 40},
};

static void assert_count(const mpl_graph *g, mpl_op_kind a, mpl_op_kind b, uint32_t want)
{
    uint32_t n = 0;

    for (mpl_op op = 0; op < g->n_ops; op++)
        n += g->op_kind[op] == a || g->op_kind[op] == b;
    if (n != want)
        fail_msg("%s: %u times %s or %s; %u counted", g->name, n, mpl_op_table[a].name,
                 mpl_op_table[b].name, want);
}

TEST(test_counts)
{
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        owned_graph *g = build(ctx, counts[i].name);

        assert_count(g, MPL_OP_conv, MPL_OP_conv, counts[i].conv);
        assert_count(g, MPL_OP_batch_norm, MPL_OP_batch_norm, counts[i].norm);
        assert_count(g, MPL_OP_max_pool, MPL_OP_max_pool, counts[i].max);
        assert_count(g, MPL_OP_avg_pool, MPL_OP_global_avg_pool, counts[i].avg);
        assert_count(g, MPL_OP_concat, MPL_OP_concat, counts[i].concat);
        assert_count(g, MPL_OP_add, MPL_OP_sum, counts[i].sum);
    }
}

/* Whether every computed value is read; the values of top_k may be unread. */
static bool all_is_read(const mpl_graph *g)
{
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t k = g->op_out_begin[op] + (g->op_kind[op] == MPL_OP_top_k);
             k < g->op_out_begin[op + 1]; k++)
            if (g->op_out[k] != MPL_NONE && g->value_role[g->op_out[k]] != MPL_OUTPUT &&
                g->value_use_begin[g->op_out[k]] == g->value_use_begin[g->op_out[k] + 1])
                return false;
    return true;
}

/* A request is deterministic; names are unique; the smallest image still gives a graph. */
TEST(test_every_network)
{
    char spec[100];

    for (size_t i = 0; mpl_zoo[i] != NULL; i++) {
        owned_graph *g = build(ctx, mpl_zoo[i]->name), *again = build(ctx, mpl_zoo[i]->name);

        assert_string_equal(g->name, mpl_zoo[i]->name);
        assert_true(mpl_zoo_find(g->name, strlen(g->name)) == mpl_zoo[i]);
        assert_true(mpl_graph_hash(g) == mpl_graph_hash(again));
        /* several: mask_rcnn, ssd_boxes; gpt's cache */
        assert_true(g->n_outputs >= 1 && (g->n_outputs <= 3 || strcmp(g->name, "gpt") == 0));
        assert_true(all_is_read(g));
        for (const mpl_zoo_param *p = mpl_zoo[i]->params; p->key != NULL; p++)
            if (strcmp(p->key, "image") == 0) {
                snprintf(spec, sizeof spec, "%s:image=%" PRId64, mpl_zoo[i]->name, p->min);
                mpl_graph_free(ctx, build(ctx, spec));
            }
    }
}

/* Parameters that change the graph: its name, dims of its first input and of its output, number of
 * operations. */
static const struct {
    const char *spec, *name, *input, *output;
    uint32_t n_ops;
} variants[] = {
    {"resnet50:batch=16,image=96,classes=10", "resnet50:batch=16,image=96,classes=10",
     "[16,3,96,96]", "[16,10]", 176},
    {"densenet121:classes=7", "densenet121:classes=7", "[1,3,224,224]", "[1,7,1,1]", 426},
    {"inception_v1:image=128", "inception_v1:image=128", "[1,3,128,128]", "[1,1000]", 143},
    {"inception_v3:image=299,batch=2", "inception_v3:batch=2", "[2,3,299,299]", "[2,1000]", 315},
    {"resnet50:form=owl", "resnet50:form=owl", "[1,3,224,224]", "[1,1000]", 447 + 53},
    {"resnet50:stride=1x1", "resnet50:stride=1x1", "[1,3,224,224]", "[1,1000]", 176},
    {"mask_rcnn:image=128,rois=9,detections=3,classes=4",
     "mask_rcnn:image=128,classes=4,rois=9,detections=3", "[1,3,128,128]", "[3,6]", 663},
    {"inception_v4:form=plain", "inception_v4", "[1,3,299,299]", "[1,1000]", 489},
    {"mobilenet_v2", "mobilenet_v2", "[1,3,224,224]", "[1,1000]", 154},
    {"mnist_conv", "mnist_conv", "[100,1,28,28]", "[100,10]", 9},
    {"mlp:layers=3,input=5,hidden=4,batch=2", "mlp:batch=2,layers=3,input=5,hidden=4", "[2,5]",
     "[2,10]", 8},
    {"lstm", "lstm", "[32,512]", "[32,512]", 2 * 32 * 21},
    {"attention:heads=3,layers=1,width=8,length=5", "attention:length=5,heads=3,width=8,layers=1",
     "[5,24]", "[5,10]", 3 * 6 + 9},
    {"pair:b=mlp", "pair:b=mlp", "[1,3,224,224]", "[1,1000]", 67 + 6},
    {"lstm:form=while", "lstm:form=while", "[32,512]", "[32,512]", 2 * 21 + 1},
    {"gru:steps=2,batch=3,hidden=4", "gru:batch=3,steps=2,hidden=4", "[3,4]", "[3,4]", 2 * 2 * 16},
    {"gru:form=while,hidden=4", "gru:hidden=4,form=while", "[32,4]", "[32,4]", 2 * 16 + 1},
    {"pingpong:image=8,channels=2", "pingpong:image=8,channels=2", "[1,2,8,8]", "[1,2,8,8]", 2},
    {"delay:taps=6", "delay:taps=6", "[1,16,32,32]", "[1,16,32,32]", 2},
    {"nested_loop:depth=4", "nested_loop:depth=4", "[1,16,32,32]", "[1,16,32,32]", 4 * 4},
    {"piecewise:branches=5", "piecewise:branches=5", "[1,16,32,32]", "[1,16,32,32]", 5 + 30 + 2},
    {"seq2seq:batch=3,most=7", "seq2seq:batch=3,most=7", "[16,3,256]", "[7,3]",
     13 + 1 + 13 + 8 + 1},
    {"lstm:layers=1,steps=3,hidden=8,batch=2", "lstm:batch=2,layers=1,steps=3,hidden=8", "[2,8]",
     "[2,8]", 63},
};

TEST(test_variants)
{
    char text[200];

    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        owned_graph *g = build(ctx, variants[i].spec);

        assert_string_equal(g->name, variants[i].name);
        assert_string_equal(mpl_shape_text(&g->value_shape[g->input[0]], text), variants[i].input);
        assert_string_equal(mpl_shape_text(&g->value_shape[g->output[0]], text),
                            variants[i].output);
        assert_int_equal(g->n_ops, variants[i].n_ops);
    }
}

/* One cell computes c' = f c + i g, h' = o tanh(c'): the products join the right gates. */
TEST(test_lstm_cell)
{
    static const char *const edges[][3] =
        ROW({"step1.layer0.fc", "step1.layer0.f", "step0.layer0.c"},
            {"step1.layer0.ig", "step1.layer0.i", "step1.layer0.g"},
            {"step1.layer0.c", "step1.layer0.fc", "step1.layer0.ig"},
            {"step1.layer0.h", "step1.layer0.o", "step1.layer0.tanh"},
            {"step1.layer0.hf", "step0.layer0.h", "layer0.uf"},
            {"step1.layer1.xf", "step1.layer0.h", "layer1.wf"});
    owned_graph *g = build(ctx, "lstm:steps=2,hidden=4,batch=1");

    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        mpl_op op = g->value_op[mpl_graph_find(g, edges[i][0])];

        for (uint32_t k = 0; k < 2; k++)
            assert_string_equal(g->value_name[g->op_in[g->op_in_begin[op] + k]], edges[i][k + 1]);
    }
}

/* Layer names say what they are made of. */
TEST(test_names)
{
    static const char *const rows[][2] =
        ROW({"shufflenet_v2", "stage2_2.point1.relu"}, {"squeezenet", "fire2.squeeze.relu"},
            {"mobilenet_v1", "pair2.point.relu"}, {"densenet121", "dense2_2.b.relu"},
            {"inception_v1", "inception_3a.3x3_reduce.relu"}, {"randwire", "conv1.relu"},
            {"resnet50", "res2_1.a.relu"});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        owned_graph *g = build(ctx, rows[i][0]);

        if (mpl_graph_find(g, rows[i][1]) == MPL_NONE)
            fail_msg("%s has no %s", rows[i][0], rows[i][1]);
    }
}

/* ---- loops and branches, interpreted ---- */

/* A number for each element of a weight or input: equal in both forms of a network, which use the
 * same names. */
static void fill(interpreter *it, mpl_value v, const char *name, uint64_t skip)
{
    uint64_t seed = mpl_hash(MPL_HASH_SEED, name, strlen(name));

    for (uint64_t i = 0; i < it->g->value_bytes[v] / sizeof(float); i++) {
        uint64_t at = skip + i, x = mpl_hash(seed, &at, sizeof at);

        ((float *)it->data[v])[i] = (float)(x % 2001) / 1000.0f - 1.0f;
    }
}

static void fill_all(interpreter *it, float weights)
{
    const mpl_graph *g = it->g;

    for (mpl_value v = 0; v < g->n_values; v++)
        if ((g->value_role[v] == MPL_INPUT || g->value_role[v] == MPL_WEIGHT) &&
            g->value_data[v] == NULL) {
            fill(it, v, g->value_name[v], 0);
            for (uint64_t i = 0;
                 g->value_role[v] == MPL_WEIGHT && i < g->value_bytes[v] / sizeof(float); i++)
                ((float *)it->data[v])[i] *= weights;
        }
}

/* The output of a network after filling its inputs, which the caller frees. */
static float *run(mpl_ctx *ctx, const char *spec, void (*set)(interpreter *it), uint64_t *rounds)
{
    owned_graph *g = build(ctx, spec);
    interpreter it = interpret_begin(ctx, g);
    float *out = malloc(g->value_bytes[g->output[0]] + 1);

    fill_all(&it, 1);
    if (set != NULL)
        set(&it);
    assert_ok(ctx, interpret(&it));
    memcpy(out, it.data[g->output[0]], g->value_bytes[g->output[0]]);
    if (rounds != NULL)
        *rounds = it.rounds;
    interpret_end(&it);
    return out;
}

/* The inputs of the steps are slices of the loop's input. */
static void set_steps(interpreter *it)
{
    const mpl_graph *g = it->g;

    for (uint32_t i = 0; i < g->n_inputs; i++) {
        uint64_t step;

        if (sscanf(g->value_name[g->input[i]], "step%" SCNu64 ".x", &step) == 1)
            fill(it, g->input[i], "x", step * (g->value_bytes[g->input[i]] / sizeof(float)));
    }
}

static void assert_near(const char *what, const float *got, const float *want, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f))
            fail_msg("%s: element %u is %g; %g is expected", what, i, (double)got[i],
                     (double)want[i]);
}

/* Pairs of requests for networks that compute the same. */
TEST(test_same)
{
    static const struct {
        const char *one, *other;
        uint32_t n; /* elements of the output */
    } same[] =
        ROW({"lstm:form=while,steps=5,hidden=3,batch=2",
             "lstm:form=unroll,steps=5,hidden=3,batch=2", 6},
            {"lstm:form=while,steps=3,hidden=4,layers=3", "lstm:steps=3,hidden=4,layers=3", 128},
            {"gru:form=while,steps=5,hidden=3,batch=2", "gru:steps=5,hidden=3,batch=2", 6});

    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        float *one = run(ctx, same[i].one, NULL, NULL),
              *other = run(ctx, same[i].other, set_steps, NULL);

        assert_near(same[i].one, one, other, same[i].n);
        assert_true(fabsf(one[0]) > 1e-3f);
        free(one);
        free(other);
    }
}

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* Sum over k of a[k] * w[k][j], for a row a of n. */
static float product(const float *a, const float *w, uint32_t n, uint32_t j)
{
    float sum = 0;

    for (uint32_t k = 0; k < n; k++)
        sum += a[k] * w[k * n + j];
    return sum;
}

/* One step of a GRU by its paper's formulas. */
TEST(test_gru_cell)
{
    enum { H = 3 };
    float z[H], r[H], rh[H], want[H];
    owned_graph *g = build(ctx, "gru:form=while,layers=1,steps=1,hidden=3,batch=1");
    interpreter it = interpret_begin(ctx, g);

    fill_all(&it, 1);
#define OF(name) ((const float *)it.data[mpl_graph_find(g, name)])
    for (uint32_t j = 0; j < H; j++) {
        z[j] = sigmoid(product(OF("x"), OF("layer0.wz"), H, j) +
                       product(OF("layer0.h"), OF("layer0.uz"), H, j) + OF("layer0.bz")[j]);
        r[j] = sigmoid(product(OF("x"), OF("layer0.wr"), H, j) +
                       product(OF("layer0.h"), OF("layer0.ur"), H, j) + OF("layer0.br")[j]);
    }
    for (uint32_t j = 0; j < H; j++)
        rh[j] = r[j] * OF("layer0.h")[j];
    for (uint32_t j = 0; j < H; j++)
        want[j] = z[j] * OF("layer0.h")[j] +
                  (1 - z[j]) * tanhf(product(OF("x"), OF("layer0.wn"), H, j) +
                                     product(rh, OF("layer0.un"), H, j) + OF("layer0.bn")[j]);
    assert_ok(ctx, interpret(&it));
    assert_near("gru", OF("y"), want, H);
#undef OF
    interpret_end(&it);
}

/* The first tap of the delay line starts with the same value as x in x = conv(x). */
static void set_first(interpreter *it)
{
    mpl_value v = mpl_graph_find(it->g, "first0");

    fill(it, v, "data", 0);
}

/* A value passes all taps before it is convolved again: there are as many convolutions as taps fit
 * into the rounds. */
TEST(test_delay)
{
    float *delay, *pingpong;
    uint64_t rounds;

    delay = run(ctx, "delay:taps=3,rounds=6,image=4,channels=2", set_first, &rounds);
    assert_int_equal(rounds, 6);
    pingpong = run(ctx, "pingpong:rounds=2,image=4,channels=2", NULL, &rounds);
    assert_int_equal(rounds, 2);
    assert_near("delay", delay, pingpong, 32);
    free(delay);
    free(pingpong);
    free(run(ctx, "nested_loop:depth=3,rounds=2,image=4,channels=2", NULL, &rounds));
    assert_int_equal(rounds, 2 + 4 + 8);
}

static void set_mean(interpreter *it, float mean)
{
    mpl_value data = mpl_graph_find(it->g, "data");

    for (uint64_t i = 0; i < it->g->value_bytes[data] / sizeof(float); i++)
        ((float *)it->data[data])[i] = mean;
    for (mpl_value v = 0; v < it->g->n_values; v++) { /* convolutions add their branch's number */
        const char *name = it->g->value_name[v];
        unsigned branch, conv;
        char kind;

        if (sscanf(name, "piece%u.conv%u.%c", &branch, &conv, &kind) == 3)
            for (uint64_t i = 0; i < it->g->value_bytes[v] / sizeof(float); i++)
                ((float *)it->data[v])[i] = kind == 'b' ? (float)branch + 1 : 0;
    }
}
static void set_low(interpreter *it)
{
    set_mean(it, -0.5f);
}
static void set_middle(interpreter *it)
{
    set_mean(it, 0.5f);
}
static void set_high(interpreter *it)
{
    set_mean(it, 7);
}

TEST(test_piecewise)
{
    void (*const set[])(interpreter * it) = {set_low, set_middle, set_high};
    const float want[] = {0, 2, 3}; /* the bypass is negative, so relu makes it 0 */

    for (int i = 0; i < 3; i++) {
        float *y = run(ctx, "piecewise:image=4,channels=2", set[i], NULL);

        assert_near("piecewise", y, &want[i], 1);
        free(y);
    }
}

static void clear_decoder(interpreter *it)
{
    for (mpl_value v = 0; v < it->g->n_values; v++)
        if (strncmp(it->g->value_name[v], "decoder.back", 12) == 0)
            memset(it->data[v], 0, it->g->value_bytes[v]);
}

/* With all scores equal, word 0 comes at once and ends the answer. Otherwise it goes on; words
 * after the end are 0. */
TEST(test_seq2seq)
{
    enum { MOST = 40, BATCH = 4 };
    uint64_t rounds;
    int64_t *words;

    free(run(ctx, "seq2seq:steps=3,hidden=4,vocab=5", clear_decoder, &rounds));
    assert_int_equal(rounds, 3 + 1);
    words = (int64_t *)(void *)run(ctx, "seq2seq:steps=3,hidden=4,vocab=5,batch=4,most=40", NULL,
                                   &rounds);
    assert_true(rounds > 3 + 1);
    for (int i = 0; i < BATCH; i++)
        for (int t = 1; t < MOST; t++)
            assert_true(words[t * BATCH + i] < 5 &&
                        (words[(t - 1) * BATCH + i] != 0 || words[t * BATCH + i] == 0));
    free(words);
}

static const struct {
    const char *spec, *says;
} wrong[] = {
    {"resnet51", "no network 'resnet51'"},
    {"", "no network ''"},
    {"resnet", "no network 'resnet'"},
    {"resnet50:", "'' is no parameter"},
    {"resnet50:batch", "'batch' is no parameter"},
    {"resnet50:steps=2",
     "'steps=2' is no parameter; write key=value with one of batch, image, classes, form"},
    {"resnet50:form=2", "form=2 is none of plain, owl"},
    {"resnet50:batch=0", "batch=0 is no number from 1 to 65536"},
    {"resnet50:batch=-1", "batch=-1 is no number"},
    {"resnet50:batch=", "batch= is no number"},
    {"resnet50:batch=2x", "batch=2x is no number"},
    {"resnet50:batch=99999999999999999999", "is no number"},
    {"resnet50:batch=2,batch=2", "'batch' is given twice"},
    {"resnet50:batch=2,", "'' is no parameter"},
    {"inception_v3:image=74", "image=74 is no number from 75"},
    {"lstm:image=32", "one of batch, layers, steps, hidden, form"},
    {"delay:taps=65", "taps=65 is no number from 1 to 64"},
};

TEST(test_wrong)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mpl_graph *g = NULL;

        assert_status(ctx, mpl_zoo_build(ctx, wrong[i].spec, &g), MPL_EINPUT);
        assert_null(g);
        if (strstr(ctx->message, wrong[i].says) == NULL)
            fail_msg("'%s': \"%s\" does not say \"%s\"", wrong[i].spec, ctx->message,
                     wrong[i].says);
    }
}

/* The k-th allocation fails, for every k: an error status and no leak. */
TEST(test_out_of_memory)
{
    static const char *const specs[] =
        ROW("mlp:layers=1", "mnist_conv", "lstm:steps=1,layers=1", "lstm:form=while,layers=1",
            "delay:taps=2", "nested_loop", "piecewise:branches=2", "seq2seq", "mobilenet_v1");

    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        EACH_ALLOCATION_FAILS (ctx, st) {
            owned_graph *g = NULL;

            st = mpl_zoo_build(ctx, specs[i], &g);
            assert_true(st == MPL_EMEM ? g == NULL : st == MPL_OK);
        }
    }
}

/* Xie et al. 2019, table 3, RandWire-WS, small regime: 5.6 (0.1) million parameters, 583 (6.2)
 * million multiply-adds. */
TEST(test_random_wiring)
{
    uint64_t hash[6];

    for (int seed = 1; seed <= 5; seed++) {
        char spec[64];
        owned_graph *g;

        snprintf(spec, sizeof spec, "randwire:seed=%d", seed);
        g = build(ctx, spec);
        assert_true(n_params(g) >= 5300000 && n_params(g) <= 5900000); /* three deviations */
        assert_true(n_products(g) / 1e6 >= 583 - 3 * 6.2 && n_products(g) / 1e6 <= 583 + 3 * 6.2);
        hash[seed] = mpl_graph_hash(g);
        assert_true(seed == 1 || hash[seed] != hash[seed - 1]);
    }
}

/* Merges edges in parallel and in series until none is left but one. Small graphs only. */
static void assert_series_parallel(const mpl_graph *g)
{
    enum { MOST = 256 };
    static uint8_t edge[MOST][MOST]; /* from row to column: input, operations, output */
    uint32_t n = g->n_ops + 2;
    bool moved = true;

    assert_true(n <= MOST);
    memset(edge, 0, sizeof edge);
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            if (g->op_in[i] != MPL_NONE && g->value_role[g->op_in[i]] != MPL_WEIGHT)
                edge[g->value_op[g->op_in[i]] + 1][op + 1] = 1; /* MPL_NONE + 1 is the input */
    edge[n - 2][n - 1] = 1;
    while (moved) {
        moved = false;
        for (uint32_t v = 1; v + 1 < n; v++) {
            uint32_t n_in = 0, n_out = 0, from = 0, to = 0;

            for (uint32_t u = 0; u < n; u++) {
                n_in += edge[u][v];
                n_out += edge[v][u];
                from = edge[u][v] ? u : from;
                to = edge[v][u] ? u : to;
            }
            if (n_in != 1 || n_out != 1)
                continue;
            edge[from][v] = edge[v][to] = 0;
            edge[from][to] = 1; /* parallel edges become one */
            moved = true;
        }
    }
    for (uint32_t v = 1; v + 1 < n; v++)
        for (uint32_t u = 0; u < n; u++)
            assert_true(!edge[u][v] && !edge[v][u]);
}

/* Random graphs have as many operations as asked for, each operation reaches the output, and the
 * seed alone decides. A series-parallel graph is reduced to one edge by merging edges in series and
 * in parallel. */
TEST(test_random_nets)
{
    static const char *const kinds[] = {"series_parallel", "layered"};
    uint64_t last = 0;

    for (int k = 0; k < 2; k++)
        for (int seed = 1; seed <= 3; seed++) {
            char spec[64];
            owned_graph *g, *again;

            snprintf(spec, sizeof spec, "%s:ops=%d,seed=%d", kinds[k], 60 * seed, seed);
            g = build(ctx, spec);
            again = build(ctx, spec);
            assert_int_equal(mpl_graph_hash(g), mpl_graph_hash(again));
            assert_true(mpl_graph_hash(g) != last);
            last = mpl_graph_hash(g);
            if (k == 0)
                assert_int_equal(g->n_ops, 60 * seed);
            else
                assert_true(g->n_ops >= 60u * seed - 24 && g->n_ops <= 60u * seed + 24);
            for (mpl_value v = 0; v < g->n_values; v++)
                assert_true(g->value_use_begin[v + 1] > g->value_use_begin[v] || v == g->output[0]);
            if (k == 0)
                assert_series_parallel(g);
        }
}

/* ---- regions of mask_rcnn ---- */

/* Weights that keep the activations of a deep network in range. */
static void fill_deep(interpreter *it)
{
    const mpl_graph *g = it->g;

    for (mpl_value v = 0; v < g->n_values; v++) {
        const mpl_shape *s = &g->value_shape[v];
        float *x = it->data[v], fan_in = 1, scale = 0.1f, shift = 0;

        if ((g->value_role[v] != MPL_INPUT && g->value_role[v] != MPL_WEIGHT) ||
            g->value_data[v] != NULL)
            continue;
        for (uint32_t i = 1; i < s->rank; i++)
            fan_in *= (float)s->dim[i];
        if (g->value_role[v] == MPL_INPUT || s->rank > 1)
            scale = g->value_role[v] == MPL_INPUT ? 1 : sqrtf(6 / fan_in);
        else if (strstr(g->value_name[v], ".var") != NULL ||
                 strstr(g->value_name[v], ".scale") != NULL)
            shift = 1;
        fill(it, v, g->value_name[v], 0);
        for (uint64_t i = 0; i < count(g, v); i++)
            x[i] = x[i] * scale + shift;
    }
}

static const float *data_of(const interpreter *it, const char *scope, const char *name,
                            mpl_shape *shape)
{
    char text[100];
    mpl_value v;

    snprintf(text, sizeof text, "%s%s%s", scope, scope[0] != '\0' ? "." : "", name);
    v = mpl_graph_find(it->g, text);
    if (v == MPL_NONE)
        fail_msg("%s: no such value", text);
    if (shape != NULL)
        *shape = it->g->value_shape[v];
    return it->data[v];
}

/* The most likely anchors, shifted; both ends of the boxes. */
static void assert_proposals(const interpreter *it, uint32_t n_rois)
{
    static const char *const side[2][2] = {{"y.from", "y.to"}, {"x.from", "x.to"}};
    mpl_shape shape;
    const float *score = data_of(it, "rpn", "scores", &shape),
                *shift = data_of(it, "rpn", "shifts", NULL);
    const float *anchor = data_of(it, "", "anchors", NULL);
    bool *taken = calloc((size_t)shape.dim[0], sizeof *taken);

    for (uint32_t r = 0; r < n_rois; r++) {
        int64_t best = -1;

        for (int64_t i = 0; i < shape.dim[0]; i++)
            if (!taken[i] && (best < 0 || score[2 * i + 1] > score[2 * best + 1]))
                best = i;
        taken[best] = true;
        for (int k = 0; k < 2; k++) {
            const float *a = anchor + 4 * best, *d = shift + 4 * best;
            double length = a[2 + k] - a[k], middle = a[k] + length / 2 + 0.1 * d[k] * length;
            double half = length * exp(fmin(fmax(0.2 * d[2 + k], -log(62.5)), log(62.5))) / 2;
            double from = data_of(it, "proposals", side[k][0], NULL)[r];
            double to = data_of(it, "proposals", side[k][1], NULL)[r];

            assert_float_equal(from, fmin(fmax(middle - half, 0), 1), 1e-5);
            assert_float_equal(to, fmin(fmax(middle + half, 0), 1), 1e-5);
        }
    }
    free(taken);
}

/* Every bin of every region is a bilinear sample of the level that fits its box. */
static void assert_regions(const interpreter *it, const char *from, const char *to, double image)
{
    mpl_shape shape, level_shape;
    const float *region = data_of(it, to, "region", &shape);
    int64_t bins = shape.dim[2];

    for (int64_t i = 0; i < shape.dim[0] * shape.dim[1] * bins * bins; i += 7) {
        int64_t r = i / (shape.dim[1] * bins * bins), c = i / (bins * bins) % shape.dim[1];
        double y1 = data_of(it, from, "y.from", NULL)[r], y2 = data_of(it, from, "y.to", NULL)[r];
        double x1 = data_of(it, from, "x.from", NULL)[r], x2 = data_of(it, from, "x.to", NULL)[r];
        int level =
            (int)fmin(fmax(round(4 + log2(sqrt((y2 - y1) * (x2 - x1)) * image / 224)), 2), 5);
        char scope[16];
        const float *map;
        double side, y, x, fy, fx, want = 0;

        snprintf(scope, sizeof scope, "fpn%d", level);
        map = data_of(it, scope, "conv", &level_shape);
        side = (double)level_shape.dim[2];
        y = (y1 + (y2 - y1) * (double)(i / bins % bins) / (double)(bins - 1)) * (side - 1);
        x = (x1 + (x2 - x1) * (double)(i % bins) / (double)(bins - 1)) * (side - 1);
        fy = y - floor(y), fx = x - floor(x);
        for (int k = 0; k < 4; k++) {
            int64_t row = (int64_t)fmin(floor(y) + k / 2, side - 1),
                    column = (int64_t)fmin(floor(x) + k % 2, side - 1);

            want += (k / 2 == 1 ? fy : 1 - fy) * (k % 2 == 1 ? fx : 1 - fx) *
                    map[(c * (int64_t)side + row) * (int64_t)side + column];
        }
        if (!(fabs(region[i] - want) <= 1e-3 * (1 + fabs(want))))
            fail_msg("%s: element %" PRId64 " is %g; %g is expected", to, i, (double)region[i],
                     want);
    }
}

TEST(test_mask_rcnn)
{
    owned_graph *g = build(ctx, "mask_rcnn:image=64,rois=6,detections=2,classes=3");
    interpreter it = interpret_begin(ctx, g);

    fill_deep(&it);
    assert_ok(ctx, interpret(&it));
    assert_proposals(&it, 6);
    assert_regions(&it, "proposals", "rois", 64);
    assert_regions(&it, "detections", "mask_rois", 64);
    interpret_end(&it);
}

TESTS(test_published, test_counts, test_every_network, test_variants, test_lstm_cell, test_names,
      test_same, test_gru_cell, test_delay, test_piecewise, test_seq2seq, test_wrong,
      test_out_of_memory, test_random_wiring, test_random_nets, test_mask_rcnn)
