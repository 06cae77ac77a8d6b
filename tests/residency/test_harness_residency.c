/* Residency as a user has it: planned, certified, executed in two memories with as many bytes moved
 * as planned; the same file twice; a file that was changed, one of another graph, and wrong options
 * are refused. Fault: operands read where an older copy is, moves left out or run too late. */
#include "tests/harness/run_program.h"

#include <jansson.h>

static uint64_t number_of(const char *key)
{
    const char *at = strstr(out, key);

    if (at == NULL)
        fail_msg("no %s in %s", key, out);
    return strtoull(at + strlen(key), NULL, 10);
}

TEST(planned_certified_and_run)
{
    static const struct {
        const char *graph, *memories, *backend;
        bool used; /* in slow memory, too */
    } row[] = {
        {"unet:levels=2,channels=8,image=32", "fast:80%:1,slow:inf:8", "ref", true},
        {"unet:levels=2,channels=8,image=32", "fast:45%:1,slow:inf:8", "cpu", true},
        {"resnet18:image=32,mode=train,batch=2", "fast:60%:1,slow:inf:-", "cpu", false},
        {"mlp:mode=train", "fast:40%:3,slow:inf:4", "ref", true},
        {"unet:levels=2,channels=8,image=32", "fast:60%:1,slow:inf:8,bandwidth=1GiB", "cpu", true},
        {"densenet121:image=32", "fast:40%:1,slow:inf:2", "ref", true},
        {"bert:layers=1,hidden=32,heads=2,vocab=50,seq=8,batch=1,mode=train",
         "fast:60%:1,slow:inf:8", "cpu", true},
        {"lstm:layers=1,steps=4", "fast:60%:1,slow:inf:8", "cpu", true}, /* its loop unrolled */
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        uint64_t moved;

        if (run("plan %s --memories %s --residency -o @/r.json --json --budget 20000", row[i].graph,
                row[i].memories) != 0)
            fail_msg("%s: %s", row[i].graph, err);
        moved = number_of("\"moved_bytes\":");
        assert_true(moved > 0 && number_of("\"cost\":") >= number_of("\"cost_bound\":"));
        assert_true((number_of("\"slow_used_bytes\":") > 0) <= row[i].used);
        assert_int_equal(number_of("\"fast_capacity\":"),
                         number_of("\"without_bytes\":") / 100 *
                             strtoull(row[i].memories + strlen("fast:"), NULL, 10));
        assert_true(number_of("\"planned_bytes\":") <= number_of("\"fast_capacity\":"));
        assert_true(number_of("\"cost_bound\":") <= number_of("\"cost_furthest\":"));
        assert_true(number_of("\"cost_bound\":") <= number_of("\"cost_density\":"));
        assert_int_equal(run("certify @/r.json"), 0);
        assert_non_null(strstr(out, "certified"));
        if (run("run %s --plan @/r.json --backend %s --repeat 2 --json", row[i].graph,
                row[i].backend) != 0)
            fail_msg("%s: %s", row[i].graph, err);
        assert_non_null(strstr(out, "\"outputs\":\"equal\""));
        assert_int_equal(number_of("\"moved_bytes\":"), moved);
    }
}

#define CASE   "unet:levels=2,channels=8,image=32"
#define MEMORY "--residency --memories fast:60%%:1,slow:inf:8"

TEST(the_same_file_twice)
{
    static char first[1 << 17];

    assert_int_equal(run("plan " CASE " " MEMORY " --reproducible -o @/a.json"), 0);
    assert_int_equal(run("plan " CASE " " MEMORY " --reproducible -o @/b.json"), 0);
    folder_read("a.json", first, sizeof first);
    folder_read("b.json", out, sizeof out);
    assert_string_equal(first, out);
    assert_int_equal(run("run " CASE " " MEMORY " --backend ref --repeat 1"), 0);
    assert_non_null(strstr(out, "outputs equal to the run that shares nothing"));
}

/* Replaces the first `from` after `after` in a.json, into c.json. */
static void change(const char *after, const char *from, const char *to)
{
    static char text[1 << 17], changed[1 << 17];
    char *at;

    folder_read("a.json", text, sizeof text);
    at = strstr(strstr(text, after), from);
    assert_non_null(at);
    *at = '\0';
    snprintf(changed, sizeof changed, "%s%s%s", text, to, at + strlen(from));
    folder_put_text("c.json", changed);
}

TEST(changed_files_are_refused)
{
    static const struct {
        const char *after, *from, *to;
        int status;
        const char *says;
    } row[] = {
        {"\"moves\":[", "\"to_offset\":", "\"to_offset\":64", 1, "step"},
        {"\"moves\":[", "\"step\":", "\"step\":1", 1, "step"},
        {"\"residency\":", "\"capacity\":", "\"capacity\":1,\"x\":", 1, "outside of"},
        {"\"residency\":", "\"cost_bound\":", "\"cost_bound\":9", 1, "bound"},
        {"\"residency\":", "\"moved_bytes\":", "\"moved_bytes\":1", 1, "bytes move"},
        {"\"residency\":", "\"buffers\":", "\"others\":", 2, "'buffers' is missing"},
        {"\"residency\":", "\"uses\":[{\"step\":", "\"uses\":[{\"steps\":", 2, "'step'"},
        {"\"residency\":", "\"memory\":\"fast\"", "\"memory\":\"far\"", 2, "neither fast nor slow"},
        {"\"residency\":", "\"search\":", "\"search\":1,\"y\":", 2, "neither true nor false"},
    };

    assert_int_equal(run("plan " CASE " " MEMORY " -o @/a.json"), 0);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        change(row[i].after, row[i].from, row[i].to);
        if (run("certify @/c.json") != row[i].status || strstr(err, row[i].says) == NULL)
            fail_msg("%s: %s%s", row[i].to, out, err);
        check_error(row[i].to);
        assert_int_not_equal(run("run " CASE " --plan @/c.json --backend ref"), 0);
    }
    assert_int_equal(run("run mlp --plan @/a.json"), 2);
    check_error("run of another graph");
}

/* ---- measured times ---- */

/* Two lists of times: of each operation by its place among those in the file, and all alike. */
static void put_times(char kind)
{
    static char all[1 << 14], made[1 << 14];
    size_t n = 0, line_number = 0;

    folder_read("t.tsv", all, sizeof all);
    for (char *line = strtok(all, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *word = strrchr(line, '\t');

        if (line_number++ < 2 || word == NULL)
            n += (size_t)snprintf(made + n, sizeof made - n, "%s\n", line);
        else
            n += (size_t)snprintf(made + n, sizeof made - n, "%.16s\t%d%s\n", line,
                                  kind == 'k'       ? 1
                                  : word[1] == kind ? 1000000
                                                    : 1000,
                                  word);
    }
    made[n] = '\0';
    folder_put_text("u.tsv", made);
}

#define TIMED "plan mlp --residency --op-times @/u.tsv --memories fast:60%:1,slow:inf:8,bandwidth="

/* Faults: times that are not those of the file, or of another step; moves that take no time; a
 * stall below what the channel needs, or longer where steps cover more. */
TEST(measured_times_are_heeded)
{
    static char file[1 << 17];
    json_t *plan, *steps;
    uint64_t n_steps, short_stall, bytes, ns = 0;

    if (run("list backends") != 0 || strstr(out, "oneDNN") == NULL)
        skip();
    assert_int_equal(run("tune mlp --op-times @/t.tsv --threads 1 -q"), 0);
    put_times('g'); /* gemm a millisecond, relu and softmax a microsecond */
    if (run_logged(TIMED "100MiB -o @/a.json --json", false) != 0)
        fail_msg("%s", err);
    folder_read("a.json", file, sizeof file);
    plan = json_loads(file, 0, NULL);
    steps = json_object_get(json_object_get(plan, "residency"), "step_ns");
    n_steps = json_array_size(steps);
    assert_int_equal(n_steps, 6); /* gemm, relu, gemm, relu, gemm, softmax */
    for (size_t s = 0; s < n_steps; s++) {
        uint64_t one = (uint64_t)json_integer_value(json_array_get(steps, s));

        assert_int_equal(one, s % 2 == 0 ? 1000000 : 1000);
        ns += one;
    }
    json_decref(plan);
    assert_int_equal(number_of("\"steps_ns\":"), ns);
    assert_non_null(strstr(out, "u.tsv\""));
    assert_int_equal(run("certify @/a.json"), 0);
    unlink(in_folder("u.tsv")); /* the plan has what it needs */
    if (run("run mlp --plan @/a.json --repeat 1") != 0 || strstr(out, "by measured times") == NULL)
        fail_msg("run --plan: %s%s", out, err);
    put_times('k'); /* a nanosecond each: nothing covers a move */
    assert_int_equal(run_logged(TIMED "100MiB --json", false), 0);
    assert_int_equal(number_of("\"steps_ns\":"), n_steps);
    short_stall = number_of("\"stall_ns\":");
    bytes = number_of("\"moved_bytes\":") + number_of("\"slow_used_bytes\":");
    assert_true(bytes > 0 && short_stall + n_steps >= bytes * UINT64_C(1000000000) / (100 << 20));
    put_times('g');
    assert_int_equal(run_logged(TIMED "100MiB", false), 0);
    assert_non_null(strstr(out, "by measured times"));
    assert_int_equal(run_logged(TIMED "100MiB --json", false), 0);
    assert_true(number_of("\"stall_ns\":") <= short_stall);
}

TEST(bad_times_are_refused)
{
    static const struct {
        const char *command, *says;
    } row[] = {
        {TIMED "1GiB", "u.tsv"}, /* absent */
        {"plan mlp --residency --op-times @/e.tsv --memories fast:60%:1,slow:inf:8,bandwidth=1GiB",
         "no times of operations"},
        {"plan mlp --residency --op-times @/h.tsv --memories fast:60%:1,slow:inf:8,bandwidth=1GiB",
         "no time of gemm"},
        {"run mlp --residency --op-times @/z.tsv --memories fast:60%:1,slow:inf:8,bandwidth=1GiB",
         "z.tsv:3: '0aff02c82d856c01"},
        {"plan mlp --residency --op-times @/h.tsv --memories fast:60%:1,slow:inf:8",
         "add ,bandwidth=10GiB"},
        {"least mlp --op-times @/h.tsv --memories fast:60%:1,slow:inf:8", "add ,bandwidth=10GiB"},
    };

    unlink(in_folder("u.tsv"));
    folder_put_text("e.tsv", "");
    folder_put_text("h.tsv", "memplan times 1\na machine\n");
    folder_put_text("z.tsv", "memplan times 1\na machine\n0aff02c82d856c01\tzz\trelu plain\n");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        if (run_logged(row[i].command, false) != 2 || strstr(err, row[i].says) == NULL)
            fail_msg("%s: %s%s", row[i].command, out, err);
        check_error(row[i].command);
    }
}

TEST(what_cannot_be_is_refused)
{
    static const struct {
        const char *command, *says;
    } row[] = {
        {"plan mlp --residency", "--memories fast:2MiB:1,slow:inf:8"},
        {"plan mlp --memories fast:2MiB:1,slow:inf:8", "add --residency"},
        {"plan mlp --residency --memories fast:2MiB", "of the form"},
        {"plan mlp --residency --memories fast:2MiB:1,slow:3MiB:8", "of the form"},
        {"plan mlp --residency --memories fast:0%%:1,slow:inf:8", "1% to 100%"},
        {"plan mlp --residency --memories fast:1KiB:0,slow:inf:8", "price '0'"},
        {"plan mlp --residency --memories fast:1KiB:1,slow:inf:x", "price 'x'"},
        {"plan mlp --residency --memories fast:1KiB:1,slow:inf:8,bandwidth=0", "bandwidth"},
        {"plan mlp --residency --memories fast:64:1,slow:inf:-", "slow:inf:8"},
        {"plan mlp --residency --memories fast:50%%:1,slow:inf:8 -p exact", "--planner"},
        {"plan mlp --residency --memories fast:50%%:1,slow:inf:8 --pin none", "pinned"},
        {"run mlp --residency --memories fast:50%%:1,slow:inf:8 --checked", "unchecked"},
        {"plan lstm:form=while --residency --memories fast:50%%:1,slow:inf:8",
         "loops or branches, in which a move would run each time"},
        {"plan tests/data/empty.csv --residency --memories fast:1KiB:1,slow:inf:8", ""},
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char command[300];

        snprintf(command, sizeof command, "%s", row[i].command);
        for (char *at; (at = strstr(command, "%%")) != NULL;)
            memmove(at, at + 1, strlen(at));
        if (run_logged(command, false) != 2 || strstr(err, row[i].says) == NULL)
            fail_msg("%s: %s%s", command, out, err);
        check_error(command);
    }
}

TESTS_OF_PROGRAM("residency", planned_certified_and_run, the_same_file_twice,
                 changed_files_are_refused, measured_times_are_heeded, bad_times_are_refused,
                 what_cannot_be_is_refused)
