/* kernels_priv.h -- shared by all files of device kernels: words for what C11 and CUDA C++ name
 * differently, elements of any type, their offsets, and reductions by a block. See kernels.cu. */
#pragma once

#include "runtime/cuda/kernels.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define KERNEL static __global__ void
#define DEVICE static __device__ __forceinline__
#define SHARED __shared__
#define LAUNCH(kernel, blocks, threads, stream, k)                                                 \
    kernel<<<(unsigned)(blocks), (unsigned)(threads), 0, (cudaStream_t)(stream)>>>(k)
#define MEET() __syncthreads()

DEVICE double from_f16(uint16_t bits)
{
    return (double)__half2float(__ushort_as_half(bits));
}
DEVICE double from_bf16(uint16_t bits)
{
    return (double)__bfloat162float(__ushort_as_bfloat16(bits));
}
DEVICE uint16_t to_f16(double x)
{
    return __half_as_ushort(__double2half(x));
}
DEVICE uint16_t to_bf16(double x)
{
    return __bfloat16_as_ushort(__double2bfloat16(x));
}
#else
#include <math.h>
#endif

#define THREADS     256
#define MOST_BLOCKS (1 << 20)

#define FIRST_THREAD ((int64_t)blockIdx.x * (int64_t)blockDim.x + (int64_t)threadIdx.x)
#define ALL_THREADS  ((int64_t)gridDim.x * (int64_t)blockDim.x)

/* Each thread takes every ALL_THREADS-th of n items. */
#define FOR_EACH(i, n) for (int64_t i = FIRST_THREAD; i < (n); i += ALL_THREADS)

/* ---- elements ---- */

DEVICE int is_float(int type)
{
    return type <= MPL_TYPE_bf16;
}

DEVICE int64_t to_int(double x)
{
    if (x >= 9223372036854775808.0)
        return INT64_MAX;
    if (x < -9223372036854775808.0)
        return INT64_MIN;
    return x == x ? (int64_t)x : 0;
}

DEVICE int64_t get_int(int type, const void *data, int64_t i)
{
    switch (type) {
    case MPL_TYPE_i64:
        return ((const int64_t *)data)[i];
    case MPL_TYPE_i32:
        return ((const int32_t *)data)[i];
    case MPL_TYPE_i8:
        return ((const int8_t *)data)[i];
    case MPL_TYPE_u8:
        return ((const uint8_t *)data)[i];
    default:
        return ((const uint8_t *)data)[i] != 0;
    }
}

DEVICE void put_int(int type, void *data, int64_t i, int64_t x)
{
    switch (type) {
    case MPL_TYPE_i64:
        ((int64_t *)data)[i] = x;
        break;
    case MPL_TYPE_i32:
        ((int32_t *)data)[i] = (int32_t)(uint32_t)x;
        break;
    case MPL_TYPE_i8:
        ((int8_t *)data)[i] = (int8_t)(uint8_t)x;
        break;
    case MPL_TYPE_u8:
        ((uint8_t *)data)[i] = (uint8_t)x;
        break;
    default:
        ((uint8_t *)data)[i] = x != 0;
    }
}

DEVICE double get(int type, const void *data, int64_t i)
{
    switch (type) {
    case MPL_TYPE_f32:
        return (double)((const float *)data)[i];
    case MPL_TYPE_f64:
        return ((const double *)data)[i];
    case MPL_TYPE_f16:
        return from_f16(((const uint16_t *)data)[i]);
    case MPL_TYPE_bf16:
        return from_bf16(((const uint16_t *)data)[i]);
    default:
        return (double)get_int(type, data, i);
    }
}

DEVICE void put(int type, void *data, int64_t i, double x)
{
    switch (type) {
    case MPL_TYPE_f32:
        ((float *)data)[i] = (float)x;
        break;
    case MPL_TYPE_f64:
        ((double *)data)[i] = x;
        break;
    case MPL_TYPE_f16:
        ((uint16_t *)data)[i] = to_f16(x);
        break;
    case MPL_TYPE_bf16:
        ((uint16_t *)data)[i] = to_bf16(x);
        break;
    case MPL_TYPE_bool:
        ((uint8_t *)data)[i] = x != 0;
        break;
    default:
        put_int(type, data, i, to_int(x));
    }
}

/* In float for elements stored as float: avoids double, whose units are few on many devices. */
DEVICE float get_float(int type, const void *data, int64_t i)
{
    return type == MPL_TYPE_f32 ? ((const float *)data)[i] : (float)get(type, data, i);
}

DEVICE void put_float(int type, void *data, int64_t i, float x)
{
    if (type == MPL_TYPE_f32)
        ((float *)data)[i] = x;
    else
        put(type, data, i, (double)x);
}

/* The least number of an integer type: the maximum of an empty window. */
DEVICE int64_t lowest(int type)
{
    return type == MPL_TYPE_i64   ? INT64_MIN
           : type == MPL_TYPE_i32 ? INT32_MIN
           : type == MPL_TYPE_i8  ? INT8_MIN
                                  : 0;
}

typedef struct mpl_cuda_element16 {
    uint64_t low, high;
} mpl_cuda_element16;

DEVICE void copy_element(int bytes, void *to, int64_t i, const void *from, int64_t j)
{
    switch (bytes) {
    case 1:
        ((uint8_t *)to)[i] = ((const uint8_t *)from)[j];
        break;
    case 2:
        ((uint16_t *)to)[i] = ((const uint16_t *)from)[j];
        break;
    case 4:
        ((uint32_t *)to)[i] = ((const uint32_t *)from)[j];
        break;
    case 8:
        ((uint64_t *)to)[i] = ((const uint64_t *)from)[j];
        break;
    default:
        ((mpl_cuda_element16 *)to)[i] = ((const mpl_cuda_element16 *)from)[j];
    }
}

/* The last index of a row-major position in dims that end in `dim`; *rest becomes the position
 * before it. Uses 32-bit division if it fits, because 64-bit division is several times slower. */
DEVICE int64_t last_index(int64_t *rest, int64_t dim)
{
    int64_t whole = *rest;

    if (((whole | dim) >> 32) == 0) {
        uint32_t a = (uint32_t)whole, b = (uint32_t)dim;

        *rest = a / b;
        return a % b;
    }
    *rest = whole / dim;
    return whole % dim;
}

DEVICE int64_t offset_of(int64_t i, int rank, const int64_t *dim, const int64_t *stride)
{
    int64_t offset = 0;

    for (int d = rank - 1; d > 0; d--)
        offset += last_index(&i, dim[d]) * stride[d];
    return rank > 0 ? offset + i * stride[0] : 0;
}

/* ---- lanes and blocks ---- */

DEVICE int64_t lane_base(const mpl_cuda_kernel *k, int64_t lane)
{
    int64_t inner = last_index(&lane, k->as.lanes.inner);

    return lane * k->as.lanes.n * k->as.lanes.inner + inner;
}

typedef enum fold { FOLD_SUM, FOLD_PRODUCT, FOLD_MOST, FOLD_LEAST } fold;

DEVICE double combine(fold how, double a, double v)
{
    switch (how) {
    case FOLD_PRODUCT:
        return a * v;
    case FOLD_MOST:
        return v > a || v != v ? v : a;
    case FOLD_LEAST:
        return v < a || v != v ? v : a;
    default:
        return a + v;
    }
}

/* Folds one value of each thread into one number, which all threads receive. The order depends only
 * on the block's size, a power of two. `room` holds one number for each thread. */
DEVICE double block_fold(fold how, double *room, double value)
{
    room[threadIdx.x] = value;
    MEET();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            room[threadIdx.x] = combine(how, room[threadIdx.x], room[threadIdx.x + half]);
        MEET();
    }
    value = room[0];
    MEET();
    return value;
}

/* ---- windows ---- */

/* The input element along axis d that kernel element t of output element o sees; -1: none. */
DEVICE int64_t seen_by(const mpl_cuda_window *window, int d, int64_t o, int64_t t)
{
    int64_t at = o * window->stride[d] - window->before[d] + t * window->dilation[d];

    return at >= 0 && at < window->in[d] ? at : -1;
}

/* Elements of the window of output o along axis d that lie in the input or its padding. */
DEVICE int64_t padded_count(const mpl_cuda_window *window, int d, int64_t o)
{
    int64_t n = 0;

    for (int64_t t = 0; t < window->kernel[d]; t++)
        n += o * window->stride[d] + t * window->dilation[d] <
             window->in[d] + window->before[d] + window->after[d];
    return n;
}

/* ---- launching ---- */

static inline int64_t blocks_for(int64_t n, int64_t a_block)
{
    int64_t blocks = (n + a_block - 1) / a_block;

    return blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
}

/* Threads of a block that shares n items: a power of two, whole warps. */
static inline int threads_for(int64_t n)
{
    int threads = 32;

    while (threads < THREADS && threads < n)
        threads *= 2;
    return threads;
}

/* A case of a launcher's switch. Threads share the k->n items, or each item has a block whose
 * threads share `things`. */
#define EACH(id, kernel)                                                                           \
    case id:                                                                                       \
        LAUNCH(kernel, blocks_for(k->n, THREADS), THREADS, stream, *k);                            \
        break
#define BLOCKS(id, kernel, things)                                                                 \
    case id:                                                                                       \
        LAUNCH(kernel, blocks_for(k->n, 1), threads_for(things), stream, *k);                      \
        break
