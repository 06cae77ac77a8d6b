/* hlo_emit.h -- one instruction as an operation of the graph; shared by hlo_build.c, hlo_emit.c. */
#pragma once

#include "graphs/io/hlo/hlo_priv.h"

typedef struct hlo_builder {
    const hlo_module *module;
    mpl_ctx *ctx;
    mpl_graph *g;
    uint32_t serial, depth;
    uint64_t n_arrays, n_operands; /* so far */
    HLO_LIST(mpl_value) in;
    HLO_LIST(uint32_t) out; /* arrays of the instruction, in the order of the operation's outputs */
    HLO_LIST(char) text;    /* names of outputs, zero-terminated */
    HLO_LIST(size_t) name;  /* offsets in text */
    HLO_LIST(const char *) out_name;
    HLO_LIST(mpl_value) out_value;
    HLO_LIST(char) types;
    HLO_LIST(int64_t) dims;
    HLO_LIST(int64_t) over;
    HLO_LIST(uint8_t) may;
} hlo_builder;

/* One place where a computation stands. */
typedef struct hlo_frame {
    const hlo_comp *comp;
    mpl_value *value; /* [c->n_leaves] */
} hlo_frame;

static inline mpl_value *hlo_values_of(const hlo_frame *frame, const hlo_instr *instr)
{
    return frame->value + (instr->shape.leaf - frame->comp->leaf);
}

static inline const hlo_leaf *hlo_leaf_of(const hlo_builder *builder, const hlo_instr *instr,
                                          uint32_t k)
{
    return &builder->module->leaf.item[instr->shape.leaf + k];
}

static inline int hlo_shown(hlo_text t)
{
    return (int)(t.n < 100 ? t.n : 100);
}

/* Whether a value has the type and dims of an array of the text. */
bool hlo_fits(const hlo_builder *builder, mpl_value v, const hlo_leaf *leaf);
/* As stored: a shape's bytes have been checked. [byte] */
uint64_t hlo_bytes_of(const hlo_leaf *leaf);
/* MPL_EINPUT unless the values are those of the instruction's shape; then they become its arrays.
 */
mpl_status hlo_take_values(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr,
                           uint32_t n, const mpl_value *v);
/* Appends to builder->name a name for array k of the instruction: its own, with {k} in a tuple, and
 * with
 * @ and a number where a computation stands several times. */
mpl_status hlo_put_name(hlo_builder *builder, const hlo_instr *instr, uint32_t k);
/* Before the first hlo_put_name. */
void hlo_clear_names(hlo_builder *builder);
/* Names the arrays builder->out of the instruction; out_name points at them. */
mpl_status hlo_name_outputs(hlo_builder *builder, const hlo_instr *instr);
/* Append to builder->in: a value, the arrays of an instruction, those of its operands. MPL_EINPUT:
 * too many in all. */
mpl_status hlo_add_input(hlo_builder *builder, mpl_value v);
mpl_status hlo_add_inputs(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr);
mpl_status hlo_add_operands(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr);
/* Adds an operation with inputs builder->in, results builder->out and pairs builder->over. */
mpl_status hlo_add_opaque(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr,
                          mpl_op_kind kind);
/* Lists arrays [from, to) of the instruction as results of the operation to come. */
mpl_status hlo_begin_op(hlo_builder *builder, uint32_t from, uint32_t to);
/* One opaque operation that reads all operands and makes all results. */
mpl_status hlo_emit_own(hlo_builder *builder, const hlo_frame *frame, const hlo_instr *instr);
