/* twin.c -- equivalent forms of a buffer list: time reversed, or rows shuffled.
 *
 * Idea     Neither changes the set of plans. A planner that does better on a list than on these
 * forms
 *          benefits from the order in which the list happens to be written.
 * Source   this project; the shuffle is R. A. Fisher's and F. Yates's as R. Durstenfeld's algorithm
 *          235 has it (1964). */
#include "graphs/core/rng.h"
#include "graphs/problem/subset.h"

static mpl_status refuse_directed(mpl_ctx *ctx, const mpl_problem *p)
{
    if (p->before != NULL || p->n_in_place > 0 || p->access != NULL || p->inside != NULL ||
        p->constraints != NULL)
        return MPL_REFUSE(ctx, "problem '%.200s': only a plain list has a twin, without %s",
                          p->name,
                          p->before != NULL        ? "a partial order"
                          : p->n_in_place > 0      ? "in-place pairs"
                          : p->inside != NULL      ? "buffers inside others"
                          : p->constraints != NULL ? "constraints"
                                                   : "a graph's operations");
    return MPL_OK;
}

static void mirror_gaps(mpl_problem *p, mpl_buffer b)
{
    uint32_t begin = p->gap_begin[b], end = p->gap_begin[b + 1];

    for (uint32_t low = begin, high = end; low < high; low++) {
        uint32_t from = p->gap_from[low], to = p->gap_to[low];
        /* the middle gap mirrors itself */
        uint32_t last_from = p->gap_from[--high], last_to = p->gap_to[high];

        p->gap_from[low] = p->n_steps - last_to;
        p->gap_to[low] = p->n_steps - last_from;
        p->gap_from[high] = p->n_steps - to;
        p->gap_to[high] = p->n_steps - from;
    }
}

mpl_status mpl_problem_reverse(mpl_ctx *ctx, mpl_problem *p)
{
    MPL_PASS(refuse_directed(ctx, p));
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint32_t birth = p->birth[b];

        p->birth[b] = p->n_steps - p->death[b];
        p->death[b] = p->n_steps - birth;
        if (p->gap_begin != NULL)
            mirror_gaps(p, b);
    }
    return MPL_OK;
}

mpl_status mpl_problem_shuffle(mpl_ctx *ctx, mpl_problem *p, uint64_t seed, uint64_t *offset)
{
    mpl_status st = MPL_OK;
    uint32_t *from = NULL, *begin = NULL, *into = NULL;
    uint64_t *old = NULL;
    mpl_problem *shuffled = NULL, swap;
    mpl_rng rng;

    MPL_TRY(refuse_directed(ctx, p));
    MPL_TRY(mpl_new(ctx, from, p->n));
    MPL_TRY(mpl_new(ctx, begin, (size_t)p->n + 1));
    MPL_TRY(mpl_new_each(ctx, p->n, into, old));
    rng = mpl_rng_of(seed);
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t k = (uint32_t)mpl_rng_below(&rng, i + UINT64_C(1));

        from[i] = from[k];
        from[k] = i;
        begin[i + 1] = i + 1;
    }
    MPL_TRY(mpl_problem_subset(ctx, p, &(mpl_members){p->n, begin, from},
                               MPL_KEEP_POOLS | MPL_KEEP_ORDER, into, &shuffled));
    swap = *p, *p = *shuffled, *shuffled = swap;
    for (mpl_buffer b = 0; offset != NULL && b < p->n; b++)
        old[b] = offset[b];
    for (mpl_buffer b = 0; offset != NULL && b < p->n; b++)
        offset[into[b]] = old[b];
out:
    mpl_free_each(ctx, from, begin, into, old);
    mpl_problem_free(ctx, shuffled);
    return st;
}
