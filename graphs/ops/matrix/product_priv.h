/* product_priv.h -- the product of two f32 matrices, tile by tile, that conv, matmul and gemm
 * share.
 *
 * The caller packs up to MPL_TILE_K rows and MPL_TILE_N columns of the right matrix into a tile on
 * the stack, and has it multiplied with rows of the left one and added to the output. Each output
 * element is what it was before, plus the sum of the tile's products in order of k from zero; one
 * rounding an operation, no fused ones. So a sum of many terms is a sum of sums of MPL_TILE_K,
 * whatever the shapes: deterministic, and its error grows with MPL_TILE_K + n / MPL_TILE_K instead
 * of n. */
#ifndef MPL_PRODUCT_PRIV_H
#define MPL_PRODUCT_PRIV_H

#include <stdint.h>

#define MPL_TILE_K     64
#define MPL_TILE_N     64
#define MPL_TILE_LANES 8 /* columns that are multiplied at once */

/* Element (k, j) of the right matrix is b[j / LANES][k][j % LANES]. Every panel that holds a column
 * is whole: the caller sets what lies behind the last column to zero. */
typedef struct mpl_tile {
    float b[MPL_TILE_N / MPL_TILE_LANES][MPL_TILE_K][MPL_TILE_LANES];
} mpl_tile;

/* y[i * y_row + j] += sum over k < n_k of a[i * a_row + k * a_column] * tile(k, j), for i < n_rows,
 * j < n_columns. */
void mpl_tile_product(const float *a, int64_t a_row, int64_t a_column, int64_t n_rows, int64_t n_k,
                      const mpl_tile *tile, int64_t n_columns, float *y, int64_t y_row);

#endif
