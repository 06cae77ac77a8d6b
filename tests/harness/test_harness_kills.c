/* test_harness_kills.c -- benches killed at any moment in any way: no row is lost or torn, and
 * --resume ends with the rows of an undisturbed bench.
 *
 *  test_harness_kills [KILLS]     number of kills at random moments (20) */
#include "tests/support/folder.h"

#include <fcntl.h>

#include "graphs/core/rng.h"
#include "harness/rows/rows.h"

enum { WHOLE = 20 }; /* rows of the suite under four planners */

static const int numbers[] = {SIGKILL, SIGTERM, SIGINT};
static const char *program;
static char *whole[2]; /* rows of a whole bench by one and by two workers, without times */
static unsigned n_kills;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The rows of a file without fields that depend on time or memory (a virtual machine's grows),
 * sorted, as one text that the
 * caller frees. */
static char *timeless(const char *name, uint32_t *n)
{
    static const mpl_field times[] = {MPL_FIELD_turns,     MPL_FIELD_plan_ns, MPL_FIELD_run_ns,
                                      MPL_FIELD_rss_bytes, MPL_FIELD_holds,   MPL_FIELD_machine};
    mpl_ctx ctx = mpl_ctx_default();
    mpl_rows rows = {0};
    char **line, *all;
    size_t size = 1;

    assert_ok(&ctx, mpl_rows_read(&ctx, in_folder(name), &rows));
    line = calloc(rows.n + 1, sizeof *line);
    for (uint32_t i = 0; i < rows.n; i++) {
        for (size_t k = 0; k < sizeof times / sizeof *times; k++)
            mpl_record_null(rows.row[i], times[k]);
        assert_ok(&ctx, mpl_record_write(&ctx, rows.row[i], &line[i]));
        size += strlen(line[i]) + 1;
    }
    qsort(line, rows.n, sizeof *line, by_text);
    all = calloc(size, 1);
    for (uint32_t i = 0; i < rows.n; i++) {
        strcat(strcat(all, line[i]), "\n");
        mpl_free(&ctx, line[i]);
    }
    *n = rows.n;
    free(line);
    mpl_rows_fini(&ctx, &rows);
    assert_int_equal(ctx.n_live, 0);
    return all;
}

/* The complete lines of a file as one text that the caller frees; empty if there is no file. */
static char *whole_lines(const char *name, unsigned *n)
{
    FILE *f = fopen(in_folder(name), "r");
    char *text = calloc(1 << 20, 1);
    size_t size = f != NULL ? fread(text, 1, (1 << 20) - 1, f) : 0;

    while (size > 0 && text[size - 1] != '\n')
        size--;
    text[size] = '\0';
    *n = 0;
    for (size_t i = 0; i < size; i++)
        *n += text[i] == '\n';
    if (f != NULL)
        fclose(f);
    return text;
}

static pid_t start(const char *rows, const char *jobs)
{
    pid_t pid = fork();
    int null;

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    dup2(open(in_folder("err"), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    execl(program, program, "bench", in_folder("tiny.suite"), "--planners",
          "none,pool,owl:rule=code,greedy_size", "--repeat", "2", "--jobs", jobs, "--resume", "-o",
          in_folder(rows), (char *)NULL);
    _exit(127);
}

/* Runs the bench to its end; returns whether it reported cutting off a torn line. */
static bool finish(const char *rows, const char *jobs)
{
    static char err[1 << 14];
    int how;

    assert_true(waitpid(start(rows, jobs), &how, 0) > 0);
    folder_read("err", err, sizeof err);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
        fail_msg("resume: %s", err);
    return strstr(err, "torn") != NULL;
}

static void check_whole(const char *rows, const char *jobs)
{
    uint32_t n;
    char *resumed = timeless(rows, &n);

    assert_int_equal(n, WHOLE);
    assert_string_equal(resumed, whole[jobs[0] - '1']);
    free(resumed);
}

/* Killed in the middle, torn at the end, resumed. */
TEST(killed_benches_resume)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char name[32];
        unsigned n = 0;
        int how;
        pid_t pid;
        FILE *f;

        snprintf(name, sizeof name, "killed%zu.jsonl", i);
        pid = start(name, "1");
        for (int wait = 0; wait < 30000 && n < 4; wait++) {
            usleep(2000);
            free(whole_lines(name, &n));
        }
        kill(pid, numbers[i]);
        assert_int_equal(waitpid(pid, &how, 0), pid);
        assert_true(WIFSIGNALED(how) || WEXITSTATUS(how) == 3);
        free(whole_lines(name, &n));
        assert_true(n >= 4 && n < WHOLE);
        f = fopen(in_folder(name), "a");
        fputs("{\"status\":\"ok\",\"gra", f);
        fclose(f);
        assert_true(finish(name, "1"));
        check_whole(name, "1");
    }
}

/* Every complete line stays as it was and is a row; in the end all rows are there, none twice. */
TEST(killed_at_any_moment)
{
    unsigned killed = 0, ended = 0, torn = 0, files = 0;
    int64_t begin = mpl_clock_ns(), most;
    mpl_rng rng;

    finish("timed.jsonl", "1");
    most = (mpl_clock_ns() - begin) * 3 / 2;
    rng = mpl_rng_of(10);
    while (killed < n_kills) {
        const char *jobs = files % 2 == 0 ? "1" : "2"; /* per file: parallel rows have no times */
        char name[32], said[4096], *before = calloc(1, 1), *after;
        unsigned n = 0;
        int how = 0;

        snprintf(name, sizeof name, "random%u.jsonl", files++ % 2);
        unlink(in_folder(name));
        for (bool done = false; !done && killed < n_kills;) {
            pid_t pid = start(name, jobs);

            usleep((useconds_t)(mpl_rng_below(&rng, (uint64_t)most) / 1000));
            kill(pid, numbers[mpl_rng_below(&rng, 3)]);
            assert_int_equal(waitpid(pid, &how, 0), pid);
            done = WIFEXITED(how) && WEXITSTATUS(how) == 0; /* the bench ended before the kill */
            killed += !done, ended += done;
            if (!done && !WIFSIGNALED(how) && WEXITSTATUS(how) != 3) {
                folder_read("err", said, sizeof said);
                fail_msg("a killed bench exits with %d: %s", WEXITSTATUS(how), said);
            }
            after = whole_lines(name, &n);
            if (strncmp(before, after, strlen(before)) != 0)
                fail_msg("after kill %u a row is gone or changed:\n%s\n%s", killed, before, after);
            free(before);
            before = after;
            assert_true(n <= WHOLE);
        }
        torn += finish(name, jobs);
        check_whole(name, jobs);
        free(before);
    }
    print_message("%u kills, %u benches ended before theirs, %u files whole in the end, %u torn "
                  "lines cut off\n",
                  killed, ended, files, torn);
}

static int begin(void)
{
    uint32_t n;

    program = getenv("MEMPLAN") != NULL ? getenv("MEMPLAN") : "build/debug/memplan";
    setenv("OMP_WAIT_POLICY", "passive", 0); /* concurrent tests share the cores */
    if (folder_make("kills") != 0)
        return 1;
    folder_put_text("tiny.suite",
                    "# for tests\n--backends cpu\nmlp:hidden=32\nmlp:hidden=40\nmlp:hidden=48\n"
                    "mnist_conv:batch=1\nlstm:layers=1,steps=2,hidden=16,batch=2\n");
    for (int k = 0; k < 2; k++) {
        const char *name = k == 0 ? "whole1.jsonl" : "whole2.jsonl";

        finish(name, k == 0 ? "1" : "2");
        whole[k] = timeless(name, &n);
        if (n != WHOLE)
            return 1;
    }
    return 0;
}

static int end(void)
{
    free(whole[0]), free(whole[1]);
    return folder_remove();
}

int main(int argc, char **argv)
{
    n_kills = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : draws(20);
    return RUN_TESTS(begin, end, killed_benches_resume, killed_at_any_moment);
}
