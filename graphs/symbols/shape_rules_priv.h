/* shape_rules_priv.h -- what the shape rules over symbols are written with.
 *
 * A rule writes r->dim and r->rank. What fails (a product of too many factors) is kept in r->st, so
 * that a rule reads as its formula; what does not hold sets r->known to false. */
#pragma once

#include "graphs/symbols/shape_rules.h"

typedef struct mpl_rule {
    mpl_rule_call *call;
    const mpl_graph *g; /* at point 0 */
    mpl_op op;
    uint32_t out; /* which output */
    mpl_status st;
    bool known;
    uint32_t rank;
    mpl_expr *dim;
} mpl_rule;

/* Dims of a value. rank MPL_NONE: it is not there, or not known yet. */
typedef struct mpl_dims {
    uint32_t rank;
    const mpl_expr *dim;
} mpl_dims;

/* Rules by the shape rules' names in ir/ops.def, apart by blanks. */
typedef struct mpl_rule_entry {
    const char *names;
    void (*rule)(mpl_rule *r);
} mpl_rule_entry;
extern const mpl_rule_entry mpl_rules_of_arithmetic[], mpl_rules_of_moves[]; /* NULL at the end */

/* ---- expressions ---- */

typedef mpl_status of_two(mpl_ctx *ctx, mpl_exprs *x, mpl_expr a, mpl_expr b, mpl_expr *out);

static inline mpl_expr two(mpl_rule *rule, of_two *f, mpl_expr a, mpl_expr b)
{
    mpl_expr out = 0;

    if (rule->st == MPL_OK)
        rule->st = f(rule->call->ctx, rule->call->exprs, a, b, &out);
    return out;
}

static inline mpl_expr number(mpl_rule *rule, int64_t value)
{
    mpl_expr out = 0;

    if (rule->st == MPL_OK)
        rule->st = mpl_expr_const(rule->call->ctx, rule->call->exprs, value, &out);
    return out;
}

static inline mpl_expr plus(mpl_rule *rule, mpl_expr a, int64_t b)
{
    return two(rule, mpl_expr_add, a, number(rule, b));
}

static inline mpl_expr times(mpl_rule *rule, mpl_expr a, int64_t b)
{
    return two(rule, mpl_expr_mul, a, number(rule, b));
}

/* floor(a / by), by > 0 */
static inline mpl_expr over(mpl_rule *rule, mpl_expr a, int64_t by)
{
    mpl_expr out = 0;

    if (rule->st == MPL_OK)
        rule->st = mpl_expr_floor_div(rule->call->ctx, rule->call->exprs, a, by, &out);
    return out;
}

static inline mpl_expr product(mpl_rule *rule, mpl_dims d, uint32_t from, uint32_t to)
{
    mpl_expr p = number(rule, 1);

    for (uint32_t i = from; i < to; i++)
        p = two(rule, mpl_expr_mul, p, d.dim[i]);
    return p;
}

/* ---- operands and attributes ---- */

static inline mpl_dims dims_of(const mpl_rule *rule, mpl_value v)
{
    if (v == MPL_NONE || !rule->call->done[v])
        return (mpl_dims){MPL_NONE, NULL};
    return (mpl_dims){rule->g->value_shape[v].rank, rule->call->dim + rule->call->dim_begin[v]};
}

/* An input that the rule needs. */
static inline mpl_dims input(mpl_rule *rule, uint32_t i)
{
    mpl_dims d = dims_of(
        rule, i < mpl_op_n_in(rule->g, rule->op) ? mpl_op_input(rule->g, rule->op, i) : MPL_NONE);

    rule->known = rule->known && d.rank != MPL_NONE;
    return d.rank != MPL_NONE ? d : (mpl_dims){0, NULL};
}

static inline void put(mpl_rule *rule, mpl_expr e)
{
    if (rule->rank < MPL_MAX_RANK)
        rule->dim[rule->rank++] = e;
    else
        rule->known = false;
}

static inline void put_all(mpl_rule *rule, mpl_dims d, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        put(rule, d.dim[i]);
}

/* Numbers of a window's attribute, or `otherwise` for each. */
static inline int64_t at_window(const int64_t *numbers, uint32_t i, int64_t otherwise)
{
    return numbers != NULL ? numbers[i] : otherwise;
}

/* ---- attributes ---- */

/* The numbers of an attribute, which must be the same at all points; NULL: it is left out. */
const int64_t *mpl_rule_fixed(mpl_rule *rule, mpl_attr_key key, uint32_t *n);
int64_t mpl_rule_one(mpl_rule *rule, mpl_attr_key key, int64_t otherwise);
/* How many numbers an attribute has, at all points; 0 if left out. */
uint32_t mpl_rule_count(mpl_rule *rule, mpl_attr_key key);
/* Number i of an attribute: a constant, or what fits its values. */
mpl_expr mpl_rule_varying(mpl_rule *rule, mpl_attr_key key, uint32_t i);
/* Axis of a tensor of that rank, negative from the end; attribute `axis`; bit i: axis i is among
 * `axes`, or `otherwise` without that attribute. */
uint32_t mpl_rule_as_axis(mpl_rule *rule, int64_t axis, uint32_t rank);
uint32_t mpl_rule_axis(mpl_rule *rule, int64_t otherwise, uint32_t rank);
uint32_t mpl_rule_axes(mpl_rule *rule, uint32_t rank, uint32_t otherwise);

/* Broadcasts rule->dim with d. Where both are right at all points, dims are equal or one of them is
 * 1. */
void mpl_rule_broadcast(mpl_rule *rule, mpl_dims d);
