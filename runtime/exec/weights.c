/* weights.c -- the contents of weights and inputs: from the file, or pseudo-random from a seed and
 * the value's name.
 *
 * The range of a pseudo-random weight depends on the operation that reads it, so that activations
 * neither vanish nor explode through a hundred layers. Matrices and filters are uniform with
 * variance 2 / fan_in (He, Zhang, Ren, Sun, "Delving deep into rectifiers", 2015, equation 10). The
 * variance is a tenth of that if a softmax reads the product, so that all classes are about equally
 * likely when training begins. Scales and variances lie in [0.5, 1.5]; shifts, means and biases in
 * [-0.1, 0.1]. */
#include "graphs/core/rng.h"
#include "graphs/ops/matrix/conv.h"
#include "graphs/ops/ops_priv.h"
#include "runtime/exec/exec_priv.h"

#include <math.h>

/* parameter: it was trained; otherwise it is a constant of the graph, such as an exponent, an index
 * or a bound. */
typedef struct range {
    double low, high;
    bool parameter;
} range;

#define SCALE ((range){0.5, 1.5, true})
#define SHIFT ((range){-0.1, 0.1, true})
#define FIXED ((range){-1, 1, false})
#define STEPS ((range){-127, 127, true}) /* of int8 */

static range he(double fan_in)
{
    double limit = sqrt(6 / (fan_in > 1 ? fan_in : 1)); /* variance of uniform [-a, a]: a^2 / 3 */

    return (range){-limit, limit, true};
}

static double product(const mpl_shape *shape, uint32_t from)
{
    double n = 1;

    for (uint32_t i = from; i < shape->rank; i++)
        n *= (double)shape->dim[i];
    return n;
}

/* Number of terms in the sums in which a weight of a matrix product takes part. */
static double product_depth(const mpl_graph *g, mpl_op op, uint32_t operand, const mpl_shape *shape)
{
    bool turned = mpl_attr_int(g, op, operand == 0 ? MPL_ATTR_trans_a : MPL_ATTR_trans_b, 0) != 0;

    if (shape->rank < 2)
        return product(shape, 0);
    return (double)shape->dim[shape->rank - ((operand == 0) != turned ? 1 : 2)];
}

/* In element-wise arithmetic, one number for each channel is a parameter, a single one constant. */
static range arithmetic(bool single, range parameter)
{
    return single ? FIXED : parameter;
}

/* Whether a softmax reads the operation's output. */
static bool feeds_softmax(const mpl_graph *g, mpl_op op)
{
    mpl_value y = g->op_out[g->op_out_begin[op]];

    for (uint32_t k = g->value_use_begin[y]; k < g->value_use_begin[y + 1]; k++) {
        mpl_op_kind kind = (mpl_op_kind)g->op_kind[g->value_use[k]];

        if (kind == MPL_OP_softmax || kind == MPL_OP_log_softmax ||
            kind == MPL_OP_softmax_cross_entropy)
            return true;
    }
    return false;
}

/* The same for all products that read the operand: with recomputation, the first one need not be
 * the relevant one. */
static bool is_logits(const mpl_graph *g, mpl_op op, uint32_t operand)
{
    mpl_value w = g->op_in[g->op_in_begin[op] + operand];

    for (uint32_t k = g->value_use_begin[w]; k < g->value_use_begin[w + 1]; k++)
        if (g->op_kind[g->value_use[k]] == g->op_kind[op] && feeds_softmax(g, g->value_use[k]))
            return true;
    return false;
}

static range conv_range(uint32_t operand, const mpl_shape *shape)
{
    return operand == 1 ? he(product(shape, 1)) : operand == 2 ? SHIFT : (range){-1, 1, true};
}

static range product_range(const mpl_graph *g, mpl_op op, uint32_t operand, const mpl_shape *shape,
                           bool single)
{
    return operand == 2
               ? arithmetic(single, SHIFT)
               : he(product_depth(g, op, operand, shape) * (is_logits(g, op, operand) ? 100 : 1));
}

/* shape: its dims as the operation sees them; single: it has one element. */
static range range_of(const mpl_graph *g, mpl_op op, uint32_t operand, const mpl_shape *shape,
                      bool single)
{
    switch (g->op_kind[op]) {
    case MPL_OP_conv:
    case MPL_OP_conv_act:
        return conv_range(operand, shape);
    case MPL_OP_conv_sum:
        return operand == 0 ? arithmetic(single, SHIFT) : conv_range(operand - 1, shape);
    case MPL_OP_conv_transpose:
        return operand == 1 ? he(product(shape, 0) / (shape->rank > 1 ? (double)shape->dim[1] : 1))
               : operand == 2 ? SHIFT
                              : (range){-1, 1, true};
    case MPL_OP_gemm:
    case MPL_OP_gemm_act:
    case MPL_OP_matmul:
        return product_range(g, op, operand, shape, single);
    case MPL_OP_gemm_sum:
        return operand == 0 ? arithmetic(single, SHIFT)
                            : product_range(g, op, operand - 1, shape, single);
    case MPL_OP_qconv:
    case MPL_OP_qmatmul:
        return operand == 1 ? STEPS : FIXED;
    case MPL_OP_batch_norm:
    case MPL_OP_batch_norm_train:
    case MPL_OP_batch_norm_again:
        return operand == 1 || operand == 4 ? SCALE : SHIFT;
    case MPL_OP_layer_norm:
    case MPL_OP_instance_norm:
    case MPL_OP_group_norm:
    case MPL_OP_rms_norm:
        return operand == 1 ? SCALE : SHIFT;
    case MPL_OP_prelu:
        return operand == 1 ? (range){0, 0.5, true} : FIXED;
    case MPL_OP_mul:
        return arithmetic(single, SCALE);
    case MPL_OP_fma:
        return arithmetic(single, operand == 2 ? SHIFT : SCALE);
    case MPL_OP_add:
    case MPL_OP_sub:
        return arithmetic(single, SHIFT);
    case MPL_OP_gather:
        return operand == 0 ? (range){-1, 1, true} : FIXED;
    default:
        return FIXED;
    }
}

/* Which operand of `op` is v; MPL_NONE: none, but a block of it hands v on. */
static uint32_t operand_of(const mpl_graph *g, mpl_op op, mpl_value v)
{
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        if (g->op_in[i] == v)
            return i - g->op_in_begin[op];
    return MPL_NONE;
}

/* Whether the result's elements are those of input 0, rearranged or repeated. The optimiser removes
 * such operations, and layouts add some. */
static bool moves(mpl_op_kind kind)
{
    switch (kind) {
    case MPL_OP_reorder:
    case MPL_OP_transpose:
    case MPL_OP_expand:
    case MPL_OP_tile:
    case MPL_OP_slice:
    case MPL_OP_cast:
        return true;
    default:
        return (mpl_op_table[kind].traits & MPL_VIEW) != 0;
    }
}

/* Chosen by the first operation that computes with it. */
static range weight_range(const mpl_graph *g, mpl_value v)
{
    bool single = mpl_count(&g->value_shape[v]) == 1;
    mpl_value read = v;

    for (;;) {
        uint32_t k = g->value_use_begin[read], operand = MPL_NONE;
        mpl_op_kind kind;

        while (k < g->value_use_begin[read + 1] &&
               (operand = operand_of(g, g->value_use[k], read)) == MPL_NONE)
            k++;
        if (operand == MPL_NONE)
            return FIXED;
        kind = (mpl_op_kind)g->op_kind[g->value_use[k]];
        if (!moves(kind))
            return range_of(g, g->value_use[k], operand, &g->value_shape[read], single);
        if (operand > 0)
            return FIXED; /* dims, or where to cut */
        read = g->op_out[g->op_out_begin[g->value_use[k]]];
    }
}

/* Sets element i of an array to x, rounded to float first if the type is narrower. */
static void put(mpl_type type, void *array, uint64_t i, double x)
{
    mpl_put(type, array, (int64_t)i, mpl_type_bytes(type) == 2 ? (double)(float)x : x);
}

static bool is_float(mpl_type type)
{
    return type <= MPL_TYPE_bf16;
}

/* The next n elements: uniform in the range; 0 and 1 for types that are not floating, unless the
 * range is STEPS. */
static void put_random(mpl_rng *rng, mpl_type type, const range *r, void *array, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        double u = mpl_rng_float(rng);

        if (is_float(type))
            put(type, array, i, r->low + (r->high - r->low) * u);
        else
            put(type, array, i,
                r->high == STEPS.high ? rint(r->low + (r->high - r->low) * u) : u >= 0.5);
    }
}

static void seed_by_name(mpl_rng *rng, uint64_t seed, const char *name)
{
    *rng = mpl_rng_of(mpl_hash(mpl_hash(MPL_HASH_SEED, &seed, sizeof seed), name, strlen(name)));
}

bool mpl_exec_is_random(const mpl_graph *g, const mpl_exec_options *options, mpl_value v)
{
    return g->value_data[v] == NULL || (options->random_weights && weight_range(g, v).parameter &&
                                        is_float((mpl_type)g->value_type[v]));
}

mpl_status mpl_weights_make(const mpl_graph *g, const mpl_exec_options *options, mpl_value v,
                            mpl_weight_sink *sink, void *arg)
{
    mpl_type type = (mpl_type)g->value_type[v];
    uint64_t n = (uint64_t)mpl_count(&g->value_shape[v]), bytes = 0;
    range r = weight_range(g, v);
    bool random = mpl_exec_is_random(g, options, v);
    mpl_rng rng;
    double piece[2048]; /* aligned for every type */
    uint64_t piece_n = 8 * sizeof piece / mpl_type_bits(type);

    if (!random && !g->value_splat[v])
        return sink(arg, v, 0, g->value_data[v], g->value_bytes[v]);
    seed_by_name(&rng, options->weight_seed, g->value_name[v]);
    memset(piece, 0, sizeof piece);
    if (!random)
        mpl_type_repeat(type, piece_n, g->value_data[v], piece);
    for (uint64_t i = 0, at = 0; i < n; i += piece_n, at += bytes) {
        uint64_t count = mpl_min_u64(piece_n, n - i);

        if (random)
            put_random(&rng, type, &r, piece, count);
        mpl_type_size(type, count, &bytes);
        MPL_PASS(sink(arg, v, at, piece, bytes));
    }
    return MPL_OK;
}

static mpl_status into_memory(void *arg, mpl_value v, uint64_t offset, const void *data,
                              uint64_t bytes)
{
    (void)v;
    if (bytes > 0)
        memcpy((char *)arg + offset, data, bytes);
    return MPL_OK;
}

void mpl_exec_make_weight(const mpl_graph *g, const mpl_exec_options *options, mpl_value v,
                          void *data)
{
    mpl_weights_make(g, options, v, into_memory, data);
}

mpl_status mpl_exec_make_input(mpl_ctx *ctx, const mpl_graph *g, uint32_t i, uint64_t seed,
                               void *data)
{
    mpl_value v;
    mpl_type type;
    mpl_rng rng;
    uint64_t n;

    if (i >= g->n_inputs)
        return MPL_REFUSE(ctx, "graph '%s' has %u inputs; there is no input %u", g->name,
                          g->n_inputs, i);
    v = g->input[i];
    type = (mpl_type)g->value_type[v];
    n = (uint64_t)mpl_count(&g->value_shape[v]);
    if (g->value_bytes[v] > 0)
        memset(data, 0, g->value_bytes[v]); /* what pads packed elements */
    if (seed != 0) {
        seed_by_name(&rng, seed, g->value_name[v]);
        put_random(&rng, type, &FIXED, data, n);
    } else {
        for (uint64_t k = 0; k < n; k++)
            put(type, data, k, (double)k / (double)n);
    }
    return MPL_OK;
}
