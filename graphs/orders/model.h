/* model.h -- what an order decides about memory, stripped of the graph: operations, who comes
 * before whom, and buffers with those who make and those who read them. Private to graphs/ and its
 * tests.
 *
 * The live bytes of a set of operations that is closed under "before" are the buffers that some
 * maker in it has made (or that are there from the start) and some user outside it has still to
 * read (or that are kept). A step costs the live bytes of the set before it, and what it makes,
 * less what it saves by writing its output over an input that dies with it. Everything here reads
 * the same backwards: makers and users, start and end change places. */
#ifndef MPL_ORDER_MODEL_H
#define MPL_ORDER_MODEL_H

#include "graphs/problem/derive/from_graph.h"
#include "graphs/problem/problem.h"

/* Lists of lists: item[begin[i] .. begin[i + 1]). */
typedef struct mpl_lists {
    uint32_t *begin, *item;
} mpl_lists;

typedef struct mpl_order_model {
    uint32_t n; /* operations; ids are a valid order */
    uint32_t n_buffers;
    mpl_op *op;                 /* [n] the operation of the graph */
    mpl_lists before, after;    /* [n] operations, distinct, ascending */
    mpl_lists makes, reads;     /* [n] buffers that it makes, and that it is a user of */
    mpl_lists makers, users;    /* [n_buffers] operations; forward, at most one maker */
    mpl_lists overwrites;       /* [n] buffers that its output may overwrite */
    uint8_t *from_start, *kept; /* [n_buffers] there before every step; there after every step */
    uint64_t *bytes;            /* [n_buffers] whole slots */
    uint64_t *extra; /* [n] bytes for its step alone: workspaces, outputs that nobody reads */
    uint64_t *saves; /* [n] bytes of what it may write in place */
    uint64_t base;   /* bytes of buffers that live through all steps */
    bool backward;   /* made by mpl_order_model_reverse: v is a maker of what it saves on */
} mpl_order_model;

/* Of a graph, read as serial. MPL_EINPUT: the buffers pass 2^61 bytes. O(size log size). */
mpl_status mpl_order_model_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                               mpl_order_model **out);
/* Operations [from, to) of an order of m, those before done, those after not. */
mpl_status mpl_order_model_part(mpl_ctx *ctx, const mpl_order_model *m, const uint32_t *order,
                                uint32_t from, uint32_t to, mpl_order_model **out);
/* Time backwards: ids count from the end. An order of the result, read backwards through n - 1 -
 * id, is one of m of the same peak. */
mpl_status mpl_order_model_reverse(mpl_ctx *ctx, const mpl_order_model *m, mpl_order_model **out);
void mpl_order_model_free(mpl_ctx *ctx, mpl_order_model *m);

/* ---- running operations one after the other ---- */

typedef struct mpl_order_walk {
    const mpl_order_model *m;
    uint64_t live; /* [byte] */
    uint32_t n_done;
    uint32_t n_ready; /* entries of ready, some of which may be done already */
    uint32_t *ready;  /* [n] */
    uint32_t *waits;  /* [n] operations before it that are not done */
    uint32_t *born;   /* [n_buffers] makers that are done, one more where it is there from the start
                       */
    uint32_t *left;   /* [n_buffers] users that are not done, one more where it is kept */
    uint8_t *done;    /* [n] */
} mpl_order_walk;

mpl_status mpl_order_walk_init(mpl_ctx *ctx, const mpl_order_model *m, mpl_order_walk *walk);
void mpl_order_walk_fini(mpl_ctx *ctx, mpl_order_walk *walk);
/* Back to where nothing is done. O(size). */
void mpl_order_walk_reset(mpl_order_walk *walk);
/* `to` becomes equal to `from`, a walk of the same model. */
void mpl_order_walk_copy(mpl_order_walk *to, const mpl_order_walk *from);
/* Live bytes while v runs, which is ready. O(its buffers). */
uint64_t mpl_order_walk_cost(const mpl_order_walk *walk, uint32_t v);
/* Live bytes once v is done. O(its buffers). */
uint64_t mpl_order_walk_after(const mpl_order_walk *walk, uint32_t v);
void mpl_order_walk_run(mpl_order_walk *walk, uint32_t v);
/* Undoes the last run: v, back to these live bytes and entries of ready. */
void mpl_order_walk_undo(mpl_order_walk *walk, uint32_t v, uint64_t live, uint32_t n_ready);

/* The highest cost of an order of all n operations. O(size). */
uint64_t mpl_order_model_peak(mpl_order_walk *walk, const uint32_t *order);

#endif
