/* tensor_ssa_values.c -- operations on the list of nodes. See tensor_ssa_priv.h. */
#include "graphs/passes/ssa/tensor_ssa_priv.h"

uint32_t mpl_ssa_find(const mpl_ssa *s, uint32_t v)
{
    while (v != MPL_NONE && s->value[v].forward != MPL_NONE)
        v = s->value[v].forward;
    return v;
}

uint32_t mpl_ssa_in(const mpl_ssa *s, const mpl_ssa_node *node, uint32_t i)
{
    mpl_assert(i < node->n_in);
    return mpl_ssa_find(s, s->item[node->in + i]);
}

uint32_t mpl_ssa_out(const mpl_ssa *s, const mpl_ssa_node *node)
{
    mpl_assert(node->n_out == 1);
    return s->item[node->out];
}

mpl_status mpl_ssa_set_in(mpl_ssa *s, uint32_t node, uint32_t n, const uint32_t *in)
{
    MPL_PASS(mpl_reserve(s->ctx, s->item, s->item_cap, (size_t)s->n_items + n));
    if (n > 0)
        memcpy(s->item + s->n_items, in, n * sizeof *in);
    s->node[node].in = s->n_items;
    s->node[node].n_in = n;
    s->n_items += n;
    return MPL_OK;
}

mpl_ssa_node *mpl_ssa_maker(const mpl_ssa *s, uint32_t v, mpl_op_kind kind)
{
    uint32_t node = s->value[v].node;

    return node != MPL_NONE && s->node[node].kind == kind ? &s->node[node] : NULL;
}

void mpl_ssa_count(mpl_ssa *s, bool all)
{
    for (uint32_t v = 0; v < s->n_values; v++)
        s->value[v].n_uses = 0;
    for (uint32_t i = 0; i < s->g->n_outputs; i++)
        s->value[s->output[i] = mpl_ssa_find(s, s->output[i])].n_uses++;
    for (uint32_t i = s->n_nodes; i-- > 0;) {
        mpl_ssa_node *node = &s->node[i];

        node->live = all;
        for (uint32_t k = 0; k < node->n_out; k++) {
            uint32_t v = s->item[node->out + k];

            node->live = node->live || (v != MPL_NONE && s->value[v].forward == MPL_NONE &&
                                        s->value[v].n_uses > 0);
        }
        for (uint32_t k = 0; k < node->n_in && node->live; k++)
            if (mpl_ssa_in(s, node, k) != MPL_NONE)
                s->value[mpl_ssa_in(s, node, k)].n_uses++;
    }
}
