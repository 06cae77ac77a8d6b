/* checked_at_once.c -- --checked of a run by several workers. See checked.c.
 *
 * Dead bytes hold the pattern from the start, and a block's again after the last operation that
 * touches it, in whatever order they come. Each value has a checksum once it is made, which must
 * hold before and after every operation that reads it. Guards are looked at after each operation,
 * and bytes where nothing lives when all have ended.
 */
#include "runtime/exec/exec_priv.h"

struct mpl_census {
    _Atomic uint32_t *n_left; /* [n_blocks] touches to come */
    uint8_t *made;            /* [n_values] 1: sum is known */
    uint64_t *sum;            /* [n_values] */
};

mpl_status mpl_census_new(mpl_exec *exec)
{
    mpl_census *census = NULL;

    MPL_PASS(mpl_new(exec->ctx, census, 1));
    exec->census = census;
    MPL_PASS(mpl_new(exec->ctx, census->n_left, exec->n_blocks));
    return mpl_new_each(exec->ctx, exec->g->n_values, census->made, census->sum);
}

void mpl_census_free(mpl_ctx *ctx, mpl_census *census)
{
    if (census == NULL)
        return;
    mpl_free_each(ctx, census->n_left, census->made, census->sum, census);
}

/* Whether v is a run of bytes that only operations of the graph write. */
static bool has_sum(const mpl_exec *exec, mpl_value v)
{
    return v != MPL_NONE && exec->g->value_bytes[v] > 0 && exec->value_slab[v] != MPL_NONE &&
           !mpl_checked_is_weights(exec, exec->value_slab[v]) &&
           (exec->value_lay == NULL || exec->value_lay[v].shape.rank == 0);
}

static mpl_status note_sum(mpl_exec *exec, mpl_value v)
{
    if (!has_sum(exec, v))
        return MPL_OK;
    exec->census->made[v] = 1;
    return mpl_checked_sum(exec, mpl_exec_value_at(exec, v), exec->g->value_bytes[v],
                           &exec->census->sum[v]);
}

static void count_touch(mpl_exec *exec, uint32_t block, uint32_t step)
{
    (void)step;
    atomic_fetch_add(&exec->census->n_left[block], 1);
}

mpl_status mpl_census_begin(mpl_exec *exec)
{
    mpl_census *census = exec->census;
    const mpl_graph *g = exec->g;

    for (uint32_t b = 0; b < exec->n_blocks; b++)
        atomic_store(&census->n_left[b], 0);
    for (uint32_t s = 0; s < g->n_ops; s++)
        mpl_layout_each_touch(exec, s, count_touch);
    for (uint32_t i = 0; i < exec->n_arrivals; i++) { /* what nothing reads is dead from the start
                                                       */
        uint32_t of = exec->value_block[exec->arrival_value[i]];
        const mpl_block *b = &exec->block[of];

        if (atomic_load(&census->n_left[of]) == 0 && b->birth == MPL_NONE)
            MPL_PASS(mpl_checked_fill(exec, b->slab, b->offset, b->offset + b->bytes));
    }
    for (mpl_value v = 0; v < g->n_values; v++) {
        census->made[v] = 0;
        if (g->value_role[v] == MPL_INPUT || (g->value_op[v] == MPL_NONE && has_sum(exec, v)))
            MPL_PASS(note_sum(exec, v));
    }
    return MPL_OK;
}

/* The last touch of a block: of what no other took over in place, nothing is read any more. */
static void bury(mpl_exec *exec, uint32_t block, uint32_t step)
{
    const mpl_block *b = &exec->block[block];

    if (atomic_fetch_sub(&exec->census->n_left[block], 1) == 1 && b->death < mpl_exec_n_steps(exec))
        (void)mpl_checked_fill(exec, b->slab, b->offset + mpl_checked_inherited(exec, step, block),
                               b->offset + b->bytes);
}

/* Whether `op` may write where its input v lies: to the same block, or one that takes over. */
static bool is_overwritten(const mpl_exec *exec, mpl_op op, mpl_value v)
{
    const mpl_graph *g = exec->g;
    uint32_t from = exec->value_block[v];

    for (uint32_t i = g->op_out_begin[op]; from != MPL_NONE && i < g->op_out_begin[op + 1]; i++) {
        mpl_value o = g->op_out[i];
        uint32_t first = o != MPL_NONE ? exec->value_block[o] : MPL_NONE;

        for (uint32_t k = 0; first != MPL_NONE && k < mpl_exec_n_blocks(exec, o); k++) {
            uint32_t over = exec->block[first + k].over, own = first + k - from;

            if (own < mpl_exec_n_blocks(exec, v) ||
                (over != MPL_NONE && over - from < mpl_exec_n_blocks(exec, v)))
                return true;
        }
    }
    return false;
}

static mpl_status check_inputs(mpl_exec *exec, mpl_op op, bool after)
{
    const mpl_graph *g = exec->g;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++) {
        mpl_value v = g->op_in[i];
        uint64_t sum;

        if (v == MPL_NONE || !exec->census->made[v] || (after && is_overwritten(exec, op, v)))
            continue;
        MPL_PASS(mpl_checked_sum(exec, mpl_exec_value_at(exec, v), g->value_bytes[v], &sum));
        if (sum != exec->census->sum[v])
            return MPL_ERROR(exec->ctx, MPL_EINVALID,
                             "operation '%.140s' reads '%.100s', which changed %s: another "
                             "operation wrote to bytes [%" PRIu64 ", %" PRIu64 ") of its memory",
                             g->op_name[op], g->value_name[v],
                             after ? "meanwhile" : "after it was made", exec->value_offset[v],
                             exec->value_offset[v] + g->value_bytes[v]);
    }
    return MPL_OK;
}

mpl_status mpl_census_run(mpl_exec *exec, mpl_op op, uint32_t step)
{
    const mpl_graph *g = exec->g;
    char who[160];

    MPL_PASS(check_inputs(exec, op, false));
    MPL_PASS(mpl_exec_run_op(exec, op));
    snprintf(who, sizeof who, "operation '%.140s'", g->op_name[op]);
    MPL_PASS(mpl_checked_guards(exec, step, who));
    MPL_PASS(check_inputs(exec, op, true));
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        MPL_PASS(note_sum(exec, g->op_out[i]));
    mpl_layout_each_touch(exec, step, bury);
    return MPL_OK;
}
