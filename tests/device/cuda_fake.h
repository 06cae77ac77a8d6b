/* cuda_fake.h -- a device for tests, behind the table of calls of the cuda backend
 * (runtime/cuda/api.h).
 *
 * Device memory is host memory, one exact allocation a pool, so that a sanitizer sees every touch
 * outside. Work on streams is put off until the host waits, and then runs in the most awkward order
 * that streams and events allow. Each piece of work says what it reads and writes; one that
 * overlaps an earlier one without being ordered behind it by a stream, an event or a wait of the
 * host is a race, whatever came out. Our own kernels run thread by thread; what cuDNN and cuBLAS
 * would compute runs by the reference loops. Calls can be made to fail. One device at a time. */
#ifndef MPL_CUDA_FAKE_H
#define MPL_CUDA_FAKE_H

#include "runtime/cuda/device.h"

#define FAKE_NEVER UINT64_MAX

typedef struct fake_world {
    /* how it is to behave */
    uint64_t oom_at;    /* the allocation with this index fails */
    uint64_t launch_at; /* the operation with this index fails, and with it all that follows */
    uint64_t stray_at;  /* planted fault: the operation with this index writes a byte behind its
                           output */
    uint64_t lost_at;   /* the call with this index, of any kind, finds the device lost */
    uint64_t total_bytes;
    bool library; /* cuDNN and cuBLAS take what they can; false: our kernels compute everything */
    bool cudnn; /* the code for the real libraries describes operations, to those of cudnn_host.h */
    bool blind_waits;         /* planted fault: streams do not wait for events */
    uint64_t workspace_bytes; /* that an operation of the library needs, unless it has other ways */
    uint32_t n_ways;          /* ways of its heavy operations; 0: one, that fits every limit */
    uint64_t way_bytes[4];    /* the workspaces of these, as it likes them best */
    bool no_clocks;           /* nobody tells */
    uint64_t others_bytes;    /* that other processes hold of the device */
    uint64_t leak_bytes;      /* that others take with each launch */
    uint64_t granularity;     /* what the device is taken of at once; 0: bytes */

    /* what it saw */
    uint64_t n_host_waits; /* that the host made for a stream */
    uint64_t n_calls, n_allocations, n_runs, n_graph_launches, n_waits, n_streams_used;
    uint64_t live_bytes, peak_bytes;
    uint64_t n_live; /* allocations, streams, events, graphs, operations of the library and devices
                        not yet freed */
    uint64_t n_races, n_wild; /* wild: a touch outside of every allocation */
    uint64_t n_misused;       /* calls that a capture forbids, unknown handles */
    char race[300];           /* the first one in words */
} fake_world;

extern fake_world fake;
extern const mpl_cuda_api fake_api;
const mpl_backend *fake_backend(void); /* "cuda" on that table */

/* A well-behaved device without history. */
void fake_reset(void);

#endif
