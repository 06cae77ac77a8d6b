/* images_conv.c -- convolutions of channels-last images on processors with AVX-512. See images.h.
 *
 * A tile is a few pixels of the result by a few vectors of its channels. It stays in registers
 * while the loop passes over all of x that it depends on: each element of x is broadcast to a
 * vector and multiplied with the filters' vectors. Pixels may lie anywhere, so rows, pads, strides
 * and images do not matter. */
#include "runtime/cpu/images.h"

#include "runtime/cpu/loops/chain_priv.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
/* Compiled once for all tiles: what runs once for each tile. */
#define ONCE   static __attribute__((noinline))
#define UNROLL _Pragma("GCC unroll 16")
#define ROLLED _Pragma("GCC unroll 1") /* what no register waits for */
#define AVX512 __attribute__((target("avx512f")))

enum { LANES = 16, VECTORS = 4, PIXELS = 12 };

/* Pixels [from, ..) of y by channels [channel, ..). */
typedef struct tile {
    const mpl_image_part *of;
    const float *filter; /* of these channels */
    int64_t from, channel;
} tile;

/* Start of a pixel of a tile in x, for filter element (0, 0); it may lie outside x. */
typedef struct corner {
    const float *image;
    int64_t row, column;
} corner;

INLINE corner corner_of(const mpl_image_window *window, const float *x, int64_t pixel)
{
    int64_t plane = window->out_high * window->out_wide, at = pixel % plane;

    return (corner){x + pixel / plane * window->x_image,
                    at / window->out_wide * window->stride[0] - window->pad[0],
                    at % window->out_wide * window->stride[1] - window->pad[1]};
}

INLINE const float *pixel_at(const mpl_image_part *t, corner c, int64_t i, int64_t k)
{
    const mpl_image_window *window = t->window;
    int64_t row = c.row + i * window->dilation[0], column = c.column + k * window->dilation[1];

    if (row < 0 || row >= window->high || column < 0 || column >= window->wide)
        return t->nothing;
    return c.image + (row * window->wide + column) * window->x_pitch;
}

/* Adds what is added to the sums, and stores them. */
AVX512 ONCE void finish(const tile *t, int64_t pixel, int v, __m512 sum)
{
    const mpl_image_part *of = t->of;
    const mpl_image_window *window = of->window;
    int64_t channel = t->channel + v * LANES, left = window->out_channels - channel;
    const float *bias = of->bias != NULL ? of->bias + channel : NULL;
    const float *added = of->sum != NULL ? of->sum + pixel * window->sum_pitch + channel : NULL;
    float *y = of->y + pixel * window->y_pitch + channel, part[3][LANES];
    size_t bytes = sizeof(float) * (size_t)(left < LANES ? left : LANES);

    if (left <= 0)
        return;
    if (left < LANES) {
        memset(part, 0, sizeof part);
        if (bias != NULL)
            bias = memcpy(part[0], bias, bytes);
        if (added != NULL)
            added = memcpy(part[1], added, bytes);
    }
    if (bias != NULL)
        sum = _mm512_add_ps(sum, _mm512_loadu_ps(bias));
    if (added != NULL)
        sum = _mm512_add_ps(sum, _mm512_loadu_ps(added));
    sum = _mm512_min_ps(_mm512_set1_ps(of->high), /* keeps a NaN of sum */
                        _mm512_max_ps(_mm512_set1_ps(of->low), sum));
    _mm512_storeu_ps(left < LANES ? part[2] : y, sum);
    if (left < LANES)
        memcpy(y, part[2], bytes);
}

/* Inlined for constant numbers of vectors and pixels. */
AVX512 INLINE void add_tile(const tile *t, const int n_v, const int n_p)
{
    const mpl_image_part *of = t->of;
    const mpl_image_window *window = of->window;
    const float *filter = t->filter, *x[PIXELS];
    __m512 sum[PIXELS][VECTORS], f[VECTORS];
    corner from[PIXELS];

    ROLLED for (int p = 0; p < n_p; p++) from[p] = corner_of(window, of->x, t->from + p);
    UNROLL for (int p = 0; p < n_p; p++)
    {
        UNROLL for (int v = 0; v < n_v; v++) sum[p][v] = _mm512_setzero_ps();
    }
    for (int64_t i = 0; i < window->kernel[0] * window->kernel[1]; i++) {
        bool any = false;

        ROLLED for (int p = 0; p < n_p; p++)
        {
            x[p] = pixel_at(of, from[p], i / window->kernel[1], i % window->kernel[1]);
            any = any || x[p] != of->nothing;
        }
        if (!any) { /* pads alone, as those of large dilations */
            filter += n_v * LANES * window->channels;
            continue;
        }
        for (int64_t c = 0; c < window->channels; c++, filter += n_v * LANES) {
            UNROLL for (int v = 0; v < n_v; v++) f[v] = _mm512_loadu_ps(filter + v * LANES);
            UNROLL for (int p = 0; p < n_p; p++)
            {
                __m512 e = _mm512_set1_ps(x[p][c * window->x_apart]);

                UNROLL for (int v = 0; v < n_v; v++) sum[p][v] =
                    _mm512_fmadd_ps(e, f[v], sum[p][v]);
            }
        }
    }
    UNROLL for (int p = 0; p < n_p; p++) UNROLL for (int v = 0; v < n_v; v++)
        finish(t, t->from + p, v, sum[p][v]);
}

#define SIX(M, v)    M(v, 1) M(v, 2) M(v, 3) M(v, 4) M(v, 5) M(v, 6)
#define EIGHT(M, v)  SIX(M, v) M(v, 7) M(v, 8)
#define TWELVE(M, v) EIGHT(M, v) M(v, 9) M(v, 10) M(v, 11) M(v, 12)
#define EACH(M)      TWELVE(M, 1) TWELVE(M, 2) EIGHT(M, 3) SIX(M, 4)
#define MAKE(v, p)                                                                                 \
    AVX512 static void tile_##v##_##p(const tile *t)                                               \
    {                                                                                              \
        add_tile(t, v, p);                                                                         \
    }
#define ENTER(v, p) [v][p] = tile_##v##_##p,

EACH(MAKE)

static void (*const kernel[VECTORS + 1][PIXELS + 1])(const tile *t) = {EACH(ENTER)};
static const int64_t most_pixels[VECTORS + 1] = {0, 12, 12, 8, 6};

static bool fits(const mpl_image_window *window)
{
    return mpl_chain_widest() == MPL_CHAIN_AVX512 && window->groups == 1;
}

/* Number of vectors in the tile that begins with vector `at`, of n. */
static int64_t vectors_at(int64_t at, int64_t n)
{
    int64_t left = n - at;

    if (left == VECTORS + 1) /* avoids a tile of a single vector */
        return (left + 1) / 2;
    return left < VECTORS ? left : VECTORS;
}

static int64_t n_vectors(const mpl_image_window *window)
{
    return (window->out_channels + LANES - 1) / LANES;
}

/* Filter elements of a result. */
static int64_t n_terms(const mpl_image_window *window)
{
    return window->channels * window->kernel[0] * window->kernel[1];
}

static uint64_t n_packed(const mpl_image_window *window)
{
    return (uint64_t)(n_vectors(window) * LANES * n_terms(window));
}

/* As tiles read them: result channels are innermost. */
static void pack(const mpl_image_window *window, const float *filter, float *to)
{
    int64_t taps = window->kernel[0] * window->kernel[1];

    for (int64_t at = 0, n; at < n_vectors(window); at += n) {
        n = vectors_at(at, n_vectors(window));
        for (int64_t i = 0; i < n_terms(window); i++)
            for (int64_t k = at * LANES; k < (at + n) * LANES; k++)
                *to++ = k < window->out_channels
                            ? filter[(k * window->channels + i % window->channels) * taps +
                                     i / window->channels]
                            : 0;
    }
}

static void run(const mpl_image_part *of)
{
    int64_t n_pixels = of->to - of->from;
    tile t = {.of = of, .filter = of->filter};

    for (int64_t at = 0, n; at < n_vectors(of->window); at += n) {
        int64_t n_tiles;

        n = vectors_at(at, n_vectors(of->window));
        n_tiles = (n_pixels + most_pixels[n] - 1) / most_pixels[n];
        t.channel = at * LANES;
        for (int64_t i = 0; i < n_tiles; i++) { /* of nearly equal size */
            t.from = of->from + n_pixels * i / n_tiles;
            kernel[n][of->from + n_pixels * (i + 1) / n_tiles - t.from](&t);
        }
        t.filter += n * LANES * n_terms(of->window);
    }
}

const mpl_image_conv mpl_image_conv_tiles = {
    .how = "images:avx512", .fits = fits, .n_packed = n_packed, .pack = pack, .run = run};
#else
static bool fits(const mpl_image_window *window)
{
    return (void)window, false;
}

const mpl_image_conv mpl_image_conv_tiles = {.how = "none", .fits = fits};
#endif
