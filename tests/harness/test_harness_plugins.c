/* test_harness_plugins.c -- external planners: libraries and commands, good and bad, alone, in a
 * bench and beside ours. */
#include "graphs/io/lists/lists.h"
#include "tests/support/folder.h"

#include <errno.h>
#include <sys/stat.h>

#include "harness/foreign/foreign.h"
#include "harness/job/job.h"
#include "harness/rows/rows.h"

static const char *program;
static char plugins[200];               /* folder of the built tests/plugin and planners/example */
static char out[1 << 16], err[1 << 14]; /* of the last command */

/* Three buffers that need 32 bytes: b conflicts with the others; c lives on after a is dead. */
static const char list_text[] = "id,lower,upper,size,alignment\na,0,2,8,8\nb,1,3,16,8\nc,2,4,8,8\n";
static const char good_text[] = "id,lower,upper,size,offset\n0,0,2,8,0\n1,1,3,16,8\n2,2,4,8,0\n";
static const char turned_text[] =
    "offset,colour,size,upper,lower,id\n0,red,8,4,2,2\n\n 8 ,red,16,3,1,1\n0,red,8,2,0,0\n";

static void put(const char *name, const char *text, int mode)
{
    char path[600];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, (mode_t)mode), 0);
}

/* Replaces @ in `text` by the test's folder, % by that of the plug-ins, ? by the program. */
static void expand(const char *text, char *to, size_t size)
{
    size_t n = 0;

    for (to[0] = '\0'; *text != '\0' && n < size; text++)
        n += (size_t)snprintf(to + n, size - n,
                              *text == '@' || *text == '%' || *text == '?' ? "%s" : "%.1s",
                              *text == '@'   ? folder
                              : *text == '%' ? plugins
                              : *text == '?' ? program
                                             : text);
    assert_true(n < size);
}

/* Exit status of a shell command; a signal is 128 + its number. */
static int shell(const char *text)
{
    char command[5600], expanded[4500];
    int how;

    expand(text, expanded, sizeof expanded);
    snprintf(command, sizeof command, "{ %s ;} >%s/out 2>%s/err </dev/null", expanded, folder,
             folder);
    how = system(command);
    folder_read("out", out, sizeof out);
    folder_read("err", err, sizeof err);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static int begin(void)
{
    char path[600];

    program = getenv("MEMPLAN") != NULL ? getenv("MEMPLAN") : "build/debug/memplan";
    snprintf(plugins, sizeof plugins, "%.*s", (int)(strrchr(program, '/') - program), program);
    if (folder_make("plugins") != 0)
        return 1;
    snprintf(path, sizeof path, "%s/tmp", folder);
    put("list.csv", list_text, 0600);
    put("good.csv", good_text, 0600);
    put("turned.csv", turned_text, 0600);
    put("text.so", "no library\n", 0600);
    return mkdir(path, 0700) != 0 || setenv("TMPDIR", path, 1) != 0;
}

/* A field of the row on stdout; "" for null. */
static void field_text(mpl_field field, char *text, size_t size)
{
    mpl_ctx ctx = mpl_ctx_default();
    mpl_record *row = NULL;
    const char *value;

    assert_ok(&ctx, mpl_record_read(&ctx, "stdout", out, strlen(out), &row));
    value = mpl_record_get_text(row, field);
    snprintf(text, size, "%s", value != NULL ? value : "");
    mpl_record_free(&ctx, row);
}

/* ---- one plan ---- */

static const struct {
    const char *planner; /* @ folder, % plug-ins, ? program; no single quote */
    int exit;
    const char *status; /* NULL: refused before there is a row */
    const char *says;   /* part of the reason, or of the message */
} table[] = {
    {"so:%/planners/example/first_fit_plugin.so", 0, "ok", ""},
    {"so:%/tests/plugin/bad.so:do=well", 0, "ok", ""},
    {"so:%/tests/plugin/bad.so:do=close", 0, "ok", ""},
    {"so:%/tests/plugin/bad.so:do=fork", 0, "ok", ""},
    {"so:%/tests/plugin/bad.so:do=optimal", 0, "ok", ""},
    {"so:%/tests/plugin/bad.so:do=segv", 1, "crash", "ended"},
    {"so:%/tests/plugin/bad.so:do=abort", 1, "crash", "signal 6"},
    {"so:%/tests/plugin/bad.so:do=kill", 1, "crash", "signal 9"},
    {"so:%/tests/plugin/bad.so:do=exit0", 1, "crash", "exit status 0 before it answered"},
    {"so:%/tests/plugin/bad.so:do=exit7", 1, "crash", "exit status 7 before it answered"},
    {"so:%/tests/plugin/bad.so:do=huge", 1, "crash", "ended"},
    {"so:%/tests/plugin/at_load.so", 1, "crash", "signal 6"},
    {"so:%/tests/plugin/bad.so:do=hang", 3, "timeout", "no answer within 0.4 s"},
    {"so:%/tests/plugin/bad.so:do=spin", 3, "timeout", "no answer within 0.4 s"},
    {"so:%/tests/plugin/bad.so:do=stop", 3, "timeout", "no answer within 0.4 s"},
    {"so:%/tests/plugin/bad.so:do=infeasible", 3, "timeout", "not proved"},
    {"so:%/tests/plugin/bad.so:do=long", 3, "timeout", "gave up: xxxxxx"},
    {"so:%/tests/plugin/bad.so:do=nothing", 1, "garbage", "buffer 'a' has no offset"},
    {"so:%/tests/plugin/bad.so:do=partial", 1, "garbage", "buffer 'c' has no offset"},
    {"so:%/tests/plugin/bad.so:do=wild", 1, "garbage", "above 2^63"},
    {"so:%/tests/plugin/bad.so:do=claim", 1, "garbage", "claim 77"},
    {"so:%/tests/plugin/bad.so:do=code", 1, "garbage", "returned 4711"},
    {"so:%/tests/plugin/bad.so:do=overlap", 1, "refused", "'a'"},
    {"so:%/tests/plugin/bad.so:do=misaligned", 1, "refused", "'a'"},
    {"so:%/tests/plugin/bad.so:do=bound", 1, "refused", "nobody can do without"},
    {"so:%/tests/plugin/bad.so:do=unable", 4, "unavailable", "not on a Sunday"},
    {"so:%/tests/plugin/bad.so:what=well", 2, "refused", "it takes do=WHAT"},
    {"so:%/tests/plugin/bad.so:do=well,do=well", 2, "garbage", "given twice"},
    {"so:%/tests/plugin/newer.so", 4, "unavailable", "version 2"},
    {"so:%/tests/plugin/without_plan.so", 4, "unavailable", "no plan()"},
    {"so:%/tests/plugin/without_entry.so", 4, "unavailable", "memplan_plugin_main"},
    {"so:@/text.so", 4, "unavailable", "text.so"},
    {"so:@", 4, "unavailable", "memplan-plugins"},
    {"so:@/nowhere.so", 2, NULL, "No such file"},
    {"so:", 2, NULL, "shared library"},
    {"so:%/tests/plugin/bad.so:do", 2, NULL, "key=value"},
    {"so:%/tests/plugin/bad.so:so=x", 2, NULL, "names the library"},

    {"exec:cat @/good.csv >{out}", 0, "ok", ""},
    {"exec:cat @/good.csv", 0, "ok", ""},
    {"exec:cat @/turned.csv", 0, "ok", ""},
    {"exec:my-own_1=cat @/good.csv >{out}", 0, "ok", ""},
    {"exec:grep -q 1,1,3,16,8 && cat @/good.csv", 0, "ok", ""},
    {"exec:grep -q 1,1,3,16,8 {in} && cat @/good.csv", 0, "ok", ""},
    {"exec:test {threads} = 1 && test {seed} = 1 && expr {time_limit} : 2[67][.] >@/t && cat "
     "@/good.csv",
     0, "ok", ""},
    {"exec:A={}; B=${A}{unknown}; test $B = {}{unknown} && cat @/good.csv", 0, "ok", ""},
    {"exec:touch $TMPDIR/left; mkdir -p $TMPDIR/behind/deep; cat @/good.csv", 0, "ok", ""},
    {"exec:? export {in} --planner best_fit --format csv -o {out}", 0, "ok", ""},
    {"exec:exit 3", 1, "crash", "exit status 3"},
    {"exec:echo one >&2; echo why >&2; echo >&2; exit 3", 1, "crash", "exit status 3: why"},
    {"exec:kill -SEGV $$", 1, "crash", "signal 11"},
    {"exec:cat @/good.csv; kill -ABRT $$", 1, "crash", "signal 6"},
    {"exec:sleep 60", 3, "timeout", "no answer within 0.4 s"},
    {"exec:trap : TERM INT; sleep 60; sleep 60", 3, "timeout", "no answer"},
    {"exec:kill -STOP $$", 3, "timeout", "no answer"},
    {"exec:while true; do echo y; done", 3, "timeout", "no answer"},
    {"exec:true", 1, "garbage", "wrote nothing"},
    {"exec:true {out}", 1, "garbage", "wrote nothing to {out}"},
    {"exec:mkdir {out}", 1, "garbage", "wrote nothing"},
    {"exec:ln -s /dev/zero {out}", 1, "garbage", "wrote nothing"},
    {"exec:head -c 3000000 /dev/zero", 1, "garbage", "far larger"},
    {"exec:head -c 300 /dev/urandom", 1, "garbage", "its output"},
    {"exec:echo hello", 1, "garbage", "its output, line 1: no column"},
    {"exec:cat {in}", 1, "garbage", "no column 'offset'"},
    {"exec:head -3 @/good.csv", 1, "garbage", "buffer 'c' has no row"},
    {"exec:head -1 @/good.csv", 1, "garbage", "its output, line 1: no buffer"},
    {"exec:cat @/good.csv; tail -1 @/good.csv", 1, "garbage",
     "its output, line 5: id '2' stands in line 4"},
    {"exec:sed s/^2,/3,/ @/good.csv", 1, "garbage", "the id '3'"},
    {"exec:sed s/^2,/02,/ @/good.csv", 1, "garbage", "the id '02'"},
    {"exec:sed s/^2,/x,/ @/good.csv", 1, "garbage", "the id 'x'"},
    {"exec:sed s/16,8/16,-8/ @/good.csv", 1, "garbage", "negative"},
    {"exec:sed s/16,8/16,8.5/ @/good.csv", 1, "garbage", "no whole number"},
    {"exec:sed s/16,8/16,9223372036854775800/ @/good.csv", 1, "garbage", "above 2^63"},
    {"exec:sed s/16,8/15,8/ @/good.csv", 1, "garbage", "changes the lifetime or size of id 1"},
    {"exec:sed s/1,3,16/2,3,16/ @/good.csv", 1, "garbage", "changes the lifetime or size of id 1"},
    {"exec:sed s/16,8/16,0/ @/good.csv", 1, "refused", "'a'"},
    {"exec:sed s/16,8/16,9/ @/good.csv", 1, "refused", "'b'"},
    {"exec:no_such_program_here {in}", 4, "unavailable", "no_such_program_here"},
    {"exec:@/good.csv {in}", 4, "unavailable", "good.csv"},
    {"exec:cat @/good.csv {capacity}", 4, "unavailable", "--capacity"},
    {"exec:", 2, NULL, "a command is needed"},
    {"exec:name= ", 2, NULL, "a command is needed"},
};

/* Nothing that a planner printed or left remains: standard output has one row or an error, and the
 * temporary folder is empty. */
TEST(one_plan_each)
{
    char command[1000], status[40], reason[600];

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int got;

        snprintf(command, sizeof command, "? plan @/list.csv --json --time-limit %s --planner '%s'",
                 table[i].exit == 3 ? "0.4" : "30", table[i].planner);
        got = shell(command);
        if (got != table[i].exit)
            fail_msg("%s: exit status %d where %d was expected: %s", table[i].planner, got,
                     table[i].exit, err);
        if (table[i].status == NULL) {
            if (strncmp(out, "{\"error\": ", 10) != 0 || strstr(err, table[i].says) == NULL)
                fail_msg("%s: '%s' is not in '%s'", table[i].planner, table[i].says, err);
            continue;
        }
        field_text(MPL_FIELD_status, status, sizeof status);
        field_text(MPL_FIELD_reason, reason, sizeof reason);
        if (strcmp(status, table[i].status) != 0 || strstr(reason, table[i].says) == NULL ||
            strchr(reason, '\n') != NULL)
            fail_msg("%s: %s where %s was expected: '%s', not '%s'", table[i].planner, status,
                     table[i].status, reason, table[i].says);
        if (table[i].exit != 0 && strstr(out, "\"planned_bytes\":null") == NULL)
            fail_msg("%s: bytes of a plan that there is not", table[i].planner);
    }
    assert_int_equal(shell("ls -A @/tmp"), 0);
    assert_string_equal(out, "");
}

/* A claim is repeated only if memplan has proved it. */
TEST(claims_are_not_believed)
{
    static const struct {
        const char *planner, *claim;
    } rows[] = {{"so:%/tests/plugin/bad.so:do=optimal", "feasible"},
                {"so:%/tests/plugin/bad.so:do=liar", "feasible"},
                {"so:%/planners/example/first_fit_plugin.so", "optimal"},
                {"exec:cat @/good.csv", "optimal"}};
    char command[600], claim[40], name[60];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(command, sizeof command, "? plan @/list.csv --json --planner '%s'",
                 rows[i].planner);
        assert_int_equal(shell(command), 0);
        field_text(MPL_FIELD_claim, claim, sizeof claim);
        assert_string_equal(claim, rows[i].claim);
        assert_non_null(strstr(out, "\"bound_bytes\":24,"));
        field_text(MPL_FIELD_planner, name, sizeof name);
        assert_string_equal(name, i < 2 ? "so:bad" : i == 2 ? "so:first_fit_plugin" : "exec:cat");
    }
    assert_int_equal(
        shell("? plan @/list.csv --json --capacity 24 -p 'exec:mine=test {capacity} = 24 && cat "
              "@/good.csv'"),
        0);
    field_text(MPL_FIELD_planner, name, sizeof name);
    assert_string_equal(name, "exec:mine");
    assert_int_equal(shell("? plan @/list.csv --capacity 24 -p so:%/tests/plugin/bad.so:do=well"),
                     3);
}

/* Processes started by a command end with it: when it ends, at the limit, and when memplan is told
 * to stop. */
TEST(groups_end_together)
{
    static const struct {
        const char *command;
        int exit;
    } rows[] =
        ROW({"? plan @/list.csv -p 'exec:sleep 91 & echo $! >@/pid; cat @/good.csv'", 0},
            {"? plan @/list.csv --time-limit 2 -p 'exec:sleep 92 & echo $! >@/pid; wait'", 3},
            ROW("? plan @/list.csv -p 'exec:sleep 93 & echo $! >@/pid; wait' & m=$!; until test -s "
                "@/pid; do sleep 0.02; done; kill -INT $m; wait $m",
                3),
            ROW("? plan @/list.csv -p 'exec:sleep 94 & echo $! >@/pid; wait' & m=$!; until test -s "
                "@/pid; do sleep 0.02; done; kill -TERM $m; wait $m",
                3));
    char state_path[100], line[200], pid[40];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int tries = 0;
        bool alive = true;

        assert_int_equal(shell("rm -f @/pid"), 0);
        assert_int_equal(shell(rows[i].command), rows[i].exit);
        folder_read("pid", pid, sizeof pid);
        snprintf(state_path, sizeof state_path, "/proc/%d/stat", atoi(pid));
        for (; alive && tries < 100; tries++) {
            FILE *f = fopen(state_path, "r");

            alive = f != NULL && fgets(line, sizeof line, f) != NULL && strstr(line, ") Z") == NULL;
            if (f != NULL)
                fclose(f);
            usleep(20000);
        }
        if (alive)
            fail_msg("%s: its process %s lives on", rows[i].command, pid);
    }
    assert_int_equal(shell("ls -A @/tmp"), 0);
    assert_string_equal(out, "");
}

/* ---- graphs, pools, partial orders ---- */

TEST(graphs_and_safeties)
{
    static const struct {
        const char *command;
        int exit;
        const char *says;
    } rows[] = ROW(
        {"? run mnist_conv:batch=2 -b cpu --repeat 1 --checked -p "
         "so:%/planners/example/first_fit_plugin.so",
         0, "outputs:  equal"},
        ROW("? run mnist_conv:batch=2 -b cpu --repeat 1 -p 'exec:? export {in} -p greedy_size "
            "--format csv -o {out}'",
            0, "outputs:  equal"),
        {"? plan mnist_conv:batch=2 -b cpu -p 'exec:? export {in} -p greedy_size --format csv -o "
         "{out}'",
         0, "  workspace"},
        {"? plan resnet18:image=64 --safety parallel -p so:%/planners/example/first_fit_plugin.so",
         0, "antichain"},
        {"? plan @/list.csv --safety parallel -p so:%/planners/example/first_fit_plugin.so", 0,
         "antichain"},
        {"? plan @/list.csv --safety parallel -p 'exec:cat @/good.csv' 2>&1", 4, "parallel"});

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (shell(rows[i].command) != rows[i].exit || strstr(out, rows[i].says) == NULL)
            fail_msg("%s: '%s' is not in '%s' '%s'", rows[i].command, rows[i].says, out, err);
    /* as the built-in planner places them */
    assert_int_equal(
        shell("? plan resnet18:image=64 -p greedy_size | grep planned >@/a; ? plan "
              "resnet18:image=64 -p "
              "'exec:? export {in} -p greedy_size --format csv -o {out}' | grep planned | cmp @/a"),
        0);
}

/* A list cannot express fixed offsets. Running out of memory anywhere is reported, and nothing
 * stays allocated. */
TEST(calls_from_c)
{
    static const char *const planners[] = {"exec:cat @/good.csv",
                                           "so:%/planners/example/first_fit_plugin.so"};
    owned_problem *p = NULL;
    uint64_t fixed[3] = {0, MPL_UNFIXED, MPL_UNFIXED};
    char text[500], path[200];

    expand("@/list.csv", path, sizeof path);
    assert_ok(ctx, mpl_csv_read(ctx, path, &p, NULL));
    for (size_t i = 0; i < 2; i++) {
        expand(planners[i], text, sizeof text);
        EACH_ALLOCATION_FAILS (ctx, st) {
            mpl_planner_spec spec = {0};
            mpl_plan *plan = NULL;
            mpl_run run;

            st = mpl_planner_spec_parse(ctx, text, &spec);
            run = mpl_run_default(ctx);
            if (st == MPL_OK)
                st = mpl_planner_run(spec.planner, &run, p, &plan);
            ctx->fail_after = -1;
            if (st == MPL_OK) {
                assert_int_equal(plan->peak_bytes, 24);
                p->fixed = fixed;
                mpl_plan_free(ctx, plan);
                plan = NULL;
                assert_status(ctx, mpl_planner_run(spec.planner, &run, p, &plan), MPL_EUNAVAIL);
                assert_string_equal(run.failure, "unavailable");
                p->fixed = NULL;
            }
            assert_null(plan);
            mpl_planner_spec_fini(ctx, &spec);
        }
    }
}

/* ---- benches ---- */

static void read_rows(mpl_ctx *ctx, const char *name, mpl_rows *rows)
{
    char path[600];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(ctx, mpl_rows_read(ctx, path, rows));
}

/* One planner crashes, one hangs, one answers garbage: all other rows are there, and --resume
 * repeats only the bad ones. */
TEST(bench_goes_on)
{
    static const struct {
        const char *planner, *status;
    } want[] = ROW({"greedy_size", "ok"}, {"so:bad", "crash"}, {"so:bad", "timeout"},
                   {"so:first_fit_plugin", "ok"}, {"so:newer", "unavailable"}, {"best_fit", "ok"},
                   {"so:bad", "ok"}, {"exec:good", "ok"}, {"exec:echo", "garbage"});
    static const char command[] =
        "? bench @/two.suite --time-limit 1 -o @/rows.jsonl --planners "
        "greedy_size,so:%/tests/plugin/bad.so:do=segv,so:%/tests/plugin/bad.so:do=hang,so:%/planner"
        "s/example/first_fit_plugin.so,so:%/tests/plugin/newer.so,best_fit,so:%/tests/plugin/bad.so"
        ":do=files,'exec:good=echo a,b >/dev/null; cat @/good.csv' --planners 'exec:echo , no "
        "list' ";
    enum { N = sizeof want / sizeof *want };
    char text[2000];
    mpl_rows rows = {0};

    put("two.suite", "--backends none\n", 0600);
    expand("--backends none\n@/list.csv\n@/again.csv\n", text, sizeof text);
    put("two.suite", text, 0600);
    put("again.csv", list_text, 0600);
    assert_int_equal(shell(command), 1);
    assert_non_null(strstr(out, "| so:bad:do=segv"));
    assert_non_null(strstr(out, "| exec:good "));
    read_rows(ctx, "rows.jsonl", &rows);
    assert_int_equal(rows.n, 2 * N);
    for (uint32_t i = 0; i < rows.n; i++) {
        assert_string_equal(mpl_record_get_text(rows.row[i], MPL_FIELD_planner),
                            want[i % N].planner);
        assert_string_equal(mpl_record_get_text(rows.row[i], MPL_FIELD_status), want[i % N].status);
        assert_int_equal(mpl_record_is_null(rows.row[i], MPL_FIELD_planned_bytes),
                         strcmp(want[i % N].status, "ok") != 0);
    }
    mpl_rows_fini(ctx, &rows);
    snprintf(text, sizeof text, "%s --resume", command);
    assert_int_equal(shell(text), 1);
    read_rows(ctx, "rows.jsonl", &rows);
    assert_int_equal(rows.n, 2 * N + 2 * 4);
    mpl_rows_fini(ctx, &rows);
    assert_int_equal(shell("? table planned --rows @/rows.jsonl"), 0);
    assert_non_null(strstr(out, "| so:first_fit_plugin "));
    assert_non_null(strstr(out, "| exec:good "));
    assert_int_equal(
        shell("? bench @/two.suite -q -o @/x.jsonl --planners 'exec:cat @/good.csv' --planners "
              "'exec:cat @/turned.csv'"),
        2);
    assert_non_null(strstr(err, "exec:NAME=COMMAND"));
    assert_int_equal(access("x.jsonl", F_OK), -1);
}

/* Peers take turns: after the first plans of each, letters come as a, b, a, b. Each turn has its
 * times, and a program given by path gets its known flags. */
TEST(peers_take_turns)
{
    char text[4000];
    mpl_rows rows = {0};
    int64_t each = 0, self = 0;
    uint64_t plan_ns = 0;

    expand("--backends none\n--capacity 24\n@/list.csv\n", text, sizeof text);
    put("one.suite", text, 0600);
    expand("#!/bin/sh\ntest \"$1$4\" = --capacity=24--output=${4#--output=} && grep -q 16 "
           "${3#--input=} && cat @/good.csv >${4#--output=} && printf b >>@/turns && printf 0.250 "
           ">&2\n",
           text, sizeof text);
    put("it's a solver", text, 0700);
    assert_int_equal(
        shell("? bench @/one.suite --planners greedy_size --planners 'exec:alpha=printf a "
              ">>@/turns; cat "
              "@/good.csv' --peer minimalloc=\"@/it's a solver\" --repeat 4 -o @/peers.jsonl"),
        0);
    assert_non_null(strstr(out, "geometric mean of 1 of 1"));
    assert_non_null(strstr(out, "     250.000 |"));
    folder_read("turns", text, sizeof text);
    assert_true(strlen(text) >= 10);
    assert_string_equal(text + strlen(text) - 9, "babababab");
    read_rows(ctx, "peers.jsonl", &rows);
    assert_int_equal(rows.n, 3);
    for (uint32_t i = 0; i < rows.n; i++) {
        assert_true(mpl_record_median(rows.row[i], MPL_FIELD_plan_each_ns, &each));
        assert_true(mpl_record_get_int(rows.row[i], MPL_FIELD_plan_ns, &plan_ns));
        assert_int_equal(each, plan_ns);
        assert_int_equal(mpl_record_median(rows.row[i], MPL_FIELD_self_ns, &self), i == 2);
    }
    assert_string_equal(mpl_record_get_text(rows.row[2], MPL_FIELD_planner), "exec:minimalloc");
    assert_int_equal(self, 250000000);
    mpl_rows_fini(ctx, &rows);
    /* compared runs are measured together: a missing one repeats all of its graph */
    assert_int_equal(shell("? bench @/one.suite --planners greedy_size,best_fit --peer "
                           "minimalloc=\"@/it's a solver\" "
                           "--repeat 1 -q -o @/peers.jsonl --resume"),
                     0);
    read_rows(ctx, "peers.jsonl", &rows);
    assert_int_equal(rows.n, 6);
    mpl_rows_fini(ctx, &rows);
    for (int i = 0; i < 3; i++) {
        static const char *const wrong[] = {"minimalloc", "=cat", "Mini=cat"};

        snprintf(text, sizeof text, "? bench @/one.suite --peer '%s' -q -o @/x.jsonl", wrong[i]);
        assert_int_equal(shell(text), 2);
        assert_non_null(strstr(err, "--peer"));
    }
}

/* Medians, ratios and means of hand-made rows: 8/2 and 9/1, so 6 as the mean; 16/2 as the peer
 * reports it. */
TEST(ratios_are_right)
{
#define JSON_ROW(graph, planner, each, self)                                                       \
    "{\"status\":\"ok\",\"graph\":\"" graph "\",\"problem_hash\":\"" graph                         \
    "\",\"safety\":\"serial\",\"planner\":\"" planner "\",\"plan_each_ns\":" each                  \
    ",\"self_ns\":" self "}\n"

    put("made.jsonl",
        JSON_ROW("g", "ours", "[1000000,90000000,2000000]", "null")
            JSON_ROW("g", "exec:theirs", "[8000000]", "[16000000]")
                JSON_ROW("h", "ours", "[1000000]", "null")
                    JSON_ROW("h", "exec:theirs", "[7000000,9000000,11000000]", "null")
                        JSON_ROW("i", "ours", "[1000000]", "null"),
        0600);
    assert_int_equal(shell("? table peers --rows @/made.jsonl --tsv"), 0);
    assert_string_equal(out, "graph\tplanner\tms\tpeer\tpeer ms\tratio\tpeer says ms\tratio\n"
                             "g\tours\t2.000\texec:theirs\t8.000\t4.00\t16.000\t8.00\n"
                             "h\tours\t1.000\texec:theirs\t9.000\t9.00\t-\t-\n"
                             "geometric mean of 2 of 2\tours\t-\texec:theirs\t-\t6.00\t-\t8.00\n");
#undef JSON_ROW
}

/* ---- installed ---- */

/* The example compiles against `make install` into an empty prefix alone, and runs with the
 * installed program; also with blanks in paths, and for a packager. */
TEST(installed_header_is_enough)
{
    char build[200], *mode, text[1200];

    snprintf(build, sizeof build, "%s", plugins);
    mode = strrchr(build, '/');
    assert_non_null(mode);
    *mode++ = '\0';
    snprintf(text, sizeof text, "make -s install MODE=%s B=%s PREFIX='@/a  prefix'", mode, build);
    if (shell(text) != 0)
        fail_msg("make install: %s", err);
    if (shell("cd '@/a  prefix' && cc -std=c99 -pedantic -Wall -Wextra -Werror -Iinclude -fPIC "
              "-shared -o first_fit.so share/doc/memplan/first_fit_plugin.c && bin/memplan plan "
              "../list.csv -p so:first_fit.so") != 0)
        fail_msg("the example: %s", err);
    assert_non_null(strstr(out, "planned            24 bytes"));
    snprintf(text, sizeof text,
             "make -s install MODE=%s B=%s DESTDIR='@/one package' PREFIX='/opt/my own'", mode,
             build);
    if (shell(text) != 0)
        fail_msg("make install: %s", err);
    if (shell("cd '@/one package' && ls -A && ls -A opt && 'opt/my own/bin/memplan' --version && "
              "grep '^prefix=/opt/my own$' 'opt/my own/lib/pkgconfig/memplan.pc'") != 0)
        fail_msg("what a packager collects: %s", err);
    assert_int_equal(strncmp(out, "opt\nmy own\n", 11), 0);
}

TESTS_WITHIN(begin, folder_remove, one_plan_each, claims_are_not_believed, groups_end_together,
             graphs_and_safeties, calls_from_c, bench_goes_on, peers_take_turns, ratios_are_right,
             installed_header_is_enough)
