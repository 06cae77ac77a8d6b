/* attention_layers.c -- see transformer_priv.h.
 *
 * Source   A. Vaswani et al., "Attention Is All You Need", NeurIPS 2017, section 3.2. Every step is
 *          an operation of its own, so that scores and probabilities are buffers as they are in the
 *          files of exporters. */
#include "graphs/zoo/transformers/transformer_priv.h"

mpl_status mpl_zoo_divides(mpl_ctx *ctx, const mpl_zoo_args *args, const char *part,
                           const char *whole)
{
    int64_t n = mpl_zoo_arg(args, whole), by = mpl_zoo_arg(args, part);

    if (n % by != 0)
        return MPL_REFUSE(ctx, "%s: %s=%" PRId64 " is no multiple of %s=%" PRId64,
                          args->entry->name, whole, n, part, by);
    return MPL_OK;
}

mpl_value mpl_net_reshape(mpl_net *net, const char *name, mpl_value x, uint32_t rank,
                          const int64_t *dim)
{
    return mpl_net_op(net, MPL_OP_reshape, name, 1, &x, 1, &MPL_INTS(shape, rank, dim));
}

mpl_value mpl_net_transpose(mpl_net *net, const char *name, mpl_value x, const char *perm)
{
    int64_t axes[MPL_MAX_RANK];
    uint32_t rank = 0;

    for (; perm[rank] != '\0'; rank++)
        axes[rank] = perm[rank] - '0';
    return mpl_net_op(net, MPL_OP_transpose, name, 1, &x, 1, &MPL_INTS(perm, rank, axes));
}

mpl_value mpl_net_slice(mpl_net *net, const char *name, mpl_value x, int64_t axis, int64_t from,
                        int64_t to)
{
    const mpl_attr attr[] = {MPL_INTS(starts, 1, &from), MPL_INTS(ends, 1, &to),
                             MPL_INTS(axes, 1, &axis)};

    return mpl_net_op(net, MPL_OP_slice, name, 1, &x, 3, attr);
}

mpl_value mpl_net_join(mpl_net *net, const char *name, int64_t axis, mpl_value a, mpl_value b)
{
    return mpl_net_op(net, MPL_OP_concat, name, 2, (mpl_value[]){a, b}, 1, &MPL_INT(axis, axis));
}

mpl_value mpl_net_scale(mpl_net *net, const char *name, mpl_value x, float factor)
{
    return mpl_net_binary(net, MPL_OP_mul, name, x,
                          mpl_net_scalar(net, mpl_net_text(net, "%s.factor", name), factor));
}

mpl_value mpl_net_gather(mpl_net *net, const char *name, mpl_value table, mpl_value index)
{
    return mpl_net_binary(net, MPL_OP_gather, name, table, index);
}

mpl_value mpl_net_causal(mpl_net *net, const char *name, int64_t rows, int64_t columns,
                         int64_t first)
{
    mpl_value v = MPL_NONE;
    uint8_t *allowed = NULL;

    if (net->st == MPL_OK)
        net->st = mpl_new(net->ctx, allowed, (size_t)(rows * columns));
    if (net->st != MPL_OK)
        return MPL_NONE;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            allowed[i * columns + k] = k <= first + i;
    v = mpl_net_data(net, name, MPL_TYPE_bool, 2, (int64_t[]){rows, columns}, allowed);
    mpl_free(net->ctx, allowed);
    return v;
}

/* The weight `name`.`suffix`. */
static mpl_value weight_of(mpl_net *net, const char *name, const char *suffix, uint32_t rank,
                           const int64_t *dim)
{
    return mpl_net_weight(net, mpl_net_text(net, "%s.%s", name, suffix), rank, dim);
}

mpl_value mpl_net_linear(mpl_net *net, const char *name, mpl_value x, int64_t units, bool bias)
{
    mpl_value w = weight_of(net, name, "w", 2, (int64_t[]){units, mpl_net_dim(net, x, 1)});
    mpl_value in[] = {x, w, bias ? weight_of(net, name, "b", 1, &units) : MPL_NONE};

    return mpl_net_op(net, MPL_OP_gemm, name, bias ? 3 : 2, in, 1, &MPL_INT(trans_b, 1));
}

static mpl_value norm(mpl_net *net, mpl_op_kind kind, const char *name, mpl_value x, bool bias,
                      double epsilon)
{
    int64_t features = mpl_net_dim(net, x, mpl_net_rank(net, x) - 1);
    mpl_value scale = weight_of(net, name, "scale", 1, &features);
    mpl_value in[] = {x, scale, bias ? weight_of(net, name, "b", 1, &features) : MPL_NONE};

    return mpl_net_op(net, kind, name, bias ? 3 : 2, in, 1, &MPL_FLOAT(epsilon, epsilon));
}

mpl_value mpl_net_layer_norm(mpl_net *net, const char *name, mpl_value x, double epsilon)
{
    return norm(net, MPL_OP_layer_norm, name, x, true, epsilon);
}

mpl_value mpl_net_rms_norm(mpl_net *net, const char *name, mpl_value x, double epsilon)
{
    return norm(net, MPL_OP_rms_norm, name, x, false, epsilon);
}

mpl_value mpl_net_feed_forward(mpl_net *net, mpl_value x, int64_t inner, mpl_op_kind activation,
                               bool bias)
{
    int64_t units = mpl_net_dim(net, x, 1);

    x = mpl_net_linear(net, "fc1", x, inner, bias);
    return mpl_net_linear(net, "fc2", mpl_net_unary(net, activation, "act", x), units, bias);
}

mpl_value mpl_net_split_heads(mpl_net *net, const char *name, mpl_value x, const mpl_heads *heads,
                              bool turned)
{
    int64_t dim[] = {heads->batch, mpl_net_dim(net, x, 0) / heads->batch, heads->heads,
                     heads->width};

    x = mpl_net_reshape(net, mpl_net_text(net, "%s.split", name), x, 4, dim);
    return mpl_net_transpose(net, mpl_net_text(net, "%s.heads", name), x, turned ? "0231" : "0213");
}

void mpl_net_qkv(mpl_net *net, mpl_value x, const mpl_heads *heads, mpl_value out[3])
{
    static const char *const name[] = {"q", "k", "v"};
    int64_t n = mpl_net_dim(net, x, 0) / heads->batch;

    x = mpl_net_linear(net, "qkv", x, 3 * heads->heads * heads->width, true);
    x = mpl_net_reshape(net, "qkv.split", x, 5,
                        (int64_t[]){heads->batch, n, 3, heads->heads, heads->width});
    x = mpl_net_transpose(net, "qkv.heads", x, "20314");
    for (int i = 0; i < 3; i++)
        out[i] = mpl_net_reshape(
            net, name[i], mpl_net_slice(net, mpl_net_text(net, "%s.part", name[i]), x, 0, i, i + 1),
            4, (int64_t[]){heads->batch, heads->heads, n, heads->width});
}

mpl_value mpl_net_attend(mpl_net *net, mpl_value q, mpl_value k, mpl_value v,
                         const mpl_heads *heads, const mpl_scores *scores)
{
    int64_t rows = heads->batch * mpl_net_dim(net, q, 2);
    mpl_value x = mpl_net_binary(net, MPL_OP_matmul, "scores", q, k);

    if (scores->scale != 0)
        x = mpl_net_scale(net, "scaled", x, scores->scale);
    if (scores->add != MPL_NONE)
        x = mpl_net_binary(net, MPL_OP_add, "biased", x, scores->add);
    if (scores->allowed != MPL_NONE)
        x = mpl_net_op(net, MPL_OP_where, "masked", 3,
                       (mpl_value[]){scores->allowed, x, mpl_net_scalar(net, "masked.low", -10000)},
                       0, NULL);
    x = mpl_net_unary(net, MPL_OP_softmax, "share", x);
    x = mpl_net_binary(net, MPL_OP_matmul, "mix", x, v);
    x = mpl_net_transpose(net, "mix.tokens", x, "0213");
    return mpl_net_reshape(net, "mix.rows", x, 2, (int64_t[]){rows, heads->heads * heads->width});
}
