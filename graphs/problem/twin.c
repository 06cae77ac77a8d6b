/* twin.c -- a list of buffers told differently: with time reversed, with its rows shuffled.
 *
 * Idea     Neither changes what plans there are, so a planner that does better on a list than on
 *          its twins owes that to the order in which the list happens to be written.
 * Source   this project; the shuffle is R. A. Fisher's and F. Yates's as R. Durstenfeld's algorithm
 *          235 has it (1964). */
#include "graphs/core/rng.h"
#include "graphs/problem/problem.h"

static mpl_status refuse_directed(mpl_ctx *ctx, const mpl_problem *p)
{
    mpl_status st = MPL_OK;

    if (p->before != NULL || p->n_in_place > 0 || p->access != NULL || p->inside != NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "problem '%.200s': only a plain list has a twin, without %s",
                 p->name,
                 p->before != NULL   ? "a partial order"
                 : p->n_in_place > 0 ? "in-place pairs"
                 : p->inside != NULL ? "buffers inside others"
                                     : "a graph's operations");
out:
    return st;
}

static void mirror_gaps(mpl_problem *p, mpl_buffer b)
{
    uint32_t begin = p->gap_begin[b], end = p->gap_begin[b + 1];

    for (uint32_t low = begin, high = end; low < high; low++) {
        uint32_t from = p->gap_from[low], to = p->gap_to[low];
        /* the same one in the middle */
        uint32_t last_from = p->gap_from[--high], last_to = p->gap_to[high];

        p->gap_from[low] = p->n_steps - last_to;
        p->gap_to[low] = p->n_steps - last_from;
        p->gap_from[high] = p->n_steps - to;
        p->gap_to[high] = p->n_steps - from;
    }
}

mpl_status mpl_problem_reverse(mpl_ctx *ctx, mpl_problem *p)
{
    mpl_status st = MPL_OK;

    MPL_TRY(refuse_directed(ctx, p));
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint32_t birth = p->birth[b];

        p->birth[b] = p->n_steps - p->death[b];
        p->death[b] = p->n_steps - birth;
        if (p->gap_begin != NULL)
            mirror_gaps(p, b);
    }
out:
    return st;
}

/* item[n] of `size` bytes each: the one that stood at from[i] comes to i. store: room for all of
 * them. NULL: nothing. */
static void permute(void *item, size_t size, const uint32_t *from, uint32_t n, char *store)
{
    if (item == NULL)
        return;
    memcpy(store, item, n * size);
    for (uint32_t i = 0; i < n; i++)
        memcpy((char *)item + i * size, store + from[i] * size, size);
}

/* The gaps of buffer from[i] come to buffer i. */
static mpl_status permute_gaps(mpl_ctx *ctx, mpl_problem *p, const uint32_t *from)
{
    mpl_status st = MPL_OK;
    uint32_t *gap_begin = NULL, *gap_from = NULL, *gap_to = NULL;
    uint32_t n_gaps = p->gap_begin != NULL ? p->gap_begin[p->n] : 0;

    if (p->gap_begin == NULL)
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, gap_begin, (size_t)p->n + 1));
    MPL_TRY(mpl_new(ctx, gap_from, n_gaps));
    MPL_TRY(mpl_new(ctx, gap_to, n_gaps));
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t begin = p->gap_begin[from[i]], count = p->gap_begin[from[i] + 1] - begin;

        memcpy(gap_from + gap_begin[i], p->gap_from + begin, count * sizeof *gap_from);
        memcpy(gap_to + gap_begin[i], p->gap_to + begin, count * sizeof *gap_to);
        gap_begin[i + 1] = gap_begin[i] + count;
    }
    memcpy(p->gap_begin, gap_begin, ((size_t)p->n + 1) * sizeof *gap_begin);
    memcpy(p->gap_from, gap_from, n_gaps * sizeof *gap_from);
    memcpy(p->gap_to, gap_to, n_gaps * sizeof *gap_to);
out:
    mpl_free(ctx, gap_begin);
    mpl_free(ctx, gap_from);
    mpl_free(ctx, gap_to);
    return st;
}

mpl_status mpl_problem_shuffle(mpl_ctx *ctx, mpl_problem *p, uint64_t seed, uint64_t *offset)
{
    mpl_status st = MPL_OK;
    uint32_t *from = NULL;
    uint64_t *store = NULL;
    mpl_rng rng;

    MPL_TRY(refuse_directed(ctx, p));
    MPL_TRY(mpl_new(ctx, from, p->n));
    MPL_TRY(mpl_new(ctx, store, p->n));
    mpl_rng_init(&rng, seed);
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t k = (uint32_t)mpl_rng_below(&rng, i + UINT64_C(1));

        from[i] = from[k];
        from[k] = i;
    }
    MPL_TRY(permute_gaps(ctx, p, from));
    permute(p->buffer_name, sizeof *p->buffer_name, from, p->n, (char *)store);
    permute(offset, sizeof *offset, from, p->n, (char *)store);
#define PERMUTE(field) permute(p->field, sizeof *p->field, from, p->n, (char *)store);
    MPL_BUFFER_FIELDS(PERMUTE)
#undef PERMUTE
out:
    mpl_free(ctx, from);
    mpl_free(ctx, store);
    return st;
}
