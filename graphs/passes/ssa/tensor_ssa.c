/* tensor_ssa.c -- step 1, the conversion of nodes to a graph, and the sequence of steps. See
 * passes.h. */
#include "graphs/passes/ssa/tensor_ssa_priv.h"

#include "graphs/passes/copy.h"

const char *const mpl_ssa_level_name[MPL_N_SSA_LEVELS] = {"copy", "views", "full", "boxes"};

/* Whether the level includes steps 2 and 3. */
static bool is_full(mpl_ssa_level level)
{
    return level == MPL_SSA_FULL || level == MPL_SSA_BOXES;
}
const char *const mpl_ssa_step_name[MPL_SSA_STEPS] = {"rewritten", "removed", "merged", "fused"};

/* ---- nodes ---- */

static mpl_status add_value(mpl_ssa *ssa, uint32_t node, mpl_value source, mpl_type type,
                            const mpl_shape *shape, uint32_t *out)
{
    MPL_PASS(mpl_reserve(ssa->ctx, ssa->value, ssa->value_cap, (size_t)ssa->n_values + 1));
    ssa->value[ssa->n_values] = (mpl_ssa_value){node, MPL_NONE, source, type, *shape, 0};
    *out = ssa->n_values++;
    return MPL_OK;
}

/* Adds a node with one output, named after `source`, with the given dims and the type of input
 * 0. */
static mpl_status add_node(mpl_ssa *ssa, mpl_op_kind kind, uint32_t n_in, const uint32_t *in,
                           const mpl_strided *box, mpl_value source, const mpl_shape *shape,
                           uint32_t *out)
{
    uint32_t node = ssa->n_nodes, made;

    MPL_PASS(mpl_reserve(ssa->ctx, ssa->node, ssa->node_cap, (size_t)node + 1));
    memset(&ssa->node[node], 0, sizeof *ssa->node);
    MPL_PASS(mpl_reserve(ssa->ctx, ssa->item, ssa->item_cap, (size_t)ssa->n_items + 1));
    MPL_PASS(add_value(ssa, node, source, ssa->value[in[0]].type, shape, &made));
    ssa->node[node].kind = kind;
    ssa->node[node].from = MPL_NONE;
    ssa->node[node].live = true;
    if (box != NULL)
        ssa->node[node].box = *box;
    ssa->node[node].out = ssa->n_items;
    ssa->node[node].n_out = 1;
    ssa->item[ssa->n_items++] = made;
    ssa->n_nodes++;
    MPL_PASS(mpl_ssa_set_in(ssa, node, n_in, in));
    *out = made;
    return MPL_OK;
}

static mpl_status add_access(mpl_ssa *ssa, uint32_t from, const mpl_strided *box, mpl_value source,
                             uint32_t *out)
{
    return add_node(ssa, MPL_OP_access, 1, &from, box, source, &box->shape, out);
}

static mpl_status add_assign(mpl_ssa *ssa, uint32_t to, uint32_t what, const mpl_strided *box,
                             mpl_value source, uint32_t *out)
{
    mpl_shape shape = ssa->value[to].shape;

    return add_node(ssa, MPL_OP_assign, 2, (const uint32_t[]){to, what}, box, source, &shape, out);
}

/* ---- step 1 ---- */

/* Contents of the program's values at the current operation. */
typedef struct rewriter {
    mpl_ssa *ssa;
    mpl_ssa_level level;
    uint32_t *now; /* [n_values] contents; MPL_NONE: not made yet */
    uint8_t *path; /* [n_values] 1: the written value or an ancestor of it */
} rewriter;

/* The value that the program reads as v. */
static mpl_status read_value(rewriter *self, mpl_value v, uint32_t *out)
{
    const mpl_views *views = self->ssa->views;

    if (self->now[v] == MPL_NONE) {
        uint32_t made;

        MPL_PASS(add_access(self->ssa, self->now[views->root[v]], &views->of_root[v], v, &made));
        if (self->level == MPL_SSA_COPY)
            return *out = made, MPL_OK;
        self->now[v] = made;
    }
    *out = self->now[v];
    return MPL_OK;
}

static mpl_status make_view(rewriter *self, mpl_value v)
{
    uint32_t made;

    if (is_full(self->level)) {
        MPL_PASS(add_access(self->ssa, self->now[self->ssa->views->parent[v]],
                            &self->ssa->views->of_parent[v], v, &made));
        self->now[v] = made;
    }
    return MPL_OK;
}

/* Whether each element of v occurs once in each of its ancestors. */
static bool stands_once(const mpl_views *views, mpl_value v)
{
    for (; views->parent[v] != MPL_NONE; v = views->parent[v])
        if (!mpl_strided_distinct(&views->of_parent[v]))
            return false;
    return true;
}

/* Makes `made` the contents of v: updates ancestors up to the root, then every other existing view
 * of it. If an ancestor repeats elements, writes directly to the root; the values between are
 * accessed anew. */
static mpl_status pass_up_and_down(rewriter *self, mpl_op op, mpl_value v, uint32_t made)
{
    const mpl_graph *g = self->ssa->g;
    const mpl_views *views = self->ssa->views;
    mpl_value root = views->root[v];

    memset(self->path, 0, g->n_values);
    self->now[v] = made;
    self->path[v] = 1;
    if (!stands_once(views, v)) {
        MPL_PASS(add_assign(self->ssa, self->now[root], made, &views->of_root[v], root,
                            &self->now[root]));
        self->path[root] = 1;
    }
    for (mpl_value child = v, parent; !self->path[root]; child = parent) {
        parent = views->parent[child];
        MPL_PASS(add_assign(self->ssa, self->now[parent], self->now[child],
                            &views->of_parent[child], parent, &made));
        self->now[parent] = made;
        self->path[parent] = 1;
    }
    for (mpl_value other = 0; other < g->n_values; other++) /* parents have lower ids */
        if (views->root[other] == root && !self->path[other] && g->value_op[other] != MPL_NONE &&
            g->value_op[other] < op)
            MPL_PASS(make_view(self, other));
    return MPL_OK;
}

/* The same where views are read from the root: all values but the root must be copied anew. */
static mpl_status write_root(rewriter *self, mpl_value v, uint32_t made)
{
    const mpl_views *views = self->ssa->views;
    mpl_value root = views->root[v];

    if (v != root)
        MPL_PASS(add_assign(self->ssa, self->now[root], made, &views->of_root[v], root, &made));
    for (mpl_value other = 0; other < self->ssa->g->n_values; other++)
        if (views->root[other] == root)
            self->now[other] = MPL_NONE;
    self->now[root] = made;
    return MPL_OK;
}

/* The operator whose result "X_into" writes. */
static mpl_op_kind kind_written(mpl_op_kind into)
{
    const char *name = mpl_op_table[into].name;
    char word[32] = "";
    mpl_op_kind kind = MPL_STEP_LOAD;
    bool found;

    memcpy(word, name, strlen(name) - strlen("_into"));
    found = mpl_op_find(word, &kind);
    mpl_assert(found);
    (void)found;
    return kind;
}

static mpl_status rewrite_write(rewriter *self, mpl_op op)
{
    const mpl_graph *g = self->ssa->g;
    mpl_value v = g->op_in[g->op_in_begin[op]];
    mpl_strided all = mpl_strided_all(&g->value_shape[v]);
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    uint32_t in[2], n_in = g->op_in_begin[op + 1] - g->op_in_begin[op], made;

    for (uint32_t i = n_in; i-- > 0;)
        MPL_PASS(read_value(self, g->op_in[g->op_in_begin[op] + i], &in[i]));
    if (kind == MPL_OP_copy_into)
        MPL_PASS(add_assign(self->ssa, in[0], in[1], &all, v, &made));
    else
        MPL_PASS(add_node(self->ssa, kind_written(kind), n_in, in, NULL, v, &all.shape, &made));
    return is_full(self->level) ? pass_up_and_down(self, op, v, made) : write_root(self, v, made);
}

/* Keeps an operation as it is. */
static mpl_status rewrite_other(rewriter *self, mpl_op op)
{
    mpl_status st = MPL_OK;
    mpl_ssa *ssa = self->ssa;
    const mpl_graph *g = ssa->g;
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op], node, made;
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op], *in = NULL;

    MPL_TRY(mpl_new(ssa->ctx, in, n_in));
    for (uint32_t i = 0; i < n_in; i++) {
        mpl_value v = g->op_in[g->op_in_begin[op] + i];

        in[i] = MPL_NONE;
        if (v != MPL_NONE)
            MPL_TRY(read_value(self, v, &in[i]));
    }
    node = ssa->n_nodes;
    MPL_TRY(mpl_reserve(ssa->ctx, ssa->node, ssa->node_cap, (size_t)node + 1));
    MPL_TRY(mpl_reserve(ssa->ctx, ssa->item, ssa->item_cap, (size_t)ssa->n_items + n_out));
    memset(&ssa->node[node], 0, sizeof *ssa->node);
    ssa->node[node].kind = (mpl_op_kind)g->op_kind[op];
    ssa->node[node].from = op;
    ssa->node[node].live = true;
    ssa->node[node].out = ssa->n_items;
    ssa->node[node].n_out = n_out;
    ssa->n_items += n_out;
    ssa->n_nodes++;
    for (uint32_t i = 0; i < n_out; i++) {
        mpl_value v = g->op_out[g->op_out_begin[op] + i];

        made = MPL_NONE;
        if (v != MPL_NONE) {
            MPL_TRY(add_value(ssa, node, v, (mpl_type)g->value_type[v], &g->value_shape[v], &made));
            self->now[v] = made;
        }
        ssa->item[ssa->node[node].out + i] = made;
    }
    MPL_TRY(mpl_ssa_set_in(ssa, node, n_in, in));
    /* The program's own access or assign brings its box. */
    if (ssa->node[node].kind == MPL_OP_access || ssa->node[node].kind == MPL_OP_assign)
        MPL_TRY(mpl_strided_of(ssa->ctx, g, op, &ssa->value[in[0]].shape, &ssa->node[node].box));
out:
    mpl_free(ssa->ctx, in);
    return st;
}

static bool is_view_op(const mpl_ssa *ssa, mpl_op op)
{
    for (uint32_t i = ssa->g->op_out_begin[op]; i < ssa->g->op_out_begin[op + 1]; i++)
        if (ssa->g->op_out[i] != MPL_NONE)
            return ssa->views->parent[ssa->g->op_out[i]] != MPL_NONE;
    return false;
}

static mpl_status rewrite(mpl_ssa *ssa, mpl_ssa_level level)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = ssa->g;
    rewriter r = {.ssa = ssa, .level = level};

    MPL_TRY(mpl_new_each(ssa->ctx, g->n_values, r.now, r.path));
    for (mpl_value v = 0; v < g->n_values; v++) {
        r.now[v] = MPL_NONE;
        if (g->value_op[v] == MPL_NONE)
            MPL_TRY(add_value(ssa, MPL_NONE, v, (mpl_type)g->value_type[v], &g->value_shape[v],
                              &r.now[v]));
    }
    for (mpl_op op = 0; op < g->n_ops; op++) {
        if ((mpl_op_table[g->op_kind[op]].traits & MPL_MUTATES) != 0) {
            MPL_TRY(rewrite_write(&r, op));
            ssa->facts->n_writes++;
        } else if (is_view_op(ssa, op)) {
            for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
                if (g->op_out[i] != MPL_NONE) {
                    MPL_TRY(make_view(&r, g->op_out[i]));
                    ssa->facts->n_views++;
                }
        } else {
            MPL_TRY(rewrite_other(&r, op));
        }
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        MPL_TRY(read_value(&r, g->output[i], &ssa->output[i]));
out:
    mpl_free_each(ssa->ctx, r.now, r.path);
    return st;
}

/* ---- the graph of the nodes ---- */

typedef struct emitter {
    mpl_ssa *ssa;
    mpl_graph *to;
    mpl_value *map;     /* [s->n_values] */
    uint32_t *versions; /* [g->n_values] names taken so far */
    char *name;         /* room for the longest name and a number */
} emitter;

/* A free name: the source's, or the source's with a number. */
static const char *fresh_name(emitter *self, mpl_value source)
{
    const char *name = self->ssa->g->value_name[source];

    if (self->versions[source] == 0) {
        self->versions[source] = 1;
        return name;
    }
    do
        sprintf(self->name, "%s.%" PRIu32, name, self->versions[source]++);
    while (mpl_graph_find(self->to, self->name) != MPL_NONE ||
           mpl_graph_find(self->ssa->g, self->name) != MPL_NONE);
    return self->name;
}

static mpl_status emit_given(emitter *self, uint32_t v)
{
    mpl_ctx *ctx = self->ssa->ctx;
    const mpl_graph *g = self->ssa->g;
    mpl_value from = self->ssa->value[v].source;
    const char *name = g->value_name[from];
    mpl_type type = (mpl_type)g->value_type[from];
    const mpl_shape *shape = &g->value_shape[from];
    bool bound = mpl_is_bound(g, from);

    self->versions[from]++;
    if (g->value_role[from] == MPL_WEIGHT && !bound && self->ssa->value[v].n_uses == 0)
        return MPL_OK;
    if (g->value_data[from] != NULL && !bound)
        return mpl_graph_add_const(ctx, self->to, name, type, shape, g->value_data[from],
                                   g->value_splat[from], &self->map[v]);
    MPL_PASS(mpl_graph_add_value(ctx, self->to, name,
                                 bound ? MPL_INPUT : (mpl_role)g->value_role[from], type, shape,
                                 &self->map[v]));
    if (bound)
        MPL_PASS(mpl_graph_bind_input(ctx, self->to, self->map[v], g->value_data[from]));
    return MPL_OK;
}

/* Adds an operation with one output; its inputs are in `in`. */
static mpl_status emit_one(emitter *self, const mpl_ssa_node *node, mpl_op_kind kind,
                           const mpl_value *in, uint32_t n_attr, const mpl_attr *attr)
{
    uint32_t v = mpl_ssa_out(self->ssa, node);
    const char *name = fresh_name(self, self->ssa->value[v].source);

    return mpl_graph_add_op(self->ssa->ctx, self->to, kind, name, node->n_in, in, n_attr, attr, 1,
                            &name, &self->map[v]);
}

static mpl_status emit_box(emitter *self, const mpl_ssa_node *node, const mpl_value *in)
{
    const mpl_strided *box = &node->box;
    const mpl_shape *from = &self->ssa->value[mpl_ssa_in(self->ssa, node, 0)].shape;
    bool whole = mpl_strided_whole(box, (uint64_t)mpl_count(from));
    mpl_attr shape = MPL_INTS(shape, box->shape.rank, box->shape.dim);
    mpl_attr attr[] = {MPL_INTS(dims, box->shape.rank, box->shape.dim),
                       MPL_INTS(strides, box->shape.rank, box->stride),
                       MPL_INT(offset, box->offset)};

    if (node->kind == MPL_OP_access && whole && mpl_count(from) > 0)
        return emit_one(self, node, MPL_OP_reshape, in, 1, &shape); /* takes no memory */
    return emit_one(self, node, node->kind, in, 3, attr);
}

static mpl_status emit_fused(emitter *self, const mpl_ssa_node *node, const mpl_value *in)
{
    const mpl_fused *fused = node->fused;
    uint32_t rank = fused->to.shape.rank, n = 0;
    int64_t loads[MPL_FUSED_LOADS * (MPL_MAX_RANK + 2)];
    char expr[MPL_FUSED_STEPS * 24] = "", *at = expr;

    for (uint32_t i = 0; i < fused->n_loads; i++) {
        loads[n++] = fused->load[i].input;
        loads[n++] = fused->load[i].from.offset;
        for (uint32_t k = 0; k < rank; k++)
            loads[n++] = fused->load[i].from.stride[k];
    }
    for (uint32_t i = 0; i < fused->n_steps; i++) {
        at += sprintf(at, i > 0 ? "," : "");
        if (fused->step[i].kind == MPL_STEP_LOAD)
            at += sprintf(at, "%" PRIu32, fused->step[i].of);
        else
            at += sprintf(at, "%s", mpl_op_table[fused->step[i].kind].name);
    }
    mpl_attr attr[] = {MPL_INTS(dims, rank, fused->to.shape.dim), MPL_INTS(loads, n, loads),
                       MPL_TEXT(expr, expr), MPL_INTS(strides, rank, fused->to.stride),
                       MPL_INT(offset, fused->to.offset)};
    return emit_one(self, node, MPL_OP_fused, in, in[0] != MPL_NONE ? 5 : 3, attr);
}

/* Adds an operation as the program has it. */
static mpl_status emit_copy(emitter *self, const mpl_ssa_node *node, const mpl_value *in)
{
    mpl_status st = MPL_OK;
    mpl_ssa *ssa = self->ssa;
    const mpl_graph *g = ssa->g;
    uint32_t n_attr;
    mpl_attr *attr = NULL;
    const char **name = NULL;
    char **store = NULL;
    mpl_value *out = NULL;

    MPL_TRY(mpl_copy_attrs(ssa->ctx, g, node->from, &n_attr, &attr));
    MPL_TRY(mpl_new_each(ssa->ctx, node->n_out, name, store, out));
    for (uint32_t i = 0; i < node->n_out; i++) {
        uint32_t v = ssa->item[node->out + i];

        if (v == MPL_NONE)
            continue;
        MPL_TRY(mpl_copy_text(ssa->ctx, store[i], fresh_name(self, ssa->value[v].source)));
        name[i] = store[i];
    }
    MPL_TRY(mpl_graph_add_op(ssa->ctx, self->to, node->kind,
                             node->from != MPL_NONE ? g->op_name[node->from] : name[0], node->n_in,
                             in, n_attr, attr, node->n_out, name, out));
    for (uint32_t i = 0; i < node->n_out; i++)
        if (ssa->item[node->out + i] != MPL_NONE)
            self->map[ssa->item[node->out + i]] = out[i];
out:
    for (uint32_t i = 0; i < node->n_out && store != NULL; i++)
        mpl_free(ssa->ctx, store[i]);
    mpl_free_each(ssa->ctx, store, attr, name, out);
    return st;
}

static mpl_status emit_node(emitter *self, const mpl_ssa_node *node)
{
    mpl_status st = MPL_OK;
    mpl_value *in = NULL;

    MPL_TRY(mpl_new(self->ssa->ctx, in, node->n_in));
    for (uint32_t i = 0; i < node->n_in; i++) {
        uint32_t v = mpl_ssa_in(self->ssa, node, i);

        in[i] = v == MPL_NONE ? MPL_NONE : self->map[v];
    }
    if (node->kind == MPL_OP_fused && node->fused != NULL)
        MPL_TRY(emit_fused(self, node, in));
    else if (node->kind == MPL_OP_access || node->kind == MPL_OP_assign)
        MPL_TRY(emit_box(self, node, in));
    else
        MPL_TRY(emit_copy(self, node, in));
out:
    mpl_free(self->ssa->ctx, in);
    return st;
}

static mpl_status emit(mpl_ssa *ssa, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    emitter e = {.ssa = ssa};
    size_t longest = 0;

    for (mpl_value v = 0; v < ssa->g->n_values; v++)
        longest = strlen(ssa->g->value_name[v]) > longest ? strlen(ssa->g->value_name[v]) : longest;
    MPL_TRY(mpl_new(ssa->ctx, e.name, longest + 16));
    MPL_TRY(mpl_new(ssa->ctx, e.map, ssa->n_values));
    MPL_TRY(mpl_new(ssa->ctx, e.versions, ssa->g->n_values));
    MPL_TRY(mpl_graph_new(ssa->ctx, ssa->g->name, &e.to));
    for (uint32_t v = 0; v < ssa->n_values; v++)
        if (ssa->value[v].node == MPL_NONE)
            MPL_TRY(emit_given(&e, v));
    for (uint32_t i = 0; i < ssa->n_nodes; i++)
        if (ssa->node[i].live)
            MPL_TRY(emit_node(&e, &ssa->node[i]));
    for (uint32_t i = 0; i < ssa->g->n_outputs; i++)
        MPL_TRY(mpl_graph_add_output(ssa->ctx, e.to, e.map[mpl_ssa_find(ssa, ssa->output[i])]));
    MPL_TRY(mpl_graph_finish(ssa->ctx, e.to));
    *out = e.to, e.to = NULL;
out:
    mpl_graph_free(ssa->ctx, e.to);
    mpl_free_each(ssa->ctx, e.map, e.versions, e.name);
    return st;
}

/* ---- all steps ---- */

static mpl_status end_step(mpl_ssa *ssa, const mpl_ssa_watch *watch, uint32_t step)
{
    mpl_status st = MPL_OK;
    mpl_graph *g = NULL;

    mpl_ssa_count(ssa, step == 0); /* after step 1, all nodes count */
    for (uint32_t i = 0; i < ssa->n_nodes; i++) {
        ssa->facts->n_access[step] += ssa->node[i].live && ssa->node[i].kind == MPL_OP_access;
        ssa->facts->n_assign[step] += ssa->node[i].live && ssa->node[i].kind == MPL_OP_assign;
        ssa->facts->n_fused[step] += ssa->node[i].live && ssa->node[i].kind == MPL_OP_fused;
    }
    if (watch == NULL)
        goto out;
    MPL_TRY(emit(ssa, &g));
    MPL_TRY(watch->step(watch->arg, step, g));
out:
    mpl_graph_free(ssa->ctx, g);
    return st;
}

mpl_status mpl_tensor_ssa_straight(mpl_ctx *ctx, const mpl_graph *program, mpl_ssa_level level,
                                   const mpl_ssa_watch *watch, mpl_ssa_facts *facts,
                                   mpl_graph **out)
{
    mpl_status st = MPL_OK;
    mpl_ssa s = {.ctx = ctx, .g = program, .facts = facts};

    mpl_assert(program->n_blocks == 1);
    memset(facts, 0, sizeof *facts);
    MPL_TRY(mpl_views_new(ctx, program, &s.views));
    MPL_TRY(mpl_new(ctx, s.output, program->n_outputs));
    MPL_TRY(rewrite(&s, level));
    MPL_TRY(end_step(&s, watch, 0));
    if (is_full(level)) {
        MPL_TRY(mpl_ssa_reduce(&s, false));
        MPL_TRY(end_step(&s, watch, 1));
        MPL_TRY(mpl_ssa_reduce(&s, true));
        MPL_TRY(end_step(&s, watch, 2));
    }
    if (level == MPL_SSA_VIEWS || level == MPL_SSA_FULL) {
        MPL_TRY(mpl_ssa_fuse(&s, level == MPL_SSA_FULL));
        MPL_TRY(end_step(&s, watch, 3));
    }
    mpl_ssa_count(&s, false);
    MPL_TRY(emit(&s, out));
out:
    for (uint32_t i = 0; i < s.n_nodes; i++)
        mpl_free(ctx, s.node[i].fused);
    mpl_views_free(ctx, s.views);
    mpl_free_each(ctx, s.node, s.value, s.item, s.output);
    return st;
}
