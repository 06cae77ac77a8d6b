/* grad_index.c -- gradients of operations that read by index, from boxes, or repeatedly. See
 * gradients_priv.h.
 *
 * Idea     Adds the gradient into zeros where the operation read. Elements read twice get both
 *          parts, in the order of the indices, so every run gives the same bits. */
#include "graphs/ops/move/move_strided_priv.h"
#include "graphs/passes/autodiff/gradients_priv.h"

/* Zeros that may be overwritten. */
static mpl_value zero_root(mpl_grad *grad, const mpl_shape *shape)
{
    mpl_value zero = mpl_grad_zero(
        grad, (mpl_type)grad->g->value_type[grad->g->op_in[grad->g->op_in_begin[grad->op]]]);

    return mpl_grad_helper(grad, MPL_OP_expand, 1, &zero, 1,
                           &MPL_INTS(shape, shape->rank, shape->dim));
}

/* Adds rows of dy to zeros of `shape`, at the indices. */
static mpl_value scattered(mpl_grad *grad, const mpl_shape *shape, mpl_value indices, mpl_value dy)
{
    mpl_value in[] = {zero_root(grad, shape), indices, dy};

    return mpl_grad_helper(grad, MPL_OP_scatter_nd, 3, in, 1, &MPL_TEXT(reduction, "add"));
}

/* Moves axes [from, from + n) to the front; `back`: moves them back. */
static mpl_value rotated(mpl_grad *grad, mpl_value v, uint32_t from, uint32_t n, bool back)
{
    uint32_t rank = v != MPL_NONE ? grad->to->value_shape[v].rank : 0, at = 0;
    int64_t perm[MPL_MAX_RANK] = {0}, turned[MPL_MAX_RANK];

    if (from == 0)
        return v;
    for (uint32_t i = from; i < from + n && i < rank; i++)
        perm[at++] = i;
    for (uint32_t i = 0; i < rank; i++)
        if (i < from || i >= from + n)
            perm[at++] = i;
    for (uint32_t i = 0; i < rank; i++)
        turned[perm[i]] = i;
    return mpl_grad_helper(grad, MPL_OP_transpose, 1, &v, 1,
                           &MPL_INTS(perm, rank, back ? turned : perm));
}

void mpl_grad_of_gather(mpl_grad *grad)
{
    const mpl_shape *x = mpl_grad_in_shape(grad, 0), *index = mpl_grad_in_shape(grad, 1);
    int64_t axis = mpl_attr_int(grad->g, grad->op, MPL_ATTR_axis, 0);
    uint32_t at = (uint32_t)(axis < 0 ? axis + x->rank : axis);
    mpl_shape rows = *index, root = *x;
    mpl_value indices = mpl_grad_in(grad, 1),
              dy = rotated(grad, mpl_grad_dy(grad, 0), at, index->rank, false);

    if (index->rank == MPL_MAX_RANK) {
        mpl_grad_fail(grad, "indices of the most dims there can be");
        return;
    }
    rows.dim[rows.rank++] = 1;
    memmove(root.dim + 1, root.dim, at * sizeof *root.dim);
    root.dim[0] = x->dim[at];
    indices = mpl_grad_helper(grad, MPL_OP_reshape, 1, &indices, 1,
                              &MPL_INTS(shape, rows.rank, rows.dim));
    mpl_grad_give(grad, 0, rotated(grad, scattered(grad, &root, indices, dy), at, 1, true));
}

void mpl_grad_of_gather_nd(mpl_grad *grad)
{
    if (mpl_attr_int(grad->g, grad->op, MPL_ATTR_batch_dims, 0) != 0) {
        mpl_grad_fail(grad, "dims of a batch");
        return;
    }
    mpl_grad_give(
        grad, 0,
        scattered(grad, mpl_grad_in_shape(grad, 0), mpl_grad_in(grad, 1), mpl_grad_dy(grad, 0)));
}

/* Attributes of the current operation's box; their numbers are in *box. */
static void box_attrs(mpl_grad *grad, mpl_strided *box, mpl_attr attr[3])
{
    if (grad->st == MPL_OK)
        grad->st = mpl_strided_of(grad->ctx, grad->g, grad->op, mpl_grad_in_shape(grad, 0), box);
    if (grad->st != MPL_OK)
        *box = (mpl_strided){.shape = {.rank = 0}};
    attr[0] = MPL_INTS(dims, box->shape.rank, box->shape.dim);
    attr[1] = MPL_INTS(strides, box->shape.rank, box->stride);
    attr[2] = MPL_INTS(offset, 1, &box->offset);
}

void mpl_grad_of_access(mpl_grad *grad)
{
    mpl_strided box;
    mpl_attr attr[3];
    mpl_value in[2];

    box_attrs(grad, &box, attr);
    if (grad->st == MPL_OK && !mpl_strided_distinct(&box)) {
        mpl_grad_fail(grad, "a box that has an element twice");
        return;
    }
    in[0] = zero_root(grad, mpl_grad_in_shape(grad, 0));
    in[1] = mpl_grad_dy(grad, 0);
    mpl_grad_make(grad, 0, MPL_OP_assign, 2, in, 3, attr);
}

void mpl_grad_of_assign(mpl_grad *grad)
{
    mpl_strided box;
    mpl_attr attr[3];
    mpl_value dy = mpl_grad_dy(grad, 0);

    box_attrs(grad, &box, attr);
    if (mpl_grad_wants(grad, 0)) {
        mpl_value zero = mpl_grad_zero(
            grad, (mpl_type)grad->g->value_type[grad->g->op_in[grad->g->op_in_begin[grad->op]]]);

        mpl_grad_make(grad, 0, MPL_OP_assign, 2, (mpl_value[]){dy, zero}, 3, attr);
    }
    if (mpl_grad_wants(grad, 1))
        mpl_grad_give_summed(grad, 1, mpl_grad_helper(grad, MPL_OP_access, 1, &dy, 3, attr));
}

/* Whether scatter and gather are along an axis, or by tuples of indices. */
static bool along_axis(const mpl_grad *grad)
{
    return grad->g->op_kind[grad->op] != MPL_OP_scatter_nd;
}

/* gather_elements, and top_k, whose second result is the indices. */
static void give_scattered(mpl_grad *grad, mpl_value indices)
{
    mpl_value in[] = {zero_root(grad, mpl_grad_in_shape(grad, 0)), indices, mpl_grad_dy(grad, 0)};
    int64_t axis = mpl_attr_int(grad->g, grad->op, MPL_ATTR_axis,
                                grad->g->op_kind[grad->op] == MPL_OP_top_k ? -1 : 0);

    mpl_grad_make(grad, 0, MPL_OP_scatter_elements, 3, in, 2,
                  (const mpl_attr[]){MPL_INT(axis, axis), MPL_TEXT(reduction, "add")});
}

void mpl_grad_of_gather_elements(mpl_grad *grad)
{
    give_scattered(grad, mpl_grad_in(grad, 1));
}

void mpl_grad_of_top_k(mpl_grad *grad)
{
    if (mpl_op_output(grad->g, grad->op, 1) == MPL_NONE)
        mpl_grad_fail(grad, "without its indices");
    else
        give_scattered(grad, mpl_grad_out(grad, 1));
}

/* scatter_nd, scatter_elements: overwritten elements have no gradient; elements that are added to
 * have one. */
void mpl_grad_of_scatter(mpl_grad *grad)
{
    const char *how = mpl_attr_text(grad->g, grad->op, MPL_ATTR_reduction, "none");
    bool adds = strcmp(how, "add") == 0, axis = along_axis(grad);
    mpl_attr attr[MPL_GRAD_ATTRS];
    uint32_t n = mpl_grad_attrs(grad, attr);
    mpl_value dy = mpl_grad_dy(grad, 0), indices = mpl_grad_in(grad, 1);

    if (!adds && strcmp(how, "none") != 0) {
        mpl_grad_fail(grad, "a reduction other than add");
        return;
    }
    if (mpl_grad_wants(grad, 0) && adds)
        mpl_grad_give(grad, 0, dy);
    else if (mpl_grad_wants(grad, 0)) {
        mpl_value in[] = {dy, indices, zero_root(grad, mpl_grad_in_shape(grad, 2))};

        mpl_grad_make(grad, 0, axis ? MPL_OP_scatter_elements : MPL_OP_scatter_nd, 3, in, n, attr);
    }
    if (mpl_grad_wants(grad, 2))
        mpl_grad_make(grad, 2, axis ? MPL_OP_gather_elements : MPL_OP_gather_nd, 2,
                      (mpl_value[]){dy, indices}, axis,
                      &MPL_INT(axis, mpl_attr_int(grad->g, grad->op, MPL_ATTR_axis, 0)));
}

/* ---- the same operation, or its reverse ---- */

void mpl_grad_of_trilu(mpl_grad *grad)
{
    mpl_attr attr[MPL_GRAD_ATTRS];
    uint32_t n = mpl_grad_attrs(grad, attr);

    mpl_grad_make(grad, 0, MPL_OP_trilu, 1, (mpl_value[]){mpl_grad_dy(grad, 0)}, n, attr);
}

void mpl_grad_of_cumsum(mpl_grad *grad)
{
    const mpl_graph *g = grad->g;

    mpl_grad_make(
        grad, 0, MPL_OP_cumsum, 1, (mpl_value[]){mpl_grad_dy(grad, 0)}, 3,
        (const mpl_attr[]){MPL_INT(axis, mpl_attr_int(g, grad->op, MPL_ATTR_axis, 0)),
                           MPL_INT(exclusive, mpl_attr_int(g, grad->op, MPL_ATTR_exclusive, 0)),
                           MPL_INT(reverse, !mpl_attr_int(g, grad->op, MPL_ATTR_reverse, 0))});
}

/* depth_to_space, space_to_depth: dy as six dims, turned. */
void mpl_grad_of_blocks(mpl_grad *grad)
{
    static const int64_t perms[3][6] = {
        {0, 3, 5, 1, 2, 4}, {0, 1, 3, 5, 2, 4}, {0, 3, 4, 1, 5, 2}}; /* DCR, CRD, to depth */
    const mpl_shape *x = mpl_grad_in_shape(grad, 0), *y = mpl_grad_out_shape(grad, 0);
    int64_t b = mpl_attr_int(grad->g, grad->op, MPL_ATTR_blocksize, 1);
    bool to_depth = grad->g->op_kind[grad->op] == MPL_OP_space_to_depth;
    bool crd = strcmp(mpl_attr_text(grad->g, grad->op, MPL_ATTR_mode, "DCR"), "CRD") == 0;
    int64_t apart[2][6] = {{y->dim[0], y->dim[1], x->dim[2], b, x->dim[3], b},
                           {y->dim[0], b, b, x->dim[1], y->dim[2], y->dim[3]}};
    mpl_value v = mpl_grad_dy(grad, 0);

    v = mpl_grad_helper(grad, MPL_OP_reshape, 1, &v, 1, &MPL_INTS(shape, 6, apart[to_depth]));
    v = mpl_grad_helper(grad, MPL_OP_transpose, 1, &v, 1,
                        &MPL_INTS(perm, 6, perms[to_depth ? 2 : crd]));
    mpl_grad_make(grad, 0, MPL_OP_reshape, 1, &v, 1, &MPL_INTS(shape, x->rank, x->dim));
}

/* ---- repeated elements ---- */

/* Sums dy, seen as dim[rank], over these axes; gives it to input 0. */
static void give_folded(mpl_grad *grad, uint32_t rank, const int64_t *dim, uint32_t n,
                        const int64_t *axes)
{
    mpl_value part = mpl_grad_dy(grad, 0);

    part = mpl_grad_helper(grad, MPL_OP_reshape, 1, &part, 1, &MPL_INTS(shape, rank, dim));
    if (n > 0)
        mpl_grad_make(grad, 0, MPL_OP_reduce_sum, 1, &part, 2,
                      (const mpl_attr[]){MPL_INTS(axes, n, axes), MPL_INT(keepdims, 0)});
    else
        mpl_grad_give(grad, 0, part);
}

void mpl_grad_of_tile(mpl_grad *grad)
{
    const mpl_shape *shape = mpl_grad_in_shape(grad, 0), *y = mpl_grad_out_shape(grad, 0);
    int64_t dim[2 * MPL_MAX_RANK], axes[MPL_MAX_RANK];
    uint32_t rank = 0, n = 0;

    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t repeats = shape->dim[i] > 0 ? y->dim[i] / shape->dim[i] : 1;

        if (repeats != 1) {
            axes[n++] = rank;
            dim[rank++] = repeats;
        }
        dim[rank++] = shape->dim[i];
    }
    if (rank > MPL_MAX_RANK)
        mpl_grad_fail(grad, "too many dims that are repeated");
    else
        give_folded(grad, rank, dim, n, axes);
}

/* Number of neighbouring results per element along an axis; 0: it varies. */
static int64_t whole_factor(const mpl_grad *grad, uint32_t axis)
{
    const mpl_shape *shape = mpl_grad_in_shape(grad, 0), *y = mpl_grad_out_shape(grad, 0);
    mpl_attr scales;

    if (shape->dim[axis] < 1 || y->dim[axis] % shape->dim[axis] != 0)
        return 0;
    if (mpl_attr_get(grad->g, grad->op, MPL_ATTR_scales, &scales) &&
        scales.floats[axis] != (double)(y->dim[axis] / shape->dim[axis]))
        return 0;
    return y->dim[axis] / shape->dim[axis];
}

void mpl_grad_of_resize(mpl_grad *grad)
{
    const mpl_shape *shape = mpl_grad_in_shape(grad, 0);
    int64_t dim[MPL_MAX_RANK], axes[MPL_MAX_RANK];
    uint32_t rank = 0, n = 0, n_axes;
    bool neighbours;

    mpl_attr_ints(grad->g, grad->op, MPL_ATTR_axes, &n_axes);
    neighbours =
        n_axes == 0 &&
        strcmp(mpl_attr_text(grad->g, grad->op, MPL_ATTR_mode, "nearest"), "nearest") == 0 &&
        strcmp(mpl_attr_text(grad->g, grad->op, MPL_ATTR_coordinate_mode, "half_pixel"),
               "asymmetric") == 0 &&
        strcmp(mpl_attr_text(grad->g, grad->op, MPL_ATTR_nearest_mode, "round_prefer_floor"),
               "floor") == 0;
    for (uint32_t i = 0; i < shape->rank && neighbours; i++) {
        int64_t factor = whole_factor(grad, i);

        neighbours = factor > 0 && rank + (factor > 1) < MPL_MAX_RANK;
        if (!neighbours)
            break;
        dim[rank++] = shape->dim[i];
        if (factor > 1) {
            axes[n++] = rank;
            dim[rank++] = factor;
        }
    }
    if (!neighbours) {
        mpl_grad_fail(grad,
                      "other than the nearest element (asymmetric, floor), whole numbers of times");
        return;
    }
    give_folded(grad, rank, dim, n, axes);
}
