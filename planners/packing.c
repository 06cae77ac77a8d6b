/* packing.c -- conflicts as lists, the placement of an order, and the frame around a search. See packing.h. */
#include "planners/packing.h"
#include "planners/placement.h"
#include "planners/sort.h"

#define MAX_CONFLICTS (UINT64_C(1) << 24)

extern const mpl_planner mpl_planner_greedy_size;

bool mpl_packing_done(mpl_packing *q)
{
    if (q->best <= q->goal || q->ticks >= q->limit)
        return true;
    if (mpl_run_late(q->run))
        q->run->stopped_by_clock = true;
    return q->run->stopped_by_clock;
}

void mpl_packing_offer(mpl_packing *q, uint64_t height)
{
    if (height >= q->best)
        return;
    q->best = height;
    memcpy(q->best_offset, q->offset, q->n * sizeof *q->offset);
}

/* ---- placing --------------------------------------------------------------------------------------------------- */

/* Between two placements few offsets change, so the lists are nearly sorted already. */
void mpl_packing_sort(mpl_packing *q, uint32_t member)
{
    uint32_t *list = q->rival + q->begin[member], n = q->begin[member + 1] - q->begin[member];

    for (uint32_t i = 1; i < n; i++) {
        uint32_t c = list[i], j = i;
        uint64_t offset = q->offset[c];

        for (; j > 0 && q->offset[list[j - 1]] > offset; j--)
            list[j] = list[j - 1];
        list[j] = c;
        q->ticks += i - j;
    }
    q->ticks += n;
}

bool mpl_packing_partners(const mpl_packing *q, uint32_t a, uint32_t b)
{
    for (uint32_t i = q->pair_begin[a]; i < q->pair_begin[a + 1]; i++)
        if (q->pair[i] == b)
            return true;
    return false;
}

bool mpl_packing_joins(mpl_packing *q, uint32_t b, uint64_t at, const uint8_t *placed)
{
    for (uint32_t i = q->begin[b]; i < q->begin[b + 1]; i++) {
        uint32_t c = q->rival[i];

        q->ticks++;
        if ((placed != NULL ? placed[c] : q->at[c] < q->at[b]) && q->offset[c] < at + q->bytes[b] &&
            at < q->offset[c] + q->bytes[c] && (q->offset[c] != at || !mpl_packing_partners(q, b, c)))
            return false;
    }
    return true;
}

/* The lowest free offset of b among the members that stand before it. */
static uint64_t lowest_free(mpl_packing *q, uint32_t b)
{
    uint64_t low = 0, bytes = q->bytes[b], mask = q->align[b] - 1;
    uint32_t place = q->at[b];

    mpl_packing_sort(q, b);
    for (uint32_t i = q->begin[b]; i < q->begin[b + 1]; i++) {
        uint32_t c = q->rival[i];
        uint64_t end = q->offset[c] + q->bytes[c];

        if (q->at[c] >= place || end <= low)
            continue;
        if (q->offset[c] >= low + bytes)
            break;
        low = (end + mask) & ~mask;
    }
    for (uint32_t i = q->pair_begin != NULL ? q->pair_begin[b] : 0;
         q->pair_begin != NULL && i < q->pair_begin[b + 1]; i++) {
        uint32_t c = q->pair[i];

        if (q->at[c] < place && q->offset[c] <= low && (q->offset[c] & mask) == 0 &&
            mpl_packing_joins(q, b, q->offset[c], NULL))
            low = q->offset[c];
    }
    return low;
}

bool mpl_packing_place(mpl_packing *q, const uint32_t *order, uint32_t from, uint64_t most, uint64_t *height)
{
    *height = 0;
    for (uint32_t i = 0; i < from; i++)
        *height = mpl_max_u64(*height, q->offset[order[i]] + q->bytes[order[i]]);
    for (uint32_t i = from; i < q->n; i++)
        q->at[order[i]] = i;
    q->ticks += q->n;
    for (uint32_t i = from; i < q->n && *height <= most; i++) {
        uint32_t b = order[i];

        q->offset[b] = q->fixed[b] != MPL_UNFIXED ? q->fixed[b] : lowest_free(q, b);
        *height = mpl_max_u64(*height, q->offset[b] + q->bytes[b]);
    }
    return *height <= most;
}

/* ---- orders ---------------------------------------------------------------------------------------------------- */

static uint64_t key_of(const mpl_packing *q, uint32_t a, int key)
{
    const mpl_problem *p = q->p;
    uint64_t lifetime = 0, area;

    if (key == MPL_KEY_SIZE)
        return q->bytes[a];
    if (key == MPL_KEY_RIVALS)
        return q->begin[a + 1] - q->begin[a];
    if (p->before == NULL)
        lifetime = p->death[q->buffer[a]] - p->birth[q->buffer[a]];
    for (uint32_t i = q->begin[a]; p->before != NULL && i < q->begin[a + 1]; i++)
        lifetime += q->bytes[q->rival[i]]; /* within 2^63: the placement of all has been checked */
    if (key == MPL_KEY_LIFETIME)
        return lifetime;
    return mpl_mul_bytes(lifetime, q->bytes[a], &area) ? area : UINT64_MAX;
}

mpl_status mpl_packing_order(mpl_packing *q, int key, uint32_t *order)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = q->run->ctx;
    int keys[] = {key == MPL_KEY_RIVALS ? MPL_KEY_SIZE : MPL_KEY_RIVALS, key};
    uint64_t *value = NULL;

    MPL_TRY(mpl_new(ctx, value, q->n));
    mpl_ids_ascending(q->n, order);
    for (int i = 0; i < 2; i++) {
        for (uint32_t a = 0; a < q->n; a++)
            value[a] = UINT64_MAX - key_of(q, a, keys[i]);
        MPL_TRY(mpl_sort_ids(ctx, q->n, order, value));
    }
    for (uint32_t a = 0; a < q->n; a++)
        value[a] = q->fixed[a] == MPL_UNFIXED;
    if (q->n_fixed > 0)
        MPL_TRY(mpl_sort_ids(ctx, q->n, order, value));
out:
    mpl_free(ctx, value);
    return st;
}

/* ---- conflicts ------------------------------------------------------------------------------------------------- */

/* Calls of one pair: counted in begin[member + 1], or entered where begin[member] says. */
static void take_pair(mpl_packing *q, uint32_t *next, uint32_t a, uint32_t b)
{
    if (next == NULL) {
        q->begin[a + 1]++;
        q->begin[b + 1]++;
    } else {
        q->rival[next[a]++] = b;
        q->rival[next[b]++] = a;
    }
}

/* All conflicts, by birth or by asking for each two; false when there are too many. */
static bool each_pair(mpl_packing *q, const uint32_t *by_birth, uint32_t *next)
{
    const mpl_problem *p = q->p;
    uint64_t n_pairs = 0;

    for (uint32_t i = 0; i < q->n; i++)
        for (uint32_t j = i + 1; j < q->n; j++) {
            uint32_t a = by_birth[i], b = by_birth[j];

            if (p->before == NULL && p->birth[q->buffer[b]] >= p->death[q->buffer[a]])
                break;
            if (!mpl_conflict(p, q->buffer[a], q->buffer[b]))
                continue;
            if (++n_pairs > MAX_CONFLICTS)
                return false;
            take_pair(q, next, a, b);
        }
    return true;
}

static mpl_status index_rivals(mpl_packing *q, bool *fits)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = q->run->ctx;
    uint32_t *by_birth = NULL, *next = NULL;
    uint64_t *birth = NULL;

    MPL_TRY(mpl_new(ctx, by_birth, q->n));
    MPL_TRY(mpl_new(ctx, birth, q->n));
    MPL_TRY(mpl_new(ctx, next, q->n));
    MPL_TRY(mpl_new(ctx, q->begin, (size_t)q->n + 1));
    mpl_ids_ascending(q->n, by_birth);
    for (uint32_t a = 0; a < q->n; a++)
        birth[a] = q->p->birth[q->buffer[a]];
    MPL_TRY(mpl_sort_ids(ctx, q->n, by_birth, birth));
    *fits = each_pair(q, by_birth, NULL);
    if (!*fits)
        goto out;
    for (uint32_t a = 0; a < q->n; a++) {
        q->begin[a + 1] += q->begin[a];
        next[a] = q->begin[a];
    }
    MPL_TRY(mpl_new(ctx, q->rival, q->begin[q->n]));
    each_pair(q, by_birth, next);
out:
    mpl_free(ctx, by_birth);
    mpl_free(ctx, birth);
    mpl_free(ctx, next);
    return st;
}

static mpl_status index_pairs(mpl_packing *q, const uint32_t *member)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = q->run->ctx;
    const mpl_problem *p = q->p;
    uint32_t *next = NULL;

    if (p->n_in_place == 0)
        goto out;
    MPL_TRY(mpl_new(ctx, next, q->n));
    MPL_TRY(mpl_new(ctx, q->pair_begin, (size_t)q->n + 1));
    MPL_TRY(mpl_new(ctx, q->pair, 2 * (size_t)p->n_in_place));
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < p->n_in_place; i++) {
            uint32_t in = member[p->in_place_in[i]], out = member[p->in_place_out[i]];

            if (in == MPL_NONE || out == MPL_NONE)
                continue;
            if (pass == 0) {
                q->pair_begin[in + 1]++;
                q->pair_begin[out + 1]++;
            } else {
                q->pair[next[in]++] = out;
                q->pair[next[out]++] = in;
            }
        }
        for (uint32_t a = 0; pass == 0 && a < q->n; a++) {
            q->pair_begin[a + 1] += q->pair_begin[a];
            next[a] = q->pair_begin[a];
        }
    }
out:
    mpl_free(ctx, next);
    return st;
}

/* ---- one pool -------------------------------------------------------------------------------------------------- */

static void packing_fini(mpl_packing *q)
{
    void *arrays[] = {q->buffer,     q->bytes, q->align,  q->fixed, q->begin,      q->rival,
                      q->pair_begin, q->pair,  q->offset, q->at,    q->best_offset};

    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        mpl_free(q->run->ctx, arrays[i]);
}

/* The pool's members at the offsets of `start`, a valid plan; its bound and goal. */
static mpl_status packing_init(mpl_packing *q, uint32_t pool, const uint64_t *start, uint32_t *member)
{
    mpl_status st = MPL_OK;
    int64_t minimise;
    mpl_ctx *ctx = q->run->ctx;
    const mpl_problem *p = q->p;
    uint64_t capacity = p->pool_capacity[pool];

    for (mpl_buffer b = 0; b < p->n; b++)
        member[b] = p->pool[b] == pool ? q->n++ : MPL_NONE;
    MPL_TRY(mpl_new(ctx, q->buffer, q->n));
    MPL_TRY(mpl_new(ctx, q->bytes, q->n));
    MPL_TRY(mpl_new(ctx, q->align, q->n));
    MPL_TRY(mpl_new(ctx, q->fixed, q->n));
    MPL_TRY(mpl_new(ctx, q->offset, q->n));
    MPL_TRY(mpl_new(ctx, q->at, q->n));
    MPL_TRY(mpl_new(ctx, q->best_offset, q->n));
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint32_t a = member[b];

        if (a == MPL_NONE)
            continue;
        q->buffer[a] = b;
        q->bytes[a] = p->bytes[b];
        q->align[a] = p->align[b];
        q->fixed[a] = p->fixed != NULL ? p->fixed[b] : MPL_UNFIXED;
        q->n_fixed += q->fixed[a] != MPL_UNFIXED;
        q->best_offset[a] = q->offset[a] = start[b];
        q->best = mpl_max_u64(q->best, start[b] + p->bytes[b]);
    }
    MPL_TRY(mpl_run_param_int(q->run, "minimise", 0, 1, 0, &minimise));
    MPL_TRY(mpl_lower_bound(ctx, p, pool, &q->bound, NULL));
    q->goal = !minimise && capacity != MPL_NO_CAPACITY && capacity > q->bound ? capacity : q->bound;
out:
    return st;
}

static mpl_status search_pool(mpl_packing *q, uint32_t pool, uint32_t *member,
                              mpl_status (*search)(mpl_packing *q), uint64_t *offset)
{
    mpl_status st = MPL_OK;
    bool fits;

    MPL_TRY(packing_init(q, pool, offset, member));
    if (q->n == 0 || q->bound > q->p->pool_capacity[pool] || mpl_packing_done(q))
        goto out;
    MPL_TRY(index_rivals(q, &fits));
    if (!fits)
        goto out;
    MPL_TRY(index_pairs(q, member));
    MPL_TRY(search(q));
    for (uint32_t a = 0; a < q->n; a++)
        offset[q->buffer[a]] = q->best_offset[a];
out:
    packing_fini(q);
    return st;
}

/* Pools that are lower in the plan that the caller has begin from that one. */
static void take_start(const mpl_run *run, const mpl_problem *p, uint64_t *offset)
{
    for (uint32_t pool = 0; run->start_offsets != NULL && pool < p->n_pools; pool++) {
        uint64_t height = 0, start = 0;

        for (mpl_buffer b = 0; b < p->n; b++)
            if (p->pool[b] == pool) {
                height = mpl_max_u64(height, offset[b] + p->bytes[b]);
                start = mpl_max_u64(start, run->start_offsets[b] + p->bytes[b]);
            }
        for (mpl_buffer b = 0; start < height && b < p->n; b++)
            if (p->pool[b] == pool)
                offset[b] = run->start_offsets[b];
    }
}

mpl_status mpl_packing_run(mpl_run *run, const mpl_problem *p, uint64_t ticks_default,
                           mpl_status (*search)(mpl_packing *q), mpl_plan *out)
{
    mpl_status st = MPL_OK;
    uint64_t limit = run->budget_ticks;
    uint32_t *member = NULL;

    if (limit == UINT64_MAX && run->deadline_ns == INT64_MAX)
        limit = ticks_default;
    MPL_TRY(mpl_planner_greedy_size.plan(run, p, out));
    take_start(run, p, out->offset);
    MPL_TRY(mpl_new(run->ctx, member, p->n));
    for (uint32_t pool = 0; pool < p->n_pools; pool++) {
        mpl_packing q = {.run = run, .p = p, .ticks = run->ticks, .limit = limit};

        MPL_TRY(search_pool(&q, pool, member, search, out->offset));
        run->ticks = q.ticks;
    }
out:
    mpl_free(run->ctx, member);
    return st;
}
