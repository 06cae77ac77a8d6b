/* inception.c -- inception networks v1 (GoogLeNet), v3 and v4, without their auxiliary classifiers.
 *
 * Source   v1: C. Szegedy et al., "Going Deeper with Convolutions", CVPR 2015: table 1. v3: C.
 *          Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", CVPR 2016:
 *          table 1, figures 5 to 7, numbers of channels as in the authors' own release. v4: C.
 *          Szegedy et al., "Inception-v4, Inception-ResNet and the Impact of Residual Connections
 *          on Learning", AAAI 2017: figures 3 to 9.
 * Differs  v1 is the Caffe model in the ONNX zoo, operator by operator: local response norms where
 *          the paper has them, and pools that round down, so that sizes run 112, 55, 27, 13, 6
 *          where the paper has 112, 56, 28, 14, 7, and the last pool pads one row and column. v3
 *          and v4: average pools leave the padding out. */
#include "graphs/zoo/net/zoo_priv.h"

/* A network is a list of modules, a module a list of rows, a row one operation. `from`: 0 is the
 * module's input, k the k-th row above. A JOIN concatenates the `from` rows above it. A module's
 * result is the concatenation, in order, of rows that none of its rows reads. `out`: number of
 * channels; ARG(i): the module's number i. */
typedef enum what { CONV, MAX, AVG, LRN, JOIN } what;

typedef struct row {
    const char *name;
    uint8_t from, what;
    int16_t out;
    uint8_t kernel[2], stride;
    bool padded; /* so that stride 1 keeps the size */
} row;

#define ARG(i) (-1 - (i))

enum { MAX_ROWS = 16, MAX_ARGS = 6 };

typedef struct module {
    const char *name;
    const row *rows;
    int n_rows;
    int16_t arg[MAX_ARGS];
} module;

#define ROWS(rows) rows, (int)(sizeof(rows) / sizeof *(rows))

/* clang-format off */
static const row v1_stem[] = {
    /* name, from, what, out, kernel, stride, padded */
    {"conv1",      0, CONV, 64,     {7, 7}, 2, true},
    {"pool1",      1, MAX,  0,      {3, 3}, 2, false},
    {"norm1",      1, LRN,  5,      {0, 0}, 0, false},
    {"reduce2",    1, CONV, 64,     {1, 1}, 1, true},
    {"conv2",      1, CONV, 192,    {3, 3}, 1, true},
    {"norm2",      1, LRN,  5,      {0, 0}, 0, false},
    {"pool2",      1, MAX,  0,      {3, 3}, 2, false},
};

static const row v1_pool[] = {
    {"pool",       0, MAX,  0,      {3, 3}, 2, false},
};

static const row v1_module[] = {
    {"1x1",        0, CONV, ARG(0), {1, 1}, 1, true},
    {"3x3_reduce", 0, CONV, ARG(1), {1, 1}, 1, true},
    {"3x3",        1, CONV, ARG(2), {3, 3}, 1, true},
    {"5x5_reduce", 0, CONV, ARG(3), {1, 1}, 1, true},
    {"5x5",        1, CONV, ARG(4), {5, 5}, 1, true},
    {"pool",       0, MAX,  0,      {3, 3}, 1, true},
    {"pool_proj",  1, CONV, ARG(5), {1, 1}, 1, true},
};

static const module v1[] = {
    {"stem",         ROWS(v1_stem),     {0}},
    {"inception_3a", ROWS(v1_module),   {64, 96, 128, 16, 32, 32}},
    {"inception_3b", ROWS(v1_module),   {128, 128, 192, 32, 96, 64}},
    {"pool3",        ROWS(v1_pool),     {0}},
    {"inception_4a", ROWS(v1_module),   {192, 96, 208, 16, 48, 64}},
    {"inception_4b", ROWS(v1_module),   {160, 112, 224, 24, 64, 64}},
    {"inception_4c", ROWS(v1_module),   {128, 128, 256, 24, 64, 64}},
    {"inception_4d", ROWS(v1_module),   {112, 144, 288, 32, 64, 64}},
    {"inception_4e", ROWS(v1_module),   {256, 160, 320, 32, 128, 128}},
    {"pool4",        ROWS(v1_pool),     {0}},
    {"inception_5a", ROWS(v1_module),   {256, 160, 320, 32, 128, 128}},
    {"inception_5b", ROWS(v1_module),   {384, 192, 384, 48, 128, 128}},
};

static const row v3_stem[] = {
    {"conv1",      0, CONV, 32,     {3, 3}, 2, false},
    {"conv2",      1, CONV, 32,     {3, 3}, 1, false},
    {"conv3",      1, CONV, 64,     {3, 3}, 1, true},
    {"pool1",      1, MAX,  0,      {3, 3}, 2, false},
    {"conv4",      1, CONV, 80,     {1, 1}, 1, true},
    {"conv5",      1, CONV, 192,    {3, 3}, 1, false},
    {"pool2",      1, MAX,  0,      {3, 3}, 2, false},
};

static const row v3_a[] = { /* figure 5 */
    {"1x1",        0, CONV, 64,     {1, 1}, 1, true},
    {"5x5_1",      0, CONV, 48,     {1, 1}, 1, true},
    {"5x5_2",      1, CONV, 64,     {5, 5}, 1, true},
    {"3x3_1",      0, CONV, 64,     {1, 1}, 1, true},
    {"3x3_2",      1, CONV, 96,     {3, 3}, 1, true},
    {"3x3_3",      1, CONV, 96,     {3, 3}, 1, true},
    {"pool",       0, AVG,  0,      {3, 3}, 1, true},
    {"pool_proj",  1, CONV, ARG(0), {1, 1}, 1, true},
};

static const row v3_b[] = { /* to 17x17 */
    {"3x3",        0, CONV, 384,    {3, 3}, 2, false},
    {"double_1",   0, CONV, 64,     {1, 1}, 1, true},
    {"double_2",   1, CONV, 96,     {3, 3}, 1, true},
    {"double_3",   1, CONV, 96,     {3, 3}, 2, false},
    {"pool",       0, MAX,  0,      {3, 3}, 2, false},
};

static const row v3_c[] = { /* figure 6 */
    {"1x1",        0, CONV, 192,    {1, 1}, 1, true},
    {"7x7_1",      0, CONV, ARG(0), {1, 1}, 1, true},
    {"7x7_2",      1, CONV, ARG(0), {1, 7}, 1, true},
    {"7x7_3",      1, CONV, 192,    {7, 1}, 1, true},
    {"double_1",   0, CONV, ARG(0), {1, 1}, 1, true},
    {"double_2",   1, CONV, ARG(0), {7, 1}, 1, true},
    {"double_3",   1, CONV, ARG(0), {1, 7}, 1, true},
    {"double_4",   1, CONV, ARG(0), {7, 1}, 1, true},
    {"double_5",   1, CONV, 192,    {1, 7}, 1, true},
    {"pool",       0, AVG,  0,      {3, 3}, 1, true},
    {"pool_proj",  1, CONV, 192,    {1, 1}, 1, true},
};

static const row v3_d[] = { /* to 8x8 */
    {"3x3_1",      0, CONV, 192,    {1, 1}, 1, true},
    {"3x3_2",      1, CONV, 320,    {3, 3}, 2, false},
    {"7x7_1",      0, CONV, 192,    {1, 1}, 1, true},
    {"7x7_2",      1, CONV, 192,    {1, 7}, 1, true},
    {"7x7_3",      1, CONV, 192,    {7, 1}, 1, true},
    {"7x7_4",      1, CONV, 192,    {3, 3}, 2, false},
    {"pool",       0, MAX,  0,      {3, 3}, 2, false},
};

static const row v3_e[] = { /* figure 7 */
    {"1x1",        0, CONV, 320,    {1, 1}, 1, true},
    {"3x3",        0, CONV, 384,    {1, 1}, 1, true},
    {"3x3_a",      1, CONV, 384,    {1, 3}, 1, true},
    {"3x3_b",      2, CONV, 384,    {3, 1}, 1, true},
    {"3x3_ab",     2, JOIN, 0,      {0, 0}, 0, false},
    {"double_1",   0, CONV, 448,    {1, 1}, 1, true},
    {"double_2",   1, CONV, 384,    {3, 3}, 1, true},
    {"double_a",   1, CONV, 384,    {1, 3}, 1, true},
    {"double_b",   2, CONV, 384,    {3, 1}, 1, true},
    {"double_ab",  2, JOIN, 0,      {0, 0}, 0, false},
    {"pool",       0, AVG,  0,      {3, 3}, 1, true},
    {"pool_proj",  1, CONV, 192,    {1, 1}, 1, true},
};

static const module v3[] = {
    {"stem",         ROWS(v3_stem),     {0}},
    {"mixed0",       ROWS(v3_a),        {32}},
    {"mixed1",       ROWS(v3_a),        {64}},
    {"mixed2",       ROWS(v3_a),        {64}},
    {"mixed3",       ROWS(v3_b),        {0}},
    {"mixed4",       ROWS(v3_c),        {128}},
    {"mixed5",       ROWS(v3_c),        {160}},
    {"mixed6",       ROWS(v3_c),        {160}},
    {"mixed7",       ROWS(v3_c),        {192}},
    {"mixed8",       ROWS(v3_d),        {0}},
    {"mixed9",       ROWS(v3_e),        {0}},
    {"mixed10",      ROWS(v3_e),        {0}},
};

static const row v4_stem1[] = { /* figure 3, up to each of its three concatenations */
    {"conv1",      0, CONV, 32,     {3, 3}, 2, false},
    {"conv2",      1, CONV, 32,     {3, 3}, 1, false},
    {"conv3",      1, CONV, 64,     {3, 3}, 1, true},
    {"pool",       1, MAX,  0,      {3, 3}, 2, false},
    {"conv4",      2, CONV, 96,     {3, 3}, 2, false},
};

static const row v4_stem2[] = {
    {"3x3_1",      0, CONV, 64,     {1, 1}, 1, true},
    {"3x3_2",      1, CONV, 96,     {3, 3}, 1, false},
    {"7x7_1",      0, CONV, 64,     {1, 1}, 1, true},
    {"7x7_2",      1, CONV, 64,     {7, 1}, 1, true},
    {"7x7_3",      1, CONV, 64,     {1, 7}, 1, true},
    {"7x7_4",      1, CONV, 96,     {3, 3}, 1, false},
};

static const row v4_stem3[] = {
    {"conv",       0, CONV, 192,    {3, 3}, 2, false},
    {"pool",       0, MAX,  0,      {3, 3}, 2, false},
};

static const row v4_a[] = { /* figure 4 */
    {"pool",       0, AVG,  0,      {3, 3}, 1, true},
    {"pool_proj",  1, CONV, 96,     {1, 1}, 1, true},
    {"1x1",        0, CONV, 96,     {1, 1}, 1, true},
    {"3x3_1",      0, CONV, 64,     {1, 1}, 1, true},
    {"3x3_2",      1, CONV, 96,     {3, 3}, 1, true},
    {"double_1",   0, CONV, 64,     {1, 1}, 1, true},
    {"double_2",   1, CONV, 96,     {3, 3}, 1, true},
    {"double_3",   1, CONV, 96,     {3, 3}, 1, true},
};

static const row v4_reduce_a[] = { /* figure 7, table 1 */
    {"pool",       0, MAX,  0,      {3, 3}, 2, false},
    {"3x3",        0, CONV, 384,    {3, 3}, 2, false},
    {"double_1",   0, CONV, 192,    {1, 1}, 1, true},
    {"double_2",   1, CONV, 224,    {3, 3}, 1, true},
    {"double_3",   1, CONV, 256,    {3, 3}, 2, false},
};

static const row v4_b[] = { /* figure 5 */
    {"pool",       0, AVG,  0,      {3, 3}, 1, true},
    {"pool_proj",  1, CONV, 128,    {1, 1}, 1, true},
    {"1x1",        0, CONV, 384,    {1, 1}, 1, true},
    {"7x7_1",      0, CONV, 192,    {1, 1}, 1, true},
    {"7x7_2",      1, CONV, 224,    {1, 7}, 1, true},
    {"7x7_3",      1, CONV, 256,    {7, 1}, 1, true},
    {"double_1",   0, CONV, 192,    {1, 1}, 1, true},
    {"double_2",   1, CONV, 192,    {1, 7}, 1, true},
    {"double_3",   1, CONV, 224,    {7, 1}, 1, true},
    {"double_4",   1, CONV, 224,    {1, 7}, 1, true},
    {"double_5",   1, CONV, 256,    {7, 1}, 1, true},
};

static const row v4_reduce_b[] = { /* figure 8 */
    {"pool",       0, MAX,  0,      {3, 3}, 2, false},
    {"3x3_1",      0, CONV, 192,    {1, 1}, 1, true},
    {"3x3_2",      1, CONV, 192,    {3, 3}, 2, false},
    {"7x7_1",      0, CONV, 256,    {1, 1}, 1, true},
    {"7x7_2",      1, CONV, 256,    {1, 7}, 1, true},
    {"7x7_3",      1, CONV, 320,    {7, 1}, 1, true},
    {"7x7_4",      1, CONV, 320,    {3, 3}, 2, false},
};

static const row v4_c[] = { /* figure 6 */
    {"pool",       0, AVG,  0,      {3, 3}, 1, true},
    {"pool_proj",  1, CONV, 256,    {1, 1}, 1, true},
    {"1x1",        0, CONV, 256,    {1, 1}, 1, true},
    {"3x3",        0, CONV, 384,    {1, 1}, 1, true},
    {"3x3_a",      1, CONV, 256,    {1, 3}, 1, true},
    {"3x3_b",      2, CONV, 256,    {3, 1}, 1, true},
    {"double_1",   0, CONV, 384,    {1, 1}, 1, true},
    {"double_2",   1, CONV, 448,    {1, 3}, 1, true},
    {"double_3",   1, CONV, 512,    {3, 1}, 1, true},
    {"double_a",   1, CONV, 256,    {3, 1}, 1, true},
    {"double_b",   2, CONV, 256,    {1, 3}, 1, true},
};

static const module v4[] = {
    {"stem1",        ROWS(v4_stem1),    {0}},
    {"stem2",        ROWS(v4_stem2),    {0}},
    {"stem3",        ROWS(v4_stem3),    {0}},
    {"a1",           ROWS(v4_a),        {0}},
    {"a2",           ROWS(v4_a),        {0}},
    {"a3",           ROWS(v4_a),        {0}},
    {"a4",           ROWS(v4_a),        {0}},
    {"reduce_a",     ROWS(v4_reduce_a), {0}},
    {"b1",           ROWS(v4_b),        {0}},
    {"b2",           ROWS(v4_b),        {0}},
    {"b3",           ROWS(v4_b),        {0}},
    {"b4",           ROWS(v4_b),        {0}},
    {"b5",           ROWS(v4_b),        {0}},
    {"b6",           ROWS(v4_b),        {0}},
    {"b7",           ROWS(v4_b),        {0}},
    {"reduce_b",     ROWS(v4_reduce_b), {0}},
    {"c1",           ROWS(v4_c),        {0}},
    {"c2",           ROWS(v4_c),        {0}},
    {"c3",           ROWS(v4_c),        {0}},
};
/* clang-format on */

/* Convolution and relu: with a bias in v1, with a batch norm between in v3 and v4. */
static mpl_value conv_relu(mpl_net *net, const char *name, mpl_value x, int64_t channels,
                           mpl_window w, bool norm)
{
    if (norm)
        return mpl_net_conv_relu(net, name, x, channels, w, 1e-3);
    return mpl_net_relu(
        net, name, mpl_net_conv(net, mpl_net_text(net, "%s.conv", name), x, channels, w, 1, true));
}

static mpl_value lrn(mpl_net *net, const char *name, mpl_value x, int64_t size)
{
    const mpl_attr attr[] = {MPL_INT(size, size), MPL_FLOAT(alpha, 1e-4), MPL_FLOAT(beta, 0.75),
                             MPL_FLOAT(bias, 1)};

    return mpl_net_op(net, MPL_OP_lrn, name, 1, &x, 4, attr);
}

static mpl_value apply_row(mpl_net *net, const module *m, const row *r, mpl_value x,
                           const mpl_value *joined, bool norm)
{
    int64_t pad[2] = {r->padded ? r->kernel[0] / 2 : 0, r->padded ? r->kernel[1] / 2 : 0};
    mpl_window w = {{r->kernel[0], r->kernel[1]}, r->stride, {pad[0], pad[1]}};

    switch ((what)r->what) {
    case CONV:
        return conv_relu(net, r->name, x, r->out < 0 ? m->arg[-1 - r->out] : r->out, w, norm);
    case MAX:
        return mpl_net_pool(net, MPL_OP_max_pool, r->name, x, w);
    case AVG:
        return mpl_net_pool(net, MPL_OP_avg_pool, r->name, x, w);
    case LRN:
        return lrn(net, r->name, x, r->out);
    case JOIN:
        break;
    }
    return mpl_net_concat(net, r->name, r->from, joined);
}

static mpl_value apply_module(mpl_net *net, const module *m, mpl_value x, bool norm)
{
    mpl_value result[MAX_ROWS], last[MAX_ROWS];
    bool used[MAX_ROWS] = {false};
    uint32_t n_last = 0;

    mpl_net_scope(net, "%s", m->name);
    for (int i = 0; i < m->n_rows; i++) {
        const row *r = &m->rows[i];
        int first = i - r->from;

        for (int k = first; k < i; k++) /* all of them for JOIN, else the one row read */
            used[k] |= r->what == JOIN || k == first;
        result[i] = apply_row(net, m, r, r->from == 0 ? x : result[first], &result[first], norm);
    }
    for (int i = 0; i < m->n_rows; i++)
        if (!used[i])
            last[n_last++] = result[i];
    return n_last == 1 ? last[0] : mpl_net_concat(net, "concat", n_last, last);
}

/* The end of the Caffe model: a pool one larger than the image, padded by one at the far ends. */
static mpl_value classify_v1(mpl_net *net, mpl_value x)
{
    int64_t kernel = mpl_net_dim(net, x, 2) + 1;
    const mpl_attr attr[] = {
        MPL_INTS(kernel_shape, 2, ((const int64_t[]){kernel, kernel})),
        MPL_INTS(strides, 2, ((const int64_t[]){1, 1})),
        MPL_INTS(pads, 4, ((const int64_t[]){0, 0, 1, 1})),
    };

    mpl_net_scope(net, "%s", "");
    x = mpl_net_op(net, MPL_OP_avg_pool, "pool", 1, &x, 3, attr);
    x = mpl_net_unary(net, MPL_OP_dropout, "dropout", x);
    x = mpl_net_flatten(net, "flat", x);
    x = mpl_net_dense(net, "fc", x, mpl_zoo_arg(net->args, "classes"));
    return mpl_net_unary(net, MPL_OP_softmax, "prob", x);
}

static mpl_status build_v1(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    mpl_net net = mpl_net_begin(ctx, args);
    mpl_value x = mpl_net_image(&net, 3);

    for (size_t i = 0; i < sizeof v1 / sizeof *v1; i++)
        x = apply_module(&net, &v1[i], x, false);
    return mpl_net_end(&net, classify_v1(&net, x), out);
}

static mpl_status build_normed(mpl_ctx *ctx, const mpl_zoo_args *args, const module *modules,
                               size_t n, mpl_graph **out)
{
    mpl_net net = mpl_net_begin(ctx, args);
    mpl_value x;

    net.owl = mpl_zoo_arg(args, "form") == 1;
    x = mpl_net_image(&net, 3);
    for (size_t i = 0; i < n; i++)
        x = apply_module(&net, &modules[i], x, true);
    return mpl_net_end(&net, mpl_net_classify(&net, x, true), out);
}

static mpl_status build_v3(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    return build_normed(ctx, args, v3, sizeof v3 / sizeof *v3, out);
}

static mpl_status build_v4(mpl_ctx *ctx, const mpl_zoo_args *args, mpl_graph **out)
{
    return build_normed(ctx, args, v4, sizeof v4 / sizeof *v4, out);
}

static const mpl_zoo_param params_normed[] = {
    MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(299, 75), MPL_PARAM_CLASSES(1000), MPL_PARAM_FORM,
    MPL_PARAM_END,
};

MPL_ZOO(inception_v1, "GoogLeNet (Szegedy et al. 2015), Caffe's variant",
        MPL_PARAMS(MPL_PARAM_BATCH(1), MPL_PARAM_IMAGE(224, 63), MPL_PARAM_CLASSES(1000)),
        build_v1);

MPL_ZOO(inception_v3, "inception with factorised convolutions (Szegedy et al. 2016)", params_normed,
        build_v3);

MPL_ZOO(inception_v4, "the deeper, uniform inception (Szegedy et al. 2017)", params_normed,
        build_v4);
