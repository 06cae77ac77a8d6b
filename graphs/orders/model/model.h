/* model.h -- the memory model of an order, without the graph: operations, which is before which,
 * and buffers with their makers and users. Private to graphs/ and its tests.
 *
 * A set of operations is closed if it contains all that is before its members. A buffer is live at
 * a closed set if a maker in the set has made it (or it exists from the start) and a user outside
 * the set still reads it (or it is kept). A step costs the live bytes of the set before it, plus
 * what it makes, less what it saves by overwriting an input that dies with it. The model is
 * symmetric in time: makers and users, start and end change places. */
#pragma once

#include "graphs/problem/derive/from_graph.h"

/* Lists of lists: item[begin[i] .. begin[i + 1]). */
typedef struct mpl_lists {
    uint32_t *begin, *item;
} mpl_lists;

typedef struct mpl_order_model {
    uint32_t n; /* operations; ids are a valid order */
    uint32_t n_buffers;
    mpl_op *op;                 /* [n] the operation of the graph */
    mpl_lists before, after;    /* [n] operations, distinct, ascending */
    mpl_lists makes, reads;     /* [n] buffers that it makes; buffers that it uses */
    mpl_lists makers, users;    /* [n_buffers] operations; several makers: the first one counts */
    uint8_t *from_start, *kept; /* [n_buffers] live before every step; live after every step */
    uint64_t *bytes;            /* [n_buffers] whole slots */
    uint64_t *extra;            /* [n] bytes for its step alone: workspaces, unread outputs */
    /* Bytes that the last slot of a buffer leaves unused; the most of an operation's extra. Only in
     * a model of a graph. */
    uint64_t *rest, *extra_rest; /* [n_buffers], [n] */
    /* Ways to write in place: over the buffers of one operand, as far as they end at the step. An
     * operation saves the best of its ways, and at most `saves`. */
    uint32_t n_ways;
    mpl_lists ways;  /* [n] ways */
    mpl_lists under; /* [n_ways] buffers */
    uint64_t *saves; /* [n] [byte] */
    uint64_t base;   /* bytes of buffers that live through all steps */
    bool relaxed;    /* mpl_order_model_relaxed */
    bool backward;   /* made by mpl_order_model_reverse: v makes what it overwrites */
} mpl_order_model;

/* The model of a graph, `serial`, with the concats that share under `options` (NULL: defaults). Of
 * an order its peak is that of the order's problem, up to the padding of one last slot. If the
 * concats are undecided (MPL_CONCAT_AUTO without concat_shared) and some can share, the model is
 * relaxed. MPL_EINPUT: buffers pass 2^61 bytes. O(size log size). */
mpl_status mpl_order_model_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_problem_options *options,
                               mpl_order_model **out);
/* The relaxed model: of an order its peak is at most that of its problem under every choice of
 * concats that share and splits that copy. An operand counts alone, though all of a shared result
 * may have to be there; its bytes are there once, as long as a value that contains them is read. */
mpl_status mpl_order_model_relaxed(mpl_ctx *ctx, const mpl_graph *g,
                                   const mpl_problem_options *options, mpl_order_model **out);
/* Operations [from, to) of an order of model, with those before done and those after not done. */
mpl_status mpl_order_model_part(mpl_ctx *ctx, const mpl_order_model *model, const uint32_t *order,
                                uint32_t from, uint32_t to, mpl_order_model **out);
/* The model with time reversed: ids count from the end. An order of the result, read backwards with
 * id replaced by n - 1 - id, is an order of m with the same peak. */
mpl_status mpl_order_model_reverse(mpl_ctx *ctx, const mpl_order_model *m, mpl_order_model **out);
void mpl_order_model_free(mpl_ctx *ctx, mpl_order_model *model);

/* ---- running operations in sequence ---- */

typedef struct mpl_order_walk {
    const mpl_order_model *model;
    uint64_t live; /* [byte] */
    uint32_t n_done;
    uint32_t n_ready; /* entries of ready, some of which may be done */
    uint32_t *ready;  /* [n] */
    uint32_t *waits;  /* [n] unfinished operations before it */
    uint32_t *born;   /* [n_buffers] finished makers, plus one if it exists from the start */
    uint32_t *left;   /* [n_buffers] unfinished users, plus one if it is kept */
    uint8_t *done;    /* [n] */
} mpl_order_walk;

mpl_status mpl_order_walk_init(mpl_ctx *ctx, const mpl_order_model *model, mpl_order_walk *walk);
void mpl_order_walk_fini(mpl_ctx *ctx, mpl_order_walk *walk);
/* Back to the start, with nothing done. O(size). */
void mpl_order_walk_reset(mpl_order_walk *walk);
/* Makes `to` equal to `from`, a walk of the same model. */
void mpl_order_walk_copy(mpl_order_walk *to, const mpl_order_walk *from);
/* Live bytes while v, which is ready, runs. O(its buffers). */
uint64_t mpl_order_walk_cost(const mpl_order_walk *walk, uint32_t v);
/* Live bytes after v. O(its buffers). */
uint64_t mpl_order_walk_after(const mpl_order_walk *walk, uint32_t v);
void mpl_order_walk_run(mpl_order_walk *walk, uint32_t v);
/* Undoes the last run, that of v, and restores these live bytes and entries of ready. */
void mpl_order_walk_undo(mpl_order_walk *walk, uint32_t v, uint64_t live, uint32_t n_ready);

/* The highest cost of an order of all n operations. O(size). */
uint64_t mpl_order_model_peak(mpl_order_walk *walk, const uint32_t *order);
