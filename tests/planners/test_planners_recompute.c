/* The programs of recomputation against all staged runs of small graphs; rounding against the
 * integer program. Fault: an exceeded budget, needless repeats, a bound above the optimum,
 * miscounted work. */
#include "tests/support/random_training.h"
#include "tests/recompute/all_runs.h"

#include "graphs/orders/work.h"
#include "graphs/orders/pebble.h"
#include "planners/recompute/recompute_priv.h"

/* Runs a method; gives its graph and its claims. */
static mpl_status make(mpl_ctx *ctx, const char *method, const mpl_graph *g,
                       const mpl_problem_options *options, uint64_t budget, mpl_graph **made,
                       mpl_recompute_found *found)
{
    mpl_recompute_task task = {.ctx = ctx, .g = g, .options = options, .budget = budget};
    mpl_status st = mpl_recompute(mpl_recompute_find(method), &task, made);

    *found = task.found;
    return st;
}

/* The integer program, or the pebble game by the rule k - 1. */
static mpl_status choose(mpl_recompute_task *task, int k)
{
    return k == 0 ? mpl_recompute_exact(task, mpl_recompute_round)
                  : mpl_recompute_game(task, (mpl_game_rule)(k - 1));
}

static uint32_t n_tight; /* bounds that equal the optimum */
static uint32_t n_freer; /* less work under a freer rule */

static void check_bound(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                        const listed *l, uint64_t budget, uint64_t seed)
{
    mpl_recompute_task task = {.ctx = ctx, .g = g, .options = options, .budget = budget};
    uint64_t want = least_work(l, budget), bound;
    bool has_bound, fits;

    assert_ok(ctx, mpl_recompute_bound(&task, &fits));
    bound = task.found.bound_work;
    has_bound = task.found.has_bound;
    if (has_bound && (bound > want || (!fits && want != UINT64_MAX)))
        fail_msg("seed %" PRIu64 ", %" PRIu64 " bytes: no less work than %" PRIu64
                 " is proved, the least is %" PRIu64,
                 seed, budget, bound, want);
    n_tight += has_bound && want > 0 && (fits ? bound == want : want == UINT64_MAX);
}

/* The integer program and the pebble game find the same under the program's rule; under a freer
 * rule, no more work. */
static void check_rules(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                        uint64_t budget, uint64_t want, uint64_t before)
{
    uint64_t last = UINT64_MAX;

    for (int k = 0; k < 4; k++) {
        mpl_recompute_task task = {
            .ctx = ctx, .g = g, .options = options, .budget = budget, .found.before_bytes = before};
        mpl_rerun_facts facts;
        uint64_t peak;

        assert_ok(ctx, choose(&task, k));
        assert_ok(ctx, mpl_rerun_peak(ctx, g, task.n, task.run, options, &peak, &facts));
        assert_true(task.found.claim == MPL_RECOMPUTE_OPTIMAL && peak <= budget &&
                    facts.extra_work <= last);
        if (k < 2)
            assert_int_equal(facts.extra_work, want);
        n_freer += k > 1 && facts.extra_work < last;
        last = facts.extra_work;
        mpl_free(ctx, task.run);
    }
}

static void check_budget(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                         const listed *l, uint64_t budget, uint64_t seed)
{
    mpl_recompute_found found;
    owned_graph *made = NULL;
    uint64_t want = least_work(l, budget);
    mpl_status st;

    check_bound(ctx, g, options, l, budget, seed);
    if (options->in_place) /* there the program may count bytes that are not needed */
        return;
    st = make(ctx, "budget", g, options, budget, &made, &found);
    if (want == UINT64_MAX) {
        if (st != MPL_EINVALID)
            fail_msg("seed %" PRIu64 ", %" PRIu64 " bytes: '%s' where nothing fits", seed, budget,
                     mpl_status_name(st));
        return;
    }
    assert_ok(ctx, st);
    assert_int_equal(found.claim, MPL_RECOMPUTE_OPTIMAL);
    assert_true(found.peak_bytes <= budget);
    check_rules(ctx, g, options, budget, want, l->peak[0]);
    if (found.facts.extra_work != want || found.bound_work > want)
        fail_msg("seed %" PRIu64 ", %" PRIu64 " bytes: %" PRIu64 " more work (bound %" PRIu64
                 "), the least is %" PRIu64,
                 seed, budget, found.facts.extra_work, found.bound_work, want);
}

/* Two consecutive operations whose result is read last, after something wide: either both run
 * again, or none. */
static mpl_graph *detour(mpl_ctx *ctx)
{
    const mpl_shape shape = {1, {64}};
    const mpl_attr axis = MPL_INT(axis, 0);
    mpl_graph *g = NULL;
    mpl_value x, y, a, b, w, s, e;

    assert_ok(ctx, mpl_graph_new(ctx, "detour", &g));
    assert_ok(ctx, mpl_graph_add_value(ctx, g, "x", MPL_INPUT, MPL_TYPE_f32, &shape, &x));
    assert_ok(ctx, mpl_graph_add_value(ctx, g, "y", MPL_INPUT, MPL_TYPE_f32, &shape, &y));
    assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_relu, "a", 1, &x, 0, NULL, 1,
                                    (const char *[]){"a"}, &a));
    assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_tanh, "b", 1, &a, 0, NULL, 1,
                                    (const char *[]){"b"}, &b));
    assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_concat, "w", 4, (mpl_value[]){y, y, y, y}, 1,
                                    &axis, 1, (const char *[]){"w"}, &w));
    assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_reduce_sum, "s", 1, &w, 0, NULL, 1,
                                    (const char *[]){"s"}, &s));
    assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_add, "e", 2, (mpl_value[]){b, s}, 0, NULL, 1,
                                    (const char *[]){"e"}, &e));
    assert_ok(ctx, mpl_graph_add_output(ctx, g, e));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

TEST(programs_find_the_least_work)
{
    static listed l;
    uint32_t n_checked = 0;

    if (mpl_recompute_find("budget")->choose == NULL) {
        print_message("skip: %s: GLPK is not in this build\n", __func__);
        skip();
    }
    /* 0 .. 60, then again with in-place results */
    for (uint64_t seed = 0; seed <= 120; seed += 121 / draws(121)) {
        mpl_problem_options options = mpl_problem_options_default();
        mpl_graph *g;
        bool plain = true;
        uint64_t before;

        options.in_place = seed > 60;
        options.concat = MPL_CONCAT_COPY;
        options.align = 4; /* no rounding of slots */
        g = seed == 0 ? detour(ctx) : random_graph(ctx, seed > 60 ? seed - 60 : seed, 5, 3);
        for (mpl_op op = 0; op < g->n_ops; op++) /* the program does not model a view with a mask */
            plain = plain && g->op_kind[op] != MPL_OP_dropout;
        if (plain) {
            list_runs(ctx, g, &options, &l);
            before = l.peak[0];
            for (uint32_t i = 0; i < l.n; i++) /* each peak below the first, and one byte less */
                if (l.peak[i] < before) {
                    before = l.peak[i];
                    check_budget(ctx, g, &options, &l, before, seed);
                    check_budget(ctx, g, &options, &l, before - 1, seed);
                    n_checked++;
                }
            check_budget(ctx, g, &options, &l, l.peak[0], seed);
        }
        mpl_graph_free(ctx, g);
    }
    print_message("%u budgets, %u times less work in another order\n", n_checked, n_freer);
    assert_true(often(n_checked >= 5 && n_tight >= n_checked / 2));
}

/* Small training graphs with updates: the program against the game, and each against the other's
 * bound. */
TEST(training_graphs_agree)
{
    uint32_t n_checked = 0, n_refused = 0;

    if (mpl_recompute_find("budget")->choose == NULL) {
        print_message("skip: %s: GLPK is not in this build\n", __func__);
        skip();
    }
    for (uint64_t seed = 0; seed < draws(40); seed++) {
        mpl_problem_options options = mpl_problem_options_default();
        owned_graph *g;
        uint64_t before;

        options.in_place = seed % 2 != 0;
        options.align = 4;
        g = random_training(ctx, seed, 2 + (uint32_t)(seed % 4));
        assert_ok(ctx, mpl_given_peak(ctx, g, &options, &before));
        for (uint32_t part = 9; part >= 5 && g->n_ops <= 18; part--) {
            mpl_recompute_found found[4];
            mpl_status st[4];

            for (int k = 0; k < 4; k++) {
                mpl_recompute_task task = {.ctx = ctx,
                                           .g = g,
                                           .options = &options,
                                           .budget = before * part / 10,
                                           .found.before_bytes = before};

                st[k] = choose(&task, k);
                found[k] = task.found;
                if (st[k] == MPL_OK)
                    assert_ok(ctx, mpl_rerun_peak(ctx, g, task.n, task.run, &options,
                                                  &found[k].peak_bytes, &found[k].facts));
                mpl_free(ctx, task.run);
            }
            n_checked += st[0] == MPL_OK;
            n_refused += st[0] == MPL_EINVALID;
            if (st[0] != st[1] ||
                (st[0] == MPL_OK && found[0].facts.extra_work != found[1].facts.extra_work))
                fail_msg("seed %" PRIu64 " at %u0 %%: the program does %" PRIu64
                         " (%s), the game %" PRIu64 " (%s)",
                         seed, part, found[0].facts.extra_work, mpl_status_name(st[0]),
                         found[1].facts.extra_work, mpl_status_name(st[1]));
            for (int k = 2; k < 4; k++) {
                assert_true(st[k] == MPL_OK || st[k - 1] != MPL_OK);
                if (st[k - 1] == MPL_OK)
                    assert_true(found[k].facts.extra_work <= found[k - 1].facts.extra_work);
            }
        }
    }
    print_message("%u budgets kept, %u refused\n", n_checked, n_refused);
    assert_true(n_checked >= draws(10) && n_refused >= draws(10));
}

/* A vertex is a sum of five operands: its predecessors or the input, repeated if there are fewer.
 * All take the same work, and a result may overwrite any operand. As in the game, only vertices
 * without successors are unread. */
static mpl_graph *game_graph(mpl_ctx *ctx, const mpl_dag *dag)
{
    const mpl_shape shape = {1, {16}};
    mpl_graph *g = NULL;
    mpl_value input, value[MPL_PEBBLE_MOST], out;
    char name[16];

    assert_ok(ctx, mpl_graph_new(ctx, "game", &g));
    assert_ok(ctx, mpl_graph_add_value(ctx, g, "x", MPL_INPUT, MPL_TYPE_f32, &shape, &input));
    for (uint32_t v = 0; v < dag->n; v++) {
        mpl_value in[5] = {input, input, input, input, input};
        uint32_t n = 0;

        for (uint32_t u = 0; u < v; u++)
            if (dag->before[v] >> u & 1)
                in[n++] = value[u];
        for (uint32_t i = n; i < 5 && n > 0; i++)
            in[i] = in[0];
        snprintf(name, sizeof name, "v%u", v);
        assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_sum, name, 5, in, 0, NULL, 1,
                                        (const char *[]){name}, &value[v]));
    }
    assert_ok(ctx, mpl_graph_add_op(ctx, g, MPL_OP_relu, "y", 1, &input, 0, NULL, 1,
                                    (const char *[]){"y"}, &out));
    assert_ok(ctx, mpl_graph_add_output(ctx, g, out));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

/* All connected graphs of up to 5 vertices, and the example of section 3 of Owl's paper: as real
 * graphs they give the game's result. */
TEST(games_are_real)
{
    static const mpl_dag example = {6, {0, 1, 2, 2, 12, 18}};
    uint32_t n_points = 0;

    for (uint32_t n = 2; n <= 6; n++) {
        mpl_dag dag = example;

        for (int64_t code = -1; n < 6 ? mpl_dag_next(n, &code, &dag) : code++ < 0;) {
            if (n == 5 && left_out((uint64_t)code))
                continue;
            for (int sliding = 0; sliding < 2; sliding++) {
                mpl_problem_options options = mpl_problem_options_default();
                mpl_pebble_point point[MPL_PEBBLE_MOST];
                owned_graph *g;
                uint32_t n_frontier;

                options.in_place = sliding != 0;
                g = game_graph(ctx, &dag);
                assert_ok(ctx, mpl_pebble_frontier(ctx, &dag, sliding != 0, point, &n_frontier));
                for (uint32_t i = 0; i < n_frontier; i++, n_points++) {
                    const uint64_t unit = 64;
                    mpl_recompute_found found = {0};
                    owned_graph *made = NULL;

                    assert_ok(ctx,
                              make(ctx, "pebble", g, &options,
                                   i == 0 ? MPL_LEAST_PEAK : point[i].space * unit, &made, &found));
                    if (found.peak_bytes > point[i].space * unit ||
                        made->n_ops != point[i].time + 1)
                        fail_msg("%u vertices: %" PRIu64
                                 " bytes and %u runs, where %u pebbles need %u",
                                 dag.n, found.peak_bytes, made->n_ops - 1, point[i].space,
                                 point[i].time);
                    assert_int_equal(found.claim, MPL_RECOMPUTE_OPTIMAL);
                }
            }
        }
    }
    assert_true(n_points >= (in_short() ? 20 : 60));
}

/* Networks: rounding never takes more work than segments, nor less than its bound, which also holds
 * for segments. */
TEST(rounding_is_the_better)
{
    static const char *const spec[] =
        ROW("mlp:batch=32,layers=6,input=64,hidden=64,classes=8,mode=train",
            "resnet18:batch=1,image=32,mode=train",
            "randwire:regime=cell,batch=1,image=32,channels=8,nodes=8,mode=train",
            "vgg16:batch=1,image=32,mode=train");
    uint32_t n_better = 0, n_bounds = 0;

    if (mpl_recompute_find("round")->choose == NULL) {
        print_message("skip: %s: GLPK is not in this build\n", __func__);
        skip();
    }
    for (size_t i = 0; i < sizeof spec / sizeof *spec; i++)
        for (uint32_t part = 9; part >= 5; part--) {
            mpl_problem_options options = mpl_problem_options_default();
            mpl_recompute_found found[2];
            uint64_t before, budget;
            mpl_graph *g = NULL, *made;
            mpl_status st[2];

            if (left_out(i + part))
                continue;
            assert_ok(ctx, mpl_zoo_build(ctx, spec[i], &g));
            assert_ok(ctx, mpl_given_peak(ctx, g, &options, &before));
            budget = before / 10 * part;
            for (int m = 0; m < 2; m++) {
                made = NULL;
                st[m] = make(ctx, m == 0 ? "sqrt" : "round", g, &options, budget, &made, &found[m]);
                mpl_graph_free(ctx, made);
                assert_true(st[m] == MPL_OK || st[m] == MPL_ELIMIT || st[m] == MPL_EINVALID);
                if (st[m] == MPL_OK)
                    assert_true(found[m].peak_bytes <= budget);
            }
            if (st[0] == MPL_OK) {
                assert_ok(ctx, st[1]);
                if (found[1].facts.extra_work > found[0].facts.extra_work)
                    fail_msg("%s at %u0 %%: rounding does more than segments", spec[i], part);
                n_better += found[1].facts.extra_work < found[0].facts.extra_work;
            }
            if (st[1] == MPL_OK && found[1].has_bound) {
                assert_true(found[1].bound_work <= found[1].facts.extra_work);
                n_bounds += found[1].bound_work > 0;
            }
            mpl_graph_free(ctx, g);
        }
    print_message("less than segments %u times; %u bounds above 0\n", n_better, n_bounds);
    assert_true(often(n_better >= 3 && n_bounds >= 8));
}

/* Chains: rounding and segments are no better than the program, and its bound is not above their
 * results. */
TEST(methods_agree)
{
    static const double part[] = {0.95, 0.8, 0.6};

    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        mpl_problem_options options = mpl_problem_options_default();
        mpl_recompute_found found[3];
        uint64_t before, budget;
        owned_graph *g = NULL;
        mpl_graph *made;
        mpl_status st[3];

        assert_ok(
            ctx, mpl_zoo_build(ctx, "mlp:batch=8,layers=4,input=16,hidden=16,classes=16,mode=train",
                               &g));
        assert_ok(ctx, mpl_given_peak(ctx, g, &options, &before));
        budget = (uint64_t)((double)before * part[i]);
        for (int m = 0; m < 3; m++) {
            made = NULL;
            st[m] = make(ctx, (const char *const[]){"budget", "round", "sqrt"}[m], g, &options,
                         budget, &made, &found[m]);
            if (st[m] == MPL_OK && found[m].peak_bytes > budget)
                fail_msg("method %d: %" PRIu64 " bytes within %" PRIu64, m, found[m].peak_bytes,
                         budget);
            mpl_graph_free(ctx, made);
        }
        if (st[0] == MPL_OK) {
            mpl_recompute_task task = {.ctx = ctx,
                                       .g = g,
                                       .options = &options,
                                       .budget = budget,
                                       .found.before_bytes = before};
            mpl_rerun_facts facts;
            uint64_t peak;

            assert_ok(ctx, choose(&task, 0));
            assert_ok(ctx, mpl_rerun_peak(ctx, g, task.n, task.run, &options, &peak, &facts));
            assert_int_equal(task.found.claim, MPL_RECOMPUTE_OPTIMAL);
            assert_int_equal(found[0].claim, MPL_RECOMPUTE_OPTIMAL);
            assert_int_equal(facts.extra_work, found[0].facts.extra_work);
            mpl_free(ctx, task.run);
        }
        for (int m = 1; m < 3 && st[0] != MPL_EUNAVAIL; m++) {
            assert_true(st[0] == MPL_OK || st[m] != MPL_OK);
            if (st[m] == MPL_OK && found[0].claim == MPL_RECOMPUTE_OPTIMAL)
                assert_true(found[m].facts.extra_work >= found[0].facts.extra_work);
        }
        if (st[0] == MPL_OK && st[1] == MPL_OK && found[1].has_bound)
            assert_true(found[1].bound_work <= found[0].facts.extra_work);
    }
}

/* With any one rule disabled, the budget is kept, no work is below the least, and no bound is
 * higher. */
TEST(rules_left_out)
{
    static const char *const methods[] = {"budget", "round", "pebble"};
    static const char *const rules[] = {
#define RULE(name, about) #name,
#include "planners/recompute/recompute_rules.def"
#undef RULE
        "game+program", "nothing"};
    mpl_problem_options options = mpl_problem_options_default();
    uint64_t before, least = 0, n_found = 0;
    owned_graph *g = NULL;

    if (mpl_recompute_find("round")->choose == NULL) {
        print_message("skip: %s: GLPK is not in this build\n", __func__);
        skip();
    }
    assert_ok(ctx, mpl_zoo_build(
                       ctx, "mlp:batch=8,layers=5,input=16,hidden=16,classes=16,mode=train", &g));
    assert_ok(ctx, mpl_given_peak(ctx, g, &options, &before));
    for (int k = 0; k < 2; k++) { /* in this order, and in any order */
        mpl_recompute_found found;
        mpl_graph *made = NULL;

        assert_ok(ctx, make(ctx, k == 0 ? "budget" : "pebble", g, &options, before / 10 * 7, &made,
                            &found));
        assert_int_equal(found.claim, MPL_RECOMPUTE_OPTIMAL);
        assert_true(k == 0 || found.facts.extra_work == least);
        least = found.facts.extra_work;
        mpl_graph_free(ctx, made);
    }
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        for (size_t k = 0; k < sizeof methods / sizeof *methods; k++) {
            mpl_recompute_task task = {
                .ctx = ctx, .g = g, .options = &options, .budget = before / 10 * 7};
            owned_graph *made = NULL;
            mpl_status st = mpl_recompute_without(ctx, rules[i], &task.without);

            if (left_out(i + k))
                continue;
            assert_status(ctx, st, strcmp(rules[i], "nothing") == 0 ? MPL_EINPUT : MPL_OK);
            st = mpl_recompute(mpl_recompute_find(methods[k]), &task, &made);
            assert_true(st == MPL_OK || st == MPL_ELIMIT);
            n_found += st == MPL_OK;
            if (st == MPL_OK)
                assert_true(task.found.peak_bytes <= task.budget &&
                            task.found.facts.extra_work >= least);
            if (task.found.has_bound)
                assert_true(task.found.bound_work <= least);
        }
    assert_true(n_found >= (in_short() ? 4 : 30));
}

/* Regions against the whole graph, where the game takes both: never less work than the least, nor a
 * peak beyond the budget. Fault: bytes that cross a border and are not counted; a repeat that a
 * region is not charged for. */
TEST(regions_against_the_whole)
{
    static const char *const spec[] =
        ROW("mlp:batch=8,layers=3,input=16,hidden=16,classes=16,mode=train",
            "mlp:batch=64,layers=4,hidden=512,mode=train,update=sgd",
            "mlp:batch=64,layers=6,hidden=256,mode=train",
            "randwire:regime=cell,batch=1,image=32,channels=4,nodes=3,mode=train",
            "mnist_conv:image=8,batch=4,mode=train");
    uint32_t n_equal = 0, n_found = 0, n_claims = 0, n_cut = 0;

    for (size_t i = 0; i < sizeof spec / sizeof *spec; i++)
        for (uint32_t k = in_short() ? (uint32_t)i % 4 : 0; k < 8; k += in_short() ? 4 : 1) {
            mpl_problem_options options = mpl_problem_options_default();
            owned_graph *g = zoo_graph(ctx, spec[i]);
            mpl_recompute_task task[2];
            mpl_rerun_facts facts[2];
            uint64_t before, peak;
            mpl_game_rule rule = k % 2 == 0 ? MPL_GAME_STAGES : MPL_GAME_FREE;
            mpl_status st[2];

            options.in_place = k % 3 > 0;
            assert_ok(ctx, mpl_given_peak(ctx, g, &options, &before));
            for (int m = 0; m < 2; m++) {
                task[m] = (mpl_recompute_task){.ctx = ctx,
                                               .g = g,
                                               .options = &options,
                                               .budget = before * (95 - 5 * k) / 100,
                                               .found.before_bytes = before};
                st[m] = m == 0 ? mpl_recompute_game(&task[m], rule)
                               : mpl_recompute_regions(&task[m], rule);
                if (st[m] != MPL_OK)
                    continue;
                assert_ok(ctx, mpl_rerun_peak(ctx, g, task[m].n, task[m].run, &options, &peak,
                                              &facts[m]));
                assert_true(peak <= task[m].budget);
                mpl_free(ctx, task[m].run);
            }
            if (st[1] == MPL_OK) {
                n_found++;
                n_cut += task[1].found.n_regions > 1;
                n_claims += task[1].found.claim == MPL_RECOMPUTE_REGIONS;
                if (st[0] != MPL_OK && st[0] != MPL_ELIMIT)
                    fail_msg("%s, %u %%, %d: the whole graph says '%s'", spec[i], 95 - 5 * k, rule,
                             mpl_status_name(st[0]));
                assert_true(task[1].found.claim != MPL_RECOMPUTE_OPTIMAL);
                if (task[0].found.claim == MPL_RECOMPUTE_OPTIMAL &&
                    facts[1].extra_work < facts[0].extra_work)
                    fail_msg("%s, %u %%: regions do less work than the least", spec[i], 95 - 5 * k);
                n_equal += facts[1].extra_work == facts[0].extra_work;
            }
        }
    print_message("%u found by regions, %u of more than one, %u claims; %u equal the least\n",
                  n_found, n_cut, n_claims, n_equal);
    assert_true(n_found >= (in_short() ? 4 : 20));
    assert_true(often(n_cut >= 15 && n_equal >= 15 && n_claims >= 10));
}

/* Beyond 64 operations. */
TEST(large_graphs_by_regions)
{
    static const char *const method[] = {"budget", "pebble", "pebble"};
    static const char *const spec[] =
        ROW("resnet18:batch=8,image=32,mode=train", "mlp:batch=64,layers=16,hidden=512,mode=train");
    uint32_t n_better = 0, n_found = 0;

    if (mpl_recompute_find("budget")->choose == NULL) {
        print_message("skip: %s: GLPK is not in this build\n", __func__);
        skip();
    }
    for (size_t i = 0; i < sizeof spec / sizeof *spec; i++)
        for (int m = 0; m < 3; m++) {
            mpl_problem_options options = mpl_problem_options_default();
            mpl_recompute_found found, round;
            owned_graph *g = zoo_graph(ctx, spec[i]), *made = NULL, *rounded = NULL;
            mpl_recompute_task task = {.ctx = ctx, .g = g, .options = &options};
            uint64_t before;

            if (left_out(3 * i + (uint64_t)m))
                continue;
            assert_ok(ctx, mpl_given_peak(ctx, g, &options, &before));
            task.budget = m == 2 ? MPL_LEAST_PEAK : before / 10 * 8;
            assert_ok(ctx, mpl_recompute_without(ctx, "program", &task.without));
            assert_ok(ctx, mpl_recompute(mpl_recompute_find(method[m]), &task, &made));
            found = task.found;
            assert_true(found.peak_bytes <= task.budget && found.peak_bytes < before);
            n_found += found.n_regions > 1;
            if (m > 0)
                continue;
            assert_ok(ctx, make(ctx, "round", g, &options, task.budget, &rounded, &round));
            assert_true(found.facts.extra_work <= round.facts.extra_work &&
                        found.has_bound == round.has_bound &&
                        (!found.has_bound || found.bound_work <= found.facts.extra_work));
            n_better += found.facts.extra_work < round.facts.extra_work;
        }
    print_message("%u of regions, %u better than round\n", n_found, n_better);
    assert_true(often(n_found >= 3));
}

/* Possible questions: the game within a budget and for the least peak, methods, the bound, the
 * program (which `budget` asks if the game ends early). */
typedef enum what { GAME, LEAST, REGIONS, PEBBLE, BUDGET, ROUND, BOUND, EXACT, N_WHATS } what;

/* Returns the claimed work; frees the answer. */
static mpl_status ask(mpl_ctx *ctx, what w, const mpl_graph *g, uint64_t before, uint64_t *work)
{
    mpl_problem_options options = mpl_problem_options_default();
    mpl_recompute_task task = {.ctx = ctx,
                               .g = g,
                               .options = &options,
                               .budget = w == LEAST ? MPL_LEAST_PEAK : before / 10 * 9,
                               .found.before_bytes = before};
    owned_graph *made = NULL;
    mpl_status st;
    bool fits;

    if (w == GAME || w == LEAST)
        st = mpl_recompute_game(&task, MPL_GAME_FREE);
    else if (w == REGIONS)
        st = mpl_recompute_regions(&task, MPL_GAME_STAGES);
    else if (w == BOUND)
        st = mpl_recompute_bound(&task, &fits);
    else if (w == EXACT || w == ROUND)
        st = w == EXACT ? choose(&task, 0) : mpl_recompute_round(&task);
    else
        st = mpl_recompute(mpl_recompute_find(w == PEBBLE ? "pebble" : "budget"), &task, &made);
    *work = w == BOUND     ? task.found.bound_work
            : made != NULL ? task.found.facts.extra_work
                           : task.n;
    mpl_free(ctx, task.run);
    return st;
}

/* The k-th allocation fails, for the first 200 k and a hundred spread over the rest, in short for
 * 30 and at most 25: nothing leaks, and the next question is answered as usual. */
TEST(memory_may_run_out)
{
    static const char *const names[] = {"game",   "least peak", "regions", "pebble",
                                        "budget", "round",      "bound",   "program"};

    for (what w = GAME; w < N_WHATS; w++) {
        mpl_problem_options options = mpl_problem_options_default();
        uint64_t before, want = 0, work = 0;
        owned_graph *g = NULL;
        int64_t live, asked, k = 0;

        if (w >= BUDGET && mpl_recompute_find("budget")->choose == NULL) {
            print_message("skip: %s: GLPK is not in this build\n", __func__);
            break;
        }
        assert_ok(
            ctx, mpl_zoo_build(ctx, "mlp:batch=8,layers=2,input=16,hidden=16,classes=16,mode=train",
                               &g));
        assert_ok(ctx, mpl_given_peak(ctx, g, &options, &before));
        live = ctx->n_live;
        asked = -ctx->n_allocs;
        assert_ok(ctx, ask(ctx, w, g, before, &want));
        asked += ctx->n_allocs;
        for (; k < asked; k += in_short() && k >= 30 ? 12 + asked / 25
                               : k < 200             ? 1
                                                     : 1 + asked / 100) {
            mpl_status st;

            ctx->fail_after = ctx->n_allocs + k;
            st = ask(ctx, w, g, before, &work);
            ctx->fail_after = -1;
            if (ctx->n_live != live || st != MPL_EMEM)
                fail_msg("%s, allocation %" PRId64 " of %" PRId64 " fails: '%s', %" PRId64
                         " not freed",
                         names[w], k, asked, mpl_status_name(st), ctx->n_live - live);
        }
        assert_ok(ctx, ask(ctx, w, g, before, &work));
        print_message("%s: %" PRId64 " allocations\n", names[w], asked);
        assert_true(asked > 4 && want > 0 && work == want);
    }
}

TESTS(programs_find_the_least_work, training_graphs_agree, games_are_real, rounding_is_the_better,
      methods_agree, rules_left_out, regions_against_the_whole, large_graphs_by_regions,
      memory_may_run_out)
