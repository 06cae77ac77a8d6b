/* placement.c -- order of placement, fixed offsets, in-place partners, pools. See placement.h. */
#include "planners/place/placement.h"
#include "planners/place/sort.h"

static bool is_fixed(const mpl_problem *p, mpl_buffer b)
{
    return p->fixed != NULL && p->fixed[b] != MPL_UNFIXED;
}

/* ---- one buffer ---- */

/* The partner to join instead of taking the gap, or MPL_NONE. */
static mpl_buffer choose_partner(mpl_placement *placement, mpl_buffer b, mpl_gap gap)
{
    const mpl_problem *p = placement->p;
    mpl_buffer chosen = MPL_NONE;

    for (uint32_t i = placement->partner_begin[b]; i < placement->partner_begin[b + 1]; i++) {
        mpl_buffer q = placement->partner[i];
        uint64_t at = placement->offset[q];
        uint64_t spare =
            p->bytes[q] > p->bytes[b] ? p->bytes[q] - p->bytes[b] : p->bytes[b] - p->bytes[q];
        bool better = placement->fit == MPL_FIT_LOWEST ? at <= gap.offset : spare <= gap.spare;

        if (!placement->placed[q] || at % p->align[b] != 0 || !better ||
            (chosen != MPL_NONE && at >= placement->offset[chosen]))
            continue;
        if (placement->kind->may_join(placement, b, q))
            chosen = q;
    }
    return chosen;
}

static mpl_status place(mpl_placement *placement, mpl_buffer b)
{
    mpl_gap gap = {0, UINT64_MAX};
    mpl_buffer joined = MPL_NONE;

    MPL_PASS(placement->kind->find(placement, b, &gap));
    if (placement->partner_begin != NULL)
        joined = choose_partner(placement, b, gap);
    placement->offset[b] = joined != MPL_NONE ? placement->offset[joined] : gap.offset;
    placement->placed[b] = 1;
    return placement->kind->insert(placement, b, joined);
}

/* ---- one pool ---- */

/* Offsets stay below the highest fixed end plus all bytes and alignments; checks that this fits. */
static mpl_status check_sum(const mpl_placement *placement)
{
    const mpl_problem *p = placement->p;
    uint64_t sum = 0, fixed_end = 0;

    for (uint32_t i = 0; i < placement->n_members; i++) {
        mpl_buffer b = placement->member[i];
        uint64_t end = 0;
        bool fits = !is_fixed(p, b) || mpl_add_bytes(p->fixed[b], p->bytes[b], &end);

        fixed_end = mpl_max_u64(fixed_end, end);
        fits = fits && mpl_add_bytes(sum, p->bytes[b], &sum) &&
               mpl_add_bytes(sum, p->align[b] + placement->grain, &sum);
        fits = fits && (p->inside == NULL || mpl_add_bytes(sum, p->inside_at[b], &sum));
        if (!fits || sum > INT64_MAX || fixed_end > INT64_MAX - sum)
            return MPL_REFUSE(placement->run->ctx,
                              "the buffers of pool '%.100s' together have more than 2^63 bytes",
                              p->pool_name[p->pool[b]]);
    }
    return MPL_OK;
}

static const mpl_space_kind *choose_space(const mpl_placement *placement)
{
    const mpl_problem *p = placement->p;

    if (p->before != NULL || p->gap_begin != NULL || p->inside != NULL)
        return &mpl_space_rows;
    for (uint32_t i = 0; i < placement->n_members; i++)
        if (is_fixed(p, placement->member[i]) ||
            (i > 0 && p->birth[placement->member[i]] < p->birth[placement->member[i - 1]]))
            return &mpl_space_timeline;
    return &mpl_space_sweep;
}

static mpl_status fill_pool(mpl_placement *placement)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = placement->p;

    placement->grain = UINT64_C(1) << 31;
    for (uint32_t i = 0; i < placement->n_members; i++) {
        placement->grain = mpl_min_u64(placement->grain, p->align[placement->member[i]]);
        placement->slot[placement->member[i]] = i;
    }
    placement->kind = choose_space(placement);
    MPL_TRY(check_sum(placement));
    MPL_TRY(placement->kind->open(placement));
    for (uint32_t i = 0; i < placement->n_members; i++) {
        mpl_buffer b = placement->member[i];

        if (!is_fixed(p, b))
            continue;
        placement->offset[b] = p->fixed[b];
        placement->placed[b] = 1;
        MPL_TRY(placement->kind->insert(placement, b, MPL_NONE));
    }
    for (uint32_t i = 0; i < placement->n_members; i++) {
        mpl_buffer b = placement->member[i], first = p->inside != NULL ? p->inside[b] : b;

        if (placement->placed[b])
            continue;
        MPL_TRY(p->inside != NULL &&
                        placement->family.begin[first + 1] - placement->family.begin[first] > 1
                    ? mpl_placement_family(placement, first)
                    : place(placement, b));
    }
out:
    placement->kind->close(placement);
    return st;
}

/* ---- all pools ---- */

static mpl_status index_partners(mpl_ctx *ctx, mpl_placement *placement)
{
    const mpl_problem *p = placement->p;
    uint32_t *begin;

    if (p->n_in_place == 0)
        return MPL_OK;
    MPL_PASS(mpl_new(ctx, placement->partner_begin, (size_t)p->n + 2));
    MPL_PASS(mpl_new(ctx, placement->partner, 2 * (size_t)p->n_in_place));
    begin = placement->partner_begin;
    for (uint32_t i = 0; i < p->n_in_place; i++) {
        begin[p->in_place_in[i] + 2]++;
        begin[p->in_place_out[i] + 2]++;
    }
    mpl_lists_begin(begin, p->n);
    for (uint32_t i = 0; i < p->n_in_place; i++) {
        placement->partner[begin[p->in_place_in[i] + 1]++] = p->in_place_out[i];
        placement->partner[begin[p->in_place_out[i] + 1]++] = p->in_place_in[i];
    }
    return MPL_OK;
}

mpl_status mpl_place_all(mpl_run *run, const mpl_problem *p, const mpl_buffer *order, mpl_fit fit,
                         mpl_plan *out)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = run->ctx;
    mpl_placement s = {.run = run, .p = p, .fit = fit, .offset = out->offset};
    mpl_buffer *id = NULL;
    uint64_t *key = NULL;

    MPL_TRY(mpl_new_each(ctx, p->n, id, s.placed, s.slot));
    MPL_TRY(index_partners(ctx, &s));
    if (p->inside != NULL)
        MPL_TRY(mpl_families_new(ctx, p, &s.family));
    memcpy(id, order, p->n * sizeof *id);
    if (p->n_pools > 1) {
        MPL_TRY(mpl_new(ctx, key, p->n));
        for (mpl_buffer b = 0; b < p->n; b++)
            key[b] = p->pool[b];
        MPL_TRY(mpl_sort_ids(ctx, p->n, id, key));
    }
    for (uint32_t i = 0, end; i < p->n; i = end) {
        for (end = i; end < p->n && p->pool[id[end]] == p->pool[id[i]];)
            end++;
        s.member = id + i;
        s.n_members = end - i;
        MPL_TRY(fill_pool(&s));
    }
    out->claim = MPL_FEASIBLE;
out:
    mpl_free_each(ctx, id, key, s.placed, s.slot, s.partner_begin, s.partner);
    mpl_families_free(ctx, &s.family);
    return st;
}
