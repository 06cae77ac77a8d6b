/* onnx_behind.c -- operators behind a value whose length along an axis depends on data.
 *
 * Idea     Most pass the length on: it is that of an axis of their result (length_after). Those
 * that mix slices of the axis are given neutral ones behind the length: a reduction the neutral
 *          element, NonZero zeros, TopK and NonMaxSuppression scores that lose (heed). A Concat
 *          over the axis is closed up by `compress`. Dims that are data (of Expand, TopK, ..) are
 *          planned at the most that their interval allows (onnx_length.c) and make lengths. */
#include "graphs/io/onnx/onnx_priv.h"
#include "graphs/ops/ops_priv.h"

#include <float.h>
#include <math.h>

/* ---- numbers ---- */

/* An i64 scalar; one of the graph's constants, if it has it. */
static mpl_status number(onnx_node *node, int64_t x, mpl_value *out)
{
    const mpl_graph *g = node->r->g;

    for (mpl_value v = 0; v < g->n_values; v++)
        if (onnx_is_constant(node, v) && g->value_type[v] == MPL_TYPE_i64 &&
            g->value_shape[v].rank == 0 && g->value_block[v] == 0 &&
            *(const int64_t *)g->value_data[v] == x)
            return *out = v, MPL_OK;
    return onnx_scalar(node, MPL_TYPE_i64, (double)x, "number", out);
}

/* An operation on two scalars; the graph's own, if it has it: equal lengths stay one value. */
static mpl_status combine(onnx_node *node, mpl_op_kind kind, mpl_value a, mpl_value b,
                          mpl_value *out)
{
    const mpl_graph *g = node->r->g;
    const mpl_value in[] = {a, b};

    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_kind[op] == kind && mpl_op_n_in(g, op) == 2 && g->op_block[op] == 0 &&
            memcmp(g->op_in + g->op_in_begin[op], in, sizeof in) == 0)
            return *out = g->op_out[g->op_out_begin[op]], MPL_OK;
    return onnx_step(node, kind, "length", 2, in, 0, NULL, out);
}

/* The scalar that element i of v is: found through the operations that put dims together. */
static mpl_status element_of(onnx_node *node, mpl_value v, int64_t i, mpl_value *out)
{
    const mpl_graph *g = node->r->g;
    mpl_value index;

    while (g->value_op[v] != MPL_NONE && g->value_block[v] == 0) {
        mpl_op op = g->value_op[v];
        const mpl_value *in = g->op_in + g->op_in_begin[op];
        mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];

        if (kind == MPL_OP_concat && g->value_shape[v].rank == 1) {
            while (i >= mpl_count(&g->value_shape[*in]))
                i -= mpl_count(&g->value_shape[*in++]);
            v = *in;
        } else if (kind == MPL_OP_unsqueeze || kind == MPL_OP_squeeze || kind == MPL_OP_reshape ||
                   kind == MPL_OP_identity) {
            v = *in;
        } else if (kind == MPL_OP_gather && onnx_is_constant(node, in[1]) &&
                   g->value_shape[in[0]].rank == 1 && g->value_type[in[1]] == MPL_TYPE_i64) {
            i = ((const int64_t *)g->value_data[in[1]])[g->value_splat[in[1]] ? 0 : i];
            v = in[0];
            i += i < 0 ? g->value_shape[v].dim[0] : 0;
        } else {
            break;
        }
    }
    if (g->value_shape[v].rank == 0)
        return *out = v, MPL_OK;
    MPL_PASS(onnx_step(node, MPL_OP_reshape, "flat", 1, &v, 1,
                       &MPL_INTS(shape, 1, ((int64_t[]){-1})), &v));
    MPL_PASS(number(node, i, &index));
    return onnx_step(node, MPL_OP_gather, "length", 2, (const mpl_value[]){v, index}, 0, NULL, out);
}

/* ---- neutral slices ---- */

/* Which of `dim` slices count: bool, `rank` dims that are 1 but for the axis. */
static mpl_status counting(onnx_node *node, uint32_t rank, uint32_t axis, int64_t dim,
                           mpl_value length, mpl_value *out)
{
    int64_t dims[MPL_MAX_RANK];
    mpl_value in[2] = {MPL_NONE, length};

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? dim : 1;
    MPL_PASS(onnx_count_up(node, rank, dims, &in[0]));
    return onnx_step(node, MPL_OP_less, "counts", 2, in, 0, NULL, out);
}

/* The slices of *v behind its length become `fill`. */
static mpl_status fill_behind(onnx_node *node, const onnx_length *length, double fill, mpl_value *v)
{
    mpl_shape shape = node->r->g->value_shape[*v];
    mpl_value in[3] = {MPL_NONE, *v, MPL_NONE};

    MPL_PASS(
        counting(node, shape.rank, length->axis, shape.dim[length->axis], length->length, &in[0]));
    MPL_PASS(onnx_scalar(node, (mpl_type)node->r->g->value_type[*v], fill, "fill", &in[2]));
    return onnx_step(node, MPL_OP_where, "filled", 3, in, 0, NULL, v);
}

/* The number of a type that is never above (least) or below another one; false: a double does not
 * hold it. */
static bool extreme(mpl_type type, bool least, double *out)
{
    static const double most[][3] = {
        {MPL_TYPE_i32, -0x1p31, 0x1p31 - 1}, {MPL_TYPE_i16, -0x1p15, 0x1p15 - 1},
        {MPL_TYPE_i8, -0x1p7, 0x1p7 - 1},    {MPL_TYPE_u32, 0, 0x1p32 - 1},
        {MPL_TYPE_u16, 0, 0x1p16 - 1},       {MPL_TYPE_u8, 0, 0x1p8 - 1}};

    if (mpl_type_in(type, MPL_SET_FLOAT))
        return *out = least ? -INFINITY : INFINITY, true;
    if (type == MPL_TYPE_i64 && least)
        return *out = -0x1p63, true;
    for (size_t i = 0; i < sizeof most / sizeof *most; i++)
        if (type == (mpl_type)most[i][0])
            return *out = most[i][least ? 1 : 2], true;
    return false;
}

static mpl_status refuse(onnx_node *node, const onnx_length *length, uint32_t k)
{
    return ONNX_REFUSE(node,
                       "the length of axis %u of its input %u depends on data, which this operator "
                       "is not planned for",
                       length->axis, k);
}

/* Whether each operand that is not 1 along the axis of an element-wise result has that length. */
static bool lengths_agree(const onnx_node *node, uint32_t n_in, const mpl_value *in,
                          const mpl_shape *out, uint32_t axis, mpl_value length)
{
    for (uint32_t i = 0; i < n_in; i++) {
        const mpl_shape *shape = in[i] != MPL_NONE ? &node->r->g->value_shape[in[i]] : NULL;
        const onnx_length *l = in[i] != MPL_NONE ? onnx_length_of(node->r, in[i]) : NULL;
        uint32_t lead = shape != NULL ? out->rank - shape->rank : 0;

        if (shape == NULL || axis < lead || (l == NULL && shape->dim[axis - lead] == 1))
            continue;
        if (l == NULL || l->length != length || l->axis + lead != axis)
            return false;
    }
    return true;
}

static bool names_axis(onnx_node *node, int64_t otherwise, uint32_t rank, uint32_t axis)
{
    const mpl_attr *one = onnx_get(node, MPL_ATTR_axis), *axes = onnx_get(node, MPL_ATTR_axes);
    uint32_t count = axes != NULL ? axes->n : 1;
    const int64_t *named = axes != NULL ? axes->ints : one != NULL ? one->ints : &otherwise;

    for (uint32_t i = 0; i < count; i++)
        if (named[i] == (int64_t)axis || named[i] + (int64_t)rank == (int64_t)axis)
            return true;
    return false;
}

static bool is_reduction(mpl_op_kind kind)
{
    return kind >= MPL_OP_reduce_sum && kind <= MPL_OP_arg_min;
}

/* Whether a reduction takes an axis of its input. */
static bool reduces(onnx_node *node, uint32_t rank, uint32_t axis)
{
    bool arg = node->rule->kind == MPL_OP_arg_max || node->rule->kind == MPL_OP_arg_min;

    if (onnx_get(node, MPL_ATTR_axes) == NULL && !arg)
        return onnx_attr_int(node, "noop_with_empty_axes", 0) == 0;
    return names_axis(node, 0, rank, axis);
}

/* The neutral element of a reduction; false: it has none, or a double does not hold it. */
static bool neutral(mpl_op_kind kind, mpl_type type, double *out)
{
    switch (kind) {
    case MPL_OP_reduce_sum:
    case MPL_OP_reduce_l1:
    case MPL_OP_reduce_l2:
    case MPL_OP_reduce_sum_square:
    case MPL_OP_reduce_log_sum:
        return *out = 0, true;
    case MPL_OP_reduce_prod:
        return *out = 1, true;
    case MPL_OP_reduce_max:
    case MPL_OP_reduce_log_sum_exp:
    case MPL_OP_arg_max:
        return extreme(type, true, out);
    case MPL_OP_reduce_min:
    case MPL_OP_arg_min:
        return extreme(type, false, out);
    default:
        return false;
    }
}

/* ---- before a node ---- */

static mpl_status heed_reduction(onnx_node *node, const onnx_length *length)
{
    const mpl_graph *g = node->r->g;
    double fill;

    if (!reduces(node, g->value_shape[node->in[0]].rank, length->axis))
        return MPL_OK;
    if (!neutral(node->rule->kind, (mpl_type)g->value_type[node->in[0]], &fill))
        return refuse(node, length, 0);
    return fill_behind(node, length, fill, &node->in[0]);
}

static mpl_status heed_top_k(onnx_node *node, const onnx_length *length)
{
    const mpl_graph *g = node->r->g;
    double fill;

    if (!names_axis(node, -1, g->value_shape[node->in[0]].rank, length->axis))
        return MPL_OK;
    if (!extreme((mpl_type)g->value_type[node->in[0]], onnx_attr_int(node, "largest", 1) != 0,
                 &fill))
        return refuse(node, length, 0);
    return fill_behind(node, length, fill, &node->in[0]);
}

/* Boxes behind the length have a score that no threshold takes. */
static mpl_status heed_nms(onnx_node *node, const onnx_length *boxes, const onnx_length *scores)
{
    const onnx_length of_boxes = {MPL_NONE, 2, boxes != NULL ? boxes->length : MPL_NONE};
    mpl_value *in;

    if (boxes != NULL && boxes->axis != 1)
        return refuse(node, boxes, 0);
    if (scores != NULL && scores->axis != 2)
        return refuse(node, scores, 1);
    MPL_PASS(onnx_new(node->r, in, 4));
    for (uint32_t i = 0; i < 4; i++)
        in[i] = onnx_in(node, i);
    node->in = in;
    if (in[3] == MPL_NONE)
        MPL_PASS(onnx_scalar(node, MPL_TYPE_f32, -(double)FLT_MAX, "threshold", &in[3]));
    node->n_in = 4;
    return fill_behind(node, scores != NULL ? scores : &of_boxes, -INFINITY, &in[1]);
}

/* Compress: slices behind either length are left out. */
static mpl_status heed_compress(onnx_node *node, const onnx_length *data, const onnx_length *which)
{
    const mpl_graph *g = node->r->g;
    mpl_shape shape = g->value_shape[node->in[1]];
    mpl_value in[2] = {node->in[1], MPL_NONE};

    if (which != NULL)
        MPL_PASS(fill_behind(node, which, 0, &in[0]));
    if (data != NULL) {
        if (shape.rank != 1 || !names_axis(node, 0, g->value_shape[node->in[0]].rank, data->axis) ||
            (onnx_get(node, MPL_ATTR_axis) == NULL && g->value_shape[node->in[0]].rank != 1))
            return refuse(node, data, 0);
        MPL_PASS(counting(node, 1, 0, shape.dim[0], data->length, &in[1]));
        MPL_PASS(onnx_step(node, MPL_OP_and, "counts", 2, in, 0, NULL, &in[0]));
    }
    node->in[1] = in[0];
    return MPL_OK;
}

/* Whether v was made of positions, which are not negative. */
static bool are_positions(const onnx_node *node, mpl_value v)
{
    const mpl_graph *g = node->r->g;

    for (mpl_op op = g->value_op[v]; op != MPL_NONE; op = g->value_op[v]) {
        switch (g->op_kind[op]) {
        case MPL_OP_non_zero:
        case MPL_OP_nms:
        case MPL_OP_top_k:
        case MPL_OP_arg_max:
        case MPL_OP_arg_min:
            return true;
        case MPL_OP_identity:
        case MPL_OP_squeeze:
        case MPL_OP_unsqueeze:
        case MPL_OP_reshape:
        case MPL_OP_transpose:
        case MPL_OP_slice:
        case MPL_OP_split:
        case MPL_OP_gather:
            v = g->op_in[g->op_in_begin[op]];
            break;
        default:
            return false;
        }
    }
    return onnx_not_negative(node, v);
}

/* An index that counts from the end counts from the length. */
static mpl_status heed_index(onnx_node *node, mpl_value length, mpl_value *index)
{
    mpl_value zero, in[3] = {MPL_NONE, MPL_NONE, *index};
    mpl_type type = (mpl_type)node->r->g->value_type[*index];

    if (are_positions(node, *index))
        return MPL_OK;
    MPL_PASS(onnx_scalar(node, type, 0, "zero", &zero));
    MPL_PASS(onnx_step(node, MPL_OP_less, "back", 2, (const mpl_value[]){*index, zero}, 0, NULL,
                       &in[0]));
    MPL_PASS(onnx_step(node, MPL_OP_cast, "length", 1, &length, 1,
                       &MPL_TEXT(to, mpl_type_name(type)), &length));
    MPL_PASS(onnx_step(node, MPL_OP_add, "forth", 2, (const mpl_value[]){*index, length}, 0, NULL,
                       &in[1]));
    return onnx_step(node, MPL_OP_where, "index", 3, in, 0, NULL, index);
}

/* Updates behind their length go to a slice behind the data's last, which is cut off again. */
static mpl_status heed_scatter(onnx_node *node, const onnx_length *const l[3], bool *made)
{
    const mpl_graph *g = node->r->g;
    mpl_shape shape = g->value_shape[node->in[0]];
    const mpl_attr *given = onnx_get(node, MPL_ATTR_axis);
    const onnx_length *which = l[1] != NULL ? l[1] : l[2];
    mpl_value in[3] = {node->in[0], node->in[1], node->in[2]}, spare[2] = {node->in[0], MPL_NONE};
    int64_t zero = 0, end, at;
    bool slices = false;
    uint32_t axis;

    MPL_PASS(onnx_axis(node, given != NULL ? given->ints[0] : 0, shape.rank, &axis));
    if (l[1] != NULL && l[2] != NULL && (l[1]->length != l[2]->length || l[1]->axis != l[2]->axis))
        return refuse(node, l[2], 2);
    end = shape.dim[axis], at = axis;
    if (which != NULL && which->axis == axis)
        MPL_PASS(onnx_scattered_slices(node, in, &slices));
    if (l[0] != NULL && l[0]->axis == axis)
        MPL_PASS(heed_index(node, l[0]->length, &in[1]));
    if (which == NULL) {
        node->in[1] = in[1];
        return MPL_OK;
    }
    MPL_PASS(
        fill_behind(node, &(onnx_length){in[1], which->axis, which->length}, (double)end, &in[1]));
    shape.dim[axis] = 1;
    MPL_PASS(onnx_scalar(node, (mpl_type)g->value_type[in[0]], 0, "spare", &spare[1]));
    MPL_PASS(onnx_step(node, MPL_OP_expand, "spare", 1, &spare[1], 1,
                       &MPL_INTS(shape, shape.rank, shape.dim), &spare[1]));
    MPL_PASS(onnx_step(node, MPL_OP_concat, "spared", 2, spare, 1, &MPL_INT(axis, at), &in[0]));
    MPL_PASS(onnx_step(node, slices ? MPL_OP_scatter_nd : MPL_OP_scatter_elements, "all", 3, in,
                       node->n_attr, node->attr, &in[0]));
    node->n_attr = 0;
    MPL_PASS(onnx_set_ints(node, MPL_ATTR_starts, 1, &zero));
    MPL_PASS(onnx_set_ints(node, MPL_ATTR_ends, 1, &end));
    MPL_PASS(onnx_set_ints(node, MPL_ATTR_axes, 1, &at));
    MPL_PASS(onnx_finish(node, MPL_OP_slice, 1, in));
    *made = true;
    return l[0] != NULL ? onnx_keep_length(node, node->out[0], l[0]->axis, l[0]->length) : MPL_OK;
}

/* Closes up parts joined along an axis: the slices of part i that count are the first length[i]. */
static mpl_status close_up(onnx_node *node, mpl_value all, uint32_t axis, const mpl_value *length)
{
    const mpl_graph *g = node->r->g;
    const char *name[2] = {node->out_name[0], NULL};
    mpl_value in[2] = {all, MPL_NONE}, *which, out[2];

    MPL_PASS(onnx_new(node->r, which, node->n_in));
    for (uint32_t i = 0; i < node->n_in; i++)
        MPL_PASS(counting(node, 1, 0, g->value_shape[node->in[i]].dim[axis], length[i], &which[i]));
    MPL_PASS(
        onnx_step(node, MPL_OP_concat, "counts", node->n_in, which, 1, &MPL_INT(axis, 0), &in[1]));
    MPL_PASS(onnx_fresh_name(node->r, node->label, "count", &name[1]));
    MPL_PASS(onnx_blame(node,
                        mpl_graph_add_folded(node->r->ctx, node->r->g, MPL_OP_compress, node->label,
                                             2, in, 1, &MPL_INT(axis, axis), 2, name, out)));
    node->out[0] = out[0];
    return MPL_OK;
}

/* A Concat over an axis whose length is data in some part. */
static mpl_status heed_concat(onnx_node *node, uint32_t axis, bool *made)
{
    const mpl_graph *g = node->r->g;
    mpl_value *length, total = MPL_NONE, all;
    bool gap = false, data = false;

    MPL_PASS(onnx_new(node->r, length, node->n_in));
    for (uint32_t i = 0; i < node->n_in; i++)
        if (node->in[i] == MPL_NONE || g->value_shape[node->in[i]].rank <= axis)
            return MPL_OK; /* refused where it is lowered */
    for (uint32_t i = 0; i < node->n_in; i++) {
        const onnx_length *l = onnx_length_of(node->r, node->in[i]);

        if (l != NULL && l->axis != axis)
            return refuse(node, l, i);
        gap = gap || data;
        data = data || l != NULL;
        if (l != NULL)
            length[i] = l->length;
        else
            MPL_PASS(number(node, g->value_shape[node->in[i]].dim[axis], &length[i]));
        if (i == 0)
            total = length[0];
        else
            MPL_PASS(combine(node, MPL_OP_add, total, length[i], &total));
    }
    if (gap) {
        MPL_PASS(onnx_step(node, MPL_OP_concat, "parts", node->n_in, node->in, 1,
                           &MPL_INT(axis, axis), &all));
        MPL_PASS(close_up(node, all, axis, length));
    } else {
        MPL_PASS(onnx_finish(node, MPL_OP_concat, node->n_in, node->in));
    }
    *made = true;
    return onnx_keep_length(node, node->out[0], axis, total);
}

mpl_status onnx_heed_lengths(onnx_node *node, bool *made)
{
    const onnx_length *length[3] = {NULL, NULL, NULL};
    onnx_length copy[3]; /* more lengths may become known below */
    const mpl_attr *given = onnx_get(node, MPL_ATTR_axis);
    bool some = false;
    uint32_t axis = 0;

    *made = false;
    for (uint32_t i = 0; i < node->n_in && node->r->n_lengths > 0; i++) {
        const onnx_length *found =
            node->in[i] != MPL_NONE ? onnx_length_of(node->r, node->in[i]) : NULL;

        if (i < 3 && found != NULL) {
            copy[i] = *found;
            length[i] = &copy[i];
        }
        some = some || found != NULL;
        if (node->rule->kind == MPL_OP_concat && found != NULL && !*made &&
            names_axis(node, 0, node->r->g->value_shape[node->in[i]].rank, found->axis))
            return heed_concat(node, found->axis, made);
    }
    if (!some || node->n_in < mpl_op_table[node->rule->kind].min_in ||
        (node->n_in > 0 && node->in[0] == MPL_NONE))
        return MPL_OK; /* refused where it is lowered, if it lacks an operand */
    if (is_reduction(node->rule->kind))
        return heed_reduction(node, length[0]);
    switch (node->rule->kind) {
    case MPL_OP_top_k:
        return heed_top_k(node, length[0]);
    case MPL_OP_non_zero:
        return fill_behind(node, length[0], 0, &node->in[0]);
    case MPL_OP_compress:
        return heed_compress(node, length[0], length[1]);
    case MPL_OP_nms:
        return heed_nms(node, length[0], length[1]);
    case MPL_OP_scatter_elements:
        return heed_scatter(node, length, made);
    case MPL_OP_gather:
        MPL_PASS(onnx_axis(node, given != NULL ? given->ints[0] : 0,
                           node->r->g->value_shape[node->in[0]].rank, &axis));
        return length[0] != NULL && length[0]->axis == axis
                   ? heed_index(node, length[0]->length, &node->in[1])
                   : MPL_OK;
    default:
        return MPL_OK;
    }
}

/* ---- behind a node ---- */

typedef enum { MIXES, KEEPS, DROPS } fate;

/* length, of a value of dims `in`, becomes that of the value reshaped to `to`: slices of the axis
 * stay together, several in one or one in several. */
static mpl_status reshaped(onnx_node *node, const mpl_shape *in, const mpl_shape *to,
                           onnx_length *length, fate *f)
{
    int64_t before = mpl_count_dims(in, 0, length->axis),
            tail = mpl_count_dims(in, length->axis + 1, in->rank);
    int64_t to_tail;
    uint32_t axis = to->rank;
    mpl_value factor;

    *f = MIXES;
    if (before == 0 || tail == 0 || in->dim[length->axis] <= 1)
        return MPL_OK;
    for (uint32_t i = to->rank; i-- > 0;)
        if (mpl_count_dims(to, 0, i) == before && to->dim[i] > 1)
            axis = i;
    if (axis == to->rank)
        return MPL_OK;
    to_tail = mpl_count_dims(to, axis + 1, to->rank);
    if (to_tail == 0 || (tail % to_tail != 0 && to_tail % tail != 0))
        return MPL_OK;
    length->axis = axis, *f = KEEPS;
    if (tail == to_tail)
        return MPL_OK;
    MPL_PASS(number(node, tail > to_tail ? tail / to_tail : to_tail / tail, &factor));
    return combine(node, tail > to_tail ? MPL_OP_mul : MPL_OP_div, length->length, factor,
                   &length->length);
}

/* The same for a Slice; `ends`: the node's operand. */
static mpl_status sliced(onnx_node *node, const mpl_shape *in, mpl_value ends, onnx_length *length,
                         fate *f)
{
    const mpl_attr *axes = onnx_get(node, MPL_ATTR_axes), *starts = onnx_get(node, MPL_ATTR_starts);
    const mpl_attr *steps = onnx_get(node, MPL_ATTR_steps), *end = onnx_get(node, MPL_ATTR_ends);
    bool data = ends != MPL_NONE && !onnx_is_constant(node, ends);
    mpl_value stop = MPL_NONE, start;

    *f = KEEPS;
    for (uint32_t i = 0; i < starts->n; i++) {
        int64_t axis = axes != NULL ? axes->ints[i] : (int64_t)i;

        if (axis != (int64_t)length->axis && axis + (int64_t)in->rank != (int64_t)length->axis)
            continue;
        if ((steps != NULL && steps->ints[i] != 1) || starts->ints[i] < 0 || end->ints[i] < 0)
            return *f = MIXES, MPL_OK;
        if (data)
            MPL_PASS(element_of(node, ends, i, &stop));
        else if (end->ints[i] < in->dim[length->axis])
            MPL_PASS(number(node, end->ints[i], &stop));
        if (stop != MPL_NONE && stop != length->length)
            MPL_PASS(combine(node, MPL_OP_min, length->length, stop, &length->length));
        if (starts->ints[i] == 0)
            continue;
        MPL_PASS(number(node, starts->ints[i], &start));
        MPL_PASS(combine(node, MPL_OP_sub, length->length, start, &length->length));
        MPL_PASS(number(node, 0, &start));
        MPL_PASS(combine(node, MPL_OP_max, length->length, start, &length->length));
    }
    return MPL_OK;
}

/* Where the length of the axis of input k is found in an output `to`, by its kind alone. */
static fate kept_axis(onnx_node *node, uint32_t n_in, const mpl_value *in, uint32_t k,
                      const mpl_shape *to, onnx_length *length)
{
    const mpl_graph *g = node->r->g;
    const mpl_shape *shape = &g->value_shape[in[k]];
    const mpl_attr *given;
    uint32_t from = length->axis;
    int64_t at;

    switch (node->rule->kind) {
    case MPL_OP_identity:
        return strcmp(node->rule->name, "Identity") == 0 ? KEEPS : MIXES;
    case MPL_OP_transpose:
        given = onnx_get(node, MPL_ATTR_perm);
        for (uint32_t i = 0; i < to->rank; i++)
            if ((given != NULL ? given->ints[i] : (int64_t)(to->rank - 1 - i)) == (int64_t)from)
                length->axis = i;
        return KEEPS;
    case MPL_OP_gather:
        given = onnx_get(node, MPL_ATTR_axis);
        at = given != NULL ? given->ints[0] : 0;
        at += at < 0 ? g->value_shape[in[0]].rank : 0;
        if (k == 0 && at == (int64_t)from)
            return DROPS;
        if (k == 1)
            length->axis = (uint32_t)at + from;
        else if (at < (int64_t)from)
            length->axis = from + g->value_shape[in[1]].rank - 1;
        return KEEPS;
    case MPL_OP_gather_nd:
        return k == 1 && from + 1 < shape->rank ? KEEPS : MIXES;
    case MPL_OP_concat:
        return !names_axis(node, 0, shape->rank, from) &&
                       lengths_agree(node, n_in, in, to, from, length->length)
                   ? KEEPS
                   : MIXES;
    case MPL_OP_softmax:
    case MPL_OP_log_softmax:
        return node->r->opset >= 13 && to->rank == shape->rank &&
                       !names_axis(node, -1, shape->rank, from)
                   ? KEEPS
                   : MIXES;
    case MPL_OP_split:
        return !names_axis(node, 0, shape->rank, from) ? KEEPS : MIXES;
    case MPL_OP_top_k:
        return !names_axis(node, -1, shape->rank, from) ? KEEPS : DROPS;
    case MPL_OP_matmul:
        return strcmp(node->rule->name, "MatMul") == 0 && k == 0 && shape->rank > 1 &&
                       from == shape->rank - 2 && to->rank == shape->rank
                   ? KEEPS
                   : MIXES;
    case MPL_OP_gemm:
        return k == 0 && from == 0 && onnx_get(node, MPL_ATTR_trans_a) == NULL ? KEEPS : MIXES;
    case MPL_OP_expand:
        length->axis += to->rank - shape->rank;
        return shape->dim[from] > 1 ? KEEPS : MIXES;
    case MPL_OP_roi_align:
        return k > 0 && from == 0 ? KEEPS : MIXES;
    case MPL_OP_non_zero:
    case MPL_OP_nms:
    case MPL_OP_compress:
        return DROPS;
    default:
        return MIXES;
    }
}

/* length, the length of input k, becomes that of an output `to`. */
static mpl_status length_after(onnx_node *node, uint32_t n_in, const mpl_value *in, uint32_t k,
                               const mpl_shape *to, onnx_length *length, fate *f)
{
    const mpl_shape shape = node->r->g->value_shape[in[k]]; /* a copy: lengths are values added */
    uint32_t from = length->axis;

    *f = MIXES;
    if (node->proto->domain != NULL && node->proto->domain[0] != '\0')
        return MPL_OK;
    if ((mpl_op_table[node->rule->kind].traits & MPL_ELEMENTWISE) != 0) {
        length->axis += to->rank - shape.rank;
        *f = lengths_agree(node, n_in, in, to, length->axis, length->length) ? KEEPS : MIXES;
        return MPL_OK;
    }
    if (is_reduction(node->rule->kind)) {
        *f = reduces(node, shape.rank, from) ? DROPS : KEEPS;
        for (uint32_t i = 0; i < from && to->rank < shape.rank; i++)
            length->axis -= names_axis(node, 0, shape.rank, i);
        return MPL_OK;
    }
    switch (node->rule->kind) {
    case MPL_OP_reshape:
    case MPL_OP_flatten:
    case MPL_OP_squeeze:
    case MPL_OP_unsqueeze:
        return reshaped(node, &shape, to, length, f);
    case MPL_OP_slice:
        return sliced(node, &shape, n_in > 2 ? in[2] : MPL_NONE, length, f);
    default:
        *f = kept_axis(node, n_in, in, k, to, length);
        return MPL_OK;
    }
}

/* Dims of output i that are data for an operand is: the element of `operand` for each. */
static mpl_status dims_of(onnx_node *node, mpl_value operand)
{
    const mpl_graph *g = node->r->g;
    mpl_value least = onnx_bound(node, operand, false), most = onnx_bound(node, operand, true),
              length;
    const mpl_shape *to = &g->value_shape[node->out[0]];
    uint32_t count, lead;
    int64_t *low, *high;

    MPL_PASS(onnx_ints(node, least, "shape", &count, &low));
    MPL_PASS(onnx_ints(node, most, "shape", &count, &high));
    lead = to->rank > count ? to->rank - count : 0;
    for (uint32_t i = 0; i < count; i++) {
        const onnx_length *known = onnx_length_of(node->r, node->out[0]);

        if (low[i] == high[i] || (known != NULL && known->axis == lead + i))
            continue;
        MPL_PASS(element_of(node, operand, i, &length));
        MPL_PASS(onnx_keep_length(node, node->out[0], lead + i, length));
    }
    return MPL_OK;
}

/* A dim cut at an end that is data, of a value whose dims are known. */
static mpl_status cut_at(onnx_node *node, const mpl_value *in)
{
    mpl_shape shape = node->r->g->value_shape[in[0]];
    const mpl_attr *axes = onnx_get(node, MPL_ATTR_axes);
    uint32_t count, axis;
    int64_t *low, *high;

    MPL_PASS(onnx_ints(node, onnx_bound(node, in[2], false), "ends", &count, &low));
    MPL_PASS(onnx_ints(node, onnx_bound(node, in[2], true), "ends", &count, &high));
    for (uint32_t i = 0; i < count; i++) {
        onnx_length l = {in[0], 0, MPL_NONE};
        fate f;

        MPL_PASS(onnx_axis(node, axes != NULL ? axes->ints[i] : (int64_t)i, shape.rank, &axis));
        if (low[i] == high[i])
            continue;
        l.axis = axis;
        MPL_PASS(number(node, shape.dim[axis], &l.length));
        MPL_PASS(sliced(node, &shape, in[2], &l, &f));
        if (f == MIXES || low[i] < 0)
            return ONNX_REFUSE(node,
                               "its ends depend on data, and its starts or steps are not 0, 1");
        MPL_PASS(onnx_keep_length(node, node->out[0], axis, l.length));
    }
    return MPL_OK;
}

/* Lengths that an operand says rather than brings. */
static mpl_status lengths_said(onnx_node *node, uint32_t n_in, const mpl_value *in)
{
    static const struct {
        const char *name;
        uint32_t operand;
    } says[] = {{"ConstantOfShape", 0}, {"Expand", 1}, {"TopK", 1}, {"Slice", 2}, {"Reshape", 1}};
    const mpl_graph *g = node->r->g;
    mpl_value operand = MPL_NONE, length;
    uint32_t axis;

    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        if (strcmp(node->rule->name, says[i].name) == 0 && says[i].operand < n_in)
            operand = in[says[i].operand];
    if (operand == MPL_NONE || onnx_is_constant(node, operand))
        return MPL_OK;
    switch (node->rule->name[0]) {
    case 'T':
        MPL_PASS(
            onnx_axis(node, onnx_attr_int(node, "axis", -1), g->value_shape[in[0]].rank, &axis));
        MPL_PASS(element_of(node, operand, 0, &length));
        for (uint32_t i = 0; i < node->n_out; i++)
            if (node->out[i] != MPL_NONE)
                MPL_PASS(onnx_keep_length(node, node->out[i], axis, length));
        return MPL_OK;
    case 'S':
        return onnx_length_of(node->r, node->out[0]) == NULL ? cut_at(node, in) : MPL_OK;
    case 'R':
        return onnx_length_of(node->r, node->out[0]) != NULL
                   ? MPL_OK
                   : ONNX_REFUSE(node,
                                 "its shape depends on data, and its input's length does not");
    default:
        return dims_of(node, operand);
    }
}

mpl_status onnx_carry_lengths(onnx_node *node, uint32_t n_in, const mpl_value *in)
{
    for (uint32_t k = 0; k < n_in && node->r->n_lengths > 0; k++) {
        const onnx_length *found = in[k] != MPL_NONE ? onnx_length_of(node->r, in[k]) : NULL;
        onnx_length brought;

        if (found == NULL || strcmp(node->rule->name, "Shape") == 0)
            continue;
        brought = *found;
        for (uint32_t i = 0; i < node->n_out; i++) {
            onnx_length l = brought;
            mpl_shape to;
            fate f;

            if (node->out[i] == MPL_NONE || node->out[i] == in[k])
                continue;
            to = node->r->g->value_shape[node->out[i]];
            MPL_PASS(length_after(node, n_in, in, k, &to, &l, &f));
            if (f == MIXES)
                return refuse(node, &brought, k);
            found = onnx_length_of(node->r, node->out[i]);
            if (f == KEEPS && (found == NULL || found->axis != l.axis || found->length != l.length))
                MPL_PASS(onnx_keep_length(node, node->out[i], l.axis, l.length));
        }
    }
    return node->r->n_intervals > 0 ? lengths_said(node, n_in, in) : MPL_OK;
}

/* ---- If ---- */

static bool is_constant_of_none(const Onnx__NodeProto *node)
{
    const Onnx__AttributeProto *a = node->n_attribute == 1 ? node->attribute[0] : NULL;

    if (a == NULL || node->op_type == NULL || strcmp(node->op_type, "Constant") != 0)
        return false;
    for (size_t k = 0; a->t != NULL && k < a->t->n_dims; k++)
        if (a->t->dims[k] == 0)
            return true;
    return a->name != NULL && ((strcmp(a->name, "value_ints") == 0 && a->n_ints == 0) ||
                               (strcmp(a->name, "value_floats") == 0 && a->n_floats == 0));
}

bool onnx_is_empty(const Onnx__GraphProto *branch)
{
    for (size_t i = 0; i < branch->n_node; i++)
        if (!is_constant_of_none(branch->node[i]))
            return false;
    return branch->n_node > 0 && branch->n_output == branch->n_node;
}

mpl_status onnx_empty_where(onnx_node *node, mpl_value condition, bool empty, uint32_t i,
                            mpl_value v)
{
    const onnx_length *found = onnx_length_of(node->r, v);
    onnx_length l;
    mpl_value in[3] = {condition, MPL_NONE, MPL_NONE};

    if (found == NULL)
        return onnx_need_constant(node, condition,
                                  "condition, which decides the shape of its outputs,");
    l = *found;
    in[empty ? 2 : 1] = l.length;
    MPL_PASS(number(node, 0, &in[empty ? 1 : 2]));
    if (node->r->g->value_shape[condition].rank != 0)
        MPL_PASS(onnx_step(node, MPL_OP_reshape, "condition", 1, &in[0], 1,
                           &MPL_INTS(shape, 0, (const int64_t[]){0}), &in[0]));
    MPL_PASS(onnx_step(node, MPL_OP_where, "length", 3, in, 0, NULL, &l.length));
    return onnx_keep_length(node, node->out[i], l.axis, l.length);
}
