/* fuzz_proof.c -- refutations: any text is refused with one line, or is a refutation that holds.
 * The first byte selects a problem and a claim; the rest is the text. */
#include "tests/fuzz/fuzz.h"

#include "graphs/problem/before.h"
#include "planners/verify/certify.h"

/* Problems with known optima: two conflicting buffers; three where order matters; fixed and aligned
 * ones; a hard one with an optimum above the live bytes; two with pairs, where none or one of the
 * two can be used. */
static const struct known {
    uint32_t n, optimum;
    struct {
        uint32_t birth, death, size, align;
        int32_t fixed; /* -1: free */
    } item[8];
    uint32_t pair[2][2], n_pairs; /* in, out */
} known[] = {
    {2, 5, {{0, 2, 2, 1, -1}, {0, 2, 3, 1, -1}}, {{0}}, 0},
    {3, 5, {{0, 1, 2, 1, -1}, {0, 2, 3, 1, -1}, {1, 2, 2, 1, 3}}, {{0}}, 0},
    {3, 5, {{0, 1, 2, 1, -1}, {0, 1, 2, 2, -1}, {0, 1, 1, 1, 2}}, {{0}}, 0},
    {8,
     9,
     {{3, 5, 1, 1, -1},
      {2, 4, 3, 1, -1},
      {4, 7, 4, 1, -1},
      {5, 7, 4, 1, -1},
      {1, 2, 4, 1, -1},
      {3, 4, 1, 1, -1},
      {2, 5, 2, 1, -1},
      {1, 3, 3, 1, -1}},
     {{0}},
     0},
    {2, 5, {{0, 2, 3, 1, 0}, {1, 3, 2, 1, 3}}, {{0, 1}}, 1},
    {3, 5, {{0, 2, 3, 1, -1}, {1, 3, 2, 1, -1}, {1, 3, 2, 1, -1}}, {{0, 1}, {0, 2}}, 2},
};

enum { KNOWN = sizeof known / sizeof *known };

static mpl_problem *make(mpl_ctx *ctx, const struct known *from)
{
    mpl_problem *p = NULL;

    must(mpl_problem_new(ctx, "known", from->n, &p) == MPL_OK, ctx);
    must(mpl_new(ctx, p->fixed, from->n) == MPL_OK, ctx);
    p->n_steps = 8;
    for (mpl_buffer b = 0; b < p->n; b++) {
        p->birth[b] = from->item[b].birth;
        p->death[b] = from->item[b].death;
        p->bytes[b] = from->item[b].size;
        p->align[b] = from->item[b].align;
        p->fixed[b] = from->item[b].fixed < 0 ? MPL_UNFIXED : (uint64_t)from->item[b].fixed;
    }
    must(mpl_new(ctx, p->in_place_in, 2) == MPL_OK && mpl_new(ctx, p->in_place_out, 2) == MPL_OK &&
             mpl_new(ctx, p->in_place_step, 2) == MPL_OK,
         ctx);
    p->n_in_place = from->n_pairs;
    for (uint32_t k = 0; k < from->n_pairs; k++) {
        p->in_place_in[k] = from->pair[k][0];
        p->in_place_out[k] = from->pair[k][1];
        p->in_place_step[k] = p->birth[from->pair[k][1]];
    }
    return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mpl_ctx ctx = mpl_ctx_default();
    const struct known *from = &known[size > 0 ? data[0] % KNOWN : 0];
    uint64_t more = size > 0 ? data[0] / KNOWN % 4 : 0; /* bytes above the largest true claim */
    mpl_plan *plan = NULL;
    mpl_certified proved;
    mpl_problem *p = make(&ctx, from);

    /* the same as a partial order */
    if (size > 0 && data[0] / KNOWN / 4 % 2 == 1 && from->n_pairs == 0)
        must(mpl_problem_as_parallel(&ctx, p) == MPL_OK, &ctx);
    must(mpl_plan_new(&ctx, p, &plan) == MPL_OK, &ctx);
    plan->claim = MPL_INFEASIBLE;
    plan->refutation.within = p->pool_capacity[0] = from->optimum - 1 + more;
    must(mpl_new(&ctx, plan->refutation.steps, size > 0 ? size : 1) == MPL_OK, &ctx);
    for (size_t i = 1; i < size; i++)
        plan->refutation.steps[i - 1] = (char)(data[i] == 0 ? ' ' : data[i]);
    if (mpl_certify(&ctx, p, plan, &proved) == MPL_OK)
        must(more == 0 && proved.bound == from->optimum, &ctx);
    else
        must(strncmp(ctx.message, "the refutation is wrong at record ", 34) == 0 &&
                 strchr(ctx.message, '\n') == NULL,
             &ctx);
    mpl_plan_free(&ctx, plan);
    mpl_problem_free(&ctx, p);
    must(ctx.n_live == 0, &ctx);
    return 0;
}
