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

static uint32_t add_slot(tree *t, uint64_t bytes)
{
    t->slot[t->n_slots] = (slot){.bytes = bytes, .pair = MPL_NONE, .first = MPL_NONE};
    return t->n_slots++;
}

static uint32_t add_tenant(tree *t, uint32_t in, mpl_buffer b)
{
    t->tenant[t->n_tenants] = (tenant){in, t->slot[in].first, b, MPL_NONE, MPL_NONE};
    return t->slot[in].first = t->n_tenants++;
}

static void make_pair(tree *t, uint32_t pair, uint32_t left, uint32_t right)
{
    t->tenant[pair].left = left;
    t->tenant[pair].right = right;
    t->slot[left].pair = t->slot[right].pair = pair;
}

static bool slot_is_live(const tree *t, uint32_t s, mpl_buffer b)
{
    const mpl_spans *live = &t->slot[s].live;
    uint32_t i = mpl_spans_find(live, t->p->birth[b]);

    return i < live->n && live->item[i].begin < t->p->death[b];
}

static bool is_live(const tree *t, uint32_t i, mpl_buffer b)
{
    const tenant *x = &t->tenant[i];

    if (x->b != MPL_NONE)
        return t->p->birth[b] < t->p->death[x->b] && t->p->birth[x->b] < t->p->death[b];
    return slot_is_live(t, x->left, b) || slot_is_live(t, x->right, b);
}

/* Tells a slot and all around it of b in `s`. */
static mpl_status tell(tree *t, uint32_t s, mpl_buffer b)
{
    mpl_span life = {t->p->birth[b], t->p->death[b]};
    uint64_t bytes = t->p->bytes[b];

    for (;; s = t->tenant[t->slot[s].pair].slot) {
        const tenant *pair;

        t->run->ticks++;
        t->slot[s].bytes = mpl_max_u64(t->slot[s].bytes, bytes);
        MPL_PASS(mpl_spans_add(t->run->ctx, &t->slot[s].live, life));
        if (t->slot[s].pair == MPL_NONE)
            return MPL_OK;
        pair = &t->tenant[t->slot[s].pair];
        bytes = mpl_align_up(t->slot[pair->left].bytes, t->unit) + t->slot[pair->right].bytes;
    }
}

/* Puts b into a slot at whose other tenants it is not alive. */
static mpl_status put(tree *t, uint32_t s, mpl_buffer b)
{
    uint64_t bytes = t->p->bytes[b], room = t->slot[s].bytes;

    if (bytes < room) {
        uint32_t left = add_slot(t, bytes), right = add_slot(t, room - bytes);

        make_pair(t, add_tenant(t, s, MPL_NONE), left, right);
        s = left;
    }
    add_tenant(t, s, b);
    return tell(t, s, b);
}

/* The slot for b, or MPL_NONE: the pool must grow. */
static uint32_t find(const tree *t, mpl_buffer b)
{
    uint32_t s = t->root, n_path = 0;
    bool is_last = true;

    for (;;) {
        uint32_t n_live = 0, with = MPL_NONE;

        for (uint32_t i = t->slot[s].first; i != MPL_NONE && n_live < 2; i = t->tenant[i].sibling)
            if (is_live(t, i, b)) {
                n_live++;
                with = i;
            }
        t->run->ticks++;
        if (is_last || t->p->bytes[b] <= t->slot[s].bytes) {
            if (n_live == 0)
                return s;
            if (n_live == 1 && t->tenant[with].b == MPL_NONE) {
                t->path[n_path++] = (visit){with, is_last};
                s = t->tenant[with].left;
                is_last = false;
                continue;
            }
        }
        if (n_path == 0)
            return MPL_NONE;
        n_path--;
        is_last = t->path[n_path].is_last;
        s = t->tenant[t->path[n_path].pair].right;
    }
}

/* A new root: the old one, and b to its right. */
static mpl_status grow(tree *t, mpl_buffer b)
{
    uint32_t old = t->root, right = add_slot(t, t->p->bytes[b]), root = add_slot(t, 0);

    for (uint32_t i = 0; i < t->slot[old].live.n; i++)
        MPL_PASS(mpl_spans_add(t->run->ctx, &t->slot[root].live, t->slot[old].live.item[i]));
    make_pair(t, add_tenant(t, root, MPL_NONE), old, right);
    add_tenant(t, right, b);
    t->root = root;
    return tell(t, right, b);
}

/* Offsets, once all are placed. Empty ends take no room. */
static void settle(tree *t, uint64_t *offset)
{
    uint32_t n = 0;

    t->slot[t->root].at = 0;
    t->queue[n++] = t->root;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = t->slot[t->queue[k]].first; i != MPL_NONE; i = t->tenant[i].sibling)
            if (t->tenant[i].b == MPL_NONE) {
                t->queue[n++] = t->tenant[i].left;
                t->queue[n++] = t->tenant[i].right;
            }
    for (uint32_t k = n; k-- > 0;) {
        slot *s = &t->slot[t->queue[k]];

        for (uint32_t i = s->first; i != MPL_NONE; i = t->tenant[i].sibling) {
            const tenant *x = &t->tenant[i];

            s->filled = mpl_max_u64(
                s->filled, x->b != MPL_NONE ? t->p->bytes[x->b]
                                            : mpl_align_up(t->slot[x->left].filled, t->unit) +
                                                  t->slot[x->right].filled);
        }
    }
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = t->slot[t->queue[k]].first; i != MPL_NONE; i = t->tenant[i].sibling) {
            const tenant *x = &t->tenant[i];
            uint64_t at = t->slot[t->queue[k]].at;

            if (x->b != MPL_NONE) {
                offset[x->b] = at;
                continue;
            }
            t->slot[x->left].at = at;
            t->slot[x->right].at = at + mpl_align_up(t->slot[x->left].filled, t->unit);
        }
}

static mpl_status fill(tree *t, const mpl_buffer *order, uint32_t pool, uint64_t *offset)
{
    t->root = MPL_NONE;
    for (uint32_t i = 0; i < t->p->n; i++) {
        mpl_buffer b = order[i];
        uint32_t s;

        if (t->p->pool[b] != pool)
            continue;
        if (t->root == MPL_NONE)
            t->root = add_slot(t, t->p->bytes[b]);
        s = find(t, b);
        MPL_PASS(s != MPL_NONE ? put(t, s, b) : grow(t, b));
    }
    if (t->root != MPL_NONE)
        settle(t, offset);
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
