/* from_graph_priv.h -- state while a problem is made; shared by from_graph*.c. */
#pragma once

#include "graphs/problem/access.h"
#include "graphs/problem/control/storage.h"
#include "graphs/problem/cuts.h"
#include "graphs/problem/liveness.h"

typedef struct mpl_maker {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_problem_options *options;
    mpl_ranges *ranges;
    mpl_cuts cuts;
    uint32_t *part_first, *part_last; /* [cuts.n] of split storage [step] */
    uint8_t *part_kept;               /* [cuts.n] of split storage: needed until the end */
    bool any_cut;                     /* unpinned storage is split */
    mpl_program *program;
    mpl_storage *storage;       /* NULL: no control flow, one buffer each root */
    uint8_t *is_output;         /* [n_values] a root that holds a graph output */
    uint8_t *part;              /* [n_values] of a root: mpl_part that decides its pool */
    uint32_t pool[MPL_N_PARTS]; /* index in the problem; 0: no pool of its own */
    uint64_t *points;           /* parallel with storage: [n * storage->words]; else NULL */
    mpl_extents *extents;       /* of points: when each buffer is needed */
    mpl_value_map *map;
    mpl_problem *p;
    uint32_t n_values, n; /* buffers of values; all buffers */
} mpl_maker;

/* Whether the root is needed until the last operation is done. */
static inline bool mpl_maker_is_kept(const mpl_maker *maker, mpl_value root)
{
    return maker->is_output[root] || maker->g->value_role[root] == MPL_WEIGHT;
}
mpl_status mpl_maker_fill_values(mpl_maker *maker);
mpl_status mpl_maker_fill_cells(mpl_maker *maker);
mpl_status mpl_maker_fill_workspaces(mpl_maker *maker);
/* Gives equal ids to equal dims: the lowest buffer with these dims, found by open addressing. A
 * workspace has one dimension of bytes. */
mpl_status mpl_maker_fill_shapes(mpl_maker *maker);
/* Appends pairs sorted by (step, out, in): steps ascend, and each step has one output. */
mpl_status mpl_maker_add_pairs(mpl_maker *maker, const mpl_op *order);
/* Computes when each cell and workspace is needed, and the resulting order. */
mpl_status mpl_maker_fill_points(mpl_maker *maker);
mpl_status mpl_maker_make_parallel(mpl_maker *maker);
