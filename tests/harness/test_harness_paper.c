/* test_harness_paper.c -- tables, figures and numbers made from rows: filled in, found stale,
 * refused. */
#include "tests/support/folder.h"

#include <sys/stat.h>

#include "harness/report/paper.h"

static char program[4096], home[4096];

/* ---- markers ---- */

static char name_t[] = "t", name_f[] = "f", caption[] = "What it shows.", script[] = "f.gp";
#define LINE(a, b, c, d)                                                                           \
    (char[]){a}, (char[]){b}, (char[]){c}, (char[])                                                \
    {                                                                                              \
        d                                                                                          \
    }
static char *cells[] = {LINE("planner", "graph", "MiB", "~plan ms"), LINE("best", "a", "1.5", "7"),
                        LINE("best", "b", "2.5", "8"), LINE("worst", "a", "9", "9")};
#define CELLS                                                                                      \
    {                                                                                              \
        .n_cols = 4, .n = sizeof cells / sizeof *cells, .cell = cells                              \
    }
static mpl_paper_item items[] = {{name_t, caption, NULL, CELLS}, {name_f, caption, script, CELLS}};
static const mpl_paper paper = {.n = 2, .item = items};

static const struct {
    const char *text, *filled; /* filled NULL: refused with message `why` */
    const char *why;
} marked[] = {
    {"no marker at all\n", "no marker at all\n", NULL},
    {"<!-- a remark --> stays", "<!-- a remark --> stays", NULL},
    {"x <!-- value:t/worst/MiB --><!-- end --> y", "x <!-- value:t/worst/MiB -->9<!-- end --> y",
     NULL},
    {"<!-- value:t/best/b/MiB -->old<!-- end -->", "<!-- value:t/best/b/MiB -->2.5<!-- end -->",
     NULL},
    {"<!-- value:f/best/a/~plan ms -->\n<!-- end -->",
     "<!-- value:f/best/a/~plan ms -->7<!-- end -->", NULL},
    ROW("<!-- table:t -->\nold\n<!-- end -->!",
        "<!-- table:t -->\n\nWhat it shows.\n\n"
        "| planner | graph | MiB | ~plan ms |\n|---------|------:|----:|---------:|\n"
        "| best    |     a | 1.5 |        7 |\n| best    |     b | 2.5 |        8 |\n"
        "| worst   |     a |   9 |        9 |\n\n<!-- end -->!",
        NULL),
    ROW("<!-- figure:f --><!-- end -->",
        "<!-- figure:f -->\n\n![What it shows.](results/figures/f.svg)\n\n*What it shows.*\n\n<!-- "
        "end -->",
        NULL),
    {"\n\n<!-- value:t/best/MiB --><!-- end -->", NULL,
     "x.md:3: t has several lines for 'best/MiB'"},
    {"<!-- value:t/none/MiB --><!-- end -->", NULL, "no line for"},
    {"<!-- value:t/worst/KiB --><!-- end -->", NULL, "no column 'KiB'"},
    {"<!-- value:t --><!-- end -->", NULL, "names no cell"},
    {"<!-- value:nothing/a/b --><!-- end -->", NULL, "asks for 'nothing'"},
    {"<!-- table:nothing --><!-- end -->", NULL, "asks for 'nothing'"},
    {"<!-- figure:t --><!-- end -->", NULL, "is a table"},
    {"<!-- quoted:x -->9 %<!-- end -->", "<!-- quoted:x -->9 %<!-- end -->", NULL},
    {"<!-- holds:t/worst/MiB = 9 -->", "<!-- holds:t/worst/MiB = 9 -->", NULL},
    {"<!-- holds:t/worst/MiB 9 -->", NULL, "has none of"},
    {"<!-- holds:t/worst/planner < 9 -->", NULL, "is no number"},
    {"<!-- holds:u/worst/MiB = 9 -->", NULL, "names no cell"},
    {"<!-- holds:t/none/MiB = 9 -->", NULL, "no line for"},
    {"<!-- valeu:t/worst/MiB --><!-- end -->", NULL, "'valeu' is none of"},
    {"<!-- value:t/worst/MiB -->9", NULL, "has no <!-- end -->"},
    {"<!-- value:t/worst/MiB -->9<!-- table:t --><!-- end -->", NULL, "has no <!-- end -->"},
    {"a<!-- end -->", NULL, "an end without a marker"},
    {"a\n<!-- value:t/worst/MiB", NULL, "x.md:2: a comment without"},
};

TEST(test_markers)
{
    for (size_t i = 0; i < sizeof marked / sizeof *marked; i++) {
        char *out = NULL, *again = NULL, *faults = NULL;

        assert_status(ctx, mpl_paper_fill(ctx, &paper, "x.md", marked[i].text, &out, &faults),
                      marked[i].filled != NULL ? MPL_OK : MPL_EINPUT);
        if (marked[i].filled == NULL) {
            if (strstr(ctx->message, marked[i].why) == NULL)
                fail_msg("'%s': '%s' where '%s' was expected", marked[i].text, ctx->message,
                         marked[i].why);
            continue;
        }
        assert_string_equal(out, marked[i].filled);
        mpl_free(ctx, faults);
        assert_ok(ctx, mpl_paper_fill(ctx, &paper, "x.md", out, &again, &faults)); /* filling again
                                                                                      changes
                                                                                      nothing */
        mpl_free(ctx, faults);
        assert_string_equal(again, out);
        mpl_free_each(ctx, out, again);
    }
}

TEST(test_memory_runs_out)
{
    owned_memory char *out = NULL, *faults = NULL;

    for (int64_t k = 0; out == NULL; k++) {
        ctx->fail_after = k;
        ctx->n_allocs = 0;
        if (mpl_paper_fill(ctx, &paper, "x.md", marked[5].text, &out, &faults) != MPL_OK)
            assert_int_equal(ctx->n_live, 0);
    }
}

/* Statements in a text that the rows contradict, or that nothing keeps up to date. */
static const struct {
    const char *text, *faults; /* part of the message of the one fault; NULL: none */
} said_wrong[] = {
    {"<!-- holds:t/worst/MiB = 9 -->", NULL},
    {"<!-- holds:t/worst/MiB != 8 -->", NULL},
    {"<!-- holds:t/worst/MiB < 9.5 --> <!-- holds:t/worst/MiB <= 9.0 -->", NULL},
    {"<!-- holds:t/worst/~plan ms > 8 --> <!-- holds:t/worst/MiB >= 9 -->", NULL},
    {"a\n<!-- holds:t/worst/MiB = 8 -->", "x.md:2: t/worst/MiB = 8 does not hold: it is 9"},
    {"<!-- holds:t/worst/MiB != 9 -->", "does not hold"},
    {"<!-- holds:t/worst/MiB < 9 -->", "does not hold"},
    {"<!-- holds:t/worst/MiB > 9 -->", "does not hold"},
    {"<!-- holds:t/worst/MiB <= 8.9 -->", "does not hold"},
    {"<!-- holds:t/worst/MiB >= 10 -->", "does not hold"},
    {"<!-- holds:t/best/b/MiB < 2.6 -->", NULL},
    {"In 7 of 9 graphs, in 2018.", NULL},
    {"a\nb\nIt is 1.5 times as large", "x.md:3: '1.5' is a figure"},
    {"by 40 % more", "'40' is a figure"},
    {"by 40% more", "'40' is a figure"},
    {"by <!-- quoted:book -->40 %<!-- end --> more than section 8.10 and `p:80%` say", NULL},
    {"sections 8.1 to 8.6 and 9.2", NULL},
    {"a section. 8.1 times", "'8.1' is a figure"},
    {"### 8.1 Head\n| 1.5 |\n    memplan 1.5\n![f 1.5](x1.5.svg)\n*1.5*\n[a](b1.5.md)\n", NULL},
    {"after `code` 1.5 comes", "'1.5' is a figure"},
    {"<!-- value:t/best/b/MiB --><!-- end -->, 1.25", "'1.25' is a figure"},
    {"It ends in 7.", NULL},
};

TEST(test_faults)
{
    for (size_t i = 0; i < sizeof said_wrong / sizeof *said_wrong; i++) {
        owned_memory char *out = NULL, *faults = NULL;
        const char *part = said_wrong[i].faults;

        assert_ok(ctx, mpl_paper_fill(ctx, &paper, "x.md", said_wrong[i].text, &out, &faults));
        if (part == NULL ? faults[0] != '\0' : strstr(faults, part) == NULL)
            fail_msg("'%s': '%s' where '%s' was expected", said_wrong[i].text, faults, part);
    }
}

/* ---- the command in a separate project ---- */

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static char said[1 << 14];

static int run(const char *arguments)
{
    char command[5000];
    FILE *f;
    int how;

    snprintf(command, sizeof command, "'%s' %s >said 2>&1", program, arguments);
    how = system(command);
    f = fopen("said", "r");
    assert_non_null(f);
    said[fread(said, 1, sizeof said - 1, f)] = '\0';
    fclose(f);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128;
}

static void check_said(const char *part)
{
    if (strstr(said, part) == NULL)
        fail_msg("'%s' is not in '%s'", part, said);
}

#define JSON_ROW(graph, planner, planned)                                                          \
    "{\"status\":\"ok\",\"schema\":1,\"graph\":\"" graph                                           \
    "\",\"safety\":\"serial\",\"order\":\"given\",\"planner\":\"" planner                          \
    "\",\"planned_bytes\":" planned ",\"bound_bytes\":1048576,\"plan_ns\":5000000}\n"
#define ROWS                                                                                       \
    JSON_ROW("one", "low", "1048576")                                                              \
    JSON_ROW("two", "low", "1048576") JSON_ROW("one", "high", "2097152")
#define ASKS                                                                                       \
    "# a test\n#! table sums summary | Sums.\n#! figure gaps gap planner!=low with=any.gp | "      \
    "Gaps.\n"                                                                                      \
    "#! table one runs.tsv n=1 show=planner,~plan_ms | Measured elsewhere.\n"
#define TEN(text) text text text text text text text text text text
#define TEXT                                                                                       \
    "A <!-- value:sums/high/most above bound --><!-- end -->, <!-- value:one/p/~plan_ms --><!-- "  \
    "end -->.\n"                                                                                   \
    "<!-- figure:gaps -->\n<!-- end -->\n"

static void project(void)
{
    put("results/paper/a.suite", ASKS);
    put("results/raw/a.jsonl", ROWS);
    put("results/tables/runs.tsv", "planner\tn\tplan_ms\np\t1\t3\nq\t2\t4\n");
    put("scripts/style.gp",
        "set terminal svg\nset output output\nset datafile separator \"\\t\"\n");
    put("scripts/any.gp", "load 'scripts/style.gp'\nplot table every ::1 using 0:2 with points\n");
    put("PAPER.md", TEXT);
    assert_int_equal(run("paper"), 0);
}

static int begin(void)
{
    static const char *const folders[] = {"results",        "results/paper",   "results/raw",
                                          "results/tables", "results/figures", "scripts"};

    if (realpath(getenv("MEMPLAN") != NULL ? getenv("MEMPLAN") : "build/debug/memplan", program) ==
            NULL ||
        getcwd(home, sizeof home) == NULL || folder_make("paper") != 0 || chdir(folder) != 0)
        return 1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (mkdir(folders[i], 0777) != 0)
            return 1;
    return 0;
}

static int end(void)
{
    return chdir(home) != 0 || folder_remove() != 0;
}

TEST(test_made_and_fresh)
{
    char *text = NULL;
    size_t size;

    skip_without("/usr/bin/gnuplot");
    project();
    assert_int_equal(run("paper --check"), 0);
    check_said("5 files are what the rows make"); /* two tables, a figure and its table, the text */
    assert_ok(ctx, mpl_file_read(ctx, "PAPER.md", &text, &size));
    assert_non_null(strstr(text, "most above bound -->100.00 %<!-- end -->"));
    assert_non_null(strstr(text, "~plan_ms -->3<!-- end -->"));
    mpl_free(ctx, text);
    assert_ok(ctx, mpl_file_read(ctx, "results/tables/gaps.tsv", &text, &size));
    assert_string_equal(text, "planner\tone\ttwo\nhigh\t+100.00 %\t-\n");
    mpl_free(ctx, text);
    assert_ok(ctx, mpl_file_read(ctx, "results/tables/sums.md", &text, &size));
    assert_non_null(strstr(text, "| low     |      2 |            2 |           0.00 % |"));
    mpl_free(ctx, text);
}

/* The appendix, where there is one: filled and checked as the paper is, its pictures beside it. */
TEST(test_appendix)
{
    owned_memory char *text = NULL;
    size_t size;

    skip_without("/usr/bin/gnuplot");
    project();
    put("results/APPENDIX.md", TEXT);
    assert_int_equal(run("paper --check"), 1);
    check_said("stale: results/APPENDIX.md");
    assert_int_equal(run("paper"), 0);
    assert_int_equal(run("paper --check"), 0);
    check_said("6 files are what the rows make");
    assert_ok(ctx, mpl_file_read(ctx, "results/APPENDIX.md", &text, &size));
    assert_non_null(strstr(text, "](figures/gaps.svg)"));
    put("results/APPENDIX.md", TEXT "<!-- holds:sums/high/graphs = 2 -->\n");
    assert_int_equal(run("paper"), 1);
    check_said("results/APPENDIX.md:4: sums/high/graphs = 2 does not hold: it is 1");
    assert_int_equal(remove("results/APPENDIX.md"), 0);
}

/* A graph as lines to draw, of which the greedy planner makes 20 MiB and the least is 18: what
 * hands memory on goes from the last user to the next, in place or not at all. */
TEST(test_anatomy)
{
    static const char *const lines[] = {
        "graph\tnode\t1\t1\t1\t1\tb: conv\n", /* beside d, which came first */
        "graph\tedge\t1\t0\t4\t1\td\n",       /* over the branch beside it */
        "lifetimes\tbox\t1\t4\t7\t5\td 5\n",  /* part of the concat until that is read */
        "lifetimes\tpair\t3.5\t1.5\t3.5\t2.5\tin place\n",    /* b, r */
        "conflicts\tserial\t0\t1\t0.781831\t0.62349\t\n",     /* a, b */
        "conflicts\tparallel\t0\t1\t0.974928\t-0.222521\t\n", /* a, r: d may come late */
        "greedy_size\tedge\t4.6\t9\t6.4\t9\t4\n",             /* r to g, 4 of its 7 MiB */
        "greedy_size\tedge\t6.6\t3\t7.4\t3\t2\n",             /* d to h */
        "exact\tedge\t2.6\t5\t4.4\t5\t2\n",
        "greedy_size\tbound\t0\t18\t9\t0\tgreedy_size: 20 MiB\n",
        "exact\tbound\t0\t18\t9\t0\texact: 18 MiB\n",
    };
    owned_memory char *text = NULL, *graph = NULL;
    size_t size;

    skip_without("/usr/bin/gnuplot");
    project();
    assert_int_equal(chdir(home), 0);
    assert_ok(ctx, mpl_file_read(ctx, "results/paper/example.graph", &graph, &size));
    assert_int_equal(chdir(folder), 0);
    put("results/paper/example.graph", graph);
    put("results/paper/d.suite", "#! figure drawn example.graph with=axes.gp | Drawn.\n");
    put("scripts/axes.gp", "load 'scripts/style.gp'\nplot 1\n");
    assert_int_equal(run("paper"), 0);
    assert_ok(ctx, mpl_file_read(ctx, "results/tables/drawn.tsv", &text, &size));
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strstr(text, lines[i]) == NULL)
            fail_msg("'%s' is not in '%s'", lines[i], text);
    assert_null(strstr(text, "edge\t3.6\t")); /* b to r is in place */
    put("results/paper/d.suite", "#! figure drawn lost.graph with=any.gp | Drawn.\n");
    assert_int_equal(run("paper --check"), 2);
    check_said("lost.graph");
    assert_int_equal(remove("results/paper/d.suite"), 0);
}

/* What scripts/paper-size.sh says of a text; status 0 and nothing: it has the form of a paper. */
static const struct {
    const char *text, *says;
} sizes[] = {
    {"Figure 1 and Table 1.\n\n**Figure 1**\n\n![Why?](a.svg)\n\n**Table 1.** *What?*\n\n| a "
     "|\n|---|\n"
     "| 1 |\n",
     ""},
    {"Figure 1.\n\n**Figure 1**\n\n![Because.](a.svg)\n", "the caption of figure 1 asks nothing"},
    {"**Figure 1**\n\n![Why?](a.svg)\n", "figure 1 is not cited"},
    {"Figure 2.\n\n**Figure 2**\n\n![Why?](a.svg)\n", "stands where Figure 1 should"},
    {"Table 1.\n\n![Why?](a.svg)\n", "1 pictures and 0 numbers of figures"},
    {"**Table 1.** *What?*\n\n| a |\n|---|\n| 1 |\n", "table 1 is not cited"},
    {"Table 1.\n\n**Table 1.** *This.*\n\n| a |\n", "the caption of table 1 asks nothing"},
    {"What?\n\n| a |\n|---|\n| 1 |\n", "1 tables and 0 numbers of tables"},
    {"Table 1.\n\n**Table 1.** *What?*\n\n" TEN("| a |\n") TEN("| a |\n"), "table 1 has 18 lines"},
    {TEN(TEN(TEN("six words of ten stand here\n"))), "6000 words; 5500 are the most"},
    {TEN("What?\n\n| a |\n\n") "What?\n\n| a |\n", "11 tables; 10 are the most"},
    {TEN("**Figure 1**\n"), "10 figures; 8 are the most"},
};

TEST(test_size_of_a_paper)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char command[800];
        size_t n;
        int status;
        FILE *f;

        put("PAPER.md", sizes[i].text);
        snprintf(command, sizeof command, "bash '%.300s/scripts/paper-size.sh' '%.300s/PAPER.md'",
                 home, folder);
        f = popen(command, "r");
        assert_non_null(f);
        n = fread(said, 1, sizeof said - 1, f);
        said[n] = '\0';
        status = pclose(f);
        assert_int_equal(status != 0, sizes[i].says[0] != '\0');
        if (strstr(said, sizes[i].says) == NULL || (status == 0 && n > 0))
            fail_msg("'%s' is said, not '%s'", said, sizes[i].says);
    }
}

/* Names in rows that a shell, gnuplot or Markdown would interpret: they stay names. */
TEST(test_names_run_nothing)
{
    char *text = NULL;
    size_t size;

    skip_without("/usr/bin/gnuplot");
    project();
    put("results/raw/a.jsonl",
        ROWS JSON_ROW("one", "`touch ran`", "1048576") JSON_ROW("one", "$(touch ran)", "1048576")
            JSON_ROW("one", "\\\"; system('touch ran'); print \\\"", "1048576")
                JSON_ROW("`touch ran`", "high", "1048576"));
    put("scripts/any.gp", "load 'scripts/style.gp'\n"
                          "plot table every ::1 using 0:2:xtic(1) with points, "
                          "table every ::1 using 0:2:1 with labels title columnheader(1)\n");
    assert_int_equal(run("paper"), 0);
    assert_int_not_equal(access("ran", F_OK), 0);
    assert_ok(ctx, mpl_file_read(ctx, "results/tables/gaps.tsv", &text, &size));
    assert_non_null(strstr(text, "`touch ran`\t"));
    mpl_free(ctx, text);
    assert_ok(ctx, mpl_file_read(ctx, "results/figures/gaps.svg", &text, &size));
    assert_non_null(strstr(text, "touch ran"));
    mpl_free(ctx, text);
}

/* One change each, and what --check reports as stale. */
static const struct {
    const char *file, *text, *stale;
} changes[] = {
    {"results/raw/a.jsonl", ROWS JSON_ROW("one", "low", "1048577"),
     "stale: results/tables/sums.md"},
    {"results/raw/a.jsonl", ROWS JSON_ROW("one", "high", "1048576"),
     "stale: results/figures/gaps.svg"},
    {"results/raw/a.jsonl", ROWS JSON_ROW("one", "high", "1048576"), "stale: PAPER.md"},
    {"results/tables/runs.tsv", "planner\tn\tplan_ms\np\t1\t4\n", "stale: results/tables/one.md"},
    {"results/tables/sums.md", "edited\n", "stale: results/tables/sums.md"},
    {"results/figures/gaps.svg", "<svg></svg>\n", "stale: results/figures/gaps.svg"},
    {"scripts/style.gp", "set terminal svg size 300,200\nset output output\n",
     "stale: results/figures/gaps.svg"},
    {"scripts/any.gp", "load 'scripts/style.gp'\nplot 1\n", "stale: results/figures/gaps.svg"},
    {"PAPER.md", TEXT, "stale: PAPER.md"},
};

TEST(test_stale)
{
    skip_without("/usr/bin/gnuplot");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        project();
        put(changes[i].file, changes[i].text);
        assert_int_equal(run("paper --check"), 1);
        check_said(changes[i].stale);
        assert_int_equal(run("paper --check"), 1); /* it wrote nothing */
    }
}

/* A picture that was edited by a byte or truncated. */
TEST(test_touched_picture)
{
    owned_memory char *svg = NULL;
    size_t size;

    skip_without("/usr/bin/gnuplot");
    project();
    assert_ok(ctx, mpl_file_read(ctx, "results/figures/gaps.svg", &svg, &size));
    svg[size / 2]++;
    put("results/figures/gaps.svg", svg);
    assert_int_equal(run("paper --check"), 1);
    check_said("stale: results/figures/gaps.svg");
    svg[size / 2]--;
    put("results/figures/gaps.svg", svg);
    assert_int_equal(run("paper --check"), 0);
    svg[size - 9] = '\0';
    put("results/figures/gaps.svg", svg);
    assert_int_equal(run("paper --check"), 1);
}

/* ---- the paper's tables ---- */

#define SIDE(graph, planner, safety, in_place, planned, bound)                                     \
    "{\"status\":\"ok\",\"schema\":1,\"graph\":\"" graph "\",\"safety\":\"" safety                 \
    "\",\"order\":\"given\",\"in_place\":" in_place ",\"planner\":\"" planner                      \
    "\",\"planned_bytes\":" planned ",\"bound_bytes\":" bound                                      \
    ",\"naive_bytes\":4194304,\"measured_bytes\":" planned                                         \
    ",\"run_ns\":[3000000,1000000,2000000],\"outputs\":\"equal\",\"plan_ns\":1500000}\n"

/* 4 MiB over a bound of 1 MiB, or as given, with a seed. */
#define SEEDED(graph, seed, planned)                                                               \
    "{\"status\":\"ok\",\"schema\":1,\"graph\":\"" graph                                           \
    "\",\"safety\":\"serial\",\"planner\":\"p\",\"seed\":" seed ",\"planned_bytes\":" planned      \
    ",\"bound_bytes\":1048576,\"naive_bytes\":4194304}\n"

#define PROBLEM(graph, planner, safety, hash, planned, bound)                                      \
    "{\"status\":\"ok\",\"schema\":1,\"graph\":\"" graph "\",\"problem_hash\":\"" hash             \
    "\",\"safety\":\"" safety "\",\"planner\":\"" planner "\",\"planned_bytes\":" planned          \
    ",\"bound_bytes\":" bound "}\n"
#define OVERVIEW                                                                                   \
    "planner\tinference serial: least\tinference serial: mean\tinference serial: most\tinference " \
    "parallel: "                                                                                   \
    "least\tinference parallel: mean\tinference parallel: most\ttraining serial: least\ttraining " \
    "serial: "                                                                                     \
    "mean\ttraining serial: most\ttraining parallel: least\ttraining parallel: mean\ttraining "    \
    "parallel: "                                                                                   \
    "most\n"
#define FAILED(graph, planner, status)                                                             \
    "{\"status\":\"" status "\",\"schema\":1,\"graph\":\"" graph                                   \
    "\",\"safety\":\"serial\",\"planner\":\"" planner "\"}\n"

#define SWITCHED(graph, planner, planned, in_place, order, concat, optimise, safety, copied)       \
    "{\"status\":\"ok\",\"schema\":1,\"graph\":\"" graph "\",\"safety\":\"" safety                 \
    "\",\"order\":\"" order "\",\"planner\":\"" planner "\",\"in_place\":" in_place                \
    ",\"concat\":\"" concat "\",\"optimise\":" optimise ",\"planned_bytes\":" planned              \
    ",\"naive_bytes\":8388608,\"copied_bytes\":" copied "}\n"

#define ORDERED(graph, order, planned)                                                             \
    "{\"status\":\"ok\",\"schema\":1,\"graph\":\"" graph                                           \
    "\",\"safety\":\"serial\",\"order\":\"" order                                                  \
    "\",\"order_bound_bytes\":1048576,\"order_proof\":\"cut\",\"order_scope\":\"all orders with "  \
    "concats copied\",\"planner\":\"p\",\"planned_bytes\":" planned "}\n"

#define LEAST(graph, order, planner, planned, rest)                                                \
    "{\"status\":\"ok\",\"graph\":\"" graph "\",\"safety\":\"serial\",\"order\":\"" order          \
    "\",\"planner\":\"" planner "\",\"planned_bytes\":" planned rest "}\n"

static const struct {
    const char *kind, *rows, *tsv;
} tables[] = {
    ROW("least",
        LEAST("g", "given", "p", "4194304", "") LEAST("g", "given", "q", "3145728", "")
            LEAST("g", "least_peak", "p", "2097152", "") LEAST("h", "given", "p", "1048576", "")
                LEAST("g", "least", "least", "1048576",
                      ",\"bound_bytes\":1048576,\"claim\":\"optimal\"")
                    LEAST("h", "least", "least", "1048576", ",\"claim\":\"feasible\""),
        "graph\tgiven MiB\tleast peak MiB\tleast MiB\tbound MiB\tgap\toptimal\tless than "
        "both\t~search s\ng\t3.000\t2.000\t1.000\t1.000\t0\tyes\t50.0 %\t-\n"
        "h\t1.000\t-\t1.000\t-\t-\tno\t-\t-\nall\t-\t-\t-\t-\t-\t1 of 2\t-\t-\n"),
    ROW("orders",
        ORDERED("g:batch=1", "given", "2097152") ORDERED("g:batch=1", "best", "1048576")
            ORDERED("h:batch=1", "given", "4194304") ORDERED("h:batch=1", "best", "1048576")
                ORDERED("i", "given", "1048576") ORDERED("i", "best", "1048576"),
        "graph\tprogram MiB\tsearched MiB\tleast over orders MiB"
        "\tby\tless\t~search ms\ng:batch=1\t2.000\t1.000\t1.000\tcut\t50.0 "
        "%\t-\nh:batch=1\t4.000\t1.000\t1.000\tcut\t75.0 %\t-\n"
        "i\t1.000\t1.000\t1.000\tcut\t0.0 %\t-\nmean\t-\t-\t-\t-\t41.7 %\t-\n"
        "mean without h\t-\t-\t-\t-\t25.0 %\t-\nOLLA, as published\t-\t-\t-\t-\t33.3 %\t-\n"),
    ROW("safety",
        SIDE("../l/A.7.csv", "p", "serial", "true", "2097152", "1048576")
            SIDE("../l/A.7.csv", "q", "serial", "true", "1048576", "1048576")
                SIDE("../l/A.7.csv", "p", "parallel", "true", "3145728", "2097152")
                    SIDE("b", "p", "serial", "true", "1048576", "1"),
        "graph\tserial bound MiB\tserial best MiB\tserial by\tparallel bound MiB\tparallel best "
        "MiB\tparallel by\tparallel over serial\nA\t1.000\t1.000\tq\t2.000\t3.000\tp\t3.000\n"
        "b\t1 bytes\t1.000\tp\t-\t-\t-\t-\n"),
    {"in_place",
     SIDE("g", "p", "serial", "false", "2097152", "1048576")
         SIDE("g", "p", "serial", "true", "1048576", "1048576"),
     "graph\toff bound MiB\toff best MiB\toff by\ton bound MiB\ton best MiB\ton by\ton over off\n"
     "g\t1.000\t2.000\tp\t1.000\t1.000\tp\t0.500\n"},
    ROW("summary",
        SIDE("g", "p", "serial", "true", "1048576", "1048576")
            SIDE("h", "p", "serial", "true", "1572864", "1048576")
                SIDE("i", "p", "serial", "true", "1310720", "1048576"),
        "planner\tgraphs\tat the bound\tmean above bound\tmost above bound\ton\t~plan ms\n"
        "p\t3\t1\t25.00 %\t50.00 %\th\t4.500\n"),
    ROW("summary", /* of a family the mean counts once: 50 %, 50 % and 0 % are 25 % */
        SIDE("resnet18", "p", "serial", "true", "1572864", "1048576")
            SIDE("resnet50:batch=2", "p", "serial", "true", "1572864", "1048576")
                SIDE("vgg16", "p", "serial", "true", "1048576", "1048576"),
        "planner\tgraphs\tat the bound\tmean above bound\tmost above bound\ton\t~plan ms\n"
        "p\t3\t1\t25.00 %\t50.00 %\tresnet18\t4.500\n"),
    ROW("overview",
        FAILED("f", "q", "crash") FAILED("f", "p", "unavailable")
            PROBLEM("g", "p", "serial", "h1", "1048576", "1048576")
                PROBLEM("g", "q", "serial", "h1", "1572864", "1048577")
                    PROBLEM("a:mode=train", "q", "parallel", "h2", "3145728", "2097152")
                        PROBLEM("b:mode=train", "q", "parallel", "h3", "2097152", "2097152"),
        OVERVIEW
        "q\t0 of 2 (1 failed)\t50.00 %\t50.00 %\t-\t-\t-\t-\t-\t-\t1 of 2\t25.00 %\t50.00 %\n"
        "p\t0 of 1\t-0.00 %\t-0.00 %\t-\t-\t-\t-\t-\t-\t-\t-\t-\n"),
    ROW("families",
        PROBLEM("resnet7", "p", "serial", "h1", "1572864", "1048576")
            PROBLEM("gru:mode=train", "p", "parallel", "h2", "1048576", "1048576")
                PROBLEM("mlp", "p", "parallel", "h3", "1048576", "1048576")
                    PROBLEM("other", "q", "serial", "h4", "2", "2"),
        "planner\tchains: least\tchains: mean\tchains: most\tresidual: least\tresidual: "
        "mean\tresidual: most\tdense: least\tdense: mean\tdense: most\tinception: "
        "least\tinception: mean\tinception: most\trecurrent: least\trecurrent: mean\trecurrent: "
        "most\np\t1 of 1\t0.00 %\t0.00 %\t0 of 1\t50.00 %\t50.00 %\t-\t-\t-\t-\t-\t-\t1 of 1\t0.00 "
        "%\t0.00 %\n"),
    ROW("savings",
        SWITCHED("g", "p", "2097152", "true", "given", "auto", "null", "serial", "100") SWITCHED(
            "g", "q", "3145728", "true", "given", "auto", "null", "serial",
            "100") SWITCHED("g", "p", "4194304", "false", "given", "auto", "null", "serial", "null")
            SWITCHED("g", "p", "2097152", "true", "given", "copy", "null", "serial", "1048676")
                SWITCHED("g", "p", "1", "true", "given", "share", "null", "serial", "0")
                    SWITCHED("g", "p", "1048576", "true", "best", "copy", "null", "serial", "null")
                        SWITCHED("g", "p", "1572864", "true", "given", "auto", "\"all\"", "serial",
                                 "null") SWITCHED("g", "p", "524288", "true", "best", "copy",
                                                  "\"all\"", "serial", "null")
                            SWITCHED("g", "p", "4194304", "true", "given", "auto", "null",
                                     "parallel", "null"),
        "graph\tkind\tnothing shared MiB\tplanned MiB\tsharing\tin place\tviews\tconcat\tcopies "
        "less MiB\torder\tfusion\tagain\tseveral\tparallel\n"
        "g\tinference\t8.000\t2.000\t75.0 %\t50.0 %\t-\t0\t1.000\t50.0 %\t25.0 %\t-\t75.0 "
        "%\t+100.00 %\n"),
    {"passes",
     SWITCHED("../l/g.1.csv", "p", "2097152", "true", "given", "auto", "null", "serial", "null")
         SWITCHED("../l/g.1.csv", "q", "1048576", "true", "given", "auto", "null", "serial", "null")
             SWITCHED("h", "p", "3145728", "true", "given", "auto", "\"all\"", "serial", "null"),
     "graph\tas it is MiB\tall MiB\ng\t1.000\t-\nh\t-\t3.000\n"},
    {"executed",
     SIDE("g", "none", "serial", "true", "4194304", "1048576")
         SIDE("g", "p", "serial", "true", "1048576", "1048576"),
     "graph\tplanner\tplanned MiB\tmeasured MiB\tdifference\toutputs\t~run ms\t~beside none\n"
     "g\tnone\t4.000\t4.000\t0\tequal\t2.000\t1.00\ng\tp\t1.000\t1.000\t0\tequal\t2.000\t1.00\n"},
    ROW("published",
        SEEDED("../l/A.7.csv", "7", "3145728") SEEDED("../l/A.7.csv", "1", "2097152")
            SEEDED("../l/A.7.csv", "2", "5242880"),
        "graph\tsafety\tplanner\tquantity\ttheirs\tours\tour "
        "median\tdifference\tsource\torigin\tnote\n"
        "A\tserial\tp\tplanned_kib\t1024\t2048\t3072\t+100.00 %\tbook\tpublished: a book\t\n"
        "A\tserial\tp\tnaive_mib\t4.00\t4.00\t4.00\t0\tbook\tcomputed by us\t\n"
        "A\tserial\tp\tover_bound\t4.0\t2.0\t3.0\t-50.00 %\tbook\treported by them\tx\n"),
};

TEST(test_tables)
{
    put("results/published.tsv",
        "# a book\ngraph\tsafety\tplanner\tquantity\tvalue\tsource\torigin\tnote\n"
        "A\tserial\tp\tplanned_kib\t1024\tbook\tpublished: a book\t\n"
        "A\tserial\tp\tnaive_mib\t4.00\tbook\tcomputed by us\t\n"
        "A\tparallel\tp\tnaive_mib\t4.00\tbook\tcomputed by us\t\n"
        "A\tserial\tp\tover_bound\t4.0\tbook\treported by them\tx\n"
        "mean\tserial\torder\tless\t0.3333\tOLLA\tpublished: an abstract\t\n");
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char arguments[200];

        put("rows.jsonl", tables[i].rows);
        snprintf(arguments, sizeof arguments, "table %s --tsv -r rows.jsonl", tables[i].kind);
        if (run(arguments) != 0)
            fail_msg("memplan %s: %s", arguments, said);
        assert_string_equal(said, tables[i].tsv);
    }
}

static const struct {
    const char *file, *text, *why;
} wrong[] = {
    {"results/paper/a.suite", "#! table sums summary\n", "results/paper/a.suite:1: a caption"},
    {"results/paper/a.suite", "\n#! tabel sums summary | x\n", "a.suite:2: 'table NAME KIND"},
    {"results/paper/a.suite", "#! table sums\n", "a caption"},
    {"results/paper/a.suite", "#! table sums frob | x\n", "no table 'frob'"},
    {"results/paper/a.suite", "#! table s summary | x\n#! table s gap | y\n",
     "a.suite:2: 's' is asked for twice"},
    {"results/paper/a.suite", "#! table sums summary other | x\n", "results/raw/other.jsonl"},
    {"results/paper/a.suite", "#! table sums safety | x\n", "one side of safety"},
    {"results/paper/a.suite", "#! table one runs.tsv frob=1 | x\n", "no column for 'frob=1'"},
    {"results/paper/a.suite", "#! table one runs.tsv show=frob | x\n", "no column 'frob'"},
    {"results/paper/a.suite", "#! table one lost.tsv | x\n", "lost.tsv"},
    {"results/tables/runs.tsv", "planner\tn\tplan_ms\np\t1\n", "a line has 2 cells"},
    {"results/tables/runs.tsv", "", "no head"},
    {"results/raw/a.jsonl", JSON_ROW("one", "low", "1") "{\"status\": \"o", "a.jsonl:2"},
    {"PAPER.md", "<!-- value:sums/high", "PAPER.md:1"},
};

/* Files of other projects: none, one, several with different columns. */
static const struct {
    const char *one, *two, *tsv; /* files or NULL; lines of the table */
} files[] = {
    {NULL, NULL, "**Not run**"},
    ROW("what,count,failures,seconds,command\nruns,10,0,3,\"a \"\"b\"\", c | "
        "d\"\r\nlong,0,0,,x\nother,,,,y\n",
        NULL,
        "| what  |       count | failures | ~seconds |       command |\n"
        "|-------|------------:|---------:|---------:|--------------:|\n"
        "| runs  |          10 |        0 |        3 | a \"b\", c \\| d |\n"
        "| long  | **not run** |        - |        - |             x |\n"
        "| other | **not run** |        - |        - |             y |\n"),
    {"what,count,failures,seconds,command\nbroke,0,1,3,x\n", NULL,
     "| broke |     0 |        1 |        3 |       x |"},
    {"what,count,failures,seconds,command\na,1,2,3,x\n", "what,command,more\nb,y,7\n",
     "| b    | **not run** |        - |       - |       y |    7 |"},
};

TEST(test_files_of_others)
{
    skip_without("/usr/bin/gnuplot");
    project();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        owned_memory char *text = NULL;
        size_t size;

        put("results/paper/b.suite",
            files[i].two == NULL
                ? "#! table others other*.csv show=what,count,failures,~seconds,command | Others.\n"
                : "#! table others other*.csv | Others.\n");
        if (files[i].one != NULL)
            put("results/other1.csv", files[i].one);
        if (files[i].two != NULL)
            put("results/other2.csv", files[i].two);
        assert_int_equal(run("paper"), 0);
        assert_ok(ctx, mpl_file_read(ctx, "results/tables/others.md", &text, &size));
        if (strstr(text, files[i].tsv) == NULL)
            fail_msg("'%s' is not in '%s'", files[i].tsv, text);
    }
    put("results/other2.csv", "what,count\nb\n");
    assert_int_equal(run("paper"), 2);
    check_said("a line has 1 cells where the head has 2");
    assert_int_equal(remove("results/other1.csv") | remove("results/other2.csv") |
                         remove("results/paper/b.suite"),
                     0);
}

/* Optional rows. */
TEST(test_optional_rows)
{
    skip_without("/usr/bin/gnuplot");
    project();
    put("results/paper/c.suite", "#! table later summary rows=optional | Later.\n");
    put("PAPER.md", TEXT "<!-- table:later --><!-- end -->\n");
    assert_int_equal(run("paper"), 0);
    assert_int_equal(system("grep -q 'Not run' PAPER.md results/tables/later.md"), 0);
    put("results/raw/c.jsonl", ROWS);
    assert_int_equal(run("paper"), 0);
    assert_int_equal(system("grep -q '| low ' PAPER.md && ! grep -q 'Not run' PAPER.md"), 0);
    put("results/paper/c.suite", "#! table later summary | Later.\n");
    assert_int_equal(remove("results/raw/c.jsonl"), 0);
    assert_int_equal(run("paper"), 2);
    assert_int_equal(remove("results/paper/c.suite"), 0);
}

/* A claim that no longer holds: everything is written, and the end reports it. */
TEST(test_claim_fails)
{
    skip_without("/usr/bin/gnuplot");
    project();
    put("PAPER.md", TEXT "<!-- holds:sums/high/graphs = 2 -->\n");
    assert_int_equal(run("paper"), 1);
    check_said("wrote PAPER.md");
    check_said("PAPER.md:4: sums/high/graphs = 2 does not hold: it is 1");
    assert_int_equal(run("paper --check"), 1);
}

TEST(test_wrong_input)
{
    skip_without("/usr/bin/gnuplot");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        project();
        put(wrong[i].file, wrong[i].text);
        if (run("paper --check") != 2 || run("paper") != 2)
            fail_msg("'%s' is not refused: %s", wrong[i].text, said);
        check_said(wrong[i].why);
    }
}

TESTS_WITHIN(begin, end, test_markers, test_memory_runs_out, test_made_and_fresh, test_appendix,
             test_size_of_a_paper, test_anatomy, test_stale, test_touched_picture, test_wrong_input,
             test_tables, test_faults, test_files_of_others, test_claim_fails, test_optional_rows,
             test_names_run_nothing)
