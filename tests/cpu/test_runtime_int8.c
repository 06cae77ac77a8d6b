/* Convolutions and products of integers on the backend `cpu` against the plain loops, bit for bit:
 * random dims, windows, groups, strides, zero points, scales an output channel or a row, channels
 * first and last, stacks, every kind of result; whole, and in pieces of a few rows. */
#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "runtime/backend.h"
#include "runtime/cpu/cpu_words.h"

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

/* Zero points of weights: of any value, or all in the middle of the type, where weights stay bytes,
 * or all but the last one. */
static mpl_value zero_of_weights(mpl_ctx *ctx, mpl_graph *g, mpl_rng *rng, mpl_type type, int64_t n)
{
    mpl_value v = constant(ctx, g, rng, "w_zero", type, n);
    uint8_t *zero = g->value_data[v], last = zero[n - 1];

    if (mpl_rng_below(rng, 2) == 0)
        return v;
    memset(zero, type == MPL_TYPE_u8 ? 128 : 0, (size_t)n);
    if (mpl_rng_below(rng, 2) == 0)
        zero[n - 1] = last;
    return v;
}

/* The type of the weight: i8 more often, as oneDNN takes no other. */
static mpl_type draw_weight(mpl_rng *rng)
{
    return mpl_rng_below(rng, 3) == 0 ? MPL_TYPE_u8 : MPL_TYPE_i8;
}

/* Scales and zero points behind x and w: as sums of i32, as floats, or as integers. rows: of a
 * product; 1: all rows have the same. */
static void add_rest(mpl_ctx *ctx, mpl_graph *g, mpl_rng *rng, mpl_type type, mpl_type w_type,
                     int64_t channels, int64_t rows, mpl_value *in)
{
    static const mpl_type of_output[] = {MPL_TYPE_u8, MPL_TYPE_i8, MPL_TYPE_u8, MPL_TYPE_i8,
                                         MPL_TYPE_i16};
    int kind = (int)mpl_rng_below(rng, 3);

    if (mpl_rng_below(rng, 4) != 0)
        in[3] = constant(ctx, g, rng, "x_zero", type, rows);
    if (mpl_rng_below(rng, 2) == 0)
        in[5] = zero_of_weights(ctx, g, rng, w_type, mpl_rng_below(rng, 2) != 0 ? channels : 1);
    if (kind > 0) {
        in[2] = constant(ctx, g, rng, "x_scale", MPL_TYPE_f32, rows);
        in[4] = constant(ctx, g, rng, "w_scale", MPL_TYPE_f32,
                         mpl_rng_below(rng, 2) != 0 ? channels : 1);
    }
    if (kind > 1) {
        in[6] = constant(ctx, g, rng, "y_scale", MPL_TYPE_f32, 1);
        in[7] = constant(ctx, g, rng, "y_zero", of_output[mpl_rng_below(rng, 5)], 1);
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
    mpl_type w_type = draw_weight(rng);

    if (mpl_rng_below(rng, 6) == 0) /* depthwise; a tile of channels and more */
        group = x[1] = w[0] = between(rng, 1, 70), w[1] = 1;
    else if (mpl_rng_below(rng, 6) == 0)
        w[0] = group * between(rng, 60, 70) / (group > 1 ? 4 : 1) / group * group;

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
    add_rest(ctx, g, rng, type, w_type, w[0], 1, in);
    lay(x, rank, last), lay(w, rank, last);
    in[0] = add_input(ctx, g, "x", MPL_INPUT, type, rank, x);
    in[1] = add_input(ctx, g, "w", role, w_type, rank, w);
    return MPL_OP_qconv;
}

static mpl_op_kind add_product(mpl_ctx *ctx, mpl_graph *g, mpl_rng *rng, mpl_type type,
                               mpl_role role, mpl_value *in, mpl_attr *attr, uint32_t *n_attr,
                               int64_t *numbers)
{
    int64_t a[3] = {between(rng, 1, 3), between(rng, 1, 20), between(rng, 1, 70)};
    int64_t columns = between(rng, 1, MOST), rows = mpl_rng_below(rng, 4) == 0 ? a[1] : 1;
    int64_t b[3] = {mpl_rng_below(rng, 2) != 0 ? a[0] : 1, a[2], columns};
    bool turned = mpl_rng_below(rng, 2) != 0, stacked = mpl_rng_below(rng, 3) == 0;
    mpl_type w_type = draw_weight(rng);

    if (turned)
        b[1] = columns, b[2] = a[2];
    numbers[0] = turned;
    attr[(*n_attr)++] = (mpl_attr)MPL_INTS(trans_b, 1, numbers);
    add_rest(ctx, g, rng, type, w_type, columns, rows, in);
    in[0] = add_input(ctx, g, "x", MPL_INPUT, type, 3, a);
    in[1] = add_input(ctx, g, "w", role, w_type, stacked ? 3 : 2, stacked ? b : b + 1);
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

/* What computes it: the backend, or words in pieces of so many, by fast or plain loops. */
typedef struct computed_by {
    const mpl_backend *cpu;
    mpl_device *dev;
    int64_t piece_words; /* 0: the backend */
    bool plain;
    mpl_prepared *p;
    mpl_words *words;
    uint64_t bytes;
    const char *how;
} computed_by;

static void prepare(mpl_ctx *ctx, const drawn *d, computed_by *c)
{
    if (c->piece_words == 0)
        assert_ok(ctx, c->cpu->prepare(c->dev, d->g, 0, &c->p, &c->bytes, &c->how));
    else
        assert_ok(ctx, mpl_words_new(ctx, d->g, 0, c->piece_words, c->plain, &c->words, &c->bytes,
                                     &c->how));
}

static void run(mpl_ctx *ctx, drawn *d, computed_by *c, void *workspace)
{
    mpl_op_call call = {d->g, 0, d->n_in, 1, d->in, &d->got, workspace};

    if (c->words != NULL) {
        mpl_words_run(c->words, &call, 1);
        return;
    }
    assert_ok(ctx, c->cpu->run_op(c->dev, c->p, &call));
    assert_ok(ctx, c->cpu->wait(c->dev));
}

/* New bytes of the inputs, and in the first run of weights. */
static void fill(drawn *d, mpl_rng *rng, int round)
{
    for (uint32_t i = 0; i < 2; i++)
        for (int64_t k = 0;
             (round == 0 || d->g->value_role[mpl_op_input(d->g, 0, i)] == MPL_INPUT) &&
             k < mpl_count(&d->in[i].shape);
             k++)
            ((uint8_t *)d->in[i].data)[k] = (uint8_t)mpl_rng_next(rng);
}

/* Two runs, with other inputs: a weight is packed by the first. Returns whether oneDNN did it. */
static bool check(mpl_ctx *ctx, computed_by by, uint64_t seed)
{
    drawn d = {0};
    mpl_rng rng;
    bool by_library;

    draw(ctx, seed, &d);
    prepare(ctx, &d, &by);
    by_library = strncmp(by.how, "int8: ", 6) == 0;
    if (!by_library && strncmp(by.how, "words", 5) != 0)
        fail_msg("seed %" PRIu64 ": by %s", seed, by.how);
    void *workspace = aligned_alloc(64, (by.bytes + 64) & ~(uint64_t)63);
    assert_non_null(workspace);
    d.n_in = mpl_op_n_in(d.g, 0);
    for (uint32_t i = 0; i < d.n_in; i++)
        tensor(ctx, d.g, mpl_op_input(d.g, 0, i), &d.in[i]);
    tensor(ctx, d.g, mpl_op_output(d.g, 0, 0), &d.got);
    tensor(ctx, d.g, mpl_op_output(d.g, 0, 0), &d.want);
    rng = mpl_rng_of(seed);
    for (int round = 0; round < 2; round++) {
        fill(&d, &rng, round);
        assert_ok(ctx, mpl_eval(ctx, &(mpl_op_call){d.g, 0, d.n_in, 1, d.in, &d.want, NULL}));
        run(ctx, &d, &by, workspace);
        if (memcmp(d.got.data, d.want.data, d.g->value_bytes[mpl_op_output(d.g, 0, 0)]) != 0)
            fail_msg("seed %" PRIu64 ", run %d (%s): not as the plain loops", seed, round, by.how);
    }
    if (by.p != NULL)
        by.cpu->release(by.dev, by.p);
    mpl_words_free(ctx, by.words);
    for (uint32_t i = 0; i < d.n_in; i++)
        mpl_free(ctx, d.in[i].data);
    mpl_free_each(ctx, d.got.data, d.want.data);
    free(workspace);
    mpl_graph_free(ctx, d.g);
    return by_library;
}

TEST(sums_of_integers_are_exact)
{
    computed_by by = {.cpu = mpl_backend_find("cpu")};
    unsigned n = draws(1200), by_library = 0;

    if (mpl_backend_absent(by.cpu) != NULL) {
        print_message("skip: cpu: %s\n", mpl_backend_absent(by.cpu));
        skip();
    }
    assert_ok(ctx, by.cpu->open(ctx, &(mpl_device_options){.n_threads = 2}, &by.dev));
    for (uint64_t seed = 0; seed < n; seed++)
        by_library += check(ctx, by, seed);
    by.cpu->close(by.dev);
    print_message("%u of %u by oneDNN\n", by_library, n);
#if defined(__x86_64__)
    if (getenv("ONEDNN_MAX_CPU_ISA") == NULL && __builtin_cpu_supports("avx512vnni"))
        assert_true(by_library > n / 4);
#endif
}

TEST(pieces_and_vectors_do_not_change_a_result)
{
    for (uint64_t seed = 0; seed < draws(800); seed++)
        check(ctx,
              (computed_by){.piece_words = 1 + (int64_t)seed % 5 * 300, .plain = seed % 2 != 0},
              seed);
}

/* One row of n bytes 255 times a column of n: the largest sum that 32 bits hold, and one more. */
static bool largest(mpl_ctx *ctx, int64_t n, bool plain, int32_t *sum)
{
    drawn d = {.n_in = 2};
    mpl_value in[2], y;
    computed_by by = {.piece_words = 1, .plain = plain};
    bool made;

    assert_ok(ctx, mpl_graph_new(ctx, "largest", &d.g));
    in[0] = add_input(ctx, d.g, "x", MPL_INPUT, MPL_TYPE_u8, 2, (int64_t[]){1, n});
    in[1] = add_input(ctx, d.g, "w", MPL_INPUT, MPL_TYPE_u8, 2, (int64_t[]){n, 1});
    assert_ok(ctx, mpl_graph_add_op(ctx, d.g, MPL_OP_qmatmul, "q", 2, in, 0, NULL, 1,
                                    (const char *[]){"y"}, &y));
    assert_ok(ctx, mpl_graph_add_output(ctx, d.g, y));
    assert_ok(ctx, mpl_graph_finish(ctx, d.g));
    prepare(ctx, &d, &by);
    made = by.words != NULL;
    if (made) {
        void *workspace = aligned_alloc(64, (by.bytes + 64) & ~(uint64_t)63);

        for (uint32_t i = 0; i < 2; i++)
            memset(tensor(ctx, d.g, in[i], &d.in[i]), 255, (size_t)n);
        tensor(ctx, d.g, y, &d.got);
        run(ctx, &d, &by, workspace);
        *sum = *(int32_t *)d.got.data;
        mpl_free_each(ctx, d.in[0].data, d.in[1].data, d.got.data);
        free(workspace);
    }
    mpl_words_free(ctx, by.words);
    mpl_graph_free(ctx, d.g);
    return made;
}

TEST(sums_that_might_overflow_are_left_to_the_plain_loops)
{
    for (int plain = 0; plain < 2; plain++) {
        int32_t sum = 0;

        assert_true(largest(ctx, 33025, plain, &sum));
        assert_int_equal(sum, 33025 * 255 * 255);
        assert_false(largest(ctx, 33026, plain, &sum));
    }
}

/* oneDNN chooses once in a process, so that each choice has one of its own. */
TEST(so_they_are_by_fewer_instructions)
{
    static const char *const most[] = {"SSE41", "AVX2", "AVX512_CORE"};
    const char *own = getenv("ONEDNN_MAX_CPU_ISA");
    char program[1024], command[1200];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);

    assert_true(n > 0);
    program[n] = '\0';
    for (int i = 0; i < 3 && own == NULL; i++) {
        snprintf(command, sizeof command, "ONEDNN_MAX_CPU_ISA=%s '%s' >/dev/null 2>&1", most[i],
                 program);
        assert_int_equal(system(command), 0);
    }
}

TESTS(sums_of_integers_are_exact, so_they_are_by_fewer_instructions,
      pieces_and_vectors_do_not_change_a_result,
      sums_that_might_overflow_are_left_to_the_plain_loops)
