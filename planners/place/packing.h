/* packing.h -- one pool for a search over orders: conflicts, and the placement of an order. Private
 * to planners/; hill_climb and local_search differ in the orders they try. */
#pragma once

#include "planners/planner.h"

/* With families: forbidden interval of a member's start, relative to the rival's start. `same` is
 * allowed inside it: there a part lies on its in-place partner in the rival. */
typedef struct mpl_packing_wall {
    int64_t low, high; /* [byte] */
    int64_t same;      /* INT64_MAX: none [byte] */
} mpl_packing_wall;

/* Scratch entry for sorting a member's rivals. */
typedef struct mpl_packing_entry {
    int64_t key; /* [byte] */
    uint32_t rival;
    mpl_packing_wall wall;
} mpl_packing_entry;

/* Members are the pool's buffers and families, by the id of their (lowest) buffer. A family has the
 * bytes from its start to its end. */
typedef struct mpl_packing {
    mpl_run *run;
    const mpl_problem *p;
    uint32_t n;
    mpl_buffer *buffer; /* [n] the member's buffer, or the family's lowest */
    mpl_families family;
    uint64_t *bytes; /* [n] [byte] */
    uint64_t *align; /* [n] [byte] */
    uint64_t *fixed; /* [n] decided offset, or MPL_UNFIXED */
    uint32_t n_fixed;
    uint32_t *begin; /* [n + 1] into rival: conflicting members, in-place partners included */
    uint32_t *rival; /* each list sorted by the offsets at its last use */
    mpl_packing_wall *wall; /* of each rival entry; rivals may repeat; NULL: no families */
    uint32_t *pair_begin;   /* [n + 1] into pair: in-place partners; NULL: none */
    uint32_t *pair;
    int64_t *pair_at; /* offset from the partner's start; NULL: 0 [byte] */
    uint64_t *offset; /* [n] of the last placement [byte] */
    uint32_t *at;     /* [n] position in the last order placed */
    uint64_t bound;   /* lower bound of the pool [byte] */
    uint64_t goal;    /* height that ends the search: the bound, or a capacity above it [byte] */
    uint64_t best;    /* height of the best placement known [byte] */
    uint64_t *best_offset;    /* [n] */
    mpl_packing_entry *entry; /* [2 * the longest list] scratch */
    uint64_t ticks;           /* rivals examined, earlier pools included */
    uint64_t limit;           /* of ticks */
} mpl_packing;

/* Whether the search must end: the goal is reached, or the ticks or the time are used up. */
bool mpl_packing_done(mpl_packing *packing);

/* Places the members in the order order[n], fixed ones first, each at its lowest free offset. An
 * in-place partner's offset is taken where it is free and not higher. Positions before `from` keep
 * their offsets. Returns true and *height, the highest end [byte], or false as soon as it would
 * exceed `most`; then offsets from `from` on are partly old. O(rivals of the members placed). */
bool mpl_packing_place(mpl_packing *packing, const uint32_t *order, uint32_t from, uint64_t most,
                       uint64_t *height);

/* Keeps the offsets as the best placement if `height` is below the best one's. */
void mpl_packing_offer(mpl_packing *packing, uint64_t height);

/* Forbidden interval of b's start that rival i, at its present offset, imposes. [byte] */
static inline int64_t mpl_packing_low(const mpl_packing *packing, uint32_t b, uint32_t i)
{
    return (int64_t)packing->offset[packing->rival[i]] +
           (packing->wall != NULL ? packing->wall[i].low : -(int64_t)packing->bytes[b]);
}
static inline int64_t mpl_packing_high(const mpl_packing *packing, uint32_t i)
{
    return (int64_t)packing->offset[packing->rival[i]] +
           (packing->wall != NULL ? packing->wall[i].high
                                  : (int64_t)packing->bytes[packing->rival[i]]);
}

/* Sorts a member's rivals by mpl_packing_low; stable. */
void mpl_packing_sort(mpl_packing *packing, uint32_t member);

/* Sorts packing->entry[n] by key; stable. O(n log n): for lists that are far from sorted. */
void mpl_packing_merge(mpl_packing *packing, uint32_t n);
#define MPL_PACKING_FAR 8 /* mean move of an entry that makes a list far from sorted */

/* Whether b may lie at `at` inside the interval of rival i because they are in-place partners. */
bool mpl_packing_shares(const mpl_packing *packing, uint32_t b, uint32_t i, uint64_t at);

/* The offset of b on its partner of index i; false: none. */
bool mpl_packing_on_partner(const mpl_packing *packing, uint32_t b, uint32_t i, uint64_t *at);

/* Whether b may lie at `at`, on a partner, among the members with placed[a] (NULL: those before it
 * in the order). Partners at that offset are no obstacle. */
bool mpl_packing_joins(mpl_packing *packing, uint32_t b, uint64_t at, const uint8_t *placed);

enum { MPL_KEY_SIZE, MPL_KEY_AREA, MPL_KEY_RIVALS, MPL_KEY_LIFETIME, MPL_KEYS };

/* order[n]: fixed members, then the others by a key, descending; ties by rivals (for MPL_KEY_RIVALS
 * by size), then by id. Under parallel, the bytes of the rivals replace the lifetime. */
mpl_status mpl_packing_order(mpl_packing *packing, int key, uint32_t *order);

/* Improves a start plan by search(q) for each pool that may gain by it, and writes the plan. The
 * start is the plan of `first`, run->start_offsets, or, with a quarter of the ticks, what search(q)
 * finds with each family as one buffer, sunk part by part. ticks_default: limit without budget and
 * deadline. Parameter minimise=1: a capacity that is met does not end the search. Pools with more
 * than 2^24 conflicts are not searched. */
mpl_status mpl_packing_run(mpl_run *run, const mpl_problem *p, const mpl_planner *first,
                           uint64_t ticks_default, mpl_status (*search)(mpl_packing *q),
                           mpl_plan *out);
