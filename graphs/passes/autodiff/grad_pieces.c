/* grad_pieces.c -- gradients known for some elements only: of slices, and of pieces of splits. See
 * gradients_priv.h.
 *
 * Idea     A value read in pieces has one gradient, whatever their number. Pieces that follow each
 *          other along an axis are concatenated. Otherwise there is one root: the sum of the whole
 *          parts, or zeros. Each piece is written into its box of the root, in place, one after the
 *          other; it is added where an element may have a part already. A lone piece is padded with
 *          zeros.
 * Source   zero-initialised gradients whose parts are written through aliases: libnnc, L. Liu; as
 *          values without aliases: this project.
 * Cost     pieces^2 intersections of boxes; one root of memory, where padding each piece by itself
 *          would take one per piece. */
#include "graphs/passes/autodiff/gradients_priv.h"

void mpl_grad_give_piece(mpl_grad *grad, uint32_t i, mpl_value part, const mpl_grad_box *box)
{
    mpl_value v = grad->g->op_in[grad->g->op_in_begin[grad->op] + i];

    if (grad->st == MPL_OK)
        grad->st = mpl_reserve(grad->ctx, grad->piece, grad->piece_cap, (size_t)grad->n_pieces + 1);
    if (grad->st == MPL_OK)
        grad->piece[grad->n_pieces++] = (mpl_grad_piece){v, part, *box};
}

/* The box as a strided region of shape. */
static mpl_strided strided_of(mpl_grad *grad, const mpl_shape *shape, const mpl_grad_box *box)
{
    mpl_strided out = mpl_strided_all(shape);

    for (uint32_t i = 0; i < shape->rank && grad->st == MPL_OK; i++)
        if (!mpl_strided_take(&out, i, box->start[i], box->step[i], box->shape.dim[i]))
            mpl_grad_fail(grad, "a piece outside of the whole");
    return out;
}

static bool is_solid(const mpl_grad_box *box)
{
    for (uint32_t i = 0; i < box->shape.rank; i++)
        if (box->step[i] != 1 && box->shape.dim[i] != 1)
            return false;
    return true;
}

static mpl_value padded(mpl_grad *grad, mpl_value v, const mpl_grad_piece *piece)
{
    const mpl_shape *shape = &grad->g->value_shape[v];
    int64_t pads[2 * MPL_MAX_RANK] = {0};

    for (uint32_t i = 0; i < shape->rank; i++) {
        pads[i] = piece->box.start[i];
        pads[shape->rank + i] = shape->dim[i] - piece->box.shape.dim[i] - piece->box.start[i];
    }
    return mpl_grad_step(grad, v, MPL_OP_pad, 1, &piece->part, 1,
                         &MPL_INTS(pads, 2 * shape->rank, pads));
}

static mpl_value box_op(mpl_grad *grad, mpl_value v, mpl_op_kind kind, uint32_t n_in,
                        const mpl_value *in, const mpl_strided *box)
{
    mpl_attr attr[] = {MPL_INTS(dims, box->shape.rank, box->shape.dim),
                       MPL_INTS(strides, box->shape.rank, box->stride),
                       MPL_INT(offset, box->offset)};

    return mpl_grad_step(grad, v, kind, n_in, in, 3, attr);
}

/* `root` with a piece written into its box, or, with `add`, added to it. */
static mpl_value with_piece(mpl_grad *grad, mpl_value v, mpl_value root,
                            const mpl_grad_piece *piece, bool add)
{
    mpl_strided box = strided_of(grad, &grad->g->value_shape[v], &piece->box);
    mpl_value part = piece->part;

    if (add) {
        part = box_op(grad, v, MPL_OP_access, 1, &root, &box);
        part = mpl_grad_step(grad, v, MPL_OP_add, 2, (mpl_value[]){part, piece->part}, 0, NULL);
    }
    return box_op(grad, v, MPL_OP_assign, 2, (mpl_value[]){root, part}, &box);
}

static bool meets_earlier(mpl_grad *grad, const mpl_shape *shape, const mpl_grad_piece *pieces,
                          uint32_t i)
{
    mpl_strided box = strided_of(grad, shape, &pieces[i].box);

    for (uint32_t k = 0; k < i; k++) {
        mpl_strided other = strided_of(grad, shape, &pieces[k].box);

        if (mpl_strided_meet(&box, &other, 0) != MPL_APART)
            return true;
    }
    return false;
}

/* The only axis along which pieces are partial; MPL_NONE: several, or steps; none: 0. */
static uint32_t only_axis(const mpl_shape *shape, const mpl_grad_piece *pieces, uint32_t n)
{
    uint32_t axis = MPL_NONE;

    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < shape->rank; i++) {
            if (!is_solid(&pieces[k].box))
                return MPL_NONE;
            if (pieces[k].box.shape.dim[i] == shape->dim[i] || axis == i)
                continue;
            if (axis != MPL_NONE)
                return MPL_NONE;
            axis = i;
        }
    return axis != MPL_NONE ? axis : shape->rank > 0 ? 0 : MPL_NONE;
}

/* The concat of pieces that fill an axis one after the other; MPL_NONE: they do not. */
static mpl_value concat_of(mpl_grad *grad, mpl_value v, const mpl_grad_piece *pieces, uint32_t n)
{
    const mpl_shape *shape = &grad->g->value_shape[v];
    uint32_t axis = only_axis(shape, pieces, n), n_in = 0;
    mpl_value *in = mpl_alloc(grad->ctx, n, sizeof *in), found = MPL_NONE;
    int64_t at = 0;

    if (in == NULL) {
        grad->st = MPL_EMEM;
        return MPL_NONE;
    }
    /* the piece that begins where the previous one ends */
    for (uint32_t k = 0; axis != MPL_NONE && k < n && n_in < n; k++) {
        uint32_t next = 0;

        while (next < n &&
               (pieces[next].box.start[axis] != at || pieces[next].box.shape.dim[axis] == 0))
            next++;
        if (next == n)
            break;
        in[n_in++] = pieces[next].part;
        at += pieces[next].box.shape.dim[axis];
    }
    if (axis != MPL_NONE && n_in == n && at == shape->dim[axis])
        found = mpl_grad_step(grad, v, MPL_OP_concat, n, in, 1, &MPL_INT(axis, axis));
    mpl_free(grad->ctx, in);
    return found;
}

/* Zeros with x's dims that may be overwritten. */
static mpl_value zero_root(mpl_grad *grad, mpl_value v)
{
    const mpl_shape *x = &grad->g->value_shape[v];
    mpl_value zero = mpl_grad_zero(grad, (mpl_type)grad->g->value_type[v]);

    return mpl_grad_step(grad, v, MPL_OP_expand, 1, &zero, 1, &MPL_INTS(shape, x->rank, x->dim));
}

static mpl_value join(mpl_grad *grad, mpl_value v, mpl_value whole, const mpl_grad_piece *pieces,
                      uint32_t n)
{
    const mpl_shape *shape = &grad->g->value_shape[v];
    mpl_value root = whole;
    uint32_t first = 0;

    if (whole == MPL_NONE && n == 1 && is_solid(&pieces[0].box) &&
        mpl_shape_equal(&pieces[0].box.shape, shape))
        return pieces[0].part;
    if (whole == MPL_NONE && n > 1 && (root = concat_of(grad, v, pieces, n)) != MPL_NONE)
        return root;
    if (whole == MPL_NONE) {
        bool solid = is_solid(&pieces[0].box);

        root = solid ? padded(grad, v, &pieces[0]) : zero_root(grad, v);
        first = solid;
    }
    for (uint32_t i = first; i < n && grad->st == MPL_OK; i++)
        root = with_piece(grad, v, root, &pieces[i],
                          whole != MPL_NONE || meets_earlier(grad, shape, pieces, i));
    return root;
}

mpl_value mpl_grad_join(mpl_grad *grad, mpl_value v, mpl_value whole)
{
    mpl_grad_piece *pieces = NULL;
    uint32_t n = 0, kept = 0;

    for (uint32_t i = 0; i < grad->n_pieces; i++)
        n += grad->piece[i].of == v;
    if (n == 0 || grad->st != MPL_OK)
        return whole;
    if ((pieces = mpl_alloc(grad->ctx, n, sizeof *pieces)) == NULL) {
        grad->st = MPL_EMEM;
        return MPL_NONE;
    }
    n = 0;
    for (uint32_t i = 0; i < grad->n_pieces; i++)
        if (grad->piece[i].of == v)
            pieces[n++] = grad->piece[i];
        else
            grad->piece[kept++] = grad->piece[i];
    grad->n_pieces = kept;
    whole = join(grad, v, whole, pieces, n);
    mpl_free(grad->ctx, pieces);
    return whole;
}
