/* host_ops.c -- operations without a library or kernel. Their operands are copied to the host, the
 * loops of graphs/ops run there, and the results are copied back, in the order of one stream and
 * without waiting. See device.h. */
#include "runtime/cuda/device.h"

#define STAGING_ALIGN 64

struct mpl_cuda_host_op {
    mpl_ctx ctx; /* of the loops, which run on a driver thread */
    mpl_op_call call;
    mpl_tensor *operand; /* [n_in + n_out] in the staging memory */
    uint64_t *bytes;     /* [n_in + n_out] 0: left out */
    void *staging;
    mpl_cuda_host_failure *failure;
};

static uint64_t place_operands(mpl_cuda_host_op *h, const mpl_graph *g)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < h->call.n_in + h->call.n_out; i++) {
        mpl_value v = i < h->call.n_in ? mpl_op_input(g, h->call.op, i)
                                       : mpl_op_output(g, h->call.op, i - h->call.n_in);

        if (v == MPL_NONE)
            continue;
        h->operand[i].type = (mpl_type)g->value_type[v];
        h->operand[i].shape = g->value_shape[v];
        h->operand[i].data = (char *)h->staging + total;
        h->bytes[i] = g->value_bytes[v];
        total += (h->bytes[i] + STAGING_ALIGN) / STAGING_ALIGN * STAGING_ALIGN;
    }
    return total;
}

mpl_status mpl_cuda_host_new(mpl_ctx *ctx, const mpl_cuda_api *api, mpl_cuda *c, const mpl_graph *g,
                             mpl_op op, mpl_cuda_host_failure *failure, mpl_cuda_host_op **out)
{
    mpl_status st = MPL_OK;
    mpl_cuda_host_op *h = NULL;
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op];

    MPL_TRY(mpl_new(ctx, h, 1));
    h->ctx = mpl_ctx_default();
    h->failure = failure;
    MPL_TRY(mpl_new_each(ctx, (size_t)n_in + n_out, h->operand, h->bytes));
    h->call = (mpl_op_call){.graph = g,
                            .op = op,
                            .n_in = n_in,
                            .n_out = n_out,
                            .in = h->operand,
                            .out = h->operand + n_in};
    if (api->host_new(c, &h->staging, (size_t)place_operands(h, g)) != 0)
        MPL_FAIL(ctx, MPL_EMEM, "out of memory: operands of '%s' on the host", g->op_name[op]);
    (void)place_operands(h, g);
    *out = h, h = NULL;
out:
    mpl_cuda_host_free(ctx, api, c, h);
    return st;
}

void mpl_cuda_host_free(mpl_ctx *ctx, const mpl_cuda_api *api, mpl_cuda *c, mpl_cuda_host_op *h)
{
    if (h == NULL)
        return;
    if (h->staging != NULL)
        api->host_free(c, h->staging);
    mpl_free_each(ctx, h->operand, h->bytes, h);
}

/* Runs on a driver thread between the copies to the host and those back. */
static void compute(void *data)
{
    mpl_cuda_host_op *h = data;
    mpl_status st = mpl_eval(&h->ctx, &h->call);

    if (st == MPL_OK)
        return;
    h->failure->status = st;
    snprintf(h->failure->message, sizeof h->failure->message, "%s", h->ctx.message);
}

int mpl_cuda_host_put(const mpl_cuda_api *api, mpl_cuda *c, mpl_cuda_host_op *h,
                      const mpl_op_call *call, void *stream)
{
    int code = 0;

    for (uint32_t i = 0; i < call->n_in && code == 0; i++)
        if (h->bytes[i] > 0)
            code = api->copy(c, h->operand[i].data, call->in[i].data, (size_t)h->bytes[i],
                             MPL_CUDA_TO_HOST, stream);
    if (code == 0)
        code = api->host_call(c, compute, h, stream);
    for (uint32_t i = 0; i < call->n_out && code == 0; i++)
        if (h->bytes[call->n_in + i] > 0)
            code = api->copy(c, call->out[i].data, h->operand[call->n_in + i].data,
                             (size_t)h->bytes[call->n_in + i], MPL_CUDA_TO_DEVICE, stream);
    return code;
}
