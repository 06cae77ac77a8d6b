/* fuzz_tflite.c -- TensorFlow Lite models: any bytes are refused with one line that names the file,
 * or give a complete graph whose problem is valid, and which a small run computes; the producer's
 * own plan likewise. */
#include "tests/fuzz/fuzz_graph.h"

#include "graphs/source.h"

enum { MOST_BYTES = 1 << 16, MOST_WORK = 1 << 20 };

/* Whether all values are small, and no operation multiplies large windows. */
static bool is_small(const mpl_graph *g)
{
    uint64_t bytes = 0, work;

    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_bytes[v] > MOST_BYTES || (bytes += g->value_bytes[v]) > 16 * MOST_BYTES)
            return false;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint32_t n;
        const int64_t *kernel = mpl_attr_ints(g, op, MPL_ATTR_kernel_shape, &n);

        work = 1;
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            if (g->op_in[i] != MPL_NONE &&
                !mpl_mul_bytes(work, g->value_bytes[g->op_in[i]] + 1, &work))
                return false;
        for (uint32_t i = 0; i < n; i++)
            if (kernel[i] > 64)
                return false;
        if (work > MOST_WORK)
            return false;
    }
    return true;
}

/* Computes each operation on zeros, or on what came before. */
static void compute(mpl_ctx *ctx, const mpl_graph *g)
{
    mpl_tensor *t = NULL, *operand = NULL;
    mpl_status st = MPL_OK;

    must(mpl_new(ctx, t, g->n_values) == MPL_OK, ctx);
    for (mpl_value v = 0; v < g->n_values; v++) {
        t[v] = (mpl_tensor){(mpl_type)g->value_type[v], g->value_shape[v], NULL};
        t[v].data = mpl_alloc(ctx, g->value_bytes[v], 1);
        must(t[v].data != NULL, ctx);
        if (g->value_data[v] != NULL && !g->value_splat[v])
            memcpy(t[v].data, g->value_data[v], g->value_bytes[v]);
    }
    for (mpl_op op = 0; op < g->n_ops && st == MPL_OK; op++) {
        uint32_t n_in = mpl_op_n_in(g, op), n_out = mpl_op_n_out(g, op);

        must(mpl_new(ctx, operand, (size_t)n_in + n_out) == MPL_OK, ctx);
        for (uint32_t i = 0; i < n_in + n_out; i++) {
            mpl_value v = i < n_in ? mpl_op_input(g, op, i) : mpl_op_output(g, op, i - n_in);

            if (v != MPL_NONE)
                operand[i] = t[v];
        }
        st = mpl_eval(ctx, &(mpl_op_call){g, op, n_in, n_out, operand, operand + n_in, NULL});
        must(st == MPL_OK || st == MPL_EINPUT || st == MPL_EUNAVAIL, ctx);
        mpl_free(ctx, operand);
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        mpl_free(ctx, t[v].data);
    mpl_free(ctx, t);
}

static void refused(const mpl_ctx *ctx)
{
    must(strstr(ctx->message, "model.tflite") != NULL && strchr(ctx->message, '\n') == NULL, ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mpl_ctx ctx = mpl_ctx_default();
    mpl_graph *g = NULL;
    mpl_tflite_plan own = {0};

    if (mpl_tflite_read_memory(&ctx, "model.tflite", data, size, &g) != MPL_OK) {
        must(g == NULL, &ctx);
        refused(&ctx);
    } else {
        must(mpl_graph_ok(g) && g->n_outputs > 0, &ctx);
        fuzz_plan(&ctx, g);
        if (is_small(g))
            compute(&ctx, g);
    }
    mpl_graph_free(&ctx, g);
    if (mpl_tflite_offsets(&ctx, "model.tflite", data, size, &own) != MPL_OK)
        refused(&ctx);
    mpl_tflite_plan_fini(&ctx, &own);
    must(ctx.n_live == 0, &ctx);
    return 0;
}
