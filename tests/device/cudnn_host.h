/* cudnn_host.h -- cuDNN and cuBLAS for tests: their documented calls as plain loops on the host,
 * called by the code that describes operations to them (runtime/cuda/dnn*.c). A wrong dim, stride,
 * pad, group, operand order or workspace gives a wrong result, or a call that is refused and
 * counted. How the real libraries behave on a device is not modelled. */
#pragma once

#include "runtime/cuda/api.h"

typedef struct host_world {
    bool built;         /* cuDNN's headers are present; else nothing is ever prepared */
    uint64_t n_live;    /* descriptors not yet freed */
    uint64_t n_misused; /* calls that the documentation forbids */
    uint64_t n_runs;
    const char *misuse; /* the latest such call */
    int (*launch)(const mpl_cuda_kernel *k, void *stream);
} host_world;

extern host_world host;

/* Like dnn_prepare, dnn_release and run of the call table. */
mpl_status host_dnn_prepare(mpl_ctx *ctx, const mpl_graph *g, mpl_op op,
                            const mpl_cuda_choice *choice, mpl_cuda_dnn **out,
                            uint64_t *workspace_bytes, const char **how);
void host_dnn_release(mpl_ctx *ctx, mpl_cuda_dnn *dnn);
int host_dnn_run(const mpl_cuda_work *work);

/* Until host_give_back, uses descriptors of the real cuDNN (MEMPLAN_CUDNN: its folder; else where
 * the loader looks). It needs no device to refuse a descriptor or to give a convolution's output
 * dims, but it can run nothing. Returns false if there is none. */
bool host_borrow(void);
void host_give_back(void);
