/* Residency as a user has it: planned, certified, executed in two memories with as many bytes moved
 * as planned; the same file twice; a file that was changed, one of another graph, and wrong options
 * are refused. Fault: operands read where an older copy is, moves left out or run too late. */
#include "tests/harness/run_program.h"

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
    };

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        uint64_t moved;

        if (run("plan %s --memories %s --residency -o @/r.json --json --budget 20000", row[i].graph,
                row[i].memories) != 0)
            fail_msg("%s: %s", row[i].graph, err);
        moved = number_of("\"moved_bytes\":");
        assert_true(moved > 0 && number_of("\"cost\":") >= number_of("\"cost_bound\":"));
        assert_true((number_of("\"slow_used_bytes\":") > 0) <= row[i].used);
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
        {"plan lstm:form=while --residency --memories fast:50%%:1,slow:inf:8", "loops"},
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
                 changed_files_are_refused, what_cannot_be_is_refused)
