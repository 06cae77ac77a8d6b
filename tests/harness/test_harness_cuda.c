/* test_harness_cuda.c -- memplan on the fake device: GPU fields of rows, and the statuses when the
 * GPU misbehaves.
 *
 * Fault: undetected allocations during runs, figures that do not add up, algorithms other than the
 * planned ones, limits that are exceeded, rows that do not identify the machine's state. */
#include "tests/support/folder.h"

#include <sys/stat.h>

#include "harness/rows/rows.h"

#define NET  "mnist_conv:batch=10" /* small: each thread of a kernel runs by itself */
#define TINY "mlp:batch=5,input=7,hidden=6,classes=4,mode=train"

static const char *program;
static char out[1 << 16], err[1 << 12];

/* Exit status of `memplan ARGUMENTS` on a device configured by `fake`. */
static int run(const char *fake, const char *arguments)
{
    char command[4096];
    int how;

    snprintf(command, sizeof command, "MEMPLAN_FAKE='%s' %s %s >%s/out 2>%s/err </dev/null", fake,
             program, arguments, folder, folder);
    how = system(command);
    folder_read("out", out, sizeof out);
    folder_read("err", err, sizeof err);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static uint64_t number(const mpl_record *row, mpl_field field, const char *key)
{
    char text[64];

    assert_true(mpl_record_member_show(row, field, key, text, sizeof text));
    return strtoull(text, NULL, 10);
}

static mpl_record *row_of(mpl_ctx *ctx, const char *fake, const char *arguments, int status)
{
    mpl_record *row = NULL;
    int got = run(fake, arguments);

    if (got != status)
        fail_msg("exit status %d of '%s' on '%s': %s", got, arguments, fake, err);
    assert_ok(ctx, mpl_record_read(ctx, "row", out, strlen(out), &row));
    return row;
}

/* ---- rows ---- */

TEST(a_row_names_the_device)
{
    int64_t ns = 0;
    uint64_t planned = 0, workspace = 0;
    double tolerance = 0;
    mpl_record *row = row_of(
        ctx, "", "run " NET " --backend cuda --json --repeat 3 --device graph=both,tf32=on", 0);

    assert_string_equal(mpl_record_get_text(row, MPL_FIELD_math), "tf32");
    assert_true(mpl_record_get_real(row, MPL_FIELD_tolerance, &tolerance) && tolerance > 1e-3);
    assert_string_equal(mpl_record_get_text(row, MPL_FIELD_outputs), "equal");
    assert_true(mpl_record_median(row, MPL_FIELD_run_ns, &ns) && ns == 1000000);
    assert_true(mpl_record_median(row, MPL_FIELD_replay_ns, &ns) && ns == 2000000);
    assert_int_equal(number(row, MPL_FIELD_implementations, "fake library"), 4);
    assert_int_equal(number(row, MPL_FIELD_implementations, "kernel"), 3);
    assert_int_equal(number(row, MPL_FIELD_clocks, "core_mhz"), 1410);
    assert_int_equal(number(row, MPL_FIELD_clocks, "state"), 2);
    assert_int_equal(number(row, MPL_FIELD_clocks, "power_mw"), 123456);
    assert_true(mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned));
    assert_true(mpl_record_get_int(row, MPL_FIELD_workspace_bytes, &workspace));
    assert_int_equal(number(row, MPL_FIELD_device_memory, "allocations"), 0);
    assert_int_equal(number(row, MPL_FIELD_device_memory, "before"),
                     number(row, MPL_FIELD_device_memory, "after"));
    assert_int_equal(number(row, MPL_FIELD_device_memory, "asked"),
                     planned + workspace + number(row, MPL_FIELD_holds, "weights") +
                         number(row, MPL_FIELD_holds, "pinned"));
    assert_true(number(row, MPL_FIELD_allocators, "malloc") ==
                number(row, MPL_FIELD_allocators, "requested"));
    assert_true(number(row, MPL_FIELD_allocators, "reserved") >=
                number(row, MPL_FIELD_allocators, "allocated"));
    mpl_record_free(ctx, row);

    row = row_of(ctx, "clocks=0", "run " NET " --backend cuda --json --repeat 1", 0);
    assert_true(mpl_record_is_null(row, MPL_FIELD_clocks));
    assert_true(mpl_record_is_null(row, MPL_FIELD_replay_ns));
    assert_string_equal(mpl_record_get_text(row, MPL_FIELD_math), "f32");
    mpl_record_free(ctx, row);
}

static const struct {
    const char *fake, *arguments;
    int status;
    const char *error;
} statuses[] = {
    {"", "run " NET " --backend cuda --repeat 1", 0, ""},
    {"granularity=2097152", "run " NET " --backend cuda --repeat 1", 0, ""},
    {"granularity=8388608", "run " NET " --backend cuda --repeat 1", 1,
     "planned, pinned and of workspaces"},
    {"leak=1", "run " NET " --backend cuda --repeat 1", 1, "grew by"},
    {"leak=1", "run " NET " --backend cuda --repeat 1 --device graph=on", 0, ""}, /* no launch of
                                                                                     ours */
    {"oom=2", "run " NET " --backend cuda --repeat 1", 3, "out of memory"},
    {"launch=1", "run " NET " --backend cuda --repeat 1", 4, "launch failure"},
    {"lost=30", "run " NET " --backend cuda --repeat 1", 4, "device lost"},
    {"absent", "run " NET " --backend cuda", 4, "is not available"},
    {"absent", "show " NET " --backend cuda", 4, "is not available"},
    {"absent", "list backends", 0, ""},
    {"ways=1", "run " NET " --backend cuda --repeat 1 --algorithms least", 2, "--workspaces plan"},
    {"ways=1", "run " NET " --backend cuda --algorithms most --workspaces plan", 2,
     "none of fastest"},
    {"ways=1", "run " NET " --backend cuda --algorithms peak:9X --workspaces plan", 2, "peak"},
    {"ways=1", "run " NET " --backend ref --algorithms least --workspaces plan", 2, "in one way"},
    {"ways=1", "run " NET " --backend cuda --algorithms peak:1KiB --workspaces plan", 1,
     "at least"},
    {"ways=1", "run " NET " --backend cuda --algorithms least --workspaces plan --changed x", 2,
     "--changed"},
};

TEST(statuses_tell)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        int got = run(statuses[i].fake, statuses[i].arguments);

        if (got != statuses[i].status || strstr(err, statuses[i].error) == NULL)
            fail_msg("'%s' on '%s': exit status %d, %s", statuses[i].arguments, statuses[i].fake,
                     got, err);
    }
}

/* ---- algorithms ---- */

#define DEEP "inception_v1:image=63"

/* Less memory, slower algorithms, the same outputs; a plan file runs with the algorithms it was
 * made for. */
TEST(algorithms_trade_time_for_peak)
{
    static const char *const how[] = {"fastest", "peak:520000", "least"};
    uint64_t planned[3] = {0}, fastest[3];

    for (int i = 0; i < 3; i++) {
        char arguments[200];
        mpl_record *row;

        snprintf(arguments, sizeof arguments,
                 "run " DEEP
                 " --backend cuda --repeat 1 --json --planner greedy_size --workspaces plan "
                 "--algorithms %s",
                 how[i]);
        row = row_of(ctx, "ways=1", arguments, 0);
        assert_true(mpl_record_get_int(row, MPL_FIELD_planned_bytes, &planned[i]));
        assert_string_equal(mpl_record_get_text(row, MPL_FIELD_outputs), "equal");
        assert_true((mpl_record_get_text(row, MPL_FIELD_algorithms) == NULL) == (i == 0));
        fastest[i] = number(row, MPL_FIELD_implementations, "fake library");
        mpl_record_free(ctx, row);
    }
    assert_true(planned[0] > 520000 && planned[1] <= 520000 && planned[2] < planned[1]);
    assert_true(fastest[0] > fastest[1] && fastest[1] > fastest[2]);
}

TEST(plan_files_keep_their_algorithms)
{
    char arguments[1000];

    snprintf(
        arguments, sizeof arguments,
        "plan " NET
        " --backend cuda --workspaces plan --algorithms least --planner first_fit -o %s/p.json",
        folder);
    assert_int_equal(run("ways=1", arguments), 0);
    snprintf(arguments, sizeof arguments, "run " NET " --plan %s/p.json --repeat 1 --json", folder);
    assert_int_equal(run("ways=1", arguments), 0);
    assert_non_null(strstr(out, "\"algorithms\":\"least\""));
}

#define SHOWN "squeezenet:image=47"

TEST(show_tells_what_workspaces_cost)
{
    static const char *const words[] = {
        "operations of cuda need one", "% of it", "algorithms ", "slower", "computes ",
        "cudaMallocAsync took"};

    assert_int_equal(run("ways=1", "show " SHOWN " --backend cuda --workspaces plan"), 0);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(out, words[i]) == NULL)
            fail_msg("show says nothing of '%s'", words[i]);
    assert_int_equal(run("ways=1", "show " SHOWN " --backend cuda"), 0);
    assert_non_null(strstr(out, "% of both peaks"));
}

/* ---- bench ---- */

/* Benches run as workers do: the same rows as `run`, and a refused one if memory was allocated. */
TEST(benches_hold_the_same)
{
    static const char *const fakes[] = {"", "leak=1"};

    for (int i = 0; i < 2; i++) {
        char arguments[1000], path[600];
        mpl_rows rows = {0};

        snprintf(path, sizeof path, "%s/rows%d.jsonl", folder, i);
        snprintf(arguments, sizeof arguments,
                 "bench smoke --backends cuda --planners greedy_size,first_fit --repeat 2 --device "
                 "graph=%s -o %s",
                 i == 0 ? "both" : "off", path);
        run(fakes[i], arguments);
        assert_ok(ctx, mpl_rows_read(ctx, path, &rows));
        assert_true(rows.n >= 2);
        for (uint32_t k = 0; k < rows.n; k++) {
            const mpl_record *r = rows.row[k];
            const char *status = mpl_record_get_text(r, MPL_FIELD_status);
            int64_t ns;

            if (strcmp(status, "unavailable") == 0) /* an operator that cuda does not support */
                continue;
            assert_string_equal(status, i == 0 ? "ok" : "refused");
            if (i == 1) {
                assert_non_null(
                    strstr(mpl_record_get_text(r, MPL_FIELD_reason), "in the last run"));
                assert_true(mpl_record_is_null(r, MPL_FIELD_device_memory));
                continue;
            }
            assert_false(mpl_record_is_null(r, MPL_FIELD_allocators));
            assert_true(mpl_record_is_null(r, MPL_FIELD_replay_ns) ||
                        mpl_record_median(r, MPL_FIELD_replay_ns, &ns));
        }
        mpl_rows_fini(ctx, &rows);
        assert_int_equal(ctx->n_live, 0);
        for (int k = 0; k < 2; k++) {
            snprintf(arguments, sizeof arguments, "table %s -r %s", k == 0 ? "gpu" : "allocators",
                     path);
            assert_int_equal(run("", arguments), i == 0 ? 0 : 2); /* refused rows fit no table */
            assert_true((strstr(out, "mnist_conv") != NULL) == (i == 0));
        }
    }
}

/* ---- scripts/gpu-check.sh ---- */

/* Exit status of the script, with tests that exit with `ended`, a quick suite, quick graphs, and no
 * Python. */
static int check_gpu(const char *fake, int ended, const char *options)
{
    static const char *const names[] = {"ops", "conformance", "exec"};
    char command[4096], test[64], text[64];
    int how;

    for (int i = 0; i < 3; i++) {
        snprintf(test, sizeof test, "test_runtime_%s", names[i]);
        snprintf(text, sizeof text, "#!/bin/sh\nexit %d\n", ended);
        chmod(folder_put_text(test, text), 0755);
    }
    folder_put_text("tiny.suite", "--planners greedy_size\n--repeat 1\nmlp\n" NET "\n");
    snprintf(
        command, sizeof command,
        "MEMPLAN_FAKE='%s' MEMPLAN='%s' MEMPLAN_TESTS='%s' GPU_SUITES='%s/tiny.suite' "
        "GPU_GRAPHS=" NET " GPU_FIRST=" TINY
        " PYTHON=false PATH=/usr/bin:/bin scripts/gpu-check.sh %s '%s/gpu' >'%s/out' 2>'%s/err'",
        fake, program, folder, folder, options, folder, folder, folder);
    how = system(command);
    folder_read("out", out, sizeof out);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

/* Every step records a line, even if earlier ones fail; repeating a step replaces its line. */
TEST(the_script_tells)
{
    static const char *const steps[] =
        ROW("machine: exit 0", "first: exit 0", "test_ops: exit 0", "bench_tiny: exit 0",
            "bench_tiny_parallel: exit 0", "show_mnist_conv_batch_10: exit 0",
            "checked_mnist_conv_batch_10: exit 0", "least_mnist_conv_batch_10: exit 0",
            "fp16_mnist_conv_batch_10: exit 0", "torch: exit 77", "rows: exit 0", "tables: exit 0");
    char text[1 << 14];

    assert_int_equal(check_gpu("absent", 0, ""), 4);
    assert_non_null(strstr(out, "no device"));
    assert_int_equal(check_gpu("", 0, "--help"), 0);
    assert_non_null(strstr(out, "--only STEP"));
    assert_int_equal(check_gpu("", 0, "--list"), 0);
    assert_non_null(strstr(out, "\ntf32_mnist_conv_batch_10\n"));
    assert_int_equal(check_gpu("", 0, "--only nothing"), 2);
    assert_int_equal(check_gpu("", 0, "--limit soon"), 2);
    if (in_short()) /* what the programs do there stands in tests of their own */
        return;
    if (check_gpu("ways=1", 0, "") != 0)
        fail_msg("%s", out);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (strstr(out, steps[i]) == NULL)
            fail_msg("no step '%s' in: %s", steps[i], out);
    folder_read("gpu/tables.md", text, sizeof text);
    assert_non_null(strstr(text, NET));
    assert_int_equal(check_gpu("ways=1", 3, "--only 'test_*'"), 1); /* failing tests */
    assert_null(strstr(out, "first"));
    folder_read("gpu/summary.txt", text, sizeof text);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        assert_true((strstr(text, steps[i]) != NULL) == (strncmp(steps[i], "test_", 5) != 0));
    assert_non_null(strstr(text, "test_conformance: exit 3"));
    assert_non_null(strstr(text, "test_exec: exit 3"));
    assert_int_equal(check_gpu("leak=4096", 0, "--only 'least_*,rows,tables'"), 1); /* refused */
    folder_read("gpu/summary.txt", text, sizeof text);
    assert_non_null(strstr(text, "rows: exit 1"));
    assert_non_null(strstr(text, "tables: exit 0"));
}

static int begin(void)
{
    return folder_make("cuda") != 0;
}

int main(int argc, char **argv)
{
    static char path[4096], whole[4096];

    (void)argc;
    snprintf(path, sizeof path, "%.*s/memplan_on_fake", (int)(strrchr(argv[0], '/') - argv[0]),
             argv[0]);
    if (realpath(path, whole) == NULL)
        return 1;
    program = whole;
    return RUN_TESTS(begin, folder_remove, a_row_names_the_device, statuses_tell,
                     algorithms_trade_time_for_peak, plan_files_keep_their_algorithms,
                     show_tells_what_workspaces_cost, benches_hold_the_same, the_script_tells);
}
