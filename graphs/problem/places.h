/* places.h -- maps values to buffers; with control flow, to places that depend on the run. Kept
 * beside the problem; planners never see it. */
#pragma once

#include "graphs/ir/strided.h"
#include "graphs/problem/problem.h"

/* Where a value lies when that depends on control flow (the bindings of a plan file). A place is
 * evaluated when the value is used. It depends on the current round of each loop (after the loop:
 * the number of rounds) and on the branch that each case took last. */
typedef enum mpl_place_kind {
    MPL_PLACE_BUFFER, /* buffer `of` of the problem */
    MPL_PLACE_PINNED, /* pinned storage of value `of`, a root */
    MPL_PLACE_CYCLE, /* in round r of block `of`: item r while r < n_first, then item n_first + (r -
                        n_first) % (n - n_first) */
    MPL_PLACE_FINAL, /* after `while` operation `of`: item 1 of its last round; item 0: no round */
    MPL_PLACE_BRANCH, /* item k when case `of` took branch k; the last item when it took none */
    MPL_PLACE_SLICE,  /* item 0 + `bytes` * round of block `of` (reversed: last possible - round) */
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
    uint32_t *value_place; /* [n_values] of a root; MPL_NONE: always in its buffer, or pinned */
    /* Values that are copied because they do not lie where they are needed. in_copied, indexed as
     * op_in, of while and case only: initial values of carried values, on entry; slices of scans,
     * each round; bypass values, when no branch runs. result_copied, indexed as block_result:
     * carried values at the end of each round, all as if at once (after the last round too: then
     * the value is in the parameter's place); rows at the end of each round; a branch's results at
     * its end. */
    uint8_t *in_copied;     /* [op_in_begin[n_ops]] */
    uint8_t *result_copied; /* results of all blocks */
    mpl_buffer *staging; /* [n_blocks] buffer for values copied crosswise; MPL_NONE: none needed */
} mpl_places;

/* Whether v is an output of a case, or a carried output of a while. It lies where control flow left
 * it, so it is planned even where outputs are pinned. If it is never read, it has no place. */
bool mpl_is_chosen(const mpl_graph *g, mpl_value v);

/* Maps values to buffers. A view has its root's buffer; split storage is a family of buffers.
 * MPL_NONE: the value is pinned (weights, inputs, outputs), or dead. */
typedef struct mpl_value_map {
    uint32_t n_values;
    mpl_buffer *value_buffer; /* [n_values] or MPL_NONE; the lowest of several */
    uint32_t *value_buffers;  /* [n_values] number of consecutive buffers; NULL: one each */
    mpl_value *value_root;    /* [n_values] the value whose storage it lies in; a root: itself */
    uint64_t *value_offset;   /* [n_values] offset in that storage; 0 for a root [byte] */
    mpl_strided *value_box; /* [n_values] box of the root's elements, row-major in any layout of the
                               root; no dims: not strided. NULL: no boxes */
    uint8_t *op_nothing;    /* [n_ops] 1: its outputs already lie in place; it need not run */
    mpl_buffer *op_workspace; /* [n_ops] workspace buffer, or MPL_NONE */
    uint32_t *step_of;   /* [n_ops] position in the order with BEGIN and END steps (mpl_program) */
    uint32_t *op_stream; /* [n_ops] each stream runs in the order of step_of; NULL: no streams */
    uint64_t pinned_bytes; /* aligned storage of pinned values [byte] */
    mpl_places *places;    /* NULL: no control flow. Owned. */
} mpl_value_map;

static inline bool mpl_value_strided(const mpl_value_map *map, mpl_value v)
{
    return map->value_box != NULL && map->value_box[v].shape.rank > 0;
}

/* Copies that control flow makes because a value does not lie where it is needed. Apart from
 * operations of the graph, nothing else is moved. A copy whose two addresses coincide in some round
 * is skipped then. */
typedef enum mpl_copy_when {
    MPL_COPY_ENTRY,   /* initial value of a carried value, once on entry to loop body `block` */
    MPL_COPY_SLICE,   /* slice of a scan, as each round of `block` begins */
    MPL_COPY_CARRIED, /* carried value, as each round of `block` ends */
    MPL_COPY_ROW,     /* row, to where it is stacked, as each round of `block` ends */
    MPL_COPY_BRANCH,  /* result, as branch `block` ends */
    MPL_COPY_BYPASS,  /* value that a case in `block` returns when no branch runs */
} mpl_copy_when;
typedef struct mpl_copy {
    mpl_copy_when when;
    uint32_t block;
    mpl_value from, to;
    uint64_t bytes; /* each time [byte] */
} mpl_copy;
/* Lists the copies in the order of the operations. The caller frees *list (mpl_free). Without
 * control flow *n = 0. O(size). */
mpl_status mpl_copies_of(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                         mpl_copy **list, uint32_t *n);
const char *mpl_copy_name(mpl_copy_when when); /* "entry", "slice", .. */

void mpl_value_map_free(mpl_ctx *ctx, mpl_value_map *map);
