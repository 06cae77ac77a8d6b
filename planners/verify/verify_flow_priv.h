/* verify_flow_priv.h -- where values lie at one point of a run. Private to planners/verify_flow*.c:
 * the verifier of control flow shares nothing with code that assigns storage. */
#pragma once

#include "planners/verify/verify.h"

#define MPL_FLOW_DEEPEST 16

/* The kind of a value's location. */
typedef enum mpl_where_kind {
    MPL_WHERE_NOWHERE, /* no memory: no bytes, or never read */
    MPL_WHERE_PLACE,   /* place `id` of the map */
    MPL_WHERE_BUFFER,  /* buffer `id` */
    MPL_WHERE_PINNED,  /* memory of its own, value `id` */
} mpl_where_kind;

/* A location at one point of a run, with the rounds that differ from those of the point. */
typedef struct mpl_where {
    mpl_where_kind kind;
    uint32_t id;
    uint64_t offset; /* from the start of that memory [byte] */
    uint32_t n_rounds;
    uint32_t block[MPL_FLOW_DEEPEST], round[MPL_FLOW_DEEPEST]; /* the last entry of a block holds */
} mpl_where;

typedef struct mpl_flow_spot {
    uint32_t arena; /* arena of the plan; larger numbers: pinned values */
    uint64_t begin, end;
    mpl_buffer of; /* MPL_NONE: a pinned value */
} mpl_flow_spot;

typedef struct mpl_flow_spots {
    mpl_flow_spot *at;
    size_t n, room;
} mpl_flow_spots;

/* A graph with the plan of its values, and a point of a run. */
typedef struct mpl_flow_map {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_value_map *map;
    const mpl_problem *p;
    const mpl_plan *plan;
    uint32_t n_arenas;

    /* Rounds fall into classes. A round below n_first[block] is its own class; later ones are
     * classed by their remainder modulo period[block]. The lowest round names the class. Where a
     * value lies, now or one or two rounds ago, depends only on the class. */
    uint32_t *n_first, *period; /* [n_blocks] of bodies */
    /* [n_ops] of a while: rounds, if constants of the graph alone decide their number; else -1 */
    int64_t *rounds;
    int64_t *most; /* [n_ops] of a while: most rounds by those constants; -1: any number */

    /* [n_blocks] current round of each loop around the point; MPL_NONE: not in that loop */
    uint32_t *round;
    /* [n_ops] of a case: branch + 1 (none: 1 + n); of a while: 1 + rounds, by class; 0: unknown */
    uint32_t *taken;
    uint64_t n_asked; /* places evaluated so far */
} mpl_flow_map;

/* Checks that map->places is in range (MPL_EINVALID) and fills in n_first and period. */
mpl_status mpl_flow_map_init(mpl_flow_map *map);
void mpl_flow_map_fini(mpl_flow_map *map);

static inline uint32_t mpl_flow_classes(const mpl_flow_map *map, uint32_t block)
{
    return map->n_first[block] + map->period[block];
}

uint32_t mpl_flow_class(const mpl_flow_map *map, uint32_t block, uint64_t round);

/* Whether `op` runs nothing because its outputs already lie where it would put them. */
bool mpl_flow_idle(const mpl_flow_map *map, mpl_op op);
/* The value whose contents v shows: follows views and operations that run nothing to where v is
 * made. A concat that runs nothing still counts as making its result from parts made inside it. */
mpl_value mpl_flow_holder(const mpl_flow_map *map, mpl_value v);
mpl_where mpl_flow_where(const mpl_flow_map *map, mpl_value v);
/* Moves where to another round of `block`. MPL_EINPUT: blocks nest too deep. */
mpl_status mpl_where_in_round(const mpl_flow_map *map, mpl_where *where, uint32_t block,
                              uint32_t round);

/* Whether a and b have the same address, whatever control flow did before. */
mpl_status mpl_where_same(mpl_flow_map *map, mpl_where a, mpl_where b, bool *same);
/* Whether a is part `round` of b, sliced in `block` into parts of `bytes`. */
mpl_status mpl_where_slice(mpl_flow_map *map, mpl_where a, mpl_where b, uint32_t block,
                           uint64_t bytes, bool reversed, bool *is);
/* Appends all ranges of `bytes` bytes where w may lie; for a slice, those of the whole value. */
mpl_status mpl_where_spots(mpl_flow_map *map, mpl_where w, uint64_t bytes, mpl_flow_spots *spots);
/* Whether w may depend on what operation `op`, a while or case, does. */
bool mpl_where_depends(const mpl_flow_map *map, mpl_where w, mpl_op op);

/* A loop or case that decides where w is and may not have run yet; MPL_NONE: all have run. Bit
 * `first` + op of ran[]: op has run. */
mpl_op mpl_where_unsettled(const mpl_flow_map *map, mpl_where w, const uint64_t *ran,
                           uint32_t first);
/* The same for the places in which loop `op` leaves its values at the end of a round. */
mpl_op mpl_flow_finals_unsettled(const mpl_flow_map *map, mpl_op op, const uint64_t *ran,
                                 uint32_t first);

/* An output in which a loop stacks rows. */
typedef struct mpl_flow_row_info {
    uint32_t block;
    mpl_value result; /* one row */
    uint64_t bytes;   /* of one row */
    bool reversed;
} mpl_flow_row_info;

/* False: `out` is not such an output. */
bool mpl_flow_row(const mpl_graph *g, mpl_value out, mpl_flow_row_info *row);
/* Whether w, of `bytes` bytes, lies in the row of stacked output v that this round writes. */
mpl_status mpl_where_is_row(mpl_flow_map *map, mpl_where w, uint64_t bytes, mpl_value v, bool *is);

/* verify_units.c: top-level operations, with their blocks, that are not ordered must not touch each
 * other's memory, unless both only read. The current point is before the run. MPL_EINVALID. */
mpl_status mpl_flow_units_apart(mpl_flow_map *map);
