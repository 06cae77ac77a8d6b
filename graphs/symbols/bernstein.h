/* bernstein.h -- control values of expressions on a box: what proves that no point of the box
 * exceeds a bound, for any sums of expressions at once.
 *
 * A polynomial does not leave the interval of its Bernstein coefficients on a box (Lorentz,
 * Bernstein Polynomials, 1953; Garloff, 1985), and these are linear in the polynomial. So where at
 * each control point the largest sum over many paths, of upper control values, is at most a number
 * times a sum of lower ones, that holds at every point of the box, for every path. */
#pragma once

#include "graphs/symbols/expr.h"

typedef struct mpl_controls mpl_controls;

/* For the expressions expr[n], borrowed with exprs. MPL_ELIMIT: too many symbols or too high a
 * degree. */
mpl_status mpl_controls_new(mpl_ctx *ctx, const mpl_exprs *exprs, uint32_t n, const mpl_expr *expr,
                            mpl_controls **out);
void mpl_controls_free(mpl_ctx *ctx, mpl_controls *controls);
uint32_t mpl_controls_points(const mpl_controls *controls); /* of every box, at least 1 */
int64_t mpl_controls_scale(const mpl_controls *controls);   /* control values are times this */
bool mpl_controls_use(const mpl_controls *controls, uint32_t symbol); /* whether values depend on it
                                                                       */

/* Control values of expression i at point j: low[i * points + j] and high[..]. Whenever a sum of
 * expressions, each times a factor above 0 with its high values or below 0 with its low ones, is at
 * most 0 at each control point, so it is at each point of the box. Of a box of one point (in the
 * symbols used): the values. False: some exceed 2^59. O(points * terms). */
bool mpl_controls_of(mpl_controls *controls, const mpl_box *box, int64_t *low, int64_t *high);

/* The largest number that divides e by its form, at every point; 0: e is 0. */
uint64_t mpl_expr_divisor(const mpl_exprs *exprs, mpl_expr e);
/* Takes from a box what the relations exclude, from the ends inwards. False: nothing is left. */
bool mpl_box_narrow(const mpl_exprs *exprs, mpl_box *box);
