/* test_harness_check.c -- the regression gate as CI uses it: exit statuses, the last line, rows,
 * JUnit, baselines. */
#include "tests/harness/run_program.h"

#include <sys/stat.h>

#include "harness/rows/record.h"

#define NNC  MPL_SHARED "/libnnc"
#define DATA "tests/data/import/"

static int begin(void)
{
    return program_begin("check");
}

/* Logs both outputs together. */
static int run_check(const char *arguments)
{
    return run_logged(arguments, true);
}

static const char *last_line(void)
{
    size_t n = strlen(out);

    if (n > 0 && out[n - 1] == '\n')
        out[--n] = '\0';
    return strrchr(out, '\n') != NULL ? strrchr(out, '\n') + 1 : out;
}

/* Runs each row; the last line must contain both texts. */
static void check_all(size_t n, const char *const (*row)[4])
{
    for (size_t i = 0; i < n; i++) {
        int got = run_check(row[i][0]);
        char all[sizeof out];

        memcpy(all, out, sizeof all);
        if (got != row[i][1][0] - '0' || strstr(last_line(), row[i][2]) == NULL ||
            strstr(last_line(), row[i][3]) == NULL)
            fail_msg("memplan %s: exit status %d: %s", row[i][0], got, all);
    }
}
#define CHECK_ALL(table) check_all(sizeof table / sizeof *table, table)

/* ---- production's recorded plans ---- */

TEST(production_plans)
{
    static const char *const table[][4] = ROW(
        {"check --plan " NNC "/densenet121_1_infer.tensors.csv --against optimum --tolerance 1%",
         "1", "beyond", "8830976 bytes, 22.22 % above the optimum of 7225344"},
        {"check --plan " NNC "/densenet121_1_infer.tensors.csv --tolerance 23%", "0", "check: ok",
         "22.22 %"},
        {"check --plan " NNC "/resnet50_1_infer.tensors.csv --against optimum --tolerance 1%", "0",
         "check: ok: resnet50_1_infer by libnnc", "13647872 bytes, at the optimum"},
        {"check --plan " NNC "/inceptionv3_1_infer.tensors.csv", "1", "beyond", "25.00 %"},
        {"check --plan " NNC "/lstm_32_infer.tensors.csv", "0", "check: ok", "at the optimum"});

    skip_without(NNC);
    CHECK_ALL(table);
    /* the full report precedes the last line */
    run_check("check --plan " NNC "/densenet121_1_infer.tensors.csv --tolerance 23%");
    assert_non_null(strstr(out, "305 buffers, parallel"));
    assert_non_null(strstr(out, "gap +22.22 %"));
}

/* Fault: the verifier is not called, a name is lost, a reader accepts anything. */
TEST(damaged_plans)
{
    static const char *const table[][4] =
        ROW({"check --plan @/moved.tensors.csv", "1", "refused", "'#"},
            {"check --plan @/cut.tensors.csv", "2", "cut.tensors.csv:", "whole numbers"},
            {"check --plan @/fewer.tensors.csv", "2", "before.csv:", "ids"});
    char *text = NULL, *before = NULL, *moved;
    size_t size, n;

    skip_without(NNC);
    assert_ok(ctx, mpl_file_read(ctx, NNC "/resnet50_1_infer.tensors.csv", &text, &size));
    assert_ok(ctx, mpl_file_read(ctx, NNC "/resnet50_1_infer.before.csv", &before, &n));
    folder_put_text("moved.before.csv", before);
    folder_put_text("cut.before.csv", before);
    folder_put_text("fewer.before.csv", before);
    /* moves the last tensor into the middle of the first */
    moved = malloc(size + 100);
    strcpy(moved, text);
    moved[size - 1] = '\0';
    strcpy(strrchr(moved, '\n') + 1, "108,4096,0,64\n");
    folder_put_text("moved.tensors.csv", moved);
    text[size - 3] = '\0'; /* in or before the last number */
    *strrchr(text, ',') = '\0';
    folder_put_text("cut.tensors.csv", text);
    *(strrchr(text, '\n') + 1) = '\0';
    folder_put_text("fewer.tensors.csv", text);
    CHECK_ALL(table);
    free(moved);
    mpl_free_each(ctx, text, before);
}

/* ---- every format, every verdict ---- */

/* Writes a text with its first `from` replaced. */
static void put_changed(const char *name, const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    char *now = malloc(strlen(text) + strlen(to) + 1);

    assert_non_null(at);
    sprintf(now, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    folder_put_text(name, now);
    free(now);
}

TEST(verdicts)
{
    static const char *const table[][4] = ROW(
        {"check --plan " DATA "small.offsets.csv", "1", "beyond: small by minimalloc: 224 bytes",
         "16.67 % above the optimum of 192 (allowed 0 %)"},
        {"check --plan " DATA "small.offsets.csv --tolerance 16.6667%", "0", "check: ok",
         "allowed 16.6667 %"},
        {"check --plan " DATA "small.offsets.csv --tolerance 16.6666%", "1", "beyond",
         "allowed 16.6666 %"},
        {"check --plan " DATA "small.xla.txt", "0", "small by xla: 640 bytes",
         "at the optimum of 640"},
        {"check --plan @/padded.txt", "1", "padded by xla: 704 bytes",
         "10.00 % above the optimum of 640"},
        {"check --plan @/freed.json", "1", "freed by pytorch: 8192 bytes",
         "86.35 % above the bound of 4396"},
        {"check --plan " DATA "blocks.xla.txt", "0", "blocks by xla: 96 bytes",
         "at the optimum of 96"},
        {"check --plan " DATA "loop.xla.txt", "0", "loop by xla: 224 bytes", "at the optimum"},
        {"check --plan " DATA "loop.xla.txt --align 32", "1", "beyond", "of 192"},
        {"check --plan " DATA "loop.xla.txt --align 128", "1", "refused", "'other'"},
        {"check --plan " DATA "loop.xla.txt --align 24", "2", "--align", "power of two"},
        {"check --plan @/empty.txt", "0", "ok: empty by xla: 0 bytes", "at the optimum of 0"},
        {"check --plan @/padding.txt", "0", "4.35 % above the optimum of 92",
         "the least that its alignment of 32 bytes allows"},
        {"check --plan @/padding.txt --align 4", "1", "beyond", "of 92"},
        /* jit of sum(tanh(x @ w) @ v), x of 17 x 5, by JAX 0.10.2: no false alarm */
        {"check --plan " DATA "chain.xla.txt", "0", "ok: chain by xla: 1556 bytes",
         "the least that its alignment of 64 bytes allows"},
        {"check --plan " DATA "small.tflm.txt", "0", "small by tflm: 192 bytes", "at the optimum"},
        {"check --plan " DATA "old.tflm.txt", "1", "old by tflm: 224 bytes", "16.67 %"},
        {"check " DATA "tensors.csv --plan " DATA "small.offline.bin", "0", "by offline: 160 bytes",
         "at the optimum"},
        {"check --plan " DATA "small.offline.bin", "2", "small.offline.bin", "GRAPH"},
        {"check --plan " DATA "small.pytorch.json", "1", "small by pytorch: 6144 bytes",
         "39.76 % above the optimum of 4396"},
        {"check --plan " DATA "small.tensors.csv", "1", "small by libnnc: 168 bytes",
         "2.44 % above the optimum of 164"},
        {"check --plan tests/data/serial.plan.json --tolerance 1000%", "0", "check: ok", ""},
        {"check --plan tests/data/wasted_pool.plan.json", "1", "pool 'workspace', 96 bytes",
         "100.00 % above the optimum of 48"},
        {"check --plan tests/data/wasted_pool.plan.json --tolerance 100%", "0", "check: ok", ""},
        /* bytes reserved of the first pool are none of the second's */
        {"check --plan " DATA "small.dsa_solver.json", "1", "pool 'L0B', 40 bytes",
         "25.00 % above the optimum of 32"},
        {"check mlp -p spill:capacities=2KiB/-,cost=1/3", "4", "several memories", "certify"},
        {"check mlp --plan @/own.json", "0", "check: ok: mlp by pool: 4096 bytes",
         "at the optimum"},
        {"check --plan @/own.json", "0", "check: ok: mlp by pool: 4096 bytes", "at the optimum"},
        {"check mlp:hidden=64 --plan @/own.json", "2", "another problem", ""},
        {"check --plan @/wide.json", "0", "check: ok: lstm by nnc_2019", "at the"},
        {"check --plan @/torn.json", "2", "torn.json:", "JSON"},
        {"check mlp -p pool", "0", "check: ok: mlp by pool: 4096 bytes", "at the optimum"},
        {"check mlp -p none", "1", "beyond: mlp by none", "above the optimum"},
        {"check @/other.csv --plan " DATA "small.offsets.csv", "2", "another problem", "other.csv"},
        {"check @/like.csv --plan " DATA "small.offsets.csv", "2", "another problem", "like.csv"},
        {"check --plan @/overlap.csv", "1", "refused: overlap by minimalloc", "'left' and 'right'"},
        {"check --plan @/cut.csv", "2", "cut.csv:3", ""},
        {"check --plan @/missing.csv", "2", "missing.csv", ""},
        {"check --plan " DATA "small.offsets.csv --tolerance 1", "2", "--tolerance", "'1'"},
        {"check --plan " DATA "small.offsets.csv --tolerance -1%", "2", "--tolerance", ""},
        {"check --plan " DATA "small.offsets.csv --against nothing", "2", "--against", "nothing"},
        {"check --plan " DATA "small.offsets.csv -p pool", "2", "not both", ""},
        {"check mlp", "2", "--planner", ""}, {"check -p pool", "2", "GRAPH", ""});
    char *xla = NULL, *pytorch = NULL, torn[16384];
    size_t size;

    assert_ok(ctx, mpl_file_read(ctx, DATA "small.xla.txt", &xla, &size));
    assert_ok(ctx, mpl_file_read(ctx, DATA "small.pytorch.json", &pytorch, &size));
    put_changed("empty.txt", xla, "preallocated-temp", "thread-local");
    put_changed("padded.txt", xla, "size 640", "size 704");
    put_changed("freed.json", pytorch, "segment_alloc", "segment_free");
    mpl_free_each(ctx, xla, pytorch);
    assert_int_equal(run_check("plan mlp -p pool -q -o @/own.json"), 0);
    assert_int_equal(run_check("plan lstm -p nnc_2019 --safety parallel -q -o @/wide.json"), 0);
    assert_int_equal(run_check("plan mlp -p none -q -o @/torn.json"), 0);
    folder_read("torn.json", torn, sizeof torn);
    torn[strlen(torn) / 2] = '\0';
    folder_put_text("torn.json", torn);
    folder_put_text("other.csv", "id,lower,upper,size\na,0,2,96\n");
    folder_put_text("like.csv", "id,lower,upper,size\na,0,2,96\nb,1,3,64\nc,2,4,96\nd,2,4,31\n");
    folder_put_text("overlap.csv",
                    "id,lower,upper,size,offset\nleft,0,2,96,0\nfar,2,4,9,0\nright,1,3,64,95\n");
    folder_put_text("padding.txt", "allocation 0: size 96, preallocated-temp:\n"
                                   "value: <0 a @0> (size=32,offset=64): x\n"
                                   "value: <1 b @0> (size=60,offset=0): x\n"
                                   "value: <2 c @0> (size=28,offset=32): x\n"
                                   "BufferLiveRange:\na{}:0-1\nb{}:0-1\nc{}:2-3\n");
    folder_put_text("cut.csv", "id,lower,upper,size,offset\nleft,0,2,96,0\nright,1,3");
    CHECK_ALL(table);
    assert_int_equal(run_check("check mlp -p pool -q"), 0);
    assert_string_equal(out, "");
}

/* Fault: a plan of a folder is missed, the worst is not the status, a companion is taken for a
 * plan. */
TEST(folders)
{
    static const char *const table[][4] =
        ROW({"check @/some", "2", "4 plans: 2 ok, 1 above", "1 unread; 2 other files"},
            {"check @/some --tolerance 20%", "2", "4 plans: 3 ok, 0 above", ""},
            {"check @/none", "2", "no plan among its 1 files", "memplan list formats"},
            {"check @/some -p pool", "2", "folder of plans", "--planner"},
            {"check @/some/other", "2", "no plan among its 0 files", ""});
    char *text = NULL;
    size_t size;

    assert_int_equal(mkdir(in_folder("some"), 0700), 0);
    assert_int_equal(mkdir(in_folder("some/other"), 0700), 0);
    assert_int_equal(mkdir(in_folder("none"), 0700), 0);
    assert_ok(ctx, mpl_file_read(ctx, DATA "small.offsets.csv", &text, &size));
    folder_put_text("some/a.csv", text);
    mpl_free(ctx, text);
    assert_ok(ctx, mpl_file_read(ctx, DATA "loop.xla.txt", &text, &size));
    folder_put_text("some/b.txt", text);
    folder_put_text("some/c.txt", text);
    strstr(text, "BufferLiveRange")[0] = '-';
    folder_put_text("some/d.txt", text);
    mpl_free(ctx, text);
    folder_put_text("some/notes.md", "nothing here\n");
    folder_put_text("none/notes.md", "nothing here\n");
    CHECK_ALL(table);
    /* every plan has its line before the last, by name */
    run_check("check @/some");
    assert_non_null(strstr(out, "check: beyond: a by minimalloc"));
    assert_true(strstr(out, "beyond: a by") < strstr(out, "check: ok: b by xla"));
    assert_non_null(strstr(out, "check: ok: c by xla"));
    assert_int_equal(run_check("check @/some --json"), 2);
    assert_non_null(strstr(out, "\"verdict\":\"beyond\""));
}

/* A plan far above the bound whose file claims optimality: no row repeats the claim, nor that so
 * many bytes are needed. */
TEST(claims_of_files_are_proved)
{
    static char text[16384], forged[16384];
    static const char *const command[] = {
        "verify mlp @/forged.json --json", "check --plan @/forged.json --against optimum --json",
        "run mlp --plan @/forged.json --backend ref --repeat 1 --json"};

    assert_int_equal(run_check("plan mlp -p none --backend ref -q -o @/honest.json"), 0);
    folder_read("honest.json", text, sizeof text);
    put_changed("forged.json", text, "\"claim\":\"feasible\"", "\"claim\":\"optimal\"");
    folder_read("forged.json", forged, sizeof forged);
    put_changed("forged.json", forged, "\"bound_bytes\":4096", "\"bound_bytes\":8232");
    folder_read("forged.json", forged, sizeof forged);
    put_changed("forged.json", forged, "{\"kind\":\"clique\",\"buffers\":[1,2]}", "null");
    for (size_t i = 0; i < sizeof command / sizeof *command; i++) {
        mpl_record *row = NULL;
        uint64_t bound = 0;

        run_check(command[i]);
        assert_non_null(strchr(out, '\n'));
        *strchr(out, '\n') = '\0';
        assert_ok(ctx, mpl_record_read(ctx, "row", out, strlen(out), &row));
        assert_string_equal(mpl_record_get_text(row, MPL_FIELD_claim), "feasible");
        assert_true(mpl_record_get_int(row, MPL_FIELD_bound_bytes, &bound));
        assert_int_equal(bound, 4096);
        mpl_record_free(ctx, row);
    }
}

/* A list whose search has no budget: the plan is above the bound, and nothing proves or refutes a
 * better one. */
TEST(undecided_is_three)
{
    mpl_record *row = NULL;

    assert_int_equal(run_check("check guillotine:n=200,seed=3 -p portfolio --budget 1 --json"), 3);
    assert_non_null(strstr(last_line(), "check: undecided"));
    assert_non_null(strstr(last_line(), "above the bound of 1048576"));
    assert_non_null(strstr(last_line(), "best plan known"));
    *strchr(out, '\n') = '\0';
    assert_ok(ctx, mpl_record_read(ctx, "row", out, strlen(out), &row));
    assert_string_equal(mpl_record_get_text(row, MPL_FIELD_verdict), "undecided");
    assert_true(mpl_record_is_null(row, MPL_FIELD_optimum_bytes));
    mpl_record_free(ctx, row);
}

/* A list whose optimum, 87, is four bytes above its peak live bytes. A search that runs out of
 * budget has proved a bound between the two, and the plan is compared with that. Fault: the
 * search's own bound is ignored. */
TEST(what_a_search_proved_counts)
{
    bool between = false;

    folder_put_text(
        "raised.csv",
        "id,lower,upper,size\n"
        "a,3,5,13\nb,2,4,30\nc,4,7,41\nd,5,7,42\ne,1,2,40\nf,3,4,8\ng,2,5,15\nh,1,3,32\n");
    for (int budget = 500; budget < 4000 && !between; budget += 500) {
        char arguments[100];
        const char *bound;

        snprintf(arguments, sizeof arguments, "check @/raised.csv -p none --budget %d", budget);
        assert_int_equal(run_check(arguments), 1);
        bound = strstr(last_line(), "above the bound of ");
        between = bound != NULL && strtoul(bound + 19, NULL, 10) > 83 &&
                  strtoul(bound + 19, NULL, 10) < 87;
    }
    assert_true(between);
    assert_int_equal(run_check("check @/raised.csv -p none"), 1);
    assert_non_null(strstr(last_line(), "above the optimum of 87"));
}

/* ---- machines ---- */

TEST(rows_and_junit)
{
    static const struct {
        const char *arguments;
        int status;
        const char *verdict, *junit, *has;
    } table[] = ROW({"check --plan " DATA "small.xla.txt", 0, "ok", "failures=\"0\" errors=\"0\"",
                     "<system-out>check: ok: small"},
                    {"check --plan " DATA "small.offsets.csv", 1, "beyond",
                     "failures=\"1\" errors=\"0\"", "<failure type=\"beyond\""},
                    {"check --plan @/overlap.csv", 1, "refused", "failures=\"1\" errors=\"0\"",
                     "&#39;l&lt;&amp;&gt;&#39; and &#39;r&quot;?&#39;"},
                    {"check --plan @/cut.csv", 2, NULL, "failures=\"0\" errors=\"1\"",
                     "<error type=\"bad input\""});
    char arguments[300], xml[4096];

    folder_put_text("overlap.csv",
                    "id,lower,upper,size,offset\nl<&>,0,2,96,0\nr\"\xff,1,3,64,95\n");
    folder_put_text("cut.csv", "id,lower,upper,size,offset\nleft,0,2,96,0\nright,1,3");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        mpl_record *row = NULL;
        uint64_t planned;

        snprintf(arguments, sizeof arguments, "%s --json --junit @/gate.xml", table[i].arguments);
        assert_int_equal(run_check(arguments), table[i].status);
        folder_read("gate.xml", xml, sizeof xml);
        if (strstr(xml, table[i].junit) == NULL || strstr(xml, table[i].has) == NULL)
            fail_msg("%s: %s", table[i].arguments, xml);
        assert_non_null(strstr(xml, "</testsuites>"));
        if (table[i].verdict == NULL)
            continue;
        *strchr(out, '\n') = '\0';
        assert_ok(ctx, mpl_record_read(ctx, "row", out, strlen(out), &row));
        assert_string_equal(mpl_record_get_text(row, MPL_FIELD_verdict), table[i].verdict);
        assert_true(mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned) ==
                    (strcmp(table[i].verdict, "refused") != 0));
        mpl_record_free(ctx, row);
    }
    assert_int_equal(run_check("check --plan " DATA "small.xla.txt --junit @/no/such/gate.xml"), 2);
}

/* ---- baselines ---- */

TEST(baselines)
{
    static const char *const table[][4] =
        ROW({"check mlp -p pool --against @/mlp.json", "0", "check: ok", "at the baseline of 4096"},
            {"check mlp -p pool --against @/more.json", "0", "check: improved",
             "below the baseline of 8192"},
            {"check mlp -p pool --against @/less.json", "1", "beyond",
             "100.00 % above the baseline of 2048"},
            {"check mlp -p pool --against @/less.json --tolerance 100%", "0", "check: ok",
             "allowed 100 %"},
            {"check mlp -p pool --against @/proof.json", "1", "impossible",
             "below the proven optimum of 4097"},
            {"check mlp -p best_fit --against @/mlp.json", "2", "no plan by best_fit", "update"},
            {"check mlp:hidden=64 -p pool --against @/mlp.json", "2", "no plan by pool", "update"},
            {"check mlp -p pool --against @/cut.json", "2", "cut.json:", "cut"},
            {"check mlp -p pool --against @/torn.json", "2", "torn.json:2", "row"},
            {"check mlp -p pool --against @/keyless.json", "2", "keyless.json:2", "problem_hash"},
            {"check mlp -p pool --against " DATA "small.offline.json", "2", "offsets", ""},
            {"check --plan " DATA "small.offsets.csv --against @/plans.json", "0", "check: ok",
             "at the baseline of 224"},
            {"check --plan " DATA "small.pytorch.json --against @/plans.json", "0", "check: ok",
             "baseline of 6144"},
            {"baseline frob", "2", "frob", "update"}, {"baseline update mlp lstm", "2", "-o", ""},
            {"baseline update no_such_graph -o @/x.json", "2", "no_such_graph", ""},
            {"baseline update @/overlap.csv -o @/x.json", "1", "left", "right"});
    char first[4096], again[4096], both[4096];

    folder_put_text("overlap.csv", "id,lower,upper,size,offset\nleft,0,2,96,0\nright,1,3,64,95\n");
    assert_int_equal(run_check("baseline update mlp --planners pool,none -o @/mlp.json"), 0);
    assert_non_null(strstr(out, "2 plans"));
    folder_read("mlp.json", first, sizeof first);
    assert_int_equal(run_check("baseline update mlp --planners none,pool -o @/again.json"), 0);
    folder_read("again.json", again, sizeof again);
    assert_string_equal(first, again);
    assert_null(strstr(first, "_ns"));
    if (run_check("baseline update mlp -o @/all.json") != 0) /* planners of one arena */
        fail_msg("%s", out);
    folder_put_text("one.suite",
                    "--planners none,pool\n--safety serial\n{data}/no/such.csv\nmlp\n");
    assert_int_equal(run_check("baseline update @/one.suite mlp -o @/both.json"), 0);
    assert_non_null(strstr(out, "skip: no"));
    folder_read("both.json", both, sizeof both);
    assert_string_equal(first, both);
    put_changed("more.json", first, "\"pool\", \"claim\": \"optimal\", \"planned_bytes\": 4096",
                "\"pool\", \"claim\": \"optimal\", \"planned_bytes\": 8192");
    put_changed("less.json", first, "\"pool\", \"claim\": \"optimal\", \"planned_bytes\": 4096",
                "\"pool\", \"claim\": \"optimal\", \"planned_bytes\": 2048");
    *strstr(first, "\n]}") = '\0';
    folder_put_text("cut.json", first);
    put_changed("proof.json", again, "\"optimum_bytes\": 4096}\n", "\"optimum_bytes\": 4097}\n");
    put_changed("torn.json", again, "\"none\", ", "\"none\" ");
    put_changed("keyless.json", again, "problem_hash", "hash");
    assert_int_equal(run_check("baseline update " DATA "small.offsets.csv " DATA
                               "small.pytorch.json " DATA "old.tflm.txt -o @/plans.json"),
                     0);
    CHECK_ALL(table);
}

/* Fault: the planners no longer meet a committed baseline. Only the fast planners of the smoke
 * suite. */
TEST(committed_baseline_holds)
{
    static const char *const graphs[] = {"mlp", "mnist_conv:batch=2",
                                         "lstm:layers=1,steps=4,hidden=32,batch=2",
                                         "resnet18:image=64"},
                             *const planners[] = {"pool", "greedy_size", "best_fit", "nnc_2019"};
    char arguments[200];

    for (size_t i = 0; i < 16; i++) {
        snprintf(arguments, sizeof arguments, "check %s -p %s --against smoke", graphs[i / 4],
                 planners[i % 4]);
        if (run_check(arguments) != 0)
            fail_msg("memplan %s: %s", arguments, out);
    }
}

TESTS_WITHIN(begin, folder_remove, production_plans, damaged_plans, verdicts, folders,
             claims_of_files_are_proved, undecided_is_three, what_a_search_proved_counts,
             rows_and_junit, baselines, committed_baseline_holds)
