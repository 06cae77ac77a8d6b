/* fold_constants.c -- computes operations of constants while a graph is built. See passes.h.
 *
 * The operation is built on a scratch graph, which infers shapes, and evaluated there. */
#include "graphs/passes/passes.h"

#include "graphs/ops/matrix/conv.h"
#include "graphs/orders/work.h"

#include <math.h>

#define FOLD_BYTES  (UINT64_C(256) << 20) /* operands and results [byte] */
#define FOLD_WORK   (UINT64_C(1) << 28)   /* multiplications of a product */
#define FOLD_TOTAL  (UINT64_C(1) << 31)   /* bytes and work of all folding in one graph */
#define WINDOW_WORK 8                     /* of each byte in each element of a window */

typedef struct operation {
    mpl_op_kind kind;
    const char *name;
    uint32_t n_in, n_attr, n_out;
    const mpl_value *in; /* of graph g */
    const mpl_attr *attr;
    const char *const *out_name;
} operation;

static uint64_t count_of(const mpl_graph *g, mpl_value v)
{
    return (uint64_t)mpl_count(&g->value_shape[v]);
}

static bool is_constant(const mpl_graph *g, mpl_value v)
{
    return v == MPL_NONE || (g->value_role[v] == MPL_WEIGHT && g->value_data[v] != NULL);
}

/* Whether one element stands for all. */
static bool is_uniform(const mpl_graph *g, mpl_value v)
{
    return g->value_splat[v] != 0 || count_of(g, v) == 1;
}

/* Whether every output element is an element of input 0. */
static bool only_moves(mpl_op_kind kind)
{
    switch (kind) {
    case MPL_OP_reshape:
    case MPL_OP_flatten:
    case MPL_OP_squeeze:
    case MPL_OP_unsqueeze:
    case MPL_OP_identity:
    case MPL_OP_expand:
    case MPL_OP_transpose:
    case MPL_OP_slice:
    case MPL_OP_split:
    case MPL_OP_tile:
    case MPL_OP_depth_to_space:
    case MPL_OP_space_to_depth:
        return true;
    default:
        return false;
    }
}

/* Makes a graph of the one operation. Its inputs have the types of g's and, unless `scalar`, their
 * shapes. out[n_out] are its outputs. */
static mpl_status scratch_new(mpl_ctx *ctx, const mpl_graph *g, const operation *o, bool scalar,
                              mpl_graph **scratch, mpl_value *out)
{
    mpl_status st = MPL_OK;
    mpl_graph *s = NULL;
    mpl_value *in = NULL;
    const char **out_name = NULL;
    char(*text)[16] = NULL;

    MPL_TRY(mpl_graph_new(ctx, "", &s));
    MPL_TRY(mpl_new(ctx, in, o->n_in));
    MPL_TRY(mpl_new(ctx, out_name, o->n_out));
    MPL_TRY(mpl_new(ctx, text, (size_t)o->n_in + o->n_out));
    for (uint32_t i = 0; i < o->n_in; i++) {
        in[i] = MPL_NONE;
        snprintf(text[i], sizeof text[i], "in%u", i);
        if (o->in[i] != MPL_NONE)
            MPL_TRY(mpl_graph_add_value(
                ctx, s, text[i], MPL_WEIGHT, (mpl_type)g->value_type[o->in[i]],
                scalar ? &(mpl_shape){.rank = 0} : &g->value_shape[o->in[i]], &in[i]));
    }
    for (uint32_t i = 0; i < o->n_out; i++) {
        snprintf(text[o->n_in + i], sizeof *text, "out%u", i);
        out_name[i] = o->out_name[i] != NULL ? text[o->n_in + i] : NULL;
    }
    MPL_TRY(mpl_graph_add_op(ctx, s, o->kind, o->name, o->n_in, in, o->n_attr, o->attr, o->n_out,
                             out_name, out));
    *scratch = s, s = NULL;
out:
    mpl_graph_free(ctx, s);
    mpl_free_each(ctx, in, out_name, text);
    return st;
}

/* Expands constant v of g into newly allocated memory. */
static mpl_status expand_data(mpl_ctx *ctx, const mpl_graph *g, mpl_value v, void **data)
{
    MPL_PASS((*data = mpl_alloc(ctx, g->value_bytes[v], 1)) != NULL ? MPL_OK : MPL_EMEM);
    mpl_type_repeat((mpl_type)g->value_type[v], count_of(g, v), g->value_data[v], *data);
    return MPL_OK;
}

/* Evaluates the scratch graph's operation on constants of g into data[n_out]. */
static mpl_status evaluate(mpl_ctx *ctx, const mpl_graph *g, const operation *o, const mpl_graph *s,
                           bool scalar, const mpl_value *out, void **data)
{
    mpl_status st = MPL_OK;
    mpl_tensor *operand = NULL;
    void **owned = NULL;

    MPL_TRY(mpl_new(ctx, operand, (size_t)o->n_in + o->n_out));
    MPL_TRY(mpl_new(ctx, owned, o->n_in));
    for (uint32_t i = 0; i < o->n_in; i++) {
        mpl_value v = o->in[i];

        if (v == MPL_NONE)
            continue;
        operand[i].type = (mpl_type)g->value_type[v];
        operand[i].shape = scalar ? (mpl_shape){.rank = 0} : g->value_shape[v];
        operand[i].data = g->value_data[v];
        if (!scalar && g->value_splat[v]) {
            MPL_TRY(expand_data(ctx, g, v, &owned[i]));
            operand[i].data = owned[i];
        }
    }
    for (uint32_t i = 0; i < o->n_out; i++) {
        mpl_tensor *tensor = &operand[o->n_in + i];

        if (out[i] == MPL_NONE)
            continue;
        *tensor = (mpl_tensor){(mpl_type)s->value_type[out[i]], s->value_shape[out[i]], NULL};
        MPL_TRY((data[i] = mpl_alloc(ctx, s->value_bytes[out[i]], 1)) != NULL ? MPL_OK : MPL_EMEM);
        tensor->data = data[i];
    }
    MPL_TRY(
        mpl_eval(ctx, &(mpl_op_call){s, 0, o->n_in, o->n_out, operand, operand + o->n_in, NULL}));
out:
    for (uint32_t i = 0; i < o->n_in && owned != NULL; i++)
        mpl_free(ctx, owned[i]);
    mpl_free_each(ctx, owned, operand);
    return st;
}

static bool is_product(mpl_op_kind kind)
{
    return kind == MPL_OP_matmul || mpl_is_gemm(kind) || mpl_is_conv(kind) ||
           kind == MPL_OP_conv_transpose || kind == MPL_OP_max_pool || kind == MPL_OP_avg_pool ||
           kind == MPL_OP_lp_pool || kind == MPL_OP_lrn || kind == MPL_OP_top_k;
}

/* Work of the scratch graph's operation beyond its bytes, at most FOLD_TOTAL. */
static uint64_t work_of(const mpl_graph *s, uint64_t bytes)
{
    double window = mpl_op_window(s, 0);

    return window > 1 ? (uint64_t)fmin(WINDOW_WORK * window * (double)bytes, (double)FOLD_TOTAL)
                      : 0;
}

/* Whether evaluating costs little memory and time; if so, charges it to the total. */
static bool is_cheap(mpl_graph *g, const operation *o, const mpl_graph *s, const mpl_value *out)
{
    uint64_t bytes = 0, largest = 1, made = 1, work = 0;

    for (uint32_t i = 0; i < o->n_in; i++)
        if (o->in[i] != MPL_NONE) {
            if (!mpl_add_bytes(bytes, g->value_bytes[o->in[i]], &bytes))
                return false;
            largest = mpl_max_u64(largest, count_of(g, o->in[i]));
        }
    for (uint32_t i = 0; i < o->n_out; i++)
        if (out[i] != MPL_NONE) {
            if (!mpl_add_bytes(bytes, s->value_bytes[out[i]], &bytes))
                return false;
            made = mpl_max_u64(made, count_of(s, out[i]));
        }
    if (!is_product(o->kind))
        work = work_of(s, bytes);
    else if (!mpl_mul_bytes(largest, made, &work) || work > FOLD_WORK)
        return false;
    if (bytes > FOLD_BYTES || bytes + work > FOLD_TOTAL - g->folded)
        return false;
    g->folded += bytes + work;
    return true;
}

/* Adds results as constants of g, uniform ones as one element (`element` if there is no data). */
static mpl_status add_results(mpl_ctx *ctx, mpl_graph *g, const operation *o, const mpl_graph *s,
                              const mpl_value *at, void *const *data, const void *element,
                              mpl_value *out)
{
    for (uint32_t i = 0; i < o->n_out; i++) {
        mpl_value v = MPL_NONE;

        if (at[i] != MPL_NONE)
            MPL_PASS(mpl_graph_add_const(ctx, g, o->out_name[i], (mpl_type)s->value_type[at[i]],
                                         &s->value_shape[at[i]], data != NULL ? data[i] : element,
                                         data == NULL, &v));
        if (out != NULL)
            out[i] = v;
    }
    return MPL_OK;
}

/* Folds an element-wise operation of uniform constants by computing one element. */
static mpl_status fold_scalar(mpl_ctx *ctx, mpl_graph *g, const operation *o, const mpl_graph *s,
                              const mpl_value *at, mpl_value *out)
{
    mpl_status st = MPL_OK;
    mpl_graph *one = NULL;
    mpl_value v;
    void *element = NULL;

    MPL_TRY(scratch_new(ctx, g, o, true, &one, &v));
    MPL_TRY(evaluate(ctx, g, o, one, true, &v, &element));
    MPL_TRY(add_results(ctx, g, o, s, at, NULL, element, out));
out:
    mpl_graph_free(ctx, one);
    mpl_free(ctx, element);
    return st;
}

static mpl_status fold_full(mpl_ctx *ctx, mpl_graph *g, const operation *o, const mpl_graph *s,
                            const mpl_value *at, mpl_value *out)
{
    mpl_status st = MPL_OK;
    void **data = NULL;

    MPL_TRY(mpl_new(ctx, data, o->n_out));
    MPL_TRY(evaluate(ctx, g, o, s, false, at, data));
    MPL_TRY(add_results(ctx, g, o, s, at, data, NULL, out));
out:
    for (uint32_t i = 0; i < o->n_out && data != NULL; i++)
        mpl_free(ctx, data[i]);
    mpl_free(ctx, data);
    return st;
}

static mpl_status fold(mpl_ctx *ctx, mpl_graph *g, const operation *o, mpl_value *out, bool *folded)
{
    mpl_status st = MPL_OK;
    mpl_graph *s = NULL;
    mpl_value *at = NULL;
    bool uniform = o->n_out == 1 && (mpl_op_table[o->kind].traits & MPL_ELEMENTWISE) != 0;

    for (uint32_t i = 0; i < o->n_in && uniform; i++)
        uniform = o->in[i] == MPL_NONE || is_uniform(g, o->in[i]);
    MPL_TRY(mpl_new(ctx, at, o->n_out));
    MPL_TRY(scratch_new(ctx, g, o, false, &s, at));
    *folded = true;
    if (uniform)
        MPL_TRY(fold_scalar(ctx, g, o, s, at, out));
    else if (only_moves(o->kind) && is_uniform(g, o->in[0]))
        MPL_TRY(add_results(ctx, g, o, s, at, NULL, g->value_data[o->in[0]], out));
    else if (is_cheap(g, o, s, at))
        MPL_TRY(fold_full(ctx, g, o, s, at, out));
    else
        *folded = false;
out:
    mpl_graph_free(ctx, s);
    mpl_free(ctx, at);
    return st;
}

mpl_status mpl_graph_add_folded(mpl_ctx *ctx, mpl_graph *g, mpl_op_kind kind, const char *name,
                                uint32_t n_in, const mpl_value *in, uint32_t n_attr,
                                const mpl_attr *attr, uint32_t n_out, const char *const *out_name,
                                mpl_value *out)
{
    operation o = {kind, name, n_in, n_attr, n_out, in, attr, out_name};
    bool folded = false,
         constant = n_in > 0 && in[0] != MPL_NONE && (mpl_op_table[kind].traits & MPL_NO_FOLD) == 0;

    for (uint32_t i = 0; i < n_in && constant; i++)
        constant = is_constant(g, in[i]);
    if (constant)
        MPL_PASS(fold(ctx, g, &o, out, &folded));
    if (!folded)
        MPL_PASS(
            mpl_graph_add_op(ctx, g, kind, name, n_in, in, n_attr, attr, n_out, out_name, out));
    return MPL_OK;
}
