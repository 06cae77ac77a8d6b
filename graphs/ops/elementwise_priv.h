/* elementwise_priv.h -- the frame of all element-wise operators: broadcast operands, walked row by
 * row.
 *
 * A row is the longest run of trailing dims along which every operand is either all there or
 * repeated. Each operator gives up to three kernels, for arithmetic in float (f32, f16, bf16), in
 * double (f64) and in int64 (integers, bool); what is not stored that way passes through a small
 * buffer, so that every element is rounded once. All elements of a piece are read before the first
 * one is written: the output may be any operand of its own type and dims. */
#ifndef MPL_ELEMENTWISE_PRIV_H
#define MPL_ELEMENTWISE_PRIV_H

#include "graphs/ops/ops_priv.h"

typedef enum mpl_arith { MPL_IN_FLOAT, MPL_IN_DOUBLE, MPL_IN_INT, MPL_N_ARITH } mpl_arith;

/* Arithmetic for elements of that type. */
mpl_arith mpl_arith_of(mpl_type type);

enum { MPL_PIECE = 512 }; /* elements that pass through a buffer at once */

typedef union mpl_piece {
    float f[MPL_PIECE];
    double d[MPL_PIECE];
    int64_t i[MPL_PIECE];
} mpl_piece;

/* Elements [at, at + n) as float, double or int64, or element `at` n times when repeated. Where
 * they are stored so already, the answer points to them, else to the buffer (then n <= MPL_PIECE).
 * MPL_IN_INT: not for floats. */
const void *mpl_piece_load(mpl_arith arith, mpl_type type, const void *data, int64_t at,
                           bool repeated, int64_t n, mpl_piece *buffer);

/* Rounds n elements from the buffer to the type and writes them from `at` on. */
void mpl_piece_store(mpl_arith arith, mpl_type type, void *data, int64_t at, int64_t n,
                     const mpl_piece *buffer);

/* Where the row of operands of these shapes begins: the row is dims [answer, rank) of out. */
uint32_t mpl_row_begin(const mpl_shape *in, const mpl_shape *out);

/* The operand is one element all along the row of dims [begin, rank) of out. */
bool mpl_row_repeated(const mpl_shape *in, const mpl_shape *out, uint32_t begin);

/* Parameters of a kernel: attributes of the operator, or the bounds of clip. */
typedef struct mpl_scalars {
    double a, b;
    int64_t i, j;
} mpl_scalars;

/* y[k] = f(a[k], b[k]) for k < n; b is NULL where there is one operand. y may be a or b. */
typedef void (*mpl_kernel)(const void *a, const void *b, void *y, int64_t n, const mpl_scalars *s);

/* Runs kernel[arith] over the first n_in (1 or 2) operands. The output's type is that of the
 * arithmetic or rounded to, unless to_bool: then kernels write bytes. */
void mpl_elementwise(const mpl_op_call *call, uint32_t n_in, mpl_arith arith,
                     const mpl_kernel kernel[MPL_N_ARITH], bool to_bool, const mpl_scalars *s);

/* Defines the kernel `name`: y = expr, of x, or of x and z; `real` is the type of the arithmetic, s
 * the scalars. */
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

#endif
