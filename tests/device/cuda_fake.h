/* cuda_fake.h -- a fake device for tests, behind the call table of the cuda backend
 * (runtime/cuda/api.h).
 *
 * Device memory is host memory, one exact allocation per pool, so that a sanitizer detects
 * out-of-bounds accesses. Work on streams is deferred until the host waits, and then runs in the
 * most adverse order that streams and events allow. Each task declares what it reads and writes. A
 * task that overlaps an earlier one is a race, whatever the result, unless a stream, an event or a
 * host wait orders it after that one. Our own kernels run thread by thread; operations of cuDNN and
 * cuBLAS run by the reference loops. Calls can be made to fail. One device at a time. */
#pragma once

#include "runtime/cuda/device.h"

#define FAKE_NEVER UINT64_MAX

typedef struct fake_world {
    /* configured behaviour */
    uint64_t oom_at;    /* index of the allocation that fails */
    uint64_t launch_at; /* index of the operation that fails, as do all later ones */
    uint64_t stray_at;  /* fault: the operation with this index writes past its output */
    uint64_t lost_at;   /* index of the call, of any kind, that finds the device lost */
    uint64_t total_bytes;
    bool library; /* cuDNN and cuBLAS run what they can; false: our kernels run everything */
    bool cudnn; /* the code for the real libraries describes operations to those of cudnn_host.h */
    bool blind_waits;         /* planted fault: streams do not wait for events */
    uint64_t workspace_bytes; /* of a library operation, unless it has several ways */
    uint32_t n_ways;          /* algorithms of its heavy operations; 0: one that fits every limit */
    uint64_t way_bytes[4];    /* their workspaces, in its order of preference */
    bool no_clocks;           /* clocks are unavailable */
    uint64_t others_bytes;    /* device memory held by other processes */
    uint64_t leak_bytes;      /* more such memory with each launch */
    uint64_t granularity;     /* allocation granularity; 0: bytes */

    /* observed behaviour */
    uint64_t n_host_waits; /* host waits for a stream */
    uint64_t n_calls, n_allocations, n_runs, n_graph_launches, n_waits, n_streams_used;
    uint64_t live_bytes, peak_bytes;
    uint64_t n_live;          /* everything allocated or created and not yet freed */
    uint64_t n_races, n_wild; /* wild: accesses outside of every allocation */
    uint64_t n_misused;       /* calls forbidden in a capture, unknown handles */
    char race[300];           /* description of the first one */
} fake_world;

extern fake_world fake;
extern const mpl_cuda_api fake_api;
const mpl_backend *fake_backend(void); /* The backend "cuda" on this table. */

/* Resets to a device without faults or history. */
void fake_reset(void);
/* Runs one of our kernels on the host, thread by thread. */
int emulated_launch(const mpl_cuda_kernel *k, void *stream);
void emulated_end(void); /* frees the stacks of its threads */
