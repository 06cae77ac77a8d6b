/* test_runtime_layout.c -- images with their channels last or in blocks: the result of
 * mpl_graph_channels_last and of any choice of layouts, executed on `cpu` in a plan's arena,
 * against the plain graph on `ref` and on `cpu`; the choice of the least time against all choices.
 * Fault: operators that misread a layout, missing or superfluous reorders, weights reordered
 * wrongly, and concats that share although their operands are not contiguous. */
#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "graphs/ir/layout.h"
#include "graphs/passes/layouts.h"
#include "graphs/passes/optimise/optimise.h"
#include "graphs/passes/passes.h"
#include "planners/verify/verify.h"
#include "runtime/exec.h"

#include <math.h>

typedef struct network {
    const char *name;
    int reorders; /* -1: not counted */
} network;

static const network networks[] = {
    {"resnet18:image=32,classes=10", 2}, {"resnet50:image=32,classes=10,batch=2", 2},
    {"mobilenet_v2:image=32", -1},       {"squeezenet:image=64,classes=10", -1},
    {"densenet121:image=32", -1},        {"inception_v3:image=96,classes=10", -1},
    {"shufflenet_v2:image=32", -1},      {"vgg16:image=32,classes=10", -1},
};

/* Each operator that keeps layouts, with what lies between and beside them; and the number of
 * reorders. */
typedef struct text_case {
    const char *text;
    int reorders;
} text_case;

static const text_case texts[] = {
    ROW("input x f32 [2,3,9,8]\nweight w f32 [6,3,3,3]\nweight b f32 [6]\n"
        "y = conv(x, w, b) pads=[1,1,1,1] strides=[2,1]\noutput y\n",
        1),
    ROW("input x f32 [1,4,9,8]\nweight w f32 [4,1,3,3]\nc = conv(x, w) group=4\ny = relu(c)\n"
        "output y\noutput c\n",
        3),
    ROW("input x f32 [2,6,9,8]\nweight w f32 [6,3,1,1]\nc = conv(x, w) group=2\ns = sigmoid(x)\n"
        "m = mul(c, s)\na = add(m, c)\ny = concat(a, s, c) axis=1\noutput y\n",
        2),
    ROW("input x f32 [2,3,9,8]\nweight w f32 [5,3,2,2]\nc = conv(x, w)\n"
        "p = max_pool(c) kernel_shape=[2,3] strides=[2,2] pads=[0,1,1,0]\n"
        "q = avg_pool(p) kernel_shape=[2,2]\ng = global_avg_pool(q)\ny = flatten(g)\noutput y\n",
        1),
    ROW("input x f32 [2,3,9,8]\nweight w f32 [5,3,2,2]\nc = conv(x, w)\n"
        "p = avg_pool(c) kernel_shape=[3,4] strides=[2,3] pads=[1,2,2,0] count_include_pad=1 "
        "ceil_mode=1\ny = avg_pool(p) kernel_shape=[2,2] pads=[1,1,0,0] ceil_mode=1\noutput y\n",
        1),
    ROW("input x f32 [2,3,9,8]\nweight w f32 [5,3,2,2]\nc = conv(x, w)\n"
        "p = avg_pool(c) kernel_shape=[4,3] strides=[2,2] pads=[3,1,0,2] count_include_pad=1\n"
        "y = avg_pool(p) kernel_shape=[1,1] pads=[1,0,0,1]\noutput y\n",
        1),
    ROW("input x f32 [2,3,9,8]\nweight w f32 [5,3,2,2]\nweight k f32 [5]\n"
        "weight v f32 [5] = splat 2\nc = conv(x, w)\nn = batch_norm(c, k, k, k, v)\nl = clip(n)\n"
        "d = identity(l)\nt = transpose(d) perm=[0,2,3,1]\ny = relu(t)\nz = sum(d, c, n)\n"
        "output y\noutput z\n",
        2),
    ROW("input x f32 [2,3,9,8]\nweight w f32 [5,3,2,2]\nweight k f32 [5,1,1]\nc = conv(x, w)\n"
        "y = mul(c, k)\noutput y\n",
        1),
    ROW("input x f32 [2,3,9,8]\nweight w f32 [5,3,2,2]\nc = conv(x, w)\ng = global_avg_pool(c)\n"
        "y = mul(c, g)\noutput y\n",
        1),
    {"input x f32 [2,3,9,8]\nweight w f32 [5,3,2,2]\nweight k f32 [5,1,1]\nweight t f32 [1,5,1,1]\n"
     "weight h f32 [] = splat 2\nc = conv(x, w)\na = mul(c, k)\nb = sub(a, t)\nd = div(b, h)\n"
     "g = global_avg_pool(d)\ns = sigmoid(g)\nm = mul(s, d)\ne = add(m, s)\ny = relu(e)\noutput "
     "y\n",
     1},
    ROW("input x f32 [2,3,9,8]\ninput q f32 [1,5,1,1]\nweight w f32 [5,3,2,2]\nc = conv(x, w)\n"
        "y = mul(q, c)\noutput y\n",
        2),
    ROW("input x f32 [2,3,9,8]\nweight t f32 [1,5,1,1]\nweight w f32 [5,3,2,2]\nc = conv(x, w)\n"
        "y = mul(t, c)\noutput y\n",
        1),
    ROW("input x f32 [2,3,9,8]\nweight k f32 [2,1,1,1]\nweight w f32 [5,3,2,2]\nc = conv(x, w)\n"
        "m = mul(c, k)\ny = sub(k, m)\noutput y\n",
        1),
    ROW("input x f32 [2,3,9,8]\nweight w f32 [5,3,2,2]\nc = conv(x, w)\ng = global_avg_pool(c)\n"
        "y = sub(g, c)\noutput y\n",
        2),
    ROW("input x f32 [2,3,9,8]\ninput q f32 [5,1,1]\nweight w f32 [5,3,2,2]\nc = conv(x, w)\n"
        "y = mul(q, c)\noutput y\n",
        1),
    ROW("input x f32 [2,3,9,8]\ninput q f32 [2,5,1,1]\nweight w f32 [1,3,2,2]\nc = conv(x, w)\n"
        "y = mul(c, q)\noutput y\n",
        1),
    ROW("input x f32 [2,3,9,8]\nweight r f32 [8,1]\nweight w f32 [5,3,2,2]\nc = conv(x, w)\n"
        "y = add(c, r)\noutput y\n",
        1),
    {"input x f32 [2,3,9,8]\nweight r f32 [7]\nweight w f32 [5,3,2,2]\nc = conv(x, w)\ny = add(c, "
     "r)\noutput y\n",
     1},
    ROW("input x f32 [2,3,9,8]\ninput q f32 [2,1,1,7]\nweight w f32 [5,3,2,2]\nc = conv(x, w)\n"
        "y = mul(c, q)\noutput y\n",
        1),
    ROW("input x f32 [2,3,1,1]\ninput q f32 [2,5,4,4]\nweight w f32 [5,3,1,1]\nc = conv(x, w)\n"
        "y = mul(c, q)\noutput y\n",
        1),
    {"input x f32 [2,16,9,8]\nweight w f32 [16,16,3,3]\nweight b f32 [16]\nweight d f32 "
     "[16,1,3,3]\n"
     "a = conv_act(x, w, b) pads=[1,1,1,1] activation=relu\ns = conv_sum(a, x, w) pads=[1,1,1,1] "
     "activation=relu6\nt = conv_sum(s, a, d) group=16 pads=[1,1,1,1]\nu = conv_sum(x, t, w, b) "
     "pads=[1,1,1,1]\nv = conv_sum(u, u, w) pads=[1,1,1,1]\ny = sigmoid(v)\noutput y\n",
     2},
    /* filters that are not weights: given, computed, the image itself, and images in other roles */
    {"input x f32 [1,6,6,6]\ninput w f32 [6,2,3,3]\ny = conv(x, w) group=3\nz = relu(y)\noutput "
     "z\n",
     2},
    ROW("input x f32 [2,3,9,8]\ninput w f32 [5,3,2,2]\nweight b f32 [5]\nf = tanh(w)\n"
        "c = conv_act(x, f, b) activation=relu\np = max_pool(c) kernel_shape=[2,2]\n"
        "r = slice(p) starts=[0] ends=[3] axes=[1]\ny = conv(r, w)\noutput y\noutput f\n",
        -1),
    {"input x f32 [4,4,3,3]\nc = conv(x, x)\nf = conv(x, x) pads=[1,1,1,1]\nd = conv(f, c)\ns = "
     "conv_sum(f, x, f) pads=[1,1,1,1]\ne = mul(d, c)\ny = concat(s, e) axis=1\noutput y\n",
     -1},
    {"input x f32 [2,3,9]\nweight w f32 [5,3,2]\ny = conv(x, w)\noutput y\n", 0},
    ROW("input x f32 [2,3,9,8]\nweight w f32 [5,3,2,2]\nweight k f32 [5,1,1]\n"
        "weight h f32 [1] = splat 0.5\nc = conv(x, w)\nm = max(c, k)\nl = min(m, c)\n"
        "p = max_pool(l) kernel_shape=[3,2]\nq = clip(p, h)\nr = relu(q)\ny = global_max_pool(r)\n"
        "output y\n",
        -1),
    {"input x f32 [2,3,9,8]\ny = relu(x)\noutput y\n", 0},
};

static int count_reorders(const mpl_graph *g)
{
    int n = 0;

    for (mpl_op op = 0; op < g->n_ops; op++)
        n += g->op_kind[op] == MPL_OP_reorder;
    return n;
}

/* All outputs of a planned run, concatenated; checked runs guard their arenas. */
static char *execute_with(mpl_ctx *ctx, const char *backend_name, const mpl_graph *g, bool checked,
                          bool in_place, uint32_t *n_over)
{
    const mpl_backend *backend = mpl_backend_find(backend_name);
    mpl_problem_options options = mpl_problem_options_default();
    mpl_device *dev;
    owned_problem *p;
    owned_map *map;
    owned_plan *plan;
    mpl_exec *exec;
    mpl_op *order = calloc(g->n_ops + 1, sizeof *order);
    size_t bytes = 1;
    char *all, *at;

    assert_ok(ctx, backend->open(ctx, &(mpl_device_options){.n_threads = 2}, &dev));
    assert_ok(ctx, mpl_order_of(ctx, g, mpl_order_find("given"), order));
    options.align = backend->align;
    options.in_place = in_place;
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &options, &p, &map));
    plan = planned_by(ctx, "greedy_size", p);
    assert_ok(ctx, mpl_verify(ctx, p, plan));
    for (uint32_t i = 0; i < p->n_in_place && n_over != NULL; i++)
        *n_over += plan->offset[p->in_place_in[i]] == plan->offset[p->in_place_out[i]];
    assert_ok(ctx, mpl_exec_new(ctx, backend, dev, g, order, p, map, plan,
                                &(mpl_exec_options){.checked = checked, .weight_seed = 3}, &exec));
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        void *data = malloc(g->value_bytes[g->input[i]] + 1);

        assert_ok(ctx, mpl_exec_make_input(ctx, g, i, 1, data));
        assert_ok(ctx, mpl_exec_set_input(exec, i, data));
        free(data);
    }
    for (int round = 0; round < 2; round++) /* weights are reordered in the first */
        assert_ok(ctx, mpl_exec_run(exec, NULL));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        bytes += g->value_bytes[g->output[i]];
    at = all = malloc(bytes);
    for (uint32_t i = 0; i < g->n_outputs; at += g->value_bytes[g->output[i++]])
        assert_ok(ctx, mpl_exec_output(exec, i, at));
    mpl_exec_free(ctx, exec);
    backend->close(dev);
    free(order);
    return all;
}

static char *execute(mpl_ctx *ctx, const char *backend_name, const mpl_graph *g, bool checked)
{
    return execute_with(ctx, backend_name, g, checked, true, NULL);
}

static void assert_near(const char *what, const mpl_graph *g, const void *got, const void *want,
                        double tolerance)
{
    const float *a = got, *b = want;

    for (uint32_t i = 0; i < g->n_outputs; i++)
        for (uint64_t k = 0; k < g->value_bytes[g->output[i]] / sizeof *a; k++, a++, b++)
            if (!(fabs((double)*a - (double)*b) <= tolerance * fmax(1, fabs((double)*b))))
                fail_msg("%s: element %" PRIu64 " of output %u is %.9g where %.9g was expected",
                         what, k, i, (double)*a, (double)*b);
}

/* *g becomes its channels-last form; every edge has the layout that its reader takes. */
static void relay(mpl_ctx *ctx, const char *what, mpl_graph **g, int reorders)
{
    uint32_t n_out = (*g)->n_outputs, n_ops = (*g)->n_ops;
    char *name[8];

    assert_true(n_out <= 8);
    for (uint32_t i = 0; i < n_out; i++)
        name[i] = strdup((*g)->value_name[(*g)->output[i]]);
    assert_ok(ctx, mpl_graph_channels_last(ctx, g));
    for (uint32_t i = 0; i < n_out; i++) {
        assert_string_equal((*g)->value_name[(*g)->output[i]], name[i]);
        assert_false(mpl_channels_last(*g, (*g)->output[i]));
        free(name[i]);
    }
    assert_int_equal((*g)->n_ops, n_ops + (uint32_t)count_reorders(*g));
    if (reorders >= 0 && count_reorders(*g) != reorders)
        fail_msg("%s: %d reorders, %d were expected", what, count_reorders(*g), reorders);
}

static void check_graph(mpl_ctx *ctx, const char *what, mpl_graph *g, int reorders, bool all)
{
    char *plain = execute(ctx, "cpu", g, false), *ref = all ? execute(ctx, "ref", g, false) : NULL,
         *last, *same;

    relay(ctx, what, &g, reorders);
    last = execute(ctx, "cpu", g, all);
    assert_near(what, g, last, plain, 1e-3);
    if (all) {
        assert_near(what, g, last, ref, 1e-3);
        same = execute(ctx, "ref", g, true); /* on ref a reorder is a copy */
        assert_near(what, g, same, ref, 0);
        free(same);
    }
    free(plain);
    free(ref);
    free(last);
    mpl_graph_free(ctx, g);
}

TEST(operators_agree)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[1000];
        mpl_graph *g;

        snprintf(text, sizeof text, "graph t\n%s", texts[i].text);
        assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, strlen(text), &g));
        check_graph(ctx, texts[i].text, g, texts[i].reorders, true);
    }
}

TEST(networks_agree)
{
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        mpl_read_options options = {0};
        mpl_source source;

        assert_ok(ctx, mpl_source_open(ctx, networks[i].name, &options, &source));
        check_graph(ctx, networks[i].name, source.graph, networks[i].reorders, false);
        source.graph = NULL;
        mpl_source_fini(ctx, &source);
    }
}

/* ---- random graphs ---- */

enum {
    IMAGE,
    PIXEL,
    WIDE,
    N_FORMS
}; /* [N,C,6,5]; values broadcast over it, [N,C,1,1]; [N,2C,6,5] */

typedef struct writer {
    mpl_rng rng;
    char text[6000];
    size_t n;
    uint32_t made[N_FORMS][64], n_made[N_FORMS], next, channels;
} writer;

static uint32_t below(writer *w, uint32_t n)
{
    return (uint32_t)mpl_rng_below(&w->rng, n);
}

static uint32_t pick(writer *w, uint32_t form) /* favours the latest */
{
    uint32_t n = w->n_made[form], last = below(w, 2) == 0 || n < 3 ? n : 3;

    return w->made[form][n - 1 - below(w, last)];
}

/* A second operand: an image, a pixel, or a weight broadcast in some way; mostly one that channels
 * last supports. */
static const char *operand(writer *w, char name[16])
{
    static const char *const weight[] = {"number", "channels", "pixel",   "pixel",  "channels",
                                         "number", "row",      "columns", "rising", "whole"};
    uint32_t k = below(w, 30);

    if (k < 20 && k % 2 == 0)
        snprintf(name, 16, "v%u", pick(w, IMAGE));
    else if (k < 20 && w->n_made[PIXEL] > 0)
        snprintf(name, 16, "v%u", pick(w, PIXEL));
    else
        snprintf(name, 16, "%s", weight[k % 10]);
    return name;
}

static void line(writer *w, uint32_t form, const char *format, ...)
{
    va_list args;

    w->n += (size_t)snprintf(w->text + w->n, sizeof w->text - w->n, "v%u = ", w->next);
    va_start(args, format);
    w->n += (size_t)vsnprintf(w->text + w->n, sizeof w->text - w->n, format, args);
    va_end(args);
    w->n += (size_t)snprintf(w->text + w->n, sizeof w->text - w->n, "\n");
    assert_true(w->n + 100 < sizeof w->text);
    w->made[form][w->n_made[form]++] = w->next++;
}

static void random_op(writer *w)
{
    static const char *const two[] = {"add", "mul", "sub", "max"};
    char name[16], other[16];
    uint32_t x = pick(w, IMAGE), kind;

    switch (below(w, 16)) {
    case 0:
        line(w, IMAGE, "conv(v%u, w3) pads=[1,1,1,1]", x);
        break;
    case 1:
        if (below(w, 2) == 0)
            line(w, IMAGE, "conv(v%u, w1, offset)", x);
        else
            line(w, IMAGE, "conv(v%u, each) pads=[1,1,1,1] group=%u", x, w->channels);
        break;
    case 2:
        line(w, IMAGE, "%s(v%u)", below(w, 2) == 0 ? "tanh" : "relu", x);
        break;
    case 3:
        kind = below(w, 3);
        line(w, IMAGE, "%s(v%u) kernel_shape=[3,3] pads=[1,1,1,1]%s",
             kind == 0 ? "max_pool" : "avg_pool", x, kind == 2 ? " count_include_pad=1" : "");
        break;
    case 4:
        line(w, PIXEL, "global_avg_pool(v%u)", x);
        line(w, PIXEL, "sigmoid(v%u)", w->next - 1);
        break;
    case 5:
        line(w, IMAGE, "batch_norm(v%u, offset, offset, offset, variance)", x);
        break;
    case 6:
        line(w, IMAGE, "sum(v%u, v%u, v%u)", x, pick(w, IMAGE), pick(w, IMAGE));
        break;
    case 7:
        line(w, IMAGE, "fma(v%u, %s, %s)", x, operand(w, name), operand(w, other));
        break;
    case 8:
        line(w, IMAGE, "div(v%u, %s)", x, below(w, 2) == 0 ? "two" : "twos");
        break;
    case 9:
        line(w, IMAGE, "%s(%s, v%u)", two[below(w, 4)], operand(w, name), x);
        break;
    case 10:
        line(w, IMAGE, "softmax(v%u) axis=3", x); /* ignores layouts */
        break;
    case 11:
    case 12:
        line(w, WIDE, "concat(v%u, v%u) axis=1", x, pick(w, IMAGE));
        line(w, IMAGE, "conv(v%u, w8)", w->next - 1);
        break;
    default:
        line(w, IMAGE, "%s(v%u, %s)", two[below(w, 4)], x, operand(w, name));
    }
}

static mpl_graph *random_graph(mpl_ctx *ctx, uint64_t seed, writer *w)
{
    uint32_t n_ops, batch, c = seed % 2 == 0 ? 8 : 4; /* blocks have 8 channels */
    mpl_graph *g = NULL;

    *w = (writer){.n = 0};
    w->rng = mpl_rng_of(seed);
    w->channels = c;
    n_ops = 4 + below(w, 16), batch = 1 + below(w, 2);
    w->n = (size_t)snprintf(
        w->text, sizeof w->text,
        "graph t\ninput v0 f32 [%u,%u,6,5]\n%s w3 f32 [%u,%u,3,3]\nweight w1 f32 [%u,%u,1,1]\n"
        "weight w8 f32 [%u,%u,1,1]\nweight each f32 [%u,1,3,3]\nweight offset f32 [%u]\n"
        "weight variance f32 [%u] = splat 2\nweight number f32 []\n"
        "weight channels f32 [%u,1,1]\nweight pixel f32 [1,%u,1,1]\n"
        "weight row f32 [5]\nweight columns f32 [6,1]\nweight rising f32 [%u,6,1]\n"
        "weight whole f32 [%u,%u,6,5]\nweight two f32 [] = splat 2\n"
        "weight twos f32 [%u,1,1] = splat -2\n",
        batch, c, seed % 4 == 0 ? "input" : "weight", c, c, c, c, c, 2 * c, c, c, c, c, c, c, batch,
        c, c);
    w->made[IMAGE][w->n_made[IMAGE]++] = w->next++;
    line(w, IMAGE, "conv(v0, w1)");
    while (w->next < n_ops)
        random_op(w);
    w->n += (size_t)snprintf(w->text + w->n, sizeof w->text - w->n, "output v%u\noutput v%u\n",
                             w->next - 1, 1 + below(w, w->next - 2));
    if (mpl_text_read_memory(ctx, "random", w->text, w->n, &g) != MPL_OK)
        fail_msg("%s: %s", ctx->message, w->text);
    return g;
}

TEST(random_graphs_agree)
{
    const char *most = getenv("LAYOUT_ORACLE");
    uint64_t n = most != NULL ? strtoull(most, NULL, 10) : 200, fewer = 0;
    writer *w = malloc(sizeof *w);

    for (uint64_t seed = 1; seed <= n; seed++) {
        char *want, *got;
        owned_graph *g = random_graph(ctx, seed, w);

        want = execute(ctx, "ref", g, false);
        relay(ctx, w->text, &g, -1);
        fewer += count_reorders(g) <= 3;
        got = execute(ctx, "cpu", g, true);
        assert_near(w->text, g, got, want, 1e-3);
        free(want);
        free(got);
    }
    free(w);
    assert_true(fewer > n / 4);
}

/* Draws a layout for each operation, and an implementation; blocks are often taken. Returns how
 * many operations have blocks. */
static uint32_t draw_laid(const mpl_graph *g, mpl_rng *rng, mpl_laid *laid)
{
    uint32_t n_blocked = 0;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_layout layout = (mpl_layout)mpl_rng_below(rng, MPL_N_LAYOUTS);

        if (mpl_op_may_be(g, op, MPL_BLOCKED) && mpl_rng_below(rng, 2) == 0)
            layout = MPL_BLOCKED;
        laid[op] = (mpl_laid){mpl_op_may_be(g, op, layout) ? (uint8_t)layout : MPL_PLAIN,
                              (uint8_t)mpl_rng_below(rng, MPL_N_WAYS)};
        n_blocked += laid[op].layout == MPL_BLOCKED;
    }
    return n_blocked;
}

static uint32_t agrees_as_drawn(mpl_ctx *ctx, const char *text, mpl_graph *graph, uint64_t seed)
{
    mpl_rng rng = mpl_rng_of(seed);
    owned_graph *g = graph;
    char *want = execute(ctx, "ref", g, false), *got;
    mpl_laid *laid = calloc(g->n_ops, sizeof *laid);
    uint32_t n_blocked = draw_laid(g, &rng, laid);

    assert_ok(ctx, mpl_graph_lay(ctx, &g, laid));
    got = execute(ctx, "cpu", g, true);
    assert_near(text, g, got, want, 1e-3);
    free(laid);
    free(want);
    free(got);
    return n_blocked;
}

/* Any choice computes the same, with images and reorders wherever it falls. */
TEST(any_choice_agrees)
{
    uint64_t n = draws(100), n_blocked = 0;
    writer *w = malloc(sizeof *w);

    for (uint64_t seed = 1; seed <= n; seed++) {
        mpl_graph *g = random_graph(ctx, seed, w);

        n_blocked += agrees_as_drawn(ctx, w->text, g, seed + 5000);
    }
    assert_true(n_blocked > n);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mpl_graph *g;

        w->n = (size_t)snprintf(w->text, sizeof w->text, "graph t\n%s", texts[i].text);
        assert_ok(ctx, mpl_text_read_memory(ctx, "test", w->text, w->n, &g));
        agrees_as_drawn(ctx, w->text, g, i);
    }
    free(w);
}

/* What a choice costs, counted in the graph that is made so. */
static uint64_t cost_of(mpl_ctx *ctx, const char *text, const mpl_graph *g,
                        const mpl_layout_times *times, const mpl_laid *laid)
{
    owned_graph *made = NULL;
    uint64_t sum = 0;
    mpl_op from = 0;

    assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, strlen(text), &made));
    assert_ok(ctx, mpl_graph_lay(ctx, &made, laid));
    for (mpl_op op = 0; op < made->n_ops; op++) {
        const char *name;
        mpl_value v;
        size_t n;

        if (made->op_kind[op] != MPL_OP_reorder) {
            sum += times->op[laid[from].layout][from];
            from++;
            continue;
        }
        name = made->value_name[mpl_op_input(made, op, 0)]; /* v3, v3.last: of v3 */
        n = strcspn(name, ".");
        for (v = 0; strncmp(g->value_name[v], name, n) != 0 || g->value_name[v][n] != '\0'; v++)
            assert_true(v + 1 < g->n_values);
        sum += times->reorder[mpl_layout_of(made, mpl_op_output(made, op, 0))][v];
    }
    return sum;
}

static void draw_times(const mpl_graph *g, mpl_rng *rng, mpl_layout_times *times)
{
    for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++) {
        times->op[k] = calloc(g->n_ops, sizeof(uint64_t));
        times->reorder[k] = calloc(g->n_values, sizeof(uint64_t));
        for (mpl_op op = 0; op < g->n_ops; op++)
            times->op[k][op] =
                mpl_op_may_be(g, op, (mpl_layout)k) ? mpl_rng_below(rng, 40) : UINT64_MAX;
        for (mpl_value v = 0; v < g->n_values; v++)
            times->reorder[k][v] = mpl_rng_below(rng, 12);
    }
}

static void free_times(mpl_layout_times *times)
{
    for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++) {
        free(times->op[k]);
        free(times->reorder[k]);
    }
}

/* The least cost over all layouts of the operations from `op` on. */
static uint64_t least_cost(mpl_ctx *ctx, const char *text, const mpl_graph *g,
                           const mpl_layout_times *times, mpl_laid *laid, mpl_op op)
{
    uint64_t least = UINT64_MAX;

    if (op == g->n_ops) {
        least = cost_of(ctx, text, g, times, laid);
        assert_int_equal(least, mpl_layouts_ns(g, times, laid));
        return least;
    }
    for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++)
        if (mpl_op_may_be(g, op, (mpl_layout)k)) {
            uint64_t cost;

            laid[op].layout = (uint8_t)k;
            cost = least_cost(ctx, text, g, times, laid, op + 1);
            least = cost < least ? cost : least;
        }
    return least;
}

/* How many choices there are, at most 512. */
static uint32_t n_choices(const mpl_graph *g)
{
    uint32_t n = 1;

    for (mpl_op op = 0; op < g->n_ops && n <= 512; op++)
        n *= 1u + mpl_op_may_be(g, op, MPL_LAST) + mpl_op_may_be(g, op, MPL_BLOCKED);
    return n;
}

/* The choice against all others, each counted in its graph: of two layouts the least, of three
 * rarely more, and never below the bound. */
TEST(the_choice_is_the_least_of_all)
{
    uint64_t n = draws(60), n_other = 0, n_tried[2] = {0}, more = 0;
    writer *w = malloc(sizeof *w);

    for (uint64_t seed = 1; n_tried[0] + n_tried[1] < n; seed++) {
        mpl_rng rng = mpl_rng_of(seed);
        owned_graph *g = random_graph(ctx, seed, w);
        mpl_layout_times times;
        mpl_laid *laid = calloc(g->n_ops, sizeof *laid), *chosen = calloc(g->n_ops, sizeof *laid);
        uint64_t found = 0, bound = 0, least;
        uint32_t others = 0;

        draw_times(g, &rng, &times);
        if (n_choices(g) <= 512) {
            n_tried[seed % 2]++;
            least = least_cost(ctx, w->text, g, &times, laid, 0);
            assert_ok(ctx, mpl_layouts_choose(ctx, g, &times, chosen, &found, &bound));
            assert_true(bound <= least && least <= found);
            assert_int_equal(cost_of(ctx, w->text, g, &times, chosen), found);
            if (seed % 2 == 1)
                assert_int_equal(found, least);
            more += found > least;
            for (mpl_op op = 0; op < g->n_ops; op++)
                others |= 1u << chosen[op].layout;
            n_other += (others & 1u << MPL_BLOCKED) != 0 && others != 1u << MPL_BLOCKED;
        }
        free_times(&times);
        free(laid);
        free(chosen);
    }
    free(w);
    assert_true(n < 20 || (n_tried[0] >= n / 4 && n_tried[1] >= n / 4 && n_other > n / 6));
    assert_true(n < 20 || more <= n_tried[0] / 5);
}

/* Around a loop and a branch, which read images of any layout as they were and hand one on. */
TEST(blocks_stay_plain)
{
    static const char text[] =
        "graph t\ninput x f32 [1,8,6,5]\nweight w f32 [8,8,3,3]\nweight n i64 [] = splat 3\n"
        "weight which i64 [] = splat 0\na = conv(x, w) pads=[1,1,1,1]\nb = sigmoid(a)\n"
        "block step\nparam t i64 []\nparam h f32 [1,8,6,5]\ns = add(h, b)\n"
        "i = conv(s, w) pads=[1,1,1,1]\nyield _, i\nc = while step(n, _, a) carried=1\n"
        "d = relu(c)\nblock first\nyield d\nblock second\ne = neg(b)\nyield e\n"
        "f = case first, second(which)\ny = tanh(f)\noutput y\n";
    uint64_t n = draws(30);

    for (uint64_t seed = 1; seed <= n; seed++) {
        mpl_rng rng = mpl_rng_of(seed);
        owned_graph *g = text_graph(ctx, text);
        mpl_layout_times times;
        mpl_laid *laid = calloc(g->n_ops, sizeof *laid);
        uint64_t found, bound;

        agrees_as_drawn(ctx, text, text_graph(ctx, text), seed);
        draw_times(g, &rng, &times);
        assert_ok(ctx, mpl_layouts_choose(ctx, g, &times, laid, &found, &bound));
        assert_int_equal(cost_of(ctx, text, g, &times, laid), found);
        if (seed <= 3)
            assert_true(least_cost(ctx, text, g, &times, laid, 0) <= found);
        free_times(&times);
        free(laid);
    }
}

/* conv_sum's result, over its addend or not: the same bits, on every backend, in either layout. */
TEST(sums_in_place_change_no_bit)
{
    static const char text[] =
        "graph t\ninput x f32 [2,48,9,8]\nweight w f32 [48,48,3,3]\nweight k f32 [48,48,1,1]\n"
        "weight b f32 [48]\na = tanh(x)\ns = conv_sum(a, x, w, b) pads=[1,1,1,1] activation=relu\n"
        "t = conv_sum(s, x, k) activation=relu6\nu = conv_sum(t, x, w) pads=[1,1,1,1]\n"
        "y = tanh(u)\noutput y\n";
    static const char *const name[] = {"ref", "cpu"};

    for (int last = 0; last < 2; last++)
        for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
            uint32_t n_over = 0, n_apart = 0;
            char *over, *apart;
            owned_graph *g = text_graph(ctx, text);

            if (last == 1)
                relay(ctx, "sums", &g, 3);
            over = execute_with(ctx, name[i], g, true, true, &n_over);
            apart = execute_with(ctx, name[i], g, true, false, &n_apart);
            assert_true(n_over >= 3);
            assert_int_equal(n_apart, 0);
            assert_memory_equal(over, apart, g->value_bytes[g->output[0]]);
            free(over);
            free(apart);
        }
}

static mpl_status make_weight(void *arg, const mpl_graph *g, mpl_value v, void *data)
{
    mpl_exec_make_weight(g, arg, v, data);
    return MPL_OK;
}

/* Networks with fused convolutions against the original on `ref`. */
TEST(optimised_networks_agree)
{
    static const char *const name[] = {"resnet18:image=32,classes=10",
                                       "mobilenet_v2:image=32,classes=10",
                                       "squeezenet:image=64,classes=10"};

    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        mpl_exec_options seeded = {.weight_seed = 3};
        mpl_read_options options = {0};
        mpl_pass_count count[MPL_N_PASSES];
        mpl_source source;
        mpl_pass_set set;
        char *want, *got[4];

        assert_ok(ctx, mpl_source_open(ctx, name[i], &options, &source));
        want = execute(ctx, "ref", source.graph, false);
        assert_ok(ctx, mpl_pass_set_parse(ctx, "conv_bn,identity,conv_sum,conv_relu", &set));
        assert_ok(ctx, mpl_graph_optimise(ctx, &source.graph, &set,
                                          &(mpl_weight_source){make_weight, &seeded}, count));
        assert_true(count[MPL_PASS_conv_relu].places > 10);
        assert_true(count[MPL_PASS_conv_sum].places >= (i == 0 ? 8 : i == 1 ? 10 : 0));
        got[0] = execute(ctx, "ref", source.graph, true);
        got[1] = execute(ctx, "cpu", source.graph, true);
        assert_ok(ctx, mpl_graph_channels_last(ctx, &source.graph));
        got[2] = execute(ctx, "ref", source.graph, false);
        got[3] = execute(ctx, "cpu", source.graph, true);
        for (int k = 0; k < 4; k++) {
            assert_near(name[i], source.graph, got[k], want, 2e-4); /* two passes of 1e-4 */
            free(got[k]);
        }
        free(want);
        mpl_source_fini(ctx, &source);
    }
}

/* Operands broadcast along any dims, after a channels-last image. */
TEST(repeated_operands_agree)
{
    static const char *const dims[] = {"",        "8",   "9,1",   "3,1,1",  "2,1,1,1",
                                       "2,3,1,1", "9,8", "3,9,1", "2,3,9,8"};
    static const char *const form[] = {"add(r, k)", "mul(r, k)",    "sub(r, k)",   "div(r, k)",
                                       "max(r, k)", "fma(r, k, r)", "fma(r, r, k)"};
    char text[400];

    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (size_t j = 0; j < sizeof form / sizeof *form; j++) {
            owned_graph *g;
            char *want, *got;

            snprintf(text, sizeof text,
                     "graph t\ninput x f32 [2,3,9,8]\nweight k f32 [%s]\nr = reorder(x) "
                     "mode=channels_last\n"
                     "a = %s\ny = reorder(a) mode=plain\noutput y\n",
                     dims[i], form[j]);
            assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, strlen(text), &g));
            want = execute(ctx, "ref", g, false);
            got = execute(ctx, "cpu", g, true);
            assert_near(text, g, got, want, 1e-6);
            free(want);
            free(got);
        }
}

/* Missing reorders are reported, not computed with; so are operations without a form for a layout.
 */
/* Convolutions that read a plain image and make one with its channels last. */
TEST(turned_convolutions_agree)
{
    static const struct {
        const char *x, *filter, *attributes;
    } cases[] = {
        {"2,3,9,8", "16,3,3,3", "pads=[1,1,1,1] strides=[2,2]"},
        {"1,3,17,19", "40,3,3,3", "pads=[0,2,1,0] strides=[1,2] dilations=[2,1] activation=relu"},
        {"3,1,12,31", "5,1,5,5", "pads=[4,0,2,3]"},
        {"2,4,30,8", "37,4,2,4", "pads=[1,3,0,3] activation=relu6"},
        {"1,3,40,40", "64,3,7,7", "pads=[3,3,3,3] strides=[2,2]"},
        {"2,20,9,8", "17,20,3,3", "pads=[1,1,1,1]"},
        {"1,300,5,6", "9,300,2,2", ""},
        {"1,8,7,6", "8,1,3,3", "group=8"},
        {"1,32,7,6", "32,16,3,3", "group=2 pads=[1,1,1,1]"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[500], *got, *want;
        owned_graph *g;

        snprintf(text, sizeof text,
                 "graph t\ninput x f32 [%s]\nweight w f32 [%s]\nc = conv_act(x, w) %s "
                 "mode=channels_last\nt = tanh(c)\ny = reorder(t) mode=plain\noutput y\n",
                 cases[i].x, cases[i].filter, cases[i].attributes);
        g = text_graph(ctx, text);
        got = execute(ctx, "cpu", g, true);
        want = execute(ctx, "ref", g, true);
        assert_near(text, g, got, want, 1e-5);
        free(got);
        free(want);
    }
}

TEST(wrong_layouts_are_refused)
{
    static const struct {
        const char *text;
        mpl_status status;
        const char *said;
    } wrong[] = {
        {"r = reorder(x) mode=channels_last\ny = reshape(r) shape=[8,144]", MPL_EINPUT, "layout"},
        {"r = reorder(x) mode=channels_last\ny = add(r, x)", MPL_EINPUT, "layout"},
        {"r = reorder(x) mode=channels_last\ny = concat(x, r) axis=1", MPL_EINPUT, "layout"},
        {"r = reorder(x) mode=channels_last\ny = transpose(r) perm=[0,2,3,1]", MPL_EINPUT,
         "layout"},
        {"weight k f32 [8]\nr = reorder(x) mode=channels_last\ny = pow(r, k)", MPL_EUNAVAIL,
         "channels last"},
        {"r = reorder(x) mode=blocked8\ny = reshape(r) shape=[8,144]", MPL_EINPUT, "layout"},
        {"r = reorder(x) mode=blocked8\ny = add(r, x)", MPL_EINPUT, "layout"},
        {"r = reorder(x) mode=blocked8\ny = concat(r, r) axis=2", MPL_EINPUT, "in blocks"},
        {"weight k f32 [8,1,1]\nr = reorder(x) mode=blocked8\ny = mul(r, k)", MPL_EINPUT,
         "in blocks"},
        {"weight w f32 [8,4,1,1]\nr = reorder(x) mode=blocked8\ny = conv(r, w) group=2", MPL_EINPUT,
         "in blocks"},
        {"weight w f32 [6,8,1,1]\nr = reorder(x) mode=blocked8\ny = conv(r, w)", MPL_EINPUT,
         "in blocks"},
        {"weight w f32 [6,8,1,1]\nr = reorder(x) mode=channels_last\n"
         "y = conv(r, w) mode=channels_last",
         MPL_EINPUT, "must be plain"},
    };

    static const char odd[] = "graph t\ninput x f32 [2,12,9,8]\ny = reorder(x) mode=blocked8\n"
                              "output y\n";
    owned_graph *none = NULL;

    assert_status(ctx, mpl_text_read_memory(ctx, "test", odd, strlen(odd), &none), MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "12 channels"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const mpl_backend *cpu = mpl_backend_find("cpu");
        char text[400];
        owned_graph *g;
        mpl_device *dev;
        mpl_prepared *p = NULL;
        uint64_t workspace;

        snprintf(text, sizeof text, "graph t\ninput x f32 [2,8,9,8]\n%s\noutput y\n",
                 wrong[i].text);
        assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, strlen(text), &g));
        assert_ok(ctx, cpu->open(ctx, &(mpl_device_options){.n_threads = 1}, &dev));
        assert_status(ctx, cpu->prepare(dev, g, 1, &p, &workspace, NULL), wrong[i].status);
        assert_non_null(strstr(ctx->message, wrong[i].said));
        cpu->close(dev);
    }
}

TESTS(operators_agree, repeated_operands_agree, turned_convolutions_agree, random_graphs_agree,
      any_choice_agrees, the_choice_is_the_least_of_all, blocks_stay_plain, networks_agree,
      sums_in_place_change_no_bit, optimised_networks_agree, wrong_layouts_are_refused)
