/* store_while_priv.h -- one `while` whose storage is being assigned; shared by store_while.c,
 * store_pairs.c and store_copied.c. */
#ifndef MPL_STORE_WHILE_PRIV_H
#define MPL_STORE_WHILE_PRIV_H

#include "graphs/problem/control/storage_priv.h"

typedef struct mpl_pair {
    mpl_value param, init, source, out; /* roots; out MPL_NONE: nobody reads it */
    uint32_t in, result;                /* indices into op_in and block_result */
    uint32_t up;    /* the pair whose parameter is its source; MPL_NONE: the source is none */
    uint32_t age;   /* hops to the source; in a ring or leading to one: to the ring's entry */
    uint32_t chain; /* the pair at the chain's head: whose source is no parameter, or the lowest of
                       the ring */
    uint32_t first; /* the item that stands for its initial value */
    uint32_t cell;  /* of a head: its first cell's item; the others follow */
    uint32_t n_cells;     /* of a head: 0: the source is not of the body */
    uint32_t dep, n_deps; /* items in deps: what may hold its initial value, then, of a copied one,
                             its source */
    bool wanted, ring, shared, copied; /* shared: others may start in the same place */
} mpl_pair;

typedef struct mpl_loop {
    mpl_store *s;
    const mpl_graph *g;
    mpl_op op;
    uint32_t body, n;
    uint32_t begin, end;   /* steps at which the body begins and ends */
    int64_t rounds;        /* if that is known; else -1 */
    mpl_pair *pair;        /* [n] */
    uint64_t *row, *other; /* scratch */
} mpl_loop;

/* How many rounds there are, when nothing else can end the loop; -1: not known before. */
int64_t mpl_loop_known_rounds(const mpl_loop *l);
/* The item that always lies where `item` does, and stays there: itself, or one that a loop inside
 * left where it was. MPL_NONE: that depends on control flow. */
uint32_t mpl_loop_same_place(mpl_store *s, uint32_t item);
void mpl_loop_find_pairs(mpl_loop *l);
/* Whether the source of a pair is made in the body and has a cell to be in; cells of blocks inside
 * are settled. */
bool mpl_loop_is_made_here(const mpl_loop *l, mpl_value v);
/* Follows the chains. Pairs whose source has no address of its own from round to round are copied,
 * and with them those that wait for their parameters. */
void mpl_loop_link_pairs(mpl_loop *l);
/* Pairs that start with the same value, or with values that control flow may have left in one
 * place. */
mpl_status mpl_loop_find_shared(mpl_loop *l);
/* Keeps a value at the step at which it is copied away. */
bool mpl_loop_hold_at(mpl_loop *l, mpl_value v, uint32_t step);
/* A pair whose value is copied from round to round: the parameter has a cell that nothing else of
 * the loop uses. */
mpl_status mpl_loop_place_copied(mpl_loop *l, uint32_t i);
/* Room for values that are copied crosswise, one into the place of the other. */
mpl_status mpl_loop_add_staging(mpl_loop *l);

#endif
