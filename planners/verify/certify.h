/* certify.h -- the checker of certificates. It shares no code with any search, and believes nothing
 * that it reads. */
#ifndef MPL_CERTIFY_H
#define MPL_CERTIFY_H

#include "planners/verify/verify.h"

typedef enum mpl_evidence {
    MPL_EVIDENCE_NONE,       /* nothing beyond the plan itself was proved */
    MPL_EVIDENCE_CLIQUE,     /* buffers that pairwise conflict prove the bound */
    MPL_EVIDENCE_REFUTATION, /* every way to do better, or to fit at all, is refuted */
    MPL_EVIDENCE_PRICES, /* several memories: each buffer costs the least that one with room for it
                            asks */
} mpl_evidence;

typedef struct mpl_certified {
    mpl_evidence evidence;
    uint32_t pool;  /* that the proof speaks of */
    uint64_t bound; /* proved: the pool needs at least so much; 0: nothing; UINT64_MAX: no capacity
                     * is enough [byte]; of PRICES: the least cost */
    uint64_t n_steps; /* records of the refutation */
} mpl_certified;

/* Checks what `plan` claims of `p`, under either safety, with pairs or without: a placement by the
 * verifier, `optimal` and the bound by clique or refutation, `infeasible` by a refutation within a
 * pool's capacity. `feasible` and `unknown` need no certificate. MPL_EINVALID with one line: the
 * claim is not proved, or the first wrong record of the refutation. MPL_EINPUT: the problem is
 * broken. A clique costs O(n + pairs) where all of it is needed at one step, and one of 2^28
 * comparisons or more is refused where not; a text that asks for more than 128 steps a byte of it
 * and of the problem, times their logarithm, is refused. CERTIFICATES.md has the rules. */
mpl_status mpl_certify(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan, mpl_certified *out);

#endif
