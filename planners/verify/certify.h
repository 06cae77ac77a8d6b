/* certify.h -- the checker of certificates. Shares no code with any search, trusts no input. */
#pragma once

#include "planners/verify/verify.h"

typedef enum mpl_evidence {
    MPL_EVIDENCE_NONE,       /* nothing proved beyond the plan itself */
    MPL_EVIDENCE_CLIQUE,     /* buffers that pairwise conflict prove the bound */
    MPL_EVIDENCE_REFUTATION, /* every way to do better, or to fit at all, is refuted */
    /* several memories: each buffer pays the least price of a memory with room for it */
    MPL_EVIDENCE_PRICES,
} mpl_evidence;

typedef struct mpl_certified {
    mpl_evidence evidence;
    uint32_t pool; /* pool of the proof */
    /* proved need of the pool [byte]; 0: none; UINT64_MAX: none fits. PRICES: least cost */
    uint64_t bound;
    uint64_t n_steps; /* records of the refutation */
} mpl_certified;

/* Checks what `plan` claims of `p`, under either safety, with or without in-place pairs: the
 * placement by the verifier, `optimal` and the bound by a clique or refutation, `infeasible` by a
 * refutation within a pool's capacity. `feasible` and `unknown` need no certificate. See
 * CERTIFICATES.md for the rules.
 * MPL_EINVALID with one line: the claim is not proved, or the first wrong record. MPL_EINPUT: the
 * problem is broken.
 * A clique costs O(n + pairs) if one step needs all of it; otherwise one of 2^28 comparisons or
 * more is rejected. A text is rejected if it asks for more than 128 steps for each byte of text and
 * problem, times the logarithm of those bytes. */
mpl_status mpl_certify(mpl_ctx *ctx, const mpl_problem *p, mpl_plan *plan, mpl_certified *out);
