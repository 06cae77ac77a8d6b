/* random_places.h -- random places of random graphs with loops and branches; and where they are,
 * judged plainly: a place is evaluated for one way that control may have taken at a time, and every
 * way is tried. */
#ifndef MPL_RANDOM_PLACES_H
#define MPL_RANDOM_PLACES_H

#include "tests/support/random_control.h"

#include "graphs/problem/problem.h"
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
    int64_t *went; /* [n_ops] what each loop and case did: rounds, or the branch; UNKNOWN */
} made;

/* Where something lies for one way of control: slices of slices, in the end of memory; or an
 * operation to ask first. */
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

/* A graph of about so many operations, its places, and a plan of their buffers; nothing is known of
 * what control did. */
void make_places(made *d, mpl_ctx *ctx, uint64_t seed, uint32_t most_ops);
void unmake_places(made *d);
/* Other offsets: all buffers far from each other, but for two that share bytes (MPL_NONE: no
 * two). */
void draw_offsets(made *d, mpl_buffer a, mpl_buffer b);

/* How often a loop runs at most, and for certain, if the graph says so; else UNKNOWN. */
int64_t most_rounds_of(const made *d, mpl_op op);
int64_t rounds_of(const made *d, mpl_op op);
/* Of what `op` can have done, the number of choices. */
int64_t n_ways(const made *d, mpl_op op);
/* Whether `out` is rows of its loop; which. */
bool rows_of(const made *d, mpl_value out, mpl_flow_row_info *row);

found find_place(const made *d, mpl_where w);
bool one_spot(const mpl_flow_spot *a, const mpl_flow_spot *b);
/* Adds all that w, of so many bytes, may be; of a slice, all that it is a slice of. */
void all_spots(const made *d, mpl_where w, uint64_t bytes, spots *s);

#endif
