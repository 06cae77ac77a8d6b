/* residency_path.c -- the least cost of one buffer, use by use. See residency_priv.h.
 *
 * After a use a buffer lies in fast memory alone (DIRTY), in both with the same contents (CLEAN),
 * or in slow memory alone (AWAY). From use to use there are few ways, so the shortest path is
 * found by looking at all of them. */
#include "planners/residency/residency_priv.h"

#define NO_WAY (UINT64_MAX / 2)

enum { DIRTY, CLEAN, AWAY, N_STATES, KEPT = 4 };

static bool has_room(const mpl_path *path, uint32_t from, uint32_t to, uint64_t size)
{
    for (uint32_t s = from; path->room != NULL && s < to; s++)
        if (path->room[s] < (int64_t)size)
            return false;
    return true;
}

static uint64_t price_of(const mpl_path *path, uint32_t from, uint32_t to, uint64_t size)
{
    return path->price != NULL && from < to ? size * (path->price[to] - path->price[from]) : 0;
}

/* Cost of the use itself in each state that it can leave, from cost[] of the states before it: in
 * fast memory a write makes it dirty, in slow memory nothing is left in fast. */
static void use(const mpl_residency *residency, mpl_buffer b, uint32_t i, const mpl_path *path,
                uint64_t cost[N_STATES], uint8_t from[N_STATES])
{
    const mpl_residency_problem *p = residency->p;
    uint32_t s = p->at[i];
    bool in = residency->use[i] != MPL_OUT &&
              (p->slow_price == 0 || has_room(path, s, s + 1, residency->size[b])); /* it must be */
    bool away = residency->use[i] != MPL_IN && p->slow_price > 0;
    uint64_t here = price_of(path, s, s + 1, residency->size[b]);

    if (p->writes[i] && cost[CLEAN] < cost[DIRTY])
        cost[DIRTY] = cost[CLEAN], from[DIRTY] = from[CLEAN];
    if (p->writes[i])
        cost[CLEAN] = NO_WAY;
    cost[DIRTY] = in && cost[DIRTY] < NO_WAY ? cost[DIRTY] + here : NO_WAY;
    cost[CLEAN] = in && cost[CLEAN] < NO_WAY ? cost[CLEAN] + here : NO_WAY;
    cost[AWAY] = away && cost[AWAY] < NO_WAY
                     ? cost[AWAY] + p->bytes[b] * p->slow_price * MPL_PRICE_PARTS
                     : NO_WAY;
}

static void better(uint64_t cost, uint8_t by, uint64_t *best, uint8_t *from)
{
    if (cost < *best) {
        *best = cost;
        *from = by;
    }
}

/* Costs of arriving at use i + 1 in each state, from those after use i. */
static void pass(const mpl_residency *residency, mpl_buffer b, uint32_t i, const mpl_path *path,
                 uint64_t cost[N_STATES], uint8_t from[N_STATES])
{
    const mpl_residency_problem *p = residency->p;
    uint32_t first = p->at[i] + 1, last = p->at[i + 1];
    uint64_t before[N_STATES] = {cost[DIRTY], cost[CLEAN], cost[AWAY]};
    uint64_t move = p->bytes[b] * p->move_price * MPL_PRICE_PARTS;

    cost[DIRTY] = cost[CLEAN] = cost[AWAY] = NO_WAY;
    from[DIRTY] = from[CLEAN] = from[AWAY] = AWAY;
    if (residency->stay[i] != MPL_OUT && has_room(path, first, last, residency->size[b])) {
        uint64_t stay = price_of(path, first, last, residency->size[b]);

        better(before[DIRTY] + stay, KEPT | DIRTY, &cost[DIRTY], &from[DIRTY]);
        better(before[CLEAN] + stay, KEPT | CLEAN, &cost[CLEAN], &from[CLEAN]);
    }
    if (residency->stay[i] == MPL_IN)
        return;
    better(before[CLEAN] + move, CLEAN, &cost[CLEAN], &from[CLEAN]);
    better(before[DIRTY] + 2 * move, DIRTY, &cost[CLEAN], &from[CLEAN]);
    better(before[AWAY] + move, AWAY, &cost[CLEAN], &from[CLEAN]);
    better(before[AWAY], AWAY, &cost[AWAY], &from[AWAY]);
    better(before[CLEAN], CLEAN, &cost[AWAY], &from[AWAY]);
    better(before[DIRTY] + move, DIRTY, &cost[AWAY], &from[AWAY]);
}

bool mpl_residency_path(mpl_residency *residency, mpl_buffer b, const mpl_path *path, uint8_t *fast,
                        uint8_t *kept, uint64_t *cost)
{
    const mpl_residency_problem *p = residency->p;
    uint32_t begin = p->begin[b], end = p->begin[b + 1], best = DIRTY;
    uint64_t at[N_STATES] = {0, NO_WAY, 0};
    uint8_t first[N_STATES] = {0};

    residency->ticks++;
    use(residency, b, begin, path, at, first);
    for (uint32_t i = begin + 1; i < end; i++) {
        uint8_t *from = residency->state + (size_t)N_STATES * i;

        pass(residency, b, i - 1, path, at, from);
        use(residency, b, i, path, at, from);
    }
    for (uint32_t k = CLEAN; k < N_STATES; k++)
        if (at[k] < at[best])
            best = k;
    if (at[best] >= NO_WAY)
        return false;
    *cost = at[best];
    kept[end - 1] = 0;
    for (uint32_t i = end; i-- > begin;) {
        fast[i] = best != AWAY;
        if (i == begin)
            break;
        kept[i - 1] = (residency->state[(size_t)N_STATES * i + best] & KEPT) != 0;
        best = residency->state[(size_t)N_STATES * i + best] & 3;
    }
    return true;
}

uint64_t mpl_residency_cost(const mpl_residency_problem *p, mpl_buffer b, const uint8_t *fast,
                            const uint8_t *kept, uint64_t *moved, uint64_t *slow)
{
    uint64_t n_moves = 0, n_slow = 0;
    bool dirty = false;

    for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++) {
        bool leaves = i > p->begin[b] && fast[i - 1] && !kept[i - 1];
        bool comes = i > p->begin[b] && fast[i] && (leaves || !fast[i - 1]);

        n_moves += (leaves && dirty) + comes;
        n_slow += !fast[i];
        dirty = fast[i] && (p->writes[i] || (dirty && !leaves));
    }
    if (moved != NULL)
        *moved += n_moves * p->bytes[b];
    if (slow != NULL)
        *slow += n_slow * p->bytes[b];
    return (n_moves * p->move_price + n_slow * p->slow_price) * p->bytes[b];
}

void mpl_residency_load(const mpl_residency *residency, mpl_buffer b, const uint8_t *fast,
                        const uint8_t *kept, int sign, bool uses, bool stays, int64_t *load)
{
    const mpl_residency_problem *p = residency->p;

    for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++) {
        if (uses && fast[i])
            load[p->at[i]] += sign * (int64_t)residency->size[b];
        for (uint32_t s = p->at[i] + 1; stays && kept[i] && s < p->at[i + 1]; s++)
            load[s] += sign * (int64_t)residency->size[b];
    }
}

uint64_t mpl_residency_total(const mpl_residency *residency, const uint8_t *fast,
                             const uint8_t *kept)
{
    uint64_t cost = 0;

    for (mpl_buffer b = 0; b < residency->p->n; b++)
        cost += mpl_residency_cost(residency->p, b, fast, kept, NULL, NULL);
    return cost;
}
