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
    onnx_node *node;
    mpl_status st; /* of the first operation that failed; those behind it do nothing */
    uint32_t as;   /* output that the next operation makes, if it is wanted */
    mpl_value q, k, v;
    double scale, cap;       /* NAN: 1 / sqrt(width); 0: no cap */
    mpl_value allowed, bias; /* bool, and numbers added; both broadcast to the scores */
    int64_t shown; /* what output 3 is: -1 none, 0 scores, 1 capped, 2 masked, 3 weights */
    bool guard;    /* rows may be hidden as a whole */
} attention;

/* ---- operations ---- */

static mpl_value op(attention *self, mpl_op_kind kind, const char *suffix, uint32_t n_in,
                    const mpl_value *in, uint32_t n_attr, const mpl_attr *attr)
{
    onnx_node *node = self->node;
    const char *name = self->as < node->n_out ? node->out_name[self->as] : NULL;
    mpl_value v = MPL_NONE;

    for (uint32_t i = 0; i < n_in && self->st == MPL_OK; i++)
        if (in[i] == MPL_NONE)
            self->st = ONNX_REFUSE(node, "an operand of its %s is missing", suffix);
    if (self->st == MPL_OK && name == NULL)
        self->st = onnx_fresh_name(node->r, node->out_name[0], suffix, &name);
    if (self->st == MPL_OK)
        self->st =
            onnx_blame(node, mpl_graph_add_folded(node->r->ctx, node->r->g, kind, node->label, n_in,
                                                  in, n_attr, attr, 1, &name, &v));
    if (self->as < node->n_out)
        node->out[self->as] = v;
    self->as = UINT32_MAX;
    return v;
}

static mpl_value one(attention *self, mpl_op_kind kind, const char *suffix, mpl_value x)
{
    return op(self, kind, suffix, 1, &x, 0, NULL);
}

static mpl_value two(attention *self, mpl_op_kind kind, const char *suffix, mpl_value x,
                     mpl_value y)
{
    return op(self, kind, suffix, 2, (mpl_value[]){x, y}, 0, NULL);
}

static mpl_shape shape_of(const attention *self, mpl_value v)
{
    return v != MPL_NONE ? self->node->r->g->value_shape[v] : (mpl_shape){.rank = 0};
}

static mpl_type type_of(const attention *self, mpl_value v)
{
    return v != MPL_NONE ? (mpl_type)self->node->r->g->value_type[v] : MPL_TYPE_f32;
}

static mpl_value cast(attention *self, mpl_type to, mpl_value v)
{
    return type_of(self, v) == to
               ? v
               : op(self, MPL_OP_cast, "cast", 1, &v, 1, &MPL_TEXT(to, mpl_type_name(to)));
}

static mpl_value number(attention *self, mpl_type type, double x)
{
    mpl_value v = MPL_NONE;

    if (self->st == MPL_OK)
        self->st = onnx_scalar(self->node, type, x, "number", &v);
    return v;
}

static mpl_value reshape(attention *self, mpl_value v, uint32_t rank, const int64_t *dim)
{
    return op(self, MPL_OP_reshape, "dims", 1, &v, 1, &MPL_INTS(shape, rank, dim));
}

static mpl_value reshape4(attention *self, mpl_value v, int64_t i, int64_t j, int64_t k, int64_t l)
{
    mpl_shape s = shape_of(self, v);
    const int64_t dim[] = {i, j, k, l};

    return s.rank == 4 && memcmp(s.dim, dim, sizeof dim) == 0 ? v : reshape(self, v, 4, dim);
}

/* Swaps axes 1 and 2 of 4: only names, if one of them is 1. */
static mpl_value swap_heads(attention *self, mpl_value v)
{
    mpl_shape s = shape_of(self, v);

    if (s.dim[1] == 1 || s.dim[2] == 1)
        return reshape4(self, v, s.dim[0], s.dim[2], s.dim[1], s.dim[3]);
    return op(self, MPL_OP_transpose, "heads", 1, &v, 1,
              &MPL_INTS(perm, 4, ((const int64_t[]){0, 2, 1, 3})));
}

/* [batch, steps, heads * width] as [batch, heads, steps, width]; 4 dims stay. */
static mpl_value split_heads(attention *self, mpl_value v, int64_t heads)
{
    mpl_shape s = shape_of(self, v);

    if (self->st != MPL_OK || s.rank == 4)
        return v;
    if (s.rank != 3 || heads < 1 || s.dim[2] % heads != 0) {
        self->st =
            ONNX_REFUSE(self->node, "its operands must have 4 dims, or 3 and a number of heads");
        return MPL_NONE;
    }
    if (heads == 1 || s.dim[1] == 1)
        return reshape4(self, v, s.dim[0], heads, s.dim[1], s.dim[2] / heads);
    return swap_heads(self, reshape4(self, v, s.dim[0], s.dim[1], heads, s.dim[2] / heads));
}

static mpl_value slice(attention *self, mpl_value v, int64_t axis, int64_t start, int64_t end)
{
    return op(self, MPL_OP_slice, "part", 1, &v, 3,
              (mpl_attr[]){MPL_INT(axes, axis), MPL_INT(starts, start), MPL_INT(ends, end)});
}

/* ---- masks ---- */

/* Whether a value is known to be true everywhere. */
static bool is_true(const attention *self, mpl_value v)
{
    const mpl_graph *g = self->node->r->g;
    uint64_t count = 0, i = 0;

    if (v == MPL_NONE || !onnx_is_constant(self->node, v) ||
        !mpl_shape_count(&g->value_shape[v], &count))
        return false;
    for (count = g->value_splat[v] ? 1 : count; i < count; i++)
        if (!((const uint8_t *)g->value_data[v])[i])
            return false;
    return true;
}

/* Only what `mask` allows, too. */
static void allow(attention *self, mpl_value mask)
{
    if (self->st != MPL_OK || is_true(self, mask))
        return;
    self->allowed =
        self->allowed == MPL_NONE ? mask : two(self, MPL_OP_and, "allowed", self->allowed, mask);
}

static void add_bias(attention *self, mpl_value bias)
{
    bias = cast(self, type_of(self, self->q), bias);
    self->bias = self->bias == MPL_NONE ? bias : two(self, MPL_OP_add, "bias", self->bias, bias);
}

/* The numbers of the keys, i64 [total]. */
static mpl_value keys(attention *self)
{
    mpl_shape k = shape_of(self, self->k);
    mpl_value v = MPL_NONE;

    if (self->st == MPL_OK)
        self->st = onnx_count_up(self->node, 1, &k.dim[2], &v);
    return v;
}

/* Numbers of a sample, [batch], so that they broadcast to the scores; i64. */
static mpl_value by_sample(attention *self, mpl_value v)
{
    mpl_shape s = shape_of(self, v);

    return reshape4(self, cast(self, MPL_TYPE_i64, v), s.rank == 1 ? s.dim[0] : 1, 1, 1, 1);
}

/* Allows keys from `left` before a query up to `right` behind it; -1: no limit. `first`: the
 * position of the first query among the keys, as a number or by sample. */
static void allow_window(attention *self, mpl_value first, int64_t left, int64_t right)
{
    mpl_shape q = shape_of(self, self->q);
    mpl_value at = MPL_NONE;

    if (self->st != MPL_OK || (left < 0 && right < 0))
        return;
    self->st = onnx_count_up(self->node, 2, (const int64_t[]){q.dim[2], 1}, &at);
    at = two(self, MPL_OP_add, "at", at, first);
    if (right >= 0)
        allow(self,
              two(self, MPL_OP_less_equal, "before", keys(self),
                  two(self, MPL_OP_add, "last", at, number(self, MPL_TYPE_i64, (double)right))));
    if (left >= 0)
        allow(self,
              two(self, MPL_OP_greater_equal, "after", keys(self),
                  two(self, MPL_OP_sub, "first", at, number(self, MPL_TYPE_i64, (double)left))));
}

/* A mask whose rows are too short hides the keys behind them. */
static mpl_value lengthen(attention *self, mpl_value mask)
{
    mpl_shape s = shape_of(self, mask), k = shape_of(self, self->k);
    int64_t pads[2 * MPL_MAX_RANK] = {0}, more = s.rank > 0 ? k.dim[2] - s.dim[s.rank - 1] : 0;
    bool whole = type_of(self, mask) == MPL_TYPE_bool;

    if (self->st != MPL_OK || more <= 0)
        return mask;
    pads[2 * s.rank - 1] = more;
    return op(self, MPL_OP_pad, "mask", 2,
              (mpl_value[]){mask, number(self, type_of(self, mask), whole ? 0 : -(double)INFINITY)},
              1, &MPL_INTS(pads, 2 * s.rank, pads));
}

/* ---- the products ---- */

/* Zeros for the rows of v whose queries may look at no key. */
static mpl_value guarded(attention *self, mpl_value v)
{
    mpl_value least = number(self, type_of(self, self->q), -(double)INFINITY), seen = self->allowed;
    const mpl_attr last[] = {MPL_INT(axes, -1), MPL_INT(keepdims, 1)};

    if (!self->guard || (self->allowed == MPL_NONE && self->bias == MPL_NONE))
        return v;
    if (self->bias == MPL_NONE) {
        seen = cast(self, MPL_TYPE_u8, seen);
        seen = cast(self, MPL_TYPE_bool, op(self, MPL_OP_reduce_max, "seen", 1, &seen, 2, last));
    } else {
        seen = self->allowed == MPL_NONE
                   ? self->bias
                   : op(self, MPL_OP_where, "seen", 3,
                        (mpl_value[]){self->allowed, self->bias, least}, 0, NULL);
        seen = two(self, MPL_OP_greater, "seen",
                   op(self, MPL_OP_reduce_max, "most", 1, &seen, 2, last), least);
    }
    return is_true(self, seen)
               ? v
               : op(self, MPL_OP_where, "guarded", 3,
                    (mpl_value[]){seen, v, number(self, type_of(self, v), 0)}, 0, NULL);
}

static void show(attention *self, int64_t stage, mpl_value v)
{
    if (self->shown != stage || self->node->n_out < 4 || self->node->out_name[3] == NULL)
        return;
    self->as = 3;
    one(self, MPL_OP_identity, "shown", v);
}

/* v as a graph that the node owns turns it; v if there is none. */
static mpl_value modified(attention *self, const char *attr, mpl_value v)
{
    const Onnx__AttributeProto *graph = onnx_attr(self->node, attr);
    mpl_shape before = shape_of(self, v), after;
    mpl_value made = v;

    if (self->st != MPL_OK || graph == NULL || graph->g == NULL)
        return v;
    self->st = onnx_read_body(self->node, graph->g, 1, &v, 1, NULL, &made);
    after = self->st == MPL_OK ? shape_of(self, made) : before;
    if (!mpl_shape_equal(&before, &after) || type_of(self, made) != type_of(self, v))
        self->st = ONNX_REFUSE(self->node, "its %s changes dims or type", attr);
    return made;
}

static mpl_value weights(attention *self, mpl_value scores)
{
    mpl_type type = type_of(self, scores), to = type;
    const char *name;
    int64_t asked = onnx_attr_int(self->node, "softmax_precision", 0);
    bool modifies =
        onnx_attr(self->node, "score_mod") != NULL || onnx_attr(self->node, "prob_mod") != NULL;

    if (asked > 0 && asked <= INT32_MAX && !onnx_type((int32_t)asked, &to, &name))
        self->st =
            ONNX_REFUSE(self->node, "its softmax has element type %s, which memplan has not", name);
    else if (asked == 0 && modifies && type != MPL_TYPE_f64)
        to = MPL_TYPE_f32;
    /* a wider one is what softmax has inside */
    if (modifies || mpl_type_bytes(to) < mpl_type_bytes(type))
        scores = cast(self, to, scores);
    scores = modified(self, "score_mod", scores);
    scores = op(self, MPL_OP_softmax, "weights", 1, &scores, 1, &MPL_INT(axis, -1));
    return cast(self, type, modified(self, "prob_mod", scores));
}

/* The scores with caps and masks; shows what the node asks for. */
static mpl_value masked(attention *self, mpl_value s)
{
    mpl_type type = type_of(self, s);

    show(self, 0, s);
    if (self->cap != 0) {
        s = two(self, MPL_OP_div, "capped", s, number(self, type, self->cap));
        s = two(self, MPL_OP_mul, "capped", one(self, MPL_OP_tanh, "capped", s),
                number(self, type, self->cap));
    }
    show(self, 1, s);
    if (self->bias != MPL_NONE)
        s = two(self, MPL_OP_add, "biased", s, self->bias);
    if (self->allowed != MPL_NONE)
        s = op(self, MPL_OP_where, "masked", 3,
               (mpl_value[]){self->allowed, s, number(self, type, -(double)INFINITY)}, 0, NULL);
    show(self, 2, s);
    return s;
}

/* Checks the operands; *group: heads that share keys. */
static mpl_status check(attention *self, int64_t *group)
{
    mpl_shape q = shape_of(self, self->q), k = shape_of(self, self->k), v = shape_of(self, self->v);

    MPL_PASS(self->st);
    if (q.rank != 4 || k.rank != 4 || v.rank != 4 || q.dim[0] != k.dim[0] || k.dim[1] < 1 ||
        q.dim[1] % k.dim[1] != 0 || q.dim[3] != k.dim[3] || memcmp(k.dim, v.dim, 24) != 0)
        return ONNX_REFUSE(self->node, "its queries, keys and values do not fit together");
    *group = q.dim[1] / k.dim[1];
    return MPL_OK;
}

/* The last operations: output 0, with heads side by side if `merge`. */
static mpl_status attend(attention *self, bool merge)
{
    mpl_shape q = shape_of(self, self->q), k = shape_of(self, self->k), v = shape_of(self, self->v);
    double scale = isnan(self->scale) ? 1 / sqrt((double)q.dim[3]) : self->scale;
    int64_t group = 1, last[3] = {q.dim[0], q.dim[2], q.dim[1] * v.dim[3]};
    mpl_value s, y;

    MPL_PASS(check(self, &group));
    s = scale == 1
            ? self->q
            : two(self, MPL_OP_mul, "scaled", self->q, number(self, type_of(self, self->q), scale));
    s = reshape4(self, s, q.dim[0], k.dim[1], group * q.dim[2], q.dim[3]);
    s = op(self, MPL_OP_matmul, "scores", 2, (mpl_value[]){s, self->k}, 1, &MPL_INT(trans_b, 1));
    s = weights(self, masked(self, reshape4(self, s, q.dim[0], q.dim[1], q.dim[2], k.dim[2])));
    if (self->shown == 3)
        show(self, 3, guarded(self, s));
    s = reshape4(self, s, q.dim[0], k.dim[1], group * q.dim[2], k.dim[2]);
    y = reshape4(self, two(self, MPL_OP_matmul, "seen", s, self->v), q.dim[0], q.dim[1], q.dim[2],
                 v.dim[3]);
    y = guarded(self, y);
    if (merge && q.dim[1] != 1 && q.dim[2] != 1)
        y = swap_heads(self, y);
    self->as = 0;
    reshape(self, y, merge ? 3 : 4,
            merge ? last : (const int64_t[]){q.dim[0], q.dim[1], q.dim[2], v.dim[3]});
    return self->st;
}

static double real(const onnx_node *node, const char *name, double otherwise)
{
    const Onnx__AttributeProto *attr = onnx_attr(node, name);

    return attr != NULL && attr->f != 0 ? (double)attr->f : otherwise;
}

static attention begin(onnx_node *node)
{
    return (attention){.node = node,
                       .as = UINT32_MAX,
                       .q = onnx_in(node, 0),
                       .k = onnx_in(node, 1),
                       .v = onnx_in(node, 2),
                       .scale = real(node, "scale", (double)NAN),
                       .cap = real(node, "softcap", 0),
                       .allowed = MPL_NONE,
                       .bias = MPL_NONE,
                       .shown = onnx_attr_int(node, "qk_matmul_output_mode", 0)};
}

/* Past and new keys or values, as output i. */
static mpl_value append(attention *self, uint32_t i, mpl_value past, mpl_value now)
{
    self->as = i;
    if (past == MPL_NONE)
        return i < self->node->n_out && self->node->out_name[i] != NULL
                   ? one(self, MPL_OP_identity, "present", now)
                   : (self->as = UINT32_MAX, now);
    return op(self, MPL_OP_concat, "present", 2, (mpl_value[]){past, now}, 1, &MPL_INT(axis, 2));
}

mpl_status onnx_lower_attention(onnx_node *node)
{
    attention a = begin(node);
    mpl_value mask = onnx_in(node, 3), past = onnx_in(node, 4), length = onnx_in(node, 6), first;
    int64_t right = onnx_attr_int(node, "right_window_size", -1), heads;
    bool merge = shape_of(&a, a.q).rank == 3;
    mpl_shape old = shape_of(&a, past);

    heads = onnx_attr_int(node, "kv_num_heads", 0);
    a.guard = true;
    a.q = split_heads(&a, a.q, onnx_attr_int(node, "q_num_heads", 0));
    a.k = append(&a, 1, past, split_heads(&a, a.k, heads));
    a.v = append(&a, 2, onnx_in(node, 5), split_heads(&a, a.v, heads));
    MPL_PASS(check(&a, &heads));
    first = number(&a, MPL_TYPE_i64, past != MPL_NONE ? (double)old.dim[2] : 0);
    if (length != MPL_NONE) {
        length = by_sample(&a, length);
        allow(&a, two(&a, MPL_OP_less, "filled", keys(&a), length));
        first = two(&a, MPL_OP_sub, "first", length,
                    number(&a, MPL_TYPE_i64, (double)shape_of(&a, a.q).dim[2]));
    }
    if (onnx_attr_int(node, "is_causal", 0) != 0)
        right = 0;
    allow_window(&a, first, onnx_attr_int(node, "left_window_size", -1), right);
    if (mask != MPL_NONE) {
        mask = lengthen(&a, mask);
        if (type_of(&a, mask) == MPL_TYPE_bool)
            allow(&a, mask);
        else
            add_bias(&a, mask);
    }
    return attend(&a, merge);
}

mpl_status onnx_lower_flex_attention(onnx_node *node)
{
    attention a = begin(node);

    return attend(&a, false);
}

/* ---- ONNX Runtime's ---- */

/* Refuses what these forms of the node would need: inputs from `first` on, attributes. */
static mpl_status plain_form(onnx_node *node, uint32_t first, const char *const *attr)
{
    for (uint32_t i = first; i < node->n_in; i++)
        if (node->in[i] != MPL_NONE)
            return ONNX_REFUSE(node, "its input %u is not supported", i);
    for (; *attr != NULL; attr++)
        if (onnx_attr_int(node, *attr, 0) > 0)
            return ONNX_REFUSE(node, "attribute '%s' is not supported", *attr);
    return MPL_OK;
}

/* A mask of keys: lengths [batch], or numbers that are not 0 where a key counts, [batch, total] or
 * [batch, steps, total]. What is hidden gets mask_filter_value, not minus infinity. */
static void filter(attention *self, mpl_value mask)
{
    mpl_shape s = shape_of(self, mask), q = shape_of(self, self->q);
    mpl_type type = type_of(self, self->q);

    if (mask == MPL_NONE || self->st != MPL_OK)
        return;
    if (s.rank == 1 && s.dim[0] == q.dim[0])
        mask = two(self, MPL_OP_less, "filled", keys(self), by_sample(self, mask));
    else if (s.rank == 2 || s.rank == 3)
        mask =
            cast(self, MPL_TYPE_bool,
                 reshape4(self, mask, s.dim[0], 1, s.rank == 3 ? s.dim[1] : 1, s.dim[s.rank - 1]));
    else
        self->st = ONNX_REFUSE(self->node, "its mask has a form that is not supported");
    if (!is_true(self, mask))
        add_bias(self, op(self, MPL_OP_where, "mask", 3,
                          (mpl_value[]){
                              mask, number(self, type, 0),
                              number(self, type, real(self->node, "mask_filter_value", -10000))},
                          0, NULL));
}

/* The rest of MultiHeadAttention and Attention: masks, then the products. */
static mpl_status attend_masked(attention *self, mpl_value mask, mpl_value bias, int64_t past)
{
    filter(self, mask);
    if (bias != MPL_NONE)
        add_bias(self, bias);
    if (onnx_attr_int(self->node, "unidirectional", 0) != 0)
        allow_window(self, number(self, MPL_TYPE_i64, (double)past), -1, 0);
    return attend(self, true);
}

/* Part i of `of` of axis 3 of [batch, steps, heads, of, width], with heads before steps. */
static mpl_value unpack(attention *self, mpl_value v, int64_t i)
{
    mpl_shape s = shape_of(self, v);

    v = reshape4(self, slice(self, v, 3, i, i + 1), s.dim[0], s.dim[1], s.dim[2], s.dim[4]);
    return self->st == MPL_OK ? swap_heads(self, v) : v;
}

mpl_status onnx_lower_multi_head(onnx_node *node)
{
    attention a = begin(node);
    int64_t heads = onnx_attr_int(node, "num_heads", 0), at = 0;
    mpl_value *part[] = {&a.q, &a.k, &a.v}, past = onnx_in(node, 6);
    mpl_shape q = shape_of(&a, a.q), k = shape_of(&a, a.k);

    MPL_PASS(plain_form(node, 8, (const char *const[]){NULL}));
    for (uint32_t i = 0; i < 3 && onnx_in(node, 3) != MPL_NONE; i++) {
        mpl_shape s = shape_of(&a, *part[i]);

        if (s.rank != 3)
            return ONNX_REFUSE(node, "its bias needs operands of 3 dims");
        *part[i] = two(&a, MPL_OP_add, "projected", *part[i],
                       slice(&a, node->in[3], 0, at, at + s.dim[2]));
        at += s.dim[2];
    }
    if (q.rank == 5) {
        a.k = unpack(&a, node->in[0], 1), a.v = unpack(&a, node->in[0], 2);
        a.q = unpack(&a, node->in[0], 0);
    } else if (k.rank == 5) {
        a.k = unpack(&a, node->in[1], 0), a.v = unpack(&a, node->in[1], 1);
    }
    a.shown = 0;
    a.q = split_heads(&a, a.q, heads);
    a.k = append(&a, 1, past, split_heads(&a, a.k, heads));
    a.v = append(&a, 2, onnx_in(node, 7), split_heads(&a, a.v, heads));
    return attend_masked(&a, onnx_in(node, 4), onnx_in(node, 5), shape_of(&a, past).dim[2]);
}

/* Queries, keys and values are projected one by one, so that no buffer holds them all. */
mpl_status onnx_lower_attention_ms(onnx_node *node)
{
    static const char *const refused[] = {"do_rotary", "past_present_share_buffer", NULL};
    attention a = begin(node);
    const Onnx__AttributeProto *sizes = onnx_attr(node, "qkv_hidden_sizes");
    mpl_value *part[] = {&a.q, &a.k, &a.v}, past = onnx_in(node, 4), both[2];
    mpl_shape w = shape_of(&a, onnx_in(node, 1)), old = shape_of(&a, past);
    int64_t heads = onnx_attr_int(node, "num_heads", 0), at = 0;

    MPL_PASS(plain_form(node, 6, refused));
    if (w.rank != 2 || (sizes != NULL && sizes->n_ints != 3) || (past != MPL_NONE && old.rank != 5))
        return ONNX_REFUSE(node, "its weights must have 2 dims, its past 5");
    for (uint32_t i = 0; i < 3; i++) {
        int64_t end = at + (sizes != NULL ? sizes->ints[i] : w.dim[1] / 3);

        *part[i] = two(&a, MPL_OP_matmul, "product", onnx_in(node, 0),
                       slice(&a, onnx_in(node, 1), 1, at, end));
        if (onnx_in(node, 2) != MPL_NONE)
            *part[i] =
                two(&a, MPL_OP_add, "projected", *part[i], slice(&a, node->in[2], 0, at, end));
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
        both[i - 1] = node->n_out < 2
                          ? *part[i]
                          : reshape(&a, *part[i], 5,
                                    (const int64_t[]){1, s.dim[0], s.dim[1], s.dim[2], s.dim[3]});
    }
    a.as = 1;
    if (node->n_out > 1)
        op(&a, MPL_OP_concat, "present", 2, both, 1, &MPL_INT(axis, 0));
    a.as = UINT32_MAX;
    return attend_masked(&a, onnx_in(node, 3), onnx_in(node, 5), past != MPL_NONE ? old.dim[3] : 0);
}

/* Keys or values in the cache of past ones, in place where it is long enough; output i. */
static mpl_value insert(attention *self, uint32_t i, mpl_value past, mpl_value now, mpl_value first,
                        int64_t total)
{
    int64_t more = total - shape_of(self, past).dim[2], pads[8] = {0};

    if (past == MPL_NONE || shape_of(self, past).dim[2] == 0)
        return append(self, i, MPL_NONE, now);
    pads[6] = more;
    if (more > 0)
        past = op(self, MPL_OP_pad, "longer", 1, &past, 1, &MPL_INTS(pads, 8, pads));
    self->as = i;
    return op(self, MPL_OP_tensor_scatter, "present", 3, (mpl_value[]){past, now, first}, 1,
              &MPL_INT(axis, 2));
}

/* Rotates [batch, steps, heads * width] by the angles of inputs 7 and 8, at their positions. */
static mpl_value rotate(attention *self, mpl_value v, int64_t heads, mpl_value at)
{
    onnx_node *node = self->node;
    mpl_shape angles = shape_of(self, onnx_in(node, 7));

    if (onnx_attr_int(node, "do_rotary", 0) == 0)
        return v;
    return op(self, MPL_OP_rotary_embedding, "rotated", 4,
              (mpl_value[]){v, onnx_in(node, 7), onnx_in(node, 8), at}, 3,
              (mpl_attr[]){MPL_INT(num_heads, heads),
                           MPL_INT(rotary_embedding_dim, 2 * angles.dim[1]),
                           MPL_INT(interleaved, onnx_attr_int(node, "rotary_interleaved", 0))});
}

/* The positions of the queries, [batch, steps]: input 9, else from those of the first ones. */
static mpl_value positions(attention *self, mpl_value first, const int64_t *steps)
{
    mpl_value v = MPL_NONE;

    if (onnx_in(self->node, 9) != MPL_NONE || onnx_attr_int(self->node, "do_rotary", 0) == 0)
        return onnx_in(self->node, 9);
    if (self->st == MPL_OK)
        self->st = onnx_count_up(self->node, 2, (const int64_t[]){1, steps[1]}, &v);
    return two(self, MPL_OP_add, "positions",
               reshape(self, first, 2, (const int64_t[]){steps[0], 1}), v);
}

/* Samples may have pasts of different lengths: their keys lie at the start of the cache, and the
 * new ones behind them. */
mpl_status onnx_lower_group_query(onnx_node *node)
{
    static const char *const refused[] = {"smooth_softmax", "sliding_window_cache", "qk_output",
                                          NULL};
    attention a = begin(node);
    int64_t heads = onnx_attr_int(node, "num_heads", 0),
            groups = onnx_attr_int(node, "kv_num_heads", 0);
    int64_t window = onnx_attr_int(node, "local_window_size", -1), *total, width;
    mpl_value first, at, past = onnx_in(node, 3), length = onnx_in(node, 5);
    mpl_shape q = shape_of(&a, a.q);
    bool causal = onnx_attr_int(node, "causal", 1) != 0;
    uint32_t count;

    MPL_PASS(plain_form(node, 11, refused));
    if (q.rank != 3 || length == MPL_NONE || onnx_in(node, 6) == MPL_NONE || groups < 1 ||
        heads < 1)
        return ONNX_REFUSE(node, "queries of 3 dims, lengths and numbers of heads are needed");
    MPL_PASS(onnx_ints(node, node->in[6], "total sequence length", &count, &total));
    if (count != 1 || total[0] < q.dim[1])
        return ONNX_REFUSE(
            node, "its total sequence length must be one number of at least %" PRId64, q.dim[1]);
    if (a.k == MPL_NONE) { /* packed */
        width = q.dim[2] / (heads + 2 * groups);
        a.k = slice(&a, node->in[0], 2, heads * width, (heads + groups) * width);
        a.v = slice(&a, node->in[0], 2, (heads + groups) * width, (heads + 2 * groups) * width);
        a.q = slice(&a, node->in[0], 2, 0, heads * width);
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
    a.v = insert(&a, 2, onnx_in(node, 4), split_heads(&a, a.v, groups), first, total[0]);
    MPL_PASS(check(&a, &width));
    if (!causal)
        allow(&a, two(&a, MPL_OP_less, "filled", keys(&a), by_sample(&a, length)));
    else
        allow_window(&a, total[0] != q.dim[1] ? by_sample(&a, first) : number(&a, MPL_TYPE_i64, 0),
                     window > 0 ? window - 1 : -1, 0);
    if (onnx_in(node, 10) != MPL_NONE)
        add_bias(&a, lengthen(&a, node->in[10]));
    return attend(&a, true);
}
