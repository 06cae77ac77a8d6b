/* early.c -- counts slices of outputs that may have fewer than planned. See early.h. */
#include "harness/job/early.h"

#include "harness/job/measure.h"

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

bool mpl_early_may(const mpl_graph *g, uint32_t i, uint32_t *axis)
{
    *axis = 0;
    return mpl_length_of(g, g->output[i], axis) != MPL_NONE || stacks_rows(g, g->output[i]);
}

mpl_shape mpl_early_shape(const mpl_graph *g, const uint64_t *rows, uint32_t i)
{
    mpl_shape shape = g->value_shape[g->output[i]];
    uint32_t axis;

    if (mpl_early_may(g, i, &axis) && rows != NULL && rows[i] != UINT64_MAX)
        shape.dim[axis] = (int64_t)rows[i];
    return shape;
}

void mpl_early_cut(const mpl_graph *g, const uint64_t *rows, void *outputs)
{
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        mpl_value v = g->output[i];
        mpl_tensor t = {(mpl_type)g->value_type[v], g->value_shape[v],
                        (void *)(uintptr_t)mpl_outputs_at(g, outputs, i)};
        uint32_t axis;

        if (rows != NULL && mpl_early_may(g, i, &axis) && rows[i] != UINT64_MAX)
            mpl_tensor_cut(&t, axis, (int64_t)rows[i]);
    }
}

/* The slices of an output whose length depends on data; UINT64_MAX: as planned, or no such one. */
static mpl_status read_length(mpl_exec *exec, const mpl_graph *g, uint32_t i, uint64_t *out)
{
    uint32_t axis = 0, k = 0;
    mpl_value length = mpl_length_of(g, g->output[i], &axis);
    int64_t n = 0, most = length != MPL_NONE ? g->value_shape[g->output[i]].dim[axis] : 0;

    *out = UINT64_MAX;
    while (k < g->n_outputs && (length == MPL_NONE || g->output[k] != length))
        k++;
    if (k == g->n_outputs)
        return MPL_OK;
    MPL_PASS(mpl_exec_output(exec, k, &n));
    if (n >= 0 && n < most)
        *out = (uint64_t)n;
    return MPL_OK;
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

mpl_status mpl_early_new(mpl_ctx *ctx, mpl_exec *exec, const mpl_graph *g, mpl_early *out)
{
    mpl_status st = MPL_OK;
    size_t size;
    FILE *f = open_memstream(&out->text, &size);

    MPL_TRY(f != NULL ? MPL_OK : MPL_EMEM);
    MPL_TRY(mpl_new(ctx, out->rows, g->n_outputs));
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        mpl_value v = g->output[i];
        uint32_t axis;

        MPL_TRY(read_length(exec, g, i, &out->rows[i]));
        if (out->rows[i] != UINT64_MAX && mpl_early_may(g, i, &axis))
            fprintf(f, "%soutput '%s' has %" PRIu64 " of %" PRId64 " slices along axis %u",
                    ftell(f) > 0 ? "; " : "", g->value_name[v], out->rows[i],
                    g->value_shape[v].dim[axis], axis);
        if (stacks_rows(g, v))
            out->rows[i] = mpl_exec_fewest_rounds(exec, g->value_op[v]);
    }
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
