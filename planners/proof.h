/* proof.h -- refutations as text, and their writer. The reader is certify.c.
 *
 * A text refutes one sentence: "the buffers of this pool can be placed within so many bytes". It goes through states: active
 * buffers, each with a lowest offset est and a highest offset top. It is a tree in prefix order: a state is followed by records
 * that draw conclusions from it, until a split, whose children are states, or a record that shows it to be false. When the last
 * child of a split is refuted, so is the split. A record is a letter and its numbers with commas
 * between; one blank parts records. Buffers are ids of the problem, sets of buffers and states have numbers in the order
 * in which they appear, from 0; offsets are bytes.
 *
 * Two buffers are rivals if they conflict and are no in-place pair, or one whose two lie apart. Buffers of one body share their
 * offset. A state says: "the active buffers can be placed, each at a multiple of its alignment from est to top, no two
 * rivals overlapping, each body at one offset". The first state is the claim to be refuted: all buffers of the pool, each its own
 * body, est 0 and top = within - bytes (both the fixed offset where there is one); and the two of a pair share their offset,
 * or do not overlap. What the records mean, and why each is sound:
 *
 *   d I      I is left out: if all can be placed, so can the others.
 *   o I      So is whoever is not connected with I by rivals and bodies. Where nothing was split by b yet, nor put at the top,
 *            sizes are rounded up to the least alignment, which divides the others: no buffer begins in between.
 *   c I,T    I joins set T. All in a set are rivals: only one of them lies at any one offset.
 *   s A,B    Splits: do A and B share their offset? First they do: their bodies become one, with the strictest of est, top and
 *            alignment. Once that is refuted, what follows is the second child: they do not, so they do not overlap. Both
 *            hold of any two buffers. Only where nothing was split by b yet, nor put at the top: from there on
 *            states are about rivals and bodies alone. Sets and numbers given in the first child are void in the second.
 *   b T,N    Splits: who lies at F, the least est in T? N children follow: each buffer with that est (a candidate), and
 *            nobody; of twins (alone in their bodies; same size, alignment, est, top and rivals) one is enough:
 *            swapping two turns a placement with the one at F into one with the other.
 *   p I      Child: I lies at its est. Others that cannot lie below it lie above: their est rises by what their body keeps
 *            from I's, which is the largest there that has a rival here.
 *   n        Child: nobody does. Take a placement with the least sum of the bodies' offsets. If it has somebody of T at F, a
 *            sibling holds. Else each candidate's body was pushed down onto another, and begins no lower than that one's est
 *            plus what it keeps from it. It rests on a buffer that is not in T (outside), or on one in T, and down the pile
 *            comes one who is no candidate or rests on one outside. So its est rises to the least of: its own outside; over the
 *            others in T, what it keeps from them, plus, for a candidate its outside, for another its est.
 *   r I,T,E  I does not begin in [est, E). Were it at o: of the others in T those below I have est + size <= o, fit
 *            into o - F, and leave so little above that the rest ends by the highest top + size. No sum of sizes does both.
 *   u I      I is put at the top. Those that are no rivals of I are dropped, no other has a higher est, and I's size keeps their
 *            alignments: then I may be moved there, and those above it down by its size, to I's offset at least. Their tops
 *            sink.
 *   x I,T    False: those in T with at least the est of I: the topmost of them, whichever it is, ends beyond its top.
 *   z I      False: the est of I is above its top, or a rival is in its body.
 *   k        The state here gets the next number once it is refuted.
 *   m N      False: state N was, its buffers are all active here, with no lower est and no higher top: a placement here would
 *            be one there. The same was said of pairs, or more.
 *
 * A placement of whatever height can be pushed down below the sum of all sizes, alignments and fixed offsets: where that much
 * is refuted, no capacity is enough. */
#ifndef MPL_PROOF_H
#define MPL_PROOF_H

#include "planners/plan.h"

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

/* Records in the order of the text. Zero-initialised but for ctx. Sets and numbered states are named by the place in record[] of
 * the first 'c' and of the 'k': T of 'b' is a, of the others b; N of 'm' is a. */
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
/* Where the state of that name begins, which has been refuted in the text as it is now; SIZE_MAX: nowhere. */
size_t mpl_proof_known(const mpl_proof *proof, uint64_t name);
void mpl_proof_remember(mpl_proof *proof, uint64_t name, size_t at);
/* Forgets all names: those of another conflict relation would be the same. */
void mpl_proof_forget(mpl_proof *proof);
/* A new text; numbers and sets that no record refers to are left out. */
mpl_status mpl_proof_text(const mpl_proof *proof, char **text);
void mpl_proof_fini(mpl_proof *proof);

#endif
