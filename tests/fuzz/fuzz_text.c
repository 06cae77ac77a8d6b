/* fuzz_text.c -- .graph text: any bytes are refused with one line, or survive reading, writing and
 * reading again. */
#include "graphs/source.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds, const mpl_ctx *ctx)
{
    if (holds)
        return;
    fprintf(stderr, "%s\n", ctx->message);
    abort();
}

/* The entries of a text, each read alone. */
static void read_entries(const uint8_t *data, size_t size)
{
    mpl_ctx ctx = mpl_ctx_default();
    mpl_text_entries entries;

    if (mpl_text_entries_read_memory(&ctx, "fuzz", (const char *)data, size, &entries) != MPL_OK) {
        must(ctx.n_live == 0 && strncmp(ctx.message, "fuzz:", 5) == 0, &ctx);
        return;
    }
    must((entries.n_entries > 0) == mpl_text_has_entries((const char *)data, size), &ctx);
    for (uint32_t e = 0; e < entries.n_entries && e < 4; e++) {
        char *text = malloc(size);
        mpl_graph *g = NULL;

        memcpy(text, data, size);
        mpl_text_keep_entry(text, size, entries.entry[e]);
        if (mpl_text_read_memory(&ctx, "fuzz", text, size, &g) == MPL_OK)
            mpl_graph_free(&ctx, g);
        free(text);
    }
    mpl_text_entries_fini(&ctx, &entries);
    must(ctx.n_live == 0, &ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mpl_ctx ctx;
    mpl_graph *first = NULL, *second = NULL;
    char *text = NULL, *again = NULL;
    size_t n, n_again;

    read_entries(data, size);
    ctx = mpl_ctx_default();
    if (mpl_text_read_memory(&ctx, "fuzz", (const char *)data, size, &first) != MPL_OK) {
        must(ctx.n_live == 0 && strncmp(ctx.message, "fuzz:", 5) == 0 &&
                 strchr(ctx.message, '\n') == NULL,
             &ctx);
        return 0;
    }
    must(mpl_graph_ok(first), &ctx);
    must(mpl_text_write_memory(&ctx, first, &text, &n) == MPL_OK, &ctx);
    must(mpl_text_read_memory(&ctx, "again", text, n, &second) == MPL_OK, &ctx);
    must(mpl_graph_hash(first) == mpl_graph_hash(second), &ctx);
    must(mpl_text_write_memory(&ctx, second, &again, &n_again) == MPL_OK, &ctx);
    must(n == n_again && memcmp(text, again, n) == 0, &ctx);
    mpl_graph_free(&ctx, first);
    mpl_graph_free(&ctx, second);
    mpl_free_each(&ctx, text, again);
    must(ctx.n_live == 0, &ctx);
    return 0;
}
