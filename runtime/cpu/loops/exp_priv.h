/* exp_priv.h -- the exponential function in arithmetic that compilers vectorise. */
#ifndef MPL_EXP_PRIV_H
#define MPL_EXP_PRIV_H

#include "runtime/cpu/loops/chain_priv.h"

#define INLINE static inline __attribute__((always_inline))

/* 1.5 * 2^23. Added to it, a float near 0 is rounded to an integer in the last bits. */
#define ROUNDER 12582912.0f

INLINE uint32_t bits(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

INLINE float from_bits(uint32_t u)
{
    float x;

    memcpy(&x, &u, sizeof x);
    return x;
}

/* x = n ln 2 + *r and exp(*r) = 1 + *grown. Returns n + ROUNDER. */
INLINE float split_exp(float x, float *grown)
{
    float t = x * 1.44269504f + ROUNDER, n = t - ROUNDER;
    float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    float q = 1.0f / 5040;

    q = q * r + 1.0f / 720;
    q = q * r + 1.0f / 120;
    q = q * r + 1.0f / 24;
    q = q * r + 1.0f / 6;
    q = q * r + 0.5f;
    *grown = r + r * r * q;
    return t;
}

#endif
