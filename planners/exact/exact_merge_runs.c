/* exact_merge_runs.c -- runs of merging on several threads. See exact_priv.h. The result is that of
 * the first run, in order, that finds a plan. */
#include "planners/exact/exact_priv.h"

#include <pthread.h>

#define LARGEST_N 1500

typedef struct race {
    const mpl_exact_part *part;
    uint64_t cap, seed;
    const mpl_exact_effort *effort; /* of all runs */
    uint64_t limit;                 /* of ticks for each run */
    uint32_t n_runs;
    uint64_t *ticks;   /* [n_runs] */
    atomic_uint next;  /* next run to begin */
    atomic_uint first; /* first run with a plan; UINT32_MAX: none */
} race;

typedef struct runner {
    race *of;
    uint32_t index;
    mpl_ctx own; /* of every runner but the first */
    mpl_ctx *ctx;
    uint64_t *offset; /* [n] the plan of its first successful run */
    uint32_t found;   /* that run; MPL_NONE: none */
    bool by_clock;
    mpl_status st;
} runner;

static mpl_status run_one(runner *self, uint32_t run)
{
    race *g = self->of;
    const mpl_exact_merging one = {
        .part = g->part, .cap = g->cap, .seed = g->seed, .run = run, .first = &g->first};
    mpl_exact_verdict verdict;
    mpl_exact_effort effort = {.seed = g->seed + run,
                               .tick_limit = g->limit,
                               .deadline_ns = g->effort->deadline_ns,
                               .watch = g->effort->watch,
                               .without = g->effort->without,
                               .n_threads = 1};

    MPL_PASS(mpl_exact_merge_once(self->ctx, &one, &effort, self->offset, &verdict));
    g->ticks[run] = effort.ticks;
    self->by_clock = effort.by_clock;
    if (verdict == MPL_EXACT_FOUND) {
        uint32_t first = atomic_load(&g->first);

        self->found = run;
        while (run < first && !atomic_compare_exchange_weak(&g->first, &first, run))
            ;
    }
    return MPL_OK;
}

/* Runs begin in order, so all runs before the first successful one are finished. */
static void *run_share(void *argument)
{
    runner *w = argument;
    race *g = w->of;

    if (w->index > 0 && g->effort->watch != NULL && g->effort->watch->bind != NULL)
        g->effort->watch->bind(w->index);
    while (w->st == MPL_OK && !w->by_clock && w->found == MPL_NONE) {
        uint32_t run = atomic_fetch_add(&g->next, 1);

        if (run >= g->n_runs || run > atomic_load(&g->first))
            break;
        w->st = run_one(w, run);
    }
    return NULL;
}

static mpl_status run_all(runner *worker, uint32_t n)
{
    pthread_t thread[MPL_EXACT_THREADS];
    bool started[MPL_EXACT_THREADS] = {false};

    for (uint32_t k = 1; k < n; k++)
        started[k] = pthread_create(&thread[k], NULL, run_share, &worker[k]) == 0;
    run_share(&worker[0]);
    for (uint32_t k = 1; k < n; k++)
        if (started[k])
            pthread_join(thread[k], NULL);
    for (uint32_t k = 0; k < n; k++)
        MPL_PASS(worker[k].st);
    return MPL_OK;
}

/* Takes the plan of the first successful run, and the ticks of the runs up to it. */
static void take(const race *self, const runner *worker, uint32_t n, mpl_exact_part *part,
                 mpl_exact_effort *effort, mpl_exact_verdict *verdict)
{
    uint32_t first = atomic_load(&self->first);

    for (uint32_t k = 0; k < self->n_runs && k <= first; k++)
        effort->ticks += self->ticks[k];
    for (uint32_t k = 0; k < n; k++) {
        effort->by_clock = effort->by_clock || worker[k].by_clock;
        if (first == UINT32_MAX || worker[k].found != first)
            continue;
        *verdict = MPL_EXACT_FOUND;
        memcpy(part->offset, worker[k].offset, part->n * sizeof *part->offset);
        part->height = 0;
        for (uint32_t i = 0; i < part->n; i++)
            part->height = mpl_max_u64(part->height, part->offset[i] + part->item[i].bytes);
    }
}

static mpl_status hold(mpl_exact_part *part, race *g, mpl_exact_effort *effort,
                       mpl_exact_verdict *verdict)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = part->ctx;
    uint32_t n = effort->n_threads < MPL_EXACT_THREADS ? effort->n_threads : MPL_EXACT_THREADS;
    runner *worker = NULL;

    n = n < g->n_runs ? n : g->n_runs;
    MPL_TRY(mpl_new(ctx, worker, n));
    MPL_TRY(mpl_new(ctx, g->ticks, g->n_runs));
    for (uint32_t k = 0; k < n; k++) {
        worker[k].of = g;
        worker[k].index = k;
        worker[k].found = MPL_NONE;
        worker[k].own = mpl_ctx_default();
        worker[k].ctx = k == 0 ? ctx : &worker[k].own;
        MPL_TRY(mpl_new(ctx, worker[k].offset, part->n));
    }
    MPL_TRY(run_all(worker, n));
    take(g, worker, n, part, effort, verdict);
out:
    for (uint32_t k = 0; worker != NULL && k < n; k++)
        mpl_free(ctx, worker[k].offset);
    mpl_free_each(ctx, worker, g->ticks);
    return st;
}

mpl_status mpl_exact_part_merge(mpl_exact_part *part, uint64_t cap, uint32_t runs, uint64_t ticks,
                                mpl_exact_effort *effort, mpl_exact_verdict *verdict)
{
    mpl_exact_case *exact_case = part->side[0].exact_case;
    race g = {.part = part, .cap = cap, .effort = effort, .n_runs = runs};

    *verdict = MPL_EXACT_STOPPED;
    if (part->vast || part->n > LARGEST_N || effort->ticks >= effort->tick_limit)
        return MPL_OK;
    if (part->cap != cap) {
        mpl_exact_case_limit(exact_case, part->item, part->unit, cap);
        part->cap = 0; /* the other side still has the old limits */
    }
    if (!exact_case->plain)
        return MPL_OK;
    g.limit = mpl_min_u64(ticks, effort->tick_limit - effort->ticks);
    while (g.n_runs > 1 && (g.n_runs - 1) * g.limit >= effort->tick_limit - effort->ticks)
        g.n_runs--;
    g.seed = effort->seed + cap + part->n_merged++ * UINT64_C(0xd1b54a32d192ed03);
    atomic_init(&g.next, 0);
    atomic_init(&g.first, UINT32_MAX);
    return hold(part, &g, effort, verdict);
}
