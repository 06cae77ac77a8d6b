/* nnc_graph.c -- the allocation graph. See nnc_graph.h.
 *
 * Invariant: the ranges on the edges that leave (enter) an inserted buffer tile its own range
 * exactly; flow is conserved.
 * Cost     O(n) edges; an insertion scans them once and measures two longest paths, O(n + arcs).
 * Limits   n^2 / 4 bytes for the two relations: 65,536 buffers need 1 GiB. */
#include "planners/published/nnc_graph.h"

#include "graphs/problem/before.h"
#include "graphs/problem/fold_pairs.h"

#define MAX_BUFFERS 65536

/* The edges gathered in graph->usable, and the positions in time between their ends. */
typedef struct mpl_nnc_span {
    uint32_t n;
    uint32_t low, high;
} mpl_nnc_span;

static void graph_free(mpl_nnc_graph *g)
{
    if (g == NULL)
        return;
    mpl_free_each(g->ctx, g->after, g->open, g->pool_mask, g->size, g->count, g->edge, g->cursor,
                  g->block_bytes, g->block_pool, g->block, g->offset, g->time.rank, g->time.pos,
                  g->time.hop, g->usable, g->hops, g);
}

static mpl_status start_time(mpl_nnc_graph *g)
{
    const mpl_access *access = g->p->access;
    mpl_nnc_time *time = &g->time;

    time->n = access != NULL ? access->n_events : g->p->n;
    time->begin = access != NULL ? access->edge_begin : g->p->before->red_begin;
    time->item = access != NULL ? access->edge_item : g->p->before->red_item;
    time->penalty = time->n + 1;
    MPL_PASS(mpl_new_each(g->ctx, time->n, time->rank, time->pos, time->hop));
    if (access == NULL)
        MPL_PASS(mpl_before_rank(g->ctx, g->p->before, time->rank));
    for (uint32_t e = 0; access != NULL && e < time->n; e++)
        time->rank[e] = e; /* events are in program order */
    for (uint32_t at = 0; at < time->n; at++)
        time->pos[time->rank[at]] = at;
    return MPL_OK;
}

/* Open buffers that interfere with b, as words: of its pool, neither before, after nor b itself. */
static uint64_t rivals(const mpl_nnc_graph *g, mpl_buffer b, uint32_t w)
{
    size_t at = (size_t)b * g->n_words + w;
    uint64_t bits = ~(g->p->before->row[at] | g->after[at]) & g->open[w] &
                    g->pool_mask[(size_t)g->p->pool[b] * g->n_words + w];

    if (w == b / 64)
        bits &= ~(UINT64_C(1) << (b % 64));
    return bits;
}

static mpl_status start_counts(mpl_nnc_graph *g)
{
    mpl_status st = MPL_OK;
    const mpl_problem *p = g->p;
    char label[24];
    uint32_t *grain = NULL; /* [n_pools] widest alignment, which every range must have */

    MPL_TRY(mpl_new(g->ctx, grain, p->n_pools));
    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->align[b] > grain[p->pool[b]])
            grain[p->pool[b]] = p->align[b];
    for (mpl_buffer b = 0; b < p->n; b++) {
        mpl_bit_add(g->open, b);
        g->pool_mask[(size_t)p->pool[b] * g->n_words + b / 64] |= UINT64_C(1) << (b % 64);
        if (!mpl_align_bytes(p->bytes[b], grain[p->pool[b]], &g->size[b]))
            MPL_FAIL(g->ctx, MPL_EINPUT, "buffer '%s' is too large", mpl_buffer_label(p, b, label));
    }
    for (mpl_buffer b = 0; b < p->n; b++)
        for (uint32_t w = 0; w < g->n_words; w++)
            g->count[b] += (uint32_t)__builtin_popcountll(rivals(g, b, w));
    g->n_open = p->n;
out:
    mpl_free(g->ctx, grain);
    return st;
}

static mpl_status graph_new(mpl_ctx *ctx, const mpl_problem *p, mpl_nnc_graph **out)
{
    mpl_status st = MPL_OK;
    mpl_nnc_graph *g = NULL;

    MPL_TRY(mpl_new(ctx, g, 1));
    g->ctx = ctx;
    g->p = p;
    g->n_words = p->before->n_words;
    MPL_TRY(mpl_before_transpose(ctx, p->before, &g->after));
    MPL_TRY(mpl_new(ctx, g->open, g->n_words));
    MPL_TRY(mpl_new(ctx, g->pool_mask, (size_t)p->n_pools * g->n_words));
    MPL_TRY(mpl_new_each(ctx, p->n, g->size, g->count, g->cursor, g->block, g->offset));
    MPL_TRY(start_counts(g));
    MPL_TRY(start_time(g));
    *out = g, g = NULL;
out:
    graph_free(g);
    return st;
}

/* Where b begins (last = false) or ends in time: [*n] items of the time graph. Without events a
 * buffer is its own item. */
static const uint32_t *items_of(const mpl_nnc_graph *g, const mpl_buffer *b, bool last, uint32_t *n)
{
    const mpl_access *access = g->p->access;
    const uint32_t *begin = access == NULL ? NULL : last ? access->last_begin : access->first_begin;

    *n = access == NULL ? 1 : begin[*b + 1] - begin[*b];
    return access == NULL ? b : (last ? access->last_item : access->first_item) + begin[*b];
}

/* Lowest and highest position in time at which `b` begins or ends. */
static void span_of(const mpl_nnc_graph *g, mpl_buffer b, bool last, uint32_t *low, uint32_t *high)
{
    uint32_t n;
    const uint32_t *item = items_of(g, &b, last, &n);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = g->time.pos[item[i]];

        *low = at < *low ? at : *low;
        *high = at > *high ? at : *high;
    }
}

/* Longest path measured to the begin or end of `b`: its edges, 0 if none was reached. */
static uint32_t hops_at(const mpl_nnc_graph *g, mpl_buffer b, bool last)
{
    uint32_t n, most = 0;
    const uint32_t *item = items_of(g, &b, last, &n);

    for (uint32_t i = 0; i < n; i++)
        most = g->time.hop[item[i]] > most ? g->time.hop[item[i]] : most;
    return most > 0 ? most - 1 : 0;
}

static void set_hops(mpl_nnc_graph *g, mpl_buffer b, bool last, uint32_t value)
{
    uint32_t n;
    const uint32_t *item = items_of(g, &b, last, &n);

    for (uint32_t i = 0; i < n; i++)
        g->time.hop[item[i]] = value;
}

/* hop[e] = nodes on the longest path from e to the begin of `first`, for positions from `low` on.
 * hop[] is zero before; wipe() clears it after. */
static uint32_t measure_to(mpl_nnc_graph *g, mpl_buffer first, uint32_t low)
{
    mpl_nnc_time *time = &g->time;
    uint32_t from = MPL_NONE, high = 0;

    span_of(g, first, false, &from, &high);
    set_hops(g, first, false, 1);
    for (uint32_t at = high; at-- > low;) {
        uint32_t e = time->rank[at];

        for (uint32_t i = time->begin[e]; i < time->begin[e + 1]; i++)
            if (time->hop[time->item[i]] > 0 && time->hop[e] < time->hop[time->item[i]] + 1)
                time->hop[e] = time->hop[time->item[i]] + 1;
    }
    g->ticks += high > low ? high - low : 0;
    return high;
}

/* hop[e] = nodes on the longest path from the end of `last` to e, for positions up to `high`. */
static uint32_t measure_from(mpl_nnc_graph *g, mpl_buffer last, uint32_t high)
{
    mpl_nnc_time *time = &g->time;
    uint32_t low = MPL_NONE, to = 0;

    span_of(g, last, true, &low, &to);
    set_hops(g, last, true, 1);
    for (uint32_t at = low; at < high; at++) {
        uint32_t e = time->rank[at];

        for (uint32_t i = time->begin[e]; time->hop[e] > 0 && i < time->begin[e + 1]; i++)
            if (time->pos[time->item[i]] <= high && time->hop[time->item[i]] < time->hop[e] + 1)
                time->hop[time->item[i]] = time->hop[e] + 1;
    }
    g->ticks += high > low ? high - low : 0;
    return low;
}

static void wipe(mpl_nnc_graph *g, uint32_t low, uint32_t high)
{
    for (uint32_t at = low; at <= high && at < g->time.n; at++)
        g->time.hop[g->time.rank[at]] = 0;
}

bool mpl_nnc_usable(const mpl_nnc_graph *g, const mpl_nnc_edge *edge, mpl_buffer first,
                    mpl_buffer last, uint64_t need)
{
    uint32_t n = g->p->n;

    if (edge->bytes < need || g->block_pool[edge->block] != g->p->pool[first] ||
        (edge->from == n && edge->to == n + 1) ||
        (g->inner_only && (edge->from == n || edge->to == n + 1)))
        return false;
    return (edge->from == n || mpl_bit_has(g->after + (size_t)first * g->n_words, edge->from)) &&
           (edge->to == n + 1 || mpl_is_before(g->p->before, last, edge->to));
}

bool mpl_nnc_has_edge(mpl_nnc_graph *g, mpl_buffer b)
{
    uint32_t *at = &g->cursor[b];

    while (*at < g->n_edges && !mpl_nnc_usable(g, &g->edge[*at], b, b, g->size[b])) {
        ++*at;
        g->ticks++;
    }
    return *at < g->n_edges;
}

static uint64_t largest(const mpl_nnc_graph *g, const mpl_nnc_tuple *tuple)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < tuple->n; i++)
        most = mpl_max_u64(most, g->size[tuple->member[i]]);
    return most;
}

/* Keeps edge i if the tuple can use it, and widens the span of time of all that are kept. */
static void gather(mpl_nnc_graph *g, const mpl_nnc_tuple *tuple, uint64_t need, uint32_t i,
                   mpl_nnc_span *kept)
{
    const mpl_nnc_edge *edge = &g->edge[i];
    uint32_t n = g->p->n, unused = 0;

    g->ticks++;
    if (!mpl_nnc_usable(g, edge, tuple->member[0], tuple->member[tuple->n - 1], need))
        return;
    g->usable[kept->n++] = i;
    if (edge->from != n)
        span_of(g, edge->from, true, &kept->low, &unused);
    unused = MPL_NONE;
    if (edge->to != n + 1)
        span_of(g, edge->to, false, &unused, &kept->high);
}

/* Of the edges kept, the one of fewest hops, ties by age. */
static uint32_t fewest_hops(mpl_nnc_graph *g, const mpl_nnc_tuple *tuple, const mpl_nnc_span *kept)
{
    mpl_buffer first = tuple->member[0], last = tuple->member[tuple->n - 1];
    uint32_t n = g->p->n, low = kept->low, high = kept->high, top, bottom, best = MPL_NONE;
    uint64_t least = UINT64_MAX;

    top = measure_to(g, first, low);
    for (uint32_t i = 0; i < kept->n; i++) {
        const mpl_nnc_edge *edge = &g->edge[g->usable[i]];

        g->hops[i] = edge->from == n ? g->time.penalty : hops_at(g, edge->from, true);
    }
    wipe(g, low < top ? low : 0, top);
    bottom = measure_from(g, last, high);
    for (uint32_t i = 0; i < kept->n; i++) {
        const mpl_nnc_edge *edge = &g->edge[g->usable[i]];
        uint64_t hops = (uint64_t)g->hops[i] +
                        (edge->to == n + 1 ? g->time.penalty : hops_at(g, edge->to, false));

        if (hops < least || (hops == least && g->usable[i] < best)) {
            least = hops;
            best = g->usable[i];
        }
    }
    wipe(g, bottom, high > bottom ? high : g->time.n);
    return best;
}

uint32_t mpl_nnc_best_edge(mpl_nnc_graph *g, const mpl_nnc_tuple *tuple, uint32_t n,
                           const uint32_t *among)
{
    mpl_nnc_span kept = {0, MPL_NONE, 0};
    uint64_t need = largest(g, tuple);

    for (uint32_t i = 0; among != NULL && i < n; i++)
        gather(g, tuple, need, among[i], &kept);
    for (uint32_t i = g->cursor[tuple->member[0]]; among == NULL && i < g->n_edges; i++)
        gather(g, tuple, need, i, &kept);
    if (kept.n < 2)
        return kept.n == 1 ? g->usable[0] : MPL_NONE;
    return fewest_hops(g, tuple, &kept);
}

static mpl_status push_edge(mpl_nnc_graph *g, uint32_t from, uint32_t to, uint32_t block,
                            uint64_t bytes, uint64_t offset)
{
    if (bytes == 0)
        return MPL_OK;
    if (g->n_edges == MPL_NONE - 1)
        return MPL_REFUSE(g->ctx, "the allocation graph has more than 2^32 edges");
    MPL_PASS(mpl_reserve(g->ctx, g->edge, g->cap_edges, (size_t)g->n_edges + 1));
    MPL_PASS(mpl_reserve(g->ctx, g->usable, g->cap_usable, (size_t)g->n_edges + 1));
    MPL_PASS(mpl_reserve(g->ctx, g->hops, g->cap_hops, (size_t)g->n_edges + 1));
    g->edge[g->n_edges++] = (mpl_nnc_edge){from, to, block, bytes, offset};
    return MPL_OK;
}

static mpl_status open_block(mpl_nnc_graph *g, uint64_t bytes, uint32_t pool, uint32_t *block)
{
    MPL_PASS(mpl_reserve(g->ctx, g->block_bytes, g->cap_block_bytes, (size_t)g->n_blocks + 1));
    MPL_PASS(mpl_reserve(g->ctx, g->block_pool, g->cap_block_pool, (size_t)g->n_blocks + 1));
    g->block_bytes[g->n_blocks] = bytes;
    g->block_pool[g->n_blocks] = pool;
    *block = g->n_blocks++;
    return MPL_OK;
}

static void close_buffer(mpl_nnc_graph *g, mpl_buffer b, uint32_t block, uint64_t offset)
{
    for (uint32_t w = 0; w < g->n_words; w++)
        for (uint64_t bits = rivals(g, b, w); bits != 0; bits &= bits - 1)
            g->count[w * 64 + (uint32_t)__builtin_ctzll(bits)]--;
    mpl_bit_drop(g->open, b);
    g->n_open--;
    g->block[b] = block;
    g->offset[b] = offset;
}

/* Adds the edges of the tuple inside (from, to): the parts of [offset, offset + size) that each
 * member takes over from the one before it in time, and hands on. */
static mpl_status push_tuple(mpl_nnc_graph *g, const mpl_nnc_tuple *tuple, uint32_t from,
                             uint32_t to, uint32_t block, uint64_t offset)
{
    uint64_t covered = 0;

    for (uint32_t i = 0; i < tuple->n; i++) {
        uint64_t size = g->size[tuple->member[i]];

        if (size > covered) {
            MPL_PASS(push_edge(g, from, tuple->member[i], block, size - covered, offset + covered));
            covered = size;
        }
    }
    for (uint32_t i = 0; i < tuple->n; i++) {
        uint64_t size = g->size[tuple->member[i]];

        covered = 0;
        for (uint32_t k = i + 1; k < tuple->n; k++) {
            uint64_t both = mpl_min_u64(size, g->size[tuple->member[k]]);

            if (both > covered) {
                MPL_PASS(push_edge(g, tuple->member[i], tuple->member[k], block, both - covered,
                                   offset + covered));
                covered = both;
            }
        }
        MPL_PASS(push_edge(g, tuple->member[i], to, block, size - covered, offset + covered));
    }
    return MPL_OK;
}

/* Whether the ranges that enter an inserted buffer, and those that leave it, add up to its size. */
static bool flow_is_conserved(const mpl_nnc_graph *g)
{
    for (mpl_buffer b = 0; b < g->p->n; b++) {
        uint64_t in = 0, out = 0;

        if (mpl_bit_has(g->open, b))
            continue;
        for (uint32_t i = 0; i < g->n_edges; i++) {
            const mpl_nnc_edge *edge = &g->edge[i];
            bool inside = edge->block == g->block[b] && edge->offset >= g->offset[b] &&
                          edge->offset + edge->bytes <= g->offset[b] + g->size[b];

            if ((edge->to == b || edge->from == b) && edge->bytes > 0 && !inside)
                return mpl_broken("edge %u carries bytes that buffer %u does not have", i, b);
            in += edge->to == b ? edge->bytes : 0;
            out += edge->from == b ? edge->bytes : 0;
        }
        if (in != g->size[b] || out != g->size[b])
            return mpl_broken("the flow through buffer %u is not its size", b);
    }
    return true;
}

mpl_status mpl_nnc_insert(mpl_nnc_graph *g, const mpl_nnc_tuple *tuple, uint32_t edge)
{
    uint64_t need = largest(g, tuple), offset = 0;
    uint32_t from = g->p->n, to = g->p->n + 1, block;

    if (edge == MPL_NONE) {
        MPL_PASS(open_block(g, need, g->p->pool[tuple->member[0]], &block));
    } else {
        mpl_nnc_edge *e = &g->edge[edge];

        from = e->from;
        to = e->to;
        block = e->block;
        offset = e->offset;
        e->bytes -= need;
        e->offset += need;
    }
    MPL_PASS(push_tuple(g, tuple, from, to, block, offset));
    for (uint32_t i = 0; i < tuple->n; i++)
        close_buffer(g, tuple->member[i], block, offset);
    mpl_assert_slow(flow_is_conserved(g));
    return MPL_OK;
}

/* Lays blocks end to end in their pools; maps block ids and offsets to the whole problem. */
static mpl_status write_plan(const mpl_nnc_graph *g, const mpl_problem *p, const uint32_t *into,
                             mpl_plan *out)
{
    mpl_status st = MPL_OK;
    uint64_t *base = NULL, *end = NULL;

    MPL_TRY(mpl_new(g->ctx, base, g->n_blocks));
    MPL_TRY(mpl_new(g->ctx, end, p->n_pools));
    MPL_TRY(mpl_new(g->ctx, out->block, p->n));
    for (mpl_buffer b = 0; b < g->p->n; b++) /* a block has the alignment of all its buffers */
        if (base[g->block[b]] < g->p->align[b])
            base[g->block[b]] = g->p->align[b];
    for (uint32_t i = 0; i < g->n_blocks; i++) {
        uint64_t *at = &end[g->block_pool[i]];

        if (!mpl_align_bytes(*at, base[i], &base[i]) ||
            !mpl_add_bytes(base[i], g->block_bytes[i], at))
            MPL_FAIL(g->ctx, MPL_EINPUT, "the blocks of problem '%.200s' need more than 2^64 bytes",
                     p->name);
    }
    for (mpl_buffer b = 0; b < p->n; b++) {
        out->block[b] = g->block[into[b]];
        out->offset[b] = base[out->block[b]] + g->offset[into[b]];
    }
    out->claim = MPL_FEASIBLE;
out:
    mpl_free_each(g->ctx, base, end);
    return st;
}

mpl_status mpl_nnc_check(mpl_ctx *ctx, const mpl_problem *p)
{
    char label[24];

    if (p->n > MAX_BUFFERS)
        return MPL_ERROR(ctx, MPL_EUNAVAIL,
                         "problem '%.200s' has %u buffers; NNC's planners take up to %d", p->name,
                         p->n, MAX_BUFFERS);
    for (mpl_buffer b = 0; p->fixed != NULL && b < p->n; b++)
        if (p->fixed[b] != MPL_UNFIXED)
            return MPL_ERROR(ctx, MPL_EUNAVAIL,
                             "buffer '%.100s' has a fixed place, which NNC's planners cannot keep",
                             mpl_buffer_label(p, b, label));
    return MPL_OK;
}

mpl_status mpl_nnc_plan(mpl_run *run, const mpl_problem *p, mpl_plan *out,
                        mpl_status (*start)(mpl_run *run, mpl_nnc_graph *g, void *arg),
                        mpl_status (*insert_next)(mpl_nnc_graph *g, void *arg), void *arg)
{
    mpl_status st = MPL_OK;
    mpl_problem *folded = NULL;
    mpl_nnc_graph *g = NULL;
    uint32_t *into = NULL;

    MPL_TRY(mpl_nnc_check(run->ctx, p));
    MPL_TRY(mpl_new(run->ctx, into, p->n));
    MPL_TRY(mpl_problem_fold(run->ctx, p, &folded, into));
    if (folded->before == NULL)
        MPL_TRY(mpl_problem_as_parallel(run->ctx, folded));
    MPL_TRY(graph_new(run->ctx, folded, &g));
    if (start != NULL)
        MPL_TRY(start(run, g, arg));
    while (g->n_open > 0)
        MPL_TRY(insert_next(g, arg));
    mpl_assert_ok(flow_is_conserved(g));
    MPL_TRY(write_plan(g, p, into, out));
    run->ticks = g->ticks;
out:
    graph_free(g);
    mpl_problem_free(run->ctx, folded);
    mpl_free(run->ctx, into);
    return st;
}
