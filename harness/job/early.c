/* early.c -- counts rows of loops that end early. See early.h. */
#include "harness/job/early.h"

#include <stdio.h>
#include <stdlib.h>

/* Whether `op` stacks its output k backward, so that rows count from the end. */
static bool is_backward(const mpl_graph *g, mpl_op op, uint32_t k)
{
    uint32_t n_flags = 0,
             n_scans = g->op_in_begin[op + 1] - g->op_in_begin[op] - 2 - mpl_n_carried(g, op);
    const int64_t *flag = mpl_attr_ints(g, op, MPL_ATTR_scan_reverse, &n_flags);

    return n_scans + k - mpl_n_carried(g, op) < n_flags &&
           flag[n_scans + k - mpl_n_carried(g, op)] != 0;
}

/* Whether v stacks rows of rounds, first round first. An inner loop stacks no output; its block's
 * yield is read. */
static bool stacks_rows(const mpl_graph *g, mpl_value v)
{
    mpl_op op = g->value_op[v];

    if (op == MPL_NONE || g->op_kind[op] != MPL_OP_while)
        return false;
    for (uint32_t k = 0; k < g->op_out_begin[op + 1] - g->op_out_begin[op]; k++)
        if (g->op_out[g->op_out_begin[op] + k] == v)
            return k >= mpl_n_carried(g, op) && !is_backward(g, op, k);
    return false;
}

static bool is_output(const mpl_graph *g, mpl_value v)
{
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->output[i] == v)
            return true;
    return false;
}

bool mpl_early_may(const mpl_graph *g, uint32_t i)
{
    return stacks_rows(g, g->output[i]);
}

mpl_shape mpl_early_shape(const mpl_graph *g, const uint64_t *rows, uint32_t i)
{
    mpl_shape shape = g->value_shape[g->output[i]];

    if (rows != NULL && rows[i] != UINT64_MAX)
        shape.dim[0] = (int64_t)rows[i];
    return shape;
}

/* Describes the rows of one loop that ended early. */
static void tell(FILE *f, const mpl_graph *g, mpl_op op, uint64_t rounds)
{
    uint64_t most = (uint64_t)mpl_while_most_rounds(g, op);

    fprintf(f, "%sloop '%s' ran %" PRIu64 " of %" PRIu64 " rounds", ftell(f) > 0 ? "; " : "",
            g->op_name[op], rounds, most);
    for (uint32_t k = g->op_out_begin[op] + mpl_n_carried(g, op); k < g->op_out_begin[op + 1];
         k++) {
        mpl_value v = g->op_out[k];

        if (v == MPL_NONE)
            continue;
        if (is_output(g, v) && stacks_rows(g, v))
            fprintf(f, ", output '%s' has as many rows", g->value_name[v]);
        if (!stacks_rows(g, v) || g->value_use_begin[v] < g->value_use_begin[v + 1])
            fprintf(f, ", what reads '%s' sees %" PRIu64 " rows, zero where no round was",
                    g->value_name[v], most);
    }
}

static bool has_rows(const mpl_graph *g, mpl_op op)
{
    return g->op_kind[op] == MPL_OP_while &&
           g->op_out_begin[op + 1] - g->op_out_begin[op] > mpl_n_carried(g, op);
}

mpl_status mpl_early_new(mpl_ctx *ctx, const mpl_exec *exec, const mpl_graph *g, mpl_early *out)
{
    mpl_status st = MPL_OK;
    size_t size;
    FILE *f = open_memstream(&out->text, &size);

    MPL_TRY(f != NULL ? MPL_OK : MPL_EMEM);
    MPL_TRY(mpl_new(ctx, out->rows, g->n_outputs));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        out->rows[i] = stacks_rows(g, g->output[i])
                           ? mpl_exec_fewest_rounds(exec, g->value_op[g->output[i]])
                           : UINT64_MAX;
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (has_rows(g, op) &&
            mpl_exec_fewest_rounds(exec, op) < (uint64_t)mpl_while_most_rounds(g, op))
            tell(f, g, op, mpl_exec_fewest_rounds(exec, op));
out:
    if (f != NULL)
        fclose(f);
    return st;
}

void mpl_early_fini(mpl_ctx *ctx, mpl_early *early)
{
    mpl_free(ctx, early->rows);
    free(early->text);
}
