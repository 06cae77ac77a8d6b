/* expr_bounds_priv.h -- intervals of parts of expressions, shared by expr_bounds.c and
 * expr_prove.c.
 */
#pragma once

#include "graphs/symbols/expr_priv.h"

typedef struct mpl_span {
    mpl_wide low, high;
} mpl_span;

typedef struct mpl_room { /* storage of a box */
    int64_t low[MPL_MAX_SYMBOLS], high[MPL_MAX_SYMBOLS];
} mpl_room;

/* The box, or the whole range where it is NULL, in `room`. */
mpl_box mpl_box_copy(const mpl_exprs *exprs, const mpl_box *from, mpl_room *room);
/* Sound intervals; false: 128 bits do not hold them. mpl_poly_plain_span adds those of the terms,
 * mpl_poly_span first fixes each symbol in which the whole rises or falls. */
bool mpl_span_of_atom(const mpl_exprs *exprs, uint32_t id, const mpl_box *box, mpl_span *out);
bool mpl_span_of_term(const mpl_exprs *exprs, const mpl_term *term, const mpl_box *box,
                      mpl_span *out);
bool mpl_poly_plain_span(const mpl_exprs *exprs, const mpl_poly *poly, const mpl_box *box,
                         mpl_span *out);
bool mpl_poly_span(const mpl_exprs *exprs, const mpl_poly *poly, const mpl_box *box, mpl_span *out);
