/* tile_rules.c -- which operators can be computed in parts, and what of its operands a part needs.
 */
#include "graphs/ops/matrix/conv.h"
#include "graphs/passes/tile/tile_priv.h"

static const mpl_shape *out_shape(const mpl_graph *g, mpl_op op)
{
    return &g->value_shape[g->op_out[g->op_out_begin[op]]];
}

static const mpl_shape *in_shape(const mpl_graph *g, mpl_op op, uint32_t i)
{
    return &g->value_shape[mpl_op_input(g, op, i)];
}

static int64_t number(const mpl_graph *g, mpl_op op, mpl_attr_key key, uint32_t i,
                      int64_t otherwise)
{
    uint32_t n;
    const int64_t *x = mpl_attr_ints(g, op, key, &n);

    return i < n ? x[i] : otherwise;
}

/* A window of `kernel` pixels; false: one that reads padding alone, or ends in what is not there.
 */
static bool window(const mpl_graph *g, mpl_op op, const int64_t kernel[2], const mpl_shape *x,
                   tile_rule *rule)
{
    const mpl_shape *y = out_shape(g, op);

    for (uint32_t a = 0; a < 2; a++) {
        int64_t after = number(g, op, MPL_ATTR_pads, 2 + a, 0);

        rule->reach[a] = (kernel[a] - 1) * number(g, op, MPL_ATTR_dilations, a, 1) + 1;
        rule->stride[a] = number(g, op, MPL_ATTR_strides, a, 1);
        rule->before[a] = number(g, op, MPL_ATTR_pads, a, 0);
        if (rule->before[a] >= rule->reach[a] || after >= rule->reach[a] ||
            (y->dim[2 + a] - 1) * rule->stride[a] + rule->reach[a] >
                rule->before[a] + x->dim[2 + a] + after)
            return false;
    }
    rule->kind = TILE_WINDOW;
    return true;
}

static void conv_rule(const mpl_graph *g, mpl_op op, uint32_t first, tile_rule *rule)
{
    const mpl_shape *shape = in_shape(g, op, first), *w = in_shape(g, op, first + 1);
    int64_t group = mpl_attr_int(g, op, MPL_ATTR_group, 1);

    if (shape->rank != 4 || mpl_attr_int(g, op, MPL_ATTR_channels_last, 0) != 0 ||
        !window(g, op, w->dim + 2, shape, rule))
        return;
    rule->mixes = group == 1;
    rule->joint = group != 1 && (group != shape->dim[1] || group != w->dim[0]);
    rule->products = (uint64_t)mpl_count_dims(w, 1, 4);
}

static void pool_rule(const mpl_graph *g, mpl_op op, tile_rule *rule)
{
    uint32_t n;
    const int64_t *kernel = mpl_attr_ints(g, op, MPL_ATTR_kernel_shape, &n);

    if (n == 2 && in_shape(g, op, 0)->rank == 4 && mpl_op_lone_output(g, op) &&
        mpl_attr_int(g, op, MPL_ATTR_channels_last, 0) == 0)
        window(g, op, kernel, in_shape(g, op, 0), rule);
}

/* Whether each operand is an image of the result's dims, or the same for all pixels. */
static bool is_pointwise(const mpl_graph *g, mpl_op op)
{
    const mpl_shape *y = out_shape(g, op);

    for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++) {
        const mpl_shape *x;

        if (mpl_op_input(g, op, i) == MPL_NONE)
            continue;
        x = in_shape(g, op, i);
        for (uint32_t k = 0; k < x->rank && !mpl_shape_equal(x, y); k++)
            if (x->dim[k] != 1 && k + 3 != x->rank)
                return false;
    }
    return mpl_op_lone_output(g, op);
}

static void point_rule(const mpl_graph *g, mpl_op op, tile_rule *rule)
{
    bool norm = g->op_kind[op] == MPL_OP_batch_norm;

    if (norm || is_pointwise(g, op))
        rule->kind = TILE_POINT;
}

/* Nearest, in a form that repeats each element as often as a whole factor says. */
static void resize_rule(const mpl_graph *g, mpl_op op, tile_rule *rule)
{
    const mpl_shape *shape = in_shape(g, op, 0), *y = out_shape(g, op);
    const char *at = mpl_attr_text(g, op, MPL_ATTR_coordinate_mode, "half_pixel");
    const char *round = mpl_attr_text(g, op, MPL_ATTR_nearest_mode, "round_prefer_floor");
    bool repeats = strcmp(at, "asymmetric") == 0
                       ? strcmp(round, "floor") == 0
                       : strcmp(at, "half_pixel") == 0 && strcmp(round, "round_prefer_floor") == 0;

    if (!repeats || strcmp(mpl_attr_text(g, op, MPL_ATTR_mode, "nearest"), "nearest") != 0 ||
        shape->dim[0] != y->dim[0] || shape->dim[1] != y->dim[1])
        return;
    for (uint32_t a = 0; a < 2; a++) {
        if (shape->dim[2 + a] == 0 || y->dim[2 + a] % shape->dim[2 + a] != 0)
            return;
        rule->factor[a] = y->dim[2 + a] / shape->dim[2 + a];
    }
    rule->kind = TILE_RESIZE;
}

static bool is_number_for_number(const mpl_graph *g, mpl_op op)
{
    switch (g->op_kind[op]) {
    case MPL_OP_batch_norm:
    case MPL_OP_dropout:
    case MPL_OP_identity:
    case MPL_OP_quantize:
    case MPL_OP_dequantize:
    case MPL_OP_qelementwise:
        return true;
    default:
        return (mpl_op_table[g->op_kind[op]].traits & MPL_ELEMENTWISE) != 0;
    }
}

static bool is_image(const mpl_graph *g, mpl_op op, const tile_rule *rule, uint32_t i)
{
    uint32_t first = rule->kind == TILE_WINDOW ? mpl_fused_first((mpl_op_kind)g->op_kind[op]) : 0;

    if (mpl_op_input(g, op, i) == MPL_NONE)
        return false;
    if (rule->kind == TILE_WINDOW || rule->kind == TILE_RESIZE ||
        g->op_kind[op] == MPL_OP_batch_norm)
        return i <= first;
    return rule->kind == TILE_JOIN || mpl_shape_equal(in_shape(g, op, i), out_shape(g, op));
}

void tile_rule_of(const mpl_graph *g, mpl_op op, tile_rule *rule)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];

    *rule = (tile_rule){.kind = TILE_NOT};
    if (g->op_block[op] != 0 || !mpl_op_lone_output(g, op) || out_shape(g, op)->rank != 4)
        return;
    if (mpl_is_conv(kind) || kind == MPL_OP_qconv)
        conv_rule(g, op, mpl_is_conv(kind) ? mpl_fused_first(kind) : 0, rule);
    else if (kind == MPL_OP_max_pool || kind == MPL_OP_avg_pool || kind == MPL_OP_qavg_pool)
        pool_rule(g, op, rule);
    else if (kind == MPL_OP_concat)
        rule->kind = (mpl_attr_int(g, op, MPL_ATTR_axis, 0) & 3) == 1 ? TILE_JOIN : TILE_NOT;
    else if (kind == MPL_OP_resize)
        resize_rule(g, op, rule);
    else if (is_number_for_number(g, op))
        point_rule(g, op, rule);
    rule->joint |= rule->kind == TILE_JOIN;
    for (uint32_t i = 0; rule->kind != TILE_NOT && i < mpl_op_n_in(g, op) && i < 64; i++)
        rule->images |= (uint64_t)is_image(g, op, rule, i) << i;
}

tile_span tile_back(const mpl_graph *g, mpl_op op, const tile_rule *rule, uint32_t i, uint32_t axis,
                    tile_span out)
{
    const tile_span all = {0, in_shape(g, op, i)->dim[1 + axis]};
    tile_span back = out;

    if (tile_empty(out))
        return out;
    if (axis == TILE_CHANNELS)
        return rule->mixes && i == mpl_fused_first((mpl_op_kind)g->op_kind[op]) ? all
               : rule->joint                                                    ? all
                                                                                : out;
    axis -= TILE_ROWS;
    if (rule->kind == TILE_WINDOW && i == mpl_fused_first((mpl_op_kind)g->op_kind[op])) {
        back.low = out.low * rule->stride[axis] - rule->before[axis];
        back.high = (out.high - 1) * rule->stride[axis] - rule->before[axis] + rule->reach[axis];
    } else if (rule->kind == TILE_RESIZE) {
        back.low = out.low / rule->factor[axis];
        back.high = (out.high + rule->factor[axis] - 1) / rule->factor[axis];
    }
    back.low = back.low < 0 ? 0 : back.low;
    back.high = back.high > all.high ? all.high : back.high;
    return back;
}

tile_span tile_made(const mpl_graph *g, mpl_op op, const tile_rule *rule, uint32_t axis,
                    tile_span need)
{
    if (tile_empty(need))
        return need;
    if (axis == TILE_CHANNELS)
        return rule->joint ? (tile_span){0, out_shape(g, op)->dim[1]} : need;
    if (rule->kind == TILE_RESIZE) {
        int64_t f = rule->factor[axis - TILE_ROWS];

        return (tile_span){need.low / f * f, (need.high + f - 1) / f * f};
    }
    return need;
}

uint32_t tile_channel_axis(const mpl_graph *g, mpl_op op, uint32_t i)
{
    const mpl_shape *shape = in_shape(g, op, i), *y = out_shape(g, op);
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    bool first = mpl_is_conv(kind) || kind == MPL_OP_qconv || kind == MPL_OP_batch_norm;
    uint32_t axis = first || shape->rank < 3 ? 0 : shape->rank - 3;

    return shape->rank > 0 && shape->dim[axis] == y->dim[1] && y->dim[1] > 1 ? axis : MPL_NONE;
}

uint64_t tile_products(const mpl_graph *g, mpl_op op)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    uint32_t first = mpl_fused_first(kind);
    const mpl_shape *y, *w;

    if (mpl_op_input(g, op, first + 1) == MPL_NONE || mpl_op_output(g, op, 0) == MPL_NONE)
        return 0;
    y = out_shape(g, op);
    w = in_shape(g, op, first + 1);
    if (mpl_is_conv(kind) || kind == MPL_OP_qconv)
        return (uint64_t)mpl_count(y) * (uint64_t)mpl_count_dims(w, 1, w->rank);
    if (mpl_is_gemm(kind) || kind == MPL_OP_matmul || kind == MPL_OP_qmatmul) {
        const mpl_shape *a = in_shape(g, op, first);
        bool across = mpl_attr_int(g, op, MPL_ATTR_trans_a, 0) != 0 && a->rank > 1;

        return (uint64_t)mpl_count(y) *
               (uint64_t)(a->rank == 0 ? 1 : a->dim[a->rank - (across ? 2 : 1)]);
    }
    return 0;
}

mpl_status tile_rules_new(mpl_ctx *ctx, const mpl_graph *g, tile_rule **rule)
{
    MPL_PASS(mpl_new(ctx, *rule, g->n_ops));
    for (mpl_op op = 0; op < g->n_ops; op++)
        tile_rule_of(g, op, &(*rule)[op]);
    return MPL_OK;
}

/* Whether all uses of v lie within [begin, end), and it is no output. */
static bool stays_within(const mpl_graph *g, mpl_value v, mpl_op begin, mpl_op end)
{
    for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++)
        if (g->value_use[k] < begin || g->value_use[k] >= end)
            return false;
    return g->value_role[v] != MPL_OUTPUT && g->value_use_begin[v] < g->value_use_begin[v + 1];
}

bool tile_is_region(const mpl_graph *g, const tile_rule *rule, mpl_op begin, mpl_op end)
{
    if (begin >= end || end > g->n_ops)
        return false;
    for (mpl_op op = begin; op < end; op++) {
        if (rule[op].kind == TILE_NOT ||
            (op + 1 < end && !stays_within(g, g->op_out[g->op_out_begin[op]], begin, end)))
            return false;
        for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++) {
            mpl_value v = mpl_op_input(g, op, i);

            if (v != MPL_NONE && g->value_op[v] != MPL_NONE && g->value_op[v] >= begin &&
                !tile_is_image(&rule[op], i))
                return false;
        }
    }
    return mpl_count(out_shape(g, end - 1)) > 0;
}

bool tile_reads_bands(const mpl_graph *g, const tile_rule *rule, mpl_op begin, mpl_op end)
{
    mpl_value v = begin > 0 && rule[begin - 1].kind != TILE_NOT
                      ? g->op_out[g->op_out_begin[begin - 1]]
                      : MPL_NONE;

    if (v == MPL_NONE || !stays_within(g, v, begin, end))
        return false;
    for (mpl_op op = begin; op < end; op++)
        for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
            if (mpl_op_input(g, op, i) == v && !tile_is_image(&rule[op], i))
                return false;
    return true;
}
