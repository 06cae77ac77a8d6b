/* graph_priv.h -- what graph.c and block.c share of building. */
#ifndef MPL_GRAPH_PRIV_H
#define MPL_GRAPH_PRIV_H

#include "graphs/graph.h"

/* What only building needs: capacities of the arrays, and a table from names to values (open
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
    uint32_t open;    /* the block that is open */
    mpl_value *slot;  /* [n_slots] MPL_NONE: free */
    uint32_t n_slots; /* a power of two, more than half of them free */
};

/* Room for n more values, so that mpl_graph_push_value cannot fail. */
mpl_status mpl_graph_reserve_values(mpl_ctx *ctx, mpl_graph *g, uint32_t n);
/* Appends a value, seen in `block`. Takes `name`. */
mpl_value mpl_graph_push_value(mpl_graph *g, char *name, mpl_role role, mpl_type type,
                               const mpl_shape *shape, uint64_t bytes, mpl_op op, uint32_t block);
mpl_status mpl_graph_check_new_name(mpl_ctx *ctx, const mpl_graph *g, const char *name);
/* Bytes of a value; MPL_EINPUT naming it when its dims are no dims. */
mpl_status mpl_graph_bytes_of(mpl_ctx *ctx, const char *name, mpl_type type, const mpl_shape *shape,
                              uint64_t *bytes);
/* MPL_EINPUT unless value v can be seen in `block`; what names the reader. */
mpl_status mpl_graph_check_seen(mpl_ctx *ctx, const mpl_graph *g, mpl_value v, uint32_t block,
                                const char *what);
/* Makes value_use anew. Needs the operations' inputs, bodies and blocks alone. */
mpl_status mpl_graph_index_uses(mpl_ctx *ctx, mpl_graph *g);
/* Block 0, of a graph that was just made. */
mpl_status mpl_graph_new_top(mpl_ctx *ctx, mpl_graph *g);
/* MPL_EINPUT unless an operation that is to stand in the open block may own these blocks. */
mpl_status mpl_graph_check_bodies(mpl_ctx *ctx, const mpl_graph *g, mpl_op_kind kind,
                                  const char *name, uint32_t n_bodies, const uint32_t *body);
/* MPL_EINPUT: a block is still open, or has no owner; an exit test stands outside of a loop's
 * body. */
mpl_status mpl_graph_check_blocks(mpl_ctx *ctx, const mpl_graph *g);
/* Whether an operator takes n inputs or outputs; `most` 255: any number. */
static inline bool mpl_count_fits(uint32_t n, uint8_t least, uint8_t most)
{
    return n >= least && (most == 255 || n <= most);
}
/* The part of mpl_graph_ok that looks at blocks. */
bool mpl_graph_blocks_ok(const mpl_graph *g);

#endif
