/* random_places.h -- random places in random graphs with loops and branches, and a naive evaluation
 * of them: it evaluates a place for one path of control at a time and tries every path. */
#pragma once

#include "tests/support/random_control.h"

#include "planners/verify/verify_flow_priv.h"

enum { N_BUFFERS = 96, N_PLACES = 24, MOST_ITEMS = 4, MOST_SPOTS = 256, UNKNOWN = -1 };

typedef struct made {
    mpl_ctx *ctx;
    mpl_rng rng;
    mpl_graph *g;
    mpl_problem *p;
    mpl_plan *plan;
    mpl_value_map map;
    mpl_places places;
    mpl_place place[N_PLACES];
    uint32_t item[N_PLACES * MOST_ITEMS], n_items;
    mpl_flow_map m;
    int64_t *went; /* [n_ops] outcome of each loop and case: rounds, or the branch; UNKNOWN */
} made;

/* Location on one path of control: nested slices of memory, or an operation whose outcome is needed
 * first. */
typedef struct found {
    bool nowhere;
    mpl_op ask;
    uint32_t n_slices, block[N_PLACES], round[N_PLACES], arena;
    uint64_t bytes[N_PLACES], offset, begin;
    mpl_buffer of;
    bool reversed[N_PLACES];
} found;

typedef struct spots {
    uint32_t n;
    mpl_flow_spot at[MOST_SPOTS];
} spots;

static inline uint32_t below(made *d, uint32_t n)
{
    return (uint32_t)mpl_rng_below(&d->rng, n);
}

static inline bool chance(made *d, uint32_t n)
{
    return below(d, n) == 0;
}

static inline uint32_t body_of(const made *d, mpl_op op)
{
    return d->g->op_body[d->g->op_body_begin[op]];
}

static inline uint32_t asked(uint32_t otherwise)
{
    const char *text = getenv("MPL_JUDGED");

    return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

/* A graph of about most_ops operations, its places, and a plan of their buffers; all outcomes are
 * UNKNOWN. */
void make_places(made *d, mpl_ctx *ctx, uint64_t seed, uint32_t most_ops);
void unmake_places(made *d);
/* Draws offsets that keep all buffers far apart, except two that share bytes (MPL_NONE: no two). */
void draw_offsets(made *d, mpl_buffer a, mpl_buffer b);

/* Upper bound on a loop's rounds, and their exact number, if the graph gives it; else UNKNOWN. */
int64_t most_rounds_of(const made *d, mpl_op op);
int64_t rounds_of(const made *d, mpl_op op);
/* Number of possible outcomes of `op`. */
int64_t n_ways(const made *d, mpl_op op);
/* Whether `out` is rows of its loop; fills *row. */
bool rows_of(const made *d, mpl_value out, mpl_flow_row_info *row);

found find_place(const made *d, mpl_where w);
bool one_spot(const mpl_flow_spot *a, const mpl_flow_spot *b);
/* Adds every spot that w, of `bytes` bytes, may be; for a slice, also the ranges that it is part
 * of. */
void all_spots(const made *d, mpl_where w, uint64_t bytes, spots *s);
