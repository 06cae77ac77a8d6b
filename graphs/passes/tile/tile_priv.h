/* tile_priv.h -- rules of operators, and the program of a region: its steps on boxes. */
#pragma once

#include "graphs/passes/tile/tile.h"

enum { TILE_CHANNELS, TILE_ROWS, TILE_COLUMNS, TILE_AXES }; /* dims 1 to 3 of an image */

/* Half-open; empty if low >= high. */
typedef struct tile_span {
    int64_t low, high;
} tile_span;

typedef struct tile_box {
    tile_span at[TILE_AXES];
} tile_box;

/* Bytes as planners place them: buffers begin at multiples of 64. */
enum { TILE_SLOT = 64 };
static inline uint64_t tile_slots(uint64_t bytes)
{
    return mpl_align_up(bytes, TILE_SLOT);
}
static inline bool tile_empty(tile_span s)
{
    return s.low >= s.high;
}
static inline tile_span tile_join(tile_span a, tile_span b)
{
    if (tile_empty(a) || tile_empty(b))
        return tile_empty(a) ? b : a;
    return (tile_span){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

typedef enum tile_kind {
    TILE_NOT,    /* only as a whole */
    TILE_POINT,  /* an element from those at its place */
    TILE_WINDOW, /* from a sliding window */
    TILE_JOIN,   /* a concat of channels */
    TILE_RESIZE, /* each element repeated */
} tile_kind;

/* How an operation's result can be made in parts. Index 0: rows, 1: columns. */
typedef struct tile_rule {
    tile_kind kind;
    int64_t reach[2], stride[2], before[2]; /* of a window; reach: kernel with dilation */
    int64_t factor[2];                      /* of TILE_RESIZE */
    bool mixes;                             /* an output channel reads all input channels */
    bool joint;                             /* all output channels are made at once */
    uint64_t products;                      /* multiplications for each output element */
    uint64_t images;                        /* bit i: tile_is_image of input i, up to 63 */
} tile_rule;

/* tile_rules.c */
void tile_rule_of(const mpl_graph *g, mpl_op op, tile_rule *rule);
/* Whether input i is an image, of which a part is read; else it is read whole, or the channels. */
static inline bool tile_is_image(const tile_rule *rule, uint32_t i)
{
    return i < 64 ? (rule->images >> i & 1) != 0 : rule->kind == TILE_JOIN;
}
/* What of input i, an image, the span of the result needs. */
tile_span tile_back(const mpl_graph *g, mpl_op op, const tile_rule *rule, uint32_t i, uint32_t axis,
                    tile_span out);
/* The part that is made for a span that is needed. */
tile_span tile_made(const mpl_graph *g, mpl_op op, const tile_rule *rule, uint32_t axis,
                    tile_span need);
/* The axis of input i, no image, that has an item a channel; MPL_NONE: none. */
uint32_t tile_channel_axis(const mpl_graph *g, mpl_op op, uint32_t i);
/* Multiplications of products of the whole operation. */
uint64_t tile_products(const mpl_graph *g, mpl_op op);

/* ---- the program of a region ---- */

typedef enum tile_do { TILE_SLICE, TILE_PAD, TILE_ASSIGN, TILE_OP } tile_do;

/* A box of a value of the graph. */
typedef struct tile_value {
    mpl_value of;
    tile_box box;
    uint64_t bytes; /* in whole slots */
} tile_value;

typedef struct tile_step {
    tile_do what;
    mpl_op op;          /* of TILE_OP */
    uint32_t in_begin;  /* into in; TILE_OP: one for each operand, MPL_NONE: no image */
    uint32_t n_in, out; /* out: a value */
    int64_t up;         /* of TILE_ASSIGN: rows, or columns, that the piece lies before its own */
    uint32_t axis;      /* of `up` */
} tile_step;

typedef struct tile_program {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const tile_rule *rule; /* [g->n_ops] */
    tile_value *value;
    tile_step *step;
    uint32_t *in;
    size_t n_values, cap_values, n_steps, cap_steps, n_in, cap_in;
    uint32_t *local;    /* [g->n_values] value, or first band, of what the region reads from
                           outside; MPL_NONE */
    uint32_t n_outside; /* the first values */
    uint32_t *result;   /* values: one, or a band each */
    size_t n_result, cap_result;
    uint32_t n_patches;
    uint64_t work;
    /* leaves out the steps of a patch as large, in all its parts, as the one before it: for a model
     */
    bool sample;
    uint64_t most_work; /* a region of more has no steps */
} tile_program;

/* tile_walk.c: tile_walk makes the program of a region, and forgets the one before. */
mpl_status tile_program_new(mpl_ctx *ctx, const mpl_graph *g, const tile_rule *rule,
                            tile_program *program);
void tile_program_fini(tile_program *program);
mpl_status tile_walk(tile_program *program, const mpl_tile_region *region);

/* tile_rules.c: [n_ops] rules of a graph. */
mpl_status tile_rules_new(mpl_ctx *ctx, const mpl_graph *g, tile_rule **rule);
bool tile_is_region(const mpl_graph *g, const tile_rule *rule, mpl_op begin, mpl_op end);
/* Whether operations [begin, end) alone read what the operation before them makes, as an image. */
bool tile_reads_bands(const mpl_graph *g, const tile_rule *rule, mpl_op begin, mpl_op end);

/* ---- the search ---- */

/* A way from one position of the order to a later one. */
typedef struct tile_edge {
    mpl_tile_region r;  /* patch.rows 0: the operation as it is */
    uint64_t peak;      /* live bytes at its highest step */
    uint64_t work;      /* multiplications of products */
    uint32_t n_patches; /* 0: the operation as it is */
} tile_edge;

/* What lies between two operations is one value, or in bands of 1, 2, or 4 rows. */
enum { TILE_FORMS = 4 };
static const int64_t tile_form_rows[TILE_FORMS] = {0, 1, 2, 4};
static inline size_t tile_node(mpl_op at, int64_t band)
{
    return (size_t)at * TILE_FORMS + (band == 4 ? 3 : (size_t)band);
}
static inline size_t tile_from(const tile_edge *edge)
{
    return tile_node(edge->r.begin, edge->r.band);
}
static inline size_t tile_to(const tile_edge *edge)
{
    return tile_node(edge->r.end, edge->r.banded ? edge->r.patch.rows : 0);
}

/* All edges of a graph, ascending by begin, end. */
typedef struct tile_edges {
    const mpl_graph *g;
    tile_edge *edge;
    size_t n, cap;
    uint64_t plain_peak, plain_work, bound;
} tile_edges;

/* tile_edges.c. patches: 0 for all sizes of the list; else rows in so many patches, or 1. */
mpl_status tile_edges_new(mpl_ctx *ctx, const mpl_graph *g, uint64_t patches, tile_edges *out);
/* tile_model.c: live bytes of a program at its highest step. used_later[n_outside] */
mpl_status tile_peak(const tile_program *program, const uint64_t *outside_bytes,
                     const bool *used_later, bool pinned_result, uint64_t *peak);
/* tile_search.c: the least work from position 0 to the last over edges of at most `most` bytes;
 * cost and via, [(n_ops + 1) * TILE_FORMS], receive it and the edge into each node. False: there is
 * no way. */
typedef struct tile_cost {
    uint64_t work, n_patches;
} tile_cost;
bool tile_least_work(const tile_edges *edges, uint64_t most, tile_cost *cost, uint32_t *via);
