/* fuzz_csv.c -- buffer lists and allocation traces: any bytes are refused with one line, or give a
 * valid problem that can be bounded and verified safely, and whose requests every online allocator
 * takes. */
#include "graphs/io/lists/lists.h"
#include "graphs/problem/bounds/bounds.h"
#include "tests/fuzz/fuzz.h"

#include "planners/online/requests.h"
#include "planners/verify/verify.h"

static void try_requests(mpl_ctx *ctx, const mpl_problem *p, uint64_t peak)
{
    mpl_request *request = NULL;
    uint32_t n = 0;

    must(mpl_requests_make(ctx, p, 0, &request, &n) == MPL_OK, ctx);
    for (const mpl_allocator *const *a = mpl_allocators; *a != NULL; a++) {
        mpl_online_facts f = {0};

        if (!(*a)->is_real &&
            mpl_requests_play(ctx, request, n, *a, UINT64_MAX, &f, NULL) == MPL_OK)
            must(f.live_peak_bytes == peak && f.reserved_bytes >= peak && f.live_bytes == 0, ctx);
    }
    mpl_free(ctx, request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mpl_ctx ctx = mpl_ctx_default();
    mpl_problem *p = NULL;
    mpl_plan *plan = NULL;
    uint64_t *offset = NULL, peak = 0, naive = 0;

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
        mpl_naive_bytes(&ctx, p, 0, &naive) == MPL_OK) {
        must(peak <= naive, &ctx);
        try_requests(&ctx, p, peak);
    }
    if (mpl_verify(&ctx, p, plan) == MPL_OK)
        must(plan->peak_bytes >= peak, &ctx);
    mpl_plan_free(&ctx, plan);
    mpl_problem_free(&ctx, p);
    mpl_free(&ctx, offset);
    must(ctx.n_live == 0, &ctx);
    return 0;
}
