/* tape.h -- operations run at once, as a program calls them; what ran is planned for the next time.
 *
 * A step is what a program does between two calls of mpl_tape_end: an iteration. In a step that was
 * not met before, each result is allocated by an online allocator when it is made and given back
 * with its last reference. The step becomes a trace: an ordinary graph, and when each value died. A
 * trace is planned, verified and kept, with the kernels of its operations; of more than n_plans
 * traces, the least recently used one is dropped.
 *
 * When the first calls of a step are those of a kept trace, its plan is used: the calls still come
 * one by one, and each runs at once in the plan's arena, at the offsets that were planned. A call
 * or a release other than the trace's ends that: what is alive is copied out of the arena, and the
 * step goes on with the allocator, as a new trace. Nothing that the program sees depends on it.
 *
 * Values that a step leaves alive (an output, the state of a recurrence) never lie in the arena:
 * they come from the allocator in both cases, and are inputs of the steps that use them. One thread
 * at a time may use a tape. */
#pragma once

#include "planners/planner.h"
#include "runtime/backend.h"

typedef struct mpl_tape mpl_tape;

/* A reference to a tensor; 0: none. Never used again after its last release. */
typedef uint64_t mpl_handle;

typedef struct mpl_tape_options {
    const mpl_allocator *allocator;
    const mpl_backend *backend; /* one that computes in the host's memory */
    mpl_device *dev;            /* outlives the tape */
    const mpl_planner *planner; /* of traces; NULL: exact */
    uint64_t budget_ticks;      /* of one plan; 0: MPL_TAPE_TICKS */
    uint32_t n_plans;           /* traces kept; 0: none, every step is eager */
    bool checked;               /* poisons memory at birth and death; always in checked builds */
} mpl_tape_options;

#define MPL_TAPE_TICKS UINT64_C(20000000)

/* MPL_EINPUT: the backend has memory of its own. */
mpl_status mpl_tape_new(mpl_ctx *ctx, const mpl_tape_options *options, mpl_tape **out);
void mpl_tape_free(mpl_ctx *ctx, mpl_tape *tape); /* NULL is allowed; releases everything */

/* A tensor with memory of its own, beside allocator and arena, and contents copied from `data`.
 * name (may be NULL) is its name in traces. */
mpl_status mpl_tape_input(mpl_tape *tape, const char *name, mpl_type type, const mpl_shape *shape,
                          const void *data, mpl_handle *out);
/* The same for a weight, which traces know by its identity: another weight makes another trace.
 * changes: operations (sgd, ..) and mpl_tape_write may change its contents; a weight that does not
 * change may be packed once. */
mpl_status mpl_tape_weight(mpl_tape *tape, const char *name, mpl_type type, const mpl_shape *shape,
                           const void *data, bool changes, mpl_handle *out);
/* New contents of a weight that changes. MPL_EINPUT: it does not. */
mpl_status mpl_tape_write(mpl_tape *tape, mpl_handle weight, const void *data);

/* One operation. */
typedef struct mpl_tape_call {
    mpl_op_kind kind; /* no control flow: the program decides */
    uint32_t n_in;
    const mpl_handle *in; /* [n_in] 0: omitted */
    /* [n_in] 1: the call releases this reference, so that the plan of the trace may let the result
     * overwrite the operand; NULL: none. */
    const uint8_t *last;
    uint32_t n_attr;
    const mpl_attr *attr;
    uint32_t n_out;
    const uint8_t *omitted; /* [n_out] 1: optional output not wanted; NULL: all are */
} mpl_tape_call;

/* Runs it. out[n_out] receives references to the results (0: omitted). A view shares its operand's
 * memory; an update's result is the weight. MPL_EINPUT: the operands do not fit, a handle was
 * released, a second update of a weight in one step; then nothing has happened. MPL_EMEM,
 * MPL_ELIMIT: the allocator has no room. */
mpl_status mpl_tape_run(mpl_tape *tape, const mpl_tape_call *call, mpl_handle *out);
mpl_status mpl_tape_retain(mpl_tape *tape, mpl_handle handle); /* one more reference */
mpl_status mpl_tape_release(mpl_tape *tape, mpl_handle handle);
/* Copies the contents of a tensor to `data`. In a trace, what was read is an output. */
mpl_status mpl_tape_read(mpl_tape *tape, mpl_handle handle, void *data);
/* Type and dims of a tensor. */
mpl_status mpl_tape_form(mpl_tape *tape, mpl_handle handle, mpl_type *type, mpl_shape *shape);

/* Ends the step. A trace that was not met before is planned. On failure the trace is not kept;
 * where what is alive could not be copied out of the arena, the step goes on. */
mpl_status mpl_tape_end(mpl_tape *tape);
/* From the next step on: eager, even where there is a plan; such steps are not counted. */
void mpl_tape_forgo(mpl_tape *tape, bool plans);

/* A new allocator, which holds nothing. MPL_EINPUT: something is alive in the old one. */
mpl_status mpl_tape_reopen(mpl_tape *tape);

typedef struct mpl_tape_facts {
    mpl_online_facts online; /* of the allocator; sizes are rounded up to the alignment */
    uint64_t n_hits;         /* steps run wholly by their plan */
    uint64_t n_misses;       /* other steps */
    uint64_t n_diverged;     /* of these, steps that began by a plan */
    uint64_t n_evictions;    /* traces dropped, the least recently used each time */
    uint64_t n_traces;       /* traces planned */
    uint32_t n_plans;        /* kept now */
    uint64_t arena_bytes;    /* of the largest plan kept: all plans share the arena [byte] */
    uint32_t n_kernels;      /* operations prepared now */
} mpl_tape_facts;
mpl_tape_facts mpl_tape_facts_of(const mpl_tape *tape);

/* A trace that is kept. */
typedef struct mpl_trace_facts {
    const mpl_graph *graph; /* what ran; value names are those of inputs and weights */
    uint64_t hash;          /* of the graph */
    uint64_t plan_bytes;    /* verified [byte] */
    uint64_t bound_bytes;   /* peak of what is live, in-place pairs counted once [byte] */
    uint64_t plan_bound;    /* no plan needs less, as the planner proved [byte] */
    mpl_claim claim;
    uint64_t n_used; /* steps that ran by it */
} mpl_trace_facts;
/* Trace i of those kept, the least recently used first; false: there are fewer. */
bool mpl_tape_trace(const mpl_tape *tape, uint32_t i, mpl_trace_facts *facts);
