/* dnn_common.c -- shared by the descriptions of cuDNN calls. See dnn_priv.h. */
#include <mpl_config.h>

#if MPL_HAVE_CUDA

#include "runtime/cuda/dnn/dnn_priv.h"

bool mpl_dnn_tensor(const mpl_dnn_maker *maker, cudnnTensorDescriptor_t *t, uint32_t n,
                    const int64_t *dim)
{
    int size[MPL_DNN_DIMS] = {1, 1, 1, 1, 1}, stride[MPL_DNN_DIMS], whole = 1,
        rank = n < 4 ? 4 : (int)n;

    if (n > MPL_DNN_DIMS)
        return false;
    for (uint32_t i = 0; i < n; i++)
        size[i] = (int)dim[i];
    for (int i = rank; i-- > 0;) {
        stride[i] = whole;
        whole *= size[i];
    }
    return maker->lib->cudnnCreateTensorDescriptor(t) == CUDNN_STATUS_SUCCESS &&
           maker->lib->cudnnSetTensorNdDescriptor(*t, CUDNN_DATA_FLOAT, rank, size, stride) ==
               CUDNN_STATUS_SUCCESS;
}

void mpl_dnn_ints(const mpl_dnn_maker *maker, mpl_attr_key key, uint32_t n, int64_t otherwise,
                  int *out)
{
    uint32_t given;
    const int64_t *ints = mpl_attr_ints(maker->g, maker->op, key, &given);

    for (uint32_t i = 0; i < n; i++)
        out[i] = (int)(given == n ? ints[i] : otherwise);
}

bool mpl_dnn_pads(const mpl_dnn_maker *maker, uint32_t n, int *pad)
{
    int both[2 * MPL_DNN_DIMS];

    mpl_dnn_ints(maker, MPL_ATTR_pads, 2 * n, 0, both);
    for (uint32_t i = 0; i < n; i++) {
        if (both[i] != both[n + i])
            return false;
        pad[i] = both[i];
    }
    return true;
}

#endif
