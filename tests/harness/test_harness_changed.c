/* Incremental evaluation: which operations run again and which values are kept, by hand; second
 * results against full evaluations, of random graphs with loops and branches, too; the command
 * line; refusals; failing allocations. */
#include "tests/support/interpret.h"
#include "tests/support/random_control.h"

#include "graphs/passes/incremental.h"

#include <sys/wait.h>

#define TWO "input a f32 [4,8]\ninput b f32 [4,8]\n"

/* changed: names separated by blanks; kept: the outputs after those of both evaluations. */
static const struct {
    const char *graph, *changed, *outputs;
    uint32_t again;
    uint64_t kept_bytes;
} rows[] = {
    /* x does not depend on b and is read again */
    {"graph g\n" TWO "x = relu(a)\ny = mul(x, b)\nz = add(y, x)\noutput z\n", "b", "z z.again x", 2,
     128},
    /* the other way round only inputs are left, which stay anyway */
    {"graph g\n" TWO "x = relu(a)\ny = mul(x, b)\nz = add(y, x)\noutput z\n", "a", "z z.again", 3,
     0},
    {"graph g\n" TWO "x = relu(a)\ny = mul(x, b)\noutput y\n", "a b", "y y.again", 2, 0},
    /* an unchanged output is not computed twice, and is already kept */
    {"graph g\n" TWO "x = relu(a)\ny = mul(x, b)\noutput x\noutput y\n", "b", "x y y.again", 1,
     128},
    /* for a view, its root is kept; if both are read, both */
    {"graph g\n" TWO "x = relu(a)\nv = reshape(x) shape=[4,8]\nw = exp(a)\ny = mul(v, b)\nz = "
     "add(y, w)\noutput z\n",
     "b", "z z.again x w", 2, 256},
    /* a value read only by the first evaluation is not kept */
    {"graph g\n" TWO "x = relu(a)\nw = exp(x)\ny = mul(w, b)\noutput y\n", "b", "y y.again w", 1,
     128},
};

static uint32_t split(char *text, const char **word)
{
    uint32_t n = 0;
    char *save = NULL;

    for (char *at = strtok_r(text, " ", &save); at != NULL; at = strtok_r(NULL, " ", &save))
        word[n++] = at;
    return n;
}

static mpl_status twice(mpl_ctx *ctx, const char *changed, mpl_graph **g,
                        mpl_incremental_facts *facts)
{
    char text[200];
    const char *name[8];

    snprintf(text, sizeof text, "%s", changed);
    return mpl_graph_incremental(ctx, g, split(text, name), name, facts);
}

TEST(what_is_kept)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        owned_graph *g = text_graph(ctx, rows[i].graph);
        mpl_incremental_facts facts;
        uint32_t n_ops = g->n_ops, n_again = 0;
        char text[200];
        const char *name[8];

        assert_ok(ctx, twice(ctx, rows[i].changed, &g, &facts));
        assert_true(mpl_graph_ok(g));
        assert_int_equal(facts.n_ops, n_ops);
        assert_int_equal(facts.n_again, rows[i].again);
        assert_int_equal(g->n_ops, n_ops + rows[i].again);
        for (mpl_op op = 0; op < g->n_ops; op++)
            n_again += strstr(g->op_name[op], MPL_AGAIN) != NULL;
        assert_int_equal(n_again, rows[i].again);
        assert_int_equal(facts.kept_bytes, rows[i].kept_bytes);
        snprintf(text, sizeof text, "%s", rows[i].outputs);
        assert_int_equal(g->n_outputs, split(text, name));
        for (uint32_t k = 0; k < g->n_outputs; k++)
            assert_string_equal(g->value_name[g->output[k]], name[k]);
    }
}

/* Values depend on the name only, so that a graph and its second evaluation get the same; labels 0
 * and 1. */
static void fill(interpreter *it, mpl_value v, const char *name)
{
    uint64_t seed = mpl_hash(MPL_HASH_SEED, name, strlen(name));

    for (uint64_t i = 0;
         it->g->value_type[v] == MPL_TYPE_i64 && i < it->g->value_bytes[v] / sizeof(int64_t); i++)
        ((int64_t *)it->data[v])[i] = (int64_t)(mpl_hash(seed, &i, sizeof i) % 2);
    if (it->g->value_type[v] == MPL_TYPE_i64)
        return;

    for (uint64_t i = 0; i < it->g->value_bytes[v] / sizeof(float); i++) {
        uint64_t x = mpl_hash(seed, &i, sizeof i);

        ((float *)it->data[v])[i] = (float)(x % 2001) / 1000.0f - 1.0f;
    }
}

static interpreter run(mpl_ctx *ctx, const mpl_graph *g, const char *changed, bool second)
{
    interpreter it = interpret_begin(ctx, g);
    char name[100];

    for (mpl_value v = 0; v < g->n_values; v++)
        if ((g->value_role[v] == MPL_INPUT || g->value_role[v] == MPL_WEIGHT) &&
            g->value_data[v] == NULL) {
            bool other = second && strcmp(g->value_name[v], changed) == 0;

            snprintf(name, sizeof name, "%s%s", g->value_name[v], other ? MPL_CHANGED : "");
            fill(&it, v, name);
        }
    assert_ok(ctx, interpret(&it));
    return it;
}

TEST(second_results)
{
    static const char *const cases[][3] =
        ROW({"lstm:steps=5,hidden=4,batch=2", "step2.x", "step4.layer1.h"},
            {"lstm:steps=5,hidden=4,batch=2", "layer0.h", "step4.layer1.h"},
            {"gru:steps=4,hidden=3,batch=2,layers=3", "step3.x", "step3.layer2.h"});

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        owned_graph *whole = NULL, *g = NULL;
        interpreter once, again;
        mpl_value first, second, want;
        char name[100];

        assert_ok(ctx, mpl_zoo_build(ctx, cases[i][0], &whole));
        assert_ok(ctx, mpl_zoo_build(ctx, cases[i][0], &g));
        assert_ok(ctx, twice(ctx, cases[i][1], &g, NULL));
        want = whole->output[0];
        assert_string_equal(whole->value_name[want], cases[i][2]);
        snprintf(name, sizeof name, "%s" MPL_AGAIN, cases[i][2]);
        first = mpl_graph_find(g, cases[i][2]);
        second = mpl_graph_find(g, name);
        assert_true(second != MPL_NONE);
        again = run(ctx, g, "", false);
        once = run(ctx, whole, cases[i][1], true);
        assert_memory_equal(again.data[second], once.data[want], whole->value_bytes[want]);
        assert_memory_not_equal(again.data[first], once.data[want], whole->value_bytes[want]);
        interpret_end(&once);
        once = run(ctx, whole, cases[i][1], false);
        assert_memory_equal(again.data[first], once.data[want], whole->value_bytes[want]);
        interpret_end(&once);
        interpret_end(&again);
    }
}

/* Updates, and everything else, leave the same as one evaluation with the new contents; only the
 * second evaluation updates. */
TEST(updates_happen_once)
{
    static const char *const cases[][2] = ROW(
        {"mnist_conv:image=8,batch=2,mode=train,update=adam", "labels"},
        {"mnist_conv:image=8,batch=2,mode=train,update=sgd", "data"},
        {"mlp:batch=3,layers=2,input=5,hidden=4,classes=3,mode=train,update=momentum", "labels"},
        {"randwire:regime=cell,batch=2,image=32,channels=2,nodes=5,mode=train", "labels"},
        {"randwire:regime=cell,batch=2,image=32,channels=2,nodes=5,mode=train", "data"},
        {"randwire:regime=cell,batch=2,image=32,channels=2,nodes=5,mode=train,update=adagrad",
         "data"});

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        owned_graph *whole = NULL, *g = NULL;
        interpreter once, again, before;
        uint32_t n_changed = 0;

        assert_ok(ctx, mpl_zoo_build(ctx, cases[i][0], &whole));
        assert_ok(ctx, mpl_zoo_build(ctx, cases[i][0], &g));
        assert_ok(ctx, twice(ctx, cases[i][1], &g, NULL));
        again = run(ctx, g, "", false);
        once = run(ctx, whole, cases[i][1], true);
        before = run(ctx, whole, cases[i][1], false);
        for (uint32_t k = 0; k < whole->n_outputs; k++) {
            mpl_value want = whole->output[k], got,
                      first = mpl_graph_find(g, whole->value_name[want]);
            char name[300];

            snprintf(name, sizeof name, "%.250s" MPL_AGAIN, whole->value_name[want]);
            got = mpl_graph_find(g, name);
            n_changed += got != MPL_NONE;
            if (mpl_n_updates((mpl_op_kind)whole->op_kind[whole->value_op[want]]) > 0 &&
                got != MPL_NONE)
                assert_int_equal(first, MPL_NONE);
            if (first != MPL_NONE)
                assert_memory_equal(again.data[first], before.data[want], whole->value_bytes[want]);
            got = got != MPL_NONE ? got : first;
            if (memcmp(again.data[got], once.data[want], whole->value_bytes[want]) != 0)
                fail_msg("%s, %s: '%s' differs", cases[i][0], cases[i][1], whole->value_name[want]);
        }
        assert_true(n_changed > 0);
        interpret_end(&once);
        interpret_end(&before);
        interpret_end(&again);
    }
}

/* Whether some way leads from a changed input to the operation, its blocks and captures included:
 * by fixed point over all operations, not in order. */
static void reach(const mpl_graph *g, bool *value, bool *op_again)
{
    for (bool more = true; more;) {
        more = false;
        for (mpl_op op = 0; op < g->n_ops; op++) {
            bool again = op_again[op];

            for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
                again = again || (g->op_in[i] != MPL_NONE && value[g->op_in[i]]);
            for (uint32_t i = g->op_body_begin[op]; i < g->op_body_begin[op + 1]; i++) {
                uint32_t b = g->op_body[i];

                for (mpl_op o = 0; o < g->n_ops; o++)
                    again = again || (g->op_block[o] == b && op_again[o]);
                for (uint32_t k = 0; k < g->block_n_results[b]; k++) {
                    mpl_value v = g->block_result[g->block_result_begin[b] + k];

                    again = again || (v != MPL_NONE && value[v]);
                }
                for (mpl_op o = 0; o < g->n_ops && again; o++)
                    if (g->op_block[o] == b && !op_again[o])
                        op_again[o] = more = true;
            }
            for (uint32_t o = g->op_out_begin[op]; o < g->op_out_begin[op + 1] && again; o++)
                if (g->op_out[o] != MPL_NONE && g->op_block[op] == 0)
                    value[g->op_out[o]] = true;
            more = more || (again && !op_again[op]);
            op_again[op] = again;
        }
    }
}

static uint32_t loops_again, loops_kept;

/* One input of a random graph changes. Both evaluations give what whole ones give, and what runs
 * again is what some way leads to. */
static void check_random(mpl_ctx *ctx, uint64_t seed)
{
    owned_graph *whole = random_control(ctx, seed), *g = random_control(ctx, seed);
    uint32_t changed = (uint32_t)(seed % whole->n_inputs), n_again = 0;
    const char *name = whole->value_name[whole->input[changed]];
    void *in[64] = {NULL}, *in_whole[64] = {NULL}, *out[128] = {NULL}, *want[2][64] = {{NULL}};
    bool *value = calloc(whole->n_values + 1, 1), *again = calloc(whole->n_ops + 1, 1);
    mpl_incremental_facts facts;

    assert_ok(ctx, mpl_graph_incremental(ctx, &g, 1, &name, &facts));
    assert_true(mpl_graph_ok(g) && g->n_inputs == whole->n_inputs + 1 && g->n_inputs <= 64 &&
                g->n_outputs <= 128 && whole->n_outputs <= 64);
    value[whole->input[changed]] = true;
    reach(whole, value, again);
    for (mpl_op op = 0; op < whole->n_ops; op++) {
        n_again += again[op];
        if (whole->op_block[op] == 0 && whole->op_body_begin[op] < whole->op_body_begin[op + 1])
            *(again[op] ? &loops_again : &loops_kept) += 1;
    }
    assert_int_equal(facts.n_again, n_again);
    assert_int_equal(g->n_ops, whole->n_ops + n_again);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        bool second = i == whole->n_inputs;

        in[i] = calloc(g->value_bytes[g->input[i]] + 8, 1);
        random_control_input(whole, second ? changed : i, seed * 2 + second, in[i]);
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        out[i] = calloc(g->value_bytes[g->output[i]] + 8, 1);
    direct_run(ctx, g, (const void *const *)in, out);
    for (int k = 0; k < 2; k++) {
        memcpy(in_whole, in, sizeof in_whole);
        if (k == 1)
            in_whole[changed] = in[whole->n_inputs];
        for (uint32_t i = 0; i < whole->n_outputs; i++)
            want[k][i] = calloc(whole->value_bytes[whole->output[i]] + 8, 1);
        direct_run(ctx, whole, (const void *const *)in_whole, want[k]);
    }
    for (uint32_t i = 0; i < whole->n_outputs; i++) {
        char text[300];
        uint32_t second = i;

        snprintf(text, sizeof text, "%.250s" MPL_AGAIN, whole->value_name[whole->output[i]]);
        if (whole->output[i] == whole->input[changed])
            snprintf(text, sizeof text, "%.250s" MPL_CHANGED, name);
        for (uint32_t k = 0; k < g->n_outputs; k++)
            second = strcmp(g->value_name[g->output[k]], text) == 0 ? k : second;
        if (memcmp(out[i], want[0][i], whole->value_bytes[whole->output[i]]) != 0 ||
            memcmp(out[second], want[1][i], whole->value_bytes[whole->output[i]]) != 0)
            fail_msg("seed %" PRIu64 ", input '%s': output %" PRIu32 " differs", seed, name, i);
    }
    for (uint32_t i = 0; i < 128; i++) {
        free(out[i]);
        if (i < 64) {
            free(in[i]);
            free(want[0][i]);
            free(want[1][i]);
        }
    }
    free(value);
    free(again);
}

TEST(random_loops_and_branches)
{
    uint64_t n = number_asked("MPL_CHANGED_GRAPHS", 400);

    for (uint64_t seed = 1; seed <= n; seed++)
        check_random(ctx, seed);
    print_message("%u loops and branches again, %u kept\n", loops_again, loops_kept);
    assert_true(loops_again > n / 10 && loops_kept > n / 20);
}

TEST(wrong_ones_are_refused)
{
    static const char *const cases[][3] =
        ROW({"mlp", "nobody", "no input 'nobody'"}, {"mlp", "fc.w", "no input 'fc.w'"},
            {"mlp", "data data", "twice"},
            {"graph g\n" TWO "weight w f32 [4,8]\nx = mul(a, w)\nv = sgd_update(x, w)\ny = "
             "relu(v)\noutput y\noutput v\n",
             "a", "updated once"});

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        owned_graph *g = NULL;

        if (strncmp(cases[i][0], "graph", 5) == 0)
            g = text_graph(ctx, cases[i][0]);
        else
            assert_ok(ctx, mpl_zoo_build(ctx, cases[i][0], &g));
        assert_status(ctx, twice(ctx, cases[i][1], &g, NULL), MPL_EINPUT);
        assert_non_null(strstr(ctx->message, cases[i][2]));
    }
}

TEST(out_of_memory)
{
    mpl_status st = MPL_EMEM;

    for (int64_t k = 0; st == MPL_EMEM; k++) {
        owned_graph *g = zoo_graph(
            ctx, "randwire:regime=cell,image=32,channels=1,nodes=2,mode=train,update=sgd");

        ctx->fail_after = ctx->n_allocs + k;
        st = twice(ctx, "labels", &g, NULL);
    }
    assert_int_equal(st, MPL_OK);
}

static int command(const char *arguments, char *text, size_t size)
{
    const char *program = getenv("MEMPLAN");
    char line[600];
    size_t n = 0;
    FILE *f;

    snprintf(line, sizeof line, "%s %s 2>&1", program != NULL ? program : "build/memplan",
             arguments);
    f = popen(line, "r");
    assert_non_null(f);
    while (n + 1 < size && fgets(text + n, (int)(size - n), f) != NULL)
        n += strlen(text + n);
    text[n] = '\0';
    return WEXITSTATUS(pclose(f));
}

TEST(command_line)
{
    static const char *const runs[] =
        ROW("--backend ref --checked", "--backend cpu", "--backend cpu --pin weights,inputs",
            "--backend cpu --pin none", "--backend ref --safety parallel --checked",
            "--backend cpu --views off --in-place off");
    char text[4000], arguments[300];

    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        snprintf(arguments, sizeof arguments,
                 "run lstm:steps=6,hidden=8,batch=2 --changed step4.x --planner greedy_size "
                 "--repeat 1 %s",
                 runs[i]);
        if (command(arguments, text, sizeof text) != 0 ||
            strstr(text, "equal to a whole evaluation") == NULL)
            fail_msg("%s: %s", arguments, text);
    }
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        snprintf(arguments, sizeof arguments,
                 "run lstm:form=while,layers=2,steps=4,hidden=8,batch=2,mode=train "
                 "--changed labels --planner greedy_size --repeat 1 %s",
                 runs[i]);
        if (command(arguments, text, sizeof text) != 0 ||
            strstr(text, "equal to a whole evaluation") == NULL)
            fail_msg("%s: %s", arguments, text);
    }
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        snprintf(
            arguments, sizeof arguments,
            "run randwire:regime=cell,batch=2,image=32,channels=4,nodes=5,mode=train,update=adam "
            "--changed data --planner greedy_size --repeat 2 %s",
            runs[i]);
        if (command(arguments, text, sizeof text) != 0 ||
            strstr(text, "equal to a whole evaluation") == NULL)
            fail_msg("%s: %s", arguments, text);
    }
    assert_int_equal(command("run mnist_conv:image=8,batch=2,mode=train --changed labels --planner "
                             "owl --backend cpu",
                             text, sizeof text),
                     0);
    assert_int_equal(command("plan mlp --changed nobody", text, sizeof text), 2);
    assert_int_equal(command("plan synthetic:n=10 --changed x", text, sizeof text), 2);
}

TESTS(what_is_kept, second_results, updates_happen_once, random_loops_and_branches,
      wrong_ones_are_refused, out_of_memory, command_line)
