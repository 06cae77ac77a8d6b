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

void mpl_grad_give_piece(mpl_grad *d, uint32_t i, mpl_value part, const mpl_grad_box *box)
{
    mpl_value v = d->g->op_in[d->g->op_in_begin[d->op] + i];

    if (d->st == MPL_OK)
        d->st = mpl_reserve(d->ctx, d->piece, d->piece_cap, (size_t)d->n_pieces + 1);
    if (d->st == MPL_OK)
        d->piece[d->n_pieces++] = (mpl_grad_piece){v, part, *box};
}

/* The box as a strided region of x. */
static mpl_strided strided_of(mpl_grad *d, const mpl_shape *x, const mpl_grad_box *box)
{
    mpl_strided out = mpl_strided_all(x);

    for (uint32_t i = 0; i < x->rank && d->st == MPL_OK; i++)
        if (!mpl_strided_take(&out, i, box->start[i], box->step[i], box->shape.dim[i]))
            mpl_grad_fail(d, "a piece outside of the whole");
    return out;
}

static bool is_solid(const mpl_grad_box *box)
{
    for (uint32_t i = 0; i < box->shape.rank; i++)
        if (box->step[i] != 1 && box->shape.dim[i] != 1)
            return false;
    return true;
}

static mpl_value padded(mpl_grad *d, mpl_value v, const mpl_grad_piece *p)
{
    const mpl_shape *x = &d->g->value_shape[v];
    int64_t pads[2 * MPL_MAX_RANK] = {0};

    for (uint32_t i = 0; i < x->rank; i++) {
        pads[i] = p->box.start[i];
        pads[x->rank + i] = x->dim[i] - p->box.shape.dim[i] - p->box.start[i];
    }
    return mpl_grad_step(d, v, MPL_OP_pad, 1, &p->part, 1, &MPL_INTS(pads, 2 * x->rank, pads));
}

static mpl_value box_op(mpl_grad *d, mpl_value v, mpl_op_kind kind, uint32_t n_in,
                        const mpl_value *in, const mpl_strided *box)
{
    mpl_attr attr[] = {MPL_INTS(dims, box->shape.rank, box->shape.dim),
                       MPL_INTS(strides, box->shape.rank, box->stride),
                       MPL_INT(offset, box->offset)};

    return mpl_grad_step(d, v, kind, n_in, in, 3, attr);
}

/* `root` with a piece written into its box, or, with `add`, added to it. */
static mpl_value with_piece(mpl_grad *d, mpl_value v, mpl_value root, const mpl_grad_piece *p,
                            bool add)
{
    mpl_strided box = strided_of(d, &d->g->value_shape[v], &p->box);
    mpl_value part = p->part;

    if (add) {
        part = box_op(d, v, MPL_OP_access, 1, &root, &box);
        part = mpl_grad_step(d, v, MPL_OP_add, 2, (mpl_value[]){part, p->part}, 0, NULL);
    }
    return box_op(d, v, MPL_OP_assign, 2, (mpl_value[]){root, part}, &box);
}

static bool meets_earlier(mpl_grad *d, const mpl_shape *x, const mpl_grad_piece *pieces, uint32_t i)
{
    mpl_strided box = strided_of(d, x, &pieces[i].box);

    for (uint32_t k = 0; k < i; k++) {
        mpl_strided other = strided_of(d, x, &pieces[k].box);

        if (mpl_strided_meet(&box, &other, 0) != MPL_APART)
            return true;
    }
    return false;
}

/* The only axis along which pieces are partial; MPL_NONE: several, or steps; none: 0. */
static uint32_t only_axis(const mpl_shape *x, const mpl_grad_piece *pieces, uint32_t n)
{
    uint32_t axis = MPL_NONE;

    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < x->rank; i++) {
            if (!is_solid(&pieces[k].box))
                return MPL_NONE;
            if (pieces[k].box.shape.dim[i] == x->dim[i] || axis == i)
                continue;
            if (axis != MPL_NONE)
                return MPL_NONE;
            axis = i;
        }
    return axis != MPL_NONE ? axis : x->rank > 0 ? 0 : MPL_NONE;
}

/* The concat of pieces that fill an axis one after the other; MPL_NONE: they do not. */
static mpl_value concat_of(mpl_grad *d, mpl_value v, const mpl_grad_piece *pieces, uint32_t n)
{
    const mpl_shape *x = &d->g->value_shape[v];
    uint32_t axis = only_axis(x, pieces, n), n_in = 0;
    mpl_value *in = mpl_alloc(d->ctx, n, sizeof *in), found = MPL_NONE;
    int64_t at = 0;

    if (in == NULL) {
        d->st = MPL_EMEM;
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
    if (axis != MPL_NONE && n_in == n && at == x->dim[axis])
        found = mpl_grad_step(d, v, MPL_OP_concat, n, in, 1, &MPL_INT(axis, axis));
    mpl_free(d->ctx, in);
    return found;
}

/* Zeros with x's dims that may be overwritten. */
static mpl_value zero_root(mpl_grad *d, mpl_value v)
{
    const mpl_shape *x = &d->g->value_shape[v];
    mpl_value zero = mpl_grad_zero(d, (mpl_type)d->g->value_type[v]);

    return mpl_grad_step(d, v, MPL_OP_expand, 1, &zero, 1, &MPL_INTS(shape, x->rank, x->dim));
}

static mpl_value join(mpl_grad *d, mpl_value v, mpl_value whole, const mpl_grad_piece *pieces,
                      uint32_t n)
{
    const mpl_shape *x = &d->g->value_shape[v];
    mpl_value root = whole;
    uint32_t first = 0;

    if (whole == MPL_NONE && n == 1 && is_solid(&pieces[0].box) &&
        mpl_shape_equal(&pieces[0].box.shape, x))
        return pieces[0].part;
    if (whole == MPL_NONE && n > 1 && (root = concat_of(d, v, pieces, n)) != MPL_NONE)
        return root;
    if (whole == MPL_NONE) {
        bool solid = is_solid(&pieces[0].box);

        root = solid ? padded(d, v, &pieces[0]) : zero_root(d, v);
        first = solid;
    }
    for (uint32_t i = first; i < n && d->st == MPL_OK; i++)
        root =
            with_piece(d, v, root, &pieces[i], whole != MPL_NONE || meets_earlier(d, x, pieces, i));
    return root;
}

mpl_value mpl_grad_join(mpl_grad *d, mpl_value v, mpl_value whole)
{
    mpl_grad_piece *pieces = NULL;
    uint32_t n = 0, kept = 0;

    for (uint32_t i = 0; i < d->n_pieces; i++)
        n += d->piece[i].of == v;
    if (n == 0 || d->st != MPL_OK)
        return whole;
    if ((pieces = mpl_alloc(d->ctx, n, sizeof *pieces)) == NULL) {
        d->st = MPL_EMEM;
        return MPL_NONE;
    }
    n = 0;
    for (uint32_t i = 0; i < d->n_pieces; i++)
        if (d->piece[i].of == v)
            pieces[n++] = d->piece[i];
        else
            d->piece[kept++] = d->piece[i];
    d->n_pieces = kept;
    whole = join(d, v, whole, pieces, n);
    mpl_free(d->ctx, pieces);
    return whole;
}
