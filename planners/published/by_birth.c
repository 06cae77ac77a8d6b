/* by_birth.c -- see by_birth.h. */
#include "planners/published/by_birth.h"
#include "planners/place/sort.h"

static void count_before(const mpl_problem *p, uint64_t *count)
{
    const mpl_before *before = p->before;

    for (mpl_buffer a = 0; a < p->n; a++)
        for (uint32_t word = 0; word < before->n_words; word++)
            for (uint64_t bits = before->row[(size_t)a * before->n_words + word]; bits != 0;
                 bits &= bits - 1)
                count[64 * word + (uint32_t)__builtin_ctzll(bits)]++;
}

/* All ids by birth, the larger first among equals, then by id. Under parallel, where there are no
 * births, by the number of buffers that are before: if a is before b, then b has all of a's and a
 * itself, so this respects the order. O(n log n); under parallel O(n^2). */
static mpl_status order_by_birth(mpl_ctx *ctx, const mpl_problem *p, mpl_buffer *order)
{
    mpl_status st = MPL_OK;
    uint64_t *key = NULL;

    MPL_TRY(mpl_new(ctx, key, p->n));
    mpl_ids_ascending(p->n, order);
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = UINT64_MAX - p->bytes[b];
    MPL_TRY(mpl_sort_ids(ctx, p->n, order, key));
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = p->before == NULL ? p->birth[b] : 0;
    if (p->before != NULL)
        count_before(p, key);
    MPL_TRY(mpl_sort_ids(ctx, p->n, order, key));
out:
    mpl_free(ctx, key);
    return st;
}

mpl_status mpl_place_by_birth(mpl_run *run, const mpl_problem *p, mpl_fit fit, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_buffer *order = NULL;

    MPL_TRY(mpl_new(run->ctx, order, p->n));
    MPL_TRY(order_by_birth(run->ctx, p, order));
    MPL_TRY(mpl_place_all(run, p, order, fit, out));
out:
    mpl_free(run->ctx, order);
    return st;
}
