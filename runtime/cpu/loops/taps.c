/* taps.c -- convolutions of channels-last images on processors with AVX2 and without AVX-512.
 *
 * A tap is one position of the filter's window. Where the pixels lie that the taps of a block of
 * results read is listed first; so pads, strides, dilation and pitches cost the loops nothing.
 * Pixels do not depend on each other, so neither blocks nor threads change a bit.
 *
 * A tile of six pixels by a panel of 16 channels of the result (eight by 8) stays in registers
 * while a slice of terms passes: a few taps of all channels, or some channels of a tap, so that the
 * slice of the panel's filters lies in the nearest cache for all pixels of the block. A slice adds
 * to what the last one left in y. Groups of 1, 2 or 4 channels are computed eight channels at a
 * time: their pixels' vectors are permuted within groups instead of spread. */
#include "runtime/cpu/loops/taps_priv.h"

#include "runtime/cpu/loops/chain_priv.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum {
    LANES = MPL_TAP_LANES,
    PANEL = MPL_TAP_PANEL,
    BLOCK = MPL_TAP_BLOCK,
    TAPS = 16,   /* of a slice, at most */
    TERMS = 384, /* of a slice, about */
    ROWS = 8,    /* pixels of a tile, at most */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- groups ---- */

/* Groups whose results each depend on few channels lie side by side in vectors: together they are
 * one group of results whose vectors of channels are permuted. */
typedef enum thinness {
    THICK,
    ONES, /* of one channel each */
    TWOS,
    FANS, /* of one channel and two results */
    FOURS = 4,
    N_THIN,
    THREE = N_THIN, /* tiles of a thick group of three channels, as the first images have them */
    N_TILES
} thinness;

/* Channels of a group, and its results. */
typedef struct grouping {
    int64_t n, in, out;
    int64_t terms; /* of a result, at each tap */
    thinness thin;
} grouping;

static grouping grouping_of(const mpl_image_window *window)
{
    int64_t in = window->channels / window->groups, out = window->out_channels / window->groups;
    thinness thin = in == 1 && out == 2                            ? FANS
                    : in == out && (in == 1 || in == 2 || in == 4) ? (thinness)in
                                                                   : THICK;

    if (thin == THICK || window->out_channels % LANES != 0)
        return (grouping){window->groups, in, out, in, THICK};
    return (grouping){1, window->channels, window->out_channels, in, thin};
}

static bool fits(const mpl_image_window *window)
{
    grouping g = grouping_of(window);

    return mpl_chain_widest() == MPL_CHAIN_AVX2 && __builtin_cpu_supports("fma") &&
           (g.n == 1 || g.in >= LANES) && (g.thin == THICK || window->x_apart == 1);
}

static int64_t n_taps(const mpl_image_window *window)
{
    return window->kernel[0] * window->kernel[1];
}

/* Results of a group, as panels hold them: the last panel is 8 wide where that is enough. */
static int64_t padded(int64_t out)
{
    return (out + LANES - 1) / LANES * LANES;
}

static uint64_t n_packed(const mpl_image_window *window)
{
    grouping g = grouping_of(window);

    return (uint64_t)(g.n * padded(g.out) * g.terms * n_taps(window));
}

/* Taps [from, to) and, of each group, channels [first, first + terms): what a tile sums at once. */
typedef struct slice {
    int64_t from, to, first, terms;
} slice;

/* The slice behind *s, from {0} on. False: there is none. */
static bool next_slice(const mpl_image_window *window, const grouping *g, slice *s)
{
    int64_t n_cuts = (g->terms + TERMS - 1) / TERMS, at_once = least(TERMS / g->terms, TAPS);

    s->first += s->terms;
    if (s->terms == 0 || s->first == g->terms) {
        s->from = s->to, s->first = 0;
        s->to = least(s->to + (at_once > 1 ? at_once : 1), n_taps(window));
    }
    s->terms = least((g->terms + n_cuts - 1) / n_cuts, g->terms - s->first);
    return s->from < n_taps(window);
}

/* n results from j on, in a panel of so many: [tap][term][wide]. */
static float *pack_panel(const mpl_image_window *window, const slice *s, int64_t terms,
                         const float *filter, int64_t n, int64_t wide, float *to)
{
    for (int64_t tap = s->from; tap < s->to; tap++)
        for (int64_t k = s->first; k < s->first + s->terms; k++)
            for (int64_t i = 0; i < wide; i++)
                *to++ = i < n ? filter[(i * terms + k) * n_taps(window) + tap] : 0;
    return to;
}

/* In the order in which compute() reads them. */
static void pack(const mpl_image_window *window, const float *filter, float *packed)
{
    grouping g = grouping_of(window);

    for (slice s = {0}; next_slice(window, &g, &s);)
        for (int64_t group = 0; group < g.n; group++)
            for (int64_t j = 0, n; j < g.out; j += n) {
                n = least(g.out - j, PANEL);
                packed = pack_panel(window, &s, g.terms,
                                    filter + (group * g.out + j) * g.terms * n_taps(window), n,
                                    padded(n), packed);
            }
}

#define INLINE static inline __attribute__((always_inline))
#define FMA    __attribute__((target("avx2,fma")))
#define UNROLL _Pragma("GCC unroll 16")

/* ---- tiles ---- */

INLINE FMA void begin(const mpl_tap_part *p, const int rows, const int vectors, __m256 sum[ROWS][2])
{
    if (!p->begins) {
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++) sum[i][v] =
            _mm256_loadu_ps(p->y + i * p->y_apart + v * LANES);
        return;
    }
    UNROLL for (int v = 0; v < vectors; v++)
    {
        __m256 bias = p->bias != NULL ? _mm256_loadu_ps(p->bias + v * LANES) : _mm256_setzero_ps();

        UNROLL for (int i = 0; i < rows; i++) sum[i][v] = bias;
    }
    if (p->sum != NULL)
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++) sum[i][v] =
            _mm256_add_ps(sum[i][v], _mm256_loadu_ps(p->sum + i * p->sum_apart + v * LANES));
}

INLINE FMA void end(const mpl_tap_part *p, const int rows, const int vectors, __m256 sum[ROWS][2])
{
    float *y = p->y;
    int64_t apart = p->y_apart;

    if (p->ends) { /* keeps NaNs */
        __m256 low = _mm256_set1_ps(p->low), high = _mm256_set1_ps(p->high);

        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++) sum[i][v] =
            _mm256_min_ps(high, _mm256_max_ps(low, sum[i][v]));
    }
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++)
        _mm256_storeu_ps(y + i * apart + v * LANES, sum[i][v]);
}

/* One term of a tap, spread to all lanes. */
INLINE FMA void add_term(const float *const *self, int64_t at, const float *filter, const int rows,
                         const int vectors, __m256 sum[ROWS][2])
{
    __m256 f[2];

    UNROLL for (int v = 0; v < vectors; v++) f[v] = _mm256_loadu_ps(filter + v * LANES);
    UNROLL for (int i = 0; i < rows; i++)
    {
        __m256 e = _mm256_broadcast_ss(self[i] + at);

        UNROLL for (int v = 0; v < vectors; v++) sum[i][v] = _mm256_fmadd_ps(e, f[v], sum[i][v]);
    }
}

INLINE FMA void spread_tile(const mpl_tap_part *p, const int rows, const int vectors,
                            const bool three)
{
    __m256 sum[ROWS][2];
    const float *filter = p->filter;

    begin(p, rows, vectors, sum);
    for (int64_t tap = 0; tap < p->taps; tap++) {
        const float *x[ROWS];

        UNROLL for (int i = 0; i < rows; i++) x[i] =
            p->x[tap * BLOCK + i] + (three ? 0 : p->offset);
        if (three) {
            UNROLL for (int k = 0; k < 3; k++, filter += vectors * LANES)
                add_term(x, k * p->apart, filter, rows, vectors, sum);
            continue;
        }
        for (int64_t k = 0; k < p->terms; k++, filter += vectors * LANES)
            add_term(x, k * p->apart, filter, rows, vectors, sum);
    }
    end(p, rows, vectors, sum);
}

/* Eight channels; four, each twice, where they fan out. */
INLINE FMA __m256 load_thin(const float *x, const thinness thin)
{
    if (thin != FANS)
        return _mm256_loadu_ps(x);
    return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(x)),
                                    _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
}

/* Of each group of lanes, lane k in all of them. */
INLINE FMA __m256 nth(__m256 x, const thinness thin, const int k)
{
    switch (thin * 4 + k) {
    case TWOS * 4:
        return _mm256_permute_ps(x, 0xa0);
    case TWOS * 4 + 1:
        return _mm256_permute_ps(x, 0xf5);
    case FOURS * 4:
        return _mm256_permute_ps(x, 0x00);
    case FOURS * 4 + 1:
        return _mm256_permute_ps(x, 0x55);
    case FOURS * 4 + 2:
        return _mm256_permute_ps(x, 0xaa);
    case FOURS * 4 + 3:
        return _mm256_permute_ps(x, 0xff);
    default:
        return x;
    }
}

INLINE FMA void thin_tile(const mpl_tap_part *p, const int rows, const int vectors,
                          const thinness thin)
{
    const int terms = thin == FANS ? 1 : (int)thin;
    __m256 sum[ROWS][2];
    const float *filter = p->filter;

    begin(p, rows, vectors, sum);
    for (int64_t tap = 0; tap < p->taps; tap++, filter += terms * vectors * LANES)
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++)
        {
            const float *at = p->x[tap * BLOCK + i] + p->offset;
            __m256 x = load_thin(at + v * LANES / (thin == FANS ? 2 : 1), thin);

            UNROLL for (int k = 0; k < terms; k++) sum[i][v] = _mm256_fmadd_ps(
                nth(x, thin, k), _mm256_loadu_ps(filter + (k * vectors + v) * LANES), sum[i][v]);
        }
    end(p, rows, vectors, sum);
}

#define MAKE(thin, vectors, rows)                                                                  \
    FMA static void thin##_##vectors##_##rows(const mpl_tap_part *p)                               \
    {                                                                                              \
        if (thin == THICK || thin == THREE)                                                        \
            spread_tile(p, rows, vectors, thin == THREE);                                          \
        else                                                                                       \
            thin_tile(p, rows, vectors, thin);                                                     \
    }
#define ENTER(thin, vectors, rows) [thin][vectors - 1][rows] = thin##_##vectors##_##rows,
#define FOUR(M, thin, v)           M(thin, v, 1) M(thin, v, 2) M(thin, v, 3) M(thin, v, 4)
#define SIX(M, thin, v)            FOUR(M, thin, v) M(thin, v, 5) M(thin, v, 6)
#define EIGHT(M, thin, v)          SIX(M, thin, v) M(thin, v, 7) M(thin, v, 8)
#define EACH(M)                                                                                    \
    EIGHT(M, THICK, 1)                                                                             \
    SIX(M, THICK, 2)                                                                               \
    EIGHT(M, THREE, 1)                                                                             \
    SIX(M, THREE, 2)                                                                               \
    EIGHT(M, ONES, 1)                                                                              \
    SIX(M, ONES, 2)                                                                                \
    EIGHT(M, TWOS, 1)                                                                              \
    FOUR(M, TWOS, 2) EIGHT(M, FANS, 1) SIX(M, FANS, 2) EIGHT(M, FOURS, 1) FOUR(M, FOURS, 2)

EACH(MAKE)

typedef void add_tile(const mpl_tap_part *p);
static add_tile *const tiles[N_TILES][2][ROWS + 1] = {EACH(ENTER)};
static const int64_t most_rows[N_TILES][2] = {{8, 6}, {8, 6}, {8, 4}, {8, 6}, {8, 4}, {8, 6}};

void mpl_taps_add(const mpl_tap_part *p, int64_t rows, int64_t vectors)
{
    tiles[THICK][vectors - 1][rows](p);
}

/* A tile of n channels, fewer than its vectors hold: y, sum and bias end there. */
static void add_narrow(const mpl_tap_part *p, add_tile *add, int64_t rows, int64_t n)
{
    float y[ROWS][PANEL] = {{0}}, sum[ROWS][PANEL] = {{0}}, bias[PANEL] = {0};
    size_t bytes = (size_t)n * sizeof(float);
    mpl_tap_part q = *p;

    for (int64_t i = 0; i < rows; i++) {
        if (!p->begins)
            memcpy(y[i], p->y + i * p->y_apart, bytes);
        else if (p->sum != NULL)
            memcpy(sum[i], p->sum + i * p->sum_apart, bytes);
    }
    if (p->bias != NULL)
        q.bias = memcpy(bias, p->bias, bytes);
    if (p->sum != NULL)
        q.sum = sum[0], q.sum_apart = PANEL;
    q.y = y[0], q.y_apart = PANEL;
    add(&q);
    for (int64_t i = 0; i < rows; i++)
        memcpy(p->y + i * p->y_apart, y[i], bytes);
}

/* ---- blocks ---- */

/* Pixels of one row of the result; row, column: of the first one's tap (0, 0) in x, which may lie
 * outside. */
typedef struct run {
    const float *image;
    int64_t row, column, n;
} run;

typedef struct block {
    const mpl_image_part *part;
    grouping g;
    int64_t from, n, n_runs; /* pixels of the result */
    int64_t begin, end;      /* the first tap that is summed, and what is behind the last */
    run run[BLOCK];
    const float *x[TAPS * BLOCK]; /* of the slice */
} block;

static void find_runs(block *self)
{
    const mpl_image_window *window = self->part->window;
    int64_t n;

    self->n_runs = 0;
    for (int64_t pixel = self->from; pixel < self->from + self->n; pixel += n) {
        int64_t row = pixel / window->out_wide, column = pixel % window->out_wide;

        n = least(window->out_wide - column, self->from + self->n - pixel);
        self->run[self->n_runs++] =
            (run){self->part->x + row / window->out_high * window->x_image,
                  row % window->out_high * window->stride[0] - window->pad[0],
                  column * window->stride[1] - window->pad[1], n};
    }
}

/* The pixels of x that a tap so far right reads for a run. Returns what is behind them. */
static const float **list_run(const block *self, const run *r, int64_t row, int64_t column,
                              const float **x)
{
    const mpl_image_window *window = self->part->window;
    int64_t step = window->stride[1], first = column < 0 ? (step - 1 - column) / step : 0;
    int64_t end = column < window->wide ? least(r->n, (window->wide - 1 - column) / step + 1) : 0,
            i = 0;
    int64_t at = (row * window->wide + column) * window->x_pitch; /* may lie outside */

    if (row < 0 || row >= window->high)
        end = 0;
    for (; i < least(first, end); i++)
        x[i] = self->part->nothing;
    for (; i < end; i++)
        x[i] = r->image + at + i * step * window->x_pitch;
    for (; i < r->n; i++)
        x[i] = self->part->nothing;
    return x + r->n;
}

/* Lists the pixels of x that taps [from, to) read. */
static void list_pixels(block *self, int64_t from, int64_t to)
{
    const mpl_image_window *window = self->part->window;

    for (int64_t tap = from; tap < to; tap++) {
        const float **x = self->x + (tap - from) * BLOCK;
        int64_t down = tap / window->kernel[1] * window->dilation[0];
        int64_t right = tap % window->kernel[1] * window->dilation[1];

        for (int64_t i = 0; i < self->n_runs; i++)
            x = list_run(self, &self->run[i], self->run[i].row + down, self->run[i].column + right,
                         x);
    }
}

FMA void mpl_taps_prefetch(const float *panel, int64_t n)
{
    for (int64_t i = 0; i < n; i += 64 / (int64_t)sizeof *panel)
        _mm_prefetch((const char *)(panel + i), _MM_HINT_T1);
}

/* Adds the slice to the channels of a panel: n from `channel` on. Returns the filters behind. */
static const float *add_panel(const block *self, mpl_tap_part *p, int64_t channel, int64_t n)
{
    const mpl_image_part *part = self->part;
    const mpl_image_window *window = part->window;
    thinness tile =
        self->g.thin == THICK && self->g.n == 1 && self->g.terms == 3 ? THREE : self->g.thin;
    int64_t vectors = padded(n) / LANES, most = most_rows[tile][vectors - 1];
    int64_t n_tiles = (self->n + most - 1) / most, size = p->taps * p->terms * padded(n);
    add_tile *const *add = tiles[tile][vectors - 1];

    p->bias = part->bias != NULL ? part->bias + channel : NULL;
    for (int64_t i = 0; i < n_tiles; i++) { /* of nearly equal size */
        int64_t at = self->n * i / n_tiles, rows = self->n * (i + 1) / n_tiles - at;

        p->x = self->x + at;
        p->y = part->y + (self->from + at) * window->y_pitch + channel;
        p->sum =
            part->sum != NULL ? part->sum + (self->from + at) * window->sum_pitch + channel : NULL;
        mpl_taps_prefetch(p->filter + size + size * i / n_tiles, size / n_tiles);
        if (n == vectors * LANES)
            add[rows](p);
        else
            add_narrow(p, add[rows], rows, n);
    }
    return p->filter + size;
}

/* Adds a slice to all channels. Returns the filters behind. */
static const float *add_slice(const block *self, const slice *s, const float *filter)
{
    const mpl_image_part *part = self->part;
    const grouping *g = &self->g;
    mpl_tap_part p = {.filter = filter,
                      .taps = s->to - s->from,
                      .terms = s->terms,
                      .apart = part->window->x_apart,
                      .sum_apart = part->window->sum_pitch,
                      .y_apart = part->window->y_pitch,
                      .begins = s->from == self->begin && s->first == 0,
                      .ends = s->to == self->end && s->first + s->terms == g->terms,
                      .low = part->low,
                      .high = part->high};

    for (int64_t group = 0; group < g->n; group++)
        for (int64_t j = 0; j < g->out; j += PANEL) {
            p.offset = g->thin == THICK ? (group * g->in + s->first) * p.apart : j * g->in / g->out;
            p.filter = add_panel(self, &p, group * g->out + j, least(g->out - j, PANEL));
        }
    return p.filter;
}

/* Whether a tap of the slice reads a pixel of x: of wide dilations, most lie in pads. */
static bool reads(const block *self, const slice *s)
{
    const mpl_image_window *window = self->part->window;

    for (int64_t tap = s->from; tap < s->to; tap++)
        for (const run *r = self->run; r < self->run + self->n_runs; r++) {
            int64_t row = r->row + tap / window->kernel[1] * window->dilation[0],
                    step = window->stride[1];
            int64_t column = r->column + tap % window->kernel[1] * window->dilation[1];
            int64_t i = column < 0 ? (step - 1 - column) / step : 0;

            if (row >= 0 && row < window->high && i < r->n && column + i * step < window->wide)
                return true;
        }
    return false;
}

/* The taps that sums begin and end with: the last slice alone where none reads a pixel. */
static void find_ends(block *self)
{
    bool any = false;

    for (slice s = {0}; next_slice(self->part->window, &self->g, &s);) {
        bool read = s.first == 0 && reads(self, &s);

        if (read || !any)
            self->end = s.to;
        if (!any)
            self->begin = s.from;
        any = any || read;
    }
}

static void compute(const mpl_image_part *part)
{
    block b = {.part = part, .g = grouping_of(part->window)};
    int64_t n = part->to - part->from, n_blocks = (n + BLOCK - 1) / BLOCK;

    for (int64_t i = 0; i < n_blocks; i++) {
        const float *filter = part->filter;

        b.from = part->from + n * i / n_blocks;
        b.n = part->from + n * (i + 1) / n_blocks - b.from;
        find_runs(&b);
        find_ends(&b);
        for (slice s = {0}; next_slice(part->window, &b.g, &s);) {
            if (s.from < b.begin || s.to > b.end || (s.from > b.begin && !reads(&b, &s))) {
                filter += (s.to - s.from) * s.terms * b.g.n * padded(b.g.out);
                continue;
            }
            if (s.first == 0)
                list_pixels(&b, s.from, s.to);
            filter = add_slice(&b, &s, filter);
        }
    }
}

const mpl_image_conv mpl_image_conv_taps = {
    .how = "taps:avx2", .fits = fits, .n_packed = n_packed, .pack = pack, .run = compute};
#else
static bool fits(const mpl_image_window *window)
{
    return (void)window, false;
}

const mpl_image_conv mpl_image_conv_taps = {.how = "none", .fits = fits};
#endif
