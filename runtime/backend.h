/* backend.h -- the table that each device which runs operations fills in. A new backend is one file
 * and one line in backends.def.
 *
 * Nothing is allocated between prepare and release: primitives, workspaces and constants are ready
 * before the first run. "Not built", "no device" and "failed" are told apart, and what computes an
 * operation is always named: a run never changes its backend. */
#ifndef MPL_BACKEND_H
#define MPL_BACKEND_H

#include "graphs/graph.h"

typedef struct mpl_device mpl_device;     /* private to each backend */
typedef struct mpl_prepared mpl_prepared; /* one operation made ready; private to each backend */

typedef struct mpl_sequence mpl_sequence; /* a whole run made ready; private to each backend */

typedef struct mpl_device_options {
    uint32_t n_threads; /* 0: the backend's choice; a GPU: streams */
    const char *params; /* "key=value,..", the backend's own; NULL: none */
} mpl_device_options;

/* What one run does, in that order; its arrays outlive the sequence. */
typedef struct mpl_sequence_spec {
    const mpl_graph *g;
    const mpl_op *order;           /* [n_ops] */
    const uint8_t *skipped;        /* [n_ops] 1: nothing to do */
    mpl_prepared *const *prepared; /* [n_ops] */
    const mpl_op_call *call;       /* [n_ops] */
    uint32_t most_lanes; /* operations at the same time, as the graph's edges allow; 1: one after
                            another; 0: the device's choice */
    bool as_it_stands; /* for sequence_put: it has run once, its operands and arrays need not last,
                          and it is captured with the operands where they are now */
} mpl_sequence_spec;

/* How fast a device runs, and why no faster; a figure that it does not tell is 0. */
typedef struct mpl_device_clocks {
    bool known;
    uint32_t core_mhz, core_most_mhz, memory_mhz, memory_most_mhz;
    uint32_t power_mw, power_most_mw, celsius;
    uint32_t state;     /* power state: 0 is the fastest */
    uint64_t throttled; /* bits of the driver: what holds the clocks down */
} mpl_device_clocks;

/* What a device knows of itself and of the runs so far. */
typedef struct mpl_device_facts {
    const char *about; /* device, driver, libraries and options in words; valid until close */
    const char *math;  /* what operands of products are rounded to: "f32": nothing, "tf32", "f16" */
    double tolerance;  /* how far outputs may be from those of `ref`, relative */
    uint64_t n_allocations;           /* calls that took memory of the device since it was opened */
    uint64_t n_while_running;         /* those of them inside runs: none may be */
    uint64_t used_before, used_after; /* memory in use around the last run, by the device's own
                                         count [byte] */
    uint64_t taken;       /* by how much that count grew as the arenas that there are now were taken
                             [byte] */
    uint64_t granularity; /* of its memory: each arena may take so much more, or less where others
                             left room [byte] */
    bool two_ways; /* runs alternate: put call by call, then replayed as a whole, beginning with the
                      first way */
    mpl_device_clocks clocks; /* after the last run */
} mpl_device_facts;

/* What computes an operation that a backend's library lacks: the loops of mpl_eval. `how` says
 * so. */
#define MPL_HOW_LOOPS "ref loops"
/* What copies a view that has memory of its own. */
#define MPL_HOW_COPY "copy"

/* Memory taken and given back call by call, as a framework without a plan does; buffers by id. */
typedef struct mpl_request {
    uint32_t id;
    uint64_t bytes; /* [byte] */
    bool gives_back;
} mpl_request;

typedef enum mpl_replay_mode {
    MPL_REPLAY_PLAIN, /* one allocation of the device for each buffer (cudaMalloc, cudaFree) */
    MPL_REPLAY_POOL   /* the driver's own pool, in the order of a stream (cudaMallocAsync) */
} mpl_replay_mode;

typedef struct mpl_replay_facts {
    uint64_t peak_bytes; /* of the device's memory in use above the start, looked at after each
                            call [byte] */
    int64_t ns;          /* the calls alone */
} mpl_replay_facts;

typedef struct mpl_backend {
    const char *name;   /* "ref", "cpu", "cuda" */
    const char *about;  /* one line, with the library and its version in use */
    const char *absent; /* why open is NULL; NULL when it is not */
    /* Why it cannot be opened on this machine, or NULL; never touches what a forked child would
     * miss. NULL: it can wherever `open` is there. Ask through mpl_backend_absent. */
    const char *(*missing)(void);
    uint32_t align; /* of every buffer. [byte] */
    bool strided;   /* operands of concats may lie strided: it reads and writes them so, or it is no
                       matter that they are copied */
    bool takes_params;       /* mpl_device_options.params; false: it looks at none */
    bool lays_channels_last; /* it lays images as graphs/ir/layout.h says; false: everything is
                                row-major */
    mpl_status (*open)(mpl_ctx *ctx, const mpl_device_options *options, mpl_device **out);
    void (*close)(mpl_device *dev); /* NULL is allowed */
    /* Memory of the device that operations can reach, of one pool; zero bytes give a valid base. */
    mpl_status (*arena_new)(mpl_device *dev, uint64_t bytes, void **base);
    void (*arena_free)(mpl_device *dev, void *base, uint64_t bytes); /* base NULL is allowed */
    /* host to device */
    mpl_status (*upload)(mpl_device *dev, void *to, const void *from, uint64_t bytes);
    /* device to host */
    mpl_status (*download)(mpl_device *dev, void *to, const void *from, uint64_t bytes);
    mpl_status (*fill)(mpl_device *dev, void *at, uint8_t byte, uint64_t bytes);
    /* Within the device, ranges apart, in the order of run_op. NULL: it cannot run control flow. */
    mpl_status (*copy)(mpl_device *dev, void *to, const void *from, uint64_t bytes);
    /* Bytes of [base, base + bytes), a part of an arena, that really took memory by now. */
    mpl_status (*resident)(mpl_device *dev, const void *base, uint64_t bytes, uint64_t *resident);
    /* Makes operation `op` of `g` ready; *workspace_bytes is what run_op needs in call->workspace.
     * *how (may be NULL) receives a text that names the implementation ("jit:avx2", "ref loops",
     * ..), valid until the release. */
    mpl_status (*prepare)(mpl_device *dev, const mpl_graph *g, mpl_op op, mpl_prepared **out,
                          uint64_t *workspace_bytes, const char **how);
    /* The same for operands that do not lie in one piece: stride[k] has an element step for each
     * dim of input k, the outputs after the inputs; NULL: in one piece. It computes what
     * prepare's would, bit for bit. *out = NULL: it cannot. NULL: none. */
    mpl_status (*prepare_strided)(mpl_device *dev, const mpl_graph *g, mpl_op op,
                                  const int64_t *const *stride, mpl_prepared **out,
                                  uint64_t *workspace_bytes, const char **how);
    void (*release)(mpl_device *dev, mpl_prepared *prepared); /* NULL is allowed */
    /* Bytes of weights that a prepared operation keeps in another layout, made of them in its first
     * run. NULL: none does. */
    uint64_t (*packed_bytes)(const mpl_prepared *prepared);
    /* The most that an operation prepared from now on may say it needs of workspace; a lower limit
     * may make it slower, and MPL_EUNAVAIL where nothing computes it within. UINT64_MAX: what the
     * options allow. NULL: each operation has one way to be computed. */
    void (*limit_workspace)(mpl_device *dev, uint64_t bytes);
    mpl_status (*run_op)(mpl_device *dev, mpl_prepared *prepared,
                         const mpl_op_call *call); /* may return early */
    mpl_status (*wait)(mpl_device *dev);
    /* Optional (all of them NULL): the whole run at once. *ns (may be NULL): its time on the
     * device. It ends before sequence_run returns. Where `captures`, sequence_new runs it once, on
     * whatever lies in memory. */
    mpl_status (*sequence_new)(mpl_device *dev, const mpl_sequence_spec *spec, mpl_sequence **out);
    void (*sequence_free)(mpl_device *dev, mpl_sequence *sequence); /* NULL is allowed */
    mpl_status (*sequence_run)(mpl_device *dev, mpl_sequence *sequence, int64_t *ns);
    /* Optional (both NULL): whether this device captures runs; puts one that was captured as it
     * stands after all that run_op put, without waiting. */
    bool (*captures)(const mpl_device *dev);
    mpl_status (*sequence_put)(mpl_device *dev, mpl_sequence *sequence);
    /* Optional: as upload of an i64, but in the order of run_op, without waiting for the device. */
    mpl_status (*put_number)(mpl_device *dev, void *to, int64_t number);
    void (*facts)(mpl_device *dev, mpl_device_facts *facts); /* NULL: it has none */
    /* Plays the requests once; gives everything back. Optional. MPL_EMEM: the device ran out. */
    mpl_status (*replay)(mpl_device *dev, const mpl_request *request, uint32_t n,
                         mpl_replay_mode mode, mpl_replay_facts *facts);
    bool (*computes)(mpl_op_kind kind); /* whether it has code for an operator; NULL: for all */
} mpl_backend;

extern const mpl_backend *const mpl_backends[];        /* NULL-terminated, made from backends.def */
const mpl_backend *mpl_backend_find(const char *name); /* NULL: there is none */
/* The backend of a command that names none: cpu, or ref in a build without it. */
const mpl_backend *mpl_backend_default(void);
/* Why a backend cannot be used here: not built in, no driver, no device; NULL: it can. */
const char *mpl_backend_absent(const mpl_backend *backend);

#endif
