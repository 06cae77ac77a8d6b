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

static bool uses(const solver *self, mpl_exact_rule rule)
{
    return mpl_exact_uses(self->effort->without, rule);
}

static bool left_to_try(const solver *self)
{
    return !self->effort->by_clock && self->effort->ticks < self->effort->tick_limit;
}

/* ---- dominated bodies ---- */

/* Whether i may always take j's offset. */
static bool dominates(const mpl_bodies *bodies, uint32_t j, uint32_t i)
{
    bool same = bodies->bytes[i] == bodies->bytes[j] && bodies->align[i] == bodies->align[j];

    if (bodies->bytes[i] > bodies->bytes[j] || bodies->align[i] > bodies->align[j] ||
        mpl_rivals(bodies, i, j) || (bodies->fixed != NULL && bodies->fixed[i] != MPL_UNFIXED))
        return false;
    for (uint32_t w = 0; w < bodies->n_words; w++) {
        uint64_t mine = bodies->rival[(size_t)i * bodies->n_words + w],
                 its = bodies->rival[(size_t)j * bodies->n_words + w];

        if ((mine & ~its) != 0)
            return false;
        same = same && mine == its;
    }
    return !same || j < i || (bodies->fixed != NULL && bodies->fixed[j] != MPL_UNFIXED);
}

/* Drops the bodies of t->b that another one dominates; returns whether there were any. */
static bool drop_dominated(solver *self, core *t, uint32_t *kept, uint32_t *n_kept)
{
    const mpl_bodies *bodies = t->b;

    *n_kept = 0;
    self->effort->ticks += (uint64_t)bodies->n * bodies->n / 4;
    for (uint32_t i = 0; i < bodies->n; i++) {
        uint32_t by = i;

        for (uint32_t j = 0; bodies->dist == NULL && j < bodies->n && by == i; j++)
            if (j != i && dominates(bodies, j, i))
                by = j;
        t->dominator[t->id[i]] = t->id[by];
        if (by == i)
            kept[(*n_kept)++] = i;
        else
            t->dropped[t->n_dropped++] = t->id[i];
    }
    return *n_kept < bodies->n;
}

/* Makes the core: drops dominated bodies until none is left. */
static mpl_status core_init(solver *self, const mpl_bodies *all, core *t)
{
    mpl_status st = MPL_OK;
    uint32_t *kept = NULL, n_kept;
    mpl_bodies *smaller = NULL;

    t->n_all = all->n;
    t->height = UINT64_MAX;
    MPL_TRY(mpl_new_each(self->ctx, all->n, t->dominator, t->dropped, t->id, t->offset, kept));
    mpl_ids_ascending(all->n, t->id);
    mpl_ids_ascending(all->n, kept);
    n_kept = all->n;
    do {
        MPL_TRY(mpl_bodies_subset(self->ctx, self->p, t->b != NULL ? t->b : all, kept, n_kept,
                                  &smaller));
        mpl_bodies_free(self->ctx, t->b);
        t->b = smaller, smaller = NULL;
        for (uint32_t i = 0; i < n_kept; i++)
            t->id[i] = t->id[kept[i]];
    } while (uses(self, MPL_RULE_dominated) && drop_dominated(self, t, kept, &n_kept));
    for (uint32_t i = 0; i < t->b->n; i++)
        t->dominator[t->id[i]] = t->id[i];
out:
    mpl_free(self->ctx, kept);
    return st;
}

/* Restricts a plan of all bodies, offset[n_all], to the core. */
static void hand_down(core *self, const uint64_t *offset)
{
    for (uint32_t i = 0; i < self->b->n; i++)
        self->offset[i] = offset[self->id[i]];
    self->height = mpl_bodies_height(self->b, self->offset);
}

/* Extends the plan of the core: dropped bodies take their dominator's offset. */
static void hand_up(const core *self, uint64_t *offset)
{
    for (uint32_t i = 0; i < self->b->n; i++)
        offset[self->id[i]] = self->offset[i];
    for (uint32_t i = 0; i < self->n_all; i++) {
        uint32_t j = i;

        while (self->dominator[j] != j)
            j = self->dominator[j];
        offset[i] = offset[j];
    }
}

/* ---- heights and orders ---- */

static uint64_t in_units(const mpl_bodies *bodies, uint64_t bytes)
{
    return (bytes + bodies->unit - 1) / bodies->unit * bodies->unit;
}

/* The least height >= bytes, or largest <= bytes, at which a body can end, ignoring alignment. */
static uint64_t height_above(const mpl_bodies *bodies, uint64_t bytes)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < bodies->n; i++) {
        uint64_t rest = bodies->bytes[i] % bodies->unit;

        least = mpl_min_u64(least, bytes <= rest ? rest : in_units(bodies, bytes - rest) + rest);
    }
    return least;
}

static uint64_t height_below(const mpl_bodies *bodies, uint64_t bytes)
{
    uint64_t largest = 0;

    for (uint32_t i = 0; i < bodies->n; i++) {
        uint64_t rest = bodies->bytes[i] % bodies->unit;

        if (bytes >= rest)
            largest = mpl_max_u64(largest, (bytes - rest) / bodies->unit * bodies->unit + rest);
    }
    return largest;
}

static uint64_t order_key(const mpl_bodies *bodies, uint32_t i, int order)
{
    uint64_t load = 0, area;

    if (order == BY_SIZE)
        return bodies->size[i];
    for (uint32_t w = 0; w < bodies->n_words; w++)
        for (uint64_t bits = bodies->rival[(size_t)i * bodies->n_words + w]; bits != 0;
             bits &= bits - 1)
            load += bodies->size[w * 64 + (uint32_t)__builtin_ctzll(bits)] / bodies->unit;
    if (order == BY_LOAD)
        return load;
    return mpl_mul_bytes(load, bodies->size[i] / bodies->unit, &area) ? area : UINT64_MAX;
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
static bool copy_lifetimes(const mpl_problem *p, const mpl_bodies *bodies, uint32_t *birth,
                           uint32_t *death)
{
    for (uint32_t i = 0; i < bodies->n; i++) {
        birth[i] = p->birth[bodies->buffer[i]];
        death[i] = p->death[bodies->buffer[i]];
        for (uint32_t j = 0; j < i; j++)
            if ((birth[i] < death[j] && birth[j] < death[i]) != mpl_rivals(bodies, i, j))
                return false;
    }
    return true;
}

/* Finds live ranges whose overlaps are the conflicts of t; *found: they exist. In an interval order
 * the sets of predecessors are nested. A body's birth is the number of its set, its death the first
 * set that contains it. */
static mpl_status find_lifetimes(solver *self, const core *t, uint32_t *birth, uint32_t *death,
                                 bool *found)
{
    mpl_status st = MPL_OK;
    const mpl_bodies *bodies = t->b;
    uint64_t *ahead = NULL;
    uint64_t *n_before = NULL;
    uint32_t *sorted = NULL, step = 0;

    *found = false;
    MPL_TRY(mpl_new(self->ctx, ahead, (size_t)bodies->n * bodies->n_words));
    MPL_TRY(mpl_new_each(self->ctx, bodies->n, n_before, sorted));
    if (self->p->gap_begin != NULL && bodies->n == bodies->n_members)
        *found = copy_lifetimes(self->p, bodies, birth, death);
    if (self->p->before == NULL || bodies->n < bodies->n_members)
        goto out;
    for (uint32_t i = 0; i < bodies->n; i++)
        for (uint32_t j = 0; j < bodies->n; j++) { /* body i is member i: ids ascend in every subset
                                                    */
            bool is_ahead = mpl_is_before(self->p->before, bodies->buffer[j], bodies->buffer[i]);

            if (i != j && (is_ahead ||
                           mpl_is_before(self->p->before, bodies->buffer[i], bodies->buffer[j])) ==
                              mpl_rivals(bodies, i, j))
                goto out; /* the conflicts are not those of the order */
            if (is_ahead)
                mpl_bit_add(ahead + (size_t)i * bodies->n_words, j);
        }
    for (uint32_t i = 0; i < bodies->n; i++) {
        n_before[i] = n_ahead(ahead + (size_t)i * bodies->n_words, bodies->n_words);
        death[i] = MPL_NONE;
    }
    mpl_ids_ascending(bodies->n, sorted);
    MPL_TRY(mpl_sort_ids(self->ctx, bodies->n, sorted, n_before));
    for (uint32_t k = 0; k < bodies->n; k++) {
        const uint64_t *row = ahead + (size_t)sorted[k] * bodies->n_words;
        const uint64_t *last = ahead + (size_t)sorted[k > 0 ? k - 1 : 0] * bodies->n_words;

        for (uint32_t w = 0; w < bodies->n_words; w++)
            if ((last[w] & ~row[w]) != 0)
                goto out;
        step += k > 0 && n_before[sorted[k]] != n_before[sorted[k - 1]];
        birth[sorted[k]] = step;
        for (uint32_t j = 0; j < bodies->n; j++)
            if (death[j] == MPL_NONE && mpl_bit_has(row, j))
                death[j] = step;
    }
    for (uint32_t j = 0; j < bodies->n; j++)
        death[j] = death[j] == MPL_NONE ? step + 1 : death[j];
    *found = true;
out:
    mpl_free_each(self->ctx, ahead, n_before, sorted);
    return st;
}

/* Makes a problem with steps of the core, with buffers 0, 1, ..; NULL: it is no interval order. */
static mpl_status make_serial(solver *self, const core *t, mpl_problem **out)
{
    mpl_status st = MPL_OK;
    const mpl_bodies *bodies = t->b;
    mpl_problem *p = NULL;
    uint32_t *begin = NULL, *item = NULL;
    bool found;

    MPL_TRY(mpl_lists_new(self->ctx, bodies->n, bodies->n_members, bodies->body, bodies->buffer,
                          &begin, &item));
    MPL_TRY(mpl_problem_subset(self->ctx, self->p, &(mpl_members){bodies->n, begin, item}, 0, NULL,
                               &p));
    MPL_TRY(find_lifetimes(self, t, p->birth, p->death, &found));
    if (!found)
        goto out;
    p->n_steps = 0;
    for (uint32_t i = 0; i < bodies->n; i++) {
        mpl_assert(p->bytes[i] == bodies->bytes[i] && p->align[i] == bodies->align[i]);
        p->n_steps = p->death[i] > p->n_steps ? p->death[i] : p->n_steps;
    }
    *out = p, p = NULL;
out:
    mpl_free_each(self->ctx, begin, item);
    mpl_problem_free(self->ctx, p);
    return st;
}

/* Searches the core by sections. */
static mpl_status search_serial(solver *self, core *t, uint64_t goal, uint32_t lap, bool *found)
{
    mpl_status st = MPL_OK;
    const mpl_bodies *bodies = t->b;
    mpl_problem *p = NULL;
    mpl_plan *plan = NULL;
    mpl_run run;
    mpl_watch quiet = {.stop = self->effort->watch != NULL ? self->effort->watch->stop : NULL};
    uint64_t height;

    MPL_TRY(make_serial(self, t, &p));
    *found = p != NULL;
    if (!*found)
        goto out;
    if (goal > t->bound)
        p->pool_capacity[0] = goal;
    MPL_TRY(mpl_plan_new(self->ctx, p, &plan));
    run = mpl_run_default(self->ctx);
    run.seed = self->effort->seed + lap;
    run.deadline_ns = self->effort->deadline_ns;
    run.n_threads = self->effort->n_threads;
    run.watch = &quiet;
    run.budget_ticks = mpl_min_u64(self->effort->tick_limit - self->effort->ticks,
                                   ((uint64_t)bodies->n * 200000) << (lap < 20 ? lap : 20));
    st = mpl_exact_serial(&run, p, &(mpl_exact_options){.without = self->effort->without}, plan);
    self->effort->ticks += run.ticks;
    self->effort->by_clock = self->effort->by_clock || run.stopped_by_clock;
    if (st == MPL_ELIMIT)
        st = MPL_OK;
    MPL_TRY(st);
    t->bound = mpl_max_u64(t->bound, plan->bound_bytes);
    height = mpl_bodies_height(bodies, plan->offset);
    if (height < t->height) {
        t->height = height;
        memcpy(t->offset, plan->offset, bodies->n * sizeof *t->offset);
    }
out:
    mpl_plan_free(self->ctx, plan);
    mpl_problem_free(self->ctx, p);
    return st;
}

static mpl_status try_member(solver *self, core *t, const struct member *member, uint64_t cap,
                             uint32_t lap, mpl_rng *rng, mpl_exact_verdict *verdict)
{
    mpl_status st = MPL_OK;
    mpl_graph_search *search = t->search;
    uint32_t noise = uses(self, MPL_RULE_noise) ? NOISE_PER_LAP * lap : 0;

    for (uint32_t i = 0; i < t->b->n; i++)
        t->noisy[i] = t->rank[member->order][i] + (uint32_t)mpl_rng_below(rng, noise + 1);
    search->effort = self->effort;
    search->rank = t->noisy;
    search->pick = (mpl_exact_pick)member->pick;
    search->node_limit = (uint64_t)NODES_PER_ITEM * t->b->n + 20;
    for (uint32_t k = 0; k < lap && search->node_limit < UINT64_MAX / 4; k++)
        search->node_limit += search->node_limit / 2;
    mpl_graph_search_cap(search, cap);
    *verdict = mpl_graph_search_run(search);
    if (search->no_memory) {
        st = MPL_EMEM;
    } else if (*verdict == MPL_EXACT_FOUND) {
        memcpy(t->offset, search->est, t->b->n * sizeof *t->offset);
        t->height = mpl_bodies_height(t->b, t->offset);
    } else if (*verdict == MPL_EXACT_FAILED) {
        t->bound = mpl_max_u64(t->bound, height_above(t->b, cap + 1));
    }
    return st;
}

/* Looks for a plan of t within cap, with every member of the portfolio. */
static mpl_status try_cap(solver *self, core *t, uint64_t cap, uint32_t lap,
                          mpl_exact_verdict *verdict)
{
    mpl_rng rng;

    *verdict = MPL_EXACT_STOPPED;
    rng = mpl_rng_of(self->effort->seed + lap * UINT64_C(0x632be59bd9b4e019) + cap);
    for (size_t k = 0;
         k < sizeof members / sizeof *members && *verdict == MPL_EXACT_STOPPED && left_to_try(self);
         k++)
        MPL_PASS(try_member(self, t, &members[k], cap, lap, &rng, verdict));
    return MPL_OK;
}

/* Bisects between goal and height. A stopped attempt counts as a failure. */
static mpl_status descend(solver *self, core *t, uint64_t goal, uint32_t lap)
{
    uint64_t low = goal;

    while (left_to_try(self) && low < t->height) {
        uint64_t middle = height_below(t->b, low + (t->height - low) / 2);
        mpl_exact_verdict verdict;

        if (middle <= low)
            middle = height_above(t->b, low + 1);
        if (middle >= t->height)
            break;
        MPL_PASS(try_cap(self, t, middle, lap, &verdict));
        if (verdict != MPL_EXACT_FOUND)
            low = mpl_max_u64(middle, goal);
    }
    return MPL_OK;
}

static mpl_status open_core(solver *self, core *t)
{
    t->opened = true;
    if (t->b->n > MAX_SEARCHED)
        return MPL_OK;
    MPL_PASS(mpl_cliques_new(self->ctx, t->b, self->effort, &t->cliques));
    t->bound = mpl_max_u64(t->bound, mpl_cliques_bound(t->b, t->cliques));
    return MPL_OK;
}

/* Runs a few rounds of local search, more each lap. */
static mpl_status improve(solver *self, const mpl_bodies *bodies, uint64_t goal, uint32_t lap,
                          uint64_t *offset, uint64_t *height)
{
    mpl_status st = MPL_OK;
    uint64_t limit = self->effort->tick_limit, more = ((uint64_t)bodies->n * ARENA_TICKS)
                                                      << (lap < 20 ? lap : 20);

    if (self->effort->ticks < limit && more < limit - self->effort->ticks)
        self->effort->tick_limit = self->effort->ticks + more;
    self->effort->seed += lap;
    if (!uses(self, MPL_RULE_arena))
        self->effort->tick_limit = 0; /* greedy orders only */
    st = mpl_arena_search(self->ctx, bodies, goal, self->effort, offset, height);
    self->effort->seed -= lap;
    self->effort->tick_limit = limit;
    return st;
}

static mpl_status search_core(solver *self, core *t, uint64_t enough, uint64_t most, uint32_t lap)
{
    mpl_exact_verdict verdict = MPL_EXACT_FAILED;
    bool found = false;

    if (!t->opened)
        MPL_PASS(open_core(self, t));
    if (t->height <= mpl_max_u64(t->bound, enough) || t->bound > most)
        return MPL_OK;
    MPL_PASS(improve(self, t->b, mpl_max_u64(t->bound, enough), lap, t->offset, &t->height));
    if (t->height <= mpl_max_u64(t->bound, enough) || t->cliques == NULL)
        return MPL_OK;
    if (uses(self, MPL_RULE_intervals) && (lap == 0 || t->serial))
        MPL_PASS(search_serial(self, t, mpl_max_u64(t->bound, enough), lap, &found));
    t->serial = found;
    if (found)
        return MPL_OK;
    if (!uses(self, MPL_RULE_graph))
        return MPL_OK;
    if (t->search == NULL) {
        MPL_PASS(mpl_graph_search_new(self->ctx, t->b, t->cliques, &t->search));
        MPL_PASS(make_ranks(self->ctx, t));
    }
    while (verdict == MPL_EXACT_FAILED && left_to_try(self) &&
           t->height > mpl_max_u64(t->bound, enough) && t->bound <= most)
        MPL_PASS(try_cap(self, t, mpl_max_u64(t->bound, enough), lap, &verdict));
    if (verdict == MPL_EXACT_STOPPED)
        MPL_PASS(descend(self, t, mpl_max_u64(t->bound, enough), lap));
    return MPL_OK;
}

mpl_status mpl_general_solve(mpl_ctx *ctx, const mpl_problem *p, const mpl_bodies *bodies,
                             uint64_t enough, uint64_t most, mpl_exact_effort *effort,
                             uint64_t *offset, uint64_t *height, uint64_t *bound)
{
    mpl_status st = MPL_OK;
    solver s = {.ctx = ctx, .p = p, .effort = effort};
    core t = {0};

    if (bodies->n == 0) {
        *height = 0;
        return MPL_OK;
    }
    MPL_TRY(improve(&s, bodies, mpl_max_u64(*bound, enough), 0, offset, height));
    if (*height <= mpl_max_u64(*bound, enough) || *bound > most)
        goto out;
    MPL_TRY(core_init(&s, bodies, &t));
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

static mpl_status refute_serial(refuter *self, core *t, const mpl_problem *p)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = self->s->ctx;
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
        MPL_TRY(mpl_exact_part_prove(&one, self->cap, self->s->effort, self->proof, &verdict));
    self->done = verdict == MPL_EXACT_FAILED;
out:
    mpl_exact_part_fini(&one);
    mpl_free(ctx, ids);
    return st;
}

/* Whether rivals connect all bodies. */
static bool is_connected(const mpl_bodies *bodies)
{
    uint64_t reached[(MAX_SEARCHED + 63) / 64] = {1};
    uint32_t n = 1;

    for (uint32_t before = 0; before < n;) {
        before = n;
        for (uint32_t i = 0; i < bodies->n; i++) {
            bool touches = false;

            for (uint32_t w = 0; w < bodies->n_words && !mpl_bit_has(reached, i); w++)
                touches =
                    touches || (reached[w] & bodies->rival[(size_t)i * bodies->n_words + w]) != 0;
            if (touches) {
                mpl_bit_add(reached, i);
                n++;
            }
        }
    }
    return n == bodies->n;
}

/* Makes one round of attempts, each with its own choice of cells. */
static mpl_status refute_graph(refuter *self, core *t)
{
    mpl_graph_search *search = t->search;
    mpl_exact_verdict verdict = MPL_EXACT_STOPPED;
    size_t mark = self->proof->n;

    MPL_PASS(mpl_graph_search_prove(search, self->proof));
    search->apart = !is_connected(t->b);
    search->effort = self->s->effort;
    search->node_limit = self->node_limit;
    mpl_graph_search_cap(search, self->cap);
    for (size_t k = 0; k < sizeof members / sizeof *members && verdict == MPL_EXACT_STOPPED; k++) {
        if (!left_to_try(self->s) || self->proof->failed)
            break;
        search->rank = t->rank[members[k].order];
        search->pick = (mpl_exact_pick)members[k].pick;
        self->proof->n = mark;
        if (!search->apart) /* else each component is named at its turn */
            mpl_proof_add(self->proof, 'o', t->b->buffer[0], 0, 0);
        verdict = mpl_graph_search_run(search);
        if (search->no_memory || (self->proof->failed && !self->proof->full))
            MPL_PASS(MPL_EMEM);
    }
    self->done = verdict == MPL_EXACT_FAILED && !self->proof->failed;
    if (!self->done) /* the next round writes it anew */
        self->proof->n = mark;
    if (verdict == MPL_EXACT_FOUND)
        t->height = 0;
    self->any = self->any || verdict == MPL_EXACT_STOPPED;
    return MPL_OK;
}

/* Does nothing if a plan is known, be it only here (height 0). */
static mpl_status refute_core(refuter *self, core *t)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;

    if (t->b->n > MAX_SEARCHED || t->height <= self->cap)
        goto out;
    if (uses(self->s, MPL_RULE_intervals) && !t->serial && t->search == NULL) {
        MPL_TRY(make_serial(self->s, t, &p));
        t->serial = p != NULL;
        if (p != NULL)
            MPL_TRY(refute_serial(self, t, p));
    }
    if (t->serial)
        goto out;
    if (t->search == NULL) {
        MPL_TRY(mpl_cliques_new(self->s->ctx, t->b, self->s->effort, &t->cliques));
        MPL_TRY(mpl_graph_search_new(self->s->ctx, t->b, t->cliques, &t->search));
        MPL_TRY(make_ranks(self->s->ctx, t));
    }
    MPL_TRY(refute_graph(self, t));
out:
    mpl_problem_free(self->s->ctx, p);
    return st;
}

mpl_status mpl_general_refute(mpl_ctx *ctx, const mpl_problem *p, const mpl_bodies *bodies,
                              uint64_t cap, const uint64_t *offset, mpl_exact_effort *effort,
                              mpl_proof *proof, mpl_exact_verdict *verdict)
{
    mpl_status st = MPL_OK;
    solver s = {.ctx = ctx, .p = p, .effort = effort};
    core t = {0};
    refuter r = {.s = &s, .cap = cap, .node_limit = FIRST_NODES, .proof = proof, .any = true};
    size_t mark = proof->n;

    *verdict = MPL_EXACT_STOPPED;
    if (bodies->n == 0)
        return MPL_OK;
    MPL_TRY(core_init(&s, bodies, &t));
    if (offset != NULL)
        hand_down(&t, offset);
    for (uint32_t k = 0; k < t.n_dropped; k++) /* dropped bodies have one member and its number */
        mpl_proof_add(proof, 'd', bodies->buffer[t.dropped[k]], 0, 0);
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
