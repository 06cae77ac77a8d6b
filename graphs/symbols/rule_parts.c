/* rule_parts.c -- what rules read of an operation. See shape_rules_priv.h. */
#include "graphs/symbols/shape_rules_priv.h"

const int64_t *mpl_rule_fixed(mpl_rule *rule, mpl_attr_key key, uint32_t *n)
{
    mpl_attr own, other;
    bool there = mpl_attr_get(rule->g, rule->op, key, &own);

    *n = 0;
    for (uint32_t i = 1; i < rule->call->n_points; i++)
        if (mpl_attr_get(rule->call->graph[i], rule->op, key, &other) != there ||
            (there &&
             (own.n != other.n || memcmp(own.ints, other.ints, own.n * sizeof *own.ints) != 0)))
            rule->known = false;
    *n = there ? own.n : 0;
    return there ? own.ints : NULL;
}

int64_t mpl_rule_one(mpl_rule *rule, mpl_attr_key key, int64_t otherwise)
{
    uint32_t n;
    const int64_t *number = mpl_rule_fixed(rule, key, &n);

    return n == 1 ? number[0] : otherwise;
}

uint32_t mpl_rule_count(mpl_rule *rule, mpl_attr_key key)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < rule->call->n_points; i++) {
        mpl_attr own;
        uint32_t n_own = mpl_attr_get(rule->call->graph[i], rule->op, key, &own) ? own.n : 0;

        rule->known = rule->known && (i == 0 || n_own == n);
        n = n_own;
    }
    return rule->known ? n : 0;
}

mpl_expr mpl_rule_varying(mpl_rule *rule, mpl_attr_key key, uint32_t i)
{
    int64_t *value = NULL;
    uint32_t n_points = rule->call->n_points;
    bool same = true, found = true;
    mpl_expr out = 0;

    if (rule->st == MPL_OK)
        rule->st = mpl_new(rule->call->ctx, value, n_points);
    for (uint32_t k = 0; value != NULL && k < n_points; k++) {
        mpl_attr attr;

        mpl_attr_get(rule->call->graph[k], rule->op, key, &attr);
        value[k] = attr.ints[i];
        same = same && value[k] == value[0];
    }
    if (value != NULL && same)
        out = number(rule, value[0]);
    else if (value != NULL && rule->st == MPL_OK)
        rule->st = mpl_fit_find(rule->call->ctx, rule->call->fit, value, rule->call->n_hints,
                                rule->call->hint, &found, &out);
    /* once for all outputs; of a split, output i alone has number i */
    rule->call->n_leaves += !same && found && (rule->out == 0 || rule->out == i);
    rule->known = rule->known && found;
    mpl_free(rule->call->ctx, value);
    return out;
}

uint32_t mpl_rule_as_axis(mpl_rule *rule, int64_t axis, uint32_t rank)
{
    axis += axis < 0 ? rank : 0;
    rule->known = rule->known && axis >= 0 && axis < (int64_t)rank;
    return rule->known ? (uint32_t)axis : 0;
}

uint32_t mpl_rule_axis(mpl_rule *rule, int64_t otherwise, uint32_t rank)
{
    return mpl_rule_as_axis(rule, mpl_rule_one(rule, MPL_ATTR_axis, otherwise), rank);
}

uint32_t mpl_rule_axes(mpl_rule *rule, uint32_t rank, uint32_t otherwise)
{
    uint32_t n, set = 0;
    const int64_t *axes = mpl_rule_fixed(rule, MPL_ATTR_axes, &n);

    for (uint32_t i = 0; i < n; i++)
        set |= 1u << mpl_rule_as_axis(rule, axes[i], rank);
    return axes != NULL ? set : otherwise;
}

void mpl_rule_broadcast(mpl_rule *rule, mpl_dims d)
{
    mpl_expr old[MPL_MAX_RANK];
    uint32_t n = rule->rank, rank = n > d.rank ? n : d.rank;

    memcpy(old, rule->dim, sizeof old);
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t a = i + n - rank, b = i + d.rank - rank; /* wrap around where there is none */

        rule->dim[i] = a >= n               ? d.dim[b]
                       : b >= d.rank        ? old[a]
                       : old[a] == d.dim[b] ? old[a]
                                            : two(rule, mpl_expr_max, old[a], d.dim[b]);
    }
    rule->rank = rank;
}
