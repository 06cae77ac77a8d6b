/* caching.c -- the requests of a problem, and a model of a caching allocator. See caching.h. */
#include "runtime/exec/caching.h"

#include <stdlib.h>

#define UNIT        UINT64_C(512)
#define SMALL_SIZE  (UINT64_C(1) << 20)  /* largest small request */
#define SMALL_PIECE (UINT64_C(2) << 20)  /* segment of small requests */
#define LARGE_PIECE (UINT64_C(20) << 20) /* segment of requests below ALONE_SIZE */
#define ALONE_SIZE  (UINT64_C(10) << 20) /* from here on a request has its own segment */
#define ALONE_UNIT  (UINT64_C(2) << 20)

/* ---- requests ---- */

typedef struct moment {
    uint32_t step;
    mpl_request request;
} moment;

/* By step; in a step requests before releases; then by id. */
MPL_ORDER_BY(compare, moment,
             MPL_RISING(step) MPL_RISING(request.gives_back) MPL_RISING(request.id))

mpl_status mpl_requests_make(mpl_ctx *ctx, const mpl_problem *p, uint32_t pool, mpl_request **out,
                             uint32_t *n)
{
    mpl_status st = MPL_OK;
    moment *all = NULL;
    mpl_request *request = NULL;
    uint32_t n_moments = 0;

    if (p->before != NULL)
        MPL_FAIL(ctx, MPL_EUNAVAIL, "buffers under a partial order have no order of requests");
    MPL_TRY(mpl_new(ctx, all, (size_t)p->n * 2));
    for (mpl_buffer b = 0; b < p->n; b++) {
        if (p->pool[b] != pool || p->bytes[b] == 0)
            continue;
        all[n_moments++] = (moment){p->birth[b], {b, p->bytes[b], false}};
        /* its last step still needs it */
        all[n_moments++] = (moment){p->death[b] - 1, {b, p->bytes[b], true}};
    }
    qsort(all, n_moments, sizeof *all, compare);
    MPL_TRY(mpl_new(ctx, request, n_moments));
    for (uint32_t i = 0; i < n_moments; i++)
        request[i] = all[i].request;
    *out = request, request = NULL;
    *n = n_moments;
out:
    mpl_free_each(ctx, all, request);
    return st;
}

/* ---- the allocator ---- */

typedef struct block {
    uint64_t bytes;
    mpl_buffer owner;        /* MPL_NONE: free */
    uint32_t previous, next; /* neighbours in its segment; MPL_NONE at the ends */
    uint32_t segment;
    bool small, gone;
} block;

typedef struct allocator {
    mpl_ctx *ctx;
    block *block;
    size_t room;
    uint32_t n_blocks;
    uint64_t capacity, reserved, allocated, requested;
    mpl_caching_facts *facts;
} allocator;

static mpl_status add_block(allocator *a, block b, uint32_t *out)
{
    MPL_PASS(mpl_reserve(a->ctx, a->block, a->room, (size_t)a->n_blocks + 1));
    a->block[a->n_blocks] = b;
    *out = a->n_blocks++;
    return MPL_OK;
}

/* The smallest free block that fits, the oldest among equals; MPL_NONE: none. */
static uint32_t best_fit(const allocator *a, uint64_t bytes, bool small)
{
    uint32_t best = MPL_NONE;

    for (uint32_t i = 0; i < a->n_blocks; i++) {
        const block *b = &a->block[i];

        if (!b->gone && b->owner == MPL_NONE && b->small == small && b->bytes >= bytes &&
            (best == MPL_NONE || b->bytes < a->block[best].bytes))
            best = i;
    }
    return best;
}

/* Releases every segment that is one free block. */
static void flush(allocator *a)
{
    for (uint32_t i = 0; i < a->n_blocks; i++) {
        block *b = &a->block[i];

        if (!b->gone && b->owner == MPL_NONE && b->previous == MPL_NONE && b->next == MPL_NONE) {
            b->gone = true;
            a->reserved -= b->bytes;
        }
    }
    a->facts->n_flushes++;
}

static mpl_status add_segment(allocator *a, uint64_t bytes, bool small, uint32_t *out)
{
    uint64_t piece = small ? SMALL_PIECE : LARGE_PIECE;

    if (bytes >= ALONE_SIZE && !mpl_align_bytes(bytes, ALONE_UNIT, &piece))
        return MPL_ERROR(a->ctx, MPL_ELIMIT, "a request of %" PRIu64 " bytes", bytes);
    if (piece > a->capacity - a->reserved)
        flush(a);
    if (piece > a->capacity - a->reserved)
        return MPL_ERROR(a->ctx, MPL_ELIMIT,
                         "the caching allocator holds %" PRIu64 " of %" PRIu64
                         " bytes and needs %" PRIu64 " more",
                         a->reserved, a->capacity, piece);
    MPL_PASS(add_block(
        a, (block){piece, MPL_NONE, MPL_NONE, MPL_NONE, a->facts->n_segments, small, false}, out));
    a->facts->n_segments++;
    a->reserved += piece;
    a->facts->reserved_bytes = mpl_max_u64(a->facts->reserved_bytes, a->reserved);
    return MPL_OK;
}

/* Splits off what follows the first `bytes` bytes of a block, if it is large enough. */
static mpl_status cut(allocator *a, uint32_t id, uint64_t bytes)
{
    uint64_t rest = a->block[id].bytes - bytes;
    uint32_t tail;
    block b = a->block[id];

    if (b.small ? rest < UNIT : rest <= SMALL_SIZE)
        return MPL_OK;
    MPL_PASS(add_block(a, (block){rest, MPL_NONE, id, b.next, b.segment, b.small, false}, &tail));
    if (b.next != MPL_NONE)
        a->block[b.next].previous = tail;
    a->block[id].next = tail;
    a->block[id].bytes = bytes;
    a->facts->n_splits++;
    return MPL_OK;
}

static mpl_status take(allocator *a, const mpl_request *r)
{
    uint64_t bytes;
    uint32_t id;
    bool small;

    if (!mpl_align_bytes(r->bytes, UNIT, &bytes))
        return MPL_ERROR(a->ctx, MPL_ELIMIT, "a request of %" PRIu64 " bytes", r->bytes);
    small = bytes <= SMALL_SIZE;
    id = best_fit(a, bytes, small);
    if (id == MPL_NONE)
        MPL_PASS(add_segment(a, bytes, small, &id));
    MPL_PASS(cut(a, id, bytes));
    a->block[id].owner = r->id;
    a->allocated += a->block[id].bytes;
    a->requested += r->bytes;
    a->facts->allocated_bytes = mpl_max_u64(a->facts->allocated_bytes, a->allocated);
    a->facts->requested_bytes = mpl_max_u64(a->facts->requested_bytes, a->requested);
    return MPL_OK;
}

/* Joins block `id` and the next one; both are free. */
static void join(allocator *a, uint32_t id)
{
    uint32_t next = a->block[id].next;

    a->block[id].bytes += a->block[next].bytes;
    a->block[id].next = a->block[next].next;
    if (a->block[id].next != MPL_NONE)
        a->block[a->block[id].next].previous = id;
    a->block[next].gone = true;
}

static bool is_free(const allocator *a, uint32_t id)
{
    return id != MPL_NONE && a->block[id].owner == MPL_NONE;
}

static mpl_status give_back(allocator *a, const mpl_request *r)
{
    uint32_t id = 0;

    while (id < a->n_blocks && (a->block[id].gone || a->block[id].owner != r->id))
        id++;
    if (id == a->n_blocks)
        return MPL_ERROR(a->ctx, MPL_EINVALID, "buffer %u is given back and was not asked for",
                         r->id);
    a->block[id].owner = MPL_NONE;
    a->allocated -= a->block[id].bytes;
    a->requested -= r->bytes;
    if (is_free(a, a->block[id].next))
        join(a, id);
    if (is_free(a, a->block[id].previous))
        join(a, a->block[id].previous);
    return MPL_OK;
}

mpl_status mpl_caching_play(mpl_ctx *ctx, const mpl_request *request, uint32_t n, uint64_t capacity,
                            mpl_caching_facts *facts)
{
    mpl_status st = MPL_OK;
    mpl_caching_facts seen = {0};
    allocator a = {.ctx = ctx, .capacity = capacity, .facts = &seen};

    for (uint32_t i = 0; i < n; i++)
        MPL_TRY(request[i].gives_back ? give_back(&a, &request[i]) : take(&a, &request[i]));
    *facts = seen;
out:
    mpl_free(ctx, a.block);
    return st;
}
