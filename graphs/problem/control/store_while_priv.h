/* store_while_priv.h -- the state while one `while` is placed; shared by store_while.c,
 * store_pairs.c and store_copied.c. */
#pragma once

#include "graphs/problem/control/storage_priv.h"

typedef struct mpl_pair {
    mpl_value param, init, source, out; /* roots; out MPL_NONE: never read */
    uint32_t in, result;                /* indices into op_in and block_result */
    uint32_t up;          /* pair whose parameter is its source; MPL_NONE: no parameter is */
    uint32_t age;         /* hops to the source; in a ring or leading to one: to the ring's entry */
    uint32_t chain;       /* pair at the chain's head; in a ring: the lowest pair */
    uint32_t first;       /* item of its initial value */
    uint32_t cell;        /* of a head: item of its first cell; the others follow */
    uint32_t n_cells;     /* of a head; 0: the body does not make the source */
    uint32_t dep, n_deps; /* items in deps that may hold its initial value; if copied, its source */
    bool wanted, ring, shared, copied; /* shared: others may start in the same place */
} mpl_pair;

typedef struct mpl_loop {
    mpl_store *store;
    const mpl_graph *g;
    mpl_op op;
    uint32_t body, n;
    uint32_t begin, end;   /* steps at which the body begins and ends */
    int64_t rounds;        /* number of rounds; -1: unknown */
    mpl_pair *pair;        /* [n] */
    uint64_t *row, *other; /* scratch */
} mpl_loop;

/* Number of rounds, if nothing else can end the loop; -1: unknown in advance. */
int64_t mpl_loop_known_rounds(const mpl_loop *loop);
/* The item at whose address `item` always lies: itself, or one that an inner loop left in place.
 * MPL_NONE: it depends on control flow. */
uint32_t mpl_loop_same_place(mpl_store *store, uint32_t item);
void mpl_loop_find_pairs(mpl_loop *loop);
/* Whether the body makes v, the source of a pair, and v has a cell. Cells of inner blocks are
 * settled. */
bool mpl_loop_is_made_here(const mpl_loop *loop, mpl_value v);
/* Follows the chains. A pair is copied if its source has no address of its own from round to round;
 * so are the pairs that depend on its parameter. */
void mpl_loop_link_pairs(mpl_loop *loop);
/* Finds pairs that start with one value, or with values that control flow may have left in one
 * place. */
mpl_status mpl_loop_find_shared(mpl_loop *loop);
/* Keeps a value until the step at which it is copied. */
bool mpl_loop_hold_at(mpl_loop *loop, mpl_value v, uint32_t step);
/* Places a pair whose value is copied each round: the parameter gets a cell that nothing else in
 * the loop uses. */
mpl_status mpl_loop_place_copied(mpl_loop *loop, uint32_t i);
/* Adds a staging buffer for values that are copied crosswise, each into the other's place. */
mpl_status mpl_loop_add_staging(mpl_loop *loop);
