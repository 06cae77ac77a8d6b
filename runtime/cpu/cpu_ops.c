/* cpu_ops.c -- each operator that oneDNN computes, as oneDNN describes it. See cpu_priv.h.
 *
 * Layouts are the graph's: row-major, or channels-last images. Dims that behave alike are merged,
 * because oneDNN is faster with fewer dims. Our own loops compute what oneDNN would compute by its
 * reference loops, or slower (tanh, gelu), what it approximates too coarsely (softplus is negative
 * below -13, log has a relative error of 4e-4 near 1), and what loses a NaN: its maximum of a NaN
 * and a number is the number (relu, clip, min, max), its exp of a NaN infinite. If that is part of
 * a larger operation (max pools, softmax, reductions), drops_nan is set. */
#include "graphs/ir/counts.h"
#include "graphs/ir/layout.h"
#include "graphs/ops/move/fused.h"
#include "runtime/cpu/cpu_priv.h"

#include <math.h>

typedef mpl_cpu_recipe recipe;

/* ---- attributes ---- */

static float attr_float(const recipe *self, mpl_attr_key key, double otherwise)
{
    return (float)mpl_attr_float(self->g, self->op, key, otherwise);
}

static uint32_t axis_of(const recipe *self, int64_t otherwise, uint32_t rank)
{
    int64_t axis = mpl_cpu_int(self, MPL_ATTR_axis, otherwise);

    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

/* *out: the number that all elements of input i are known to be before the run; false: unknown. */
static bool known_number(const recipe *self, uint32_t i, float *out)
{
    const mpl_graph *g = self->g;
    mpl_value v;

    if (i >= self->n_in || self->in[i] == NULL)
        return false;
    v = g->op_in[g->op_in_begin[self->op] + i];
    if (g->value_role[v] != MPL_WEIGHT || g->value_data[v] == NULL || mpl_count(self->in[i]) != 1)
        return false;
    return memcpy(out, g->value_data[v], sizeof *out), true;
}

/* ---- element-wise ---- */

static void eltwise(recipe *self, dnnl_alg_kind_t algorithm, float alpha, float beta)
{
    dnnl_eltwise_desc_t desc;
    int64_t n = mpl_count(self->out[0]);
    dnnl_memory_desc_t md = mpl_cpu_plain(1, &n);

    if (dnnl_eltwise_forward_desc_init(&desc, dnnl_forward_inference, algorithm, &md, alpha,
                                       beta) != dnnl_success)
        return;
    mpl_cpu_choose_one_to_one(self, &desc, &md, &md);
}

static void power(recipe *self)
{
    float exponent;

    /* Of 0.5, oneDNN takes a root: a NaN at -infinity, whose power is infinite. Of 3, it calls
     * libm for each element; a chain does not. */
    if (known_number(self, 1, &exponent) && mpl_shape_equal(self->in[0], self->out[0]) &&
        exponent != 0.5f && exponent != 3)
        eltwise(self, dnnl_eltwise_pow, 1, exponent);
}

/* Functions of one element. */
static const struct function {
    dnnl_alg_kind_t algorithm;
    float alpha;
    bool given; /* replaced by the attribute alpha, if the operation has one */
} functions[MPL_N_OPS] = {
    [MPL_OP_leaky_relu] = {dnnl_eltwise_relu, 0.01f, true},
    [MPL_OP_elu] = {dnnl_eltwise_elu, 1, true},
    [MPL_OP_sigmoid] = {dnnl_eltwise_logistic, 0, false},
    [MPL_OP_hard_swish] = {dnnl_eltwise_hardswish, 0, false},
    [MPL_OP_swish] = {dnnl_eltwise_swish, 1, true},
    [MPL_OP_mish] = {dnnl_eltwise_mish, 0, false},
    [MPL_OP_sqrt] = {dnnl_eltwise_sqrt, 0, false},
    [MPL_OP_abs] = {dnnl_eltwise_abs, 0, false},
    [MPL_OP_neg] = {dnnl_eltwise_linear, -1, false},
    [MPL_OP_round] = {dnnl_eltwise_round, 0, false},
};

/* Of so few elements oneDNN takes longer to begin than a chain takes to end. */
static bool is_little(const recipe *self)
{
    enum { LITTLE = 2048 };

    return mpl_count(self->out[0]) <= LITTLE && mpl_cpu_int(self, MPL_ATTR_way, 0) == 0 &&
           mpl_fused_arity((mpl_op_kind)self->g->op_kind[self->op]) > 0;
}

static void unary(recipe *self)
{
    const struct function *f = &functions[self->g->op_kind[self->op]];
    float alpha = f->given ? attr_float(self, MPL_ATTR_alpha, (double)f->alpha) : f->alpha;

    if (f->algorithm == dnnl_eltwise_relu && alpha == 0) /* oneDNN's relu of a NaN is 0 */
        return;
    if (is_little(self) && self->g->op_attr_begin[self->op] == self->g->op_attr_begin[self->op + 1])
        return;
    eltwise(self, f->algorithm, alpha, 0);
}

/* Dim i of a shape that is broadcast to `rank` dims. */
static int64_t dim_from_right(const mpl_shape *shape, uint32_t rank, uint32_t i)
{
    return i + shape->rank < rank ? 1 : shape->dim[i + shape->rank - rank];
}

/* Dims of `out`, and of `in` along them; merges neighbours if both or neither are broadcast. */
static uint32_t merge_broadcast(const mpl_shape *out, const mpl_shape *in, int64_t *out_dim,
                                int64_t *in_dim)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < out->rank; i++) {
        int64_t whole = out->dim[i], part = dim_from_right(in, out->rank, i);

        if (whole == 1)
            continue;
        if (n > 0 && (part == 1) == (in_dim[n - 1] == 1)) {
            out_dim[n - 1] *= whole;
            in_dim[n - 1] *= part;
        } else {
            out_dim[n] = whole;
            in_dim[n++] = part;
        }
    }
    if (n == 0)
        out_dim[n] = in_dim[n] = 1, n++;
    return n;
}

/* Dims of an image's operand in memory order, the channels last. */
static mpl_shape turned(const mpl_shape *shape)
{
    static const uint32_t order[] = {0, 2, 3, 1};
    mpl_shape out = {.rank = 4};

    for (uint32_t i = 0; i < 4; i++)
        out.dim[i] = dim_from_right(shape, 4, order[i]);
    return out;
}

/* Whether operand i of an operation on channels-last images lies as `turned` says: it is
 * channels-last, or its layout is the same either way. */
static bool lies_turned(const recipe *self, uint32_t i)
{
    const mpl_shape *shape = self->in[i];

    return mpl_channels_last(self->g, mpl_op_input(self->g, self->op, i)) ||
           dim_from_right(shape, 4, 1) == 1 ||
           (dim_from_right(shape, 4, 2) == 1 && dim_from_right(shape, 4, 3) == 1);
}

static void binary(recipe *self, dnnl_alg_kind_t algorithm, bool commutes)
{
    dnnl_binary_desc_t desc;
    dnnl_memory_desc_t whole, part;
    mpl_shape to, from;
    int64_t whole_dim[MPL_MAX_RANK + 1], part_dim[MPL_MAX_RANK + 1];
    uint32_t first = 0, rank;

    if (self->n_in != 2)
        return;
    if (mpl_count(self->in[0]) != mpl_count(self->out[0]) && commutes)
        first = 1;
    if (mpl_count(self->in[first]) != mpl_count(self->out[0]))
        return;
    if (self->last && !(lies_turned(self, 0) && lies_turned(self, 1)))
        return;
    to = self->last ? turned(self->out[0]) : *self->out[0];
    from = self->last ? turned(self->in[1 - first]) : *self->in[1 - first];
    rank = merge_broadcast(&to, &from, whole_dim, part_dim);
    whole = mpl_cpu_plain(rank, whole_dim);
    part = mpl_cpu_plain(rank, part_dim);
    if (dnnl_binary_desc_init(&desc, algorithm, &whole, &part, &whole) != dnnl_success)
        return;
    mpl_cpu_choose(self, &desc, NULL);
    mpl_cpu_arg_add(self, DNNL_ARG_SRC_0, &whole, MPL_FROM_IN, first);
    mpl_cpu_arg_add(self, DNNL_ARG_SRC_1, &part, MPL_FROM_IN, 1 - first);
    mpl_cpu_arg_add(self, DNNL_ARG_DST, &whole, MPL_FROM_OUT, 0);
}

static const struct {
    dnnl_alg_kind_t algorithm;
    bool commutes;
} of_two[MPL_N_OPS] = {
    [MPL_OP_add] = {dnnl_binary_add, true},  [MPL_OP_sum] = {dnnl_binary_add, true},
    [MPL_OP_sub] = {dnnl_binary_sub, false}, [MPL_OP_mul] = {dnnl_binary_mul, true},
    [MPL_OP_div] = {dnnl_binary_div, false},
};

static void arithmetic(recipe *self)
{
    uint16_t kind = self->g->op_kind[self->op];

    if (is_little(self))
        return;
    binary(self, of_two[kind].algorithm, of_two[kind].commutes);
}

/* ---- products ---- */

/* first: index of the input a. */
static void product(recipe *self, uint32_t first, const dnnl_memory_desc_t *a,
                    const dnnl_memory_desc_t *b, const dnnl_memory_desc_t *bias,
                    const dnnl_memory_desc_t *y)
{
    dnnl_matmul_desc_t desc;

    if (dnnl_matmul_desc_init(&desc, a, b, bias, y) != dnnl_success)
        return;
    mpl_cpu_choose_fused(self, &desc);
    mpl_cpu_weighted_args(self, first, a, b, bias, y);
}

/* Operand 0 or 1 in `rank` dims; a vector is a row on the left, a column on the right. */
static void product_dims(const mpl_shape *shape, uint32_t operand, uint32_t rank, int64_t *dim)
{
    mpl_shape matrix = *shape;

    if (shape->rank == 1)
        matrix =
            (mpl_shape){2, {operand == 0 ? 1 : shape->dim[0], operand == 0 ? shape->dim[0] : 1}};
    for (uint32_t i = 0; i < rank; i++)
        dim[i] = dim_from_right(&matrix, rank, i);
}

/* A stack of matrices of these dims in memory, each transposed where `turned`. */
static dnnl_memory_desc_t matrices(uint32_t rank, const int64_t *dim, bool turned)
{
    int64_t of[MPL_MAX_RANK], stride[MPL_MAX_RANK], n = 1;

    if (!turned)
        return mpl_cpu_plain(rank, dim);
    memcpy(of, dim, sizeof of);
    of[rank - 2] = dim[rank - 1], of[rank - 1] = dim[rank - 2];
    for (uint32_t i = rank; i-- > 0; n *= dim[i])
        stride[i] = n;
    stride[rank - 1] = stride[rank - 2], stride[rank - 2] = 1;
    return mpl_cpu_strided(rank, of, stride);
}

static void matmul(recipe *self)
{
    bool trans_a = mpl_cpu_int(self, MPL_ATTR_trans_a, 0) != 0 && self->in[0]->rank > 1;
    bool trans_b = mpl_cpu_int(self, MPL_ATTR_trans_b, 0) != 0 && self->in[1]->rank > 1;
    uint32_t rank = 2;
    int64_t a[MPL_MAX_RANK] = {0}, b[MPL_MAX_RANK] = {0}, y[MPL_MAX_RANK];
    dnnl_memory_desc_t a_md, b_md, y_md;

    for (uint32_t i = 0; i < 2; i++)
        rank = self->in[i]->rank > rank ? self->in[i]->rank : rank;
    product_dims(self->in[0], 0, rank, a);
    product_dims(self->in[1], 1, rank, b);
    for (uint32_t i = 0; i < rank; i++)
        y[i] = a[i] > b[i] ? a[i] : b[i];
    y[rank - 2] = a[rank - (trans_a ? 1 : 2)], y[rank - 1] = b[rank - (trans_b ? 2 : 1)];
    if (self->in[1]->rank <= 2 && rank > 2 && !trans_a) { /* a single right matrix: merge left rows
                                                           */
        a[0] = y[0] = mpl_count_dims(self->in[0], 0, rank - 1);
        a[1] = a[rank - 1], y[1] = y[rank - 1];
        b[0] = b[rank - 2], b[1] = b[rank - 1];
        rank = 2;
    }
    a_md = matrices(rank, a, trans_a);
    b_md = matrices(rank, b, trans_b);
    y_md = mpl_cpu_plain(rank, y);
    product(self, 0, &a_md, &b_md, NULL, &y_md);
}

dnnl_memory_desc_t mpl_cpu_matrix(const mpl_shape *shape, bool turned)
{
    int64_t dim[2] = {shape->dim[turned], shape->dim[!turned]};
    int64_t stride[2] = {turned ? 1 : shape->dim[1], turned ? shape->dim[1] : 1};

    return mpl_cpu_strided(2, dim, stride);
}

void mpl_cpu_product(recipe *self, const dnnl_memory_desc_t *a, uint32_t a_in,
                     const dnnl_memory_desc_t *b, uint32_t b_in, const dnnl_memory_desc_t *y,
                     uint32_t y_out)
{
    dnnl_matmul_desc_t desc;

    if (dnnl_matmul_desc_init(&desc, a, b, NULL, y) != dnnl_success)
        return;
    mpl_cpu_choose(self, &desc, NULL);
    mpl_cpu_arg_add(self, DNNL_ARG_SRC, a, MPL_FROM_IN, a_in);
    mpl_cpu_arg_add(self, DNNL_ARG_WEIGHTS, b, MPL_FROM_IN, b_in);
    mpl_cpu_arg_add(self, DNNL_ARG_DST, y, MPL_FROM_OUT, y_out);
}

/* A B + C (alpha and beta are 1) with C one row, added to all rows; then the final step of gemm_act
 * and gemm_sum. */
static void gemm(recipe *self)
{
    const uint32_t first = mpl_fused_first((mpl_op_kind)self->g->op_kind[self->op]);
    const mpl_shape *const *in = self->in + first;
    const mpl_shape left = mpl_as_matrix(in[0]), made = mpl_as_matrix(self->out[0]);
    dnnl_memory_desc_t a, b, c, y;
    int64_t row[2] = {1, made.dim[1]};
    bool has_c = self->n_in > first + 2 && in[2] != NULL;

    if (attr_float(self, MPL_ATTR_alpha, 1) != 1)
        return;
    if (has_c && (attr_float(self, MPL_ATTR_beta, 1) != 1 || in[2]->rank == 0 ||
                  mpl_count(in[2]) != row[1] || in[2]->dim[in[2]->rank - 1] != row[1]))
        return;
    a = mpl_cpu_matrix(&left, mpl_cpu_int(self, MPL_ATTR_trans_a, 0) != 0);
    b = mpl_cpu_matrix(in[1], mpl_cpu_int(self, MPL_ATTR_trans_b, 0) != 0);
    c = mpl_cpu_plain(2, row);
    y = mpl_cpu_plain_shape(&made);
    product(self, first, &a, &b, has_c ? &c : NULL, &y);
}

/* ---- normalisation ---- */

static void batch_norm(recipe *self)
{
    dnnl_batch_normalization_desc_t desc;
    const mpl_shape *shape = self->in[0];
    int64_t dim[4] = {shape->dim[0], shape->rank > 1 ? shape->dim[1] : 1,
                      mpl_count_dims(shape, shape->rank < 2 ? shape->rank : 2, shape->rank), 1};
    dnnl_memory_desc_t data = mpl_cpu_plain(4, dim), per_channel = mpl_cpu_plain(1, &dim[1]);
    static const int names[] = {DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE};
    bool matrix = dim[2] == 1;

    if (matrix) /* its rows are pixels of one image */
        dim[2] = dim[0], dim[0] = 1;
    if (self->last || matrix)
        data = mpl_cpu_strided(4, dim, (const int64_t[]){dim[1] * dim[2], 1, dim[1], dim[1]});
    if (self->blocked)
        data = mpl_cpu_in_blocks(dim);
    if (shape->rank < 2 ||
        dnnl_batch_normalization_forward_desc_init(
            &desc, dnnl_forward_inference, &data, attr_float(self, MPL_ATTR_epsilon, 1e-5),
            dnnl_use_global_stats | dnnl_use_scale | dnnl_use_shift) != dnnl_success)
        return;
    mpl_cpu_choose(self, &desc, NULL);
    mpl_cpu_arg_add(self, DNNL_ARG_SRC, &data, MPL_FROM_IN, 0);
    for (uint32_t i = 0; i < 4; i++)
        mpl_cpu_arg_add(self, names[i], &per_channel, MPL_FROM_IN, i + 1);
    mpl_cpu_arg_add(self, DNNL_ARG_DST, &data, MPL_FROM_OUT, 0);
}

/* oneDNN's window is symmetric, but ONNX's is not if its size is even. */
static void lrn(recipe *self)
{
    dnnl_lrn_desc_t desc;
    dnnl_memory_desc_t md;
    int64_t size = mpl_cpu_int(self, MPL_ATTR_size, 1);

    if (size % 2 == 0 || self->in[0]->rank != 4)
        return;
    md = mpl_cpu_plain_shape(self->in[0]);
    if (dnnl_lrn_forward_desc_init(&desc, dnnl_forward_inference, dnnl_lrn_across_channels, &md,
                                   size, attr_float(self, MPL_ATTR_alpha, 1e-4),
                                   attr_float(self, MPL_ATTR_beta, 0.75),
                                   attr_float(self, MPL_ATTR_bias, 1)) != dnnl_success)
        return;
    mpl_cpu_choose_one_to_one(self, &desc, &md, &md);
}

static void layer_norm(recipe *self)
{
    dnnl_layer_normalization_desc_t desc;
    const mpl_shape *shape = self->in[0];
    uint32_t axis = axis_of(self, -1, shape->rank);
    int64_t dim[2] = {mpl_count_dims(shape, 0, axis), mpl_count_dims(shape, axis, shape->rank)};
    dnnl_memory_desc_t data = mpl_cpu_plain(2, dim), rows = mpl_cpu_plain(1, &dim[0]),
                       columns = mpl_cpu_plain(1, &dim[1]);
    bool has_bias = self->n_in > 2 && self->in[2] != NULL;

    for (uint32_t i = 1; i < self->n_out; i++)
        if (self->out[i] != NULL)
            return;
    if (mpl_count(self->in[1]) != dim[1] || (has_bias && mpl_count(self->in[2]) != dim[1]))
        return;
    if (dnnl_layer_normalization_forward_desc_init(
            &desc, dnnl_forward_inference, &data, &rows, attr_float(self, MPL_ATTR_epsilon, 1e-5),
            dnnl_use_scale | (has_bias ? dnnl_use_shift : 0u)) != dnnl_success)
        return;
    mpl_cpu_choose(self, &desc, NULL);
    mpl_cpu_arg_add(self, DNNL_ARG_SRC, &data, MPL_FROM_IN, 0);
    mpl_cpu_arg_add(self, DNNL_ARG_SCALE, &columns, MPL_FROM_IN, 1);
    if (has_bias)
        mpl_cpu_arg_add(self, DNNL_ARG_SHIFT, &columns, MPL_FROM_IN, 2);
    mpl_cpu_arg_add(self, DNNL_ARG_DST, &data, MPL_FROM_OUT, 0);
}

static void softmax(recipe *self)
{
    dnnl_softmax_v2_desc_t desc;
    const mpl_shape *shape = self->in[0];
    uint32_t axis = axis_of(self, -1, shape->rank);
    dnnl_memory_desc_t md;
    int64_t dim[3];

    if (shape->rank == 0)
        return;
    dim[0] = mpl_count_dims(shape, 0, axis);
    dim[1] = shape->dim[axis];
    dim[2] = mpl_count_dims(shape, axis + 1, shape->rank);
    md = mpl_cpu_plain(dim[2] == 1 ? 2 : 3, dim);
    if (dnnl_softmax_v2_forward_desc_init(&desc, dnnl_forward_inference,
                                          self->g->op_kind[self->op] == MPL_OP_log_softmax
                                              ? dnnl_softmax_log
                                              : dnnl_softmax_accurate,
                                          &md, &md, 1) != dnnl_success)
        return;
    mpl_cpu_choose_one_to_one(self, &desc, &md, &md);
    self->drops_nan = true;
}

/* ---- reductions ---- */

/* p: of a norm. */
static const struct {
    dnnl_alg_kind_t algorithm;
    float p;
} reductions[MPL_N_OPS] = {
    [MPL_OP_reduce_sum] = {dnnl_reduction_sum, 0},
    [MPL_OP_reduce_mean] = {dnnl_reduction_mean, 0},
    [MPL_OP_reduce_max] = {dnnl_reduction_max, 0},
    [MPL_OP_reduce_min] = {dnnl_reduction_min, 0},
    [MPL_OP_reduce_prod] = {dnnl_reduction_mul, 0},
    [MPL_OP_reduce_l1] = {dnnl_reduction_norm_lp_sum, 1},
    [MPL_OP_reduce_l2] = {dnnl_reduction_norm_lp_sum, 2},
    [MPL_OP_reduce_sum_square] = {dnnl_reduction_norm_lp_power_p_sum, 2},
};

static void reduce(recipe *self)
{
    dnnl_reduction_desc_t desc;
    const mpl_shape *shape = self->in[0];
    uint16_t kind = self->g->op_kind[self->op];
    uint32_t n_axes, n = 0, reduced = 0;
    const int64_t *axes = mpl_attr_ints(self->g, self->op, MPL_ATTR_axes, &n_axes);
    int64_t in[MPL_MAX_RANK + 1], out[MPL_MAX_RANK + 1];
    dnnl_memory_desc_t src, dst;

    if (n_axes == 0) /* all or none; the counts of elements tell which */
        reduced = mpl_count(self->out[0]) == 1 ? UINT32_MAX : 0;
    for (uint32_t i = 0; i < n_axes; i++)
        reduced |= 1u << (axes[i] < 0 ? axes[i] + shape->rank : axes[i]);
    for (uint32_t i = 0; i < shape->rank; i++) {
        bool gone = (reduced >> i & 1) != 0;

        if (shape->dim[i] == 1)
            continue;
        if (n > 0 && gone == (out[n - 1] == 1)) {
            in[n - 1] *= shape->dim[i];
            out[n - 1] = gone ? 1 : in[n - 1];
        } else {
            in[n] = shape->dim[i];
            out[n++] = gone ? 1 : shape->dim[i];
        }
    }
    if (n == 0)
        return;
    src = mpl_cpu_plain(n, in);
    dst = mpl_cpu_plain(n, out);
    if (dnnl_reduction_desc_init(&desc, reductions[kind].algorithm, &src, &dst, reductions[kind].p,
                                 0) != dnnl_success)
        return;
    mpl_cpu_choose_one_to_one(self, &desc, &src, &dst);
    self->drops_nan = kind == MPL_OP_reduce_max || kind == MPL_OP_reduce_min;
    self->drops_infinity = kind == MPL_OP_reduce_max;
}

/* ---- elements moved ---- */

/* Operand k, channels-last images, as pixels by channels. False: no constant pitch. */
static bool pixels(const recipe *self, uint32_t k, const mpl_shape *shape, dnnl_memory_desc_t *md)
{
    const int64_t *by = self->stride != NULL ? self->stride[k] : NULL;
    int64_t dim[3] = {shape->dim[0] * shape->dim[2] * shape->dim[3], shape->dim[1], 1};
    int64_t pitch = by == NULL          ? shape->dim[1]
                    : shape->dim[3] > 1 ? by[3]
                    : shape->dim[2] > 1 ? by[2]
                                        : by[0];

    *md = mpl_cpu_strided(3, dim, (const int64_t[]){pitch, 1, 1});
    return by == NULL || ((shape->dim[2] == 1 || by[2] == pitch * shape->dim[3]) &&
                          (shape->dim[0] == 1 || by[0] == pitch * shape->dim[2] * shape->dim[3]));
}

static void concat(recipe *self)
{
    uint32_t axis = axis_of(self, 0, self->out[0]->rank);
    int64_t dim[3] = {mpl_count_dims(self->out[0], 0, axis), self->out[0]->dim[axis],
                      mpl_count_dims(self->out[0], axis + 1, self->out[0]->rank)};
    dnnl_memory_desc_t dst;

    dst = mpl_cpu_plain(3, dim);
    if (self->last && !pixels(self, self->n_in, self->out[0], &dst))
        return;
    for (uint32_t i = 0; i < self->n_in; i++) {
        dim[1] = self->in[i]->dim[axis];
        self->mds[i] = mpl_cpu_plain(3, dim);
        if (self->last && !pixels(self, i, self->in[i], &self->mds[i]))
            return;
    }
    if (dnnl_concat_primitive_desc_create(&self->pd, &dst, (int)self->n_in, 1, self->mds,
                                          self->attr, self->engine) != dnnl_success) {
        self->pd = NULL;
        return;
    }
    for (uint32_t i = 0; i < self->n_in; i++)
        mpl_cpu_arg_add(self, DNNL_ARG_MULTIPLE_SRC + (int)i, &self->mds[i], MPL_FROM_IN, i);
    mpl_cpu_arg_add(self, DNNL_ARG_DST, &dst, MPL_FROM_OUT, 0);
}

static void move(recipe *self, const dnnl_memory_desc_t *src, const dnnl_memory_desc_t *dst)
{
    if (dnnl_reorder_primitive_desc_create(&self->pd, src, self->engine, dst, self->engine,
                                           self->attr) != dnnl_success) {
        self->pd = NULL;
        return;
    }
    mpl_cpu_arg_add(self, DNNL_ARG_FROM, src, MPL_FROM_IN, 0);
    mpl_cpu_arg_add(self, DNNL_ARG_TO, dst, MPL_FROM_OUT, 0);
}

/* The output's dims with their strides in the input; a reorder to row-major moves the elements. */
static void transpose(recipe *self)
{
    const mpl_shape *shape = self->in[0];
    uint32_t n;
    const int64_t *perm = mpl_attr_ints(self->g, self->op, MPL_ATTR_perm, &n);
    int64_t stride[MPL_MAX_RANK];
    dnnl_memory_desc_t src, dst = mpl_cpu_plain_shape(self->out[0]);

    if (shape->rank == 0)
        return;
    for (uint32_t i = 0; i < shape->rank; i++) {
        uint32_t from = n == shape->rank ? (uint32_t)perm[i] : shape->rank - 1 - i;

        stride[i] = mpl_count_dims(shape, from + 1, shape->rank);
    }
    src = mpl_cpu_strided(shape->rank, self->out[0]->dim, stride);
    move(self, &src, &dst);
}

static void reorder(recipe *self)
{
    dnnl_memory_desc_t src = mpl_cpu_image(self, self->in[0]), dst;

    mpl_cpu_lay(self, mpl_layout_named(mpl_attr_text(self->g, self->op, MPL_ATTR_mode, "")));
    dst = mpl_cpu_image(self, self->out[0]);
    if (self->stride != NULL && self->blocked)
        return;
    if (self->stride != NULL && self->stride[0] != NULL)
        src = mpl_cpu_strided(self->in[0]->rank, self->in[0]->dim, self->stride[0]);
    if (self->stride != NULL && self->stride[1] != NULL)
        dst = mpl_cpu_strided(self->out[0]->rank, self->out[0]->dim, self->stride[1]);
    move(self, &src, &dst);
}

/* ---- the table: of operators that are not in one of those above ---- */

static void (*const describe[MPL_N_OPS])(recipe *r) = {
    [MPL_OP_pow] = power,
    [MPL_OP_conv] = mpl_cpu_conv,
    [MPL_OP_conv_act] = mpl_cpu_conv,
    [MPL_OP_conv_sum] = mpl_cpu_conv,
    [MPL_OP_conv_transpose] = mpl_cpu_conv_transpose,
    [MPL_OP_max_pool] = mpl_cpu_pool,
    [MPL_OP_avg_pool] = mpl_cpu_pool,
    [MPL_OP_global_avg_pool] = mpl_cpu_global_pool,
    [MPL_OP_global_max_pool] = mpl_cpu_global_pool,
    [MPL_OP_matmul] = matmul,
    [MPL_OP_gemm] = gemm,
    [MPL_OP_gemm_act] = gemm,
    [MPL_OP_gemm_sum] = gemm,
    [MPL_OP_batch_norm] = batch_norm,
    [MPL_OP_lrn] = lrn,
    [MPL_OP_layer_norm] = layer_norm,
    [MPL_OP_softmax] = softmax,
    [MPL_OP_log_softmax] = softmax,
    [MPL_OP_concat] = concat,
    [MPL_OP_transpose] = transpose,
    [MPL_OP_reorder] = reorder,
};

mpl_cpu_describer *mpl_cpu_forward(mpl_op_kind kind)
{
    return functions[kind].algorithm != dnnl_alg_kind_undef    ? unary
           : of_two[kind].algorithm != dnnl_alg_kind_undef     ? arithmetic
           : reductions[kind].algorithm != dnnl_alg_kind_undef ? reduce
                                                               : describe[kind];
}
