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
    mpl_exact_state *x;
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
static mpl_status run_all(crowd *g, void (*job)(worker *w))
{
    pthread_t thread[MPL_EXACT_THREADS];
    bool started[MPL_EXACT_THREADS] = {false};

    g->job = job;
    for (uint32_t k = 1; k < g->n_workers; k++)
        started[k] = pthread_create(&thread[k], NULL, run_worker, &g->worker[k]) == 0;
    for (uint32_t k = 0; k < g->n_workers; k++)
        if (!started[k])
            job(&g->worker[k]);
    for (uint32_t k = 1; k < g->n_workers; k++)
        if (started[k])
            pthread_join(thread[k], NULL);
    for (uint32_t k = 0; k < g->n_workers; k++)
        MPL_PASS(g->worker[k].st);
    return MPL_OK;
}

/* ---- the best of a level ---- */

MPL_ORDER_BY(by_score, entry, MPL_RISING(score) MPL_RISING(origin))

/* Sorts the entries and moves the kept ones to the front: at most `width`, each state once. Returns
 * their number; the rest is in any order. */
static uint32_t keep_best(crowd *g, uint64_t *seen, entry *e, uint32_t n)
{
    uint32_t kept = 0;

    qsort(e, n, sizeof *e, by_score);
    memset(seen, 0, g->n_seen * sizeof *seen);
    for (uint32_t k = 0; k < n && kept < g->o->width; k++) {
        size_t at = (size_t)e[k].hash & (g->n_seen - 1);
        entry one = e[k];

        while (seen[at] != 0 && seen[at] != one.hash)
            at = (at + 1) & (g->n_seen - 1);
        if (seen[at] == one.hash)
            continue;
        seen[at] = one.hash;
        e[k] = e[kept];
        e[kept++] = one;
    }
    return kept;
}

static void prune(worker *w)
{
    uint32_t kept = keep_best(w->of, w->seen, w->entries, w->n_entries);

    for (uint32_t k = kept; k < w->n_entries; k++)
        w->free_row[w->n_free++] = w->entries[k].row;
    w->n_entries = kept;
    if (kept == w->of->o->width)
        w->worst = w->entries[kept - 1].score;
}

/* Makes the worker's state a candidate for the next level. */
static void collect(worker *w, double score, double closed, uint64_t origin)
{
    const mpl_exact_state *x = w->x;
    uint64_t hash = 0;
    int32_t *row;

    if (score > w->worst)
        return;
    if (w->n_entries == 2 * w->of->o->width)
        prune(w);
    if (score > w->worst)
        return;
    row = w->free_row[--w->n_free];
    for (int32_t i = 0; i < x->c->n; i++) {
        row[i] = (int32_t)(x->placed[i] ? -1 - x->est[i] : x->est[i]);
        if (!x->placed[i])
            hash += mpl_rng_mix((uint64_t)x->est[i] * UINT64_C(0x9e3779b97f4a7c15) +
                                (uint64_t)i * UINT64_C(0xff51afd7ed558ccd));
    }
    w->entries[w->n_entries++] = (entry){score, closed, hash | 1, origin, row};
}

/* ---- one state ---- */

static void load(worker *w, const entry *e)
{
    for (int32_t i = 0; i < w->x->c->n; i++) {
        w->placed[i] = e->row[i] < 0;
        w->est[i] = e->row[i] < 0 ? -1 - (mpl_len)e->row[i] : e->row[i];
    }
    mpl_exact_state_load(w->x, w->est, w->placed);
}

/* Waste of the sections that the placement of item i closes. */
static double closed_by(const worker *w, int32_t i)
{
    const mpl_exact_state *x = w->x;
    double waste = 0;

    for (int32_t s = x->c->left[i]; s < x->c->right[i]; s++)
        if (x->count[s] == 0)
            waste += w->of->weight[s] * (double)(x->est[i] + x->c->size[i] - w->of->load[s]);
    return waste;
}

/* Waste per placed area, plus a penalty for steps in the floor: a level floor fits long items. */
static double score_of(const worker *w, double closed)
{
    const mpl_exact_state *x = w->x;
    const double *weight = w->of->weight;
    const mpl_len *full = w->of->load;
    double waste = closed, area = 0;
    int32_t plateaus = 0;
    mpl_len last = -1;

    for (int32_t s = 0; s < x->c->n_sections; s++) {
        area += weight[s] * (double)(full[s] - x->rest[s]);
        if (x->count[s] == 0)
            continue;
        waste += weight[s] * (double)(x->floor[s] + x->rest[s] - full[s]);
        plateaus += x->floor[s] != last;
        last = x->floor[s];
    }
    return waste / area + UNEVENNESS * plateaus / x->c->n_sections;
}

/* Expands the children of a state: items that can cover its cell, and after "nobody" the next
 * cell. */
static void expand(worker *w, const entry *e, uint64_t origin)
{
    mpl_exact_state *x = w->x;

    load(w, e);
    if (!mpl_exact_settle(x))
        return;
    for (int chain = 0; chain < CHAIN; chain++) {
        mpl_exact_cell cell = mpl_exact_choose(&w->q, 0, x->c->n_sections);
        size_t base = w->q.n_stack, mark = x->trail.n;
        int32_t n = mpl_exact_candidates(&w->q, &cell);

        for (int32_t k = 0; k < n; k++) {
            int32_t i = w->q.stack[base + (size_t)k];

            mpl_exact_place(x, i);
            if (mpl_exact_settle(x)) {
                double closed = e->closed + closed_by(w, i);

                collect(w, score_of(w, closed), closed, origin++);
            }
            mpl_exact_undo(x, mark);
        }
        w->q.n_stack = base;
        if (!cell.nobody)
            break;
        mpl_exact_nobody(&w->q, cell.section);
        if (!mpl_exact_settle(x))
            break;
    }
}

static void expand_share(worker *w)
{
    crowd *g = w->of;

    w->x->ticks = 0;
    w->n_entries = 0;
    w->worst = 1e300;
    w->n_free = 0;
    for (size_t k = 0; k < 2 * (size_t)g->o->width; k++)
        w->free_row[w->n_free++] = w->rows[1 - g->generation] + k * (size_t)g->c->n;
    w->x->filter_slack = g->o->filter_slack;
    for (uint32_t k = w->index; k < g->n_level && !w->by_clock; k += g->n_workers) {
        expand(w, &g->level[k], (uint64_t)k << 32);
        if (mpl_exact_late(g->o->deadline_ns, g->o->watch))
            w->by_clock = true;
    }
    prune(w);
    if (w->x->no_memory)
        w->st = MPL_EMEM;
}

/* ---- probes ---- */

static mpl_exact_verdict probe(worker *w, uint32_t k)
{
    const crowd *g = w->of;
    mpl_exact_search *q = &w->q;
    mpl_rng rng = mpl_rng_of(g->o->seed + (uint64_t)g->depth * UINT64_C(0x632be59bd9b4e019) + k);
    const uint32_t *order = g->o->rank[mpl_rng_below(&rng, MPL_EXACT_ORDERS)];

    for (int32_t i = 0; i < g->c->n; i++)
        w->rank[i] = order[i] + (uint32_t)mpl_rng_below(&rng, PROBE_NOISE + 1);
    q->pick = (mpl_exact_pick)mpl_rng_below(&rng, MPL_PICK_LOW + 1);
    q->rank = w->rank;
    q->nodes = 0;
    q->node_limit = 3 * (uint64_t)(g->c->n - g->depth) + 50;
    w->x->filter_slack = g->o->filter_slack < 0 ? -1 : MPL_EXACT_FILTER_SLACK;
    load(w, &g->level[g->probe[k]]);
    return mpl_exact_search_run(q);
}

static void probe_share(worker *w)
{
    crowd *g = w->of;

    for (uint32_t k = w->index; k < g->n_probes && w->found == MPL_NONE && !w->by_clock;
         k += g->n_workers) {
        w->x->ticks = 0;
        if (probe(w, k) == MPL_EXACT_FOUND)
            w->found = k;
        g->probe_ticks[k] = w->x->ticks;
        w->by_clock = w->by_clock || w->q.by_clock;
    }
    w->q.pick = MPL_PICK_LOW;
    w->q.rank = g->o->rank[0];
    w->q.node_limit = UINT64_MAX;
    if (w->x->no_memory)
        w->st = MPL_EMEM;
}

/* Half of the probes start at the best states, half at random ones. */
static void choose_probes(crowd *g)
{
    mpl_rng rng = mpl_rng_of(g->o->seed + (uint64_t)g->depth);

    g->n_probes = g->o->probes < g->n_level ? g->o->probes : g->n_level;
    for (uint32_t k = 0; k < g->n_probes; k++)
        g->probe[k] = k < g->n_probes / 2 || g->n_probes == g->n_level
                          ? k
                          : (uint32_t)mpl_rng_below(&rng, g->n_level);
}

/* Takes est[] of the lowest probe that found a plan. Ignores the work of later probes: a single
 * thread would not have begun them. */
static bool take_probe(crowd *g, mpl_len *est)
{
    const worker *best = NULL;

    for (uint32_t k = 0; k < g->n_workers; k++)
        if (g->worker[k].found != MPL_NONE && (best == NULL || g->worker[k].found < best->found))
            best = &g->worker[k];
    for (uint32_t k = 0; k < g->n_probes && (best == NULL || k <= best->found); k++)
        g->ticks += g->probe_ticks[k];
    if (best != NULL)
        memcpy(est, best->x->est, (size_t)g->c->n * sizeof *est);
    return best != NULL;
}

/* ---- the beam ---- */

static mpl_status worker_init(crowd *g, worker *w, uint32_t index, mpl_ctx *ctx)
{
    size_t n = (size_t)g->c->n, width = g->o->width;

    w->of = g;
    w->index = index;
    w->found = MPL_NONE;
    w->own = mpl_ctx_default();
    w->ctx = index == 0 ? ctx : &w->own;
    MPL_PASS(mpl_exact_state_new(w->ctx, g->c, &w->x));
    MPL_PASS(mpl_exact_search_init(&w->q, w->x));
    MPL_PASS(mpl_new_each(w->ctx, n, w->rank, w->est, w->placed));
    MPL_PASS(mpl_new_each(w->ctx, 2 * width, w->entries, w->free_row));
    MPL_PASS(mpl_new_each(w->ctx, 2 * width * n, w->rows[0], w->rows[1]));
    MPL_PASS(mpl_new(w->ctx, w->seen, g->n_seen));
    w->q.rank = g->o->rank[0];
    w->q.without = g->o->without;
    w->q.pick = MPL_PICK_LOW;
    w->q.deadline_ns = g->o->deadline_ns;
    w->q.watch = g->o->watch;
    return MPL_OK;
}

static void worker_fini(worker *w)
{
    if (w->ctx == NULL)
        return;
    mpl_exact_search_fini(&w->q);
    mpl_exact_state_free(w->ctx, w->x);
    mpl_free_each(w->ctx, w->rank, w->est, w->placed, w->entries, w->free_row, w->rows[0],
                  w->rows[1], w->seen);
}

static void set_weights(crowd *g)
{
    const mpl_exact_case *c = g->c;

    for (int32_t s = 0; s < c->n_sections; s++) {
        for (int32_t k = c->begin[s]; k < c->begin[s + 1]; k++)
            g->load[s] += c->size[c->member[k]];
        g->weight[s] = g->o->weighted ? 1 / ((double)(c->cap - g->load[s]) + WEIGHT_SHIFT) : 1;
    }
}

/* Makes the next level from the best entries of all workers. */
static void next_level(crowd *g)
{
    g->n_level = 0;
    for (uint32_t k = 0; k < g->n_workers; k++) {
        memcpy(g->level + g->n_level, g->worker[k].entries,
               g->worker[k].n_entries * sizeof *g->level);
        g->n_level += g->worker[k].n_entries;
    }
    if (g->n_workers > 1)
        g->n_level = keep_best(g, g->worker[0].seen, g->level, g->n_level);
    g->generation = 1 - g->generation;
    g->depth++;
}

static bool out_of_budget(const crowd *g)
{
    bool by_clock = false;

    for (uint32_t k = 0; k < g->n_workers; k++)
        by_clock = by_clock || g->worker[k].by_clock;
    return by_clock || g->ticks >= g->o->tick_limit;
}

/* Runs the probes of this level if they are due; true: one found a plan. */
static mpl_status probe_level(crowd *g, mpl_exact_beam_result *r)
{
    if (g->depth <= g->c->n / PROBE_FROM || g->depth % PROBE_LEVELS != 0)
        return MPL_OK;
    choose_probes(g);
    MPL_PASS(run_all(g, probe_share));
    if (take_probe(g, r->est))
        r->verdict = MPL_EXACT_FOUND;
    return MPL_OK;
}

static mpl_status expand_level(crowd *g)
{
    MPL_PASS(run_all(g, expand_share));
    for (uint32_t k = 0; k < g->n_workers; k++)
        g->ticks += g->worker[k].x->ticks;
    if (!out_of_budget(g))
        next_level(g);
    return MPL_OK;
}

static mpl_status walk(crowd *g, mpl_exact_beam_result *r)
{
    mpl_status st = MPL_OK;
    int32_t n = g->c->n;

    mpl_exact_state_reset(g->worker[0].x);
    if (g->worker[0].x->dead)
        return MPL_OK;
    for (int32_t i = 0; i < n; i++)
        g->worker[0].rows[0][i] = (int32_t)g->c->start[i];
    g->level[0] = (entry){.row = g->worker[0].rows[0]};
    g->n_level = 1;
    while (g->depth < n && g->n_level > 0 && !out_of_budget(g)) {
        MPL_TRY(probe_level(g, r));
        if (r->verdict == MPL_EXACT_FOUND)
            goto out;
        MPL_TRY(expand_level(g));
    }
    if (g->depth < n || g->n_level == 0)
        goto out;
    for (int32_t i = 0; i < n; i++)
        r->est[i] = -1 - (mpl_len)g->level[0].row[i];
    r->verdict = MPL_EXACT_FOUND;
out:
    r->depth = g->depth;
    r->ticks = g->ticks;
    for (uint32_t k = 0; k < g->n_workers; k++)
        r->by_clock = r->by_clock || g->worker[k].by_clock;
    return st;
}

mpl_status mpl_exact_beam_run(mpl_ctx *ctx, const mpl_exact_case *c, const mpl_exact_beam *o,
                              mpl_exact_beam_result *r)
{
    mpl_status st = MPL_OK;
    crowd g = {.o = o, .c = c, .n_seen = 64};
    size_t sections = (size_t)c->n_sections;

    *r = (mpl_exact_beam_result){.est = r->est, .verdict = MPL_EXACT_STOPPED};
    if (c->cap > INT32_MAX)
        return MPL_OK;
    g.n_workers = o->n_threads < MPL_EXACT_THREADS ? o->n_threads : MPL_EXACT_THREADS;
    while (g.n_seen < 4 * (size_t)o->width)
        g.n_seen *= 2;
    MPL_TRY(mpl_new_each(ctx, sections, g.weight, g.load));
    MPL_TRY(mpl_new(ctx, g.worker, g.n_workers));
    MPL_TRY(mpl_new(ctx, g.level, (size_t)o->width * g.n_workers));
    MPL_TRY(mpl_new_each(ctx, (size_t)o->probes, g.probe, g.probe_ticks));
    set_weights(&g);
    for (uint32_t k = 0; k < g.n_workers; k++)
        MPL_TRY(worker_init(&g, &g.worker[k], k, ctx));
    MPL_TRY(walk(&g, r));
out:
    for (uint32_t k = 0; g.worker != NULL && k < g.n_workers; k++)
        worker_fini(&g.worker[k]);
    mpl_free_each(ctx, g.weight, g.load, g.worker, g.level, g.probe, g.probe_ticks);
    return st;
}
