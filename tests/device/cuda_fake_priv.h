/* cuda_fake_priv.h -- the state of the fake device; shared by cuda_fake*.c. */
#pragma once

#include "tests/device/cuda_fake.h"

#define MOST_STREAMS   40
#define NOT_IN_CAPTURE 900

struct mpl_cuda {
    mpl_ctx *ctx;
};

struct mpl_cuda_dnn {
    int unused;
};

typedef struct access {
    const char *at;
    uint64_t bytes;
    bool writes;
    uint32_t stream;
    uint64_t index;
    char name[40];
} access_range;

typedef enum task_kind { COPY, FILL, RUN, CALL_HOST, RECORD, WAIT } task_kind;

typedef struct task {
    task_kind kind;
    uint32_t stream;
    uint64_t clock[MOST_STREAMS]; /* runs once this many tasks of each stream have run */
    void *to;
    const void *from;
    size_t bytes;
    int byte;
    void (*function)(void *data); /* function of CALL_HOST; its argument is `to` */
    uint32_t event;               /* of RECORD and WAIT in a graph */
    mpl_op_call call;
    mpl_tensor *operand;
    mpl_cuda_kernel *kernel;
    uint32_t n_kernels;
    mpl_cuda_dnn *dnn; /* of cudnn_host.h */
    uint64_t workspace_bytes;
    bool strays;
    struct task *next;
} task;

typedef struct allocation {
    char *at;
    uint64_t bytes;
    struct allocation *next;
} allocation;

typedef struct stream {
    bool live;
    uint64_t clock[MOST_STREAMS]; /* tasks of each stream that finish earlier; own: enqueued */
    uint64_t done;                /* own tasks completed */
    task *first, **end;
} stream;

typedef struct graph {
    task *first, **end;
    uint32_t origin;
    bool joined[MOST_STREAMS]; /* streams in the capture: the origin and those that waited for it */
} graph;

extern struct fake_device {
    stream streams[MOST_STREAMS];
    uint64_t host_clock[MOST_STREAMS];
    allocation *allocations;
    access_range *history;
    size_t n_history, room_history;
    graph *capturing;
    mpl_ctx *world_ctx;
} gpu;

static inline void join(uint64_t *clock, const uint64_t *other)
{
    for (int k = 0; k < MOST_STREAMS; k++)
        clock[k] = other[k] > clock[k] ? other[k] : clock[k];
}

/* cuda_fake_run.c */
void fake_free_task(task *t);
/* Whether all streams have run as many tasks as the clock says. */
bool fake_reached(const uint64_t *clock);
/* Runs until the clock is reached. Among ready tasks it takes that of the last stream, however
 * early that is. */
void fake_run_until(const uint64_t *clock);
/* Orders the task after everything its stream and the host know, and records its accesses. */
void fake_enqueue(task *t);
/* The same, or adds it to the capture. Returns the device's code. */
int fake_put_or_capture(task *t);
