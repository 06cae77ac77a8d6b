/* incremental.c -- appends a second evaluation of what depends on changed inputs. See
 * incremental.h.
 *
 * Idea     Owl's computation graph evaluates again only what an assignment invalidates (P.
 *          Vandenhove, "Functional Design of Computation Graph"). It excludes nodes that may be
 *          needed again from sharing, one by one. Here both evaluations form one graph, so that
 *          orders, planners, the verifier and every backend need no special case.
 * Updates  Weights are overwritten in place. Updates that depend on the change run only in the
 * second
 *          evaluation, after all readers of the old contents in both. In the first, batch norm then
 *          moves no running statistics. Weights end as after one evaluation with the new
 *          contents.
 * Blocks   A loop or branch is one unit with its blocks: if anything of it reads what depends on a
 *          changed input, all of it runs again; if not, its results are kept. */
#include "graphs/passes/incremental.h"

#include "graphs/passes/copy.h"

typedef struct twice {
    mpl_ctx *ctx;
    mpl_graph *g, *to;
    bool *changed;             /* [values] a changed input, or what depends on one */
    bool *kept;                /* [values] of the first evaluation, read by the second */
    bool *again;               /* [ops] evaluated again */
    mpl_op *unit;              /* [ops] the outermost operation that it is part of, or itself */
    mpl_op *owner;             /* [blocks] the operation that owns it */
    uint32_t *block;           /* [blocks] in `to`, of the latest copy */
    mpl_value *first, *second; /* [values] in `to` */
    mpl_incremental_facts facts;
} twice;

static mpl_status check(const twice *self)
{
    const mpl_graph *g = self->g;

    for (mpl_op op = 0; op < g->n_ops; op++)
        if ((mpl_op_table[g->op_kind[op]].traits & MPL_PROGRAM) != 0)
            return MPL_REFUSE(self->ctx, "graph '%s' is a program; make SSA of it first", g->name);
    return MPL_OK;
}

/* The operations of a block come before its owner; outermost ones follow each other. */
static void find_units(twice *self)
{
    const mpl_graph *g = self->g;
    mpl_op unit = MPL_NONE;

    for (mpl_op op = g->n_ops; op-- > 0;) {
        unit = g->op_block[op] == 0 ? op : unit;
        self->unit[op] = unit;
        for (uint32_t i = g->op_body_begin[op]; i < g->op_body_begin[op + 1]; i++)
            self->owner[g->op_body[i]] = op;
    }
}

static mpl_status mark_input(twice *self, const char *name)
{
    const mpl_graph *g = self->g;
    uint32_t i = 0;

    while (i < g->n_inputs && strcmp(g->value_name[g->input[i]], name) != 0)
        i++;
    if (i == g->n_inputs)
        return MPL_REFUSE(self->ctx, "graph '%s' has no input '%s'; its first is '%s'", g->name,
                          name, g->n_inputs > 0 ? g->value_name[g->input[0]] : "none");
    if (self->changed[g->input[i]])
        return MPL_REFUSE(self->ctx, "input '%s' is named twice", name);
    self->changed[g->input[i]] = true;
    return MPL_OK;
}

/* Whether the operation, or a result of its blocks, reads what is changed. */
static bool reads_changed(const twice *self, mpl_op op)
{
    const mpl_graph *g = self->g;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        if (g->op_in[i] != MPL_NONE && self->changed[g->op_in[i]])
            return true;
    for (uint32_t i = g->op_body_begin[op]; i < g->op_body_begin[op + 1]; i++)
        for (uint32_t k = 0; k < g->block_n_results[g->op_body[i]]; k++) {
            mpl_value v = g->block_result[g->block_result_begin[g->op_body[i]] + k];

            if (v != MPL_NONE && self->changed[v])
                return true;
        }
    return false;
}

/* The root of v through views; v itself if it is no view. */
static mpl_value root_of(const mpl_graph *g, mpl_value v)
{
    while (g->value_op[v] != MPL_NONE &&
           (mpl_op_table[g->op_kind[g->value_op[v]]].traits & MPL_VIEW) != 0)
        v = g->op_in[g->op_in_begin[g->value_op[v]]];
    return v;
}

static void keep(twice *self, mpl_value v)
{
    const mpl_graph *g = self->g;

    v = v != MPL_NONE && !self->changed[v] ? root_of(g, v) : MPL_NONE;
    if (v == MPL_NONE || g->value_op[v] == MPL_NONE || g->op_block[g->value_op[v]] != 0 ||
        self->kept[v])
        return;
    self->kept[v] = true;
    self->facts.kept_bytes += g->value_bytes[v];
}

/* Marks an operation that is evaluated again, and what it reads of the first evaluation. */
static void mark_again(twice *self, mpl_op op)
{
    const mpl_graph *g = self->g;

    self->again[op] = true;
    self->facts.n_again++;
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++)
        keep(self, g->op_in[i]);
    for (uint32_t i = g->op_body_begin[op]; i < g->op_body_begin[op + 1]; i++)
        for (uint32_t k = 0; k < g->block_n_results[g->op_body[i]]; k++)
            keep(self, g->block_result[g->block_result_begin[g->op_body[i]] + k]);
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1] && self->unit[op] == op; i++)
        if (g->op_out[i] != MPL_NONE)
            self->changed[g->op_out[i]] = true;
}

/* Units follow those that they need, so one pass is enough. */
static mpl_status mark(twice *self)
{
    const mpl_graph *g = self->g;
    bool touched = false;

    self->facts.n_ops = g->n_ops;
    for (mpl_op op = 0, first = 0; op < g->n_ops; op++) {
        touched = touched || reads_changed(self, op);
        if (self->unit[op] != op)
            continue;
        for (; first <= op; first++) {
            if (touched && first < op && mpl_n_updates((mpl_op_kind)g->op_kind[first]) > 0)
                return MPL_REFUSE(self->ctx,
                                  "graph '%s': '%s' updates a weight within a loop or branch; it "
                                  "cannot run a second time",
                                  g->name, g->op_name[first]);
            if (touched)
                mark_again(self, first);
        }
        touched = false;
    }
    return MPL_OK;
}

static mpl_status joined(mpl_ctx *ctx, const char *name, const char *behind, char **out)
{
    size_t n = strlen(name) + strlen(behind) + 1;

    MPL_PASS(mpl_new(ctx, *out, n));
    snprintf(*out, n, "%s%s", name, behind);
    return MPL_OK;
}

/* The name of the second copy: a number follows where the graph has that name already, as for what
 * a loop of its own runs again. Outputs are found by theirs, so that they get none. */
static mpl_status name_again(const twice *self, const char *name, bool is_output, char **out)
{
    char behind[sizeof MPL_AGAIN + 12] = MPL_AGAIN;

    for (uint32_t k = 2;; k++) {
        MPL_PASS(joined(self->ctx, name, behind, out));
        if (is_output || (mpl_graph_find(self->to, *out) == MPL_NONE &&
                          mpl_graph_find_block(self->to, *out) == MPL_NONE))
            return MPL_OK;
        mpl_free(self->ctx, *out);
        *out = NULL;
        snprintf(behind, sizeof behind, MPL_AGAIN "%" PRIu32, k);
    }
}

/* Whether the operation is an update that depends on the change. */
static bool is_deferred(const twice *self, mpl_op op)
{
    return mpl_n_updates((mpl_op_kind)self->g->op_kind[op]) > 0 && self->again[op];
}

/* Number of inputs that the first evaluation reads. */
static uint32_t n_read_first(const twice *self, mpl_op op)
{
    if (!is_deferred(self, op))
        return mpl_n_read(self->g, op);
    return self->g->op_kind[op] == MPL_OP_batch_norm_train ? 3 : 0;
}

/* Copies batch norm of the training form without moving its statistics. */
static mpl_status copy_norm(twice *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    const mpl_value *from_in = g->op_in + g->op_in_begin[op],
                    *from_out = g->op_out + g->op_out_begin[op];
    const mpl_attr epsilon = MPL_FLOAT(epsilon, mpl_attr_float(g, op, MPL_ATTR_epsilon, 1e-5));
    mpl_value in[3], out[3];
    const char *name[3];

    for (int i = 0; i < 3; i++) {
        in[i] = self->first[from_in[i]];
        name[i] = from_out[i] != MPL_NONE ? g->value_name[from_out[i]] : NULL;
    }
    MPL_PASS(mpl_graph_add_op(self->ctx, self->to, MPL_OP_batch_norm_again, g->op_name[op], 3, in,
                              1, &epsilon, 3, name, out));
    for (int i = 0; i < 3; i++)
        if (from_out[i] != MPL_NONE)
            self->first[from_out[i]] = out[i];
    return MPL_OK;
}

static mpl_status copy_first_op(twice *self, mpl_op op)
{
    const mpl_graph *g = self->g;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + n_read_first(self, op); i++)
        if (g->op_in[i] != MPL_NONE && self->first[g->op_in[i]] == MPL_NONE)
            return MPL_REFUSE(
                self->ctx,
                "graph '%s': operation '%s' reads what '%s' will be; its weight is updated "
                "once, by the second evaluation",
                g->name, g->op_name[op], g->value_name[g->op_in[i]]);
    if (!is_deferred(self, op))
        MPL_PASS(mpl_copy_op(self->ctx, g, op, self->to, self->first, self->block));
    else if (g->op_kind[op] == MPL_OP_batch_norm_train)
        MPL_PASS(copy_norm(self, op));
    return MPL_OK;
}

static mpl_status copy_first(twice *self)
{
    mpl_walk walk = mpl_walk_begin();
    mpl_item item;

    while ((item = mpl_walk_next(self->g, &walk)) != MPL_ITEM_END) {
        if (item == MPL_ITEM_OP)
            MPL_PASS(copy_first_op(self, walk.op));
        else if (item == MPL_ITEM_VALUE)
            MPL_PASS(
                mpl_copy_value(self->ctx, self->g, walk.value, self->to, &self->first[walk.value]));
        else if (item == MPL_ITEM_OPEN)
            MPL_PASS(mpl_copy_open(self->ctx, self->g, walk.block, self->to, self->first,
                                   &self->block[walk.block]));
        else
            MPL_PASS(mpl_copy_close(self->ctx, self->g, walk.block, self->to, self->first));
    }
    memcpy(self->second, self->first, self->g->n_values * sizeof *self->second);
    return MPL_OK;
}

static mpl_status add_changed_inputs(twice *self)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    char *name = NULL;

    for (uint32_t i = 0; i < g->n_inputs; i++) {
        mpl_value v = g->input[i];

        if (!self->changed[v])
            continue;
        MPL_TRY(joined(self->ctx, g->value_name[v], MPL_CHANGED, &name));
        MPL_TRY(mpl_graph_add_value(self->ctx, self->to, name, MPL_INPUT,
                                    (mpl_type)g->value_type[v], &g->value_shape[v],
                                    &self->second[v]));
        mpl_free(self->ctx, name);
        name = NULL;
    }
out:
    mpl_free(self->ctx, name);
    return st;
}

/* Whether the first evaluation of `op` reads what update `by` overwrites. */
static bool reads_updated(const twice *self, mpl_op op, mpl_op by)
{
    const mpl_graph *g = self->g;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + n_read_first(self, op); i++)
        for (uint32_t k = 0;
             g->op_in[i] != MPL_NONE && k < g->op_out_begin[by + 1] - g->op_out_begin[by]; k++)
            if (mpl_updated(g, by, k) != MPL_NONE &&
                mpl_updated(g, by, k) == mpl_shown_source(g, g->op_in[i]))
                return true;
    return false;
}

/* If `update` is one, fills in[] with a first result of each operation that is evaluated twice and
 * reads what the second update overwrites. */
static uint32_t await_first(const twice *self, mpl_op update, mpl_value *in)
{
    const mpl_graph *g = self->g;
    uint32_t n_in = 0;

    for (mpl_op op = 0; op < g->n_ops && mpl_n_updates((mpl_op_kind)g->op_kind[update]) > 0; op++) {
        uint32_t i = g->op_out_begin[self->unit[op]];

        if (!self->again[op] || !reads_updated(self, op, update))
            continue;
        while (g->op_out[i] == MPL_NONE)
            i++;
        if (n_in == 0 || in[n_in - 1] != self->first[g->op_out[i]]) /* once for a unit */
            in[n_in++] = self->first[g->op_out[i]];
    }
    return n_in;
}

/* Copies the operation once more, on second values. */
static mpl_status copy_again(twice *self, mpl_op op)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = self->ctx;
    const mpl_graph *g = self->g;
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op], n_more;
    const mpl_value *from_out = g->op_out + g->op_out_begin[op];
    mpl_value *more = NULL;
    char *name = NULL, **out_name = NULL;

    MPL_TRY(mpl_new(ctx, more, mpl_n_updates((mpl_op_kind)g->op_kind[op]) > 0 ? g->n_ops : 0));
    MPL_TRY(mpl_new(ctx, out_name, n_out));
    MPL_TRY(joined(ctx, g->op_name[op], MPL_AGAIN, &name));
    for (uint32_t i = 0; i < n_out; i++)
        if (from_out[i] != MPL_NONE)
            MPL_TRY(name_again(self, g->value_name[from_out[i]],
                               g->value_role[from_out[i]] == MPL_OUTPUT, &out_name[i]));
    n_more = await_first(self, op, more);
    MPL_TRY(mpl_copy_op_as(ctx, g, op, self->to, self->second, self->block,
                           &(mpl_copy_as){.name = name,
                                          .out_name = (const char *const *)out_name,
                                          .n_more = n_more,
                                          .more = more}));
out:
    for (uint32_t i = 0; out_name != NULL && i < n_out; i++)
        mpl_free(ctx, out_name[i]);
    mpl_free_each(ctx, out_name, name, more);
    return st;
}

/* Opens a block once more, with parameters of their own names. */
static mpl_status open_again(twice *self, uint32_t b)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    char *name = NULL;

    MPL_TRY(name_again(self, g->block_name[b], false, &name));
    MPL_TRY(mpl_graph_open_block(self->ctx, self->to, name, &self->block[b]));
    for (uint32_t i = 0; i < g->block_n_params[b]; i++) {
        mpl_value v = g->block_param[g->block_param_begin[b] + i];

        mpl_free(self->ctx, name);
        name = NULL;
        MPL_TRY(name_again(self, g->value_name[v], false, &name));
        MPL_TRY(mpl_graph_add_param(self->ctx, self->to, name, (mpl_type)g->value_type[v],
                                    &g->value_shape[v], &self->second[v]));
    }
out:
    mpl_free(self->ctx, name);
    return st;
}

static mpl_status copy_second(twice *self)
{
    mpl_walk walk = mpl_walk_begin();
    mpl_item item;

    while ((item = mpl_walk_next(self->g, &walk)) != MPL_ITEM_END) {
        if (item == MPL_ITEM_OP && self->again[walk.op])
            MPL_PASS(copy_again(self, walk.op));
        else if (item == MPL_ITEM_OPEN && self->again[self->owner[walk.block]])
            MPL_PASS(open_again(self, walk.block));
        else if (item == MPL_ITEM_CLOSE && self->again[self->owner[walk.block]])
            MPL_PASS(mpl_copy_close(self->ctx, self->g, walk.block, self->to, self->second));
    }
    return MPL_OK;
}

static mpl_status add_outputs(twice *self)
{
    const mpl_graph *g = self->g;

    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (self->first[g->output[i]] != MPL_NONE)
            MPL_PASS(mpl_graph_add_output(self->ctx, self->to, self->first[g->output[i]]));
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        self->kept[g->output[i]] = false; /* it is an output already */
        if (self->changed[g->output[i]])
            MPL_PASS(mpl_graph_add_output(self->ctx, self->to, self->second[g->output[i]]));
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        if (self->kept[v])
            MPL_PASS(mpl_graph_add_output(self->ctx, self->to, self->first[v]));
    return MPL_OK;
}

mpl_status mpl_graph_incremental(mpl_ctx *ctx, mpl_graph **graph, uint32_t n,
                                 const char *const *changed, mpl_incremental_facts *facts)
{
    mpl_status st = MPL_OK;
    mpl_graph *g = *graph;
    twice t = {.ctx = ctx, .g = g};

    MPL_TRY(mpl_new_each(ctx, g->n_values, t.changed, t.kept, t.first, t.second));
    memset(t.first, 0xff, g->n_values * sizeof *t.first);
    MPL_TRY(mpl_graph_new(ctx, g->name, &t.to));
    MPL_TRY(check(&t));
    MPL_TRY(mpl_new_each(ctx, g->n_ops, t.again, t.unit));
    MPL_TRY(mpl_new_each(ctx, g->n_blocks, t.owner, t.block));
    find_units(&t);
    for (uint32_t i = 0; i < n; i++)
        MPL_TRY(mark_input(&t, changed[i]));
    MPL_TRY(mark(&t));
    MPL_TRY(copy_first(&t));
    MPL_TRY(add_changed_inputs(&t));
    MPL_TRY(copy_second(&t));
    MPL_TRY(add_outputs(&t));
    MPL_TRY(mpl_graph_finish(ctx, t.to));
    if (facts != NULL)
        *facts = t.facts;
    mpl_graph_free(ctx, g);
    *graph = t.to, t.to = NULL;
out:
    mpl_graph_free(ctx, t.to);
    mpl_free_each(ctx, t.changed, t.kept, t.first, t.second, t.again, t.unit, t.owner, t.block);
    return st;
}
