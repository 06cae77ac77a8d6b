/* rescale.c -- see rescale.h. */
#include "runtime/cpu/loops/rescale.h"
#include "graphs/ops/quant/quant_priv.h"
#include "runtime/cpu/loops/byte_loops.h"
#include "runtime/cpu/loops/chain_priv.h"

enum { PIECE = 512 };
enum { X, X_SCALE, Y_SCALE, X_ZERO, Y_ZERO, Z, Z_SCALE, Z_ZERO }; /* of qelementwise */

static bool is_byte(mpl_type type)
{
    return type == MPL_TYPE_u8 || type == MPL_TYPE_i8;
}

static mpl_byte_range range_of(const mpl_op_call *call, double zero)
{
    mpl_requant r = mpl_requant_of(call);

    return (mpl_byte_range){(float)r.low, (float)r.high, (float)zero};
}

/* ---- between floats and bytes ---- */

static mpl_status quantize(mpl_ctx *ctx, const mpl_op_call *call)
{
    mpl_byte_range r = range_of(call, mpl_q_at(call, 2, 0, 0));

    (void)ctx;
    mpl_byte_loops_here()->quantize(call->out[0].data, call->in[0].data,
                                    (float)mpl_q_at(call, 1, 0, 1), &r,
                                    mpl_count(&call->out[0].shape));
    return MPL_OK;
}

static mpl_status dequantize(mpl_ctx *ctx, const mpl_op_call *call)
{
    (void)ctx;
    mpl_byte_loops_here()->dequantize(
        call->out[0].data, call->in[0].data, call->in[0].type == MPL_TYPE_i8,
        (float)mpl_q_at(call, 2, 0, 0), (float)mpl_q_at(call, 1, 0, 1),
        mpl_count(&call->out[0].shape));
    return MPL_OK;
}

static mpl_status dynamic_quantize(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_byte_loops *loops = mpl_byte_loops_here();
    int64_t n = mpl_count(&call->in[0].shape);
    float least, most, scale, zero;
    mpl_byte_range r;

    (void)ctx;
    loops->bounds(call->in[0].data, n, &least, &most);
    scale = most == least ? 1 : (most - least) / 255;
    zero = rintf(fminf(fmaxf(-least / scale, 0), 255));
    r = range_of(call, (double)zero);
    loops->quantize(call->out[0].data, call->in[0].data, scale, &r, n);
    *(float *)call->out[1].data = scale;
    *(uint8_t *)call->out[2].data = (uint8_t)zero;
    return MPL_OK;
}

/* Of i32; the result may lie over it. */
static mpl_status cast(mpl_ctx *ctx, const mpl_op_call *call)
{
    const int32_t *x = call->in[0].data;
    int64_t all = mpl_count(&call->out[0].shape);
    int32_t piece[PIECE];

    (void)ctx;
    for (int64_t at = 0, n; at < all; at += n) {
        n = all - at < PIECE ? all - at : PIECE;
        memcpy(piece, x + at, (size_t)n * sizeof *piece);
        mpl_byte_loops_here()->ints_to_floats((float *)call->out[0].data + at, piece, n);
    }
    return MPL_OK;
}

/* By one exponent; the result may lie over x. */
static mpl_status power(mpl_ctx *ctx, const mpl_op_call *call)
{
    mpl_chain_step *step = mpl_chain_step_of(MPL_OP_pow, mpl_chain_widest());
    int64_t all = mpl_count(&call->out[0].shape);
    const float *x = call->in[0].data;
    float exponent[PIECE], piece[PIECE], *y = call->out[0].data;

    (void)ctx;
    for (int64_t i = 0; i < PIECE; i++)
        exponent[i] = *(const float *)call->in[1].data;
    for (int64_t at = 0, n; at < all; at += n) {
        n = all - at < PIECE ? all - at : PIECE;
        step(piece, x + at, exponent, n);
        memcpy(y + at, piece, (size_t)n * sizeof *piece);
    }
    return MPL_OK;
}

/* ---- between bytes ---- */

/* Each of the 256 bytes by the plain loops, then by table. */
static mpl_status look_up(mpl_ctx *ctx, const mpl_op_call *call)
{
    uint8_t all[256], table[256], *y = call->out[0].data;
    const uint8_t *x = call->in[X].data;
    mpl_tensor in[Z_ZERO + 1], out = call->out[0];
    mpl_op_call each = *call;

    for (int i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    memcpy(in, call->in, call->n_in * sizeof *in);
    in[X].shape = out.shape = (mpl_shape){1, {256}};
    in[X].data = all, out.data = table;
    each.in = in, each.out = &out;
    MPL_PASS(mpl_eval(ctx, &each));
    for (int64_t i = 0, n = mpl_count(&call->out[0].shape); i < n; i++)
        y[i] = table[x[i]];
    return MPL_OK;
}

/* n elements of an operand from `at` on, as floats; of a single element: n times. */
static void load(const mpl_op_call *call, const uint32_t operand[3], int64_t at, int64_t n,
                 float *to)
{
    const mpl_tensor *tensor = &call->in[operand[0]];
    float scale = (float)mpl_q_at(call, operand[1], 0, 1);
    float zero = (float)mpl_q_at(call, operand[2], 0, 0);
    bool single = mpl_count(&tensor->shape) == 1;

    mpl_byte_loops_here()->dequantize(to, (const uint8_t *)tensor->data + (single ? 0 : at),
                                      tensor->type == MPL_TYPE_i8, zero, scale, single ? 1 : n);
    for (int64_t i = 1; i < n && single; i++)
        to[i] = to[0];
}

/* The loop of an operator that floats compute exactly alike; NULL: another. */
static mpl_chain_step *step_of(const mpl_graph *g, mpl_op op)
{
    static const struct {
        const char *name;
        mpl_op_kind kind;
    } exact[] = {{"add", MPL_OP_add}, {"sub", MPL_OP_sub}, {"mul", MPL_OP_mul}};
    const char *name = mpl_attr_text(g, op, MPL_ATTR_of, "");

    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        if (strcmp(name, exact[i].name) == 0)
            return mpl_chain_step_of(exact[i].kind, mpl_chain_widest());
    return NULL;
}

static mpl_status combine(mpl_ctx *ctx, const mpl_op_call *call)
{
    static const uint32_t operand[2][3] = {{X, X_SCALE, X_ZERO}, {Z, Z_SCALE, Z_ZERO}};
    mpl_chain_step *step = step_of(call->graph, call->op);
    mpl_byte_range r = range_of(call, mpl_q_at(call, Y_ZERO, 0, 0));
    float value[3][PIECE], scale = (float)mpl_q_at(call, Y_SCALE, 0, 1);
    int64_t all = mpl_count(&call->out[0].shape);

    (void)ctx;
    for (int64_t at = 0, n; at < all; at += n) {
        n = all - at < PIECE ? all - at : PIECE;
        for (uint32_t k = 0; k < 2; k++)
            load(call, operand[k], at, n, value[k]);
        step(value[2], value[0], value[1], n);
        mpl_byte_loops_here()->quantize((uint8_t *)call->out[0].data + at, value[2], scale, &r, n);
    }
    return MPL_OK;
}

/* ---- choosing ---- */

/* Whether it has the dims of the result, or one element. */
static bool is_even(const mpl_graph *g, mpl_op op, uint32_t i)
{
    const mpl_shape *shape = &g->value_shape[mpl_op_input(g, op, i)];

    return mpl_count(shape) == 1 ||
           mpl_shape_equal(shape, &g->value_shape[mpl_op_output(g, op, 0)]);
}

static mpl_type type_of(const mpl_graph *g, mpl_value v)
{
    return (mpl_type)g->value_type[v];
}

/* Whether quantize or dequantize has one scale and no block. */
static bool has_one_scale(const mpl_graph *g, mpl_op op)
{
    const mpl_shape *scale = &g->value_shape[mpl_op_input(g, op, 1)];

    return mpl_count(scale) == 1 && scale->rank <= 1 &&
           mpl_attr_int(g, op, MPL_ATTR_block_size, 0) == 0;
}

static mpl_rescale *elementwise_of(const mpl_graph *g, mpl_op op)
{
    mpl_type y = type_of(g, mpl_op_output(g, op, 0));
    bool two = mpl_op_n_in(g, op) > Z && mpl_op_input(g, op, Z) != MPL_NONE;

    if (!is_byte(y) || !is_byte(type_of(g, mpl_op_input(g, op, X))))
        return NULL;
    if (!two)
        return mpl_count(&g->value_shape[mpl_op_output(g, op, 0)]) > 256 ? look_up : NULL;
    return is_byte(type_of(g, mpl_op_input(g, op, Z))) && is_even(g, op, X) && is_even(g, op, Z) &&
                   step_of(g, op) != NULL
               ? combine
               : NULL;
}

static mpl_rescale *power_of(const mpl_graph *g, mpl_op op, const char **how)
{
    mpl_value x = mpl_op_input(g, op, 0), z = mpl_op_input(g, op, 1), y = mpl_op_output(g, op, 0);

    if (type_of(g, x) != MPL_TYPE_f32 || type_of(g, z) != MPL_TYPE_f32 ||
        mpl_count(&g->value_shape[z]) != 1 ||
        !mpl_shape_equal(&g->value_shape[x], &g->value_shape[y]))
        return NULL;
    *how = mpl_chain_how[mpl_chain_widest()];
    return power;
}

mpl_rescale *mpl_rescale_of(const mpl_graph *g, mpl_op op, const char **how)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    mpl_rescale *run = NULL;
    mpl_type x, y;

    if (kind != MPL_OP_quantize && kind != MPL_OP_dequantize && kind != MPL_OP_dynamic_quantize &&
        kind != MPL_OP_qelementwise && kind != MPL_OP_cast && kind != MPL_OP_pow)
        return NULL;
    if (kind == MPL_OP_pow)
        return power_of(g, op, how);
    x = type_of(g, mpl_op_input(g, op, 0)), y = type_of(g, mpl_op_output(g, op, 0));
    if (kind == MPL_OP_dynamic_quantize)
        run = dynamic_quantize;
    else if (kind == MPL_OP_qelementwise)
        run = elementwise_of(g, op);
    else if (kind == MPL_OP_cast && x == MPL_TYPE_i32 && y == MPL_TYPE_f32)
        run = cast;
    else if (kind == MPL_OP_quantize && has_one_scale(g, op) && x == MPL_TYPE_f32 && is_byte(y))
        run = quantize;
    else if (kind == MPL_OP_dequantize && has_one_scale(g, op) && is_byte(x) && y == MPL_TYPE_f32)
        run = dequantize;
    if (run != NULL)
        *how = mpl_byte_loops_here()->how;
    return run;
}

/* Of each image, the runs of all operands. */
static mpl_status join(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_graph *g = call->graph;
    const mpl_value *in = g->op_in + g->op_in_begin[call->op];
    int64_t n_images = g->value_shape[mpl_op_output(g, call->op, 0)].dim[0];
    char *to = call->out[0].data;

    (void)ctx;
    for (int64_t image = 0; image < n_images; image++)
        for (uint32_t i = 0; i < mpl_op_n_in(g, call->op); i++) {
            uint64_t run = g->value_bytes[in[i]] / (uint64_t)n_images;

            memcpy(to, (const char *)call->in[i].data + (uint64_t)image * run, run);
            to += run;
        }
    return MPL_OK;
}

mpl_rescale *mpl_join_of(const mpl_graph *g, mpl_op op, const char **how)
{
    if (g->op_kind[op] != MPL_OP_concat)
        return NULL;
    *how = "runs";
    return join;
}
