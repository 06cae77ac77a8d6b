/* winograd.c -- convolutions of channels-last images by filters of 3 x 3 at stride 1, with 16
 * products for four pixels of the result instead of 36, on processors with AVX2 and without
 * AVX-512.
 *
 * Source   A. Lavin, S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016: F(2x2, 3x3).
 *          A tile of 4 x 4 pixels becomes B' d B, filters G g G'; the sum over channels of their
 *          products, element by element, becomes the 2 x 2 pixels of the result by A' m A.
 *
 * Of a block of tiles, all elements of all channels are transformed first; then each panel of the
 * result's channels is summed, one element after the other, and transformed back. The block lies in
 * the second cache, so each panel of filters is read once a block. A pixel that is no number, or
 * infinite, would spread to its tile: such tiles are computed as the definition says. */
#include "runtime/cpu/loops/taps_priv.h"

#include "runtime/cpu/loops/chain_priv.h"

#include <math.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define FMA    __attribute__((target("avx2,fma")))

enum {
    LANES = MPL_TAP_LANES,
    PANEL = MPL_TAP_PANEL,
    ELEMENTS = 16,       /* of a transformed tile */
    ROWS = 6,            /* tiles that registers hold */
    GROUP = 12,          /* tiles whose sums the nearest cache holds */
    TILES = 60,          /* of a block, at most */
    FLOATS = 72 * 1024,  /* of a block's transformed tiles, about */
    LEAST_CHANNELS = 24, /* fewer take longer to transform than they save */
    LEAST_PIXELS = 100,  /* of an image: filters of smaller ones take as long to come as to use */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool fits(const mpl_image_window *window)
{
    for (int i = 0; i < 2; i++)
        if (window->kernel[i] != 3 || window->stride[i] != 1 || window->dilation[i] != 1)
            return false;
    return mpl_chain_widest() == MPL_CHAIN_AVX2 && __builtin_cpu_supports("fma") &&
           window->groups == 1 && window->x_apart == 1 && window->channels % LANES == 0 &&
           window->channels >= LEAST_CHANNELS && window->out_channels >= LEAST_CHANNELS &&
           window->out_high * window->out_wide >= LEAST_PIXELS;
}

/* Tiles of a block: whole rows. */
static int64_t block_of(const mpl_image_window *window)
{
    int64_t n = FLOATS / (ELEMENTS * window->channels);

    return n < ROWS ? ROWS : n > TILES ? TILES : n - n % ROWS;
}

static uint64_t n_work(const mpl_image_window *window)
{
    return (uint64_t)(ELEMENTS * block_of(window) * window->channels);
}

static int64_t n_units(const mpl_image_window *window)
{
    return window->n * ((window->out_high + 1) / 2) * ((window->out_wide + 1) / 2);
}

/* ---- filters ---- */

static int64_t padded(int64_t out)
{
    return (out + LANES - 1) / LANES * LANES;
}

static uint64_t n_packed(const mpl_image_window *window)
{
    return (uint64_t)(ELEMENTS * window->channels * padded(window->out_channels));
}

/* G g G' of one filter, g[3][3]. */
static void transform_filter(const float *g, float to[ELEMENTS])
{
    double half[4][3];

    for (int k = 0; k < 3; k++) {
        double a = (double)g[k], b = (double)g[3 + k], c = (double)g[6 + k];

        half[0][k] = a, half[1][k] = (a + b + c) / 2, half[2][k] = (a - b + c) / 2;
        half[3][k] = c;
    }
    for (int i = 0; i < 4; i++) {
        double a = half[i][0], b = half[i][1], c = half[i][2];

        to[4 * i] = (float)a, to[4 * i + 1] = (float)((a + b + c) / 2);
        to[4 * i + 2] = (float)((a - b + c) / 2), to[4 * i + 3] = (float)c;
    }
}

/* [panel][element][channel][result's channel]. */
static void pack(const mpl_image_window *window, const float *filter, float *packed)
{
    for (int64_t j = 0, wide; j < window->out_channels; j += PANEL) {
        wide = padded(least(window->out_channels - j, PANEL));
        for (int64_t c = 0; c < window->channels; c++)
            for (int64_t i = 0; i < wide; i++) {
                float e[ELEMENTS] = {0};

                if (j + i < window->out_channels)
                    transform_filter(filter + ((j + i) * window->channels + c) * 9, e);
                for (int64_t k = 0; k < ELEMENTS; k++)
                    packed[(k * window->channels + c) * wide + i] = e[k];
            }
        packed += ELEMENTS * window->channels * wide;
    }
}

/* ---- tiles ---- */

/* The first pixel of a tile, in the result. */
typedef struct corner {
    int64_t image, row, column;
} corner;

static corner corner_of(const mpl_image_window *window, int64_t tile)
{
    int64_t wide = (window->out_wide + 1) / 2, high = (window->out_high + 1) / 2;

    return (corner){tile / wide / high, tile / wide % high * 2, tile % wide * 2};
}

static const float *pixel_at(const mpl_image_part *part, int64_t image, int64_t row, int64_t column)
{
    const mpl_image_window *window = part->window;

    if (row < 0 || row >= window->high || column < 0 || column >= window->wide)
        return part->nothing;
    return part->x + ((image * window->high + row) * window->wide + column) * window->x_pitch;
}

/* B' of four vectors. */
INLINE FMA void transform_four(__m256 d[4], int apart)
{
    __m256 a = d[0], b = d[apart], c = d[2 * apart], e = d[3 * apart];

    d[0] = _mm256_sub_ps(a, c), d[apart] = _mm256_add_ps(b, c);
    d[2 * apart] = _mm256_sub_ps(c, b), d[3 * apart] = _mm256_sub_ps(b, e);
}

/* Transforms a tile: element k goes to to[k * apart ..]. False: a result is no number, or infinite.
 */
FMA static bool transform_tile(const mpl_image_part *part, int64_t tile, float *to, int64_t apart)
{
    corner at = corner_of(part->window, tile);
    const float *x[ELEMENTS];
    __m256 zero = _mm256_setzero_ps(), none = zero;

    for (int i = 0; i < ELEMENTS; i++)
        x[i] = pixel_at(part, at.image, at.row - part->window->pad[0] + i / 4,
                        at.column - part->window->pad[1] + i % 4);
    for (int64_t c = 0; c < part->window->channels; c += LANES) {
        __m256 d[ELEMENTS];

        for (int i = 0; i < ELEMENTS; i++)
            d[i] = _mm256_loadu_ps(x[i] + c);
        for (int i = 0; i < 4; i++)
            transform_four(d + 4 * i, 1);
        for (int i = 0; i < 4; i++)
            transform_four(d + i, 4);
        for (int i = 0; i < ELEMENTS; i++) {
            _mm256_storeu_ps(to + i * apart + c, d[i]);
            none = _mm256_fmadd_ps(d[i], zero, none); /* stays 0 but for those */
        }
    }
    return _mm256_movemask_ps(_mm256_cmp_ps(none, zero, _CMP_EQ_OQ)) == 0xff;
}

/* ---- results ---- */

/* Adds what is added to the sums of a pixel's channels, and stores them. bias, added: or NULL. */
INLINE FMA void finish(const mpl_image_part *part, const float *bias, const float *added,
                       __m256 sum, float *y)
{
    if (bias != NULL)
        sum = _mm256_add_ps(sum, _mm256_loadu_ps(bias));
    if (added != NULL)
        sum = _mm256_add_ps(sum, _mm256_loadu_ps(added));
    _mm256_storeu_ps(y, _mm256_min_ps(_mm256_set1_ps(part->high),
                                      _mm256_max_ps(_mm256_set1_ps(part->low), sum)));
}

/* The same of fewer channels than a vector has. */
FMA static void finish_few(const mpl_image_part *t, const float *bias, const float *added,
                           __m256 sum, float *y, int64_t n)
{
    float part[3][LANES] = {{0}};
    size_t bytes = (size_t)n * sizeof *y;

    if (bias != NULL)
        bias = memcpy(part[0], bias, bytes);
    if (added != NULL)
        added = memcpy(part[1], added, bytes);
    finish(t, bias, added, sum, part[2]);
    memcpy(y, part[2], bytes);
}

/* Four pixels of the result, from a channel on; y is NULL where there is none. */
typedef struct place {
    float *y;
    const float *sum; /* or NULL */
} place;

static void find_places(const mpl_image_part *part, int64_t tile, int64_t channel, place to[4])
{
    const mpl_image_window *window = part->window;
    corner at = corner_of(window, tile);

    for (int i = 0; i < 4; i++) {
        int64_t row = at.row + i / 2, column = at.column + i % 2;
        int64_t pixel = (at.image * window->out_high + row) * window->out_wide + column;

        to[i] = (place){0};
        if (row >= window->out_high || column >= window->out_wide)
            continue;
        to[i].y = part->y + pixel * window->y_pitch + channel;
        if (part->sum != NULL)
            to[i].sum = part->sum + pixel * window->sum_pitch + channel;
    }
}

/* A' m A of eight channels: element k at m[k * apart]. */
INLINE FMA void transform_sums(const float *m, int64_t apart, __m256 y[4])
{
    __m256 half[4][2];

    for (int i = 0; i < 4; i++, m += 4 * apart) {
        __m256 b = _mm256_loadu_ps(m + apart), c = _mm256_loadu_ps(m + 2 * apart);

        half[i][0] = _mm256_add_ps(_mm256_add_ps(_mm256_loadu_ps(m), b), c);
        half[i][1] = _mm256_sub_ps(_mm256_sub_ps(b, c), _mm256_loadu_ps(m + 3 * apart));
    }
    for (int k = 0; k < 2; k++) {
        y[k] = _mm256_add_ps(_mm256_add_ps(half[0][k], half[1][k]), half[2][k]);
        y[2 + k] = _mm256_sub_ps(_mm256_sub_ps(half[1][k], half[2][k]), half[3][k]);
    }
}

/* n channels of a tile's pixels, from the sums. */
FMA static void transform_back(const mpl_image_part *part, int64_t tile, int64_t channel, int64_t n,
                               const float *m, int64_t apart)
{
    place to[4];

    find_places(part, tile, channel, to);
    for (int64_t v = 0; v < n; v += LANES) {
        const float *bias = part->bias != NULL ? part->bias + channel + v : NULL;
        __m256 y[4];

        transform_sums(m + v, apart, y);
        for (int i = 0; i < 4; i++) {
            const float *sum = to[i].sum != NULL ? to[i].sum + v : NULL;

            if (to[i].y == NULL)
                continue;
            if (n - v < LANES)
                finish_few(part, bias, sum, y[i], to[i].y + v, n - v);
            else
                finish(part, bias, sum, y[i], to[i].y + v);
        }
    }
}

/* Tiles [first, first + n). */
typedef struct block {
    int64_t first, n;
    float *d;          /* transformed: [element][tile][channel] */
    bool usual[TILES]; /* computed so; else as the definition says */
} block;

/* A panel of the result's channels. */
typedef struct panel {
    const float *filter;
    int64_t channel, n, wide;
} panel;

/* Tiles [from, to) of a block. Their sums stay in the nearest cache until they are transformed
 * back. behind: what is read after the panel, a part of which is fetched. */
static void add_group(const mpl_image_part *t, const block *b, const panel *p, int64_t from,
                      int64_t to, const float *behind, int64_t n_behind)
{
    int64_t terms = t->window->channels, n = to - from, n_rows = (n + ROWS - 1) / ROWS;
    const float *x[GROUP];
    float m[ELEMENTS * GROUP * PANEL];
    mpl_tap_part part = {.taps = 1, .terms = terms, .apart = 1, .y_apart = PANEL, .begins = true};

    for (int64_t k = 0; k < ELEMENTS; k++) {
        for (int64_t i = 0; i < n; i++)
            x[i] = b->d + (k * b->n + from + i) * terms;
        part.filter = p->filter + k * terms * p->wide;
        mpl_taps_prefetch(behind + n_behind * k / ELEMENTS, n_behind / ELEMENTS);
        for (int64_t i = 0; i < n_rows; i++) { /* of nearly equal size */
            int64_t at = n * i / n_rows;

            part.x = x + at, part.y = m + (k * GROUP + at) * PANEL;
            mpl_taps_add(&part, n * (i + 1) / n_rows - at, p->wide / LANES);
        }
    }
    for (int64_t i = 0; i < n; i++)
        if (b->usual[from + i])
            transform_back(t, b->first + from + i, p->channel, p->n, m + i * PANEL, GROUP * PANEL);
}

static void add_panels(const mpl_image_part *part, const block *b)
{
    int64_t n_groups = (b->n + GROUP - 1) / GROUP, all = part->window->out_channels, size;
    panel p = {.filter = part->filter};

    for (; p.channel < all; p.channel += PANEL, p.filter += size) {
        p.n = least(all - p.channel, PANEL), p.wide = padded(p.n);
        size = ELEMENTS * part->window->channels * p.wide;
        for (int64_t i = 0; i < n_groups; i++)
            add_group(part, b, &p, b->n * i / n_groups, b->n * (i + 1) / n_groups,
                      p.filter + size + size * i / n_groups, size / n_groups);
    }
}

/* Channel k of pixel i of a tile, without what is added. */
static float define(const mpl_image_part *part, corner first, int64_t k, int64_t i)
{
    const mpl_image_window *window = part->window;
    float sum = 0;

    for (int64_t tap = 0; tap < 9; tap++) {
        const float *x = pixel_at(part, first.image, first.row + i / 2 - window->pad[0] + tap / 3,
                                  first.column + i % 2 - window->pad[1] + tap % 3);

        for (int64_t c = 0; c < window->channels && x != part->nothing; c++)
            sum += x[c] * part->given[(k * window->channels + c) * 9 + tap];
    }
    return sum;
}

/* A tile as the definition says. */
FMA static void define_tile(const mpl_image_part *part, int64_t tile)
{
    corner at = corner_of(part->window, tile);
    place to[4];

    for (int64_t k = 0; k < part->window->out_channels; k++) {
        const float *bias = part->bias != NULL ? part->bias + k : NULL;

        find_places(part, tile, k, to);
        for (int i = 0; i < 4; i++)
            if (to[i].y != NULL)
                finish_few(part, bias, to[i].sum, _mm256_set1_ps(define(part, at, k, i)), to[i].y,
                           1);
    }
}

static void compute(const mpl_image_part *part)
{
    const mpl_image_window *window = part->window;
    int64_t all = part->to - part->from, n_blocks = (all + block_of(window) - 1) / block_of(window);

    for (int64_t i = 0; i < n_blocks; i++) {
        block b = {.first = part->from + all * i / n_blocks, .d = part->work};

        b.n = part->from + all * (i + 1) / n_blocks - b.first;
        for (int64_t k = 0; k < b.n; k++)
            b.usual[k] = transform_tile(part, b.first + k, b.d + k * window->channels,
                                        b.n * window->channels);
        add_panels(part, &b);
        for (int64_t k = 0; k < b.n; k++)
            if (!b.usual[k])
                define_tile(part, b.first + k);
    }
}

const mpl_image_conv mpl_image_conv_winograd = {.how = "winograd:avx2",
                                                .fits = fits,
                                                .n_packed = n_packed,
                                                .n_work = n_work,
                                                .n_units = n_units,
                                                .pack = pack,
                                                .run = compute};
#else
static bool fits(const mpl_image_window *window)
{
    return (void)window, false;
}

const mpl_image_conv mpl_image_conv_winograd = {.how = "none", .fits = fits};
#endif
