/* exact_beam.c -- beam search: keeps the least wasteful states of a level. Finds plans where there
 * is slack. See exact_priv.h.
 *
 * Idea     SEARCH.md, section 5. The branch "nobody" stays on its level, and the next cell is
 *          branched on too. The beam settles the lower part, where a mistake shows late; the
 *          depth-first search settles the top.
 * Source   this project; P. S. Ow, T. E. Morton, "Filtered beam search in scheduling", 1988, for
 *          beams
 * Cost     n * width * (children of a cell) placements. Rows of n numbers: four widths for each
 *          thread.
 * Limits   It drops states, so a failure proves nothing. */
#include "planners/exact/exact_priv.h"

#include "graphs/core/rng.h"

#include <pthread.h>
#include <stdlib.h>

#define UNEVENNESS   0.1   /* waste per area of a floor with a step at each section */
#define CHAIN        8     /* consecutive "nobody" branches followed from a state */
#define PROBE_LEVELS 12    /* levels between rounds of probes */
#define PROBE_FROM   2     /* no probe before 1 / PROBE_FROM of the items is placed */
#define PROBE_NOISE  6     /* places that a probe's candidates move at random */
#define WEIGHT_SHIFT 200.0 /* weighted: a section's waste counts 1 / (slack + this) */

/* A state of the next level. row: est of open items, -1 - offset of placed ones. */
typedef struct entry {
    double score, closed; /* lower is better; weighted waste of sections without open items */
    uint64_t hash;
    uint64_t origin; /* parent and child number: an order that does not depend on threads */
    int32_t *row;
} entry;

typedef struct crowd crowd;

/* The private data of a thread. */
typedef struct worker {
    crowd *of;
    uint32_t index;
    mpl_ctx own; /* of every worker but the first */
    mpl_ctx *ctx;
    mpl_exact_state *state;
    mpl_exact_search q;
    uint32_t *rank; /* [n] ranks of a probe */
    mpl_len *est;   /* [n] est of an unpacked row */
    uint8_t *placed;
    entry *entries; /* [2 * width] */
    uint32_t n_entries;
    double worst;       /* scores above it are not among the best `width` */
    int32_t *rows[2];   /* [2 * width * n] rows of this level and the next */
    int32_t **free_row; /* [2 * width] */
    uint32_t n_free;
    uint64_t *seen; /* [n_seen] hashes */
    uint32_t found; /* first probe that found a plan; MPL_NONE: none */
    bool by_clock;
    mpl_status st;
} worker;

struct crowd {
    const mpl_exact_beam *o;
    const mpl_exact_case *c;
    double *weight; /* [section] */
    mpl_len *load;  /* [section] sum of the sizes of its items */
    size_t n_seen;
    worker *worker;
    uint32_t n_workers;
    entry *level; /* [width * n_workers] */
    uint32_t n_level;
    int32_t depth;
    int generation;
    uint64_t ticks;
    uint32_t *probe;       /* [n_probes] index into level */
    uint64_t *probe_ticks; /* [n_probes] */
    uint32_t n_probes;
    void (*job)(worker *w);
};

/* ---- threads ---- */

static void *run_worker(void *argument)
{
    worker *w = argument;
    const mpl_watch *watch = w->of->o->watch;

    if (watch != NULL && watch->bind != NULL)
        watch->bind(w->index);
    w->of->job(w);
    return NULL;
}

/* Runs the job on all workers. This thread does the share of every thread that cannot start. */
static mpl_status run_all(crowd *self, void (*job)(worker *w))
{
    pthread_t thread[MPL_EXACT_THREADS];
    bool started[MPL_EXACT_THREADS] = {false};

    self->job = job;
    for (uint32_t k = 1; k < self->n_workers; k++)
        started[k] = pthread_create(&thread[k], NULL, run_worker, &self->worker[k]) == 0;
    for (uint32_t k = 0; k < self->n_workers; k++)
        if (!started[k])
            job(&self->worker[k]);
    for (uint32_t k = 1; k < self->n_workers; k++)
        if (started[k])
            pthread_join(thread[k], NULL);
    for (uint32_t k = 0; k < self->n_workers; k++)
        MPL_PASS(self->worker[k].st);
    return MPL_OK;
}

/* ---- the best of a level ---- */

MPL_ORDER_BY(by_score, entry, MPL_RISING(score) MPL_RISING(origin))

/* Sorts the entries and moves the kept ones to the front: at most `width`, each state once. Returns
 * their number; the rest is in any order. */
static uint32_t keep_best(crowd *self, uint64_t *seen, entry *e, uint32_t n)
{
    uint32_t kept = 0;

    qsort(e, n, sizeof *e, by_score);
    memset(seen, 0, self->n_seen * sizeof *seen);
    for (uint32_t k = 0; k < n && kept < self->o->width; k++) {
        size_t at = (size_t)e[k].hash & (self->n_seen - 1);
        entry one = e[k];

        while (seen[at] != 0 && seen[at] != one.hash)
            at = (at + 1) & (self->n_seen - 1);
        if (seen[at] == one.hash)
            continue;
        seen[at] = one.hash;
        e[k] = e[kept];
        e[kept++] = one;
    }
    return kept;
}

static void prune(worker *self)
{
    uint32_t kept = keep_best(self->of, self->seen, self->entries, self->n_entries);

    for (uint32_t k = kept; k < self->n_entries; k++)
        self->free_row[self->n_free++] = self->entries[k].row;
    self->n_entries = kept;
    if (kept == self->of->o->width)
        self->worst = self->entries[kept - 1].score;
}

/* Makes the worker's state a candidate for the next level. */
static void collect(worker *self, double score, double closed, uint64_t origin)
{
    const mpl_exact_state *state = self->state;
    uint64_t hash = 0;
    int32_t *row;

    if (score > self->worst)
        return;
    if (self->n_entries == 2 * self->of->o->width)
        prune(self);
    if (score > self->worst)
        return;
    row = self->free_row[--self->n_free];
    for (int32_t i = 0; i < state->exact_case->n; i++) {
        row[i] = (int32_t)(state->placed[i] ? -1 - state->est[i] : state->est[i]);
        if (!state->placed[i])
            hash += mpl_rng_mix((uint64_t)state->est[i] * UINT64_C(0x9e3779b97f4a7c15) +
                                (uint64_t)i * UINT64_C(0xff51afd7ed558ccd));
    }
    self->entries[self->n_entries++] = (entry){score, closed, hash | 1, origin, row};
}

/* ---- one state ---- */

static void load(worker *self, const entry *e)
{
    for (int32_t i = 0; i < self->state->exact_case->n; i++) {
        self->placed[i] = e->row[i] < 0;
        self->est[i] = e->row[i] < 0 ? -1 - (mpl_len)e->row[i] : e->row[i];
    }
    mpl_exact_state_load(self->state, self->est, self->placed);
}

/* Waste of the sections that the placement of item i closes. */
static double closed_by(const worker *self, int32_t i)
{
    const mpl_exact_state *state = self->state;
    double waste = 0;

    for (int32_t s = state->exact_case->left[i]; s < state->exact_case->right[i]; s++)
        if (state->count[s] == 0)
            waste += self->of->weight[s] *
                     (double)(state->est[i] + state->exact_case->size[i] - self->of->load[s]);
    return waste;
}

/* Waste per placed area, plus a penalty for steps in the floor: a level floor fits long items. */
static double score_of(const worker *self, double closed)
{
    const mpl_exact_state *state = self->state;
    const double *weight = self->of->weight;
    const mpl_len *full = self->of->load;
    double waste = closed, area = 0;
    int32_t plateaus = 0;
    mpl_len last = -1;

    for (int32_t s = 0; s < state->exact_case->n_sections; s++) {
        area += weight[s] * (double)(full[s] - state->rest[s]);
        if (state->count[s] == 0)
            continue;
        waste += weight[s] * (double)(state->floor[s] + state->rest[s] - full[s]);
        plateaus += state->floor[s] != last;
        last = state->floor[s];
    }
    return waste / area + UNEVENNESS * plateaus / state->exact_case->n_sections;
}

/* Expands the children of a state: items that can cover its cell, and after "nobody" the next
 * cell. */
static void expand(worker *self, const entry *e, uint64_t origin)
{
    mpl_exact_state *state = self->state;

    load(self, e);
    if (!mpl_exact_settle(state))
        return;
    for (int chain = 0; chain < CHAIN; chain++) {
        mpl_exact_cell cell = mpl_exact_choose(&self->q, 0, state->exact_case->n_sections);
        size_t base = self->q.n_stack, mark = state->trail.n;
        int32_t n = mpl_exact_candidates(&self->q, &cell);

        for (int32_t k = 0; k < n; k++) {
            int32_t i = self->q.stack[base + (size_t)k];

            mpl_exact_place(state, i);
            if (mpl_exact_settle(state)) {
                double closed = e->closed + closed_by(self, i);

                collect(self, score_of(self, closed), closed, origin++);
            }
            mpl_exact_undo(state, mark);
        }
        self->q.n_stack = base;
        if (!cell.nobody)
            break;
        mpl_exact_nobody(&self->q, cell.section);
        if (!mpl_exact_settle(state))
            break;
    }
}

static void expand_share(worker *self)
{
    crowd *g = self->of;

    self->state->ticks = 0;
    self->n_entries = 0;
    self->worst = 1e300;
    self->n_free = 0;
    for (size_t k = 0; k < 2 * (size_t)g->o->width; k++)
        self->free_row[self->n_free++] = self->rows[1 - g->generation] + k * (size_t)g->c->n;
    self->state->filter_slack = g->o->filter_slack;
    for (uint32_t k = self->index; k < g->n_level && !self->by_clock; k += g->n_workers) {
        expand(self, &g->level[k], (uint64_t)k << 32);
        if (mpl_exact_late(g->o->deadline_ns, g->o->watch))
            self->by_clock = true;
    }
    prune(self);
    if (self->state->no_memory)
        self->st = MPL_EMEM;
}

/* ---- probes ---- */

static mpl_exact_verdict probe(worker *self, uint32_t k)
{
    const crowd *g = self->of;
    mpl_exact_search *search = &self->q;
    mpl_rng rng = mpl_rng_of(g->o->seed + (uint64_t)g->depth * UINT64_C(0x632be59bd9b4e019) + k);
    const uint32_t *order = g->o->rank[mpl_rng_below(&rng, MPL_EXACT_ORDERS)];

    for (int32_t i = 0; i < g->c->n; i++)
        self->rank[i] = order[i] + (uint32_t)mpl_rng_below(&rng, PROBE_NOISE + 1);
    search->pick = (mpl_exact_pick)mpl_rng_below(&rng, MPL_PICK_LOW + 1);
    search->rank = self->rank;
    search->nodes = 0;
    search->node_limit = 3 * (uint64_t)(g->c->n - g->depth) + 50;
    self->state->filter_slack = g->o->filter_slack < 0 ? -1 : MPL_EXACT_FILTER_SLACK;
    load(self, &g->level[g->probe[k]]);
    return mpl_exact_search_run(search);
}

static void probe_share(worker *self)
{
    crowd *g = self->of;

    for (uint32_t k = self->index; k < g->n_probes && self->found == MPL_NONE && !self->by_clock;
         k += g->n_workers) {
        self->state->ticks = 0;
        if (probe(self, k) == MPL_EXACT_FOUND)
            self->found = k;
        g->probe_ticks[k] = self->state->ticks;
        self->by_clock = self->by_clock || self->q.by_clock;
    }
    self->q.pick = MPL_PICK_LOW;
    self->q.rank = g->o->rank[0];
    self->q.node_limit = UINT64_MAX;
    if (self->state->no_memory)
        self->st = MPL_EMEM;
}

/* Half of the probes start at the best states, half at random ones. */
static void choose_probes(crowd *self)
{
    mpl_rng rng = mpl_rng_of(self->o->seed + (uint64_t)self->depth);

    self->n_probes = self->o->probes < self->n_level ? self->o->probes : self->n_level;
    for (uint32_t k = 0; k < self->n_probes; k++)
        self->probe[k] = k < self->n_probes / 2 || self->n_probes == self->n_level
                             ? k
                             : (uint32_t)mpl_rng_below(&rng, self->n_level);
}

/* Takes est[] of the lowest probe that found a plan. Ignores the work of later probes: a single
 * thread would not have begun them. */
static bool take_probe(crowd *self, mpl_len *est)
{
    const worker *best = NULL;

    for (uint32_t k = 0; k < self->n_workers; k++)
        if (self->worker[k].found != MPL_NONE &&
            (best == NULL || self->worker[k].found < best->found))
            best = &self->worker[k];
    for (uint32_t k = 0; k < self->n_probes && (best == NULL || k <= best->found); k++)
        self->ticks += self->probe_ticks[k];
    if (best != NULL)
        memcpy(est, best->state->est, (size_t)self->c->n * sizeof *est);
    return best != NULL;
}

/* ---- the beam ---- */

static mpl_status worker_init(crowd *self, worker *w, uint32_t index, mpl_ctx *ctx)
{
    size_t n = (size_t)self->c->n, width = self->o->width;

    w->of = self;
    w->index = index;
    w->found = MPL_NONE;
    w->own = mpl_ctx_default();
    w->ctx = index == 0 ? ctx : &w->own;
    MPL_PASS(mpl_exact_state_new(w->ctx, self->c, &w->state));
    MPL_PASS(mpl_exact_search_init(&w->q, w->state));
    MPL_PASS(mpl_new_each(w->ctx, n, w->rank, w->est, w->placed));
    MPL_PASS(mpl_new_each(w->ctx, 2 * width, w->entries, w->free_row));
    MPL_PASS(mpl_new_each(w->ctx, 2 * width * n, w->rows[0], w->rows[1]));
    MPL_PASS(mpl_new(w->ctx, w->seen, self->n_seen));
    w->q.rank = self->o->rank[0];
    w->q.without = self->o->without;
    w->q.pick = MPL_PICK_LOW;
    w->q.deadline_ns = self->o->deadline_ns;
    w->q.watch = self->o->watch;
    return MPL_OK;
}

static void worker_fini(worker *self)
{
    if (self->ctx == NULL)
        return;
    mpl_exact_search_fini(&self->q);
    mpl_exact_state_free(self->ctx, self->state);
    mpl_free_each(self->ctx, self->rank, self->est, self->placed, self->entries, self->free_row,
                  self->rows[0], self->rows[1], self->seen);
}

static void set_weights(crowd *self)
{
    const mpl_exact_case *exact_case = self->c;

    for (int32_t s = 0; s < exact_case->n_sections; s++) {
        for (int32_t k = exact_case->begin[s]; k < exact_case->begin[s + 1]; k++)
            self->load[s] += exact_case->size[exact_case->member[k]];
        self->weight[s] =
            self->o->weighted ? 1 / ((double)(exact_case->cap - self->load[s]) + WEIGHT_SHIFT) : 1;
    }
}

/* Makes the next level from the best entries of all workers. */
static void next_level(crowd *self)
{
    self->n_level = 0;
    for (uint32_t k = 0; k < self->n_workers; k++) {
        memcpy(self->level + self->n_level, self->worker[k].entries,
               self->worker[k].n_entries * sizeof *self->level);
        self->n_level += self->worker[k].n_entries;
    }
    if (self->n_workers > 1)
        self->n_level = keep_best(self, self->worker[0].seen, self->level, self->n_level);
    self->generation = 1 - self->generation;
    self->depth++;
}

static bool out_of_budget(const crowd *self)
{
    bool by_clock = false;

    for (uint32_t k = 0; k < self->n_workers; k++)
        by_clock = by_clock || self->worker[k].by_clock;
    return by_clock || self->ticks >= self->o->tick_limit;
}

/* Runs the probes of this level if they are due; true: one found a plan. */
static mpl_status probe_level(crowd *self, mpl_exact_beam_result *result)
{
    if (self->depth <= self->c->n / PROBE_FROM || self->depth % PROBE_LEVELS != 0)
        return MPL_OK;
    choose_probes(self);
    MPL_PASS(run_all(self, probe_share));
    if (take_probe(self, result->est))
        result->verdict = MPL_EXACT_FOUND;
    return MPL_OK;
}

static mpl_status expand_level(crowd *self)
{
    MPL_PASS(run_all(self, expand_share));
    for (uint32_t k = 0; k < self->n_workers; k++)
        self->ticks += self->worker[k].state->ticks;
    if (!out_of_budget(self))
        next_level(self);
    return MPL_OK;
}

static mpl_status walk(crowd *self, mpl_exact_beam_result *result)
{
    mpl_status st = MPL_OK;
    int32_t n = self->c->n;

    mpl_exact_state_reset(self->worker[0].state);
    if (self->worker[0].state->dead)
        return MPL_OK;
    for (int32_t i = 0; i < n; i++)
        self->worker[0].rows[0][i] = (int32_t)self->c->start[i];
    self->level[0] = (entry){.row = self->worker[0].rows[0]};
    self->n_level = 1;
    while (self->depth < n && self->n_level > 0 && !out_of_budget(self)) {
        MPL_TRY(probe_level(self, result));
        if (result->verdict == MPL_EXACT_FOUND)
            goto out;
        MPL_TRY(expand_level(self));
    }
    if (self->depth < n || self->n_level == 0)
        goto out;
    for (int32_t i = 0; i < n; i++)
        result->est[i] = -1 - (mpl_len)self->level[0].row[i];
    result->verdict = MPL_EXACT_FOUND;
out:
    result->depth = self->depth;
    result->ticks = self->ticks;
    for (uint32_t k = 0; k < self->n_workers; k++)
        result->by_clock = result->by_clock || self->worker[k].by_clock;
    return st;
}

mpl_status mpl_exact_beam_run(mpl_ctx *ctx, const mpl_exact_case *exact_case,
                              const mpl_exact_beam *beam, mpl_exact_beam_result *result)
{
    mpl_status st = MPL_OK;
    crowd g = {.o = beam, .c = exact_case, .n_seen = 64};
    size_t sections = (size_t)exact_case->n_sections;

    *result = (mpl_exact_beam_result){.est = result->est, .verdict = MPL_EXACT_STOPPED};
    if (exact_case->cap > INT32_MAX)
        return MPL_OK;
    g.n_workers = beam->n_threads < MPL_EXACT_THREADS ? beam->n_threads : MPL_EXACT_THREADS;
    while (g.n_seen < 4 * (size_t)beam->width)
        g.n_seen *= 2;
    MPL_TRY(mpl_new_each(ctx, sections, g.weight, g.load));
    MPL_TRY(mpl_new(ctx, g.worker, g.n_workers));
    MPL_TRY(mpl_new(ctx, g.level, (size_t)beam->width * g.n_workers));
    MPL_TRY(mpl_new_each(ctx, (size_t)beam->probes, g.probe, g.probe_ticks));
    set_weights(&g);
    for (uint32_t k = 0; k < g.n_workers; k++)
        MPL_TRY(worker_init(&g, &g.worker[k], k, ctx));
    MPL_TRY(walk(&g, result));
out:
    for (uint32_t k = 0; g.worker != NULL && k < g.n_workers; k++)
        worker_fini(&g.worker[k]);
    mpl_free_each(ctx, g.weight, g.load, g.worker, g.level, g.probe, g.probe_ticks);
    return st;
}
