/* problem.h -- what a planner sees: buffers, conflicts, in-place pairs, fixed offsets, pools.
 *
 * Made from a graph and an order (mpl_problem_from_graph), or read from a file; const from then
 * on. */
#pragma once

#include "graphs/core/base.h"

typedef uint32_t mpl_buffer; /* index into the arrays of one mpl_problem */

#define MPL_UNFIXED     UINT64_MAX /* fixed[]: the planner chooses */
#define MPL_NO_CAPACITY UINT64_MAX /* pool_capacity[]: unlimited */

/* "a is before b": every last use of a strictly precedes every first use of b in the partial order
 * of the graph. Stored as transitive closure: row a has bit b set when a is before b. */
typedef struct mpl_before {
    uint32_t n;
    uint32_t n_words;    /* 64-bit words of a row: (n + 63) / 64 */
    uint64_t *row;       /* [n * n_words] */
    uint32_t *red_begin; /* [n + 1] into red_item: transitive reduction, successors ascending */
    uint32_t *red_item;
} mpl_before;

/* Events of a graph and the buffers that they touch, for planners that measure distance in time
 * (NNC's hop). Events are the operations, numbered in program order (under streams: in the order of
 * the plan); edges go from lower to higher ids. A buffer that no operation touches has no events.
 */
typedef struct mpl_access {
    uint32_t n_events;
    uint32_t *edge_begin; /* [n_events + 1] into edge_item: successors */
    uint32_t *edge_item;
    uint32_t *first_begin; /* [n + 1] into first_item: events with none of the buffer before */
    uint32_t *first_item;
    uint32_t *last_begin; /* [n + 1] into last_item: events with none of the buffer after */
    uint32_t *last_item;
} mpl_access;

/* Bytes [from, to) of pool 0 that no buffer may use at steps [birth, death). The arena reaches at
 * least to their end. */
typedef struct mpl_reserved {
    uint64_t from, to;     /* [byte] */
    uint32_t birth, death; /* [step]; 0 and UINT32_MAX: always */
} mpl_reserved;

/* What compilers may require of a plan besides conflicts. */
typedef struct mpl_constraints {
    uint32_t n_reserved, n_apart, n_together;
    mpl_reserved *reserved;
    mpl_buffer (*apart)[2];    /* never overlap in memory, whatever their lives; serial only */
    mpl_buffer (*together)[2]; /* the second begins where the first ends, rounded to the one
                                  alignment; each is at most once a first and once a second */
    /* Pool 0 is several allocations of so many bytes: no buffer, family or chain of `together`
     * crosses a multiple of it; a multiple of each alignment. 0: one allocation. [byte] */
    uint64_t chunk_bytes;
} mpl_constraints;

typedef struct mpl_problem {
    char *name;       /* of the graph or file, for messages */
    uint32_t n;       /* buffers */
    uint32_t n_steps; /* >= every death; 0 when before != NULL */

    char **buffer_name; /* [n] NULL: no names */
    uint64_t *bytes;    /* [n] > 0, not rounded to align [byte] */
    uint32_t *align;    /* [n] power of two [byte] */
    uint32_t *pool;     /* [n] index into pool_*; different pools never share */
    uint32_t *birth;    /* [n] first step that needs it [step] */
    uint32_t *death;    /* [n] end of the live range, exclusive, > birth [step] */
    /* Gaps of a serial problem: steps within [birth, death) at which the buffer is not needed
     * (storage in loops and branches). Half-open, ascending, disjoint and not adjacent, strictly
     * inside. Other buffers may use its bytes there. NULL: no gaps. */
    uint32_t *gap_begin; /* [n + 1] into gap_from and gap_to */
    uint32_t *gap_from;
    uint32_t *gap_to;
    const mpl_before *before; /* NULL: serial; else parallel: replaces lifetimes. Owned. */

    uint32_t n_pools;
    char **pool_name;
    uint64_t *pool_capacity; /* [byte] or MPL_NO_CAPACITY */

    /* In-place pairs: `out`, born at `step`, may lie at the same offset as `in`, born earlier,
     * whose last use is at `step`; bytes[out] <= bytes[in]. Sorted by (step, out, in). At different
     * offsets the two conflict as usual. Under a partial order, one operation reads `in` last and
     * writes `out` first, so neither is before the other. Whatever comes after `out`, or may
     * overwrite it in turn, comes after `in`; whatever is before `in` is before `out`. So a chain
     * of buffers that overwrite one another is ordered by its first and last member. */
    uint32_t n_in_place;
    mpl_buffer *in_place_in;
    mpl_buffer *in_place_out;
    uint32_t *in_place_step;

    /* Families: buffer b lies inside_at[b] bytes after the start of buffer inside[b], the lowest id
     * of its family, whose own inside_at is 0. Each part has its own size and live range.
     * Conflicting parts of a family do not overlap. A buffer in no family has inside[b] = b, at 0.
     * NULL: no families. */
    mpl_buffer *inside;  /* [n] */
    uint64_t *inside_at; /* [n] [byte] */

    uint64_t *fixed;    /* [n] decided offset or MPL_UNFIXED (families: all parts); NULL: none */
    uint32_t *type_id;  /* [n] opaque: equal ids mean equal element types; NULL: unknown */
    uint32_t *shape_id; /* [n] opaque: equal ids mean equal dims; NULL: unknown */
    uint8_t *no_reuse;  /* [n] 1: block planners do not share it (Owl's scalars); NULL: none such */
    const mpl_access *access; /* NULL: unknown, planners use chains of buffers. Owned. */
    /* NULL: none. Owned. Planners never see them: mpl_planner_run plans a problem without them. */
    mpl_constraints *constraints;
} mpl_problem;

/* Arrays with one item per buffer. A field listed here is copied and freed with the others. */
#define MPL_BUFFER_FIELDS(FIELD)                                                                   \
    FIELD(bytes)                                                                                   \
    FIELD(align)                                                                                   \
    FIELD(pool)                                                                                    \
    FIELD(birth)                                                                                   \
    FIELD(death)                                                                                   \
    FIELD(inside)                                                                                  \
    FIELD(inside_at)                                                                               \
    FIELD(fixed)                                                                                   \
    FIELD(type_id)                                                                                 \
    FIELD(shape_id)                                                                                \
    FIELD(no_reuse)

void mpl_problem_free(mpl_ctx *ctx, mpl_problem *p);
void mpl_before_free(mpl_ctx *ctx, mpl_before *before);
void mpl_access_free(mpl_ctx *ctx, mpl_access *access);
void mpl_constraints_free(mpl_ctx *ctx, mpl_constraints *constraints);
/* MPL_EINPUT: constraints that contradict each other, the buffers or fixed offsets. */
mpl_status mpl_constraints_check(mpl_ctx *ctx, const mpl_problem *p);
uint64_t mpl_constraints_hash(uint64_t h, const mpl_constraints *constraints);

/* A problem of n unnamed, 1-byte aligned buffers in one pool "value". Allocates all non-optional
 * arrays; the caller fills bytes, birth, death. */
mpl_status mpl_problem_new(mpl_ctx *ctx, const char *name, uint32_t n, mpl_problem **out);

/* Appends an unlimited pool. */
mpl_status mpl_problem_add_pool(mpl_ctx *ctx, mpl_problem *p, const char *name);

/* Sets births and deaths from times, birth[b] < death[b]. Sparse times are replaced by their ranks;
 * this changes no overlap. Sets n_steps. O(n log n), 16 n bytes of scratch. */
mpl_status mpl_problem_set_times(mpl_ctx *ctx, const uint64_t *birth, const uint64_t *death,
                                 mpl_problem *p);

/* Checks ranges: bytes > 0, birth < death <= n_steps, align a power of two, pools, pairs.
 * MPL_EINPUT names the buffer. */
mpl_status mpl_problem_check(mpl_ctx *ctx, const mpl_problem *p);
/* Predicate of mpl_assert_ok: the checks above, and what only our own code can break: the partial
 * order is one, the access graph is in range. At level 3, for small problems, also: mpl_conflict
 * agrees with its definition. */
bool mpl_problem_ok(const mpl_problem *p);

/* Hash of all that decides which plans are valid. Excludes names and what only guides planners
 * (type and shape ids, no_reuse, access), which plan files do not embed; so a plan file can be
 * checked against it. */
uint64_t mpl_problem_hash(const mpl_problem *p);

/* Whether b is needed at `step` of a serial problem: alive and in no gap. O(gaps). */
bool mpl_needed_at(const mpl_problem *p, mpl_buffer b, uint32_t step);
/* Whether a and b must not overlap in memory, in-place pairs aside: their lifetimes overlap, or,
 * under parallel, neither is before the other. Buffers of different pools do not conflict. O(1). */
bool mpl_conflict(const mpl_problem *p, mpl_buffer a, mpl_buffer b);

/* Families of a problem with p->inside: item[begin[b] .. begin[b + 1]) are the parts, ascending, of
 * the family whose lowest id is b, b included; empty for any other b. A buffer in no family is a
 * family of one. */
typedef struct mpl_families {
    uint32_t *begin; /* [n + 1] */
    mpl_buffer *item;
} mpl_families;
mpl_status mpl_families_new(mpl_ctx *ctx, const mpl_problem *p, mpl_families *out);
void mpl_families_free(mpl_ctx *ctx, mpl_families *families);

/* The problem for planners without families: each family becomes one buffer of all its bytes,
 * without gaps, from its first part's birth to its last part's death. Under a partial order it is
 * before whatever all its parts are before. Drops the access graph, and the in-place pairs and gaps
 * of parts. into[n] receives the buffer of *out that holds each buffer, at inside_at[]. Every plan
 * of *out gives a plan of p. O(n), under a partial order O(n^2). */
mpl_status mpl_problem_hull(mpl_ctx *ctx, const mpl_problem *p, mpl_problem **out, uint32_t *into);

/* Label for messages: the buffer's name, else "#id". text holds at least 24 bytes. */
const char *mpl_buffer_label(const mpl_problem *p, mpl_buffer b, char *text);

/* Reverses time: mirrors lifetimes in [0, n_steps]. Plans stay valid; reversing twice restores the
 * problem. MPL_EINPUT: a partial order, in-place pairs or operations, which have a direction. */
mpl_status mpl_problem_reverse(mpl_ctx *ctx, mpl_problem *p);
/* Renumbers the buffers at random, with their names. Permutes offset[n] (a plan, may be NULL) in
 * the same way. MPL_EINPUT as above. */
mpl_status mpl_problem_shuffle(mpl_ctx *ctx, mpl_problem *p, uint64_t seed, uint64_t *offset);
