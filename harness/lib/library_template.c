/* library_template.c -- templates of the library. See memplan.h. */
#include "harness/lib/library_priv.h"

#include "planners/template/template_plan.h"

struct memplan_template {
    memplan_ctx *owner;
    mpl_template *t;
    uint64_t *pool; /* [pools] scratch */
};

memplan_status memplan_template_read(memplan_ctx *owner, const char *path, memplan_template **out)
{
    mpl_ctx *ctx = &owner->ctx;
    mpl_status st = MPL_OK;
    memplan_template *made = NULL;

    MPL_TRY(mpl_new(ctx, made, 1));
    made->owner = owner;
    MPL_TRY(mpl_template_read(ctx, path, &made->t, NULL));
    MPL_TRY(mpl_verify_template(ctx, made->t, 1000000));
    MPL_TRY(mpl_new(ctx, made->pool, made->t->problem->at->n_pools));
    *out = made, made = NULL;
out:
    memplan_template_free(made);
    return (memplan_status)st;
}

void memplan_template_free(memplan_template *template)
{
    if (template == NULL)
        return;
    mpl_template_free(&template->owner->ctx, template->t);
    mpl_free_each(&template->owner->ctx, template->pool, template);
}

uint32_t memplan_template_count(const memplan_template *template)
{
    return template->t->problem->at->n;
}

const char *memplan_template_name(const memplan_template *template, uint32_t buffer)
{
    const mpl_problem *p = template->t->problem->at;

    return buffer < p->n && p->buffer_name != NULL ? p->buffer_name[buffer] : NULL;
}

const char *memplan_template_dim(const memplan_template *template, uint32_t i)
{
    const mpl_exprs *exprs = template->t->problem->exprs;

    return i < mpl_exprs_n_symbols(exprs) ? mpl_exprs_symbol(exprs, i)->name : NULL;
}

uint64_t memplan_template_offsets(const memplan_template *template, const int64_t *dims,
                                  uint64_t *offsets)
{
    if (mpl_template_offsets(&template->owner->ctx, template->t, dims, offsets, NULL,
                             template->pool) != MPL_OK)
        return MEMPLAN_NO_OFFSET;
    return template->pool[0];
}
