/* Convolutions and products of integers on the backend `cpu` against the plain loops, bit for bit:
 * random dims, windows, groups, strides, zero points, scales an output channel, channels first and
 * last, every kind of result. */
#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "runtime/backend.h"

enum { OPERANDS = 9, MOST = 150 };

typedef struct drawn {
    mpl_graph *g;
    mpl_tensor in[OPERANDS], got, want;
    uint32_t n_in;
} drawn;

static int64_t between(mpl_rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)mpl_rng_below(rng, (uint64_t)(high - low + 1));
}

/* A constant of n equal bytes, or of random scales. */
static mpl_value constant(mpl_ctx *ctx, mpl_graph *g, mpl_rng *rng, const char *name, mpl_type type,
                          int64_t n)
{
    mpl_shape shape = {.rank = n > 1, .dim = {n}};
    int32_t word[MOST];
    float scale[MOST];
    uint8_t byte[MOST] = {0};
    mpl_value v;

    for (int64_t i = 0; i < n; i++) {
        scale[i] = (float)between(rng, 1, 1000) / 1000;
        word[i] = (int32_t)between(rng, -1000, 1000);
        byte[i] = (uint8_t)(type == MPL_TYPE_u8 ? between(rng, 0, 255) : between(rng, -128, 127));
    }
    assert_ok(ctx, mpl_graph_add_const(ctx, g, name, type, &shape,
                                       type == MPL_TYPE_f32   ? (void *)scale
                                       : type == MPL_TYPE_i32 ? (void *)word
                                                              : (void *)byte,
                                       false, &v));
    return v;
}

/* Scales and zero points behind x and w: as sums of i32, as floats, or as integers. */
static void add_rest(mpl_ctx *ctx, mpl_graph *g, mpl_rng *rng, mpl_type type, int64_t channels,
                     mpl_value *in)
{
    int kind = (int)mpl_rng_below(rng, 3);

    if (mpl_rng_below(rng, 4) != 0)
        in[3] = constant(ctx, g, rng, "x_zero", type, 1);
    if (kind > 0) {
        in[2] = constant(ctx, g, rng, "x_scale", MPL_TYPE_f32, 1);
        in[4] = constant(ctx, g, rng, "w_scale", MPL_TYPE_f32,
                         mpl_rng_below(rng, 2) != 0 ? channels : 1);
    }
    if (kind > 1) {
        in[6] = constant(ctx, g, rng, "y_scale", MPL_TYPE_f32, 1);
        in[7] =
            constant(ctx, g, rng, "y_zero", mpl_rng_below(rng, 2) ? MPL_TYPE_u8 : MPL_TYPE_i8, 1);
    }
    if (mpl_rng_below(rng, 2) != 0)
        in[8] = constant(ctx, g, rng, "bias", kind == 1 ? MPL_TYPE_f32 : MPL_TYPE_i32, channels);
}

static mpl_value add_input(mpl_ctx *ctx, mpl_graph *g, const char *name, mpl_role role,
                           mpl_type type, uint32_t rank, const int64_t *dim)
{
    mpl_shape shape = {.rank = rank};
    mpl_value v;

    memcpy(shape.dim, dim, rank * sizeof *dim);
    assert_ok(ctx, mpl_graph_add_value(ctx, g, name, role, type, &shape, &v));
    return v;
}

/* Dims with channels last, where asked for. */
static void lay(int64_t *dim, uint32_t rank, bool last)
{
    int64_t channels = dim[1];

    if (!last)
        return;
    memmove(dim + 1, dim + 2, (rank - 2) * sizeof *dim);
    dim[rank - 1] = channels;
}

static mpl_op_kind add_conv(mpl_ctx *ctx, mpl_graph *g, mpl_rng *rng, mpl_type type, mpl_role role,
                            mpl_value *in, mpl_attr *attr, uint32_t *n_attr, int64_t *numbers)
{
    uint32_t n = (uint32_t)between(rng, 1, 3), rank = n + 2;
    int64_t group = mpl_rng_below(rng, 3) == 0 ? between(rng, 2, 9) : 1;
    int64_t x[5] = {between(rng, 1, 2), group * between(rng, 1, 5)};
    int64_t w[5] = {group * between(rng, 1, 5), x[1] / group};
    bool last = mpl_rng_below(rng, 2) != 0;

    for (uint32_t i = 0; i < n; i++) {
        numbers[i] = between(rng, 1, 3);     /* strides */
        numbers[n + i] = between(rng, 1, 2); /* dilations */
        w[2 + i] = between(rng, 1, 3);
        numbers[2 * n + i] = between(rng, 0, w[2 + i]); /* pads */
        numbers[3 * n + i] = between(rng, 0, w[2 + i]);
        x[2 + i] = between(rng, 5, 12);
    }
    attr[(*n_attr)++] = (mpl_attr)MPL_INTS(strides, n, numbers);
    attr[(*n_attr)++] = (mpl_attr)MPL_INTS(dilations, n, numbers + n);
    attr[(*n_attr)++] = (mpl_attr)MPL_INTS(pads, 2 * n, numbers + 2 * n);
    numbers[20] = group, numbers[21] = last;
    attr[(*n_attr)++] = (mpl_attr)MPL_INTS(group, 1, numbers + 20);
    attr[(*n_attr)++] = (mpl_attr)MPL_INTS(channels_last, 1, numbers + 21);
    add_rest(ctx, g, rng, type, w[0], in);
    lay(x, rank, last), lay(w, rank, last);
    in[0] = add_input(ctx, g, "x", MPL_INPUT, type, rank, x);
    in[1] = add_input(ctx, g, "w", role, MPL_TYPE_i8, rank, w);
    return MPL_OP_qconv;
}

static mpl_op_kind add_product(mpl_ctx *ctx, mpl_graph *g, mpl_rng *rng, mpl_type type,
                               mpl_role role, mpl_value *in, mpl_attr *attr, uint32_t *n_attr,
                               int64_t *numbers)
{
    int64_t a[3] = {between(rng, 1, 3), between(rng, 1, 20), between(rng, 1, 70)};
    int64_t b[2] = {a[2], between(rng, 1, MOST)}, columns = b[1];
    bool turned = mpl_rng_below(rng, 2) != 0;

    if (turned)
        b[0] = columns, b[1] = a[2];
    numbers[0] = turned;
    attr[(*n_attr)++] = (mpl_attr)MPL_INTS(trans_b, 1, numbers);
    add_rest(ctx, g, rng, type, columns, in);
    in[0] = add_input(ctx, g, "x", MPL_INPUT, type, 3, a);
    in[1] = add_input(ctx, g, "w", role, MPL_TYPE_i8, 2, b);
    return MPL_OP_qmatmul;
}

static void draw(mpl_ctx *ctx, uint64_t seed, drawn *d)
{
    static const char *const out_name[] = {"y"};
    mpl_value in[OPERANDS], y;
    mpl_attr attr[8];
    int64_t numbers[32];
    uint32_t n_attr = 0;
    mpl_op_kind kind;
    mpl_rng rng = mpl_rng_of(seed);

    memset(in, 0xff, sizeof in);
    assert_ok(ctx, mpl_graph_new(ctx, "int8", &d->g));
    mpl_type type = mpl_rng_below(&rng, 2) != 0 ? MPL_TYPE_u8 : MPL_TYPE_i8;
    mpl_role role = mpl_rng_below(&rng, 4) != 0 ? MPL_WEIGHT : MPL_INPUT;
    kind = (seed % 3 == 0 ? add_product : add_conv)(ctx, d->g, &rng, type, role, in, attr, &n_attr,
                                                    numbers);
    assert_ok(ctx,
              mpl_graph_add_op(ctx, d->g, kind, "q", OPERANDS, in, n_attr, attr, 1, out_name, &y));
    assert_ok(ctx, mpl_graph_add_output(ctx, d->g, y));
    assert_ok(ctx, mpl_graph_finish(ctx, d->g));
}

static void *tensor(mpl_ctx *ctx, const mpl_graph *g, mpl_value v, mpl_tensor *t)
{
    *t = (mpl_tensor){0};
    if (v == MPL_NONE)
        return NULL;
    *t = (mpl_tensor){(mpl_type)g->value_type[v], g->value_shape[v],
                      mpl_alloc(ctx, g->value_bytes[v], 1)};
    assert_non_null(t->data);
    if (g->value_data[v] != NULL)
        memcpy(t->data, g->value_data[v], g->value_bytes[v]);
    return t->data;
}

/* Two runs, with other inputs: a weight is packed by the first. Returns whether oneDNN did it. */
static bool check(mpl_ctx *ctx, const mpl_backend *cpu, mpl_device *dev, uint64_t seed)
{
    drawn d = {0};
    mpl_prepared *p = NULL;
    const char *how = NULL;
    uint64_t bytes = 0;
    mpl_rng rng;
    bool by_library;

    draw(ctx, seed, &d);
    assert_ok(ctx, cpu->prepare(dev, d.g, 0, &p, &bytes, &how));
    by_library = strncmp(how, "int8: ", 6) == 0;
    void *workspace = aligned_alloc(64, (bytes + 64) & ~(uint64_t)63);
    assert_non_null(workspace);
    d.n_in = mpl_op_n_in(d.g, 0);
    for (uint32_t i = 0; i < d.n_in; i++)
        tensor(ctx, d.g, mpl_op_input(d.g, 0, i), &d.in[i]);
    tensor(ctx, d.g, mpl_op_output(d.g, 0, 0), &d.got);
    tensor(ctx, d.g, mpl_op_output(d.g, 0, 0), &d.want);
    rng = mpl_rng_of(seed);
    for (int run = 0; run < 2; run++) {
        mpl_value y = mpl_op_output(d.g, 0, 0);

        for (uint32_t i = 0; i < 2; i++)
            for (int64_t k = 0;
                 (run == 0 || d.g->value_role[mpl_op_input(d.g, 0, i)] == MPL_INPUT) &&
                 k < mpl_count(&d.in[i].shape);
                 k++)
                ((uint8_t *)d.in[i].data)[k] = (uint8_t)mpl_rng_next(&rng);
        assert_ok(ctx, mpl_eval(ctx, &(mpl_op_call){d.g, 0, d.n_in, 1, d.in, &d.want, NULL}));
        assert_ok(ctx,
                  cpu->run_op(dev, p, &(mpl_op_call){d.g, 0, d.n_in, 1, d.in, &d.got, workspace}));
        assert_ok(ctx, cpu->wait(dev));
        if (memcmp(d.got.data, d.want.data, d.g->value_bytes[y]) != 0)
            fail_msg("seed %" PRIu64 ", run %d (%s): not as the plain loops", seed, run, how);
    }
    cpu->release(dev, p);
    for (uint32_t i = 0; i < d.n_in; i++)
        mpl_free(ctx, d.in[i].data);
    mpl_free_each(ctx, d.got.data, d.want.data);
    free(workspace);
    mpl_graph_free(ctx, d.g);
    return by_library;
}

TEST(sums_of_integers_are_exact)
{
    const mpl_backend *cpu = mpl_backend_find("cpu");
    mpl_device *dev;
    unsigned n = draws(1200), by_library = 0;

    if (mpl_backend_absent(cpu) != NULL) {
        print_message("skip: cpu: %s\n", mpl_backend_absent(cpu));
        skip();
    }
    assert_ok(ctx, cpu->open(ctx, &(mpl_device_options){.n_threads = 2}, &dev));
    for (uint64_t seed = 0; seed < n; seed++)
        by_library += check(ctx, cpu, dev, seed);
    cpu->close(dev);
    print_message("%u of %u by oneDNN\n", by_library, n);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512vnni"))
        assert_true(by_library > n / 2);
#endif
}

TESTS(sums_of_integers_are_exact)
