/* test_harness_streams.c -- --safety streams:K on the command line and in plan files: between
 * serial and parallel on networks of the zoo, the serial plan for one stream, wrong files refused.
 */
#include "tests/harness/run_program.h"

/* The whole number behind the text `key` in `out`. */
static uint64_t number_behind(const char *key)
{
    const char *at = strstr(out, key);

    if (at == NULL)
        fail_msg("no '%s' in: %s", key, out);
    return strtoull(at + strlen(key), NULL, 10);
}

TEST(between_serial_and_parallel)
{
    static const char *const graphs[] = {
        "squeezenet", "shufflenet_v2", "lstm:layers=1,steps=4,hidden=8,batch=2",
        "mlp:layers=3,batch=4,hidden=16,mode=train", "series_parallel:ops=40"};
    static const char *const safeties[] = {"serial",          "streams:1",     "streams:2",
                                           "streams:4:chain", "streams:65536", "parallel"};
    enum { N = sizeof safeties / sizeof *safeties };

    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        uint64_t bytes[N], ns[N] = {0};

        for (int k = 0; k < N; k++) {
            if (run("show %s --safety %s --json", graphs[i], safeties[k]) != 0)
                fail_msg("%s: %s", graphs[i], err);
            bytes[k] = number_behind("\"bound_bytes\":");
            if (k > 0 && k < N - 1)
                ns[k] = number_behind("\"simulated_ns\":");
        }
        assert_int_equal(bytes[0], bytes[1]);
        assert_int_equal(bytes[N - 2], bytes[N - 1]);
        for (int k = 1; k < N; k++) {
            assert_true(bytes[0] <= bytes[k] && bytes[k] <= bytes[N - 1]);
            assert_true(k == N - 1 || (ns[N - 2] <= ns[k] && ns[k] <= ns[1]));
        }
    }
}

/* One stream is the serial plan, each a stream of its own the parallel one: but for the name of the
 * safety, and of what was simulated, the files are the same bytes. */
TEST(the_ends_are_serial_and_parallel)
{
    static const char *const pairs[][2] = {{"streams:1", "serial"}, {"streams:9999", "parallel"}};
    static const char *const cut[] = {"\"safety\":", "\"simulated_ns\":", "\"simulated_by\":"};

    for (int i = 0; i < 2; i++) {
        static char text[2][1 << 17];

        for (int k = 0; k < 2; k++) {
            assert_int_equal(
                run("plan squeezenet --reproducible --safety %s -o @/plan.json", pairs[i][k]), 0);
            folder_read("plan.json", text[k], sizeof text[k]);
            for (size_t c = 0; c < sizeof cut / sizeof *cut; c++) {
                char *at = strstr(text[k], cut[c]);
                size_t n = at != NULL ? strcspn(at, ",") : 0;

                if (at != NULL)
                    memmove(at, at + n + 1, strlen(at + n + 1) + 1);
            }
        }
        assert_string_equal(text[0], text[1]);
    }
}

/* A file whose streams were changed. */
static void change(const char *from, const char *to)
{
    static char text[1 << 17], changed[1 << 17];
    char *at;

    folder_read("plan.json", text, sizeof text);
    if ((at = strstr(text, from)) == NULL)
        fail_msg("no '%s'", from);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    folder_put_text("changed.json", changed);
}

TEST(files_hold_the_streams)
{
    static const char fork[] = "graph g\ninput i f32 [64]\na = sin(i)\nb = sin(a)\nc = sin(b)\n"
                               "d = cos(i)\ne = cos(d)\nf = add(c, e)\noutput f\n";
    static const struct {
        const char *from, *to, *says;
    } rows[] = {
        {"\"of\":[0,0,0,1,1,0]", "\"of\":[0,0,0,1,1]", "does not cover"},
        {"\"of\":[0,0,0,1,1,0]", "\"of\":[0,0,0,1,6,0]", "no stream from 0 to 5"},
        {"\"of\":[0,0,0,1,1,0]", "\"of\":[0,0,0,1,2,0]", "which there is not"},
        {"\"of\":[0,0,0,1,1,0]", "\"of\":[0,0,1,1,1,0]", "a plan for another problem"},
        {"\"rule\":\"critical_path\"", "\"rule\":\"best\"", "no 'rule'"},
        {"\"n\":2", "\"n\":3", "needs 'streams' of as many"},
        {"\"streams\":", "\"other\":", "needs 'streams' of as many"},
    };

    folder_put_text("fork.graph", fork);
    assert_int_equal(run("plan @/fork.graph --in-place off --safety streams:2 -o @/plan.json"), 0);
    assert_int_equal(run("verify @/fork.graph @/plan.json"), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        change(rows[i].from, rows[i].to);
        assert_int_equal(run("verify @/fork.graph @/changed.json"), 2);
        check_error(rows[i].to);
        if (strstr(err, rows[i].says) == NULL)
            fail_msg("%s: %s", rows[i].to, err);
    }
    /* the serial plan is none for two streams */
    assert_int_equal(run("plan @/fork.graph --in-place off -o @/plan.json"), 0);
    assert_int_equal(run("verify @/fork.graph @/plan.json --safety streams:2"), 2);
}

TEST(refusals)
{
    static const char *const rows[][2] = {
        {"plan squeezenet --safety streams:0", "no number of streams"},
        {"plan squeezenet --safety streams:", "no whole number"},
        {"plan squeezenet --safety streams:2:best", "no rule 'best'"},
        {"plan squeezenet --safety streams", "streams:K[:RULE]"},
        {"plan squeezenet --safety streams:70000", "from 1 to 65536"},
        {"plan @/list.csv --safety streams:2", "list of buffers"},
        {"run squeezenet --safety streams:2 --workers 3", "more than the streams"},
    };

    folder_put_text("list.csv", "id,lower,upper,size\na,0,2,8\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(run("%s", rows[i][0]), 2);
        check_error(rows[i][0]);
        if (strstr(err, rows[i][1]) == NULL)
            fail_msg("%s: %s", rows[i][0], err);
    }
}

/* Nothing that the search finds is below what is proved, and a stream more costs what it may. */
#define GRAPH "series_parallel:ops=12"

TEST(least_under_streams)
{
    uint64_t bytes[2];

    for (int k = 0; k < 2; k++) {
        assert_int_equal(run("least " GRAPH " --budget 2000000 --json -o @/least.json%s",
                             k > 0 ? " --safety streams:2" : ""),
                         0);
        bytes[k] = number_behind("\"planned_bytes\":");
        assert_true(number_behind("\"bound_bytes\":") <= bytes[k]);
        assert_true(k == 0 || strstr(out, "streams of the given order") != NULL);
    }
    assert_true(bytes[0] <= bytes[1]);
    assert_int_equal(run("verify " GRAPH " @/least.json"), 0);
}

TESTS_OF_PROGRAM("streams", between_serial_and_parallel, the_ends_are_serial_and_parallel,
                 files_hold_the_streams, refusals, least_under_streams)
