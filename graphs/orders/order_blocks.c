/* order_blocks.c -- orders with control flow: each block is ordered as a graph of its own. See
 * order.h.
 *
 * In its block, an operation that owns blocks also reads what they capture. */
#include "graphs/orders/order_blocks.h"
#include "graphs/build/graph_priv.h"

/* One block as a graph: its direct operations, and all values of the whole graph under their ids.
 * Names, types, shapes and bytes are the whole graph's arrays. Only what orders look at is set. */
typedef struct stand_in {
    mpl_graph g;
    mpl_op *op;    /* [g.n_ops] operation of the whole graph */
    uint8_t *seen; /* [n_values] scratch: the operation reads it */
} stand_in;

static void stand_in_free(mpl_ctx *ctx, stand_in *in)
{
    void *arrays[] = {in->op,
                      in->seen,
                      in->g.op_kind,
                      in->g.op_name,
                      in->g.op_in_begin,
                      in->g.op_out_begin,
                      in->g.op_body_begin,
                      in->g.op_in,
                      in->g.op_out,
                      in->g.value_op,
                      in->g.value_role,
                      in->g.output,
                      in->g.value_use_begin,
                      in->g.value_use};

    MPL_FREE_ALL(ctx, arrays);
}

static mpl_status stand_in_new(mpl_ctx *ctx, const mpl_graph *g, stand_in *in)
{
    size_t n_reads = g->op_in_begin[g->n_ops], n_results = g->n_outputs;

    for (uint32_t b = 1; b < g->n_blocks; b++)
        n_results += g->block_n_results[b];
    in->g = (mpl_graph){.name = g->name,
                        .n_values = g->n_values,
                        .value_name = g->value_name,
                        .value_type = g->value_type,
                        .value_shape = g->value_shape,
                        .value_bytes = g->value_bytes};
    MPL_PASS(mpl_new(ctx, in->op, g->n_ops));
    MPL_PASS(mpl_new(ctx, in->seen, g->n_values));
    MPL_PASS(mpl_new_each(ctx, g->n_ops, in->g.op_kind, in->g.op_name));
    MPL_PASS(mpl_new_each(ctx, (size_t)g->n_ops + 1, in->g.op_in_begin, in->g.op_out_begin,
                          in->g.op_body_begin));
    MPL_PASS(mpl_new(ctx, in->g.op_in, 2 * n_reads + n_results)); /* inputs and captures */
    MPL_PASS(mpl_new(ctx, in->g.op_out, g->op_out_begin[g->n_ops]));
    MPL_PASS(mpl_new_each(ctx, g->n_values, in->g.value_op, in->g.value_role));
    return mpl_new(ctx, in->g.output, n_results);
}

/* ---- a block as a graph ---- */

/* Adds value v to the last operation's operands, if block b makes it and it is new. */
static void add_capture(const mpl_graph *g, stand_in *in, uint32_t b, mpl_value v)
{
    if (v == MPL_NONE || g->value_op[v] == MPL_NONE || g->value_block[v] != b || in->seen[v])
        return;
    in->seen[v] = 1;
    in->g.op_in[in->g.op_in_begin[in->g.n_ops + 1]++] = v;
}

/* Adds what the blocks of `owner`, which end right before it, read of block b. */
static void add_captures(const mpl_graph *g, stand_in *in, uint32_t b, mpl_op owner)
{
    uint32_t first = g->op_body[g->op_body_begin[owner]];

    for (mpl_op op = g->block_op_begin[first]; op < owner; op++)
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            add_capture(g, in, b, g->op_in[i]);
    for (uint32_t k = first;
         k < g->n_blocks && g->block_op_begin[k] <= owner && g->block_owner[k] <= owner; k++)
        for (uint32_t i = 0; i < g->block_n_results[k]; i++)
            add_capture(g, in, b, g->block_result[g->block_result_begin[k] + i]);
}

static void add_op(const mpl_graph *g, stand_in *in, uint32_t b, mpl_op op)
{
    mpl_op mine = in->g.n_ops;
    uint32_t begin = in->g.op_in_begin[mine], out = in->g.op_out_begin[mine];

    in->op[mine] = op;
    in->g.op_kind[mine] = g->op_kind[op];
    in->g.op_name[mine] = g->op_name[op];
    in->g.op_in_begin[mine + 1] = begin;
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
        in->g.op_in[in->g.op_in_begin[mine + 1]++] = g->op_in[i];
        if (g->op_in[i] != MPL_NONE)
            in->seen[g->op_in[i]] = 1;
    }
    if (g->op_body_begin[op] < g->op_body_begin[op + 1])
        add_captures(g, in, b, op);
    for (uint32_t i = begin; i < in->g.op_in_begin[mine + 1]; i++)
        if (in->g.op_in[i] != MPL_NONE)
            in->seen[in->g.op_in[i]] = 0;
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        if (g->op_out[i] != MPL_NONE)
            in->g.value_op[g->op_out[i]] = mine;
        in->g.op_out[out++] = g->op_out[i];
    }
    in->g.op_out_begin[mine + 1] = out;
    in->g.n_ops++;
}

static mpl_status fill(mpl_ctx *ctx, const mpl_graph *g, uint32_t b, stand_in *in)
{
    const mpl_value *result = b == 0 ? g->output : g->block_result + g->block_result_begin[b];
    uint32_t n = b == 0 ? g->n_outputs : g->block_n_results[b];

    in->g.n_ops = in->g.n_outputs = 0;
    memset(in->g.value_op, 0xff, g->n_values * sizeof *in->g.value_op);
    for (mpl_value v = 0; v < g->n_values; v++)
        in->g.value_role[v] =
            g->value_op[v] != MPL_NONE && g->value_block[v] != b ? MPL_PARAMETER : g->value_role[v];
    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        if (g->op_block[op] == b)
            add_op(g, in, b, op);
    for (uint32_t i = 0; i < n; i++) {
        if (result[i] == MPL_NONE || g->value_block[result[i]] != b)
            continue;
        in->g.output[in->g.n_outputs++] = result[i];
        if (g->value_role[result[i]] == MPL_TEMPORARY)
            in->g.value_role[result[i]] = MPL_OUTPUT;
    }
    return mpl_graph_index_uses(ctx, &in->g);
}

/* ---- the whole order ---- */

/* Moves exit tests as early as possible: the makers of orders do not know them. */
static void with_tests(const stand_in *in, const mpl_op *order, mpl_op *out)
{
    const mpl_graph *g = &in->g;
    uint32_t n = 0;

    for (uint32_t step = 0; step <= g->n_ops; step++) {
        mpl_op after = step == 0 ? MPL_NONE : order[step - 1];

        if (after != MPL_NONE && g->op_kind[after] == MPL_OP_exit_unless)
            continue;
        if (after != MPL_NONE)
            out[n++] = in->op[after];
        for (mpl_op test = 0; test < g->n_ops; test++)
            if (g->op_kind[test] == MPL_OP_exit_unless &&
                g->value_op[g->op_in[g->op_in_begin[test]]] == after)
                out[n++] = in->op[test];
    }
}

/* Merges the orders of the blocks: those of an operation's blocks come right before it. begin[b]:
 * start of block b in local; at[b]: current position. Not recursive: blocks may nest deep. */
static void interleave(const mpl_graph *g, const mpl_op *local, const uint32_t *begin, uint32_t *at,
                       mpl_op *order)
{
    uint32_t b = 0, n = 0;

    for (;;) {
        uint32_t next = MPL_NONE;
        mpl_op op;

        if (at[b] == begin[b + 1]) {
            if (b == 0)
                return;
            b = g->block_parent[b];
            continue;
        }
        op = local[at[b]];
        for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1] && next == MPL_NONE;
             k++)
            if (at[g->op_body[k]] < begin[g->op_body[k] + 1])
                next = g->op_body[k];
        if (next != MPL_NONE)
            b = next;
        else
            order[n++] = op, at[b]++;
    }
}

mpl_status mpl_order_by_blocks(mpl_ctx *ctx, const mpl_graph *g, bool nested_first,
                               mpl_block_order *make, void *how, mpl_op *order)
{
    mpl_status st = MPL_OK;
    stand_in s = {0};
    mpl_op *local = NULL, *one = NULL;
    uint32_t *begin = NULL, *at = NULL;

    if (g->n_blocks == 1)
        return make(ctx, g, 0, how, order);
    MPL_TRY(stand_in_new(ctx, g, &s));
    MPL_TRY(mpl_new_each(ctx, g->n_ops, local, one));
    MPL_TRY(mpl_new(ctx, begin, (size_t)g->n_blocks + 1));
    MPL_TRY(mpl_new(ctx, at, g->n_blocks));
    for (mpl_op op = 0; op < g->n_ops; op++)
        begin[g->op_block[op] + 1]++;
    for (uint32_t b = 0; b < g->n_blocks; b++)
        at[b] = begin[b], begin[b + 1] += begin[b];
    for (uint32_t i = 0; i < g->n_blocks; i++) {
        uint32_t b = nested_first ? g->n_blocks - 1 - i : i;

        MPL_TRY(fill(ctx, g, b, &s));
        MPL_TRY(make(ctx, &s.g, b, how, one));
        with_tests(&s, one, local + begin[b]);
    }
    interleave(g, local, begin, at, order);
out:
    stand_in_free(ctx, &s);
    mpl_free_each(ctx, local, one, begin, at);
    return st;
}

/* how: the mpl_plain_order, by address. */
static mpl_status make_plain(mpl_ctx *ctx, const mpl_graph *g, uint32_t block, void *how,
                             mpl_op *order)
{
    (void)block;
    return (*(mpl_plain_order **)how)(ctx, g, order);
}

mpl_status mpl_order_each_block(mpl_ctx *ctx, const mpl_graph *g, mpl_plain_order *make,
                                mpl_op *order)
{
    return mpl_order_by_blocks(ctx, g, false, make_plain, &make, order);
}
