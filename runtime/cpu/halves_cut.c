/* halves_cut.c -- how operations on 16-bit floats are cut to pieces. See halves.h. */
#include "runtime/cpu/halves_priv.h"

mpl_value mpl_half_value(const mpl_graph *g, mpl_op op, uint32_t k)
{
    uint32_t n_in = mpl_op_n_in(g, op);

    return k < n_in ? mpl_op_input(g, op, k) : mpl_op_output(g, op, k - n_in);
}

/* Pieces cut axes [from, to) of operand k, taken as one. */
static void cut(mpl_half_pieces *pieces, uint32_t k, uint32_t from, uint32_t to)
{
    mpl_half_operand *operand = &pieces->operand[k];

    operand->cut = true;
    operand->axis = to - 1;
    operand->outer = mpl_count_dims(&operand->shape, 0, from);
    operand->n = mpl_count_dims(&operand->shape, from, to);
    operand->inner = mpl_count_dims(&operand->shape, to, operand->shape.rank);
    for (uint32_t i = from; i + 1 < to; i++)
        operand->shape.dim[i] = 1;
}

/* The first operand and the results, alike. */
static void cut_rows(mpl_half_pieces *pieces, uint32_t from, uint32_t to)
{
    cut(pieces, 0, from, to);
    for (uint32_t i = 0; i < pieces->n_out; i++)
        cut(pieces, pieces->n_in + i, from, to);
}

static int64_t first_of(const mpl_graph *g, mpl_op op, mpl_attr_key key, int64_t otherwise)
{
    mpl_attr attr;

    return mpl_attr_get(g, op, key, &attr) && attr.n > 0 ? attr.ints[0] : otherwise;
}

/* Images one by one, and rows of them: operands up to x, whose window reaches over rows nearby. */
static void cut_windows(mpl_half_pieces *pieces, const mpl_graph *g, mpl_op op, uint32_t x)
{
    mpl_half_operand *in = &pieces->operand[x];

    pieces->images = in->shape.dim[0];
    for (uint32_t k = 0; k <= x; k++)
        cut(pieces, k, 2, 3);
    cut(pieces, pieces->n_in, 2, 3);
    in->step = first_of(g, op, MPL_ATTR_strides, 1);
    in->low = first_of(g, op, MPL_ATTR_pads, 0);
    in->window =
        (pieces->operand[x + 1].shape.dim[2] - 1) * first_of(g, op, MPL_ATTR_dilations, 1) + 1;
    for (uint32_t k = 0; k <= pieces->n_in; k++)
        if (pieces->operand[k].cut) {
            pieces->operand[k].outer /= pieces->images;
            pieces->operand[k].shape.dim[0] = 1;
        }
}

/* Rows of the first matrix, or one product of two batches after the other. */
static void cut_matmul(mpl_half_pieces *pieces)
{
    const mpl_shape *shape = &pieces->operand[0].shape, *b = &pieces->operand[1].shape;
    uint32_t rank = shape->rank;
    bool alike = rank == b->rank && rank > 2;

    for (uint32_t i = 0; alike && i + 2 < rank; i++)
        alike = shape->dim[i] == b->dim[i];
    for (uint32_t k = 0; alike && k < 3; k++)
        cut(pieces, k, 0, rank - 2);
    if (!alike && rank >= 2 && b->rank == 2)
        cut_rows(pieces, 0, rank - 1);
}

static void cut_gemm(mpl_half_pieces *pieces, const mpl_graph *g, mpl_op op, uint32_t first)
{
    uint32_t rows = mpl_attr_int(g, op, MPL_ATTR_trans_a, 0) != 0;
    uint32_t to = pieces->operand[pieces->n_in].shape.rank - 1;
    int64_t n = pieces->operand[pieces->n_in].shape.dim[0];
    const mpl_shape *shape = pieces->n_in > first + 2 ? &pieces->operand[first + 2].shape : NULL;

    for (uint32_t k = 0; k < first; k++)
        cut(pieces, k, 0, to);
    cut(pieces, first, rows, rows + to);
    if (shape != NULL && shape->rank == 2 && shape->dim[0] == n && n > 1)
        cut(pieces, first + 2, 0, 1);
    cut(pieces, pieces->n_in, 0, to);
}

enum { APART, REPEATED, ALIKE };

/* Along axes [0, to) of y, an operand has its dims, or one element. */
static int relation(const mpl_shape *s, const mpl_shape *y, uint32_t to)
{
    uint32_t lead = y->rank - s->rank;
    bool alike = lead == 0, one = true;

    for (uint32_t i = lead; i < to; i++) {
        alike = alike && s->dim[i - lead] == y->dim[i];
        one = one && s->dim[i - lead] == 1;
    }
    return one ? REPEATED : alike ? ALIKE : APART;
}

/* Element by element: as many leading axes of the result as possible. */
static void cut_elements(mpl_half_pieces *pieces)
{
    const mpl_shape y = pieces->operand[pieces->n_in].shape;
    uint32_t to = y.rank;
    bool fits = false;

    while (to > 0 && !fits) {
        fits = true;
        for (uint32_t k = 0; k < pieces->n_in; k++)
            fits = fits && relation(&pieces->operand[k].shape, &y, to) != APART;
        to -= !fits;
    }
    for (uint32_t k = 0; k <= pieces->n_in && to > 0; k++)
        if (k == pieces->n_in || relation(&pieces->operand[k].shape, &y, to) == ALIKE)
            cut(pieces, k, 0, to);
}

/* How an operator is cut depends on which inputs an element needs. Other operators stay whole. */
static void cut_operands(mpl_half_pieces *pieces, const mpl_graph *g, mpl_op op)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    int64_t axis = mpl_attr_int(g, op, MPL_ATTR_axis, -1);

    switch (kind) {
    case MPL_OP_conv:
    case MPL_OP_conv_act:
        cut_windows(pieces, g, op, 0);
        break;
    case MPL_OP_conv_sum:
        cut_windows(pieces, g, op, 1);
        break;
    case MPL_OP_max_pool:
    case MPL_OP_avg_pool:
    case MPL_OP_global_max_pool:
    case MPL_OP_global_avg_pool:
        cut_rows(pieces, 0, 2);
        break;
    case MPL_OP_batch_norm:
        cut_rows(pieces, 1, 2);
        for (uint32_t k = 1; k < pieces->n_in; k++)
            cut(pieces, k, 0, 1);
        break;
    case MPL_OP_softmax:
    case MPL_OP_log_softmax:
    case MPL_OP_layer_norm:
    case MPL_OP_rms_norm:
        axis += axis < 0 ? pieces->operand[0].shape.rank : 0;
        if (axis > 0)
            cut_rows(pieces, 0, (uint32_t)axis);
        break;
    case MPL_OP_matmul:
        cut_matmul(pieces);
        break;
    case MPL_OP_gemm:
    case MPL_OP_gemm_act:
        cut_gemm(pieces, g, op, 0);
        break;
    case MPL_OP_gemm_sum:
        cut_gemm(pieces, g, op, 1);
        break;
    default:
        if ((mpl_op_table[kind].traits & MPL_ELEMENTWISE) != 0 || kind == MPL_OP_sum)
            cut_elements(pieces);
    }
}

/* Entries in a piece: as equal as possible, of at most piece_bytes or one entry. */
static int64_t fit_piece(const mpl_half_pieces *p, int64_t piece_bytes)
{
    int64_t each = 0, once = 0, n, pieces;

    for (uint32_t k = 0; k < p->n_in + p->n_out; k++) {
        const mpl_half_operand *operand = &p->operand[k];
        int64_t entry = operand->outer * operand->inner * (int64_t)sizeof(float);

        if (operand->cut)
            each += operand->step * entry, once += (operand->window - operand->step) * entry;
    }
    n = (piece_bytes - once) / (each > 0 ? each : 1);
    n = n < 1 ? 1 : n > p->n ? p->n : n;
    pieces = (p->n + n - 1) / n;
    return (p->n + pieces - 1) / pieces;
}

void mpl_half_whole(mpl_half_pieces *pieces, const mpl_graph *g, mpl_op op)
{
    pieces->images = pieces->n = pieces->piece = 1;
    for (uint32_t k = 0; k < pieces->n_in + pieces->n_out; k++) {
        mpl_value v = mpl_half_value(g, op, k);
        mpl_half_operand *operand = &pieces->operand[k];

        if (v == MPL_NONE)
            continue;
        operand->shape = g->value_shape[v];
        operand->cut = false;
        operand->outer = operand->n = operand->piece = operand->step = operand->window = 1,
        operand->low = 0;
        operand->inner = mpl_count(&operand->shape);
    }
}

void mpl_half_cut(mpl_half_pieces *pieces, int64_t piece_bytes, const mpl_graph *g, mpl_op op)
{
    bool all = pieces->n_out == 1;

    mpl_half_whole(pieces, g, op);
    for (uint32_t k = 0; k < pieces->n_in + pieces->n_out; k++)
        all = all && (k == pieces->n_in || mpl_half_value(g, op, k) == MPL_NONE ||
                      pieces->operand[k].half);
    if (!all || !pieces->operand[pieces->n_in].half)
        return;
    cut_operands(pieces, g, op);
    if (!pieces->operand[pieces->n_in].cut)
        return;
    pieces->n = pieces->operand[pieces->n_in].n;
    pieces->piece = fit_piece(pieces, piece_bytes);
    for (uint32_t k = 0; k < pieces->n_in + pieces->n_out; k++) {
        mpl_half_operand *operand = &pieces->operand[k];

        if (operand->cut) {
            operand->piece = (pieces->piece - 1) * operand->step + operand->window;
            operand->shape.dim[operand->axis] = operand->piece;
        }
    }
}
