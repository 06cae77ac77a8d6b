/* images_conv.c -- convolutions of channels-last images: the innermost loops. See images.h.
 *
 * A tile is a few pixels of the result by a few vectors of its channels. It stays in registers
 * while the loop passes over all of x that it depends on: each element of x is broadcast to a
 * vector and multiplied with the filters' vectors. Pixels may lie anywhere, so rows, pads, strides
 * and images do not matter. */
#include "runtime/cpu/images.h"

#include "runtime/cpu/loops/chain_priv.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
/* Compiled once for all tiles: what runs once for each tile. */
#define ONCE   static __attribute__((noinline))
#define UNROLL _Pragma("GCC unroll 16")

/* Start of a pixel of a tile in x, for filter element (0, 0); it may lie outside x. */
typedef struct corner {
    const float *image;
    int64_t row, column;
} corner;

INLINE corner corner_of(const mpl_image_window *w, const float *x, int64_t pixel)
{
    int64_t plane = w->out_high * w->out_wide, at = pixel % plane;

    return (corner){x + pixel / plane * w->high * w->wide * w->x_pitch,
                    at / w->out_wide * w->stride[0] - w->pad[0],
                    at % w->out_wide * w->stride[1] - w->pad[1]};
}

INLINE const float *pixel_at(const mpl_image_tile *t, corner c, int64_t i, int64_t k)
{
    const mpl_image_window *w = t->window;
    int64_t row = c.row + i * w->dilation[0], column = c.column + k * w->dilation[1];

    if (row < 0 || row >= w->high || column < 0 || column >= w->wide)
        return t->nothing;
    return c.image + (row * w->wide + column) * w->x_pitch;
}

/* TILE(..) defines tile_<name>, inlined for constant numbers of vectors n_v and pixels n_p. */
#define TILE(name, isa, vector, lanes, zero, load, spread, store, madd, plus, least, most)         \
    __attribute__((target(isa)))                                                                   \
    ONCE void finish_##name(const mpl_image_tile *t, int64_t pixel, int v, vector sum)             \
    {                                                                                              \
        const mpl_image_window *w = t->window;                                                     \
        int64_t channel = t->channel + v * lanes, left = w->out_channels - channel;                \
        const float *bias = t->bias != NULL ? t->bias + channel : NULL;                            \
        const float *added = t->sum != NULL ? t->sum + pixel * w->sum_pitch + channel : NULL;      \
        float *y = t->y + pixel * w->y_pitch + channel, part[3][lanes];                            \
        size_t bytes = sizeof(float) * (size_t)(left < lanes ? left : lanes);                      \
                                                                                                   \
        if (left <= 0)                                                                             \
            return;                                                                                \
        if (left < lanes) {                                                                        \
            memset(part, 0, sizeof part);                                                          \
            if (bias != NULL)                                                                      \
                bias = memcpy(part[0], bias, bytes);                                               \
            if (added != NULL)                                                                     \
                added = memcpy(part[1], added, bytes);                                             \
        }                                                                                          \
        if (bias != NULL)                                                                          \
            sum = plus(sum, load(bias));                                                           \
        if (added != NULL)                                                                         \
            sum = plus(sum, load(added));                                                          \
        sum = least(spread(t->high), most(spread(t->low), sum)); /* keeps a NaN of sum */          \
        store(left < lanes ? part[2] : y, sum);                                                    \
        if (left < lanes)                                                                          \
            memcpy(y, part[2], bytes);                                                             \
    }                                                                                              \
    __attribute__((target(isa)))                                                                   \
    INLINE void tile_##name(const mpl_image_tile *t, const int n_v, const int n_p)                 \
    {                                                                                              \
        const mpl_image_window *w = t->window;                                                     \
        const float *filter = t->filter, *x[MPL_IMAGE_PIXELS];                                     \
        vector sum[MPL_IMAGE_PIXELS][MPL_IMAGE_VECTORS], f[MPL_IMAGE_VECTORS];                     \
        corner from[MPL_IMAGE_PIXELS];                                                             \
                                                                                                   \
        UNROLL for (int p = 0; p < n_p; p++)                                                       \
        {                                                                                          \
            from[p] = corner_of(w, t->x, t->from + p);                                             \
            UNROLL for (int v = 0; v < n_v; v++) sum[p][v] = zero();                               \
        }                                                                                          \
        for (int64_t i = 0; i < w->kernel[0] * w->kernel[1]; i++) {                                \
            bool any = false;                                                                      \
                                                                                                   \
            UNROLL for (int p = 0; p < n_p; p++)                                                   \
            {                                                                                      \
                x[p] = pixel_at(t, from[p], i / w->kernel[1], i % w->kernel[1]);                   \
                any = any || x[p] != t->nothing;                                                   \
            }                                                                                      \
            if (!any) { /* pads alone, as those of large dilations */                              \
                filter += n_v * lanes * w->channels;                                               \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t c = 0; c < w->channels; c++, filter += n_v * lanes) {                     \
                UNROLL for (int v = 0; v < n_v; v++) f[v] = load(filter + v * lanes);              \
                UNROLL for (int p = 0; p < n_p; p++)                                               \
                {                                                                                  \
                    vector e = spread(x[p][c]);                                                    \
                                                                                                   \
                    UNROLL for (int v = 0; v < n_v; v++) sum[p][v] = madd(e, f[v], sum[p][v]);     \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        UNROLL for (int p = 0; p < n_p; p++) UNROLL for (int v = 0; v < n_v; v++)                  \
            finish_##name(t, t->from + p, v, sum[p][v]);                                           \
    }

TILE(avx512, "avx512f", __m512, 16, _mm512_setzero_ps, _mm512_loadu_ps, _mm512_set1_ps,
     _mm512_storeu_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_min_ps, _mm512_max_ps)
TILE(avx2, "avx2,fma", __m256, 8, _mm256_setzero_ps, _mm256_loadu_ps, _mm256_set1_ps,
     _mm256_storeu_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_min_ps, _mm256_max_ps)

#define SIX(M, name, isa, v)                                                                       \
    M(name, isa, v, 1)                                                                             \
    M(name, isa, v, 2) M(name, isa, v, 3) M(name, isa, v, 4) M(name, isa, v, 5) M(name, isa, v, 6)
#define EIGHT(M, name, isa, v) SIX(M, name, isa, v) M(name, isa, v, 7) M(name, isa, v, 8)
#define TWELVE(M, name, isa, v)                                                                    \
    EIGHT(M, name, isa, v)                                                                         \
    M(name, isa, v, 9) M(name, isa, v, 10) M(name, isa, v, 11) M(name, isa, v, 12)
#define AVX512(M)                                                                                  \
    TWELVE(M, avx512, "avx512f", 1)                                                                \
    TWELVE(M, avx512, "avx512f", 2) EIGHT(M, avx512, "avx512f", 3) SIX(M, avx512, "avx512f", 4)
#define AVX2(M) TWELVE(M, avx2, "avx2,fma", 1) SIX(M, avx2, "avx2,fma", 2)

#define MAKE(name, isa, v, p)                                                                      \
    __attribute__((target(isa))) static void name##_##v##_##p(const mpl_image_tile *t)             \
    {                                                                                              \
        tile_##name(t, v, p);                                                                      \
    }
#define ENTER(name, isa, v, p) [v][p] = name##_##v##_##p,

AVX512(MAKE)
AVX2(MAKE)

static const mpl_image_kernels avx512 = {
    .how = "images:avx512",
    .lanes = 16,
    .most_vectors = 4,
    .most_pixels = {0, 12, 12, 8, 6},
    .kernel = {AVX512(ENTER)},
};
static const mpl_image_kernels avx2 = {
    .how = "images:avx2",
    .lanes = 8,
    .most_vectors = 2,
    .most_pixels = {0, 12, 6},
    .kernel = {AVX2(ENTER)},
};
#endif

const mpl_image_kernels *mpl_image_kernels_here(void)
{
#if defined(__x86_64__)
    if (mpl_chain_widest() == MPL_CHAIN_AVX512)
        return &avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &avx2;
#endif
    return NULL;
}
