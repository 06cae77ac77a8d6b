/* verify.c -- the independent verifier. See verify.h.
 *
 * Idea     Serial: sweep over time. Live buffers have disjoint ranges, so a new buffer can only
 *          touch its two neighbours by offset. Ranks by offset are fixed beforehand; a bitmap tree
 *          over them holds the live buffers and finds neighbours in a few words. A buffer that
 *          overwrites another in place lies within it, and replaces it when that one dies at the
 *          next step. A lifetime with gaps is swept piece by piece, as if the buffer died and were
 *          born again at the same place. Parallel: sweep over offsets, and ask the partial order
 *          about each pair that overlaps in memory. The sweep only detects a conflict; a separate
 *          plain pass runs once to name the first pair.
 * Source   this project
 * Cost     Serial: O(n log n) time, about 60 n bytes, n counting buffers and gaps. Parallel: O(n
 *          log n + pairs that overlap in memory). */
#include "planners/verify/verify_priv.h"

#include <stdlib.h>

/* A set of numbers below n with fast neighbour queries: level 0 has a bit for each number, each
 * level above a bit for each word. */
#define MAX_LEVELS 6

typedef struct bitset {
    uint64_t *word[MAX_LEVELS];
    uint32_t n_words[MAX_LEVELS];
    uint32_t n_levels;
} bitset;

/* A buffer between two gaps. */
typedef struct piece {
    mpl_buffer b;
    uint32_t from, to; /* [step] */
} piece;

typedef struct key {
    uint64_t value;
    uint32_t pool; /* compared first */
    uint32_t id;   /* of a buffer or piece; compared last */
} key;

typedef struct check {
    mpl_ctx *ctx;
    const mpl_problem *p;
    const mpl_plan *plan;
    key *by_offset; /* [n] */
    uint32_t n_pieces;
    piece *piece;             /* [n_pieces] of the lifetimes */
    key *by_birth, *by_death; /* [n_pieces] */
    uint32_t *rank;           /* [n] of each buffer in by_offset */
    uint8_t *overwritten;     /* [n] 1: overwritten in place by a buffer born at this step */
    uint32_t *waiting;        /* [n_pieces] born in place at the last step, not yet in `live` */
    uint32_t n_waiting;
    bitset live; /* ranks */
    /* [n] arena of each buffer: its pool, or first the memories of a spread pool 0 */
    uint32_t *home;
    uint32_t n_homes;
    uint64_t *home_bytes; /* [n_homes] */
} check;

static int by_key(const void *a, const void *b)
{
    const key *x = a, *y = b;

    if (x->pool != y->pool)
        return x->pool > y->pool ? 1 : -1;
    if (x->value != y->value)
        return x->value > y->value ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static mpl_status bitset_init(mpl_ctx *ctx, bitset *set, uint32_t n)
{
    do {
        n = n / 64 + 1;
        set->n_words[set->n_levels] = n;
        MPL_PASS(mpl_new(ctx, set->word[set->n_levels], n));
        set->n_levels++;
    } while (n > 1);
    return MPL_OK;
}

static void bitset_add(bitset *set, uint32_t i)
{
    for (uint32_t level = 0; level < set->n_levels; level++, i /= 64)
        set->word[level][i / 64] |= UINT64_C(1) << (i % 64);
}

static void bitset_remove(bitset *set, uint32_t i)
{
    for (uint32_t level = 0; level < set->n_levels; level++, i /= 64) {
        set->word[level][i / 64] &= ~(UINT64_C(1) << (i % 64));
        if (set->word[level][i / 64] != 0)
            return;
    }
}

/* Smallest member above i, or MPL_NONE. */
static uint32_t bitset_above(const bitset *set, uint32_t i)
{
    for (uint32_t level = 0; level < set->n_levels; level++, i /= 64) {
        uint64_t rest = i % 64 == 63 ? 0 : set->word[level][i / 64] >> (i % 64 + 1) << (i % 64 + 1);

        if (rest == 0)
            continue;
        i = i / 64 * 64 + (uint32_t)__builtin_ctzll(rest);
        while (level-- > 0)
            i = i * 64 + (uint32_t)__builtin_ctzll(set->word[level][i]);
        return i;
    }
    return MPL_NONE;
}

/* Largest member below i, or MPL_NONE. */
static uint32_t bitset_below(const bitset *set, uint32_t i)
{
    for (uint32_t level = 0; level < set->n_levels; level++, i /= 64) {
        uint64_t rest = set->word[level][i / 64] & ((UINT64_C(1) << (i % 64)) - 1);

        if (rest == 0)
            continue;
        i = i / 64 * 64 + 63 - (uint32_t)__builtin_clzll(rest);
        while (level-- > 0)
            i = i * 64 + 63 - (uint32_t)__builtin_clzll(set->word[level][i]);
        return i;
    }
    return MPL_NONE;
}

static uint64_t end_of(const check *self, mpl_buffer b)
{
    return self->plan->offset[b] + self->p->bytes[b];
}

static bool share_memory(const check *self, mpl_buffer a, mpl_buffer b)
{
    return self->home[a] == self->home[b] && self->plan->offset[a] < end_of(self, b) &&
           self->plan->offset[b] < end_of(self, a);
}

/* Whether (in, out) is an in-place pair of the problem. With steps, pairs are sorted by (step, out,
 * in). Under parallel, `step` is MPL_NONE and they are searched one by one. */
static bool is_pair(const mpl_problem *p, mpl_buffer in, mpl_buffer out, uint32_t step)
{
    uint32_t low = 0, high = p->n_in_place;

    while (step != MPL_NONE && low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (p->in_place_step[mid] != step ? p->in_place_step[mid] < step
                                          : p->in_place_out[mid] < out)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < p->n_in_place && (step == MPL_NONE || p->in_place_step[low] == step); low++) {
        if (p->in_place_out[low] == out && p->in_place_in[low] == in)
            return true;
        if (step != MPL_NONE && p->in_place_out[low] != out)
            return false;
    }
    return false;
}

/* Whether `out` may overwrite `in` as placed: an in-place pair, same offset, `out` within `in`. */
static bool in_place(const check *self, mpl_buffer in, mpl_buffer out, uint32_t step)
{
    const mpl_problem *p = self->p;

    if (self->plan->offset[in] != self->plan->offset[out] || p->bytes[out] > p->bytes[in])
        return false;
    if (step != MPL_NONE &&
        (p->birth[out] != step || p->death[in] != step + 1 || p->birth[in] >= step))
        return false;
    return is_pair(p, in, out, step);
}

static const char *home_label(const check *self, mpl_buffer b, char text[80])
{
    if (self->plan->spread.n > 0 && self->p->pool[b] == 0)
        snprintf(text, 80, "memory %u", self->home[b]);
    else
        snprintf(text, 80, "pool '%.60s'", self->p->pool_name[self->p->pool[b]]);
    return text;
}

static mpl_status refuse_pair(const check *self, mpl_buffer a, mpl_buffer b, uint32_t step)
{
    char text_a[24], text_b[24], text[80], when[32] = "";
    const mpl_problem *p = self->p;

    if (step != MPL_NONE)
        snprintf(when, sizeof when, " at step %u", step);
    return MPL_ERROR(self->ctx, MPL_EINVALID,
                     "buffers '%.100s' and '%.100s' overlap%s: bytes [%" PRIu64 ", %" PRIu64
                     ") and [%" PRIu64 ", %" PRIu64 ") of %s",
                     mpl_buffer_label(p, a, text_a), mpl_buffer_label(p, b, text_b), when,
                     self->plan->offset[a], end_of(self, a), self->plan->offset[b], end_of(self, b),
                     home_label(self, a, text));
}

/* ---- checks of each buffer alone ---- */

static mpl_status check_place(check *self, mpl_buffer b)
{
    const mpl_problem *p = self->p;
    const mpl_spread *spread = &self->plan->spread;
    uint64_t offset = self->plan->offset[b], end, capacity = p->pool_capacity[p->pool[b]];
    char text[24], other[24], home[80];
    const char *label = mpl_buffer_label(p, b, text);

    if (!mpl_add_bytes(offset, p->bytes[b], &end) || end > INT64_MAX)
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "buffer '%.100s' at offset %" PRIu64 " ends beyond 2^63 - 1 bytes", label,
                         offset);
    if (offset % p->align[b] != 0)
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "buffer '%.100s' at offset %" PRIu64 " is not aligned to %u bytes", label,
                         offset, p->align[b]);
    if (spread->n > 0 && p->pool[b] == 0)
        capacity = mpl_min_u64(capacity, spread->capacity[spread->memory[b]]);
    if (capacity != MPL_NO_CAPACITY && end > capacity)
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "buffer '%.100s' ends at byte %" PRIu64 ", beyond the %" PRIu64
                         " bytes of %s",
                         label, end, capacity, home_label(self, b, home));
    if (p->fixed != NULL && p->fixed[b] != MPL_UNFIXED && p->fixed[b] != offset)
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "buffer '%.100s' is fixed at offset %" PRIu64
                         ", and the plan has it at %" PRIu64,
                         label, p->fixed[b], offset);
    if (p->inside != NULL &&
        (offset < p->inside_at[b] || offset - p->inside_at[b] != self->plan->offset[p->inside[b]] ||
         self->home[p->inside[b]] != self->home[b]))
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "buffer '%.100s' at offset %" PRIu64 " of %s does not lie %" PRIu64
                         " bytes behind buffer '%.100s', which is at offset %" PRIu64,
                         label, offset, home_label(self, b, home), p->inside_at[b],
                         mpl_buffer_label(p, p->inside[b], other),
                         self->plan->offset[p->inside[b]]);
    self->home_bytes[self->home[b]] = mpl_max_u64(self->home_bytes[self->home[b]], end);
    return MPL_OK;
}

/* Finds the arena of each buffer. */
static mpl_status find_homes(check *self)
{
    const mpl_spread *spread = &self->plan->spread;
    const uint32_t *pool = self->p->pool;
    char text[24];

    self->n_homes = spread->n > 0 ? spread->n + self->p->n_pools - 1 : self->p->n_pools;
    MPL_PASS(mpl_new(self->ctx, self->home, self->p->n));
    MPL_PASS(mpl_new(self->ctx, self->home_bytes, self->n_homes));
    if (spread->n > 0 && self->plan->block != NULL)
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "a plan has blocks or several memories, not both");
    for (mpl_buffer b = 0; b < self->p->n; b++) {
        if (spread->n > 0 && spread->memory[b] >= (pool[b] == 0 ? spread->n : 1))
            return MPL_ERROR(
                self->ctx, MPL_EINVALID, "buffer '%.100s' of pool %u is in memory %u of %u",
                mpl_buffer_label(self->p, b, text), pool[b], spread->memory[b], spread->n);
        if (spread->n == 0)
            self->home[b] = pool[b];
        else
            self->home[b] = pool[b] == 0 ? spread->memory[b] : spread->n + pool[b] - 1;
    }
    return MPL_OK;
}

static mpl_status check_whole(check *self)
{
    const mpl_plan *plan = self->plan;

    if (plan->n != self->p->n)
        return MPL_ERROR(self->ctx, MPL_EINVALID, "the plan has %u buffers, the problem %u",
                         plan->n, self->p->n);
    if (plan->n_pools != self->p->n_pools)
        return MPL_ERROR(self->ctx, MPL_EINVALID, "the plan has %u pools, the problem %u",
                         plan->n_pools, self->p->n_pools);
    if (plan->claim != MPL_FEASIBLE && plan->claim != MPL_OPTIMAL)
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "the plan claims '%s': it places nothing that could be checked",
                         mpl_claim_name(plan->claim));
    MPL_PASS(find_homes(self));
    for (mpl_buffer b = 0; b < self->p->n; b++)
        MPL_PASS(check_place(self, b));
    return MPL_OK;
}

/* ---- serial: a sweep over time ---- */

/* Names the first conflict at `step`. Only buffers that overlap a neighbour by offset can be the
 * lower id; each is compared with all live buffers. */
static mpl_status name_conflict(check *self, uint32_t step)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->p;
    uint8_t *candidate = NULL;
    mpl_buffer *alive = NULL, reach = MPL_NONE;
    uint32_t n = 0;

    MPL_TRY(mpl_new_each(self->ctx, p->n, candidate, alive));
    /* by offset; `reach` is the one with the highest end so far */
    for (uint32_t i = 0; i < p->n; i++) {
        mpl_buffer b = self->by_offset[i].id;

        if (!mpl_verify_needed(p, b, step))
            continue;
        if (reach != MPL_NONE && share_memory(self, reach, b))
            candidate[reach] = candidate[b] = 1;
        if (reach == MPL_NONE || self->home[reach] != self->home[b] ||
            end_of(self, b) > end_of(self, reach))
            reach = b;
    }
    for (mpl_buffer b = 0; b < p->n; b++)
        if (mpl_verify_needed(p, b, step))
            alive[n++] = b;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; candidate[alive[i]] && j < n; j++)
            if (share_memory(self, alive[i], alive[j]) &&
                !in_place(self, alive[i], alive[j], step) &&
                !in_place(self, alive[j], alive[i], step)) {
                st = refuse_pair(self, alive[i], alive[j], step);
                goto out;
            }
    MPL_FAIL(self->ctx, MPL_EINVALID, "buffers overlap at step %u", step); /* not reached */
out:
    mpl_free_each(self->ctx, candidate, alive);
    return st;
}

/* Makes a piece alive at `step`. False: it overlaps a live buffer that it may not overwrite. */
static bool be_born(check *self, uint32_t id, uint32_t step)
{
    mpl_buffer b = self->piece[id].b;
    uint32_t below = bitset_below(&self->live, self->rank[b]),
             above = bitset_above(&self->live, self->rank[b]);
    mpl_buffer met = MPL_NONE;

    if (below != MPL_NONE && share_memory(self, self->by_offset[below].id, b))
        met = self->by_offset[below].id;
    if (above != MPL_NONE && share_memory(self, self->by_offset[above].id, b)) {
        if (met != MPL_NONE)
            return false;
        met = self->by_offset[above].id;
    }
    if (met == MPL_NONE) {
        bitset_add(&self->live, self->rank[b]);
        return true;
    }
    if (self->overwritten[met] || !in_place(self, met, b, step))
        return false;
    self->overwritten[met] = 1;
    self->waiting[self->n_waiting++] = id;
    return true;
}

static mpl_status sweep_time(check *self)
{
    mpl_status st = MPL_OK;
    const piece *pieces = self->piece;
    uint32_t n_born = 0, n_dead = 0;

    while (n_born < self->n_pieces) {
        uint32_t step = (uint32_t)(self->by_birth[n_born].value / 2);

        for (; n_dead < self->n_pieces && self->by_death[n_dead].value <= step; n_dead++)
            bitset_remove(&self->live, self->rank[pieces[self->by_death[n_dead].id].b]);
        /* The buffers that they overwrote died at or before this step. */
        for (uint32_t i = 0; i < self->n_waiting; i++)
            if (pieces[self->waiting[i]].to > step)
                bitset_add(&self->live, self->rank[pieces[self->waiting[i]].b]);
        self->n_waiting = 0;
        for (; n_born < self->n_pieces && self->by_birth[n_born].value / 2 == step; n_born++)
            if (!be_born(self, self->by_birth[n_born].id, step)) {
                st = name_conflict(self, step);
                goto out;
            }
    }
out:
    return st;
}

static mpl_status cut_lifetimes(check *self)
{
    const mpl_problem *p = self->p;

    MPL_PASS(mpl_new(self->ctx, self->piece,
                     p->n + (size_t)(p->gap_begin != NULL ? p->gap_begin[p->n] : 0)));
    for (mpl_buffer b = 0; b < p->n; b++) {
        self->piece[self->n_pieces] = (piece){b, p->birth[b], p->death[b]};
        for (uint32_t i = 0; i < mpl_verify_gaps(p, b); i++) {
            self->piece[self->n_pieces++].to = p->gap_from[p->gap_begin[b] + i];
            self->piece[self->n_pieces] = (piece){b, p->gap_to[p->gap_begin[b] + i], p->death[b]};
        }
        self->n_pieces++;
    }
    return MPL_OK;
}

static mpl_status check_serial(check *self)
{
    MPL_PASS(cut_lifetimes(self));
    MPL_PASS(mpl_new_each(self->ctx, self->n_pieces, self->by_birth, self->by_death));
    MPL_PASS(mpl_new(self->ctx, self->overwritten, self->p->n));
    MPL_PASS(mpl_new(self->ctx, self->waiting, self->n_pieces));
    MPL_PASS(bitset_init(self->ctx, &self->live, self->p->n));
    for (uint32_t i = 0; i < self->n_pieces; i++) {
        /* A buffer back from a gap goes first: a new one may overwrite it in place at this step. */
        self->by_birth[i] = (key){2 * (uint64_t)self->piece[i].from +
                                      (i == 0 || self->piece[i - 1].b != self->piece[i].b),
                                  0, i};
        self->by_death[i] = (key){self->piece[i].to, 0, i};
    }
    qsort(self->by_birth, self->n_pieces, sizeof *self->by_birth, by_key);
    qsort(self->by_death, self->n_pieces, sizeof *self->by_death, by_key);
    return sweep_time(self);
}

/* ---- parallel: a sweep over offsets ---- */

static mpl_status check_parallel(check *self)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->p;
    mpl_buffer *open = NULL, low = MPL_NONE, high = MPL_NONE;
    uint32_t n_open = 0;

    MPL_TRY(mpl_new(self->ctx, open, p->n));
    for (uint32_t i = 0; i < p->n; i++) {
        mpl_buffer b = self->by_offset[i].id;
        uint32_t kept = 0;

        for (uint32_t j = 0; j < n_open; j++) {
            mpl_buffer a = open[j], first = a < b ? a : b, second = a < b ? b : a;

            if (!share_memory(self, a, b))
                continue;
            open[kept++] = a;
            if (mpl_verify_before(p->before, a, b) || mpl_verify_before(p->before, b, a) ||
                in_place(self, a, b, MPL_NONE) || in_place(self, b, a, MPL_NONE))
                continue;
            if (low == MPL_NONE || first < low || (first == low && second < high))
                low = first, high = second;
        }
        n_open = kept;
        open[n_open++] = b;
    }
    if (low != MPL_NONE)
        st = refuse_pair(self, low, high, MPL_NONE);
out:
    mpl_free(self->ctx, open);
    return st;
}

/* ---- all checks ---- */

/* Blocks are exclusive ranges: two of one pool never overlap, regardless of lifetimes. */
static mpl_status check_blocks(check *self)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = self->p;
    mpl_buffer reach = MPL_NONE;
    uint8_t *closed = NULL;
    char text_a[24], text_b[24];

    MPL_TRY(mpl_new(self->ctx, closed, p->n));
    for (uint32_t i = 0; i < p->n; i++) {
        mpl_buffer b = self->by_offset[i].id;
        uint32_t block = self->plan->block[b];
        bool same =
            reach != MPL_NONE && p->pool[reach] == p->pool[b] && self->plan->block[reach] == block;

        if (block >= p->n)
            MPL_FAIL(self->ctx, MPL_EINVALID, "buffer '%.100s' is in block %u of at most %u",
                     mpl_buffer_label(p, b, text_a), block, p->n);
        if (!same && closed[block])
            MPL_FAIL(self->ctx, MPL_EINVALID, "block %u has buffer '%.100s' beyond another block",
                     block, mpl_buffer_label(p, b, text_a));
        if (!same && reach != MPL_NONE && share_memory(self, reach, b))
            MPL_FAIL(self->ctx, MPL_EINVALID,
                     "blocks %u and %u overlap: buffers '%.100s' and '%.100s'",
                     self->plan->block[reach], block, mpl_buffer_label(p, reach, text_a),
                     mpl_buffer_label(p, b, text_b));
        closed[block] = 1;
        if (!same || end_of(self, b) > end_of(self, reach))
            reach = b;
    }
out:
    mpl_free(self->ctx, closed);
    return st;
}

/* The only thing that the verifier writes. */
static mpl_status put_bytes(const check *self, mpl_plan *plan)
{
    uint32_t n = plan->spread.n > 0 ? plan->spread.n : 1;
    uint64_t sum = 0;

    for (uint32_t k = 0; k < n; k++)
        if (!mpl_add_bytes(sum, self->home_bytes[k], &sum) || sum > INT64_MAX)
            return MPL_ERROR(self->ctx, MPL_EINVALID, "the memories together pass 2^63 - 1 bytes");
    if (plan->spread.n > 0)
        memcpy(plan->spread.bytes, self->home_bytes, n * sizeof *plan->spread.bytes);
    plan->peak_bytes = plan->pool_bytes[0] = sum;
    for (uint32_t pool = 1; pool < self->p->n_pools; pool++)
        plan->pool_bytes[pool] = self->home_bytes[n - 1 + pool];
    return MPL_OK;
}

mpl_status mpl_verify(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    check c = {.ctx = ctx, .p = p, .plan = plan};

    MPL_TRY(mpl_problem_check(ctx, p));
    MPL_TRY(check_whole(&c));
    MPL_TRY(mpl_new_each(ctx, p->n, c.by_offset, c.rank));
    for (mpl_buffer b = 0; b < p->n; b++)
        c.by_offset[b] = (key){plan->offset[b], c.home[b], b};
    qsort(c.by_offset, p->n, sizeof *c.by_offset, by_key);
    for (uint32_t i = 0; i < p->n; i++)
        c.rank[c.by_offset[i].id] = i;
    MPL_TRY(p->before == NULL ? check_serial(&c) : check_parallel(&c));
    if (plan->block != NULL)
        MPL_TRY(check_blocks(&c));
    if (p->constraints != NULL)
        MPL_TRY(mpl_verify_constraints(ctx, p, plan, &c.home_bytes[0]));
    MPL_TRY(mpl_verify_claims(ctx, p, plan, c.home_bytes[0]));
    MPL_TRY(put_bytes(&c, plan));
out:
    for (uint32_t i = 0; i < c.live.n_levels; i++)
        mpl_free(ctx, c.live.word[i]);
    mpl_free_each(ctx, c.by_offset, c.by_birth, c.by_death, c.rank, c.piece, c.overwritten,
                  c.waiting, c.home, c.home_bytes);
    return st;
}
