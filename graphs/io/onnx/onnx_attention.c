/* onnx_attention.c -- attention of ONNX and of ONNX Runtime as products, masks and a softmax.
 *
 * Idea     Queries of the heads that share keys lie side by side, so that one product serves them:
 *          neither keys nor masks are repeated, and keys are not transposed. Only the queries are
 *          scaled. Masks are computed from positions; what is known of them folds, and a mask that
 *          hides nothing is left out. A query that may look at nothing gives zeros.
 * Source   ONNX, docs/Operators.md: Attention; ONNX Runtime, docs/ContribOperators.md
 * Limits   Softmax is computed in at least 32 bits, so a wider softmax_precision changes nothing.
 */
#include "graphs/io/onnx/onnx_priv.h"

#include <math.h>

/* q is [batch, heads, steps, width]; k and v are [batch, groups, total, width]. */
typedef struct attention {
    onnx_node *n;
    mpl_status st; /* of the first operation that failed; those behind it do nothing */
    uint32_t as;   /* output that the next operation makes, if it is wanted */
    mpl_value q, k, v;
    double scale, cap;       /* NAN: 1 / sqrt(width); 0: no cap */
    mpl_value allowed, bias; /* bool, and numbers added; both broadcast to the scores */
    int64_t shown; /* what output 3 is: -1 none, 0 scores, 1 capped, 2 masked, 3 weights */
    bool guard;    /* rows may be hidden as a whole */
} attention;

/* ---- operations ---- */

static mpl_value op(attention *a, mpl_op_kind kind, const char *suffix, uint32_t n_in,
                    const mpl_value *in, uint32_t n_attr, const mpl_attr *attr)
{
    onnx_node *n = a->n;
    const char *name = a->as < n->n_out ? n->out_name[a->as] : NULL;
    mpl_value v = MPL_NONE;

    for (uint32_t i = 0; i < n_in && a->st == MPL_OK; i++)
        if (in[i] == MPL_NONE)
            a->st = ONNX_REFUSE(n, "an operand of its %s is missing", suffix);
    if (a->st == MPL_OK && name == NULL)
        a->st = onnx_fresh_name(n->r, n->out_name[0], suffix, &name);
    if (a->st == MPL_OK)
        a->st = onnx_blame(n, mpl_graph_add_folded(n->r->ctx, n->r->g, kind, n->label, n_in, in,
                                                   n_attr, attr, 1, &name, &v));
    if (a->as < n->n_out)
        n->out[a->as] = v;
    a->as = UINT32_MAX;
    return v;
}

static mpl_value one(attention *a, mpl_op_kind kind, const char *suffix, mpl_value x)
{
    return op(a, kind, suffix, 1, &x, 0, NULL);
}

static mpl_value two(attention *a, mpl_op_kind kind, const char *suffix, mpl_value x, mpl_value y)
{
    return op(a, kind, suffix, 2, (mpl_value[]){x, y}, 0, NULL);
}

static mpl_shape shape_of(const attention *a, mpl_value v)
{
    return v != MPL_NONE ? a->n->r->g->value_shape[v] : (mpl_shape){.rank = 0};
}

static mpl_type type_of(const attention *a, mpl_value v)
{
    return v != MPL_NONE ? (mpl_type)a->n->r->g->value_type[v] : MPL_TYPE_f32;
}

static mpl_value cast(attention *a, mpl_type to, mpl_value v)
{
    return type_of(a, v) == to
               ? v
               : op(a, MPL_OP_cast, "cast", 1, &v, 1, &MPL_TEXT(to, mpl_type_name(to)));
}

static mpl_value number(attention *a, mpl_type type, double x)
{
    mpl_value v = MPL_NONE;

    if (a->st == MPL_OK)
        a->st = onnx_scalar(a->n, type, x, "number", &v);
    return v;
}

static mpl_value reshape(attention *a, mpl_value v, uint32_t rank, const int64_t *dim)
{
    return op(a, MPL_OP_reshape, "dims", 1, &v, 1, &MPL_INTS(shape, rank, dim));
}

static mpl_value reshape4(attention *a, mpl_value v, int64_t i, int64_t j, int64_t k, int64_t l)
{
    mpl_shape s = shape_of(a, v);
    const int64_t dim[] = {i, j, k, l};

    return s.rank == 4 && memcmp(s.dim, dim, sizeof dim) == 0 ? v : reshape(a, v, 4, dim);
}

/* Swaps axes 1 and 2 of 4: only names, if one of them is 1. */
static mpl_value swap_heads(attention *a, mpl_value v)
{
    mpl_shape s = shape_of(a, v);

    if (s.dim[1] == 1 || s.dim[2] == 1)
        return reshape4(a, v, s.dim[0], s.dim[2], s.dim[1], s.dim[3]);
    return op(a, MPL_OP_transpose, "heads", 1, &v, 1,
              &MPL_INTS(perm, 4, ((const int64_t[]){0, 2, 1, 3})));
}

/* [batch, steps, heads * width] as [batch, heads, steps, width]; 4 dims stay. */
static mpl_value split_heads(attention *a, mpl_value v, int64_t heads)
{
    mpl_shape s = shape_of(a, v);

    if (a->st != MPL_OK || s.rank == 4)
        return v;
    if (s.rank != 3 || heads < 1 || s.dim[2] % heads != 0) {
        a->st = ONNX_REFUSE(a->n, "its operands must have 4 dims, or 3 and a number of heads");
        return MPL_NONE;
    }
    if (heads == 1 || s.dim[1] == 1)
        return reshape4(a, v, s.dim[0], heads, s.dim[1], s.dim[2] / heads);
    return swap_heads(a, reshape4(a, v, s.dim[0], s.dim[1], heads, s.dim[2] / heads));
}

static mpl_value slice(attention *a, mpl_value v, int64_t axis, int64_t start, int64_t end)
{
    return op(a, MPL_OP_slice, "part", 1, &v, 3,
              (mpl_attr[]){MPL_INT(axes, axis), MPL_INT(starts, start), MPL_INT(ends, end)});
}

/* ---- masks ---- */

/* Whether a value is known to be true everywhere. */
static bool is_true(const attention *a, mpl_value v)
{
    const mpl_graph *g = a->n->r->g;
    uint64_t count = 0, i = 0;

    if (v == MPL_NONE || !onnx_is_constant(a->n, v) || !mpl_shape_count(&g->value_shape[v], &count))
        return false;
    for (count = g->value_splat[v] ? 1 : count; i < count; i++)
        if (!((const uint8_t *)g->value_data[v])[i])
            return false;
    return true;
}

/* Only what `mask` allows, too. */
static void allow(attention *a, mpl_value mask)
{
    if (a->st != MPL_OK || is_true(a, mask))
        return;
    a->allowed = a->allowed == MPL_NONE ? mask : two(a, MPL_OP_and, "allowed", a->allowed, mask);
}

static void add_bias(attention *a, mpl_value bias)
{
    bias = cast(a, type_of(a, a->q), bias);
    a->bias = a->bias == MPL_NONE ? bias : two(a, MPL_OP_add, "bias", a->bias, bias);
}

/* The numbers of the keys, i64 [total]. */
static mpl_value keys(attention *a)
{
    mpl_shape k = shape_of(a, a->k);
    mpl_value v = MPL_NONE;

    if (a->st == MPL_OK)
        a->st = onnx_count_up(a->n, 1, &k.dim[2], &v);
    return v;
}

/* Numbers of a sample, [batch], so that they broadcast to the scores; i64. */
static mpl_value by_sample(attention *a, mpl_value v)
{
    mpl_shape s = shape_of(a, v);

    return reshape4(a, cast(a, MPL_TYPE_i64, v), s.rank == 1 ? s.dim[0] : 1, 1, 1, 1);
}

/* Allows keys from `left` before a query up to `right` behind it; -1: no limit. `first`: the
 * position of the first query among the keys, as a number or by sample. */
static void allow_window(attention *a, mpl_value first, int64_t left, int64_t right)
{
    mpl_shape q = shape_of(a, a->q);
    mpl_value at = MPL_NONE;

    if (a->st != MPL_OK || (left < 0 && right < 0))
        return;
    a->st = onnx_count_up(a->n, 2, (const int64_t[]){q.dim[2], 1}, &at);
    at = two(a, MPL_OP_add, "at", at, first);
    if (right >= 0)
        allow(a, two(a, MPL_OP_less_equal, "before", keys(a),
                     two(a, MPL_OP_add, "last", at, number(a, MPL_TYPE_i64, (double)right))));
    if (left >= 0)
        allow(a, two(a, MPL_OP_greater_equal, "after", keys(a),
                     two(a, MPL_OP_sub, "first", at, number(a, MPL_TYPE_i64, (double)left))));
}

/* A mask whose rows are too short hides the keys behind them. */
static mpl_value lengthen(attention *a, mpl_value mask)
{
    mpl_shape s = shape_of(a, mask), k = shape_of(a, a->k);
    int64_t pads[2 * MPL_MAX_RANK] = {0}, more = s.rank > 0 ? k.dim[2] - s.dim[s.rank - 1] : 0;
    bool whole = type_of(a, mask) == MPL_TYPE_bool;

    if (a->st != MPL_OK || more <= 0)
        return mask;
    pads[2 * s.rank - 1] = more;
    return op(a, MPL_OP_pad, "mask", 2,
              (mpl_value[]){mask, number(a, type_of(a, mask), whole ? 0 : -(double)INFINITY)}, 1,
              &MPL_INTS(pads, 2 * s.rank, pads));
}

/* ---- the products ---- */

/* Zeros for the rows of v whose queries may look at no key. */
static mpl_value guarded(attention *a, mpl_value v)
{
    mpl_value least = number(a, type_of(a, a->q), -(double)INFINITY), seen = a->allowed;
    const mpl_attr last[] = {MPL_INT(axes, -1), MPL_INT(keepdims, 1)};

    if (!a->guard || (a->allowed == MPL_NONE && a->bias == MPL_NONE))
        return v;
    if (a->bias == MPL_NONE) {
        seen = cast(a, MPL_TYPE_u8, seen);
        seen = cast(a, MPL_TYPE_bool, op(a, MPL_OP_reduce_max, "seen", 1, &seen, 2, last));
    } else {
        seen = a->allowed == MPL_NONE ? a->bias
                                      : op(a, MPL_OP_where, "seen", 3,
                                           (mpl_value[]){a->allowed, a->bias, least}, 0, NULL);
        seen = two(a, MPL_OP_greater, "seen", op(a, MPL_OP_reduce_max, "most", 1, &seen, 2, last),
                   least);
    }
    return is_true(a, seen) ? v
                            : op(a, MPL_OP_where, "guarded", 3,
                                 (mpl_value[]){seen, v, number(a, type_of(a, v), 0)}, 0, NULL);
}

static void show(attention *a, int64_t stage, mpl_value v)
{
    if (a->shown != stage || a->n->n_out < 4 || a->n->out_name[3] == NULL)
        return;
    a->as = 3;
    one(a, MPL_OP_identity, "shown", v);
}

/* v as a graph that the node owns turns it; v if there is none. */
static mpl_value modified(attention *a, const char *attr, mpl_value v)
{
    const Onnx__AttributeProto *graph = onnx_attr(a->n, attr);
    mpl_shape before = shape_of(a, v), after;
    mpl_value made = v;

    if (a->st != MPL_OK || graph == NULL || graph->g == NULL)
        return v;
    a->st = onnx_read_body(a->n, graph->g, 1, &v, 1, NULL, &made);
    after = a->st == MPL_OK ? shape_of(a, made) : before;
    if (!mpl_shape_equal(&before, &after) || type_of(a, made) != type_of(a, v))
        a->st = ONNX_REFUSE(a->n, "its %s changes dims or type", attr);
    return made;
}

static mpl_value weights(attention *a, mpl_value scores)
{
    mpl_type type = type_of(a, scores), to = type;
    const char *name;
    int64_t asked = onnx_attr_int(a->n, "softmax_precision", 0);
    bool modifies = onnx_attr(a->n, "score_mod") != NULL || onnx_attr(a->n, "prob_mod") != NULL;

    if (asked > 0 && asked <= INT32_MAX && !onnx_type((int32_t)asked, &to, &name))
        a->st = ONNX_REFUSE(a->n, "its softmax has element type %s, which memplan has not", name);
    else if (asked == 0 && modifies && type != MPL_TYPE_f64)
        to = MPL_TYPE_f32;
    /* a wider one is what softmax has inside */
    if (modifies || mpl_type_bytes(to) < mpl_type_bytes(type))
        scores = cast(a, to, scores);
    scores = modified(a, "score_mod", scores);
    scores = op(a, MPL_OP_softmax, "weights", 1, &scores, 1, &MPL_INT(axis, -1));
    return cast(a, type, modified(a, "prob_mod", scores));
}

/* The scores with caps and masks; shows what the node asks for. */
static mpl_value masked(attention *a, mpl_value s)
{
    mpl_type type = type_of(a, s);

    show(a, 0, s);
    if (a->cap != 0) {
        s = two(a, MPL_OP_div, "capped", s, number(a, type, a->cap));
        s = two(a, MPL_OP_mul, "capped", one(a, MPL_OP_tanh, "capped", s), number(a, type, a->cap));
    }
    show(a, 1, s);
    if (a->bias != MPL_NONE)
        s = two(a, MPL_OP_add, "biased", s, a->bias);
    if (a->allowed != MPL_NONE)
        s = op(a, MPL_OP_where, "masked", 3,
               (mpl_value[]){a->allowed, s, number(a, type, -(double)INFINITY)}, 0, NULL);
    show(a, 2, s);
    return s;
}

/* Checks the operands; *group: heads that share keys. */
static mpl_status check(attention *a, int64_t *group)
{
    mpl_shape q = shape_of(a, a->q), k = shape_of(a, a->k), v = shape_of(a, a->v);

    MPL_PASS(a->st);
    if (q.rank != 4 || k.rank != 4 || v.rank != 4 || q.dim[0] != k.dim[0] || k.dim[1] < 1 ||
        q.dim[1] % k.dim[1] != 0 || q.dim[3] != k.dim[3] || memcmp(k.dim, v.dim, 24) != 0)
        return ONNX_REFUSE(a->n, "its queries, keys and values do not fit together");
    *group = q.dim[1] / k.dim[1];
    return MPL_OK;
}

/* The last operations: output 0, with heads side by side if `merge`. */
static mpl_status attend(attention *a, bool merge)
{
    mpl_shape q = shape_of(a, a->q), k = shape_of(a, a->k), v = shape_of(a, a->v);
    double scale = isnan(a->scale) ? 1 / sqrt((double)q.dim[3]) : a->scale;
    int64_t group = 1, last[3] = {q.dim[0], q.dim[2], q.dim[1] * v.dim[3]};
    mpl_value s, y;

    MPL_PASS(check(a, &group));
    s = scale == 1 ? a->q : two(a, MPL_OP_mul, "scaled", a->q, number(a, type_of(a, a->q), scale));
    s = reshape4(a, s, q.dim[0], k.dim[1], group * q.dim[2], q.dim[3]);
    s = op(a, MPL_OP_matmul, "scores", 2, (mpl_value[]){s, a->k}, 1, &MPL_INT(trans_b, 1));
    s = weights(a, masked(a, reshape4(a, s, q.dim[0], q.dim[1], q.dim[2], k.dim[2])));
    if (a->shown == 3)
        show(a, 3, guarded(a, s));
    s = reshape4(a, s, q.dim[0], k.dim[1], group * q.dim[2], k.dim[2]);
    y = reshape4(a, two(a, MPL_OP_matmul, "seen", s, a->v), q.dim[0], q.dim[1], q.dim[2], v.dim[3]);
    y = guarded(a, y);
    if (merge && q.dim[1] != 1 && q.dim[2] != 1)
        y = swap_heads(a, y);
    a->as = 0;
    reshape(a, y, merge ? 3 : 4,
            merge ? last : (const int64_t[]){q.dim[0], q.dim[1], q.dim[2], v.dim[3]});
    return a->st;
}

static double real(const onnx_node *n, const char *name, double otherwise)
{
    const Onnx__AttributeProto *attr = onnx_attr(n, name);

    return attr != NULL && attr->f != 0 ? (double)attr->f : otherwise;
}

static attention begin(onnx_node *n)
{
    return (attention){.n = n,
                       .as = UINT32_MAX,
                       .q = onnx_in(n, 0),
                       .k = onnx_in(n, 1),
                       .v = onnx_in(n, 2),
                       .scale = real(n, "scale", (double)NAN),
                       .cap = real(n, "softcap", 0),
                       .allowed = MPL_NONE,
                       .bias = MPL_NONE,
                       .shown = onnx_attr_int(n, "qk_matmul_output_mode", 0)};
}

/* Past and new keys or values, as output i. */
static mpl_value append(attention *a, uint32_t i, mpl_value past, mpl_value now)
{
    a->as = i;
    if (past == MPL_NONE)
        return i < a->n->n_out && a->n->out_name[i] != NULL
                   ? one(a, MPL_OP_identity, "present", now)
                   : (a->as = UINT32_MAX, now);
    return op(a, MPL_OP_concat, "present", 2, (mpl_value[]){past, now}, 1, &MPL_INT(axis, 2));
}

mpl_status onnx_lower_attention(onnx_node *n)
{
    attention a = begin(n);
    mpl_value mask = onnx_in(n, 3), past = onnx_in(n, 4), length = onnx_in(n, 6), first;
    int64_t right = onnx_attr_int(n, "right_window_size", -1), heads;
    bool merge = shape_of(&a, a.q).rank == 3;
    mpl_shape old = shape_of(&a, past);

    heads = onnx_attr_int(n, "kv_num_heads", 0);
    a.guard = true;
    a.q = split_heads(&a, a.q, onnx_attr_int(n, "q_num_heads", 0));
    a.k = append(&a, 1, past, split_heads(&a, a.k, heads));
    a.v = append(&a, 2, onnx_in(n, 5), split_heads(&a, a.v, heads));
    MPL_PASS(check(&a, &heads));
    first = number(&a, MPL_TYPE_i64, past != MPL_NONE ? (double)old.dim[2] : 0);
    if (length != MPL_NONE) {
        length = by_sample(&a, length);
        allow(&a, two(&a, MPL_OP_less, "filled", keys(&a), length));
        first = two(&a, MPL_OP_sub, "first", length,
                    number(&a, MPL_TYPE_i64, (double)shape_of(&a, a.q).dim[2]));
    }
    if (onnx_attr_int(n, "is_causal", 0) != 0)
        right = 0;
    allow_window(&a, first, onnx_attr_int(n, "left_window_size", -1), right);
    if (mask != MPL_NONE) {
        mask = lengthen(&a, mask);
        if (type_of(&a, mask) == MPL_TYPE_bool)
            allow(&a, mask);
        else
            add_bias(&a, mask);
    }
    return attend(&a, merge);
}

mpl_status onnx_lower_flex_attention(onnx_node *n)
{
    attention a = begin(n);

    return attend(&a, false);
}

/* ---- ONNX Runtime's ---- */

/* Refuses what these forms of the node would need: inputs from `first` on, attributes. */
static mpl_status plain_form(onnx_node *n, uint32_t first, const char *const *attr)
{
    for (uint32_t i = first; i < n->n_in; i++)
        if (n->in[i] != MPL_NONE)
            return ONNX_REFUSE(n, "its input %u is not supported", i);
    for (; *attr != NULL; attr++)
        if (onnx_attr_int(n, *attr, 0) > 0)
            return ONNX_REFUSE(n, "attribute '%s' is not supported", *attr);
    return MPL_OK;
}

/* A mask of keys: lengths [batch], or numbers that are not 0 where a key counts, [batch, total] or
 * [batch, steps, total]. What is hidden gets mask_filter_value, not minus infinity. */
static void filter(attention *a, mpl_value mask)
{
    mpl_shape s = shape_of(a, mask), q = shape_of(a, a->q);
    mpl_type type = type_of(a, a->q);

    if (mask == MPL_NONE || a->st != MPL_OK)
        return;
    if (s.rank == 1 && s.dim[0] == q.dim[0])
        mask = two(a, MPL_OP_less, "filled", keys(a), by_sample(a, mask));
    else if (s.rank == 2 || s.rank == 3)
        mask = cast(a, MPL_TYPE_bool,
                    reshape4(a, mask, s.dim[0], 1, s.rank == 3 ? s.dim[1] : 1, s.dim[s.rank - 1]));
    else
        a->st = ONNX_REFUSE(a->n, "its mask has a form that is not supported");
    if (!is_true(a, mask))
        add_bias(a, op(a, MPL_OP_where, "mask", 3,
                       (mpl_value[]){mask, number(a, type, 0),
                                     number(a, type, real(a->n, "mask_filter_value", -10000))},
                       0, NULL));
}

/* The rest of MultiHeadAttention and Attention: masks, then the products. */
static mpl_status attend_masked(attention *a, mpl_value mask, mpl_value bias, int64_t past)
{
    filter(a, mask);
    if (bias != MPL_NONE)
        add_bias(a, bias);
    if (onnx_attr_int(a->n, "unidirectional", 0) != 0)
        allow_window(a, number(a, MPL_TYPE_i64, (double)past), -1, 0);
    return attend(a, true);
}

/* Part i of `of` of axis 3 of [batch, steps, heads, of, width], with heads before steps. */
static mpl_value unpack(attention *a, mpl_value v, int64_t i)
{
    mpl_shape s = shape_of(a, v);

    v = reshape4(a, slice(a, v, 3, i, i + 1), s.dim[0], s.dim[1], s.dim[2], s.dim[4]);
    return a->st == MPL_OK ? swap_heads(a, v) : v;
}

mpl_status onnx_lower_multi_head(onnx_node *n)
{
    attention a = begin(n);
    int64_t heads = onnx_attr_int(n, "num_heads", 0), at = 0;
    mpl_value *part[] = {&a.q, &a.k, &a.v}, past = onnx_in(n, 6);
    mpl_shape q = shape_of(&a, a.q), k = shape_of(&a, a.k);

    MPL_PASS(plain_form(n, 8, (const char *const[]){NULL}));
    for (uint32_t i = 0; i < 3 && onnx_in(n, 3) != MPL_NONE; i++) {
        mpl_shape s = shape_of(&a, *part[i]);

        if (s.rank != 3)
            return ONNX_REFUSE(n, "its bias needs operands of 3 dims");
        *part[i] =
            two(&a, MPL_OP_add, "projected", *part[i], slice(&a, n->in[3], 0, at, at + s.dim[2]));
        at += s.dim[2];
    }
    if (q.rank == 5) {
        a.k = unpack(&a, n->in[0], 1), a.v = unpack(&a, n->in[0], 2);
        a.q = unpack(&a, n->in[0], 0);
    } else if (k.rank == 5) {
        a.k = unpack(&a, n->in[1], 0), a.v = unpack(&a, n->in[1], 1);
    }
    a.shown = 0;
    a.q = split_heads(&a, a.q, heads);
    a.k = append(&a, 1, past, split_heads(&a, a.k, heads));
    a.v = append(&a, 2, onnx_in(n, 7), split_heads(&a, a.v, heads));
    return attend_masked(&a, onnx_in(n, 4), onnx_in(n, 5), shape_of(&a, past).dim[2]);
}

/* Queries, keys and values are projected one by one, so that no buffer holds them all. */
mpl_status onnx_lower_attention_ms(onnx_node *n)
{
    static const char *const refused[] = {"do_rotary", "past_present_share_buffer", NULL};
    attention a = begin(n);
    const Onnx__AttributeProto *sizes = onnx_attr(n, "qkv_hidden_sizes");
    mpl_value *part[] = {&a.q, &a.k, &a.v}, past = onnx_in(n, 4), both[2];
    mpl_shape w = shape_of(&a, onnx_in(n, 1)), old = shape_of(&a, past);
    int64_t heads = onnx_attr_int(n, "num_heads", 0), at = 0;

    MPL_PASS(plain_form(n, 6, refused));
    if (w.rank != 2 || (sizes != NULL && sizes->n_ints != 3) || (past != MPL_NONE && old.rank != 5))
        return ONNX_REFUSE(n, "its weights must have 2 dims, its past 5");
    for (uint32_t i = 0; i < 3; i++) {
        int64_t end = at + (sizes != NULL ? sizes->ints[i] : w.dim[1] / 3);

        *part[i] =
            two(&a, MPL_OP_matmul, "product", onnx_in(n, 0), slice(&a, onnx_in(n, 1), 1, at, end));
        if (onnx_in(n, 2) != MPL_NONE)
            *part[i] = two(&a, MPL_OP_add, "projected", *part[i], slice(&a, n->in[2], 0, at, end));
        *part[i] = split_heads(&a, *part[i], heads);
        at = end;
    }
    for (uint32_t i = 1; i < 3; i++) {
        mpl_shape s = shape_of(&a, *part[i]);

        if (past != MPL_NONE)
            *part[i] = append(&a, UINT32_MAX,
                              reshape4(&a, slice(&a, past, 0, i - 1, i), old.dim[1], old.dim[2],
                                       old.dim[3], old.dim[4]),
                              *part[i]);
        s = shape_of(&a, *part[i]);
        both[i - 1] = n->n_out < 2
                          ? *part[i]
                          : reshape(&a, *part[i], 5,
                                    (const int64_t[]){1, s.dim[0], s.dim[1], s.dim[2], s.dim[3]});
    }
    a.as = 1;
    if (n->n_out > 1)
        op(&a, MPL_OP_concat, "present", 2, both, 1, &MPL_INT(axis, 0));
    a.as = UINT32_MAX;
    return attend_masked(&a, onnx_in(n, 3), onnx_in(n, 5), past != MPL_NONE ? old.dim[3] : 0);
}

/* Keys or values in the cache of past ones, in place where it is long enough; output i. */
static mpl_value insert(attention *a, uint32_t i, mpl_value past, mpl_value now, mpl_value first,
                        int64_t total)
{
    int64_t more = total - shape_of(a, past).dim[2], pads[8] = {0};

    if (past == MPL_NONE || shape_of(a, past).dim[2] == 0)
        return append(a, i, MPL_NONE, now);
    pads[6] = more;
    if (more > 0)
        past = op(a, MPL_OP_pad, "longer", 1, &past, 1, &MPL_INTS(pads, 8, pads));
    a->as = i;
    return op(a, MPL_OP_tensor_scatter, "present", 3, (mpl_value[]){past, now, first}, 1,
              &MPL_INT(axis, 2));
}

/* Rotates [batch, steps, heads * width] by the angles of inputs 7 and 8, at their positions. */
static mpl_value rotate(attention *a, mpl_value v, int64_t heads, mpl_value at)
{
    onnx_node *n = a->n;
    mpl_shape angles = shape_of(a, onnx_in(n, 7));

    if (onnx_attr_int(n, "do_rotary", 0) == 0)
        return v;
    return op(a, MPL_OP_rotary_embedding, "rotated", 4,
              (mpl_value[]){v, onnx_in(n, 7), onnx_in(n, 8), at}, 3,
              (mpl_attr[]){MPL_INT(num_heads, heads),
                           MPL_INT(rotary_embedding_dim, 2 * angles.dim[1]),
                           MPL_INT(interleaved, onnx_attr_int(n, "rotary_interleaved", 0))});
}

/* The positions of the queries, [batch, steps]: input 9, else from those of the first ones. */
static mpl_value positions(attention *a, mpl_value first, const int64_t *steps)
{
    mpl_value v = MPL_NONE;

    if (onnx_in(a->n, 9) != MPL_NONE || onnx_attr_int(a->n, "do_rotary", 0) == 0)
        return onnx_in(a->n, 9);
    if (a->st == MPL_OK)
        a->st = onnx_count_up(a->n, 2, (const int64_t[]){1, steps[1]}, &v);
    return two(a, MPL_OP_add, "positions", reshape(a, first, 2, (const int64_t[]){steps[0], 1}), v);
}

/* Samples may have pasts of different lengths: their keys lie at the start of the cache, and the
 * new ones behind them. */
mpl_status onnx_lower_group_query(onnx_node *n)
{
    static const char *const refused[] = {"smooth_softmax", "sliding_window_cache", "qk_output",
                                          NULL};
    attention a = begin(n);
    int64_t heads = onnx_attr_int(n, "num_heads", 0), groups = onnx_attr_int(n, "kv_num_heads", 0);
    int64_t window = onnx_attr_int(n, "local_window_size", -1), *total, width;
    mpl_value first, at, past = onnx_in(n, 3), length = onnx_in(n, 5);
    mpl_shape q = shape_of(&a, a.q);
    bool causal = onnx_attr_int(n, "causal", 1) != 0;
    uint32_t count;

    MPL_PASS(plain_form(n, 11, refused));
    if (q.rank != 3 || length == MPL_NONE || onnx_in(n, 6) == MPL_NONE || groups < 1 || heads < 1)
        return ONNX_REFUSE(n, "queries of 3 dims, lengths and numbers of heads are needed");
    MPL_PASS(onnx_ints(n, n->in[6], "total sequence length", &count, &total));
    if (count != 1 || total[0] < q.dim[1])
        return ONNX_REFUSE(n, "its total sequence length must be one number of at least %" PRId64,
                           q.dim[1]);
    if (a.k == MPL_NONE) { /* packed */
        width = q.dim[2] / (heads + 2 * groups);
        a.k = slice(&a, n->in[0], 2, heads * width, (heads + groups) * width);
        a.v = slice(&a, n->in[0], 2, (heads + groups) * width, (heads + 2 * groups) * width);
        a.q = slice(&a, n->in[0], 2, 0, heads * width);
    }
    first = cast(&a, MPL_TYPE_i64, reshape(&a, length, 1, q.dim));
    length = two(&a, MPL_OP_add, "filled", first, number(&a, MPL_TYPE_i64, 1));
    first = two(&a, MPL_OP_mul, "first", /* a prompt begins at 0 */
                two(&a, MPL_OP_sub, "first", length, number(&a, MPL_TYPE_i64, (double)q.dim[1])),
                number(&a, MPL_TYPE_i64, total[0] != q.dim[1]));
    at = positions(&a, first, q.dim);
    a.q = split_heads(&a, rotate(&a, a.q, heads, at), heads);
    a.k = split_heads(&a, rotate(&a, a.k, groups, at), groups);
    a.k = insert(&a, 1, past, a.k, first, total[0]);
    a.v = insert(&a, 2, onnx_in(n, 4), split_heads(&a, a.v, groups), first, total[0]);
    MPL_PASS(check(&a, &width));
    if (!causal)
        allow(&a, two(&a, MPL_OP_less, "filled", keys(&a), by_sample(&a, length)));
    else
        allow_window(&a, total[0] != q.dim[1] ? by_sample(&a, first) : number(&a, MPL_TYPE_i64, 0),
                     window > 0 ? window - 1 : -1, 0);
    if (onnx_in(n, 10) != MPL_NONE)
        add_bias(&a, lengthen(&a, n->in[10]));
    return attend(&a, true);
}
