/* test_harness_cli.c -- the program as its users meet it: exit statuses, one-line errors, files,
 * benches that are killed. */
#include "tests/support/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "graphs/core/file.h"
#include "harness/cli/command.h"
#include "harness/rows/rows.h"

#define LIGHT   MPL_SHARED "/onnx-light/light_resnet50.onnx"
#define TRAINED "mlp:layers=4,batch=16,hidden=32,mode=train"
#define SMALL   "mlp:layers=1,input=4,hidden=4,classes=2"

static const char *program;
static char out[1 << 17], err[1 << 14]; /* of the last run */

/* Exit status of `memplan ARGUMENTS`, where @ stands for the test's folder; a signal is 128 + its
 * number. */
static int run(const char *arguments)
{
    char command[4096];
    size_t n = (size_t)snprintf(command, sizeof command, ">%s/out 2>%s/err </dev/null %s ", folder,
                                folder, program);
    int how;

    for (const char *a = arguments; *a != '\0' && n < sizeof command - 200; a++)
        n += (size_t)snprintf(command + n, sizeof command - n, *a == '@' ? "%s" : "%.1s",
                              *a == '@' ? folder : a);
    how = system(command);
    folder_read("out", out, sizeof out);
    folder_read("err", err, sizeof err);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

/* The same with a variable of the environment. */
static int run_with(const char *variable, const char *value, const char *arguments)
{
    int status;

    setenv(variable, value, 1);
    status = run(arguments);
    unsetenv(variable);
    return status;
}

static int begin(void)
{
    program = getenv("MEMPLAN") != NULL ? getenv("MEMPLAN") : "build/debug/memplan";
    setenv("OMP_WAIT_POLICY", "passive", 0); /* tests share their cores */
    return folder_make("cli") != 0;
}

/* One line, and it says whose it is. */
static void check_error(const char *arguments)
{
    if (strncmp(err, "memplan: ", 9) != 0 || strchr(err, '\n') != err + strlen(err) - 1)
        fail_msg("memplan %s: not one line of error: '%s'", arguments, err);
}

/* ---- wrong input ---- */

static const struct {
    const char *name, *text;
} files[] = {
    {"empty.onnx", ""},
    {"empty.csv", ""},
    {"noise.onnx", "\x08\x07\x12\xff\xff\xff\xff\x0f rest"},
    {"negative.csv", "id,lower,upper,size\na,0,1,-5\n"},
    {"huge.csv", "id,lower,upper,size\na,0,1,99999999999999999999\n"},
    {"sum.csv", "id,lower,upper,size\na,0,1,9223372036854775000\nb,0,1,9223372036854775000\n"},
    {"backwards.csv", "id,lower,upper,size\na,3,2,5\n"},
    {"instant.csv", "id,lower,upper,size\na,3,3,5\n"},
    {"twice.csv", "id,lower,upper,size\na,0,1,5\na,1,2,5\n"},
    {"short.csv", "id,lower,upper,size\na,0,1\n"},
    {"nothing.csv", "id,lower,upper,size\na,0,1,0\n"},
    {"bare.graph", "graph bare\ninput x f32 [4]\ny = relu(x)\noutput y\n"},
    {"good.csv", "id,lower,upper,size\na,0,2,5\nb,1,3,7\n"},
    {"cycle.graph", "graph \"c\"\ninput x f32 [1,4]\na = relu(b) : f32 [1,4]\nb = relu(a) : f32 "
                    "[1,4]\noutput b\n"},
    {"double.graph", "graph \"c\"\ninput x f32 [1,4]\na = relu(x) : f32 [1,4]\na = relu(x) : f32 "
                     "[1,4]\noutput a\n"},
    {"shape.graph", "graph \"c\"\ninput x f32 [1,4]\na = relu(x) : f32 [1,5]\noutput a\n"},
    {"size.graph", "graph \"c\"\ninput x f32 [4294967296,4294967296]\na = relu(x) : f32 "
                   "[4294967296,4294967296]\noutput a\n"},
    {"kind.graph", "graph \"c\"\ninput x f32 [1,4]\na = frobnicate(x) : f32 [1,4]\noutput a\n"},
    {"end.graph", "graph \"c\"\ninput x f32 [1,4]\na = relu(x) : f32 [1,"},
    {"rounds.graph",
     "graph g\ninput x f32 [4]\nblock b\nparam i i64 []\nparam p f32 [4]\nq = tanh(p)\n"
     "yield _, q\ny = while b(_, _, x) carried=1 trips=2147483648\noutput y\n"},
    {"wide.graph", "graph g\ninput x f32 [2,8]\ny = tile(x) repeats=[40000,2000]\noutput y\n"},
    {"claims.graph", "graph g\ninput x f32 [40000,40000]\ny = reduce_sum(x)\noutput y\n"},
    {"cut.json", "{\"schema\": 1, \"kind\": \"plan\", \"buf"},
    {"other.json", "{\"schema\": 1}"},
    {"bad.jsonl", "{\"status\": \"ok\"}\n{\"status\":\n{\"status\": \"ok\"}\n"},
    {"newer.jsonl", "{\"status\": \"ok\", \"schema\": 99}\n"},
    {"kind.jsonl", "{\"status\": \"ok\", \"planned_bytes\": -5}\n"},
    {"bad.suite", "mlp\n--repeat many\n"},
    {"own.suite", "mlp\nmlp --repeat 2\n"},
    {"own_value.suite", "mlp --concat\n"},
    {"own_word.suite", "mlp --concat some\n"},
};

static const struct {
    const char *arguments;
    int status;
    const char *says; /* part of the message; NULL: anything */
} wrong[] = {
    {"", 2, "--help"},
    {"frob", 2, "frob"},
    {"paln mlp", 2, "(is 'plan' meant?)"},
    {"plan", 2, "usage"},
    {"plan a b -p pool", 2, "too many"},
    {"plan mlp --frob", 2, "--frob"},
    {"plan mlp --plnner pool", 2, "(is '--planner' meant?)"},
    {"plan mlp --tolerance 1%", 2, "no option '--tolerance' here, but for check"},
    {"plan mlp -Z", 2, "-Z"},
    {"plan mlp --planner", 2, "value"},
    {"plan mlp --quiet=3 -p pool", 2, "value"},
    {"plan mlp -p nope", 2, "greedy_size"},
    {"plan mlp -p pool:frob=1", 2, "frob"},
    {"plan mlp -p pool:level=7", 2, "level"},
    {"plan mlp -p pool:level", 2, "level"},
    {"plan mlp -p pool:", 2, "level=0|1"},
    {"plan mlp -p pool --device tf32=on", 2, "of which backend"},
    {"run mlp -p pool --backend ref --device tf32=on", 2, "backend ref takes none"},
    {"plan mlp -p pool --pin none,weights", 2, "none, or a list"},
    {"plan mlp:mode=frob -p pool", 2, "none of inference, train"},
    {"plan mlp -p pool --seed -1", 2, "--seed"},
    {"plan mlp -p pool --seed 1x", 2, "1x"},
    {"plan mlp -p pool --capacity 99999999999999999999", 2, "--capacity"},
    {"plan mlp -p pool --capacity 9999999999GiB", 2, "--capacity"},
    {"plan mlp -p pool --time-limit nan", 2, "--time-limit"},
    {"plan mlp -p pool --order frob", 2, "frob"},
    {"plan mlp -p pool --safety frob", 2, "frob"},
    {"plan mlp -p pool --in-place maybe", 2, "maybe"},
    {"plan mlp -p pool --pin weights,frob", 2, "frob"},
    {"plan mlp -p pool --pools weights,inputs", 2, "inputs"},
    {"plan pingpong -p pool --pools weights", 4, "control flow"},
    {"plan mlp -p pool --workspaces plan", 2, "--backend"},
    {"plan mlp -p pool --concat maybe", 2, "one of auto, share, copy"},
    {"plan mlp -p pool --dim N", 2, "NAME=N"},
    {"plan mlp -p pool --dim N=-3", 2, "-3"},
    {"plan mlp -p pool --dim batch=3", 2, "no open dim 'batch'; dims are given to ONNX models"},
    {"plan mlp:batch=0 -p pool", 2, "batch"},
    {"plan mlp:frob=1 -p pool", 2, "frob"},
    {"plan mlp:batch=99999999999999999999 -p pool", 2, "batch"},
    {"plan nope -p pool", 2, "nope"},
    {"plan densenet -p pool", 2, "(is 'densenet121' meant?)"},
    {"plan @/other.json -p pool", 2, "JSON is no graph"},
    {"plan /dev/zero -p pool", 2, "does not end"},
    {"plan @ -p pool", 2, NULL},
    {"plan mlp -p pool --capacity 4000", 1, "4096"},
    {"plan mlp:mode=train --recompute budget:50%", 1, "proved"},
    {"plan mlp:mode=train --recompute sqrt:10%", 3, "no segments"},
    {"plan mlp:mode=train --recompute foo", 2, "sqrt, budget, round"},
    {"plan mlp:mode=train --recompute budget", 2, "needs a budget"},
    {"plan mlp:mode=train --recompute sqrt:120%", 2, "100%"},
    {"plan mlp --recompute sqrt", 2, "no loss"},
    {"plot mlp --tradeoff -o t.html", 2, "FILE.png"},
    {"plot mlp --rows @/x.jsonl -o @/t.svg", 2, "--tradeoff"},
    {"plot mlp --tradeoff --rows @/missing.jsonl -o @/t.svg", 2, "missing.jsonl"},
    {"plan mlp -p none --capacity 5000", 3, "none"},
    {"plan mlp -p pool --safety parallel", 4, "parallel"},
    {"plan @/missing.onnx -p pool", 2, "missing.onnx"},
    {"plan @/empty.onnx -p pool", 2, "empty.onnx"},
    {"plan @/empty.csv -p pool", 2, "empty.csv"},
    {"plan @/noise.onnx -p pool", 2, "noise.onnx"},
    {"plan @/negative.csv -p pool", 2, "negative.csv:2"},
    {"plan @/huge.csv -p pool", 2, "huge.csv:2"},
    {"plan @/sum.csv -p pool", 2, NULL},
    {"plan @/backwards.csv -p pool", 2, "backwards.csv:2"},
    {"plan @/instant.csv -p pool", 2, "instant.csv:2"},
    {"plan @/twice.csv -p pool", 2, "twice.csv:3"},
    {"plan @/short.csv -p pool", 2, "short.csv:2"},
    {"plan @/nothing.csv -p pool", 2, "nothing.csv:2"},
    {"plan @/cycle.graph -p pool", 2, "cycle.graph:3"},
    {"plan @/double.graph -p pool", 2, "double.graph:4"},
    {"plan @/shape.graph -p pool", 2, "shape.graph:3"},
    {"plan @/size.graph -p pool", 2, "size.graph:2"},
    {"plan @/kind.graph -p pool", 2, "frobnicate"},
    {"plan @/end.graph -p pool", 2, "end.graph:3"},
    {"plan mlp -p pool -o @/no/such/plan.json", 2, "plan.json"},
    {"plan mlp -p pool -o /dev/full", 2, "/dev/full"},
    {"plan mlp -p pool --json >/dev/full", 2, "standard output"},
    {"verify mlp", 2, "usage"},
    {"certify", 2, "usage"},
    {"certify @/missing.json", 2, "missing.json"},
    {"certify @/cut.json", 2, "cut.json"},
    {"certify mlp @/other.json", 2, "other.json"},
    {"verify mlp @/missing.json", 2, "missing.json"},
    {"verify mlp @/cut.json", 2, "cut.json"},
    {"verify mlp @/other.json", 2, "other.json"},
    {"run mlp -b frob -p pool", 2, "frob"},
    {"run mlp -b cuda -p pool", 4, "cuda"},
    {"run @/good.csv -b ref -p pool", 2, "list"},
    {"run @/rounds.graph -b ref -p pool", 3, "of 'y' a run comes to"},
    {"run @/rounds.graph -b ref -p pool --work-limit 100000", 3,
     "its limit is 100000 (--work-limit N lifts"},
    {"run @/rounds.graph -b ref -p first_fit --safety parallel --checked --work-limit 99999", 3,
     "with round 0"},
    {"run @/wide.graph -b ref -p pool", 3, "outside of loops a run comes to"},
    {"run @/claims.graph -b ref -p pool", 3,
     "no data of come to 6400000000 bytes; the limit is 1073741824"},
    {"run mlp -b ref -p pool --work-limit 1000", 3, "no data of come to"},
    {"run @/bare.graph -b ref -p pool --work-limit 100", 3, "a run comes to"},
    {"run mlp -b ref -p pool --input frob=ramp", 2, "frob"},
    {"run mlp -b ref -p pool --input 7=ramp", 2, "7"},
    {"run mlp -b ref -p pool --input ramp --input 0=ramp", 2, "twice"},
    {"plan mlp -p pool --views off --concat share", 2, "--concat share"},
    {"run mlp -b ref -p pool --input @/missing.npy", 2, "missing.npy"},
    {"run mlp -b ref -p pool --expect @/missing.npy", 2, "missing.npy"},
    {"run mlp -b ref -p pool --weights zero", 2, "random:SEED"},
    {"run mlp -b ref -p pool --repeat 0", 2, "--repeat"},
    {"run " SMALL " -b ref -p pool --dump /dev/null/x", 2, "/dev/null"},
    {"bench frob", 2, "frob"},
    {"bench smok", 2, "(is 'smoke' meant?)"},
    {"bench mlp:batch=2", 2, "'mlp:batch=2' is a graph"},
    {"bench @/bad.suite", 2, "bad.suite:2"},
    {"bench @/own.suite", 2, "own.suite:2"},
    {"baseline update @/own_word.suite -o @/x.json", 2, "baseline"},
    {"bench @/own_value.suite", 2, "own_value.suite:1"},
    {"bench @/own_word.suite", 2, "copy, not 'some'"},
    {"bench smoke --planners pool,,none", 2, "--planners"},
    {"bench smoke --planners pool,frob", 2, "frob"},
    {"bench smoke --backends frob", 2, "frob"},
    {"bench smoke --resume -o @/bad.jsonl", 2, "bad.jsonl:2"},
    {"bench smoke --turns 0 -o @/no.jsonl", 2, "--turns: 0"},
    {"bench smoke --turns 1001 -o @/no.jsonl", 2, "--turns: 1001"},
    {"bench smoke -q -o /dev/full --planners pool --backends none", 2, "No space left"},
    {"bench smoke -q -o /dev/null/rows.jsonl", 2, "/dev/null"},
    {"table frob", 2, "frob"},
    {"table runs --rows @/missing.jsonl", 2, "missing.jsonl"},
    {"table runs --rows @/bad.jsonl", 2, "bad.jsonl:2"},
    {"table runs --rows @/newer.jsonl", 2, "newer.jsonl:1: a row of schema 99"},
    {"merge @/newer.jsonl", 2, "newer.jsonl:1"},
    {"table runs --rows @/kind.jsonl", 2, "'planned_bytes' should be a whole number"},
    {"plot mlp -p pool", 2, ".svg"},
    {"plot mlp -p pool -o @/x.pdf", 2, ".svg"},
    {"plot mlp -p pool -o @/no/such/x.svg", 2, "x.svg"},
    {"export mlp", 2, "--format"},
    {"export mlp -f frob", 2, "frob"},
    {"export @/good.csv -f graph", 2, "list"},
    {"export @/bare.graph -f csv -o @/bare.csv", 2, "no buffer"},
    {"list frob", 2, "frob"},
};

/* Fault: a wrong exit status, a message of several lines, a crash. */
TEST(wrong_input_is_one_line)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        folder_put(files[i].name, files[i].text, strlen(files[i].text));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int got = run(wrong[i].arguments);

        if (got != wrong[i].status)
            fail_msg("memplan %s: exit status %d, not %d: %s", wrong[i].arguments, got,
                     wrong[i].status, err);
        check_error(wrong[i].arguments);
        if (wrong[i].says != NULL && strstr(err, wrong[i].says) == NULL)
            fail_msg("memplan %s: does not say '%s': %s", wrong[i].arguments, wrong[i].says, err);
    }
}

/* A damaged model is bad input, or another model where a bit was flipped; never a crash. */
static void check_damaged(const char *arguments, bool cut, size_t at)
{
    int got = run(arguments);

    if (got != 2 && (cut || got != 0))
        fail_msg("%s, %s at %zu: exit status %d: %s", arguments, cut ? "cut" : "flipped", at, got,
                 err);
    if (got == 2)
        check_error(arguments);
}

/* A real model, cut at 80 places, and with one bit flipped at 120. */
TEST(damaged_onnx)
{
    char *data = NULL;
    size_t size;

    skip_without(LIGHT);
    assert_ok(ctx, mpl_file_read(ctx, LIGHT, &data, &size));
    for (size_t i = 0; i < 200; i++) {
        bool cut = i < 80;
        size_t at = cut ? size * i / 80 : (size - 1) * (i - 80) / 119;

        if (!cut)
            data[at] ^= (char)(1 << i % 8);
        folder_put("damaged.onnx", data, cut ? at : size);
        if (!cut)
            data[at] ^= (char)(1 << i % 8);
        check_damaged("show @/damaged.onnx", cut, at);
        if (i % 4 == 0)
            check_damaged("plan @/damaged.onnx -p greedy_size -q", cut, at);
    }
    mpl_free(ctx, data);
}

/* Fault: an index that counts only the inputs which are left once others decided shapes. The third
 * one is left here. */
TEST(bound_inputs_by_index)
{
#define LOOP  MPL_SHARED "/onnx-control-flow/test_loop11/"
#define FILES LOOP "test_data_set_0/"
    skip_without(LOOP);
    assert_int_equal(run("run " LOOP "model.onnx -p pool -b ref --repeat 1 --input 0=" FILES
                         "input_0.pb --input 1=" FILES "input_1.pb --input 2=" FILES
                         "input_2.pb --expect 0=" FILES "output_0.pb --expect 1=" FILES
                         "output_1.pb"),
                     0);
    assert_int_equal(run("run " LOOP "model.onnx -p pool -b ref --input 0=" FILES
                         "input_0.pb --input 1=" FILES "input_1.pb --input 3=" FILES "input_2.pb"),
                     2);
    assert_non_null(strstr(err, "there is no index 3"));
#undef LOOP
#undef FILES
}

/* ---- help ---- */

TEST(help_of_everything)
{
    char arguments[64], option[64];

    assert_int_equal(run("--help"), 0);
    for (int c = 0; c < MPL_N_COMMANDS; c++)
        assert_non_null(strstr(out, mpl_commands[c].name));
    for (int c = 0; c < MPL_N_COMMANDS; c++) {
        snprintf(arguments, sizeof arguments, "%s --help", mpl_commands[c].name);
        assert_int_equal(run(arguments), 0);
        assert_string_equal(err, "");
        assert_non_null(strstr(out, mpl_commands[c].example));
        for (int i = 0; i < MPL_N_OPTIONS; i++) {
            snprintf(option, sizeof option, "--%s ", mpl_option_table[i].name);
            for (char *k = option; *k != '\0'; k++)
                *k = *k == '_' ? '-' : *k;
            assert_int_equal(strstr(strstr(out, ".\n\n"), option) != NULL,
                             mpl_option_table[i].commands >> c & 1);
        }
    }
    assert_int_equal(run("--version"), 0);
    assert_memory_equal(out, "memplan ", 8);
}

/* Fault: a generated document that lags behind its table. */
TEST(documents_are_up_to_date)
{
    static const struct {
        const char *what, *path;
    } table[] = {{"list fields", "results/SCHEMA.md"}, {"list options", "harness/cli/OPTIONS.md"}};

    for (size_t i = 0; i < 2; i++) {
        char *data = NULL;
        size_t size;

        mpl_ctx_init(ctx);
        assert_int_equal(run(table[i].what), 0);
        assert_ok(ctx, mpl_file_read(ctx, table[i].path, &data, &size));
        if (strcmp(data, out) != 0)
            fail_msg("%s is stale: make docs", table[i].path);
        mpl_free(ctx, data);
    }
}

TEST(lists_name_what_there_is)
{
    static const struct {
        const char *what, *has;
    } table[] = {{"graphs", "resnet50"}, {"planners", "greedy_size"}, {"orders", "given"},
                 {"backends", "absent"}, {"suites", "smoke"},         {"tables", "planned"},
                 {"formats", "csv"}};

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char arguments[64];

        snprintf(arguments, sizeof arguments, "list %s", table[i].what);
        assert_int_equal(run(arguments), 0);
        assert_non_null(strstr(out, table[i].has));
        snprintf(arguments, sizeof arguments, "list %s --json", table[i].what);
        assert_int_equal(run(arguments), 0);
        assert_int_equal(out[0], '{');
    }
    assert_int_equal(run("list graphs"), 0);
    assert_non_null(
        strstr(out, "form=unroll  a cell for each step, or a loop over the cell (unroll|while)"));
}

/* ---- plans ---- */

/* Changes the first number after `key` behind the `skip`-th one in a plan file. */
static void tamper(const char *from, const char *to, const char *key, const char *value, int skip)
{
    static char text[1 << 17], changed[1 << 17];
    char *at = text;

    folder_read(from, text, sizeof text);
    for (int i = 0; i <= skip; i++) {
        at = strstr(i == 0 ? at : at + 1, key);
        assert_non_null(at);
    }
    at += strlen(key);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, value,
             at + strspn(at, " 0123456789"));
    folder_put(to, changed, strlen(changed));
}

/* Plan, verify, run from the file; with every set of options the file alone must be enough. */
TEST(plans_survive_files)
{
    static const char *const options[] =
        ROW("-p greedy_size", "-p pool:level=0 --order dfs", "-p owl --in-place off --views off",
            "-p best_fit --pin weights,outputs", "-p best_fit --pin none",
            "-p greedy_size --pin inputs --pools weights,state", "-p mxnet --backend ref",
            "-p first_fit --backend cpu", "-p greedy_size --backend cpu --workspaces plan",
            "-p none --capacity 1MiB", "-p nnc_2019 --safety parallel");
    char arguments[300];

    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        snprintf(arguments, sizeof arguments,
                 "plan lstm:layers=1,steps=3,hidden=8,batch=2 %s -o @/plan.json", options[i]);
        if (run(arguments) != 0)
            fail_msg("memplan %s: %s", arguments, err);
        assert_non_null(strstr(out, "verified"));
        if (run("verify lstm:layers=1,steps=3,hidden=8,batch=2 @/plan.json") != 0)
            fail_msg("verify after %s: %s", options[i], err);
        assert_int_equal(run("verify lstm:layers=1,steps=4,hidden=8,batch=2 @/plan.json"), 2);
        assert_non_null(strstr(err, "another problem"));
        snprintf(arguments, sizeof arguments,
                 "run lstm:layers=1,steps=3,hidden=8,batch=2 --plan @/plan.json --repeat 1 "
                 "--checked %s",
                 strstr(options[i], "--backend") != NULL ? "" : "--backend ref --in-place on");
        if (strstr(options[i], "off") == NULL && run(arguments) != 0)
            fail_msg("memplan %s after %s: %s", arguments, options[i], err);
    }
}

/* Fault: a file without in-place pairs is read as one planned without them; there they were all
 * decided before. */
TEST(plans_that_need_no_pair)
{
    static const char *const graphs[] = {"offset2bbox:boxes=20", "yolo_boxes:cells=4",
                                         "ssd_boxes:boxes=20"};
    static const char *const options[] = {"", "--in-place off", "--safety parallel"};
    char arguments[200];

    for (size_t i = 0; i < 9; i++) {
        snprintf(arguments, sizeof arguments, "plan %s -p greedy_size -o @/plan.json %s",
                 graphs[i / 3], options[i % 3]);
        assert_int_equal(run(arguments), 0);
        snprintf(arguments, sizeof arguments, "verify %s @/plan.json", graphs[i / 3]);
        if (run(arguments) != 0)
            fail_msg("verify after %s %s: %s", graphs[i / 3], options[i % 3], err);
    }
}

/* Fault: a plan file that is believed. */
TEST(tampered_plans_are_refused)
{
    assert_int_equal(run("plan " SMALL " -p none -o @/plan.json"), 0);
    assert_int_equal(run("verify " SMALL " @/plan.json"), 0);
    tamper("plan.json", "moved.json", "\"offset\":", " 64", 2); /* fc where its input lies */
    assert_int_equal(run("verify " SMALL " @/moved.json"), 1);
    check_error("verify");
    assert_non_null(strstr(err, "hidden1.relu"));
    assert_non_null(strstr(err, "fc"));
    assert_int_equal(run("verify " SMALL " @/moved.json --json"), 1);
    assert_non_null(strstr(out, "\"status\":\"refused\""));
    assert_non_null(strstr(out, "\"planned_bytes\":null"));
    tamper("plan.json", "odd.json", "\"offset\":", " 65", 1);
    assert_int_equal(run("verify " SMALL " @/odd.json"), 1);
    tamper("plan.json", "bytes.json", "\"bytes\":", " 8", 2);
    assert_int_equal(run("verify " SMALL " @/bytes.json"), 2);
    assert_int_equal(run("run " SMALL " --plan @/moved.json -b ref"), 1);
}

/* Replaces the first `from` behind the first `behind` of a plan file. */
static void edit(const char *file, const char *to, const char *behind, const char *from,
                 const char *with)
{
    static char text[1 << 17], changed[1 << 17];
    char *at;

    folder_read(file, text, sizeof text);
    assert_non_null(at = strstr(text, behind));
    assert_non_null(at = strstr(at, from));
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, with, at + strlen(from));
    folder_put(to, changed, strlen(changed));
}

/* Where values lie round by round is part of a plan with loops, and what it copies: a file that
 * says otherwise is refused. */
TEST(tampered_bindings_are_refused)
{
    static const struct {
        const char *behind, *from, *with, *names;
    } edits[] = ROW({"\"bindings\"", "\"buffer\":", "\"buffer\":1", "'x0'"},
                    {"\"value\":\"x0\"", "\"v0\"", "\"v1\"", "'x0'"},
                    {"\"value\":\"x1\"", "\"cycle\":[{", "\"cycle\":[{\"buffer\":0},{", "'x1'"},
                    {"\"bindings\"", "\"value\":\"z\"", "\"value\":\"q\"", "'z'"},
                    {"\"copies\"", "\"copies\":[", "\"copies\":[{\"value\":\"t\"}", "'t'"});
    static const char *const loop = "tests/data/loops/shift_2.graph";
    char arguments[200];

    snprintf(arguments, sizeof arguments, "plan %s -p first_fit -o @/loop.json", loop);
    assert_int_equal(run(arguments), 0);
    snprintf(arguments, sizeof arguments, "verify %s @/loop.json", loop);
    assert_int_equal(run(arguments), 0);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        edit("loop.json", "bound.json", edits[i].behind, edits[i].from, edits[i].with);
        snprintf(arguments, sizeof arguments, "verify %s @/bound.json", loop);
        if (run(arguments) != 1 || strstr(err, edits[i].names) == NULL)
            fail_msg("%s for %s: %s", edits[i].with, edits[i].from, err);
        check_error("verify");
        snprintf(arguments, sizeof arguments, "run %s --plan @/bound.json -b ref", loop);
        assert_int_equal(run(arguments), 1);
    }
    snprintf(arguments, sizeof arguments, "export %s -p first_fit --format csv -o @/loop.csv",
             loop);
    assert_int_equal(run(arguments), 0);
    assert_non_null(strstr(err, "bindings"));
}

/* The same plan, the same bytes; what a failed writing leaves behind is the file as it was. */
TEST(plan_files_are_replaced_whole)
{
    char first[1 << 14], again[1 << 14];

    assert_int_equal(run("plan " SMALL " -p pool -o @/same.json"), 0);
    folder_read("same.json", first, sizeof first);
    assert_int_equal(run("plan " SMALL " -p frob -o @/same.json"), 2);
    folder_read("same.json", again, sizeof again);
    assert_string_equal(first, again);
}

/* Catches: a limit that stops what is small, or that is not lifted; plans that do what a run
 * would. */
TEST(limits_are_lifted)
{
    static const char *const fine[] =
        ROW("run @/bare.graph -b ref -p pool", "run @/bare.graph -b ref -p pool --work-limit 2000",
            "run @/few.graph -b ref -p pool --repeat 1 --work-limit 0",
            "run mlp -b ref -p pool --work-limit 0", "plan @/rounds.graph -p pool",
            "show @/wide.graph", "show @/claims.graph");

    folder_put_text("few.graph",
                    "graph g\ninput x f32 [4]\nblock b\nparam i i64 []\nparam p f32 [4]\n"
                    "yield _, p\ny = while b(_, _, x) carried=1 trips=600000\noutput y\n");
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        if (run(fine[i]) != 0)
            fail_msg("memplan %s: %s", fine[i], err);
    assert_int_equal(run("run @/few.graph -b ref -p pool"), 3);
}

TEST(runs_report_what_they_did)
{
    mpl_record *row = NULL;
    uint64_t value, bound;
    double ratio;
    static const mpl_field counters[] = {
        MPL_FIELD_planned_bytes,   MPL_FIELD_measured_bytes,   MPL_FIELD_rss_bytes,
        MPL_FIELD_workspace_bytes, MPL_FIELD_copied_bytes,     MPL_FIELD_bound_bytes,
        MPL_FIELD_reordered_bytes, MPL_FIELD_loop_carry_bytes, MPL_FIELD_naive_bytes};

    assert_int_equal(
        run("run mnist_conv:batch=1 -p greedy_size -b cpu --repeat 3 --json --input ramp"), 0);
    assert_ok(ctx, mpl_record_read(ctx, "row", out, strlen(out), &row));
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        assert_true(mpl_record_get_int(row, counters[i], &value));
    assert_string_equal(mpl_record_get_text(row, MPL_FIELD_outputs), "equal");
    assert_string_equal(mpl_record_get_text(row, MPL_FIELD_status), "ok");
    assert_false(mpl_record_is_null(row, MPL_FIELD_memplan));
    assert_false(mpl_record_is_null(row, MPL_FIELD_machine));
    mpl_record_free(ctx, row);
    /* beside one malloc a buffer: as many times, at least what is alive */
    assert_int_equal(
        run("run mnist_conv:batch=1 -p greedy_size -b cpu --repeat 3 --compare malloc --json"), 0);
    assert_ok(ctx, mpl_record_read(ctx, "row", out, strlen(out), &row));
    assert_true(mpl_record_median_ratio(row, MPL_FIELD_run_ns, MPL_FIELD_malloc_ns, &ratio) &&
                ratio > 0);
    assert_true(mpl_record_get_int(row, MPL_FIELD_malloc_bytes, &value) &&
                mpl_record_get_int(row, MPL_FIELD_bound_bytes, &bound) && value >= bound);
    mpl_record_free(ctx, row);
    assert_int_equal(run("run lstm:form=while,steps=2 -p exact -b cpu --compare malloc"), 4);
    check_error("run --compare malloc of a loop");
    assert_int_equal(run("run " SMALL " -p pool -b ref --compare calloc"), 2);
    check_error("run --compare calloc");
    folder_put_text("compare.suite", "--compare malloc\n--backends ref\n" SMALL "\n");
    assert_int_equal(run("bench @/compare.suite --planners pool --repeat 2 -q -o @/compare.jsonl"),
                     0);
    assert_int_equal(run("table malloc --rows @/compare.jsonl --tsv"), 0);
    assert_non_null(strstr(out, "arena over malloc\n"));
    assert_null(strstr(out, "\t-"));
    /* the same beside a malloc of other settings is a run of its own, and a column; what is not
     * there is not compared with */
    assert_int_equal(
        run_with("MALLOC_TRIM_THRESHOLD_", "1000000",
                 "bench @/compare.suite --planners pool --repeat 2 -q -o @/compare.jsonl"),
        0);
    assert_int_equal(run("table malloc --rows @/compare.jsonl --tsv"), 0);
    assert_non_null(
        strstr(out, "arena over malloc\t~arena over trim_threshold=1000000\n" SMALL "\t"));
    assert_null(strstr(out, "\t-"));
    assert_int_equal(run_with("LD_PRELOAD", "libnowhere.so.7",
                              "run " SMALL " -p pool -b ref --compare malloc --repeat 1"),
                     4);
    assert_non_null(strstr(err, "'libnowhere.so.7', which is not loaded"));
    /* what one backend gave is what the other must give; what another seed gave is not */
    assert_int_equal(run("run mnist_conv:batch=1 -p pool -b ref --repeat 1 --dump @/dump -q"), 0);
    assert_int_equal(
        run("run mnist_conv:batch=1 -p owl -b cpu --repeat 1 --expect @/dump/prob.npy"), 0);
    assert_non_null(strstr(out, "expected: within"));
    assert_int_equal(run("run mnist_conv:batch=1 -p owl -b cpu --repeat 1 --weights random:7 "
                         "--expect @/dump/prob.npy"),
                     1);
    check_error("run --expect");
}

static void check_dims(const char *file, const char *dims)
{
    char head[129] = "";
    FILE *f = fopen(in_folder(file), "rb");

    assert_non_null(f);
    assert_int_equal(fread(head, 1, 128, f), 128);
    fclose(f);
    if (strstr(head + 10, dims) == NULL)
        fail_msg("%s: '%s' where %s is expected", file, head + 10, dims);
}

/* A loop of 4 rounds at most that ends behind the second: as many rows are written and compared,
 * and who reads all is told. */
TEST(rows_of_a_loop_that_ends_early)
{
    static const char text[] =
        "graph early\ninput x f32 [2]\nweight one f32 [] = splat 1\nweight limit f32 [] = splat "
        "2.2\n"
        "block body\n  param i i64 []\n  param a f32 [2]\n  b = add(a, one)\n"
        "  most = reduce_max(b) keepdims=0\n  go = less(most, limit)\nyield go, b, b\n"
        "last, rows = while body(_, _, x) carried=1 trips=4\nr = neg(rows)\n"
        "output last\noutput rows\noutput r\n";

    folder_put_text("early.graph", text);
    assert_int_equal(run("run @/early.graph -b ref -p pool --repeat 1 --input ramp --dump @/early"),
                     0);
    assert_non_null(strstr(
        out, "ran 2 of 4 rounds, output 'rows' has as many rows, what reads 'rows' sees 4 rows"));
    check_dims("early/rows.npy", "(2, 2,)");
    assert_int_equal(run("run @/early.graph -b ref -p none --repeat 1 --input ramp --expect "
                         "rows=@/early/rows.npy"),
                     0);
    assert_int_equal(
        run("run @/early.graph -b ref -p none --repeat 1 --input ramp --expect rows=@/early/r.npy"),
        1);
    check_error("run --expect, all rows");
    assert_int_equal(run("run @/early.graph -b ref -p none --repeat 1 --input ramp --json"), 0);
    assert_non_null(strstr(out, "\"ended_early\":\"loop"));
}

/* Block bI of a loop that carries a and goes on while a, 1 more in each round, is small. */
static void add_growing(FILE *f, int i, const char *scanned, const char *yields)
{
    fprintf(f, "block b%d\nparam i%d i64 []\nparam a%d f32 [2]\n%sc%d = add(a%d, one)\n", i, i, i,
            scanned, i, i);
    fprintf(f, "most%d = reduce_max(c%d) keepdims=0\ngo%d = less(most%d, limit)\n%s\n", i, i, i, i,
            yields);
}

/* What is told of loops one after the other: rows that lie from the end on, none, all of them,
 * those of a loop in a loop.
 *
 * Catches: rows of another loop, or of another end, taken for those that came. */
TEST(rows_of_all_kinds_of_loops)
{
    FILE *f = fopen(in_folder("kinds.graph"), "w");

    assert_non_null(f);
    fprintf(f, "graph kinds\ninput x f32 [2]\nweight some f32 [4,2] = splat 1\nweight one f32 [] = "
               "splat 1\n");
    fprintf(f, "weight limit f32 [] = splat 2.2\n");
    add_growing(f, 1, "", "yield go1, c1, c1");
    fprintf(f, "last, rows = while b1(_, _, x) carried=1 trips=4\n");
    add_growing(f, 2, "param s f32 [2]\n", "yield go2, c2, c2");
    fprintf(f, "low, back = while b2(_, _, x, some) carried=1 trips=4 scan_reverse=[0,1]\n");
    add_growing(f, 3, "", "yield go3, c3");
    fprintf(f, "end = while b3(_, _, x) carried=1 trips=4\n");
    add_growing(f, 4, "", "yield _, c4, c4");
    fprintf(f, "all, all_rows = while b4(_, _, x) carried=1 trips=3\n");
    fprintf(f, "block b5\nparam i5 i64 []\nparam a5 f32 [2]\n");
    add_growing(f, 6, "", "yield go6, c6, c6");
    fprintf(f, "deep, deep_rows = while b6(_, _, x) carried=1 trips=4\nyield _, deep, deep_rows\n");
    fprintf(f, "far, far_rows = while b5(_, _, x) carried=1 trips=2\noutput last\noutput "
               "rows\noutput low\n");
    fprintf(f, "output back\noutput end\noutput all_rows\noutput far_rows\n");
    fclose(f);
    assert_int_equal(run("run @/kinds.graph -b ref -p pool --repeat 1 --input ramp --dump @/kinds"),
                     0);
    assert_non_null(strstr(
        out,
        "early     loop 'last' ran 2 of 4 rounds, output 'rows' has as many rows; "
        "loop 'low' ran 2 of 4 rounds, what reads 'back' sees 4 rows, zero where no round was; "
        "loop 'deep' ran 2 of 4 rounds, what reads 'deep_rows' sees 4 rows, zero where no round "
        "was\n"));
    check_dims("kinds/last.npy", "(2,)");
    check_dims("kinds/rows.npy", "(2, 2,)");
    check_dims("kinds/back.npy", "(4, 2,)");
    check_dims("kinds/all_rows.npy", "(3, 2,)");
    check_dims("kinds/far_rows.npy", "(2, 4, 2,)");
}

TEST(export_and_plot)
{
    char svg[1 << 16];

    assert_int_equal(run("export " SMALL " -f graph -o @/again.graph"), 0);
    assert_int_equal(run("plan @/again.graph -p pool --json"), 0);
    assert_int_equal(run("export " SMALL " -f csv -p greedy_size -o @/again.csv"), 0);
    assert_int_equal(run("plan @/again.csv -p pool"), 0);
    assert_int_equal(run("export @/again.csv -f offline -p greedy_size -o @/again.json"), 0);
    assert_int_equal(run("check @/again.csv --plan @/again.json"), 0);
    assert_int_equal(run("export synthetic:n=40000 -f offline -p none -o @/again.json"), 2);
    assert_non_null(strstr(err, "2^31"));
    assert_int_equal(run("export " SMALL " -f dot"), 0);
    assert_non_null(strstr(out, "digraph"));
    assert_int_equal(run("export " SMALL " -f trace -p pool"), 0);
    assert_non_null(strstr(out, "traceEvents"));
    assert_int_equal(
        run("export lstm:layers=1,steps=2,hidden=4 -f trace -p nnc_2019 --safety parallel"), 0);
    assert_non_null(strstr(out, "depth [buffers"));
    if (system("command -v gnuplot >/dev/null") != 0) {
        print_message("skip: %s: no gnuplot here\n", __func__);
        return;
    }
    assert_int_equal(run("plot " SMALL " -p greedy_size -o @/plan.png"), 0);
    assert_string_equal(err, "");
    assert_int_equal(run("plot " SMALL " -p greedy_size -o @/plan.svg"), 0);
    assert_int_equal(run("plot tests/data/control.graph -p greedy_size -o @/loop.svg"), 0);
    folder_read("loop.svg", svg, sizeof svg);
    assert_non_null(strstr(svg, "step round 3"));
    assert_null(strstr(svg, "step round 4"));
    assert_non_null(strstr(svg, "keep branch 1"));
    assert_non_null(strstr(svg, "<title>hw\n24 bytes at "));
    assert_int_equal(setenv("TMPDIR", "/no/such/folder", 1), 0); /* where its script goes */
    assert_int_equal(run("plot " SMALL " -p greedy_size -o @/other.svg"), 0);
    assert_int_equal(unsetenv("TMPDIR"), 0);
    assert_int_equal(run("plot mlp:batch=16,hidden=8,input=8,mode=train,update=momentum -p "
                         "nnc_2019 -o @/long.svg"),
                     0);
    folder_read("long.svg", svg, sizeof svg); /* two lines, in the unit that shows digits */
    assert_non_null(strstr(svg, ">mlp:batch=16,hidden=8,input=8,mode=train,update=momentum<"));
    assert_non_null(strstr(svg, ">nnc_2019: "));
    assert_non_null(strstr(svg, "buffer size [KiB]"));
    folder_read("plan.svg", svg, sizeof svg);
    assert_non_null(strstr(svg, "<title>hidden1.gemm\n16 bytes at "));
    assert_non_null(strstr(svg, "<title>hidden1.relu\n16 bytes at "));
    assert_non_null(strstr(svg, "<title>fc\n8 bytes at "));
}

/* A model carries graph, weights and plan: what runs, verifies and is checked is what was
 * exported. */
TEST(export_onnx)
{
    static const char *const safety[] = {"serial", "parallel"};
    char command[400], text[1 << 12];

    for (size_t i = 0; i < sizeof safety / sizeof *safety; i++) {
        snprintf(command, sizeof command,
                 "export mnist_conv:batch=1 -f onnx -p nnc_2019 --safety %s -o @/m.onnx",
                 safety[i]);
        assert_int_equal(run(command), 0);
        assert_int_equal(run("verify @/m.onnx @/m.onnx"), 0);
        assert_non_null(strstr(out, "verified"));
        assert_int_equal(run("diff @/m.onnx @/m.onnx"), 0);
        assert_int_equal(run("check --plan @/m.onnx --tolerance 100%"), 0);
        assert_int_equal(run("export @/m.onnx -f onnx-metadata -p none -o @/n.onnx"), 0);
        assert_int_equal(run("diff @/m.onnx @/n.onnx"), 1);
        snprintf(command, sizeof command,
                 "export @/n.onnx -f onnx-metadata -p nnc_2019 --safety %s -o @/o.onnx", safety[i]);
        assert_int_equal(run(command), 0);
        assert_int_equal(run("diff @/m.onnx @/o.onnx"), 0);
        assert_int_equal(run("verify @/n.onnx @/o.onnx"), 0);
        assert_int_equal(run("verify mnist_conv:batch=2 @/m.onnx"), 2);
        check_error("verify another graph");
    }
    assert_int_equal(run("run mnist_conv:batch=1 -p pool -b ref --repeat 1 --dump @/dump -q"), 0);
    assert_int_equal(run("run @/m.onnx -p pool -b ref --repeat 1 --expect @/dump/prob.npy"), 0);
    assert_non_null(strstr(out, "expected: within"));
    assert_int_equal(run("export mnist_conv:batch=1 -f onnx --weights random:7 -o @/m.onnx"), 0);
    assert_int_equal(run("run @/m.onnx -p pool -b ref --repeat 1 --expect @/dump/prob.npy"), 1);
    assert_int_equal(run("verify @/m.onnx @/m.onnx"), 2); /* no plan in it */
    check_error("verify without a plan");
    assert_int_equal(run("export mlp -f onnx-metadata -p pool -o @/x.onnx"), 2);
    folder_read("err", text, sizeof text);
    assert_non_null(strstr(text, "--format onnx makes one"));
    assert_int_equal(run("export " SMALL " -f onnx --weights x -o @/x.onnx"), 2);
}

/* ---- benches ---- */

/* What the bench prints, and the same from its rows. */
TEST(tables_from_rows)
{
    folder_put_text("table.suite", "--backends cpu\nmlp:hidden=32\nmnist_conv:batch=1\n");
    if (run("bench @/table.suite --planners none,pool,owl:rule=code,greedy_size --repeat 2 -o "
            "@/table.jsonl") != 0)
        fail_msg("bench: %s", err);
    assert_non_null(strstr(out, "### mlp:hidden=32, serial, cpu"));
    assert_non_null(strstr(out, "| owl:rule=code"));
    assert_int_equal(run("table runs --rows @/table.jsonl"), 0);
    assert_non_null(strstr(out, "### mlp:hidden=32, serial, cpu"));
    assert_int_equal(run("table planned --rows @/table.jsonl --tsv"), 0);
    assert_memory_equal(out, "planner\tmlp:hidden=32 cpu\t", 26);
    assert_int_equal(run("table gap --rows @/table.jsonl -o @/gap.md"), 0);
    folder_read("gap.md", out, sizeof out);
    assert_non_null(strstr(out, "| pool "));
}

/* A graph that cannot be opened and a backend that is not there are rows; the rest goes on. */
TEST(failures_are_rows)
{
    mpl_rows rows = {0};
    char path[600];
    static const char *const status[] = {"input", "ok", "ok", "ok"};

    folder_put("mixed.suite", "no_such_graph\nmlp:hidden=32\n@\n", 30);
    folder_put("mixed.suite", "no_such_graph\nmlp:hidden=32\n", 28);
    assert_int_equal(run("bench @/mixed.suite --planners pool --repeat 1 -q -o @/mixed.jsonl"), 1);
    check_error("bench");
    snprintf(path, sizeof path, "%s/mixed.jsonl", folder);
    assert_ok(ctx, mpl_rows_read(ctx, path, &rows));
    assert_int_equal(rows.n, 2);
    for (uint32_t i = 0; i < rows.n; i++)
        assert_string_equal(mpl_record_get_text(rows.row[i], MPL_FIELD_status), status[i]);
    assert_false(mpl_record_is_null(rows.row[0], MPL_FIELD_reason));
    assert_true(mpl_record_is_null(rows.row[0], MPL_FIELD_planned_bytes));
    mpl_rows_fini(ctx, &rows);
    assert_int_equal(
        run("bench @/mixed.suite --planners pool --backends cuda -q -o @/absent.jsonl"), 1);
    folder_put("one.suite", "mlp:hidden=32\n", 14);
    assert_int_equal(run("bench @/one.suite --planners pool --backends cuda -q -o @/absent2.jsonl"),
                     0);
    snprintf(path, sizeof path, "%s/absent2.jsonl", folder);
    assert_ok(ctx, mpl_rows_read(ctx, path, &rows));
    assert_string_equal(mpl_record_get_text(rows.row[0], MPL_FIELD_status), "unavailable");
    mpl_rows_fini(ctx, &rows);
}

/* Options of single lines of a suite: each row has its own, with workers and on resuming too; the
 * command line is above them. */
TEST(own_options)
{
    static const char suite[] = "--backends none\nlstm:steps=3,form=while,hidden=16 --loop copy\n"
                                "lstm:steps=3,form=while,hidden=16   --loop view --order "
                                "dfs\nlstm:steps=3,form=while,hidden=16\n";
    static const char *const loop[] = {"copy", "view", "view"}, *const order[] = {"given", "dfs",
                                                                                  "given"};
    static const char *const command[] = {"-o @/own.jsonl", "-o @/own_jobs.jsonl --jobs 2",
                                          "-o @/own.jsonl --resume"};
    char path[600];

    folder_put("lines.suite", suite, sizeof suite - 1);
    for (size_t k = 0; k < sizeof command / sizeof *command; k++) {
        mpl_rows rows = {0};
        char line[200];

        snprintf(line, sizeof line, "bench @/lines.suite --planners pool %s", command[k]);
        assert_int_equal(run(line), 0);
        snprintf(path, sizeof path, "%s/own%s.jsonl", folder, k == 1 ? "_jobs" : "");
        assert_ok(ctx, mpl_rows_read(ctx, path, &rows));
        assert_int_equal(rows.n, 3);
        for (uint32_t i = 0; k != 1 && i < rows.n; i++) { /* workers end in any order */
            assert_string_equal(mpl_record_get_text(rows.row[i], MPL_FIELD_loop), loop[i]);
            assert_string_equal(mpl_record_get_text(rows.row[i], MPL_FIELD_order), order[i]);
        }
        mpl_rows_fini(ctx, &rows);
    }
    assert_int_equal(run("table switches --tsv --rows @/own.jsonl"), 0);
    assert_non_null(strstr(out, "\tcopy\t"));
    assert_int_equal(run("bench @/lines.suite --planners pool --loop copy -q -o @/above.jsonl"), 0);
    assert_int_equal(run("table switches --tsv --rows @/above.jsonl"), 0);
    assert_null(strstr(out, "\tview\t"));
}

/* Rows of one graph under several options are not of one problem: a table, and a bound, for
 * each. */
TEST(tables_of_unlike_rows_are_apart)
{
    static const char suite[] = "--backends none\n--planners pool,greedy_size\n"
                                "mlp:layers=2,hidden=32,batch=4\n"
                                "mlp:layers=2,hidden=32,batch=4 --in-place off\n";

    folder_put("apart.suite", suite, sizeof suite - 1);
    assert_int_equal(run("bench @/apart.suite -o @/apart.jsonl"), 0);
    assert_non_null(
        strstr(out, "### mlp:layers=2,hidden=32,batch=4, serial, planned only, in_place true:"));
    assert_non_null(
        strstr(out, "### mlp:layers=2,hidden=32,batch=4, serial, planned only, in_place false:"));
    assert_null(strstr(out, "greedy_size, "));
    assert_int_equal(run("table runs --tsv --rows @/apart.jsonl"), 0);
    assert_non_null(strstr(out, "\tplanned only\tin_place false\n"));
    assert_int_equal(run("bench @/apart.suite --in-place on -q -o @/alike.jsonl"), 0);
    assert_int_equal(run("table runs --rows @/alike.jsonl"), 0);
    assert_null(strstr(out, "in_place"));
}

/* The times of rows that were executed, beside their work; of no other graph, backend or build. */
TEST(times_are_drawn)
{
    static const char suite[] = "--backends ref\n--repeat 1\n" TRAINED "\n" TRAINED
                                " --recompute sqrt:90%\nmlp:mode=train,layers=2\n";
    static char text[1 << 16];
    double mib[2], ms[2], work[2];
    char *line;

    if (system("command -v gnuplot >/dev/null") != 0) {
        print_message("skip: %s: no gnuplot here\n", __func__);
        skip();
    }
    folder_put("trained.suite", suite, sizeof suite - 1);
    assert_int_equal(run("bench @/trained.suite --planners pool -q -o @/trained.jsonl"), 0);
    assert_int_equal(run("plot " TRAINED " --tradeoff --rows @/trained.jsonl -o @/trained.svg"), 0);
    line = out;
    for (int i = 0; i < 2; i++, line = strchr(line, '\n') + 1)
        assert_int_equal(
            sscanf(line, "planned %lf MiB run %lf ms work %lf", &mib[i], &ms[i], &work[i]), 3);
    assert_true(strncmp(line, "planned", 7) != 0 &&
                strstr(line, "measured on ref, plans of pool") != NULL);
    assert_true(mib[0] < mib[1] && work[0] > 1 && work[1] == 1 && ms[0] > 0 && ms[1] > 0);
    folder_read("trained.svg", text, sizeof text);
    assert_true(strstr(text, "run, median [ms]") != NULL &&
                strstr(text, "work beside that of one run") != NULL);
    assert_int_equal(run("plot " TRAINED " --tradeoff --rows @/trained.jsonl -b cpu -o @/t.svg"),
                     2);
    assert_non_null(strstr(err, "on cpu"));
    assert_int_equal(run("plot " TRAINED " --tradeoff -o @/trained.svg"), 0);
    assert_non_null(strstr(out, "nothing run"));
    folder_read("trained.svg", text, sizeof text);
    assert_null(strstr(text, "[ms]"));
}

#define EXECUTED(graph, machine, planner, backend, rest)                                           \
    "{\"status\":\"ok\",\"schema\":1,\"memplan\":{\"commit\":\"c\",\"dirty\":false},\"machine\":{" \
    "\"cpu\":"                                                                                     \
    "\"" machine "\"},\"graph\":\"" graph "\",\"safety\":\"serial\",\"planner\":\"" planner        \
    "\",\"backend\":" backend "," rest "}\n"
#define MEASURED "\"planned_bytes\":1048576,\"run_ns\":[4000000,9000000,5000000]"
#define AGAIN    "\"recompute\":\"sqrt\",\"planned_bytes\":524288,\"run_ns\":[6000000]"

/* Fault: a row that was not executed is drawn, or one of another graph, backend or planner; rows
 * that do not belong together. */
TEST(only_executed_rows_are_drawn)
{
    static const struct {
        const char *what, *row;
        bool first; /* even ahead of the others it must not count */
        const char *says;
    } odd[] = ROW(
        {"nothing", "", true, NULL},
        {"no time", EXECUTED("g", "x", "pool", "\"ref\"", "\"order\":\"dfs\",\"planned_bytes\":7"),
         true, NULL},
        {"no plan", EXECUTED("g", "x", "pool", "\"ref\"", "\"order\":\"dfs\",\"run_ns\":[7]"), true,
         NULL},
        {"no backend", EXECUTED("g", "x", "pool", "null", MEASURED), true, NULL},
        {"another graph", EXECUTED("g2", "x", "pool", "\"ref\"", MEASURED), true, NULL},
        {"another backend", EXECUTED("g", "x", "pool", "\"cpu\"", MEASURED), true, NULL},
        {"another planner", EXECUTED("g", "x", "none", "\"ref\"", MEASURED), false, NULL},
        {"an earlier run",
         EXECUTED("g", "x", "pool", "\"ref\"", "\"planned_bytes\":7,\"run_ns\":[7]"), true, NULL},
        {"another machine",
         EXECUTED("g", "y", "pool", "\"ref\"", "\"recompute\":\"round\"," MEASURED), false,
         "different builds or machines"},
        ROW("no work",
            EXECUTED("g", "x", "pool", "\"ref\"",
                     "\"recompute\":\"round\",\"all_work\":0,\"extra_work\":0," MEASURED),
            true, "does not say its work"));
    static const char once[] = EXECUTED("g", "x", "pool", "\"ref\"", MEASURED),
                      again[] = EXECUTED("g", "x", "pool", "\"ref\"",
                                         "\"all_work\":4,\"extra_work\":1," AGAIN),
                      want[] = "planned        0.500 MiB  run      6.000 ms  work 1.250  sqrt\n"
                               "planned        1.000 MiB  run      5.000 ms  work 1.000  none\n";
    char rows[4000];

    if (system("command -v gnuplot >/dev/null") != 0) {
        print_message("skip: %s: no gnuplot here\n", __func__);
        skip();
    }
    for (size_t i = 0; i < 2 * (sizeof odd / sizeof *odd); i++) {
        bool first = i % 2 == 0;
        int got;

        if (first && !odd[i / 2].first)
            continue;
        snprintf(rows, sizeof rows, "%s%s%s%s", first ? odd[i / 2].row : "", once,
                 first || strcmp(odd[i / 2].what, "an earlier run") == 0 ? "" : odd[i / 2].row,
                 again);
        folder_put_text("drawn.jsonl", rows);
        got = run("plot g --tradeoff --rows @/drawn.jsonl -b ref -o @/drawn.svg");
        if (got != (odd[i / 2].says != NULL ? 2 : 0) ||
            (got == 0 ? strncmp(out, want, sizeof want - 1) != 0 ||
                            strncmp(out + sizeof want - 1, "planned", 7) == 0
                      : strstr(err, odd[i / 2].says) == NULL))
            fail_msg("%s: exit status %d: %s%s", odd[i / 2].what, got, out, err);
    }
}

/* A pass goes into weights that --weights replaces: the same outputs as without, of that seed. */
TEST(folded_weights)
{
    static const char graph[] =
        "graph g\ninput x f32 [1,2,4,4]\nweight w f32 [3,2,1,1] = splat 1\nweight b f32 [3] = data "
        "1 2 3\n"
        "weight p f32 [3] = splat 1\nweight q f32 [3] = splat 2\nweight f f32 [3,1,1] = splat 3\n"
        "a = conv(x, w, b)\nc = mul(a, f)\nn = batch_norm(c, p, b, b, q)\ny = add(n, f)\noutput "
        "y\n";
    static const char *const pass[] = {"conv_scale", "bn_scale", "conv_scale,conv_bn"};
    char line[200];

    folder_put("bn.graph", graph, sizeof graph - 1);
    assert_int_equal(run("run @/bn.graph -b ref -p pool --weights random:5 --dump @/plain"), 0);
    for (size_t i = 0; i < sizeof pass / sizeof *pass; i++) {
        const char *const weights[] = {"--weights random:5", "--weights random:6", ""};

        for (uint32_t k = 0; k < 3; k++) {
            snprintf(line, sizeof line,
                     "run @/bn.graph -b ref -p pool %s --optimise %s --expect @/plain/y.npy",
                     weights[k], pass[i]);
            if (run(line) != (k == 0 ? 0 : 1))
                fail_msg("%s: %s%s", line, out, err);
        }
    }
}

/* Pseudo-random weights are those of the graph as it came, whatever passes take away or bring in
 * between them and what computes with them. */
TEST(weights_outlive_passes)
{
    static const char graph[] =
        "graph g\ninput x f32 [2,3]\ninput v f32 [1,2,4,4]\nweight w f32 [5,3]\nweight k f32 "
        "[1]\nweight r "
        "f32 [1,3]\n"
        "weight h f32 [2,3]\nweight h2 f32 [2,3]\nweight h3 f32 [2,3]\nweight f f32 "
        "[2,2,1,1]\nweight image "
        "f32 [1,2,4,4]\nweight c f32 [1]\nweight u "
        "f32 [3,1]\n"
        "t = transpose(w)\na = matmul(x, t)\ne = expand(r) shape=[2,3]\nb = add(x, e)\nd = "
        "expand(k) "
        "shape=[2,3]\n"
        "m = mul(b, d)\no = tile(h) repeats=[1,1]\nn = mul(m, o)\ns1 = slice(h2) starts=[0] "
        "ends=[2] "
        "axes=[0]\nn2 = mul(n, s1)\ns2 = cast(h3) to=f32\nn3 = mul(n2, s2)\nj = matmul(n3, u)\nl = "
        "add(j, "
        "c)\n"
        "p = conv(v, f)\nq = add(p, image)\ny = relu(q)\noutput a\noutput l\noutput y\n";
    static const char *const changed[] = {"--layout auto",        "--optimise dot_transpose",
                                          "--optimise broadcast", "--optimise copy",
                                          "--optimise gemm_bias", "--optimise all --layout auto"};
    char line[300];

    folder_put("moved.graph", graph, sizeof graph - 1);
    assert_int_equal(run("run @/moved.graph -b ref -p pool --dump @/moved"), 0);
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        snprintf(
            line, sizeof line,
            "run @/moved.graph -b ref -p pool %s --expect a=@/moved/a.npy --expect l=@/moved/l.npy "
            "--expect y=@/moved/y.npy",
            changed[i]);
        if (run(line) != 0)
            fail_msg("%s: %s%s", changed[i], out, err);
    }
}

/* Lists below --data, their twins, and one that is not there. */
TEST(data_folders)
{
    static const char suite[] =
        "--backends none\n{data}/four.csv\n{data}/four.csv:twin=reversed\n{data}/none.csv\n"
        "{data}/none.csv:twin=reversed\n{data}/six.csv:twin=shuffled\n";
    static const char *const name[] = {"four.csv", "four.csv:twin=reversed",
                                       "six.csv:twin=shuffled"};
    static const uint64_t planned[] = {10, 10, 15};
    char path[600], *second;
    mpl_rows rows = {0};
    uint64_t bytes;

    folder_put("lists.suite", suite, sizeof suite - 1);
    assert_int_equal(run("bench @/lists.suite --planners exact --data tests/data -o @/lists.jsonl"),
                     0);
    second = strstr(err, "skip: no ");
    assert_non_null(second);
    assert_null(strstr(second + 1, "skip: no "));
    snprintf(path, sizeof path, "%s/lists.jsonl", folder);
    assert_ok(ctx, mpl_rows_read(ctx, path, &rows));
    assert_int_equal(rows.n, 3);
    for (uint32_t i = 0; i < rows.n; i++) {
        assert_string_equal(mpl_record_get_text(rows.row[i], MPL_FIELD_graph), name[i]);
        assert_true(mpl_record_get_int(rows.row[i], MPL_FIELD_planned_bytes, &bytes));
        assert_int_equal(bytes, planned[i]);
    }
    mpl_rows_fini(ctx, &rows);
    setenv("MEMPLAN_DATA", "/nowhere", 1);
    assert_int_equal(run("bench buffers -o @/absent.jsonl"), 0);
    unsetenv("MEMPLAN_DATA");
    assert_non_null(strstr(err, "skip: no /nowhere/minimalloc/A.1048576.csv"));
    assert_non_null(strstr(out, "\n0 rows in "));
    assert_int_equal(run("bench buffers -q --planners frob"), 2);
    assert_int_equal(run("bench @/lists.suite -q --data @/nowhere"), 2);
}

TESTS_WITHIN(begin, folder_remove, wrong_input_is_one_line, damaged_onnx, bound_inputs_by_index,
             help_of_everything, documents_are_up_to_date, lists_name_what_there_is,
             plans_survive_files, plans_that_need_no_pair, tampered_plans_are_refused,
             tampered_bindings_are_refused, plan_files_are_replaced_whole, limits_are_lifted,
             runs_report_what_they_did, export_and_plot, export_onnx, tables_from_rows,
             failures_are_rows, times_are_drawn, only_executed_rows_are_drawn,
             rows_of_a_loop_that_ends_early, rows_of_all_kinds_of_loops, folded_weights,
             weights_outlive_passes, data_folders, own_options, tables_of_unlike_rows_are_apart)
