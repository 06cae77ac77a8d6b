/* graph.h -- the IR: operations and values in SSA, as plain arrays.
 *
 * Build a graph with mpl_graph_add_* and close it with mpl_graph_finish; it is const from then on.
 * Passes make new graphs. Ids are dense, in order of insertion. This is the order `given`: each
 * operation comes after the producers of its inputs.
 *
 * Control flow: a block is a sequence of operations with parameters and results. Block 0 is the
 * whole graph. A `while` owns one block, its body; a `case` owns one block a branch. Blocks nest.
 * All operations and values share the same arrays; a block's operations are contiguous, right
 * before the operation that owns it. A block may use (capture) values of enclosing blocks. Only its
 * results are visible outside, through the outputs of its owner.
 *
 * A program is not SSA: its operations may write memory in place. Its views (build/views.h) lie in
 * their root's storage and read the latest contents; an output is the final contents of its memory.
 * The pass tensor_ssa makes the SSA graph that orders, planners and backends need. Blocks of a
 * program may write what lies outside of them. */
#pragma once

#include "graphs/core/base.h"

typedef uint32_t mpl_op;    /* index into graph->op_* */
typedef uint32_t mpl_value; /* index into graph->value_* */

#define MPL_MAX_RANK 8

typedef enum mpl_type {
#define TYPE(name, bits) MPL_TYPE_##name,
#include "graphs/ir/types.def"
#undef TYPE
    MPL_N_TYPES
} mpl_type;

typedef enum mpl_role {
    MPL_INPUT,     /* provided by the caller */
    MPL_WEIGHT,    /* constant: has data, or is filled from a seed at run time */
    MPL_TEMPORARY, /* produced by an operation, used by others */
    MPL_OUTPUT,    /* produced by an operation, returned to the caller */
    MPL_PARAMETER, /* of a block: defined when the block begins */
    MPL_N_ROLES
} mpl_role;

typedef struct mpl_shape {
    uint32_t rank; /* 0: a scalar */
    int64_t dim[MPL_MAX_RANK];
} mpl_shape;

typedef enum mpl_attr_key {
#define ATTR(name) MPL_ATTR_##name,
#include "gen/attrs_names.def" /* made from ir/attrs.def */
#undef ATTR
} mpl_attr_key;

typedef enum mpl_attr_kind {
    MPL_ATTR_INT,
    MPL_ATTR_INTS,
    MPL_ATTR_FLOAT,
    MPL_ATTR_FLOATS,
    MPL_ATTR_TEXT
} mpl_attr_kind;

/* One attribute, as passed to mpl_graph_add_op (which copies its contents) and as read back. */
typedef struct mpl_attr {
    mpl_attr_key key;
    uint32_t n; /* items in ints or floats; characters of text */
    const int64_t *ints;
    const double *floats;
    const char *text; /* zero-terminated */
} mpl_attr;

/* An attribute of one integer, several integers, one real, several reals, a text. */
#define MPL_INT(key, value) ((mpl_attr){MPL_ATTR_##key, 1, (const int64_t[]){value}, NULL, NULL})

#define MPL_INTS(key, n, values) ((mpl_attr){MPL_ATTR_##key, n, values, NULL, NULL})

#define MPL_FLOAT(key, value) ((mpl_attr){MPL_ATTR_##key, 1, NULL, (const double[]){value}, NULL})

#define MPL_FLOATS(key, n, value) ((mpl_attr){MPL_ATTR_##key, n, NULL, value, NULL})

#define MPL_TEXT(key, value)                                                                       \
    ((mpl_attr){MPL_ATTR_##key, (uint32_t)strlen(value), NULL, NULL, value})

typedef enum mpl_op_kind {
#define OP(name, shape, eval) MPL_OP_##name,
#include "gen/ops_names.def" /* made from ir/ops.def */
#undef OP
} mpl_op_kind;

/* Traits of operators, independent of attributes; set in ops.def. */
enum {
    MPL_IN_PLACE_0 = 1,   /* output 0 may overwrite input 0 if type and dims are equal */
    MPL_IN_PLACE_ANY = 2, /* output 0 may overwrite any one input of equal type and dims */
    MPL_VIEW = 4,         /* output 0 is the bytes of input 0 with other dims */
    MPL_ELEMENTWISE = 8,  /* an output element depends only on its own (broadcast) index */
    MPL_NO_FOLD = 16,     /* not folded while reading, even if its inputs are constant */
    MPL_CONTROL = 32,     /* run by the executor, never by mpl_eval or a backend */
    MPL_PROGRAM = 64,     /* allowed only in a program */
    MPL_MUTATES = 128,    /* writes into input 0 and has no output */
    /* The last 1, 2 or 3 outputs are updates: new contents of the last required inputs, in their
     * order and storage (trained weights, running statistics, optimiser state). The operation waits
     * for further inputs but does not read them (mpl_graph_check_updates). */
    MPL_UPDATE_1 = 256,
    MPL_UPDATE_2 = 512,
    MPL_UPDATE_3 = 768,
    MPL_PACKED = 1024, /* takes and makes elements of less than a byte */
};

typedef struct mpl_graph {
    char *name;
    bool program; /* set before anything is added */
    uint32_t n_ops, n_values;

    uint16_t *op_kind;       /* [n_ops] mpl_op_kind */
    char **op_name;          /* [n_ops] never NULL, need not be unique; for messages and pictures */
    uint32_t *op_in_begin;   /* [n_ops + 1] into op_in; op_out and attr_* likewise */
    uint32_t *op_out_begin;  /* [n_ops + 1] */
    uint32_t *op_attr_begin; /* [n_ops + 1] */
    mpl_value *op_in;        /* MPL_NONE: optional input omitted */
    mpl_value *op_out;       /* MPL_NONE: optional output not requested */

    uint16_t *attr_key;   /* mpl_attr_key */
    uint32_t *attr_begin; /* into attr_int, attr_float or attr_text, by kind */
    uint32_t *attr_n;
    int64_t *attr_int;
    double *attr_float;
    char *attr_text;

    char **value_name;      /* [n_values] unique */
    uint8_t *value_type;    /* [n_values] mpl_type */
    uint8_t *value_role;    /* [n_values] mpl_role */
    mpl_shape *value_shape; /* [n_values] */
    uint64_t *value_bytes;  /* [n_values] row-major, without padding [byte] */
    mpl_op *value_op;       /* [n_values] producer; MPL_NONE for inputs and weights */
    void **value_data;      /* [n_values] constant's elements, owned; NULL: none, or from a seed */
    uint8_t *value_splat;   /* [n_values] 1: value_data is one element, repeated for all */

    uint32_t n_inputs, n_outputs;
    mpl_value *input;  /* [n_inputs] in file order */
    mpl_value *output; /* [n_outputs] in file order; any role */

    /* Consumers in order; one that reads a value twice is listed twice. A block's result is used by
     * the block's owner. Made by mpl_graph_finish. */
    uint32_t *value_use_begin; /* [n_values + 1] into value_use */
    mpl_op *value_use;

    /* Blocks in order of opening: a nested block has a higher id than its parent. */
    uint32_t n_blocks;           /* at least 1 */
    char **block_name;           /* [n_blocks] unique */
    uint32_t *block_parent;      /* [n_blocks] enclosing block; MPL_NONE for block 0 */
    mpl_op *block_owner;         /* [n_blocks] operation that runs it; MPL_NONE for block 0 */
    uint32_t *block_param_begin; /* [n_blocks] into block_param */
    uint32_t *block_n_params;
    uint32_t *block_result_begin; /* [n_blocks] into block_result */
    uint32_t *block_n_results;
    mpl_op *block_op_begin;       /* [n_blocks] its operations, including nested blocks */
    mpl_op *block_op_end;         /* [n_blocks] */
    mpl_value *block_value_begin; /* [n_blocks] values added while it was open */
    mpl_value *block_value_end;   /* [n_blocks] */
    mpl_value *block_param;
    mpl_value *block_result; /* MPL_NONE: optional result omitted */
    uint32_t *op_block;      /* [n_ops] innermost enclosing block */
    uint32_t *value_block;   /* [n_values] visible in this block and those nested in it */
    uint32_t *op_body_begin; /* [n_ops + 1] into op_body: blocks that the operation owns */
    uint32_t *op_body;

    uint64_t folded; /* bytes and work spent on folding (passes/fold_constants.c) */
    uint32_t n_bound;
    char **bound_input; /* [n_bound] names of inputs that decided shapes; for the row */

    struct mpl_graph_caps *caps; /* private to graphs/build */
} mpl_graph;

/* ---- reading ---- */

static inline uint32_t mpl_op_n_in(const mpl_graph *g, mpl_op op)
{
    return g->op_in_begin[op + 1] - g->op_in_begin[op];
}
static inline uint32_t mpl_op_n_out(const mpl_graph *g, mpl_op op)
{
    return g->op_out_begin[op + 1] - g->op_out_begin[op];
}
/* MPL_NONE: omitted, or out of range. */
static inline mpl_value mpl_op_input(const mpl_graph *g, mpl_op op, uint32_t i)
{
    return i < mpl_op_n_in(g, op) ? g->op_in[g->op_in_begin[op] + i] : MPL_NONE;
}
static inline mpl_value mpl_op_output(const mpl_graph *g, mpl_op op, uint32_t i)
{
    return i < mpl_op_n_out(g, op) ? g->op_out[g->op_out_begin[op] + i] : MPL_NONE;
}
/* True if only the first output is present. */
bool mpl_op_lone_output(const mpl_graph *g, mpl_op op);
/* The first block that `op` owns: the body of a `while`. */
static inline uint32_t mpl_op_first_body(const mpl_graph *g, mpl_op op)
{
    return g->op_body[g->op_body_begin[op]];
}
/* `op` itself, or the operation of block 0 that contains it. */
mpl_op mpl_op_outermost(const mpl_graph *g, mpl_op op);
static inline mpl_value mpl_param(const mpl_graph *g, uint32_t block, uint32_t i)
{
    return g->block_param[g->block_param_begin[block] + i];
}
static inline mpl_value mpl_result(const mpl_graph *g, uint32_t block, uint32_t i)
{
    return g->block_result[g->block_result_begin[block] + i];
}
/* Whether v is an input that was bound while reading: its name is in bound_input. */
bool mpl_is_bound(const mpl_graph *g, mpl_value v);
/* Same type and dims. */
bool mpl_same_form(const mpl_graph *g, mpl_value a, mpl_value b);

/* ---- operators, types, attributes by name ---- */

struct mpl_op_call;

/* Argument of a shape rule: computes types and shapes of one operation's outputs. The rule must
 * reject whatever eval cannot compute (MPL_EINPUT, one line naming the fault). The caller adds the
 * operation's name. */
typedef struct mpl_shape_call {
    const mpl_graph *graph; /* for mpl_attr_* */
    mpl_op op;
    uint32_t n_in, n_out;
    const mpl_shape *const *in_shape; /* [n_in]; NULL: omitted */
    const mpl_type *in_type;          /* [n_in] */
    uint32_t n_bodies;                /* blocks that the operation owns */
    const uint32_t *body;             /* [n_bodies] */
    mpl_shape *out_shape;             /* [n_out] result */
    mpl_type *out_type;               /* [n_out] result */
    /* Input number of in_shape[0], for messages: a rule may delegate the remaining inputs. */
    uint32_t first_in;
} mpl_shape_call;

typedef struct mpl_op_info {
    const char *name;
    uint8_t min_in, max_in;   /* 255: any number */
    uint8_t min_out, max_out; /* 255: any number */
    unsigned traits;
} mpl_op_info;

extern const mpl_op_info mpl_op_table[]; /* [MPL_N_OPS], see ir/counts.h */

const char *mpl_type_name(mpl_type type);
uint32_t mpl_type_bits(mpl_type type);
uint32_t mpl_type_bytes(mpl_type type); /* of one element on its own [byte] */
/* Bytes of n elements: those of less than a byte are packed. False: more than 2^64. */
bool mpl_type_size(mpl_type type, uint64_t n, uint64_t *bytes);
/* Fills data with n times the one element. */
void mpl_type_repeat(mpl_type type, uint64_t n, const void *one, void *data);
bool mpl_type_find(const char *name, mpl_type *type);
bool mpl_op_find(const char *name, mpl_op_kind *kind);
bool mpl_attr_find(const char *name, mpl_attr_key *key);
const char *mpl_attr_name(mpl_attr_key key);
mpl_attr_kind mpl_attr_kind_of(mpl_attr_key key);

/* Read attributes; return `otherwise` if absent. mpl_attr_ints then returns NULL and *n = 0. */
bool mpl_attr_get(const mpl_graph *g, mpl_op op, mpl_attr_key key, mpl_attr *out);
mpl_attr mpl_attr_at(const mpl_graph *g, uint32_t index); /* index from op_attr_begin */
int64_t mpl_attr_int(const mpl_graph *g, mpl_op op, mpl_attr_key key, int64_t otherwise);
double mpl_attr_float(const mpl_graph *g, mpl_op op, mpl_attr_key key, double otherwise);
const char *mpl_attr_text(const mpl_graph *g, mpl_op op, mpl_attr_key key, const char *otherwise);
const int64_t *mpl_attr_ints(const mpl_graph *g, mpl_op op, mpl_attr_key key, uint32_t *n);
/* Number of carried values of a `while`. Carried value i is input 2 + i of the operation, and
 * parameter and result 1 + i of the body. */
static inline uint32_t mpl_n_carried(const mpl_graph *g, mpl_op op)
{
    return (uint32_t)mpl_attr_int(g, op, MPL_ATTR_carried, 0);
}

/* Whether the operator lets output 0 lie where input i lies, for equal type and dims. */
bool mpl_op_overwrites(const mpl_graph *g, mpl_op op, uint32_t i);
/* Whether an element of input i is read only just before the same element is written. */
bool mpl_op_reads_along(const mpl_graph *g, mpl_op op, uint32_t i);
static inline bool mpl_is_opaque(const mpl_graph *g, mpl_op op)
{
    return g->op_kind[op] == MPL_OP_opaque || g->op_kind[op] == MPL_OP_opaque_view ||
           g->op_kind[op] == MPL_OP_opaque_update;
}
/* MPL_EUNAVAIL, naming it, if an operation is opaque: the graph can be planned, not run. */
mpl_status mpl_graph_check_computed(mpl_ctx *ctx, const mpl_graph *g);

/* Bytes of the box that an assign or a fused operation writes (graphs/ops). [byte] */
uint64_t mpl_box_bytes(const mpl_graph *g, mpl_op op);
/* ---- updates: operations that set a weight's contents for the next run ---- */

/* Number of outputs that are updates. */
static inline uint32_t mpl_n_updates(mpl_op_kind kind)
{
    return mpl_op_table[kind].traits / MPL_UPDATE_1 & 3;
}
/* The value whose storage output i of `op` reuses; MPL_NONE if none. O(1). */
mpl_value mpl_updated(const mpl_graph *g, mpl_op op, uint32_t i);
/* Whether outputs of `op` can be views of its input 0. */
static inline bool mpl_may_be_view(const mpl_graph *g, mpl_op op)
{
    return (mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) != 0 ||
           g->op_kind[op] == MPL_OP_split || g->op_kind[op] == MPL_OP_slice;
}
/* The i64 scalar that says how many of v's slices along *axis count, the first ones (v is made by
 * `first`). MPL_NONE: all do. */
static inline mpl_value mpl_length_of(const mpl_graph *g, mpl_value v, uint32_t *axis)
{
    mpl_op op = g->value_op[v];

    if (op == MPL_NONE || g->op_kind[op] != MPL_OP_first)
        return MPL_NONE;
    *axis = (uint32_t)mpl_attr_int(g, op, MPL_ATTR_axis, 0);
    return g->op_in[g->op_in_begin[op] + 1];
}
/* Follows views from v to an input, a weight, or a value that no view produces. */
static inline mpl_value mpl_shown_source(const mpl_graph *g, mpl_value v)
{
    while (g->value_op[v] != MPL_NONE && mpl_may_be_view(g, g->value_op[v]))
        v = g->op_in[g->op_in_begin[g->value_op[v]]];
    return v;
}
/* Number of inputs that an operation reads; for further inputs it only waits. O(1). */
uint32_t mpl_n_read(const mpl_graph *g, mpl_op op);
/* Role of a value in training. A weight; optimiser state (a weight that only the optimiser uses);
 * or a gradient that an optimiser reads, including addends that nothing else reads. Running
 * statistics of batch norm are weights. */
typedef enum mpl_part {
    MPL_PART_NONE,
    MPL_PART_WEIGHT,
    MPL_PART_GRADIENT,
    MPL_PART_STATE,
    MPL_N_PARTS
} mpl_part;
/* "weights", "gradients", "state"; NULL for MPL_PART_NONE. */
const char *mpl_part_name(mpl_part part);
/* Fills part[n_values] with mpl_part; views of gradients are included. O(size). */
void mpl_graph_parts(const mpl_graph *g, uint8_t *part);
/* MPL_EINPUT: an update of a value that is no weight (opaque_update: nor input), a second update of
 * a weight, an update inside a block, or one that need not wait for a reader of the old contents.
 * O(updates * size). */
mpl_status mpl_graph_check_updates(mpl_ctx *ctx, const mpl_graph *g);

/* ---- shapes ---- */

bool mpl_shape_equal(const mpl_shape *a, const mpl_shape *b);
/* Product of the dims; false if a dim is negative or the product exceeds 2^63. */
bool mpl_shape_count(const mpl_shape *shape, uint64_t *count);
/* Product of dims [from, to) of a checked shape. */
static inline int64_t mpl_count_dims(const mpl_shape *shape, uint32_t from, uint32_t to)
{
    uint64_t n = 1; /* unsigned: beside a dim of 0, others may be arbitrarily large */

    for (uint32_t i = from; i < to; i++)
        n *= (uint64_t)shape->dim[i];
    return (int64_t)n;
}
static inline int64_t mpl_count(const mpl_shape *shape)
{
    return mpl_count_dims(shape, 0, shape->rank);
}
/* Writes "[1,64,56,56]" into text (at least 200 bytes); returns text. */
const char *mpl_shape_text(const mpl_shape *shape, char *text);

/* ---- building ---- */

mpl_status mpl_graph_new(mpl_ctx *ctx, const char *name, mpl_graph **out);
void mpl_graph_free(mpl_ctx *ctx, mpl_graph *g); /* NULL is allowed */

/* Adds a value without producer: MPL_INPUT (appended to the inputs) or MPL_WEIGHT. MPL_EINPUT: the
 * name exists, a dim is negative, or the bytes overflow. */
mpl_status mpl_graph_add_value(mpl_ctx *ctx, mpl_graph *g, const char *name, mpl_role role,
                               mpl_type type, const mpl_shape *shape, mpl_value *out);

/* Adds a weight with data (copied): all elements, or one for all if splat. */
mpl_status mpl_graph_add_const(mpl_ctx *ctx, mpl_graph *g, const char *name, mpl_type type,
                               const mpl_shape *shape, const void *data, bool splat,
                               mpl_value *out);

/* Appends an operation; its shape rule gives types and shapes of the outputs. in[i] = MPL_NONE
 * omits an optional input, out_name[i] = NULL an optional output. out[i] (may be NULL) receives the
 * values. Attributes are copied. MPL_EINPUT: wrong number of inputs or outputs, the shape rule
 * rejects, or a name exists; the graph is then unchanged. */
mpl_status mpl_graph_add_op(mpl_ctx *ctx, mpl_graph *g, mpl_op_kind kind, const char *name,
                            uint32_t n_in, const mpl_value *in, uint32_t n_attr,
                            const mpl_attr *attr, uint32_t n_out, const char *const *out_name,
                            mpl_value *out);

/* ---- blocks ---- */

/* Opens a block inside the open one. What follows belongs to it, except weights and inputs, which
 * belong to the whole graph. MPL_EINPUT: the name exists. */
mpl_status mpl_graph_open_block(mpl_ctx *ctx, mpl_graph *g, const char *name, uint32_t *out);
/* Adds a parameter to the open block. */
mpl_status mpl_graph_add_param(mpl_ctx *ctx, mpl_graph *g, const char *name, mpl_type type,
                               const mpl_shape *shape, mpl_value *out);
/* Closes the open block. Results are values visible in it, or MPL_NONE. */
mpl_status mpl_graph_close_block(mpl_ctx *ctx, mpl_graph *g, uint32_t n_results,
                                 const mpl_value *result);
/* As mpl_graph_add_op, for an operation that owns blocks. These must be closed,
 * without owner, the last blocks opened in the open block, and not followed by an operation.
 *
 * while(trips, go, init.., scan..) body: params (round i64 [], carried.., slice..), results (go,
 * next.., row..). carried=N is the number of carried values. A round begins while round < trips
 * (i64, optional), round < `trips` (attribute, the maximum) and go is true (bool, optional: the
 * input for round 0, then the previous round's result). A slice is scan[round] along axis 0; all
 * scans have equal length, which limits the rounds. An `exit_unless(c)` directly in the body ends
 * the loop when c is false; that round does not count, its rows and next values are dropped.
 * Outputs: carried values after the last round (the inits if there was none), then rows stacked
 * along a new axis 0 with one entry for each possible round; entries of rounds that did not run are
 * zero. scan_reverse has a flag for each scan, then for each row: 1 means last slice first.
 *
 * case(index, bypass..) branch..: a branch has no params and one result for each output. index is
 * i64, i32 or bool with one element. Below 0 no branch runs and outputs are the bypass values.
 * MPL_EINPUT: index is below 0 without bypass values, or too large. */
mpl_status mpl_graph_add_control(mpl_ctx *ctx, mpl_graph *g, mpl_op_kind kind, const char *name,
                                 uint32_t n_in, const mpl_value *in, uint32_t n_attr,
                                 const mpl_attr *attr, uint32_t n_bodies, const uint32_t *body,
                                 uint32_t n_out, const char *const *out_name, mpl_value *out);
/* Block with this name, or MPL_NONE. O(n_blocks). */
uint32_t mpl_graph_find_block(const mpl_graph *g, const char *name);
/* Whether `inner` is `outer` or nested in it. */
bool mpl_block_within(const mpl_graph *g, uint32_t inner, uint32_t outer);
/* Upper bound on the rounds of a `while`, from its scans or attribute `trips`; -1: none. */
int64_t mpl_while_most_rounds(const mpl_graph *g, mpl_op op);
/* Whether a `while` certainly runs as many rounds as it can have at most. */
bool mpl_while_runs_full(const mpl_graph *g, mpl_op op);

bool mpl_graph_has_loop(const mpl_graph *g);

/* Walks a graph in insertion order. Adding the items to another graph in this order, block by
 * block, gives the same ids. */
typedef enum mpl_item {
    MPL_ITEM_VALUE, /* an input or weight */
    MPL_ITEM_OPEN,  /* a block, with its parameters */
    MPL_ITEM_OP,    /* an operation, with its outputs */
    MPL_ITEM_CLOSE, /* a block, with its results */
    MPL_ITEM_END
} mpl_item;

typedef struct mpl_walk {
    mpl_op op;       /* of MPL_ITEM_OP */
    mpl_value value; /* of MPL_ITEM_VALUE */
    uint32_t block;  /* of MPL_ITEM_OPEN and _CLOSE */
    /* private */
    mpl_op next_op;
    mpl_value next_value;
    uint32_t open, next_block;
} mpl_walk;

mpl_walk mpl_walk_begin(void);
mpl_item mpl_walk_next(const mpl_graph *g, mpl_walk *walk);

/* Appends v to the outputs; a temporary becomes MPL_OUTPUT. */
mpl_status mpl_graph_add_output(mpl_ctx *ctx, mpl_graph *g, mpl_value v);

/* Removes v from the inputs and makes it a constant with `data`: an input that decides shapes. */
mpl_status mpl_graph_bind_input(mpl_ctx *ctx, mpl_graph *g, mpl_value v, const void *data);

/* Input `index` of the file, counting bound inputs (which are MPL_WEIGHT here), or MPL_NONE. Inputs
 * are added in file order, so their ids ascend. O(index * (n_inputs + n_bound)). */
mpl_value mpl_graph_file_input(const mpl_graph *g, uint32_t index);

/* Value with this name, or MPL_NONE. O(1) expected. */
mpl_value mpl_graph_find(const mpl_graph *g, const char *name);

/* Builds the use lists and checks the graph (mpl_graph_ok). MPL_EINPUT: no output. O(size). */
mpl_status mpl_graph_finish(mpl_ctx *ctx, mpl_graph *g);

/* MPL_EINPUT, naming the pass to run, if g is a program. Call it where SSA is required. */
mpl_status mpl_graph_check_ssa(mpl_ctx *ctx, const mpl_graph *g);

/* Ids are in range, each value is made once and before its uses, bytes match type and dims.
 * O(size). */
bool mpl_graph_ok(const mpl_graph *g);

/* Hash of a finished graph: operators, attributes (reals as 32 bits, as in files), shapes, types,
 * roles, edges. Excluded: names and weight data; without blocks also unused weights and the ids of
 * weights and inputs. */
uint64_t mpl_graph_hash(const mpl_graph *g);

/* ---- evaluation: reference loops of the operators ---- */

typedef struct mpl_tensor {
    mpl_type type;
    mpl_shape shape;
    void *data; /* row-major; NULL: optional operand omitted */
} mpl_tensor;

/* Keeps the first `length` slices of a row-major tensor along an axis, in place. O(bytes). */
void mpl_tensor_cut(mpl_tensor *tensor, uint32_t axis, int64_t length);

/* One operation with its operands' memory. Backends take the same struct. */
typedef struct mpl_op_call {
    const mpl_graph *graph; /* for attributes */
    mpl_op op;
    uint32_t n_in, n_out;
    const mpl_tensor *in;  /* [n_in] */
    const mpl_tensor *out; /* [n_out] may share data with an input if the operator is in-place */
    void *workspace;       /* requested by the backend at preparation; may be NULL */
} mpl_op_call;

/* Types and dims of the outputs, by the shape rule. MPL_EINPUT: the operands do not fit. */
mpl_status mpl_shape_of(mpl_ctx *ctx, const mpl_shape_call *call);
/* Computes the operation by the reference loops of graphs/ops, without allocation. MPL_EINPUT:
 * indices out of range. */
mpl_status mpl_eval(mpl_ctx *ctx, const mpl_op_call *call);
/* What mpl_eval uses of call->workspace; without a workspace it allocates as much. [byte] */
uint64_t mpl_eval_workspace(const mpl_graph *g, mpl_op op);
/* The same by the rule and the loops of operator `kind`, with the operation's attributes. */
mpl_status mpl_shape_as(mpl_ctx *ctx, mpl_op_kind kind, const mpl_shape_call *call);
mpl_status mpl_eval_as(mpl_ctx *ctx, mpl_op_kind kind, const mpl_op_call *call);
