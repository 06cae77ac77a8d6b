/* residency_task.c -- what searches and rules share: sizes, uses by step, what stays. See
 * residency_priv.h. */
#include "planners/residency/residency_priv.h"

mpl_status mpl_residency_init(mpl_run *run, const mpl_residency_problem *p, mpl_residency *r)
{
    mpl_ctx *ctx = run->ctx;

    *r = (mpl_residency){.run = run, .p = p, .n_uses = p->begin[p->n]};
    MPL_PASS(mpl_residency_check(ctx, p));
    r->capacity = mpl_align_up(p->capacity, p->align);
    MPL_PASS(mpl_new(ctx, r->size, p->n));
    MPL_PASS(mpl_new_each(ctx, r->n_uses, r->owner, r->use, r->stay));
    MPL_PASS(mpl_new(ctx, r->state, (size_t)r->n_uses * 3));
    for (mpl_buffer b = 0; b < p->n; b++) {
        r->size[b] = mpl_align_up(p->bytes[b], p->align);
        for (uint32_t i = p->begin[b]; i < p->begin[b + 1]; i++)
            r->owner[i] = b;
    }
    return mpl_lists_new(ctx, p->n_steps, r->n_uses, p->at, NULL, &r->step_begin, &r->step_use);
}

void mpl_residency_fini(mpl_residency *r)
{
    mpl_free_each(r->run->ctx, r->size, r->owner, r->use, r->stay, r->state, r->step_begin,
                  r->step_use, r->room, r->slow_ns);
}
