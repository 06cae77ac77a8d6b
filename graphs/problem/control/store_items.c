/* store_items.c -- cells: items that share storage, and their dependencies. See storage_priv.h. */
#include "graphs/problem/control/storage_priv.h"

#include <stdlib.h>

uint32_t mpl_cell(mpl_store *s, uint32_t item)
{
    while (s->parent[item] != item)
        item = s->parent[item] = s->parent[s->parent[item]];
    return item;
}

uint32_t mpl_item_new(mpl_store *s, mpl_value named, uint64_t bytes, uint32_t copy)
{
    uint32_t item = s->n_items++;

    mpl_assert(item < s->most_items);
    s->parent[item] = s->next[item] = item;
    s->turn[item] = MPL_NONE;
    s->bytes[item] = bytes;
    s->named[item] = named;
    s->copy[item] = copy;
    return item;
}

/* Whether no step of `row` is needed by a member of `cell` other than `item`. */
static bool cell_is_free(mpl_store *s, uint32_t cell, uint32_t item, const uint64_t *row)
{
    uint32_t at = cell;

    do {
        if (at != item && mpl_rows_meet(s, mpl_row(s, at), row))
            return false;
        at = s->next[at];
    } while (at != cell);
    return true;
}

bool mpl_cells_join(mpl_store *s, uint32_t a, uint32_t b)
{
    uint32_t at, swap;

    a = mpl_cell(s, a);
    b = mpl_cell(s, b);
    if (a == b)
        return true;
    if (s->turn[a] != MPL_NONE || s->turn[b] != MPL_NONE)
        return false;
    at = a;
    do {
        if (!cell_is_free(s, b, MPL_NONE, mpl_row(s, at)))
            return false;
        at = s->next[at];
    } while (at != a);
    if (b < a)
        swap = a, a = b, b = swap;
    s->parent[b] = a;
    swap = s->next[a], s->next[a] = s->next[b], s->next[b] = swap;
    s->bytes[a] = mpl_max_u64(s->bytes[a], s->bytes[b]);
    return true;
}

static bool hold_item(mpl_store *s, uint32_t item, const uint64_t *row)
{
    if (item < s->g->n_values && s->how[item] != MPL_HOW_CELL)
        return s->how[item] == MPL_HOW_PINNED;
    if (!cell_is_free(s, mpl_cell(s, item), item, row))
        return false;
    for (uint32_t w = 0; w < s->words; w++)
        mpl_row(s, item)[w] |= row[w];
    return true;
}

/* The whole that a slice is part of: the scan, or the stacked output. */
static mpl_value whole_of(const mpl_store *s, mpl_value slice)
{
    const mpl_graph *g = s->g;
    mpl_op op = s->of[slice];

    return s->hold[slice] != slice ? s->hold[slice]
                                   : s->spec->root[g->op_out[g->op_out_begin[op] + s->at[slice]]];
}

bool mpl_hold(mpl_store *s, mpl_value v, const uint64_t *row)
{
    if (s->how[v] == MPL_HOW_CELL || s->how[v] == MPL_HOW_PINNED)
        return hold_item(s, v, row);
    if (s->how[v] == MPL_HOW_SLICE)
        return mpl_hold(s, whole_of(s, v), row);
    if (s->how[v] == MPL_HOW_NOWHERE)
        return false;
    for (uint32_t i = 0; i < s->dep_n[v]; i++)
        if (!hold_item(s, s->deps[s->dep_begin[v] + i], row))
            return false;
    return true;
}

static mpl_status push_dep(mpl_store *s, uint32_t item)
{
    MPL_PASS(mpl_reserve(s->ctx, s->deps, s->deps_cap, (size_t)s->n_deps + 1));
    s->deps[s->n_deps++] = item;
    return MPL_OK;
}

mpl_status mpl_add_item_deps(mpl_store *s, uint32_t item)
{
    return item < s->g->n_values ? mpl_add_deps(s, item) : push_dep(s, item);
}

mpl_status mpl_add_deps(mpl_store *s, mpl_value v)
{
    if (s->how[v] == MPL_HOW_SLICE)
        return mpl_add_deps(s, whole_of(s, v));
    if (s->how[v] == MPL_HOW_CELL && s->turn[mpl_cell(s, v)] != MPL_NONE) {
        const mpl_turn *t = &s->turns[s->turn[mpl_cell(s, v)]];

        for (uint32_t i = 0; i < t->n_first + t->n_cycle; i++) {
            uint32_t item = s->refs[t->begin + i];

            MPL_PASS(mpl_add_item_deps(s, item));
        }
    } else if (s->how[v] == MPL_HOW_FINAL || s->how[v] == MPL_HOW_BRANCH) {
        for (uint32_t i = 0; i < s->dep_n[v]; i++)
            MPL_PASS(push_dep(s, s->deps[s->dep_begin[v] + i]));
    } else {
        MPL_PASS(push_dep(s, v));
    }
    return MPL_OK;
}
