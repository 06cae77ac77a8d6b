/* ilp_pack.c -- splits a pool into small programs, and solves one. See ilp.c. */
#include "planners/ilp/ilp_priv.h"

#include <math.h>

uint64_t mpl_ilp_round_up(uint64_t at, uint64_t step)
{
    return (at + step - 1) / step * step;
}

uint64_t mpl_ilp_goal(const mpl_ilp_driver *driver)
{
    uint64_t within =
        mpl_min_u64(mpl_run_enough(driver->run, driver->proved_bytes), driver->capacity_bytes);

    return mpl_max_u64(mpl_max_u64(driver->proved_bytes, within), driver->enough_bytes);
}

uint64_t mpl_ilp_end_bytes(const mpl_ilp *ilp, uint32_t i)
{
    return ilp->at[i] * ilp->unit + mpl_ilp_bytes(ilp, i);
}

#define DEFAULT_TICKS UINT64_C(20000000000) /* about a minute */
#define MAX_HEIGHT    (UINT64_C(1) << 21)   /* [finest unit]; GLPK's tolerance is 1e-7 of it */

/* ---- placing in sequence ---- */

void mpl_ilp_place_lowest(mpl_ilp_driver *driver, uint32_t i, uint64_t base)
{
    mpl_ilp *ilp = &driver->s;
    uint32_t n = 0;
    uint64_t at = mpl_ilp_round_up(base, ilp->step[i]);

    for (uint32_t w = 0; w < ilp->n_words; w++)
        for (uint64_t bits = ilp->row[(size_t)i * ilp->n_words + w] & driver->placed[w]; bits != 0;
             bits &= bits - 1) {
            uint32_t j = 64 * w + (uint32_t)__builtin_ctzll(bits), to = n++;

            for (; to > 0 && ilp->at[driver->by_at[to - 1]] > ilp->at[j]; to--)
                driver->by_at[to] = driver->by_at[to - 1];
            driver->by_at[to] = j;
        }
    driver->run->ticks += n;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t j = driver->by_at[k];

        if (ilp->at[j] >= at + ilp->size[i])
            break;
        at = mpl_max_u64(at, mpl_ilp_round_up(ilp->at[j] + ilp->size[j], ilp->step[i]));
    }
    ilp->at[i] = at;
    mpl_bit_add(driver->placed, i);
}

enum { BY_PLAN, BY_SIZE, BY_AREA, BY_LOAD, N_ORDERS };

/* Sorts the highest first, then by index. */
static uint64_t order_key(const mpl_ilp_driver *driver, int order, const mpl_ilp_part *part,
                          uint32_t i, const uint64_t *plan)
{
    const mpl_ilp *ilp = &driver->s;
    uint64_t n = 0, load = 0;

    if (order == BY_PLAN)
        return UINT64_MAX - plan[ilp->id[i]];
    if (order == BY_SIZE)
        return ilp->size[i];
    for (uint32_t k = 0; k < part->n; k++)
        if (mpl_ilp_conflict(ilp, i, part->member[k])) {
            n++;
            load += ilp->size[part->member[k]];
        }
    return order == BY_AREA ? ilp->size[i] * (n + 1) : load;
}

/* Places the members of a part in one order, fixed ones first. Returns the height [byte]. */
static mpl_status place_part(mpl_ilp_driver *driver, const mpl_ilp_part *part, int order,
                             const uint64_t *plan, uint64_t *height)
{
    mpl_status st = MPL_OK;
    mpl_ilp *ilp = &driver->s;
    uint64_t *key = NULL;
    uint32_t *list = NULL;

    MPL_TRY(mpl_new_each(ilp->ctx, part->n, key, list));
    for (uint32_t k = 0; k < part->n; k++) {
        uint32_t i = part->member[k], to = k;
        uint64_t mine =
            mpl_ilp_fixed(ilp, i) ? UINT64_MAX : order_key(driver, order, part, i, plan);

        mpl_bit_drop(driver->placed, i);
        for (; to > 0 && key[to - 1] < mine; to--) {
            key[to] = key[to - 1];
            list[to] = list[to - 1];
        }
        key[to] = mine;
        list[to] = i;
    }
    *height = 0;
    for (uint32_t k = 0; k < part->n; k++) {
        if (mpl_ilp_fixed(ilp, list[k])) {
            ilp->at[list[k]] = ilp->p->fixed[ilp->id[list[k]]] / ilp->unit;
            mpl_bit_add(driver->placed, list[k]);
        } else {
            mpl_ilp_place_lowest(driver, list[k], part->base);
        }
        *height = mpl_max_u64(*height, mpl_ilp_end_bytes(ilp, list[k]));
    }
out:
    mpl_free_each(ilp->ctx, key, list);
    return st;
}

/* ---- one program ---- */

static void keep_offsets(const mpl_ilp *ilp, const mpl_ilp_part *part, uint64_t *offset)
{
    for (uint32_t k = 0; k < part->n; k++)
        offset[k] = ilp->at[part->member[k]];
}

static void restore_offsets(mpl_ilp *ilp, const mpl_ilp_part *part, const uint64_t *offset)
{
    for (uint32_t k = 0; k < part->n; k++)
        ilp->at[part->member[k]] = offset[k];
}

bool mpl_ilp_is_valid(const mpl_ilp *ilp, const mpl_ilp_part *part)
{
    for (uint32_t k = 0; k < part->n; k++) {
        uint32_t i = part->member[k];

        if (!mpl_ilp_fixed(ilp, i) && (ilp->at[i] < part->base || ilp->at[i] % ilp->step[i] != 0))
            return false;
        if (mpl_ilp_fixed(ilp, i) && ilp->at[i] * ilp->unit != ilp->p->fixed[ilp->id[i]])
            return false;
        if (ilp->lowest != NULL && ilp->at[i] != ilp->at[ilp->lowest[i]] + ilp->apart[i])
            return false;
        for (uint32_t l = k + 1; l < part->n; l++) {
            uint32_t j = part->member[l];
            bool apart =
                ilp->at[i] + ilp->size[i] <= ilp->at[j] || ilp->at[j] + ilp->size[j] <= ilp->at[i];

            if (mpl_ilp_conflict(ilp, i, j) && !apart &&
                !(ilp->at[i] == ilp->at[j] && mpl_ilp_joins(ilp, i, j)))
                return false;
        }
    }
    return true;
}

uint64_t mpl_ilp_height_of(const mpl_ilp *ilp, const mpl_ilp_part *part)
{
    uint64_t height = 0;

    for (uint32_t k = 0; k < part->n; k++)
        height = mpl_max_u64(height, mpl_ilp_end_bytes(ilp, part->member[k]));
    return height;
}

/* Sets at[] of the members from GLPK's point, rounded. If that is no packing, places each as low as
 * possible in the order of the point. Returns the height [byte]. */
static mpl_status take_point(mpl_ilp_driver *driver, const mpl_ilp_part *part, const double *x,
                             uint64_t *height)
{
    mpl_status st = MPL_OK;
    mpl_ilp *ilp = &driver->s;
    uint64_t *offset = NULL;

    for (uint32_t k = 0; k < part->n; k++) {
        uint32_t i = part->member[k];

        ilp->at[i] = (uint64_t)floor(fmax(x[1 + k], 0) + 0.499999) * ilp->step[i];
    }
    *height = mpl_ilp_height_of(ilp, part);
    if (mpl_ilp_is_valid(ilp, part))
        goto out;
    if (ilp->lowest != NULL) { /* placing single buffers in sequence cannot keep families together
                                */
        *height = UINT64_MAX;
        goto out;
    }
    MPL_TRY(mpl_new(ilp->ctx, offset, ilp->p->n));
    for (uint32_t k = 0; k < part->n; k++)
        offset[ilp->id[part->member[k]]] = ilp->at[part->member[k]];
    MPL_TRY(place_part(driver, part, BY_PLAN, offset, height));
out:
    mpl_free(ilp->ctx, offset);
    return st;
}

/* The height [byte] that a bound in doubles proves: the next possible one at or above bound units,
 * if the tolerance is below half of the finest unit. */
static uint64_t proved_by(const mpl_ilp_driver *driver, double bound, uint64_t high_bytes)
{
    double fine = bound * (double)driver->s.unit / (double)driver->finest;

    if (!(fine > 1) || high_bytes / driver->finest > MAX_HEIGHT)
        return 0;
    return (uint64_t)ceil(fine - 0.01 - 2e-7 * fine) * driver->finest;
}

/* The lower bound [byte] of the part that the answer proves. */
static uint64_t proved_by_answer(const mpl_ilp_driver *driver, const mpl_ilp_part *part,
                                 const mpl_lp_answer *answer)
{
    if (answer->state != MPL_LP_INFEASIBLE)
        return proved_by(driver, answer->bound, part->high_bytes);
    /* no plan from low to high: the least possible height is the next one */
    if (part->high_bytes / driver->finest > MAX_HEIGHT)
        return 0;
    return part->high_bytes + driver->finest;
}

/* Ticks left; a default applies if nothing else ends the search. */
static uint64_t ticks_left(const mpl_ilp_driver *driver)
{
    const mpl_run *run = driver->run;
    bool endless = run->budget_ticks == UINT64_MAX && run->deadline_ns == INT64_MAX;
    uint64_t budget = endless ? DEFAULT_TICKS : run->budget_ticks;

    return budget - mpl_min_u64(run->ticks, budget);
}

mpl_status mpl_ilp_solve_part(mpl_ilp_driver *driver, mpl_ilp_part *part, uint64_t *height)
{
    mpl_status st = MPL_OK;
    mpl_ilp *ilp = &driver->s;
    mpl_lp *lp = NULL;
    double *x = NULL;
    uint64_t *first = NULL, got;
    mpl_lp_limits limits = {.max_nodes = driver->nodes_left,
                            .max_mib = MPL_ILP_MAX_MIB,
                            .deadline_ns = driver->run->deadline_ns};
    mpl_lp_answer answer = {0};
    uint64_t size; /* work of a pivot, roughly */

    limits.enough = (double)mpl_ilp_goal(driver) / (double)ilp->unit + 1e-6;
    MPL_TRY(mpl_new(ilp->ctx, first, part->n));
    keep_offsets(ilp, part, first);
    MPL_TRY(mpl_ilp_program(ilp, part, 1, MPL_ILP_MAX_ENTRIES, &lp));
    MPL_TRY(mpl_new(ilp->ctx, x, mpl_lp_columns(lp)));
    size = (uint64_t)mpl_lp_rows(lp) + mpl_lp_columns(lp);
    limits.max_pivots = (ticks_left(driver) + size - 1) / size;
    st = mpl_lp_solve(lp, &limits, &answer, x);
    /* max_mib is a limit: the current plan stays */
    driver->run->solver_gave_up |= st == MPL_EMEM || answer.gave_up;
    MPL_TRY(st == MPL_EMEM ? MPL_OK : st);
    driver->nodes_left -= mpl_min_u64(answer.n_nodes, driver->nodes_left);
    driver->run->ticks += answer.n_pivots * size;
    driver->run->stopped_by_clock |= answer.stopped_by_clock;
    if (answer.state == MPL_LP_OPTIMAL || answer.state == MPL_LP_FEASIBLE) {
        MPL_TRY(take_point(driver, part, x, &got));
        if (got < *height)
            *height = got;
        else
            restore_offsets(ilp, part, first);
    }
    driver->proved_bytes = mpl_max_u64(
        driver->proved_bytes, mpl_min_u64(proved_by_answer(driver, part, &answer), *height));
out:
    mpl_lp_free(ilp->ctx, lp);
    mpl_free_each(ilp->ctx, x, first);
    return st;
}

static uint64_t count_pairs(const mpl_ilp *ilp, const mpl_ilp_part *part)
{
    uint64_t n = 0;

    for (uint32_t k = 0; k < part->n; k++)
        for (uint32_t l = 0; l < k; l++)
            n += mpl_ilp_conflict(ilp, part->member[k], part->member[l]);
    return n;
}

bool mpl_ilp_range_of(const mpl_ilp_driver *driver, mpl_ilp_part *part, uint64_t height)
{
    part->low_bytes = driver->proved_bytes;
    part->high_bytes = driver->cold ? driver->best_bytes
                                    : mpl_min_u64(height, driver->best_bytes) - driver->finest;
    if (driver->enough_bytes >= part->low_bytes && driver->enough_bytes < part->high_bytes)
        part->high_bytes = driver->enough_bytes / driver->finest * driver->finest;
    return part->low_bytes <= part->high_bytes && driver->proved_bytes <= driver->capacity_bytes &&
           (driver->cold || height > mpl_ilp_goal(driver)) &&
           count_pairs(&driver->s, part) <= (uint64_t)driver->max_pairs && driver->nodes_left > 0 &&
           ticks_left(driver) > 0;
}

/* Solves a part that does not split: tries orders, then the program if no order is good enough.
 * plan[]: offsets of the whole problem's plan [byte]. */
static mpl_status pack_leaf(mpl_ilp_driver *driver, mpl_ilp_part *part, const uint64_t *plan)
{
    mpl_status st = MPL_OK;
    mpl_ilp *ilp = &driver->s;
    uint64_t height = UINT64_MAX, got, *best = NULL;

    MPL_TRY(mpl_new(ilp->ctx, best, part->n));
    for (int order = 0; order < N_ORDERS && height > mpl_ilp_goal(driver); order++) {
        MPL_TRY(place_part(driver, part, order, plan, &got));
        if (got >= height)
            continue;
        height = got;
        keep_offsets(ilp, part, best);
    }
    restore_offsets(ilp, part, best);
    if (!mpl_ilp_range_of(driver, part, height))
        goto out;
    if (driver->cold)
        height = UINT64_MAX;
    MPL_TRY(mpl_ilp_solve_part(driver, part, &height));
out:
    mpl_free(ilp->ctx, best);
    return st;
}

/* ---- smaller parts ---- */

/* Whether i finds a place below the bound, from base on, however the rest of the set is placed. */
static bool always_fits(const mpl_ilp_driver *driver, const uint64_t *set, uint32_t i,
                        uint64_t base)
{
    const mpl_ilp *ilp = &driver->s;
    uint64_t room = driver->proved_bytes, lost = 0, step = ilp->step[i];

    if (mpl_ilp_fixed(ilp, i) || room < mpl_ilp_bytes(ilp, i))
        return false;
    room = (room - mpl_ilp_bytes(ilp, i)) / ilp->unit; /* highest start */
    if (room < mpl_ilp_round_up(base, step))
        return false;
    for (uint32_t w = 0; w < ilp->n_words; w++)
        for (uint64_t bits = ilp->row[(size_t)i * ilp->n_words + w] & set[w]; bits != 0;
             bits &= bits - 1)
            lost += (ilp->size[64 * w + (uint32_t)__builtin_ctzll(bits)] + ilp->size[i] - 1 + step -
                     1) /
                    step;
    return lost <= (room - mpl_ilp_round_up(base, step)) / step;
}

/* Moves all buffers that can be put back last from the set to the stack. */
static void strip(mpl_ilp_driver *driver, uint64_t *set, uint64_t base)
{
    bool again = true;

    while (again) {
        again = false;
        for (uint32_t i = 0; i < driver->s.n; i++)
            if (mpl_bit_has(set, i) && always_fits(driver, set, i, base)) {
                mpl_bit_drop(set, i);
                driver->stack[driver->n_stack++] = i;
                again = true;
            }
    }
}

/* Moves the component of the set's first member into part[]; false when the set is empty. */
static bool next_component(const mpl_ilp_driver *driver, uint64_t *set, uint32_t *part, uint32_t *n)
{
    const mpl_ilp *ilp = &driver->s;
    uint32_t first = 0;

    while (first < ilp->n && !mpl_bit_has(set, first))
        first++;
    if (first == ilp->n)
        return false;
    *n = 0;
    part[(*n)++] = first;
    mpl_bit_drop(set, first);
    for (uint32_t k = 0; k < *n; k++)
        for (uint32_t w = 0; w < ilp->n_words; w++)
            for (uint64_t bits = ilp->row[(size_t)part[k] * ilp->n_words + w] & set[w]; bits != 0;
                 bits &= bits - 1) {
                uint32_t j = 64 * w + (uint32_t)__builtin_ctzll(bits);

                part[(*n)++] = j;
                mpl_bit_drop(set, j);
            }
    return true;
}

/* Whether i may lie below all others of the set without loss: it conflicts with all of them, fills
 * its slots, and its size keeps the others aligned. */
static bool belongs_below(const mpl_ilp_driver *driver, const uint64_t *set, uint32_t i,
                          uint64_t base)
{
    const mpl_ilp *ilp = &driver->s;

    if (mpl_ilp_bytes(ilp, i) != ilp->size[i] * ilp->unit || base % ilp->step[i] != 0)
        return false;
    for (uint32_t j = 0; j < ilp->n; j++)
        if (j != i && mpl_bit_has(set, j) &&
            (!mpl_ilp_conflict(ilp, i, j) || ilp->size[i] % ilp->step[j] != 0))
            return false;
    for (uint32_t j = 0; j < ilp->n; j++)
        if (mpl_bit_has(set, j) && (mpl_ilp_fixed(ilp, j) || mpl_ilp_joins(ilp, i, j)))
            return false;
    return true;
}

/* Places buffers that belong below the rest at base, which rises. Returns whether there was any. */
static bool peel(mpl_ilp_driver *driver, uint64_t *set, uint64_t *base)
{
    bool any = false;

    for (uint32_t i = 0; i < driver->s.n; i++)
        if (mpl_bit_has(set, i) && belongs_below(driver, set, i, *base)) {
            mpl_bit_drop(set, i);
            mpl_bit_add(driver->placed, i);
            driver->s.at[i] = *base;
            *base += driver->s.size[i];
            any = true;
        }
    return any;
}

mpl_status mpl_ilp_pack(mpl_ilp_driver *driver, uint64_t *set, uint64_t base, const uint64_t *plan)
{
    mpl_status st = MPL_OK;
    mpl_ilp *ilp = &driver->s;
    uint64_t *below = NULL;
    mpl_ilp_part part = {.base = base};

    MPL_TRY(mpl_new(ilp->ctx, below, ilp->n_words));
    MPL_TRY(mpl_new(ilp->ctx, part.member, ilp->n));
    strip(driver, set, base);
    while (next_component(driver, set, part.member, &part.n)) {
        uint64_t top = base;

        memset(below, 0, ilp->n_words * sizeof *below);
        for (uint32_t k = 0; k < part.n; k++)
            mpl_bit_add(below, part.member[k]);
        if (peel(driver, below, &top)) {
            MPL_TRY(mpl_ilp_pack(driver, below, top, plan));
            continue;
        }
        part.n = 0;
        for (uint32_t i = 0; i < ilp->n; i++)
            if (mpl_bit_has(below, i))
                part.member[part.n++] = i;
        MPL_TRY(pack_leaf(driver, &part, plan));
    }
out:
    mpl_free_each(ilp->ctx, below, part.member);
    return st;
}
