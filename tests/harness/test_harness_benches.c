/* test_harness_benches.c -- benches and what is computed from their rows: tables, times, weights,
 * data. */
#include "tests/harness/run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "harness/cli/command.h"
#include "harness/rows/rows.h"

#define LIGHT   MPL_SHARED "/onnx-light/light_resnet50.onnx"
#define TRAINED "mlp:layers=4,batch=16,hidden=32,mode=train"
#define SMALL   "mlp:layers=1,input=4,hidden=4,classes=2"

/* ---- benches ---- */

/* Tables that the bench prints, and the same tables from its rows. */
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

/* A graph that cannot be opened and a missing backend become rows; the bench goes on. */
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

/* Options on single lines of a suite: each row has its own, also with workers and on resuming; the
 * command line overrides them. */
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
        assert_int_equal(run("%s", line), 0);
        snprintf(path, sizeof path, "%s/own%s.jsonl", folder, k == 1 ? "_jobs" : "");
        assert_ok(ctx, mpl_rows_read(ctx, path, &rows));
        assert_int_equal(rows.n, 3);
        for (uint32_t i = 0; k != 1 && i < rows.n; i++) { /* workers finish in any order */
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

/* Rows of one graph under different options are different problems: each gets its own table and
 * bound. */
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

/* The times of executed rows, beside their work; not mixed across graphs, backends or builds. */
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

/* Fault: drawing a row that was not executed, or one of another graph, backend or planner;
 * combining unrelated rows. */
TEST(only_executed_rows_are_drawn)
{
    static const struct {
        const char *what, *row;
        bool first; /* must not count even when it precedes the others */
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

/* A pass folds into weights that --weights replaces: the outputs for that seed stay the same. */
TEST(folded_weights)
{
    static const char graph[] =
        "graph g\ninput x f32 [1,2,4,4]\nweight w f32 [3,2,1,1] = splat 1\n"
        "weight b f32 [3] = data 1 2 3\nweight p f32 [3] = splat 1\nweight q f32 [3] = splat 2\n"
        "weight f f32 [3,1,1] = splat 3\na = conv(x, w, b)\nc = mul(a, f)\n"
        "n = batch_norm(c, p, b, b, q)\ny = add(n, f)\noutput y\n";
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
            if (run("%s", line) != (k == 0 ? 0 : 1))
                fail_msg("%s: %s%s", line, out, err);
        }
    }
}

/* Pseudo-random weights are those of the original graph, whatever passes remove or insert. */
TEST(weights_outlive_passes)
{
    static const char graph[] =
        "graph g\ninput x f32 [2,3]\ninput v f32 [1,2,4,4]\nweight w f32 [5,3]\nweight k f32 [1]\n"
        "weight r f32 [1,3]\nweight h f32 [2,3]\nweight h2 f32 [2,3]\nweight h3 f32 [2,3]\n"
        "weight f f32 [2,2,1,1]\nweight image f32 [1,2,4,4]\nweight c f32 [1]\nweight u f32 [3,1]\n"
        "t = transpose(w)\na = matmul(x, t)\ne = expand(r) shape=[2,3]\nb = add(x, e)\n"
        "d = expand(k) shape=[2,3]\nm = mul(b, d)\no = tile(h) repeats=[1,1]\nn = mul(m, o)\n"
        "s1 = slice(h2) starts=[0] ends=[2] axes=[0]\nn2 = mul(n, s1)\ns2 = cast(h3) to=f32\n"
        "n3 = mul(n2, s2)\nj = matmul(n3, u)\nl = add(j, c)\np = conv(v, f)\nq = add(p, image)\n"
        "y = relu(q)\noutput a\noutput l\noutput y\n";
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
        if (run("%s", line) != 0)
            fail_msg("%s: %s%s", changed[i], out, err);
    }
}

/* Lists below --data, their twins, and a missing one. */
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

TESTS_OF_PROGRAM("benches", tables_from_rows, failures_are_rows, own_options,
                 tables_of_unlike_rows_are_apart, times_are_drawn, only_executed_rows_are_drawn,
                 folded_weights, weights_outlive_passes, data_folders)
