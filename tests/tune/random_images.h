/* random_images.h -- graphs of operators on images, drawn or listed, and what they compute. */
#pragma once

#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "graphs/ir/layout.h"
#include "graphs/passes/layouts.h"
#include "graphs/passes/optimise/optimise.h"
#include "graphs/passes/passes.h"
#include "planners/verify/verify.h"
#include "runtime/exec.h"

#include <math.h>

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

static inline int count_reorders(const mpl_graph *g)
{
    int n = 0;

    for (mpl_op op = 0; op < g->n_ops; op++)
        n += g->op_kind[op] == MPL_OP_reorder;
    return n;
}

/* All outputs of a planned run, concatenated; checked runs guard their arenas. */
static inline char *execute_with(mpl_ctx *ctx, const char *backend_name, const mpl_graph *g,
                                 bool checked, bool in_place, uint32_t *n_over)
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

static inline char *execute(mpl_ctx *ctx, const char *backend_name, const mpl_graph *g,
                            bool checked)
{
    return execute_with(ctx, backend_name, g, checked, true, NULL);
}

static inline void assert_near(const char *what, const mpl_graph *g, const void *got,
                               const void *want, double tolerance)
{
    const float *a = got, *b = want;

    for (uint32_t i = 0; i < g->n_outputs; i++)
        for (uint64_t k = 0; k < g->value_bytes[g->output[i]] / sizeof *a; k++, a++, b++)
            if (!(fabs((double)*a - (double)*b) <= tolerance * fmax(1, fabs((double)*b))))
                fail_msg("%s: element %" PRIu64 " of output %u is %.9g where %.9g was expected",
                         what, k, i, (double)*a, (double)*b);
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

static inline uint32_t below(writer *w, uint32_t n)
{
    return (uint32_t)mpl_rng_below(&w->rng, n);
}

static inline uint32_t pick(writer *w, uint32_t form) /* favours the latest */
{
    uint32_t n = w->n_made[form], last = below(w, 2) == 0 || n < 3 ? n : 3;

    return w->made[form][n - 1 - below(w, last)];
}

/* A second operand: an image, a pixel, or a weight broadcast in some way; mostly one that channels
 * last supports. */
static inline const char *operand(writer *w, char name[16])
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

static inline void line(writer *w, uint32_t form, const char *format, ...)
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

static inline void random_op(writer *w)
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

static inline mpl_graph *random_graph(mpl_ctx *ctx, uint64_t seed, writer *w)
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
