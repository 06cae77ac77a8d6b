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
    mpl_order_walk *w;
    uint64_t peak, ticks;
    uint32_t *ran, n;
} closer;

static bool try_step(closer *c, uint32_t v, int depth);

/* Runs v and what it makes ready until no more bytes are live than before; else undoes all. */
static bool try_climb(closer *c, uint32_t v, int depth)
{
    mpl_order_walk *w = c->w;
    uint64_t live = w->live;
    uint32_t n_ready = w->n_ready, n = c->n;
    bool moved = true;

    mpl_order_walk_run(w, v);
    c->ran[c->n++] = v;
    while (moved && w->live > live) {
        moved = false;
        for (uint32_t i = n_ready; i < w->n_ready && w->live > live; i++)
            if (!w->done[w->ready[i]] && try_step(c, w->ready[i], depth))
                moved = true;
    }
    if (w->live <= live)
        return true;
    /* Undo removes the entries of ready added since, the last ones first. */
    while (c->n > n)
        mpl_order_walk_undo(w, c->ran[--c->n], live, n_ready);
    return false;
}

/* Recursive, at most DEPTH deep. */
static bool try_step(closer *c, uint32_t v, int depth)
{
    mpl_order_walk *w = c->w;

    c->ticks++;
    if (mpl_order_walk_cost(w, v) > c->peak)
        return false;
    if (mpl_order_walk_after(w, v) > w->live)
        return depth > 0 && try_climb(c, v, depth - 1);
    mpl_order_walk_run(w, v);
    c->ran[c->n++] = v;
    return true;
}

/* Removes finished operations from the ready list. */
static void tidy(mpl_order_walk *w)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->n_ready; i++)
        if (!w->done[w->ready[i]])
            w->ready[n++] = w->ready[i];
    w->n_ready = n;
}

uint32_t mpl_order_close(mpl_order_walk *w, uint64_t peak, uint32_t *ran, mpl_effort *effort)
{
    closer c = {.w = w, .peak = peak, .ran = ran};
    bool moved = mpl_order_uses(effort, MPL_ORDER_RULE_closure);

    while (moved) {
        moved = false;
        tidy(w);
        for (uint32_t i = 0; i < w->n_ready; i++)
            if (!w->done[w->ready[i]] && try_step(&c, w->ready[i], DEPTH))
                moved = true;
    }
    effort->ticks += c.ticks;
    return c.n;
}
