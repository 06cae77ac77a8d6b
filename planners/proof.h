/* proof.h -- refutations as text, and their writer. The reader is certify.c, which says why each record is sound.
 *
 * A text refutes one sentence: "the buffers of this pool can be placed within so many bytes". It goes through states: active
 * buffers, each with a lowest offset est and a highest offset top. It is a tree in prefix order: a state is followed by records
 * that draw conclusions from it, until a split, whose children are states, or a record that shows it to be false. When the last
 * child of a split is refuted, so is the split. A record is a letter and its numbers with commas
 * between; one blank parts records. Buffers are ids of the problem, offsets are bytes.
 *
 *   b T,N    splits: who lies at the least est of those alive at step T? N children: each buffer that can, and nobody
 *   p I      child: I lies at its est; who lives with it lies above
 *   n        child: nobody does; who could rests on another buffer
 *   r I,T,E  conclusion: I lies at E or higher, as the space below cannot be filled at step T
 *   u I      conclusion: I overlaps all others in time and is put at the top
 *   w A,B    only buffers alive in steps [A, B) matter
 *   a G      all alignments are multiples of G: sizes are rounded up to it
 *   x T,I    false: those alive at step T with an est of I's or higher have no room
 *   z I      false: the est of I is above its top
 *   k N      the state here will be called N (0, 1, ..) once it is refuted
 *   m N      false: state N was, and had as much room or more */
#ifndef MPL_PROOF_H
#define MPL_PROOF_H

#include "planners/plan.h"

typedef struct mpl_proof_record {
    char kind;
    bool used; /* 'k': some 'm' refers to it */
    uint32_t a, b;
    uint64_t c; /* 'r': E; 'm': place of its 'k' in record[]; 'k': the writer's own name of the state */
} mpl_proof_record;

/* Records in the order of the text. Zero-initialised but for ctx. */
typedef struct mpl_proof {
    mpl_ctx *ctx;
    mpl_proof_record *record;
    size_t n, room;
    bool failed; /* memory ran out, or there are more than MPL_PROOF_MOST records */
} mpl_proof;

#define MPL_PROOF_MOST ((size_t)1 << 22)

void mpl_proof_add(mpl_proof *proof, char kind, uint32_t a, uint32_t b, uint64_t c);
/* A new text; names that no record refers to are left out. */
mpl_status mpl_proof_text(const mpl_proof *proof, char **text);
void mpl_proof_fini(mpl_proof *proof);

#endif
