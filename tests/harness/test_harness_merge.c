/* test_harness_merge.c -- benches in shards and with several workers, merging files of rows, and
 * comparing two. */
#include "tests/support/folder.h"

#include <dirent.h>
#include <sys/stat.h>

#include "harness/bench/crew.h"
#include "harness/rows/rows.h"
#include "harness/bench/suite.h"

static const char *program;
static char text[1 << 17], err[1 << 14]; /* of the last run */

/* Exit status of `memplan ARGUMENTS` in the test's folder. */
static int run(const char *arguments)
{
    char command[4096];
    int how;

    snprintf(command, sizeof command, "cd %s && %s %s >out 2>err </dev/null", folder, program,
             arguments);
    how = system(command);
    folder_read("out", text, sizeof text);
    folder_read("err", err, sizeof err);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static void assert_run(const char *arguments, int status)
{
    int got = run(arguments);

    if (got != status)
        fail_msg("memplan %s: exit status %d, not %d: %s", arguments, got, status, err);
}

#define BENCH "bench t.suite --planners none,greedy_size,best_fit,pool,nnc_arena -q "

static int begin(void)
{
    static char absolute[4096];
    const char *path = getenv("MEMPLAN") != NULL ? getenv("MEMPLAN") : "build/debug/memplan";

    program = realpath(path, absolute);
    if (program == NULL || folder_make("merge") != 0)
        return 1;
    setenv("OMP_WAIT_POLICY", "passive", 0);
    if (mkdir(in_folder("tmp"), 0700) != 0 || setenv("TMPDIR", in_folder("tmp"), 1) != 0)
        return 1;
    folder_put_text("t.suite",
                    "# tiny\n--repeat 2\n--safeties serial,parallel\n--backends none,ref\n"
                    "mlp:layers=1,input=4,hidden=4,classes=2\nguillotine:n=12\n"
                    "lstm:layers=1,steps=2,hidden=8,batch=2\n");
    return 0;
}

/* ---- shards ---- */

/* Fault: a run in no shard or in two, shards of unequal size, a planner that always falls into one
 * shard. */
TEST(shards_are_even)
{
    enum { PLANNERS = 12, UNITS = 60 };

    for (uint32_t n = 1; n <= 25; n++) {
        uint32_t count[25] = {0}, of_first[25] = {0}, hit = 0;

        for (uint64_t r = 0; r < (uint64_t)PLANNERS * UNITS; r++) {
            uint32_t s = mpl_shard_of(r, n);

            assert_true(s < n);
            count[s]++;
            of_first[s] += r % PLANNERS == 0;
            if ((r + 1) % n == 0)
                for (uint32_t k = 0; k < n; k++)
                    assert_int_equal(count[k], (r + 1) / n);
        }
        for (uint32_t k = 0; k < n; k++)
            hit += of_first[k] > 0;
        assert_true(n == 1 || hit > n / 2);
    }
}

TEST(shards_are_read)
{
    static const char *const wrong[] = {"",   "0/3",  "4/3",  "1/0",  "1",
                                        "1/", "1/3x", "-1/3", "1/-3", " 1/3"};
    uint32_t i = 0, n = 0;

    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        assert_status(ctx, mpl_shard_parse(ctx, wrong[k], &i, &n), MPL_EINPUT);
    assert_ok(ctx, mpl_shard_parse(ctx, "3/7", &i, &n));
    assert_int_equal(i, 2);
    assert_int_equal(n, 7);
}

/* Fault: shards or workers lose a row, make one twice, or change one. */
TEST(shards_and_workers_make_the_same_rows)
{
    char arguments[300];

    assert_run(BENCH "-o one.jsonl", 0);
    for (int i = 1; i <= 3; i++) {
        snprintf(arguments, sizeof arguments, BENCH "-o shard%d.jsonl --shard %d/3", i, i);
        assert_run(arguments, 0);
    }
    assert_run("merge shard3.jsonl shard1.jsonl shard2.jsonl -o merged.jsonl", 0);
    assert_non_null(strstr(text, "50 rows of 50 in 3 files, 0 not ok"));
    assert_run("merge one.jsonl -o all.jsonl", 0);
    assert_run("diff all.jsonl merged.jsonl", 0);
    assert_run("merge shard1.jsonl shard2.jsonl shard3.jsonl -o again.jsonl", 0);
    assert_run("merge again.jsonl merged.jsonl", 0);
    {
        static char first[sizeof text];

        memcpy(first, text, sizeof text);
        folder_read("merged.jsonl", text, sizeof text);
        assert_string_equal(text, first);
    }
    if (run(BENCH "-o jobs.jsonl --jobs 2") == 2) {
        print_message("skip: %s: one core\n", __func__);
        return;
    }
    assert_run("merge jobs.jsonl -o jobs-sorted.jsonl", 0);
    assert_non_null(strstr(text, "50 rows of 50"));
    assert_run("diff all.jsonl jobs-sorted.jsonl --json", 0);
    assert_non_null(strstr(text, "\"plan_time\""));
    assert_null(strstr(text, "\"run_time\"")); /* executed, but not timed */
    /* a timing bench does not accept those; unavailable rows (5 of pool, which needs steps) are
     * tried again */
    assert_run(BENCH "-o jobs.jsonl --resume", 0);
    assert_run("merge jobs.jsonl -o jobs-sorted.jsonl", 0);
    assert_non_null(strstr(text, "50 rows of 73"));
    assert_run("diff all.jsonl jobs-sorted.jsonl --json", 0);
    assert_non_null(strstr(text, "\"run_time\""));
    /* several workers accept all of it */
    assert_run(BENCH "-o jobs.jsonl --resume --jobs 2", 0);
    assert_run("merge jobs.jsonl -o jobs-sorted.jsonl", 0);
    assert_non_null(strstr(text, "50 rows of 78"));
}

/* Rows of a file with `turns` interleaved executions; rows that were not timed have none. */
static uint32_t count_turns(const char *file, uint64_t turns, uint32_t *n_rows)
{
    mpl_ctx ctx = mpl_ctx_default();
    mpl_rows rows = {0};
    uint32_t n = 0;

    assert_ok(&ctx, mpl_rows_read(&ctx, in_folder(file), &rows));
    for (uint32_t i = 0; i < rows.n; i++) {
        uint64_t got = 0;
        int64_t median;

        assert_int_equal(mpl_record_get_int(rows.row[i], MPL_FIELD_turns, &got),
                         mpl_record_median(rows.row[i], MPL_FIELD_run_ns, &median));
        n += got == turns;
    }
    *n_rows = rows.n;
    mpl_rows_fini(&ctx, &rows);
    return n;
}

/* Fault: turns are not taken or change a row; half of a group of turns comes from a file or another
 * shard. */
TEST(turns_make_the_same_rows)
{
    uint32_t n;
    char arguments[400];

    folder_put_text("turns.suite", "--repeat 2\n--planners none,greedy_size\n--backends none,ref\n"
                                   "mlp:layers=1,input=4,hidden=4,classes=2\n"
                                   "mlp:layers=1,input=4,hidden=4,classes=2 --in-place off\n"
                                   "guillotine:n=12\nno_such_graph\n"
                                   "mlp:layers=2,input=4,hidden=4,classes=2\n");
    assert_run("bench turns.suite -q -o single.jsonl", 1);
    assert_int_equal(count_turns("single.jsonl", 2, &n), 6);
    assert_run("bench turns.suite -q -o turns.jsonl --turns 2", 1);
    assert_int_equal(count_turns("turns.jsonl", 4, &n), 4);
    assert_int_equal(count_turns("turns.jsonl", 2, &n), 2);
    assert_int_equal(n, 18);
    assert_run("merge single.jsonl -o single-sorted.jsonl", 0);
    assert_run("merge turns.jsonl -o turns-sorted.jsonl", 0);
    assert_run("diff single-sorted.jsonl turns-sorted.jsonl", 0);

    /* a missing row is measured together with the others of its group */
    snprintf(arguments, sizeof arguments, "cd %s && sed 2d turns.jsonl >cut.jsonl", folder);
    assert_int_equal(system(arguments), 0);
    assert_int_equal(count_turns("cut.jsonl", 4, &n), 4);
    assert_int_equal(n, 17);
    assert_run("bench turns.suite -q -o cut.jsonl --turns 2 --resume", 1);
    count_turns("cut.jsonl", 4, &n);
    assert_int_equal(n, 17 + 4 + 4); /* its whole group, and what is always missing */
    for (int i = 1; i <= 2; i++) {
        snprintf(arguments, sizeof arguments,
                 "bench turns.suite -q -o half%d.jsonl --turns 2 --shard %d/2", i, i);
        run(arguments);
    }
    assert_int_equal(count_turns("half1.jsonl", 4, &n) + count_turns("half2.jsonl", 4, &n), 4);
    assert_run("merge half1.jsonl half2.jsonl -o halves.jsonl", 0);
    assert_run("diff single-sorted.jsonl halves.jsonl", 0);

    /* the first of the group is missing */
    folder_put_text("absent.suite",
                    "--planners none,greedy_size\n--backends ref\n{data}/no_such.csv\n"
                    "mlp:layers=1,input=4,hidden=4,classes=2\n");
    assert_run("bench absent.suite -q -o absent.jsonl --turns 2", 0);
    assert_int_equal(count_turns("absent.jsonl", 2, &n), 2);
    assert_int_equal(n, 2);
}

static const struct {
    const char *arguments;
    int status;
    const char *says;
} wrong[] = {
    {BENCH "-o x.jsonl --shard 4/3", 2, "4/3"},
    {BENCH "-o x.jsonl --jobs 100000", 2, "core"},
    {BENCH "-o x.jsonl --jobs 2 --threads 1000", 2, "core"},
    {BENCH "-o x.jsonl --safety serial", 2, "--safeties"},
    {BENCH "-o x.jsonl --safeties serial,both", 2, "both"},
    {"merge", 2, "usage"},
    {"merge nothing.jsonl", 2, "nothing.jsonl"},
    {"merge t.suite", 2, "t.suite:1"},
    {"diff t.suite", 2, "usage"},
    {"diff t.suite t.suite", 2, "t.suite"},
    {"diff nothing.json t.suite", 2, "nothing.json"},
};

TEST(wrong_usage_is_told)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_run(wrong[i].arguments, wrong[i].status);
        if (strstr(err, wrong[i].says) == NULL || strchr(err, '\n') != err + strlen(err) - 1)
            fail_msg("memplan %s: '%s'", wrong[i].arguments, err);
    }
}

/* Fault: a new network in the zoo that no suite plans; a suite that names a missing one. */
TEST(suites_are_whole)
{
    enum { MOST_NETWORKS = 100 };
    bool planned[MOST_NETWORKS] = {false}; /* by suite inference or suite loops */

    for (const mpl_builtin_suite *s = mpl_builtin_suites; s->name != NULL; s++) {
        mpl_options options;
        mpl_suite suite;

        mpl_options_init(&options);
        assert_ok(ctx, mpl_suite_open(ctx, s->name, &options, &suite));
        for (uint32_t i = 0; i < suite.graph.n; i++) {
            size_t n = strcspn(suite.graph.item[i], ":");

            if (mpl_zoo_find(suite.graph.item[i], n) == NULL &&
                strncmp(suite.graph.item[i], "synthetic:n", n + 2) != 0 &&
                strncmp(suite.graph.item[i], "guillotine:n", n + 2) != 0 &&
                strchr(suite.graph.item[i], '/') == NULL)
                fail_msg("suite %s: %s", s->name, suite.graph.item[i]);
        }
        for (uint32_t z = 0; mpl_zoo[z] != NULL; z++) {
            assert_true(z < MOST_NETWORKS);
            for (uint32_t i = 0;
                 i < suite.graph.n &&
                 (strcmp(s->name, "inference") == 0 || strcmp(s->name, "loops") == 0 ||
                  strcmp(s->name, "views") == 0 || strcmp(s->name, "orders") == 0);
                 i++)
                planned[z] |=
                    strlen(mpl_zoo[z]->name) == strcspn(suite.graph.item[i], ":") &&
                    strncmp(suite.graph.item[i], mpl_zoo[z]->name, strlen(mpl_zoo[z]->name)) == 0;
        }
        mpl_suite_fini(ctx, &suite);
        mpl_options_fini(ctx, &options);
    }
    for (uint32_t z = 0; mpl_zoo[z] != NULL; z++)
        if (!planned[z])
            fail_msg("none of the suites inference, loops, views, orders has %s", mpl_zoo[z]->name);
}

/* ---- workers that die ---- */

enum { UNITS = 12 };

typedef struct heard {
    uint32_t lines[UNITS], over[UNITS];
    char why[UNITS][200];
} heard;

/* Unit 3 ends by a signal after its first line, unit 5 fails, unit 7 exits within a line. */
static mpl_status work(mpl_ctx *ctx, void *arg, uint32_t u, FILE *to)
{
    (void)arg;
    fprintf(to, "first %u\n", u);
    fflush(to);
    if (u == 3)
        raise(SIGKILL);
    if (u == 5)
        return MPL_REFUSE(ctx, "unit five is wrong");
    fprintf(to, "second");
    if (u == 7) {
        fflush(to);
        _exit(4);
    }
    fprintf(to, " %u\n", u);
    return MPL_OK;
}

static mpl_status line(mpl_ctx *ctx, void *arg, uint32_t u, const char *said, size_t n)
{
    heard *h = arg;
    char wanted[40];

    (void)ctx;
    snprintf(wanted, sizeof wanted, "%s %u", h->lines[u] == 0 ? "first" : "second", u);
    assert_string_equal(said, wanted);
    assert_int_equal(n, strlen(wanted));
    h->lines[u]++;
    return MPL_OK;
}

static mpl_status over(mpl_ctx *ctx, void *arg, uint32_t u, const char *why)
{
    heard *h = arg;

    (void)ctx;
    h->over[u]++;
    snprintf(h->why[u], sizeof h->why[u], "%s", why != NULL ? why : "");
    return MPL_OK;
}

/* Fault: a unit is lost with its worker, half a line is accepted, a worker is not replaced. */
TEST(workers_that_die_are_replaced)
{
    for (uint32_t n = 1; n <= 3; n++) {
        heard h = {{0}, {0}, {{0}}};
        mpl_crew crew = {
            .arg = &h, .n_units = UNITS, .n_workers = n, .work = work, .line = line, .over = over};

        assert_ok(ctx, mpl_crew_run(ctx, &crew));
        for (uint32_t u = 0; u < UNITS; u++) {
            bool dies = u == 3 || u == 5 || u == 7;

            assert_int_equal(h.over[u], 1);
            assert_int_equal(h.lines[u], dies ? 1 : 2);
            assert_int_equal(h.why[u][0] != '\0', dies);
        }
        assert_non_null(strstr(h.why[3], "signal 9"));
        assert_string_equal(h.why[5], "unit five is wrong");
        assert_non_null(strstr(h.why[7], "exit status 4"));
    }
}

/* Workers' files in the temporary folder are gone, even those that they could not remove. */
static void assert_no_scratch(const char *after)
{
    DIR *tmp = opendir(in_folder("tmp"));

    assert_non_null(tmp);
    for (struct dirent *e; (e = readdir(tmp)) != NULL;)
        if (e->d_name[0] != '.')
            fail_msg("%s leaves %s", after, e->d_name);
    closedir(tmp);
}

/* Fault: a bench ends with its worker, a row of its unit is missing, or one of another shard
 * appears. */
TEST(a_worker_that_dies_is_rows)
{
    char arguments[300];

    for (int i = 1; i <= 2; i++) {
        snprintf(arguments, sizeof arguments,
                 "bench t.suite -q --backends none --planners 'none,best_fit,pool,exec:axe=kill -9 "
                 "$PPID' --jobs 2 --shard %d/2 -o axe%d.jsonl",
                 i, i);
        if (run(arguments) == 2) {
            print_message("skip: %s: one core\n", __func__);
            skip();
        }
    }
    assert_no_scratch("a worker that is killed");
    run("merge axe1.jsonl axe2.jsonl -o axe.jsonl");
    if (strstr(text, "24 rows of 24") == NULL)
        fail_msg("%s", text);
    folder_read("axe.jsonl", text, sizeof text);
    assert_non_null(strstr(text, "the worker ended by signal 9"));
}

/* A bench that is told to stop ends its workers, whatever they are doing. */
TEST(a_bench_that_stops_leaves_nothing)
{
    char command[5000];

    snprintf(command, sizeof command,
             "cd %s; rm -f busy; %s bench t.suite -q --backends none --jobs 2 -o stopped.jsonl "
             "--planners 'exec:slow=ls $TMPDIR >%s/busy.$$; mv %s/busy.$$ %s/busy; sleep 95' >out "
             "2>err </dev/null & m=$!; until test -s %s/busy || ! kill -0 $m; do sleep 0.02; done "
             "2>/dev/null; kill -INT $m; wait $m",
             folder, program, folder, folder, folder, folder);
    if (system(command) < 0)
        fail();
    folder_read("err", err, sizeof err);
    if (access(in_folder("busy"), R_OK) != 0) {
        print_message("skip: %s: one core\n%s", __func__, err);
        skip();
    }
    folder_read("busy", text, sizeof text);
    assert_non_null(strstr(text, "in.csv"));
    assert_no_scratch("a bench that is stopped");
}

/* ---- rows ---- */

#define JSON_ROW(graph, planner, bytes, ns, commit, cpu)                                           \
    "{\"status\":\"ok\",\"schema\":1,\"memplan\":{\"version\":\"0.1.0\",\"commit\":\"" commit      \
    "\",\"dirty\":false},\"machine\":{\"host\":\"h" ns "\",\"cpu\":\"" cpu                         \
    "\",\"cores\":2},\"graph\":\"" graph "\",\"safety\":\"serial\",\"planner\":\"" planner         \
    "\",\"order_ns\":" ns ",\"malloc_ns\":[" ns "],\"plan_ns\":" ns ",\"planned_bytes\":" bytes    \
    ",\"verified\":true}\n"

static const struct {
    const char *name, *rows;
} files[] = {
    {"a.jsonl",
     JSON_ROW("g", "pool", "100", "10", "c1", "x") JSON_ROW("g", "none", "300", "10", "c1", "x")},
    {"slow.jsonl",
     JSON_ROW("g", "none", "300", "40", "c1", "x") JSON_ROW("g", "pool", "100", "40", "c1", "x")},
    {"worse.jsonl",
     JSON_ROW("g", "pool", "101", "10", "c1", "x") JSON_ROW("g", "none", "300", "10", "c1", "x")},
    {"fewer.jsonl", JSON_ROW("g", "pool", "100", "10", "c1", "x")},
    {"code.jsonl", JSON_ROW("h", "pool", "100", "10", "c2", "x")},
    {"machine.jsonl", JSON_ROW("h", "pool", "100", "10", "c1", "y")},
    {"twice.jsonl",
     JSON_ROW("g", "pool", "7", "10", "c1", "x") JSON_ROW("g", "pool", "8", "10", "c1", "x")},
    {"torn.jsonl", JSON_ROW("g", "pool", "7", "10", "c1", "x") "{\"status\":"},
    {"unknown.jsonl", "{\"status\":\"ok\",\"graph\":\"k\",\"planner\":\"pool\"}\n"},
};

static const struct {
    const char *arguments;
    int status;
    const char *out, *err; /* parts of the outputs; NULL: not checked */
} cases[] = {
    {"diff a.jsonl a.jsonl", 0, "the same", NULL},
    {"diff a.jsonl slow.jsonl", 0, "plan time: 4.000 times, geometric mean of 2", NULL},
    {"diff a.jsonl worse.jsonl", 1, "planned_bytes of g serial pool: 100 -> 101", "1 differences"},
    {"diff worse.jsonl a.jsonl", 1, "101 -> 100", NULL},
    {"diff a.jsonl fewer.jsonl", 1, "removed    g serial none", NULL},
    {"diff fewer.jsonl a.jsonl", 1, "added      g serial none", NULL},
    {"diff a.jsonl worse.jsonl --json", 1, "\"same\": false", NULL},
    {"diff a.jsonl torn.jsonl", 2, NULL, "torn.jsonl:2"},
    {"merge a.jsonl twice.jsonl", 0, "\"planned_bytes\":8", NULL},
    {"merge twice.jsonl a.jsonl", 0, "\"planned_bytes\":100", NULL},
    {"merge a.jsonl unknown.jsonl", 0, "\"graph\":\"k\"", NULL},
    {"merge a.jsonl slow.jsonl", 0, NULL, NULL}, /* hosts of one kind */
    {"merge a.jsonl code.jsonl", 1, NULL, "c1"},
    {"merge a.jsonl code.jsonl --mixed", 0, "\"graph\":\"h\"", "c2"},
    {"merge a.jsonl machine.jsonl", 1, NULL, "y"},
    {"merge a.jsonl torn.jsonl", 2, NULL, "torn.jsonl:2"},
    {"table planned -r a.jsonl -r code.jsonl", 0, "| pool", "mixes"},
    {"table planned -r a.jsonl -r machine.jsonl", 0, "| pool", "mixes"},
    {"table planned -r a.jsonl -r slow.jsonl", 0, "| pool", NULL},
};

/* Fault: a missed difference, a time taken for a difference, rows of two builds joined silently. */
TEST(rows_are_compared_and_joined)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        folder_put_text(files[i].name, files[i].rows);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_run(cases[i].arguments, cases[i].status);
        if (cases[i].out != NULL && strstr(text, cases[i].out) == NULL)
            fail_msg("memplan %s: '%s' is not in '%s'", cases[i].arguments, cases[i].out, text);
        if (cases[i].err != NULL && strstr(err, cases[i].err) == NULL)
            fail_msg("memplan %s: '%s' is not in '%s'", cases[i].arguments, cases[i].err, err);
        if (cases[i].err == NULL && cases[i].status == 0)
            assert_string_equal(err, "");
    }
    run("merge twice.jsonl a.jsonl");
    assert_null(strstr(text, "\"planned_bytes\":8"));
    assert_true(strstr(text, "\"none\"") < strstr(text, "\"pool\"")); /* as in planners.def */
}

/* ---- plans ---- */

static const struct {
    const char *a, *b;
    int status;
    const char *says[3];
} plans[] = {
    {"x,0,2,8\ny,1,3,8\n", "x,0,2,8\ny,1,3,8\n", 0, {"the same", "", ""}},
    ROW("x,0,2,8\ny,1,3,8\n", "y,1,3,8\nx,0,2,8\n", 1,
        {"moved      x: 0 -> 8", "moved      y: 8 -> 0", ""}),
    ROW("x,0,2,8\ny,1,3,8\n", "x,0,2,8\ny,1,3,9\n", 1,
        {"planned    bytes: 16 -> 17", "bytes      y: 8 -> 9", "bound"}),
    {"x,0,2,8\ny,1,3,8\n", "x,0,2,8\n", 1, {"removed    y: 8 -> -", "", ""}},
    {"x,0,2,8\n", "x,0,2,8\ny,1,3,8\n", 1, {"added      y: - -> 8", "", ""}},
    {"x,0,2,8\n", "x,0,3,8\n", 1, {"death      x: 2 -> 3", "", ""}},
};

/* Fault: buffers matched by position in the file, a change that is not reported. */
TEST(plans_are_compared)
{
    char list[300];

    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        snprintf(list, sizeof list, "id,lower,upper,size\n%s", plans[i].a);
        folder_put_text("a.csv", list);
        snprintf(list, sizeof list, "id,lower,upper,size\n%s", plans[i].b);
        folder_put_text("b.csv", list);
        assert_run("plan a.csv -p none -o a.json -q", 0);
        assert_run("plan b.csv -p none -o b.json -q", 0);
        assert_run("diff a.json b.json", plans[i].status);
        for (int k = 0; k < 3; k++)
            if (strstr(text, plans[i].says[k]) == NULL)
                fail_msg("'%s' is not in '%s'", plans[i].says[k], text);
        assert_run("diff a.json b.json --json", plans[i].status);
        assert_non_null(strstr(text, plans[i].status == 0 ? "\"same\": true" : "\"same\": false"));
    }
    assert_run("diff a.json a.jsonl", 2);
    assert_run("diff a.jsonl a.json", 2);
    folder_put_text("cut.json", "{\"schema\": 1, \"kind\": \"plan\", \"buf");
    assert_run("diff a.json cut.json", 2);
}

TESTS_WITHIN(begin, folder_remove, shards_are_even, shards_are_read,
             shards_and_workers_make_the_same_rows, turns_make_the_same_rows, wrong_usage_is_told,
             suites_are_whole, workers_that_die_are_replaced, a_worker_that_dies_is_rows,
             a_bench_that_stops_leaves_nothing, rows_are_compared_and_joined, plans_are_compared)
