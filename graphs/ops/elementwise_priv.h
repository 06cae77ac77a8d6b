/* elementwise_priv.h -- framework of the element-wise operators: broadcast, row by row.
 *
 * A row is the longest run of trailing dims along which each operand is either complete or
 * repeated. An operator provides up to four kernels: in float (f32, f16, bf16), double (f64), int64
 * (integers, bool) and uint64 (u64). Other storage types pass through a small buffer, so each
 * element is rounded once. A piece is read completely before it is written, so the output may be
 * any operand of its type and dims. */
#pragma once

#include "graphs/ops/ops_priv.h"

typedef enum mpl_arith {
    MPL_IN_FLOAT,
    MPL_IN_DOUBLE,
    MPL_IN_INT,
    MPL_IN_UINT,
    MPL_N_ARITH
} mpl_arith;

/* Arithmetic for this element type. */
mpl_arith mpl_arith_of(mpl_type type);

enum { MPL_PIECE = 512 }; /* most elements in a buffer */

typedef union mpl_piece {
    float f[MPL_PIECE];
    double d[MPL_PIECE];
    int64_t i[MPL_PIECE];
    uint64_t u[MPL_PIECE];
} mpl_piece;

/* Loads elements [at, at + n) as float, double, int64 or uint64; if repeated, element `at` n times.
 * Returns a pointer into data if it is stored in that form, else the buffer (then n <= MPL_PIECE).
 * MPL_IN_INT, MPL_IN_UINT: not for floats. */
const void *mpl_piece_load(mpl_arith arith, mpl_type type, const void *data, int64_t at,
                           bool repeated, int64_t n, mpl_piece *buffer);

/* Rounds n elements of the buffer to the type and stores them from `at` on. */
void mpl_piece_store(mpl_arith arith, mpl_type type, void *data, int64_t at, int64_t n,
                     const mpl_piece *buffer);

/* First dim of the row of these operands: dims [result, rank) of out. */
uint32_t mpl_row_begin(const mpl_shape *in, const mpl_shape *out);

/* Whether the operand is one element along the row, dims [begin, rank) of out. */
bool mpl_row_repeated(const mpl_shape *in, const mpl_shape *out, uint32_t begin);

/* Parameters of a kernel: attributes of the operator, or the bounds of clip. */
typedef struct mpl_scalars {
    double a, b;
    int64_t i, j;
} mpl_scalars;

/* y[k] = f(a[k], b[k]) for k < n; b is NULL where there is one operand. y may be a or b. */
typedef void (*mpl_kernel)(const void *a, const void *b, void *y, int64_t n, const mpl_scalars *s);

/* Runs kernel[arith] on the first n_in (1 or 2) operands. The output has the type of the
 * arithmetic, or one it is rounded to; with to_bool, kernels write bytes. */
void mpl_elementwise(const mpl_op_call *call, uint32_t n_in, mpl_arith arith,
                     const mpl_kernel kernel[MPL_N_ARITH], bool to_bool,
                     const mpl_scalars *scalars);

/* Defines a kernel y = expr of x (and z); `real` is the type of the arithmetic, s the scalars. */
#define MPL_KERNEL_1(name, real_type, y_type, expr)                                                \
    static void name(const void *in, const void *none, void *out, int64_t n, const mpl_scalars *s) \
    {                                                                                              \
        typedef real_type real;                                                                    \
        const real *a = in;                                                                        \
        y_type *y = out;                                                                           \
                                                                                                   \
        (void)none, (void)s;                                                                       \
        for (int64_t k = 0; k < n; k++) {                                                          \
            real x = a[k];                                                                         \
            y[k] = (y_type)(expr);                                                                 \
        }                                                                                          \
    }
#define MPL_KERNEL_2(name, real_type, y_type, expr)                                                \
    static void name(const void *in, const void *other, void *out, int64_t n,                      \
                     const mpl_scalars *s)                                                         \
    {                                                                                              \
        typedef real_type real;                                                                    \
        const real *a = in, *b = other;                                                            \
        y_type *y = out;                                                                           \
                                                                                                   \
        (void)s;                                                                                   \
        for (int64_t k = 0; k < n; k++) {                                                          \
            real x = a[k], z = b[k];                                                               \
            y[k] = (y_type)(expr);                                                                 \
        }                                                                                          \
    }
