/* hlo_emit.c -- see hlo_emit.h: names of values, opaque operations. */
#include "graphs/io/hlo/hlo_emit.h"

enum { MOST_OPERANDS = 1 << 24 };

bool hlo_fits(const hlo_builder *b, mpl_value v, const hlo_leaf *leaf)
{
    return b->g->value_type[v] == leaf->type &&
           mpl_shape_equal(&b->g->value_shape[v], &leaf->shape);
}

uint64_t hlo_bytes_of(const hlo_leaf *leaf)
{
    uint64_t bytes = 0;

    mpl_type_size(leaf->type, (uint64_t)mpl_count(&leaf->shape), &bytes);
    return bytes;
}

mpl_status hlo_take_values(hlo_builder *b, const hlo_frame *f, const hlo_instr *i, uint32_t n,
                           const mpl_value *v)
{
    bool same = n == i->shape.n_leaves;

    for (uint32_t k = 0; k < n && same; k++)
        same = hlo_fits(b, v[k], hlo_leaf_of(b, i, k));
    if (!same)
        return hlo_refuse(b->m, i->name.at, "'%.*s' has not the shape of what it is made from",
                          hlo_shown(i->name), i->name.at);
    memcpy(hlo_values_of(f, i), v, n * sizeof *v);
    return MPL_OK;
}

/* ---- names ---- */

static mpl_status put_text(hlo_builder *b, const char *text, size_t n)
{
    MPL_PASS(mpl_reserve(b->ctx, b->text.item, b->text.cap, b->text.n + n + 1));
    memcpy(b->text.item + b->text.n, text, n);
    b->text.n += n;
    b->text.item[b->text.n] = '\0';
    return MPL_OK;
}

mpl_status hlo_put_name(hlo_builder *b, const hlo_instr *i, uint32_t k)
{
    size_t begin = b->text.n;
    char number[32];

    HLO_APPEND(b, b->name, begin);
    MPL_PASS(put_text(b, i->name.at, i->name.n));
    snprintf(number, sizeof number, "{%u}", k);
    if (i->shape.n_leaves > 1)
        MPL_PASS(put_text(b, number, strlen(number)));
    snprintf(number, sizeof number, "@%u", ++b->serial);
    if (mpl_graph_find(b->g, b->text.item + begin) != MPL_NONE)
        MPL_PASS(put_text(b, number, strlen(number)));
    b->text.n++; /* behind the zero */
    return MPL_OK;
}

void hlo_clear_names(hlo_builder *b)
{
    b->text.n = b->name.n = 0;
}

mpl_status hlo_name_outputs(hlo_builder *b, const hlo_instr *i)
{
    hlo_clear_names(b);
    for (size_t k = 0; k < b->out.n; k++)
        MPL_PASS(hlo_put_name(b, i, b->out.item[k]));
    MPL_PASS(mpl_reserve(b->ctx, b->out_name.item, b->out_name.cap, b->out.n + 1));
    MPL_PASS(mpl_reserve(b->ctx, b->out_value.item, b->out_value.cap, b->out.n + 1));
    for (size_t k = 0; k < b->out.n; k++)
        b->out_name.item[k] = b->text.item + b->name.item[k];
    return MPL_OK;
}

/* ---- opaque operations ---- */

mpl_status hlo_add_input(hlo_builder *b, mpl_value v)
{
    if (++b->n_operands > MOST_OPERANDS)
        return MPL_REFUSE(b->ctx, "%s: more than %d operands, calls written out", b->m->path,
                          MOST_OPERANDS);
    HLO_APPEND(b, b->in, v);
    return MPL_OK;
}

mpl_status hlo_add_inputs(hlo_builder *b, const hlo_frame *f, const hlo_instr *i)
{
    for (uint32_t k = 0; k < i->shape.n_leaves; k++)
        MPL_PASS(hlo_add_input(b, hlo_values_of(f, i)[k]));
    return MPL_OK;
}

mpl_status hlo_add_operands(hlo_builder *b, const hlo_frame *f, const hlo_instr *i)
{
    for (uint32_t k = 0; k < i->n_operands; k++)
        MPL_PASS(hlo_add_inputs(b, f, hlo_operand(b->m, i, k)));
    return MPL_OK;
}

/* Writes types and dims of the arrays b->out. */
static mpl_status describe(hlo_builder *b, const hlo_instr *i)
{
    b->types.n = b->dims.n = 0;
    for (size_t k = 0; k < b->out.n; k++) {
        const hlo_leaf *leaf = hlo_leaf_of(b, i, b->out.item[k]);
        const char *type = mpl_type_name(leaf->type);
        size_t n = strlen(type);

        MPL_PASS(mpl_reserve(b->ctx, b->types.item, b->types.cap, b->types.n + n + 2));
        memcpy(b->types.item + b->types.n, type, n);
        b->types.item[b->types.n += n] = ' ';
        b->types.n++;
        HLO_APPEND(b, b->dims, leaf->shape.rank);
        for (uint32_t d = 0; d < leaf->shape.rank; d++) {
            HLO_APPEND(b, b->dims, leaf->shape.dim[d]);
        }
    }
    HLO_APPEND(b, b->types, '\0');
    b->types.item[b->types.n >= 2 ? b->types.n - 2 : 0] = '\0';
    return MPL_OK;
}

mpl_status hlo_add_opaque(hlo_builder *b, const hlo_frame *f, const hlo_instr *i, mpl_op_kind kind)
{
    mpl_attr attr[4];
    uint32_t n = 0;
    char opcode[80];

    snprintf(opcode, sizeof opcode, "%s%.*s", i->rule == NULL ? "unknown:" : "",
             (int)(i->opcode.n < 60 ? i->opcode.n : 60), i->opcode.at);
    MPL_PASS(hlo_name_outputs(b, i));
    MPL_PASS(describe(b, i));
    attr[n++] = MPL_TEXT(opcode, opcode);
    if (b->out.n > 0) {
        attr[n++] = MPL_TEXT(to, b->types.item);
        attr[n++] = MPL_INTS(shape, (uint32_t)b->dims.n, b->dims.item);
    }
    if (b->over.n > 0)
        attr[n++] = MPL_INTS(over, (uint32_t)b->over.n, b->over.item);
    MPL_PASS(put_text(b, i->name.at, i->name.n));
    for (size_t k = 0; k < b->out.n; k++) /* names may have moved */
        b->out_name.item[k] = b->text.item + b->name.item[k];
    MPL_PASS(mpl_graph_add_op(b->ctx, b->g, kind, b->text.item + b->text.n - i->name.n,
                              (uint32_t)b->in.n, b->in.item, n, attr, (uint32_t)b->out.n,
                              b->out_name.item, b->out_value.item));
    for (size_t k = 0; k < b->out.n; k++)
        hlo_values_of(f, i)[b->out.item[k]] = b->out_value.item[k];
    return MPL_OK;
}

mpl_status hlo_begin_op(hlo_builder *b, uint32_t from, uint32_t to)
{
    b->in.n = b->out.n = b->over.n = 0;
    for (uint32_t k = from; k < to; k++) {
        HLO_APPEND(b, b->out, k);
    }
    return MPL_OK;
}

/* Chooses the result that comes first, since that alone may lie over operands: the largest that
 * can. Then lists these operands, as numbers of inputs. */
static mpl_status choose_pairs(hlo_builder *b, const hlo_instr *i)
{
    uint32_t best = MPL_NONE, at = 0;
    uint64_t most = 0;

    if (i->rule == NULL || i->rule->over == HLO_NONE)
        return MPL_OK;
    MPL_PASS(mpl_reserve(b->ctx, b->may.item, b->may.cap, 2 * (size_t)i->n_operands + 1));
    for (uint32_t k = 0; k < i->shape.n_leaves; k++) {
        const hlo_leaf *leaf = hlo_leaf_of(b, i, k);
        uint64_t bytes = hlo_bytes_of(leaf);
        uint8_t *may = b->may.item + i->n_operands;

        if (bytes <= most)
            continue;
        MPL_PASS(hlo_overwrites(b->m, i, k, may));
        if (memchr(may, 1, i->n_operands) == NULL)
            continue;
        memcpy(b->may.item, may, i->n_operands);
        best = k;
        most = bytes;
    }
    if (best == MPL_NONE)
        return MPL_OK;
    memmove(b->out.item + 1, b->out.item, best * sizeof *b->out.item);
    b->out.item[0] = best;
    for (uint32_t k = 0; k < i->n_operands; k++) {
        if (b->may.item[k]) {
            HLO_APPEND(b, b->over, at);
        }
        at += hlo_operand(b->m, i, k)->shape.n_leaves;
    }
    return MPL_OK;
}

mpl_status hlo_emit_own(hlo_builder *b, const hlo_frame *f, const hlo_instr *i)
{
    MPL_PASS(hlo_begin_op(b, 0, i->shape.n_leaves));
    MPL_PASS(hlo_add_operands(b, f, i));
    MPL_PASS(choose_pairs(b, i));
    return hlo_add_opaque(b, f, i, MPL_OP_opaque);
}
