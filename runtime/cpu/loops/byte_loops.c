/* byte_loops.c -- see byte_loops.h. */
#include "runtime/cpu/loops/byte_loops.h"
#include "runtime/cpu/loops/chain_priv.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))

/* 1.5 * 2^23. Added to a small float and taken away, it rounds it half to even. */
#define ROUNDER 12582912.0f

/* ---- one element ---- */

/* Clamped before it is rounded: low and high are whole, so that is the same. */
INLINE uint8_t steps_of(float x, const mpl_byte_range *r)
{
    float low = r->low - r->zero, high = r->high - r->zero;
    float inside = x < low ? low : x > high ? high : x, known = x != x ? -r->zero : inside;

    return (uint8_t)((int32_t)((known + ROUNDER) - ROUNDER) + (int32_t)r->zero);
}

/* ---- loops ---- */

INLINE void quantize_body(uint8_t *restrict y, const float *restrict x, float scale,
                          const mpl_byte_range *r, int64_t n)
{
    const mpl_byte_range own = *r;

    for (int64_t i = 0; i < n; i++)
        y[i] = steps_of(x[i] / scale, &own);
}

INLINE void dequantize_body(float *restrict y, const uint8_t *restrict x, bool is_signed,
                            float zero, float scale, int64_t n)
{
    if (is_signed)
        for (int64_t i = 0; i < n; i++)
            y[i] = ((float)(int8_t)x[i] - zero) * scale;
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = ((float)x[i] - zero) * scale;
}

INLINE void bounds_body(const float *x, int64_t n, float *least, float *most)
{
    enum { LANES = 64 }; /* extremes do not depend on the order */
    float low[LANES] = {0}, high[LANES] = {0};
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int64_t k = 0; k < LANES; k++) {
            low[k] = x[i + k] < low[k] ? x[i + k] : low[k];
            high[k] = x[i + k] > high[k] ? x[i + k] : high[k];
        }
    for (; i < n; i++) {
        low[0] = x[i] < low[0] ? x[i] : low[0];
        high[0] = x[i] > high[0] ? x[i] : high[0];
    }
    *least = *most = 0;
    for (int64_t k = 0; k < LANES; k++) {
        *least = low[k] < *least ? low[k] : *least;
        *most = high[k] > *most ? high[k] : *most;
    }
}

INLINE void sums_to_bytes_body(uint8_t *restrict y, const int32_t *restrict sum,
                               const double *restrict bias, const float *restrict scale,
                               const mpl_byte_range *r, int64_t n)
{
    const mpl_byte_range own = *r;

    for (int64_t i = 0; i < n; i++)
        y[i] = steps_of((float)((double)sum[i] + bias[i]) * scale[i], &own);
}

INLINE void sums_to_floats_body(float *restrict y, const int32_t *restrict sum,
                                const double *restrict bias, const float *restrict scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)((double)((float)sum[i] * scale[i]) + bias[i]);
}

INLINE void ints_to_floats_body(float *restrict y, const int32_t *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)x[i];
}

/* The loops for one width; `target` (may be empty) is the compiler's word for it. */
#define LOOPS(width, target)                                                                       \
    target static void quantize_##width(uint8_t *y, const float *x, float scale,                   \
                                        const mpl_byte_range *r, int64_t n)                        \
    {                                                                                              \
        quantize_body(y, x, scale, r, n);                                                          \
    }                                                                                              \
    target static void dequantize_##width(float *y, const uint8_t *x, bool is_signed, float zero,  \
                                          float scale, int64_t n)                                  \
    {                                                                                              \
        dequantize_body(y, x, is_signed, zero, scale, n);                                          \
    }                                                                                              \
    target static void bounds_##width(const float *x, int64_t n, float *least, float *most)        \
    {                                                                                              \
        bounds_body(x, n, least, most);                                                            \
    }                                                                                              \
    target static void sums_to_bytes_##width(uint8_t *y, const int32_t *sum, const double *bias,   \
                                             const float *scale, const mpl_byte_range *r,          \
                                             int64_t n)                                            \
    {                                                                                              \
        sums_to_bytes_body(y, sum, bias, scale, r, n);                                             \
    }                                                                                              \
    target static void sums_to_floats_##width(float *y, const int32_t *sum, const double *bias,    \
                                              const float *scale, int64_t n)                       \
    {                                                                                              \
        sums_to_floats_body(y, sum, bias, scale, n);                                               \
    }                                                                                              \
    target static void ints_to_floats_##width(float *y, const int32_t *x, int64_t n)               \
    {                                                                                              \
        ints_to_floats_body(y, x, n);                                                              \
    }
#define TABLE(width, text)                                                                         \
    {                                                                                              \
        text, quantize_##width, dequantize_##width, bounds_##width, sums_to_bytes_##width,         \
            sums_to_floats_##width, ints_to_floats_##width                                         \
    }

LOOPS(plain, )
#if defined(__x86_64__)
LOOPS(avx2, __attribute__((target("avx2"))))
LOOPS(avx512, MPL_TARGET_AVX512)
#else
#define quantize_avx2         quantize_plain
#define dequantize_avx2       dequantize_plain
#define bounds_avx2           bounds_plain
#define sums_to_bytes_avx2    sums_to_bytes_plain
#define sums_to_floats_avx2   sums_to_floats_plain
#define ints_to_floats_avx2   ints_to_floats_plain
#define quantize_avx512       quantize_plain
#define dequantize_avx512     dequantize_plain
#define bounds_avx512         bounds_plain
#define sums_to_bytes_avx512  sums_to_bytes_plain
#define sums_to_floats_avx512 sums_to_floats_plain
#define ints_to_floats_avx512 ints_to_floats_plain
#endif

static const mpl_byte_loops loops[MPL_N_CHAIN_WIDTHS] = {
    TABLE(plain, "bytes"), TABLE(avx2, "bytes:avx2"), TABLE(avx512, "bytes:avx512")};

const mpl_byte_loops *mpl_byte_loops_here(void)
{
    return &loops[mpl_chain_widest()];
}

/* ---- transposition ---- */

enum { SIDE = 16 };

#if defined(__x86_64__)
/* Each round interleaves row k with row k + 8: the 8 bits of a byte's place, row before column,
 * turn by one, so that after four rounds rows are columns. */
static void turn_block(const uint8_t *from, int64_t from_apart, uint8_t *to, int64_t to_apart)
{
    __m128i row[2][SIDE];

    for (int i = 0; i < SIDE; i++)
        row[0][i] = _mm_loadu_si128((const void *)(from + i * from_apart));
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < SIDE / 2; i++) {
            const __m128i *old = row[round & 1];

            row[~round & 1][2 * i] = _mm_unpacklo_epi8(old[i], old[i + SIDE / 2]);
            row[~round & 1][2 * i + 1] = _mm_unpackhi_epi8(old[i], old[i + SIDE / 2]);
        }
    for (int i = 0; i < SIDE; i++)
        _mm_storeu_si128((void *)(to + i * to_apart), row[0][i]);
}
#else
static void turn_block(const uint8_t *from, int64_t from_apart, uint8_t *to, int64_t to_apart)
{
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            to[j * to_apart + i] = from[i * from_apart + j];
}
#endif

void mpl_turn_bytes(const uint8_t *from, int64_t from_apart, uint8_t *to, int64_t to_apart,
                    int64_t rows, int64_t columns)
{
    int64_t whole_rows = rows / SIDE * SIDE, whole_columns = columns / SIDE * SIDE;

    for (int64_t j = 0; j < whole_columns; j += SIDE)
        for (int64_t i = 0; i < whole_rows; i += SIDE)
            turn_block(from + i * from_apart + j, from_apart, to + j * to_apart + i, to_apart);
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; i++)
            to[j * to_apart + i] = from[i * from_apart + j];
}

void mpl_turn_words(const int32_t *from, int64_t from_apart, int32_t *to, int64_t to_apart,
                    int64_t rows, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            to[j * to_apart + i] = from[i * from_apart + j];
}
