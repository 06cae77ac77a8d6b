/* packing.h -- one pool as a search sees it: which buffers conflict, and where the placement of an
 * order puts them, asked again and again. Private to planners/; for hill_climb and local_search,
 * which differ in where they look next. */
#ifndef MPL_PACKING_H
#define MPL_PACKING_H

#include "planners/planner.h"

/* Where families are: what a rival keeps a member's start out of, counted from the rival's own
 * start: all between the two, but for `same`, where a part of one lies on its in-place partner in
 * the other. */
typedef struct mpl_packing_wall {
    int64_t low, high; /* [byte] */
    int64_t same;      /* INT64_MAX: nowhere [byte] */
} mpl_packing_wall;

/* An entry of a member's list while it is sorted. */
typedef struct mpl_packing_entry {
    int64_t key; /* [byte] */
    uint32_t rival;
    mpl_packing_wall wall;
} mpl_packing_entry;

/* Members are the pool's buffers and families, numbered from 0 in the order of the ids of their
 * (lowest) buffers. A family has the bytes from its start to its end. */
typedef struct mpl_packing {
    mpl_run *run;
    const mpl_problem *p;
    uint32_t n;
    mpl_buffer *buffer; /* [n] which buffer a member is, or the lowest of which family */
    mpl_families family;
    uint64_t *bytes; /* [n] [byte] */
    uint64_t *align; /* [n] [byte] */
    uint64_t *fixed; /* [n] offset that is decided, or MPL_UNFIXED */
    uint32_t n_fixed;
    uint32_t *begin; /* [n + 1] into rival: the members that a member conflicts with, in-place
                        partners among them */
    uint32_t *rival; /* each list by the offsets of when it was last looked at */
    mpl_packing_wall *wall; /* of each rival, which may be there several times; NULL: there are no
                               families */
    uint32_t *pair_begin;   /* [n + 1] into pair: in-place partners; NULL: there are none */
    uint32_t *pair;
    int64_t *pair_at; /* where a member lies then, counted from its partner's start; NULL: at 0
                         [byte] */
    uint64_t *offset; /* [n] of the last placement [byte] */
    uint32_t *at;     /* [n] position in the order of the last placement */
    uint64_t bound;   /* no plan of the pool is lower [byte] */
    uint64_t goal;    /* the height at which the search is over: the bound, or a capacity above it
                         [byte] */
    uint64_t best;    /* height of the best placement known [byte] */
    uint64_t *best_offset;    /* [n] */
    mpl_packing_entry *entry; /* [2 * the longest list] scratch */
    uint64_t ticks;           /* rivals looked at, those of earlier pools included */
    uint64_t limit;           /* of ticks */
} mpl_packing;

/* Whether the search has to end: the goal is reached, or the ticks or the time are used up. */
bool mpl_packing_done(mpl_packing *q);

/* Places the members in the order order[n] (those with a fixed offset first in it), each at the
 * lowest free offset; an in-place partner's offset is taken where it is free and not higher.
 * Positions before `from` keep the offsets that they have. *height: the highest end [byte], and
 * true; or false as soon as it would pass `most`: offsets from `from` on are then half old, half
 * new. O(rivals of the members placed). */
bool mpl_packing_place(mpl_packing *q, const uint32_t *order, uint32_t from, uint64_t most,
                       uint64_t *height);

/* Takes the offsets over as the best placement if their height is below the best one's. */
void mpl_packing_offer(mpl_packing *q, uint64_t height);

/* Rival i of member b keeps b's start out of what lies between the two, as it lies now. [byte] */
static inline int64_t mpl_packing_low(const mpl_packing *q, uint32_t b, uint32_t i)
{
    return (int64_t)q->offset[q->rival[i]] +
           (q->wall != NULL ? q->wall[i].low : -(int64_t)q->bytes[b]);
}
static inline int64_t mpl_packing_high(const mpl_packing *q, uint32_t i)
{
    return (int64_t)q->offset[q->rival[i]] +
           (q->wall != NULL ? q->wall[i].high : (int64_t)q->bytes[q->rival[i]]);
}

/* Sorts a member's rivals by mpl_packing_low, equal ones as they come. */
void mpl_packing_sort(mpl_packing *q, uint32_t member);

/* Sorts q->entry[n] by key, equal ones as they come. O(n log n): for lists that are far from
 * sorted. */
void mpl_packing_merge(mpl_packing *q, uint32_t n);
#define MPL_PACKING_FAR 8 /* a list in which each entry moves so far is that */

/* Whether rival i of b does not mind b at `at` though that is in between, since they are in-place
 * partners. */
bool mpl_packing_shares(const mpl_packing *q, uint32_t b, uint32_t i, uint64_t at);

/* Where b lies on its partner of index i; false: nowhere. */
bool mpl_packing_on_partner(const mpl_packing *q, uint32_t b, uint32_t i, uint64_t *at);

/* Whether b may lie at `at`, where a partner of it lies, among the members a < q->n with placed(a);
 * those that share that place do not disturb it. */
bool mpl_packing_joins(mpl_packing *q, uint32_t b, uint64_t at, const uint8_t *placed);

enum { MPL_KEY_SIZE, MPL_KEY_AREA, MPL_KEY_RIVALS, MPL_KEY_LIFETIME, MPL_KEYS };

/* order[n]: fixed members, then the others by a key, descending; ties by rivals (of MPL_KEY_RIVALS:
 * by size), then by id. Under parallel the bytes of the rivals stand for a lifetime. */
mpl_status mpl_packing_order(mpl_packing *q, int key, uint32_t *order);

/* The plan of `first`, or run->start_offsets, or, with a quarter of the ticks, what search(q) finds
 * where families are one buffer each, sunk part by part; then search(q) for each pool that may gain
 * by it; what it finds becomes the plan. ticks_default: limit where the caller sets neither budget
 * nor deadline. Parameter minimise=1: a capacity that is met does not end the search. A pool with
 * more than 2^24 conflicts is not searched. */
mpl_status mpl_packing_run(mpl_run *run, const mpl_problem *p, const mpl_planner *first,
                           uint64_t ticks_default, mpl_status (*search)(mpl_packing *q),
                           mpl_plan *out);

#endif
