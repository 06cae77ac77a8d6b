/* work.c -- the work of an operation. See work.h. */
#include "graphs/orders/work.h"

static const double PAIR = 2; /* a product and a sum */

/* Elements in the dims from `from` on; 0: left out. */
static double elements(const mpl_graph *g, mpl_value v, uint32_t from)
{
    double n = 1;

    for (uint32_t i = from; v != MPL_NONE && i < g->value_shape[v].rank; i++)
        n *= (double)g->value_shape[v].dim[i];
    return v == MPL_NONE ? 0 : n;
}

/* Inner dimension of a matrix product whose left input is i. */
static double depth(const mpl_graph *g, mpl_op op, uint32_t i)
{
    const mpl_shape *shape = &g->value_shape[mpl_op_input(g, op, i)];
    bool turned = shape->rank > 1 && mpl_attr_int(g, op, MPL_ATTR_trans_a, 0) != 0;

    return shape->rank == 0 ? 1 : (double)shape->dim[shape->rank - (turned ? 2 : 1)];
}

/* Number of requested gradients that are products: all but that of output `bias`. */
static double gradients(const mpl_graph *g, mpl_op op, uint32_t bias)
{
    double n = 0;

    for (uint32_t i = 0; i < 3; i++)
        n += i != bias && mpl_op_output(g, op, i) != MPL_NONE;
    return n;
}

static double moved(const mpl_graph *g, mpl_op op)
{
    double bytes = 0;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++)
        bytes += g->op_in[i] != MPL_NONE ? (double)g->value_bytes[g->op_in[i]] : 0;
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        bytes += g->op_out[i] != MPL_NONE ? (double)g->value_bytes[g->op_out[i]] : 0;
    return bytes;
}

static double work(const mpl_graph *g, mpl_op op)
{
    switch (g->op_kind[op]) {
    case MPL_OP_conv:
    case MPL_OP_conv_act:
        return PAIR * elements(g, mpl_op_output(g, op, 0), 0) *
               elements(g, mpl_op_input(g, op, 1), 1);
    case MPL_OP_conv_sum:
        return PAIR * elements(g, mpl_op_output(g, op, 0), 0) *
               elements(g, mpl_op_input(g, op, 2), 1);
    case MPL_OP_conv_transpose:
        return PAIR * elements(g, mpl_op_input(g, op, 0), 0) *
               elements(g, mpl_op_input(g, op, 1), 1);
    case MPL_OP_matmul:
    case MPL_OP_gemm:
    case MPL_OP_gemm_act:
        return PAIR * elements(g, mpl_op_output(g, op, 0), 0) * depth(g, op, 0);
    case MPL_OP_gemm_sum:
        return PAIR * elements(g, mpl_op_output(g, op, 0), 0) * depth(g, op, 1);
    case MPL_OP_conv_grad_input:
        return PAIR * elements(g, mpl_op_input(g, op, 0), 0) *
               elements(g, mpl_op_input(g, op, 1), 1);
    case MPL_OP_conv_grad_weight:
        return PAIR * elements(g, mpl_op_input(g, op, 0), 0) *
               elements(g, mpl_op_output(g, op, 0), 1);
    case MPL_OP_conv_grad:
        return PAIR * elements(g, mpl_op_input(g, op, 0), 0) *
               elements(g, mpl_op_input(g, op, 2), 1) * gradients(g, op, 1);
    case MPL_OP_gemm_grad:
        return PAIR * elements(g, mpl_op_input(g, op, 0), 0) * depth(g, op, 1) *
               gradients(g, op, 1);
    default:
        return mpl_op_table[g->op_kind[op]].traits & MPL_VIEW ? 0 : moved(g, op);
    }
}

static uint64_t rounded(double n)
{
    return n < (double)MPL_MOST_WORK ? (uint64_t)n : MPL_MOST_WORK;
}

uint64_t mpl_op_work(const mpl_graph *g, mpl_op op)
{
    return rounded(work(g, op));
}

/* Elements of the window of a pooling. */
static double kernel(const mpl_graph *g, mpl_op op)
{
    uint32_t n = 0;
    const int64_t *dims = mpl_attr_ints(g, op, MPL_ATTR_kernel_shape, &n);
    double elements_of = 1;

    for (uint32_t i = 0; i < n; i++)
        elements_of *= (double)dims[i];
    return elements_of;
}

/* Elements of an interpolation: four along each of two axes. Where an axis shrinks, as many more
 * are weighed for a result as there are fewer results. */
#define WEIGHED 16

double mpl_op_window(const mpl_graph *g, mpl_op op)
{
    switch (g->op_kind[op]) {
    case MPL_OP_lrn:
    case MPL_OP_lrn_grad:
        return (double)mpl_attr_int(g, op, MPL_ATTR_size, 1);
    case MPL_OP_max_pool:
    case MPL_OP_avg_pool:
    case MPL_OP_lp_pool:
    case MPL_OP_qavg_pool:
    case MPL_OP_max_pool_grad:
    case MPL_OP_avg_pool_grad:
        return kernel(g, op);
    case MPL_OP_qconv:
        return elements(g, mpl_op_input(g, op, 1), 1);
    case MPL_OP_qmatmul:
    case MPL_OP_matmul_blocked:
    case MPL_OP_det: /* of square matrices */
        return depth(g, op, 0);
    case MPL_OP_resize:
        return strcmp(mpl_attr_text(g, op, MPL_ATTR_mode, "nearest"), "nearest") == 0 ? 1 : WEIGHED;
    case MPL_OP_grid_sample:
        return WEIGHED;
    case MPL_OP_roi_align:
    case MPL_OP_max_roi_pool:
        return elements(g, mpl_op_input(g, op, 0), 2);
    case MPL_OP_nms:
        return elements(g, mpl_op_input(g, op, 0), 1);
    case MPL_OP_unique:
        return elements(g, mpl_op_input(g, op, 0), 0);
    default:
        return 1;
    }
}

uint64_t mpl_run_work(const mpl_graph *g, mpl_op op)
{
    double bytes = 0;

    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        bytes += g->op_out[i] != MPL_NONE ? (double)g->value_bytes[g->op_out[i]] : 0;
    return rounded(work(g, op) * mpl_op_window(g, op) + bytes + MPL_STEP_WORK);
}
