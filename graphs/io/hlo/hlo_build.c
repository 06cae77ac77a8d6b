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

static mpl_status emit_comp(hlo_builder *builder, uint32_t comp, uint32_t n, const mpl_value *arg,
                            const hlo_instr *caller, uint32_t n_result, mpl_value *result);

/* ---- what has no bytes of its own ---- */

static mpl_status emit_bitcast(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr)
{
    const hlo_instr *of = instr->n_operands == 1 ? hlo_operand(builder->module, instr, 0) : NULL;
    mpl_value v;
    bool same;

    if (of == NULL || of->shape.n_leaves != 1 || instr->shape.n_leaves != 1)
        return hlo_refuse(builder->module, instr->name.at, "a bitcast is of one array");
    v = *hlo_values_of(frame, of);
    if (hlo_fits(builder, v, hlo_leaf_of(builder, instr, 0)))
        return hlo_take_values(builder, frame, instr, 1, &v);
    MPL_PASS(hlo_begin_op(builder, 0, 1));
    MPL_PASS(hlo_add_input(builder, v));
    same = hlo_bytes_of(hlo_leaf_of(builder, instr, 0)) == builder->g->value_bytes[v]; /* else:
                                                                                          other
                                                                                          padding */
    return hlo_add_opaque(builder, frame, instr, same ? MPL_OP_opaque_view : MPL_OP_opaque);
}

static mpl_status emit_element(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr)
{
    const hlo_instr *of = instr->n_operands == 1 ? hlo_operand(builder->module, instr, 0) : NULL;
    hlo_shape part;

    if (of == NULL || !hlo_element(builder->module, of->shape, instr->number, &part))
        return hlo_refuse(builder->module, instr->name.at,
                          "get-tuple-element: the operand has no element %" PRId64, instr->number);
    return hlo_take_values(builder, frame, instr, part.n_leaves,
                           frame->value + (part.leaf - frame->comp->leaf));
}

static mpl_status emit_tuple(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr)
{
    builder->in.n = 0;
    MPL_PASS(hlo_add_operands(builder, frame, instr));
    return hlo_take_values(builder, frame, instr, (uint32_t)builder->in.n, builder->in.item);
}

static mpl_status emit_forward(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr)
{
    const hlo_instr *of = instr->n_operands > 0 ? hlo_operand(builder->module, instr, 0) : instr;

    return hlo_take_values(builder, frame, instr, of == instr ? MPL_NONE : of->shape.n_leaves,
                           hlo_values_of(frame, of));
}

static mpl_status emit_constant(hlo_builder *builder, const hlo_frame *frame,
                                const hlo_instr *instr)
{
    for (uint32_t k = 0; k < instr->shape.n_leaves; k++) {
        const hlo_leaf *leaf = hlo_leaf_of(builder, instr, k);

        hlo_clear_names(builder);
        MPL_PASS(hlo_put_name(builder, instr, k));
        MPL_PASS(mpl_graph_add_value(builder->ctx, builder->g, builder->text.item, MPL_WEIGHT,
                                     leaf->type, &leaf->shape, &hlo_values_of(frame, instr)[k]));
    }
    return MPL_OK;
}

/* ---- async pairs ---- */

static mpl_status emit_start(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr)
{
    hlo_shape part = {0, instr->shape.leaf, 0};
    uint32_t first, end;

    if (instr->rule->part != HLO_ALL &&
        !hlo_element(builder->module, instr->shape, instr->rule->part, &part))
        part.n_leaves = 0;
    first = part.leaf - instr->shape.leaf;
    end = first + part.n_leaves;
    MPL_PASS(hlo_begin_op(builder, 0, first));
    for (uint32_t k = end; k < instr->shape.n_leaves; k++) {
        HLO_APPEND(builder, builder->out, k);
    }
    MPL_PASS(hlo_add_operands(builder, frame, instr));
    for (uint32_t k = 0; k < part.n_leaves; k++)
        if (builder->in.n != part.n_leaves ||
            !hlo_fits(builder, builder->in.item[k], hlo_leaf_of(builder, instr, first + k)))
            return hlo_refuse(builder->module, instr->name.at,
                              "'%.*s' does not hold its operands in element %u",
                              hlo_shown(instr->name), instr->name.at, instr->rule->part);
    for (uint32_t k = 0; k < part.n_leaves; k++)
        hlo_values_of(frame, instr)[first + k] = builder->in.item[k];
    return hlo_add_opaque(builder, frame, instr, MPL_OP_opaque);
}

/* The results are views of what the pair's beginning made; its operands are read until here. */
static mpl_status emit_done(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr)
{
    const hlo_instr *of = instr->n_operands > 0 ? hlo_operand(builder->module, instr, 0) : NULL;
    hlo_shape part = of != NULL ? of->shape : (hlo_shape){0};

    if (of == NULL || (instr->rule->part != HLO_ALL &&
                       !hlo_element(builder->module, of->shape, instr->rule->part, &part)))
        return hlo_refuse(builder->module, instr->name.at, "'%.*s' ends no async pair",
                          hlo_shown(instr->name), instr->name.at);
    for (uint32_t k = 0; k < instr->shape.n_leaves; k++) {
        mpl_value v =
            k < part.n_leaves ? frame->value[part.leaf - frame->comp->leaf + k] : MPL_NONE;

        MPL_PASS(hlo_begin_op(builder, k, k + 1));
        if (v != MPL_NONE && !hlo_fits(builder, v, hlo_leaf_of(builder, instr, k)))
            return hlo_refuse(builder->module, instr->name.at,
                              "'%.*s' has not the shape of what ends", hlo_shown(instr->name),
                              instr->name.at);
        if (v != MPL_NONE)
            MPL_PASS(hlo_add_input(builder, v));
        MPL_PASS(hlo_add_inputs(builder, frame, of));
        if (of->rule != NULL && of->rule->how == HLO_START)
            MPL_PASS(hlo_add_operands(builder, frame, of));
        MPL_PASS(hlo_add_opaque(builder, frame, instr,
                                v != MPL_NONE ? MPL_OP_opaque_view : MPL_OP_opaque));
    }
    return MPL_OK;
}

/* ---- computations that others run ---- */

static mpl_status called_by(const hlo_builder *builder, const hlo_instr *instr, uint32_t least)
{
    if (instr->n_called < least)
        return hlo_refuse(builder->module, instr->name.at, "'%.*s' names too few computations",
                          hlo_shown(instr->name), instr->name.at);
    return MPL_OK;
}

static uint32_t called(const hlo_builder *builder, const hlo_instr *instr, uint32_t k)
{
    return builder->module->called.item[instr->called + k];
}

/* Runs a computation on the values builder->in and makes its results the arrays of the instruction.
 */
static mpl_status emit_call(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr)
{
    mpl_status st = MPL_OK;
    mpl_value *arg = NULL, *result = NULL;
    uint32_t n;

    MPL_TRY(called_by(builder, instr, 1));
    builder->in.n = 0;
    MPL_TRY(hlo_add_operands(builder, frame, instr));
    n = (uint32_t)builder->in.n;
    MPL_TRY(mpl_new(builder->ctx, arg, (size_t)n + 1));
    memcpy(arg, builder->in.item, n * sizeof *arg);
    MPL_TRY(mpl_new(builder->ctx, result, (size_t)instr->shape.n_leaves + 1));
    MPL_TRY(emit_comp(builder, called(builder, instr, 0), n, arg, instr, instr->shape.n_leaves,
                      result));
    MPL_TRY(hlo_take_values(builder, frame, instr, instr->shape.n_leaves, result));
out:
    mpl_free_each(builder->ctx, arg, result);
    return st;
}

static mpl_status open_block(hlo_builder *builder, const hlo_instr *instr)
{
    char name[160];
    uint32_t block;

    snprintf(name, sizeof name, "%.*s@%u", hlo_shown(instr->name), instr->name.at,
             ++builder->serial);
    return mpl_graph_open_block(builder->ctx, builder->g, name, &block);
}

/* Adds a while or case with inputs builder->in and the blocks just closed. */
static mpl_status add_control(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr,
                              mpl_op_kind kind, uint32_t n_attr, const mpl_attr *attr,
                              uint32_t n_bodies, const uint32_t *body)
{
    char name[128];

    snprintf(name, sizeof name, "%.*s", hlo_shown(instr->name), instr->name.at);
    builder->out.n = 0;
    for (uint32_t k = 0; k < instr->shape.n_leaves; k++) {
        HLO_APPEND(builder, builder->out, k);
    }
    MPL_PASS(hlo_name_outputs(builder, instr));
    return mpl_graph_add_control(builder->ctx, builder->g, kind, name, (uint32_t)builder->in.n,
                                 builder->in.item, n_attr, attr, n_bodies, body,
                                 (uint32_t)builder->out.n, builder->out_name.item,
                                 hlo_values_of(frame, instr));
}

/* The body of the while: parameters, the condition, the test, what the body computes. */
static mpl_status emit_round(hlo_builder *builder, const hlo_instr *instr, mpl_value *param,
                             mpl_value *next)
{
    const hlo_comp *body = &builder->module->comp.item[called(builder, instr, 1)];
    const hlo_instr *named =
        body->n_params == 1 ? &builder->module->instr.item[builder->module->param.item[body->param]]
                            : instr;
    mpl_value go;
    uint32_t n = instr->shape.n_leaves;
    char round[32];

    snprintf(round, sizeof round, "round@%u", ++builder->serial);
    MPL_PASS(
        mpl_graph_add_param(builder->ctx, builder->g, round, MPL_TYPE_i64, &(mpl_shape){0}, &go));
    for (uint32_t k = 0; k < n; k++) {
        hlo_clear_names(builder);
        MPL_PASS(hlo_put_name(builder, named, k));
        MPL_PASS(mpl_graph_add_param(builder->ctx, builder->g, builder->text.item,
                                     hlo_leaf_of(builder, instr, k)->type,
                                     &hlo_leaf_of(builder, instr, k)->shape, &param[k]));
    }
    MPL_PASS(emit_comp(builder, called(builder, instr, 0), n, param, instr, 1, &go));
    MPL_PASS(mpl_graph_add_op(builder->ctx, builder->g, MPL_OP_exit_unless, "exit_unless", 1, &go,
                              0, NULL, 0, NULL, NULL));
    return emit_comp(builder, called(builder, instr, 1), n, param, instr, n, next);
}

static mpl_status emit_while(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr)
{
    mpl_status st = MPL_OK;
    uint32_t n = instr->shape.n_leaves, body;
    const hlo_instr *of = instr->n_operands == 1 ? hlo_operand(builder->module, instr, 0) : NULL;
    mpl_value *param = NULL, *next = NULL;

    MPL_TRY(called_by(builder, instr, 2));
    if (of == NULL || of->shape.n_leaves != n)
        MPL_TRY(hlo_refuse(builder->module, instr->name.at,
                           "a while has one operand, of its own shape"));
    MPL_TRY(hlo_take_values(builder, frame, instr, n, hlo_values_of(frame, of)));
    MPL_TRY(mpl_new_each(builder->ctx, (size_t)n + 1, param, next));
    body = builder->g->n_blocks;
    MPL_TRY(open_block(builder, instr));
    next[0] = MPL_NONE;
    MPL_TRY(emit_round(builder, instr, param, next + 1));
    MPL_TRY(mpl_graph_close_block(builder->ctx, builder->g, n + 1, next));
    builder->in.n = 0;
    MPL_TRY(hlo_add_input(builder, MPL_NONE));
    MPL_TRY(hlo_add_input(builder, MPL_NONE));
    MPL_TRY(hlo_add_inputs(builder, frame, of));
    MPL_TRY(add_control(builder, frame, instr, MPL_OP_while, 1,
                        (const mpl_attr[]){MPL_INT(carried, n)}, 1, &body));
out:
    mpl_free_each(builder->ctx, param, next);
    return st;
}

static mpl_status emit_branch(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr,
                              uint32_t k, mpl_value *result)
{
    const hlo_instr *of = hlo_operand(builder->module, instr, 1 + k);

    MPL_PASS(open_block(builder, instr));
    MPL_PASS(emit_comp(builder, called(builder, instr, k), of->shape.n_leaves,
                       hlo_values_of(frame, of), instr, instr->shape.n_leaves, result));
    for (uint32_t n = 0; n < instr->shape.n_leaves; n++)
        if (!hlo_fits(builder, result[n], hlo_leaf_of(builder, instr, n)))
            return hlo_refuse(builder->module, instr->name.at,
                              "a branch has not the shape of its conditional");
    return mpl_graph_close_block(builder->ctx, builder->g, instr->shape.n_leaves, result);
}

/* Of a pred, the first branch is that of true; of a number, branches are in its order. */
static mpl_status emit_conditional(hlo_builder *builder, const hlo_frame *frame,
                                   const hlo_instr *instr)
{
    mpl_status st = MPL_OK;
    uint32_t n = instr->n_called, *body = NULL;
    mpl_value *result = NULL, index;
    bool pred;

    MPL_TRY(called_by(builder, instr, 1));
    if (instr->n_operands != 1 + n || hlo_operand(builder->module, instr, 0)->shape.n_leaves != 1)
        MPL_TRY(hlo_refuse(builder->module, instr->name.at,
                           "a conditional has an index and an operand for each branch"));
    index = *hlo_values_of(frame, hlo_operand(builder->module, instr, 0));
    pred = builder->g->value_type[index] == MPL_TYPE_bool;
    MPL_TRY(mpl_new(builder->ctx, body, n));
    MPL_TRY(mpl_new(builder->ctx, result, (size_t)instr->shape.n_leaves + 1));
    for (uint32_t k = 0; k < n; k++) {
        body[k] = builder->g->n_blocks;
        MPL_TRY(emit_branch(builder, frame, instr, pred ? n - 1 - k : k, result));
    }
    builder->in.n = 0;
    MPL_TRY(hlo_add_input(builder, index));
    MPL_TRY(add_control(builder, frame, instr, MPL_OP_case, 0, NULL, n, body));
out:
    mpl_free_each(builder->ctx, body, result);
    return st;
}

/* ---- computations ---- */

static mpl_status emit(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr)
{
    builder->n_arrays += 1 + (uint64_t)instr->shape.n_leaves;
    if (builder->n_arrays > MOST_ARRAYS)
        return MPL_REFUSE(builder->ctx,
                          "%s: more than %d instructions and arrays, calls written out",
                          builder->module->path, MOST_ARRAYS);
    switch (instr->rule != NULL ? (hlo_how)instr->rule->how : HLO_OWN) {
    case HLO_OWN:
        return hlo_emit_own(builder, frame, instr);
    case HLO_PARAMETER:
        return MPL_OK;
    case HLO_CONSTANT:
        return emit_constant(builder, frame, instr);
    case HLO_FORWARD:
        return emit_forward(builder, frame, instr);
    case HLO_ELEMENT:
        return emit_element(builder, frame, instr);
    case HLO_TUPLE:
        return emit_tuple(builder, frame, instr);
    case HLO_BITCAST:
        return emit_bitcast(builder, frame, instr);
    case HLO_CALL:
        return emit_call(builder, frame, instr);
    case HLO_WHILE:
        return emit_while(builder, frame, instr);
    case HLO_CONDITIONAL:
        return emit_conditional(builder, frame, instr);
    case HLO_FUSION:
        MPL_PASS(called_by(builder, instr, 1));
        return hlo_emit_own(builder, frame, instr);
    case HLO_START:
        return emit_start(builder, frame, instr);
    case HLO_DONE:
        return emit_done(builder, frame, instr);
    }
    return MPL_OK;
}

/* Writes a computation's operations for arguments arg[n], the arrays of its parameters one after
 * the other; result receives the arrays of its root, as many as the caller expects. */
static mpl_status emit_comp(hlo_builder *builder, uint32_t comp, uint32_t n, const mpl_value *arg,
                            const hlo_instr *caller, uint32_t n_result, mpl_value *result)
{
    mpl_status st = MPL_OK;
    const hlo_comp *c = &builder->module->comp.item[comp];
    const hlo_instr *root = &builder->module->instr.item[c->root];
    hlo_frame f = {c, NULL};
    uint32_t at = 0;

    if (++builder->depth > MOST_NESTED)
        MPL_TRY(hlo_refuse(builder->module, caller->name.at,
                           "computations run each other more than %d deep, or in a circle",
                           MOST_NESTED));
    MPL_TRY(mpl_new(builder->ctx, f.value, (size_t)c->n_leaves + 1));
    for (uint32_t p = 0; p < c->n_params; p++) {
        const hlo_instr *instr =
            &builder->module->instr.item[builder->module->param.item[c->param + p]];
        uint32_t left = n - at;

        MPL_TRY(hlo_take_values(builder, &f, instr,
                                left < instr->shape.n_leaves ? left : instr->shape.n_leaves,
                                arg + at));
        at += instr->shape.n_leaves;
    }
    if (at != n || root->shape.n_leaves != n_result)
        MPL_TRY(hlo_refuse(
            builder->module, caller->name.at,
            "'%.*s' hands over %u arrays and takes %u; its computation has %u and %u",
            hlo_shown(caller->name), caller->name.at, n, n_result, at, root->shape.n_leaves));
    for (uint32_t k = c->instr; k < c->instr + c->n_instrs; k++)
        MPL_TRY(emit(builder, &f, &builder->module->instr.item[k]));
    memcpy(result, hlo_values_of(&f, root), root->shape.n_leaves * sizeof *result);
out:
    mpl_free(builder->ctx, f.value);
    builder->depth--;
    return st;
}

/* ---- the module ---- */

static mpl_status add_param(hlo_builder *builder, const hlo_instr *instr, mpl_value *v)
{
    for (uint32_t k = 0; k < instr->shape.n_leaves; k++) {
        const hlo_leaf *leaf = hlo_leaf_of(builder, instr, k);

        hlo_clear_names(builder);
        MPL_PASS(hlo_put_name(builder, instr, k));
        MPL_PASS(mpl_graph_add_value(builder->ctx, builder->g, builder->text.item, MPL_INPUT,
                                     leaf->type, &leaf->shape, &v[k]));
    }
    return MPL_OK;
}

/* Lists what input_output_alias gives: arrays of the root, and of parameters. */
static mpl_status list_gifts(hlo_builder *builder, const mpl_value *arg, const mpl_value *result,
                             hlo_gift **out, uint32_t *n)
{
    const hlo_module *module = builder->module;
    const hlo_comp *comp = &module->comp.item[module->entry];
    const hlo_instr *root = &module->instr.item[comp->root];

    *n = 0;
    MPL_PASS(mpl_new(builder->ctx, *out, (size_t)module->n_donated + 1));
    for (uint32_t k = module->donated; k < module->donated + module->n_donated; k++) {
        const hlo_alias *alias = &module->alias.item[k];
        const hlo_instr *param = NULL;
        hlo_shape of, in;
        uint32_t at = 0;

        for (uint32_t p = 0; p < comp->n_params && p <= alias->of; p++) {
            at += param != NULL ? param->shape.n_leaves : 0;
            param = &module->instr.item[module->param.item[comp->param + p]];
        }
        if (alias->of >= comp->n_params ||
            !hlo_descend(module, root->shape, module->path_item.item + alias->out, alias->n_out,
                         &of) ||
            !hlo_descend(module, param->shape, module->path_item.item + alias->in, alias->n_in,
                         &in) ||
            of.n_leaves != 1 || in.n_leaves != 1)
            return hlo_refuse(module, root->name.at,
                              "input_output_alias names an array that is not there");
        (*out)[(*n)++] =
            (hlo_gift){result[of.leaf - root->shape.leaf], arg[at + in.leaf - param->shape.leaf]};
    }
    return MPL_OK;
}

static mpl_status add_outputs(hlo_builder *builder, uint32_t n, const mpl_value *v)
{
    mpl_status st = MPL_OK;
    uint8_t *seen = NULL;

    MPL_TRY(mpl_new(builder->ctx, seen, builder->g->n_values));
    for (uint32_t k = 0; k < n; k++) {
        if (!seen[v[k]])
            MPL_TRY(mpl_graph_add_output(builder->ctx, builder->g, v[k]));
        seen[v[k]] = 1;
    }
out:
    mpl_free(builder->ctx, seen);
    return st;
}

static mpl_status build_entry(hlo_builder *builder, hlo_gift **gift, uint32_t *n_gifts)
{
    mpl_status st = MPL_OK;
    const hlo_module *module = builder->module;
    const hlo_comp *comp = &module->comp.item[module->entry];
    const hlo_instr *root = &module->instr.item[comp->root];
    mpl_value *arg = NULL, *result = NULL;
    uint32_t n = 0;

    MPL_TRY(mpl_new(builder->ctx, arg, (size_t)comp->n_leaves + 1));
    MPL_TRY(mpl_new(builder->ctx, result, (size_t)root->shape.n_leaves + 1));
    for (uint32_t p = 0; p < comp->n_params; p++) {
        const hlo_instr *instr = &module->instr.item[module->param.item[comp->param + p]];

        MPL_TRY(add_param(builder, instr, arg + n));
        n += instr->shape.n_leaves;
    }
    MPL_TRY(emit_comp(builder, module->entry, n, arg, root, root->shape.n_leaves, result));
    MPL_TRY(add_outputs(builder, root->shape.n_leaves, result));
    MPL_TRY(list_gifts(builder, arg, result, gift, n_gifts));
    MPL_TRY(mpl_graph_finish(builder->ctx, builder->g));
out:
    mpl_free_each(builder->ctx, arg, result);
    return st;
}

mpl_status hlo_build(const hlo_module *module, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    hlo_builder b = {.module = module, .ctx = module->ctx};
    hlo_gift *gift = NULL;
    uint32_t n_gifts = 0;
    char name[128];

    snprintf(name, sizeof name, "%.*s", hlo_shown(module->name),
             module->name.n > 0 ? module->name.at : "");
    MPL_TRY(mpl_graph_new(module->ctx, module->name.n > 0 ? name : "hlo", &b.g));
    MPL_TRY(mpl_reserve(module->ctx, b.in.item, b.in.cap, 1)); /* of no operands, too */
    MPL_TRY(build_entry(&b, &gift, &n_gifts));
    MPL_TRY(hlo_donate(module->ctx, n_gifts, gift, &b.g));
    *out = b.g, b.g = NULL;
out:
    mpl_graph_free(module->ctx, b.g);
    mpl_free(module->ctx, gift);
    mpl_free_each(module->ctx, b.in.item, b.out.item, b.text.item, b.name.item, b.out_name.item,
                  b.out_value.item, b.types.item, b.dims.item);
    mpl_free_each(module->ctx, b.over.item, b.may.item);
    return st;
}
