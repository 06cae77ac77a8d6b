/* proof.h -- the writer of refutations. CERTIFICATES.md explains the records and why they are
 * sound; certify.c reads them. */
#pragma once

#include "planners/plan/plan.h"

typedef struct mpl_proof_record {
    char kind;
    bool used; /* 'k', 'c': some record refers to the state or set */
    uint32_t a, b;
    uint64_t c; /* 'r': E; 'k': the writer's name of the state */
} mpl_proof_record;

/* Maps a failed state's name to its record 'k'. */
typedef struct mpl_proof_slot {
    uint64_t name;
    size_t at; /* index + 1; 0: empty */
} mpl_proof_slot;

/* Records in the order of the text. Zero-initialised except ctx. Sets and numbered states are named
 * by the index in record[] of their first 'c' or their 'k': T of 'b' is a, T of other records is b,
 * and N of 'm' is a. */
typedef struct mpl_proof {
    mpl_ctx *ctx;
    mpl_proof_record *record;
    size_t n, room;
    mpl_proof_slot *slot;
    size_t n_slots, n_used;
    bool failed; /* out of memory, or over MPL_PROOF_MOST records */
    bool full;   /* over MPL_PROOF_MOST records */
} mpl_proof;

#define MPL_PROOF_NOT_ASKED "none was asked for (proof=0)"
#define MPL_PROOF_TOO_LATE  "the effort ended before it was written"
#define MPL_PROOF_TOO_LONG  "it has more than 4194304 records"
#define MPL_PROOF_FAMILIES  "its records cannot tell of families"

#define MPL_PROOF_MOST ((size_t)1 << 22)

void mpl_proof_add(mpl_proof *proof, char kind, uint32_t a, uint32_t b, uint64_t c);
/* Index where the state of that name begins, if the text so far refutes it; else SIZE_MAX. */
size_t mpl_proof_known(const mpl_proof *proof, uint64_t name);
void mpl_proof_remember(mpl_proof *proof, uint64_t name, size_t at);
/* Forgets all names, for a new conflict relation: equal names would mean different states. */
void mpl_proof_forget(mpl_proof *proof);
/* Makes a new text. Leaves out numbers and sets that no record refers to. */
mpl_status mpl_proof_text(const mpl_proof *proof, char **text);
void mpl_proof_fini(mpl_proof *proof);
