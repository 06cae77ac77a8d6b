/* residency_windows.c -- the least stall of small problems, by trying all. See residency_priv.h.
 *
 * Idea     All ways of all buffers; for each all orders of its moves on the channel, all steps from
 *          which one may run and before which one must be over. What a beginning of an order waits
 *          already, no continuation takes back.
 * Source   this project
 * Cost     Exponential; limited by ticks. */
#include "planners/residency/residency_priv.h"

typedef struct trial {
    mpl_residency *r;
    mpl_timing *best;
    mpl_timing now; /* what is being tried: out is filled to `depth` */
    mpl_timed *all; /* [n] the moves of the ways */
    mpl_timed *copy;
    uint8_t *issued; /* [n] */
    uint32_t n;
    int64_t *load;
    uint64_t tick_limit, open; /* open: least stall of what was not tried to the end */
} trial;

static bool is_late(trial *v, uint64_t stall)
{
    if (++v->r->ticks < v->tick_limit && !mpl_run_late(v->r->run))
        return false;
    v->open = mpl_min_u64(v->open, stall);
    return true;
}

static bool fits(const trial *v, uint32_t from, uint32_t to, int64_t size)
{
    for (uint32_t s = from; s < to; s++)
        if (v->load[s] + size > (int64_t)v->r->room[s])
            return false;
    return true;
}

static void occupy(trial *v, uint32_t from, uint32_t to, int64_t size)
{
    for (uint32_t s = from; s < to; s++)
        v->load[s] += size;
}

static uint64_t stall_of(trial *v, uint32_t n)
{
    memcpy(v->copy, v->now.move, n * sizeof *v->copy);
    return mpl_residency_time(v->r, v->now.fast, n, v->copy);
}

/* All moves have their windows. */
static mpl_status settle(trial *v, uint64_t stall)
{
    mpl_placed placed = {0};

    v->now.n = v->n;
    MPL_PASS(mpl_residency_place(v->r, v->now.fast, v->now.kept, v->now.n, v->copy, v->now.place,
                                 &placed));
    if (!placed.fits) {
        v->open = mpl_min_u64(v->open, placed.never ? UINT64_MAX : stall);
        return MPL_OK;
    }
    v->now.stall_ns = stall;
    mpl_timing_copy(v->r, &v->now, v->best);
    memcpy(v->best->move, v->copy, v->n * sizeof *v->copy);
    return MPL_OK;
}

static bool may_be_next(const trial *v, uint32_t k)
{
    if (v->issued[k])
        return false;
    for (uint32_t i = 0; v->all[k].to_fast && i < v->n; i++)
        if (!v->all[i].to_fast && v->all[i].use + 1 == v->all[k].use && !v->issued[i])
            return false; /* it is not in slow memory yet */
    return true;
}

static mpl_status next_move(trial *v, uint32_t depth, uint32_t from)
{
    const mpl_residency_problem *p = v->r->p;
    uint64_t stall = stall_of(v, depth);

    if (stall >= v->best->stall_ns || is_late(v, stall))
        return MPL_OK;
    if (depth == v->n)
        return settle(v, stall);
    for (uint32_t k = 0; k < v->n; k++) {
        mpl_timed m = v->all[k];
        uint32_t first = m.to_fast ? p->at[m.use - 1] + 1 : p->at[m.use] + 1;
        uint32_t last = m.to_fast ? p->at[m.use] : p->at[m.use + 1];
        int64_t size = (int64_t)v->r->size[v->r->owner[m.use]];

        if (!may_be_next(v, k))
            continue;
        /* what is written holds its place until it is over, so it begins as early as may be; what
         * comes holds it up to its use, so nothing waits for it earlier than needed */
        for (m.from = first > from ? first : from; m.from <= last;
             m.from = m.to_fast ? m.from + 1 : last + 1)
            for (m.until = last; m.until >= (m.to_fast ? last : m.from); m.until--) {
                uint32_t a = m.to_fast ? m.from : first, b = m.until;

                if (!fits(v, a, b, size))
                    continue;
                occupy(v, a, b, size);
                v->issued[k] = 1;
                v->now.move[depth] = m;
                MPL_PASS(next_move(v, depth + 1, m.from));
                v->issued[k] = 0;
                occupy(v, a, b, -size);
            }
    }
    return MPL_OK;
}

/* The stall that the ways have at least: no step covers what is used in slow memory, and the first
 * and the last cover no move. */
static uint64_t uncovered(const trial *v)
{
    const mpl_residency_problem *p = v->r->p;
    uint64_t slow = 0, moves = 0, covered = 0;

    for (uint32_t i = 0; i < v->r->n_uses; i++)
        slow += v->now.fast[i] ? 0 : mpl_residency_ns(p, p->bytes[v->r->owner[i]]);
    for (uint32_t k = 0; k < v->n; k++)
        moves += mpl_residency_ns(p, p->bytes[v->r->owner[v->all[k].use]]);
    for (uint32_t s = 1; s + 1 < p->n_steps; s++)
        covered += p->step_ns[s];
    return slow + (moves > covered ? moves - covered : 0);
}

/* Ways of all buffers are decided. */
static mpl_status try_ways(trial *v)
{
    const mpl_residency *r = v->r;

    memset(v->load, 0, r->p->n_steps * sizeof *v->load);
    for (mpl_buffer b = 0; b < r->p->n; b++)
        mpl_residency_load(r, b, v->now.fast, v->now.kept, 1, true, true, v->load);
    if (!fits(v, 0, r->p->n_steps, 0))
        return MPL_OK;
    v->n = mpl_residency_moves(r, v->now.fast, v->now.kept, v->all);
    if (uncovered(v) >= v->best->stall_ns)
        return MPL_OK;
    return next_move(v, 0, 0);
}

static mpl_status each_way(trial *v, uint32_t i)
{
    const mpl_residency_problem *p = v->r->p;
    bool first;

    if (is_late(v, 0))
        return MPL_OK;
    if (i == v->r->n_uses)
        return try_ways(v);
    first = i == p->begin[v->r->owner[i]];
    v->now.kept[i] = 0;
    for (uint8_t fast = 2; fast-- > (p->slow_price > 0 ? 0 : 1);) {
        v->now.fast[i] = fast;
        for (uint8_t kept = !first && fast && v->now.fast[i - 1] ? 2 : 1; kept-- > 0;) {
            if (!first)
                v->now.kept[i - 1] = kept;
            MPL_PASS(each_way(v, i + 1));
        }
    }
    return MPL_OK;
}

mpl_status mpl_residency_try_all(mpl_residency *r, uint64_t tick_limit, mpl_timing *best,
                                 uint64_t *bound)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = r->run->ctx;
    trial v = {.r = r, .best = best, .tick_limit = tick_limit, .open = UINT64_MAX};
    size_t most = 2 * (size_t)r->n_uses;

    MPL_TRY(mpl_timing_init(r, &v.now));
    MPL_TRY(mpl_new_each(ctx, most, v.all, v.copy));
    MPL_TRY(mpl_new(ctx, v.issued, most));
    MPL_TRY(mpl_new(ctx, v.load, r->p->n_steps));
    MPL_TRY(each_way(&v, 0));
    *bound = mpl_min_u64(v.open, best->stall_ns);
out:
    mpl_timing_fini(r, &v.now);
    mpl_free_each(ctx, v.all, v.copy, v.issued, v.load);
    return st;
}
