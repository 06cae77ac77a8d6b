/* onnx_priv.h -- shared by the files of the ONNX reader and writer. Only these see protobuf-c.
 *
 * onnx.c reads the model and walks its nodes, onnx_inputs.c its inputs; onnx_names.c knows what
 * their names stand for. onnx_ops.c turns each node into operations by the rule in ir/ops.def;
 * onnx_attention.c and onnx_fused.c have rules of transformers, and of ONNX Runtime's operators.
 * onnx_shape.c has the rules of windows, layout and shapes; onnx_const.c makes constants;
 * onnx_control.c reads nodes that own graphs, onnx_rnn.c the recurrent layers, both by the loops of
 * onnx_loop.c. The files of write/ write models by the same rules. onnx_notes.c copies a model's
 * metadata field by field. Schema and operators: ONNX (onnx.proto, docs/Operators.md,
 * docs/Changelog.md). */
#pragma once

#include "graphs/passes/passes.h"
#include "graphs/source.h"
#include "onnx.pb-c.h"

/* What an ONNX name stands for so far. */
typedef struct onnx_name {
    const char *text;
    const Onnx__TensorProto *init; /* initialiser not used yet */
    const char *refused;           /* unsupported kind or element type; NULL: none */
    mpl_value value;               /* MPL_NONE: not made yet */
    bool used;                     /* a node reads it, or it is an output */
    bool own;                      /* input, initialiser or node output of this very graph */
    const char *called;            /* output of a Pad that is the same value; NULL: none */
} onnx_name;

/* The names of a graph, and those that it reads from enclosing graphs. */
typedef struct onnx_scope {
    onnx_name *name; /* [n_names] open addressing; size a power of two, half of it free */
    size_t n_names;
    struct onnx_scope *around; /* NULL: the model's own graph */
} onnx_scope;

/* A loop of the graph and its node. */
typedef struct onnx_loop_block {
    uint32_t block; /* its body */
    const Onnx__NodeProto *proto;
} onnx_loop_block;

/* A value whose length along an axis depends on data. */
typedef struct onnx_length {
    mpl_value value;
    uint32_t axis;
    mpl_value length; /* i64 scalar */
} onnx_length;

/* An integer or truth value that depends on lengths: constants that bound it element by element. */
typedef struct onnx_interval {
    mpl_value value, end[2]; /* least, most */
} onnx_interval;

typedef struct onnx_reader {
    mpl_ctx *ctx;
    const char *path; /* for messages; its folder holds external data */
    const mpl_read_options *options;
    const Onnx__ModelProto *model;
    const Onnx__GraphProto *proto;
    int64_t opset; /* of ONNX's operators; 0: the model names none */
    mpl_graph *g;
    onnx_scope top, *scope; /* of the model's graph; of the graph being read */
    uint64_t n_nodes;       /* read so far; nodes of a body count each time it is read */
    onnx_loop_block *loop;
    size_t n_loops, cap_loops;
    onnx_length *length; /* [n_lengths] */
    size_t n_lengths, cap_lengths;
    onnx_interval *interval; /* [n_intervals] */
    size_t n_intervals, cap_intervals;
    bool *bind; /* [proto->n_input] decides a shape: constant in the next attempt */
    const Onnx__NodeProto **unroll; /* loops to unroll in the next attempt */
    size_t n_unroll, cap_unroll;
    bool again;     /* `bind` or `unroll` grew: the whole file is read again */
    void **scratch; /* freed after each node */
    size_t n_scratch, cap_scratch;
    unsigned last_number[64]; /* given to a fresh name, by a hash of what it begins with */
} onnx_reader;

typedef struct onnx_node onnx_node;
typedef mpl_status onnx_lowering(onnx_node *n); /* reads a node of one kind of operator */

/* One line of ir/ops.def: how an operator is read from opset `since` on, up to its next line. */
typedef struct onnx_rule {
    const char *domain; /* "": ONNX's own */
    const char *name;
    int since; /* 0: the writer makes none of it */
    mpl_op_kind kind;
    onnx_lowering *lower;
    const char *attrs;
} onnx_rule;

/* One item of a rule's attributes. */
typedef struct onnx_item {
    char mark; /* '!', '@', or 0: copied attribute */
    const char *name;
    size_t n_name;
    uint32_t input;
    bool drop; /* input without effect */
    mpl_attr_key key;
} onnx_item;

/* The writer's mark on nodes without an operation in the graph: an Identity where ONNX requires a
 * separate output, a Pad of rows that the reader pads by itself. The reader skips the node. */
#define ONNX_SAME_VALUE "the same value as its first input"

#define ONNX_PRODUCER "memplan" /* of models that the writer makes */

#define ONNX_MIN_OPSET 1
#define ONNX_MAX_OPSET 28
#define ONNX_MAX_ATTRS 16

/* A node being read: operands looked up, attributes translated by the rule. */
struct onnx_node {
    onnx_reader *r;
    const Onnx__NodeProto *proto;
    const onnx_rule *rule;
    const char *label; /* name, else that of an output, else operator */
    uint32_t n_in, n_attr, n_out;
    mpl_value *in; /* without those that became attributes */
    mpl_attr attr[ONNX_MAX_ATTRS];
    const char **out_name; /* NULL: unused */
    mpl_value *out;        /* to be written */
};

/* ---- onnx.c ---- */

/* Scratch memory until the end of the node. */
void *onnx_scratch(onnx_reader *in, size_t n, size_t size);
#define onnx_new(r, p, n) (((p) = onnx_scratch(r, n, sizeof *(p))) != NULL ? MPL_OK : MPL_EMEM)

/* Reads a graph that a node owns as if its nodes stood here. in[n_in]: its inputs; out[n_out]
 * receives its outputs where wanted[i] (NULL: all). Inner names hide outer ones. */
mpl_status onnx_read_body(onnx_node *node, const Onnx__GraphProto *body, uint32_t n_in,
                          const mpl_value *in, uint32_t n_out, const bool *wanted, mpl_value *out);

/* Prefixes the message in ctx with the path; or with path, node, operator and opset. Returns st. */
mpl_status onnx_blame_file(const onnx_reader *in, mpl_status st);
mpl_status onnx_blame(const onnx_node *node, mpl_status st);
#define ONNX_REFUSE(n, ...) onnx_blame(n, MPL_REFUSE((n)->r->ctx, __VA_ARGS__))
#define ONNX_FAIL(n, ...)                                                                          \
    do {                                                                                           \
        st = ONNX_REFUSE(n, __VA_ARGS__);                                                          \
        goto out;                                                                                  \
    } while (0)

static inline const char *onnx_text(const char *text)
{
    return text != NULL ? text : "";
}

/* Whether the node is marked as returning its first input (ONNX_SAME_VALUE). */
static inline bool onnx_says_same(const Onnx__NodeProto *proto)
{
    return proto->doc_string != NULL && strcmp(proto->doc_string, ONNX_SAME_VALUE) == 0;
}

/* ---- onnx_names.c ---- */

/* The entry of a name, or a free one (text NULL) if the table lacks it. */
onnx_name *onnx_entry(const onnx_scope *scope, const char *text);
onnx_name *onnx_enter_name(onnx_scope *scope, const char *text);
/* Enters initialisers and names that nodes read or outputs name: other results are left out. */
mpl_status onnx_enter_names(onnx_reader *in, const Onnx__GraphProto *p, onnx_scope *scope);

/* Makes an initialiser a constant. */
mpl_status onnx_make_initialiser(onnx_reader *in, onnx_name *e);

/* Value `name`; an initialiser becomes a constant at its first use. MPL_EINPUT naming the node: the
 * value does not exist, or memplan lacks its type. */
mpl_status onnx_lookup(onnx_node *node, const char *name, mpl_value *out);

/* Binds `name` to v. MPL_EINPUT naming the node: the name is bound already. */
mpl_status onnx_define(onnx_node *node, const char *name, mpl_value v);

/* Whether a node reads it, or it is an output of the graph. */
bool onnx_is_used(const onnx_reader *in, const char *name);

/* A free value name that starts with `base`, no own name of a graph being read. Scratch memory. */
mpl_status onnx_fresh_name(onnx_reader *in, const char *base, const char *suffix, const char **out);
/* The name for an own value of the innermost graph. */
mpl_status onnx_own_name(onnx_reader *in, const char *text, const char **out);
/* Replaces a name that was free before a body was read, but is taken now. */
mpl_status onnx_settle_name(onnx_reader *in, const char **name);

/* ---- onnx_inputs.c ---- */

/* Makes input `index` of the file (initialisers not counted) a value; bind: a constant. */
mpl_status onnx_read_input(onnx_reader *in, const Onnx__ValueInfoProto *proto, uint32_t index,
                           bool bind);
/* A dim that no input has is taken for a typing error: the plan would be for other sizes. */
mpl_status onnx_check_dims_given(onnx_reader *in);

bool onnx_is_constant(const onnx_node *node, mpl_value v);

/* Succeeds if v is a constant. Else binds the inputs that v depends on, unrolls the loops that it
 * depends on, and asks for another attempt, or reports the missing --input. */
mpl_status onnx_need_constant(onnx_node *node, mpl_value v, const char *what);

/* Whether the user gave all inputs that v depends on, as onnx_need_constant needs. MPL_EMEM. */
mpl_status onnx_can_be_constant(onnx_node *node, mpl_value v, bool *can);

/* ---- onnx_ops.c ---- */

/* Reads the item of a rule at `at`; returns the next position, NULL at the end. */
const char *onnx_next_item(const char *at, onnx_item *out);
/* The line that an operation of that kind is written by for that opset. If several operators map to
 * the kind, the one of its own name. NULL: ONNX has none that early. */
const onnx_rule *onnx_rule_for(mpl_op_kind kind, int64_t opset);

/* Reads one node. MPL_EINPUT names node, operator and opset. */
mpl_status onnx_read_node(onnx_reader *in, const Onnx__NodeProto *proto);

mpl_value onnx_in(const onnx_node *node, uint32_t i); /* MPL_NONE: left out */
const Onnx__AttributeProto *onnx_attr(const onnx_node *node, const char *name); /* NULL: absent */
int64_t onnx_attr_int(const onnx_node *node, const char *name, int64_t otherwise);
/* text attribute of that value */
bool onnx_attr_is(const onnx_node *node, const char *name, const char *text);

/* The translated attribute of that key, or NULL. Setting replaces or appends, `drop` removes. */
mpl_attr *onnx_get(onnx_node *node, mpl_attr_key key);
void onnx_set(onnx_node *node, mpl_attr attr);
void onnx_drop(onnx_node *node, mpl_attr_key key);
mpl_status onnx_set_ints(onnx_node *node, mpl_attr_key key, uint32_t count, const int64_t *ints);

/* The last operation of a node: makes its outputs, with its attributes. */
mpl_status onnx_finish(onnx_node *node, mpl_op_kind kind, uint32_t n_in, const mpl_value *in);
/* An earlier operation: one output, named after the node's first output, else after the node. */
mpl_status onnx_step(onnx_node *node, mpl_op_kind kind, const char *suffix, uint32_t n_in,
                     const mpl_value *in, uint32_t n_attr, const mpl_attr *attr, mpl_value *out);
/* The same; the value is called `name`. NULL: as onnx_step calls it. */
mpl_status onnx_step_named(onnx_node *node, mpl_op_kind kind, const char *suffix, const char *name,
                           uint32_t n_in, const mpl_value *in, uint32_t n_attr,
                           const mpl_attr *attr, mpl_value *out);

/* ---- onnx_shape.c: rules ---- */

/* Normalises an axis of that rank to a nonnegative one. */
mpl_status onnx_axis(onnx_node *node, int64_t axis, uint32_t rank, uint32_t *out);
onnx_lowering onnx_lower_conv, onnx_lower_conv_transpose, onnx_lower_pool, onnx_lower_reshape,
    onnx_lower_split, onnx_lower_pad, onnx_lower_resize, onnx_lower_upsample,
    onnx_lower_group_norm_18;
mpl_status onnx_window_count(onnx_node *node, uint32_t dims, const int64_t *image, int64_t *count,
                             int64_t *extra);
mpl_status onnx_unpooled_dims(onnx_node *node, const mpl_shape *pooled, int64_t *dim);

/* ---- onnx_length.c: results whose length depends on data ---- */

onnx_lowering onnx_lower_non_zero, onnx_lower_nms, onnx_lower_compress, onnx_lower_unique;

/* NULL: its length is its dim. */
const onnx_length *onnx_length_of(const onnx_reader *in, mpl_value v);
mpl_status onnx_keep_length(onnx_node *node, mpl_value v, uint32_t axis, mpl_value length);
/* The constant that bounds v from above (`most`) or below, element by element; v itself if it is
 * constant; MPL_NONE: none is known. */
mpl_value onnx_bound(const onnx_node *node, mpl_value v, bool most);
/* Whether no element can be negative. */
bool onnx_not_negative(const onnx_node *node, mpl_value v);
/* Bounds the results of the operations from `first` on. An output of the node whose bounds meet
 * becomes that constant. */
mpl_status onnx_follow_intervals(onnx_node *node, mpl_op first);
/* What stands for operand `what` when the node is planned; MPL_NONE: it must be constant. */
mpl_value onnx_most_for(const onnx_node *node, mpl_value v, const char *what);
/* Dims [start, end) of the node's input as its output, if one of them is data. */
mpl_status onnx_shape_of(onnx_node *node, int64_t start, int64_t end, bool *made);
/* *v becomes the value to be an output of the graph. */
mpl_status onnx_bound_output(onnx_reader *in, mpl_value *v);
/* Adds the lengths of outputs as further outputs. */
mpl_status onnx_add_lengths(onnx_reader *in);

/* ---- onnx_behind.c: operators behind such results ---- */

/* Before a node is read: slices behind a length are kept from mixing with others. `made`: its
 * outputs are. */
mpl_status onnx_heed_lengths(onnx_node *node, bool *made);
/* After a node: its outputs have the lengths of its inputs in[n_in], or it is refused. */
mpl_status onnx_carry_lengths(onnx_node *node, uint32_t n_in, const mpl_value *in);
/* Whether all outputs of a branch are constants without elements. */
bool onnx_is_empty(const Onnx__GraphProto *branch);
/* Output i of an If one of whose branches is empty, made from v of the other branch: its length is
 * 0 where the condition is `empty`. */
mpl_status onnx_empty_where(onnx_node *node, mpl_value condition, bool empty, uint32_t i,
                            mpl_value v);

/* ---- onnx_boxes.c: images and boxes ---- */

mpl_status onnx_reshape(onnx_node *node, mpl_value v, uint32_t rank, const int64_t *dim,
                        mpl_value *out);
mpl_status onnx_transpose(onnx_node *node, mpl_value v, const int64_t *perm, mpl_value *out);
onnx_lowering onnx_lower_affine_grid, onnx_lower_deform_conv, onnx_lower_col2im,
    onnx_lower_max_unpool, onnx_lower_scatter, onnx_lower_center_crop_pad;
/* Whether a scatter of elements, in[3], is one of slices along axis 0, whose indices in[1] then
 * become. */
mpl_status onnx_scattered_slices(onnx_node *node, mpl_value in[3], bool *are);

onnx_lowering onnx_lower_grid_sample, onnx_lower_roi_align, onnx_lower_max_roi_pool, onnx_lower_det;

/* ---- onnx_bits.c ---- */

onnx_lowering onnx_lower_bit_shift, onnx_lower_mod, onnx_lower_space_to_depth,
    onnx_lower_causal_conv;

/* ---- onnx_signal.c ---- */

onnx_lowering onnx_lower_hann_window, onnx_lower_hamming_window, onnx_lower_blackman_window,
    onnx_lower_mel_weights, onnx_lower_dft, onnx_lower_stft;

/* ---- onnx_loss.c ---- */

onnx_lowering onnx_lower_likelihood, onnx_lower_cross_entropy;

/* ---- onnx_einsum.c ---- */

mpl_status onnx_lower_einsum(onnx_node *node);

/* ---- onnx_attention.c ---- */

onnx_lowering onnx_lower_attention, onnx_lower_attention_ms, onnx_lower_multi_head,
    onnx_lower_group_query, onnx_lower_flex_attention;

/* ---- onnx_linear.c ---- */

mpl_status onnx_lower_linear_attention(onnx_node *node);

/* ---- onnx_fused.c: operators of ONNX Runtime that are several of ONNX's ---- */

/* A constant of these dims that counts from 0, i64. */
mpl_status onnx_count_up(onnx_node *node, uint32_t rank, const int64_t *dim, mpl_value *out);

onnx_lowering onnx_lower_rotary_ms, onnx_lower_gelu_ms, onnx_lower_bias_split_gelu,
    onnx_lower_fused_matmul, onnx_lower_fused_gemm, onnx_lower_fused_conv, onnx_lower_skip_norm,
    onnx_lower_embed_norm;

/* ---- onnx_quant.c ---- */

onnx_lowering onnx_lower_quantize, onnx_lower_dequantize, onnx_lower_qlinear_conv,
    onnx_lower_conv_integer, onnx_lower_qlinear_matmul, onnx_lower_matmul_integer,
    onnx_lower_matmul_integer_float, onnx_lower_qgemm, onnx_lower_dynamic_matmul,
    onnx_lower_matmul_nbits, onnx_lower_qlinear_two, onnx_lower_qlinear_one,
    onnx_lower_qlinear_concat, onnx_lower_qlinear_pool, onnx_lower_qlinear_global_pool,
    onnx_lower_dynamic_lstm;

/* Quantises x as it comes: integers, their scale and zero. */
mpl_status onnx_quantize_all(onnx_node *node, mpl_value x, mpl_value out[3]);

/* ---- onnx_loop.c ---- */

/* One round, for the callback that makes it: inputs, then results to be written. */
typedef struct onnx_round {
    mpl_value index; /* i64 [] */
    const mpl_value *state, *slice;
    mpl_value go; /* result, as those below; MPL_NONE: continue */
    mpl_value *next, *row;
} onnx_round;

/* A loop being read: becomes a `while`, or is unrolled if `unroll` is set. */
typedef struct onnx_loop {
    onnx_node *node;
    mpl_value trips, go; /* MPL_NONE: omitted, or known */
    int64_t most;        /* most rounds; -1: unlimited */
    uint32_t n_carried, n_scans, n_rows;
    const mpl_value *init, *scan; /* scans along axis 0 */
    const char *block;            /* name of the body; NULL: derived from the node's */
    const char *round;            /* name of the round's number; NULL: default */
    const char *const *param;     /* [n_carried + n_scans] names in the body */
    const bool *reverse;          /* [n_scans + n_rows]; NULL: none */
    const char *const *out_name;  /* [n_carried + n_rows]; NULL: unused */
    bool unroll;
    mpl_status (*body)(const struct onnx_loop *l, onnx_round *round);
    void *arg;
} onnx_loop;

/* out[n_carried + n_rows]: the values after the last round, then the stacked rows. */
mpl_status onnx_add_loop(const onnx_loop *loop, mpl_value *out);

/* Whether to unroll the loops of this node. */
bool onnx_is_unrolled(const onnx_node *node);
/* Asks for another attempt that unrolls them. */
mpl_status onnx_unroll(onnx_reader *in, const Onnx__NodeProto *proto);

/* A free block name that starts with `base`. Scratch memory. */
mpl_status onnx_block_name(onnx_reader *in, const char *base, const char *suffix, const char **out);
/* The block name that our writer gave a graph. NULL: another program wrote the model. */
const char *onnx_written_name(const onnx_reader *in, const Onnx__GraphProto *graph);

/* ---- onnx_control.c ---- */

onnx_lowering onnx_lower_if, onnx_lower_loop, onnx_lower_scan, onnx_lower_scan_8;

/* ---- onnx_rnn.c ---- */

onnx_lowering onnx_lower_rnn, onnx_lower_gru, onnx_lower_lstm;
/* quantised: NULL, or W [directions, terms, gates], its scale and zero, then R's: operands of the
 * products are quantised as they come. */
mpl_status onnx_lower_lstm_of(onnx_node *node, const mpl_value quantised[6]);

/* ---- onnx_const.c ---- */

/* Element type of an ONNX number; false: unsupported, *name is its name for messages. */
bool onnx_type(int32_t number, mpl_type *type, const char **name);

int32_t onnx_type_number(mpl_type type);

/* The elements of a tensor. *owned (to be freed) is NULL if they lie in the message. `path`: the
 * model's, for external data. Checks lengths before it allocates. MPL_EINPUT names the tensor. */
mpl_status onnx_tensor(mpl_ctx *ctx, const char *path, const Onnx__TensorProto *proto,
                       mpl_tensor *out, void **owned);

/* Sets every true to 1: files may hold any byte, operators rely on 0 and 1. Bools only. */
void onnx_tidy_bools(mpl_type type, void *data, uint64_t count);

/* At most 65536 elements of constant v, in scratch memory. `what`: its name in messages. */
mpl_status onnx_ints(onnx_node *node, mpl_value v, const char *what, uint32_t *count,
                     int64_t **ints);
mpl_status onnx_floats(onnx_node *node, mpl_value v, const char *what, uint32_t *count,
                       double **floats);

/* A scalar constant of that type. */
mpl_status onnx_scalar(onnx_node *node, mpl_type type, double x, const char *suffix,
                       mpl_value *out);

/* A constant of those numbers. */
mpl_status onnx_constant(onnx_node *node, mpl_type type, const mpl_shape *shape, const double *data,
                         const char *suffix, mpl_value *out);

onnx_lowering onnx_lower_shape, onnx_lower_size, onnx_lower_constant, onnx_lower_constant_of_shape,
    onnx_lower_range, onnx_lower_eye_like;

/* ---- onnx_notes.c ---- */

/* One field of a message in memory. */
typedef struct onnx_field {
    const uint8_t *all; /* start, at its tag */
    const uint8_t *end;
    unsigned number;
    const uint8_t *data; /* contents of a field with a length; else NULL */
    size_t size;
} onnx_field;

/* Reads the field at *at and steps over it. False: there is no field, or it is truncated. */
bool onnx_next_field(const uint8_t **at, const uint8_t *end, onnx_field *out);

/* Fields of ModelProto; onnx_note_message makes an entry of field 14. */
enum { ONNX_MODEL_GRAPH = 7, ONNX_MODEL_NOTE = 14 };
Onnx__StringStringEntryProto onnx_note_message(const mpl_onnx_note *note);

/* Output of messages: the fields of one message in sequence. */
typedef struct onnx_sink {
    FILE *stream; /* NULL: count only */
    uint64_t bytes;
} onnx_sink;
void onnx_put_tag(onnx_sink *to, unsigned number, uint64_t size); /* for a field of that length */
void onnx_put_number(onnx_sink *to, unsigned number, uint64_t x);
void onnx_put_text(onnx_sink *to, unsigned number, const char *text);
void onnx_put_message(onnx_sink *to, unsigned number, const ProtobufCMessage *message);

/* Allocates messages in the context's memory; `failed`: memory ran out. */
typedef struct onnx_memory {
    ProtobufCAllocator allocator;
    mpl_ctx *ctx;
    bool failed;
} onnx_memory;

/* Unpacks a message, nested at most 100 deep. MPL_EINPUT, naming `what`: malformed. */
mpl_status onnx_unpack(onnx_memory *memory, mpl_ctx *ctx, const char *path, const char *what,
                       const ProtobufCMessageDescriptor *kind, const void *data, size_t size,
                       ProtobufCMessage **out);
