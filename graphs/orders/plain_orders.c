/* plain_orders.c -- orders without a search. See orders.def.
 *
 * In every order but `given`, operations that no output needs come last, as given. */
#include "graphs/problem/liveness.h"
#include "graphs/orders/order_blocks.h"
#include "graphs/orders/orders_priv.h"

#include <stdlib.h>

/* needed[op]: some output of the graph depends on it. */
static void mark_needed(const mpl_graph *g, uint8_t *needed)
{
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->value_op[g->output[i]] != MPL_NONE)
            needed[g->value_op[g->output[i]]] = 1;
    for (mpl_op op = g->n_ops; op-- > 0;)
        if (needed[op])
            mpl_mark_makers(g, op, needed);
}

static void append_unneeded(const mpl_graph *g, const uint8_t *needed, mpl_op *order, uint32_t n)
{
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (!needed[op])
            order[n++] = op;
    mpl_assert(n == g->n_ops);
}

mpl_status mpl_order_given(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order)
{
    (void)ctx;
    for (mpl_op op = 0; op < g->n_ops; op++)
        order[op] = op;
    return MPL_OK;
}

/* Appends `last` and the operations that it needs, as far as they are not there yet. stack and
 * next_in have n_ops items. next_in[op], the next input of op to visit, persists across calls, so
 * each operation is finished once. */
static uint32_t dfs_from(const mpl_graph *g, mpl_op last, mpl_op *stack, uint32_t *next_in,
                         uint8_t *seen, mpl_op *order, uint32_t n)
{
    uint32_t depth = 0;

    if (seen[last])
        return n;
    seen[last] = 1;
    stack[depth++] = last;
    while (depth > 0) {
        mpl_op op = stack[depth - 1], parent = MPL_NONE;

        while (parent == MPL_NONE && next_in[op] < g->op_in_begin[op + 1]) {
            mpl_value v = g->op_in[next_in[op]++];

            if (v != MPL_NONE && g->value_op[v] != MPL_NONE && !seen[g->value_op[v]])
                parent = g->value_op[v];
        }
        if (parent != MPL_NONE)
            seen[parent] = 1, stack[depth++] = parent;
        else
            order[n++] = op, depth--;
    }
    return n;
}

mpl_status mpl_order_dfs(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order)
{
    mpl_status st = MPL_OK;
    mpl_op *stack = NULL;
    uint32_t *next_in = NULL, n = 0;
    uint8_t *seen = NULL;

    MPL_TRY(mpl_new_each(ctx, g->n_ops, stack, next_in, seen));
    if (g->n_ops > 0)
        memcpy(next_in, g->op_in_begin, g->n_ops * sizeof *next_in);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->value_op[g->output[i]] != MPL_NONE)
            n = dfs_from(g, g->value_op[g->output[i]], stack, next_in, seen, order, n);
    append_unneeded(g, seen, order, n);
out:
    mpl_free_each(ctx, stack, next_in, seen);
    return st;
}

void mpl_count_waits(const mpl_graph *g, const uint8_t *needed, uint32_t *waits)
{
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_in_begin[op];
             (needed == NULL || needed[op]) && i < g->op_in_begin[op + 1]; i++)
            if (g->op_in[i] != MPL_NONE && g->value_op[g->op_in[i]] != MPL_NONE)
                waits[op]++;
}

mpl_status mpl_order_bfs(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order)
{
    mpl_status st = MPL_OK;
    uint32_t *waits = NULL, n = 0;
    uint8_t *needed = NULL;

    MPL_TRY(mpl_new_each(ctx, g->n_ops, waits, needed));
    mark_needed(g, needed);
    mpl_count_waits(g, needed, waits);
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (needed[op] && waits[op] == 0)
            order[n++] = op;
    for (uint32_t head = 0; head < n; head++) /* order also serves as the queue */
        for (uint32_t i = g->op_out_begin[order[head]]; i < g->op_out_begin[order[head] + 1]; i++) {
            mpl_value v = g->op_out[i];

            for (uint32_t j = v == MPL_NONE ? 0 : g->value_use_begin[v];
                 v != MPL_NONE && j < g->value_use_begin[v + 1]; j++)
                if (needed[g->value_use[j]] && --waits[g->value_use[j]] == 0)
                    order[n++] = g->value_use[j];
        }
    append_unneeded(g, needed, order, n);
out:
    mpl_free_each(ctx, waits, needed);
    return st;
}

/* Each step takes the ready operation that keeps below the peak so far and leaves the fewest live
 * bytes. If all raise the peak, it takes the one that raises it least, then the one that leaves
 * least. Ties go by id. Live bytes are those of a plan with default options: no inputs, weights,
 * outputs; views lie in their roots. Ready operations are leaves of a tree ordered by the bytes
 * that they make, so its root answers both questions. O(n log n + edges). */
typedef struct greedy {
    const mpl_graph *g;
    mpl_value *root;
    uint8_t *needed, *counted; /* [n_ops]; [n_values] a root that takes memory */
    uint32_t *waits;           /* [n_ops] */
    uint32_t *readers;         /* [n_values] operations still to read the root or a view of it */
    uint64_t *last_reader;   /* [n_values] sum of their ids: the last one's id, when one is left */
    uint64_t *makes, *frees; /* [n_ops] bytes of outputs; bytes that it reads last */
    mpl_op *leaf_op;         /* [n_ops] by makes, then id */
    uint32_t *leaf_of;       /* [n_ops] */
    uint32_t leaves;         /* a power of two >= n_ops */
    mpl_op *best;            /* [2 * leaves] ready operation of the subtree that leaves least */
    mpl_value *touched;      /* scratch: distinct roots of one operation */
    uint32_t *seen, round;   /* [n_values] round in which a root was touched last */
} greedy;

typedef struct made {
    uint64_t bytes;
    mpl_op op;
} made;

static int by_made(const void *a, const void *b)
{
    const made *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? 1 : -1;
    return (x->op > y->op) - (x->op < y->op);
}

/* Whether a leaves fewer live bytes than b. Compares makes - frees without negative numbers. */
static bool leaves_less(const greedy *self, mpl_op a, mpl_op b)
{
    uint64_t left, right;

    if (a == MPL_NONE || b == MPL_NONE)
        return b == MPL_NONE && a != MPL_NONE;
    left = self->makes[a] + self->frees[b];
    right = self->makes[b] + self->frees[a];
    return left != right ? left < right : a < b;
}

static void set_leaf(greedy *self, mpl_op op, bool ready)
{
    uint32_t node = self->leaves + self->leaf_of[op];

    self->best[node] = ready ? op : MPL_NONE;
    for (node /= 2; node > 0; node /= 2) {
        mpl_op left = self->best[2 * node], right = self->best[2 * node + 1];

        self->best[node] = leaves_less(self, right, left) ? right : left;
    }
}

/* The ready operation that makes at most `room` bytes and leaves least, or MPL_NONE. */
static mpl_op best_within(const greedy *self, uint64_t room)
{
    uint32_t low = 0, high = self->g->n_ops; /* leaves [0, low) make at most room */
    mpl_op found = MPL_NONE;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (self->makes[self->leaf_op[mid]] <= room)
            low = mid + 1;
        else
            high = mid;
    }
    for (uint32_t from = self->leaves, to = self->leaves + low; from < to; from /= 2, to /= 2) {
        if (from & 1) {
            found = leaves_less(self, self->best[from], found) ? self->best[from] : found;
            from++;
        }
        if (to & 1) {
            to--;
            found = leaves_less(self, self->best[to], found) ? self->best[to] : found;
        }
    }
    return found;
}

/* The fewest bytes that a ready operation makes. */
static uint64_t least_made(const greedy *self)
{
    uint32_t node = 1;

    mpl_assert(self->best[1] != MPL_NONE);
    while (node < self->leaves)
        node = self->best[2 * node] != MPL_NONE ? 2 * node : 2 * node + 1;
    return self->makes[self->best[node]];
}

/* Writes the distinct counted roots that `op` reads to self->touched; returns their number. */
static uint32_t roots_read(greedy *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    uint32_t n = 0;

    self->round++;
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++) {
        mpl_value v = g->op_in[i] == MPL_NONE ? MPL_NONE : self->root[g->op_in[i]];

        if (v == MPL_NONE || !self->counted[v] || self->seen[v] == self->round)
            continue;
        self->seen[v] = self->round;
        self->touched[n++] = v;
    }
    return n;
}

static mpl_status count_bytes(mpl_ctx *ctx, greedy *y)
{
    const mpl_graph *g = y->g;
    uint64_t sum = 0;

    for (mpl_value v = 0; v < g->n_values; v++)
        y->counted[v] = y->root[v] == v && g->value_role[v] == MPL_TEMPORARY;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        y->counted[y->root[g->output[i]]] = 0;
    for (mpl_value v = 0; v < g->n_values; v++)
        if (y->counted[v]) {
            if (!mpl_add_bytes(sum, g->value_bytes[v], &sum) || sum > INT64_MAX / 4)
                return MPL_REFUSE(ctx, "the values of '%.100s' together pass 2^61 bytes", g->name);
            y->makes[g->value_op[v]] += g->value_bytes[v];
        }
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = 0, n = y->needed[op] ? roots_read(y, op) : 0; i < n; i++) {
            y->readers[y->touched[i]]++;
            y->last_reader[y->touched[i]] += op;
        }
    for (mpl_value v = 0; v < g->n_values; v++)
        if (y->counted[v] && y->readers[v] == 1)
            y->frees[y->last_reader[v]] += g->value_bytes[v];
        else if (y->counted[v] && y->readers[v] == 0) /* unread: freed after its own step */
            y->frees[g->value_op[v]] += g->value_bytes[v];
    return MPL_OK;
}

static mpl_status greedy_init(mpl_ctx *ctx, greedy *y)
{
    mpl_status st = MPL_OK;
    uint32_t n = y->g->n_ops, most = 0;
    made *item = NULL;

    for (mpl_op op = 0; op < n; op++)
        if (y->g->op_in_begin[op + 1] - y->g->op_in_begin[op] > most)
            most = y->g->op_in_begin[op + 1] - y->g->op_in_begin[op];
    MPL_TRY(mpl_new_each(ctx, y->g->n_values, y->root, y->counted, y->readers, y->seen,
                         y->last_reader));
    MPL_TRY(mpl_new_each(ctx, n, y->needed, y->waits, y->makes, y->frees, y->leaf_op, y->leaf_of));
    MPL_TRY(mpl_new(ctx, y->touched, most));
    mark_needed(y->g, y->needed);
    mpl_value_roots(y->g, y->root);
    mpl_count_waits(y->g, y->needed, y->waits);
    MPL_TRY(count_bytes(ctx, y));
    MPL_TRY(mpl_new(ctx, item, n));
    for (mpl_op op = 0; op < n; op++)
        item[op] = (made){y->makes[op], op};
    qsort(item, n, sizeof *item, by_made);
    for (uint32_t i = 0; i < n; i++)
        y->leaf_op[i] = item[i].op, y->leaf_of[item[i].op] = i;
    for (y->leaves = 1; y->leaves < n;)
        y->leaves *= 2;
    MPL_TRY(mpl_new(ctx, y->best, 2 * (size_t)y->leaves));
    memset(y->best, 0xff, 2 * (size_t)y->leaves * sizeof *y->best);
    for (mpl_op op = 0; op < n; op++)
        if (y->needed[op] && y->waits[op] == 0)
            set_leaf(y, op, true);
out:
    mpl_free(ctx, item);
    return st;
}

/* Runs `op`: readies the operations that waited for it, and updates the last readers. */
static void greedy_take(greedy *self, mpl_op op)
{
    const mpl_graph *g = self->g;

    set_leaf(self, op, false);
    for (uint32_t i = 0, n = roots_read(self, op); i < n; i++) {
        mpl_value v = self->touched[i];

        self->last_reader[v] -= op;
        if (--self->readers[v] != 1)
            continue;
        self->frees[self->last_reader[v]] += g->value_bytes[v];
        if (self->waits[self->last_reader[v]] == 0)
            set_leaf(self, (mpl_op)self->last_reader[v], true);
    }
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        mpl_value v = g->op_out[i];

        for (uint32_t j = v == MPL_NONE ? 0 : g->value_use_begin[v];
             v != MPL_NONE && j < g->value_use_begin[v + 1]; j++)
            if (self->needed[g->value_use[j]] && --self->waits[g->value_use[j]] == 0)
                set_leaf(self, g->value_use[j], true);
    }
}

mpl_status mpl_order_greedy(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order)
{
    mpl_status st = MPL_OK;
    greedy y = {.g = g};
    uint64_t live = 0, peak = 0;
    uint32_t n = 0;

    MPL_TRY(greedy_init(ctx, &y));
    for (; y.best[1] != MPL_NONE; n++) {
        mpl_op op = best_within(&y, peak - live);

        if (op == MPL_NONE)
            op = best_within(&y, least_made(&y));
        live += y.makes[op];
        peak = mpl_max_u64(peak, live);
        live -= y.frees[op];
        order[n] = op;
        greedy_take(&y, op);
    }
    append_unneeded(g, y.needed, order, n);
out:;
    void *arrays[] = {y.root,  y.needed, y.counted, y.waits,   y.readers, y.last_reader, y.makes,
                      y.frees, y.best,   y.leaf_op, y.leaf_of, y.touched, y.seen};
    MPL_FREE_ALL(ctx, arrays);
    return st;
}
