/* halves_round.c -- 16-bit floats to f32 and back. See halves_priv.h. */
#include "runtime/cpu/halves_priv.h"

#include "graphs/ops/ops_priv.h"
#include "runtime/cpu/loops/chain_priv.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define WITH_F16C __attribute__((target("avx,f16c")))

/* All processors that have AVX2 have F16C; clang 14 cannot ask for that. */
static bool has_f16c(void)
{
    return mpl_chain_widest() != MPL_CHAIN_PLAIN;
}

/* Elements done; the rest, fewer than 8, is the caller's. */
WITH_F16C static int64_t widen_f16c(float *to, const uint16_t *from, int64_t n)
{
    int64_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from + i))));
    return i;
}

WITH_F16C static int64_t round_f16c(uint16_t *to, const float *from, int64_t n)
{
    int64_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((void *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}
#else
static bool has_f16c(void)
{
    return false;
}
static int64_t widen_f16c(float *to, const uint16_t *from, int64_t n)
{
    return (void)to, (void)from, (void)n, 0;
}
static int64_t round_f16c(uint16_t *to, const float *from, int64_t n)
{
    return (void)to, (void)from, (void)n, 0;
}
#endif

/* A NaN becomes the one that mpl_to_bf16 makes. */
static inline uint16_t rounded_bf16(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7fffffff) > 0x7f800000 ? (uint16_t)((bits >> 16 & 0x8000) | 0x7fc0)
                                            : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

enum { AT_ONCE = 32 }; /* a constant count, so that compilers vectorise */

static void round_bf16(uint16_t *restrict to, const float *restrict from, int64_t n)
{
    int64_t i = 0;

    for (; i + AT_ONCE <= n; i += AT_ONCE)
        for (int64_t k = 0; k < AT_ONCE; k++)
            to[i + k] = rounded_bf16(from[i + k]);
    for (; i < n; i++)
        to[i] = rounded_bf16(from[i]);
}

static void widen_bf16(float *restrict to, const uint16_t *restrict from, int64_t n)
{
    int64_t i = 0;

    for (; i + AT_ONCE <= n; i += AT_ONCE)
        for (int64_t k = 0; k < AT_ONCE; k++)
            to[i + k] = mpl_from_bf16(from[i + k]);
    for (; i < n; i++)
        to[i] = mpl_from_bf16(from[i]);
}

void mpl_half_widen(mpl_type type, float *to, const uint16_t *from, int64_t n)
{
    if (type == MPL_TYPE_bf16) {
        widen_bf16(to, from, n);
        return;
    }
    for (int64_t i = has_f16c() ? widen_f16c(to, from, n) : 0; i < n; i++)
        to[i] = mpl_from_f16(from[i]);
}

void mpl_half_round(mpl_type type, uint16_t *to, const float *from, int64_t n)
{
    if (type == MPL_TYPE_bf16) {
        round_bf16(to, from, n);
        return;
    }
    for (int64_t i = has_f16c() ? round_f16c(to, from, n) : 0; i < n; i++)
        to[i] = mpl_to_f16((double)from[i]);
}
