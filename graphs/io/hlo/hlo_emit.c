/* hlo_emit.c -- see hlo_emit.h: names of values, opaque operations. */
#include "graphs/io/hlo/hlo_emit.h"

enum { MOST_OPERANDS = 1 << 24 };

bool hlo_fits(const hlo_builder *builder, mpl_value v, const hlo_leaf *leaf)
{
    return builder->g->value_type[v] == leaf->type &&
           mpl_shape_equal(&builder->g->value_shape[v], &leaf->shape);
}

uint64_t hlo_bytes_of(const hlo_leaf *leaf)
{
    uint64_t bytes = 0;

    mpl_type_size(leaf->type, (uint64_t)mpl_count(&leaf->shape), &bytes);
    return bytes;
}

mpl_status hlo_take_values(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr,
                           uint32_t n, const mpl_value *v)
{
    bool same = n == instr->shape.n_leaves;

    for (uint32_t k = 0; k < n && same; k++)
        same = hlo_fits(builder, v[k], hlo_leaf_of(builder, instr, k));
    if (!same)
        return hlo_refuse(builder->module, instr->name.at,
                          "'%.*s' has not the shape of what it is made from",
                          hlo_shown(instr->name), instr->name.at);
    memcpy(hlo_values_of(frame, instr), v, n * sizeof *v);
    return MPL_OK;
}

/* ---- names ---- */

static mpl_status put_text(hlo_builder *builder, const char *text, size_t n)
{
    MPL_PASS(
        mpl_reserve(builder->ctx, builder->text.item, builder->text.cap, builder->text.n + n + 1));
    memcpy(builder->text.item + builder->text.n, text, n);
    builder->text.n += n;
    builder->text.item[builder->text.n] = '\0';
    return MPL_OK;
}

mpl_status hlo_put_name(hlo_builder *builder, const hlo_instr *instr, uint32_t k)
{
    size_t begin = builder->text.n;
    char number[32];

    HLO_APPEND(builder, builder->name, begin);
    MPL_PASS(put_text(builder, instr->name.at, instr->name.n));
    snprintf(number, sizeof number, "{%u}", k);
    if (instr->shape.n_leaves > 1)
        MPL_PASS(put_text(builder, number, strlen(number)));
    snprintf(number, sizeof number, "@%u", ++builder->serial);
    if (mpl_graph_find(builder->g, builder->text.item + begin) != MPL_NONE)
        MPL_PASS(put_text(builder, number, strlen(number)));
    builder->text.n++; /* behind the zero */
    return MPL_OK;
}

void hlo_clear_names(hlo_builder *builder)
{
    builder->text.n = builder->name.n = 0;
}

mpl_status hlo_name_outputs(hlo_builder *builder, const hlo_instr *instr)
{
    hlo_clear_names(builder);
    for (size_t k = 0; k < builder->out.n; k++)
        MPL_PASS(hlo_put_name(builder, instr, builder->out.item[k]));
    MPL_PASS(mpl_reserve(builder->ctx, builder->out_name.item, builder->out_name.cap,
                         builder->out.n + 1));
    MPL_PASS(mpl_reserve(builder->ctx, builder->out_value.item, builder->out_value.cap,
                         builder->out.n + 1));
    for (size_t k = 0; k < builder->out.n; k++)
        builder->out_name.item[k] = builder->text.item + builder->name.item[k];
    return MPL_OK;
}

/* ---- opaque operations ---- */

mpl_status hlo_add_input(hlo_builder *builder, mpl_value v)
{
    if (++builder->n_operands > MOST_OPERANDS)
        return MPL_REFUSE(builder->ctx, "%s: more than %d operands, calls written out",
                          builder->module->path, MOST_OPERANDS);
    HLO_APPEND(builder, builder->in, v);
    return MPL_OK;
}

mpl_status hlo_add_inputs(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr)
{
    for (uint32_t k = 0; k < instr->shape.n_leaves; k++)
        MPL_PASS(hlo_add_input(builder, hlo_values_of(frame, instr)[k]));
    return MPL_OK;
}

mpl_status hlo_add_operands(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr)
{
    for (uint32_t k = 0; k < instr->n_operands; k++)
        MPL_PASS(hlo_add_inputs(builder, frame, hlo_operand(builder->module, instr, k)));
    return MPL_OK;
}

/* Writes types and dims of the arrays builder->out. */
static mpl_status describe(hlo_builder *builder, const hlo_instr *instr)
{
    builder->types.n = builder->dims.n = 0;
    for (size_t k = 0; k < builder->out.n; k++) {
        const hlo_leaf *leaf = hlo_leaf_of(builder, instr, builder->out.item[k]);
        const char *type = mpl_type_name(leaf->type);
        size_t n = strlen(type);

        MPL_PASS(mpl_reserve(builder->ctx, builder->types.item, builder->types.cap,
                             builder->types.n + n + 2));
        memcpy(builder->types.item + builder->types.n, type, n);
        builder->types.item[builder->types.n += n] = ' ';
        builder->types.n++;
        HLO_APPEND(builder, builder->dims, leaf->shape.rank);
        for (uint32_t d = 0; d < leaf->shape.rank; d++) {
            HLO_APPEND(builder, builder->dims, leaf->shape.dim[d]);
        }
    }
    HLO_APPEND(builder, builder->types, '\0');
    builder->types.item[builder->types.n >= 2 ? builder->types.n - 2 : 0] = '\0';
    return MPL_OK;
}

mpl_status hlo_add_opaque(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr,
                          mpl_op_kind kind)
{
    mpl_attr attr[4];
    uint32_t n = 0;
    char opcode[80];

    snprintf(opcode, sizeof opcode, "%s%.*s", instr->rule == NULL ? "unknown:" : "",
             (int)(instr->opcode.n < 60 ? instr->opcode.n : 60), instr->opcode.at);
    MPL_PASS(hlo_name_outputs(builder, instr));
    MPL_PASS(describe(builder, instr));
    attr[n++] = MPL_TEXT(opcode, opcode);
    if (builder->out.n > 0) {
        attr[n++] = MPL_TEXT(to, builder->types.item);
        attr[n++] = MPL_INTS(shape, (uint32_t)builder->dims.n, builder->dims.item);
    }
    if (builder->over.n > 0)
        attr[n++] = MPL_INTS(over, (uint32_t)builder->over.n, builder->over.item);
    MPL_PASS(put_text(builder, instr->name.at, instr->name.n));
    for (size_t k = 0; k < builder->out.n; k++) /* names may have moved */
        builder->out_name.item[k] = builder->text.item + builder->name.item[k];
    MPL_PASS(mpl_graph_add_op(
        builder->ctx, builder->g, kind, builder->text.item + builder->text.n - instr->name.n,
        (uint32_t)builder->in.n, builder->in.item, n, attr, (uint32_t)builder->out.n,
        builder->out_name.item, builder->out_value.item));
    for (size_t k = 0; k < builder->out.n; k++)
        hlo_values_of(frame, instr)[builder->out.item[k]] = builder->out_value.item[k];
    return MPL_OK;
}

mpl_status hlo_begin_op(hlo_builder *builder, uint32_t from, uint32_t to)
{
    builder->in.n = builder->out.n = builder->over.n = 0;
    for (uint32_t k = from; k < to; k++) {
        HLO_APPEND(builder, builder->out, k);
    }
    return MPL_OK;
}

/* Chooses the result that comes first, since that alone may lie over operands: the largest that
 * can. Then lists these operands, as numbers of inputs. */
static mpl_status choose_pairs(hlo_builder *builder, const hlo_instr *instr)
{
    uint32_t best = MPL_NONE, at = 0;
    uint64_t most = 0;

    if (instr->rule == NULL || instr->rule->over == HLO_NONE)
        return MPL_OK;
    MPL_PASS(mpl_reserve(builder->ctx, builder->may.item, builder->may.cap,
                         2 * (size_t)instr->n_operands + 1));
    for (uint32_t k = 0; k < instr->shape.n_leaves; k++) {
        const hlo_leaf *leaf = hlo_leaf_of(builder, instr, k);
        uint64_t bytes = hlo_bytes_of(leaf);
        uint8_t *may = builder->may.item + instr->n_operands;

        if (bytes <= most)
            continue;
        MPL_PASS(hlo_overwrites(builder->module, instr, k, may));
        if (memchr(may, 1, instr->n_operands) == NULL)
            continue;
        memcpy(builder->may.item, may, instr->n_operands);
        best = k;
        most = bytes;
    }
    if (best == MPL_NONE)
        return MPL_OK;
    memmove(builder->out.item + 1, builder->out.item, best * sizeof *builder->out.item);
    builder->out.item[0] = best;
    for (uint32_t k = 0; k < instr->n_operands; k++) {
        if (builder->may.item[k]) {
            HLO_APPEND(builder, builder->over, at);
        }
        at += hlo_operand(builder->module, instr, k)->shape.n_leaves;
    }
    return MPL_OK;
}

mpl_status hlo_emit_own(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr)
{
    MPL_PASS(hlo_begin_op(builder, 0, instr->shape.n_leaves));
    MPL_PASS(hlo_add_operands(builder, frame, instr));
    MPL_PASS(choose_pairs(builder, instr));
    return hlo_add_opaque(builder, frame, instr, MPL_OP_opaque);
}
