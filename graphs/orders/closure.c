/* closure.c -- operations that may run at once without loss. See orders_priv.h.
 *
 * Idea     Let D be the set of operations done, and E a larger set reached within the peak. Let no
 *          closed set between them have fewer live bytes than E. Take any order from D and move E's
 *          operations to its front. Its sets become S + E, and live(S + E) <= live(S) + live(E) -
 *          live(S * E) <= live(S). So some best order goes to E first. The same holds while an
 *          operation runs, because an operand's other users finish no later. E is D plus one
 *          operation that leaves no more live bytes. Or it is D plus an operation that leaves more,
 *          followed by such steps of operations that it alone makes ready, up to the point where
 *          the whole leaves no more.
 * Source   the exchange argument of E. Kayaaslan, T. Lambert, L. Marchal, B. Ucar, "Scheduling
 *          series-parallel task graphs to minimize peak memory", 2018, for sets instead of chains.
 * Limits   Misses joins of several operations that each leave more; searches branch on them. */
#include "graphs/orders/orders_priv.h"

enum { DEPTH = 6 }; /* nested operations that leave more */

typedef struct closer {
    mpl_order_walk *walk;
    uint64_t peak, ticks;
    uint32_t *ran, n;
} closer;

static bool try_step(closer *self, uint32_t v, int depth);

/* Runs v and what it makes ready until no more bytes are live than before; else undoes all. */
static bool try_climb(closer *self, uint32_t v, int depth)
{
    mpl_order_walk *walk = self->walk;
    uint64_t live = walk->live;
    uint32_t n_ready = walk->n_ready, n = self->n;
    bool moved = true;

    mpl_order_walk_run(walk, v);
    self->ran[self->n++] = v;
    while (moved && walk->live > live) {
        moved = false;
        for (uint32_t i = n_ready; i < walk->n_ready && walk->live > live; i++)
            if (!walk->done[walk->ready[i]] && try_step(self, walk->ready[i], depth))
                moved = true;
    }
    if (walk->live <= live)
        return true;
    /* Undo removes the entries of ready added since, the last ones first. */
    while (self->n > n)
        mpl_order_walk_undo(walk, self->ran[--self->n], live, n_ready);
    return false;
}

/* Recursive, at most DEPTH deep. */
static bool try_step(closer *self, uint32_t v, int depth)
{
    mpl_order_walk *walk = self->walk;

    self->ticks++;
    if (mpl_order_walk_cost(walk, v) > self->peak)
        return false;
    if (mpl_order_walk_after(walk, v) > walk->live)
        return depth > 0 && try_climb(self, v, depth - 1);
    mpl_order_walk_run(walk, v);
    self->ran[self->n++] = v;
    return true;
}

/* Removes finished operations from the ready list. */
static void tidy(mpl_order_walk *walk)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < walk->n_ready; i++)
        if (!walk->done[walk->ready[i]])
            walk->ready[n++] = walk->ready[i];
    walk->n_ready = n;
}

uint32_t mpl_order_close(mpl_order_walk *walk, uint64_t peak, uint32_t *ran, mpl_effort *effort)
{
    closer c = {.walk = walk, .peak = peak, .ran = ran};
    bool moved = mpl_order_uses(effort, MPL_ORDER_RULE_closure);

    while (moved) {
        moved = false;
        tidy(walk);
        for (uint32_t i = 0; i < walk->n_ready; i++)
            if (!walk->done[walk->ready[i]] && try_step(&c, walk->ready[i], DEPTH))
                moved = true;
    }
    effort->ticks += c.ticks;
    return c.n;
}
