/* greedy_breadth.c -- takes the operation with the most live bytes first: its buffers, largest
 * first, at the lowest free offset.
 *
 * Idea     The peak arises where most bytes are live, so those buffers are placed while everything
 *          is free.
 * Source   Y. Pisarchyk, J. Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020,
 *          "Greedy by Breadth".
 * Differs  Takes the lowest gap that is large enough; the source takes the smallest. Equal breadths
 *          go to the earlier step, equal sizes to the longer live range, then to the id. Breadth
 *          sums all pools. Without steps (parallel), a buffer's breadth is the bytes of its
 *          conflicts. In-place pairs are taken.
 * Cost     Serial: O(n log n) and the occupied ranges met, 100 to 250 n bytes of scratch. Parallel:
 *          O(n^2).
 * Limits   Never moves a placed buffer; no bound on the distance to the optimum. */
#include "planners/place/placement.h"
#include "planners/place/sort.h"

/* Breadth by step. Live bytes rise only at births, so steps are counted in births. */
typedef struct steps {
    uint32_t n;     /* number of distinct births */
    uint32_t *from; /* [p->n] index of each buffer's birth */
    uint32_t *to;   /* [p->n] first birth at or after its death */
    uint64_t *live; /* [n] live bytes */
    uint32_t *rank; /* [n] 0: the broadest step */
    uint32_t *best; /* [2 * n] tree of the least ranks, leaves from n on */
} steps;

static void steps_fini(mpl_ctx *ctx, steps *s)
{
    mpl_free_each(ctx, s->from, s->to, s->live, s->rank, s->best);
}

/* Fills from, to and live. Sums above 2^64 wrap here; the placement rejects such problems. */
static mpl_status measure(mpl_ctx *ctx, const mpl_problem *p, mpl_buffer *id, uint64_t *key,
                          steps *s)
{
    uint32_t index = 0, at = 0;
    uint64_t live = 0;
    uint32_t *step = s->rank; /* rank is not needed yet */

    mpl_ids_ascending(p->n, id);
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = p->birth[b];
    MPL_PASS(mpl_sort_ids(ctx, p->n, id, key));
    for (uint32_t i = 0; i < p->n; i++) {
        if (i > 0 && p->birth[id[i]] != p->birth[id[i - 1]])
            index++;
        step[index] = p->birth[id[i]];
        s->from[id[i]] = index;
        s->live[index] += p->bytes[id[i]];
    }
    s->n = p->n > 0 ? index + 1 : 0;
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = p->death[b];
    MPL_PASS(mpl_sort_ids(ctx, p->n, id, key));
    for (uint32_t i = 0; i < p->n; i++) {
        while (at < s->n && step[at] < p->death[id[i]])
            at++;
        s->to[id[i]] = at;
        if (at < s->n)
            s->live[at] -= p->bytes[id[i]];
    }
    for (uint32_t i = 0; i < s->n; i++)
        s->live[i] = live += s->live[i];
    return MPL_OK;
}

static uint32_t least(const uint32_t *tree, uint32_t n, uint32_t from, uint32_t to)
{
    uint32_t rank = UINT32_MAX;

    for (from += n, to += n; from < to; from /= 2, to /= 2) {
        if ((from & 1) != 0) {
            rank = tree[from] < rank ? tree[from] : rank;
            from++;
        }
        if ((to & 1) != 0) {
            to--;
            rank = tree[to] < rank ? tree[to] : rank;
        }
    }
    return rank;
}

/* key[b] = rank of the broadest step in b's live range. */
static mpl_status rank_serial(mpl_ctx *ctx, const mpl_problem *p, mpl_buffer *id, uint64_t *key)
{
    mpl_status st = MPL_OK;
    steps s = {0};

    MPL_TRY(mpl_new_each(ctx, p->n, s.from, s.to, s.live, s.rank));
    MPL_TRY(mpl_new(ctx, s.best, 2 * (size_t)p->n));
    MPL_TRY(measure(ctx, p, id, key, &s));
    mpl_ids_ascending(s.n, id);
    for (uint32_t i = 0; i < s.n; i++)
        key[i] = UINT64_MAX - s.live[i];
    MPL_TRY(mpl_sort_ids(ctx, s.n, id, key));
    for (uint32_t i = 0; i < s.n; i++)
        s.best[s.n + id[i]] = i;
    for (uint32_t i = s.n; i-- > 1;)
        s.best[i] = s.best[2 * i] < s.best[2 * i + 1] ? s.best[2 * i] : s.best[2 * i + 1];
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = least(s.best, s.n, s.from[b], s.to[b]);
out:
    steps_fini(ctx, &s);
    return st;
}

/* key[b] falls with the bytes of b's conflicts. */
static void rank_parallel(const mpl_problem *p, uint64_t *key)
{
    for (mpl_buffer b = 0; b < p->n; b++) {
        key[b] = UINT64_MAX - p->bytes[b];
        for (mpl_buffer c = 0; c < p->n; c++)
            if (mpl_conflict(p, b, c))
                key[b] -= p->bytes[c];
    }
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_buffer *order = NULL;
    uint64_t *rank = NULL, *key = NULL;

    MPL_TRY(mpl_new_each(run->ctx, p->n, order, rank, key));
    if (p->before != NULL)
        rank_parallel(p, rank);
    else
        MPL_TRY(rank_serial(run->ctx, p, order, rank));
    mpl_ids_ascending(p->n, order);
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = UINT64_MAX - (p->death[b] - p->birth[b]);
    MPL_TRY(mpl_sort_ids(run->ctx, p->n, order, key));
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = UINT64_MAX - p->bytes[b];
    MPL_TRY(mpl_sort_ids(run->ctx, p->n, order, key));
    MPL_TRY(mpl_sort_ids(run->ctx, p->n, order, rank));
    MPL_TRY(mpl_place_all(run, p, order, MPL_FIT_LOWEST, out));
out:
    mpl_free_each(run->ctx, order, rank, key);
    return st;
}

const mpl_planner mpl_planner_greedy_breadth = {
    .name = "greedy_breadth",
    .about = "broadest operation first, its buffers largest first, lowest free offset",
    .source = "pisarchyk2020",
    .traits = MPL_USES_IN_PLACE | MPL_USES_GAPS | MPL_USES_FAMILIES,
    .plan = plan,
};
