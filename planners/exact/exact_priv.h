/* exact_priv.h -- the internal interfaces of the exact planner. Private to planners/exact*.c.
 * SEARCH.md, section 2, shows the calls. */
#pragma once

#include <stdatomic.h>

#include "planners/exact/exact.h"
#include "planners/plan/proof.h"

/* A length or an offset, in units of the case. Sums over one section stay below 2^62. */
typedef int64_t mpl_len;
#define MPL_LEN_MAX (INT64_MAX / 4)

/* Old values, restored when the search leaves a node. */
typedef struct mpl_trail {
    struct mpl_trail_step {
        uint32_t what;
        int64_t old;
    } * step;
    size_t n, room;
} mpl_trail;

static inline mpl_status mpl_trail_push(mpl_ctx *ctx, mpl_trail *trail, uint32_t what, int64_t old)
{
    if (trail->n == trail->room)
        MPL_PASS(mpl_reserve(ctx, trail->step, trail->room, trail->n + 1));
    trail->step[trail->n++] = (struct mpl_trail_step){what, old};
    return MPL_OK;
}

/* ---- cases ---- */

/* A buffer as input of mpl_exact_case_new. */
typedef struct mpl_exact_item {
    uint32_t birth, death; /* half-open [step] */
    mpl_len size;          /* > 0 [unit] */
    mpl_len align;         /* offsets are its multiples [unit] */
    mpl_len start;         /* lowest allowed offset [unit] */
    uint64_t bytes;        /* size * unit without the unused rest of the last unit [byte] */
    bool fixed;            /* start is the only offset allowed */
    uint32_t given_align;  /* alignment of the buffer; proofs require it equal in twins [byte] */
} mpl_exact_item;

/* Items, renumbered by their first section. A section is a maximal set of items alive at once. In
 * time order of sections, two items overlap in time iff their section ranges [left, right) do. */
typedef struct mpl_exact_case {
    int32_t n, n_sections;
    bool plain;         /* every limit is the cap; no item is aligned or fixed */
    int32_t *left;      /* [n] ascending [section] */
    int32_t *right;     /* [n] > left [section] */
    mpl_len *size;      /* [n] [unit] */
    mpl_len *align;     /* [n] [unit] */
    mpl_len *start;     /* [n] [unit] */
    mpl_len *limit;     /* [n] highest allowed end [unit] */
    uint32_t *duration; /* [n] [step] */
    uint32_t *item;     /* [n] index into the caller's items */
    int32_t *twin;      /* [n] the preceding item if it is identical, else -1 */
    int32_t *first;     /* [n_sections + 1] first item with left >= s */
    int32_t *begin;     /* [n_sections + 1] into member: the items of each section */
    int32_t *member;    /* NULL: more than MPL_EXACT_MEMBERS, the case cannot be searched */
    mpl_len cap;        /* largest limit [unit] */
} mpl_exact_case;

#define MPL_EXACT_MEMBERS (UINT64_C(1) << 23) /* over all sections; 12 bytes each in a state */

/* Makes the case of item[n], without limits. `mirrored`: time reversed. O(n log n + members). */
mpl_status mpl_exact_case_new(mpl_ctx *ctx, const mpl_exact_item *item, uint32_t n, bool mirrored,
                              mpl_exact_case **out);
void mpl_exact_case_free(mpl_ctx *ctx, mpl_exact_case *exact_case);

/* Limits the end of every item to `cap` bytes. item[] as given to mpl_exact_case_new. */
void mpl_exact_case_limit(mpl_exact_case *exact_case, const mpl_exact_item *item, uint64_t unit,
                          uint64_t cap);

/* ---- states ---- */

/* Called when the filter of `section` raises item i to `est`, before est is rounded up. */
typedef struct mpl_exact_search mpl_exact_search;
typedef void mpl_exact_observer(mpl_exact_search *search, int32_t section, int32_t i, mpl_len est);

/* A node of the search. It means only that each item not yet placed lies at or above its est. */
typedef struct mpl_exact_state {
    mpl_ctx *ctx;
    const mpl_exact_case *exact_case;
    mpl_len *est;      /* [n] lowest possible offset; of placed items the offset */
    uint8_t *placed;   /* [n] */
    int32_t *order;    /* items of each section (c->begin): those not placed first, by key */
    mpl_len *key;      /* est at the last sorting, parallel to order */
    int32_t *count;    /* [section] items not placed */
    int32_t *cross;    /* [section] items not placed that are also in the next section */
    mpl_len *rest;     /* [section] sum of the sizes of items not placed */
    mpl_len *floor;    /* [section] least est of items not placed; MPL_LEN_MAX: none */
    mpl_len *cap;      /* [section] */
    uint64_t *dirty;   /* sections whose bounds must be checked again */
    uint64_t *stale;   /* sections whose order is no longer sorted by est */
    uint64_t *changed; /* sections that changed since the filter last ran */
    uint32_t n_words;
    mpl_len risk; /* highest est since the last settling; MPL_LEN_MAX: caps sank */
    bool dead;    /* an item cannot end within its limit, or memory ran out */
    bool no_memory;
    mpl_trail trail;        /* what: id * 4 + kind */
    int32_t *sorted;        /* [2 * n] scratch of mpl_exact_state_load */
    uint64_t *sums;         /* bit set: sums of sizes below an offset */
    mpl_len *end;           /* [longest section] scratch of the filter */
    mpl_len *end_size;      /* [longest section] */
    mpl_len filter_slack;   /* highest slack of a section that is filtered; < 0: none is [unit] */
    uint32_t filter_sweeps; /* most passes over changed sections in one settling */
    uint64_t ticks;         /* items examined */
    mpl_exact_observer *observer; /* may be NULL */
    mpl_exact_search *observed_by;
} mpl_exact_state;

mpl_status mpl_exact_state_new(mpl_ctx *ctx, const mpl_exact_case *exact_case,
                               mpl_exact_state **out);
void mpl_exact_state_free(mpl_ctx *ctx, mpl_exact_state *state);

/* Resets to no item placed, every est at its start, and the limits of the case. */
void mpl_exact_state_reset(mpl_exact_state *state);
/* Sets est[n] and placed[n], with the caps of the case and an empty trail. */
void mpl_exact_state_load(mpl_exact_state *state, const mpl_len *est, const uint8_t *placed);

/* Places item i at est[i]. All open items of its sections must have an est at least as high. */
void mpl_exact_place(mpl_exact_state *state, int32_t i);
/* Places item i at the top of its component, sections [a, b), whose caps sink by its size. */
void mpl_exact_place_top(mpl_exact_state *state, int32_t i, int32_t a, int32_t b);
void mpl_exact_raise(mpl_exact_state *state, int32_t i, mpl_len est);
/* Propagates until nothing is dirty; false: no completion exists. */
bool mpl_exact_settle(mpl_exact_state *state);
void mpl_exact_undo(mpl_exact_state *state, size_t n_trail);
void mpl_exact_sort(mpl_exact_state *state, int32_t s); /* sorts a stale section by est */

static inline mpl_len mpl_exact_slack(const mpl_exact_state *state, int32_t s)
{
    return state->cap[s] - state->floor[s] - state->rest[s];
}

/* Whether the deadline has passed or the caller asked to stop. */
static inline bool mpl_exact_late(int64_t deadline_ns, const mpl_watch *watch)
{
    return (watch != NULL && watch->stop != NULL && *watch->stop != 0) ||
           (deadline_ns != INT64_MAX && mpl_clock_ns() >= deadline_ns);
}

/* ---- search ---- */

/* Which section's floor cell to branch on. Forced cells always come first. */
typedef enum mpl_exact_pick {
    MPL_PICK_SCORE_LOW,   /* fewest children, then the lowest floor */
    MPL_PICK_SCORE_TIGHT, /* fewest children, then the least slack */
    MPL_PICK_SCORE_HIGH,  /* fewest children, then the highest floor */
    MPL_PICK_TIGHT,       /* least slack, then the lowest floor */
    MPL_PICK_LOW,         /* lowest floor, then the fewest children */
} mpl_exact_pick;

/* Hashes of failed components: 128-bit sums over (item, est), for both directions of time. */
typedef struct mpl_exact_memo {
    mpl_ctx *ctx;
    uint64_t (*slot)[2];
    size_t n_slots, n_used; /* n_slots: 0 or a power of two */
} mpl_exact_memo;

typedef enum mpl_exact_verdict {
    MPL_EXACT_FOUND,
    MPL_EXACT_FAILED,
    MPL_EXACT_STOPPED
} mpl_exact_verdict;

struct mpl_exact_search {
    mpl_exact_state *x;
    mpl_exact_memo *memo; /* may be NULL */
    mpl_exact_pick pick;
    const uint32_t *rank; /* [n] candidates of lower rank are tried first */
    uint64_t node_limit, nodes;
    uint64_t tick_limit; /* of the state's ticks */
    int64_t deadline_ns;
    const mpl_watch *watch;            /* may be NULL */
    uint32_t without;                  /* bits of mpl_exact_rule */
    bool by_clock;                     /* the deadline stopped it */
    mpl_len *value_left, *value_right; /* [n_sections + 1] scratch */
    int32_t *run_begin, *run_end;      /* [n_sections] scratch: neighbours of the same floor */
    int32_t *stack;                    /* children of the nodes on the current path */
    size_t n_stack, stack_room;
    mpl_proof *proof;   /* receives refutations; NULL: none are written */
    uint64_t unit;      /* of the proof [byte] */
    const uint32_t *id; /* [n] names of the items in the proof */
    uint32_t *set;      /* [n_sections] names of the sections in the proof */
    bool apart;         /* the items of the proof's root are not all connected */
    bool lost;          /* a failure had a reason that no proof record can state */
};

/* The cell that a node branches on. score: number of children, with the branch "nobody". */
typedef struct mpl_exact_cell {
    int32_t section;
    int32_t score;
    bool nobody;
} mpl_exact_cell;

mpl_status mpl_exact_search_init(mpl_exact_search *search, mpl_exact_state *state);
void mpl_exact_search_fini(mpl_exact_search *search);

/* Whether the open items can be completed. FOUND leaves all offsets in est; FAILED is a proof. */
mpl_exact_verdict mpl_exact_search_run(mpl_exact_search *search);

/* Makes a search write its refutations. id[n] names the items; lengths are written times `unit`
 * bytes. Writes the open items and the sections as sets, set[n_sections], first. */
void mpl_exact_search_prove(mpl_exact_search *search, uint64_t unit, const uint32_t *id,
                            uint32_t *set, mpl_proof *proof);

/* Chooses the cell of sections [a, b) to branch on. */
mpl_exact_cell mpl_exact_choose(mpl_exact_search *search, int32_t a, int32_t b);
/* Pushes the distinct candidates of the cell on search->stack, by rank. Returns their number; -1:
 * no memory. */
int32_t mpl_exact_candidates(mpl_exact_search *search, const mpl_exact_cell *cell);
/* Takes the branch in which no item covers the cell: its candidates rise. */
void mpl_exact_nobody(mpl_exact_search *search, int32_t section);

/* Finds the first sections [*a, *end) of [*a, b) that open items connect; false: there are none. */
bool mpl_exact_component(const mpl_exact_state *state, int32_t *a, int32_t b, int32_t *end);

/* key[0] is not 0. A NULL memo is empty and keeps nothing. When it cannot grow, it keeps less. */
bool mpl_exact_memo_has(const mpl_exact_memo *memo, const uint64_t key[2]);
void mpl_exact_memo_add(mpl_exact_memo *memo, const uint64_t key[2]);
void mpl_exact_memo_fini(mpl_exact_memo *memo);
void mpl_exact_memo_clear(mpl_exact_memo *memo);

/* ---- beam ---- */

enum { MPL_EXACT_ORDERS = 4, MPL_EXACT_BEAMS = 4, MPL_EXACT_THREADS = 64 };
#define MPL_EXACT_FILTER_SLACK 2 /* [unit] */

typedef struct mpl_exact_beam {
    uint32_t width;       /* states kept */
    uint32_t probes;      /* depth-first searches in each round of searches */
    bool weighted;        /* waste weighs more in sections of little slack */
    mpl_len filter_slack; /* of the states; < 0: no filter, where it costs more than it prunes */
    const uint32_t *const *rank; /* [MPL_EXACT_ORDERS][n] */
    uint64_t seed;
    uint64_t tick_limit;
    int64_t deadline_ns;
    const mpl_watch *watch; /* may be NULL */
    uint32_t n_threads;
    uint32_t without; /* bits of mpl_exact_rule */
} mpl_exact_beam;

typedef struct mpl_exact_beam_result {
    mpl_len *est; /* [n] the caller's array: offsets where FOUND */
    mpl_exact_verdict verdict;
    int32_t depth; /* items placed in the last level */
    uint64_t ticks;
    bool by_clock;
} mpl_exact_beam_result;

/* Looks for a plan of the case within its limits: FOUND or STOPPED, never FAILED. Without a
 * deadline the result is the same for any number of threads. */
mpl_status mpl_exact_beam_run(mpl_ctx *ctx, const mpl_exact_case *exact_case,
                              const mpl_exact_beam *beam, mpl_exact_beam_result *result);

/* ---- parts ---- */

/* One direction of time of a part, made on first use. */
typedef struct mpl_exact_side {
    mpl_exact_case *exact_case;
    mpl_exact_state *state;
    mpl_exact_search search;
    uint32_t *rank[MPL_EXACT_ORDERS]; /* [n] */
    uint32_t *noisy;                  /* [n] the rank in use, with noise */
} mpl_exact_side;

/* A subproblem: buffers of one pool whose live ranges are connected. */
typedef struct mpl_exact_part {
    mpl_ctx *ctx;
    uint32_t n;
    mpl_buffer *buffer;   /* [n] ascending by birth */
    mpl_exact_item *item; /* [n] */
    uint64_t unit;        /* [byte] */
    bool vast;            /* sections have too many members to search: try and beam stop at once */
    uint64_t bound;       /* proven lower bound [byte] */
    uint64_t height;      /* of the best plan known [byte] */
    uint64_t *offset;     /* [n] the best plan known [byte] */
    uint64_t cap;         /* cap of the sides and the memo; 0: none [byte] */
    mpl_exact_side side[2];
    mpl_exact_memo memo;
    uint64_t node_limit;   /* of a search in lap 0 */
    uint64_t tick_limit;   /* of any search */
    uint32_t n_members;    /* searches in a lap */
    uint32_t n_merged;     /* calls of mpl_exact_part_merge */
    uint64_t search_ticks; /* part of effort->ticks */
    uint64_t beam_ticks;   /* likewise, of the beams at the goal */
    uint32_t beam_stage;   /* stage of the next beams at the goal */
    int32_t beam_depth[MPL_EXACT_BEAMS];
} mpl_exact_part;

/* Limits of the work of all engines, and the work done so far. */
typedef struct mpl_exact_effort {
    uint64_t seed;
    uint64_t tick_limit; /* in total */
    int64_t deadline_ns;
    const mpl_watch *watch; /* may be NULL */
    uint32_t n_threads;
    uint32_t without; /* bits of mpl_exact_rule */
    uint64_t ticks;   /* used so far by all engines */
    bool by_clock;
} mpl_exact_effort;

static inline bool mpl_exact_uses(uint32_t without, mpl_exact_rule rule)
{
    return (without >> rule & 1) == 0;
}

/* Makes the part of n > 0 buffers and takes over `buffer`. Sets the bound, not height and
 * offset. */
mpl_status mpl_exact_part_init(mpl_ctx *ctx, const mpl_problem *p, mpl_buffer *buffer, uint32_t n,
                               mpl_exact_part *part);
/* Makes a part for at most `most` items that are not buffers. Its bound is `cap`. */
mpl_status mpl_exact_part_made(mpl_ctx *ctx, uint64_t unit, uint64_t cap, uint32_t most,
                               mpl_exact_part *part);
/* Adds an item. `size` is in units of the part. */
void mpl_exact_part_add(mpl_exact_part *part, uint32_t birth, uint32_t death, mpl_len size);
void mpl_exact_part_fini(mpl_exact_part *part);

/* Looks for a plan within `cap` bytes, with more effort in each lap (0, 1, ..). FOUND sets height
 * and offset. FAILED: there is none; the bound becomes the next height that a plan can have. */
mpl_status mpl_exact_part_try(mpl_exact_part *part, uint64_t cap, uint32_t lap,
                              mpl_exact_effort *effort, mpl_exact_verdict *verdict);

/* One run of merging (exact_merge.c). It gives up once a run of a lower number has found a plan. */
typedef struct mpl_exact_merging {
    const mpl_exact_part *part;
    uint64_t cap, seed; /* highest end [byte]; of all runs */
    uint32_t run;
    const atomic_uint *first; /* lowest run with a plan; UINT32_MAX: none */
} mpl_exact_merging;
/* FOUND fills offset[part->n]; else STOPPED. */
mpl_status mpl_exact_merge_once(mpl_ctx *ctx, const mpl_exact_merging *one,
                                mpl_exact_effort *effort, uint64_t *offset,
                                mpl_exact_verdict *verdict);

/* Looks for a plan within `cap` bytes by merging items in pairs, in `runs` runs of `ticks` ticks
 * each. FOUND or STOPPED. Without a deadline the result is the same for any number of threads. */
mpl_status mpl_exact_part_merge(mpl_exact_part *part, uint64_t cap, uint32_t runs, uint64_t ticks,
                                mpl_exact_effort *effort, mpl_exact_verdict *verdict);

/* Looks for a plan within `cap` bytes by beams of each kind. Their width doubles with each stage
 * (0, 1, ..). FOUND or STOPPED. */
mpl_status mpl_exact_part_beam(mpl_exact_part *part, uint64_t cap, uint32_t stage,
                               mpl_exact_effort *effort, mpl_exact_verdict *verdict);

/* The least height >= `bytes`, or largest <= `bytes`, at which an item can end, ignoring alignment.
 * [byte] */
uint64_t mpl_exact_part_height_above(const mpl_exact_part *part, uint64_t bytes);
uint64_t mpl_exact_part_height_below(const mpl_exact_part *part, uint64_t bytes);

/* ---- proofs ---- */

/* Appends to the proof a refutation of every plan within `cap` bytes, with ids of part->buffer.
 * FOUND: a plan exists; STOPPED: the effort ended, or the proof is full. Only FAILED writes. */
mpl_status mpl_exact_part_prove(const mpl_exact_part *part, uint64_t cap, mpl_exact_effort *effort,
                                mpl_proof *proof, mpl_exact_verdict *verdict);
