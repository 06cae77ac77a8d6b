/* plan.c -- makes and frees plans; packs the blocks of a block plan. See plan.h. */
#include "planners/plan/plan.h"
#include "graphs/problem/bounds/bounds.h"

#include <stdlib.h>

mpl_status mpl_plan_new(mpl_ctx *ctx, const mpl_problem *p, mpl_plan **out)
{
    mpl_status st = MPL_OK;
    mpl_plan *plan = NULL;

    MPL_TRY(mpl_new(ctx, plan, 1));
    plan->n = p->n;
    plan->n_pools = p->n_pools;
    MPL_TRY(mpl_new(ctx, plan->offset, p->n));
    MPL_TRY(mpl_new(ctx, plan->pool_bytes, p->n_pools));
    *out = plan, plan = NULL;
out:
    mpl_plan_free(ctx, plan);
    return st;
}

mpl_status mpl_plan_spread(mpl_ctx *ctx, mpl_plan *plan, uint32_t n)
{
    mpl_status st = MPL_OK;
    mpl_spread *spread = &plan->spread;

    MPL_TRY(mpl_new_each(ctx, n, spread->capacity, spread->price, spread->bytes));
    MPL_TRY(mpl_new(ctx, spread->memory, plan->n));
    spread->n = n;
out:
    return st; /* the plan owns what was made */
}

void mpl_plan_free(mpl_ctx *ctx, mpl_plan *plan)
{
    if (plan == NULL)
        return;
    mpl_free_each(ctx, plan->offset, plan->block, plan->witness, plan->refutation.steps,
                  plan->spread.capacity, plan->spread.price, plan->spread.memory,
                  plan->spread.bytes, plan->pool_bytes, plan);
}

const char *mpl_claim_name(mpl_claim claim)
{
    static const char *const names[] = {"unknown", "feasible", "optimal", "infeasible"};

    return names[claim];
}

mpl_status mpl_plan_bound(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    uint8_t *member = NULL;
    uint64_t bytes;
    uint32_t n = 0;

    if (plan->spread.n > 0)
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, member, p->n));
    MPL_TRY(mpl_lower_bound(ctx, p, 0, &bytes, member));
    for (mpl_buffer b = 0; b < p->n; b++)
        n += member[b];
    if (bytes < plan->bound_bytes || (bytes == plan->bound_bytes && n == 0))
        goto done; /* a search proved more than any set of buffers can */
    plan->bound_bytes = bytes;
    mpl_free(ctx, plan->refutation.steps);
    plan->refutation.steps = NULL;
    mpl_free(ctx, plan->witness);
    plan->n_witness = 0;
    plan->witness = NULL;
    if (n > 0)
        MPL_TRY(mpl_new(ctx, plan->witness, n));
    for (mpl_buffer b = 0; b < p->n; b++)
        if (member[b])
            plan->witness[plan->n_witness++] = b;
done:
    if (plan->peak_bytes == bytes)
        plan->claim = MPL_OPTIMAL;
out:
    mpl_free(ctx, member);
    return st;
}

/* ---- packing blocks ---- */

/* One block of pool 0: its range of memory, and its time from first birth to last death. */
typedef struct block {
    uint64_t begin, end; /* in the plan; once placed, in the packing [byte] */
    uint64_t bytes;      /* extent [byte] */
    uint32_t align;
    uint32_t birth, death;
    uint32_t id;
} block;

/* Placed blocks by birth, as a tree over ranks. Each node knows the latest death below it. */
typedef struct packer {
    mpl_ctx *ctx;
    const mpl_problem *p;
    const mpl_plan *plan;
    uint32_t n;
    block *block;       /* [n] by id of the block */
    uint32_t *by_birth; /* [n] */
    uint32_t *rank;     /* [n] position in by_birth */
    uint32_t leaves;    /* a power of two >= n */
    uint32_t *last;     /* [2 * leaves] serial: latest death of the placed blocks below; 0: none */
    uint64_t *after;  /* [n * words] parallel: buffers that come after every buffer of the block */
    uint64_t *member; /* [n * words] parallel: the block's buffers */
    uint32_t words;
    block **met; /* [n] scratch: placed blocks in conflict with the new one */
    uint32_t n_met;
} packer;

static int larger_first(const void *a, const void *b)
{
    const block *x = *(block *const *)a, *y = *(block *const *)b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_begin(const void *a, const void *b)
{
    const block *x = *(block *const *)a, *y = *(block *const *)b;

    if (x->begin != y->begin)
        return x->begin > y->begin ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static int earlier_first(const void *a, const void *b)
{
    const block *x = *(block *const *)a, *y = *(block *const *)b;

    if (x->birth != y->birth)
        return x->birth > y->birth ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Collects placed blocks alive during b's time, below `node`, which spans `width` from `first`. */
static void meet(packer *k, const block *b, uint32_t node, uint32_t first, uint32_t width)
{
    if (k->last[node] <= b->birth || first >= k->n ||
        k->block[k->by_birth[first]].birth >= b->death)
        return;
    if (width == 1) {
        k->met[k->n_met++] = &k->block[k->by_birth[first]];
        return;
    }
    meet(k, b, 2 * node, first, width / 2);
    meet(k, b, 2 * node + 1, first + width / 2, width / 2);
}

static void insert(packer *k, const block *b)
{
    for (uint32_t node = k->leaves + k->rank[b->id]; node > 0; node /= 2)
        if (k->last[node] < b->death)
            k->last[node] = b->death;
}

static bool block_before(const packer *k, const block *a, const block *b)
{
    const uint64_t *after = k->after + (size_t)a->id * k->words,
                   *member = k->member + (size_t)b->id * k->words;

    for (uint32_t w = 0; w < k->words; w++)
        if ((member[w] & ~after[w]) != 0)
            return false;
    return true;
}

static mpl_status gather_blocks(packer *k)
{
    const mpl_problem *p = k->p;

    for (mpl_buffer i = 0; i < p->n; i++)
        if (p->pool[i] == 0 && k->plan->block[i] >= k->n)
            k->n = k->plan->block[i] + 1;
    if (k->n > p->n)
        return MPL_ERROR(k->ctx, MPL_EINVALID, "block %u of %u buffers; block ids are dense from 0",
                         k->n - 1, p->n);
    MPL_PASS(mpl_new(k->ctx, k->block, k->n));
    for (uint32_t i = 0; i < k->n; i++)
        k->block[i] = (block){.begin = UINT64_MAX, .birth = UINT32_MAX, .align = 1, .id = i};
    for (mpl_buffer i = 0; i < p->n; i++) {
        block *b = p->pool[i] == 0 ? &k->block[k->plan->block[i]] : NULL;

        if (b == NULL)
            continue;
        b->begin = mpl_min_u64(b->begin, k->plan->offset[i]);
        b->end = mpl_max_u64(b->end, k->plan->offset[i] + p->bytes[i]);
        b->align = p->align[i] > b->align ? p->align[i] : b->align;
        b->birth = p->birth[i] < b->birth ? p->birth[i] : b->birth;
        b->death = p->death[i] > b->death ? p->death[i] : b->death;
    }
    for (uint32_t i = 0; i < k->n; i++)
        k->block[i].bytes =
            k->block[i].end > k->block[i].begin ? k->block[i].end - k->block[i].begin : 0;
    return MPL_OK;
}

static mpl_status index_serial(packer *k, block **order)
{
    for (k->leaves = 1; k->leaves < k->n;)
        k->leaves *= 2;
    MPL_PASS(mpl_new(k->ctx, k->last, 2 * (size_t)k->leaves));
    MPL_PASS(mpl_new_each(k->ctx, k->n, k->by_birth, k->rank));
    qsort(order, k->n, sizeof *order, earlier_first);
    for (uint32_t i = 0; i < k->n; i++)
        k->by_birth[i] = order[i]->id, k->rank[order[i]->id] = i;
    return MPL_OK;
}

static mpl_status index_parallel(packer *k)
{
    const mpl_before *before = k->p->before;

    k->words = before->n_words;
    MPL_PASS(mpl_new(k->ctx, k->after, (size_t)k->n * k->words));
    memset(k->after, 0xff, (size_t)k->n * k->words * sizeof *k->after);
    MPL_PASS(mpl_new(k->ctx, k->member, (size_t)k->n * k->words));
    for (mpl_buffer i = 0; i < k->p->n; i++) {
        size_t from = (size_t)k->plan->block[i] * k->words;

        if (k->p->pool[i] != 0)
            continue;
        mpl_bit_add(k->member + from, i);
        for (uint32_t w = 0; w < k->words; w++)
            k->after[from + w] &= before->row[(size_t)i * k->words + w];
    }
    return MPL_OK;
}

/* Puts b at the lowest offset where it overlaps no conflicting block of order[0 .. n_placed). */
static void place(packer *k, block **order, uint32_t n_placed, block *b)
{
    uint64_t at = 0;

    k->n_met = 0;
    if (k->after == NULL)
        meet(k, b, 1, 0, k->leaves);
    for (uint32_t i = 0; k->after != NULL && i < n_placed; i++)
        if (!block_before(k, order[i], b) && !block_before(k, b, order[i]))
            k->met[k->n_met++] = order[i];
    qsort(k->met, k->n_met, sizeof *k->met, by_begin);
    for (uint32_t i = 0; i < k->n_met && k->met[i]->begin < at + b->bytes; i++)
        if (k->met[i]->end > at)
            at = (k->met[i]->end + b->align - 1) & ~(uint64_t)(b->align - 1);
    b->begin = at;
    b->end = at + b->bytes;
    if (k->after == NULL)
        insert(k, b);
}

mpl_status mpl_plan_packed(mpl_ctx *ctx, const mpl_problem *p, const mpl_plan *plan,
                           uint64_t *bytes)
{
    mpl_status st = MPL_OK;
    packer k = {.ctx = ctx, .p = p, .plan = plan};
    block **order = NULL;
    uint64_t top = 0;

    if (plan->block == NULL) {
        *bytes = plan->peak_bytes;
        return MPL_OK;
    }
    MPL_TRY(gather_blocks(&k));
    MPL_TRY(mpl_new_each(ctx, k.n, order, k.met));
    for (uint32_t i = 0; i < k.n; i++)
        order[i] = &k.block[i];
    MPL_TRY(p->before == NULL ? index_serial(&k, order) : index_parallel(&k));
    qsort(order, k.n, sizeof *order, larger_first);
    for (uint32_t i = 0; i < k.n && order[i]->bytes > 0; i++) {
        place(&k, order, i, order[i]);
        top = mpl_max_u64(top, order[i]->end);
    }
    *bytes = top;
out:
    mpl_free_each(ctx, order, k.block, k.by_birth, k.rank, k.last, k.after, k.member, k.met);
    return st;
}

uint64_t mpl_pool_height(const mpl_problem *p, uint32_t pool, const uint64_t *offset)
{
    uint64_t height = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == pool)
            height = mpl_max_u64(height, offset[b] + p->bytes[b]);
    return height;
}
