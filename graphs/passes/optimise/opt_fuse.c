/* opt_fuse.c -- passes that merge several operations into one. See optimise.h. */
#include "graphs/passes/optimise/optimise_priv.h"

#include "graphs/ops/matrix/conv.h"

#include <math.h>

mpl_status mpl_match_fma(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    const mpl_graph *g = match->g;
    mpl_type type = (mpl_type)g->value_type[mpl_op_output(g, op, 0)];

    if (g->op_kind[op] != MPL_OP_add || mpl_type_in(type, MPL_SET(f16) | MPL_SET(bf16)))
        return MPL_OK; /* narrow floats would be rounded once less */
    for (uint32_t i = 0; i < 2; i++) {
        mpl_op product = mpl_only_for(g, mpl_op_input(g, op, i), MPL_OP_mul);

        if (product == MPL_NONE)
            continue;
        *edit = (mpl_edit){.kind = MPL_EDIT_REPLACE,
                           .op_kind = MPL_OP_fma,
                           .from = MPL_NONE,
                           .n_in = 3,
                           .in = {mpl_op_input(g, product, 0), mpl_op_input(g, product, 1),
                                  mpl_op_input(g, op, 1 - i)}};
        break;
    }
    return MPL_OK;
}

mpl_status mpl_match_adagrad(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    const mpl_graph *g = match->g;
    mpl_type type = (mpl_type)g->value_type[mpl_op_output(g, op, 0)];
    mpl_op root, sum;
    double least;

    if (g->op_kind[op] != MPL_OP_div || !mpl_type_in(type, MPL_SET(f32) | MPL_SET(f64)))
        return MPL_OK;
    root = mpl_only_for(g, mpl_op_input(g, op, 1), MPL_OP_sqrt);
    sum = root != MPL_NONE ? mpl_only_for(g, mpl_op_input(g, root, 0), MPL_OP_add) : MPL_NONE;
    for (uint32_t i = 0; i < 2 && sum != MPL_NONE && edit->kind == MPL_EDIT_NONE; i++) {
        mpl_value x = mpl_op_input(g, sum, 1 - i), out = mpl_op_output(g, sum, 0);

        if (!mpl_is_uniform(g, mpl_op_input(g, sum, i), &least) || (float)least != 1e-32f ||
            !mpl_same_form(g, x, out))
            continue;
        *edit = (mpl_edit){.kind = MPL_EDIT_REPLACE,
                           .op_kind = MPL_OP_div_sqrt,
                           .from = MPL_NONE,
                           .n_in = 2,
                           .in = {mpl_op_input(g, op, 0), x},
                           .n_attr = 1,
                           .number = least};
        edit->attr[0] = (mpl_attr){MPL_ATTR_epsilon, 1, NULL, &edit->number, NULL};
    }
    return MPL_OK;
}

/* The operand of the matrix transpose that makes v, or MPL_NONE. */
static mpl_value turned(const mpl_graph *g, mpl_value v)
{
    mpl_op op = mpl_only_for(g, v, MPL_OP_transpose);
    uint32_t n;
    const int64_t *perm = op != MPL_NONE ? mpl_attr_ints(g, op, MPL_ATTR_perm, &n) : NULL;

    if (op == MPL_NONE || g->value_shape[v].rank != 2 || (perm != NULL && perm[0] == 0))
        return MPL_NONE; /* without perm, the axes are reversed */
    return mpl_op_input(g, op, 0);
}

/* Whether gemm (most 2), or what is fused with it, can do the operation, if it is a matmul: operand
 * a has at most so many dims. */
static bool fits_gemm(const mpl_graph *g, mpl_op op, uint32_t most)
{
    const mpl_shape *shape = &g->value_shape[mpl_op_input(g, op, 0)];

    return g->op_kind[op] != MPL_OP_matmul ||
           (shape->rank >= 2 && shape->rank <= most &&
            g->value_shape[mpl_op_input(g, op, 1)].rank == 2 &&
            (shape->rank == 2 || mpl_attr_int(g, op, MPL_ATTR_trans_a, 0) == 0));
}

mpl_status mpl_match_dot_transpose(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    static const mpl_attr_key key[2] = {MPL_ATTR_trans_a, MPL_ATTR_trans_b};
    const mpl_graph *g = match->g;
    bool gemm = g->op_kind[op] == MPL_OP_gemm, found = false;

    if ((!gemm && g->op_kind[op] != MPL_OP_matmul) || !fits_gemm(g, op, 2))
        return MPL_OK;
    for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
        edit->in[i] = mpl_op_input(g, op, i);
    for (uint32_t i = 0; i < 2; i++) {
        mpl_value x = turned(g, edit->in[i]);

        edit->ints[i] = mpl_attr_int(g, op, key[i], 0) != 0;
        if (x != MPL_NONE) {
            edit->in[i] = x;
            edit->ints[i] = !edit->ints[i];
            found = true;
        }
        edit->attr[i] = (mpl_attr){key[i], 1, &edit->ints[i], NULL, NULL};
    }
    edit->kind = found ? MPL_EDIT_REPLACE : MPL_EDIT_NONE;
    edit->op_kind = MPL_OP_gemm;
    edit->from = gemm ? op : MPL_NONE;
    edit->n_in = mpl_op_n_in(g, op);
    edit->n_attr = 2;
    return MPL_OK;
}

/* ---- batch norm into the weights of a convolution ---- */

enum { SCALE, BIAS, MEAN, VARIANCE, FILTER, OFFSET, N_PARAMETERS };

static bool has_contents(const mpl_match *match, mpl_value v)
{
    return match->g->value_role[v] == MPL_WEIGHT &&
           (match->g->value_data[v] != NULL || match->weights != NULL);
}

/* All elements of weight v. The caller owns *data; NULL: v has no contents. */
static mpl_status contents(mpl_match *match, mpl_value v, void **data)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = match->g;
    size_t size = mpl_type_bytes((mpl_type)g->value_type[v]);

    if (!has_contents(match, v))
        return MPL_OK;
    *data = mpl_alloc(match->ctx, g->value_bytes[v], 1);
    if (*data == NULL)
        return MPL_EMEM;
    if (g->value_data[v] == NULL)
        return match->weights->fill(match->weights->arg, g, v, *data);
    for (uint64_t at = 0; at < g->value_bytes[v]; at += size)
        memcpy((char *)*data + at, (const char *)g->value_data[v] + (g->value_splat[v] ? 0 : at),
               size);
    return st;
}

/* Makes (conv(x) - mean) * scale / sqrt(var + epsilon) + bias a convolution; computes in double. */
static void fold_norm(mpl_type type, void *const data[N_PARAMETERS], double epsilon,
                      int64_t n_channels, int64_t n_each, void *filter, void *offset)
{
    for (int64_t c = 0; c < n_channels; c++) {
        double factor =
            mpl_get(type, data[SCALE], c) / sqrt(mpl_get(type, data[VARIANCE], c) + epsilon);
        double own = data[OFFSET] != NULL ? mpl_get(type, data[OFFSET], c) : 0;

        for (int64_t i = c * n_each; i < (c + 1) * n_each; i++)
            mpl_put(type, filter, i, mpl_get(type, data[FILTER], i) * factor);
        mpl_put(type, offset, c,
                (own - mpl_get(type, data[MEAN], c)) * factor + mpl_get(type, data[BIAS], c));
    }
}

mpl_status mpl_match_conv_bn(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = match->g;
    void *data[N_PARAMETERS] = {NULL};
    mpl_value parameter[N_PARAMETERS];
    const mpl_shape *filter;
    mpl_op conv;
    mpl_type type;

    if (g->op_kind[op] != MPL_OP_batch_norm ||
        (conv = mpl_only_for(g, mpl_op_input(g, op, 0), MPL_OP_conv)) == MPL_NONE)
        goto out;
    for (uint32_t k = SCALE; k <= VARIANCE; k++)
        parameter[k] = mpl_op_input(g, op, 1 + k);
    parameter[FILTER] = mpl_op_input(g, conv, 1);
    parameter[OFFSET] = mpl_op_input(g, conv, 2);
    filter = &g->value_shape[parameter[FILTER]];
    type = (mpl_type)g->value_type[parameter[FILTER]];
    for (uint32_t k = 0; k < N_PARAMETERS; k++)
        if (parameter[k] != MPL_NONE) {
            if (g->value_type[parameter[k]] != type || g->value_bytes[parameter[k]] == 0)
                goto out;
            MPL_TRY(contents(match, parameter[k], &data[k]));
            if (data[k] == NULL)
                goto out;
        }
    MPL_TRY(mpl_edit_fresh(match->ctx, type, filter, false, &edit->fresh[0]));
    MPL_TRY(mpl_edit_fresh(match->ctx, type, &(mpl_shape){1, {filter->dim[0]}}, false,
                           &edit->fresh[1]));
    fold_norm(type, data, mpl_attr_float(g, op, MPL_ATTR_epsilon, 1e-5), filter->dim[0],
              mpl_count_dims(filter, 1, filter->rank), edit->fresh[0].data, edit->fresh[1].data);
    edit->kind = MPL_EDIT_REPLACE;
    edit->op_kind = MPL_OP_conv;
    edit->from = conv;
    edit->n_in = 3;
    edit->in[0] = mpl_op_input(g, conv, 0);
    edit->in[1] = MPL_FRESH(0);
    edit->in[2] = MPL_FRESH(1);
out:
    for (uint32_t k = 0; k < N_PARAMETERS; k++)
        mpl_free(match->ctx, data[k]);
    return st;
}

/* ---- batch norm alone ---- */

/* Parameters of a batch norm; *known: they have that type and contents. */
static mpl_status norm_contents(mpl_match *match, mpl_op op, mpl_type type, void *data[FILTER],
                                bool *known)
{
    *known = true;
    for (uint32_t k = SCALE; k <= VARIANCE && *known; k++) {
        mpl_value v = mpl_op_input(match->g, op, 1 + k);

        *known = match->g->value_type[v] == type && match->g->value_bytes[v] > 0;
        if (*known)
            MPL_PASS(contents(match, v, &data[k]));
        *known = *known && data[k] != NULL;
    }
    return MPL_OK;
}

/* (x - mean) * scale / sqrt(variance + epsilon) + bias is x * a + b by channel. */
mpl_status mpl_match_bn_fma(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = match->g;
    mpl_value x = mpl_op_input(g, op, 0);
    mpl_type type = (mpl_type)g->value_type[x];
    mpl_shape shape = g->value_shape[x];
    void *data[FILTER] = {NULL};
    bool known;

    if (g->op_kind[op] != MPL_OP_batch_norm || shape.rank < 2 ||
        !mpl_type_in(type, MPL_SET(f32) | MPL_SET(f64)))
        goto out;
    MPL_TRY(norm_contents(match, op, type, data, &known));
    if (!known)
        goto out;
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dim[i] = i == 1 ? shape.dim[i] : 1;
    for (int k = 0; k < 2; k++)
        MPL_TRY(mpl_edit_fresh(match->ctx, type, &shape, false, &edit->fresh[k]));
    for (int64_t c = 0; c < shape.dim[1]; c++) {
        double factor =
            mpl_get(type, data[SCALE], c) /
            sqrt(mpl_get(type, data[VARIANCE], c) + mpl_attr_float(g, op, MPL_ATTR_epsilon, 1e-5));

        mpl_put(type, edit->fresh[0].data, c, factor);
        mpl_put(type, edit->fresh[1].data, c,
                mpl_get(type, data[BIAS], c) - mpl_get(type, data[MEAN], c) * factor);
    }
    *edit = (mpl_edit){.kind = MPL_EDIT_REPLACE,
                       .op_kind = MPL_OP_fma,
                       .from = MPL_NONE,
                       .n_in = 3,
                       .in = {x, MPL_FRESH(0), MPL_FRESH(1)},
                       .fresh = {edit->fresh[0], edit->fresh[1]}};
out:
    for (uint32_t k = SCALE; k < FILTER; k++)
        mpl_free(match->ctx, data[k]);
    return st;
}

/* ---- arithmetic by channel, into the preceding operation ---- */

/* Whether v, broadcast to `whole`, is one number or one for each channel. */
static bool is_by_channel(const mpl_graph *g, mpl_value v, const mpl_shape *whole)
{
    const mpl_shape *shape = &g->value_shape[v];

    if (shape->rank > whole->rank)
        return false;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (shape->dim[i] != 1 &&
            (whole->rank - shape->rank + i != 1 || shape->dim[i] != whole->dim[1]))
            return false;
    return true;
}

/* An operation that computes x * times + plus by channel, where x is the result of `maker`. */
typedef struct affine {
    mpl_op maker;
    mpl_type type;
    bool scales, shifts; /* false: all of times are 1, of plus 0 */
    int64_t n_channels;
    double *times, *plus; /* [n_channels] */
} affine;

/* Writes y * x, y / x, y + x, y - x or x - y as y * times + plus. */
static void affine_of(mpl_op_kind does, bool x_first, double x, double *times, double *plus)
{
    *times = does == MPL_OP_mul              ? x
             : does == MPL_OP_div            ? 1 / x
             : does == MPL_OP_sub && x_first ? -1
                                             : 1;
    *plus = does == MPL_OP_add ? x : does == MPL_OP_sub ? (x_first ? x : -x) : 0;
}

/* a->maker is MPL_NONE if nothing matches, or contents are unknown. */
static mpl_status affine_find(mpl_match *match, mpl_op op, mpl_op_kind kind, affine *a)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = match->g;
    mpl_value out = mpl_op_output(g, op, 0), factor = MPL_NONE;
    mpl_op maker = MPL_NONE;
    mpl_op_kind does = (mpl_op_kind)g->op_kind[op];
    bool second = false, finite = true, one;
    void *data = NULL;

    *a = (affine){.maker = MPL_NONE, .type = (mpl_type)g->value_type[out]};
    if ((does != MPL_OP_mul && does != MPL_OP_div && does != MPL_OP_add && does != MPL_OP_sub) ||
        !mpl_type_in(a->type, MPL_SET(f32) | MPL_SET(f64)))
        goto out; /* narrow floats would be rounded once less */
    for (uint32_t i = 0; i < (does == MPL_OP_div ? 1 : 2) && maker == MPL_NONE; i++) {
        maker = mpl_only_for(g, mpl_op_input(g, op, i), kind);
        factor = mpl_op_input(g, op, 1 - i);
        second = i == 1;
    }
    if (maker == MPL_NONE || g->value_shape[out].rank < 2 || g->value_bytes[out] == 0 ||
        !mpl_same_form(g, mpl_op_output(g, maker, 0), out) ||
        !is_by_channel(g, factor, &g->value_shape[out]) || !has_contents(match, factor))
        goto out;
    for (uint32_t i = 1; i < 3; i++) {
        mpl_value v = mpl_op_input(g, maker, i);

        if (v != MPL_NONE && (!has_contents(match, v) || g->value_type[v] != a->type))
            goto out;
    }
    MPL_TRY(contents(match, factor, &data));
    a->n_channels = g->value_shape[out].dim[1];
    one = mpl_count(&g->value_shape[factor]) == 1;
    MPL_TRY(mpl_new_each(match->ctx, (uint64_t)a->n_channels, a->times, a->plus));
    for (int64_t c = 0; c < a->n_channels; c++) {
        affine_of(does, second, mpl_get(a->type, data, one ? 0 : c), &a->times[c], &a->plus[c]);
        finite = finite && isfinite(a->times[c]) && isfinite(a->plus[c]);
    }
    a->scales = does == MPL_OP_mul || does == MPL_OP_div || (does == MPL_OP_sub && second);
    a->shifts = does == MPL_OP_add || does == MPL_OP_sub;
    a->maker = finite ? maker : MPL_NONE; /* infinities would mix in the sums of a convolution */
out:
    mpl_free(match->ctx, data);
    return st;
}

/* Scales input `i` of the maker by channel (and shifts it, if it is an offset), with `n_each`
 * numbers a channel; computes in double, rounds once. A missing offset is 0. The edit's operand
 * becomes fresh[k]. */
static mpl_status affine_apply(mpl_match *match, const affine *a, uint32_t i, bool offset,
                               mpl_edit *edit, uint32_t k)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = match->g;
    mpl_value v = mpl_op_input(g, a->maker, i);
    mpl_shape shape = v != MPL_NONE ? g->value_shape[v] : (mpl_shape){1, {a->n_channels}};
    int64_t n_each = mpl_count_dims(&shape, 1, shape.rank);
    void *data = NULL;

    if (v != MPL_NONE)
        MPL_TRY(contents(match, v, &data));
    MPL_TRY(mpl_edit_fresh(match->ctx, a->type, &shape, false, &edit->fresh[k]));
    for (int64_t c = 0; c < a->n_channels; c++)
        for (int64_t at = c * n_each; at < (c + 1) * n_each; at++)
            mpl_put(a->type, edit->fresh[k].data, at,
                    (data != NULL ? mpl_get(a->type, data, at) : 0) * a->times[c] +
                        (offset ? a->plus[c] : 0));
    edit->in[i] = MPL_FRESH(k);
out:
    mpl_free(match->ctx, data);
    return st;
}

/* Merges the operation into its maker, which has a factor as input 1 and an offset as input 2. */
static mpl_status match_affine(mpl_match *match, mpl_op op, mpl_op_kind kind, mpl_edit *edit)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = match->g;
    uint32_t n_fresh = 0;
    affine a;

    MPL_TRY(affine_find(match, op, kind, &a));
    if (a.maker == MPL_NONE)
        goto out;
    edit->n_in = mpl_op_n_in(g, a.maker);
    if (edit->n_in == 2 && a.shifts)
        edit->n_in = 3; /* add the missing offset */
    for (uint32_t i = 0; i < edit->n_in; i++)
        edit->in[i] = mpl_op_input(g, a.maker, i);
    if (a.scales)
        MPL_TRY(affine_apply(match, &a, 1, false, edit, n_fresh++));
    if (a.shifts || mpl_op_input(g, a.maker, 2) != MPL_NONE)
        MPL_TRY(affine_apply(match, &a, 2, true, edit, n_fresh++));
    edit->kind = MPL_EDIT_REPLACE;
    edit->op_kind = kind;
    edit->from = a.maker;
out:
    mpl_free_each(match->ctx, a.times, a.plus);
    return st;
}

/* y = (x - mean) * scale / sqrt(variance + epsilon) + bias: changes scale and bias. */
mpl_status mpl_match_bn_scale(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    return match_affine(match, op, MPL_OP_batch_norm, edit);
}

mpl_status mpl_match_conv_scale(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    return match_affine(match, op, MPL_OP_conv, edit);
}

/* ---- operations after a convolution or matrix product, into it ---- */

/* Appends the operands of operation `from` to the edit's. */
static void take_operands(const mpl_graph *g, mpl_op from, mpl_edit *edit)
{
    edit->kind = MPL_EDIT_REPLACE;
    edit->from = from;
    for (uint32_t i = 0; i < mpl_op_n_in(g, from); i++)
        edit->in[edit->n_in++] = mpl_op_input(g, from, i);
}

/* Whether it adds two values in floats that do not lose a rounding when merged. */
static bool is_sum(const mpl_graph *g, mpl_op op)
{
    return (g->op_kind[op] == MPL_OP_add ||
            (g->op_kind[op] == MPL_OP_sum && mpl_op_n_in(g, op) == 2)) &&
           mpl_type_in((mpl_type)g->value_type[mpl_op_output(g, op, 0)],
                       MPL_SET(f32) | MPL_SET(f64));
}

/* For a sum, finds an operation of one of the kinds that makes an operand; *other: the other
 * operand. */
static mpl_op summed(const mpl_graph *g, mpl_op op, uint32_t n, const mpl_op_kind *kind,
                     mpl_value *other)
{
    mpl_value out = mpl_op_output(g, op, 0);
    mpl_op found = MPL_NONE;

    if (!is_sum(g, op))
        return MPL_NONE;
    for (uint32_t i = 0; i < 2 * n; i++) {
        mpl_value b = mpl_op_input(g, op, 1 - i % 2);
        mpl_op c = mpl_only_for(g, mpl_op_input(g, op, i % 2), kind[i / 2]);

        /* Takes the later of two, so that its operands live no longer than before. Skips weights as
         * the other operand, since their reader decides their range. */
        if (c != MPL_NONE && (found == MPL_NONE || c > found) && g->value_role[b] != MPL_WEIGHT &&
            mpl_same_form(g, b, out) && mpl_same_form(g, mpl_op_output(g, c, 0), out))
            found = c, *other = b;
    }
    return found;
}

/* Merges the sum into the maker of an operand, which becomes `to`. */
static void match_sum(const mpl_graph *g, mpl_op op, uint32_t n, const mpl_op_kind *kind,
                      mpl_op_kind to, mpl_edit *edit)
{
    mpl_value other = MPL_NONE;
    mpl_op from = summed(g, op, n, kind, &other);

    if (from == MPL_NONE || !fits_gemm(g, from, MPL_MAX_RANK) ||
        mpl_attr_float(g, from, MPL_ATTR_alpha, 1) != 1 ||
        (g->op_kind[from] == MPL_OP_gemm_act && mpl_activation_of(g, from) != MPL_ACT_NONE))
        return;
    edit->op_kind = to;
    edit->in[edit->n_in++] = other;
    take_operands(g, from, edit);
}

mpl_status mpl_match_conv_sum(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    static const mpl_op_kind kind[] = {MPL_OP_conv};

    match_sum(match->g, op, 1, kind, MPL_OP_conv_sum, edit);
    return MPL_OK;
}

mpl_status mpl_match_gemm_sum(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    static const mpl_op_kind kind[] = {MPL_OP_gemm, MPL_OP_matmul, MPL_OP_gemm_act};

    match_sum(match->g, op, 3, kind, MPL_OP_gemm_sum, edit);
    return MPL_OK;
}

/* Makes a weight with one number a column the c of a gemm without one. */
mpl_status mpl_match_gemm_bias(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    static const mpl_op_kind kind[] = {MPL_OP_gemm, MPL_OP_matmul};
    const mpl_graph *g = match->g;
    mpl_value out = mpl_op_output(g, op, 0);

    if (!is_sum(g, op))
        return MPL_OK;
    for (uint32_t i = 0; i < 4 && edit->kind == MPL_EDIT_NONE; i++) {
        mpl_value c = mpl_op_input(g, op, 1 - i % 2);
        mpl_op product = mpl_only_for(g, mpl_op_input(g, op, i % 2), kind[i / 2]);
        const mpl_shape *shape = &g->value_shape[c];
        uint32_t rank = g->value_shape[out].rank;

        if (product == MPL_NONE || mpl_op_input(g, product, 2) != MPL_NONE ||
            g->value_role[c] != MPL_WEIGHT || !fits_gemm(g, product, MPL_MAX_RANK) ||
            shape->rank == 0 || mpl_count(shape) != shape->dim[shape->rank - 1] ||
            shape->dim[shape->rank - 1] != g->value_shape[out].dim[rank - 1] ||
            !mpl_same_form(g, mpl_op_output(g, product, 0), out) ||
            mpl_attr_float(g, product, MPL_ATTR_beta, 1) != 1)
            continue;
        edit->op_kind = rank > 2 ? MPL_OP_gemm_act : MPL_OP_gemm;
        take_operands(g, product, edit);
        edit->n_in = 2;
        edit->in[edit->n_in++] = c;
    }
    return MPL_OK;
}

/* The activation that the operation computes; MPL_ACT_NONE: none. */
static mpl_activation activation_of(const mpl_graph *g, mpl_op op)
{
    mpl_value least = mpl_op_input(g, op, 1), most = mpl_op_input(g, op, 2);
    double low, high;

    if (g->op_kind[op] == MPL_OP_relu)
        return MPL_ACT_RELU;
    if (g->op_kind[op] != MPL_OP_clip || least == MPL_NONE || !mpl_is_uniform(g, least, &low) ||
        low != 0 || signbit(low))
        return MPL_ACT_NONE;
    if (most == MPL_NONE)
        return MPL_ACT_RELU;
    return mpl_is_uniform(g, most, &high) && high == 6 ? MPL_ACT_RELU6 : MPL_ACT_NONE;
}

/* Merges the activation into the operation whose only reader it is; that becomes to[]. */
static void match_activation(const mpl_graph *g, mpl_op op, uint32_t n, const mpl_op_kind *kind,
                             const mpl_op_kind *to, mpl_edit *edit)
{
    mpl_activation activation = activation_of(g, op);

    for (uint32_t i = 0; i < n && activation != MPL_ACT_NONE; i++) {
        mpl_op from = mpl_only_for(g, mpl_op_input(g, op, 0), kind[i]);

        if (from == MPL_NONE || mpl_activation_of(g, from) != MPL_ACT_NONE ||
            !fits_gemm(g, from, MPL_MAX_RANK) || !mpl_is_float(g, mpl_op_output(g, op, 0)))
            continue;
        edit->op_kind = to[i];
        edit->attr[edit->n_attr++] =
            (mpl_attr){.key = MPL_ATTR_activation,
                       .n = (uint32_t)strlen(mpl_activation_name(activation)),
                       .text = mpl_activation_name(activation)};
        take_operands(g, from, edit);
    }
}

mpl_status mpl_match_conv_relu(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    static const mpl_op_kind kind[] = {MPL_OP_conv, MPL_OP_conv_sum};
    static const mpl_op_kind to[] = {MPL_OP_conv_act, MPL_OP_conv_sum};

    match_activation(match->g, op, 2, kind, to, edit);
    return MPL_OK;
}

mpl_status mpl_match_gemm_relu(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    static const mpl_op_kind kind[] = {MPL_OP_gemm, MPL_OP_matmul, MPL_OP_gemm_act,
                                       MPL_OP_gemm_sum};
    static const mpl_op_kind to[] = {MPL_OP_gemm_act, MPL_OP_gemm_act, MPL_OP_gemm_act,
                                     MPL_OP_gemm_sum};

    match_activation(match->g, op, 4, kind, to, edit);
    return MPL_OK;
}
