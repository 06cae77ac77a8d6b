/* grad_user.c -- the gradient of a user's operator: another operator of the same library. See
 * graphs/ops/user/operators.h. */
#include "graphs/ops/user/user_ops.h"
#include "graphs/passes/autodiff/gradients_priv.h"

/* Appends one group of operands; returns how many there are then. */
static uint32_t add_group(mpl_grad *d, char group, uint32_t n, mpl_value *in)
{
    uint32_t more = group == 'x' ? mpl_op_n_in(d->g, d->op) : mpl_op_n_out(d->g, d->op);

    for (uint32_t i = 0; i < more; i++, n++)
        in[n] = group == 'x'                                ? mpl_grad_in(d, i)
                : mpl_op_output(d->g, d->op, i) == MPL_NONE ? MPL_NONE
                : group == 'd'                              ? mpl_grad_dy(d, i)
                                                            : mpl_grad_out(d, i);
    return n;
}

/* Refuses a gradient whose type or dims are not those of its input. */
static void check_forms(mpl_grad *d, const memplan_operator *u, uint32_t n, const uint32_t *target)
{
    mpl_op op = d->to->n_ops - 1;

    for (uint32_t i = 0; i < n && d->st == MPL_OK; i++) {
        mpl_value x = mpl_op_input(d->g, d->op, i), dx = mpl_op_output(d->to, op, i);

        if (target[i] != MPL_NONE &&
            (d->g->value_type[x] != d->to->value_type[dx] ||
             !mpl_shape_equal(&d->g->value_shape[x], &d->to->value_shape[dx])))
            d->st = MPL_REFUSE(d->ctx,
                               "operation '%.100s': output %u of %s, a gradient, has another type "
                               "or other dims than input %u of %s",
                               d->g->op_name[d->op], i, u->gradient, i, u->name);
    }
}

void mpl_grad_of_user(mpl_grad *d)
{
    const memplan_operator *u = mpl_user_of(d->g, d->op);
    mpl_value in[3 * MEMPLAN_MOST_OPERANDS];
    uint32_t target[MEMPLAN_MOST_OPERANDS], n_in = 0, n = 0;
    mpl_attr attr[2] = {{0}, MPL_TEXT(params, mpl_attr_text(d->g, d->op, MPL_ATTR_params, ""))};

    if (d->st != MPL_OK)
        return;
    if (u == NULL || u->gradient == NULL) {
        d->st = MPL_REFUSE(d->ctx, "operation '%.100s': operator %.60s of yours has no gradient",
                           d->g->op_name[d->op], mpl_op_called(d->g, d->op));
        return;
    }
    for (const char *at = u->gradient_reads; *(at += strspn(at, " ")) != '\0';
         at += strcspn(at, " "))
        if (n_in <= 2 * MEMPLAN_MOST_OPERANDS)
            n_in = add_group(d, *at, n_in, in);
    for (uint32_t i = 0; i < mpl_op_n_in(d->g, d->op); i++) {
        target[i] = mpl_grad_wants(d, i) ? i : MPL_NONE;
        n = target[i] != MPL_NONE ? i + 1 : n;
    }
    attr[0] = MPL_TEXT(opcode, u->gradient);
    if (n > 0)
        mpl_grad_make_all(d, MPL_OP_user, n_in, in, 2, attr, n, target, 1);
    check_forms(d, u, n, target);
}
