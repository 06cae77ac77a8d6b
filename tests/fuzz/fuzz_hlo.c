/* fuzz_hlo.c -- HLO text: any bytes are refused with one line that names the file, or give a whole
 * graph; of a small one the text format makes the same graph again. */
#include "graphs/source.h"
#include "tests/fuzz/fuzz.h"

enum { SMALL = 200 };

static void write_and_read(mpl_ctx *ctx, const mpl_graph *g)
{
    mpl_graph *again = NULL;
    char *text = NULL;
    size_t n;

    must(mpl_text_write_memory(ctx, g, &text, &n) == MPL_OK, ctx);
    must(mpl_text_read_memory(ctx, "again", text, n, &again) == MPL_OK, ctx);
    must(mpl_graph_hash(g) == mpl_graph_hash(again), ctx);
    mpl_graph_free(ctx, again);
    mpl_free(ctx, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mpl_ctx ctx = mpl_ctx_default();
    mpl_graph *g = NULL;

    if (mpl_hlo_read_memory(&ctx, "fuzz", (const char *)data, size, &g) != MPL_OK) {
        must(ctx.n_live == 0 && strncmp(ctx.message, "fuzz:", 5) == 0 &&
                 strchr(ctx.message, '\n') == NULL,
             &ctx);
        return 0;
    }
    must(mpl_graph_ok(g), &ctx);
    if (g->n_ops <= SMALL)
        write_and_read(&ctx, g);
    mpl_graph_free(&ctx, g);
    must(ctx.n_live == 0, &ctx);
    return 0;
}
