/* interpret.h -- runs a graph, blocks included, without planning. Each value has its own memory,
 * and a round begins with copies of its arguments. Shares only operator code with planners and
 * executor. */
#pragma once

#include "tests/support/test.h"

typedef struct interpreter {
    mpl_ctx *ctx;
    const mpl_graph *g;
    void **data;     /* [n_values] */
    uint64_t rounds; /* of all loops */
} interpreter;

static mpl_status interpret_block(interpreter *it, uint32_t block, bool *left);

static inline mpl_tensor interpret_tensor(const interpreter *it, mpl_value v)
{
    if (v == MPL_NONE)
        return (mpl_tensor){.data = NULL};
    return (mpl_tensor){(mpl_type)it->g->value_type[v], it->g->value_shape[v], it->data[v]};
}

static inline mpl_status interpret_op(interpreter *it, mpl_op op)
{
    const mpl_graph *g = it->g;
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op];
    mpl_tensor *operand = calloc(n_in + n_out + 1, sizeof *operand);
    mpl_status st;

    for (uint32_t i = 0; i < n_in; i++)
        operand[i] = interpret_tensor(it, g->op_in[g->op_in_begin[op] + i]);
    for (uint32_t i = 0; i < n_out; i++)
        operand[n_in + i] = interpret_tensor(it, g->op_out[g->op_out_begin[op] + i]);
    st = mpl_eval(it->ctx, &(mpl_op_call){g, op, n_in, n_out, operand, operand + n_in, NULL});
    free(operand);
    return st;
}

static inline bool interpret_true(const interpreter *it, mpl_value v)
{
    return v == MPL_NONE || *(const uint8_t *)it->data[v] != 0;
}

static inline void interpret_copy(interpreter *it, mpl_value to, const void *from)
{
    if (to != MPL_NONE && it->g->value_bytes[to] > 0)
        memcpy(it->data[to], from, it->g->value_bytes[to]);
}

/* Which slice or row of `most` the current round uses. */
static inline uint64_t interpret_place(const interpreter *it, mpl_op op, uint32_t flag,
                                       int64_t round, int64_t most)
{
    uint32_t n;
    const int64_t *reverse = mpl_attr_ints(it->g, op, MPL_ATTR_scan_reverse, &n);

    return (uint64_t)(n > 0 && reverse[flag] ? most - 1 - round : round);
}

static inline mpl_status interpret_while(interpreter *it, mpl_op op)
{
    const mpl_graph *g = it->g;
    const mpl_value *in = g->op_in + g->op_in_begin[op], *out = g->op_out + g->op_out_begin[op];
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op],
             b = g->op_body[g->op_body_begin[op]];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op];
    uint32_t n = (uint32_t)mpl_attr_int(g, op, MPL_ATTR_carried, 0), n_scans = n_in - 2 - n;
    const mpl_value *param = g->block_param + g->block_param_begin[b];
    const mpl_value *result = g->block_result + g->block_result_begin[b];
    int64_t most = mpl_while_most_rounds(g, op),
            trips = in[0] != MPL_NONE ? *(int64_t *)it->data[in[0]] : -1;
    bool go = interpret_true(it, in[1]), left = false;
    void **carried = calloc(n + 1, sizeof *carried);
    mpl_status st = MPL_OK;

    if (in[0] == MPL_NONE || (most >= 0 && trips > most))
        trips = most;
    for (uint32_t i = 0; i < n; i++) {
        carried[i] = malloc(g->value_bytes[in[2 + i]] + 1);
        memcpy(carried[i], it->data[in[2 + i]], g->value_bytes[in[2 + i]]);
    }
    for (uint32_t i = n; i < n_out; i++)
        if (out[i] != MPL_NONE)
            memset(it->data[out[i]], 0, g->value_bytes[out[i]]);
    for (int64_t round = 0; go && (trips < 0 ? in[0] == MPL_NONE && most < 0 : round < trips);
         round++) {
        *(int64_t *)it->data[param[0]] = round;
        for (uint32_t i = 0; i < n; i++)
            interpret_copy(it, param[1 + i], carried[i]);
        for (uint32_t i = 0; i < n_scans; i++)
            interpret_copy(it, param[1 + n + i],
                           (char *)it->data[in[2 + n + i]] +
                               interpret_place(it, op, i, round, most) *
                                   g->value_bytes[param[1 + n + i]]);
        st = interpret_block(it, b, &left);
        it->rounds++;
        if (st != MPL_OK || left)
            break;
        for (uint32_t i = 0; i < n; i++)
            memcpy(carried[i], it->data[result[1 + i]], g->value_bytes[in[2 + i]]);
        for (uint32_t i = n; i < n_out; i++) {
            uint64_t size = g->value_bytes[result[1 + i]];

            if (out[i] != MPL_NONE && size > 0)
                memcpy((char *)it->data[out[i]] +
                           interpret_place(it, op, n_scans + i - n, round, most) * size,
                       it->data[result[1 + i]], size);
        }
        go = interpret_true(it, result[0]);
    }
    for (uint32_t i = 0; i < n; i++) {
        interpret_copy(it, out[i], carried[i]);
        free(carried[i]);
    }
    free(carried);
    return st;
}

static inline mpl_status interpret_case(interpreter *it, mpl_op op)
{
    const mpl_graph *g = it->g;
    const mpl_value *in = g->op_in + g->op_in_begin[op], *out = g->op_out + g->op_out_begin[op];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op];
    uint32_t n_bodies = g->op_body_begin[op + 1] - g->op_body_begin[op];
    const void *at = it->data[in[0]];
    int64_t index = g->value_type[in[0]] == MPL_TYPE_i64   ? *(const int64_t *)at
                    : g->value_type[in[0]] == MPL_TYPE_i32 ? *(const int32_t *)at
                                                           : *(const uint8_t *)at;
    const mpl_value *from = in + 1;
    bool left = false;
    mpl_status st = MPL_OK;

    if (index >= (int64_t)n_bodies ||
        (index < 0 && g->op_in_begin[op + 1] - g->op_in_begin[op] == 1))
        return mpl_fail(it->ctx, MPL_EINPUT, __FILE__, __LINE__, "branch %d", (int)index);
    if (index >= 0) {
        uint32_t b = g->op_body[g->op_body_begin[op] + index];

        st = interpret_block(it, b, &left);
        from = g->block_result + g->block_result_begin[b];
    }
    for (uint32_t i = 0; i < n_out && st == MPL_OK; i++)
        interpret_copy(it, out[i], it->data[from[i]]);
    return st;
}

/* *left: an exit test failed */
static inline mpl_status interpret_block(interpreter *it, uint32_t block, bool *left)
{
    const mpl_graph *g = it->g;
    mpl_op end = block == 0 ? g->n_ops : g->block_op_end[block];
    mpl_status st = MPL_OK;

    *left = false;
    for (mpl_op op = g->block_op_begin[block]; op < end && st == MPL_OK && !*left; op++) {
        if (g->op_block[op] != block)
            continue;
        if (g->op_kind[op] == MPL_OP_exit_unless)
            *left = !interpret_true(it, g->op_in[g->op_in_begin[op]]);
        else if (g->op_kind[op] == MPL_OP_while)
            st = interpret_while(it, op);
        else if (g->op_kind[op] == MPL_OP_case)
            st = interpret_case(it, op);
        else
            st = interpret_op(it, op);
    }
    return st;
}

/* Allocates memory for all values and fills constants. Inputs and weights without data are zero;
 * the caller fills them. */
static inline interpreter interpret_begin(mpl_ctx *ctx, const mpl_graph *g)
{
    interpreter it = {ctx, g, calloc(g->n_values + 1, sizeof(void *)), 0};

    for (mpl_value v = 0; v < g->n_values; v++) {
        size_t size = mpl_type_bytes((mpl_type)g->value_type[v]);

        it.data[v] = calloc(1, g->value_bytes[v] + 1);
        for (uint64_t i = 0; g->value_data[v] != NULL && i < g->value_bytes[v]; i += size)
            memcpy((char *)it.data[v] + i, (char *)g->value_data[v] + (g->value_splat[v] ? 0 : i),
                   size);
    }
    return it;
}

static inline mpl_status interpret(interpreter *it)
{
    bool left;

    return interpret_block(it, 0, &left);
}

static inline void interpret_end(interpreter *it)
{
    for (mpl_value v = 0; v < it->g->n_values; v++)
        free(it->data[v]);
    free(it->data);
}
