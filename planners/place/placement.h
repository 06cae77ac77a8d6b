/* placement.h -- one arena per pool: places buffers in a given order at the lowest or best-fitting
 * free offset. Private to planners/; the planners that use it differ only in order and fit. */
#pragma once

#include "planners/planner.h"

typedef enum mpl_fit {
    MPL_FIT_LOWEST, /* the lowest free offset */
    MPL_FIT_BEST,   /* the gap with the fewest unused bytes above the buffer, ties by offset */
} mpl_fit;

/* Writes offset[] and the claim: first the buffers with a fixed offset, then the others in `order`
 * (a permutation of all ids), each free of conflicts. Pools are independent.
 *
 * Besides the gaps, the exact offset of a placed in-place partner is a candidate if nothing else
 * conflicts there. It wins if it is not higher than the lowest gap; for MPL_FIT_BEST, if the
 * partners' bytes differ by no more than the gap's unused bytes.
 *
 * A family is placed as a whole at the turn of its first part (family.c).
 *
 * Three spaces find the free offsets, with equal results. An order that rises with birth sweeps
 * over time and keeps the current gaps; any other serial order uses a tree over time. Both cost O(n
 * log n) plus the gaps or occupied ranges met. Under parallel all placed buffers are scanned,
 * O(n^2). MPL_EINPUT when the bytes of a pool exceed 2^63. */
mpl_status mpl_place_all(mpl_run *run, const mpl_problem *p, const mpl_buffer *order, mpl_fit fit,
                         mpl_plan *out);

/* Moves each buffer or family of a valid plan offset[n] down, in rising order of offset, as far as
 * the buffers below allow, in pools that get lower by that. */
mpl_status mpl_place_sink(mpl_run *run, const mpl_problem *p, uint64_t *offset);

/* Takes over the pools that are lower in the plan `other`. O(pools * n). */
void mpl_place_take_lower(const mpl_problem *p, const uint64_t *other, uint64_t *offset);

/* ---- between placement.c and the spaces ---- */

/* [begin, end) in bytes, and a sorted list of such ranges, none of which touch. */
typedef struct mpl_span {
    uint64_t begin, end;
} mpl_span;

typedef struct mpl_spans {
    mpl_span *item;
    uint32_t n, room;
} mpl_spans;

mpl_status mpl_spans_add(mpl_ctx *ctx, mpl_spans *spans, mpl_span span); /* the union */
/* `span` lies inside one range */
mpl_status mpl_spans_remove(mpl_ctx *ctx, mpl_spans *spans, mpl_span span);
uint32_t mpl_spans_find(const mpl_spans *spans, uint64_t at); /* first range that ends above `at` */

typedef struct mpl_space mpl_space;

/* One pool during placement. */
typedef struct mpl_placement {
    mpl_run *run;
    const mpl_problem *p;
    mpl_fit fit;
    uint64_t *offset;         /* [n] of placed buffers */
    uint8_t *placed;          /* [n] */
    const mpl_buffer *member; /* [n_members] this pool's buffers, in placement order */
    uint32_t n_members;
    uint32_t *slot;          /* [n] index of a buffer in member */
    uint64_t grain;          /* least alignment of the pool [byte] */
    uint32_t *partner_begin; /* [n + 1] into partner: in-place partners; NULL: no pairs */
    mpl_buffer *partner;
    mpl_families family; /* if the problem has families */
    const struct mpl_space_kind *kind;
    mpl_space *space;
} mpl_placement;

typedef struct mpl_gap {
    uint64_t offset; /* aligned for the buffer */
    uint64_t spare;  /* free bytes above the buffer; huge at the top */
} mpl_gap;

/* A structure that knows the free bytes. */
typedef struct mpl_space_kind {
    mpl_status (*open)(mpl_placement *placement);
    void (*close)(mpl_placement *placement);
    /* The lowest or best-fitting gap for b; all placed buffers, partners too, are obstacles. */
    mpl_status (*find)(mpl_placement *placement, mpl_buffer b, mpl_gap *gap);
    /* Whether b may lie at its placed partner's offset, ignoring other partners at that offset. */
    bool (*may_join)(mpl_placement *placement, mpl_buffer b, mpl_buffer partner);
    /* Records b at offset[b]; partner: the buffer that it joined there, or MPL_NONE. */
    mpl_status (*insert)(mpl_placement *placement, mpl_buffer b, mpl_buffer partner);
} mpl_space_kind;

extern const mpl_space_kind mpl_space_sweep; /* sweep.c: members rise with birth, nothing fixed */
extern const mpl_space_kind mpl_space_timeline; /* timeline.c: any serial problem */
extern const mpl_space_kind mpl_space_rows;     /* untimed.c: by mpl_conflict alone */

/* family.c: sets offset[] and placed[] of all parts of the family whose lowest part is `first`.
 * O(parts * placed), sorted. */
mpl_status mpl_placement_family(mpl_placement *placement, mpl_buffer first);

/* The end of b at `offset`, rounded up to the grain. */
uint64_t mpl_placement_end(const mpl_placement *placement, mpl_buffer b, uint64_t offset);
bool mpl_placement_partners(const mpl_placement *placement, mpl_buffer a, mpl_buffer b);

/* Copies `gap` to `best` if the fit prefers it; gaps come lowest first. True: no later one is
 * better. */
bool mpl_placement_offer(const mpl_placement *placement, mpl_gap gap, mpl_gap *best);
