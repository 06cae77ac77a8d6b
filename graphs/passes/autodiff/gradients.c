/* gradients.c -- the gradient rules of operators. See gradients_priv.h.
 *
 * A rule keeps as little live as it can. Where operand or result would do, it reads the result,
 * which is often live anyway. */
#include "graphs/ir/counts.h"
#include "graphs/ops/ops_priv.h"
#include "graphs/passes/autodiff/gradients_priv.h"

static mpl_op_kind kind_of(const mpl_grad *grad)
{
    return (mpl_op_kind)grad->g->op_kind[grad->op];
}

static mpl_attr sizes_of(const mpl_grad *grad, uint32_t i)
{
    const mpl_shape *shape = mpl_grad_in_shape(grad, i);

    return MPL_INTS(sizes, shape->rank, shape->dim);
}

static mpl_type value_type(const mpl_grad *grad, uint32_t i)
{
    return (mpl_type)grad->g->value_type[grad->g->op_in[grad->g->op_in_begin[grad->op] + i]];
}

static void make_two(mpl_grad *grad, uint32_t i, mpl_op_kind kind, mpl_value a, mpl_value b)
{
    mpl_grad_make(grad, i, kind, 2, (mpl_value[]){a, b}, 0, NULL);
}

/* ---- element-wise ---- */

void mpl_grad_of_from_result(mpl_grad *grad)
{
    mpl_op_kind kind = kind_of(grad) == MPL_OP_relu      ? MPL_OP_relu_grad
                       : kind_of(grad) == MPL_OP_sigmoid ? MPL_OP_sigmoid_grad
                                                         : MPL_OP_tanh_grad;

    make_two(grad, 0, kind, mpl_grad_dy(grad, 0), mpl_grad_out(grad, 0));
}

void mpl_grad_of_clip(mpl_grad *grad)
{
    mpl_value in[4] = {mpl_grad_dy(grad, 0), mpl_grad_out(grad, 0)};
    uint32_t n = grad->g->op_in_begin[grad->op + 1] - grad->g->op_in_begin[grad->op];

    for (uint32_t i = 1; i < n; i++)
        in[i + 1] = mpl_grad_in(grad, i);
    mpl_grad_make(grad, 0, MPL_OP_clip_grad, n + 1, in, 0, NULL);
}

/* add, sum, identity, expand. */
void mpl_grad_of_sum(mpl_grad *grad)
{
    uint32_t n = grad->g->op_in_begin[grad->op + 1] - grad->g->op_in_begin[grad->op];

    for (uint32_t i = 0; i < n; i++)
        if (mpl_grad_wants(grad, i))
            mpl_grad_give_summed(grad, i, mpl_grad_dy(grad, 0));
}

void mpl_grad_of_mean(mpl_grad *grad)
{
    uint32_t n = grad->g->op_in_begin[grad->op + 1] - grad->g->op_in_begin[grad->op];
    mpl_value part =
        mpl_grad_two(grad, MPL_OP_mul, mpl_grad_dy(grad, 0), mpl_grad_number(grad, 1 / (double)n));

    for (uint32_t i = 0; i < n; i++)
        if (mpl_grad_wants(grad, i))
            mpl_grad_give_summed(grad, i, part);
}

void mpl_grad_of_sub(mpl_grad *grad)
{
    mpl_value dy = mpl_grad_dy(grad, 0);

    if (mpl_grad_wants(grad, 0))
        mpl_grad_give_summed(grad, 0, dy);
    if (mpl_grad_wants(grad, 1))
        mpl_grad_give_summed(grad, 1, mpl_grad_helper(grad, MPL_OP_neg, 1, &dy, 0, NULL));
}

void mpl_grad_of_mul(mpl_grad *grad)
{
    for (uint32_t i = 0; i < 2; i++)
        if (mpl_grad_wants(grad, i))
            mpl_grad_give_summed(
                grad, i,
                mpl_grad_two(grad, MPL_OP_mul, mpl_grad_dy(grad, 0), mpl_grad_in(grad, 1 - i)));
}

/* a / b: dy / b, and - y dy / b. */
void mpl_grad_of_div(mpl_grad *grad)
{
    mpl_value part = mpl_grad_two(grad, MPL_OP_div, mpl_grad_dy(grad, 0), mpl_grad_in(grad, 1));

    if (mpl_grad_wants(grad, 0))
        mpl_grad_give_summed(grad, 0, part);
    if (mpl_grad_wants(grad, 1)) {
        part = mpl_grad_two(grad, MPL_OP_mul, part, mpl_grad_out(grad, 0));
        mpl_grad_give_summed(grad, 1, mpl_grad_helper(grad, MPL_OP_neg, 1, &part, 0, NULL));
    }
}

/* min, max: each operand equal to the result gets the whole gradient. */
void mpl_grad_of_extreme(mpl_grad *grad)
{
    uint32_t n = grad->g->op_in_begin[grad->op + 1] - grad->g->op_in_begin[grad->op];

    for (uint32_t i = 0; i < n; i++)
        if (mpl_grad_wants(grad, i)) {
            mpl_value chosen =
                mpl_grad_two(grad, MPL_OP_equal, mpl_grad_in(grad, i), mpl_grad_out(grad, 0));
            mpl_value in[] = {chosen, mpl_grad_dy(grad, 0), mpl_grad_number(grad, 0)};

            mpl_grad_give_summed(grad, i, mpl_grad_helper(grad, MPL_OP_where, 3, in, 0, NULL));
        }
}

void mpl_grad_of_where(mpl_grad *grad)
{
    mpl_value dy = mpl_grad_dy(grad, 0), zero = mpl_grad_zero(grad, value_type(grad, 1)),
              test = mpl_grad_in(grad, 0);

    for (uint32_t i = 1; i < 3; i++)
        if (mpl_grad_wants(grad, i)) {
            mpl_value in[] = {test, i == 1 ? dy : zero, i == 1 ? zero : dy};

            mpl_grad_give_summed(grad, i, mpl_grad_helper(grad, MPL_OP_where, 3, in, 0, NULL));
        }
}

/* ---- products ---- */

/* Gradients of inputs 1, 2 and 0 by one operation. */
static void joint(mpl_grad *grad, mpl_op_kind kind, bool has_third)
{
    mpl_attr attr[MPL_GRAD_ATTRS];
    uint32_t n_attr = mpl_grad_attrs(grad, attr);
    uint32_t target[3] = {1, has_third && mpl_grad_wants(grad, 2) ? 2 : MPL_NONE,
                          mpl_grad_wants(grad, 0) ? 0 : MPL_NONE};
    uint32_t n = target[2] != MPL_NONE ? 3 : target[1] != MPL_NONE ? 2 : 1;

    mpl_grad_make_all(
        grad, kind, 3,
        (mpl_value[]){mpl_grad_dy(grad, 0), mpl_grad_in(grad, 0), mpl_grad_in(grad, 1)}, n_attr,
        attr, n, target, 0);
}

void mpl_grad_of_conv(mpl_grad *grad)
{
    const mpl_shape *shape = mpl_grad_out_shape(grad, 0);
    static const int64_t axes[] = {0, 2, 3, 4};
    mpl_value dy = mpl_grad_dy(grad, 0);
    mpl_attr attr[MPL_GRAD_ATTRS];
    uint32_t n = mpl_grad_attrs(grad, attr);
    bool biased = grad->g->op_in_begin[grad->op + 1] - grad->g->op_in_begin[grad->op] > 2;

    if (!grad->options->apart && mpl_grad_wants(grad, 1)) {
        joint(grad, MPL_OP_conv_grad, biased);
        return;
    }
    if (mpl_grad_wants(grad, 1)) {
        attr[n] = sizes_of(grad, 1);
        mpl_grad_make(grad, 1, MPL_OP_conv_grad_weight, 2, (mpl_value[]){dy, mpl_grad_in(grad, 0)},
                      n + 1, attr);
    }
    if (biased && mpl_grad_wants(grad, 2))
        mpl_grad_make(
            grad, 2, MPL_OP_reduce_sum, 1, &dy, 2,
            (const mpl_attr[]){MPL_INTS(axes, shape->rank - 1, axes), MPL_INT(keepdims, 0)});
    if (mpl_grad_wants(grad, 0)) {
        attr[n] = sizes_of(grad, 0);
        mpl_grad_make(grad, 0, MPL_OP_conv_grad_input, 2, (mpl_value[]){dy, mpl_grad_in(grad, 1)},
                      n + 1, attr);
    }
}

/* The input's gradient is a convolution of dy. The weights' gradient is that of this
 * convolution. */
void mpl_grad_of_conv_transpose(mpl_grad *grad)
{
    static const int64_t axes[] = {0, 2, 3, 4};
    mpl_value dy = mpl_grad_dy(grad, 0);
    mpl_attr attr[MPL_GRAD_ATTRS];
    uint32_t n = 0, n_given = mpl_grad_attrs(grad, attr);

    for (uint32_t i = 0; i < n_given; i++)
        if (attr[i].key == MPL_ATTR_output_shape || attr[i].key == MPL_ATTR_mode)
            mpl_grad_fail(grad, "dims that are given in place of pads");
        else if (attr[i].key != MPL_ATTR_output_padding)
            attr[n++] = attr[i];
    if (mpl_grad_wants(grad, 1)) {
        attr[n] = sizes_of(grad, 1);
        mpl_grad_make(grad, 1, MPL_OP_conv_grad_weight, 2, (mpl_value[]){mpl_grad_in(grad, 0), dy},
                      n + 1, attr);
    }
    if (grad->g->op_in_begin[grad->op + 1] - grad->g->op_in_begin[grad->op] > 2 &&
        mpl_grad_wants(grad, 2))
        mpl_grad_make(
            grad, 2, MPL_OP_reduce_sum, 1, &dy, 2,
            (const mpl_attr[]){MPL_INTS(axes, mpl_grad_out_shape(grad, 0)->rank - 1, axes),
                               MPL_INT(keepdims, 0)});
    if (mpl_grad_wants(grad, 0))
        mpl_grad_make(grad, 0, MPL_OP_conv, 2, (mpl_value[]){dy, mpl_grad_in(grad, 1)}, n, attr);
}

/* Gradient of input i of y = op(a) op(b): a product of dy and the other input. */
static void product_part(mpl_grad *grad, uint32_t i, bool trans_a, bool trans_b,
                         const mpl_attr *alpha, uint32_t n_alpha)
{
    mpl_value dy = mpl_grad_dy(grad, 0), other = mpl_grad_in(grad, 1 - i);
    bool turned = i == 0 ? trans_a : trans_b; /* then dy is on the other side */
    bool dy_first = (i == 0) != turned;
    mpl_value in[2] = {dy_first ? dy : other, dy_first ? other : dy};
    bool turn_other = i == 0 ? trans_b != !turned : trans_a != !turned;
    mpl_attr attr[3] = {MPL_INT(trans_a, dy_first ? turned : turn_other),
                        MPL_INT(trans_b, dy_first ? turn_other : turned)};

    if (n_alpha > 0)
        attr[2] = *alpha;
    mpl_grad_make(grad, i, MPL_OP_gemm, 2, in, 2 + n_alpha, attr);
}

void mpl_grad_of_gemm(mpl_grad *grad)
{
    bool trans_a = mpl_attr_int(grad->g, grad->op, MPL_ATTR_trans_a, 0) != 0;
    bool trans_b = mpl_attr_int(grad->g, grad->op, MPL_ATTR_trans_b, 0) != 0;
    double beta = mpl_attr_float(grad->g, grad->op, MPL_ATTR_beta, 1);
    const mpl_shape *shape = mpl_grad_out_shape(grad, 0);
    bool added = grad->g->op_in_begin[grad->op + 1] - grad->g->op_in_begin[grad->op] > 2 &&
                 mpl_grad_wants(grad, 2);
    mpl_attr alpha;
    uint32_t n_alpha = mpl_attr_get(grad->g, grad->op, MPL_ATTR_alpha, &alpha);
    mpl_value dy = mpl_grad_dy(grad, 0);

    if (!grad->options->apart && mpl_grad_wants(grad, 1) &&
        (!added || (mpl_grad_in_shape(grad, 2)->rank == 1 &&
                    mpl_grad_in_shape(grad, 2)->dim[0] == shape->dim[1]))) {
        joint(grad, MPL_OP_gemm_grad, added);
        return;
    }
    for (uint32_t i = 0; i < 2; i++)
        if (mpl_grad_wants(grad, i))
            product_part(grad, i, trans_a, trans_b, &alpha, n_alpha);
    if (added)
        mpl_grad_give_summed(
            grad, 2,
            beta == 1 ? dy : mpl_grad_two(grad, MPL_OP_mul, dy, mpl_grad_number(grad, beta)));
}

/* Transposes the last two axes. */
static mpl_value turned(mpl_grad *grad, mpl_value v)
{
    int64_t perm[MPL_MAX_RANK];
    uint32_t rank = v != MPL_NONE ? grad->to->value_shape[v].rank : 2;

    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i + 2 < rank ? i : 2 * rank - 3 - i;
    return mpl_grad_helper(grad, MPL_OP_transpose, 1, &v, 1, &MPL_INTS(perm, rank, perm));
}

/* A product with a vector is one with a matrix of one row (a) or column (b); dy as dims. */
static mpl_value as_matrix(mpl_grad *grad, mpl_value v, bool row, bool column)
{
    mpl_shape s = v != MPL_NONE ? grad->to->value_shape[v] : (mpl_shape){0, {0}};

    if (row) {
        s.dim[s.rank] = s.rank > 0 ? s.dim[s.rank - 1] : 1;
        s.dim[s.rank > 0 ? s.rank - 1 : 0] = 1;
        s.rank++;
    }
    if (column)
        s.dim[s.rank++] = 1;
    return mpl_grad_with_dims(grad, v, &s);
}

static void matmul_part(mpl_grad *grad, uint32_t i, bool row, bool column)
{
    mpl_value dy = as_matrix(grad, mpl_grad_dy(grad, 0), row, column), part;
    mpl_value other = as_matrix(grad, mpl_grad_in(grad, 1 - i), i == 1 && row, i == 0 && column);

    part = i == 0 ? mpl_grad_two(grad, MPL_OP_matmul, dy, turned(grad, other))
                  : mpl_grad_two(grad, MPL_OP_matmul, turned(grad, other), dy);
    if (i == 1 && column && part != MPL_NONE) {
        mpl_shape s = grad->to->value_shape[part];

        s.rank--; /* its one column */
        part = mpl_grad_with_dims(grad, part, &s);
    }
    mpl_grad_give_summed(grad, i, part);
}

/* The rule of product_part for stacks of matrices, one operand transposed. */
static void turned_part(mpl_grad *grad, uint32_t i, bool trans_a, bool trans_b)
{
    mpl_value dy = mpl_grad_dy(grad, 0), other = mpl_grad_in(grad, 1 - i);
    bool turned = i == 0 ? trans_a : trans_b, dy_first = (i == 0) != turned;
    bool turn_other = i == 0 ? trans_b != !turned : trans_a != !turned;
    mpl_value in[2] = {dy_first ? dy : other, dy_first ? other : dy};
    mpl_attr attr[2] = {MPL_INT(trans_a, dy_first ? turned : turn_other),
                        MPL_INT(trans_b, dy_first ? turn_other : turned)};

    mpl_grad_give_summed(grad, i, mpl_grad_helper(grad, MPL_OP_matmul, 2, in, 2, attr));
}

void mpl_grad_of_matmul(mpl_grad *grad)
{
    uint32_t rank_a = mpl_grad_in_shape(grad, 0)->rank, rank_b = mpl_grad_in_shape(grad, 1)->rank;
    bool trans_a = mpl_attr_int(grad->g, grad->op, MPL_ATTR_trans_a, 0) != 0;
    bool trans_b = mpl_attr_int(grad->g, grad->op, MPL_ATTR_trans_b, 0) != 0;

    if (trans_a || trans_b) {
        for (uint32_t i = 0; i < 2; i++)
            if (mpl_grad_wants(grad, i))
                turned_part(grad, i, trans_a, trans_b);
        return;
    }
    if (rank_a == 2 && rank_b == 2 && !grad->options->apart && mpl_grad_wants(grad, 1)) {
        joint(grad, MPL_OP_gemm_grad, false);
        return;
    }
    for (uint32_t i = 0; i < 2; i++)
        if (mpl_grad_wants(grad, i) && rank_a == 2 && rank_b == 2)
            product_part(grad, i, false, false, NULL, 0);
        else if (mpl_grad_wants(grad, i))
            matmul_part(grad, i, rank_a == 1, rank_b == 1);
}

/* ---- pooling, normalisation ---- */

/* Gradient from dy and the operand, with the same attributes. */
static void from_operand(mpl_grad *grad, mpl_op_kind kind)
{
    mpl_attr attr[MPL_GRAD_ATTRS];
    uint32_t n = mpl_grad_attrs(grad, attr);

    mpl_grad_make(grad, 0, kind, 2, (mpl_value[]){mpl_grad_dy(grad, 0), mpl_grad_in(grad, 0)}, n,
                  attr);
}

void mpl_grad_of_max_pool(mpl_grad *grad)
{
    from_operand(grad, MPL_OP_max_pool_grad);
}

void mpl_grad_of_lrn(mpl_grad *grad)
{
    from_operand(grad, MPL_OP_lrn_grad);
}

void mpl_grad_of_pool_sizes(mpl_grad *grad)
{
    mpl_attr attr[MPL_GRAD_ATTRS];
    uint32_t n = mpl_grad_attrs(grad, attr);

    attr[n] = sizes_of(grad, 0);
    mpl_grad_make(grad, 0,
                  kind_of(grad) == MPL_OP_avg_pool ? MPL_OP_avg_pool_grad
                                                   : MPL_OP_global_avg_pool_grad,
                  1, (mpl_value[]){mpl_grad_dy(grad, 0)}, n + 1, attr);
}

/* The training form returns the moments of the batch. */
void mpl_grad_of_batch_norm(mpl_grad *grad)
{
    mpl_value in[5] = {mpl_grad_dy(grad, 0), mpl_grad_in(grad, 0), mpl_grad_in(grad, 1)};
    uint32_t target[3], made;
    mpl_attr attr[MPL_GRAD_ATTRS];
    uint32_t n = mpl_grad_attrs(grad, attr);

    if (grad->options->frozen) {
        mpl_grad_of_normal(grad);
        return;
    }
    made = grad->to->op_out_begin[grad->op_now[grad->op]];
    for (uint32_t i = 0; i < 3; i++)
        target[i] = mpl_grad_wants(grad, i) ? i : MPL_NONE;
    in[3] = grad->to->op_out[made + 1], in[4] = grad->to->op_out[made + 2];
    mpl_grad_make_all(grad, MPL_OP_batch_norm_grad, 5, in, n, attr, 3, target, 7);
}

void mpl_grad_of_softmax(mpl_grad *grad)
{
    mpl_attr attr[MPL_GRAD_ATTRS];
    uint32_t n = mpl_grad_attrs(grad, attr);

    mpl_grad_make(grad, 0, MPL_OP_softmax_grad, 2,
                  (mpl_value[]){mpl_grad_dy(grad, 0), mpl_grad_out(grad, 0)}, n, attr);
}

/* Whether v is the constant 1, as the gradient of a loss is. */
static bool is_one(const mpl_grad *grad, mpl_value v)
{
    return v != MPL_NONE && grad->to->value_data[v] != NULL && grad->to->value_shape[v].rank == 0 &&
           mpl_get((mpl_type)grad->to->value_type[v], grad->to->value_data[v], 0) == 1;
}

void mpl_grad_of_cross_entropy(mpl_grad *grad)
{
    mpl_value prob = grad->g->op_out[grad->g->op_out_begin[grad->op] + 1],
              dy = mpl_grad_dy(grad, 0);
    mpl_value in[] = {mpl_grad_out(grad, 1), mpl_grad_in(grad, 1)};

    if (prob != MPL_NONE && grad->whole[prob] != MPL_NONE)
        mpl_grad_fail(grad, "its probabilities are differentiated, too");
    else if (is_one(grad, dy))
        mpl_grad_make(grad, 0, MPL_OP_softmax_cross_entropy_grad, 2, in, 0, NULL);
    else
        make_two(grad, 0, MPL_OP_mul,
                 mpl_grad_helper(grad, MPL_OP_softmax_cross_entropy_grad, 2, in, 0, NULL), dy);
}

/* The training form returns the mask. */
void mpl_grad_of_dropout(mpl_grad *grad)
{
    mpl_op made = grad->op_now[grad->op];

    if (grad->options->frozen) {
        mpl_grad_give(grad, 0, mpl_grad_dy(grad, 0));
        return;
    }
    mpl_grad_make(
        grad, 0, MPL_OP_dropout_grad, 2,
        (mpl_value[]){mpl_grad_dy(grad, 0), grad->to->op_out[grad->to->op_out_begin[made] + 1]}, 1,
        &MPL_FLOAT(ratio, mpl_attr_float(grad->to, made, MPL_ATTR_ratio, 0.5)));
}

/* ---- reductions ---- */

mpl_shape mpl_grad_kept_dims(const mpl_grad *grad)
{
    mpl_shape s = *mpl_grad_in_shape(grad, 0);
    uint32_t n;
    const int64_t *axes = mpl_attr_ints(grad->g, grad->op, MPL_ATTR_axes, &n);
    mpl_attr given;

    for (uint32_t i = 0; i < s.rank && !mpl_attr_get(grad->g, grad->op, MPL_ATTR_axes, &given); i++)
        s.dim[i] = 1;
    for (uint32_t i = 0; i < n; i++)
        s.dim[axes[i] < 0 ? axes[i] + s.rank : axes[i]] = 1;
    return s;
}

mpl_value mpl_grad_with_dims(mpl_grad *grad, mpl_value v, const mpl_shape *s)
{
    if (v == MPL_NONE || mpl_shape_equal(&grad->to->value_shape[v], s))
        return v;
    return mpl_grad_helper(grad, MPL_OP_reshape, 1, &v, 1, &MPL_INTS(shape, s->rank, s->dim));
}

static void spread(mpl_grad *grad, double factor)
{
    mpl_shape kept = mpl_grad_kept_dims(grad);
    const mpl_shape *x = mpl_grad_in_shape(grad, 0);
    mpl_value dy = mpl_grad_dy(grad, 0);

    if (factor != 1)
        dy = mpl_grad_two(grad, MPL_OP_mul, dy, mpl_grad_number(grad, factor));
    dy = mpl_grad_with_dims(grad, dy, &kept);
    mpl_grad_make(grad, 0, MPL_OP_expand, 1, &dy, 1, &MPL_INTS(shape, x->rank, x->dim));
}

void mpl_grad_of_reduce_sum(mpl_grad *grad)
{
    spread(grad, 1);
}

void mpl_grad_of_reduce_mean(mpl_grad *grad)
{
    mpl_shape kept = mpl_grad_kept_dims(grad);
    uint64_t all = 1, left = 1;

    mpl_shape_count(mpl_grad_in_shape(grad, 0), &all);
    mpl_shape_count(&kept, &left);
    spread(grad, all > 0 ? (double)left / (double)all : 1);
}

/* reduce_max, reduce_min, global_max_pool: each of several equal extremes gets the whole
 * gradient. */
void mpl_grad_of_reduce_max(mpl_grad *grad)
{
    mpl_shape kept = kind_of(grad) == MPL_OP_global_max_pool ? *mpl_grad_out_shape(grad, 0)
                                                             : mpl_grad_kept_dims(grad);
    mpl_value dy = mpl_grad_with_dims(grad, mpl_grad_dy(grad, 0), &kept),
              y = mpl_grad_with_dims(grad, mpl_grad_out(grad, 0), &kept);
    mpl_value largest = mpl_grad_two(grad, MPL_OP_equal, mpl_grad_in(grad, 0), y);

    mpl_grad_make(grad, 0, MPL_OP_where, 3, (mpl_value[]){largest, dy, mpl_grad_number(grad, 0)}, 0,
                  NULL);
}

/* ---- moved elements ---- */

void mpl_grad_of_reshape(mpl_grad *grad)
{
    const mpl_shape *x = mpl_grad_in_shape(grad, 0);

    mpl_grad_make(grad, 0, MPL_OP_reshape, 1, (mpl_value[]){mpl_grad_dy(grad, 0)}, 1,
                  &MPL_INTS(shape, x->rank, x->dim));
}

void mpl_grad_of_concat(mpl_grad *grad)
{
    uint32_t n = grad->g->op_in_begin[grad->op + 1] - grad->g->op_in_begin[grad->op],
             *target = NULL;
    int64_t axis = mpl_attr_int(grad->g, grad->op, MPL_ATTR_axis, 0), *part = NULL;
    uint32_t at = (uint32_t)(axis < 0 ? axis + mpl_grad_in_shape(grad, 0)->rank : axis);

    if ((target = mpl_alloc(grad->ctx, n, sizeof *target)) == NULL ||
        (part = mpl_alloc(grad->ctx, n, sizeof *part)) == NULL) {
        grad->st = MPL_EMEM;
    } else {
        for (uint32_t i = 0; i < n; i++) {
            target[i] = mpl_grad_wants(grad, i) ? i : MPL_NONE;
            part[i] = mpl_grad_in_shape(grad, i)->dim[at];
        }
        mpl_grad_make_all(grad, MPL_OP_split, 1, (mpl_value[]){mpl_grad_dy(grad, 0)}, 2,
                          (const mpl_attr[]){MPL_INT(axis, axis), MPL_INTS(split, n, part)}, n,
                          target, 1);
    }
    mpl_free_each(grad->ctx, target, part);
}

/* The box of input 0 with n elements of `axis` from `start` on. */
static mpl_grad_box box_along(const mpl_grad *grad, uint32_t axis, int64_t start, int64_t n)
{
    const mpl_shape *shape = mpl_grad_in_shape(grad, 0);
    mpl_grad_box box = {.shape = *shape};

    for (uint32_t i = 0; i < shape->rank; i++)
        box.step[i] = 1;
    box.start[axis] = start;
    box.shape.dim[axis] = n;
    return box;
}

/* Outputs that the loss does not depend on give no part. */
void mpl_grad_of_split(mpl_grad *grad)
{
    const mpl_shape *shape = mpl_grad_in_shape(grad, 0);
    uint32_t n = grad->g->op_out_begin[grad->op + 1] - grad->g->op_out_begin[grad->op], n_sizes;
    const mpl_value *made = grad->g->op_out + grad->g->op_out_begin[grad->op];
    const int64_t *size = mpl_attr_ints(grad->g, grad->op, MPL_ATTR_split, &n_sizes);
    int64_t axis = mpl_attr_int(grad->g, grad->op, MPL_ATTR_axis, 0), start = 0;

    axis = axis < 0 ? axis + shape->rank : axis;
    for (uint32_t i = 0; i < n && grad->st == MPL_OK; i++) {
        int64_t equal = (shape->dim[axis] + n - 1) / n;
        int64_t length = size != NULL                       ? size[i]
                         : start + equal < shape->dim[axis] ? equal
                                                            : shape->dim[axis] - start;
        mpl_grad_box box = box_along(grad, (uint32_t)axis, start, length);

        if (made[i] != MPL_NONE && grad->whole[made[i]] != MPL_NONE)
            mpl_grad_give_piece(grad, 0, grad->whole[made[i]], &box);
        start += length;
    }
}

/* Clamps where an axis of n elements begins; backwards it begins at the last element at most. */
static int64_t bounded(int64_t i, int64_t n, bool backwards)
{
    i = i < 0 ? i + n : i;
    return i < 0 ? 0 : i > n - backwards ? n - backwards : i;
}

void mpl_grad_of_slice(mpl_grad *grad)
{
    const mpl_shape *shape = mpl_grad_in_shape(grad, 0);
    uint32_t n, n_axes, n_steps;
    const int64_t *starts = mpl_attr_ints(grad->g, grad->op, MPL_ATTR_starts, &n);
    const int64_t *axes = mpl_attr_ints(grad->g, grad->op, MPL_ATTR_axes, &n_axes);
    const int64_t *steps = mpl_attr_ints(grad->g, grad->op, MPL_ATTR_steps, &n_steps);
    mpl_grad_box box = {.shape = *mpl_grad_out_shape(grad, 0)};

    for (uint32_t i = 0; i < shape->rank; i++)
        box.step[i] = 1;
    for (uint32_t i = 0; i < n; i++) {
        int64_t axis = axes != NULL ? axes[i] : i;

        axis = axis < 0 ? axis + shape->rank : axis;
        box.step[axis] = steps != NULL ? steps[i] : 1;
        box.start[axis] = bounded(starts[i], shape->dim[axis], box.step[axis] < 0);
    }
    mpl_grad_give_piece(grad, 0, mpl_grad_dy(grad, 0), &box);
}

void mpl_grad_of_pad(mpl_grad *grad)
{
    const mpl_shape *shape = mpl_grad_in_shape(grad, 0);
    uint32_t n, n_axes;
    const int64_t *pads = mpl_attr_ints(grad->g, grad->op, MPL_ATTR_pads, &n);
    int64_t start[MPL_MAX_RANK] = {0}, end[MPL_MAX_RANK] = {0}, axis[MPL_MAX_RANK] = {0};

    mpl_attr_ints(grad->g, grad->op, MPL_ATTR_axes, &n_axes);
    if (strcmp(mpl_attr_text(grad->g, grad->op, MPL_ATTR_mode, "constant"), "constant") != 0 ||
        n_axes > 0 || n != 2 * shape->rank) {
        mpl_grad_fail(grad, "a mode other than constant, or axes");
        return;
    }
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (pads[i] < 0 || pads[shape->rank + i] < 0) {
            mpl_grad_fail(grad, "pads below 0");
            return;
        }
        axis[i] = i;
        start[i] = pads[i];
        end[i] = pads[i] + shape->dim[i];
    }
    mpl_grad_make(grad, 0, MPL_OP_slice, 1, (mpl_value[]){mpl_grad_dy(grad, 0)}, 3,
                  (const mpl_attr[]){MPL_INTS(starts, shape->rank, start),
                                     MPL_INTS(ends, shape->rank, end),
                                     MPL_INTS(axes, shape->rank, axis)});
}

void mpl_grad_of_transpose(mpl_grad *grad)
{
    uint32_t rank = mpl_grad_in_shape(grad, 0)->rank, n;
    const int64_t *perm = mpl_attr_ints(grad->g, grad->op, MPL_ATTR_perm, &n);
    int64_t back[MPL_MAX_RANK] = {0};

    for (uint32_t i = 0; i < rank; i++)
        back[perm != NULL ? perm[i] : rank - 1 - i] = i;
    mpl_grad_make(grad, 0, MPL_OP_transpose, 1, (mpl_value[]){mpl_grad_dy(grad, 0)}, 1,
                  &MPL_INTS(perm, rank, back));
}

mpl_grad_rule *const mpl_grad_rules[MPL_N_OPS] = {
#define GRADIENT(op, rule) [MPL_OP_##op] = mpl_grad_of_##rule,
#define SLOPE(op, words)   [MPL_OP_##op] = mpl_grad_of_words,
#include "graphs/ir/each_op.h"
};
