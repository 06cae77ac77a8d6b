/* residency_task.c -- what searches and rules share: sizes, uses by step, what stays. See
 * residency_priv.h. */
#include "planners/residency/residency_priv.h"

mpl_status mpl_residency_init(mpl_run *run, const mpl_residency_problem *p,
                              mpl_residency *residency)
{
    mpl_ctx *ctx = run->ctx;

    *residency = (mpl_residency){.run = run, .p = p, .n_uses = p->begin[p->n]};
    MPL_PASS(mpl_residency_check(ctx, p));
    residency->capacity = mpl_align_up(p->capacity, p->align);
    MPL_PASS(mpl_new(ctx, residency->size, p->n));
    MPL_PASS(
        mpl_new_each(ctx, residency->n_uses, residency->owner, residency->use, residency->stay));
    MPL_PASS(mpl_new(ctx, residency->state, (size_t)residency->n_uses * 3));
    for (mpl_buffer b = 0; b < p->n; b++) {
        residency->size[b] = mpl_align_up(p->bytes[b], p->align);
        for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++)
            residency->owner[i] = b;
    }
    return mpl_lists_new(ctx, p->n_steps, residency->n_uses, p->at, NULL, &residency->step_begin,
                         &residency->step_use);
}

void mpl_residency_fini(mpl_residency *residency)
{
    mpl_free_each(residency->run->ctx, residency->size, residency->owner, residency->use,
                  residency->stay, residency->state, residency->step_begin, residency->step_use,
                  residency->room, residency->slow_ns);
}
