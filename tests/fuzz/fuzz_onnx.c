/* fuzz_onnx.c -- ONNX models: any bytes are refused with one line that names the file, or give a
 * complete graph whose problem is valid. A model that needs dims or contents of inputs is read
 * again with some, to reach the code that depends on them. */
#include "tests/fuzz/fuzz_graph.h"

#include "graphs/source.h"

static const mpl_tensor pair = {MPL_TYPE_i64, {1, {2}}, (int64_t[]){2, 3}};
static const mpl_tensor one = {MPL_TYPE_i64, {1, {1}}, (int64_t[]){2}};

static void use(mpl_ctx *ctx, const mpl_graph *g)
{
    must(mpl_graph_ok(g) && g->n_outputs > 0, ctx);
    for (uint32_t i = 0; i < g->n_inputs + g->n_bound; i++)
        must(mpl_graph_file_input(g, i) != MPL_NONE, ctx);
    fuzz_plan(ctx, g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const mpl_read_options some = {.n_dims = 1,
                                   .spare_dims = true,
                                   .dim_name = (const char *const[]){"N"},
                                   .dim_value = (const int64_t[]){4},
                                   .n_inputs = 3,
                                   .input_index = (const uint32_t[]){0, 1, 2},
                                   .input_tensor = (const mpl_tensor[]){pair, pair, one},
                                   .rnn = size % 2 == 0 ? MPL_RNN_WHILE : MPL_RNN_UNROLL};
    const mpl_read_options other = {.rnn = some.rnn};
    mpl_ctx ctx;
    mpl_graph *g = NULL;
    mpl_status st;

    size_t n = 0;

    ctx = mpl_ctx_default();
    must(mpl_onnx_note_find(data, size, "k", &n) == NULL || n <= size, &ctx);
    st = mpl_onnx_read_memory(&ctx, "model.onnx", data, size, &other, &g);
    if (st != MPL_OK && strstr(ctx.message, "give ") != NULL)
        st = mpl_onnx_read_memory(&ctx, "model.onnx", data, size, &some, &g);
    if (st != MPL_OK)
        must(g == NULL && strstr(ctx.message, "model.onnx") != NULL &&
                 strchr(ctx.message, '\n') == NULL,
             &ctx);
    else
        use(&ctx, g);
    mpl_graph_free(&ctx, g);
    must(ctx.n_live == 0, &ctx);
    return 0;
}
