/* fuzz_import.c -- plans of other allocators: any bytes, in every format detected by content, are
 * refused with one line, or give a valid problem and a plan that can be verified safely. Offset
 * files are read beside a list of four buffers. */
#include "tests/fuzz/fuzz_imported.h"

static mpl_problem *make_beside(mpl_ctx *ctx)
{
    static const uint64_t bytes[] = {96, 64, 96, 32};
    mpl_problem *p = NULL;

    must(mpl_problem_new(ctx, "beside", 4, &p) == MPL_OK, ctx);
    for (uint32_t b = 0; b < 4; b++) {
        p->bytes[b] = bytes[b];
        p->birth[b] = b;
        p->death[b] = b + 2;
    }
    p->n_steps = 5;
    return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mpl_ctx ctx = mpl_ctx_default();
    mpl_import got = {0};
    mpl_problem *beside = make_beside(&ctx);

    if (mpl_plan_import(&ctx, fuzz_file(data, size), beside, &got) == MPL_OK)
        must_be_plan(&ctx, got.problem != NULL ? got.problem : beside, &got);
    else
        must(strncmp(ctx.message, "/proc/self/fd/", 14) == 0 && strchr(ctx.message, '\n') == NULL,
             &ctx);
    mpl_import_fini(&ctx, &got);
    mpl_problem_free(&ctx, beside);
    must(ctx.n_live == 0, &ctx);
    return 0;
}
