/* tensor_ssa_blocks.c -- TensorSSA of programs with loops and branches: block propagation.
 *
 * Idea     Each block becomes a straight program of its own. What it uses of outside are inputs:
 *          the roots of storage, whose views are made again inside. Contents of roots that it
 *          writes are further results; a loop carries them, a branch returns them. In the program
 *          around it, the operation that owns the block is opaque, followed by a write of each new
 *          contents into its root. Each of these programs is converted as any other; their graphs
 *          are put together as blocks.
 * Source   the TensorSSA proposal: mutation inside blocks is passed to the blocks around them
 * Differs  All roots that a block writes are passed on; those that nobody reads are pruned later.
 * Cost     O(size) for each block and each level of nesting, besides the conversions. */
#include "graphs/passes/ssa/tensor_ssa_priv.h"

#include <stdlib.h>

#include "graphs/passes/copy.h"

#define OWNER "block of " /* `opcode` of an opaque operation: this and the owner's number */

typedef struct splitter {
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_views *views;
    mpl_ssa_level level;
    const mpl_ssa_watch *watch;
    mpl_ssa_facts *facts;
    mpl_graph *to;
} splitter;

/* Roots of outside that the blocks of an operation use, ascending. */
typedef struct outside {
    uint32_t n, n_written;
    mpl_value *root; /* [n] */
    bool *written;   /* [n] */
} outside;

/* ---- what blocks use ---- */

static void note(const splitter *self, uint32_t block, mpl_value v, bool written, uint8_t *use)
{
    mpl_value root = v == MPL_NONE ? MPL_NONE : self->views->root[v];

    if (root != MPL_NONE && !mpl_block_within(self->g, self->g->value_block[root], block))
        use[root] |= (uint8_t)(written ? 3 : 1);
}

static void note_block(const splitter *self, uint32_t block, uint8_t *use)
{
    const mpl_graph *g = self->g;

    for (mpl_op op = g->block_op_begin[block]; op < g->block_op_end[block]; op++)
        for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
            note(self, block, mpl_op_input(g, op, i),
                 i == 0 && (mpl_op_table[g->op_kind[op]].traits & MPL_MUTATES) != 0, use);
    for (uint32_t b = block; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b] && mpl_block_within(g, b, block); i++)
            note(self, block, mpl_result(g, b, i), false, use);
}

static mpl_status outside_new(splitter *self, mpl_op op, outside *out)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint8_t *use = NULL;

    *out = (outside){0};
    MPL_TRY(mpl_new(self->ctx, use, g->n_values));
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        note_block(self, g->op_body[k], use);
    for (mpl_value v = 0; v < g->n_values; v++)
        out->n += use[v] != 0;
    MPL_TRY(mpl_new_each(self->ctx, out->n, out->root, out->written));
    out->n = 0;
    for (mpl_value v = 0; v < g->n_values; v++)
        if (use[v] != 0) {
            out->root[out->n] = v;
            out->written[out->n++] = (use[v] & 2) != 0;
            out->n_written += (use[v] & 2) != 0;
        }
out:
    mpl_free(self->ctx, use);
    return st;
}

static void outside_free(splitter *self, outside *o)
{
    mpl_free_each(self->ctx, o->root, o->written);
}

/* ---- a block as a program of its own ---- */

typedef struct piece {
    splitter *s;
    uint32_t block;
    mpl_graph *q;
    mpl_value *map; /* [n_values of g] in q; MPL_NONE: not there yet */
} piece;

/* Makes v, of outside, a value of the piece: an input, or a view of one. */
static mpl_status ensure(piece *self, mpl_value v)
{
    const mpl_graph *g = self->s->g;
    mpl_op op;

    if (v == MPL_NONE || self->map[v] != MPL_NONE)
        return MPL_OK;
    if (self->s->views->parent[v] == MPL_NONE)
        return mpl_graph_add_value(self->s->ctx, self->q, g->value_name[v], MPL_INPUT,
                                   (mpl_type)g->value_type[v], &g->value_shape[v], &self->map[v]);
    op = g->value_op[v];
    MPL_PASS(ensure(self, mpl_op_input(g, op, 0)));
    return mpl_copy_op(self->s->ctx, g, op, self->q, self->map, NULL);
}

static mpl_value in_piece(const piece *self, mpl_value v)
{
    return v == MPL_NONE ? MPL_NONE : self->map[v];
}

/* A name that neither program has. Freed by the caller. */
static mpl_status new_name(piece *self, const char *base, char **out)
{
    size_t room = strlen(base) + 16;

    MPL_PASS(mpl_new(self->s->ctx, *out, room));
    for (unsigned i = 1; i == 1 || mpl_graph_find(self->s->g, *out) != MPL_NONE ||
                         mpl_graph_find(self->q, *out) != MPL_NONE;
         i++)
        snprintf(*out, room, "%s~%u", base, i);
    return MPL_OK;
}

/* The arguments of an opaque operation for a control operation. */
typedef struct stand_in {
    uint32_t n_in, n_out, n_dims;
    mpl_value *in, *out;
    const char **name; /* [n_out] */
    char **made;       /* [n_out] names that are owned */
    int64_t *dims;
    char *types;
} stand_in;

static void say_output(stand_in *in, const mpl_graph *g, mpl_value v)
{
    static const mpl_shape scalar = {0};
    const mpl_shape *shape = v != MPL_NONE ? &g->value_shape[v] : &scalar;
    const char *type =
        mpl_type_name(v != MPL_NONE ? (mpl_type)g->value_type[v] : (mpl_type)MPL_TYPE_u8);

    sprintf(in->types + strlen(in->types), " %s", type);
    in->dims[in->n_dims++] = shape->rank;
    for (uint32_t i = 0; i < shape->rank; i++)
        in->dims[in->n_dims++] = shape->dim[i];
    in->n_out++;
}

static mpl_status fill_stand_in(piece *self, mpl_op op, const outside *o, stand_in *in)
{
    mpl_ctx *ctx = self->s->ctx;
    const mpl_graph *g = self->s->g;
    uint32_t n_in = mpl_op_n_in(g, op), n_out = mpl_op_n_out(g, op), most = n_out + o->n_written;

    MPL_PASS(mpl_new(ctx, in->in, n_in + o->n));
    MPL_PASS(mpl_new_each(ctx, most, in->out, in->name, in->made));
    MPL_PASS(mpl_new(ctx, in->dims, (size_t)most * (MPL_MAX_RANK + 1)));
    MPL_PASS(mpl_new(ctx, in->types, (size_t)most * 16 + 1));
    for (uint32_t i = 0; i < n_in + o->n; i++) {
        mpl_value v = i < n_in ? mpl_op_input(g, op, i) : o->root[i - n_in];

        MPL_PASS(ensure(self, v));
        in->in[in->n_in++] = in_piece(self, v);
    }
    for (uint32_t i = 0; i < n_out; i++) {
        mpl_value v = mpl_op_output(g, op, i);

        in->name[i] = v != MPL_NONE ? g->value_name[v] : NULL;
        say_output(in, g, v);
    }
    for (uint32_t i = 0; i < o->n; i++)
        if (o->written[i]) {
            MPL_PASS(new_name(self, g->value_name[o->root[i]], &in->made[in->n_out]));
            in->name[in->n_out] = in->made[in->n_out];
            say_output(in, g, o->root[i]);
        }
    return MPL_OK;
}

/* Adds an opaque operation for control operation `op`, then the writes of what its blocks write. */
static mpl_status add_stand_in(piece *self, mpl_op op)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = self->s->ctx;
    const mpl_graph *g = self->s->g;
    outside o = {0};
    stand_in a = {0};
    char opcode[sizeof OWNER + 12];
    uint32_t n_out = mpl_op_n_out(g, op);

    MPL_TRY(outside_new(self->s, op, &o));
    if (n_out + o.n_written == 0) /* nobody can see it */
        goto out;
    MPL_TRY(fill_stand_in(self, op, &o, &a));
    snprintf(opcode, sizeof opcode, OWNER "%" PRIu32, op);
    MPL_TRY(mpl_graph_add_op(ctx, self->q, MPL_OP_opaque, g->op_name[op], a.n_in, a.in, 3,
                             (const mpl_attr[]){MPL_TEXT(to, a.types),
                                                MPL_INTS(shape, a.n_dims, a.dims),
                                                MPL_TEXT(opcode, opcode)},
                             a.n_out, a.name, a.out));
    for (uint32_t i = 0; i < n_out; i++)
        if (mpl_op_output(g, op, i) != MPL_NONE)
            self->map[mpl_op_output(g, op, i)] = a.out[i];
    for (uint32_t i = 0, k = n_out; i < o.n; i++)
        if (o.written[i])
            MPL_TRY(mpl_graph_add_op(ctx, self->q, MPL_OP_copy_into, g->op_name[op], 2,
                                     (const mpl_value[]){self->map[o.root[i]], a.out[k++]}, 0, NULL,
                                     0, NULL, NULL));
out:
    for (uint32_t i = 0; i < n_out + o.n_written && a.made != NULL; i++)
        mpl_free(ctx, a.made[i]);
    mpl_free_each(ctx, a.in, a.out, a.name, a.made, a.dims, a.types);
    outside_free(self->s, &o);
    return st;
}

/* An input, weight or constant of the whole program. */
static mpl_status add_given(piece *self, mpl_value v)
{
    const mpl_graph *g = self->s->g;
    mpl_type type = (mpl_type)g->value_type[v];

    if (g->value_data[v] != NULL && !mpl_is_bound(g, v))
        return mpl_graph_add_const(self->s->ctx, self->q, g->value_name[v], type,
                                   &g->value_shape[v], g->value_data[v], g->value_splat[v],
                                   &self->map[v]);
    MPL_PASS(mpl_graph_add_value(self->s->ctx, self->q, g->value_name[v],
                                 mpl_is_bound(g, v) ? MPL_INPUT : (mpl_role)g->value_role[v], type,
                                 &g->value_shape[v], &self->map[v]));
    return mpl_is_bound(g, v)
               ? mpl_graph_bind_input(self->s->ctx, self->q, self->map[v], g->value_data[v])
               : MPL_OK;
}

static mpl_status add_operation(piece *self, mpl_op op)
{
    const mpl_graph *g = self->s->g;

    if (g->op_kind[op] == MPL_OP_exit_unless)
        return MPL_REFUSE(self->s->ctx,
                          "operation '%.100s': exit_unless is for graphs; a program's loop ends by "
                          "`go` or its number of rounds",
                          g->op_name[op]);
    for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
        MPL_PASS(ensure(self, mpl_op_input(g, op, i)));
    return g->op_body_begin[op] < g->op_body_begin[op + 1]
               ? add_stand_in(self, op)
               : mpl_copy_op(self->s->ctx, g, op, self->q, self->map, NULL);
}

static mpl_status add_output(piece *self, mpl_value v)
{
    if (v == MPL_NONE)
        return MPL_OK;
    MPL_PASS(ensure(self, v));
    return mpl_graph_add_output(self->s->ctx, self->q, self->map[v]);
}

/* Block `b` as a program: outputs are its results, then the contents of the written roots. */
static mpl_status make_piece(splitter *self, uint32_t b, const outside *o, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    piece p = {.s = self, .block = b};

    MPL_TRY(mpl_new(self->ctx, p.map, g->n_values));
    memset(p.map, 0xff, g->n_values * sizeof *p.map);
    MPL_TRY(mpl_graph_new(self->ctx, g->name, &p.q));
    p.q->program = true;
    for (mpl_value v = 0; v < g->n_values && b == 0; v++)
        if (g->value_op[v] == MPL_NONE && g->value_role[v] != MPL_PARAMETER)
            MPL_TRY(add_given(&p, v));
    for (uint32_t i = 0; i < g->block_n_params[b]; i++)
        MPL_TRY(ensure(&p, mpl_param(g, b, i)));
    for (mpl_op op = b == 0 ? 0 : g->block_op_begin[b];
         op < (b == 0 ? g->n_ops : g->block_op_end[b]); op++)
        if (g->op_block[op] == b)
            MPL_TRY(add_operation(&p, op));
    for (uint32_t i = 0; b == 0 && i < g->n_outputs; i++)
        MPL_TRY(add_output(&p, g->output[i]));
    for (uint32_t i = 0; b != 0 && i < g->block_n_results[b]; i++)
        MPL_TRY(add_output(&p, mpl_result(g, b, i)));
    for (uint32_t i = 0; b != 0 && i < o->n; i++)
        MPL_TRY(add_output(&p, o->written[i] ? o->root[i] : MPL_NONE));
    MPL_TRY(mpl_graph_finish(self->ctx, p.q));
    *out = p.q, p.q = NULL;
out:
    mpl_graph_free(self->ctx, p.q);
    mpl_free(self->ctx, p.map);
    return st;
}

static mpl_status convert(splitter *self, uint32_t b, const outside *o, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    mpl_graph *program = NULL;
    mpl_ssa_facts f;
    uint32_t *sum = (uint32_t *)self->facts, *add = (uint32_t *)&f;

    MPL_TRY(make_piece(self, b, o, &program));
    MPL_TRY(mpl_tensor_ssa_straight(self->ctx, program, self->level, b == 0 ? self->watch : NULL,
                                    &f, out));
    for (size_t i = 0; i < sizeof f / sizeof *sum; i++) /* they are counts, all of them */
        sum[i] += add[i];
out:
    mpl_graph_free(self->ctx, program);
    return st;
}

/* ---- graphs of blocks put together ---- */

/* A name that the graph being made has not. */
static mpl_status free_name(splitter *self, const char *base, char **out)
{
    size_t room = strlen(base) + 16;

    MPL_PASS(mpl_new(self->ctx, *out, room));
    snprintf(*out, room, "%s", base);
    for (unsigned i = 1; mpl_graph_find(self->to, *out) != MPL_NONE; i++)
        snprintf(*out, room, "%s~%u", base, i);
    return MPL_OK;
}

static mpl_status put_graph(splitter *self, const mpl_graph *from, mpl_value *given,
                            mpl_value *map);

static mpl_status put_param(splitter *self, mpl_value v, mpl_value *given)
{
    mpl_status st = MPL_OK;
    char *name = NULL;

    MPL_TRY(free_name(self, self->g->value_name[v], &name));
    MPL_TRY(mpl_graph_add_param(self->ctx, self->to, name, (mpl_type)self->g->value_type[v],
                                &self->g->value_shape[v], &given[v]));
out:
    mpl_free(self->ctx, name);
    return st;
}

/* Writes the block's results: those of the program with the written roots' at place `at`. */
static mpl_status put_results(splitter *self, uint32_t b, const outside *o, uint32_t at,
                              const mpl_graph *from, const mpl_value *map)
{
    mpl_status st = MPL_OK;
    uint32_t n = self->g->block_n_results[b], taken = 0, n_made = 0, n_own = 0;
    mpl_value *result = NULL;

    for (uint32_t i = 0; i < n; i++)
        n_own += mpl_result(self->g, b, i) != MPL_NONE;
    MPL_TRY(mpl_new(self->ctx, result, n + o->n_written));
    for (uint32_t i = 0; i <= n; i++) {
        for (uint32_t k = 0; i == at && k < o->n_written; k++)
            result[n_made++] = map[from->output[n_own + k]];
        if (i < n)
            result[n_made++] =
                mpl_result(self->g, b, i) != MPL_NONE ? map[from->output[taken++]] : MPL_NONE;
    }
    MPL_TRY(mpl_graph_close_block(self->ctx, self->to, n_made, result));
out:
    mpl_free(self->ctx, result);
    return st;
}

/* Adds block b of the program; roots[o->n]: what the graph being made has for the roots. */
static mpl_status put_block(splitter *self, uint32_t b, const outside *o, bool loop,
                            uint32_t carried, const mpl_value *roots, uint32_t *made)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    mpl_graph *from = NULL;
    mpl_value *given = NULL, *map = NULL;

    MPL_TRY(convert(self, b, o, &from));
    MPL_TRY(mpl_new(self->ctx, given, g->n_values));
    MPL_TRY(mpl_new(self->ctx, map, from->n_values));
    MPL_TRY(mpl_graph_open_block(self->ctx, self->to, g->block_name[b], made));
    for (uint32_t i = 0; i < o->n; i++)
        given[o->root[i]] = roots[i];
    for (uint32_t i = 0; i <= g->block_n_params[b]; i++) {
        for (uint32_t k = 0; loop && i == 1 + carried && k < o->n; k++)
            if (o->written[k])
                MPL_TRY(put_param(self, o->root[k], given));
        if (i < g->block_n_params[b])
            MPL_TRY(put_param(self, mpl_param(g, b, i), given));
    }
    MPL_TRY(put_graph(self, from, given, map));
    MPL_TRY(put_results(self, b, o, loop ? 1 + carried : g->block_n_results[b], from, map));
out:
    mpl_graph_free(self->ctx, from);
    mpl_free_each(self->ctx, given, map);
    return st;
}

/* The list of n items with the more[n_more] inserted at place `at`, in `to`; returns its length. */
static uint32_t insert(uint32_t n, const mpl_value *item, uint32_t n_more, const mpl_value *more,
                       uint32_t at, mpl_value *to)
{
    memcpy(to, item, at * sizeof *to);
    memcpy(to + at, more, n_more * sizeof *to);
    memcpy(to + at + n_more, item + at, (n - at) * sizeof *to);
    return n + n_more;
}

/* The control operation for opaque operation `op` of `from`; values are those of `to`. */
typedef struct owner {
    mpl_op op; /* of the program */
    outside o;
    bool loop;
    uint32_t carried, n_in, n_out, *body, n_attr;
    mpl_value *own, *in, *written, *made;
    char **name;
    mpl_attr *attr;
    int64_t new_carried;
} owner;

static void owner_free(splitter *self, owner *w)
{
    for (uint32_t i = 0; i < w->n_out && w->name != NULL; i++)
        mpl_free(self->ctx, w->name[i]);
    mpl_free_each(self->ctx, w->body, w->own, w->in, w->written, w->made, w->name, w->attr);
    outside_free(self, &w->o);
}

/* Inputs with the roots' contents among them, and the attributes. */
static mpl_status owner_inputs(splitter *self, owner *w)
{
    const mpl_graph *g = self->g;
    uint32_t n_in = mpl_op_n_in(g, w->op), n = 0;
    bool bypass = w->loop || n_in == 1 + mpl_op_n_out(g, w->op), carries = false;

    MPL_PASS(mpl_new_each(self->ctx, n_in + w->o.n + 1, w->in, w->written));
    for (uint32_t i = 0; i < w->o.n; i++)
        if (w->o.written[i])
            w->written[n++] = w->own[n_in + i];
    w->n_in =
        insert(n_in, w->own, bypass ? n : 0, w->written, w->loop ? 2 + w->carried : n_in, w->in);
    MPL_PASS(mpl_copy_attrs(self->ctx, g, w->op, &w->n_attr, &w->attr));
    w->new_carried = w->carried + n;
    for (uint32_t i = 0; i < w->n_attr; i++)
        if (w->attr[i].key == MPL_ATTR_carried)
            w->attr[i].ints = &w->new_carried, carries = true;
    if (w->loop && !carries)
        w->attr[w->n_attr++] = (mpl_attr){MPL_ATTR_carried, 1, &w->new_carried, NULL, NULL};
    return MPL_OK;
}

/* Names of the outputs: the program's, with the roots' new contents among them. */
static mpl_status owner_names(splitter *self, const mpl_graph *from, mpl_op op, owner *w)
{
    uint32_t n_own = mpl_op_n_out(self->g, w->op), at = w->loop ? w->carried : n_own;
    const mpl_value *out = from->op_out + from->op_out_begin[op];

    w->n_out = mpl_op_n_out(from, op);
    MPL_PASS(mpl_new_each(self->ctx, w->n_out, w->name, w->made));
    insert(n_own, out, w->n_out - n_own, out + n_own, at, w->made);
    for (uint32_t i = 0; i < w->n_out; i++)
        if (w->made[i] != MPL_NONE)
            MPL_PASS(free_name(self, from->value_name[w->made[i]], &w->name[i]));
    return MPL_OK;
}

static mpl_status put_control(splitter *self, const mpl_graph *from, mpl_op op, mpl_op owner_op,
                              mpl_value *map)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[owner_op];
    owner w = {.op = owner_op, .loop = kind == MPL_OP_while};
    uint32_t n_bodies = g->op_body_begin[owner_op + 1] - g->op_body_begin[owner_op];
    mpl_value *out = NULL;

    w.carried = w.loop ? mpl_n_carried(g, owner_op) : 0;
    MPL_TRY(outside_new(self, owner_op, &w.o));
    MPL_TRY(mpl_new(self->ctx, w.own, mpl_op_n_in(from, op)));
    for (uint32_t i = 0; i < mpl_op_n_in(from, op); i++)
        w.own[i] =
            mpl_op_input(from, op, i) != MPL_NONE ? map[mpl_op_input(from, op, i)] : MPL_NONE;
    MPL_TRY(mpl_new(self->ctx, w.body, n_bodies));
    for (uint32_t k = 0; k < n_bodies; k++)
        MPL_TRY(put_block(self, g->op_body[g->op_body_begin[owner_op] + k], &w.o, w.loop, w.carried,
                          w.own + mpl_op_n_in(g, owner_op), &w.body[k]));
    MPL_TRY(owner_inputs(self, &w));
    MPL_TRY(owner_names(self, from, op, &w));
    MPL_TRY(mpl_new(self->ctx, out, w.n_out));
    MPL_TRY(mpl_graph_add_control(self->ctx, self->to, kind, g->op_name[owner_op], w.n_in, w.in,
                                  w.n_attr, w.attr, n_bodies, w.body, w.n_out,
                                  (const char *const *)w.name, out));
    for (uint32_t i = 0; i < w.n_out; i++)
        if (w.made[i] != MPL_NONE)
            map[w.made[i]] = out[i];
out:
    owner_free(self, &w);
    mpl_free(self->ctx, out);
    return st;
}

/* Copies an operation, its values under names that are free. */
static mpl_status put_op(splitter *self, const mpl_graph *from, mpl_op op, mpl_value *map)
{
    mpl_status st = MPL_OK;
    uint32_t n = mpl_op_n_out(from, op);
    char **name = NULL;

    MPL_TRY(mpl_new(self->ctx, name, n));
    for (uint32_t i = 0; i < n; i++)
        if (mpl_op_output(from, op, i) != MPL_NONE)
            MPL_TRY(free_name(self, from->value_name[mpl_op_output(from, op, i)], &name[i]));
    MPL_TRY(mpl_copy_op_as(self->ctx, from, op, self->to, map, NULL,
                           &(mpl_copy_as){.out_name = (const char *const *)name}));
out:
    for (uint32_t i = 0; i < n && name != NULL; i++)
        mpl_free(self->ctx, name[i]);
    mpl_free(self->ctx, name);
    return st;
}

/* Adds all of a converted block. given[n_values of the program]: its inputs; NULL: the whole
 * program, whose inputs and weights become those of the graph. */
static mpl_status put_graph(splitter *self, const mpl_graph *from, mpl_value *given, mpl_value *map)
{
    for (mpl_value v = 0; v < from->n_values; v++)
        if (from->value_op[v] == MPL_NONE) {
            if (given != NULL) {
                map[v] = given[mpl_graph_find(self->g, from->value_name[v])];
                continue;
            }
            MPL_PASS(mpl_copy_value(self->ctx, (mpl_graph *)from, v, self->to, &map[v]));
        }
    for (mpl_op op = 0; op < from->n_ops; op++) {
        const char *opcode =
            from->op_kind[op] == MPL_OP_opaque ? mpl_attr_text(from, op, MPL_ATTR_opcode, "") : "";

        if (strncmp(opcode, OWNER, sizeof OWNER - 1) == 0)
            MPL_PASS(put_control(self, from, op,
                                 (mpl_op)strtoul(opcode + sizeof OWNER - 1, NULL, 10), map));
        else
            MPL_PASS(put_op(self, from, op, map));
    }
    return MPL_OK;
}

static mpl_status convert_all(mpl_ctx *ctx, const mpl_graph *program, mpl_ssa_level level,
                              const mpl_ssa_watch *watch, mpl_ssa_facts *facts, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    splitter s = {.ctx = ctx, .g = program, .level = level, .watch = watch, .facts = facts};
    mpl_graph *top = NULL;
    mpl_value *map = NULL;

    MPL_TRY(mpl_views_new(ctx, program, &s.views));
    MPL_TRY(convert(&s, 0, NULL, &top));
    MPL_TRY(mpl_new(ctx, map, top->n_values));
    MPL_TRY(mpl_graph_new(ctx, program->name, &s.to));
    MPL_TRY(put_graph(&s, top, NULL, map));
    for (uint32_t i = 0; i < top->n_outputs; i++)
        MPL_TRY(mpl_graph_add_output(ctx, s.to, map[top->output[i]]));
    MPL_TRY(mpl_graph_finish(ctx, s.to));
    *out = s.to, s.to = NULL;
out:
    mpl_graph_free(ctx, s.to);
    mpl_graph_free(ctx, top);
    mpl_views_free(ctx, s.views);
    mpl_free(ctx, map);
    return st;
}

mpl_status mpl_tensor_ssa(mpl_ctx *ctx, const mpl_graph *program, mpl_ssa_level level,
                          const mpl_ssa_watch *watch, mpl_ssa_facts *facts, mpl_graph **out)
{
    mpl_ssa_facts own;

    facts = facts != NULL ? facts : &own;
    memset(facts, 0, sizeof *facts);
    if (program->n_blocks > 1)
        return convert_all(ctx, program, level, watch, facts, out);
    return mpl_tensor_ssa_straight(ctx, program, level, watch, facts, out);
}
