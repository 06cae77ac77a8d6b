/* Random graphs of nested loops and branches: planned by every planner, verified and executed.
 * Outputs must equal those of a direct interpreter that does not share or plan. Fault: any in
 * storage, planners, verifiers or execution. CONTROL_ORACLE=N: that many graphs (make
 * control-oracle), from seed CONTROL_SEED on. */
#include "tests/support/random_control.h"
#include "tests/runtime/bound_graph.h"

#include "planners/verify/verify.h"

enum { N_RUNS = 3, N_ORDERS = 4, N_WORKERS = 3, MOST_PORTS = 16, TICKS = 3000 };

typedef struct bench {
    mpl_ctx ctx;
    const mpl_backend *backend;
    mpl_device *dev;
    uint64_t seed;
    bool parallel;
    mpl_graph *g;
    mpl_op *order;
    mpl_problem *p;
    mpl_value_map *map;
    void *input[N_RUNS][MOST_PORTS], *want[N_RUNS][MOST_PORTS];
} bench;

static bench opened; /* its device is open as long as tests run */

static mpl_problem_options options_of(uint64_t seed)
{
    mpl_problem_options options = mpl_problem_options_default();

    options.loop_copy = seed % 11 == 0;
    options.views = seed % 7 != 0;
    options.in_place = seed % 5 != 0;
    options.pin_inputs = seed % 3 != 0;
    options.pin_outputs = seed % 4 != 0;
    options.pin_weights = seed % 6 != 0;
    return options;
}

static void bench_open(bench *b, uint64_t seed)
{
    mpl_problem_options options = options_of(seed);

    options.parallel = b->parallel;
    b->seed = seed;
    b->g = random_control(&b->ctx, seed);
    assert_true(b->g->n_inputs <= MOST_PORTS && b->g->n_outputs <= MOST_PORTS);
    b->order = order_by(&b->ctx, b->g, seed % 2 ? "given" : "dfs");
    assert_ok(&b->ctx, mpl_problem_from_graph(&b->ctx, b->g, b->order, &options, &b->p, &b->map));
    for (uint32_t r = 0; r < N_RUNS; r++) {
        for (uint32_t i = 0; i < b->g->n_inputs; i++) {
            b->input[r][i] = mpl_alloc(&b->ctx, b->g->value_bytes[b->g->input[i]], 1);
            random_control_input(b->g, i, seed * N_RUNS + r, b->input[r][i]);
        }
        for (uint32_t i = 0; i < b->g->n_outputs; i++)
            b->want[r][i] = mpl_alloc(&b->ctx, b->g->value_bytes[b->g->output[i]], 1);
        direct_run(&b->ctx, b->g, (const void *const *)b->input[r], b->want[r]);
    }
}

static void bench_close(bench *b)
{
    for (uint32_t r = 0; r < N_RUNS; r++) {
        for (uint32_t i = 0; i < b->g->n_inputs; i++)
            mpl_free(&b->ctx, b->input[r][i]);
        for (uint32_t i = 0; i < b->g->n_outputs; i++)
            mpl_free(&b->ctx, b->want[r][i]);
    }
    mpl_value_map_free(&b->ctx, b->map);
    mpl_problem_free(&b->ctx, b->p);
    mpl_free(&b->ctx, b->order);
    mpl_graph_free(&b->ctx, b->g);
}

/* Runs all inputs with n_workers (0: step by step); returns whether all outputs are right. The
 * error is in ctx.message. */
static bool outputs_right(bench *b, mpl_exec *exec, uint32_t n_workers)
{
    mpl_status st = MPL_OK;
    bool right = true;

    for (uint32_t r = 0; st == MPL_OK && right && r < N_RUNS; r++) {
        for (uint32_t i = 0; i < b->g->n_inputs; i++)
            assert_ok(&b->ctx, mpl_exec_set_input(exec, i, b->input[r][i]));
        st = n_workers > 0 ? run_by(exec, n_workers) : mpl_exec_run(exec, NULL);
        for (uint32_t i = 0; st == MPL_OK && right && i < b->g->n_outputs; i++) {
            uint64_t bytes = b->g->value_bytes[b->g->output[i]];
            char *got = mpl_alloc(&b->ctx, bytes + 1, 1);

            assert_ok(&b->ctx, mpl_exec_output(exec, i, got));
            right = memcmp(got, b->want[r][i], bytes) == 0;
            if (!right)
                snprintf(b->ctx.message, sizeof b->ctx.message, "run %u: output '%s' differs", r,
                         b->g->value_name[b->g->output[i]]);
            mpl_free(&b->ctx, got);
        }
    }
    return right && st == MPL_OK;
}

/* The same for a plan; NULL: nothing shared. */
static bool runs_right(bench *b, const mpl_plan *plan, bool checked)
{
    mpl_exec *exec = NULL;
    mpl_status st = mpl_exec_new(&b->ctx, b->backend, b->dev, b->g, b->order,
                                 plan != NULL ? b->p : NULL, plan != NULL ? b->map : NULL, plan,
                                 &(mpl_exec_options){.checked = checked}, &exec);
    bool right = st == MPL_OK && outputs_right(b, exec, 0);

    mpl_exec_free(&b->ctx, exec);
    return right;
}

/* In other random orders of the outermost operations, and with several workers. */
static bool runs_anyhow(bench *b, const mpl_plan *plan)
{
    mpl_exec *exec = NULL;
    mpl_op *order = mpl_alloc(&b->ctx, b->g->n_ops, sizeof *order);
    bool right = true;

    memcpy(order, b->order, b->g->n_ops * sizeof *order);
    assert_ok(&b->ctx, mpl_exec_new(&b->ctx, b->backend, b->dev, b->g, b->order, b->p, b->map, plan,
                                    &(mpl_exec_options){.checked = false}, &exec));
    for (uint64_t k = 0; right && k < N_ORDERS; k++) {
        assert_ok(&b->ctx, mpl_order_shuffle(&b->ctx, b->g, b->seed * N_ORDERS + k, order));
        assert_ok(&b->ctx, mpl_exec_set_order(exec, order));
        right = outputs_right(b, exec, 0);
    }
    right = right && outputs_right(b, exec, N_WORKERS);
    mpl_exec_free(&b->ctx, exec);
    mpl_free(&b->ctx, order);
    return right;
}

static mpl_plan *plan_by(bench *b, const mpl_planner *planner)
{
    mpl_plan *plan = NULL;
    mpl_run run = mpl_run_default(&b->ctx);
    mpl_status st;

    run.budget_ticks = TICKS;
    st = mpl_planner_run(planner, &run, b->p, &plan);
    if (st == MPL_EUNAVAIL)
        return NULL;
    if (st != MPL_OK)
        fail_msg("seed %" PRIu64 ", %s: %s", b->seed, planner->name, b->ctx.message);
    return plan;
}

/* One graph under every planner; returns the number of plans. */
static uint64_t check_graph(bench *b, uint64_t seed)
{
    uint64_t n_plans = 0;

    bench_open(b, seed);
    if (!runs_right(b, NULL, seed % 2 == 1))
        fail_msg("seed %" PRIu64 ", nothing shared: %s", seed, b->ctx.message);
    for (int i = 0; mpl_planners[i] != NULL; i++) {
        const mpl_planner *planner = mpl_planners[i];
        mpl_plan *plan = (planner->traits & MPL_SPREADS) == 0 ? plan_by(b, planner) : NULL;

        if (plan == NULL)
            continue;
        if (mpl_verify_places(&b->ctx, b->g, b->map, b->p, plan) != MPL_OK)
            fail_msg("seed %" PRIu64 ", %s: refused: %s", seed, planner->name, b->ctx.message);
        if (!runs_right(b, plan, seed % 2 == 1) || (b->parallel && !runs_anyhow(b, plan)))
            fail_msg("seed %" PRIu64 ", %s: %s", seed, planner->name, b->ctx.message);
        n_plans++;
        mpl_plan_free(&b->ctx, plan);
    }
    bench_close(b);
    return n_plans;
}

static void every_planner_of(bool parallel)
{
    bench b = opened;
    uint64_t first = number_asked("CONTROL_SEED", 1),
             n = number_asked("CONTROL_ORACLE", draws(100)), n_plans = 0;
    int64_t begin = mpl_clock_ns();

    b.parallel = parallel;
    for (uint64_t seed = first; seed < first + n; seed++) {
        n_plans += check_graph(&b, seed);
        if ((seed - first + 1) % 1000 == 0)
            print_message("%" PRIu64 " graphs\n", seed - first + 1);
    }
    print_message("%" PRIu64 " graphs, %" PRIu64 " plans, %.1f s\n", n, n_plans,
                  (double)(mpl_clock_ns() - begin) / 1e9);
    assert_int_equal(b.ctx.n_live, opened.ctx.n_live);
}

/* Each once revealed a fault. */
static const struct {
    uint64_t seed;
    const char *fault;
} once[] = {
    {221, "an output that a loop leaves in a slice of the loop around is taken for the whole"},
    {306, "parameters that lie in one cell are given addresses that what they write falls on"},
    {400, "an output of a loop inside is taken for a parameter of it"},
    {662, "first values settle in the cell of an instance that is made in the first round"},
    {687, "the same, where the first round reads one when the other is written"},
    {1218, "a value is held where another is needed"},
    {2342, "first values are copied onto what is needed if there is no round"},
    {2515, "--checked: a row made in place is also a row of a loop inside that nobody reads"},
    {4836, "no end: copies wait for a copy that waits itself, and the first that waits is staged "
           "over and over"},
    {6180, "one carried value begins where another's first value lies, which is overwritten before "
           "it is copied"},
    {8760, "one cell goes round with two carried values at once"},
    {16902, "a cell goes round that a carried value is copied to"},
};

TEST(once_failed)
{
    bench b = opened;

    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        check_graph(&b, once[i].seed);
    assert_int_equal(b.ctx.n_live, opened.ctx.n_live);
}

TEST(every_planner)
{
    every_planner_of(false);
}

TEST(every_planner_in_parallel)
{
    every_planner_of(true);
}

/* ---- planted faults ---- */

enum {
    CO_ALLOCATION,
    UNROLL_COUNT,
    FIRST_POINTER,
    BRANCH_SHARING,
    CAPTURE_LIFETIME,
    AT_ONCE,
    N_FAULTS
};

static const char *const fault_names[] = {"co-allocation",  "unroll count",     "type II pointer",
                                          "branch sharing", "capture lifetime", "at the same time"};

/* Overlaps a captured value, read in a loop, with one that the loop makes. */
static bool overlap_captured(bench *b, mpl_plan *plan, mpl_rng *rng)
{
    mpl_buffer from = MPL_NONE, to = MPL_NONE;
    uint32_t n = 0;

    for (mpl_op op = 0; op < b->g->n_ops; op++)
        for (uint32_t i = b->g->op_in_begin[op]; i < b->g->op_in_begin[op + 1]; i++) {
            mpl_value in = b->g->op_in[i], out = b->g->op_out_begin[op] < b->g->op_out_begin[op + 1]
                                                     ? b->g->op_out[b->g->op_out_begin[op]]
                                                     : MPL_NONE;
            mpl_buffer x = in != MPL_NONE ? b->map->value_buffer[in] : MPL_NONE;
            mpl_buffer y = out != MPL_NONE ? b->map->value_buffer[out] : MPL_NONE;

            if (x != MPL_NONE && y != MPL_NONE && x != y &&
                b->g->value_block[in] < b->g->op_block[op] && b->p->bytes[y] <= b->p->bytes[x] &&
                mpl_rng_below(rng, ++n) == 0)
                from = y, to = x;
        }
    if (from != MPL_NONE)
        plan->offset[from] = plan->offset[to];
    return from != MPL_NONE;
}

/* Overlaps two buffers that may be needed at once. */
static bool overlap_any(bench *b, mpl_plan *plan, mpl_rng *rng)
{
    mpl_buffer from = MPL_NONE, to = MPL_NONE;
    uint32_t n = 0;

    for (mpl_buffer x = 0; x < b->p->n; x++)
        for (mpl_buffer y = 0; y < b->p->n; y++)
            if (mpl_conflict(b->p, x, y) && b->p->bytes[y] <= b->p->bytes[x] &&
                mpl_rng_below(rng, ++n) == 0)
                from = y, to = x;
    if (from != MPL_NONE)
        plan->offset[from] = plan->offset[to];
    return from != MPL_NONE;
}

/* Plants a fault of this kind at a random place; false if the graph has none. */
static bool plant(bench *b, mpl_plan *plan, int fault, mpl_rng *rng)
{
    mpl_places *places = b->map->places;
    mpl_place *found = NULL;
    uint8_t *flag = NULL;
    uint32_t n = 0;

    if (fault == CAPTURE_LIFETIME)
        return overlap_captured(b, plan, rng);
    if (fault == AT_ONCE)
        return overlap_any(b, plan, rng);
    for (uint32_t i = 0; fault == CO_ALLOCATION && i < b->g->op_in_begin[b->g->n_ops]; i++)
        if (places->in_copied[i] && mpl_rng_below(rng, ++n) == 0)
            flag = &places->in_copied[i];
    for (uint32_t block = 1; fault == CO_ALLOCATION && block < b->g->n_blocks; block++)
        for (uint32_t i = 0; i < b->g->block_n_results[block]; i++)
            if (places->result_copied[b->g->block_result_begin[block] + i] &&
                mpl_rng_below(rng, ++n) == 0)
                flag = &places->result_copied[b->g->block_result_begin[block] + i];
    for (uint32_t i = 0; fault != CO_ALLOCATION && i < places->n; i++) {
        mpl_place *p = &places->place[i];
        bool fits = fault == UNROLL_COUNT    ? p->kind == MPL_PLACE_CYCLE && p->n - p->n_first > 1
                    : fault == FIRST_POINTER ? p->kind == MPL_PLACE_CYCLE && p->n_first > 0
                                             : p->kind == MPL_PLACE_BRANCH;

        if (fits && mpl_rng_below(rng, ++n) == 0)
            found = p;
    }
    if (flag != NULL)
        *flag = 0;
    if (found != NULL && fault == UNROLL_COUNT)
        found->n--;
    else if (found != NULL) {
        uint32_t *item = places->item + found->begin, last = item[found->n - 1];

        if (item[0] == last)
            return false;
        item[found->n - 1] = fault == FIRST_POINTER ? last : item[0];
        item[0] = last;
    }
    return flag != NULL || found != NULL;
}

/* What the verifier accepts must run right; also under --checked, which knows in-place writes only
 * from the problem's pairs, if the problem allows the offsets. Of each kind of fault many must be
 * caught. */
static void catch_faults_of(bool parallel)
{
    bench b = opened;
    uint64_t n = number_asked("CONTROL_FAULTS", 150);
    uint32_t planted[N_FAULTS] = {0}, caught[N_FAULTS] = {0}, missed = 0;
    mpl_rng rng;

    b.parallel = parallel;
    rng = mpl_rng_of(17);
    for (uint64_t seed = 1; seed <= n; seed++)
        for (int fault = 0; fault < N_FAULTS; fault++) {
            mpl_plan *plan;

            bench_open(&b, seed);
            plan = plan_by(&b, mpl_planner_find("greedy_size"));
            if (plant(&b, plan, fault, &rng)) {
                planted[fault]++;
                if (mpl_verify_places(&b.ctx, b.g, b.map, b.p, plan) == MPL_EINVALID)
                    caught[fault]++;
                else if ((!runs_right(&b, plan, false) || (parallel && !runs_anyhow(&b, plan)) ||
                          (mpl_verify(&b.ctx, b.p, plan) == MPL_OK &&
                           !runs_right(&b, plan, true))) &&
                         missed++ == 0)
                    print_message("missed: %s, seed %" PRIu64 ": %s\n", fault_names[fault], seed,
                                  b.ctx.message);
            }
            mpl_plan_free(&b.ctx, plan);
            bench_close(&b);
        }
    for (int fault = 0; fault < N_FAULTS; fault++) {
        print_message("%s: %u of %u faults refused\n", fault_names[fault], caught[fault],
                      planted[fault]);
        assert_true(caught[fault] > 0);
    }
    assert_int_equal(missed, 0);
    assert_int_equal(b.ctx.n_live, opened.ctx.n_live);
}

TEST(catch_faults)
{
    catch_faults_of(false);
}

TEST(catch_faults_in_parallel)
{
    catch_faults_of(true);
}

/* The verifier, with every allocation failing in turn. */
TEST(lose_memory)
{
    bench b = opened;

    for (uint64_t seed = 12; seed < 16; seed++) {
        mpl_plan *plan;

        b.parallel = seed % 2 == 1;
        bench_open(&b, seed);
        plan = plan_by(&b, mpl_planner_find("first_fit"));
        EACH_ALLOCATION_FAILS (&b.ctx, st) {
            st = mpl_verify_places(&b.ctx, b.g, b.map, b.p, plan);
        }
        mpl_plan_free(&b.ctx, plan);
        bench_close(&b);
    }
}

static int open_device(void)
{
    opened.ctx = mpl_ctx_default();
    opened.backend = mpl_backend_find("ref");
    assert_ok(&opened.ctx, opened.backend->open(&opened.ctx, &(mpl_device_options){.n_threads = 1},
                                                &opened.dev));
    return 0;
}

static int close_device(void)
{
    opened.backend->close(opened.dev);
    return 0;
}

TESTS_WITHIN(open_device, close_device, every_planner, every_planner_in_parallel, once_failed,
             catch_faults, catch_faults_in_parallel, lose_memory)
