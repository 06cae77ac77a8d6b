/* production.h -- what the planners of production systems share: sizes, orders, whole objects, and
 * allocators played step by step. Private to planners/production/. */
#pragma once

#include "planners/online/online.h"
#include "planners/place/placement.h"
#include "planners/planner.h"

/* Sorts all ids into order[n] by first(p, b), then second(p, b), both ascending, then by id. */
typedef uint64_t mpl_production_key(const mpl_problem *p, mpl_buffer b);
mpl_status mpl_production_order(mpl_ctx *ctx, const mpl_problem *p, mpl_production_key *first,
                                mpl_production_key *second, mpl_buffer *order);
uint64_t mpl_key_larger(const mpl_problem *p, mpl_buffer b); /* descending bytes */
uint64_t mpl_key_longer(const mpl_problem *p, mpl_buffer b); /* descending lifetimes */
uint64_t mpl_key_later(const mpl_problem *p, mpl_buffer b);  /* descending ids */

/* Places `order` as mpl_place_all does, without in-place pairs. */
mpl_status mpl_production_place(mpl_run *run, const mpl_problem *p, const mpl_buffer *order,
                                mpl_fit fit, mpl_plan *out);

/* The largest alignment of each pool, unit[n_pools] [byte]. MPL_EINPUT: the bytes of a pool,
 * rounded up to it, exceed 2^61, so that no sum of them can overflow. */
mpl_status mpl_production_units(mpl_ctx *ctx, const mpl_problem *p, uint64_t *unit);

/* ---- whole objects, which share memory over time ---- */

typedef struct mpl_objects {
    const mpl_problem *p;
    uint64_t *unit;  /* [n_pools] */
    uint64_t *bytes; /* [n] rounded up to the unit [byte] */
    uint32_t n;      /* objects */
    uint32_t *pool;  /* [n] of each object; this and the next three have room for p->n */
    uint64_t *begin; /* from the base of its pool [byte] */
    uint64_t *end;
    mpl_buffer *newest; /* of each object: the buffer placed last */
    mpl_buffer *older;  /* [p->n] the one placed before in the same object, or MPL_NONE */
    uint32_t *object;   /* [p->n] */
    uint64_t *top;      /* [n_pools] end of its last object [byte] */
    mpl_span *taken;    /* [p->n] scratch of the planner */
} mpl_objects;

mpl_status mpl_objects_new(mpl_ctx *ctx, const mpl_problem *p, mpl_objects *out);
void mpl_objects_fini(mpl_ctx *ctx, mpl_objects *objects);
/* A new object of b's size behind the others of its pool; its id. Does not put b there. */
uint32_t mpl_objects_open(mpl_objects *objects, mpl_buffer b);
/* Puts b into an object at offset[b] = at, from the base of its pool. */
void mpl_objects_put(mpl_objects *objects, mpl_buffer b, uint32_t object, uint64_t at,
                     uint64_t *offset);

/* ---- an allocator, played ---- */

/* The offsets that an allocator gives where each step allocates the buffers born at it, by id, then
 * frees those dead after it. in_place: an output takes over the block of its first partner of
 * equal size. Pools apart. */
mpl_status mpl_production_play(mpl_run *run, const mpl_problem *p, const mpl_allocator *kind,
                               bool in_place, mpl_plan *out);
