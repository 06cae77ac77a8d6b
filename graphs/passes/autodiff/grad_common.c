/* grad_common.c -- the functions that gradient rules call. See gradients_priv.h. */
#include "graphs/ops/ops_priv.h"
#include "graphs/passes/autodiff/autodiff_priv.h"

enum { NAME_SIZE = MPL_GRAD_NAME };

const char *mpl_grad_fresh(const mpl_grad *d, char *text, const char *base, const char *suffix,
                           uint32_t number)
{
    size_t n;

    if (number == MPL_NONE)
        snprintf(text, NAME_SIZE - 16, "%.200s%s", base, suffix);
    else
        snprintf(text, NAME_SIZE - 16, "%.200s%s%u", base, suffix, number);
    n = strlen(text);
    for (uint32_t i = 2;
         mpl_graph_find(d->to, text) != MPL_NONE || mpl_graph_find(d->g, text) != MPL_NONE; i++)
        snprintf(text + n, NAME_SIZE - n, "_%u", i);
    return text;
}

static mpl_value old_in(const mpl_grad *d, uint32_t i)
{
    return d->g->op_in[d->g->op_in_begin[d->op] + i];
}

bool mpl_grad_wants(const mpl_grad *d, uint32_t i)
{
    return old_in(d, i) != MPL_NONE && d->varies[old_in(d, i)];
}

/* The value of the new graph for v; within blocks it is recomputed on demand. */
static mpl_value new_value(mpl_grad *d, mpl_value v)
{
    if (d->st == MPL_OK)
        d->st = mpl_grad_now(d, v);
    return v == MPL_NONE ? MPL_NONE : d->now[v];
}

mpl_value mpl_grad_in(mpl_grad *d, uint32_t i)
{
    return new_value(d, old_in(d, i));
}

mpl_value mpl_grad_out(mpl_grad *d, uint32_t i)
{
    return new_value(d, d->g->op_out[d->g->op_out_begin[d->op] + i]);
}

const mpl_shape *mpl_grad_in_shape(const mpl_grad *d, uint32_t i)
{
    return &d->g->value_shape[old_in(d, i)];
}

const mpl_shape *mpl_grad_out_shape(const mpl_grad *d, uint32_t i)
{
    return &d->g->value_shape[d->g->op_out[d->g->op_out_begin[d->op] + i]];
}

void mpl_grad_fail(mpl_grad *d, const char *why)
{
    if (d->st == MPL_OK)
        d->st = MPL_REFUSE(d->ctx, "operation '%.100s' (%s) cannot be differentiated: %s",
                           d->g->op_name[d->op], mpl_op_table[d->g->op_kind[d->op]].name, why);
}

mpl_value mpl_grad_constant(mpl_grad *d, const char *base, mpl_type type, const mpl_shape *shape,
                            double number)
{
    char text[NAME_SIZE];
    uint64_t element = 0;
    mpl_value v = MPL_NONE;

    mpl_put(type, &element, 0, number);
    if (d->st == MPL_OK)
        d->st = mpl_graph_add_const(d->ctx, d->to, mpl_grad_fresh(d, text, base, "", MPL_NONE),
                                    type, shape, &element, true, &v);
    return v;
}

mpl_value mpl_grad_number(mpl_grad *d, double number)
{
    char text[64];

    snprintf(text, sizeof text, "number.%g", number);
    return mpl_grad_constant(d, text, (mpl_type)d->g->value_type[old_in(d, 0)],
                             &(mpl_shape){0, {0}}, number);
}

mpl_value mpl_grad_zero(mpl_grad *d, mpl_type type)
{
    return mpl_grad_constant(d, "zero", type, &(mpl_shape){0, {0}}, 0);
}

mpl_value mpl_grad_zeros(mpl_grad *d, mpl_value like)
{
    return mpl_grad_constant(d, "zeros", (mpl_type)d->g->value_type[like], &d->g->value_shape[like],
                             0);
}

mpl_value mpl_grad_dy(mpl_grad *d, uint32_t i)
{
    mpl_value v = d->g->op_out[d->g->op_out_begin[d->op] + i];

    if (v != MPL_NONE && d->whole[v] != MPL_NONE)
        return d->whole[v];
    return mpl_grad_zeros(d, v == MPL_NONE ? old_in(d, 0) : v);
}

/* Adds an operation to the new graph, with n outputs of these names, out[n]. */
static void add_op(mpl_grad *d, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                   uint32_t n_attr, const mpl_attr *attr, uint32_t n, const char *const *name,
                   mpl_value *out)
{
    uint32_t first = 0;

    while (name[first] == NULL)
        first++;
    if (d->st == MPL_OK)
        d->st = mpl_graph_add_op(d->ctx, d->to, kind, name[first], n_in, in, n_attr, attr, n, name,
                                 out);
}

/* Name of an intermediate result of operation d->op. */
static const char *helper_name(mpl_grad *d, char *text)
{
    mpl_value first = d->g->op_out[d->g->op_out_begin[d->op]];

    return mpl_grad_fresh(d, text, d->g->value_name[first], ".back", d->n_helper++);
}

mpl_value mpl_grad_helper(mpl_grad *d, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                          uint32_t n_attr, const mpl_attr *attr)
{
    char text[NAME_SIZE];
    const char *name = d->st == MPL_OK ? helper_name(d, text) : NULL;
    mpl_value out = MPL_NONE;

    if (name != NULL)
        add_op(d, kind, n_in, in, n_attr, attr, 1, &name, &out);
    return out;
}

mpl_value mpl_grad_two(mpl_grad *d, mpl_op_kind kind, mpl_value a, mpl_value b)
{
    return mpl_grad_helper(d, kind, 2, (mpl_value[]){a, b}, 0, NULL);
}

uint32_t mpl_grad_attrs(const mpl_grad *d, mpl_attr *attr)
{
    const mpl_graph *g = d->g;
    uint32_t n = 0;

    for (uint32_t i = g->op_attr_begin[d->op];
         i < g->op_attr_begin[d->op + 1] && n < MPL_GRAD_ATTRS - 2; i++)
        attr[n++] = mpl_attr_at(g, i);
    return n;
}

mpl_value mpl_grad_step(mpl_grad *d, mpl_value v, mpl_op_kind kind, uint32_t n_in,
                        const mpl_value *in, uint32_t n_attr, const mpl_attr *attr)
{
    char text[NAME_SIZE];
    const char *name = mpl_grad_fresh(d, text, d->g->value_name[v], ".grad", MPL_NONE);
    mpl_value out = MPL_NONE;

    add_op(d, kind, n_in, in, n_attr, attr, 1, &name, &out);
    return out;
}

const char *mpl_grad_part_name(const mpl_grad *d, mpl_value v, char *text)
{
    return mpl_grad_fresh(d, text, d->g->value_name[v], d->slots[v] == 1 ? ".grad" : ".grad.",
                          d->slots[v] == 1 ? MPL_NONE : d->n_parts[v]);
}

void mpl_grad_part(mpl_grad *d, mpl_value v, mpl_value part)
{
    char text[NAME_SIZE];
    const char *name;

    if (d->st != MPL_OK)
        return;
    if (d->options->chained && d->n_parts[v] > 0) {
        name = mpl_grad_fresh(d, text, d->g->value_name[v],
                              d->n_parts[v] + 1 == d->slots[v] ? ".grad" : ".grad.sum",
                              d->n_parts[v] + 1 == d->slots[v] ? MPL_NONE : d->n_parts[v]);
        add_op(d, MPL_OP_add, 2, (mpl_value[]){d->whole[v], part}, 0, NULL, 1, &name, &d->whole[v]);
    } else if (d->options->chained) {
        d->whole[v] = part;
    } else {
        d->st = mpl_reserve(d->ctx, d->part_value, d->value_cap, (size_t)d->n_all_parts + 1);
        if (d->st == MPL_OK)
            d->st = mpl_reserve(d->ctx, d->part_prev, d->prev_cap, (size_t)d->n_all_parts + 1);
        if (d->st != MPL_OK)
            return;
        d->part_value[d->n_all_parts] = part;
        d->part_prev[d->n_all_parts] = d->last[v];
        d->last[v] = d->n_all_parts++;
    }
    d->n_parts[v]++;
}

void mpl_grad_give(mpl_grad *d, uint32_t i, mpl_value part)
{
    mpl_grad_part(d, old_in(d, i), part);
}

void mpl_grad_make(mpl_grad *d, uint32_t i, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                   uint32_t n_attr, const mpl_attr *attr)
{
    mpl_grad_make_all(d, kind, n_in, in, n_attr, attr, 1, &i, 0);
}

void mpl_grad_make_all(mpl_grad *d, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                       uint32_t n_attr, const mpl_attr *attr, uint32_t n, const uint32_t *target,
                       uint32_t needed)
{
    char(*text)[NAME_SIZE] = mpl_alloc(d->ctx, n, NAME_SIZE);
    const char **name = mpl_alloc(d->ctx, n, sizeof *name);
    mpl_value *out = mpl_alloc(d->ctx, n, sizeof *out);

    if (d->st == MPL_OK && (text == NULL || name == NULL || out == NULL))
        d->st = MPL_EMEM;
    for (uint32_t i = 0; i < n && d->st == MPL_OK; i++)
        if (target[i] != MPL_NONE)
            name[i] = mpl_grad_part_name(d, old_in(d, target[i]), text[i]);
        else if (i < 32 && (needed >> i & 1) != 0)
            name[i] = helper_name(d, text[i]);
    for (uint32_t i = 1; i < n && d->st == MPL_OK; i++) /* one value as several operands */
        for (uint32_t j = 0; j < i && name[i] != NULL; j++)
            if (name[j] != NULL && strcmp(name[i], name[j]) == 0)
                name[i] = helper_name(d, text[i]);
    if (d->st == MPL_OK)
        add_op(d, kind, n_in, in, n_attr, attr, n, name, out);
    for (uint32_t i = 0; i < n && d->st == MPL_OK; i++)
        if (target[i] != MPL_NONE)
            mpl_grad_give(d, target[i], out[i]);
    mpl_free_each(d->ctx, text, name, out);
}

void mpl_grad_give_summed(mpl_grad *d, uint32_t i, mpl_value part)
{
    const mpl_shape *x = mpl_grad_in_shape(d, i);
    mpl_shape y;
    int64_t axes[MPL_MAX_RANK];
    uint32_t n = 0;
    mpl_attr attr[2];

    if (d->st != MPL_OK)
        return;
    y = d->to->value_shape[part]; /* a copy: adding an operation may move the array */
    for (uint32_t k = 0; k < y.rank; k++)
        if (k + x->rank < y.rank || x->dim[k + x->rank - y.rank] != y.dim[k])
            axes[n++] = k;
    attr[0] = MPL_INTS(axes, n, axes);
    attr[1] = MPL_INT(keepdims, 1);
    if (mpl_shape_equal(x, &y))
        mpl_grad_give(d, i, part);
    else if (x->rank == y.rank)
        mpl_grad_make(d, i, MPL_OP_reduce_sum, 1, &part, 2, attr);
    else {
        if (n > 0)
            part = mpl_grad_helper(d, MPL_OP_reduce_sum, 1, &part, 2, attr);
        mpl_grad_make(d, i, MPL_OP_reshape, 1, &part, 1, &MPL_INTS(shape, x->rank, x->dim));
    }
}

bool mpl_grad_owns(const mpl_graph *g, mpl_op op)
{
    return g->op_body_begin[op] < g->op_body_begin[op + 1];
}

/* Marks the operation that makes v in the current block, if v does not exist yet. */
static void need(mpl_grad *d, mpl_value v, uint8_t *needed, mpl_op *stack, uint32_t *n)
{
    mpl_op op = v != MPL_NONE && d->now[v] == MPL_NONE ? d->g->value_op[v] : MPL_NONE;

    if (op == MPL_NONE || needed[op])
        return;
    needed[op] = 1;
    stack[(*n)++] = op;
}

mpl_status mpl_grad_now(mpl_grad *d, mpl_value v)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = d->g;
    uint32_t b = d->block, n_ops = g->block_op_end[b] - g->block_op_begin[b], n = 0, n_captured;
    uint8_t *needed = NULL;
    mpl_value *captured = NULL;
    mpl_op *stack = NULL;

    if (v == MPL_NONE || d->now[v] != MPL_NONE)
        return MPL_OK;
    MPL_TRY(mpl_new(d->ctx, needed, g->n_ops));
    MPL_TRY(mpl_new(d->ctx, stack, n_ops));
    need(d, v, needed, stack, &n);
    while (n > 0) {
        mpl_op op = stack[--n];

        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            need(d, g->op_in[i], needed, stack, &n);
        mpl_free(d->ctx, captured);
        captured = NULL;
        MPL_TRY(mpl_grad_captured(d, op, false, &n_captured, &captured));
        for (uint32_t i = 0; i < n_captured; i++)
            need(d, captured[i], needed, stack, &n);
    }
    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        if (needed[op])
            MPL_TRY(mpl_grad_owns(g, op) ? mpl_grad_copy_control(d, op, d->leads[op])
                                         : mpl_grad_copy(d, op));
out:
    mpl_free_each(d->ctx, needed, captured, stack);
    return st;
}
