/* cudnn_host.h -- cuDNN and cuBLAS for tests: their calls as documented, in plain loops on the
 * host, behind the code that describes operations to them (runtime/cuda/dnn*.c). A wrong dim,
 * stride, pad, group, order of operands or workspace becomes a wrong answer, or a call that is
 * refused and counted. What the libraries really do on a device is not known here. */
#ifndef MPL_CUDNN_HOST_H
#define MPL_CUDNN_HOST_H

#include "runtime/cuda/api.h"

typedef struct host_world {
    bool built;         /* with cuDNN's headers; else nothing is ever prepared */
    uint64_t n_live;    /* descriptors not yet freed */
    uint64_t n_misused; /* calls that the documentation forbids */
    uint64_t n_runs;
    const char *misuse; /* the call that the last of them was */
    int (*launch)(const mpl_cuda_kernel *k, void *stream);
} host_world;

extern host_world host;

/* As dnn_prepare, dnn_release and run of the table of calls. */
mpl_status host_dnn_prepare(mpl_ctx *ctx, const mpl_graph *g, mpl_op op,
                            const mpl_cuda_choice *choice, mpl_cuda_dnn **out,
                            uint64_t *workspace_bytes, const char **how);
void host_dnn_release(mpl_ctx *ctx, mpl_cuda_dnn *dnn);
int host_dnn_run(const mpl_cuda_work *work);

/* Descriptors, from now on until host_give_back, are those of the cuDNN that is found
 * (MEMPLAN_CUDNN: its folder; else where the loader looks): it needs no device to refuse one, or to
 * say what a convolution leaves. Nothing can run. False: there is none. */
bool host_borrow(void);
void host_give_back(void);

#endif
