/* opt_qdq.c -- operators of floats between dequantize and quantize become operators of integers.
 *
 * An edit replaces the quantize, so that what it read is pruned if nothing else reads it. Only with
 * scales of a whole tensor (weights: of an output channel); zero points and scales stay values, but
 * clamps and biases are computed here and need them as constants. */

#include "graphs/ops/quant/quant_priv.h"
#include "graphs/passes/optimise/optimise_priv.h"

/* A tensor of integers and what they stand for. */
typedef struct quantised {
    mpl_value x, scale, zero; /* zero: MPL_NONE is 0 */
    mpl_type type;            /* of the integers */
} quantised;

/* Element i, or the only one, of a constant. */
static double constant_at(const mpl_graph *g, mpl_value v, int64_t i)
{
    bool one = g->value_splat[v] != 0 || mpl_count(&g->value_shape[v]) == 1;

    return mpl_get((mpl_type)g->value_type[v], g->value_data[v], one ? 0 : i);
}

static bool is_constant(const mpl_graph *g, mpl_value v)
{
    return v == MPL_NONE || (g->value_role[v] == MPL_WEIGHT && g->value_data[v] != NULL);
}

static bool one_scale(const mpl_graph *g, mpl_op op)
{
    mpl_value scale = mpl_op_input(g, op, 1);

    return g->value_type[scale] == MPL_TYPE_f32 && mpl_count(&g->value_shape[scale]) == 1 &&
           mpl_attr_int(g, op, MPL_ATTR_block_size, 0) == 0;
}

/* Whether v is dequantised, by one scale or, if axis >= 0, one for each index of that axis. */
static bool is_dequantised(const mpl_graph *g, mpl_value v, int64_t axis, quantised *q)
{
    mpl_op op = v != MPL_NONE ? g->value_op[v] : MPL_NONE;
    int64_t own;

    if (op == MPL_NONE || g->op_kind[op] != MPL_OP_dequantize || g->value_type[v] != MPL_TYPE_f32)
        return false;
    *q = (quantised){mpl_op_input(g, op, 0), mpl_op_input(g, op, 1), mpl_op_input(g, op, 2),
                     (mpl_type)g->value_type[mpl_op_input(g, op, 0)]};
    if (!mpl_type_in(q->type, MPL_SET_QUANTISED))
        return false;
    if (one_scale(g, op))
        return true;
    own = mpl_attr_int(g, op, MPL_ATTR_axis, 1);
    own += own < 0 ? g->value_shape[v].rank : 0;
    return axis >= 0 && own == axis && g->value_type[q->scale] == MPL_TYPE_f32 &&
           mpl_attr_int(g, op, MPL_ATTR_block_size, 0) == 0;
}

/* The operation of block 0 that makes v for one reader; MPL_NONE: none. */
static mpl_op maker_of(const mpl_graph *g, mpl_value v)
{
    mpl_op op = v != MPL_NONE ? g->value_op[v] : MPL_NONE;

    return op != MPL_NONE && g->op_block[op] == 0 && mpl_n_uses(g, v) == 1 &&
                   g->value_role[v] == MPL_TEMPORARY
               ? op
               : MPL_NONE;
}

/* The limits of a relu or clip before the quantize, in steps of the quantize. */
typedef struct clamp {
    double low, high;
} clamp;

/* Narrows *c by operation `op`, of real bounds; false: it is no clamp of constants. */
static bool narrow(const mpl_graph *g, mpl_op op, const quantised *y, clamp *c)
{
    mpl_value least = mpl_op_input(g, op, 1), most = mpl_op_input(g, op, 2);
    bool relu = g->op_kind[op] == MPL_OP_relu;
    double scale, zero, bound[2] = {0, INFINITY};

    if ((!relu && g->op_kind[op] != MPL_OP_clip) || !is_constant(g, y->scale) ||
        !is_constant(g, y->zero) || !is_constant(g, least) || !is_constant(g, most))
        return false;
    scale = constant_at(g, y->scale, 0);
    zero = y->zero != MPL_NONE ? constant_at(g, y->zero, 0) : 0;
    if (!relu) {
        bound[0] = least != MPL_NONE ? constant_at(g, least, 0) : -INFINITY;
        bound[1] = most != MPL_NONE ? constant_at(g, most, 0) : INFINITY;
    }
    c->low = fmax(c->low, rint(bound[0] / scale) + zero);
    c->high = fmin(c->high, rint(bound[1] / scale) + zero);
    return scale > 0;
}

/* The result's limits, and its type where no zero has it. */
static void set_result(const quantised *self, const clamp *c, mpl_edit *edit)
{
    if (self->zero == MPL_NONE)
        edit->attr[edit->n_attr++] = MPL_TEXT(to, mpl_type_name(self->type));
    if (c->low > INT32_MIN) {
        edit->ints[0] = (int64_t)c->low;
        edit->attr[edit->n_attr++] = (mpl_attr){MPL_ATTR_low, 1, &edit->ints[0], NULL, NULL};
    }
    if (c->high < INT32_MAX) {
        edit->ints[1] = (int64_t)c->high;
        edit->attr[edit->n_attr++] = (mpl_attr){MPL_ATTR_high, 1, &edit->ints[1], NULL, NULL};
    }
}

static void begin(mpl_edit *edit, mpl_op_kind kind, mpl_op from, uint32_t n_in)
{
    edit->kind = MPL_EDIT_REPLACE;
    edit->op_kind = kind;
    edit->from = from;
    edit->n_in = n_in;
}

/* ---- products ---- */

/* Makes fresh[0] the bias as i32, in steps of x's scale times w's. *fits: it is a constant that can
 * be so written. */
static mpl_status whole_bias(mpl_match *match, mpl_value bias, const quantised *x,
                             const quantised *w, int64_t n, mpl_edit *edit, bool *fits)
{
    const mpl_graph *g = match->g;
    mpl_op op = g->value_op[bias];
    mpl_value scale = MPL_NONE;

    if (op != MPL_NONE && g->op_kind[op] == MPL_OP_dequantize) {
        *fits = mpl_op_input(g, op, 2) == MPL_NONE || is_constant(g, mpl_op_input(g, op, 2));
        bias = mpl_op_input(g, op, 0), scale = mpl_op_input(g, op, 1);
        *fits = *fits && g->value_type[bias] == MPL_TYPE_i32;
        *fits = *fits && (mpl_op_input(g, op, 2) == MPL_NONE ||
                          constant_at(g, mpl_op_input(g, op, 2), 0) == 0);
    }
    *fits = *fits && is_constant(g, bias) && is_constant(g, scale) && is_constant(g, x->scale) &&
            is_constant(g, w->scale) && mpl_count(&g->value_shape[bias]) == n;
    if (!*fits)
        return MPL_OK;
    MPL_PASS(
        mpl_edit_fresh(match->ctx, MPL_TYPE_i32, &(mpl_shape){1, {n}}, false, &edit->fresh[0]));
    for (int64_t i = 0; i < n; i++) {
        double real = constant_at(g, bias, i) * (scale != MPL_NONE ? constant_at(g, scale, i) : 1);
        double steps = rint(real / (constant_at(g, x->scale, 0) * constant_at(g, w->scale, i)));

        *fits = *fits && fabs(steps) < 0x1p31;
        ((int32_t *)edit->fresh[0].data)[i] = *fits ? (int32_t)steps : 0;
    }
    return MPL_OK;
}

/* Axis of the weights' output channels; -1: not a product that has an integer form. */
static int64_t channel_axis(const mpl_graph *g, mpl_op op)
{
    mpl_value b = mpl_op_input(g, op, 1);

    switch (g->op_kind[op]) {
    case MPL_OP_conv:
        return 0;
    case MPL_OP_matmul:
        return g->value_shape[mpl_op_input(g, op, 0)].rank >= 2 && g->value_shape[b].rank >= 2
                   ? (int64_t)g->value_shape[b].rank - 1
                   : -1;
    case MPL_OP_gemm:
        if (mpl_attr_float(g, op, MPL_ATTR_alpha, 1) != 1 ||
            mpl_attr_float(g, op, MPL_ATTR_beta, 1) != 1 ||
            mpl_attr_int(g, op, MPL_ATTR_trans_a, 0) != 0)
            return -1;
        return mpl_attr_int(g, op, MPL_ATTR_trans_b, 0) != 0 ? 0 : 1;
    default:
        return -1;
    }
}

static mpl_status match_product(mpl_match *match, mpl_op op, const quantised *y, const clamp *c,
                                mpl_edit *edit)
{
    const mpl_graph *g = match->g;
    mpl_value bias = mpl_op_input(g, op, 2);
    int64_t axis = channel_axis(g, op);
    mpl_value w_real = mpl_op_input(g, op, 1);
    bool fits = true;
    quantised x, w;

    if (axis < 0 || !is_dequantised(g, mpl_op_input(g, op, 0), -1, &x) ||
        !is_dequantised(g, w_real, axis, &w) ||
        (mpl_count(&g->value_shape[w.scale]) > 1 && g->op_kind[op] == MPL_OP_matmul &&
         g->value_shape[w_real].rank > 2))
        return MPL_OK;
    if (bias != MPL_NONE)
        MPL_PASS(whole_bias(match, bias, &x, &w, g->value_shape[w_real].dim[axis], edit, &fits));
    if (!fits)
        return MPL_OK;
    begin(edit, g->op_kind[op] == MPL_OP_conv ? MPL_OP_qconv : MPL_OP_qmatmul, op,
          bias != MPL_NONE ? 9 : 8);
    memcpy(edit->in,
           (const mpl_value[]){x.x, w.x, x.scale, x.zero, w.scale, w.zero, y->scale, y->zero,
                               MPL_FRESH(0)},
           9 * sizeof *edit->in);
    set_result(y, c, edit);
    return MPL_OK;
}

/* ---- element-wise, pools, moves ---- */

/* op MPL_NONE: a change of scale alone. */
static void match_elementwise(mpl_match *match, mpl_op op, mpl_value x_real, const quantised *y,
                              const clamp *c, mpl_edit *edit)
{
    const mpl_graph *g = match->g;
    const char *name = op != MPL_NONE ? mpl_op_table[g->op_kind[op]].name : "identity";
    uint32_t n_in = op != MPL_NONE ? mpl_op_n_in(g, op) : 1;
    quantised x, z;

    if (!mpl_qelementwise_has(name, n_in) || !is_dequantised(g, x_real, -1, &x) ||
        (n_in == 2 && !is_dequantised(g, mpl_op_input(g, op, 1), -1, &z)))
        return;
    begin(edit, MPL_OP_qelementwise, op, n_in == 2 ? 8 : 5);
    memcpy(edit->in, (const mpl_value[]){x.x, x.scale, y->scale, x.zero, y->zero},
           5 * sizeof *edit->in);
    if (n_in == 2)
        edit->in[5] = z.x, edit->in[6] = z.scale, edit->in[7] = z.zero;
    edit->attr[edit->n_attr++] = MPL_TEXT(of, name);
    set_result(y, c, edit);
}

bool mpl_is_spatial_mean(const mpl_graph *g, mpl_op op)
{
    uint32_t rank = g->value_shape[mpl_op_input(g, op, 0)].rank, n, seen = 0;
    const int64_t *axes = mpl_attr_ints(g, op, MPL_ATTR_axes, &n);

    for (uint32_t i = 0; i < n; i++)
        seen |= 1u << (axes[i] < 0 ? axes[i] + rank : axes[i]);
    return g->op_kind[op] == MPL_OP_reduce_mean && rank >= 3 && rank <= 5 &&
           mpl_attr_int(g, op, MPL_ATTR_keepdims, 1) != 0 && seen == (1u << rank) - 4;
}

static void match_pool(mpl_match *match, mpl_op op, const quantised *y, const clamp *c,
                       mpl_edit *edit)
{
    const mpl_graph *g = match->g;
    bool whole = g->op_kind[op] == MPL_OP_global_avg_pool || mpl_is_spatial_mean(g, op);
    const mpl_shape *shape = &g->value_shape[mpl_op_input(g, op, 0)];
    quantised x;

    if ((!whole && g->op_kind[op] != MPL_OP_avg_pool) ||
        !is_dequantised(g, mpl_op_input(g, op, 0), -1, &x) || mpl_count(shape) == 0)
        return;
    begin(edit, MPL_OP_qavg_pool, whole ? MPL_NONE : op, 5);
    memcpy(edit->in, (const mpl_value[]){x.x, x.scale, y->scale, x.zero, y->zero},
           5 * sizeof *edit->in);
    set_result(y, c, edit);
    if (whole) {
        memcpy(edit->ints + 2, shape->dim + 2, (shape->rank - 2) * sizeof *edit->ints);
        edit->attr[edit->n_attr++] =
            (mpl_attr){MPL_ATTR_kernel_shape, shape->rank - 2, edit->ints + 2, NULL, NULL};
    }
}

/* Whether two operands are the same value, or equal constants; a zero left out is 0. */
static bool same_number(const mpl_graph *g, mpl_value a, mpl_value b)
{
    if (a == b)
        return true;
    return is_constant(g, a) && is_constant(g, b) &&
           (a != MPL_NONE ? constant_at(g, a, 0) : 0) == (b != MPL_NONE ? constant_at(g, b, 0) : 0);
}

/* How many operands of `op` only pass through it, unchanged; 0: it computes. */
static uint32_t n_moved(const mpl_graph *g, mpl_op op)
{
    switch (g->op_kind[op]) {
    case MPL_OP_concat:
        return mpl_op_n_in(g, op) <= MPL_EDIT_IN ? mpl_op_n_in(g, op) : 0;
    case MPL_OP_max_pool:
    case MPL_OP_reshape:
    case MPL_OP_flatten:
    case MPL_OP_squeeze:
    case MPL_OP_unsqueeze:
    case MPL_OP_transpose:
    case MPL_OP_slice:
    case MPL_OP_expand:
    case MPL_OP_tile:
    case MPL_OP_gather:
    case MPL_OP_depth_to_space:
    case MPL_OP_space_to_depth:
        return mpl_op_lone_output(g, op) ? 1 : 0;
    default:
        return 0;
    }
}

/* Of operands with the scale, zero and type of the result. */
static void match_move(mpl_match *match, mpl_op op, const quantised *y, mpl_edit *edit)
{
    const mpl_graph *g = match->g;
    uint32_t n = n_moved(g, op);

    if (g->op_kind[op] == MPL_OP_max_pool && !mpl_type_in(y->type, MPL_SET(i8) | MPL_SET(u8)))
        return;
    if (mpl_type_bits(y->type) < 8 || n == 0)
        return;
    for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++) {
        quantised x;

        edit->in[i] = mpl_op_input(g, op, i);
        if (i >= n)
            continue;
        if (!is_dequantised(g, edit->in[i], -1, &x) || x.type != y->type ||
            !same_number(g, x.scale, y->scale) || !same_number(g, x.zero, y->zero))
            return;
        edit->in[i] = x.x;
    }
    begin(edit, (mpl_op_kind)g->op_kind[op], op, mpl_op_n_in(g, op));
}

mpl_status mpl_match_qdq(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    const mpl_graph *g = match->g;
    clamp c = {INT32_MIN, INT32_MAX};
    mpl_value v = mpl_op_input(g, op, 0);
    mpl_op made;
    quantised y;

    if (g->op_kind[op] != MPL_OP_quantize || !one_scale(g, op) || g->value_type[v] != MPL_TYPE_f32)
        return MPL_OK;
    y = (quantised){v, mpl_op_input(g, op, 1), mpl_op_input(g, op, 2),
                    (mpl_type)g->value_type[mpl_op_output(g, op, 0)]};
    if (!mpl_type_in(y.type, MPL_SET_QUANTISED))
        return MPL_OK;
    while ((made = maker_of(g, v)) != MPL_NONE && narrow(g, made, &y, &c))
        v = mpl_op_input(g, made, 0);
    if (v != y.x && g->value_op[v] != MPL_NONE && g->op_kind[g->value_op[v]] == MPL_OP_dequantize)
        match_elementwise(match, MPL_NONE, v, &y, &c, edit); /* a clamp alone */
    if (made == MPL_NONE || edit->kind != MPL_EDIT_NONE)
        return MPL_OK;
    if (channel_axis(g, made) >= 0)
        return match_product(match, made, &y, &c, edit);
    match_elementwise(match, made, mpl_op_input(g, made, 0), &y, &c, edit);
    if (edit->kind == MPL_EDIT_NONE)
        match_pool(match, made, &y, &c, edit);
    if (edit->kind == MPL_EDIT_NONE && v == y.x)
        match_move(match, made, &y, edit);
    return MPL_OK;
}
