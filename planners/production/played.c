/* played.c -- an allocator's offsets for the allocations and releases of a problem. See
 * production.h.
 */
#include "planners/place/sort.h"
#include "planners/production/production.h"

typedef struct player {
    mpl_run *run;
    const mpl_problem *p;
    mpl_plan *out;
    mpl_online **online;  /* [n_pools] */
    mpl_buffer *by_birth; /* [n] */
    mpl_buffer *by_death; /* [n] */
    uint32_t *block;      /* [n] of the pool's allocator */
    uint8_t *handed_on;   /* [n] an output took over its block */
    uint32_t pair;        /* the first in-place pair not yet passed */
    bool in_place;
} player;

/* The dying input whose block b takes over, or MPL_NONE. Pairs are sorted as births are played. */
static mpl_buffer partner(player *self, mpl_buffer b)
{
    const mpl_problem *p = self->p;
    mpl_buffer found = MPL_NONE;

    for (; self->pair < p->n_in_place; self->pair++) {
        mpl_buffer in = p->in_place_in[self->pair], to = p->in_place_out[self->pair];
        uint32_t step = p->in_place_step[self->pair];

        if (step > p->birth[b] || (step == p->birth[b] && to > b))
            break;
        if (to == b && found == MPL_NONE && !self->handed_on[in] && p->bytes[in] == p->bytes[b] &&
            p->pool[in] == p->pool[b] && self->out->offset[in] % p->align[b] == 0)
            found = in;
    }
    return found;
}

static mpl_status bear(player *self, mpl_buffer b)
{
    const mpl_problem *p = self->p;
    mpl_buffer in = self->in_place ? partner(self, b) : MPL_NONE;
    mpl_status st;

    self->run->ticks++;
    if (in != MPL_NONE) {
        self->handed_on[in] = 1;
        self->block[b] = self->block[in];
        self->out->offset[b] = self->out->offset[in];
        return MPL_OK;
    }
    st = mpl_online_take(self->online[p->pool[b]], p->bytes[b], p->align[b], &self->block[b],
                         &self->out->offset[b]);
    if (st == MPL_ELIMIT)
        return MPL_REFUSE(self->run->ctx, "the buffers of pool '%.100s' need more than 2^63 bytes",
                          p->pool_name[p->pool[b]]);
    return st;
}

static mpl_status bury(player *self, mpl_buffer b)
{
    if (self->handed_on[b])
        return MPL_OK;
    return mpl_online_give_back(self->online[self->p->pool[b]], self->block[b]);
}

static mpl_status play(player *self)
{
    const mpl_problem *p = self->p;
    uint32_t dead = 0;

    for (uint32_t i = 0; i < p->n; i++) {
        mpl_buffer b = self->by_birth[i];

        for (; p->death[self->by_death[dead]] <= p->birth[b]; dead++)
            MPL_PASS(bury(self, self->by_death[dead]));
        MPL_PASS(bear(self, b));
    }
    return MPL_OK;
}

static uint64_t birth_of(const mpl_problem *p, mpl_buffer b)
{
    return p->birth[b];
}

static uint64_t death_of(const mpl_problem *p, mpl_buffer b)
{
    return p->death[b];
}

mpl_status mpl_production_play(mpl_run *run, const mpl_problem *p, const mpl_allocator *kind,
                               bool in_place, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    player s = {.run = run, .p = p, .out = out, .in_place = in_place};
    uint64_t *unit = NULL;

    MPL_TRY(mpl_new_each(run->ctx, p->n_pools, s.online, unit));
    MPL_TRY(mpl_new_each(run->ctx, p->n, s.by_birth, s.by_death, s.block, s.handed_on));
    MPL_TRY(mpl_production_units(run->ctx, p, unit));
    for (uint32_t pool = 0; pool < p->n_pools; pool++)
        MPL_TRY(mpl_online_new(run->ctx, kind, UINT64_MAX, &s.online[pool]));
    MPL_TRY(mpl_production_order(run->ctx, p, birth_of, birth_of, s.by_birth));
    MPL_TRY(mpl_production_order(run->ctx, p, death_of, death_of, s.by_death));
    MPL_TRY(play(&s));
    out->claim = MPL_FEASIBLE;
out:
    for (uint32_t pool = 0; s.online != NULL && pool < p->n_pools; pool++)
        mpl_online_free(run->ctx, s.online[pool]);
    mpl_free_each(run->ctx, unit, s.online, s.by_birth, s.by_death, s.block, s.handed_on);
    return st;
}
