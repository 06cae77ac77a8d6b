/* nnc_arena.c -- the allocation graph's idea without its structural losses: one arena, ranges may be joined, and the
 * order of selection is searched.
 *
 * Idea     NNC loses memory in three places: a buffer takes a prefix of one edge, never the union of neighbouring ranges;
 *          blocks freeze at their opening size; the order of selection is fixed. Here each buffer in turn takes the lowest
 *          range of one arena that no interfering buffer holds (any union of ranges that were handed on), the orders
 *          of a small portfolio are tried, and the best is improved: a buffer that ends at the peak moves ahead of one
 *          that holds it up. Where the portfolio does not meet the antichain bound, which ends the search, the plan of nnc_2019 is
 *          a start and an incumbent too, so that the result is never above it.
 * Source   this project; the move is that of hill climbing over allocation orders as in TVM's USMP.
 * Cost     O(n^2 / 64) bytes and O(n * placed) time an order, early exits aside; ticks are ranges looked at.
 * Limits   Local search: a plan above the bound need not be optimal. */
#include "planners/nnc_graph.h"

#include "graphs/analysis/before.h"
#include "graphs/analysis/fold.h"
#include "graphs/base/rng.h"

#include <stdlib.h>

#define DEFAULT_TICKS UINT64_C(300000000) /* about a second */
#define PATIENCE      400 /* moves without a better plan before the search starts from the best again */

extern const mpl_planner mpl_planner_nnc_2019;

typedef struct search {
    mpl_ctx *ctx;
    const mpl_problem *p; /* folded, with `before` */
    uint64_t *rival;      /* [n * n_words] interfering buffers of the same pool */
    uint32_t n_words;
    uint64_t *size;     /* [n] rounded up to alignment [byte] */
    uint32_t n;         /* buffers of the pool in hand */
    mpl_buffer *order;  /* [n] current */
    mpl_buffer *trial;  /* [n] */
    mpl_buffer *best;   /* [n] */
    uint32_t *at;       /* by buffer: position in trial */
    uint64_t *offset;   /* by buffer, of the last placement */
    mpl_buffer *sorted; /* [n] placed buffers by (offset, id) */
    uint64_t ticks, limit;
    mpl_rng rng;
} search;

static bool interferes(const search *s, mpl_buffer a, mpl_buffer b)
{
    return (s->rival[(size_t)a * s->n_words + b / 64] >> (b % 64) & 1) != 0;
}

/* Where b really ends: the padding of the topmost buffer is not part of the arena. [byte] */
static uint64_t end_of(const search *s, mpl_buffer b)
{
    return s->offset[b] + s->p->bytes[b];
}

/* Lowest aligned offset where b fits beside the n placed buffers. */
static uint64_t lowest_free(search *s, mpl_buffer b, uint32_t n)
{
    uint64_t low = 0, mask = s->p->align[b] - 1;

    for (uint32_t i = 0; i < n; i++) {
        mpl_buffer c = s->sorted[i];

        s->ticks++;
        if (!interferes(s, b, c))
            continue;
        if (s->offset[c] >= low + s->size[b])
            break;
        if (s->offset[c] + s->size[c] > low)
            low = (s->offset[c] + s->size[c] + mask) & ~mask;
    }
    return low;
}

static void insert_sorted(search *s, mpl_buffer b, uint32_t n)
{
    uint32_t lo = 0, hi = n;

    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        mpl_buffer c = s->sorted[mid];

        if (s->offset[c] < s->offset[b] || (s->offset[c] == s->offset[b] && c < b))
            lo = mid + 1;
        else
            hi = mid;
    }
    memmove(s->sorted + lo + 1, s->sorted + lo, (n - lo) * sizeof *s->sorted);
    s->sorted[lo] = b;
}

/* Places trial[] from position `from` on; what stands before it keeps the offsets of the last placement. Peak. [byte] */
static uint64_t place(search *s, uint32_t from)
{
    uint64_t peak = 0;
    uint32_t n_kept = 0;

    for (uint32_t i = from; i < s->n; i++)
        s->at[s->trial[i]] = i;
    for (uint32_t i = 0; from > 0 && i < s->n; i++)
        if (s->at[s->sorted[i]] < from) {
            s->sorted[n_kept++] = s->sorted[i];
            peak = mpl_max_u64(peak, end_of(s, s->sorted[n_kept - 1]));
        }
    for (uint32_t i = from; i < s->n; i++) {
        mpl_buffer b = s->trial[i];

        s->offset[b] = lowest_free(s, b, i);
        insert_sorted(s, b, i);
        peak = mpl_max_u64(peak, end_of(s, b));
    }
    return peak;
}

/* Position of a random buffer ahead of trial[x] that interferes with it, or x when there is none. */
static uint32_t pick_ahead(search *s, uint32_t x)
{
    uint32_t n_seen = 0, pick = x;

    for (uint32_t i = 0; i < x; i++)
        if (interferes(s, s->trial[x], s->trial[i]) && mpl_rng_below(&s->rng, ++n_seen) == 0)
            pick = i;
    s->ticks += x;
    return pick;
}

/* Position of a random buffer that ends at the peak. */
static uint32_t pick_peak(search *s, uint64_t peak)
{
    uint32_t n_seen = 0, pick = 0;

    for (uint32_t i = 0; i < s->n; i++)
        if (end_of(s, s->trial[i]) == peak && mpl_rng_below(&s->rng, ++n_seen) == 0)
            pick = i;
    return pick;
}

/* trial[]: the buffer at `from` moves to `to` <= from. */
static void move_ahead(mpl_buffer *list, uint32_t from, uint32_t to)
{
    mpl_buffer b = list[from];

    memmove(list + to + 1, list + to, (from - to) * sizeof *list);
    list[to] = b;
}

/* From order[] until the bound, the budget or the clock ends it; best[] and *best_peak are improved. */
static void improve(search *s, const mpl_run *run, uint64_t bound, uint64_t *best_peak)
{
    uint64_t peak;
    uint32_t idle = 0;

    memcpy(s->trial, s->best, s->n * sizeof *s->trial);
    memcpy(s->order, s->best, s->n * sizeof *s->order);
    peak = place(s, 0);
    while (*best_peak > bound && s->ticks < s->limit && mpl_clock_ns() < run->deadline_ns) {
        uint32_t x, y;
        uint64_t got;

        x = pick_peak(s, peak);
        y = pick_ahead(s, x);
        if (y == x) /* it stands alone at the peak: nothing ahead of it holds it up */
            return;
        move_ahead(s->trial, x, y);
        got = place(s, y);
        if (got <= peak || mpl_rng_below(&s->rng, 64) == 0) {
            memcpy(s->order, s->trial, s->n * sizeof *s->order);
            peak = got;
        } else {
            memcpy(s->trial, s->order, s->n * sizeof *s->trial);
            place(s, y);
        }
        idle++;
        if (got < *best_peak) {
            *best_peak = got;
            memcpy(s->best, s->trial, s->n * sizeof *s->best);
            idle = 0;
        } else if (idle > PATIENCE) {
            memcpy(s->trial, s->best, s->n * sizeof *s->trial);
            memcpy(s->order, s->best, s->n * sizeof *s->order);
            peak = place(s, 0);
            idle = 0;
        }
    }
}

/* ---- the portfolio: keys descending, then id ---------------------------------------------------------- */

typedef struct keyed {
    uint64_t key, second;
    mpl_buffer b;
} keyed;

static int by_key(const void *left, const void *right)
{
    const keyed *x = left, *y = right;

    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    if (x->second != y->second)
        return x->second > y->second ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

/* Bytes and number of the buffers that interfere with b. */
static void weigh_rivals(const search *s, mpl_buffer b, uint64_t *bytes, uint64_t *count)
{
    *bytes = *count = 0;
    for (uint32_t w = 0; w < s->n_words; w++)
        for (uint64_t bits = s->rival[(size_t)b * s->n_words + w]; bits != 0; bits &= bits - 1) {
            *bytes += s->size[w * 64 + (uint32_t)__builtin_ctzll(bits)];
            ++*count;
        }
}

enum { BY_SIZE, BY_RIVAL_BYTES, BY_RIVALS, BY_SIZE_RARE, N_KEYS };

static void set_keys(const search *s, int kind, keyed *list)
{
    for (uint32_t i = 0; i < s->n; i++) {
        mpl_buffer b = list[i].b;
        uint64_t bytes, count;

        weigh_rivals(s, b, &bytes, &count);
        list[i].key = kind == BY_RIVAL_BYTES ? bytes + s->size[b] : kind == BY_RIVALS ? count : s->size[b];
        list[i].second = kind == BY_SIZE ? count : kind == BY_SIZE_RARE ? UINT64_MAX - count : s->size[b];
    }
}

/* Tries the buffers of the pool in descending order of their keys. */
static void try_keys(search *s, keyed *list, uint64_t *best_peak)
{
    uint64_t peak;

    qsort(list, s->n, sizeof *list, by_key);
    for (uint32_t i = 0; i < s->n; i++)
        s->trial[i] = list[i].b;
    peak = place(s, 0);
    if (peak < *best_peak) {
        *best_peak = peak;
        memcpy(s->best, s->trial, s->n * sizeof *s->best);
    }
}

/* The orders that cost one placement each, until one meets the bound. */
static void try_portfolio(search *s, keyed *list, uint32_t pool, uint64_t bound, uint64_t *best_peak)
{
    s->n = 0;
    for (mpl_buffer b = 0; b < s->p->n; b++)
        if (s->p->pool[b] == pool)
            list[s->n++].b = b;
    *best_peak = UINT64_MAX;
    for (int kind = 0; kind<N_KEYS && * best_peak> bound; kind++) {
        set_keys(s, kind, list);
        try_keys(s, list, best_peak);
    }
}

/* The order of the offsets of a valid plan, start[], then local search from the best. */
static void try_harder(search *s, keyed *list, const mpl_run *run, const uint64_t *start, uint64_t bound,
                       uint64_t *best_peak)
{
    for (uint32_t i = 0; i < s->n; i++) {
        list[i].key = UINT64_MAX - start[list[i].b];
        list[i].second = s->size[list[i].b];
    }
    try_keys(s, list, best_peak);
    if (*best_peak > bound)
        improve(s, run, bound, best_peak);
}

static void search_fini(search *s)
{
    void *arrays[] = {s->rival, s->size, s->order, s->trial, s->best, s->at, s->offset, s->sorted};

    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        mpl_free(s->ctx, arrays[i]);
}

static mpl_status search_init(search *s, const mpl_run *run, const mpl_problem *p)
{
    mpl_status st = MPL_OK;
    char label[24];

    *s = (search){.ctx = run->ctx, .p = p, .n_words = p->before->n_words};
    s->limit = run->budget_ticks != UINT64_MAX ? run->budget_ticks : DEFAULT_TICKS;
    mpl_rng_init(&s->rng, run->seed);
    MPL_TRY(mpl_conflict_rows(s->ctx, p, &s->rival));
    MPL_TRY(mpl_new(s->ctx, s->size, p->n));
    MPL_TRY(mpl_new(s->ctx, s->order, p->n));
    MPL_TRY(mpl_new(s->ctx, s->trial, p->n));
    MPL_TRY(mpl_new(s->ctx, s->best, p->n));
    MPL_TRY(mpl_new(s->ctx, s->at, p->n));
    MPL_TRY(mpl_new(s->ctx, s->offset, p->n));
    MPL_TRY(mpl_new(s->ctx, s->sorted, (size_t)p->n + 1));
    for (mpl_buffer b = 0; b < p->n; b++)
        if (!mpl_align_bytes(p->bytes[b], p->align[b], &s->size[b]))
            MPL_FAIL(s->ctx, MPL_EINPUT, "buffer '%s' is too large", mpl_buffer_label(p, b, label));
out:
    return st;
}

/* Highest end of a pool under the given offsets of the folded problem. [byte] */
static uint64_t peak_of(const search *s, uint32_t pool, const uint64_t *offset)
{
    uint64_t peak = 0;

    for (mpl_buffer b = 0; b < s->p->n; b++)
        if (s->p->pool[b] == pool)
            peak = mpl_max_u64(peak, offset[b] + s->p->bytes[b]);
    return peak;
}

/* One pool of the folded problem: offset[] of its buffers. *first, the plan of nnc_2019, is made when it is first needed. */
static mpl_status plan_pool(search *s, mpl_run *run, uint32_t pool, mpl_plan **first, uint64_t *offset)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = s->p;
    keyed *list = NULL;
    uint64_t bound, peak;
    bool keep = false;

    MPL_TRY(mpl_new(s->ctx, list, p->n));
    MPL_TRY(mpl_antichain(s->ctx, p, pool, &bound, NULL));
    try_portfolio(s, list, pool, bound, &peak);
    if (s->n > 0 && peak > bound) {
        if (*first == NULL) {
            MPL_TRY(mpl_plan_new(s->ctx, p, first));
            MPL_TRY(mpl_planner_nnc_2019.plan(run, p, *first));
        }
        try_harder(s, list, run, (*first)->offset, bound, &peak);
        keep = peak_of(s, pool, (*first)->offset) <= peak;
    }
    mpl_assert(s->n == 0 || peak >= bound);
    memcpy(s->trial, s->best, s->n * sizeof *s->trial);
    place(s, 0);
    for (uint32_t i = 0; i < s->n; i++)
        offset[list[i].b] = (keep ? (*first)->offset : s->offset)[list[i].b];
out:
    mpl_free(s->ctx, list);
    return st;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_problem *folded = NULL;
    mpl_plan *first = NULL;
    search s = {0};
    uint32_t *into = NULL;
    uint64_t *offset = NULL;

    MPL_TRY(mpl_nnc_check(run->ctx, p));
    MPL_TRY(mpl_new(run->ctx, into, p->n));
    MPL_TRY(mpl_problem_fold(run->ctx, p, &folded, into));
    if (folded->before == NULL)
        MPL_TRY(mpl_problem_as_parallel(run->ctx, folded));
    MPL_TRY(mpl_new(run->ctx, offset, folded->n));
    MPL_TRY(search_init(&s, run, folded));
    for (uint32_t pool = 0; pool < folded->n_pools; pool++)
        MPL_TRY(plan_pool(&s, run, pool, &first, offset));
    for (mpl_buffer b = 0; b < p->n; b++)
        out->offset[b] = offset[into[b]];
    /* The bound is the problem's own, where a pair may be taken up or not; folding is one way to choose. */
    MPL_TRY(p->before != NULL ? mpl_antichain(run->ctx, p, 0, &out->bound_bytes, NULL)
                              : mpl_peak_live(run->ctx, p, 0, &out->bound_bytes, NULL, NULL));
    out->claim = peak_of(&s, 0, offset) == out->bound_bytes ? MPL_OPTIMAL : MPL_FEASIBLE;
    run->ticks += s.ticks;
    run->stopped_by_clock = mpl_clock_ns() >= run->deadline_ns;
out:
    search_fini(&s);
    mpl_plan_free(run->ctx, first);
    mpl_problem_free(run->ctx, folded);
    mpl_free(run->ctx, offset);
    mpl_free(run->ctx, into);
    return st;
}

const mpl_planner mpl_planner_nnc_arena = {
    .name = "nnc_arena",
    .about = "one arena over the partial order, order of selection searched, never above nnc_2019",
    .source = "this project",
    .traits = MPL_RANDOM | MPL_PARALLEL_ONLY | MPL_USES_IN_PLACE | MPL_EXACT,
    .plan = plan,
};
