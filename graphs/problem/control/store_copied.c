/* store_copied.c -- carried values copied at the end of each round, and staging for crosswise
 * copies. See store_while.c. */
#include "graphs/problem/control/store_while_priv.h"

bool mpl_loop_hold_at(mpl_loop *loop, mpl_value v, uint32_t step)
{
    memset(loop->other, 0, loop->store->words * sizeof *loop->other);
    mpl_row_set(loop->store, loop->other, step);
    return mpl_hold(loop->store, v, loop->other);
}

mpl_status mpl_loop_place_copied(mpl_loop *loop, uint32_t i)
{
    mpl_store *store = loop->store;
    mpl_pair *pair = &loop->pair[i];

    if (!pair->wanted && pair->out == MPL_NONE)
        return MPL_OK;
    store->how[pair->param] = MPL_HOW_CELL;
    mpl_row_set(store, mpl_row(store, pair->param), loop->begin);
    mpl_row_set(store, mpl_row(store, pair->param), loop->end);
    store->result_copied[pair->result] = 1;
    if (pair->out != MPL_NONE && !mpl_cells_join(store, pair->out, pair->param))
        return MPL_REFUSE(store->ctx, "the output '%.100s' of a loop cannot be placed",
                          loop->g->value_name[pair->out]);
    if (!pair->shared && store->how[pair->init] == MPL_HOW_CELL &&
        mpl_cells_join(store, pair->init, pair->param))
        return MPL_OK;
    store->in_copied[pair->in] = 1;
    if (!mpl_loop_hold_at(loop, pair->init, loop->begin))
        return MPL_REFUSE(store->ctx, "the initial value '%.100s' of a loop cannot be kept",
                          loop->g->value_name[pair->init]);
    return MPL_OK;
}

/* Whether pair i must be copied after pair k: the source of k may lie in the place of i's
 * parameter. */
static bool waits_for(const mpl_loop *loop, uint32_t i, uint32_t k)
{
    const mpl_pair *from = &loop->pair[k];

    for (uint32_t n = 0; i != k && n < from->n_deps; n++)
        if (mpl_cell(loop->store, loop->store->deps[from->dep + n]) ==
            mpl_cell(loop->store, loop->pair[i].param))
            return true;
    return false;
}

/* Makes all copies that need not wait. Returns whether there were any. */
static bool copy_what_can(const mpl_loop *loop, uint8_t *left)
{
    bool moved = false;

    for (uint32_t i = 0; i < loop->n; i++) {
        bool waits = false;

        for (uint32_t k = 0; k < loop->n && left[i] && !waits; k++)
            waits = left[k] && waits_for(loop, i, k);
        moved = moved || (left[i] && !waits);
        left[i] = left[i] && waits;
    }
    return moved;
}

/* Bytes to stage when pairs are copied in sequence, each as soon as it need not wait. If all wait,
 * stages the first that another waits for. At run time, when the actual places are known, the same
 * rule stages a subset of these. `left` is 1 for each copied pair. */
static uint64_t staged_bytes(const mpl_loop *loop, uint8_t *left)
{
    uint64_t bytes = 0;
    uint32_t stuck;

    do {
        while (copy_what_can(loop, left)) {
        }
        stuck = MPL_NONE;
        for (uint32_t k = 0; k < loop->n && stuck == MPL_NONE; k++)
            for (uint32_t i = 0; i < loop->n && left[k] && stuck == MPL_NONE; i++)
                stuck = left[i] && waits_for(loop, i, k) ? k : MPL_NONE;
        if (stuck != MPL_NONE) {
            bytes += loop->g->value_bytes[loop->pair[stuck].param];
            loop->pair[stuck].n_deps = 0; /* now in staging, so others need not wait */
        }
    } while (stuck != MPL_NONE);
    return bytes;
}

mpl_status mpl_loop_add_staging(mpl_loop *loop)
{
    mpl_status st = MPL_OK;
    mpl_store *store = loop->store;
    uint32_t n_deps = store->n_deps;
    uint64_t bytes;
    uint8_t *left = NULL;

    MPL_TRY(mpl_new(store->ctx, left, loop->n));
    for (uint32_t i = 0; i < loop->n; i++) {
        mpl_pair *pair = &loop->pair[i];

        left[i] = pair->copied && store->result_copied[pair->result];
        if (!left[i])
            continue;
        pair->dep = store->n_deps;
        MPL_TRY(mpl_add_deps(store, pair->source));
        pair->n_deps = store->n_deps - pair->dep;
    }
    bytes = staged_bytes(loop, left);
    if (bytes > 0) {
        store->staging[loop->body] = mpl_item_new(store, MPL_NONE, bytes, 0);
        mpl_row_set(store, mpl_row(store, store->staging[loop->body]), loop->end);
    }
out:
    store->n_deps = n_deps;
    mpl_free(store->ctx, left);
    return st;
}
