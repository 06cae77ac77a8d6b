/* small_general.h -- problems of a few buffers with a partial order or in-place pairs, a naive
 * search for them, and known problems whose optimum lies above the bound. */
#pragma once

#include "tests/support/test.h"

#include "graphs/problem/before.h"
#include "graphs/core/rng.h"

enum { MOST = 10 };

/* A problem as plain matrices. Serial ones also have lifetimes. */
typedef struct small {
    uint32_t n;
    bool serial;
    uint32_t birth[MOST], death[MOST];
    bool arc[MOST][MOST];  /* a < b only; its closure is the order */
    bool pair[MOST][MOST]; /* [in][out] allowed */
    uint32_t size[MOST], align[MOST];
    int32_t fixed[MOST]; /* -1: free */
} small;

/* ---- brute force ---- */

typedef struct brute {
    const small *p;
    bool conflict[MOST][MOST]; /* excluding pairs in use */
    uint32_t body[MOST];       /* lowest buffer at the same offset */
    uint32_t cap;
    uint32_t offset[MOST];
    bool placed[MOST];
} brute;

/* The transitive closure of the arcs. */
static inline void find_reach(const small *p, bool reach[MOST][MOST])
{
    memcpy(reach, p->arc, sizeof p->arc);
    for (uint32_t k = 0; k < p->n; k++)
        for (uint32_t i = 0; i < p->n; i++)
            for (uint32_t j = 0; j < p->n; j++)
                reach[i][j] = reach[i][j] || (reach[i][k] && reach[k][j]);
}

static inline void find_conflicts(const small *p, bool conflict[MOST][MOST])
{
    bool reach[MOST][MOST];

    find_reach(p, reach);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = 0; j < p->n; j++)
            conflict[i][j] =
                i != j && (p->serial ? p->birth[i] < p->death[j] && p->birth[j] < p->death[i]
                                     : !reach[i][j] && !reach[j][i]);
}

/* Places bodies in the order of their offsets, each as low as possible. */
static inline bool brute_place(brute *f, uint32_t last)
{
    const small *p = f->p;
    bool all = true;

    for (uint32_t b = 0; b < p->n; b++) {
        uint32_t at = 0, align = 1, end = 0;
        int32_t fixed = -1;

        if (f->body[b] != b || f->placed[b])
            continue;
        all = false;
        for (uint32_t i = 0; i < p->n; i++) {
            if (f->body[i] != b)
                continue;
            align = p->align[i] > align ? p->align[i] : align;
            end = p->size[i] > end ? p->size[i] : end;
            fixed = p->fixed[i] >= 0 ? p->fixed[i] : fixed;
            for (uint32_t j = 0; j < p->n; j++)
                if (f->conflict[i][j] && f->placed[f->body[j]] &&
                    f->offset[f->body[j]] + p->size[j] > at)
                    at = f->offset[f->body[j]] + p->size[j];
        }
        at = (at + align - 1) / align * align;
        if (fixed >= 0 && at > (uint32_t)fixed)
            return false;
        at = fixed >= 0 ? (uint32_t)fixed : at;
        if (at < last || at + end > f->cap)
            continue;
        f->placed[b] = true;
        f->offset[b] = at;
        if (brute_place(f, at))
            return true;
        f->placed[b] = false;
    }
    return all;
}

/* Tries every choice of the pairs (k, ..). */
static inline bool brute_pairs(const small *p, uint32_t k, brute *f)
{
    brute g;

    for (; k < p->n * p->n; k++)
        if (p->pair[k / p->n][k % p->n] && f->conflict[k / p->n][k % p->n])
            break;
    if (k < p->n * p->n) {
        uint32_t in = f->body[k / p->n], out = f->body[k % p->n];

        if (brute_pairs(p, k + 1, f))
            return true;
        g = *f;
        g.conflict[k / p->n][k % p->n] = g.conflict[k % p->n][k / p->n] = false;
        for (uint32_t i = 0; i < p->n; i++)
            if (g.body[i] == in || g.body[i] == out)
                g.body[i] = in < out ? in : out;
        return brute_pairs(p, k + 1, &g);
    }
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = 0; j < p->n; j++)
            if (f->body[i] == f->body[j] &&
                (f->conflict[i][j] ||
                 (p->fixed[i] >= 0 && p->fixed[j] >= 0 && p->fixed[i] != p->fixed[j]) ||
                 (p->fixed[i] >= 0 && (uint32_t)p->fixed[i] % p->align[j] != 0)))
                return false;
    g = *f;
    return brute_place(&g, 0);
}

static inline bool brute_fits(const small *p, uint32_t cap)
{
    brute f = {.p = p, .cap = cap};

    find_conflicts(p, f.conflict);
    count_up(p->n, f.body);
    return brute_pairs(p, 0, &f);
}

/* Heaviest set of pairwise conflicting buffers. */
static inline uint32_t clique(const small *p)
{
    bool conflict[MOST][MOST];
    uint32_t most = 0;

    find_conflicts(p, conflict);
    for (uint32_t set = 0; set < 1u << p->n; set++) {
        uint32_t sum = 0;

        for (uint32_t i = 0; i < p->n && sum != UINT32_MAX; i++)
            for (uint32_t j = 0; (set >> i & 1) != 0 && j <= i; j++)
                if (j == i)
                    sum += p->size[i];
                else if ((set >> j & 1) != 0 && !conflict[i][j]) {
                    sum = UINT32_MAX;
                    break;
                }
        most = sum != UINT32_MAX && sum > most ? sum : most;
    }
    return most;
}

static inline uint32_t brute_optimum(const small *p, uint32_t from)
{
    while (!brute_fits(p, from))
        from++;
    return from;
}

/* ---- problems ---- */

static inline uint32_t below(mpl_rng *rng, uint32_t n)
{
    return (uint32_t)mpl_rng_below(rng, n);
}

static inline small random_small(mpl_rng *rng, bool serial, bool aligned)
{
    small p = {.n = 4 + below(rng, 5), .serial = serial};
    uint32_t steps = 3 + below(rng, 5), density = 2 + below(rng, 4), largest = 2 + below(rng, 8);

    for (uint32_t i = 0; i < p.n; i++) {
        p.birth[i] = below(rng, steps);
        p.death[i] = p.birth[i] + 1 + below(rng, steps - p.birth[i] < 4 ? steps - p.birth[i] : 4);
        p.size[i] = 1 + below(rng, largest);
        p.align[i] = aligned ? 1u << below(rng, 3) : 1;
        p.fixed[i] = -1;
        for (uint32_t j = 0; j < i; j++)
            p.arc[j][i] = below(rng, density) == 0;
    }
    return p;
}

/* Whether lifetimes or the order allow the pair, given the existing pairs: what follows or
 * overwrites `out` follows `in`, and what precedes `in` precedes `out`. */
static inline bool pair_is_possible(const small *p, bool conflict[MOST][MOST], uint32_t in,
                                    uint32_t out)
{
    if (p->serial)
        return p->death[in] == p->birth[out] + 1 && p->birth[in] < p->birth[out];
    for (uint32_t c = 0; c < p->n; c++) {
        bool after_in = c > in && !conflict[in][c], before_out = c < out && !conflict[c][out];

        if (((p->pair[out][c] || (c > out && !conflict[out][c])) && !after_in) ||
            ((p->pair[c][in] || (c < in && !conflict[c][in])) && !before_out))
            return false;
    }
    return true;
}

/* Adds some of the pairs that lifetimes (or the order) and sizes allow. */
static inline void offer_pairs(mpl_rng *rng, small *p)
{
    bool conflict[MOST][MOST];

    find_conflicts(p, conflict);
    memset(p->pair, 0, sizeof p->pair);
    for (uint32_t in = 0; in < p->n; in++)
        for (uint32_t out = 0; out < p->n; out++)
            p->pair[in][out] = conflict[in][out] && p->size[out] <= p->size[in] &&
                               below(rng, 2) == 0 && pair_is_possible(p, conflict, in, out);
}

/* Drops pairs that the changed order or sizes no longer allow. */
static inline void keep_possible_pairs(small *p)
{
    bool conflict[MOST][MOST], offered[MOST][MOST];

    find_conflicts(p, conflict);
    memcpy(offered, p->pair, sizeof offered);
    memset(p->pair, 0, sizeof p->pair);
    for (uint32_t in = 0; in < p->n; in++)
        for (uint32_t out = 0; out < p->n; out++)
            p->pair[in][out] = offered[in][out] && conflict[in][out] &&
                               p->size[out] <= p->size[in] &&
                               pair_is_possible(p, conflict, in, out);
}

static inline small mutated(mpl_rng *rng, const small *from)
{
    small p = *from;
    uint32_t i = below(rng, p.n), j = below(rng, p.n);

    switch (below(rng, 5)) {
    case 0:
        p.size[i]++;
        break;
    case 1:
        p.size[i] -= p.size[i] > 1;
        break;
    case 2:
    case 3:
        if (i != j)
            p.arc[i < j ? i : j][i < j ? j : i] ^= true;
        break;
    default:
        if (p.n < MOST && below(rng, 2) == 0) {
            for (uint32_t k = 0; k < p.n; k++)
                p.arc[k][p.n] = p.arc[k][i];
            p.size[p.n] = 1 + below(rng, 3), p.align[p.n] = 1, p.fixed[p.n++] = -1;
        } else if (p.n > 4) { /* drop the last buffer, so that ids stay topological */
            p.n--;
        }
    }
    keep_possible_pairs(&p);
    return p;
}

static inline void fill_order(mpl_ctx *ctx, const small *from, mpl_problem *p)
{
    uint32_t arc_from[MOST * MOST], arc_to[MOST * MOST];
    size_t n_arcs = 0;
    mpl_before *before = NULL;

    for (uint32_t i = 0; i < from->n; i++)
        for (uint32_t j = i + 1; j < from->n; j++)
            if (from->arc[i][j])
                arc_from[n_arcs] = i, arc_to[n_arcs++] = j;
    assert_ok(ctx, mpl_before_from_arcs(ctx, from->n, n_arcs, arc_from, arc_to, &before));
    p->before = before;
}

static inline mpl_problem *problem_of(mpl_ctx *ctx, const small *from)
{
    mpl_problem *p = NULL;

    assert_ok(ctx, mpl_problem_new(ctx, "small", from->n, &p));
    assert_ok(ctx, mpl_new(ctx, p->fixed, from->n));
    assert_ok(ctx, mpl_new(ctx, p->in_place_in, MOST * MOST));
    assert_ok(ctx, mpl_new(ctx, p->in_place_out, MOST * MOST));
    assert_ok(ctx, mpl_new(ctx, p->in_place_step, MOST * MOST));
    for (uint32_t i = 0; i < from->n; i++) {
        p->bytes[i] = from->size[i];
        p->align[i] = from->align[i];
        p->fixed[i] = from->fixed[i] < 0 ? MPL_UNFIXED : (uint64_t)from->fixed[i];
        if (from->serial) {
            p->birth[i] = from->birth[i];
            p->death[i] = from->death[i];
            p->n_steps = p->death[i] > p->n_steps ? p->death[i] : p->n_steps;
        }
    }
    if (!from->serial)
        fill_order(ctx, from, p);
    for (uint32_t step = 0; step < (from->serial ? p->n_steps : 1); step++)
        for (uint32_t out = 0; out < from->n; out++)
            for (uint32_t in = 0; in < from->n; in++)
                if (from->pair[in][out] && (!from->serial || from->birth[out] == step)) {
                    p->in_place_in[p->n_in_place] = in;
                    p->in_place_out[p->n_in_place] = out;
                    p->in_place_step[p->n_in_place++] = step;
                }
    assert_ok(ctx, mpl_problem_check(ctx, p));
    return p;
}

/* Two interval lists whose optimum is above the bound, as orders; mutants may be any order. */
static inline small root(int which)
{
    static const uint32_t birth[2][8] = {{3, 2, 4, 5, 1, 3, 2, 1}, {2, 5, 0, 4, 0, 1, 3, 1}};
    static const uint32_t death[2][8] = {{5, 4, 7, 7, 2, 4, 5, 3}, {5, 6, 2, 6, 1, 4, 6, 3}};
    static const uint32_t size[2][8] = {{1, 3, 4, 4, 4, 1, 2, 3}, {3, 5, 5, 1, 5, 4, 3, 1}};
    small p = {.n = 8};
    uint32_t from[8], n = 0;

    for (uint32_t step = 0; step < 8; step++)
        for (uint32_t i = 0; i < 8; i++)
            if (birth[which][i] == step)
                from[n++] = i;
    for (uint32_t i = 0; i < 8; i++) {
        p.size[i] = size[which][from[i]], p.align[i] = 1, p.fixed[i] = -1;
        for (uint32_t j = i + 1; j < 8; j++)
            p.arc[i][j] = death[which][from[i]] <= birth[which][from[j]];
    }
    return p;
}

static inline bool is_interval_order(const small *p)
{
    bool conflict[MOST][MOST];

    find_conflicts(p, conflict); /* not an interval order: two chains without relations */
    for (uint32_t k = 0; k < p->n * p->n * p->n * p->n; k++) {
        uint32_t a = k % p->n, b = k / p->n % p->n, c = k / p->n / p->n % p->n,
                 d = k / p->n / p->n / p->n;

        if (a < b && c < d && !conflict[a][b] && !conflict[c][d] && conflict[a][c] &&
            conflict[a][d] && conflict[b][c] && conflict[b][d])
            return false;
    }
    return true;
}
