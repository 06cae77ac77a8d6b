/* grad_words.c -- gradients written as words of a stack machine. See ir/ops.def, SLOPE, and
 * gradients_priv.h. */
#include "graphs/ir/counts.h"
#include "graphs/passes/autodiff/gradients_priv.h"

#include <stdlib.h>

/* What the words dy, x and y stand for. */
typedef struct operands {
    mpl_value dy, x, y; /* MPL_NONE: of the current operation, asked for when the word comes */
} operands;

/* The number of "@key=default". */
static mpl_value attribute(mpl_grad *grad, const char *word)
{
    const char *mark = strchr(word, '=');
    char name[24];
    mpl_attr_key key = 0;
    bool known;

    snprintf(name, sizeof name, "%.*s", (int)(mark - word - 1), word + 1);
    known = mpl_attr_find(name, &key);
    mpl_assert(known);
    return mpl_grad_number(grad, mpl_attr_float(grad->g, grad->op, key, strtod(mark + 1, NULL)));
}

/* Whether the word is no operator but this value. */
static bool operand(mpl_grad *grad, const operands *of, const char *word, mpl_op_kind *kind,
                    mpl_value *v)
{
    if (strcmp(word, "dy") == 0)
        *v = of->dy != MPL_NONE ? of->dy : mpl_grad_dy(grad, 0);
    else if (strcmp(word, "x") == 0)
        *v = of->x != MPL_NONE ? of->x : mpl_grad_in(grad, 0);
    else if (strcmp(word, "y") == 0)
        *v = of->y != MPL_NONE ? of->y : mpl_grad_out(grad, 0);
    else if (word[0] == '@')
        *v = attribute(grad, word);
    else if (mpl_op_find(word, kind))
        return false;
    else
        *v = mpl_grad_number(grad, strtod(word, NULL));
    return true;
}

/* Evaluates the words. The last one makes the gradient of input 0, or, if `inside`, a value. */
static mpl_value evaluate(mpl_grad *grad, const char *at, const operands *of, bool inside)
{
    mpl_value stack[8], v = MPL_NONE;
    uint32_t depth = 0, n_in;
    mpl_op_kind kind;
    char word[48];

    for (int n; sscanf(at, "%47s%n", word, &n) == 1; at += n) {
        if (!operand(grad, of, word, &kind, &v)) {
            n_in = mpl_op_table[kind].min_in;
            mpl_assert(depth >= n_in);
            depth -= n_in;
            if (at[n] == '\0' && !inside)
                mpl_grad_make(grad, 0, kind, n_in, stack + depth, 0, NULL);
            else
                v = mpl_grad_helper(grad, kind, n_in, stack + depth, 0, NULL);
        }
        mpl_assert(depth < sizeof stack / sizeof *stack);
        stack[depth++] = v;
    }
    mpl_assert(depth == 1);
    return stack[0];
}

static const operands own = {MPL_NONE, MPL_NONE, MPL_NONE};

void mpl_grad_of_words(mpl_grad *grad)
{
    static const char *const slope[MPL_N_OPS] = {
#define SLOPE(op, words) [MPL_OP_##op] = words,
#include "graphs/ir/each_op.h"
    };

    evaluate(grad, slope[grad->g->op_kind[grad->op]], &own, false);
}

/* With the normal distribution's F and f: F(x) + x f(x). By tanh, with t = tanh(c (x + k x^3)):
 * (1 + t) / 2 + x (1 - t^2) c (1 + 3 k x^2) / 2. */
void mpl_grad_of_gelu(mpl_grad *grad)
{
    static const char exact[] = "dy x 0.70710678118654752 mul erf 1 add 0.5 mul "
                                "x x x mul -0.5 mul exp mul 0.39894228040143268 mul add mul";
    static const char tanh[] = "1 x x mul 0.044715 mul add x mul 0.79788456080286536 mul tanh";
    static const char slope[] = "dy 1 y add x 1 y y mul sub mul 1 x x mul 0.134145 mul add mul "
                                "0.79788456080286536 mul add 0.5 mul mul";
    operands of = own;

    if (strcmp(mpl_attr_text(grad->g, grad->op, MPL_ATTR_approximate, "none"), "none") == 0) {
        evaluate(grad, exact, &own, false);
        return;
    }
    of.y = evaluate(grad, tanh, &own, true);
    evaluate(grad, slope, &of, false);
}

/* Sums of |x| and of x^2, the root of that, and log of the sum of exp(x). */
void mpl_grad_of_reduce_words(mpl_grad *grad)
{
    mpl_op_kind kind = (mpl_op_kind)grad->g->op_kind[grad->op];
    mpl_shape kept = mpl_grad_kept_dims(grad);
    operands of = {mpl_grad_with_dims(grad, mpl_grad_dy(grad, 0), &kept), MPL_NONE,
                   mpl_grad_with_dims(grad, mpl_grad_out(grad, 0), &kept)};

    evaluate(grad,
             kind == MPL_OP_reduce_l1           ? "dy x sign mul"
             : kind == MPL_OP_reduce_l2         ? "dy y div x mul"
             : kind == MPL_OP_reduce_sum_square ? "dy 2 mul x mul"
                                                : "dy x y sub exp mul",
             &of, false);
}
