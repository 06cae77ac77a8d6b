/* backend.h -- the table of functions that a device fills in to run operations. A new backend is
 * one file and one line in backends.def.
 *
 * Nothing is allocated between prepare and release: primitives, workspaces and constants are ready
 * before the first run. "Not built", "no device" and "failed" are different errors. The
 * implementation of an operation is always named, and a run never changes its backend. */
#pragma once

#include "graphs/graph.h"
#include "planners/online/requests.h"

typedef struct mpl_device mpl_device;     /* private to each backend */
typedef struct mpl_prepared mpl_prepared; /* one prepared operation; private to each backend */

typedef struct mpl_sequence mpl_sequence; /* a whole prepared run; private to each backend */

typedef struct mpl_device_options {
    uint32_t n_threads; /* 0: the backend's choice; a GPU: number of streams */
    const char *params; /* "key=value,..", specific to the backend; NULL: none */
} mpl_device_options;

/* The calls of one run, in order. The arrays outlive the sequence. */
typedef struct mpl_sequence_spec {
    const mpl_graph *g;
    const mpl_op *order;           /* [n_ops] */
    const uint8_t *skipped;        /* [n_ops] 1: nothing to do */
    mpl_prepared *const *prepared; /* [n_ops] */
    const mpl_op_call *call;       /* [n_ops] */
    uint32_t most_lanes;           /* most operations at the same time; 0: the device's choice */
    bool as_it_stands; /* for sequence_put: has run once; captures the current operand addresses,
                          and its arrays need not outlive the call */
} mpl_sequence_spec;

/* How fast a device runs, and what limits it. Unknown figures are 0. */
typedef struct mpl_device_clocks {
    bool known;
    uint32_t core_mhz, core_most_mhz, memory_mhz, memory_most_mhz;
    uint32_t power_mw, power_most_mw, celsius;
    uint32_t state;     /* power state: 0 is the fastest */
    uint64_t throttled; /* the driver's bits for what holds the clocks down */
} mpl_device_clocks;

/* What a device reports of itself and of the runs so far. */
typedef struct mpl_device_facts {
    const char *about; /* device, driver, libraries and options in words; valid until close */
    const char *math; /* type of rounded operands of products: "f32" (not rounded), "tf32", "f16" */
    double tolerance; /* allowed relative difference of outputs from those of `ref` */
    uint64_t n_allocations;           /* allocations of device memory since it was opened */
    uint64_t n_while_running;         /* those inside runs: must be 0 */
    uint64_t used_before, used_after; /* in use around the last run, by its own count [byte] */
    uint64_t taken;           /* growth of that count for the arenas that exist now [byte] */
    uint64_t granularity;     /* an arena may take this much more or less [byte] */
    bool two_ways;            /* runs alternate, beginning call by call, then replayed as a whole */
    mpl_device_clocks clocks; /* after the last run */
} mpl_device_facts;

/* The `how` of operations that a backend's library lacks: the loops of mpl_eval. */
#define MPL_HOW_LOOPS "ref loops"
/* The `how` of a view that has memory of its own and is copied. */
#define MPL_HOW_COPY "copy"

typedef enum mpl_replay_mode {
    MPL_REPLAY_PLAIN, /* one device allocation for each buffer (cudaMalloc, cudaFree) */
    MPL_REPLAY_POOL   /* the driver's stream-ordered pool (cudaMallocAsync) */
} mpl_replay_mode;

typedef struct mpl_replay_facts {
    uint64_t peak_bytes; /* most device memory above the start, sampled after calls [byte] */
    int64_t ns;          /* time of the calls alone */
} mpl_replay_facts;

typedef struct mpl_backend {
    const char *name;   /* "ref", "cpu", "cuda" */
    const char *about;  /* one line, with the library and its version */
    const char *absent; /* why open is NULL; NULL if it is not */
    /* Why it cannot be opened on this machine, or NULL. Leaves no state that breaks a forked child.
     * The entry is NULL if `open` suffices. Call it through mpl_backend_absent. */
    const char *(*missing)(void);
    uint32_t align; /* alignment of every buffer [byte] */
    bool strided; /* operands of concats may be strided (copies are acceptable if not supported) */
    bool takes_params;       /* reads mpl_device_options.params */
    bool lays_channels_last; /* stores images as in graphs/ir/layout.h; false: row-major */
    mpl_status (*open)(mpl_ctx *ctx, const mpl_device_options *options, mpl_device **out);
    void (*close)(mpl_device *dev); /* NULL is allowed */
    /* Device memory for one pool. Zero bytes give a valid base. */
    mpl_status (*arena_new)(mpl_device *dev, uint64_t bytes, void **base);
    void (*arena_free)(mpl_device *dev, void *base, uint64_t bytes); /* base NULL is allowed */
    /* host to device */
    mpl_status (*upload)(mpl_device *dev, void *to, const void *from, uint64_t bytes);
    /* device to host */
    mpl_status (*download)(mpl_device *dev, void *to, const void *from, uint64_t bytes);
    mpl_status (*fill)(mpl_device *dev, void *at, uint8_t byte, uint64_t bytes);
    /* Copies between disjoint ranges in the order of run_op. NULL: it cannot run control flow. */
    mpl_status (*copy)(mpl_device *dev, void *to, const void *from, uint64_t bytes);
    /* Bytes of [base, base + bytes), a part of an arena, that are resident by now. */
    mpl_status (*resident)(mpl_device *dev, const void *base, uint64_t bytes, uint64_t *resident);
    /* Prepares operation `op` of `g`. *workspace_bytes: what run_op needs in call->workspace. *how
     * (may be NULL): its implementation ("jit:avx2", "ref loops", ..), valid until release. */
    mpl_status (*prepare)(mpl_device *dev, const mpl_graph *g, mpl_op op, mpl_prepared **out,
                          uint64_t *workspace_bytes, const char **how);
    /* The same for strided operands. stride[k]: an element step for each dim of operand k, inputs
     * before outputs; NULL: contiguous. The result is bit-identical to that of prepare. *out =
     * NULL: not supported for this operation; entry NULL: for none. */
    mpl_status (*prepare_strided)(mpl_device *dev, const mpl_graph *g, mpl_op op,
                                  const int64_t *const *stride, mpl_prepared **out,
                                  uint64_t *workspace_bytes, const char **how);
    void (*release)(mpl_device *dev, mpl_prepared *prepared); /* NULL is allowed */
    /* Bytes of weights that a prepared operation keeps in another layout after its first run. Entry
     * NULL: none does. */
    uint64_t (*packed_bytes)(const mpl_prepared *prepared);
    /* Limits the workspace of operations prepared from now on. A lower limit may make them slower;
     * prepare fails with MPL_EUNAVAIL if no implementation fits. UINT64_MAX: the limit of the
     * options. Entry NULL: each operation has one implementation. */
    void (*limit_workspace)(mpl_device *dev, uint64_t bytes);
    mpl_status (*run_op)(mpl_device *dev, mpl_prepared *prepared,
                         const mpl_op_call *call); /* may return early */
    mpl_status (*wait)(mpl_device *dev);
    /* The same device for one of several threads, with a context of its own: run_op and copies
     * through it may run while others do. Freed by close. Entry NULL: one host thread. */
    mpl_status (*share)(mpl_device *dev, mpl_ctx *ctx, mpl_device **out);
    /* Optional (all three or none): the whole run at once. sequence_run returns after the run has
     * ended; *ns (may be NULL) is its time on the device. If `captures`, sequence_new runs it once
     * on whatever memory holds. */
    mpl_status (*sequence_new)(mpl_device *dev, const mpl_sequence_spec *spec, mpl_sequence **out);
    void (*sequence_free)(mpl_device *dev, mpl_sequence *sequence); /* NULL is allowed */
    mpl_status (*sequence_run)(mpl_device *dev, mpl_sequence *sequence, int64_t *ns);
    /* Optional (both or none): whether this device captures runs; enqueues a run captured with
     * as_it_stands after all earlier run_op calls, without waiting. */
    bool (*captures)(const mpl_device *dev);
    mpl_status (*sequence_put)(mpl_device *dev, mpl_sequence *sequence);
    /* Optional: uploads an i64 in the order of run_op, without waiting for the device. */
    mpl_status (*put_number)(mpl_device *dev, void *to, int64_t number);
    void (*facts)(mpl_device *dev, mpl_device_facts *facts); /* NULL: it has none */
    /* Optional: plays the requests once, then frees everything. MPL_EMEM: out of device memory. */
    mpl_status (*replay)(mpl_device *dev, const mpl_request *request, uint32_t n,
                         mpl_replay_mode mode, mpl_replay_facts *facts);
    bool (*computes)(mpl_op_kind kind); /* whether it implements an operator; entry NULL: all */
} mpl_backend;

extern const mpl_backend *const mpl_backends[];        /* NULL-terminated, made from backends.def */
const mpl_backend *mpl_backend_find(const char *name); /* NULL: unknown name */
/* The backend of a command that names none: cpu, or ref in a build without it. */
const mpl_backend *mpl_backend_default(void);
/* Why a backend cannot be used here (not built in, no driver, no device); NULL: it can. */
const char *mpl_backend_absent(const mpl_backend *backend);
