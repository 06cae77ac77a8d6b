/* cuts.c -- see cuts.h. */
#include "graphs/problem/cuts.h"

#include "graphs/problem/liveness.h"

#include <stdlib.h>

typedef struct mark {
    mpl_value root;
    uint64_t at; /* [byte] */
} mark;

typedef struct cutter {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_alias *alias;
    mpl_cuts_what what;
    uint32_t align;
    uint8_t *needed; /* [n_values] some operation writes or reads it */
    uint8_t *whole;  /* [n_values] a root that is not split */
    mark *marks;     /* where parts begin and end */
    uint32_t n_marks;
    mpl_cuts parts;
} cutter;

static int by_place(const void *left, const void *right)
{
    const mark *x = left, *y = right;

    if (x->root != y->root)
        return x->root > y->root ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

static void find_needed(cutter *self)
{
    const mpl_graph *g = self->g;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        if (self->alias->nothing[op])
            continue;
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++)
            if (g->op_in[i] != MPL_NONE)
                self->needed[g->op_in[i]] = 1;
        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
            if (g->op_out[i] != MPL_NONE)
                self->needed[g->op_out[i]] = 1;
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        self->needed[g->output[i]] = 1;
}

/* Marks roots that are never split. */
static void find_whole(cutter *self)
{
    const mpl_graph *g = self->g;

    for (mpl_value v = 0; v < g->n_values; v++)
        self->whole[v] =
            (self->what != MPL_CUT_ALL && g->value_op[v] == MPL_NONE) || g->n_blocks > 1;
    for (mpl_value v = 0; v < g->n_values; v++)
        if (mpl_alias_strided(self->alias, v))
            self->whole[self->alias->root[v]] = 1;
}

static void put_mark(cutter *self, mpl_value root, uint64_t at)
{
    self->marks[self->n_marks++] = (mark){root, at};
}

/* Sets the marks, sorted and distinct: ends of roots, and of needed values in split roots. */
static void set_marks(cutter *self)
{
    const mpl_graph *g = self->g;
    uint32_t n = 0;

    self->n_marks = 0;
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = self->alias->root[v];
        uint64_t end;

        if (g->value_bytes[v] == 0 || (root != v && (self->whole[root] || !self->needed[v])))
            continue;
        end = (self->alias->offset[v] + g->value_bytes[v] + self->align - 1) &
              ~(uint64_t)(self->align - 1);
        put_mark(self, root, self->alias->offset[v]);
        put_mark(self, root, mpl_min_u64(end, g->value_bytes[root]));
    }
    qsort(self->marks, self->n_marks, sizeof *self->marks, by_place);
    for (uint32_t i = 0; i < self->n_marks; i++)
        if (n == 0 || by_place(&self->marks[n - 1], &self->marks[i]) != 0)
            self->marks[n++] = self->marks[i];
    self->n_marks = n;
}

static void fill_parts(cutter *self)
{
    const mpl_graph *g = self->g;
    mpl_cuts *cuts = &self->parts;

    cuts->n = 0;
    for (mpl_value v = 0; v < g->n_values; v++) {
        cuts->first[v] = MPL_NONE;
        cuts->count[v] = 0;
    }
    for (uint32_t i = 0; i + 1 < self->n_marks; i++) {
        mpl_value root = self->marks[i].root;

        if (self->marks[i + 1].root != root)
            continue;
        if (cuts->count[root]++ == 0)
            cuts->first[root] = cuts->n;
        cuts->root[cuts->n] = root;
        cuts->at[cuts->n] = self->marks[i].at;
        cuts->bytes[cuts->n++] = self->marks[i + 1].at - self->marks[i].at;
    }
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = self->alias->root[v];
        uint64_t from = self->alias->offset[v], to = from + g->value_bytes[v];

        for (uint32_t i = cuts->first[root];
             root != v && from < to && i < cuts->first[root] + cuts->count[root]; i++) {
            if (cuts->at[i] >= to || cuts->at[i] + cuts->bytes[i] <= from)
                continue;
            if (cuts->count[v]++ == 0)
                cuts->first[v] = i;
        }
    }
}

bool mpl_cuts_operand(const mpl_graph *g, const mpl_alias *alias, const mpl_cuts *parts, mpl_op op,
                      uint32_t i)
{
    mpl_value in = mpl_op_input(g, op, i);

    return in != MPL_NONE && parts->count[in] == 1 && mpl_in_place_part(g, alias, op, i);
}

/* Leaves roots whole if an operation may overwrite in place a value that spans several parts. *any:
 * a new one was found. */
static void find_overwritten(cutter *self, bool *any)
{
    const mpl_graph *g = self->g;

    *any = false;
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = 0; i < mpl_n_read(g, op) && !self->alias->nothing[op]; i++) {
            mpl_value in = mpl_op_input(g, op, i);

            if (in == MPL_NONE || self->parts.count[in] < 2 ||
                g->op_out_begin[op] == g->op_out_begin[op + 1] ||
                mpl_op_output(g, op, 0) == MPL_NONE || !mpl_in_place_part(g, self->alias, op, i))
                continue;
            *any = true;
            self->whole[self->alias->root[in]] = 1;
        }
}

static mpl_status parts_alloc(cutter *self)
{
    uint32_t n = self->g->n_values;

    MPL_PASS(mpl_new_each(self->ctx, n, self->needed, self->whole));
    MPL_PASS(mpl_new_each(self->ctx, 2 * (size_t)n, self->marks, self->parts.root, self->parts.at,
                          self->parts.bytes));
    MPL_PASS(mpl_new(self->ctx, self->parts.first, n));
    return mpl_new(self->ctx, self->parts.count, n);
}

mpl_status mpl_cuts_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_alias *alias,
                        mpl_cuts_what what, uint32_t align, mpl_cuts *out)
{
    mpl_status st = MPL_OK;
    cutter c = {.ctx = ctx, .g = g, .alias = alias, .what = what, .align = align};
    bool again = false;

    MPL_TRY(parts_alloc(&c));
    find_needed(&c);
    find_whole(&c);
    do {
        set_marks(&c);
        fill_parts(&c);
        if (what == MPL_CUT_NOT_WRITTEN)
            find_overwritten(&c, &again);
    } while (again);
    *out = c.parts, c.parts = (mpl_cuts){0};
out:
    mpl_cuts_free(ctx, &c.parts);
    mpl_free_each(ctx, c.needed, c.whole, c.marks);
    return st;
}

void mpl_cuts_free(mpl_ctx *ctx, mpl_cuts *cuts)
{
    void *arrays[] = {cuts->root, cuts->at, cuts->bytes, cuts->first, cuts->count};

    MPL_FREE_ALL(ctx, arrays);
    *cuts = (mpl_cuts){0};
}
