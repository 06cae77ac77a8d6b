/* test_harness_plan_files.c -- plans through files: unchanged, edited and tampered with; what their
 * runs report; exported graphs. */
#include "tests/harness/run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "harness/cli/command.h"
#include "harness/rows/rows.h"

#define LIGHT   MPL_SHARED "/onnx-light/light_resnet50.onnx"
#define TRAINED "mlp:layers=4,batch=16,hidden=32,mode=train"
#define SMALL   "mlp:layers=1,input=4,hidden=4,classes=2"

/* ---- plans ---- */

/* Changes the first number after the `skip`-th following `key` in a plan file. */
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

/* Plan, verify, run from the file; with any set of options the file alone must be enough. */
TEST(plans_survive_files)
{
    static const char *const options[] = ROW(
        "-p greedy_size", "-p pool:level=0 --order dfs", "-p owl --in-place off --views off",
        "-p best_fit --pin weights,outputs", "-p best_fit --pin none",
        "-p greedy_size --pin inputs --pools weights,state", "-p mxnet --backend ref",
        "-p first_fit --backend cpu", "-p greedy_size --backend cpu --workspaces plan",
        "-p none --capacity 1MiB", "-p nnc_2019 --safety parallel",
        "-p greedy_size --safety streams:2", "-p best_fit --safety streams:3:chain --order bfs");
    char arguments[300];

    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        snprintf(arguments, sizeof arguments,
                 "plan lstm:layers=1,steps=3,hidden=8,batch=2 %s -o @/plan.json", options[i]);
        if (run("%s", arguments) != 0)
            fail_msg("memplan %s: %s", arguments, err);
        assert_non_null(strstr(out, "verified"));
        if (run("verify lstm:layers=1,steps=3,hidden=8,batch=2 @/plan.json") != 0)
            fail_msg("verify after %s: %s", options[i], err);
        assert_int_equal(run("verify lstm:layers=1,steps=4,hidden=8,batch=2 @/plan.json"), 2);
        assert_true(strstr(err, "another problem") != NULL ||
                    strstr(err, "does not cover the graph") != NULL); /* by streams */
        snprintf(arguments, sizeof arguments,
                 "run lstm:layers=1,steps=3,hidden=8,batch=2 --plan @/plan.json --repeat 1 "
                 "--checked %s",
                 strstr(options[i], "--backend") != NULL ? "" : "--backend ref --in-place on");
        if (strstr(options[i], "off") == NULL && run("%s", arguments) != 0)
            fail_msg("memplan %s after %s: %s", arguments, options[i], err);
    }
}

/* Fault: a file without in-place pairs is read as one planned without them, although they were all
 * decided earlier. */
TEST(plans_that_need_no_pair)
{
    static const char *const graphs[] = {"offset2bbox:boxes=20", "yolo_boxes:cells=4",
                                         "ssd_boxes:boxes=20"};
    static const char *const options[] = {"", "--in-place off", "--safety parallel"};
    char arguments[200];

    for (size_t i = 0; i < 9; i++) {
        snprintf(arguments, sizeof arguments, "plan %s -p greedy_size -o @/plan.json %s",
                 graphs[i / 3], options[i % 3]);
        assert_int_equal(run("%s", arguments), 0);
        snprintf(arguments, sizeof arguments, "verify %s @/plan.json", graphs[i / 3]);
        if (run("%s", arguments) != 0)
            fail_msg("verify after %s %s: %s", graphs[i / 3], options[i % 3], err);
    }
}

/* Fault: a plan file is trusted. */
TEST(tampered_plans_are_refused)
{
    assert_int_equal(run("plan " SMALL " -p none -o @/plan.json"), 0);
    assert_int_equal(run("verify " SMALL " @/plan.json"), 0);
    tamper("plan.json", "moved.json", "\"offset\":", " 64", 2); /* fc at its input's offset */
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

/* Replaces the first `from` after the first `behind` in a plan file. */
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

/* Where values lie round by round, and what is copied, is part of a plan with loops: a file that
 * contradicts it is refused. */
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
    assert_int_equal(run("%s", arguments), 0);
    snprintf(arguments, sizeof arguments, "verify %s @/loop.json", loop);
    assert_int_equal(run("%s", arguments), 0);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        edit("loop.json", "bound.json", edits[i].behind, edits[i].from, edits[i].with);
        snprintf(arguments, sizeof arguments, "verify %s @/bound.json", loop);
        if (run("%s", arguments) != 1 || strstr(err, edits[i].names) == NULL)
            fail_msg("%s for %s: %s", edits[i].with, edits[i].from, err);
        check_error("verify");
        snprintf(arguments, sizeof arguments, "run %s --plan @/bound.json -b ref", loop);
        assert_int_equal(run("%s", arguments), 1);
    }
    snprintf(arguments, sizeof arguments, "export %s -p first_fit --format csv -o @/loop.csv",
             loop);
    assert_int_equal(run("%s", arguments), 0);
    assert_non_null(strstr(err, "bindings"));
}

/* The same plan gives the same bytes; a failed write leaves the file as it was. */
TEST(plan_files_are_replaced_whole)
{
    char first[1 << 14], again[1 << 14];

    assert_int_equal(run("plan " SMALL " -p pool -o @/same.json"), 0);
    folder_read("same.json", first, sizeof first);
    assert_int_equal(run("plan " SMALL " -p frob -o @/same.json"), 2);
    folder_read("same.json", again, sizeof again);
    assert_string_equal(first, again);
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
    /* compared with one malloc per buffer: the same number of repeats, at least the live bytes */
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
    /* with a malloc of other settings it is a separate run and column; a missing one is not
     * compared */
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
    /* the other backend must reproduce these outputs; those of another seed differ */
    assert_int_equal(run("run mnist_conv:batch=1 -p pool -b ref --repeat 1 --dump @/dump -q"), 0);
    assert_int_equal(
        run("run mnist_conv:batch=1 -p owl -b cpu --repeat 1 --expect @/dump/prob.npy"), 0);
    assert_non_null(strstr(out, "expected: within"));
    assert_int_equal(run("run mnist_conv:batch=1 -p owl -b cpu --repeat 1 --weights random:7 "
                         "--expect @/dump/prob.npy"),
                     1);
    check_error("run --expect");
}

/* Exporters name values by numbers: a name that exists wins over an index. */
TEST(expected_outputs)
{
    static const struct {
        const char *options;
        int exit_status;
        const char *said;
    } rows[] = {
        {"--expect 0=@/dump/0.npy --expect y=@/dump/y.npy", 0, "within 0.0001"},
        {"--expect 1=@/dump/0.npy", 0, "within 0.0001"},
        {"--expect 1=@/dump/y.npy", 1, "not within 0.0001"},
        {"--expect @/dump/y.npy", 0, "within 0.0001"},
        {"--expect y=@/dump/y.npy:0", 0, "within 0 "},
        {"--expect y=@/dump/0.npy:1e3", 0, "within 1e+03"},
        {"--expect y=@/dump/0.npy:0,100", 0, "within 0 "},
        {"--expect y=@/dump/0.npy:0,1e-3", 1, "not within 0 "},
        {"--expect y=@/dump/0.npy:1e3 --expect 0=@/dump/y.npy:0.1", 1, "not within 0.1"},
        {"--input 1=@/dump/0.npy --expect y=@/dump/y.npy", 1, "not within"},
        {"--input 1=@/dump/0.npy --expect 0=@/dump/0.npy", 0, "within"},
        {"--input 0=@/dump/0.npy --expect y=@/dump/y.npy", 1, "not within"},
        {"--expect y=@/dump/y.npy:-1", 2, ""},
        {"--expect y=@/dump/y.npy:1,", 2, ""},
        {"--expect 2=@/dump/y.npy", 2, ""},
        {"--input 2=@/dump/y.npy", 2, ""},
    };

    folder_put_text("n.graph", "graph n\ninput 1 f32 [2]\ninput x f32 [2]\n"
                               "y = neg(1)\n0 = exp(x)\noutput y\noutput 0\n");
    assert_int_equal(run("run @/n.graph -p pool -b ref --repeat 1 --dump @/dump -q"), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int got = run("run @/n.graph -p pool -b ref --repeat 1 %s", rows[i].options);

        if (got != rows[i].exit_status || strstr(out, rows[i].said) == NULL)
            fail_msg("%s: exit status %d: %s%s", rows[i].options, got, out, err);
    }
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

/* A loop of at most 4 rounds that ends after the second: that many rows are written and compared,
 * and a reader of all rows is reported. */
TEST(rows_of_a_loop_that_ends_early)
{
    static const char text[] =
        "graph early\ninput x f32 [2]\nweight one f32 [] = splat 1\n"
        "weight limit f32 [] = splat 2.2\nblock body\n  param i i64 []\n  param a f32 [2]\n"
        "  b = add(a, one)\n  most = reduce_max(b) keepdims=0\n  go = less(most, limit)\n"
        "yield go, b, b\nlast, rows = while body(_, _, x) carried=1 trips=4\nr = neg(rows)\n"
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

/* Block bI of a loop that carries a, incremented in each round, and goes on while a is small. */
static void add_growing(FILE *f, int i, const char *scanned, const char *yields)
{
    fprintf(f, "block b%d\nparam i%d i64 []\nparam a%d f32 [2]\n%sc%d = add(a%d, one)\n", i, i, i,
            scanned, i, i);
    fprintf(f, "most%d = reduce_max(c%d) keepdims=0\ngo%d = less(most%d, limit)\n%s\n", i, i, i, i,
            yields);
}

/* Reports of consecutive loops: rows from the end on, none, all, those of a nested loop.
 *
 * Fault: rows of another loop, or from the other end, are reported. */
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
        "early     loop 'last' ran 2 of 4 rounds, output 'rows' has as many rows; loop 'low' ran 2 "
        "of 4 rounds, what reads 'back' sees 4 rows, zero where no round was; loop 'deep' ran 2 of "
        "4 rounds, what reads 'deep_rows' sees 4 rows, zero where no round was\n"));
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
    assert_int_equal(setenv("TMPDIR", "/no/such/folder", 1), 0); /* the folder of its script */
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

/* A model carries graph, weights and plan: run, verify and check use what was exported. */
TEST(export_onnx)
{
    static const char *const safety[] = {"serial", "parallel"};
    char command[400], text[1 << 12];

    for (size_t i = 0; i < sizeof safety / sizeof *safety; i++) {
        snprintf(command, sizeof command,
                 "export mnist_conv:batch=1 -f onnx -p nnc_2019 --safety %s -o @/m.onnx",
                 safety[i]);
        assert_int_equal(run("%s", command), 0);
        assert_int_equal(run("verify @/m.onnx @/m.onnx"), 0);
        assert_non_null(strstr(out, "verified"));
        assert_int_equal(run("diff @/m.onnx @/m.onnx"), 0);
        assert_int_equal(run_logged("check --plan @/m.onnx --tolerance 100%", false), 0);
        assert_int_equal(run("export @/m.onnx -f onnx-metadata -p none -o @/n.onnx"), 0);
        assert_int_equal(run("diff @/m.onnx @/n.onnx"), 1);
        snprintf(command, sizeof command,
                 "export @/n.onnx -f onnx-metadata -p nnc_2019 --safety %s -o @/o.onnx", safety[i]);
        assert_int_equal(run("%s", command), 0);
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

TESTS_OF_PROGRAM("plans", plans_survive_files, plans_that_need_no_pair, tampered_plans_are_refused,
                 tampered_bindings_are_refused, plan_files_are_replaced_whole,
                 runs_report_what_they_did, expected_outputs, rows_of_a_loop_that_ends_early,
                 rows_of_all_kinds_of_loops, export_and_plot, export_onnx)
