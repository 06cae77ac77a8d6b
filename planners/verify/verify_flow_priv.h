/* verify_flow_priv.h -- where values lie at one point of a run, for the verifier of control flow.
 * Private to planners/verify_flow*.c, and shared with nobody who assigns storage. */
#ifndef MPL_VERIFY_FLOW_PRIV_H
#define MPL_VERIFY_FLOW_PRIV_H

#include "planners/verify/verify.h"

#define MPL_FLOW_DEEPEST 16

/* Where a value is said to lie. */
typedef enum mpl_where_kind {
    MPL_WHERE_NOWHERE, /* it has no memory: no bytes, or nobody reads it */
    MPL_WHERE_PLACE,   /* place `id` of the map */
    MPL_WHERE_BUFFER,  /* buffer `id` */
    MPL_WHERE_PINNED,  /* memory of its own, value `id` */
} mpl_where_kind;

/* The same, at one point of a run: rounds that are other than those of the point at hand. */
typedef struct mpl_where {
    mpl_where_kind kind;
    uint32_t id;
    uint64_t offset; /* from there [byte] */
    uint32_t n_rounds;
    uint32_t block[MPL_FLOW_DEEPEST], round[MPL_FLOW_DEEPEST]; /* the last of a block holds */
} mpl_where;

typedef struct mpl_flow_spot {
    uint32_t arena; /* of the plan; behind those, pinned values */
    uint64_t begin, end;
    mpl_buffer of; /* MPL_NONE: a pinned value's */
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

    /* Rounds come in classes: those below n_first[block] alone, the later ones by their rest modulo
     * period[block]. A class goes by its lowest round; where a value lies depends on no more, nor
     * does where it lay one or two rounds ago. */
    uint32_t *n_first, *period; /* [n_blocks] of bodies */
    int64_t *rounds; /* [n_ops] of a while: how many, if numbers in the graph alone decide it; else
                        -1 */
    int64_t *most;   /* [n_ops] of a while: how many those numbers allow; -1: any number */

    uint32_t *round;  /* [n_blocks] of the loops around the point; MPL_NONE: not in that loop */
    uint32_t *taken;  /* [n_ops] of a case: branch + 1, 1 + n for none; of a while: 1 + rounds, by
                         class; 0: unknown */
    uint64_t n_asked; /* places looked at */
} mpl_flow_map;

/* Checks that all of map->places is in range. MPL_EINVALID. Fills in n_first and period. */
mpl_status mpl_flow_map_init(mpl_flow_map *m);
void mpl_flow_map_fini(mpl_flow_map *m);

static inline uint32_t mpl_flow_classes(const mpl_flow_map *m, uint32_t block)
{
    return m->n_first[block] + m->period[block];
}

uint32_t mpl_flow_class(const mpl_flow_map *m, uint32_t block, uint64_t round);

/* Whether `op` runs nothing, for its outputs lie where it would put them. */
bool mpl_flow_idle(const mpl_flow_map *m, mpl_op op);
/* The value whose contents v shows: what v is a view of, through all operations that run nothing; v
 * where it is made. A concat that runs nothing makes its result all the same, out of parts made
 * inside it. */
mpl_value mpl_flow_holder(const mpl_flow_map *m, mpl_value v);
mpl_where mpl_flow_where(const mpl_flow_map *m, mpl_value v);
/* With `block` in another round. MPL_EINPUT where blocks nest too deep. */
mpl_status mpl_where_in_round(const mpl_flow_map *m, mpl_where *w, uint32_t block, uint32_t round);

/* Whether two lie at the same address, whatever control flow did before. */
mpl_status mpl_where_same(mpl_flow_map *m, mpl_where a, mpl_where b, bool *same);
/* Whether a is part `round` of b: slices of `bytes`, in `block`. */
mpl_status mpl_where_slice(mpl_flow_map *m, mpl_where a, mpl_where b, uint32_t block,
                           uint64_t bytes, bool reversed, bool *is);
/* Appends all ranges of `bytes` bytes where it may lie; of a slice, all that it is a slice of. */
mpl_status mpl_where_spots(mpl_flow_map *m, mpl_where w, uint64_t bytes, mpl_flow_spots *spots);
/* Whether it may depend on what operation `op`, a while or case, does. */
bool mpl_where_depends(const mpl_flow_map *m, mpl_where w, mpl_op op);

/* A loop or case that decides where w is, and need not have run; MPL_NONE: all have. Bit `first` +
 * op of ran[]: op has run. */
mpl_op mpl_where_unsettled(const mpl_flow_map *m, mpl_where w, const uint64_t *ran, uint32_t first);
/* The same of where loop `op` leaves things, as they are at the end of a round. */
mpl_op mpl_flow_finals_unsettled(const mpl_flow_map *m, mpl_op op, const uint64_t *ran,
                                 uint32_t first);

/* An output in which a loop stacks rows. */
typedef struct mpl_flow_row_info {
    uint32_t block;
    mpl_value result; /* a row */
    uint64_t bytes;   /* of a row */
    bool reversed;
} mpl_flow_row_info;

/* False: `out` is none. */
bool mpl_flow_row(const mpl_graph *g, mpl_value out, mpl_flow_row_info *row);
/* Whether w with `bytes` bytes lies in that part of stacked output v that this round of the loop
 * writes. */
mpl_status mpl_where_is_row(mpl_flow_map *m, mpl_where w, uint64_t bytes, mpl_value v, bool *is);

/* verify_units.c: operations of the whole graph, each with its blocks, of which neither must run
 * before the other, do not touch each other's memory, unless both only read. The point of the run
 * is before it. MPL_EINVALID. */
mpl_status mpl_flow_units_apart(mpl_flow_map *m);

#endif
