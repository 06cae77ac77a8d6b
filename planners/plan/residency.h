/* residency.h -- residency in time: which values lie in a small fast memory while which steps run.
 *
 * A step uses its operands in fast memory, all of them at once, none over another. Between two uses
 * a buffer either stays where it is (kept), or leaves: it is written to slow memory unless its
 * newest contents are there in whole (evicted), and copied back before a later use (prefetched).
 * Both happen between steps, evictions first. Where slow memory has a price, a step may also use an
 * operand there; that byte costs the price of slow memory, a byte moved that of fast memory.
 *
 * With a bandwidth, moves take time, and one channel carries them, one after the other, in the
 * order of the plan. A move begins once the channel is free and the steps before its `from` are
 * over; step `step` waits until it has ended. So its bytes are there, and its place in fast memory
 * is its own from `from` on (prefetch), or up to `step` (evict): places change hands between steps.
 * What a step uses in slow memory passes the channel right before it: behind the moves that began
 * or end before this step, ahead of the others. Stall is what steps wait in all. */
#pragma once

#include "planners/plan/plan.h"

typedef struct mpl_residency_problem {
    char *name;
    uint32_t n, n_steps;
    uint64_t capacity;   /* of fast memory [byte] */
    uint64_t move_price; /* of a byte that moves, at least 1 */
    uint64_t slow_price; /* of a byte that a step uses in slow memory; 0: no step may */
    uint64_t bandwidth;  /* between the memories [byte/s]; 0: moves take no time */
    uint64_t *step_ns;   /* [n_steps] duration of each step by itself; NULL: without bandwidth */
    uint32_t align;      /* of every offset, a power of two [byte] */
    char **buffer_name;  /* [n] */
    uint64_t *bytes;     /* [n] > 0 [byte] */
    uint32_t *begin;     /* [n + 1] into at and writes: uses of a buffer, at least one */
    uint32_t *at;        /* steps, ascending; the first one makes the buffer */
    uint8_t *writes;     /* 1: the step changes the buffer; slow memory then holds an older one */
} mpl_residency_problem;

/* A problem of n buffers with n_uses uses; all arrays are zero, names absent. */
mpl_status mpl_residency_problem_new(mpl_ctx *ctx, const char *name, uint32_t n, uint32_t n_uses,
                                     mpl_residency_problem **out);
void mpl_residency_problem_free(mpl_ctx *ctx, mpl_residency_problem *p);
/* MPL_EINPUT names what is wrong: sizes, steps, prices, or a step whose operands exceed fast memory
 * though no step may use slow memory. */
mpl_status mpl_residency_check(mpl_ctx *ctx, const mpl_residency_problem *p);

/* The time that bytes take on the channel, rounded up; bandwidth is not 0. [ns] */
uint64_t mpl_residency_ns(const mpl_residency_problem *p, uint64_t bytes);

typedef struct mpl_move {
    uint32_t from;     /* begins behind the step before; moves are in order of execution */
    uint32_t step;     /* which waits for its end */
    uint64_t start_ns; /* from the beginning of the run, with a bandwidth */
    mpl_buffer buffer;
    uint8_t to_fast;           /* 1: prefetch; 0: evict */
    uint64_t fast_at, slow_at; /* [byte] */
} mpl_move;

typedef struct mpl_residency_plan {
    uint32_t n, n_uses;
    uint8_t *fast;                   /* [n_uses] 1: used in fast memory */
    uint8_t *kept;                   /* [n_uses] 1: stays there until the next use */
    uint64_t *place;                 /* [n_uses] offset in the memory it is used in [byte] */
    uint32_t n_moves;                /* what the above says, step by step */
    mpl_move *move;                  /* [n_moves] */
    uint64_t moved_bytes;            /* evicted and prefetched */
    uint64_t slow_bytes;             /* that steps use in slow memory */
    uint64_t cost;                   /* move_price * moved_bytes + slow_price * slow_bytes */
    uint64_t bound;                  /* no plan costs less */
    bool searched;                   /* bound is of a search, not of step_price */
    bool programmed;                 /* .. that of a mixed integer program */
    uint64_t stall_ns, stall_bound;  /* with a bandwidth: what steps wait, no plan waits less */
    bool stall_searched;             /* stall_bound is of a complete search, not of prices */
    uint64_t *step_price;            /* [n_steps] of a byte of fast memory, in MPL_PRICE_PARTS */
    uint64_t fast_bytes, slow_arena; /* highest ends in the two memories [byte] */
} mpl_residency_plan;

/* Parts of a price in step_price: prices are whole, those of single steps are not. */
enum { MPL_PRICE_PARTS = 1024 };
/* Units in which the largest sum of whole buffers within the capacity is found, at most. */
enum { MPL_ROOM_UNITS = 1 << 18 };

/* An empty plan of the problem: all arrays but `move` are there, and zero. */
mpl_status mpl_residency_plan_new(mpl_ctx *ctx, const mpl_residency_problem *p,
                                  mpl_residency_plan **out);
void mpl_residency_plan_free(mpl_ctx *ctx, mpl_residency_plan *plan);

/* The plan as a self-contained JSON file, with the fields of its row. */
mpl_status mpl_residency_write(mpl_ctx *ctx, const char *path, const mpl_residency_problem *p,
                               const mpl_residency_plan *plan, const char *fields_json);
/* Reads such a file, without verifying it. *fields_json: of the row. MPL_EINPUT: it is none. */
mpl_status mpl_residency_read(mpl_ctx *ctx, const char *path, mpl_residency_problem **p,
                              mpl_residency_plan **plan, char **fields_json);
