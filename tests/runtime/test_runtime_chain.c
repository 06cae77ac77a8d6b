/* test_runtime_chain.c -- chains of the backend `cpu`: each step against libm in double, every
 * vector width against the others, and whole chains over boxes of every layout against the plain
 * loops, bit for bit, on one to four threads. */
#include "tests/support/test.h"

#include "graphs/ir/counts.h"
#include "runtime/backend.h"
#include "runtime/cpu/loops/chain.h"
#include "runtime/cpu/loops/chain_priv.h"

#include <math.h>
#include <stdatomic.h>

/* ---- steps ---- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double relu(double x)
{
    return x < 0 ? 0 : x;
}
static double neg(double x)
{
    return -x;
}
static double reciprocal(double x)
{
    return 1 / x;
}
static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}
static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}
static double softsign(double x)
{
    return x / (1 + fabs(x));
}

static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x * sqrt(0.5)));
}
static double swish(double x)
{
    return x / (1 + exp(-x));
}

typedef struct function {
    mpl_op_kind kind;
    double (*exact)(double);
    double units; /* allowed error, in units of the last place of the rounded result */
    double near;  /* or this much */
} function;

static const function functions[] = {
    {MPL_OP_relu, relu, 0, 0},
    {MPL_OP_sigmoid, sigmoid, 3, 0},
    {MPL_OP_tanh, tanh, 3, 0},
    {MPL_OP_exp, exp, 2, 0},
    {MPL_OP_log, log, 1, 0},
    {MPL_OP_sqrt, sqrt, 0, 0},
    {MPL_OP_neg, neg, 0, 0},
    {MPL_OP_abs, fabs, 0, 0},
    {MPL_OP_reciprocal, reciprocal, 0, 0},
    {MPL_OP_floor, floor, 0, 0},
    {MPL_OP_ceil, ceil, 0, 0},
    {MPL_OP_round, rint, 0, 0},
    {MPL_OP_sign, sign, 0, 0},
    {MPL_OP_erf, erf, 2, 0},
    {MPL_OP_gelu, gelu, 8, 1e-6},
    {MPL_OP_swish, swish, 4, 1e-35},
    {MPL_OP_sin, sin, 2, 1e-10},
    {MPL_OP_cos, cos, 2, 1e-10},
    {MPL_OP_softplus, softplus, 3, 0},
    {MPL_OP_softsign, softsign, 2, 0},
};

/* Every 4099th float of either sign, and special numbers. */
enum { N_FLOATS = 1 << 20 };

static void draw(float *x)
{
    static const float special[] = {0.0f,  -0.0f,  INFINITY, -INFINITY, NAN,     88.72284f, -87.4f,
                                    -104,  -103.9, 8192,     8192.5f,   -1e30f,  1e-40f,    0.5f,
                                    -0.5f, 1.5f,   2.5f,     710,       -710.0f, 3.1415927f};
    uint32_t u = 0;

    for (int k = 0; k < N_FLOATS; k++, u += 4099)
        memcpy(&x[k], &u, sizeof u);
    memcpy(x, special, sizeof special);
}

/* In units of the last place of `want` as a float; a subnormal counts in units of the least normal
 * float. */
static double off(float got, double want)
{
    float rounded = (float)want;
    int exponent;

    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (got == rounded)
        return signbit(got) == signbit(rounded) ? 0 : INFINITY;
    if (isinf(got) || isinf(rounded)) /* just above the largest float */
        return fabs(want) > 3.4028233e38 && signbit(got) == signbit(rounded) &&
                       fabs((double)got) > 3.4028233e38
                   ? 1
                   : INFINITY;
    frexp(want, &exponent);
    return fabs(got - want) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

/* Squares and cubes have loops of their own; where one exponent is another, none is used. */
TEST(powers_are_near_what_they_are)
{
    static const float exponent[] = {2, 3, 0.5f, -1};
    float *x = malloc(N_FLOATS * sizeof *x), *z = malloc(N_FLOATS * sizeof *z);
    float *y = malloc(N_FLOATS * sizeof *y);

    draw(x);
    for (size_t i = 0; i < sizeof exponent / sizeof *exponent; i++)
        for (int mixed = 0; mixed < 2; mixed++) {
            for (int k = 0; k < N_FLOATS; k++)
                z[k] = mixed != 0 && k == N_FLOATS - 1 ? 4 : exponent[i];
            for (int width = 0; width <= (int)mpl_chain_widest(); width++) {
                mpl_chain_step_of(MPL_OP_pow, (mpl_chain_width)width)(y, x, z, N_FLOATS);
                for (int k = 0; k < N_FLOATS; k += 1 + 16 * width)
                    if (off(y[k], pow((double)x[k], (double)z[k])) > 1.01)
                        fail_msg("pow(%.9g, %g) = %.9g", (double)x[k], (double)z[k], (double)y[k]);
            }
        }
    free(x), free(z), free(y);
}

TEST(steps_are_near_what_they_compute)
{
    float *x = malloc(N_FLOATS * sizeof *x), *y = malloc(N_FLOATS * sizeof *y);
    int bad = 0;

    draw(x);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const function *f = &functions[i];
        double worst = 0;

        mpl_chain_step_of(f->kind, mpl_chain_widest())(y, x, x, N_FLOATS);
        for (int k = 0; k < N_FLOATS; k++) {
            double units = off(y[k], f->exact(x[k]));

            if (units > f->units && !(fabs(y[k] - f->exact(x[k])) < f->near) && bad++ < 20)
                print_error("%s(%.9g) = %.9g, exactly %.17g\n", mpl_op_table[f->kind].name,
                            (double)x[k], (double)y[k], f->exact(x[k]));
            worst = units > worst && !(fabs(y[k] - f->exact(x[k])) < f->near) ? units : worst;
        }
        print_message("%-10s within %.2f units of the last place\n", mpl_op_table[f->kind].name,
                      worst);
    }
    assert_int_equal(bad, 0);
    free(x);
    free(y);
}

TEST(gelu_by_tanh_is_near_in_every_width)
{
    float *x = malloc(N_FLOATS * sizeof *x), *y = malloc(N_FLOATS * sizeof *y);

    draw(x);
    for (int width = 0; width <= (int)mpl_chain_widest(); width++) {
        mpl_chain_gelu_tanh((mpl_chain_width)width)(y, x, x, N_FLOATS);
        for (int k = 0; k < N_FLOATS; k++) {
            double z = x[k],
                   want = 0.5 * z * (1 + tanh(sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)));

            if (off(y[k], want) > 8 && !(fabs(y[k] - want) < 1e-6))
                fail_msg("gelu(%.9g) = %.9g, exactly %.9g", z, (double)y[k], want);
        }
    }
    free(x), free(y);
}

TEST(widths_agree)
{
    /* pairs of very different size */
    float *x = malloc(2 * N_FLOATS * sizeof *x), *z = x + N_FLOATS - 77;
    float *y = malloc(N_FLOATS * sizeof *y), *want = malloc(N_FLOATS * sizeof *want);

    draw(x);
    draw(x + N_FLOATS);
    for (int kind = 0; kind < MPL_N_OPS; kind++)
        for (mpl_chain_width w = 0; w <= mpl_chain_widest(); w++) {
            mpl_chain_step *step = mpl_chain_step_of((mpl_op_kind)kind, w);

            if (step == NULL)
                continue;
            if (w == MPL_CHAIN_PLAIN)
                step(want, x, z, N_FLOATS);
            for (int n = 0, at = 0; at < N_FLOATS; at += n) { /* in chunks of all lengths */
                n = 1 + at % 600;
                n = n < N_FLOATS - at ? n : N_FLOATS - at;
                step(y + at, x + at, z + at, n);
            }
            for (int k = 0; k < N_FLOATS; k++)
                if (memcmp(&y[k], &want[k], sizeof *y) != 0 && !(isnan(y[k]) && isnan(want[k])))
                    fail_msg("%s(%.9g, %.9g): %.9g as %s, %.9g as %s", mpl_op_table[kind].name,
                             (double)x[k], (double)z[k], (double)y[k], mpl_chain_how[w],
                             (double)want[k], mpl_chain_how[0]);
        }
    free(x);
    free(y);
    free(want);
}

/* ---- chains ---- */

/* Graphs of one exact operation on its inputs; `base` is made by an operation so that it may be
 * overwritten. */
static const char *const chains[] = {
    "input a f32 [70000]\ny = fused(_, a) dims=[70000] loads=[1,0,1,1,0,1] expr=\"0,1,mul,neg\" : "
    "f32 [70000]\n",
    "input a f32 [300,301]\ny = access(a) dims=[299,300] strides=[301,1] offset=302 : f32 "
    "[299,300]\n",
    "input a f32 [300,301]\ny = access(a) dims=[301,300] strides=[1,301] offset=0 : f32 "
    "[301,300]\n",
    "input a i32 [300,301]\ny = access(a) dims=[100,3,150] strides=[903,-1,2] offset=2 : i32 "
    "[100,3,150]\n",
    "input a f32 [85,2704]\ninput b f32 [2704]\ny = fused(_, a, b) dims=[2704,80] "
    "loads=[1,13520,1,2704,2,0,1,0] expr=\"0,1,add\" : f32 [2704,80]\n",
    "input a f32 [9000,4]\ninput b f32 [9000,2]\ny = fused(a, b) dims=[9000,2] "
    "loads=[0,2,4,1,1,1,2,-1] expr=\"0,1,sub\" strides=[4,1] offset=2 : f32 [9000,4]\n",
    "input a f32 [9000,4]\ny = fused(a) dims=[9000] loads=[0,0,4,0,3,4] expr=\"0,1,max\" "
    "strides=[4] offset=0 : f32 [9000,4]\n",
    "input a f32 [7,900,4]\ninput s f32 []\ninput t f32 [7,1,1]\ny = fused(_, s, t, a) "
    "dims=[7,900,4] "
    "loads=[1,0,0,0,0,2,0,1,0,0,3,0,3600,4,1] expr=\"2,0,mul,1,add,0,div,abs\" : f32 [7,900,4]\n",
    "input a f32 [512,512]\ninput b f32 [510,510]\ny = assign(a, b) dims=[510,510] strides=[512,1] "
    "offset=513 : f32 [512,512]\n",
    "input a f32 [512,512]\ninput b f32 [510,1]\ny = assign(a, b) dims=[510,170] strides=[-512,3] "
    "offset=261120 : f32 [512,512]\n",
    "input a f32 [514,514]\ny = fused(_, a) dims=[512,512] "
    "loads=[1,515,514,1,1,1,514,1,1,1029,514,1,1,514,514,1,1,516,514,1] "
    "expr=\"1,2,add,3,4,add,add,0,sub\" : f32 [512,512]\n",
    "input a f32 [40,1,333]\ninput b f32 [33,1]\ny = sub(a, b) : f32 [40,33,333]\n",
    "input a f32 [40,1,333]\ninput b f32 [33,1]\ninput c f32 [333]\ny = fma(a, b, c) : f32 "
    "[40,33,333]\n",
    "input a f32 [3,5,7,11,13]\ny = access(a) dims=[13,7,5,11,3] strides=[1,143,1001,13,5005] "
    "offset=0 : f32 [13,7,5,11,3]\n",
    "input a f32 [5]\ny = fused(_, a) dims=[0,3] loads=[1,0,0,1] expr=\"0\" : f32 [0,3]\n",
    "input a f32 []\ny = floor(a) : f32 []\n",
};

/* The bytes of y; threads 0: by the plain loops. */
static char *run_chain(mpl_ctx *ctx, const mpl_graph *g, char **in, char *const *keep,
                       uint32_t threads)
{
    const mpl_backend *cpu = mpl_backend_find("cpu");
    mpl_op op = 0;
    mpl_value out = g->op_out[0];
    mpl_tensor tensor[4] = {{0}}, made = {(mpl_type)g->value_type[out], g->value_shape[out], NULL};
    mpl_op_call call = {.graph = g, .op = op, .n_out = 1, .in = tensor, .out = &made};
    mpl_device *dev;
    mpl_prepared *p;
    uint64_t workspace;
    const char *how;

    call.n_in = g->op_in_begin[1];
    for (uint32_t i = 0; i < call.n_in; i++) {
        mpl_value v = g->op_in[i];

        if (v == MPL_NONE)
            continue;
        memcpy(in[v], keep[v], g->value_bytes[v]);
        tensor[i] = (mpl_tensor){(mpl_type)g->value_type[v], g->value_shape[v], in[v]};
    }
    made.data = aligned_alloc(64, (g->value_bytes[out] + 64) / 64 * 64);
    if (threads > 8) { /* in place */
        memcpy(made.data, tensor[0].data, g->value_bytes[out]);
        tensor[0].data = made.data;
    }
    if (threads == 0) {
        assert_ok(ctx, mpl_eval(ctx, &call));
        return made.data;
    }
    assert_ok(ctx, cpu->open(ctx, &(mpl_device_options){.n_threads = threads % 8}, &dev));
    assert_ok(ctx, cpu->prepare(dev, g, op, &p, &workspace, &how));
    if (strncmp(how, "chain", 5) != 0)
        fail_msg("%s runs as %s", mpl_op_table[g->op_kind[op]].name, how);
    assert_ok(ctx, cpu->run_op(dev, p, &call));
    cpu->release(dev, p);
    cpu->close(dev);
    return made.data;
}

TEST(chains_do_what_plain_loops_do)
{
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        char text[1000], *in[4] = {NULL}, *keep[4] = {NULL}, *want;
        owned_graph *g = NULL;
        uint64_t bytes;

        snprintf(text, sizeof text, "graph t\n%soutput y\n", chains[i]);
        assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, strlen(text), &g));
        for (mpl_value v = 0; v < g->n_values; v++)
            if (g->value_role[v] == MPL_INPUT) {
                uint64_t n = g->value_bytes[v] / 4;

                in[v] = malloc(g->value_bytes[v] + 1);
                keep[v] = malloc(g->value_bytes[v] + 1);
                for (uint64_t k = 0; k < n; k++)
                    ((float *)keep[v])[k] = (float)(k * 2654435761u % 1000003) / 1024 - 400;
            }
        bytes = g->value_bytes[g->op_out[0]];
        want = run_chain(ctx, g, in, keep, 0);
        for (uint32_t threads = 1; threads <= 12; threads += threads == 4 ? 5 : 1) {
            char *got;

            if (threads > 8 && (g->op_in[0] == MPL_NONE || g->op_kind[0] == MPL_OP_access ||
                                g->value_bytes[g->op_in[0]] != bytes))
                continue;
            got = run_chain(ctx, g, in, keep, threads);
            for (uint64_t k = 0; k < bytes; k++)
                if (got[k] != want[k])
                    fail_msg("%son %u threads: byte %" PRIu64 " differs", chains[i], threads, k);
            free(got);
        }
        free(want);
        for (int v = 0; v < 4; v++) {
            free(in[v]);
            free(keep[v]);
        }
    }
}

/* Loops of steps have no attributes but those that they are chosen by. */
TEST(attributes_are_heeded)
{
    static const struct {
        const char *op;
        bool is_chain;
    } rows[] = ROW({"swish(a)", true}, {"swish(a) alpha=1.0", true}, {"swish(a) alpha=0.5", false},
                   {"gelu(a)", true}, {"gelu(a) approximate=tanh", true}, {"relu(a)", true});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200];
        owned_graph *g = NULL;
        mpl_chain *chain = NULL;

        snprintf(text, sizeof text, "graph t\ninput a f32 [7]\ny = %s\noutput y\n", rows[i].op);
        assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, strlen(text), &g));
        assert_ok(ctx, mpl_chain_new(ctx, g, 0, NULL, false, &chain, NULL));
        assert_int_equal(chain != NULL, rows[i].is_chain);
        mpl_chain_free(ctx, chain);
    }
}

/* ---- sharing out ---- */

static struct {
    atomic_int n;
    int64_t from[8], to[8];
} dealt;

static void note_range(const void *arg, int64_t from, int64_t to)
{
    int i = atomic_fetch_add(&dealt.n, 1);

    assert_null(arg);
    if (i < 8)
        dealt.from[i] = from, dealt.to[i] = to;
}

/* No range is longer than a thread's share of the units, rounded up. */
TEST(ranges_are_nearly_equal)
{
    static const struct {
        int64_t n, unit, most;
        uint32_t threads;
        int n_ranges;
        int64_t longest;
    } rows[] = ROW({2, 1, 2, 2, 2, 1}, {4, 1, 4, 4, 4, 1}, {3, 1, 3, 2, 2, 2}, {8, 1, 8, 4, 4, 2},
                   {64, 16, 9, 2, 2, 32}, {65, 16, 9, 2, 2, 48}, {48, 16, 3, 3, 3, 16},
                   {31, 16, 2, 2, 2, 16}, {100, 16, 1, 4, 1, 100}, {100, 16, 9, 1, 1, 100});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t covered = 0, longest = 0;

        dealt.n = 0;
        mpl_deal(rows[i].n, rows[i].unit, rows[i].most, rows[i].threads, note_range, NULL);
#if !defined(__SANITIZE_THREAD__) /* which has one range alone */
        assert_int_equal(dealt.n, rows[i].n_ranges);
#endif
        for (int r = 0; r < dealt.n; r++) {
            assert_int_equal(dealt.from[r] % rows[i].unit, 0);
            covered += dealt.to[r] - dealt.from[r];
            longest = dealt.to[r] - dealt.from[r] > longest ? dealt.to[r] - dealt.from[r] : longest;
        }
        assert_int_equal(covered, rows[i].n);
        if (dealt.n > 1)
            assert_int_equal(longest, rows[i].longest);
    }
}

TESTS(ranges_are_nearly_equal, attributes_are_heeded, powers_are_near_what_they_are,
      steps_are_near_what_they_compute, gelu_by_tanh_is_near_in_every_width, widths_agree,
      chains_do_what_plain_loops_do)
