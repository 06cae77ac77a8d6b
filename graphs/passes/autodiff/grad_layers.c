/* grad_layers.c -- gradients of normalisations with given or computed moments, and of operations
 * of two operands that are seldom trained. See gradients_priv.h.
 *
 * Formula  With c = x - mean, s = 1 / sqrt(var + epsilon), h = c s and g = dy scale, moments over
 *          the same elements: dx = s (g - mean(g) - h mean(g h)); dscale is the sum of dy h. Fixed
 *          moments leave dx = s g; without centring, mean(g) goes. S. Ioffe, C. Szegedy, "Batch
 *          Normalization", 2015; J. Ba and others, "Layer Normalization", 2016. */
#include "graphs/ops/ops_priv.h"
#include "graphs/passes/autodiff/gradients_priv.h"

/* One normalisation. */
typedef struct normal {
    mpl_shape rows;  /* x's dims as moments are taken */
    uint32_t n_axes; /* over these; 0: moments are inputs 3 and 4 */
    int64_t axes[MPL_MAX_RANK];
    bool centred, channels; /* scale and bias: one element a channel */
    mpl_value h, s;         /* as in the head; dims of rows */
} normal;

static mpl_value mean(mpl_grad *grad, const normal *m, mpl_value v)
{
    return mpl_grad_helper(
        grad, MPL_OP_reduce_mean, 1, &v, 2,
        (const mpl_attr[]){MPL_INTS(axes, m->n_axes, m->axes), MPL_INT(keepdims, 1)});
}

/* A vector of one element a channel, as dims that broadcast; other operands as they are. */
static mpl_value spread(mpl_grad *grad, const normal *m, uint32_t i)
{
    mpl_shape s = {mpl_grad_in_shape(grad, 0)->rank - 1, {mpl_grad_in_shape(grad, i)->dim[0]}};

    for (uint32_t k = 1; k < s.rank; k++)
        s.dim[k] = 1;
    return m->channels ? mpl_grad_with_dims(grad, mpl_grad_in(grad, i), &s) : mpl_grad_in(grad, i);
}

/* What the operation is: its rows, axes and kind of scale. */
static void describe(mpl_grad *grad, normal *m)
{
    const mpl_shape *shape = mpl_grad_in_shape(grad, 0);
    mpl_op_kind kind = (mpl_op_kind)grad->g->op_kind[grad->op];
    bool by_rows = kind == MPL_OP_layer_norm || kind == MPL_OP_rms_norm;
    int64_t axis = mpl_attr_int(grad->g, grad->op, MPL_ATTR_axis, -1), groups, n = 1;

    *m = (normal){.rows = *shape, .centred = kind != MPL_OP_rms_norm, .channels = !by_rows};
    axis = kind == MPL_OP_instance_norm ? 2 : axis < 0 ? axis + shape->rank : axis;
    if (kind == MPL_OP_batch_norm)
        return;
    if (kind == MPL_OP_group_norm) {
        groups = mpl_attr_int(grad->g, grad->op, MPL_ATTR_num_groups, 1);
        for (uint32_t i = 1; i < shape->rank; i++)
            n *= shape->dim[i];
        m->rows = (mpl_shape){3, {shape->dim[0], groups, n / groups}};
        axis = 2;
    }
    for (uint32_t i = (uint32_t)axis; i < m->rows.rank; i++)
        m->axes[m->n_axes++] = i;
}

static void normalise(mpl_grad *grad, normal *m)
{
    mpl_value x = mpl_grad_with_dims(grad, mpl_grad_in(grad, 0), &m->rows), var;
    double epsilon = mpl_attr_float(grad->g, grad->op, MPL_ATTR_epsilon, 1e-5);

    if (m->centred)
        x = mpl_grad_two(grad, MPL_OP_sub, x,
                         m->n_axes > 0 ? mean(grad, m, x) : spread(grad, m, 3));
    var = m->n_axes > 0 ? mean(grad, m, mpl_grad_two(grad, MPL_OP_mul, x, x)) : spread(grad, m, 4);
    var = mpl_grad_two(grad, MPL_OP_add, var, mpl_grad_number(grad, epsilon));
    var = mpl_grad_helper(grad, MPL_OP_sqrt, 1, &var, 0, NULL);
    m->s = mpl_grad_helper(grad, MPL_OP_reciprocal, 1, &var, 0, NULL);
    if (m->n_axes > 0 || mpl_grad_wants(grad, 1))
        m->h = mpl_grad_two(grad, MPL_OP_mul, x, m->s);
}

/* Gives `part`, of x's dims, to the scale or bias i. */
static void give_scale(mpl_grad *grad, const normal *m, uint32_t i, mpl_value part)
{
    static const int64_t axes[] = {0, 2, 3, 4, 5, 6, 7};

    if (m->channels)
        mpl_grad_make(grad, i, MPL_OP_reduce_sum, 1, &part, 2,
                      (const mpl_attr[]){MPL_INTS(axes, mpl_grad_in_shape(grad, 0)->rank - 1, axes),
                                         MPL_INT(keepdims, 0)});
    else
        mpl_grad_give_summed(grad, i, part);
}

/* batch_norm with frozen statistics, layer_norm, rms_norm, instance_norm, group_norm. */
void mpl_grad_of_normal(mpl_grad *grad)
{
    const mpl_shape *shape = mpl_grad_in_shape(grad, 0);
    uint32_t n = grad->g->op_in_begin[grad->op + 1] - grad->g->op_in_begin[grad->op];
    mpl_value dy = mpl_grad_dy(grad, 0), g, along;
    normal m;

    for (uint32_t i = 1; i < 3; i++)
        if (mpl_op_output(grad->g, grad->op, i) != MPL_NONE &&
            grad->whole[mpl_op_output(grad->g, grad->op, i)] != MPL_NONE)
            mpl_grad_fail(grad, "its moments are differentiated, too");
    describe(grad, &m);
    normalise(grad, &m);
    if (mpl_grad_wants(grad, 1))
        give_scale(grad, &m, 1,
                   mpl_grad_two(grad, MPL_OP_mul, dy, mpl_grad_with_dims(grad, m.h, shape)));
    if (n > 2 && mpl_grad_wants(grad, 2))
        give_scale(grad, &m, 2, dy);
    if (!mpl_grad_wants(grad, 0))
        return;
    g = mpl_grad_with_dims(grad, mpl_grad_two(grad, MPL_OP_mul, dy, spread(grad, &m, 1)), &m.rows);
    if (m.n_axes > 0) {
        along = mpl_grad_two(grad, MPL_OP_mul, m.h,
                             mean(grad, &m, mpl_grad_two(grad, MPL_OP_mul, g, m.h)));
        if (m.centred)
            g = mpl_grad_two(grad, MPL_OP_sub, g, mean(grad, &m, g));
        g = mpl_grad_two(grad, MPL_OP_sub, g, along);
    }
    g = mpl_grad_two(grad, MPL_OP_mul, g, m.s);
    mpl_grad_give(grad, 0, mpl_grad_with_dims(grad, g, shape));
}

/* dy - exp(y) sum(dy) */
void mpl_grad_of_log_softmax(mpl_grad *grad)
{
    int64_t axis = mpl_attr_int(grad->g, grad->op, MPL_ATTR_axis, -1);
    mpl_value dy = mpl_grad_dy(grad, 0), y = mpl_grad_out(grad, 0), sum;

    sum = mpl_grad_helper(grad, MPL_OP_reduce_sum, 1, &dy, 2,
                          (const mpl_attr[]){MPL_INTS(axes, 1, &axis), MPL_INT(keepdims, 1)});
    y = mpl_grad_helper(grad, MPL_OP_exp, 1, &y, 0, NULL);
    mpl_grad_give(grad, 0,
                  mpl_grad_two(grad, MPL_OP_sub, dy, mpl_grad_two(grad, MPL_OP_mul, y, sum)));
}

/* x^p: dy p x^(p - 1), and dy y log(x). */
void mpl_grad_of_pow(mpl_grad *grad)
{
    mpl_value dy = mpl_grad_dy(grad, 0), x = mpl_grad_in(grad, 0), p = mpl_grad_in(grad, 1), part;

    if (mpl_grad_wants(grad, 0)) {
        part = mpl_grad_two(grad, MPL_OP_sub, p, mpl_grad_number(grad, 1));
        part = mpl_grad_two(grad, MPL_OP_pow, x, part);
        part = mpl_grad_two(grad, MPL_OP_mul, p, part);
        mpl_grad_give_summed(grad, 0, mpl_grad_two(grad, MPL_OP_mul, dy, part));
    }
    if (mpl_grad_wants(grad, 1)) {
        part = mpl_grad_helper(grad, MPL_OP_log, 1, &x, 0, NULL);
        part = mpl_grad_two(grad, MPL_OP_mul, mpl_grad_out(grad, 0), part);
        mpl_grad_give_summed(grad, 1, mpl_grad_two(grad, MPL_OP_mul, dy, part));
    }
}

void mpl_grad_of_prelu(mpl_grad *grad)
{
    mpl_value dy = mpl_grad_dy(grad, 0), x = mpl_grad_in(grad, 0), zero = mpl_grad_number(grad, 0),
              below = mpl_grad_two(grad, MPL_OP_less, x, zero);

    for (uint32_t i = 0; i < 2; i++)
        if (mpl_grad_wants(grad, i)) {
            mpl_value in[] = {below, mpl_grad_two(grad, MPL_OP_mul, dy, mpl_grad_in(grad, 1 - i)),
                              i == 0 ? dy : zero};

            mpl_grad_give_summed(grad, i, mpl_grad_helper(grad, MPL_OP_where, 3, in, 0, NULL));
        }
}

void mpl_grad_of_cast(mpl_grad *grad)
{
    const char *type = mpl_type_name(
        (mpl_type)grad->g->value_type[grad->g->op_in[grad->g->op_in_begin[grad->op]]]);

    mpl_grad_make(grad, 0, MPL_OP_cast, 1, (mpl_value[]){mpl_grad_dy(grad, 0)}, 1,
                  &MPL_TEXT(to, type));
}
