/* unique.c -- unique: the different slices along an axis, in ascending order (sorted, the default)
 * or in that of their first places.
 *
 * Outputs: the slices; the first place of each; the number in output 0 of each slice of the input;
 * how often each occurs; how many there are, by which outputs 0, 1 and 3 count (see select.c).
 * Cost: O(slices^2) comparisons. */
#include "graphs/ops/ops_priv.h"

mpl_status mpl_shape_unique(mpl_ctx *ctx, const mpl_shape_call *call)
{
    uint32_t axis = 0;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_ANY));
    MPL_PASS(mpl_axis_attr(ctx, call, 0, call->in_shape[0]->rank, &axis));
    mpl_like_input(call, 0, call->in_type[0]);
    for (uint32_t i = 1; i < 5; i++) {
        call->out_shape[i] = (mpl_shape){i < 4 ? 1 : 0, {call->in_shape[0]->dim[axis]}};
        call->out_type[i] = MPL_TYPE_i64;
    }
    return MPL_OK;
}

/* The slices of an input along an axis. */
typedef struct slices {
    const mpl_tensor *in;
    int64_t outer, n, inner;
} slices;

/* Below 0, 0 or above, as slice i comes before, is or comes after slice j. A NaN comes last, and is
 * no other's equal. */
static int compare(const slices *self, int64_t i, int64_t j)
{
    mpl_type type = self->in->type;

    for (int64_t o = 0; o < self->outer && i != j; o++)
        for (int64_t k = 0; k < self->inner; k++) {
            int64_t at[2] = {(o * self->n + i) * self->inner + k,
                             (o * self->n + j) * self->inner + k};

            if (mpl_type_in(type, MPL_SET_FLOAT)) {
                double a = mpl_get(type, self->in->data, at[0]),
                       b = mpl_get(type, self->in->data, at[1]);

                if (a != b)
                    return a < b || (a == a && b != b) || (a != a && b != b && i < j) ? -1 : 1;
            } else {
                int64_t a = mpl_get_int(type, self->in->data, at[0]),
                        b = mpl_get_int(type, self->in->data, at[1]);

                if (a != b)
                    return (type == MPL_TYPE_u64 ? (uint64_t)a < (uint64_t)b : a < b) ? -1 : 1;
            }
        }
    return 0;
}

/* Puts slice `from` of the input into slice `to` of output 0. */
static void put_slice(const mpl_op_call *call, const slices *s, int64_t from, int64_t to)
{
    size_t row = (size_t)s->inner * mpl_type_bytes(s->in->type);

    for (int64_t o = 0; o < s->outer; o++)
        memcpy((char *)call->out[0].data + (size_t)(o * s->n + to) * row,
               (const char *)s->in->data + (size_t)(o * s->n + from) * row, row);
}

/* Before: inverse[i] is the first place of slice i's equals. */
static int64_t number_them(const slices *self, bool sorted, int64_t *inverse, int64_t *first)
{
    int64_t found = 0;

    for (int64_t i = 0; i < self->n; i++)
        if (inverse[i] == i) {
            int64_t at = found++;

            for (; sorted && at > 0 && compare(self, i, first[at - 1]) < 0; at--)
                first[at] = first[at - 1];
            first[at] = i;
        }
    return found;
}

mpl_status mpl_eval_unique(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *in = &call->in[0];
    uint32_t axis = mpl_axis_of(call, 0, in->shape.rank);
    slices s = {in, mpl_count_dims(&in->shape, 0, axis), in->shape.dim[axis],
                mpl_count_dims(&in->shape, axis + 1, in->shape.rank)};
    int64_t *first = call->out[1].data, *inverse = call->out[2].data, *count = call->out[3].data;
    int64_t found, n = s.n;

    (void)ctx;
    for (int64_t i = 0; i < n; i++)
        for (inverse[i] = 0; inverse[i] < i && compare(&s, i, inverse[i]) != 0;)
            inverse[i]++;
    memset(first, 0, (size_t)n * sizeof *first);
    memset(count, 0, (size_t)n * sizeof *count);
    memset(call->out[0].data, 0, (size_t)mpl_count(&in->shape) * mpl_type_bytes(in->type));
    found = number_them(&s, mpl_attr_int(call->graph, call->op, MPL_ATTR_sorted, 1) != 0, inverse,
                        first);
    for (int64_t i = n; i-- > 0;)
        for (int64_t k = 0; k < found; k++)
            if (inverse[i] == first[k]) {
                inverse[i] = k;
                count[k]++;
                break;
            }
    for (int64_t k = 0; k < found && s.inner * s.outer > 0; k++)
        put_slice(call, &s, first[k], k);
    *(int64_t *)call->out[4].data = found;
    return MPL_OK;
}
