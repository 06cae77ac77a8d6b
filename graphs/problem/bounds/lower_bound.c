/* lower_bound.c -- the bound of either safety with its witness. See bounds.h. */
#include "graphs/problem/before.h"
#include "graphs/problem/bounds/bounds.h"

/* Removes the outputs of in-place pairs of `step` from member[]: each lies on an input that is
 * counted. */
static void drop_outputs(const mpl_problem *p, uint32_t step, uint8_t *member)
{
    for (uint32_t i = 0; i < p->n_in_place; i++)
        if (p->in_place_step[i] == step)
            member[p->in_place_out[i]] = 0;
}

/* Bytes that member[] proves: slots of the least alignment, minus the largest rest. */
static uint64_t proved_bytes(const mpl_problem *p, uint32_t pool, const uint8_t *member)
{
    uint64_t grain = mpl_pool_grain(p, pool), sum = 0, rest = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        if (member[b]) {
            uint64_t slots = mpl_align_up(p->bytes[b], grain);

            sum += slots;
            rest = mpl_max_u64(rest, slots - p->bytes[b]);
        }
    return sum - rest;
}

/* The least possible end of a pool at or above `bytes`: a buffer's end, whose offset is a multiple
 * of its alignment. */
static uint64_t next_end(const mpl_problem *p, uint32_t pool, uint64_t bytes)
{
    uint64_t least = UINT64_MAX;

    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == pool) {
            uint64_t above = bytes > p->bytes[b] ? bytes - p->bytes[b] : 0;

            least = mpl_min_u64(least, p->bytes[b] + mpl_align_up(above, p->align[b]));
        }
    return least < UINT64_MAX ? least : bytes;
}

mpl_status mpl_witness_bound(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *bytes,
                             uint8_t *member)
{
    mpl_status st = MPL_OK;
    uint8_t *own = NULL;
    uint32_t step;

    if (p->before != NULL)
        return mpl_antichain(ctx, p, pool, bytes, member);
    MPL_TRY(mpl_peak_live(ctx, p, pool, bytes, NULL, &step));
    if (member == NULL) /* the set may prove more than the live bytes */
        MPL_TRY(mpl_new(ctx, own, p->n));
    member = member != NULL ? member : own;
    for (mpl_buffer b = 0; b < p->n; b++)
        member[b] = p->pool[b] == pool && mpl_needed_at(p, b, step);
    drop_outputs(p, step, member);
    if (proved_bytes(p, pool, member) < *bytes)
        memset(member, 0, p->n * sizeof *member);
    else
        *bytes = proved_bytes(p, pool, member); /* the largest rest may have been dropped */
out:
    mpl_free(ctx, own);
    return st;
}

mpl_status mpl_lower_bound(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, uint64_t *bytes,
                           uint8_t *member)
{
    MPL_PASS(mpl_witness_bound(ctx, p, pool, bytes, member));
    *bytes = next_end(p, pool, *bytes);
    return MPL_OK;
}
