/* cpu_windows.c -- convolutions and pools, as oneDNN describes them. See cpu_ops.c. */
#include "graphs/ops/move/fused.h"
#include "runtime/cpu/cpu_priv.h"

typedef mpl_cpu_recipe recipe;
typedef mpl_cpu_window window;

static void read_ints(const recipe *self, mpl_attr_key key, uint32_t n, int64_t otherwise,
                      int64_t *out)
{
    uint32_t given;
    const int64_t *ints = mpl_attr_ints(self->g, self->op, key, &given);

    for (uint32_t i = 0; i < n; i++)
        out[i] = given == n ? ints[i] : otherwise;
}

void mpl_cpu_read_window(const recipe *self, const int64_t *kernel, window *w)
{
    int64_t pads[2 * MPL_MAX_RANK];

    w->n = self->in[0]->rank - 2;
    read_ints(self, MPL_ATTR_strides, w->n, 1, w->stride);
    read_ints(self, MPL_ATTR_dilations, w->n, 1, w->dilation);
    read_ints(self, MPL_ATTR_pads, 2 * w->n, 0, pads);
    for (uint32_t i = 0; i < w->n; i++) {
        w->kernel[i] = kernel[i];
        w->dilation[i]--;
        w->pad_begin[i] = pads[i];
        w->pad_end[i] = pads[w->n + i];
    }
}

static int64_t reach(const window *self, uint32_t i)
{
    return (self->kernel[i] - 1) * (self->dilation[i] + 1) + 1;
}

/* Dims of filters with a separate dim for groups: (a, b, spatial ..) becomes (g, a / g, b, spatial
 * ..), of rank + 1. */
static uint32_t split_groups(const mpl_shape *shape, int64_t groups, int64_t *dim)
{
    if (groups == 1) {
        memcpy(dim, shape->dim, shape->rank * sizeof *dim);
        return shape->rank;
    }
    dim[0] = groups;
    dim[1] = shape->dim[0] / groups;
    memcpy(dim + 2, shape->dim + 1, (shape->rank - 1) * sizeof *dim);
    return shape->rank + 1;
}

dnnl_memory_desc_t mpl_cpu_filter(const recipe *self, const mpl_shape *shape)
{
    int64_t dim[MPL_MAX_RANK + 1];
    uint32_t rank = split_groups(shape, mpl_cpu_int(self, MPL_ATTR_group, 1), dim);

    return mpl_cpu_plain(rank, dim);
}

static bool window_rank_fits(const recipe *self)
{
    return self->in[0]->rank >= 3 && self->in[0]->rank <= 5;
}

/* Whether input i is a weight that no run changes. */
static bool is_constant(const recipe *self, uint32_t i)
{
    const mpl_graph *g = self->g;
    mpl_value v = g->op_in[g->op_in_begin[self->op] + i];

    for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++)
        if (mpl_n_updates((mpl_op_kind)g->op_kind[g->value_use[k]]) > 0)
            return false;
    return g->value_role[v] == MPL_WEIGHT;
}

void mpl_cpu_conv(recipe *self)
{
    const uint32_t first = mpl_fused_first((mpl_op_kind)self->g->op_kind[self->op]);
    const mpl_shape *const *in = self->in + first;
    dnnl_convolution_desc_t desc;
    dnnl_memory_desc_t src, filter, bias, dst, any;
    const dnnl_memory_desc_t *chosen;
    int64_t dim[MPL_MAX_RANK + 1];
    bool has_bias = self->n_in > first + 2 && in[2] != NULL;
    window w;

    if (!window_rank_fits(self))
        return;
    mpl_cpu_read_window(self, in[1]->dim + 2, &w);
    src = mpl_turns_layout(self->g, self->op) ? mpl_cpu_plain_shape(in[0])
                                              : mpl_cpu_image(self, in[0]);
    filter = mpl_cpu_plain(split_groups(in[1], mpl_cpu_int(self, MPL_ATTR_group, 1), dim), dim);
    bias = mpl_cpu_plain(1, &self->out[0]->dim[1]);
    dst = mpl_cpu_image(self, self->out[0]);
    any = filter;
    if ((self->last || self->blocked) && is_constant(self, first + 1))
        dnnl_memory_desc_init_by_tag(&any, filter.ndims, filter.dims, dnnl_f32,
                                     dnnl_format_tag_any);
    if (dnnl_dilated_convolution_forward_desc_init(
            &desc, dnnl_forward_inference, dnnl_convolution_direct, &src, &any,
            has_bias ? &bias : NULL, &dst, w.stride, w.dilation, w.pad_begin,
            w.pad_end) != dnnl_success)
        return;
    mpl_cpu_choose_fused(self, &desc);
    chosen = self->pd != NULL ? dnnl_primitive_desc_query_md(self->pd, dnnl_query_weights_md, 0)
                              : &filter;
    mpl_cpu_weighted_args(self, first, &src, chosen, has_bias ? &bias : NULL, &dst);
    if (!dnnl_memory_desc_equal(chosen, &filter)) {
        self->packed_from = filter;
        self->arg[1].from = MPL_FROM_PACKED;
    }
}

/* Filters of a transposed convolution lie as (in, out / g, spatial ..); oneDNN names them (g, out /
 * g, in / g, ..). */
static dnnl_memory_desc_t transposed_filter(const mpl_shape *shape, int64_t groups)
{
    int64_t dim[MPL_MAX_RANK + 1], stride[MPL_MAX_RANK + 1];
    int64_t kernel = mpl_count_dims(shape, 2, shape->rank), in = shape->dim[0] / groups,
            out = shape->dim[1];
    uint32_t n = 0;

    if (groups > 1)
        dim[n] = groups, stride[n++] = in * out * kernel;
    dim[n] = out, stride[n++] = kernel;
    dim[n] = in, stride[n++] = out * kernel;
    for (uint32_t i = 2; i < shape->rank; i++)
        dim[n] = shape->dim[i], stride[n++] = mpl_count_dims(shape, i + 1, shape->rank);
    return mpl_cpu_strided(n, dim, stride);
}

void mpl_cpu_conv_transpose(recipe *self)
{
    dnnl_deconvolution_desc_t desc;
    dnnl_memory_desc_t src, filter, bias, dst;
    bool has_bias = self->n_in > 2 && self->in[2] != NULL;
    mpl_attr given;
    window w;

    if (!window_rank_fits(self) || mpl_attr_get(self->g, self->op, MPL_ATTR_output_shape, &given))
        return;
    mpl_cpu_read_window(self, self->in[1]->dim + 2, &w);
    for (uint32_t i = 0; i < w.n; i++) /* cropped at the end, less output_padding */
        w.pad_end[i] = (self->in[0]->dim[2 + i] - 1) * w.stride[i] + reach(&w, i) -
                       self->out[0]->dim[2 + i] - w.pad_begin[i];
    src = mpl_cpu_plain_shape(self->in[0]);
    filter = transposed_filter(self->in[1], mpl_cpu_int(self, MPL_ATTR_group, 1));
    bias = mpl_cpu_plain(1, &self->out[0]->dim[1]);
    dst = mpl_cpu_plain_shape(self->out[0]);
    if (dnnl_dilated_deconvolution_forward_desc_init(
            &desc, dnnl_forward_inference, dnnl_deconvolution_direct, &src, &filter,
            has_bias ? &bias : NULL, &dst, w.stride, w.dilation, w.pad_begin,
            w.pad_end) != dnnl_success)
        return;
    mpl_cpu_choose(self, &desc, NULL);
    mpl_cpu_weighted_args(self, 0, &src, &filter, has_bias ? &bias : NULL, &dst);
}

static void pool_with(recipe *self, dnnl_alg_kind_t algorithm, const window *w)
{
    dnnl_pooling_v2_desc_t desc;
    dnnl_memory_desc_t src = mpl_cpu_image(self, self->in[0]),
                       dst = mpl_cpu_image(self, self->out[0]);

    self->drops_nan = self->drops_infinity = algorithm == dnnl_pooling_max;
    if (self->drops_nan && (self->last || self->blocked)) /* images.h has it; plain loops are
                                                             row-major */
        return;
    if (dnnl_pooling_v2_forward_desc_init(&desc, dnnl_forward_inference, algorithm, &src, &dst,
                                          w->stride, w->kernel, w->dilation, w->pad_begin,
                                          w->pad_end) != dnnl_success)
        return;
    mpl_cpu_choose_one_to_one(self, &desc, &src, &dst);
}

bool mpl_cpu_fit_pool(const recipe *self, const mpl_shape *x, const mpl_shape *y, window *w)
{
    bool average = self->g->op_kind[self->op] == MPL_OP_avg_pool ||
                   self->g->op_kind[self->op] == MPL_OP_avg_pool_grad;
    bool counts_pads = mpl_cpu_int(self, MPL_ATTR_count_include_pad, 0) != 0;

    for (uint32_t i = 0; i < w->n; i++) {
        int64_t end =
            (y->dim[2 + i] - 1) * w->stride[i] + reach(w, i) - x->dim[2 + i] - w->pad_begin[i];

        if (end <= w->pad_end[i])
            continue;
        if (average && counts_pads) /* oneDNN also counts what ceil_mode reads beyond the pads */
            return false;
        w->pad_end[i] = end;
    }
    return true;
}

void mpl_cpu_pool(recipe *self)
{
    bool average = self->g->op_kind[self->op] == MPL_OP_avg_pool;
    bool counts_pads = mpl_cpu_int(self, MPL_ATTR_count_include_pad, 0) != 0;
    uint32_t n;
    const int64_t *kernel = mpl_attr_ints(self->g, self->op, MPL_ATTR_kernel_shape, &n);
    window w;

    if (!window_rank_fits(self) || n != self->in[0]->rank - 2 ||
        (self->n_out > 1 && self->out[1] != NULL))
        return;
    mpl_cpu_read_window(self, kernel, &w);
    if (!mpl_cpu_fit_pool(self, self->in[0], self->out[0], &w))
        return;
    pool_with(self,
              !average      ? dnnl_pooling_max
              : counts_pads ? dnnl_pooling_avg_include_padding
                            : dnnl_pooling_avg_exclude_padding,
              &w);
}

void mpl_cpu_global_pool(recipe *self)
{
    window w = {.n = self->in[0]->rank - 2};

    if (!window_rank_fits(self))
        return;
    for (uint32_t i = 0; i < w.n; i++) {
        w.kernel[i] = self->in[0]->dim[2 + i];
        w.stride[i] = 1;
    }
    pool_with(self,
              self->g->op_kind[self->op] == MPL_OP_global_max_pool
                  ? dnnl_pooling_max
                  : dnnl_pooling_avg_exclude_padding,
              &w);
}
