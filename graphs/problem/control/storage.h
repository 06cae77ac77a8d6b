/* storage.h -- which values of a graph with control flow lie together, and where they go from round
 * to round. Private to graphs/problem/.
 *
 * Values that can lie at one address become one cell. A carried value that cannot lie where its
 * parameter does is given as many cells as it has copies alive at once, and its address goes round
 * them: only such values are unrolled, never the body (the NNC library unrolls the body). It is the
 * modulo variable expansion of software pipelining (Lam, "Software Pipelining", PLDI 1988). */
#ifndef MPL_STORAGE_H
#define MPL_STORAGE_H

#include "graphs/problem/control/units.h"
#include "graphs/problem/derive/from_graph.h"
#include "graphs/problem/problem.h"

/* What is known of the values before storage is assigned. */
typedef struct mpl_storage_spec {
    const mpl_graph *g;
    const mpl_program *program;
    const mpl_problem_options *options;
    const mpl_value *root; /* [n_values] as mpl_value_roots */
    const uint8_t *pinned; /* [n_values] a root with memory of its own that is not planned */
    const uint8_t *kept;   /* [n_values] a root that must still be there at the end */
} mpl_storage_spec;

typedef struct mpl_storage {
    uint32_t n_cells; /* in the order of the lowest id of a value in them; staging last */
    uint64_t *bytes;  /* [n_cells] */
    mpl_value *named; /* [n_cells] the value that gives the name, type and dims; MPL_NONE: staging
                       */
    uint32_t *copy;   /* [n_cells] which of the cells that a value goes round, from 0 */
    uint32_t words;   /* 64-bit words of a row */
    uint64_t *row;    /* [n_cells * words] bit s: it is needed at step s; bit n_steps: it is kept;
                         parallel: points */
    mpl_units *units; /* parallel: what runs at the same time; else NULL. Owned. */
    uint32_t *value_cell; /* [n_values] of a root that stays in one cell; MPL_NONE */
    mpl_places *places;   /* buffers are cells */
} mpl_storage;

mpl_status mpl_storage_new(mpl_ctx *ctx, const mpl_storage_spec *spec, mpl_storage **out);
void mpl_storage_free(mpl_ctx *ctx, mpl_storage *storage);
void mpl_places_free(mpl_ctx *ctx, mpl_places *places);
/* mpl_assert_ok's predicate: cells are needed and large enough, places in range and below those
 * that refer to them; at level 3, of small graphs, cells are needed where they are touched. */
bool mpl_storage_ok(const mpl_storage *storage, const mpl_storage_spec *spec);

#endif
