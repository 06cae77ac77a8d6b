/* chain_priv.h -- one step of a chain over a piece of f32. See chain.h. */
#ifndef MPL_CHAIN_PRIV_H
#define MPL_CHAIN_PRIV_H

#include "graphs/graph.h"

/* y[k] = f(a[k], b[k]) for k < n; y apart from both; b is a where the operator has one operand. */
typedef void mpl_chain_step(float *restrict y, const float *a, const float *b, int64_t n);

/* Widths of vectors that the loops are made for. Results do not depend on them: no operation is
 * contracted, and none is done across elements. */
typedef enum mpl_chain_width {
    MPL_CHAIN_PLAIN,
    MPL_CHAIN_AVX2,
    MPL_CHAIN_AVX512,
    MPL_N_CHAIN_WIDTHS
} mpl_chain_width;

extern const char *const mpl_chain_how[MPL_N_CHAIN_WIDTHS]; /* "chain", "chain:avx2", "chain:avx512"
                                                             */

/* The widest that this processor has. */
mpl_chain_width mpl_chain_widest(void);
/* The operator's loop; NULL: it has none. */
mpl_chain_step *mpl_chain_step_of(mpl_op_kind kind, mpl_chain_width width);

/* Calls work(arg, from, to) for ranges that cover [0, n), each of whole `unit`s but the last, on as
 * many threads as there are, but no more than most_shares; on the calling thread where that is one.
 * The ranges do not change a result: work on one thing must not depend on others. */
typedef void mpl_deal_work(const void *arg, int64_t from, int64_t to);
void mpl_deal(int64_t n, int64_t unit, int64_t most_shares, uint32_t n_threads, mpl_deal_work *work,
              const void *arg);

#endif
