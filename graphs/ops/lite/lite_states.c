/* lite_states.c -- recurrent layers that keep a state from one run to the next: svdf,
 * sequence_lstm. Their operands are meant as their forms say (form_priv.h; that of the result is
 * the last one). The new state is an update of the old one, in its place and form.
 *
 * svdf, a low-rank filter over time: inputs x [batch,in], filters over x [f,in] and over time
 * [f,steps], bias [f / k], state [batch,f * steps]. A run puts a product of x and each filter
 * behind that filter's steps, the oldest of which it drops; an output is the sum over k filters of
 * the products of steps and weights, and its bias, within `clamp`. sequence_lstm: inputs x
 * [batch,time,in] (time_axis=0: [time,batch,in]), weights of the gates input, forget, cell, output
 * [units,in], recurrent ones [units,units], biases [units], state [batch,units] of the output and
 * of the cell, the latter within `clamp`.
 *
 * Source  TensorFlow, tensorflow/lite/kernels/ (svdf.cc, unidirectional_sequence_lstm.cc).
 * Differs Sums are in double; only states and results are rounded. The integer kernels of
 *         TensorFlow Lite also round between the gates, to 16 bits. */
#include "graphs/ops/lite/form_priv.h"

#include <math.h>

enum { MOST_OPERANDS = 16 };

/* Forms of the inputs and the result. MPL_EINPUT. */
static mpl_status read_forms(mpl_ctx *ctx, const mpl_shape_call *call, mpl_form *form)
{
    uint32_t n = call->n_in;
    const char *to = mpl_attr_text(call->graph, call->op, MPL_ATTR_to, "");

    MPL_PASS(mpl_forms_read(ctx, call->graph, call->op, n + 1, form));
    for (uint32_t i = 0; i < n; i++)
        MPL_PASS(mpl_form_check(ctx, &form[i], i, call->in_type[i], call->in_shape[i]));
    if (!mpl_type_find(to, &call->out_type[0]))
        return MPL_REFUSE(ctx, "to='%.40s' is no type", to);
    MPL_PASS(mpl_form_check(ctx, &form[n], n, call->out_type[0], call->in_shape[0]));
    for (uint32_t i = 0; i <= n; i++)
        if (form[i].order != MPL_FORM_PLAIN || form[i].n > 1)
            return MPL_REFUSE(ctx, "operand %u has another order, or several factors", i);
    return MPL_OK;
}

static mpl_status expect(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t i, uint32_t rank,
                         int64_t first, int64_t second)
{
    const mpl_shape *shape = call->in_shape[i];
    char text[200];

    if (shape->rank != rank || shape->dim[0] != first || (rank > 1 && shape->dim[1] != second))
        return MPL_REFUSE(ctx, "input %u has dims %s, which do not fit the others", i,
                          mpl_shape_text(shape, text));
    return MPL_OK;
}

static double real(const mpl_op_call *call, const mpl_form *form, uint32_t input, int64_t i)
{
    return mpl_form_get(&form[input], call->in[input].type, call->in[input].data, i, 0);
}

static double clamped(double x, const double range[2])
{
    return x < range[0] ? range[0] : x > range[1] ? range[1] : x;
}

/* The forms of an operation that the shape rule has accepted. */
static void forms_of(mpl_ctx *ctx, const mpl_op_call *call, mpl_form *form)
{
    if (mpl_forms_read(ctx, call->graph, call->op, call->n_in + 1, form) != MPL_OK)
        mpl_assert(false);
}

/* ---- svdf ---- */

enum { X, OVER_X, OVER_TIME, BIAS, STATE, N_SVDF };

mpl_status mpl_shape_svdf(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *shape = call->in_shape[X], *time = call->in_shape[OVER_TIME];
    int64_t k = mpl_attr_int(call->graph, call->op, MPL_ATTR_k, 1);
    mpl_form form[MOST_OPERANDS];

    MPL_PASS(read_forms(ctx, call, form));
    MPL_PASS(mpl_check_rank(ctx, call, X, 2, 2));
    MPL_PASS(mpl_check_rank(ctx, call, OVER_TIME, 2, 2));
    if (k < 1 || time->dim[0] % k != 0 || time->dim[1] < 1)
        return MPL_REFUSE(ctx, "%" PRId64 " filters over %" PRId64 " steps, in groups of %" PRId64,
                          time->dim[0], time->dim[1], k);
    MPL_PASS(expect(ctx, call, OVER_X, 2, time->dim[0], shape->dim[1]));
    MPL_PASS(expect(ctx, call, BIAS, 1, time->dim[0] / k, 0));
    MPL_PASS(expect(ctx, call, STATE, 2, shape->dim[0], time->dim[0] * time->dim[1]));
    call->out_shape[0] = (mpl_shape){2, {shape->dim[0], time->dim[0] / k}};
    call->out_shape[1] = *call->in_shape[STATE];
    call->out_type[1] = call->in_type[STATE];
    return MPL_OK;
}

/* Puts the product of row b of x and filter f behind the steps at `steps`. */
static void push_step(const mpl_op_call *call, const mpl_form *form, int64_t b, int64_t f,
                      int64_t steps)
{
    const mpl_tensor *state = &call->out[1];
    int64_t n = call->in[X].shape.dim[1], memory = call->in[OVER_TIME].shape.dim[1];
    uint32_t size = mpl_type_bytes(state->type);
    char *at = (char *)state->data + (uint64_t)steps * size;
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += real(call, form, X, b * n + i) * real(call, form, OVER_X, f * n + i);
    memmove(at, at + size, (size_t)(memory - 1) * size);
    mpl_form_put(&form[STATE], state->type, state->data, steps + memory - 1, sum);
}

mpl_status mpl_eval_svdf(mpl_ctx *ctx, const mpl_op_call *call)
{
    int64_t k = mpl_attr_int(call->graph, call->op, MPL_ATTR_k, 1);
    int64_t n_filters = call->in[OVER_TIME].shape.dim[0];
    int64_t memory = call->in[OVER_TIME].shape.dim[1], units = n_filters / k;
    const mpl_tensor *state = &call->out[1], *y = &call->out[0];
    mpl_form form[MOST_OPERANDS];
    double range[2];

    forms_of(ctx, call, form);
    mpl_form_clamp(call->graph, call->op, range);
    if (state->data != call->in[STATE].data)
        memcpy(state->data, call->in[STATE].data,
               (size_t)mpl_count(&state->shape) * mpl_type_bytes(state->type));
    for (int64_t row = 0; row < y->shape.dim[0] * units; row++) {
        int64_t b = row / units, unit = row % units;
        double sum = real(call, form, BIAS, unit);

        for (int64_t f = unit * k; f < (unit + 1) * k; f++) {
            int64_t steps = (b * n_filters + f) * memory;

            push_step(call, form, b, f, steps);
            for (int64_t t = 0; t < memory; t++)
                sum += mpl_form_get(&form[STATE], state->type, state->data, steps + t, 0) *
                       real(call, form, OVER_TIME, f * memory + t);
        }
        mpl_form_put(&form[N_SVDF], y->type, y->data, row, clamped(sum, range));
    }
    return MPL_OK;
}

/* ---- sequence_lstm ---- */

enum { WEIGHT = 1, RECURRENT = 5, GATE_BIAS = 9, HIDDEN = 13, CELL = 14, N_LSTM = 15 };

mpl_status mpl_shape_sequence_lstm(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_shape *shape = call->in_shape[X];
    int64_t time_axis = mpl_attr_int(call->graph, call->op, MPL_ATTR_time_axis, 1), units;
    mpl_form form[MOST_OPERANDS];

    MPL_PASS(read_forms(ctx, call, form));
    MPL_PASS(mpl_check_rank(ctx, call, X, 3, 3));
    MPL_PASS(mpl_check_rank(ctx, call, WEIGHT, 2, 2));
    if (time_axis != 0 && time_axis != 1)
        return MPL_REFUSE(ctx, "time_axis is %" PRId64 "; it must be 0 or 1", time_axis);
    units = call->in_shape[WEIGHT]->dim[0];
    for (uint32_t gate = 0; gate < 4; gate++) {
        MPL_PASS(expect(ctx, call, WEIGHT + gate, 2, units, shape->dim[2]));
        MPL_PASS(expect(ctx, call, RECURRENT + gate, 2, units, units));
        MPL_PASS(expect(ctx, call, GATE_BIAS + gate, 1, units, 0));
    }
    MPL_PASS(expect(ctx, call, HIDDEN, 2, shape->dim[1 - time_axis], units));
    MPL_PASS(expect(ctx, call, CELL, 2, shape->dim[1 - time_axis], units));
    call->out_shape[0] = *shape;
    call->out_shape[0].dim[2] = units;
    for (uint32_t i = 0; i < 2; i++) {
        call->out_shape[1 + i] = *call->in_shape[HIDDEN + i];
        call->out_type[1 + i] = call->in_type[HIDDEN + i];
    }
    return MPL_OK;
}

/* One time step of one item of the batch: where its rows of x, of the states and of y begin. */
typedef struct lstm_step {
    const mpl_op_call *call;
    const mpl_form *form;
    int64_t n, units, x, state, y;
    double range[2];
} lstm_step;

static double state_at(const lstm_step *step, uint32_t which, int64_t i)
{
    const mpl_tensor *tensor = &step->call->out[1 + which];

    return mpl_form_get(&step->form[HIDDEN + which], tensor->type, tensor->data, step->state + i,
                        0);
}

static double gate_at(const lstm_step *step, uint32_t gate, int64_t unit)
{
    double sum = real(step->call, step->form, GATE_BIAS + gate, unit);

    for (int64_t i = 0; i < step->n; i++)
        sum += real(step->call, step->form, X, step->x + i) *
               real(step->call, step->form, WEIGHT + gate, unit * step->n + i);
    for (int64_t i = 0; i < step->units; i++)
        sum += state_at(step, 0, i) *
               real(step->call, step->form, RECURRENT + gate, unit * step->units + i);
    return sum;
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

/* Units read the old output state, so the new one waits in tensor until all have. */
static void take_step(const lstm_step *step)
{
    const mpl_tensor *tensor = &step->call->out[0], *hidden = &step->call->out[1],
                     *cell = &step->call->out[2];

    for (int64_t unit = 0; unit < step->units; unit++) {
        double c = logistic(gate_at(step, 1, unit)) * state_at(step, 1, unit) +
                   logistic(gate_at(step, 0, unit)) * tanh(gate_at(step, 2, unit));

        mpl_form_put(&step->form[CELL], cell->type, cell->data, step->state + unit,
                     clamped(c, step->range));
        mpl_form_put(&step->form[N_LSTM], tensor->type, tensor->data, step->y + unit,
                     logistic(gate_at(step, 3, unit)) * tanh(state_at(step, 1, unit)));
    }
    for (int64_t unit = 0; unit < step->units; unit++)
        mpl_form_put(
            &step->form[HIDDEN], hidden->type, hidden->data, step->state + unit,
            mpl_form_get(&step->form[N_LSTM], tensor->type, tensor->data, step->y + unit, 0));
}

mpl_status mpl_eval_sequence_lstm(mpl_ctx *ctx, const mpl_op_call *call)
{
    const mpl_shape *shape = &call->in[X].shape;
    bool by_time = mpl_attr_int(call->graph, call->op, MPL_ATTR_time_axis, 1) == 0;
    int64_t batch = shape->dim[by_time ? 1 : 0], time = shape->dim[by_time ? 0 : 1];
    mpl_form form[MOST_OPERANDS];
    lstm_step s = {.call = call, .form = form, .n = shape->dim[2]};

    forms_of(ctx, call, form);
    mpl_form_clamp(call->graph, call->op, s.range);
    s.units = call->in[WEIGHT].shape.dim[0];
    for (uint32_t i = 0; i < 2; i++)
        if (call->out[1 + i].data != call->in[HIDDEN + i].data)
            memcpy(call->out[1 + i].data, call->in[HIDDEN + i].data,
                   (size_t)(batch * s.units) * mpl_type_bytes(call->in[HIDDEN + i].type));
    for (int64_t t = 0; t < time; t++)
        for (int64_t b = 0; b < batch; b++) {
            int64_t row = by_time ? t * batch + b : b * time + t;

            s.x = row * s.n;
            s.y = row * s.units;
            s.state = b * s.units;
            take_step(&s);
        }
    return MPL_OK;
}
