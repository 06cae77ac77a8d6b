/* block.c -- blocks of a graph: opening, closing, owners, walk. See graph.h. */
#include "graphs/build/graph_priv.h"

mpl_op mpl_op_outermost(const mpl_graph *g, mpl_op op)
{
    while (g->op_block[op] != 0)
        op = g->block_owner[g->op_block[op]];
    return op;
}

static mpl_status reserve_block(mpl_ctx *ctx, mpl_graph *g)
{
    struct mpl_graph_caps *caps = g->caps;
    size_t n = (size_t)g->n_blocks + 1;

    if (n >= MPL_NONE / 4)
        return MPL_REFUSE(ctx, "graph '%s' has more than 2^30 blocks", g->name);
    MPL_PASS(mpl_reserve(ctx, g->block_name, caps->block_name, n));
    MPL_PASS(mpl_reserve(ctx, g->block_parent, caps->block_parent, n));
    MPL_PASS(mpl_reserve(ctx, g->block_owner, caps->block_owner, n));
    MPL_PASS(mpl_reserve(ctx, g->block_param_begin, caps->block_param_begin, n));
    MPL_PASS(mpl_reserve(ctx, g->block_n_params, caps->block_n_params, n));
    MPL_PASS(mpl_reserve(ctx, g->block_result_begin, caps->block_result_begin, n));
    MPL_PASS(mpl_reserve(ctx, g->block_n_results, caps->block_n_results, n));
    MPL_PASS(mpl_reserve(ctx, g->block_op_begin, caps->block_op_begin, n));
    MPL_PASS(mpl_reserve(ctx, g->block_op_end, caps->block_op_end, n));
    MPL_PASS(mpl_reserve(ctx, g->block_value_begin, caps->block_value_begin, n));
    return mpl_reserve(ctx, g->block_value_end, caps->block_value_end, n);
}

/* Takes ownership of `name`; room must be reserved. */
static uint32_t push_block(mpl_graph *g, char *name, uint32_t parent)
{
    uint32_t b = g->n_blocks++;

    g->block_name[b] = name;
    g->block_parent[b] = parent;
    g->block_owner[b] = MPL_NONE;
    g->block_param_begin[b] = g->caps->n_params;
    g->block_n_params[b] = 0;
    g->block_result_begin[b] = g->caps->n_results;
    g->block_n_results[b] = 0;
    g->block_op_begin[b] = g->n_ops;
    g->block_op_end[b] = MPL_NONE;
    g->block_value_begin[b] = g->n_values;
    g->block_value_end[b] = MPL_NONE;
    g->caps->open = b;
    return b;
}

mpl_status mpl_graph_new_top(mpl_ctx *ctx, mpl_graph *g)
{
    char *name = NULL;

    MPL_PASS(reserve_block(ctx, g));
    MPL_PASS(mpl_copy_text(ctx, name, ""));
    push_block(g, name, MPL_NONE);
    return MPL_OK;
}

uint32_t mpl_graph_find_block(const mpl_graph *g, const char *name)
{
    for (uint32_t b = 1; b < g->n_blocks; b++)
        if (strcmp(g->block_name[b], name) == 0)
            return b;
    return MPL_NONE;
}

bool mpl_block_within(const mpl_graph *g, uint32_t inner, uint32_t outer)
{
    while (inner > outer)
        inner = g->block_parent[inner];
    return inner == outer;
}

mpl_status mpl_graph_check_seen(mpl_ctx *ctx, const mpl_graph *g, mpl_value v, uint32_t block,
                                const char *what)
{
    if (mpl_block_within(g, block, g->value_block[v]))
        return MPL_OK;
    return MPL_REFUSE(
        ctx,
        "'%.100s' reads '%.100s' of block '%.100s', which it cannot see; a block hands "
        "values out as results",
        what, g->value_name[v], g->block_name[g->value_block[v]]);
}

mpl_status mpl_graph_open_block(mpl_ctx *ctx, mpl_graph *g, const char *name, uint32_t *out)
{
    char *copy = NULL;

    if (mpl_graph_find_block(g, name) != MPL_NONE)
        return MPL_REFUSE(ctx, "block '%s' is made twice; names must be unique", name);
    MPL_PASS(reserve_block(ctx, g));
    MPL_PASS(mpl_copy_text(ctx, copy, name));
    *out = push_block(g, copy, g->caps->open);
    return MPL_OK;
}

mpl_status mpl_graph_add_param(mpl_ctx *ctx, mpl_graph *g, const char *name, mpl_type type,
                               const mpl_shape *shape, mpl_value *out)
{
    const mpl_shape dims = *shape; /* may lie in the graph's arrays, which move */
    uint32_t b = g->caps->open;
    char *copy = NULL;
    uint64_t bytes;

    if (b == 0 || g->block_param_begin[b] + g->block_n_params[b] != g->caps->n_params ||
        g->block_op_begin[b] != g->n_ops)
        return MPL_REFUSE(ctx, "parameter '%s' stands %s; parameters come first in a block", name,
                          b == 0 ? "outside of a block" : "behind an operation or a block");
    MPL_PASS(mpl_graph_check_new_name(ctx, g, name));
    MPL_PASS(mpl_graph_bytes_of(ctx, name, type, shape, &bytes));
    MPL_PASS(mpl_graph_reserve_values(ctx, g, 1));
    MPL_PASS(mpl_reserve(ctx, g->block_param, g->caps->block_param, (size_t)g->caps->n_params + 1));
    MPL_PASS(mpl_copy_text(ctx, copy, name));
    *out = mpl_graph_push_value(g, copy, MPL_PARAMETER, type, &dims, bytes, MPL_NONE, b);
    g->block_param[g->caps->n_params++] = *out;
    g->block_n_params[b]++;
    return MPL_OK;
}

mpl_status mpl_graph_close_block(mpl_ctx *ctx, mpl_graph *g, uint32_t n_results,
                                 const mpl_value *result)
{
    struct mpl_graph_caps *caps = g->caps;
    uint32_t b = caps->open;

    if (b == 0)
        return MPL_REFUSE(ctx, "results outside of a block");
    for (uint32_t i = 0; i < n_results; i++)
        if (result[i] != MPL_NONE)
            MPL_PASS(mpl_graph_check_seen(ctx, g, result[i], b, g->block_name[b]));
    for (uint32_t i = b + 1; i < g->n_blocks; i++)
        if (g->block_parent[i] == b && g->block_owner[i] == MPL_NONE)
            return MPL_REFUSE(ctx, "block '%s' is run by no operation", g->block_name[i]);
    /* One more, so that empty lists have an address. */
    MPL_PASS(mpl_reserve(ctx, g->block_result, caps->block_result,
                         (size_t)caps->n_results + n_results + 1));
    MPL_PASS(mpl_reserve(ctx, g->block_param, caps->block_param, (size_t)caps->n_params + 1));
    g->block_result_begin[b] = caps->n_results;
    g->block_n_results[b] = n_results;
    for (uint32_t i = 0; i < n_results; i++)
        g->block_result[caps->n_results++] = result[i];
    g->block_op_end[b] = g->n_ops;
    g->block_value_end[b] = g->n_values;
    caps->open = g->block_parent[b];
    return MPL_OK;
}

mpl_status mpl_graph_check_bodies(mpl_ctx *ctx, const mpl_graph *g, mpl_op_kind kind,
                                  const char *name, uint32_t n_bodies, const uint32_t *body)
{
    bool control = kind == MPL_OP_while || kind == MPL_OP_case;
    mpl_op end = g->n_ops;

    if (control != (n_bodies > 0))
        return MPL_REFUSE(ctx, "operation '%s' (%s) has %u blocks; %s", name,
                          mpl_op_table[kind].name, n_bodies,
                          control ? "it needs at least one" : "this operator has none");
    for (uint32_t i = n_bodies; i-- > 0; end = g->block_op_begin[body[i]])
        if (body[i] == 0 || body[i] >= g->n_blocks || g->block_parent[body[i]] != g->caps->open ||
            g->block_owner[body[i]] != MPL_NONE || g->block_op_end[body[i]] != end ||
            (i > 0 && body[i] <= body[i - 1]))
            return MPL_REFUSE(
                ctx,
                "operation '%s' (%s): block %u is not one that stands, unused, right before it",
                name, mpl_op_table[kind].name, i);
    return MPL_OK;
}

mpl_status mpl_graph_check_blocks(mpl_ctx *ctx, const mpl_graph *g)
{
    if (g->caps->open != 0)
        return MPL_REFUSE(ctx, "block '%s' has no end", g->block_name[g->caps->open]);
    for (uint32_t b = 1; b < g->n_blocks; b++)
        if (g->block_owner[b] == MPL_NONE)
            return MPL_REFUSE(ctx, "block '%s' is run by no operation", g->block_name[b]);
    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_op owner = g->block_owner[g->op_block[op]];

        if (g->op_kind[op] == MPL_OP_exit_unless &&
            (owner == MPL_NONE || g->op_kind[owner] != MPL_OP_while))
            return MPL_REFUSE(ctx,
                              "operation '%s' (exit_unless) does not stand in the body of a while",
                              g->op_name[op]);
    }
    return MPL_OK;
}

bool mpl_graph_blocks_ok(const mpl_graph *g)
{
    for (uint32_t b = 1; b < g->n_blocks; b++) {
        mpl_op owner = g->block_owner[b];

        if (g->block_parent[b] >= b || owner >= g->n_ops || g->block_op_end[b] > owner ||
            g->block_op_begin[b] > g->block_op_end[b] || g->op_block[owner] != g->block_parent[b])
            return mpl_broken("block %u does not stand right before operation %u, its owner", b,
                              owner);
        for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
            if (!mpl_block_within(g, g->op_block[op], b))
                return mpl_broken("operation %u stands in block %u and does not say so", op, b);
        for (uint32_t i = 0; i < g->block_n_results[b]; i++) {
            mpl_value v = g->block_result[g->block_result_begin[b] + i];

            if (v != MPL_NONE && (v >= g->n_values || !mpl_block_within(g, b, g->value_block[v])))
                return mpl_broken("block %u has result %u, which it does not see", b, v);
        }
    }
    return true;
}

int64_t mpl_while_most_rounds(const mpl_graph *g, mpl_op op)
{
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];
    uint32_t first_scan = 2 + (uint32_t)mpl_attr_int(g, op, MPL_ATTR_carried, 0);

    if (first_scan < n_in)
        return g->value_shape[g->op_in[g->op_in_begin[op] + first_scan]].dim[0];
    return mpl_attr_int(g, op, MPL_ATTR_trips, -1);
}

bool mpl_while_runs_full(const mpl_graph *g, mpl_op op)
{
    const mpl_value *in = g->op_in + g->op_in_begin[op];
    uint32_t b = mpl_op_first_body(g, op);
    int64_t trips;

    if (in[1] != MPL_NONE || mpl_result(g, b, 0) != MPL_NONE)
        return false;
    for (mpl_op test = g->block_op_begin[b]; test < g->block_op_end[b]; test++)
        if (g->op_kind[test] == MPL_OP_exit_unless && g->op_block[test] == b)
            return false;
    if (in[0] == MPL_NONE)
        return true;
    if (g->value_role[in[0]] != MPL_WEIGHT || g->value_data[in[0]] == NULL)
        return false;
    memcpy(&trips, g->value_data[in[0]], sizeof trips);
    return trips >= mpl_while_most_rounds(g, op);
}

bool mpl_graph_has_loop(const mpl_graph *g)
{
    for (uint32_t b = 1; b < g->n_blocks; b++)
        if (g->op_kind[g->block_owner[b]] == MPL_OP_while)
            return true;
    return false;
}

/* ---- the walk ---- */

/* Whether the next item is an operation, that is, its first output is the next value. An operation
 * without outputs comes after inputs and weights, but before the end of the open block and before
 * the next block. */
static bool op_is_next(const mpl_graph *g, const mpl_walk *walk)
{
    uint32_t b = walk->next_block;

    if (walk->next_op == g->n_ops)
        return false;
    for (uint32_t i = g->op_out_begin[walk->next_op]; i < g->op_out_begin[walk->next_op + 1]; i++)
        if (g->op_out[i] != MPL_NONE)
            return g->op_out[i] == walk->next_value;
    return walk->next_value == g->n_values || g->value_op[walk->next_value] != MPL_NONE ||
           g->value_role[walk->next_value] == MPL_PARAMETER ||
           (walk->open != 0 && g->block_value_end[walk->open] == walk->next_value) ||
           (b < g->n_blocks && g->block_value_begin[b] == walk->next_value);
}

mpl_walk mpl_walk_begin(void)
{
    return (mpl_walk){.next_block = 1};
}

mpl_item mpl_walk_next(const mpl_graph *g, mpl_walk *walk)
{
    uint32_t b = walk->next_block, c = walk->open;

    if (b < g->n_blocks && g->block_parent[b] == c && g->block_op_begin[b] == walk->next_op &&
        g->block_value_begin[b] == walk->next_value) {
        walk->block = walk->open = walk->next_block++;
        walk->next_value += g->block_n_params[b];
        return MPL_ITEM_OPEN;
    }
    if (c != 0 && g->block_op_end[c] == walk->next_op &&
        g->block_value_end[c] == walk->next_value) {
        walk->block = c;
        walk->open = g->block_parent[c];
        return MPL_ITEM_CLOSE;
    }
    if (op_is_next(g, walk)) {
        walk->op = walk->next_op++;
        for (uint32_t i = g->op_out_begin[walk->op]; i < g->op_out_begin[walk->op + 1]; i++)
            walk->next_value += g->op_out[i] != MPL_NONE;
        return MPL_ITEM_OP;
    }
    if (walk->next_value == g->n_values)
        return MPL_ITEM_END;
    walk->value = walk->next_value++;
    return MPL_ITEM_VALUE;
}
