/* symbols.h -- ranges of dimensions and relations between them, as a user writes them; points of a
 * range; graphs read at a point. */
#pragma once

#include "graphs/core/rng.h"
#include "graphs/source.h"
#include "graphs/symbols/expr.h"

/* Whether "NAME=VALUE" of --dim gives a range ("seq=1..4096:8"), not one size. */
bool mpl_is_range(const char *text);
/* All of them, relations last; `text` items with '<' or '>' are relations. MPL_EINPUT: also where
 * no point of the ranges keeps the relations. Caller frees *out. */
mpl_status mpl_symbols_read(mpl_ctx *ctx, uint32_t n, const char *const *text, mpl_exprs **out);

/* ---- points: value[symbols] that mpl_point_allowed allows ---- */

/* A point near a corner: bit i of `high` asks for large values of symbol i. MPL_EINPUT: no point
 * keeps the relations (or none was found among 100000 boxes). */
mpl_status mpl_point_corner(mpl_ctx *ctx, const mpl_exprs *exprs, uint64_t high, int64_t *value);
/* A random point: uniform over all where at least one in 64 keeps the relations. */
mpl_status mpl_point_draw(mpl_ctx *ctx, const mpl_exprs *exprs, mpl_rng *rng, int64_t *value);
/* "batch=3, seq=17"; caller frees. */
mpl_status mpl_point_text(mpl_ctx *ctx, const mpl_exprs *exprs, const int64_t *value, char **text);

/* ---- graphs at a point ---- */

/* Reads the graph at value[symbols] of x. The caller of the symbolic analysis gives one, which also
 * runs its passes: the same for all points. */
typedef struct mpl_sym_reader {
    mpl_status (*read)(mpl_ctx *ctx, void *arg, const mpl_exprs *x, const int64_t *value,
                       mpl_graph **out);
    void *arg;
} mpl_sym_reader;

/* What mpl_sym_open reads: `arg` of a reader. */
typedef struct mpl_sym_source {
    const char *text;                /* a network with its other parameters, or a file */
    const mpl_read_options *options; /* of a file, without the symbols; NULL: none */
} mpl_sym_source;

/* The plain reader, without passes: symbols are parameters of a network of the zoo, or open dims of
 * an ONNX file (by name). MPL_EINPUT: as mpl_source_open. */
mpl_status mpl_sym_open(mpl_ctx *ctx, void *source, const mpl_exprs *exprs, const int64_t *value,
                        mpl_graph **out);
