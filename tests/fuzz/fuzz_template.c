/* fuzz_template.c -- template files: any bytes are refused with one line, or give a template that
 * the checker judges; one that it accepts has a valid plan at the shapes tried, and is written. */
#include "tests/fuzz/fuzz.h"

#include "planners/template/template_plan.h"
#include "planners/verify/verify.h"

static void try_shape(mpl_ctx *ctx, const mpl_template *t, const int64_t *value)
{
    mpl_problem *p = NULL;
    mpl_plan *plan = NULL;

    if (mpl_sym_problem_at(ctx, t->problem, value, &p) != MPL_OK)
        return; /* a size is 0 or beyond 64 bits there */
    must(mpl_plan_new(ctx, p, &plan) == MPL_OK, ctx);
    if (mpl_template_offsets(ctx, t, value, plan->offset, NULL, NULL) == MPL_OK) {
        plan->claim = MPL_FEASIBLE;
        must(mpl_verify(ctx, p, plan) == MPL_OK, ctx);
    }
    mpl_plan_free(ctx, plan);
    mpl_problem_free(ctx, p);
}

static void try_template(mpl_ctx *ctx, const mpl_template *t)
{
    int64_t value[MPL_MAX_SYMBOLS];
    mpl_rng rng;

    if (mpl_verify_template(ctx, t, 200) != MPL_OK)
        return;
    mpl_rng_init(&rng, 1);
    for (int i = 0; i < 4; i++)
        if (mpl_shape_draw(ctx, t->problem->exprs, NULL, i % 2 == 0, &rng, value) == MPL_OK)
            try_shape(ctx, t, value);
    mpl_template_write(ctx, "/dev/null", t, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mpl_ctx ctx;
    mpl_template *t = NULL;
    char *fields = NULL;
    mpl_status st;

    mpl_ctx_init(&ctx);
    st = mpl_template_read(&ctx, fuzz_file(data, size), &t, &fields);
    if (st == MPL_OK)
        try_template(&ctx, t);
    else
        must(strncmp(ctx.message, "/proc/self/fd/", 14) == 0 || st == MPL_EMEM, &ctx);
    mpl_template_free(&ctx, t);
    mpl_free(&ctx, fields);
    must(ctx.n_live == 0, &ctx);
    return 0;
}
