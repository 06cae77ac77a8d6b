/* residency_priv.h -- shared by the files of planners/residency/.
 * residency_path.c: the least cost of one buffer   residency_bound.c: prices of steps, bounds
 * residency_room.c: what whole buffers fill
 * residency_program.c: through GLPK
 * residency_time.c: when moves run            residency_stall.c: the least stall, its bound
 * residency_windows.c: all orders and windows
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
    uint64_t *room;      /* [n_steps] the most that whole buffers fill of it; NULL: not asked for */
    uint8_t *state;      /* [n_uses * 3] scratch of a path: where each state came from */
    uint64_t *slow_ns;   /* [n_steps] scratch of mpl_residency_time */
    uint8_t *use, *stay; /* [n_uses] what is decided; all MPL_FREE outside of the search */
    uint64_t ticks;
} mpl_residency;

/* MPL_EINPUT: sums would pass 2^62. */
mpl_status mpl_residency_init(mpl_run *run, const mpl_residency_problem *p,
                              mpl_residency *residency);
void mpl_residency_fini(mpl_residency *residency);
/* residency_room.c: fills in room. */
mpl_status mpl_residency_room(mpl_residency *residency);
/* The most bytes of the operands of each step that fit together: (*most)[n_steps], owned by the
 * caller. */
mpl_status mpl_residency_fit(mpl_residency *residency, uint64_t **most);

/* Where a path may go. */
typedef struct mpl_path {
    const uint64_t *price; /* [n_steps + 1] sums of prices before each step, in parts; NULL: 0 */
    const int64_t *room;   /* [n_steps] of fast memory [byte]; NULL: unlimited */
} mpl_path;
/* The way of least cost for one buffer: writes fast and kept of its uses. *cost in parts, with the
 * prices of the steps it takes. False: there is none. O(uses + steps where room counts). */
bool mpl_residency_path(mpl_residency *residency, mpl_buffer b, const mpl_path *path, uint8_t *fast,
                        uint8_t *kept, uint64_t *cost);
/* Cost of a buffer's way; adds to *moved and *slow [byte] unless NULL. */
uint64_t mpl_residency_cost(const mpl_residency_problem *p, mpl_buffer b, const uint8_t *fast,
                            const uint8_t *kept, uint64_t *moved, uint64_t *slow);
/* Adds `sign` times the buffer's size to load[] at steps in fast memory: at uses, and between. */
void mpl_residency_load(const mpl_residency *residency, mpl_buffer b, const uint8_t *fast,
                        const uint8_t *kept, int sign, bool uses, bool stays, int64_t *load);

/* Prices for steps: they prove a lower bound by the least cost of each buffer alone, minus what
 * all costs that whole buffers can fill at each step. */
typedef struct mpl_prices {
    double *exact;         /* [n_steps] */
    uint64_t *price;       /* [n_steps] in parts */
    uint64_t *sum;         /* [n_steps + 1] */
    uint8_t *fast, *kept;  /* [n_uses] the ways under the prices */
    int64_t *load;         /* [n_steps] of these ways [byte] */
    double *slope, *trial; /* [n_steps] scratch */
    uint64_t bound;        /* cost, rounded up; UINT64_MAX: no way for some buffer */
} mpl_prices;

mpl_status mpl_prices_init(mpl_residency *residency, mpl_prices *out);
void mpl_prices_fini(mpl_residency *residency, mpl_prices *prices);
/* Improves the prices by `rounds` of a subgradient method towards `goal`, a cost known to be
 * reached; ends where the bound is `goal`. Leaves the ways of the last round. */
void mpl_prices_rise(mpl_residency *residency, uint32_t rounds, uint64_t goal, mpl_prices *prices);

/* A first plan within the capacity at each step; improved by taking a few buffers out and back. */
mpl_status mpl_residency_first(mpl_residency *residency, const mpl_prices *prices,
                               uint64_t capacity, uint8_t *fast, uint8_t *kept);
mpl_status mpl_residency_near(mpl_residency *residency, const mpl_prices *prices, uint64_t capacity,
                              uint64_t rounds, uint64_t enough, uint8_t *fast, uint8_t *kept);
/* The complete search below plan->cost: replaces the plan where it finds one that is placed;
 * raises plan->bound. */
mpl_status mpl_residency_search(mpl_residency *residency, const mpl_prices *root,
                                uint64_t tick_limit, mpl_residency_plan *plan);

/* residency_program.c: a mixed integer program within `nodes` of branch and bound. *bound: no ways
 * cost less, 0: unknown; *found: fast and kept hold ways within the capacity. Without GLPK neither.
 */
mpl_status mpl_residency_program(mpl_residency *residency, uint64_t nodes, uint64_t *bound,
                                 uint8_t *fast, uint8_t *kept, bool *found);

/* Which uses are in fast memory where the operands of a step do not all fit: the largest first. */
void mpl_residency_operands(const mpl_residency *residency, uint64_t capacity, uint8_t *fast);

/* residency_rules.c: the ways of the rules. */
mpl_status mpl_residency_belady_ways(mpl_residency *residency, uint8_t *fast, uint8_t *kept);
mpl_status mpl_residency_greedy_ways(mpl_residency *residency, uint8_t *fast, uint8_t *kept);

uint64_t mpl_residency_total(const mpl_residency *residency, const uint8_t *fast,
                             const uint8_t *kept);

/* Offsets for fast memory in place[] of uses there. *fits false: none were found within the
 * capacity; *never: there are none; *least: an end that was reached [byte]. */
typedef struct mpl_placed {
    bool fits, never;
    uint64_t least;
} mpl_placed;
/* A move that ways ask for, in the channel's order: after `use`, or to_fast before it. It may begin
 * once the steps before `from` are over, and step `until` waits for its end. */
typedef struct mpl_timed {
    uint32_t use;
    uint8_t to_fast;
    uint32_t from, until;
    uint64_t start_ns, end_ns;
} mpl_timed;
/* Pieces last while their n moves may run; n 0: moves run between two steps. */
mpl_status mpl_residency_place(mpl_residency *residency, const uint8_t *fast, const uint8_t *kept,
                               uint32_t n, const mpl_timed *move, uint64_t *place,
                               mpl_placed *placed);
/* Fills in all of the plan that follows from fast, kept, place of uses in fast memory, and moves.
 */
mpl_status mpl_residency_finish(mpl_residency *residency, uint32_t n, const mpl_timed *move,
                                mpl_residency_plan *plan);

/* residency_time.c: the moves of ways, each between two steps; move[2 * n_uses] has room. */
uint32_t mpl_residency_moves(const mpl_residency *residency, const uint8_t *fast,
                             const uint8_t *kept, mpl_timed *move);
/* When each move runs, and the stall of all [ns]; until is lowered to that of later moves. */
uint64_t mpl_residency_time(mpl_residency *residency, const uint8_t *fast, uint32_t n,
                            mpl_timed *move);
/* Lets the moves begin as early as room within `capacity` allows, which orders them anew. */
mpl_status mpl_residency_issue(mpl_residency *residency, const uint8_t *fast, const uint8_t *kept,
                               uint64_t capacity, uint32_t n, mpl_timed *move);

/* Ways, offsets, moves and their stall. */
typedef struct mpl_timing {
    uint8_t *fast, *kept;
    uint64_t *place;
    uint32_t n;
    mpl_timed *move; /* [n], of 2 * n_uses */
    uint64_t stall_ns;
} mpl_timing;
mpl_status mpl_timing_init(mpl_residency *residency, mpl_timing *out);
void mpl_timing_fini(mpl_residency *residency, mpl_timing *timing);
void mpl_timing_copy(const mpl_residency *residency, const mpl_timing *from, mpl_timing *to);
/* residency_windows.c: replaces *best where another has less stall; *bound: none has less. */
mpl_status mpl_residency_try_all(mpl_residency *residency, uint64_t tick_limit, mpl_timing *best,
                                 uint64_t *bound);
/* residency_stall.c: fills in *best, the plan's ways, offsets and stall, and its bound on it. */
mpl_status mpl_residency_stall(mpl_residency *residency, const mpl_prices *prices, uint64_t ticks,
                               mpl_residency_plan *plan, mpl_timing *best);
