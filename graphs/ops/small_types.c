/* small_types.c -- elements of the small types of types.def. See ops_priv.h.
 *
 * Source   ONNX, docs/docsgen/source/technical/float8.md, float4.md, int4.md; OCP, "8-bit Floating
 *          Point Specification" and "Microscaling Formats Specification". */
#include "graphs/ops/ops_priv.h"

#include <math.h>

/* A float of one byte or less: its code is sign, exponent, mantissa, from the highest bit. */
typedef struct small_float {
    int mantissa; /* bits of it */
    int least;    /* exponent of the least normal number */
    int sign;     /* the bit of the sign */
    int most;     /* code of the largest number */
    int above;    /* code of what is larger, if not saturated */
    int nan;      /* -1: there is none, a NaN becomes -0 as in ONNX's tests */
    bool zero;    /* there is a negative zero */
} small_float;

static const small_float *float_of(mpl_type type)
{
    static const small_float known[] = {
        [MPL_TYPE_f8e4m3fn] = {3, -6, 0x80, 0x7e, 0x7f, 0x7f, true},
        [MPL_TYPE_f8e4m3fnuz] = {3, -7, 0x80, 0x7f, 0x80, 0x80, false},
        [MPL_TYPE_f8e5m2] = {2, -14, 0x80, 0x7b, 0x7c, 0x7e, true},
        [MPL_TYPE_f8e5m2fnuz] = {2, -15, 0x80, 0x7f, 0x80, 0x80, false},
        [MPL_TYPE_f4e2m1] = {1, 0, 0x8, 0x7, 0x7, -1, true},
    };

    return &known[type];
}

static double decode(const small_float *f, int code)
{
    int size = code & (f->sign - 1), exponent = size >> f->mantissa;
    int fraction = size & ((1 << f->mantissa) - 1);
    double x;

    if (f->zero ? f->nan >= 0 && size > f->above - (f->above == f->nan) : code == f->nan)
        return (double)NAN;
    if (size > f->most)
        return (code & f->sign) != 0 ? (double)-INFINITY : (double)INFINITY;
    x = exponent == 0 ? ldexp(fraction, f->least - f->mantissa)
                      : ldexp(fraction + (1 << f->mantissa), exponent - 1 + f->least - f->mantissa);
    return (code & f->sign) != 0 ? -x : x;
}

/* Ties go to even. A number larger than the largest one becomes that, or the value above it. */
static int encode(const small_float *f, double x, bool saturate)
{
    int sign = signbit(x) ? f->sign : 0, exponent = 0, code;
    double size = fabs(x);

    if (isnan(x))
        return f->nan < 0 ? f->sign : f->zero ? f->nan | sign : f->nan;
    if (isinf(x))
        code = f->most + 1;
    else {
        frexp(size, &exponent);
        exponent = size == 0 ? f->least : exponent;
        exponent = exponent - 1 < f->least ? f->least : exponent - 1;
        code = exponent - f->least > 64 ? f->most + 1
                                        : (int)rint(ldexp(size, f->mantissa - exponent)) +
                                              ((exponent - f->least) << f->mantissa);
    }
    if (code > f->most)
        code = saturate ? f->most : f->above;
    return code == 0 && !f->zero ? 0 : code == f->nan && !f->zero ? code : code | sign;
}

/* The power of two that is 2^(code - 127); the sign of x is dropped. */
static int encode_scale(double x, bool saturate, const char *mode)
{
    int exponent, most = saturate ? 254 : 255;
    double part = frexp(fabs(x), &exponent); /* [0.5, 1) */

    if (isnan(x))
        return 255;
    if (isinf(x))
        return most;
    if (x == 0)
        return 0;
    exponent += 126; /* rounded down */
    if (part > 0.5 && strcmp(mode, "down") != 0)
        exponent += strcmp(mode, "up") == 0 || part >= 0.75;
    return exponent < 0 ? 0 : exponent > 254 ? most : exponent;
}

uint64_t mpl_get_bits(mpl_type type, const void *data, int64_t i)
{
    uint32_t bits = mpl_type_bits(type), at;

    switch (bits) {
    case 64:
        return ((const uint64_t *)data)[i];
    case 32:
        return ((const uint32_t *)data)[i];
    case 16:
        return ((const uint16_t *)data)[i];
    case 8:
        return ((const uint8_t *)data)[i];
    default:
        at = (uint32_t)(i % (8 / bits)) * bits;
        return ((const uint8_t *)data)[i / (8 / bits)] >> at & ((1u << bits) - 1);
    }
}

void mpl_put_bits(mpl_type type, void *data, int64_t i, uint64_t x)
{
    uint32_t bits = mpl_type_bits(type), at, mask;
    uint8_t *byte;

    switch (bits) {
    case 64:
        ((uint64_t *)data)[i] = x;
        break;
    case 32:
        ((uint32_t *)data)[i] = (uint32_t)x;
        break;
    case 16:
        ((uint16_t *)data)[i] = (uint16_t)x;
        break;
    case 8:
        ((uint8_t *)data)[i] = (uint8_t)x;
        break;
    default:
        at = (uint32_t)(i % (8 / bits)) * bits;
        mask = (1u << bits) - 1;
        byte = (uint8_t *)data + i / (8 / bits);
        *byte = (uint8_t)((*byte & ~(mask << at)) | ((uint32_t)x & mask) << at);
    }
}

int64_t mpl_get_small_int(mpl_type type, const void *data, int64_t i)
{
    uint64_t x = mpl_get_bits(type, data, i), sign = UINT64_C(1) << (mpl_type_bits(type) - 1);

    return type == MPL_TYPE_i4 || type == MPL_TYPE_i2 ? (int64_t)((x ^ sign) - sign) : (int64_t)x;
}

double mpl_get_small(mpl_type type, const void *data, int64_t i)
{
    int code = (int)mpl_get_bits(type, data, i);

    if (mpl_type_in(type, MPL_SET_SMALL_INT))
        return (double)mpl_get_small_int(type, data, i);
    if (type == MPL_TYPE_f8e8m0)
        return code == 255 ? (double)NAN : ldexp(1, code - 127);
    return decode(float_of(type), code);
}

void mpl_put_small(mpl_type type, void *data, int64_t i, double x, bool saturate, const char *mode)
{
    if (mpl_type_in(type, MPL_SET_SMALL_INT))
        mpl_put_bits(type, data, i, (uint64_t)mpl_to_int(x));
    else
        mpl_put_bits(type, data, i,
                     (uint64_t)(type == MPL_TYPE_f8e8m0 ? encode_scale(x, saturate, mode)
                                                        : encode(float_of(type), x, saturate)));
}
