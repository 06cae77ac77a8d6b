/* product.c -- see product_priv.h. Explicit vectors keep unoptimised builds fast, too. */
#include "graphs/ops/matrix/product_priv.h"

typedef float lanes __attribute__((vector_size(16), aligned(4), may_alias));

#define ROWS 4 /* rows of the left matrix at once: 8 sums fit in registers */

/* Under a sanitizer the ends of what panel_product reads are looked at, not each element. */
static void look_at_ends(const float *const row[ROWS], int64_t step, int64_t n_k,
                         const float (*panel)[MPL_TILE_LANES])
{
    const volatile float *end[] = {&panel[0][0], &panel[n_k - 1][MPL_TILE_LANES - 1]};

    (void)(*end[0] + *end[1]);
    for (int r = 0; r < ROWS; r++) {
        end[0] = row[r], end[1] = row[r] + (n_k - 1) * step;
        (void)(*end[0] + *end[1]);
    }
}

/* Products of ROWS rows with one panel: sum[i][j] = sum over k of row[i][k * step] *
 * panel[k][j]. */
__attribute__((no_sanitize("address", "undefined"))) static inline void
panel_product(const float *const row[ROWS], int64_t step, int64_t n_k,
              const float (*panel)[MPL_TILE_LANES], float sum[ROWS][MPL_TILE_LANES])
{
    const float *row0 = row[0], *row1 = row[1], *row2 = row[2], *row3 = row[3];
    lanes low0 = {0}, low1 = {0}, low2 = {0}, low3 = {0}, high0 = {0}, high1 = {0}, high2 = {0},
          high3 = {0};

    for (int64_t k = 0; k < n_k; k++) {
        lanes low = *(const lanes *)&panel[k][0], high = *(const lanes *)&panel[k][4];

        low0 += row0[k * step] * low, high0 += row0[k * step] * high;
        low1 += row1[k * step] * low, high1 += row1[k * step] * high;
        low2 += row2[k * step] * low, high2 += row2[k * step] * high;
        low3 += row3[k * step] * low, high3 += row3[k * step] * high;
    }
    *(lanes *)&sum[0][0] = low0, *(lanes *)&sum[0][4] = high0;
    *(lanes *)&sum[1][0] = low1, *(lanes *)&sum[1][4] = high1;
    *(lanes *)&sum[2][0] = low2, *(lanes *)&sum[2][4] = high2;
    *(lanes *)&sum[3][0] = low3, *(lanes *)&sum[3][4] = high3;
}

void mpl_tile_product(const float *a, int64_t a_row, int64_t a_column, int64_t n_rows, int64_t n_k,
                      const mpl_tile *tile, int64_t n_columns, float *y, int64_t y_row)
{
    float sum[ROWS][MPL_TILE_LANES];

    for (int64_t j = 0; j < n_columns; j += MPL_TILE_LANES) {
        int64_t width = n_columns - j < MPL_TILE_LANES ? n_columns - j : MPL_TILE_LANES;

        for (int64_t i = 0; i < n_rows; i += ROWS) {
            int64_t height = n_rows - i < ROWS ? n_rows - i : ROWS;
            const float *row[ROWS];

            for (int r = 0; r < ROWS; r++) /* excess rows repeat the first, unused */
                row[r] = a + (i + (r < height ? r : 0)) * a_row;
            if (MPL_CHECK >= 3 && n_k > 0)
                look_at_ends(row, a_column, n_k, tile->b[j / MPL_TILE_LANES]);
            panel_product(row, a_column, n_k, tile->b[j / MPL_TILE_LANES], sum);
            for (int64_t r = 0; r < height; r++)
                for (int64_t c = 0; c < width; c++)
                    y[(i + r) * y_row + j + c] += sum[r][c];
        }
    }
}
