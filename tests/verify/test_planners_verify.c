/* The verifier: wrong plans that it must refuse, one per rule, beside valid ones that differ by a
 * byte or a step; and random plans, judged by comparing every pair. */
#include "graphs/problem/bounds/bounds.h"
#include "tests/support/random_problem.h"

#include "planners/verify/verify.h"

#define FREE UINT64_MAX

typedef struct plan_case {
    const char *what;
    uint32_t n;
    uint64_t bytes[3];
    uint32_t align[3], pool[3], birth[3], death[3];
    uint32_t pair[3];               /* in, out, step; all 0: none */
    uint64_t capacity[2], fixed[3]; /* 0: no capacity, not fixed */
    uint64_t offset[3];
    int32_t n_off; /* added to plan->n */
    mpl_claim claim;
    uint64_t bound;
    uint32_t block[3]; /* all 0: no blocks */
    const char *want;  /* part of the message; NULL: the plan is valid */
    uint64_t peak;
} plan_case;

#define ALIGN1                                                                                     \
    {                                                                                              \
        1, 1, 1                                                                                    \
    }
#define F MPL_FEASIBLE

static const plan_case cases[] = {
    ROW("side by side", 2, {8, 8}, ALIGN1, {0}, {0, 1}, {2, 3}, {0}, {0}, {0}, {0, 8}, 0, F, 16,
        {0}, NULL, 16),
    ROW("one byte too near", 2, {8, 8}, ALIGN1, {0}, {0, 1}, {2, 3}, {0}, {0}, {0}, {0, 7}, 0, F, 0,
        {0}, "buffers '#0' and '#1' overlap at step 1: bytes [0, 8) and [7, 15) of pool 'value'",
        0),
    ROW("one byte too near from above", 2, {8, 8}, ALIGN1, {0}, {0, 1}, {2, 3}, {0}, {0}, {0},
        {7, 0}, 0, F, 0, {0}, "bytes [7, 15) and [0, 8)", 0),
    ROW("one after the other", 2, {8, 8}, ALIGN1, {0}, {0, 2}, {2, 3}, {0}, {0}, {0}, {0, 0}, 0, F,
        8, {0}, NULL, 8),
    ROW("one step too long", 2, {8, 8}, ALIGN1, {0}, {0, 2}, {3, 3}, {0}, {0}, {0}, {0, 0}, 0, F, 0,
        {0}, "at step 2", 0),
    ROW("one within the other", 2, {1, 64}, ALIGN1, {0}, {1, 0}, {2, 3}, {0}, {0}, {0}, {63, 0}, 0,
        F, 0, {0}, "at step 1", 0),
    ROW("behind a neighbour that ended", 3, {8, 8, 16}, ALIGN1, {0}, {0, 0, 1}, {1, 3, 2}, {0}, {0},
        {0}, {0, 16, 0}, 0, F, 0, {0}, NULL, 24),
    ROW("across two", 3, {4, 4, 12}, ALIGN1, {0}, {0, 0, 1}, {2, 2, 2}, {0}, {0}, {0}, {0, 8, 0}, 0,
        F, 0, {0}, "'#0' and '#2'", 0),
    ROW("aligned", 2, {5, 8}, {1, 4, 1}, {0}, {0, 0}, {1, 1}, {0}, {0}, {0}, {0, 8}, 0, F, 0, {0},
        NULL, 16),
    ROW("misaligned", 2, {5, 8}, {1, 4, 1}, {0}, {0, 0}, {1, 1}, {0}, {0}, {0}, {0, 6}, 0, F, 0,
        {0}, "not aligned to 4", 0),
    {"to the last byte", 1, {8}, ALIGN1, {0}, {0}, {1}, {0}, {8}, {0}, {0}, 0, F, 0, {0}, NULL, 8},
    ROW("beyond the capacity", 1, {9}, ALIGN1, {0}, {0}, {1}, {0}, {8}, {0}, {0}, 0, F, 0, {0},
        "beyond the 8 bytes", 0),
    ROW("capacity of another pool", 2, {9, 8}, ALIGN1, {0, 1}, {0, 0}, {1, 1}, {0}, {0, 8}, {0},
        {0, 0}, 0, F, 0, {0}, NULL, 9),
    ROW("beyond the other pool", 2, {8, 9}, ALIGN1, {0, 1}, {0, 0}, {1, 1}, {0}, {0, 8}, {0},
        {0, 0}, 0, F, 0, {0}, "of pool 'workspace'", 0),
    ROW("pools share nothing", 2, {8, 8}, ALIGN1, {0, 1}, {0, 0}, {1, 1}, {0}, {0}, {0}, {0, 0}, 0,
        F, 8, {0}, NULL, 8),
    ROW("the same pool, though second", 2, {8, 8}, ALIGN1, {1, 1}, {0, 0}, {1, 1}, {0}, {0}, {0},
        {0, 0}, 0, F, 0, {0}, "of pool 'workspace'", 0),
    ROW("a buffer missing", 2, {8, 8}, ALIGN1, {0}, {0, 2}, {2, 3}, {0}, {0}, {0}, {0, 0}, -1, F, 0,
        {0}, "has 1 buffers", 0),
    ROW("a buffer too many", 2, {8, 8}, ALIGN1, {0}, {0, 2}, {2, 3}, {0}, {0}, {0}, {0, 0}, 1, F, 0,
        {0}, "has 3 buffers", 0),
    ROW("in place", 2, {8, 8}, ALIGN1, {0}, {0, 1}, {2, 3}, {0, 1, 1}, {0}, {0}, {4, 4}, 0, F, 8,
        {0}, NULL, 12),
    ROW("in place, smaller", 2, {8, 5}, ALIGN1, {0}, {0, 1}, {2, 3}, {0, 1, 1}, {0}, {0}, {0, 0}, 0,
        F, 8, {0}, NULL, 8),
    ROW("in place, not at the same offset", 2, {8, 5}, ALIGN1, {0}, {0, 1}, {2, 3}, {0, 1, 1}, {0},
        {0}, {0, 1}, 0, F, 0, {0}, "overlap at step 1", 0),
    ROW("in place, no such pair", 3, {8, 8, 8}, ALIGN1, {0}, {0, 1, 0}, {2, 3, 2}, {0, 1, 1}, {0},
        {0}, {0, 8, 8}, 0, F, 0, {0}, "'#1' and '#2'", 0),
    ROW("in place, the pair the other way", 2, {8, 8}, ALIGN1, {0}, {1, 0}, {3, 2}, {1, 0, 1}, {0},
        {0}, {0, 0}, 0, F, 8, {0}, NULL, 8),
    ROW("two over one", 3, {8, 4, 4}, ALIGN1, {0}, {0, 1, 1}, {2, 3, 3}, {0, 1, 1}, {0}, {0},
        {0, 0, 0}, 0, F, 0, {0}, "'#0' and '#2'", 0),
    ROW("beside what is overwritten", 3, {8, 4, 4}, ALIGN1, {0}, {0, 1, 1}, {2, 3, 3}, {0, 1, 1},
        {0}, {0}, {0, 0, 4}, 0, F, 0, {0}, "'#0' and '#2'", 0),
    ROW("and one step later", 3, {8, 4, 4}, ALIGN1, {0}, {0, 1, 2}, {2, 3, 3}, {0, 1, 1}, {0}, {0},
        {0, 0, 4}, 0, F, 0, {0}, NULL, 8),
    ROW("what overwrote is there afterwards", 3, {8, 4, 4}, ALIGN1, {0}, {0, 1, 2}, {2, 3, 3},
        {0, 1, 1}, {0}, {0}, {0, 0, 3}, 0, F, 0, {0}, "'#1' and '#2' overlap at step 2", 0),
    ROW("over 2^63", 1, {8}, ALIGN1, {0}, {0}, {1}, {0}, {0}, {0}, {INT64_MAX - 7}, 0, F, 0, {0},
        "beyond 2^63", 0),
    ROW("up to 2^63", 1, {8}, ALIGN1, {0}, {0}, {1}, {0}, {0}, {0}, {INT64_MAX - 8}, 0, F, 0, {0},
        NULL, INT64_MAX),
    ROW("wraps round", 1, {8}, ALIGN1, {0}, {0}, {1}, {0}, {0}, {0}, {UINT64_MAX - 3}, 0, F, 0, {0},
        "beyond 2^63", 0),
    ROW("fixed", 2, {8, 8}, ALIGN1, {0}, {0, 0}, {1, 1}, {0}, {0}, {24, FREE}, {24, 0}, 0, F, 0,
        {0}, NULL, 32),
    ROW("fixed and moved", 2, {8, 8}, ALIGN1, {0}, {0, 0}, {1, 1}, {0}, {0}, {24, FREE}, {16, 0}, 0,
        F, 0, {0}, "is fixed at", 0),
    ROW("its bound above its peak", 1, {8}, ALIGN1, {0}, {0}, {1}, {0}, {0}, {0}, {0}, 0, F, 9, {0},
        "less than the 9", 0),
    {"optimal", 1, {8}, ALIGN1, {0}, {0}, {1}, {0}, {0}, {0}, {0}, 0, MPL_OPTIMAL, 8, {0}, NULL, 8},
    ROW("optimal, with a bound below", 1, {8}, ALIGN1, {0}, {0}, {1}, {0}, {0}, {0}, {0}, 0,
        MPL_OPTIMAL, 7, {0}, "optimal", 0),
    ROW("no answer", 1, {8}, ALIGN1, {0}, {0}, {1}, {0}, {0}, {0}, {0}, 0, MPL_UNKNOWN, 0, {0},
        "claims 'unknown'", 0),
    ROW("no plan", 1, {8}, ALIGN1, {0}, {0}, {1}, {0}, {0}, {0}, {0}, 0, MPL_INFEASIBLE, 0, {0},
        "claims 'infeasible'", 0),
    ROW("blocks", 3, {8, 8, 8}, ALIGN1, {0}, {0, 1, 0}, {1, 2, 2}, {0}, {0}, {0}, {0, 0, 8}, 0, F,
        0, {0, 0, 1}, NULL, 16),
    ROW("blocks that overlap", 2, {8, 8}, ALIGN1, {0}, {0, 1}, {1, 2}, {0}, {0}, {0}, {0, 4}, 0, F,
        0, {0, 1}, "blocks 0 and 1", 0),
    ROW("a block in two parts", 3, {8, 8, 8}, ALIGN1, {0}, {0, 0, 0}, {1, 1, 1}, {0}, {0}, {0},
        {0, 8, 16}, 0, F, 0, {1, 0, 1}, "block 1", 0),
    ROW("a block beyond", 2, {8, 8}, ALIGN1, {0}, {0, 1}, {1, 2}, {0}, {0}, {0}, {0, 8}, 0, F, 0,
        {0, 9}, "block 9", 0),
};

static mpl_problem *case_problem(mpl_ctx *ctx, const plan_case *c)
{
    mpl_problem *p = NULL;
    bool pair = c->pair[0] != c->pair[1];

    assert_ok(ctx, mpl_problem_new(ctx, c->what, c->n, &p));
    assert_ok(ctx, mpl_realloc_bytes(ctx, (void **)&p->pool_name, 1, 2, sizeof *p->pool_name));
    assert_ok(ctx,
              mpl_realloc_bytes(ctx, (void **)&p->pool_capacity, 1, 2, sizeof *p->pool_capacity));
    p->pool_name[1] = mpl_strdup(ctx, "workspace");
    p->n_pools = 2;
    for (int i = 0; i < 2; i++)
        p->pool_capacity[i] = c->capacity[i] > 0 ? c->capacity[i] : MPL_NO_CAPACITY;
    p->n_steps = 3;
    memcpy(p->bytes, c->bytes, c->n * sizeof *p->bytes);
    memcpy(p->align, c->align, c->n * sizeof *p->align);
    memcpy(p->pool, c->pool, c->n * sizeof *p->pool);
    memcpy(p->birth, c->birth, c->n * sizeof *p->birth);
    memcpy(p->death, c->death, c->n * sizeof *p->death);
    assert_ok(ctx, mpl_new(ctx, p->in_place_in, 1));
    assert_ok(ctx, mpl_new(ctx, p->in_place_out, 1));
    assert_ok(ctx, mpl_new(ctx, p->in_place_step, 1));
    p->n_in_place = pair;
    p->in_place_in[0] = c->pair[0], p->in_place_out[0] = c->pair[1],
    p->in_place_step[0] = c->pair[2];
    if (c->fixed[0] != 0) {
        assert_ok(ctx, mpl_new(ctx, p->fixed, c->n));
        memcpy(p->fixed, c->fixed, c->n * sizeof *p->fixed);
    }
    return p;
}

static mpl_plan *case_plan(mpl_ctx *ctx, const plan_case *c, const mpl_problem *p)
{
    mpl_plan *plan = NULL;

    assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
    memcpy(plan->offset, c->offset, c->n * sizeof *plan->offset);
    plan->n = (uint32_t)((int32_t)plan->n + c->n_off);
    plan->claim = c->claim;
    plan->bound_bytes = c->bound;
    if (c->block[0] != 0 || c->block[1] != 0 || c->block[2] != 0) {
        assert_ok(ctx, mpl_new(ctx, plan->block, c->n));
        memcpy(plan->block, c->block, c->n * sizeof *plan->block);
    }
    return plan;
}

TEST(judge_cases)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const plan_case *c = &cases[i];
        owned_problem *p = case_problem(ctx, c);
        owned_plan *plan = case_plan(ctx, c, p);
        mpl_status st = mpl_verify(ctx, p, plan);

        if (st != (c->want == NULL ? MPL_OK : MPL_EINVALID))
            fail_msg("%s: %s (%s)", c->what, mpl_status_name(st), ctx->message);
        if (c->want != NULL && strstr(ctx->message, c->want) == NULL)
            fail_msg("%s: the message is '%s', without '%s'", c->what, ctx->message, c->want);
        if (plan->peak_bytes != c->peak)
            fail_msg("%s: peak %" PRIu64 " instead of %" PRIu64, c->what, plan->peak_bytes,
                     c->peak);
    }
}

typedef struct witness_case {
    uint32_t n, witness[2]; /* n 0: the end */
    uint64_t bound;
    const char *want; /* part of the message; NULL: valid */
} witness_case;

/* A plan with buffer 1 above the others, under each witness. */
static void judge_witnesses_of(const plan_case *what, const witness_case *rows)
{
    mpl_ctx ctx = mpl_ctx_default();
    mpl_problem *p = case_problem(&ctx, what);

    for (size_t i = 0; rows[i].n > 0; i++) {
        mpl_plan *plan = NULL;
        mpl_status st;

        assert_ok(&ctx, mpl_plan_new(&ctx, p, &plan));
        plan->claim = MPL_FEASIBLE;
        plan->offset[1] = 8;
        plan->bound_bytes = rows[i].bound;
        plan->n_witness = rows[i].n;
        assert_ok(&ctx, mpl_new(&ctx, plan->witness, 2));
        memcpy(plan->witness, rows[i].witness, sizeof rows[i].witness);
        st = mpl_verify(&ctx, p, plan);
        if (st != (rows[i].want == NULL ? MPL_OK : MPL_EINVALID))
            fail_msg("row %zu: %s (%s)", i, mpl_status_name(st), ctx.message);
        if (rows[i].want != NULL && strstr(ctx.message, rows[i].want) == NULL)
            fail_msg("row %zu: '%s' without '%s'", i, ctx.message, rows[i].want);
        mpl_plan_free(&ctx, plan);
    }
    mpl_problem_free(&ctx, p);
    assert_int_equal(ctx.n_live, 0);
}

/* Witnesses of a bound: they may only name buffers of pool 0 that can never share a byte. Of three,
 * 1 may overwrite 0, and 2 is in another pool. */
TEST(judge_witnesses)
{
    static const plan_case three =
        ROW(.what = "three", .n = 3, .bytes = {8, 8, 4}, .align = {1, 1, 1}, .pool = {0, 0, 1},
            .death = {2, 3, 3}, .birth = {0, 1, 0}, .pair = {0, 1, 1});
    static const witness_case rows[] =
        ROW({1, {0}, 8, NULL}, {1, {1}, 8, NULL},
            {2, {0, 1}, 16, "'#0' and '#1', which can share memory"},
            {1, {2}, 4, "'#2' of pool 'workspace'"}, {2, {0, 2}, 12, "'#2'"},
            {2, {1, 0}, 16, "do not ascend"}, {2, {0, 0}, 16, "do not ascend"},
            {1, {3}, 8, "do not ascend below 3"}, {1, {0}, 9, "prove 8 bytes"},
            {1, {0}, 7, "prove 8 bytes"}, {0});

    judge_witnesses_of(&three, rows);
}

/* A buffer that ends at a step and one that begins there are never needed together. */
TEST(judge_witnesses_that_touch)
{
    static const plan_case three = ROW(.what = "touching", .n = 3, .bytes = {8, 8, 8},
                                       .align = {1, 1, 1}, .death = {2, 3, 3}, .birth = {0, 1, 2});
    static const witness_case rows[] =
        ROW({2, {0, 1}, 16, NULL}, {2, {1, 2}, 16, NULL},
            {2, {0, 2}, 16, "'#0' and '#2', which can share memory"}, {0});

    judge_witnesses_of(&three, rows);
}

/* The first conflict by (step, lower id, higher id), found by comparing every pair; false if there
 * is none. */
static bool first_conflict(const mpl_problem *p, const mpl_plan *plan, mpl_buffer *a, mpl_buffer *b,
                           uint32_t *step)
{
    bool found = false;

    for (mpl_buffer i = 0; i < p->n; i++)
        for (mpl_buffer j = i + 1; j < p->n; j++) {
            uint32_t when = p->before != NULL ? 0 : plain_meeting(p, i, j);

            if (plain_conflict(p, plan, i, j) && (!found || when < *step))
                *a = i, *b = j, *step = when, found = true;
        }
    return found;
}

static void judge(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan, uint32_t *n_wrong)
{
    mpl_buffer a = 0, b = 0;
    uint32_t step = 0;
    bool aligned = true, wrong;
    char want[128];
    mpl_status st;

    for (mpl_buffer i = 0; i < p->n; i++)
        aligned = aligned && plan->offset[i] % p->align[i] == 0;
    wrong = first_conflict(p, plan, &a, &b, &step);
    st = mpl_verify(ctx, p, plan);
    *n_wrong += wrong;
    if ((st == MPL_OK) != (aligned && !wrong))
        fail_msg("verifier: %s (%s); comparing pairs: %s", mpl_status_name(st), ctx->message,
                 wrong ? "wrong" : "right");
    if (aligned && wrong) {
        snprintf(want, sizeof want,
                 p->before != NULL ? "buffers '#%u' and '#%u' overlap:"
                                   : "buffers '#%u' and '#%u' overlap at step %u:",
                 a, b, step);
        if (strncmp(ctx->message, want, strlen(want)) != 0)
            fail_msg("'%s' where '%s' was expected", ctx->message, want);
    }
    if (st == MPL_OK && p->before == NULL) {
        uint64_t bound = 0;

        assert_ok(ctx, mpl_peak_live(ctx, p, 0, &bound, NULL, NULL));
        assert_true(bound <= plan->peak_bytes); /* the bound holds for every valid plan */
    }
}

/* One change to a valid plan: moves a buffer a little or onto another. */
static void mutate(const mpl_problem *p, mpl_plan *plan, mpl_rng *rng)
{
    mpl_buffer b = random_below(rng, p->n), other = random_below(rng, p->n);
    uint64_t by = random_below(rng, 3) == 0 ? 1 : p->align[b];

    switch (random_below(rng, 3)) {
    case 0:
        plan->offset[b] += by;
        break;
    case 1:
        plan->offset[b] -= plan->offset[b] >= by ? by : plan->offset[b];
        break;
    default:
        plan->offset[b] = plan->offset[other];
    }
}

/* MPL_MUTANTS: how many; make reliability asks for ten million. */
TEST(judge_random)
{
    mpl_rng rng = mpl_rng_of(1);
    const char *asked = getenv("MPL_MUTANTS");
    uint32_t wanted = asked != NULL ? (uint32_t)strtoul(asked, NULL, 10) : 128000, n_wrong = 0,
             n_plans = 0;

    for (uint32_t round = 0; n_plans < wanted; round++) {
        owned_problem *p = random_problem(ctx, &rng, 1 + random_below(&rng, 12), round % 32);
        owned_plan *plan = plain_plan(ctx, p);
        uint64_t right[16];

        memcpy(right, plan->offset, p->n * sizeof *right);
        judge(ctx, p, plan, &n_wrong);
        for (uint32_t i = 0; i < 16; i++, n_plans++) {
            if (i % 4 == 0) /* up to four changes on top of each other */
                memcpy(plan->offset, right, p->n * sizeof *right);
            mutate(p, plan, &rng);
            judge(ctx, p, plan, &n_wrong);
        }
    }
    print_message("%u changed plans, %u of them with a conflict\n", n_plans, n_wrong);
    assert_true(n_plans >= wanted && n_wrong > n_plans / 8 && n_wrong < n_plans * 7 / 8);
}

TEST(survive_lost_memory)
{
    mpl_rng rng = mpl_rng_of(7);

    for (unsigned what = 0; what < 32; what++) {
        owned_problem *p = random_problem(ctx, &rng, 10, what);
        owned_plan *plan = plain_plan(ctx, p);

        for (int wrong = 0; wrong < 2; wrong++) {
            int64_t live = ctx->n_live;
            mpl_status st = MPL_EMEM;

            for (int64_t k = 0; st == MPL_EMEM; k++) {
                ctx->n_allocs = 0, ctx->fail_after = k;
                st = mpl_verify(ctx, p, plan);
                assert_int_equal(ctx->n_live, live);
            }
            ctx->fail_after = -1;
            memset(plan->offset, 0, p->n * sizeof *plan->offset);
        }
    }
}

/* A staircase of 200,000 buffers, 100 alive at a time; a loop over all pairs would take minutes. */
TEST(sweep_many)
{
    enum { N = 200000, LIVE = 100 };
    owned_problem *p = NULL;
    owned_plan *plan = NULL;
    int64_t start;

    assert_ok(ctx, mpl_problem_new(ctx, "staircase", N, &p));
    assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
    plan->claim = MPL_FEASIBLE;
    p->n_steps = N + LIVE;
    for (mpl_buffer b = 0; b < N; b++) {
        p->bytes[b] = 64;
        p->birth[b] = b, p->death[b] = b + LIVE;
        plan->offset[b] = 64 * (uint64_t)(b % LIVE);
    }
    start = mpl_clock_ns();
    assert_ok(ctx, mpl_verify(ctx, p, plan));
    assert_true(mpl_clock_ns() - start < INT64_C(5000000000));
    assert_int_equal(plan->peak_bytes, 64 * LIVE);
    plan->offset[N - 1] ^= 64;
    assert_status(ctx, mpl_verify(ctx, p, plan), MPL_EINVALID);
    assert_non_null(strstr(ctx->message, "'#199998' and '#199999' overlap at step 199999"));
}

TESTS(judge_cases, judge_witnesses, judge_witnesses_that_touch, judge_random, survive_lost_memory,
      sweep_many)
