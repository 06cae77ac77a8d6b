/* exact_core.c -- searches a conflict relation without its dominated bodies. See exact_general.h.
 *
 * Idea     A body is dominated if all its rivals are rivals of a larger body that is not a rival
 *          itself. It takes that body's offset and is left out. The remaining core is searched by
 *          sections if it is an interval order, else by cliques.
 * Source   this project
 * Ticks    Those of the searches, and bodies compared. */
#include "planners/exact/exact_general.h"

#include "graphs/problem/before.h"
#include "graphs/problem/subset.h"
#include "graphs/core/rng.h"
#include "planners/place/sort.h"

#define MAX_SEARCHED   2000  /* bodies of the largest core that is searched */
#define ARENA_TICKS    10000 /* of local search in lap 0, for each body */
#define NODES_PER_ITEM 3     /* in lap 0; grows by half each lap */
#define MAX_LAPS       64    /* node limits of 10^11 a body */
#define NOISE_PER_LAP  4     /* places that candidates move at random */

enum { BY_SIZE, BY_LOAD, BY_AREA, N_ORDERS };

static const struct member {
    uint8_t order, pick;
} members[] = {
    {BY_LOAD, MPL_PICK_LOW},         {BY_SIZE, MPL_PICK_TIGHT},      {BY_AREA, MPL_PICK_SCORE_HIGH},
    {BY_LOAD, MPL_PICK_SCORE_TIGHT}, {BY_AREA, MPL_PICK_TIGHT},      {BY_SIZE, MPL_PICK_SCORE_LOW},
    {BY_SIZE, MPL_PICK_LOW},         {BY_LOAD, MPL_PICK_SCORE_HIGH}, {BY_AREA, MPL_PICK_LOW},
};

/* The bodies of a relation that must be searched, and their search. */
typedef struct core {
    uint32_t n_all;      /* bodies of the whole relation */
    uint32_t *dominator; /* [n_all] body whose offset it takes; itself: not dropped */
    uint32_t *dropped;   /* [n_dropped] dropped bodies, in order of dropping */
    uint32_t n_dropped;
    mpl_bodies *b;    /* remaining bodies */
    uint32_t *id;     /* [b->n] ids in the whole relation */
    uint64_t *offset; /* [b->n] the best plan, of `height` bytes */
    uint64_t bound, height;
    bool opened, serial;
    mpl_cliques *cliques;
    mpl_graph_search *search;
    uint32_t *rank[N_ORDERS], *noisy; /* [b->n] */
} core;

typedef struct solver {
    mpl_ctx *ctx;
    const mpl_problem *p;
    mpl_exact_effort *effort;
} solver;

static void core_fini(mpl_ctx *ctx, core *t)
{
    mpl_bodies_free(ctx, t->b);
    mpl_cliques_free(ctx, t->cliques);
    mpl_graph_search_free(t->search);
    for (int k = 0; k < N_ORDERS; k++)
        mpl_free(ctx, t->rank[k]);
    mpl_free_each(ctx, t->dominator, t->dropped, t->id, t->offset, t->noisy);
}

static bool uses(const solver *s, mpl_exact_rule rule)
{
    return mpl_exact_uses(s->effort->without, rule);
}

static bool left_to_try(const solver *s)
{
    return !s->effort->by_clock && s->effort->ticks < s->effort->tick_limit;
}

/* ---- dominated bodies ---- */

/* Whether i may always take j's offset. */
static bool dominates(const mpl_bodies *b, uint32_t j, uint32_t i)
{
    bool same = b->bytes[i] == b->bytes[j] && b->align[i] == b->align[j];

    if (b->bytes[i] > b->bytes[j] || b->align[i] > b->align[j] || mpl_rivals(b, i, j) ||
        (b->fixed != NULL && b->fixed[i] != MPL_UNFIXED))
        return false;
    for (uint32_t w = 0; w < b->n_words; w++) {
        uint64_t mine = b->rival[(size_t)i * b->n_words + w],
                 its = b->rival[(size_t)j * b->n_words + w];

        if ((mine & ~its) != 0)
            return false;
        same = same && mine == its;
    }
    return !same || j < i || (b->fixed != NULL && b->fixed[j] != MPL_UNFIXED);
}

/* Drops the bodies of t->b that another one dominates; returns whether there were any. */
static bool drop_dominated(solver *s, core *t, uint32_t *kept, uint32_t *n_kept)
{
    const mpl_bodies *b = t->b;

    *n_kept = 0;
    s->effort->ticks += (uint64_t)b->n * b->n / 4;
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t by = i;

        for (uint32_t j = 0; b->dist == NULL && j < b->n && by == i; j++)
            if (j != i && dominates(b, j, i))
                by = j;
        t->dominator[t->id[i]] = t->id[by];
        if (by == i)
            kept[(*n_kept)++] = i;
        else
            t->dropped[t->n_dropped++] = t->id[i];
    }
    return *n_kept < b->n;
}

/* Makes the core: drops dominated bodies until none is left. */
static mpl_status core_init(solver *s, const mpl_bodies *all, core *t)
{
    mpl_status st = MPL_OK;
    uint32_t *kept = NULL, n_kept;
    mpl_bodies *smaller = NULL;

    t->n_all = all->n;
    t->height = UINT64_MAX;
    MPL_TRY(mpl_new_each(s->ctx, all->n, t->dominator, t->dropped, t->id, t->offset, kept));
    mpl_ids_ascending(all->n, t->id);
    mpl_ids_ascending(all->n, kept);
    n_kept = all->n;
    do {
        MPL_TRY(mpl_bodies_subset(s->ctx, s->p, t->b != NULL ? t->b : all, kept, n_kept, &smaller));
        mpl_bodies_free(s->ctx, t->b);
        t->b = smaller, smaller = NULL;
        for (uint32_t i = 0; i < n_kept; i++)
            t->id[i] = t->id[kept[i]];
    } while (uses(s, MPL_RULE_dominated) && drop_dominated(s, t, kept, &n_kept));
    for (uint32_t i = 0; i < t->b->n; i++)
        t->dominator[t->id[i]] = t->id[i];
out:
    mpl_free(s->ctx, kept);
    return st;
}

/* Restricts a plan of all bodies, offset[n_all], to the core. */
static void hand_down(core *t, const uint64_t *offset)
{
    for (uint32_t i = 0; i < t->b->n; i++)
        t->offset[i] = offset[t->id[i]];
    t->height = mpl_bodies_height(t->b, t->offset);
}

/* Extends the plan of the core: dropped bodies take their dominator's offset. */
static void hand_up(const core *t, uint64_t *offset)
{
    for (uint32_t i = 0; i < t->b->n; i++)
        offset[t->id[i]] = t->offset[i];
    for (uint32_t i = 0; i < t->n_all; i++) {
        uint32_t j = i;

        while (t->dominator[j] != j)
            j = t->dominator[j];
        offset[i] = offset[j];
    }
}

/* ---- heights and orders ---- */

static uint64_t in_units(const mpl_bodies *b, uint64_t bytes)
{
    return (bytes + b->unit - 1) / b->unit * b->unit;
}

/* The least height >= bytes, or largest <= bytes, at which a body can end, ignoring alignment. */
static uint64_t height_above(const mpl_bodies *b, uint64_t bytes)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < b->n; i++) {
        uint64_t rest = b->bytes[i] % b->unit;

        least = mpl_min_u64(least, bytes <= rest ? rest : in_units(b, bytes - rest) + rest);
    }
    return least;
}

static uint64_t height_below(const mpl_bodies *b, uint64_t bytes)
{
    uint64_t largest = 0;

    for (uint32_t i = 0; i < b->n; i++) {
        uint64_t rest = b->bytes[i] % b->unit;

        if (bytes >= rest)
            largest = mpl_max_u64(largest, (bytes - rest) / b->unit * b->unit + rest);
    }
    return largest;
}

static uint64_t order_key(const mpl_bodies *b, uint32_t i, int order)
{
    uint64_t load = 0, area;

    if (order == BY_SIZE)
        return b->size[i];
    for (uint32_t w = 0; w < b->n_words; w++)
        for (uint64_t bits = b->rival[(size_t)i * b->n_words + w]; bits != 0; bits &= bits - 1)
            load += b->size[w * 64 + (uint32_t)__builtin_ctzll(bits)] / b->unit;
    if (order == BY_LOAD)
        return load;
    return mpl_mul_bytes(load, b->size[i] / b->unit, &area) ? area : UINT64_MAX;
}

static mpl_status make_ranks(mpl_ctx *ctx, core *t)
{
    mpl_status st = MPL_OK;
    uint64_t *key = NULL;
    uint32_t *sorted = NULL, n = t->b->n;

    MPL_TRY(mpl_new_each(ctx, n, key, sorted));
    for (int order = 0; order < N_ORDERS; order++) {
        MPL_TRY(mpl_new(ctx, t->rank[order], n));
        for (uint32_t i = 0; i < n; i++)
            key[i] = UINT64_MAX - order_key(t->b, i, order);
        mpl_ids_ascending(n, sorted);
        MPL_TRY(mpl_sort_ids(ctx, n, sorted, key));
        for (uint32_t i = 0; i < n; i++)
            t->rank[order][sorted[i]] = i;
    }
    MPL_TRY(mpl_new(ctx, t->noisy, n));
out:
    mpl_free_each(ctx, key, sorted);
    return st;
}

static uint32_t n_ahead(const uint64_t *row, uint32_t n_words)
{
    uint32_t n = 0;

    for (uint32_t w = 0; w < n_words; w++)
        n += (uint32_t)__builtin_popcountll(row[w]);
    return n;
}

/* Live ranges of a serial problem with gaps, if the gaps do not change the conflicts of t. */
static bool copy_lifetimes(const mpl_problem *p, const mpl_bodies *b, uint32_t *birth,
                           uint32_t *death)
{
    for (uint32_t i = 0; i < b->n; i++) {
        birth[i] = p->birth[b->buffer[i]];
        death[i] = p->death[b->buffer[i]];
        for (uint32_t j = 0; j < i; j++)
            if ((birth[i] < death[j] && birth[j] < death[i]) != mpl_rivals(b, i, j))
                return false;
    }
    return true;
}

/* Finds live ranges whose overlaps are the conflicts of t; *found: they exist. In an interval order
 * the sets of predecessors are nested. A body's birth is the number of its set, its death the first
 * set that contains it. */
static mpl_status find_lifetimes(solver *s, const core *t, uint32_t *birth, uint32_t *death,
                                 bool *found)
{
    mpl_status st = MPL_OK;
    const mpl_bodies *b = t->b;
    uint64_t *ahead = NULL;
    uint64_t *n_before = NULL;
    uint32_t *sorted = NULL, step = 0;

    *found = false;
    MPL_TRY(mpl_new(s->ctx, ahead, (size_t)b->n * b->n_words));
    MPL_TRY(mpl_new_each(s->ctx, b->n, n_before, sorted));
    if (s->p->gap_begin != NULL && b->n == b->n_members)
        *found = copy_lifetimes(s->p, b, birth, death);
    if (s->p->before == NULL || b->n < b->n_members)
        goto out;
    for (uint32_t i = 0; i < b->n; i++)
        for (uint32_t j = 0; j < b->n; j++) { /* body i is member i: ids ascend in every subset */
            bool is_ahead = mpl_is_before(s->p->before, b->buffer[j], b->buffer[i]);

            if (i != j && (is_ahead || mpl_is_before(s->p->before, b->buffer[i], b->buffer[j])) ==
                              mpl_rivals(b, i, j))
                goto out; /* the conflicts are not those of the order */
            if (is_ahead)
                mpl_bit_add(ahead + (size_t)i * b->n_words, j);
        }
    for (uint32_t i = 0; i < b->n; i++) {
        n_before[i] = n_ahead(ahead + (size_t)i * b->n_words, b->n_words);
        death[i] = MPL_NONE;
    }
    mpl_ids_ascending(b->n, sorted);
    MPL_TRY(mpl_sort_ids(s->ctx, b->n, sorted, n_before));
    for (uint32_t k = 0; k < b->n; k++) {
        const uint64_t *row = ahead + (size_t)sorted[k] * b->n_words;
        const uint64_t *last = ahead + (size_t)sorted[k > 0 ? k - 1 : 0] * b->n_words;

        for (uint32_t w = 0; w < b->n_words; w++)
            if ((last[w] & ~row[w]) != 0)
                goto out;
        step += k > 0 && n_before[sorted[k]] != n_before[sorted[k - 1]];
        birth[sorted[k]] = step;
        for (uint32_t j = 0; j < b->n; j++)
            if (death[j] == MPL_NONE && mpl_bit_has(row, j))
                death[j] = step;
    }
    for (uint32_t j = 0; j < b->n; j++)
        death[j] = death[j] == MPL_NONE ? step + 1 : death[j];
    *found = true;
out:
    mpl_free_each(s->ctx, ahead, n_before, sorted);
    return st;
}

/* Makes a problem with steps of the core, with buffers 0, 1, ..; NULL: it is no interval order. */
static mpl_status make_serial(solver *s, const core *t, mpl_problem **out)
{
    mpl_status st = MPL_OK;
    const mpl_bodies *b = t->b;
    mpl_problem *p = NULL;
    uint32_t *begin = NULL, *item = NULL;
    bool found;

    MPL_TRY(mpl_lists_new(s->ctx, b->n, b->n_members, b->body, b->buffer, &begin, &item));
    MPL_TRY(mpl_problem_subset(s->ctx, s->p, &(mpl_members){b->n, begin, item}, 0, NULL, &p));
    MPL_TRY(find_lifetimes(s, t, p->birth, p->death, &found));
    if (!found)
        goto out;
    p->n_steps = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        mpl_assert(p->bytes[i] == b->bytes[i] && p->align[i] == b->align[i]);
        p->n_steps = p->death[i] > p->n_steps ? p->death[i] : p->n_steps;
    }
    *out = p, p = NULL;
out:
    mpl_free_each(s->ctx, begin, item);
    mpl_problem_free(s->ctx, p);
    return st;
}

/* Searches the core by sections. */
static mpl_status search_serial(solver *s, core *t, uint64_t goal, uint32_t lap, bool *found)
{
    mpl_status st = MPL_OK;
    const mpl_bodies *b = t->b;
    mpl_problem *p = NULL;
    mpl_plan *plan = NULL;
    mpl_run run;
    mpl_watch quiet = {.stop = s->effort->watch != NULL ? s->effort->watch->stop : NULL};
    uint64_t height;

    MPL_TRY(make_serial(s, t, &p));
    *found = p != NULL;
    if (!*found)
        goto out;
    if (goal > t->bound)
        p->pool_capacity[0] = goal;
    MPL_TRY(mpl_plan_new(s->ctx, p, &plan));
    run = mpl_run_default(s->ctx);
    run.seed = s->effort->seed + lap;
    run.deadline_ns = s->effort->deadline_ns;
    run.n_threads = s->effort->n_threads;
    run.watch = &quiet;
    run.budget_ticks = mpl_min_u64(s->effort->tick_limit - s->effort->ticks,
                                   ((uint64_t)b->n * 200000) << (lap < 20 ? lap : 20));
    st = mpl_exact_serial(&run, p, &(mpl_exact_options){.without = s->effort->without}, plan);
    s->effort->ticks += run.ticks;
    s->effort->by_clock = s->effort->by_clock || run.stopped_by_clock;
    if (st == MPL_ELIMIT)
        st = MPL_OK;
    MPL_TRY(st);
    t->bound = mpl_max_u64(t->bound, plan->bound_bytes);
    height = mpl_bodies_height(b, plan->offset);
    if (height < t->height) {
        t->height = height;
        memcpy(t->offset, plan->offset, b->n * sizeof *t->offset);
    }
out:
    mpl_plan_free(s->ctx, plan);
    mpl_problem_free(s->ctx, p);
    return st;
}

static mpl_status try_member(solver *s, core *t, const struct member *member, uint64_t cap,
                             uint32_t lap, mpl_rng *rng, mpl_exact_verdict *verdict)
{
    mpl_status st = MPL_OK;
    mpl_graph_search *q = t->search;
    uint32_t noise = uses(s, MPL_RULE_noise) ? NOISE_PER_LAP * lap : 0;

    for (uint32_t i = 0; i < t->b->n; i++)
        t->noisy[i] = t->rank[member->order][i] + (uint32_t)mpl_rng_below(rng, noise + 1);
    q->effort = s->effort;
    q->rank = t->noisy;
    q->pick = (mpl_exact_pick)member->pick;
    q->node_limit = (uint64_t)NODES_PER_ITEM * t->b->n + 20;
    for (uint32_t k = 0; k < lap && q->node_limit < UINT64_MAX / 4; k++)
        q->node_limit += q->node_limit / 2;
    mpl_graph_search_cap(q, cap);
    *verdict = mpl_graph_search_run(q);
    if (q->no_memory) {
        st = MPL_EMEM;
    } else if (*verdict == MPL_EXACT_FOUND) {
        memcpy(t->offset, q->est, t->b->n * sizeof *t->offset);
        t->height = mpl_bodies_height(t->b, t->offset);
    } else if (*verdict == MPL_EXACT_FAILED) {
        t->bound = mpl_max_u64(t->bound, height_above(t->b, cap + 1));
    }
    return st;
}

/* Looks for a plan of t within cap, with every member of the portfolio. */
static mpl_status try_cap(solver *s, core *t, uint64_t cap, uint32_t lap,
                          mpl_exact_verdict *verdict)
{
    mpl_rng rng;

    *verdict = MPL_EXACT_STOPPED;
    rng = mpl_rng_of(s->effort->seed + lap * UINT64_C(0x632be59bd9b4e019) + cap);
    for (size_t k = 0;
         k < sizeof members / sizeof *members && *verdict == MPL_EXACT_STOPPED && left_to_try(s);
         k++)
        MPL_PASS(try_member(s, t, &members[k], cap, lap, &rng, verdict));
    return MPL_OK;
}

/* Bisects between goal and height. A stopped attempt counts as a failure. */
static mpl_status descend(solver *s, core *t, uint64_t goal, uint32_t lap)
{
    uint64_t low = goal;

    while (left_to_try(s) && low < t->height) {
        uint64_t middle = height_below(t->b, low + (t->height - low) / 2);
        mpl_exact_verdict verdict;

        if (middle <= low)
            middle = height_above(t->b, low + 1);
        if (middle >= t->height)
            break;
        MPL_PASS(try_cap(s, t, middle, lap, &verdict));
        if (verdict != MPL_EXACT_FOUND)
            low = mpl_max_u64(middle, goal);
    }
    return MPL_OK;
}

static mpl_status open_core(solver *s, core *t)
{
    t->opened = true;
    if (t->b->n > MAX_SEARCHED)
        return MPL_OK;
    MPL_PASS(mpl_cliques_new(s->ctx, t->b, s->effort, &t->cliques));
    t->bound = mpl_max_u64(t->bound, mpl_cliques_bound(t->b, t->cliques));
    return MPL_OK;
}

/* Runs a few rounds of local search, more each lap. */
static mpl_status improve(solver *s, const mpl_bodies *b, uint64_t goal, uint32_t lap,
                          uint64_t *offset, uint64_t *height)
{
    mpl_status st = MPL_OK;
    uint64_t limit = s->effort->tick_limit, more = ((uint64_t)b->n * ARENA_TICKS)
                                                   << (lap < 20 ? lap : 20);

    if (s->effort->ticks < limit && more < limit - s->effort->ticks)
        s->effort->tick_limit = s->effort->ticks + more;
    s->effort->seed += lap;
    if (!uses(s, MPL_RULE_arena))
        s->effort->tick_limit = 0; /* greedy orders only */
    st = mpl_arena_search(s->ctx, b, goal, s->effort, offset, height);
    s->effort->seed -= lap;
    s->effort->tick_limit = limit;
    return st;
}

static mpl_status search_core(solver *s, core *t, uint64_t enough, uint64_t most, uint32_t lap)
{
    mpl_exact_verdict verdict = MPL_EXACT_FAILED;
    bool found = false;

    if (!t->opened)
        MPL_PASS(open_core(s, t));
    if (t->height <= mpl_max_u64(t->bound, enough) || t->bound > most)
        return MPL_OK;
    MPL_PASS(improve(s, t->b, mpl_max_u64(t->bound, enough), lap, t->offset, &t->height));
    if (t->height <= mpl_max_u64(t->bound, enough) || t->cliques == NULL)
        return MPL_OK;
    if (uses(s, MPL_RULE_intervals) && (lap == 0 || t->serial))
        MPL_PASS(search_serial(s, t, mpl_max_u64(t->bound, enough), lap, &found));
    t->serial = found;
    if (found)
        return MPL_OK;
    if (!uses(s, MPL_RULE_graph))
        return MPL_OK;
    if (t->search == NULL) {
        MPL_PASS(mpl_graph_search_new(s->ctx, t->b, t->cliques, &t->search));
        MPL_PASS(make_ranks(s->ctx, t));
    }
    while (verdict == MPL_EXACT_FAILED && left_to_try(s) &&
           t->height > mpl_max_u64(t->bound, enough) && t->bound <= most)
        MPL_PASS(try_cap(s, t, mpl_max_u64(t->bound, enough), lap, &verdict));
    if (verdict == MPL_EXACT_STOPPED)
        MPL_PASS(descend(s, t, mpl_max_u64(t->bound, enough), lap));
    return MPL_OK;
}

mpl_status mpl_general_solve(mpl_ctx *ctx, const mpl_problem *p, const mpl_bodies *b,
                             uint64_t enough, uint64_t most, mpl_exact_effort *effort,
                             uint64_t *offset, uint64_t *height, uint64_t *bound)
{
    mpl_status st = MPL_OK;
    solver s = {.ctx = ctx, .p = p, .effort = effort};
    core t = {0};

    if (b->n == 0) {
        *height = 0;
        return MPL_OK;
    }
    MPL_TRY(improve(&s, b, mpl_max_u64(*bound, enough), 0, offset, height));
    if (*height <= mpl_max_u64(*bound, enough) || *bound > most)
        goto out;
    MPL_TRY(core_init(&s, b, &t));
    hand_down(&t, offset);
    t.bound = *bound;
    for (uint32_t lap = 0; lap < MAX_LAPS && left_to_try(&s) &&
                           t.height > mpl_max_u64(t.bound, enough) && t.bound <= most;
         lap++)
        MPL_TRY(search_core(&s, &t, enough, most, lap));
    if (t.height < *height)
        hand_up(&t, offset);
    *height = mpl_min_u64(*height, t.height);
    *bound = t.bound;
out:
    core_fini(ctx, &t);
    return st;
}

/* ---- refutations ---- */

#define FIRST_NODES 256 /* of the first search that writes a proof */

typedef struct refuter {
    solver *s;
    uint64_t cap, node_limit;
    mpl_proof *proof;
    bool any; /* an attempt stopped, so a refutation may still be found */
    bool done;
} refuter;

static mpl_status refute_serial(refuter *r, core *t, const mpl_problem *p)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = r->s->ctx;
    mpl_exact_part one = {0};
    mpl_exact_verdict verdict = MPL_EXACT_STOPPED;
    mpl_buffer *ids = NULL;

    MPL_TRY(mpl_new(ctx, ids, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        ids[b] = b;
    st = mpl_exact_part_init(ctx, p, ids, p->n, &one);
    ids = NULL;
    MPL_TRY(st);
    for (uint32_t i = 0; i < one.n; i++)
        one.buffer[i] = t->b->buffer[one.buffer[i]];
    if (!one.vast)
        MPL_TRY(mpl_exact_part_prove(&one, r->cap, r->s->effort, r->proof, &verdict));
    r->done = verdict == MPL_EXACT_FAILED;
out:
    mpl_exact_part_fini(&one);
    mpl_free(ctx, ids);
    return st;
}

/* Whether rivals connect all bodies. */
static bool is_connected(const mpl_bodies *b)
{
    uint64_t reached[(MAX_SEARCHED + 63) / 64] = {1};
    uint32_t n = 1;

    for (uint32_t before = 0; before < n;) {
        before = n;
        for (uint32_t i = 0; i < b->n; i++) {
            bool touches = false;

            for (uint32_t w = 0; w < b->n_words && !mpl_bit_has(reached, i); w++)
                touches = touches || (reached[w] & b->rival[(size_t)i * b->n_words + w]) != 0;
            if (touches) {
                mpl_bit_add(reached, i);
                n++;
            }
        }
    }
    return n == b->n;
}

/* Makes one round of attempts, each with its own choice of cells. */
static mpl_status refute_graph(refuter *r, core *t)
{
    mpl_graph_search *q = t->search;
    mpl_exact_verdict verdict = MPL_EXACT_STOPPED;
    size_t mark = r->proof->n;

    MPL_PASS(mpl_graph_search_prove(q, r->proof));
    q->apart = !is_connected(t->b);
    q->effort = r->s->effort;
    q->node_limit = r->node_limit;
    mpl_graph_search_cap(q, r->cap);
    for (size_t k = 0; k < sizeof members / sizeof *members && verdict == MPL_EXACT_STOPPED; k++) {
        if (!left_to_try(r->s) || r->proof->failed)
            break;
        q->rank = t->rank[members[k].order];
        q->pick = (mpl_exact_pick)members[k].pick;
        r->proof->n = mark;
        if (!q->apart) /* else each component is named at its turn */
            mpl_proof_add(r->proof, 'o', t->b->buffer[0], 0, 0);
        verdict = mpl_graph_search_run(q);
        if (q->no_memory || (r->proof->failed && !r->proof->full))
            MPL_PASS(MPL_EMEM);
    }
    r->done = verdict == MPL_EXACT_FAILED && !r->proof->failed;
    if (!r->done) /* the next round writes it anew */
        r->proof->n = mark;
    if (verdict == MPL_EXACT_FOUND)
        t->height = 0;
    r->any = r->any || verdict == MPL_EXACT_STOPPED;
    return MPL_OK;
}

/* Does nothing if a plan is known, be it only here (height 0). */
static mpl_status refute_core(refuter *r, core *t)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;

    if (t->b->n > MAX_SEARCHED || t->height <= r->cap)
        goto out;
    if (uses(r->s, MPL_RULE_intervals) && !t->serial && t->search == NULL) {
        MPL_TRY(make_serial(r->s, t, &p));
        t->serial = p != NULL;
        if (p != NULL)
            MPL_TRY(refute_serial(r, t, p));
    }
    if (t->serial)
        goto out;
    if (t->search == NULL) {
        MPL_TRY(mpl_cliques_new(r->s->ctx, t->b, r->s->effort, &t->cliques));
        MPL_TRY(mpl_graph_search_new(r->s->ctx, t->b, t->cliques, &t->search));
        MPL_TRY(make_ranks(r->s->ctx, t));
    }
    MPL_TRY(refute_graph(r, t));
out:
    mpl_problem_free(r->s->ctx, p);
    return st;
}

mpl_status mpl_general_refute(mpl_ctx *ctx, const mpl_problem *p, const mpl_bodies *b, uint64_t cap,
                              const uint64_t *offset, mpl_exact_effort *effort, mpl_proof *proof,
                              mpl_exact_verdict *verdict)
{
    mpl_status st = MPL_OK;
    solver s = {.ctx = ctx, .p = p, .effort = effort};
    core t = {0};
    refuter r = {.s = &s, .cap = cap, .node_limit = FIRST_NODES, .proof = proof, .any = true};
    size_t mark = proof->n;

    *verdict = MPL_EXACT_STOPPED;
    if (b->n == 0)
        return MPL_OK;
    MPL_TRY(core_init(&s, b, &t));
    if (offset != NULL)
        hand_down(&t, offset);
    for (uint32_t k = 0; k < t.n_dropped; k++) /* dropped bodies have one member and its number */
        mpl_proof_add(proof, 'd', b->buffer[t.dropped[k]], 0, 0);
    for (; r.any && !r.done && left_to_try(&s) && !proof->failed; r.node_limit *= 4) {
        r.any = false;
        MPL_TRY(refute_core(&r, &t));
    }
    *verdict = r.done ? MPL_EXACT_FAILED : r.any ? MPL_EXACT_STOPPED : MPL_EXACT_FOUND;
    if (!r.done)
        proof->n = mark;
out:
    core_fini(ctx, &t);
    return st;
}
