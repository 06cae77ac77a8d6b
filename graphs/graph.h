/* graph.h -- the IR: operations and values in SSA, as plain arrays.
 *
 * A graph is filled through mpl_graph_add_*, closed by mpl_graph_finish, and const from then on; a
 * pass makes a new one. Ids are dense, in the order in which things were added, which is the order
 * `given`: every operation comes after those that make its inputs.
 *
 * Control flow: a block is a run of operations with parameters and results of its own; block 0 is
 * the whole graph. A `while` owns one block, its body, a `case` one for each branch. Blocks nest;
 * operations and values of all of them stand in the same arrays, a block's operations one after
 * another, right before the operation that owns it. A block may use the values of those around it
 * (it captures them); nothing of it is seen outside but its results, through its owner's outputs.
 *
 * A program is not SSA: it may change what lies in memory. Its values that are views (ir/views.h)
 * lie where their root does, and read what was last written there; an output is what its memory
 * holds at the end. The pass tensor_ssa makes the SSA graph that orders, planners and backends
 * take. Programs have no blocks. */
#ifndef MPL_GRAPH_H
#define MPL_GRAPH_H

#include "graphs/core/base.h"

typedef uint32_t mpl_op;    /* index into graph->op_*    */
typedef uint32_t mpl_value; /* index into graph->value_* */

#define MPL_MAX_RANK 8

typedef enum mpl_type {
#define TYPE(name, bytes, ctype) MPL_TYPE_##name,
#include "graphs/ir/types.def"
#undef TYPE
    MPL_N_TYPES
} mpl_type;

typedef enum mpl_role {
    MPL_INPUT,     /* given by the caller */
    MPL_WEIGHT,    /* constant: with data, or filled at run time from a seed */
    MPL_TEMPORARY, /* made by an operation, used by others */
    MPL_OUTPUT,    /* made by an operation, handed to the caller */
    MPL_PARAMETER, /* of a block: there when the block begins */
    MPL_N_ROLES
} mpl_role;

typedef struct mpl_shape {
    uint32_t rank; /* 0: a scalar, one element */
    int64_t dim[MPL_MAX_RANK];
} mpl_shape;

typedef enum mpl_attr_key {
#define ATTR(name) MPL_ATTR_##name,
#include "gen/attrs_names.def" /* of ir/attrs.def */
#undef ATTR
} mpl_attr_key;

typedef enum mpl_attr_kind {
    MPL_ATTR_INT,
    MPL_ATTR_INTS,
    MPL_ATTR_FLOAT,
    MPL_ATTR_FLOATS,
    MPL_ATTR_TEXT
} mpl_attr_kind;

/* One attribute as it is handed to mpl_graph_add_op and as it is read back; what it points to is
 * copied in. */
typedef struct mpl_attr {
    mpl_attr_key key;
    uint32_t n; /* items in ints or floats; characters of text */
    const int64_t *ints;
    const double *floats;
    const char *text; /* zero-terminated */
} mpl_attr;

/* An attribute of one whole number, several, one real number, several, a text. */
#define MPL_INT(key, value) ((mpl_attr){MPL_ATTR_##key, 1, (const int64_t[]){value}, NULL, NULL})

#define MPL_INTS(key, n, values) ((mpl_attr){MPL_ATTR_##key, n, values, NULL, NULL})

#define MPL_FLOAT(key, value) ((mpl_attr){MPL_ATTR_##key, 1, NULL, (const double[]){value}, NULL})

#define MPL_FLOATS(key, n, value) ((mpl_attr){MPL_ATTR_##key, n, NULL, value, NULL})

#define MPL_TEXT(key, value)                                                                       \
    ((mpl_attr){MPL_ATTR_##key, (uint32_t)strlen(value), NULL, NULL, value})

typedef enum mpl_op_kind {
#define OP(name, shape, eval) MPL_OP_##name,
#include "gen/ops_names.def" /* of ir/ops.def */
#undef OP
} mpl_op_kind;

/* What holds of an operator whatever its attributes; ops.def gives them. */
enum {
    MPL_IN_PLACE_0 = 1,   /* output 0 may overwrite input 0 of the same type and dims */
    MPL_IN_PLACE_ANY = 2, /* output 0 may overwrite any one input of the same type and dims */
    MPL_VIEW = 4, /* output 0 is the bytes of input 0 under other dims: needs no memory of its own
                   */
    MPL_ELEMENTWISE = 8, /* each output element depends on the elements of its own index (broadcast)
                            alone */
    MPL_NO_FOLD = 16,    /* never computed while reading, even from constants */
    MPL_CONTROL = 32,    /* control flow: run by the executor, never by mpl_eval or a backend */
    MPL_PROGRAM = 64,    /* only in a program */
    MPL_MUTATES = 128,   /* writes where input 0 lies, and has no output */
    MPL_UPDATE_1 = 256,  /* the last 1, 2, 3 outputs are the new contents of the last of the inputs
                            that must be there, in */
    MPL_UPDATE_2 = 512,  /* their order and in their very storage: trained weights, running
                            statistics, state of an */
    MPL_UPDATE_3 = 768,  /* optimiser. Further inputs are waited for, not read
                            (mpl_graph_check_updates) */
};

typedef struct mpl_graph {
    char *name;
    bool program; /* set by its maker before anything is added */
    uint32_t n_ops, n_values;

    uint16_t *op_kind;     /* [n_ops] mpl_op_kind */
    char **op_name;        /* [n_ops] never NULL; for messages and pictures, need not be unique */
    uint32_t *op_in_begin; /* [n_ops + 1] into op_in: inputs of op i; likewise op_out and attributes
                            */
    uint32_t *op_out_begin;  /* [n_ops + 1] */
    uint32_t *op_attr_begin; /* [n_ops + 1] into attr_* */
    mpl_value *op_in;        /* MPL_NONE: an optional input left out */
    mpl_value *op_out;       /* MPL_NONE: an optional output not asked for */

    uint16_t *attr_key;   /* mpl_attr_key */
    uint32_t *attr_begin; /* into attr_int, attr_float or attr_text, by the kind of the key */
    uint32_t *attr_n;
    int64_t *attr_int;
    double *attr_float;
    char *attr_text;

    char **value_name;      /* [n_values] unique within the graph */
    uint8_t *value_type;    /* [n_values] mpl_type */
    uint8_t *value_role;    /* [n_values] mpl_role */
    mpl_shape *value_shape; /* [n_values] */
    uint64_t *value_bytes;  /* [n_values] plain layout, row-major, no padding. [byte] */
    mpl_op *value_op;  /* [n_values] the operation that makes it; MPL_NONE for inputs and weights */
    void **value_data; /* [n_values] constant's elements, owned; NULL: none, or a weight filled from
                          a seed */
    uint8_t *value_splat; /* [n_values] 1: value_data holds one element that stands for all */

    uint32_t n_inputs, n_outputs;
    mpl_value *input;  /* [n_inputs]  in the order of the file */
    mpl_value *output; /* [n_outputs] in the order of the file; any role */

    /* Consuming operations in order; one that reads a value twice stands twice. A block's result is
     * used by the owner. Made by mpl_graph_finish. */
    uint32_t *value_use_begin; /* [n_values + 1] into value_use */
    mpl_op *value_use;

    /* Blocks in the order in which they were opened: a nested one has a higher id than that around
     * it. */
    uint32_t n_blocks;           /* at least 1 */
    char **block_name;           /* [n_blocks] unique */
    uint32_t *block_parent;      /* [n_blocks] the block around it; MPL_NONE for block 0 */
    mpl_op *block_owner;         /* [n_blocks] the operation that runs it; MPL_NONE for block 0 */
    uint32_t *block_param_begin; /* [n_blocks] into block_param; block_n_params of them */
    uint32_t *block_n_params;
    uint32_t *block_result_begin; /* [n_blocks] into block_result; block_n_results of them */
    uint32_t *block_n_results;
    mpl_op *block_op_begin; /* [n_blocks] its operations, those of nested blocks included: begin,
                               end */
    mpl_op *block_op_end;   /* [n_blocks] */
    mpl_value *block_value_begin; /* [n_blocks] the values that were added while it was open */
    mpl_value *block_value_end;   /* [n_blocks] */
    mpl_value *block_param;
    mpl_value *block_result; /* MPL_NONE: an optional result left out */
    uint32_t *op_block;      /* [n_ops] the innermost block that it stands in */
    uint32_t *value_block; /* [n_values] the block that it can be seen in, and in those nested there
                            */
    uint32_t *op_body_begin; /* [n_ops + 1] into op_body: the blocks that an operation owns */
    uint32_t *op_body;

    /* Inputs whose contents decided shapes and were folded away; the row names them. */
    uint64_t folded; /* spent on computing constants while it is built (passes/fold_constants.c) */
    uint32_t n_bound;
    char **bound_input;

    struct mpl_graph_caps *caps; /* private to ir/graph.c */
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
/* MPL_NONE: left out, or there is none of that number. */
static inline mpl_value mpl_op_input(const mpl_graph *g, mpl_op op, uint32_t i)
{
    return i < mpl_op_n_in(g, op) ? g->op_in[g->op_in_begin[op] + i] : MPL_NONE;
}
static inline mpl_value mpl_op_output(const mpl_graph *g, mpl_op op, uint32_t i)
{
    return i < mpl_op_n_out(g, op) ? g->op_out[g->op_out_begin[op] + i] : MPL_NONE;
}
/* No output but the first. */
bool mpl_op_lone_output(const mpl_graph *g, mpl_op op);
/* The first block that `op` owns: the body of a while. */
static inline uint32_t mpl_op_first_body(const mpl_graph *g, mpl_op op)
{
    return g->op_body[g->op_body_begin[op]];
}
/* The operation of the whole graph that `op` is, or stands in. */
mpl_op mpl_op_outermost(const mpl_graph *g, mpl_op op);
static inline mpl_value mpl_param(const mpl_graph *g, uint32_t block, uint32_t i)
{
    return g->block_param[g->block_param_begin[block] + i];
}
static inline mpl_value mpl_result(const mpl_graph *g, uint32_t block, uint32_t i)
{
    return g->block_result[g->block_result_begin[block] + i];
}
/* Whether v is an input that was bound while reading: its name is among bound_input. */
bool mpl_is_bound(const mpl_graph *g, mpl_value v);
/* Of one type and dims. */
bool mpl_same_form(const mpl_graph *g, mpl_value a, mpl_value b);

/* ---- operators, types, attributes by name ---- */

struct mpl_op_call;

/* Output types and shapes of one operation from its inputs' and its attributes.
 * `out_shape`/`out_type` have n_out entries. Must refuse (MPL_EINPUT, one line naming what is
 * wrong) whatever eval could not compute; the caller adds the operation's name. */
typedef struct mpl_shape_call {
    const mpl_graph *graph; /* attributes are read through mpl_attr_* from here */
    mpl_op op;
    uint32_t n_in, n_out;
    const mpl_shape *const *in_shape; /* [n_in]; NULL: left out */
    const mpl_type *in_type;          /* [n_in] */
    uint32_t n_bodies;                /* blocks that it owns */
    const uint32_t *body;             /* [n_bodies] */
    mpl_shape *out_shape;             /* [n_out] to be written */
    mpl_type *out_type;               /* [n_out] to be written */
    uint32_t first_in; /* where in_shape[0] stands among the operation's inputs, for messages: a
                          rule may pass the rest on */
} mpl_shape_call;

typedef struct mpl_op_info {
    const char *name;
    uint8_t min_in, max_in;   /* 255: any number */
    uint8_t min_out, max_out; /* 255: any number */
    unsigned traits;
} mpl_op_info;

extern const mpl_op_info mpl_op_table[]; /* [MPL_N_OPS], ir/counts.h */

const char *mpl_type_name(mpl_type type);
uint32_t mpl_type_bytes(mpl_type type); /* [byte] */
bool mpl_type_find(const char *name, mpl_type *type);
bool mpl_op_find(const char *name, mpl_op_kind *kind);
bool mpl_attr_find(const char *name, mpl_attr_key *key);
const char *mpl_attr_name(mpl_attr_key key);
mpl_attr_kind mpl_attr_kind_of(mpl_attr_key key);

/* Attributes of an operation; the default where it has none. mpl_attr_ints: NULL and *n = 0 where
 * absent. */
bool mpl_attr_get(const mpl_graph *g, mpl_op op, mpl_attr_key key, mpl_attr *out);
mpl_attr mpl_attr_at(const mpl_graph *g, uint32_t index); /* index from op_attr_begin */
int64_t mpl_attr_int(const mpl_graph *g, mpl_op op, mpl_attr_key key, int64_t otherwise);
double mpl_attr_float(const mpl_graph *g, mpl_op op, mpl_attr_key key, double otherwise);
const char *mpl_attr_text(const mpl_graph *g, mpl_op op, mpl_attr_key key, const char *otherwise);
const int64_t *mpl_attr_ints(const mpl_graph *g, mpl_op op, mpl_attr_key key, uint32_t *n);
/* The carried values of a while; index into its inputs is 2 + pair, into its params and results 1 +
 * pair. */
static inline uint32_t mpl_n_carried(const mpl_graph *g, mpl_op op)
{
    return (uint32_t)mpl_attr_int(g, op, MPL_ATTR_carried, 0);
}

/* Bytes of the box that an assign writes into input 0, or that a fused operation makes
 * (graphs/ops). [byte] */
uint64_t mpl_box_bytes(const mpl_graph *g, mpl_op op);
/* ---- updates: operations that give a weight new contents, which the next run begins with ---- */

/* How many outputs of an operator are updates. */
static inline uint32_t mpl_n_updates(mpl_op_kind kind)
{
    return mpl_op_table[kind].traits / MPL_UPDATE_1 & 3;
}
/* The value whose storage output i of `op` takes over; MPL_NONE: none's. O(1). */
mpl_value mpl_updated(const mpl_graph *g, mpl_op op, uint32_t i);
/* Whether outputs of `op` can lie in the storage of its input 0, unchanged. */
static inline bool mpl_may_be_view(const mpl_graph *g, mpl_op op)
{
    return (mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) != 0 ||
           g->op_kind[op] == MPL_OP_split || g->op_kind[op] == MPL_OP_slice;
}
/* What v shows, itself or through views: an input or weight, or a value that something else than a
 * view makes. */
static inline mpl_value mpl_shown_source(const mpl_graph *g, mpl_value v)
{
    while (g->value_op[v] != MPL_NONE && mpl_may_be_view(g, g->value_op[v]))
        v = g->op_in[g->op_in_begin[g->value_op[v]]];
    return v;
}
/* How many of its inputs an operation reads; it only waits for those that make the others. O(1). */
uint32_t mpl_n_read(const mpl_graph *g, mpl_op op);
/* What a value is to training: a weight, state of the optimiser (a weight that an optimiser keeps
 * for itself), or the gradient that an optimiser reads, with what it is added up from where nobody
 * else reads that. Running statistics of batch norm are weights. */
typedef enum mpl_part {
    MPL_PART_NONE,
    MPL_PART_WEIGHT,
    MPL_PART_GRADIENT,
    MPL_PART_STATE,
    MPL_N_PARTS
} mpl_part;
/* "weights", "gradients", "state"; NULL for none. */
const char *mpl_part_name(mpl_part part);
/* part[n_values]: mpl_part of each value; of a view, where it is a gradient. O(size). */
void mpl_graph_parts(const mpl_graph *g, uint8_t *part);
/* MPL_EINPUT: an update of what is no weight, a second one of the same, one inside a block, or one
 * that does not have to wait for an operation that reads what was there before. O(updates *
 * size). */
mpl_status mpl_graph_check_updates(mpl_ctx *ctx, const mpl_graph *g);

/* ---- shapes ---- */

bool mpl_shape_equal(const mpl_shape *a, const mpl_shape *b);
/* Product of the dims; false when it is negative or passes 2^63. */
bool mpl_shape_count(const mpl_shape *shape, uint64_t *count);
/* The product of dims [from, to) of a shape that was checked before; all of its elements. */
static inline int64_t mpl_count_dims(const mpl_shape *shape, uint32_t from, uint32_t to)
{
    uint64_t n = 1; /* unsigned: beside a dim of 0 the others may be as large as they like */

    for (uint32_t i = from; i < to; i++)
        n *= (uint64_t)shape->dim[i];
    return (int64_t)n;
}
static inline int64_t mpl_count(const mpl_shape *shape)
{
    return mpl_count_dims(shape, 0, shape->rank);
}
/* "[1,64,56,56]" into text (at least 200 bytes); returns text. */
const char *mpl_shape_text(const mpl_shape *shape, char *text);

/* ---- building ---- */

mpl_status mpl_graph_new(mpl_ctx *ctx, const char *name, mpl_graph **out);
void mpl_graph_free(mpl_ctx *ctx, mpl_graph *g); /* NULL is allowed */

/* A value that no operation makes: role MPL_INPUT (appended to the inputs) or MPL_WEIGHT.
 * MPL_EINPUT when the name exists, a dim is negative or the bytes overflow. */
mpl_status mpl_graph_add_value(mpl_ctx *ctx, mpl_graph *g, const char *name, mpl_role role,
                               mpl_type type, const mpl_shape *shape, mpl_value *out);

/* A weight with data, copied in: all its elements, or one that stands for all when splat. */
mpl_status mpl_graph_add_const(mpl_ctx *ctx, mpl_graph *g, const char *name, mpl_type type,
                               const mpl_shape *shape, const void *data, bool splat,
                               mpl_value *out);

/* An operation after all those there are; makes its outputs with the types and shapes that its
 * shape rule gives. in[i] = MPL_NONE leaves an optional input out. out_name[i] = NULL leaves an
 * optional output out; out[i] (may be NULL) receives the values. Attributes are copied. MPL_EINPUT:
 * wrong numbers of inputs, outputs; the shape rule refuses; a name exists. The graph is unchanged
 * on failure. */
mpl_status mpl_graph_add_op(mpl_ctx *ctx, mpl_graph *g, mpl_op_kind kind, const char *name,
                            uint32_t n_in, const mpl_value *in, uint32_t n_attr,
                            const mpl_attr *attr, uint32_t n_out, const char *const *out_name,
                            mpl_value *out);

/* ---- blocks ---- */

/* Opens a block inside the one that is open; what is added from now on stands in it, weights and
 * inputs excepted, which belong to the whole graph. MPL_EINPUT when the name exists. */
mpl_status mpl_graph_open_block(mpl_ctx *ctx, mpl_graph *g, const char *name, uint32_t *out);
/* The next parameter of the open block. */
mpl_status mpl_graph_add_param(mpl_ctx *ctx, mpl_graph *g, const char *name, mpl_type type,
                               const mpl_shape *shape, mpl_value *out);
/* Closes the open block with its results: values seen in it, or MPL_NONE. */
mpl_status mpl_graph_close_block(mpl_ctx *ctx, mpl_graph *g, uint32_t n_results,
                                 const mpl_value *result);
/* As mpl_graph_add_op, for an operation that owns blocks: closed ones, in the open block, of which
 * no other operation is the owner, the last ones that were opened there, with no operation behind
 * them.
 *
 * while(trips, go, init.., scan..) body: params (round i64 [], carried.., slice..), results (go,
 * next.., row..). carried=N says how many are carried. A round begins while round < trips (i64, may
 * be left out), round < `trips` (attribute, the most there can be) and go is true (bool; at first
 * the input, then the result of the round before; left out: true). A slice is scan[round] along
 * axis 0, which all scans have in common: they say how many rounds there are, at most. An
 * `exit_unless(c)` directly in the body ends the loop when c is false: the round counts as never
 * begun, its rows and next values are dropped. Outputs: the carried values behind the last round
 * (the inits when there was none), then the rows stacked along a new axis 0, as many as there can
 * be rounds; those of rounds that did not come are zero. scan_reverse has a flag for each scan,
 * then for each row: 1, the last slice comes first.
 *
 * case(index, bypass..) branch..: a branch has no params and one result for each output. index:
 * i64, i32 or bool of one element; below 0 no branch runs and the outputs are the bypass values
 * (MPL_EINPUT when there are none, or past the last). */
mpl_status mpl_graph_add_control(mpl_ctx *ctx, mpl_graph *g, mpl_op_kind kind, const char *name,
                                 uint32_t n_in, const mpl_value *in, uint32_t n_attr,
                                 const mpl_attr *attr, uint32_t n_bodies, const uint32_t *body,
                                 uint32_t n_out, const char *const *out_name, mpl_value *out);
/* Block of that name, or MPL_NONE. O(n_blocks). */
uint32_t mpl_graph_find_block(const mpl_graph *g, const char *name);
/* Whether `inner` is `outer` or nested in it. */
bool mpl_block_within(const mpl_graph *g, uint32_t inner, uint32_t outer);
/* Most rounds of a `while`: by its scans or its attribute `trips`; -1: any number. */
int64_t mpl_while_most_rounds(const mpl_graph *g, mpl_op op);

bool mpl_graph_has_loop(const mpl_graph *g);

/* Goes through a graph in the order in which it was built: what is added to another graph in that
 * order, block by block, gets the same ids. */
typedef enum mpl_item {
    MPL_ITEM_VALUE, /* an input or weight */
    MPL_ITEM_OPEN,  /* a block, with its parameters */
    MPL_ITEM_OP,    /* an operation, with its outputs */
    MPL_ITEM_CLOSE, /* a block, with its results */
    MPL_ITEM_END
} mpl_item;

typedef struct mpl_walk {
    mpl_op op;       /* of MPL_ITEM_OP; those below were given */
    mpl_value value; /* of MPL_ITEM_VALUE */
    uint32_t block;  /* of MPL_ITEM_OPEN and _CLOSE */
    /* private */
    mpl_op next_op;
    mpl_value next_value;
    uint32_t open, next_block;
} mpl_walk;

mpl_walk mpl_walk_begin(void);
mpl_item mpl_walk_next(const mpl_graph *g, mpl_walk *walk);

/* Makes v the next output of the graph; a temporary becomes MPL_OUTPUT. */
mpl_status mpl_graph_add_output(mpl_ctx *ctx, mpl_graph *g, mpl_value v);

/* Removes input `v` from the inputs and makes it a constant: an input that decides shapes, bound to
 * `data`. */
mpl_status mpl_graph_bind_input(mpl_ctx *ctx, mpl_graph *g, mpl_value v, const void *data);

/* Input `index` of the file that the graph was read from, bound ones counted (a bound one is a
 * MPL_WEIGHT here), or MPL_NONE. Inputs are added in the order of the file, so their ids ascend.
 * O(index * (n_inputs + n_bound)). */
mpl_value mpl_graph_file_input(const mpl_graph *g, uint32_t index);

/* Value of that name, or MPL_NONE. O(1) expected. */
mpl_value mpl_graph_find(const mpl_graph *g, const char *name);

/* Makes the use lists and checks the whole (mpl_graph_ok). MPL_EINPUT when there is no output.
 * O(size). */
mpl_status mpl_graph_finish(mpl_ctx *ctx, mpl_graph *g);

/* MPL_EINPUT with one line that names the pass when g is a program. What needs SSA calls it. */
mpl_status mpl_graph_check_ssa(mpl_ctx *ctx, const mpl_graph *g);

/* Every id in range, every value made once and before its uses, bytes equal to type times dims.
 * O(size). */
bool mpl_graph_ok(const mpl_graph *g);

/* A name for the contents of a finished graph: operators, attributes (floating ones in 32 bits, as
 * files have them), shapes, types, roles, edges. Left out are names, weight data, and where there
 * are no blocks the ids of weights and inputs, and weights that nobody reads. */
uint64_t mpl_graph_hash(const mpl_graph *g);

/* ---- evaluation: what each operator means, in the plainest loops ---- */

typedef struct mpl_tensor {
    mpl_type type;
    mpl_shape shape;
    void *data; /* row-major; NULL: an optional input or output left out */
} mpl_tensor;

/* One operation with its operands in place. Backends hand on the same struct. */
typedef struct mpl_op_call {
    const mpl_graph *graph; /* attributes */
    mpl_op op;
    uint32_t n_in, n_out;
    const mpl_tensor *in;  /* [n_in] */
    const mpl_tensor *out; /* [n_out] data may be an input's where the operator is in-place */
    void *workspace; /* what the backend asked for when it prepared the operation; NULL if nothing
                      */
} mpl_op_call;

/* Types and dims of the outputs of an operation by its shape rule. MPL_EINPUT: the operands do not
 * fit. */
mpl_status mpl_shape_of(mpl_ctx *ctx, const mpl_shape_call *call);
/* Computes the operation by the reference loops of graphs/ops; allocates nothing. MPL_EINPUT:
 * indices out of range. */
mpl_status mpl_eval(mpl_ctx *ctx, const mpl_op_call *call);

#endif
