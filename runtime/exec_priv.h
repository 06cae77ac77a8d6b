/* exec_priv.h -- what a bound graph consists of; shared by exec.c, concurrent.c, layout.c, weights.c and
 * checked.c.
 *
 * A slab is one memory of the device: the arena of each pool, then the pinned values, the weights, and
 * workspaces that the plan does not place. A block is a range of a slab that lives as one: a buffer of the
 * plan, or the storage of a pinned or unshared value. Weights have no blocks: nothing may ever write to
 * them. */
#ifndef MPL_EXEC_PRIV_H
#define MPL_EXEC_PRIV_H

#include "runtime/exec.h"

typedef struct mpl_slab {
    void *memory;   /* as allocated; NULL: not yet */
    char *base;     /* of the first byte that values may use: behind the guard where there is one */
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
    uint32_t n_blocks;
    mpl_block *block;

    uint32_t *value_slab;         /* [n_values] */
    uint64_t *value_offset;       /* [n_values] [byte] */
    uint32_t *value_block;        /* [n_values] MPL_NONE: weights, and values without bytes */
    uint32_t *op_block;           /* [n_ops] of the workspace, or MPL_NONE */
    uint8_t *op_skipped;          /* [n_ops] 1: a view at its root's place, nothing to do */
    uint64_t *op_workspace_bytes; /* [n_ops] */
    mpl_prepared **op_prepared;   /* [n_ops] */
    const char **op_how;          /* [n_ops] */
    mpl_tensor *in, *out;         /* operands of all operations, as graph->op_in and op_out */
    mpl_op_call *call;            /* [n_ops] */

    /* Inputs and weights that the plan places: their contents come from home, at the step that first needs
     * them. */
    uint32_t n_arrivals;
    mpl_value *arrival_value;
    char **arrival_home;

    /* --checked */
    uint32_t *by_place; /* [n_blocks] by slab, offset, id */
    char *stage;        /* for looking at device memory */
    uint64_t weights_sum;

    mpl_sequence *sequence;  /* the whole run, where the backend takes it so; NULL: operation by operation */
    uint32_t sequence_lanes; /* operations at the same time that it was made for; 0: the device's choice */

    bool parallel; /* the plan is safe in every execution */
    bool ran;
    uint64_t measured_bytes, copied_bytes, weight_bytes, pinned_bytes;
};

/* Slabs behind the pools'. */
enum { MPL_SLAB_PINNED, MPL_SLAB_WEIGHTS, MPL_SLAB_WORKSPACE, MPL_N_FIXED_SLABS };

static inline char *mpl_exec_at(const mpl_exec *exec, uint32_t slab, uint64_t offset)
{
    return exec->slab[slab].base + offset;
}
static inline char *mpl_exec_value_at(const mpl_exec *exec, mpl_value v)
{
    return mpl_exec_at(exec, exec->value_slab[v], exec->value_offset[v]);
}

/* layout.c: a slab, offset and block for each value, and the sizes of the slabs. MPL_EINVALID: the plan
 * does not fit the graph. p, map, plan NULL: each value alone. */
mpl_status mpl_layout_values(mpl_exec *exec, const mpl_problem *p, const mpl_value_map *map,
                             const mpl_plan *plan);
/* The same for the workspaces, once op_workspace_bytes is known. */
mpl_status mpl_layout_workspaces(mpl_exec *exec, const mpl_value_map *map);
/* Whether an operation touches its operands' blocks: a view at its root's place does not, but where it
 * took the place of another buffer in place, that one ends with it. */
bool mpl_layout_touches(const mpl_exec *exec, mpl_op op);
/* Birth, death and in-place partner of each block, from what each step touches. */
void mpl_layout_lifetimes(mpl_exec *exec, const mpl_problem *p);

/* exec.c: one operation; contents of all inputs and weights that the plan places (safe at once under
 * parallel only). */
mpl_status mpl_exec_run_op(mpl_exec *exec, mpl_op op);
mpl_status mpl_exec_arrive_all(mpl_exec *exec);
/* exec.c: the whole run at once, with at most `lanes` operations at the same time (0: the device's choice); only where
 * mpl_exec_takes_whole. */
bool mpl_exec_takes_whole(const mpl_exec *exec);
mpl_status mpl_exec_run_whole(mpl_exec *exec, uint32_t lanes, int64_t *ns);

/* weights.c: the contents of a weight, written to `sink` in pieces from its start. */
typedef mpl_status mpl_weight_sink(void *arg, mpl_value v, uint64_t offset, const void *data, uint64_t bytes);
mpl_status mpl_weights_make(const mpl_graph *g, const mpl_exec_options *options, mpl_value v,
                            mpl_weight_sink *sink, void *arg);

/* checked.c: around one run, and around each step of it. */
#define MPL_GUARD_BYTES 4096
mpl_status mpl_checked_init(mpl_exec *exec);
mpl_status mpl_checked_begin(mpl_exec *exec);
mpl_status mpl_checked_before(mpl_exec *exec, uint32_t step);
mpl_status mpl_checked_after(mpl_exec *exec, uint32_t step);
mpl_status mpl_checked_end(mpl_exec *exec);

#endif
