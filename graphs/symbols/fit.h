/* fit.h -- finds the expression of a size from its values at several points.
 *
 * A size is, in this order: one that is known to have these values; a polynomial in the counts of
 * the symbols, of degree 3 at most; made of a few hints (sizes of the operands, say): floor((a * h
 * + c) / s), min or max of a hint and a constant, min, max, sum or product of two hints. What is
 * found has the values at all points, and there are more points than a polynomial has coefficients,
 * so that one that fits by chance would have to miss none of the points that do not decide it. */
#pragma once

#include "graphs/symbols/expr.h"

typedef struct mpl_fit mpl_fit;

/* Points that a fit over n symbols needs: two more than a polynomial has coefficients. */
uint32_t mpl_fit_points(uint32_t n_symbols);
/* value[n_points * symbols], borrowed, as is exprs. */
mpl_status mpl_fit_new(mpl_ctx *ctx, mpl_exprs *exprs, uint32_t n_points, const int64_t *value,
                       mpl_fit **out);
void mpl_fit_free(mpl_ctx *ctx, mpl_fit *fit);
/* Adds a known size. MPL_EINPUT: it overflows at a point. */
mpl_status mpl_fit_learn(mpl_ctx *ctx, mpl_fit *fit, mpl_expr e);
/* size[n_points]. *found = false: no expression. What is found is known from then on. O(points *
 * coefficients^2 + hints * divisors * points). */
mpl_status mpl_fit_find(mpl_ctx *ctx, mpl_fit *fit, const int64_t *size, uint32_t n_hints,
                        const mpl_expr *hint, bool *found, mpl_expr *out);
