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
    const mpl_order_model *model;
    mpl_effort *effort;
    uint64_t floor, peak; /* the peak of the last energy */
    mpl_order_walk walk;
    uint32_t *order, *place; /* [n] */
} anneal;

static uint64_t energy(anneal *self)
{
    uint32_t n = self->model->n;
    uint64_t excess = 0;

    self->peak = 0;
    mpl_order_walk_reset(&self->walk);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t cost = mpl_order_walk_cost(&self->walk, self->order[i]);

        self->peak = mpl_max_u64(self->peak, cost);
        excess += (cost > self->floor ? cost - self->floor : 0) / n;
        mpl_order_walk_run(&self->walk, self->order[i]);
    }
    self->effort->ticks += n;
    return self->peak + excess / 16;
}

/* -log2(u) for a uniform u in (0, 1], in units of 1/256; linear between powers of two. */
static uint64_t random_log(mpl_rng *rng)
{
    uint64_t u = mpl_rng_next(rng) | 1, zeros = (uint64_t)__builtin_clzll(u);

    return zeros * 256 + 255 - ((u << zeros) >> 55 & 255);
}

/* Moves the operation at `from` to `to`; those between shift by one. */
static void shift(anneal *self, uint32_t from, uint32_t to)
{
    uint32_t v = self->order[from];

    if (from < to)
        memmove(self->order + from, self->order + from + 1, (to - from) * sizeof *self->order);
    else
        memmove(self->order + to + 1, self->order + to, (from - to) * sizeof *self->order);
    self->order[to] = v;
    for (uint32_t i = from < to ? from : to; i <= (from < to ? to : from); i++)
        self->place[self->order[i]] = i;
}

/* Draws a random move; false: the drawn operation cannot move. */
static bool draw(const anneal *self, mpl_rng *rng, uint32_t *from, uint32_t *to)
{
    const mpl_order_model *model = self->model;
    uint32_t v = (uint32_t)mpl_rng_below(rng, model->n), low = 0, high = model->n - 1;

    for (uint32_t i = model->before.begin[v]; i < model->before.begin[v + 1]; i++)
        if (self->place[model->before.item[i]] + 1 > low)
            low = self->place[model->before.item[i]] + 1;
    for (uint32_t i = model->after.begin[v]; i < model->after.begin[v + 1]; i++)
        if (self->place[model->after.item[i]] - 1 < high)
            high = self->place[model->after.item[i]] - 1;
    *from = self->place[v];
    if (low == high)
        return false;
    *to = low + (uint32_t)mpl_rng_below(rng, high - low);
    *to += *to >= *from;
    return true;
}

mpl_status mpl_order_anneal(mpl_ctx *ctx, const mpl_order_model *model, uint64_t floor,
                            uint64_t seed, uint64_t rounds, mpl_effort *effort, uint32_t *order,
                            uint64_t *peak)
{
    mpl_status st = MPL_OK;
    anneal a = {.model = model, .effort = effort, .floor = floor};
    uint64_t now, hot;
    mpl_rng rng;

    if (model->n == 0 || *peak <= floor)
        return MPL_OK;
    rng = mpl_rng_of(seed);
    MPL_TRY(mpl_new_each(ctx, model->n, a.order, a.place));
    MPL_TRY(mpl_order_walk_init(ctx, model, &a.walk));
    memcpy(a.order, order, model->n * sizeof *order);
    for (uint32_t i = 0; i < model->n; i++)
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
            memcpy(order, a.order, model->n * sizeof *order);
        }
    }
out:
    mpl_order_walk_fini(ctx, &a.walk);
    mpl_free_each(ctx, a.order, a.place);
    return st;
}
