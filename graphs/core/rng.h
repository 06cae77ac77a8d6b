/* rng.h -- the only random number generator: SplitMix64 (Steele, Lea, Flood, 2014), the same on
 * every machine. */
#pragma once

#include <stdint.h>

typedef struct mpl_rng {
    uint64_t state;
} mpl_rng;

static inline mpl_rng mpl_rng_of(uint64_t seed)
{
    return (mpl_rng){.state = seed};
}

static inline void mpl_rng_init(mpl_rng *rng, uint64_t seed)
{
    *rng = mpl_rng_of(seed);
}

/* The last step of SplitMix64: a bijection in which each bit of z flips about half of the bits. */
static inline uint64_t mpl_rng_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform over all 64-bit values. */
static inline uint64_t mpl_rng_next(mpl_rng *rng)
{
    return mpl_rng_mix(rng->state += UINT64_C(0x9e3779b97f4a7c15));
}

/* Uniform in [0, n), 0 < n <= 2^32, by multiplication of the upper half; bias below n / 2^32. */
static inline uint64_t mpl_rng_below(mpl_rng *rng, uint64_t n)
{
    return ((mpl_rng_next(rng) >> 32) * n) >> 32;
}

/* Uniform in [0, 1), with 24 bits: exact in a float. */
static inline float mpl_rng_float(mpl_rng *rng)
{
    return (float)(mpl_rng_next(rng) >> 40) * 0x1p-24f;
}
