/* test_harness_ci.c -- what CI shows of the gate: other plans as reference, times, tables in
 * markdown, summaries of differences, and the script that the action runs. */
#include "tests/harness/run_program.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DATA "tests/data/import/"

static int begin(void)
{
    return program_begin("ci");
}

/* Runs each row: arguments, exit status, a text that the output or message has, one that the table
 * of --markdown has (or NULL). */
static void run_all(size_t n, const char *const (*row)[4])
{
    char arguments[600], table[4000];

    for (size_t i = 0; i < n; i++) {
        int got;

        snprintf(arguments, sizeof arguments, "%s%s", row[i][0],
                 row[i][3] != NULL ? " --markdown @/table.md" : "");
        got = run_logged(arguments, true);
        if (got != row[i][1][0] - '0' || strstr(out, row[i][2]) == NULL)
            fail_msg("memplan %s: exit status %d: %s", arguments, got, out);
        if (row[i][3] == NULL)
            continue;
        folder_read("table.md", table, sizeof table);
        if (strstr(table, row[i][3]) == NULL)
            fail_msg("memplan %s: no '%s' in %s", arguments, row[i][3], table);
    }
}
#define RUN_ALL(table) run_all(sizeof table / sizeof *table, table)

static const char four[] = "id,lower,upper,size,offset\na,0,2,96,0\nb,1,3,64,96\nc,2,4,96,%s\n";

static void put_four(const char *name, const char *offset)
{
    char text[200];

    snprintf(text, sizeof text, four, offset);
    folder_put_text(name, text);
}

/* Fault: the other plan is believed without the verifier, its bytes are not the reference, or the
 * optimum in the table is the baseline. */
TEST(other_plans_are_references)
{
    static const char *const table[][4] = ROW(
        {"check --plan @/best.csv --against @/wide.csv", "0",
         "check: improved: best by minimalloc: 160 bytes, 37.50 % below the baseline of 256",
         "| best | minimalloc | 256 | 160 | -37.50 % | 160 | 0 | improved |\n"},
        {"check --plan @/wide.csv --against @/best.csv", "1",
         "beyond: wide by minimalloc: 256 bytes, 60.00 % above the baseline of 160",
         "| wide | minimalloc | 160 | 256 | +60.00 % | 160 | +60.00 % | **beyond** |\n"},
        {"check --plan @/wide.csv --against @/best.csv --tolerance 60%", "0", "check: ok",
         "| ok |\n"},
        {"check --plan @/wide.csv --against @/wide.csv", "0", "at the baseline of 256",
         "| 256 | 256 | 0 | 160 | +60.00 % | ok |\n"},
        {"check --plan @/wide.csv", "1", "above the optimum",
         "| - | 256 | - | 160 | +60.00 % | **beyond** |\n"},
        {"check --plan @/wide.csv --against @/before", "1", "above the baseline of 160",
         "160 | 256"},
        {"check --plan @/best.csv --against @/before", "2", "before/best.csv", "**bad input**"},
        {"check mlp -p pool --against @/before", "2", "is a folder, of plans beside --plan FILE",
         NULL},
        {"check --plan @/best.csv --against @/torn.csv", "2",
         "torn.csv is no valid plan: buffers 'a' and 'b' overlap", "**bad input**"},
        {"check --plan @/torn.csv", "1", "refused", "| - | - | - | - | - | **refused** |\n"},
        {"check " DATA "tensors.csv --plan " DATA "small.offline.bin --against " DATA
         "small.offline.json",
         "0", "at the baseline of 160", NULL},
        {"check --plan @/best.csv --markdown @/no/such/table.md", "2", "no/such/table.md", NULL},
        {"check --plan @/module_0008.jit_f.cpu_after_optimizations-buffer-assignment.txt", "0",
         "check: ok: module_0008.jit_f by xla", NULL},
        {"check --plan '@/pipe|.csv'", "0", "check: ok", "| pipe\\| | minimalloc |"});
    char folder_before[400];

    snprintf(folder_before, sizeof folder_before, "%s/before", folder);
    assert_int_equal(mkdir(folder_before, 0700), 0);
    put_four("best.csv", "0");
    put_four("wide.csv", "160");
    put_four("before/wide.csv", "0");
    put_four("pipe|.csv", "0");
    folder_put_text("module_0008.jit_f.cpu_after_optimizations-buffer-assignment.txt",
                    "BufferAssignment:\nallocation 0: size 64, preallocated-temp:\n"
                    " value: <0 a @0> (size=64,offset=0): f32[16]{0}\nBufferLiveRange:\na{}:0-1\n");
    folder_put_text("torn.csv",
                    "id,lower,upper,size,offset\na,0,2,96,0\nb,1,3,64,95\nc,2,4,96,0\n");
    RUN_ALL(table);
}

/* Replaces what stands between "plan_ns": and the next comma or brace. */
static void put_time(const char *from, const char *to, const char *ns)
{
    static char text[1 << 16], now[1 << 16];
    char *at;

    folder_read(from, text, sizeof text);
    assert_non_null(at = strstr(text, "\"plan_ns\":"));
    at += strlen("\"plan_ns\":");
    snprintf(now, sizeof now, "%.*s %s%s", (int)(at - text), text, ns, at + strcspn(at, ",}"));
    folder_put_text(to, now);
}

/* Takes well over the millisecond that is noise. */
#define SLOW "densenet121:mode=train -p hill_climb"

/* Fault: times are not compared, the tolerance is that of bytes, or noise fails a build. */
TEST(times_are_gated)
{
    static const char *const table[][4] = ROW(
        {"check --plan @/10ms.json --against @/20ms.json --max-slowdown 0%", "0", "check: ok",
         "| 20.000 | 10.000 | ok |\n"},
        {"check --plan @/20ms.json --against @/10ms.json --max-slowdown 100%", "0", "check: ok",
         ""},
        {"check --plan @/20ms.json --against @/10ms.json --max-slowdown 99%", "1",
         "check: slower: mlp by pool: 4096 bytes, at the baseline of 4096 (allowed 0 %); planned "
         "in "
         "20.000 ms, 10.000 ms before (allowed 99% more)",
         "| 10.000 | 20.000 | **slower** |\n"},
        {"check --plan @/20ms.json --against @/10ms.json --tolerance 200%", "0", "check: ok", NULL},
        {"check --plan @/11ms.json --against @/10ms.json --max-slowdown 1%", "0", "check: ok",
         NULL},
        {"check mlp -p pool --against @/timed.json --max-slowdown 1000%", "0", "check: ok", ""},
        {"check mlp -p pool --against @/slow.json --max-slowdown 0%", "0", "check: ok",
         "| 900.000 |"},
        {"check " SLOW " --against @/tiny.json --max-slowdown 1000%", "1",
         "ms, 0.000 ms before (allowed 1000% more)", "| **slower** |"},
        {"check " SLOW " --against @/tiny.json", "0", "check: ok", NULL},
        {"check mlp -p pool --against @/plain.json --max-slowdown 0%", "2",
         "baseline update --times", NULL},
        {"check mlp -p pool --max-slowdown 0%", "2", "the optimum has no time", NULL},
        {"check --plan @/best.csv --against @/10ms.json --max-slowdown 0%", "2",
         "the plan has no time of planning", NULL},
        {"check mlp -p pool --against @/timed.json --max-slowdown 1", "2", "--max-slowdown: '1'",
         NULL});

    put_four("best.csv", "0");
    assert_int_equal(run("plan mlp -p pool -q -o @/plan.json"), 0);
    put_time("plan.json", "10ms.json", "10000000");
    put_time("plan.json", "11ms.json", "10999999");
    put_time("plan.json", "20ms.json", "20000000");
    assert_int_equal(run("baseline update mlp --planners pool -o @/plain.json"), 0);
    assert_int_equal(run("baseline update mlp --planners pool --times -o @/timed.json"), 0);
    put_time("timed.json", "slow.json", "900000000");
    assert_int_equal(
        run("baseline update densenet121:mode=train --planners hill_climb --times -o @/base.json"),
        0);
    put_time("base.json", "tiny.json", "1");
    RUN_ALL(table);
}

/* Fault: a summary does not come first, or hides the bytes. */
TEST(differences_begin_with_a_summary)
{
    assert_int_equal(run("plan mlp -p pool -q -o @/a.json"), 0);
    assert_int_equal(run("plan mlp -p none -q -o @/b.json"), 0);
    assert_int_equal(run_logged("diff @/a.json @/b.json", true), 1);
    assert_non_null(strstr(strtok(out, "\n"), "b.json: 4096 bytes, then 8232 (+100.98 %); "));
    assert_int_equal(run_logged("diff @/a.json @/a.json", true), 0);
    assert_non_null(strstr(strtok(out, "\n"), "a.json: the same"));
}

/* Runs the script of the action; its exit status. */
static int gate(const char *environment, const char *plans)
{
    char command[2000];
    int status;

    snprintf(
        command, sizeof command,
        "cd %s && MEMPLAN=\"$(realpath %s)\" OUT=gated %s bash %s/harness/ci/gate.sh %s >log 2>&1",
        folder, "program", environment, "root", plans);
    status = system(command);
    return WEXITSTATUS(status);
}

/* Fault: the worst plan does not decide, a failure is missing from the comment, the head of the
 * table comes twice, or a companion is taken for a plan. */
TEST(the_action_gates_a_folder)
{
    static const struct {
        const char *environment, *plans;
        int status;
        const char *has[3];
    } table[] = {
        {"",
         "dumps",
         1,
         {"### Memory plans: 2, held to the optimum\n\n| plan |", "| **beyond** |",
          "\n    memplan: check: beyond: wide"}},
        {"TOLERANCE=60%", "dumps", 0, {"| wide | minimalloc | - | 256 |", "| ok |", "| best |"}},
        {"AGAINST=dumps", "dumps", 0, {"held to dumps", "| 256 | 256 | 0 |", "| 160 | 160 | 0 |"}},
        {"AGAINST=fast MAX_SLOWDOWN=50%",
         "timed",
         1,
         {"held to fast", "| 10.000 | 20.000 | **slower** |",
          "10.000 ms before (allowed 50% more)"}},
        {"AGAINST=fast MAX_SLOWDOWN=100%", "timed", 0, {"| 10.000 | 20.000 | ok |", "", ""}},
        {"AGAINST=dumps TOLERANCE=1",
         "dumps/best.csv",
         2,
         {"plans: 1", "**bad input**", "--tolerance"}},
        {"", "dumps torn.csv", 1, {"plans: 3", "**refused**", "overlap"}},
        {"", "torn.csv missing.csv", 2, {"plans: 2", "missing.csv", "**bad input**"}},
        {"", "empty", 2, {"", "", ""}},
    };
    static const char *const folders[] = {"dumps", "empty", "timed", "fast"};
    char path[400], body[4000], root[1000], link[1400];

    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    assert_int_equal(run("plan mlp -p pool -q -o @/plan.json"), 0);
    put_time("plan.json", "timed/mlp.json", "20000000");
    put_time("plan.json", "fast/mlp.json", "10000000");
    assert_non_null(getcwd(root, sizeof root));
    snprintf(link, sizeof link, "%s/root", folder);
    assert_int_equal(symlink(root, link), 0);
    snprintf(link, sizeof link, "ln -s \"$(realpath %s)\" %s/program", program, folder);
    assert_int_equal(system(link), 0);
    put_four("dumps/best.csv", "0");
    put_four("dumps/wide.csv", "160");
    folder_put_text("dumps/README", "how these were made\n");
    folder_put_text("torn.csv", "id,lower,upper,size,offset\na,0,2,96,0\nb,1,3,64,95\n");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int status = gate(table[i].environment, table[i].plans);

        if (status != table[i].status) {
            folder_read("log", body, sizeof body);
            fail_msg("%s gate.sh %s: %d: %s", table[i].environment, table[i].plans, status, body);
        }
        body[0] = '\0';
        if (i + 1 < sizeof table / sizeof *table)
            folder_read("gated/comment.md", body, sizeof body);
        for (int k = 0; k < 3; k++)
            if (strstr(body, table[i].has[k]) == NULL)
                fail_msg("no '%s' in %s", table[i].has[k], body);
        if (body[0] != '\0')
            assert_null(strstr(strstr(body, "| plan |") + 1, "| plan |"));
    }
    folder_read("gated/torn.csv.xml", body, sizeof body);
    assert_non_null(strstr(body, "<failure type=\"refused\""));
}

TESTS_WITHIN(begin, folder_remove, other_plans_are_references, times_are_gated,
             differences_begin_with_a_summary, the_action_gates_a_folder)
