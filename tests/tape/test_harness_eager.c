/* test_harness_eager.c -- memplan eager: its rows on every allocator, and what it refuses.
 *
 * Fault: bytes out of order, outputs that differ, counts that are not those of the steps, a wrong
 * argument that is taken. */
#include "tests/support/onnx_text.h" /* its names are hidden by the next one's */

#include "tests/harness/run_program.h"

#include <jansson.h>

/* Over a batch of any size. */
static const char open_onnx[] = "input x f32 [N,2]\ninit w f32 [2,4] = 1 2 3 4 5 6 7 8\n"
                                "init b f32 [4] = 1 -2 3 -4\nh = Gemm(x, w, b)\nr = Relu(h)\n"
                                "s = Mul(r, r)\ny = Softmax(s)\noutput y\n";
static const char loop_text[] =
    "graph g\ninput x f32 [4,8]\nweight w f32 [8,8]\nblock step\nparam r i64 []\n"
    "param h f32 [4,8]\nm = matmul(h, w)\nt = tanh(m)\nyield _, t, t\n"
    "last, rows = while step(_, _, x) carried=1 trips=5\nz = exp(last)\noutput z\noutput rows\n";
static const char written_text[] =
    "program boxes\ninput head f32 [20,4]\nweight half f32 [] = splat 0.5\nboxes = sigmoid(head)\n"
    "xy = view(boxes) index=\":,0:2\"\nwh = view(boxes) index=\"...,2:\"\nshift = mul(wh, half)\n"
    "sub_into(xy, shift)\nadd_into(wh, xy)\nrelu_into(boxes)\noutput boxes\n";

static int begin(void)
{
    int failed = program_begin("eager");
    message m = onnx_model(open_onnx);

    folder_put("open.onnx", m.data, m.n);
    folder_put_text("loop.graph", loop_text);
    folder_put_text("boxes.graph", written_text);
    return failed;
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
                    {"mnist_conv:batch=2 --planner first_fit --checked --iterations 4", 3, 1, 0},
                    {"@/whole.onnx", 2, 1, 0}, {"@/open.onnx --dim N=3", 2, 1, 0},
                    {"@/open.onnx --shapes N=1,5,1,5,2,1", 3, 3, 0},
                    {"@/open.onnx --shapes N=1,5,2,1 --plans 2", 0, 4, 2},
                    {"@/loop.graph", 2, 1, 0}, {"@/boxes.graph", 2, 1, 0});

    assert_int_equal(run("export %s -f onnx -o @/whole.onnx",
                         in_short() ? "mnist_conv:batch=2" : "squeezenet:image=48"),
                     0);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char command[300], *line = out, *end;
        int n = 0;

        snprintf(command, sizeof command, "%s --backend ref --allocator all --repeat 1 --json",
                 table[i].arguments);
        if (run("eager %s", command) != 0)
            fail_msg("eager %s: %s", command, err);
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
            {"mlp --shapes nix=1", "is no parameter"}, {"@/open.onnx", "--dim N=N"},
            {"@/open.onnx --shapes M=1,2", "open dim 'M'"}, {"synthetic:n=5", "list of buffers"},
            {"mlp --planner x", "is no planner"}, {"mlp --iterations 0", "from 1 on"},
            {"mlp --plans 100001", "at most 100000"});

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(run("eager %s", table[i].arguments), 2);
        if (strstr(err, table[i].said) == NULL)
            fail_msg("eager %s: %s", table[i].arguments, err);
    }
}

TESTS_WITHIN(begin, folder_remove, rows_hold, what_is_refused)
