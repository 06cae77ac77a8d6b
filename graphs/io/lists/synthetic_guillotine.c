/* synthetic_guillotine.c -- buffer lists with a plan without waste: a cut rectangle. See
 * lists.h. */
#include "graphs/core/rng.h"
#include "graphs/io/lists/lists.h"

enum { STEPS = 1024, UNITS = 1024, UNIT_BYTES = 1024, MOST = 100000 };

typedef struct rectangle {
    uint32_t birth, death, low, high; /* [step], [unit] */
} rectangle;

static uint64_t area(const rectangle *self)
{
    return (uint64_t)(self->death - self->birth) * (self->high - self->low);
}

/* Cuts r at a random inner time or height; the part after it becomes *rest. area(r) > 1. */
static void cut(mpl_rng *rng, rectangle *r, rectangle *rest)
{
    uint32_t width = r->death - r->birth, height = r->high - r->low;
    bool in_time = height == 1 || (width > 1 && mpl_rng_below(rng, 2) == 0);

    *rest = *r;
    if (in_time)
        r->death = rest->birth = r->birth + 1 + (uint32_t)mpl_rng_below(rng, width - 1);
    else
        r->high = rest->low = r->low + 1 + (uint32_t)mpl_rng_below(rng, height - 1);
}

mpl_status mpl_problem_synthetic_guillotine(mpl_ctx *ctx, uint32_t n, uint64_t seed,
                                            mpl_problem **out)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;
    rectangle *r = NULL;
    mpl_rng rng;
    char name[64];

    if (n == 0 || n > MOST)
        MPL_FAIL(ctx, MPL_EINPUT, "a guillotine list of %u buffers: 1 to %d are possible", n, MOST);
    snprintf(name, sizeof name, "guillotine:n=%u,seed=%" PRIu64, n, seed);
    MPL_TRY(mpl_problem_new(ctx, name, n, &p));
    MPL_TRY(mpl_new(ctx, r, n));
    rng = mpl_rng_of(seed);
    r[0] = (rectangle){.death = STEPS, .high = UNITS};
    for (uint32_t k = 1; k < n; k++) {
        uint64_t at = mpl_rng_below(&rng, (uint64_t)STEPS * UNITS);
        uint32_t i = 0;

        while (at >= area(&r[i])) /* weighted by area, so large pieces are cut more often */
            at -= area(&r[i++]);
        while (area(&r[i]) == 1)
            i = (i + 1) % k;
        cut(&rng, &r[i], &r[k]);
    }
    for (mpl_buffer b = 0; b < n; b++) {
        p->birth[b] = r[b].birth;
        p->death[b] = r[b].death;
        p->bytes[b] = (uint64_t)(r[b].high - r[b].low) * UNIT_BYTES;
    }
    p->n_steps = STEPS;
    *out = p, p = NULL;
out:
    mpl_problem_free(ctx, p);
    mpl_free(ctx, r);
    return st;
}
