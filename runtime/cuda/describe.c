/* describe.c -- operations as launches of our own kernels; dims, strides and parameters are
 * computed on the host. See device.h. An operation that is neither here nor in describe_move.c or
 * describe_train.c has no kernel and is refused by name. */
#include "graphs/ops/matrix/conv.h"
#include "runtime/cuda/describe_priv.h"

#include <math.h>

/* ---- element-wise ---- */

/* Merges neighbouring dims over which every operand's strides continue, and drops dims of 1. */
static void merge_dims(mpl_cuda_elementwise *elementwise, int n_in)
{
    int32_t n = 0;

    for (int32_t d = 0; d < elementwise->rank; d++) {
        bool goes_on = n > 0;

        if (elementwise->dim[d] == 1)
            continue;
        for (int k = 0; k < n_in && goes_on; k++)
            goes_on =
                elementwise->stride[k][n - 1] == elementwise->stride[k][d] * elementwise->dim[d];
        if (!goes_on)
            n++;
        elementwise->dim[n - 1] =
            goes_on ? elementwise->dim[n - 1] * elementwise->dim[d] : elementwise->dim[d];
        for (int k = 0; k < n_in; k++)
            elementwise->stride[k][n - 1] = elementwise->stride[k][d];
    }
    elementwise->rank = n;
}

static void parameters(const mpl_maker *maker, mpl_cuda_elementwise *elementwise)
{
    static const struct {
        mpl_op_kind kind;
        mpl_attr_key alpha_key;
        double alpha;
        mpl_attr_key beta_key;
        double beta;
    } known[] = {
        {MPL_OP_leaky_relu, MPL_ATTR_alpha, 0.01, MPL_ATTR_beta, 0},
        {MPL_OP_thresholded_relu, MPL_ATTR_alpha, 1, MPL_ATTR_beta, 0},
        {MPL_OP_elu, MPL_ATTR_alpha, 1, MPL_ATTR_beta, 0},
        {MPL_OP_selu, MPL_ATTR_alpha, 1.67326319217681884765625, MPL_ATTR_gamma,
         1.05070102214813232421875},
        {MPL_OP_celu, MPL_ATTR_alpha, 1, MPL_ATTR_beta, 0},
        {MPL_OP_swish, MPL_ATTR_alpha, 1, MPL_ATTR_beta, 0},
        {MPL_OP_hard_sigmoid, MPL_ATTR_alpha, 0.2, MPL_ATTR_beta, 0.5},
        {MPL_OP_shrink, MPL_ATTR_bias, 0, MPL_ATTR_lambd, 0.5},
        {MPL_OP_batch_norm, MPL_ATTR_epsilon, 1e-5, MPL_ATTR_beta, 0},
        {MPL_OP_div_sqrt, MPL_ATTR_epsilon, 0, MPL_ATTR_beta, 0},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].kind == maker->kind) {
            elementwise->alpha = attr_float(maker, known[i].alpha_key, known[i].alpha);
            elementwise->beta = attr_float(maker, known[i].beta_key, known[i].beta);
        }
    if (maker->kind == MPL_OP_is_inf) {
        elementwise->flag = attr_int(maker, MPL_ATTR_detect_negative, 1);
        elementwise->other_flag = attr_int(maker, MPL_ATTR_detect_positive, 1);
    } else if (maker->kind == MPL_OP_mod) {
        elementwise->flag = attr_int(maker, MPL_ATTR_fmod, 0);
    } else if (maker->kind == MPL_OP_gelu) {
        elementwise->flag = attr_is(maker, MPL_ATTR_approximate, "none", "tanh");
    } else if (maker->kind == MPL_OP_bit_shift) {
        elementwise->flag = attr_is(maker, MPL_ATTR_direction, "", "LEFT");
    } else if (maker->kind == MPL_OP_mean) {
        elementwise->flag = maker->n_in;
    }
}

/* A launch that folds the result so far and inputs [from, from + n), if one is not enough. */
static void fold_some(mpl_maker *maker, mpl_cuda_part *part, uint32_t from, uint32_t n,
                      mpl_type sum)
{
    const mpl_shape *to = out_shape(maker, 0);
    mpl_cuda_elementwise *elementwise = &part->kernel.as.elementwise;
    uint32_t first = from > 0;

    part->kernel.n_in = (int32_t)(n + first);
    elementwise->rank = (int32_t)to->rank;
    memcpy(elementwise->dim, to->dim, sizeof elementwise->dim);
    for (uint32_t i = 0; i < MPL_CUDA_MAX_IN; i++)
        part->in[i] = MPL_NONE;
    if (first > 0) {
        part->in[0] = MPL_CUDA_WORKSPACE;
        part->kernel.type[0] = (int32_t)sum;
        mpl_strides(to, elementwise->stride[0]);
    }
    for (uint32_t i = 0; i < n; i++) {
        part->in[first + i] = from + i;
        part->kernel.type[first + i] = (int32_t)type_of(maker, in_of(maker, from + i));
        mpl_broadcast_strides(in_shape(maker, from + i), to, elementwise->stride[first + i]);
    }
    merge_dims(elementwise, part->kernel.n_in);
    parameters(maker, elementwise);
}

/* sum, mean, min, max of any number of operands, in several launches. Between them the result lies
 * in the workspace, in the type of the computation. Only the last launch writes the output, because
 * it may lie over an input. */
static mpl_status fold_many(mpl_maker *maker)
{
    int64_t count_to = mpl_count(out_shape(maker, 0));
    mpl_type type = type_of(maker, out_of(maker, 0));
    mpl_type sum = type > MPL_TYPE_bf16   ? MPL_TYPE_i64
                   : type == MPL_TYPE_f64 ? MPL_TYPE_f64
                                          : MPL_TYPE_f32;
    mpl_cuda_part *part;

    for (uint32_t from = 0, n; from < maker->n_in; from += n) {
        n = MPL_CUDA_MAX_IN - (from > 0);
        n = maker->n_in - from < n ? maker->n_in - from : n;
        MPL_PASS(mpl_maker_add(maker, MPL_CUDA_ELEMENTWISE, count_to, &part));
        fold_some(maker, part, from, n, sum);
        if (!mpl_mul_bytes((uint64_t)count_to, mpl_type_bytes(sum), &part->workspace_bytes))
            return MPL_ERROR(maker->ctx, MPL_EMEM, "out of memory: a sum of %" PRId64 " elements",
                             count_to);
        if (from + n < maker->n_in) {
            part->out = MPL_CUDA_WORKSPACE;
            part->kernel.out_type = (int32_t)sum;
            part->kernel.kind = maker->kind == MPL_OP_mean ? MPL_OP_sum : (int32_t)maker->kind;
        }
    }
    return MPL_OK;
}

/* Whether the element-wise kernels implement an operator on operands of a type. */
static bool has_case(mpl_op_kind kind, bool of_whole_numbers)
{
    static const bool known[MPL_N_OPS][2] = {
        [MPL_OP_clip] = {true, true},       [MPL_OP_where] = {true, true},
        [MPL_OP_fma] = {true, true},        [MPL_OP_clip_grad] = {true, false},
        [MPL_OP_batch_norm] = {true, true}, [MPL_OP_div_sqrt] = {true, false},
    };
    static const struct {
        mpl_op_kind kind;
        bool whole;
    } listed[] = {
#define REAL_ONE(name, value) {MPL_OP_##name, false},
#define REAL_TWO(name, value) {MPL_OP_##name, false},
#define INT_ONE(name, value)  {MPL_OP_##name, true},
#define INT_TWO(name, value)  {MPL_OP_##name, true},
#include "runtime/cuda/kernels_elementwise.def"
    };

    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++)
        if (listed[i].kind == kind && listed[i].whole == of_whole_numbers)
            return true;
    return known[kind][of_whole_numbers];
}

/* The type that selects the kernel: that of the first operand that is no condition. */
static mpl_type deciding_type(const mpl_maker *maker)
{
    return type_of(maker, in_of(maker, maker->kind == MPL_OP_where ? 1 : 0));
}

static mpl_status elementwise(mpl_maker *maker)
{
    const mpl_shape *to = out_shape(maker, 0);
    mpl_cuda_part *part;
    mpl_cuda_elementwise *e;

    if (!has_case(maker->kind, deciding_type(maker) > MPL_TYPE_bf16))
        return mpl_maker_refuse(maker);
    if (maker->n_in > MPL_CUDA_MAX_IN)
        return fold_many(maker);
    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_ELEMENTWISE, mpl_count(to), &part));
    if (maker->kind == MPL_OP_dropout || maker->kind == MPL_OP_cast) /* one operand */
        part->kernel.n_in = 1;
    e = &part->kernel.as.elementwise;
    e->rank = (int32_t)to->rank;
    memcpy(e->dim, to->dim, sizeof e->dim);
    for (uint32_t i = 0; i < maker->n_in; i++) {
        mpl_shape in;

        if (in_of(maker, i) == MPL_NONE)
            continue;
        in = *in_shape(maker, i);
        if (i > (maker->kind == MPL_OP_clip        ? 0
                 : maker->kind == MPL_OP_clip_grad ? 1
                                                   : MPL_CUDA_MAX_IN))
            in.rank = 0;                                 /* one element, whatever its dims */
        if (maker->kind == MPL_OP_batch_norm && i > 0) { /* a vector along dim 1 */
            memset(e->stride[i], 0, sizeof e->stride[i]);
            e->stride[i][to->rank > 1 ? 1 : 0] = to->rank > 1;
        } else
            mpl_broadcast_strides(&in, to, e->stride[i]);
    }
    if (maker->kind == MPL_OP_clip || maker->kind == MPL_OP_clip_grad) /* missing bounds are NULL */
        part->kernel.n_in = maker->kind == MPL_OP_clip ? 3 : 4;
    merge_dims(e, part->kernel.n_in);
    parameters(maker, e);
    return MPL_OK;
}

/* ---- reductions, lanes ---- */

/* The reduced axes as a bit set. */
static uint32_t reduced_axes(const mpl_maker *maker, uint32_t rank)
{
    uint32_t n, set = 0;
    const int64_t *axes = mpl_attr_ints(maker->g, maker->op, MPL_ATTR_axes, &n);

    if (maker->kind == MPL_OP_global_avg_pool || maker->kind == MPL_OP_global_max_pool)
        return ((1u << rank) - 1) & ~3u;
    if (axes == NULL)
        return (1u << rank) - 1;
    for (uint32_t i = 0; i < n; i++)
        set |= 1u << axis_of(axes[i], rank);
    return set;
}

/* Appends a dim of `size` elements `step` apart; merges it into the last one if contiguous. */
static void put_dim(int32_t *n, int64_t *dim, int64_t *stride, int64_t size, int64_t step)
{
    if (size == 1)
        return;
    if (*n > 0 && stride[*n - 1] == size * step) {
        dim[*n - 1] *= size;
        stride[*n - 1] = step;
    } else {
        dim[*n] = size;
        stride[(*n)++] = step;
    }
}

/* Splits reduced axes (those of the set), with their count of elements, from kept axes. */
static void split_dims(mpl_cuda_reduce *reduce, const mpl_shape *in, uint32_t set)
{
    int64_t stride[MPL_MAX_RANK];

    mpl_strides(in, stride);
    reduce->n = 1;
    reduce->factor = 1;
    for (uint32_t i = 0; i < in->rank; i++)
        if ((set >> i & 1) != 0) {
            reduce->n = (int64_t)((uint64_t)reduce->n * (uint64_t)in->dim[i]);
            put_dim(&reduce->n_reduced, reduce->reduced_dim, reduce->reduced_stride, in->dim[i],
                    stride[i]);
        } else {
            put_dim(&reduce->n_kept, reduce->kept_dim, reduce->kept_stride, in->dim[i], stride[i]);
        }
}

/* Integers are reduced on the host, because the kernel uses floating arithmetic. */
static mpl_status reduce(mpl_maker *maker)
{
    const mpl_shape *in = in_shape(maker, 0);
    mpl_cuda_part *part;

    if (type_of(maker, in_of(maker, 0)) > MPL_TYPE_bf16)
        return mpl_maker_refuse(maker);
    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_REDUCE, mpl_count(out_shape(maker, 0)), &part));
    split_dims(&part->kernel.as.reduce, in, reduced_axes(maker, in->rank));
    return MPL_OK;
}

static mpl_status softmax(mpl_maker *maker)
{
    const mpl_shape *in = in_shape(maker, 0);
    uint32_t axis = axis_of(attr_int(maker, MPL_ATTR_axis, -1), in->rank);
    bool gradient = maker->kind == MPL_OP_softmax_grad;
    int64_t n = mpl_count(in) > 0 ? mpl_count(in) / in->dim[axis] : 0;
    mpl_cuda_part *part;

    MPL_PASS(mpl_maker_add(maker, gradient ? MPL_CUDA_SOFTMAX_GRAD : MPL_CUDA_SOFTMAX, n, &part));
    part->kernel.as.lanes =
        (mpl_cuda_lanes){.n = in->dim[axis], .inner = mpl_count_dims(in, axis + 1, in->rank)};
    return MPL_OK;
}

/* ---- normalisation ---- */

static mpl_status norm(mpl_maker *maker)
{
    const mpl_shape *in = in_shape(maker, 0);
    bool by_row = maker->kind == MPL_OP_layer_norm || maker->kind == MPL_OP_rms_norm;
    int64_t groups =
        maker->kind == MPL_OP_instance_norm ? in->dim[1] : attr_int(maker, MPL_ATTR_num_groups, 1);
    uint32_t axis = by_row ? axis_of(attr_int(maker, MPL_ATTR_axis, -1), in->rank) : 0;
    mpl_cuda_part *part;
    mpl_cuda_norm *d;

    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_NORM, 0, &part));
    d = &part->kernel.as.norm;
    if (by_row)
        d->n = mpl_count_dims(in, axis, in->rank);
    else if (mpl_count(in) > 0)
        d->n = in->dim[1] / groups * mpl_count_dims(in, 2, in->rank);
    part->kernel.n = by_row ? mpl_count_dims(in, 0, axis) : d->n > 0 ? in->dim[0] * groups : 0;
    part->all_outputs = true;
    d->about_mean = maker->kind != MPL_OP_rms_norm;
    d->rank = (int32_t)in->rank;
    memcpy(d->dim, in->dim, sizeof d->dim);
    d->epsilon = attr_float(maker, MPL_ATTR_epsilon, 1e-5);
    for (uint32_t i = 1; i <= 2; i++)
        if (!by_row)
            d->stride[i - 1][1] = 1;
        else if (in_of(maker, i) != MPL_NONE)
            mpl_broadcast_strides(in_shape(maker, i), in, d->stride[i - 1]);
    return MPL_OK;
}

/* Local response normalisation, or its gradient. */
static mpl_status lrn(mpl_maker *maker)
{
    const mpl_shape *in = in_shape(maker, 0);
    int64_t size = attr_int(maker, MPL_ATTR_size, 1);
    mpl_cuda_part *part;

    MPL_PASS(mpl_maker_add(maker, maker->kind == MPL_OP_lrn ? MPL_CUDA_LRN : MPL_CUDA_LRN_GRAD,
                           mpl_count(in), &part));
    part->kernel.as.lrn = (mpl_cuda_lrn){
        .channels = in->dim[1],
        .inner = mpl_count_dims(in, 2, in->rank),
        .below = (size - 1) / 2,
        .above = size / 2,
        .factor = attr_float(maker, MPL_ATTR_alpha, 1e-4) / (double)size,
        .beta = attr_float(maker, MPL_ATTR_beta, 0.75),
        .bias = attr_float(maker, MPL_ATTR_bias, 1),
    };
    return MPL_OK;
}

/* ---- windows, products ---- */

/* Moves the addend of gemm_sum, its first input, to the end of the operands. */
static void sum_last(const mpl_maker *maker, mpl_cuda_part *part)
{
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t from = (i + 1) % 4;

        part->in[i] = in_of(maker, from) != MPL_NONE ? from : MPL_NONE;
        part->kernel.type[i] =
            in_of(maker, from) != MPL_NONE ? (int32_t)type_of(maker, in_of(maker, from)) : 0;
    }
    part->kernel.n_in = 4;
}

static mpl_status pool(mpl_maker *maker)
{
    mpl_cuda_window *window;

    MPL_PASS(
        mpl_maker_window(maker, MPL_CUDA_POOL, in_shape(maker, 0), out_shape(maker, 0), &window));
    window->column_major = attr_int(maker, MPL_ATTR_storage_order, 0) != 0;
    maker->part[maker->n - 1].all_outputs = true;
    return MPL_OK;
}

static mpl_status gemm(mpl_maker *maker)
{
    const uint32_t first = mpl_fused_first(maker->kind);
    bool trans_a = attr_int(maker, MPL_ATTR_trans_a, 0) != 0,
         trans_b = attr_int(maker, MPL_ATTR_trans_b, 0) != 0;
    const mpl_shape left = mpl_as_matrix(in_shape(maker, first));
    const int64_t *a = left.dim, *b = in_shape(maker, first + 1)->dim;
    uint32_t rank = out_shape(maker, 0)->rank;
    mpl_activation activation = mpl_activation_of(maker->g, maker->op);
    int64_t stride[MPL_MAX_RANK] = {0};
    mpl_cuda_part *part;
    mpl_cuda_product *product;

    if (type_of(maker, out_of(maker, 0)) > MPL_TYPE_bf16)
        return mpl_maker_refuse(maker);
    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_PRODUCT, mpl_count(out_shape(maker, 0)), &part));
    product = &part->kernel.as.product;
    product->rows = a[trans_a], product->terms = a[!trans_a], product->columns = b[!trans_b];
    product->a_row = trans_a ? 1 : a[1], product->a_column = trans_a ? a[1] : 1;
    product->b_row = trans_b ? 1 : b[1], product->b_column = trans_b ? b[1] : 1;
    product->alpha = attr_float(maker, MPL_ATTR_alpha, 1);
    product->beta = attr_float(maker, MPL_ATTR_beta, 1);
    if (in_of(maker, first + 2) != MPL_NONE)
        mpl_broadcast_strides(in_shape(maker, first + 2), out_shape(maker, 0), stride);
    product->c_row = rank == 2 ? stride[0] : 0, product->c_column = stride[rank - 1];
    if (activation != MPL_ACT_NONE)
        product->least = 0;
    if (activation == MPL_ACT_RELU6)
        product->most = 6;
    if (first > 0)
        sum_last(maker, part);
    return MPL_OK;
}

static mpl_status matmul(mpl_maker *maker)
{
    mpl_shape a = *in_shape(maker, 0), b = *in_shape(maker, 1), stack_a, stack_b,
              stack = *out_shape(maker, 0);
    int64_t matrix_a, matrix_b;
    bool trans_a, trans_b;
    mpl_cuda_part *part;
    mpl_cuda_product *product;

    if (type_of(maker, out_of(maker, 0)) > MPL_TYPE_bf16)
        return mpl_maker_refuse(maker);
    MPL_PASS(mpl_maker_add(maker, MPL_CUDA_PRODUCT, mpl_count(&stack), &part));
    product = &part->kernel.as.product;
    stack.rank -= (a.rank > 1) + (b.rank > 1);
    if (a.rank == 1)
        a = (mpl_shape){2, {1, a.dim[0]}};
    if (b.rank == 1)
        b = (mpl_shape){2, {b.dim[0], 1}};
    trans_a = a.rank > 1 && attr_int(maker, MPL_ATTR_trans_a, 0) != 0;
    trans_b = b.rank > 1 && attr_int(maker, MPL_ATTR_trans_b, 0) != 0;
    product->rows = a.dim[a.rank - (trans_a ? 1 : 2)];
    product->columns = b.dim[b.rank - (trans_b ? 2 : 1)];
    product->terms = a.dim[a.rank - (trans_a ? 2 : 1)];
    product->a_row = trans_a ? 1 : product->terms, product->a_column = trans_a ? product->rows : 1;
    product->b_row = trans_b ? 1 : product->columns,
    product->b_column = trans_b ? product->terms : 1;
    product->alpha = 1;
    stack_a = a, stack_a.rank -= 2;
    stack_b = b, stack_b.rank -= 2;
    matrix_a = product->rows * product->terms, matrix_b = product->terms * product->columns;
    product->rank = (int32_t)stack.rank;
    memcpy(product->dim, stack.dim, sizeof product->dim);
    mpl_broadcast_strides(&stack_a, &stack, product->a_stack);
    mpl_broadcast_strides(&stack_b, &stack, product->b_stack);
    for (uint32_t i = 0; i < stack.rank; i++)
        product->a_stack[i] *= matrix_a, product->b_stack[i] *= matrix_b;
    return MPL_OK;
}

/* ---- the table ---- */

static mpl_describe *describe_of(mpl_op_kind kind)
{
    static mpl_describe *const known[MPL_N_OPS] = {
        [MPL_OP_batch_norm] = elementwise,
        [MPL_OP_reduce_sum] = reduce,
        [MPL_OP_reduce_mean] = reduce,
        [MPL_OP_reduce_max] = reduce,
        [MPL_OP_reduce_min] = reduce,
        [MPL_OP_reduce_prod] = reduce,
        [MPL_OP_reduce_l1] = reduce,
        [MPL_OP_reduce_l2] = reduce,
        [MPL_OP_reduce_sum_square] = reduce,
        [MPL_OP_global_avg_pool] = reduce,
        [MPL_OP_global_max_pool] = reduce,
        [MPL_OP_softmax] = softmax,
        [MPL_OP_log_softmax] = softmax,
        [MPL_OP_hardmax] = softmax,
        [MPL_OP_softmax_grad] = softmax,
        [MPL_OP_layer_norm] = norm,
        [MPL_OP_rms_norm] = norm,
        [MPL_OP_instance_norm] = norm,
        [MPL_OP_group_norm] = norm,
        [MPL_OP_lrn] = lrn,
        [MPL_OP_lrn_grad] = lrn,
        [MPL_OP_max_pool] = pool,
        [MPL_OP_avg_pool] = pool,
        [MPL_OP_matmul] = matmul,
        [MPL_OP_gemm] = gemm,
        [MPL_OP_gemm_act] = gemm,
        [MPL_OP_gemm_sum] = gemm,
    };
    mpl_describe *other = known[kind];

    if (other == NULL && (mpl_op_table[kind].traits & MPL_ELEMENTWISE) != 0)
        other = elementwise;
    if (other == NULL)
        other = mpl_describe_move(kind);
    return other != NULL ? other : mpl_describe_train(kind);
}

/* Whether an operand has a type of which the kernels know nothing. */
static bool has_newer_type(const mpl_maker *maker)
{
    bool newer = false;

    for (uint32_t i = 0; i < maker->n_in + maker->n_out; i++) {
        mpl_value v = i < maker->n_in ? in_of(maker, i) : out_of(maker, i - maker->n_in);

        newer = newer || (v != MPL_NONE && type_of(maker, v) > MPL_TYPE_bool);
    }
    return newer;
}

mpl_status mpl_cuda_describe(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_cuda_part **part,
                             uint32_t *n)
{
    mpl_status st = MPL_OK;
    mpl_maker m = {
        .ctx = ctx,
        .g = g,
        .op = op,
        .kind = (mpl_op_kind)g->op_kind[op],
        .n_in = g->op_in_begin[op + 1] - g->op_in_begin[op],
        .n_out = g->op_out_begin[op + 1] - g->op_out_begin[op],
    };
    mpl_describe *describe = describe_of(m.kind);

    *part = NULL, *n = 0;
    if (describe == NULL || has_newer_type(&m))
        goto out;
    MPL_TRY(describe(&m));
    if (m.refused)
        goto out;
    *part = m.part, m.part = NULL;
    *n = m.n;
out:
    mpl_free(ctx, m.part);
    return st;
}
