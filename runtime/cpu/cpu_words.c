/* cpu_words.c -- see cpu_words.h. */
#include "runtime/cpu/cpu_words.h"

#include "graphs/ops/matrix/window_priv.h"
#include "runtime/cpu/loops/chain_priv.h"
#include "runtime/cpu/loops/words.h"
#include "runtime/cpu/sums.h"

enum {
    LINE = 64, /* alignment in the workspace [byte] */
    PANEL = MPL_WORDS_PANEL,
    PIXELS = MPL_WORDS_PIXELS,
    TILE = MPL_SUMS_TILE,
    SHARE = 512 * 1024, /* products worth a thread of their own */
};
#define MOST_WORDS (UINT64_C(1) << 40) /* of a widened image */

/* x is [batch, channels, in..] or with channels last; a product: its rows are the pixels of an
 * image one pixel wide, its terms the channels. Filters are [filters, channels / group, kernel..]
 * with these strides. */
struct mpl_words {
    const mpl_word_loops *loops;
    mpl_window w;
    int64_t batch, channels, filters, group, in_pixels, pixels;
    int64_t filter_step, channel_step, kernel_step[3]; /* of the weight [element] */
    bool turned;                                       /* channels first */
    bool own;                                          /* each filter reads a channel of its own */
    bool constant;                                     /* weights are packed once */
    bool narrow;                                       /* and as bytes: they fit, less their zero */
    bool is_packed;
    mpl_shape stack, stack_x, stack_w; /* of products, broadcast */
    int64_t n_weights;                 /* how many are packed */
    int axis;                          /* the first spatial dim, which pieces are cut along */
    int64_t piece;                     /* outputs along it */
    int64_t wide[3], step[3];          /* the piece: entries, and words between them */
    bool whole;                        /* a row of the window is one run */
    int64_t in_inner, out_inner;       /* pixels at an entry of the axis */
    int64_t n_taps, run;               /* of a pixel's window; see loops/words.h */
    int64_t *tap;                      /* [n_taps] */
    int64_t each_weight;               /* words of one packed weight */
    int16_t *kept;                     /* [n_weights * each_weight]; NULL if they are narrow */
    int8_t *narrowed;                  /* the same as bytes */
    uint64_t words_at, pack_at;        /* in the workspace, behind bytes of a piece [byte] */
};

/* ---- preparing ---- */

static bool is_byte(const mpl_graph *g, mpl_value v)
{
    return g->value_type[v] == MPL_TYPE_u8 || g->value_type[v] == MPL_TYPE_i8;
}

/* Whether an operand never changes, or is left out. */
static bool is_constant(const mpl_graph *g, mpl_op op, uint32_t i)
{
    mpl_value v = i < mpl_op_n_in(g, op) ? mpl_op_input(g, op, i) : MPL_NONE;

    return v == MPL_NONE || g->value_role[v] == MPL_WEIGHT;
}

/* Whether all zero points are known to be the middle of the weights' type, so that a weight less
 * its zero point is a signed byte. */
static bool is_centred(const mpl_graph *g, mpl_op op)
{
    mpl_value v = Q_W_ZERO < mpl_op_n_in(g, op) ? mpl_op_input(g, op, Q_W_ZERO) : MPL_NONE;
    bool is_signed = g->value_type[mpl_op_input(g, op, Q_W)] == MPL_TYPE_i8;
    const uint8_t *zero;

    if (v == MPL_NONE)
        return is_signed;
    if ((zero = g->value_data[v]) == NULL)
        return false;
    for (uint64_t i = 0; i < (g->value_splat[v] ? 1 : g->value_bytes[v]); i++)
        if (zero[i] != (is_signed ? 0 : 128))
            return false;
    return true;
}

static mpl_shape channels_first(const mpl_shape *shape, bool last)
{
    mpl_shape plain = *shape;

    for (uint32_t i = 1; last && i < shape->rank; i++)
        plain.dim[i] = shape->dim[i == 1 ? shape->rank - 1 : i - 1];
    return plain;
}

static mpl_status read_conv(mpl_ctx *ctx, mpl_words *words, const mpl_graph *g, mpl_op op)
{
    bool last = mpl_attr_int(g, op, MPL_ATTR_channels_last, 0) != 0;
    const mpl_shape *weight = &g->value_shape[mpl_op_input(g, op, Q_W)];
    mpl_shape x = channels_first(&g->value_shape[mpl_op_input(g, op, Q_X)], last);
    mpl_shape w = channels_first(weight, last);
    int64_t stride[MPL_MAX_RANK];

    MPL_PASS(mpl_window_read(ctx, g, op, &x, &w, &words->w));
    MPL_PASS(mpl_window_slide(ctx, g, op, &words->w));
    words->batch = x.dim[0], words->channels = x.dim[1], words->filters = w.dim[0];
    words->group = mpl_attr_int(g, op, MPL_ATTR_group, 1);
    words->turned = !last;
    mpl_strides(weight, stride);
    words->filter_step = stride[0];
    words->channel_step = stride[last ? weight->rank - 1 : 1];
    for (uint32_t i = 0; i < words->w.n; i++)
        words->kernel_step[3 - words->w.n + i] = stride[(last ? 1 : 2) + i];
    return MPL_OK;
}

static mpl_status read_product(mpl_ctx *ctx, mpl_words *words, const mpl_graph *g, mpl_op op)
{
    const mpl_shape *a = &g->value_shape[mpl_op_input(g, op, Q_X)];
    const mpl_shape *b = &g->value_shape[mpl_op_input(g, op, Q_W)];
    bool turned = mpl_attr_int(g, op, MPL_ATTR_trans_b, 0) != 0;
    int64_t rows = a->dim[a->rank - 2];

    words->channels = a->dim[a->rank - 1], words->filters = b->dim[b->rank - (turned ? 2 : 1)];
    words->stack_x = *a, words->stack_w = *b;
    words->stack_x.rank -= 2, words->stack_w.rank -= 2;
    words->n_weights = mpl_count(&words->stack_w);
    if (b->rank == 2) /* the rows of a stack are the rows of one matrix */
        rows *= mpl_count(&words->stack_x), words->stack_x.rank = 0;
    MPL_PASS(mpl_broadcast(ctx, &words->stack_x, &words->stack_w, &words->stack));
    words->batch = words->group = 1;
    words->filter_step = turned ? words->channels : 1;
    words->channel_step = turned ? 1 : words->filters;
    words->w =
        (mpl_window){2, {1, rows, 1}, {1, rows, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}};
    return MPL_OK;
}

/* How large a piece is. False: it is as large as no memory. */
static bool cut(mpl_words *q, int64_t piece_words)
{
    const mpl_window *window = &q->w;
    uint64_t words = (uint64_t)q->channels;
    int64_t span, pieces;

    q->axis = 3 - (int)window->n;
    q->in_inner = q->out_inner = 1;
    for (int i = 2; i >= q->axis; i--) {
        q->wide[i] = (window->out[i] - 1) * window->stride[i] +
                     (window->kernel[i] - 1) * window->dilation[i] + 1;
        q->step[i] = (int64_t)words;
        if (!mpl_mul_bytes(words, (uint64_t)mpl_most(q->wide[i], window->in[i]), &words) ||
            words > MOST_WORDS)
            return false;
        words = (uint64_t)(q->step[i] * q->wide[i]);
        q->in_inner *= i > q->axis ? window->in[i] : 1;
        q->out_inner *= i > q->axis ? window->out[i] : 1;
    }
    for (int i = 0; i < q->axis; i++)
        q->wide[i] = 1;
    span = (window->kernel[q->axis] - 1) * window->dilation[q->axis] + 1;
    q->piece = (piece_words / q->step[q->axis] - span) / window->stride[q->axis] + 1;
    q->piece = q->piece < 1 ? 1 : mpl_least(q->piece, window->out[q->axis]);
    pieces = (window->out[q->axis] + q->piece - 1) / q->piece;
    q->piece = (window->out[q->axis] + pieces - 1) / pieces;
    q->wide[q->axis] = (q->piece - 1) * window->stride[q->axis] + span;
    return true;
}

/* Where a pixel's terms lie in a piece. */
static mpl_status find_taps(mpl_ctx *ctx, mpl_words *words)
{
    const mpl_window *window = &words->w;
    int64_t own = words->channels / words->group, at = 0;

    words->whole = words->group == 1 && window->dilation[2] == 1;
    words->own =
        !words->whole && words->group == words->channels && words->filters == words->channels;
    words->run = ((words->whole ? window->kernel[2] : 1) * own + 1) & ~INT64_C(1);
    words->n_taps = window->kernel[0] * window->kernel[1] * (words->whole ? 1 : window->kernel[2]);
    MPL_PASS(mpl_new(ctx, words->tap, (size_t)words->n_taps));
    for (int64_t i = 0; i < window->kernel[0]; i++)
        for (int64_t j = 0; j < window->kernel[1]; j++)
            for (int64_t k = 0; k < (words->whole ? 1 : window->kernel[2]); k++)
                words->tap[at++] = i * window->dilation[0] * words->step[0] +
                                   j * window->dilation[1] * words->step[1] +
                                   k * window->dilation[2] * words->step[2];
    return MPL_OK;
}

static uint64_t aligned(int64_t bytes)
{
    return ((uint64_t)bytes + LINE - 1) & ~(uint64_t)(LINE - 1);
}

/* Filters of a group, or, of channels on their own, of all, in whole panels. */
static int64_t panels_of(const mpl_words *words)
{
    return ((words->own ? words->filters : words->filters / words->group) + PANEL - 1) / PANEL;
}

static uint64_t place(mpl_words *q)
{
    int64_t words = q->wide[q->axis] * q->step[q->axis] + MPL_WORDS_SLACK;

    q->each_weight = q->own ? panels_of(q) * ((q->n_taps + 1) & ~INT64_C(1)) * PANEL
                            : q->group * panels_of(q) * q->n_taps * q->run * PANEL;
    q->words_at =
        q->turned
            ? aligned(mpl_least(q->wide[q->axis], q->w.in[q->axis]) * q->in_inner * q->channels)
            : 0;
    q->pack_at = q->words_at + aligned(words * (int64_t)sizeof(int16_t));
    return q->pack_at + (q->constant ? 0 : aligned(q->each_weight * (int64_t)sizeof(int16_t)));
}

/* Whether sums of 32 bits hold, and nothing is empty. */
static bool fits(const mpl_graph *g, mpl_op op)
{
    mpl_value x = mpl_op_input(g, op, Q_X), w = mpl_op_input(g, op, Q_W);
    const mpl_shape *shape = &g->value_shape[w];
    bool turned = mpl_attr_int(g, op, MPL_ATTR_trans_b, 0) != 0;
    int64_t terms = g->op_kind[op] == MPL_OP_qconv ? mpl_count_dims(shape, 1, shape->rank)
                                                   : shape->dim[shape->rank - (turned ? 1 : 2)];

    return is_byte(g, x) && is_byte(g, w) && terms <= MPL_WORDS_TERMS &&
           mpl_count(&g->value_shape[x]) > 0 && mpl_count(shape) > 0 &&
           mpl_count(&g->value_shape[mpl_op_output(g, op, 0)]) > 0;
}

mpl_status mpl_words_new(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, int64_t piece_words,
                         bool plain, mpl_words **out, uint64_t *workspace_bytes, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_words *words = NULL;
    bool conv = g->op_kind[op] == MPL_OP_qconv;

    *out = NULL;
    if ((!conv && g->op_kind[op] != MPL_OP_qmatmul) || !fits(g, op))
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, words, 1));
    words->loops = mpl_word_loops_here(plain);
    words->n_weights = 1;
    MPL_TRY((conv ? read_conv : read_product)(ctx, words, g, op));
    words->in_pixels = words->w.in[0] * words->w.in[1] * words->w.in[2];
    words->pixels = words->w.out[0] * words->w.out[1] * words->w.out[2];
    words->constant = is_constant(g, op, Q_W) && is_constant(g, op, Q_W_ZERO);
    if (!cut(words, piece_words))
        goto out;
    MPL_TRY(find_taps(ctx, words));
    *workspace_bytes = place(words);
    words->narrow = words->constant && !words->own && is_centred(g, op);
    if (words->narrow)
        MPL_TRY(mpl_new(ctx, words->narrowed, (size_t)(words->n_weights * words->each_weight)));
    else if (words->constant)
        MPL_TRY(mpl_new(ctx, words->kept, (size_t)(words->n_weights * words->each_weight)));
    *how = words->loops->how;
    *out = words, words = NULL;
out:
    mpl_words_free(ctx, words);
    return st;
}

void mpl_words_free(mpl_ctx *ctx, mpl_words *words)
{
    if (words != NULL)
        mpl_free_each(ctx, words->tap, words->kept, words->narrowed, words);
}

uint64_t mpl_words_packed_bytes(const mpl_words *words)
{
    uint64_t n = words->constant ? (uint64_t)(words->n_weights * words->each_weight) : 0;

    return n * (words->narrow ? sizeof *words->narrowed : sizeof *words->kept);
}

/* ---- packing weights ---- */

/* Filters [first, first + n) of a panel, the weight's bytes and zero points. */
typedef struct packing {
    const mpl_words *words;
    const uint8_t *weight;
    bool is_signed;
    int64_t first, n;
    int16_t zero[PANEL];
    int16_t *panel; /* NULL: bytes are packed */
    int8_t *narrow;
} packing;

/* Term `at` of each filter, `from` elements after its first one. */
static void pack_term(const packing *self, int64_t at, int64_t from)
{
    const uint8_t *w = self->weight + self->first * self->words->filter_step + from;
    int64_t to = at / 2 * PANEL * 2 + at % 2;

    for (int64_t j = 0; j < self->n; j++, w += self->words->filter_step, to += 2) {
        int term = (self->is_signed ? (int8_t)*w : *w) - self->zero[j];

        if (self->panel != NULL)
            self->panel[to] = (int16_t)term;
        else
            self->narrow[to] = (int8_t)term;
    }
}

static void pack_panel(const packing *self)
{
    const mpl_words *words = self->words;
    const int64_t *kernel = words->w.kernel, *step = words->kernel_step;
    int64_t own = words->channels / words->group, run = words->own ? 1 : words->run;

    for (int64_t i = 0; i < kernel[0]; i++)
        for (int64_t j = 0; j < kernel[1]; j++)
            for (int64_t k = 0; k < kernel[2]; k++) {
                int64_t row = i * kernel[1] + j;
                int64_t at = words->whole ? row * run + k * own : (row * kernel[2] + k) * run;

                for (int64_t c = 0; c < own; c++)
                    pack_term(self, at + c,
                              i * step[0] + j * step[1] + k * step[2] + c * words->channel_step);
            }
}

/* The weight of bytes `weight`, to `to` or, as bytes, to `narrow`; the other is NULL. */
static void pack(const mpl_words *words, const mpl_op_call *call, const uint8_t *weight,
                 int16_t *to, int8_t *narrow)
{
    int64_t groups = words->own ? 1 : words->group, filters = words->filters / groups,
            panels = panels_of(words);
    packing p = {.words = words, .weight = weight, .is_signed = call->in[Q_W].type == MPL_TYPE_i8};

    memset(to != NULL ? (void *)to : narrow, 0,
           (size_t)words->each_weight * (to != NULL ? sizeof *to : sizeof *narrow));
    for (int64_t i = 0; i < groups * panels; i++) {
        int64_t at = i % panels * PANEL;

        p.first = i / panels * filters + at;
        p.n = mpl_least(filters - at, PANEL);
        for (int64_t j = 0; j < p.n; j++)
            p.zero[j] = (int16_t)mpl_q_at(call, Q_W_ZERO, p.first + j, 0);
        at = i * (words->each_weight / (groups * panels));
        p.panel = to != NULL ? to + at : NULL;
        p.narrow = to != NULL ? NULL : narrow + at;
        pack_panel(&p);
    }
}

/* ---- running ---- */

/* One piece of an image, or of a product. */
typedef struct job {
    const mpl_words *q;
    mpl_sums sums;
    const uint8_t *x;      /* the image */
    const int16_t *filter; /* packed */
    const int8_t *narrow;  /* or packed as bytes */
    uint8_t *bytes;        /* channels last, if they are not in x */
    int16_t *words;
    int64_t image;    /* of the output: its first element */
    int64_t from, n;  /* outputs along q->axis */
    int64_t first[3]; /* input entry of the piece's first entry; may be outside */
    int64_t wide[3];
    int64_t pixel, n_pixels;   /* of the input, that the piece reads */
    int64_t n_tiles, n_blocks; /* of filters, of pixels */
} job;

/* Channels [from, to) of the piece's bytes. */
static void turn(const void *arg, int64_t from, int64_t to)
{
    const job *j = arg;

    mpl_turn_bytes(j->x + from * j->q->in_pixels + j->pixel, j->q->in_pixels, j->bytes + from,
                   j->q->channels, to - from, j->n_pixels);
}

/* Rows [from, to) of the piece, of wide[2] pixels each. */
static void widen(const void *arg, int64_t from, int64_t to)
{
    const job *j = arg;
    const mpl_words *words = j->q;
    const mpl_op_call *call = j->sums.call;
    const mpl_window *window = &words->w;
    bool is_signed = call->in[Q_X].type == MPL_TYPE_i8;
    bool product = call->graph->op_kind[call->op] == MPL_OP_qmatmul;
    int64_t rows = product ? call->in[Q_X].shape.dim[call->in[Q_X].shape.rank - 2] : 1;

    for (int64_t r = from; r < to; r++) {
        int64_t a = j->first[0] + r / j->wide[1], b = j->first[1] + r % j->wide[1];
        int64_t low = j->first[2] < 0 ? mpl_least(-j->first[2], j->wide[2]) : 0;
        int64_t high = mpl_least(j->wide[2], window->in[2] - j->first[2]);
        int64_t pixel = (a * window->in[1] + b) * window->in[2] + j->first[2] + low;
        int16_t *row = j->words + r * j->wide[2] * words->channels;

        if (!mpl_is_inside(a, window->in[0]) || !mpl_is_inside(b, window->in[1]) || high <= low)
            low = high = 0;
        memset(row, 0, (size_t)(low * words->channels) * sizeof *row);
        if (high > low)
            words->loops->widen(row + low * words->channels,
                                words->turned ? j->bytes + (pixel - j->pixel) * words->channels
                                              : j->x + pixel * words->channels,
                                is_signed, (int16_t)mpl_q_at(call, Q_X_ZERO, pixel % rows, 0),
                                (high - low) * words->channels);
        memset(row + high * words->channels, 0,
               (size_t)((j->wide[2] - high) * words->channels) * sizeof *row);
    }
}

/* Where the windows of n pixels of the piece begin, from the pixel `at` on. */
static void find_pixels(const job *self, int64_t at, int64_t n, int64_t channel, const int16_t **to)
{
    const mpl_words *words = self->q;
    const mpl_window *window = &words->w;

    for (int64_t i = 0; i < n; i++) {
        int64_t row = (at + i) / window->out[2], x = (at + i) % window->out[2];

        to[i] = self->words + channel + row / window->out[1] * window->stride[0] * words->step[0] +
                row % window->out[1] * window->stride[1] * words->step[1] +
                x * window->stride[2] * words->step[2];
    }
}

/* Blocks of pixels by tiles of filters, a tile's blocks one after another. */
static void compute(const void *arg, int64_t from, int64_t to)
{
    const job *j = arg;
    const mpl_words *words = j->q;
    int64_t groups = words->own ? 1 : words->group, filters = words->filters / groups;
    int64_t panels = panels_of(words), each = words->each_weight / (groups * panels);
    int64_t pixels = j->n * words->out_inner, tiles = j->n_tiles / groups;
    int32_t sum[PIXELS * TILE];
    const int16_t *at[PIXELS];
    mpl_sums_scales scales; /* large: its arrays are not cleared */

    scales.channel = -1, scales.n = 0;
    for (int64_t u = from; u < to; u++) {
        int64_t tile = u / j->n_blocks, pixel = u % j->n_blocks * PIXELS;
        int64_t group = tile / tiles, first = tile % tiles * TILE;
        int64_t n = mpl_least(filters - first, TILE), n_pixels = mpl_least(pixels - pixel, PIXELS);
        int64_t panel = (group * panels + first / PANEL) * each;
        mpl_word_tile t = {.at = at,
                           .n = n_pixels,
                           .n_panels = (n + PANEL - 1) / PANEL,
                           .n_taps = words->n_taps,
                           .run = words->run,
                           .tap = words->tap,
                           .filter = j->filter != NULL ? j->filter + panel : NULL,
                           .narrow = j->narrow != NULL ? j->narrow + panel : NULL,
                           .sum = sum,
                           .apart = TILE};

        if (scales.channel != group * filters + first)
            mpl_sums_scales_get(&j->sums, group * filters + first, n, &scales);
        find_pixels(j, pixel, n_pixels,
                    words->own ? first : group * (words->channels / words->group), at);
        (words->own ? words->loops->channels : words->loops->products)(&t);
        mpl_sums_put(&j->sums, &scales, sum, TILE, j->image, j->from * words->out_inner + pixel,
                     n_pixels);
    }
}

/* Outputs [self->from, self->from + self->n) along the axis. */
static void run_piece(job *self, uint32_t n_threads)
{
    const mpl_words *words = self->q;
    const mpl_window *window = &words->w;
    int64_t groups = words->own ? 1 : words->group, units, terms, low, high;

    for (int i = 0; i < 3; i++) {
        self->first[i] =
            (i == words->axis ? self->from * window->stride[i] : 0) - window->before[i];
        self->wide[i] = words->wide[i];
    }
    self->wide[words->axis] -= (words->piece - self->n) * window->stride[words->axis];
    low = mpl_most(self->first[words->axis], 0);
    high = mpl_least(self->first[words->axis] + self->wide[words->axis], window->in[words->axis]);
    self->pixel = low * words->in_inner, self->n_pixels = mpl_most(high - low, 0) * words->in_inner;
    if (words->turned)
        mpl_deal(words->channels, PANEL, self->n_pixels * words->channels / SHARE, n_threads, turn,
                 self);
    mpl_deal(self->wide[0] * self->wide[1], 1, self->wide[0] * words->step[0] / SHARE, n_threads,
             widen, self);
    self->n_tiles = groups * ((words->filters / groups + TILE - 1) / TILE);
    self->n_blocks = (self->n * words->out_inner + PIXELS - 1) / PIXELS;
    units = self->n_tiles * self->n_blocks;
    terms = words->each_weight * self->n * words->out_inner / SHARE;
    mpl_deal(units, 1, mpl_least(terms, units), n_threads, compute, self);
}

/* One image or product. */
static void run_image(job *self, uint32_t n_threads)
{
    int64_t all = self->q->w.out[self->q->axis];

    for (self->from = 0; self->from < all; self->from += self->n) {
        self->n = mpl_least(self->q->piece, all - self->from);
        run_piece(self, n_threads);
    }
}

void mpl_words_run(mpl_words *words, const mpl_op_call *call, uint32_t n_threads)
{
    int64_t index[MPL_MAX_RANK] = {0}, stride[2][MPL_MAX_RANK], at[2] = {0}, packed = -1;
    int64_t of_weight = words->filters * (words->channels / words->group) * words->w.kernel[0] *
                        words->w.kernel[1] * words->w.kernel[2];
    const uint8_t *x = call->in[Q_X].data, *weight = call->in[Q_W].data;
    char *workspace = call->workspace;
    int16_t *fresh = (int16_t *)(void *)(workspace + words->pack_at);
    job j = {.q = words,
             .sums = mpl_sums_of(call, words->pixels, words->filters, words->turned),
             .bytes = (uint8_t *)workspace,
             .words = (int16_t *)(void *)(workspace + words->words_at)};

    for (int64_t i = 0; i < words->n_weights && words->constant && !words->is_packed; i++)
        pack(words, call, weight + i * of_weight,
             words->narrow ? NULL : words->kept + i * words->each_weight,
             words->narrow ? words->narrowed + i * words->each_weight : NULL);
    words->is_packed = words->constant;
    mpl_broadcast_strides(&words->stack_x, &words->stack, stride[0]);
    mpl_broadcast_strides(&words->stack_w, &words->stack, stride[1]);
    do {
        if (!words->constant && packed != at[1])
            pack(words, call, weight + at[1] * of_weight, fresh, NULL), packed = at[1];
        j.filter = words->narrow     ? NULL
                   : words->constant ? words->kept + at[1] * words->each_weight
                                     : fresh;
        j.narrow = words->narrow ? words->narrowed + at[1] * words->each_weight : NULL;
        for (int64_t b = 0; b < words->batch; b++, j.image += words->pixels * words->filters) {
            j.x = x + (at[0] * words->batch + b) * words->channels * words->in_pixels;
            run_image(&j, n_threads);
        }
    } while (mpl_step(words->stack.dim, words->stack.rank, index, 2,
                      (const int64_t(*)[MPL_MAX_RANK])stride, at));
}
