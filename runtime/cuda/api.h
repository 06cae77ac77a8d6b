/* api.h -- one table of all driver calls of the cuda backend: the real one (real.c), and a fake for
 * machines without a device (tests/device/cuda_fake.h).
 *
 * Calls return CUDA's codes, 0 for success; `text` says what a code means. Streams, events and
 * graphs are opaque. No header of CUDA is included here. */
#pragma once

#include "runtime/backend.h"
#include "runtime/cuda/kernels.h"

#define MPL_CUDA_OUT_OF_MEMORY 2 /* cudaErrorMemoryAllocation */

typedef struct mpl_cuda mpl_cuda;         /* one opened driver; private to each table */
typedef struct mpl_cuda_dnn mpl_cuda_dnn; /* a cuDNN or cuBLAS operation; private to each table */

typedef enum mpl_cuda_way { MPL_CUDA_TO_DEVICE, MPL_CUDA_TO_HOST, MPL_CUDA_WITHIN } mpl_cuda_way;

/* What cuDNN and cuBLAS may use. In all cases, values are f32 in memory and sums are in f32. */
typedef struct mpl_cuda_choice {
    uint64_t workspace_limit; /* most workspace that dnn_prepare may ask for [byte] */
    bool tf32;                /* tensor cores may round operands of f32 products to 10 bits */
    bool fp16;                /* also to f16: 10 bits, at most 65504; implies tf32 */
} mpl_cuda_choice;

/* One operation on a stream: our own kernels in turn, or `dnn`. */
typedef struct mpl_cuda_work {
    const mpl_op_call *call;
    uint64_t workspace_bytes;
    uint32_t n_kernels;
    const mpl_cuda_kernel *kernel; /* operands filled in */
    mpl_cuda_dnn *dnn;             /* NULL: use the kernels */
} mpl_cuda_work;

typedef struct mpl_cuda_api {
    /* Why there is no device, or NULL. Leaves the driver in this process untouched, since the
     * caller may fork. */
    const char *(*absent)(void);
    /* *about: device, driver and libraries in words, valid until close. */
    mpl_status (*open)(mpl_ctx *ctx, int device, mpl_cuda **out, const char **about);
    void (*close)(mpl_ctx *ctx, mpl_cuda *c);
    const char *(*text)(int code);

    int (*memory_new)(mpl_cuda *c, void **out, size_t bytes);
    int (*memory_free)(mpl_cuda *c, void *p);
    int (*pool_new)(mpl_cuda *c, void **out, size_t bytes, void *stream); /* cudaMallocAsync */
    int (*pool_free)(mpl_cuda *c, void *p, void *stream);
    /* Page-locked host memory, for copies without waiting. */
    int (*host_new)(mpl_cuda *c, void **out, size_t bytes);
    int (*host_free)(mpl_cuda *c, void *p);
    int (*memory_info)(mpl_cuda *c, size_t *free, size_t *total);
    /* The current clocks; nonzero: unknown. */
    int (*clocks)(mpl_cuda *c, mpl_device_clocks *out);
    int (*copy)(mpl_cuda *c, void *to, const void *from, size_t bytes, mpl_cuda_way way,
                void *stream);
    int (*fill)(mpl_cuda *c, void *at, int byte, size_t bytes, void *stream);

    /* A driver thread calls the function when the stream reaches it. */
    int (*host_call)(mpl_cuda *c, void (*function)(void *data), void *data, void *stream);

    int (*stream_new)(mpl_cuda *c, void **out);
    int (*stream_free)(mpl_cuda *c, void *stream);
    int (*stream_wait)(mpl_cuda *c, void *stream, void *event); /* for later work */
    int (*stream_finish)(mpl_cuda *c, void *stream); /* the host waits for all work on it */
    int (*event_new)(mpl_cuda *c, void **out, bool timed);
    int (*event_free)(mpl_cuda *c, void *event);
    int (*event_record)(mpl_cuda *c, void *event, void *stream);
    /* both events are timed and finished */
    int (*event_time)(mpl_cuda *c, float *ms, void *begin, void *end);

    int (*capture_begin)(mpl_cuda *c, void *stream);
    int (*capture_end)(mpl_cuda *c, void *stream, void **graph); /* ready to launch */
    int (*graph_launch)(mpl_cuda *c, void *graph, void *stream);
    int (*graph_free)(mpl_cuda *c, void *graph);

    /* *out stays NULL if cuDNN and cuBLAS do not have the operation. */
    mpl_status (*dnn_prepare)(mpl_ctx *ctx, mpl_cuda *c, const mpl_graph *g, mpl_op op,
                              const mpl_cuda_choice *choice, mpl_cuda_dnn **out,
                              uint64_t *workspace_bytes, const char **how);
    void (*dnn_release)(mpl_ctx *ctx, mpl_cuda *c, mpl_cuda_dnn *dnn);
    int (*run)(mpl_cuda *c, const mpl_cuda_work *work, void *stream);
} mpl_cuda_api;

/* The table of this build. NULL: built without CUDA; *absent says what was missing. */
const mpl_cuda_api *mpl_cuda_real(const char **absent);
