/* product_priv.h -- tiled product of two f32 matrices, for conv, matmul and gemm.
 *
 * The caller packs up to MPL_TILE_K rows and MPL_TILE_N columns of the right matrix into a tile on
 * the stack. The tile is multiplied by rows of the left matrix and added to the output. Each output
 * element grows by the sum of the tile's products, in order of k from zero; each operation rounds,
 * none is fused. A long sum is thus a sum of sums of MPL_TILE_K, whatever the shapes:
 * deterministic, with an error that grows with MPL_TILE_K + n / MPL_TILE_K instead of n. */
#pragma once

#include <stdint.h>

#define MPL_TILE_K     64
#define MPL_TILE_N     64
#define MPL_TILE_LANES 8 /* columns multiplied at once */

/* Element (k, j) of the right matrix is b[j / LANES][k][j % LANES]. Each panel that holds a column
 * is complete: the caller zeroes the columns after the last one. */
typedef struct mpl_tile {
    float b[MPL_TILE_N / MPL_TILE_LANES][MPL_TILE_K][MPL_TILE_LANES];
} mpl_tile;

/* y[i * y_row + j] += sum over k < n_k of a[i * a_row + k * a_column] * tile(k, j), for i < n_rows,
 * j < n_columns. */
void mpl_tile_product(const float *a, int64_t a_row, int64_t a_column, int64_t n_rows, int64_t n_k,
                      const mpl_tile *tile, int64_t n_columns, float *y, int64_t y_row);
