/* anneal.c -- simulated annealing over orders. See orders_priv.h.
 *
 * Idea     A move shifts one operation to another position between its last predecessor and its
 *          first successor. The energy is the peak plus, with a far smaller weight, the mean cost
 *          above the floor. The mean distinguishes moves that leave the peak unchanged. A worse
 *          order is accepted with a probability that falls with the temperature.
 * Source   S. Kirkpatrick, C. Gelatt, M. Vecchi, "Optimization by Simulated Annealing", Science
 *          220, 1983.
 * Differs  Logarithms come from random bits in integers, equal on every machine.
 * Cost     O(n + uses) a move. */
#include "graphs/orders/orders_priv.h"

typedef struct anneal {
    const mpl_order_model *m;
    mpl_effort *effort;
    uint64_t floor, peak; /* the peak of the last energy */
    mpl_order_walk walk;
    uint32_t *order, *place; /* [n] */
} anneal;

static uint64_t energy(anneal *a)
{
    uint32_t n = a->m->n;
    uint64_t excess = 0;

    a->peak = 0;
    mpl_order_walk_reset(&a->walk);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t cost = mpl_order_walk_cost(&a->walk, a->order[i]);

        a->peak = mpl_max_u64(a->peak, cost);
        excess += (cost > a->floor ? cost - a->floor : 0) / n;
        mpl_order_walk_run(&a->walk, a->order[i]);
    }
    a->effort->ticks += n;
    return a->peak + excess / 16;
}

/* -log2(u) for a uniform u in (0, 1], in units of 1/256; linear between powers of two. */
static uint64_t random_log(mpl_rng *rng)
{
    uint64_t u = mpl_rng_next(rng) | 1, zeros = (uint64_t)__builtin_clzll(u);

    return zeros * 256 + 255 - ((u << zeros) >> 55 & 255);
}

/* Moves the operation at `from` to `to`; those between shift by one. */
static void shift(anneal *a, uint32_t from, uint32_t to)
{
    uint32_t v = a->order[from];

    if (from < to)
        memmove(a->order + from, a->order + from + 1, (to - from) * sizeof *a->order);
    else
        memmove(a->order + to + 1, a->order + to, (from - to) * sizeof *a->order);
    a->order[to] = v;
    for (uint32_t i = from < to ? from : to; i <= (from < to ? to : from); i++)
        a->place[a->order[i]] = i;
}

/* Draws a random move; false: the drawn operation cannot move. */
static bool draw(const anneal *a, mpl_rng *rng, uint32_t *from, uint32_t *to)
{
    const mpl_order_model *m = a->m;
    uint32_t v = (uint32_t)mpl_rng_below(rng, m->n), low = 0, high = m->n - 1;

    for (uint32_t i = m->before.begin[v]; i < m->before.begin[v + 1]; i++)
        if (a->place[m->before.item[i]] + 1 > low)
            low = a->place[m->before.item[i]] + 1;
    for (uint32_t i = m->after.begin[v]; i < m->after.begin[v + 1]; i++)
        if (a->place[m->after.item[i]] - 1 < high)
            high = a->place[m->after.item[i]] - 1;
    *from = a->place[v];
    if (low == high)
        return false;
    *to = low + (uint32_t)mpl_rng_below(rng, high - low);
    *to += *to >= *from;
    return true;
}

mpl_status mpl_order_anneal(mpl_ctx *ctx, const mpl_order_model *m, uint64_t floor, uint64_t seed,
                            uint64_t rounds, mpl_effort *effort, uint32_t *order, uint64_t *peak)
{
    mpl_status st = MPL_OK;
    anneal a = {.m = m, .effort = effort, .floor = floor};
    uint64_t now, hot;
    mpl_rng rng;

    if (m->n == 0 || *peak <= floor)
        return MPL_OK;
    rng = mpl_rng_of(seed);
    MPL_TRY(mpl_new_each(ctx, m->n, a.order, a.place));
    MPL_TRY(mpl_order_walk_init(ctx, m, &a.walk));
    memcpy(a.order, order, m->n * sizeof *order);
    for (uint32_t i = 0; i < m->n; i++)
        a.place[order[i]] = i;
    now = energy(&a);
    hot = (*peak - floor) / 4 + 1;
    for (uint64_t i = 0; i<rounds && * peak> floor && !mpl_effort_spent(effort); i++) {
        uint64_t part = (rounds - i) * 1024 / rounds,
                 warmth = (hot / 1024 + 1) * part * part / 1024, next;
        uint32_t from, to;

        effort->ticks++;
        if (!draw(&a, &rng, &from, &to))
            continue;
        shift(&a, from, to);
        next = energy(&a);
        if (next > now && next - now > warmth / 256 * random_log(&rng)) {
            shift(&a, to, from);
            continue;
        }
        now = next;
        if (a.peak < *peak) {
            *peak = a.peak;
            memcpy(order, a.order, m->n * sizeof *order);
        }
    }
out:
    mpl_order_walk_fini(ctx, &a.walk);
    mpl_free_each(ctx, a.order, a.place);
    return st;
}
