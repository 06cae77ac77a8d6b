/* template.h -- one plan for every shape of a range: what lies below what, instead of offsets.
 *
 * Which buffers conflict does not depend on sizes. So where every two that conflict are related,
 * "i below j", and the relations have no circle, the offsets that follow them are right for every
 * shape: offset(j) is the largest offset(i) + bytes(i) over the relations, rounded up to the
 * alignment. Parts of a family move together, and a buffer that is written in place has the offset
 * of what it overwrites. */
#pragma once

#include "graphs/symbols/sym_problem.h"

#define MPL_REGRET_ONE  UINT64_C(1000000)  /* regret is in millionths: arena = bound */
#define MPL_REGRET_MOST (INT64_C(1) << 53) /* a larger one is not stated */

/* Worst arena over bound of pool 0 over the shapes of a cell, from both sides. */
typedef struct mpl_regret {
    uint64_t arena, bound; /* at the shape at[]; bound 0: unknown [byte] */
    int64_t *at;           /* [symbols] a shape that attains it; NULL: none. Owned. */
    uint64_t most;         /* no shape of the cell exceeds this [millionths]; UINT64_MAX: unknown */
} mpl_regret;

typedef struct mpl_template_code mpl_template_code; /* what is evaluated; private */

/* A part of the range with relations of its own. */
typedef struct mpl_template_cell {
    mpl_box box;    /* owned */
    mpl_buffer *on; /* [n] the buffer whose offset it has by an in-place pair; itself: none */
    uint32_t n_relations;
    mpl_buffer *below, *above; /* offset(above) >= offset(below) + bytes(below) */
    uint64_t *offset; /* [n] a constant plan: offsets of buffers, families' starts; NULL: none */
    uint64_t *arena;  /* [pools] a constant plan: bytes reserved whatever the shape; NULL: none */
    mpl_regret regret;
    mpl_template_code *code; /* made by mpl_template_ready */
} mpl_template_cell;

typedef struct mpl_template {
    const mpl_sym_problem *problem;
    mpl_sym_problem *owned; /* the same, with its expressions; NULL: it is another's */
    uint32_t n_cells;
    mpl_template_cell *cell; /* their boxes are disjoint and hold all points of the range */
    /* Sets of buffers of pool 0 that conflict pairwise: no plan of a shape is below the sum of
     * their sizes there. load[load_begin[i] .. load_begin[i + 1]) ascending. */
    uint32_t n_loads;
    uint32_t *load_begin; /* [n_loads + 1] */
    mpl_buffer *load;
} mpl_template;

/* Cells without relations, each of the whole range; no loads. Borrows the problem. */
mpl_status mpl_template_new(mpl_ctx *ctx, const mpl_sym_problem *problem, uint32_t n_cells,
                            mpl_template **out);
void mpl_template_free(mpl_ctx *ctx, mpl_template *tmpl);

/* Prepares the cells for mpl_template_offsets. MPL_EINPUT: ids out of range, relations that run in
 * a circle, buffers of a family that cannot have the offset they are given. */
mpl_status mpl_template_ready(mpl_ctx *ctx, mpl_template *tmpl);
mpl_status mpl_template_ready_cell(mpl_ctx *ctx, mpl_template *tmpl, uint32_t k); /* one of them */

/* The cell of a shape, value[symbols]. MPL_EINPUT names the symbol or relation: no such shape. */
mpl_status mpl_template_find(mpl_ctx *ctx, const mpl_template *tmpl, const int64_t *value,
                             uint32_t *cell);

/* Offsets at the shape value[symbols]: offset[n] from the base of each buffer's pool, bytes[n] (may
 * be NULL) its size, pool_bytes[pools] (may be NULL) where each pool ends, of a constant plan
 * what is reserved [byte]. Allocates
 * nothing; a template is evaluated by one thread at a time. MPL_EINPUT: no such shape, or a sum
 * exceeds 2^62. O(buffers + relations + terms of different sizes). */
mpl_status mpl_template_offsets(mpl_ctx *ctx, const mpl_template *tmpl, const int64_t *value,
                                uint64_t *offset, uint64_t *bytes, uint64_t *pool_bytes);

/* ---- for what makes templates, and code from them ---- */

/* The order in which mpl_template_offsets places: bodies (families and what is in place on them),
 * each after all below it. Values are those of value_of[] expressions. */
struct mpl_template_code {
    uint32_t n_values;
    mpl_expr *value_of; /* [n_values] different expressions of bytes and distances */
    int64_t *value;     /* [n_values] scratch */
    uint32_t *bytes;    /* [n] into value */
    uint32_t n_bodies;
    uint32_t *body_begin; /* [n_bodies + 1] into member */
    mpl_buffer *member;   /* [n] each after the buffer it is placed on */
    mpl_buffer *parent;   /* [n] the buffer it is placed on; itself: none */
    uint32_t *distance;   /* [n] into value: offset minus that of the parent */
    uint32_t *align;      /* [n_bodies] [byte] */
    uint32_t *rule_begin; /* [n_bodies + 1] into lower and upper: relations into the body */
    mpl_buffer *lower, *upper;
};
