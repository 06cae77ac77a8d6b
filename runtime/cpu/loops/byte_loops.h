/* byte_loops.h -- loops between floats, sums and 8-bit integers, compiled for several vector
 * widths. Each gives what the plain loops of graphs/ops/quant give, bit for bit. */
#ifndef MPL_BYTE_LOOPS_H
#define MPL_BYTE_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

/* Where numbers of steps are clamped, and by how much they are moved; all are whole, of at most
 * 16 bits. A number that is none becomes 0. */
typedef struct mpl_byte_range {
    float low, high, zero;
} mpl_byte_range;

typedef struct mpl_byte_loops {
    const char *how;
    /* y = x / scale, in steps. */
    void (*quantize)(uint8_t *y, const float *x, float scale, const mpl_byte_range *r, int64_t n);
    /* y = (x - zero) * scale. */
    void (*dequantize)(float *y, const uint8_t *x, bool is_signed, float zero, float scale,
                       int64_t n);
    /* The least of x and 0, the most of x and 0; what is no number does not count. */
    void (*bounds)(const float *x, int64_t n, float *least, float *most);
    /* y[i] = (sum[i] + bias[i]) * scale[i], in steps. */
    void (*sums_to_bytes)(uint8_t *y, const int32_t *sum, const double *bias, const float *scale,
                          const mpl_byte_range *r, int64_t n);
    /* y[i] = sum[i] * scale[i] + bias[i]. */
    void (*sums_to_floats)(float *y, const int32_t *sum, const double *bias, const float *scale,
                           int64_t n);
    void (*ints_to_floats)(float *y, const int32_t *x, int64_t n);
} mpl_byte_loops;

/* Those of the widest vectors on this processor. */
const mpl_byte_loops *mpl_byte_loops_here(void);

/* Bytes [rows, columns] to [columns, rows]; rows of `from` and `to` begin so many bytes apart. */
void mpl_turn_bytes(const uint8_t *from, int64_t from_apart, uint8_t *to, int64_t to_apart,
                    int64_t rows, int64_t columns);
/* The same for words of 32 bits. */
void mpl_turn_words(const int32_t *from, int64_t from_apart, int32_t *to, int64_t to_apart,
                    int64_t rows, int64_t columns);

#endif
