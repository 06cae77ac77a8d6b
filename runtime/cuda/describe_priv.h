/* describe_priv.h -- shared by describe*.c: an operation as launches of our own kernels. */
#pragma once

#include "graphs/ir/counts.h"
#include "graphs/ops/ops_priv.h"
#include "runtime/cuda/device.h"

typedef struct mpl_maker {
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_op op;
    mpl_op_kind kind;
    uint32_t n_in, n_out;
    mpl_cuda_part *part;
    size_t room;
    uint32_t n;
    bool refused; /* no kernel computes it with these operands and attributes */
} mpl_maker;

static inline mpl_value in_of(const mpl_maker *maker, uint32_t i)
{
    return mpl_op_input(maker->g, maker->op, i);
}

static inline mpl_value out_of(const mpl_maker *maker, uint32_t i)
{
    return mpl_op_output(maker->g, maker->op, i);
}

static inline const mpl_shape *in_shape(const mpl_maker *maker, uint32_t i)
{
    return &maker->g->value_shape[in_of(maker, i)];
}

static inline const mpl_shape *out_shape(const mpl_maker *maker, uint32_t i)
{
    return &maker->g->value_shape[out_of(maker, i)];
}

static inline mpl_type type_of(const mpl_maker *maker, mpl_value v)
{
    return (mpl_type)maker->g->value_type[v];
}

static inline int64_t attr_int(const mpl_maker *maker, mpl_attr_key key, int64_t otherwise)
{
    return mpl_attr_int(maker->g, maker->op, key, otherwise);
}

static inline double attr_float(const mpl_maker *maker, mpl_attr_key key, double otherwise)
{
    return mpl_attr_float(maker->g, maker->op, key, otherwise);
}

static inline bool attr_is(const mpl_maker *maker, mpl_attr_key key, const char *otherwise,
                           const char *text)
{
    return strcmp(mpl_attr_text(maker->g, maker->op, key, otherwise), text) == 0;
}

static inline uint32_t axis_of(int64_t axis, uint32_t rank)
{
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

/* Adds a launch over n items with all inputs and output 0; the caller fills in the rest. */
mpl_status mpl_maker_add(mpl_maker *maker, mpl_cuda_kernel_id id, int64_t n, mpl_cuda_part **out);
/* Leaves the operation to the host. */
mpl_status mpl_maker_refuse(mpl_maker *maker);
/* Copies input 0 to output 0; runs nothing if they are the same memory. */
mpl_status mpl_maker_copy(mpl_maker *maker);
/* Adds a launch with the window of a pool from `in` to `to`; *out (may be NULL) is that window. */
mpl_status mpl_maker_window(mpl_maker *maker, mpl_cuda_kernel_id id, const mpl_shape *in,
                            const mpl_shape *to, mpl_cuda_window **out);

/* Each fills in the launches of some operators, or refuses them. */
typedef mpl_status mpl_describe(mpl_maker *m);
/* NULL: that file has no kernel for the operator. */
mpl_describe *mpl_describe_move(mpl_op_kind kind);
mpl_describe *mpl_describe_train(mpl_op_kind kind);
