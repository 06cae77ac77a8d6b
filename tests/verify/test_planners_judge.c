/* The verifiers against brute force over all pairs of bytes: modified plans of problems of every
 * kind, claims, and plans of graphs with views, where each read must find its value. MPL_JUDGED=N:
 * that many modified plans of either kind (make judge-oracle). */
#include "graphs/io/lists/lists.h"
#include "tests/support/random_families.h"
#include "tests/support/random_graph.h"

#include "planners/verify/verify.h"

enum { CHANGES = 16, MOST_OPS = 12, MOST_BUFFERS = 48, TICKS = 3000 };

typedef struct tally {
    uint32_t accepted, refused;
} tally;

static uint32_t asked(void)
{
    return (uint32_t)number_asked("MPL_JUDGED", draws(20000));
}

/* ---- bytes ---- */

/* Whether a and b have a byte in common. */
static bool share_a_byte(const mpl_problem *p, const mpl_plan *plan, mpl_buffer a, mpl_buffer b)
{
    if (p->pool[a] != p->pool[b] ||
        (p->pool[a] == 0 && plan->spread.n > 0 && plan->spread.memory[a] != plan->spread.memory[b]))
        return false;
    for (uint64_t i = 0; i < p->bytes[a]; i++)
        if (plan->offset[a] + i - plan->offset[b] < p->bytes[b])
            return true;
    return false;
}

/* Whether a and b share a byte that both need: at one step, or unordered. */
static bool collide(const mpl_problem *p, const mpl_plan *plan, mpl_buffer a, mpl_buffer b)
{
    if (!share_a_byte(p, plan, a, b) ||
        (plan->offset[a] == plan->offset[b] && (is_offered(p, a, b) || is_offered(p, b, a))))
        return false;
    return p->before != NULL ? !mpl_is_before(p->before, a, b) && !mpl_is_before(p->before, b, a)
                             : plain_meeting(p, a, b) < p->n_steps;
}

/* Whether b's own location is valid, regardless of the other buffers. */
static bool lies_well(const mpl_problem *p, const mpl_plan *plan, mpl_buffer b)
{
    const mpl_spread *spread = &plan->spread;
    uint64_t end = plan->offset[b] + p->bytes[b];

    if (plan->offset[b] % p->align[b] != 0 || end > p->pool_capacity[p->pool[b]] ||
        end > INT64_MAX || end < p->bytes[b])
        return false;
    if (spread->n > 0 &&
        (spread->memory[b] >= spread->n || (p->pool[b] != 0 && spread->memory[b] != 0) ||
         (p->pool[b] == 0 && end > spread->capacity[spread->memory[b]])))
        return false;
    if (p->fixed != NULL && p->fixed[b] != MPL_UNFIXED && p->fixed[b] != plan->offset[b])
        return false;
    return p->inside == NULL ||
           (plan->offset[b] == plan->offset[p->inside[b]] + p->inside_at[b] &&
            (spread->n == 0 || spread->memory[b] == spread->memory[p->inside[b]]));
}

static bool right(const mpl_problem *p, const mpl_plan *plan)
{
    for (mpl_buffer b = 0; b < p->n; b++) {
        if (!lies_well(p, plan, b))
            return false;
        for (mpl_buffer a = 0; a < b; a++)
            if (collide(p, plan, a, b))
                return false;
    }
    return true;
}

/* ---- problems ---- */

enum { FAMILIES = 32, MEMORIES = 64, N_KINDS = 128 };

/* A plan by a random planner; its claim is not checked here. */
static mpl_plan *drawn_plan(mpl_ctx *ctx, const mpl_problem *p, mpl_rng *rng)
{
    uint32_t n = 0;
    mpl_plan *plan = NULL;

    while (mpl_planners[n] != NULL)
        n++;
    while (plan == NULL)
        plan = plainly_planned(ctx, mpl_planners[random_below(rng, n)], p, TICKS);
    plan->claim = MPL_FEASIBLE;
    plan->bound_bytes = plan->n_witness = 0;
    mpl_free(ctx, plan->block);
    plan->block = NULL;
    return plan;
}

/* Fixes some buffers where they are, and sets pool capacities a little above the last byte, at
 * times below it. */
static void tie_down(mpl_ctx *ctx, mpl_problem *p, const mpl_plan *plan, mpl_rng *rng)
{
    for (uint32_t pool = 0; pool < p->n_pools && random_below(rng, 3) == 0; pool++)
        p->pool_capacity[pool] = mpl_pool_height(p, pool, plan->offset) + random_below(rng, 8);
    if (random_below(rng, 3) != 0)
        return;
    assert_ok(ctx, mpl_new(ctx, p->fixed, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        p->fixed[b] =
            p->inside == NULL && random_below(rng, 4) == 0 ? plan->offset[b] : MPL_UNFIXED;
}

/* Assigns the buffers of pool 0, families as wholes, to two or three memories. */
static void spread_out(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan, mpl_rng *rng)
{
    assert_ok(ctx, mpl_plan_spread(ctx, plan, 2 + random_below(rng, 2)));
    for (uint32_t k = 0; k < plan->spread.n; k++)
        plan->spread.capacity[k] =
            random_below(rng, 2) == 0 ? 8 + random_below(rng, 60) : MPL_NO_CAPACITY;
    for (mpl_buffer b = 0; b < p->n; b++)
        plan->spread.memory[b] = p->pool[b] != 0 ? 0
                                 : p->inside != NULL && p->inside[b] < b
                                     ? plan->spread.memory[p->inside[b]]
                                     : random_below(rng, plan->spread.n);
}

/* One change: moves a buffer or a family a little, onto another, to another's former offset, or to
 * another memory; seldom changes the problem's own bytes. */
static void change(mpl_problem *p, mpl_plan *plan, mpl_rng *rng)
{
    mpl_buffer b = random_below(rng, p->n), c = random_below(rng, p->n);
    uint64_t by = random_below(rng, 3) == 0 ? 1 : p->align[b], was = plan->offset[b];
    uint32_t how = random_below(rng, plan->spread.n > 0 ? 7 : 6);

    if (how == 6)
        plan->spread.memory[b] = random_below(rng, plan->spread.n + (random_below(rng, 8) == 0));
    else if (how == 5 && random_below(rng, 4) == 0)
        p->bytes[b] += 1; /* beyond what pairs and families allow, it is no longer a problem */
    else if (how == 4)
        plan->offset[b] = plan->offset[c], plan->offset[c] = was;
    else
        plan->offset[b] = how == 0   ? was + by
                          : how == 1 ? was - mpl_min_u64(was, by)
                                     : plan->offset[c];
    for (mpl_buffer a = 0; p->inside != NULL && how != 6 && random_below(rng, 8) != 0 && a < p->n;
         a++)
        if (p->inside[a] == p->inside[b] && plan->offset[b] >= p->inside_at[b])
            plan->offset[a] = plan->offset[b] - p->inside_at[b] + p->inside_at[a];
}

/* The bytes reported for a verified plan, in pools and memories. */
static void check_bytes(const mpl_problem *p, const mpl_plan *plan)
{
    uint64_t sum = 0;

    for (uint32_t k = 0; k < plan->spread.n; k++) {
        uint64_t most = 0;

        for (mpl_buffer b = 0; b < p->n; b++)
            if (p->pool[b] == 0 && plan->spread.memory[b] == k)
                most = mpl_max_u64(most, plan->offset[b] + p->bytes[b]);
        assert_int_equal(plan->spread.bytes[k], most);
        sum += most;
    }
    for (uint32_t pool = 0; pool < p->n_pools; pool++)
        assert_int_equal(plan->pool_bytes[pool], pool == 0 && plan->spread.n > 0
                                                     ? sum
                                                     : mpl_pool_height(p, pool, plan->offset));
    assert_int_equal(plan->peak_bytes, plan->pool_bytes[0]);
}

static void judge_problem(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan, tally *t)
{
    bool want = right(p, plan);
    mpl_status st = mpl_verify(ctx, p, plan);

    if (st == MPL_EINPUT) /* a size that pairs or families do not allow */
        return;
    if ((st == MPL_OK) != want)
        fail_msg("the verifier: %s (%s); all pairs of bytes: %s", mpl_status_name(st), ctx->message,
                 want ? "right" : "wrong");
    if (want)
        check_bytes(p, plan);
    t->accepted += want, t->refused += !want;
}

static void changed_plans_of(mpl_ctx *ctx, mpl_rng *rng, unsigned what, tally *t)
{
    uint32_t n = 2 + random_below(rng, 9);
    owned_problem *p = what & FAMILIES ? random_families(ctx, rng, n, what % FAMILIES)
                                       : random_problem(ctx, rng, n, what % FAMILIES);
    uint64_t offset[16], bytes[16];
    uint32_t memory[16];
    owned_plan *plan = drawn_plan(ctx, p, rng);

    tie_down(ctx, p, plan, rng);
    if (what & MEMORIES)
        spread_out(ctx, p, plan, rng);
    memcpy(offset, plan->offset, n * sizeof *offset);
    memcpy(bytes, p->bytes, n * sizeof *bytes);
    if (what & MEMORIES)
        memcpy(memory, plan->spread.memory, n * sizeof *memory);
    judge_problem(ctx, p, plan, t);
    for (uint32_t i = 0; i < CHANGES; i++) {
        if (i % 4 == 0) { /* up to four changes on top of each other */
            memcpy(plan->offset, offset, n * sizeof *offset);
            memcpy(p->bytes, bytes, n * sizeof *bytes);
            if (what & MEMORIES)
                memcpy(plan->spread.memory, memory, n * sizeof *memory);
        }
        change(p, plan, rng);
        judge_problem(ctx, p, plan, t);
    }
}

static void tell(const char *what, const tally *t)
{
    print_message("%-40s %7u accepted %7u refused, as by brute force\n", what, t->accepted,
                  t->refused);
}

TEST(plans_of_problems)
{
    static const char *const name[] = {"alignments", "pools",    "pairs",   "partial orders",
                                       "gaps",       "families", "memories"};
    tally all = {0}, with[7] = {{0}};
    mpl_rng rng = mpl_rng_of(28);

    for (uint32_t round = 0; all.accepted + all.refused < asked(); round++) {
        tally t = {0};

        changed_plans_of(ctx, &rng, round % N_KINDS, &t);
        all.accepted += t.accepted, all.refused += t.refused;
        for (int k = 0; k < 7; k++)
            if (round % N_KINDS >> k & 1)
                with[k].accepted += t.accepted, with[k].refused += t.refused;
    }
    tell("all", &all);
    for (int k = 0; k < 7; k++) {
        tell(name[k], &with[k]);
        assert_true(often(with[k].accepted > asked() / 32 && with[k].refused > asked() / 32));
    }
}

/* More buffers than one word of bits, with few alive at once: live buffers lie many ranks apart. */
TEST(plans_of_many)
{
    static const uint32_t sizes[] = {63, 64, 65, 127, 128, 130, 200, 640};
    tally t = {0};
    mpl_rng rng = mpl_rng_of(30);

    for (uint32_t round = 0; round < 24; round++) {
        owned_problem *p = NULL;
        owned_plan *plan;

        assert_ok(ctx, mpl_problem_synthetic(ctx, sizes[round % 8], 1 + round / 8, round, &p));
        for (mpl_buffer b = 0; b < p->n; b++)
            p->bytes[b] = 1 + p->bytes[b] % 9, p->align[b] = 1;
        plan = plain_plan(ctx, p);
        for (mpl_buffer b = 0; round % 3 == 0 && b < p->n; b++)
            /* apart, and in any order */
            plan->offset[b] += 16 * (uint64_t)random_below(&rng, 4 * p->n);
        for (uint32_t i = 0; i < 40; i++) {
            mpl_buffer b = random_below(&rng, p->n), c = i % 2 == 0 ? random_below(&rng, p->n)
                                                         : b > 0    ? b - 1
                                                                    : 1;
            uint64_t was = plan->offset[b];

            plan->offset[b] = plan->offset[c] + random_below(&rng, 9);
            judge_problem(ctx, p, plan, &t);
            plan->offset[b] = was;
        }
    }
    tell("63 to 640 buffers", &t);
    assert_true(often(t.accepted > 100 && t.refused > 100));
}

/* ---- claims ---- */

/* Whether no plan can ever give a and b a byte in common. */
static bool kept_apart(const mpl_problem *p, mpl_buffer a, mpl_buffer b)
{
    bool at_once = p->before != NULL
                       ? !mpl_is_before(p->before, a, b) && !mpl_is_before(p->before, b, a)
                       : plain_meeting(p, a, b) < p->n_steps;

    return at_once && p->pool[a] == 0 && p->pool[b] == 0 && !is_offered(p, a, b) &&
           !is_offered(p, b, a);
}

/* The bytes that the witness needs, in slots of the least alignment, minus the rounding of one. */
static uint64_t proved_by(const mpl_problem *p, const mpl_plan *plan)
{
    uint64_t slot = UINT64_C(1) << 31, sum = 0, rest = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        slot = p->pool[b] == 0 ? mpl_min_u64(slot, p->align[b]) : slot;
    for (uint32_t i = 0; i < plan->n_witness; i++) {
        uint64_t bytes = p->bytes[plan->witness[i]], slots = (bytes + slot - 1) / slot * slot;

        sum += slots;
        rest = mpl_max_u64(rest, slots - bytes);
    }
    return sum - rest;
}

/* Whether some buffer of pool 0 can end exactly at that byte. */
static bool can_end(const mpl_problem *p, uint64_t end)
{
    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == 0 && end >= p->bytes[b] && (end - p->bytes[b]) % p->align[b] == 0)
            return true;
    return false;
}

/* Whether the witness proves the plan's claim. */
static bool holds(const mpl_problem *p, const mpl_plan *plan)
{
    uint64_t height = mpl_pool_height(p, 0, plan->offset), proved;

    if (plan->bound_bytes > height || (plan->claim == MPL_OPTIMAL && plan->bound_bytes != height))
        return false;
    for (uint32_t i = 0; i < plan->n_witness; i++) {
        if (plan->witness[i] >= p->n || p->pool[plan->witness[i]] != 0)
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (plan->witness[k] >= plan->witness[i] ||
                !kept_apart(p, plan->witness[k], plan->witness[i]))
                return false;
    }
    proved = plan->n_witness > 0 ? proved_by(p, plan) : plan->bound_bytes;
    while (proved < plan->bound_bytes && !can_end(p, proved))
        proved++;
    return proved == plan->bound_bytes;
}

/* Mostly buffers that are kept apart, ascending, and mostly what they prove. */
static void draw_claim(const mpl_problem *p, mpl_plan *plan, mpl_rng *rng)
{
    uint32_t wrong = random_below(rng, 4), least = random_below(rng, 4);
    uint64_t height = mpl_pool_height(p, 0, plan->offset), proved;

    plan->n_witness = 0;
    for (mpl_buffer b = 0; b < p->n; b++) {
        bool good = p->pool[b] == 0 || random_below(rng, 16) == 0;

        for (uint32_t i = 0; i < plan->n_witness; i++)
            good = good && (kept_apart(p, plan->witness[i], b) || random_below(rng, 8 * p->n) == 0);
        if (good && random_below(rng, 4) >= least)
            plan->witness[plan->n_witness++] = b;
    }
    if (plan->n_witness > 1 && random_below(rng, 16) == 0)
        plan->witness[0] = plan->witness[1];
    if (plan->n_witness > 0 && random_below(rng, 32) == 0)
        plan->witness[plan->n_witness - 1] = p->n;
    proved =
        plan->n_witness > 0 && plan->witness[plan->n_witness - 1] < p->n ? proved_by(p, plan) : 0;
    plan->bound_bytes = wrong == 0   ? random_below(rng, (uint32_t)height + 2)
                        : wrong == 1 ? proved + random_below(rng, 5) - mpl_min_u64(proved, 2)
                                     : proved;
    while (wrong == 2 && !can_end(p, plan->bound_bytes) && plan->bound_bytes < height)
        plan->bound_bytes++;
    plan->claim = random_below(rng, 4) == 0 ? MPL_OPTIMAL : MPL_FEASIBLE;
}

static void judge_claims(mpl_ctx *ctx, mpl_problem *p, mpl_rng *rng, tally *t)
{
    owned_plan *plan = plain_plan(ctx, p);

    assert_ok(ctx, mpl_new(ctx, plan->witness, p->n + 1));
    for (uint32_t i = 0; i < CHANGES; i++) {
        bool want;

        draw_claim(p, plan, rng);
        want = holds(p, plan);
        if ((mpl_verify(ctx, p, plan) == MPL_OK) != want)
            fail_msg("the verifier: %s; the claim %s", want ? ctx->message : "accepted",
                     want ? "holds" : "does not");
        t->accepted += want && plan->n_witness > 0, t->refused += !want;
    }
    mpl_problem_free(ctx, p);
}

/* So many buffers that sets of them take several words, few of them ordered. */
static mpl_problem *wide_problem(mpl_ctx *ctx, mpl_rng *rng)
{
    uint32_t n = 60 + random_below(rng, 80), from[4], to[4];
    mpl_problem *p = NULL;
    mpl_before *before = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "wide", n, &p));
    for (mpl_buffer b = 0; b < n; b++)
        p->bytes[b] = 1 + random_below(rng, 9);
    for (uint32_t i = 0; i < 4; i++) {
        from[i] = random_below(rng, n - 1);
        to[i] = from[i] + 1 + random_below(rng, n - 1 - from[i]);
    }
    assert_ok(ctx, mpl_before_from_arcs(ctx, n, 4, from, to, &before));
    p->before = before;
    return p;
}

/* With too many buffers for any step to need them all, the verifier names two that never meet, or
 * the witness is too long. */
TEST(claims_of_many)
{
    static const struct {
        uint32_t n, gaps;
        const char *want;
    } rows[] = {
        {16384, 0, "'#0' and '#1', which can share memory"},
        {16385, 0, "16385 buffers, which no step needs all, take more than 2^28 comparisons"},
        {16383, 2, "'#0' and '#1', which can share memory"},
        {16383, 3, "16383 buffers, which no step needs all, take more than 2^28 comparisons"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        owned_problem *p = NULL;
        owned_plan *plan = NULL;

        assert_ok(ctx, mpl_problem_new(ctx, "many", rows[i].n, &p));
        p->n_steps = 9;
        for (mpl_buffer b = 0; b < p->n; b++)
            p->bytes[b] = 1, p->birth[b] = b == 1, p->death[b] = b == 0 ? 1 : 9;
        assert_ok(ctx, mpl_new(ctx, p->gap_begin, p->n + 1));
        assert_ok(ctx, mpl_new(ctx, p->gap_from, rows[i].gaps));
        assert_ok(ctx, mpl_new(ctx, p->gap_to, rows[i].gaps));
        for (mpl_buffer b = 2; b <= p->n; b++)
            p->gap_begin[b] = b > 2 ? rows[i].gaps : 0;
        for (uint32_t k = 0; k < rows[i].gaps; k++)
            p->gap_from[k] = 2 * k + 2, p->gap_to[k] = 2 * k + 3;
        assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
        assert_ok(ctx, mpl_new(ctx, plan->witness, p->n));
        plan->claim = MPL_FEASIBLE;
        plan->n_witness = p->n;
        for (mpl_buffer b = 0; b < p->n; b++)
            plan->offset[b] = plan->witness[b] = b;
        assert_status(ctx, mpl_verify(ctx, p, plan), MPL_EINVALID);
        if (strstr(ctx->message, rows[i].want) == NULL)
            fail_msg("%s; expected: %s", ctx->message, rows[i].want);
    }
}

TEST(claims_of_plans)
{
    tally t = {0};
    mpl_rng rng = mpl_rng_of(31);

    for (uint32_t round = 0; t.accepted + t.refused < asked(); round++) {
        mpl_problem *p = round % 32 == 31
                             ? wide_problem(ctx, &rng)
                             : random_problem(ctx, &rng, 2 + random_below(&rng, 12), round % 32);

        judge_claims(ctx, p, &rng, &t);
    }
    tell("claims with a witness", &t);
    assert_true(t.accepted > asked() / 8 && t.refused > asked() / 8);
}

/* ---- graphs ---- */

/* A graph as brute force sees it: which operations run before which, which touch which buffer, and
 * which buffers may therefore share bytes. */
typedef struct seen {
    const mpl_graph *g;
    const mpl_value_map *map;
    const mpl_problem *p;
    const mpl_plan *plan;
    bool later[MOST_OPS][MOST_OPS];          /* [a][b]: b always runs after a */
    bool touches[MOST_OPS][MOST_BUFFERS];    /* [operation][buffer] */
    bool before[MOST_BUFFERS][MOST_BUFFERS]; /* everything on the first runs before everything on
                                                the second */
    bool over[MOST_BUFFERS][MOST_BUFFERS];   /* [in][out] in place */
} seen;

static bool makes(const mpl_graph *g, mpl_op op, mpl_value v)
{
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        if (g->op_out[i] == v)
            return true;
    return false;
}

static bool reads(const mpl_graph *g, mpl_op op, mpl_value v)
{
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        if (g->op_in[i] == v)
            return true;
    return false;
}

static void see_order(seen *s)
{
    const mpl_graph *g = s->g;

    for (mpl_op a = 0; a < g->n_ops; a++)
        for (mpl_value v = 0; v < g->n_values; v++)
            for (mpl_op b = 0; b < g->n_ops; b++)
                s->later[a][b] = s->later[a][b] || (makes(g, a, v) && reads(g, b, v));
    for (mpl_op k = 0; k < g->n_ops; k++)
        for (mpl_op a = 0; a < g->n_ops; a++)
            for (mpl_op b = 0; b < g->n_ops; b++)
                s->later[a][b] = s->later[a][b] || (s->later[a][k] && s->later[k][b]);
}

static bool runs(const seen *s, mpl_op op)
{
    return s->map->op_nothing == NULL || !s->map->op_nothing[op];
}

/* Whether value v lies, at least in part, in buffer b. */
static bool lies_in(const seen *s, mpl_value v, mpl_buffer b)
{
    mpl_buffer first = s->map->value_buffer[v];
    uint32_t n = s->map->value_buffers != NULL ? s->map->value_buffers[v] : 1;

    return first != MPL_NONE && first <= b && b < first + n;
}

/* Whether value v is all of b. */
static bool is_whole(const seen *s, mpl_value v, mpl_buffer b)
{
    return s->map->value_buffer[v] == b && !lies_in(s, v, b + 1) && !mpl_value_strided(s->map, v) &&
           s->map->value_offset[v] == (s->p->inside != NULL ? s->p->inside_at[b] : 0);
}

/* Whether op's first result, of the same size, may overwrite operand i. */
static bool may_overwrite(const mpl_graph *g, mpl_op op, uint32_t i)
{
    unsigned traits = mpl_op_table[g->op_kind[op]].traits;
    mpl_value in = g->op_in[g->op_in_begin[op] + i], out = g->op_out[g->op_out_begin[op]];

    return ((traits & MPL_IN_PLACE_ANY) != 0 || ((traits & MPL_IN_PLACE_0) != 0 && i == 0)) &&
           g->value_bytes[in] == g->value_bytes[out] && g->value_type[in] == g->value_type[out];
}

/* Whether op makes `out` from `in`, in place, when everything else has finished with `in` and
 * nothing has begun with `out`. */
static bool overwrites(const seen *s, mpl_op op, mpl_buffer in, mpl_buffer out)
{
    const mpl_graph *g = s->g;
    bool good = false;

    for (uint32_t i = 0; i < g->op_in_begin[op + 1] - g->op_in_begin[op]; i++)
        good = good ||
               (is_whole(s, g->op_in[g->op_in_begin[op] + i], in) &&
                g->value_bytes[g->op_in[g->op_in_begin[op] + i]] > 0 && may_overwrite(g, op, i));
    if (!good || !runs(s, op) || s->map->value_buffer[g->op_out[g->op_out_begin[op]]] != out ||
        lies_in(s, g->op_out[g->op_out_begin[op]], out + 1) ||
        mpl_value_strided(s->map, g->op_out[g->op_out_begin[op]]))
        return false;
    for (mpl_op other = 0; other < g->n_ops; other++)
        if (other != op && ((s->touches[other][in] && !s->later[other][op]) ||
                            (s->touches[other][out] && !s->later[op][other])))
            return false;
    return s->p->bytes[out] <= s->p->bytes[in];
}

static void see_buffers(seen *s)
{
    uint32_t n_ops = s->g->n_ops, n = s->p->n;

    for (mpl_op op = 0; op < n_ops; op++)
        for (mpl_buffer b = 0; b < n; b++)
            for (mpl_value v = 0; runs(s, op) && v < s->g->n_values; v++)
                s->touches[op][b] =
                    s->touches[op][b] ||
                    (lies_in(s, v, b) && (makes(s->g, op, v) || reads(s->g, op, v)));
    for (mpl_buffer a = 0; a < n; a++)
        for (mpl_buffer b = 0; b < n; b++) {
            s->before[a][b] = true;
            for (uint32_t k = 0; k < n_ops * n_ops; k++)
                s->before[a][b] =
                    s->before[a][b] && !(s->touches[k / n_ops][a] && s->touches[k % n_ops][b] &&
                                         !s->later[k / n_ops][k % n_ops]);
            for (mpl_op op = 0; op < n_ops; op++)
                s->over[a][b] = s->over[a][b] || overwrites(s, op, a, b);
        }
}

/* Whether buffers are disjoint in every execution. */
static bool apart_in_all(const seen *s)
{
    for (mpl_buffer a = 0; a < s->p->n; a++)
        for (mpl_buffer b = 0; b < a; b++)
            if (share_a_byte(s->p, s->plan, a, b) && !s->before[a][b] && !s->before[b][a] &&
                !(s->plan->offset[a] == s->plan->offset[b] && (s->over[a][b] || s->over[b][a])))
                return false;
    return true;
}

/* ---- what is read ---- */

/* The byte of its pool where byte i of v lies; for values without strides. */
static uint64_t address(const seen *s, mpl_value v, uint64_t i)
{
    mpl_buffer b = s->map->value_buffer[v];

    return s->plan->offset[b] + s->map->value_offset[v] -
           (s->p->inside != NULL ? s->p->inside_at[b] : 0) + i;
}

/* Whether byte i of v and byte k of w are one byte of one value: parts, views, operands inside a
 * result. */
static bool same_contents(const seen *s, mpl_value v, uint64_t i, mpl_value w, uint64_t k)
{
    return s->map->value_root[v] == s->map->value_root[w] &&
           s->map->value_offset[v] + i == s->map->value_offset[w] + k;
}

/* Whether every operation that makes byte i of v runs after `op`; none makes an input. */
static bool made_after(const seen *s, mpl_op op, mpl_value v, uint64_t i)
{
    const mpl_graph *g = s->g;
    uint32_t n = 0;

    for (mpl_value made = 0; made < g->n_values; made++) {
        uint64_t at = s->map->value_offset[v] + i - s->map->value_offset[made];

        if (g->value_op[made] == MPL_NONE || !runs(s, g->value_op[made]) ||
            at >= g->value_bytes[made] || !same_contents(s, v, i, made, at))
            continue;
        if (!s->later[op][g->value_op[made]])
            return false;
        n++;
    }
    return n > 0;
}

/* Whether `writer`, putting a byte of w there, may overwrite byte i of v before `reader` (MPL_NONE:
 * the caller) has read it. */
static bool spoils(const seen *s, mpl_op reader, mpl_value v, uint64_t i, mpl_op writer,
                   mpl_value w)
{
    const mpl_graph *g = s->g;

    if ((reader != MPL_NONE && s->later[reader][writer]) || made_after(s, writer, v, i))
        return false;
    for (uint32_t k = 0;
         reader == writer && k < g->op_in_begin[reader + 1] - g->op_in_begin[reader]; k++)
        if (g->op_in[g->op_in_begin[reader] + k] == v && w == g->op_out[g->op_out_begin[reader]] &&
            may_overwrite(g, reader, k) && address(s, v, 0) == address(s, w, 0))
            return false;
    return true;
}

/* Whether in some execution `reader` finds a byte of v that is not v's. */
static bool misread(const seen *s, mpl_op reader, mpl_value v)
{
    const mpl_graph *g = s->g;

    for (mpl_value w = 0; s->map->value_buffer[v] != MPL_NONE && w < g->n_values; w++) {
        uint64_t from, to;

        if (g->value_op[w] == MPL_NONE || !runs(s, g->value_op[w]) ||
            s->map->value_buffer[w] == MPL_NONE)
            continue;
        from = mpl_max_u64(address(s, v, 0), address(s, w, 0));
        to = mpl_min_u64(address(s, v, g->value_bytes[v]), address(s, w, g->value_bytes[w]));
        for (uint64_t at = from; at < to; at++) {
            uint64_t i = at - address(s, v, 0);

            if (!same_contents(s, v, i, w, at - address(s, w, 0)) &&
                spoils(s, reader, v, i, g->value_op[w], w))
                return true;
        }
    }
    return false;
}

static bool reads_right(const seen *s)
{
    for (mpl_op op = 0; op < s->g->n_ops; op++)
        for (uint32_t i = s->g->op_in_begin[op]; runs(s, op) && i < s->g->op_in_begin[op + 1]; i++)
            if (misread(s, op, s->g->op_in[i]))
                return false;
    for (uint32_t i = 0; i < s->g->n_outputs; i++)
        if (misread(s, MPL_NONE, s->g->output[i]))
            return false;
    return true;
}

/* ---- plans of graphs ---- */

typedef struct graph_tally {
    tally by_graph, by_problem;
    uint32_t cautious; /* refused, although every read would find its value */
} graph_tally;

/* The verifier of graphs refuses what brute force does; what both verifiers accept is read right in
 * every execution. */
static void judge_graph(mpl_ctx *ctx, uint64_t seed, const seen *s, mpl_plan *plan, graph_tally *t)
{
    bool good = right(s->p, plan), apart = apart_in_all(s), read = reads_right(s);
    mpl_status by_problem = mpl_verify(ctx, s->p, plan),
               by_graph = mpl_verify_graph(ctx, s->g, s->map, s->p, plan);

    if ((by_graph == MPL_OK) != apart)
        fail_msg("seed %" PRIu64 ": from the graph: %s (%s); all pairs of bytes: %s", seed,
                 mpl_status_name(by_graph), ctx->message, apart ? "right" : "wrong");
    if ((by_problem == MPL_OK) != good)
        fail_msg("seed %" PRIu64 ": the verifier: %s (%s); all pairs of bytes: %s", seed,
                 mpl_status_name(by_problem), ctx->message, good ? "right" : "wrong");
    if (good && (!apart || !read))
        fail_msg("seed %" PRIu64 ": accepted, but %s", seed,
                 apart ? "a read finds other bytes" : "the graph forbids it");
    t->by_graph.accepted += apart, t->by_graph.refused += !apart;
    t->by_problem.accepted += good, t->by_problem.refused += !good;
    t->cautious += !apart && read;
}

/* Moves a family (or a buffer) by whole slots, or onto another, or swaps two. */
static void move(const mpl_problem *p, mpl_plan *plan, mpl_rng *rng)
{
    mpl_buffer b = random_below(rng, p->n), c = random_below(rng, p->n);
    uint64_t was = plan->offset[b], to;
    uint32_t how = random_below(rng, 4);

    to = how == 0   ? was + p->align[b]
         : how == 1 ? was - mpl_min_u64(was, p->align[b])
                    : plan->offset[c];
    for (mpl_buffer a = 0; a < p->n; a++)
        if (a == b || (p->inside != NULL && p->inside[a] == p->inside[b] && to >= p->inside_at[b]))
            plan->offset[a] = a == b ? to : to - p->inside_at[b] + p->inside_at[a];
    if (how == 3)
        plan->offset[c] = was;
}

static void changed_plans_of_graph(mpl_ctx *ctx, mpl_rng *rng, uint64_t seed, graph_tally *t)
{
    static seen s;
    mpl_problem_options o = random_options(seed);
    owned_graph *g = random_graph(ctx, seed, 4 + random_below(rng, MOST_OPS - 3), 3);
    owned_map *map = NULL;
    owned_problem *p = NULL;
    owned_plan *plan = NULL;
    mpl_op order[MOST_OPS];
    uint64_t offset[MOST_BUFFERS];

    o.parallel = true;
    o.concat = seed % 2 == 0 ? MPL_CONCAT_SHARE : MPL_CONCAT_COPY;
    assert_true(g->n_ops <= MOST_OPS);
    assert_ok(ctx, mpl_order_random(ctx, g, seed, order));
    assert_ok(ctx, mpl_problem_from_graph(ctx, g, order, &o, &p, &map));
    assert_true(p->n <= MOST_BUFFERS);
    plan = p->n > 0 ? drawn_plan(ctx, p, rng) : NULL;
    memset(&s, 0, sizeof s);
    s.g = g, s.map = map, s.p = p, s.plan = plan;
    see_order(&s);
    see_buffers(&s);
    memcpy(offset, plan != NULL ? plan->offset : offset, p->n * sizeof *offset);
    for (uint32_t i = 0; plan != NULL && i <= CHANGES; i++) {
        judge_graph(ctx, seed, &s, plan, t);
        if (i % 3 == 0)
            memcpy(plan->offset, offset, p->n * sizeof *offset);
        move(p, plan, rng);
    }
}

TEST(plans_of_graphs)
{
    graph_tally t = {{0}, {0}, 0};
    mpl_rng rng = mpl_rng_of(29);

    for (uint64_t seed = 0; t.by_graph.accepted + t.by_graph.refused < asked(); seed++)
        changed_plans_of_graph(ctx, &rng, seed, &t);
    tell("graphs with views, from the graph", &t.by_graph);
    tell("the same, from the problem", &t.by_problem);
    print_message(
        "%u refused though every read would find its value: nobody reads what is spoilt, or the "
        "pair is not offered\n",
        t.cautious);
    assert_true(t.by_graph.accepted > asked() / 8 && t.by_graph.refused > asked() / 8);
}

TESTS(plans_of_problems, plans_of_many, claims_of_plans, claims_of_many, plans_of_graphs)
