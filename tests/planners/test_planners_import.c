/* test_planners_import.c -- plans of other allocators: files worked out by hand, faulty files. */
#include "graphs/io/lists/lists.h"
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/folder.h"

#include "graphs/problem/before.h"
#include "planners/import/import.h"
#include "planners/verify/verify.h"

#define DATA "tests/data/import/"

static int begin(void)
{
    return folder_make("import") != 0;
}

/* ---- right files ---- */

/* Values worked out by hand: peak is the largest end; live is the most bytes alive at once, with
 * pairs used, and all but the last buffer of a stack rounded up to its alignment. */
static const struct {
    const char *file, *format;
    bool beside; /* with tensors.csv */
    uint32_t n, n_steps, n_pairs, n_blocks;
    uint64_t arena, peak, live;
    const char *name; /* of buffer `at`, with its lifetime and offset */
    uint32_t at, birth, death;
    uint64_t offset;
} good[] = {
    {"small.offsets.csv", "minimalloc", false, 4, 4, 0, 0, 0, 224, 192, "d", 3, 2, 4, 192},
    {"small.tensors.csv", "libnnc", false, 4, 0, 0, 2, 0, 168, 164, "#3", 3, 0, 0, 64},
    {"small.xla.txt", "xla", false, 5, 7, 1, 0, 640, 640, 640, "exp", 4, 5, 7, 384},
    {"blocks.xla.txt", "xla", false, 3, 4, 0, 0, 96, 96, 96, "c", 2, 1, 3, 0},
    {"loop.xla.txt", "xla", false, 4, 9, 0, 2, 224, 224, 224, "far", 3, 0, 2, 192},
    {"small.tflm.txt", "tflm", false, 4, 4, 0, 0, 0, 192, 192, "3", 3, 2, 4, 160},
    {"old.tflm.txt", "tflm", false, 4, 5, 0, 0, 0, 224, 192, "3", 3, 2, 5, 192},
    {"small.offline.json", "offline", true, 3, 4, 0, 0, 0, 160, 160, "2", 1, 1, 3, 96},
    {"small.offline.bin", "offline", true, 3, 4, 0, 0, 0, 160, 160, "3", 2, 2, 4, 0},
    {"small.offline.txt", "offline", true, 3, 4, 0, 0, 0, 160, 160, "0", 0, 0, 2, 0},
    {"small.pytorch.json", "pytorch", false, 7, 10, 0, 0, 6144, 6144, 4396, "0x100600 of event 5",
     3, 6, 10, 1536},
    /* 3 has the view 4, which only cat reads, two steps later */
    {"small.executorch.pte", "executorch_program", false, 6, 5, 0, 0, 1024, 1024, 1024, "3", 3, 2,
     4, 0},
    /* 2 has the view 13, by et_view; 0 is state, and max has two results */
    {"small.state.pte", "executorch_program", false, 10, 10, 0, 0, 1280, 1280, 1280, "2", 2, 1, 6,
     512},
    /* buf2 is buf1 again; buf4 is new where buf0 was */
    {"small.inductor.py", "inductor", false, 4, 8, 0, 2, 1680, 1680, 1664, "buf3", 2, 5, 7, 1664},
    {"small.relax.txt", "relax", false, 3, 8, 0, 2, 384, 384, 384, "alloc2", 2, 5, 8, 0},
    {"small.iree.mlir", "iree", false, 3, 4, 0, 0, 384, 356, 356, "0.3", 2, 2, 4, 0},
    /* relu works in place; a node inside concat does not count, nor does fc's output */
    {"small.ort_profile.json", "ort_profile", false, 4, 5, 0, 0, 1280, 1152, 1152, "3 concat", 3, 3,
     5, 0},
    /* the pool with reserved bytes is the first; `within` lies in the gap of `loop` */
    {"small.dsa_solver.json", "dsa_solver", false, 5, 8, 0, 0, 0, 64, 32, "loop", 0, 0, 7, 16},
    /* three largest sets: sid_3 sid_1 sid_2, sid_2 sid_4, the constants */
    {"small.usmp.json", "tvm_usmp", false, 6, 3, 0, 0, 0, 192, 192, "sid_4", 5, 1, 2, 0},
};
enum { N_GOOD = sizeof good / sizeof *good };

static uint32_t count_blocks(const mpl_plan *plan)
{
    uint32_t n = 0;

    for (uint32_t b = 0; plan->block != NULL && b < plan->n; b++)
        n = plan->block[b] >= n ? plan->block[b] + 1 : n;
    return n;
}

TEST(read_as_written)
{
    for (int i = 0; i < N_GOOD; i++) {
        owned_problem *beside = NULL;
        const mpl_problem *p;
        mpl_import got = {0};
        uint64_t live = 0;
        char path[100], label[24];

        snprintf(path, sizeof path, DATA "%s", good[i].file);
        if (good[i].beside)
            assert_ok(ctx, mpl_csv_read(ctx, DATA "tensors.csv", &beside, NULL));
        assert_ok(ctx, mpl_plan_import(ctx, path, beside, &got));
        p = got.problem != NULL ? got.problem : beside;
        assert_string_equal(got.format, good[i].format);
        assert_int_equal(p->n, good[i].n);
        assert_int_equal(p->n_in_place, good[i].n_pairs);
        assert_int_equal(count_blocks(got.plan), good[i].n_blocks);
        assert_int_equal(got.arena_bytes, good[i].arena);
        assert_string_equal(mpl_buffer_label(p, good[i].at, label), good[i].name);
        assert_int_equal(got.plan->offset[good[i].at], good[i].offset);
        assert_ok(ctx, mpl_verify(ctx, p, got.plan));
        assert_int_equal(got.plan->peak_bytes, good[i].peak);
        if (p->before != NULL) {
            assert_ok(ctx, mpl_antichain(ctx, p, 0, &live, NULL));
        } else {
            assert_int_equal(p->n_steps, good[i].n_steps);
            assert_int_equal(p->birth[good[i].at], good[i].birth);
            assert_int_equal(p->death[good[i].at], good[i].death);
            assert_ok(ctx, mpl_peak_live(ctx, p, 0, &live, NULL, NULL));
        }
        assert_int_equal(live, good[i].live);
        mpl_import_fini(ctx, &got);
    }
}

/* Our own plans, written and read as one of the formats. */
TEST(own_plans)
{
    mpl_import got = {0};

    assert_ok(ctx, mpl_plan_import(ctx, "tests/data/serial.plan.json", NULL, &got));
    assert_string_equal(got.format, "memplan");
    assert_ok(ctx, mpl_verify(ctx, got.problem, got.plan));
    mpl_import_fini(ctx, &got);
}

/* ---- changed files: wrong, or refused by the verifier ---- */

static const struct {
    const char *file, *from, *to; /* replaces the first `from` of the file */
    mpl_status status;            /* MPL_EINVALID: read, and refused by the verifier */
    const char *says, *says_too;
} changed[] = {
    {"small.offsets.csv", "c,2,4,96,0", "c,2,4,96,70", MPL_EINVALID, "'b'", "'c'"},
    {"small.offsets.csv", "192", "-192", MPL_EINPUT, ":5", "offset"},
    {"small.offsets.csv", ",192", "", MPL_EINPUT, ":5", "fields"},
    {"small.offsets.csv", "\nd,", "\na,", MPL_EINPUT, ":5", "already"},
    {"small.offsets.csv", ",offset", "", MPL_EINPUT, "no plan", "offset"},
    {"small.offsets.csv", "192", "9223372036854775808", MPL_EINPUT, ":5", "2^63"},

    {"small.offsets.csv", ",offset", ",at offset", MPL_EINPUT, ":1", "'offset'"},

    {"small.xla.txt", "offset=256", "offset=320", MPL_EINVALID, "'add'", "'neg'"},
    {"small.xla.txt", "exp{}:5-6", "exp{}:4-6", MPL_EINVALID, "'neg'", "'exp'"},
    {"small.xla.txt", "neg{}:4-5", "neg{}:4-6", MPL_EINVALID, "'neg'", "'exp'"},
    {"small.xla.txt", "neg{}:4-5", "neg{}:5-5", MPL_EINVALID, "'neg'", "'exp'"},
    {"small.xla.txt", "add{}:3-5", "odd{}:3-5", MPL_EINPUT, ":10", "'add'"},
    {"small.xla.txt", "add{}:3-5", "mul{}:3-5", MPL_EINPUT, ":29", "second"},
    {"small.xla.txt", "add{}:3-5", "add{}:5-3", MPL_EINPUT, ":29", "ends before"},
    {"small.xla.txt", "add{}:3-5", "add{}:3", MPL_EINPUT, ":29", "live range"},
    {"small.xla.txt", "<7 ", "<6 ", MPL_EINPUT, ":13", "line 12"},
    {"small.xla.txt", "offset=384", "offset=385", MPL_EINPUT, ":12", "beyond"},
    {"small.xla.txt", "size 640", "size 639", MPL_EINPUT, ":12", "beyond"},
    {"small.xla.txt", "size 640", "size 18446744073709551616", MPL_EINPUT, ":8", "size"},
    {"small.xla.txt", "size 640", "room 640", MPL_EINPUT, ":8", "size"},
    {"small.xla.txt", "(size=128,offset=256)", "(size=128)", MPL_EINPUT, ":10", "offset"},
    {"small.xla.txt", "(size=128", "(size=x", MPL_EINPUT, ":10", "size"},
    {"small.xla.txt", "<3 add @0>", "<3add@0>", MPL_EINPUT, ":10", "value"},
    {"small.xla.txt", "temp:", "temp", MPL_EINPUT, ":8", "cut"},
    {"small.xla.txt", "preallocated-temp", "thread-local", MPL_OK, "", ""},
    {"small.xla.txt", "exp{}:5-6", "exp{}:5-4194304", MPL_EINPUT, ":13", "steps"},
    {"blocks.xla.txt", "color 1", "color x", MPL_EINPUT, ":6", "color"},
    {"blocks.xla.txt", "<2 c @1> (size=32", "<2 c @1> (size=33", MPL_EINPUT, ":7", "beyond"},
    {"loop.xla.txt", "inner{}:4-5", "inner{}:4-6", MPL_OK, "", ""},
    {"loop.xla.txt", "inner @0> (size=64", "inner @0> (size=60", MPL_OK, "", ""},
    {"loop.xla.txt", "while.1{0}", "while.1{1}", MPL_EINPUT, ":7", "while.1{1}"},
    {"small.xla.txt", "BufferLiveRange", "Nothing", MPL_EINPUT, "-live-range.txt", ""},
    {"small.xla.txt", "exp{}:5-6", "exp{}:5-9223372036854775808", MPL_EINPUT, ":32", "live range"},

    {"small.tflm.txt", "offset=160", "offset=150", MPL_EINVALID, "'1'", "'3'"},
    {"small.tflm.txt", "last_used=2", "last_used=0", MPL_EINPUT, ":3", "last use before"},
    {"small.tflm.txt", "(id=2)", "(id=1)", MPL_EINPUT, ":4", "buffer 1 where 2"},
    {"small.tflm.txt", "size=64", "size=0", MPL_EINPUT, ":3", "no bytes"},
    {"small.tflm.txt", "size=64", "size=-64", MPL_EINPUT, ":3", "size"},
    {"small.tflm.txt", "size=64", "size=99999999999999999999", MPL_EINPUT, ":3", "size"},
    {"small.tflm.txt", "first_used=1 ", "", MPL_EINPUT, ":3", "first_used"},
    {"old.tflm.txt", "calculated offset: 96", "calculated offset: x", MPL_EINPUT, ":2", "offset"},
    {"old.tflm.txt", "calculated offset: 96", "calculated offset: 95", MPL_EINVALID, "'0'", "'1'"},

    {"small.offline.json", "96", "95", MPL_EINVALID, "'0'", "'2'"},
    {"small.offline.json", "4, 0", "5, 0", MPL_EINPUT, "5 offsets", "4 are"},
    {"small.offline.json", "[1", "[2", MPL_EINPUT, "version", ""},
    {"small.offline.json", "-1", "-2", MPL_EINPUT, "tensor 1", "-2"},
    {"small.offline.json", "-1", "7", MPL_EINPUT, "tensor 1", "no buffer 1"},
    {"small.offline.json", "96", "-1", MPL_EINPUT, "tensor 2", "run time"},
    {"small.offline.json", "96", "2147483648", MPL_EINPUT, "number 6", "32-bit"},
    {"small.offline.json", "96", "\"96\"", MPL_EINPUT, "other than a number", ""},
    {"small.offline.json", "]}", "]", MPL_EINPUT, "cut", ""},
    {"small.offline.txt", "4, 0, -1, 96, 0", "3, 0, -1, 96", MPL_EINPUT, "buffer 3", "beyond"},
    {"small.offline.txt", "1, 0, 4, 0, -1, 96, 0", "1 0", MPL_EINPUT, "begin with", ""},

    {"small.pytorch.json", "\"addr\": 1049600", "\"addr\": 1049500", MPL_EINVALID, "event 1",
     "event 2"},
    {"small.pytorch.json", "\"addr\": 1050112", "\"addr\": 9050112", MPL_EINPUT, "no segment", ""},
    {"small.pytorch.json", "\"action\": \"alloc\"", "\"\\\n\"", MPL_EINPUT, "no JSON", ""},
    {"small.pytorch.json", "free_completed", "nothing", MPL_EINPUT, "event 7", "event 1 "},
    {"small.pytorch.json", "\"action\": \"alloc\", \"addr\": 1050112",
     "\"action\": \"free_completed\", \"addr\": 1049600", MPL_EINPUT, "0x100400", "free before"},
    {"small.pytorch.json", "\"requested_size\": 300", "\"requested_size\": 513", MPL_EINPUT,
     "segment 0", "asked"},
    {"small.pytorch.json", "active_pending_free", "inactive", MPL_OK, "", ""},
    {"small.pytorch.json", "\"size\": 512, \"state\": \"inactive\"", "\"size\": 512", MPL_EINPUT,
     "segment 0", "state"},
    {"small.pytorch.json", "\"addr\": 1049600", "\"addr\": -1", MPL_EINPUT, "event 2", "addr"},
    {"small.pytorch.json", "\"size\": 1024, \"time_us\": 2", "\"size\": 1.5", MPL_EINPUT, "event 1",
     "size"},
    {"small.pytorch.json", "\"total_size\": 2048", "\"total_size\": 9223372036854775807",
     MPL_EINPUT, "2^63", ""},
    {"small.pytorch.json", "\"total_size\": 2048", "\"total_size\": 99999999999999999999",
     MPL_EINPUT, "JSON", ""},
    {"small.pytorch.json", "\"size\": 2048, \"stream\"", "\"size\": 9048, \"stream\"", MPL_EINPUT,
     "event 0", "reserved"},
    {"small.pytorch.json", "\"action\": \"alloc\"", "\"act\": \"alloc\"", MPL_EINPUT, "event 1",
     "action"},
    {"small.pytorch.json", "\"device_traces\": [[", "\"device_traces\": [], \"x\": [[", MPL_EINPUT,
     "history", ""},
    {"small.pytorch.json", "\"device_traces\": [[", "\"device_traces\": 3, \"x\": [[", MPL_EINPUT,
     "lists", ""},

    {"small.inductor.py", "pool0, 1024", "pool0, 960", MPL_EINVALID, "'buf0'", "'buf1'"},
    {"small.inductor.py", "pool0, 1024", "pool0, 1025", MPL_EINPUT, ":14", "beyond"},
    {"small.inductor.py", "pool0, 1024", "pool0, x", MPL_EINPUT, ":14", "alloc_from_pool"},
    {"small.inductor.py", "pool0, 1024", "pool0", MPL_EINPUT, ":14", "alloc_from_pool"},
    {"small.inductor.py", "pool0, 0", "pool2, 0", MPL_EINPUT, ":10", "pool from above"},
    {"small.inductor.py", "(1664, )", "(s0, )", MPL_EINPUT, ":9", "no number"},
    {"small.inductor.py", "(1664, )", "(9223372036854775807, 3)", MPL_EINPUT, ":9", "too large"},
    {"small.inductor.py", "torch.uint8", "uint8", MPL_EINPUT, ":9", "type"},
    {"small.inductor.py", "torch.uint8", "torch.wide", MPL_EINPUT, ":9", "type"},
    {"small.inductor.py", "(16, 20)", "(16, 21)", MPL_EINPUT, ":14", "beyond"},
    {"small.inductor.py", "pool1 =", "pool0 =", MPL_EINPUT, ":17", "second"},
    {"small.inductor.py", "buf1 = alloc", "buf0 = alloc", MPL_EINPUT, ":14", "second"},
    {"small.inductor.py", "return (", "(", MPL_EINPUT, "cut", ""},
    {"small.inductor.py", "(4, ), (1, ), torch.float32)", "(9223372036854775, 1000), torch.uint8)",
     MPL_EINPUT, "2^63", ""},

    {"small.relax.txt", "(storage, 0, R.shape([64])", "(storage, 8, R.shape([64])", MPL_EINPUT,
     ":7", "beyond"},
    {"small.relax.txt", "R.shape([256])", "R.shape([n])", MPL_EINPUT, ":6", "storage's size"},
    {"small.relax.txt", "(storage, 0, R.shape([64])", "(storage, n, R.shape([64])", MPL_EINPUT,
     ":7", "tensor's offset"},
    {"small.relax.txt", "alloc_tensor(storage1", "alloc_tensor(storage2", MPL_EINPUT, ":11",
     "storage from above"},
    {"small.relax.txt", "storage1: R", "storage: R", MPL_EINPUT, ":10", "second 'storage'"},
    {"small.relax.txt", "R.shape([32])", "R.shape([m])", MPL_EINPUT, ":13", "no number"},
    {"small.relax.txt", "cls.less(alloc1", "cls.less(lv", MPL_EINVALID, "'alloc'", "'alloc2'"},
    {"small.relax.txt", "return", "end", MPL_EINPUT, "cut", ""},

    {"small.iree.mlir", "[1, 2]", "[0, 2]", MPL_OK, "", ""},
    {"small.iree.mlir", "[2, 3]", "[1, 3]", MPL_EINVALID, "'0.1'", "'0.3'"},
    {"small.iree.mlir", "[2, 3]", "[3, 2]", MPL_EINPUT, ":9", "slice"},
    {"small.iree.mlir", "[2, 3]", "[2, 4294967296]", MPL_EINPUT, ":9", "slice"},
    {"small.iree.mlir", "= %c100,", "= %n,", MPL_EINPUT, ":8", "'%n'"},
    {"small.iree.mlir", "%3:5", "%3", MPL_EINPUT, ":6", "results"},
    {"small.iree.mlir", "wo %arg7[%c256", "wo %arg7[%n", MPL_EINPUT, "'%3#2'", "no number"},
    {"small.iree.mlir", "IR Dump After", "IR Dump", MPL_EINPUT, ":19", "before and after"},
    {"small.iree.mlir", "%3#3 for", "%3#9 for", MPL_EINPUT, "'%3#9'", "no number"},

    {"small.ort_profile.json", "requested_in_use\" :", "used\" :", MPL_EINPUT, "event 1", "1.32"},
    {"small.ort_profile.json", "\"1512\"", "\"1512x\"", MPL_EINPUT, "event 1", "no number"},
    {"small.ort_profile.json", "\"1512\"", "\"-1\"", MPL_EINPUT, "event 1", "both cannot be"},
    {"small.ort_profile.json", "\"512\"", "\"1513\"", MPL_EINPUT, "event 1", "both cannot be"},
    {"small.ort_profile.json", "\"512\"", "\"-9223372036854775807\"", MPL_EINPUT, "event 1",
     "both cannot be"},
    {"small.ort_profile.json", "\"ts\" :10,", "\"ts\" :\"10\",", MPL_EINPUT, "event 1", "'ts'"},
    {"small.ort_profile.json", "\"2024\"", "\"1000\"", MPL_EINPUT, "event 1",
     "1024 bytes are gone"},
    {"small.ort_profile.json", "\"16\"", "\"-512\"", MPL_EINPUT, "event 6",
     "16 bytes came between"},
    {"small.ort_profile.json", "model_run", "model_ran", MPL_EINPUT, "752 bytes came between", ""},
    {"small.ort_profile.json", "{\"float\":[1,32]},{\"float\":[1,96]}", "", MPL_OK, "", ""},

    {"small.dsa_solver.json", "\"offset\": 48", "\"offset\": 40", MPL_EINVALID, "'loop'",
     "'apart'"},
    {"small.dsa_solver.json", "\"offset\": 48", "\"offset\": 0", MPL_EINVALID, "'apart'",
     "reserved"},
    {"small.dsa_solver.json", "\"upper\": 4", "\"upper\": 5", MPL_EINVALID, "'loop'", "'within'"},
    {"small.dsa_solver.json", "\"lower\": 5, \"upper\": 7", "\"lower\": 3, \"upper\": 4",
     MPL_EINVALID, "'loop'", "'within'"},
    {"small.dsa_solver.json", "\"offset\": 32", "\"offset\": 24", MPL_EINVALID, "'pinned'",
     "'beside'"},
    {"small.dsa_solver.json", "\"lower\": 3, \"upper\": 5", "\"lower\": 7, \"upper\": 8", MPL_OK,
     "", ""},
    {"small.dsa_solver.json", "\"lower\": 0", "\"lower\": -3", MPL_OK, "", ""},
    {"small.dsa_solver.json", "\"upper\": 8", "\"upper\": 9223372036854775807", MPL_OK, "", ""},
    {"small.dsa_solver.json", "\"capacity\": 64", "\"capacity\": 39", MPL_EINVALID, "'beside'",
     "39"},
    {"small.dsa_solver.json", "\"offset\": 8},", "\"offset\": 16},", MPL_EINVALID, "'pinned'",
     "fixed at offset 8"},
    {"small.dsa_solver.json", "\"offset\": 8, \"ex", "\"offset\": 9, \"ex", MPL_EINPUT, "'pinned'",
     "multiple"},
    {"small.dsa_solver.json", "\"buffer\": 5, \"pool\": 7", "\"buffer\": 5, \"pool\": 3",
     MPL_EINPUT, "pin 0", "another pool"},
    {"small.dsa_solver.json", "\"buffer\": 6, \"pool\": 7", "\"buffer\": 6, \"pool\": 3",
     MPL_EINPUT, "placement 4", "another pool"},
    {"small.dsa_solver.json", "\"buffer\": 6, \"pool\": 7", "\"buffer\": 6, \"pool\": 8",
     MPL_EINPUT, "placement 4", "no pool 8"},
    {"small.dsa_solver.json", "\"buffer\": 6, \"pool\"", "\"buffer\": 5, \"pool\"", MPL_EINPUT,
     "placement 4", "placed already"},
    {"small.dsa_solver.json", "\"buffer\": 6, \"pool\"", "\"buffer\": 9, \"pool\"", MPL_EINPUT,
     "placement 4", "no buffer 9"},
    {"small.dsa_solver.json", ",\n  {\"buffer\": 5, \"pool\": 7, \"offset\": 8}", "", MPL_EINPUT,
     "'pinned'", "no placement"},
    {"small.dsa_solver.json", "\"alignment\": 1,", "\"alignment\": 12,", MPL_EINPUT, "buffer 2",
     "'alignment' is 12"},
    {"small.dsa_solver.json", "\"id\": 10", "\"id\": 0", MPL_EINPUT, "buffer 1", "second time"},
    {"small.dsa_solver.json", "\"id\": 3", "\"id\": 7", MPL_EINPUT, "pool", "second time"},
    {"small.dsa_solver.json", "\"allowed_pools\": [3]", "\"allowed_pools\": [3, 7]", MPL_EINPUT,
     "buffer 0", "'allowed_pools' are 2"},
    {"small.dsa_solver.json", "\"reserved_ranges\": []",
     "\"reserved_ranges\": [{\"begin\": 0, \"end\": 1}]", MPL_EINPUT, "pool 1",
     "'reserved_ranges' of a second"},
    {"small.dsa_solver.json", "\"begin\": 0, \"end\": 16", "\"begin\": 16, \"end\": 16", MPL_EINPUT,
     "reserved bytes [16", ""},
    {"small.dsa_solver.json", "\"colocations\": []", "\"colocations\": [{}]", MPL_EINPUT,
     "'colocations'", "no counterpart"},
    {"small.dsa_solver.json", "\"temporal_exclusions\": []", "\"temporal_exclusions\": [{}]",
     MPL_EINPUT, "'temporal_exclusions'", "no counterpart"},
    {"small.dsa_solver.json", "\"max_peak", "\"reuse_cost", MPL_EINPUT, "'reuse_cost'",
     "least bytes"},
    {"small.dsa_solver.json", "\"lower\": 4, \"upper\": 6", "\"lower\": 6, \"upper\": 6",
     MPL_EINPUT, "buffer 0", "ends before"},
    {"small.dsa_solver.json", "\"lower\": 4, \"upper\": 6", "\"lower\": 4.5, \"upper\": 6",
     MPL_EINPUT, "buffer 0", "'lower'"},
    {"small.dsa_solver.json", "[{\"lower\": 2, \"upper\": 4}]", "[]", MPL_EINPUT, "buffer 1",
     "no live interval"},
    {"small.dsa_solver.json", "\"size\": 20", "\"size\": 0", MPL_EINPUT, "'within'", "0 bytes"},
    {"small.dsa_solver.json", "\"size\": 20", "\"size\": 99999999999999999999", MPL_EINPUT, "JSON",
     ""},
    {"small.dsa_solver.json", "\"second\": 2", "\"second\": 0", MPL_EINPUT, "separation 0",
     "from itself"},
    {"small.dsa_solver.json", "\"instance\": \"small\", \"problem_",
     "\"instance\": \"large\", \"problem_", MPL_EINPUT, "solution of 'large'", "problem 'small'"},
    {"small.dsa_solver.json",
     "\"schema_version\": 1, \"profile\": \"pypto_research_v1\", \"instance\": \"small\", "
     "\"problem_",
     "\"schema_version\": 2, \"instance\": \"small\", \"problem_", MPL_EINPUT, "solution is not 1",
     ""},
    {"small.dsa_solver.json", "\"schema_version\": 1", "\"schema_version\": 2", MPL_EINPUT,
     "problem is not 1", ""},
    {"small.dsa_solver.json", "\"placements\": [", "\"placements\": 3, \"x\": [", MPL_EINPUT,
     "'placements'", "no list"},

    {"small.usmp.json", "\"byte_offset\": 160", "\"byte_offset\": 144", MPL_EINVALID, "'sid_1'",
     "'sid_2'"},
    {"small.usmp.json", "\"byte_offset\": 32", "\"byte_offset\": 16", MPL_EINVALID, "'const_1'",
     "'const_2'"},
    {"small.usmp.json", "\"byte_offset\": 64", "\"byte_offset\": 72", MPL_EINVALID, "'sid_1'",
     "16"},
    {"small.usmp.json", "\"byte_offset\": 64", "\"byte_offset\": -64", MPL_EINPUT, "buffer 2",
     "'byte_offset'"},
    {"small.usmp.json", "[3, 0, 2]", "[3, 0, 6]", MPL_EINPUT, "buffer 2", "no buffer of the 6"},
    {"small.usmp.json", "[3, 0, 2]", "[3, 0, \"sid_1\"]", MPL_EINPUT, "buffer 2", "conflict 2"},
    {"small.usmp.json", "[3, 0, 2]", "[3, 2]", MPL_EINPUT, "buffer 0 conflicts with buffer 2",
     "not the reverse"},
    {"small.usmp.json", "[3, 0, 2]", "3", MPL_EINPUT, "buffer 2", "'conflicts'"},
    {"small.usmp.json", "\"alignment\": 16", "\"alignment\": 24", MPL_EINPUT, "buffer 0",
     "'alignment' is 24"},
    {"small.usmp.json", "\"size_bytes\": 64", "\"size_bytes\": 0", MPL_EINPUT, "'sid_3'",
     "0 bytes"},
    {"small.usmp.json", "\"size_bytes\": 64", "\"size\": 64", MPL_EINPUT, "buffer 0",
     "'size_bytes'"},
    {"small.usmp.json", "\"pool_name\": \"global_c", "\"pool\": \"global_c", MPL_EINPUT, "buffer 1",
     "'pool_name'"},
    {"small.usmp.json", "\"usmp\": 1", "\"usmp\": 2", MPL_EINPUT, "'usmp' is not 1", ""},
    {"small.usmp.json", "\"buffers\"", "\"buffer\"", MPL_EINPUT, "0 'buffers'", ""},
};

/* Messages that single changed bytes of a program of ExecuTorch lead to. */
static const char *const of_bytes[] = {"beyond its memory", "unknown here", "too large",
                                       "no ExecuTorch program", "no plan"};

static char *load(mpl_ctx *ctx, const char *file, size_t *size)
{
    char path[100], *text = NULL;

    snprintf(path, sizeof path, DATA "%s", file);
    assert_ok(ctx, mpl_file_read(ctx, path, &text, size));
    return text;
}

static void check_message(const mpl_ctx *ctx, const char *what)
{
    if (strncmp(ctx->message, folder, strlen(folder)) != 0 || strchr(ctx->message, '\n') != NULL)
        fail_msg("%s: not one line that begins with the path: %s", what, ctx->message);
}

/* Fault: a missing check, a wrong line, a verifier that is not called. */
TEST(changes_are_seen)
{
    owned_problem *beside = NULL;

    assert_ok(ctx, mpl_csv_read(ctx, DATA "tensors.csv", &beside, NULL));
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        size_t size, n = strlen(changed[i].from), m = strlen(changed[i].to);
        char *text = load(ctx, changed[i].file, &size), *at = strstr(text, changed[i].from), *now;
        mpl_import got = {0};
        mpl_status st;

        assert_non_null(at);
        now = malloc(size + m + 1);
        memcpy(now, text, (size_t)(at - text));
        memcpy(now + (at - text), changed[i].to, m);
        memcpy(now + (at - text) + m, at + n, size - n - (size_t)(at - text));
        st = mpl_plan_import(ctx, folder_put("changed", now, size - n + m), beside, &got);
        if (st == MPL_EINPUT)
            check_message(ctx, changed[i].to);
        if (st == MPL_OK)
            st = mpl_verify(ctx, got.problem != NULL ? got.problem : beside, got.plan);
        if (st != changed[i].status ||
            (st != MPL_OK &&
             (strchr(ctx->message, '\n') != NULL || strstr(ctx->message, changed[i].says) == NULL ||
              strstr(ctx->message, changed[i].says_too) == NULL)))
            fail_msg("%s with '%s': %s: %s", changed[i].file, changed[i].to, mpl_status_name(st),
                     ctx->message);
        free(now);
        mpl_free(ctx, text);
        mpl_import_fini(ctx, &got);
    }
}

/* Every file cut at every byte, or at every seventh of a large one: bad input in one line, or a
 * smaller plan if the format has no end mark. */
TEST(cut_files)
{
    owned_problem *beside = NULL;

    assert_ok(ctx, mpl_csv_read(ctx, DATA "tensors.csv", &beside, NULL));
    for (int i = 0; i < N_GOOD; i++) {
        bool json = strstr(good[i].file, ".json") != NULL;
        size_t size;
        owned_memory char *text = NULL;

        if (strcmp(good[i].format, "libnnc") == 0) /* detected by its name; and two files */
            continue;
        text = load(ctx, good[i].file, &size);
        for (size_t n = 0; n + 2 < size; n += size > 1100 ? 7 : 1) {
            mpl_import got = {0};
            mpl_status st = mpl_plan_import(ctx, folder_put("cut", text, n), beside, &got);

            if (st != MPL_EINPUT && (st != MPL_OK || json || n == 0))
                fail_msg("%s cut to %zu: %s", good[i].file, n, mpl_status_name(st));
            if (st == MPL_EINPUT)
                check_message(ctx, good[i].file);
            mpl_import_fini(ctx, &got);
        }
    }
}

/* Each byte of a binary program is each of a few others: one line, and never more than a plan that
 * the verifier judges. Fault: a number that is used before it is compared. */
TEST(changed_bytes)
{
    static const uint8_t to[] = {255};
    bool said[sizeof of_bytes / sizeof *of_bytes] = {false};
    size_t size;
    owned_memory char *text = load(ctx, "small.executorch.pte", &size);

    for (size_t k = 0; k < size * sizeof to; k++) {
        char *at = &text[k / sizeof to], was = *at;
        mpl_import got = {0};
        mpl_status st;

        *at = (char)to[k % sizeof to];
        st = mpl_plan_import(ctx, folder_put("changed", text, size), NULL, &got);
        if (st == MPL_EINPUT)
            check_message(ctx, "a byte");
        else
            assert_ok(ctx, st);
        for (size_t i = 0; st == MPL_EINPUT && i < sizeof said; i++)
            said[i] |= strstr(ctx->message, of_bytes[i]) != NULL;
        if (st == MPL_OK && mpl_verify(ctx, got.problem, got.plan) != MPL_OK)
            assert_null(strchr(ctx->message, '\n'));
        mpl_import_fini(ctx, &got);
        *at = was;
    }
    for (size_t i = 0; i < sizeof said; i++)
        if (!said[i])
            fail_msg("no changed byte is said to be '%s'", of_bytes[i]);
}

/* Which items of a tuple a statement needs: one, the other, both where it names the tuple. */
TEST(tuples_of_relax)
{
    static const struct {
        const char *from, *to;
        uint32_t death[3]; /* of alloc, alloc1, alloc2 */
    } table[] = {{"lv1[1]", "lv1[1]", {5, 6, 8}},
                 {"lv1[1]", "lv1[0]", {5, 8, 6}},
                 {"lv1[1]", "lv1[2]", {5, 6, 6}},
                 {"lv2, x", "lv1, x", {5, 8, 8}}};

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        size_t size;
        owned_memory char *text = load(ctx, "small.relax.txt", &size);
        mpl_import got = {0};

        memcpy(strstr(text, table[i].from), table[i].to, strlen(table[i].to));
        assert_ok(ctx, mpl_plan_import(ctx, folder_put("tuples", text, size), NULL, &got));
        for (uint32_t b = 0; b < 3; b++)
            assert_int_equal(got.problem->death[b], table[i].death[b]);
        mpl_import_fini(ctx, &got);
    }
}

TEST(loops_of_executorch)
{
    mpl_import got = {0};

    assert_status(ctx, mpl_plan_import(ctx, DATA "small.loop.pte", NULL, &got), MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "instruction 7 jumps back"));
}

/* Fault: another version of the format is read as this one, or called no plan. */
TEST(versions_of_executorch)
{
    size_t size;
    owned_memory char *text = load(ctx, "small.executorch.pte", &size);
    mpl_import got = {0};

    memcpy(text + 4, "ET13", 4);
    assert_status(ctx, mpl_plan_import(ctx, folder_put("other", text, size), NULL, &got),
                  MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "an ExecuTorch program of format ET13; ET12 is read"));
}

/* One run has no memory pattern: the BFC arena's places, no stated size, and nobody to tell what
 * dies with the last node from the outputs. */
TEST(one_run_of_onnx_runtime)
{
    size_t size;
    owned_memory char *text = load(ctx, "small.ort_profile.json", &size);
    char *end = strchr(strstr(text, "model_run"), '\n') - 1;
    mpl_import got = {0};

    *end = ']';
    assert_ok(ctx,
              mpl_plan_import(ctx, folder_put("one", text, (size_t)(end + 1 - text)), NULL, &got));
    assert_int_equal(got.problem->n, 3);
    assert_int_equal(got.arena_bytes, 0);
    assert_non_null(strstr(got.note, "2 outputs"));
    assert_non_null(strstr(got.note, "the BFC arena's"));
    mpl_import_fini(ctx, &got);
}

/* XLA's two files together, as it writes them. */
/* The plan at path under each allocation that is refused in turn. Fault: one is not handled. */
static void refuse_each(const char *path, const mpl_problem *beside)
{
    mpl_status st = MPL_EMEM;

    for (int64_t k = 0; st == MPL_EMEM; k++) {
        mpl_ctx limited = mpl_ctx_default();
        mpl_import got = {0};

        limited.fail_after = k;
        st = mpl_plan_import(&limited, path, beside, &got);
        mpl_import_fini(&limited, &got);
        assert_int_equal(limited.n_live, 0);
    }
    assert_int_equal(st, MPL_OK);
}

/* Fault: ROOT or % stay with a name, an index hides an instruction, or one without op_name has its
 * neighbour's. */
TEST(xla_in_files_beside)
{
    static const char hlo[] =
        "HloModule jit_f\n\nENTRY %main {\n"
        "  %mul = f32[64]{0} multiply(%p0, %p0), metadata={op_name=\"jit(f)/mul\" id=1}\n"
        "  %add = f32[32]{0} add(%mul, %mul)\n"
        "  pair.1 = (f32[64]{0}) tuple(%add), metadata={op_type=\"x\" op_name=\"jit(f)/a, b\"}\n"
        "  %torn = , metadata={op_name=\"\n"
        "  ROOT %neg = f32[64]{0} negate(%mul), metadata={op_name=\"jit(f)/neg\"}\n}\n";
    static const char *const named[] = {"mul jit(f)/mul", "add", "pair.1{0} jit(f)/a, b",
                                        "neg jit(f)/neg", "exp"};
    mpl_import got = {0};
    size_t size, n;
    char *text, *ranges, path[200];

    text = load(ctx, "small.xla.txt", &size);
    ranges = strstr(text, "HloLiveRange");
    n = (size_t)(ranges - text);
    snprintf(path, sizeof path, "%s", folder_put("m-buffer-assignment.txt", text, n));
    assert_status(ctx, mpl_plan_import(ctx, path, NULL, &got), MPL_EINPUT);
    assert_non_null(strstr(ctx->message, "m-live-range.txt"));
    folder_put("m-live-range.txt", ranges, size - n);
    assert_ok(ctx, mpl_plan_import(ctx, path, NULL, &got));
    assert_int_equal(got.problem->n, 5);
    assert_non_null(strstr(got.note, "3 allocations of 324 bytes"));
    assert_null(strstr(got.note, "HLO"));
    mpl_import_fini(ctx, &got);
    folder_put("m.txt", hlo, strlen(hlo));
    assert_ok(ctx, mpl_plan_import(ctx, path, NULL, &got));
    assert_non_null(strstr(got.note, "named by the HLO beside"));
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        bool there = false;

        for (uint32_t b = 0; b < got.problem->n; b++)
            there |= strcmp(got.problem->buffer_name[b], named[i]) == 0;
        if (!there)
            fail_msg("no buffer is named '%s'", named[i]);
    }
    refuse_each(path, NULL);
    mpl_free(ctx, text);
    mpl_import_fini(ctx, &got);
}

/* Freed segments raise the earlier reserved bytes, allocated ones lower them; addresses form no
 * arena. */
TEST(segments_come_and_go)
{
    static const struct {
        const char *requested; /* replaces the event that requests a free; same length */
        uint64_t arena;
    } table[] = {{"\"free_requested\"", 4096 + 2048 + 2048},
                 {"\"segment_alloc\" ", 4096 + 2048 + 1024}};

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        mpl_import got = {0};
        size_t size;
        char *text, *taken, *asked;

        text = load(ctx, "small.pytorch.json", &size);
        taken = strstr(text, "\"segment_alloc\"");
        asked = strstr(text, "\"free_requested\"");
        assert_non_null(taken);
        assert_non_null(asked);
        memcpy(taken, "\"segment_free\" ", 15);
        memcpy(asked, table[i].requested, 16);
        assert_ok(ctx, mpl_plan_import(ctx, folder_put("freed.json", text, size), NULL, &got));
        assert_true(got.returns_memory);
        assert_non_null(strstr(got.note, "given back"));
        assert_int_equal(got.arena_bytes, table[i].arena);
        mpl_free(ctx, text);
        mpl_import_fini(ctx, &got);
    }
}

TEST(nothing_that_is_a_plan)
{
    static const struct {
        const char *text;
        size_t n;
        const char *says;
    } table[] =
        ROW({"", 0, "empty"}, {"hello\n", 6, "no plan"},
            {"\x1c\0\0\0TFL3\0\0\0\0", 12, "TensorFlow Lite"}, {"{\"a\": 1}", 8, "no plan file"},
            {"allocation 0: size 4, constant:\nBufferLiveRange:\n", 49, "cut"},
            {"id,lower,upper,size\na,0,1,2\n", 28, "'offset'"}, {"1 0 1 0", 7, "GRAPH"},
            {"\x0c\0\0\0ET12\4\0\4\0\4\0\0\0", 16, "it has no method"});

    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        mpl_import got = {0};

        assert_status(
            ctx, mpl_plan_import(ctx, folder_put("odd", table[i].text, table[i].n), NULL, &got),
            MPL_EINPUT);
        check_message(ctx, table[i].text);
        if (strstr(ctx->message, table[i].says) == NULL)
            fail_msg("'%s': does not say '%s': %s", table[i].text, table[i].says, ctx->message);
    }
    assert_null(mpl_plan_format(ctx, "/nonexistent"));
}

/* The k-th allocation fails, for every k: MPL_EMEM and no leak. */
TEST(memory_runs_out)
{
    owned_problem *beside = NULL;

    assert_ok(ctx, mpl_csv_read(ctx, DATA "tensors.csv", &beside, NULL));
    for (int i = 0; i < N_GOOD; i++) {
        char path[100];

        snprintf(path, sizeof path, DATA "%s", good[i].file);
        refuse_each(path, beside);
    }
}

TESTS_WITHIN(begin, folder_remove, read_as_written, own_plans, changes_are_seen, cut_files,
             changed_bytes, tuples_of_relax, loops_of_executorch, versions_of_executorch,
             xla_in_files_beside, one_run_of_onnx_runtime, segments_come_and_go,
             nothing_that_is_a_plan, memory_runs_out)
