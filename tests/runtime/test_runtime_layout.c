/* test_runtime_layout.c -- images with their channels last: the result of mpl_graph_channels_last,
 * executed on `cpu` in a plan's arena, against the plain graph on `ref` and on `cpu`. Fault:
 * operators that misread a layout, missing or superfluous reorders, weights reordered wrongly, and
 * concats that share although their operands are not contiguous. */
#include "tests/tune/random_images.h"

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
      networks_agree, sums_in_place_change_no_bit, optimised_networks_agree,
      wrong_layouts_are_refused)
