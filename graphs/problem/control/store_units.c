/* store_units.c -- when contents are needed, in one order of a program and in all. See
 * storage_priv.h.
 *
 * Serial, a row is one set of steps. Parallel, it has two sets: points certainly needed, and points
 * possibly needed. Two values may share memory if neither may be needed where the other certainly
 * is. Points of concurrent units go into the second set. Every value is born at a point of its
 * first set. */
#include "graphs/problem/control/storage_priv.h"

static uint64_t meet(const mpl_store *s, const uint64_t *a, const uint64_t *b, uint32_t w)
{
    return s->units == NULL ? a[w] & b[w] : (a[w] & b[s->half + w]) | (a[s->half + w] & b[w]);
}

bool mpl_rows_meet(const mpl_store *s, const uint64_t *a, const uint64_t *b)
{
    for (uint32_t w = 0; w < s->half; w++)
        if (meet(s, a, b, w) != 0)
            return true;
    return false;
}

bool mpl_rows_meet_at(const mpl_store *s, const uint64_t *a, const uint64_t *b, uint32_t step)
{
    for (uint32_t w = 0; w < s->half; w++)
        if (meet(s, a, b, w) != (w == step / 64 ? UINT64_C(1) << (step % 64) : 0))
            return false;
    return true;
}

/* Adds all points of units that run concurrently with `unit` to the second set. */
static void add_beside(const mpl_store *s, uint64_t *row, uint32_t unit)
{
    const mpl_units *u = s->units;

    for (uint32_t w = 0; w < s->half; w++)
        row[s->half + w] |= u->beside[(size_t)unit * u->point_words + w];
}

/* Marks contents as needed from step `from` to step `last` of one unit. */
static void row_set_range(const mpl_store *s, uint64_t *row, uint32_t from, uint32_t last)
{
    if (s->units != NULL)
        mpl_points_set_range(s->units, from, last, row);
    for (uint32_t step = from; s->units == NULL && step <= last; step++)
        mpl_bit_add(row, step);
}

void mpl_row_set(const mpl_store *s, uint64_t *row, uint32_t step)
{
    row_set_range(s, row, step, step);
}

/* ---- rows for every order ---- */

typedef struct widener {
    mpl_store *s;
    const mpl_units *u;
    uint64_t *users;  /* [n_values * units->words] units that read a value */
    uint64_t *behind; /* [units->words] scratch: units that run only after all of those */
    uint64_t *old;    /* [half] scratch: the previous row */
} widener;

static void add_user(widener *w, mpl_value v, uint32_t unit)
{
    if (v != MPL_NONE)
        mpl_bit_add(w->users + (size_t)w->s->hold[v] * w->u->words, unit);
}

static void list_users(widener *w)
{
    const mpl_graph *g = w->s->g;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++)
            add_user(w, g->op_in[i], mpl_unit_of(w->u, w->s->program, op));
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            add_user(w, mpl_result(g, b, i), mpl_unit_of(w->u, w->s->program, g->block_owner[b]));
}

/* Adds the points of one unit to the row of a value of block 0. `all`: the value may still be read
 * later. */
static void widen_unit(const widener *w, uint64_t *row, uint32_t unit, bool makes, bool reads,
                       bool all)
{
    const mpl_units *u = w->u;
    uint64_t *wide = row + w->s->half;

    if (reads) {
        mpl_bit_add(row, mpl_point_entry(u, unit));
        mpl_bit_add(wide, mpl_point_entry(u, unit));
    }
    for (uint32_t step = u->first[unit]; step <= u->last[unit]; step++)
        if (mpl_bit_has(w->old, step)) {
            mpl_bit_add(wide, step);
            if (makes || reads)
                mpl_bit_add(row, step);
        }
    if (all)
        mpl_points_set_unit(u, unit, wide);
}

/* Whether `unit`, one of `users`, runs only after all others of them. */
static bool is_last(const widener *w, const uint64_t *users, uint32_t unit)
{
    for (uint32_t k = 0; k < w->u->words; k++)
        if ((users[k] & ~w->u->earlier[(size_t)unit * w->u->words + k] &
             ~(k == unit / 64 ? UINT64_C(1) << (unit % 64) : 0)) != 0)
            return false;
    return true;
}

/* An input that nothing reads is there as the run begins, as under serial safety: at the first step
 * of the first unit, which any unit without an earlier one may be. */
static void widen_unread(const widener *w, uint64_t *row)
{
    const mpl_units *u = w->u;

    for (uint32_t unit = 0; unit < u->n; unit++) {
        bool first = true;

        for (uint32_t k = 0; k < u->words; k++)
            first = first && u->earlier[(size_t)unit * u->words + k] == 0;
        if (first)
            mpl_bit_add(row, u->first[unit]), mpl_bit_add(row + w->s->half, u->first[unit]);
    }
}

static void widen_outer(const widener *w, mpl_value v)
{
    const mpl_units *u = w->u;
    const mpl_store *s = w->s;
    uint64_t *row = mpl_row(s, v), *users = w->users + (size_t)v * u->words;
    uint32_t maker =
        s->g->value_op[v] != MPL_NONE ? mpl_unit_of(u, s->program, s->g->value_op[v]) : MPL_NONE;
    bool kept = mpl_bit_has(w->old, mpl_point_end(u)), used = maker != MPL_NONE;

    memset(w->behind, 0xff, u->words * sizeof *w->behind);
    for (uint32_t unit = 0; unit < u->n; unit++)
        if (unit == maker || mpl_bit_has(users, unit)) {
            used = true;
            for (uint32_t k = 0; k < u->words; k++)
                w->behind[k] &= u->later[(size_t)unit * u->words + k];
        }
    for (uint32_t unit = 0; unit < u->n && used; unit++) {
        bool reads = mpl_bit_has(users, unit);
        bool before = maker != MPL_NONE && mpl_bit_has(u->earlier + (size_t)maker * u->words, unit);

        if (unit == maker)
            widen_unit(w, row, unit, true, false, false);
        else if (!before)
            widen_unit(w, row, unit, false, reads,
                       kept || (reads ? !is_last(w, users, unit) : !mpl_bit_has(w->behind, unit)));
    }
    if (!used)
        widen_unread(w, row);
    if (maker == MPL_NONE)
        mpl_bit_add(row, mpl_point_start(u)), mpl_bit_add(row + s->half, mpl_point_start(u));
    if (kept)
        mpl_bit_add(row, mpl_point_end(u)), mpl_bit_add(row + s->half, mpl_point_end(u));
}

/* A value of an inner block is needed in its unit only, so it conflicts with all concurrent
 * units. */
static void widen_inner(const widener *w, mpl_value v)
{
    const mpl_store *s = w->s;
    uint32_t b = s->g->value_block[v];

    memcpy(mpl_row(s, v), w->old, s->half * sizeof *w->old);
    memcpy(mpl_row(s, v) + s->half, w->old, s->half * sizeof *w->old);
    add_beside(s, mpl_row(s, v), mpl_unit_of(w->u, s->program, s->g->block_owner[b]));
}

mpl_status mpl_store_widen(mpl_store *s)
{
    mpl_status st = MPL_OK;
    widener w = {.s = s, .u = s->units};

    if (s->units == NULL)
        return MPL_OK;
    MPL_TRY(mpl_new(s->ctx, w.users, (size_t)s->g->n_values * w.u->words));
    MPL_TRY(mpl_new(s->ctx, w.behind, w.u->words));
    MPL_TRY(mpl_new(s->ctx, w.old, s->half));
    list_users(&w);
    for (mpl_value v = 0; v < s->g->n_values; v++) {
        uint64_t any = 0;

        memcpy(w.old, mpl_row(s, v), s->half * sizeof *w.old);
        for (uint32_t k = 0; k < s->half; k++)
            any |= w.old[k];
        memset(mpl_row(s, v), 0, s->words * sizeof *s->row);
        if (any == 0)
            continue;
        if (s->g->value_block[v] == 0)
            widen_outer(&w, v);
        else
            widen_inner(&w, v);
    }
out:
    mpl_free_each(s->ctx, w.users, w.behind, w.old);
    return st;
}
