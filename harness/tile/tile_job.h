/* tile_job.h -- --tile: the text, the graph by patches, its fields in a row. */
#pragma once

#include "graphs/passes/tile/tile.h"
#include "graphs/problem/derive/from_graph.h"
#include "harness/rows/record.h"

/* What --tile found; plain_work and n_regions 0: not asked for. */
typedef struct mpl_tiled {
    mpl_tile_facts facts;
    uint64_t before_bytes, peak_bytes; /* live bytes in the given order, without and with patches */
    int64_t ns;                        /* time to choose and rewrite; 0: not asked for */
} mpl_tiled;

/* Work that `auto` allows. */
#define MPL_TILE_AUTO 1.5

/* "none", "K", "auto", "work:1.2x", "budget:BYTES". *asked is false for none. MPL_EINPUT. */
mpl_status mpl_tile_parse(mpl_ctx *ctx, const char *text, bool *asked, mpl_tile_ask *out);

/* Replaces *g. MPL_EINPUT, MPL_EINVALID: as mpl_tile_search. */
mpl_status mpl_tile_job(mpl_ctx *ctx, const char *text, const mpl_problem_options *options,
                        mpl_graph **g, mpl_tiled *out);

void mpl_tile_fields(const char *text, const mpl_tiled *tiled, mpl_record *row);
