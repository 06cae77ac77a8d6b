/* random_families.h -- small random problems with families: buffers at fixed distances, each with
 * its own live range. */
#pragma once

#include "tests/support/random_problem.h"

/* Drops pairs across pools, within one family, or onto too small a buffer. */
static inline void drop_pairs(mpl_problem *p)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_in_place; i++) {
        mpl_buffer in = p->in_place_in[i], out = p->in_place_out[i];

        if (p->pool[in] != p->pool[out] || p->inside[in] == p->inside[out] ||
            p->bytes[out] > p->bytes[in])
            continue;
        p->in_place_in[n] = in;
        p->in_place_out[n] = out;
        p->in_place_step[n++] = p->in_place_step[i];
    }
    p->n_in_place = n;
}

/* Adds b to the family of `first`, clear of members it conflicts with, at times with a hole. */
static inline void join_family(mpl_problem *p, mpl_rng *rng, mpl_buffer first, mpl_buffer b)
{
    uint64_t at = random_below(rng, 3) == 0 ? p->align[first] : 0;

    p->pool[b] = p->pool[first];
    p->align[b] = p->align[first];
    p->inside[b] = first;
    for (mpl_buffer a = 0; a < b; a++)
        if (p->inside[a] == first && mpl_conflict(p, a, b) && p->inside_at[a] + p->bytes[a] > at)
            at = p->inside_at[a] + p->bytes[a];
    p->inside_at[b] = (at + p->align[b] - 1) / p->align[b] * p->align[b];
}

/* Small buffers, many of them in one of two families. */
static inline mpl_problem *random_families(mpl_ctx *ctx, mpl_rng *rng, uint32_t n, unsigned what)
{
    mpl_problem *p = random_problem(ctx, rng, n, what);
    mpl_buffer first[2] = {MPL_NONE, MPL_NONE};

    assert_ok(ctx, mpl_new(ctx, p->inside, n));
    assert_ok(ctx, mpl_new(ctx, p->inside_at, n));
    for (mpl_buffer b = 0; b < n; b++) {
        uint32_t k = random_below(rng, 3);

        p->bytes[b] = 1 + p->bytes[b] % 5;
        p->inside[b] = b;
        if (k == 2)
            continue;
        if (first[k] == MPL_NONE)
            first[k] = b;
        else
            join_family(p, rng, first[k], b);
    }
    drop_pairs(p);
    assert_ok(ctx, mpl_problem_check(ctx, p));
    return p;
}
