/* small_problem.h -- problems of a few buffers, a naive search for them, and problems whose optimum
 * lies above the load. Those are rare among random problems, so they are bred. */
#pragma once

#include "tests/support/root_problems.h"
#include "tests/support/test.h"

#include "graphs/core/rng.h"

/* ---- brute force: items in the order of their offsets, each as low as possible ---- */

enum { MOST = 16 };

typedef struct small {
    uint32_t n;
    uint32_t birth[MOST], death[MOST], size[MOST], align[MOST];
    int32_t fixed[MOST]; /* -1: free */
} small;

typedef struct brute {
    const small *p;
    uint32_t cap;
    uint32_t offset[MOST];
    bool placed[MOST];
    uint64_t nodes;
} brute;

static inline bool overlap(const small *p, uint32_t a, uint32_t b)
{
    return p->birth[a] < p->death[b] && p->birth[b] < p->death[a];
}

static inline bool load_fits(const brute *f)
{
    for (uint32_t i = 0; i < f->p->n; i++) { /* the heaviest steps are births */
        uint32_t t = f->p->birth[i], top = 0, rest = 0;

        for (uint32_t j = 0; j < f->p->n; j++)
            if (f->p->birth[j] <= t && t < f->p->death[j]) {
                if (!f->placed[j])
                    rest += f->p->size[j];
                else if (f->offset[j] + f->p->size[j] > top)
                    top = f->offset[j] + f->p->size[j];
            }
        if (top + rest > f->cap)
            return false;
    }
    return true;
}

static inline bool brute_place(brute *f, uint32_t n_placed, uint32_t last)
{
    if (n_placed == f->p->n)
        return true;
    if (!load_fits(f))
        return false;
    f->nodes++;
    for (uint32_t i = 0; i < f->p->n; i++) {
        uint32_t at = 0;

        if (f->placed[i])
            continue;
        for (uint32_t j = 0; j < f->p->n; j++)
            if (f->placed[j] && overlap(f->p, i, j) && f->offset[j] + f->p->size[j] > at)
                at = f->offset[j] + f->p->size[j];
        at = (at + f->p->align[i] - 1) / f->p->align[i] * f->p->align[i];
        if (f->p->fixed[i] >= 0 && at > (uint32_t)f->p->fixed[i])
            return false;
        at = f->p->fixed[i] >= 0 ? (uint32_t)f->p->fixed[i] : at;
        if (at < last || at + f->p->size[i] > f->cap)
            continue;
        f->placed[i] = true;
        f->offset[i] = at;
        if (brute_place(f, n_placed + 1, at))
            return true;
        f->placed[i] = false;
    }
    return false;
}

/* Whether the buffers fit into cap. */
static inline bool brute_fits(const small *p, uint32_t cap)
{
    brute f = {.p = p, .cap = cap};

    return brute_place(&f, 0, 0);
}

static inline uint32_t load(const small *p)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t sum = 0;

        for (uint32_t j = 0; j < p->n; j++)
            sum += p->birth[j] <= p->birth[i] && p->birth[i] < p->death[j] ? p->size[j] : 0;
        most = sum > most ? sum : most;
    }
    return most;
}

static inline uint32_t brute_optimum(const small *p)
{
    uint32_t cap = load(p);

    while (!brute_fits(p, cap))
        cap++;
    return cap;
}

/* ---- problems ---- */

static inline uint32_t below(mpl_rng *rng, uint32_t n)
{
    return (uint32_t)mpl_rng_below(rng, n);
}

static inline small random_small(mpl_rng *rng, bool aligned)
{
    small p = {.n = 5 + below(rng, 4)};
    uint32_t steps = 3 + below(rng, 6), largest = 2 + below(rng, 8);

    for (uint32_t i = 0; i < p.n; i++) {
        p.birth[i] = below(rng, steps);
        p.death[i] = p.birth[i] + 1 + below(rng, steps - p.birth[i] < 4 ? steps - p.birth[i] : 4);
        p.size[i] = 1 + below(rng, largest);
        p.align[i] = aligned ? 1u << below(rng, 3) : 1;
        p.fixed[i] = -1;
    }
    return p;
}

/* Makes one change: a size, an end of a lifetime, a buffer more or less. */
static inline small mutated(mpl_rng *rng, const small *from)
{
    small p = *from;
    uint32_t i = below(rng, p.n);

    switch (below(rng, 6)) {
    case 0:
        p.size[i]++;
        break;
    case 1:
        p.size[i] -= p.size[i] > 1;
        break;
    case 2:
        p.death[i]++;
        break;
    case 3:
        p.death[i] -= p.death[i] > p.birth[i] + 1;
        break;
    case 4:
        if (p.n < MOST - 1) {
            p.birth[p.n] = p.birth[i];
            p.death[p.n] = p.death[below(rng, p.n)];
            p.death[p.n] = p.death[p.n] > p.birth[i] ? p.death[p.n] : p.birth[i] + 1;
            p.size[p.n] = 1 + below(rng, 3);
            p.align[p.n] = 1;
            p.fixed[p.n++] = -1;
        }
        break;
    default:
        p.n--;
        p.birth[i] = p.birth[p.n], p.death[i] = p.death[p.n], p.size[i] = p.size[p.n];
        p.align[i] = p.align[p.n], p.fixed[i] = p.fixed[p.n];
    }
    return p;
}

static inline mpl_problem *problem_of(mpl_ctx *ctx, const small *from)
{
    mpl_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "small", from->n, &p));
    for (uint32_t i = 0; i < from->n; i++) {
        p->birth[i] = from->birth[i];
        p->death[i] = from->death[i];
        p->bytes[i] = from->size[i];
        p->align[i] = from->align[i];
        p->n_steps = p->death[i] > p->n_steps ? p->death[i] : p->n_steps;
        if (from->fixed[i] >= 0 && p->fixed == NULL) {
            assert_ok(ctx, mpl_new(ctx, p->fixed, from->n));
            for (uint32_t j = 0; j < from->n; j++)
                p->fixed[j] = MPL_UNFIXED;
        }
        if (from->fixed[i] >= 0)
            p->fixed[i] = (uint64_t)from->fixed[i];
    }
    assert_ok(ctx, mpl_problem_check(ctx, p));
    return p;
}

static const small roots[] = {ROOT_PROBLEMS(size)};
