/* chain_priv.h -- one step of a chain over a piece of f32. See chain.h. */
#ifndef MPL_CHAIN_PRIV_H
#define MPL_CHAIN_PRIV_H

#include "graphs/graph.h"

/* y[k] = f(a[k], b[k]) for k < n; y apart from both; b is a where the operator has one operand. */
typedef void mpl_chain_step(float *restrict y, const float *a, const float *b, int64_t n);

/* The operator's loop for the widest vectors of this processor; NULL: it has none. Results do not depend on the width: no operation
 * is contracted, and none is done across elements. */
mpl_chain_step *mpl_chain_step_of(mpl_op_kind kind);

/* "chain:avx512", "chain:avx2" or "chain": the vectors in use. */
const char *mpl_chain_how(void);

#endif
