/* tensor_ssa_values.c -- operations on the list of nodes. See tensor_ssa_priv.h. */
#include "graphs/passes/ssa/tensor_ssa_priv.h"

uint32_t mpl_ssa_find(const mpl_ssa *ssa, uint32_t v)
{
    while (v != MPL_NONE && ssa->value[v].forward != MPL_NONE)
        v = ssa->value[v].forward;
    return v;
}

uint32_t mpl_ssa_in(const mpl_ssa *ssa, const mpl_ssa_node *node, uint32_t i)
{
    mpl_assert(i < node->n_in);
    return mpl_ssa_find(ssa, ssa->item[node->in + i]);
}

uint32_t mpl_ssa_out(const mpl_ssa *ssa, const mpl_ssa_node *node)
{
    mpl_assert(node->n_out == 1);
    return ssa->item[node->out];
}

mpl_status mpl_ssa_set_in(mpl_ssa *ssa, uint32_t node, uint32_t n, const uint32_t *in)
{
    MPL_PASS(mpl_reserve(ssa->ctx, ssa->item, ssa->item_cap, (size_t)ssa->n_items + n));
    if (n > 0)
        memcpy(ssa->item + ssa->n_items, in, n * sizeof *in);
    ssa->node[node].in = ssa->n_items;
    ssa->node[node].n_in = n;
    ssa->n_items += n;
    return MPL_OK;
}

mpl_ssa_node *mpl_ssa_maker(const mpl_ssa *ssa, uint32_t v, mpl_op_kind kind)
{
    uint32_t node = ssa->value[v].node;

    return node != MPL_NONE && ssa->node[node].kind == kind ? &ssa->node[node] : NULL;
}

void mpl_ssa_count(mpl_ssa *ssa, bool all)
{
    for (uint32_t v = 0; v < ssa->n_values; v++)
        ssa->value[v].n_uses = 0;
    for (uint32_t i = 0; i < ssa->g->n_outputs; i++)
        ssa->value[ssa->output[i] = mpl_ssa_find(ssa, ssa->output[i])].n_uses++;
    for (uint32_t i = ssa->n_nodes; i-- > 0;) {
        mpl_ssa_node *node = &ssa->node[i];

        node->live = all;
        for (uint32_t k = 0; k < node->n_out; k++) {
            uint32_t v = ssa->item[node->out + k];

            node->live = node->live || (v != MPL_NONE && ssa->value[v].forward == MPL_NONE &&
                                        ssa->value[v].n_uses > 0);
        }
        for (uint32_t k = 0; k < node->n_in && node->live; k++)
            if (mpl_ssa_in(ssa, node, k) != MPL_NONE)
                ssa->value[mpl_ssa_in(ssa, node, k)].n_uses++;
    }
}
