/* 16-bit floats of the backend `cpu`, in pieces so small that every operation takes several.
 * Oracle: the reference loops, which round each element of the result once. */
#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "graphs/ops/ops_priv.h"
#include "runtime/cpu/halves_priv.h"

#include <math.h>

enum { MOST = 6 };

/* Dims of operands are apart by blanks; one that begins with w is a weight, t: a trained one. */
typedef struct row {
    const char *op, *in, *attrs;
    int64_t piece_bytes;
} row;

static const row rows[] = {
    {"relu", "3,77", "", 400},
    {"relu", "1000", "", 400},
    {"add", "3,5,7 5,1", "", 200},
    {"add", "5,5,7 5,1,1", "", 400},
    {"mul", "4,6 4,6", "", 40},
    {"sum", "4,3 3 4,1", "", 40},
    {"conv", "2,3,12,9 w8,3,3,3 w8", "pads=1,1,1,1", 4000},
    {"conv", "1,4,13,9 w8,2,3,3", "group=2 strides=2,1 pads=2,0,1,1 dilations=2,1", 4000},
    {"conv", "3,8,10,10 8,1,5,5 8", "group=8 pads=2,2,2,2", 100},
    {"conv", "1,2,60 w2,2,7 w2", "pads=3,3 strides=2", 300},
    {"conv", "1,2,9,9,9 w2,2,3,3,3", "", 3000},
    {"conv_act", "2,3,12,9 w8,3,3,3 w8", "pads=1,1,1,1 activation=relu", 5000},
    {"conv_sum", "2,8,12,9 2,3,12,9 w8,3,3,3 w8", "pads=1,1,1,1 activation=relu", 5000},
    {"max_pool", "2,9,15,10", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1", 3000},
    {"avg_pool", "2,9,10,10", "kernel_shape=3,3 strides=2,2 ceil_mode=1", 3000},
    {"global_avg_pool", "2,30,6,6", "", 900},
    {"batch_norm", "2,30,6,6 w30 w30 w30 w30", "", 3000},
    {"softmax", "3,4,15", "axis=-1", 300},
    {"softmax", "4,3,5", "axis=0", 100},
    {"layer_norm", "3,4,15 w15 w15", "", 300},
    {"matmul", "70,20 w20,7", "", 600},
    {"matmul", "2,5,9,8 2,5,8,7", "", 2000},
    {"matmul", "2,1,9,8 5,8,7", "", 2000},
    {"matmul", "7,9,8 w8,7", "", 500},
    {"gemm", "70,20 w20,7 70,1", "alpha=0.5 beta=2.0", 600},
    {"gemm", "20,70 w7,20 w7", "trans_a=1 trans_b=1", 600},
    {"gemm_sum", "20,7 20,6 w6,7 w7", "", 300},
    {"gemm_sum", "1,20,7 1,20,6 w6,7 w7", "", 300},
    {"matmul", "70,20 t20,7", "", 600},
    {"reduce_mean", "30,4", "axes=1", 100},
};

static uint32_t numbers(const char *text, int64_t *out)
{
    uint32_t n = 0;

    while (*text >= '0' && *text <= '9') {
        char *end;

        out[n++] = strtoll(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return n;
}

static mpl_graph *build(mpl_ctx *ctx, const row *r, mpl_type type)
{
    static const char *const out_name[] = {"y"};
    mpl_graph *g;
    mpl_op_kind kind;
    mpl_value in[MOST], out;
    mpl_attr attr[MOST] = {{0}};
    int64_t ints[MOST][8];
    double floats[MOST];
    char words[100], *save = NULL;
    uint32_t n_in = 0, n_attr = 0;

    assert_true(mpl_op_find(r->op, &kind));
    assert_ok(ctx, mpl_graph_new(ctx, r->op, &g));
    snprintf(words, sizeof words, "%s", r->in);
    for (char *w = strtok_r(words, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
        char name[] = {'x', (char)('0' + n_in), '\0'};
        mpl_shape shape = {0};

        shape.rank = numbers(w + (*w > '9'), shape.dim);
        assert_ok(ctx, mpl_graph_add_value(ctx, g, name, *w > '9' ? MPL_WEIGHT : MPL_INPUT, type,
                                           &shape, &in[n_in++]));
    }
    snprintf(words, sizeof words, "%s", r->attrs);
    save = NULL;
    for (char *w = strtok_r(words, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
        char *value = strchr(w, '=');
        mpl_attr *a = &attr[n_attr];

        *value++ = '\0';
        assert_true(mpl_attr_find(w, &a->key));
        a->n = *value == '-' ? 1 : numbers(value, ints[n_attr]);
        if (*value == '-')
            ints[n_attr][0] = atoi(value);
        floats[n_attr] = atof(value);
        a->ints = ints[n_attr], a->floats = &floats[n_attr], a->text = value;
        if (a->n == 0)
            a->n = (uint32_t)strlen(value);
        if (mpl_attr_kind_of(a->key) == MPL_ATTR_FLOAT)
            a->n = 1;
        n_attr++;
    }
    assert_ok(ctx,
              mpl_graph_add_op(ctx, g, kind, r->op, n_in, in, n_attr, attr, 1, out_name, &out));
    assert_ok(ctx, mpl_graph_add_output(ctx, g, out));
    if (strchr(r->in, 't') != NULL) {
        mpl_value now;

        assert_ok(
            ctx, mpl_graph_add_value(ctx, g, "now", MPL_INPUT, type, &g->value_shape[in[1]], &now));
        assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_set_update, "set", 3,
                                        (mpl_value[]){now, in[1], out}, 0, NULL, 1,
                                        (const char *[]){"after"}, &now));
        assert_ok(ctx, mpl_graph_add_output(ctx, g, now));
    }
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

/* Weights are positive, as variances are. */
static void fill(mpl_tensor *t, bool weight, mpl_rng *rng)
{
    for (int64_t i = 0; i < mpl_count(&t->shape); i++)
        mpl_put(t->type, t->data, i,
                (double)mpl_rng_below(rng, 2000) / 1000 + (i % 2 != 0 && !weight ? -1 : 0.1));
}

static void new_tensor(mpl_ctx *ctx, const mpl_graph *g, mpl_value v, mpl_tensor *t)
{
    *t = (mpl_tensor){(mpl_type)g->value_type[v], g->value_shape[v], NULL};
    t->data = mpl_alloc(ctx, g->value_bytes[v], 1);
    assert_non_null(t->data);
}

/* How far two results are apart, relative to the largest element. */
static double distance(const mpl_tensor *a, const mpl_tensor *b)
{
    double most = 1e-3, apart = 0;

    for (int64_t i = 0; i < mpl_count(&a->shape); i++) {
        double x = mpl_get(a->type, a->data, i), y = mpl_get(b->type, b->data, i);

        most = fmax(most, fabs(y));
        apart = fmax(apart, fabs(x - y));
        assert_false(isnan(x));
    }
    return apart / most;
}

/* Three runs on other inputs, the second in place if the operator may be: nothing is left over. */
static void check_row(mpl_ctx *ctx, mpl_device *dev, const row *r, mpl_type type)
{
    owned_graph *g = build(ctx, r, type);
    mpl_halves *h = NULL;
    mpl_tensor in[MOST], got, want, *out = &got;
    mpl_rng rng;
    uint64_t bytes = 0;
    const char *how = NULL;
    void *workspace;
    uint32_t n_in = mpl_op_n_in(g, 0);
    bool in_place = (mpl_op_table[g->op_kind[0]].traits & MPL_IN_PLACE_0) != 0 &&
                    mpl_shape_equal(&g->value_shape[0], &g->value_shape[g->op_out[0]]);

    assert_ok(ctx,
              mpl_halves_new(dev, mpl_backend_find("cpu"), r->piece_bytes, g, 0, &h, &bytes, &how));
    assert_non_null(h);
    assert_true(strncmp(how, "f32 pieces: ", 12) == 0);
    workspace = aligned_alloc(64, (bytes + 64) & ~(uint64_t)63);
    assert_non_null(workspace);
    memset(workspace, 0xff, bytes); /* NaNs */
    for (uint32_t k = 0; k < n_in; k++)
        new_tensor(ctx, g, g->op_in[k], &in[k]);
    new_tensor(ctx, g, g->op_out[0], &got);
    new_tensor(ctx, g, g->op_out[0], &want);
    rng = mpl_rng_of(1);
    for (int run = 0; run < 3; run++) {
        for (uint32_t k = 0; k < n_in; k++)
            if (run == 0 || g->value_role[g->op_in[k]] != MPL_WEIGHT || strchr(r->in, 't') != NULL)
                fill(&in[k], g->value_role[g->op_in[k]] == MPL_WEIGHT, &rng);
        assert_ok(ctx, mpl_eval(ctx, &(mpl_op_call){g, 0, n_in, 1, in, &want, NULL}));
        out = run == 1 && in_place ? &in[0] : &got;
        assert_ok(ctx, mpl_halves_run(dev, h, &(mpl_op_call){g, 0, n_in, 1, in, out, workspace}));
        if (distance(out, &want) > (type == MPL_TYPE_f16 ? 0x1p-10 : 0x1p-7))
            fail_msg("%s %s (%s), run %d: %g from the reference loops", r->op, r->in, r->attrs, run,
                     distance(out, &want));
    }
    for (uint32_t k = 0; k < n_in; k++)
        mpl_free(ctx, in[k].data);
    mpl_free_each(ctx, got.data, want.data);
    free(workspace);
    mpl_halves_free(dev, h);
}

TEST(pieces_are_as_the_whole)
{
    const mpl_backend *cpu = mpl_backend_find("cpu");
    mpl_device *dev;

    if (mpl_backend_absent(cpu) != NULL) {
        print_message("skip: cpu: %s\n", mpl_backend_absent(cpu));
        skip();
    }
    assert_ok(ctx, cpu->open(ctx, &(mpl_device_options){.n_threads = 2}, &dev));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_row(ctx, dev, &rows[i], MPL_TYPE_f16);
        check_row(ctx, dev, &rows[i], MPL_TYPE_bf16);
    }
    cpu->close(dev);
}

/* Every half, and floats around each of them. Oracle: rounding of ops_priv.h from f64. */
TEST(rounding)
{
    static const mpl_type types[] = {MPL_TYPE_f16, MPL_TYPE_bf16};
    static float wide[65536], near[65536];
    static uint16_t half[65536], back[65536];

    for (int t = 0; t < 2; t++) {
        for (unsigned i = 0; i < 65536; i++)
            half[i] = (uint16_t)i;
        mpl_half_widen(types[t], wide, half, 65536);
        mpl_half_round(types[t], back, wide, 65536);
        for (unsigned i = 0; i < 65536; i++) {
            double x = mpl_get(types[t], half, i);

            assert_true(isnan(x) ? isnan(wide[i]) && isnan(mpl_get(types[t], back, i))
                                 : (double)wide[i] == x && back[i] == half[i]);
        }
        for (int step = -2; step <= 2; step++) {
            for (unsigned i = 0; i < 65536; i++) { /* midpoints, and their neighbours */
                float next = i + 1 < 65536 ? wide[i + 1] : 0;

                near[i] = (wide[i] + next) / 2;
                for (int k = 0; k < abs(step); k++)
                    near[i] = nextafterf(near[i], step < 0 ? -INFINITY : INFINITY);
            }
            mpl_half_round(types[t], back, near, 65536);
            for (unsigned i = 0; i < 65536; i++) {
                uint16_t want = types[t] == MPL_TYPE_f16 ? mpl_to_f16((double)near[i])
                                                         : mpl_to_bf16((double)near[i]);

                assert_true(back[i] == want || isnan(near[i]));
            }
        }
    }
}

TESTS(pieces_are_as_the_whole, rounding)
