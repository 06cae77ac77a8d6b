/* update.c -- operations that update weights. See graph.h. */
#include "graphs/graph.h"

mpl_value mpl_updated(const mpl_graph *g, mpl_op op, uint32_t i)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op], n = mpl_n_updates(kind);

    if (kind == MPL_OP_opaque_update)
        return i == 0 ? g->op_in[g->op_in_begin[op]] : MPL_NONE;
    if (n == 0 || i + n < n_out)
        return MPL_NONE;
    return g->op_in[g->op_in_begin[op] + mpl_op_table[kind].min_in - (n_out - i)];
}

uint32_t mpl_n_read(const mpl_graph *g, mpl_op op)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];

    if (kind == MPL_OP_opaque_update)
        return (uint32_t)mpl_attr_int(g, op, MPL_ATTR_reads, 0);
    return mpl_n_updates(kind) > 0 ? mpl_op_table[kind].min_in
                                   : g->op_in_begin[op + 1] - g->op_in_begin[op];
}

const char *mpl_part_name(mpl_part part)
{
    static const char *const names[MPL_N_PARTS] = {[MPL_PART_WEIGHT] = "weights",
                                                   [MPL_PART_GRADIENT] = "gradients",
                                                   [MPL_PART_STATE] = "state"};

    return names[part];
}

/* Marks v as a gradient if it is read once; likewise the values of which it is a full view. */
static void mark_addend(const mpl_graph *g, mpl_value v, uint64_t bytes, uint8_t *part)
{
    for (;;) {
        mpl_op maker = v != MPL_NONE ? g->value_op[v] : MPL_NONE;

        if (maker == MPL_NONE || part[v] != MPL_PART_NONE || g->value_bytes[v] != bytes ||
            g->value_use_begin[v + 1] - g->value_use_begin[v] != 1)
            return;
        part[v] = MPL_PART_GRADIENT;
        if (!mpl_may_be_view(g, maker))
            return;
        v = g->op_in[g->op_in_begin[maker]];
    }
}

/* Marks the addends of gradients whose storage the gradient can take: operands of sums, and bases
 * of assign and scatter. */
static void mark_addends(const mpl_graph *g, uint8_t *part)
{
    for (mpl_op op = g->n_ops; op-- > 0;) {
        mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
        mpl_value out = g->op_out_begin[op] < g->op_out_begin[op + 1]
                            ? g->op_out[g->op_out_begin[op]]
                            : MPL_NONE;
        bool adds = kind == MPL_OP_add || kind == MPL_OP_sum;

        if (out == MPL_NONE || part[out] != MPL_PART_GRADIENT ||
            !(adds || kind == MPL_OP_assign || kind == MPL_OP_scatter_nd))
            continue;
        for (uint32_t i = g->op_in_begin[op];
             i < (adds ? g->op_in_begin[op + 1] : g->op_in_begin[op] + 1); i++)
            mark_addend(g, g->op_in[i], g->value_bytes[out], part);
    }
}

void mpl_graph_parts(const mpl_graph *g, uint8_t *part)
{
    for (mpl_value v = 0; v < g->n_values; v++)
        part[v] = g->value_role[v] == MPL_WEIGHT ? MPL_PART_WEIGHT : MPL_PART_NONE;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
        bool counts = kind == MPL_OP_step_update;

        if (mpl_n_updates(kind) == 0 || kind == MPL_OP_batch_norm_train ||
            kind == MPL_OP_set_update || kind == MPL_OP_opaque_update)
            continue;
        if (!counts && part[g->op_in[g->op_in_begin[op]]] == MPL_PART_NONE)
            part[g->op_in[g->op_in_begin[op]]] = MPL_PART_GRADIENT;
        for (uint32_t i = counts ? 0 : 1; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++)
            part[mpl_updated(g, op, i)] = MPL_PART_STATE;
    }
    mark_addends(g, part);
}

typedef struct checker {
    const mpl_graph *g;
    mpl_op *updater;   /* [n_values] operation that updates a weight; MPL_NONE: none */
    mpl_value *weight; /* [n_values] input or weight that a value shows, maybe through views */
    uint32_t *seen;    /* [n_ops] last search that visited it */
    mpl_op *stack;     /* [n_ops] */
    uint32_t search;
} checker;

static void push_op(checker *self, mpl_op op, uint32_t *n)
{
    if (op == MPL_NONE || self->seen[op] == self->search)
        return;
    self->seen[op] = self->search;
    self->stack[(*n)++] = op;
}

/* Marks `op` and all operations that it waits for with self->search: producers of its inputs, its
 * blocks, and what those wait for. */
static void mark_awaited(checker *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    uint32_t n = 0;

    self->search++;
    push_op(self, op, &n);
    while (n > 0) {
        mpl_op at = self->stack[--n];

        for (uint32_t i = g->op_in_begin[at]; i < g->op_in_begin[at + 1]; i++)
            push_op(self, g->op_in[i] != MPL_NONE ? g->value_op[g->op_in[i]] : MPL_NONE, &n);
        for (uint32_t k = g->op_body_begin[at]; k < g->op_body_begin[at + 1]; k++) {
            uint32_t b = g->op_body[k];

            for (mpl_op in = g->block_op_begin[b]; in < g->block_op_end[b]; in++)
                push_op(self, in, &n);
            for (uint32_t i = g->block_result_begin[b];
                 i < g->block_result_begin[b] + g->block_n_results[b]; i++)
                push_op(self,
                        g->block_result[i] != MPL_NONE ? g->value_op[g->block_result[i]] : MPL_NONE,
                        &n);
        }
    }
}

static mpl_status note_updates(mpl_ctx *ctx, checker *c, mpl_op op)
{
    const mpl_graph *g = c->g;

    for (uint32_t i = 0, n = g->op_out_begin[op + 1] - g->op_out_begin[op]; i < n; i++) {
        mpl_value v = mpl_updated(g, op, i);

        if (v == MPL_NONE)
            continue;
        if (g->op_block[op] != 0 ||
            (g->value_role[v] != MPL_WEIGHT &&
             (g->op_kind[op] != MPL_OP_opaque_update || g->value_role[v] != MPL_INPUT)))
            return MPL_REFUSE(ctx, "operation '%.100s' updates '%.100s', which is %s",
                              g->op_name[op], g->value_name[v],
                              g->op_block[op] != 0 ? "inside a block: only the whole graph can"
                                                   : "no weight");
        if (c->updater[v] != MPL_NONE)
            return MPL_REFUSE(ctx, "weight '%.100s' is updated twice, by '%.100s' and '%.100s'",
                              g->value_name[v], g->op_name[c->updater[v]], g->op_name[op]);
        c->updater[v] = op;
    }
    return MPL_OK;
}

/* Checks that an update waits for all readers of weight v's old contents, or of a view of them. */
static mpl_status check_readers(mpl_ctx *ctx, checker *c, mpl_value v)
{
    const mpl_graph *g = c->g;

    mark_awaited(c, c->updater[v]);
    for (mpl_value w = 0; w < g->n_values; w++) {
        if (c->weight[w] != v)
            continue;
        for (uint32_t i = g->value_use_begin[w]; i < g->value_use_begin[w + 1]; i++)
            if (c->seen[g->value_use[i]] != c->search)
                return MPL_REFUSE(
                    ctx,
                    "operation '%.100s' reads '%.100s', but '%.100s', which updates it, need "
                    "not wait "
                    "for that; add "
                    "an output of the reader to its inputs",
                    g->op_name[g->value_use[i]], g->value_name[v], g->op_name[c->updater[v]]);
    }
    return MPL_OK;
}

mpl_status mpl_graph_check_updates(mpl_ctx *ctx, const mpl_graph *g)
{
    mpl_status st = MPL_OK;
    checker c = {.g = g};
    bool any = false;

    for (mpl_op op = 0; op < g->n_ops; op++)
        any = any || mpl_n_updates((mpl_op_kind)g->op_kind[op]) > 0;
    if (!any)
        return MPL_OK;
    MPL_TRY(mpl_new_each(ctx, g->n_values, c.updater, c.weight));
    MPL_TRY(mpl_new_each(ctx, g->n_ops, c.seen, c.stack));
    memset(c.updater, 0xff, g->n_values * sizeof *c.updater);
    for (mpl_value v = 0; v < g->n_values; v++)
        c.weight[v] = g->value_op[v] == MPL_NONE ? v : MPL_NONE;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        MPL_TRY(note_updates(ctx, &c, op));
        for (uint32_t i = g->op_out_begin[op];
             mpl_may_be_view(g, op) && i < g->op_out_begin[op + 1]; i++)
            if (g->op_out[i] != MPL_NONE)
                c.weight[g->op_out[i]] = c.weight[g->op_in[g->op_in_begin[op]]];
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        if (c.updater[v] != MPL_NONE)
            MPL_TRY(check_readers(ctx, &c, v));
out:
    mpl_free_each(ctx, c.updater, c.weight, c.seen, c.stack);
    return st;
}
