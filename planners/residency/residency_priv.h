/* residency_priv.h -- shared by the files of planners/residency/.
 * residency_path.c: the least cost of one buffer   residency_bound.c: prices of steps, bounds
 * residency_search.c: near by, and complete        residency_place.c: offsets and moves */
#pragma once

#include "graphs/core/rng.h"
#include "planners/residency/residency.h"

/* What a search has decided of a use, or of the stay after it. */
enum { MPL_FREE, MPL_IN, MPL_OUT };

typedef struct mpl_residency {
    mpl_run *run;
    const mpl_residency_problem *p;
    uint32_t n_uses;
    uint64_t *size;                  /* [n] bytes, rounded up to the alignment */
    mpl_buffer *owner;               /* [n_uses] */
    uint32_t *step_begin, *step_use; /* uses of each step */
    uint64_t capacity;   /* rounded up likewise: no plan has more alive in fast memory */
    uint8_t *state;      /* [n_uses * 3] scratch of a path: where each state came from */
    uint8_t *use, *stay; /* [n_uses] what is decided; all MPL_FREE outside of the search */
    uint64_t ticks;
} mpl_residency;

/* MPL_EINPUT: sums would pass 2^62. */
mpl_status mpl_residency_init(mpl_run *run, const mpl_residency_problem *p, mpl_residency *r);
void mpl_residency_fini(mpl_residency *r);

/* Where a path may go. */
typedef struct mpl_path {
    const uint64_t *price; /* [n_steps + 1] sums of prices before each step, in parts; NULL: 0 */
    const int64_t *room;   /* [n_steps] of fast memory [byte]; NULL: unlimited */
} mpl_path;
/* The way of least cost for one buffer: writes fast and kept of its uses. *cost in parts, with the
 * prices of the steps it takes. False: there is none. O(uses + steps where room counts). */
bool mpl_residency_path(mpl_residency *r, mpl_buffer b, const mpl_path *path, uint8_t *fast,
                        uint8_t *kept, uint64_t *cost);
/* Cost of a buffer's way; adds to *moved and *slow [byte] unless NULL. */
uint64_t mpl_residency_cost(const mpl_residency_problem *p, mpl_buffer b, const uint8_t *fast,
                            const uint8_t *kept, uint64_t *moved, uint64_t *slow);
/* Adds `sign` times the buffer's size to load[] at steps in fast memory: at uses, and between. */
void mpl_residency_load(const mpl_residency *r, mpl_buffer b, const uint8_t *fast,
                        const uint8_t *kept, int sign, bool uses, bool stays, int64_t *load);

/* Prices for steps: they prove a lower bound by the least cost of each buffer alone, minus what the
 * whole capacity costs at every step. */
typedef struct mpl_prices {
    double *exact;         /* [n_steps] */
    uint64_t *price;       /* [n_steps] in parts */
    uint64_t *sum;         /* [n_steps + 1] */
    uint8_t *fast, *kept;  /* [n_uses] the ways under the prices */
    int64_t *load;         /* [n_steps] of these ways [byte] */
    double *slope, *trial; /* [n_steps] scratch */
    uint64_t bound;        /* cost, rounded up; UINT64_MAX: no way for some buffer */
} mpl_prices;

mpl_status mpl_prices_init(mpl_residency *r, mpl_prices *out);
void mpl_prices_fini(mpl_residency *r, mpl_prices *prices);
/* Improves the prices by `rounds` of a subgradient method towards `goal`, a cost known to be
 * reached; ends where the bound is `goal`. Leaves the ways of the last round. */
void mpl_prices_rise(mpl_residency *r, uint32_t rounds, uint64_t goal, mpl_prices *prices);

/* A first plan within the capacity at each step; improved by taking a few buffers out and back. */
mpl_status mpl_residency_first(mpl_residency *r, const mpl_prices *prices, uint64_t capacity,
                               uint8_t *fast, uint8_t *kept);
mpl_status mpl_residency_near(mpl_residency *r, const mpl_prices *prices, uint64_t capacity,
                              uint64_t rounds, uint64_t enough, uint8_t *fast, uint8_t *kept);
/* The complete search below plan->cost: replaces the plan where it finds one that is placed;
 * raises plan->bound. */
mpl_status mpl_residency_search(mpl_residency *r, const mpl_prices *root, uint64_t tick_limit,
                                mpl_residency_plan *plan);

/* Which uses are in fast memory where the operands of a step do not all fit: the largest first. */
void mpl_residency_operands(const mpl_residency *r, uint64_t capacity, uint8_t *fast);

uint64_t mpl_residency_total(const mpl_residency *r, const uint8_t *fast, const uint8_t *kept);

/* Offsets for fast memory in place[] of uses there. *fits false: none were found within the
 * capacity; *never: there are none; *least: an end that was reached [byte]. */
typedef struct mpl_placed {
    bool fits, never;
    uint64_t least;
} mpl_placed;
mpl_status mpl_residency_place(mpl_residency *r, const uint8_t *fast, const uint8_t *kept,
                               uint64_t *place, mpl_placed *placed);
/* Fills in all of the plan that follows from fast, kept, and place of uses in fast memory. */
mpl_status mpl_residency_finish(mpl_residency *r, mpl_residency_plan *plan);
