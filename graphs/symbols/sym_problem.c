/* sym_problem.c -- the problem of a graph over a range. See sym_problem.h. */
#include "graphs/symbols/sym_problem.h"

#include "graphs/core/text.h"
#include "graphs/problem/alias.h"
#include "graphs/problem/derive/concats.h"
#include "graphs/problem/subset.h"

enum { MAX_HINTS = 64 };

typedef struct maker {
    mpl_ctx *ctx;
    const mpl_sym_graph *graph;
    const mpl_op *order;
    const mpl_problem_options *options;
    bool bounded;
    mpl_sym_problem *sp;
    mpl_problem **problem; /* [points] */
    mpl_value_map **map;   /* [points] */
    int64_t *size;         /* [points] */
} maker;

mpl_problem_options mpl_sym_options(const mpl_sym_problem *sp, const mpl_problem_options *options)
{
    mpl_problem_options o = *options;

    o.concat = MPL_CONCAT_AUTO;
    o.concat_shared = sp->shared;
    o.split_copied = sp->copied;
    return o;
}

static void drop_problems(maker *self)
{
    for (uint32_t i = 0; i < self->graph->n; i++) {
        if (self->problem != NULL)
            mpl_problem_free(self->ctx, self->problem[i]), self->problem[i] = NULL;
        if (self->map != NULL)
            mpl_value_map_free(self->ctx, self->map[i]), self->map[i] = NULL;
    }
}

/* ---- one structure ---- */

/* Whether the operands of `op` are boxes in both, or runs. */
static bool same_boxes(const mpl_graph *g, const mpl_value_map *a, const mpl_value_map *b,
                       mpl_op op)
{
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        if (g->op_in[i] != MPL_NONE &&
            mpl_value_strided(a, g->op_in[i]) != mpl_value_strided(b, g->op_in[i]))
            return false;
    return true;
}

/* How `op` treats its pieces or operands: the root of each output, and whether it runs. */
static bool same_views(const mpl_graph *g, const mpl_value_map *a, const mpl_value_map *b,
                       mpl_op op)
{
    bool same = a->op_nothing[op] == b->op_nothing[op];

    for (uint32_t i = 0; same && i < mpl_op_n_out(g, op); i++) {
        mpl_value v = mpl_op_output(g, op, i);

        same = v == MPL_NONE || a->value_root[v] == b->value_root[v];
    }
    return same;
}

/* Copies where views are not the same at all points. */
static bool settle(maker *self)
{
    const mpl_graph *g = self->graph->graph[0];
    bool changed = false;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        bool same = true, boxes = true, concat = g->op_kind[op] == MPL_OP_concat,
             split = g->op_kind[op] == MPL_OP_split || g->op_kind[op] == MPL_OP_slice;

        for (uint32_t i = 1; (concat || split) && i < self->graph->n; i++) {
            same = same && same_views(g, self->map[0], self->map[i], op);
            boxes = boxes && same_boxes(g, self->map[0], self->map[i], op);
        }
        if (!same && split && !self->sp->copied[op])
            self->sp->copied[op] = 1, changed = true;
        if (!(same && boxes) && concat && self->sp->shared[op] != 0) {
            self->sp->shared[op] = same && self->sp->shared[op] == 1 ? MPL_SHARE_BOXES : 0;
            changed = true;
        }
    }
    return changed;
}

/* The problem at each point, with one set of decisions that holds at all of them. */
static mpl_status derive(maker *self)
{
    do {
        const mpl_problem_options o = mpl_sym_options(self->sp, self->options);

        drop_problems(self);
        for (uint32_t i = 0; i < self->graph->n; i++)
            MPL_PASS(mpl_problem_from_graph(self->ctx, self->graph->graph[i], self->order, &o,
                                            &self->problem[i], &self->map[i]));
    } while (settle(self));
    return MPL_OK;
}

static mpl_status decide(maker *self)
{
    mpl_status st = MPL_OK;
    mpl_problem_options o = *self->options;
    mpl_concats *concats = NULL;
    uint32_t n = self->graph->graph[0]->n_ops;

    MPL_TRY(mpl_new(self->ctx, self->sp->copied, n));
    MPL_TRY(mpl_new(self->ctx, self->sp->shared, n));
    if (o.split_copied != NULL)
        memcpy(self->sp->copied, o.split_copied, n);
    MPL_TRY(mpl_concats_new(self->ctx, self->graph->graph[0], self->order, &o, &concats));
    if (o.concat != MPL_CONCAT_COPY)
        memcpy(self->sp->shared, concats->shared, n);
    MPL_TRY(derive(self));
out:
    mpl_concats_free(self->ctx, concats);
    return st;
}

/* ---- what differs ---- */

static bool has_pair(const mpl_problem *p, mpl_buffer in, mpl_buffer out, uint32_t step)
{
    for (uint32_t i = 0; i < p->n_in_place; i++)
        if (p->in_place_in[i] == in && p->in_place_out[i] == out && p->in_place_step[i] == step)
            return true;
    return false;
}

static bool same_gaps(const mpl_problem *a, const mpl_problem *b, mpl_buffer k)
{
    uint32_t i = a->gap_begin == NULL ? 0 : a->gap_begin[k],
             n = a->gap_begin == NULL ? 0 : a->gap_begin[k + 1] - i,
             j = b->gap_begin == NULL ? 0 : b->gap_begin[k];

    return n == (b->gap_begin == NULL ? 0 : b->gap_begin[k + 1] - j) &&
           (n == 0 || (memcmp(a->gap_from + i, b->gap_from + j, n * sizeof *a->gap_from) == 0 &&
                       memcmp(a->gap_to + i, b->gap_to + j, n * sizeof *a->gap_to) == 0));
}

static bool same_buffer(const mpl_problem *a, const mpl_problem *b, mpl_buffer k)
{
    return a->align[k] == b->align[k] && a->pool[k] == b->pool[k] && a->birth[k] == b->birth[k] &&
           a->death[k] == b->death[k] && same_gaps(a, b, k) &&
           (a->inside == NULL ? k : a->inside[k]) == (b->inside == NULL ? k : b->inside[k]) &&
           (a->fixed == NULL ? MPL_UNFIXED : a->fixed[k]) ==
               (b->fixed == NULL ? MPL_UNFIXED : b->fixed[k]);
}

static mpl_status compare_structure(mpl_ctx *ctx, const mpl_problem *a, const mpl_problem *b,
                                    const char *where)
{
    char text[24];

    if (a->n != b->n || a->n_pools != b->n_pools)
        return MPL_REFUSE(ctx, "%s: %u buffers, not %u as elsewhere", where, b->n, a->n);
    for (mpl_buffer k = 0; k < a->n; k++)
        if (!same_buffer(a, b, k))
            return MPL_REFUSE(
                ctx,
                "%s: buffer '%s' is needed at other steps, or lies elsewhere, than at "
                "other sizes",
                where, mpl_shown(mpl_buffer_label(b, k, text)));
    if ((a->before == NULL) != (b->before == NULL) ||
        (a->before != NULL && memcmp(a->before->row, b->before->row,
                                     (size_t)a->n * a->before->n_words * sizeof(uint64_t)) != 0))
        return MPL_REFUSE(ctx, "%s: other buffers exclude each other than at other sizes", where);
    return MPL_OK;
}

mpl_status mpl_sym_problem_compare(mpl_ctx *ctx, const mpl_problem *want, const mpl_problem *p,
                                   bool bounded, const char *where)
{
    char text[24];

    MPL_PASS(compare_structure(ctx, want, p, where));
    for (mpl_buffer k = 0; k < p->n; k++) {
        uint64_t at = p->inside_at == NULL ? 0 : p->inside_at[k],
                 want_at = want->inside_at == NULL ? 0 : want->inside_at[k];

        if (want->bytes[k] < p->bytes[k] || want_at != at ||
            (!bounded && want->bytes[k] != p->bytes[k]))
            return MPL_REFUSE(ctx,
                              "%s: buffer '%s' has %" PRIu64 " bytes at %" PRIu64
                              " of its storage, not %" PRIu64 " at %" PRIu64,
                              where, mpl_shown(mpl_buffer_label(p, k, text)), p->bytes[k], at,
                              want->bytes[k], want_at);
    }
    for (uint32_t i = 0; i < want->n_in_place; i++)
        if (!has_pair(p, want->in_place_in[i], want->in_place_out[i], want->in_place_step[i]))
            return MPL_REFUSE(ctx, "%s: '%s' may not overwrite an operand as it may elsewhere",
                              where, mpl_shown(mpl_buffer_label(p, want->in_place_out[i], text)));
    return MPL_OK;
}

static mpl_status compare_all(maker *self)
{
    mpl_status st = MPL_OK;
    char *where = NULL;

    for (uint32_t i = 1; i < self->graph->n; i++) {
        mpl_free(self->ctx, where), where = NULL;
        MPL_TRY(mpl_point_text(
            self->ctx, self->graph->exprs,
            self->graph->value + (size_t)i * mpl_exprs_n_symbols(self->graph->exprs), &where));
        MPL_TRY(compare_structure(self->ctx, self->problem[0], self->problem[i], where));
    }
out:
    mpl_free(self->ctx, where);
    return st;
}

/* Pairs that all readings have and whose sizes are proved to fit. */
static void keep_pairs(maker *self)
{
    mpl_problem *p = self->sp->at;
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_in_place; i++) {
        mpl_buffer in = p->in_place_in[i], out = p->in_place_out[i];
        uint32_t step = p->in_place_step[i];
        bool all = true;

        for (uint32_t k = 0; all && k < self->graph->n; k++)
            all = k == 0 || has_pair(self->problem[k], in, out, step);
        if (all &&
            !mpl_expr_at_most(self->sp->exprs, self->sp->bytes[out], self->sp->bytes[in], NULL))
            self->sp->n_unproved++;
        else if (all) {
            p->in_place_in[n] = in, p->in_place_out[n] = out;
            p->in_place_step[n++] = step;
        }
    }
    p->n_in_place = n;
}

/* ---- sizes ---- */

static mpl_status no_size(maker *self, mpl_buffer b, const char *what, mpl_expr *out)
{
    int64_t most = 0;
    char text[256], label[24];

    for (uint32_t i = 0; i < self->graph->n; i++)
        most = self->size[i] > most ? self->size[i] : most;
    snprintf(text, sizeof text, "buffer '%.120s': %s, up to %" PRId64 " bytes",
             mpl_buffer_label(self->sp->at, b, label), what, most);
    if (!self->bounded)
        return MPL_REFUSE(self->ctx, "%s, is no expression that is known", mpl_shown(text));
    if (self->sp->n_bounded++ == 0)
        MPL_PASS(mpl_copy_text(self->ctx, self->sp->bounded, text));
    return mpl_expr_const(self->ctx, self->sp->exprs, most, out);
}

/* Ends of the parts of a family before b, as they are and aligned. */
static mpl_status ends_before(maker *self, mpl_buffer b, uint32_t *n, mpl_expr *hint)
{
    const mpl_sym_problem *sp = self->sp;

    *n = 0;
    for (mpl_buffer k = sp->at->inside[b]; k < b && *n + 2 <= MAX_HINTS; k++) {
        mpl_expr aligned;

        if (sp->at->inside[k] != sp->at->inside[b])
            continue;
        MPL_PASS(mpl_expr_align_up(self->ctx, sp->exprs, sp->bytes[k], sp->at->align[k], &aligned));
        MPL_PASS(mpl_expr_add(self->ctx, sp->exprs, sp->inside_at[k], sp->bytes[k], &hint[(*n)++]));
        MPL_PASS(mpl_expr_add(self->ctx, sp->exprs, sp->inside_at[k], aligned, &hint[(*n)++]));
    }
    for (uint32_t i = 0; i < *n; i++)
        MPL_PASS(mpl_fit_learn(self->ctx, self->graph->fit, hint[i]));
    return MPL_OK;
}

static mpl_status find_sizes(maker *self, mpl_buffer b)
{
    mpl_sym_problem *sp = self->sp;
    mpl_expr hint[MAX_HINTS];
    uint32_t n_hints = 0;
    bool found;

    for (uint32_t i = 0; i < self->graph->n; i++)
        self->size[i] = (int64_t)self->problem[i]->bytes[b];
    MPL_PASS(mpl_fit_find(self->ctx, self->graph->fit, self->size, 0, NULL, &found, &sp->bytes[b]));
    if (!found)
        MPL_PASS(no_size(self, b, "its size", &sp->bytes[b]));
    if (sp->inside_at == NULL || sp->at->inside[b] == b)
        return MPL_OK;
    for (uint32_t i = 0; i < self->graph->n; i++)
        self->size[i] = (int64_t)self->problem[i]->inside_at[b];
    MPL_PASS(ends_before(self, b, &n_hints, hint));
    MPL_PASS(mpl_fit_find(self->ctx, self->graph->fit, self->size, n_hints, hint, &found,
                          &sp->inside_at[b]));
    return found ? MPL_OK : no_size(self, b, "its place in its storage", &sp->inside_at[b]);
}

static mpl_status make(maker *self)
{
    mpl_sym_problem *sp = self->sp;

    if (self->options->op_workspace_bytes != NULL)
        return MPL_REFUSE(self->ctx,
                          "workspaces over a range of sizes are not planned: what a backend "
                          "asks for at one size says nothing of another");
    MPL_PASS(mpl_new(self->ctx, self->problem, self->graph->n));
    MPL_PASS(mpl_new(self->ctx, self->map, self->graph->n));
    MPL_PASS(mpl_new(self->ctx, self->size, self->graph->n));
    MPL_PASS(decide(self));
    MPL_PASS(compare_all(self));
    sp->at = self->problem[0];
    MPL_PASS(mpl_new(self->ctx, sp->bytes, sp->at->n));
    if (sp->at->inside != NULL)
        MPL_PASS(mpl_new(self->ctx, sp->inside_at, sp->at->n));
    for (mpl_buffer b = 0; b < sp->at->n; b++)
        MPL_PASS(find_sizes(self, b));
    keep_pairs(self);
    self->problem[0] = NULL; /* sp->at owns it */
    return MPL_OK;
}

mpl_status mpl_sym_problem_new(mpl_ctx *ctx, const mpl_sym_graph *graph, const mpl_op *order,
                               const mpl_problem_options *options, bool bounded,
                               mpl_sym_problem **out)
{
    mpl_status st = MPL_OK;
    maker m = {.ctx = ctx, .graph = graph, .order = order, .options = options, .bounded = bounded};

    MPL_TRY(mpl_new(ctx, m.sp, 1));
    m.sp->exprs = graph->exprs;
    m.sp->structure = mpl_sym_structure(graph->graph[0]);
    m.sp->n_ops = graph->graph[0]->n_ops;
    m.sp->n_bounded = graph->n_bounded;
    if (graph->bounded != NULL)
        MPL_TRY(mpl_copy_text(ctx, m.sp->bounded, graph->bounded));
    MPL_TRY(make(&m));
    *out = m.sp, m.sp = NULL;
out:
    if (m.sp != NULL && m.problem != NULL && m.sp->at == m.problem[0])
        m.sp->at = NULL;
    drop_problems(&m);
    mpl_free_each(ctx, m.problem, m.map, m.size);
    mpl_sym_problem_free(ctx, m.sp);
    return st;
}

void mpl_sym_problem_free(mpl_ctx *ctx, mpl_sym_problem *sp)
{
    if (sp == NULL)
        return;
    mpl_problem_free(ctx, sp->at);
    mpl_free_each(ctx, sp->bytes, sp->inside_at, sp->bounded, sp->shared, sp->copied, sp);
}

/* ---- at a shape ---- */

static mpl_status evaluate(mpl_ctx *ctx, const mpl_sym_problem *sp, const int64_t *value,
                           mpl_problem *p)
{
    for (mpl_buffer b = 0; b < p->n; b++) {
        int64_t bytes, at = 0;
        char text[24];

        if (!mpl_expr_eval(sp->exprs, sp->bytes[b], value, &bytes) || bytes < 1 ||
            (sp->inside_at != NULL &&
             (!mpl_expr_eval(sp->exprs, sp->inside_at[b], value, &at) || at < 0)))
            return MPL_REFUSE(ctx, "buffer '%s' has no size there",
                              mpl_shown(mpl_buffer_label(p, b, text)));
        p->bytes[b] = (uint64_t)bytes;
        if (p->inside_at != NULL)
            p->inside_at[b] = (uint64_t)at;
    }
    return MPL_OK;
}

mpl_status mpl_sym_problem_at(mpl_ctx *ctx, const mpl_sym_problem *sp, const int64_t *value,
                              mpl_problem **out)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;
    uint32_t n = sp->at->n, *begin = NULL, *item = NULL;
    const unsigned all =
        MPL_KEEP_POOLS | MPL_KEEP_ORDER | MPL_KEEP_PAIRS | MPL_KEEP_FAMILIES | MPL_KEEP_ACCESS;

    if (!mpl_point_allowed(sp->exprs, value))
        return MPL_REFUSE(ctx, "these sizes are not in the range");
    MPL_TRY(mpl_new(ctx, begin, n + 1));
    MPL_TRY(mpl_new(ctx, item, n));
    for (uint32_t i = 0; i < n; i++)
        begin[i + 1] = i + 1, item[i] = i;
    MPL_TRY(mpl_problem_subset(ctx, sp->at, &(mpl_members){n, begin, item}, all, NULL, &p));
    MPL_TRY(evaluate(ctx, sp, value, p));
    *out = p, p = NULL;
out:
    mpl_problem_free(ctx, p);
    mpl_free_each(ctx, begin, item);
    return st;
}
