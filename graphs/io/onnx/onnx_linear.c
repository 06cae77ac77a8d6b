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
    onnx_node *node;
    mpl_status st;
    mpl_type type, wide;                              /* of the operands; of the arithmetic */
    int64_t batch, steps, groups, shared, key, value; /* shared: queries of a group */
    double scale;
    uint32_t n_scans, place[N_SCANS]; /* of operands among the scans; MPL_NONE: there is none */
} linear;

static mpl_value op(linear *self, mpl_op_kind kind, const char *name, uint32_t n_in,
                    const mpl_value *in, uint32_t n_attr, const mpl_attr *attr)
{
    mpl_value v = MPL_NONE;

    if (self->st == MPL_OK)
        self->st = onnx_step(self->node, kind, name, n_in, in, n_attr, attr, &v);
    return v;
}

static mpl_value two(linear *self, mpl_op_kind kind, const char *name, mpl_value x, mpl_value y)
{
    return op(self, kind, name, 2, (mpl_value[]){x, y}, 0, NULL);
}

static mpl_value cast(linear *self, mpl_type to, mpl_value v)
{
    if (self->st != MPL_OK || (mpl_type)self->node->r->g->value_type[v] == to)
        return v;
    return op(self, MPL_OP_cast, "cast", 1, &v, 1, &MPL_TEXT(to, mpl_type_name(to)));
}

static mpl_value number(linear *self, double x)
{
    mpl_value v = MPL_NONE;

    if (self->st == MPL_OK)
        self->st = onnx_scalar(self->node, self->wide, x, "number", &v);
    return v;
}

/* Swaps the first two of five axes: only names, if one of them is 1. */
static mpl_value swap(linear *self, mpl_value v, const int64_t *dim)
{
    if (self->st == MPL_OK && (dim[0] == 1 || dim[1] == 1))
        self->st =
            onnx_reshape(self->node, v, 5, (int64_t[]){dim[1], dim[0], dim[2], dim[3], dim[4]}, &v);
    else if (self->st == MPL_OK)
        self->st = onnx_transpose(self->node, v, (int64_t[]){1, 0, 2, 3, 4}, &v);
    return v;
}

/* ---- one token ---- */

static mpl_value operand(linear *self, const onnx_round *round, int which)
{
    return cast(self, self->wide, round->slice[self->place[which]]);
}

static mpl_status make_token(const onnx_loop *loop, onnx_round *round)
{
    linear *c = loop->arg;
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
    if (loop->n_rows > 0) {
        q = operand(c, round, Q);
        q = c->scale != 1 ? two(c, MPL_OP_mul, "query", q, number(c, c->scale)) : q;
        round->row[0] = cast(c, c->type, two(c, MPL_OP_matmul, "answer", q, s));
    }
    return c->st;
}

/* ---- operands ---- */

/* Whether operand i is [batch, steps, last]. */
static bool has_dims(const linear *self, uint32_t i, int64_t last)
{
    const mpl_shape want = {3, {self->batch, self->steps, last}};
    mpl_value v = onnx_in(self->node, i);

    return v != MPL_NONE && mpl_shape_equal(&self->node->r->g->value_shape[v], &want);
}

static mpl_status check_rule(const linear *self)
{
    onnx_node *node = self->node;
    bool gated = onnx_attr_is(node, "update_rule", "gated"), delta;
    bool both =
        onnx_attr(node, "update_rule") == NULL || onnx_attr_is(node, "update_rule", "gated_delta");

    delta = both || onnx_attr_is(node, "update_rule", "delta");
    gated = gated || both;
    if (!gated && !delta && !onnx_attr_is(node, "update_rule", "linear"))
        return ONNX_REFUSE(node, "its update_rule is none of linear, gated, delta, gated_delta");
    if ((onnx_in(node, 4) != MPL_NONE) != gated || (onnx_in(node, 5) != MPL_NONE) != delta)
        return ONNX_REFUSE(node, "its update_rule takes %s decay and %s beta", gated ? "a" : "no",
                           delta ? "a" : "no");
    if (gated && !has_dims(self, 4, self->groups) && !has_dims(self, 4, self->groups * self->key))
        return ONNX_REFUSE(node, "its decay must have one number a head, or one for each of a key");
    if (delta && !has_dims(self, 5, self->groups) && !has_dims(self, 5, 1))
        return ONNX_REFUSE(node, "its beta must have one number a head or a token");
    return MPL_OK;
}

static mpl_status take_node(linear *self)
{
    onnx_node *node = self->node;
    int64_t heads = onnx_attr_int(node, "q_num_heads", 0);
    const Onnx__AttributeProto *scale = onnx_attr(node, "scale");
    const mpl_shape *shape, *v;

    self->groups = onnx_attr_int(node, "kv_num_heads", 0);
    if (onnx_in(node, 0) == MPL_NONE || onnx_in(node, 1) == MPL_NONE ||
        onnx_in(node, 2) == MPL_NONE)
        return ONNX_REFUSE(node, "its queries, keys or values are missing");
    shape = &node->r->g->value_shape[node->in[0]], v = &node->r->g->value_shape[node->in[2]];
    self->type = (mpl_type)node->r->g->value_type[node->in[0]];
    self->wide = self->type == MPL_TYPE_f64 ? MPL_TYPE_f64 : MPL_TYPE_f32;
    if (shape->rank != 3 || v->rank != 3 || self->groups < 1 || heads < self->groups ||
        heads % self->groups != 0 || shape->dim[2] % heads != 0 || v->dim[2] % self->groups != 0)
        return ONNX_REFUSE(node, "its operands must have 3 dims, the last of whole heads, and its "
                                 "heads share groups evenly");
    self->batch = shape->dim[0], self->steps = shape->dim[1], self->shared = heads / self->groups;
    self->key = shape->dim[2] / heads, self->value = v->dim[2] / self->groups;
    if (!has_dims(self, 1, self->groups * self->key) ||
        !has_dims(self, 2, self->groups * self->value))
        return ONNX_REFUSE(node, "its queries, keys and values do not fit together");
    self->scale = scale != NULL && scale->f != 0 ? (double)scale->f : 1 / sqrt((double)self->key);
    return check_rule(self);
}

/* The operands token by token, [steps, batch, groups, rows, columns]. */
static void take_scans(linear *self, mpl_value scan[N_SCANS])
{
    const int64_t rows[N_SCANS] = {self->shared, 1, 1, self->key, 1};
    const int64_t columns[N_SCANS] = {self->key, self->key, self->value, 1, 1};

    for (uint32_t i = 0; i < N_SCANS && self->st == MPL_OK; i++) {
        mpl_value v = onnx_in(self->node, i < DECAY ? i : i + 1);
        int64_t dim[] = {self->batch, self->steps, self->groups, rows[i], columns[i]}, last;

        self->place[i] = v != MPL_NONE ? self->n_scans : MPL_NONE;
        if (v == MPL_NONE)
            continue;
        last = self->node->r->g->value_shape[v].dim[2];
        if (i == BETA)
            dim[2] = last;
        else if (i == DECAY && last == self->groups)
            dim[3] = 1;
        self->st = onnx_reshape(self->node, v, 5, dim, &v);
        scan[self->n_scans++] = swap(self, v, dim);
    }
}

/* The state before the first token; *kept: the type that it has outside. */
static mpl_value first_state(linear *self, mpl_type *kept)
{
    const int64_t dim[] = {self->batch, self->groups, self->key, self->value};
    mpl_shape want = {4, {dim[0], dim[1], dim[2], dim[3]}};
    mpl_value v = onnx_in(self->node, 3);

    *kept = v != MPL_NONE ? (mpl_type)self->node->r->g->value_type[v] : self->type;
    if (v == MPL_NONE) {
        v = number(self, 0);
        return op(self, MPL_OP_expand, "state", 1, &v, 1, &MPL_INTS(shape, 4, dim));
    }
    if (self->st == MPL_OK && !mpl_shape_equal(&self->node->r->g->value_shape[v], &want))
        self->st = ONNX_REFUSE(self->node, "its past state must be [batch, heads, key, value]");
    return cast(self, self->wide, v);
}

/* Output i of the node: v with another shape or type. */
static mpl_status finish(linear *self, uint32_t i, mpl_op_kind kind, mpl_value v,
                         const mpl_attr *attr)
{
    onnx_node *node = self->node;

    MPL_PASS(self->st);
    MPL_PASS(onnx_settle_name(node->r, &node->out_name[i]));
    return onnx_blame(node, mpl_graph_add_folded(node->r->ctx, node->r->g, kind, node->label, 1, &v,
                                                 1, attr, 1, &node->out_name[i], &node->out[i]));
}

mpl_status onnx_lower_linear_attention(onnx_node *node)
{
    static const char *const param[] = {"state", "x", "x", "x", "x", "x"};
    linear c = {.node = node};
    mpl_value first, made[2], scan[N_SCANS];
    bool asked[2] = {node->n_out > 0 && node->out_name[0] != NULL,
                     node->n_out > 1 && node->out_name[1] != NULL};
    const char *name[2] = {NULL};
    onnx_loop l = {.node = node, .trips = MPL_NONE, .go = MPL_NONE, .n_carried = 1};
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
            MPL_PASS(onnx_fresh_name(node->r, node->label, i == 0 ? "rows" : "last", &name[1 - i]));
    MPL_PASS(onnx_add_loop(&l, made));
    if (asked[0])
        MPL_PASS(finish(&c, 0, MPL_OP_reshape, swap(&c, made[1], dim), &MPL_INTS(shape, 3, flat)));
    if (asked[1])
        MPL_PASS(finish(&c, 1, MPL_OP_cast, made[0], &MPL_TEXT(to, mpl_type_name(kept))));
    return MPL_OK;
}
