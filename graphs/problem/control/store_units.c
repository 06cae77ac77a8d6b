/* store_units.c -- when contents are needed, in one order of a program and in all. See
 * storage_priv.h.
 *
 * Serial, a row is one set of steps. Parallel, it has two sets: points certainly needed, and points
 * possibly needed. Two values may share memory if neither may be needed where the other certainly
 * is. Points of concurrent units go into the second set. Every value is born at a point of its
 * first set. */
#include "graphs/problem/control/storage_priv.h"

static uint64_t meet(const mpl_store *store, const uint64_t *a, const uint64_t *b, uint32_t w)
{
    return store->units == NULL ? a[w] & b[w]
                                : (a[w] & b[store->half + w]) | (a[store->half + w] & b[w]);
}

bool mpl_rows_meet(const mpl_store *store, const uint64_t *a, const uint64_t *b)
{
    for (uint32_t w = 0; w < store->half; w++)
        if (meet(store, a, b, w) != 0)
            return true;
    return false;
}

bool mpl_rows_meet_at(const mpl_store *store, const uint64_t *a, const uint64_t *b, uint32_t step)
{
    for (uint32_t w = 0; w < store->half; w++)
        if (meet(store, a, b, w) != (w == step / 64 ? UINT64_C(1) << (step % 64) : 0))
            return false;
    return true;
}

/* Adds all points of units that run concurrently with `unit` to the second set. */
static void add_beside(const mpl_store *store, uint64_t *row, uint32_t unit)
{
    const mpl_units *units = store->units;

    for (uint32_t w = 0; w < store->half; w++)
        row[store->half + w] |= units->beside[(size_t)unit * units->point_words + w];
}

/* Marks contents as needed from step `from` to step `last` of one unit. */
static void row_set_range(const mpl_store *store, uint64_t *row, uint32_t from, uint32_t last)
{
    if (store->units != NULL)
        mpl_points_set_range(store->units, from, last, row);
    for (uint32_t step = from; store->units == NULL && step <= last; step++)
        mpl_bit_add(row, step);
}

void mpl_row_set(const mpl_store *store, uint64_t *row, uint32_t step)
{
    row_set_range(store, row, step, step);
}

/* ---- rows for every order ---- */

typedef struct widener {
    mpl_store *store;
    const mpl_units *units;
    uint64_t *users;  /* [n_values * units->words] units that read a value */
    uint64_t *behind; /* [units->words] scratch: units that run only after all of those */
    uint64_t *old;    /* [half] scratch: the previous row */
} widener;

static void add_user(widener *self, mpl_value v, uint32_t unit)
{
    if (v != MPL_NONE)
        mpl_bit_add(self->users + (size_t)self->store->hold[v] * self->units->words, unit);
}

static void list_users(widener *self)
{
    const mpl_graph *g = self->store->g;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++)
            add_user(self, g->op_in[i], mpl_unit_of(self->units, self->store->program, op));
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            add_user(self, mpl_result(g, b, i),
                     mpl_unit_of(self->units, self->store->program, g->block_owner[b]));
}

/* Adds the points of one unit to the row of a value of block 0. `all`: the value may still be read
 * later. */
static void widen_unit(const widener *self, uint64_t *row, uint32_t unit, bool makes, bool reads,
                       bool all)
{
    const mpl_units *units = self->units;
    uint64_t *wide = row + self->store->half;

    if (reads) {
        mpl_bit_add(row, mpl_point_entry(units, unit));
        mpl_bit_add(wide, mpl_point_entry(units, unit));
    }
    for (uint32_t step = units->first[unit]; step <= units->last[unit]; step++)
        if (mpl_bit_has(self->old, step)) {
            mpl_bit_add(wide, step);
            if (makes || reads)
                mpl_bit_add(row, step);
        }
    if (all)
        mpl_points_set_unit(units, unit, wide);
}

/* Whether `unit`, one of `users`, runs only after all others of them. */
static bool is_last(const widener *self, const uint64_t *users, uint32_t unit)
{
    for (uint32_t k = 0; k < self->units->words; k++)
        if ((users[k] & ~self->units->earlier[(size_t)unit * self->units->words + k] &
             ~(k == unit / 64 ? UINT64_C(1) << (unit % 64) : 0)) != 0)
            return false;
    return true;
}

/* An input that nothing reads is there as the run begins, as under serial safety: at the first step
 * of the first unit, which any unit without an earlier one may be. */
static void widen_unread(const widener *self, uint64_t *row)
{
    const mpl_units *units = self->units;

    for (uint32_t unit = 0; unit < units->n; unit++) {
        bool first = true;

        for (uint32_t k = 0; k < units->words; k++)
            first = first && units->earlier[(size_t)unit * units->words + k] == 0;
        if (first)
            mpl_bit_add(row, units->first[unit]),
                mpl_bit_add(row + self->store->half, units->first[unit]);
    }
}

static void widen_outer(const widener *self, mpl_value v)
{
    const mpl_units *units = self->units;
    const mpl_store *store = self->store;
    uint64_t *row = mpl_row(store, v), *users = self->users + (size_t)v * units->words;
    uint32_t maker = store->g->value_op[v] != MPL_NONE
                         ? mpl_unit_of(units, store->program, store->g->value_op[v])
                         : MPL_NONE;
    bool kept = mpl_bit_has(self->old, mpl_point_end(units)), used = maker != MPL_NONE;

    memset(self->behind, 0xff, units->words * sizeof *self->behind);
    for (uint32_t unit = 0; unit < units->n; unit++)
        if (unit == maker || mpl_bit_has(users, unit)) {
            used = true;
            for (uint32_t k = 0; k < units->words; k++)
                self->behind[k] &= units->later[(size_t)unit * units->words + k];
        }
    for (uint32_t unit = 0; unit < units->n && used; unit++) {
        bool reads = mpl_bit_has(users, unit);
        bool before =
            maker != MPL_NONE && mpl_bit_has(units->earlier + (size_t)maker * units->words, unit);

        if (unit == maker)
            widen_unit(self, row, unit, true, false, false);
        else if (!before)
            widen_unit(
                self, row, unit, false, reads,
                kept || (reads ? !is_last(self, users, unit) : !mpl_bit_has(self->behind, unit)));
    }
    if (!used)
        widen_unread(self, row);
    if (maker == MPL_NONE)
        mpl_bit_add(row, mpl_point_start(units)),
            mpl_bit_add(row + store->half, mpl_point_start(units));
    if (kept)
        mpl_bit_add(row, mpl_point_end(units)),
            mpl_bit_add(row + store->half, mpl_point_end(units));
}

/* A value of an inner block is needed in its unit only, so it conflicts with all concurrent
 * units. */
static void widen_inner(const widener *self, mpl_value v)
{
    const mpl_store *store = self->store;
    uint32_t b = store->g->value_block[v];

    memcpy(mpl_row(store, v), self->old, store->half * sizeof *self->old);
    memcpy(mpl_row(store, v) + store->half, self->old, store->half * sizeof *self->old);
    add_beside(store, mpl_row(store, v),
               mpl_unit_of(self->units, store->program, store->g->block_owner[b]));
}

mpl_status mpl_store_widen(mpl_store *store)
{
    mpl_status st = MPL_OK;
    widener w = {.store = store, .units = store->units};

    if (store->units == NULL)
        return MPL_OK;
    MPL_TRY(mpl_new(store->ctx, w.users, (size_t)store->g->n_values * w.units->words));
    MPL_TRY(mpl_new(store->ctx, w.behind, w.units->words));
    MPL_TRY(mpl_new(store->ctx, w.old, store->half));
    list_users(&w);
    for (mpl_value v = 0; v < store->g->n_values; v++) {
        uint64_t any = 0;

        memcpy(w.old, mpl_row(store, v), store->half * sizeof *w.old);
        for (uint32_t k = 0; k < store->half; k++)
            any |= w.old[k];
        memset(mpl_row(store, v), 0, store->words * sizeof *store->row);
        if (any == 0)
            continue;
        if (store->g->value_block[v] == 0)
            widen_outer(&w, v);
        else
            widen_inner(&w, v);
    }
out:
    mpl_free_each(store->ctx, w.users, w.behind, w.old);
    return st;
}
