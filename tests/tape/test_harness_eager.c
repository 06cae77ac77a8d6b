/* test_harness_eager.c -- memplan eager: its rows on every allocator, and what it refuses.
 *
 * Fault: bytes out of order, outputs that differ, counts that are not those of the steps, a wrong
 * argument that is taken. */
#include "tests/harness/run_program.h"

#include <jansson.h>

static int begin(void)
{
    return program_begin("eager");
}

static long long whole(const json_t *row, const char *key)
{
    return (long long)json_integer_value(json_object_get(row, key));
}

TEST(rows_hold)
{
    static const struct {
        const char *arguments;
        int hits, misses, evictions;
    } table[] = ROW({"mlp", 2, 1, 0}, {"lstm:layers=1,steps=5,hidden=16,batch=2", 2, 1, 0},
                    {"mlp:mode=train", 2, 1, 0}, {"mlp --shapes batch=1,2,1,2,4", 2, 3, 0},
                    {"mlp --shapes batch=1,2,3,1 --plans 2", 0, 4, 2},
                    {"mlp --plans 0 --iterations 2", 0, 2, 0},
                    {"mnist_conv --planner first_fit --checked --iterations 4", 3, 1, 0});

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char command[300], *line = out, *end;
        int n = 0;

        snprintf(command, sizeof command, "%s --backend ref --allocator all --repeat 1 --json",
                 table[i].arguments);
        assert_int_equal(run("eager %s", command), 0);
        for (; (end = strchr(line, '\n')) != NULL; line = end + 1, n++) {
            json_t *row = json_loadb(line, (size_t)(end - line), 0, NULL);
            const json_t *plans = json_object_get(row, "plan_cache");

            assert_non_null(row);
            /* the process's heap may have had room */
            assert_true(strcmp(json_string_value(json_object_get(row, "allocator")), "malloc") ==
                            0 ||
                        whole(row, "reserved_bytes") >= whole(row, "live_peak_bytes"));
            assert_true(whole(row, "live_peak_bytes") >= whole(row, "bound_bytes"));
            assert_true(whole(row, "requested_bytes") >= whole(row, "live_peak_bytes"));
            assert_true(whole(row, "planned_bytes") >= whole(row, "bound_bytes"));
            assert_string_equal(json_string_value(json_object_get(row, "outputs")), "equal");
            assert_int_equal(whole(plans, "hits"), table[i].hits);
            assert_int_equal(whole(plans, "misses"), table[i].misses);
            assert_int_equal(whole(plans, "evictions"), table[i].evictions);
            json_decref(row);
        }
        assert_true(n >= 4); /* malloc tells nothing under a sanitizer */
    }
}

TEST(what_is_refused)
{
    static const struct {
        const char *arguments, *said;
    } table[] =
        ROW({"nothing", "neither a file nor a network"}, {"mlp --allocator x", "no allocator"},
            {"mlp --shapes x", "NAME=N,N"}, {"mlp --shapes batch=1,x", "no whole number"},
            {"mlp --shapes nix=1", "is no parameter"}, {"synthetic:n=5", "list of buffers"},
            {"mlp --planner x", "is no planner"}, {"mlp --iterations 0", "from 1 on"},
            {"mlp --plans 100001", "at most 100000"});

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(run("eager %s", table[i].arguments), 2);
        if (strstr(err, table[i].said) == NULL)
            fail_msg("eager %s: %s", table[i].arguments, err);
    }
}

TESTS_WITHIN(begin, folder_remove, rows_hold, what_is_refused)
