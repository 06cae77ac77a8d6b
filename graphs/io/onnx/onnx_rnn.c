/* onnx_rnn.c -- LSTM, GRU and RNN as loops over their cells.
 *
 * Idea     One `while` for each direction: a step reads a slice of X, and its h is a row of Y. The
 *          reverse direction starts from the last slice. A shorter sequence keeps its state after
 *          its end and has rows of zeros there; in reverse it starts at its own last step. The
 *          product x W is computed in the cell, or, on demand, for all steps before the loop: W is
 *          read once and R stays in the cache, but the products are memory that grows with the
 *          steps. What the cell adds to it accumulates in the second product.
 * Source   ONNX, docs/Operators.md: LSTM, GRU, RNN; gates and functions are named as there. */
#include "graphs/io/onnx/onnx_priv.h"

#include <strings.h>

enum { MAX_FUNCTIONS = 3, MAX_STATES = 2, N_PEEPHOLES = 3 };

typedef struct function {
    const char *name;   /* in ONNX */
    double alpha, beta; /* defaults */
    bool has_alpha, has_beta;
} function;

static const function functions[] = {
    {"Relu", 0, 0, false, false},        {"Tanh", 0, 0, false, false},
    {"Sigmoid", 0, 0, false, false},     {"Affine", 1, 0, true, true},
    {"LeakyRelu", 0.01, 0, true, false}, {"ThresholdedRelu", 1, 0, true, false},
    {"ScaledTanh", 1, 1, true, true},    {"HardSigmoid", 0.2, 0.5, true, true},
    {"Elu", 1, 0, true, false},          {"Softsign", 0, 0, false, false},
    {"Softplus", 0, 0, false, false},
};

/* What distinguishes the three layers. */
typedef struct layer {
    uint32_t n_gates, n_states, n_functions;
    const char *otherwise[MAX_FUNCTIONS];
} layer;

/* A node being read, with a sticky status. */
typedef struct rnn {
    onnx_node *node;
    mpl_status st;
    const layer *layer;
    mpl_value x, mask; /* [steps, batch, input]; bool [steps, batch, 1]: t < length */
    mpl_type type;
    int64_t steps, batch, input, hidden;
    uint32_t n_directions;
    bool batch_first, clips, flag; /* flag: input_forget, linear_before_reset */
    bool ahead;                    /* the loop reads x W + b instead of x */
    double clip;
    function function[2 * MAX_FUNCTIONS];
    /* of the current direction */
    mpl_value w, r, bias, reset_bias, last_r, peephole[N_PEEPHOLES], first[MAX_STATES];
    const function *f;
    const mpl_value *quantised; /* weights as the node has them; NULL: floats */
    mpl_value small[2][3];      /* W and R of the direction, [terms, gates], their scales, zeros */
} rnn;

/* ---- operations ---- */

static mpl_value op(rnn *self, mpl_op_kind kind, const char *name, uint32_t n_in,
                    const mpl_value *in, uint32_t n_attr, const mpl_attr *attr)
{
    mpl_value v = MPL_NONE;

    if (self->st == MPL_OK)
        self->st = onnx_step(self->node, kind, name, n_in, in, n_attr, attr, &v);
    return v;
}

static mpl_value unary(rnn *self, mpl_op_kind kind, const char *name, mpl_value x)
{
    return op(self, kind, name, 1, &x, 0, NULL);
}

static mpl_value binary(rnn *self, mpl_op_kind kind, const char *name, mpl_value a, mpl_value b)
{
    return op(self, kind, name, 2, (mpl_value[]){a, b}, 0, NULL);
}

static mpl_value number(rnn *self, double x)
{
    mpl_value v = MPL_NONE;

    if (self->st == MPL_OK)
        self->st = onnx_scalar(self->node, self->type, x, "number", &v);
    return v;
}

/* Elements [from, to) of an axis. */
static mpl_value range(rnn *self, const char *name, mpl_value x, int64_t axis, int64_t from,
                       int64_t to)
{
    const mpl_attr attr[] = {MPL_INTS(starts, 1, &from), MPL_INTS(ends, 1, &to),
                             MPL_INTS(axes, 1, &axis)};

    return op(self, MPL_OP_slice, name, 1, &x, 3, attr);
}

static mpl_value reshape(rnn *self, const char *name, mpl_value x, uint32_t rank,
                         const int64_t *dim)
{
    return op(self, MPL_OP_reshape, name, 1, &x, 1, &MPL_INTS(shape, rank, dim));
}

/* a, quantised as it comes, times W or R of small integers, plus an addend. */
static mpl_value small_product(rnn *self, const char *name, mpl_value a, const mpl_value b[3],
                               mpl_value sum)
{
    mpl_value x[3] = {MPL_NONE, MPL_NONE, MPL_NONE}, y;

    if (self->st == MPL_OK)
        self->st = onnx_quantize_all(self->node, a, x);
    y = op(self, MPL_OP_qmatmul, name, 6, (mpl_value[]){x[0], b[0], x[1], x[2], b[1], b[2]}, 0,
           NULL);
    return sum == MPL_NONE ? y : op(self, MPL_OP_add, name, 2, (mpl_value[]){y, sum}, 0, NULL);
}

/* a times the transpose of b, plus an addend (may be MPL_NONE). */
static mpl_value product(rnn *self, const char *name, mpl_value a, mpl_value b, mpl_value sum)
{
    if (self->quantised != NULL)
        return small_product(self, name, a, self->small[b == self->r], sum);
    return op(self, MPL_OP_gemm, name, sum == MPL_NONE ? 2 : 3, (mpl_value[]){a, b, sum}, 1,
              &MPL_INT(trans_b, 1));
}

/* Splits the columns of x into n parts of these widths. */
static void split(rnn *self, mpl_value x, uint32_t n, const int64_t *width, const char *const *name,
                  mpl_value *out)
{
    mpl_status st = self->st;
    const char *fresh[4];
    const mpl_attr attr[] = {MPL_INT(axis, 1), MPL_INTS(split, n, width)};

    MPL_TRY(st);
    for (uint32_t i = 0; i < n; i++)
        MPL_TRY(onnx_fresh_name(self->node->r, self->node->label, name[i], &fresh[i]));
    MPL_TRY(onnx_blame(self->node,
                       mpl_graph_add_folded(self->node->r->ctx, self->node->r->g, MPL_OP_split,
                                            self->node->label, 1, &x, 2, attr, n, fresh, out)));
out:
    self->st = st;
}

/* Applies a function to x, clipped first if the node asks for it. That includes the function of the
 * cell, as the standard has it: "applied to the input of activations". */
static mpl_value activate(rnn *self, const function *f, const char *name, mpl_value x)
{
    static const struct {
        const char *name;
        mpl_op_kind kind;
    } plain[] = {
        {"Relu", MPL_OP_relu},
        {"Tanh", MPL_OP_tanh},
        {"Sigmoid", MPL_OP_sigmoid},
        {"LeakyRelu", MPL_OP_leaky_relu},
        {"ThresholdedRelu", MPL_OP_thresholded_relu},
        {"HardSigmoid", MPL_OP_hard_sigmoid},
        {"Elu", MPL_OP_elu},
        {"Softsign", MPL_OP_softsign},
        {"Softplus", MPL_OP_softplus},
    };
    const mpl_attr attr[] = {MPL_FLOAT(alpha, f->alpha), MPL_FLOAT(beta, f->beta)};

    if (self->clips)
        x = op(self, MPL_OP_clip, "clipped", 3,
               (mpl_value[]){x, number(self, -self->clip), number(self, self->clip)}, 0, NULL);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(plain[i].name, f->name) == 0)
            return op(self, plain[i].kind, name, 1, &x, (uint32_t)f->has_alpha + f->has_beta, attr);
    if (strcmp(f->name, "Affine") == 0)
        return binary(self, MPL_OP_add, name,
                      binary(self, MPL_OP_mul, name, x, number(self, f->alpha)),
                      number(self, f->beta));
    x = unary(self, MPL_OP_tanh, name, binary(self, MPL_OP_mul, name, x, number(self, f->beta)));
    return binary(self, MPL_OP_mul, name, x, number(self, f->alpha));
}

/* ---- cells ---- */

/* x plus the peephole's weights times the cell. */
static mpl_value peep(rnn *self, mpl_value x, int which, mpl_value cell)
{
    if (self->peephole[0] == MPL_NONE)
        return x;
    return binary(self, MPL_OP_add, "peep", x,
                  binary(self, MPL_OP_mul, "peep", self->peephole[which], cell));
}

/* x W + b of one step. */
static mpl_value of_input(rnn *self, mpl_value x)
{
    return self->ahead ? x : product(self, "x", x, self->w, self->bias);
}

/* x W + b of all steps, [steps, batch, gates * hidden]. */
static mpl_value of_all_inputs(rnn *self)
{
    int64_t rows = self->layer->n_gates * self->hidden;
    mpl_value x =
        reshape(self, "x", self->x, 2, (int64_t[]){self->steps * self->batch, self->input});

    x = product(self, "x", x, self->w, self->bias);
    return reshape(self, "x", x, 3, (int64_t[]){self->steps, self->batch, rows});
}

/* i, o, f = f(x W + h R + P c + b), g = g(x W + h R + b); c' = f c + i g; h' = o h(c'). */
static void lstm_cell(rnn *self, mpl_value x, const mpl_value *state, mpl_value *next)
{
    enum { I, O, F, G, N };
    static const char *const name[N] = {"i", "o", "f", "g"};
    const int64_t width[N] = {self->hidden, self->hidden, self->hidden, self->hidden};
    mpl_value gate[N] = {MPL_NONE, MPL_NONE, MPL_NONE, MPL_NONE}, kept, fresh;

    split(self, product(self, "gates", state[0], self->r, of_input(self, x)), N, width, name, gate);
    gate[I] = activate(self, &self->f[0], "i", peep(self, gate[I], 0, state[1]));
    gate[G] = activate(self, &self->f[1], "g", gate[G]);
    if (self->flag) /* coupled input and forget gates */
        gate[F] = binary(self, MPL_OP_sub, "f", number(self, 1), gate[I]);
    else
        gate[F] = activate(self, &self->f[0], "f", peep(self, gate[F], 2, state[1]));
    fresh = binary(self, MPL_OP_mul, "ig", gate[I], gate[G]);
    kept = binary(self, MPL_OP_mul, "fc", gate[F], state[1]);
    next[1] = binary(self, MPL_OP_add, "c", kept, fresh);
    gate[O] = activate(self, &self->f[0], "o", peep(self, gate[O], 1, next[1]));
    next[0] = binary(self, MPL_OP_mul, "h", gate[O], activate(self, &self->f[2], "hc", next[1]));
}

/* z, r = f(x W + h R + b); n = g(x W + (r h) R + b), or g(x W + b + r (h R + b)) with
 * linear_before_reset; h' = (1 - z) n + z h, as n + z (h - n): one value less live. */
static void gru_cell(rnn *self, mpl_value x, const mpl_value *state, mpl_value *next)
{
    static const char *const part_name[] = {"xzr", "xn"}, *const gate_name[] = {"z", "r"};
    const int64_t part_width[] = {2 * self->hidden, self->hidden},
                  gate_width[] = {self->hidden, self->hidden};
    mpl_value part[2] = {MPL_NONE, MPL_NONE}, gate[2] = {MPL_NONE, MPL_NONE}, n;

    split(self, of_input(self, x), 2, part_width, part_name, part);
    split(self, product(self, "zr", state[0], self->r, part[0]), 2, gate_width, gate_name, gate);
    gate[1] = activate(self, &self->f[0], "r", gate[1]);
    if (self->flag)
        n = binary(self, MPL_OP_add, "n", part[1],
                   binary(self, MPL_OP_mul, "rh", gate[1],
                          product(self, "hn", state[0], self->last_r, self->reset_bias)));
    else
        n = product(self, "n", binary(self, MPL_OP_mul, "rh", gate[1], state[0]), self->last_r,
                    part[1]);
    n = activate(self, &self->f[1], "n", n);
    gate[0] = activate(self, &self->f[0], "z", gate[0]);
    next[0] = binary(
        self, MPL_OP_add, "h", n,
        binary(self, MPL_OP_mul, "zh", gate[0], binary(self, MPL_OP_sub, "hn", state[0], n)));
}

/* h' = f(x W + h R + b). */
static void rnn_cell(rnn *self, mpl_value x, const mpl_value *state, mpl_value *next)
{
    next[0] = activate(self, &self->f[0], "h",
                       product(self, "sum", state[0], self->r, of_input(self, x)));
}

/* After the end of a sequence its state stays and its rows are zero. */
static mpl_status make_step(const onnx_loop *loop, onnx_round *round)
{
    rnn *c = loop->arg;
    mpl_value made = MPL_NONE, mask = c->mask != MPL_NONE ? round->slice[1] : MPL_NONE;

    if (c->layer->n_gates == 4)
        lstm_cell(c, round->slice[0], round->state, round->next);
    else if (c->layer->n_gates == 3)
        gru_cell(c, round->slice[0], round->state, round->next);
    else
        rnn_cell(c, round->slice[0], round->state, round->next);
    made = round->next[0];
    if (mask != MPL_NONE) {
        if (loop->n_rows > 0)
            made = op(c, MPL_OP_where, "y", 3, (mpl_value[]){mask, made, number(c, 0)}, 0, NULL);
        for (uint32_t i = 0; i < c->layer->n_states; i++)
            round->next[i] = op(c, MPL_OP_where, i == 0 ? "h" : "c", 3,
                                (mpl_value[]){mask, round->next[i], round->state[i]}, 0, NULL);
    }
    if (loop->n_rows > 0)
        round->row[0] =
            op(c, MPL_OP_unsqueeze, "y", 1, &made, 1, &MPL_INTS(axes, 1, (const int64_t[]){0}));
    return c->st;
}

/* ---- attributes ---- */

static const function *find_function(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strlen(functions[i].name) == n && strncasecmp(functions[i].name, name, n) == 0)
            return &functions[i];
    return NULL;
}

/* Assigns alphas and betas, in order, to the functions that have them. */
static mpl_status take_functions(rnn *self)
{
    onnx_node *node = self->node;
    const Onnx__AttributeProto *names = onnx_attr(node, "activations");
    const Onnx__AttributeProto *alphas = onnx_attr(node, "activation_alpha");
    const Onnx__AttributeProto *betas = onnx_attr(node, "activation_beta");
    uint32_t count = self->layer->n_functions * self->n_directions;
    size_t n_alphas = 0, n_betas = 0;

    if (names != NULL && names->n_strings != count)
        return ONNX_REFUSE(node, "it has %zu activations; %u are needed", names->n_strings, count);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = names != NULL ? (const char *)names->strings[i].data
                                         : self->layer->otherwise[i % self->layer->n_functions];
        size_t length = names != NULL ? names->strings[i].len : strlen(name);
        const function *f = find_function(name, length);

        if (f == NULL)
            return ONNX_REFUSE(node, "activation '%.*s' is none that the standard lists",
                               (int)(length > 40 ? 40 : length), length > 0 ? name : "");
        self->function[i] = *f;
        if (f->has_alpha && alphas != NULL && n_alphas < alphas->n_floats)
            self->function[i].alpha = (double)alphas->floats[n_alphas++];
        if (f->has_beta && betas != NULL && n_betas < betas->n_floats)
            self->function[i].beta = (double)betas->floats[n_betas++];
    }
    return MPL_OK;
}

static mpl_status check_dims(rnn *self, uint32_t input, uint32_t rank, int64_t a, int64_t b,
                             int64_t last)
{
    const mpl_graph *g = self->node->r->g;
    mpl_value v = onnx_in(self->node, input);
    mpl_shape want = {rank, {a, b, last}};
    char is[200], must[200];

    want.dim[2] = rank > 2 ? last : 0;
    if (v != MPL_NONE && (!mpl_shape_equal(&g->value_shape[v], &want) ||
                          (mpl_type)g->value_type[v] != (input == 4 ? MPL_TYPE_i32 : self->type)))
        return ONNX_REFUSE(
            self->node, "input %u is %s %s; it must be %s %s", input,
            mpl_type_name((mpl_type)g->value_type[v]), mpl_shape_text(&g->value_shape[v], is),
            mpl_type_name(input == 4 ? MPL_TYPE_i32 : self->type), mpl_shape_text(&want, must));
    return MPL_OK;
}

static mpl_status check_inputs(rnn *self)
{
    int64_t d = self->n_directions, rows = self->layer->n_gates * self->hidden;
    int64_t a = self->batch_first ? self->batch : d, b = self->batch_first ? d : self->batch;

    MPL_PASS(check_dims(self, 1, 3, d, rows, self->input));
    MPL_PASS(check_dims(self, 2, 3, d, rows, self->hidden));
    MPL_PASS(check_dims(self, 3, 2, d, 2 * rows, 0));
    if (onnx_in(self->node, 4) != MPL_NONE)
        MPL_PASS(check_dims(self, 4, 1, self->batch, 0, 0));
    for (uint32_t i = 0; i < self->layer->n_states; i++)
        MPL_PASS(check_dims(self, 5 + i, 3, a, b, self->hidden));
    if (self->layer->n_states > 1)
        MPL_PASS(check_dims(self, 7, 2, d, N_PEEPHOLES * self->hidden, 0));
    return MPL_OK;
}

/* Reads attributes and sizes. */
static mpl_status take_node(rnn *self)
{
    onnx_node *node = self->node;
    const mpl_graph *g = node->r->g;
    const Onnx__AttributeProto *clip = onnx_attr(node, "clip");
    const mpl_shape *shape, *r;
    bool both = onnx_attr_is(node, "direction", "bidirectional");

    for (uint32_t i = 0; i < 3; i++)
        if (onnx_in(node, i) == MPL_NONE || g->value_shape[node->in[i]].rank != 3)
            return ONNX_REFUSE(node, "input %u is missing, or has not 3 dims", i);
    if (onnx_attr(node, "direction") != NULL && !both &&
        !onnx_attr_is(node, "direction", "forward") && !onnx_attr_is(node, "direction", "reverse"))
        return ONNX_REFUSE(node, "direction is none of forward, reverse, bidirectional");
    if (node->n_out > 1 + self->layer->n_states)
        return ONNX_REFUSE(node, "it has %u outputs; at most %u are supported", node->n_out,
                           1 + self->layer->n_states);
    shape = &g->value_shape[node->in[0]], r = &g->value_shape[node->in[2]];
    self->type = (mpl_type)g->value_type[node->in[0]];
    self->n_directions = both ? 2 : 1;
    self->batch_first = onnx_attr_int(node, "layout", 0) != 0;
    self->steps = shape->dim[self->batch_first], self->batch = shape->dim[!self->batch_first];
    self->input = shape->dim[2], self->hidden = r->dim[2];
    self->flag =
        onnx_attr_int(node, self->layer->n_gates == 4 ? "input_forget" : "linear_before_reset",
                      0) != 0;
    self->clips = clip != NULL;
    self->clip = clip != NULL ? (double)clip->f : 0;
    if (onnx_attr_int(node, "hidden_size", self->hidden) != self->hidden ||
        self->hidden > (INT64_C(1) << 40))
        return ONNX_REFUSE(node, "hidden_size is %" PRId64 ", and input 2 has rows of %" PRId64,
                           onnx_attr_int(node, "hidden_size", self->hidden), self->hidden);
    MPL_PASS(check_inputs(self));
    return take_functions(self);
}

/* ---- operands ---- */

/* Part d of an operand with one part for each direction, without that axis. */
static mpl_value of_direction(rnn *self, const char *name, mpl_value v, uint32_t d, uint32_t rank,
                              const int64_t *dim)
{
    if (v == MPL_NONE)
        return MPL_NONE;
    if (self->n_directions > 1)
        v = range(self, name, v, 0, d, d + 1);
    return reshape(self, name, v, rank, dim);
}

/* W or R of direction d as the node has it. */
static void take_small(rnn *self, uint32_t d, uint32_t which)
{
    const mpl_value *from = self->quantised + 3 * which;
    int64_t terms = which == 0 ? self->input : self->hidden;

    self->small[which][0] = of_direction(self, "w", from[0], d, 2,
                                         (int64_t[]){terms, self->layer->n_gates * self->hidden});
    for (uint32_t i = 1; i < 3; i++) {
        int64_t each = mpl_count(&self->node->r->g->value_shape[from[i]]) / self->n_directions;

        self->small[which][i] = of_direction(self, "scale", from[i], d, 1, &each);
    }
}

/* GRU has two products of h, as the second depends on the first. */
static void take_weights(rnn *self, uint32_t d)
{
    int64_t h = self->hidden, rows = self->layer->n_gates * h, zr = 2 * h;
    mpl_value both = of_direction(self, "b", onnx_in(self->node, 3), d, 1, (int64_t[]){2 * rows}),
              of_h = MPL_NONE;

    self->w = of_direction(self, "w", self->node->in[1], d, 2, (int64_t[]){rows, self->input});
    self->r = of_direction(self, "r", self->node->in[2], d, 2, (int64_t[]){rows, h});
    self->bias = self->reset_bias = self->last_r = MPL_NONE;
    if (both != MPL_NONE) {
        self->bias = range(self, "b", both, 0, 0, rows);
        of_h = range(self, "b", both, 0, rows, 2 * rows);
    }
    if (self->layer->n_gates == 3) {
        self->last_r = range(self, "r", self->r, 0, zr, rows);
        self->r = range(self, "r", self->r, 0, 0, zr);
    }
    /* the last part is reset together with h R */
    if (both != MPL_NONE && self->layer->n_gates == 3 && self->flag) {
        mpl_value part[] = {binary(self, MPL_OP_add, "b", range(self, "b", self->bias, 0, 0, zr),
                                   range(self, "b", of_h, 0, 0, zr)),
                            range(self, "b", self->bias, 0, zr, rows)};

        self->reset_bias = range(self, "b", of_h, 0, zr, rows);
        self->bias = op(self, MPL_OP_concat, "b", 2, part, 1, &MPL_INT(axis, 0));
    } else if (both != MPL_NONE)
        self->bias = binary(self, MPL_OP_add, "b", self->bias, of_h);
}

static mpl_value transpose(rnn *self, const char *name, mpl_value x, int64_t a, int64_t b,
                           int64_t last)
{
    return op(self, MPL_OP_transpose, name, 1, &x, 1,
              &MPL_INTS(perm, 3, ((int64_t[]){a, b, last})));
}

/* The initial state: zero unless given. */
static void take_state(rnn *self, uint32_t i, uint32_t d)
{
    const int64_t dim[] = {self->batch, self->hidden};
    mpl_value v = onnx_in(self->node, 5 + i);

    if (v != MPL_NONE && self->batch_first)
        v = transpose(self, "first", v, 1, 0, 2);
    if (v != MPL_NONE)
        self->first[i] = of_direction(self, "first", v, d, 2, dim);
    else {
        v = number(self, 0);
        self->first[i] = op(self, MPL_OP_expand, "first", 1, &v, 1, &MPL_INTS(shape, 2, dim));
    }
}

static void take_operands(rnn *self, uint32_t d)
{
    mpl_value p = self->layer->n_states > 1 ? onnx_in(self->node, 7) : MPL_NONE;

    take_weights(self, d);
    for (uint32_t i = 0; self->quantised != NULL && i < 2; i++)
        take_small(self, d, i);
    for (uint32_t i = 0; i < self->layer->n_states; i++)
        take_state(self, i, d);
    p = of_direction(self, "p", p, d, 1, (int64_t[]){N_PEEPHOLES * self->hidden});
    for (uint32_t i = 0; i < N_PEEPHOLES; i++)
        self->peephole[i] = p == MPL_NONE
                                ? MPL_NONE
                                : range(self, "p", p, 0, i * self->hidden, (i + 1) * self->hidden);
    self->f = self->function + d * self->layer->n_functions;
}

/* Whether step t is within a sequence: t < length. MPL_NONE if all have full length. */
static mpl_status make_mask(rnn *self)
{
    mpl_value lens = onnx_in(self->node, 4), step;
    uint32_t count;
    int64_t *length, *at, shortest = INT64_MAX;
    const char *name;

    self->mask = MPL_NONE;
    if (lens == MPL_NONE)
        return MPL_OK;
    if (onnx_is_constant(self->node, lens) && self->batch <= UINT16_MAX) {
        MPL_PASS(onnx_ints(self->node, lens, "sequence_lens", &count, &length));
        for (uint32_t i = 0; i < count; i++)
            shortest = length[i] < shortest ? length[i] : shortest;
        if (shortest >= self->steps)
            return MPL_OK;
    }
    MPL_PASS(onnx_new(self->node->r, at, (size_t)self->steps));
    for (int64_t i = 0; i < self->steps; i++)
        at[i] = i;
    MPL_PASS(onnx_fresh_name(self->node->r, self->node->label, "steps", &name));
    MPL_PASS(onnx_blame(
        self->node, mpl_graph_add_const(self->node->r->ctx, self->node->r->g, name, MPL_TYPE_i64,
                                        &(mpl_shape){3, {self->steps, 1, 1}}, at, false, &step)));
    lens = op(self, MPL_OP_cast, "lens", 1, &lens, 1, &MPL_TEXT(to, "i64"));
    lens = reshape(self, "lens", lens, 3, (int64_t[]){1, self->batch, 1});
    self->mask = binary(self, MPL_OP_less, "mask", step, lens);
    return self->st;
}

/* ---- the loop and its results ---- */

static bool is_asked_for(const rnn *self, uint32_t output)
{
    return output < self->node->n_out && self->node->out_name[output] != NULL;
}

/* The loop over the steps of direction d; made[] receives the last states, then the stacked h. */
static mpl_status add_direction(rnn *self, uint32_t d, mpl_value *made)
{
    static const char *const param[] = {"h", "c", "x", "mask"}, *const suffix[] = {"h_n", "c_n",
                                                                                   "rows"};
    bool backward = d == 1 || onnx_attr_is(self->node, "direction", "reverse");
    const bool reverse[] = {backward, backward, backward}; /* x, the mask, the rows */
    uint32_t n = self->layer->n_states;
    mpl_value scan[2] = {self->x, self->mask};
    const char *name[MAX_STATES + 1] = {NULL};
    const char *of_param[MAX_STATES + 2] = {param[0], n > 1 ? param[1] : param[2],
                                            n > 1 ? param[2] : param[3], param[3]};
    onnx_loop l = {
        .node = self->node, .trips = MPL_NONE, .go = MPL_NONE, .most = self->steps, .n_carried = n};

    take_operands(self, d);
    if (self->ahead)
        scan[0] = of_all_inputs(self);
    MPL_PASS(self->st);
    l.n_scans = self->mask != MPL_NONE ? 2 : 1;
    l.n_rows = is_asked_for(self, 0);
    l.init = self->first;
    l.scan = scan;
    l.param = of_param;
    l.reverse = reverse;
    l.out_name = name;
    l.unroll = self->node->r->options != NULL && self->node->r->options->rnn == MPL_RNN_UNROLL;
    l.body = make_step;
    l.arg = self;
    for (uint32_t i = 0; i < n + l.n_rows; i++)
        if (i == n || is_asked_for(self, 1 + i))
            MPL_PASS(onnx_fresh_name(self->node->r, self->node->label, suffix[i == n ? 2 : i],
                                     &name[i]));
    if (l.n_rows > 0 && self->n_directions == 1 && !self->batch_first)
        name[n] = self->node->out_name[0];
    return onnx_add_loop(&l, made);
}

/* An operation that makes an output of the node. */
static mpl_status last_op(rnn *self, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                          const mpl_attr *attr, uint32_t output)
{
    onnx_node *node = self->node;

    MPL_PASS(onnx_settle_name(node->r, &node->out_name[output]));
    return onnx_blame(node,
                      mpl_graph_add_folded(node->r->ctx, node->r->g, kind, node->label, n_in, in, 1,
                                           attr, 1, &node->out_name[output], &node->out[output]));
}

/* Y: [steps, directions, batch, hidden], or the batch first. */
static mpl_status finish_rows(rnn *self, const mpl_value *part)
{
    mpl_value all = part[0];
    const mpl_attr axis = MPL_INT(axis, 1),
                   perm = MPL_INTS(perm, 4, ((const int64_t[]){2, 0, 1, 3}));

    if (!self->batch_first && self->n_directions == 1)
        self->node->out[0] = all;
    else if (!self->batch_first)
        MPL_PASS(last_op(self, MPL_OP_concat, 2, part, &axis, 0));
    else {
        if (self->n_directions == 2)
            MPL_PASS(onnx_step(self->node, MPL_OP_concat, "rows", 2, part, 1, &axis, &all));
        MPL_PASS(last_op(self, MPL_OP_transpose, 1, &all, &perm, 0));
    }
    return MPL_OK;
}

/* Y_h and Y_c: [directions, batch, hidden], or the batch first. */
static mpl_status finish_state(rnn *self, uint32_t output, mpl_value *part)
{
    int64_t axis = self->batch_first;

    if (self->n_directions == 1)
        return last_op(self, MPL_OP_unsqueeze, 1, part, &MPL_INTS(axes, 1, &axis), output);
    for (uint32_t d = 0; d < 2; d++)
        MPL_PASS(onnx_step(self->node, MPL_OP_unsqueeze, "last", 1, &part[d], 1,
                           &MPL_INTS(axes, 1, &axis), &part[d]));
    return last_op(self, MPL_OP_concat, 2, part, &MPL_INT(axis, axis), output);
}

static mpl_status lower(onnx_node *node, const layer *kind, const mpl_value *quantised)
{
    bool asked = node->r->options != NULL && node->r->options->rnn == MPL_RNN_AHEAD;
    /* all inputs share one scale, so their products come before the loop */
    rnn c = {
        .node = node, .layer = kind, .ahead = asked || quantised != NULL, .quantised = quantised};
    mpl_value made[2][MAX_STATES + 1] = {{MPL_NONE}}, part[2];

    MPL_PASS(take_node(&c));
    c.x = c.batch_first ? transpose(&c, "x", node->in[0], 1, 0, 2) : node->in[0];
    MPL_PASS(make_mask(&c));
    for (uint32_t d = 0; d < c.n_directions; d++)
        MPL_PASS(add_direction(&c, d, made[d]));
    for (uint32_t i = 0; i < node->n_out; i++) {
        uint32_t at = i == 0 ? kind->n_states : i - 1;

        part[0] = made[0][at], part[1] = made[1][at];
        if (is_asked_for(&c, i))
            MPL_PASS(i == 0 ? finish_rows(&c, part) : finish_state(&c, i, part));
    }
    return MPL_OK;
}

mpl_status onnx_lower_rnn(onnx_node *node)
{
    static const layer rnn_layer = {1, 1, 1, {"Tanh"}};

    return lower(node, &rnn_layer, NULL);
}

mpl_status onnx_lower_gru(onnx_node *node)
{
    static const layer gru_layer = {3, 1, 2, {"Sigmoid", "Tanh"}};

    return lower(node, &gru_layer, NULL);
}

mpl_status onnx_lower_lstm_of(onnx_node *node, const mpl_value quantised[6])
{
    static const layer lstm_layer = {4, 2, 3, {"Sigmoid", "Tanh", "Tanh"}};

    return lower(node, &lstm_layer, quantised);
}

mpl_status onnx_lower_lstm(onnx_node *node)
{
    return onnx_lower_lstm_of(node, NULL);
}
