/* write_update.c -- optimiser updates of a weight and its state: element-wise, in double, in place.
 *
 * Source   Momentum: B. Polyak, 1964, as it is used for networks (Sutskever et al., 2013, without
 *          look-ahead). AdaGrad: J. Duchi, E. Hazan, Y. Singer, 2011. Adam: D. Kingma, J. Ba,
 *          "Adam: A Method for Stochastic Optimization", 2015, algorithm 1; `decay`: I. Loshchilov,
 *          F. Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2. */
#include "graphs/ops/ops_priv.h"

#include <math.h>

/* Inputs from `first` on, and all outputs, match the gradient. Further inputs are only waited
 * for. */
static mpl_status shape_update(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t first)
{
    const mpl_op_info *info = &mpl_op_table[call->graph->op_kind[call->op]];
    char text[200], other[200];

    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET_FLOAT));
    for (uint32_t i = first; i < info->min_in; i++) {
        MPL_PASS(mpl_check_same_type(ctx, call, i, 0));
        if (!mpl_shape_equal(call->in_shape[i], call->in_shape[0]))
            return MPL_REFUSE(ctx, "input %u has dims %s, the gradient %s", i,
                              mpl_shape_text(call->in_shape[i], text),
                              mpl_shape_text(call->in_shape[0], other));
    }
    for (uint32_t i = 0; i < call->n_out; i++)
        mpl_like_input(call, i, call->in_type[0]);
    return MPL_OK;
}

mpl_status mpl_shape_update(mpl_ctx *ctx, const mpl_shape_call *call)
{
    return shape_update(ctx, call, 1);
}

mpl_status mpl_shape_adam_update(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(mpl_check_type(ctx, call, 1, MPL_SET(i64)));
    if (mpl_count(call->in_shape[1]) != 1)
        return MPL_REFUSE(ctx, "the number of the run is one element");
    return shape_update(ctx, call, 2);
}

mpl_status mpl_shape_step_update(mpl_ctx *ctx, const mpl_shape_call *call)
{
    MPL_PASS(mpl_check_type(ctx, call, 0, MPL_SET(i64)));
    return mpl_like_input(call, 0, MPL_TYPE_i64);
}

/* Numeric attributes of an optimiser. */
typedef struct pace {
    double rate, momentum, epsilon, beta1, beta2, decay, correct1, correct2;
} pace;

static pace pace_of(const mpl_op_call *call, double rate)
{
    const mpl_graph *g = call->graph;

    return (pace){.rate = mpl_attr_float(g, call->op, MPL_ATTR_rate, rate),
                  .momentum = mpl_attr_float(g, call->op, MPL_ATTR_momentum, 0.9),
                  .epsilon = mpl_attr_float(g, call->op, MPL_ATTR_epsilon, 1e-8),
                  .beta1 = mpl_attr_float(g, call->op, MPL_ATTR_beta1, 0.9),
                  .beta2 = mpl_attr_float(g, call->op, MPL_ATTR_beta2, 0.999),
                  .decay = mpl_attr_float(g, call->op, MPL_ATTR_decay, 0)};
}

#define IN(i)     mpl_get(type, call->in[i].data, k)
#define OUT(i, x) mpl_put(type, call->out[i].data, k, x)

MPL_INLINE void sgd(mpl_type type, const mpl_op_call *call, const pace *p)
{
    for (int64_t k = 0, n = mpl_count(&call->in[0].shape); k < n; k++)
        OUT(0, IN(1) - p->rate * IN(0));
}

MPL_INLINE void momentum(mpl_type type, const mpl_op_call *call, const pace *p)
{
    for (int64_t k = 0, n = mpl_count(&call->in[0].shape); k < n; k++) {
        double m = p->momentum * IN(2) + IN(0);

        OUT(0, IN(1) - p->rate * m);
        OUT(1, m);
    }
}

MPL_INLINE void adagrad(mpl_type type, const mpl_op_call *call, const pace *p)
{
    for (int64_t k = 0, n = mpl_count(&call->in[0].shape); k < n; k++) {
        double g = IN(0), h = IN(2) + g * g;

        OUT(0, IN(1) - p->rate * g / sqrt(h + p->epsilon));
        OUT(1, h);
    }
}

MPL_INLINE void adam(mpl_type type, const mpl_op_call *call, const pace *p)
{
    for (int64_t k = 0, n = mpl_count(&call->in[0].shape); k < n; k++) {
        double g = IN(0), m = p->beta1 * IN(3) + (1 - p->beta1) * g,
               v = p->beta2 * IN(4) + (1 - p->beta2) * g * g;

        OUT(0, IN(2) - p->rate * (m / p->correct1) / (sqrt(v / p->correct2) + p->epsilon) -
                   p->rate * p->decay * IN(2));
        OUT(1, m);
        OUT(2, v);
    }
}

mpl_status mpl_eval_sgd_update(mpl_ctx *ctx, const mpl_op_call *call)
{
    pace p = pace_of(call, 0.01);

    (void)ctx;
    MPL_FOR_FLOAT(call->in[0].type, sgd, call, &p)
    return MPL_OK;
}

mpl_status mpl_eval_momentum_update(mpl_ctx *ctx, const mpl_op_call *call)
{
    pace p = pace_of(call, 0.01);

    (void)ctx;
    MPL_FOR_FLOAT(call->in[0].type, momentum, call, &p)
    return MPL_OK;
}

mpl_status mpl_eval_adagrad_update(mpl_ctx *ctx, const mpl_op_call *call)
{
    pace p = pace_of(call, 0.01);

    (void)ctx;
    MPL_FOR_FLOAT(call->in[0].type, adagrad, call, &p)
    return MPL_OK;
}

mpl_status mpl_eval_adam_update(mpl_ctx *ctx, const mpl_op_call *call)
{
    pace p = pace_of(call, 0.001);
    int64_t step = *(const int64_t *)call->in[1].data;

    if (step < 1)
        return MPL_REFUSE(ctx, "run %" PRId64 ": Adam counts from 1", step);
    p.correct1 = 1 - pow(p.beta1, (double)step);
    p.correct2 = 1 - pow(p.beta2, (double)step);
    MPL_FOR_FLOAT(call->in[0].type, adam, call, &p)
    return MPL_OK;
}

mpl_status mpl_eval_step_update(mpl_ctx *ctx, const mpl_op_call *call)
{
    const int64_t *step = call->in[0].data;
    int64_t *next = call->out[0].data;

    (void)ctx;
    for (int64_t i = 0; i < mpl_count(&call->in[0].shape); i++)
        next[i] = step[i] + 1;
    return MPL_OK;
}
