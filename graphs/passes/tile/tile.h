/* tile.h -- execution by patches: regions of image operators are computed piece by piece.
 *
 * A region is a run of operations of the given order that makes one value which others need. Its
 * result is computed patch by patch; each operation inside computes what the patch needs. Of what
 * two patches need, rows are kept from patch to patch (line buffers) or computed again (halos);
 * columns are computed again; or the other way round (`across`). What one region hands to the next
 * is one value, or bands of rows (`banded`): the next reads a band here and there, and a band is
 * gone after its last reader. The result is an ordinary graph: slices, the operations on pieces
 * with their own pads, `pad` and `assign` to put pieces together. Each element's sum keeps its
 * terms and their order.
 *
 * Sources  J. Lin et al., MCUNetV2 (NeurIPS 2021): patches with halos. H.-S. Zheng et al.,
 * StreamNet (NeurIPS 2023): kept overlap. Z. Huang, E. Baccelli, msf-CNN (2025): several fused
 *          regions one after the other. */
#pragma once

#include "graphs/graph.h"

/* Rows that the next patch needs, too, are computed again, kept, or kept where a value has no more
 * channels than what it is made of: wide values between narrow ones are then computed again. */
typedef enum mpl_tile_keep {
    MPL_KEEP_NONE,
    MPL_KEEP_ALL,
    MPL_KEEP_NARROW,
    MPL_N_KEEPS
} mpl_tile_keep;

/* Sizes of a patch of the region's result; at least 1, at most its dims. */
typedef struct mpl_patch {
    int64_t channels, rows, columns;
    mpl_tile_keep keep;
    bool shift;  /* kept rows move up in place, a few at a time; else they are copied out and in */
    bool across; /* patches go along the rows, and columns are kept in place of rows */
} mpl_patch;

/* Operations [begin, end) of the given order. */
typedef struct mpl_tile_region {
    mpl_op begin, end;
    mpl_patch patch;
    int64_t band; /* rows of the bands of what the operation before makes; 0: one value */
    bool banded;  /* the result is left in bands of patch.rows rows, which the next region reads */
} mpl_tile_region;

typedef struct mpl_tile_facts {
    uint32_t n_regions, n_patches;
    /* multiplications of products, of all of the graph: without and with patches */
    uint64_t plain_work, work;
    uint64_t model_bytes; /* live bytes at the highest step, by the model of the search */
    uint64_t least_bytes; /* the least of the family searched, whatever the work; 0: no search */
    uint64_t bound_bytes; /* no regions with any patches need less: what one reads or makes, what
                             an element is made of; an operation that none holds, as it is */
} mpl_tile_facts;

/* Replaces *g by a graph that computes the regions (ascending, disjoint) by patches. MPL_EINPUT: a
 * range that is no region. On failure only mpl_graph_free may be called on *g. */
mpl_status mpl_graph_tile(mpl_ctx *ctx, mpl_graph **g, uint32_t n, const mpl_tile_region *region,
                          mpl_tile_facts *facts);

/* The result of a region: what its last operation makes. */
static inline mpl_value mpl_tile_result(const mpl_graph *g, const mpl_tile_region *region)
{
    return g->op_out[g->op_out_begin[region->end - 1]];
}

/* What the search is asked for. */
typedef enum mpl_tile_goal {
    MPL_TILE_ROWS,   /* one region in `patches` patches of rows: the region of the least peak */
    MPL_TILE_WORK,   /* the least peak with at most `factor` times the work */
    MPL_TILE_BUDGET, /* the least work with a peak of at most `bytes` */
} mpl_tile_goal;

typedef struct mpl_tile_ask {
    mpl_tile_goal goal;
    uint64_t patches, bytes;
    double factor;
} mpl_tile_ask;

/* Chooses regions, patches, and whether rows are kept: of all intervals of the given order that are
 * regions, each with every size of a list of patches, one after the other. Exact by dynamic
 * programming over the positions between operations, for live bytes in the given order with
 * weights, inputs and outputs pinned. *region[*n] is the caller's to free. facts receives
 * model_bytes, least_bytes and bound_bytes. MPL_EINPUT: loops or branches, no region at all, or a
 * program; MPL_EINVALID: no choice is within the budget. O(regions * patches * operations). */
mpl_status mpl_tile_search(mpl_ctx *ctx, const mpl_graph *g, const mpl_tile_ask *ask, uint32_t *n,
                           mpl_tile_region **region, mpl_tile_facts *facts);
