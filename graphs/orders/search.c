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
    const mpl_order_model *m;
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

static mpl_status push(search *s, item x)
{
    size_t at = s->n_heap;

    MPL_PASS(mpl_reserve(s->ctx, s->heap, s->heap_cap, s->n_heap + 1));
    s->n_heap++;
    for (; at > 0 && comes_first(&x, &s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = x;
    return MPL_OK;
}

static item pop(search *s)
{
    item top = s->heap[0], x = s->heap[--s->n_heap];
    size_t at = 0;

    for (size_t child = 1; child < s->n_heap; child = 2 * at + 1) {
        if (child + 1 < s->n_heap && comes_first(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!comes_first(&s->heap[child], &x))
            break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    if (s->n_heap > 0)
        s->heap[at] = x;
    return top;
}

/* Hash of a set, for the table only. */
static uint64_t hash_of(const search *s, const uint64_t *words)
{
    uint64_t h = MPL_HASH_SEED;

    for (uint32_t i = 0; i < s->n_words; i++) {
        h ^= words[i];
        h *= UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

/* Writes the set of a walk to words; returns its hash. */
static uint64_t pack(const search *s, const mpl_order_walk *w, uint64_t *words)
{
    memset(words, 0, s->n_words * sizeof *words);
    for (uint32_t v = 0; v < s->m->n; v++)
        words[v / 64] |= (uint64_t)w->done[v] << (v % 64);
    return hash_of(s, words);
}

/* Doubles the hash table when it holds more states than slots. */
static mpl_status grow_table(search *s)
{
    size_t size = s->table_size * 2;
    uint32_t *table = NULL;

    MPL_PASS(mpl_new(s->ctx, table, size));
    memset(table, 0xff, size * sizeof *table);
    for (uint32_t id = 0; id < s->n_states; id++) {
        uint64_t h = hash_of(s, s->words + (size_t)id * s->n_words);

        s->states[id].next = table[h & (size - 1)];
        table[h & (size - 1)] = id;
    }
    mpl_free(s->ctx, s->table);
    s->table = table;
    s->table_size = size;
    return MPL_OK;
}

/* Keeps the walk's set if it is new or reached with a lower peak than before. */
static mpl_status keep(search *s, const mpl_order_walk *w, uint64_t peak, uint32_t parent,
                       uint32_t choice)
{
    uint64_t *words, h;
    uint32_t id = (uint32_t)s->n_states;

    MPL_PASS(mpl_reserve(s->ctx, s->words, s->word_cap, (s->n_states + 1) * s->n_words));
    words = s->words + s->n_states * s->n_words;
    h = pack(s, w, words);
    for (uint32_t i = s->table[h & (s->table_size - 1)]; i != MPL_NONE; i = s->states[i].next)
        if (memcmp(s->words + (size_t)i * s->n_words, words, s->n_words * sizeof *words) == 0) {
            if (s->states[i].peak <= peak)
                return MPL_OK;
            id = i;
            break;
        }
    if (id == s->n_states) {
        MPL_PASS(mpl_reserve(s->ctx, s->states, s->state_cap, s->n_states + 1));
        s->states[id].next = s->table[h & (s->table_size - 1)];
        s->table[h & (s->table_size - 1)] = id;
        s->n_states++;
    }
    s->states[id].peak = peak;
    s->states[id].parent = parent;
    s->states[id].choice = choice;
    s->states[id].n_done = w->n_done;
    s->states[id].closed = false;
    MPL_PASS(push(s, (item){peak, w->n_done, id}));
    if (s->n_states > s->table_size)
        MPL_PASS(grow_table(s));
    return MPL_OK;
}

/* Sets the walk to a state's set, with the ready operations ascending. */
static void unpack(search *s, uint32_t id)
{
    const uint64_t *words = s->words + (size_t)id * s->n_words;

    mpl_order_walk_reset(&s->at);
    for (uint32_t v = 0; v < s->m->n; v++)
        if (mpl_bit_has(words, v))
            mpl_order_walk_run(&s->at, v); /* ids are a valid order */
    s->at.n_ready = 0;
    for (uint32_t v = 0; v < s->m->n; v++)
        if (!s->at.done[v] && s->at.waits[v] == 0)
            s->at.ready[s->at.n_ready++] = v;
    s->effort->ticks += s->m->n / 8 + 1;
}

static mpl_status expand(search *s, uint32_t id)
{
    uint64_t peak = s->states[id].peak;

    s->states[id].closed = true;
    unpack(s, id);
    for (uint32_t i = 0; i < s->at.n_ready; i++) {
        uint32_t v = s->at.ready[i];
        uint64_t cost = mpl_max_u64(peak, mpl_order_walk_cost(&s->at, v));

        s->effort->ticks++;
        if (cost >= s->limit)
            continue;
        mpl_order_walk_copy(&s->child, &s->at);
        mpl_order_walk_run(&s->child, v);
        mpl_order_close(&s->child, cost, s->ran, s->effort);
        s->effort->ticks += s->m->n / 16;
        MPL_PASS(keep(s, &s->child, cost, id, v));
    }
    return MPL_OK;
}

/* The order that leads to a state. What followed a choice without loss is recomputed: from the
 * parent's set, whose peak may have fallen since, within the child's peak. */
static void trace(search *s, uint32_t id, uint32_t *order)
{
    uint32_t depth = 0, n = 0, *chain = s->ran;

    for (uint32_t i = id; i != MPL_NONE; i = s->states[i].parent)
        depth++;
    for (uint32_t i = id, at = depth; i != MPL_NONE; i = s->states[i].parent)
        chain[--at] = i;
    mpl_order_walk_reset(&s->child);
    for (uint32_t i = 0; i < depth; i++) {
        const state *x = &s->states[chain[i]];

        if (i > 0) {
            unpack(s, chain[i - 1]);
            mpl_order_walk_copy(&s->child, &s->at);
            mpl_order_walk_run(&s->child, x->choice);
            order[n++] = x->choice;
        }
        n += mpl_order_close(&s->child, x->peak, order + n, s->effort);
    }
    mpl_assert(n == s->m->n);
}

static mpl_status search_init(search *s)
{
    s->n_words = (s->m->n + 63) / 64;
    s->table_size = 1024;
    MPL_PASS(mpl_new(s->ctx, s->table, s->table_size));
    memset(s->table, 0xff, s->table_size * sizeof *s->table);
    MPL_PASS(mpl_new(s->ctx, s->ran, (size_t)s->m->n + 1)); /* the start, and one per state */
    MPL_PASS(mpl_order_walk_init(s->ctx, s->m, &s->at));
    MPL_PASS(mpl_order_walk_init(s->ctx, s->m, &s->child));
    mpl_order_close(&s->child, s->floor, s->ran, s->effort);
    return keep(s, &s->child, s->floor, MPL_NONE, MPL_NONE);
}

mpl_status mpl_order_best_first(mpl_ctx *ctx, const mpl_order_model *m, uint64_t floor,
                                size_t max_states, mpl_effort *effort, uint32_t *order,
                                uint64_t *peak, uint64_t *bound, bool *done)
{
    mpl_status st = MPL_OK;
    search s = {.ctx = ctx,
                .m = m,
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
        if (next.n_done == m->n) {
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
