/* before.c -- closure and reduction of a partial order, as bit rows. See before.h. */
#include "graphs/problem/before.h"

static uint64_t *row_of(const mpl_before *before, uint32_t a)
{
    return before->row + (size_t)a * before->n_words;
}

/* Takes *row, or allocates rows when row is NULL. */
static mpl_status new_before(mpl_ctx *ctx, uint32_t n, uint64_t **row, mpl_before **out)
{
    mpl_status st = MPL_OK;
    mpl_before *before = NULL;

    MPL_TRY(mpl_new(ctx, before, 1));
    before->n = n;
    before->n_words = n / 64 + (n % 64 != 0);
    if (row == NULL)
        MPL_TRY(mpl_new(ctx, before->row, (size_t)n * before->n_words));
    else
        before->row = *row, *row = NULL;
    MPL_TRY(mpl_new(ctx, before->red_begin, (size_t)n + 1));
    *out = before, before = NULL;
out:
    mpl_before_free(ctx, before);
    return st;
}

/* Kahn's topological order of n elements into order[n]. MPL_EINPUT names one element of a cycle. */
static mpl_status sort_topologically(mpl_ctx *ctx, uint32_t n, const uint32_t *begin,
                                     const uint32_t *item, uint32_t *order)
{
    mpl_status st = MPL_OK;
    uint32_t *waiting = NULL, n_done = 0;

    MPL_TRY(mpl_new(ctx, waiting, n));
    for (uint32_t i = 0; i < begin[n]; i++)
        waiting[item[i]]++;
    for (uint32_t a = 0; a < n; a++)
        if (waiting[a] == 0)
            order[n_done++] = a;
    for (uint32_t at = 0; at < n_done; at++)
        for (uint32_t i = begin[order[at]]; i < begin[order[at] + 1]; i++)
            if (--waiting[item[i]] == 0)
                order[n_done++] = item[i];
    if (n_done < n) {
        uint32_t a = 0;

        while (waiting[a] == 0)
            a++;
        MPL_FAIL(ctx, MPL_EINPUT, "the relation has a cycle: buffer %u is before itself", a);
    }
out:
    mpl_free(ctx, waiting);
    return st;
}

/* The order is topological: if a is before b, a's successors are a strict superset of b's. */
mpl_status mpl_before_rank(mpl_ctx *ctx, const mpl_before *before, uint32_t *rank)
{
    mpl_status st = MPL_OK;
    uint32_t *count = NULL, *begin = NULL;

    MPL_TRY(mpl_new(ctx, count, before->n));
    MPL_TRY(mpl_new(ctx, begin, (size_t)before->n + 3));
    for (uint32_t a = 0; a < before->n; a++) {
        for (uint32_t w = 0; w < before->n_words; w++)
            count[a] += (uint32_t)__builtin_popcountll(row_of(before, a)[w]);
        begin[before->n - count[a] + 2]++;
    }
    mpl_lists_begin(begin, before->n + 1);
    for (uint32_t a = 0; a < before->n; a++)
        rank[begin[before->n - count[a] + 1]++] = a;
out:
    mpl_free_each(ctx, count, begin);
    return st;
}

/* Writes the reduction of row `a` to item[] and returns its length: successors of `a` that are not
 * successors of its successors. In topological order (`pos`), each successor that is still
 * uncovered when visited belongs to the reduction. */
static uint32_t reduce_row(const mpl_before *before, const uint32_t *rank, const uint32_t *pos,
                           uint32_t a, uint64_t *left, uint64_t *place, uint32_t *item)
{
    uint32_t n_item = 0;
    const uint64_t *row = row_of(before, a);

    /* place: uncovered successors by topological position, so that counting zeros finds the next
     * one. left: the same by id, so that a whole row is subtracted at once. */
    memcpy(left, row, before->n_words * sizeof *left);
    memset(place, 0, before->n_words * sizeof *place);
    for (uint32_t w = 0; w < before->n_words; w++)
        for (uint64_t bits = row[w]; bits != 0; bits &= bits - 1)
            mpl_bit_add(place, pos[w * 64 + (uint32_t)__builtin_ctzll(bits)]);
    for (uint32_t w = 0; w < before->n_words; w++)
        for (uint64_t bits = place[w]; bits != 0; bits &= bits - 1) {
            uint32_t b = rank[w * 64 + (uint32_t)__builtin_ctzll(bits)];

            if (!mpl_bit_has(left, b))
                continue;
            item[n_item++] = b;
            for (uint32_t k = 0; k < before->n_words; k++)
                left[k] &= ~row_of(before, b)[k];
        }
    return n_item;
}

static mpl_status reduce(mpl_ctx *ctx, mpl_before *before)
{
    mpl_status st = MPL_OK;
    uint32_t *rank = NULL, *pos = NULL, *item = NULL;
    uint64_t *left = NULL, *place = NULL;
    size_t cap = 0;
    uint32_t total = 0;

    MPL_TRY(mpl_new_each(ctx, before->n, rank, pos, item));
    MPL_TRY(mpl_new_each(ctx, before->n_words, left, place));
    MPL_TRY(mpl_before_rank(ctx, before, rank));
    for (uint32_t i = 0; i < before->n; i++)
        pos[rank[i]] = i;
    MPL_TRY(mpl_reserve(ctx, before->red_item, cap, 1));
    for (uint32_t a = 0; a < before->n; a++) {
        uint32_t n_item = reduce_row(before, rank, pos, a, left, place, item);

        if (n_item > MPL_NONE - 1 - total)
            MPL_FAIL(ctx, MPL_EINPUT, "the partial order has more than 2^32 arcs");
        MPL_TRY(mpl_reserve(ctx, before->red_item, cap, (size_t)total + n_item));
        mpl_sort_u32(item, n_item);
        memcpy(before->red_item + total, item, n_item * sizeof *item);
        total += n_item;
        before->red_begin[a + 1] = total;
    }
out:
    mpl_free_each(ctx, rank, pos, item, left, place);
    return st;
}

/* Fills the rows of `before` with what each element reaches over the lists, in reverse topological
 * order. order NULL: ids are in topological order. */
static void close_rows(mpl_before *before, const uint32_t *begin, const uint32_t *item,
                       const uint32_t *order)
{
    for (uint32_t at = before->n; at-- > 0;) {
        uint32_t a = order != NULL ? order[at] : at;
        uint64_t *row = row_of(before, a);

        for (uint32_t i = begin[a]; i < begin[a + 1]; i++) {
            const uint64_t *next = row_of(before, item[i]);

            for (uint32_t w = 0; w < before->n_words; w++)
                row[w] |= next[w];
            mpl_bit_add(row, item[i]);
        }
    }
}

mpl_status mpl_before_from_rows_take(mpl_ctx *ctx, uint32_t n, uint64_t **rows, mpl_before **out)
{
    mpl_status st = MPL_OK;
    mpl_before *before = NULL;

    MPL_TRY(new_before(ctx, n, rows, &before));
    MPL_TRY(reduce(ctx, before));
    *out = before, before = NULL;
out:
    mpl_before_free(ctx, before);
    return st;
}

mpl_status mpl_before_copy(mpl_ctx *ctx, const mpl_before *from, mpl_before **out)
{
    mpl_status st = MPL_OK;
    mpl_before *before = NULL;
    uint32_t n_arcs = from->red_begin[from->n];

    MPL_TRY(new_before(ctx, from->n, NULL, &before));
    MPL_TRY(mpl_new(ctx, before->red_item, n_arcs));
    memcpy(before->row, from->row, (size_t)from->n * from->n_words * sizeof *before->row);
    memcpy(before->red_begin, from->red_begin, ((size_t)from->n + 1) * sizeof *before->red_begin);
    memcpy(before->red_item, from->red_item, n_arcs * sizeof *before->red_item);
    *out = before, before = NULL;
out:
    mpl_before_free(ctx, before);
    return st;
}

mpl_status mpl_before_from_arcs(mpl_ctx *ctx, uint32_t n, size_t n_arcs, const uint32_t *from,
                                const uint32_t *to, mpl_before **out)
{
    mpl_status st = MPL_OK;
    mpl_before *before = NULL;
    uint32_t *begin = NULL, *item = NULL, *order = NULL;

    for (size_t i = 0; i < n_arcs; i++)
        if (from[i] >= n || to[i] >= n)
            MPL_FAIL(ctx, MPL_EINPUT, "relation %u before %u: there are only %u buffers, 0 to %u",
                     from[i], to[i], n, n > 0 ? n - 1 : 0);
    MPL_TRY(mpl_lists_new(ctx, n, n_arcs, from, to, &begin, &item));
    MPL_TRY(mpl_new(ctx, order, n));
    MPL_TRY(sort_topologically(ctx, n, begin, item, order));
    MPL_TRY(new_before(ctx, n, NULL, &before));
    close_rows(before, begin, item, order);
    MPL_TRY(reduce(ctx, before));
    *out = before, before = NULL;
out:
    mpl_free_each(ctx, begin, item, order);
    mpl_before_free(ctx, before);
    return st;
}

/* Sets common[] to the events that every last event of `a` reaches. */
static void meet_reached(const mpl_before *reach, const mpl_access *access, uint32_t a,
                         uint64_t *common)
{
    memset(common, 0xff, reach->n_words * sizeof *common);
    for (uint32_t i = access->last_begin[a]; i < access->last_begin[a + 1]; i++)
        for (uint32_t w = 0; w < reach->n_words; w++)
            common[w] &= row_of(reach, access->last_item[i])[w];
}

mpl_status mpl_before_from_access(mpl_ctx *ctx, uint32_t n, const mpl_access *access,
                                  mpl_before **out)
{
    mpl_status st = MPL_OK;
    mpl_before *reach = NULL, *o = NULL;
    uint64_t *common = NULL;

    MPL_TRY(new_before(ctx, access->n_events, NULL, &reach));
    close_rows(reach, access->edge_begin, access->edge_item, NULL);
    MPL_TRY(new_before(ctx, n, NULL, &o));
    MPL_TRY(mpl_new(ctx, common, reach->n_words));
    for (uint32_t a = 0; a < n; a++) {
        meet_reached(reach, access, a, common);
        for (uint32_t b = 0; b < n; b++) {
            uint32_t i = access->first_begin[b];

            while (i < access->first_begin[b + 1] && mpl_bit_has(common, access->first_item[i]))
                i++;
            if (i == access->first_begin[b + 1])
                mpl_bit_add(row_of(o, a), b);
        }
    }
    mpl_before_free(ctx, reach), reach = NULL; /* as large as the result: freed before */
    MPL_TRY(reduce(ctx, o));
    *out = o, o = NULL;
out:
    mpl_free(ctx, common);
    mpl_before_free(ctx, reach);
    mpl_before_free(ctx, o);
    return st;
}

/* Transposes 64 rows of one word: exchanges halves of rows 32 apart, then quarters 16 apart, .. */
static void transpose_block(uint64_t block[64])
{
    uint64_t mask = UINT32_MAX;

    for (uint32_t half = 32; half > 0; half /= 2, mask ^= mask << half)
        for (uint32_t i = 0; i < 64; i = ((i | half) + 1) & ~half) {
            uint64_t differs = (block[i] >> half ^ block[i | half]) & mask;

            block[i] ^= differs << half;
            block[i | half] ^= differs;
        }
}

mpl_status mpl_before_transpose(mpl_ctx *ctx, const mpl_before *before, uint64_t **rows)
{
    uint64_t *turned = NULL, block[64];
    uint32_t n = before->n, n_words = before->n_words;

    MPL_PASS(mpl_new(ctx, turned, (size_t)n * n_words));
    for (uint32_t top = 0; top < n_words; top++)
        for (uint32_t w = 0; w < n_words; w++) {
            for (uint32_t i = 0; i < 64; i++)
                block[i] = top * 64 + i < n ? row_of(before, top * 64 + i)[w] : 0;
            transpose_block(block);
            for (uint32_t i = 0; i < 64 && w * 64 + i < n; i++)
                turned[(size_t)(w * 64 + i) * n_words + top] = block[i];
        }
    *rows = turned;
    return MPL_OK;
}

mpl_status mpl_conflict_rows(mpl_ctx *ctx, const mpl_problem *p, uint64_t **rows)
{
    mpl_status st = MPL_OK;
    const mpl_before *before = p->before;
    uint64_t *own = NULL, *peers = NULL;
    uint32_t n_words = before->n_words;

    MPL_TRY(mpl_new(ctx, peers, (size_t)p->n_pools * n_words));
    for (mpl_buffer b = 0; b < p->n; b++)
        mpl_bit_add(peers + (size_t)p->pool[b] * n_words, b);
    MPL_TRY(mpl_before_transpose(ctx, before, &own));
    for (mpl_buffer a = 0; a < p->n; a++) {
        uint64_t *row = own + (size_t)a * n_words;
        const uint64_t *after = row_of(before, a), *pool = peers + (size_t)p->pool[a] * n_words;

        for (uint32_t w = 0; w < n_words; w++)
            row[w] = pool[w] & ~(row[w] | after[w]);
        mpl_bit_drop(row, a);
    }
    *rows = own;
out:
    mpl_free(ctx, peers);
    return st;
}

/* Bit i: buffer `first` + i, of the next 64, is born at `step` or later. */
static uint64_t born_from(const mpl_problem *p, uint32_t step, uint32_t first)
{
    uint32_t n = p->n - first < 64 ? p->n - first : 64;
    uint64_t bits = 0;

    for (uint32_t i = 0; i < n; i++)
        bits |= (uint64_t)(step <= p->birth[first + i]) << i;
    return bits;
}

mpl_status mpl_problem_as_parallel(mpl_ctx *ctx, mpl_problem *p)
{
    mpl_status st = MPL_OK;
    uint32_t n_words = p->n / 64 + (p->n % 64 != 0);
    uint64_t *rows = NULL;
    mpl_before *before = NULL;

    mpl_assert(p->before == NULL);
    MPL_TRY(mpl_new(ctx, rows, (size_t)p->n * n_words));
    for (uint32_t a = 0; a < p->n; a++)
        for (uint32_t w = 0; w < n_words; w++)
            rows[(size_t)a * n_words + w] = born_from(p, p->death[a], w * 64);
    MPL_TRY(mpl_before_from_rows_take(ctx, p->n, &rows, &before));
    p->before = before;
    p->n_steps = 0;
    memset(p->birth, 0, p->n * sizeof *p->birth);
    memset(p->death, 0, p->n * sizeof *p->death);
    mpl_free_each(ctx, p->gap_begin, p->gap_from, p->gap_to);
    p->gap_begin = p->gap_from = p->gap_to = NULL;
out:
    mpl_free(ctx, rows);
    return st;
}

void mpl_before_free(mpl_ctx *ctx, mpl_before *before)
{
    if (before == NULL)
        return;
    mpl_free(ctx, before->row);
    mpl_free(ctx, before->red_begin);
    mpl_free(ctx, before->red_item);
    mpl_free(ctx, before);
}
