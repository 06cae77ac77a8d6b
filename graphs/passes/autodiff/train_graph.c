/* train_graph.c -- see train_graph.h. */
#include "graphs/passes/autodiff/train_graph.h"

#include <fnmatch.h>
#include <math.h>

#include "graphs/ops/ops_priv.h"
#include "graphs/passes/autodiff/autodiff_priv.h"
#include "graphs/passes/passes.h"

/* ---- the loss ---- */

typedef enum kind { CROSS_ENTROPY, SQUARE, SCALAR, N_KINDS } kind;

static const char *const kinds[N_KINDS] = {"cross_entropy", "square", "scalar"};

/* Appends "a, b, .." of the values with these ids that `wanted` takes to text[size]; returns their
 * number. */
typedef bool wanted(const mpl_graph *g, mpl_value v);

static uint32_t name_values(const mpl_graph *g, uint32_t n, const mpl_value *id, wanted *is,
                            char *text, size_t size)
{
    uint32_t found = 0;
    size_t at = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < n; i++) {
        mpl_value v = id != NULL ? id[i] : i;

        if (!is(g, v))
            continue;
        if (at < size && found < 6)
            at += (size_t)snprintf(text + at, size - at, "%s'%.60s'%s", found > 0 ? ", " : "",
                                   g->value_name[v], found == 5 ? ", .." : "");
        found++;
    }
    return found;
}

/* The only floating output. */
static mpl_status only_output(mpl_ctx *ctx, const mpl_graph *g, mpl_value *out)
{
    char names[500];
    uint32_t n = name_values(g, g->n_outputs, g->output, mpl_is_float, names, sizeof names), i = 0;

    if (n == 0)
        return MPL_REFUSE(ctx, "graph '%.100s' has no floating output, so no loss", g->name);
    if (n > 1)
        return MPL_REFUSE(ctx,
                          "graph '%.100s' has %u floating outputs: %s; name one: --loss "
                          "OUTPUT[:cross_entropy|square|scalar]",
                          g->name, n, names);
    while (!mpl_is_float(g, g->output[i]))
        i++;
    *out = g->output[i];
    return MPL_OK;
}

static bool any(const mpl_graph *g, mpl_value v)
{
    (void)g, (void)v;
    return true;
}

/* An output may have a colon in its name: what follows the last one is a kind only if it is one. */
static mpl_status named_output(mpl_ctx *ctx, const mpl_graph *g, const char *text, mpl_value *out,
                               kind *how)
{
    const char *colon = strrchr(text, ':');
    size_t n = strlen(text);
    char names[500];

    for (kind k = 0; k < N_KINDS && colon != NULL; k++)
        if (strcmp(colon + 1, kinds[k]) == 0) {
            n = (size_t)(colon - text);
            *how = k;
        }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (strlen(g->value_name[g->output[i]]) == n &&
            memcmp(g->value_name[g->output[i]], text, n) == 0) {
            *out = g->output[i];
            return mpl_is_float(g, *out)
                       ? MPL_OK
                       : MPL_REFUSE(ctx, "--loss: output '%.100s' is of %s; a loss is of floats",
                                    g->value_name[*out],
                                    mpl_type_name((mpl_type)g->value_type[*out]));
        }
    name_values(g, g->n_outputs, g->output, any, names, sizeof names);
    return MPL_REFUSE(ctx,
                      "--loss: '%.100s' is no output of '%.100s' with a kind of loss "
                      "(cross_entropy, square, scalar) behind a colon or without; its outputs: %s",
                      text, g->name, names);
}

/* The softmax that y is the result of, through changes of shape; MPL_NONE: there is none. */
static mpl_op softmax_of(const mpl_graph *g, mpl_value y)
{
    for (mpl_op op = g->value_op[y]; op != MPL_NONE; op = g->value_op[g->op_in[g->op_in_begin[op]]])
        if (g->op_kind[op] == MPL_OP_softmax || g->op_kind[op] == MPL_OP_log_softmax)
            return op;
        else if ((mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) == 0)
            return MPL_NONE;
    return MPL_NONE;
}

/* Adds operations to a pruned graph; the first failure stays in st. */
typedef struct builder {
    mpl_ctx *ctx;
    mpl_graph *g;
    mpl_status st;
} builder;

static const char *fresh(const builder *self, char *text, const char *base)
{
    return mpl_grad_fresh(&(mpl_grad){.g = self->g, .to = self->g}, text, base, "", MPL_NONE);
}

static mpl_value add(builder *self, mpl_op_kind how, const char *base, uint32_t n_in,
                     const mpl_value *in, uint32_t n_attr, const mpl_attr *attr)
{
    char text[2][MPL_GRAD_NAME];
    const char *name[2] = {fresh(self, text[0], base), fresh(self, text[1], "prob")};
    mpl_value out[2] = {MPL_NONE, MPL_NONE};

    if (self->st == MPL_OK)
        self->st = mpl_graph_add_op(self->ctx, self->g, how, name[0], n_in, in, n_attr, attr,
                                    how == MPL_OP_softmax_cross_entropy ? 2 : 1, name, out);
    return self->st == MPL_OK ? out[0] : 0;
}

static mpl_value add_input(builder *self, const char *base, mpl_type type, const mpl_shape *shape)
{
    char text[MPL_GRAD_NAME];
    mpl_value v = 0;

    if (self->st == MPL_OK)
        self->st = mpl_graph_add_value(self->ctx, self->g, fresh(self, text, base), MPL_INPUT, type,
                                       shape, &v);
    return v;
}

static mpl_value reshaped(builder *self, const char *base, mpl_value v, uint32_t rank,
                          const int64_t *dim)
{
    return add(self, MPL_OP_reshape, base, 1, &v, 1, &MPL_INTS(shape, rank, dim));
}

/* Cross-entropy of x, whose classes are along `axis`. */
static mpl_value cross_entropy(builder *self, mpl_value x, uint32_t axis)
{
    const mpl_shape s = self->g->value_shape[x];
    mpl_shape rows = {0, {0}};
    int64_t perm[MPL_MAX_RANK], flat[2] = {1, s.dim[axis]};
    mpl_value labels;

    for (uint32_t i = 0; i < s.rank; i++)
        if (i != axis) {
            perm[rows.rank] = i;
            rows.dim[rows.rank++] = s.dim[i];
            flat[0] *= s.dim[i];
        }
    perm[rows.rank] = axis;
    if (flat[1] < 2) {
        self->st = MPL_REFUSE(self->ctx,
                              "output '%.100s' has too few classes for cross-entropy (%" PRId64
                              "); give --loss OUTPUT:square or :scalar",
                              self->g->value_name[x], flat[1]);
        return 0;
    }
    if (rows.rank == 0)
        rows = (mpl_shape){1, {1}};
    labels = add_input(self, "labels", MPL_TYPE_i64, &rows);
    if (axis + 1 != s.rank)
        x = add(self, MPL_OP_transpose, "classes_last", 1, &x, 1, &MPL_INTS(perm, s.rank, perm));
    if (s.rank != 2)
        x = reshaped(self, "rows", x, 2, flat);
    if (rows.rank != 1)
        labels = reshaped(self, "labels.rows", labels, 1, flat);
    return add(self, MPL_OP_softmax_cross_entropy, "loss", 2, (mpl_value[]){x, labels}, 0, NULL);
}

static mpl_value square(builder *self, mpl_value y)
{
    const mpl_shape s = self->g->value_shape[y];
    mpl_value targets = add_input(self, "targets", (mpl_type)self->g->value_type[y], &s), apart,
              product;

    apart = add(self, MPL_OP_sub, "apart", 2, (mpl_value[]){y, targets}, 0, NULL);
    product = add(self, MPL_OP_mul, "squared", 2, (mpl_value[]){apart, apart}, 0, NULL);
    return add(self, MPL_OP_reduce_mean, "loss", 1, &product, 1, &MPL_INT(keepdims, 0));
}

static mpl_value scalar(builder *self, mpl_value y)
{
    uint64_t n = 0;

    mpl_shape_count(&self->g->value_shape[y], &n);
    if (n != 1)
        self->st = MPL_REFUSE(self->ctx,
                              "--loss: output '%.100s' has %" PRIu64 " elements; a scalar has one",
                              self->g->value_name[y], n);
    return self->g->value_shape[y].rank == 0 ? y : reshaped(self, "loss", y, 0, NULL);
}

/* Makes *graph the graph of its loss: output y, or what a merged softmax reads, through `how`. */
static mpl_status add_loss(mpl_ctx *ctx, mpl_graph **graph, mpl_value y, kind how)
{
    mpl_op softmax = how == CROSS_ENTROPY ? softmax_of(*graph, y) : MPL_NONE;
    mpl_graph *g = *graph;
    uint32_t rank = g->value_shape[y].rank;
    int64_t axis = rank >= 4 ? 1 : (int64_t)rank - 1;
    builder b = {.ctx = ctx};
    mpl_value loss;

    if (how == CROSS_ENTROPY && rank == 0)
        return MPL_REFUSE(ctx,
                          "output '%.100s' is a single number, no classes: --loss %.100s:scalar",
                          g->value_name[y], g->value_name[y]);
    if (softmax != MPL_NONE) {
        axis = mpl_attr_int(g, softmax, MPL_ATTR_axis, -1);
        y = g->op_in[g->op_in_begin[softmax]];
        axis += axis < 0 ? g->value_shape[y].rank : 0;
    }
    g->n_outputs = 1;
    g->output[0] = y;
    MPL_PASS(mpl_graph_prune(ctx, graph));
    b.g = g = *graph;
    y = g->output[0];
    g->n_outputs = 0;
    if (g->value_role[y] == MPL_OUTPUT)
        g->value_role[y] = MPL_TEMPORARY;
    loss = how == CROSS_ENTROPY ? cross_entropy(&b, y, (uint32_t)axis)
           : how == SQUARE      ? square(&b, y)
                                : scalar(&b, y);
    MPL_PASS(b.st);
    MPL_PASS(mpl_graph_add_output(ctx, g, loss));
    return mpl_graph_finish(ctx, g);
}

/* ---- what is trained ---- */

enum { NOT_READ, ADDEND, WEIGHT }; /* how a value is read; the greater one counts */

static uint8_t read_as(const mpl_graph *g, mpl_op op, uint32_t i)
{
    switch (g->op_kind[op]) {
    case MPL_OP_matmul:
    case MPL_OP_gemm:
        return WEIGHT;
    case MPL_OP_conv:
    case MPL_OP_conv_transpose:
    case MPL_OP_prelu:
        return i >= 1 ? WEIGHT : NOT_READ;
    case MPL_OP_batch_norm:
    case MPL_OP_layer_norm:
    case MPL_OP_instance_norm:
    case MPL_OP_group_norm:
    case MPL_OP_rms_norm:
        return i == 1 || i == 2 ? WEIGHT : NOT_READ;
    case MPL_OP_gather:
        return i == 0 ? WEIGHT : NOT_READ;
    case MPL_OP_add:
    case MPL_OP_sub:
    case MPL_OP_mul:
    case MPL_OP_div:
    case MPL_OP_sum:
        return ADDEND;
    default:
        return NOT_READ;
    }
}

/* Whether the operation only moves elements of its input 0, or joins its inputs. */
static bool is_move(const mpl_graph *g, mpl_op op)
{
    return mpl_may_be_view(g, op) || g->op_kind[op] == MPL_OP_transpose ||
           g->op_kind[op] == MPL_OP_expand || g->op_kind[op] == MPL_OP_concat ||
           g->op_kind[op] == MPL_OP_cast;
}

/* Fills how[n_values]. Operations follow what they read, so one pass backwards is enough. */
static void find_reads(const mpl_graph *g, uint8_t *how)
{
    for (mpl_op op = g->n_ops; op-- > 0;) {
        uint8_t moved = NOT_READ;

        for (uint32_t i = 0; is_move(g, op) && i < mpl_op_n_out(g, op); i++)
            if (mpl_op_output(g, op, i) != MPL_NONE && how[mpl_op_output(g, op, i)] > moved)
                moved = how[mpl_op_output(g, op, i)];
        for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++) {
            mpl_value v = mpl_op_input(g, op, i);
            uint8_t read = is_move(g, op) ? moved : read_as(g, op, i);

            if (v != MPL_NONE && read > how[v])
                how[v] = read;
        }
    }
}

/* An addend or factor that is no single number and no mask. */
static bool is_bias(const mpl_graph *g, mpl_value v)
{
    const double mask = 1e4;
    uint64_t n = 0;

    mpl_shape_count(&g->value_shape[v], &n);
    for (uint64_t i = 0; g->value_data[v] != NULL && i < (g->value_splat[v] ? 1 : n); i++)
        if (!(fabs(mpl_get((mpl_type)g->value_type[v], g->value_data[v], (int64_t)i)) < mask))
            return false;
    return n > 1;
}

/* A floating weight that can be trained. */
static bool is_weight(const mpl_graph *g, mpl_value v)
{
    return g->value_role[v] == MPL_WEIGHT && mpl_is_float(g, v) && !mpl_is_bound(g, v) &&
           g->value_bytes[v] > 0 && !mpl_grad_is_statistic(g, v);
}

/* An input becomes a weight without data. */
static void promote(mpl_graph *g, mpl_value v)
{
    uint32_t at = 0;

    while (g->input[at] != v)
        at++;
    g->n_inputs--;
    memmove(g->input + at, g->input + at + 1, (g->n_inputs - at) * sizeof *g->input);
    g->value_role[v] = MPL_WEIGHT;
}

static mpl_status match(mpl_ctx *ctx, mpl_graph *g, const char *pattern, uint8_t *trained)
{
    uint32_t n = 0, others = 0;
    mpl_value named = mpl_graph_find(g, pattern);
    char names[500];

    if (named != MPL_NONE && g->value_role[named] == MPL_INPUT && mpl_is_float(g, named))
        promote(g, named);
    for (mpl_value v = 0; v < g->n_values; v++) {
        if (g->value_role[v] != MPL_WEIGHT || fnmatch(pattern, g->value_name[v], 0) != 0)
            continue;
        trained[v] |= is_weight(g, v);
        *(is_weight(g, v) ? &n : &others) += 1;
    }
    if (n > 0)
        return MPL_OK;
    name_values(g, g->n_values, NULL, is_weight, names, sizeof names);
    return MPL_REFUSE(ctx, "--trainable: '%.100s' matches %s; those are: %s", pattern,
                      others > 0 ? "weights, but none that can be trained (floats, no statistics)"
                                 : "no weight that the loss needs",
                      names[0] != '\0' ? names : "none");
}

static mpl_status match_all(mpl_ctx *ctx, mpl_graph *g, const char *patterns, uint8_t *trained)
{
    char one[400];
    const char *at = patterns;

    for (size_t n;; at += n + 1) {
        n = strcspn(at, ",");
        if (n == 0 || n >= sizeof one)
            return MPL_REFUSE(ctx, "--trainable: an empty or too long pattern in '%.200s'",
                              patterns);
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        MPL_PASS(match(ctx, g, one, trained));
        if (at[n] == '\0')
            return MPL_OK;
    }
}

static mpl_status choose(mpl_ctx *ctx, mpl_graph *g, const char *patterns, uint8_t *trained)
{
    if (patterns != NULL) {
        MPL_PASS(match_all(ctx, g, patterns, trained));
        return mpl_graph_finish(ctx, g);
    }
    find_reads(g, trained);
    for (mpl_value v = 0; v < g->n_values; v++)
        trained[v] =
            is_weight(g, v) && (trained[v] == WEIGHT || (trained[v] == ADDEND && is_bias(g, v)));
    return MPL_OK;
}

mpl_status mpl_graph_train(mpl_ctx *ctx, mpl_graph **graph, const mpl_train_options *options)
{
    mpl_status st = MPL_OK;
    mpl_autodiff_options autodiff = options->autodiff;
    mpl_graph *made = NULL;
    uint8_t *trained = NULL;
    mpl_value y = MPL_NONE;
    kind how = CROSS_ENTROPY;

    if ((*graph)->program) {
        MPL_TRY(mpl_tensor_ssa(ctx, *graph, MPL_SSA_BOXES, NULL, NULL, &made));
        mpl_graph_free(ctx, *graph);
        *graph = made, made = NULL;
    }
    MPL_TRY(options->loss != NULL ? named_output(ctx, *graph, options->loss, &y, &how)
                                  : only_output(ctx, *graph, &y));
    MPL_TRY(add_loss(ctx, graph, y, how));
    MPL_TRY(mpl_new(ctx, trained, (*graph)->n_values));
    MPL_TRY(choose(ctx, *graph, options->trainable, trained));
    autodiff.own_loss = true;
    autodiff.trained = trained;
    MPL_TRY(mpl_autodiff(ctx, *graph, &autodiff, &made));
    mpl_graph_free(ctx, *graph);
    *graph = made, made = NULL;
out:
    mpl_free(ctx, trained);
    mpl_graph_free(ctx, made);
    return st;
}
