/* cuda.c -- the cuda backend: absent from this version; listed with the reason, so that its absence is seen. */
#include "runtime/backend.h"

const mpl_backend mpl_backend_cuda = {
    .name = "cuda",
    .about = "NVIDIA GPUs through CUDA and cuDNN",
    .absent = "this version of memplan has no GPU backend yet",
    .align = 128,
};
