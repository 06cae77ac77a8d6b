/* program.h -- interprets a program directly, and draws random programs from a seed.
 *
 * The interpreter keeps one buffer per root. A view is a list of addresses, found by running the
 * view's operator on its input's addresses. It uses no strides, so it shares nothing with
 * graphs/ir/strided.c. */
#pragma once

#include "tests/support/test.h"

#include "graphs/core/rng.h"
#include "graphs/ops/ops_priv.h"

typedef struct program_run {
    mpl_ctx *ctx;
    const mpl_graph *g;
    char **memory;  /* [n_values] of a root: its owned elements; of a view: the root's */
    int64_t **addr; /* [n_values] address of each element, in row-major order [element] */
    bool *owns;     /* [n_values] */
} program_run;

static inline int64_t program_count(const program_run *r, mpl_value v)
{
    return mpl_count(&r->g->value_shape[v]);
}

static inline mpl_tensor program_tensor(const program_run *r, mpl_value v, void *data)
{
    return (mpl_tensor){(mpl_type)r->g->value_type[v], r->g->value_shape[v], data};
}

static inline void program_own(program_run *r, mpl_value v)
{
    r->owns[v] = true;
    r->memory[v] = calloc(1, r->g->value_bytes[v] + 1);
    r->addr[v] = malloc(((size_t)program_count(r, v) + 1) * sizeof **r->addr);
    for (int64_t i = 0; i < program_count(r, v); i++)
        r->addr[v][i] = i;
}

/* Current contents of v, in memory that the caller owns. */
static inline void *program_read(const program_run *r, mpl_value v)
{
    size_t size = mpl_type_bytes((mpl_type)r->g->value_type[v]);
    char *data = malloc(r->g->value_bytes[v] + 1);

    for (int64_t i = 0; i < program_count(r, v); i++)
        memcpy(data + (size_t)i * size, r->memory[v] + (size_t)r->addr[v][i] * size, size);
    return data;
}

/* Whether addresses over dims follow fixed strides. */
static inline bool program_affine(const int64_t *addr, const mpl_shape *dims)
{
    int64_t stride[MPL_MAX_RANK] = {0}, plain[MPL_MAX_RANK], n = mpl_count(dims);

    if (n == 0)
        return true;
    mpl_strides(dims, plain);
    for (uint32_t i = 0; i < dims->rank; i++)
        stride[i] = dims->dim[i] > 1 ? addr[plain[i]] - addr[0] : 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t at = addr[0];

        for (uint32_t i = 0; i < dims->rank; i++)
            at += k / plain[i] % dims->dim[i] * stride[i];
        if (at != addr[k])
            return false;
    }
    return true;
}

/* Computes the addresses of a view's outputs; false if op is not a view. */
static inline bool program_view(program_run *r, mpl_op op)
{
    const mpl_graph *g = r->g;
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op], n;
    mpl_value in =
        g->op_in_begin[op] < g->op_in_begin[op + 1] ? g->op_in[g->op_in_begin[op]] : MPL_NONE;
    static const mpl_op_kind kinds[] = {
        MPL_OP_view,      MPL_OP_identity, MPL_OP_reshape, MPL_OP_flatten,   MPL_OP_squeeze,
        MPL_OP_unsqueeze, MPL_OP_slice,    MPL_OP_split,   MPL_OP_transpose, MPL_OP_expand};
    const int64_t *dims = mpl_attr_ints(g, op, MPL_ATTR_dims, &n);
    bool is_view = false, affine = true;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        is_view = is_view || kind == kinds[i];
    if (!is_view)
        return false;
    mpl_tensor from = program_tensor(r, in, r->addr[in]), to[8];

    from.type = MPL_TYPE_i64;
    for (uint32_t k = 0; k < n_out; k++) {
        mpl_value v = g->op_out[g->op_out_begin[op] + k];

        r->addr[v] = malloc(((size_t)program_count(r, v) + 1) * sizeof **r->addr);
        r->memory[v] = r->memory[in];
        to[k] = program_tensor(r, v, r->addr[v]);
        to[k].type = MPL_TYPE_i64;
    }
    if (kind == MPL_OP_view && dims != NULL) {
        const int64_t *strides = mpl_attr_ints(g, op, MPL_ATTR_strides, &n);
        int64_t plain[MPL_MAX_RANK];

        mpl_strides(&to[0].shape, plain);
        for (int64_t k = 0; k < mpl_count(&to[0].shape); k++) {
            int64_t *at = (int64_t *)to[0].data + k;

            *at = mpl_attr_int(g, op, MPL_ATTR_offset, 0);
            for (uint32_t i = 0; i < n; i++)
                *at += k / plain[i] % dims[i] * strides[i];
        }
        return true;
    }
    assert_ok(r->ctx, mpl_eval(r->ctx, &(mpl_op_call){g, op, 1, n_out, &from, to, NULL}));
    for (uint32_t k = 0; k < n_out; k++)
        affine = affine && program_affine(to[k].data, &to[k].shape);
    for (uint32_t k = 0; k < n_out && !affine; k++)
        free(to[k].data);
    return affine;
}

static inline void program_op(program_run *r, mpl_op op)
{
    const mpl_graph *g = r->g;
    bool writes = (mpl_op_table[g->op_kind[op]].traits & MPL_MUTATES) != 0;
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op];
    const mpl_value *in = g->op_in + g->op_in_begin[op], *out = g->op_out + g->op_out_begin[op];
    mpl_tensor from[16], to[16];

    if (program_view(r, op))
        return;
    for (uint32_t i = 0; i < n_in; i++)
        from[i] = in[i] == MPL_NONE ? (mpl_tensor){.data = NULL}
                                    : program_tensor(r, in[i], program_read(r, in[i]));
    for (uint32_t i = 0; i < n_out; i++) {
        program_own(r, out[i]);
        to[i] = program_tensor(r, out[i], r->memory[out[i]]);
    }
    if (writes)
        to[0] = program_tensor(r, in[0], program_read(r, in[0]));
    assert_ok(r->ctx,
              mpl_eval(r->ctx, &(mpl_op_call){g, op, n_in, writes ? 1 : n_out, from, to, NULL}));
    if (writes) {
        size_t size = mpl_type_bytes(to[0].type);

        for (int64_t i = 0; i < program_count(r, in[0]); i++)
            memcpy(r->memory[in[0]] + (size_t)r->addr[in[0]][i] * size,
                   (char *)to[0].data + (size_t)i * size, size);
        free(to[0].data);
    }
    for (uint32_t i = 0; i < n_in; i++)
        free(from[i].data);
}

/* Allocates inputs and weights; the caller fills those without data. */
static inline program_run program_begin(mpl_ctx *ctx, const mpl_graph *g)
{
    program_run r = {ctx, g, calloc(g->n_values + 1, sizeof *r.memory),
                     calloc(g->n_values + 1, sizeof *r.addr),
                     calloc(g->n_values + 1, sizeof *r.owns)};

    for (mpl_value v = 0; v < g->n_values; v++) {
        size_t size = mpl_type_bytes((mpl_type)g->value_type[v]);

        if (g->value_op[v] != MPL_NONE)
            continue;
        program_own(&r, v);
        for (uint64_t i = 0; g->value_data[v] != NULL && i < g->value_bytes[v]; i += size)
            memcpy(r.memory[v] + i, (char *)g->value_data[v] + (g->value_splat[v] ? 0 : i), size);
    }
    return r;
}

static inline void program_end(program_run *r)
{
    for (mpl_value v = 0; v < r->g->n_values; v++) {
        if (r->owns[v])
            free(r->memory[v]);
        free(r->addr[v]);
    }
    free(r->memory);
    free(r->addr);
    free(r->owns);
}

/* ---- random programs ---- */

static inline int64_t program_draw(mpl_rng *rng, int64_t n)
{
    return (int64_t)mpl_rng_below(rng, (uint64_t)n);
}

/* Draws a value, favouring the latest. */
static inline mpl_value program_any(mpl_rng *rng, const mpl_graph *g)
{
    int64_t near = program_draw(rng, 2) == 0 && g->n_values > 6 ? 6 : g->n_values;

    return g->n_values - 1 - (mpl_value)program_draw(rng, near);
}

/* A NumPy index for a value: numbers, ranges with positive or negative steps, None, "..." */
static inline void program_index(mpl_rng *rng, const mpl_shape *in, char *text)
{
    uint32_t rank = in->rank;

    *text = '\0';
    for (uint32_t i = 0; i < in->rank; i++) {
        int64_t n = in->dim[i], a = n > 0 ? program_draw(rng, n) : 0, b = program_draw(rng, n + 1);
        int64_t step = 1 + program_draw(rng, 3);

        text += sprintf(text, i > 0 ? "," : "");
        switch (program_draw(rng, rank < 5 ? 8 : 7)) {
        case 0:
            if (n > 0) {
                text += sprintf(text, "%d", (int)(program_draw(rng, 2) ? a : a - n));
                rank--;
                break;
            } /* fall through */
        case 1:
        case 2:
            text += sprintf(text, ":");
            break;
        case 3:
            text +=
                sprintf(text, "%d:%d:%d", (int)(a < b ? a : b), (int)(a < b ? b : a), (int)step);
            break;
        case 4:
            text += sprintf(text, "::-%d", (int)step);
            break;
        case 5:
            text += sprintf(text, "%d:", (int)(n > 1 ? program_draw(rng, n - 1) : 0));
            break;
        case 6:
            text += sprintf(text, "%d::%d", (int)a, (int)-step);
            break;
        default:
            text += sprintf(text, "None,:");
            rank++;
        }
    }
}

/* Adds a view of some value; an impossible view is skipped. */
static inline void program_add_view(mpl_ctx *ctx, mpl_rng *rng, mpl_graph *g, const char *name)
{
    mpl_value in = program_any(rng, g), out[2];
    const mpl_shape shape = g->value_shape[in];
    int64_t n = mpl_count(&shape), ints[MPL_MAX_RANK], strides[MPL_MAX_RANK];
    char text[200], other[32];
    const char *names[2] = {name, other};

    snprintf(other, sizeof other, "%s_", name);
    for (uint32_t i = 0; i < shape.rank; i++)
        ints[i] = i;
    switch (program_draw(rng, 8)) {
    case 0: /* transpose */
        for (uint32_t i = shape.rank; i > 1; i--) {
            int64_t k = program_draw(rng, i), swap = ints[k];

            ints[k] = ints[i - 1], ints[i - 1] = swap;
        }
        mpl_graph_add_op(ctx, g, MPL_OP_transpose, name, 1, &in, 1,
                         (mpl_attr[]){MPL_INTS(perm, shape.rank, ints)}, 1, names, out);
        break;
    case 1: { /* reshape to random factors */
        uint32_t rank = 0;
        int64_t left = n;

        for (int64_t f = 2; left > 1 && rank < 3; f++)
            if (left % f == 0 && program_draw(rng, 2))
                ints[rank++] = f, left /= f;
            else if (f > left)
                break;
        ints[rank++] = left;
        mpl_graph_add_op(ctx, g, MPL_OP_reshape, name, 1, &in, 1,
                         (mpl_attr[]){MPL_INTS(shape, rank, ints)}, 1, names, out);
        break;
    }
    case 2: /* expand */
        for (uint32_t i = 0; i < shape.rank; i++)
            ints[i + 1] = shape.dim[i] == 1 ? 1 + program_draw(rng, 3) : shape.dim[i];
        ints[0] = 1 + program_draw(rng, 2);
        if (shape.rank < 5)
            mpl_graph_add_op(ctx, g, MPL_OP_expand, name, 1, &in, 1,
                             (mpl_attr[]){MPL_INTS(shape, shape.rank + 1, ints)}, 1, names, out);
        break;
    case 3: /* arbitrary but small strides; those that leave the root are refused in the end */
        if (g->value_op[in] == MPL_NONE && n > 2) {
            ints[0] = 1 + program_draw(rng, 3), ints[1] = 1 + program_draw(rng, 2);
            strides[0] = program_draw(rng, n / (2 * ints[0]) + 1),
            strides[1] = program_draw(rng, n / (2 * ints[1]) + 1);
            mpl_graph_add_op(ctx, g, MPL_OP_view, name, 1, &in, 3,
                             (mpl_attr[]){MPL_INTS(dims, 2, ints), MPL_INTS(strides, 2, strides),
                                          MPL_INT(offset, 0)},
                             1, names, out);
        }
        break;
    case 4:
        if (shape.rank > 0 && shape.dim[0] > 1)
            mpl_graph_add_op(ctx, g, MPL_OP_split, name, 1, &in, 1, (mpl_attr[]){MPL_INT(axis, 0)},
                             2, names, out);
        break;
    default:
        program_index(rng, &shape, text);
        mpl_graph_add_op(ctx, g, MPL_OP_view, name, 1, &in, 1, (mpl_attr[]){MPL_TEXT(index, text)},
                         1, names, out);
    }
}

/* A value that broadcasts to v: an existing one if possible, else a scalar. */
static inline mpl_value program_operand(mpl_rng *rng, const mpl_graph *g, mpl_value v,
                                        mpl_value scalar)
{
    for (int i = 0; i < 6; i++) {
        mpl_value other = program_any(rng, g);
        const mpl_shape *from = &g->value_shape[other], *to = &g->value_shape[v];
        bool fits = from->rank <= to->rank;

        for (uint32_t k = 1; k <= from->rank && fits; k++)
            fits = from->dim[from->rank - k] == 1 ||
                   from->dim[from->rank - k] == to->dim[to->rank - k];
        if (fits)
            return other;
    }
    return scalar;
}

/* Whether two indices of v address one element. */
static inline bool program_repeats(mpl_ctx *ctx, const mpl_graph *g, mpl_value v)
{
    program_run r = program_begin(ctx, g);
    uint8_t *seen;
    bool twice = false;

    for (mpl_op op = 0; op < g->n_ops; op++)
        program_op(&r, op);
    seen = calloc(4096, 1);
    for (int64_t i = 0; i < program_count(&r, v); i++) {
        assert_true(r.addr[v][i] >= 0 && r.addr[v][i] < 4096);
        twice = twice || seen[r.addr[v][i]]++ > 0;
    }
    free(seen);
    program_end(&r);
    return twice;
}

/* A finished program of one type: inputs of at most 4 dims, views of views, writes through them,
 * computations. */
static inline mpl_graph *random_program(mpl_ctx *ctx, uint64_t seed)
{
    static const mpl_type types[] = {MPL_TYPE_f32, MPL_TYPE_f32, MPL_TYPE_f32,
                                     MPL_TYPE_f16, MPL_TYPE_f64, MPL_TYPE_i32};
    static const mpl_op_kind into[] = {MPL_OP_copy_into, MPL_OP_add_into, MPL_OP_sub_into,
                                       MPL_OP_min_into,  MPL_OP_max_into, MPL_OP_mul_into,
                                       MPL_OP_relu_into, MPL_OP_neg_into};
    static const mpl_op_kind plain[] = {MPL_OP_add, MPL_OP_sub, MPL_OP_max,
                                        MPL_OP_mul, MPL_OP_neg, MPL_OP_abs};
    mpl_graph *g = NULL;
    mpl_rng rng = mpl_rng_of(seed);
    mpl_value v, scalar, in[2];
    char name[24];
    uint32_t n_steps;
    int64_t two = 0;
    mpl_type type = types[program_draw(&rng, 6)];

    mpl_put(type, &two, 0, 2);
    assert_ok(ctx, mpl_graph_new(ctx, "random", &g));
    g->program = true;
    for (int i = 0; i < 2; i++) {
        mpl_shape shape = {.rank = 1 + (uint32_t)program_draw(&rng, 4)};

        for (uint32_t k = 0; k < shape.rank; k++)
            shape.dim[k] = 1 + program_draw(&rng, 4);
        snprintf(name, sizeof name, "in%d", i);
        assert_ok(ctx, mpl_graph_add_value(ctx, g, name, MPL_INPUT, type, &shape, &v));
    }
    assert_ok(ctx, mpl_graph_add_const(ctx, g, "two", type, &(mpl_shape){.rank = 0}, &two, true,
                                       &scalar));
    n_steps = 4 + (uint32_t)program_draw(&rng, 12);
    for (uint32_t i = 0; i < n_steps; i++) {
        int64_t what = program_draw(&rng, 10);

        snprintf(name, sizeof name, "v%u", i);
        if (what < 4) {
            program_add_view(ctx, &rng, g, name);
        } else if (what < 8) {
            mpl_op_kind kind = into[program_draw(&rng, type == MPL_TYPE_i32 ? 6 : 8)];

            in[0] = program_any(&rng, g);
            if (in[0] == scalar || program_repeats(ctx, g, in[0]))
                continue;
            in[1] = program_operand(&rng, g, in[0], scalar);
            assert_ok(ctx, mpl_graph_add_op(ctx, g, kind, "write", mpl_op_table[kind].max_in, in, 0,
                                            NULL, 0, NULL, NULL));
        } else {
            mpl_op_kind kind = plain[program_draw(&rng, 6)];

            in[0] = program_any(&rng, g);
            in[1] = program_operand(&rng, g, in[0], scalar);
            assert_ok(ctx, mpl_graph_add_op(ctx, g, kind, name,
                                            kind == MPL_OP_neg || kind == MPL_OP_abs ? 1 : 2, in, 0,
                                            NULL, 1, (const char *[]){name}, &v));
        }
    }
    for (int64_t i = 2 + program_draw(&rng, 3); i >= 0; i--)
        assert_ok(ctx, mpl_graph_add_output(ctx, g, i == 0 ? 0 : program_any(&rng, g)));
    if (mpl_graph_finish(ctx, g) == MPL_OK)
        return g;
    mpl_graph_free(ctx, g); /* a write whose strides do not prove its elements distinct */
    return NULL;
}
