/* spill_priv.h -- the parts of the spill planner. Private to planners/spill*.c.
 *
 *   spill_part.c    buffers that conflicts connect; which memory has room for one more
 *   spill_search.c  a bound on the cost, the complete search, and the local one
 *   spill.c         the planner: parameters, parts, claims */
#ifndef MPL_SPILL_PRIV_H
#define MPL_SPILL_PRIV_H

#include "graphs/core/rng.h"
#include "planners/planner.h"

enum { MPL_SPILL_MEMORIES = 16, MPL_SPILL_MEMBERS = 4096, MPL_SPILL_REFUSED = 512 };

/* FITS: with a packing; NEVER: proved; UNKNOWN: the effort ended, or a search was not asked for. */
typedef enum mpl_spill_verdict {
    MPL_SPILL_FITS,
    MPL_SPILL_NEVER,
    MPL_SPILL_UNKNOWN
} mpl_spill_verdict;

/* The memories, and what all parts spend together. */
typedef struct mpl_spill {
    mpl_run *run;
    const mpl_problem *p;
    uint32_t n; /* memories; the last alone may have no capacity: behind it nothing is of use */
    uint64_t capacity[MPL_SPILL_MEMORIES]; /* [byte] or MPL_NO_CAPACITY */
    uint64_t price[MPL_SPILL_MEMORIES];    /* rises, or stays */
    uint64_t ticks, tick_limit;
    uint64_t call_limit; /* of one question to the exact planner */
    bool by_clock;
} mpl_spill;

/* Buffers of pool 0 that conflicts connect. Members are numbered in the order of decision: large
 * ones first. */
typedef struct mpl_spill_part {
    mpl_spill *s;
    uint32_t n, n_words;
    mpl_buffer *buffer; /* [n] */
    uint64_t *bytes;    /* [n] [byte] */
    uint32_t *by_id;    /* [n] members, their buffers ascending */
    uint32_t *least;    /* [n] first memory that is large enough; s->n: none is */
    uint32_t *twin;     /* [n] the member before, where the two differ in nothing, or MPL_NONE */
    uint32_t *rival_begin, *rival; /* members that a member conflicts with, in-place partners among
                                      them */
    uint8_t *paired;               /* [n] has an in-place partner in the part */

    /* Sets of members of which no two share memory: serial, those alive at a step; under parallel,
     * some that are disjoint. A member is in the sections [begin, end), which is what the bound
     * needs. */
    uint32_t n_sections;
    uint32_t *begin, *end;            /* [n] */
    uint32_t *section_begin, *inside; /* members of each section, those that end last first */

    uint64_t *room; /* [s->n * n_sections] of each section, what memories 0 .. k can hold of it at
                       the most [byte] */

    /* The node in hand: members with a memory, and for each memory with a capacity a packing of its
     * members. */
    uint32_t *memory; /* [n] or MPL_NONE */
    uint64_t *offset; /* [n] [byte] */
    uint64_t *load;   /* [s->n * n_sections] [byte] */
    uint64_t *spare;  /* [n] scratch of the bound */
    uint32_t *met;    /* [n] scratch of placing */

    /* Sets of members that did not fit within a capacity; at MPL_SPILL_REFUSED the oldest go. */
    uint64_t *refused; /* [n_words] each */
    uint64_t *refused_within;
    uint64_t *refused_ticks; /* UINT64_MAX: proved; else the call_limit that was not enough */
    size_t refused_room[3];
    uint32_t n_refused, next_refused;
    uint64_t *wanted; /* [n_words] the set in question */

    bool found, finished; /* there is a best one; it is known to be, or that there is none */
    uint64_t cost, bound; /* of the best one; proved */
    uint32_t *best_memory;
    uint64_t *best_offset;
    uint64_t open;       /* the search: least bound among what it left out */
    uint64_t stop_ticks; /* the search: at which s->ticks it ends */
    mpl_rng rng;
} mpl_spill_part;

/* The part of buffer[n] (n > 0, taken over). MPL_ELIMIT: more than MPL_SPILL_MEMBERS. */
mpl_status mpl_spill_part_init(mpl_spill *s, mpl_buffer *buffer, uint32_t n, mpl_spill_part *part);
void mpl_spill_part_fini(mpl_spill_part *part);

/* A problem of these buffers alone (ascending), in one pool with this capacity. */
mpl_status mpl_spill_problem(mpl_ctx *ctx, const mpl_problem *p, const mpl_buffer *buffer,
                             uint32_t n, uint64_t capacity, mpl_problem **out);

/* Puts member i, which has no memory, into memory k, if that still can be packed; without `search`
 * only simple packings are tried. A member may leave at any time: what stays is packed. */
mpl_status mpl_spill_put(mpl_spill_part *part, uint32_t i, uint32_t k, bool search,
                         mpl_spill_verdict *verdict);
void mpl_spill_leave(mpl_spill_part *part, uint32_t i);
void mpl_spill_clear(mpl_spill_part *part); /* all leave */

/* The first plans, by simple orders. */
mpl_status mpl_spill_start(mpl_spill_part *part);
/* The complete search, until it is done (part->finished) or has spent `ticks`; found, cost and
 * bound get better. */
mpl_status mpl_spill_search(mpl_spill_part *part, uint64_t ticks);
/* Improves what was found by moving members, for so many ticks. */
mpl_status mpl_spill_improve(mpl_spill_part *part, uint64_t ticks);

/* Whether all has to end. */
static inline bool mpl_spill_over(mpl_spill *s)
{
    if (!s->by_clock && mpl_run_late(s->run))
        s->by_clock = true;
    return s->by_clock || s->ticks >= s->tick_limit;
}

#endif
