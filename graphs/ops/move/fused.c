/* fused.c -- runs a chain of element-wise operations, with the boxes it reads and the one it
 * writes, in one pass.
 *
 * fused(base, x, ..) dims, loads, expr: the output is base with box (dims, strides, offset)
 * replaced by the values of expr. Without base (`_`) it is a tensor of dims. loads: for each load
 * the input, the offset and a stride for each dim. expr: comma-separated postfix words; a word is
 * the number of a load or an operator ("0,1,mul,2,add"). Loads of base are either the written box
 * or disjoint from it, so base may be overwritten.
 *
 * Each operation uses its own loops on pieces that fit the cache, so elements are rounded as in the
 * chain. */
#include "graphs/ops/move/fused.h"

#include "graphs/ir/counts.h"
#include "graphs/ops/elementwise_priv.h"
#include "graphs/ops/move/move_strided_priv.h"

#include <stdlib.h>

enum { PIECE = MPL_PIECE }; /* elements of at most 8 bytes */

/* Operators allowed in a chain, with their loops. */
static const struct step_kind {
    uint32_t arity; /* 0: not allowed */
    mpl_status (*eval)(mpl_ctx *ctx, const mpl_op_call *call);
} step_kinds[MPL_N_OPS] = {
#define STEP(name, arity) [MPL_OP_##name] = {arity, mpl_eval_##name},
    STEP(relu, 1) STEP(sigmoid, 1) STEP(tanh, 1) STEP(exp, 1) STEP(log, 1) STEP(sqrt, 1)
        STEP(neg, 1) STEP(abs, 1) STEP(reciprocal, 1) STEP(floor, 1) STEP(ceil, 1) STEP(round, 1)
            STEP(sign, 1) STEP(erf, 1) STEP(gelu, 1) STEP(swish, 1) STEP(sin, 1) STEP(cos, 1)
                STEP(softplus, 1) STEP(softsign, 1) STEP(add, 2) STEP(sub, 2) STEP(mul, 2)
                    STEP(div, 2) STEP(min, 2) STEP(max, 2)
#undef STEP
};

uint32_t mpl_fused_arity(mpl_op_kind kind)
{
    return step_kinds[kind].arity;
}

/* Parses the next word as a step; false if there is none, or it is neither a load nor an
 * operator. */
static bool take_step(const char **at, mpl_fused *fused, uint32_t *depth)
{
    char word[24] = "", *end;
    uint32_t arity;
    unsigned long load;
    mpl_op_kind kind;
    size_t n = strcspn(*at, ",");

    if (n == 0 || n >= sizeof word || fused->n_steps == MPL_FUSED_STEPS)
        return false;
    memcpy(word, *at, n);
    if (word[0] >= '0' && word[0] <= '9') {
        load = strtoul(word, &end, 10);
        if (*end != '\0' || load >= fused->n_loads || *depth == MPL_FUSED_DEPTH)
            return false;
        kind = MPL_STEP_LOAD;
        ++*depth;
        fused->step[fused->n_steps].of = (uint32_t)load;
    } else {
        if (!mpl_op_find(word, &kind) || (arity = mpl_fused_arity(kind)) == 0 || arity > *depth)
            return false;
        *depth -= arity - 1;
    }
    fused->step[fused->n_steps++].kind = kind;
    *at += n + ((*at)[n] == ',');
    return true;
}

mpl_status mpl_fused_read(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_fused *f)
{
    uint32_t rank, n, depth = 0;
    const int64_t *dims = mpl_attr_ints(g, op, MPL_ATTR_dims, &rank);
    const int64_t *loads = mpl_attr_ints(g, op, MPL_ATTR_loads, &n);
    const char *at = mpl_attr_text(g, op, MPL_ATTR_expr, "");
    mpl_attr strides;

    memset(f, 0, sizeof *f);
    if (rank > MPL_MAX_RANK || n % (rank + 2) != 0 || n / (rank + 2) > MPL_FUSED_LOADS)
        return MPL_REFUSE(
            ctx,
            "%u dims and %u numbers of loads; there are at most %d dims, and loads of %u "
            "numbers, at most %d",
            rank, n, MPL_MAX_RANK, rank + 2, MPL_FUSED_LOADS);
    f->to.shape.rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        f->to.shape.dim[i] = dims[i];
    for (; f->n_loads < n / (rank + 2); f->n_loads++, loads += rank + 2) {
        mpl_fused_load *load = &f->load[f->n_loads];

        if (loads[0] < 0 || loads[0] > 255)
            return MPL_REFUSE(ctx, "load %u reads input %" PRId64, f->n_loads, loads[0]);
        load->input = (uint32_t)loads[0];
        load->from = (mpl_strided){.shape = f->to.shape, .offset = loads[1]};
        memcpy(load->from.stride, loads + 2, rank * sizeof *loads);
    }
    while (take_step(&at, f, &depth))
        continue;
    if (*at != '\0' || depth != 1)
        return MPL_REFUSE(
            ctx, "expr '%.60s' is none: loads 0 to %u, operators of floats, one value left",
            mpl_attr_text(g, op, MPL_ATTR_expr, ""), f->n_loads);
    if (mpl_attr_get(g, op, MPL_ATTR_strides, &strides) && strides.n == rank) {
        memcpy(f->to.stride, strides.ints, rank * sizeof *strides.ints);
        f->to.offset = mpl_attr_int(g, op, MPL_ATTR_offset, 0);
    } else {
        f->to = mpl_strided_all(&f->to.shape);
    }
    return MPL_OK;
}

mpl_status mpl_shape_fused(mpl_ctx *ctx, const mpl_shape_call *call)
{
    bool has_base = call->n_in > 0 && call->in_shape[0] != NULL;
    uint32_t first = MPL_NONE;
    uint64_t count;
    mpl_fused f;

    MPL_PASS(mpl_fused_read(ctx, call->graph, call->op, &f));
    if (!mpl_shape_count(&f.to.shape, &count))
        return MPL_REFUSE(ctx, "dims are negative, or of more than 2^63 elements");
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (call->in_shape[i] == NULL)
            continue;
        first = first == MPL_NONE ? i : first;
        MPL_PASS(mpl_check_type(ctx, call, i, MPL_SET_FLOAT));
        MPL_PASS(mpl_check_same_type(ctx, call, i, first));
    }
    if (first == MPL_NONE)
        return MPL_REFUSE(ctx, "no input is there");
    if (has_base)
        MPL_PASS(mpl_strided_check(ctx, "the box", &f.to, call->in_shape[0]));
    if (has_base && !mpl_strided_distinct(&f.to))
        return MPL_REFUSE(ctx, "the box has an element twice: which value would it get?");
    for (uint32_t i = 0; i < f.n_loads; i++) {
        uint32_t in = f.load[i].input;

        if (in >= call->n_in || call->in_shape[in] == NULL)
            return MPL_REFUSE(ctx, "load %u reads input %u, which is not there", i, in);
        MPL_PASS(mpl_strided_check(ctx, "a load", &f.load[i].from, call->in_shape[in]));
        if (in == 0 && !mpl_strided_equal(&f.load[i].from, &f.to) &&
            mpl_strided_meet(&f.load[i].from, &f.to, 0) != MPL_APART)
            return MPL_REFUSE(
                ctx, "load %u reads of the base what other elements of the box overwrite", i);
    }
    call->out_shape[0] = has_base ? *call->in_shape[0] : f.to.shape;
    call->out_type[0] = call->in_type[first];
    return MPL_OK;
}

/* ---- running it ---- */

/* Merges dims, leaving at least one; element k in row-major order stays the same. */
static void join(mpl_strided *view)
{
    mpl_strided joined;

    mpl_strided_join(view, &joined);
    if (joined.shape.rank == 0)
        joined = (mpl_strided){.shape = {1, {1}}, .stride = {1}, .offset = joined.offset};
    *view = joined;
}

/* Copies rows of n elements; row and element strides in elements. */
MPL_INLINE void copy_rows(char *to, int64_t to_row, int64_t to_stride, const char *from,
                          int64_t from_row, int64_t from_stride, int64_t n_rows, int64_t n,
                          size_t bytes)
{
    for (int64_t r = 0; r < n_rows && to_stride == 1 && from_stride == 1; r++)
        memcpy(to + r * to_row * (int64_t)bytes, from + r * from_row * (int64_t)bytes,
               (size_t)n * bytes);
    for (int64_t r = 0; r < n_rows && (to_stride != 1 || from_stride != 1); r++)
        for (int64_t k = 0; k < n; k++)
            memcpy(to + (r * to_row + k * to_stride) * (int64_t)bytes,
                   from + (r * from_row + k * from_stride) * (int64_t)bytes, bytes);
}

/* Copies n_rows rows of n elements between a view, at `memory`, and a contiguous piece. */
static void move_rows(char *piece, char *memory, int64_t row, int64_t stride, int64_t n_rows,
                      int64_t n, uint32_t bytes, bool out)
{
    switch (bytes) { /* constant sizes: one load and one store for each copy */
    case 8:
        out ? copy_rows(memory, row, stride, piece, n, 1, n_rows, n, 8)
            : copy_rows(piece, n, 1, memory, row, stride, n_rows, n, 8);
        break;
    case 4:
        out ? copy_rows(memory, row, stride, piece, n, 1, n_rows, n, 4)
            : copy_rows(piece, n, 1, memory, row, stride, n_rows, n, 4);
        break;
    default:
        out ? copy_rows(memory, row, stride, piece, n, 1, n_rows, n, 2)
            : copy_rows(piece, n, 1, memory, row, stride, n_rows, n, 2);
    }
}

/* Copies elements [at, at + n) of a joined view to or from a piece; whole rows at once. */
static void move_run(const mpl_strided *view, int64_t at, int64_t n, char *piece, char *data,
                     uint32_t bytes, bool out)
{
    const int64_t *dim = view->shape.dim;
    uint32_t last = view->shape.rank - 1;

    while (n > 0) {
        int64_t offset = view->offset, rest = at, within = at % dim[last], n_rows = 1, run;

        for (uint32_t i = last + 1; i-- > 0; rest /= dim[i])
            offset += rest % dim[i] * view->stride[i];
        run = dim[last] - within < n ? dim[last] - within : n;
        if (within == 0 && last > 0 && n >= dim[last]) {
            int64_t left = dim[last - 1] - at / dim[last] % dim[last - 1];

            n_rows = n / dim[last] < left ? n / dim[last] : left;
        }
        move_rows(piece, data + offset * bytes, last > 0 ? view->stride[last - 1] : 0,
                  view->stride[last], n_rows, run, bytes, out);
        piece += n_rows * run * bytes;
        at += n_rows * run;
        n -= n_rows * run;
    }
}

/* Elements [at, at + n) of a joined view: in place if contiguous, else copied to buffer. */
static void *fetch(const mpl_strided *view, void *data, uint32_t bytes, int64_t at, int64_t n,
                   void *buffer)
{
    if (view->shape.rank == 1 && view->stride[0] == 1)
        return (char *)data + (view->offset + at) * bytes; /* read-only */
    move_run(view, at, n, buffer, data, bytes, false);
    return buffer;
}

/* A whole f32 piece for the four most frequent operations. The constant size and `restrict` let
 * compilers vectorise. Results equal those of the operator's own loops. */
#define WHOLE(name, sign)                                                                          \
    static void whole_##name(float *restrict y, const float *restrict a, const float *restrict b)  \
    {                                                                                              \
        for (int k = 0; k < PIECE; k++)                                                            \
            y[k] = a[k] sign b[k];                                                                 \
    }
WHOLE(add, +)
WHOLE(sub, -)
WHOLE(mul, *)
WHOLE(div, /)

static bool do_whole(mpl_op_kind kind, float *y, const float *a, const float *b)
{
    switch (kind) {
    case MPL_OP_add:
        whole_add(y, a, b);
        return true;
    case MPL_OP_sub:
        whole_sub(y, a, b);
        return true;
    case MPL_OP_mul:
        whole_mul(y, a, b);
        return true;
    case MPL_OP_div:
        whole_div(y, a, b);
        return true;
    default:
        return false;
    }
}

/* Computes and writes elements [at, at + n) of the box, n <= PIECE. */
static mpl_status do_piece(mpl_ctx *ctx, const mpl_op_call *call, const mpl_fused *fused,
                           int64_t at, int64_t n)
{
    mpl_piece room[MPL_FUSED_DEPTH + 1];
    void *buffer[MPL_FUSED_DEPTH + 1]; /* one for each stack entry, and a spare */
    mpl_tensor stack[MPL_FUSED_DEPTH];
    mpl_type type = call->out[0].type;
    uint32_t depth = 0, bytes = mpl_type_bytes(type);

    for (uint32_t i = 0; i <= MPL_FUSED_DEPTH; i++)
        buffer[i] = &room[i];
    for (uint32_t i = 0; i < fused->n_steps; i++) {
        const mpl_fused_load *load = &fused->load[fused->step[i].of];
        mpl_tensor *top = &stack[depth];
        mpl_tensor made = {type, {.rank = 1, .dim = {n}}, NULL};

        if (fused->step[i].kind == MPL_STEP_LOAD) {
            made.data = fetch(&load->from, call->in[load->input].data, bytes, at, n, buffer[depth]);
            stack[depth++] = made;
            continue;
        }
        depth -= mpl_fused_arity(fused->step[i].kind);
        made.data = buffer[MPL_FUSED_DEPTH];
        buffer[MPL_FUSED_DEPTH] = buffer[depth];
        buffer[depth] = made.data;
        if (type == MPL_TYPE_f32 && n == PIECE && top - &stack[depth] == 2 &&
            do_whole(fused->step[i].kind, made.data, stack[depth].data, stack[depth + 1].data)) {
            stack[depth++] = made;
            continue;
        }
        MPL_PASS(step_kinds[fused->step[i].kind].eval(
            ctx, &(mpl_op_call){call->graph, call->op, (uint32_t)(top - &stack[depth]), 1,
                                &stack[depth], &made, NULL}));
        stack[depth++] = made;
    }
    move_run(&fused->to, at, n, stack[0].data, call->out[0].data, bytes, true);
    return MPL_OK;
}

mpl_status mpl_eval_fused(mpl_ctx *ctx, const mpl_op_call *call)
{
    mpl_fused f;
    int64_t count;

    MPL_PASS(mpl_fused_read(ctx, call->graph, call->op, &f));
    count = mpl_count(&f.to.shape);
    if (call->in[0].data != NULL && call->in[0].data != call->out[0].data &&
        !mpl_strided_whole(&f.to, (uint64_t)mpl_count(&call->out[0].shape)))
        memcpy(call->out[0].data, call->in[0].data,
               (size_t)mpl_count(&call->out[0].shape) * mpl_type_bytes(call->out[0].type));
    if (count == 0)
        return MPL_OK;
    join(&f.to);
    for (uint32_t i = 0; i < f.n_loads; i++)
        join(&f.load[i].from);
    for (int64_t at = 0; at < count; at += PIECE)
        MPL_PASS(do_piece(ctx, call, &f, at, count - at < PIECE ? count - at : PIECE));
    return MPL_OK;
}
