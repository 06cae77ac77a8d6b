/* cpu_pieces.c -- what descriptions of operations for oneDNN are made of: layouts of operands,
 * arguments, and the choice among oneDNN's implementations. See cpu_priv.h. */
#include "graphs/ops/move/fused.h"
#include "runtime/cpu/cpu_priv.h"

typedef mpl_cpu_recipe recipe;

dnnl_memory_desc_t mpl_cpu_strided(uint32_t rank, const int64_t *dim, const int64_t *stride)
{
    dnnl_memory_desc_t md;
    dnnl_dims_t dims = {0}, strides = {0};

    memcpy(dims, dim, rank * sizeof *dim);
    memcpy(strides, stride, rank * sizeof *stride);
    dnnl_memory_desc_init_by_strides(&md, (int)rank, dims, dnnl_f32, strides);
    return md;
}

dnnl_memory_desc_t mpl_cpu_plain(uint32_t rank, const int64_t *dim)
{
    static const int64_t one = 1;
    int64_t stride[MPL_MAX_RANK + 1], n = 1;

    if (rank == 0)
        return mpl_cpu_strided(1, &one, &one);
    for (uint32_t i = rank; i-- > 0;) {
        stride[i] = n;
        n *= dim[i];
    }
    return mpl_cpu_strided(rank, dim, stride);
}

dnnl_memory_desc_t mpl_cpu_plain_shape(const mpl_shape *shape)
{
    return mpl_cpu_plain(shape->rank, shape->dim);
}

/* Images of these dims in blocks of channels. */
dnnl_memory_desc_t mpl_cpu_in_blocks(const int64_t *dim)
{
    dnnl_memory_desc_t md;
    dnnl_dims_t dims;

    memcpy(dims, dim, 4 * sizeof *dim);
    dnnl_memory_desc_init_by_tag(&md, 4, dims, dnnl_f32, dnnl_nChw8c);
    return md;
}

dnnl_memory_desc_t mpl_cpu_image(const recipe *self, const mpl_shape *shape)
{
    const int64_t *dim = shape->dim;

    if (self->blocked)
        return mpl_cpu_in_blocks(dim);
    if (!self->last)
        return mpl_cpu_plain_shape(shape);
    return mpl_cpu_strided(4, dim,
                           (const int64_t[]){dim[1] * dim[2] * dim[3], 1, dim[3] * dim[1], dim[1]});
}

void mpl_cpu_lay(recipe *self, mpl_layout layout)
{
    self->last = layout == MPL_LAST;
    self->blocked = layout == MPL_BLOCKED;
}

void mpl_cpu_arg_add(recipe *self, int name, const dnnl_memory_desc_t *md, mpl_cpu_from from,
                     uint32_t index)
{
    self->arg[self->n_args++] = (mpl_cpu_arg){name, *md, from, index};
}

static bool is_reference(const_dnnl_primitive_desc_t pd)
{
    const char *name = "";

    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    return strncmp(name, "ref", 3) == 0;
}

static bool fits(const recipe *self, const_dnnl_primitive_desc_t pd)
{
    const dnnl_memory_desc_t *scratch =
        dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);

    return scratch == NULL || dnnl_memory_desc_get_size(scratch) <= self->most_workspace;
}

/* Takes the primitive that an iterator is at, in place of self->pd. oneDNN's reference loops are
 * taken only where ours do not apply, as those are row-major. */
static void take(recipe *self, dnnl_primitive_desc_iterator_t it)
{
    dnnl_primitive_desc_t next = dnnl_primitive_desc_iterator_fetch(it);
    dnnl_primitive_desc_t drop = next;

    if (next != NULL && fits(self, next) &&
        (!is_reference(next) || ((self->last || self->blocked) && self->pd == NULL)))
        drop = self->pd, self->pd = next;
    if (drop != NULL)
        dnnl_primitive_desc_destroy(drop);
}

/* The implementation that attribute `way` counts from oneDNN's preferred one, or its last. */
static void choose_with(recipe *self, const_dnnl_op_desc_t desc, const_dnnl_primitive_attr_t attr,
                        const_dnnl_primitive_desc_t hint)
{
    int64_t left = mpl_attr_int(self->g, self->op, MPL_ATTR_way, 0);
    dnnl_primitive_desc_iterator_t it;

    if (dnnl_primitive_desc_iterator_create(&it, desc, attr, self->engine, hint) != dnnl_success)
        return;
    do {
        const_dnnl_primitive_desc_t before = self->pd;

        take(self, it);
        left -= before != NULL && self->pd != before;
    } while ((self->pd == NULL || left > 0) &&
             dnnl_primitive_desc_iterator_next(it) == dnnl_success);
    dnnl_primitive_desc_iterator_destroy(it);
}

void mpl_cpu_choose(recipe *self, const_dnnl_op_desc_t desc, const_dnnl_primitive_desc_t hint)
{
    choose_with(self, desc, self->attr, hint);
}

void mpl_cpu_choose_one_to_one(recipe *self, const_dnnl_op_desc_t desc,
                               const dnnl_memory_desc_t *src, const dnnl_memory_desc_t *dst)
{
    mpl_cpu_choose(self, desc, NULL);
    mpl_cpu_arg_add(self, DNNL_ARG_SRC, src, MPL_FROM_IN, 0);
    mpl_cpu_arg_add(self, DNNL_ARG_DST, dst, MPL_FROM_OUT, 0);
}

int64_t mpl_cpu_int(const recipe *self, mpl_attr_key key, int64_t otherwise)
{
    return mpl_attr_int(self->g, self->op, key, otherwise);
}

void mpl_cpu_weighted_args(recipe *self, uint32_t first, const dnnl_memory_desc_t *src,
                           const dnnl_memory_desc_t *weights, const dnnl_memory_desc_t *bias,
                           const dnnl_memory_desc_t *dst)
{
    mpl_cpu_arg_add(self, DNNL_ARG_SRC, src, MPL_FROM_IN, first);
    mpl_cpu_arg_add(self, DNNL_ARG_WEIGHTS, weights, MPL_FROM_IN, first + 1);
    if (bias != NULL)
        mpl_cpu_arg_add(self, DNNL_ARG_BIAS, bias, MPL_FROM_IN, first + 2);
    mpl_cpu_arg_add(self, DNNL_ARG_DST, dst, MPL_FROM_OUT, 0);
}

/* oneDNN adds to what the destination holds. This sum is used whether or not the plan shares their
 * place, so that plans change no bit. Partial sums pass through the destination, so oneDNN's binary
 * addition could not read from there. */
static void copy_sum(const mpl_op_call *call)
{
    if (call->out[0].data != call->in[0].data)
        memcpy(call->out[0].data, call->in[0].data,
               call->graph->value_bytes[call->graph->op_out[call->graph->op_out_begin[call->op]]]);
}

/* Attributes of a convolution or product that adds to its destination; NULL: out of memory. */
static dnnl_primitive_attr_t summing_attr(const recipe *self)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    bool made = dnnl_primitive_attr_clone(&attr, self->attr) == dnnl_success &&
                dnnl_post_ops_create(&ops) == dnnl_success &&
                dnnl_post_ops_append_sum(ops, 1) == dnnl_success &&
                dnnl_primitive_attr_set_post_ops(attr, ops) == dnnl_success;

    if (ops != NULL)
        dnnl_post_ops_destroy(ops);
    if (!made && attr != NULL) {
        dnnl_primitive_attr_destroy(attr);
        attr = NULL;
    }
    return attr;
}

void mpl_cpu_choose_fused(recipe *self, const_dnnl_op_desc_t desc)
{
    mpl_op_kind kind = (mpl_op_kind)self->g->op_kind[self->op];
    dnnl_primitive_attr_t attr = NULL;

    if (mpl_fused_first(kind) == 0) {
        mpl_cpu_choose(self, desc, NULL);
    } else if ((attr = summing_attr(self)) != NULL) {
        choose_with(self, desc, attr, NULL);
        dnnl_primitive_attr_destroy(attr);
        self->begin = copy_sum;
    }
    self->activation = mpl_activation_of(self->g, self->op);
}
