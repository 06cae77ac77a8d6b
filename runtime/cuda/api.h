/* api.h -- every call that the cuda backend makes to a driver, as one table: the real one (real.c)
 * and a fake for machines without a device (tests/device/cuda_fake.h).
 *
 * Calls return CUDA's codes, 0 when all is well; `text` says what a code means. Streams, events and
 * graphs are opaque. Nothing here includes a header of CUDA. */
#ifndef MPL_CUDA_API_H
#define MPL_CUDA_API_H

#include "runtime/backend.h"
#include "runtime/cuda/kernels.h"

#define MPL_CUDA_OUT_OF_MEMORY 2 /* cudaErrorMemoryAllocation */

typedef struct mpl_cuda mpl_cuda;         /* one opened driver; private to each table */
typedef struct mpl_cuda_dnn mpl_cuda_dnn; /* one operation of cuDNN or cuBLAS; private to each table
                                           */

typedef enum mpl_cuda_way { MPL_CUDA_TO_DEVICE, MPL_CUDA_TO_HOST, MPL_CUDA_WITHIN } mpl_cuda_way;

/* What of cuDNN and cuBLAS may be used. Values stay f32 in memory, and sums are of f32, whatever is
 * on. */
typedef struct mpl_cuda_choice {
    uint64_t workspace_limit; /* of one operation: what dnn_prepare says that it needs is never more
                                 [byte] */
    bool tf32; /* tensor cores may round operands of f32 products to 10 bits; off: never */
    bool fp16; /* the same, and to f16: 10 bits, nothing beyond 65504; tf32 goes along with it */
} mpl_cuda_choice;

/* One operation for a stream: kernels of ours in turn, or what `dnn` stands for. */
typedef struct mpl_cuda_work {
    const mpl_op_call *call;
    uint64_t workspace_bytes;
    uint32_t n_kernels;
    const mpl_cuda_kernel *kernel; /* operands filled in */
    mpl_cuda_dnn *dnn;             /* NULL: the kernels */
} mpl_cuda_work;

typedef struct mpl_cuda_api {
    /* Why there is no device, or NULL; does not touch the driver's state in this process (the
     * caller may fork). */
    const char *(*absent)(void);
    /* *about: device, driver and libraries in words, valid until close. */
    mpl_status (*open)(mpl_ctx *ctx, int device, mpl_cuda **out, const char **about);
    void (*close)(mpl_ctx *ctx, mpl_cuda *c);
    const char *(*text)(int code);

    int (*memory_new)(mpl_cuda *c, void **out, size_t bytes);
    int (*memory_free)(mpl_cuda *c, void *p);
    int (*pool_new)(mpl_cuda *c, void **out, size_t bytes, void *stream); /* cudaMallocAsync */
    int (*pool_free)(mpl_cuda *c, void *p, void *stream);
    /* Page-locked memory of the host, which copies reach without waiting. */
    int (*host_new)(mpl_cuda *c, void **out, size_t bytes);
    int (*host_free)(mpl_cuda *c, void *p);
    int (*memory_info)(mpl_cuda *c, size_t *free, size_t *total);
    /* As they are now; not 0: they are not known here. */
    int (*clocks)(mpl_cuda *c, mpl_device_clocks *out);
    int (*copy)(mpl_cuda *c, void *to, const void *from, size_t bytes, mpl_cuda_way way,
                void *stream);
    int (*fill)(mpl_cuda *c, void *at, int byte, size_t bytes, void *stream);

    /* Calls a function, on a thread of the driver, when the stream comes to it. */
    int (*host_call)(mpl_cuda *c, void (*function)(void *data), void *data, void *stream);

    int (*stream_new)(mpl_cuda *c, void **out);
    int (*stream_free)(mpl_cuda *c, void *stream);
    int (*stream_wait)(mpl_cuda *c, void *stream, void *event); /* work put on it later waits for
                                                                   the event */
    int (*stream_finish)(mpl_cuda *c, void *stream); /* the host waits for all that is on it */
    int (*event_new)(mpl_cuda *c, void **out, bool timed);
    int (*event_free)(mpl_cuda *c, void *event);
    int (*event_record)(mpl_cuda *c, void *event, void *stream);
    /* both finished, both timed */
    int (*event_time)(mpl_cuda *c, float *ms, void *begin, void *end);

    int (*capture_begin)(mpl_cuda *c, void *stream);
    int (*capture_end)(mpl_cuda *c, void *stream, void **graph); /* ready to be launched */
    int (*graph_launch)(mpl_cuda *c, void *graph, void *stream);
    int (*graph_free)(mpl_cuda *c, void *graph);

    /* *out stays NULL where cuDNN and cuBLAS have nothing for the operation. */
    mpl_status (*dnn_prepare)(mpl_ctx *ctx, mpl_cuda *c, const mpl_graph *g, mpl_op op,
                              const mpl_cuda_choice *choice, mpl_cuda_dnn **out,
                              uint64_t *workspace_bytes, const char **how);
    void (*dnn_release)(mpl_ctx *ctx, mpl_cuda *c, mpl_cuda_dnn *dnn);
    int (*run)(mpl_cuda *c, const mpl_cuda_work *work, void *stream);
} mpl_cuda_api;

/* The table of this build, or NULL where it was built without CUDA, *absent then saying what was
 * not there. */
const mpl_cuda_api *mpl_cuda_real(const char **absent);

#endif
