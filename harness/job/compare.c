/* compare.c -- compares two arrays of one type. See measure.h. */
#include <math.h>

#include "graphs/ops/ops_priv.h"
#include "harness/job/measure.h"

static double from_f16(uint16_t bits)
{
    int sign = bits >> 15, exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 0    ? ldexp(fraction, -24)
                   : exponent == 31 ? (fraction != 0 ? (double)NAN : (double)INFINITY)
                                    : ldexp(fraction + 1024, exponent - 25);

    return sign ? -value : value;
}

static double from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

static double element(mpl_type type, const void *data, uint64_t i)
{
    switch (type) {
    case MPL_TYPE_f64:
        return ((const double *)data)[i];
    case MPL_TYPE_f32:
        return (double)((const float *)data)[i];
    case MPL_TYPE_f16:
        return from_f16(((const uint16_t *)data)[i]);
    case MPL_TYPE_bf16:
        return from_bf16(((const uint16_t *)data)[i]);
    case MPL_TYPE_i64:
        return (double)((const int64_t *)data)[i];
    case MPL_TYPE_i32:
        return (double)((const int32_t *)data)[i];
    case MPL_TYPE_i8:
        return (double)((const int8_t *)data)[i];
    case MPL_TYPE_u8:
    case MPL_TYPE_bool:
        return (double)((const uint8_t *)data)[i];
    default:
        return mpl_get(type, data, (int64_t)i);
    }
}

double mpl_compare_within(mpl_type type, uint64_t n, const void *got, const void *want,
                          double relative, double absolute)
{
    double worst = 0;

    for (uint64_t i = 0; i < n; i++) {
        double a = element(type, got, i), b = element(type, want, i), error;

        if (a == b || (isnan(a) && isnan(b)))
            continue;
        if (!isfinite(a) || !isfinite(b))
            return INFINITY;
        error = fabs(a - b) / fmax(relative * fabs(b), absolute);
        worst = error > worst ? error : worst;
    }
    return worst;
}

double mpl_compare(mpl_type type, uint64_t n, const void *got, const void *want)
{
    return mpl_compare_within(type, n, got, want, 1, MPL_ABS_TOLERANCE / MPL_REL_TOLERANCE);
}
