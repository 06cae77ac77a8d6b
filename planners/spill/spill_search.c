/* spill_search.c -- assigns buffers to memories: a bound, the complete search, the local search.
 * See spill_priv.h.
 *
 * Bound    Of each set of buffers alive at once, a memory holds at most the largest sum of whole
 *          buffers within its capacity. The excess over the first k memories lies in later ones,
 *          and each buffer there is also alive at other steps. The fewest bytes, buffers cut at
 *          will, that cover the excess of all sets: from the first step on, take those that live
 *          longest. This is the optimum of the linear program, since a step constrains later steps
 *          only through buffers alive then, and every byte counts the same. The excess over k
 *          memories pays at least the rise in price from memory k - 1 to k. The bound is the sum
 *          over k, plus the first memory's price of all bytes.
 * Search   Large buffers decide first, near memories come first. Of two interchangeable buffers the
 *          second lies no nearer; of two interchangeable memories the second is not used first.
 * Local    A buffer moves nearer, if necessary in exchange for a few conflicting ones; a move that
 *          does not raise the cost is kept. */
#include "planners/spill/spill_priv.h"

#include "planners/place/sort.h"

enum { EJECTED = 3, SEARCHED_MOVES = 8 };

/* ---- the bound ---- */

/* *beyond: least bytes outside the memories below k > 0. False: these must hold too much. */
static bool least_beyond(mpl_spill_part *part, uint32_t k, uint64_t *beyond)
{
    const uint64_t *room = part->room + (size_t)(k - 1) * part->n_sections;

    *beyond = 0;
    for (uint32_t i = 0; i < part->n; i++) {
        uint32_t first = part->memory[i] != MPL_NONE ? part->memory[i] : part->least[i];

        part->spare[i] = first >= k ? part->bytes[i] : 0;
        *beyond += part->spare[i];
    }
    for (uint32_t t = 0; t < part->n_sections; t++) {
        const uint32_t *inside = part->inside + part->section_begin[t];
        uint32_t n = part->section_begin[t + 1] - part->section_begin[t];
        uint64_t near = 0, excess;

        for (uint32_t m = 0; m < n; m++)
            near += part->bytes[inside[m]] - part->spare[inside[m]];
        part->spill->ticks += n;
        excess = near > room[t] ? near - room[t] : 0;
        for (uint32_t m = 0; m < n && excess > 0; m++)
            if (part->memory[inside[m]] == MPL_NONE) {
                uint64_t more =
                    mpl_min_u64(excess, part->bytes[inside[m]] - part->spare[inside[m]]);

                part->spare[inside[m]] += more;
                *beyond += more;
                excess -= more;
            }
        if (excess > 0)
            return false;
    }
    return true;
}

/* Lower bound on the cost of completing the current node; UINT64_MAX: impossible. */
static uint64_t node_bound(mpl_spill_part *part)
{
    const mpl_spill *spill = part->spill;
    uint64_t bound = 0, beyond;

    for (uint32_t i = 0; i < part->n; i++)
        bound += part->bytes[i] * spill->price[0];
    for (uint32_t k = 0; k < spill->n && spill->capacity[k] != MPL_NO_CAPACITY; k++) {
        if (!least_beyond(part, k + 1, &beyond) || (k + 1 == spill->n && beyond > 0))
            return UINT64_MAX;
        if (k + 1 < spill->n)
            bound += beyond * (spill->price[k + 1] - spill->price[k]);
    }
    return bound;
}

/* ---- best assignment ---- */

static uint64_t cost_of(const mpl_spill_part *part)
{
    uint64_t cost = 0;

    for (uint32_t i = 0; i < part->n; i++)
        cost += part->bytes[i] * part->spill->price[part->memory[i]];
    return cost;
}

static void keep(mpl_spill_part *part)
{
    part->found = true;
    part->cost = cost_of(part);
    part->finished |= part->cost == part->bound;
    memcpy(part->best_memory, part->memory, part->n * sizeof *part->memory);
    memcpy(part->best_offset, part->offset, part->n * sizeof *part->offset);
}

/* ---- first assignments ---- */

/* Puts each member in turn into the nearest memory with room. */
static mpl_status dive(mpl_spill_part *part, const uint32_t *order)
{
    uint32_t n = 0;

    mpl_spill_clear(part);
    for (; n < part->n && (n == 0 || part->memory[order[n - 1]] != MPL_NONE); n++) {
        mpl_spill_verdict verdict = MPL_SPILL_NEVER;

        for (uint32_t k = part->least[order[n]]; k < part->spill->n && verdict != MPL_SPILL_FITS;
             k++)
            MPL_PASS(mpl_spill_put(part, order[n], k, false, &verdict));
    }
    if (part->memory[order[n - 1]] != MPL_NONE && (!part->found || cost_of(part) < part->cost))
        keep(part);
    return MPL_OK;
}

mpl_status mpl_spill_start(mpl_spill_part *part)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = part->spill->run->ctx;
    uint32_t *order = NULL;
    uint64_t *key = NULL;

    mpl_spill_clear(part);
    part->bound = node_bound(part);
    if (part->bound == UINT64_MAX) {
        part->finished = true;
        goto out;
    }
    MPL_TRY(mpl_new_each(ctx, part->n, order, key));
    mpl_ids_ascending(part->n, order);
    MPL_TRY(dive(part, order));
    for (uint32_t i = 0; i < part->n; i++)
        key[i] = part->rival_begin[i + 1] - part->rival_begin[i];
    MPL_TRY(mpl_sort_ids(ctx, part->n, order, key));
    MPL_TRY(dive(part, order));
out:
    mpl_free_each(ctx, order, key);
    return st;
}

/* ---- the complete search ---- */

/* Leaves out the child that puts i into memory k; only its bound is known. */
static void leave_out(mpl_spill_part *part, uint32_t i, uint32_t k)
{
    part->memory[i] = k;
    part->open = mpl_min_u64(part->open, node_bound(part));
    part->memory[i] = MPL_NONE;
}

static bool is_empty(const mpl_spill_part *part, uint32_t n, uint32_t k)
{
    for (uint32_t i = 0; i < n; i++)
        if (part->memory[i] == k)
            return false;
    return true;
}

/* Whether memory k is empty and identical to the previous one, also empty. */
static bool is_copy(const mpl_spill_part *part, uint32_t i, uint32_t k)
{
    const mpl_spill *spill = part->spill;

    return k > 0 && spill->capacity[k] == spill->capacity[k - 1] &&
           spill->price[k] == spill->price[k - 1] && is_empty(part, i, k - 1);
}

static mpl_status decide_from(mpl_spill_part *part, uint32_t i)
{
    uint64_t bound = node_bound(part);
    uint32_t first;

    if (bound == UINT64_MAX || (part->found && bound >= part->cost))
        return MPL_OK;
    if (i == part->n) {
        keep(part);
        return MPL_OK;
    }
    first = part->least[i];
    if (part->twin[i] != MPL_NONE && part->memory[part->twin[i]] > first)
        first = part->memory[part->twin[i]];
    for (uint32_t k = first; k < part->spill->n; k++) {
        mpl_spill_verdict verdict = MPL_SPILL_UNKNOWN;

        if (is_copy(part, i, k))
            continue;
        if (part->spill->ticks < part->stop_ticks && !mpl_spill_over(part->spill))
            MPL_PASS(mpl_spill_put(part, i, k, true, &verdict));
        if (verdict == MPL_SPILL_FITS) {
            MPL_PASS(decide_from(part, i + 1));
            mpl_spill_leave(part, i);
        } else if (verdict == MPL_SPILL_UNKNOWN) {
            leave_out(part, i, k);
        }
    }
    return MPL_OK;
}

mpl_status mpl_spill_search(mpl_spill_part *part, uint64_t ticks)
{
    uint64_t proved;

    mpl_spill_clear(part);
    part->open = UINT64_MAX;
    part->stop_ticks = part->spill->ticks + mpl_min_u64(ticks, UINT64_MAX - part->spill->ticks);
    MPL_PASS(decide_from(part, 0));
    proved = part->found ? mpl_min_u64(part->cost, part->open) : part->open;
    part->bound = mpl_max_u64(part->bound, proved);
    part->finished = part->open >= (part->found ? part->cost : UINT64_MAX);
    return MPL_OK;
}

/* ---- the local search ---- */

/* Resets the current node to the best assignment. */
static void go_back(mpl_spill_part *part)
{
    for (uint32_t i = 0; i < part->n; i++)
        if (part->memory[i] != MPL_NONE && part->memory[i] != part->best_memory[i])
            mpl_spill_leave(part, i);
    memcpy(part->offset, part->best_offset, part->n * sizeof *part->offset);
    for (uint32_t i = 0; i < part->n; i++)
        if (part->memory[i] == MPL_NONE) {
            uint64_t *load = part->load + (size_t)part->best_memory[i] * part->n_sections;

            part->memory[i] = part->best_memory[i];
            for (uint32_t t = part->begin[i]; t < part->end[i]; t++)
                load[t] += part->bytes[i];
        }
    part->spill->ticks += part->n;
}

/* Removes a member of memory k that conflicts with i; MPL_NONE: there is none. */
static uint32_t eject(mpl_spill_part *part, uint32_t i, uint32_t k)
{
    uint32_t begin = part->rival_begin[i], n = part->rival_begin[i + 1] - begin, start;

    if (n == 0)
        return MPL_NONE;
    start = (uint32_t)mpl_rng_below(&part->rng, n);
    for (uint32_t r = 0; r < n; r++) {
        uint32_t j = part->rival[begin + (start + r) % n];

        if (part->memory[j] == k) {
            mpl_spill_leave(part, j);
            return j;
        }
    }
    return MPL_NONE;
}

static mpl_status move(mpl_spill_part *part, uint32_t i)
{
    uint32_t near = part->memory[i] - part->least[i], out[EJECTED], n_out = 0;
    uint32_t k = part->least[i] + (uint32_t)mpl_rng_below(&part->rng, near);
    bool search = mpl_rng_below(&part->rng, SEARCHED_MOVES) == 0;
    mpl_spill_verdict verdict;

    mpl_spill_leave(part, i);
    MPL_PASS(mpl_spill_put(part, i, k, search, &verdict));
    while (verdict != MPL_SPILL_FITS && n_out < EJECTED &&
           (out[n_out] = eject(part, i, k)) != MPL_NONE) {
        n_out++;
        MPL_PASS(mpl_spill_put(part, i, k, search, &verdict));
    }
    while (verdict == MPL_SPILL_FITS && n_out > 0) {
        uint32_t j = out[--n_out];

        verdict = MPL_SPILL_NEVER;
        for (uint32_t m = part->least[j]; m < part->spill->n && verdict != MPL_SPILL_FITS; m++)
            MPL_PASS(mpl_spill_put(part, j, m, false, &verdict));
    }
    if (verdict == MPL_SPILL_FITS && cost_of(part) <= part->cost)
        keep(part);
    else
        go_back(part);
    return MPL_OK;
}

mpl_status mpl_spill_improve(mpl_spill_part *part, uint64_t ticks)
{
    mpl_spill *spill = part->spill;
    uint64_t stop = spill->ticks + mpl_min_u64(ticks, UINT64_MAX - spill->ticks);

    if (!part->found || part->finished)
        return MPL_OK;
    mpl_spill_clear(part);
    go_back(part);
    while (spill->ticks < stop && !part->finished && !mpl_spill_over(spill)) {
        uint32_t i = (uint32_t)mpl_rng_below(&part->rng, part->n);

        spill->ticks++;
        if (part->memory[i] > part->least[i])
            MPL_PASS(move(part, i));
    }
    return MPL_OK;
}
