/* graph_priv.h -- what the files of graphs/build share. */
#pragma once

#include "graphs/graph.h"

/* Used only during building: capacities of the arrays, and a hash table from names to values (open
 * addressing). */
struct mpl_graph_caps {
    size_t op_kind, op_name, op_in_begin, op_out_begin, op_attr_begin, op_in, op_out;
    size_t attr_key, attr_begin, attr_n, attr_int, attr_float, attr_text;
    size_t value_name, value_type, value_role, value_shape, value_bytes, value_op, value_data,
        value_splat;
    size_t input, output, bound_input;
    uint32_t n_attrs, n_ints, n_floats, n_text;
    size_t block_name, block_parent, block_owner, block_param_begin, block_n_params,
        block_result_begin;
    size_t block_n_results, block_op_begin, block_op_end, block_value_begin, block_value_end;
    size_t block_param, block_result, op_block, value_block, op_body_begin, op_body;
    uint32_t n_params, n_results;
    uint32_t open;    /* the open block */
    mpl_value *slot;  /* [n_slots] MPL_NONE: free */
    uint32_t n_slots; /* a power of two, more than half of them free */
};

/* Reserves room for n more values, so that mpl_graph_push_value cannot fail. */
mpl_status mpl_graph_reserve_values(mpl_ctx *ctx, mpl_graph *g, uint32_t n);
/* Appends a value visible in `block`. Takes ownership of `name`. */
mpl_value mpl_graph_push_value(mpl_graph *g, char *name, mpl_role role, mpl_type type,
                               const mpl_shape *shape, uint64_t bytes, mpl_op op, uint32_t block);
mpl_status mpl_graph_check_new_name(mpl_ctx *ctx, const mpl_graph *g, const char *name);
/* Bytes of a value. MPL_EINPUT, with its name, if the dims are invalid. */
mpl_status mpl_graph_bytes_of(mpl_ctx *ctx, const char *name, mpl_type type, const mpl_shape *shape,
                              uint64_t *bytes);
/* MPL_EINPUT unless v is visible in `block`; `what` names the reader. */
mpl_status mpl_graph_check_seen(mpl_ctx *ctx, const mpl_graph *g, mpl_value v, uint32_t block,
                                const char *what);
/* Rebuilds value_use from the operations' inputs, bodies and blocks. */
mpl_status mpl_graph_index_uses(mpl_ctx *ctx, mpl_graph *g);
/* Makes block 0 of a new graph. */
mpl_status mpl_graph_new_top(mpl_ctx *ctx, mpl_graph *g);
/* MPL_EINPUT unless an operation added to the open block may own these blocks. */
mpl_status mpl_graph_check_bodies(mpl_ctx *ctx, const mpl_graph *g, mpl_op_kind kind,
                                  const char *name, uint32_t n_bodies, const uint32_t *body);
/* MPL_EINPUT: a block is open or without owner, or an exit test is outside a loop body. */
mpl_status mpl_graph_check_blocks(mpl_ctx *ctx, const mpl_graph *g);
/* Whether n inputs or outputs are allowed; `most` 255: any number. */
static inline bool mpl_count_fits(uint32_t n, uint8_t least, uint8_t most)
{
    return n >= least && (most == 255 || n <= most);
}
/* Block part of mpl_graph_ok. */
bool mpl_graph_blocks_ok(const mpl_graph *g);
