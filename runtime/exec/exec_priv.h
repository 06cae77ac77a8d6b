/* exec_priv.h -- what a bound graph consists of; shared by the files of runtime/exec/.
 *
 * A slab is one memory of the device: the arena of each pool, then the pinned values, the weights,
 * and workspaces that the plan does not place. A block is a range of a slab with one live range: a
 * buffer of the plan, or the storage of a pinned or unshared value. Weights have no blocks, because
 * nothing may ever write to them. */
#pragma once

#include "runtime/exec.h"
#include "runtime/exec/needs.h"

#include <stdatomic.h>

typedef struct mpl_slab {
    void *memory;   /* as allocated; NULL: not yet */
    char *base;     /* first byte for values, after the guard if there is one */
    uint64_t bytes; /* from base on [byte] */
    uint64_t guard; /* on either side [byte] */
} mpl_slab;

typedef struct mpl_block {
    uint32_t slab;
    uint64_t offset, bytes; /* [byte] */
    uint32_t birth;         /* first step that touches it; MPL_NONE: none does */
    uint32_t death;         /* first step that no longer does */
    uint32_t over;          /* block whose place it takes in place at its birth, or MPL_NONE */
    mpl_value value;        /* a value in it, for messages; MPL_NONE: a workspace */
    mpl_op op;              /* whose workspace it is, or MPL_NONE */
    uint64_t sum;           /* --checked: hash of its contents after the last write */
} mpl_block;

/* Where some bytes lie. */
typedef struct mpl_spot {
    uint32_t slab; /* MPL_NONE: nowhere, as no operation reads them */
    uint32_t block;
    uint64_t offset; /* [byte] */
} mpl_spot;

/* State of a graph with control flow: its program, where its values lie during the run, and how far
 * each loop and case is. A value that moves is bound to its place at birth: a parameter when its
 * round begins, an output before the operation that makes it. */
typedef struct mpl_control {
    mpl_program *program;
    bool unshared; /* every value has memory of its own, and all hand-overs are copies */

    /* From mpl_places. If unshared, all but op_copied_bytes is empty. */
    uint32_t n_places;
    mpl_place *place;
    uint32_t *item;
    mpl_spot *known; /* [n_places] of buffers, pinned storage, final places after the last round */
    uint8_t *in_copied, *result_copied;
    uint8_t *nowhere;       /* [n_values] 1: an unread parameter; it lies where its source does */
    mpl_value *holder;      /* [n_values] the value that v lies with: itself or its root */
    uint32_t *value_place;  /* [n_values] of a holder; MPL_NONE: it never moves */
    uint32_t *member_begin; /* [n_values + 1] into member: values that lie with a moving holder */
    mpl_value *member;
    uint32_t *slot_begin; /* [n_values + 1] into slot: operands of v; all inputs, then outputs */
    uint32_t *slot;
    uint32_t *final_begin; /* [n_ops + 1] into final_item: final places of a `while` */
    uint32_t *final_item;

    mpl_spot *staging; /* [n_blocks] */
    mpl_spot *from;    /* results of all blocks: where carried ones lie at the end of a round */
    mpl_spot *to;      /* same index: where they must be */
    uint8_t *pending;  /* same index: still to be copied */

    uint8_t *open;    /* [n_ops] 1: inside this `while` or case */
    uint64_t *round;  /* [n_blocks] current round of a loop; after the loop: their number */
    uint64_t *limit;  /* [n_blocks] most rounds */
    uint64_t *fewest; /* [n_blocks] fewest rounds of a loop in this run; UINT64_MAX: none ended */
    uint32_t *branch; /* [n_ops] last branch of a case; MPL_NONE: none */
    mpl_needs *needs; /* NULL if nothing arrives or is checked */
    uint32_t *arrival_begin; /* [n_steps + 1] into arrival: what must have arrived before a step */
    uint32_t *arrival;       /* indices into arrival_value */
    uint32_t *arrival_of;    /* [n_values] arrival that v is, or is a view of; MPL_NONE */
    uint8_t *arrived;        /* [n_arrivals] */
    uint64_t *op_copied_bytes;                    /* [n_ops] moved by an operation inside a block */
    _Atomic uint64_t copied_bytes, carried_bytes; /* in this run */
    _Atomic uint64_t work; /* work in this run: block_work of each block begun */
    uint64_t *block_work;  /* [n_blocks] work of the block's own operations */
} mpl_control;

/* A strided operand that its operation receives as a contiguous copy. Sorted by operation. */
typedef struct mpl_staged {
    mpl_op op;
    uint32_t operand; /* an input; from n_in on an output */
    mpl_strided lay;  /* in memory order, with as few dims as possible; offset 0 */
    uint64_t size;    /* of an element [byte] */
    uint32_t slab, block;
    uint64_t offset;     /* in the slab [byte] */
    char *lies, *packed; /* set once there is memory */
} mpl_staged;

typedef struct mpl_witness mpl_witness;   /* private to checked_control.c */
typedef struct mpl_team mpl_team;         /* private to concurrent.c */
typedef struct mpl_census mpl_census;     /* private to checked_at_once.c */
typedef struct mpl_residues mpl_residues; /* private to residues.c */
typedef struct mpl_reside mpl_reside;     /* private to reside.c */

struct mpl_exec {
    mpl_ctx *ctx;
    const mpl_backend *backend;
    mpl_device *dev;
    const mpl_graph *g;
    mpl_exec_options options;
    mpl_op *order; /* [n_ops] */

    uint32_t n_pools, n_slabs; /* slab i < n_pools is the arena of pool i */
    uint32_t n_memories;       /* memories of pool 0; if it is spread, its arenas come first */
    mpl_slab *slab;
    uint32_t n_buffers; /* of the problem; they are the first blocks */
    uint32_t n_blocks;
    mpl_block *block;

    uint32_t *value_slab;   /* [n_values] */
    uint64_t *value_offset; /* [n_values] [byte] */
    uint32_t *value_block;  /* [n_values] MPL_NONE: weights, and values without bytes */
    uint32_t *value_blocks; /* [n_values] number of adjacent blocks from value_block; NULL: 1 */
    uint32_t *value_home;   /* [n_values] first block of value_block's family; NULL: value_block */
    mpl_strided *value_lay; /* [n_values] layout in the root; no dims: not strided; or NULL */
    uint32_t n_staged;
    size_t staged_cap;
    mpl_staged *staged;
    uint32_t *op_staged;          /* [n_ops + 1] into staged; NULL: nothing is staged */
    uint32_t *op_block;           /* [n_ops] of the workspace, or MPL_NONE */
    uint8_t *op_skipped;          /* [n_ops] 1: nothing to do, its outputs are already in place */
    const uint8_t *op_nothing;    /* [n_ops] of the map; NULL after mpl_exec_new */
    uint64_t *op_workspace_bytes; /* [n_ops] */
    mpl_prepared **op_prepared;   /* [n_ops] */
    const char **op_how;          /* [n_ops] */
    mpl_tensor *in, *out;         /* operands of all operations, as graph->op_in and op_out */
    mpl_op_call *call;            /* [n_ops] */

    /* Inputs and weights that the plan places. Their contents are copied from home memory at the
     * step that first needs them. */
    uint32_t n_arrivals;
    mpl_value *arrival_value;
    char **arrival_home;

    mpl_reside *reside;     /* operands move between steps; NULL: none does */
    mpl_residues *residues; /* NULL: rounds run operation by operation */
    mpl_control *control;   /* NULL: no control flow, step i is operation order[i] */

    /* --checked */
    uint32_t *by_place; /* [n_blocks] by slab, offset, id */
    char *stage;        /* host buffer for reading device memory */
    uint64_t weights_sum;
    mpl_witness *witness; /* of a graph with control flow */
    mpl_census *census;   /* of runs by several workers */

    mpl_sequence *sequence;  /* the whole run; NULL: operation by operation */
    uint32_t sequence_lanes; /* most_lanes it was made for; 0: the device's choice */

    uint32_t *op_stream;   /* [n_ops] of the plan; NULL: it has none */
    mpl_team *team;        /* NULL: one operation after the other */
    uint32_t n_workers;    /* 0: not set */
    int64_t concurrent_ns; /* of the last run */
    uint64_t *op_ns;       /* [n_ops] where a run in order writes times; NULL: nowhere */

    mpl_value *value_state; /* [n_values] the weight that v updates; v if it is updated; MPL_NONE */
    bool fresh;             /* updated weights still have their initial contents */
    bool parallel;          /* the plan is of another safety than serial */
    bool ran;
    uint64_t measured_bytes, copied_bytes, reordered_bytes, weight_bytes, pinned_bytes;
};

/* Slabs after the pools'. STATE: pinned weights that the graph updates. */
enum { MPL_SLAB_PINNED, MPL_SLAB_WEIGHTS, MPL_SLAB_STATE, MPL_SLAB_WORKSPACE, MPL_N_FIXED_SLABS };

/* Steps of a run without control flow: one for each operation, but at least one, as in its problem.
 * A graph without operations needs that step for its arrivals. */
static inline uint32_t mpl_exec_n_steps(const mpl_exec *exec)
{
    return exec->g->n_ops > 0 ? exec->g->n_ops : 1;
}
/* Operation of such a step; MPL_NONE: none. */
static inline mpl_op mpl_exec_op_of(const mpl_exec *exec, uint32_t step)
{
    return step < exec->g->n_ops ? exec->order[step] : MPL_NONE;
}

/* Whether the plan holds in whatever order the graph's edges allow. */
static inline bool mpl_exec_any_order(const mpl_exec *exec)
{
    return exec->parallel && exec->op_stream == NULL;
}

static inline char *mpl_exec_at(const mpl_exec *exec, uint32_t slab, uint64_t offset)
{
    return exec->slab[slab].base + offset;
}
static inline mpl_spot mpl_exec_spot(const mpl_exec *exec, mpl_value v)
{
    return (mpl_spot){exec->value_slab[v], exec->value_block[v], exec->value_offset[v]};
}
/* NULL: the value has no memory, as no operation reads it. */
static inline char *mpl_exec_value_at(const mpl_exec *exec, mpl_value v)
{
    return exec->value_slab[v] == MPL_NONE
               ? NULL
               : mpl_exec_at(exec, exec->value_slab[v], exec->value_offset[v]);
}

/* The value whose place `v` shares: its root, or `v` itself if the plan places it apart. */
static inline mpl_value mpl_exec_holder(const mpl_value_map *map, mpl_value v)
{
    mpl_value root = map->value_root[v];
    uint32_t n = map->value_buffers != NULL ? map->value_buffers[root] : 1;

    return map->value_buffer[v] - map->value_buffer[root] < n ? root : v;
}

/* In how many blocks v lies, if it lies in any. */
static inline uint32_t mpl_exec_n_blocks(const mpl_exec *exec, mpl_value v)
{
    return exec->value_blocks != NULL ? exec->value_blocks[v] : 1;
}

/* places.c: fills in exec->control from the map (NULL: unshared). _new is called before values have
 * places, _bind_slots after. */
mpl_status mpl_control_new(mpl_exec *exec, const mpl_value_map *map);
mpl_status mpl_control_bind_slots(mpl_exec *exec);
void mpl_control_free(mpl_ctx *ctx, mpl_control *control);
/* Whether the place of v depends on control flow. */
static inline bool mpl_control_moves(const mpl_exec *exec, mpl_value v)
{
    return exec->control != NULL && exec->control->value_place != NULL &&
           exec->control->value_place[exec->control->holder[v]] != MPL_NONE;
}
/* Where v must lie from now on. */
mpl_spot mpl_control_spot(const mpl_exec *exec, mpl_value v);
/* Notes the final places of `while` operation `op` at the end of a round that may be its last. */
void mpl_control_note_final(mpl_exec *exec, mpl_op op);
/* Binds v and all that lies with it to `spot`, in every operand that reads or writes them. */
void mpl_control_bind(mpl_exec *exec, mpl_value v, mpl_spot spot);

/* control.c: fills in block_work. MPL_ELIMIT: the outermost operations exceed the limit. */
mpl_status mpl_control_count_work(mpl_exec *exec);
/* control.c: runs steps [from, to) of the program. *apart_ns grows by the time of arrivals and
 * checks; NULL: everything has arrived, and nothing is checked. */
mpl_status mpl_control_run(mpl_exec *exec, uint32_t from, uint32_t to, int64_t *apart_ns);
/* Binds the moving outputs of `op` to their places. */
void mpl_control_bind_outputs(mpl_exec *exec, mpl_op op);
/* residues.c: makes exec->residues if the device captures, without checks or arrivals. */
mpl_status mpl_residues_new(mpl_exec *exec);
void mpl_residues_free(mpl_exec *exec);
/* Runs a round of block b by replay and sets *next to its end; does nothing if it cannot. */
mpl_status mpl_residues_round(mpl_exec *exec, uint32_t b, uint32_t *next);
/* The point in control->needs at which control arrives with `step`, from its current state. */
uint32_t mpl_control_point(const mpl_exec *exec, uint32_t step);
/* Whether result i of block b is copied if it is not in place already. */
bool mpl_control_result_copied(const mpl_exec *exec, uint32_t b, uint32_t i);
/* Before a run. */
void mpl_control_reset(mpl_exec *exec);
/* Lists what may have to arrive before each step: values that it reads and needs. */
mpl_status mpl_control_list_arrivals(mpl_exec *exec);

/* stage.c: fills in value_lay from the map. MPL_EINVALID: a value reaches outside its root. */
mpl_status mpl_stage_values(mpl_exec *exec, const mpl_value_map *map);
uint64_t mpl_stage_offset(const mpl_exec *exec, mpl_value v); /* in its root [byte] */
/* Prepares an operation, and stages operands whose strides the backend does not support. _place
 * allots their memory, _bind sets its addresses. */
mpl_status mpl_stage_prepare(mpl_exec *exec, mpl_op op);
mpl_status mpl_stage_place(mpl_exec *exec, uint32_t slab);
void mpl_stage_bind(mpl_exec *exec);
mpl_status mpl_stage_run(mpl_exec *exec, mpl_op op);
/* Block of staged operand i of an operation; false after the last. */
static inline bool mpl_stage_block(const mpl_exec *exec, mpl_op op, uint32_t i, uint32_t *block)
{
    if (exec->op_staged == NULL || i >= exec->op_staged[op + 1] - exec->op_staged[op])
        return false;
    *block = exec->staged[exec->op_staged[op] + i].block;
    return true;
}

/* exec_layout.c: slab, offset and block of each value, and the slabs' sizes. p, map and plan are
 * NULL for unshared values. MPL_EINVALID: the plan does not fit the graph. */
mpl_status mpl_layout_values(mpl_exec *exec, const mpl_problem *p, const mpl_value_map *map,
                             const mpl_plan *plan);
/* The same for workspaces, once op_workspace_bytes is known. */
mpl_status mpl_layout_workspaces(mpl_exec *exec, const mpl_value_map *map);
/* Whether an operation touches its operands' blocks. A view at its root's place does not, unless it
 * took another buffer's place in place: that buffer ends with it. */
bool mpl_layout_touches(const mpl_exec *exec, mpl_op op);
/* Calls touch() for each block that the operation of a step touches; one may come repeatedly. */
typedef void mpl_touch(mpl_exec *exec, uint32_t block, uint32_t step);
void mpl_layout_each_touch(mpl_exec *exec, uint32_t step, mpl_touch *touch);
/* Birth, death and in-place partner of each block, without control flow. */
void mpl_layout_lifetimes(mpl_exec *exec, const mpl_problem *p);

/* exec.c: whether output 0 of `op` needs no write: it is a view that lies where its input does. */
bool mpl_exec_hands_on(const mpl_exec *exec, mpl_op op);
/* exec.c: before a run, resets updated weights unless they carry over between runs. */
mpl_status mpl_exec_renew(mpl_exec *exec);
/* exec.c: _run_op runs one operation. _arrive_one and _arrive_all copy in inputs and weights that
 * the plan places; all at once is safe only under parallel. */
mpl_status mpl_exec_run_op(mpl_exec *exec, mpl_op op);
mpl_status mpl_exec_arrive_one(mpl_exec *exec, uint32_t arrival);
mpl_status mpl_exec_arrive_all(mpl_exec *exec);

/* concurrent.c: one operation with all its blocks; apart_ns as in mpl_control_run. */
mpl_status mpl_exec_run_unit(mpl_exec *exec, mpl_op op, int64_t *apart_ns);
/* The graph once, by the team's workers. NULL is allowed to be freed. */
mpl_status mpl_team_run(mpl_team *team, int64_t *ns);
void mpl_team_free(mpl_team *team);

/* exec_ok.c: mpl_assert_ok's predicate before a run: all values and blocks are within their slabs.
 * At level 3, for small graphs: the order respects the graph. */
bool mpl_exec_ok(const mpl_exec *exec);

/* reside.c: the moves before a step; bytes moved in this run, or the last one. */
mpl_status mpl_reside_before(mpl_exec *exec, uint32_t step);
uint64_t mpl_reside_moved(const mpl_exec *exec);
void mpl_reside_free(mpl_ctx *ctx, mpl_reside *reside);

/* weights.c: the contents of a weight, passed to `sink` in pieces from its start. */
typedef mpl_status mpl_weight_sink(void *arg, mpl_value v, uint64_t offset, const void *data,
                                   uint64_t bytes);
mpl_status mpl_weights_make(const mpl_graph *g, const mpl_exec_options *options, mpl_value v,
                            mpl_weight_sink *sink, void *arg);

/* checked.c: around one run, and around each step of it. */
#define MPL_GUARD_BYTES 4096
mpl_status mpl_checked_init(mpl_exec *exec);
mpl_status mpl_checked_begin(mpl_exec *exec);
mpl_status mpl_checked_before(mpl_exec *exec, uint32_t step);
mpl_status mpl_checked_after(mpl_exec *exec, uint32_t step);
mpl_status mpl_checked_end(mpl_exec *exec);
/* Parts shared with checked_control.c. `who` names the operation in messages. */
mpl_status mpl_checked_sum(mpl_exec *exec, const char *at, uint64_t bytes, uint64_t *out);
mpl_status mpl_checked_fill(mpl_exec *exec, uint32_t slab, uint64_t from, uint64_t to);
mpl_status mpl_checked_dead(mpl_exec *exec, uint32_t slab, uint64_t from, uint64_t to,
                            uint32_t step, const char *who);
mpl_status mpl_checked_guards(mpl_exec *exec, uint32_t step, const char *who);
const char *mpl_checked_slab(const mpl_exec *exec, uint32_t slab, char text[32]);
bool mpl_checked_is_weights(const mpl_exec *exec, uint32_t slab);
/* Bytes of block `id`, which ends with this step, that another block took over in place. Only the
 * bytes after them are dead. */
uint64_t mpl_checked_inherited(const mpl_exec *exec, uint32_t step, uint32_t id);
/* After a run by several workers: nothing was written where no block is alive at its end. */
mpl_status mpl_checked_rest(mpl_exec *exec);
enum { MPL_STAGE_BYTES = 1 << 16 }; /* of exec->stage */

/* checked_at_once.c: of a graph without control flow; _run runs one operation, on any thread. */
mpl_status mpl_census_new(mpl_exec *exec);
void mpl_census_free(mpl_ctx *ctx, mpl_census *census);
mpl_status mpl_census_begin(mpl_exec *exec); /* before a run, after arrivals */
mpl_status mpl_census_run(mpl_exec *exec, mpl_op op, uint32_t step);

/* checked_control.c: around each step of a graph with control flow; `next` is the step that
 * follows. mpl_witness_wrote notes a write by control flow itself in this step; without --checked
 * it does nothing. */
mpl_status mpl_witness_new(mpl_exec *exec, const mpl_problem *p);
void mpl_witness_free(mpl_ctx *ctx, mpl_witness *witness);
void mpl_witness_reset(mpl_exec *exec); /* before a run */
mpl_status mpl_witness_before(mpl_exec *exec, uint32_t step);
mpl_status mpl_witness_wrote(mpl_exec *exec, mpl_spot spot, uint64_t bytes);
mpl_status mpl_witness_after(mpl_exec *exec, uint32_t step, uint32_t next);
