/* inductor_pool.c -- TorchInductor's memory pool: a tree of splits by time and by space.
 *
 * Idea     A slot holds, one after the other, buffers or pairs of slots side by side. A buffer goes
 *          down the tree while just one occupant is alive with it; where nothing is, it cuts a pair
 *          off the slot; where it cannot go, the pool grows by it.
 * Source   pytorch/pytorch, torch/_inductor/codegen/memory_planning.py: TemporalSplit,
 *          SpatialSplit, AllocationPool; config.memory_pool = "intermediates". By size, then by
 *          length of life, both descending. The left of a pair is tried before the right; only the
 *          right end of the pool may grow.
 * Differs  One pool for each of ours: Inductor's outputs have others. Halves of a pair are aligned
 *          to the largest alignment of the pool, there to 64 bytes. Reuse in place comes before it.
 * Cost     O(n * depth of the tree) time; the depth is at most twice the buffers alive at once.
 * Limits   A buffer alive with two occupants of a slot never goes there, whatever is free. */
#include "planners/production/production.h"

/* What a slot holds: a buffer, or a pair of slots. */
typedef struct tenant {
    uint32_t slot;    /* that it is in */
    uint32_t sibling; /* the next in that slot, or MPL_NONE */
    mpl_buffer b;     /* or MPL_NONE: a pair */
    uint32_t left, right;
} tenant;

typedef struct slot {
    uint64_t bytes;  /* room, what is empty included [byte] */
    uint64_t filled; /* room without empty ends [byte] */
    uint64_t at;     /* offset [byte] */
    uint32_t pair;   /* the tenant that it is half of; MPL_NONE: the root */
    uint32_t first;  /* tenants */
    mpl_spans live;  /* steps at which one of them is needed */
} slot;

typedef struct visit {
    uint32_t pair;
    bool is_last;
} visit;

typedef struct tree {
    mpl_run *run;
    const mpl_problem *p;
    uint64_t unit;   /* [byte] */
    slot *slot;      /* [2 n + 1] */
    tenant *tenant;  /* [2 n] */
    visit *path;     /* [2 n] */
    uint32_t *queue; /* [2 n + 1] */
    uint32_t n_slots, n_tenants, root;
} tree;

static uint32_t add_slot(tree *self, uint64_t bytes)
{
    self->slot[self->n_slots] = (slot){.bytes = bytes, .pair = MPL_NONE, .first = MPL_NONE};
    return self->n_slots++;
}

static uint32_t add_tenant(tree *self, uint32_t in, mpl_buffer b)
{
    self->tenant[self->n_tenants] = (tenant){in, self->slot[in].first, b, MPL_NONE, MPL_NONE};
    return self->slot[in].first = self->n_tenants++;
}

static void make_pair(tree *self, uint32_t pair, uint32_t left, uint32_t right)
{
    self->tenant[pair].left = left;
    self->tenant[pair].right = right;
    self->slot[left].pair = self->slot[right].pair = pair;
}

static bool slot_is_live(const tree *self, uint32_t s, mpl_buffer b)
{
    const mpl_spans *live = &self->slot[s].live;
    uint32_t i = mpl_spans_find(live, self->p->birth[b]);

    return i < live->n && live->item[i].begin < self->p->death[b];
}

static bool is_live(const tree *self, uint32_t i, mpl_buffer b)
{
    const tenant *x = &self->tenant[i];

    if (x->b != MPL_NONE)
        return self->p->birth[b] < self->p->death[x->b] && self->p->birth[x->b] < self->p->death[b];
    return slot_is_live(self, x->left, b) || slot_is_live(self, x->right, b);
}

/* Tells a slot and all around it of b in `s`. */
static mpl_status tell(tree *self, uint32_t s, mpl_buffer b)
{
    mpl_span life = {self->p->birth[b], self->p->death[b]};
    uint64_t bytes = self->p->bytes[b];

    for (;; s = self->tenant[self->slot[s].pair].slot) {
        const tenant *pair;

        self->run->ticks++;
        self->slot[s].bytes = mpl_max_u64(self->slot[s].bytes, bytes);
        MPL_PASS(mpl_spans_add(self->run->ctx, &self->slot[s].live, life));
        if (self->slot[s].pair == MPL_NONE)
            return MPL_OK;
        pair = &self->tenant[self->slot[s].pair];
        bytes =
            mpl_align_up(self->slot[pair->left].bytes, self->unit) + self->slot[pair->right].bytes;
    }
}

/* Puts b into a slot at whose other tenants it is not alive. */
static mpl_status put(tree *self, uint32_t s, mpl_buffer b)
{
    uint64_t bytes = self->p->bytes[b], room = self->slot[s].bytes;

    if (bytes < room) {
        uint32_t left = add_slot(self, bytes), right = add_slot(self, room - bytes);

        make_pair(self, add_tenant(self, s, MPL_NONE), left, right);
        s = left;
    }
    add_tenant(self, s, b);
    return tell(self, s, b);
}

/* The slot for b, or MPL_NONE: the pool must grow. */
static uint32_t find(const tree *self, mpl_buffer b)
{
    uint32_t s = self->root, n_path = 0;
    bool is_last = true;

    for (;;) {
        uint32_t n_live = 0, with = MPL_NONE;

        for (uint32_t i = self->slot[s].first; i != MPL_NONE && n_live < 2;
             i = self->tenant[i].sibling)
            if (is_live(self, i, b)) {
                n_live++;
                with = i;
            }
        self->run->ticks++;
        if (is_last || self->p->bytes[b] <= self->slot[s].bytes) {
            if (n_live == 0)
                return s;
            if (n_live == 1 && self->tenant[with].b == MPL_NONE) {
                self->path[n_path++] = (visit){with, is_last};
                s = self->tenant[with].left;
                is_last = false;
                continue;
            }
        }
        if (n_path == 0)
            return MPL_NONE;
        n_path--;
        is_last = self->path[n_path].is_last;
        s = self->tenant[self->path[n_path].pair].right;
    }
}

/* A new root: the old one, and b to its right. */
static mpl_status grow(tree *self, mpl_buffer b)
{
    uint32_t old = self->root, right = add_slot(self, self->p->bytes[b]), root = add_slot(self, 0);

    for (uint32_t i = 0; i < self->slot[old].live.n; i++)
        MPL_PASS(
            mpl_spans_add(self->run->ctx, &self->slot[root].live, self->slot[old].live.item[i]));
    make_pair(self, add_tenant(self, root, MPL_NONE), old, right);
    add_tenant(self, right, b);
    self->root = root;
    return tell(self, right, b);
}

/* Offsets, once all are placed. Empty ends take no room. */
static void settle(tree *self, uint64_t *offset)
{
    uint32_t n = 0;

    self->slot[self->root].at = 0;
    self->queue[n++] = self->root;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = self->slot[self->queue[k]].first; i != MPL_NONE;
             i = self->tenant[i].sibling)
            if (self->tenant[i].b == MPL_NONE) {
                self->queue[n++] = self->tenant[i].left;
                self->queue[n++] = self->tenant[i].right;
            }
    for (uint32_t k = n; k-- > 0;) {
        slot *s = &self->slot[self->queue[k]];

        for (uint32_t i = s->first; i != MPL_NONE; i = self->tenant[i].sibling) {
            const tenant *x = &self->tenant[i];

            s->filled = mpl_max_u64(
                s->filled, x->b != MPL_NONE ? self->p->bytes[x->b]
                                            : mpl_align_up(self->slot[x->left].filled, self->unit) +
                                                  self->slot[x->right].filled);
        }
    }
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = self->slot[self->queue[k]].first; i != MPL_NONE;
             i = self->tenant[i].sibling) {
            const tenant *x = &self->tenant[i];
            uint64_t at = self->slot[self->queue[k]].at;

            if (x->b != MPL_NONE) {
                offset[x->b] = at;
                continue;
            }
            self->slot[x->left].at = at;
            self->slot[x->right].at = at + mpl_align_up(self->slot[x->left].filled, self->unit);
        }
}

static mpl_status fill(tree *self, const mpl_buffer *order, uint32_t pool, uint64_t *offset)
{
    self->root = MPL_NONE;
    for (uint32_t i = 0; i < self->p->n; i++) {
        mpl_buffer b = order[i];
        uint32_t s;

        if (self->p->pool[b] != pool)
            continue;
        if (self->root == MPL_NONE)
            self->root = add_slot(self, self->p->bytes[b]);
        s = find(self, b);
        MPL_PASS(s != MPL_NONE ? put(self, s, b) : grow(self, b));
    }
    if (self->root != MPL_NONE)
        settle(self, offset);
    return MPL_OK;
}

static mpl_status plan(mpl_run *run, const mpl_problem *p, mpl_plan *out)
{
    mpl_status st = MPL_OK;
    size_t room = 2 * (size_t)p->n + p->n_pools;
    tree t = {.run = run, .p = p};
    mpl_buffer *order = NULL;
    uint64_t *unit = NULL;

    MPL_TRY(mpl_new(run->ctx, unit, p->n_pools));
    MPL_TRY(mpl_new(run->ctx, order, p->n));
    MPL_TRY(mpl_new_each(run->ctx, room, t.slot, t.tenant, t.path, t.queue));
    MPL_TRY(mpl_production_units(run->ctx, p, unit));
    MPL_TRY(mpl_production_order(run->ctx, p, mpl_key_larger, mpl_key_longer, order));
    for (uint32_t pool = 0; pool < p->n_pools; pool++) {
        t.unit = unit[pool];
        MPL_TRY(fill(&t, order, pool, out->offset));
    }
    out->claim = MPL_FEASIBLE;
out:
    for (uint32_t s = 0; s < t.n_slots; s++)
        mpl_free(run->ctx, t.slot[s].live.item);
    mpl_free_each(run->ctx, unit, order, t.slot, t.tenant, t.path, t.queue);
    return st;
}

const mpl_planner mpl_planner_inductor_pool = {
    .name = "inductor_pool",
    .about = "TorchInductor's memory pool: a tree of splits by time and by space",
    .source = "pytorch/pytorch _inductor/codegen/memory_planning.py",
    .traits = MPL_SERIAL_ONLY | MPL_UNFIXED_ONLY | MPL_PRODUCTION,
    .plan = plan,
};
