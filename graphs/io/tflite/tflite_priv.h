/* tflite_priv.h -- shared by the files of the TensorFlow Lite reader.
 *
 * tflite_model.c reads tensors and operators, tflite.c makes the graph, tflite_rules.c and
 * tflite_layers.c turn each operator into operations by its line in operators.def, tflite_emit.c
 * adds these, and tflite_offsets.c reads the producer's own plan. */
#pragma once

#include "graphs/io/tflite/flatbuffer.h"
#include "graphs/source.h"

/* The fields of schema.def. */
typedef enum tfl_field {
#define FIELD(table, name, number, kind, otherwise) TFL_##table##_##name,
#define TENSOR(...)
#include "graphs/io/tflite/schema.def"
#undef FIELD
#undef TENSOR
    TFL_N_FIELDS
} tfl_field;

int64_t tfl_int(const flat_table *table, tfl_field field);
double tfl_float(const flat_table *table, tfl_field field);
flat_table tfl_table(const flat_table *table, tfl_field field);
flat_vector tfl_list(const flat_table *table, tfl_field field); /* n bytes at file->data + at for
                                                                 * TEXT
                                                                 */

/* A tensor and where its contents come from. */
typedef struct tfl_tensor {
    char *name; /* unique: its own, or that and its number */
    mpl_type type;
    mpl_shape shape;
    uint64_t bytes;
    uint32_t n_scales;    /* 0: not quantised */
    uint32_t axis;        /* of the scales, if there are several */
    int64_t zero;         /* zero point */
    double *scale;        /* [n_scales] */
    const uint8_t *data;  /* of a constant, inside the file; else NULL */
    bool variable;        /* state that one run leaves to the next */
    uint32_t birth, last; /* operators that make it and read it last; MPL_NONE: none does */
    bool is_input, is_output;
    mpl_value value; /* MPL_NONE: not yet in the graph */
} tfl_tensor;

typedef struct tfl_operator {
    int32_t code;
    const char *custom; /* n_custom characters; NULL: builtin */
    size_t n_custom;
    uint32_t n_in, n_out;
    uint32_t *in, *out; /* tensors; MPL_NONE: omitted */
    flat_table options;
    flat_vector intermediates;
} tfl_operator;

/* The first subgraph of a model. */
typedef struct tfl_model {
    mpl_ctx *ctx;
    const char *path; /* for messages */
    flat_file file;
    flat_table root;
    flat_vector buffers;
    uint32_t n_tensors, n_operators, n_inputs, n_outputs;
    tfl_tensor *tensor;
    tfl_operator *op;
    uint32_t *input, *output; /* tensors */
    int64_t *offset;          /* tfl_offsets */
} tfl_model;

/* Reads a model; the caller ends it with tfl_close, after a failure too. MPL_EINPUT, naming the
 * path and what is wrong. */
mpl_status tfl_open(mpl_ctx *ctx, const char *path, const void *data, size_t size,
                    tfl_model *model);
void tfl_close(tfl_model *model);
/* The contents of buffer `i` of the file. *bytes = 0: it has none. MPL_EINPUT: no such buffer. */
mpl_status tfl_buffer(tfl_model *model, uint64_t i, const uint8_t **data, uint64_t *bytes);
/* The contents of the metadata of that name; *bytes = 0: none. */
mpl_status tfl_metadata(tfl_model *model, const char *name, const uint8_t **data, uint64_t *bytes);
/* The name of the operator ("CONV_2D", "custom 'x'"); text has 80 bytes. */
const char *tfl_operator_name(const tfl_operator *op, char *text);

/* ---- from operators to operations ---- */

/* How an operand of as_real lies in memory (graphs/ops/lite/as_real.c). */
enum { TFL_PLAIN, TFL_CHANNELS_LAST, TFL_FILTERS_LAST, TFL_TURNED };

/* A value, and how its numbers are meant. */
typedef struct tfl_operand {
    mpl_value v;
    uint32_t order;
    uint32_t n_scales; /* 0: as they are */
    uint32_t axis;
    int64_t zero;
    const double *scale;
} tfl_operand;

struct tfl_node;
typedef struct tfl_rule {
    int32_t code;
    mpl_op_kind kind;
    mpl_status (*lower)(struct tfl_node *n);
    bool moves;
    uint8_t activation; /* field of the options, or TFL_NO_ACTIVATION */
} tfl_rule;
enum { TFL_NO_ACTIVATION = 255, TFL_MAX_ATTRS = 12, TFL_MAX_INTS = 64 };

/* The operator being read. */
typedef struct tfl_node {
    tfl_model *model;
    mpl_graph *g;
    const tfl_operator *op;
    const tfl_rule *rule;
    const char *label; /* for messages, and the operation's name */
    const char *kind;  /* its name in TensorFlow Lite */
    uint32_t n_attr, n_ints;
    mpl_attr attr[TFL_MAX_ATTRS];
    int64_t ints[TFL_MAX_INTS]; /* of attributes */
    double real[4];
    uint32_t n_reals;
    bool converts; /* the result has another type than the operator gives it */
} tfl_node;

/* Attributes of the operation to come; integers are copied. */
void tfl_set(tfl_node *node, mpl_attr attr);
void tfl_set_int(tfl_node *node, mpl_attr_key key, int64_t value);
void tfl_set_ints(tfl_node *node, mpl_attr_key key, uint32_t count, const int64_t *value);
void tfl_set_float(tfl_node *node, mpl_attr_key key, double value);

/* Input k or output k of the operator; NULL: omitted. */
const tfl_tensor *tfl_in(const tfl_node *node, uint32_t k);
const tfl_tensor *tfl_out(const tfl_node *node, uint32_t k);
/* At most `most` integers of 32 bits of input k; *count. False: it is no constant, or has other
 * numbers. */
bool tfl_ints(const tfl_node *node, uint32_t k, uint32_t most, int64_t *to, uint32_t *count);
/* Input k as an operand with its scales, if it has some. */
mpl_status tfl_operand_of(tfl_node *node, uint32_t k, uint32_t order, tfl_operand *out);
/* A constant of one element. */
mpl_status tfl_scalar(tfl_node *node, mpl_type type, double x, const char *suffix, mpl_value *out);

/* Makes output 0 by that operator, or by as_real of it. MPL_EINPUT: the operands do not fit, or the
 * result has not the dims that the file says. */
mpl_status tfl_add(tfl_node *node, mpl_op_kind kind, uint32_t n_in, const tfl_operand *in,
                   uint32_t out_order);
/* Makes all outputs, without scales and fused activation. */
mpl_status tfl_add_all(tfl_node *node, mpl_op_kind kind, uint32_t n_in, const mpl_value *in,
                       uint32_t n_out, const char *const *out_name, mpl_value *out);
/* A view of v with other dims, named after a tensor. */
mpl_status tfl_add_view(tfl_node *node, mpl_value v, const mpl_shape *shape, const char *base,
                        const char *suffix, mpl_value *out);
/* Output k is v. */
mpl_status tfl_define(tfl_node *node, uint32_t k, mpl_value v);
/* The whole operator as an opaque operation. */
mpl_status tfl_opaque(tfl_node *node);
/* [least, most] of the fused activation of that number. False: none, or one that is not known. */
bool tfl_activation(int64_t number, double range[2]);
/* The number of the operator's fused activation; 0: none. */
int64_t tfl_activation_number(const tfl_node *node);

#define OPERATOR(code, name, kind, rule, ...) mpl_status tfl_lower_##rule(tfl_node *n);
#include "graphs/io/tflite/operators.def"
#undef OPERATOR

/* ---- the producer's own plan ---- */

/* The first inputs of an operator, among which its scratch memory is sought. */
enum { TFL_SCRATCH_INPUTS = 16 };

/* *offset[n_tensors], freed by the caller: bytes from the arena's base, -1: to be planned. NULL:
 * the file has no plan. MPL_EINPUT: it is none of this subgraph. */
mpl_status tfl_offsets(tfl_model *model, int64_t **offset);
/* Whether a tensor's memory is planned: not a constant, nor state, nor left unused. */
bool tfl_is_planned(const tfl_tensor *tensor);
/* Writes birth and death. */
void tfl_set_life(const tfl_model *model, const tfl_tensor *tensor, mpl_tflite_tensor *out);
/* Whether the file puts the tensor inside the scratch memory of an operator that makes or reads it.
 */
bool tfl_is_part(const tfl_model *model, uint32_t id);
