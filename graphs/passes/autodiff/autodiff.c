/* autodiff.c -- training graphs by reverse mode. See autodiff.h and TRAINING.md.
 *
 * Source   Reverse accumulation as in A. Griewank, A. Walther, "Evaluating Derivatives", 2008,
 *          chapter 3, operation by operation. */
#include "graphs/ops/ops_priv.h"
#include "graphs/passes/autodiff/autodiff_priv.h"
#include "graphs/passes/copy.h"

enum { NAME_SIZE = MPL_GRAD_NAME };

/* ---- names ---- */

const char *mpl_grad_copy_name(const mpl_grad *grad, char *text, const char *base)
{
    return grad->block == 0 ? base : mpl_grad_fresh(grad, text, base, ".again", MPL_NONE);
}

/* ---- forward ---- */

bool mpl_grad_is_statistic(const mpl_graph *g, mpl_value v)
{
    for (uint32_t i = g->value_use_begin[v]; i < g->value_use_begin[v + 1]; i++) {
        const mpl_value *in = g->op_in + g->op_in_begin[g->value_use[i]];

        if (g->op_kind[g->value_use[i]] == MPL_OP_batch_norm && (in[3] == v || in[4] == v))
            return true;
    }
    return false;
}

/* A network with its own loss trains only weights without data. */
static bool is_trained(const mpl_grad *grad, mpl_value v)
{
    const mpl_graph *g = grad->g;
    uint64_t n = 0;

    if (grad->options->trained != NULL)
        return grad->options->trained[v] != 0;
    mpl_shape_count(&g->value_shape[v], &n);
    return g->value_role[v] == MPL_WEIGHT && mpl_is_float(g, v) && !mpl_grad_is_statistic(g, v) &&
           n > 0 &&
           (g->value_data[v] == NULL || (n > 1 && !g->value_splat[v] && !grad->options->own_loss));
}

/* A running statistic that blocks or several batch norms move in sequence. */
static bool is_handed_on(const mpl_grad *grad, mpl_value v)
{
    const mpl_graph *g = grad->g;
    uint32_t n = 0;

    if (grad->options->frozen || g->value_role[v] != MPL_WEIGHT || !mpl_grad_is_statistic(g, v))
        return false;
    for (uint32_t i = g->value_use_begin[v]; i < g->value_use_begin[v + 1]; i++) {
        if (g->op_block[g->value_use[i]] != 0)
            return true;
        n += g->op_kind[g->value_use[i]] == MPL_OP_batch_norm;
    }
    return n > 1;
}

static mpl_status copy_value(mpl_grad *grad, mpl_value v)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = grad->g;

    if (g->value_role[v] == MPL_WEIGHT && g->value_data[v] != NULL)
        st = mpl_graph_add_const(grad->ctx, grad->to, g->value_name[v], (mpl_type)g->value_type[v],
                                 &g->value_shape[v], g->value_data[v], g->value_splat[v],
                                 &grad->now[v]);
    else
        st = mpl_graph_add_value(grad->ctx, grad->to, g->value_name[v], (mpl_role)g->value_role[v],
                                 (mpl_type)g->value_type[v], &g->value_shape[v], &grad->now[v]);
    if (st == MPL_OK && is_handed_on(grad, v))
        grad->moved[v] = grad->now[v];
    return st;
}

/* Moves statistic v by `batch`, the value of the current batch, as batch_norm_train does. */
static void move_statistic(mpl_grad *grad, mpl_op op, mpl_value v, mpl_value batch)
{
    const double momentum = 0.9;
    const mpl_type type = (mpl_type)grad->g->value_type[v];
    mpl_value part[2];

    grad->op = op; /* no rule is active in the forward pass */
    for (int i = 0; i < 2; i++) {
        mpl_value share = mpl_grad_constant(grad, i == 0 ? "kept" : "moved", type,
                                            &(mpl_shape){0, {0}}, i == 0 ? momentum : 1 - momentum);

        part[i] = mpl_grad_helper(grad, MPL_OP_mul, 2,
                                  (mpl_value[]){i == 0 ? grad->moved[v] : batch, share}, 0, NULL);
    }
    grad->moved[v] = mpl_grad_helper(grad, MPL_OP_add, 2, part, 0, NULL);
}

/* Copies a batch norm that does not update weights: its statistics are handed on, or, when
 * recomputed, left alone. */
static mpl_status copy_apart(mpl_grad *grad, mpl_op op, const mpl_value *in, const char *y_name)
{
    const mpl_graph *g = grad->g;
    const mpl_value *old = g->op_in + g->op_in_begin[op];
    const mpl_attr epsilon = MPL_FLOAT(epsilon, mpl_attr_float(g, op, MPL_ATTR_epsilon, 1e-5));
    char text[2][NAME_SIZE];
    const char *name[] = {y_name, mpl_grad_fresh(grad, text[0], y_name, ".batch_mean", MPL_NONE),
                          mpl_grad_fresh(grad, text[1], y_name, ".batch_var", MPL_NONE)};
    mpl_value out[3];

    MPL_PASS(mpl_graph_add_op(grad->ctx, grad->to, MPL_OP_batch_norm_again, g->op_name[op], 3, in,
                              1, &epsilon, 3, name, out));
    grad->now[g->op_out[g->op_out_begin[op]]] = out[0];
    for (uint32_t i = 3; i < 5 && grad->block == 0; i++)
        if (grad->moved[old[i]] != MPL_NONE)
            move_statistic(grad, op, old[i], out[i - 2]);
    return grad->st;
}

/* Whether a batch norm moves two weights that no other operation moves. */
static bool moves_weights(const mpl_grad *grad, mpl_op op)
{
    const mpl_value *in = grad->g->op_in + grad->g->op_in_begin[op];

    for (int i = 3; i < 5; i++)
        if (grad->g->value_role[in[i]] != MPL_WEIGHT || grad->moved[in[i]] != MPL_NONE)
            return false;
    return true;
}

/* Copies batch norm with four more outputs, dropout with its mask. */
static mpl_status copy_trained(mpl_grad *grad, mpl_op op, const char *y_name)
{
    static const char *const more[] = {".batch_mean", ".batch_var", ".next_mean", ".next_var"};
    const mpl_graph *g = grad->g;
    const mpl_value *from = g->op_in + g->op_in_begin[op];
    mpl_value in[5], out[5];
    bool norm = g->op_kind[op] == MPL_OP_batch_norm;
    uint32_t n_out = norm ? 5 : 2, n_in = norm ? 5 : 1;
    char text[5][NAME_SIZE];
    const char *name[5] = {y_name};
    const mpl_attr epsilon = MPL_FLOAT(epsilon, mpl_attr_float(g, op, MPL_ATTR_epsilon, 1e-5));
    const mpl_attr dropped[] = {
        MPL_FLOAT(ratio, grad->options->dropout > 0 ? grad->options->dropout : 0.5),
        MPL_INT(seed, op)};

    for (uint32_t i = 0; i < n_in; i++)
        in[i] = grad->now[from[i]];
    if (norm && (grad->block != 0 || !moves_weights(grad, op)))
        return copy_apart(grad, op, in, y_name);
    for (uint32_t i = 1; i < n_out; i++)
        name[i] = mpl_grad_fresh(grad, text[i], name[0], norm ? more[i - 1] : ".mask", MPL_NONE);
    if (!norm && grad->step != MPL_NONE)
        in[n_in++] = grad->step;
    MPL_PASS(mpl_graph_add_op(grad->ctx, grad->to,
                              norm ? MPL_OP_batch_norm_train : MPL_OP_dropout_train, g->op_name[op],
                              n_in, in, norm ? 1 : 2, norm ? &epsilon : dropped, n_out, name, out));
    grad->now[g->op_out[g->op_out_begin[op]]] = out[0];
    return MPL_OK;
}

mpl_status mpl_grad_copy(mpl_grad *grad, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = grad->g;
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op];
    const mpl_value *from = g->op_in + g->op_in_begin[op], *made = g->op_out + g->op_out_begin[op];
    const char **name = NULL;
    char(*text)[NAME_SIZE] = NULL;

    MPL_TRY(mpl_new_each(grad->ctx, n_out, name, text));
    for (uint32_t i = 0; i < n_out; i++)
        if (made[i] != MPL_NONE)
            name[i] = mpl_grad_copy_name(grad, text[i], g->value_name[made[i]]);
    grad->op_now[op] = grad->to->n_ops;
    if (!grad->options->frozen &&
        (g->op_kind[op] == MPL_OP_batch_norm ||
         (g->op_kind[op] == MPL_OP_dropout && (n_out == 1 || made[1] == MPL_NONE) &&
          mpl_is_float(g, from[0]))))
        MPL_TRY(copy_trained(grad, op, name[0]));
    else
        MPL_TRY(mpl_copy_op_as(grad->ctx, g, op, grad->to, grad->now, NULL,
                               &(mpl_copy_as){.out_name = name}));
out:
    mpl_free_each(grad->ctx, name, text);
    return st;
}

/* A final softmax, which the loss computes; MPL_NONE: there is none. */
static mpl_op last_softmax(const mpl_graph *g)
{
    mpl_value y = g->output[0];
    mpl_op op = g->value_op[y];

    if (op == MPL_NONE || g->op_kind[op] != MPL_OP_softmax || g->value_shape[y].rank != 2 ||
        g->value_use_begin[y] != g->value_use_begin[y + 1])
        return MPL_NONE;
    return (mpl_attr_int(g, op, MPL_ATTR_axis, -1) + 2) % 2 == 1 ? op : MPL_NONE;
}

/* Whether gradients stop at the operation. */
static bool is_stop(const mpl_graph *g, mpl_op op)
{
    return g->op_kind[op] == MPL_OP_identity && mpl_attr_int(g, op, MPL_ATTR_stop, 0) != 0;
}

/* One pass over all operations. Returns whether a loop needs another pass. */
static bool vary(mpl_grad *grad)
{
    const mpl_graph *g = grad->g;
    bool again = false;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint8_t any = 0;

        if (g->op_body_begin[op] < g->op_body_begin[op + 1]) {
            again |= mpl_grad_vary_control(grad, op);
            continue;
        }
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1] && !is_stop(g, op); i++)
            any |= g->op_in[i] != MPL_NONE && grad->varies[g->op_in[i]];
        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
            if (g->op_out[i] != MPL_NONE)
                grad->varies[g->op_out[i]] = any && mpl_is_float(g, g->op_out[i]);
    }
    return again;
}

/* Finds which values vary, which lead to the loss, and how many parts each gradient has. */
static mpl_status explore(mpl_grad *grad, mpl_value logits)
{
    bool any = false;
    const mpl_graph *g = grad->g;

    for (mpl_value v = 0; v < g->n_values; v++) {
        grad->varies[v] = is_trained(grad, v);
        any |= grad->varies[v];
    }
    if (!any)
        return MPL_REFUSE(grad->ctx,
                          "graph '%s' has no weight that can be trained: there is nothing to learn",
                          g->name);
    while (vary(grad)) {
    }
    if (!grad->varies[logits] || g->value_op[logits] == MPL_NONE)
        return MPL_REFUSE(grad->ctx,
                          "graph '%s': output '%.100s' depends on no weight that can be trained",
                          g->name, g->value_name[logits]);
    grad->leads[g->value_op[logits]] = 1;
    MPL_PASS(mpl_grad_count_slots(grad, 0));
    grad->slots[logits]++;
    memcpy(grad->waits, grad->slots, g->n_values * sizeof *grad->waits);
    return MPL_OK;
}

/* ---- loss and backward ---- */

static mpl_status add_loss(mpl_grad *grad, mpl_value logits, mpl_op softmax, mpl_value *loss)
{
    const mpl_graph *g = grad->g;
    const mpl_shape *s = &g->value_shape[logits];
    mpl_shape rows = {2, {s->rank > 1 ? s->dim[0] : 1, 1}};
    char text[4][NAME_SIZE];
    const char *name[2] = {mpl_grad_fresh(grad, text[0], "loss", "", MPL_NONE), NULL}, *one = NULL;
    mpl_value x = grad->now[logits], labels, out[2], dx;

    for (uint32_t i = s->rank > 1; i < s->rank; i++)
        rows.dim[1] *= s->dim[i];
    MPL_PASS(mpl_graph_add_value(grad->ctx, grad->to,
                                 mpl_grad_fresh(grad, text[1], "labels", "", MPL_NONE), MPL_INPUT,
                                 MPL_TYPE_i64, &(mpl_shape){1, {rows.dim[0]}}, &labels));
    if (s->rank != 2) {
        one = mpl_grad_fresh(grad, text[2], g->value_name[logits], ".rows", MPL_NONE);
        MPL_PASS(mpl_graph_add_op(grad->ctx, grad->to, MPL_OP_reshape, one, 1, &x, 1,
                                  &MPL_INTS(shape, 2, rows.dim), 1, &one, &x));
    }
    name[1] = softmax != MPL_NONE ? g->value_name[g->output[0]]
                                  : mpl_grad_fresh(grad, text[2], "prob", "", MPL_NONE);
    MPL_PASS(mpl_graph_add_op(grad->ctx, grad->to, MPL_OP_softmax_cross_entropy, name[0], 2,
                              (mpl_value[]){x, labels}, 0, NULL, 2, name, out));
    *loss = out[0];
    grad->op = g->value_op[logits];
    one = mpl_grad_part_name(grad, logits, text[3]);
    MPL_PASS(mpl_graph_add_op(grad->ctx, grad->to, MPL_OP_softmax_cross_entropy_grad, one, 2,
                              (mpl_value[]){out[1], labels}, 0, NULL, 1, &one, &dx));
    if (s->rank != 2) {
        one = mpl_grad_fresh(grad, text[3], g->value_name[logits], ".grad.dims", MPL_NONE);
        MPL_PASS(mpl_graph_add_op(grad->ctx, grad->to, MPL_OP_reshape, one, 1, &dx, 1,
                                  &MPL_INTS(shape, s->rank, s->dim), 1, &one, &dx));
    }
    mpl_grad_part(grad, logits, dx);
    return grad->st;
}

/* The output is the loss; its gradient is 1. */
static mpl_status take_loss(mpl_grad *grad, mpl_value output, mpl_value *loss)
{
    if (grad->g->value_shape[output].rank != 0)
        return MPL_REFUSE(grad->ctx,
                          "graph '%s': output '%.100s' is no single number, so it is no loss",
                          grad->g->name, grad->g->value_name[output]);
    *loss = grad->now[output];
    mpl_grad_part(grad, output,
                  mpl_grad_constant(grad, "one", (mpl_type)grad->g->value_type[output],
                                    &(mpl_shape){0, {0}}, 1));
    return grad->st;
}

mpl_status mpl_grad_complete(mpl_grad *grad, mpl_value v)
{
    mpl_status st = MPL_OK;
    uint32_t n = grad->n_parts[v];
    mpl_value *part = NULL;
    char text[NAME_SIZE];
    const char *name;

    if (grad->options->chained || n == 0) {
        grad->whole[v] = mpl_grad_join(grad, v, grad->whole[v]);
        return grad->st;
    }
    MPL_TRY(mpl_new(grad->ctx, part, n));
    for (uint32_t i = n, at = grad->last[v]; i-- > 0; at = grad->part_prev[at])
        part[i] = grad->part_value[at];
    grad->whole[v] = part[0];
    name = mpl_grad_fresh(grad, text, grad->g->value_name[v], ".grad", MPL_NONE);
    if (n > 1)
        MPL_TRY(mpl_graph_add_op(grad->ctx, grad->to, MPL_OP_sum, name, n, part, 0, NULL, 1, &name,
                                 &grad->whole[v]));
    grad->whole[v] = mpl_grad_join(grad, v, grad->whole[v]);
    MPL_TRY(grad->st);
out:
    mpl_free(grad->ctx, part);
    return st;
}

mpl_status mpl_grad_back(mpl_grad *grad, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = grad->g;
    bool any = false, owner = g->op_body_begin[op] < g->op_body_begin[op + 1];
    mpl_value *captured = NULL;
    uint32_t n_captured = 0;

    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        any = any || (g->op_out[i] != MPL_NONE && grad->whole[g->op_out[i]] != MPL_NONE);
    grad->op = op;
    grad->n_helper = 0;
    if (any && !owner && mpl_grad_rules[g->op_kind[op]] == NULL)
        MPL_FAIL(grad->ctx, MPL_EINPUT,
                 "operation '%.100s': there is no rule for the gradient of %s", g->op_name[op],
                 mpl_op_table[g->op_kind[op]].name);
    if (any && owner)
        MPL_TRY(mpl_grad_back_control(grad, op));
    if (any && !grad->options->frozen &&
        (g->op_kind[op] == MPL_OP_dropout || g->op_kind[op] == MPL_OP_batch_norm))
        mpl_grad_out(grad, 0); /* makes it with its mask, or its batch's moments */
    if (any && !owner)
        mpl_grad_rules[g->op_kind[op]](grad);
    MPL_TRY(grad->st);
    if (owner)
        MPL_TRY(mpl_grad_captured(grad, op, true, &n_captured, &captured));
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        if (g->op_in[i] != MPL_NONE && grad->varies[g->op_in[i]] && --grad->waits[g->op_in[i]] == 0)
            MPL_TRY(mpl_grad_complete(grad, g->op_in[i]));
    for (uint32_t i = 0; i < n_captured; i++)
        if (--grad->waits[captured[i]] == 0)
            MPL_TRY(mpl_grad_complete(grad, captured[i]));
out:
    mpl_free(grad->ctx, captured);
    return st;
}

/* ---- updates ---- */

typedef struct optimiser {
    mpl_op_kind kind;
    uint32_t n_state;
    const char *state[2];
} optimiser;

static const optimiser optimisers[] = {
    [MPL_OPTIMISER_SGD] = {MPL_OP_sgd_update, 0, {NULL, NULL}},
    [MPL_OPTIMISER_MOMENTUM] = {MPL_OP_momentum_update, 1, {".momentum", NULL}},
    [MPL_OPTIMISER_ADAGRAD] = {MPL_OP_adagrad_update, 1, {".squares", NULL}},
    [MPL_OPTIMISER_ADAM] = {MPL_OP_adam_update, 2, {".mean_grad", ".mean_square"}},
    [MPL_OPTIMISER_ADAMW] = {MPL_OP_adam_update, 2, {".mean_grad", ".mean_square"}},
};

/* Operations that an update waits for, through its gradient or its inputs. */
typedef struct waiting {
    uint8_t *awaited; /* [n_ops] */
    mpl_op *stack;    /* [n_ops] */
    mpl_value *shows; /* [n_values] the weight that it is, itself or through views */
    mpl_value *in;
    uint32_t n_in;
    size_t in_cap;
} waiting;

static void await_maker(const mpl_graph *g, waiting *w, mpl_value v, uint32_t *n)
{
    mpl_op maker = v != MPL_NONE ? g->value_op[v] : MPL_NONE;

    if (maker == MPL_NONE || w->awaited[maker])
        return;
    w->awaited[maker] = 1;
    w->stack[(*n)++] = maker;
}

static void await(const mpl_graph *g, waiting *w, mpl_op op)
{
    uint32_t n = 0;

    if (w->awaited[op])
        return;
    w->awaited[op] = 1;
    w->stack[n++] = op;
    while (n > 0) {
        mpl_op at = w->stack[--n];

        for (uint32_t i = g->op_in_begin[at]; i < g->op_in_begin[at + 1]; i++)
            await_maker(g, w, g->op_in[i], &n);
        for (uint32_t k = g->op_body_begin[at]; k < g->op_body_begin[at + 1]; k++) {
            uint32_t b = g->op_body[k];

            for (mpl_op in = g->block_op_begin[b]; in < g->block_op_end[b]; in++)
                for (uint32_t i = g->op_in_begin[in]; i < g->op_in_begin[in + 1]; i++)
                    await_maker(g, w, g->op_in[i], &n);
            for (uint32_t i = g->block_result_begin[b];
                 i < g->block_result_begin[b] + g->block_n_results[b]; i++)
                await_maker(g, w, g->block_result[i], &n);
        }
    }
}

static mpl_status push_in(mpl_grad *grad, waiting *w, mpl_value v)
{
    MPL_PASS(mpl_reserve(grad->ctx, w->in, w->in_cap, (size_t)w->n_in + 1));
    w->in[w->n_in++] = v;
    return MPL_OK;
}

/* Appends an output of `reader`'s outermost operation, unless that runs before anyway. */
static mpl_status push_reader(mpl_grad *grad, waiting *w, mpl_op reader)
{
    const mpl_graph *to = grad->to;
    uint32_t out;

    reader = mpl_op_outermost(to, reader);
    if (w->awaited[reader])
        return MPL_OK;
    for (out = to->op_out_begin[reader]; to->op_out[out] == MPL_NONE;)
        out++;
    MPL_PASS(push_in(grad, w, to->op_out[out]));
    await(to, w, reader);
    return MPL_OK;
}

/* Appends all readers of weight v. Later ones first: they often come after the others. */
static mpl_status push_readers(mpl_grad *grad, waiting *w, mpl_value v, uint32_t n_ops)
{
    const mpl_graph *to = grad->to;

    for (mpl_op op = n_ops; op-- > 0;)
        for (uint32_t i = to->op_in_begin[op]; i < to->op_in_begin[op + 1]; i++)
            if (to->op_in[i] != MPL_NONE && w->shows[to->op_in[i]] == v)
                MPL_PASS(push_reader(grad, w, op));
    for (uint32_t b = to->n_blocks; b-- > 1;)
        for (uint32_t i = 0; i < to->block_n_results[b]; i++) {
            mpl_value result = to->block_result[to->block_result_begin[b] + i];

            if (result != MPL_NONE && w->shows[result] == v)
                MPL_PASS(push_reader(grad, w, to->block_owner[b]));
        }
    return MPL_OK;
}

/* Adds an update with inputs w->in; it updates `n` of them from `first` on. */
static mpl_status add_update(mpl_grad *grad, waiting *w, mpl_op_kind kind, uint32_t first,
                             uint32_t n, mpl_value *out)
{
    char text[3][NAME_SIZE];
    const char *name[3];
    bool trains = kind != MPL_OP_step_update && kind != MPL_OP_set_update;
    mpl_attr rate = MPL_FLOAT(rate, grad->options->rate), decay = MPL_FLOAT(decay, 0.01), attr[2];
    uint32_t n_attr = 0;

    for (uint32_t i = 0; i < n; i++)
        name[i] = mpl_grad_fresh(grad, text[i], grad->to->value_name[w->in[first + i]], ".next",
                                 MPL_NONE);
    if (trains && grad->options->rate > 0)
        attr[n_attr++] = rate;
    if (trains && grad->options->update == MPL_OPTIMISER_ADAMW)
        attr[n_attr++] = decay;
    return mpl_graph_add_op(grad->ctx, grad->to, kind, name[0], w->n_in, w->in, n_attr, attr, n,
                            name, out);
}

/* Adds the state's constants before it collects the awaited operations, so that value ids do not
 * change meanwhile. */
static mpl_status update_weight(mpl_grad *grad, waiting *w, mpl_value weight, uint32_t n_ops,
                                mpl_value *next)
{
    const optimiser *how = &optimisers[grad->options->update];
    const mpl_shape *shape = &grad->g->value_shape[weight];
    mpl_value v = grad->now[weight], gradient = grad->whole[weight], state;
    char text[NAME_SIZE];

    w->n_in = 0;
    memset(w->awaited, 0, n_ops);
    MPL_PASS(push_in(grad, w, gradient));
    if (how->kind == MPL_OP_adam_update)
        MPL_PASS(push_in(grad, w, grad->step_next));
    MPL_PASS(push_in(grad, w, v));
    for (uint32_t i = 0; i < how->n_state; i++) {
        static const double zero = 0; /* in every floating type */

        MPL_PASS(mpl_graph_add_const(
            grad->ctx, grad->to,
            mpl_grad_fresh(grad, text, grad->g->value_name[weight], how->state[i], MPL_NONE),
            (mpl_type)grad->g->value_type[weight], shape, &zero, true, &state));
        MPL_PASS(push_in(grad, w, state));
    }
    await(grad->to, w, grad->to->value_op[gradient]);
    MPL_PASS(push_readers(grad, w, v, n_ops));
    return add_update(grad, w, how->kind, how->kind == MPL_OP_adam_update ? 2 : 1, 1 + how->n_state,
                      next);
}

static mpl_status update_step(mpl_grad *grad, waiting *w, uint32_t n_ops)
{
    if (grad->step == MPL_NONE)
        return MPL_OK;
    w->n_in = 0;
    memset(w->awaited, 0, n_ops);
    MPL_PASS(push_in(grad, w, grad->step));
    MPL_PASS(push_readers(grad, w, grad->step, n_ops));
    return add_update(grad, w, MPL_OP_step_update, 0, 1, &grad->step_next);
}

static mpl_status waiting_init(mpl_grad *grad, waiting *w)
{
    const mpl_graph *to = grad->to;

    MPL_PASS(mpl_new_each(grad->ctx, to->n_ops, w->awaited, w->stack));
    MPL_PASS(mpl_new(grad->ctx, w->shows, to->n_values));
    for (mpl_value v = 0; v < to->n_values; v++)
        w->shows[v] = to->value_op[v] == MPL_NONE ? v : MPL_NONE;
    for (mpl_op op = 0; op < to->n_ops; op++)
        for (uint32_t i = to->op_out_begin[op];
             mpl_may_be_view(to, op) && i < to->op_out_begin[op + 1]; i++)
            if (to->op_out[i] != MPL_NONE)
                w->shows[to->op_out[i]] = w->shows[to->op_in[to->op_in_begin[op]]];
    return MPL_OK;
}

static void waiting_fini(mpl_grad *grad, waiting *w)
{
    mpl_free_each(grad->ctx, w->awaited, w->stack, w->shows, w->in);
}

/* Adds all updates. Outputs are weights with their state, then the number of the run. */
static mpl_status add_updates(mpl_grad *grad)
{
    mpl_status st = MPL_OK;
    uint32_t n_ops = grad->to->n_ops;
    waiting w = {0};
    mpl_value next[3];

    MPL_TRY(waiting_init(grad, &w));
    MPL_TRY(update_step(grad, &w, n_ops));
    for (mpl_value v = 0; v < grad->g->n_values; v++) {
        if (!is_trained(grad, v) || grad->whole[v] == MPL_NONE)
            continue;
        MPL_TRY(update_weight(grad, &w, v, n_ops, next));
        for (uint32_t i = 0; i <= optimisers[grad->options->update].n_state; i++)
            MPL_TRY(mpl_graph_add_output(grad->ctx, grad->to, next[i]));
    }
    if (grad->step != MPL_NONE)
        MPL_TRY(mpl_graph_add_output(grad->ctx, grad->to, grad->step_next));
out:
    waiting_fini(grad, &w);
    return st;
}

/* ---- training graphs ---- */

static mpl_status check(mpl_ctx *ctx, const mpl_graph *g, const mpl_autodiff_options *options)
{
    if (g->n_outputs != 1)
        return MPL_REFUSE(ctx, "graph '%s' has %u outputs; training needs exactly one", g->name,
                          g->n_outputs);
    if (options->gradients == MPL_GRADIENTS_PLANNED && options->update == MPL_OPTIMISER_NONE)
        return MPL_REFUSE(
            ctx,
            "graph '%s': gradients that no update reads must be outputs; name an update, or "
            "gradients=pinned",
            g->name);
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (mpl_op_table[g->op_kind[op]].traits & (MPL_PROGRAM | MPL_MUTATES))
            return MPL_REFUSE(ctx,
                              "graph '%s': operation '%.100s' (%s) of a program has no gradient",
                              g->name, g->op_name[op], mpl_op_table[g->op_kind[op]].name);
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (mpl_n_updates((mpl_op_kind)g->op_kind[op]) > 0)
            return MPL_REFUSE(
                ctx, "graph '%s' is one for training already: operation '%.100s' updates weights",
                g->name, g->op_name[op]);
    return MPL_OK;
}

static mpl_status allocate(mpl_grad *grad)
{
    uint32_t n = grad->g->n_values;

    MPL_PASS(mpl_new(grad->ctx, grad->now, n));
    MPL_PASS(mpl_new(grad->ctx, grad->op_now, grad->g->n_ops));
    MPL_PASS(mpl_new(grad->ctx, grad->varies, n));
    MPL_PASS(mpl_new(grad->ctx, grad->leads, grad->g->n_ops));
    MPL_PASS(mpl_new_each(grad->ctx, n, grad->slots, grad->waits, grad->n_parts, grad->last,
                          grad->whole, grad->tape, grad->moved));
    MPL_PASS(mpl_new(grad->ctx, grad->count, grad->g->n_ops));
    memset(grad->now, 0xff, n * sizeof *grad->now);
    memset(grad->last, 0xff, n * sizeof *grad->last);
    memset(grad->whole, 0xff, n * sizeof *grad->whole);
    memset(grad->tape, 0xff, n * sizeof *grad->tape);
    memset(grad->moved, 0xff, n * sizeof *grad->moved);
    return MPL_OK;
}

/* Adam and dropout need the number of the run; only an update advances it. */
static mpl_status add_step(mpl_grad *grad)
{
    bool asked = optimisers[grad->options->update].kind == MPL_OP_adam_update;
    char text[NAME_SIZE];
    static const int64_t zero = 0;

    grad->step = grad->step_next = MPL_NONE;
    for (mpl_op op = 0; op < grad->g->n_ops; op++)
        asked = asked || (grad->g->op_kind[op] == MPL_OP_dropout && !grad->options->frozen &&
                          grad->options->update != MPL_OPTIMISER_NONE);
    if (asked)
        MPL_PASS(mpl_graph_add_const(grad->ctx, grad->to,
                                     mpl_grad_fresh(grad, text, "step", "", MPL_NONE), MPL_TYPE_i64,
                                     &(mpl_shape){0, {0}}, &zero, false, &grad->step));
    return MPL_OK;
}

/* Sets statistics that were handed on to their final values; adds outputs, in order. */
static mpl_status set_statistics(mpl_grad *grad)
{
    mpl_status st = MPL_OK;
    uint32_t n_ops = grad->to->n_ops;
    waiting w = {0};
    mpl_value next;

    MPL_TRY(waiting_init(grad, &w));
    for (mpl_value v = 0; v < grad->g->n_values; v++) {
        if (grad->moved[v] == MPL_NONE || grad->moved[v] == grad->now[v])
            continue;
        w.n_in = 0;
        memset(w.awaited, 0, n_ops);
        MPL_TRY(push_in(grad, &w, grad->moved[v]));
        MPL_TRY(push_in(grad, &w, grad->now[v]));
        await(grad->to, &w, grad->to->value_op[grad->moved[v]]);
        MPL_TRY(push_readers(grad, &w, grad->now[v], n_ops));
        MPL_TRY(add_update(grad, &w, MPL_OP_set_update, 1, 1, &next));
        MPL_TRY(mpl_graph_add_output(grad->ctx, grad->to, next));
    }
out:
    waiting_fini(grad, &w);
    return st;
}

static mpl_status add_outputs(mpl_grad *grad)
{
    mpl_gradients to = grad->options->gradients;
    bool pinned = to == MPL_GRADIENTS_PINNED ||
                  (to == MPL_GRADIENTS_BY_UPDATE && grad->options->update == MPL_OPTIMISER_NONE);
    uint32_t n_ops;

    for (mpl_value v = 0; v < grad->g->n_values && pinned; v++)
        if (is_trained(grad, v) && grad->whole[v] != MPL_NONE)
            MPL_PASS(mpl_graph_add_output(grad->ctx, grad->to, grad->whole[v]));
    n_ops = grad->to->n_ops;
    if (grad->options->update != MPL_OPTIMISER_NONE)
        MPL_PASS(add_updates(grad));
    for (mpl_op op = 0; op < n_ops; op++)
        for (uint32_t i = 3; i < 5 && grad->to->op_kind[op] == MPL_OP_batch_norm_train; i++)
            MPL_PASS(mpl_graph_add_output(grad->ctx, grad->to,
                                          grad->to->op_out[grad->to->op_out_begin[op] + i]));
    return set_statistics(grad);
}

static mpl_status differentiate(mpl_grad *grad)
{
    const mpl_graph *g = grad->g;
    mpl_op softmax = grad->options->own_loss ? MPL_NONE : last_softmax(g);
    mpl_value logits = softmax != MPL_NONE ? g->op_in[g->op_in_begin[softmax]] : g->output[0],
              loss = MPL_NONE;
    mpl_walk walk = mpl_walk_begin();
    mpl_item item;

    MPL_PASS(explore(grad, logits));
    MPL_PASS(add_step(grad));
    while ((item = mpl_walk_next(g, &walk)) != MPL_ITEM_END)
        if (item == MPL_ITEM_VALUE)
            MPL_PASS(copy_value(grad, walk.value));
        else if (item == MPL_ITEM_OP && walk.op != softmax && g->op_block[walk.op] == 0)
            MPL_PASS(g->op_body_begin[walk.op] < g->op_body_begin[walk.op + 1]
                         ? mpl_grad_copy_control(grad, walk.op, grad->leads[walk.op])
                         : mpl_grad_copy(grad, walk.op));
    MPL_PASS(grad->options->own_loss ? take_loss(grad, logits, &loss)
                                     : add_loss(grad, logits, softmax, &loss));
    MPL_PASS(mpl_graph_add_output(grad->ctx, grad->to, loss));
    if (--grad->waits[logits] == 0)
        MPL_PASS(mpl_grad_complete(grad, logits));
    for (mpl_op op = g->n_ops; op-- > 0;)
        if (grad->leads[op] && g->op_block[op] == 0)
            MPL_PASS(mpl_grad_back(grad, op));
    MPL_PASS(add_outputs(grad));
    return mpl_graph_finish(grad->ctx, grad->to);
}

mpl_status mpl_autodiff(mpl_ctx *ctx, const mpl_graph *g, const mpl_autodiff_options *options,
                        mpl_graph **out)
{
    mpl_status st = MPL_OK;
    mpl_grad d = {.ctx = ctx, .g = g, .options = options};

    MPL_TRY(check(ctx, g, options));
    MPL_TRY(allocate(&d));
    MPL_TRY(mpl_graph_new(ctx, options->name != NULL ? options->name : g->name, &d.to));
    MPL_TRY(differentiate(&d));
    *out = d.to, d.to = NULL;
out:
    mpl_graph_free(ctx, d.to);
    mpl_free_each(ctx, d.now, d.op_now, d.varies, d.leads, d.slots, d.waits, d.tape, d.moved,
                  d.n_parts, d.last, d.whole, d.part_value, d.part_prev, d.piece, d.count);
    return st;
}
