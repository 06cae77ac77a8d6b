/* real_priv.h -- the real driver and its libraries; shared by real.c, nvml.c and dnn*.c. Only this
 * header and kernels_priv.h include CUDA's.
 *
 * CUDA's runtime is linked statically; it looks for the driver at its first call. cuDNN and cuBLAS
 * are opened together with a device. So the program starts without any of them, and says why cuda
 * is absent. */
#pragma once

#include "runtime/cuda/api.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#define MPL_CUDNN_CALLS(CALL)                                                                      \
    CALL(cudnnGetVersion)                                                                          \
    CALL(cudnnGetErrorString)                                                                      \
    CALL(cudnnCreate)                                                                              \
    CALL(cudnnDestroy)                                                                             \
    CALL(cudnnSetStream)                                                                           \
    CALL(cudnnCreateTensorDescriptor)                                                              \
    CALL(cudnnDestroyTensorDescriptor)                                                             \
    CALL(cudnnSetTensorNdDescriptor)                                                               \
    CALL(cudnnCreateFilterDescriptor)                                                              \
    CALL(cudnnDestroyFilterDescriptor)                                                             \
    CALL(cudnnSetFilterNdDescriptor)                                                               \
    CALL(cudnnCreateConvolutionDescriptor)                                                         \
    CALL(cudnnDestroyConvolutionDescriptor)                                                        \
    CALL(cudnnSetConvolutionNdDescriptor)                                                          \
    CALL(cudnnSetConvolutionGroupCount)                                                            \
    CALL(cudnnSetConvolutionMathType)                                                              \
    CALL(cudnnGetConvolutionForwardAlgorithm_v7)                                                   \
    CALL(cudnnGetConvolutionForwardWorkspaceSize)                                                  \
    CALL(cudnnConvolutionForward)                                                                  \
    CALL(cudnnGetConvolutionBackwardDataAlgorithm_v7)                                              \
    CALL(cudnnGetConvolutionBackwardDataWorkspaceSize)                                             \
    CALL(cudnnConvolutionBackwardData)                                                             \
    CALL(cudnnGetConvolutionBackwardFilterAlgorithm_v7)                                            \
    CALL(cudnnGetConvolutionBackwardFilterWorkspaceSize)                                           \
    CALL(cudnnConvolutionBackwardFilter)                                                           \
    CALL(cudnnConvolutionBackwardBias)                                                             \
    CALL(cudnnAddTensor)                                                                           \
    CALL(cudnnCreateActivationDescriptor)                                                          \
    CALL(cudnnDestroyActivationDescriptor)                                                         \
    CALL(cudnnSetActivationDescriptor)                                                             \
    CALL(cudnnActivationForward)

#define MPL_CUBLAS_CALLS(CALL)                                                                     \
    CALL(cublasCreate_v2)                                                                          \
    CALL(cublasDestroy_v2)                                                                         \
    CALL(cublasSetStream_v2)                                                                       \
    CALL(cublasSetWorkspace_v2)                                                                    \
    CALL(cublasGemmStridedBatchedEx)

typedef struct mpl_cuda_library {
#define CALL(name) __typeof__(name) *name;
    MPL_CUDNN_CALLS(CALL)
    MPL_CUBLAS_CALLS(CALL)
#undef CALL
    int (*launch)(const mpl_cuda_kernel *k, void *stream); /* our own kernels */
} mpl_cuda_library;

typedef struct mpl_nvml mpl_nvml; /* nvml.c */

struct mpl_cuda {
    mpl_nvml *nvml; /* NULL: absent */
    const mpl_cuda_library *library;
    cudnnHandle_t dnn;
    cublasHandle_t blas;
    void *stream; /* the stream that both libraries were given last */
    char about[300];
};

/* Codes of the three libraries in one space: CUDA's own, then these plus cuDNN's or cuBLAS's. */
#define MPL_CUDNN_CODE  0x10000
#define MPL_CUBLAS_CODE 0x20000

/* nvml.c: *out stays NULL if the library is absent or does not know the device. mpl_nvml_clocks is
 * `clocks` of the table; it returns nonzero for NULL. */
mpl_status mpl_nvml_open(mpl_ctx *ctx, int device, mpl_nvml **out);
void mpl_nvml_close(mpl_ctx *ctx, mpl_nvml *nvml);
int mpl_nvml_clocks(mpl_nvml *nvml, mpl_device_clocks *out);

/* dnn.c: the entries of mpl_cuda_api; mpl_dnn_run runs what dnn_prepare made. */
mpl_status mpl_dnn_prepare(mpl_ctx *ctx, mpl_cuda *cuda, const mpl_graph *g, mpl_op op,
                           const mpl_cuda_choice *choice, mpl_cuda_dnn **out,
                           uint64_t *workspace_bytes, const char **how);
void mpl_dnn_release(mpl_ctx *ctx, mpl_cuda *cuda, mpl_cuda_dnn *dnn);
int mpl_dnn_run(mpl_cuda *cuda, const mpl_cuda_work *work, cudaStream_t stream);
