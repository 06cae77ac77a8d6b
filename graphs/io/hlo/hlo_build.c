/* hlo_build.c -- the graph of a module. See hlo_priv.h.
 *
 * Idea     The entry's instructions, in the order of the text, become operations: arrays of a tuple
 *          are values of their own; a call's computation stands in its place; a condition and a
 *          body become the body of a `while`, with the test between them; branches of a conditional
 *          see its operands. Everything else is opaque.
 * Source   this project.
 * Cost     O(text) without calls; computations that are called often are copied, up to a limit. */
#include "graphs/io/hlo/hlo_emit.h"

enum { MOST_NESTED = 100, MOST_ARRAYS = 1 << 20 };

static mpl_status emit_comp(hlo_builder *b, uint32_t comp, uint32_t n, const mpl_value *arg,
                            const hlo_instr *caller, uint32_t n_result, mpl_value *result);

/* ---- what has no bytes of its own ---- */

static mpl_status emit_bitcast(hlo_builder *b, const hlo_frame *f, const hlo_instr *i)
{
    const hlo_instr *of = i->n_operands == 1 ? hlo_operand(b->m, i, 0) : NULL;
    mpl_value v;
    bool same;

    if (of == NULL || of->shape.n_leaves != 1 || i->shape.n_leaves != 1)
        return hlo_refuse(b->m, i->name.at, "a bitcast is of one array");
    v = *hlo_values_of(f, of);
    if (hlo_fits(b, v, hlo_leaf_of(b, i, 0)))
        return hlo_take_values(b, f, i, 1, &v);
    MPL_PASS(hlo_begin_op(b, 0, 1));
    MPL_PASS(hlo_add_input(b, v));
    same = hlo_bytes_of(hlo_leaf_of(b, i, 0)) == b->g->value_bytes[v]; /* else: other padding */
    return hlo_add_opaque(b, f, i, same ? MPL_OP_opaque_view : MPL_OP_opaque);
}

static mpl_status emit_element(hlo_builder *b, const hlo_frame *f, const hlo_instr *i)
{
    const hlo_instr *of = i->n_operands == 1 ? hlo_operand(b->m, i, 0) : NULL;
    hlo_shape part;

    if (of == NULL || !hlo_element(b->m, of->shape, i->number, &part))
        return hlo_refuse(b->m, i->name.at,
                          "get-tuple-element: the operand has no element %" PRId64, i->number);
    return hlo_take_values(b, f, i, part.n_leaves, f->value + (part.leaf - f->c->leaf));
}

static mpl_status emit_tuple(hlo_builder *b, const hlo_frame *f, const hlo_instr *i)
{
    b->in.n = 0;
    MPL_PASS(hlo_add_operands(b, f, i));
    return hlo_take_values(b, f, i, (uint32_t)b->in.n, b->in.item);
}

static mpl_status emit_forward(hlo_builder *b, const hlo_frame *f, const hlo_instr *i)
{
    const hlo_instr *of = i->n_operands > 0 ? hlo_operand(b->m, i, 0) : i;

    return hlo_take_values(b, f, i, of == i ? MPL_NONE : of->shape.n_leaves, hlo_values_of(f, of));
}

static mpl_status emit_constant(hlo_builder *b, const hlo_frame *f, const hlo_instr *i)
{
    for (uint32_t k = 0; k < i->shape.n_leaves; k++) {
        const hlo_leaf *leaf = hlo_leaf_of(b, i, k);

        hlo_clear_names(b);
        MPL_PASS(hlo_put_name(b, i, k));
        MPL_PASS(mpl_graph_add_value(b->ctx, b->g, b->text.item, MPL_WEIGHT, leaf->type,
                                     &leaf->shape, &hlo_values_of(f, i)[k]));
    }
    return MPL_OK;
}

/* ---- async pairs ---- */

static mpl_status emit_start(hlo_builder *b, const hlo_frame *f, const hlo_instr *i)
{
    hlo_shape part = {0, i->shape.leaf, 0};
    uint32_t first, end;

    if (i->rule->part != HLO_ALL && !hlo_element(b->m, i->shape, i->rule->part, &part))
        part.n_leaves = 0;
    first = part.leaf - i->shape.leaf;
    end = first + part.n_leaves;
    MPL_PASS(hlo_begin_op(b, 0, first));
    for (uint32_t k = end; k < i->shape.n_leaves; k++) {
        HLO_APPEND(b, b->out, k);
    }
    MPL_PASS(hlo_add_operands(b, f, i));
    for (uint32_t k = 0; k < part.n_leaves; k++)
        if (b->in.n != part.n_leaves || !hlo_fits(b, b->in.item[k], hlo_leaf_of(b, i, first + k)))
            return hlo_refuse(b->m, i->name.at, "'%.*s' does not hold its operands in element %u",
                              hlo_shown(i->name), i->name.at, i->rule->part);
    for (uint32_t k = 0; k < part.n_leaves; k++)
        hlo_values_of(f, i)[first + k] = b->in.item[k];
    return hlo_add_opaque(b, f, i, MPL_OP_opaque);
}

/* The results are views of what the pair's beginning made; its operands are read until here. */
static mpl_status emit_done(hlo_builder *b, const hlo_frame *f, const hlo_instr *i)
{
    const hlo_instr *of = i->n_operands > 0 ? hlo_operand(b->m, i, 0) : NULL;
    hlo_shape part = of != NULL ? of->shape : (hlo_shape){0};

    if (of == NULL ||
        (i->rule->part != HLO_ALL && !hlo_element(b->m, of->shape, i->rule->part, &part)))
        return hlo_refuse(b->m, i->name.at, "'%.*s' ends no async pair", hlo_shown(i->name),
                          i->name.at);
    for (uint32_t k = 0; k < i->shape.n_leaves; k++) {
        mpl_value v = k < part.n_leaves ? f->value[part.leaf - f->c->leaf + k] : MPL_NONE;

        MPL_PASS(hlo_begin_op(b, k, k + 1));
        if (v != MPL_NONE && !hlo_fits(b, v, hlo_leaf_of(b, i, k)))
            return hlo_refuse(b->m, i->name.at, "'%.*s' has not the shape of what ends",
                              hlo_shown(i->name), i->name.at);
        if (v != MPL_NONE)
            MPL_PASS(hlo_add_input(b, v));
        MPL_PASS(hlo_add_inputs(b, f, of));
        if (of->rule != NULL && of->rule->how == HLO_START)
            MPL_PASS(hlo_add_operands(b, f, of));
        MPL_PASS(hlo_add_opaque(b, f, i, v != MPL_NONE ? MPL_OP_opaque_view : MPL_OP_opaque));
    }
    return MPL_OK;
}

/* ---- computations that others run ---- */

static mpl_status called_by(const hlo_builder *b, const hlo_instr *i, uint32_t least)
{
    if (i->n_called < least)
        return hlo_refuse(b->m, i->name.at, "'%.*s' names too few computations", hlo_shown(i->name),
                          i->name.at);
    return MPL_OK;
}

static uint32_t called(const hlo_builder *b, const hlo_instr *i, uint32_t k)
{
    return b->m->called.item[i->called + k];
}

/* Runs a computation on the values b->in and makes its results the arrays of the instruction. */
static mpl_status emit_call(hlo_builder *b, const hlo_frame *f, const hlo_instr *i)
{
    mpl_status st = MPL_OK;
    mpl_value *arg = NULL, *result = NULL;
    uint32_t n;

    MPL_TRY(called_by(b, i, 1));
    b->in.n = 0;
    MPL_TRY(hlo_add_operands(b, f, i));
    n = (uint32_t)b->in.n;
    MPL_TRY(mpl_new(b->ctx, arg, (size_t)n + 1));
    memcpy(arg, b->in.item, n * sizeof *arg);
    MPL_TRY(mpl_new(b->ctx, result, (size_t)i->shape.n_leaves + 1));
    MPL_TRY(emit_comp(b, called(b, i, 0), n, arg, i, i->shape.n_leaves, result));
    MPL_TRY(hlo_take_values(b, f, i, i->shape.n_leaves, result));
out:
    mpl_free_each(b->ctx, arg, result);
    return st;
}

static mpl_status open_block(hlo_builder *b, const hlo_instr *i)
{
    char name[160];
    uint32_t block;

    snprintf(name, sizeof name, "%.*s@%u", hlo_shown(i->name), i->name.at, ++b->serial);
    return mpl_graph_open_block(b->ctx, b->g, name, &block);
}

/* Adds a while or case with inputs b->in and the blocks just closed. */
static mpl_status add_control(hlo_builder *b, const hlo_frame *f, const hlo_instr *i,
                              mpl_op_kind kind, uint32_t n_attr, const mpl_attr *attr,
                              uint32_t n_bodies, const uint32_t *body)
{
    char name[128];

    snprintf(name, sizeof name, "%.*s", hlo_shown(i->name), i->name.at);
    b->out.n = 0;
    for (uint32_t k = 0; k < i->shape.n_leaves; k++) {
        HLO_APPEND(b, b->out, k);
    }
    MPL_PASS(hlo_name_outputs(b, i));
    return mpl_graph_add_control(b->ctx, b->g, kind, name, (uint32_t)b->in.n, b->in.item, n_attr,
                                 attr, n_bodies, body, (uint32_t)b->out.n, b->out_name.item,
                                 hlo_values_of(f, i));
}

/* The body of the while: parameters, the condition, the test, what the body computes. */
static mpl_status emit_round(hlo_builder *b, const hlo_instr *i, mpl_value *param, mpl_value *next)
{
    const hlo_comp *body = &b->m->comp.item[called(b, i, 1)];
    const hlo_instr *named =
        body->n_params == 1 ? &b->m->instr.item[b->m->param.item[body->param]] : i;
    mpl_value go;
    uint32_t n = i->shape.n_leaves;
    char round[32];

    snprintf(round, sizeof round, "round@%u", ++b->serial);
    MPL_PASS(mpl_graph_add_param(b->ctx, b->g, round, MPL_TYPE_i64, &(mpl_shape){0}, &go));
    for (uint32_t k = 0; k < n; k++) {
        hlo_clear_names(b);
        MPL_PASS(hlo_put_name(b, named, k));
        MPL_PASS(mpl_graph_add_param(b->ctx, b->g, b->text.item, hlo_leaf_of(b, i, k)->type,
                                     &hlo_leaf_of(b, i, k)->shape, &param[k]));
    }
    MPL_PASS(emit_comp(b, called(b, i, 0), n, param, i, 1, &go));
    MPL_PASS(mpl_graph_add_op(b->ctx, b->g, MPL_OP_exit_unless, "exit_unless", 1, &go, 0, NULL, 0,
                              NULL, NULL));
    return emit_comp(b, called(b, i, 1), n, param, i, n, next);
}

static mpl_status emit_while(hlo_builder *b, const hlo_frame *f, const hlo_instr *i)
{
    mpl_status st = MPL_OK;
    uint32_t n = i->shape.n_leaves, body;
    const hlo_instr *of = i->n_operands == 1 ? hlo_operand(b->m, i, 0) : NULL;
    mpl_value *param = NULL, *next = NULL;

    MPL_TRY(called_by(b, i, 2));
    if (of == NULL || of->shape.n_leaves != n)
        MPL_TRY(hlo_refuse(b->m, i->name.at, "a while has one operand, of its own shape"));
    MPL_TRY(hlo_take_values(b, f, i, n, hlo_values_of(f, of)));
    MPL_TRY(mpl_new_each(b->ctx, (size_t)n + 1, param, next));
    body = b->g->n_blocks;
    MPL_TRY(open_block(b, i));
    next[0] = MPL_NONE;
    MPL_TRY(emit_round(b, i, param, next + 1));
    MPL_TRY(mpl_graph_close_block(b->ctx, b->g, n + 1, next));
    b->in.n = 0;
    MPL_TRY(hlo_add_input(b, MPL_NONE));
    MPL_TRY(hlo_add_input(b, MPL_NONE));
    MPL_TRY(hlo_add_inputs(b, f, of));
    MPL_TRY(
        add_control(b, f, i, MPL_OP_while, 1, (const mpl_attr[]){MPL_INT(carried, n)}, 1, &body));
out:
    mpl_free_each(b->ctx, param, next);
    return st;
}

static mpl_status emit_branch(hlo_builder *b, const hlo_frame *f, const hlo_instr *i, uint32_t k,
                              mpl_value *result)
{
    const hlo_instr *of = hlo_operand(b->m, i, 1 + k);

    MPL_PASS(open_block(b, i));
    MPL_PASS(emit_comp(b, called(b, i, k), of->shape.n_leaves, hlo_values_of(f, of), i,
                       i->shape.n_leaves, result));
    for (uint32_t n = 0; n < i->shape.n_leaves; n++)
        if (!hlo_fits(b, result[n], hlo_leaf_of(b, i, n)))
            return hlo_refuse(b->m, i->name.at, "a branch has not the shape of its conditional");
    return mpl_graph_close_block(b->ctx, b->g, i->shape.n_leaves, result);
}

/* Of a pred, the first branch is that of true; of a number, branches are in its order. */
static mpl_status emit_conditional(hlo_builder *b, const hlo_frame *f, const hlo_instr *i)
{
    mpl_status st = MPL_OK;
    uint32_t n = i->n_called, *body = NULL;
    mpl_value *result = NULL, index;
    bool pred;

    MPL_TRY(called_by(b, i, 1));
    if (i->n_operands != 1 + n || hlo_operand(b->m, i, 0)->shape.n_leaves != 1)
        MPL_TRY(hlo_refuse(b->m, i->name.at,
                           "a conditional has an index and an operand for each branch"));
    index = *hlo_values_of(f, hlo_operand(b->m, i, 0));
    pred = b->g->value_type[index] == MPL_TYPE_bool;
    MPL_TRY(mpl_new(b->ctx, body, n));
    MPL_TRY(mpl_new(b->ctx, result, (size_t)i->shape.n_leaves + 1));
    for (uint32_t k = 0; k < n; k++) {
        body[k] = b->g->n_blocks;
        MPL_TRY(emit_branch(b, f, i, pred ? n - 1 - k : k, result));
    }
    b->in.n = 0;
    MPL_TRY(hlo_add_input(b, index));
    MPL_TRY(add_control(b, f, i, MPL_OP_case, 0, NULL, n, body));
out:
    mpl_free_each(b->ctx, body, result);
    return st;
}

/* ---- computations ---- */

static mpl_status emit(hlo_builder *b, const hlo_frame *f, const hlo_instr *i)
{
    b->n_arrays += 1 + (uint64_t)i->shape.n_leaves;
    if (b->n_arrays > MOST_ARRAYS)
        return MPL_REFUSE(b->ctx, "%s: more than %d instructions and arrays, calls written out",
                          b->m->path, MOST_ARRAYS);
    switch (i->rule != NULL ? (hlo_how)i->rule->how : HLO_OWN) {
    case HLO_OWN:
        return hlo_emit_own(b, f, i);
    case HLO_PARAMETER:
        return MPL_OK;
    case HLO_CONSTANT:
        return emit_constant(b, f, i);
    case HLO_FORWARD:
        return emit_forward(b, f, i);
    case HLO_ELEMENT:
        return emit_element(b, f, i);
    case HLO_TUPLE:
        return emit_tuple(b, f, i);
    case HLO_BITCAST:
        return emit_bitcast(b, f, i);
    case HLO_CALL:
        return emit_call(b, f, i);
    case HLO_WHILE:
        return emit_while(b, f, i);
    case HLO_CONDITIONAL:
        return emit_conditional(b, f, i);
    case HLO_FUSION:
        MPL_PASS(called_by(b, i, 1));
        return hlo_emit_own(b, f, i);
    case HLO_START:
        return emit_start(b, f, i);
    case HLO_DONE:
        return emit_done(b, f, i);
    }
    return MPL_OK;
}

/* Writes a computation's operations for arguments arg[n], the arrays of its parameters one after
 * the other; result receives the arrays of its root, as many as the caller expects. */
static mpl_status emit_comp(hlo_builder *b, uint32_t comp, uint32_t n, const mpl_value *arg,
                            const hlo_instr *caller, uint32_t n_result, mpl_value *result)
{
    mpl_status st = MPL_OK;
    const hlo_comp *c = &b->m->comp.item[comp];
    const hlo_instr *root = &b->m->instr.item[c->root];
    hlo_frame f = {c, NULL};
    uint32_t at = 0;

    if (++b->depth > MOST_NESTED)
        MPL_TRY(hlo_refuse(b->m, caller->name.at,
                           "computations run each other more than %d deep, or in a circle",
                           MOST_NESTED));
    MPL_TRY(mpl_new(b->ctx, f.value, (size_t)c->n_leaves + 1));
    for (uint32_t p = 0; p < c->n_params; p++) {
        const hlo_instr *i = &b->m->instr.item[b->m->param.item[c->param + p]];
        uint32_t left = n - at;

        MPL_TRY(hlo_take_values(b, &f, i, left < i->shape.n_leaves ? left : i->shape.n_leaves,
                                arg + at));
        at += i->shape.n_leaves;
    }
    if (at != n || root->shape.n_leaves != n_result)
        MPL_TRY(hlo_refuse(
            b->m, caller->name.at,
            "'%.*s' hands over %u arrays and takes %u; its computation has %u and %u",
            hlo_shown(caller->name), caller->name.at, n, n_result, at, root->shape.n_leaves));
    for (uint32_t k = c->instr; k < c->instr + c->n_instrs; k++)
        MPL_TRY(emit(b, &f, &b->m->instr.item[k]));
    memcpy(result, hlo_values_of(&f, root), root->shape.n_leaves * sizeof *result);
out:
    mpl_free(b->ctx, f.value);
    b->depth--;
    return st;
}

/* ---- the module ---- */

static mpl_status add_param(hlo_builder *b, const hlo_instr *i, mpl_value *v)
{
    for (uint32_t k = 0; k < i->shape.n_leaves; k++) {
        const hlo_leaf *leaf = hlo_leaf_of(b, i, k);

        hlo_clear_names(b);
        MPL_PASS(hlo_put_name(b, i, k));
        MPL_PASS(mpl_graph_add_value(b->ctx, b->g, b->text.item, MPL_INPUT, leaf->type,
                                     &leaf->shape, &v[k]));
    }
    return MPL_OK;
}

/* Lists what input_output_alias gives: arrays of the root, and of parameters. */
static mpl_status list_gifts(hlo_builder *b, const mpl_value *arg, const mpl_value *result,
                             hlo_gift **out, uint32_t *n)
{
    const hlo_module *m = b->m;
    const hlo_comp *c = &m->comp.item[m->entry];
    const hlo_instr *root = &m->instr.item[c->root];

    *n = 0;
    MPL_PASS(mpl_new(b->ctx, *out, (size_t)m->n_donated + 1));
    for (uint32_t k = m->donated; k < m->donated + m->n_donated; k++) {
        const hlo_alias *a = &m->alias.item[k];
        const hlo_instr *param = NULL;
        hlo_shape of, in;
        uint32_t at = 0;

        for (uint32_t p = 0; p < c->n_params && p <= a->of; p++) {
            at += param != NULL ? param->shape.n_leaves : 0;
            param = &m->instr.item[m->param.item[c->param + p]];
        }
        if (a->of >= c->n_params ||
            !hlo_descend(m, root->shape, m->path_item.item + a->out, a->n_out, &of) ||
            !hlo_descend(m, param->shape, m->path_item.item + a->in, a->n_in, &in) ||
            of.n_leaves != 1 || in.n_leaves != 1)
            return hlo_refuse(m, root->name.at,
                              "input_output_alias names an array that is not there");
        (*out)[(*n)++] =
            (hlo_gift){result[of.leaf - root->shape.leaf], arg[at + in.leaf - param->shape.leaf]};
    }
    return MPL_OK;
}

static mpl_status add_outputs(hlo_builder *b, uint32_t n, const mpl_value *v)
{
    mpl_status st = MPL_OK;
    uint8_t *seen = NULL;

    MPL_TRY(mpl_new(b->ctx, seen, b->g->n_values));
    for (uint32_t k = 0; k < n; k++) {
        if (!seen[v[k]])
            MPL_TRY(mpl_graph_add_output(b->ctx, b->g, v[k]));
        seen[v[k]] = 1;
    }
out:
    mpl_free(b->ctx, seen);
    return st;
}

static mpl_status build_entry(hlo_builder *b, hlo_gift **gift, uint32_t *n_gifts)
{
    mpl_status st = MPL_OK;
    const hlo_module *m = b->m;
    const hlo_comp *c = &m->comp.item[m->entry];
    const hlo_instr *root = &m->instr.item[c->root];
    mpl_value *arg = NULL, *result = NULL;
    uint32_t n = 0;

    MPL_TRY(mpl_new(b->ctx, arg, (size_t)c->n_leaves + 1));
    MPL_TRY(mpl_new(b->ctx, result, (size_t)root->shape.n_leaves + 1));
    for (uint32_t p = 0; p < c->n_params; p++) {
        const hlo_instr *i = &m->instr.item[m->param.item[c->param + p]];

        MPL_TRY(add_param(b, i, arg + n));
        n += i->shape.n_leaves;
    }
    MPL_TRY(emit_comp(b, m->entry, n, arg, root, root->shape.n_leaves, result));
    MPL_TRY(add_outputs(b, root->shape.n_leaves, result));
    MPL_TRY(list_gifts(b, arg, result, gift, n_gifts));
    MPL_TRY(mpl_graph_finish(b->ctx, b->g));
out:
    mpl_free_each(b->ctx, arg, result);
    return st;
}

mpl_status hlo_build(const hlo_module *m, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    hlo_builder b = {.m = m, .ctx = m->ctx};
    hlo_gift *gift = NULL;
    uint32_t n_gifts = 0;
    char name[128];

    snprintf(name, sizeof name, "%.*s", hlo_shown(m->name), m->name.n > 0 ? m->name.at : "");
    MPL_TRY(mpl_graph_new(m->ctx, m->name.n > 0 ? name : "hlo", &b.g));
    MPL_TRY(mpl_reserve(m->ctx, b.in.item, b.in.cap, 1)); /* of no operands, too */
    MPL_TRY(build_entry(&b, &gift, &n_gifts));
    MPL_TRY(hlo_donate(m->ctx, n_gifts, gift, &b.g));
    *out = b.g, b.g = NULL;
out:
    mpl_graph_free(m->ctx, b.g);
    mpl_free(m->ctx, gift);
    mpl_free_each(m->ctx, b.in.item, b.out.item, b.text.item, b.name.item, b.out_name.item,
                  b.out_value.item, b.types.item, b.dims.item);
    mpl_free_each(m->ctx, b.over.item, b.may.item);
    return st;
}
