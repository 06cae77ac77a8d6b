/* device.h -- the backend `cuda` over any table of calls; shared by its files and tests. */
#pragma once

#include "runtime/cuda/api.h"

/* Opens the backend on a table. All functions of mpl_backend_cuda but `open` work on it. */
mpl_status mpl_cuda_open(mpl_ctx *ctx, const mpl_cuda_api *api, const mpl_device_options *options,
                         mpl_device **out);

/* replay.c: `replay` of the backend on an opened device. */
mpl_status mpl_cuda_replay(mpl_ctx *ctx, const mpl_cuda_api *api, mpl_cuda *cuda, void *stream,
                           const mpl_request *request, uint32_t n, mpl_replay_mode mode,
                           mpl_replay_facts *facts);

/* ---- describe.c: operations as launches of our own kernels ---- */

/* Stands for the operation's workspace in place of an operand's index. */
#define MPL_CUDA_WORKSPACE (MPL_NONE - 1)

typedef struct mpl_cuda_part { /* one launch, and its operands */
    mpl_cuda_kernel kernel;
    uint32_t in[MPL_CUDA_MAX_IN]; /* index into the operation's inputs; MPL_NONE: none */
    uint32_t out;                 /* index of the output that becomes kernel.out[0] */
    uint64_t in_byte, out_byte;   /* start in the first input and in the output [byte] */
    bool all_outputs;             /* kernel.out[k] is output k */
    bool checks;                  /* it may read out-of-range indices and raise the flag */
    uint64_t workspace_bytes;     /* at kernel.work [byte] */
} mpl_cuda_part;

/* The launches of an operation; *part is NULL if no kernel computes it. The caller frees *part. */
mpl_status mpl_cuda_describe(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_cuda_part **part,
                             uint32_t *n);

/* ---- host_ops.c: operations that the host computes, between two copies ---- */

typedef struct mpl_cuda_host_op mpl_cuda_host_op;

typedef struct mpl_cuda_host_failure { /* the last one since it was cleared */
    mpl_status status;
    char message[256];
} mpl_cuda_host_failure;

/* Allocates host memory for an operation's operands. Errors during a run go to *failure, which must
 * outlive it. */
mpl_status mpl_cuda_host_new(mpl_ctx *ctx, const mpl_cuda_api *api, mpl_cuda *cuda,
                             const mpl_graph *g, mpl_op op, mpl_cuda_host_failure *failure,
                             mpl_cuda_host_op **out);
void mpl_cuda_host_free(mpl_ctx *ctx, const mpl_cuda_api *api, mpl_cuda *cuda,
                        mpl_cuda_host_op *op);
/* Enqueues copies to the host, the loops and copies back. Returns CUDA's code. */
int mpl_cuda_host_put(const mpl_cuda_api *api, mpl_cuda *cuda, mpl_cuda_host_op *op,
                      const mpl_op_call *call, void *stream);

/* ---- streams.c: which stream each operation goes to, and what it must wait for ---- */

typedef struct mpl_cuda_streams {
    uint32_t n_ops, n_streams, n_events;
    uint32_t *stream;     /* [n_ops] of the operation; MPL_NONE: runs nothing */
    uint32_t *event;      /* [n_ops] recorded after it; MPL_NONE: none */
    uint32_t *wait_begin; /* [n_ops + 1] into wait: events that step i waits for */
    uint32_t *wait;
    uint32_t *last; /* [n_streams] last operation of the stream */
} mpl_cuda_streams;

/* Assigns the operations of `order` to at most `most` streams (1 to 32), stream 0 first. Each edge
 * of the graph is kept by the order of a stream or by an event. skipped[op]: the operation runs
 * nothing. */
mpl_status mpl_cuda_streams_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                                const uint8_t *skipped, uint32_t most, mpl_cuda_streams **out);
void mpl_cuda_streams_free(mpl_ctx *ctx, mpl_cuda_streams *streams);

#define MPL_CUDA_MOST_STREAMS 32
