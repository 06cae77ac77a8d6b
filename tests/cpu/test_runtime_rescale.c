/* What the backend `cpu` computes between floats and 8-bit integers, against the plain loops, bit
 * for bit: every such operator, both signs, all lengths about a vector's, floats of any bits. */
#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "runtime/backend.h"

enum { OPERANDS = 8 };

typedef struct row {
    const char *op, *of;  /* of: attribute of qelementwise */
    const char *type;     /* of input 0: b, f or i; of bytes, the sign is drawn */
    const char *operands; /* scale, zero, second bytes x, - */
    bool fast;            /* not by the plain loops */
} row;

static const row rows[] = {
    {"quantize", NULL, "f", "sz", true},
    {"dequantize", NULL, "b", "sz", true},
    {"dynamic_quantize", NULL, "f", "", true},
    {"cast", NULL, "i", "", true},
    {"qelementwise", "add", "b", "sszzxsz", true},
    {"qelementwise", "sub", "b", "sszzxsz", true},
    {"qelementwise", "mul", "b", "sszzxsz", true},
    {"qelementwise", "mul", "b", "sszz1sz", true},
    {"qelementwise", "div", "b", "sszzxsz", false},
    {"qelementwise", "sigmoid", "b", "sszz", true},
    {"qelementwise", "leaky_relu", "b", "sszz", true},
};

static int64_t between(mpl_rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)mpl_rng_below(rng, (uint64_t)(high - low + 1));
}

static mpl_value add(mpl_ctx *ctx, mpl_graph *g, uint32_t i, mpl_type type, const mpl_shape *shape)
{
    static const char *const name[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    mpl_value v;

    assert_ok(ctx, mpl_graph_add_value(ctx, g, name[i], MPL_INPUT, type, shape, &v));
    return v;
}

static mpl_graph *build(mpl_ctx *ctx, const row *r, mpl_rng *rng, uint32_t *n_in)
{
    static const char *const out_name[] = {"y", "y1", "y2"};
    mpl_type sign[2] = {mpl_rng_below(rng, 2) ? MPL_TYPE_u8 : MPL_TYPE_i8,
                        mpl_rng_below(rng, 2) ? MPL_TYPE_u8 : MPL_TYPE_i8};
    mpl_shape all = {2, {between(rng, 1, 3), between(rng, 0, 1) ? between(rng, 1, 70) : 1100}};
    mpl_shape one = {.rank = 0};
    mpl_type first = *r->type == 'f' ? MPL_TYPE_f32 : *r->type == 'i' ? MPL_TYPE_i32 : sign[0];
    uint32_t n_zero = 0, n_attr = 0;
    mpl_value in[OPERANDS], out[3];
    mpl_op_kind kind = MPL_OP_cast;
    mpl_attr attr[1];
    mpl_graph *g;

    assert_ok(ctx, mpl_graph_new(ctx, "rescale", &g));
    assert_true(mpl_op_find(r->op, &kind));
    in[0] = add(ctx, g, 0, first, &all);
    *n_in = 1;
    for (const char *w = r->operands; *w != '\0'; w++, ++*n_in) {
        /* zeros: of x, of y (the other sign), of the second operand (x's) */
        mpl_type type = *w == 's'   ? MPL_TYPE_f32
                        : *w == 'z' ? (n_zero++ == 1 || kind == MPL_OP_quantize ? sign[1] : sign[0])
                                    : sign[0];

        in[*n_in] = add(ctx, g, *n_in, type, *w == 'x' ? &all : &one);
    }
    if (r->of != NULL)
        attr[n_attr++] = (mpl_attr)MPL_TEXT(of, r->of);
    if (kind == MPL_OP_cast)
        attr[n_attr++] = (mpl_attr)MPL_TEXT(to, "f32");
    assert_ok(ctx, mpl_graph_add_op(ctx, g, kind, "q", *n_in, in, n_attr, attr,
                                    kind == MPL_OP_dynamic_quantize ? 3 : 1, out_name, out));
    for (uint32_t i = 0; i < (kind == MPL_OP_dynamic_quantize ? 3U : 1U); i++)
        assert_ok(ctx, mpl_graph_add_output(ctx, g, out[i]));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

/* Scales are ordinary numbers, elements any bits or small ones. */
static void fill(mpl_rng *rng, const row *r, uint32_t i, mpl_tensor *t, uint64_t bytes)
{
    bool any = mpl_rng_below(rng, 2) != 0;

    for (uint64_t k = 0; k < bytes; k++)
        ((uint8_t *)t->data)[k] = (uint8_t)mpl_rng_next(rng);
    for (uint64_t k = 0; k < bytes / 4 && t->type == MPL_TYPE_f32; k++)
        if (i > 0)
            ((float *)t->data)[k] = (float)between(rng, 1, 4000) / 4000;
        else if (!any || (*r->op == 'd' && k % 50 != 0))
            ((float *)t->data)[k] = (float)between(rng, -2000, 2000) / 8;
}

static void check(mpl_ctx *ctx, const mpl_backend *cpu, mpl_device *dev, uint64_t seed)
{
    const row *r = &rows[seed % (sizeof rows / sizeof *rows)];
    mpl_tensor in[OPERANDS], got[3], want[3];
    mpl_prepared *p = NULL;
    const char *how = NULL;
    uint64_t workspace = 0;
    uint32_t n_in, n_out;
    owned_graph *g = NULL;
    mpl_rng rng = mpl_rng_of(seed);

    g = build(ctx, r, &rng, &n_in);
    n_out = g->op_out_begin[1];
    assert_ok(ctx, cpu->prepare(dev, g, 0, &p, &workspace, &how));
    for (uint32_t k = 0; k < n_in + 2 * n_out; k++) {
        uint32_t i = k < n_in ? k : (k - n_in) / 2;
        mpl_value v = k < n_in ? mpl_op_input(g, 0, i) : mpl_op_output(g, 0, i);
        mpl_tensor *t = k < n_in ? &in[i] : (k - n_in) % 2 == 0 ? &got[i] : &want[i];

        *t = (mpl_tensor){(mpl_type)g->value_type[v], g->value_shape[v],
                          mpl_alloc(ctx, g->value_bytes[v], 1)};
        assert_non_null(t->data);
        if (k < n_in)
            fill(&rng, r, i, t, g->value_bytes[v]);
    }
    assert_ok(ctx, mpl_eval(ctx, &(mpl_op_call){g, 0, n_in, n_out, in, want, NULL}));
    assert_ok(ctx, cpu->run_op(dev, p, &(mpl_op_call){g, 0, n_in, n_out, in, got, NULL}));
    for (uint32_t i = 0; i < n_out; i++)
        if (memcmp(got[i].data, want[i].data, g->value_bytes[mpl_op_output(g, 0, i)]) != 0)
            fail_msg("seed %" PRIu64 ", %s %s (%s): result %u is not as the plain loops", seed,
                     r->op, r->of != NULL ? r->of : "", how, i);
    if ((strcmp(how, "ref loops") != 0) != r->fast && !(r->fast && r->of != NULL))
        fail_msg("seed %" PRIu64 ", %s: by %s", seed, r->op, how);
    cpu->release(dev, p);
    for (uint32_t i = 0; i < n_in; i++)
        mpl_free(ctx, in[i].data);
    for (uint32_t i = 0; i < n_out; i++)
        mpl_free_each(ctx, got[i].data, want[i].data);
}

TEST(bytes_and_floats_are_those_of_plain_loops)
{
    const mpl_backend *cpu = mpl_backend_find("cpu");
    mpl_device *dev;

    if (mpl_backend_absent(cpu) != NULL) {
        print_message("skip: cpu: %s\n", mpl_backend_absent(cpu));
        skip();
    }
    assert_ok(ctx, cpu->open(ctx, &(mpl_device_options){.n_threads = 1}, &dev));
    for (uint64_t seed = 0; seed < draws(1100); seed++)
        check(ctx, cpu, dev, seed);
    cpu->close(dev);
}

TESTS(bytes_and_floats_are_those_of_plain_loops)
