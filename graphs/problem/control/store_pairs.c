/* store_pairs.c -- the carried values of a loop as pairs, and the chains of pairs. See
 * store_while.c. */
#include "graphs/problem/control/store_while_priv.h"

/* ---- pairs ---- */

int64_t mpl_loop_known_rounds(const mpl_loop *loop)
{
    const mpl_graph *g = loop->g;
    const mpl_value *in = g->op_in + g->op_in_begin[loop->op];
    int64_t most = mpl_while_most_rounds(g, loop->op), trips;

    if (in[1] != MPL_NONE || mpl_result(g, loop->body, 0) != MPL_NONE)
        return -1;
    for (mpl_op op = g->block_op_begin[loop->body]; op < g->block_op_end[loop->body]; op++)
        if (g->op_kind[op] == MPL_OP_exit_unless && g->op_block[op] == loop->body)
            return -1;
    if (in[0] == MPL_NONE)
        return most;
    if (g->value_role[in[0]] != MPL_WEIGHT || g->value_data[in[0]] == NULL)
        return -1;
    trips = *(const int64_t *)g->value_data[in[0]];
    trips = trips < 0 ? 0 : trips;
    return most >= 0 && most < trips ? most : trips;
}

uint32_t mpl_loop_same_place(mpl_store *store, uint32_t item)
{
    while (item != MPL_NONE) {
        bool cell = item >= store->g->n_values || store->how[item] == MPL_HOW_CELL;
        const mpl_turn *turn = cell && store->turn[mpl_cell(store, item)] != MPL_NONE
                                   ? &store->turns[store->turn[mpl_cell(store, item)]]
                                   : NULL;

        if (turn != NULL)
            item = turn->n_first == 0 && turn->n_cycle == 1 ? store->refs[turn->begin] : MPL_NONE;
        else if (cell || store->how[item] == MPL_HOW_PINNED)
            break;
        else
            item = store->how[item] == MPL_HOW_FINAL ? store->same[item] : MPL_NONE;
    }
    return item;
}

/* A result is often a parameter passed unchanged through an inner loop. */
static mpl_value source_of(mpl_store *store, mpl_value result)
{
    uint32_t item =
        store->how[result] == MPL_HOW_FINAL ? mpl_loop_same_place(store, result) : MPL_NONE;

    return item < store->g->n_values ? item : result;
}

void mpl_loop_find_pairs(mpl_loop *loop)
{
    mpl_store *store = loop->store;
    const mpl_graph *g = loop->g;

    for (uint32_t i = 0; i < loop->n; i++) {
        mpl_pair *pair = &loop->pair[i];
        mpl_value out = mpl_op_output(g, loop->op, i);

        pair->param = mpl_param(g, loop->body, 1 + i);
        pair->in = g->op_in_begin[loop->op] + 2 + i;
        pair->result = g->block_result_begin[loop->body] + 1 + i;
        pair->init = store->spec->root[g->op_in[pair->in]];
        pair->source = source_of(store, store->spec->root[g->block_result[pair->result]]);
        pair->out = out != MPL_NONE && store->out_live[out] && store->how[out] == MPL_HOW_CELL
                        ? out
                        : MPL_NONE;
        pair->wanted = store->how[pair->param] == MPL_HOW_CELL;
        pair->first = pair->init;
        pair->copied = store->spec->options->loop_copy;
    }
}

/* The round number and copied slices are made anew as each round begins. */
static bool is_given_anew(const mpl_loop *loop, mpl_value v)
{
    for (uint32_t i = 0; i < loop->g->block_n_params[loop->body]; i++)
        if (mpl_param(loop->g, loop->body, i) == v)
            return i == 0 || i > loop->n;
    return false;
}

bool mpl_loop_is_made_here(const mpl_loop *loop, mpl_value v)
{
    return loop->store->how[v] == MPL_HOW_CELL && loop->g->value_block[v] == loop->body &&
           (loop->g->value_op[v] != MPL_NONE || is_given_anew(loop, v));
}

static bool is_outside(const mpl_loop *loop, mpl_value v)
{
    return loop->g->value_block[v] != loop->body;
}

void mpl_loop_link_pairs(mpl_loop *loop)
{
    bool changed = true;

    for (uint32_t i = 0; i < loop->n; i++) {
        mpl_pair *pair = &loop->pair[i];

        pair->up = MPL_NONE;
        for (uint32_t k = 0; k < loop->n; k++)
            if (loop->pair[k].param == pair->source)
                pair->up = k;
        if (pair->up == MPL_NONE && !mpl_loop_is_made_here(loop, pair->source) &&
            !is_outside(loop, pair->source))
            pair->copied = true;
    }
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < loop->n; i++)
            if (!loop->pair[i].copied && loop->pair[i].up != MPL_NONE &&
                loop->pair[loop->pair[i].up].copied)
                loop->pair[i].copied = changed = true;
    }
    for (uint32_t i = 0; i < loop->n; i++) {
        mpl_pair *pair = &loop->pair[i];
        uint32_t at = i, least = i;

        for (pair->age = 1; loop->pair[at].up != MPL_NONE && pair->age <= loop->n; pair->age++)
            at = loop->pair[at].up;
        pair->ring = loop->pair[at].up != MPL_NONE;
        if (pair->ring) { /* `at` is in the ring: its lowest member represents it */
            least = at;
            for (uint32_t k = loop->pair[at].up; k != at; k = loop->pair[k].up)
                least = k < least ? k : least;
            at = least;
            pair->age = 0;
        }
        for (uint32_t k = 0; k < at && !pair->ring; k++) /* pairs with one source form one chain */
            if (loop->pair[k].up == MPL_NONE && loop->pair[k].source == loop->pair[at].source)
                at = k;
        pair->chain = at;
    }
}

/* Whether two lists of items have a cell in common. */
static bool lists_meet(mpl_store *store, const uint32_t *a, uint32_t n_a, const uint32_t *b,
                       uint32_t n_b)
{
    for (uint32_t i = 0; i < n_a; i++)
        for (uint32_t k = 0; k < n_b; k++)
            if (mpl_cell(store, a[i]) == mpl_cell(store, b[k]))
                return true;
    return false;
}

mpl_status mpl_loop_find_shared(mpl_loop *loop)
{
    mpl_status st = MPL_OK;
    mpl_store *store = loop->store;
    uint32_t n_deps = store->n_deps;

    for (uint32_t i = 0; i < loop->n; i++) {
        loop->pair[i].dep = store->n_deps;
        MPL_TRY(mpl_add_deps(store, store->hold[loop->pair[i].init]));
        loop->pair[i].n_deps = store->n_deps - loop->pair[i].dep;
    }
    for (uint32_t i = 0; i < loop->n; i++)
        for (uint32_t k = 0; k < loop->n; k++)
            if (k != i && (loop->pair[k].wanted || loop->pair[k].out != MPL_NONE) &&
                lists_meet(store, store->deps + loop->pair[i].dep, loop->pair[i].n_deps,
                           store->deps + loop->pair[k].dep, loop->pair[k].n_deps))
                loop->pair[i].shared = true;
out:
    store->n_deps = n_deps;
    return st;
}
