/* backend.h -- devices that run operations, behind one table. A new backend is one file and one line in
 * backends.def.
 *
 * Nothing is allocated between prepare and release: primitives, workspaces and constants are ready before
 * the first run. Not built, no device and failed stay apart; nobody falls back silently. */
#ifndef MPL_BACKEND_H
#define MPL_BACKEND_H

#include "graphs/graph.h"

typedef struct mpl_device mpl_device;     /* private to each backend */
typedef struct mpl_prepared mpl_prepared; /* one operation made ready; private to each backend */

typedef struct mpl_device_options {
    uint32_t n_threads; /* 0: the backend's choice */
} mpl_device_options;

/* What computes an operation that a backend's library lacks: the loops of mpl_eval. `how` says so. */
#define MPL_HOW_LOOPS "ref loops"
/* What copies a view that has memory of its own. */
#define MPL_HOW_COPY "copy"

typedef struct mpl_backend {
    const char *name;   /* "ref", "cpu", "cuda" */
    const char *about;  /* one line, with the library and its version in use */
    const char *absent; /* why open is NULL; NULL when it is not */
    uint32_t align;     /* of every buffer. [byte] */
    mpl_status (*open)(mpl_ctx *ctx, const mpl_device_options *options, mpl_device **out);
    void (*close)(mpl_device *dev); /* NULL is allowed */
    /* Memory of the device that operations can reach, of one pool; zero bytes give a valid base. */
    mpl_status (*arena_new)(mpl_device *dev, uint64_t bytes, void **base);
    void (*arena_free)(mpl_device *dev, void *base, uint64_t bytes); /* base NULL is allowed */
    mpl_status (*upload)(mpl_device *dev, void *to, const void *from, uint64_t bytes);   /* host to device */
    mpl_status (*download)(mpl_device *dev, void *to, const void *from, uint64_t bytes); /* device to host */
    mpl_status (*fill)(mpl_device *dev, void *at, uint8_t byte, uint64_t bytes);
    /* Bytes of [base, base + bytes), a part of an arena, that really took memory by now. */
    mpl_status (*resident)(mpl_device *dev, const void *base, uint64_t bytes, uint64_t *resident);
    /* Makes operation `op` of `g` ready; *workspace_bytes is what run_op needs in call->workspace. *how
     * (may be NULL) receives a text that names the implementation ("jit:avx2", "ref loops", ..), valid
     * until the release. */
    mpl_status (*prepare)(mpl_device *dev, const mpl_graph *g, mpl_op op, mpl_prepared **out,
                          uint64_t *workspace_bytes, const char **how);
    void (*release)(mpl_device *dev, mpl_prepared *prepared); /* NULL is allowed */
    mpl_status (*run_op)(mpl_device *dev, mpl_prepared *prepared,
                         const mpl_op_call *call); /* may return early */
    mpl_status (*wait)(mpl_device *dev);
} mpl_backend;

extern const mpl_backend *const mpl_backends[];        /* NULL-terminated, made from backends.def */
const mpl_backend *mpl_backend_find(const char *name); /* NULL: there is none */

#endif
