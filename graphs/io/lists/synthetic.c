/* synthetic.c -- generated buffer lists for tests and speed measurements. See lists.h. */
#include "graphs/core/rng.h"
#include "graphs/io/lists/lists.h"

mpl_status mpl_problem_synthetic(mpl_ctx *ctx, uint32_t n, uint32_t alive, uint64_t seed,
                                 mpl_problem **out)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;
    mpl_rng rng;
    char name[64];

    if (n == 0 || alive == 0 || alive > UINT32_MAX / 4 || n > UINT32_MAX / 2)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "a synthetic list of %u buffers, %u alive: both must be from 1 to 2^30", n, alive);
    snprintf(name, sizeof name, "synthetic:n=%u,alive=%u,seed=%" PRIu64, n, alive, seed);
    MPL_TRY(mpl_problem_new(ctx, name, n, &p));
    rng = mpl_rng_of(seed);
    for (mpl_buffer b = 0; b < n; b++) {
        uint64_t largest = UINT64_C(1) << mpl_rng_below(&rng, 15);

        p->bytes[b] = 64 * (1 + mpl_rng_below(&rng, largest));
        p->align[b] = 64;
        p->birth[b] = b;
        p->death[b] = b + 1 + (uint32_t)mpl_rng_below(&rng, 2 * (uint64_t)alive - 1);
        p->n_steps = p->death[b] > p->n_steps ? p->death[b] : p->n_steps;
    }
    *out = p, p = NULL;
out:
    mpl_problem_free(ctx, p);
    return st;
}
