/* store_copied.c -- carried values copied at the end of each round, and staging for crosswise
 * copies. See store_while.c. */
#include "graphs/problem/control/store_while_priv.h"

bool mpl_loop_hold_at(mpl_loop *l, mpl_value v, uint32_t step)
{
    memset(l->other, 0, l->s->words * sizeof *l->other);
    mpl_row_set(l->s, l->other, step);
    return mpl_hold(l->s, v, l->other);
}

mpl_status mpl_loop_place_copied(mpl_loop *l, uint32_t i)
{
    mpl_store *s = l->s;
    mpl_pair *p = &l->pair[i];

    if (!p->wanted && p->out == MPL_NONE)
        return MPL_OK;
    s->how[p->param] = MPL_HOW_CELL;
    mpl_row_set(s, mpl_row(s, p->param), l->begin);
    mpl_row_set(s, mpl_row(s, p->param), l->end);
    s->result_copied[p->result] = 1;
    if (p->out != MPL_NONE && !mpl_cells_join(s, p->out, p->param))
        return MPL_REFUSE(s->ctx, "the output '%.100s' of a loop cannot be placed",
                          l->g->value_name[p->out]);
    if (!p->shared && s->how[p->init] == MPL_HOW_CELL && mpl_cells_join(s, p->init, p->param))
        return MPL_OK;
    s->in_copied[p->in] = 1;
    if (!mpl_loop_hold_at(l, p->init, l->begin))
        return MPL_REFUSE(s->ctx, "the initial value '%.100s' of a loop cannot be kept",
                          l->g->value_name[p->init]);
    return MPL_OK;
}

/* Whether pair i must be copied after pair k: the source of k may lie in the place of i's
 * parameter. */
static bool waits_for(const mpl_loop *l, uint32_t i, uint32_t k)
{
    const mpl_pair *from = &l->pair[k];

    for (uint32_t n = 0; i != k && n < from->n_deps; n++)
        if (mpl_cell(l->s, l->s->deps[from->dep + n]) == mpl_cell(l->s, l->pair[i].param))
            return true;
    return false;
}

/* Makes all copies that need not wait. Returns whether there were any. */
static bool copy_what_can(const mpl_loop *l, uint8_t *left)
{
    bool moved = false;

    for (uint32_t i = 0; i < l->n; i++) {
        bool waits = false;

        for (uint32_t k = 0; k < l->n && left[i] && !waits; k++)
            waits = left[k] && waits_for(l, i, k);
        moved = moved || (left[i] && !waits);
        left[i] = left[i] && waits;
    }
    return moved;
}

/* Bytes to stage when pairs are copied in sequence, each as soon as it need not wait. If all wait,
 * stages the first that another waits for. At run time, when the actual places are known, the same
 * rule stages a subset of these. `left` is 1 for each copied pair. */
static uint64_t staged_bytes(const mpl_loop *l, uint8_t *left)
{
    uint64_t bytes = 0;
    uint32_t stuck;

    do {
        while (copy_what_can(l, left)) {
        }
        stuck = MPL_NONE;
        for (uint32_t k = 0; k < l->n && stuck == MPL_NONE; k++)
            for (uint32_t i = 0; i < l->n && left[k] && stuck == MPL_NONE; i++)
                stuck = left[i] && waits_for(l, i, k) ? k : MPL_NONE;
        if (stuck != MPL_NONE) {
            bytes += l->g->value_bytes[l->pair[stuck].param];
            l->pair[stuck].n_deps = 0; /* now in staging, so others need not wait */
        }
    } while (stuck != MPL_NONE);
    return bytes;
}

mpl_status mpl_loop_add_staging(mpl_loop *l)
{
    mpl_status st = MPL_OK;
    mpl_store *s = l->s;
    uint32_t n_deps = s->n_deps;
    uint64_t bytes;
    uint8_t *left = NULL;

    MPL_TRY(mpl_new(s->ctx, left, l->n));
    for (uint32_t i = 0; i < l->n; i++) {
        mpl_pair *p = &l->pair[i];

        left[i] = p->copied && s->result_copied[p->result];
        if (!left[i])
            continue;
        p->dep = s->n_deps;
        MPL_TRY(mpl_add_deps(s, p->source));
        p->n_deps = s->n_deps - p->dep;
    }
    bytes = staged_bytes(l, left);
    if (bytes > 0) {
        s->staging[l->body] = mpl_item_new(s, MPL_NONE, bytes, 0);
        mpl_row_set(s, mpl_row(s, s->staging[l->body]), l->end);
    }
out:
    s->n_deps = n_deps;
    mpl_free(s->ctx, left);
    return st;
}
