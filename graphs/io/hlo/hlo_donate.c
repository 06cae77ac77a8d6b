/* hlo_donate.c -- outputs that lie in the input that was given for them (input_output_alias).
 *
 * Idea     If an opaque operation makes the output last, after all that reads the input, it becomes
 *          an `opaque_update` of the input, which waits for the readers. What a loop or branch may
 *          still find in the input counts as the input. Where this does not hold, XLA would copy;
 *          here the output keeps bytes of its own.
 * Source   XLA, xla/hlo/ir/hlo_input_output_alias_config.h (what may-alias and must-alias mean)
 * Cost     O(size) for each gift. */
#include "graphs/io/hlo/hlo_priv.h"
#include "graphs/passes/copy.h"

typedef struct donor {
    mpl_ctx *ctx;
    const mpl_graph *g;
    uint32_t *gift_of; /* [n_ops] of an operation that becomes an update; MPL_NONE: none */
    uint32_t *seen;    /* [n_values] last gift whose bytes it may show */
    uint8_t *taken;    /* [n_values] an input that something updates */
    mpl_value *stack;  /* [n_values] */
    mpl_op *reader;    /* of the input at hand: outermost operations, maybe repeated */
    size_t n_readers, reader_cap;
} donor;

static void push(donor *self, mpl_value v, uint32_t mark, uint32_t *n)
{
    if (v == MPL_NONE || self->seen[v] == mark)
        return;
    self->seen[v] = mark;
    self->stack[(*n)++] = v;
}

/* Lists the readers of v, also through views and what loops and branches may hand on. */
static mpl_status list_readers(donor *self, mpl_value v, uint32_t mark)
{
    const mpl_graph *g = self->g;
    uint32_t n = 0;

    self->n_readers = 0;
    push(self, v, mark, &n);
    while (n > 0) {
        v = self->stack[--n];
        for (uint32_t u = g->value_use_begin[v]; u < g->value_use_begin[v + 1]; u++) {
            mpl_op op = mpl_op_outermost(g, g->value_use[u]);
            bool shows = g->op_body_begin[op] < g->op_body_begin[op + 1] ||
                         g->op_kind[op] == MPL_OP_opaque_view;

            MPL_PASS(mpl_reserve(self->ctx, self->reader, self->reader_cap, self->n_readers + 1));
            self->reader[self->n_readers++] = op;
            for (uint32_t i = g->op_out_begin[op]; shows && i < g->op_out_begin[op + 1]; i++)
                push(self, g->op_out[i], mark, &n);
        }
    }
    return MPL_OK;
}

/* Whether `op` may write its output 0 over the input although it reads it. */
static bool may_write(const donor *self, mpl_op op, mpl_value input, uint32_t mark)
{
    const mpl_graph *g = self->g;

    for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++) {
        mpl_value v = mpl_op_input(g, op, i);

        if (v != MPL_NONE && self->seen[v] == mark &&
            (mpl_shown_source(g, v) != input || !mpl_op_overwrites(g, op, i)))
            return false;
    }
    return true;
}

/* Whether the output's maker can update the input; then notes it. */
static mpl_status accept(donor *self, const hlo_gift *gift, uint32_t k)
{
    const mpl_graph *g = self->g;
    mpl_value made = mpl_shown_source(g, gift->output), input = gift->input;
    mpl_op op = g->value_op[made];
    uint32_t mark = k + 1;

    if (op == MPL_NONE || g->op_kind[op] != MPL_OP_opaque || g->op_block[op] != 0 ||
        g->op_out[g->op_out_begin[op]] != made || self->gift_of[op] != MPL_NONE ||
        self->taken[input] || g->value_bytes[made] != g->value_bytes[input] ||
        g->value_bytes[made] == 0)
        return MPL_OK;
    MPL_PASS(list_readers(self, input, mark));
    for (size_t i = 0; i < self->n_readers; i++)
        if (self->reader[i] > op || mpl_op_output(g, self->reader[i], 0) == MPL_NONE)
            return MPL_OK;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (self->seen[g->output[i]] == mark) /* it is returned as it was */
            return MPL_OK;
    if (may_write(self, op, input, mark)) {
        self->gift_of[op] = k;
        self->taken[input] = 1;
    }
    return MPL_OK;
}

/* ---- the new graph ---- */

/* The attributes of `op`, without the pairs that an update has not, and with `reads`. */
static mpl_status update_attrs(const donor *self, mpl_op op, const int64_t *reads, uint32_t *n,
                               mpl_attr **out)
{
    mpl_attr *attr;
    uint32_t n_old;

    MPL_PASS(mpl_copy_attrs(self->ctx, self->g, op, &n_old, &attr));
    *n = 0;
    for (uint32_t i = 0; i < n_old; i++)
        if (attr[i].key != MPL_ATTR_over)
            attr[(*n)++] = attr[i];
    *out = attr;
    if (*n == n_old) {
        MPL_PASS(mpl_new(self->ctx, *out, (size_t)n_old + 1));
        memcpy(*out, attr, n_old * sizeof *attr);
        mpl_free(self->ctx, attr);
    }
    (*out)[(*n)++] = (mpl_attr){MPL_ATTR_reads, 1, reads, NULL, NULL};
    return MPL_OK;
}

/* Adds `op` as an update of `input`, which waits for the input's readers. */
static mpl_status copy_update(donor *self, mpl_op op, mpl_value input, mpl_graph *to,
                              mpl_value *map)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    const int64_t reads = 1 + (int64_t)mpl_op_n_in(g, op);
    uint32_t n_in = 0, n_attr, n_out = mpl_op_n_out(g, op);
    mpl_value *in = NULL, *out = NULL;
    const char **name = NULL;
    mpl_attr *attr = NULL;

    MPL_TRY(mpl_new(self->ctx, in, (size_t)mpl_op_n_in(g, op) + 1 + self->n_readers));
    in[n_in++] = map[input];
    for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
        in[n_in++] = map[mpl_op_input(g, op, i)];
    for (size_t i = 0; i < self->n_readers; i++)
        if (self->reader[i] != op)
            in[n_in++] = map[mpl_op_output(g, self->reader[i], 0)];
    MPL_TRY(mpl_new_each(self->ctx, n_out, out, name));
    for (uint32_t i = 0; i < n_out; i++)
        name[i] = g->value_name[mpl_op_output(g, op, i)];
    MPL_TRY(update_attrs(self, op, &reads, &n_attr, &attr));
    MPL_TRY(mpl_graph_add_op(self->ctx, to, MPL_OP_opaque_update, g->op_name[op], n_in, in, n_attr,
                             attr, n_out, name, out));
    for (uint32_t i = 0; i < n_out; i++)
        map[mpl_op_output(g, op, i)] = out[i];
out:
    mpl_free_each(self->ctx, in, out, name, attr);
    return st;
}

static mpl_status copy_graph(donor *self, mpl_graph *g, uint32_t n, const hlo_gift *gift,
                             mpl_graph *to, mpl_value *map, uint32_t *block)
{
    mpl_walk walk = mpl_walk_begin();

    for (mpl_item item; (item = mpl_walk_next(g, &walk)) != MPL_ITEM_END;) {
        uint32_t k = item == MPL_ITEM_OP ? self->gift_of[walk.op] : MPL_NONE;

        if (k != MPL_NONE) {
            MPL_PASS(list_readers(self, gift[k].input, n + k + 1));
            MPL_PASS(copy_update(self, walk.op, gift[k].input, to, map));
        } else if (item == MPL_ITEM_OP) {
            MPL_PASS(mpl_copy_op(self->ctx, g, walk.op, to, map, block));
        } else if (item == MPL_ITEM_VALUE) {
            MPL_PASS(mpl_copy_value(self->ctx, g, walk.value, to, &map[walk.value]));
        } else if (item == MPL_ITEM_OPEN) {
            MPL_PASS(mpl_copy_open(self->ctx, g, walk.block, to, map, &block[walk.block]));
        } else {
            MPL_PASS(mpl_copy_close(self->ctx, g, walk.block, to, map));
        }
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        MPL_PASS(mpl_graph_add_output(self->ctx, to, map[g->output[i]]));
    return mpl_graph_finish(self->ctx, to);
}

mpl_status hlo_donate(mpl_ctx *ctx, uint32_t n, const hlo_gift *gift, mpl_graph **graph)
{
    mpl_status st = MPL_OK;
    mpl_graph *g = *graph, *to = NULL;
    donor d = {.ctx = ctx, .g = g};
    mpl_value *map = NULL;
    uint32_t *block = NULL;
    bool any = false;

    MPL_TRY(mpl_new(ctx, d.gift_of, g->n_ops));
    memset(d.gift_of, 0xff, g->n_ops * sizeof *d.gift_of);
    MPL_TRY(mpl_new_each(ctx, g->n_values, d.seen, d.taken, d.stack, map));
    MPL_TRY(mpl_new(ctx, block, g->n_blocks));
    for (uint32_t k = 0; k < n; k++)
        MPL_TRY(accept(&d, &gift[k], k));
    for (mpl_op op = 0; op < g->n_ops; op++)
        any = any || d.gift_of[op] != MPL_NONE;
    if (!any)
        goto out;
    MPL_TRY(mpl_graph_new(ctx, g->name, &to));
    MPL_TRY(copy_graph(&d, g, n, gift, to, map, block));
    mpl_graph_free(ctx, g);
    *graph = to, to = NULL;
out:
    mpl_graph_free(ctx, to);
    mpl_free_each(ctx, d.gift_of, d.seen, d.taken, d.stack, d.reader, map, block);
    return st;
}
