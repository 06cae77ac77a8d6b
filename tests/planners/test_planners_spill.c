/* The planner that spreads pool 0 over memories: on small problems its cost equals brute force over
 * all assignments, each memory decided by a naive search or by the exact planner; wrong plans are
 * refused; longer lists stay within bound and capacity; files; deterministic, and clean if any
 * allocation fails. */
#include "graphs/io/lists/lists.h"
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/random_problem.h"
#include "tests/support/small_problem.h"

#include "planners/spill/spill_priv.h"
#include "planners/verify/verify.h"

enum { MEMORIES = 3 };

typedef struct memories {
    uint32_t n;
    uint64_t capacity[MEMORIES], price[MEMORIES];
    char capacities[100], cost[100];
} memories;

static void set_text(memories *m)
{
    int a = 0, b = 0;

    for (uint32_t k = 0; k < m->n; k++) {
        const char *cut = k > 0 ? "/" : "";

        if (m->capacity[k] == MPL_NO_CAPACITY)
            a += snprintf(m->capacities + a, sizeof m->capacities - (size_t)a, "%s-", cut);
        else
            a += snprintf(m->capacities + a, sizeof m->capacities - (size_t)a, "%s%" PRIu64, cut,
                          m->capacity[k]);
        b += snprintf(m->cost + b, sizeof m->cost - (size_t)b, "%s%" PRIu64, cut, m->price[k]);
    }
}

static mpl_status spill(mpl_ctx *ctx, const mpl_problem *p, const memories *m, uint64_t seed,
                        uint64_t ticks, mpl_plan **plan)
{
    const char *const keys[] = {"capacities", "cost"}, *const values[] = {m->capacities, m->cost};
    mpl_run run = mpl_run_default(ctx);

    run.seed = seed;
    run.budget_ticks = ticks;
    run.n_params = 2;
    run.param_key = keys;
    run.param_value = values;
    *plan = NULL;
    return mpl_planner_run(mpl_planner_find("spill"), &run, p, plan);
}

/* ---- brute force ---- */

/* Whether the buffers of `set` fit into `capacity`: serial without pairs by a naive search, else by
 * the exact planner. */
static bool set_fits(mpl_ctx *ctx, const mpl_problem *p, uint32_t set, uint64_t capacity)
{
    owned_problem *q = NULL;
    owned_plan *plan = NULL;
    uint32_t new_id[MOST], from[64], to[64], n = 0, n_arcs = 0, n_pairs = 0;
    mpl_before *before = NULL;
    small s = {0};
    bool fits;

    for (mpl_buffer b = 0; b < p->n; b++)
        if (set >> b & 1) {
            new_id[b] = n;
            s.birth[n] = p->birth[b], s.death[n] = p->death[b], s.size[n] = (uint32_t)p->bytes[b];
            s.align[n] = p->align[b], s.fixed[n++] = -1;
        }
    s.n = n;
    if (capacity == MPL_NO_CAPACITY || n == 0)
        return true;
    if (p->before == NULL && p->n_in_place == 0)
        return brute_fits(&s, (uint32_t)capacity);
    assert_ok(ctx, mpl_problem_new(ctx, "set", n, &q));
    q->n_steps = p->n_steps;
    q->pool_capacity[0] = capacity;
    assert_ok(ctx, mpl_new(ctx, q->in_place_in, p->n_in_place));
    assert_ok(ctx, mpl_new(ctx, q->in_place_out, p->n_in_place));
    assert_ok(ctx, mpl_new(ctx, q->in_place_step, p->n_in_place));
    for (uint32_t i = 0; i < n; i++)
        q->bytes[i] = s.size[i], q->align[i] = s.align[i], q->birth[i] = s.birth[i],
        q->death[i] = s.death[i];
    for (uint32_t i = 0; i < p->n_in_place; i++)
        if ((set >> p->in_place_in[i] & 1) && (set >> p->in_place_out[i] & 1)) {
            q->in_place_in[n_pairs] = new_id[p->in_place_in[i]];
            q->in_place_out[n_pairs] = new_id[p->in_place_out[i]];
            q->in_place_step[n_pairs++] = p->in_place_step[i];
        }
    q->n_in_place = n_pairs;
    for (mpl_buffer a = 0; p->before != NULL && a < p->n; a++)
        for (mpl_buffer b = 0; b < p->n; b++)
            if ((set >> a & 1) && (set >> b & 1) && mpl_is_before(p->before, a, b))
                from[n_arcs] = new_id[a], to[n_arcs++] = new_id[b];
    if (p->before != NULL)
        assert_ok(ctx, mpl_before_from_arcs(ctx, n, n_arcs, from, to, &before));
    q->before = before;
    plan = planned_by(ctx, "exact", q);
    fits = plan->claim != MPL_INFEASIBLE;
    return fits;
}

/* The least cost over all assignments; UINT64_MAX: none is possible. */
static uint64_t brute_cost(mpl_ctx *ctx, const mpl_problem *p, const memories *m)
{
    int8_t known[MEMORIES][1 << 7]; /* -1: not yet */
    uint64_t best = UINT64_MAX;
    uint32_t n_ways = 1;

    memset(known, -1, sizeof known);
    for (mpl_buffer b = 0; b < p->n; b++)
        n_ways *= m->n;
    for (uint32_t way = 0; way < n_ways; way++) {
        uint32_t set[MEMORIES] = {0}, rest = way;
        uint64_t cost = 0;

        for (mpl_buffer b = 0; b < p->n; b++, rest /= m->n) {
            set[rest % m->n] |= 1u << b;
            cost += p->bytes[b] * m->price[rest % m->n];
        }
        for (uint32_t k = 0; k < m->n && cost < best; k++) {
            if (known[k][set[k]] < 0)
                known[k][set[k]] = set_fits(ctx, p, set[k], m->capacity[k]);
            cost = known[k][set[k]] ? cost : UINT64_MAX;
        }
        best = cost < best ? cost : best;
    }
    return best;
}

static memories random_memories(mpl_rng *rng, const mpl_problem *p)
{
    memories m = {.n = 2 + below(rng, 2)};
    uint64_t sum = 0, price = below(rng, 2);

    for (mpl_buffer b = 0; b < p->n; b++)
        sum += p->bytes[b];
    for (uint32_t k = 0; k < m.n; k++) {
        m.capacity[k] = 1 + below(rng, (uint32_t)(sum / (k == 0 ? 3 : 2)) + 1);
        m.price[k] = price;
        price += below(rng, 5);
    }
    if (below(rng, 4) > 0)
        m.capacity[m.n - 1] = MPL_NO_CAPACITY;
    if (below(rng, 8) == 0)
        m.capacity[1] = m.capacity[0], m.price[1] = m.price[0]; /* equal memories */
    set_text(&m);
    return m;
}

static mpl_problem *next_problem(mpl_ctx *ctx, mpl_rng *rng, uint32_t i)
{
    static const unsigned what[] = ROW(0, 0, RANDOM_ALIGNED, RANDOM_PAIRS, RANDOM_PARALLEL,
                                       RANDOM_PARALLEL | RANDOM_PAIRS | RANDOM_ALIGNED);
    mpl_problem *p;

    if (i % 8 >= 6) { /* those whose live bytes would fit, but that have no packing */
        small s = roots[i % 2];

        for (uint32_t k = below(rng, 5); k > 0 || s.n > 7; k -= k > 0)
            s = mutated(rng, &s);
        return problem_of(ctx, &s);
    }
    p = random_problem(ctx, rng, 1 + below(rng, 7), what[i % 8]);
    for (mpl_buffer b = 1; b < p->n && i % 3 == 0; b++) /* identical buffers */
        if (below(rng, 2) == 0 && p->n_in_place == 0) {
            p->bytes[b] = p->bytes[b - 1], p->align[b] = p->align[b - 1];
            p->birth[b] = p->birth[b - 1], p->death[b] = p->death[b - 1];
        }
    return p;
}

TEST(costs_are_those_of_brute_force)
{
    mpl_rng rng = mpl_rng_of(4);
    uint32_t n_spilled = 0, n_infeasible = 0;

    for (uint32_t i = 0; i < draws(3000); i++) {
        owned_problem *p = next_problem(ctx, &rng, i);
        memories m = random_memories(&rng, p);
        uint64_t want = brute_cost(ctx, p, &m), least = 0;
        owned_plan *plan = NULL;

        assert_ok(ctx, spill(ctx, p, &m, 1, UINT64_MAX, &plan));
        for (mpl_buffer b = 0; b < p->n; b++)
            least += p->bytes[b] * m.price[0];
        if (want == UINT64_MAX) {
            assert_int_equal(plan->claim, MPL_INFEASIBLE);
        } else {
            if (plan->claim != MPL_OPTIMAL || plan->spread.cost != want)
                fail_msg("problem %u, %s, %s: %s, cost %" PRIu64 ", not %" PRIu64, i, m.capacities,
                         m.cost, mpl_claim_name(plan->claim), plan->spread.cost, want);
            assert_true(plan->spread.cost_bound == want);
        }
        n_infeasible += want == UINT64_MAX;
        n_spilled += want != UINT64_MAX && want > least;
    }
    assert_true(often(n_spilled > 1000 && n_infeasible > 100));
}

/* Puts the members one by one, by size, into memory k. */
static mpl_spill_verdict put_all(mpl_ctx *ctx, mpl_spill_part *part, uint32_t k)
{
    mpl_spill_verdict verdict = MPL_SPILL_FITS;

    mpl_spill_clear(part);
    for (uint32_t i = 0; i < part->n && verdict == MPL_SPILL_FITS; i++)
        assert_ok(ctx, mpl_spill_put(part, i, k, true, &verdict));
    return verdict;
}

/* What was refused in a small memory is refused in those that are no larger, and in no others. */
TEST(refusals_hold_within_their_room)
{
    mpl_run run = mpl_run_default(ctx);
    mpl_rng rng = mpl_rng_of(21);

    for (uint32_t round = 0; round < draws(400); round++) {
        small from = roots[round % 2];
        mpl_spill s = {.run = &run, .n = 3, .tick_limit = UINT64_MAX, .call_limit = 10000000};
        mpl_spill_part part = {0};
        mpl_buffer *own = NULL;
        owned_problem *p = NULL;
        uint32_t optimum;

        for (uint32_t k = below(&rng, 5); k > 0; k--)
            from = mutated(&rng, &from);
        optimum = brute_optimum(&from);
        if (optimum == load(&from))
            continue;
        s.p = p = problem_of(ctx, &from);
        s.capacity[0] = s.capacity[2] = optimum - 1;
        s.capacity[1] = optimum;
        assert_ok(ctx, mpl_new(ctx, own, p->n));
        count_up(p->n, own);
        assert_ok(ctx, mpl_spill_part_init(&s, own, p->n, &part));
        assert_int_equal(put_all(ctx, &part, 0), MPL_SPILL_NEVER);
        assert_int_equal(put_all(ctx, &part, 1), MPL_SPILL_FITS);
        assert_int_equal(put_all(ctx, &part, 2), MPL_SPILL_NEVER);
        mpl_spill_part_fini(&part);
    }
}

/* ---- what the verifier refuses ---- */

TEST(wrong_plans_are_refused)
{
    /* three buffers of 8, 8 and 4 bytes, all alive; memory 0: 12 bytes at price 1, memory 1: 8
     * bytes at price 3 */
    static const struct {
        const char *why; /* NULL: the plan is valid */
        uint64_t offset[3];
        uint32_t memory[3];
        uint64_t cost, cost_bound, bound;
        mpl_claim claim;
    } rows[] =
        ROW({NULL, {0, 0, 8}, {0, 1, 0}, 36, 36, 0, MPL_OPTIMAL},
            {NULL, {0, 0, 8}, {0, 1, 0}, 36, 30, 0, MPL_FEASIBLE},
            {NULL, {4, 0, 0}, {0, 1, 0}, 36, 0, 0, MPL_FEASIBLE},
            {"is in memory 2 of 2", {0, 0, 8}, {0, 2, 0}, 36, 36, 0, MPL_OPTIMAL},
            {"beyond the 12 bytes of memory 0", {5, 0, 0}, {0, 1, 0}, 36, 36, 0, MPL_OPTIMAL},
            {"beyond the 8 bytes of memory 1", {0, 4, 8}, {0, 1, 0}, 36, 36, 0, MPL_OPTIMAL},
            ROW("overlap at step 0: bytes [0, 8) and [4, 8) of memory 0", {0, 0, 4}, {0, 1, 0}, 36,
                36, 0, MPL_OPTIMAL),
            ROW("overlap at step 0: bytes [0, 8) and [0, 8) of memory 1", {0, 0, 0}, {1, 1, 0}, 52,
                52, 0, MPL_OPTIMAL),
            {"costs 36, and claims to cost 35", {0, 0, 8}, {0, 1, 0}, 35, 35, 0, MPL_OPTIMAL},
            {"costs 36 and claims to be optimal", {0, 0, 8}, {0, 1, 0}, 36, 35, 0, MPL_OPTIMAL},
            {"nobody to pay less than 37", {0, 0, 8}, {0, 1, 0}, 36, 37, 0, MPL_FEASIBLE},
            {"a bound on bytes", {0, 0, 8}, {0, 1, 0}, 36, 36, 20, MPL_OPTIMAL});
    owned_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "three", 3, &p));
    p->n_steps = 1;
    for (mpl_buffer b = 0; b < 3; b++)
        p->bytes[b] = b < 2 ? 8 : 4, p->death[b] = 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        owned_plan *plan = NULL;

        assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
        assert_ok(ctx, mpl_plan_spread(ctx, plan, 2));
        plan->spread.capacity[0] = 12, plan->spread.capacity[1] = 8;
        plan->spread.price[0] = 1, plan->spread.price[1] = 3;
        memcpy(plan->offset, rows[i].offset, sizeof rows[i].offset);
        memcpy(plan->spread.memory, rows[i].memory, sizeof rows[i].memory);
        plan->spread.cost = rows[i].cost, plan->spread.cost_bound = rows[i].cost_bound;
        plan->bound_bytes = rows[i].bound;
        plan->claim = rows[i].claim;
        assert_status(ctx, mpl_verify(ctx, p, plan), rows[i].why == NULL ? MPL_OK : MPL_EINVALID);
        if (rows[i].why != NULL && strstr(ctx->message, rows[i].why) == NULL)
            fail_msg("row %zu: '%s' has no '%s'", i, ctx->message, rows[i].why);
        if (rows[i].why == NULL)
            assert_true(plan->spread.bytes[0] == 12 && plan->spread.bytes[1] == 8 &&
                        plan->peak_bytes == 20);
    }
}

TEST(wrong_memories_are_refused)
{
    static const struct {
        const char *capacities, *cost, *why;
    } rows[] =
        ROW({"8/x", "1/2", "is no whole number"}, {"8/", "1/2", "is no whole number"},
            {"8/-1", "1/2", "is no whole number"},
            {"8/9223372036854775808", "1/2", "is no whole number"},
            {"8/-", "1", "2 capacities and 1 costs"},
            {"8/-", "2/1", "memory 1 is cheaper than memory 0"}, {"-/8", "1/2", "only the last"},
            {"8/-", "1/-", "is no whole number"}, {"8/-", "1/9223372036854775807", "passes 2^63"},
            {"1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1/1", "1", "more than 16"}, {"8/8", "1/2", NULL});
    owned_problem *p = NULL;
    mpl_plan *plan = NULL;
    mpl_run run;

    assert_ok(ctx, mpl_problem_synthetic(ctx, 20, 5, 1, &p));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        memories m = {0};

        snprintf(m.capacities, sizeof m.capacities, "%s", rows[i].capacities);
        snprintf(m.cost, sizeof m.cost, "%s", rows[i].cost);
        assert_status(ctx, spill(ctx, p, &m, 1, 100000, &plan),
                      rows[i].why != NULL ? MPL_EINPUT : MPL_OK);
        if (rows[i].why != NULL && strstr(ctx->message, rows[i].why) == NULL)
            fail_msg("row %zu: '%s' has no '%s'", i, ctx->message, rows[i].why);
        if (rows[i].why == NULL)
            assert_int_equal(plan->claim, MPL_INFEASIBLE);
        mpl_plan_free(ctx, plan);
    }
    run = mpl_run_default(ctx);
    assert_status(ctx, mpl_planner_run(mpl_planner_find("spill"), &run, p, &plan), MPL_EINPUT);
}

/* ---- longer lists ---- */

/* Compares the cost with a separate sum; checks the fields that the planner has to fill. */
static void check_plan(const mpl_problem *p, const mpl_plan *plan, const memories *m)
{
    uint64_t cost = 0;

    assert_int_equal(plan->spread.n, m->n);
    for (mpl_buffer b = 0; b < p->n; b++)
        cost += p->pool[b] == 0 ? p->bytes[b] * m->price[plan->spread.memory[b]] : 0;
    assert_true(cost == plan->spread.cost && plan->spread.cost_bound <= cost);
    assert_true((plan->claim == MPL_OPTIMAL) == (cost == plan->spread.cost_bound));
    for (uint32_t k = 0; k < m->n; k++)
        assert_true(plan->spread.bytes[k] <= m->capacity[k]);
}

TEST(longer_lists_are_valid_and_repeatable)
{
    for (uint32_t i = 0; i < 12; i++) {
        uint32_t n = 20 + 25 * i;
        owned_problem *p = NULL;
        mpl_plan *plan[2] = {NULL, NULL}, *less = NULL;
        memories m = {.n = 3, .price = {1, 4, 16}};
        uint64_t live;

        assert_ok(ctx, mpl_problem_synthetic(ctx, n, 4 + i, i, &p));
        assert_ok(ctx, mpl_peak_live(ctx, p, 0, &live, NULL, NULL));
        m.capacity[0] = live / 4, m.capacity[1] = live / 2, m.capacity[2] = MPL_NO_CAPACITY;
        set_text(&m);
        if (i % 3 == 2)
            assert_ok(ctx, mpl_problem_as_parallel(ctx, p));
        for (int k = 0; k < 2; k++)
            assert_ok(ctx, spill(ctx, p, &m, 3, 3000000, &plan[k]));
        assert_ok(ctx, spill(ctx, p, &m, 3, 1000, &less));
        check_plan(p, plan[0], &m);
        check_plan(p, less, &m);
        assert_true(less->spread.cost >= plan[0]->spread.cost);
        assert_true(less->spread.cost_bound <= plan[0]->spread.cost_bound);
        assert_memory_equal(plan[0]->offset, plan[1]->offset, n * sizeof *plan[0]->offset);
        assert_memory_equal(plan[0]->spread.memory, plan[1]->spread.memory,
                            n * sizeof *plan[0]->spread.memory);
        for (int k = 0; k < 2; k++)
            mpl_plan_free(ctx, plan[k]);
        mpl_plan_free(ctx, less);
    }
}

/* Written and read back; a manual change is refused by the reader or the verifier. */
TEST(files_keep_the_memories)
{
    static const struct {
        const char *from, *to;
        mpl_status read, verify;
    } rows[] = ROW({"", "", MPL_OK, MPL_OK}, {"\"cost\":", "\"cost\":1", MPL_OK, MPL_EINVALID},
                   {"\"memory\":0", "\"memory\":3", MPL_EINPUT, MPL_OK},
                   {"\"memory\":0", "\"memory\":-1", MPL_EINPUT, MPL_OK},
                   {"\"memory\":0,", "", MPL_EINPUT, MPL_OK},
                   {"\"price\":2", "\"price\":3", MPL_OK, MPL_EINVALID},
                   {"\"price\":2", "\"price\":\"2\"", MPL_EINPUT, MPL_OK},
                   {"\"memories\":[", "\"memories\":[{\"price\":2.5},", MPL_EINPUT, MPL_OK},
                   {"\"memories\":", "\"memories\":[],\"other\":", MPL_EINPUT, MPL_OK});
    memories m = {.n = 3, .capacity = {500000, 800000, MPL_NO_CAPACITY}, .price = {0, 2, 5}};
    char path[] = "spill_XXXXXX", text[200000], changed[200000];
    owned_problem *p = NULL;
    owned_plan *plan = NULL;
    FILE *f;
    size_t n;

    set_text(&m);
    close(mkstemp(path));
    assert_ok(ctx, mpl_problem_synthetic(ctx, 40, 8, 2, &p));
    assert_ok(ctx, spill(ctx, p, &m, 1, 1000000, &plan));
    assert_true(plan->spread.cost > 0);
    assert_ok(ctx, mpl_plan_write(ctx, path, p, plan, "{\"cost\":null,\"seed\":1}"));
    assert_non_null(f = fopen(path, "r"));
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *at = strstr(text, rows[i].from);
        mpl_plan_file file = {0};
        mpl_status st;

        assert_non_null(at);
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, rows[i].to,
                 at + strlen(rows[i].from));
        assert_non_null(f = fopen(path, "w"));
        fputs(changed, f);
        fclose(f);
        st = mpl_plan_read(ctx, path, &file);
        if (st != rows[i].read)
            fail_msg("row %zu: %s: %s", i, mpl_status_name(st), ctx->message);
        if (st == MPL_OK) {
            assert_int_equal(file.plan->spread.n, 3);
            assert_memory_equal(file.plan->spread.memory, plan->spread.memory,
                                p->n * sizeof *plan->spread.memory);
            assert_memory_equal(file.plan->spread.capacity, m.capacity, sizeof m.capacity);
            assert_string_equal(file.fields_json, "{\"seed\":1}");
            assert_status(ctx, mpl_verify(ctx, file.problem, file.plan), rows[i].verify);
        }
        mpl_plan_file_fini(ctx, &file);
    }
    unlink(path);
}

TEST(pools_and_limits)
{
    mpl_rng rng = mpl_rng_of(8);

    for (uint32_t i = 0; i < 200; i++) { /* other pools stay as they are */
        mpl_problem *p = random_problem(ctx, &rng, 1 + below(&rng, 12),
                                        RANDOM_POOLS | RANDOM_PAIRS | RANDOM_ALIGNED);
        memories open = {
            .n = 2, .capacity = {1 + below(&rng, 30), MPL_NO_CAPACITY}, .price = {0, 1}};
        mpl_plan *plan = NULL;

        set_text(&open);
        assert_ok(ctx, spill(ctx, p, &open, i, 1000000, &plan));
        check_plan(p, plan, &open);
        mpl_plan_free(ctx, plan);
        if (i == 0) {
            assert_ok(ctx, mpl_new(ctx, p->fixed, p->n));
            assert_status(ctx, spill(ctx, p, &open, i, 1000000, &plan), MPL_EUNAVAIL);
            mpl_free(ctx, p->fixed);
            p->fixed = NULL;
            p->pool_capacity[0] = 100;
            assert_status(ctx, spill(ctx, p, &open, i, 1000000, &plan), MPL_EINPUT);
        }
        mpl_problem_free(ctx, p);
    }
    for (int above = 0; above < 2; above++) { /* live bytes fit; only a search decides */
        mpl_problem *p = problem_of(ctx, &roots[0]);
        memories one = {
            .n = 1, .capacity = {brute_optimum(&roots[0]) - 1 + (uint32_t)above}, .price = {3}};
        mpl_plan *plan = NULL;

        set_text(&one);
        if (above == 0)
            assert_status(ctx, spill(ctx, p, &one, 1, 0, &plan), MPL_ELIMIT);
        assert_ok(ctx, spill(ctx, p, &one, 1, UINT64_MAX, &plan));
        assert_int_equal(plan->claim, above ? MPL_OPTIMAL : MPL_INFEASIBLE);
        mpl_plan_free(ctx, plan);
        mpl_problem_free(ctx, p);
    }
}

TEST(every_allocation_may_fail)
{
    mpl_rng rng = mpl_rng_of(12);

    for (uint32_t i = 0; i < 4; i++) {
        owned_problem *p = i == 0
                               ? problem_of(ctx, &roots[1])
                               : random_problem(ctx, &rng, 9,
                                                (i > 1 ? RANDOM_PAIRS | RANDOM_ALIGNED : 0) |
                                                    (i > 2 ? RANDOM_PARALLEL : 0) | RANDOM_POOLS);
        memories m = {
            .n = 3, .capacity = {i == 0 ? 9 : 20, 12, MPL_NO_CAPACITY}, .price = {0, 1, 3}};

        set_text(&m);
        EACH_ALLOCATION_FAILS (ctx, st) {
            owned_plan *plan = NULL;

            st = spill(ctx, p, &m, 1, 20000, &plan);
            ctx->fail_after = -1;
            assert_true((plan != NULL) == (st == MPL_OK));
        }
    }
}

TESTS(costs_are_those_of_brute_force, refusals_hold_within_their_room, wrong_plans_are_refused,
      wrong_memories_are_refused, longer_lists_are_valid_and_repeatable, files_keep_the_memories,
      pools_and_limits, every_allocation_may_fail)
