/* Gradients against central differences of the loss, in f64 by the reference loops: every operator
 * with a rule, and whole zoo networks. Fault: a wrong rule, loop or sum of parts; updates at the
 * wrong place; an order that reads a weight after its update. */
#include "graphs/ir/counts.h"
#include "tests/support/interpret.h"

#include "graphs/ops/ops_priv.h"
#include "graphs/passes/autodiff/gradients_priv.h"

#include <math.h>

/* ---- one training graph ---- */

/* Reads the text with f64 for f32. */
static mpl_graph *read_double(mpl_ctx *ctx, const char *text)
{
    char *copy = strdup(text);
    mpl_graph *g = NULL;

    for (char *at = copy; (at = strstr(at, " f32 ")) != NULL;)
        memcpy(at, " f64 ", 5);
    assert_ok(ctx, mpl_text_read_memory(ctx, "test", copy, strlen(copy), &g));
    free(copy);
    return g;
}

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

/* Fills inputs and weights: scales, variances and divisors in [0.5, 1.5], others in [-1, 1]; labels
 * cycle, indices (i) cycle below 3. */
static void fill(interpreter *it, uint64_t seed, int64_t classes)
{
    const mpl_graph *g = it->g;

    for (mpl_value v = 0; v < g->n_values; v++) {
        uint64_t n = 0;
        const char *name = g->value_name[v];
        bool positive =
            ends_with(name, "scale") || ends_with(name, "var") || ends_with(name, "_pos");

        mpl_shape_count(&g->value_shape[v], &n);
        if (g->value_op[v] != MPL_NONE || g->value_data[v] != NULL)
            continue;
        for (uint64_t i = 0; i < n; i++)
            if (g->value_type[v] == MPL_TYPE_i64)
                ((int64_t *)it->data[v])[i] =
                    (int64_t)(i * 7 + 1) % (ends_with(name, "segments") ? 2
                                            : strcmp(name, "i") == 0    ? 3
                                                                        : classes);
            else
                mpl_put((mpl_type)g->value_type[v], it->data[v], (int64_t)i,
                        positive ? 0.5 + draw_share(&seed) : 2 * draw_share(&seed) - 1);
    }
}

static int64_t classes_of(const mpl_graph *g)
{
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_kind[op] == MPL_OP_softmax_cross_entropy)
            return g->value_shape[g->op_in[g->op_in_begin[op]]].dim[1];
    return 1;
}

static double loss_of(mpl_ctx *ctx, interpreter *it)
{
    assert_ok(ctx, interpret(it));
    return *(double *)it->data[it->g->output[0]];
}

/* Checks elements of the gradients: all, or `most` of each weight, spread over it. */
static uint64_t check_gradients(mpl_ctx *ctx, const char *name, const mpl_graph *g, uint64_t most,
                                double tolerance)
{
    const double h = 1e-5;
    interpreter it = interpret_begin(ctx, g), back = interpret_begin(ctx, g);
    uint64_t n_checked = 0;
    uint32_t n_weights = 0;

    fill(&it, 1, classes_of(g));
    fill(&back, 1, classes_of(g));
    loss_of(ctx, &back);
    for (mpl_value w = 0; w < g->n_values; w++) {
        const char *text = g->value_name[w];
        mpl_value grad;
        uint64_t n = 0, step;

        if (g->value_role[w] != MPL_WEIGHT || g->value_data[w] != NULL || ends_with(text, "mean") ||
            ends_with(text, "var"))
            continue;
        grad = g->output[++n_weights]; /* gradients follow the loss, in the order of the weights */
        assert_true(mpl_shape_equal(&g->value_shape[w], &g->value_shape[grad]));
        mpl_shape_count(&g->value_shape[w], &n);
        step = n / most + 1;
        for (uint64_t i = 0; i < n; i += step, n_checked++) {
            double *x = (double *)it.data[w] + i, whole = *x, up, down, want,
                   got = ((double *)back.data[grad])[i];

            *x = whole + h;
            up = loss_of(ctx, &it);
            *x = whole - h;
            down = loss_of(ctx, &it);
            *x = whole;
            want = (up - down) / (2 * h);
            if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
                fail_msg("%s: %s[%" PRIu64 "] is %.10g, by differences %.10g", name, text, i, got,
                         want);
        }
    }
    interpret_end(&it);
    interpret_end(&back);
    return n_checked;
}

/* ---- every operator with a rule ---- */

typedef struct row {
    mpl_op_kind kind;
    const char *text; /* of the graph; x is an input, others are weights; y is the output */
} row;

#define UNARY(op)                                                                                  \
    {                                                                                              \
        MPL_OP_##op, "graph t\ninput x f32 [2,3]\nweight w f32 [2,3]\nz = mul(x, w)\ny = " #op     \
                     "(z)\noutput y\n"                                                             \
    }
#define POSITIVE(op)                                                                               \
    {                                                                                              \
        MPL_OP_##op, "graph t\ninput x_pos f32 [2,3]\nweight w_pos f32 [2,3]\nz = mul(x_pos, "     \
                     "w_pos)\ny = " #op "(z)\noutput y\n"                                          \
    }
#define BINARY(op, dims)                                                                           \
    {                                                                                              \
        MPL_OP_##op, "graph t\nweight a_pos f32 [2,3]\nweight b_pos f32 " dims "\ny = " #op        \
                     "(a_pos, b_pos)\noutput y\n"                                                  \
    }
#define CONV(dims, weight, bias, attributes)                                                       \
    {                                                                                              \
        MPL_OP_conv,                                                                               \
            "graph t\ninput x f32 " dims "\nweight v f32 " dims "\nweight w f32 " weight           \
            "\nweight b f32 " bias "\nz = mul(x, v)\ny = conv(z, w, b) " attributes "\noutput y\n" \
    }
#define POOL(op, dims, attributes)                                                                 \
    {                                                                                              \
        MPL_OP_##op, "graph t\ninput x f32 " dims "\nweight w f32 " dims                           \
                     "\nz = mul(x, w)\ny = " #op "(z) " attributes "\noutput y\n"                  \
    }
#define TRANSPOSED(dims, weight, bias, attributes)                                                 \
    {                                                                                              \
        MPL_OP_conv_transpose,                                                                     \
            "graph t\ninput x f32 " dims "\nweight v f32 " dims "\nweight w f32 " weight           \
            "\nweight b f32 " bias "\nz = mul(x, v)\ny = conv_transpose(z, w, b) " attributes      \
            "\noutput y\n"                                                                         \
    }
#define GEMM(a, b, c, attributes)                                                                  \
    {                                                                                              \
        MPL_OP_gemm, "graph t\nweight a f32 " a "\nweight b f32 " b "\nweight c f32 " c            \
                     "\ny = gemm(a, b, c) " attributes "\noutput y\n"                              \
    }
#define GATHER(dims, index, axis)                                                                  \
    {                                                                                              \
        MPL_OP_gather, "graph t\nweight w f32 " dims "\ninput i i64 " index                        \
                       "\nz = tanh(w)\ny = gather(z, i) axis=" axis "\noutput y\n"                 \
    }
#define LOSS(lines)                                                                                \
    {                                                                                              \
        MPL_OP_softmax_cross_entropy,                                                              \
            "graph t\nweight w f32 [4,3]\ninput l i64 [4]\n" lines "output y\n"                    \
    }
#define MATMUL(a, b) TURNED(a, b, "")
#define TURNED(a, b, attributes)                                                                   \
    {                                                                                              \
        MPL_OP_matmul, "graph t\nweight a f32 " a "\nweight b f32 " b                              \
                       "\ny = matmul(a, b) " attributes "\noutput y\n"                             \
    }

#define NORM(op, dims, scale, attributes)                                                          \
    {                                                                                              \
        MPL_OP_##op, "graph t\ninput x f32 " dims "\nweight w f32 " dims                           \
                     "\nweight scale f32 " scale "\nweight b f32 " scale                           \
                     "\nz = mul(x, w)\ny = " #op "(z, scale, b) " attributes "\noutput y\n"        \
    }

static const row rows[] = {
    UNARY(leaky_relu),
    UNARY(elu),
    UNARY(selu),
    UNARY(celu),
    UNARY(gelu),
    POOL(gelu, "[3,4]", "approximate=tanh"),
    POOL(elu, "[3,4]", "alpha=0.7"),
    POOL(leaky_relu, "[3,4]", "alpha=0.3"),
    POOL(celu, "[3,4]", "alpha=1.7"),
    POOL(selu, "[3,4]", "alpha=1.2 gamma=0.8"),
    UNARY(hard_sigmoid),
    POOL(hard_sigmoid, "[3,4]", "alpha=0.9 beta=0.5"),
    UNARY(hard_swish),
    {MPL_OP_hard_swish, "graph t\nweight w f32 [3,5]\nweight c f32 [] = data 6.0\nz = mul(w, c)\n"
                        "y = hard_swish(z)\noutput y\n"},
    UNARY(swish),
    POOL(swish, "[3,4]", "alpha=1.4"),
    UNARY(mish),
    UNARY(softsign),
    UNARY(erf),
    UNARY(tan),
    POOL(asin, "[3,4]", ""),
    POOL(acos, "[3,4]", ""),
    UNARY(atan),
    UNARY(sinh),
    UNARY(cosh),
    UNARY(asinh),
    {MPL_OP_acosh,
     "graph t\nweight w_pos f32 [2,3]\nweight c f32 [] = data 1.5\nz = add(w_pos, c)\n"
     "y = acosh(z)\noutput y\n"},
    POOL(atanh, "[3,4]", ""),
    POOL(thresholded_relu, "[3,4]", "alpha=0.1"),
    POOL(shrink, "[3,5]", "lambd=0.2 bias=0.1"),
    POOL(cast, "[3,4]", "to=f64"),
    BINARY(pow, "[3]"),
    {MPL_OP_pow,
     "graph t\nweight w f32 [2,3]\nweight c f32 [] = data 2\ny = pow(w, c)\noutput y\n"},
    {MPL_OP_prelu,
     "graph t\nweight a f32 [2,3,4]\nweight b f32 [3,1]\ny = prelu(a, b)\noutput y\n"},
    MATMUL("[3]", "[3,4]"),
    MATMUL("[2,3]", "[3]"),
    MATMUL("[2,4,3]", "[3]"),
    MATMUL("[3]", "[2,3,4]"),
    NORM(layer_norm, "[2,3,4]", "[4]", "axis=-1 epsilon=0.01"),
    NORM(layer_norm, "[2,3,4]", "[3,4]", "axis=1"),
    NORM(instance_norm, "[2,3,4,2]", "[3]", "epsilon=0.02"),
    NORM(group_norm, "[2,4,3]", "[4]", "num_groups=2"),
    {MPL_OP_rms_norm, "graph t\ninput x f32 [2,3,4]\nweight w f32 [2,3,4]\nweight scale f32 [4]\n"
                      "z = mul(x, w)\ny = rms_norm(z, scale) axis=-1\noutput y\n"},
    POOL(log_softmax, "[2,3,4]", "axis=1"),
    POOL(reduce_min, "[2,3,4]", "axes=[2] keepdims=0"),
    POOL(reduce_l1, "[2,3,4]", "axes=[1] keepdims=0"),
    POOL(reduce_l2, "[2,3,4]", "axes=[0,2] keepdims=1"),
    POOL(reduce_sum_square, "[2,3,4]", "axes=[1] keepdims=0"),
    POOL(reduce_log_sum_exp, "[2,3,4]", "axes=[-1] keepdims=0"),
    POOL(global_max_pool, "[2,3,3,2]", ""),
    POOL(trilu, "[2,4,3]", "k=1 upper=1"),
    POOL(trilu, "[4,4]", "upper=0"),
    POOL(cumsum, "[2,4]", "axis=1"),
    POOL(cumsum, "[2,4]", "axis=0 exclusive=1 reverse=1"),
    POOL(tile, "[2,1,3]", "repeats=[3,1,2]"),
    POOL(depth_to_space, "[2,8,2,3]", "blocksize=2"),
    POOL(depth_to_space, "[1,8,2,3]", "blocksize=2 mode=CRD"),
    POOL(space_to_depth, "[2,2,4,6]", "blocksize=2"),
    {MPL_OP_top_k,
     "graph t\nweight w f32 [2,5]\nz = tanh(w)\ny, p = top_k(z) k=2 axis=1\noutput y\n"},
    {MPL_OP_gather_elements, "graph t\nweight w f32 [3,4]\ninput i i64 [2,4]\nz = tanh(w)\n"
                             "y = gather_elements(z, i) axis=0\noutput y\n"},
    {MPL_OP_scatter_elements,
     "graph t\nweight w f32 [3,2]\nweight v f32 [3,1]\ninput l i64 [3,1]\nz = tanh(w)\n"
     "y = scatter_elements(z, l, v) axis=1\noutput y\n"},
    {MPL_OP_scatter_elements,
     "graph t\nweight w f32 [3,4]\nweight v f32 [2,4]\ninput i i64 [2,4]\nz = tanh(w)\n"
     "y = scatter_elements(z, i, v) axis=0 reduction=add\noutput y\n"},
    {MPL_OP_scatter_nd, "graph t\nweight w f32 [5,3]\nweight v f32 [2,3]\ninput i i64 [2,1]\n"
                        "z = tanh(w)\ny = scatter_nd(z, i, v)\noutput y\n"},
    {MPL_OP_scatter_nd, "graph t\nweight w f32 [5,3]\nweight v f32 [6,3]\ninput i i64 [6,1]\n"
                        "z = tanh(w)\ny = scatter_nd(z, i, v) reduction=add\noutput y\n"},
    UNARY(relu),
    UNARY(sigmoid),
    UNARY(tanh),
    UNARY(exp),
    UNARY(neg),
    UNARY(sin),
    UNARY(cos),
    UNARY(softplus),
    UNARY(abs),
    UNARY(identity),
    UNARY(dropout),
    UNARY(transpose),
    POSITIVE(log),
    POSITIVE(sqrt),
    POSITIVE(reciprocal),
    {MPL_OP_clip,
     "graph t\nweight w f32 [4,5]\nweight low f32 [] = data -0.4\nweight high f32 [] = data 0.5\n"
     "y = clip(w, low, high)\noutput y\n"},
    {MPL_OP_clip, "graph t\nweight w f32 [4,5]\nweight high f32 [] = data 0.5\ny = clip(w, _, "
                  "high)\noutput y\n"},
    BINARY(add, "[2,3]"),
    BINARY(add, "[3]"),
    BINARY(add, "[2,1]"),
    BINARY(sub, "[1,3]"),
    BINARY(mul, "[2,1]"),
    BINARY(mul, "[]"),
    BINARY(div, "[3]"),
    BINARY(sum, "[3]"),
    BINARY(mean, "[2,1]"),
    BINARY(min, "[3]"),
    BINARY(max, "[2,1]"),
    {MPL_OP_max,
     "graph t\nweight a f32 [2,3]\nweight b f32 [3]\nweight c f32 [] = data 0.2\ny = max(a, b, c)\n"
     "output y\n"},
    {MPL_OP_where,
     "graph t\nweight a f32 [2,3]\nweight b f32 [3]\ninput x f32 [2,1]\n"
     "weight zero f32 [] = data 0.2\nt = less(x, zero)\ny = where(t, a, b)\noutput y\n"},
    {MPL_OP_mul, "graph t\nweight w f32 [2,3]\ny = mul(w, w)\noutput y\n"},
    {MPL_OP_add, "graph t\nweight w f32 [2,3]\na = tanh(w)\nb = exp(w)\nc = add(a, b)\ny = add(c, "
                 "w)\noutput y\n"},
    MATMUL("[2,3]", "[3,4]"),
    MATMUL("[2,3,4]", "[4,2]"),
    MATMUL("[2,2,3]", "[2,3,2]"),
    TURNED("[2,3]", "[4,3]", "trans_b=1"),
    TURNED("[2,3,2]", "[3,4]", "trans_a=1"),
    TURNED("[2,3,2]", "[1,4,3]", "trans_a=1 trans_b=1"),
    GEMM("[2,3]", "[3,4]", "[4]", ""),
    GEMM("[3,2]", "[4,3]", "[2,1]", "trans_a=1 trans_b=1 alpha=0.5 beta=2.0"),
    GEMM("[2,3]", "[4,3]", "[4]", "trans_b=1 alpha=0.5 beta=3.0"),
    GEMM("[3,2]", "[3,4]", "[1,4]", "trans_a=1"),
    CONV("[2,3,5,4]", "[4,3,3,2]", "[4]", ""),
    CONV("[2,2,6,5]", "[4,2,3,3]", "[4]", "strides=[2,2] pads=[1,0,1,2]"),
    CONV("[1,4,5,5]", "[4,2,2,2]", "[4]", "group=2 dilations=[2,1] pads=[0,1,2,1]"),
    CONV("[1,3,6,6]", "[3,1,3,3]", "[3]", "group=3 strides=[2,1]"),
    CONV("[2,2,7]", "[3,2,3]", "[3]", "strides=[2]"),
    CONV("[1,2,3,4,3]", "[2,2,2,2,2]", "[2]", "pads=[1,0,0,0,1,0]"),
    TRANSPOSED("[2,3,3,4]", "[3,2,3,2]", "[2]", ""),
    TRANSPOSED("[1,4,3,3]", "[4,2,2,2]", "[4]", "group=2 strides=[2,2] output_padding=[1,0]"),
    TRANSPOSED("[1,2,4,3]", "[2,3,3,3]", "[3]", "strides=[2,1] pads=[1,0,1,1] dilations=[1,2]"),
    TRANSPOSED("[2,2,5]", "[2,1,3]", "[1]", "strides=[3] pads=[1,0]"),
    POOL(resize, "[1,2,2,3]",
         "mode=nearest coordinate_mode=asymmetric nearest_mode=floor sizes=[1,2,4,9]"),
    POOL(resize, "[2,3]",
         "mode=nearest coordinate_mode=asymmetric nearest_mode=floor scales=[3.0,1.0]"),
    POOL(max_pool, "[2,2,5,5]", "kernel_shape=[2,2] strides=[2,2]"),
    POOL(max_pool, "[1,2,6,6]", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]"),
    POOL(max_pool, "[1,1,6,7]", "kernel_shape=[3,2] strides=[2,3] ceil_mode=1"),
    POOL(avg_pool, "[2,2,5,5]", "kernel_shape=[3,3] strides=[1,2]"),
    POOL(avg_pool, "[1,2,6,6]", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]"),
    POOL(avg_pool, "[1,2,6,6]",
         "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] count_include_pad=1 ceil_mode=1"),
    POOL(global_avg_pool, "[2,3,3,2]", ""),
    POOL(lrn, "[2,5,2,2]", "size=3 alpha=0.5 beta=0.75 bias=1.0"),
    POOL(lrn, "[1,5,3]", "size=4 alpha=0.9 beta=0.6 bias=2.0"),
    POOL(softmax, "[2,3,4]", "axis=1"),
    POOL(reduce_sum, "[2,3,4]", "axes=[1] keepdims=0"),
    POOL(reduce_sum, "[2,3]", ""),
    POOL(reduce_mean, "[2,3,4]", "axes=[0,-1] keepdims=1"),
    POOL(reduce_max, "[2,3,4]", "axes=[2] keepdims=0"),
    POOL(reshape, "[2,3,4]", "shape=[6,4]"),
    POOL(flatten, "[2,3,4]", "axis=1"),
    POOL(squeeze, "[2,1,4]", "axes=[1]"),
    POOL(unsqueeze, "[2,4]", "axes=[1]"),
    POOL(transpose, "[2,3,4]", "perm=[1,2,0]"),
    POOL(slice, "[4,5]", "starts=[1,-3] ends=[3,100] axes=[0,1]"),
    POOL(slice, "[6,5]", "starts=[4,0] ends=[0,5] axes=[0,1] steps=[-2,2]"),
    POOL(slice, "[3,4]", "starts=[-1] ends=[-100] axes=[1] steps=[-1]"),
    POOL(slice, "[3,4]", "starts=[100] ends=[1] axes=[1] steps=[-1]"),
    POOL(split, "[2,5]", "axis=1"),
    POOL(pad, "[2,3]", "pads=[0,1,2,3]"),
    POOL(expand, "[2,1,3]", "shape=[2,4,3]"),
    {MPL_OP_batch_norm, "graph t\ninput x f32 [3,2,2,2]\nweight w f32 [3,2,2,2]\nweight scale f32 "
                        "[2]\nweight b f32 [2]\n"
                        "weight mean f32 [2]\nweight var f32 [2]\nz = mul(x, w)\n"
                        "y = batch_norm(z, scale, b, mean, var) epsilon=0.01\noutput y\n"},
    {MPL_OP_batch_norm,
     "graph t\nweight w f32 [5,3]\nweight scale f32 [3]\nweight b f32 [3]\nweight mean f32 [3]\n"
     "weight var f32 [3]\ny = batch_norm(w, scale, b, mean, var)\noutput y\n"},
    {MPL_OP_concat, "graph t\nweight a f32 [2,3]\ninput x f32 [2,1]\nweight b f32 [2,2]\n"
                    "y = concat(x, a, b, a) axis=1\noutput y\n"},
    {MPL_OP_split, "graph t\nweight w f32 [2,6]\na, b, c = split(w) axis=1 split=[1,2,3]\n"
                   "d = mul(c, c)\ne = tanh(a)\ny = concat(d, e) axis=1\noutput y\n"},
    GATHER("[5,2]", "[2,3]", "0"),
    GATHER("[2,5,3]", "[4]", "1"),
    GATHER("[2,2,5]", "[2,2]", "-1"),
    GATHER("[5]", "[2]", "0"),
    {MPL_OP_gather_nd, "graph t\nweight w f32 [3,4,2]\ninput i i64 [2,3,2]\nz = tanh(w)\n"
                       "y = gather_nd(z, i)\noutput y\n"},
    {MPL_OP_gather_nd,
     "graph t\nweight w f32 [5,3]\ninput i i64 [6,1]\ny = gather_nd(w, i)\noutput y\n"},
    POOL(access, "[4,6]", "index=\"1:3,::-2\""),
    POOL(access, "[4,6]", "dims=[3,2] strides=[6,-1] offset=5"),
    {MPL_OP_access, "graph t\nweight w f32 [4,6]\nz = tanh(w)\na = access(z) index=\"1,:\"\n"
                    "b = access(z) index=\"::2,:\"\nc = mul(a, b)\ny = add(c, a)\noutput y\n"},
    {MPL_OP_assign, "graph t\nweight w f32 [4,6]\nweight v f32 [3]\nz = tanh(w)\n"
                    "a = assign(z, v) index=\"1:3,::2\"\ny = mul(a, z)\noutput y\n"},
    {MPL_OP_assign,
     "graph t\ninput x f32 [4,6]\nweight v f32 [2,1]\ny = assign(x, v) index=\"0:2,:\"\n"
     "output y\n"},
    LOSS("y, p = softmax_cross_entropy(w, l)\n"),
    LOSS("a, p = softmax_cross_entropy(w, l)\nb = tanh(w)\nc = reduce_mean(b) keepdims=0\ny = "
         "mul(a, c)\n"),
    {MPL_OP_softmax, "graph t\nweight w f32 [2,3]\nz = tanh(w)\ny = softmax(z) axis=1\noutput y\n"},
};

/* Reads of parts of a value: its gradient, and the number of operations of a kind that make it. */
typedef struct pieces {
    const char *text;
    uint32_t pad, concat, assign, access;
} pieces;

#define PIECES(weights, lines)                                                                     \
    "graph t\ninput x f32 [4,6]\nweight v f32 [4,6]\n" weights "z = mul(x, v)\n" lines "output "   \
    "y\n"

static const pieces piece_rows[] = {
    /* adjacent: a concat */
    {PIECES("",
            "a = slice(z) starts=[2] ends=[6] axes=[1]\nb = slice(z) starts=[0] ends=[2] axes=[1]\n"
            "c = tanh(b)\ny = concat(a, c) axis=1\n"),
     0, 1, 0, 0},
    ROW(PIECES(
            "",
            "b = slice(z) starts=[0] ends=[2] axes=[1]\na = slice(z) starts=[2] ends=[6] axes=[1]\n"
            "c = tanh(b)\ny = concat(a, c) axis=1\n"),
        0, 1, 0, 0),
    /* disjoint, with unread elements: the first is padded with zeros, the others are written in
       place */
    {PIECES("",
            "a = slice(z) starts=[0] ends=[2] axes=[1]\nb = slice(z) starts=[4] ends=[6] axes=[1]\n"
            "y = mul(a, b)\n"),
     1, 0, 1, 0},
    {PIECES("", "a = slice(z) starts=[0,0] ends=[2,2] axes=[0,1]\nb = slice(z) starts=[2,4] "
                "ends=[4,6] axes=[0,1]\n"
                "c = slice(z) starts=[0,3] ends=[2,5] axes=[0,1]\nd = mul(a, b)\ny = add(d, c)\n"),
     1, 0, 2, 0},
    /* overlapping: accumulated */
    {PIECES("",
            "a = slice(z) starts=[0] ends=[4] axes=[1]\nb = slice(z) starts=[2] ends=[6] axes=[1]\n"
            "y = mul(a, b)\n"),
     1, 0, 1, 1},
    /* interleaved elements: disjoint */
    {PIECES("", "a = slice(z) starts=[0] ends=[6] axes=[1] steps=[2]\n"
                "b = slice(z) starts=[5] ends=[-100] axes=[1] steps=[-2]\ny = mul(a, b)\n"),
     0, 0, 2, 0},
    /* also read as a whole */
    {PIECES("", "a = slice(z) starts=[1] ends=[3] axes=[1]\nb = reduce_sum(z) axes=[1] "
                "keepdims=1\ny = mul(a, b)\n"),
     0, 0, 1, 1},
    {PIECES("",
            "a = slice(z) starts=[1] ends=[3] axes=[1]\nb = tanh(z)\nc = exp(z)\nd = mul(b, c)\n"
            "e = slice(d) starts=[4] ends=[6] axes=[1]\ny = mul(a, e)\n"),
     1, 0, 1, 1},
    /* a split with outputs that the loss does not depend on */
    {PIECES("", "a, b, c = split(z) axis=1 split=[1,2,3]\nd = tanh(b)\ny = concat(d, a) axis=1\n"),
     1, 0, 1, 0},
    {PIECES("", "a, b, c = split(z) axis=1\nd = tanh(b)\ne = mul(c, a)\ny = add(d, e)\n"), 0, 1, 0,
     0},
    ROW(PIECES("", "a, b = split(z) axis=0 split=[1,3]\nc = slice(z) starts=[3] ends=[4] axes=[0]\n"
                   "d = mul(a, c)\ny = concat(b, d) axis=0\n"),
        1, 0, 2, 1),
    /* read whole, once */
    {PIECES("", "y = slice(z) starts=[0] ends=[6] axes=[1]\n"), 0, 0, 0, 0},
};

static const mpl_autodiff_options variants[] = {
    {.chained = false, .apart = false},
    {.chained = true, .apart = true},
    {.chained = true, .apart = false, .gradients = MPL_GRADIENTS_PINNED},
    {.frozen = true},
};

TEST(each_rule_agrees_with_differences)
{
    bool seen[MPL_N_OPS] = {false};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < sizeof variants / sizeof *variants; k++) {
            mpl_autodiff_options options;
            owned_graph *g, *t = NULL;
            char name[300];

            g = read_double(ctx, rows[i].text);
            options = variants[k];
            options.own_loss = rows[i].kind == MPL_OP_softmax_cross_entropy;
            assert_ok(ctx, mpl_autodiff(ctx, g, &options, &t));
            snprintf(name, sizeof name, "row %zu (%s), variant %zu", i,
                     mpl_op_table[rows[i].kind].name, k);
            assert_true(check_gradients(ctx, name, t, 1000, 1e-7) > 0);
            seen[rows[i].kind] = true;
        }
    for (int kind = 0; kind < MPL_N_OPS; kind++)
        if (mpl_grad_rules[kind] != NULL && !seen[kind] && kind != MPL_OP_user)
            fail_msg("the rule of %s has no row", mpl_op_table[kind].name);
}

/* ---- whole networks ---- */

typedef struct network {
    const char *spec;
    uint64_t most; /* elements of each weight */
    bool slow;
} network;

static const network networks[] = {
    {"mlp:batch=3,layers=2,input=5,hidden=4,classes=3", 6, false},
    {"mnist_conv:batch=2,image=4,classes=3", 2, false},
    {"lstm:batch=2,layers=2,steps=3,hidden=3", 3, false},
    {"randwire:regime=cell,batch=1,image=32,channels=1,nodes=5", 2, false},
    {"bert:batch=2,seq=3,layers=1,hidden=6,heads=2,vocab=7,classes=3", 3, false},
    {"gpt:cache=none,batch=2,seq=3,layers=1,hidden=6,heads=2,vocab=7,context=4", 3, false},
    {"encoder_decoder:batch=2,seq=3,answer=4,layers=1,hidden=6,heads=2,vocab=7", 3, false},
    {"moe:seq=5,answer=4,layers=2,hidden=6,heads=2,vocab=7,experts=3,topk=2,capacity=80", 2, false},
    {"moe:seq=4,answer=3,layers=2,hidden=4,heads=2,vocab=7,experts=2", 2, false},
    {"vit:batch=2,image=16,patch=8,layers=1,hidden=6,heads=2,classes=3", 3, false},
    {"swin:image=32,window=2,layers=2,hidden=2,heads=1,classes=3", 1, false},
    {"mamba:batch=2,seq=3,layers=1,hidden=3,state=2,vocab=5", 4, false},
    {"mamba:batch=2,seq=3,layers=1,hidden=3,state=2,vocab=5,form=unroll", 4, false},
    {"unet:image=8,channels=2,levels=2,blocks=1", 2, false},
};

TEST(networks_agree_with_differences)
{
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        owned_graph *g = NULL, *d, *t = NULL;
        owned_memory char *text = NULL;
        size_t size;

        assert_ok(ctx, mpl_zoo_build(ctx, networks[i].spec, &g));
        assert_ok(ctx, mpl_text_write_memory(ctx, g, &text, &size));
        d = read_double(ctx, text);
        assert_ok(ctx, mpl_autodiff(ctx, d, &variants[i % 2], &t));
        assert_true(check_gradients(ctx, networks[i].spec, t, networks[i].most, 1e-6) > 0);
    }
}

/* Every network can be trained in every way; names, text and hash survive; each order tried keeps
 * readers of a weight before its update. */
TEST(every_network_trains)
{
    static const char *const ways[] = {"",
                                       ",update=sgd",
                                       ",update=momentum,gradients=pinned",
                                       ",update=adagrad,accumulate=chain",
                                       ",update=adam,products=apart",
                                       ",update=adamw"};
    uint32_t n = 0;

    for (const mpl_zoo_entry *const *z = mpl_zoo; *z != NULL; z++, n++) {
        mpl_graph *g = NULL, *again = NULL;
        char spec[200], *text = NULL;
        size_t size;
        bool learns = false, pair = strcmp((*z)->name, "pair") == 0;

        assert_ok(ctx, mpl_zoo_build(ctx, (*z)->name, &g));
        for (mpl_value v = 0; v < g->n_values; v++)
            learns = learns || (g->value_role[v] == MPL_WEIGHT && g->value_data[v] == NULL);
        mpl_graph_free(ctx, g);
        snprintf(spec, sizeof spec, "%s:mode=train%s", (*z)->name, ways[n % 6]);
        if (!learns || pair) { /* a program without weights; two networks side by side */
            assert_status(ctx, mpl_zoo_build(ctx, spec, &g), MPL_EINPUT);
            assert_non_null(strstr(ctx->message, learns ? "training needs exactly one"
                                                        : "there is nothing to learn"));
            continue;
        }
        assert_ok(ctx, mpl_zoo_build(ctx, spec, &g));
        assert_string_equal(g->name, spec);
        assert_ok(ctx, mpl_text_write_memory(ctx, g, &text, &size));
        assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, size, &again));
        assert_int_equal(mpl_graph_hash(g), mpl_graph_hash(again));
        mpl_free(ctx, text);
        mpl_graph_free(ctx, g);
        mpl_graph_free(ctx, again);
    }
}

/* ---- updates ---- */

/* One step of each optimiser by hand, from gradient 0.5, weight 2 and the given state. */
TEST(updates_are_their_formulas)
{
    static const struct {
        const char *op;
        double w, first, second;
    } want[] = ROW({"w1 = sgd_update(g, w) rate=0.1", 2 - 0.05, 0, 0},
                   {"w1, m1 = momentum_update(g, w, m) rate=0.1 momentum=0.5", 2 - 0.1 * 1, 1, 0},
                   {"w1, m1 = adagrad_update(g, w, m) rate=0.1 epsilon=0.0",
                    2 - 0.1 * 0.5 / 1.118033988749895, 1.25, 0},
                   {"w1, m1, v1 = adam_update(g, t, w, m, v) rate=0.1 epsilon=0.0",
                    2 - 0.1 * (0.95 / 0.19) / 31.6168438084228, 0.95, 1.99825},
                   {"w1, m1, v1 = adam_update(g, t, w, m, v) rate=0.1 epsilon=0.0 decay=0.5",
                    2 - 0.1 * (0.95 / 0.19) / 31.6168438084228 - 0.1 * 0.5 * 2, 0.95, 1.99825});

    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        owned_graph *g = NULL;
        interpreter it;
        char text[600];

        snprintf(text, sizeof text,
                 "graph t\ninput g f64 []\nweight w f64 [] = data 2\nweight m f64 [] = data 1\n"
                 "weight v f64 [] = data 2\nweight t i64 [] = data 2\n%s\noutput w1\n",
                 want[i].op);
        assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, strlen(text), &g));
        it = interpret_begin(ctx, g);
        *(double *)it.data[mpl_graph_find(g, "g")] = 0.5;
        assert_ok(ctx, interpret(&it));
        assert_true(fabs(*(double *)it.data[g->output[0]] - want[i].w) < 1e-12);
        if (want[i].first != 0)
            assert_true(fabs(*(double *)it.data[mpl_graph_find(g, "m1")] - want[i].first) < 1e-12);
        if (want[i].second != 0)
            assert_true(fabs(*(double *)it.data[mpl_graph_find(g, "v1")] - want[i].second) < 1e-12);
        interpret_end(&it);
    }
}

typedef struct refusal {
    const char *text, *why;
} refusal;

static const refusal refused_updates[] = {
    {"graph t\ninput g f32 [2]\nweight w f32 [2]\ny = relu(w)\nw1 = sgd_update(g, w)\noutput "
     "y\noutput w1\n",
     "need not wait"},
    ROW("graph t\ninput g f32 [2]\nweight w f32 [2]\nv = reshape(w) shape=[1,2]\ny = relu(v)\n"
        "w1 = sgd_update(g, w, v)\noutput y\noutput w1\n",
        "need not wait"),
    {"graph t\ninput g f32 [2]\ninput w f32 [2]\nw1 = sgd_update(g, w)\noutput w1\n", "no weight"},
    ROW("graph t\ninput g f32 [2]\nweight w f32 [2]\na = sgd_update(g, w)\n"
        "b = sgd_update(g, w, a)\noutput a\noutput b\n",
        "twice"),
    {"graph t\ninput g f32 [2]\nweight w f32 [3]\na = sgd_update(g, w)\noutput a\n", "gradient"},
};

TEST(wrong_updates_are_refused)
{
    for (size_t i = 0; i < sizeof refused_updates / sizeof *refused_updates; i++) {
        mpl_graph *g = NULL;
        const char *text = refused_updates[i].text;

        assert_status(ctx, mpl_text_read_memory(ctx, "test", text, strlen(text), &g), MPL_EINPUT);
        if (strstr(ctx->message, refused_updates[i].why) == NULL)
            fail_msg("row %zu says: %s", i, ctx->message);
    }
}

static const refusal refused_graphs[] = {
    {"graph t\nweight w f32 [2,3]\ny = round(w)\noutput y\n", "no rule"},
    {"graph t\ninput x f32 [2,3]\ny = relu(x)\noutput y\n", "there is nothing to learn"},
    {"graph t\ninput x f32 [2,3]\nweight w f32 [2,3]\nz = relu(w)\ny = relu(x)\nv = mul(z, "
     "x)\noutput y\n",
     "depends on no weight"},
    {"graph t\nweight w f32 [2,3]\nz = exp(w)\ny = identity(z) stop=1\noutput y\n",
     "depends on no weight"},
    {"graph t\nweight w f32 [2,3]\ny = resize(w) mode=linear sizes=[4,3]\noutput y\n",
     "nearest element"},
    ROW("graph t\nweight w f32 [2,3]\ny = resize(w) mode=nearest coordinate_mode=asymmetric "
        "nearest_mode=floor sizes=[2,4]\noutput y\n",
        "whole numbers of times"),
    {"graph t\nweight w f32 [2,3]\ny = access(w) dims=[2,2] strides=[0,1]\noutput y\n", "twice"},
    {"graph t\nweight w f32 [2,3]\na = relu(w)\nb = exp(w)\noutput a\noutput b\n", "outputs"},
};

/* Gradients of values read in parts: correct, made by the listed operations, and with at most one
 * memory root. */
TEST(pieces_make_one_gradient)
{
    for (size_t i = 0; i < sizeof piece_rows / sizeof *piece_rows; i++)
        for (size_t k = 0; k < sizeof variants / sizeof *variants; k++) {
            const pieces *want = &piece_rows[i];
            owned_graph *g, *t = NULL;
            char name[32];

            g = read_double(ctx, want->text);
            assert_ok(ctx, mpl_autodiff(ctx, g, &variants[k], &t));
            snprintf(name, sizeof name, "pieces %zu, variant %zu", i, k);
            assert_true(check_gradients(ctx, name, t, 100, 1e-6) > 0);
            if (count_kind(t, MPL_OP_pad) != want->pad ||
                count_kind(t, MPL_OP_access) != want->access ||
                count_kind(t, MPL_OP_assign) != want->assign ||
                count_kind(t, MPL_OP_concat) != count_kind(g, MPL_OP_concat) + want->concat)
                fail_msg("%s: %u pad, %u concat, %u assign, %u access", name,
                         count_kind(t, MPL_OP_pad),
                         count_kind(t, MPL_OP_concat) - count_kind(g, MPL_OP_concat),
                         count_kind(t, MPL_OP_assign), count_kind(t, MPL_OP_access));
        }
}

/* The gradients of sixteen parts of a value are written into one root; peak memory is that root and
 * one part. */
TEST(pieces_share_one_root)
{
    char text[4000];
    size_t n =
        (size_t)snprintf(text, sizeof text, "graph t\nweight w f32 [64,4096]\nz = tanh(w)\n");
    mpl_problem_options o = mpl_problem_options_default();
    const uint64_t root = 64 * 4096 * sizeof(float);
    mpl_autodiff_options options = {.update = MPL_OPTIMISER_SGD};
    owned_graph *g = NULL, *t = NULL;
    mpl_order_run run;
    mpl_op *order;

    for (int i = 0; i < 16; i++) /* rows 4i to 4i + 2; every fourth row is not read */
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "s%d = slice(z) starts=[%d] ends=[%d] axes=[0]\na%d = "
                              "reduce_mean(s%d) axes=[1] keepdims=1\n",
                              i, 4 * i, 4 * i + 3, i, i);
    n += (size_t)snprintf(text + n, sizeof text - n, "y = concat(");
    for (int i = 0; i < 16; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%sa%d", i > 0 ? ", " : "", i);
    n += (size_t)snprintf(text + n, sizeof text - n, ") axis=1\noutput y\n");
    assert_ok(ctx, mpl_text_read_memory(ctx, "test", text, n, &g));
    assert_ok(ctx, mpl_autodiff(ctx, g, &options, &t));
    assert_int_equal(count_kind(t, MPL_OP_assign), 15);
    order = calloc(t->n_ops, sizeof *order);
    assert_non_null(order);
    run = mpl_order_run_default(ctx);
    run.options = &o;
    assert_ok(ctx, mpl_order_make(&run, mpl_order_find("least_peak"), t, order));
    assert_true(run.live_bytes < 2 * root + root / 8); /* z (for its gradient) and the gradient */
    free(order);
}

TEST(what_has_no_gradient_is_refused)
{
    for (size_t i = 0; i < sizeof refused_graphs / sizeof *refused_graphs; i++) {
        owned_graph *g = NULL;
        mpl_graph *t = NULL;

        assert_ok(ctx, mpl_text_read_memory(ctx, "test", refused_graphs[i].text,
                                            strlen(refused_graphs[i].text), &g));
        assert_status(ctx, mpl_autodiff(ctx, g, &variants[0], &t), MPL_EINPUT);
        if (strstr(ctx->message, refused_graphs[i].why) == NULL)
            fail_msg("row %zu says: %s", i, ctx->message);
    }
}

TEST(survives_lost_memory)
{
    mpl_autodiff_options options = {.update = MPL_OPTIMISER_ADAM};

    for (size_t i = 0; i <= sizeof piece_rows / sizeof *piece_rows; i++) {
        owned_graph *g = NULL;

        if (i == 0)
            assert_ok(ctx, mpl_zoo_build(ctx, "mnist_conv:batch=1,image=4", &g));
        else
            g = read_double(ctx, piece_rows[i - 1].text);
        EACH_ALLOCATION_FAILS (ctx, st) {
            owned_graph *t = NULL;

            st = mpl_autodiff(ctx, g, &options, &t);
        }
    }
}

TESTS(each_rule_agrees_with_differences, pieces_make_one_gradient, pieces_share_one_root,
      networks_agree_with_differences, every_network_trains, updates_are_their_formulas,
      wrong_updates_are_refused, what_has_no_gradient_is_refused, survives_lost_memory)
