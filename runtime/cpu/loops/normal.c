/* normal.c -- see normal.h. Sums run in as many lanes on every processor, so that results do not
 * depend on the width of its vectors. */
#include "runtime/cpu/loops/normal.h"

#include "runtime/cpu/loops/exp_priv.h"

#include <math.h>

enum { LANES = 16, SHARE = 16 * 1024 /* elements worth a thread of their own */ };

/* Rows of n elements in `groups` groups a batch; what scales and shifts them. */
typedef struct job {
    const float *x, *scale, *bias; /* scale, bias: [n], or [groups * width]; bias: or NULL */
    float *y;
    int64_t n, groups, width; /* width: runs of a row that have a scale each; 0: each element has */
    double epsilon;
    bool centred;
} job;

/* ---- softmax ---- */

INLINE float largest(const float *x, int64_t n)
{
    float m[LANES], most = -INFINITY;
    int64_t k = 0;

    for (int i = 0; i < LANES; i++)
        m[i] = -INFINITY;
    for (; k + LANES <= n; k += LANES)
        for (int i = 0; i < LANES; i++)
            m[i] = x[k + i] > m[i] ? x[k + i] : m[i];
    for (int i = 0; k < n; i++, k++)
        m[i] = x[k] > m[i] ? x[k] : m[i];
    for (int i = 0; i < LANES; i++)
        most = m[i] > most ? m[i] : most;
    return most;
}

/* exp(x), x <= 0 or no number; 0 where that is less than the least normal float. */
INLINE float falling(float x)
{
    float inside = x < -87 ? -87 : x, grown, scale;

    scale = from_bits((bits(split_exp(inside, &grown)) + 127) << 23);
    return x < -87 ? 0 : scale + scale * grown;
}

INLINE double total(const float *x, int64_t n)
{
    float part[LANES] = {0};
    double sum = 0;
    int64_t k = 0;

    for (; k + LANES <= n; k += LANES)
        for (int i = 0; i < LANES; i++)
            part[i] += x[k + i];
    for (int i = 0; k < n; i++, k++)
        part[i] += x[k];
    for (int i = 0; i < LANES; i++)
        sum += (double)part[i];
    return sum;
}

INLINE void soften(const job *self, int64_t row)
{
    const float *x = self->x + row * self->n;
    float *y = self->y + row * self->n, most = largest(x, self->n), share;

    for (int64_t k = 0; k < self->n; k++)
        y[k] = falling(x[k] - most);
    share = (float)(1 / total(y, self->n));
    for (int64_t k = 0; k < self->n; k++)
        y[k] *= share;
}

/* ---- norms ---- */

/* Sum of (x - middle), or of its square. */
INLINE double sum_of(const float *x, int64_t n, double middle, const bool squared)
{
    double part[LANES] = {0}, sum = 0;
    int64_t k = 0;

    for (; k + LANES <= n; k += LANES)
        for (int i = 0; i < LANES; i++) {
            double d = (double)x[k + i] - middle;

            part[i] += squared ? d * d : d;
        }
    for (int i = 0; k < n; i++, k++) {
        double d = (double)x[k] - middle;

        part[i] += squared ? d * d : d;
    }
    for (int i = 0; i < LANES; i++)
        sum += part[i];
    return sum;
}

INLINE void normalise(const job *self, int64_t row)
{
    const float *x = self->x + row * self->n;
    float *y = self->y + row * self->n;
    double mean = self->centred ? sum_of(x, self->n, 0, false) / (double)self->n : 0;
    double inverse = 1 / sqrt(sum_of(x, self->n, mean, true) / (double)self->n + self->epsilon);
    int64_t run = self->width > 0 ? self->n / self->width : 0,
            first = row % self->groups * self->width;

    for (int64_t c = 0; c < self->width; c++) {
        double factor = (double)self->scale[first + c] * inverse,
               bias = (double)self->bias[first + c];

        for (int64_t k = c * run; k < (c + 1) * run; k++)
            y[k] = (float)(((double)x[k] - mean) * factor + bias);
    }
    for (int64_t k = 0; k < self->n && self->width == 0 && self->bias != NULL; k++)
        y[k] = (float)(((double)x[k] - mean) * inverse * (double)self->scale[k] +
                       (double)self->bias[k]);
    for (int64_t k = 0; k < self->n && self->width == 0 && self->bias == NULL; k++)
        y[k] = (float)(((double)x[k] - mean) * inverse * (double)self->scale[k]);
}

/* ---- lengths ---- */

INLINE void measure(const job *self, int64_t row)
{
    self->y[row] = (float)sqrt(sum_of(self->x + row * self->n, self->n, 0, true));
}

/* ---- every width ---- */

#define LOOPS(width, target)                                                                       \
    target static void soften_##width(const void *arg, int64_t from, int64_t to)                   \
    {                                                                                              \
        for (int64_t row = from; row < to; row++)                                                  \
            soften(arg, row);                                                                      \
    }                                                                                              \
    target static void normalise_##width(const void *arg, int64_t from, int64_t to)                \
    {                                                                                              \
        for (int64_t row = from; row < to; row++)                                                  \
            normalise(arg, row);                                                                   \
    }                                                                                              \
    target static void measure_##width(const void *arg, int64_t from, int64_t to)                  \
    {                                                                                              \
        for (int64_t row = from; row < to; row++)                                                  \
            measure(arg, row);                                                                     \
    }

LOOPS(plain, )
#if defined(__x86_64__)
LOOPS(avx2, __attribute__((target("avx2"))))
LOOPS(avx512, MPL_TARGET_AVX512)
#define WIDTHS(name)                                                                               \
    {                                                                                              \
        name##_plain, name##_avx2, name##_avx512                                                   \
    }
#else
#define WIDTHS(name)                                                                               \
    {                                                                                              \
        name##_plain, name##_plain, name##_plain                                                   \
    }
#endif

/* ---- operations ---- */

static uint32_t axis_of(const mpl_graph *g, mpl_op op)
{
    int64_t axis = mpl_attr_int(g, op, MPL_ATTR_axis, -1);

    return (uint32_t)(axis < 0 ? axis + g->value_shape[mpl_op_input(g, op, 0)].rank : axis);
}

/* Whether operand i has n elements, or is left out. */
static bool has(const mpl_graph *g, mpl_op op, uint32_t i, int64_t n)
{
    mpl_value v = i < mpl_op_n_in(g, op) ? mpl_op_input(g, op, i) : MPL_NONE;

    return v == MPL_NONE || mpl_count(&g->value_shape[v]) == n;
}

/* Whether a reduction takes the last dims of its input and no others. */
static bool takes_rows(const mpl_graph *g, mpl_op op)
{
    int64_t rank = g->value_shape[mpl_op_input(g, op, 0)].rank, least = rank;
    uint32_t n, set = 0;
    const int64_t *axes = mpl_attr_ints(g, op, MPL_ATTR_axes, &n);

    for (uint32_t i = 0; i < n; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];

        set |= UINT32_C(1) << axis;
        least = axis < least ? axis : least;
    }
    return n > 0 && set == (UINT32_C(1) << rank) - (UINT32_C(1) << least);
}

bool mpl_normal_fits(const mpl_graph *g, mpl_op op, const char **how)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    const mpl_shape *shape;
    bool fits = false;
    int64_t row;

    if (kind != MPL_OP_softmax && kind != MPL_OP_layer_norm && kind != MPL_OP_rms_norm &&
        kind != MPL_OP_instance_norm && kind != MPL_OP_group_norm && kind != MPL_OP_reduce_l2)
        return false;
    for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
        if (mpl_op_input(g, op, i) != MPL_NONE &&
            g->value_type[mpl_op_input(g, op, i)] != MPL_TYPE_f32)
            return false;
    shape = &g->value_shape[mpl_op_input(g, op, 0)];
    if (mpl_count(shape) == 0 || shape->rank == 0)
        return false;
    for (uint32_t i = g->op_out_begin[op] + 1; i < g->op_out_begin[op + 1]; i++)
        if (g->op_out[i] != MPL_NONE)
            return false;
    row = kind == MPL_OP_instance_norm || kind == MPL_OP_group_norm
              ? shape->dim[1]
              : mpl_count_dims(shape, axis_of(g, op), shape->rank);
    fits = kind == MPL_OP_softmax     ? axis_of(g, op) + 1 == shape->rank
           : kind == MPL_OP_reduce_l2 ? takes_rows(g, op)
                                      : has(g, op, 1, row) && has(g, op, 2, row);
    if (fits && how != NULL)
        *how = "rows";
    return fits;
}

void mpl_normal_run(const mpl_op_call *call, uint32_t n_threads)
{
    static mpl_deal_work *const softly[MPL_N_CHAIN_WIDTHS] = WIDTHS(soften);
    static mpl_deal_work *const normally[MPL_N_CHAIN_WIDTHS] = WIDTHS(normalise);
    static mpl_deal_work *const measuring[MPL_N_CHAIN_WIDTHS] = WIDTHS(measure);
    mpl_op_kind kind = (mpl_op_kind)call->graph->op_kind[call->op];
    const mpl_shape *shape = &call->in[0].shape;
    int64_t count = mpl_count(shape);
    job j = {.x = call->in[0].data, .y = call->out[0].data, .groups = 1};

    j.scale = call->n_in > 1 ? call->in[1].data : NULL;
    j.bias = call->n_in > 2 ? call->in[2].data : NULL;
    j.epsilon = mpl_attr_float(call->graph, call->op, MPL_ATTR_epsilon, 1e-5);
    j.centred = kind != MPL_OP_rms_norm;
    if (kind == MPL_OP_instance_norm || kind == MPL_OP_group_norm) {
        j.groups = kind == MPL_OP_instance_norm
                       ? shape->dim[1]
                       : mpl_attr_int(call->graph, call->op, MPL_ATTR_num_groups, 1);
        j.width = shape->dim[1] / j.groups;
        j.n = j.width * mpl_count_dims(shape, 2, shape->rank);
    } else if (kind == MPL_OP_reduce_l2) {
        j.n = count / mpl_count(&call->out[0].shape);
    } else {
        j.n = mpl_count_dims(shape, axis_of(call->graph, call->op), shape->rank);
    }
    mpl_deal(count / j.n, 1, count / SHARE, n_threads,
             (kind == MPL_OP_softmax     ? softly
              : kind == MPL_OP_reduce_l2 ? measuring
                                         : normally)[mpl_chain_widest()],
             &j);
}
