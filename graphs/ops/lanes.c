/* lanes.c -- iteration along some axes of a tensor. See lanes_priv.h. */
#include "graphs/ops/lanes_priv.h"

mpl_lanes mpl_lanes_of(const mpl_shape *shape, uint32_t axis)
{
    return (mpl_lanes){mpl_count_dims(shape, 0, axis), shape->dim[axis],
                       mpl_count_dims(shape, axis + 1, shape->rank)};
}

void mpl_split_dims(const mpl_shape *shape, uint32_t set, mpl_dims *kept, mpl_dims *reduced)
{
    int64_t stride[MPL_MAX_RANK];
    mpl_dims *last = NULL;

    kept->rank = reduced->rank = 0;
    mpl_strides(shape, stride);
    for (uint32_t i = 0; i < shape->rank; i++) {
        mpl_dims *dims = (set >> i & 1) != 0 ? reduced : kept;

        if (shape->dim[i] == 1)
            continue;
        if (dims != last)
            dims->dim[dims->rank++] = 1;
        dims->dim[dims->rank - 1] *= shape->dim[i];
        dims->stride[dims->rank - 1] = stride[i];
        last = dims;
    }
}

int64_t mpl_dims_count(const mpl_dims *dims)
{
    int64_t n = 1;

    for (uint32_t i = 0; i < dims->rank; i++)
        n *= dims->dim[i];
    return n;
}

mpl_status mpl_axes_of(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, uint32_t rank,
                       uint32_t otherwise, uint32_t *set)
{
    mpl_attr attr;

    if (mpl_attr_get(g, op, MPL_ATTR_axes, &attr))
        MPL_PASS(mpl_axis_set(ctx, attr.ints, attr.n, rank, set));
    else
        *set = otherwise;
    return MPL_OK;
}
