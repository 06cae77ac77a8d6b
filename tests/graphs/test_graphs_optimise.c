/* The optimiser's passes: the patterns of tests/data/optimise.txt; random graphs full of
 * them, with outputs equal bit for bit; operation counts of Owl's networks. */
#include "tests/support/interpret.h"
#include "tests/support/op_rows.h"

#include "graphs/core/rng.h"
#include "graphs/passes/optimise/optimise.h"

static char head[2000]; /* inputs and constants of all graphs */

static int read_head(void)
{
    FILE *f = fopen("tests/data/optimise.graph", "r");

    return f == NULL || fread(head, 1, sizeof head - 1, f) == 0 || fclose(f) != 0;
}

/* Lines are separated by ';'; the last value is the output. */
static mpl_graph *read_case(mpl_ctx *ctx, const char *lines)
{
    char text[4000];
    mpl_graph *g = NULL;
    int n = snprintf(text, sizeof text, "%s%s\noutput z\n", head, lines);

    for (int i = 0; i < n; i++)
        text[i] = text[i] == ';' ? '\n' : text[i];
    if (mpl_text_read_memory(ctx, "case", text, (size_t)n, &g) != MPL_OK)
        fail_msg("%s: %s", lines, ctx->message);
    return g;
}

/* Special numbers among small ones; `tame`: positive, without infinities or NaN. */
static void fill(const mpl_graph *g, interpreter *it, uint64_t seed, bool tame)
{
    static const double special[] = {-0.0, 0, INFINITY, -INFINITY, NAN, 1, -1};
    mpl_rng rng;

    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_role[v] == MPL_INPUT ||
            (g->value_role[v] == MPL_WEIGHT && g->value_data[v] == NULL)) {
            uint64_t size = mpl_type_bytes((mpl_type)g->value_type[v]);

            rng = mpl_rng_of(mpl_hash(seed, g->value_name[v], strlen(g->value_name[v])));
            for (uint64_t i = 0; i < g->value_bytes[v] / size; i++) {
                double number = mpl_rng_float(&rng) * 4 + 0.25;
                uint32_t pick = (uint32_t)mpl_rng_below(&rng, 14);

                mpl_put((mpl_type)g->value_type[v], it->data[v], (int64_t)i,
                        tame || pick >= 7 || !mpl_type_in((mpl_type)g->value_type[v], MPL_SET_FLOAT)
                            ? number
                            : special[pick]);
            }
        }
}

/* Bitwise equal except NaN; tolerance < 0: numerically, so that -0 equals 0. */
static bool same(mpl_type type, const void *a, const void *b, int64_t i, double tolerance)
{
    double x = mpl_get(type, a, i), y = mpl_get(type, b, i);

    if (tolerance > 0)
        return x == y || fabs(x - y) <= tolerance * fmax(1, fabs(y));
    return (isnan(x) && isnan(y)) || (x == y && (tolerance < 0 || signbit(x) == signbit(y)));
}

static void assert_same(mpl_ctx *ctx, const char *what, const mpl_graph *was, const mpl_graph *is,
                        uint64_t seed, bool tame, double tolerance)
{
    interpreter a = interpret_begin(ctx, was), b = interpret_begin(ctx, is);

    fill(was, &a, seed, tame);
    fill(is, &b, seed, tame);
    assert_ok(ctx, interpret(&a));
    assert_ok(ctx, interpret(&b));
    assert_int_equal(was->n_outputs, is->n_outputs);
    for (uint32_t k = 0; k < was->n_outputs; k++) {
        mpl_value v = was->output[k], w = is->output[k];
        mpl_type type = (mpl_type)was->value_type[v];

        assert_string_equal(was->value_name[v], is->value_name[w]);
        assert_int_equal(type, is->value_type[w]);
        assert_true(mpl_shape_equal(&was->value_shape[v], &is->value_shape[w]));
        for (uint64_t i = 0; i < was->value_bytes[v] / mpl_type_bytes(type); i++)
            if (!same(type, a.data[v], b.data[w], (int64_t)i, tolerance))
                fail_msg("%s, seed %" PRIu64 ": output %s, element %" PRIu64 " was %.9g, is %.9g",
                         what, seed, was->value_name[v], i, mpl_get(type, a.data[v], (int64_t)i),
                         mpl_get(type, b.data[w], (int64_t)i));
    }
    interpret_end(&a);
    interpret_end(&b);
}

static double tolerance_of(const mpl_pass_set *set)
{
    double most = set->unsafe ? -1 : 0;

    for (int i = 0; i < MPL_N_PASSES; i++)
        most = set->on[i] && mpl_pass_table[i].tolerance > 0 ? mpl_pass_table[i].tolerance : most;
    return most;
}

static bool met[MPL_N_PASSES]; /* passes that found something */

static void check_pattern(const char *line)
{
    char copy[1000], *column[5];
    owned_graph *was, *is;
    mpl_pass_count count[MPL_N_PASSES];
    mpl_pass_set set;
    uint32_t places = 0;
    int64_t less = 0;

    op_columns(line, copy, sizeof copy, column, 5);
    was = read_case(test_ctx, column[4]), is = read_case(test_ctx, column[4]);
    assert_ok(test_ctx, mpl_pass_set_parse(test_ctx, column[1], &set));
    assert_ok(test_ctx, mpl_graph_optimise(test_ctx, &is, &set, NULL, count));
    for (int k = 0; k < MPL_N_PASSES; k++) {
        places += count[k].places;
        less += count[k].ops_less;
        met[k] = met[k] || count[k].places > 0;
    }
    if (places != strtoul(column[2], NULL, 10) || is->n_ops != strtoul(column[3], NULL, 10) ||
        less != (int64_t)was->n_ops - is->n_ops)
        fail_msg("%s: %u places, %u operations left, %d less", line, places, is->n_ops, (int)less);
    for (uint64_t seed = 1; seed <= 5; seed++)
        assert_same(test_ctx, column[0], was, is, seed, set.unsafe || tolerance_of(&set) > 0,
                    tolerance_of(&set));
}

TEST(test_patterns)
{
    op_each_row(ctx, "tests/data/optimise.txt", 206, check_pattern);
    for (int k = 0; k < MPL_N_PASSES; k++)
        if (!met[k])
            fail_msg("no case in which %s finds anything", mpl_pass_table[k].name);
}

/* ---- random graphs ---- */

/* A line that makes v<i> from earlier values, mostly the latest; values are [2,3] f32. */
static int random_line(mpl_rng *rng, uint32_t i, char *text, size_t size)
{
    static const char *const form[] = ROW(
        "v%u = add(%s, zero)\n", "v%u = sub(%s, zero)\n", "v%u = add(minus, %s)\n",
        "v%u = mul(one, %s)\n", "v%u = mul(%s, one)\n", "v%u = div(%s, one)\n",
        "v%u = mul(%s, zero)\n", "v%u = tanh(%s)\n", "v%u = div(zero, %s)\n",
        "v%u = identity(%s)\n", "v%u, _ = dropout(%s)\n", "v%u = relu(%s)\n",
        "v%u = cast(%s) to=f32\n", "v%u = sum(%s)\n", "v%u = abs(%s)\n", "v%u = tanh(%s)\n",
        "v%u = add(%s, %s)\n", "v%u = mul(%s, %s)\n", "v%u = add(%s, %s)\n", "v%u = mul(%s, %s)\n",
        "m%u = transpose(%s)\nk%u = matmul(%s, m%u)\nv%u = matmul(k%u, %s)\n",
        "m%u = add(%s, tiny)\nk%u = sqrt(m%u)\nv%u = div(%s, k%u)\n",
        "m%u = reduce_max(%s) axes=[0]\nk%u = expand(m%u) shape=[2,3]\nv%u = sub(%s, k%u)\n",
        "m%u = reduce_sum(%s) axes=[0]\nk%u = reduce_min(m%u) axes=[0]\nv%u = add(%s, k%u)\n",
        "m%u = mul(nearly, one)\nk%u = reshape(m%u) shape=[2,3]\nv%u = add(%s, k%u)\n");
    uint32_t kind = (uint32_t)mpl_rng_below(rng, sizeof form / sizeof *form);
    char a[16], b[16];
    char *const name[2] = {a, b};

    for (int k = 0; k < 2; k++) {
        uint32_t far = mpl_rng_below(rng, 4) == 0 ? i + 2 : i + 2 < 4 ? i + 2 : 4;
        uint32_t back = (uint32_t)mpl_rng_below(rng, far) + 1;

        if (back > i)
            snprintf(name[k], 16, "%c", back - i == 1 ? 'x' : 'y');
        else
            snprintf(name[k], 16, "v%u", i - back);
    }
    switch (kind) {
    case 20:
        return snprintf(text, size, form[kind], i, a, i, b, i, i, i, a);
    case 21:
    case 22:
    case 23:
        return snprintf(text, size, form[kind], i, a, i, i, i, b, i);
    case 24:
        return snprintf(text, size, form[kind], i, i, i, i, a, i);
    default:
        return snprintf(text, size, form[kind], i, a, b);
    }
}

static mpl_graph *random_patterns(mpl_ctx *ctx, uint64_t seed)
{
    char text[8000];
    int n = snprintf(text, sizeof text, "%s", head);
    mpl_rng rng = mpl_rng_of(seed);
    mpl_graph *g = NULL;
    uint32_t n_lines = 3 + (uint32_t)mpl_rng_below(&rng, 25);

    for (uint32_t i = 0; i < n_lines; i++)
        n += random_line(&rng, i, text + n, sizeof text - (size_t)n);
    n += snprintf(text + n, sizeof text - (size_t)n, "output v%u\noutput v%u\n", n_lines - 1,
                  n_lines / 2);
    if (mpl_text_read_memory(ctx, "random", text, (size_t)n, &g) != MPL_OK)
        fail_msg("%s: %s", text, ctx->message);
    return g;
}

TEST(random_graphs_keep_their_outputs)
{
    uint64_t places = 0;

    for (uint64_t seed = 1; seed <= 600; seed++) {
        mpl_pass_set set;
        mpl_pass_count count[MPL_N_PASSES];
        owned_graph *was = random_patterns(ctx, seed), *is = random_patterns(ctx, seed);

        /* two thirds run one pass after another, the rest all together */
        assert_ok(ctx,
                  mpl_pass_set_parse(
                      ctx, seed % 3 == 0 ? "all" : mpl_pass_table[seed % MPL_N_PASSES].name, &set));
        assert_ok(ctx, mpl_graph_optimise(ctx, &is, &set, NULL, count));
        assert_true(mpl_graph_ok(is));
        for (int k = 0; k < MPL_N_PASSES; k++)
            places += count[k].places;
        assert_same(ctx, seed % 3 == 0 ? "all" : mpl_pass_table[seed % MPL_N_PASSES].name, was, is,
                    seed, false, 0);
    }
    assert_true(places > 600);
}

/* ---- graphs with control flow, networks, the list of passes, memory ---- */

static const char loop[] =
    "graph g\ninput x f32 [2,3]\nweight one f32 [] = splat 1\nweight trips i64 [] = splat 3\n"
    "a = mul(x, one)\nc = tanh(a)\nd = tanh(a)\nblock body\n  param t i64 []\n  param h f32 [2,3]\n"
    "  e = mul(h, one)\n  f = add(e, d)\nyield _, f\nr = while body(trips, _, c) carried=1\n"
    "k = mul(r, one)\nz = add(k, d)\noutput z\n";

TEST(test_blocks)
{
    owned_graph *was = NULL, *is = NULL;
    mpl_pass_set set;
    mpl_pass_count count[MPL_N_PASSES];

    assert_ok(ctx, mpl_text_read_memory(ctx, "loop", loop, sizeof loop - 1, &was));
    assert_ok(ctx, mpl_text_read_memory(ctx, "loop", loop, sizeof loop - 1, &is));
    assert_ok(ctx, mpl_pass_set_parse(ctx, "all", &set));
    assert_ok(ctx, mpl_graph_optimise(ctx, &is, &set, NULL, count));
    assert_int_equal(count[MPL_PASS_mul_one].places, 2); /* the one that stays in the block */
    assert_int_equal(count[MPL_PASS_cse].places, 1);
    assert_int_equal(is->n_ops, 5);
    assert_same(ctx, "loop", was, is, 1, false, 0);
}

/* An operation that overwrites a weight is refused, and the graph stays intact. */
TEST(test_updates)
{
    static const char text[] = "graph g\ninput x f32 [3]\nweight w f32 [3]\ng2 = tanh(x)\n"
                               "w2 = sgd_update(g2, w)\noutput w2\n";
    owned_graph *g = NULL;
    mpl_pass_set set;

    assert_ok(ctx, mpl_text_read_memory(ctx, "update", text, sizeof text - 1, &g));
    assert_ok(ctx, mpl_pass_set_parse(ctx, "all", &set));
    assert_status(ctx, mpl_graph_optimise(ctx, &g, &set, NULL, NULL), MPL_EINPUT);
    assert_true(mpl_graph_ok(g));
}

static mpl_status seeded(void *arg, const mpl_graph *g, mpl_value v, void *data)
{
    mpl_rng rng;

    (void)arg;
    rng = mpl_rng_of(mpl_hash(7, g->value_name[v], strlen(g->value_name[v])));
    for (uint64_t i = 0; i < g->value_bytes[v] / sizeof(float); i++)
        ((float *)data)[i] = mpl_rng_float(&rng) * 0.5f + 0.25f;
    return MPL_OK;
}

/* spec, passes, operations before and after, sum of result bytes after [10^6 byte]. The first two
 * are Owl's simulated numbers, but the second also fuses the bias of the dense layer; after a
 * convolution, biases and means disappear too. */
static const struct {
    const char *spec, *passes;
    uint32_t n_before, n_after;
    double sum;
} networks[] = {
    {"resnet50:form=owl", "fma", 500, 447, 271.8},
    {"resnet50:form=owl", "fma,gemm_bias", 500, 446, 271.8},
    {"resnet50:form=owl", "all", 500, 340, 187.1},
    {"inception_v3:form=owl", "fma", 883, 789, 236.9},
    {"mobilenet_v2:image=32", "conv_bn,identity", 154, 101, 1.1},
    {"mobilenet_v2:image=32", "conv_bn,identity,conv_sum,conv_relu", 154, 56, 0.563},
    {"resnet50:image=32", "conv_bn", 176, 123, 2.183},
    {"resnet50:image=32", "conv_bn,conv_sum,conv_relu", 176, 58, 0.948},
};

TEST(test_networks)
{
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        mpl_pass_set set;
        double sum = 0;
        owned_graph *g = zoo_graph(ctx, networks[i].spec);

        assert_int_equal(g->n_ops, networks[i].n_before);
        assert_ok(ctx, mpl_pass_set_parse(ctx, networks[i].passes, &set));
        assert_ok(ctx, mpl_graph_optimise(ctx, &g, &set, &(mpl_weight_source){seeded, NULL}, NULL));
        assert_int_equal(g->n_ops, networks[i].n_after);
        for (mpl_value v = 0; v < g->n_values; v++)
            sum += g->value_op[v] != MPL_NONE ? (double)g->value_bytes[v] * 1e-6 : 0;
        assert_float_equal(sum, networks[i].sum, 0.05);
    }
}

TEST(test_lists)
{
    static const char *const wrong[] = {"", "all,", "fma,none", "unsafe", "fmaa", "fm"};
    mpl_pass_set set;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_status(ctx, mpl_pass_set_parse(ctx, wrong[i], &set), MPL_EINPUT);
    assert_ok(ctx, mpl_pass_set_parse(ctx, "none", &set));
    for (int k = 0; k < MPL_N_PASSES; k++)
        assert_false(set.on[k]);
    assert_ok(ctx, mpl_pass_set_parse(ctx, "fma,unsafe", &set));
    assert_true(set.on[MPL_PASS_fma] && set.unsafe && !set.on[MPL_PASS_cse]);
    assert_ok(ctx, mpl_pass_set_parse(ctx, "all", &set));
    assert_false(set.unsafe || set.on[MPL_PASS_bn_fma]);
}

/* Nothing stays allocated if the k-th allocation fails. */
TEST(test_memory)
{
    static const char lines[] =
        "a = sub(x, zero); c = conv(v, w); d = batch_norm(c, p, b, b, q); e = mul(one, s); f = "
        "add(nearly, one); h = mul(a, f); k = add(h, e); l = tanh(k); n = tanh(k); o = mul(l, n); "
        "r = reduce_sum(d); u = mul(i, i0); t = cast(u) to=f32; q2 = add(o, t); z = add(q2, r)";
    mpl_status st = MPL_EMEM;
    mpl_pass_set set;

    assert_ok(ctx, mpl_pass_set_parse(ctx, "all", &set));
    for (int64_t k = 0; st == MPL_EMEM; k = next_place(k)) {
        owned_graph *g = read_case(ctx, lines);

        ctx->fail_after = ctx->n_allocs + k;
        st = mpl_graph_optimise(ctx, &g, &set, NULL, NULL);
        ctx->fail_after = -1;
    }
    assert_ok(ctx, st);
}

TESTS_WITHIN(read_head, NULL, test_patterns, random_graphs_keep_their_outputs, test_blocks,
             test_updates, test_networks, test_lists, test_memory)
