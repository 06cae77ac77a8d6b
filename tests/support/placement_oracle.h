/* placement_oracle.h -- naive placement in a given order, and the best result over all orders. For
 * tests of planners; shares no code with them. */
#pragma once

#include "tests/support/random_problem.h"

typedef struct placed_range {
    uint64_t begin, end;
} placed_range;

static inline int compare_ranges(const void *a, const void *b)
{
    const placed_range *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static inline uint64_t round_up(uint64_t at, uint64_t align)
{
    return (at + align - 1) / align * align;
}

static inline bool is_pair(const mpl_problem *p, mpl_buffer a, mpl_buffer b)
{
    return is_offered(p, a, b) || is_offered(p, b, a);
}

/* Whether b fits at `at` without a plain_conflict with a placed buffer. */
static inline bool plainly_fits(const mpl_problem *p, mpl_plan *plan, const bool *placed,
                                mpl_buffer b, uint64_t at)
{
    plan->offset[b] = at;
    for (mpl_buffer c = 0; c < p->n; c++)
        if (placed[c] && c != b && plain_conflict(p, plan, b, c))
            return false;
    return true;
}

/* Offset of b: the lowest or best-fitting gap among placed conflicting buffers, or an in-place
 * partner's offset. */
static inline uint64_t oracle_offset(const mpl_problem *p, mpl_plan *plan, const bool *placed,
                                     mpl_buffer b, bool best)
{
    placed_range *range = calloc(p->n + 1, sizeof *range);
    uint64_t at = 0, offset = UINT64_MAX, spare = UINT64_MAX, joined = UINT64_MAX;
    size_t n = 0;

    for (mpl_buffer c = 0; c < p->n; c++)
        if (placed[c] && mpl_conflict(p, b, c))
            range[n++] = (placed_range){plan->offset[c], plan->offset[c] + p->bytes[c]};
    qsort(range, n, sizeof *range, compare_ranges);
    range[n++] = (placed_range){UINT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < n; i++) {
        uint64_t start = round_up(at, p->align[b]);

        if (start <= range[i].begin && range[i].begin - start >= p->bytes[b]) {
            uint64_t left = range[i].begin - start - p->bytes[b];

            if (offset == UINT64_MAX || (best && left < spare))
                offset = start, spare = left;
        }
        at = range[i].end > at ? range[i].end : at;
    }
    free(range);
    for (mpl_buffer c = 0; c < p->n; c++) {
        uint64_t differ =
            p->bytes[c] > p->bytes[b] ? p->bytes[c] - p->bytes[b] : p->bytes[b] - p->bytes[c];

        if (placed[c] && is_pair(p, b, c) && plan->offset[c] % p->align[b] == 0 &&
            plan->offset[c] < joined && (best ? differ <= spare : plan->offset[c] <= offset) &&
            plainly_fits(p, plan, placed, b, plan->offset[c]))
            joined = plan->offset[c];
    }
    return joined != UINT64_MAX ? joined : offset;
}

/* Places buffers in `order`, those with fixed offsets first, into plan->offset. */
static inline void oracle_place(const mpl_problem *p, const mpl_buffer *order, bool best,
                                mpl_plan *plan)
{
    bool *placed = calloc(p->n + 1, sizeof *placed);

    for (mpl_buffer b = 0; p->fixed != NULL && b < p->n; b++)
        if (p->fixed[b] != MPL_UNFIXED) {
            plan->offset[b] = p->fixed[b];
            placed[b] = true;
        }
    for (uint32_t i = 0; i < p->n; i++)
        if (!placed[order[i]]) {
            plan->offset[order[i]] = oracle_offset(p, plan, placed, order[i], best);
            placed[order[i]] = true;
        }
    free(placed);
}

static inline uint64_t plain_peak(const mpl_problem *p, const mpl_plan *plan)
{
    uint64_t peak = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == 0 && plan->offset[b] + p->bytes[b] > peak)
            peak = plan->offset[b] + p->bytes[b];
    return peak;
}

/* The least peak over all orders of "next buffer at its lowest free offset". Without pairs and
 * fixed offsets one such order is optimal: sort an optimal plan by offset and lower each buffer in
 * turn as far as possible. */
static inline void try_orders(const mpl_problem *p, mpl_plan *plan, bool *placed, uint32_t n_placed,
                              uint64_t *least)
{
    if (n_placed == p->n) {
        uint64_t peak = plain_peak(p, plan);

        *least = peak < *least ? peak : *least;
        return;
    }
    for (mpl_buffer b = 0; b < p->n; b++) {
        if (placed[b])
            continue;
        plan->offset[b] = oracle_offset(p, plan, placed, b, false);
        placed[b] = true;
        if (p->pool[b] != 0 || plan->offset[b] + p->bytes[b] < *least)
            try_orders(p, plan, placed, n_placed + 1, least);
        placed[b] = false;
    }
}

static inline uint64_t least_peak(mpl_ctx *ctx, const mpl_problem *p)
{
    bool placed[16] = {false};
    uint64_t least = UINT64_MAX;
    owned_plan *plan = NULL;

    assert_true(p->n <= 16);
    assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
    try_orders(p, plan, placed, 0, &least);
    return least;
}
