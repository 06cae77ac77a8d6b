/* tape_priv.h -- what a tape consists of; shared by the files of runtime/tape/. */
#pragma once

#include "runtime/tape/tape.h"

/* One operation on operands of given forms, prepared: a graph of that operation alone, whose values
 * are the operands in turn, then the outputs. */
typedef struct mpl_kernel {
    uint64_t hash;
    mpl_graph *g;
    mpl_prepared *prepared;
    uint64_t workspace_bytes;
    mpl_tensor *in, *out; /* operands; data is set before each run */
    uint64_t *weight;     /* [n_in] handle of a weight that does not change; 0: any operand */
    uint32_t n_held;      /* by traces */
    uint64_t used;        /* the last step that ran it */
    struct mpl_kernel *next;
} mpl_kernel;

/* Some bytes, shared by the tensors that are views of each other. */
typedef enum mpl_store_kind {
    MPL_STORE_OWN,    /* an input or weight */
    MPL_STORE_ONLINE, /* the allocator's */
    MPL_STORE_PLANNED /* in the arena */
} mpl_store_kind;

typedef struct mpl_store {
    mpl_store_kind kind;
    uint64_t bytes; /* [byte] */
    char *at;
    uint32_t n_tensors; /* 0: spare */
    uint32_t block;     /* of the allocator; of a spare store: the next one */
    uint32_t traced;    /* in the trace of this step; MPL_NONE: it was made before */
    uint64_t step;      /* the last step that updated it */
} mpl_store;

typedef struct mpl_slot {
    uint32_t generation; /* of its handle; changes with the last release */
    uint32_t n_refs;     /* 0: spare */
    mpl_type type;
    mpl_shape shape;
    uint32_t store;  /* of a spare slot: the next one */
    uint32_t traced; /* value in the trace of this step; MPL_NONE */
    bool is_weight, changes;
    const char *name; /* the tape's; NULL: none */
} mpl_slot;

/* A value of a trace. Values are numbered as they appear: operands from outside when they are first
 * used, then the operation's outputs. */
typedef struct mpl_traced {
    mpl_type type;
    mpl_shape shape;
    uint32_t store;    /* in the trace; MPL_NONE: from outside, or a view of such */
    mpl_handle weight; /* 0: no weight */
    bool made;         /* by an operation; otherwise from outside */
    bool read;
    uint32_t root;    /* the value from outside that it is, or is a view of; MPL_NONE: neither */
    const char *name; /* the tape's; NULL: none */
} mpl_traced;

/* Memory that the plan of a trace places. Steps are the trace's operations. */
typedef struct mpl_traced_store {
    uint64_t bytes;
    uint32_t birth, death; /* MPL_NONE: alive at the end, so not planned */
    bool taken;            /* the operation before `death` released it itself */
    uint64_t offset;       /* in the arena [byte] */
} mpl_traced_store;

typedef struct mpl_traced_op {
    mpl_kernel *kernel;
    uint32_t in, out;  /* first operand and output, in operand[] and result[] */
    uint32_t released; /* values released before it, in release[] */
    uint64_t offset;   /* of the workspace [byte] */
} mpl_traced_op;

typedef struct mpl_trace {
    uint32_t n_ops, n_values, n_stores, n_operands, n_results, n_releases;
    size_t op_room, value_room, store_room, operand_room, last_room, result_room, release_room;
    mpl_traced_op *op;
    mpl_traced *value;
    mpl_traced_store *store;
    uint32_t *operand; /* values; MPL_NONE: omitted */
    uint8_t *last;     /* [n_operands] */
    uint32_t *result;
    uint32_t *release;

    /* Once it is kept: */
    mpl_graph *graph;
    uint64_t key, hash; /* of the calls, of the graph */
    uint64_t plan_bytes, bound_bytes, plan_bound;
    mpl_claim claim;
    uint64_t n_used;
} mpl_trace;

typedef enum mpl_tape_mode { MPL_TAPE_START, MPL_TAPE_EAGER, MPL_TAPE_PLANNED } mpl_tape_mode;

struct mpl_tape {
    mpl_ctx *ctx;
    mpl_tape_options options;
    mpl_online *online;
    char *range;          /* the allocator's addresses; NULL: they are real */
    uint64_t range_bytes; /* [byte] */
    void *arena;
    uint64_t arena_bytes; /* [byte] */
    char *nothing;        /* what tensors without bytes point to */

    mpl_kernel *kernel[1024];            /* by hash */
    uint32_t n_slots, n_stores, n_names; /* slot 0 is that of no handle */
    size_t slot_room, store_room, name_room;
    mpl_slot *slot;
    mpl_store *store;
    char **name;
    uint32_t spare_slot, spare_store; /* MPL_NONE: none */

    mpl_tape_mode mode;
    bool forgoes;
    uint64_t step;
    mpl_trace trace; /* of an eager step */
    /* In a planned step: the trace that is followed, and the position reached in it. */
    mpl_trace *plan;
    uint32_t at_op, at_release, at_value;
    bool diverged;

    uint32_t n_kept;
    mpl_trace **kept; /* [n_plans + 1] the least recently used first */
    mpl_tape_facts facts;
};

static inline uint32_t mpl_kernel_n_in(const mpl_kernel *kernel)
{
    return kernel->g->op_in_begin[1];
}
static inline uint32_t mpl_kernel_n_out(const mpl_kernel *kernel)
{
    return kernel->g->op_out_begin[1];
}
static inline bool mpl_tape_checks(const mpl_tape *tape)
{
    return tape->options.checked || MPL_CHECK >= 2;
}

/* tape.c: from here on the step runs eagerly; tensors that are alive leave the arena. */
mpl_status mpl_tape_diverge(mpl_tape *tape);

/* kernel.c */
/* The kernel for a call whose handles are valid; made if there is none. MPL_EINPUT: the operands do
 * not fit. */
mpl_status mpl_kernel_get(mpl_tape *tape, const mpl_tape_call *call, mpl_kernel **out);
/* Whether the kernel is that for the call. */
bool mpl_kernel_fits(const mpl_tape *tape, const mpl_kernel *kernel, const mpl_tape_call *call);
/* Output 0 is the bytes of operand 0. */
bool mpl_kernel_is_view(const mpl_kernel *kernel);
/* The operand whose storage output i takes because it is its update; MPL_NONE: none. */
uint32_t mpl_kernel_updated(const mpl_kernel *kernel, uint32_t i);
/* Frees kernels that no trace holds and that neither this step nor the one before ran; `all` of
 * them at the end. */
void mpl_kernels_sweep(mpl_tape *tape, bool all);

/* trace.c */
void mpl_trace_fini(mpl_ctx *ctx, mpl_trace *trace);
/* A hash of the calls and deaths that mpl_trace_equal compares. */
uint64_t mpl_trace_key(const mpl_trace *trace);
/* Whether two traces are the same calls, with the same deaths. */
bool mpl_trace_equal(const mpl_trace *a, const mpl_trace *b);
/* Copies what happened before operation n_ops, when n_values had appeared and n_releases died.
 * Stores that die later are alive. */
mpl_status mpl_trace_prefix(mpl_ctx *ctx, const mpl_trace *from, uint32_t n_ops, uint32_t n_values,
                            uint32_t n_releases, mpl_trace *out);
/* Makes the graph of a complete trace, and its hash. */
mpl_status mpl_trace_graph(mpl_tape *tape, mpl_trace *trace);
/* Plans it: offsets of stores and workspaces, bytes, bounds. */
mpl_status mpl_trace_plan(mpl_tape *tape, mpl_trace *trace);
