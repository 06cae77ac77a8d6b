/* Forged certificates: true ones of random problems (lists, orders, pairs, pools, memories,
 * families, gaps, alignments, fixed offsets) are altered to claim what brute force says is false.
 * No false claim is accepted, all true ones are, and a second checker, written from
 * planners/verify/CERTIFICATES.md alone, agrees on each. MPL_FORGERIES: how many; make certificates
 * asks for a million. */
#include "tests/support/small_general.h"

#include "tests/support/proof_text.h"
#include "tests/support/root_problems.h"

#include "planners/verify/certify.h"

enum { HEIGHTS = 100, LINES_EACH = 24, WORLDS = 3, OTHER = 3 };

/* A problem: buffers of one or two pools, plus what brute force does not model: a family, a gap. */
typedef struct world {
    small all;
    uint32_t pool[MOST], n_pools;
    uint32_t part, of, at; /* a family of two; part == of: none */
    uint32_t gap_of, gap;  /* a step at which a buffer is not needed; 0: none */
    uint32_t height[2]; /* per pool: no plan is lower, or one at least is as high; HEIGHTS: none */
} world;

/* ---- ground truth ---- */

/* The problem restricted to some buffers, with the order that the others imply between them. */
static small part_of(const small *p, const bool in[MOST])
{
    bool reach[MOST][MOST];
    uint32_t from[MOST];
    small q = {.serial = p->serial};

    find_reach(p, reach);
    for (uint32_t i = 0; i < p->n; i++)
        if (in[i])
            from[q.n++] = i;
    for (uint32_t i = 0; i < q.n; i++) {
        q.birth[i] = p->birth[from[i]], q.death[i] = p->death[from[i]];
        q.size[i] = p->size[from[i]], q.align[i] = p->align[from[i]],
        q.fixed[i] = p->fixed[from[i]];
        for (uint32_t j = 0; j < q.n; j++) {
            q.arc[i][j] = reach[from[i]][from[j]];
            q.pair[i][j] = p->pair[from[i]][from[j]];
        }
    }
    return q;
}

static bool pool_fits(const world *w, uint32_t pool, uint32_t within)
{
    bool in[MOST];
    small part;

    for (uint32_t i = 0; i < w->all.n; i++)
        in[i] = w->pool[i] == pool;
    part = part_of(&w->all, in);
    return brute_fits(&part, within);
}

static bool is_plain(const world *w)
{
    return w->part == w->of && w->gap == 0;
}

/* The least cost of pool 0's buffers in these memories; UINT64_MAX: they do not fit. */
static uint64_t brute_cost(const world *w, const mpl_spread *s)
{
    uint64_t least = UINT64_MAX, ways = 1;

    for (uint32_t i = 0; i < w->all.n; i++)
        ways *= w->pool[i] == 0 ? s->n : 1;
    for (uint64_t way = 0; way < ways; way++) {
        uint64_t rest = way, cost = 0;
        uint32_t memory[MOST];
        bool fits = true;

        for (uint32_t i = 0; i < w->all.n; i++, rest /= w->pool[i - 1] == 0 ? s->n : 1) {
            memory[i] = w->pool[i] == 0 ? (uint32_t)(rest % s->n) : s->n;
            cost += w->pool[i] == 0 ? s->price[memory[i]] * w->all.size[i] : 0;
        }
        for (uint32_t k = 0; k < s->n && cost < least && fits; k++) {
            bool in[MOST];
            small part;

            for (uint32_t i = 0; i < w->all.n; i++)
                in[i] = memory[i] == k;
            part = part_of(&w->all, in);
            fits = brute_fits(&part, s->capacity[k] < HEIGHTS ? (uint32_t)s->capacity[k] : HEIGHTS);
        }
        least = fits && cost < least ? cost : least;
    }
    return least;
}

/* ---- problems ---- */

static mpl_problem *make_problem(mpl_ctx *ctx, const world *w)
{
    mpl_problem *p = problem_of(ctx, &w->all);

    if (w->n_pools > 1) {
        assert_ok(ctx, mpl_realloc_bytes(ctx, (void **)&p->pool_name, 1, 2, sizeof *p->pool_name));
        assert_ok(ctx, mpl_realloc_bytes(ctx, (void **)&p->pool_capacity, 1, 2,
                                         sizeof *p->pool_capacity));
        assert_non_null(p->pool_name[1] = mpl_strdup(ctx, "other"));
        p->pool_capacity[1] = MPL_NO_CAPACITY;
        p->n_pools = 2;
    }
    memcpy(p->pool, w->pool, p->n * sizeof *p->pool);
    if (w->part != w->of) {
        assert_ok(ctx, mpl_new(ctx, p->inside, p->n));
        assert_ok(ctx, mpl_new(ctx, p->inside_at, p->n));
        count_up(p->n, p->inside);
        p->inside[w->part] = w->of, p->inside_at[w->part] = w->at;
    }
    if (w->gap > 0) {
        assert_ok(ctx, mpl_new(ctx, p->gap_begin, p->n + (size_t)1));
        assert_ok(ctx, mpl_new(ctx, p->gap_from, 1));
        assert_ok(ctx, mpl_new(ctx, p->gap_to, 1));
        for (mpl_buffer b = w->gap_of; b < p->n; b++)
            p->gap_begin[b + 1] = 1;
        p->gap_from[0] = w->gap, p->gap_to[0] = w->gap + 1;
    }
    return p;
}

/* The plan of `exact`, or NULL if it finds none. */
static mpl_plan *planned(mpl_ctx *ctx, const mpl_problem *p, const char *planner,
                         const char *capacities, const char *prices)
{
    const char *keys[] = {"capacities", "cost"}, *values[] = {capacities, prices};
    mpl_plan *plan = NULL;
    mpl_run run = mpl_run_default(ctx);

    run.n_params = capacities != NULL ? 2 : 0;
    run.param_key = keys, run.param_value = values;
    if (mpl_planner_run(mpl_planner_find(planner), &run, p, &plan) != MPL_OK)
        return NULL;
    return plan;
}

/* Whether the world is usable: valid, and not too high. Computes its heights. */
static bool judge(mpl_ctx *ctx, world *w)
{
    mpl_problem *p = make_problem(ctx, w);
    bool sane = mpl_problem_check(ctx, p) == MPL_OK;

    if (sane && is_plain(w)) {
        for (uint32_t k = 0; k < w->n_pools && sane; k++) {
            sane = pool_fits(w, k, HEIGHTS);
            for (w->height[k] = 0; sane && !pool_fits(w, k, w->height[k]); w->height[k]++)
                ;
        }
    } else if (sane) {
        mpl_plan *plan = planned(ctx, p, "exact", NULL, NULL);

        sane = plan != NULL && plan->claim != MPL_INFEASIBLE;
        for (uint32_t k = 0; k < w->n_pools && sane; k++)
            w->height[k] = (uint32_t)plan->pool_bytes[k];
        mpl_plan_free(ctx, plan);
    }
    mpl_problem_free(ctx, p);
    return sane;
}

/* Adds `more` in the other pool. */
static void add_pool(world *w, const small *more)
{
    uint32_t n = w->all.n;

    w->n_pools = 2;
    for (uint32_t i = 0; i < more->n && n + i < MOST; i++) {
        small *p = &w->all;

        w->pool[n + i] = 1 - w->pool[0];
        p->birth[n + i] = more->birth[i], p->death[n + i] = more->death[i],
                     p->size[n + i] = more->size[i];
        p->align[n + i] = more->align[i], p->fixed[n + i] = -1;
        for (uint32_t j = 0; j < n + i; j++)
            p->arc[j][n + i] = j >= n && more->arc[j - n][i];
        p->n = n + i + 1;
    }
}

static bool interval_root(uint32_t which, small *out)
{
    static const small roots[] = {ROOT_PROBLEMS(size)};

    *out = roots[which];
    out->serial = true;
    return true;
}

/* Makes one change; drops pairs that sizes or times no longer allow. */
static void vary(mpl_rng *rng, small *p)
{
    uint32_t i = below(rng, p->n);

    if (!p->serial) {
        *p = mutated(rng, p);
    } else if (below(rng, 3) == 0) {
        p->death[i] += p->death[i] < 9;
    } else if (below(rng, 2) == 0) {
        p->birth[i] -= p->birth[i] > 0;
    } else {
        p->size[i] += below(rng, 2) == 0 || p->size[i] == 1 ? 1 : UINT32_MAX;
    }
    if (below(rng, 6) == 0)
        p->align[below(rng, p->n)] = 1u << below(rng, 3);
    keep_possible_pairs(p);
}

static void add_family(mpl_rng *rng, world *w)
{
    const small *p = &w->all;
    uint32_t a = below(rng, p->n), b = below(rng, p->n);

    if (a == b || w->pool[a] != w->pool[b] || p->align[a] < p->align[b] || p->fixed[a] >= 0 ||
        p->fixed[b] >= 0 || p->pair[a][b] || p->pair[b][a])
        return;
    w->of = a, w->part = b;
    w->at = (p->size[a] + p->align[b] - 1) / p->align[b] * p->align[b];
}

static void make_world(mpl_rng *rng, world *w)
{
    uint32_t kind = below(rng, 4);

    *w = (world){.n_pools = 1};
    if (kind < 2) {
        if (kind == 0)
            w->all = root((int)below(rng, 2));
        else
            interval_root(below(rng, 2), &w->all);
        for (uint32_t k = below(rng, 6); k > 0; k--)
            vary(rng, &w->all);
    } else {
        w->all = random_small(rng, kind == 2, below(rng, 3) == 0);
        w->all.n = w->all.n > 7 ? 7 : w->all.n;
    }
    if (below(rng, 2) == 0)
        offer_pairs(rng, &w->all);
    if (below(rng, 6) == 0)
        w->all.fixed[below(rng, w->all.n)] = (int32_t)(8 * below(rng, 2));
    if (below(rng, 3) == 0) {
        small more = random_small(rng, w->all.serial, false);

        for (uint32_t i = 0; i < w->all.n && below(rng, 2) == 0; i++)
            for (uint32_t k = 0; k < w->all.n; k++)
                w->pool[k] = 1;
        add_pool(w, &more);
    }
}

/* A copy with one difference. */
static world bent_world(mpl_rng *rng, const world *from)
{
    world w = *from;

    switch (below(rng, 4)) {
    case 0:
        add_family(rng, &w);
        break;
    case 1:
        w.gap_of = below(rng, w.all.n);
        w.gap = w.all.serial && w.all.death[w.gap_of] - w.all.birth[w.gap_of] > 2
                    ? w.all.birth[w.gap_of] + 1
                    : 0;
        break;
    case 2:
        w.all.align[below(rng, w.all.n)] = 1u << below(rng, 3);
        break;
    default:
        vary(rng, &w.all);
    }
    for (uint32_t i = from->all.n; i < w.all.n; i++)
        w.pool[i] = w.pool[0];
    return w;
}

/* ---- forgeries ---- */

typedef struct forger {
    mpl_ctx ctx;
    mpl_rng rng;
    FILE *second;                 /* the second checker's input; NULL: none */
    world world[WORLDS];          /* the base, and altered ones */
    mpl_problem *problem[WORLDS]; /* NULL: unusable */
    mpl_plan *source[2 + OTHER];  /* optimal; infeasible, one per pool; over memories */
    uint64_t n_false, n_true, n_true_accepted, n_accepted, n_problems, n_lines;
} forger;

static mpl_plan *copied(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *from)
{
    mpl_plan *plan = NULL;
    uint32_t n = from->n < p->n ? from->n : p->n;

    assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
    memcpy(plan->offset, from->offset, n * sizeof *plan->offset);
    plan->claim = from->claim;
    plan->bound_bytes = from->bound_bytes;
    plan->refutation = from->refutation;
    if (from->refutation.steps != NULL)
        assert_non_null(plan->refutation.steps = mpl_strdup(ctx, from->refutation.steps));
    if (from->n_witness > 0) {
        assert_ok(ctx, mpl_new(ctx, plan->witness, p->n + (size_t)1));
        memcpy(plan->witness, from->witness, from->n_witness * sizeof *plan->witness);
        plan->n_witness = from->n_witness < p->n ? from->n_witness : p->n; /* a file has no more */
    }
    if (from->spread.n > 0) {
        assert_ok(ctx, mpl_plan_spread(ctx, plan, from->spread.n));
        memcpy(plan->spread.capacity, from->spread.capacity, from->spread.n * sizeof(uint64_t));
        memcpy(plan->spread.price, from->spread.price, from->spread.n * sizeof(uint64_t));
        memcpy(plan->spread.memory, from->spread.memory, n * sizeof(uint32_t));
        plan->spread.cost = from->spread.cost, plan->spread.cost_bound = from->spread.cost_bound;
    }
    return plan;
}

/* Makes the plan look as if it needed `more` more bytes, and the proof as if it said so. */
static void raise_claim(const mpl_problem *p, mpl_plan *plan, uint32_t more)
{
    mpl_buffer top = 0;
    mpl_refutation *proof = &plan->refutation;

    proof->within += more;
    if (plan->claim == MPL_INFEASIBLE) {
        p->pool_capacity[proof->pool] += more;
        return;
    }
    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == 0 && (p->pool[top] != 0 ||
                                plan->offset[b] + p->bytes[b] > plan->offset[top] + p->bytes[top]))
            top = b;
    if (plan->spread.n > 0) {
        plan->spread.cost_bound += more;
        return;
    }
    plan->bound_bytes += more;
    if (plan->claim == MPL_OPTIMAL)
        plan->offset[top] += more;
}

/* Another set of buffers, with the bound that it would prove. */
static void forge_witness(mpl_rng *rng, const mpl_problem *p, mpl_plan *plan)
{
    bool in[MOST] = {false};
    uint64_t sum = 0;

    for (uint32_t i = 0; i < plan->n_witness; i++)
        in[plan->witness[i]] = true;
    in[below(rng, p->n)] ^= true;
    in[below(rng, p->n)] |= below(rng, 2) == 0;
    plan->n_witness = 0;
    for (mpl_buffer b = 0; b < p->n; b++)
        if (in[b])
            plan->witness[plan->n_witness++] = b, sum += p->bytes[b];
    if (plan->n_witness == 0)
        plan->witness[plan->n_witness++] = 0, sum = p->bytes[0];
    if (sum > plan->bound_bytes)
        raise_claim(p, plan, (uint32_t)(sum - plan->bound_bytes));
    plan->bound_bytes = sum;
}

static void insert(text *t, uint32_t at, const char *record)
{
    if (t->n + 1 >= MOST_RECORDS)
        return;
    memmove(t->record[at + 1], t->record[at], (t->n++ - at) * sizeof *t->record);
    snprintf(t->record[at], sizeof t->record[at], "%.23s", record);
}

/* The next record of these kinds, from a random position on; t->n if there is none. */
static uint32_t find(mpl_rng *rng, const text *t, const char *kinds)
{
    uint32_t from = below(rng, t->n);

    for (uint32_t k = 0; k < t->n; k++)
        if (strchr(kinds, t->record[(from + k) % t->n][0]) != NULL)
            return (from + k) % t->n;
    return t->n;
}

/* One change that a forger would make to a text. */
static void forge_text(mpl_rng *rng, text *t, uint32_t n)
{
    static const char *const large[] =
        ROW("72057594037927936", "1152921504606846975", "576460752303423488",
            "18446744073709551616", "262143", "2305843009213693951");
    uint32_t i, j;
    char record[64];

    switch (t->n > 0 ? below(rng, 8) : 8) {
    case 0: /* a set of another scope: a buffer joins it, here or there */
        snprintf(record, sizeof record, "c%u,%u", below(rng, n), below(rng, 3));
        insert(t, below(rng, t->n), record);
        break;
    case 1: /* a record is used outside of its scope */
        if ((i = find(rng, t, "crudo")) < t->n) {
            snprintf(record, sizeof record, "%.23s", t->record[i]);
            remove_records(t, i, i + 1);
            insert(t, below(rng, t->n + 1), record);
        }
        break;
    case 2: /* circular: a state is referred to within itself, or before it is refuted */
        insert(t, below(rng, t->n), "k");
        if ((i = find(rng, t, "xzm")) < t->n)
            snprintf(t->record[i], sizeof t->record[i], "m%u", below(rng, 3));
        break;
    case 3: /* an empty set, or another */
        if ((i = find(rng, t, "xbr")) < t->n) {
            char *at = t->record[i][0] == 'b' ? t->record[i] + 1 : strchr(t->record[i], ',');
            unsigned a = (unsigned)strtoul(t->record[i] + 1, NULL, 10), set = below(rng, 9);

            if (at != NULL && t->record[i][0] == 'x')
                snprintf(t->record[i], sizeof t->record[i], "x%u,%u", a, set);
            else if (at != NULL && t->record[i][0] == 'b')
                snprintf(t->record[i], sizeof t->record[i], "b%u,%u", set, 2 + below(rng, 2));
        }
        break;
    case 4: /* a split of nothing relevant, with a refuted child */
        if ((i = find(rng, t, "xzm")) < t->n) {
            char leaf[24];

            memcpy(leaf, t->record[i], sizeof leaf);
            snprintf(record, sizeof record, "s%u,%u", below(rng, n), below(rng, n));
            insert(t, i, record);
            insert(t, i + 1, leaf);
        }
        break;
    case 5: /* overflow */
        i = below(rng, t->n);
        snprintf(record, sizeof record, "%c%s%s", t->record[i][0], large[below(rng, 6)],
                 strchr(t->record[i], ',') != NULL ? strchr(t->record[i], ',') : "");
        if (below(rng, 2) == 0 && strchr(t->record[i], ',') != NULL)
            snprintf(record, sizeof record, "%.*s,%s",
                     (int)(strrchr(t->record[i], ',') - t->record[i]), t->record[i],
                     large[below(rng, 6)]);
        snprintf(t->record[i], sizeof t->record[i], "%.23s", record);
        break;
    case 6: /* repeats a part of the text */
        i = below(rng, t->n), j = state_end(t, i);
        for (uint32_t k = i; k < j && j + k - i < MOST_RECORDS - 1 && k - i < 20; k++) {
            snprintf(record, sizeof record, "%.23s", t->record[k]);
            insert(t, j + k - i, record);
        }
        break;
    default:
        change_text(rng, t);
    }
}

static void forge_steps(forger *f, const mpl_problem *p, mpl_plan *plan)
{
    static text t;
    static char steps[sizeof t.record];

    cut(plan->refutation.steps, &t);
    for (uint32_t k = 1 + below(&f->rng, 2); k > 0; k--)
        forge_text(&f->rng, &t, p->n);
    paste(&t, steps, sizeof steps);
    mpl_free(&f->ctx, plan->refutation.steps);
    assert_non_null(plan->refutation.steps = mpl_strdup(&f->ctx, steps));
}

/* Spreads pool 0 over memories, which no record mentions. */
static void forge_memories(forger *f, const mpl_problem *p, mpl_plan *plan)
{
    if (plan->spread.n > 0)
        return;
    assert_ok(&f->ctx, mpl_plan_spread(&f->ctx, plan, 1 + below(&f->rng, 2)));
    for (uint32_t k = 0; k < plan->spread.n; k++) {
        plan->spread.capacity[k] = plan->claim == MPL_INFEASIBLE
                                       ? plan->refutation.within + below(&f->rng, 2)
                                       : MPL_NO_CAPACITY;
        plan->spread.price[k] = 1 + below(&f->rng, 2);
    }
    for (mpl_buffer b = 0; b < p->n; b++)
        plan->spread.cost += p->pool[b] == 0 ? p->bytes[b] * plan->spread.price[0] : 0;
    plan->spread.cost_bound = plan->spread.cost;
    if (plan->claim != MPL_INFEASIBLE && below(&f->rng, 2) == 0) {
        plan->bound_bytes = 0;
        plan->n_witness = 0;
    }
}

static void forge(forger *f, const mpl_problem *p, mpl_plan *plan)
{
    switch (below(&f->rng, 6)) {
    case 0:
        raise_claim(p, plan, 1 + below(&f->rng, 3));
        break;
    case 1:
        if (p->n_pools > 1 && plan->refutation.steps != NULL)
            plan->refutation.pool ^= 1;
        if (plan->claim == MPL_INFEASIBLE) /* the refutation is now claimed for the other pool */
            p->pool_capacity[plan->refutation.pool] = plan->refutation.within;
        break;
    case 2:
        forge_memories(f, p, plan);
        break;
    case 3:
        if (plan->n_witness > 0)
            forge_witness(&f->rng, p, plan);
        else
            plan->claim = (mpl_claim)below(&f->rng, 4);
        break;
    default:
        if (plan->refutation.steps != NULL)
            forge_steps(f, p, plan);
    }
}

/* Whether the claim is true; if unknown, it counts as true. */
static bool is_true(const world *w, const mpl_problem *p, const mpl_plan *plan)
{
    uint32_t pool = plan->refutation.pool;
    uint64_t least;

    if (plan->claim == MPL_UNKNOWN)
        return true;
    if (plan->claim == MPL_INFEASIBLE && (plan->spread.n == 0 || pool != 0))
        return p->pool_capacity[pool] != MPL_NO_CAPACITY &&
               p->pool_capacity[pool] < w->height[pool];
    if (plan->spread.n == 0)
        return plan->bound_bytes <= w->height[0] ||
               (plan->claim == MPL_FEASIBLE && plan->refutation.steps == NULL);
    if (!is_plain(w))
        return true;
    least = brute_cost(w, &plan->spread);
    return plan->claim == MPL_INFEASIBLE
               ? least == UINT64_MAX
               : plan->claim == MPL_FEASIBLE || plan->spread.cost_bound <= least;
}

static void judge_line(forger *f, const world *w, mpl_problem *p, mpl_plan *plan, bool known)
{
    mpl_certified proved;
    bool sincere = is_true(w, p, plan);
    mpl_status st = mpl_certify(&f->ctx, p, plan, &proved);
    char *json = NULL;

    f->n_lines++;
    f->n_true += known, f->n_false += !sincere;
    f->n_true_accepted += known && st == MPL_OK, f->n_accepted += st == MPL_OK;
    if (f->second != NULL || (st == MPL_OK && !sincere) || (known && st != MPL_OK))
        assert_ok(&f->ctx, mpl_plan_text(&f->ctx, p, plan, NULL, &json));
    if (st != MPL_OK && st != MPL_EINVALID)
        fail_msg("%s", f->ctx.message);
    if (st == MPL_OK && !sincere)
        fail_msg("accepted, and false: %s", json);
    if (known && st != MPL_OK)
        fail_msg("refused, and true: %s: %s", f->ctx.message, json);
    if (st == MPL_OK && proved.evidence != MPL_EVIDENCE_NONE &&
        proved.evidence != MPL_EVIDENCE_PRICES)
        assert_true(proved.bound <= w->height[proved.pool]);
    if (f->second != NULL)
        fprintf(f->second, "%d %s\n", st != MPL_OK, json);
    mpl_free(&f->ctx, json);
}

/* The true certificates of a problem. */
static void find_sources(forger *f)
{
    mpl_ctx *ctx = &f->ctx;
    mpl_problem *p = f->problem[0];
    world *w = &f->world[0];
    char capacities[32], prices[32];

    f->source[0] = planned(ctx, p, "exact", NULL, NULL);
    assert_non_null(f->source[0]);
    assert_int_equal(f->source[0]->claim, MPL_OPTIMAL);
    assert_int_equal(f->source[0]->peak_bytes, w->height[0]);
    for (uint32_t k = 0; k < w->n_pools; k++) {
        p->pool_capacity[k] = w->height[k] > 0 ? w->height[k] - 1 : MPL_NO_CAPACITY;
        f->source[1 + k] = w->height[k] > 0 ? planned(ctx, p, "exact", NULL, NULL) : NULL;
        p->pool_capacity[k] = MPL_NO_CAPACITY;
    }
    if (w->all.n > 7 || w->all.fixed[0] >= 0)
        return;
    snprintf(capacities, sizeof capacities, "%u/%u/-", 1 + below(&f->rng, 8),
             2 + below(&f->rng, 9));
    snprintf(prices, sizeof prices, "%u/%u/%u", below(&f->rng, 2), 1 + below(&f->rng, 2),
             2 + below(&f->rng, 3));
    f->source[3] = planned(ctx, p, "spill", capacities, prices);
}

/* One line: a true certificate, or an altered one. */
static void make_line(forger *f, uint32_t line)
{
    uint32_t which = below(&f->rng, line < 6 ? 1 : WORLDS),
             from = line < 4 ? line : below(&f->rng, 4);
    mpl_problem *p = f->problem[which];
    mpl_plan *plan;
    bool known = line < 4 && from < 3;

    if (p == NULL || f->source[from] == NULL)
        return;
    plan = copied(&f->ctx, p, f->source[from]);
    for (uint32_t k = 0; k < p->n_pools; k++)
        p->pool_capacity[k] = MPL_NO_CAPACITY;
    if (plan->claim == MPL_INFEASIBLE && plan->spread.n == 0)
        p->pool_capacity[plan->refutation.pool] = plan->refutation.within;
    for (uint32_t k = line < 4 ? 0 : 1 + below(&f->rng, 2); k > 0; k--)
        forge(f, p, plan);
    judge_line(f, &f->world[which], p, plan, known);
    mpl_plan_free(&f->ctx, plan);
}

static void one_problem(forger *f)
{
    for (;;) {
        make_world(&f->rng, &f->world[0]);
        if (judge(&f->ctx, &f->world[0]))
            break;
    }
    f->n_problems++;
    f->problem[0] = make_problem(&f->ctx, &f->world[0]);
    find_sources(f);
    for (uint32_t k = 1; k < WORLDS; k++) {
        f->world[k] = bent_world(&f->rng, &f->world[0]);
        f->problem[k] = judge(&f->ctx, &f->world[k]) ? make_problem(&f->ctx, &f->world[k]) : NULL;
    }
    for (uint32_t line = 0; line < LINES_EACH; line++)
        make_line(f, line);
    for (uint32_t k = 0; k < WORLDS; k++)
        mpl_problem_free(&f->ctx, f->problem[k]), f->problem[k] = NULL;
    for (uint32_t k = 0; k < 2 + OTHER; k++)
        mpl_plan_free(&f->ctx, f->source[k]), f->source[k] = NULL;
}

TEST(forgeries_are_refused_by_both_checkers)
{
    const char *asked = getenv("MPL_FORGERIES"), *seed = getenv("MPL_SEED");
    uint64_t n = asked != NULL ? strtoull(asked, NULL, 10) : 8000;
    static forger f;

    f.ctx = mpl_ctx_default();
    f.rng = mpl_rng_of(seed != NULL ? strtoull(seed, NULL, 10) : 41);
    if (system("command -v python3 >/dev/null") == 0)
        f.second = popen("python3 scripts/certify.py --agree", "w");
    else
        print_message("skip: no python3 for the second checker\n");
    while (f.n_lines < n)
        one_problem(&f);
    print_message("%" PRIu64 " problems: %" PRIu64 " true certificates, %" PRIu64
                  " accepted; %" PRIu64 " false claims, none accepted; %" PRIu64
                  " accepted in all\n",
                  f.n_problems, f.n_true, f.n_true_accepted, f.n_false, f.n_accepted);
    assert_true(f.n_false > n / 5);
    assert_true(f.second == NULL || pclose(f.second) == 0);
    assert_int_equal(f.ctx.n_live, 0);
}

TESTS(forgeries_are_refused_by_both_checkers)
