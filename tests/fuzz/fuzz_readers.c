/* fuzz_readers.c -- readers of plans that fuzz_import seldom gets into, since a change in the head
 * of a file hides it from them: the first byte chooses the reader, which gets the rest, whether or
 * not that looks like its format. */
#include "planners/import/base/import_priv.h"
#include "tests/fuzz/fuzz_imported.h"

typedef mpl_status (*reader)(mpl_ctx *, const mpl_import_in *, mpl_import *);

static reader chosen(uint8_t key)
{
    switch (key) {
    case 'd':
        return mpl_import_read_dsa_solver;
    case 'o':
        return mpl_import_read_ort_profile;
    case 't':
        return mpl_import_read_tflm;
    case 'u':
        return mpl_import_read_tvm_usmp;
    default:
        return NULL;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    reader read = size > 1 ? chosen(data[0]) : NULL;
    mpl_ctx ctx = mpl_ctx_default();
    mpl_import got = {0};
    char *text;

    if (read == NULL)
        return 0;
    if ((text = malloc(size)) == NULL)
        abort();
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (read(&ctx, &(mpl_import_in){.path = "file", .text = text, .size = size - 1}, &got) ==
        MPL_OK)
        must_be_plan(&ctx, got.problem, &got);
    else
        must(strncmp(ctx.message, "file", 4) == 0 && strchr(ctx.message, '\n') == NULL, &ctx);
    mpl_import_fini(&ctx, &got);
    free(text);
    must(ctx.n_live == 0, &ctx);
    return 0;
}
