/* sums.c -- see sums.h. */
#include "runtime/cpu/sums.h"

/* ---- one element at a time ---- */

/* What the sum of one channel in one row is scaled by. */
typedef struct scaling {
    float scale;
    double bias, zero;
} scaling;

static scaling scaling_of(const mpl_op_call *call, int64_t row, int64_t channel)
{
    return (scaling){(float)mpl_q_at(call, Q_X_SCALE, row, 1) *
                         (float)mpl_q_at(call, Q_W_SCALE, channel, 1) /
                         (float)mpl_q_at(call, Q_Y_SCALE, row, 1),
                     mpl_q_at(call, Q_BIAS, channel, 0), mpl_q_at(call, Q_Y_ZERO, row, 0)};
}

static void put_sum(const mpl_sums *sums, int64_t to, int32_t sum, const scaling *by)
{
    mpl_type type = sums->call->out[0].type;
    void *out = sums->call->out[0].data;

    if (type == MPL_TYPE_i32)
        ((int32_t *)out)[to] = (int32_t)(uint32_t)((int64_t)sum + (int64_t)by->bias);
    else if (sums->how.whole)
        mpl_requant_put(&sums->how, out, to, (float)((double)sum + by->bias) * by->scale, by->zero);
    else
        mpl_put(type, out, to, (double)((float)sum * by->scale) + by->bias);
}

static void put_slowly(const mpl_sums *sums, int64_t channel, int64_t n_channels,
                       const int32_t *sum, int64_t apart, int64_t image, int64_t from, int64_t n)
{
    const mpl_shape *shape = &sums->call->out[0].shape;
    bool rows = sums->call->graph->op_kind[sums->call->op] == MPL_OP_qmatmul;

    for (int64_t i = from; i < from + n; i++)
        for (int64_t c = channel; c < channel + n_channels; c++) {
            scaling by = scaling_of(sums->call, rows ? i % shape->dim[shape->rank - 2] : 0, c);

            put_sum(sums, image + (sums->turned ? c * sums->pixels + i : i * sums->channels + c),
                    sum[(i - from) * apart + c - channel], &by);
        }
}

/* ---- a tile at a time ---- */

/* Whether one scale and zero point is for all rows. */
static bool is_even(const mpl_op_call *call)
{
    static const uint32_t of_rows[] = {Q_X_SCALE, Q_Y_SCALE, Q_Y_ZERO};

    for (int k = 0; k < 3; k++)
        if (of_rows[k] < call->n_in && call->in[of_rows[k]].data != NULL &&
            mpl_count(&call->in[of_rows[k]].shape) != 1)
            return false;
    return true;
}

mpl_sums mpl_sums_of(const mpl_op_call *call, int64_t pixels, int64_t channels, bool turned)
{
    mpl_sums s = {.call = call, .pixels = pixels, .channels = channels, .turned = turned};
    mpl_type type = call->out[0].type;

    s.how = mpl_requant_of(call);
    s.range = (mpl_byte_range){(float)s.how.low, (float)s.how.high,
                               (float)mpl_q_at(call, Q_Y_ZERO, 0, 0)};
    s.even = is_even(call) && (type == MPL_TYPE_u8 || type == MPL_TYPE_i8 || type == MPL_TYPE_f32 ||
                               type == MPL_TYPE_i32);
    s.x_scale = (float)mpl_q_at(call, Q_X_SCALE, 0, 1);
    s.w_scale = (float)mpl_q_at(call, Q_W_SCALE, 0, 1);
    s.y_scale = (float)mpl_q_at(call, Q_Y_SCALE, 0, 1);
    s.many_scales = call->n_in > Q_W_SCALE && mpl_count(&call->in[Q_W_SCALE].shape) > 1;
    s.has_bias = call->n_in > Q_BIAS && call->in[Q_BIAS].data != NULL;
    return s;
}

void mpl_sums_scales_get(const mpl_sums *sums, int64_t channel, int64_t n, mpl_sums_scales *scales)
{
    float scale = sums->x_scale * sums->w_scale / sums->y_scale;
    bool all_the_same = !sums->many_scales && !sums->has_bias;
    int64_t known = all_the_same ? scales->n : 0;

    scales->channel = channel, scales->n = n;
    for (int64_t c = known; c < n; c++)
        scales->scale[c] = scale, scales->bias[c] = 0;
    for (int64_t c = 0; c < n && !all_the_same; c++) {
        scales->scale[c] =
            sums->x_scale * (float)mpl_q_at(sums->call, Q_W_SCALE, channel + c, 1) / sums->y_scale;
        scales->bias[c] = mpl_q_at(sums->call, Q_BIAS, channel + c, 0);
    }
}

static void add_bias(int32_t *to, const int32_t *sum, const double *bias, int64_t n)
{
    for (int64_t c = 0; c < n; c++)
        to[c] = (int32_t)((uint32_t)sum[c] + (uint32_t)(int64_t)bias[c]);
}

void mpl_sums_put(const mpl_sums *sums, const mpl_sums_scales *by, const int32_t *sum,
                  int64_t apart, int64_t image, int64_t from, int64_t n)
{
    const mpl_byte_loops *loops = mpl_byte_loops_here();
    mpl_type type = sums->call->out[0].type;
    uint64_t size = type == MPL_TYPE_f32 || type == MPL_TYPE_i32 ? 4 : 1;
    int32_t tile[MPL_SUMS_TILE * MPL_SUMS_TILE];
    char *out = sums->call->out[0].data;

    if (!sums->even) {
        put_slowly(sums, by->channel, by->n, sum, apart, image, from, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t at =
            sums->turned ? i * MPL_SUMS_TILE : image + (from + i) * sums->channels + by->channel;
        void *to = (sums->turned ? (char *)tile : out) + (uint64_t)at * size;

        if (type == MPL_TYPE_f32)
            loops->sums_to_floats(to, sum + i * apart, by->bias, by->scale, by->n);
        else if (type == MPL_TYPE_i32)
            add_bias(to, sum + i * apart, by->bias, by->n);
        else
            loops->sums_to_bytes(to, sum + i * apart, by->bias, by->scale, &sums->range, by->n);
    }
    if (!sums->turned)
        return;
    out += (uint64_t)(image + by->channel * sums->pixels + from) * size;
    if (size == 1)
        mpl_turn_bytes((uint8_t *)tile, MPL_SUMS_TILE, (uint8_t *)out, sums->pixels, n, by->n);
    else
        mpl_turn_words(tile, MPL_SUMS_TILE, (int32_t *)(void *)out, sums->pixels, n, by->n);
}
