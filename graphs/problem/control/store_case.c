/* store_case.c -- places the outputs of a case. See storage.h.
 *
 * A branch makes its result in the output's place, if nothing else needs that place. A value from
 * outside the branch, or a bypass value, stays where it is, and readers of the output look it up
 * there. A value is copied only if it cannot stay, or if the output needs a single address because
 * a loop carries it. */
#include "graphs/problem/control/storage_priv.h"

/* Whether the enclosing loop carries the value, itself or as a view. */
static bool is_carried(const mpl_store *store, mpl_value v)
{
    const mpl_graph *g = store->g;
    uint32_t b = g->value_block[v];
    mpl_op owner = g->block_owner[b];

    if (b == 0 || g->op_kind[owner] != MPL_OP_while)
        return false;
    for (uint32_t i = 1; i <= mpl_n_carried(g, owner); i++)
        if (store->spec->root[mpl_result(g, b, i)] == v)
            return true;
    return false;
}

typedef struct output {
    mpl_value value;
    uint32_t home;  /* the item that branches leave it in by default */
    bool one_place; /* it needs a single address */
    bool home_used, elsewhere;
} output;

/* Places one result, root value v: made at home, left where it is, or copied to home at `step`. */
static mpl_status place_result(mpl_store *store, output *o, mpl_value v, uint32_t block,
                               uint32_t step, uint8_t *copied)
{
    bool local = store->how[v] == MPL_HOW_CELL && store->g->value_op[v] != MPL_NONE &&
                 store->g->value_block[v] == block;

    if (local && mpl_cells_join(store, v, o->home)) {
        o->home_used = true;
    } else if (!o->one_place && mpl_hold(store, v, mpl_row(store, o->value))) {
        o->elsewhere = true;
        MPL_PASS(mpl_add_deps(store, v));
    } else {
        *copied = 1;
        o->home_used = true;
        mpl_row_set(store, mpl_row(store, o->home), step);
    }
    return MPL_OK;
}

static mpl_status place_bypass(mpl_store *store, mpl_op op, output *o, uint32_t in)
{
    mpl_status st = MPL_OK;
    mpl_value v = store->spec->root[store->g->op_in[in]];
    uint32_t step = store->program->op_step[op];
    uint64_t *row = NULL;

    MPL_TRY(place_result(store, o, v, MPL_NONE, step, &store->in_copied[in]));
    if (!store->in_copied[in])
        return MPL_OK;
    MPL_TRY(mpl_new(store->ctx, row, store->words));
    mpl_row_set(store, row, step);
    if (!mpl_hold(store, v, row)) /* it must exist until the copy */
        MPL_FAIL(store->ctx, MPL_EINPUT, "the bypass value '%.100s' of '%.100s' cannot be kept",
                 store->g->value_name[v], store->g->op_name[op]);
out:
    mpl_free(store->ctx, row);
    return st;
}

/* Makes the output the same as home, or a value that is looked up by branch. */
static void settle(mpl_store *store, mpl_op op, uint32_t at, output *o, uint32_t first_dep)
{
    uint64_t *mine = mpl_row(store, o->value), *home = mpl_row(store, o->home);

    if (o->elsewhere) {
        store->how[o->value] = MPL_HOW_BRANCH;
        store->of[o->value] = op;
        store->at[o->value] = at;
        store->ref0[o->value] = o->home;
        store->dep_begin[o->value] = first_dep;
        store->dep_n[o->value] = store->n_deps - first_dep;
        memset(mine, 0, store->words * sizeof *mine);
    } else {
        memcpy(mine, home, store->words * sizeof *mine);
    }
    if (!o->elsewhere || !o->home_used)
        memset(home, 0, store->words * sizeof *home);
    if (!o->elsewhere)
        mpl_cells_join(store, o->value, o->home);
}

static mpl_status store_output(mpl_store *store, mpl_op op, uint32_t at)
{
    const mpl_graph *g = store->g;
    mpl_value v = mpl_op_output(g, op, at);
    uint32_t bypass = g->op_in_begin[op] + 1 + at, first_dep = store->n_deps;
    output o = {.value = v, .one_place = is_carried(store, v)};

    o.home = mpl_item_new(store, v, g->value_bytes[v], 0);
    memcpy(mpl_row(store, o.home), mpl_row(store, v), store->words * sizeof *store->row);
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++) {
        uint32_t b = g->op_body[k];

        MPL_PASS(place_result(store, &o, store->spec->root[mpl_result(g, b, at)], b,
                              store->program->end_step[b],
                              &store->result_copied[g->block_result_begin[b] + at]));
    }
    if (bypass < g->op_in_begin[op + 1])
        MPL_PASS(place_bypass(store, op, &o, bypass));
    if (o.home_used && o.elsewhere)
        MPL_PASS(mpl_add_item_deps(store, o.home));
    settle(store, op, at, &o, first_dep);
    return MPL_OK;
}

mpl_status mpl_store_case(mpl_store *store, mpl_op op)
{
    for (uint32_t i = store->g->op_out_begin[op]; i < store->g->op_out_begin[op + 1]; i++)
        if (store->g->op_out[i] != MPL_NONE && store->how[store->g->op_out[i]] == MPL_HOW_CELL)
            MPL_PASS(store_output(store, op, i - store->g->op_out_begin[op]));
    return MPL_OK;
}
