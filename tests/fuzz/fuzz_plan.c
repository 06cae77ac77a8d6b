/* fuzz_plan.c -- plan files: any bytes are refused with one line, or give a plan that is verified,
 * packed and written, and choices that fit its steps or are refused. If only the hash is wrong, it
 * is corrected, so that the fuzzer need not guess it. */
#include "tests/fuzz/fuzz.h"

#include "planners/plan/plan_choices.h"
#include "planners/verify/verify.h"

/* Copies the hash named in the error into the copied input; false if the error is another. */
static bool mend_hash(const mpl_ctx *ctx, char *text)
{
    const char *right = strstr(ctx->message, "the problem in it has ");
    char *wrong = strstr(text, "\"problem_hash\":\"");

    if (right == NULL || wrong == NULL || strlen(wrong) < 32)
        return false;
    memcpy(wrong + 16, right + 22, 16);
    return true;
}

static void try_plan(mpl_ctx *ctx, const mpl_plan_file *file)
{
    uint64_t packed = 0;

    must(mpl_problem_check(ctx, file->problem) == MPL_OK, ctx);
    if (mpl_verify(ctx, file->problem, file->plan) != MPL_OK)
        return;
    must(mpl_plan_packed(ctx, file->problem, file->plan, &packed) == MPL_OK, ctx);
    must(file->plan->block != NULL || packed == file->plan->peak_bytes, ctx);
    must(mpl_plan_write(ctx, "/dev/null", file->problem, file->plan, file->fields_json) == MPL_OK,
         ctx);
}

/* Reads the choices as those of a graph with an operation a step. */
static void try_choices(mpl_ctx *ctx, const mpl_plan_file *file)
{
    mpl_plan_choices choices = {0};
    uint32_t n = file->problem->n_steps < 1000 ? file->problem->n_steps : 1000;

    must(mpl_plan_read_choices(ctx, "file", file->fields_json, n, &choices) != MPL_EINPUT ||
             strncmp(ctx->message, "file: ", 6) == 0,
         ctx);
    for (uint32_t i = 0; choices.order != NULL && i < n; i++)
        must(choices.order[i] < n, ctx);
    mpl_plan_choices_fini(ctx, &choices);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mpl_ctx ctx;
    mpl_plan_file file = {0};
    char *text = calloc(size + 1, 1);
    mpl_status st;

    if (text == NULL)
        abort();
    memcpy(text, data, size);
    ctx = mpl_ctx_default();
    st = mpl_plan_read(&ctx, fuzz_file(data, size), &file);
    if (st != MPL_OK && mend_hash(&ctx, text))
        st = mpl_plan_read(&ctx, fuzz_file((const uint8_t *)text, size), &file);
    if (st == MPL_OK)
        try_plan(&ctx, &file), try_choices(&ctx, &file);
    else
        must(strncmp(ctx.message, "/proc/self/fd/", 14) == 0 || st == MPL_EMEM, &ctx);
    mpl_plan_file_fini(&ctx, &file);
    must(ctx.n_live == 0, &ctx);
    free(text);
    return 0;
}
