/* production.c -- sizes, orders and whole objects. See production.h. */
#include "planners/production/production.h"
#include "planners/place/sort.h"

uint64_t mpl_key_larger(const mpl_problem *p, mpl_buffer b)
{
    return UINT64_MAX - p->bytes[b];
}

uint64_t mpl_key_longer(const mpl_problem *p, mpl_buffer b)
{
    return UINT64_MAX - (p->death[b] - p->birth[b]);
}

uint64_t mpl_key_later(const mpl_problem *p, mpl_buffer b)
{
    return p->n - b;
}

mpl_status mpl_production_order(mpl_ctx *ctx, const mpl_problem *p, mpl_production_key *first,
                                mpl_production_key *second, mpl_buffer *order)
{
    mpl_status st = MPL_OK;
    uint64_t *key = NULL;

    MPL_TRY(mpl_new(ctx, key, p->n));
    mpl_ids_ascending(p->n, order);
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = second(p, b);
    MPL_TRY(mpl_sort_ids(ctx, p->n, order, key));
    for (mpl_buffer b = 0; b < p->n; b++)
        key[b] = first(p, b);
    MPL_TRY(mpl_sort_ids(ctx, p->n, order, key));
out:
    mpl_free(ctx, key);
    return st;
}

mpl_status mpl_production_place(mpl_run *run, const mpl_problem *p, const mpl_buffer *order,
                                mpl_fit fit, mpl_plan *out)
{
    mpl_problem plain = *p; /* a shallow copy: it owns nothing */

    plain.n_in_place = 0;
    return mpl_place_all(run, &plain, order, fit, out);
}

mpl_status mpl_production_units(mpl_ctx *ctx, const mpl_problem *p, uint64_t *unit)
{
    mpl_status st = MPL_OK;
    uint64_t *sum = NULL;

    MPL_TRY(mpl_new(ctx, sum, p->n_pools));
    for (uint32_t pool = 0; pool < p->n_pools; pool++)
        unit[pool] = 1;
    for (mpl_buffer b = 0; b < p->n; b++)
        unit[p->pool[b]] = mpl_max_u64(unit[p->pool[b]], p->align[b]);
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint32_t pool = p->pool[b];
        uint64_t most = UINT64_C(1) << 61;

        if (p->bytes[b] > most - sum[pool] ||
            mpl_align_up(p->bytes[b], unit[pool]) > most - sum[pool])
            MPL_FAIL(ctx, MPL_EINPUT,
                     "the buffers of pool '%.100s' together have more than 2^61 bytes",
                     p->pool_name[pool]);
        sum[pool] += mpl_align_up(p->bytes[b], unit[pool]);
    }
out:
    mpl_free(ctx, sum);
    return st;
}

/* ---- objects ---- */

mpl_status mpl_objects_new(mpl_ctx *ctx, const mpl_problem *p, mpl_objects *out)
{
    mpl_status st = MPL_OK;
    mpl_objects o = {.p = p};

    MPL_TRY(mpl_new_each(ctx, p->n_pools, o.unit, o.top));
    MPL_TRY(mpl_new_each(ctx, p->n, o.bytes, o.pool, o.begin, o.end, o.newest, o.older));
    MPL_TRY(mpl_new_each(ctx, p->n, o.object, o.taken));
    MPL_TRY(mpl_production_units(ctx, p, o.unit));
    for (mpl_buffer b = 0; b < p->n; b++)
        o.bytes[b] = mpl_align_up(p->bytes[b], o.unit[p->pool[b]]);
    *out = o;
    memset(&o, 0, sizeof o);
out:
    mpl_objects_fini(ctx, &o);
    return st;
}

void mpl_objects_fini(mpl_ctx *ctx, mpl_objects *objects)
{
    mpl_free_each(ctx, objects->unit, objects->top, objects->bytes, objects->pool, objects->begin,
                  objects->end);
    mpl_free_each(ctx, objects->newest, objects->older, objects->object, objects->taken);
}

uint32_t mpl_objects_open(mpl_objects *objects, mpl_buffer b)
{
    uint32_t id = objects->n++, pool = objects->p->pool[b];

    objects->pool[id] = pool;
    objects->begin[id] = objects->top[pool];
    objects->end[id] = objects->top[pool] += objects->bytes[b];
    objects->newest[id] = MPL_NONE;
    return id;
}

void mpl_objects_put(mpl_objects *objects, mpl_buffer b, uint32_t object, uint64_t at,
                     uint64_t *offset)
{
    objects->older[b] = objects->newest[object];
    objects->newest[object] = b;
    objects->object[b] = object;
    offset[b] = at;
}
