/* opt_share.c -- passes for constants and for repeated operations. See optimise.h. */
#include "graphs/passes/optimise/optimise_priv.h"

/* The driver removes unread operations, by mpl_graph_prune. */
mpl_status mpl_match_dead_code(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    (void)match, (void)op, (void)edit;
    return MPL_OK;
}

static bool is_constant(const mpl_graph *g, mpl_value v)
{
    return g->value_role[v] == MPL_WEIGHT && g->value_data[v] != NULL;
}

/* Whether all operands are constants; those that become so are found in the next turn. Operations
 * that mpl_graph_add_folded would keep as too costly are excluded: nothing would change, and they
 * must not be counted. */
static bool folds(const mpl_graph *g, mpl_op op)
{
    static const uint64_t most = UINT64_C(64) << 20; /* limit of operands and results [byte] */
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    uint64_t bytes = 0, largest = 1, made = 1, work;
    bool heavy = (mpl_op_table[kind].traits & (MPL_ELEMENTWISE | MPL_VIEW)) == 0;

    if (mpl_op_input(g, op, 0) == MPL_NONE || (mpl_op_table[kind].traits & MPL_NO_FOLD) != 0)
        return false;
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        if (g->op_in[i] != MPL_NONE) {
            if (!is_constant(g, g->op_in[i]))
                return false;
            bytes += mpl_min_u64(g->value_bytes[g->op_in[i]], most + 1);
            largest = mpl_max_u64(largest, g->value_bytes[g->op_in[i]]);
        }
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        if (g->op_out[i] != MPL_NONE) {
            bytes += mpl_min_u64(g->value_bytes[g->op_out[i]], most + 1);
            made = mpl_max_u64(made, g->value_bytes[g->op_out[i]]);
        }
    return bytes <= most && (!heavy || (mpl_mul_bytes(largest, made, &work) && work <= most * 4));
}

mpl_status mpl_match_fold(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    edit->kind = folds(match->g, op) ? MPL_EDIT_FOLD : MPL_EDIT_NONE;
    return MPL_OK;
}

mpl_status mpl_match_reshape_const(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    switch (match->g->op_kind[op]) {
    case MPL_OP_reshape:
    case MPL_OP_flatten:
    case MPL_OP_squeeze:
    case MPL_OP_unsqueeze:
        return mpl_match_fold(match, op, edit);
    default:
        return MPL_OK;
    }
}

/* ---- the same operation of the same operands ---- */

enum { SMALL = 4096 }; /* largest constants compared by contents [byte] */

static uint64_t data_bytes(const mpl_graph *g, mpl_value v)
{
    return g->value_splat[v] ? mpl_type_bytes((mpl_type)g->value_type[v]) : g->value_bytes[v];
}

static bool by_contents(const mpl_graph *g, mpl_value v)
{
    return is_constant(g, v) && data_bytes(g, v) <= SMALL;
}

static bool same_value(const mpl_match *match, mpl_value a, mpl_value b)
{
    const mpl_graph *g = match->g;

    if (a == MPL_NONE || b == MPL_NONE)
        return a == b;
    if (match->number[a] == match->number[b])
        return true;
    return by_contents(g, a) && by_contents(g, b) && mpl_same_form(g, a, b) &&
           g->value_splat[a] == g->value_splat[b] &&
           memcmp(g->value_data[a], g->value_data[b], data_bytes(g, a)) == 0;
}

static uint64_t hash_value(const mpl_match *match, mpl_value v, uint64_t hash)
{
    if (v != MPL_NONE && by_contents(match->g, v))
        return mpl_table_hash(hash, match->g->value_data[v], data_bytes(match->g, v));
    return mpl_table_hash(hash, v == MPL_NONE ? &v : &match->number[v], sizeof v);
}

/* The items that an attribute points to. */
static const void *attr_data(const mpl_attr *attr, size_t *size)
{
    *size = attr->ints != NULL     ? attr->n * sizeof *attr->ints
            : attr->floats != NULL ? attr->n * sizeof *attr->floats
                                   : attr->n;
    return attr->ints != NULL     ? (const void *)attr->ints
           : attr->floats != NULL ? (const void *)attr->floats
                                  : attr->text;
}

static uint64_t hash_op(const mpl_match *match, mpl_op op)
{
    const mpl_graph *g = match->g;
    uint64_t hash = mpl_table_hash(0, &g->op_kind[op], sizeof *g->op_kind);

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        hash = hash_value(match, g->op_in[i], hash);
    for (uint32_t i = g->op_attr_begin[op]; i < g->op_attr_begin[op + 1]; i++) {
        mpl_attr a = mpl_attr_at(g, i);
        size_t size;
        const void *data = attr_data(&a, &size);

        hash = mpl_table_hash(mpl_table_hash(hash, &a.key, sizeof a.key), data, size);
    }
    return hash;
}

static bool same_attrs(const mpl_graph *g, mpl_op a, mpl_op b)
{
    uint32_t n = g->op_attr_begin[a + 1] - g->op_attr_begin[a];

    if (n != g->op_attr_begin[b + 1] - g->op_attr_begin[b])
        return false;
    for (uint32_t i = 0; i < n; i++) {
        mpl_attr x = mpl_attr_at(g, g->op_attr_begin[a] + i),
                 y = mpl_attr_at(g, g->op_attr_begin[b] + i);
        size_t x_size, y_size;
        const void *x_data = attr_data(&x, &x_size), *y_data = attr_data(&y, &y_size);

        if (x.key != y.key || x_size != y_size ||
            (x_size > 0 && memcmp(x_data, y_data, x_size) != 0))
            return false;
    }
    return true;
}

/* Whether operation a makes all that b makes. */
static bool same_op(const mpl_match *match, mpl_op a, mpl_op b)
{
    const mpl_graph *g = match->g;
    uint32_t n_in = mpl_op_n_in(g, a), n_out = g->op_out_begin[b + 1] - g->op_out_begin[b];

    if (g->op_kind[a] != g->op_kind[b] || n_in != mpl_op_n_in(g, b) || !same_attrs(g, a, b) ||
        n_out != g->op_out_begin[a + 1] - g->op_out_begin[a])
        return false;
    for (uint32_t i = 0; i < n_in; i++)
        if (!same_value(match, mpl_op_input(g, a, i), mpl_op_input(g, b, i)))
            return false;
    for (uint32_t i = 0; i < n_out; i++)
        if (mpl_op_output(g, b, i) != MPL_NONE && mpl_op_output(g, a, i) == MPL_NONE)
            return false;
    return true;
}

mpl_status mpl_match_cse(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    const mpl_graph *g = match->g;
    uint32_t at = (uint32_t)hash_op(match, op) & (match->n_slots - 1);

    if ((mpl_op_table[g->op_kind[op]].traits & MPL_NO_FOLD) != 0)
        return MPL_OK;
    while (match->slot[at] != MPL_NONE && !same_op(match, match->slot[at], op))
        at = (at + 1) & (match->n_slots - 1);
    if (match->slot[at] == MPL_NONE) {
        match->slot[at] = op;
        return MPL_OK;
    }
    edit->kind = MPL_EDIT_TWIN;
    edit->from = match->slot[at];
    for (uint32_t i = 0; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++)
        if (mpl_op_output(g, op, i) != MPL_NONE)
            match->number[mpl_op_output(g, op, i)] = match->number[mpl_op_output(g, edit->from, i)];
    return MPL_OK;
}
