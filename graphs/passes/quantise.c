/* quantise.c -- a graph of f32 with int8 activations and weights. See passes.h.
 *
 * Idea     All activations have one scale and zero point 0, so that what only moves elements stays
 * as it is. A convolution with the batch norm and the relu or clip after it is one operation;
 *          products and element-wise operators have quantised forms; any other operator computes in
 *          f32 between a dequantize and a quantize, with its own weights (norms) in f32.
 * Limits   No calibration: the scales suit activations of about -8 to 8. No loops. */
#include "graphs/ops/quant/quant_priv.h"
#include "graphs/passes/copy.h"
#include "graphs/passes/passes.h"

enum { STEPS = 16, NAME_SIZE = 300 }; /* steps of activations to 1 */

typedef struct quantising {
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_graph *to;
    mpl_value scale; /* of activations */
    mpl_value *map;  /* [n_values of g] in int8, or as it was where it was not f32 */
    mpl_value *bias; /* [n_values of g] in i32 */
    mpl_value *wide; /* [n_values of g] in f32, for the current operation */
    uint8_t *done;   /* [n_ops] part of an operation before */
} quantising;

static mpl_value first_in(const mpl_graph *g, mpl_op op)
{
    return mpl_op_input(g, op, 0);
}

static bool is_f32(const mpl_graph *g, mpl_value v)
{
    return v != MPL_NONE && g->value_type[v] == MPL_TYPE_f32;
}

static bool is_number(const mpl_graph *g, mpl_value v)
{
    return v != MPL_NONE && g->value_data[v] != NULL && mpl_count(&g->value_shape[v]) == 1;
}

static double number_of(const mpl_graph *g, mpl_value v)
{
    return (double)*(const float *)g->value_data[v];
}

static int64_t steps_of(double x)
{
    return (int64_t)fmin(127, fmax(-128, rint(x * STEPS)));
}

static mpl_status add_scale(quantising *self, const char *base, const char *more, float x,
                            mpl_value *out)
{
    char name[NAME_SIZE];

    snprintf(name, sizeof name, "%.200s%s.scale", base, more);
    return mpl_graph_add_const(self->ctx, self->to, name, MPL_TYPE_f32, &(mpl_shape){0, {0}}, &x,
                               false, out);
}

/* ---- operands ---- */

/* A weight, or a constant in steps, of that type. */
static mpl_status add_weight(quantising *self, mpl_value v, mpl_type type, mpl_value *out)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint64_t n = g->value_splat[v] ? 1 : (uint64_t)mpl_count(&g->value_shape[v]);
    char name[NAME_SIZE];
    void *data = NULL;

    snprintf(name, sizeof name, "%.200s%s%s", g->value_name[v],
             mpl_graph_find(self->to, g->value_name[v]) != MPL_NONE ? "." : "",
             mpl_graph_find(self->to, g->value_name[v]) != MPL_NONE ? mpl_type_name(type) : "");
    if (g->value_data[v] == NULL)
        return mpl_graph_add_value(self->ctx, self->to, name, (mpl_role)g->value_role[v], type,
                                   &g->value_shape[v], out);
    if ((data = mpl_alloc(self->ctx, n + 1, mpl_type_bytes(type))) == NULL)
        return MPL_EMEM;
    for (uint64_t i = 0; i < n; i++) {
        double x = mpl_get(MPL_TYPE_f32, g->value_data[v], (int64_t)i);

        mpl_put(type, data, (int64_t)i, type == MPL_TYPE_f32 ? x : (double)steps_of(x));
    }
    st = mpl_graph_add_const(self->ctx, self->to, name, type, &g->value_shape[v], data,
                             g->value_splat[v], out);
    mpl_free(self->ctx, data);
    return st;
}

/* v in int8, or as it was. */
static mpl_status narrow(quantising *self, mpl_value v, mpl_value *out)
{
    if (v != MPL_NONE && self->map[v] == MPL_NONE)
        MPL_PASS(add_weight(self, v, MPL_TYPE_i8, &self->map[v]));
    *out = v != MPL_NONE ? self->map[v] : MPL_NONE;
    return MPL_OK;
}

/* v in int8 and its scale. Of `terms` terms (0: none), a weight has about twice the variance of
 * their mean; a number has its own scale. */
static mpl_status scaled(quantising *self, mpl_value v, int64_t terms, const char *name,
                         const char *part, mpl_value *out, mpl_value *scale)
{
    const mpl_graph *g = self->g;
    char text[NAME_SIZE];
    static const int8_t half = 64;

    *scale = self->scale;
    if (is_number(g, v)) {
        snprintf(text, sizeof text, "%.200s%s", name, part);
        MPL_PASS(mpl_graph_add_const(self->ctx, self->to, text, MPL_TYPE_i8, &g->value_shape[v],
                                     &half, false, out));
        return add_scale(self, name, part, (float)number_of(g, v) / (float)half, scale);
    }
    if (terms > 0 && g->value_role[v] == MPL_WEIGHT)
        MPL_PASS(add_scale(self, name, part, (float)(sqrt(2 / (double)terms) / 73), scale));
    return narrow(self, v, out);
}

/* Adds `kind` with g's attributes of `op` and more; its output is v of g. */
static mpl_status add_op(quantising *self, mpl_op op, mpl_op_kind kind, uint32_t n_in,
                         const mpl_value *in, uint32_t n_more, const mpl_attr *more, mpl_value v)
{
    mpl_status st = MPL_OK;
    mpl_attr *attr = NULL, all[24];
    uint32_t n = 0;

    MPL_TRY(mpl_copy_attrs(self->ctx, self->g, op, &n, &attr));
    mpl_assert(n + n_more <= sizeof all / sizeof *all);
    for (uint32_t i = 0; i < n; i++)
        all[i] = attr[i];
    for (uint32_t i = 0; i < n_more; i++)
        all[n++] = more[i];
    MPL_TRY(mpl_graph_add_op(self->ctx, self->to, kind, self->g->op_name[op], n_in, in, n, all, 1,
                             (const char *[]){self->g->value_name[v]}, &self->map[v]));
out:
    mpl_free(self->ctx, attr);
    return st;
}

/* ---- products ---- */

/* The only operation that reads v, if v is its first operand; else MPL_NONE. */
static mpl_op only_reader(const mpl_graph *g, mpl_value v)
{
    mpl_op op;

    if (g->value_use_begin[v + 1] - g->value_use_begin[v] != 1 || g->value_role[v] == MPL_OUTPUT)
        return MPL_NONE;
    op = g->value_use[g->value_use_begin[v]];
    return first_in(g, op) == v ? op : MPL_NONE;
}

/* The limits of a relu, or of a clip to numbers. */
static bool limits_of(const mpl_graph *g, mpl_op op, int64_t limit[2])
{
    limit[0] = 0, limit[1] = 127;
    if (g->op_kind[op] == MPL_OP_relu)
        return true;
    if (g->op_kind[op] != MPL_OP_clip || !is_number(g, mpl_op_input(g, op, 1)) ||
        !is_number(g, mpl_op_input(g, op, 2)))
        return false;
    limit[0] = steps_of(number_of(g, mpl_op_input(g, op, 1)));
    limit[1] = steps_of(number_of(g, mpl_op_input(g, op, 2)));
    return true;
}

/* The product `op`, with what follows it: bias, batch norm, limits. */
static mpl_status add_product(quantising *self, mpl_op op, mpl_op_kind kind, int64_t terms)
{
    const mpl_graph *g = self->g;
    const char *name = g->op_name[op];
    mpl_value in[9] = {MPL_NONE, MPL_NONE,    MPL_NONE, MPL_NONE, MPL_NONE,
                       MPL_NONE, self->scale, MPL_NONE, MPL_NONE};
    mpl_value y = mpl_op_output(g, op, 0), bias = mpl_op_input(g, op, 2);
    mpl_op next = only_reader(g, y);
    int64_t limit[2];
    bool limited = false;

    if (next != MPL_NONE && g->op_kind[next] == MPL_OP_batch_norm && bias == MPL_NONE) {
        bias = mpl_op_input(g, next, 2);
        self->done[next] = 1;
        y = mpl_op_output(g, next, 0);
        next = only_reader(g, y);
    }
    if (next != MPL_NONE && limits_of(g, next, limit)) {
        limited = true;
        self->done[next] = 1;
        y = mpl_op_output(g, next, 0);
    }
    MPL_PASS(scaled(self, first_in(g, op), 0, name, ".x", &in[0], &in[2]));
    MPL_PASS(scaled(self, mpl_op_input(g, op, 1), terms, name, ".w", &in[1], &in[4]));
    if (bias != MPL_NONE && self->bias[bias] == MPL_NONE)
        MPL_PASS(add_weight(self, bias, MPL_TYPE_i32, &self->bias[bias]));
    in[8] = bias != MPL_NONE ? self->bias[bias] : MPL_NONE;
    return add_op(self, op, kind, 9, in, limited ? 2 : 0,
                  (const mpl_attr[]){MPL_INT(low, limited ? limit[0] : 0),
                                     MPL_INT(high, limited ? limit[1] : 0)},
                  y);
}

/* Terms of the sums of a product that has a quantised form; 0: it has none. */
static int64_t terms_of(const mpl_graph *g, mpl_op op)
{
    mpl_value b = mpl_op_input(g, op, 1), c = mpl_op_input(g, op, 2);
    const mpl_shape *shape = b != MPL_NONE ? &g->value_shape[b] : NULL;

    if (shape == NULL || shape->rank < 2 || g->value_shape[first_in(g, op)].rank < 2)
        return 0;
    if (g->op_kind[op] == MPL_OP_conv)
        return mpl_count_dims(shape, 1, shape->rank);
    if (g->op_kind[op] == MPL_OP_matmul)
        return shape->dim[shape->rank - 2];
    if (g->op_kind[op] != MPL_OP_gemm || mpl_attr_int(g, op, MPL_ATTR_trans_a, 0) != 0 ||
        mpl_attr_float(g, op, MPL_ATTR_alpha, 1) != 1 ||
        mpl_attr_float(g, op, MPL_ATTR_beta, 1) != 1 ||
        (c != MPL_NONE && (g->value_role[c] != MPL_WEIGHT || g->value_shape[c].rank != 1)))
        return 0;
    return shape->dim[mpl_attr_int(g, op, MPL_ATTR_trans_b, 0) != 0];
}

/* ---- other operators ---- */

static bool is_move(mpl_op_kind kind)
{
    switch (kind) {
    case MPL_OP_transpose:
    case MPL_OP_slice:
    case MPL_OP_split:
    case MPL_OP_concat:
    case MPL_OP_expand:
    case MPL_OP_tile:
    case MPL_OP_pad:
    case MPL_OP_gather:
    case MPL_OP_gather_nd:
    case MPL_OP_scatter_nd:
    case MPL_OP_where:
    case MPL_OP_max_pool:
    case MPL_OP_assign:
    case MPL_OP_access:
        return true;
    default:
        return (mpl_op_table[kind].traits & MPL_VIEW) != 0;
    }
}

static bool touches_f32(const mpl_graph *g, mpl_op op)
{
    bool any = false;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        any = any || is_f32(g, g->op_in[i]);
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        any = any || is_f32(g, g->op_out[i]);
    return any;
}

static mpl_status add_move(quantising *self, mpl_op op)
{
    mpl_value v;

    for (uint32_t i = 0; i < mpl_op_n_in(self->g, op); i++)
        MPL_PASS(narrow(self, mpl_op_input(self->g, op, i), &v));
    return mpl_copy_op(self->ctx, self->g, op, self->to, self->map, NULL);
}

static mpl_status add_elementwise(quantising *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    const char *of = mpl_op_table[g->op_kind[op]].name;
    mpl_value in[8] = {MPL_NONE, MPL_NONE, self->scale, MPL_NONE,
                       MPL_NONE, MPL_NONE, MPL_NONE,    MPL_NONE};
    bool two = mpl_op_n_in(g, op) == 2;

    MPL_PASS(scaled(self, first_in(g, op), 0, g->op_name[op], ".x", &in[0], &in[1]));
    if (two)
        MPL_PASS(scaled(self, mpl_op_input(g, op, 1), 0, g->op_name[op], ".z", &in[5], &in[6]));
    return add_op(self, op, MPL_OP_qelementwise, two ? 8 : 3, in, 1, &MPL_TEXT(of, of),
                  mpl_op_output(g, op, 0));
}

/* Operand i in f32: wide[v]. */
static mpl_status widen(quantising *self, mpl_op op, uint32_t i)
{
    const mpl_graph *g = self->g;
    mpl_value v = mpl_op_input(g, op, i);
    char text[NAME_SIZE];
    const char *name = text;

    if (v == MPL_NONE || (g->value_role[v] == MPL_WEIGHT && self->wide[v] != MPL_NONE))
        return MPL_OK;
    if (!is_f32(g, v))
        self->wide[v] = self->map[v];
    else if (g->value_role[v] == MPL_WEIGHT &&
             (g->value_data[v] != NULL || self->map[v] == MPL_NONE))
        return add_weight(self, v, MPL_TYPE_f32, &self->wide[v]);
    else {
        snprintf(text, sizeof text, "%.200s.wide%u", g->op_name[op], i);
        return mpl_graph_add_op(self->ctx, self->to, MPL_OP_dequantize, name, 2,
                                (mpl_value[]){self->map[v], self->scale}, 0, NULL, 1, &name,
                                &self->wide[v]);
    }
    return MPL_OK;
}

/* The operation in f32; what it makes is quantised. */
static mpl_status add_wide(quantising *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    char text[4][NAME_SIZE];
    const char *name[4];
    uint32_t n = mpl_op_n_out(g, op);

    if (n > 4 || g->op_body_begin[op] < g->op_body_begin[op + 1])
        return MPL_REFUSE(self->ctx, "operation '%.100s' (%s) has no int8 form", g->op_name[op],
                          mpl_op_table[g->op_kind[op]].name);
    for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
        MPL_PASS(widen(self, op, i));
    for (uint32_t i = 0; i < n; i++) {
        mpl_value v = mpl_op_output(g, op, i);

        snprintf(text[i], NAME_SIZE, "%.200s%s", v != MPL_NONE ? g->value_name[v] : "",
                 is_f32(g, v) ? ".wide" : "");
        name[i] = text[i];
    }
    MPL_PASS(mpl_copy_op_as(self->ctx, g, op, self->to, self->wide, NULL,
                            &(mpl_copy_as){.out_name = name}));
    for (uint32_t i = 0; i < n; i++) {
        mpl_value v = mpl_op_output(g, op, i);

        if (v != MPL_NONE && !is_f32(g, v))
            self->map[v] = self->wide[v];
        else if (v != MPL_NONE)
            MPL_PASS(mpl_graph_add_op(self->ctx, self->to, MPL_OP_quantize, g->value_name[v], 2,
                                      (mpl_value[]){self->wide[v], self->scale}, 1,
                                      &MPL_TEXT(to, "i8"), 1, (const char *[]){g->value_name[v]},
                                      &self->map[v]));
    }
    return MPL_OK;
}

static mpl_status add_form(quantising *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    int64_t terms;
    mpl_value x;

    if (!touches_f32(g, op))
        return mpl_copy_op(self->ctx, g, op, self->to, self->map, NULL);
    if ((kind == MPL_OP_conv || kind == MPL_OP_gemm || kind == MPL_OP_matmul) &&
        (terms = terms_of(g, op)) > 0)
        return add_product(self, op, kind == MPL_OP_conv ? MPL_OP_qconv : MPL_OP_qmatmul, terms);
    if (is_move(kind) && is_f32(g, mpl_op_output(g, op, 0)))
        return add_move(self, op);
    if (kind == MPL_OP_avg_pool) {
        MPL_PASS(narrow(self, first_in(g, op), &x));
        return add_op(self, op, MPL_OP_qavg_pool, 3, (mpl_value[]){x, self->scale, self->scale}, 0,
                      NULL, mpl_op_output(g, op, 0));
    }
    if (mpl_qelementwise_has(mpl_op_table[kind].name, mpl_op_n_in(g, op)))
        return add_elementwise(self, op);
    return add_wide(self, op);
}

static mpl_status add_value(quantising *self, mpl_value v)
{
    const mpl_graph *g = self->g;

    if (!is_f32(g, v) && g->value_data[v] != NULL)
        return mpl_graph_add_const(self->ctx, self->to, g->value_name[v],
                                   (mpl_type)g->value_type[v], &g->value_shape[v], g->value_data[v],
                                   g->value_splat[v], &self->map[v]);
    if (is_f32(g, v) && g->value_role[v] == MPL_WEIGHT)
        return MPL_OK; /* its reader decides its type */
    return mpl_graph_add_value(self->ctx, self->to, g->value_name[v], (mpl_role)g->value_role[v],
                               is_f32(g, v) ? MPL_TYPE_i8 : (mpl_type)g->value_type[v],
                               &g->value_shape[v], &self->map[v]);
}

mpl_status mpl_graph_int8(mpl_ctx *ctx, const mpl_graph *g, const char *name, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    quantising q = {.ctx = ctx, .g = g};
    mpl_walk walk = mpl_walk_begin();
    mpl_item item;

    if (g->n_blocks > 1 || g->program)
        MPL_FAIL(ctx, MPL_EINPUT, "graph '%s': loops, branches and programs have no int8 form",
                 g->name);
    MPL_TRY(mpl_new_each(ctx, g->n_values, q.map, q.bias, q.wide));
    MPL_TRY(mpl_new(ctx, q.done, g->n_ops));
    memset(q.map, 0xff, g->n_values * sizeof *q.map);
    memset(q.bias, 0xff, g->n_values * sizeof *q.bias);
    memset(q.wide, 0xff, g->n_values * sizeof *q.wide);
    MPL_TRY(mpl_graph_new(ctx, name, &q.to));
    MPL_TRY(add_scale(&q, "int8", "", 1.0f / STEPS, &q.scale));
    while ((item = mpl_walk_next(g, &walk)) != MPL_ITEM_END)
        if (item == MPL_ITEM_VALUE)
            MPL_TRY(add_value(&q, walk.value));
        else if (!q.done[walk.op])
            MPL_TRY(add_form(&q, walk.op));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        MPL_TRY(mpl_graph_add_output(ctx, q.to, q.map[g->output[i]]));
    MPL_TRY(mpl_graph_finish(ctx, q.to));
    *out = q.to, q.to = NULL;
out:
    mpl_graph_free(ctx, q.to);
    mpl_free_each(ctx, q.map, q.bias, q.wide, q.done);
    return st;
}
