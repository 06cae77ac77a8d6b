/* chain_steps.c -- the loops of single steps, each written once and compiled for several vector
 * widths; and sharing of work among threads. See chain_priv.h.
 *
 * exp, sigmoid, tanh, sin and cos are Taylor series about a whole multiple of ln 2 or pi / 2, which
 * is subtracted in parts whose products are exact; erf is two polynomials in Chebyshev's points.
 * They are within 3 units of the last place, or 1e-10 (tests/runtime/test_runtime_chain.c). The
 * others are exact or libm's, element by element.
 * Branches are selections, so that a compiler can vectorise them. */
#include "runtime/cpu/loops/exp_priv.h"
#include "graphs/ir/counts.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>

/* The power of two has two factors: one could not reach the smallest and largest floats. */
INLINE float exp_of(float x)
{
    float low = x < -104 ? -104 : x, inside = low > 89 ? 89 : low, grown;
    uint32_t n = bits(split_exp(inside, &grown)) - bits(ROUNDER) + 256, half = n >> 1;

    return (1 + grown) * from_bits((half - 1) << 23) * from_bits((n - half - 1) << 23);
}

INLINE float sigmoid_of(float x)
{
    float e = exp_of(-fabsf(x));

    return (x < 0 ? e : 1) / (1 + e);
}

/* By exp(2 |x|) - 1, which keeps its precision near 0. */
INLINE float tanh_of(float x)
{
    float twice = 2 * fabsf(x), grown, scale, less;

    twice = twice > 20 ? 20 : twice;
    scale = from_bits((bits(split_exp(twice, &grown)) + 127) << 23);
    less = scale * grown + (scale - 1);
    return from_bits(bits(less / (less + 2)) | (bits(x) & UINT32_C(0x80000000)));
}

/* ---- erf ---- */

/* erf(x) / x - 1 in x^2 up to 1; beyond it, -log(1 - erf(x)) in x, up to where erf rounds to 1. */
INLINE float erf_of(float x)
{
    float far = fabsf(x) > 3.95f ? 3.95f : fabsf(x), u = far * far, near, y;
    float p = -9.66704457e-6f, q = -1.65832052e-6f;

    p = p * u + 1.1265959e-4f;
    p = p * u - 8.48408041e-4f;
    p = p * u + 5.22103181e-3f;
    p = p * u - 2.68654307e-2f;
    p = p * u + 0.112837825f;
    p = p * u - 0.376126385f;
    p = p * u + 0.128379167f;
    near = far + far * p;
    q = q * far + 4.64599237e-5f;
    q = q * far - 6.00055479e-4f;
    q = q * far + 4.77419103e-3f;
    q = q * far - 2.64608792e-2f;
    q = q * far + 0.110147179f;
    q = q * far + 0.63175755f;
    q = q * far + 1.13027207f;
    q = q * far - 3.29357089e-4f;
    y = far > 1 ? 1 - exp_of(-q) : near;
    return from_bits(bits(y) | (bits(x) & UINT32_C(0x80000000)));
}

/* ---- units ---- */

/* Sigmoid, but 0 where it is less than the least normal float: what it multiplies may be large. */
INLINE float share_of(float x)
{
    float far = -fabsf(x), inside = far < -87 ? -87 : far, grown, scale, e;

    scale = from_bits((bits(split_exp(inside, &grown)) + 127) << 23);
    e = far < -87 ? 0 : scale + scale * grown;
    return (x < 0 ? e : 1) / (1 + e);
}

INLINE float gelu_tanh_of(float x)
{
    return x * share_of(1.5957691216f * (x + 0.044715f * x * x * x));
}

/* 0.5 x (1 + erf(x / sqrt 2)). erf(z) / z is a quotient of polynomials in z^2, within 6e-7 of the
 * largest value, up to where erf rounds to 1 (fitted by computed weighted least squares). */
INLINE float gelu_of(float x)
{
    float z = x * 0.707106781f, far = fabsf(z), u = far * far, erf, p = 2.05001397e-6f;
    float q = 3.80907607e-5f;

    p = p * u + 2.84878950e-4f;
    p = p * u + 3.76565375e-3f;
    p = p * u + 5.27488098e-2f;
    p = p * u + 0.190407954f;
    p = p * u + 1.12837915f;
    q = q * u + 1.16253618e-3f;
    q = q * u + 1.49692897e-2f;
    q = q * u + 0.114109628f;
    q = q * u + 0.502077397f;
    q = q * u + 1;
    erf = z * p / q;
    erf = far > 3.92f ? (z < 0 ? -1 : 1) : erf;
    return 0.5f * x * (1 + erf);
}

/* ---- sin and cos ---- */

#define FAR 8192.0f /* beyond it, multiples of the parts of pi / 2 are not exact */

/* sin(x + shift pi / 2), |x| <= FAR. */
INLINE float sin_of(float x, uint32_t shift)
{
    float t = x * 0.636619772f + ROUNDER, n = t - ROUNDER;
    float r = ((x - n * 1.5703125f) - n * 4.83751297e-4f) - n * 7.54978995e-8f, r2 = r * r;
    uint32_t turn = bits(t) + shift;
    float s = 1.0f / 362880, c = -1.0f / 3628800;

    s = s * r2 - 1.0f / 5040;
    s = s * r2 + 1.0f / 120;
    s = s * r2 - 1.0f / 6;
    s = r2 == 0 ? r : r + r * r2 * s; /* -0 stays -0 */
    c = c * r2 + 1.0f / 40320;
    c = c * r2 - 1.0f / 720;
    c = c * r2 + 1.0f / 24;
    c = (1 - 0.5f * r2) + r2 * r2 * c;
    return from_bits(bits((turn & 1) != 0 ? c : s) ^ (turn & 2) << 30);
}

/* ---- loops ---- */

#if defined(__x86_64__)
#define WIDER(name)                                                                                \
    __attribute__((target("avx2"))) static void name##_avx2(float *restrict y, const float *a,     \
                                                            const float *b, int64_t n)             \
    {                                                                                              \
        name##_body(y, a, b, n);                                                                   \
    }                                                                                              \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))) static void name##_avx512(       \
        float *restrict y, const float *a, const float *b, int64_t n)                              \
    {                                                                                              \
        name##_body(y, a, b, n);                                                                   \
    }
#define LOOPS(name)                                                                                \
    {                                                                                              \
        name##_plain, name##_avx2, name##_avx512                                                   \
    }
#else
#define WIDER(name)
#define LOOPS(name)                                                                                \
    {                                                                                              \
        name##_plain, name##_plain, name##_plain                                                   \
    }
#endif

/* `fix` (may be empty) runs after the loop and corrects elements that the loop cannot compute. */
#define STEP_WITH(name, expr, fix)                                                                 \
    INLINE void name##_body(float *restrict y, const float *restrict a, const float *restrict b,   \
                            int64_t n)                                                             \
    {                                                                                              \
        (void)b;                                                                                   \
        for (int64_t k = 0; k < n; k++) {                                                          \
            float x = a[k], z = b[k];                                                              \
            y[k] = expr;                                                                           \
            (void)x, (void)z;                                                                      \
        }                                                                                          \
        fix                                                                                        \
    }                                                                                              \
    static void name##_plain(float *restrict y, const float *a, const float *b, int64_t n)         \
    {                                                                                              \
        name##_body(y, a, b, n);                                                                   \
    }                                                                                              \
    WIDER(name)
#define STEP(name, expr) STEP_WITH(name, expr, )

/* Elements that are far, infinite or NaN, by libm. */
static void fix_far(float *restrict y, const float *restrict a, int64_t n, float (*exact)(float))
{
    for (int64_t k = 0; k < n; k++)
        if (!(fabsf(a[k]) <= FAR))
            y[k] = exact(a[k]);
}

INLINE bool any_far(const float *a, int64_t n)
{
    uint32_t far = 0;

    for (int64_t k = 0; k < n; k++)
        far |= !(fabsf(a[k]) <= FAR);
    return far != 0;
}

STEP(relu, x < 0 ? 0 : x)
STEP(sigmoid, sigmoid_of(x))
STEP(tanh, tanh_of(x))
STEP(exp, exp_of(x))
STEP(log, logf(x))
STEP(sqrt, sqrtf(x))
STEP(neg, -x)
STEP(abs, fabsf(x))
STEP(reciprocal, 1 / x)
STEP(floor, floorf(x))
STEP(ceil, ceilf(x))
STEP(round, rintf(x))
STEP(sign, x > 0 ? 1 : x < 0 ? -1 : x)
STEP(erf, erf_of(x))
STEP(gelu, gelu_of(x))
STEP(gelu_tanh, gelu_tanh_of(x))
STEP(swish, x *share_of(x))
STEP_WITH(sin, sin_of(x, 0), if (any_far(a, n)) fix_far(y, a, n, sinf);)
STEP_WITH(cos, sin_of(x, 1), if (any_far(a, n)) fix_far(y, a, n, cosf);)
STEP(softplus, (x < 0 ? 0 : x) + log1pf(expf(-fabsf(x))))
STEP(softsign, x / (1 + fabsf(x)))
STEP(add, x + z)
STEP(sub, x - z)
STEP(mul, x *z)
STEP(div, x / z)
STEP(min, x < z || x != x ? x : z)
STEP(max, x > z || x != x ? x : z)

INLINE bool is_all(const float *b, float of, int64_t n)
{
    uint32_t others = 0;

    for (int64_t k = 0; k < n; k++)
        others |= b[k] != of;
    return others == 0;
}

/* Squares and cubes are products: the exponent is nearly always one number. */
INLINE void pow_body(float *restrict y, const float *restrict a, const float *restrict b, int64_t n)
{
    if (is_all(b, 2, n))
        for (int64_t k = 0; k < n; k++)
            y[k] = a[k] * a[k];
    else if (is_all(b, 3, n))
        for (int64_t k = 0; k < n; k++)
            y[k] = (float)((double)a[k] * (double)a[k] * (double)a[k]);
    else
        for (int64_t k = 0; k < n; k++)
            y[k] = powf(a[k], b[k]);
}

static void pow_plain(float *restrict y, const float *a, const float *b, int64_t n)
{
    pow_body(y, a, b, n);
}

WIDER(pow)

static mpl_chain_step *const step[MPL_N_OPS][MPL_N_CHAIN_WIDTHS] = {
    [MPL_OP_relu] = LOOPS(relu),
    [MPL_OP_sigmoid] = LOOPS(sigmoid),
    [MPL_OP_tanh] = LOOPS(tanh),
    [MPL_OP_exp] = LOOPS(exp),
    [MPL_OP_log] = LOOPS(log),
    [MPL_OP_sqrt] = LOOPS(sqrt),
    [MPL_OP_neg] = LOOPS(neg),
    [MPL_OP_abs] = LOOPS(abs),
    [MPL_OP_reciprocal] = LOOPS(reciprocal),
    [MPL_OP_floor] = LOOPS(floor),
    [MPL_OP_ceil] = LOOPS(ceil),
    [MPL_OP_round] = LOOPS(round),
    [MPL_OP_sign] = LOOPS(sign),
    [MPL_OP_erf] = LOOPS(erf),
    [MPL_OP_gelu] = LOOPS(gelu),
    [MPL_OP_swish] = LOOPS(swish),
    [MPL_OP_sin] = LOOPS(sin),
    [MPL_OP_cos] = LOOPS(cos),
    [MPL_OP_softplus] = LOOPS(softplus),
    [MPL_OP_softsign] = LOOPS(softsign),
    [MPL_OP_add] = LOOPS(add),
    [MPL_OP_sub] = LOOPS(sub),
    [MPL_OP_mul] = LOOPS(mul),
    [MPL_OP_div] = LOOPS(div),
    [MPL_OP_min] = LOOPS(min),
    [MPL_OP_max] = LOOPS(max),
    [MPL_OP_pow] = LOOPS(pow),
};

const char *const mpl_chain_how[MPL_N_CHAIN_WIDTHS] = {"chain", "chain:avx2", "chain:avx512"};

/* The widest that the user allows, by the names of oneDNN's manual; other names limit nothing. */
static mpl_chain_width allowed(void)
{
    const char *name = getenv("ONEDNN_MAX_CPU_ISA");

    if (name == NULL)
        name = getenv("DNNL_MAX_CPU_ISA");
    if (name == NULL)
        return MPL_CHAIN_AVX512;
    if (strcasecmp(name, "SSE41") == 0 || strcasecmp(name, "AVX") == 0)
        return MPL_CHAIN_PLAIN;
    return strncasecmp(name, "AVX2", 4) == 0 ? MPL_CHAIN_AVX2 : MPL_CHAIN_AVX512;
}

mpl_chain_width mpl_chain_widest(void)
{
    mpl_chain_width widest = MPL_CHAIN_PLAIN, most = allowed();

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        widest = MPL_CHAIN_AVX512;
    else if (__builtin_cpu_supports("avx2"))
        widest = MPL_CHAIN_AVX2;
#endif
    return widest < most ? widest : most;
}

mpl_chain_step *mpl_chain_step_of(mpl_op_kind kind, mpl_chain_width width)
{
    return step[kind][width];
}

mpl_chain_step *mpl_chain_gelu_tanh(mpl_chain_width width)
{
    static mpl_chain_step *const of[MPL_N_CHAIN_WIDTHS] = LOOPS(gelu_tanh);

    return of[width];
}

/* ---- threads ---- */

/* From libgomp, which oneDNN uses: its threads serve both. */
void GOMP_parallel(void (*run)(void *), void *arg, unsigned n_threads, unsigned flags);
int omp_get_thread_num(void);

typedef struct deal {
    int64_t n, share;
    mpl_deal_work *work;
    const void *arg;
} deal;

static void do_share(void *arg)
{
    const deal *d = arg;
    int64_t from = omp_get_thread_num() * d->share, to = from + d->share;

    if (from < d->n)
        d->work(d->arg, from, to < d->n ? to : d->n);
}

void mpl_deal(int64_t n, int64_t unit, int64_t most_shares, uint32_t n_threads, mpl_deal_work *work,
              const void *arg)
{
    int64_t n_shares = most_shares < n_threads ? most_shares : n_threads;
    deal d = {.n = n, .work = work, .arg = arg};

#if defined(__SANITIZE_THREAD__)
    n_shares = 1; /* the sanitizer does not see how libgomp's threads synchronise */
#endif
    if (n_shares <= 1) {
        work(arg, 0, n);
        return;
    }
    d.share = ((n + unit - 1) / unit + n_shares - 1) / n_shares * unit;
    GOMP_parallel(do_share, &d, (unsigned)n_shares, 0);
}
