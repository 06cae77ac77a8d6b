/* form.c -- see form_priv.h. */
#include "graphs/ops/lite/form_priv.h"

#include <math.h>

mpl_status mpl_forms_read(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, uint32_t n, mpl_form *form)
{
    mpl_attr factors = {.n = 0};
    uint32_t n_ints;
    const int64_t *at = mpl_attr_ints(g, op, MPL_ATTR_forms, &n_ints);
    uint64_t used = 0;

    mpl_attr_get(g, op, MPL_ATTR_factors, &factors);
    if (n_ints != 4 * (uint64_t)n)
        return MPL_REFUSE(ctx, "forms has %u numbers; %u operands have four each", n_ints, n);
    for (uint32_t i = 0; i < n; i++, at += 4) {
        if (at[0] < 0 || at[0] >= MPL_N_FORM_ORDERS || at[1] < 0 || at[1] >= MPL_MAX_RANK ||
            at[3] < 0 || (uint64_t)at[3] > factors.n - used || at[2] < INT32_MIN ||
            at[2] > INT32_MAX)
            return MPL_REFUSE(ctx, "form %u: order, axis, zero and number of factors are wrong", i);
        form[i] = (mpl_form){(mpl_form_order)at[0], (uint32_t)at[1], (uint32_t)at[3], at[2],
                             factors.n > 0 ? factors.floats + used : NULL};
        used += form[i].n;
    }
    if (used != factors.n)
        return MPL_REFUSE(ctx, "there are %u factors; the forms have %" PRIu64, factors.n, used);
    for (uint32_t i = 0; i < factors.n; i++)
        if (!(factors.floats[i] > 0) || !isfinite(factors.floats[i]))
            return MPL_REFUSE(ctx, "factor %u is %g", i, factors.floats[i]);
    return MPL_OK;
}

mpl_status mpl_form_check(mpl_ctx *ctx, const mpl_form *form, uint32_t operand, mpl_type type,
                          const mpl_shape *shape)
{
    uint32_t rank = form->order == MPL_FORM_TURNED ? 2 : form->order == MPL_FORM_PLAIN ? 0 : 4;
    uint64_t count;
    char text[200];

    if (!mpl_shape_count(shape, &count) || count > INT64_MAX / 64)
        return MPL_REFUSE(ctx, "input %u has more elements than can be rewritten", operand);
    if (shape->rank < rank || (rank == 4 && shape->rank > 4) ||
        (form->n > 1 && (form->axis >= shape->rank || shape->dim[form->axis] != form->n)))
        return MPL_REFUSE(ctx, "input %u has dims %s, which its form does not fit", operand,
                          mpl_shape_text(shape, text));
    if (form->n > 0 ? !mpl_type_in(type, MPL_SET_INT)
                    : form->order != MPL_FORM_PLAIN && type != MPL_TYPE_f32)
        return MPL_REFUSE(ctx, "input %u has type %s, which its form does not fit", operand,
                          mpl_type_name(type));
    return MPL_OK;
}

void mpl_form_perm(const mpl_form *form, uint32_t rank, uint32_t perm[MPL_MAX_RANK])
{
    static const uint32_t last[][4] = {
        [MPL_FORM_CHANNELS_LAST] = {0, 3, 1, 2}, [MPL_FORM_FILTERS_LAST] = {3, 0, 1, 2}};

    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i;
    if (form->order == MPL_FORM_TURNED) {
        perm[rank - 2] = rank - 1;
        perm[rank - 1] = rank - 2;
    } else if (form->order != MPL_FORM_PLAIN) {
        memcpy(perm, last[form->order], sizeof last[form->order]);
    }
}

void mpl_form_put(const mpl_form *form, mpl_type type, void *data, int64_t i, double x)
{
    int bits = (int)(8 * mpl_type_bytes(type));
    bool is_signed = mpl_type_in(type, MPL_SET_SIGNED);
    double least = is_signed ? -ldexp(1, bits - 1) : 0, most = ldexp(1, bits - is_signed) - 1;

    if (form->n == 0) {
        mpl_put(type, data, i, x);
        return;
    }
    x = round(x / form->factor[0]) + (double)form->zero;
    mpl_put_int(type, data, i, mpl_to_int(x < least ? least : x > most ? most : x));
}

void mpl_form_clamp(const mpl_graph *g, mpl_op op, double range[2])
{
    mpl_attr clamp;

    range[0] = -INFINITY, range[1] = INFINITY;
    if (mpl_attr_get(g, op, MPL_ATTR_clamp, &clamp) && clamp.n == 2)
        memcpy(range, clamp.floats, 2 * sizeof *range);
}
