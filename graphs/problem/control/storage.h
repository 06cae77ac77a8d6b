/* storage.h -- storage of values of a graph with control flow, round by round. Private to
 * graphs/problem/.
 *
 * Values that can share one address become one cell. A carried value that cannot lie where its
 * parameter does gets as many cells as it has copies alive at once, and its address cycles through
 * them. Only such values are unrolled, never the body (the NNC library unrolls the body). This is
 * the modulo variable expansion of software pipelining (Lam, "Software Pipelining", PLDI 1988). */
#pragma once

#include "graphs/problem/control/units.h"
#include "graphs/problem/derive/from_graph.h"

/* What is known of the values before storage is assigned. */
typedef struct mpl_storage_spec {
    const mpl_graph *g;
    const mpl_program *program;
    const mpl_problem_options *options;
    const mpl_value *root; /* [n_values] as mpl_value_roots */
    const uint8_t *pinned; /* [n_values] a root in unplanned memory of its own */
    const uint8_t *kept;   /* [n_values] a root that is needed until the end */
} mpl_storage_spec;

typedef struct mpl_storage {
    uint32_t n_cells; /* sorted by the lowest value id in each; staging last */
    uint64_t *bytes;  /* [n_cells] [byte] */
    mpl_value *named; /* [n_cells] gives name, type, dims; MPL_NONE: staging */
    uint32_t *copy;   /* [n_cells] number of the cell within its cycle, from 0 */
    uint32_t words;   /* 64-bit words of a row */
    uint64_t *row; /* [n_cells * words] bit s: needed at step s (parallel: point); n_steps: kept */
    mpl_units *units;     /* parallel: units that may run concurrently; else NULL. Owned. */
    uint32_t *value_cell; /* [n_values] of a root that stays in one cell; else MPL_NONE */
    mpl_places *places;   /* their buffers are cells */
} mpl_storage;

/* Properties of the storage of values that hold in every order of the blocks. */
typedef struct mpl_storage_facts {
    /* [n_values] the root whose bytes a value's contents take: its own, or that of the scan which
     * it is a slice of. MPL_NONE: none are planned, as it is pinned, never read, or a row of an
     * output. */
    mpl_value *lies;
    uint8_t *out_live;    /* [n_values] an operation's output that is read */
    uint8_t *result_read; /* of block_result: it is read as its block ends */
} mpl_storage_facts;
/* The program may be that of any order. */
mpl_status mpl_storage_facts_new(mpl_ctx *ctx, const mpl_storage_spec *spec,
                                 mpl_storage_facts *out);
void mpl_storage_facts_free(mpl_ctx *ctx, mpl_storage_facts *facts);

mpl_status mpl_storage_new(mpl_ctx *ctx, const mpl_storage_spec *spec, mpl_storage **out);
void mpl_storage_free(mpl_ctx *ctx, mpl_storage *storage);
void mpl_places_free(mpl_ctx *ctx, mpl_places *places);
/* Predicate of mpl_assert_ok: cells are needed and large enough; places are in range and refer to
 * lower places only. At level 3, for small graphs, also: cells are needed where they are
 * touched. */
bool mpl_storage_ok(const mpl_storage *storage, const mpl_storage_spec *spec);
