/* packing.c -- conflict lists, the placement of an order, and the frame of a search. See
 * packing.h. */
#include "planners/place/packing.h"
#include "graphs/problem/bounds/bounds.h"
#include "planners/place/placement.h"
#include "planners/place/sort.h"

#include <stdlib.h>

#define MAX_CONFLICTS (UINT64_C(1) << 24)

bool mpl_packing_done(mpl_packing *packing)
{
    if (packing->best <= packing->goal || packing->ticks >= packing->limit)
        return true;
    if (mpl_run_late(packing->run))
        packing->run->stopped_by_clock = true;
    return packing->run->stopped_by_clock;
}

void mpl_packing_offer(mpl_packing *packing, uint64_t height)
{
    if (height >= packing->best)
        return;
    packing->best = height;
    memcpy(packing->best_offset, packing->offset, packing->n * sizeof *packing->offset);
}

/* ---- placing ---- */

void mpl_packing_merge(mpl_packing *packing, uint32_t n)
{
    mpl_packing_entry *from = packing->entry, *to = packing->entry + n;

    for (uint32_t run = 1; run < n; run *= 2) {
        mpl_packing_entry *swap = from;

        for (uint32_t begin = 0; begin < n; begin += 2 * run) {
            uint32_t middle = n - begin > run ? begin + run : n,
                     end = n - middle > run ? middle + run : n;
            uint32_t a = begin, b = middle;

            for (uint32_t k = begin; k < end; k++)
                to[k] =
                    b == end || (a < middle && from[a].key <= from[b].key) ? from[a++] : from[b++];
        }
        from = to;
        to = swap;
        packing->ticks += n;
    }
    if (from != packing->entry)
        memcpy(packing->entry, from, n * sizeof *from);
}

static void sort_far(mpl_packing *packing, uint32_t member)
{
    uint32_t begin = packing->begin[member], n = packing->begin[member + 1] - begin;

    for (uint32_t k = 0; k < n; k++) {
        packing->entry[k].key = mpl_packing_low(packing, member, begin + k);
        packing->entry[k].rival = packing->rival[begin + k];
        if (packing->wall != NULL)
            packing->entry[k].wall = packing->wall[begin + k];
    }
    mpl_packing_merge(packing, n);
    for (uint32_t k = 0; k < n; k++) {
        packing->rival[begin + k] = packing->entry[k].rival;
        if (packing->wall != NULL)
            packing->wall[begin + k] = packing->entry[k].wall;
    }
}

/* Few offsets change between placements, so the lists are nearly sorted, except at first. */
void mpl_packing_sort(mpl_packing *packing, uint32_t member)
{
    uint32_t begin = packing->begin[member], end = packing->begin[member + 1];
    uint64_t far = MPL_PACKING_FAR * (uint64_t)(end - begin), moved = 0;

    for (uint32_t i = begin + 1; i < end; i++) {
        int64_t low = mpl_packing_low(packing, member, i);
        mpl_packing_wall wall =
            packing->wall != NULL ? packing->wall[i] : (mpl_packing_wall){0, 0, 0};
        uint32_t c = packing->rival[i], j = i;

        for (; j > begin && mpl_packing_low(packing, member, j - 1) > low; j--) {
            packing->rival[j] = packing->rival[j - 1];
            if (packing->wall != NULL)
                packing->wall[j] = packing->wall[j - 1];
        }
        packing->rival[j] = c;
        if (packing->wall != NULL)
            packing->wall[j] = wall;
        packing->ticks += i - j;
        moved += i - j;
        if (moved > far) {
            sort_far(packing, member);
            return;
        }
    }
    packing->ticks += end - begin;
}

static bool are_partners(const mpl_packing *packing, uint32_t a, uint32_t b)
{
    for (uint32_t i = packing->pair_begin[a]; i < packing->pair_begin[a + 1]; i++)
        if (packing->pair[i] == b)
            return true;
    return false;
}

bool mpl_packing_shares(const mpl_packing *packing, uint32_t b, uint32_t i, uint64_t at)
{
    uint32_t c = packing->rival[i];

    if (packing->wall != NULL)
        return packing->wall[i].same != INT64_MAX &&
               (int64_t)at == (int64_t)packing->offset[c] + packing->wall[i].same;
    return packing->offset[c] == at && packing->pair_begin != NULL && are_partners(packing, b, c);
}

bool mpl_packing_on_partner(const mpl_packing *packing, uint32_t b, uint32_t i, uint64_t *at)
{
    int64_t shift = packing->pair_at != NULL ? packing->pair_at[i] : 0,
            place = (int64_t)packing->offset[packing->pair[i]] + shift;

    *at = (uint64_t)place;
    return place >= 0 && (*at & (packing->align[b] - 1)) == 0;
}

bool mpl_packing_joins(mpl_packing *packing, uint32_t b, uint64_t at, const uint8_t *placed)
{
    for (uint32_t i = packing->begin[b]; i < packing->begin[b + 1]; i++) {
        uint32_t c = packing->rival[i];

        packing->ticks++;
        if ((placed != NULL ? placed[c] : packing->at[c] < packing->at[b]) &&
            mpl_packing_low(packing, b, i) < (int64_t)at &&
            (int64_t)at < mpl_packing_high(packing, i) && !mpl_packing_shares(packing, b, i, at))
            return false;
    }
    return true;
}

/* The lowest free offset of b among the members before it in the order. */
static uint64_t lowest_free(mpl_packing *packing, uint32_t b)
{
    uint64_t low = 0, mask = packing->align[b] - 1, at;
    uint32_t place = packing->at[b];

    mpl_packing_sort(packing, b);
    for (uint32_t i = packing->begin[b]; i < packing->begin[b + 1]; i++) {
        int64_t end = mpl_packing_high(packing, i);

        if (packing->at[packing->rival[i]] >= place || end <= (int64_t)low)
            continue;
        if (mpl_packing_low(packing, b, i) >= (int64_t)low)
            break;
        low = ((uint64_t)end + mask) & ~mask;
    }
    for (uint32_t i = packing->pair_begin != NULL ? packing->pair_begin[b] : 0;
         packing->pair_begin != NULL && i < packing->pair_begin[b + 1]; i++)
        if (packing->at[packing->pair[i]] < place && mpl_packing_on_partner(packing, b, i, &at) &&
            at <= low && mpl_packing_joins(packing, b, at, NULL))
            low = at;
    return low;
}

bool mpl_packing_place(mpl_packing *packing, const uint32_t *order, uint32_t from, uint64_t most,
                       uint64_t *height)
{
    *height = 0;
    for (uint32_t i = 0; i < from; i++)
        *height = mpl_max_u64(*height, packing->offset[order[i]] + packing->bytes[order[i]]);
    for (uint32_t i = from; i < packing->n; i++)
        packing->at[order[i]] = i;
    packing->ticks += packing->n;
    for (uint32_t i = from; i < packing->n && *height <= most; i++) {
        uint32_t b = order[i];

        packing->offset[b] =
            packing->fixed[b] != MPL_UNFIXED ? packing->fixed[b] : lowest_free(packing, b);
        *height = mpl_max_u64(*height, packing->offset[b] + packing->bytes[b]);
    }
    return *height <= most;
}

/* ---- orders ---- */

/* The buffers of a member. */
static const mpl_buffer *parts_of(const mpl_packing *packing, uint32_t a, uint32_t *n)
{
    mpl_buffer b = packing->buffer[a];

    if (packing->wall == NULL) {
        *n = 1;
        return &packing->buffer[a];
    }
    *n = packing->family.begin[b + 1] - packing->family.begin[b];
    return packing->family.item + packing->family.begin[b];
}

/* The live range of a member, and the sum over its buffers of bytes times live range. */
static void measure(const mpl_packing *packing, uint32_t a, uint64_t *lifetime, uint64_t *area)
{
    const mpl_problem *p = packing->p;
    uint32_t n, birth = MPL_NONE, death = 0;
    const mpl_buffer *part = parts_of(packing, a, &n);

    *area = *lifetime = 0; /* no overflow: the placement has checked the sum of all bytes */
    for (uint32_t i = packing->begin[a]; p->before != NULL && i < packing->begin[a + 1]; i++)
        *lifetime += packing->bytes[packing->rival[i]];
    if (p->before != NULL) {
        if (!mpl_mul_bytes(*lifetime, packing->bytes[a], area))
            *area = UINT64_MAX;
        return;
    }
    for (uint32_t k = 0; k < n; k++) {
        uint64_t one;

        birth = p->birth[part[k]] < birth ? p->birth[part[k]] : birth;
        death = p->death[part[k]] > death ? p->death[part[k]] : death;
        if (!mpl_mul_bytes(p->bytes[part[k]], p->death[part[k]] - p->birth[part[k]], &one) ||
            !mpl_add_bytes(*area, one, area))
            *area = UINT64_MAX;
    }
    *lifetime = death - birth;
}

static uint64_t key_of(const mpl_packing *packing, uint32_t a, int key)
{
    uint64_t lifetime, area;

    if (key == MPL_KEY_SIZE)
        return packing->bytes[a];
    if (key == MPL_KEY_RIVALS)
        return packing->begin[a + 1] - packing->begin[a];
    measure(packing, a, &lifetime, &area);
    return key == MPL_KEY_LIFETIME ? lifetime : area;
}

mpl_status mpl_packing_order(mpl_packing *packing, int key, uint32_t *order)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = packing->run->ctx;
    int keys[] = {key == MPL_KEY_RIVALS ? MPL_KEY_SIZE : MPL_KEY_RIVALS, key};
    uint64_t *value = NULL;

    MPL_TRY(mpl_new(ctx, value, packing->n));
    mpl_ids_ascending(packing->n, order);
    for (int i = 0; i < 2; i++) {
        for (uint32_t a = 0; a < packing->n; a++)
            value[a] = UINT64_MAX - key_of(packing, a, keys[i]);
        MPL_TRY(mpl_sort_ids(ctx, packing->n, order, value));
    }
    for (uint32_t a = 0; a < packing->n; a++)
        value[a] = packing->fixed[a] == MPL_UNFIXED;
    if (packing->n_fixed > 0)
        MPL_TRY(mpl_sort_ids(ctx, packing->n, order, value));
out:
    mpl_free(ctx, value);
    return st;
}

/* ---- conflicts ---- */

static int64_t part_at(const mpl_problem *p, mpl_buffer b)
{
    return p->inside != NULL ? (int64_t)p->inside_at[b] : 0;
}

/* Forbidden interval of a's member, relative to the start of b's member. */
static mpl_packing_wall wall_of(const mpl_problem *p, mpl_buffer a, mpl_buffer b)
{
    int64_t shift = part_at(p, b) - part_at(p, a);

    return (mpl_packing_wall){shift - (int64_t)p->bytes[a], shift + (int64_t)p->bytes[b],
                              INT64_MAX};
}

/* Handles one conflict: counts it while rival[] does not exist, then enters it. */
static void take_pair(mpl_packing *packing, const uint32_t *member, mpl_buffer a, mpl_buffer b)
{
    uint32_t x = member[a], y = member[b];

    if (packing->rival == NULL) {
        packing->begin[x + 2]++;
        packing->begin[y + 2]++;
        return;
    }
    if (packing->wall != NULL) {
        packing->wall[packing->begin[x + 1]] = wall_of(packing->p, a, b);
        packing->wall[packing->begin[y + 1]] = wall_of(packing->p, b, a);
    }
    packing->rival[packing->begin[x + 1]++] = y;
    packing->rival[packing->begin[y + 1]++] = x;
}

/* Visits all conflicts of by_birth[n], by birth or by testing each two; false: too many. */
static bool each_pair(mpl_packing *packing, const uint32_t *member, const mpl_buffer *by_birth,
                      uint32_t n)
{
    const mpl_problem *p = packing->p;
    uint64_t n_pairs = 0, most = p->inside != NULL ? MAX_CONFLICTS / 8 : MAX_CONFLICTS;

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++) {
            mpl_buffer a = by_birth[i], b = by_birth[j];

            if (p->before == NULL && p->birth[b] >= p->death[a])
                break;
            if (member[a] == member[b] || !mpl_conflict(p, a, b))
                continue;
            if (++n_pairs > most)
                return false;
            take_pair(packing, member, a, b);
        }
    return true;
}

static mpl_status index_rivals(mpl_packing *packing, const uint32_t *member, bool *fits)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = packing->run->ctx;
    mpl_buffer *by_birth = NULL;
    uint32_t n = 0;
    uint64_t *birth = NULL;

    MPL_TRY(mpl_new_each(ctx, packing->p->n, by_birth, birth));
    MPL_TRY(mpl_new(ctx, packing->begin, (size_t)packing->n + 2));
    for (mpl_buffer b = 0; b < packing->p->n; b++) {
        birth[b] = packing->p->birth[b];
        if (member[b] != MPL_NONE)
            by_birth[n++] = b;
    }
    MPL_TRY(mpl_sort_ids(ctx, n, by_birth, birth));
    *fits = each_pair(packing, member, by_birth, n);
    if (!*fits)
        goto out;
    mpl_lists_begin(packing->begin, packing->n);
    MPL_TRY(mpl_new(ctx, packing->rival, packing->begin[packing->n + 1]));
    if (packing->p->inside != NULL)
        MPL_TRY(mpl_new(ctx, packing->wall, packing->begin[packing->n + 1]));
    each_pair(packing, member, by_birth, n);
out:
    mpl_free_each(ctx, by_birth, birth);
    return st;
}

typedef struct entry {
    uint32_t rival;
    mpl_packing_wall wall;
} entry;

MPL_ORDER_BY(by_rival, entry,
             MPL_RISING(rival) MPL_RISING(wall.same) MPL_RISING(wall.low) MPL_RISING(wall.high))

/* Opens one of the intervals between two partners where both lie at one offset. */
static void open_wall(mpl_packing *packing, const uint32_t *member, mpl_buffer a, mpl_buffer b)
{
    mpl_packing_wall w = wall_of(packing->p, a, b);

    for (uint32_t i = packing->begin[member[a]]; i < packing->begin[member[a] + 1]; i++)
        if (packing->rival[i] == member[b] && packing->wall[i].low == w.low &&
            packing->wall[i].high == w.high && packing->wall[i].same == INT64_MAX) {
            packing->wall[i].same = part_at(packing->p, b) - part_at(packing->p, a);
            return;
        }
}

/* Merges overlapping intervals of one rival, except partners', so that an offset counts once. */
static mpl_status join_walls(mpl_packing *packing, const uint32_t *member)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = packing->p;
    entry *list = NULL;
    uint32_t n = 0, from = 0, end;

    for (uint32_t i = 0; i < p->n_in_place; i++)
        if (member[p->in_place_in[i]] != MPL_NONE && member[p->in_place_out[i]] != MPL_NONE) {
            open_wall(packing, member, p->in_place_in[i], p->in_place_out[i]);
            open_wall(packing, member, p->in_place_out[i], p->in_place_in[i]);
        }
    MPL_TRY(mpl_new(packing->run->ctx, list, packing->begin[packing->n]));
    for (uint32_t a = 0; a < packing->n; a++, from = end) {
        uint32_t first = n;

        end = packing->begin[a + 1];
        for (uint32_t i = from; i < end; i++)
            list[i - from] = (entry){packing->rival[i], packing->wall[i]};
        qsort(list, end - from, sizeof *list, by_rival);
        for (uint32_t i = 0; i < end - from; i++) {
            mpl_packing_wall *last = n > first ? &packing->wall[n - 1] : NULL, w = list[i].wall;

            if (last != NULL && packing->rival[n - 1] == list[i].rival && w.same == INT64_MAX &&
                last->same == INT64_MAX && w.low < last->high) {
                last->high = w.high > last->high ? w.high : last->high;
                continue;
            }
            packing->rival[n] = list[i].rival;
            packing->wall[n++] = w;
        }
        packing->begin[a + 1] = n;
    }
out:
    mpl_free(packing->run->ctx, list);
    return st;
}

/* Counts or enters an in-place pair. */
static void take_partner(mpl_packing *packing, const uint32_t *member, bool count, mpl_buffer a,
                         mpl_buffer b)
{
    uint32_t *at = &packing->pair_begin[member[a] + 1];

    if (count) {
        at[1]++;
        return;
    }
    if (packing->pair_at != NULL)
        packing->pair_at[*at] = part_at(packing->p, b) - part_at(packing->p, a);
    packing->pair[(*at)++] = member[b];
}

static mpl_status index_pairs(mpl_packing *packing, const uint32_t *member)
{
    mpl_ctx *ctx = packing->run->ctx;
    const mpl_problem *p = packing->p;

    if (p->n_in_place == 0)
        return MPL_OK;
    MPL_PASS(mpl_new(ctx, packing->pair_begin, (size_t)packing->n + 2));
    MPL_PASS(mpl_new(ctx, packing->pair, 2 * (size_t)p->n_in_place));
    if (p->inside != NULL)
        MPL_PASS(mpl_new(ctx, packing->pair_at, 2 * (size_t)p->n_in_place));
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < p->n_in_place; i++) {
            mpl_buffer in = p->in_place_in[i], out = p->in_place_out[i];

            if (member[in] == MPL_NONE || member[out] == MPL_NONE || member[in] == member[out])
                continue;
            take_partner(packing, member, pass == 0, in, out);
            take_partner(packing, member, pass == 0, out, in);
        }
        if (pass == 0)
            mpl_lists_begin(packing->pair_begin, packing->n);
    }
    return MPL_OK;
}

/* ---- one pool ---- */

static void packing_fini(mpl_packing *packing)
{
    mpl_free_each(packing->run->ctx, packing->buffer, packing->bytes, packing->align,
                  packing->fixed, packing->begin, packing->rival, packing->pair_begin,
                  packing->pair, packing->pair_at, packing->offset, packing->at,
                  packing->best_offset, packing->wall, packing->entry);
    mpl_families_free(packing->run->ctx, &packing->family);
}

/* Numbers the members of the pool; buffers of other pools have none. */
static void number_members(mpl_packing *packing, uint32_t pool, uint32_t *member)
{
    const mpl_problem *p = packing->p;

    for (mpl_buffer b = 0; b < p->n; b++)
        member[b] = p->pool[b] == pool && (p->inside == NULL || p->inside[b] == b) ? packing->n++
                                                                                   : MPL_NONE;
    for (mpl_buffer b = 0; p->inside != NULL && b < p->n; b++)
        member[b] = member[p->inside[b]];
}

static mpl_status members_alloc(mpl_packing *packing)
{
    mpl_ctx *ctx = packing->run->ctx;

    MPL_PASS(mpl_new_each(ctx, packing->n, packing->buffer, packing->bytes, packing->align,
                          packing->fixed, packing->offset, packing->at, packing->best_offset));
    if (packing->p->inside != NULL)
        MPL_PASS(mpl_families_new(ctx, packing->p, &packing->family));
    return MPL_OK;
}

/* Makes the pool's members at the offsets of `start`, a valid plan, with bound and goal. */
static mpl_status packing_init(mpl_packing *packing, uint32_t pool, const uint64_t *start,
                               uint32_t *member)
{
    int64_t minimise;
    const mpl_problem *p = packing->p;
    uint64_t capacity = p->pool_capacity[pool];

    number_members(packing, pool, member);
    MPL_PASS(members_alloc(packing));
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint32_t a = member[b];

        if (a == MPL_NONE)
            continue;
        packing->bytes[a] = mpl_max_u64(packing->bytes[a], p->bytes[b] + (uint64_t)part_at(p, b));
        packing->best = mpl_max_u64(packing->best, start[b] + p->bytes[b]);
        if (p->inside != NULL && p->inside[b] != b)
            continue;
        packing->buffer[a] = b;
        packing->align[a] = p->align[b];
        packing->fixed[a] = p->fixed != NULL ? p->fixed[b] : MPL_UNFIXED;
        packing->n_fixed += packing->fixed[a] != MPL_UNFIXED;
        packing->best_offset[a] = packing->offset[a] = start[b];
    }
    MPL_PASS(mpl_run_param_int(packing->run, "minimise", 0, 1, 0, &minimise));
    MPL_PASS(mpl_lower_bound(packing->run->ctx, p, pool, &packing->bound, NULL));
    packing->goal = mpl_min_u64(mpl_run_enough(packing->run, packing->bound),
                                mpl_max_u64(packing->bound, capacity));
    packing->goal = !minimise && capacity != MPL_NO_CAPACITY && capacity > packing->goal
                        ? capacity
                        : packing->goal;
    return MPL_OK;
}

static mpl_status entries_alloc(mpl_packing *packing)
{
    uint32_t most = 0;

    for (uint32_t a = 0; a < packing->n; a++)
        most = packing->begin[a + 1] - packing->begin[a] > most
                   ? packing->begin[a + 1] - packing->begin[a]
                   : most;
    return mpl_new(packing->run->ctx, packing->entry, 2 * (size_t)most);
}

static mpl_status search_pool(mpl_packing *packing, uint32_t pool, uint32_t *member,
                              mpl_status (*search)(mpl_packing *packing), uint64_t *offset)
{
    mpl_status st = MPL_OK;
    bool fits;

    MPL_TRY(packing_init(packing, pool, offset, member));
    if (packing->n == 0 || packing->bound > packing->p->pool_capacity[pool] ||
        mpl_packing_done(packing))
        goto out;
    MPL_TRY(index_rivals(packing, member, &fits));
    if (!fits)
        goto out;
    if (packing->p->inside != NULL)
        MPL_TRY(join_walls(packing, member));
    MPL_TRY(index_pairs(packing, member));
    MPL_TRY(entries_alloc(packing));
    MPL_TRY(search(packing));
    for (uint32_t a = 0; a < packing->n; a++) {
        uint32_t n;
        const mpl_buffer *part = parts_of(packing, a, &n);

        for (uint32_t k = 0; k < n; k++)
            offset[part[k]] = packing->best_offset[a] +
                              (packing->wall != NULL ? packing->p->inside_at[part[k]] : 0);
    }
out:
    packing_fini(packing);
    return st;
}

/* Searches all pools of the plan `start`; run->ticks are those used so far. */
static mpl_status search_pools(mpl_run *run, const mpl_problem *p, uint64_t limit,
                               mpl_status (*search)(mpl_packing *q), uint64_t *start)
{
    mpl_status st = MPL_OK;
    uint32_t *member = NULL;

    MPL_TRY(mpl_new(run->ctx, member, p->n));
    for (uint32_t pool = 0; pool < p->n_pools; pool++) {
        mpl_packing q = {.run = run, .p = p, .ticks = run->ticks, .limit = limit};

        MPL_TRY(search_pool(&q, pool, member, search, start));
        run->ticks = q.ticks;
    }
out:
    mpl_free(run->ctx, member);
    return st;
}

/* Whether all pools are at their bounds. */
static mpl_status at_bounds(mpl_run *run, const mpl_problem *p, const uint64_t *offset, bool *at)
{
    uint64_t bound;

    *at = true;
    for (uint32_t pool = 0; pool < p->n_pools && *at; pool++) {
        MPL_PASS(mpl_lower_bound(run->ctx, p, pool, &bound, NULL));
        *at = mpl_pool_height(p, pool, offset) <= mpl_run_enough(run, bound);
    }
    return MPL_OK;
}

/* Searches with families as single buffers, in a quarter of ticks and time; sinks the parts. */
static mpl_status search_wholes(mpl_run *run, const mpl_problem *p, const mpl_planner *first,
                                uint64_t limit, mpl_status (*search)(mpl_packing *packing),
                                uint64_t *offset)
{
    mpl_status st = MPL_OK;
    mpl_problem *hull = NULL;
    mpl_plan *whole = NULL;
    uint32_t *into = NULL;
    uint64_t *start = NULL;
    int64_t deadline = run->deadline_ns;
    bool at;

    MPL_TRY(at_bounds(run, p, offset, &at));
    if (at)
        goto out;
    MPL_TRY(mpl_new_each(run->ctx, p->n, into, start));
    MPL_TRY(mpl_problem_hull(run->ctx, p, &hull, into));
    MPL_TRY(mpl_plan_new(run->ctx, hull, &whole));
    MPL_TRY(first->plan(run, hull, whole));
    if (deadline != INT64_MAX)
        run->deadline_ns = mpl_clock_ns() + (deadline - mpl_clock_ns()) / 4;
    MPL_TRY(search_pools(run, hull, limit / 4, search, whole->offset));
    run->stopped_by_clock = false;
    for (mpl_buffer b = 0; b < p->n; b++)
        start[b] = whole->offset[into[b]] + p->inside_at[b];
    MPL_TRY(mpl_place_sink(run, p, start));
    mpl_place_take_lower(p, start, offset);
out:
    run->deadline_ns = deadline;
    mpl_problem_free(run->ctx, hull);
    mpl_plan_free(run->ctx, whole);
    mpl_free_each(run->ctx, into, start);
    return st;
}

mpl_status mpl_packing_run(mpl_run *run, const mpl_problem *p, const mpl_planner *first,
                           uint64_t ticks_default, mpl_status (*search)(mpl_packing *packing),
                           mpl_plan *out)
{
    uint64_t limit = run->budget_ticks;

    if (limit == UINT64_MAX && run->deadline_ns == INT64_MAX)
        limit = ticks_default;
    MPL_PASS(first->plan(run, p, out));
    if (run->start_offsets != NULL)
        mpl_place_take_lower(p, run->start_offsets, out->offset);
    if (p->inside != NULL)
        MPL_PASS(search_wholes(run, p, first, limit, search, out->offset));
    return search_pools(run, p, limit, search, out->offset);
}
