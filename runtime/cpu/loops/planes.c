/* planes.c -- averages of windows, and sums over dims before the last, of plain f32: whole rows at
 * a time. oneDNN 2 has plain loops for both. */
#include "runtime/cpu/loops/rescale.h"

#include "graphs/ops/matrix/window_priv.h"

/* ---- averages of windows ---- */

/* Adds x[k * step] to y[k]. */
static void add_row(float *restrict y, const float *restrict x, int64_t n, int64_t step)
{
    if (step == 1)
        for (int64_t k = 0; k < n; k++)
            y[k] += x[k];
    else
        for (int64_t k = 0; k < n; k++)
            y[k] += x[k * step];
}

/* The outputs along a dim whose element k of the window lies inside. */
typedef struct range {
    int64_t first, end;
} range;

static range inside(const mpl_window *window, int dim, int64_t k)
{
    int64_t at = k * window->dilation[dim] - window->before[dim], step = window->stride[dim];
    int64_t room = window->in[dim] - 1 - at;
    range r = {at < 0 ? (step - 1 - at) / step : 0, room < 0 ? 0 : room / step + 1};

    if (r.end > window->out[dim])
        r.end = window->out[dim];
    return r;
}

/* Adds element k of each window to its output in the plane. */
static void add_element(const mpl_window *window, const int64_t k[3], const float *x, float *y)
{
    range r[3];
    int64_t at[3];

    for (int dim = 0; dim < 3; dim++)
        r[dim] = inside(window, dim, k[dim]);
    at[2] = r[2].first * window->stride[2] - window->before[2] + k[2] * window->dilation[2];
    for (int64_t i = r[0].first; i < r[0].end; i++)
        for (int64_t j = r[1].first; j < r[1].end; j++) {
            at[0] = i * window->stride[0] - window->before[0] + k[0] * window->dilation[0];
            at[1] = j * window->stride[1] - window->before[1] + k[1] * window->dilation[1];
            if (r[2].first < r[2].end)
                add_row(y + (i * window->out[1] + j) * window->out[2] + r[2].first,
                        x + (at[0] * window->in[1] + at[1]) * window->in[2] + at[2],
                        r[2].end - r[2].first, window->stride[2]);
        }
}

/* Elements that the average at o is over. */
static int64_t n_counted(const mpl_window *window, bool padded, const int64_t o[3])
{
    int64_t n = 1;

    if (padded)
        return mpl_window_padded_count(window, o);
    for (int dim = 0; dim < 3; dim++) {
        int64_t here = 0, at = o[dim] * window->stride[dim] - window->before[dim];

        for (int64_t k = 0; k < window->kernel[dim]; k++)
            here += mpl_is_inside(at + k * window->dilation[dim], window->in[dim]);
        n *= here;
    }
    return n;
}

/* Divides outputs [o[2], end) of a row, which have one count, in all planes. */
static void divide(const mpl_window *window, bool padded, const int64_t o[3], int64_t end, float *y,
                   int64_t n_planes)
{
    int64_t plane = window->out[0] * window->out[1] * window->out[2];
    float *row = y + (o[0] * window->out[1] + o[1]) * window->out[2],
          n = (float)n_counted(window, padded, o);

    for (int64_t i = 0; i < n_planes; i++, row += plane)
        for (int64_t k = o[2]; k < end; k++)
            row[k] = n > 0 ? row[k] / n : 0;
}

/* Outputs whose windows have all columns inside have one count. */
static void divide_row(const mpl_window *window, bool padded, const int64_t o[3], float *y,
                       int64_t n_planes)
{
    range whole = {inside(window, 2, 0).first, inside(window, 2, window->kernel[2] - 1).end};

    for (int64_t at[3] = {o[0], o[1], 0}, end; at[2] < window->out[2]; at[2] = end) {
        end = at[2] == whole.first && whole.first < whole.end ? whole.end : at[2] + 1;
        divide(window, padded, at, end, y, n_planes);
    }
}

static mpl_status average(mpl_ctx *ctx, const mpl_op_call *call)
{
    bool padded = mpl_attr_int(call->graph, call->op, MPL_ATTR_count_include_pad, 0) != 0;
    const float *x = call->in[0].data;
    float *y = call->out[0].data;
    int64_t n_planes = mpl_count_dims(&call->in[0].shape, 0, 2), in, out;
    mpl_window w;

    MPL_PASS(mpl_window_pool(ctx, call->graph, call->op, &call->in[0].shape, &w));
    in = w.in[0] * w.in[1] * w.in[2], out = w.out[0] * w.out[1] * w.out[2];
    memset(y, 0, (size_t)(n_planes * out) * sizeof *y);
    for (int64_t i = 0; i < n_planes; i++)
        for (int64_t k[3] = {0}; k[0] < w.kernel[0]; k[0]++)
            for (k[1] = 0; k[1] < w.kernel[1]; k[1]++)
                for (k[2] = 0; k[2] < w.kernel[2]; k[2]++)
                    add_element(&w, k, x + i * in, y + i * out);
    for (int64_t o[3] = {0}; o[0] < w.out[0]; o[0]++)
        for (o[1] = 0; o[1] < w.out[1]; o[1]++)
            divide_row(&w, padded, o, y, n_planes);
    return MPL_OK;
}

/* ---- sums over dims before the last ---- */

/* Dims [first, end) are summed; false: they do not lie side by side, or nothing is behind them. */
static bool read_axes(const mpl_graph *g, mpl_op op, uint32_t *first, uint32_t *end)
{
    const mpl_shape *shape = &g->value_shape[mpl_op_input(g, op, 0)];
    uint32_t n, set = 0;
    const int64_t *axes = mpl_attr_ints(g, op, MPL_ATTR_axes, &n);

    for (uint32_t i = 0; i < n; i++)
        set |= 1u << (axes[i] < 0 ? axes[i] + shape->rank : axes[i]);
    *first = *end = 0;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->dim[i] == 1 || (set >> i & 1) == 0)
            continue;
        if (*end == 0)
            *first = i;
        *end = i + 1;
    }
    for (uint32_t i = *first; i < *end; i++)
        if (shape->dim[i] != 1 && (set >> i & 1) == 0)
            return false;
    return *end > 0 && mpl_count_dims(shape, *end, shape->rank) > 1;
}

static mpl_status sum_up(mpl_ctx *ctx, const mpl_op_call *call)
{
    enum { PIECE = 256 };
    const mpl_shape *shape = &call->in[0].shape;
    uint32_t first, end;
    int64_t n_outer, n, inner;
    double divisor = 1, sum[PIECE];

    (void)ctx;
    read_axes(call->graph, call->op, &first, &end);
    n_outer = mpl_count_dims(shape, 0, first), n = mpl_count_dims(shape, first, end);
    inner = mpl_count_dims(shape, end, shape->rank);
    if (call->graph->op_kind[call->op] == MPL_OP_reduce_mean)
        divisor = (double)n;
    for (int64_t i = 0; i < n_outer; i++)
        for (int64_t at = 0, size; at < inner; at += size) {
            const float *x = (const float *)call->in[0].data + i * n * inner + at;
            float *y = (float *)call->out[0].data + i * inner + at;

            size = inner - at < PIECE ? inner - at : PIECE;
            memset(sum, 0, sizeof sum);
            for (int64_t k = 0; k < n; k++, x += inner)
                for (int64_t j = 0; j < size; j++)
                    sum[j] += (double)x[j];
            for (int64_t j = 0; j < size; j++)
                y[j] = (float)(sum[j] / divisor);
        }
    return MPL_OK;
}

mpl_rescale *mpl_planes_of(const mpl_graph *g, mpl_op op, const char **how)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    uint32_t first, end;

    if ((kind != MPL_OP_avg_pool && kind != MPL_OP_reduce_sum && kind != MPL_OP_reduce_mean) ||
        g->value_type[mpl_op_input(g, op, 0)] != MPL_TYPE_f32 ||
        mpl_attr_int(g, op, MPL_ATTR_way, 0) != 0 ||
        (kind != MPL_OP_avg_pool && !read_axes(g, op, &first, &end)))
        return NULL;
    *how = "planes";
    return kind == MPL_OP_avg_pool ? average : sum_up;
}
