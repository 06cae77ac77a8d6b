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

uint32_t mpl_residency_moves(const mpl_residency *r, const uint8_t *fast, const uint8_t *kept,
                             mpl_timed *move)
{
    const mpl_residency_problem *p = r->p;
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
static void slow_times(const mpl_residency *r, const uint8_t *fast, uint64_t *slow_ns)
{
    memset(slow_ns, 0, r->p->n_steps * sizeof *slow_ns);
    for (uint32_t i = 0; i < r->n_uses; i++)
        if (!fast[i])
            slow_ns[r->p->at[i]] += mpl_residency_ns(r->p, r->p->bytes[r->owner[i]]);
}

static uint64_t take_channel(const mpl_residency *r, mpl_timed *m, uint64_t now, uint64_t channel)
{
    m->start_ns = mpl_max_u64(now, channel);
    m->end_ns = m->start_ns + mpl_residency_ns(r->p, r->p->bytes[r->owner[m->use]]);
    return m->end_ns;
}

uint64_t mpl_residency_time(mpl_residency *r, const uint8_t *fast, uint32_t n, mpl_timed *move)
{
    uint64_t *slow_ns = r->slow_ns, now = 0, channel = 0, stall = 0;
    uint32_t next = 0, over = 0; /* moves that have begun, and that were waited for */

    slow_times(r, fast, slow_ns);
    for (uint32_t k = n; k-- > 1;) /* one channel: what is behind it ends later */
        move[k - 1].until = move[k - 1].until < move[k].until ? move[k - 1].until : move[k].until;
    for (uint32_t s = 0; s < r->p->n_steps; s++) {
        uint64_t begin = now;

        for (; next < n && move[next].until <= s; next++)
            channel = take_channel(r, &move[next], now, channel);
        for (; over < next && move[over].until <= s; over++)
            begin = mpl_max_u64(begin, move[over].end_ns);
        if (slow_ns[s] > 0)
            begin = channel = mpl_max_u64(begin, channel) + slow_ns[s];
        for (; next < n && move[next].from <= s; next++)
            channel = take_channel(r, &move[next], now, channel);
        stall += begin - now;
        now = begin + r->p->step_ns[s];
    }
    return stall;
}

/* ---- as early as there is room ---- */

typedef struct issue {
    mpl_residency *r;
    const mpl_timed *all; /* [n] by their latest beginnings: evictions first, then by need */
    uint32_t n, n_out;
    mpl_timed *out;
    int64_t *load; /* [n_steps] [byte] */
    int64_t capacity;
    uint8_t *issued; /* [n] */
    uint64_t now, channel;
} issue;

static void append(issue *v, uint32_t k, uint32_t step)
{
    mpl_timed m = v->all[k];

    m.from = step;
    v->channel = take_channel(v->r, &m, v->now, v->channel);
    v->out[v->n_out++] = m;
    v->issued[k] = 1;
}

static bool takes(issue *v, uint32_t from, uint32_t to, int64_t size)
{
    for (uint32_t s = from; s < to; s++)
        if (v->load[s] + size > v->capacity)
            return false;
    for (uint32_t s = from; s < to; s++)
        v->load[s] += size;
    return true;
}

/* Before a step: evictions that may begin, then what comes, while there is room. */
static void issue_step(issue *v, uint32_t s)
{
    const mpl_residency_problem *p = v->r->p;

    for (uint32_t k = 0; k < v->n; k++)
        if (!v->all[k].to_fast && !v->issued[k] && v->all[k].from <= s)
            append(v, k, s);
    for (uint32_t k = 0; k < v->n; k++) {
        const mpl_timed *m = &v->all[k];

        if (!m->to_fast || v->issued[k] || p->at[m->use - 1] >= s)
            continue;
        if (!takes(v, s, m->until, (int64_t)v->r->size[v->r->owner[m->use]]))
            break;
        append(v, k, s);
    }
}

/* When the step begins: what it needs has come, and what is being written has room, or is over. */
static uint64_t begin_step(issue *v, uint32_t s, uint32_t *closed)
{
    const mpl_residency_problem *p = v->r->p;
    uint64_t begin = v->now;
    uint32_t last = *closed;

    for (uint32_t k = *closed; k < v->n_out; k++) {
        const mpl_timed *m = &v->out[k];
        int64_t size = (int64_t)v->r->size[v->r->owner[m->use]];

        if (m->end_ns > begin &&
            (m->to_fast ? m->until > s : p->at[m->use + 1] > s && takes(v, s, s + 1, size)))
            continue;
        if (m->end_ns > begin)
            begin = m->end_ns, last = k + 1;
    }
    while (last < v->n_out && v->out[last].end_ns <= begin)
        last++;
    for (; *closed < last; ++*closed)
        if (!v->out[*closed].to_fast)
            v->out[*closed].until = s;
    return begin;
}

mpl_status mpl_residency_issue(mpl_residency *r, const uint8_t *fast, const uint8_t *kept,
                               uint64_t capacity, uint32_t n, mpl_timed *move)
{
    mpl_status st = MPL_OK;
    const mpl_residency_problem *p = r->p;
    issue v = {.r = r, .all = move, .n = n, .capacity = (int64_t)capacity};
    uint32_t closed = 0;

    MPL_TRY(mpl_new(r->run->ctx, v.out, n));
    MPL_TRY(mpl_new(r->run->ctx, v.issued, n));
    MPL_TRY(mpl_new(r->run->ctx, v.load, p->n_steps));
    for (mpl_buffer b = 0; b < p->n; b++)
        mpl_residency_load(r, b, fast, kept, 1, true, true, v.load);
    slow_times(r, fast, r->slow_ns);
    for (uint32_t s = 0; s < p->n_steps; s++) {
        if (r->slow_ns[s] > 0)
            v.channel = mpl_max_u64(v.channel, v.now) + r->slow_ns[s];
        issue_step(&v, s);
        v.now = begin_step(&v, s, &closed) + r->slow_ns[s] + p->step_ns[s];
    }
    for (uint32_t k = closed; k < v.n_out; k++) /* written at leisure */
        if (!v.out[k].to_fast)
            v.out[k].until = p->at[v.out[k].use + 1];
    mpl_assert(v.n_out == n);
    memcpy(move, v.out, n * sizeof *move);
out:
    mpl_free_each(r->run->ctx, v.out, v.issued, v.load);
    return st;
}

mpl_status mpl_timing_init(mpl_residency *r, mpl_timing *out)
{
    MPL_PASS(mpl_new_each(r->run->ctx, r->n_uses, out->fast, out->kept));
    MPL_PASS(mpl_new(r->run->ctx, out->place, r->n_uses));
    return mpl_new(r->run->ctx, out->move, 2 * (size_t)r->n_uses);
}

void mpl_timing_fini(mpl_residency *r, mpl_timing *t)
{
    mpl_free_each(r->run->ctx, t->fast, t->kept, t->place, t->move);
}

void mpl_timing_copy(const mpl_residency *r, const mpl_timing *from, mpl_timing *to)
{
    memcpy(to->fast, from->fast, r->n_uses);
    memcpy(to->kept, from->kept, r->n_uses);
    memcpy(to->place, from->place, r->n_uses * sizeof *to->place);
    memcpy(to->move, from->move, from->n * sizeof *to->move);
    to->n = from->n;
    to->stall_ns = from->stall_ns;
}
