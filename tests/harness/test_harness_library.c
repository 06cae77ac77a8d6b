/* test_harness_library.c -- the library as an embedder uses it: memplan.h alone, installed, linked
 * statically or dynamically. */
#include "tests/support/folder.h"

#include <pthread.h>

#include "harness/lib/memplan.h"
#include "harness/lib/plugin.h"

static char program[400], build[400];
static char text[1 << 16]; /* of the last command */

static int begin(void)
{
    const char *path = getenv("MEMPLAN") != NULL ? getenv("MEMPLAN") : "build/debug/memplan";

    snprintf(program, sizeof program, "%s", path);
    snprintf(build, sizeof build, "%.*s", (int)(strrchr(path, '/') - path), path);
    return folder_make("library") != 0;
}

/* Exit status of a shell command; its output goes to `text`. */
static int shell(const char *format, ...)
{
    char command[2000];
    va_list args;
    FILE *f;

    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    f = popen(command, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    return pclose(f);
}

#define assert_done(ctx, call)                                                                     \
    do {                                                                                           \
        memplan_status status_got = (call);                                                        \
        if (status_got != MEMPLAN_OK)                                                              \
            fail_msg("status %d: %s", status_got, memplan_message(ctx));                           \
    } while (0)

/* ---- what is exported ---- */

/* Fault: the header declares a function that no library has, or an internal symbol is exported. */
TEST(symbols_are_those_of_the_header)
{
    static const char declared[] =
        "grep -oE '^MEMPLAN_API .*memplan_[a-z_]+[(]' harness/lib/memplan.h | grep -oE "
        "'memplan_[a-z_]+[(]' | tr -d '(' | sort";
    static char wanted[sizeof text];

    assert_int_equal(shell("%s", declared), 0);
    memcpy(wanted, text, sizeof text);
    assert_true(strlen(wanted) > 100);
    assert_int_equal(shell("nm -D --defined-only %s/prefix/lib/libmemplan.so | "
                           "sed -n 's/.* T \\(.*\\)@@MEMPLAN_0.1$/\\1/p' | sort",
                           build),
                     0);
    assert_string_equal(text, wanted);
    /* includes the symbol of the version; a sanitizer adds its own */
    assert_int_equal(
        shell(
            "nm -D --defined-only %s/prefix/lib/libmemplan.so | "
            "grep -vE ' T memplan_| A MEMPLAN_|__(asan|odr_asan|ubsan|tsan)|_(init|fini)$' | wc -l",
            build),
        0);
    assert_int_equal(atoi(text), 0);
    assert_int_equal(shell("nm -g --defined-only %s/prefix/lib/libmemplan.a | grep ' [A-Z] ' | "
                           "grep -vE '__(asan|odr_asan|ubsan|tsan)' | sed 's/.* //' | sort",
                           build),
                     0);
    assert_string_equal(text, wanted);
    assert_int_equal(shell("readelf -d %s/prefix/lib/libmemplan.so", build), 0);
    assert_non_null(strstr(text, "Library soname: [libmemplan.so.0]"));
    for (size_t i = 0; i < 2; i++) /* an embedded planner needs no backend */
        assert_null(strstr(text, (const char *[]){"libdnnl", "libhwloc"}[i]));
}

/* Fault: the library lacks a part of the tape; an iteration met again does not follow its plan. */
TEST(eager_example_runs)
{
    assert_int_equal(shell("%s/example/eager", build), 0);
    assert_non_null(strstr(text,
                           "batch 1: y[0] = -0.34375, eagerly\nbatch 4: y[0] = -0.34375, eagerly\n"
                           "batch 1: y[0] = -0.34375, by its plan\n"));
    assert_non_null(strstr(text, "\nbatch 4: y[0] = -0.34375, by its plan\n"));
    assert_int_equal(shell("wc -l <harness/lib/example/eager.c"), 0);
    assert_true(atoi(text) <= 60);
}

/* Fault: pkg-config gives a wrong prefix or flag; the library works only in the test's program. */
TEST(example_runs_by_either_library)
{
    static char by_so[sizeof text];

    assert_int_equal(shell("%s/example/by_so mnist_conv", build), 0);
    memcpy(by_so, text, sizeof text);
    assert_non_null(strstr(text, "\narena 12544000, bound 12544000\n"));
    assert_int_equal(shell("%s/example/by_a mnist_conv", build), 0);
    assert_string_equal(text, by_so);
    assert_int_equal(shell("ldd %s/example/by_a | grep -c libmemplan", build) == 0, 0);
    assert_int_equal(shell("ldd %s/example/by_so | grep -c 'prefix/lib/libmemplan.so.0'", build),
                     0);
    assert_int_not_equal(shell("%s/example/by_so no_such_graph 2>&1", build), 0);
    assert_non_null(strstr(text, "no_such_graph"));
    assert_int_equal(shell("wc -l <harness/lib/example/library.c"), 0);
    assert_true(atoi(text) <= 30);
}

/* Fault: the header does not compile as C++ or beside the plug-in header. */
TEST(header_fits_beside_others)
{
    if (shell("command -v clang") != 0) {
        print_message("skip: %s: no clang here\n", __func__);
        skip();
    }
    for (int cxx = 0; cxx < 2; cxx++)
        assert_int_equal(shell("printf '#include <memplan.h>\\n#include <memplan/plugin.h>\\n' | "
                               "clang -x %s -Wall -Wextra -pedantic -Werror -fsyntax-only "
                               "-I%s/prefix/include - 2>&1",
                               cxx ? "c++ -std=c++11" : "c -std=c11 -Wstrict-prototypes", build),
                         0);
    assert_string_equal(memplan_version(), "0.1.0");
}

/* ---- tasks built by calls ---- */

typedef struct built {
    const char *name;
    uint32_t n;
    struct {
        uint64_t bytes;
        uint32_t align, birth, death;
    } buffer[5];
    uint32_t n_arcs, n_pairs;
    uint32_t arc[4][2], pair[2][2]; /* from, to; in, out */
    uint64_t fixed;                 /* of buffer 0; UINT64_MAX: none */
    uint64_t capacity;
    memplan_status checked, planned;
    uint64_t peak;    /* of the best plan */
    const char *says; /* part of the message */
} built;

#define FREE UINT64_MAX
#define ANY  UINT64_MAX

static const built tasks[] = {
    ROW("lives that meet", 2, {{8, 1, 0, 2}, {8, 1, 1, 3}}, 0, 0, {{0}}, {{0}}, FREE, ANY, 0, 0, 16,
        NULL),
    ROW("lives that touch", 2, {{8, 1, 0, 1}, {8, 1, 1, 2}}, 0, 0, {{0}}, {{0}}, FREE, ANY, 0, 0, 8,
        NULL),
    {"alignment", 2, {{1, 1, 0, 2}, {8, 64, 0, 2}}, 0, 0, {{0}}, {{0}}, FREE, ANY, 0, 0, 9, NULL},
    {"fixed", 2, {{8, 8, 0, 2}, {8, 8, 0, 2}}, 0, 0, {{0}}, {{0}}, 32, ANY, 0, 0, 40, NULL},
    {"in place", 2, {{8, 1, 0, 3}, {8, 1, 2, 4}}, 0, 1, {{0}}, {{0, 1}}, FREE, ANY, 0, 0, 8, NULL},
    ROW("a pair twice", 2, {{8, 1, 0, 3}, {8, 1, 2, 4}}, 0, 2, {{0}}, {{0, 1}, {0, 1}}, FREE, ANY,
        0, 0, 8, NULL),
    ROW("no order at all", 2, {{8, 1, 0, 0}, {8, 1, 0, 0}}, 0, 0, {{0}}, {{0}}, FREE, ANY, 0, 0, 16,
        NULL),
    {"an order", 2, {{8, 1, 0, 0}, {8, 1, 0, 0}}, 1, 0, {{1, 0}}, {{0}}, FREE, ANY, 0, 0, 8, NULL},
    ROW("a chain", 3, {{8, 1, 0, 0}, {8, 1, 0, 0}, {8, 1, 0, 0}}, 2, 0, {{0, 1}, {1, 2}}, {{0}},
        FREE, ANY, 0, 0, 8, NULL),
    {"it fits", 2, {{8, 1, 0, 2}, {8, 1, 1, 3}}, 0, 0, {{0}}, {{0}}, FREE, 16, 0, 0, 16, NULL},
    ROW("does not fit", 2, {{8, 1, 0, 2}, {8, 1, 1, 3}}, 0, 0, {{0}}, {{0}}, FREE, 15, 0,
        MEMPLAN_EINVALID, 0, "15"),
    {"nothing", 0, {{0}}, 0, 0, {{0}}, {{0}}, FREE, ANY, MEMPLAN_EINPUT, 0, 0, "no buffer"},
    {"no bytes", 1, {{0, 1, 0, 1}}, 0, 0, {{0}}, {{0}}, FREE, ANY, MEMPLAN_EINPUT, 0, 0, "0 bytes"},
    ROW("odd alignment", 1, {{8, 3, 0, 1}}, 0, 0, {{0}}, {{0}}, FREE, ANY, MEMPLAN_EINPUT, 0, 0,
        "3 bytes"),
    {"backwards", 1, {{8, 1, 2, 1}}, 0, 0, {{0}}, {{0}}, FREE, ANY, MEMPLAN_EINPUT, 0, 0, "[2, 1)"},
    ROW("some have steps", 2, {{8, 1, 0, 1}, {8, 1, 0, 0}}, 0, 0, {{0}}, {{0}}, FREE, ANY,
        MEMPLAN_EINPUT, 0, 0, "1 of 2"),
    ROW("both", 2, {{8, 1, 0, 1}, {8, 1, 1, 2}}, 1, 0, {{0, 1}}, {{0}}, FREE, ANY, MEMPLAN_EINPUT,
        0, 0, "partial order"),
    ROW("a cycle", 2, {{8, 1, 0, 0}, {8, 1, 0, 0}}, 2, 0, {{0, 1}, {1, 0}}, {{0}}, FREE, ANY,
        MEMPLAN_EINPUT, 0, 0, "cycle"),
    ROW("a pair that lives on", 2, {{8, 1, 0, 4}, {8, 1, 2, 4}}, 0, 1, {{0}}, {{0, 1}}, FREE, ANY,
        MEMPLAN_EINPUT, 0, 0, "pair"),
    ROW("fixed off its alignment", 1, {{8, 8, 0, 1}}, 0, 0, {{0}}, {{0}}, 4, ANY, MEMPLAN_EINPUT, 0,
        0, "multiple"),
};

/* Stops at the first failure. */
static memplan_status build_task(memplan_ctx *ctx, const built *b, memplan_task **task)
{
    memplan_status st = memplan_task_new(ctx, b->name, task);
    char name[20];

    for (uint32_t i = 0; st == MEMPLAN_OK && i < b->n; i++) {
        uint32_t id = 77;

        snprintf(name, sizeof name, "b%" PRIu32, i);
        st = memplan_add(*task, i == 0 ? NULL : name, b->buffer[i].bytes, b->buffer[i].align,
                         b->buffer[i].birth, b->buffer[i].death, &id);
        assert_int_equal(id, st == MEMPLAN_OK ? i : 77);
    }
    for (uint32_t i = 0; st == MEMPLAN_OK && i < b->n_arcs; i++)
        st = memplan_add_before(*task, b->arc[i][0], b->arc[i][1]);
    for (uint32_t i = 0; st == MEMPLAN_OK && i < b->n_pairs; i++)
        st = memplan_add_in_place(*task, b->pair[i][0], b->pair[i][1]);
    if (st == MEMPLAN_OK && b->fixed != FREE)
        st = memplan_fix(*task, 0, b->fixed);
    if (st == MEMPLAN_OK && b->capacity != ANY)
        st = memplan_set_capacity(*task, b->capacity);
    return st;
}

/* Fault: a part of a task does not reach the planner; an invalid one does. */
TEST(built_tasks_are_planned)
{
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        memplan_ctx *library = memplan_ctx_new();
        memplan_task *task = NULL;
        memplan_plan *plan = NULL;
        memplan_status st;

        print_message("%s\n", tasks[i].name);
        assert_done(library, build_task(library, &tasks[i], &task));
        assert_int_equal(memplan_check(task), tasks[i].checked);
        st = memplan_run(task, tasks[i].buffer[0].death > 0 ? "exact" : "portfolio", &plan);
        assert_int_equal(st, tasks[i].checked != MEMPLAN_OK ? tasks[i].checked : tasks[i].planned);
        if (tasks[i].says != NULL && strstr(memplan_message(library), tasks[i].says) == NULL)
            fail_msg("'%s' does not say %s", memplan_message(library), tasks[i].says);
        if (st == MEMPLAN_OK) {
            assert_int_equal(memplan_peak_bytes(plan), tasks[i].peak);
            assert_int_equal(memplan_claim_of(plan), MEMPLAN_IS_OPTIMAL);
            assert_int_equal(memplan_bound_bytes(plan), tasks[i].peak);
            assert_int_equal(memplan_count(task), tasks[i].n);
            assert_int_equal(memplan_offset(plan, tasks[i].n), MEMPLAN_NO_OFFSET);
            assert_int_equal(memplan_add(task, NULL, 1, 1, 0, 1, NULL), MEMPLAN_EINPUT);
            assert_int_equal(memplan_add_before(task, 0, 0), MEMPLAN_EINPUT);
            assert_int_equal(memplan_find(task, tasks[i].n > 1 ? "b1" : "#0"),
                             tasks[i].n > 1 ? 1 : MEMPLAN_NO_BUFFER);
            assert_int_equal(memplan_bytes(task, 0), tasks[i].buffer[0].bytes);
            assert_int_equal(memplan_death(task, 1), tasks[i].buffer[1].death);
        } else {
            assert_null(plan);
        }
        memplan_plan_free(plan);
        memplan_task_free(task);
        assert_int_equal(memplan_live_allocations(library), 0);
        memplan_ctx_free(library);
    }
}

/* Fault: foreign offsets are trusted; a refusal does not name the two buffers. */
TEST(offsets_of_others_are_verified)
{
    static const struct {
        uint64_t offset[3];
        memplan_status status;
    } cases[] = ROW({{0, 8, 16}, MEMPLAN_OK}, {{0, 8, 0}, MEMPLAN_OK}, {{8, 0, 8}, MEMPLAN_OK},
                    {{0, 4, 16}, MEMPLAN_EINVALID}, {{0, 8, 15}, MEMPLAN_EINVALID},
                    {{0, UINT64_MAX - 3, 16}, MEMPLAN_EINVALID});
    memplan_ctx *library = memplan_ctx_new();
    memplan_task *task = NULL;

    assert_done(library, memplan_task_new(library, NULL, &task));
    assert_done(library, memplan_add(task, "left", 8, 1, 0, 2, NULL));
    assert_done(library, memplan_add(task, "middle", 8, 1, 1, 3, NULL));
    assert_done(library, memplan_add(task, "right", 8, 1, 2, 4, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memplan_plan *plan = NULL;

        assert_int_equal(memplan_verify(task, cases[i].offset, &plan), cases[i].status);
        assert_int_equal(plan != NULL, cases[i].status == MEMPLAN_OK);
        if (i == 3)
            assert_true(strstr(memplan_message(library), "left") != NULL &&
                        strstr(memplan_message(library), "middle") != NULL);
        memplan_plan_free(plan);
    }
    memplan_task_free(task);
    memplan_ctx_free(library);
}

/* ---- compared with the program ---- */

static const struct {
    const char *graph, *name[3], *value[3];
    const char *planner, *options; /* the same on the command line */
} loads[] = {
    {"mnist_conv", {NULL}, {NULL}, "greedy_size", "-p greedy_size"},
    ROW("lstm:layers=1,steps=4,hidden=32", {"safety"}, {"parallel"}, "nnc_arena",
        "-p nnc_arena --safety parallel"),
    ROW("resnet18:image=64", {"in-place", "views", "pin"}, {"off", "off", "weights"}, "best_fit",
        "-p best_fit --in-place off --views off --pin weights"),
    ROW("guillotine:n=20,seed=3", {"budget", "seed"}, {"2000", "7"}, "hill_climb",
        "-p hill_climb --budget 2000 --seed 7"),
    ROW("guillotine:n=20", {"safety", "capacity"}, {"parallel", "1048576"}, NULL,
        "--safety parallel --capacity 1048576"),
    {"mlp", {"order"}, {"given"}, "pool:level=0", "-p pool:level=0"},
};

/* The number after "name": in the JSON in `text`. */
static uint64_t member(const char *name)
{
    char key[64];
    const char *at;

    snprintf(key, sizeof key, "\"%s\":", name);
    at = strstr(text, key);
    assert_non_null(at);
    return strtoull(at + strlen(key), NULL, 10);
}

/* Fault: the library reads a setting differently from the command line; the program refuses its
 * plan file. */
TEST(library_and_program_agree)
{
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        memplan_ctx *library = memplan_ctx_new();
        memplan_task *task = NULL, *again = NULL;
        memplan_plan *plan = NULL, *back = NULL;

        print_message("%s %s\n", loads[i].graph, loads[i].options);
        for (int k = 0; k < 3 && loads[i].name[k] != NULL; k++)
            assert_done(library, memplan_set(library, loads[i].name[k], loads[i].value[k]));
        assert_done(library, memplan_load(library, loads[i].graph, &task));
        assert_done(library, memplan_run(task, loads[i].planner, &plan));
        assert_done(library, memplan_write(plan, in_folder("plan.json")));
        assert_int_equal(shell("%s plan %s %s --json", program, loads[i].graph, loads[i].options),
                         0);
        assert_int_equal(member("planned_bytes"), memplan_peak_bytes(plan));
        assert_int_equal(member("bound_bytes"), memplan_bound_bytes(plan));
        assert_int_equal(shell("%s verify %s %s/plan.json --json", program, loads[i].graph, folder),
                         0);
        assert_int_equal(member("planned_bytes"), memplan_peak_bytes(plan));
        assert_done(library, memplan_read(library, in_folder("plan.json"), &again, &back));
        assert_int_equal(memplan_peak_bytes(back), memplan_peak_bytes(plan));
        assert_int_equal(memplan_count(again), memplan_count(task));
        for (uint32_t b = 0; b < memplan_count(task); b++)
            assert_int_equal(memplan_offset(back, b), memplan_offset(plan, b));
        memplan_plan_free(plan);
        memplan_plan_free(back);
        memplan_task_free(task);
        memplan_task_free(again);
        assert_int_equal(memplan_live_allocations(library), 0);
        memplan_ctx_free(library);
    }
}

static const struct {
    const char *name, *value;
    memplan_status status;
} settings[] = {
    {"safety", "both", MEMPLAN_EINPUT},
    {"order", "backwards", MEMPLAN_EINPUT},
    {"in-place", "1", MEMPLAN_EINPUT},
    {"views", "", MEMPLAN_EINPUT},
    {"pin", "weights,", MEMPLAN_EINPUT},
    {"pin", "bias", MEMPLAN_EINPUT},
    {"pin", "none", MEMPLAN_OK},
    {"pools", "gradients,weight", MEMPLAN_EINPUT},
    {"pools", "gradients,state", MEMPLAN_OK},
    {"capacity", "-1", MEMPLAN_EINPUT},
    {"budget", "1e3", MEMPLAN_EINPUT},
    {"time-limit", "nan", MEMPLAN_EINPUT},
    {"time-limit", "0", MEMPLAN_EINPUT},
    {"threads", "0", MEMPLAN_EINPUT},
    {"seed", "18446744073709551616", MEMPLAN_EINPUT},
    {"colour", "red", MEMPLAN_EINPUT},
    {"dim", "N", MEMPLAN_EINPUT},
    {"dim", "N=0", MEMPLAN_EINPUT},
    {"dim", "N=4", MEMPLAN_OK},
    {"seed", NULL, MEMPLAN_OK},
    {"pin", NULL, MEMPLAN_OK},
    {"pools", NULL, MEMPLAN_OK},
    {"dim", NULL, MEMPLAN_OK},
};

/* Fault: a wrong value is accepted, or stays set after a refusal. */
TEST(wrong_calls_are_refused)
{
    memplan_ctx *library = memplan_ctx_new();
    memplan_task *task = NULL;
    memplan_plan *plan = NULL;
    uint64_t peak = 0;

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (memplan_set(library, settings[i].name, settings[i].value) != settings[i].status)
            fail_msg("%s=%s", settings[i].name,
                     settings[i].value != NULL ? settings[i].value : "NULL");
    assert_done(library, memplan_load(library, "mnist_conv", &task));
    assert_done(library, memplan_run(task, "greedy_size", &plan));
    peak = memplan_peak_bytes(plan);
    memplan_plan_free(plan);
    plan = NULL;
    assert_int_equal(peak, 12544000);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(memplan_run(task,
                                     (const char *[]){"", "nobody", "pool:level", "pool:level=9",
                                                      "pool:=1", "so:./libmine.so"}[i],
                                     &plan),
                         MEMPLAN_EINPUT);
    assert_null(plan);
    memplan_task_free(task);
    task = NULL;
    assert_int_equal(memplan_load(library, "/nonexistent.onnx", &task), MEMPLAN_EINPUT);
    assert_int_equal(memplan_read(library, "README.md", &task, &plan), MEMPLAN_EINPUT);
    assert_true(task == NULL && plan == NULL);
    assert_int_equal(memplan_live_allocations(library), 0);
    memplan_ctx_free(library);
    memplan_ctx_free(NULL);
    memplan_task_free(NULL);
    memplan_plan_free(NULL);
    assert_string_equal(memplan_planner_name(0), "none");
    assert_null(memplan_planner_name(10000));
}

/* ---- memory that runs out ---- */

static memplan_status whole_story(memplan_ctx *ctx, int which)
{
    memplan_task *task = NULL, *again = NULL;
    memplan_plan *plan = NULL, *back = NULL;
    memplan_status st = memplan_set(ctx, "dim", "N=4");
    uint64_t offset[5] = {0};

    if (st == MEMPLAN_OK)
        st = which == 0   ? build_task(ctx, &tasks[4], &task)
             : which == 1 ? build_task(ctx, &tasks[8], &task)
                          : memplan_load(ctx, "mlp:layers=1", &task);
    if (st == MEMPLAN_OK)
        st = memplan_run(task, which == 1 ? "greedy_size" : "pool:level=0", &plan);
    if (st == MEMPLAN_OK)
        st = memplan_write(plan, in_folder("memory.json"));
    if (st == MEMPLAN_OK)
        st = memplan_read(ctx, in_folder("memory.json"), &again, &back);
    for (uint32_t b = 0; st == MEMPLAN_OK && b < memplan_count(task); b++)
        offset[b] = memplan_offset(plan, b);
    memplan_plan_free(back);
    back = NULL;
    if (st == MEMPLAN_OK)
        st = memplan_verify(task, offset, &back);
    memplan_plan_free(plan);
    memplan_plan_free(back);
    memplan_task_free(task);
    memplan_task_free(again);
    return st;
}

/* Fault: a leak, a crash or another status when the k-th allocation fails. */
TEST(memory_may_run_out_anywhere)
{
    for (int which = 0; which < 3; which++) {
        memplan_status st = MEMPLAN_EMEM;
        int64_t k = 0;

        for (; st == MEMPLAN_EMEM; k++) {
            memplan_ctx *library = memplan_ctx_new();

            memplan_fail_allocation(library, k);
            st = whole_story(library, which);
            assert_true(st == MEMPLAN_OK || st == MEMPLAN_EMEM);
            memplan_fail_allocation(library, -1);
            assert_done(library, memplan_set(library, "dim", NULL));
            assert_int_equal(memplan_live_allocations(library), 0);
            memplan_ctx_free(library);
        }
        assert_true(k > 40);
    }
}

/* Fault: buffers added at once are not those added one by one; the text is not the plan file. */
TEST(many_buffers_and_all_offsets_at_once)
{
    const uint64_t bytes[4] = {16, 8, 24, 8};
    const uint32_t align[4] = {8, 8, 8, 8}, birth[4] = {0, 1, 2, 3}, death[4] = {3, 2, 5, 6};
    memplan_status st = MEMPLAN_EMEM;
    static char file[1 << 14];

    for (int64_t k = 0; st == MEMPLAN_EMEM; k++) {
        memplan_ctx *library = memplan_ctx_new();
        memplan_task *task = NULL;
        memplan_plan *plan = NULL;
        const char *json = NULL;
        uint64_t offset[5] = {7, 7, 7, 7, 7};

        memplan_fail_allocation(library, k);
        if ((st = memplan_task_new(library, "l", &task)) == MEMPLAN_OK &&
            (st = memplan_add_all(task, 1, bytes, align, birth, death)) == MEMPLAN_OK &&
            (st = memplan_add_all(task, 3, bytes + 1, align + 1, birth + 1, death + 1)) ==
                MEMPLAN_OK)
            st = memplan_run(task, "exact", &plan);
        if (st == MEMPLAN_OK && (json = memplan_text(plan)) == NULL)
            st = MEMPLAN_EMEM;
        memplan_fail_allocation(library, -1);
        if (st == MEMPLAN_OK) {
            memplan_offsets(plan, offset);
            for (uint32_t b = 0; b < 4; b++)
                assert_int_equal(offset[b], memplan_offset(plan, b));
            assert_int_equal(offset[4], 7);
            assert_int_equal(memplan_peak_bytes(plan), 40);
            assert_ptr_equal(memplan_text(plan), json);
            assert_non_null(
                strstr(json, "\"certificate\":{\"kind\":\"clique\",\"buffers\":[0,2]}"));
            assert_done(library, memplan_write(plan, in_folder("text.json")));
            assert_int_equal(shell("tr -d '\\n' <%s/text.json", folder), 0);
            snprintf(file, sizeof file, "%s", json);
            assert_string_equal(text, file);
            assert_int_equal(memplan_add_all(task, 4, bytes, align, birth, death), MEMPLAN_EINPUT);
        }
        memplan_plan_free(plan);
        memplan_task_free(task);
        assert_int_equal(memplan_live_allocations(library), 0);
        memplan_ctx_free(library);
    }
    assert_int_equal(st, MEMPLAN_OK);
}

/* ---- threads ---- */

static const struct {
    const char *graph, *safety, *planner;
} work[] = {
    {"guillotine:n=12", "serial", "ilp"},
    {"lstm:layers=1,steps=4,hidden=32", "parallel", "nnc_arena"},
    {"mnist_conv", "parallel", "greedy_size"},
    {"guillotine:n=14", "serial", "exact"},
    {"guillotine:n=30", "serial", "local_search"},
};
enum { N_WORK = sizeof work / sizeof *work, N_THREADS = 4, ROUNDS = 8 };

static uint64_t one_peak(size_t i)
{
    memplan_ctx *ctx = memplan_ctx_new();
    memplan_task *task = NULL;
    memplan_plan *plan = NULL;
    uint64_t peak = 0;

    if (memplan_set(ctx, "safety", work[i].safety) == MEMPLAN_OK &&
        memplan_set(ctx, "budget", "20000") == MEMPLAN_OK &&
        memplan_load(ctx, work[i].graph, &task) == MEMPLAN_OK &&
        memplan_run(task, work[i].planner, &plan) == MEMPLAN_OK)
        peak = memplan_peak_bytes(plan) ^ memplan_offset(plan, memplan_count(task) / 2);
    memplan_plan_free(plan);
    memplan_task_free(task);
    memplan_ctx_free(ctx);
    return peak;
}

static void *many_peaks(void *arg)
{
    uint64_t *peak = arg;

    for (size_t k = 0; k < ROUNDS * N_WORK; k++)
        peak[k % N_WORK] |= one_peak(k % N_WORK);
    return NULL;
}

/* Fault: state shared by contexts. Under MODE=tsan a race is an error by itself. */
TEST(threads_do_not_meet)
{
    pthread_t thread[N_THREADS];
    uint64_t peak[N_THREADS][N_WORK] = {{0}};

    for (int t = 0; t < N_THREADS; t++)
        assert_int_equal(pthread_create(&thread[t], NULL, many_peaks, peak[t]), 0);
    for (int t = 0; t < N_THREADS; t++)
        pthread_join(thread[t], NULL);
    for (size_t i = 0; i < N_WORK; i++) {
        uint64_t alone = one_peak(i);

        assert_int_not_equal(alone, 0);
        for (int t = 0; t < N_THREADS; t++)
            assert_int_equal(peak[t][i], alone);
    }
}

TESTS_WITHIN(begin, folder_remove, symbols_are_those_of_the_header, eager_example_runs,
             example_runs_by_either_library, header_fits_beside_others, built_tasks_are_planned,
             offsets_of_others_are_verified, library_and_program_agree, wrong_calls_are_refused,
             memory_may_run_out_anywhere, many_buffers_and_all_offsets_at_once, threads_do_not_meet)
