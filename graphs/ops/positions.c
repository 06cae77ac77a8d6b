/* positions.c -- operators of transformers that go by positions in a sequence: rotary_embedding,
 * tensor_scatter.
 *
 * Source: ONNX, docs/Operators.md: RotaryEmbedding, TensorScatter. */
#include "graphs/ops/ops_priv.h"

/* ---- rotary_embedding ---- */

/* x is [batch, heads, steps, width], or [batch, steps, heads * width] with attribute num_heads.
 * Pairs of the first `turned` numbers of each head are rotated by the angle of their step. */
typedef struct rotary {
    int64_t batch, heads, steps, width, turned;
    bool heads_last; /* x has 3 dims */
    bool adjacent; /* the numbers of a pair stand beside each other, else half of `turned` apart */
} rotary;

static mpl_status read_rotary(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, const mpl_shape *shape,
                              rotary *out)
{
    int64_t heads = mpl_attr_int(g, op, MPL_ATTR_num_heads, 0);
    int64_t turned = mpl_attr_int(g, op, MPL_ATTR_rotary_embedding_dim, 0);
    bool last = shape->rank == 3;

    if (last && (heads < 1 || shape->dim[2] % heads != 0))
        return MPL_REFUSE(ctx, "attribute 'num_heads' is %" PRId64 "; it must divide %" PRId64,
                          heads, shape->dim[2]);
    *out = (rotary){.batch = shape->dim[0],
                    .heads = last ? heads : shape->dim[1],
                    .steps = shape->dim[last ? 1 : 2],
                    .width = last ? shape->dim[2] / heads : shape->dim[3],
                    .heads_last = last,
                    .adjacent = mpl_attr_int(g, op, MPL_ATTR_interleaved, 0) != 0};
    out->turned = turned != 0 ? turned : out->width;
    if (out->turned < 0 || out->turned > out->width || out->turned % 2 != 0)
        return MPL_REFUSE(ctx,
                          "%" PRId64 " numbers of a head are to be rotated; an even number of at "
                          "most %" PRId64 " is needed",
                          out->turned, out->width);
    return MPL_OK;
}

mpl_status mpl_shape_rotary_embedding(mpl_ctx *ctx, const mpl_shape_call *call)
{
    bool gathers = call->n_in > 3 && call->in_shape[3] != NULL;
    mpl_shape angles, steps;
    rotary r;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    MPL_PASS(mpl_check_rank(ctx, call, 0, 3, 4));
    MPL_PASS(read_rotary(ctx, call->graph, call->op, call->in_shape[0], &r));
    steps = (mpl_shape){2, {r.batch, r.steps}};
    angles = (mpl_shape){3, {r.batch, r.steps, r.turned / 2}};
    if (gathers) {
        MPL_PASS(mpl_check_type(ctx, call, 3, MPL_SET_INDEX));
        if (!mpl_shape_equal(call->in_shape[3], &steps))
            return MPL_REFUSE(ctx, "the positions must be one a step, [%" PRId64 ",%" PRId64 "]",
                              r.batch, r.steps);
        angles = (mpl_shape){2, {call->in_shape[1]->dim[0], r.turned / 2}};
    }
    for (uint32_t i = 1; i < 3; i++) {
        MPL_PASS(mpl_check_same_type(ctx, call, i, 0));
        if (!mpl_shape_equal(call->in_shape[i], &angles))
            return MPL_REFUSE(ctx, "the %s must be %s, with %" PRId64 " numbers a %s",
                              i == 1 ? "cosines" : "sines", gathers ? "2-D" : "3-D", r.turned / 2,
                              gathers ? "position" : "step");
    }
    return mpl_like_input(call, 0, call->in_type[0]);
}

/* One head at `at`; its angles are at `angle`. */
MPL_INLINE void rotate_head(mpl_type type, const mpl_op_call *call, const rotary *r, int64_t at,
                            int64_t angle)
{
    const void *x = call->in[0].data;
    void *y = call->out[0].data; /* may be x: pairs are disjoint */
    int64_t half = r->turned / 2;

    for (int64_t k = 0; k < half; k++) {
        int64_t i = at + (r->adjacent ? 2 * k : k), j = i + (r->adjacent ? 1 : half);
        double cosine = mpl_get(type, call->in[1].data, angle + k);
        double sine = mpl_get(type, call->in[2].data, angle + k);
        double real = mpl_get(type, x, i), imaginary = mpl_get(type, x, j);

        mpl_put(type, y, i, cosine * real - sine * imaginary);
        mpl_put(type, y, j, sine * real + cosine * imaginary);
    }
    for (int64_t k = at + r->turned; k < at + r->width; k++)
        mpl_put(type, y, k, mpl_get(type, x, k));
}

mpl_status mpl_eval_rotary_embedding(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *positions = call->n_in > 3 && call->in[3].data != NULL ? &call->in[3] : NULL;
    rotary r;

    MPL_PASS(read_rotary(ctx, call->graph, call->op, &call->in[0].shape, &r));
    for (int64_t b = 0; b < r.batch; b++)
        for (int64_t s = 0; s < r.steps; s++) {
            int64_t step = b * r.steps + s, angle = step, most = call->in[1].shape.dim[0];

            if (positions != NULL)
                angle = mpl_get_int(positions->type, positions->data, step);
            if (positions != NULL && (angle < 0 || angle >= most))
                return MPL_REFUSE(ctx, "position %" PRId64 " outside [0,%" PRId64 "]", angle,
                                  most - 1);
            for (int64_t h = 0; h < r.heads; h++) {
                int64_t head = r.heads_last ? step * r.heads + h : (b * r.heads + h) * r.steps + s;

                MPL_FOR_FLOAT(call->in[0].type, rotate_head, call, &r, head * r.width,
                              angle * (r.turned / 2))
            }
        }
    return MPL_OK;
}

/* ---- tensor_scatter ---- */

static bool is_circular(const mpl_graph *g, mpl_op op)
{
    static const char *const mode[] = {"linear", "circular"};

    return mpl_choice_of(g, op, MPL_ATTR_mode, mode, 2) == 1;
}

mpl_status mpl_shape_tensor_scatter(mpl_ctx *ctx, const mpl_shape_call *call)
{
    static const char *const mode[] = {"linear", "circular"};
    const mpl_shape *to = call->in_shape[0], *from = call->in_shape[1];
    uint32_t axis = 0;

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_ANY));
    MPL_PASS(mpl_check_same_type(ctx, call, 1, 0));
    MPL_PASS(mpl_axis_attr(ctx, call, -2, to->rank, &axis));
    MPL_PASS(mpl_check_rank(ctx, call, 1, to->rank, to->rank));
    for (uint32_t i = 0; i < to->rank; i++)
        if (axis == 0 || (i == axis ? from->dim[i] > to->dim[i] : from->dim[i] != to->dim[i]))
            return MPL_REFUSE(ctx,
                              "an update of %" PRId64 " along axis %u does not fit into %" PRId64,
                              from->dim[i], i, to->dim[i]);
    if (mpl_choice_of(call->graph, call->op, MPL_ATTR_mode, mode, 2) == 2)
        return MPL_REFUSE(ctx, "attribute 'mode' is neither linear nor circular");
    if (call->n_in > 2 && call->in_shape[2] != NULL) {
        MPL_PASS(mpl_check_type(ctx, call, 2, MPL_SET_INDEX));
        if (call->in_shape[2]->rank != 1 || call->in_shape[2]->dim[0] != to->dim[0])
            return MPL_REFUSE(ctx, "the places must be one for each of the %" PRId64 " samples",
                              to->dim[0]);
    }
    return mpl_like_input(call, 0, call->in_type[0]);
}

/* Rows of the update, dims behind the axis, go to their places one by one. */
mpl_status mpl_eval_tensor_scatter(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_tensor *from = &call->in[1];
    const mpl_shape *to = &call->out[0].shape;
    uint32_t axis = mpl_axis_of(call, -2, to->rank);
    size_t row = (size_t)mpl_count_dims(to, axis + 1, to->rank) * mpl_type_bytes(from->type);
    int64_t most = to->dim[axis], n = from->shape.dim[axis];
    int64_t lanes = mpl_count_dims(to, 1, axis);
    bool circular = is_circular(call->graph, call->op);
    bool placed = call->n_in > 2 && call->in[2].data != NULL;

    MPL_PASS(mpl_eval_copy(ctx, call));
    for (int64_t b = 0; b < to->dim[0] && n > 0; b++) {
        int64_t at = placed ? mpl_get_int(call->in[2].type, call->in[2].data, b) : 0;

        if (at < 0 || (!circular && at > most - n))
            return MPL_REFUSE(ctx,
                              "place %" PRId64 " of sample %" PRId64 " outside [0,%" PRId64 "]", at,
                              b, most - n);
        for (int64_t i = 0; i < lanes * n; i++)
            memcpy((char *)call->out[0].data +
                       (size_t)((b * lanes + i / n) * most + (at % most + i % n) % most) * row,
                   (const char *)from->data + (size_t)(b * lanes * n + i) * row, row);
    }
    return MPL_OK;
}
