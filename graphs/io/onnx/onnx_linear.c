/* onnx_linear.c -- LinearAttention: a loop over the tokens that carries one matrix a head.
 *
 * Idea     S is what the keys so far say of the values, [batch, groups, key, value]. A step fades
 *          it, adds the outer product of a key and a value, or of what the value has beyond S's
 *          answer to that key, and asks it with all queries of the group. Nothing grows with the
 *          tokens but the operands and the result. A single token, as in decoding, needs no loop.
 * Source   ONNX, docs/Operators.md: LinearAttention; the rules are named as there.
 * Limits   S has at least 32 bits, also where operands have 16. No products of several steps. */
#include "graphs/io/onnx/onnx_priv.h"

#include <math.h>

enum { Q, K, V, DECAY, BETA, N_SCANS };

typedef struct linear {
    onnx_node *n;
    mpl_status st;
    mpl_type type, wide;                              /* of the operands; of the arithmetic */
    int64_t batch, steps, groups, shared, key, value; /* shared: queries of a group */
    double scale;
    uint32_t n_scans, place[N_SCANS]; /* of operands among the scans; MPL_NONE: there is none */
} linear;

static mpl_value op(linear *c, mpl_op_kind kind, const char *name, uint32_t n_in,
                    const mpl_value *in, uint32_t n_attr, const mpl_attr *attr)
{
    mpl_value v = MPL_NONE;

    if (c->st == MPL_OK)
        c->st = onnx_step(c->n, kind, name, n_in, in, n_attr, attr, &v);
    return v;
}

static mpl_value two(linear *c, mpl_op_kind kind, const char *name, mpl_value x, mpl_value y)
{
    return op(c, kind, name, 2, (mpl_value[]){x, y}, 0, NULL);
}

static mpl_value cast(linear *c, mpl_type to, mpl_value v)
{
    if (c->st != MPL_OK || (mpl_type)c->n->r->g->value_type[v] == to)
        return v;
    return op(c, MPL_OP_cast, "cast", 1, &v, 1, &MPL_TEXT(to, mpl_type_name(to)));
}

static mpl_value number(linear *c, double x)
{
    mpl_value v = MPL_NONE;

    if (c->st == MPL_OK)
        c->st = onnx_scalar(c->n, c->wide, x, "number", &v);
    return v;
}

/* Swaps the first two of five axes: only names, if one of them is 1. */
static mpl_value swap(linear *c, mpl_value v, const int64_t *dim)
{
    if (c->st == MPL_OK && (dim[0] == 1 || dim[1] == 1))
        c->st = onnx_reshape(c->n, v, 5, (int64_t[]){dim[1], dim[0], dim[2], dim[3], dim[4]}, &v);
    else if (c->st == MPL_OK)
        c->st = onnx_transpose(c->n, v, (int64_t[]){1, 0, 2, 3, 4}, &v);
    return v;
}

/* ---- one token ---- */

static mpl_value operand(linear *c, const onnx_round *round, int which)
{
    return cast(c, c->wide, round->slice[c->place[which]]);
}

static mpl_status make_token(const onnx_loop *l, onnx_round *round)
{
    linear *c = l->arg;
    mpl_value s = round->state[0], k = operand(c, round, K), v = operand(c, round, V), q, answer;
    const int64_t column[] = {c->batch, c->groups, c->key, 1};

    if (c->place[DECAY] != MPL_NONE) {
        answer = operand(c, round, DECAY);
        s = two(c, MPL_OP_mul, "faded", s, op(c, MPL_OP_exp, "decay", 1, &answer, 0, NULL));
    }
    if (c->place[BETA] != MPL_NONE) {
        v = two(c, MPL_OP_sub, "news", v, two(c, MPL_OP_matmul, "known", k, s));
        v = two(c, MPL_OP_mul, "news", v, operand(c, round, BETA));
    }
    k = op(c, MPL_OP_reshape, "key", 1, &k, 1, &MPL_INTS(shape, 4, column));
    s = two(c, MPL_OP_add, "state", s, two(c, MPL_OP_mul, "outer", k, v));
    round->next[0] = s;
    if (l->n_rows > 0) {
        q = operand(c, round, Q);
        q = c->scale != 1 ? two(c, MPL_OP_mul, "query", q, number(c, c->scale)) : q;
        round->row[0] = cast(c, c->type, two(c, MPL_OP_matmul, "answer", q, s));
    }
    return c->st;
}

/* ---- operands ---- */

/* Whether operand i is [batch, steps, last]. */
static bool has_dims(const linear *c, uint32_t i, int64_t last)
{
    const mpl_shape want = {3, {c->batch, c->steps, last}};
    mpl_value v = onnx_in(c->n, i);

    return v != MPL_NONE && mpl_shape_equal(&c->n->r->g->value_shape[v], &want);
}

static mpl_status check_rule(const linear *c)
{
    onnx_node *n = c->n;
    bool gated = onnx_attr_is(n, "update_rule", "gated"), delta;
    bool both =
        onnx_attr(n, "update_rule") == NULL || onnx_attr_is(n, "update_rule", "gated_delta");

    delta = both || onnx_attr_is(n, "update_rule", "delta");
    gated = gated || both;
    if (!gated && !delta && !onnx_attr_is(n, "update_rule", "linear"))
        return ONNX_REFUSE(n, "its update_rule is none of linear, gated, delta, gated_delta");
    if ((onnx_in(n, 4) != MPL_NONE) != gated || (onnx_in(n, 5) != MPL_NONE) != delta)
        return ONNX_REFUSE(n, "its update_rule takes %s decay and %s beta", gated ? "a" : "no",
                           delta ? "a" : "no");
    if (gated && !has_dims(c, 4, c->groups) && !has_dims(c, 4, c->groups * c->key))
        return ONNX_REFUSE(n, "its decay must have one number a head, or one for each of a key");
    if (delta && !has_dims(c, 5, c->groups) && !has_dims(c, 5, 1))
        return ONNX_REFUSE(n, "its beta must have one number a head or a token");
    return MPL_OK;
}

static mpl_status take_node(linear *c)
{
    onnx_node *n = c->n;
    int64_t heads = onnx_attr_int(n, "q_num_heads", 0);
    const Onnx__AttributeProto *scale = onnx_attr(n, "scale");
    const mpl_shape *q, *v;

    c->groups = onnx_attr_int(n, "kv_num_heads", 0);
    if (onnx_in(n, 0) == MPL_NONE || onnx_in(n, 1) == MPL_NONE || onnx_in(n, 2) == MPL_NONE)
        return ONNX_REFUSE(n, "its queries, keys or values are missing");
    q = &n->r->g->value_shape[n->in[0]], v = &n->r->g->value_shape[n->in[2]];
    c->type = (mpl_type)n->r->g->value_type[n->in[0]];
    c->wide = c->type == MPL_TYPE_f64 ? MPL_TYPE_f64 : MPL_TYPE_f32;
    if (q->rank != 3 || v->rank != 3 || c->groups < 1 || heads < c->groups ||
        heads % c->groups != 0 || q->dim[2] % heads != 0 || v->dim[2] % c->groups != 0)
        return ONNX_REFUSE(n, "its operands must have 3 dims, the last of whole heads, and its "
                              "heads share groups evenly");
    c->batch = q->dim[0], c->steps = q->dim[1], c->shared = heads / c->groups;
    c->key = q->dim[2] / heads, c->value = v->dim[2] / c->groups;
    if (!has_dims(c, 1, c->groups * c->key) || !has_dims(c, 2, c->groups * c->value))
        return ONNX_REFUSE(n, "its queries, keys and values do not fit together");
    c->scale = scale != NULL && scale->f != 0 ? (double)scale->f : 1 / sqrt((double)c->key);
    return check_rule(c);
}

/* The operands token by token, [steps, batch, groups, rows, columns]. */
static void take_scans(linear *c, mpl_value scan[N_SCANS])
{
    const int64_t rows[N_SCANS] = {c->shared, 1, 1, c->key, 1};
    const int64_t columns[N_SCANS] = {c->key, c->key, c->value, 1, 1};

    for (uint32_t i = 0; i < N_SCANS && c->st == MPL_OK; i++) {
        mpl_value v = onnx_in(c->n, i < DECAY ? i : i + 1);
        int64_t dim[] = {c->batch, c->steps, c->groups, rows[i], columns[i]}, last;

        c->place[i] = v != MPL_NONE ? c->n_scans : MPL_NONE;
        if (v == MPL_NONE)
            continue;
        last = c->n->r->g->value_shape[v].dim[2];
        if (i == BETA)
            dim[2] = last;
        else if (i == DECAY && last == c->groups)
            dim[3] = 1;
        c->st = onnx_reshape(c->n, v, 5, dim, &v);
        scan[c->n_scans++] = swap(c, v, dim);
    }
}

/* The state before the first token; *kept: the type that it has outside. */
static mpl_value first_state(linear *c, mpl_type *kept)
{
    const int64_t dim[] = {c->batch, c->groups, c->key, c->value};
    mpl_shape want = {4, {dim[0], dim[1], dim[2], dim[3]}};
    mpl_value v = onnx_in(c->n, 3);

    *kept = v != MPL_NONE ? (mpl_type)c->n->r->g->value_type[v] : c->type;
    if (v == MPL_NONE) {
        v = number(c, 0);
        return op(c, MPL_OP_expand, "state", 1, &v, 1, &MPL_INTS(shape, 4, dim));
    }
    if (c->st == MPL_OK && !mpl_shape_equal(&c->n->r->g->value_shape[v], &want))
        c->st = ONNX_REFUSE(c->n, "its past state must be [batch, heads, key, value]");
    return cast(c, c->wide, v);
}

/* Output i of the node: v with another shape or type. */
static mpl_status finish(linear *c, uint32_t i, mpl_op_kind kind, mpl_value v, const mpl_attr *attr)
{
    onnx_node *n = c->n;

    MPL_PASS(c->st);
    MPL_PASS(onnx_settle_name(n->r, &n->out_name[i]));
    return onnx_blame(n, mpl_graph_add_folded(n->r->ctx, n->r->g, kind, n->label, 1, &v, 1, attr, 1,
                                              &n->out_name[i], &n->out[i]));
}

mpl_status onnx_lower_linear_attention(onnx_node *n)
{
    static const char *const param[] = {"state", "x", "x", "x", "x", "x"};
    linear c = {.n = n};
    mpl_value first, made[2], scan[N_SCANS];
    bool asked[2] = {n->n_out > 0 && n->out_name[0] != NULL,
                     n->n_out > 1 && n->out_name[1] != NULL};
    const char *name[2] = {NULL};
    onnx_loop l = {.n = n, .trips = MPL_NONE, .go = MPL_NONE, .n_carried = 1};
    mpl_type kept;

    MPL_PASS(take_node(&c));
    const int64_t dim[] = {c.steps, c.batch, c.groups, c.shared, c.value},
                  flat[] = {c.batch, c.steps, c.groups * c.shared * c.value};

    take_scans(&c, scan);
    first = first_state(&c, &kept);
    MPL_PASS(c.st);
    l.most = c.steps, l.n_scans = c.n_scans, l.n_rows = asked[0];
    l.init = &first, l.scan = scan, l.param = param, l.out_name = name;
    l.unroll = c.steps == 1;
    l.body = make_token, l.arg = &c;
    for (uint32_t i = 0; i < 2; i++)
        if (asked[i])
            MPL_PASS(onnx_fresh_name(n->r, n->label, i == 0 ? "rows" : "last", &name[1 - i]));
    MPL_PASS(onnx_add_loop(&l, made));
    if (asked[0])
        MPL_PASS(finish(&c, 0, MPL_OP_reshape, swap(&c, made[1], dim), &MPL_INTS(shape, 3, flat)));
    if (asked[1])
        MPL_PASS(finish(&c, 1, MPL_OP_cast, made[0], &MPL_TEXT(to, mpl_type_name(kept))));
    return MPL_OK;
}
