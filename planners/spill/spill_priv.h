/* spill_priv.h -- shared by the files of the spill planner. Private to planners/spill*.c.
 * spill_part.c: connected buffers; which memory has room for one more
 * spill_search.c: a bound on the cost, the complete search, and the local search
 * spill.c: the planner: parameters, parts, claims */
#pragma once

#include "graphs/core/rng.h"
#include "planners/planner.h"

enum { MPL_SPILL_MEMORIES = 16, MPL_SPILL_MEMBERS = 4096, MPL_SPILL_REFUSED = 512 };

/* FITS: with a packing; NEVER: proved; UNKNOWN: effort ran out, or no search was requested. */
typedef enum mpl_spill_verdict {
    MPL_SPILL_FITS,
    MPL_SPILL_NEVER,
    MPL_SPILL_UNKNOWN
} mpl_spill_verdict;

/* The memories, and the work that all parts share. */
typedef struct mpl_spill {
    mpl_run *run;
    const mpl_problem *p;
    uint32_t n; /* only the last memory may have no capacity: any after it is useless */
    uint64_t capacity[MPL_SPILL_MEMORIES]; /* [byte] or MPL_NO_CAPACITY */
    uint64_t price[MPL_SPILL_MEMORIES];    /* non-decreasing */
    uint64_t ticks, tick_limit;
    uint64_t call_limit; /* ticks of one call of the exact planner */
    bool by_clock;
} mpl_spill;

/* Buffers of pool 0 connected by conflicts. Members are in order of decision, large first. */
typedef struct mpl_spill_part {
    mpl_spill *spill;
    uint32_t n, n_words;
    mpl_buffer *buffer;            /* [n] */
    uint64_t *bytes;               /* [n] [byte] */
    uint32_t *by_id;               /* [n] members by ascending buffer */
    uint32_t *least;               /* [n] first memory that is large enough; s->n: none */
    uint32_t *twin;                /* [n] previous member, if interchangeable; or MPL_NONE */
    uint32_t *rival_begin, *rival; /* conflicting members, in-place partners included */
    uint8_t *paired;               /* [n] has an in-place partner in the part */

    /* Sections: sets of members that pairwise share no memory. Serial: those alive at a step;
     * parallel: disjoint ones. Member i is in the sections [begin, end), for the bound. */
    uint32_t n_sections;
    uint32_t *begin, *end;            /* [n] */
    uint32_t *section_begin, *inside; /* members of each section, the last to end first */

    /* [s->n * n_sections] most bytes of the section that memories 0 .. k can hold */
    uint64_t *room;

    /* The current node: memories of members, and a packing of each memory with a capacity. */
    uint32_t *memory; /* [n] or MPL_NONE */
    uint64_t *offset; /* [n] [byte] */
    uint64_t *load;   /* [s->n * n_sections] [byte] */
    uint64_t *spare;  /* [n] scratch for the bound */
    uint32_t *met;    /* [n] scratch for placing */

    /* Sets of members that did not fit a capacity; beyond MPL_SPILL_REFUSED the oldest go. */
    uint64_t *refused; /* [n_words] each */
    uint64_t *refused_within;
    uint64_t *refused_ticks; /* UINT64_MAX: proved; else the call_limit that was too low */
    size_t refused_room[3];
    uint32_t n_refused, next_refused;
    uint64_t *wanted; /* [n_words] the set being tested */

    /* an assignment was found; it is proved the best, or that there is none */
    bool found, finished;
    uint64_t cost, bound; /* of the best assignment; proved lower bound */
    uint32_t *best_memory;
    uint64_t *best_offset;
    uint64_t open;       /* search: least bound among the nodes left out */
    uint64_t stop_ticks; /* search: ends when s->ticks reaches it */
    mpl_rng rng;
} mpl_spill_part;

/* Makes the part of buffer[n] (n > 0, taken over). MPL_ELIMIT: more than MPL_SPILL_MEMBERS. */
mpl_status mpl_spill_part_init(mpl_spill *spill, mpl_buffer *buffer, uint32_t n,
                               mpl_spill_part *part);
void mpl_spill_part_fini(mpl_spill_part *part);

/* A problem of these buffers alone (ascending), in one pool of this capacity. */
mpl_status mpl_spill_problem(mpl_ctx *ctx, const mpl_problem *p, const mpl_buffer *buffer,
                             uint32_t n, uint64_t capacity, mpl_problem **out);

/* Puts member i, which has no memory, into memory k if a packing is found; without `search`, only
 * by simple methods. A member may leave at any time: the rest stays packed. */
mpl_status mpl_spill_put(mpl_spill_part *part, uint32_t i, uint32_t k, bool search,
                         mpl_spill_verdict *verdict);
void mpl_spill_leave(mpl_spill_part *part, uint32_t i);
void mpl_spill_clear(mpl_spill_part *part); /* removes all members */

/* The first assignments, by simple orders. */
mpl_status mpl_spill_start(mpl_spill_part *part);
/* Continues the complete search for `ticks` or until part->finished; improves cost and bound. */
mpl_status mpl_spill_search(mpl_spill_part *part, uint64_t ticks);
/* Improves the best assignment by moving members, for `ticks`. */
mpl_status mpl_spill_improve(mpl_spill_part *part, uint64_t ticks);

/* Whether the whole planner must stop. */
static inline bool mpl_spill_over(mpl_spill *spill)
{
    if (!spill->by_clock && mpl_run_late(spill->run))
        spill->by_clock = true;
    return spill->by_clock || spill->ticks >= spill->tick_limit;
}
