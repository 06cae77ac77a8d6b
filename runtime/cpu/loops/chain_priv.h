/* chain_priv.h -- one step of a chain over a piece of f32. See chain.h. */
#ifndef MPL_CHAIN_PRIV_H
#define MPL_CHAIN_PRIV_H

#include "graphs/graph.h"

/* y[k] = f(a[k], b[k]) for k < n. y overlaps neither; b is a if the operator has one operand. */
typedef void mpl_chain_step(float *restrict y, const float *a, const float *b, int64_t n);

/* Instructions of the widest loops. gcc takes half of that width unless it is told to. */
#if defined(__clang__)
#define MPL_TARGET_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl")))
#else
#define MPL_TARGET_AVX512                                                                          \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")))
#endif

/* Vector widths that the loops are compiled for. Results do not depend on them: no operation is
 * contracted, and none combines elements. */
typedef enum mpl_chain_width {
    MPL_CHAIN_PLAIN,
    MPL_CHAIN_AVX2,
    MPL_CHAIN_AVX512,
    MPL_N_CHAIN_WIDTHS
} mpl_chain_width;

extern const char *const mpl_chain_how[MPL_N_CHAIN_WIDTHS];

/* The widest that this processor has and ONEDNN_MAX_CPU_ISA allows. */
mpl_chain_width mpl_chain_widest(void);
/* The operator's loop, or NULL. gelu: by erf; swish: with alpha 1. */
mpl_chain_step *mpl_chain_step_of(mpl_op_kind kind, mpl_chain_width width);
mpl_chain_step *mpl_chain_gelu_tanh(mpl_chain_width width); /* of gelu with approximate=tanh */

/* Calls work(arg, from, to) for ranges that cover [0, n), each but the last a multiple of `unit`,
 * on at most min(n_threads, most_shares) threads; a single range runs on the calling thread. Ranges
 * must not change a result: the work on one element must not depend on others. */
typedef void mpl_deal_work(const void *arg, int64_t from, int64_t to);
void mpl_deal(int64_t n, int64_t unit, int64_t most_shares, uint32_t n_threads, mpl_deal_work *work,
              const void *arg);

#endif
