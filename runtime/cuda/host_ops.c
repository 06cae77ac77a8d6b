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

static uint64_t place_operands(mpl_cuda_host_op *op, const mpl_graph *g)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < op->call.n_in + op->call.n_out; i++) {
        mpl_value v = i < op->call.n_in ? mpl_op_input(g, op->call.op, i)
                                        : mpl_op_output(g, op->call.op, i - op->call.n_in);

        if (v == MPL_NONE)
            continue;
        op->operand[i].type = (mpl_type)g->value_type[v];
        op->operand[i].shape = g->value_shape[v];
        op->operand[i].data = (char *)op->staging + total;
        op->bytes[i] = g->value_bytes[v];
        total += (op->bytes[i] + STAGING_ALIGN) / STAGING_ALIGN * STAGING_ALIGN;
    }
    return total;
}

mpl_status mpl_cuda_host_new(mpl_ctx *ctx, const mpl_cuda_api *api, mpl_cuda *cuda,
                             const mpl_graph *g, mpl_op op, mpl_cuda_host_failure *failure,
                             mpl_cuda_host_op **out)
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
    if (api->host_new(cuda, &h->staging, (size_t)place_operands(h, g)) != 0)
        MPL_FAIL(ctx, MPL_EMEM, "out of memory: operands of '%s' on the host", g->op_name[op]);
    (void)place_operands(h, g);
    *out = h, h = NULL;
out:
    mpl_cuda_host_free(ctx, api, cuda, h);
    return st;
}

void mpl_cuda_host_free(mpl_ctx *ctx, const mpl_cuda_api *api, mpl_cuda *cuda, mpl_cuda_host_op *op)
{
    if (op == NULL)
        return;
    if (op->staging != NULL)
        api->host_free(cuda, op->staging);
    mpl_free_each(ctx, op->operand, op->bytes, op);
}

/* Runs on a driver thread between the copies to the host and those back. */
static void compute(void *data)
{
    mpl_cuda_host_op *op = data;
    mpl_status st = mpl_eval(&op->ctx, &op->call);

    if (st == MPL_OK)
        return;
    op->failure->status = st;
    snprintf(op->failure->message, sizeof op->failure->message, "%.*s",
             (int)sizeof op->failure->message - 1, op->ctx.message);
}

int mpl_cuda_host_put(const mpl_cuda_api *api, mpl_cuda *cuda, mpl_cuda_host_op *op,
                      const mpl_op_call *call, void *stream)
{
    int code = 0;

    for (uint32_t i = 0; i < call->n_in && code == 0; i++)
        if (op->bytes[i] > 0)
            code = api->copy(cuda, op->operand[i].data, call->in[i].data, (size_t)op->bytes[i],
                             MPL_CUDA_TO_HOST, stream);
    if (code == 0)
        code = api->host_call(cuda, compute, op, stream);
    for (uint32_t i = 0; i < call->n_out && code == 0; i++)
        if (op->bytes[call->n_in + i] > 0)
            code = api->copy(cuda, call->out[i].data, op->operand[call->n_in + i].data,
                             (size_t)op->bytes[call->n_in + i], MPL_CUDA_TO_DEVICE, stream);
    return code;
}
