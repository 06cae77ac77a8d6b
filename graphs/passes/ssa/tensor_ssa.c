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

static mpl_status add_value(mpl_ssa *s, uint32_t node, mpl_value source, mpl_type type,
                            const mpl_shape *shape, uint32_t *out)
{
    MPL_PASS(mpl_reserve(s->ctx, s->value, s->value_cap, (size_t)s->n_values + 1));
    s->value[s->n_values] = (mpl_ssa_value){node, MPL_NONE, source, type, *shape, 0};
    *out = s->n_values++;
    return MPL_OK;
}

/* Adds a node with one output, named after `source`, with the given dims and the type of input
 * 0. */
static mpl_status add_node(mpl_ssa *s, mpl_op_kind kind, uint32_t n_in, const uint32_t *in,
                           const mpl_strided *box, mpl_value source, const mpl_shape *shape,
                           uint32_t *out)
{
    uint32_t node = s->n_nodes, made;

    MPL_PASS(mpl_reserve(s->ctx, s->node, s->node_cap, (size_t)node + 1));
    memset(&s->node[node], 0, sizeof *s->node);
    MPL_PASS(mpl_reserve(s->ctx, s->item, s->item_cap, (size_t)s->n_items + 1));
    MPL_PASS(add_value(s, node, source, s->value[in[0]].type, shape, &made));
    s->node[node].kind = kind;
    s->node[node].from = MPL_NONE;
    s->node[node].live = true;
    if (box != NULL)
        s->node[node].box = *box;
    s->node[node].out = s->n_items;
    s->node[node].n_out = 1;
    s->item[s->n_items++] = made;
    s->n_nodes++;
    MPL_PASS(mpl_ssa_set_in(s, node, n_in, in));
    *out = made;
    return MPL_OK;
}

static mpl_status add_access(mpl_ssa *s, uint32_t from, const mpl_strided *box, mpl_value source,
                             uint32_t *out)
{
    return add_node(s, MPL_OP_access, 1, &from, box, source, &box->shape, out);
}

static mpl_status add_assign(mpl_ssa *s, uint32_t to, uint32_t what, const mpl_strided *box,
                             mpl_value source, uint32_t *out)
{
    mpl_shape shape = s->value[to].shape;

    return add_node(s, MPL_OP_assign, 2, (const uint32_t[]){to, what}, box, source, &shape, out);
}

/* ---- step 1 ---- */

/* Contents of the program's values at the current operation. */
typedef struct rewriter {
    mpl_ssa *s;
    mpl_ssa_level level;
    uint32_t *now; /* [n_values] contents; MPL_NONE: not made yet */
    uint8_t *path; /* [n_values] 1: the written value or an ancestor of it */
} rewriter;

/* The value that the program reads as v. */
static mpl_status read_value(rewriter *r, mpl_value v, uint32_t *out)
{
    const mpl_views *views = r->s->views;

    if (r->now[v] == MPL_NONE) {
        uint32_t made;

        MPL_PASS(add_access(r->s, r->now[views->root[v]], &views->of_root[v], v, &made));
        if (r->level == MPL_SSA_COPY)
            return *out = made, MPL_OK;
        r->now[v] = made;
    }
    *out = r->now[v];
    return MPL_OK;
}

static mpl_status make_view(rewriter *r, mpl_value v)
{
    uint32_t made;

    if (is_full(r->level)) {
        MPL_PASS(
            add_access(r->s, r->now[r->s->views->parent[v]], &r->s->views->of_parent[v], v, &made));
        r->now[v] = made;
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
static mpl_status pass_up_and_down(rewriter *r, mpl_op op, mpl_value v, uint32_t made)
{
    const mpl_graph *g = r->s->g;
    const mpl_views *views = r->s->views;
    mpl_value root = views->root[v];

    memset(r->path, 0, g->n_values);
    r->now[v] = made;
    r->path[v] = 1;
    if (!stands_once(views, v)) {
        MPL_PASS(add_assign(r->s, r->now[root], made, &views->of_root[v], root, &r->now[root]));
        r->path[root] = 1;
    }
    for (mpl_value child = v, parent; !r->path[root]; child = parent) {
        parent = views->parent[child];
        MPL_PASS(add_assign(r->s, r->now[parent], r->now[child], &views->of_parent[child], parent,
                            &made));
        r->now[parent] = made;
        r->path[parent] = 1;
    }
    for (mpl_value other = 0; other < g->n_values; other++) /* parents have lower ids */
        if (views->root[other] == root && !r->path[other] && g->value_op[other] != MPL_NONE &&
            g->value_op[other] < op)
            MPL_PASS(make_view(r, other));
    return MPL_OK;
}

/* The same where views are read from the root: all values but the root must be copied anew. */
static mpl_status write_root(rewriter *r, mpl_value v, uint32_t made)
{
    const mpl_views *views = r->s->views;
    mpl_value root = views->root[v];

    if (v != root)
        MPL_PASS(add_assign(r->s, r->now[root], made, &views->of_root[v], root, &made));
    for (mpl_value other = 0; other < r->s->g->n_values; other++)
        if (views->root[other] == root)
            r->now[other] = MPL_NONE;
    r->now[root] = made;
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

static mpl_status rewrite_write(rewriter *r, mpl_op op)
{
    const mpl_graph *g = r->s->g;
    mpl_value v = g->op_in[g->op_in_begin[op]];
    mpl_strided all = mpl_strided_all(&g->value_shape[v]);
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    uint32_t in[2], n_in = g->op_in_begin[op + 1] - g->op_in_begin[op], made;

    for (uint32_t i = n_in; i-- > 0;)
        MPL_PASS(read_value(r, g->op_in[g->op_in_begin[op] + i], &in[i]));
    if (kind == MPL_OP_copy_into)
        MPL_PASS(add_assign(r->s, in[0], in[1], &all, v, &made));
    else
        MPL_PASS(add_node(r->s, kind_written(kind), n_in, in, NULL, v, &all.shape, &made));
    return is_full(r->level) ? pass_up_and_down(r, op, v, made) : write_root(r, v, made);
}

/* Keeps an operation as it is. */
static mpl_status rewrite_other(rewriter *r, mpl_op op)
{
    mpl_status st = MPL_OK;
    mpl_ssa *s = r->s;
    const mpl_graph *g = s->g;
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op], node, made;
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op], *in = NULL;

    MPL_TRY(mpl_new(s->ctx, in, n_in));
    for (uint32_t i = 0; i < n_in; i++) {
        mpl_value v = g->op_in[g->op_in_begin[op] + i];

        in[i] = MPL_NONE;
        if (v != MPL_NONE)
            MPL_TRY(read_value(r, v, &in[i]));
    }
    node = s->n_nodes;
    MPL_TRY(mpl_reserve(s->ctx, s->node, s->node_cap, (size_t)node + 1));
    MPL_TRY(mpl_reserve(s->ctx, s->item, s->item_cap, (size_t)s->n_items + n_out));
    memset(&s->node[node], 0, sizeof *s->node);
    s->node[node].kind = (mpl_op_kind)g->op_kind[op];
    s->node[node].from = op;
    s->node[node].live = true;
    s->node[node].out = s->n_items;
    s->node[node].n_out = n_out;
    s->n_items += n_out;
    s->n_nodes++;
    for (uint32_t i = 0; i < n_out; i++) {
        mpl_value v = g->op_out[g->op_out_begin[op] + i];

        made = MPL_NONE;
        if (v != MPL_NONE) {
            MPL_TRY(add_value(s, node, v, (mpl_type)g->value_type[v], &g->value_shape[v], &made));
            r->now[v] = made;
        }
        s->item[s->node[node].out + i] = made;
    }
    MPL_TRY(mpl_ssa_set_in(s, node, n_in, in));
    /* The program's own access or assign brings its box. */
    if (s->node[node].kind == MPL_OP_access || s->node[node].kind == MPL_OP_assign)
        MPL_TRY(mpl_strided_of(s->ctx, g, op, &s->value[in[0]].shape, &s->node[node].box));
out:
    mpl_free(s->ctx, in);
    return st;
}

static bool is_view_op(const mpl_ssa *s, mpl_op op)
{
    for (uint32_t i = s->g->op_out_begin[op]; i < s->g->op_out_begin[op + 1]; i++)
        if (s->g->op_out[i] != MPL_NONE)
            return s->views->parent[s->g->op_out[i]] != MPL_NONE;
    return false;
}

static mpl_status rewrite(mpl_ssa *s, mpl_ssa_level level)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = s->g;
    rewriter r = {.s = s, .level = level};

    MPL_TRY(mpl_new_each(s->ctx, g->n_values, r.now, r.path));
    for (mpl_value v = 0; v < g->n_values; v++) {
        r.now[v] = MPL_NONE;
        if (g->value_op[v] == MPL_NONE)
            MPL_TRY(add_value(s, MPL_NONE, v, (mpl_type)g->value_type[v], &g->value_shape[v],
                              &r.now[v]));
    }
    for (mpl_op op = 0; op < g->n_ops; op++) {
        if ((mpl_op_table[g->op_kind[op]].traits & MPL_MUTATES) != 0) {
            MPL_TRY(rewrite_write(&r, op));
            s->facts->n_writes++;
        } else if (is_view_op(s, op)) {
            for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
                if (g->op_out[i] != MPL_NONE) {
                    MPL_TRY(make_view(&r, g->op_out[i]));
                    s->facts->n_views++;
                }
        } else {
            MPL_TRY(rewrite_other(&r, op));
        }
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        MPL_TRY(read_value(&r, g->output[i], &s->output[i]));
out:
    mpl_free_each(s->ctx, r.now, r.path);
    return st;
}

/* ---- the graph of the nodes ---- */

typedef struct emitter {
    mpl_ssa *s;
    mpl_graph *to;
    mpl_value *map;     /* [s->n_values] */
    uint32_t *versions; /* [g->n_values] names taken so far */
    char *name;         /* room for the longest name and a number */
} emitter;

/* A free name: the source's, or the source's with a number. */
static const char *fresh_name(emitter *e, mpl_value source)
{
    const char *name = e->s->g->value_name[source];

    if (e->versions[source] == 0) {
        e->versions[source] = 1;
        return name;
    }
    do
        sprintf(e->name, "%s.%" PRIu32, name, e->versions[source]++);
    while (mpl_graph_find(e->to, e->name) != MPL_NONE ||
           mpl_graph_find(e->s->g, e->name) != MPL_NONE);
    return e->name;
}

static mpl_status emit_given(emitter *e, uint32_t v)
{
    mpl_ctx *ctx = e->s->ctx;
    const mpl_graph *g = e->s->g;
    mpl_value from = e->s->value[v].source;
    const char *name = g->value_name[from];
    mpl_type type = (mpl_type)g->value_type[from];
    const mpl_shape *shape = &g->value_shape[from];
    bool bound = mpl_is_bound(g, from);

    e->versions[from]++;
    if (g->value_role[from] == MPL_WEIGHT && !bound && e->s->value[v].n_uses == 0)
        return MPL_OK;
    if (g->value_data[from] != NULL && !bound)
        return mpl_graph_add_const(ctx, e->to, name, type, shape, g->value_data[from],
                                   g->value_splat[from], &e->map[v]);
    MPL_PASS(mpl_graph_add_value(ctx, e->to, name,
                                 bound ? MPL_INPUT : (mpl_role)g->value_role[from], type, shape,
                                 &e->map[v]));
    if (bound)
        MPL_PASS(mpl_graph_bind_input(ctx, e->to, e->map[v], g->value_data[from]));
    return MPL_OK;
}

/* Adds an operation with one output; its inputs are in `in`. */
static mpl_status emit_one(emitter *e, const mpl_ssa_node *node, mpl_op_kind kind,
                           const mpl_value *in, uint32_t n_attr, const mpl_attr *attr)
{
    uint32_t v = mpl_ssa_out(e->s, node);
    const char *name = fresh_name(e, e->s->value[v].source);

    return mpl_graph_add_op(e->s->ctx, e->to, kind, name, node->n_in, in, n_attr, attr, 1, &name,
                            &e->map[v]);
}

static mpl_status emit_box(emitter *e, const mpl_ssa_node *node, const mpl_value *in)
{
    const mpl_strided *box = &node->box;
    const mpl_shape *from = &e->s->value[mpl_ssa_in(e->s, node, 0)].shape;
    bool whole = mpl_strided_whole(box, (uint64_t)mpl_count(from));
    mpl_attr shape = MPL_INTS(shape, box->shape.rank, box->shape.dim);
    mpl_attr attr[] = {MPL_INTS(dims, box->shape.rank, box->shape.dim),
                       MPL_INTS(strides, box->shape.rank, box->stride),
                       MPL_INT(offset, box->offset)};

    if (node->kind == MPL_OP_access && whole && mpl_count(from) > 0)
        return emit_one(e, node, MPL_OP_reshape, in, 1, &shape); /* takes no memory */
    return emit_one(e, node, node->kind, in, 3, attr);
}

static mpl_status emit_fused(emitter *e, const mpl_ssa_node *node, const mpl_value *in)
{
    const mpl_fused *f = node->fused;
    uint32_t rank = f->to.shape.rank, n = 0;
    int64_t loads[MPL_FUSED_LOADS * (MPL_MAX_RANK + 2)];
    char expr[MPL_FUSED_STEPS * 24] = "", *at = expr;

    for (uint32_t i = 0; i < f->n_loads; i++) {
        loads[n++] = f->load[i].input;
        loads[n++] = f->load[i].from.offset;
        for (uint32_t k = 0; k < rank; k++)
            loads[n++] = f->load[i].from.stride[k];
    }
    for (uint32_t i = 0; i < f->n_steps; i++) {
        at += sprintf(at, i > 0 ? "," : "");
        if (f->step[i].kind == MPL_STEP_LOAD)
            at += sprintf(at, "%" PRIu32, f->step[i].of);
        else
            at += sprintf(at, "%s", mpl_op_table[f->step[i].kind].name);
    }
    mpl_attr attr[] = {MPL_INTS(dims, rank, f->to.shape.dim), MPL_INTS(loads, n, loads),
                       MPL_TEXT(expr, expr), MPL_INTS(strides, rank, f->to.stride),
                       MPL_INT(offset, f->to.offset)};
    return emit_one(e, node, MPL_OP_fused, in, in[0] != MPL_NONE ? 5 : 3, attr);
}

/* Adds an operation as the program has it. */
static mpl_status emit_copy(emitter *e, const mpl_ssa_node *node, const mpl_value *in)
{
    mpl_status st = MPL_OK;
    mpl_ssa *s = e->s;
    const mpl_graph *g = s->g;
    uint32_t n_attr;
    mpl_attr *attr = NULL;
    const char **name = NULL;
    char **store = NULL;
    mpl_value *out = NULL;

    MPL_TRY(mpl_copy_attrs(s->ctx, g, node->from, &n_attr, &attr));
    MPL_TRY(mpl_new_each(s->ctx, node->n_out, name, store, out));
    for (uint32_t i = 0; i < node->n_out; i++) {
        uint32_t v = s->item[node->out + i];

        if (v == MPL_NONE)
            continue;
        MPL_TRY(mpl_copy_text(s->ctx, store[i], fresh_name(e, s->value[v].source)));
        name[i] = store[i];
    }
    MPL_TRY(mpl_graph_add_op(s->ctx, e->to, node->kind,
                             node->from != MPL_NONE ? g->op_name[node->from] : name[0], node->n_in,
                             in, n_attr, attr, node->n_out, name, out));
    for (uint32_t i = 0; i < node->n_out; i++)
        if (s->item[node->out + i] != MPL_NONE)
            e->map[s->item[node->out + i]] = out[i];
out:
    for (uint32_t i = 0; i < node->n_out && store != NULL; i++)
        mpl_free(s->ctx, store[i]);
    mpl_free_each(s->ctx, store, attr, name, out);
    return st;
}

static mpl_status emit_node(emitter *e, const mpl_ssa_node *node)
{
    mpl_status st = MPL_OK;
    mpl_value *in = NULL;

    MPL_TRY(mpl_new(e->s->ctx, in, node->n_in));
    for (uint32_t i = 0; i < node->n_in; i++) {
        uint32_t v = mpl_ssa_in(e->s, node, i);

        in[i] = v == MPL_NONE ? MPL_NONE : e->map[v];
    }
    if (node->kind == MPL_OP_fused && node->fused != NULL)
        MPL_TRY(emit_fused(e, node, in));
    else if (node->kind == MPL_OP_access || node->kind == MPL_OP_assign)
        MPL_TRY(emit_box(e, node, in));
    else
        MPL_TRY(emit_copy(e, node, in));
out:
    mpl_free(e->s->ctx, in);
    return st;
}

static mpl_status emit(mpl_ssa *s, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    emitter e = {.s = s};
    size_t longest = 0;

    for (mpl_value v = 0; v < s->g->n_values; v++)
        longest = strlen(s->g->value_name[v]) > longest ? strlen(s->g->value_name[v]) : longest;
    MPL_TRY(mpl_new(s->ctx, e.name, longest + 16));
    MPL_TRY(mpl_new(s->ctx, e.map, s->n_values));
    MPL_TRY(mpl_new(s->ctx, e.versions, s->g->n_values));
    MPL_TRY(mpl_graph_new(s->ctx, s->g->name, &e.to));
    for (uint32_t v = 0; v < s->n_values; v++)
        if (s->value[v].node == MPL_NONE)
            MPL_TRY(emit_given(&e, v));
    for (uint32_t i = 0; i < s->n_nodes; i++)
        if (s->node[i].live)
            MPL_TRY(emit_node(&e, &s->node[i]));
    for (uint32_t i = 0; i < s->g->n_outputs; i++)
        MPL_TRY(mpl_graph_add_output(s->ctx, e.to, e.map[mpl_ssa_find(s, s->output[i])]));
    MPL_TRY(mpl_graph_finish(s->ctx, e.to));
    *out = e.to, e.to = NULL;
out:
    mpl_graph_free(s->ctx, e.to);
    mpl_free_each(s->ctx, e.map, e.versions, e.name);
    return st;
}

/* ---- all steps ---- */

static mpl_status end_step(mpl_ssa *s, const mpl_ssa_watch *watch, uint32_t step)
{
    mpl_status st = MPL_OK;
    mpl_graph *g = NULL;

    mpl_ssa_count(s, step == 0); /* after step 1, all nodes count */
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        s->facts->n_access[step] += s->node[i].live && s->node[i].kind == MPL_OP_access;
        s->facts->n_assign[step] += s->node[i].live && s->node[i].kind == MPL_OP_assign;
        s->facts->n_fused[step] += s->node[i].live && s->node[i].kind == MPL_OP_fused;
    }
    if (watch == NULL)
        goto out;
    MPL_TRY(emit(s, &g));
    MPL_TRY(watch->step(watch->arg, step, g));
out:
    mpl_graph_free(s->ctx, g);
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
