/* placement.h -- one arena per pool: each buffer in a given order at the lowest or the best fitting
 * free offset. Private to planners/; the planners that use it differ in the order and the fit
 * alone. */
#ifndef MPL_PLACEMENT_H
#define MPL_PLACEMENT_H

#include "planners/planner.h"

typedef enum mpl_fit {
    MPL_FIT_LOWEST, /* the lowest free offset */
    MPL_FIT_BEST, /* the gap that leaves the fewest bytes unused behind the buffer, the lowest among
                     equals */
} mpl_fit;

/* Writes offset[] and the claim: buffers with a fixed offset first, then the others as `order` (a
 * permutation of all ids) has them, each where nothing that conflicts lies. Pools do not see each
 * other.
 *
 * Beside the gaps, the exact offset of a placed in-place partner is a candidate where nothing else
 * is in the way. It wins if it is not higher than the lowest gap; for MPL_FIT_BEST, if the bytes by
 * which the partners differ are no more than the gap's unused ones.
 *
 * A family is placed as a whole when the first of its parts has its turn: where no part meets what
 * conflicts with that part (family.c).
 *
 * Three ways to know what is free, all with the same answer: an order that rises with birth sweeps
 * over time and keeps the gaps of the moment; any other serial order asks a tree over time; under
 * parallel, placed buffers are looked through one by one. The first two: O(n log n) and the gaps or
 * occupied ranges met; the last O(n^2). MPL_EINPUT when the bytes of a pool add up to more than
 * 2^63. */
mpl_status mpl_place_all(mpl_run *run, const mpl_problem *p, const mpl_buffer *order, mpl_fit fit,
                         mpl_plan *out);

/* Each buffer or family of a valid plan offset[n], by rising offset, sinks as far as what lies
 * below lets it, in pools that get lower by that. */
mpl_status mpl_place_sink(mpl_run *run, const mpl_problem *p, uint64_t *offset);

/* Pools that are lower in the other plan are taken over from it. O(pools * n). */
void mpl_place_take_lower(const mpl_problem *p, const uint64_t *other, uint64_t *offset);

/* ---- between placement.c and the spaces ---- */

/* [begin, end) in bytes, and a sorted list of such ranges of which no two touch. */
typedef struct mpl_span {
    uint64_t begin, end;
} mpl_span;

typedef struct mpl_spans {
    mpl_span *item;
    uint32_t n, room;
} mpl_spans;

mpl_status mpl_spans_add(mpl_ctx *ctx, mpl_spans *spans, mpl_span span); /* the union */
/* inside one of the ranges */
mpl_status mpl_spans_remove(mpl_ctx *ctx, mpl_spans *spans, mpl_span span);
uint32_t mpl_spans_find(const mpl_spans *spans, uint64_t at); /* first range that ends behind `at`
                                                               */

typedef struct mpl_space mpl_space;

/* One pool that is being filled. */
typedef struct mpl_placement {
    mpl_run *run;
    const mpl_problem *p;
    mpl_fit fit;
    uint64_t *offset;         /* [n] of those placed */
    uint8_t *placed;          /* [n] */
    const mpl_buffer *member; /* [n_members] this pool's buffers in the order of placement */
    uint32_t n_members;
    uint32_t *slot; /* [n] where in member a buffer stands */
    uint64_t grain; /* least alignment of the pool: no buffer begins between its multiples [byte] */
    uint32_t *partner_begin; /* [n + 1] into partner: in-place partners of each buffer; NULL: there
                                are no pairs */
    mpl_buffer *partner;
    mpl_families family; /* where the problem has some */
    const struct mpl_space_kind *kind;
    mpl_space *space;
} mpl_placement;

typedef struct mpl_gap {
    uint64_t offset; /* aligned for the buffer */
    uint64_t spare;  /* bytes between the buffer's end and what lies behind; huge where nothing does
                      */
} mpl_gap;

/* A way to know what is free. */
typedef struct mpl_space_kind {
    mpl_status (*open)(mpl_placement *placement);
    void (*close)(mpl_placement *placement);
    /* The lowest or best fitting gap for b, all that is placed standing in the way, partners
     * too. */
    mpl_status (*find)(mpl_placement *placement, mpl_buffer b, mpl_gap *gap);
    /* Whether b may lie at its placed partner's offset, other partners at that offset aside. */
    bool (*may_join)(mpl_placement *placement, mpl_buffer b, mpl_buffer partner);
    /* b lies at offset[b]; partner: whom it joined there, or MPL_NONE. */
    mpl_status (*insert)(mpl_placement *placement, mpl_buffer b, mpl_buffer partner);
} mpl_space_kind;

extern const mpl_space_kind mpl_space_sweep; /* sweep.c: members rise with birth, nothing fixed */
extern const mpl_space_kind mpl_space_timeline; /* timeline.c: any serial problem */
extern const mpl_space_kind mpl_space_rows;     /* untimed.c: by mpl_conflict alone */

/* family.c: offset[] and placed[] of all parts of the family whose lowest part is `first`. O(parts
 * * placed), sorted. */
mpl_status mpl_placement_family(mpl_placement *placement, mpl_buffer first);

/* Where b would end: a multiple of the grain. */
uint64_t mpl_placement_end(const mpl_placement *placement, mpl_buffer b, uint64_t offset);
bool mpl_placement_partners(const mpl_placement *placement, mpl_buffer a, mpl_buffer b);

/* Takes `gap` over into `best` if the fit prefers it; gaps come lowest first. True when no later
 * one can be better. */
bool mpl_placement_offer(const mpl_placement *placement, mpl_gap gap, mpl_gap *best);

#endif
