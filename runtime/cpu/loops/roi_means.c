/* roi_means.c -- see rescale.h.
 *
 * Some channels at a time lie side by side while all regions are pooled: a point is four sums of
 * whole vectors. A region that repeats the one before it (as those do that stand behind a length
 * that depends on data) has its means. */
#include "graphs/ops/move/roi.h"
#include "graphs/ops/ops_priv.h"
#include "runtime/cpu/loops/chain_priv.h"
#include "runtime/cpu/loops/rescale.h"

#define INLINE static inline __attribute__((always_inline))

enum { LANES = 64 /* channels */, POINTS = 64 /* along an axis */ };

/* The points of a region along an axis. */
typedef struct axis {
    int64_t n, cells, at[POINTS][2];
    double weight[POINTS][2];
    bool outside[POINTS];
} axis;

/* False: it has too many. */
static bool place(const mpl_region *region, int k, int64_t cells, int64_t dim, axis *a)
{
    a->n = region->points[k], a->cells = cells;
    if (a->n > POINTS || a->n * cells > POINTS)
        return false;
    for (int64_t i = 0; i < a->n * cells; i++)
        a->outside[i] =
            !mpl_region_around(region, k, dim, i / a->n, i % a->n, a->at[i], a->weight[i]);
    return true;
}

/* Adds what is around a point, rows y of width `width`, to the sums. */
INLINE void add_point(float *restrict sum, const float *x, int64_t width, const axis *a, int64_t i,
                      const axis *b, int64_t k)
{
    const float *p[4];
    float w[4];

    for (int j = 0; j < 4; j++) {
        p[j] = x + (a->at[i][j / 2] * width + b->at[k][j % 2]) * LANES;
        w[j] = (float)(a->weight[i][j / 2] * b->weight[k][j % 2]);
    }
    for (int c = 0; c < LANES; c++)
        sum[c] += (p[0][c] * w[0] + p[1][c] * w[1]) + (p[2][c] * w[2] + p[3][c] * w[3]);
}

/* The means of n channels of a region; y: [n][cells]. */
INLINE void pool(const float *x, int64_t width, const axis *a, const axis *b, float *y, int64_t n)
{
    int64_t cells = a->cells * b->cells, points = a->n * b->n;

    for (int64_t cell = 0; cell < cells; cell++) {
        int64_t row = cell / b->cells * a->n, column = cell % b->cells * b->n;
        float sum[LANES] = {0};

        for (int64_t i = row; i < row + a->n; i++)
            for (int64_t k = column; k < column + b->n && !a->outside[i]; k++)
                if (!b->outside[k])
                    add_point(sum, x, width, a, i, b, k);
        for (int64_t c = 0; c < n; c++)
            y[c * cells + cell] = sum[c] / (float)(points > 1 ? points : 1);
    }
}

typedef void pool_region(const float *x, int64_t width, const axis *a, const axis *b, float *y,
                         int64_t n);

#define LOOPS(name, target)                                                                        \
    target static void pool_##name(const float *x, int64_t width, const axis *a, const axis *b,    \
                                   float *y, int64_t n)                                            \
    {                                                                                              \
        pool(x, width, a, b, y, n);                                                                \
    }

LOOPS(plain, )
#if defined(__x86_64__)
LOOPS(avx2, __attribute__((target("avx2"))))
LOOPS(avx512, MPL_TARGET_AVX512)
#else
#define pool_avx2   pool_plain
#define pool_avx512 pool_plain
#endif

/* n planes side by side; lanes that are left over are 0. */
static void turn(float *restrict to, const float *restrict from, int64_t plane, int64_t n)
{
    for (int64_t i = 0; i < plane; i++, to += LANES)
        for (int64_t c = 0; c < LANES; c++)
            to[c] = c < n ? from[c * plane + i] : 0;
}

/* Whether region i is the one before it. */
static bool is_same(const mpl_op_call *call, int64_t i, int64_t image)
{
    const float *at = (const float *)call->in[1].data + 4 * i;

    return i > 0 && memcmp(at, at - 4, 4 * sizeof *at) == 0 &&
           mpl_get_int(call->in[2].type, call->in[2].data, i - 1) == image;
}

/* Channels [c, c + n) of an image; false: a region has too many points. */
static bool pool_image(const mpl_op_call *call, int64_t image, int64_t c, int64_t n)
{
    static pool_region *const widths[MPL_N_CHAIN_WIDTHS] = {pool_plain, pool_avx2, pool_avx512};
    const int64_t *in = call->in[0].shape.dim, *to = call->out[0].shape.dim;
    int64_t plane = in[2] * in[3], cells = to[2] * to[3];
    axis a, b;
    mpl_region r;

    turn(call->workspace, (const float *)call->in[0].data + (image * in[1] + c) * plane, plane, n);
    for (int64_t i = 0; i < to[0]; i++) {
        float *y = (float *)call->out[0].data + (i * in[1] + c) * cells;

        if (mpl_get_int(call->in[2].type, call->in[2].data, i) != image)
            continue;
        if (is_same(call, i, image)) {
            memcpy(y, y - in[1] * cells, (size_t)(n * cells) * sizeof *y);
            continue;
        }
        mpl_region_of(call, i, &r);
        if (!place(&r, 0, to[2], in[2], &a) || !place(&r, 1, to[3], in[3], &b))
            return false;
        widths[mpl_chain_widest()](call->workspace, in[3], &a, &b, y, n);
    }
    return true;
}

static mpl_status align(mpl_ctx *ctx, const mpl_op_call *call)
{
    const int64_t *in = call->in[0].shape.dim;
    int64_t image = 0;

    for (int64_t i = 0; i < call->out[0].shape.dim[0]; i++)
        MPL_PASS(mpl_region_image(ctx, call, i, &image));
    for (image = 0; image < in[0]; image++)
        for (int64_t c = 0; c < in[1]; c += LANES)
            if (!pool_image(call, image, c, in[1] - c < LANES ? in[1] - c : LANES))
                return mpl_eval(ctx, call);
    return MPL_OK;
}

mpl_rescale *mpl_roi_of(const mpl_graph *g, mpl_op op, uint64_t most, uint64_t *workspace_bytes,
                        const char **how)
{
    mpl_value x = mpl_op_input(g, op, 0), y = mpl_op_output(g, op, 0);
    const int64_t *dim = g->value_shape[x].dim;
    uint64_t bytes;

    if (g->op_kind[op] != MPL_OP_roi_align || mpl_region_takes_maxima(g, op) ||
        g->value_type[x] != MPL_TYPE_f32 || g->value_type[mpl_op_input(g, op, 1)] != MPL_TYPE_f32 ||
        g->value_bytes[x] == 0 || g->value_bytes[y] == 0 ||
        !mpl_mul_bytes((uint64_t)(dim[2] * dim[3]), LANES * sizeof(float), &bytes) || bytes > most)
        return NULL;
    *workspace_bytes = bytes;
    *how = "regions";
    return align;
}
