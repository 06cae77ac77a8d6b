/* test_runtime_ops.c -- conformance: every operator on every backend that opens, against `ref`,
 * within |a
 * - b| <= 1e-6 m + 1e-4 |b|, where m is 1 for element-wise operators (over a wide range of
 *   arguments) and
 * the largest |b|, but at least 1, for those that add many numbers up; and that oneDNN really
 * computes what it can. Our own device kernels take part on a fake device that runs them thread by
 * thread (cuda_fake.h), and on a real one where there is one; and once more with the code for cuDNN
 * and cuBLAS before calls that act as documented (cudnn_host.h).
 *
 * Catches: a wrong layout, axis, pad, group or scale in a backend; approximations that are too
 * coarse; a silent fall back to loops. */
#include "graphs/ir/counts.h"
#include "tests/support/test.h"

#include "harness/job/measure.h"
#include "runtime/exec.h"
#include "tests/device/cuda_fake.h"
#include "tests/device/cudnn_host.h"

#include <math.h>

/* Operands are words "[TYPE:]DIMS[*SCALE][+]" (+: absolute values) or "=NUMBER" (a known f32
 * scalar); "-" leaves one out. Attributes are words "KEY=VALUE". how: what its name on the cpu
 * backend must begin with, behind a "!" must not; NULL: anything. */
typedef struct row {
    const char *op, *in, *attrs;
    uint32_t n_out;
    const char *how;
} row;

#define LOOPS   MPL_HOW_LOOPS
#define LIBRARY "!" LOOPS
#ifdef __x86_64__
#define IS_X64 1 /* oneDNN names its implementations otherwise elsewhere */
#else
#define IS_X64 0
#endif

static const row rows[] = {
    {"relu", "3,77*20", "", 1, "chain"},
    {"leaky_relu", "3,77*20", "alpha=0.2", 1, "jit"},
    {"leaky_relu", "3,77*20", "", 1, "jit"},
    {"leaky_relu", "3,77*20", "alpha=0", 1, LOOPS},
    {"elu", "3,77*20", "alpha=0.7", 1, "jit"},
    {"selu", "3,77*20", "", 1, NULL},
    {"celu", "3,77*20", "alpha=2.0", 1, NULL},
    {"gelu", "3,777*20", "", 1, NULL},
    {"gelu", "3,777*20", "approximate=tanh", 1, NULL},
    {"sigmoid", "3,777*20", "", 1, "jit"},
    {"hard_sigmoid", "3,77*20", "", 1, NULL},
    {"hard_swish", "3,777*20", "", 1, "jit"},
    {"swish", "3,777*20", "", 1, "jit"},
    {"mish", "3,777*20", "", 1, NULL},
    {"softplus", "3,777*20", "", 1, "chain"},
    {"softsign", "3,77*20", "", 1, NULL},
    {"tanh", "3,777*20", "", 1, "jit"},
    {"tanh", "3,777*0.01", "", 1, "jit"},
    {"thresholded_relu", "3,77*20", "alpha=0.5", 1, NULL},
    {"shrink", "3,77*20", "lambd=0.5 bias=0.1", 1, NULL},
    {"exp", "3,777*20", "", 1, "chain"},
    {"log", "3,777*20+", "", 1, "chain"},
    {"sqrt", "3,777*20+", "", 1, "jit"},
    {"neg", "3,77*20", "", 1, "jit"},
    {"abs", "3,77*20", "", 1, "jit"},
    {"reciprocal", "3,77*20", "", 1, NULL},
    {"floor", "3,77*20", "", 1, NULL},
    {"ceil", "3,77*20", "", 1, NULL},
    {"round", "3,77*20", "", 1, "jit"},
    {"sign", "3,77*20", "", 1, NULL},
    {"erf", "3,77*3", "", 1, NULL},
    {"sin", "3,77*20", "", 1, NULL},
    {"cos", "3,77*20", "", 1, NULL},
    {"tan", "3,77", "", 1, NULL},
    {"asin", "3,77", "", 1, NULL},
    {"acos", "3,77", "", 1, NULL},
    {"atan", "3,77*20", "", 1, NULL},
    {"sinh", "3,77*5", "", 1, NULL},
    {"cosh", "3,77*5", "", 1, NULL},
    {"asinh", "3,77*20", "", 1, NULL},
    {"acosh", "3,77*20+", "", 1, NULL}, /* NaN below 1 */
    {"atanh", "3,77*0.9", "", 1, NULL},
    {"not", "bool:3,7", "", 1, LOOPS},
    {"is_nan", "3,7", "", 1, LOOPS},
    {"is_inf", "3,7", "", 1, LOOPS},
    {"bitwise_not", "i32:3,7", "", 1, LOOPS},
    {"cast", "3,7*20", "to=i32", 1, LOOPS},
    {"clip", "3,77*20 =-2 =3", "", 1, "chain"},
    {"clip", "3,77*20 - =3", "", 1, "chain"},
    {"clip", "3,77*20 =-2", "", 1, "chain"},
    {"clip", "3,77*20 =3 =-2", "", 1, "chain"},
    {"clip", "3,77*20 1 1", "", 1, LOOPS},
    {"clip", "3,77*20 =nan =3", "", 1, LOOPS},
    {"clip", "i32:3,7", "", 1, LOOPS},
    {"add", "2,3,4,5 2,3,4,5", "", 1, "jit"},
    {"add", "2,16,4,5 16,1,1", "", 1, "jit"},
    {"add", "16,1,1 2,16,4,5", "", 1, "jit"},
    {"add", "2,3,4,5 5", "", 1, NULL},
    {"add", "2,3,1,5 1,4,1", "", 1, NULL},
    {"add", "2,3 1", "", 1, NULL},
    {"add", "1 1,1", "", 1, NULL},
    {"add", "i64:3 i64:3", "", 1, LOOPS},
    {"add", "f64:3 f64:3", "", 1, LOOPS},
    {"sub", "2,3,4,5 2,3,4,5", "", 1, "jit"},
    {"sub", "5 2,3,4,5", "", 1, NULL},
    {"mul", "2,3,4,5 2,3,4,5", "", 1, "jit"},
    {"mul", "2,16,4,5 1,16,1,1", "", 1, "jit"},
    {"div", "2,3,4,5 2,3,4,5", "", 1, "jit"},
    {"div", "2,1,4,5 2,3,4,5", "", 1, NULL},
    {"pow", "3,77*3+ =2", "", 1, "jit"},
    {"pow", "3,77*3+ =0.5", "", 1, LOOPS},
    {"pow", "3,77*3+ 77", "", 1, LOOPS},
    {"mod", "i32:3,7 =i32:2", "", 1, LOOPS},
    {"prelu", "2,3,4,5 3,1,1", "", 1, NULL},
    {"bitwise_and", "i32:3,7 i32:7", "", 1, LOOPS},
    {"bitwise_or", "i32:3,7 i32:7", "", 1, LOOPS},
    {"bitwise_xor", "i32:3,7 i32:7", "", 1, LOOPS},
    {"bit_shift", "u8:3,7 u8:7", "direction=LEFT", 1, LOOPS},
    {"and", "bool:3,7 bool:7", "", 1, LOOPS},
    {"or", "bool:3,7 bool:7", "", 1, LOOPS},
    {"xor", "bool:3,7 bool:7", "", 1, LOOPS},
    {"equal", "3,7 7", "", 1, LOOPS},
    {"less", "3,7 7", "", 1, LOOPS},
    {"greater", "3,7 7", "", 1, LOOPS},
    {"less_equal", "3,7 7", "", 1, LOOPS},
    {"greater_equal", "3,7 7", "", 1, LOOPS},
    {"min", "3,7 3,7", "", 1, "chain"},
    {"max", "3,7 3,7", "", 1, "chain"},
    {"max", "3,7 3,7 7", "", 1, LOOPS},
    {"sum", "3,7 3,7", "", 1, "jit"},
    {"sum", "3,7 3,7 3,7", "", 1, LOOPS},
    {"mean", "3,7 3,7", "", 1, NULL},
    {"where", "bool:3,7 3,7 7", "", 1, LOOPS},
    {"fma", "3,7 3,7 3,7", "", 1, LOOPS},
    {"fma", "2,3,4,5 3,1,1 5", "", 1, LOOPS},
    {"fma", "i32:3,7 i32:7 i32:3,1", "", 1, LOOPS},
    {"div_sqrt", "3,7 3,7+", "epsilon=0.25", 1, LOOPS},
    {"div_sqrt", "7 3,7+", "", 1, LOOPS},

    {"matmul", "33,65 65,17", "", 1, NULL},
    {"matmul", "2,3,33,65 65,17", "", 1, NULL},
    {"matmul", "2,3,5,6 2,3,6,7", "", 1, NULL},
    {"matmul", "3,5,6 2,1,6,7", "", 1, NULL},
    {"matmul", "6 6,7", "", 1, NULL},
    {"matmul", "5,6 6", "", 1, NULL},
    {"matmul", "2,5,6 6", "", 1, NULL},
    {"matmul", "6 2,6,5", "", 1, NULL},
    {"matmul", "6 6", "", 1, NULL},
    {"gemm", "33,65 65,17", "", 1, NULL},
    {"gemm", "33,65 17,65 17", "trans_b=1", 1, NULL},
    {"gemm", "65,33 65,17 1,17", "trans_a=1", 1, NULL},
    {"gemm", "5,6 6,7 5,7", "alpha=0.5 beta=0.25", 1, NULL},
    {"gemm", "5,6 6,7 5,1", "", 1, NULL},
    {"gemm", "1,512 1000,512 1000", "trans_b=1", 1, NULL},
    {"gemm_act", "33,65 65,17 17", "activation=relu", 1, NULL},
    {"gemm_act", "33,65 17,65", "trans_b=1 activation=relu6", 1, NULL},
    {"gemm_act", "f64:3,5 f64:5,7", "alpha=0.5 activation=relu", 1, LOOPS},
    {"gemm_sum", "33,17 33,65 65,17 17", "", 1, NULL},
    {"gemm_sum", "33,17 65,33 65,17", "trans_a=1 activation=relu", 1, NULL},
    {"gemm_sum", "f64:3,7 f64:3,5 f64:5,7 f64:3,7", "beta=0.5 activation=relu6", 1, LOOPS},
    {"conv", "1,3,32,32 8,3,7,7 8", "strides=2,2 pads=3,3,3,3", 1, "x64:gemm"},
    {"conv", "2,16,14,15 8,16,3,3", "pads=1,0,2,1", 1, "x64:gemm"},
    {"conv", "2,16,14,15 8,16,1,1 8", "strides=2,2", 1, "x64:gemm"},
    {"conv", "2,16,14,15 8,16,3,3 8", "dilations=2,3 pads=2,3,2,3", 1, "x64:gemm"},
    {"conv", "2,16,14,15 8,4,3,3 8", "group=4 pads=1,1,1,1", 1, "x64:gemm"},
    {"conv", "2,16,14,15 16,1,3,3 16", "group=16 pads=1,1,1,1", 1, "x64:gemm"},
    {"conv", "2,5,33 4,5,3 4", "pads=1,1", 1, NULL},
    {"conv", "1,3,6,7,8 4,3,3,3,3 4", "pads=1,1,1,1,1,1", 1, NULL},
    {"conv", "f64:1,2,5,5 f64:3,2,3,3", "", 1, LOOPS},
    {"conv_act", "2,16,14,15 8,16,3,3 8", "pads=1,1,1,1 activation=relu", 1, "x64:gemm"},
    {"conv_act", "2,16,14,15*4 16,1,3,3", "group=16 activation=relu6", 1, "x64:gemm"},
    {"conv_act", "2,5,33 4,5,3 4", "pads=1,1 activation=none", 1, NULL},
    {"conv_act", "f64:1,2,5,5 f64:3,2,3,3", "activation=relu", 1, LOOPS},
    {"conv_sum", "2,8,14,15 2,16,14,15 8,16,3,3 8", "pads=1,1,1,1", 1, "x64:gemm"},
    {"conv_sum", "2,8,7,8 2,16,14,15 8,16,1,1", "strides=2,2 activation=relu", 1, "x64:gemm"},
    {"conv_sum", "2,16,12,13 2,16,14,15*4 16,1,3,3 16", "group=16 activation=relu6", 1, "x64:gemm"},
    {"conv_sum", "f64:1,3,3,3 f64:1,2,5,5 f64:3,2,3,3", "activation=relu", 1, LOOPS},
    {"conv_transpose", "1,6,9,9 6,4,3,3 4", "strides=2,2 pads=1,1,1,1", 1, NULL},
    {"conv_transpose", "1,6,9,9 6,4,3,3", "strides=2,2 pads=1,1,1,1 output_padding=1,1", 1, NULL},
    {"conv_transpose", "1,6,9,8 6,2,3,2", "group=3 dilations=2,2", 1, NULL},
    {"conv_transpose", "1,3,3,3 3,2,3,3", "strides=3,2 output_shape=10,8", 1, LOOPS},

    {"max_pool", "2,3,32,32", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1", 1, NULL},
    {"max_pool", "2,3,32,32", "kernel_shape=3,3 strides=2,2 ceil_mode=1", 1, NULL},
    {"max_pool", "2,3,32,31", "kernel_shape=2,3 strides=2,1", 1, NULL},
    {"max_pool", "1,3,16,16", "kernel_shape=2,2 dilations=2,2", 1, NULL},
    {"max_pool", "1,2,8,8", "kernel_shape=2,2 strides=2,2", 2, LOOPS},
    {"max_pool", "1,2,33", "kernel_shape=3", 1, NULL},
    {"avg_pool", "2,3,32,32", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1", 1, NULL},
    {"avg_pool", "2,3,32,32", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1 count_include_pad=1", 1,
     NULL},
    {"avg_pool", "2,3,32,32", "kernel_shape=3,3 strides=2,2 ceil_mode=1", 1, NULL},
    {"avg_pool", "2,3,32,32", "kernel_shape=3,3 strides=2,2 ceil_mode=1 count_include_pad=1", 1,
     NULL},
    {"avg_pool", "1,2,9,9", "kernel_shape=5,5 strides=1,1 pads=2,1,0,2", 1, NULL},
    {"lp_pool", "1,2,9,9", "kernel_shape=2,2", 1, NULL},
    {"global_avg_pool", "2,16,7,7", "", 1, NULL},
    {"global_max_pool", "2,16,7,9", "", 1, NULL},
    {"global_lp_pool", "2,3,7,9", "", 1, NULL},

    {"batch_norm", "2,16,7,9 16 16 16 16+", "epsilon=0.01", 1, NULL},
    {"batch_norm", "2,16 16 16 16 16+", "epsilon=0.01", 1, NULL},
    {"batch_norm", "2,5,17 5 5 5 5+", "epsilon=0.01", 1, NULL},
    {"lrn", "2,17,6,7*5", "size=5 alpha=0.1 beta=0.6 bias=2.0", 1, NULL},
    {"lrn", "2,17,6,7*5", "size=4", 1, LOOPS},
    {"layer_norm", "3,5,33 33 33", "", 1, NULL},
    {"layer_norm", "3,5,33 5,33", "axis=1 epsilon=0.01", 1, NULL},
    {"layer_norm", "3,5,33 33 33", "", 3, LOOPS},
    {"instance_norm", "2,3,5,5 3 3", "", 1, NULL},
    {"group_norm", "2,4,5,5 4 4", "num_groups=2", 1, NULL},
    {"rms_norm", "2,4,5 5", "", 1, NULL},
    {"lp_norm", "2,4,5", "axis=1", 1, NULL},
    {"mean_variance_norm", "2,3,4,5", "axes=0,2,3", 1, NULL},
    {"softmax", "3,100*10", "", 1, NULL},
    {"softmax", "3,10,7*10", "axis=1", 1, NULL},
    {"softmax", "1,1000*10", "axis=1", 1, NULL},
    {"log_softmax", "3,100*10", "", 1, NULL},
    {"log_softmax", "3,10,7*10", "axis=0", 1, NULL},
    {"hardmax", "3,10*10", "", 1, LOOPS},

    {"reduce_sum", "3,4,50", "axes=2 keepdims=0", 1, NULL},
    {"reduce_sum", "3,4,50", "axes=0,2", 1, NULL},
    {"reduce_sum", "3,4,50", "", 1, NULL},
    {"reduce_mean", "3,8,5,7", "axes=2,3", 1, NULL},
    {"reduce_mean", "3,8,5,7", "axes=-1", 1, NULL},
    {"reduce_mean", "3,8,5,7", "axes=1", 1, NULL},
    {"reduce_max", "3,4,50", "axes=2", 1, NULL},
    {"reduce_min", "3,4,50", "axes=2", 1, NULL},
    {"reduce_prod", "3,4,20", "axes=2", 1, NULL},
    {"reduce_l1", "3,4,50", "axes=2", 1, NULL},
    {"reduce_l2", "3,4,50", "axes=2", 1, NULL},
    {"reduce_log_sum", "3,4,50+", "axes=2", 1, NULL},
    {"reduce_log_sum_exp", "3,4,50", "axes=2", 1, NULL},
    {"reduce_sum_square", "3,4,50", "axes=2", 1, NULL},
    {"arg_max", "3,4,50", "axis=2", 1, LOOPS},
    {"arg_min", "3,4,50", "axis=2", 1, LOOPS},
    {"cumsum", "3,4,50", "axis=2", 1, NULL},
    {"top_k", "3,50", "k=4", 2, LOOPS},

    {"reshape", "3,4", "shape=4,3", 1, MPL_HOW_COPY},
    {"flatten", "3,4,5", "", 1, MPL_HOW_COPY},
    {"squeeze", "3,1,5", "axes=1", 1, MPL_HOW_COPY},
    {"unsqueeze", "3,5", "axes=1", 1, MPL_HOW_COPY},
    {"reorder", "2,3,4,5", "mode=plain", 1, NULL},
    {"identity", "3,5", "", 1, MPL_HOW_COPY},
    {"identity", "i64:3,5", "", 1, MPL_HOW_COPY},
    {"dropout", "3,5", "", 1, MPL_HOW_COPY},
    {"dropout", "3,5", "", 2, LOOPS},

    {"concat", "2,3,4,5 2,7,4,5 2,1,4,5", "axis=1", 1, NULL},
    {"concat", "2,3 4,3", "axis=0", 1, NULL},
    {"concat", "2,3 2,4", "axis=-1", 1, NULL},
    {"split", "2,9", "axis=1 split=2,3,4", 3, NULL},
    {"slice", "4,9", "starts=1,8 ends=3,0 steps=1,-2 axes=0,1", 1, NULL},
    {"transpose", "2,3,4,5", "perm=0,2,3,1", 1, NULL},
    {"transpose", "2,3,4", "", 1, NULL},
    {"transpose", "33,65", "perm=1,0", 1, NULL},
    {"expand", "3,1", "shape=2,3,4", 1, NULL},
    {"tile", "3,2", "repeats=2,3", 1, NULL},
    {"pad", "3,4", "pads=1,0,0,2", 1, NULL},
    {"gather", "5,6 i64:2,2", "axis=1", 1, NULL},
    {"gather_elements", "5,6 i64:5,6", "axis=1", 1, NULL},
    {"gather_nd", "5,6 i64:3,2", "", 1, NULL},
    {"scatter_elements", "5,6 i64:1,6 1,6", "axis=0", 1, NULL},
    {"scatter_nd", "5,6 i64:1,1 1,6", "", 1, NULL},
    {"depth_to_space", "1,8,3,3", "blocksize=2", 1, NULL},
    {"space_to_depth", "1,2,6,6", "blocksize=2", 1, NULL},
    {"one_hot", "i64:5 2", "depth=3", 1, NULL},
    {"trilu", "5,6", "", 1, NULL},
    {"reverse_sequence", "4,2,3 i64:2", "", 1, NULL},
    {"access", "4,6", "dims=2,3 strides=12,-2 offset=5", 1, "chain"},
    {"access", "i64:4,6", "index=::-1,1", 1, LOOPS},
    {"assign", "4,6 2,3", "dims=2,3 strides=12,-2 offset=5", 1, "chain"},
    {"assign", "u8:4,6 u8:1", "index=1:3,::2", 1, LOOPS},
    {"fused", "- 700,3 =2", "dims=700 loads=1,1,3,2,0,0 expr=0,sigmoid,1,mul", 1, "chain"},
    {"fused", "4,6 3", "dims=3 loads=0,6,2,1,2,-1 expr=0,1,add,relu strides=2 offset=6", 1,
     "chain"},
    {"relu_grad", "3,77 3,77*20", "", 1, NULL},
    {"sigmoid_grad", "3,77 3,77+", "", 1, NULL},
    {"tanh_grad", "3,77 3,77", "", 1, NULL},
    {"clip_grad", "3,77 3,77*9 =-2 =3", "", 1, NULL},
    {"softmax_grad", "3,7 3,7+", "axis=1", 1, NULL},
    {"conv_grad_input", "2,4,5,5 4,3,3,3", "pads=1,1,1,1 sizes=2,3,5,5", 1, NULL},
    {"conv_grad_weight", "2,4,3,3 2,3,5,5", "strides=2,2 pads=1,1,1,1 sizes=4,3,3,3", 1, NULL},
    {"conv_grad", "2,4,5,5 2,3,5,5 4,3,3,3", "pads=1,1,1,1", 3, NULL},
    {"gemm_grad", "3,5 3,7 7,5", "", 3, LIBRARY},
    {"gemm_grad", "3,5 3,7 5,7", "trans_b=1", 3, LIBRARY},
    {"gemm_grad", "3,5 7,3 7,5", "trans_a=1", 3, LIBRARY},
    {"gemm_grad", "3,5 7,3 5,7", "trans_a=1 trans_b=1", 3, LIBRARY},
    {"gemm_grad", "3,5 3,7 5,7", "trans_b=1", 2, LIBRARY},
    {"gemm_grad", "3,5 7,3 7,5", "trans_a=1", 1, LIBRARY},
    {"gemm_grad", "3,5 7,3 5,7", "trans_a=1 trans_b=1 alpha=0.5", 3, NULL},
    {"max_pool_grad", "2,3,2,2 2,3,5,5", "kernel_shape=3,3 strides=2,2", 1, NULL},
    {"avg_pool_grad", "2,3,2,2", "kernel_shape=3,3 strides=2,2 sizes=2,3,5,5", 1, NULL},
    {"global_avg_pool_grad", "2,3,1,1", "sizes=2,3,5,5", 1, NULL},
    {"lrn_grad", "2,7,3,3 2,7,3,3", "size=3", 1, NULL},
    {"batch_norm_grad", "2,3,5,5 2,3,5,5 3 3 3+", "", 3, NULL},
    {"batch_norm_again", "2,3,5,5 3 3", "", 3, NULL},
    {"dropout_train", "3,77", "ratio=0.25", 2, NULL},
    {"dropout_grad", "3,77 bool:3,77", "ratio=0.25", 1, NULL},
    {"softmax_cross_entropy", "3,7 i64:3", "", 2, NULL},
    {"softmax_cross_entropy_grad", "3,7+ i64:3", "", 1, NULL},
    {"resize", "1,2,5,5", "mode=nearest scales=1,1,2,2", 1, NULL},
    {"resize", "1,2,5,5", "mode=linear sizes=1,2,8,9", 1, NULL},
    /* other types, axes and attributes of what has a kernel of its own on a device */
    {"resize", "f16:1,1,4,5", "mode=cubic sizes=1,1,7,3", 1, LOOPS},
    {"resize", "1,1,4,5",
     "mode=cubic sizes=1,1,9,9 exclude_outside=1 coordinate_mode=align_corners", 1, LOOPS},
    {"resize", "i32:3,4",
     "mode=nearest sizes=7 axes=1 nearest_mode=ceil coordinate_mode=asymmetric", 1, LOOPS},
    {"resize", "4,5", "mode=linear scales=0.6,1.7 coordinate_mode=half_pixel_symmetric", 1, LOOPS},
    {"resize", "4,5", "mode=linear sizes=1,8 coordinate_mode=pytorch_half_pixel", 1, LOOPS},
    {"resize", "4,5", "mode=nearest sizes=3,8 coordinate_mode=tf_half_pixel_for_nn", 1, LOOPS},
    {"top_k", "4,9,3", "k=5 axis=1 largest=0", 2, LOOPS},
    {"top_k", "i32:40", "k=40", 2, LOOPS},
    {"top_k", "u8:3,50", "k=7", 2, LOOPS},
    {"gather_nd", "3,4,5 i64:3,2,1", "batch_dims=1", 1, LOOPS},
    {"gather_nd", "f64:3,4,5 i32:2,3", "", 1, LOOPS},
    {"scatter_elements", "5,6 i64:3,6 3,6", "axis=0 reduction=add", 1, LOOPS},
    {"scatter_elements", "i32:5,6 i64:5,4 i32:5,4", "axis=1 reduction=mul", 1, LOOPS},
    {"scatter_elements", "f16:2,3,4 i32:2,2,4 f16:2,2,4", "axis=1 reduction=max", 1, LOOPS},
    {"scatter_nd", "5,6 i64:7,1 7,6", "reduction=add", 1, LOOPS},
    {"scatter_nd", "u8:5,6 i64:4,2 u8:4", "reduction=min", 1, LOOPS},
    {"scatter_nd", "5000 i64:9,1 9", "", 1, LOOPS},
    {"one_hot", "3,4 i32:2", "depth=3 axis=0", 1, LOOPS},
    {"trilu", "2,5,6", "upper=0 k=1", 1, LOOPS},
    {"trilu", "i64:6,4", "k=-2", 1, LOOPS},
    {"reverse_sequence", "2,4,3 i64:2", "batch_axis=0 time_axis=1", 1, LOOPS},
    {"tile", "2,1,2,3,2", "repeats=2,3,2,2,2", 1, NULL},
    {"max_pool", "i8:1,2,7,7", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1", 1, LOOPS},
    {"max_pool", "1,2,5,6", "kernel_shape=2,3 storage_order=1 pads=1,0,0,1", 2, LOOPS},
    {"conv_transpose", "1,3,3,3 3,2,2,2 2", "strides=2,2 output_shape=7,8 pads=0,0,0,0", 1, LOOPS},
    {"lp_norm", "2,4,5", "p=1 axis=0", 1, NULL},
    {"lp_norm", "f16:40,3", "axis=0", 1, LOOPS},
    {"fused", "f16:4,6 f16:3",
     "dims=3 loads=0,6,2,1,2,-1 expr=0,1,add,tanh,0,mul strides=2 offset=6", 1, LOOPS},
    {"fused", "- f16:700 f16:700", "dims=700 loads=1,0,1,2,0,1 expr=0,1,add,0,mul", 1,
     LOOPS}, /* rounded
                twice
              */
    {"fused", "f64:4,6", "dims=2,3 loads=0,1,6,2 expr=0,neg,exp strides=6,2 offset=0", 1, LOOPS},
    {"assign", "f16:4,6 f16:2,1", "dims=2,3 strides=12,-2 offset=5", 1, LOOPS},
    {"fma", "f16:3,7 f16:7 f16:3,1", "", 1, LOOPS},
    {"clip_grad", "f64:3,77 f64:3,77 - f64:1", "", 1, LOOPS},
    {"tanh_grad", "f16:3,77 f16:3,77", "", 1, LOOPS},
    {"conv_grad", "2,6,4,4 2,4,9,9 6,2,3,3", "strides=2,2 pads=1,0,0,1 group=2", 3, NULL},
    {"conv_grad", "2,6,5,4 2,4,9,7 6,2,3,2", "strides=2,2 pads=1,1,1,1 group=2 dilations=1,2", 3,
     NULL},
    {"conv_grad", "1,2,3,4,5 1,3,4,5,6 2,3,2,2,2", "", 3, NULL},
    {"conv_grad", "2,4,9 2,3,9 4,3,3", "pads=1,1", 2, NULL},
    {"conv_grad", "f64:1,2,3,3 f64:1,2,4,4 f64:2,2,2,2", "", 3, LOOPS},
    {"conv_grad_input", "f16:1,2,3,3 f16:2,2,2,2", "sizes=1,2,4,4", 1, LOOPS},
    {"gemm_grad", "f64:3,5 f64:3,7 f64:7,5", "beta=0.5", 3, LOOPS},
    {"gemm_grad", "3,5 3,7 5,7", "trans_b=1 alpha=2 beta=0.5", 3, NULL},
    {"max_pool_grad", "2,3,3,3 2,3,5,5", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1", 1, NULL},
    {"max_pool_grad", "1,2,3,3 1,2,5,5*0", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1", 1,
     NULL}, /* all alike */
    {"max_pool_grad", "f16:1,2,8 f16:1,2,9", "kernel_shape=2", 1, LOOPS},
    {"max_pool_grad", "1,1,3,3,3 1,1,5,5,5", "kernel_shape=2,2,2 dilations=2,2,2", 1, NULL},
    {"avg_pool_grad", "2,3,3,3", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1 sizes=2,3,5,5", 1,
     NULL},
    {"avg_pool_grad", "2,3,3,3",
     "kernel_shape=3,3 strides=2,2 pads=1,1,1,1 count_include_pad=1 sizes=2,3,5,5", 1, NULL},
    {"avg_pool_grad", "2,3,3,3", "kernel_shape=3,3 strides=2,2 ceil_mode=1 sizes=2,3,6,6", 1, NULL},
    {"lrn_grad", "2,7,3,3*4 2,7,3,3*4", "size=4 alpha=0.3 beta=0.5 bias=2.0", 1, LOOPS},
    {"lrn_grad", "2,7,3,3*4 2,7,3,3*4", "size=5 alpha=0.3 beta=0.5 bias=2.0", 1, LOOPS},
    {"softmax_grad", "3,70,2 3,70,2+", "axis=1", 1, NULL},
    {"batch_norm_grad", "4,3 4,3 3 3 3+", "epsilon=0.01", 3, NULL},
    {"batch_norm_again", "4,3,40*5 3 3", "epsilon=0.01", 3, NULL},
    {"batch_norm_again", "f16:4,3,5 f16:3 f16:3", "", 3, LOOPS},
    {"dropout_train", "f64:3,77 i64:1", "ratio=0.5 seed=9", 2, LOOPS},
    {"softmax_cross_entropy", "300,7*9 i64:300", "", 2, NULL},
    {"mean", "3,7 7 3,7 3,7 3,7 3,7 3,7 3,7 3,7 3,1 3,7 3,7 3,7", "", 1, NULL},
    {"max", "i32:2,3 i32:3 i32:3 i32:3 i32:3 i32:3 i32:3 i32:3 i32:3 i32:3 i32:3 i32:3 i32:3 i32:3",
     "", 1, LOOPS},
    {"sum", "f16:9 f16:9 f16:9 f16:9 f16:9 f16:9 f16:9 f16:9 f16:9 f16:9 f16:9 f16:9 f16:9 f16:9",
     "", 1, LOOPS},
    {"sum", "4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4 4", "", 1, NULL},
    {"gemm", "5,6 6,7 1", "beta=0.5", 1, NULL},
    {"conv_act", "3,2,5,5 4,2,3,3 4", "activation=relu", 1, NULL},
    {"conv_sum", "3,4,3,3 3,2,5,5 4,2,3,3 4", "", 1, NULL},
    {"conv_transpose", "2,4,5 4,3,3 3", "strides=2", 1, NULL},
};

/* ---- building a row's graph ---- */

enum { MOST_OPERANDS = 24 };

typedef struct operand {
    float scale;
    bool absolute;
} operand;

static mpl_shape parse_dims(const char *text)
{
    mpl_shape s = {0};
    char *end = (char *)text;

    while (*text >= '0' && *text <= '9') {
        s.dim[s.rank++] = strtol(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return s;
}

static mpl_value add_operand(mpl_ctx *ctx, mpl_graph *g, uint32_t i, const char *word, operand *how)
{
    mpl_type type = MPL_TYPE_f32;
    const char *colon = strchr(word, ':'), *star = strchr(word, '*'),
               *dims = word + (word[0] == '=');
    char name[16];
    mpl_value v;

    snprintf(name, sizeof name, "in%u", i);
    if (colon != NULL) {
        char type_name[8] = "";

        memcpy(type_name, dims, (size_t)(colon - dims));
        assert_true(mpl_type_find(type_name, &type));
        dims = colon + 1;
    }
    if (word[0] == '=') {
        float x = strtof(dims, NULL);
        int32_t n = (int32_t)x;

        assert_ok(ctx, mpl_graph_add_const(ctx, g, name, type, &(mpl_shape){0},
                                           type == MPL_TYPE_f32 ? (void *)&x : &n, false, &v));
        return v;
    }
    how->scale = star != NULL ? strtof(star + 1, NULL) : 1;
    how->absolute = word[strlen(word) - 1] == '+';
    mpl_shape shape = parse_dims(dims);
    assert_ok(ctx, mpl_graph_add_value(ctx, g, name, MPL_INPUT, type, &shape, &v));
    return v;
}

/* Attributes of one row; the storage lives as long as the row is built. */
typedef struct attrs {
    uint32_t n;
    mpl_attr attr[8];
    int64_t ints[8][8];
    double floats[8][8];
    char text[256];
} attrs;

static void parse_attrs(const char *text, attrs *out)
{
    char *save = NULL;

    memset(out, 0, sizeof *out);
    snprintf(out->text, sizeof out->text, "%s", text);
    for (char *word = strtok_r(out->text, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        mpl_attr *a = &out->attr[out->n];
        char *value = strchr(word, '=');

        *value++ = '\0';
        assert_true(mpl_attr_find(word, &a->key));
        a->ints = out->ints[out->n];
        a->floats = out->floats[out->n];
        a->text = value;
        mpl_attr_kind kind = mpl_attr_kind_of(a->key);
        if (kind == MPL_ATTR_TEXT) {
            a->n = (uint32_t)strlen(value);
        } else {
            for (char *at = value; *at != '\0'; at += *at == ',') {
                out->floats[out->n][a->n] = strtod(at, NULL);
                out->ints[out->n][a->n++] = (int64_t)strtod(at, &at);
            }
        }
        out->n++;
    }
}

/* A graph with the row's operation of other operands; its outputs are out[4]. */
static mpl_status add_row(mpl_ctx *ctx, mpl_graph *g, const row *r, const char *operands,
                          operand *how, mpl_value *out)
{
    static const char *const names[] = {"out0", "out1", "out2", "out3", "out4"};
    mpl_op_kind kind;
    mpl_value in[MOST_OPERANDS];
    char words[160], *save = NULL;
    uint32_t n_in = 0;
    attrs a;

    assert_true(mpl_op_find(r->op, &kind));
    snprintf(words, sizeof words, "%s", operands);
    for (char *word = strtok_r(words, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save), n_in++)
        in[n_in] =
            strcmp(word, "-") == 0 ? MPL_NONE : add_operand(ctx, g, n_in, word, &how[g->n_inputs]);
    parse_attrs(r->attrs, &a);
    return mpl_graph_add_op(ctx, g, kind, r->op, n_in, in, a.n, a.attr, r->n_out, names, out);
}

static mpl_graph *build(mpl_ctx *ctx, const row *r, operand *how)
{
    mpl_graph *g;
    mpl_value out[4];

    assert_ok(ctx, mpl_graph_new(ctx, r->op, &g));
    assert_ok(ctx, add_row(ctx, g, r, r->in, how, out));
    for (uint32_t i = 0; i < r->n_out; i++)
        assert_ok(ctx, mpl_graph_add_output(ctx, g, out[i]));
    assert_ok(ctx, mpl_graph_finish(ctx, g));
    return g;
}

/* ---- wrong types ---- */

/* Operators whose rows cannot be run alone: what they update must be a weight. */
static const row updates[] = {
    {"batch_norm_train", "2,3,5,5 3 3 3 3", "", 5, NULL},
    {"sgd_update", "3 3", "", 1, NULL},
    {"momentum_update", "3 3 3", "", 2, NULL},
    {"adagrad_update", "3 3 3", "", 2, NULL},
    {"adam_update", "3 i64: 3 3 3", "", 3, NULL},
    {"step_update", "i64:", "", 1, NULL},
    {"set_update", "3 3", "", 1, NULL},
};

/* What is only moved may be of any type. */
static bool takes_any(const row *r, uint32_t input)
{
    static const char *const mover[] = {"gather", "gather_elements", "gather_nd",
                                        "reverse_sequence"};
    bool any = input == 0 && strchr(r->in, ' ') == NULL;

    for (size_t i = 0; i < sizeof mover / sizeof *mover; i++)
        any = any || (input == 0 && strcmp(r->op, mover[i]) == 0);
    return any || (input == 1 && strcmp(r->op, "one_hot") == 0);
}

/* The row's operands with input `wrong` of another type; false: there is no such input, or it has
 * that type. */
static bool retype(const char *operands, uint32_t wrong, mpl_type type, char *out, size_t size)
{
    char words[128], *save = NULL;
    uint32_t i = 0;
    bool changed = false;

    out[0] = '\0';
    snprintf(words, sizeof words, "%s", operands);
    for (char *word = strtok_r(words, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save), i++) {
        char *colon = strchr(word, ':'), *dims = colon != NULL ? colon + 1 : word, other[64];

        snprintf(other, sizeof other, "%s:%s", mpl_type_name(type), word[0] == '=' ? "" : dims);
        if (i == wrong && strcmp(word, "-") != 0) {
            changed = colon == NULL
                          ? type != MPL_TYPE_f32
                          : strncmp(other, word + (word[0] == '='), (size_t)(colon - word)) != 0;
            word = other;
        }
        snprintf(out + strlen(out), size - strlen(out), "%s%s", i > 0 ? " " : "", word);
    }
    return changed;
}

/* Gives input `wrong` every other type; what is refused must name that input and that type. How
 * many did not. */
static int check_wrong_input(const row *r, uint32_t wrong)
{
    unsigned tried = 0, refused = 0;
    int bad = 0;

    for (int type = 0; type < MPL_N_TYPES; type++) {
        mpl_ctx ctx;
        operand how[MOST_OPERANDS];
        char operands[160], said[64];
        mpl_graph *g;
        mpl_value out[5];
        mpl_status st;

        mpl_ctx_init(&ctx);
        if (!retype(r->in, wrong, (mpl_type)type, operands, sizeof operands))
            continue;
        tried++;
        assert_ok(&ctx, mpl_graph_new(&ctx, r->op, &g));
        st = add_row(&ctx, g, r, operands, how, out);
        snprintf(said, sizeof said, "input %u has type %s", wrong, mpl_type_name((mpl_type)type));
        if (st != MPL_OK && (st != MPL_EINPUT || strstr(ctx.message, said) == NULL)) {
            print_error("%s %s: '%s' does not say '%s'\n", r->op, operands, ctx.message, said);
            bad++;
        }
        refused += st != MPL_OK;
        mpl_graph_free(&ctx, g);
    }
    if (tried > 0 && refused == 0 && !takes_any(r, wrong)) {
        print_error("%s %s: any type will do as input %u\n", r->op, r->in, wrong);
        bad++;
    }
    return bad;
}

/* Catches: a rule that counts inputs from where another one's begin. */
TEST(wrong_types_name_their_input)
{
    const size_t n = sizeof rows / sizeof *rows, n_updates = sizeof updates / sizeof *updates;

    int bad = 0;

    for (size_t i = 0; i < n + n_updates; i++)
        for (uint32_t k = 0; k < MOST_OPERANDS; k++)
            bad += check_wrong_input(i < n ? &rows[i] : &updates[i - n], k);
    assert_int_equal(bad, 0);
}

/* ---- running it ---- */

/* What stands in the middle and at the end of each input, or of the first alone; 0: nothing
 * special. */
static float special;
static bool special_everywhere;

static void set_inputs(mpl_ctx *ctx, mpl_exec *exec, const mpl_graph *g, const operand *how)
{
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        mpl_value v = g->input[i];
        float *data = mpl_alloc(ctx, g->value_bytes[v], 1);

        assert_non_null(data);
        assert_ok(ctx, mpl_exec_make_input(ctx, g, i, 7, data));
        for (uint64_t k = 0;
             g->value_type[v] == MPL_TYPE_f32 && k < g->value_bytes[v] / sizeof *data; k++)
            data[k] = (how[i].absolute ? fabsf(data[k]) : data[k]) * how[i].scale;
        if (special != 0 && g->value_type[v] == MPL_TYPE_f32 && (i == 0 || special_everywhere))
            data[g->value_bytes[v] / sizeof *data / 2] =
                data[g->value_bytes[v] / sizeof *data - 1] = special;
        assert_ok(ctx, mpl_exec_set_input(exec, i, data));
        mpl_free(ctx, data);
    }
}

static unsigned n_refused; /* rows that a backend has no code for: only one that says so may refuse
                            */
static unsigned n_by_kernels, n_by_library;

/* A kernel or a library that refuses what it took before leaves it to the host. */
enum { LEAST_BY_LIBRARY = 48, LEAST_BY_KERNELS = 260 };

static const char *device_params; /* of every device that is opened; NULL: none */

/* Outputs of the graph, one after the other; *how: what computed operation 0. NULL: refused. */
static char *run(mpl_ctx *ctx, const mpl_backend *backend, const mpl_graph *g, const operand *scale,
                 uint64_t *bytes, char how[64])
{
    static const mpl_op order[] = {0};
    mpl_device *dev;
    mpl_exec *exec;
    char *all, *at;

    assert_ok(ctx, backend->open(
                       ctx, &(mpl_device_options){.n_threads = 2, .params = device_params}, &dev));
    mpl_status st = mpl_exec_new(ctx, backend, dev, g, order, NULL, NULL, NULL,
                                 &(mpl_exec_options){.checked = true}, &exec);
    if (st == MPL_EUNAVAIL && backend->computes != NULL) {
        print_message("refused: %s: %s\n", backend->name, ctx->message);
        n_refused += strcmp(backend->name, "cuda") != 0; /* the fake one is always there to be
                                                            counted */
        backend->close(dev);
        return NULL;
    }
    assert_ok(ctx, st);
    set_inputs(ctx, exec, g, scale);
    assert_ok(ctx, mpl_exec_run(exec, NULL));
    snprintf(how, 64, "%s", mpl_exec_how(exec, 0));
    *bytes = 0;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        *bytes += g->value_bytes[g->output[i]];
    at = all = mpl_alloc(ctx, *bytes, 1);
    assert_non_null(all);
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        assert_ok(ctx, mpl_exec_output(exec, i, at));
        at += g->value_bytes[g->output[i]];
    }
    mpl_exec_free(ctx, exec);
    backend->close(dev);
    return all;
}

static float largest(const float *x, uint64_t n)
{
    float m = 1;

    for (uint64_t i = 0; i < n; i++)
        m = fabsf(x[i]) > m ? fabsf(x[i]) : m;
    return m;
}

/* A real device has functions of <math.h> of its own: their last bits may differ, and so may what
 * is rounded from them. */
static bool near_on_device(const mpl_backend *backend, const mpl_graph *g, mpl_value v,
                           const void *got, const void *want)
{
    mpl_type type = (mpl_type)g->value_type[v];
    double allowed = type == MPL_TYPE_f64 ? 1e-12 : type == MPL_TYPE_f16 ? 0x1p-10 : 0x1p-7;

    return strcmp(backend->name, "cuda") == 0 && type <= MPL_TYPE_bf16 &&
           mpl_compare(type, g->value_bytes[v] / mpl_type_bytes(type), got, want) <= allowed;
}

static bool agrees(const row *r, const mpl_backend *backend, const char *how, const mpl_graph *g,
                   const char *got, const char *want)
{
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        mpl_value v = g->output[i];

        if (g->value_type[v] != MPL_TYPE_f32) {
            if (memcmp(got, want, g->value_bytes[v]) != 0 &&
                !near_on_device(backend, g, v, got, want)) {
                print_error("%s %s (%s) on %s (%s): output %u differs from ref\n", r->op, r->in,
                            r->attrs, backend->name, how, i);
                return false;
            }
        } else {
            uint64_t n = g->value_bytes[v] / sizeof(float);
            bool elementwise = (mpl_op_table[g->op_kind[0]].traits & MPL_ELEMENTWISE) != 0;
            bool device = strcmp(backend->name, "cuda") == 0; /* Winograd and Fourier transforms
                                                                 among its ways */
            float near =
                elementwise ? 1e-6f : (device ? 1e-4f : 1e-6f) * largest((const float *)want, n);

            for (uint64_t k = 0; k < n; k++) {
                float x = ((const float *)got)[k], y = ((const float *)want)[k];

                if (!(fabsf(x - y) <= near + 1e-4f * fabsf(y)) && !(isnan(x) && isnan(y)) &&
                    x != y) {
                    print_error(
                        "%s %s (%s) on %s (%s): element %" PRIu64 " is %.9g, ref has %.9g\n", r->op,
                        r->in, r->attrs, backend->name, how, k, (double)x, (double)y);
                    return false;
                }
            }
        }
        got += g->value_bytes[v];
        want += g->value_bytes[v];
    }
    return true;
}

/* How many backends are wrong. */
static bool is_named(const char *name, const char *how)
{
    if (how == NULL)
        return true;
    return how[0] == '!' ? strncmp(name, how + 1, strlen(how + 1)) != 0
                         : strncmp(name, how, strlen(how)) == 0;
}

/* MEMPLAN_TEST_BACKEND: this one alone, and no fake; MEMPLAN_TEST_PART=I/N: every N-th row. For
 * tools that take long. */
static const char *lone_backend(void)
{
    return getenv("MEMPLAN_TEST_BACKEND");
}

static bool in_part(size_t i)
{
    const char *part = getenv("MEMPLAN_TEST_PART");
    unsigned which, n;

    return part == NULL || sscanf(part, "%u/%u", &which, &n) != 2 || n == 0 || i % n + 1 == which;
}

static int check_row(mpl_ctx *ctx, const row *r)
{
    const mpl_backend *backends[8] = {fake_backend(), fake_backend()};
    int bad = 0;
    operand how[MOST_OPERANDS] = {0};
    mpl_graph *g = build(ctx, r, how);
    char name[64];
    uint64_t bytes;
    char *want = run(ctx, mpl_backend_find("ref"), g, how, &bytes, name);

    if (lone_backend() != NULL)
        backends[0] = mpl_backend_find(lone_backend()), backends[1] = NULL;
    for (uint32_t i = 0, n = 2; lone_backend() == NULL && mpl_backends[i] != NULL; i++)
        if (mpl_backend_absent(mpl_backends[i]) == NULL)
            backends[n++] = mpl_backends[i];
    for (uint32_t i = 0; backends[i] != NULL; i++) {
        char *got;

        fake.cudnn = i == 1;
        got = run(ctx, backends[i], g, how, &bytes, name);
        if (got == NULL)
            continue;
        n_by_library += i == 1 && strncmp(name, "cu", 2) == 0;
        n_by_kernels += i == 0 && strcmp(name, MPL_HOW_LOOPS) != 0;
        bad += !agrees(r, backends[i], name, g, got, want);
        if (getenv("MEMPLAN_SHOW_HOW") != NULL)
            print_message("%-20s %-32s %-40s %s: %s\n", r->op, r->in, r->attrs, backends[i]->name,
                          name);
        if (IS_X64 && strcmp(backends[i]->name, "cpu") == 0 && !is_named(name, r->how)) {
            print_error("%s %s (%s) ran as '%s' on cpu; '%s' was expected\n", r->op, r->in,
                        r->attrs, name, r->how);
            bad++;
        }
        mpl_free(ctx, got);
    }
    mpl_free(ctx, want);
    mpl_graph_free(ctx, g);
    return bad;
}

TEST(every_operator_agrees_with_ref)
{
    bool seen[MPL_N_OPS] = {false};
    int bad = 0;

    fake_reset();
    for (uint32_t i = 0; mpl_backends[i] != NULL; i++)
        if (mpl_backend_absent(mpl_backends[i]) != NULL)
            print_message("skip: %s: %s\n", mpl_backends[i]->name,
                          mpl_backend_absent(mpl_backends[i]));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mpl_op_kind kind;

        bad += in_part(i) ? check_row(ctx, &rows[i]) : 0;
        assert_true(mpl_op_find(rows[i].op, &kind));
        seen[kind] = true;
    }
    for (int i = 0; i < MPL_N_OPS; i++)
        if (!seen[i] && !(mpl_op_table[i].traits & (MPL_CONTROL | MPL_PROGRAM)) &&
            mpl_n_updates((mpl_op_kind)i) == 0) /* those write over weights: test_runtime_training
                                                 */
            fail_msg("operator '%s' has no row in the table", mpl_op_table[i].name);
    assert_int_equal(bad, 0);
    print_message("the kernels of cuda take %u rows of %zu, the host the others; refused: %u\n",
                  n_by_kernels, sizeof rows / sizeof *rows, n_refused);
    print_message("cuDNN and cuBLAS take %u\n", n_by_library);
    if (lone_backend() != NULL || getenv("MEMPLAN_TEST_PART") != NULL)
        return;
    assert_int_equal(n_refused, 0);
    assert_true(n_by_kernels >= LEAST_BY_KERNELS);
    assert_true(!host.built || n_by_library >= LEAST_BY_LIBRARY);
    if (fake.n_races > 0)
        fail_msg("%s", fake.race);
    if (host.n_misused > 0)
        fail_msg("a call that cuDNN or cuBLAS forbids: %s", host.misuse);
    assert_int_equal(fake.n_misused + fake.n_wild, 0);
    assert_int_equal(fake.n_live + host.n_live, 0);
}

/* A NaN or an infinity comes out as ref has it; not where a pad meets one of a filter or a
 * gradient: some multiply there, some do not.
 *
 * Catches: an activation, a maximum or a softmax that takes a NaN for a number. */
TEST(specials_come_out_as_ref_has_them)
{
    static const float specials[] = {NAN, INFINITY, -INFINITY};
    int bad = 0;

    fake_reset();
    for (size_t i = 0; i < 2 * sizeof specials / sizeof *specials; i++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            special = specials[i / 2];
            special_everywhere = i % 2 == 1;
            if (strstr(rows[k].op, "_grad") == NULL &&
                !(special_everywhere && strncmp(rows[k].op, "conv", 4) == 0) && in_part(k))
                bad += check_row(ctx, &rows[k]);
        }
    special = 0;
    assert_int_equal(bad, 0);
}

/* Whatever room there is for workspaces: cuBLAS is never given less than it asks for, and products
 * stay right. */
TEST(little_workspace)
{
    static const struct {
        const char *params, *how;
    } limits[] = ROW({"workspace=0", "kernel"}, {"workspace=16KiB", "kernel"}, /* the alignment
                                                                                  comes on top */
                     {"workspace=17KiB", "cublas:gemm in little workspace"},
                     {"workspace=5MiB", "cublas:gemm"});

    fake_reset();
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            operand scale[MOST_OPERANDS] = {0};
            char how[64], *want, *got;
            mpl_graph *g;
            uint64_t bytes;

            if ((strcmp(rows[k].op, "gemm") != 0 && strcmp(rows[k].op, "matmul") != 0) ||
                !host.built)
                continue;
            g = build(ctx, &rows[k], scale);
            fake.cudnn = true;
            want = run(ctx, mpl_backend_find("ref"), g, scale, &bytes, how);
            device_params = limits[i].params;
            got = run(ctx, fake_backend(), g, scale, &bytes, how);
            device_params = NULL;
            assert_true(agrees(&rows[k], fake_backend(), how, g, got, want));
            if (strcmp(how, "kernel") != 0) /* some are never for cuBLAS */
                assert_string_equal(how, limits[i].how);
            mpl_free(ctx, want);
            mpl_free(ctx, got);
            mpl_graph_free(ctx, g);
        }
    if (host.n_misused > 0)
        fail_msg("a call that cuDNN or cuBLAS forbids: %s", host.misuse);
    assert_int_equal(fake.n_misused + fake.n_wild + fake.n_live + host.n_live, 0);
}

/* Whether the library takes row k. */
static bool is_taken(mpl_ctx *ctx, size_t k)
{
    operand scale[MOST_OPERANDS] = {0};
    mpl_graph *g = build(ctx, &rows[k], scale);
    mpl_cuda_choice choice = {.workspace_limit = UINT64_C(1) << 28};
    mpl_cuda_dnn *dnn = NULL;
    uint64_t bytes;
    const char *how;
    bool taken;

    assert_ok(ctx, host_dnn_prepare(ctx, g, 0, &choice, &dnn, &bytes, &how));
    taken = dnn != NULL;
    host_dnn_release(ctx, dnn);
    mpl_graph_free(ctx, g);
    return taken;
}

/* The real library, where there is one, takes every descriptor that its stand-in takes, and a
 * convolution leaves the dims of y. */
TEST(descriptors_are_what_cudnn_takes)
{
    int n = 0;

    if (!host_borrow()) {
        print_message("skip: no cuDNN here (MEMPLAN_CUDNN names its folder)\n");
        skip();
    }
    host_give_back();
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        bool want = is_taken(ctx, k), got = host_borrow() && is_taken(ctx, k);

        host_give_back();
        n += got;
        if (want != got)
            fail_msg("%s %s (%s) is %s by cuDNN", rows[k].op, rows[k].in, rows[k].attrs,
                     got ? "taken" : "refused");
    }
    if (host.n_misused > 0)
        fail_msg("a call that cuDNN or cuBLAS forbids: %s", host.misuse);
    print_message("cuDNN takes the descriptors of %d rows\n", n);
}

TESTS(wrong_types_name_their_input, every_operator_agrees_with_ref,
      specials_come_out_as_ref_has_them, little_workspace, descriptors_are_what_cudnn_takes)
