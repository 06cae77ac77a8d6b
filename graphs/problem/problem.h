/* problem.h -- what a planner sees: buffers, the conflict relation, in-place pairs, fixed places,
 * pools.
 *
 * Made from a graph and an order (mpl_problem_from_graph), or read from a file; const from then
 * on. */
#ifndef MPL_PROBLEM_H
#define MPL_PROBLEM_H

#include "graphs/core/base.h"

typedef uint32_t mpl_buffer; /* index into the arrays of one mpl_problem */

#define MPL_UNFIXED     UINT64_MAX /* fixed[]: the planner chooses */
#define MPL_NO_CAPACITY UINT64_MAX /* pool_capacity[]: as much as is needed */

/* "a is before b": every last use of a strictly precedes every first use of b in the partial order
 * of the graph. The transitive closure as bit rows; row a has bit b set when a is before b. */
typedef struct mpl_before {
    uint32_t n;
    uint32_t n_words;    /* 64-bit words a row: (n + 63) / 64 */
    uint64_t *row;       /* [n * n_words] */
    uint32_t *red_begin; /* [n + 1] into red_item: the transitive reduction, successors ascending */
    uint32_t *red_item;
} mpl_before;

/* Events of a graph and which buffers touch them, for the planners that measure distance in time
 * (NNC's hop). Events are the operations, ids in program order; edges go from lower to higher
 * ids. */
typedef struct mpl_access {
    uint32_t n_events;
    uint32_t *edge_begin; /* [n_events + 1] into edge_item: successors */
    uint32_t *edge_item;
    uint32_t *first_begin; /* [n + 1] into first_item: first events of each buffer (no other of it
                              is before); none where no operation touches it */
    uint32_t *first_item;
    uint32_t *last_begin; /* [n + 1] into last_item: its last events */
    uint32_t *last_item;
} mpl_access;

typedef struct mpl_problem {
    char *name;       /* of the graph or file; for messages */
    uint32_t n;       /* buffers */
    uint32_t n_steps; /* every death is <= n_steps; 0 when before != NULL */

    char **buffer_name; /* [n] NULL: none have names */
    uint64_t *bytes;    /* [n] > 0; not rounded to align. [byte] */
    uint32_t *align;    /* [n] power of two. [byte] */
    uint32_t *pool;     /* [n] index into pool_*; buffers of different pools never share */
    uint32_t *birth;    /* [n] first step that needs it [step] */
    uint32_t *death;    /* [n] first step that does not; > birth [step] */
    /* Serial: steps within [birth, death) at which it is not needed after all (what lives in a loop
     * or in branches): half-open, ascending, apart, inside. Other buffers may use its bytes there.
     * NULL: none has any. */
    uint32_t *gap_begin; /* [n + 1] into gap_from and gap_to */
    uint32_t *gap_from;
    uint32_t *gap_to;
    const mpl_before *before; /* NULL: serial, lifetimes decide; else parallel, the partial order
                                 decides. Owned. */

    uint32_t n_pools;
    char **pool_name;
    uint64_t *pool_capacity; /* [byte] or MPL_NO_CAPACITY */

    /* In-place pairs: `out`, born at `step`, may lie at the very offset of `in`, born earlier,
     * whose last use is at `step`; bytes[out] <= bytes[in]. Sorted by (step, out, in). Without the
     * same offset they conflict like any two. Under a partial order, as where one operation reads
     * `in` last and writes `out` first: neither is before the other; what comes after `out`, and
     * what may overwrite it in turn, comes after `in`; what is before `in` is before `out`. So
     * buffers that overwrite one another are ordered as a whole by the first and the last of
     * them. */
    uint32_t n_in_place;
    mpl_buffer *in_place_in;
    mpl_buffer *in_place_out;
    uint32_t *in_place_step;

    /* Families: buffer b lies inside_at[b] bytes behind buffer inside[b], the lowest of its family,
     * which lies 0 behind itself. Each has its own size and lifetime, so that a family takes up
     * memory part by part, as its parts come and go; two of its parts that conflict do not overlap.
     * One that is in no family: itself, at 0. NULL: there is none. */
    mpl_buffer *inside;  /* [n] */
    uint64_t *inside_at; /* [n] [byte] */

    uint64_t *fixed; /* [n] offset that is already decided, or MPL_UNFIXED (all parts of families);
                        NULL: none is */
    uint32_t *type_id;  /* [n] opaque: equal ids, equal element types; NULL: unknown */
    uint32_t *shape_id; /* [n] opaque: equal ids, equal dims; NULL: unknown */
    uint8_t *no_reuse;  /* [n] 1: block planners give it memory of its own (Owl's scalars); NULL:
                           none */
    const mpl_access *access; /* NULL: unknown, planners fall back to chains of buffers. Owned. */
} mpl_problem;

/* The arrays of one item a buffer: a new field stands here too, and is then copied and freed
 * with the others. */
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

/* A problem of n buffers without names in one pool "value", 1-byte aligned, all arrays above that
 * are not optional allocated; the caller fills bytes, birth, death. */
mpl_status mpl_problem_new(mpl_ctx *ctx, const char *name, uint32_t n, mpl_problem **out);

/* Births and deaths from times, birth[b] < death[b]: the times themselves, or their ranks among all
 * times where these are sparse, so that no two lifetimes come to meet or part. Sets n_steps. O(n
 * log n), 16 n bytes of scratch. */
mpl_status mpl_problem_set_times(mpl_ctx *ctx, const uint64_t *birth, const uint64_t *death,
                                 mpl_problem *p);

/* Checks ranges: bytes > 0, birth < death <= n_steps, align a power of two, pools, pairs.
 * MPL_EINPUT naming the buffer. */
mpl_status mpl_problem_check(mpl_ctx *ctx, const mpl_problem *p);
/* mpl_assert_ok's predicate: the above, and what only our own code can break: the partial order is
 * one, the access graph is in range, and at level 3, of small problems, mpl_conflict says what the
 * definition does. */
bool mpl_problem_ok(const mpl_problem *p);

/* A name for the contents: all that decides which plans are valid. Left out are names and what only
 * guides planners (type and shape ids, no_reuse, access), so that a plan file, which embeds no
 * more, can be checked against it. */
uint64_t mpl_problem_hash(const mpl_problem *p);

/* Whether b is needed at `step` of a serial problem: alive, and in none of its gaps. O(gaps). */
bool mpl_needed_at(const mpl_problem *p, mpl_buffer b, uint32_t step);
/* Whether a and b may never overlap in memory, in-place pairs aside: overlapping lifetimes, or,
 * under parallel, neither before the other. Buffers of different pools do not conflict. O(1). */
bool mpl_conflict(const mpl_problem *p, mpl_buffer a, mpl_buffer b);

/* The families of a problem with p->inside: item[begin[b] .. begin[b + 1]) are the parts of the
 * family whose lowest is b, ascending, b among them; of any other b there are none. One that is in
 * no family is one of one part. */
typedef struct mpl_families {
    uint32_t *begin; /* [n + 1] */
    mpl_buffer *item;
} mpl_families;
mpl_status mpl_families_new(mpl_ctx *ctx, const mpl_problem *p, mpl_families *out);
void mpl_families_free(mpl_ctx *ctx, mpl_families *families);

/* The problem as planners see it that know no families: each is one buffer of all its bytes, alive
 * from its first part's birth to its last part's death, without gaps; under a partial order it is
 * before what all its parts are before. In-place pairs of parts, the access graph and gaps of parts
 * are left out. into[n]: the buffer of *out that each buffer lies in, inside_at[] behind its start;
 * every plan of *out is one of p. O(n), under a partial order O(n^2). */
mpl_status mpl_problem_hull(mpl_ctx *ctx, const mpl_problem *p, mpl_problem **out, uint32_t *into);

/* Name of a buffer for messages: its own, else "#id". text holds at least 24 bytes. */
const char *mpl_buffer_label(const mpl_problem *p, mpl_buffer b, char *text);

/* Time runs backwards: lifetimes are mirrored in [0, n_steps]. Every plan remains one; twice gives
 * the original. MPL_EINPUT: a partial order, in-place pairs or operations, which have a
 * direction. */
mpl_status mpl_problem_reverse(mpl_ctx *ctx, mpl_problem *p);
/* Renumbers the buffers at random, names and all; offset[n] (may be NULL), a plan, goes along.
 * MPL_EINPUT as above. */
mpl_status mpl_problem_shuffle(mpl_ctx *ctx, mpl_problem *p, uint64_t seed, uint64_t *offset);

#endif
