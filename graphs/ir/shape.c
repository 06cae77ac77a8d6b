/* shape.c -- shapes: equality, element counts, printing. */
#include "graphs/graph.h"

bool mpl_shape_equal(const mpl_shape *a, const mpl_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

bool mpl_shape_count(const mpl_shape *shape, uint64_t *count)
{
    uint64_t n = 1;

    for (uint32_t i = 0; i < shape->rank; i++)
        if (shape->dim[i] < 0 || !mpl_mul_bytes(n, (uint64_t)shape->dim[i], &n) || n > INT64_MAX)
            return false;
    *count = n;
    return true;
}

const char *mpl_shape_text(const mpl_shape *shape, char *text)
{
    char *at = text;

    *at++ = '[';
    for (uint32_t i = 0; i < shape->rank; i++)
        at += sprintf(at, i == 0 ? "%" PRId64 : ",%" PRId64, shape->dim[i]);
    strcpy(at, "]");
    return text;
}

void mpl_tensor_cut(mpl_tensor *tensor, uint32_t axis, int64_t length)
{
    size_t inner = (size_t)mpl_count_dims(&tensor->shape, axis + 1, tensor->shape.rank) *
                   mpl_type_bytes(tensor->type);
    size_t from = (size_t)tensor->shape.dim[axis] * inner, to = (size_t)length * inner;

    for (int64_t i = 1; i < mpl_count_dims(&tensor->shape, 0, axis); i++)
        memmove((char *)tensor->data + (size_t)i * to, (char *)tensor->data + (size_t)i * from, to);
    tensor->shape.dim[axis] = length;
}
