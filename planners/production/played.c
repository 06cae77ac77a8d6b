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
static mpl_buffer partner(player *s, mpl_buffer b)
{
    const mpl_problem *p = s->p;
    mpl_buffer found = MPL_NONE;

    for (; s->pair < p->n_in_place; s->pair++) {
        mpl_buffer in = p->in_place_in[s->pair], to = p->in_place_out[s->pair];
        uint32_t step = p->in_place_step[s->pair];

        if (step > p->birth[b] || (step == p->birth[b] && to > b))
            break;
        if (to == b && found == MPL_NONE && !s->handed_on[in] && p->bytes[in] == p->bytes[b] &&
            p->pool[in] == p->pool[b] && s->out->offset[in] % p->align[b] == 0)
            found = in;
    }
    return found;
}

static mpl_status bear(player *s, mpl_buffer b)
{
    const mpl_problem *p = s->p;
    mpl_buffer in = s->in_place ? partner(s, b) : MPL_NONE;
    mpl_status st;

    s->run->ticks++;
    if (in != MPL_NONE) {
        s->handed_on[in] = 1;
        s->block[b] = s->block[in];
        s->out->offset[b] = s->out->offset[in];
        return MPL_OK;
    }
    st = mpl_online_take(s->online[p->pool[b]], p->bytes[b], p->align[b], &s->block[b],
                         &s->out->offset[b]);
    if (st == MPL_ELIMIT)
        return MPL_REFUSE(s->run->ctx, "the buffers of pool '%.100s' need more than 2^63 bytes",
                          p->pool_name[p->pool[b]]);
    return st;
}

static mpl_status bury(player *s, mpl_buffer b)
{
    if (s->handed_on[b])
        return MPL_OK;
    return mpl_online_give_back(s->online[s->p->pool[b]], s->block[b]);
}

static mpl_status play(player *s)
{
    const mpl_problem *p = s->p;
    uint32_t dead = 0;

    for (uint32_t i = 0; i < p->n; i++) {
        mpl_buffer b = s->by_birth[i];

        for (; p->death[s->by_death[dead]] <= p->birth[b]; dead++)
            MPL_PASS(bury(s, s->by_death[dead]));
        MPL_PASS(bear(s, b));
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
