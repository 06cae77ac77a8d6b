/* one_op.h -- runs one operator by its shape rule and reference loops; for the tests of graphs/ops. */
#ifndef MPL_TEST_ONE_OP_H
#define MPL_TEST_ONE_OP_H

#include "tests/test.h"
#include "graphs/ops/ops_priv.h"

enum { MAX_OPERANDS = 6, MAX_OUTPUTS = 4, IN_NEW_MEMORY = -1 };

/* An operand: elements as doubles, or as they are stored (raw). Both NULL and rank LEFT_OUT: an input left out. */
#define LEFT_OUT UINT32_MAX
typedef struct operand {
    mpl_type type;
    mpl_shape shape;
    const double *data;
    const void *raw;
} operand;

/* What came out; made by apply, freed by result_free. */
typedef struct result {
    uint32_t n_out;
    mpl_type type[MAX_OUTPUTS];
    mpl_shape shape[MAX_OUTPUTS];
    void *data[MAX_OUTPUTS];
} result;

static inline size_t bytes_of_shape(mpl_type type, const mpl_shape *shape)
{
    return (size_t)mpl_count(shape) * mpl_type_bytes(type);
}

/* Exactly as many bytes as there are, so that the sanitizer sees each touch outside. */
static inline void *stored(const operand *o)
{
    size_t bytes = bytes_of_shape(o->type, &o->shape);
    char *data = malloc(bytes > 0 ? bytes : 1);

    assert_non_null(data);
    if (o->raw != NULL)
        memcpy(data, o->raw, bytes);
    for (int64_t i = 0; i < mpl_count(&o->shape) && o->raw == NULL; i++)
        mpl_put(o->type, data, i, o->data[i]);
    return data;
}

static inline void result_free(result *r)
{
    for (uint32_t i = 0; i < r->n_out; i++)
        free(r->data[i]);
    r->n_out = 0;
}

/* A graph of one operation; its values are inputs 0 to n_in - 1, then the outputs. */
static inline mpl_status one_op(mpl_ctx *ctx, mpl_op_kind kind, uint32_t n_in, const operand *in,
                                uint32_t n_attr, const mpl_attr *attr, uint32_t n_out, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    static const char *const names[] = {"y0", "y1", "y2", "y3"};
    mpl_graph *g = NULL;
    mpl_value value[MAX_OPERANDS];

    MPL_TRY(mpl_graph_new(ctx, "one", &g));
    for (uint32_t i = 0; i < n_in; i++) {
        char name[] = {'x', (char)('0' + i), '\0'};

        value[i] = MPL_NONE;
        if (in[i].shape.rank != LEFT_OUT)
            MPL_TRY(mpl_graph_add_value(ctx, g, name, MPL_INPUT, in[i].type, &in[i].shape, &value[i]));
    }
    MPL_TRY(mpl_graph_add_op(ctx, g, kind, "op", n_in, value, n_attr, attr, n_out, names, NULL));
    *out = g, g = NULL;
out:
    mpl_graph_free(ctx, g);
    return st;
}

/* Infers, then computes; into the memory of input `place`, unless that is IN_NEW_MEMORY. */
static inline mpl_status apply(mpl_ctx *ctx, mpl_op_kind kind, uint32_t n_in, const operand *in,
                               uint32_t n_attr, const mpl_attr *attr, uint32_t n_out, int place, result *r)
{
    mpl_status st = MPL_OK;
    mpl_graph *g = NULL;
    mpl_tensor x[MAX_OPERANDS] = {{0}}, y[MAX_OUTPUTS] = {{0}};

    r->n_out = 0;
    MPL_TRY(one_op(ctx, kind, n_in, in, n_attr, attr, n_out, &g));
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i].shape.rank != LEFT_OUT)
            x[i] = (mpl_tensor){in[i].type, in[i].shape, stored(&in[i])};
    for (uint32_t i = 0; i < n_out; i++) {
        mpl_value v = g->op_out[g->op_out_begin[0] + i];
        size_t bytes = (size_t)g->value_bytes[v];

        y[i] = (mpl_tensor){(mpl_type)g->value_type[v], g->value_shape[v], NULL};
        if (i == 0 && place != IN_NEW_MEMORY)
            y[i].data = x[place].data;
        else {
            y[i].data = malloc(bytes > 0 ? bytes : 1);
            memset(y[i].data, 0xa5, bytes > 0 ? bytes : 1);
        }
        r->type[i] = y[i].type;
        r->shape[i] = y[i].shape;
        r->data[i] = y[i].data;
    }
    r->n_out = n_out;
    MPL_TRY(mpl_eval(ctx, &(mpl_op_call){g, 0, n_in, n_out, x, y, NULL}));
out:
    for (uint32_t i = 0; i < n_in; i++)
        if (x[i].data != r->data[0] || r->n_out == 0)
            free(x[i].data);
    if (st != MPL_OK)
        result_free(r);
    mpl_graph_free(ctx, g);
    return st;
}

#endif
