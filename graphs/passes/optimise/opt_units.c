/* opt_units.c -- passes that find activations written out in arithmetic. See optimise.h. */
#include "graphs/passes/optimise/optimise_priv.h"

#include <math.h>

/* A product as a number times factors. */
typedef struct product {
    double number;
    uint32_t n;
    mpl_value factor[3];
} product;

/* Whether v is the constant x, as exporters round it. */
static bool is_number(const mpl_graph *g, mpl_value v, double x)
{
    double is;

    return v != MPL_NONE && mpl_is_uniform(g, v, &is) && fabs(is - x) <= 1e-6 * fabs(x);
}

/* Multiplies p by operand i of `op`, by its factors if a mul makes it for `op` alone; with depth
 * left. */
static void take_factor(const mpl_graph *g, mpl_value v, int depth, product *p)
{
    mpl_op op = depth > 0 ? mpl_only_for(g, v, MPL_OP_mul) : MPL_NONE;
    double number;

    if (mpl_is_uniform(g, v, &number)) {
        p->number *= number;
    } else if (op != MPL_NONE) {
        for (uint32_t i = 0; i < 2; i++)
            take_factor(g, mpl_op_input(g, op, i), depth - 1, p);
    } else if (p->n < 3) {
        p->factor[p->n++] = v;
    } else {
        p->number = NAN;
    }
}

/* v as a product; a value that is none is once itself. */
static product product_of(const mpl_graph *g, mpl_value v, int depth)
{
    product p = {.number = 1};

    take_factor(g, v, depth, &p);
    return p;
}

/* u if v = 1 + kind(u), both made for the next alone; else MPL_NONE. */
static mpl_value in_one_plus(const mpl_graph *g, mpl_value v, mpl_op_kind kind)
{
    mpl_op sum = mpl_only_for(g, v, MPL_OP_add), inner = MPL_NONE;

    for (uint32_t i = 0; i < 2 && sum != MPL_NONE && inner == MPL_NONE; i++)
        if (is_number(g, mpl_op_input(g, sum, i), 1))
            inner = mpl_only_for(g, mpl_op_input(g, sum, 1 - i), kind);
    return inner != MPL_NONE ? mpl_op_input(g, inner, 0) : MPL_NONE;
}

/* Whether v, made for one reader alone, is x times `number`, or x over its inverse. */
static bool is_scaled(const mpl_graph *g, mpl_value v, mpl_value x, double number)
{
    mpl_op over = mpl_only_for(g, v, MPL_OP_div);
    product p;

    if (over != MPL_NONE)
        return mpl_op_input(g, over, 0) == x && is_number(g, mpl_op_input(g, over, 1), 1 / number);
    p = product_of(g, v, 1);
    return p.n == 1 && p.factor[0] == x && fabs(p.number - number) <= 1e-6 * number;
}

/* Whether v is 0.044715 x^3. */
static bool is_cubed(const mpl_graph *g, mpl_value v, mpl_value x)
{
    product p = product_of(g, v, 3);
    mpl_op power = p.n == 1 ? mpl_only_for(g, p.factor[0], MPL_OP_pow) : MPL_NONE;
    bool cubed = p.n == 3;

    for (uint32_t i = 0; i < p.n && cubed; i++)
        cubed = p.factor[i] == x;
    if (power != MPL_NONE)
        cubed = mpl_op_input(g, power, 0) == x && is_number(g, mpl_op_input(g, power, 1), 3);
    return cubed && fabs(p.number - 0.044715) <= 1e-6 * 0.044715;
}

/* Whether v is sqrt(2 / pi) (x + 0.044715 x^3). */
static bool is_bent(const mpl_graph *g, mpl_value v, mpl_value x)
{
    product p = product_of(g, v, 1);
    mpl_op sum = p.n == 1 ? mpl_only_for(g, p.factor[0], MPL_OP_add) : MPL_NONE;

    for (uint32_t i = 0; i < 2 && sum != MPL_NONE; i++)
        if (mpl_op_input(g, sum, i) == x && is_cubed(g, mpl_op_input(g, sum, 1 - i), x))
            return fabs(p.number - 0.7978845608) <= 1e-6;
    return false;
}

/* The activation of x, of the same form as the result. */
static void become(const mpl_graph *g, mpl_op op, mpl_op_kind kind, mpl_value x, mpl_edit *edit)
{
    mpl_value out = mpl_op_output(g, op, 0);

    if (!mpl_same_form(g, x, out) ||
        !mpl_type_in((mpl_type)g->value_type[out], MPL_SET(f32) | MPL_SET(f64)))
        return; /* narrow floats would be rounded less often */
    edit->kind = MPL_EDIT_REPLACE;
    edit->op_kind = kind;
    edit->n_in = 1;
    edit->in[0] = x;
}

/* 0.5 x (1 + erf(x / sqrt 2)), or with tanh(sqrt(2 / pi) (x + 0.044715 x^3)) in place of erf. */
mpl_status mpl_match_gelu(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    const mpl_graph *g = match->g;
    product p = {.number = 1};

    if (g->op_kind[op] != MPL_OP_mul)
        return MPL_OK;
    for (uint32_t i = 0; i < 2; i++)
        take_factor(g, mpl_op_input(g, op, i), 1, &p);
    for (uint32_t i = 0; i < 2 && p.n == 2 && fabs(p.number - 0.5) <= 1e-6; i++) {
        mpl_value x = p.factor[i], erf = in_one_plus(g, p.factor[1 - i], MPL_OP_erf);
        mpl_value tanh = in_one_plus(g, p.factor[1 - i], MPL_OP_tanh);

        if (erf != MPL_NONE && is_scaled(g, erf, x, sqrt(0.5)))
            become(g, op, MPL_OP_gelu, x, edit);
        if (tanh == MPL_NONE || !is_bent(g, tanh, x))
            continue;
        become(g, op, MPL_OP_gelu, x, edit);
        edit->n_attr = 1;
        edit->attr[0] = (mpl_attr)MPL_TEXT(approximate, "tanh");
    }
    return MPL_OK;
}

/* Layouts of images go through a pool, not through a reduction. */
mpl_status mpl_match_mean_pool(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    const mpl_graph *g = match->g;
    mpl_value x = mpl_op_input(g, op, 0);

    if (g->op_kind[op] != MPL_OP_reduce_mean || !mpl_is_spatial_mean(g, op) ||
        !mpl_type_in((mpl_type)g->value_type[x], MPL_SET(f32) | MPL_SET(f64)) ||
        g->value_bytes[x] == 0)
        return MPL_OK;
    edit->kind = MPL_EDIT_REPLACE;
    edit->op_kind = MPL_OP_global_avg_pool;
    edit->n_in = 1;
    edit->in[0] = x;
    return MPL_OK;
}

/* x sigmoid(x) */
mpl_status mpl_match_swish(mpl_match *match, mpl_op op, mpl_edit *edit)
{
    const mpl_graph *g = match->g;

    for (uint32_t i = 0; i < 2 && g->op_kind[op] == MPL_OP_mul; i++) {
        mpl_value x = mpl_op_input(g, op, i);
        mpl_op sigmoid = mpl_only_for(g, mpl_op_input(g, op, 1 - i), MPL_OP_sigmoid);

        if (sigmoid != MPL_NONE && mpl_op_input(g, sigmoid, 0) == x)
            become(g, op, MPL_OP_swish, x, edit);
    }
    return MPL_OK;
}
