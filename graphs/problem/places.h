/* places.h -- where the values of a graph lie: in which buffer, and, where control flows, how that
 * changes as it runs.
 *
 * Kept beside the problem; planners never see it. */
#ifndef MPL_PLACES_H
#define MPL_PLACES_H

#include "graphs/ir/strided.h"
#include "graphs/problem/problem.h"

/* Where a value lies, where that depends on how control flows (the bindings of a plan file). A
 * place is evaluated when the value is used, from the round that each loop is in (behind the loop:
 * how many there were) and the branch that each case took last. */
typedef enum mpl_place_kind {
    MPL_PLACE_BUFFER, /* buffer `of` of the problem */
    MPL_PLACE_PINNED, /* the pinned storage of value `of`, a root */
    MPL_PLACE_CYCLE, /* in round r of block `of`: item r while r < n_first, then item n_first + (r -
                        n_first) % the others */
    MPL_PLACE_FINAL, /* behind `while` operation `of`: item 0 if it ran no round, else item 1 as it
                        was in the last round */
    MPL_PLACE_BRANCH, /* item k when case `of` took branch k; the last item when it took none */
    MPL_PLACE_SLICE,  /* item 0, and round (reversed: most rounds - 1 - round) of block `of` times
                         `bytes` behind its start */
} mpl_place_kind;

typedef struct mpl_place {
    uint8_t kind;     /* mpl_place_kind */
    uint8_t reversed; /* of a slice */
    uint32_t of;
    uint32_t begin, n; /* into places.item: places with lower ids */
    uint32_t n_first;  /* of a cycle */
    uint64_t bytes;    /* of a slice [byte] */
} mpl_place;

/* What control flow adds to a value map. */
typedef struct mpl_places {
    uint32_t n;
    mpl_place *place;      /* [n] */
    uint32_t *item;        /* ids of places */
    uint32_t *value_place; /* [n_values] of a root; MPL_NONE: it lies in its buffer, or pinned, for
                              good */
    /* What has to be copied since it does not lie where it is needed. By index into op_in, of while
     * and case alone: a carried value's first, on entry; a scan's slice, each round; a bypass
     * value, when no branch runs. By index into block_result: what is carried, at the end of each
     * round (also of the last: behind the loop the value is where the parameter is), all of a round
     * as if at once; a row, at the end of each round; a branch's result, at its end. */
    uint8_t *in_copied;     /* [op_in_begin[n_ops]] */
    uint8_t *result_copied; /* results of all blocks */
    mpl_buffer *staging; /* [n_blocks] buffer for values that are copied crosswise; MPL_NONE: none
                            is needed */
} mpl_places;

/* Whether v is an output of a case, or a carried one of a while: it lies where control flow left
 * it, so it is planned even where outputs are pinned; one that nobody reads lies nowhere. */
bool mpl_is_chosen(const mpl_graph *g, mpl_value v);

/* Which buffer holds which value. A view has its root's buffer; storage that is needed part by part
 * is a family of buffers. MPL_NONE: pinned (weights, inputs, outputs), or the value is not a value
 * of the graph's order (dead). */
typedef struct mpl_value_map {
    uint32_t n_values;
    mpl_buffer *value_buffer; /* [n_values] or MPL_NONE; of several, the lowest */
    uint32_t *value_buffers;  /* [n_values] in how many it lies, with consecutive ids, end to end;
                                 NULL: one each */
    mpl_value *value_root;    /* [n_values] the value whose storage it lies in; itself when it is no
                                 view */
    uint64_t *value_offset;   /* [n_values] where in that storage it begins; 0 of a root [byte] */
    mpl_strided *value_box;   /* [n_values] of a value whose elements lie between others': the
                               * elements of its root, row-major, that they are, whatever layout the
                               * root has; of others without dims. NULL: there is none such */
    uint8_t *op_nothing; /* [n_ops] 1: its outputs lie where it would put them; it need not run */
    mpl_buffer *op_workspace; /* [n_ops] its workspace's buffer, or MPL_NONE */
    uint32_t *step_of; /* [n_ops] step of the operation: its position in the order, and behind the
                        * steps at which blocks begin and end (mpl_program) */
    uint64_t pinned_bytes; /* storage of pinned values, aligned. [byte] */
    mpl_places *places;    /* NULL: no control flow. Owned. */
} mpl_value_map;

static inline bool mpl_value_strided(const mpl_value_map *map, mpl_value v)
{
    return map->value_box != NULL && map->value_box[v].shape.rank > 0;
}

/* What control flow copies, since it does not lie where it is needed: all that a plan with these
 * places ever moves, but for operations of the graph. A copy whose two sides turn out to be at one
 * address in some round is not made then. */
typedef enum mpl_copy_when {
    MPL_COPY_ENTRY,   /* a carried value's first, once on entry to loop body `block` */
    MPL_COPY_SLICE,   /* a slice of a scan, as each round of `block` begins */
    MPL_COPY_CARRIED, /* a carried value, as each round of `block` ends */
    MPL_COPY_ROW,     /* a row, to where it is stacked, as each round of `block` ends */
    MPL_COPY_BRANCH,  /* a result, as branch `block` ends */
    MPL_COPY_BYPASS,  /* what a case in `block` hands on when no branch runs */
} mpl_copy_when;
typedef struct mpl_copy {
    mpl_copy_when when;
    uint32_t block;
    mpl_value from, to;
    uint64_t bytes; /* each time [byte] */
} mpl_copy;
/* *list, in the order of the operations, is the caller's (mpl_free); *n = 0 without control flow.
 * O(size). */
mpl_status mpl_copies_of(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                         mpl_copy **list, uint32_t *n);
const char *mpl_copy_name(mpl_copy_when when); /* "entry", "slice", "carried", "row", "branch",
                                                  "bypass" */

void mpl_value_map_free(mpl_ctx *ctx, mpl_value_map *map);

#endif
