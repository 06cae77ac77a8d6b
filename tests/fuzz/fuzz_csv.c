/* fuzz_csv.c -- buffer lists: any bytes are refused with one line, or give a valid problem that can
 * be bounded and verified safely. */
#include "graphs/io/lists/lists.h"
#include "graphs/problem/bounds/bounds.h"
#include "tests/fuzz/fuzz.h"

#include "planners/verify/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mpl_ctx ctx;
    mpl_problem *p = NULL;
    mpl_plan *plan = NULL;
    uint64_t *offset = NULL, peak = 0, naive = 0;

    mpl_ctx_init(&ctx);
    if (mpl_csv_read(&ctx, fuzz_file(data, size), &p, &offset) != MPL_OK) {
        must(ctx.n_live == 0 && strncmp(ctx.message, "/proc/self/fd/", 14) == 0 &&
                 strchr(ctx.message, '\n') == NULL,
             &ctx);
        return 0;
    }
    must(mpl_problem_check(&ctx, p) == MPL_OK, &ctx);
    must(mpl_plan_new(&ctx, p, &plan) == MPL_OK, &ctx);
    plan->claim = MPL_FEASIBLE;
    if (offset != NULL)
        memcpy(plan->offset, offset, p->n * sizeof *offset);
    if (mpl_peak_live(&ctx, p, 0, &peak, NULL, NULL) == MPL_OK &&
        mpl_naive_bytes(&ctx, p, 0, &naive) == MPL_OK)
        must(peak <= naive, &ctx);
    if (mpl_verify(&ctx, p, plan) == MPL_OK)
        must(plan->peak_bytes >= peak, &ctx);
    mpl_plan_free(&ctx, plan);
    mpl_problem_free(&ctx, p);
    mpl_free(&ctx, offset);
    must(ctx.n_live == 0, &ctx);
    return 0;
}
