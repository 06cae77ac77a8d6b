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

static void find_needed(cutter *c)
{
    const mpl_graph *g = c->g;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        if (c->alias->nothing[op])
            continue;
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++)
            if (g->op_in[i] != MPL_NONE)
                c->needed[g->op_in[i]] = 1;
        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
            if (g->op_out[i] != MPL_NONE)
                c->needed[g->op_out[i]] = 1;
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        c->needed[g->output[i]] = 1;
}

/* Marks roots that are never split. */
static void find_whole(cutter *c)
{
    const mpl_graph *g = c->g;

    for (mpl_value v = 0; v < g->n_values; v++)
        c->whole[v] = (c->what != MPL_CUT_ALL && g->value_op[v] == MPL_NONE) || g->n_blocks > 1;
    for (mpl_value v = 0; v < g->n_values; v++)
        if (mpl_alias_strided(c->alias, v))
            c->whole[c->alias->root[v]] = 1;
}

static void put_mark(cutter *c, mpl_value root, uint64_t at)
{
    c->marks[c->n_marks++] = (mark){root, at};
}

/* Sets the marks, sorted and distinct: ends of roots, and of needed values in split roots. */
static void set_marks(cutter *c)
{
    const mpl_graph *g = c->g;
    uint32_t n = 0;

    c->n_marks = 0;
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = c->alias->root[v];
        uint64_t end;

        if (g->value_bytes[v] == 0 || (root != v && (c->whole[root] || !c->needed[v])))
            continue;
        end = (c->alias->offset[v] + g->value_bytes[v] + c->align - 1) & ~(uint64_t)(c->align - 1);
        put_mark(c, root, c->alias->offset[v]);
        put_mark(c, root, mpl_min_u64(end, g->value_bytes[root]));
    }
    qsort(c->marks, c->n_marks, sizeof *c->marks, by_place);
    for (uint32_t i = 0; i < c->n_marks; i++)
        if (n == 0 || by_place(&c->marks[n - 1], &c->marks[i]) != 0)
            c->marks[n++] = c->marks[i];
    c->n_marks = n;
}

static void fill_parts(cutter *c)
{
    const mpl_graph *g = c->g;
    mpl_cuts *p = &c->parts;

    p->n = 0;
    for (mpl_value v = 0; v < g->n_values; v++) {
        p->first[v] = MPL_NONE;
        p->count[v] = 0;
    }
    for (uint32_t i = 0; i + 1 < c->n_marks; i++) {
        mpl_value root = c->marks[i].root;

        if (c->marks[i + 1].root != root)
            continue;
        if (p->count[root]++ == 0)
            p->first[root] = p->n;
        p->root[p->n] = root;
        p->at[p->n] = c->marks[i].at;
        p->bytes[p->n++] = c->marks[i + 1].at - c->marks[i].at;
    }
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = c->alias->root[v];
        uint64_t from = c->alias->offset[v], to = from + g->value_bytes[v];

        for (uint32_t i = p->first[root];
             root != v && from < to && i < p->first[root] + p->count[root]; i++) {
            if (p->at[i] >= to || p->at[i] + p->bytes[i] <= from)
                continue;
            if (p->count[v]++ == 0)
                p->first[v] = i;
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
static void find_overwritten(cutter *c, bool *any)
{
    const mpl_graph *g = c->g;

    *any = false;
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = 0; i < mpl_n_read(g, op) && !c->alias->nothing[op]; i++) {
            mpl_value in = mpl_op_input(g, op, i);

            if (in == MPL_NONE || c->parts.count[in] < 2 ||
                g->op_out_begin[op] == g->op_out_begin[op + 1] ||
                mpl_op_output(g, op, 0) == MPL_NONE || !mpl_in_place_part(g, c->alias, op, i))
                continue;
            *any = true;
            c->whole[c->alias->root[in]] = 1;
        }
}

static mpl_status parts_alloc(cutter *c)
{
    uint32_t n = c->g->n_values;

    MPL_PASS(mpl_new_each(c->ctx, n, c->needed, c->whole));
    MPL_PASS(
        mpl_new_each(c->ctx, 2 * (size_t)n, c->marks, c->parts.root, c->parts.at, c->parts.bytes));
    MPL_PASS(mpl_new(c->ctx, c->parts.first, n));
    return mpl_new(c->ctx, c->parts.count, n);
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

void mpl_cuts_free(mpl_ctx *ctx, mpl_cuts *p)
{
    void *arrays[] = {p->root, p->at, p->bytes, p->first, p->count};

    MPL_FREE_ALL(ctx, arrays);
    *p = (mpl_cuts){0};
}
