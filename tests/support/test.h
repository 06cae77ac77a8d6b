/* test.h -- included by every test file: cmocka and its headers, tests with a fresh context each,
 * what a block owns, and reported skips. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "graphs/orders/order.h"
#include "graphs/source.h"
#include "planners/planner.h"

/* Data from `make data`: the Makefile links its folder here. Tests run in the project's root. */
#define MPL_SHARED "build/data"

/* Fails with the context's message if st is not the expected status. */
#define assert_status(ctx, got, want)                                                              \
    do {                                                                                           \
        mpl_status status_got = (got);                                                             \
        if (status_got != (want))                                                                  \
            fail_msg("status '%s' where '%s' was expected: %s", mpl_status_name(status_got),       \
                     mpl_status_name(want), (ctx)->message);                                       \
    } while (0)
#define assert_ok(ctx, got) assert_status(ctx, got, MPL_OK)

/* TEST(name) { .. } defines a test. Its context `ctx` is fresh; nothing may stay allocated at its
 * end. TESTS(name, ..) is a program that runs them in this order. TESTS_WITHIN(begin, end, ..) also
 * calls `begin` before the first and `end` after the last; both return 0 on success. */
#define TEST(name) static void name(__attribute__((unused)) mpl_ctx *ctx)
typedef void mpl_test(mpl_ctx *ctx);

static mpl_ctx *test_ctx; /* of the test that runs */

/* What a variable of these types holds when its block ends is freed, in the test's context;
 * owned_memory stands before the type of a pointer that mpl_free takes. */
#define owned_memory  __attribute__((cleanup(free_owned_memory)))
#define owned_graph   __attribute__((cleanup(free_owned_graph))) mpl_graph
#define owned_problem __attribute__((cleanup(free_owned_problem))) mpl_problem
#define owned_plan    __attribute__((cleanup(free_owned_plan))) mpl_plan
#define owned_map     __attribute__((cleanup(free_owned_map))) mpl_value_map

static inline void free_owned_memory(void *variable)
{
    mpl_free(test_ctx, *(void **)variable);
}

static inline void free_owned_graph(mpl_graph **g)
{
    mpl_graph_free(test_ctx, *g);
}

static inline void free_owned_problem(mpl_problem **p)
{
    mpl_problem_free(test_ctx, *p);
}

static inline void free_owned_plan(mpl_plan **plan)
{
    mpl_plan_free(test_ctx, *plan);
}

static inline void free_owned_map(mpl_value_map **map)
{
    mpl_value_map_free(test_ctx, *map);
}

/* id[i] = i, for n of them: the order of the file. */
static inline void count_up(uint32_t n, uint32_t *id)
{
    for (uint32_t i = 0; i < n; i++)
        id[i] = i;
}

/* What most tests begin with; the caller frees it. */
static inline mpl_graph *text_graph(mpl_ctx *ctx, const char *text)
{
    mpl_graph *g = NULL;

    assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, strlen(text), &g));
    return g;
}

static inline mpl_graph *zoo_graph(mpl_ctx *ctx, const char *spec)
{
    mpl_graph *g = NULL;

    assert_ok(ctx, mpl_zoo_build(ctx, spec, &g));
    return g;
}

/* A request for the network with its parameters at sizes that run at once. */
static inline const char *small_network(const mpl_zoo_entry *entry, char spec[200])
{
    static const struct {
        const char *key;
        int64_t value; /* 0: the least */
    } sizes[] = {{"image", 0},  {"vocab", 50}, {"hidden", 24}, {"heads", 3},
                 {"layers", 2}, {"seq", 6},    {"answer", 5},  {"channels", 8}};
    size_t n = (size_t)snprintf(spec, 200, "%s", entry->name);
    char mark = ':';

    for (const mpl_zoo_param *p = entry->params; p->key != NULL; p++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            if (strcmp(p->key, sizes[i].key) == 0) {
                n += (size_t)snprintf(spec + n, 200 - n, "%c%s=%" PRId64, mark, p->key,
                                      sizes[i].value > p->min ? sizes[i].value : p->min);
                mark = ',';
            }
    return spec;
}

static inline mpl_op *order_by(mpl_ctx *ctx, const mpl_graph *g, const char *name)
{
    mpl_op *order = NULL;

    assert_ok(ctx, mpl_new(ctx, order, g->n_ops + 1));
    assert_ok(ctx, mpl_order_of(ctx, g, mpl_order_find(name), order));
    return order;
}

static inline mpl_plan *planned_by(mpl_ctx *ctx, const char *planner, const mpl_problem *p)
{
    mpl_plan *plan = NULL;
    mpl_run run = mpl_run_default(ctx);

    assert_ok(ctx, mpl_planner_run(mpl_planner_find(planner), &run, p, &plan));
    return plan;
}

/* key NULL: no parameter; ticks 0: the default budget. The caller frees *plan. */
static inline mpl_status plan_with(mpl_ctx *ctx, const char *planner, const char *key,
                                   const char *value, uint64_t ticks, const mpl_problem *p,
                                   mpl_plan **plan)
{
    mpl_run run = mpl_run_default(ctx);

    *plan = NULL;
    if (ticks != 0)
        run.budget_ticks = ticks;
    run.n_params = key != NULL;
    run.param_key = &key;
    run.param_value = &value;
    return mpl_planner_run(mpl_planner_find(planner), &run, p, plan);
}

static inline void write_file(const char *path, const char *text, size_t size)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static inline uint32_t count_kind(const mpl_graph *g, mpl_op_kind kind)
{
    uint32_t n = 0;

    for (mpl_op op = 0; op < g->n_ops; op++)
        n += g->op_kind[op] == kind;
    return n;
}

/* Outermost operations. */
static inline uint32_t count_units(const mpl_graph *g)
{
    uint32_t n = 0;

    for (mpl_op op = 0; op < g->n_ops; op++)
        n += g->op_block[op] == 0;
    return n;
}

/* Whether `out` may overwrite `in`. */
static inline bool is_offered(const mpl_problem *p, mpl_buffer in, mpl_buffer out)
{
    for (uint32_t i = 0; i < p->n_in_place; i++)
        if (p->in_place_in[i] == in && p->in_place_out[i] == out)
            return true;
    return false;
}

/* Uniform in [0, 1), by a generator that is not ours. */
static inline double draw_share(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 33) / 2147483648.0;
}

/* A number in the environment; unset: `otherwise`. */
static inline uint64_t number_asked(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

/* Whether loops are short: under the address sanitizer, which looks for other faults than wrong
 * answers. MPL_ALL=1: they are whole. */
static inline bool in_short(void)
{
    return MPL_CHECK >= 3 && getenv("MPL_ALL") == NULL;
}

/* What many draws show: of few, nothing is asked. */
static inline bool often(bool shown)
{
    return in_short() || shown;
}

/* How many of n drawn problems a loop tries: in short a twentieth. */
static inline uint32_t draws(uint32_t n)
{
    return in_short() ? (n + 19) / 20 : n;
}

/* Whether the i-th of many alike is left out: in short four of five. */
static inline bool left_out(uint64_t i)
{
    return in_short() && i % 5 != 0;
}

static inline void test_in_context(void **state)
{
    mpl_ctx ctx = mpl_ctx_default();

    test_ctx = &ctx;
    (*(mpl_test *const *)*state)(&ctx);
    assert_int_equal(ctx.n_live, 0);
}

/* names: those of test[], separated by ", ". Returns the number of failures. */
static inline int mpl_run_tests(const char *names, size_t n, mpl_test *const *test,
                                int (*begin)(void), int (*end)(void))
{
    struct CMUnitTest *tests = calloc(n + 1, sizeof *tests);
    char *copy = strdup(names), *rest = copy;
    int failed;

    if (begin != NULL && begin() != 0) {
        print_error("[  FAILED  ] what the tests need was not made\n");
        return 1;
    }
    for (size_t i = 0; i < n; i++) {
        tests[i].name = strsep(&rest, ",");
        tests[i].name += strspn(tests[i].name, " ");
        tests[i].test_func = test_in_context;
        tests[i].initial_state = (void *)&test[i];
    }
    cmocka_set_test_filter(getenv("MPL_ONLY"));
    failed = _cmocka_run_group_tests("tests", tests, n, NULL, NULL);
    free(tests);
    free(copy);
    return end != NULL && end() != 0 ? 1 : failed;
}
#define RUN_TESTS(begin, end, ...)                                                                 \
    mpl_run_tests(#__VA_ARGS__, sizeof(mpl_test *[]){__VA_ARGS__} / sizeof(mpl_test *),            \
                  (mpl_test *const[]){__VA_ARGS__}, begin, end)
#define TESTS_WITHIN(begin, end, ...)                                                              \
    int main(void)                                                                                 \
    {                                                                                              \
        return RUN_TESTS(begin, end, __VA_ARGS__);                                                 \
    }
#define TESTS(...) TESTS_WITHIN(NULL, NULL, __VA_ARGS__)

/* The place after the k-th at which something fails: each, from the 200th on with gaps of a
 * hundredth; in short from the 30th on every twelfth, with gaps of a twentieth. MPL_ALL=1: each. */
static inline int64_t next_place(int64_t k)
{
    if (getenv("MPL_ALL") != NULL)
        return k + 1;
    return in_short() && k >= 30 ? k + 12 + k / 20 : k + 1 + (k >= 200 ? k / 100 : 0);
}

/* EACH_ALLOCATION_FAILS (ctx, st) { .. } repeats the block with the k-th allocation failing, for k
 * = 0, next_place(0), .. until none fails. The block sets `st`, to MPL_EMEM or finally MPL_OK, and
 * frees what it made. */
#define EACH_ALLOCATION_FAILS(ctx, st)                                                             \
    for (mpl_status st = MPL_EMEM; st == MPL_EMEM;)                                                \
        for (int64_t k_ = 0, live_ = (ctx)->n_live; test_fails(ctx, k_, live_, &st);               \
             k_ = next_place(k_))

/* Ends a round and begins the k-th one, unless the last succeeded. */
static inline bool test_fails(mpl_ctx *ctx, int64_t k, int64_t live, mpl_status *st)
{
    ctx->fail_after = -1;
    assert_int_equal(ctx->n_live, live);
    if (*st != MPL_EMEM) {
        assert_status(ctx, *st, MPL_OK);
        return false;
    }
    ctx->fail_after = ctx->n_allocs + k;
    return true;
}

/* A table row that clang-format may fill to the line's end. */
#define ROW(...)                                                                                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* Skips the test, with a message, if a third-party file is missing. */
#define skip_without(path)                                                                         \
    do {                                                                                           \
        if (access(path, R_OK) != 0) {                                                             \
            print_message("skip: %s: no %s here\n", __func__, path);                               \
            skip();                                                                                \
        }                                                                                          \
    } while (0)
