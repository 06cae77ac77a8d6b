/* kernels_real.h -- the operators of kernels_elementwise.def in the floating type `real`.
 * kernels.cu includes it for float and for double, with F(name) and REAL(name) as the function
 * names of that type. */

DEVICE real REAL(softplus)(real x)
{
    return (x < 0 ? 0 : x) + F(log1p)(F(exp)(-F(fabs)(x)));
}

DEVICE real REAL(gelu)(real x, int by_tanh)
{
    if (by_tanh)
        return (real)0.5 * x *
               (1 + F(tanh)((real)0.79788456080286535588 * (x + (real)0.044715 * x * x * x)));
    return (real)0.5 * x * (1 + F(erf)(x * (real)0.70710678118654752440));
}

DEVICE real REAL(one_operand)(const mpl_cuda_elementwise *parameters, int kind, real x)
{
    const real a = (real)parameters->alpha, b = (real)parameters->beta;
    const int64_t flag = parameters->flag, other_flag = parameters->other_flag;

    switch (kind) {
#define REAL_ONE(name, value)                                                                      \
    case MPL_OP_##name:                                                                            \
        return value;
#define REAL_TWO(name, value)
#define INT_ONE(name, value)
#define INT_TWO(name, value)
#include "runtime/cuda/kernels_elementwise.def"
#undef REAL_ONE
#undef REAL_TWO
    default:
        return x;
    }
}

DEVICE real REAL(two_operands)(int kind, real x, real z)
{
    switch (kind) {
#define REAL_ONE(name, value)
#define REAL_TWO(name, value)                                                                      \
    case MPL_OP_##name:                                                                            \
        return value;
#include "runtime/cuda/kernels_elementwise.def"
#undef REAL_ONE
#undef REAL_TWO
#undef INT_ONE
#undef INT_TWO
    default:
        return x;
    }
}

/* fma, or x divided by the root of y. */
DEVICE real REAL(three_operands)(const mpl_cuda_kernel *kernel, real x, real y, real z)
{
    return kernel->kind == MPL_OP_fma ? x * y + z
                                      : x / F(sqrt)(y + (real)kernel->as.elementwise.alpha);
}

#undef real
#undef F
#undef REAL
