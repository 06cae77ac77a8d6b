/* Families: buffers at fixed distances, each with its own live range. Problems, bounds, all
 * planners against brute force, the verifier, files. */
#include "graphs/io/lists/lists.h"
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/random_families.h"

#include "graphs/problem/fold_pairs.h"
#include "planners/exact/exact_general.h"
#include "planners/place/packing.h"
#include "planners/verify/verify.h"

extern const mpl_planner mpl_planner_greedy_size;

enum { ROUNDS = 300, MOST_BUFFERS = 8 };

/* The least height of pool 0: tries every place of every family. */

static uint64_t least_height(const mpl_problem *p, mpl_plan *plan, mpl_buffer first,
                             uint64_t height, uint64_t best)
{
    while (first < p->n && (p->inside[first] != first || p->pool[first] != 0))
        first++;
    if (first == p->n)
        return height;
    for (uint64_t at = 0; at < best; at += p->align[first]) {
        uint64_t top = height;
        bool fits = true;

        for (mpl_buffer b = 0; b < p->n; b++)
            if (p->inside[b] == first) {
                plan->offset[b] = at + p->inside_at[b];
                top = mpl_max_u64(top, plan->offset[b] + p->bytes[b]);
            }
        for (mpl_buffer b = 0; b < p->n && top < best; b++)
            for (mpl_buffer a = 0; fits && p->inside[b] == first && a < p->n; a++)
                fits = p->inside[a] >= first || !plain_conflict(p, plan, a, b);
        if (fits && top < best) {
            uint64_t got = least_height(p, plan, first + 1, top, best);

            best = got < best ? got : best;
        }
    }
    return best;
}

static uint64_t optimum(mpl_ctx *ctx, const mpl_problem *p)
{
    owned_plan *plan = NULL;
    uint64_t least, all = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        all += p->inside_at[b] + p->bytes[b] + p->align[b];
    assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
    least = least_height(p, plan, 0, 0, all);
    return least;
}

static mpl_plan *run_planner(mpl_ctx *ctx, const mpl_planner *planner, const mpl_problem *p)
{
    return plainly_planned(ctx, planner, p, 20000000);
}

/* Every planner, the complete ones against brute force; none claims a false optimum or bound. */
TEST(plan_all)
{
    static const unsigned kinds[] =
        ROW(0, RANDOM_ALIGNED, RANDOM_PAIRS, RANDOM_POOLS | RANDOM_PAIRS, RANDOM_GAPS,
            RANDOM_PAIRS | RANDOM_ALIGNED, RANDOM_PARALLEL);
    static const char *const searches[] = {"hill_climb", "local_search"};
    uint32_t n_parts = 0, n_above = 0, n_ilp = 0, n_found[2] = {0, 0};
    mpl_rng rng = mpl_rng_of(21);

    for (uint32_t round = 0; round < draws(ROUNDS); round++) {
        unsigned what = kinds[round % 7];
        owned_problem *p = random_families(ctx, &rng, 5 + round % 3, what), *hull = NULL;
        uint64_t least = optimum(ctx, p), bound;
        uint32_t into[MOST_BUFFERS];

        assert_ok(ctx, mpl_lower_bound(ctx, p, 0, &bound, NULL));
        assert_true(bound <= least);
        n_above += bound < least;
        assert_ok(ctx, mpl_problem_hull(ctx, p, &hull, into));
        assert_ok(ctx, mpl_problem_check(ctx, hull));
        for (int i = 0; mpl_planners[i] != NULL; i++) {
            const mpl_planner *planner = mpl_planners[i];
            owned_plan *plan = run_planner(ctx, planner, p);

            if (plan == NULL)
                continue;
            if (plan->peak_bytes < least || plan->bound_bytes > least ||
                (plan->claim == MPL_OPTIMAL && plan->peak_bytes > least))
                fail_msg("round %u: %s plans %" PRIu64 ", bound %" PRIu64
                         ", %s; the optimum is %" PRIu64,
                         round, planner->name, plan->peak_bytes, plan->bound_bytes,
                         mpl_claim_name(plan->claim), least);
            if (strcmp(planner->name, "exact") == 0)
                assert_int_equal(plan->claim, MPL_OPTIMAL);
            if (strcmp(planner->name, "ilp") == 0 && (what & RANDOM_GAPS) == 0) {
                assert_int_equal(plan->claim, MPL_OPTIMAL);
                n_ilp++;
            }
            for (int k = 0; k < 2; k++)
                n_found[k] += strcmp(planner->name, searches[k]) == 0 && plan->peak_bytes == least;
        }
        for (mpl_buffer b = 0; b < p->n; b++)
            n_parts += p->inside[b] != b;
    }
    print_message(
        "%u optima above the bound in %d, %u by the integer program, %u by hill_climb, %u by "
        "local_search\n",
        n_above, draws(ROUNDS), n_ilp, n_found[0], n_found[1]);
    assert_true(often(n_above > draws(60) / 6 && n_parts > draws(ROUNDS) &&
                      n_found[0] > draws(260) - 1 && n_found[1] > draws(288)));
}

/* The complete search alone: from a plan without sharing, and from none but within a capacity. */
TEST(search_from_afar)
{
    static const unsigned kinds[] = {0, RANDOM_ALIGNED, RANDOM_PAIRS,
                                     RANDOM_PARALLEL | RANDOM_PAIRS, RANDOM_GAPS};
    mpl_rng rng = mpl_rng_of(24);

    for (uint32_t round = 0; round < ROUNDS; round++) {
        owned_problem *p = random_families(ctx, &rng, 5 + round % 4, kinds[round % 5]);
        owned_plan *plan = run_planner(ctx, mpl_planner_find("none"), p);
        uint64_t least = optimum(ctx, p);

        for (int way = 0; way < 3; way++) {
            mpl_exact_effort effort = {
                .tick_limit = UINT64_MAX, .deadline_ns = INT64_MAX, .n_threads = 1};
            uint64_t height = plan->peak_bytes, bound = 0, most = MPL_NO_CAPACITY,
                     offset[MOST_BUFFERS];
            uint64_t top = 0;

            memcpy(offset, plan->offset, p->n * sizeof *offset);
            if (way > 0)
                most = least - (way == 2);
            assert_ok(ctx,
                      mpl_exact_families(ctx, p, 0, 0, most, &effort, offset, &height, &bound));
            for (mpl_buffer b = 0; b < p->n; b++)
                top = mpl_max_u64(top, p->pool[b] == 0 ? offset[b] + p->bytes[b] : 0);
            assert_int_equal(top, height);
            if (way < 2)
                assert_int_equal(height, least);
            assert_int_equal(bound, least);
        }
    }
}

/* Whether, by the problem's definition, some buffer of member a, placed at `at`, conflicts with one
 * of member c. */
static bool plainly_bars(const mpl_packing *q, mpl_plan *plan, uint32_t a, uint64_t at, uint32_t c)
{
    const mpl_problem *p = q->p;

    for (mpl_buffer x = 0; x < p->n; x++)
        for (mpl_buffer y = 0; y < p->n; y++) {
            if (p->inside[x] != q->buffer[a] || p->inside[y] != q->buffer[c])
                continue;
            plan->offset[x] = at + p->inside_at[x];
            plan->offset[y] = q->offset[c] + p->inside_at[y];
            if (plain_conflict(p, plan, x, y))
                return true;
        }
    return false;
}

/* Whether an in-place pair between members a and c puts a at `place`. */
static bool plainly_on_partner(const mpl_packing *q, uint32_t a, uint32_t c, int64_t place)
{
    const mpl_problem *p = q->p;

    for (uint32_t k = 0; k < 2 * p->n_in_place; k++) {
        mpl_buffer x = k % 2 == 0 ? p->in_place_in[k / 2] : p->in_place_out[k / 2];
        mpl_buffer y = k % 2 == 0 ? p->in_place_out[k / 2] : p->in_place_in[k / 2];

        if (p->inside[x] == q->buffer[a] && p->inside[y] == q->buffer[c] &&
            place + (int64_t)p->inside_at[x] == (int64_t)(q->offset[c] + p->inside_at[y]))
            return true;
    }
    return false;
}

/* Members at random places: each neighbour's walls forbid exactly the starts that its buffers
 * forbid, each counted once. */
static mpl_status compare_walls(mpl_packing *q)
{
    mpl_ctx *ctx = q->run->ctx;
    mpl_plan *plan = NULL;
    uint32_t in_way[MOST_BUFFERS], n_shared = 0;
    mpl_rng rng;

    if (q->p->inside == NULL) /* whole families */
        return MPL_OK;
    rng = mpl_rng_of(q->run->seed);
    assert_ok(ctx, mpl_plan_new(ctx, q->p, &plan));
    for (uint32_t a = 0; a < q->n; a++)
        q->offset[a] = random_below(&rng, 12);
    for (uint32_t a = 0; a < q->n; a++) {
        mpl_packing_sort(q, a);
        for (uint32_t i = q->begin[a] + 1; i < q->begin[a + 1]; i++)
            assert_true(mpl_packing_low(q, a, i - 1) <= mpl_packing_low(q, a, i));
        for (uint32_t i = q->pair_begin != NULL ? q->pair_begin[a] : 0;
             q->pair_begin != NULL && i < q->pair_begin[a + 1]; i++) {
            uint64_t place = 0;
            bool fits = mpl_packing_on_partner(q, a, i, &place);

            assert_true(plainly_on_partner(q, a, q->pair[i], (int64_t)place));
            assert_int_equal(fits, (int64_t)place >= 0 && place % q->align[a] == 0);
        }
        for (uint64_t at = 0; at < 40; at++) {
            uint32_t mixed[MOST_BUFFERS] = {0};

            memset(in_way, 0, sizeof in_way);
            for (uint32_t i = q->begin[a]; i < q->begin[a + 1]; i++) {
                bool open = mpl_packing_shares(q, a, i, at);
                bool covers =
                    mpl_packing_low(q, a, i) < (int64_t)at && (int64_t)at < mpl_packing_high(q, i);

                assert_true(covers || !open);
                in_way[q->rival[i]] += covers && !open;
                mixed[q->rival[i]] += q->wall[i].same != INT64_MAX;
                n_shared += covers && open;
            }
            for (uint32_t c = 0; c < q->n; c++) {
                assert_int_equal(in_way[c] > 0, c != a && plainly_bars(q, plan, a, at, c));
                assert_true(in_way[c] <= 1 + mixed[c]);
            }
        }
    }
    mpl_plan_free(ctx, plan);
    *(uint32_t *)q->run->watch->arg += n_shared;
    return MPL_OK;
}

TEST(walls_say_what_conflicts)
{
    static const unsigned kinds[] = {0, RANDOM_PAIRS, RANDOM_GAPS, RANDOM_PARALLEL | RANDOM_PAIRS,
                                     RANDOM_PAIRS | RANDOM_ALIGNED};
    uint32_t n_shared = 0;
    mpl_rng rng = mpl_rng_of(29);

    for (uint32_t round = 0; round < ROUNDS; round++) {
        owned_problem *p = random_families(ctx, &rng, 5 + round % 4, kinds[round % 5]);
        owned_plan *plan = NULL;
        mpl_run run = mpl_run_default(ctx);

        run.seed = round + 1;
        run.watch = &(mpl_watch){.arg = &n_shared};
        assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
        assert_ok(ctx, mpl_packing_run(&run, p, &mpl_planner_greedy_size, UINT64_MAX, compare_walls,
                                       plan));
    }
    assert_true(n_shared > 20);
}

/* ---- by hand ---- */

typedef struct made {
    mpl_buffer inside;
    uint64_t at, bytes;
    uint32_t birth, death;
} made;

static mpl_problem *make(mpl_ctx *ctx, const made *m, uint32_t n)
{
    mpl_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "made", n, &p));
    assert_ok(ctx, mpl_new(ctx, p->inside, n));
    assert_ok(ctx, mpl_new(ctx, p->inside_at, n));
    p->n_steps = 8;
    for (mpl_buffer b = 0; b < n; b++) {
        p->inside[b] = m[b].inside;
        p->inside_at[b] = m[b].at;
        p->bytes[b] = m[b].bytes;
        p->birth[b] = m[b].birth;
        p->death[b] = m[b].death;
    }
    return p;
}

/* What a family that is needed as a whole takes, and what its parts take. */
TEST(parts_let_others_in)
{
    static const struct {
        const char *what;
        uint32_t n;
        made m[5];
        uint64_t whole, parts;
    } cases[] =
        ROW(ROW("a piece ends, and another buffer takes its place", 3,
                {{0, 0, 4, 0, 2}, {0, 4, 4, 0, 6}, {2, 0, 4, 2, 6}}, 12, 8),
            ROW("before the last operand there is room for it", 3,
                {{0, 0, 4, 0, 6}, {0, 4, 4, 4, 6}, {2, 0, 4, 1, 4}}, 12, 8),
            ROW("a piece in the middle ends", 4,
                {{0, 0, 2, 0, 6}, {0, 2, 3, 0, 2}, {0, 5, 2, 0, 6}, {3, 0, 3, 3, 6}}, 10, 7),
            ROW("several small ones in a large part", 4,
                {{0, 0, 6, 0, 2}, {0, 6, 1, 0, 6}, {2, 0, 3, 2, 6}, {3, 0, 3, 2, 6}}, 13, 7),
            ROW("two families, each where the other is not", 4,
                {{0, 0, 4, 0, 3}, {0, 4, 4, 4, 6}, {2, 0, 4, 0, 3}, {2, 4, 4, 4, 6}}, 16, 12),
            ROW("two families side by side would be lower if they could be taken apart", 4,
                {{0, 0, 1, 0, 2}, {0, 1, 3, 3, 5}, {2, 0, 3, 0, 2}, {2, 3, 1, 3, 5}}, 8, 5));

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        owned_problem *p = make(ctx, cases[i].m, cases[i].n), *hull = NULL;
        mpl_plan *plan;
        uint32_t into[5];

        assert_ok(ctx, mpl_problem_check(ctx, p));
        assert_ok(ctx, mpl_problem_hull(ctx, p, &hull, into));
        plan = run_planner(ctx, mpl_planner_find("exact"), p);
        if (plan->peak_bytes != cases[i].parts || plan->claim != MPL_OPTIMAL)
            fail_msg("%s: %" PRIu64 " bytes, not %" PRIu64, cases[i].what, plan->peak_bytes,
                     cases[i].parts);
        mpl_plan_free(ctx, plan);
        plan = NULL;
        {

            plan = planned_by(ctx, "exact", hull);
        }
        assert_int_equal(plan->peak_bytes, cases[i].whole);
        mpl_plan_free(ctx, plan);
    }
}

/* Refuses a plan with a moved buffer, and invalid problems. */
TEST(refuse_wrong)
{
    static const made right[] = {{0, 0, 4, 0, 2}, {0, 4, 4, 0, 6}, {2, 0, 4, 2, 6}};
    static const struct {
        const char *what;
        made m[3];
        const char *message;
    } wrongs[] = ROW(
        {"a chain", {{0, 0, 4, 0, 2}, {0, 4, 4, 0, 6}, {1, 0, 4, 2, 6}}, "not the lowest"},
        {"the lowest somewhere",
         {{0, 4, 4, 0, 2}, {0, 4, 4, 0, 6}, {2, 0, 4, 2, 6}},
         "not the lowest"},
        {"nobody's", {{0, 0, 4, 0, 2}, {7, 4, 4, 0, 6}, {2, 0, 4, 2, 6}}, "not the lowest"},
        {"overlap", {{0, 0, 4, 0, 2}, {0, 3, 4, 0, 6}, {2, 0, 4, 2, 6}}, "of one family overlap"},
        {"too far", {{0, 0, 4, 0, 2}, {0, INT64_MAX, 4, 0, 6}, {2, 0, 4, 2, 6}}, "2^63"});
    mpl_problem *p;
    owned_plan *plan;

    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        p = make(ctx, wrongs[i].m, 3);
        assert_status(ctx, mpl_problem_check(ctx, p), MPL_EINPUT);
        if (strstr(ctx->message, wrongs[i].message) == NULL)
            fail_msg("%s: %s", wrongs[i].what, ctx->message);
        mpl_problem_free(ctx, p);
    }
    p = make(ctx, right, 3);
    plan = run_planner(ctx, mpl_planner_find("exact"), p);
    for (mpl_buffer b = 0; b < 2; b++)
        for (int far = 0; far < 2; far++) { /* also where nothing else is in the way */
            uint64_t was = plan->offset[b];

            plan->offset[b] += far ? 100 : 1;
            plan->claim = MPL_FEASIBLE;
            assert_status(ctx, mpl_verify(ctx, p, plan), MPL_EINVALID);
            plan->offset[b] = was;
        }
    assert_ok(ctx, mpl_verify(ctx, p, plan));
    assert_ok(ctx, mpl_plan_spread(ctx, plan, 2)); /* at its distance, but in another memory */
    plan->spread.capacity[0] = plan->spread.capacity[1] = MPL_NO_CAPACITY;
    plan->bound_bytes = plan->n_witness = 0;
    assert_ok(ctx, mpl_verify(ctx, p, plan));
    plan->spread.memory[1] = 1;
    assert_status(ctx, mpl_verify(ctx, p, plan), MPL_EINVALID);
    assert_non_null(strstr(ctx->message, "does not lie"));
    plan->spread.memory[1] = 0;
    p->death[0] = 3; /* its bytes would be needed longer than the plan keeps them */
    plan->offset[2] = plan->offset[0];
    assert_status(ctx, mpl_verify(ctx, p, plan), MPL_EINVALID);
    mpl_problem_free(ctx, p);
}

/* A capacity between the two heights is met by parts and undecided for planners that see wholes;
 * one below both is refuted by the complete planners. */
TEST(capacities)
{
    static const made two[] = {{0, 0, 1, 0, 2}, {0, 1, 3, 3, 5}, {2, 0, 3, 0, 2}, {2, 3, 1, 3, 5}};
    static const char *const names[] = {"exact", "ilp"};

    for (int i = 0; i < 2; i++)
        for (uint64_t capacity = 4; capacity <= 5; capacity++) {
            const mpl_planner *planner = mpl_planner_find(names[i]);
            owned_problem *p = make(ctx, two, 4);
            owned_plan *plan = NULL;
            mpl_run run;

            p->pool_capacity[0] = capacity;
            run = mpl_run_default(ctx);
            if (planner->plan != NULL) {
                assert_ok(ctx, mpl_planner_run(planner, &run, p, &plan));
                assert_true((plan->claim == MPL_INFEASIBLE) == (capacity == 4));
            }
        }
}

/* ---- files, folding, memory ---- */

TEST(written_and_read)
{
    static const char file[] = "build/test_planners_families.json";
    mpl_rng rng = mpl_rng_of(22);

    for (uint32_t round = 0; round < 60; round++) {
        owned_problem *p =
            random_families(ctx, &rng, 8, round % 2 ? RANDOM_PAIRS : RANDOM_PARALLEL);
        owned_plan *plan = run_planner(ctx, mpl_planner_find("greedy_size"), p);
        uint64_t hash = mpl_problem_hash(p);
        mpl_plan_file read;

        assert_ok(ctx, mpl_plan_write(ctx, file, p, plan, NULL));
        assert_ok(ctx, mpl_plan_read(ctx, file, &read));
        assert_int_equal(mpl_problem_hash(read.problem), hash);
        assert_ok(ctx, mpl_verify(ctx, read.problem, read.plan));
        assert_memory_equal(read.plan->offset, plan->offset, p->n * sizeof *plan->offset);
        for (mpl_buffer b = 0; b < p->n; b++)
            if (p->inside[b] != b) {
                p->inside_at[b] += 8;
                assert_int_not_equal(mpl_problem_hash(p), hash);
                p->inside_at[b] -= 8;
            }
        mpl_plan_file_fini(ctx, &read);
    }
    remove(file);
}

/* Row lists cannot express families; other planners' results for such a list are valid plans. */
TEST(lists_have_wholes)
{
    static const char file[] = "build/test_planners_families.csv";
    static const made right[] = {{0, 0, 4, 0, 2}, {0, 4, 4, 0, 6}, {2, 0, 4, 2, 6}};
    owned_problem *p, *read = NULL;

    p = make(ctx, right, 3);
    assert_ok(ctx, mpl_csv_write(ctx, file, p, NULL));
    assert_ok(ctx, mpl_csv_read(ctx, file, &read, NULL));
    assert_int_equal(read->n, 2);
    assert_int_equal(read->bytes[0], 8);
    assert_int_equal(read->death[0], 6);
    assert_status(ctx, mpl_problem_reverse(ctx, p), MPL_EINPUT);
    remove(file);
}

TEST(survive_lost_memory)
{
    static const char *const names[] = {"exact", "ilp",       "greedy_size", "owl",
                                        "beam",  "portfolio", "none"};
    mpl_rng rng = mpl_rng_of(23);
    owned_problem *p = random_families(ctx, &rng, 8, RANDOM_PAIRS);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int64_t live = ctx->n_live;
        mpl_status st = MPL_EMEM;

        for (int64_t k = 0; st == MPL_EMEM; k++) {
            mpl_problem *folded = NULL;
            mpl_plan *plan = NULL;
            uint32_t into[8];
            mpl_run run = mpl_run_default(ctx);

            run.budget_ticks = 1000000;
            ctx->n_allocs = 0, ctx->fail_after = k;
            st = mpl_problem_fold(ctx, p, &folded, into);
            if (st == MPL_OK)
                st = mpl_planner_run(mpl_planner_find(names[i]), &run, p, &plan);
            mpl_problem_free(ctx, folded);
            mpl_plan_free(ctx, plan);
            assert_int_equal(ctx->n_live, live);
        }
        ctx->fail_after = -1;
        assert_true(st == MPL_OK || st == MPL_EUNAVAIL);
    }
}

TESTS(plan_all, walls_say_what_conflicts, search_from_afar, parts_let_others_in, refuse_wrong,
      capacities, written_and_read, lists_have_wholes, survive_lost_memory)
