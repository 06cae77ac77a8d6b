/* from_graph_priv.h -- a problem in the making; shared by from_graph*.c. */
#ifndef MPL_FROM_GRAPH_PRIV_H
#define MPL_FROM_GRAPH_PRIV_H

#include "graphs/problem/access.h"
#include "graphs/problem/control/storage.h"
#include "graphs/problem/control/units.h"
#include "graphs/problem/cuts.h"
#include "graphs/problem/derive/from_graph.h"
#include "graphs/problem/liveness.h"

typedef struct mpl_maker {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_problem_options *options;
    mpl_ranges *ranges;
    mpl_cuts cuts;
    uint32_t *part_first, *part_last; /* [cuts.n] of those of cut storage [step] */
    uint8_t *part_kept;               /* [cuts.n] likewise: it must still be there at the end */
    bool any_cut;                     /* of what is not pinned */
    mpl_program *program;
    mpl_storage *storage; /* NULL: no control flow, each root has a buffer of its own */
    uint8_t *is_output;   /* [n_values] a root that holds a graph output */
    uint8_t *part;        /* [n_values] of a root: the mpl_part that decides its pool; else none */
    uint32_t pool[MPL_N_PARTS]; /* of the problem; 0: none of its own */
    uint64_t *points;     /* parallel with storage: [n * storage->words] when each buffer is needed;
                             else NULL */
    mpl_extents *extents; /* of them */
    mpl_value_map *map;
    mpl_problem *p;
    uint32_t n_values, n; /* buffers of values; all */
} mpl_maker;

/* What must still be there when the last operation is done. */
static inline bool mpl_maker_is_kept(const mpl_maker *m, mpl_value root)
{
    return m->is_output[root] || m->g->value_role[root] == MPL_WEIGHT;
}
mpl_status mpl_maker_fill_values(mpl_maker *m);
mpl_status mpl_maker_fill_cells(mpl_maker *m);
mpl_status mpl_maker_fill_workspaces(mpl_maker *m);
/* Equal ids for equal dims: the lowest buffer that has them, found through a table with open
 * addressing. A workspace is one dimension of bytes. */
mpl_status mpl_maker_fill_shapes(mpl_maker *m);
/* Steps ascend and each step has one output, so the pairs come out sorted by (step, out, in). */
mpl_status mpl_maker_add_pairs(mpl_maker *m, const mpl_op *order);
/* When each cell and workspace is needed, and the order that follows. */
mpl_status mpl_maker_fill_points(mpl_maker *m);
mpl_status mpl_maker_make_parallel(mpl_maker *m);

#endif
