/* ilp.c -- placement as a mixed integer program, solved by GLPK: an oracle that shares no search
 * with the others.
 *
 * Idea     A real offset for each buffer, a binary for each pair that conflicts, the height to be
 *          minimised between the bound and the best heuristic, below which alone a plan is worth
 *          finding. Plain big-M proves up to about 50 pairs in a minute; what makes it usable: the
 *          bounds on the height, rows for whole sets of conflicting buffers, identical buffers in
 *          order, and smaller programs (below).
 * Source   Big-M placement is folklore (Sekiyama et al., "Profile-guided memory optimization for
 *          deep neural networks", 2018, give it for memory plans); rows and reductions are this
 *          project's.
 * Smaller  A buffer that conflicts with all others of its component goes to the bottom. One that
 *          finds a place below the bound wherever the others are (each forbids at most its own size
 *          and this one's of starting places) is put back last, like a node of low degree when a
 *          graph is coloured. What falls apart is solved part by part; a part whose heuristic is no
 *          higher than the bound needs no program.
 * Capacity Where a pool has one, a plan within it ends the search, and the programs look no higher;
 * minimise=1 goes on. Families A pool that has some is one part: no buffer moves alone. Two rows
 * hold each distance.
 * Cold     start=cold tells the programs nothing of the heuristics, whose plans remain for what no
 *          program solves.
 * Cost     Exponential; 2e10 ticks where nothing else ends it. ticks: pivots of the simplex method,
 *          each as many as the program has rows and columns, and the heuristics' own. Limits are
 *          looked at between nodes and in the first relaxation.
 * Limits   GLPK works in doubles: the offsets that it gives are rounded and checked, heights beyond
 *          2^21 of the finest unit prove nothing, and parts of more than max_pairs pairs stay with
 *          the heuristic. */
#include "planners/ilp/ilp.h"

#include "graphs/problem/bounds/bounds.h"
#include "mpl_config.h"
#include "planners/exact/exact_general.h"
#include "planners/ilp/ilp_priv.h"
#include "planners/planner.h"
#include "planners/verify/verify.h"

#include <math.h>

#define MAX_BUFFERS   4096                  /* of a pool; beyond it only the heuristics */
#define MAX_ENTRIES   1000000               /* non-zeros of the rows of cliques */
#define MAX_PAIRS     4000                  /* of a part, unless the parameter says otherwise */
#define MAX_NODES     1000000               /* of all parts */
#define MAX_MIB       4096                  /* of GLPK */
#define DEFAULT_TICKS UINT64_C(20000000000) /* about a minute */
#define MAX_HEIGHT    (UINT64_C(1) << 21)   /* [finest unit]; GLPK's tolerance is 1e-7 of it */
#define ARENA_TICKS   UINT64_C(20000000)    /* of the heuristic search at the start, at most */

extern const mpl_planner mpl_planner_none, mpl_planner_greedy_size, mpl_planner_best_fit,
    mpl_planner_nnc_arena;

typedef struct driver {
    mpl_ilp s;
    mpl_run *run;
    uint64_t best_bytes;     /* height of the plan that is kept */
    uint64_t proved_bytes;   /* no plan is lower */
    uint64_t capacity_bytes; /* of the pool, or MPL_NO_CAPACITY */
    uint64_t enough_bytes;   /* a plan this low ends the search; 0: only the lowest */
    uint64_t finest;         /* every height is a multiple of it [byte] */
    uint64_t nodes_left;
    int64_t max_pairs;
    bool cold;        /* programs look for plans up to best_bytes, whatever heuristics find */
    uint64_t *placed; /* [n_words] at[] is decided */
    uint32_t *stack;  /* [n] taken out, to be put back last first */
    uint32_t n_stack;
    uint32_t *by_at; /* [n] scratch */
} driver;

static uint64_t round_up(uint64_t at, uint64_t step)
{
    return (at + step - 1) / step * step;
}

/* The height below which nothing is to be gained. */
static uint64_t goal(const driver *d)
{
    uint64_t within = mpl_min_u64(mpl_run_enough(d->run, d->proved_bytes), d->capacity_bytes);

    return mpl_max_u64(mpl_max_u64(d->proved_bytes, within), d->enough_bytes);
}

static uint64_t end_bytes(const mpl_ilp *s, uint32_t i)
{
    return s->at[i] * s->unit + mpl_ilp_bytes(s, i);
}

/* ---- the pool in units ---- */

/* Offsets of a packing pushed down are sums of slots rounded up to alignments, from zero or from a
 * fixed offset. */
static void find_unit(mpl_ilp *s, uint64_t *finest)
{
    const mpl_problem *p = s->p;
    uint64_t grain = UINT64_C(1) << 31, unit = 0, fine = 0;

    for (uint32_t i = 0; i < s->n; i++)
        grain = mpl_min_u64(grain, p->align[s->id[i]]);
    for (uint32_t i = 0; i < s->n; i++) {
        unit = mpl_divisor(unit, round_up(p->bytes[s->id[i]], grain));
        fine = mpl_divisor(fine, p->bytes[s->id[i]]);
        if (mpl_ilp_fixed(s, i))
            unit = mpl_divisor(unit, p->fixed[s->id[i]]);
        if (p->inside != NULL)
            unit = mpl_divisor(unit, p->inside_at[s->id[i]]);
    }
    s->unit = unit;
    for (uint32_t i = 0; i < s->n; i++) /* one that does not divide it makes it a power of two below
                                           that one */
        if (unit % p->align[s->id[i]] != 0)
            s->unit = mpl_divisor(s->unit, p->align[s->id[i]]);
    for (uint32_t i = 0; i < s->n; i++) {
        s->size[i] = round_up(p->bytes[s->id[i]], grain) / s->unit;
        s->step[i] = p->align[s->id[i]] > s->unit ? p->align[s->id[i]] / s->unit : 1;
    }
    *finest = mpl_divisor(s->unit, fine);
}

static mpl_status mark_joins(mpl_ilp *s, const uint32_t *index)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = s->p;

    if (p->n_in_place == 0)
        goto out;
    MPL_TRY(mpl_new(s->ctx, s->joins, (size_t)s->n * s->n_words));
    for (uint32_t k = 0; k < p->n_in_place; k++) {
        uint32_t i = index[p->in_place_in[k]], j = index[p->in_place_out[k]];

        if (i == MPL_NONE || !mpl_conflict(p, s->id[i], s->id[j]))
            continue;
        mpl_bit_add(s->joins + (size_t)i * s->n_words, j);
        mpl_bit_add(s->joins + (size_t)j * s->n_words, i);
    }
out:
    return st;
}

/* lowest[] and apart[], where some family has two parts. Needs the unit. */
static mpl_status link_families(mpl_ilp *s, const uint32_t *index)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = s->p;
    bool any = false;

    for (uint32_t i = 0; p->inside != NULL && i < s->n; i++)
        any = any || p->inside[s->id[i]] != s->id[i];
    if (!any)
        return MPL_OK;
    MPL_TRY(mpl_new(s->ctx, s->lowest, s->n));
    MPL_TRY(mpl_new(s->ctx, s->apart, s->n));
    for (uint32_t i = 0; i < s->n; i++) {
        s->lowest[i] = index[p->inside[s->id[i]]];
        s->apart[i] = p->inside_at[s->id[i]] / s->unit;
    }
out:
    return st;
}

static mpl_status open_pool(driver *d, uint32_t pool)
{
    mpl_status st = MPL_OK;
    mpl_ilp *s = &d->s;
    const mpl_problem *p = s->p;
    uint32_t *index = NULL;

    MPL_TRY(mpl_new(s->ctx, s->id, p->n));
    MPL_TRY(mpl_new(s->ctx, index, p->n));
    for (mpl_buffer b = 0; b < p->n; b++) {
        index[b] = p->pool[b] == pool ? s->n : MPL_NONE;
        if (p->pool[b] == pool)
            s->id[s->n++] = b;
    }
    if (s->n > MAX_BUFFERS || s->n == 0)
        goto out;
    s->n_words = (s->n + 63) / 64;
    MPL_TRY(mpl_new(s->ctx, s->size, s->n));
    MPL_TRY(mpl_new(s->ctx, s->step, s->n));
    MPL_TRY(mpl_new(s->ctx, s->at, s->n));
    MPL_TRY(mpl_new(s->ctx, s->row, (size_t)s->n * s->n_words));
    MPL_TRY(mpl_new(s->ctx, d->placed, s->n_words));
    MPL_TRY(mpl_new(s->ctx, d->stack, s->n));
    MPL_TRY(mpl_new(s->ctx, d->by_at, s->n));
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (mpl_conflict(p, s->id[i], s->id[j])) {
                mpl_bit_add(s->row + (size_t)i * s->n_words, j);
                mpl_bit_add(s->row + (size_t)j * s->n_words, i);
            }
    find_unit(s, &d->finest);
    MPL_TRY(mark_joins(s, index));
    MPL_TRY(link_families(s, index));
out:
    mpl_free(s->ctx, index);
    return st;
}

static void close_pool(driver *d)
{
    mpl_ilp *s = &d->s;
    void *arrays[] = {s->id,     s->size,  s->step,   s->row,   s->joins, s->at,
                      s->lowest, s->apart, d->placed, d->stack, d->by_at};

    MPL_FREE_ALL(s->ctx, arrays);
}

/* ---- placing one after the other ---- */

/* at[i] becomes the lowest place from base on beside what is placed; i is placed then. */
static void place_lowest(driver *d, uint32_t i, uint64_t base)
{
    mpl_ilp *s = &d->s;
    uint32_t n = 0;
    uint64_t at = round_up(base, s->step[i]);

    for (uint32_t w = 0; w < s->n_words; w++)
        for (uint64_t bits = s->row[(size_t)i * s->n_words + w] & d->placed[w]; bits != 0;
             bits &= bits - 1) {
            uint32_t j = 64 * w + (uint32_t)__builtin_ctzll(bits), to = n++;

            for (; to > 0 && s->at[d->by_at[to - 1]] > s->at[j]; to--)
                d->by_at[to] = d->by_at[to - 1];
            d->by_at[to] = j;
        }
    d->run->ticks += n;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t j = d->by_at[k];

        if (s->at[j] >= at + s->size[i])
            break;
        at = mpl_max_u64(at, round_up(s->at[j] + s->size[j], s->step[i]));
    }
    s->at[i] = at;
    mpl_bit_add(d->placed, i);
}

enum { BY_PLAN, BY_SIZE, BY_AREA, BY_LOAD, N_ORDERS };

/* Highest first, then index. */
static uint64_t order_key(const driver *d, int order, const mpl_ilp_part *part, uint32_t i,
                          const uint64_t *plan)
{
    const mpl_ilp *s = &d->s;
    uint64_t n = 0, load = 0;

    if (order == BY_PLAN)
        return UINT64_MAX - plan[s->id[i]];
    if (order == BY_SIZE)
        return s->size[i];
    for (uint32_t k = 0; k < part->n; k++)
        if (mpl_ilp_conflict(s, i, part->member[k])) {
            n++;
            load += s->size[part->member[k]];
        }
    return order == BY_AREA ? s->size[i] * (n + 1) : load;
}

/* Places the members of a part in one order, the fixed ones first. Its height. [byte] */
static mpl_status place_part(driver *d, const mpl_ilp_part *part, int order, const uint64_t *plan,
                             uint64_t *height)
{
    mpl_status st = MPL_OK;
    mpl_ilp *s = &d->s;
    uint64_t *key = NULL;
    uint32_t *list = NULL;

    MPL_TRY(mpl_new(s->ctx, key, part->n));
    MPL_TRY(mpl_new(s->ctx, list, part->n));
    for (uint32_t k = 0; k < part->n; k++) {
        uint32_t i = part->member[k], to = k;
        uint64_t mine = mpl_ilp_fixed(s, i) ? UINT64_MAX : order_key(d, order, part, i, plan);

        mpl_bit_drop(d->placed, i);
        for (; to > 0 && key[to - 1] < mine; to--) {
            key[to] = key[to - 1];
            list[to] = list[to - 1];
        }
        key[to] = mine;
        list[to] = i;
    }
    *height = 0;
    for (uint32_t k = 0; k < part->n; k++) {
        if (mpl_ilp_fixed(s, list[k])) {
            s->at[list[k]] = s->p->fixed[s->id[list[k]]] / s->unit;
            mpl_bit_add(d->placed, list[k]);
        } else {
            place_lowest(d, list[k], part->base);
        }
        *height = mpl_max_u64(*height, end_bytes(s, list[k]));
    }
out:
    mpl_free(s->ctx, key);
    mpl_free(s->ctx, list);
    return st;
}

/* ---- one program ---- */

static void keep_offsets(const mpl_ilp *s, const mpl_ilp_part *part, uint64_t *offset)
{
    for (uint32_t k = 0; k < part->n; k++)
        offset[k] = s->at[part->member[k]];
}

static void restore_offsets(mpl_ilp *s, const mpl_ilp_part *part, const uint64_t *offset)
{
    for (uint32_t k = 0; k < part->n; k++)
        s->at[part->member[k]] = offset[k];
}

/* Whether the members lie apart, or at their in-place partner's very offset, and those of families
 * at their distances. */
static bool is_valid(const mpl_ilp *s, const mpl_ilp_part *part)
{
    for (uint32_t k = 0; k < part->n; k++) {
        uint32_t i = part->member[k];

        if (!mpl_ilp_fixed(s, i) && (s->at[i] < part->base || s->at[i] % s->step[i] != 0))
            return false;
        if (mpl_ilp_fixed(s, i) && s->at[i] * s->unit != s->p->fixed[s->id[i]])
            return false;
        if (s->lowest != NULL && s->at[i] != s->at[s->lowest[i]] + s->apart[i])
            return false;
        for (uint32_t l = k + 1; l < part->n; l++) {
            uint32_t j = part->member[l];
            bool apart = s->at[i] + s->size[i] <= s->at[j] || s->at[j] + s->size[j] <= s->at[i];

            if (mpl_ilp_conflict(s, i, j) && !apart &&
                !(s->at[i] == s->at[j] && mpl_ilp_joins(s, i, j)))
                return false;
        }
    }
    return true;
}

static uint64_t height_of(const mpl_ilp *s, const mpl_ilp_part *part)
{
    uint64_t height = 0;

    for (uint32_t k = 0; k < part->n; k++)
        height = mpl_max_u64(height, end_bytes(s, part->member[k]));
    return height;
}

/* at[] of the members from GLPK's point, rounded; where that is no packing, their order is: each as
 * low as it goes, in the order of the point. Its height. [byte] */
static mpl_status take_point(driver *d, const mpl_ilp_part *part, const double *x, uint64_t *height)
{
    mpl_status st = MPL_OK;
    mpl_ilp *s = &d->s;
    uint64_t *offset = NULL;

    for (uint32_t k = 0; k < part->n; k++) {
        uint32_t i = part->member[k];

        s->at[i] = (uint64_t)floor(fmax(x[1 + k], 0) + 0.499999) * s->step[i];
    }
    *height = height_of(s, part);
    if (is_valid(s, part))
        goto out;
    if (s->lowest != NULL) { /* no order of single buffers makes a plan of families */
        *height = UINT64_MAX;
        goto out;
    }
    MPL_TRY(mpl_new(s->ctx, offset, s->p->n));
    for (uint32_t k = 0; k < part->n; k++)
        offset[s->id[part->member[k]]] = s->at[part->member[k]];
    MPL_TRY(place_part(d, part, BY_PLAN, offset, height));
out:
    mpl_free(s->ctx, offset);
    return st;
}

/* What doubles prove: the next height at or above bound units, where their tolerance is below half
 * of the finest. [byte] */
static uint64_t proved_by(const driver *d, double bound, uint64_t high_bytes)
{
    double fine = bound * (double)d->s.unit / (double)d->finest;

    if (!(fine > 1) || high_bytes / d->finest > MAX_HEIGHT)
        return 0;
    return (uint64_t)ceil(fine - 0.01 - 2e-7 * fine) * d->finest;
}

/* What the answer proves: no packing of the part is lower. [byte] */
static uint64_t proved_by_answer(const driver *d, const mpl_ilp_part *part,
                                 const mpl_lp_answer *answer)
{
    if (answer->state != MPL_LP_INFEASIBLE)
        return proved_by(d, answer->bound, part->high_bytes);
    /* nothing from low to high: the next height is as low as it gets */
    if (part->high_bytes / d->finest > MAX_HEIGHT)
        return 0;
    return part->high_bytes + d->finest;
}

/* A budget is needed where nothing else ends the search. */
static uint64_t ticks_left(const driver *d)
{
    const mpl_run *run = d->run;
    bool endless = run->budget_ticks == UINT64_MAX && run->deadline_ns == INT64_MAX;
    uint64_t budget = endless ? DEFAULT_TICKS : run->budget_ticks;

    return budget - mpl_min_u64(run->ticks, budget);
}

/* at[] of the members comes in with a packing of *height; it and d->proved_bytes are improved. */
static mpl_status solve_part(driver *d, mpl_ilp_part *part, uint64_t *height)
{
    mpl_status st = MPL_OK;
    mpl_ilp *s = &d->s;
    mpl_lp *lp = NULL;
    double *x = NULL;
    uint64_t *first = NULL, got;
    mpl_lp_limits limits = {
        .max_nodes = d->nodes_left, .max_mib = MAX_MIB, .deadline_ns = d->run->deadline_ns};
    mpl_lp_answer answer = {0};
    uint64_t size; /* work of a pivot, roughly */

    limits.enough = (double)goal(d) / (double)s->unit + 1e-6;
    MPL_TRY(mpl_new(s->ctx, first, part->n));
    keep_offsets(s, part, first);
    MPL_TRY(mpl_ilp_program(s, part, 1, MAX_ENTRIES, &lp));
    MPL_TRY(mpl_new(s->ctx, x, mpl_lp_columns(lp)));
    size = (uint64_t)mpl_lp_rows(lp) + mpl_lp_columns(lp);
    limits.max_pivots = (ticks_left(d) + size - 1) / size;
    st = mpl_lp_solve(lp, &limits, &answer, x);
    d->run->solver_gave_up |= st == MPL_EMEM || answer.gave_up; /* max_mib is a limit: what there is
                                                                   stands */
    MPL_TRY(st == MPL_EMEM ? MPL_OK : st);
    d->nodes_left -= mpl_min_u64(answer.n_nodes, d->nodes_left);
    d->run->ticks += answer.n_pivots * size;
    d->run->stopped_by_clock |= answer.stopped_by_clock;
    if (answer.state == MPL_LP_OPTIMAL || answer.state == MPL_LP_FEASIBLE) {
        MPL_TRY(take_point(d, part, x, &got));
        if (got < *height)
            *height = got;
        else
            restore_offsets(s, part, first);
    }
    d->proved_bytes =
        mpl_max_u64(d->proved_bytes, mpl_min_u64(proved_by_answer(d, part, &answer), *height));
out:
    mpl_lp_free(s->ctx, lp);
    mpl_free(s->ctx, x);
    mpl_free(s->ctx, first);
    return st;
}

static uint64_t count_pairs(const mpl_ilp *s, const mpl_ilp_part *part)
{
    uint64_t n = 0;

    for (uint32_t k = 0; k < part->n; k++)
        for (uint32_t l = 0; l < k; l++)
            n += mpl_ilp_conflict(s, part->member[k], part->member[l]);
    return n;
}

/* The heights that a program looks for, of a part that has a packing of `height`. False: none is
 * worth it. */
static bool range_of(const driver *d, mpl_ilp_part *part, uint64_t height)
{
    part->low_bytes = d->proved_bytes;
    part->high_bytes = d->cold ? d->best_bytes : mpl_min_u64(height, d->best_bytes) - d->finest;
    if (d->enough_bytes >= part->low_bytes && d->enough_bytes < part->high_bytes)
        part->high_bytes = d->enough_bytes / d->finest * d->finest;
    return part->low_bytes <= part->high_bytes && d->proved_bytes <= d->capacity_bytes &&
           (d->cold || height > goal(d)) && count_pairs(&d->s, part) <= (uint64_t)d->max_pairs &&
           d->nodes_left > 0 && ticks_left(d) > 0;
}

/* A part that falls into no smaller ones: orders, then the program where no order is good enough.
 * plan[]: offsets of the whole problem's plan. [byte] */
static mpl_status pack_leaf(driver *d, mpl_ilp_part *part, const uint64_t *plan)
{
    mpl_status st = MPL_OK;
    mpl_ilp *s = &d->s;
    uint64_t height = UINT64_MAX, got, *best = NULL;

    MPL_TRY(mpl_new(s->ctx, best, part->n));
    for (int order = 0; order < N_ORDERS && height > goal(d); order++) {
        MPL_TRY(place_part(d, part, order, plan, &got));
        if (got >= height)
            continue;
        height = got;
        keep_offsets(s, part, best);
    }
    restore_offsets(s, part, best);
    if (!range_of(d, part, height))
        goto out;
    if (d->cold)
        height = UINT64_MAX;
    MPL_TRY(solve_part(d, part, &height));
out:
    mpl_free(s->ctx, best);
    return st;
}

/* ---- smaller parts ---- */

/* Whether i finds a place below the bound, from base on, whatever the others of the set do. */
static bool always_fits(const driver *d, const uint64_t *set, uint32_t i, uint64_t base)
{
    const mpl_ilp *s = &d->s;
    uint64_t room = d->proved_bytes, lost = 0, step = s->step[i];

    if (mpl_ilp_fixed(s, i) || room < mpl_ilp_bytes(s, i))
        return false;
    room = (room - mpl_ilp_bytes(s, i)) / s->unit; /* its highest start */
    if (room < round_up(base, step))
        return false;
    for (uint32_t w = 0; w < s->n_words; w++)
        for (uint64_t bits = s->row[(size_t)i * s->n_words + w] & set[w]; bits != 0;
             bits &= bits - 1)
            lost +=
                (s->size[64 * w + (uint32_t)__builtin_ctzll(bits)] + s->size[i] - 1 + step - 1) /
                step;
    return lost <= (room - round_up(base, step)) / step;
}

/* Takes out of the set, onto the stack, all that can be put back last. */
static void strip(driver *d, uint64_t *set, uint64_t base)
{
    bool again = true;

    while (again) {
        again = false;
        for (uint32_t i = 0; i < d->s.n; i++)
            if (mpl_bit_has(set, i) && always_fits(d, set, i, base)) {
                mpl_bit_drop(set, i);
                d->stack[d->n_stack++] = i;
                again = true;
            }
    }
}

/* Moves the component of the set's first member into part[]; false when the set is empty. */
static bool next_component(const driver *d, uint64_t *set, uint32_t *part, uint32_t *n)
{
    const mpl_ilp *s = &d->s;
    uint32_t first = 0;

    while (first < s->n && !mpl_bit_has(set, first))
        first++;
    if (first == s->n)
        return false;
    *n = 0;
    part[(*n)++] = first;
    mpl_bit_drop(set, first);
    for (uint32_t k = 0; k < *n; k++)
        for (uint32_t w = 0; w < s->n_words; w++)
            for (uint64_t bits = s->row[(size_t)part[k] * s->n_words + w] & set[w]; bits != 0;
                 bits &= bits - 1) {
                uint32_t j = 64 * w + (uint32_t)__builtin_ctzll(bits);

                part[(*n)++] = j;
                mpl_bit_drop(set, j);
            }
    return true;
}

/* Whether i may lie below everything else in the set without loss: it conflicts with all of it,
 * fills its slots, and lifts the others by what keeps them aligned. */
static bool belongs_below(const driver *d, const uint64_t *set, uint32_t i, uint64_t base)
{
    const mpl_ilp *s = &d->s;

    if (mpl_ilp_bytes(s, i) != s->size[i] * s->unit || base % s->step[i] != 0)
        return false;
    for (uint32_t j = 0; j < s->n; j++)
        if (j != i && mpl_bit_has(set, j) &&
            (!mpl_ilp_conflict(s, i, j) || s->size[i] % s->step[j] != 0))
            return false;
    for (uint32_t j = 0; j < s->n; j++)
        if (mpl_bit_has(set, j) && (mpl_ilp_fixed(s, j) || mpl_ilp_joins(s, i, j)))
            return false;
    return true;
}

/* Puts what belongs below the rest at base, which rises. True if there was any. */
static bool peel(driver *d, uint64_t *set, uint64_t *base)
{
    bool any = false;

    for (uint32_t i = 0; i < d->s.n; i++)
        if (mpl_bit_has(set, i) && belongs_below(d, set, i, *base)) {
            mpl_bit_drop(set, i);
            mpl_bit_add(d->placed, i);
            d->s.at[i] = *base;
            *base += d->s.size[i];
            any = true;
        }
    return any;
}

/* Places all of the set (which is used up) from base on. */
static mpl_status pack(driver *d, uint64_t *set, uint64_t base, const uint64_t *plan)
{
    mpl_status st = MPL_OK;
    mpl_ilp *s = &d->s;
    uint64_t *below = NULL;
    mpl_ilp_part part = {.base = base};

    MPL_TRY(mpl_new(s->ctx, below, s->n_words));
    MPL_TRY(mpl_new(s->ctx, part.member, s->n));
    strip(d, set, base);
    while (next_component(d, set, part.member, &part.n)) {
        uint64_t top = base;

        memset(below, 0, s->n_words * sizeof *below);
        for (uint32_t k = 0; k < part.n; k++)
            mpl_bit_add(below, part.member[k]);
        if (peel(d, below, &top)) {
            MPL_TRY(pack(d, below, top, plan));
            continue;
        }
        part.n = 0;
        for (uint32_t i = 0; i < s->n; i++)
            if (mpl_bit_has(below, i))
                part.member[part.n++] = i;
        MPL_TRY(pack_leaf(d, &part, plan));
    }
out:
    mpl_free(s->ctx, below);
    mpl_free(s->ctx, part.member);
    return st;
}

/* ---- one pool ---- */

/* No plan is lower: the problem's bound, in heights that there are, and what is fixed. Needs
 * open_pool. */
static mpl_status first_bound(driver *d, uint32_t pool)
{
    mpl_status st = MPL_OK;
    const mpl_ilp *s = &d->s;

    MPL_TRY(mpl_lower_bound(s->ctx, s->p, pool, &d->proved_bytes, NULL));
    if (s->row == NULL)
        goto out;
    d->proved_bytes = round_up(d->proved_bytes, d->finest);
    for (uint32_t i = 0; i < s->n; i++)
        if (mpl_ilp_fixed(s, i))
            d->proved_bytes =
                mpl_max_u64(d->proved_bytes, s->p->fixed[s->id[i]] + mpl_ilp_bytes(s, i));
out:
    return st;
}

/* All of the pool as one part, from the plan that there is: what makes parts smaller moves buffers
 * one by one. */
static mpl_status pack_families(driver *d, const uint64_t *plan)
{
    mpl_status st = MPL_OK;
    mpl_ilp *s = &d->s;
    mpl_ilp_part part = {.n = s->n};
    uint64_t height = d->cold ? UINT64_MAX : d->best_bytes;

    MPL_TRY(mpl_new(s->ctx, part.member, s->n));
    for (uint32_t i = 0; i < s->n; i++) {
        part.member[i] = i;
        s->at[i] = plan[s->id[i]] / s->unit;
    }
    if (is_valid(s, &part) && height_of(s, &part) <= d->best_bytes && range_of(d, &part, height))
        MPL_TRY(solve_part(d, &part, &height));
out:
    mpl_free(s->ctx, part.member);
    return st;
}

/* offset[] comes in with a plan, and leaves with one that is no higher. d->proved_bytes: no plan of
 * the pool is lower. */
static mpl_status solve_pool(driver *d, uint32_t pool, uint64_t *offset)
{
    mpl_status st = MPL_OK;
    mpl_ilp *s = &d->s;
    uint64_t *all = NULL, height = 0;

    d->best_bytes = mpl_pool_height(s->p, pool, offset);
    MPL_TRY(open_pool(d, pool));
    MPL_TRY(first_bound(d, pool));
    if (s->row == NULL || (!d->cold && d->best_bytes <= goal(d)))
        goto out;
    MPL_TRY(mpl_new(s->ctx, all, s->n_words));
    for (uint32_t i = 0; i < s->n; i++)
        mpl_bit_add(all, i);
    MPL_TRY(s->lowest != NULL ? pack_families(d, offset) : pack(d, all, 0, offset));
    while (d->n_stack > 0)
        place_lowest(d, d->stack[--d->n_stack], 0);
    for (uint32_t i = 0; i < s->n; i++)
        height = mpl_max_u64(height, end_bytes(s, i));
    for (uint32_t i = 0; height < d->best_bytes && i < s->n; i++)
        offset[s->id[i]] = s->at[i] * s->unit;
    d->best_bytes = mpl_min_u64(d->best_bytes, height);
out:
    mpl_free(s->ctx, all);
    close_pool(d);
    return st;
}

/* ---- the planner ---- */

/* One heuristic's plan; where it is lower, out[] takes its offsets, pool by pool. p has no
 * capacities. */
static mpl_status try_planner(mpl_run *run, const mpl_problem *p, const mpl_planner *planner,
                              bool first, uint64_t *out)
{
    mpl_status st = MPL_OK;
    mpl_plan *plan = NULL;
    mpl_run part = {
        .ctx = run->ctx, .seed = run->seed, .deadline_ns = run->deadline_ns, .n_threads = 1};

    part.budget_ticks =
        mpl_min_u64(mpl_min_u64(run->budget_ticks / 4, ARENA_TICKS), 200 * (uint64_t)p->n * p->n);
    MPL_TRY(mpl_plan_new(run->ctx, p, &plan));
    MPL_TRY(planner->plan(&part, p, plan));
    run->ticks += part.ticks;
    plan->claim = MPL_FEASIBLE;
    st = mpl_verify(run->ctx, p, plan);
    if (st == MPL_EINVALID && !first) { /* pairs that no operator has: folding them in a row need
                                           not be a plan */
        st = MPL_OK;
        goto out;
    }
    MPL_TRY(st);
    for (uint32_t pool = 0; pool < p->n_pools; pool++)
        if (first || mpl_pool_height(p, pool, plan->offset) < mpl_pool_height(p, pool, out))
            for (mpl_buffer b = 0; b < p->n; b++)
                if (p->pool[b] == pool)
                    out[b] = plan->offset[b];
out:
    mpl_plan_free(run->ctx, plan);
    return st;
}

/* The best plan of each pool among the heuristics; cold: nothing shared. */
static mpl_status start(mpl_run *run, const mpl_problem *p, bool cold, uint64_t *offset)
{
    static const mpl_planner *const warm_planners[] = {
        &mpl_planner_greedy_size, &mpl_planner_best_fit, &mpl_planner_nnc_arena};
    mpl_status st = MPL_OK;
    mpl_problem roomy = *p;

    roomy.pool_capacity = NULL;
    MPL_TRY(mpl_new(run->ctx, roomy.pool_capacity, p->n_pools));
    for (uint32_t pool = 0; pool < p->n_pools; pool++)
        roomy.pool_capacity[pool] = MPL_NO_CAPACITY;
    if (cold)
        MPL_TRY(try_planner(run, &roomy, &mpl_planner_none, true, offset));
    for (size_t i = 0; !cold && i < sizeof warm_planners / sizeof *warm_planners; i++)
        if (warm_planners[i] != &mpl_planner_nnc_arena ||
            (p->fixed == NULL && p->inside == NULL && p->n <= MAX_BUFFERS))
            MPL_TRY(try_planner(run, &roomy, warm_planners[i], i == 0, offset));
out:
    mpl_free(run->ctx, roomy.pool_capacity);
    return st;
}

/* *claim comes in with what the pools before this one have shown. */
static void claim_pool(const driver *d, uint32_t pool, mpl_claim *claim)
{
    if (*claim == MPL_INFEASIBLE || d->proved_bytes > d->capacity_bytes)
        *claim = MPL_INFEASIBLE;
    else if (d->best_bytes > d->capacity_bytes)
        *claim = MPL_UNKNOWN;
    else if (pool == 0 && d->best_bytes > d->proved_bytes)
        *claim = MPL_FEASIBLE;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    const char *start_text = mpl_run_param(run, "start");
    bool cold = start_text != NULL && strcmp(start_text, "cold") == 0;
    int64_t max_pairs, max_nodes, minimise;
    bool clash;

    MPL_TRY(mpl_run_param_int(run, "pairs", 0, 1000000, MAX_PAIRS, &max_pairs));
    MPL_TRY(mpl_run_param_int(run, "nodes", 0, INT64_MAX, MAX_NODES, &max_nodes));
    MPL_TRY(mpl_run_param_int(run, "minimise", 0, 1, 0, &minimise));
    MPL_TRY(mpl_exact_clash(run->ctx, p, out, &clash));
    if (clash)
        goto out;
    MPL_TRY(start(run, p, cold, out->offset));
    out->claim = MPL_OPTIMAL;
    for (uint32_t pool = 0; pool < p->n_pools; pool++) {
        uint64_t capacity = p->pool_capacity[pool];
        driver d = {
            .s = {.ctx = run->ctx, .p = p}, .run = run, .max_pairs = max_pairs, .cold = cold};

        d.nodes_left = (uint64_t)max_nodes;
        d.capacity_bytes = capacity;
        d.enough_bytes = minimise == 0 && capacity != MPL_NO_CAPACITY ? capacity : 0;
        MPL_TRY(solve_pool(&d, pool, out->offset));
        claim_pool(&d, pool, &out->claim);
        if (pool == 0)
            out->bound_bytes = d.proved_bytes;
    }
    MPL_TRY(mpl_run_decided(run, out));
out:
    return st;
}

const mpl_planner mpl_planner_ilp = {
    .name = "ilp",
    .about = "integer program by GLPK, part by part",
    .source = "sekiyama2018",
    .params = "start=warm|cold,minimise=0|1,nodes=N,pairs=N",
    .traits = MPL_EXACT | MPL_USES_IN_PLACE | MPL_ROUNDED | MPL_USES_FAMILIES,
    .plan = MPL_HAVE_GLPK ? plan : NULL,
};

/* ---- a file ---- */

mpl_status mpl_ilp_write(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *known,
                         const char *path)
{
    mpl_status st = MPL_OK;
    driver d = {.s = {.ctx = ctx, .p = p}};
    mpl_ilp_part part = {.high_bytes = mpl_pool_height(p, 0, known->offset)};
    mpl_lp *lp = NULL;

    MPL_TRY(open_pool(&d, 0));
    if (d.s.row == NULL)
        MPL_FAIL(ctx, MPL_EINPUT, "%s: a program can have 1 to %d buffers, not %" PRIu32, path,
                 MAX_BUFFERS, d.s.n);
    MPL_TRY(first_bound(&d, 0));
    part.low_bytes = d.proved_bytes;
    MPL_TRY(mpl_new(ctx, part.member, d.s.n));
    for (; part.n < d.s.n; part.n++)
        part.member[part.n] = part.n;
    MPL_TRY(mpl_ilp_program(&d.s, &part, (double)d.s.unit, MAX_ENTRIES, &lp));
    MPL_TRY(mpl_lp_write(lp, MAX_MIB, path));
out:
    mpl_lp_free(ctx, lp);
    mpl_free(ctx, part.member);
    close_pool(&d);
    return st;
}
