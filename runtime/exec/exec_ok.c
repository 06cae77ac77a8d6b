/* exec_ok.c -- invariants of a bound graph before a run. See mpl_exec_ok in exec_priv.h. */
#include "runtime/exec/exec_priv.h"

static bool block_ok(const mpl_exec *exec, uint32_t id)
{
    const mpl_block *block = &exec->block[id];
    uint64_t end;

    if (block->slab == MPL_NONE)
        return true;
    if (block->slab >= exec->n_slabs || !mpl_add_bytes(block->offset, block->bytes, &end) ||
        end > exec->slab[block->slab].bytes)
        return mpl_broken("block %u, %" PRIu64 " bytes at %" PRIu64 ", is not within slab %u", id,
                          block->bytes, block->offset, block->slab);
    return true;
}

static bool value_ok(const mpl_exec *exec, mpl_value v)
{
    uint32_t slab = exec->value_slab[v], block = exec->value_block[v];
    uint64_t bytes = exec->g->value_bytes[v], end;

    if (slab == MPL_NONE || bytes == 0)
        return true;
    if (slab >= exec->n_slabs || exec->slab[slab].base == NULL)
        return mpl_broken("value %u lies in slab %u of %u, or that has no memory", v, slab,
                          exec->n_slabs);
    if (block != MPL_NONE && block + mpl_exec_n_blocks(exec, v) > exec->n_blocks)
        return mpl_broken("value %u lies in block %u of %u", v, block, exec->n_blocks);
    if (exec->value_lay != NULL && exec->value_lay[v].shape.rank > 0)
        return true;
    if (!mpl_add_bytes(exec->value_offset[v], bytes, &end) || end > exec->slab[slab].bytes)
        return mpl_broken("value %u, %" PRIu64 " bytes at %" PRIu64 ", is not within slab %u", v,
                          bytes, exec->value_offset[v], slab);
    return true;
}

/* Each operation occurs once, after those that make what it reads. */
static bool order_ok(const mpl_exec *exec)
{
    const mpl_graph *g = exec->g;

    for (uint32_t step = 0; step < g->n_ops; step++) {
        if (exec->order[step] >= g->n_ops)
            return mpl_broken("step %u runs operation %u of %u", step, exec->order[step], g->n_ops);
        for (uint32_t later = step + 1; later < g->n_ops; later++)
            for (uint32_t i = 0; i <= mpl_op_n_in(g, exec->order[step]); i++) {
                mpl_value v = mpl_op_input(g, exec->order[step], i);

                if (exec->order[later] == exec->order[step] ||
                    (v != MPL_NONE && g->value_op[v] == exec->order[later]))
                    return mpl_broken("step %u runs operation %u before operation %u, or twice",
                                      step, exec->order[step], exec->order[later]);
            }
    }
    return true;
}

bool mpl_exec_ok(const mpl_exec *exec)
{
    for (uint32_t block = 0; block < exec->n_blocks; block++)
        if (!block_ok(exec, block))
            return false;
    for (mpl_value v = 0; v < exec->g->n_values; v++)
        if (!value_ok(exec, v))
            return false;
    return MPL_CHECK < 3 || exec->g->n_ops > MPL_CHECK_SMALL || order_ok(exec);
}
