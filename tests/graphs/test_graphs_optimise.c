/* The optimiser's passes: a table of patterns with their required result; random graphs full of
 * them, with outputs equal bit for bit; operation counts of Owl's networks. */
#include "tests/support/interpret.h"
#include "tests/support/test.h"

#include <math.h>

#include "graphs/core/rng.h"
#include "graphs/ops/ops_priv.h"
#include "graphs/passes/optimise/optimise.h"
#include "graphs/source.h"

static const char head[] =
    "graph g\ninput x f32 [2,3]\ninput y f32 [2,3]\ninput s f32 [1]\ninput i i32 [2,3]\n"
    "input row f32 [1,3]\ninput v f32 [1,2,4,4]\nweight zero f32 [2,3] = splat 0\n"
    "weight minus f32 [1] = splat -0\nweight one f32 [2,3] = data 1 1 1 1 1 1\n"
    "weight nearly f32 [2,3] = data 1 1 1 1 1 2\nweight i0 i32 [1] = splat 0\n"
    "weight i1 i32 [] = splat 1\nweight tiny f32 [] = splat 1e-32\n"
    "weight small f32 [] = splat 1e-8\nweight tall f32 [4,2,3] = splat 1\n"
    "weight w f32 [3,2,1,1] = data 1 2 3 4 5 6\nweight b f32 [3] = data 1 2 3\n"
    "weight p f32 [3] = data 0.5 1 1.5\nweight q f32 [3] = data 4 5 6\nweight f0 f32 [] = splat 0\n"
    "weight f6 f32 [] = splat 6\nweight image f32 [1,2,4,4] = splat 2\n"
    "weight w3 f32 [2,2,1,1] = data 1 -2 0.5 -1\nweight o2 f32 [2] = data 0.5 -1\n"
    "weight p2 f32 [2] = data 2 3\nweight by2 f32 [2,1,1] = data -2 0.25\n"
    "weight i2 f32 [1,2,1,1] = data 7 -3\nweight column f32 [4] = data 1 2 3 4\n"
    "weight more f32 [1,1,2,1,1] = data 1 2\nweight w1 f32 [2,1,1,1] = data 3 -2\n"
    "weight endless f32 [] = splat inf\nweight e1 f32 [1] = splat 2\n";

/* Lines separated by ';'; the last value is the output. places: edits of all passes; n_ops:
 * operations left. */
static const struct {
    const char *name, *passes, *lines;
    uint32_t places, n_ops;
} cases[] = {
    {"x - 0", "add_zero", "a = sub(x, zero); z = neg(a)", 1, 1},
    {"0 - x", "add_zero", "a = sub(zero, x); z = neg(a)", 0, 2},
    {"x + 0 keeps -0", "add_zero", "a = add(x, zero); z = neg(a)", 0, 2},
    {"x + 0", "add_zero,unsafe", "a = add(x, zero); z = neg(a)", 1, 1},
    {"0 + x", "add_zero,unsafe", "a = add(zero, x); z = neg(a)", 1, 1},
    {"x + -0", "add_zero", "a = add(x, minus); z = neg(a)", 1, 1},
    {"x - -0 keeps -0", "add_zero", "a = sub(x, minus); z = neg(a)", 0, 2},
    {"i + 0", "add_zero", "a = add(i0, i); z = neg(a)", 1, 1},
    {"row + 0 becomes larger", "add_zero,unsafe", "a = add(row, zero); z = neg(a)", 0, 2},
    {"an output keeps its name", "add_zero", "z = sub(x, zero)", 0, 1},
    {"x * 1", "mul_one", "a = mul(x, one); z = neg(a)", 1, 1},
    {"1 * i", "mul_one", "a = mul(i1, i); z = neg(a)", 1, 1},
    {"not all are 1", "mul_one", "a = mul(x, nearly); z = neg(a)", 0, 2},
    {"x / 1", "div_one", "a = div(x, one); z = neg(a)", 1, 1},
    {"1 / x", "div_one", "a = div(one, x); z = neg(a)", 0, 2},
    {"x * 0 keeps NaN", "mul_zero", "a = mul(x, zero); z = neg(a)", 0, 2},
    {"x * 0", "mul_zero,unsafe", "a = mul(x, zero); z = add(a, y)", 1, 1},
    {"0 * i", "mul_zero", "a = mul(i0, i); z = add(a, i)", 1, 1},
    {"0 / x keeps NaN", "zero_div", "a = div(zero, x); z = add(a, y)", 0, 2},
    {"0 / x", "zero_div,unsafe", "a = div(zero, x); z = add(a, y)", 1, 1},
    {"0 / i", "zero_div", "z = div(i0, i)", 1, 0},
    {"i / 0", "zero_div", "z = div(i, i0)", 0, 1},
    {"s * zeros", "scalar_zeros,unsafe", "a = mul(s, zero); z = add(a, y)", 1, 1},
    {"s * zeros keeps NaN", "scalar_zeros", "a = mul(s, zero); z = add(a, y)", 0, 2},
    {"x * zeros is no scalar", "scalar_zeros,unsafe", "a = mul(x, zero); z = add(a, y)", 0, 2},
    {"s * ones", "scalar_ones", "z = mul(one, s)", 1, 1},
    {"s * ones is then broadcast", "scalar_ones,broadcast", "a = mul(s, one); z = add(a, y)", 2, 1},
    {"a * b + c", "fma", "a = mul(x, row); z = add(a, y)", 1, 1},
    {"c + a * b", "fma", "a = mul(i, i); z = add(i, a)", 1, 1},
    {"the product is read twice", "fma", "a = mul(x, y); b2 = add(a, y); z = add(a, b2)", 0, 3},
    {"the product is added to itself", "fma", "a = mul(x, y); z = add(a, a)", 0, 2},
    {"the product is an output", "fma", "a = mul(x, y); z = add(a, y); output a", 0, 2},
    {"two products", "fma", "a = mul(x, y); c = mul(x, x); z = add(a, c)", 1, 2},
    {"a * b - c", "fma", "a = mul(x, y); z = sub(a, x)", 0, 2},
    {"narrow floats", "fma", "h = cast(x) to=f16; a = mul(h, h); z = add(a, h)", 0, 3},
    {"c / sqrt(x + 1e-32)", "adagrad", "a = add(x, tiny); r = sqrt(a); z = div(y, r)", 1, 1},
    {"c / sqrt(1e-32 + x)", "adagrad", "a = add(tiny, x); r = sqrt(a); z = div(s, r)", 1, 1},
    {"c / sqrt(x + 1e-8)", "adagrad", "a = add(x, small); r = sqrt(a); z = div(y, r)", 0, 3},
    {"the root is read twice", "adagrad",
     "a = add(x, tiny); r = sqrt(a); c = div(y, r); z = add(c, r)", 0, 4},
    {"sqrt / c", "adagrad", "a = add(x, tiny); r = sqrt(a); z = div(r, y)", 0, 3},
    {"x times y turned", "dot_transpose", "t = transpose(y) perm=[1,0]; z = matmul(x, t)", 1, 1},
    {"x turned times y", "dot_transpose", "t = transpose(x); z = matmul(t, y)", 1, 1},
    ROW("both", "dot_transpose",
        "t = transpose(x); u = transpose(y); e = transpose(x); "
        "m = matmul(x, u); z = gemm(t, m) trans_a=0",
        2, 2),
    {"gemm turned back", "dot_transpose",
     "t = transpose(x); z = gemm(t, y) trans_a=1 trans_b=1 alpha=2.0", 1, 1},
    ROW("turned for two", "dot_transpose",
        "t = transpose(y); a = matmul(x, t); c = matmul(t, x); d = reduce_sum(c); z = add(a, d)", 0,
        5),
    {"not turned", "dot_transpose",
     "t = transpose(row) perm=[0,1]; u = reshape(t) shape=[3,1]; z = matmul(x, u)", 0, 3},
    {"identity", "identity", "a = identity(x); z = neg(a)", 1, 1},
    {"dropout", "identity", "a, _ = dropout(x); z = neg(a)", 1, 1},
    {"a mask that is read", "identity", "a, m = dropout(x); n = not(m); z = where(n, a, y)", 0, 3},
    {"cast to its own type", "copy", "a = cast(x) to=f32; z = neg(a)", 1, 1},
    {"a cast", "copy", "a = cast(x) to=f64; z = neg(a)", 0, 2},
    {"reshape to its own dims", "copy", "a = reshape(x) shape=[2,3]; z = neg(a)", 1, 1},
    {"a turn of nothing", "copy", "a = transpose(x) perm=[0,1]; z = neg(a)", 1, 1},
    {"a square is turned", "copy",
     "q2 = slice(x) starts=[0] ends=[2] axes=[1]; a = transpose(q2); z = neg(a)", 0, 3},
    {"a whole slice", "copy", "a = slice(x) starts=[0] ends=[3] axes=[1]; z = neg(a)", 1, 1},
    {"a whole slice, backwards", "copy",
     "a = slice(x) starts=[-1] ends=[-9] axes=[1] steps=[-1]; z = neg(a)", 0, 2},
    {"concat of one", "copy", "a = concat(x) axis=0; z = neg(a)", 1, 1},
    {"sum of one", "copy", "a = sum(x); z = neg(a)", 1, 1},
    {"sum of two", "copy", "a = sum(x, y); z = neg(a)", 0, 2},
    {"expand, then add", "broadcast", "a = expand(row) shape=[2,3]; z = add(a, y)", 1, 1},
    {"tile, then mul", "broadcast", "a = tile(row) repeats=[2,1]; z = mul(y, a)", 1, 1},
    {"tile of more than 1", "broadcast",
     "a = tile(x) repeats=[2,1]; u = concat(y, y) axis=0; z = mul(u, a)", 0, 3},
    {"the expand decides the dims", "broadcast", "a = expand(row) shape=[2,3]; z = add(a, row)", 0,
     2},
    {"one of two expands decides", "broadcast",
     "a = expand(row) shape=[2,3]; c = expand(s) shape=[2,3]; z = add(a, c)", 1, 2},
    {"expand, then neg", "broadcast", "a = expand(row) shape=[2,3]; z = neg(a)", 0, 2},
    {"max of one row", "reduce_one", "a = reduce_max(row) axes=[0] keepdims=0; z = neg(a)", 1, 2},
    {"then a copy", "reduce_one,copy", "a = reduce_max(row) axes=[0]; z = neg(a)", 2, 1},
    {"sum of one row keeps -0 as 0", "reduce_one", "a = reduce_sum(row) axes=[0]; z = neg(a)", 0,
     2},
    {"sum of one row", "reduce_one,unsafe", "a = reduce_sum(row) axes=[0]; z = neg(a)", 1, 2},
    {"max of two rows", "reduce_one", "a = reduce_max(x) axes=[0]; z = neg(a)", 0, 2},
    {"norm of one row", "reduce_one,unsafe", "a = reduce_l1(row) axes=[0]; z = neg(a)", 0, 2},
    {"constants", "fold", "a = add(nearly, one); c = mul(a, a); z = add(x, c)", 2, 1},
    {"a constant output", "fold", "z = add(nearly, one)", 1, 0},
    {"nothing constant", "fold", "a = add(x, one); z = mul(a, a)", 0, 2},
    {"reshape of a constant", "reshape_const", "a = reshape(nearly) shape=[2,3]; z = add(x, a)", 1,
     1},
    {"no other operation of one", "reshape_const", "a = neg(nearly); z = add(x, a)", 0, 2},
    {"the same twice", "cse", "a = tanh(x); c = tanh(x); z = add(a, c)", 1, 2},
    {"and what follows from it", "cse",
     "a = tanh(x); c = tanh(x); d = exp(a); e = exp(c); z = add(d, e)", 2, 3},
    {"other operands", "cse", "a = tanh(x); c = tanh(y); z = add(a, c)", 0, 3},
    {"other order", "cse", "a = sub(x, y); c = sub(y, x); z = add(a, c)", 0, 3},
    {"other attributes", "cse", "a = elu(x) alpha=2.0; c = elu(x) alpha=3.0; z = add(a, c)", 0, 3},
    {"an attribute left out", "cse", "a = elu(x) alpha=2.0; c = elu(x); z = add(a, c)", 0, 3},
    {"equal constants", "cse", "a = add(x, tiny); c = add(x, tiny); z = mul(a, c)", 1, 2},
    {"constants that differ", "cse", "a = add(x, tiny); c = add(x, small); z = mul(a, c)", 0, 3},
    {"the second is an output", "cse", "a = tanh(x); c = tanh(x); z = add(a, c); output c", 0, 3},
    {"what nobody reads", "dead_code", "a = tanh(x); c = exp(a); z = neg(y)", 2, 1},
    {"what somebody reads", "dead_code", "a = tanh(x); z = exp(a)", 0, 2},
    {"conv, then batch norm", "conv_bn", "a = conv(v, w, b); z = batch_norm(a, p, b, b, q)", 1, 1},
    {"without offset", "conv_bn",
     "a = conv(v, w) pads=[1,1,1,1]; z = batch_norm(a, p, b, b, q) epsilon=0.5", 1, 1},
    {"the convolution is read twice", "conv_bn",
     "a = conv(v, w); c = batch_norm(a, p, b, b, q); z = add(a, c)", 0, 3},
    {"batch norm by itself", "bn_fma", "z = batch_norm(v, p2, o2, o2, p2) epsilon=0.5", 1, 1},
    {"batch norm of two dims by itself", "bn_fma", "z = batch_norm(x, p, b, b, q)", 1, 1},
    {"batch norm of one dim by itself", "bn_fma", "z = batch_norm(s, e1, e1, e1, e1)", 0, 1},
    {"batch norm of narrow floats by itself", "bn_fma",
     "h = cast(v) to=f16; c = cast(p2) to=f16; z = batch_norm(h, c, c, c, c)", 0, 3},
    {"batch norm of a variance that is not known", "bn_fma",
     "t = exp(o2); z = batch_norm(v, p2, o2, o2, t)", 0, 2},
    {"batch norm whose numbers are of another type", "bn_fma",
     "c = cast(v) to=f64; z = batch_norm(c, p2, o2, o2, p2)", 0, 2},
    {"the convolution before takes it", "conv_bn,bn_fma",
     "a = conv(v, w, b); z = batch_norm(a, p, b, b, q)", 1, 1},
    {"batch norm, times a number a channel", "bn_scale",
     "n = batch_norm(v, p2, o2, o2, p2); z = mul(n, by2)", 1, 1},
    {"a number a channel plus batch norm", "bn_scale",
     "n = batch_norm(v, p2, o2, o2, p2) epsilon=0.5; z = add(by2, n)", 1, 1},
    {"times one number, plus another", "bn_scale",
     "n = batch_norm(v, p2, o2, o2, p2); a = mul(f6, n); z = add(a, i2)", 2, 1},
    {"a row of a batch norm of two dims", "bn_scale",
     "n = batch_norm(x, p, b, b, q); z = mul(n, p)", 1, 1},
    {"batch norm times itself", "bn_scale", "n = batch_norm(v, p2, o2, o2, p2); z = mul(n, n)", 0,
     2},
    {"batch norm that is read twice", "bn_scale",
     "n = batch_norm(v, p2, o2, o2, p2); a = mul(n, by2); z = add(a, n)", 0, 3},
    {"batch norm that is an output", "bn_scale",
     "n = batch_norm(v, p2, o2, o2, p2); z = mul(n, by2); output n", 0, 2},
    {"times a number a pixel", "bn_scale", "n = batch_norm(v, p2, o2, o2, p2); z = mul(n, image)",
     0, 2},
    {"times a number a column", "bn_scale", "n = batch_norm(v, p2, o2, o2, p2); z = mul(n, column)",
     0, 2},
    {"times a number a column, as many as channels", "bn_scale",
     "r = slice(v) starts=[0] ends=[2] axes=[3]; n = batch_norm(r, p2, o2, o2, p2); z = mul(n, o2)",
     0, 3},
    ROW("one channel, times a number for each of two", "bn_scale",
        "r = slice(v) starts=[0] ends=[1] axes=[1]; n = batch_norm(r, e1, e1, e1, e1); z = mul(n, "
        "by2)",
        0, 3),
    {"batch norm of one dim", "bn_scale", "n = batch_norm(s, e1, e1, e1, e1); z = mul(n, f6)", 0,
     2},
    {"times a number a channel of more dims", "bn_scale",
     "n = batch_norm(v, p2, o2, o2, p2); z = mul(n, more)", 0, 2},
    {"times what is not known", "bn_scale", "n = batch_norm(v, p2, o2, o2, p2); z = mul(n, s)", 0,
     2},
    {"a scale that is not known", "bn_scale",
     "t = tanh(o2); n = batch_norm(v, t, o2, o2, p2); z = mul(n, by2)", 0, 3},
    ROW("batch norm of narrow floats", "bn_scale",
        "h = cast(v) to=f16; c = cast(p2) to=f16; k = cast(by2) to=f16; n = batch_norm(h, c, c, c, "
        "c); z = mul(n, k)",
        0, 5),
    {"minus a number a channel", "bn_scale", "n = batch_norm(v, p2, o2, o2, p2); z = sub(n, i2)", 1,
     1},
    {"a number a channel minus batch norm", "bn_scale",
     "n = batch_norm(v, p2, o2, o2, p2) epsilon=0.5; z = sub(i2, n)", 1, 1},
    {"over a number a channel", "bn_scale", "n = batch_norm(v, p2, o2, o2, p2); z = div(n, by2)", 1,
     1},
    {"a number a channel over batch norm", "bn_scale",
     "n = batch_norm(v, p2, o2, o2, p2); z = div(by2, n)", 0, 2},
    {"over zero", "bn_scale", "n = batch_norm(v, p2, o2, o2, p2); z = div(n, f0)", 0, 2},
    {"plus infinity", "bn_scale", "n = batch_norm(v, p2, o2, o2, p2); z = add(n, endless)", 0, 2},
    {"conv, times a number a channel", "conv_scale", "a = conv(v, w3); z = mul(a, by2)", 1, 1},
    {"conv with an offset, times", "conv_scale",
     "a = conv(v, w3, o2) strides=[2,1]; z = mul(by2, a)", 1, 1},
    {"conv, plus a number a channel", "conv_scale", "a = conv(v, w3); z = add(by2, a)", 1, 1},
    {"conv with an offset, plus", "conv_scale",
     "a = conv(v, w3, o2) pads=[1,1,0,0]; z = add(a, by2)", 1, 1},
    {"grouped conv, times and plus", "conv_scale",
     "a = conv(v, w1) group=2; c = mul(a, by2); z = add(c, i2)", 2, 1},
    {"conv, minus, over", "conv_scale", "a = conv(v, w3, o2); c = sub(by2, a); z = div(c, i2)", 2,
     1},
    {"conv without an offset, minus", "conv_scale", "a = conv(v, w3); z = sub(a, by2)", 1, 1},
    {"conv times a column", "conv_scale", "a = conv(v, w3); z = mul(a, column)", 0, 2},
    {"a filter that is not known", "conv_scale", "t = tanh(w3); a = conv(v, t); z = mul(a, by2)", 0,
     3},
    {"conv, batch norm, times, plus, relu", "bn_scale,conv_bn,conv_scale,conv_relu",
     "a = conv(v, w3); n = batch_norm(a, p2, o2, o2, p2); c = mul(n, by2); d = add(c, i2); z = "
     "relu(d)",
     4, 1},
    {"matmul + row", "gemm_bias", "t = transpose(y); a = matmul(x, t); z = add(a, o2)", 1, 2},
    {"row + gemm", "gemm_bias", "a = gemm(x, y) trans_b=1; z = add(o2, a)", 1, 1},
    {"gemm that has a c", "gemm_bias", "a = gemm(x, y, o2) trans_b=1; z = add(a, o2)", 0, 2},
    {"a product that is read twice", "gemm_bias",
     "a = gemm(x, y) trans_b=1; c = add(a, o2); z = mul(a, c)", 0, 3},
    {"gemm + x", "gemm_sum",
     "a = gemm(x, y) trans_b=1; c = gemm(y, y) trans_b=1; d = tanh(c); z = add(a, d)", 1, 3},
    {"gemm + gemm", "gemm_sum",
     "a = gemm(x, y, o2) trans_b=1; c = gemm(y, x) trans_b=1; z = sum(a, c)", 1, 2},
    ROW("half a gemm", "gemm_sum",
        "a = gemm(x, y) trans_b=1 alpha=0.5; d = tanh(a); c = gemm(y, y) trans_b=1 alpha=0.5; z = "
        "add(c, d)",
        0, 4),
    {"many products + x", "gemm_sum", "a = matmul(v, v); z = add(a, v)", 0, 2},
    {"many products + row", "gemm_bias",
     "r = slice(v) starts=[0,0] ends=[2,2] axes=[2,3]; a = matmul(r, r); z = add(a, o2)", 0, 3},
    {"many products, then relu", "gemm_relu", "a = matmul(v, v); z = relu(a)", 0, 2},
    ROW("many times a transpose", "dot_transpose",
        "r = slice(v) starts=[0,0] ends=[3,3] axes=[2,3]; t = transpose(y); a = matmul(r, t); z = "
        "neg(a)",
        0, 4),
    {"gemm, then relu", "gemm_relu", "a = gemm(x, y, o2) trans_b=1 alpha=0.5; z = relu(a)", 1, 1},
    {"matmul, then relu6", "gemm_relu", "t = transpose(y); a = matmul(x, t); z = clip(a, f0, f6)",
     1, 2},
    {"gemm of integers, then relu", "gemm_relu", "a = gemm(i, i) trans_b=1; z = relu(a)", 0, 2},
    ROW("dense layer", "dot_transpose,gemm_bias,gemm_sum,gemm_relu",
        "t = transpose(y); a = matmul(x, t); c = add(a, o2); e = gemm(y, y) trans_b=1; d = "
        "tanh(e); f = add(d, c); z = relu(f)",
        4, 3),
    {"conv, then relu", "conv_relu", "a = conv(v, w, b) strides=[2,1]; z = relu(a)", 1, 1},
    {"conv, then relu6", "conv_relu", "a = conv(v, w); z = clip(a, f0, f6)", 1, 1},
    {"conv, then clip from 0 on", "conv_relu", "a = conv(v, w); z = clip(a, f0)", 1, 1},
    {"clip to another number", "conv_relu", "a = conv(v, w); z = clip(a, f0, tiny)", 0, 2},
    {"clip from another number", "conv_relu", "a = conv(v, w); z = clip(a, tiny, f6)", 0, 2},
    {"clip from nowhere", "conv_relu", "a = conv(v, w); z = clip(a, _, f6)", 0, 2},
    {"clip to a number not known", "conv_relu",
     "t = reshape(s) shape=[]; a = conv(v, w); z = clip(a, f0, t)", 0, 3},
    {"relu of a convolution that is read twice", "conv_relu",
     "a = conv(v, w); c = relu(a); z = add(a, c)", 0, 3},
    {"relu of a convolution that is an output", "conv_relu",
     "a = conv(v, w); z = relu(a); output a", 0, 2},
    {"relu of relu", "conv_relu", "a = conv(v, w); c = relu(a); z = clip(c, f0, f6)", 1, 2},
    {"conv + x", "conv_sum", "a = conv(v, w3, o2); z = add(a, v)", 1, 1},
    {"x + conv", "conv_sum", "y2 = tanh(v); a = conv(v, w3) pads=[0,0,0,0]; z = add(y2, a)", 1, 2},
    {"conv + conv", "conv_sum", "a = conv(v, w3); c = conv(v, w3, o2); z = add(c, a)", 1, 2},
    {"sum of two", "conv_sum", "a = conv(v, w3); z = sum(v, a)", 1, 1},
    {"sum of three", "conv_sum", "a = conv(v, w3); z = sum(v, a, v)", 0, 2},
    {"conv twice", "conv_sum", "a = conv(v, w3); z = add(a, a)", 0, 2},
    {"a sum of a convolution that is read twice", "conv_sum",
     "a = conv(v, w3); c = add(a, v); z = mul(a, c)", 0, 3},
    {"conv + row", "conv_sum",
     "a = conv(v, w3); r = slice(v) starts=[0] ends=[1] axes=[2]; z = add(a, r)", 0, 3},
    {"conv + constant", "conv_sum", "a = conv(v, w3); z = add(a, image)", 0, 2},
    {"narrow sums", "conv_sum",
     "h = cast(v) to=f16; k = cast(w3) to=f16; a = conv(h, k); z = add(a, h)", 0, 4},
    {"conv, sum, relu", "conv_sum,conv_relu", "a = conv(v, w3, o2); c = add(v, a); z = relu(c)", 2,
     1},
    {"conv, sum, relu6, relu", "conv_sum,conv_relu",
     "a = conv(v, w3); c = add(v, a); d = clip(c, f0, f6); z = relu(d)", 2, 2},
    {"relu, then sum", "conv_sum,conv_relu", "a = conv(v, w3); c = relu(a); z = add(v, c)", 1, 2},
    {"conv, batch norm, sum, relu6", "conv_bn,conv_sum,conv_relu",
     "a = conv(v, w3); n = batch_norm(a, p2, o2, o2, p2); c = add(v, n); z = clip(c, f0, f6)", 3,
     1},
    ROW("all together", "all,unsafe",
        "a = add(x, zero); c = mul(a, one); d = identity(c); e = mul(d, y); f = add(e, x); "
        "k = mul(f, zero); l = add(f, k); z = neg(l)",
        6, 2),
};

static mpl_graph *read_case(mpl_ctx *ctx, const char *lines)
{
    char text[4000];
    mpl_graph *g = NULL;
    int n = snprintf(text, sizeof text, "%s%s\noutput z\n", head, lines);

    for (int i = 0; i < n; i++)
        text[i] = text[i] == ';' ? '\n' : text[i];
    if (mpl_text_read_memory(ctx, "case", text, (size_t)n, &g) != MPL_OK)
        fail_msg("%s: %s", lines, ctx->message);
    return g;
}

/* Special numbers among small ones; `tame`: positive, without infinities or NaN. */
static void fill(const mpl_graph *g, interpreter *it, uint64_t seed, bool tame)
{
    static const double special[] = {-0.0, 0, INFINITY, -INFINITY, NAN, 1, -1};
    mpl_rng rng;

    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_role[v] == MPL_INPUT ||
            (g->value_role[v] == MPL_WEIGHT && g->value_data[v] == NULL)) {
            uint64_t size = mpl_type_bytes((mpl_type)g->value_type[v]);

            mpl_rng_init(&rng, mpl_hash(seed, g->value_name[v], strlen(g->value_name[v])));
            for (uint64_t i = 0; i < g->value_bytes[v] / size; i++) {
                double number = mpl_rng_float(&rng) * 4 + 0.25;
                uint32_t pick = (uint32_t)mpl_rng_below(&rng, 14);

                mpl_put((mpl_type)g->value_type[v], it->data[v], (int64_t)i,
                        tame || pick >= 7 || !mpl_type_in((mpl_type)g->value_type[v], MPL_SET_FLOAT)
                            ? number
                            : special[pick]);
            }
        }
}

/* Bitwise equal except NaN; tolerance < 0: numerically, so that -0 equals 0. */
static bool same(mpl_type type, const void *a, const void *b, int64_t i, double tolerance)
{
    double x = mpl_get(type, a, i), y = mpl_get(type, b, i);

    if (tolerance > 0)
        return x == y || fabs(x - y) <= tolerance * fmax(1, fabs(y));
    return (isnan(x) && isnan(y)) || (x == y && (tolerance < 0 || signbit(x) == signbit(y)));
}

static void assert_same(mpl_ctx *ctx, const char *what, const mpl_graph *was, const mpl_graph *is,
                        uint64_t seed, bool tame, double tolerance)
{
    interpreter a = interpret_begin(ctx, was), b = interpret_begin(ctx, is);

    fill(was, &a, seed, tame);
    fill(is, &b, seed, tame);
    assert_ok(ctx, interpret(&a));
    assert_ok(ctx, interpret(&b));
    assert_int_equal(was->n_outputs, is->n_outputs);
    for (uint32_t k = 0; k < was->n_outputs; k++) {
        mpl_value v = was->output[k], w = is->output[k];
        mpl_type type = (mpl_type)was->value_type[v];

        assert_string_equal(was->value_name[v], is->value_name[w]);
        assert_int_equal(type, is->value_type[w]);
        assert_true(mpl_shape_equal(&was->value_shape[v], &is->value_shape[w]));
        for (uint64_t i = 0; i < was->value_bytes[v] / mpl_type_bytes(type); i++)
            if (!same(type, a.data[v], b.data[w], (int64_t)i, tolerance))
                fail_msg("%s, seed %" PRIu64 ": output %s, element %" PRIu64 " was %.9g, is %.9g",
                         what, seed, was->value_name[v], i, mpl_get(type, a.data[v], (int64_t)i),
                         mpl_get(type, b.data[w], (int64_t)i));
    }
    interpret_end(&a);
    interpret_end(&b);
}

static double tolerance_of(const mpl_pass_set *set)
{
    double most = set->unsafe ? -1 : 0;

    for (int i = 0; i < MPL_N_PASSES; i++)
        most = set->on[i] && mpl_pass_table[i].tolerance > 0 ? mpl_pass_table[i].tolerance : most;
    return most;
}

TEST(test_patterns)
{
    bool met[MPL_N_PASSES] = {false};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        owned_graph *was = read_case(ctx, cases[i].lines), *is = read_case(ctx, cases[i].lines);
        mpl_pass_count count[MPL_N_PASSES];
        mpl_pass_set set;
        uint32_t places = 0;
        int64_t less = 0;

        assert_ok(ctx, mpl_pass_set_parse(ctx, cases[i].passes, &set));
        assert_ok(ctx, mpl_graph_optimise(ctx, &is, &set, NULL, count));
        for (int k = 0; k < MPL_N_PASSES; k++) {
            places += count[k].places;
            less += count[k].ops_less;
            met[k] = met[k] || count[k].places > 0;
        }
        if (places != cases[i].places || is->n_ops != cases[i].n_ops ||
            less != (int64_t)was->n_ops - is->n_ops)
            fail_msg("%s: %u places, %u operations left, %d less; %u and %u were expected",
                     cases[i].name, places, is->n_ops, (int)less, cases[i].places, cases[i].n_ops);
        for (uint64_t seed = 1; seed <= 5; seed++)
            assert_same(ctx, cases[i].name, was, is, seed, set.unsafe || tolerance_of(&set) > 0,
                        tolerance_of(&set));
    }
    for (int k = 0; k < MPL_N_PASSES; k++)
        if (!met[k])
            fail_msg("no case in which %s finds anything", mpl_pass_table[k].name);
}

/* ---- random graphs ---- */

/* A line that makes v<i> from earlier values, mostly the latest; values are [2,3] f32. */
static int random_line(mpl_rng *rng, uint32_t i, char *text, size_t size)
{
    static const char *const form[] = ROW(
        "v%u = add(%s, zero)\n", "v%u = sub(%s, zero)\n", "v%u = add(minus, %s)\n",
        "v%u = mul(one, %s)\n", "v%u = mul(%s, one)\n", "v%u = div(%s, one)\n",
        "v%u = mul(%s, zero)\n", "v%u = tanh(%s)\n", "v%u = div(zero, %s)\n",
        "v%u = identity(%s)\n", "v%u, _ = dropout(%s)\n", "v%u = relu(%s)\n",
        "v%u = cast(%s) to=f32\n", "v%u = sum(%s)\n", "v%u = abs(%s)\n", "v%u = tanh(%s)\n",
        "v%u = add(%s, %s)\n", "v%u = mul(%s, %s)\n", "v%u = add(%s, %s)\n", "v%u = mul(%s, %s)\n",
        "m%u = transpose(%s)\nk%u = matmul(%s, m%u)\nv%u = matmul(k%u, %s)\n",
        "m%u = add(%s, tiny)\nk%u = sqrt(m%u)\nv%u = div(%s, k%u)\n",
        "m%u = reduce_max(%s) axes=[0]\nk%u = expand(m%u) shape=[2,3]\nv%u = sub(%s, k%u)\n",
        "m%u = reduce_sum(%s) axes=[0]\nk%u = reduce_min(m%u) axes=[0]\nv%u = add(%s, k%u)\n",
        "m%u = mul(nearly, one)\nk%u = reshape(m%u) shape=[2,3]\nv%u = add(%s, k%u)\n");
    uint32_t kind = (uint32_t)mpl_rng_below(rng, sizeof form / sizeof *form);
    char a[16], b[16];
    char *const name[2] = {a, b};

    for (int k = 0; k < 2; k++) {
        uint32_t far = mpl_rng_below(rng, 4) == 0 ? i + 2 : i + 2 < 4 ? i + 2 : 4;
        uint32_t back = (uint32_t)mpl_rng_below(rng, far) + 1;

        if (back > i)
            snprintf(name[k], 16, "%c", back - i == 1 ? 'x' : 'y');
        else
            snprintf(name[k], 16, "v%u", i - back);
    }
    switch (kind) {
    case 20:
        return snprintf(text, size, form[kind], i, a, i, b, i, i, i, a);
    case 21:
    case 22:
    case 23:
        return snprintf(text, size, form[kind], i, a, i, i, i, b, i);
    case 24:
        return snprintf(text, size, form[kind], i, i, i, i, a, i);
    default:
        return snprintf(text, size, form[kind], i, a, b);
    }
}

static mpl_graph *random_patterns(mpl_ctx *ctx, uint64_t seed)
{
    char text[8000];
    int n = snprintf(text, sizeof text, "%s", head);
    uint32_t n_lines;
    mpl_rng rng;
    mpl_graph *g = NULL;

    mpl_rng_init(&rng, seed);
    n_lines = 3 + (uint32_t)mpl_rng_below(&rng, 25);
    for (uint32_t i = 0; i < n_lines; i++)
        n += random_line(&rng, i, text + n, sizeof text - (size_t)n);
    n += snprintf(text + n, sizeof text - (size_t)n, "output v%u\noutput v%u\n", n_lines - 1,
                  n_lines / 2);
    if (mpl_text_read_memory(ctx, "random", text, (size_t)n, &g) != MPL_OK)
        fail_msg("%s: %s", text, ctx->message);
    return g;
}

TEST(test_random)
{
    uint64_t places = 0;

    for (uint64_t seed = 1; seed <= 600; seed++) {
        mpl_pass_set set;
        mpl_pass_count count[MPL_N_PASSES];
        owned_graph *was = random_patterns(ctx, seed), *is = random_patterns(ctx, seed);

        /* two thirds run one pass after another, the rest all together */
        assert_ok(ctx,
                  mpl_pass_set_parse(
                      ctx, seed % 3 == 0 ? "all" : mpl_pass_table[seed % MPL_N_PASSES].name, &set));
        assert_ok(ctx, mpl_graph_optimise(ctx, &is, &set, NULL, count));
        assert_true(mpl_graph_ok(is));
        for (int k = 0; k < MPL_N_PASSES; k++)
            places += count[k].places;
        assert_same(ctx, seed % 3 == 0 ? "all" : mpl_pass_table[seed % MPL_N_PASSES].name, was, is,
                    seed, false, 0);
    }
    assert_true(places > 600);
}

/* ---- graphs with control flow, networks, the list of passes, memory ---- */

static const char loop[] =
    "graph g\ninput x f32 [2,3]\nweight one f32 [] = splat 1\nweight trips i64 [] = splat 3\n"
    "a = mul(x, one)\nc = tanh(a)\nd = tanh(a)\nblock body\n  param t i64 []\n  param h f32 [2,3]\n"
    "  e = mul(h, one)\n  f = add(e, d)\nyield _, f\nr = while body(trips, _, c) carried=1\n"
    "k = mul(r, one)\nz = add(k, d)\noutput z\n";

TEST(test_blocks)
{
    owned_graph *was = NULL, *is = NULL;
    mpl_pass_set set;
    mpl_pass_count count[MPL_N_PASSES];

    assert_ok(ctx, mpl_text_read_memory(ctx, "loop", loop, sizeof loop - 1, &was));
    assert_ok(ctx, mpl_text_read_memory(ctx, "loop", loop, sizeof loop - 1, &is));
    assert_ok(ctx, mpl_pass_set_parse(ctx, "all", &set));
    assert_ok(ctx, mpl_graph_optimise(ctx, &is, &set, NULL, count));
    assert_int_equal(count[MPL_PASS_mul_one].places, 2); /* the one that stays in the block */
    assert_int_equal(count[MPL_PASS_cse].places, 1);
    assert_int_equal(is->n_ops, 5);
    assert_same(ctx, "loop", was, is, 1, false, 0);
}

/* An operation that overwrites a weight is refused, and the graph stays intact. */
TEST(test_updates)
{
    static const char text[] = "graph g\ninput x f32 [3]\nweight w f32 [3]\ng2 = tanh(x)\n"
                               "w2 = sgd_update(g2, w)\noutput w2\n";
    owned_graph *g = NULL;
    mpl_pass_set set;

    assert_ok(ctx, mpl_text_read_memory(ctx, "update", text, sizeof text - 1, &g));
    assert_ok(ctx, mpl_pass_set_parse(ctx, "all", &set));
    assert_status(ctx, mpl_graph_optimise(ctx, &g, &set, NULL, NULL), MPL_EINPUT);
    assert_true(mpl_graph_ok(g));
}

static mpl_status seeded(void *arg, const mpl_graph *g, mpl_value v, void *data)
{
    mpl_rng rng;

    (void)arg;
    mpl_rng_init(&rng, mpl_hash(7, g->value_name[v], strlen(g->value_name[v])));
    for (uint64_t i = 0; i < g->value_bytes[v] / sizeof(float); i++)
        ((float *)data)[i] = mpl_rng_float(&rng) * 0.5f + 0.25f;
    return MPL_OK;
}

/* spec, passes, operations before and after, sum of result bytes after [10^6 byte]. The first two
 * are Owl's simulated numbers, but the second also fuses the bias of the dense layer; after a
 * convolution, biases and means disappear too. */
static const struct {
    const char *spec, *passes;
    uint32_t n_before, n_after;
    double sum;
} networks[] = {
    {"resnet50:form=owl", "fma", 500, 447, 271.8},
    {"resnet50:form=owl", "fma,gemm_bias", 500, 446, 271.8},
    {"resnet50:form=owl", "all", 500, 340, 187.1},
    {"inception_v3:form=owl", "fma", 883, 789, 236.9},
    {"mobilenet_v2:image=32", "conv_bn,identity", 154, 101, 1.1},
    {"mobilenet_v2:image=32", "conv_bn,identity,conv_sum,conv_relu", 154, 56, 0.563},
    {"resnet50:image=32", "conv_bn", 176, 123, 2.183},
    {"resnet50:image=32", "conv_bn,conv_sum,conv_relu", 176, 58, 0.948},
};

TEST(test_networks)
{
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        owned_graph *g = NULL;
        mpl_pass_set set;
        double sum = 0;

        assert_ok(ctx, mpl_zoo_build(ctx, networks[i].spec, &g));
        assert_int_equal(g->n_ops, networks[i].n_before);
        assert_ok(ctx, mpl_pass_set_parse(ctx, networks[i].passes, &set));
        assert_ok(ctx, mpl_graph_optimise(ctx, &g, &set, &(mpl_weight_source){seeded, NULL}, NULL));
        assert_int_equal(g->n_ops, networks[i].n_after);
        for (mpl_value v = 0; v < g->n_values; v++)
            sum += g->value_op[v] != MPL_NONE ? (double)g->value_bytes[v] * 1e-6 : 0;
        assert_float_equal(sum, networks[i].sum, 0.05);
    }
}

TEST(test_lists)
{
    static const char *const wrong[] = {"", "all,", "fma,none", "unsafe", "fmaa", "fm"};
    mpl_pass_set set;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_status(ctx, mpl_pass_set_parse(ctx, wrong[i], &set), MPL_EINPUT);
    assert_ok(ctx, mpl_pass_set_parse(ctx, "none", &set));
    for (int k = 0; k < MPL_N_PASSES; k++)
        assert_false(set.on[k]);
    assert_ok(ctx, mpl_pass_set_parse(ctx, "fma,unsafe", &set));
    assert_true(set.on[MPL_PASS_fma] && set.unsafe && !set.on[MPL_PASS_cse]);
    assert_ok(ctx, mpl_pass_set_parse(ctx, "all", &set));
    assert_false(set.unsafe || set.on[MPL_PASS_bn_fma]);
}

/* Nothing stays allocated if the k-th allocation fails. */
TEST(test_memory)
{
    static const char lines[] =
        "a = sub(x, zero); c = conv(v, w); d = batch_norm(c, p, b, b, q); e = mul(one, s); f = "
        "add(nearly, one); h = mul(a, f); k = add(h, e); l = tanh(k); n = tanh(k); o = mul(l, n); "
        "r = reduce_sum(d); u = mul(i, i0); t = cast(u) to=f32; q2 = add(o, t); z = add(q2, r)";
    mpl_status st = MPL_EMEM;

    for (int64_t k = 0; st != MPL_OK; k++) {
        mpl_graph *g = read_case(ctx, lines);
        mpl_pass_set set;

        assert_ok(ctx, mpl_pass_set_parse(ctx, "all", &set));
        ctx->fail_after = ctx->n_allocs + k;
        st = mpl_graph_optimise(ctx, &g, &set, NULL, NULL);
        ctx->fail_after = -1;
        assert_true(st == MPL_OK || st == MPL_EMEM);
        mpl_graph_free(ctx, g);
        assert_int_equal(ctx->n_live, 0);
    }
}

TESTS(test_patterns, test_random, test_blocks, test_updates, test_networks, test_lists, test_memory)
