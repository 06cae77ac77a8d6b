/* side_by_side.c -- networks with much to run at once: heads of attention, two networks in one
 * graph.
 *
 * Source   attention: A. Vaswani et al., "Attention Is All You Need", NeurIPS 2017, the encoder's
 *          layer on one sequence, with the heads apart. pair: none.
 * Differs  No masks and layer norms; scores are not scaled, as no size depends on it. Order: head
 * by head; the first network, then the second. */
#include "graphs/passes/copy.h"
#include "graphs/zoo/net/zoo_priv.h"

static mpl_value product(mpl_net *net, const char *name, mpl_value a, mpl_value b, int64_t turned)
{
    return mpl_net_op(net, MPL_OP_gemm, name, 2, (mpl_value[]){a, b}, 1, &MPL_INT(trans_b, turned));
}

/* softmax(q k') v of one head. */
static mpl_value attend(mpl_net *net, mpl_value x, int64_t width)
{
    mpl_value q = mpl_net_dense(net, "q", x, width), k = mpl_net_dense(net, "k", x, width);
    mpl_value v = mpl_net_dense(net, "v", x, width);
    mpl_value scores = product(net, "scores", q, k, 1);

    return product(net, "mix", mpl_net_unary(net, MPL_OP_softmax, "share", scores), v, 0);
}

static mpl_status build_attention(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    int64_t n = mpl_zoo_arg(args, "heads"), width = mpl_zoo_arg(args, "width");
    mpl_value head[256], x, y;
    mpl_net net = mpl_net_begin(ctx, args);

    x = mpl_net_input(&net, "data", 2, (int64_t[]){mpl_zoo_arg(args, "length"), n * width});
    for (int64_t layer = 1; layer <= mpl_zoo_arg(args, "layers"); layer++) {
        for (int64_t i = 0; i < n; i++) {
            mpl_net_scope(&net, "layer%" PRId64 ".head%" PRId64, layer, i + 1);
            head[i] = attend(&net, x, width);
        }
        mpl_net_scope(&net, "layer%" PRId64, layer);
        y = mpl_net_dense(&net, "out", mpl_net_concat(&net, "heads", (uint32_t)n, head), n * width);
        x = mpl_net_binary(&net, MPL_OP_add, "add", x, y);
        y = mpl_net_relu(&net, "wide", mpl_net_dense(&net, "wide", x, 4 * n * width));
        x = mpl_net_binary(&net, MPL_OP_add, "sum", x, mpl_net_dense(&net, "narrow", y, n * width));
    }
    mpl_net_scope(&net, "%s", "");
    x = mpl_net_dense(&net, "fc", x, mpl_zoo_arg(args, "classes"));
    return mpl_net_end(&net, mpl_net_unary(&net, MPL_OP_softmax, "prob", x), out);
}

MPL_ZOO(attention, "an encoder whose heads are apart (Vaswani et al. 2017)",
        MPL_PARAMS({"length", 128, 1, 65536, "tokens", NULL},
                   {"heads", 8, 1, 256, "of each layer", NULL},
                   {"width", 64, 1, 4096, "features of a head", NULL},
                   {"layers", 2, 1, 1000, "layers", NULL}, MPL_PARAM_CLASSES(10)),
        build_attention);

/* ---- two networks ---- */

static const char *const sides[] = {
    "squeezenet", "mobilenet_v2", "shufflenet_v2", "resnet18", "inception_v3", "mlp", NULL};

/* Adds `from` to `to`, with `side` and a dot before each name; its outputs become outputs. */
static mpl_status add_side(mpl_ctx *ctx, mpl_graph *from, const char *side, mpl_graph *to)
{
    mpl_status st = MPL_OK;
    mpl_value *map = NULL;
    char name[2][200];

    MPL_TRY(mpl_new(ctx, map, from->n_values));
    for (mpl_value v = 0; v < from->n_values; v++) {
        if (from->value_op[v] != MPL_NONE)
            continue;
        snprintf(name[0], sizeof name[0], "%s.%.180s", side, from->value_name[v]);
        MPL_TRY(mpl_graph_add_value(ctx, to, name[0], (mpl_role)from->value_role[v],
                                    (mpl_type)from->value_type[v], &from->value_shape[v], &map[v]));
        to->value_data[map[v]] = from->value_data[v], from->value_data[v] = NULL;
        to->value_splat[map[v]] = from->value_splat[v];
    }
    for (mpl_op op = 0; op < from->n_ops; op++) {
        mpl_copy_as as = {.name = name[0], .out_name = (const char *[]){name[1]}};

        mpl_assert(mpl_op_lone_output(from, op));
        snprintf(name[0], sizeof name[0], "%s.%.180s", side, from->op_name[op]);
        snprintf(name[1], sizeof name[1], "%s.%.180s", side,
                 from->value_name[mpl_op_output(from, op, 0)]);
        MPL_TRY(mpl_copy_op_as(ctx, from, op, to, map, NULL, &as));
    }
    for (uint32_t i = 0; i < from->n_outputs; i++)
        MPL_TRY(mpl_graph_add_output(ctx, to, map[from->output[i]]));
out:
    mpl_free(ctx, map);
    return st;
}

static mpl_status build_pair(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    static const char *const key[] = {"a", "b"};
    mpl_status st = MPL_OK;
    mpl_graph *g = NULL, *side = NULL;
    char name[256];

    MPL_TRY(mpl_graph_new(ctx, mpl_zoo_name(args, name), &g));
    for (int k = 0; k < 2; k++) {
        MPL_TRY(args->any(ctx, sides[mpl_zoo_arg(args, key[k])], &side));
        MPL_TRY(add_side(ctx, side, key[k], g));
        mpl_graph_free(ctx, side), side = NULL;
    }
    MPL_TRY(mpl_graph_finish(ctx, g));
    *out = g, g = NULL;
out:
    mpl_graph_free(ctx, g);
    mpl_graph_free(ctx, side);
    return st;
}

#define NETWORK(key, otherwise)                                                                    \
    {                                                                                              \
        key, otherwise, 0, 5, "one of the two networks", sides                                     \
    }

MPL_ZOO(pair, "two networks side by side, each with inputs and outputs of its own",
        MPL_PARAMS(NETWORK("a", 0), NETWORK("b", 1)), build_pair);
