/* model_storage.c -- the memory model of a graph: which bytes its operations make and need, with
 * concats and splits that are decided, or for all decisions at once. See model.h.
 *
 * Idea     Storage is cut into parts (cuts.h); a value lies in a list of them. In the relaxed model
 *          the result of a concat has the parts of its operands, wherever they lie: those bytes are
 *          somewhere as long as a value that contains them is read. A copy only adds to them.
 * Source   this project */
#include "graphs/orders/model/model_priv.h"

#include "graphs/problem/cuts.h"
#include "graphs/problem/derive/concats.h"
#include "graphs/problem/liveness.h"

static const uint64_t MOST = INT64_MAX / 4; /* the sum of three such numbers does not overflow */

enum { READ = 1, KEPT };

typedef struct source {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_problem_options *options;
    bool relaxed, copy_splits; /* copy_splits: relaxed over splits that copy, too */
    mpl_concats *concats;      /* shared[op]: it shares; relaxed: it may */
    mpl_alias alias;           /* relaxed: with all concats copied */
    mpl_alias apart;           /* relaxed: with all splits copied, too */
    mpl_cuts cuts;
    uint32_t *begin, *count; /* [n_values] into item: the parts that a value lies in */
    size_t n_items, cap;
    uint32_t *item;
    uint64_t *piece_rest; /* [cuts.n] of the values that end in a part [byte] */
    uint8_t *how;         /* [cuts.n] READ: an operation reads it; KEPT: it stays to the end */
    uint8_t *pinned;      /* [n_values] of a root: takes no planned memory */
    uint8_t *tight;       /* [n_values] of a root: it may lie in a box, without padding */
    uint32_t *id;         /* [cuts.n] buffer of a part, or MPL_NONE */
    mpl_order_arcs arcs;
} source;

static uint64_t slots(const source *self, uint64_t bytes)
{
    return (bytes + self->options->align - 1) & ~(uint64_t)(self->options->align - 1);
}

static uint64_t part_bytes(const source *self, uint32_t part)
{
    return self->tight[self->cuts.root[part]] ? self->cuts.bytes[part]
                                              : slots(self, self->cuts.bytes[part]);
}

/* Bytes of a part's last slot that stay unused. A copied piece ends where its own storage ends. */
static uint64_t part_rest(const source *self, uint32_t part)
{
    return mpl_max_u64(part_bytes(self, part) - self->cuts.bytes[part], self->piece_rest[part]);
}

static void find_rests(source *self)
{
    for (mpl_value v = 0; v < self->g->n_values; v++)
        for (uint32_t k = 0; k < self->count[v] && self->alias.root[v] != v; k++) {
            uint64_t *rest = &self->piece_rest[self->item[self->begin[v] + k]];

            *rest =
                mpl_max_u64(*rest, slots(self, self->g->value_bytes[v]) - self->g->value_bytes[v]);
        }
}

/* ---- storage ---- */

/* Whether it is undecided if the operands of `op` lie in its result. */
static bool is_open(const source *self, mpl_op op)
{
    return self->relaxed && op != MPL_NONE && self->concats->shared[op];
}

/* Whether the concat `op` may share if all splits copy: its operands are made by operations and
 * differ, and neither they nor the result are outputs of the graph. Their order in the result does
 * not matter. */
static bool may_share(const source *self, mpl_op op, const uint8_t *is_output)
{
    const mpl_graph *g = self->g;
    mpl_value out = mpl_op_output(g, op, 0);

    if (g->op_kind[op] != MPL_OP_concat || out == MPL_NONE || is_output[self->apart.root[out]])
        return false;
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
        mpl_value root = self->apart.root[g->op_in[i]];

        if (g->value_op[root] == MPL_NONE || is_output[root])
            return false;
        for (uint32_t k = g->op_in_begin[op]; k < i; k++)
            if (self->apart.root[g->op_in[k]] == root)
                return false;
    }
    return true;
}

/* Which concats may share depends on which splits copy: takes the concats that share under some
 * choice. If no split copies, a result that contains a pinned output takes no planned memory. Such
 * a result stays decided; only its operands may lie in a box. */
static mpl_status open_concats(source *self)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint8_t *is_output = NULL, *pinned = NULL; /* roots, where all splits copy, and where none does
                                                */

    MPL_TRY(mpl_new_each(self->ctx, g->n_values, is_output, pinned));
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        is_output[self->apart.root[g->output[i]]] = 1;
        pinned[self->alias.root[g->output[i]]] = self->options->pin_outputs;
    }
    for (mpl_op op = 0; op < g->n_ops; op++) {
        if (!may_share(self, op, is_output))
            continue;
        if (!pinned[self->alias.root[mpl_op_output(g, op, 0)]])
            self->concats->shared[op] = 1;
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            self->tight[self->alias.root[g->op_in[i]]] = 1;
    }
out:
    mpl_free_each(self->ctx, is_output, pinned);
    return st;
}

static mpl_status find_storage(source *self)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    const mpl_problem_options *options = self->options;
    mpl_alias_options how = {options->views, options->align,
                             NULL,           options->in_place && options->pin_outputs,
                             options->boxes, options->split_copied};
    uint8_t *all = NULL;

    if (self->relaxed) {
        MPL_TRY(mpl_new(self->ctx, all, g->n_ops));
        memset(all, 1, g->n_ops);
        how.copied = all;
        MPL_TRY(mpl_alias_new(self->ctx, g, &how, &self->apart));
        how.copied = NULL;
    } else if (self->concats->n > 0) {
        how.shared = self->concats->shared;
    }
    MPL_TRY(mpl_alias_new(self->ctx, g, &how, &self->alias));
    if (self->copy_splits && options->concat != MPL_CONCAT_COPY && options->views &&
        g->n_blocks == 1)
        MPL_TRY(open_concats(self));
    MPL_TRY(mpl_cuts_new(self->ctx, g, &self->alias,
                         self->relaxed       ? MPL_CUT_ALL
                         : options->in_place ? MPL_CUT_NOT_WRITTEN
                                             : MPL_CUT_MADE,
                         options->align, &self->cuts));
out:
    mpl_free(self->ctx, all);
    return st;
}

static mpl_status add_items(source *self, mpl_value v, uint32_t first, uint32_t n)
{
    MPL_PASS(mpl_reserve(self->ctx, self->item, self->cap, self->n_items + n));
    for (uint32_t k = 0; k < n; k++)
        self->item[self->n_items++] = first + k;
    self->count[v] += n;
    return MPL_OK;
}

/* The parts of an undecided concat's result are those of its operands. */
static mpl_status join_parts(source *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    mpl_value out = mpl_op_output(g, op, 0);

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
        mpl_value v = g->op_in[i];

        MPL_PASS(mpl_reserve(self->ctx, self->item, self->cap, self->n_items + self->count[v]));
        for (uint32_t k = 0; k < self->count[v]; k++)
            self->item[self->n_items++] = self->item[self->begin[v] + k];
        self->count[out] += self->count[v];
        self->tight[self->alias.root[v]] = 1;
    }
    return MPL_OK;
}

/* Whether v is a copied piece that could lie in an output if its split or slice copied. */
static bool may_lie_in_output(const source *self, mpl_value v)
{
    return self->relaxed && self->apart.root[v] != self->alias.root[v] && self->apart.root[v] != v;
}

/* Lists the parts of v. A part of an undecided concat's result may need no bytes of its own. */
static mpl_status find_parts(source *self, mpl_value v)
{
    mpl_value root = self->alias.root[v];

    self->begin[v] = (uint32_t)self->n_items;
    if (may_lie_in_output(self, v))
        return MPL_OK;
    if (is_open(self, self->g->value_op[root])) {
        if (v == root) {
            MPL_PASS(join_parts(self, self->g->value_op[v]));
        } else if (self->g->value_bytes[v] == self->g->value_bytes[root]) {
            self->begin[v] = self->begin[root];
            self->count[v] = self->count[root];
        }
        return MPL_OK;
    }
    if (mpl_cuts_cut(&self->cuts, &self->alias, v))
        MPL_PASS(add_items(self, v, self->cuts.first[v], self->cuts.count[v]));
    else
        MPL_PASS(add_items(self, v, self->cuts.first[root], self->cuts.count[root]));
    return MPL_OK;
}

/* Operands come before results, so their parts are known. */
static mpl_status find_all_parts(source *self)
{
    const mpl_graph *g = self->g;

    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_op[v] == MPL_NONE)
            MPL_PASS(find_parts(self, v));
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
            if (g->op_out[i] != MPL_NONE)
                MPL_PASS(find_parts(self, g->op_out[i]));
    return MPL_OK;
}

/* Whether `op` only renames storage, so that none has to exist while it runs. In an exact model
 * this holds only for storage that is cut into parts; live ranges, too, count operations on the
 * rest. */
static bool skips(const source *self, mpl_op op, mpl_value v)
{
    if (self->relaxed)
        return self->alias.nothing[op] || self->concats->shared[op];
    return self->alias.nothing[op] && mpl_cuts_cut(&self->cuts, &self->alias, v);
}

static void mark(source *self, mpl_value v, uint8_t how)
{
    for (uint32_t k = 0; k < self->count[v]; k++)
        self->how[self->item[self->begin[v] + k]] = how;
}

/* Leaves out storage in other pools; for an undecided concat, operands and result alike. */
static mpl_status leave_pools(source *self)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint8_t *part = NULL;

    if (self->options->own_pools == 0)
        goto out;
    MPL_TRY(mpl_new(self->ctx, part, g->n_values));
    mpl_graph_parts(g, part);
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = self->alias.root[v];

        if (part[v] != MPL_PART_NONE && (self->options->own_pools >> part[v] & 1) != 0 &&
            (root == v || g->value_role[root] != MPL_WEIGHT))
            self->pinned[root] = 1;
    }
    for (mpl_op op = g->n_ops; op-- > 0;)
        for (uint32_t i = g->op_in_begin[op]; is_open(self, op) && i < g->op_in_begin[op + 1]; i++)
            self->pinned[self->alias.root[g->op_in[i]]] |= self->pinned[mpl_op_output(g, op, 0)];
out:
    mpl_free(self->ctx, part);
    return st;
}

static mpl_status mark_roots(source *self)
{
    const mpl_graph *g = self->g;
    const mpl_problem_options *options = self->options;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++)
            if (g->op_in[i] != MPL_NONE && !skips(self, op, g->op_in[i]))
                mark(self, g->op_in[i], READ);
    for (mpl_value v = 0; v < g->n_values; v++) {
        if (g->value_role[v] == MPL_WEIGHT)
            mark(self, v, KEPT);
        self->pinned[v] = (g->value_role[v] == MPL_INPUT && options->pin_inputs) ||
                          (g->value_role[v] == MPL_WEIGHT && options->pin_weights) ||
                          g->value_bytes[v] == 0;
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        mark(self, g->output[i], KEPT);
        self->pinned[self->alias.root[g->output[i]]] |= options->pin_outputs;
    }
    return leave_pools(self);
}

/* ---- buffers ---- */

static mpl_status add_bytes(const source *self, const char *what, uint64_t bytes, uint64_t *sum)
{
    if (bytes > MOST || !mpl_add_bytes(*sum, bytes, sum) || *sum > MOST)
        return MPL_REFUSE(self->ctx, "the %s of '%.100s' together pass 2^61 bytes", what,
                          self->g->name);
    return MPL_OK;
}

/* Makes a buffer of each part that is read. An input that is neither pinned nor read needs bytes at
 * the first step only, whichever operation that is. It is left out, since bounds must hold for all
 * orders. */
static mpl_status add_buffers(source *self, mpl_order_model *model)
{
    const mpl_graph *g = self->g;
    uint64_t sum = 0;

    model->n_buffers = 0;
    for (uint32_t i = 0; i < self->cuts.n; i++) {
        mpl_value root = self->cuts.root[i];
        bool from_start = g->value_op[root] == MPL_NONE;

        self->id[i] = MPL_NONE;
        if (self->pinned[root] || (self->how[i] == 0 && from_start) ||
            is_open(self, g->value_op[root]))
            continue;
        MPL_PASS(add_bytes(self, "values",
                           self->cuts.bytes[i] > MOST ? MOST + 1 : part_bytes(self, i), &sum));
        if (self->how[i] == 0)
            continue;
        self->id[i] = model->n_buffers;
        model->bytes[model->n_buffers] = part_bytes(self, i);
        model->rest[model->n_buffers] = part_rest(self, i);
        model->kept[model->n_buffers] = self->how[i] == KEPT;
        model->from_start[model->n_buffers] = from_start;
        model->n_buffers++;
    }
    return MPL_OK;
}

static mpl_status add_workspaces(source *self, mpl_order_model *model)
{
    const uint64_t *bytes = self->options->op_workspace_bytes;
    uint64_t sum = 0;

    if (!self->options->plan_workspaces || self->g->n_blocks != 1 || bytes == NULL)
        return MPL_OK;
    for (mpl_op op = 0; op < self->g->n_ops; op++) {
        MPL_PASS(add_bytes(self, "workspaces", bytes[op] > MOST ? MOST + 1 : slots(self, bytes[op]),
                           &sum));
        model->extra[op] += slots(self, bytes[op]);
        model->extra_rest[op] =
            mpl_max_u64(model->extra_rest[op], slots(self, bytes[op]) - bytes[op]);
    }
    return MPL_OK;
}

/* Adds what `op` makes of v: buffers, and the bytes of parts that are never read. */
static mpl_status add_result(source *self, mpl_order_model *model, mpl_op op, mpl_value v)
{
    for (uint32_t k = 0; k < self->count[v]; k++) {
        uint32_t part = self->item[self->begin[v] + k], b = self->id[part];

        if (self->pinned[self->cuts.root[part]])
            continue;
        if (self->how[part] == 0) {
            model->extra[op] += part_bytes(self, part);
            model->extra_rest[op] = mpl_max_u64(model->extra_rest[op], part_rest(self, part));
        } else if (b != MPL_NONE && !model->from_start[b]) {
            MPL_PASS(mpl_order_add(self->ctx, &self->arcs.makers, b, op));
        }
    }
    return MPL_OK;
}

static mpl_status add_makers(source *self, mpl_order_model *model)
{
    const mpl_graph *g = self->g;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
            if (g->op_out[i] != MPL_NONE && !self->alias.nothing[op] && !is_open(self, op))
                MPL_PASS(add_result(self, model, op, g->op_out[i]));
    return MPL_OK;
}

/* ---- operations ---- */

/* The single part that `out`, which `op` makes, fills alone, or MPL_NONE. */
static uint32_t own_part(const source *self, mpl_op op, mpl_value out)
{
    if (self->alias.nothing[op] || self->count[out] != 1 ||
        (self->alias.root[out] != out && !mpl_cuts_cut(&self->cuts, &self->alias, out)))
        return MPL_NONE;
    return self->item[self->begin[out]];
}

/* Bytes of output 0 of `op` if it may overwrite an operand; else 0. */
static uint64_t bytes_to_save(const source *self, mpl_op op)
{
    mpl_value out = self->g->op_out_begin[op] < self->g->op_out_begin[op + 1]
                        ? self->g->op_out[self->g->op_out_begin[op]]
                        : MPL_NONE;
    uint64_t sum = 0;

    if (!self->options->in_place || out == MPL_NONE || self->pinned[self->alias.root[out]])
        return 0;
    if (!self->relaxed)
        return own_part(self, op, out) == MPL_NONE ? 0 : part_bytes(self, own_part(self, op, out));
    if (self->alias.nothing[op] || is_open(self, op) || self->apart.root[out] != out)
        return 0;
    for (uint32_t k = 0; k < self->count[out]; k++)
        sum += part_bytes(self, self->item[self->begin[out] + k]);
    return sum;
}

/* Whether output 0 of `op` may overwrite its input i, which lies in planned storage. */
static bool may_overwrite(const source *self, mpl_op op, uint32_t i)
{
    mpl_value v = mpl_op_input(self->g, op, i), out = mpl_op_output(self->g, op, 0);

    if (self->relaxed)
        return mpl_in_place_operand(self->g, self->apart.root, self->apart.offset, op, i);
    if (mpl_cuts_cut(&self->cuts, &self->alias, v))
        return self->alias.root[v] != self->alias.root[out] &&
               mpl_cuts_operand(self->g, &self->alias, &self->cuts, op, i);
    return !mpl_alias_strided(&self->alias, v) &&
           mpl_in_place_operand(self->g, self->alias.root, self->alias.offset, op, i);
}

/* Adds the way to write over v, or over those parts of it that are not kept. A single part must be
 * large enough. */
static mpl_status add_way(source *self, mpl_order_model *model, mpl_op op, mpl_value v)
{
    uint32_t way = model->n_ways;

    for (uint32_t k = 0; k < self->count[v]; k++) {
        uint32_t b = self->id[self->item[self->begin[v] + k]];

        if (b == MPL_NONE || model->kept[b] ||
            (!self->relaxed && model->bytes[b] < model->saves[op]))
            continue;
        MPL_PASS(mpl_order_add(self->ctx, &self->arcs.under, way, b));
        model->n_ways = way + 1;
    }
    if (model->n_ways > way)
        MPL_PASS(mpl_order_add(self->ctx, &self->arcs.ways, op, way));
    return MPL_OK;
}

static mpl_status add_operand(source *self, mpl_order_model *model, mpl_op op, uint32_t i)
{
    const mpl_graph *g = self->g;
    mpl_value v = g->op_in[g->op_in_begin[op] + i];

    if (v != MPL_NONE && g->value_op[v] != MPL_NONE)
        MPL_PASS(mpl_order_add(self->ctx, &self->arcs.before, op, g->value_op[v]));
    if (v == MPL_NONE || i >= mpl_n_read(g, op) || skips(self, op, v))
        return MPL_OK;
    for (uint32_t k = 0; k < self->count[v]; k++)
        if (self->id[self->item[self->begin[v] + k]] != MPL_NONE)
            MPL_PASS(mpl_order_add(self->ctx, &self->arcs.users,
                                   self->id[self->item[self->begin[v] + k]], op));
    if (model->saves[op] > 0 && may_overwrite(self, op, i))
        MPL_PASS(add_way(self, model, op, v));
    return MPL_OK;
}

static mpl_status add_operands(source *self, mpl_order_model *model)
{
    const mpl_graph *g = self->g;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        model->op[op] = op;
        model->saves[op] = bytes_to_save(self, op);
        for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
            MPL_PASS(add_operand(self, model, op, i));
    }
    return MPL_OK;
}

/* ---- the model ---- */

static mpl_status fill(source *self, mpl_order_model *model)
{
    MPL_PASS(add_buffers(self, model));
    MPL_PASS(add_workspaces(self, model));
    MPL_PASS(add_makers(self, model));
    MPL_PASS(add_operands(self, model));
    return mpl_order_model_finish(self->ctx, model, &self->arcs);
}

static void source_fini(source *self)
{
    void *const arrays[] = {self->begin,  self->count, self->item, self->how,
                            self->pinned, self->tight, self->id,   self->piece_rest};

    mpl_concats_free(self->ctx, self->concats);
    mpl_alias_free(self->ctx, &self->alias);
    mpl_alias_free(self->ctx, &self->apart);
    mpl_cuts_free(self->ctx, &self->cuts);
    MPL_FREE_ALL(self->ctx, arrays);
    mpl_order_arcs_fini(self->ctx, &self->arcs);
}

/* relaxed: over every choice of sharing; otherwise only where concats are undecided. */
static mpl_status make_model(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                             bool relaxed, mpl_order_model **out)
{
    mpl_status st = MPL_OK;
    mpl_problem_options o = options != NULL ? *options : mpl_problem_options_default();
    bool undecided = o.concat == MPL_CONCAT_AUTO && o.concat_shared == NULL;
    source s = {.ctx = ctx, .g = g, .options = &o};
    mpl_order_model *model = NULL;

    if (undecided)
        o.concat = MPL_CONCAT_SHARE;
    MPL_TRY(mpl_concats_new(ctx, g, NULL, &o, &s.concats));
    s.copy_splits = relaxed;
    s.relaxed = relaxed || (undecided && s.concats->n > 0);
    MPL_TRY(mpl_new(ctx, s.tight, g->n_values));
    MPL_TRY(find_storage(&s));
    MPL_TRY(mpl_new_each(ctx, g->n_values, s.begin, s.count));
    MPL_TRY(mpl_new_each(ctx, s.cuts.n, s.how, s.piece_rest));
    MPL_TRY(mpl_new(ctx, s.pinned, g->n_values));
    MPL_TRY(mpl_new(ctx, s.id, s.cuts.n));
    MPL_TRY(find_all_parts(&s));
    find_rests(&s);
    MPL_TRY(mark_roots(&s));
    MPL_TRY(mpl_order_model_alloc(ctx, g->n_ops, s.cuts.n, &model));
    model->relaxed = s.relaxed;
    MPL_TRY(fill(&s, model));
    *out = model, model = NULL;
out:
    mpl_order_model_free(ctx, model);
    source_fini(&s);
    return st;
}

mpl_status mpl_order_model_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                               mpl_order_model **out)
{
    return make_model(ctx, g, options, false, out);
}

mpl_status mpl_order_model_relaxed(mpl_ctx *ctx, const mpl_graph *g,
                                   const mpl_problem_options *options, mpl_order_model **out)
{
    return make_model(ctx, g, options, true, out);
}
