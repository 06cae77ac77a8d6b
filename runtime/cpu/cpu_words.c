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

static mpl_shape channels_first(const mpl_shape *s, bool last)
{
    mpl_shape plain = *s;

    for (uint32_t i = 1; last && i < s->rank; i++)
        plain.dim[i] = s->dim[i == 1 ? s->rank - 1 : i - 1];
    return plain;
}

static mpl_status read_conv(mpl_ctx *ctx, mpl_words *q, const mpl_graph *g, mpl_op op)
{
    bool last = mpl_attr_int(g, op, MPL_ATTR_channels_last, 0) != 0;
    const mpl_shape *weight = &g->value_shape[mpl_op_input(g, op, Q_W)];
    mpl_shape x = channels_first(&g->value_shape[mpl_op_input(g, op, Q_X)], last);
    mpl_shape w = channels_first(weight, last);
    int64_t stride[MPL_MAX_RANK];

    MPL_PASS(mpl_window_read(ctx, g, op, &x, &w, &q->w));
    MPL_PASS(mpl_window_slide(ctx, g, op, &q->w));
    q->batch = x.dim[0], q->channels = x.dim[1], q->filters = w.dim[0];
    q->group = mpl_attr_int(g, op, MPL_ATTR_group, 1);
    q->turned = !last;
    mpl_strides(weight, stride);
    q->filter_step = stride[0];
    q->channel_step = stride[last ? weight->rank - 1 : 1];
    for (uint32_t i = 0; i < q->w.n; i++)
        q->kernel_step[3 - q->w.n + i] = stride[(last ? 1 : 2) + i];
    return MPL_OK;
}

static mpl_status read_product(mpl_ctx *ctx, mpl_words *q, const mpl_graph *g, mpl_op op)
{
    const mpl_shape *a = &g->value_shape[mpl_op_input(g, op, Q_X)];
    const mpl_shape *b = &g->value_shape[mpl_op_input(g, op, Q_W)];
    bool turned = mpl_attr_int(g, op, MPL_ATTR_trans_b, 0) != 0;
    int64_t rows = a->dim[a->rank - 2];

    q->channels = a->dim[a->rank - 1], q->filters = b->dim[b->rank - (turned ? 2 : 1)];
    q->stack_x = *a, q->stack_w = *b;
    q->stack_x.rank -= 2, q->stack_w.rank -= 2;
    q->n_weights = mpl_count(&q->stack_w);
    if (b->rank == 2) /* the rows of a stack are the rows of one matrix */
        rows *= mpl_count(&q->stack_x), q->stack_x.rank = 0;
    MPL_PASS(mpl_broadcast(ctx, &q->stack_x, &q->stack_w, &q->stack));
    q->batch = q->group = 1;
    q->filter_step = turned ? q->channels : 1;
    q->channel_step = turned ? 1 : q->filters;
    q->w = (mpl_window){2, {1, rows, 1}, {1, rows, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}};
    return MPL_OK;
}

/* How large a piece is. False: it is as large as no memory. */
static bool cut(mpl_words *q, int64_t piece_words)
{
    const mpl_window *w = &q->w;
    uint64_t words = (uint64_t)q->channels;
    int64_t span, pieces;

    q->axis = 3 - (int)w->n;
    q->in_inner = q->out_inner = 1;
    for (int i = 2; i >= q->axis; i--) {
        q->wide[i] = (w->out[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
        q->step[i] = (int64_t)words;
        if (!mpl_mul_bytes(words, (uint64_t)mpl_most(q->wide[i], w->in[i]), &words) ||
            words > MOST_WORDS)
            return false;
        words = (uint64_t)(q->step[i] * q->wide[i]);
        q->in_inner *= i > q->axis ? w->in[i] : 1;
        q->out_inner *= i > q->axis ? w->out[i] : 1;
    }
    for (int i = 0; i < q->axis; i++)
        q->wide[i] = 1;
    span = (w->kernel[q->axis] - 1) * w->dilation[q->axis] + 1;
    q->piece = (piece_words / q->step[q->axis] - span) / w->stride[q->axis] + 1;
    q->piece = q->piece < 1 ? 1 : mpl_least(q->piece, w->out[q->axis]);
    pieces = (w->out[q->axis] + q->piece - 1) / q->piece;
    q->piece = (w->out[q->axis] + pieces - 1) / pieces;
    q->wide[q->axis] = (q->piece - 1) * w->stride[q->axis] + span;
    return true;
}

/* Where a pixel's terms lie in a piece. */
static mpl_status find_taps(mpl_ctx *ctx, mpl_words *q)
{
    const mpl_window *w = &q->w;
    int64_t own = q->channels / q->group, at = 0;

    q->whole = q->group == 1 && w->dilation[2] == 1;
    q->own = !q->whole && q->group == q->channels && q->filters == q->channels;
    q->run = ((q->whole ? w->kernel[2] : 1) * own + 1) & ~INT64_C(1);
    q->n_taps = w->kernel[0] * w->kernel[1] * (q->whole ? 1 : w->kernel[2]);
    MPL_PASS(mpl_new(ctx, q->tap, (size_t)q->n_taps));
    for (int64_t i = 0; i < w->kernel[0]; i++)
        for (int64_t j = 0; j < w->kernel[1]; j++)
            for (int64_t k = 0; k < (q->whole ? 1 : w->kernel[2]); k++)
                q->tap[at++] = i * w->dilation[0] * q->step[0] + j * w->dilation[1] * q->step[1] +
                               k * w->dilation[2] * q->step[2];
    return MPL_OK;
}

static uint64_t aligned(int64_t bytes)
{
    return ((uint64_t)bytes + LINE - 1) & ~(uint64_t)(LINE - 1);
}

/* Filters of a group, or, of channels on their own, of all, in whole panels. */
static int64_t panels_of(const mpl_words *q)
{
    return ((q->own ? q->filters : q->filters / q->group) + PANEL - 1) / PANEL;
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
    const mpl_shape *s = &g->value_shape[w];
    bool turned = mpl_attr_int(g, op, MPL_ATTR_trans_b, 0) != 0;
    int64_t terms = g->op_kind[op] == MPL_OP_qconv ? mpl_count_dims(s, 1, s->rank)
                                                   : s->dim[s->rank - (turned ? 1 : 2)];

    return is_byte(g, x) && is_byte(g, w) && terms <= MPL_WORDS_TERMS &&
           mpl_count(&g->value_shape[x]) > 0 && mpl_count(s) > 0 &&
           mpl_count(&g->value_shape[mpl_op_output(g, op, 0)]) > 0;
}

mpl_status mpl_words_new(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, int64_t piece_words,
                         bool plain, mpl_words **out, uint64_t *workspace_bytes, const char **how)
{
    mpl_status st = MPL_OK;
    mpl_words *q = NULL;
    bool conv = g->op_kind[op] == MPL_OP_qconv;

    *out = NULL;
    if ((!conv && g->op_kind[op] != MPL_OP_qmatmul) || !fits(g, op))
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, q, 1));
    q->loops = mpl_word_loops_here(plain);
    q->n_weights = 1;
    MPL_TRY((conv ? read_conv : read_product)(ctx, q, g, op));
    q->in_pixels = q->w.in[0] * q->w.in[1] * q->w.in[2];
    q->pixels = q->w.out[0] * q->w.out[1] * q->w.out[2];
    q->constant = is_constant(g, op, Q_W) && is_constant(g, op, Q_W_ZERO);
    if (!cut(q, piece_words))
        goto out;
    MPL_TRY(find_taps(ctx, q));
    *workspace_bytes = place(q);
    q->narrow = q->constant && !q->own && is_centred(g, op);
    if (q->narrow)
        MPL_TRY(mpl_new(ctx, q->narrowed, (size_t)(q->n_weights * q->each_weight)));
    else if (q->constant)
        MPL_TRY(mpl_new(ctx, q->kept, (size_t)(q->n_weights * q->each_weight)));
    *how = q->loops->how;
    *out = q, q = NULL;
out:
    mpl_words_free(ctx, q);
    return st;
}

void mpl_words_free(mpl_ctx *ctx, mpl_words *q)
{
    if (q != NULL)
        mpl_free_each(ctx, q->tap, q->kept, q->narrowed, q);
}

uint64_t mpl_words_packed_bytes(const mpl_words *q)
{
    uint64_t n = q->constant ? (uint64_t)(q->n_weights * q->each_weight) : 0;

    return n * (q->narrow ? sizeof *q->narrowed : sizeof *q->kept);
}

/* ---- packing weights ---- */

/* Filters [first, first + n) of a panel, the weight's bytes and zero points. */
typedef struct packing {
    const mpl_words *q;
    const uint8_t *weight;
    bool is_signed;
    int64_t first, n;
    int16_t zero[PANEL];
    int16_t *panel; /* NULL: bytes are packed */
    int8_t *narrow;
} packing;

/* Term `at` of each filter, `from` elements after its first one. */
static void pack_term(const packing *p, int64_t at, int64_t from)
{
    const uint8_t *w = p->weight + p->first * p->q->filter_step + from;
    int64_t to = at / 2 * PANEL * 2 + at % 2;

    for (int64_t j = 0; j < p->n; j++, w += p->q->filter_step, to += 2) {
        int term = (p->is_signed ? (int8_t)*w : *w) - p->zero[j];

        if (p->panel != NULL)
            p->panel[to] = (int16_t)term;
        else
            p->narrow[to] = (int8_t)term;
    }
}

static void pack_panel(const packing *p)
{
    const mpl_words *q = p->q;
    const int64_t *kernel = q->w.kernel, *step = q->kernel_step;
    int64_t own = q->channels / q->group, run = q->own ? 1 : q->run;

    for (int64_t i = 0; i < kernel[0]; i++)
        for (int64_t j = 0; j < kernel[1]; j++)
            for (int64_t k = 0; k < kernel[2]; k++) {
                int64_t row = i * kernel[1] + j;
                int64_t at = q->whole ? row * run + k * own : (row * kernel[2] + k) * run;

                for (int64_t c = 0; c < own; c++)
                    pack_term(p, at + c,
                              i * step[0] + j * step[1] + k * step[2] + c * q->channel_step);
            }
}

/* The weight of bytes `weight`, to `to` or, as bytes, to `narrow`; the other is NULL. */
static void pack(const mpl_words *q, const mpl_op_call *call, const uint8_t *weight, int16_t *to,
                 int8_t *narrow)
{
    int64_t groups = q->own ? 1 : q->group, filters = q->filters / groups, panels = panels_of(q);
    packing p = {.q = q, .weight = weight, .is_signed = call->in[Q_W].type == MPL_TYPE_i8};

    memset(to != NULL ? (void *)to : narrow, 0,
           (size_t)q->each_weight * (to != NULL ? sizeof *to : sizeof *narrow));
    for (int64_t i = 0; i < groups * panels; i++) {
        int64_t at = i % panels * PANEL;

        p.first = i / panels * filters + at;
        p.n = mpl_least(filters - at, PANEL);
        for (int64_t j = 0; j < p.n; j++)
            p.zero[j] = (int16_t)mpl_q_at(call, Q_W_ZERO, p.first + j, 0);
        at = i * (q->each_weight / (groups * panels));
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
    const mpl_words *q = j->q;
    const mpl_op_call *call = j->sums.call;
    const mpl_window *w = &q->w;
    bool is_signed = call->in[Q_X].type == MPL_TYPE_i8;
    bool product = call->graph->op_kind[call->op] == MPL_OP_qmatmul;
    int64_t rows = product ? call->in[Q_X].shape.dim[call->in[Q_X].shape.rank - 2] : 1;

    for (int64_t r = from; r < to; r++) {
        int64_t a = j->first[0] + r / j->wide[1], b = j->first[1] + r % j->wide[1];
        int64_t low = j->first[2] < 0 ? mpl_least(-j->first[2], j->wide[2]) : 0;
        int64_t high = mpl_least(j->wide[2], w->in[2] - j->first[2]);
        int64_t pixel = (a * w->in[1] + b) * w->in[2] + j->first[2] + low;
        int16_t *row = j->words + r * j->wide[2] * q->channels;

        if (!mpl_is_inside(a, w->in[0]) || !mpl_is_inside(b, w->in[1]) || high <= low)
            low = high = 0;
        memset(row, 0, (size_t)(low * q->channels) * sizeof *row);
        if (high > low)
            q->loops->widen(row + low * q->channels,
                            q->turned ? j->bytes + (pixel - j->pixel) * q->channels
                                      : j->x + pixel * q->channels,
                            is_signed, (int16_t)mpl_q_at(call, Q_X_ZERO, pixel % rows, 0),
                            (high - low) * q->channels);
        memset(row + high * q->channels, 0,
               (size_t)((j->wide[2] - high) * q->channels) * sizeof *row);
    }
}

/* Where the windows of n pixels of the piece begin, from the pixel `at` on. */
static void find_pixels(const job *j, int64_t at, int64_t n, int64_t channel, const int16_t **to)
{
    const mpl_words *q = j->q;
    const mpl_window *w = &q->w;

    for (int64_t i = 0; i < n; i++) {
        int64_t row = (at + i) / w->out[2], x = (at + i) % w->out[2];

        to[i] = j->words + channel + row / w->out[1] * w->stride[0] * q->step[0] +
                row % w->out[1] * w->stride[1] * q->step[1] + x * w->stride[2] * q->step[2];
    }
}

/* Blocks of pixels by tiles of filters, a tile's blocks one after another. */
static void compute(const void *arg, int64_t from, int64_t to)
{
    const job *j = arg;
    const mpl_words *q = j->q;
    int64_t groups = q->own ? 1 : q->group, filters = q->filters / groups;
    int64_t panels = panels_of(q), each = q->each_weight / (groups * panels);
    int64_t pixels = j->n * q->out_inner, tiles = j->n_tiles / groups;
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
                           .n_taps = q->n_taps,
                           .run = q->run,
                           .tap = q->tap,
                           .filter = j->filter != NULL ? j->filter + panel : NULL,
                           .narrow = j->narrow != NULL ? j->narrow + panel : NULL,
                           .sum = sum,
                           .apart = TILE};

        if (scales.channel != group * filters + first)
            mpl_sums_scales_get(&j->sums, group * filters + first, n, &scales);
        find_pixels(j, pixel, n_pixels, q->own ? first : group * (q->channels / q->group), at);
        (q->own ? q->loops->channels : q->loops->products)(&t);
        mpl_sums_put(&j->sums, &scales, sum, TILE, j->image, j->from * q->out_inner + pixel,
                     n_pixels);
    }
}

/* Outputs [j->from, j->from + j->n) along the axis. */
static void run_piece(job *j, uint32_t n_threads)
{
    const mpl_words *q = j->q;
    const mpl_window *w = &q->w;
    int64_t groups = q->own ? 1 : q->group, units, terms, low, high;

    for (int i = 0; i < 3; i++) {
        j->first[i] = (i == q->axis ? j->from * w->stride[i] : 0) - w->before[i];
        j->wide[i] = q->wide[i];
    }
    j->wide[q->axis] -= (q->piece - j->n) * w->stride[q->axis];
    low = mpl_most(j->first[q->axis], 0);
    high = mpl_least(j->first[q->axis] + j->wide[q->axis], w->in[q->axis]);
    j->pixel = low * q->in_inner, j->n_pixels = mpl_most(high - low, 0) * q->in_inner;
    if (q->turned)
        mpl_deal(q->channels, PANEL, j->n_pixels * q->channels / SHARE, n_threads, turn, j);
    mpl_deal(j->wide[0] * j->wide[1], 1, j->wide[0] * q->step[0] / SHARE, n_threads, widen, j);
    j->n_tiles = groups * ((q->filters / groups + TILE - 1) / TILE);
    j->n_blocks = (j->n * q->out_inner + PIXELS - 1) / PIXELS;
    units = j->n_tiles * j->n_blocks;
    terms = q->each_weight * j->n * q->out_inner / SHARE;
    mpl_deal(units, 1, mpl_least(terms, units), n_threads, compute, j);
}

/* One image or product. */
static void run_image(job *j, uint32_t n_threads)
{
    int64_t all = j->q->w.out[j->q->axis];

    for (j->from = 0; j->from < all; j->from += j->n) {
        j->n = mpl_least(j->q->piece, all - j->from);
        run_piece(j, n_threads);
    }
}

void mpl_words_run(mpl_words *q, const mpl_op_call *call, uint32_t n_threads)
{
    int64_t index[MPL_MAX_RANK] = {0}, stride[2][MPL_MAX_RANK], at[2] = {0}, packed = -1;
    int64_t of_weight =
        q->filters * (q->channels / q->group) * q->w.kernel[0] * q->w.kernel[1] * q->w.kernel[2];
    const uint8_t *x = call->in[Q_X].data, *weight = call->in[Q_W].data;
    char *workspace = call->workspace;
    int16_t *fresh = (int16_t *)(void *)(workspace + q->pack_at);
    job j = {.q = q,
             .sums = mpl_sums_of(call, q->pixels, q->filters, q->turned),
             .bytes = (uint8_t *)workspace,
             .words = (int16_t *)(void *)(workspace + q->words_at)};

    for (int64_t i = 0; i < q->n_weights && q->constant && !q->is_packed; i++)
        pack(q, call, weight + i * of_weight, q->narrow ? NULL : q->kept + i * q->each_weight,
             q->narrow ? q->narrowed + i * q->each_weight : NULL);
    q->is_packed = q->constant;
    mpl_broadcast_strides(&q->stack_x, &q->stack, stride[0]);
    mpl_broadcast_strides(&q->stack_w, &q->stack, stride[1]);
    do {
        if (!q->constant && packed != at[1])
            pack(q, call, weight + at[1] * of_weight, fresh, NULL), packed = at[1];
        j.filter = q->narrow ? NULL : q->constant ? q->kept + at[1] * q->each_weight : fresh;
        j.narrow = q->narrow ? q->narrowed + at[1] * q->each_weight : NULL;
        for (int64_t b = 0; b < q->batch; b++, j.image += q->pixels * q->filters) {
            j.x = x + (at[0] * q->batch + b) * q->channels * q->in_pixels;
            run_image(&j, n_threads);
        }
    } while (mpl_step(q->stack.dim, q->stack.rank, index, 2, (const int64_t(*)[MPL_MAX_RANK])stride,
                      at));
}
