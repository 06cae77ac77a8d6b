/* store_items.c -- cells: items that share storage, and their dependencies. See storage_priv.h. */
#include "graphs/problem/control/storage_priv.h"

#include <stdlib.h>

uint32_t mpl_cell(mpl_store *store, uint32_t item)
{
    while (store->parent[item] != item)
        item = store->parent[item] = store->parent[store->parent[item]];
    return item;
}

uint32_t mpl_item_new(mpl_store *store, mpl_value named, uint64_t bytes, uint32_t copy)
{
    uint32_t item = store->n_items++;

    mpl_assert(item < store->most_items);
    store->parent[item] = store->next[item] = item;
    store->turn[item] = MPL_NONE;
    store->bytes[item] = bytes;
    store->named[item] = named;
    store->copy[item] = copy;
    return item;
}

/* Whether no step of `row` is needed by a member of `cell` other than `item`. */
static bool cell_is_free(mpl_store *store, uint32_t cell, uint32_t item, const uint64_t *row)
{
    uint32_t at = cell;

    do {
        if (at != item && mpl_rows_meet(store, mpl_row(store, at), row))
            return false;
        at = store->next[at];
    } while (at != cell);
    return true;
}

bool mpl_cells_join(mpl_store *store, uint32_t a, uint32_t b)
{
    uint32_t at, swap;

    a = mpl_cell(store, a);
    b = mpl_cell(store, b);
    if (a == b)
        return true;
    if (store->turn[a] != MPL_NONE || store->turn[b] != MPL_NONE)
        return false;
    at = a;
    do {
        if (!cell_is_free(store, b, MPL_NONE, mpl_row(store, at)))
            return false;
        at = store->next[at];
    } while (at != a);
    if (b < a)
        swap = a, a = b, b = swap;
    store->parent[b] = a;
    swap = store->next[a], store->next[a] = store->next[b], store->next[b] = swap;
    store->bytes[a] = mpl_max_u64(store->bytes[a], store->bytes[b]);
    return true;
}

static bool hold_item(mpl_store *store, uint32_t item, const uint64_t *row)
{
    if (item < store->g->n_values && store->how[item] != MPL_HOW_CELL)
        return store->how[item] == MPL_HOW_PINNED;
    if (!cell_is_free(store, mpl_cell(store, item), item, row))
        return false;
    for (uint32_t w = 0; w < store->words; w++)
        mpl_row(store, item)[w] |= row[w];
    return true;
}

/* The whole that a slice is part of: the scan, or the stacked output. */
static mpl_value whole_of(const mpl_store *store, mpl_value slice)
{
    const mpl_graph *g = store->g;
    mpl_op op = store->of[slice];

    return store->hold[slice] != slice
               ? store->hold[slice]
               : store->spec->root[g->op_out[g->op_out_begin[op] + store->at[slice]]];
}

bool mpl_hold(mpl_store *store, mpl_value v, const uint64_t *row)
{
    if (store->how[v] == MPL_HOW_CELL || store->how[v] == MPL_HOW_PINNED)
        return hold_item(store, v, row);
    if (store->how[v] == MPL_HOW_SLICE)
        return mpl_hold(store, whole_of(store, v), row);
    if (store->how[v] == MPL_HOW_NOWHERE)
        return false;
    for (uint32_t i = 0; i < store->dep_n[v]; i++)
        if (!hold_item(store, store->deps[store->dep_begin[v] + i], row))
            return false;
    return true;
}

static mpl_status push_dep(mpl_store *store, uint32_t item)
{
    MPL_PASS(mpl_reserve(store->ctx, store->deps, store->deps_cap, (size_t)store->n_deps + 1));
    store->deps[store->n_deps++] = item;
    return MPL_OK;
}

mpl_status mpl_add_item_deps(mpl_store *store, uint32_t item)
{
    return item < store->g->n_values ? mpl_add_deps(store, item) : push_dep(store, item);
}

mpl_status mpl_add_deps(mpl_store *store, mpl_value v)
{
    if (store->how[v] == MPL_HOW_SLICE)
        return mpl_add_deps(store, whole_of(store, v));
    if (store->how[v] == MPL_HOW_CELL && store->turn[mpl_cell(store, v)] != MPL_NONE) {
        const mpl_turn *turn = &store->turns[store->turn[mpl_cell(store, v)]];

        for (uint32_t i = 0; i < turn->n_first + turn->n_cycle; i++) {
            uint32_t item = store->refs[turn->begin + i];

            MPL_PASS(mpl_add_item_deps(store, item));
        }
    } else if (store->how[v] == MPL_HOW_FINAL || store->how[v] == MPL_HOW_BRANCH) {
        for (uint32_t i = 0; i < store->dep_n[v]; i++)
            MPL_PASS(push_dep(store, store->deps[store->dep_begin[v] + i]));
    } else {
        MPL_PASS(push_dep(store, v));
    }
    return MPL_OK;
}
