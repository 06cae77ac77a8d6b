/* grad_common.c -- the functions that gradient rules call. See gradients_priv.h. */
#include "graphs/ops/ops_priv.h"
#include "graphs/passes/autodiff/autodiff_priv.h"

enum { NAME_SIZE = MPL_GRAD_NAME };

const char *mpl_grad_fresh(const mpl_grad *grad, char *text, const char *base, const char *suffix,
                           uint32_t number)
{
    size_t n;

    if (number == MPL_NONE)
        snprintf(text, NAME_SIZE - 16, "%.200s%s", base, suffix);
    else
        snprintf(text, NAME_SIZE - 16, "%.200s%s%u", base, suffix, number);
    n = strlen(text);
    for (uint32_t i = 2;
         mpl_graph_find(grad->to, text) != MPL_NONE || mpl_graph_find(grad->g, text) != MPL_NONE;
         i++)
        snprintf(text + n, NAME_SIZE - n, "_%u", i);
    return text;
}

static mpl_value old_in(const mpl_grad *grad, uint32_t i)
{
    return grad->g->op_in[grad->g->op_in_begin[grad->op] + i];
}

bool mpl_grad_wants(const mpl_grad *grad, uint32_t i)
{
    return old_in(grad, i) != MPL_NONE && grad->varies[old_in(grad, i)];
}

/* The value of the new graph for v; within blocks it is recomputed on demand. */
static mpl_value new_value(mpl_grad *grad, mpl_value v)
{
    if (grad->st == MPL_OK)
        grad->st = mpl_grad_now(grad, v);
    return v == MPL_NONE ? MPL_NONE : grad->now[v];
}

mpl_value mpl_grad_in(mpl_grad *grad, uint32_t i)
{
    return new_value(grad, old_in(grad, i));
}

mpl_value mpl_grad_out(mpl_grad *grad, uint32_t i)
{
    return new_value(grad, grad->g->op_out[grad->g->op_out_begin[grad->op] + i]);
}

const mpl_shape *mpl_grad_in_shape(const mpl_grad *grad, uint32_t i)
{
    return &grad->g->value_shape[old_in(grad, i)];
}

const mpl_shape *mpl_grad_out_shape(const mpl_grad *grad, uint32_t i)
{
    return &grad->g->value_shape[grad->g->op_out[grad->g->op_out_begin[grad->op] + i]];
}

void mpl_grad_fail(mpl_grad *grad, const char *why)
{
    if (grad->st == MPL_OK)
        grad->st = MPL_REFUSE(grad->ctx, "operation '%.100s' (%s) cannot be differentiated: %s",
                              grad->g->op_name[grad->op],
                              mpl_op_table[grad->g->op_kind[grad->op]].name, why);
}

mpl_value mpl_grad_constant(mpl_grad *grad, const char *base, mpl_type type, const mpl_shape *shape,
                            double number)
{
    char text[NAME_SIZE];
    uint64_t element = 0;
    mpl_value v = MPL_NONE;

    mpl_put(type, &element, 0, number);
    if (grad->st == MPL_OK)
        grad->st =
            mpl_graph_add_const(grad->ctx, grad->to, mpl_grad_fresh(grad, text, base, "", MPL_NONE),
                                type, shape, &element, true, &v);
    return v;
}

mpl_value mpl_grad_number(mpl_grad *grad, double number)
{
    char text[64];

    snprintf(text, sizeof text, "number.%g", number);
    return mpl_grad_constant(grad, text, (mpl_type)grad->g->value_type[old_in(grad, 0)],
                             &(mpl_shape){0, {0}}, number);
}

mpl_value mpl_grad_zero(mpl_grad *grad, mpl_type type)
{
    return mpl_grad_constant(grad, "zero", type, &(mpl_shape){0, {0}}, 0);
}

mpl_value mpl_grad_zeros(mpl_grad *grad, mpl_value like)
{
    return mpl_grad_constant(grad, "zeros", (mpl_type)grad->g->value_type[like],
                             &grad->g->value_shape[like], 0);
}

mpl_value mpl_grad_dy(mpl_grad *grad, uint32_t i)
{
    mpl_value v = grad->g->op_out[grad->g->op_out_begin[grad->op] + i];

    if (v != MPL_NONE && grad->whole[v] != MPL_NONE)
        return grad->whole[v];
    return mpl_grad_zeros(grad, v == MPL_NONE ? old_in(grad, 0) : v);
}

/* Adds an operation to the new graph, with n outputs of these names, out[n]. */
static void add_op(mpl_grad *grad, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                   uint32_t n_attr, const mpl_attr *attr, uint32_t n, const char *const *name,
                   mpl_value *out)
{
    uint32_t first = 0;

    while (name[first] == NULL)
        first++;
    if (grad->st == MPL_OK)
        grad->st = mpl_graph_add_op(grad->ctx, grad->to, kind, name[first], n_in, in, n_attr, attr,
                                    n, name, out);
}

/* Name of an intermediate result of operation grad->op. */
static const char *helper_name(mpl_grad *grad, char *text)
{
    mpl_value first = grad->g->op_out[grad->g->op_out_begin[grad->op]];

    return mpl_grad_fresh(grad, text, grad->g->value_name[first], ".back", grad->n_helper++);
}

mpl_value mpl_grad_helper(mpl_grad *grad, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                          uint32_t n_attr, const mpl_attr *attr)
{
    char text[NAME_SIZE];
    const char *name = grad->st == MPL_OK ? helper_name(grad, text) : NULL;
    mpl_value out = MPL_NONE;

    if (name != NULL)
        add_op(grad, kind, n_in, in, n_attr, attr, 1, &name, &out);
    return out;
}

mpl_value mpl_grad_two(mpl_grad *grad, mpl_op_kind kind, mpl_value a, mpl_value b)
{
    return mpl_grad_helper(grad, kind, 2, (mpl_value[]){a, b}, 0, NULL);
}

uint32_t mpl_grad_attrs(const mpl_grad *grad, mpl_attr *attr)
{
    const mpl_graph *g = grad->g;
    uint32_t n = 0;

    for (uint32_t i = g->op_attr_begin[grad->op];
         i < g->op_attr_begin[grad->op + 1] && n < MPL_GRAD_ATTRS - 2; i++)
        attr[n++] = mpl_attr_at(g, i);
    return n;
}

mpl_value mpl_grad_step(mpl_grad *grad, mpl_value v, mpl_op_kind kind, uint32_t n_in,
                        const mpl_value *in, uint32_t n_attr, const mpl_attr *attr)
{
    char text[NAME_SIZE];
    const char *name = mpl_grad_fresh(grad, text, grad->g->value_name[v], ".grad", MPL_NONE);
    mpl_value out = MPL_NONE;

    add_op(grad, kind, n_in, in, n_attr, attr, 1, &name, &out);
    return out;
}

const char *mpl_grad_part_name(const mpl_grad *grad, mpl_value v, char *text)
{
    return mpl_grad_fresh(grad, text, grad->g->value_name[v],
                          grad->slots[v] == 1 ? ".grad" : ".grad.",
                          grad->slots[v] == 1 ? MPL_NONE : grad->n_parts[v]);
}

void mpl_grad_part(mpl_grad *grad, mpl_value v, mpl_value part)
{
    char text[NAME_SIZE];
    const char *name;

    if (grad->st != MPL_OK)
        return;
    if (grad->options->chained && grad->n_parts[v] > 0) {
        name = mpl_grad_fresh(grad, text, grad->g->value_name[v],
                              grad->n_parts[v] + 1 == grad->slots[v] ? ".grad" : ".grad.sum",
                              grad->n_parts[v] + 1 == grad->slots[v] ? MPL_NONE : grad->n_parts[v]);
        add_op(grad, MPL_OP_add, 2, (mpl_value[]){grad->whole[v], part}, 0, NULL, 1, &name,
               &grad->whole[v]);
    } else if (grad->options->chained) {
        grad->whole[v] = part;
    } else {
        grad->st = mpl_reserve(grad->ctx, grad->part_value, grad->value_cap,
                               (size_t)grad->n_all_parts + 1);
        if (grad->st == MPL_OK)
            grad->st = mpl_reserve(grad->ctx, grad->part_prev, grad->prev_cap,
                                   (size_t)grad->n_all_parts + 1);
        if (grad->st != MPL_OK)
            return;
        grad->part_value[grad->n_all_parts] = part;
        grad->part_prev[grad->n_all_parts] = grad->last[v];
        grad->last[v] = grad->n_all_parts++;
    }
    grad->n_parts[v]++;
}

void mpl_grad_give(mpl_grad *grad, uint32_t i, mpl_value part)
{
    mpl_grad_part(grad, old_in(grad, i), part);
}

void mpl_grad_make(mpl_grad *grad, uint32_t i, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                   uint32_t n_attr, const mpl_attr *attr)
{
    mpl_grad_make_all(grad, kind, n_in, in, n_attr, attr, 1, &i, 0);
}

void mpl_grad_make_all(mpl_grad *grad, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                       uint32_t n_attr, const mpl_attr *attr, uint32_t n, const uint32_t *target,
                       uint32_t needed)
{
    char(*text)[NAME_SIZE] = mpl_alloc(grad->ctx, n, NAME_SIZE);
    const char **name = mpl_alloc(grad->ctx, n, sizeof *name);
    mpl_value *out = mpl_alloc(grad->ctx, n, sizeof *out);

    if (grad->st == MPL_OK && (text == NULL || name == NULL || out == NULL))
        grad->st = MPL_EMEM;
    for (uint32_t i = 0; i < n && grad->st == MPL_OK; i++)
        if (target[i] != MPL_NONE)
            name[i] = mpl_grad_part_name(grad, old_in(grad, target[i]), text[i]);
        else if (i < 32 && (needed >> i & 1) != 0)
            name[i] = helper_name(grad, text[i]);
    for (uint32_t i = 1; i < n && grad->st == MPL_OK; i++) /* one value as several operands */
        for (uint32_t j = 0; j < i && name[i] != NULL; j++)
            if (name[j] != NULL && strcmp(name[i], name[j]) == 0)
                name[i] = helper_name(grad, text[i]);
    if (grad->st == MPL_OK)
        add_op(grad, kind, n_in, in, n_attr, attr, n, name, out);
    for (uint32_t i = 0; i < n && grad->st == MPL_OK; i++)
        if (target[i] != MPL_NONE)
            mpl_grad_give(grad, target[i], out[i]);
    mpl_free_each(grad->ctx, text, name, out);
}

void mpl_grad_give_summed(mpl_grad *grad, uint32_t i, mpl_value part)
{
    const mpl_shape *x = mpl_grad_in_shape(grad, i);
    mpl_shape y;
    int64_t axes[MPL_MAX_RANK];
    uint32_t n = 0;
    mpl_attr attr[2];

    if (grad->st != MPL_OK)
        return;
    y = grad->to->value_shape[part]; /* a copy: adding an operation may move the array */
    for (uint32_t k = 0; k < y.rank; k++)
        if (k + x->rank < y.rank || x->dim[k + x->rank - y.rank] != y.dim[k])
            axes[n++] = k;
    attr[0] = MPL_INTS(axes, n, axes);
    attr[1] = MPL_INT(keepdims, 1);
    if (mpl_shape_equal(x, &y))
        mpl_grad_give(grad, i, part);
    else if (x->rank == y.rank)
        mpl_grad_make(grad, i, MPL_OP_reduce_sum, 1, &part, 2, attr);
    else {
        if (n > 0)
            part = mpl_grad_helper(grad, MPL_OP_reduce_sum, 1, &part, 2, attr);
        mpl_grad_make(grad, i, MPL_OP_reshape, 1, &part, 1, &MPL_INTS(shape, x->rank, x->dim));
    }
}

bool mpl_grad_owns(const mpl_graph *g, mpl_op op)
{
    return g->op_body_begin[op] < g->op_body_begin[op + 1];
}

/* Marks the operation that makes v in the current block, if v does not exist yet. */
static void need(mpl_grad *grad, mpl_value v, uint8_t *needed, mpl_op *stack, uint32_t *n)
{
    mpl_op op = v != MPL_NONE && grad->now[v] == MPL_NONE ? grad->g->value_op[v] : MPL_NONE;

    if (op == MPL_NONE || needed[op])
        return;
    needed[op] = 1;
    stack[(*n)++] = op;
}

mpl_status mpl_grad_now(mpl_grad *grad, mpl_value v)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = grad->g;
    uint32_t b = grad->block, n_ops = g->block_op_end[b] - g->block_op_begin[b], n = 0, n_captured;
    uint8_t *needed = NULL;
    mpl_value *captured = NULL;
    mpl_op *stack = NULL;

    if (v == MPL_NONE || grad->now[v] != MPL_NONE)
        return MPL_OK;
    MPL_TRY(mpl_new(grad->ctx, needed, g->n_ops));
    MPL_TRY(mpl_new(grad->ctx, stack, n_ops));
    need(grad, v, needed, stack, &n);
    while (n > 0) {
        mpl_op op = stack[--n];

        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            need(grad, g->op_in[i], needed, stack, &n);
        mpl_free(grad->ctx, captured);
        captured = NULL;
        MPL_TRY(mpl_grad_captured(grad, op, false, &n_captured, &captured));
        for (uint32_t i = 0; i < n_captured; i++)
            need(grad, captured[i], needed, stack, &n);
    }
    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        if (needed[op])
            MPL_TRY(mpl_grad_owns(g, op) ? mpl_grad_copy_control(grad, op, grad->leads[op])
                                         : mpl_grad_copy(grad, op));
out:
    mpl_free_each(grad->ctx, needed, captured, stack);
    return st;
}
