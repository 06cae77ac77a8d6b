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
static void meet(packer *self, const block *b, uint32_t node, uint32_t first, uint32_t width)
{
    if (self->last[node] <= b->birth || first >= self->n ||
        self->block[self->by_birth[first]].birth >= b->death)
        return;
    if (width == 1) {
        self->met[self->n_met++] = &self->block[self->by_birth[first]];
        return;
    }
    meet(self, b, 2 * node, first, width / 2);
    meet(self, b, 2 * node + 1, first + width / 2, width / 2);
}

static void insert(packer *self, const block *b)
{
    for (uint32_t node = self->leaves + self->rank[b->id]; node > 0; node /= 2)
        if (self->last[node] < b->death)
            self->last[node] = b->death;
}

static bool block_before(const packer *self, const block *a, const block *b)
{
    const uint64_t *after = self->after + (size_t)a->id * self->words,
                   *member = self->member + (size_t)b->id * self->words;

    for (uint32_t w = 0; w < self->words; w++)
        if ((member[w] & ~after[w]) != 0)
            return false;
    return true;
}

static mpl_status gather_blocks(packer *self)
{
    const mpl_problem *p = self->p;

    for (mpl_buffer i = 0; i < p->n; i++)
        if (p->pool[i] == 0 && self->plan->block[i] >= self->n)
            self->n = self->plan->block[i] + 1;
    if (self->n > p->n)
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "block %u of %u buffers; block ids are dense from 0", self->n - 1, p->n);
    MPL_PASS(mpl_new(self->ctx, self->block, self->n));
    for (uint32_t i = 0; i < self->n; i++)
        self->block[i] = (block){.begin = UINT64_MAX, .birth = UINT32_MAX, .align = 1, .id = i};
    for (mpl_buffer i = 0; i < p->n; i++) {
        block *b = p->pool[i] == 0 ? &self->block[self->plan->block[i]] : NULL;

        if (b == NULL)
            continue;
        b->begin = mpl_min_u64(b->begin, self->plan->offset[i]);
        b->end = mpl_max_u64(b->end, self->plan->offset[i] + p->bytes[i]);
        b->align = p->align[i] > b->align ? p->align[i] : b->align;
        b->birth = p->birth[i] < b->birth ? p->birth[i] : b->birth;
        b->death = p->death[i] > b->death ? p->death[i] : b->death;
    }
    for (uint32_t i = 0; i < self->n; i++)
        self->block[i].bytes = self->block[i].end > self->block[i].begin
                                   ? self->block[i].end - self->block[i].begin
                                   : 0;
    return MPL_OK;
}

static mpl_status index_serial(packer *self, block **order)
{
    for (self->leaves = 1; self->leaves < self->n;)
        self->leaves *= 2;
    MPL_PASS(mpl_new(self->ctx, self->last, 2 * (size_t)self->leaves));
    MPL_PASS(mpl_new_each(self->ctx, self->n, self->by_birth, self->rank));
    qsort(order, self->n, sizeof *order, earlier_first);
    for (uint32_t i = 0; i < self->n; i++)
        self->by_birth[i] = order[i]->id, self->rank[order[i]->id] = i;
    return MPL_OK;
}

static mpl_status index_parallel(packer *self)
{
    const mpl_before *before = self->p->before;

    self->words = before->n_words;
    MPL_PASS(mpl_new(self->ctx, self->after, (size_t)self->n * self->words));
    memset(self->after, 0xff, (size_t)self->n * self->words * sizeof *self->after);
    MPL_PASS(mpl_new(self->ctx, self->member, (size_t)self->n * self->words));
    for (mpl_buffer i = 0; i < self->p->n; i++) {
        size_t from = (size_t)self->plan->block[i] * self->words;

        if (self->p->pool[i] != 0)
            continue;
        mpl_bit_add(self->member + from, i);
        for (uint32_t w = 0; w < self->words; w++)
            self->after[from + w] &= before->row[(size_t)i * self->words + w];
    }
    return MPL_OK;
}

/* Puts b at the lowest offset where it overlaps no conflicting block of order[0 .. n_placed). */
static void place(packer *self, block **order, uint32_t n_placed, block *b)
{
    uint64_t at = 0;

    self->n_met = 0;
    if (self->after == NULL)
        meet(self, b, 1, 0, self->leaves);
    for (uint32_t i = 0; self->after != NULL && i < n_placed; i++)
        if (!block_before(self, order[i], b) && !block_before(self, b, order[i]))
            self->met[self->n_met++] = order[i];
    qsort(self->met, self->n_met, sizeof *self->met, by_begin);
    for (uint32_t i = 0; i < self->n_met && self->met[i]->begin < at + b->bytes; i++)
        if (self->met[i]->end > at)
            at = (self->met[i]->end + b->align - 1) & ~(uint64_t)(b->align - 1);
    b->begin = at;
    b->end = at + b->bytes;
    if (self->after == NULL)
        insert(self, b);
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
