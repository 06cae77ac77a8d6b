/* shape_draw.c -- random shapes of a range. See template_plan.h. */
#include "planners/template/template_plan.h"

mpl_status mpl_shape_draw(mpl_ctx *ctx, const mpl_exprs *exprs, const mpl_box *box, bool log,
                          mpl_rng *rng, int64_t *value)
{
    for (uint32_t draw = 0; draw < 10000; draw++) {
        for (uint32_t i = 0; i < mpl_exprs_n_symbols(exprs); i++) {
            const mpl_symbol *symbol = mpl_exprs_symbol(exprs, i);
            int64_t low = box != NULL ? box->low[i] : 0,
                    high =
                        box != NULL ? box->high[i] : (symbol->last - symbol->first) / symbol->step;
            uint64_t room = (uint64_t)(high - low) + 1;

            /* a power of two, then uniform below it */
            if (log) {
                uint32_t bits = 64 - (uint32_t)__builtin_clzll(room);
                uint64_t most = UINT64_C(1) << mpl_rng_below(rng, bits + 1);

                room = mpl_min_u64(room, most);
            }
            value[i] = symbol->first + (low + (int64_t)mpl_rng_below(rng, room)) * symbol->step;
        }
        if (mpl_point_allowed(exprs, value))
            return MPL_OK;
    }
    return MPL_REFUSE(ctx, "no shape of the range satisfies the relations between its symbols");
}
