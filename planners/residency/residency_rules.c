/* residency_rules.c -- residency by simple rules, to compare with. See residency.h.
 *
 * Source   furthest next use: Belady, A study of replacement algorithms for a virtual-storage
 *          computer, IBM Systems Journal 5 (2), 1966; by density: what XLA's memory space
 *          assignment does (buffers by what their uses gain, each in fast memory whole or from use
 *          to use, with moves between)
 * Differs  Buffers have sizes: as many leave as it takes. The operands of a step are in fast
 *          memory wherever they fit. */
#include "planners/place/sort.h"
#include "planners/residency/residency_priv.h"

void mpl_residency_operands(const mpl_residency *residency, uint64_t capacity, uint8_t *fast)
{
    memset(fast, 0, residency->n_uses);
    for (uint32_t s = 0; s < residency->p->n_steps; s++)
        for (uint64_t left = capacity;;) {
            uint32_t best = MPL_NONE;

            for (uint32_t k = residency->step_begin[s]; k < residency->step_begin[s + 1]; k++) {
                uint32_t i = residency->step_use[k];

                if (!fast[i] && residency->size[residency->owner[i]] <= left &&
                    (best == MPL_NONE || residency->size[residency->owner[i]] >
                                             residency->size[residency->owner[best]]))
                    best = i;
            }
            if (best == MPL_NONE)
                break;
            fast[best] = 1;
            left -= residency->size[residency->owner[best]];
        }
}

/* A sweep over the steps. */
typedef struct sweep {
    mpl_residency *residency;
    uint8_t *fast, *kept;
    uint32_t *last; /* [n] last use so far, of buffers in fast memory; MPL_NONE: not there */
    uint64_t used;  /* of fast memory [byte] */
} sweep;

/* The buffer in fast memory, of no use at this step, whose next use is furthest. */
static mpl_buffer furthest(const sweep *self, uint32_t step)
{
    const mpl_residency_problem *p = self->residency->p;
    mpl_buffer best = MPL_NONE;

    for (mpl_buffer b = 0; b < p->n; b++)
        if (self->last[b] != MPL_NONE && p->at[self->last[b] + 1] != step &&
            (best == MPL_NONE || p->at[self->last[b] + 1] > p->at[self->last[best] + 1] ||
             (p->at[self->last[b] + 1] == p->at[self->last[best] + 1] &&
              self->residency->size[b] > self->residency->size[best])))
            best = b;
    return best;
}

static void leave(sweep *self, mpl_buffer b)
{
    self->kept[self->last[b]] = 0;
    self->last[b] = MPL_NONE;
    self->used -= self->residency->size[b];
}

/* Operands come where they are not yet, after others have left for them. */
static void sweep_step(sweep *self, uint32_t step)
{
    const mpl_residency_problem *p = self->residency->p;
    const uint32_t *begin = self->residency->step_begin, *item = self->residency->step_use;
    uint64_t coming = 0;

    for (uint32_t k = begin[step]; k < begin[step + 1]; k++) {
        mpl_buffer b = self->residency->owner[item[k]];

        if (self->last[b] != MPL_NONE && !self->fast[item[k]])
            leave(self, b);
        coming += self->fast[item[k]] && self->last[b] == MPL_NONE ? self->residency->size[b] : 0;
    }
    while (self->used + coming > self->residency->capacity)
        leave(self, furthest(self, step));
    self->used += coming;
    for (uint32_t k = begin[step]; k < begin[step + 1]; k++) {
        uint32_t i = item[k];
        mpl_buffer b = self->residency->owner[i];
        bool stays = self->fast[i] && i + 1 < p->begin[b + 1];

        self->kept[i] = stays;
        self->last[b] = stays ? i : MPL_NONE;
        self->used -= self->fast[i] && !stays ? self->residency->size[b] : 0;
    }
}

mpl_status mpl_residency_belady_ways(mpl_residency *residency, uint8_t *fast, uint8_t *kept)
{
    const mpl_residency_problem *p = residency->p;
    sweep v = {.residency = residency, .fast = fast, .kept = kept};

    MPL_PASS(mpl_new(residency->run->ctx, v.last, p->n));
    memset(v.last, 0xff, p->n * sizeof *v.last);
    mpl_residency_operands(residency, residency->capacity, fast);
    for (uint32_t s = 0; s < p->n_steps; s++)
        sweep_step(&v, s);
    mpl_free(residency->run->ctx, v.last);
    return MPL_OK;
}

/* ---- by density ---- */

/* Whether the stays of uses [begin, end) fit as they are, which takes their room. */
static bool take_stays(const mpl_residency *residency, uint32_t begin, uint32_t end,
                       const uint8_t *fast, int64_t *room, uint8_t *kept)
{
    int64_t size = (int64_t)residency->size[residency->owner[begin]];

    for (uint32_t i = begin; i < end; i++)
        for (uint32_t s = residency->p->at[i] + 1; s < residency->p->at[i + 1]; s++)
            if (room[s] < size)
                return false;
    for (uint32_t i = begin; i < end; i++)
        if (!fast[i] || !fast[i + 1])
            return false;
    for (uint32_t i = begin; i < end; i++) {
        kept[i] = 1;
        for (uint32_t s = residency->p->at[i] + 1; s < residency->p->at[i + 1]; s++)
            room[s] -= size;
    }
    return true;
}

/* The buffers, most uses for their steps first. */
static mpl_status dense_first(const mpl_residency *residency, mpl_buffer *order)
{
    mpl_status st = MPL_OK;
    const mpl_residency_problem *p = residency->p;
    uint64_t *key = NULL;

    MPL_TRY(mpl_new(residency->run->ctx, key, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = ((uint64_t)(p->at[p->begin[b + 1] - 1] - p->at[p->begin[b]] + 1) << 24) /
                 (p->begin[b + 1] - p->begin[b]);
    mpl_ids_ascending(p->n, order);
    MPL_TRY(mpl_sort_ids(residency->run->ctx, p->n, order, key));
out:
    mpl_free(residency->run->ctx, key);
    return st;
}

mpl_status mpl_residency_greedy_ways(mpl_residency *residency, uint8_t *fast, uint8_t *kept)
{
    mpl_status st = MPL_OK;
    const mpl_residency_problem *p = residency->p;
    int64_t *room = NULL;
    mpl_buffer *order = NULL;

    MPL_TRY(mpl_new(residency->run->ctx, room, p->n_steps));
    MPL_TRY(mpl_new(residency->run->ctx, order, p->n));
    mpl_residency_operands(residency, residency->capacity, fast);
    memset(kept, 0, residency->n_uses);
    for (uint32_t s = 0; s < p->n_steps; s++)
        room[s] = (int64_t)residency->capacity;
    for (mpl_buffer b = 0; b < p->n; b++)
        mpl_residency_load(residency, b, fast, kept, -1, true, false, room);
    MPL_TRY(dense_first(residency, order));
    for (uint32_t k = 0; k < p->n; k++) {
        uint32_t begin = p->begin[order[k]], end = p->begin[order[k] + 1] - 1;

        if (begin < end && !take_stays(residency, begin, end, fast, room, kept))
            for (uint32_t i = begin; i < end; i++)
                (void)take_stays(residency, i, i + 1, fast, room, kept);
    }
out:
    mpl_free_each(residency->run->ctx, room, order);
    return st;
}

/* ---- what they cost ---- */

/* The stall of ways whose moves begin as early as room allows, wherever offsets would be. */
static mpl_status stall_of(mpl_residency *residency, const uint8_t *fast, const uint8_t *kept,
                           uint64_t *stall_ns)
{
    mpl_status st = MPL_OK;
    mpl_timed *move = NULL;
    uint32_t n;

    MPL_TRY(mpl_new(residency->run->ctx, residency->slow_ns, residency->p->n_steps));
    MPL_TRY(mpl_new(residency->run->ctx, move, 2 * (size_t)residency->n_uses));
    n = mpl_residency_moves(residency, fast, kept, move);
    MPL_TRY(mpl_residency_issue(residency, fast, kept, residency->capacity, n, move));
    *stall_ns = mpl_residency_time(residency, fast, n, move);
out:
    mpl_free(residency->run->ctx, move);
    return st;
}

static mpl_status by_rule(mpl_ctx *ctx, const mpl_residency_problem *p,
                          mpl_status (*rule)(mpl_residency *, uint8_t *, uint8_t *), uint64_t *cost,
                          uint64_t *stall_ns)
{
    mpl_status st = MPL_OK;
    mpl_run run = mpl_run_default(ctx);
    mpl_residency r = {.run = &run};
    uint8_t *fast = NULL, *kept = NULL;

    MPL_TRY(mpl_residency_init(&run, p, &r));
    MPL_TRY(mpl_new_each(ctx, r.n_uses, fast, kept));
    MPL_TRY(rule(&r, fast, kept));
    *cost = mpl_residency_total(&r, fast, kept);
    if (p->bandwidth > 0 && stall_ns != NULL)
        MPL_TRY(stall_of(&r, fast, kept, stall_ns));
out:
    mpl_free_each(ctx, fast, kept);
    mpl_residency_fini(&r);
    return st;
}

mpl_status mpl_residency_belady(mpl_ctx *ctx, const mpl_residency_problem *p, uint64_t *cost,
                                uint64_t *stall_ns)
{
    return by_rule(ctx, p, mpl_residency_belady_ways, cost, stall_ns);
}

mpl_status mpl_residency_greedy(mpl_ctx *ctx, const mpl_residency_problem *p, uint64_t *cost,
                                uint64_t *stall_ns)
{
    return by_rule(ctx, p, mpl_residency_greedy_ways, cost, stall_ns);
}
