/* test_graphs_user_ops.c -- operators of the user's, from shared libraries: Owl's Delay by hand, in
 * place and apart, its gradient against central differences, ONNX, and libraries that are wrong.
 * Fault: an in-place rule that nobody heeds, an attribute that is lost, an answer that is believed.
 */
/* before what has a global called `out` */
#include "tests/support/interpret.h"

#include "tests/harness/run_program.h"

#include <math.h>

#include "graphs/ops/user/user_ops.h"
#include "graphs/passes/autodiff/autodiff.h"
#include "harness/foreign/operators.h"

static char plugins[200];            /* folder of the built plug-ins */
static char delay_so[300], bad[300]; /* "so:FILE" */

/* ---- the example, by hand ---- */

static mpl_graph *read_text(mpl_ctx *ctx, const char *text)
{
    mpl_graph *g = NULL;

    assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, strlen(text), &g));
    return g;
}

static const struct {
    const char *line;
    float x[6], y[6]; /* [2,3] */
} delays[] = {
    {"y = delay(x)", {1, 2, 3, 4, 5, 6}, {0, 1, 2, 0, 4, 5}},
    {"y = delay(x) taps=2 gain=0.5", {1, 2, 3, 4, 5, 6}, {0, 0, 0.5F, 0, 0, 2}},
    {"y = delay(x) gain=-2 taps=0", {1, 2, 3, 4, 5, 6}, {-2, -4, -6, -8, -10, -12}},
    {"y = delay(x) taps=9223372036854775807", {1, 2, 3, 4, 5, 6}, {0}},
    {"y = delay_grad(x) taps=1 gain=2", {1, 2, 3, 4, 5, 6}, {4, 6, 0, 10, 12, 0}},
    {"y = delay_array(x) shape=[3,2]", {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}},
    {"y = delay_array(x, x, x, x) shape = [ 2 , 3 ]", {1, 2, 3, 4, 5, 6}, {4, 8, 12, 16, 20, 24}},
};

TEST(by_hand)
{
    char text[300];

    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
        owned_graph *g, *again;
        owned_memory char *written = NULL;
        interpreter it;
        size_t size;

        snprintf(text, sizeof text, "graph t\ninput x f32 [2,3]\n%s\noutput y\n", delays[i].line);
        g = read_text(ctx, text);
        it = interpret_begin(ctx, g);
        memcpy(it.data[g->input[0]], delays[i].x, sizeof delays[i].x);
        assert_ok(ctx, interpret(&it));
        assert_memory_equal(it.data[g->output[0]], delays[i].y, sizeof delays[i].y);
        interpret_end(&it);
        assert_ok(ctx, mpl_text_write_memory(ctx, g, &written, &size));
        again = read_text(ctx, written);
        assert_true(mpl_graph_hash(g) == mpl_graph_hash(again));
    }
}

/* Every other kind of attribute reaches the library as it was written. */
TEST(attributes)
{
    static const struct {
        const char *params, *says; /* NULL: taken */
    } table[] = {
        {"", NULL},
        {"do=well run=\"a \\\"b\\\" c\" size=1e-3 list=[] some=[1,-2.5,inf] n=-7", NULL},
        {"n=1.5", "not of its kind"},
        {"n=[1]", "not of its kind"},
        {"n=x", "not of its kind"},
        {"n=99999999999999999999", "not of its kind"},
        {"size=[1]", "not of its kind"},
        {"list=3", "not of its kind"},
        {"list=[1,,2]", "not of its kind"},
        {"list=[1,2.5]", "not of its kind"},
        {"some=[1,x]", "not of its kind"},
        {"do=[1]", "not of its kind"},
        {"n=1 n=2", "given twice"},
        {"axis=1", "has no attribute 'axis'; it has: do:text"},
        {"n", "where '=' should stand"},
        {"n=", "where the value"},
        {"list=[1", "where the value"},
    };
    char text[400];

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        owned_graph *g = NULL;

        snprintf(text, sizeof text, "graph t\ninput x f32 [4]\ny = nonsensical(x) %s\noutput y\n",
                 table[i].params);
        if (table[i].says == NULL)
            assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, strlen(text), &g));
        else if (mpl_text_read_memory(ctx, "test", text, strlen(text), &g) != MPL_EINPUT ||
                 strstr(ctx->message, table[i].says) == NULL)
            fail_msg("'%s': %s", table[i].params, ctx->message);
    }
}

/* ---- gradients ---- */

static double loss_of(mpl_ctx *ctx, interpreter *it)
{
    assert_ok(ctx, interpret(it));
    return *(double *)it->data[it->g->output[0]];
}

static void fill_all(interpreter *it, uint64_t seed)
{
    const mpl_graph *g = it->g;

    for (mpl_value v = 0; v < g->n_values; v++)
        for (uint64_t i = 0; g->value_op[v] == MPL_NONE && g->value_data[v] == NULL &&
                             g->value_type[v] == MPL_TYPE_f64 && i < g->value_bytes[v] / 8;
             i++)
            ((double *)it->data[v])[i] = 0.5 + draw_share(&seed);
}

/* Each element of each weight's gradient against the difference of two losses. */
static void check_differences(mpl_ctx *ctx, const mpl_graph *g)
{
    const double h = 1e-5;
    interpreter it = interpret_begin(ctx, g), back = interpret_begin(ctx, g);
    uint32_t n_weights = 0, n_checked = 0;

    fill_all(&it, 1);
    fill_all(&back, 1);
    loss_of(ctx, &back);
    for (mpl_value w = 0; w < g->n_values; w++) {
        if (g->value_role[w] != MPL_WEIGHT || g->value_data[w] != NULL)
            continue;
        n_weights++;
        for (uint64_t i = 0; i < g->value_bytes[w] / 8; i++, n_checked++) {
            double *x = (double *)it.data[w] + i, whole = *x, up, down;
            double got = ((double *)back.data[g->output[n_weights]])[i];

            *x = whole + h;
            up = loss_of(ctx, &it);
            *x = whole - h;
            down = loss_of(ctx, &it);
            *x = whole;
            if (!(fabs(got - (up - down) / (2 * h)) <= 1e-7 * (1 + fabs(got))))
                fail_msg("%s[%" PRIu64 "] is %.10g, by differences %.10g", g->value_name[w], i, got,
                         (up - down) / (2 * h));
        }
    }
    assert_true(n_checked > 0);
    interpret_end(&it);
    interpret_end(&back);
}

TEST(gradients)
{
    static const char *const texts[] = {
        "graph t\nweight w f64 [3,5]\nz = tanh(w)\ny = delay(z) taps=2 gain=0.7\noutput y\n",
        "graph t\nweight w f64 [5]\na = delay(w)\nb = delay(a) taps=3\ny = mul(a, w)\n"
        "z = add(y, b)\noutput z\n",
        "graph t\nweight a f64 [4]\nweight b f64 [4]\ny = ratio(a, b)\noutput y\n",
        "graph t\nweight a f64 [4]\ninput b f64 [4]\ny = ratio(a, b)\noutput y\n",
        "graph t\ninput a f64 [4]\nweight b f64 [4]\ny = ratio(a, b)\noutput y\n",
        "graph t\nweight a f64 [4]\nb = exp(a)\nc = ratio(b, a)\ny = ratio(c, c)\nz = add(y, c)\n"
        "output z\n",
    };
    static const struct {
        const char *line, *says;
    } refused[] = {
        {"y = delay_array(w) shape=[4]", "operator delay_array of yours has no gradient"},
        {"y = misshapen(w)", "output 0 of misshapen_grad, a gradient, has another type or other"},
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mpl_autodiff_options options = {.frozen = i % 2 == 1};
        owned_graph *g = read_text(ctx, texts[i]), *t = NULL;

        assert_ok(ctx, mpl_autodiff(ctx, g, &options, &t));
        check_differences(ctx, t);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char text[200];
        owned_graph *g, *t = NULL;

        snprintf(text, sizeof text, "graph t\nweight w f32 [4]\n%s\noutput y\n", refused[i].line);
        g = read_text(ctx, text);
        assert_int_equal(mpl_autodiff(ctx, g, &(mpl_autodiff_options){0}, &t), MPL_EINPUT);
        assert_non_null(strstr(ctx->message, refused[i].says));
    }
}

/* ---- planned and executed ---- */

static const char chain[] = "graph chain\ninput x f32 [64,256]\na = tanh(x)\n"
                            "b = delay(a) taps=5 gain=0.5\nc = delay(b) taps=3\n"
                            "d = delay_array(c, c, b) shape=[64,256]\ne = delay(d) taps=0\n"
                            "output e\n";

static int64_t planned(const char *text)
{
    const char *at = strstr(text, "\"planned_bytes\":");

    assert_non_null(at);
    return strtoll(at + strlen("\"planned_bytes\":"), NULL, 10);
}

/* In place the chain needs less, and its outputs are those of a run that shares nothing, bit for
 * bit; several workers agree too. */
TEST(in_place)
{
    static const char *const how[] = {
        "--backend ref --checked",           "--backend cpu --checked",
        "--backend cpu --optimise all",      "--backend cpu --workers 2 --threads 2",
        "--backend ref --planner nnc_arena", "--backend ref --workspaces plan"};

    folder_put_text("chain.graph", chain);
    for (size_t i = 0; i < sizeof how / sizeof *how; i++)
        if (run("run @/chain.graph --operators %s --json %s", delay_so, how[i]) != 0)
            fail_msg("%s: %s", how[i], err);
    folder_put_text("line.graph", "graph line\ninput x f32 [64,256]\na = tanh(x)\n"
                                  "b = delay(a) taps=5\nc = delay(b) taps=3\nd = tanh(c)\n"
                                  "output d\n");
    assert_int_equal(run("plan @/line.graph --operators %s --json", delay_so), 0);
    assert_int_equal(planned(out), 65536);
    assert_int_equal(run("plan @/line.graph --operators %s --json --in-place off", delay_so), 0);
    assert_int_equal(planned(out), 2 * 65536);
    assert_int_equal(run("plan @/chain.graph --operators %s --backend ref -o @/p.json", delay_so),
                     0);
    assert_int_equal(
        run("run @/chain.graph --operators %s --plan @/p.json --backend ref", delay_so), 0);
    assert_int_equal(run("verify @/chain.graph @/p.json --operators %s", delay_so), 0);
    assert_int_equal(run("verify @/chain.graph @/p.json"), 2);
    assert_non_null(strstr(err, "yours come by --operators so:FILE"));
    for (size_t i = 0; i < 2; i++) /* a loop that reads what it has overwritten is found out */
        for (size_t k = 0; k < 2; k++) {
            folder_put_text("sums.graph",
                            i == 0 ? "graph s\ninput x f32 [64]\na = tanh(x)\nb = careless(a)\n"
                                     "c = exp(b)\noutput c\n"
                                   : "graph s\ninput x f32 [64]\na = tanh(x)\nb = careful(a)\n"
                                     "c = exp(b)\noutput c\n");
            assert_int_equal(
                run("run @/sums.graph --operators %s --backend %s", bad, k == 0 ? "ref" : "cpu"),
                i == 0 ? 1 : 0);
        }
}

TEST(every_command)
{
    static const char *const commands[] = {
        "show @/chain.graph --operators %s",
        "show @/chain.graph --live --operators %s",
        "explain @/chain.graph --operators %s",
        "least @/chain.graph --operators %s",
        "export @/chain.graph --format graph -o @/again.graph --operators %s",
        "plot @/chain.graph -o @/p.svg --operators %s",
        "eager @/chain.graph --operators %s",
        "run @/again.graph --operators %s --backend ref",
        "list operators --operators %s",
        "replay @/chain.graph --allocator all --operators %s"};

    folder_put_text("chain.graph", chain);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char command[500];

        snprintf(command, sizeof command, commands[i], delay_so);
        if (run("%s", command) != 0)
            fail_msg("%s: %s", command, err);
        if (i == 1)
            assert_non_null(strstr(out, "(delay)"));
        if (strncmp(command, "list", 4) == 0)
            assert_non_null(strstr(out, "delay_array    yours; 1 to 64 inputs"));
    }
}

/* A node of its domain and type, there and back. */
TEST(onnx)
{
    folder_put_text("chain.graph", chain);
    assert_int_equal(run("export @/chain.graph --format onnx -o @/c.onnx --operators %s", delay_so),
                     0);
    assert_int_equal(run("export @/c.onnx --format graph -o @/c.graph --operators %s", delay_so),
                     0);
    folder_read("c.graph", out, sizeof out);
    assert_non_null(strstr(out, "b = delay(a) taps=5 gain=0.5 : f32 [64,256]"));
    assert_non_null(strstr(out, "d = delay_array(c, c, b) shape=[64,256] :"));
    assert_int_equal(run("run @/c.onnx --operators %s --backend ref", delay_so), 0);
    assert_int_equal(run("plan @/c.onnx"), 2);
    assert_non_null(strstr(err, "Delay of owl"));
    folder_put_text("g.graph", "graph g\ninput x f32 [4]\ny = delay_grad(x)\noutput y\n");
    assert_int_equal(run("export @/g.graph --format onnx -o @/g.onnx --operators %s", delay_so), 2);
    check_error("an operator without a name in ONNX");
}

/* ---- what is wrong ---- */

static const struct {
    const char *operators, *says;
} libraries[] = {
    {"so:%/tests/plugin/without_entry.so", "no memplan_operators_main"},
    {"so:%/planners/example/first_fit_plugin.so", "no memplan_operators_main"},
    {"so:%/tests/plugin/at_load.so", "loading it ends the process, by signal 6"},
    {"so:@/text.so", "text.so"},
    {"so:@/nowhere.so", "No such file"},
    {"so:@", "memplan-"},
    {"so:", "is not so:FILE"},
    {"delay.so", "is not so:FILE"},
    {"exec:true", "is not so:FILE"},
};

static const struct {
    const char *line, *says;
} wrong[] = {
    {"y = nonsensical(x) do=refuse", "the shape rule of nonsensical: not on?a Sunday?[31m"},
    {"y = nonsensical(x) do=silent", "refused without a reason"},
    {"y = nonsensical(x) do=long", "xxxx"},
    {"y = nonsensical(x) do=no_type", "no element type"},
    {"y = nonsensical(x) do=type", "no element type"},
    {"y = nonsensical(x) do=small", "no element type"},
    {"y = nonsensical(x) do=rank", "9 dims; 8 are the most"},
    {"y = nonsensical(x) do=negative", "a dim below 0"},
    {"y = nonsensical(x) do=huge", "more than 2^59"},
    {"y = nonsensical(x) do=nan size=nan", "a dim below 0"},
    {"y = nonsensical(x) do=moody", "another form each time"},
    {"y = nonsensical(x) do=crash", "operator 'nonsensical' crashed by signal 11"},
    {"y = nonsensical(x) run=crash", "operator 'nonsensical' crashed by signal 8"},
    {"y = nonsensical(x) run=refuse", "the loop of nonsensical: no data today"},
    {"y = nonsensical(x, x)", "has 2 inputs and 1 outputs; it takes 1 to 1 and 1 to 1"},
    {"y = nonsensical(_)", "input 0 of nonsensical is missing"},
    {"y = thirsty(x)", "more than 2^63 bytes of workspace"},
    {"y = unheard(x)", "'unheard' is no operator"},
    {"y = user(x) opcode=unheard", "no operator 'unheard' is loaded"},
    {"y = user(x)", "no operator 'user' is loaded"},
};

TEST(what_is_wrong)
{
    folder_put_text("text.so", "no library\n");
    folder_put_text("chain.graph", chain);
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        char name[600] = "so:";
        const char *text = libraries[i].operators;

        if (strncmp(text, "so:%", 4) == 0)
            snprintf(name, sizeof name, "so:%s%s", plugins, text + 4);
        else
            snprintf(name, sizeof name, "%s", text);
        assert_int_equal(run("plan @/chain.graph --operators %s", name), 2);
        check_error(text);
        if (strstr(err, libraries[i].says) == NULL)
            fail_msg("%s: %s", text, err);
    }
    assert_int_equal(run("plan @/chain.graph --operators %s --operators %s", delay_so, delay_so),
                     2);
    assert_non_null(strstr(err, "operator 'delay' is there already"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[200];

        snprintf(text, sizeof text, "graph t\ninput x f32 [16]\n%s\noutput y\n", wrong[i].line);
        folder_put_text("w.graph", text);
        if (run("run @/w.graph --backend ref --operators %s", bad) != 2 ||
            strstr(err, wrong[i].says) == NULL)
            fail_msg("%s: %s", wrong[i].line, err);
        check_error(wrong[i].line);
    }
}

static int nothing(const memplan_operation *op)
{
    return (int)op->n_in;
}

/* The table refuses what it could not call; then none of the library's operators is there. */
TEST(what_the_table_refuses)
{
    enum { SIZE = sizeof(memplan_operator) };
    static const struct {
        const char *name;
        uint32_t size, min_in, max_in, min_out;
        bool runs;
        const char *attributes, *onnx, *gradient, *reads;
        const char *says; /* NULL: taken */
    } table[] = {
        {"fine", 8, 0, 1, 1, true, NULL, NULL, NULL, NULL, "no size or no name"},
        {NULL, SIZE, 0, 1, 1, true, NULL, NULL, NULL, NULL, "no size or no name"},
        {"Fine", SIZE, 0, 1, 1, true, NULL, NULL, NULL, NULL, "no size or no name"},
        {"a_name_of_more_than_31_characters", SIZE, 0, 1, 1, true, NULL, NULL, NULL, NULL,
         "no size or no name"},
        {"relu", SIZE, 0, 1, 1, true, NULL, NULL, NULL, NULL, "memplan has one of that name"},
        {"delay", SIZE, 0, 1, 1, true, NULL, NULL, NULL, NULL, "is there already"},
        {"other", SIZE, 0, 1, 1, true, NULL, NULL, NULL, NULL, "stands twice"},
        {"fine", SIZE, 0, 1, 1, false, NULL, NULL, NULL, NULL, "needs shape() and run()"},
        {"fine", SIZE, 2, 1, 1, true, NULL, NULL, NULL, NULL, "no ranges"},
        {"fine", SIZE, 0, 65, 1, true, NULL, NULL, NULL, NULL, "no ranges"},
        {"fine", SIZE, 0, 1, 0, true, NULL, NULL, NULL, NULL, "no ranges"},
        {"fine", SIZE, 0, 1, 3, true, NULL, NULL, NULL, NULL, "no ranges"},
        {"fine", SIZE, 0, 1, 1, true, "taps", NULL, NULL, NULL, "NAME:KIND"},
        {"fine", SIZE, 0, 1, 1, true, "taps:float", NULL, NULL, NULL, "NAME:KIND"},
        {"fine", SIZE, 0, 1, 1, true, "taps:", NULL, NULL, NULL, "NAME:KIND"},
        {"fine", SIZE, 0, 1, 1, true, NULL, "Fine", NULL, NULL, "DOMAIN:TYPE"},
        {"fine", SIZE, 0, 1, 1, true, NULL, ":Fine", NULL, NULL, "DOMAIN:TYPE"},
        {"fine", SIZE, 0, 1, 1, true, NULL, "ai.onnx:Relu", NULL, NULL, "DOMAIN:TYPE"},
        {"fine", SIZE, 0, 1, 1, true, NULL, NULL, "gone", "dy", "of the name of its gradient"},
        {"fine", SIZE, 0, 1, 1, true, NULL, NULL, "other", NULL, "gradient_reads"},
        {"fine", SIZE, 0, 1, 1, true, NULL, NULL, "other", "dy z", "gradient_reads"},
        {"fine", SIZE, 0, 1, 1, true, NULL, NULL, "other", " ", "gradient_reads"},
        {"fine", SIZE, 0, 1, 1, true, "taps:int k:reals", "f:Fine", "other", "y dy", NULL},
    };
    static const memplan_operator other = {.size = SIZE,
                                           .name = "other",
                                           .min_out = 1,
                                           .max_out = 1,
                                           .shape = nothing,
                                           .run = nothing};
    static memplan_operator op; /* the table keeps the last one */
    const memplan_operator *list[] = {NULL, NULL, NULL};
    memplan_operators library = {.version = 7, .size = sizeof library, .list = list};

    assert_int_equal(mpl_user_add(ctx, &library), MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "made for version 7"));
    library.version = MEMPLAN_OPERATORS_VERSION;
    assert_int_equal(mpl_user_add(ctx, &library), MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "lists no operator"));
    list[0] = &other, list[1] = &op;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        op = (memplan_operator){.size = table[i].size,
                                .name = table[i].name,
                                .onnx = table[i].onnx,
                                .min_in = table[i].min_in,
                                .max_in = table[i].max_in,
                                .min_out = table[i].min_out,
                                .max_out = 1,
                                .attributes = table[i].attributes,
                                .shape = nothing,
                                .run = table[i].runs ? nothing : NULL,
                                .gradient = table[i].gradient,
                                .gradient_reads = table[i].reads};
        if (table[i].says == NULL) {
            assert_ok(ctx, mpl_user_add(ctx, &library));
            assert_ptr_equal(mpl_user_find_onnx("f", "Fine"), &op);
        } else if (mpl_user_add(ctx, &library) != MPL_EINPUT ||
                   strstr(ctx->message, table[i].says) == NULL) {
            fail_msg("row %zu: %s", i, ctx->message);
        } else {
            assert_null(mpl_user_find("other"));
        }
    }
}

static int begin(void)
{
    mpl_ctx ctx = mpl_ctx_default();
    const char *names[] = {delay_so, bad};

    if (program_begin("user") != 0)
        return 1;
    snprintf(plugins, sizeof plugins, "%.*s", (int)(strrchr(program, '/') - program), program);
    snprintf(delay_so, sizeof delay_so, "so:%s/graphs/ops/user/example/delay.so", plugins);
    snprintf(bad, sizeof bad, "so:%s/tests/plugin/bad_operators.so", plugins);
    if (mpl_operators_load(&ctx, &(mpl_strings){.n = 2, .item = names}) == MPL_OK)
        return 0;
    fprintf(stderr, "%s\n", ctx.message);
    return 1;
}

TESTS_WITHIN(begin, folder_remove, by_hand, attributes, gradients, in_place, every_command, onnx,
             what_is_wrong, what_the_table_refuses)
