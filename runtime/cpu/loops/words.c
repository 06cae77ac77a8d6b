/* words.c -- see words.h. */
#include "runtime/cpu/loops/words.h"
#include "runtime/cpu/loops/chain_priv.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

enum { PANEL = MPL_WORDS_PANEL };

INLINE void widen_body(int16_t *restrict y, const uint8_t *restrict x, bool is_signed, int16_t zero,
                       int64_t n)
{
    if (is_signed)
        for (int64_t i = 0; i < n; i++)
            y[i] = (int16_t)((int8_t)x[i] - zero);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = (int16_t)(x[i] - zero);
}

/* ---- any processor ---- */

static void widen_plain(int16_t *y, const uint8_t *x, bool is_signed, int16_t zero, int64_t n)
{
    widen_body(y, x, is_signed, zero, n);
}

INLINE int32_t weight_at(const mpl_word_tile *tile, int64_t i)
{
    return tile->narrow != NULL ? tile->narrow[i] : tile->filter[i];
}

static void products_plain(const mpl_word_tile *tile)
{
    for (int64_t p = 0; p < tile->n_panels; p++)
        for (int64_t i = 0; i < tile->n; i++) {
            int64_t at = p * tile->n_taps * tile->run * PANEL;
            int32_t sum[PANEL] = {0};

            for (int64_t k = 0; k < tile->n_taps; k++)
                for (int64_t r = 0; r < tile->run; r += 2, at += 2 * PANEL) {
                    int32_t a = tile->at[i][tile->tap[k] + r],
                            b = tile->at[i][tile->tap[k] + r + 1];

                    for (int64_t j = 0; j < PANEL; j++)
                        sum[j] +=
                            a * weight_at(tile, at + 2 * j) + b * weight_at(tile, at + 2 * j + 1);
                }
            for (int64_t j = 0; j < PANEL; j++)
                tile->sum[i * tile->apart + p * PANEL + j] = sum[j];
        }
}

static void channels_plain(const mpl_word_tile *tile)
{
    for (int64_t p = 0; p < tile->n_panels; p++)
        for (int64_t i = 0; i < tile->n; i++) {
            const int16_t *filter = tile->filter + p * ((tile->n_taps + 1) & ~INT64_C(1)) * PANEL;
            int32_t sum[PANEL] = {0};

            for (int64_t k = 0; k < tile->n_taps; k++)
                for (int64_t j = 0; j < PANEL; j++)
                    sum[j] += tile->at[i][tile->tap[k] + p * PANEL + j] *
                              filter[(k / 2 * PANEL + j) * 2 + k % 2];
            for (int64_t j = 0; j < PANEL; j++)
                tile->sum[i * tile->apart + p * PANEL + j] = sum[j];
        }
}

static const mpl_word_loops plain = {"words", products_plain, channels_plain, widen_plain};

/* ---- AVX2 ---- */

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))

/* Pixels whose sums stay in registers; panels of one pixel that do. */
enum { ROWS = 6, FEW = 4, PANELS = 4 };

INLINE AVX2 __m256i load(const int16_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* Eight pairs of weights, `at` terms from the first. */
INLINE AVX2 __m256i weights(const mpl_word_tile *tile, int64_t at, const bool narrow)
{
    if (narrow)
        return _mm256_cvtepi8_epi16(
            _mm_loadu_si128((const __m128i *)(const void *)(tile->narrow + at)));
    return load(tile->filter + at);
}

/* Two neighbouring words, in each place. */
INLINE AVX2 __m256i spread(const int16_t *p)
{
    int32_t both;

    __builtin_memcpy(&both, p, sizeof both);
    return _mm256_set1_epi32(both);
}

INLINE AVX2 void store(int32_t *to, __m256i sum)
{
    _mm256_storeu_si256((__m256i *)(void *)to, sum);
}

AVX2 static void widen_avx2(int16_t *y, const uint8_t *x, bool is_signed, int16_t zero, int64_t n)
{
    widen_body(y, x, is_signed, zero, n);
}

/* The products of `rows` pixels from i on with `panels` panels. */
INLINE AVX2 void tile_of(const mpl_word_tile *tile, int64_t i, int64_t panel, const int rows,
                         const int panels, const bool narrow)
{
    int64_t each = tile->n_taps * tile->run * PANEL, at = panel * each;
    __m256i sum[ROWS][PANELS][2];

    UNROLL for (int m = 0; m < rows; m++) UNROLL for (int p = 0; p < panels; p++) sum[m][p][0] =
        sum[m][p][1] = _mm256_setzero_si256();
    for (int64_t k = 0; k < tile->n_taps; k++) {
        const int16_t *x[ROWS];

        UNROLL for (int m = 0; m < rows; m++) x[m] = tile->at[i + m] + tile->tap[k];
        for (int64_t r = 0; r < tile->run; r += 2, at += 2 * PANEL)
            UNROLL for (int p = 0; p < panels; p++)
            {
                __m256i f0 = weights(tile, at + p * each, narrow);
                __m256i f1 = weights(tile, at + p * each + PANEL, narrow);

                UNROLL for (int m = 0; m < rows; m++)
                {
                    __m256i both = spread(x[m] + r);

                    sum[m][p][0] = _mm256_add_epi32(sum[m][p][0], _mm256_madd_epi16(both, f0));
                    sum[m][p][1] = _mm256_add_epi32(sum[m][p][1], _mm256_madd_epi16(both, f1));
                }
            }
    }
    UNROLL for (int m = 0; m < rows; m++) UNROLL for (int p = 0; p < panels; p++)
    {
        store(tile->sum + (i + m) * tile->apart + (panel + p) * PANEL, sum[m][p][0]);
        store(tile->sum + (i + m) * tile->apart + (panel + p) * PANEL + 8, sum[m][p][1]);
    }
}

INLINE AVX2 void products_of(const mpl_word_tile *tile, const bool narrow)
{
    int64_t p = 0;

    for (; tile->n == 1 && p + PANELS <= tile->n_panels; p += PANELS)
        tile_of(tile, 0, p, 1, PANELS, narrow);
    for (; p < tile->n_panels; p++) {
        int64_t i = 0;

        for (; i + ROWS <= tile->n; i += ROWS)
            tile_of(tile, i, p, ROWS, 1, narrow);
        if (tile->n - i >= 3)
            tile_of(tile, i, p, 3, 1, narrow), i += 3;
        if (tile->n - i == 2)
            tile_of(tile, i, p, 2, 1, narrow);
        else if (tile->n - i == 1)
            tile_of(tile, i, p, 1, 1, narrow);
    }
}

AVX2 static void products_avx2(const mpl_word_tile *tile)
{
    if (tile->narrow != NULL)
        products_of(tile, true);
    else
        products_of(tile, false);
}

/* Two taps of `rows` pixels from i on, with as many channels as a panel has. */
INLINE AVX2 void channels_of(const mpl_word_tile *tile, int64_t i, int64_t panel, const int rows)
{
    const int16_t *filter = tile->filter + panel * ((tile->n_taps + 1) & ~INT64_C(1)) * PANEL;
    __m256i sum[FEW][2];

    UNROLL for (int m = 0; m < rows; m++) sum[m][0] = sum[m][1] = _mm256_setzero_si256();
    for (int64_t k = 0; k < tile->n_taps; k += 2, filter += 2 * PANEL) {
        int64_t a = tile->tap[k] + panel * PANEL;
        int64_t b = tile->tap[k + 1 < tile->n_taps ? k + 1 : k] + panel * PANEL;
        __m256i f0 = load(filter), f1 = load(filter + PANEL);
        /* As the words of two taps are interleaved: channels 0-3, 8-11; 4-7, 12-15. */
        __m256i low = _mm256_permute2x128_si256(f0, f1, 0x20);
        __m256i high = _mm256_permute2x128_si256(f0, f1, 0x31);

        UNROLL for (int m = 0; m < rows; m++)
        {
            __m256i x = load(tile->at[i + m] + a), y = load(tile->at[i + m] + b);

            sum[m][0] =
                _mm256_add_epi32(sum[m][0], _mm256_madd_epi16(_mm256_unpacklo_epi16(x, y), low));
            sum[m][1] =
                _mm256_add_epi32(sum[m][1], _mm256_madd_epi16(_mm256_unpackhi_epi16(x, y), high));
        }
    }
    UNROLL for (int m = 0; m < rows; m++)
    {
        int32_t *to = tile->sum + (i + m) * tile->apart + panel * PANEL;

        store(to, _mm256_permute2x128_si256(sum[m][0], sum[m][1], 0x20));
        store(to + 8, _mm256_permute2x128_si256(sum[m][0], sum[m][1], 0x31));
    }
}

AVX2 static void channels_avx2(const mpl_word_tile *tile)
{
    for (int64_t p = 0; p < tile->n_panels; p++) {
        int64_t i = 0;

        for (; i + FEW <= tile->n; i += FEW)
            channels_of(tile, i, p, FEW);
        for (; i < tile->n; i++)
            channels_of(tile, i, p, 1);
    }
}

static const mpl_word_loops avx2 = {"words:avx2", products_avx2, channels_avx2, widen_avx2};
#endif

const mpl_word_loops *mpl_word_loops_here(bool is_plain)
{
#if defined(__x86_64__)
    if (!is_plain && mpl_chain_widest() != MPL_CHAIN_PLAIN)
        return &avx2;
#endif
    (void)is_plain;
    return &plain;
}
