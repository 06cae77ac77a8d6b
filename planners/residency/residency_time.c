/* residency_time.c -- when moves run, and how long steps wait for them. See residency_priv.h.
 *
 * Idea     Ways fixed, what leaves is written as soon as it may be, what comes is fetched as early
 *          as there is room for it from then on, next needed first; what is being written keeps its
 *          room while that is free, and is waited for where it is not.
 * Source   this project
 * Cost     O(steps * moves) at most. */
#include "planners/residency/residency_priv.h"

#include <stdlib.h>

MPL_ORDER_BY(by_time, mpl_timed, MPL_RISING(from) MPL_RISING(to_fast) MPL_RISING(use))

uint32_t mpl_residency_moves(const mpl_residency *residency, const uint8_t *fast,
                             const uint8_t *kept, mpl_timed *move)
{
    const mpl_residency_problem *p = residency->p;
    uint32_t n = 0;

    for (mpl_buffer b = 0; b < p->n; b++) {
        bool dirty = false;

        for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++) {
            bool leaves = i > p->begin[b] && fast[i - 1] && !kept[i - 1];
            uint32_t s = p->at[i], away = i > p->begin[b] ? p->at[i - 1] + 1 : 0;

            if (leaves && dirty)
                move[n++] = (mpl_timed){.use = i - 1, .from = away, .until = away};
            if (i > p->begin[b] && fast[i] && (leaves || !fast[i - 1]))
                move[n++] = (mpl_timed){.use = i, .to_fast = 1, .from = s, .until = s};
            dirty = fast[i] && (p->writes[i] || (dirty && !leaves));
        }
    }
    qsort(move, n, sizeof *move, by_time);
    return n;
}

/* What steps use in slow memory, as time of the channel. */
static void slow_times(const mpl_residency *residency, const uint8_t *fast, uint64_t *slow_ns)
{
    memset(slow_ns, 0, residency->p->n_steps * sizeof *slow_ns);
    for (uint32_t i = 0; i < residency->n_uses; i++)
        if (!fast[i])
            slow_ns[residency->p->at[i]] +=
                mpl_residency_ns(residency->p, residency->p->bytes[residency->owner[i]]);
}

static uint64_t take_channel(const mpl_residency *residency, mpl_timed *timed, uint64_t now,
                             uint64_t channel)
{
    timed->start_ns = mpl_max_u64(now, channel);
    timed->end_ns =
        timed->start_ns +
        mpl_residency_ns(residency->p, residency->p->bytes[residency->owner[timed->use]]);
    return timed->end_ns;
}

uint64_t mpl_residency_time(mpl_residency *residency, const uint8_t *fast, uint32_t n,
                            mpl_timed *move)
{
    uint64_t *slow_ns = residency->slow_ns, now = 0, channel = 0, stall = 0;
    uint32_t next = 0, over = 0; /* moves that have begun, and that were waited for */

    slow_times(residency, fast, slow_ns);
    for (uint32_t k = n; k-- > 1;) /* one channel: what is behind it ends later */
        move[k - 1].until = move[k - 1].until < move[k].until ? move[k - 1].until : move[k].until;
    for (uint32_t s = 0; s < residency->p->n_steps; s++) {
        uint64_t begin = now;

        for (; next < n && move[next].until <= s; next++)
            channel = take_channel(residency, &move[next], now, channel);
        for (; over < next && move[over].until <= s; over++)
            begin = mpl_max_u64(begin, move[over].end_ns);
        if (slow_ns[s] > 0)
            begin = channel = mpl_max_u64(begin, channel) + slow_ns[s];
        for (; next < n && move[next].from <= s; next++)
            channel = take_channel(residency, &move[next], now, channel);
        stall += begin - now;
        now = begin + residency->p->step_ns[s];
    }
    return stall;
}

/* ---- as early as there is room ---- */

typedef struct issue {
    mpl_residency *residency;
    const mpl_timed *all; /* [n] by their latest beginnings: evictions first, then by need */
    uint32_t n, n_out;
    mpl_timed *out;
    int64_t *load; /* [n_steps] [byte] */
    int64_t capacity;
    uint8_t *issued; /* [n] */
    uint64_t now, channel;
} issue;

static void append(issue *self, uint32_t k, uint32_t step)
{
    mpl_timed m = self->all[k];

    m.from = step;
    self->channel = take_channel(self->residency, &m, self->now, self->channel);
    self->out[self->n_out++] = m;
    self->issued[k] = 1;
}

static bool takes(issue *self, uint32_t from, uint32_t to, int64_t size)
{
    for (uint32_t s = from; s < to; s++)
        if (self->load[s] + size > self->capacity)
            return false;
    for (uint32_t s = from; s < to; s++)
        self->load[s] += size;
    return true;
}

/* Before a step: evictions that may begin, then what comes, while there is room. */
static void issue_step(issue *self, uint32_t s)
{
    const mpl_residency_problem *p = self->residency->p;

    for (uint32_t k = 0; k < self->n; k++)
        if (!self->all[k].to_fast && !self->issued[k] && self->all[k].from <= s)
            append(self, k, s);
    for (uint32_t k = 0; k < self->n; k++) {
        const mpl_timed *timed = &self->all[k];

        if (!timed->to_fast || self->issued[k] || p->at[timed->use - 1] >= s)
            continue;
        if (!takes(self, s, timed->until,
                   (int64_t)self->residency->size[self->residency->owner[timed->use]]))
            break;
        append(self, k, s);
    }
}

/* When the step begins: what it needs has come, and what is being written has room, or is over. */
static uint64_t begin_step(issue *self, uint32_t s, uint32_t *closed)
{
    const mpl_residency_problem *p = self->residency->p;
    uint64_t begin = self->now;
    uint32_t last = *closed;

    for (uint32_t k = *closed; k < self->n_out; k++) {
        const mpl_timed *timed = &self->out[k];
        int64_t size = (int64_t)self->residency->size[self->residency->owner[timed->use]];

        if (timed->end_ns > begin &&
            (timed->to_fast ? timed->until > s
                            : p->at[timed->use + 1] > s && takes(self, s, s + 1, size)))
            continue;
        if (timed->end_ns > begin)
            begin = timed->end_ns, last = k + 1;
    }
    while (last < self->n_out && self->out[last].end_ns <= begin)
        last++;
    for (; *closed < last; ++*closed)
        if (!self->out[*closed].to_fast)
            self->out[*closed].until = s;
    return begin;
}

mpl_status mpl_residency_issue(mpl_residency *residency, const uint8_t *fast, const uint8_t *kept,
                               uint64_t capacity, uint32_t n, mpl_timed *move)
{
    mpl_status st = MPL_OK;
    const mpl_residency_problem *p = residency->p;
    issue v = {.residency = residency, .all = move, .n = n, .capacity = (int64_t)capacity};
    uint32_t closed = 0;

    MPL_TRY(mpl_new(residency->run->ctx, v.out, n));
    MPL_TRY(mpl_new(residency->run->ctx, v.issued, n));
    MPL_TRY(mpl_new(residency->run->ctx, v.load, p->n_steps));
    for (mpl_buffer b = 0; b < p->n; b++)
        mpl_residency_load(residency, b, fast, kept, 1, true, true, v.load);
    slow_times(residency, fast, residency->slow_ns);
    for (uint32_t s = 0; s < p->n_steps; s++) {
        if (residency->slow_ns[s] > 0)
            v.channel = mpl_max_u64(v.channel, v.now) + residency->slow_ns[s];
        issue_step(&v, s);
        v.now = begin_step(&v, s, &closed) + residency->slow_ns[s] + p->step_ns[s];
    }
    for (uint32_t k = closed; k < v.n_out; k++) /* written at leisure */
        if (!v.out[k].to_fast)
            v.out[k].until = p->at[v.out[k].use + 1];
    mpl_assert(v.n_out == n);
    memcpy(move, v.out, n * sizeof *move);
out:
    mpl_free_each(residency->run->ctx, v.out, v.issued, v.load);
    return st;
}

mpl_status mpl_timing_init(mpl_residency *residency, mpl_timing *out)
{
    MPL_PASS(mpl_new_each(residency->run->ctx, residency->n_uses, out->fast, out->kept));
    MPL_PASS(mpl_new(residency->run->ctx, out->place, residency->n_uses));
    return mpl_new(residency->run->ctx, out->move, 2 * (size_t)residency->n_uses);
}

void mpl_timing_fini(mpl_residency *residency, mpl_timing *timing)
{
    mpl_free_each(residency->run->ctx, timing->fast, timing->kept, timing->place, timing->move);
}

void mpl_timing_copy(const mpl_residency *residency, const mpl_timing *from, mpl_timing *to)
{
    memcpy(to->fast, from->fast, residency->n_uses);
    memcpy(to->kept, from->kept, residency->n_uses);
    memcpy(to->place, from->place, residency->n_uses * sizeof *to->place);
    memcpy(to->move, from->move, from->n * sizeof *to->move);
    to->n = from->n;
    to->stall_ns = from->stall_ns;
}
