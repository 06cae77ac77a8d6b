/* onnx_priv.h -- what the files of the ONNX reader and writer share. The only place that sees
 * protobuf-c.
 *
 * onnx.c reads the model and walks its nodes; onnx_ops.c turns each node into operations by the
 * rule that ir/ops.def gives; onnx_shape.c holds the rules of windows, layout and shapes;
 * onnx_const.c makes constants; onnx_control.c reads nodes that own graphs, onnx_rnn.c the
 * recurrent layers, both by the loops of onnx_loop.c; onnx_write.c and onnx_write_control.c go the
 * other way by the same rules; onnx_notes.c sees to a model's metadata, field by field. Schema and
 * operators: ONNX (onnx.proto, docs/Operators.md, docs/Changelog.md). */
#ifndef MPL_ONNX_PRIV_H
#define MPL_ONNX_PRIV_H

#include "graphs/passes/passes.h"
#include "graphs/source.h"
#include "onnx.pb-c.h"

/* What an ONNX name stands for so far. */
typedef struct onnx_name {
    const char *text;
    const Onnx__TensorProto *init; /* an initialiser that nobody has asked for yet */
    const char *refused;           /* kind or element type that memplan has not; NULL: none */
    mpl_value value;               /* MPL_NONE: not made yet */
    bool used;                     /* some node reads it, or it is an output */
    bool own;           /* an input, an initialiser or a node's output of this very graph */
    const char *called; /* the output of a Pad that is the same value; NULL: none */
} onnx_name;

/* The names of a graph, and those that it reads of the graphs around it. */
typedef struct onnx_scope {
    onnx_name *name; /* [n_names] open addressing, a power of two, half of it free */
    size_t n_names;
    struct onnx_scope *around; /* NULL: the model's own graph */
} onnx_scope;

/* A loop of the graph and the node that it comes from. */
typedef struct onnx_loop_block {
    uint32_t block; /* its body */
    const Onnx__NodeProto *proto;
} onnx_loop_block;

typedef struct onnx_reader {
    mpl_ctx *ctx;
    const char *path; /* for messages and for the folder of external data */
    const mpl_read_options *options;
    const Onnx__ModelProto *model;
    const Onnx__GraphProto *proto; /* its graph */
    int64_t opset;                 /* of ONNX's own operators; 0: the model names none */
    mpl_graph *g;
    onnx_scope top, *scope; /* of the model's graph; of the one that is being read */
    uint64_t n_nodes;       /* read so far, those of a body each time that it is read */
    onnx_loop_block *loop;
    size_t n_loops, cap_loops;
    bool *bind; /* [proto->n_input] its contents decide a shape: a constant in the next try */
    const Onnx__NodeProto **unroll; /* loops whose rounds differ in shapes: round by round in the
                                       next try */
    size_t n_unroll, cap_unroll;
    bool again;     /* set when `bind` or `unroll` grew: the whole is read once more */
    void **scratch; /* freed after each node */
    size_t n_scratch, cap_scratch;
} onnx_reader;

typedef struct onnx_node onnx_node;

/* One line of ir/ops.def: how an operator is read from opset `since` on, until another line of
 * its name. */
typedef struct onnx_rule {
    const char *name;
    int since;
    mpl_op_kind kind;
    mpl_status (*lower)(onnx_node *n);
    const char *attrs;
} onnx_rule;

/* One item of a rule's attributes. */
typedef struct onnx_item {
    char mark; /* '!', '@', or 0 for an attribute that is copied */
    const char *name;
    size_t n_name;
    uint32_t input;
    bool drop; /* an input that has no effect */
    mpl_attr_key key;
} onnx_item;

/* What the writer notes in a node that the graph has no operation for: an Identity where ONNX wants
 * an output of its own, a Pad of rows that the reader fills up by itself. The reader takes the
 * input for the output. */
#define ONNX_SAME_VALUE "the same value as its first input"

#define ONNX_PRODUCER "memplan" /* of what the writer writes */

#define ONNX_MIN_OPSET 7
#define ONNX_MAX_OPSET 27
#define ONNX_MAX_ATTRS 16

/* A node on its way into the graph: operands looked up, attributes translated as the rule says. */
struct onnx_node {
    onnx_reader *r;
    const Onnx__NodeProto *proto;
    const onnx_rule *rule;
    const char *label; /* its name, else that of an output, else its operator */
    uint32_t n_in, n_attr, n_out;
    mpl_value *in; /* those that became attributes are gone; the rest moved up */
    mpl_attr attr[ONNX_MAX_ATTRS];
    const char **out_name; /* NULL: not asked for */
    mpl_value *out;        /* to be written */
};

/* ---- onnx.c ---- */

/* Memory until the end of the node. */
void *onnx_scratch(onnx_reader *r, size_t n, size_t size);
#define onnx_new(r, p, n) (((p) = onnx_scratch(r, n, sizeof *(p))) != NULL ? MPL_OK : MPL_EMEM)

/* Value `name`, making a constant of an initialiser at its first use. MPL_EINPUT naming the node:
 * nobody makes it, or it has a type that memplan has not. */
mpl_status onnx_lookup(onnx_node *n, const char *name, mpl_value *out);

/* Says what `name` stands for. MPL_EINPUT naming the node: it stands for something already. */
mpl_status onnx_define(onnx_node *n, const char *name, mpl_value v);

/* Whether a node reads it, or it is an output of the graph. */
bool onnx_is_used(const onnx_reader *r, const char *name);

/* A value name that starts with `base`, is free in the graph, and no own name of the graphs that
 * are being read. Scratch memory. */
mpl_status onnx_fresh_name(onnx_reader *r, const char *base, const char *suffix, const char **out);
/* The name for an own value of the innermost graph. */
mpl_status onnx_own_name(onnx_reader *r, const char *text, const char **out);
/* Changes a name that was free before a body was read, and is not any more. */
mpl_status onnx_settle_name(onnx_reader *r, const char **name);

bool onnx_is_constant(const onnx_node *n, mpl_value v);

/* Succeeds if v is a constant by now. Else marks the inputs of the file that it depends on as
 * bound, the loops that it depends on as unrolled, and asks for another try, or says which --input
 * is missing. */
mpl_status onnx_need_constant(onnx_node *n, mpl_value v, const char *what);

/* Whether the user gave the contents of all inputs that v depends on: onnx_need_constant would not
 * ask for any. MPL_EMEM. */
mpl_status onnx_can_be_constant(onnx_node *n, mpl_value v, bool *can);

/* Reads a graph that a node owns as if its nodes stood here: in[n_in] are its inputs, out[n_out]
 * receives its outputs, but where wanted[i] (may be NULL) is false. Names inside hide those
 * outside. */
mpl_status onnx_read_body(onnx_node *n, const Onnx__GraphProto *body, uint32_t n_in,
                          const mpl_value *in, uint32_t n_out, const bool *wanted, mpl_value *out);

/* Prefixes the message in ctx with path, node, operator and opset. Returns st. */
mpl_status onnx_blame(const onnx_node *n, mpl_status st);
#define ONNX_FAIL(n, ...)                                                                          \
    do {                                                                                           \
        st = onnx_blame(n, mpl_fail((n)->r->ctx, MPL_EINPUT, __FILE__, __LINE__, __VA_ARGS__));    \
        goto out;                                                                                  \
    } while (0)

/* Makes the message one line: a file's names may hold anything. */
void onnx_one_line(mpl_ctx *ctx);

/* Whether a node says of itself that it only hands its first input on (ONNX_SAME_VALUE). */
static inline bool onnx_says_same(const Onnx__NodeProto *proto)
{
    return proto->doc_string != NULL && strcmp(proto->doc_string, ONNX_SAME_VALUE) == 0;
}

/* ---- onnx_ops.c ---- */

/* Reads the item of a rule at `at`; what follows, or NULL at the end. */
const char *onnx_next_item(const char *at, onnx_item *out);
/* The line by which an operation of that kind is written for that opset: of the ONNX operator with
 * the kind's own name, where several are read as one. NULL: ONNX has none that early. */
const onnx_rule *onnx_rule_for(mpl_op_kind kind, int64_t opset);

/* Reads one node. MPL_EINPUT names node, operator and opset. */
mpl_status onnx_read_node(onnx_reader *r, const Onnx__NodeProto *proto);

mpl_value onnx_in(const onnx_node *n, uint32_t i); /* MPL_NONE: left out */
const Onnx__AttributeProto *onnx_attr(const onnx_node *n, const char *name); /* NULL: absent */
int64_t onnx_attr_int(const onnx_node *n, const char *name, int64_t otherwise);
/* a text attribute of that value */
bool onnx_attr_is(const onnx_node *n, const char *name, const char *text);

/* The translated attribute of that key, or NULL; setting replaces or appends, `drop` removes. */
mpl_attr *onnx_get(onnx_node *n, mpl_attr_key key);
void onnx_set(onnx_node *n, mpl_attr attr);
void onnx_drop(onnx_node *n, mpl_attr_key key);
mpl_status onnx_set_ints(onnx_node *n, mpl_attr_key key, uint32_t count, const int64_t *ints);

/* The last operation of a node: makes the node's outputs with the node's attributes. */
mpl_status onnx_finish(onnx_node *n, mpl_op_kind kind, uint32_t n_in, const mpl_value *in);
/* An operation before it: one output, named after the node's first one, or after the node. */
mpl_status onnx_step(onnx_node *n, mpl_op_kind kind, const char *suffix, uint32_t n_in,
                     const mpl_value *in, uint32_t n_attr, const mpl_attr *attr, mpl_value *out);

/* ---- onnx_shape.c: rules ---- */

/* An axis of that rank, not negative. */
mpl_status onnx_axis(onnx_node *n, int64_t axis, uint32_t rank, uint32_t *out);
mpl_status onnx_lower_conv(onnx_node *n);
mpl_status onnx_lower_conv_transpose(onnx_node *n);
mpl_status onnx_lower_pool(onnx_node *n);
mpl_status onnx_lower_reshape(onnx_node *n);
mpl_status onnx_lower_split(onnx_node *n);
mpl_status onnx_lower_pad(onnx_node *n);
mpl_status onnx_lower_resize(onnx_node *n);
mpl_status onnx_lower_upsample(onnx_node *n);
mpl_status onnx_lower_group_norm_18(onnx_node *n);

/* ---- onnx_einsum.c ---- */

mpl_status onnx_lower_einsum(onnx_node *n);

/* ---- onnx_loop.c ---- */

/* One round, for the callback that makes it: the values that it reads, and those that it makes. */
typedef struct onnx_round {
    mpl_value index; /* i64 [] */
    const mpl_value *state, *slice;
    mpl_value go; /* MPL_NONE: on; to be written, as those below */
    mpl_value *next, *row;
} onnx_round;

/* A loop on its way into the graph: a `while`, or its rounds one after the other where `unroll` is
 * set. */
typedef struct onnx_loop {
    onnx_node *n;
    mpl_value trips, go; /* MPL_NONE: left out, or known */
    int64_t most;        /* rounds that there can be; -1: any number */
    uint32_t n_carried, n_scans, n_rows;
    const mpl_value *init, *scan; /* scans along axis 0 */
    const char *block;            /* name of the body; NULL: one made of the node's */
    const char *round;            /* name of the round's number in the body; NULL: none */
    const char *const *param;     /* [n_carried + n_scans] names in the body */
    const bool *reverse;          /* [n_scans + n_rows]; NULL: none */
    const char *const *out_name;  /* [n_carried + n_rows]; NULL: not asked for */
    bool unroll;
    mpl_status (*body)(const struct onnx_loop *l, onnx_round *round);
    void *arg;
} onnx_loop;

/* out[n_carried + n_rows]: the values after the last round, the stacked rows. */
mpl_status onnx_add_loop(const onnx_loop *l, mpl_value *out);

/* Whether the loops of this node are to be read round by round. */
bool onnx_is_unrolled(const onnx_node *n);
/* Asks for another try, in which they are. */
mpl_status onnx_unroll(onnx_reader *r, const Onnx__NodeProto *proto);

/* A block name that starts with `base` and is free in the graph. Scratch memory. */
mpl_status onnx_block_name(onnx_reader *r, const char *base, const char *suffix, const char **out);
/* The name that the writer gave a graph, where the model is its: that of the block. NULL: somebody
 * else's. */
const char *onnx_written_name(const onnx_reader *r, const Onnx__GraphProto *graph);

/* ---- onnx_control.c ---- */

mpl_status onnx_lower_if(onnx_node *n);
mpl_status onnx_lower_loop(onnx_node *n);
mpl_status onnx_lower_scan(onnx_node *n);
mpl_status onnx_lower_scan_8(onnx_node *n);

/* ---- onnx_rnn.c ---- */

mpl_status onnx_lower_rnn(onnx_node *n);
mpl_status onnx_lower_gru(onnx_node *n);
mpl_status onnx_lower_lstm(onnx_node *n);

/* ---- onnx_const.c ---- */

/* Element type of an ONNX number; false, and *name for messages, where memplan has it not. */
bool onnx_type(int32_t number, mpl_type *type, const char **name);

int32_t onnx_type_number(mpl_type type);

/* The elements of a tensor; *owned (to be freed) is NULL where they lie in the message. `path` is
 * the model's, for external data. Lengths are checked against dims before anything is allocated.
 * MPL_EINPUT names the tensor. */
mpl_status onnx_tensor(mpl_ctx *ctx, const char *path, const Onnx__TensorProto *proto,
                       mpl_tensor *out, void **owned);

/* Makes 1 of every true; a file may hold any byte for it, and operators rely on 0 and 1. Nothing
 * for other types. */
void onnx_tidy_bools(mpl_type type, void *data, uint64_t count);

/* Elements of constant v as integers or doubles, at most 65536; scratch memory. `what` names it in
 * messages. */
mpl_status onnx_ints(onnx_node *n, mpl_value v, const char *what, uint32_t *count, int64_t **ints);
mpl_status onnx_floats(onnx_node *n, mpl_value v, const char *what, uint32_t *count,
                       double **floats);

/* A scalar constant of that type. */
mpl_status onnx_scalar(onnx_node *n, mpl_type type, double x, const char *suffix, mpl_value *out);

mpl_status onnx_lower_shape(onnx_node *n);
mpl_status onnx_lower_size(onnx_node *n);
mpl_status onnx_lower_constant(onnx_node *n);
mpl_status onnx_lower_constant_of_shape(onnx_node *n);
mpl_status onnx_lower_range(onnx_node *n);
mpl_status onnx_lower_eye_like(onnx_node *n);

/* ---- onnx_notes.c ---- */

/* One field of a message as it lies in memory. */
typedef struct onnx_field {
    const uint8_t *all; /* its tag */
    const uint8_t *end;
    unsigned number;
    const uint8_t *data; /* contents of a field that has a length; else NULL */
    size_t size;
} onnx_field;

/* Reads the field at *at and steps over it. False: no field begins here, or it is cut. */
bool onnx_next_field(const uint8_t **at, const uint8_t *end, onnx_field *out);

/* The metadata entry as field 14 of a model. */
enum { ONNX_MODEL_GRAPH = 7, ONNX_MODEL_NOTE = 14 };
Onnx__StringStringEntryProto onnx_note_message(const mpl_onnx_note *note);

/* Where messages go: fields of the message that is being written, one after the other. */
typedef struct onnx_sink {
    FILE *stream; /* NULL: only counted */
    uint64_t bytes;
} onnx_sink;
void onnx_put_tag(onnx_sink *to, unsigned number, uint64_t size); /* of a field of that length */
void onnx_put_number(onnx_sink *to, unsigned number, uint64_t x);
void onnx_put_text(onnx_sink *to, unsigned number, const char *text);
void onnx_put_message(onnx_sink *to, unsigned number, const ProtobufCMessage *message);

/* Messages come with the context's memory; `failed` tells an allocation that failed from a wrong
 * message. */
typedef struct onnx_memory {
    ProtobufCAllocator allocator;
    mpl_ctx *ctx;
    bool failed;
} onnx_memory;

/* Unpacks a message after a look at how deep it nests (at most 100). MPL_EINPUT: it is none; `what`
 * is for the line. */
mpl_status onnx_unpack(onnx_memory *memory, mpl_ctx *ctx, const char *path, const char *what,
                       const ProtobufCMessageDescriptor *kind, const void *data, size_t size,
                       ProtobufCMessage **out);

#endif
