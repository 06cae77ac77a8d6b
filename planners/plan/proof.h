/* proof.h -- the writer of refutations. What their records mean, and why each is sound:
 * CERTIFICATES.md; the reader is certify.c. */
#ifndef MPL_PROOF_H
#define MPL_PROOF_H

#include "planners/plan/plan.h"

typedef struct mpl_proof_record {
    char kind;
    bool used; /* 'k', 'c': some record refers to the state or the set */
    uint32_t a, b;
    uint64_t c; /* 'r': E; 'k': the writer's own name of the state */
} mpl_proof_record;

/* A failed state by its name, and where its record 'k' is. */
typedef struct mpl_proof_slot {
    uint64_t name;
    size_t at; /* place + 1; 0: empty */
} mpl_proof_slot;

/* Records in the order of the text. Zero-initialised but for ctx. Sets and numbered states are
 * named by the place in record[] of the first 'c' and of the 'k': T of 'b' is a, of the others b; N
 * of 'm' is a. */
typedef struct mpl_proof {
    mpl_ctx *ctx;
    mpl_proof_record *record;
    size_t n, room;
    mpl_proof_slot *slot;
    size_t n_slots, n_used;
    bool failed; /* memory ran out, or there are more than MPL_PROOF_MOST records */
    bool full;   /* the latter */
} mpl_proof;

#define MPL_PROOF_NOT_ASKED "none was asked for (proof=0)"
#define MPL_PROOF_TOO_LATE  "the effort ended before it was written"
#define MPL_PROOF_TOO_LONG  "it has more than 4194304 records"
#define MPL_PROOF_FAMILIES  "its records cannot tell of families"

#define MPL_PROOF_MOST ((size_t)1 << 22)

void mpl_proof_add(mpl_proof *proof, char kind, uint32_t a, uint32_t b, uint64_t c);
/* Where the state of that name begins, which has been refuted in the text as it is now; SIZE_MAX:
 * nowhere. */
size_t mpl_proof_known(const mpl_proof *proof, uint64_t name);
void mpl_proof_remember(mpl_proof *proof, uint64_t name, size_t at);
/* Forgets all names: those of another conflict relation would be the same. */
void mpl_proof_forget(mpl_proof *proof);
/* A new text; numbers and sets that no record refers to are left out. */
mpl_status mpl_proof_text(const mpl_proof *proof, char **text);
void mpl_proof_fini(mpl_proof *proof);

#endif
