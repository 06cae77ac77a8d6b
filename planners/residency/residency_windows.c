/* residency_windows.c -- the least stall of small problems, by trying all. See residency_priv.h.
 *
 * Idea     All ways of all buffers; for each all orders of its moves on the channel, all steps from
 *          which one may run and before which one must be over. What a beginning of an order waits
 *          already, no continuation takes back.
 * Source   this project
 * Cost     Exponential; limited by ticks. */
#include "planners/residency/residency_priv.h"

typedef struct trial {
    mpl_residency *residency;
    mpl_timing *best;
    mpl_timing now; /* what is being tried: out is filled to `depth` */
    mpl_timed *all; /* [n] the moves of the ways */
    mpl_timed *copy;
    uint8_t *issued; /* [n] */
    uint32_t n;
    int64_t *load;
    uint64_t tick_limit, open; /* open: least stall of what was not tried to the end */
} trial;

static bool is_late(trial *self, uint64_t stall)
{
    if (++self->residency->ticks < self->tick_limit && !mpl_run_late(self->residency->run))
        return false;
    self->open = mpl_min_u64(self->open, stall);
    return true;
}

static bool fits(const trial *self, uint32_t from, uint32_t to, int64_t size)
{
    for (uint32_t s = from; s < to; s++)
        if (self->load[s] + size > (int64_t)self->residency->room[s])
            return false;
    return true;
}

static void occupy(trial *self, uint32_t from, uint32_t to, int64_t size)
{
    for (uint32_t s = from; s < to; s++)
        self->load[s] += size;
}

static uint64_t stall_of(trial *self, uint32_t n)
{
    memcpy(self->copy, self->now.move, n * sizeof *self->copy);
    return mpl_residency_time(self->residency, self->now.fast, n, self->copy);
}

/* All moves have their windows. */
static mpl_status settle(trial *self, uint64_t stall)
{
    mpl_placed placed = {0};

    self->now.n = self->n;
    MPL_PASS(mpl_residency_place(self->residency, self->now.fast, self->now.kept, self->now.n,
                                 self->copy, self->now.place, &placed));
    if (!placed.fits) {
        self->open = mpl_min_u64(self->open, placed.never ? UINT64_MAX : stall);
        return MPL_OK;
    }
    self->now.stall_ns = stall;
    mpl_timing_copy(self->residency, &self->now, self->best);
    memcpy(self->best->move, self->copy, self->n * sizeof *self->copy);
    return MPL_OK;
}

static bool may_be_next(const trial *self, uint32_t k)
{
    if (self->issued[k])
        return false;
    for (uint32_t i = 0; self->all[k].to_fast && i < self->n; i++)
        if (!self->all[i].to_fast && self->all[i].use + 1 == self->all[k].use && !self->issued[i])
            return false; /* it is not in slow memory yet */
    return true;
}

static mpl_status next_move(trial *self, uint32_t depth, uint32_t from)
{
    const mpl_residency_problem *p = self->residency->p;
    uint64_t stall = stall_of(self, depth);

    if (stall >= self->best->stall_ns || is_late(self, stall))
        return MPL_OK;
    if (depth == self->n)
        return settle(self, stall);
    for (uint32_t k = 0; k < self->n; k++) {
        mpl_timed m = self->all[k];
        uint32_t first = m.to_fast ? p->at[m.use - 1] + 1 : p->at[m.use] + 1;
        uint32_t last = m.to_fast ? p->at[m.use] : p->at[m.use + 1];
        int64_t size = (int64_t)self->residency->size[self->residency->owner[m.use]];

        if (!may_be_next(self, k))
            continue;
        /* what is written holds its place until it is over, so it begins as early as may be; what
         * comes holds it up to its use, so nothing waits for it earlier than needed */
        for (m.from = first > from ? first : from; m.from <= last;
             m.from = m.to_fast ? m.from + 1 : last + 1)
            for (m.until = last; m.until >= (m.to_fast ? last : m.from); m.until--) {
                uint32_t a = m.to_fast ? m.from : first, b = m.until;

                if (!fits(self, a, b, size))
                    continue;
                occupy(self, a, b, size);
                self->issued[k] = 1;
                self->now.move[depth] = m;
                MPL_PASS(next_move(self, depth + 1, m.from));
                self->issued[k] = 0;
                occupy(self, a, b, -size);
            }
    }
    return MPL_OK;
}

/* The stall that the ways have at least: no step covers what is used in slow memory, and the first
 * and the last cover no move. */
static uint64_t uncovered(const trial *self)
{
    const mpl_residency_problem *p = self->residency->p;
    uint64_t slow = 0, moves = 0, covered = 0;

    for (uint32_t i = 0; i < self->residency->n_uses; i++)
        slow += self->now.fast[i] ? 0 : mpl_residency_ns(p, p->bytes[self->residency->owner[i]]);
    for (uint32_t k = 0; k < self->n; k++)
        moves += mpl_residency_ns(p, p->bytes[self->residency->owner[self->all[k].use]]);
    for (uint32_t s = 1; s + 1 < p->n_steps; s++)
        covered += p->step_ns[s];
    return slow + (moves > covered ? moves - covered : 0);
}

/* Ways of all buffers are decided. */
static mpl_status try_ways(trial *self)
{
    const mpl_residency *residency = self->residency;

    memset(self->load, 0, residency->p->n_steps * sizeof *self->load);
    for (mpl_buffer b = 0; b < residency->p->n; b++)
        mpl_residency_load(residency, b, self->now.fast, self->now.kept, 1, true, true, self->load);
    if (!fits(self, 0, residency->p->n_steps, 0))
        return MPL_OK;
    self->n = mpl_residency_moves(residency, self->now.fast, self->now.kept, self->all);
    if (uncovered(self) >= self->best->stall_ns)
        return MPL_OK;
    return next_move(self, 0, 0);
}

static mpl_status each_way(trial *self, uint32_t i)
{
    const mpl_residency_problem *p = self->residency->p;
    bool first;

    if (is_late(self, 0))
        return MPL_OK;
    if (i == self->residency->n_uses)
        return try_ways(self);
    first = i == p->begin[self->residency->owner[i]];
    self->now.kept[i] = 0;
    for (uint8_t fast = 2; fast-- > (p->slow_price > 0 ? 0 : 1);) {
        self->now.fast[i] = fast;
        for (uint8_t kept = !first && fast && self->now.fast[i - 1] ? 2 : 1; kept-- > 0;) {
            if (!first)
                self->now.kept[i - 1] = kept;
            MPL_PASS(each_way(self, i + 1));
        }
    }
    return MPL_OK;
}

mpl_status mpl_residency_try_all(mpl_residency *residency, uint64_t tick_limit, mpl_timing *best,
                                 uint64_t *bound)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = residency->run->ctx;
    trial v = {.residency = residency, .best = best, .tick_limit = tick_limit, .open = UINT64_MAX};
    size_t most = 2 * (size_t)residency->n_uses;

    MPL_TRY(mpl_timing_init(residency, &v.now));
    MPL_TRY(mpl_new_each(ctx, most, v.all, v.copy));
    MPL_TRY(mpl_new(ctx, v.issued, most));
    MPL_TRY(mpl_new(ctx, v.load, residency->p->n_steps));
    MPL_TRY(each_way(&v, 0));
    *bound = mpl_min_u64(v.open, best->stall_ns);
out:
    mpl_timing_fini(residency, &v.now);
    mpl_free_each(ctx, v.all, v.copy, v.issued, v.load);
    return st;
}
