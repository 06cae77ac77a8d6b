/* form_priv.h -- how the numbers of an operand are meant: attributes `forms` and `factors`.
 *
 * forms has four integers for each input, then for output 0: order, axis, zero, n. factors has n
 * reals for each, in the same sequence. n = 0: the numbers are meant as they are. Otherwise an
 * integer q means (q - zero) * factor; if n > 1, each index along `axis` has a factor of its own.
 * order says how the dims lie beside those of the operator: */
#pragma once

#include "graphs/ops/ops_priv.h"

typedef enum mpl_form_order {
    MPL_FORM_PLAIN,         /* alike */
    MPL_FORM_CHANNELS_LAST, /* [n,h,w,c] for [n,c,h,w] */
    MPL_FORM_FILTERS_LAST,  /* [i,h,w,o] for [o,i,h,w] */
    MPL_FORM_TURNED,        /* the last two dims exchanged */
    MPL_N_FORM_ORDERS
} mpl_form_order;

typedef struct mpl_form {
    mpl_form_order order;
    uint32_t axis, n;
    int64_t zero;
    const double *factor; /* [n] */
} mpl_form;

/* Reads the forms of n operands into form[n]. MPL_EINPUT: malformed. The caller checks each beside
 * its operand. */
mpl_status mpl_forms_read(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, uint32_t n, mpl_form *form);
/* MPL_EINPUT: the operand has not the dims or the type that its form wants. */
mpl_status mpl_form_check(mpl_ctx *ctx, const mpl_form *form, uint32_t operand, mpl_type type,
                          const mpl_shape *shape);
/* Dims as the operator has them: dim i is stored dim perm[i]. */
void mpl_form_perm(const mpl_form *form, uint32_t rank, uint32_t perm[MPL_MAX_RANK]);

/* What stored element i means. */
static inline double mpl_form_get(const mpl_form *form, mpl_type type, const void *data, int64_t i,
                                  uint32_t channel)
{
    return form->n == 0 ? mpl_get(type, data, i)
                        : (double)(mpl_get_int(type, data, i) - form->zero) *
                              form->factor[form->n == 1 ? 0 : channel];
}
/* Stores x as element i: rounded to the nearest number, ties away from zero, and to the type's
 * range. */
void mpl_form_put(const mpl_form *form, mpl_type type, void *data, int64_t i, double x);

/* The range of attribute `clamp`; without it all numbers. */
void mpl_form_clamp(const mpl_graph *g, mpl_op op, double range[2]);
