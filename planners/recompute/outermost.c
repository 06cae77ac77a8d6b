/* outermost.c -- outermost operations with their blocks. See rerun.h. */
#include "graphs/orders/work.h"
#include "planners/recompute/rerun.h"
#include "planners/recompute/revolve.h"

static bool is_outer(const mpl_graph *g, mpl_value v)
{
    return v != MPL_NONE && (g->value_op[v] == MPL_NONE ? g->value_role[v] != MPL_PARAMETER
                                                        : g->op_block[g->value_op[v]] == 0);
}

mpl_op mpl_unit_begin(const mpl_graph *g, mpl_op op)
{
    mpl_op first = op;

    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        if (g->block_op_begin[g->op_body[k]] < first)
            first = g->block_op_begin[g->op_body[k]];
    return first;
}

/* Appends what one operation reads to value (NULL: counts). */
static uint32_t list_reads(const mpl_graph *g, mpl_op op, mpl_value *value)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < mpl_n_read(g, op); i++)
        if (is_outer(g, mpl_op_input(g, op, i))) {
            if (value != NULL)
                value[n] = mpl_op_input(g, op, i);
            n++;
        }
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        for (uint32_t i = 0; i < g->block_n_results[g->op_body[k]]; i++)
            if (is_outer(g, mpl_result(g, g->op_body[k], i))) {
                if (value != NULL)
                    value[n] = mpl_result(g, g->op_body[k], i);
                n++;
            }
    return n;
}

mpl_status mpl_unit_reads_new(mpl_ctx *ctx, const mpl_graph *g, mpl_unit_reads *out)
{
    mpl_status st = MPL_OK;
    mpl_unit_reads r = {NULL, NULL};
    uint32_t n = 0;

    MPL_TRY(mpl_new(ctx, r.begin, (size_t)g->n_ops + 1));
    for (mpl_op op = 0; op < g->n_ops; op++)
        n += list_reads(g, op, NULL);
    MPL_TRY(mpl_new(ctx, r.value, n));
    n = 0;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        r.begin[op] = n;
        if (g->op_block[op] != 0)
            continue;
        n += list_reads(g, op, r.value + n);
        for (mpl_op o = mpl_unit_begin(g, op); o < op; o++)
            n += list_reads(g, o, r.value + n);
    }
    r.begin[g->n_ops] = n;
    *out = r, r = (mpl_unit_reads){NULL, NULL};
out:
    mpl_unit_reads_fini(ctx, &r);
    return st;
}

void mpl_unit_reads_fini(mpl_ctx *ctx, mpl_unit_reads *reads)
{
    mpl_free_each(ctx, reads->begin, reads->value);
    *reads = (mpl_unit_reads){NULL, NULL};
}

uint64_t mpl_unit_work(const mpl_graph *g, mpl_op op)
{
    uint64_t work = 0;

    for (mpl_op o = mpl_unit_begin(g, op); o <= op; o++)
        if ((mpl_op_table[g->op_kind[o]].traits & MPL_CONTROL) == 0) /* its blocks do the work */
            work = mpl_add_work(work, mpl_work_within(g, o, 0));
    return work;
}

bool mpl_unit_updates(const mpl_graph *g, mpl_op op, mpl_value weight)
{
    for (mpl_op o = mpl_unit_begin(g, op); o <= op; o++)
        for (uint32_t i = 0; i < mpl_op_n_out(g, o); i++) {
            mpl_value updated = mpl_updated(g, o, i);

            if (updated != MPL_NONE && (weight == MPL_NONE || updated == weight))
                return true;
        }
    return false;
}
