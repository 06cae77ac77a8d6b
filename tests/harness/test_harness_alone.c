/* test_harness_alone.c -- the program as freshly installed: only the options the task needs, no
 * environment, no project around it; and its error messages. */
#include "tests/support/folder.h"

#include <jansson.h>

static char program[4096];
static char out[1 << 17], err[1 << 14]; /* of the last run */

/* Exit status of `[NAME=VALUE ..] memplan ARGUMENTS` in the test's folder. */
static int run_with(const char *environment, const char *arguments)
{
    char command[9000];
    int how;

    snprintf(command, sizeof command, "cd '%s' && env %s '%s' %s >out 2>err </dev/null", folder,
             environment, program, arguments);
    how = system(command);
    folder_read("out", out, sizeof out);
    folder_read("err", err, sizeof err);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static int run(const char *arguments)
{
    return run_with("", arguments);
}

static void assert_said(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("not said: '%s', but: '%.600s'", part, text);
}

TEST(run_needs_no_backend)
{
    assert_int_equal(run("run mlp"), 0);
    assert_said(out, "graph     mlp on cpu (oneDNN");
    assert_int_equal(run("plan mlp -p pool --backend ref -o ref.json -q"), 0);
    assert_int_equal(run("run mlp --plan ref.json"), 0);
    assert_said(out, "graph     mlp on ref");
}

/* Checks how long an OpenMP thread spins before it sleeps, as OpenMP read it: the last line is of
 * the process that executes. */
TEST(waiting_threads_sleep)
{
    static const struct {
        const char *environment, *arguments, *spins;
    } table[] =
        ROW({"-u OMP_WAIT_POLICY", "run mlp", "GOMP_SPINCOUNT = '0'"},
            {"-u OMP_WAIT_POLICY", "bench one.suite -o bench.jsonl", "GOMP_SPINCOUNT = '0'"},
            {"-u OMP_WAIT_POLICY GOMP_SPINCOUNT=10000", "run mlp", "GOMP_SPINCOUNT = '10000'"},
            {"OMP_WAIT_POLICY=active", "run mlp", "GOMP_SPINCOUNT = '30000000000'"});

    folder_put_text("one.suite", "--planners greedy_size\nmlp\n");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char environment[100], *last = NULL;

        snprintf(environment, sizeof environment, "%s OMP_DISPLAY_ENV=verbose",
                 table[i].environment);
        assert_int_equal(run_with(environment, table[i].arguments), 0);
        for (char *at = strstr(err, "GOMP_SPINCOUNT"); at != NULL;
             at = strstr(at + 1, "GOMP_SPINCOUNT"))
            last = at;
        if (last == NULL || strncmp(last, table[i].spins, strlen(table[i].spins)) != 0)
            fail_msg("%s memplan %s: %.40s", table[i].environment, table[i].arguments,
                     last != NULL ? last : "nothing");
    }
}

/* A failure is reported in the JSON object that the command would have printed, else in one of its
 * own; stderr has the usual line. */
TEST(json_of_failures)
{
    static const struct {
        const char *arguments, *member; /* a further member of the result; NULL: none */
        int status;
    } table[] =
        ROW({"list nothing --json", NULL, 2}, {"show nothing --json", NULL, 2},
            {"plan nothing --json", NULL, 2}, {"plan mlp --capacity 1 --json", "status", 1},
            {"verify mlp nothing.json --json", NULL, 2}, {"certify nothing.json --json", NULL, 2},
            {"run nothing --json", NULL, 2}, {"run mlp --backend nothing --json", NULL, 2},
            {"bench nothing --json", NULL, 2}, {"check mlp -p nothing --json", NULL, 2},
            {"check mlp -p none --json", "verdict", 1},
            {"diff nothing.json nothing.json --json", NULL, 2},
            {"diff a.json b.json --json", "differences", 1}, {"plan mlp --json --nothing", NULL, 2},
            {"plan --json --pin 'a\"b\\' mlp", NULL, 2}, {"nothing --json", NULL, 2});

    assert_int_equal(run("plan mlp -p pool -o a.json -q"), 0);
    assert_int_equal(run("plan mlp -p none -o b.json -q"), 0);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        json_error_t error;
        json_t *object;
        char line[2000];

        assert_int_equal(run(table[i].arguments), table[i].status);
        if ((object = json_loads(out, 0, &error)) == NULL)
            fail_msg("memplan %s: %s: '%.300s'", table[i].arguments, error.text, out);
        assert_int_equal(json_integer_value(json_object_get(object, "exit_status")),
                         table[i].status);
        snprintf(line, sizeof line, "memplan: %s\n",
                 json_string_value(json_object_get(object, "error")));
        assert_string_equal(err, line);
        if (table[i].member != NULL)
            assert_non_null(json_object_get(object, table[i].member));
        else
            assert_int_equal(json_object_size(object), 2);
        json_decref(object);
    }
}

TEST(diff_begins_with_a_summary)
{
    assert_int_equal(run("plan mlp -p pool -o a.json -q"), 0);
    assert_int_equal(run("plan mlp -p none -o b.json -q"), 0);
    assert_int_equal(run("diff a.json b.json"), 1);
    assert_ptr_equal(strstr(out, "a.json and b.json: 4096 bytes, then 8232 (+100.98 %); 6 "
                                 "differences: 1 planned, 1 claim, 4 moved\nplanned "),
                     out);
    assert_int_equal(run("diff a.json a.json"), 0);
    assert_string_equal(out, "a.json and a.json: the same\n");
}

/* Runs every command in an empty folder: the program carries the files it needs, or names the
 * missing one. */
TEST(needs_no_project)
{
    static const struct {
        const char *arguments, *says;
        int status;
    } table[] = ROW(
        {"list graphs", "resnet50", 0}, {"list suites", "smoke", 0}, {"list man", ".TH MEMPLAN", 0},
        {"show mlp", "bound", 0}, {"plan mlp -o plan.json", "verified", 0},
        {"verify mlp plan.json", "verified", 0}, {"certify plan.json", "certified", 0},
        {"run mlp --plan plan.json --backend ref", "equal", 0},
        {"bench two.suite", "rows in results/raw/two.jsonl", 0},
        {"merge results/raw/two.jsonl -o merged.jsonl", "", 0},
        {"diff merged.jsonl results/raw/two.jsonl", "the same", 0},
        {"table planned", "no results/raw/main.jsonl here", 2},
        {"table planned --rows merged.jsonl", "| greedy_size |", 0},
        {"table published --rows merged.jsonl", "| nnc_2019 | bound_mib |", 0},
        {"table networks --rows merged.jsonl", "their process", 0},
        {"plot mlp -o plan.html", "", 0}, {"plot mlp -o plan.svg", "", 0},
        {"export mlp --format dot", "digraph", 0},
        {"check mlp -p exact --against smoke", "at the baseline", 0},
        {"check mlp -p exact --against nothing", "no results/baselines/nothing.json", 2},
        {"baseline update mlp --planners exact", "results/baselines/mlp.json: 1 plans", 0},
        {"check mlp -p exact --against mlp", "at the baseline", 0},
        {"paper --check", "no PAPER.md here", 2});

    folder_put_text("two.suite",
                    "--planners greedy_size,nnc_2019\n--backends none\nmlp\nresnet50\n");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (run(table[i].arguments) != table[i].status)
            fail_msg("memplan %s: not exit status %d: '%s'", table[i].arguments, table[i].status,
                     err);
        assert_said(table[i].status == 0 ? out : err, table[i].says);
    }
}

TEST(tables_of_other_rows_are_errors)
{
    static const struct {
        const char *arguments, *says;
    } table[] = ROW({"table planned --rows none.jsonl", "of 0 rows none has planned_bytes"},
                    {"table planned --rows bare.jsonl", "of 1 rows none has planned_bytes"},
                    {"table run_time --rows planned.jsonl", "of 1 rows none has run_ns"},
                    {"table executed --rows planned.jsonl", "of 1 rows none has outputs"},
                    {"table malloc --rows planned.jsonl", "none has malloc_ns"},
                    {"table gpu --rows planned.jsonl", "none has device_memory"},
                    {"table recompute --rows planned.jsonl", "none has recompute"},
                    {"table peers --rows planned.jsonl", "none of 1 rows fits"},
                    {"table published --rows planned.jsonl --tsv", "none of 1 rows fits"},
                    {"table views --rows planned.jsonl -o table.md", "none of 1 rows fits"});

    folder_put_text("one.suite", "--planners greedy_size\n--backends none\nmlp\n");
    folder_put_text("none.jsonl", "");
    folder_put_text("bare.jsonl", "{\"schema\": 1}\n");
    assert_int_equal(run("bench one.suite -q -o planned.jsonl"), 0);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (run(table[i].arguments) != 2)
            fail_msg("memplan %s is no error", table[i].arguments);
        assert_said(err, table[i].says);
        assert_string_equal(out, "");
        assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1);
    }
    assert_int_not_equal(access(in_folder("table.md"), F_OK), 0);
}

TEST(programs_of_the_zoo_show_their_steps)
{
    assert_int_equal(run("show offset2bbox:batch=2 --dump-ssa steps"), 0);
    assert_said(out, "program      4 views, 8 writes");
    folder_read("steps/0-program.graph", out, sizeof out);
    assert_said(out, "mul_into(");
    folder_read("steps/4-fused.graph", out, sizeof out);
    assert_null(strstr(out, "_into("));
    assert_int_equal(run("plan offset2bbox --ssa copy -o copy.json"), 0); /* --ssa is not ignored */
    assert_int_equal(run("plan offset2bbox -o full.json"), 0);
    assert_int_equal(run("diff copy.json full.json -q"), 1);
    assert_int_equal(run("run offset2bbox:ssa=copy --planner exact"), 0);
    assert_int_equal(run("verify offset2bbox copy.json"), 0);
    assert_int_equal(run("show mlp --dump-ssa steps"), 2);
}

TEST(sizes_are_read_and_shown_alike)
{
    static const struct {
        const char *arguments, *says;
    } table[] = ROW({"plan mlp:layers=1,input=4,hidden=4,classes=2,batch=1 -p none",
                     "     136 bytes  verified"},
                    {"plan mlp -p spill:capacities=6MiB/-", "of 6291456"},
                    {"plan mlp -p spill:capacities=3KiB/1GiB,cost=1/2", "of 3072"},
                    {"plan mlp --capacity 8KiB", "verified"},
                    {"plan resnet50:mode=train,image=64 --recompute sqrt:512MiB", "verified"},
                    {"show gru:form=while,hidden=16,mode=train --recompute revolve:4",
                     "75 rounds forward beyond those reversed; outside loops: off"},
                    {"run mlp", "copied               0 bytes in a run\n"},
                    {"run lstm:form=while,steps=4,layers=1,hidden=8 --loop copy",
                     " carried from round to round"});

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (run(table[i].arguments) != 0)
            fail_msg("memplan %s: '%s'", table[i].arguments, err);
        assert_said(out, table[i].says);
        assert_null(strstr(out, " 0.000 MiB"));
    }
    assert_null(strstr(strstr(out, "copied"), " of them 0 carried"));
    assert_int_equal(run("plan mlp -p spill:capacities=6MB/-"), 2);
    assert_int_equal(run("plan mlp -p spill:capacities=99999999999GiB/-"), 2);
    assert_int_equal(run("plan mlp -p spill:capacities=6MiB/-,cost=1MiB/x"), 2);
}

TEST(bench_takes_p)
{
    folder_put_text("mlp.suite", "mlp\n");
    assert_int_equal(run("bench mlp.suite -p pool -p none --backends none --json -o p.jsonl"), 0);
    assert_said(out, "\"planner\":\"pool\"");
    assert_said(out, "\"planner\":\"none\"");
    assert_null(strstr(out, "greedy_size"));
}

/* Finds the installed program beside the one under test. */
static int begin(void)
{
    const char *given = getenv("MEMPLAN") != NULL ? getenv("MEMPLAN") : "build/debug/memplan";
    char path[4096];

    snprintf(path, sizeof path, "%.*s/prefix/bin/memplan", (int)(strrchr(given, '/') - given),
             given);
    return realpath(path, program) == NULL || folder_make("alone") != 0;
}

TESTS_WITHIN(begin, folder_remove, needs_no_project, run_needs_no_backend, waiting_threads_sleep,
             json_of_failures, diff_begins_with_a_summary, tables_of_other_rows_are_errors,
             programs_of_the_zoo_show_their_steps, sizes_are_read_and_shown_alike, bench_takes_p)
