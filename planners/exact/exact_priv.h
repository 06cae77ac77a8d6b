/* exact_priv.h -- the parts of the exact planner. Private to planners/exact*.c. Who calls whom:
 * SEARCH.md, section 2. */
#ifndef MPL_EXACT_PRIV_H
#define MPL_EXACT_PRIV_H

#include "planners/exact/exact.h"
#include "planners/plan/proof.h"

/* A length or an offset, in units of the case. Sums over one section stay below 2^62. */
typedef int64_t mpl_len;
#define MPL_LEN_MAX (INT64_MAX / 4)

/* Old values, the way back from a node of a search. */
typedef struct mpl_trail {
    struct mpl_trail_step {
        uint32_t what;
        int64_t old;
    } * step;
    size_t n, room;
} mpl_trail;

static inline mpl_status mpl_trail_push(mpl_ctx *ctx, mpl_trail *trail, uint32_t what, int64_t old)
{
    mpl_status st = MPL_OK;

    if (trail->n == trail->room)
        MPL_TRY(mpl_reserve(ctx, trail->step, trail->room, trail->n + 1));
    trail->step[trail->n++] = (struct mpl_trail_step){what, old};
out:
    return st;
}

/* ---- cases ---- */

/* One buffer as the case is made from it. */
typedef struct mpl_exact_item {
    uint32_t birth, death; /* half-open [step] */
    mpl_len size;          /* > 0 [unit] */
    mpl_len align;         /* offsets are its multiples [unit] */
    mpl_len start;         /* lowest offset allowed [unit] */
    uint64_t bytes;        /* size * unit less the rest that need not exist [byte] */
    bool fixed;            /* start is the only offset allowed */
    uint32_t given_align;  /* the buffer's own: what differs in it is no twin to the checker of
                              proofs [byte] */
} mpl_exact_item;

/* Items renumbered by their first section. A section is a maximal set of items that are alive at
 * once, in order of time, so two items overlap in time iff their section ranges [left, right)
 * do. */
typedef struct mpl_exact_case {
    int32_t n, n_sections;
    bool plain;         /* every limit is the cap, nothing is aligned, nothing fixed */
    int32_t *left;      /* [n] ascending [section] */
    int32_t *right;     /* [n] > left [section] */
    mpl_len *size;      /* [n] [unit] */
    mpl_len *align;     /* [n] [unit] */
    mpl_len *start;     /* [n] [unit] */
    mpl_len *limit;     /* [n] where the item must have ended [unit] */
    uint32_t *duration; /* [n] [step] */
    uint32_t *item;     /* [n] index into the caller's items */
    int32_t *twin;      /* [n] the item before, if it differs in nothing; else -1 */
    int32_t *first;     /* [n_sections + 1] first item with left >= s */
    int32_t *begin;     /* [n_sections + 1] into member: the items of each section */
    int32_t *member;    /* NULL: more than MPL_EXACT_MEMBERS, nothing to search in */
    mpl_len cap;        /* largest limit [unit] */
} mpl_exact_case;

#define MPL_EXACT_MEMBERS (UINT64_C(1) << 23) /* of all sections: a state has 12 bytes for each */

/* The case of item[n]; with `mirrored`, time runs backwards. Limits are not set. O(n log n +
 * members). */
mpl_status mpl_exact_case_new(mpl_ctx *ctx, const mpl_exact_item *item, uint32_t n, bool mirrored,
                              mpl_exact_case **out);
void mpl_exact_case_free(mpl_ctx *ctx, mpl_exact_case *c);

/* Every item has to end within `cap` bytes. item[] as given to mpl_exact_case_new. */
void mpl_exact_case_limit(mpl_exact_case *c, const mpl_exact_item *item, uint64_t unit,
                          uint64_t cap);

/* ---- states ---- */

/* Told that the filter of `section` raises item i to `est`, before it is rounded up. */
typedef struct mpl_exact_search mpl_exact_search;
typedef void mpl_exact_observer(mpl_exact_search *search, int32_t section, int32_t i, mpl_len est);

/* A node of the search. Its meaning is only this: the items not yet placed lie somewhere at or
 * above their est. */
typedef struct mpl_exact_state {
    mpl_ctx *ctx;
    const mpl_exact_case *c;
    mpl_len *est;      /* [n] lowest offset possible; of placed items the offset */
    uint8_t *placed;   /* [n] */
    int32_t *order;    /* per section (c->begin): its items, those not placed first, by key */
    mpl_len *key;      /* est as of the last sorting, parallel to order */
    int32_t *count;    /* [section] items not placed */
    int32_t *cross;    /* [section] items not placed that also live in the next section */
    mpl_len *rest;     /* [section] sum of the sizes of items not placed */
    mpl_len *floor;    /* [section] least est among them; MPL_LEN_MAX: none left */
    mpl_len *cap;      /* [section] */
    uint64_t *dirty;   /* sections whose bounds have to be looked at again */
    uint64_t *stale;   /* sections whose order is no longer by est */
    uint64_t *changed; /* sections that the filter has not seen since they changed */
    uint32_t n_words;
    mpl_len risk; /* highest est since the last settling; MPL_LEN_MAX: caps sank */
    bool dead;    /* some item can no longer end within its limit, or memory ran out */
    bool no_memory;
    mpl_trail trail;        /* what: id * 4 + kind */
    int32_t *sorted;        /* [2 * n] scratch of loading */
    uint64_t *sums;         /* bits: sums of sizes below an offset */
    mpl_len *end;           /* [longest section] scratch of the filter */
    mpl_len *end_size;      /* [longest section] */
    mpl_len filter_slack;   /* the filter works where a section may waste no more than this; < 0:
                               nowhere [unit] */
    uint32_t filter_sweeps; /* over changed sections, in one settling */
    uint64_t ticks;         /* items looked at */
    mpl_exact_observer *observer; /* NULL: none */
    mpl_exact_search *observed_by;
} mpl_exact_state;

mpl_status mpl_exact_state_new(mpl_ctx *ctx, const mpl_exact_case *c, mpl_exact_state **out);
void mpl_exact_state_free(mpl_ctx *ctx, mpl_exact_state *x);

/* Nothing placed, every est at its start, the limits of the case. */
void mpl_exact_state_reset(mpl_exact_state *x);
/* The state with these est[n] and placed[n], from which nothing can be undone. Caps are those of
 * the case. */
void mpl_exact_state_load(mpl_exact_state *x, const mpl_len *est, const uint8_t *placed);

/* Places item i at est[i]; all items of its sections must lie at or above. */
void mpl_exact_place(mpl_exact_state *x, int32_t i);
/* Places item i at the top of its component, sections [a, b), whose caps sink by its size. */
void mpl_exact_place_top(mpl_exact_state *x, int32_t i, int32_t a, int32_t b);
void mpl_exact_raise(mpl_exact_state *x, int32_t i, mpl_len est);
/* Draws conclusions until nothing is dirty; false: no completion exists. */
bool mpl_exact_settle(mpl_exact_state *x);
void mpl_exact_undo(mpl_exact_state *x, size_t n_trail);
void mpl_exact_sort(mpl_exact_state *x, int32_t s); /* order of a section by est, if it is stale */

static inline mpl_len mpl_exact_slack(const mpl_exact_state *x, int32_t s)
{
    return x->cap[s] - x->floor[s] - x->rest[s];
}

/* Whether the caller's time is over, or he has had enough. */
static inline bool mpl_exact_late(int64_t deadline_ns, const mpl_watch *watch)
{
    return (watch != NULL && watch->stop != NULL && *watch->stop != 0) ||
           (deadline_ns != INT64_MAX && mpl_clock_ns() >= deadline_ns);
}

/* ---- search ---- */

/* Which section's floor cell to branch on; forced cells always come first. */
typedef enum mpl_exact_pick {
    MPL_PICK_SCORE_LOW,   /* fewest children, then the lowest floor */
    MPL_PICK_SCORE_TIGHT, /* fewest children, then the least slack */
    MPL_PICK_SCORE_HIGH,  /* fewest children, then the highest floor */
    MPL_PICK_TIGHT,       /* least slack, then the lowest floor */
    MPL_PICK_LOW,         /* lowest floor, then the fewest children */
} mpl_exact_pick;

/* Failed components, as 128-bit sums over (item, est). Shared by both directions of time. */
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
    mpl_exact_memo *memo; /* NULL: none */
    mpl_exact_pick pick;
    const uint32_t *rank; /* [n] candidates with lower ranks are tried first */
    uint64_t node_limit, nodes;
    uint64_t tick_limit; /* of the state's ticks */
    int64_t deadline_ns;
    const mpl_watch *watch;            /* NULL: nobody */
    uint32_t without;                  /* bits of mpl_exact_rule */
    bool by_clock;                     /* the deadline stopped it */
    mpl_len *value_left, *value_right; /* [n_sections + 1] scratch */
    int32_t *run_begin, *run_end; /* [n_sections] scratch: sections around with the same floor */
    int32_t *stack;               /* children of the nodes above */
    size_t n_stack, stack_room;
    mpl_proof *proof;   /* NULL: nothing is written. Else what is refuted is added there */
    uint64_t unit;      /* of the proof [byte] */
    const uint32_t *id; /* [n] the items in the proof */
    uint32_t *set;      /* [n_sections] the sections in the proof */
    bool apart;         /* at first, the items in it are not all connected */
    bool lost;          /* it failed for a reason that no record can state */
};

/* The cell that a node branches on. score: children, "nobody" among them. */
typedef struct mpl_exact_cell {
    int32_t section;
    int32_t score;
    bool nobody;
} mpl_exact_cell;

mpl_status mpl_exact_search_init(mpl_exact_search *q, mpl_exact_state *x);
void mpl_exact_search_fini(mpl_exact_search *q);

/* Whether the items not placed can be completed. FOUND leaves all offsets in est; FAILED is a
 * proof. */
mpl_exact_verdict mpl_exact_search_run(mpl_exact_search *q);

/* Makes a search write what it refutes, the items by the names id[n], in unit bytes each length.
 * Begins with the open items, and the sections as sets: set[n_sections]. */
void mpl_exact_search_prove(mpl_exact_search *q, uint64_t unit, const uint32_t *id, uint32_t *set,
                            mpl_proof *proof);

/* The cell of sections [a, b) to branch on. */
mpl_exact_cell mpl_exact_choose(mpl_exact_search *q, int32_t a, int32_t b);
/* Pushes the distinct candidates of the cell on q->stack, by rank; returns how many, or -1 without
 * memory. */
int32_t mpl_exact_candidates(mpl_exact_search *q, const mpl_exact_cell *cell);
/* Nobody covers the cell: its candidates move up. */
void mpl_exact_nobody(mpl_exact_search *q, int32_t section);

/* The first sections [*a, *end) of [*a, b) that open items connect; false: there are none. */
bool mpl_exact_component(const mpl_exact_state *x, int32_t *a, int32_t b, int32_t *end);
/* An open item of the component [a, b) that overlaps all others there and has the highest est, or
 * -1: if there is a completion, then one with this item at the top, the others moved down. */
int32_t mpl_exact_universal(const mpl_exact_state *x, int32_t a, int32_t b);

/* key[0] is not 0. NULL: none has failed, none is kept. Without memory less is kept. */
bool mpl_exact_memo_has(const mpl_exact_memo *memo, const uint64_t key[2]);
void mpl_exact_memo_add(mpl_exact_memo *memo, const uint64_t key[2]);
void mpl_exact_memo_fini(mpl_exact_memo *memo);
void mpl_exact_memo_clear(mpl_exact_memo *memo);

/* ---- beam ---- */

enum { MPL_EXACT_ORDERS = 4, MPL_EXACT_BEAMS = 4, MPL_EXACT_THREADS = 64 };
#define MPL_EXACT_FILTER_SLACK 2 /* [unit] */

typedef struct mpl_exact_beam {
    uint32_t width;       /* states kept */
    uint32_t probes;      /* searches in each round of them */
    bool weighted;        /* waste weighs more where a section has little slack */
    mpl_len filter_slack; /* of the states; < 0: the filter costs more than its pruning saves */
    const uint32_t *const *rank; /* [MPL_EXACT_ORDERS][n] */
    uint64_t seed;
    uint64_t tick_limit;
    int64_t deadline_ns;
    const mpl_watch *watch; /* NULL: nobody */
    uint32_t n_threads;
    uint32_t without; /* bits of mpl_exact_rule */
} mpl_exact_beam;

typedef struct mpl_exact_beam_result {
    mpl_len *est; /* [n] the caller's: offsets, where FOUND */
    mpl_exact_verdict verdict;
    int32_t depth; /* items placed in the last level */
    uint64_t ticks;
    bool by_clock;
} mpl_exact_beam_result;

/* Looks for a plan of the case within its limits: FOUND or STOPPED, never FAILED. The same for any
 * number of threads, a deadline apart. */
mpl_status mpl_exact_beam_run(mpl_ctx *ctx, const mpl_exact_case *c, const mpl_exact_beam *o,
                              mpl_exact_beam_result *r);

/* ---- parts ---- */

/* One direction of time of a part: made when it is first needed. */
typedef struct mpl_exact_side {
    mpl_exact_case *c;
    mpl_exact_state *x;
    mpl_exact_search search;
    uint32_t *rank[MPL_EXACT_ORDERS]; /* [n] */
    uint32_t *noisy;                  /* [n] the rank in use */
} mpl_exact_side;

/* Buffers of one pool that time connects: a problem of its own. */
typedef struct mpl_exact_part {
    mpl_ctx *ctx;
    uint32_t n;
    mpl_buffer *buffer;   /* [n] ascending by birth */
    mpl_exact_item *item; /* [n] */
    uint64_t unit;        /* [byte] */
    bool vast;       /* too many lifetimes in sections to search in: try and beam give up at once */
    uint64_t bound;  /* proved: no plan is lower [byte] */
    uint64_t height; /* of the best plan known [byte] */
    uint64_t *offset; /* [n] that plan [byte] */
    uint64_t cap;     /* the height that sides and memo are set to; 0: none [byte] */
    mpl_exact_side side[2];
    mpl_exact_memo memo;
    uint64_t node_limit;   /* of a search in lap 0 */
    uint64_t tick_limit;   /* of any search */
    uint32_t n_members;    /* searches of a lap */
    uint32_t n_merged;     /* calls of mpl_exact_part_merge */
    uint64_t search_ticks; /* of effort->ticks */
    uint64_t beam_ticks;   /* likewise, of the beams at the goal */
    uint32_t beam_stage;   /* of the next beams at the goal */
    int32_t beam_depth[MPL_EXACT_BEAMS];
} mpl_exact_part;

/* What one attempt may cost, and what it did. */
typedef struct mpl_exact_effort {
    uint64_t seed;
    uint64_t tick_limit; /* in all */
    int64_t deadline_ns;
    const mpl_watch *watch; /* NULL: nobody */
    uint32_t n_threads;
    uint32_t without; /* bits of mpl_exact_rule */
    uint64_t ticks;   /* so far, over all attempts */
    bool by_clock;
} mpl_exact_effort;

static inline bool mpl_exact_uses(uint32_t without, mpl_exact_rule rule)
{
    return (without >> rule & 1) == 0;
}

/* The part of these n > 0 buffers, which it takes over; bound set, height and offset not. */
mpl_status mpl_exact_part_init(mpl_ctx *ctx, const mpl_problem *p, mpl_buffer *buffer, uint32_t n,
                               mpl_exact_part *part);
/* A part of items that are no buffers, of which there will be `most` at most; its bound is
 * `cap`. */
mpl_status mpl_exact_part_made(mpl_ctx *ctx, uint64_t unit, uint64_t cap, uint32_t most,
                               mpl_exact_part *part);
/* The next of its items; size counts in its units. */
void mpl_exact_part_add(mpl_exact_part *part, uint32_t birth, uint32_t death, mpl_len size);
void mpl_exact_part_fini(mpl_exact_part *part);

/* Looks for a plan within `cap` bytes, harder with each lap (0, 1, ..). FOUND: height and offset
 * are its. FAILED: there is none, and the bound is the next height that a plan can have. */
mpl_status mpl_exact_part_try(mpl_exact_part *part, uint64_t cap, uint32_t lap,
                              mpl_exact_effort *effort, mpl_exact_verdict *verdict);

/* Looks for a plan within `cap` bytes by merging items in pairs: so many runs, each in so many
 * ticks. FOUND or STOPPED, the same for any number of threads, a deadline apart. */
mpl_status mpl_exact_part_merge(mpl_exact_part *part, uint64_t cap, uint32_t runs, uint64_t ticks,
                                mpl_exact_effort *effort, mpl_exact_verdict *verdict);

/* Looks for a plan within `cap` bytes by beams of each kind, whose width doubles with each stage
 * (0, 1, ..). FOUND or STOPPED. */
mpl_status mpl_exact_part_beam(mpl_exact_part *part, uint64_t cap, uint32_t stage,
                               mpl_exact_effort *effort, mpl_exact_verdict *verdict);

/* The least height >= `bytes` (the largest <= `bytes`) at which some item can end, alignment aside.
 * [byte] */
uint64_t mpl_exact_part_height_above(const mpl_exact_part *part, uint64_t bytes);
uint64_t mpl_exact_part_height_below(const mpl_exact_part *part, uint64_t bytes);

/* ---- proofs ---- */

/* Writes why the part has no plan within `cap` bytes at the end of the proof; unless FAILED,
 * nothing. FOUND: it has one; STOPPED: the effort ended, or the proof is full. part->buffer are the
 * ids in the text. */
mpl_status mpl_exact_part_prove(const mpl_exact_part *part, uint64_t cap, mpl_exact_effort *effort,
                                mpl_proof *proof, mpl_exact_verdict *verdict);

#endif
