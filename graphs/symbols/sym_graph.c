/* sym_graph.c -- reads a graph at several points and expresses its dims. See sym_graph.h. */
#include "graphs/symbols/sym_graph.h"

#include "graphs/core/text.h"

enum { MAX_HINTS = 96, MORE_POINTS = 3, MANY = 97 };

/* ---- structure ---- */

static uint64_t hash_u32(uint64_t hash, const uint32_t *item, size_t n)
{
    return mpl_hash(mpl_hash(hash, &n, sizeof n), item, n * sizeof *item);
}

uint64_t mpl_sym_structure(const mpl_graph *g)
{
    uint64_t hash = MPL_HASH_SEED;

    hash = mpl_hash(hash, g->op_kind, g->n_ops * sizeof *g->op_kind);
    hash = hash_u32(hash, g->op_in_begin, (size_t)g->n_ops + 1);
    hash = hash_u32(hash, g->op_in, g->op_in_begin[g->n_ops]);
    hash = hash_u32(hash, g->op_out_begin, (size_t)g->n_ops + 1);
    hash = hash_u32(hash, g->op_out, g->op_out_begin[g->n_ops]);
    hash = hash_u32(hash, g->op_block, g->n_ops);
    hash = hash_u32(hash, g->input, g->n_inputs);
    hash = hash_u32(hash, g->output, g->n_outputs);
    hash = mpl_hash(hash, g->value_type, g->n_values);
    return mpl_hash(hash, g->value_role, g->n_values);
}

static bool same_operands(const mpl_graph *g, const mpl_graph *h, mpl_op op)
{
    uint32_t n_in = mpl_op_n_in(g, op), n_out = mpl_op_n_out(g, op);

    return g->op_kind[op] == h->op_kind[op] && n_in == mpl_op_n_in(h, op) &&
           n_out == mpl_op_n_out(h, op) && g->op_block[op] == h->op_block[op] &&
           memcmp(g->op_in + g->op_in_begin[op], h->op_in + h->op_in_begin[op],
                  n_in * sizeof *g->op_in) == 0 &&
           memcmp(g->op_out + g->op_out_begin[op], h->op_out + h->op_out_begin[op],
                  n_out * sizeof *g->op_out) == 0;
}

mpl_status mpl_sym_compare(mpl_ctx *ctx, const mpl_graph *g, const mpl_graph *h, const char *where)
{
    mpl_op op = 0;

    while (op < g->n_ops && op < h->n_ops && same_operands(g, h, op))
        op++;
    if (op < g->n_ops && op < h->n_ops)
        return MPL_REFUSE(ctx, "%s: other operations than elsewhere, from '%s' (%s, not %s) on",
                          where, mpl_shown(h->op_name[op]), mpl_op_table[h->op_kind[op]].name,
                          mpl_op_table[g->op_kind[op]].name);
    if (g->n_ops != h->n_ops)
        return MPL_REFUSE(ctx, "%s: %u operations, not %u", where, h->n_ops, g->n_ops);
    for (mpl_value v = 0; v < g->n_values && v < h->n_values; v++)
        if (g->value_shape[v].rank != h->value_shape[v].rank ||
            g->value_type[v] != h->value_type[v] || g->value_role[v] != h->value_role[v])
            return MPL_REFUSE(ctx, "%s: '%s' has another type or rank than elsewhere", where,
                              mpl_shown(h->value_name[v]));
    return mpl_sym_structure(g) == mpl_sym_structure(h)
               ? MPL_OK
               : MPL_REFUSE(ctx, "%s: other inputs or outputs than elsewhere", where);
}

/* ---- readings ---- */

/* Fewer than MANY of each count, where the relations allow that: small graphs are read faster.
 * Point 0 and the corners are large. */
static void make_small(const mpl_exprs *exprs, int64_t *value)
{
    int64_t small[MPL_MAX_SYMBOLS];
    uint32_t n = mpl_exprs_n_symbols(exprs);

    for (uint32_t i = 0; i < n; i++) {
        const mpl_symbol *symbol = mpl_exprs_symbol(exprs, i);

        small[i] = symbol->first + (value[i] - symbol->first) / symbol->step % MANY * symbol->step;
    }
    if (mpl_point_allowed(exprs, small))
        memcpy(value, small, n * sizeof *value);
}

static mpl_status choose_points(mpl_ctx *ctx, mpl_sym_graph *graph, const int64_t *also)
{
    uint32_t n = mpl_exprs_n_symbols(graph->exprs), at = 0, bits = n < 3 ? n : 3,
             n_random = mpl_fit_points(n) + MORE_POINTS;
    mpl_rng rng;

    mpl_rng_init(&rng, 1);
    graph->n = n_random + (1u << bits) + (also != NULL);
    MPL_PASS(mpl_new(ctx, graph->value, (size_t)graph->n * n));
    for (; at < n_random; at++) {
        MPL_PASS(mpl_point_draw(ctx, graph->exprs, &rng, graph->value + (size_t)at * n));
        if (at > 0)
            make_small(graph->exprs, graph->value + (size_t)at * n);
    }
    for (uint64_t set = 0; set < 1u << bits; set++) {
        uint64_t high = set | (set >> (bits > 0 ? bits - 1 : 0) & 1 ? ~UINT64_C(7) : 0);

        MPL_PASS(mpl_point_corner(ctx, graph->exprs, high, graph->value + (size_t)at++ * n));
    }
    if (also != NULL)
        memcpy(graph->value + (size_t)at * n, also, n * sizeof *also);
    return MPL_OK;
}

static mpl_status read_all(mpl_ctx *ctx, mpl_sym_graph *graph, const mpl_sym_reader *reader)
{
    mpl_status st = MPL_OK;
    char *where = NULL;

    MPL_TRY(mpl_new(ctx, graph->graph, graph->n));
    for (uint32_t i = 0; i < graph->n; i++) {
        const int64_t *value = graph->value + (size_t)i * mpl_exprs_n_symbols(graph->exprs);

        MPL_TRY(reader->read(ctx, reader->arg, graph->exprs, value, &graph->graph[i]));
        mpl_free(ctx, where);
        MPL_TRY(mpl_point_text(ctx, graph->exprs, value, &where));
        MPL_TRY(mpl_sym_compare(ctx, graph->graph[0], graph->graph[i], where));
    }
out:
    mpl_free(ctx, where);
    return st;
}

/* ---- dims ---- */

typedef struct inferrer {
    mpl_ctx *ctx;
    mpl_sym_graph *graph;
    const mpl_graph *g; /* at point 0 */
    bool bounded;
    uint8_t *done; /* [n_values] */
    int64_t *size; /* [points] */
    mpl_expr hint[MAX_HINTS];
    uint32_t n_hints;
} inferrer;

static void add_hint(inferrer *self, mpl_expr e)
{
    int64_t constant;

    if (self->n_hints == MAX_HINTS || mpl_expr_is_const(self->graph->exprs, e, &constant))
        return;
    for (uint32_t i = 0; i < self->n_hints; i++)
        if (self->hint[i] == e)
            return;
    self->hint[self->n_hints++] = e;
}

/* Dims of an operation's inputs; products of neighbouring ones (reshape); sums of the same one of
 * all inputs (concat). */
static mpl_status add_hints(inferrer *self, mpl_op op)
{
    const mpl_sym_graph *graph = self->graph;
    mpl_expr sum[MPL_MAX_RANK] = {0}, product;

    self->n_hints = 0;
    for (uint32_t i = 0; i < mpl_op_n_in(self->g, op); i++) {
        mpl_value v = mpl_op_input(self->g, op, i);
        uint32_t rank = v == MPL_NONE ? 0 : self->g->value_shape[v].rank;

        for (uint32_t k = 0; k < rank; k++) {
            add_hint(self, graph->dim[graph->dim_begin[v] + k]);
            MPL_PASS(mpl_expr_add(self->ctx, graph->exprs, sum[k],
                                  graph->dim[graph->dim_begin[v] + k], &sum[k]));
        }
        for (uint32_t k = 0; k < rank; k++) {
            product = graph->dim[graph->dim_begin[v] + k];
            for (uint32_t j = k + 1; j < rank; j++) {
                MPL_PASS(mpl_expr_mul(self->ctx, graph->exprs, product,
                                      graph->dim[graph->dim_begin[v] + j], &product));
                add_hint(self, product);
            }
        }
    }
    for (uint32_t k = 0; k < MPL_MAX_RANK; k++)
        add_hint(self, sum[k]);
    return MPL_OK;
}

/* What no operation makes may round a symbol. */
static mpl_status hint_symbols(inferrer *self)
{
    self->n_hints = 0;
    for (uint32_t i = 0; i < mpl_exprs_n_symbols(self->graph->exprs); i++) {
        mpl_expr e;

        MPL_PASS(mpl_expr_of_symbol(self->ctx, self->graph->exprs, i, &e));
        add_hint(self, e);
    }
    return MPL_OK;
}

/* No expression was found: refused with the node, or bounded by the most. */
static mpl_status no_expression(inferrer *self, mpl_op op, mpl_value v, uint32_t k, mpl_expr *out)
{
    const mpl_graph *g = self->g;
    int64_t least = self->size[0], most = self->size[0];
    char text[256];

    for (uint32_t i = 1; i < self->graph->n; i++) {
        least = self->size[i] < least ? self->size[i] : least;
        most = self->size[i] > most ? self->size[i] : most;
    }
    snprintf(text, sizeof text, "'%.80s' (%s): dim %u of '%.80s', %" PRId64 " to %" PRId64,
             op == MPL_NONE ? g->name : g->op_name[op],
             op == MPL_NONE ? "no operation" : mpl_op_table[g->op_kind[op]].name, k,
             g->value_name[v], least, most);
    if (!self->bounded)
        return MPL_REFUSE(self->ctx, "%s, is no expression of the operation's sizes that is known",
                          mpl_shown(text));
    if (self->graph->n_bounded++ == 0)
        MPL_PASS(mpl_copy_text(self->ctx, self->graph->bounded, text));
    return mpl_expr_const(self->ctx, self->graph->exprs, most, out);
}

/* Whether e is what was read of the dim at every point. */
static bool is_read(const inferrer *self, mpl_expr e)
{
    for (uint32_t i = 0; i < self->graph->n; i++) {
        const int64_t *value =
            self->graph->value + (size_t)i * mpl_exprs_n_symbols(self->graph->exprs);
        int64_t got;

        if (!mpl_expr_eval(self->graph->exprs, e, value, &got) || got != self->size[i])
            return false;
    }
    return true;
}

/* Dims of output i by the operator's rule; *known: there is one, and it says what was read. */
static mpl_status rule_of(inferrer *self, mpl_op op, uint32_t i, mpl_expr *dim, bool *known)
{
    mpl_sym_graph *graph = self->graph;
    const mpl_shape *shape = &self->g->value_shape[mpl_op_output(self->g, op, i)];
    mpl_rule_call call = {self->ctx,     graph->exprs,     graph->fit,     graph->n,
                          graph->graph,  graph->dim_begin, graph->dim,     self->done,
                          self->n_hints, self->hint,       graph->n_leaves};
    uint32_t rank = 0;

    MPL_PASS(mpl_rule_dims(&call, op, i, dim, &rank, known));
    *known = *known && rank == shape->rank;
    graph->n_leaves = *known ? call.n_leaves : graph->n_leaves;
    return MPL_OK;
}

/* A result whose dims were fitted. */
static mpl_status count_fitted(inferrer *self, mpl_op op, mpl_value v)
{
    char text[200];

    if (self->graph->n_fitted++ > 0)
        return MPL_OK;
    snprintf(text, sizeof text, "'%.80s' (%s) of '%.80s'", self->g->value_name[v],
             mpl_op_table[self->g->op_kind[op]].name, self->g->op_name[op]);
    return mpl_copy_text(self->ctx, self->graph->fitted, text);
}

/* Expresses the dims of a value, which is output `i` of `op` (MPL_NONE: of no operation): as its
 * rule says, in the shorter form where the fitted one is proved to be equal; else as fitted. */
static mpl_status infer_value(inferrer *self, mpl_op op, uint32_t i, mpl_value v)
{
    mpl_sym_graph *graph = self->graph;
    mpl_expr by_rule[MPL_MAX_RANK] = {0};
    bool known = false, found;

    if (self->done[v])
        return MPL_OK;
    if (op != MPL_NONE)
        MPL_PASS(rule_of(self, op, i, by_rule, &known));
    self->done[v] = 1;
    for (uint32_t k = 0; k < self->g->value_shape[v].rank; k++) {
        mpl_expr *dim = &graph->dim[graph->dim_begin[v] + k], e = by_rule[k];

        for (uint32_t j = 0; j < graph->n; j++)
            self->size[j] = graph->graph[j]->value_shape[v].dim[k];
        known = known && is_read(self, e);
        MPL_PASS(mpl_fit_find(self->ctx, graph->fit, self->size, self->n_hints, self->hint, &found,
                              dim));
        if (known && !(found && (*dim == e || (mpl_expr_at_most(graph->exprs, *dim, e, NULL) &&
                                               mpl_expr_at_most(graph->exprs, e, *dim, NULL))))) {
            *dim = e;
            MPL_PASS(mpl_fit_learn(self->ctx, graph->fit, e));
        } else if (!found) {
            MPL_PASS(no_expression(self, op, v, k, dim));
        }
        add_hint(self, *dim);
    }
    if (op != MPL_NONE && known)
        graph->n_ruled++;
    return op != MPL_NONE && !known ? count_fitted(self, op, v) : MPL_OK;
}

/* Bytes of a value; what its bytes at the points say as well, unless a dim is a bound. */
static mpl_status infer_bytes(inferrer *self, mpl_value v)
{
    mpl_sym_graph *graph = self->graph;
    mpl_expr bytes, bits;

    MPL_PASS(mpl_expr_const(self->ctx, graph->exprs, (int64_t)mpl_type_bits(self->g->value_type[v]),
                            &bytes));
    for (uint32_t k = graph->dim_begin[v]; k < graph->dim_begin[v + 1]; k++)
        MPL_PASS(mpl_expr_mul(self->ctx, graph->exprs, bytes, graph->dim[k], &bytes));
    bits = bytes;
    MPL_PASS(mpl_expr_ceil_div(self->ctx, graph->exprs, bits, 8, &graph->bytes[v]));
    return mpl_fit_learn(self->ctx, graph->fit, graph->bytes[v]);
}

static mpl_status infer(inferrer *self)
{
    const mpl_graph *g = self->g;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        MPL_PASS(hint_symbols(self));
        for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
            if (mpl_op_input(g, op, i) != MPL_NONE)
                MPL_PASS(infer_value(self, MPL_NONE, 0, mpl_op_input(g, op, i)));
        MPL_PASS(add_hints(self, op));
        for (uint32_t i = 0; i < mpl_op_n_out(g, op); i++)
            if (mpl_op_output(g, op, i) != MPL_NONE)
                MPL_PASS(infer_value(self, op, i, mpl_op_output(g, op, i)));
    }
    MPL_PASS(hint_symbols(self));
    for (mpl_value v = 0; v < g->n_values; v++) {
        MPL_PASS(infer_value(self, MPL_NONE, 0, v));
        MPL_PASS(infer_bytes(self, v));
    }
    return MPL_OK;
}

static mpl_status infer_all(mpl_ctx *ctx, mpl_sym_graph *graph, bool bounded)
{
    mpl_status st = MPL_OK;
    inferrer f = {.ctx = ctx, .graph = graph, .g = graph->graph[0], .bounded = bounded};
    uint32_t n = f.g->n_values;

    MPL_TRY(mpl_new(ctx, f.done, n));
    MPL_TRY(mpl_new(ctx, f.size, graph->n));
    MPL_TRY(mpl_new(ctx, graph->dim_begin, n + 1));
    MPL_TRY(mpl_new(ctx, graph->bytes, n));
    for (mpl_value v = 0; v < n; v++)
        graph->dim_begin[v + 1] = graph->dim_begin[v] + f.g->value_shape[v].rank;
    MPL_TRY(mpl_new(ctx, graph->dim, graph->dim_begin[n]));
    MPL_TRY(infer(&f));
out:
    mpl_free_each(ctx, f.done, f.size);
    return st;
}

mpl_status mpl_sym_graph_new(mpl_ctx *ctx, mpl_exprs *exprs, const mpl_sym_reader *reader,
                             const int64_t *also, bool bounded, mpl_sym_graph **out)
{
    mpl_status st = MPL_OK;
    mpl_sym_graph *graph = NULL;

    MPL_TRY(mpl_new(ctx, graph, 1));
    graph->exprs = exprs;
    MPL_TRY(choose_points(ctx, graph, also));
    MPL_TRY(read_all(ctx, graph, reader));
    MPL_TRY(mpl_fit_new(ctx, exprs, graph->n, graph->value, &graph->fit));
    MPL_TRY(infer_all(ctx, graph, bounded));
    *out = graph, graph = NULL;
out:
    mpl_sym_graph_free(ctx, graph);
    return st;
}

void mpl_sym_graph_free(mpl_ctx *ctx, mpl_sym_graph *graph)
{
    if (graph == NULL)
        return;
    for (uint32_t i = 0; graph->graph != NULL && i < graph->n; i++)
        mpl_graph_free(ctx, graph->graph[i]);
    mpl_fit_free(ctx, graph->fit);
    mpl_free_each(ctx, graph->value, graph->graph, graph->dim_begin, graph->dim, graph->bytes,
                  graph->bounded, graph->fitted, graph);
}
