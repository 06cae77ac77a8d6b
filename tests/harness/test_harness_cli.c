/* test_harness_cli.c -- the program as users run it: exit statuses, one-line errors, help. */
#include "tests/harness/run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "harness/cli/command.h"
#include "harness/rows/rows.h"

#define LIGHT   MPL_SHARED "/onnx-light/light_resnet50.onnx"
#define TRAINED "mlp:layers=4,batch=16,hidden=32,mode=train"
#define SMALL   "mlp:layers=1,input=4,hidden=4,classes=2"

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
    {"show a b", 2, "too many"},
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
    {"plan mlp:mode=train --recompute revolve", 2, "no loop: revolve keeps a part"},
    {"plan gru:form=while,mode=train --recompute revolve:0", 2, "as in revolve:10"},
    {"plan gru:form=while,mode=train --recompute sqrt:60%", 2, "takes no budget"},
    {"plan gru:form=while,mode=train --recompute budget:60%", 3, "is not proved"},
    {"plan gru:form=while,mode=train --recompute budget:9%,loops=no", 2, "loops=no is not"},
    {"plan gru:form=while,mode=train --recompute budget:9%,loops=sqrt:4", 2, "sqrt:4 is not"},
    {"plan gru:form=while,mode=train --recompute sqrt:loops=sqrt", 2, "by the method"},
    {"plan mlp:mode=train --recompute budget:90%,loops=sqrt", 2, "has no loop"},
    {"plan gru:form=while --recompute sqrt", 2, "no loop of it has a tape"},
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
    {"run tests/data/opaque.graph -b ref -p pool", 4, "operation 'a' (exp) is opaque"},
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
    {"export -f csv", 2, "GRAPH is missing"},
    {"export -f tflite", 2, "is missing"},
    {"export -f c-template", 2, "no template"},
    {"export -f csv --plan @/missing.pte", 2, "missing.pte"},
    {"list frob", 2, "frob"},
};

/* Fault: a wrong exit status, a message of several lines, a crash. */
TEST(wrong_input_is_one_line)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        folder_put(files[i].name, files[i].text, strlen(files[i].text));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int got = run("%s", wrong[i].arguments);

        if (got != wrong[i].status)
            fail_msg("memplan %s: exit status %d, not %d: %s", wrong[i].arguments, got,
                     wrong[i].status, err);
        check_error(wrong[i].arguments);
        if (wrong[i].says != NULL && strstr(err, wrong[i].says) == NULL)
            fail_msg("memplan %s: does not say '%s': %s", wrong[i].arguments, wrong[i].says, err);
    }
}

/* A plan of another allocator with its own problem, as a list: what it is read as again. */
TEST(dumps_become_lists)
{
    assert_int_equal(run("export --plan tests/data/import/small.iree.mlir -f csv"), 0);
    assert_string_equal(out, "id,lower,upper,size,alignment,offset\n0.1,0,2,256,64,0\n"
                             "0.2,1,3,100,64,256\n0.3,2,4,256,64,0\n");
}

/* Fault: a limit that refuses small input or stays when lifted; a plan that does a run's work. */
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
        if (run("%s", fine[i]) != 0)
            fail_msg("memplan %s: %s", fine[i], err);
    assert_int_equal(run("run @/few.graph -b ref -p pool"), 3);
}

/* A damaged model is bad input, or after a bit flip another model; it never crashes. */
static void check_damaged(const char *arguments, bool cut, size_t at)
{
    int got = run("%s", arguments);

    if (got != 2 && (cut || got != 0))
        fail_msg("%s, %s at %zu: exit status %d: %s", arguments, cut ? "cut" : "flipped", at, got,
                 err);
    if (got == 2)
        check_error(arguments);
}

/* A real model, or one of the zoo if missing, cut at 80 places, and with one bit flipped at 120. */
TEST(damaged_onnx)
{
    const char *model = LIGHT;
    owned_memory char *data = NULL;
    size_t size;

    if (access(model, R_OK) != 0) {
        assert_int_equal(run("export " SMALL " -f onnx -p none -o @/whole.onnx"), 0);
        model = in_folder("whole.onnx");
    }
    assert_ok(ctx, mpl_file_read(ctx, model, &data, &size));
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
}

/* A list that gzip packed is planned; cut off, it is bad input. */
TEST(packed_lists)
{
    owned_memory char *data = NULL;
    size_t size;

    assert_int_equal(run("plan tests/data/trace.csv.gz -p greedy_size"), 0);
    assert_ok(ctx, mpl_file_read(ctx, "tests/data/trace.csv.gz", &data, &size));
    folder_put("cut.csv.gz", data, size - 1);
    check_damaged("plan @/cut.csv.gz -p greedy_size", true, size - 1);
}

/* Fault: an index counts only the inputs left after others decided shapes: here the third. */
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
        assert_int_equal(run("%s", arguments), 0);
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

/* Fault: a generated document that is out of date with its table. */
TEST(documents_are_up_to_date)
{
    static const struct {
        const char *what, *path;
    } table[] = {{"list fields", "results/SCHEMA.md"}, {"list options", "harness/cli/OPTIONS.md"}};

    for (size_t i = 0; i < 2; i++) {
        owned_memory char *data = NULL;
        size_t size;

        assert_int_equal(run("%s", table[i].what), 0);
        assert_ok(ctx, mpl_file_read(ctx, table[i].path, &data, &size));
        if (strcmp(data, out) != 0)
            fail_msg("%s is stale: make docs", table[i].path);
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
        assert_int_equal(run("%s", arguments), 0);
        assert_non_null(strstr(out, table[i].has));
        snprintf(arguments, sizeof arguments, "list %s --json", table[i].what);
        assert_int_equal(run("%s", arguments), 0);
        assert_int_equal(out[0], '{');
    }
    assert_int_equal(run("list graphs"), 0);
    assert_non_null(
        strstr(out, "form=unroll  a cell for each step, or a loop over the cell (unroll|while)"));
}

TESTS_OF_PROGRAM("cli", wrong_input_is_one_line, dumps_become_lists, limits_are_lifted,
                 damaged_onnx, packed_lists, bound_inputs_by_index, help_of_everything,
                 documents_are_up_to_date, lists_name_what_there_is)
