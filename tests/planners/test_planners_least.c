/* The least memory of small graphs: brute force over every order, every choice of what concats and
 * splits share, and every placement.
 *
 * MPL_LEAST: number of graphs; MPL_LEAST_SEED: the first seed; MPL_LEAST_OPS: operations of each
 * graph (0: from 2 to 8); MPL_LEAST_MOST: orders times choices to try of one graph;
 * MPL_LEAST_PRINT: prints every graph. */
#include "tests/least/placements.h"
#include "tests/least/sharing_graph.h"
#include "tests/support/all_orders.h"

#include "graphs/orders/model/model.h"
#include "graphs/problem/bounds/bounds.h"
#include "graphs/problem/derive/concats.h"
#include "graphs/orders/orders.h"
#include "harness/job/asked.h"
#include "planners/search/least.h"

extern const mpl_planner mpl_planner_exact;

/* What is demanded of the search and of the relaxed model. 0: only what holds of any sound search;
 * nothing. */
enum { LEAST_IS_EXACT = 1, RELAXED_IS_BELOW = 1 };

enum { MOST_CHOICES = 512, MOST_SEEN = 1 << 15, MOST_NODES = 100000 };

/* One choice of sharing, with the model of its orders. */
typedef struct choice {
    uint8_t shared[SHARING_MOST_OPS], copied[SHARING_MOST_OPS];
    mpl_problem_options o;
    mpl_order_model *model; /* NULL: none */
    mpl_order_walk walk;
} choice;

typedef struct truth {
    mpl_problem_options o; /* as asked, nothing chosen */
    uint64_t most;         /* orders times choices to try */
    uint32_t n_choices;
    choice *choice; /* [MOST_CHOICES] */
    mpl_order_model *relaxed;
    mpl_order_walk walk;
    uint64_t *seen;        /* [MOST_SEEN] hashes of problems placed; 0: free */
    uint64_t least;        /* arena of the best placement [byte] */
    uint64_t copied_least; /* the same where concats copy [byte] */
    uint64_t n_problems, nodes;
    bool gave_up;      /* a placement is too much work */
    const char *fault; /* the first demand that did not hold; NULL: none */
} truth;

static void demand(truth *t, bool holds, const char *what)
{
    if (!holds && t->fault == NULL)
        t->fault = what;
}

/* ---- the checks of models, of one order ---- */

static uint64_t model_peak(mpl_order_walk *walk, const mpl_op *order)
{
    mpl_order_walk_reset(walk);
    return mpl_order_model_peak(walk, order);
}

/* The peak of an order in the model of a choice is the most live bytes of the problem. Inputs that
 * are planned may count for more in the problem: one that nothing reads lives in the first step,
 * and the first operation overwrites none. */
static void check_model(truth *t, choice *c, const mpl_op *order, uint64_t live)
{
    uint64_t peak = model_peak(&c->walk, order);

    demand(t, peak <= live, "the peak of a model is above the live bytes");
    demand(t, peak == live || !c->o.pin_inputs, "the peak of a model is below the live bytes");
}

/* In the model that leaves sharing open an order's peak is not above that of any choice. */
static void check_relaxed(truth *t, const mpl_op *order, uint64_t live)
{
    demand(t, model_peak(&t->walk, order) <= live,
           "the peak of the relaxed model is above the live bytes of a choice");
}

/* Live bytes as the oracle counts them, and as bounds.h does. */
static void check_live(mpl_ctx *ctx, truth *t, const mpl_problem *p, uint64_t live, uint64_t least)
{
    uint64_t peak;

    assert_ok(ctx, mpl_peak_live(ctx, p, 0, &peak, NULL, NULL));
    demand(t, least <= peak && peak <= live, "mpl_peak_live counts otherwise");
}

/* ---- brute force ---- */

/* Whether the problem is new. */
static bool is_new(truth *t, uint64_t hash)
{
    uint64_t at = hash % MOST_SEEN;

    hash = hash == 0 ? 1 : hash;
    while (t->seen[at] != 0 && t->seen[at] != hash)
        at = (at + 1) % MOST_SEEN;
    if (t->seen[at] == hash)
        return false;
    t->seen[at] = hash;
    assert_true(++t->n_problems < MOST_SEEN / 2);
    return true;
}

static bool copies_concats(const choice *c, uint32_t n_ops)
{
    return memchr(c->shared, 1, n_ops) == NULL;
}

static void place(truth *t, const mpl_problem *p, uint64_t *least)
{
    uint64_t bytes = placements_least(p, *least, MOST_NODES, &t->nodes);

    t->gave_up = t->gave_up || bytes == MPL_UNFIXED;
    *least = bytes;
}

static void judge_choice(all_orders *all, truth *t, choice *c)
{
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    bool copies = copies_concats(c, all->g->n_ops);

    assert_ok(all->ctx, mpl_problem_from_graph(all->ctx, all->g, all->order, &c->o, &p, &map));
    if (p->before == NULL) {
        uint64_t least, live = placements_live(p, &least);

        check_live(all->ctx, t, p, live, least);
        if (c->model != NULL)
            check_model(t, c, all->order, live);
        if (t->relaxed != NULL)
            check_relaxed(t, all->order, live);
    }
    if (!t->gave_up && is_new(t, mpl_problem_hash(p))) {
        place(t, p, &t->least);
        if (copies)
            place(t, p, &t->copied_least);
    }
    mpl_problem_free(all->ctx, p);
    mpl_value_map_free(all->ctx, map);
}

static void judge_order(all_orders *all)
{
    truth *t = all->arg;

    for (uint32_t i = 0; i < t->n_choices; i++)
        judge_choice(all, t, &t->choice[i]);
}

/* ---- choices ---- */

/* Writes the operations of bits of `set`, of those marked in `of`. */
static void take_bits(uint32_t n_ops, const uint8_t *of, uint32_t set, uint8_t *out)
{
    for (mpl_op op = 0, bit = 0; op < n_ops; op++)
        out[op] = of[op] && (set >> bit++ & 1) != 0;
}

static uint32_t count_ops(uint32_t n_ops, const uint8_t *of)
{
    uint32_t n = 0;

    for (mpl_op op = 0; op < n_ops; op++)
        n += of[op];
    return n;
}

/* Adds every choice of concats for those splits copied. */
static void add_choices(mpl_ctx *ctx, const mpl_graph *g, truth *t, const uint8_t *copied)
{
    mpl_problem_options o = t->o;
    mpl_concats *concats = NULL;
    mpl_op order[SHARING_MOST_OPS];
    uint32_t n, from = 0;

    count_up(g->n_ops, order);
    o.split_copied = copied;
    if (o.concat == MPL_CONCAT_AUTO)
        o.concat = MPL_CONCAT_SHARE;
    assert_ok(ctx, mpl_concats_new(ctx, g, order, &o, &concats));
    n = count_ops(g->n_ops, concats->shared);
    if (t->o.concat == MPL_CONCAT_SHARE)
        from = (UINT32_C(1) << n) - 1;
    for (uint32_t set = from; set < UINT32_C(1) << n; set++) {
        choice *c = &t->choice[t->n_choices++];

        assert_true(t->n_choices <= MOST_CHOICES);
        memcpy(c->copied, copied, g->n_ops);
        take_bits(g->n_ops, concats->shared, set, c->shared);
        c->o = t->o;
        c->o.concat_shared = c->shared;
        c->o.split_copied = c->copied;
        if (t->o.parallel)
            continue;
        assert_ok(ctx, mpl_order_model_new(ctx, g, &c->o, &c->model));
        assert_ok(ctx, mpl_order_walk_init(ctx, c->model, &c->walk));
    }
    mpl_concats_free(ctx, concats);
}

static void truth_init(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *o, truth *t)
{
    uint8_t splits[SHARING_MOST_OPS], copied[SHARING_MOST_OPS];

    *t = (truth){.o = *o, .least = UINT64_MAX, .copied_least = UINT64_MAX};
    t->choice = calloc(MOST_CHOICES, sizeof *t->choice);
    t->seen = calloc(MOST_SEEN, sizeof *t->seen);
    assert_true(t->choice != NULL && t->seen != NULL && g->n_ops <= SHARING_MOST_OPS);
    for (mpl_op op = 0; op < g->n_ops; op++)
        splits[op] = o->views && (g->op_kind[op] == MPL_OP_split || g->op_kind[op] == MPL_OP_slice);
    for (uint32_t set = 0; set < UINT32_C(1) << count_ops(g->n_ops, splits); set++) {
        take_bits(g->n_ops, splits, set, copied);
        add_choices(ctx, g, t, copied);
    }
    if (RELAXED_IS_BELOW && !o->parallel) {
        assert_ok(ctx, mpl_order_model_relaxed(ctx, g, o, &t->relaxed));
        assert_ok(ctx, mpl_order_walk_init(ctx, t->relaxed, &t->walk));
    }
}

static void truth_fini(mpl_ctx *ctx, truth *t)
{
    for (uint32_t i = 0; i < t->n_choices; i++)
        if (t->choice[i].model != NULL) {
            mpl_order_walk_fini(ctx, &t->choice[i].walk);
            mpl_order_model_free(ctx, t->choice[i].model);
        }
    if (t->relaxed != NULL) {
        mpl_order_walk_fini(ctx, &t->walk);
        mpl_order_model_free(ctx, t->relaxed);
    }
    free(t->choice);
    free(t->seen);
}

/* ---- the search against the truth ---- */

typedef struct tally {
    uint64_t n, skipped, faults;
    uint64_t equal, proved;           /* plans; bounds */
    uint64_t held;                    /* arenas proved by cuts alone */
    uint64_t sharable, shares, order; /* choices matter, sharing or another order pays */
    uint64_t problems, most_nodes, orders;
} tally;

/* No arena above the truth is proved; that of the truth is, where live bytes suffice to. */
static void check_arena_bound(mpl_ctx *ctx, const mpl_graph *g, truth *t, const mpl_op *order,
                              tally *sum)
{
    for (int above = 0; above < 2; above++) {
        mpl_order_run run = mpl_order_run_default(ctx);
        bool proved;

        run.options = &t->o;
        run.copy_splits = true;
        assert_ok(ctx, mpl_order_arena_holds(&run, g, order, t->least + (uint64_t)above, &proved));
        demand(t, !above || !proved, "an arena above the truth is proved");
        sum->held += !above && proved;
    }
}

/* The plan is one of the choices it names, passes the verifier, and is not below the truth; the
 * bound is not above it. */
static void check_least(mpl_ctx *ctx, const mpl_graph *g, truth *t, tally *sum)
{
    mpl_order_run run = mpl_order_run_default(ctx);
    mpl_least *least = NULL;
    mpl_problem_options o = t->o;
    mpl_problem *p = NULL;
    mpl_value_map *map = NULL;
    uint64_t bytes;

    run.options = &t->o;
    assert_ok(ctx, mpl_least_new(&run, g, NULL, NULL, &least));
    o.concat_shared = least->shared;
    o.split_copied = least->copied;
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, least->order, &o, &p, &map));
    demand(t, mpl_problem_hash(p) == mpl_problem_hash(least->problem),
           "the problem is not that of the choices named");
    demand(t, mpl_verify_all(ctx, g, map, p, least->plan) == MPL_OK, "the verifier refuses a plan");
    bytes = least->plan->pool_bytes[0];
    demand(t, bytes >= t->least, "a plan is below the truth");
    demand(t, least->bound_bytes <= t->least, "a bound is above the truth");
    demand(t, least->bound_bytes == 0 || least->method != NULL, "a bound names no method");
    demand(t, !least->stopped_by_clock && !least->stopped_by_caller, "a search was stopped");
    demand(t, !LEAST_IS_EXACT || bytes == t->least, "a plan is above the truth");
    demand(t, !LEAST_IS_EXACT || least->bound_bytes == t->least, "a bound is below the truth");
    if (t->fault != NULL)
        print_message("truth %" PRIu64 ", plan %" PRIu64 ", bound %" PRIu64 "\n", t->least, bytes,
                      least->bound_bytes);
    if (!t->o.parallel)
        check_arena_bound(ctx, g, t, least->order, sum);
    sum->equal += bytes == t->least;
    sum->proved += least->bound_bytes == t->least;
    mpl_problem_free(ctx, p);
    mpl_value_map_free(ctx, map);
    mpl_least_free(ctx, least);
}

/* Prints a graph and its options, nearly as memplan takes them. */
static void print_graph(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *o)
{
    static const char *const concat[] = {"auto", "share", "copy"};
    owned_memory char *text = NULL;
    size_t size = 0;

    assert_ok(ctx, mpl_text_write_memory(ctx, g, &text, &size));
    print_message("# --align %u --in-place %s --views %s --concat %s --safety %s --pin none%s%s%s%s"
                  "\n%s",
                  o->align, o->in_place ? "on" : "off", o->views ? "on" : "off", concat[o->concat],
                  o->parallel ? "parallel" : "serial", o->pin_inputs ? ",inputs" : "",
                  o->pin_weights ? ",weights" : "", o->pin_outputs ? ",outputs" : "",
                  o->boxes ? "" : " (runs only)", text);
}

/* Finds the truth of one graph; false if there are too many orders and choices. */
static bool find_truth(mpl_ctx *ctx, const mpl_graph *g, truth *t, uint64_t most, tally *sum)
{
    all_orders all = {.ctx = ctx, .g = g, .o = &t->o, .each = judge_order, .arg = t};

    all.most = most / t->n_choices + 1;
    visit_orders(&all);
    sum->orders += all.n;
    return all.n < all.most && !t->gave_up;
}

static void judge_seed(mpl_ctx *ctx, uint64_t seed, uint32_t n_ops, bool parallel, uint64_t most,
                       tally *sum)
{
    mpl_problem_options o;
    owned_graph *g = sharing_graph(ctx, seed, n_ops, &o);
    truth t;

    o.parallel = parallel;
    truth_init(ctx, g, &o, &t);
    if (find_truth(ctx, g, &t, most, sum)) {
        check_least(ctx, g, &t, sum);
        sum->n++;
        sum->sharable += t.n_choices > 1;
        sum->shares += t.least < t.copied_least;
    } else {
        sum->skipped++;
    }
    if (t.fault != NULL || getenv("MPL_LEAST_PRINT") != NULL) {
        print_message("seed %" PRIu64 ", %u operations: %s\n", seed, n_ops,
                      t.fault != NULL ? t.fault : "no fault");
        print_graph(ctx, g, &o);
        sum->faults += t.fault != NULL;
    }
    sum->problems += t.n_problems;
    sum->most_nodes = mpl_max_u64(sum->most_nodes, t.nodes);
    truth_fini(ctx, &t);
}

/* Judges graphs until `n` are found whose orders and choices can all be tried. */
static void judge_graphs(mpl_ctx *ctx, uint64_t n, bool parallel)
{
    static const uint32_t sizes[8] = {2, 3, 4, 5, 6, 7, 8, 8};
    uint64_t n_ops = number_asked("MPL_LEAST_OPS", 0), most = number_asked("MPL_LEAST_MOST", 3000);
    tally sum = {0};

    for (uint64_t seed = number_asked("MPL_LEAST_SEED", 0); sum.n < n && sum.faults < 20; seed++)
        judge_seed(ctx, seed, n_ops > 0 ? (uint32_t)n_ops : sizes[seed % 8], parallel, most, &sum);
    print_message("%" PRIu64 " graphs (%" PRIu64 " too large), %" PRIu64 " orders, %" PRIu64
                  " problems: %" PRIu64 " have choices, %" PRIu64 " gain by sharing; %" PRIu64
                  " plans and %" PRIu64 " bounds are the truth (at most %" PRIu64 " nodes)\n",
                  sum.n, sum.skipped, sum.orders, sum.problems, sum.sharable, sum.shares, sum.equal,
                  sum.proved, sum.most_nodes);
    assert_int_equal(sum.faults, 0);
    if (n >= 100)
        assert_true(sum.sharable * 4 > n && sum.shares * 50 > n && (parallel || sum.held * 2 > n));
}

TEST(least_over_all_choices)
{
    judge_graphs(ctx, number_asked("MPL_LEAST", 150), false);
}

TEST(least_of_parallel_plans)
{
    judge_graphs(ctx, number_asked("MPL_LEAST", 150), true);
}

typedef struct drawn {
    uint64_t seed;
    uint32_t n_ops;
} drawn;

static void judge_drawn(mpl_ctx *ctx, const drawn *graphs, uint32_t n)
{
    tally sum = {0};

    for (uint32_t i = 0; i < n; i++)
        judge_seed(ctx, graphs[i].seed, graphs[i].n_ops, false, 20000, &sum);
    assert_int_equal(sum.faults, 0);
    assert_int_equal(sum.equal, n);
}

/* Inputs that are planned and that nothing reads live in the first step: the truth is an order
 * whose first operation does nothing. */
TEST(first_operation_matters)
{
    static const drawn graphs[] = {{9795, 3}, {3254, 5}, {3848, 5}, {1442, 4}};

    judge_drawn(ctx, graphs, sizeof graphs / sizeof *graphs);
}

/* Where a split that copies lets a concat share, a result be pinned, or only a part be kept. */
TEST(splits_that_copy_matter)
{
    static const drawn graphs[] = {{621, 3},  {1499, 3}, {1541, 3}, {1801, 3},
                                   {1549, 7}, {829, 7},  {836, 6},  {1131, 5}};

    judge_drawn(ctx, graphs, sizeof graphs / sizeof *graphs);
}

/* The oracle of placements against the exact search, problem by problem. */
TEST(placements_of_one_problem)
{
    uint64_t n = number_asked("MPL_LEAST", 150), nodes = 0, families = 0, pairs = 0, above = 0;

    for (uint64_t seed = 0; seed < n; seed++) {
        mpl_problem_options o;
        owned_graph *g = sharing_graph(ctx, seed, 4 + (uint32_t)(seed % 5), &o);
        mpl_op order[SHARING_MOST_OPS];
        owned_problem *p = NULL;
        owned_map *map = NULL;
        owned_plan *plan = NULL;
        mpl_run run;
        uint64_t least, live = 0;

        o.parallel = seed % 3 == 0;
        o.concat = MPL_CONCAT_SHARE;
        assert_ok(ctx, mpl_order_random(ctx, g, seed, order));
        assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
        run = mpl_run_default(ctx);
        assert_ok(ctx, mpl_planner_run(&mpl_planner_exact, &run, p, &plan));
        assert_int_equal(plan->claim, MPL_OPTIMAL);
        least = placements_least(p, UINT64_MAX - 1, MOST_NODES, &nodes);
        if (least != MPL_UNFIXED)
            assert_int_equal(plan->pool_bytes[0], least);
        placements_live(p, &live);
        families += p->inside != NULL;
        pairs += p->n_in_place > 0;
        above += p->before == NULL && least > live;
    }
    print_message("%" PRIu64 " problems: %" PRIu64 " with families, %" PRIu64
                  " with pairs; %" PRIu64 " need more than their live bytes\n",
                  n, families, pairs, above);
    if (n >= 100)
        assert_true(families * 20 > n && pairs * 4 > n);
}

TESTS(least_over_all_choices, least_of_parallel_plans, first_operation_matters,
      splits_that_copy_matter, placements_of_one_problem)
