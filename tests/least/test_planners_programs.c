/* The least memory of small programs with loops and branches: brute force over every order of every
 * block and every placement.
 *
 * MPL_PROGRAMS: number of programs; MPL_PROGRAMS_SEED: the first seed; MPL_PROGRAMS_MOST: orders to
 * try of one; MPL_PROGRAMS_PRINT: prints those whose bound is below the truth. */
#include "tests/least/placements.h"
#include "tests/least/program_orders.h"
#include "tests/support/random_control.h"

#include "graphs/problem/bounds/bounds.h"
#include "planners/search/least.h"
#include "harness/job/asked.h"

enum { MOST_SEEN = 1 << 14, MOST_NODES = 100000 };

typedef struct truth {
    mpl_ctx *ctx;
    mpl_problem_options o;
    uint64_t seen[MOST_SEEN]; /* hashes of problems placed; 0: free */
    uint64_t live, arena;     /* the least of all orders [byte] */
    uint64_t nodes;
    bool gave_up;
} truth;

typedef struct tally {
    uint64_t n, skipped, orders, live, bounds, plans, proved, gains;
    uint64_t faults;
} tally;

static bool is_new(truth *t, uint64_t hash)
{
    size_t at = hash % MOST_SEEN, n = 0;

    while (t->seen[at] != 0 && t->seen[at] != hash && n++ < MOST_SEEN)
        at = (at + 1) % MOST_SEEN;
    if (t->seen[at] == hash)
        return false;
    t->seen[at] = hash;
    return true;
}

static void judge_order(program_orders *all, const mpl_op *order)
{
    truth *t = all->arg;
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    uint64_t least = 0, live = 0;

    if (t->gave_up)
        return;
    assert_ok(t->ctx, mpl_problem_from_graph(t->ctx, all->g, order, &t->o, &p, &map));
    if (is_new(t, mpl_problem_hash(p))) {
        if (p->n > PLACEMENTS_PARTS) {
            t->gave_up = true;
        } else {
            if (p->before == NULL)
                live = placements_live(p, &least);
            t->live = mpl_min_u64(t->live, live);
            least = placements_least(p, t->arena, MOST_NODES, &t->nodes);
            t->gave_up = t->gave_up || least == MPL_UNFIXED;
            t->arena = mpl_min_u64(t->arena, least);
        }
    }
    mpl_problem_free(t->ctx, p);
    mpl_value_map_free(t->ctx, map);
}

static mpl_problem_options options_of(mpl_rng *rng, bool parallel)
{
    mpl_problem_options o = mpl_problem_options_default();

    o.loop_copy = mpl_rng_below(rng, 8) == 0;
    o.views = mpl_rng_below(rng, 6) != 0;
    o.in_place = mpl_rng_below(rng, 4) != 0;
    o.pin_inputs = mpl_rng_below(rng, 2) != 0;
    o.pin_weights = mpl_rng_below(rng, 3) != 0;
    o.pin_outputs = mpl_rng_below(rng, 3) != 0;
    o.align = 1u << mpl_rng_below(rng, 4);
    o.parallel = parallel;
    return o;
}

static const char *check_live(const mpl_graph *g, truth *t, tally *sum)
{
    mpl_order_run run = mpl_order_run_default(t->ctx);
    mpl_op order[PROGRAM_MOST_OPS];

    run.options = &t->o;
    assert_ok(t->ctx, mpl_order_make(&run, mpl_order_find("least_peak"), g, order));
    sum->live += run.live_bytes == t->live;
    sum->bounds += run.bound_bytes == t->live;
    return run.bound_bytes > t->live  ? "a bound is above the least live bytes"
           : run.live_bytes < t->live ? "live bytes are below the least of all orders"
           : run.scope == NULL        ? "a bound names no scope"
                                      : NULL;
}

static const char *check_least(const mpl_graph *g, truth *t, tally *sum)
{
    mpl_order_run run = mpl_order_run_default(t->ctx);
    mpl_least *least = NULL;
    const char *fault = NULL;

    run.options = &t->o;
    run.budget_ticks = 300000;
    assert_ok(t->ctx, mpl_least_new(&run, g, NULL, NULL, &least));
    if (mpl_verify_all(t->ctx, g, least->map, least->problem, least->plan) != MPL_OK)
        fault = "the verifier refuses a plan";
    else if (least->bound_bytes > t->arena)
        fault = "a bound is above the truth";
    else if (least->plan->pool_bytes[0] < t->arena)
        fault = "a plan is below the truth";
    sum->plans += least->plan->pool_bytes[0] == t->arena;
    sum->proved += least->bound_bytes == t->arena;
    if (fault != NULL || (getenv("MPL_PROGRAMS_PRINT") != NULL && least->bound_bytes < t->arena))
        print_message("live %" PRIu64 ", arena %" PRIu64 ": plan %" PRIu64 ", bound %" PRIu64 "\n",
                      t->live, t->arena, least->plan->pool_bytes[0], least->bound_bytes);
    mpl_least_free(t->ctx, least);
    return fault;
}

static void print_program(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *o)
{
    owned_memory char *text = NULL;
    size_t size = 0;

    assert_ok(ctx, mpl_text_write_memory(ctx, g, &text, &size));
    print_message(
        "# --align %u --in-place %s --views %s --loop %s --safety %s --pin none%s%s%s\n%s",
        o->align, o->in_place ? "on" : "off", o->views ? "on" : "off",
        o->loop_copy ? "copy" : "view", o->parallel ? "parallel" : "serial",
        o->pin_inputs ? ",inputs" : "", o->pin_weights ? ",weights" : "",
        o->pin_outputs ? ",outputs" : "", text);
}

static void judge_seed(mpl_ctx *ctx, uint64_t seed, bool parallel, tally *sum)
{
    owned_graph *g = random_control_tiny(ctx, seed, 4 + (uint32_t)(seed % 9));
    truth *t = calloc(1, sizeof *t);
    program_orders all = {.g = g, .each = judge_order, .arg = t};
    const char *fault = NULL;
    uint64_t proved = sum->proved;
    mpl_rng rng = mpl_rng_of(seed);

    *t = (truth){.ctx = ctx, .live = UINT64_MAX, .arena = UINT64_MAX - 1};
    t->o = options_of(&rng, parallel);
    all.most = number_asked("MPL_PROGRAMS_MOST", 300);
    if (g->n_blocks > 1 && program_visit(&all) && !t->gave_up) {
        sum->n++;
        sum->orders += all.n;
        fault = parallel ? NULL : check_live(g, t, sum);
        if (fault == NULL)
            fault = check_least(g, t, sum);
        sum->faults += fault != NULL;
        if (fault != NULL || (getenv("MPL_PROGRAMS_PRINT") != NULL && proved == sum->proved)) {
            print_message("seed %" PRIu64 ": %s\n", seed, fault != NULL ? fault : "not proved");
            print_program(ctx, g, &t->o);
        }
    } else {
        sum->skipped++;
    }
    free(t);
}

static void judge_programs(mpl_ctx *ctx, uint64_t n, bool parallel)
{
    tally sum = {0};

    for (uint64_t seed = number_asked("MPL_PROGRAMS_SEED", 0); sum.n < n && sum.faults < 5; seed++)
        judge_seed(ctx, seed, parallel, &sum);
    print_message("%" PRIu64 " programs (%" PRIu64 " left out), %" PRIu64 " orders: %" PRIu64
                  " of the least live bytes, %" PRIu64 " of them proved; %" PRIu64
                  " of the least arena, %" PRIu64 " of them proved\n",
                  sum.n, sum.skipped, sum.orders, sum.live, sum.bounds, sum.plans, sum.proved);
    assert_int_equal(sum.faults, 0);
}

TEST(programs_in_one_order)
{
    judge_programs(ctx, number_asked("MPL_PROGRAMS", 60), false);
}

TEST(programs_in_every_execution)
{
    judge_programs(ctx, number_asked("MPL_PROGRAMS", 60), true);
}

/* Programs whose least live bytes are proved by one rule each: a pair is not offered over a carried
 * value, or over a cell that a round begins with (the first five); an initial value that neither
 * the body nor what follows reads is not counted, and others are. */
TEST(proofs_by_one_rule)
{
    static const uint64_t seeds[] = {270, 666, 946, 1302, 1351, 984, 1859, 1938, 2215, 2343};
    tally sum = {0};

    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        judge_seed(ctx, seeds[i], false, &sum);
    assert_int_equal(sum.faults, 0);
    assert_int_equal(sum.bounds, sizeof seeds / sizeof *seeds);
    assert_int_equal(sum.proved, sizeof seeds / sizeof *seeds);
}

/* Every lost allocation is said, and nothing stays allocated. */
TEST(lost_memory)
{
    for (uint64_t seed = 2; seed < 5; seed++) {
        owned_graph *g = random_control_tiny(ctx, seed, 8);
        mpl_op order[PROGRAM_MOST_OPS];
        mpl_status st = MPL_EMEM;

        assert_in_range(g->n_ops, 1, PROGRAM_MOST_OPS);
        for (int64_t k = 0; st == MPL_EMEM; k++) {
            mpl_order_run run = mpl_order_run_default(ctx);

            ctx->n_allocs = 0, ctx->fail_after = k;
            st = mpl_order_make(&run, mpl_order_find("least_peak"), g, order);
            ctx->fail_after = -1;
        }
        assert_ok(ctx, st);
    }
}

TESTS(programs_in_one_order, programs_in_every_execution, proofs_by_one_rule, lost_memory)
