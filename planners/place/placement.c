/* placement.c -- order of placement, fixed offsets, in-place partners, pools. See placement.h. */
#include "planners/place/placement.h"
#include "planners/place/sort.h"

static bool is_fixed(const mpl_problem *p, mpl_buffer b)
{
    return p->fixed != NULL && p->fixed[b] != MPL_UNFIXED;
}

/* ---- one buffer ---- */

/* The partner to join instead of taking the gap, or MPL_NONE. */
static mpl_buffer choose_partner(mpl_placement *s, mpl_buffer b, mpl_gap gap)
{
    const mpl_problem *p = s->p;
    mpl_buffer chosen = MPL_NONE;

    for (uint32_t i = s->partner_begin[b]; i < s->partner_begin[b + 1]; i++) {
        mpl_buffer q = s->partner[i];
        uint64_t at = s->offset[q];
        uint64_t spare =
            p->bytes[q] > p->bytes[b] ? p->bytes[q] - p->bytes[b] : p->bytes[b] - p->bytes[q];
        bool better = s->fit == MPL_FIT_LOWEST ? at <= gap.offset : spare <= gap.spare;

        if (!s->placed[q] || at % p->align[b] != 0 || !better ||
            (chosen != MPL_NONE && at >= s->offset[chosen]))
            continue;
        if (s->kind->may_join(s, b, q))
            chosen = q;
    }
    return chosen;
}

static mpl_status place(mpl_placement *s, mpl_buffer b)
{
    mpl_gap gap = {0, UINT64_MAX};
    mpl_buffer joined = MPL_NONE;

    MPL_PASS(s->kind->find(s, b, &gap));
    if (s->partner_begin != NULL)
        joined = choose_partner(s, b, gap);
    s->offset[b] = joined != MPL_NONE ? s->offset[joined] : gap.offset;
    s->placed[b] = 1;
    return s->kind->insert(s, b, joined);
}

/* ---- one pool ---- */

/* Offsets stay below the highest fixed end plus all bytes and alignments; checks that this fits. */
static mpl_status check_sum(const mpl_placement *s)
{
    const mpl_problem *p = s->p;
    uint64_t sum = 0, fixed_end = 0;

    for (uint32_t i = 0; i < s->n_members; i++) {
        mpl_buffer b = s->member[i];
        uint64_t end = 0;
        bool fits = !is_fixed(p, b) || mpl_add_bytes(p->fixed[b], p->bytes[b], &end);

        fixed_end = mpl_max_u64(fixed_end, end);
        fits = fits && mpl_add_bytes(sum, p->bytes[b], &sum) &&
               mpl_add_bytes(sum, p->align[b] + s->grain, &sum);
        fits = fits && (p->inside == NULL || mpl_add_bytes(sum, p->inside_at[b], &sum));
        if (!fits || sum > INT64_MAX || fixed_end > INT64_MAX - sum)
            return MPL_REFUSE(s->run->ctx,
                              "the buffers of pool '%.100s' together have more than 2^63 bytes",
                              p->pool_name[p->pool[b]]);
    }
    return MPL_OK;
}

static const mpl_space_kind *choose_space(const mpl_placement *s)
{
    const mpl_problem *p = s->p;

    if (p->before != NULL || p->gap_begin != NULL || p->inside != NULL)
        return &mpl_space_rows;
    for (uint32_t i = 0; i < s->n_members; i++)
        if (is_fixed(p, s->member[i]) ||
            (i > 0 && p->birth[s->member[i]] < p->birth[s->member[i - 1]]))
            return &mpl_space_timeline;
    return &mpl_space_sweep;
}

static mpl_status fill_pool(mpl_placement *s)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = s->p;

    s->grain = UINT64_C(1) << 31;
    for (uint32_t i = 0; i < s->n_members; i++) {
        s->grain = mpl_min_u64(s->grain, p->align[s->member[i]]);
        s->slot[s->member[i]] = i;
    }
    s->kind = choose_space(s);
    MPL_TRY(check_sum(s));
    MPL_TRY(s->kind->open(s));
    for (uint32_t i = 0; i < s->n_members; i++) {
        mpl_buffer b = s->member[i];

        if (!is_fixed(p, b))
            continue;
        s->offset[b] = p->fixed[b];
        s->placed[b] = 1;
        MPL_TRY(s->kind->insert(s, b, MPL_NONE));
    }
    for (uint32_t i = 0; i < s->n_members; i++) {
        mpl_buffer b = s->member[i], first = p->inside != NULL ? p->inside[b] : b;

        if (s->placed[b])
            continue;
        MPL_TRY(p->inside != NULL && s->family.begin[first + 1] - s->family.begin[first] > 1
                    ? mpl_placement_family(s, first)
                    : place(s, b));
    }
out:
    s->kind->close(s);
    return st;
}

/* ---- all pools ---- */

static mpl_status index_partners(mpl_ctx *ctx, mpl_placement *s)
{
    const mpl_problem *p = s->p;
    uint32_t *begin;

    if (p->n_in_place == 0)
        return MPL_OK;
    MPL_PASS(mpl_new(ctx, s->partner_begin, (size_t)p->n + 2));
    MPL_PASS(mpl_new(ctx, s->partner, 2 * (size_t)p->n_in_place));
    begin = s->partner_begin;
    for (uint32_t i = 0; i < p->n_in_place; i++) {
        begin[p->in_place_in[i] + 2]++;
        begin[p->in_place_out[i] + 2]++;
    }
    mpl_lists_begin(begin, p->n);
    for (uint32_t i = 0; i < p->n_in_place; i++) {
        s->partner[begin[p->in_place_in[i] + 1]++] = p->in_place_out[i];
        s->partner[begin[p->in_place_out[i] + 1]++] = p->in_place_in[i];
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
