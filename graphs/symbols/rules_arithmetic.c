/* rules_arithmetic.c -- shape rules over symbols: element-wise, products, windows, reductions. See
 * shape_rules.h. */
#include "graphs/symbols/shape_rules_priv.h"

/* ---- element-wise ---- */

/* Also conv_sum and gemm_sum: input 0, which is added, has the dims of the result. */
static void like_0(mpl_rule *rule)
{
    mpl_dims d = input(rule, 0);

    put_all(rule, d, 0, d.rank);
}

static void broadcast_all(mpl_rule *rule)
{
    for (uint32_t i = 0; i < mpl_op_n_in(rule->g, rule->op); i++)
        mpl_rule_broadcast(rule, input(rule, i));
}

/* ---- products and windows ---- */

static void matmul(mpl_rule *rule)
{
    mpl_dims a = input(rule, 0), b = input(rule, 1);
    bool turn_a = mpl_rule_one(rule, MPL_ATTR_trans_a, 0) != 0 && a.rank > 1;
    bool turn_b = mpl_rule_one(rule, MPL_ATTR_trans_b, 0) != 0 && b.rank > 1;

    if (!rule->known || a.rank == 0 || b.rank == 0) {
        rule->known = false;
        return;
    }
    if (a.rank > 2)
        mpl_rule_broadcast(rule, (mpl_dims){a.rank - 2, a.dim});
    if (b.rank > 2)
        mpl_rule_broadcast(rule, (mpl_dims){b.rank - 2, b.dim});
    if (a.rank > 1)
        put(rule, a.dim[a.rank - 2 + turn_a]);
    if (b.rank > 1)
        put(rule, b.dim[b.rank - 1 - turn_b]);
}

static void gemm(mpl_rule *rule)
{
    mpl_dims a = input(rule, 0), b = input(rule, 1);
    bool turn_a = mpl_rule_one(rule, MPL_ATTR_trans_a, 0) != 0;
    bool turn_b = mpl_rule_one(rule, MPL_ATTR_trans_b, 0) != 0;

    rule->known = rule->known && (a.rank == 2 || (a.rank > 2 && !turn_a)) && b.rank == 2;
    if (!rule->known)
        return;
    put(rule, a.dim[turn_a]);
    for (uint32_t i = 1; i + 1 < a.rank; i++)
        put(rule, a.dim[i]);
    put(rule, b.dim[!turn_b]);
}

/* Spatial dims of a window that slides over x; kernel: its dims. */
static void slide(mpl_rule *rule, mpl_dims x, mpl_dims kernel)
{
    uint32_t n = x.rank - 2, k;
    const int64_t *stride = mpl_rule_fixed(rule, MPL_ATTR_strides, &k);
    const int64_t *dilation = mpl_rule_fixed(rule, MPL_ATTR_dilations, &k);
    const int64_t *pads = mpl_rule_fixed(rule, MPL_ATTR_pads, &k);
    bool up = mpl_rule_one(rule, MPL_ATTR_ceil_mode, 0) != 0;

    for (uint32_t i = 0; rule->known && i < n; i++) {
        int64_t step = at_window(stride, i, 1), before = at_window(pads, i, 0),
                after = at_window(pads, pads != NULL ? n + i : 0, 0);
        mpl_expr span =
            plus(rule, times(rule, plus(rule, kernel.dim[i], -1), at_window(dilation, i, 1)), 1);
        mpl_expr room = two(rule, mpl_expr_sub, plus(rule, x.dim[2 + i], before + after), span);
        mpl_expr last = over(rule, up ? plus(rule, room, step - 1) : room, step);

        if (up) /* no window begins after the input */
            last = two(rule, mpl_expr_min, last,
                       over(rule, plus(rule, x.dim[2 + i], before - 1), step));
        put(rule, plus(rule, last, 1));
    }
}

static void conv(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0), weight = input(rule, 1);

    rule->known = rule->known && x.rank > 2 && weight.rank == x.rank;
    if (!rule->known)
        return;
    put(rule, x.dim[0]), put(rule, weight.dim[0]);
    slide(rule, x, (mpl_dims){weight.rank - 2, weight.dim + 2});
}

static void conv_transpose(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0), weight = input(rule, 1);
    uint32_t k, n = x.rank - 2, n_want = mpl_rule_count(rule, MPL_ATTR_output_shape);
    const int64_t *stride = mpl_rule_fixed(rule, MPL_ATTR_strides, &k);
    const int64_t *dilation = mpl_rule_fixed(rule, MPL_ATTR_dilations, &k);
    const int64_t *pads = mpl_rule_fixed(rule, MPL_ATTR_pads, &k);
    const int64_t *extra = mpl_rule_fixed(rule, MPL_ATTR_output_padding, &k);

    rule->known = rule->known && x.rank > 2 && weight.rank == x.rank;
    if (!rule->known)
        return;
    put(rule, x.dim[0]);
    put(rule, times(rule, weight.dim[1], mpl_rule_one(rule, MPL_ATTR_group, 1)));
    for (uint32_t i = 0; i < n; i++) {
        mpl_expr start = times(rule, plus(rule, x.dim[2 + i], -1), at_window(stride, i, 1));
        mpl_expr span = times(rule, plus(rule, weight.dim[2 + i], -1), at_window(dilation, i, 1));
        int64_t more = 1 + at_window(extra, i, 0) - at_window(pads, i, 0) -
                       at_window(pads, pads != NULL ? n + i : 0, 0);

        put(rule, n_want == n ? mpl_rule_varying(rule, MPL_ATTR_output_shape, i)
                              : plus(rule, two(rule, mpl_expr_add, start, span), more));
    }
}

static void pool(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t n = mpl_rule_count(rule, MPL_ATTR_kernel_shape);
    mpl_expr kernel[MPL_MAX_RANK];

    rule->known = rule->known && x.rank > 2 && n == x.rank - 2;
    if (!rule->known)
        return;
    for (uint32_t i = 0; i < n; i++)
        kernel[i] = mpl_rule_varying(rule, MPL_ATTR_kernel_shape, i);
    put_all(rule, x, 0, 2);
    slide(rule, x, (mpl_dims){n, kernel});
}

static void global_pool(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);

    for (uint32_t i = 0; i < x.rank; i++)
        put(rule, i < 2 ? x.dim[i] : number(rule, 1));
}

/* ---- reductions ---- */

static void reduce(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t set = mpl_rule_axes(rule, x.rank, UINT32_MAX);
    bool keep = mpl_rule_one(rule, MPL_ATTR_keepdims, 1) != 0;

    for (uint32_t i = 0; i < x.rank; i++)
        if ((set >> i & 1) == 0)
            put(rule, x.dim[i]);
        else if (keep)
            put(rule, number(rule, 1));
}

static void arg_reduce(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t axis = mpl_rule_axis(rule, 0, x.rank);
    bool keep = mpl_rule_one(rule, MPL_ATTR_keepdims, 1) != 0;

    for (uint32_t i = 0; i < x.rank; i++)
        if (i != axis)
            put(rule, x.dim[i]);
        else if (keep)
            put(rule, number(rule, 1));
}

/* Output 0 like the input; of the others, what is normalised has one element. */
static void norm_rows(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t axis = mpl_rule_axis(rule, -1, x.rank);

    for (uint32_t i = 0; i < x.rank; i++)
        put(rule, rule->out > 0 && i >= axis ? number(rule, 1) : x.dim[i]);
}

static void top_k(mpl_rule *rule)
{
    mpl_dims x = input(rule, 0);
    uint32_t axis = mpl_rule_axis(rule, -1, x.rank);

    rule->known = rule->known && mpl_rule_count(rule, MPL_ATTR_k) == 1;
    for (uint32_t i = 0; rule->known && i < x.rank; i++)
        put(rule, i == axis ? mpl_rule_varying(rule, MPL_ATTR_k, 0) : x.dim[i]);
}

/* ---- the table ---- */

const mpl_rule_entry mpl_rules_of_arithmetic[] = {
    {"unary unary_bool unary_int predicate cast clip softmax same dropout reorder batch_norm lrn "
     "instance_norm group_norm lp_norm mean_variance_norm cumsum trilu first reverse_sequence "
     "assign scatter_elements scatter_nd tensor_scatter rotary_embedding quantize dequantize "
     "conv_sum gemm_sum grad_alike softmax_grad clip_grad",
     like_0},
    {"binary binary_int binary_bool compare variadic where fma div_sqrt", broadcast_all},
    {"matmul", matmul},
    {"gemm gemm_act", gemm},
    {"conv conv_act", conv},
    {"conv_transpose", conv_transpose},
    {"max_pool avg_pool lp_pool", pool},
    {"global_pool", global_pool},
    {"reduce", reduce},
    {"arg_reduce", arg_reduce},
    {"norm_rows", norm_rows},
    {"top_k", top_k},
    {NULL, NULL},
};
