/* in_place.c -- which operands an operation may overwrite. See liveness.h. */
#include "graphs/problem/liveness.h"
#include "graphs/orders/order_blocks.h"

static bool have_common_bytes(const mpl_graph *g, const uint64_t *offset, mpl_value a, mpl_value b)
{
    return offset[a] < offset[b] + g->value_bytes[b] && offset[b] < offset[a] + g->value_bytes[a];
}

/* part: other values in the root's storage matter only where they overlap the input. */
static bool may_be_written(const mpl_graph *g, const mpl_value *root, const uint64_t *offset,
                           bool part, mpl_op op, uint32_t i)
{
    const mpl_value *in = g->op_in + g->op_in_begin[op];
    uint32_t n_in = mpl_op_n_in(g, op);
    unsigned traits = mpl_op_table[g->op_kind[op]].traits;
    mpl_value out = mpl_op_output(g, op, 0);

    if (!mpl_op_overwrites(g, op, i))
        return false;
    if (in[i] == MPL_NONE || g->value_type[in[i]] != g->value_type[out])
        return false;
    /* A copied view moves no byte, so its new dims do not matter. */
    if (!mpl_shape_equal(&g->value_shape[in[i]], &g->value_shape[out]) && !(traits & MPL_VIEW))
        return false;
    /* The same storage read as another operand is safe if each element is read just before it is
     * written. */
    for (uint32_t j = 0; j < n_in; j++)
        if (j != i && in[j] != MPL_NONE && root[in[j]] == root[in[i]] &&
            (!part || have_common_bytes(g, offset, in[j], in[i])) &&
            !(mpl_op_reads_along(g, op, j) && (offset == NULL || offset[in[j]] == offset[in[i]]) &&
              mpl_shape_equal(&g->value_shape[in[j]], &g->value_shape[in[i]])))
            return false;
    return true;
}

bool mpl_in_place_operand(const mpl_graph *g, const mpl_value *root, const uint64_t *offset,
                          mpl_op op, uint32_t i)
{
    mpl_value in = mpl_op_input(g, op, i);

    return in != MPL_NONE && (offset == NULL || offset[in] == 0) &&
           may_be_written(g, root, offset, false, op, i);
}

bool mpl_in_place_part(const mpl_graph *g, const mpl_alias *alias, mpl_op op, uint32_t i)
{
    return may_be_written(g, alias->root, alias->offset, true, op, i);
}
