/* times.c -- lifetimes: given as times, asked of one buffer. See problem.h. */
#include "graphs/problem/problem.h"

#include <stdlib.h>

#define DENSE_STEPS (UINT32_C(1) << 22) /* so many steps cost next to nothing */

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y); /* equal times are interchangeable */
}

static uint32_t rank_of(const uint64_t *time, uint32_t n, uint64_t t)
{
    uint32_t low = 0, high = n;

    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;

        if (time[mid] <= t)
            low = mid;
        else
            high = mid;
    }
    return low;
}

static mpl_status set_ranks(mpl_ctx *ctx, const uint64_t *birth, const uint64_t *death,
                            mpl_problem *p)
{
    mpl_status st = MPL_OK;
    uint64_t *time = NULL;
    uint32_t n = 0;

    MPL_TRY(mpl_new(ctx, time, 2 * (size_t)p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        time[2 * (size_t)b] = birth[b], time[2 * (size_t)b + 1] = death[b];
    qsort(time, 2 * (size_t)p->n, sizeof *time, by_time);
    for (size_t i = 0; i < 2 * (size_t)p->n; i++)
        if (n == 0 || time[i] != time[n - 1])
            time[n++] = time[i];
    for (mpl_buffer b = 0; b < p->n; b++)
        p->birth[b] = rank_of(time, n, birth[b]), p->death[b] = rank_of(time, n, death[b]);
    p->n_steps = n - 1;
out:
    mpl_free(ctx, time);
    return st;
}

mpl_status mpl_problem_set_times(mpl_ctx *ctx, const uint64_t *birth, const uint64_t *death,
                                 mpl_problem *p)
{
    uint64_t last = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        last = mpl_max_u64(last, death[b]);
    if (last > DENSE_STEPS)
        return set_ranks(ctx, birth, death, p);
    for (mpl_buffer b = 0; b < p->n; b++)
        p->birth[b] = (uint32_t)birth[b], p->death[b] = (uint32_t)death[b];
    p->n_steps = (uint32_t)last;
    return MPL_OK;
}

const char *mpl_buffer_label(const mpl_problem *p, mpl_buffer b, char *text)
{
    if (p->buffer_name != NULL && p->buffer_name[b] != NULL)
        return p->buffer_name[b];
    snprintf(text, 24, "#%u", b);
    return text;
}

bool mpl_needed_at(const mpl_problem *p, mpl_buffer b, uint32_t step)
{
    bool needed = p->birth[b] <= step && step < p->death[b];

    for (uint32_t i = p->gap_begin != NULL ? p->gap_begin[b] : 0;
         needed && p->gap_begin != NULL && i < p->gap_begin[b + 1]; i++)
        needed = step < p->gap_from[i] || step >= p->gap_to[i];
    return needed;
}
