/* store_pairs.c -- the carried values of a loop as pairs, and the chains of pairs. See
 * store_while.c. */
#include "graphs/problem/control/store_while_priv.h"

/* ---- pairs ---- */

int64_t mpl_loop_known_rounds(const mpl_loop *l)
{
    const mpl_graph *g = l->g;
    const mpl_value *in = g->op_in + g->op_in_begin[l->op];
    int64_t most = mpl_while_most_rounds(g, l->op), trips;

    if (in[1] != MPL_NONE || mpl_result(g, l->body, 0) != MPL_NONE)
        return -1;
    for (mpl_op op = g->block_op_begin[l->body]; op < g->block_op_end[l->body]; op++)
        if (g->op_kind[op] == MPL_OP_exit_unless && g->op_block[op] == l->body)
            return -1;
    if (in[0] == MPL_NONE)
        return most;
    if (g->value_role[in[0]] != MPL_WEIGHT || g->value_data[in[0]] == NULL)
        return -1;
    trips = *(const int64_t *)g->value_data[in[0]];
    trips = trips < 0 ? 0 : trips;
    return most >= 0 && most < trips ? most : trips;
}

uint32_t mpl_loop_same_place(mpl_store *s, uint32_t item)
{
    while (item != MPL_NONE) {
        bool cell = item >= s->g->n_values || s->how[item] == MPL_HOW_CELL;
        const mpl_turn *turn = cell && s->turn[mpl_cell(s, item)] != MPL_NONE
                                   ? &s->turns[s->turn[mpl_cell(s, item)]]
                                   : NULL;

        if (turn != NULL)
            item = turn->n_first == 0 && turn->n_cycle == 1 ? s->refs[turn->begin] : MPL_NONE;
        else if (cell || s->how[item] == MPL_HOW_PINNED)
            break;
        else
            item = s->how[item] == MPL_HOW_FINAL ? s->same[item] : MPL_NONE;
    }
    return item;
}

/* A result is often a parameter passed unchanged through an inner loop. */
static mpl_value source_of(mpl_store *s, mpl_value result)
{
    uint32_t item = s->how[result] == MPL_HOW_FINAL ? mpl_loop_same_place(s, result) : MPL_NONE;

    return item < s->g->n_values ? item : result;
}

void mpl_loop_find_pairs(mpl_loop *l)
{
    mpl_store *s = l->s;
    const mpl_graph *g = l->g;

    for (uint32_t i = 0; i < l->n; i++) {
        mpl_pair *p = &l->pair[i];
        mpl_value out = mpl_op_output(g, l->op, i);

        p->param = mpl_param(g, l->body, 1 + i);
        p->in = g->op_in_begin[l->op] + 2 + i;
        p->result = g->block_result_begin[l->body] + 1 + i;
        p->init = s->spec->root[g->op_in[p->in]];
        p->source = source_of(s, s->spec->root[g->block_result[p->result]]);
        p->out =
            out != MPL_NONE && s->out_live[out] && s->how[out] == MPL_HOW_CELL ? out : MPL_NONE;
        p->wanted = s->how[p->param] == MPL_HOW_CELL;
        p->first = p->init;
        p->copied = s->spec->options->loop_copy;
    }
}

/* The round number and copied slices are made anew as each round begins. */
static bool is_given_anew(const mpl_loop *l, mpl_value v)
{
    for (uint32_t i = 0; i < l->g->block_n_params[l->body]; i++)
        if (mpl_param(l->g, l->body, i) == v)
            return i == 0 || i > l->n;
    return false;
}

bool mpl_loop_is_made_here(const mpl_loop *l, mpl_value v)
{
    return l->s->how[v] == MPL_HOW_CELL && l->g->value_block[v] == l->body &&
           (l->g->value_op[v] != MPL_NONE || is_given_anew(l, v));
}

static bool is_outside(const mpl_loop *l, mpl_value v)
{
    return l->g->value_block[v] != l->body;
}

void mpl_loop_link_pairs(mpl_loop *l)
{
    bool changed = true;

    for (uint32_t i = 0; i < l->n; i++) {
        mpl_pair *p = &l->pair[i];

        p->up = MPL_NONE;
        for (uint32_t k = 0; k < l->n; k++)
            if (l->pair[k].param == p->source)
                p->up = k;
        if (p->up == MPL_NONE && !mpl_loop_is_made_here(l, p->source) && !is_outside(l, p->source))
            p->copied = true;
    }
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < l->n; i++)
            if (!l->pair[i].copied && l->pair[i].up != MPL_NONE && l->pair[l->pair[i].up].copied)
                l->pair[i].copied = changed = true;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        mpl_pair *p = &l->pair[i];
        uint32_t at = i, least = i;

        for (p->age = 1; l->pair[at].up != MPL_NONE && p->age <= l->n; p->age++)
            at = l->pair[at].up;
        p->ring = l->pair[at].up != MPL_NONE;
        if (p->ring) { /* `at` is in the ring: its lowest member represents it */
            least = at;
            for (uint32_t k = l->pair[at].up; k != at; k = l->pair[k].up)
                least = k < least ? k : least;
            at = least;
            p->age = 0;
        }
        for (uint32_t k = 0; k < at && !p->ring; k++) /* pairs with one source form one chain */
            if (l->pair[k].up == MPL_NONE && l->pair[k].source == l->pair[at].source)
                at = k;
        p->chain = at;
    }
}

/* Whether two lists of items have a cell in common. */
static bool lists_meet(mpl_store *s, const uint32_t *a, uint32_t n_a, const uint32_t *b,
                       uint32_t n_b)
{
    for (uint32_t i = 0; i < n_a; i++)
        for (uint32_t k = 0; k < n_b; k++)
            if (mpl_cell(s, a[i]) == mpl_cell(s, b[k]))
                return true;
    return false;
}

mpl_status mpl_loop_find_shared(mpl_loop *l)
{
    mpl_status st = MPL_OK;
    mpl_store *s = l->s;
    uint32_t n_deps = s->n_deps;

    for (uint32_t i = 0; i < l->n; i++) {
        l->pair[i].dep = s->n_deps;
        MPL_TRY(mpl_add_deps(s, s->hold[l->pair[i].init]));
        l->pair[i].n_deps = s->n_deps - l->pair[i].dep;
    }
    for (uint32_t i = 0; i < l->n; i++)
        for (uint32_t k = 0; k < l->n; k++)
            if (k != i && (l->pair[k].wanted || l->pair[k].out != MPL_NONE) &&
                lists_meet(s, s->deps + l->pair[i].dep, l->pair[i].n_deps, s->deps + l->pair[k].dep,
                           l->pair[k].n_deps))
                l->pair[i].shared = true;
out:
    s->n_deps = n_deps;
    return st;
}
