/* test_harness_replay.c -- memplan replay: rows of traces and graphs, held to plans of the same
 * requests and to each other; values by hand; what it refuses.
 *
 * Fault: requests that are not those of the trace or the order; an optimum of another problem;
 * counts in the wrong field; an allocator named and not played; a failure that ends well. */
#include "tests/harness/run_program.h"

#include <jansson.h>

enum { MOST = 8 };
static json_t *rows[MOST];
static uint32_t n_rows;

static void drop_rows(void)
{
    while (n_rows > 0)
        json_decref(rows[--n_rows]);
}

/* Runs it and reads the rows. */
static void replay(const char *arguments)
{
    char *rest = out, *line;

    drop_rows();
    if (run("replay %s --json", arguments) != 0)
        fail_msg("memplan replay %s: %s", arguments, err);
    while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        assert_true(n_rows < MOST);
        rows[n_rows] = json_loads(line, 0, NULL);
        assert_non_null(rows[n_rows++]);
    }
}

static int64_t number(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);

    if (!json_is_integer(value))
        fail_msg("'%s' is no number", key);
    return json_integer_value(value);
}

static const char *text(const json_t *row, const char *key)
{
    const char *value = json_string_value(json_object_get(row, key));

    return value != NULL ? value : "";
}

/* ---- by hand ---- */

#define HEAD "time,event,id,bytes\n"

/* Reserved by caching, best_fit, buddy and slab; then requested, most alive, and the optimum. */
static const struct {
    const char *name, *trace;
    int64_t reserved[4], requested, live, optimum;
} hand[] = {
    {"one", HEAD "0,malloc,a,1000\n", {2097152, 1000, 1024, 8192}, 1000, 1000, 1000},
    ROW("a hole is used again",
        HEAD "0,malloc,a,1000\n1,malloc,b,1000\n2,free,a,\n3,malloc,c,600\n",
        {2097152, 2000, 2048, 13312}, 2600, 2000, 2000),
    ROW("a hole is too small",
        HEAD "0,malloc,a,1000\n1,malloc,b,1000\n2,free,a,\n3,malloc,c,2000\n",
        {2097152, 4000, 4096, 24576}, 4000, 3000, 3000),
    ROW("large ones", HEAD "0,malloc,a,12582912\n1,free,a,\n2,malloc,a,14680064\n",
        {27262976, 14680064, 16777216, 14680064}, 27262976, 14680064, 14680064),
};

TEST(values_are_those_by_hand)
{
    static const char *const names[] = {"caching", "best_fit", "buddy", "slab"};

    for (size_t i = 0; i < sizeof hand / sizeof *hand; i++) {
        folder_put_text("hand.csv", hand[i].trace);
        replay("@/hand.csv --allocator caching,best_fit,buddy,slab");
        assert_int_equal(n_rows, 4);
        for (uint32_t k = 0; k < 4; k++) {
            assert_string_equal(text(rows[k], "allocator"), names[k]);
            if (number(rows[k], "reserved_bytes") != hand[i].reserved[k])
                fail_msg("%s: %s holds %" PRId64 ", not %" PRId64, hand[i].name, names[k],
                         number(rows[k], "reserved_bytes"), hand[i].reserved[k]);
            assert_int_equal(number(rows[k], "requested_bytes"), hand[i].requested);
            assert_int_equal(number(rows[k], "live_peak_bytes"), hand[i].live);
            assert_int_equal(number(rows[k], "optimum_bytes"), hand[i].optimum);
        }
    }
    drop_rows();
}

/* ---- against plans ---- */

static json_t *planned(const char *arguments)
{
    if (run("plan %s --in-place off --json", arguments) != 0)
        fail_msg("memplan plan %s: %s", arguments, err);
    return json_loads(out, 0, NULL);
}

/* plain: no storage is shared by several buffers, so that `plan` has the very same problem. */
static void check_rows(const char *arguments, bool plain)
{
    json_t *plan = plain ? planned(arguments) : NULL;
    int64_t live = number(rows[n_rows - 1], "live_peak_bytes");

    assert_int_equal(n_rows, 7);
    for (uint32_t i = 0; i < n_rows; i++) {
        const json_t *row = rows[i];
        bool is_malloc = strcmp(text(row, "allocator"), "malloc") == 0,
             gives = strcmp(text(row, "allocator"), "slab") == 0;
        int64_t reserved, optimum = number(row, "optimum_bytes");
        double part;

        assert_true(is_malloc == (i == 0));
        if (is_malloc && strcmp(text(row, "status"), "unavailable") == 0) {
            print_message("skip: malloc: %s\n", text(row, "reason"));
            continue;
        }
        reserved = number(row, "reserved_bytes");
        part = json_real_value(json_object_get(row, "fragmentation"));
        assert_string_equal(text(row, "status"), "ok");
        assert_true(json_is_false(json_object_get(row, "in_place")));
        assert_int_equal(number(row, "live_peak_bytes"), live);
        assert_int_equal(number(row, "planned_bytes"), optimum);
        assert_true(live <= optimum && live <= reserved && number(row, "bound_bytes") == optimum);
        assert_true(gives || optimum <= reserved);
        assert_true(live <= number(row, "requested_bytes"));
        assert_true(part * (double)reserved - (double)(reserved - live) < 1 &&
                    (double)(reserved - live) - part * (double)reserved < 1);
        if (plan == NULL)
            continue;
        assert_true(optimum <= number(plan, "planned_bytes"));
        assert_true(number(row, "requested_bytes") <= number(plan, "naive_bytes"));
    }
    json_decref(plan);
}

TEST(rows_hold_to_each_other)
{
    static const struct {
        const char *arguments;
        bool plain;
    } cases[] = {{"tests/data/trace.csv", true},
                 {"tests/data/six.csv", true},
                 {"mlp", true},
                 {"mlp:layers=3,mode=train --pin weights", true},
                 {"lstm:layers=1,steps=4", true},
                 {"lstm:form=while,layers=1,steps=4", false},
                 {"densenet121:image=32", false},
                 {"densenet121:image=32 --concat copy --order least_peak", false},
                 {"inception_v1:image=64 --views off", true}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        replay(cases[i].arguments);
        check_rows(cases[i].arguments, cases[i].plain);
    }
    drop_rows();
}

/* A list of the order's buffers has the same requests as the graph; what shares a storage is one of
 * them. */
TEST(graphs_are_played_as_their_lists)
{
    static const char *const graphs[] = {"resnet18:image=32",
                                         "densenet121:image=32 --concat share"};
    int64_t reserved[4];

    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        char arguments[200];

        snprintf(arguments, sizeof arguments, "%s --allocator caching,best_fit,buddy,slab",
                 graphs[i]);
        replay(arguments);
        for (uint32_t k = 0; k < 4; k++)
            reserved[k] = number(rows[k], "reserved_bytes");
        assert_int_equal(run("export %s --in-place off --format csv -o @/list.csv", graphs[i]), 0);
        replay("@/list.csv --allocator caching,best_fit,buddy,slab");
        for (uint32_t k = 0; k < 4; k++)
            assert_int_equal(number(rows[k], "reserved_bytes"), reserved[k]);
    }
    drop_rows();
}

/* What malloc holds depends on the trace alone, not on what the program did before. */
TEST(runs_repeat)
{
    static char first[sizeof out];

    for (int i = 0; i < 2; i++) {
        static const char *const arguments[] = {
            "replay resnet50 -q -o @/first.jsonl",
            "replay resnet50 -q --seed 7 --allocator all -o @/second.jsonl"};

        if (run_with("LC_ALL", i == 0 ? "C.UTF-8" : "C", arguments[i]) != 0)
            fail_msg("%s", err);
        assert_string_equal(out, "");
    }
    assert_int_equal(run("table online --rows @/first.jsonl"), 0);
    memcpy(first, out, sizeof out);
    assert_non_null(strstr(first, "best_fit"));
    assert_int_equal(run("table online --rows @/second.jsonl"), 0);
    assert_string_equal(out, first);
    assert_int_equal(run("audit @/first.jsonl @/second.jsonl"), 0);
}

/* ---- refusals ---- */

TEST(what_is_wrong_is_said)
{
    static const struct {
        const char *arguments;
        int status;
        const char *want;
    } cases[] = {
        {"tests/data/trace.csv --allocator slob", 2, "no allocator 'slob'"},
        {"tests/data/trace.csv --allocator slab,slab", 2, "slab stands there twice"},
        {"tests/data/trace.csv --allocator ''", 2, "--allocator"},
        {"tests/data/trace.csv --safety parallel", 2, "--safety"},
        {"tests/data/trace.csv --in-place off", 2, "--in-place"},
        {"@/twice.csv", 2, "twice.csv:4: free of 'a', allocated in line 2, for the second time"},
        {"@/no.csv", 2, "no.csv"},
        {"tests/data/tight/parallel_1.tensors.csv", 4, "no order of requests"},
        {"tests/data/trace.csv --capacity 12MiB --allocator best_fit", 3, "best_fit: "},
        {"tests/data/trace.csv --capacity 13MiB", 3, ""},
        {"mlp --order no", 2, "no order 'no'"},
    };

    folder_put_text("twice.csv", HEAD "0,malloc,a,7\n1,free,a,\n2,free,a,\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = run("replay %s", cases[i].arguments);

        if (status != cases[i].status || strstr(err, cases[i].want) == NULL)
            fail_msg("replay %s: %d, %s", cases[i].arguments, status, err);
        check_error(cases[i].arguments);
    }
    if (run("replay tests/data/trace.csv --allocator malloc --capacity 12MiB") != 4)
        assert_non_null(strstr(err, "malloc: it held"));
}

TESTS_OF_PROGRAM("replay", values_are_those_by_hand, rows_hold_to_each_other,
                 graphs_are_played_as_their_lists, runs_repeat, what_is_wrong_is_said)
