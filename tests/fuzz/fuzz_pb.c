/* fuzz_pb.c -- tensor files, TensorProto and .npy: any bytes are refused with one line that names
 * the file, or give a tensor that survives writing as .npy and reading back. */
#include "tests/fuzz/fuzz.h"

#include "graphs/source.h"

static void write_and_read(mpl_ctx *ctx, const mpl_tensor *t)
{
    const char *path = fuzz_file(NULL, 0);
    mpl_tensor again = {.data = NULL};
    uint64_t count = 0;

    must(mpl_shape_count(&t->shape, &count), ctx);
    if (t->type == MPL_TYPE_bf16 || t->type > MPL_TYPE_u64) { /* .npy has no such types */
        must(mpl_tensor_write(ctx, path, t) == MPL_EINPUT, ctx);
        return;
    }
    must(mpl_tensor_write(ctx, path, t) == MPL_OK && mpl_tensor_read(ctx, path, &again) == MPL_OK,
         ctx);
    must(again.type == t->type && mpl_shape_equal(&again.shape, &t->shape) &&
             memcmp(again.data, t->data, count * mpl_type_bytes(t->type)) == 0,
         ctx);
    mpl_free(ctx, again.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mpl_ctx ctx = mpl_ctx_default();
    mpl_tensor t = {.data = NULL};

    if (mpl_tensor_read(&ctx, fuzz_file(data, size), &t) == MPL_OK)
        write_and_read(&ctx, &t);
    else
        must(t.data == NULL && strncmp(ctx.message, "/proc/self/fd/", 14) == 0 &&
                 strchr(ctx.message, '\n') == NULL,
             &ctx);
    mpl_free(&ctx, t.data);
    must(ctx.n_live == 0, &ctx);
    return 0;
}
