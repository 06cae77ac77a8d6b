/* test_harness_tune.c -- memplan tune and --layout tuned: times in a file, the layouts that they
 * make best, and the same plan from the same file.
 *
 * Fault: a choice that depends on more than the file, a time that is not heeded, a plan that cannot
 * be run again, an implementation that computes something else, one that is taken for noise, a
 * reference loop that is timed. */
#include "tests/harness/run_program.h"

#include "harness/tune/tuned.h"

static const char text[] =
    "graph small\ninput x f32 [1,8,8,8]\nweight w f32 [16,8,3,3]\nweight u f32 [16,16,1,1]\n"
    "a = conv(x, w) pads=[1,1,1,1]\nb = relu(a)\nc = conv(b, u)\nd = add(c, b)\n"
    "e = transpose(d) perm=[0,1,3,2]\ny = relu(e)\noutput y\n";

static bool needs_cpu(void)
{
    return run("list backends") == 0 && strstr(out, "oneDNN") != NULL;
}

static int begin(void)
{
    int failed = program_begin("tune");

    folder_put_text("small.graph", text);
    return failed;
}

/* Sets the time of lines whose words begin so. */
static void set_times(const char *file, const char *words, unsigned long ns)
{
    static char all[1 << 16], made[1 << 16];
    size_t n = 0;

    folder_read(file, all, sizeof all);
    made[0] = '\0';
    for (char *line = strtok(all, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *word = strrchr(line, '\t');

        if (word != NULL && strncmp(word + 1, words, strlen(words)) == 0)
            n += (size_t)snprintf(made + n, sizeof made - n, "%.16s\t%lu%s\n", line, ns, word);
        else
            n += (size_t)snprintf(made + n, sizeof made - n, "%s\n", line);
    }
    folder_put_text(file, made);
}

static int count(const char *where, const char *what)
{
    int n = 0;

    for (const char *at = where; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

/* Reorders of the graph that the times ask for. */
static int reorders(void)
{
    assert_int_equal(run("export @/small.graph --layout tuned --op-times @/t.tsv -f graph"), 0);
    return count(out, "= reorder(");
}

TEST(times_decide)
{
    if (!needs_cpu())
        skip();
    assert_int_equal(run("tune @/small.graph --op-times @/t.tsv --threads 1 -q"), 0);
    set_times("t.tsv", "", 1000000);
    set_times("t.tsv", "whole run as chosen", 1); /* whatever tune chose to run whole */
    set_times("t.tsv", "conv plain", 1000);
    assert_int_equal(reorders(), 0);
    set_times("t.tsv", "conv last", 10);
    set_times("t.tsv", "reorder to", 400);
    assert_int_equal(reorders(), 2); /* one before the convolutions, one after what is between */
    set_times("t.tsv", "reorder to", 100000);
    assert_int_equal(reorders(), 0);
    set_times("t.tsv", "add plain way 1", 1);
    assert_int_equal(run("export @/small.graph --layout tuned --op-times @/t.tsv -f graph"), 0);
    assert_int_equal(count(out, " way=1"), 1);
    set_times("t.tsv", "", 1000000);
    set_times("t.tsv", "whole run as chosen", 1); /* whatever tune chose to run whole */
    set_times("t.tsv", "conv blocked8", 10);
    set_times("t.tsv", "reorder to", 400);
    assert_int_equal(reorders(), 2);
    assert_int_equal(count(out, "mode=blocked8"), 1);
    /* a second graph with the same operations needs no run of its own */
    assert_int_equal(run("tune @/small.graph --op-times @/t.tsv --threads 1"), 0);
    assert_non_null(strstr(out, "tuned, "));
}

/* The preferred implementation, unless another is clearly faster; the bound knows all of them. */
TEST(noise_decides_nothing)
{
    static const struct {
        uint64_t ns[2], taken, bound;
    } table[] = ROW({{1000, 1001}, 1000, 1000}, {{1000, 901}, 1000, 901}, {{1000, 899}, 899, 899});
    mpl_graph *g = text_graph(ctx, "graph one\ninput x f32 [8]\ny = sigmoid(x)\noutput y\n");

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        mpl_op_times times = {0};
        mpl_chosen chosen;
        mpl_laid laid;

        for (uint8_t way = 0; way < 2; way++) {
            mpl_op_time time = mpl_op_time_of(g, 0, (mpl_laid){MPL_PLAIN, way});

            time.ns = table[i].ns[way];
            assert_ok(ctx, mpl_op_times_put(ctx, &times, &time));
        }
        assert_ok(ctx, mpl_tuned_choose(ctx, g, &times, "times", &laid, &chosen));
        assert_int_equal(chosen.ns, table[i].taken);
        assert_int_equal(chosen.bound_ns, table[i].bound);
        assert_int_equal(table[i].ns[laid.way], table[i].taken);
        mpl_op_times_free(ctx, &times);
    }
    mpl_graph_free(ctx, g);
}

/* The graph as chosen, or as --layout auto has it, whichever took less. */
TEST(whole_runs_decide)
{
    static char as_auto[sizeof out], said[1 << 21];
    const char *at;

    if (!needs_cpu())
        skip();
    assert_int_equal(run("export @/small.graph --layout auto -f graph"), 0);
    memcpy(as_auto, out, sizeof out);
    assert_int_equal(run("tune @/small.graph --op-times @/t.tsv --threads 1 -q"), 0);
    set_times("t.tsv", "", 1); /* every choice of layouts takes the same */
    assert_int_equal(
        run_with("DNNL_VERBOSE", "1", "tune @/small.graph --op-times @/t.tsv --threads 1"), 0);
    folder_read("out", said, sizeof said);
    assert_non_null(strstr(said, "as --layout auto has it 0.000 ms"));
    at = said; /* runs behind all those in blocks: the choice is plain, auto is not */
    for (const char *block = said; (block = strstr(block, ":aBcd8b:")) != NULL; block++)
        at = block;
    assert_true(at == said || (strstr(at, ":abcd:") != NULL && strstr(at, ":acdb:") != NULL));
    set_times("t.tsv", "whole run as auto", 1000);
    set_times("t.tsv", "whole run as chosen", 971); /* a gain that is none */
    assert_int_equal(reorders(), 2);
    assert_string_equal(out, as_auto);
    set_times("t.tsv", "reorder to", 0);
    set_times("t.tsv", "conv blocked8", 0); /* another choice, which did not run */
    assert_true(reorders() > 0 && strstr(out, "mode=blocked8") != NULL);
    set_times("t.tsv", "conv blocked8", 1);
    set_times("t.tsv", "whole run as chosen", 970);
    assert_int_equal(reorders(), 0);
}

/* Convolutions whose windows dilate further and further; their images in blocks, or plain. */
static void put_dilated(const char *file, bool in_blocks)
{
    char graph[2000];
    size_t n = (size_t)snprintf(graph, sizeof graph,
                                "graph wide\ninput x f32 [1,8,8,8]\nweight w f32 [8,8,3,3]\n%s",
                                in_blocks ? "v0 = reorder(x) mode=blocked8\n" : "v0 = relu(x)\n");

    for (int i = 1; i <= 6; i++)
        n += (size_t)snprintf(graph + n, sizeof graph - n,
                              "v%d = conv(v%d, w) pads=[%d,%d,%d,%d] dilations=[%d,%d]\n", i, i - 1,
                              i, i, i, i, i, i);
    snprintf(graph + n, sizeof graph - n, "y = %s\noutput y\n",
             in_blocks ? "reorder(v6) mode=plain" : "relu(v6)");
    folder_put_text(file, graph);
}

/* oneDNN itself says what it has reference loops alone for, of a graph that lies so. */
TEST(reference_loops_are_not_timed)
{
    static char all[1 << 21];
    int n_convs, n_loops;

    if (!needs_cpu())
        skip();
    put_dilated("blocked.graph", true);
    put_dilated("plain.graph", false);
    assert_int_equal(run_with("DNNL_VERBOSE", "1", "run @/blocked.graph -b cpu --threads 1 -q"), 0);
    folder_read("out", all, sizeof all);
    n_convs = count(all, "convolution,"), n_loops = count(all, "convolution,ref");
    if (n_loops == 0)
        skip(); /* it has more on this processor, or tells nothing */
    assert_int_equal(
        run_with("DNNL_VERBOSE", "1", "tune @/plain.graph --op-times @/w.tsv --threads 1"), 0);
    folder_read("out", all, sizeof all);
    assert_true(count(all, "convolution,") > 0);
    assert_int_equal(count(all, "convolution,ref"), 0);
    folder_read("w.tsv", all, sizeof all);
    assert_int_equal(count(all, "conv plain way 0"), 6);
    assert_int_equal(count(all, "conv last way 0"), 6);
    assert_int_equal(count(all, "conv blocked8 way 0"), 6 - 6 * n_loops / n_convs);
}

/* A loop is timed as a whole, and known by its body. */
TEST(loops_are_timed_as_a_whole)
{
    static const char *const name[] = {"loop", "other"}, *const body[] = {"tanh", "sigmoid"};

    if (!needs_cpu())
        skip();
    for (int i = 0; i < 2; i++) {
        char graph[400], file[40];

        snprintf(graph, sizeof graph,
                 "graph g\ninput x f32 [1,8,4,4]\nweight n i64 [] = splat 3\na = relu(x)\n"
                 "block step\nparam t i64 []\nparam h f32 [1,8,4,4]\nb = %s(h)\nc = add(b, a)\n"
                 "yield _, c\nd = while step(n, _, a) carried=1\ny = relu(d)\noutput y\n",
                 body[i]);
        snprintf(file, sizeof file, "%s.graph", name[i]);
        folder_put_text(file, graph);
        assert_int_equal(run("tune @/%s --op-times @/loops.tsv --threads 1 -q", file), 0);
        set_times("loops.tsv", "relu plain", 1000); /* the loop itself stays plain */
        set_times("loops.tsv", "relu last", 1);
        set_times("loops.tsv", "reorder", 1);
        assert_int_equal(run("run @/%s --layout tuned --op-times @/loops.tsv --repeat 1", file), 0);
    }
    folder_read("loops.tsv", out, sizeof out);
    assert_int_equal(count(out, "while plain way 0"), 2);
    assert_int_equal(count(out, "tanh") + count(out, "sigmoid") + count(out, "add"), 0);
}

TEST(plans_are_of_the_file_alone)
{
    static char first[1 << 17];

    if (!needs_cpu())
        skip();
    assert_int_equal(run("tune @/small.graph --op-times @/t.tsv --threads 1 -q"), 0);
    set_times("t.tsv", "", 1000000);
    set_times("t.tsv", "conv last", 10);
    set_times("t.tsv", "reorder to", 400);
    set_times("t.tsv", "whole run as chosen", 10);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            run("plan @/small.graph -b cpu --layout tuned --op-times @/t.tsv --reproducible "
                "-o @/p%d.json",
                i),
            0);
        folder_read(i == 0 ? "p0.json" : "p1.json", i == 0 ? first : out, sizeof out);
    }
    assert_string_equal(first, out);
    if (run("run @/small.graph --plan @/p0.json --repeat 1") != 0)
        fail_msg("%s", err);
    assert_non_null(strstr(out, "equal to the run"));
    assert_int_equal(run("verify @/small.graph @/p0.json"), 0);
    /* other times, another graph */
    set_times("t.tsv", "reorder to", 100000);
    set_times("t.tsv", "conv plain", 10);
    assert_int_equal(run("run @/small.graph --plan @/p0.json --repeat 1"), 2);
}

/* Every implementation that is timed computes the same within tolerance, as `run` compares only
 * with itself. */
TEST(implementations_agree)
{
    if (!needs_cpu())
        skip();
    assert_int_equal(run("tune @/small.graph --op-times @/t.tsv --threads 1 -q"), 0);
    assert_int_equal(run("run @/small.graph -b ref --repeat 1 --dump @"), 0);
    for (int layout = 0; layout < 3; layout++)
        for (int way = 0; way < 2; way++) {
            static const char *const name[] = {"plain", "last", "blocked8"};
            char words[40];

            set_times("t.tsv", "", 1000000);
            set_times("t.tsv", "whole run as chosen", 1);
            set_times("t.tsv", "reorder to", 1);
            snprintf(words, sizeof words, "add %s way %d", name[layout], way);
            set_times("t.tsv", words, 1);
            snprintf(words, sizeof words, "conv %s", name[layout]);
            set_times("t.tsv", words, 1);
            if (run("run @/small.graph -b cpu --layout tuned --op-times @/t.tsv --repeat 1 "
                    "--expect y=@/y.npy:1e-3,1e-4") != 0)
                fail_msg("%s: %s", words, err);
        }
}

/* Less workspace, the same results within tolerance. */
TEST(workspace_is_traded)
{
    if (!needs_cpu())
        skip();
    assert_int_equal(run("run @/small.graph -b ref --repeat 1 --dump @"), 0);
    assert_int_equal(run("show @/small.graph -b cpu --workspaces plan"), 0);
    assert_non_null(strstr(out, "algorithms"));
    assert_int_equal(run("run @/small.graph -b cpu --workspaces plan --algorithms least --repeat 1 "
                         "--expect y=@/y.npy:1e-3,1e-4"),
                     0);
}

TEST(what_is_refused)
{
    static const struct {
        const char *arguments, *said;
    } table[] =
        ROW({"tune @/small.graph", "add --op-times FILE"},
            {"tune @/none.graph --op-times @/x.tsv", "none.graph"},
            {"tune @/laid.graph --op-times @/x.tsv", "layouts are chosen of graphs without them"},
            {"tune @/small.graph --op-times @/small.graph", "no times of operations"},
            {"tune @/small.graph --op-times @/bad.tsv", "bad.tsv:3: 'zz' is no time"},
            {"tune @/small.graph --op-times @/other.tsv", "its times are of 'another machine'"},
            {"plan @/small.graph --layout tuned", "add --op-times FILE"},
            {"plan @/small.graph --layout tuned --op-times @/none.tsv", "none.tsv"},
            {"plan @/small.graph --layout tuned --op-times @/other.tsv", "no time of conv plain"});

    if (!needs_cpu())
        skip();
    put_dilated("laid.graph", true);
    folder_put_text("bad.tsv", "memplan times 1\nanother machine\nzz\n");
    folder_put_text("other.tsv", "memplan times 1\nanother machine\n");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int status = run("%s", table[i].arguments);

        if (status != 2 || strstr(err, table[i].said) == NULL || count(err, "\n") != 1)
            fail_msg("%s: exit status %d, %s", table[i].arguments, status, err);
    }
}

int main(void)
{
    return begin() != 0 ||
           RUN_TESTS(NULL, folder_remove, times_decide, noise_decides_nothing, whole_runs_decide,
                     reference_loops_are_not_timed, loops_are_timed_as_a_whole,
                     plans_are_of_the_file_alone, implementations_agree, workspace_is_traded,
                     what_is_refused) != 0;
}
