/* net.c -- the builder that the generators share. See zoo_priv.h. */
#include "graphs/zoo/net/zoo_priv.h"

#include <stdarg.h>

enum { MOST_OUTPUTS = MPL_NET_CARRIED };

const char *mpl_net_text(mpl_net *net, const char *format, ...)
{
    char line[128], *text = NULL;
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (net->st == MPL_OK)
        net->st = mpl_reserve(net->ctx, net->text, net->cap_texts, net->n_texts + 1);
    if (net->st == MPL_OK && (text = mpl_strdup(net->ctx, line)) == NULL)
        net->st = MPL_EMEM;
    if (net->st != MPL_OK)
        return "";
    net->text[net->n_texts++] = text;
    return text;
}

const char *mpl_net_scoped(mpl_net *net, const char *name)
{
    return mpl_net_text(net, "%s%s%s", net->scope, net->scope[0] != '\0' ? "." : "", name);
}

const char *const mpl_zoo_forms[] = {"plain", "owl"};
const char *const mpl_zoo_hundredths[] = {NULL};

const char *mpl_zoo_value_text(const mpl_zoo_param *param, int64_t value, char *number)
{
    if (param->choices != NULL && param->choices != mpl_zoo_hundredths)
        return param->choices[value];
    if (param->choices == NULL)
        snprintf(number, MPL_ZOO_NUMBER, "%" PRId64, value);
    else if (value % 100 == 0)
        snprintf(number, MPL_ZOO_NUMBER, "%" PRId64, value / 100);
    else
        snprintf(number, MPL_ZOO_NUMBER, "%" PRId64 ".%02" PRId64, value / 100, value % 100);
    return number;
}

int64_t mpl_zoo_arg(const mpl_zoo_args *args, const char *key)
{
    const mpl_zoo_param *param = args->entry->params;
    uint32_t i = 0;

    while (strcmp(param[i].key, key) != 0)
        i++;
    return args->value[i];
}

const char *mpl_zoo_name(const mpl_zoo_args *args, char name[256])
{
    const mpl_zoo_param *param = args->entry->params;
    size_t n = (size_t)snprintf(name, 256, "%s", args->entry->name);
    char mark = ':', number[MPL_ZOO_NUMBER];

    for (uint32_t i = 0; param[i].key != NULL; i++) {
        if (args->value[i] == param[i].otherwise)
            continue;
        n += (size_t)snprintf(name + n, 256 - n, "%c%s=%s", mark, param[i].key,
                              mpl_zoo_value_text(&param[i], args->value[i], number));
        mark = ',';
    }
    return name;
}

mpl_net mpl_net_begin(mpl_ctx *ctx, const mpl_zoo_args *args)
{
    mpl_net net = {.ctx = ctx, .args = args};
    char name[256];

    net.st = mpl_graph_new(ctx, mpl_zoo_name(args, name), &net.graph);
    return net;
}

void mpl_net_output(mpl_net *net, mpl_value v)
{
    if (net->st == MPL_OK)
        net->st = mpl_graph_add_output(net->ctx, net->graph, v);
}

mpl_status mpl_net_end(mpl_net *net, mpl_value y, mpl_graph **out)
{
    mpl_status st = net->st;

    MPL_TRY(st);
    MPL_TRY(mpl_graph_add_output(net->ctx, net->graph, y));
    MPL_TRY(mpl_graph_finish(net->ctx, net->graph));
    *out = net->graph, net->graph = NULL;
out:
    mpl_graph_free(net->ctx, net->graph);
    net->graph = NULL;
    while (net->n_texts > 0)
        mpl_free(net->ctx, net->text[--net->n_texts]);
    mpl_free(net->ctx, net->text);
    return st;
}

void mpl_net_scope(mpl_net *net, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(net->scope, sizeof net->scope, format, args);
    va_end(args);
}

uint32_t mpl_net_rank(const mpl_net *net, mpl_value x)
{
    return net->st == MPL_OK ? net->graph->value_shape[x].rank : 1;
}

int64_t mpl_net_dim(const mpl_net *net, mpl_value x, uint32_t axis)
{
    return net->st == MPL_OK ? net->graph->value_shape[x].dim[axis] : 1;
}

mpl_value mpl_net_add_value(mpl_net *net, const char *name, mpl_role role, mpl_type type,
                            uint32_t rank, const int64_t *dim)
{
    mpl_shape shape = {.rank = rank};
    mpl_value v = MPL_NONE;

    if (net->st != MPL_OK)
        return MPL_NONE;
    memcpy(shape.dim, dim, rank * sizeof *dim);
    net->st = mpl_graph_add_value(net->ctx, net->graph, name, role, type, &shape, &v);
    return v;
}

mpl_value mpl_net_input(mpl_net *net, const char *name, uint32_t rank, const int64_t *dim)
{
    return mpl_net_add_value(net, mpl_net_scoped(net, name), MPL_INPUT, MPL_TYPE_f32, rank, dim);
}

mpl_value mpl_net_numbers(mpl_net *net, const char *name, uint32_t rank, const int64_t *dim)
{
    return mpl_net_add_value(net, mpl_net_scoped(net, name), MPL_INPUT, MPL_TYPE_i64, rank, dim);
}

mpl_value mpl_net_image(mpl_net *net, int64_t channels)
{
    int64_t image = mpl_zoo_arg(net->args, "image");

    return mpl_net_input(net, "data", 4,
                         (int64_t[]){mpl_zoo_arg(net->args, "batch"), channels, image, image});
}

mpl_value mpl_net_weight(mpl_net *net, const char *name, uint32_t rank, const int64_t *dim)
{
    return mpl_net_add_value(net, mpl_net_scoped(net, name), MPL_WEIGHT, MPL_TYPE_f32, rank, dim);
}

mpl_value mpl_net_const(mpl_net *net, const char *name, mpl_type type, const mpl_shape *shape,
                        const void *element)
{
    mpl_value v = MPL_NONE;

    if (net->st == MPL_OK)
        net->st = mpl_graph_add_const(net->ctx, net->graph, mpl_net_scoped(net, name), type, shape,
                                      element, true, &v);
    return v;
}

mpl_value mpl_net_data(mpl_net *net, const char *name, mpl_type type, uint32_t rank,
                       const int64_t *dim, const void *data)
{
    mpl_shape shape = {.rank = rank};
    mpl_value v = MPL_NONE;

    for (uint32_t i = 0; i < rank; i++)
        shape.dim[i] = dim[i];
    if (net->st == MPL_OK)
        net->st = mpl_graph_add_const(net->ctx, net->graph, mpl_net_scoped(net, name), type, &shape,
                                      data, false, &v);
    return v;
}

mpl_value mpl_net_scalar(mpl_net *net, const char *name, float number)
{
    return mpl_net_data(net, name, MPL_TYPE_f32, 0, NULL, &number);
}

mpl_value mpl_net_op(mpl_net *net, mpl_op_kind kind, const char *name, uint32_t n_in,
                     const mpl_value *in, uint32_t n_attr, const mpl_attr *attr)
{
    const char *out_name = mpl_net_scoped(net, name);
    mpl_value v = MPL_NONE;

    if (net->st == MPL_OK)
        net->st = mpl_graph_add_op(net->ctx, net->graph, kind, out_name, n_in, in, n_attr, attr, 1,
                                   &out_name, &v);
    return v;
}

mpl_value mpl_net_unary(mpl_net *net, mpl_op_kind kind, const char *name, mpl_value x)
{
    return mpl_net_op(net, kind, name, 1, &x, 0, NULL);
}

mpl_value mpl_net_binary(mpl_net *net, mpl_op_kind kind, const char *name, mpl_value a, mpl_value b)
{
    return mpl_net_op(net, kind, name, 2, (mpl_value[]){a, b}, 0, NULL);
}

mpl_value mpl_net_concat(mpl_net *net, const char *name, uint32_t n, const mpl_value *in)
{
    return mpl_net_op(net, MPL_OP_concat, name, n, in, 1, &MPL_INT(axis, 1));
}

mpl_value mpl_net_pool(mpl_net *net, mpl_op_kind kind, const char *name, mpl_value x, mpl_window w)
{
    const mpl_attr attr[] = {
        MPL_INTS(kernel_shape, 2, w.kernel),
        MPL_INTS(strides, 2, ((const int64_t[]){w.stride, w.stride})),
        MPL_INTS(pads, 4, ((const int64_t[]){w.pad[0], w.pad[1], w.pad[0], w.pad[1]})),
    };

    return mpl_net_op(net, kind, name, 1, &x, 3, attr);
}

mpl_value mpl_net_relu(mpl_net *net, const char *name, mpl_value x)
{
    return mpl_net_unary(net, MPL_OP_relu, mpl_net_text(net, "%s.relu", name), x);
}

mpl_value mpl_net_flatten(mpl_net *net, const char *name, mpl_value x)
{
    int64_t features = mpl_net_dim(net, x, 1) * mpl_net_dim(net, x, 2) * mpl_net_dim(net, x, 3);
    int64_t dim[] = {mpl_net_dim(net, x, 0), features};

    return mpl_net_op(net, MPL_OP_reshape, name, 1, &x, 1, &MPL_INTS(shape, 2, dim));
}

/* ---- losses ---- */

/* Part of a loss: the operation `name`.`part`. */
static mpl_value loss_part(mpl_net *net, mpl_op_kind kind, const char *name, const char *part,
                           mpl_value a, mpl_value b)
{
    return mpl_net_op(net, kind, mpl_net_text(net, "%s.%s", name, part), b == MPL_NONE ? 1 : 2,
                      (mpl_value[]){a, b}, 0, NULL);
}

/* R. Girshick, "Fast R-CNN", ICCV 2015, equation 3, as c (|d| - c / 2), c = min(|d|, 1). */
mpl_value mpl_net_smooth_l1(mpl_net *net, const char *name, mpl_value x, mpl_value wanted)
{
    mpl_value size = loss_part(net, MPL_OP_abs, name, "size",
                               loss_part(net, MPL_OP_sub, name, "off", x, wanted), MPL_NONE);
    mpl_value near;

    near = mpl_net_op(
        net, MPL_OP_clip, mpl_net_text(net, "%s.near", name), 3,
        (mpl_value[]){size, MPL_NONE, mpl_net_scalar(net, mpl_net_text(net, "%s.one", name), 1)}, 0,
        NULL);
    size = loss_part(net, MPL_OP_sub, name, "rest", size,
                     loss_part(net, MPL_OP_mul, name, "near.half", near,
                               mpl_net_scalar(net, mpl_net_text(net, "%s.half", name), 0.5f)));
    return mpl_net_op(net, MPL_OP_reduce_mean, name, 1,
                      (mpl_value[]){loss_part(net, MPL_OP_mul, name, "each", near, size)}, 1,
                      &MPL_INT(keepdims, 0));
}

/* - t log s(x) - (1 - t) log(1 - s(x)) = softplus(x) - t x */
mpl_value mpl_net_sigmoid_loss(mpl_net *net, const char *name, mpl_value logits, mpl_value wanted)
{
    mpl_value each = loss_part(net, MPL_OP_sub, name, "each",
                               loss_part(net, MPL_OP_softplus, name, "soft", logits, MPL_NONE),
                               loss_part(net, MPL_OP_mul, name, "said", logits, wanted));

    return mpl_net_op(net, MPL_OP_reduce_mean, name, 1, &each, 1, &MPL_INT(keepdims, 0));
}

mpl_value mpl_net_stop(mpl_net *net, const char *name, mpl_value x)
{
    return mpl_net_op(net, MPL_OP_identity, name, 1, &x, 1, &MPL_INT(stop, 1));
}

/* ---- control flow ---- */

uint32_t mpl_net_open(mpl_net *net, const char *name)
{
    uint32_t block = 0;

    if (net->st == MPL_OK)
        net->st = mpl_graph_open_block(net->ctx, net->graph, mpl_net_scoped(net, name), &block);
    return block;
}

mpl_value mpl_net_param(mpl_net *net, const char *name, mpl_type type, const mpl_shape *shape)
{
    mpl_value v = MPL_NONE;

    if (net->st == MPL_OK)
        net->st =
            mpl_graph_add_param(net->ctx, net->graph, mpl_net_scoped(net, name), type, shape, &v);
    return v;
}

mpl_value mpl_net_param_like(mpl_net *net, const char *name, mpl_value like)
{
    mpl_shape shape = {.rank = 0};
    mpl_type type = MPL_TYPE_f32;

    if (net->st == MPL_OK) { /* copies: adding the parameter may move what `like` points into */
        shape = net->graph->value_shape[like];
        type = (mpl_type)net->graph->value_type[like];
    }
    return mpl_net_param(net, name, type, &shape);
}

mpl_value mpl_net_param_slice(mpl_net *net, const char *name, mpl_value scan)
{
    mpl_shape shape = {.rank = 0};
    mpl_type type = MPL_TYPE_f32;

    if (net->st == MPL_OK) {
        shape = net->graph->value_shape[scan];
        type = (mpl_type)net->graph->value_type[scan];
        memmove(shape.dim, shape.dim + 1, --shape.rank * sizeof *shape.dim);
    }
    return mpl_net_param(net, name, type, &shape);
}

void mpl_net_close(mpl_net *net, uint32_t n_results, const mpl_value *result)
{
    if (net->st == MPL_OK)
        net->st = mpl_graph_close_block(net->ctx, net->graph, n_results, result);
}

/* Adds an operation that owns blocks; unnamed outputs are omitted. */
static void add_control(mpl_net *net, mpl_op_kind kind, const char *name, uint32_t n_in,
                        const mpl_value *in, uint32_t n_attr, const mpl_attr *attr,
                        uint32_t n_bodies, const uint32_t *body, uint32_t n_out,
                        const char *const *out_name, mpl_value *out)
{
    const char *full[MOST_OUTPUTS];

    mpl_assert(n_out <= MOST_OUTPUTS);
    for (uint32_t i = 0; i < n_out; i++) {
        out[i] = MPL_NONE;
        full[i] = out_name[i] != NULL ? mpl_net_scoped(net, out_name[i]) : NULL;
    }
    if (net->st == MPL_OK)
        net->st = mpl_graph_add_control(net->ctx, net->graph, kind, mpl_net_scoped(net, name), n_in,
                                        in, n_attr, attr, n_bodies, body, n_out, full, out);
}

void mpl_net_while(mpl_net *net, const char *name, const mpl_net_loop *loop, mpl_value *out)
{
    const mpl_attr attr[] = {MPL_INT(carried, loop->n_carried), MPL_INT(trips, loop->trips)};
    mpl_value in[2 + MOST_OUTPUTS] = {MPL_NONE, MPL_NONE};

    mpl_assert(loop->n_carried + loop->n_scans <= MOST_OUTPUTS);
    for (uint32_t i = 0; i < loop->n_carried; i++)
        in[2 + i] = loop->init[i];
    for (uint32_t i = 0; i < loop->n_scans; i++)
        in[2 + loop->n_carried + i] = loop->scan[i];
    add_control(net, MPL_OP_while, name, 2 + loop->n_carried + loop->n_scans, in,
                loop->trips < 0 ? 1 : 2, attr, 1, &loop->body, loop->n_carried + loop->n_rows,
                loop->out_name, out);
}

mpl_value mpl_net_case(mpl_net *net, const char *name, mpl_value index, mpl_value bypass,
                       uint32_t n_branches, const uint32_t *branch)
{
    mpl_value in[] = {index, bypass}, out;

    add_control(net, MPL_OP_case, name, bypass == MPL_NONE ? 1 : 2, in, 0, NULL, n_branches, branch,
                1, &name, &out);
    return out;
}
