/* expr.h -- sizes as expressions in symbols: integer polynomials with floor division and maxima.
 *
 * A symbol takes the values first, first + step, .., last, all of at least 1. An expression is kept
 * in one normal form: a sum of integer coefficients times products of atoms, where an atom is the
 * count of a symbol (value = first + count * step, count >= 0), floor(e / c), or max(e, 0). Parts
 * that c divides are taken out of floor(e / c), so over image = 128..512:32 the expression
 * floor((image + 1) / 2) is a polynomial. Expressions are equal as ids if and only if their normal
 * forms are. All arithmetic is exact: what leaves 64 bits is refused (MPL_EINPUT), not wrapped. */
#pragma once

#include "graphs/core/base.h"

typedef uint32_t mpl_expr;     /* index into one mpl_exprs; 0 is the constant 0 */
enum { MPL_MAX_SYMBOLS = 64 }; /* of one mpl_exprs */
typedef struct mpl_exprs mpl_exprs;

typedef struct mpl_symbol {
    char *name;
    int64_t first, last, step; /* 1 <= first <= last, a multiple of step apart */
} mpl_symbol;

/* Points given by the counts of each symbol: low[i] <= count <= high[i], low[i] >= 0. */
typedef struct mpl_box {
    uint32_t n; /* symbols */
    int64_t *low, *high;
} mpl_box;

mpl_status mpl_exprs_new(mpl_ctx *ctx, mpl_exprs **out);
void mpl_exprs_free(mpl_ctx *ctx, mpl_exprs *exprs); /* NULL is allowed */

/* ---- symbols, relations, boxes ---- */

/* Adds a symbol; *out is its value. MPL_EINPUT: a name that exists or is none ([A-Za-z_] first,
 * then [A-Za-z0-9_.]), a range that is empty or not above 0, too many symbols. */
mpl_status mpl_expr_symbol(mpl_ctx *ctx, mpl_exprs *exprs, const char *name, int64_t first,
                           int64_t last, int64_t step, mpl_expr *out);
uint32_t mpl_exprs_n_symbols(const mpl_exprs *exprs);
const mpl_symbol *mpl_exprs_symbol(const mpl_exprs *exprs, uint32_t i); /* i: order of addition */
/* The value of symbol i as an expression. */
mpl_status mpl_expr_of_symbol(mpl_ctx *ctx, mpl_exprs *exprs, uint32_t i, mpl_expr *out);
/* Index of the symbol with this name; MPL_NONE. */
uint32_t mpl_exprs_find(const mpl_exprs *exprs, const char *name);
/* Adds the relation e <= 0, which every point keeps from then on ("past + seq - 4096"). Before any
 * minimum is built: whether min(a, b) is a depends on the relations. */
mpl_status mpl_exprs_relation(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr at_most_zero);
uint32_t mpl_exprs_n_relations(const mpl_exprs *exprs);
mpl_expr mpl_exprs_relation_at(const mpl_exprs *exprs, uint32_t i);
/* The whole range as a box; mpl_box_free releases it. */
mpl_status mpl_box_new(mpl_ctx *ctx, const mpl_exprs *exprs, mpl_box *out);
void mpl_box_free(mpl_ctx *ctx, mpl_box *box);
/* Whether value[symbols] is in range, on the steps, and keeps all relations. */
bool mpl_point_allowed(const mpl_exprs *exprs, const int64_t *value);

/* ---- building: MPL_EINPUT if a coefficient leaves 64 bits or a product has too many factors ----
 */

mpl_status mpl_expr_const(mpl_ctx *ctx, mpl_exprs *exprs, int64_t value, mpl_expr *out);
mpl_status mpl_expr_add(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr a, mpl_expr b, mpl_expr *out);
mpl_status mpl_expr_sub(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr a, mpl_expr b, mpl_expr *out);
mpl_status mpl_expr_mul(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr a, mpl_expr b, mpl_expr *out);
mpl_status mpl_expr_min(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr a, mpl_expr b, mpl_expr *out);
mpl_status mpl_expr_max(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr a, mpl_expr b, mpl_expr *out);
/* Quotients towards minus and plus infinity; the least multiple of `align` not below e. */
mpl_status mpl_expr_floor_div(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr e, int64_t positive,
                              mpl_expr *out);
mpl_status mpl_expr_ceil_div(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr e, int64_t positive,
                             mpl_expr *out);
mpl_status mpl_expr_align_up(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr e, int64_t align,
                             mpl_expr *out);
/* e divided by a non-zero constant or polynomial where nothing remains; false: something does. */
mpl_status mpl_expr_exact_div(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr e, mpl_expr by, bool *exact,
                              mpl_expr *out);

/* ---- asking: no allocation ---- */

bool mpl_expr_is_const(const mpl_exprs *exprs, mpl_expr e, int64_t *value);
/* The value of e where symbol i is value[i], also outside the range but on its steps. False:
 * overflow, or off the steps. Cost: terms of e and of the atoms in it. */
bool mpl_expr_eval(const mpl_exprs *exprs, mpl_expr e, const int64_t *value, int64_t *out);
/* An interval that e does not leave on the box (NULL: the whole range), relations aside; exact
 * where e rises or falls in each symbol. False: 64 bits do not hold it. */
bool mpl_expr_bounds(const mpl_exprs *exprs, mpl_expr e, const mpl_box *box, int64_t *low,
                     int64_t *high);
/* True: a <= b is proved at all points of the box (NULL: the whole range) that keep the relations.
 * False: no proof was found. Cost: bounded, 400 boxes. */
bool mpl_expr_at_most(const mpl_exprs *exprs, mpl_expr a, mpl_expr b, const mpl_box *box);

/* ---- text ---- */

/* Integers, names, + - * ( ), floor(e/c), ceil(e/c), min(a,b), max(a,b). Caller frees *text. */
mpl_status mpl_expr_write(mpl_ctx *ctx, const mpl_exprs *exprs, mpl_expr e, char **text);
/* Reads all of `text`; names are those of symbols. Written expressions are read as the same id. */
mpl_status mpl_expr_read(mpl_ctx *ctx, mpl_exprs *exprs, const char *text, mpl_expr *out);
