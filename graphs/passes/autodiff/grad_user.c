/* grad_user.c -- the gradient of a user's operator: another operator of the same library. See
 * graphs/ops/user/operators.h. */
#include "graphs/ops/user/user_ops.h"
#include "graphs/passes/autodiff/gradients_priv.h"

/* Appends one group of operands; returns how many there are then. */
static uint32_t add_group(mpl_grad *grad, char group, uint32_t n, mpl_value *in)
{
    uint32_t more = group == 'x' ? mpl_op_n_in(grad->g, grad->op) : mpl_op_n_out(grad->g, grad->op);

    for (uint32_t i = 0; i < more; i++, n++)
        in[n] = group == 'x'                                      ? mpl_grad_in(grad, i)
                : mpl_op_output(grad->g, grad->op, i) == MPL_NONE ? MPL_NONE
                : group == 'd'                                    ? mpl_grad_dy(grad, i)
                                                                  : mpl_grad_out(grad, i);
    return n;
}

/* Refuses a gradient whose type or dims are not those of its input. */
static void check_forms(mpl_grad *grad, const memplan_operator *u, uint32_t n,
                        const uint32_t *target)
{
    mpl_op op = grad->to->n_ops - 1;

    for (uint32_t i = 0; i < n && grad->st == MPL_OK; i++) {
        mpl_value x = mpl_op_input(grad->g, grad->op, i), dx = mpl_op_output(grad->to, op, i);

        if (target[i] != MPL_NONE &&
            (grad->g->value_type[x] != grad->to->value_type[dx] ||
             !mpl_shape_equal(&grad->g->value_shape[x], &grad->to->value_shape[dx])))
            grad->st =
                MPL_REFUSE(grad->ctx,
                           "operation '%.100s': output %u of %s, a gradient, has another type "
                           "or other dims than input %u of %s",
                           grad->g->op_name[grad->op], i, u->gradient, i, u->name);
    }
}

void mpl_grad_of_user(mpl_grad *grad)
{
    const memplan_operator *u = mpl_user_of(grad->g, grad->op);
    mpl_value in[3 * MEMPLAN_MOST_OPERANDS];
    uint32_t target[MEMPLAN_MOST_OPERANDS], n_in = 0, n = 0;
    mpl_attr attr[2] = {{0},
                        MPL_TEXT(params, mpl_attr_text(grad->g, grad->op, MPL_ATTR_params, ""))};

    if (grad->st != MPL_OK)
        return;
    if (u == NULL || u->gradient == NULL) {
        grad->st =
            MPL_REFUSE(grad->ctx, "operation '%.100s': operator %.60s of yours has no gradient",
                       grad->g->op_name[grad->op], mpl_op_called(grad->g, grad->op));
        return;
    }
    for (const char *at = u->gradient_reads; *(at += strspn(at, " ")) != '\0';
         at += strcspn(at, " "))
        if (n_in <= 2 * MEMPLAN_MOST_OPERANDS)
            n_in = add_group(grad, *at, n_in, in);
    for (uint32_t i = 0; i < mpl_op_n_in(grad->g, grad->op); i++) {
        target[i] = mpl_grad_wants(grad, i) ? i : MPL_NONE;
        n = target[i] != MPL_NONE ? i + 1 : n;
    }
    attr[0] = MPL_TEXT(opcode, u->gradient);
    if (n > 0)
        mpl_grad_make_all(grad, MPL_OP_user, n_in, in, 2, attr, n, target, 1);
    check_forms(grad, u, n, target);
}
