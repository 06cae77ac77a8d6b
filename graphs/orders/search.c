/* search.c -- the least peak by best-first search over closed sets of operations. See orders_priv.h
 * and ORDERS.md, "Search".
 *
 * Source   this project; sets instead of orders as in M. Held, R. Karp, 1962.
 * Cost     O(sets * ready * n) time; sets * (n / 8 + 24) bytes. */
#include "graphs/orders/orders_priv.h"

typedef struct state {
    uint64_t peak;
    uint32_t parent; /* MPL_NONE: the start */
    uint32_t choice; /* led here from the parent, before closure */
    uint32_t n_done;
    uint32_t next; /* next in the hash chain, or MPL_NONE */
    bool closed;   /* expanded at this peak */
} state;

typedef struct item {
    uint64_t peak;
    uint32_t n_done, id;
} item;

typedef struct search {
    mpl_ctx *ctx;
    const mpl_order_model *model;
    mpl_effort *effort;
    uint64_t floor, limit; /* sets that peak at `limit` or above are dropped */
    size_t max_states, n_states, state_cap, word_cap, heap_cap, n_heap;
    uint32_t n_words;
    state *states;
    uint64_t *words; /* [n_states * n_words] the sets */
    uint32_t *table; /* [table_size] first state of a chain, or MPL_NONE */
    size_t table_size;
    item *heap;
    mpl_order_walk at, child;
    uint32_t *ran; /* [n] scratch */
} search;

static bool comes_first(const item *a, const item *b)
{
    if (a->peak != b->peak)
        return a->peak < b->peak;
    if (a->n_done != b->n_done)
        return a->n_done > b->n_done;
    return a->id < b->id;
}

static mpl_status push(search *self, item x)
{
    size_t at = self->n_heap;

    MPL_PASS(mpl_reserve(self->ctx, self->heap, self->heap_cap, self->n_heap + 1));
    self->n_heap++;
    for (; at > 0 && comes_first(&x, &self->heap[(at - 1) / 2]); at = (at - 1) / 2)
        self->heap[at] = self->heap[(at - 1) / 2];
    self->heap[at] = x;
    return MPL_OK;
}

static item pop(search *self)
{
    item top = self->heap[0], x = self->heap[--self->n_heap];
    size_t at = 0;

    for (size_t child = 1; child < self->n_heap; child = 2 * at + 1) {
        if (child + 1 < self->n_heap && comes_first(&self->heap[child + 1], &self->heap[child]))
            child++;
        if (!comes_first(&self->heap[child], &x))
            break;
        self->heap[at] = self->heap[child];
        at = child;
    }
    if (self->n_heap > 0)
        self->heap[at] = x;
    return top;
}

/* Hash of a set, for the table only. */
static uint64_t hash_of(const search *self, const uint64_t *words)
{
    uint64_t h = MPL_HASH_SEED;

    for (uint32_t i = 0; i < self->n_words; i++) {
        h ^= words[i];
        h *= UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

/* Writes the set of a walk to words; returns its hash. */
static uint64_t pack(const search *self, const mpl_order_walk *walk, uint64_t *words)
{
    memset(words, 0, self->n_words * sizeof *words);
    for (uint32_t v = 0; v < self->model->n; v++)
        words[v / 64] |= (uint64_t)walk->done[v] << (v % 64);
    return hash_of(self, words);
}

/* Doubles the hash table when it holds more states than slots. */
static mpl_status grow_table(search *self)
{
    size_t size = self->table_size * 2;
    uint32_t *table = NULL;

    MPL_PASS(mpl_new(self->ctx, table, size));
    memset(table, 0xff, size * sizeof *table);
    for (uint32_t id = 0; id < self->n_states; id++) {
        uint64_t h = hash_of(self, self->words + (size_t)id * self->n_words);

        self->states[id].next = table[h & (size - 1)];
        table[h & (size - 1)] = id;
    }
    mpl_free(self->ctx, self->table);
    self->table = table;
    self->table_size = size;
    return MPL_OK;
}

/* Keeps the walk's set if it is new or reached with a lower peak than before. */
static mpl_status keep(search *self, const mpl_order_walk *walk, uint64_t peak, uint32_t parent,
                       uint32_t choice)
{
    uint64_t *words, h;
    uint32_t id = (uint32_t)self->n_states;

    MPL_PASS(
        mpl_reserve(self->ctx, self->words, self->word_cap, (self->n_states + 1) * self->n_words));
    words = self->words + self->n_states * self->n_words;
    h = pack(self, walk, words);
    for (uint32_t i = self->table[h & (self->table_size - 1)]; i != MPL_NONE;
         i = self->states[i].next)
        if (memcmp(self->words + (size_t)i * self->n_words, words, self->n_words * sizeof *words) ==
            0) {
            if (self->states[i].peak <= peak)
                return MPL_OK;
            id = i;
            break;
        }
    if (id == self->n_states) {
        MPL_PASS(mpl_reserve(self->ctx, self->states, self->state_cap, self->n_states + 1));
        self->states[id].next = self->table[h & (self->table_size - 1)];
        self->table[h & (self->table_size - 1)] = id;
        self->n_states++;
    }
    self->states[id].peak = peak;
    self->states[id].parent = parent;
    self->states[id].choice = choice;
    self->states[id].n_done = walk->n_done;
    self->states[id].closed = false;
    MPL_PASS(push(self, (item){peak, walk->n_done, id}));
    if (self->n_states > self->table_size)
        MPL_PASS(grow_table(self));
    return MPL_OK;
}

/* Sets the walk to a state's set, with the ready operations ascending. */
static void unpack(search *self, uint32_t id)
{
    const uint64_t *words = self->words + (size_t)id * self->n_words;

    mpl_order_walk_reset(&self->at);
    for (uint32_t v = 0; v < self->model->n; v++)
        if (mpl_bit_has(words, v))
            mpl_order_walk_run(&self->at, v); /* ids are a valid order */
    self->at.n_ready = 0;
    for (uint32_t v = 0; v < self->model->n; v++)
        if (!self->at.done[v] && self->at.waits[v] == 0)
            self->at.ready[self->at.n_ready++] = v;
    self->effort->ticks += self->model->n / 8 + 1;
}

static mpl_status expand(search *self, uint32_t id)
{
    uint64_t peak = self->states[id].peak;

    self->states[id].closed = true;
    unpack(self, id);
    for (uint32_t i = 0; i < self->at.n_ready; i++) {
        uint32_t v = self->at.ready[i];
        uint64_t cost = mpl_max_u64(peak, mpl_order_walk_cost(&self->at, v));

        self->effort->ticks++;
        if (cost >= self->limit)
            continue;
        mpl_order_walk_copy(&self->child, &self->at);
        mpl_order_walk_run(&self->child, v);
        mpl_order_close(&self->child, cost, self->ran, self->effort);
        self->effort->ticks += self->model->n / 16;
        MPL_PASS(keep(self, &self->child, cost, id, v));
    }
    return MPL_OK;
}

/* The order that leads to a state. What followed a choice without loss is recomputed: from the
 * parent's set, whose peak may have fallen since, within the child's peak. */
static void trace(search *self, uint32_t id, uint32_t *order)
{
    uint32_t depth = 0, n = 0, *chain = self->ran;

    for (uint32_t i = id; i != MPL_NONE; i = self->states[i].parent)
        depth++;
    for (uint32_t i = id, at = depth; i != MPL_NONE; i = self->states[i].parent)
        chain[--at] = i;
    mpl_order_walk_reset(&self->child);
    for (uint32_t i = 0; i < depth; i++) {
        const state *x = &self->states[chain[i]];

        if (i > 0) {
            unpack(self, chain[i - 1]);
            mpl_order_walk_copy(&self->child, &self->at);
            mpl_order_walk_run(&self->child, x->choice);
            order[n++] = x->choice;
        }
        n += mpl_order_close(&self->child, x->peak, order + n, self->effort);
    }
    mpl_assert(n == self->model->n);
}

static mpl_status search_init(search *self)
{
    self->n_words = (self->model->n + 63) / 64;
    self->table_size = 1024;
    MPL_PASS(mpl_new(self->ctx, self->table, self->table_size));
    memset(self->table, 0xff, self->table_size * sizeof *self->table);
    MPL_PASS(mpl_new(self->ctx, self->ran, (size_t)self->model->n + 1)); /* the start, and one per
                                                                          * state
                                                                          */
    MPL_PASS(mpl_order_walk_init(self->ctx, self->model, &self->at));
    MPL_PASS(mpl_order_walk_init(self->ctx, self->model, &self->child));
    mpl_order_close(&self->child, self->floor, self->ran, self->effort);
    return keep(self, &self->child, self->floor, MPL_NONE, MPL_NONE);
}

mpl_status mpl_order_best_first(mpl_ctx *ctx, const mpl_order_model *model, uint64_t floor,
                                size_t max_states, mpl_effort *effort, uint32_t *order,
                                uint64_t *peak, uint64_t *bound, bool *done)
{
    mpl_status st = MPL_OK;
    search s = {.ctx = ctx,
                .model = model,
                .effort = effort,
                .floor = floor,
                .limit = *peak,
                .max_states = max_states};

    *bound = floor;
    *done = *peak <= floor;
    if (*done)
        return MPL_OK;
    MPL_TRY(search_init(&s));
    *bound = *peak;
    while (s.n_heap > 0) {
        item next = s.heap[0];

        if (s.n_states > max_states || mpl_effort_spent(effort)) {
            *bound = next.peak;
            goto out;
        }
        pop(&s);
        if (s.states[next.id].peak != next.peak || s.states[next.id].closed)
            continue;
        if (next.n_done == model->n) {
            trace(&s, next.id, order);
            *peak = *bound = next.peak;
            break;
        }
        MPL_TRY(expand(&s, next.id));
    }
    *done = true; /* the queue is empty: no order is better than the given one */
out:
    mpl_order_walk_fini(ctx, &s.at);
    mpl_order_walk_fini(ctx, &s.child);
    mpl_free_each(ctx, s.states, s.words, s.table, s.heap, s.ran);
    return st;
}
