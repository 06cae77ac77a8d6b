/* exec_priv.h -- what a bound graph consists of; shared by exec.c, control.c, places.c,
 * concurrent.c, exec_layout.c, weights.c and checked.c.
 *
 * A slab is one memory of the device: the arena of each pool, then the pinned values, the weights,
 * and workspaces that the plan does not place. A block is a range of a slab that lives as one: a
 * buffer of the plan, or the storage of a pinned or unshared value. Weights have no blocks: nothing
 * may ever write to them. */
#ifndef MPL_EXEC_PRIV_H
#define MPL_EXEC_PRIV_H

#include "runtime/exec.h"
#include "runtime/exec/needs.h"

#include <stdatomic.h>

typedef struct mpl_slab {
    void *memory;   /* as allocated; NULL: not yet */
    char *base;     /* the first byte that values may use: after the guard where there is one */
    uint64_t bytes; /* from base on [byte] */
    uint64_t guard; /* on either side [byte] */
} mpl_slab;

typedef struct mpl_block {
    uint32_t slab;
    uint64_t offset, bytes; /* [byte] */
    uint32_t birth;         /* first step that touches it; MPL_NONE: none does */
    uint32_t death;         /* first step that no longer does */
    uint32_t over;          /* block whose place it takes in place at its birth, or MPL_NONE */
    mpl_value value;        /* one that lies in it, for messages; MPL_NONE: a workspace */
    mpl_op op;              /* whose workspace it is, or MPL_NONE */
    uint64_t sum;           /* --checked: of its contents after the last step that wrote to it */
} mpl_block;

/* Where some bytes lie. */
typedef struct mpl_spot {
    uint32_t slab; /* MPL_NONE: nowhere, as no operation reads them */
    uint32_t block;
    uint64_t offset; /* [byte] */
} mpl_spot;

/* A graph with control flow: its program, where its values lie as it runs, and how far each loop
 * and case is. A value that moves is bound to its place when it is born: a parameter when its round
 * begins, an output before what makes it. */
typedef struct mpl_control {
    mpl_program *program;
    bool unshared; /* every value has memory of its own, all is copied */

    /* Copies of mpl_places, and what follows from it. All but op_copied_bytes empty when
     * unshared. */
    uint32_t n_places;
    mpl_place *place;
    uint32_t *item;
    mpl_spot *known; /* [n_places] of a buffer, pinned storage, or a final place after its loop's
                        last round */
    uint8_t *in_copied, *result_copied;
    uint8_t *nowhere; /* [n_values] a parameter that no operation reads: it is where that is that it
                         takes over */
    mpl_value *holder;      /* [n_values] the value that v lies with: itself, or its root */
    uint32_t *value_place;  /* [n_values] of a holder; MPL_NONE: it never moves */
    uint32_t *member_begin; /* [n_values + 1] into member: the values that lie with a holder that
                               moves */
    mpl_value *member;
    uint32_t *slot_begin; /* [n_values + 1] into slot: the operands that they are; outputs after
                             all inputs */
    uint32_t *slot;
    uint32_t *final_begin; /* [n_ops + 1] into final_item: final places of a `while` */
    uint32_t *final_item;

    mpl_spot *staging; /* [n_blocks] */
    mpl_spot *from;    /* results of all blocks: where those carried are, as a round ends */
    mpl_spot *to;      /* the same: where they have to be */
    uint8_t *pending;  /* the same: still to be copied */

    uint8_t *open;    /* [n_ops] a `while` or case that was entered and not left */
    uint64_t *round;  /* [n_blocks] the round that a loop is in; after the loop: how many there were
                       */
    uint64_t *limit;  /* [n_blocks] rounds that it may have */
    uint64_t *fewest; /* [n_blocks] rounds of the loop that ended earliest in this run; UINT64_MAX:
                         none ended */
    uint32_t *branch; /* [n_ops] that a case took last; MPL_NONE: none */
    mpl_needs *needs; /* where something arrives, or is checked; else NULL */
    uint32_t *arrival_begin; /* [n_steps + 1] into arrival: what has to arrive before a step at the
                                latest */
    uint32_t *arrival;       /* indices into arrival_value */
    uint32_t *arrival_of; /* [n_values] index of what arrives, or that it is a view of; MPL_NONE */
    uint8_t *arrived;     /* [n_arrivals] */
    uint64_t *op_copied_bytes; /* [n_ops] of an operation in a block, that moves bytes as they are
                                */
    _Atomic uint64_t copied_bytes, carried_bytes; /* in this run */
    _Atomic uint64_t work; /* the same, by block_work of each block that was begun */
    uint64_t *block_work;  /* [n_blocks] of the operations that stand in it */
} mpl_control;

/* An operand that lies strided, and is handed to its operation in one piece. In the order of the
 * operations. */
typedef struct mpl_staged {
    mpl_op op;
    uint32_t operand; /* an input; from n_in on an output */
    mpl_strided lay;  /* in the order of the bytes, as few dims as can be; offset 0 */
    uint64_t size;    /* of an element [byte] */
    uint32_t slab, block;
    uint64_t offset;     /* in the slab [byte] */
    char *lies, *packed; /* once there is memory */
} mpl_staged;

typedef struct mpl_witness mpl_witness;   /* private to checked_control.c */
typedef struct mpl_residues mpl_residues; /* private to residues.c */

struct mpl_exec {
    mpl_ctx *ctx;
    const mpl_backend *backend;
    mpl_device *dev;
    const mpl_graph *g;
    mpl_exec_options options;
    mpl_op *order; /* [n_ops] */

    uint32_t n_pools, n_slabs; /* slab i < n_pools is the arena of pool i */
    uint32_t n_memories;       /* of pool 0: where it is spread, its arenas come first */
    mpl_slab *slab;
    uint32_t n_buffers; /* of the problem: the first blocks */
    uint32_t n_blocks;
    mpl_block *block;

    uint32_t *value_slab;   /* [n_values] */
    uint64_t *value_offset; /* [n_values] [byte] */
    uint32_t *value_block;  /* [n_values] MPL_NONE: weights, and values without bytes */
    uint32_t *value_blocks; /* [n_values] in how many blocks it lies, from value_block on, end to
                               end; NULL: one each */
    uint32_t *value_home; /* [n_values] the first block of the family that value_block is of; NULL:
                             value_block */
    mpl_strided *value_lay; /* [n_values] strided values: their elements of the root's memory;
                               others: no dims. NULL: none is */
    uint32_t n_staged;
    size_t staged_cap;
    mpl_staged *staged;
    uint32_t *op_staged; /* [n_ops + 1] into staged; NULL: there is none */
    uint32_t *op_block;  /* [n_ops] of the workspace, or MPL_NONE */
    uint8_t *op_skipped; /* [n_ops] 1: its outputs lie where it would put them, nothing to do */
    const uint8_t *op_nothing;    /* [n_ops] what the map says of that, while the executor is made;
                                     else NULL */
    uint64_t *op_workspace_bytes; /* [n_ops] */
    mpl_prepared **op_prepared;   /* [n_ops] */
    const char **op_how;          /* [n_ops] */
    mpl_tensor *in, *out;         /* operands of all operations, as graph->op_in and op_out */
    mpl_op_call *call;            /* [n_ops] */

    /* Inputs and weights that the plan places: their contents come from home, at the step that
     * first needs them. */
    uint32_t n_arrivals;
    mpl_value *arrival_value;
    char **arrival_home;

    mpl_residues *residues; /* NULL: rounds are run operation by operation */
    mpl_control *control;   /* NULL: no control flow, step i is operation order[i] */

    /* --checked */
    uint32_t *by_place; /* [n_blocks] by slab, offset, id */
    char *stage;        /* for looking at device memory */
    uint64_t weights_sum;
    mpl_witness *witness; /* of a graph with control flow */

    mpl_sequence *sequence;  /* the whole run, where the backend takes it so; NULL: operation by
                                operation */
    uint32_t sequence_lanes; /* operations at the same time that it was made for; 0: the device's
                                choice */

    mpl_value *value_state; /* [n_values] the weight that a value updates; itself if it is updated;
                               MPL_NONE: neither */
    bool fresh;             /* state is as it was at first */
    bool parallel;          /* the plan is safe in every execution */
    bool ran;
    uint64_t measured_bytes, copied_bytes, reordered_bytes, weight_bytes, pinned_bytes;
};

/* Slabs after the pools'. STATE: weights that the graph updates, where they are pinned. */
enum { MPL_SLAB_PINNED, MPL_SLAB_WEIGHTS, MPL_SLAB_STATE, MPL_SLAB_WORKSPACE, MPL_N_FIXED_SLABS };

/* Steps of a run without control flow: one an operation. A graph without operations has one all the
 * same, as its problem does: what it hands on arrives then. */
static inline uint32_t mpl_exec_n_steps(const mpl_exec *exec)
{
    return exec->g->n_ops > 0 ? exec->g->n_ops : 1;
}
/* What such a step runs; MPL_NONE: nothing. */
static inline mpl_op mpl_exec_op_of(const mpl_exec *exec, uint32_t step)
{
    return step < exec->g->n_ops ? exec->order[step] : MPL_NONE;
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

/* The value whose place `v` shares: the root that holds its bytes, but `v` itself where the plan
 * places only the root. */
static inline mpl_value mpl_exec_holder(const mpl_value_map *map, mpl_value v)
{
    mpl_value root = map->value_root[v];
    uint32_t n = map->value_buffers != NULL ? map->value_buffers[root] : 1;

    return map->value_buffer[v] - map->value_buffer[root] < n ? root : v;
}

/* In how many blocks v lies, where it lies in one at all. */
static inline uint32_t mpl_exec_n_blocks(const mpl_exec *exec, mpl_value v)
{
    return exec->value_blocks != NULL ? exec->value_blocks[v] : 1;
}

/* places.c: what exec->control says of places, from the map (NULL: unshared), before and after the
 * values have theirs. */
mpl_status mpl_control_new(mpl_exec *exec, const mpl_value_map *map);
mpl_status mpl_control_bind_slots(mpl_exec *exec);
void mpl_control_free(mpl_ctx *ctx, mpl_control *control);
/* Whether the place of v depends on control flow. */
static inline bool mpl_control_moves(const mpl_exec *exec, mpl_value v)
{
    return exec->control != NULL && exec->control->value_place != NULL &&
           exec->control->value_place[exec->control->holder[v]] != MPL_NONE;
}
/* Where v has to lie from now on: as control flow says, or for good. */
mpl_spot mpl_control_spot(const mpl_exec *exec, mpl_value v);
/* Notes where the final places of `while` operation `op` are, as a round ends that may be its
 * last. */
void mpl_control_note_final(mpl_exec *exec, mpl_op op);
/* v, with all that lies with it, is at `spot`: every operand that reads or writes it is told. */
void mpl_control_bind(mpl_exec *exec, mpl_value v, mpl_spot spot);

/* control.c: block_work, and whether the outermost operations alone pass the limit (MPL_ELIMIT).
 * Any graph. */
mpl_status mpl_control_count_work(mpl_exec *exec);
/* control.c: steps [from, to) of the program of a graph with control flow. *apart_ns grows by the
 * time that arrivals and checks take; NULL: there are none, all has arrived. */
mpl_status mpl_control_run(mpl_exec *exec, uint32_t from, uint32_t to, int64_t *apart_ns);
/* Puts what `op` makes, and moves, where it has to lie from now on. */
void mpl_control_bind_outputs(mpl_exec *exec, mpl_op op);
/* residues.c: rounds of loops that are replayed: exec->residues, where the device can and nothing
 * is checked or arrives. */
mpl_status mpl_residues_new(mpl_exec *exec);
void mpl_residues_free(mpl_exec *exec);
/* Round of block b, begun: puts it on the device as a whole, *next then being its end; nothing if
 * it cannot. */
mpl_status mpl_residues_round(mpl_exec *exec, uint32_t b, uint32_t *next);
/* What control->needs calls the point that control comes to with `step`, from where it is. */
uint32_t mpl_control_point(const mpl_exec *exec, uint32_t step);
/* Whether result i of block b is copied to where it goes, if that is elsewhere. */
bool mpl_control_result_copied(const mpl_exec *exec, uint32_t b, uint32_t i);
/* Before a run. */
void mpl_control_reset(mpl_exec *exec);
/* Lists what may have to arrive before which step: where something reads it, and it is needed. */
mpl_status mpl_control_list_arrivals(mpl_exec *exec);

/* stage.c: value_lay, from the map. MPL_EINVALID: a value reaches outside of its root. */
mpl_status mpl_stage_values(mpl_exec *exec, const mpl_value_map *map);
uint64_t mpl_stage_offset(const mpl_exec *exec, mpl_value v); /* of a strided value in its root's
                                                                 memory [byte] */
/* Makes an operation ready, staging what the backend cannot take as it lies; room for that, and
 * where it is. */
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

/* exec_layout.c: a slab, offset and block for each value, and the sizes of the slabs. MPL_EINVALID:
 * the plan does not fit the graph. p, map, plan NULL: each value alone. */
mpl_status mpl_layout_values(mpl_exec *exec, const mpl_problem *p, const mpl_value_map *map,
                             const mpl_plan *plan);
/* The same for the workspaces, once op_workspace_bytes is known. */
mpl_status mpl_layout_workspaces(mpl_exec *exec, const mpl_value_map *map);
/* Whether an operation touches its operands' blocks: a view at its root's place does not, but where
 * it took the place of another buffer in place, that one ends with it. */
bool mpl_layout_touches(const mpl_exec *exec, mpl_op op);
/* Birth, death and in-place partner of each block, from what each step touches. Not under control
 * flow. */
void mpl_layout_lifetimes(mpl_exec *exec, const mpl_problem *p);

/* exec.c: whether output 0 of `op` is there before it runs: it is a view, and lies where its input
 * does. */
bool mpl_exec_hands_on(const mpl_exec *exec, mpl_op op);
/* exec.c: state as it was at first, unless it is carried on from run to run. Before a run. */
mpl_status mpl_exec_renew(mpl_exec *exec);
/* exec.c: one operation; contents of all inputs and weights that the plan places (safe at once
 * under parallel only). */
mpl_status mpl_exec_run_op(mpl_exec *exec, mpl_op op);
mpl_status mpl_exec_arrive_one(mpl_exec *exec, uint32_t arrival);
mpl_status mpl_exec_arrive_all(mpl_exec *exec);
/* exec.c: what is carried on from run to run, but lies in an arena, goes home. After a run. */
mpl_status mpl_exec_depart(mpl_exec *exec);
/* exec.c: the whole run at once, with at most `lanes` operations at the same time (0: the device's
 * choice); only where mpl_exec_takes_whole. */
bool mpl_exec_takes_whole(const mpl_exec *exec);
mpl_status mpl_exec_run_whole(mpl_exec *exec, uint32_t lanes, int64_t *ns);

/* exec_ok.c: mpl_assert_ok's predicate before a run: all values and blocks are within their slabs;
 * at level 3, of small graphs, the order respects the graph. */
bool mpl_exec_ok(const mpl_exec *exec);

/* weights.c: the contents of a weight, written to `sink` in pieces from its start. */
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
/* Pieces of it that checked_control.c uses as well. `who` names the operation in messages. */
mpl_status mpl_checked_sum(mpl_exec *exec, const char *at, uint64_t bytes, uint64_t *out);
mpl_status mpl_checked_fill(mpl_exec *exec, uint32_t slab, uint64_t from, uint64_t to);
mpl_status mpl_checked_dead(mpl_exec *exec, uint32_t slab, uint64_t from, uint64_t to,
                            uint32_t step, const char *who);
mpl_status mpl_checked_guards(mpl_exec *exec, uint32_t step, const char *who);
const char *mpl_checked_slab(const mpl_exec *exec, uint32_t slab, char text[32]);
bool mpl_checked_is_weights(const mpl_exec *exec, uint32_t slab);

/* checked_control.c: around each step of a graph with control flow; `next` is where control goes.
 * mpl_witness_wrote: control flow itself wrote there in this step (nothing without --checked). */
mpl_status mpl_witness_new(mpl_exec *exec, const mpl_problem *p);
void mpl_witness_free(mpl_ctx *ctx, mpl_witness *witness);
void mpl_witness_reset(mpl_exec *exec); /* before a run */
mpl_status mpl_witness_before(mpl_exec *exec, uint32_t step);
mpl_status mpl_witness_wrote(mpl_exec *exec, mpl_spot spot, uint64_t bytes);
mpl_status mpl_witness_after(mpl_exec *exec, uint32_t step, uint32_t next);

#endif
