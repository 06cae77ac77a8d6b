/* expr.c -- sums, products, quotients and maxima of expressions. See expr.h. */
#include "graphs/symbols/expr_priv.h"

#include <stdlib.h>

/* scale times the atom, plus `rest`; an atom that exists is found again. */
static mpl_status with_atom(mpl_ctx *ctx, mpl_exprs *exprs, int64_t scale, mpl_atom atom,
                            const mpl_poly *rest, mpl_expr *out)
{
    mpl_status st = MPL_OK;
    mpl_poly p = {0, rest->n + 1, NULL};
    uint32_t id = 0;

    while (id < exprs->n_atoms && (exprs->atom[id].kind != atom.kind ||
                                   exprs->atom[id].of != atom.of || exprs->atom[id].by != atom.by))
        id++;
    MPL_TRY(mpl_reserve(ctx, exprs->atom, exprs->cap_atoms, (size_t)id + 1));
    if (id == exprs->n_atoms)
        exprs->atom[exprs->n_atoms++] = atom;
    MPL_TRY(mpl_new(ctx, p.term, p.cap));
    mpl_poly_put(&p, 1, rest);
    p.term[p.n] = mpl_const_term(scale);
    p.term[p.n++].atom[0] = id;
    MPL_TRY(mpl_expr_of(ctx, exprs, &p, out));
out:
    mpl_free(ctx, p.term);
    return st;
}

mpl_status mpl_expr_const(mpl_ctx *ctx, mpl_exprs *exprs, int64_t value, mpl_expr *out)
{
    mpl_term one = mpl_const_term(value);
    mpl_poly p = {1, 1, &one};

    return mpl_expr_of(ctx, exprs, &p, out);
}

bool mpl_expr_is_const(const mpl_exprs *exprs, mpl_expr e, int64_t *value)
{
    mpl_poly p = mpl_poly_of(exprs, e);

    if (p.n > 1 || (p.n == 1 && p.term[0].atom[0] != MPL_NONE))
        return false;
    *value = p.n == 0 ? 0 : p.term[0].coefficient;
    return true;
}

/* ---- sums and products ---- */

/* a + scale * b */
static mpl_status sum(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr a, int64_t scale, mpl_expr b,
                      mpl_expr *out)
{
    mpl_status st = MPL_OK;
    mpl_poly left = mpl_poly_of(exprs, a), right = mpl_poly_of(exprs, b),
             p = {0, left.n + right.n, NULL};

    MPL_TRY(mpl_new(ctx, p.term, p.cap));
    if (!mpl_poly_put(&p, 1, &left) || !mpl_poly_put(&p, scale, &right))
        MPL_FAIL(ctx, MPL_EINPUT, MPL_EXPR_TOO_LARGE);
    MPL_TRY(mpl_expr_of(ctx, exprs, &p, out));
out:
    mpl_free(ctx, p.term);
    return st;
}

mpl_status mpl_expr_add(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr a, mpl_expr b, mpl_expr *out)
{
    return sum(ctx, exprs, a, 1, b, out);
}

mpl_status mpl_expr_sub(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr a, mpl_expr b, mpl_expr *out)
{
    return sum(ctx, exprs, a, -1, b, out);
}

mpl_status mpl_expr_mul(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr a, mpl_expr b, mpl_expr *out)
{
    mpl_status st = MPL_OK;
    mpl_poly left = mpl_poly_of(exprs, a), right = mpl_poly_of(exprs, b), p = {0};
    uint64_t n = (uint64_t)left.n * right.n;

    if (n > UINT16_MAX)
        return MPL_REFUSE(ctx, "a product of sizes has more than 65535 terms");
    p.cap = (uint32_t)n;
    MPL_TRY(mpl_new(ctx, p.term, p.cap));
    if (!mpl_poly_put_product(&p, &left, &right))
        MPL_FAIL(ctx, MPL_EINPUT, MPL_EXPR_TOO_LARGE);
    MPL_TRY(mpl_expr_of(ctx, exprs, &p, out));
out:
    mpl_free(ctx, p.term);
    return st;
}

/* ---- quotients ---- */

/* The term of poly that is a quotient as it is, so that floor((rest + floor(y / a)) / c) = floor((a
 * * rest + y) / (a * c)); MPL_NONE: there is none. */
static uint32_t lone_quotient(const mpl_exprs *exprs, const mpl_poly *poly, int64_t c)
{
    for (uint32_t i = 0; i < poly->n; i++) {
        const mpl_term *term = &poly->term[i];
        int64_t by;

        if (term->coefficient == 1 && mpl_term_degree(term) == 1 &&
            exprs->atom[term->atom[0]].kind == MPL_ATOM_FLOOR &&
            !__builtin_mul_overflow(c, exprs->atom[term->atom[0]].by, &by))
            return i;
    }
    return MPL_NONE;
}

/* *p becomes the longer dividend and *c the larger divisor. */
static mpl_status join_floor(mpl_ctx *ctx, const mpl_exprs *exprs, mpl_poly *poly, int64_t *c,
                             uint32_t i)
{
    mpl_status st = MPL_OK;
    const mpl_atom atom = exprs->atom[poly->term[i].atom[0]];
    mpl_poly inner = mpl_poly_of(exprs, atom.of), longer = {0, poly->n + inner.n, NULL};

    MPL_TRY(mpl_new(ctx, longer.term, longer.cap));
    poly->term[i] = poly->term[--poly->n];
    if (!mpl_poly_put(&longer, atom.by, poly) || !mpl_poly_put(&longer, 1, &inner) ||
        !mpl_poly_tidy(&longer))
        MPL_FAIL(ctx, MPL_EINPUT, MPL_EXPR_TOO_LARGE);
    mpl_free(ctx, poly->term);
    *poly = longer, longer.term = NULL;
    *c *= atom.by;
out:
    mpl_free(ctx, longer.term);
    return st;
}

/* Moves the terms divisible by c from poly to `whole`, then divides both by the common factor: 0 <=
 * rest < c. */
static void take_whole(mpl_poly *poly, int64_t *c, mpl_poly *whole)
{
    uint64_t common = (uint64_t)*c;
    uint32_t n = 0;

    whole->n = 0;
    for (uint32_t i = 0; i < poly->n; i++) {
        mpl_term t = poly->term[i];
        int64_t quotient = mpl_floor_quotient(t.coefficient, *c);

        poly->term[i].coefficient -= quotient * *c;
        t.coefficient = quotient;
        if (quotient != 0)
            whole->term[whole->n++] = t;
        if (poly->term[i].coefficient != 0)
            poly->term[n++] = poly->term[i];
    }
    poly->n = n;
    for (uint32_t i = 0; i < n; i++)
        if (poly->term[i].atom[0] != MPL_NONE)
            common = mpl_divisor(common, (uint64_t)poly->term[i].coefficient);
    *c /= (int64_t)common;
    for (uint32_t i = 0; i < n; i++)
        poly->term[i].coefficient /= (int64_t)common;
    if (n > 0 && poly->term[n - 1].coefficient == 0)
        poly->n--;
}

mpl_status mpl_expr_floor_div(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr e, int64_t positive,
                              mpl_expr *out)
{
    mpl_status st = MPL_OK;
    mpl_poly given = mpl_poly_of(exprs, e), p = {0, given.n, NULL}, whole = {0};
    int64_t low, high, c = positive;
    mpl_expr rest;

    if (positive <= 0)
        return MPL_REFUSE(ctx, "a divisor of sizes is %" PRId64 ", not above 0", positive);
    MPL_TRY(mpl_new(ctx, p.term, p.cap));
    mpl_poly_put(&p, 1, &given);
    for (uint32_t i; (i = lone_quotient(exprs, &p, c)) != MPL_NONE;)
        MPL_TRY(join_floor(ctx, exprs, &p, &c, i));
    whole.cap = p.n + 1;
    MPL_TRY(mpl_new(ctx, whole.term, whole.cap));
    take_whole(&p, &c, &whole);
    MPL_TRY(mpl_expr_of(ctx, exprs, &p, &rest));
    if (mpl_expr_bounds(exprs, rest, NULL, &low, &high) &&
        mpl_floor_quotient(low, c) == mpl_floor_quotient(high, c)) {
        whole.term[whole.n++] = mpl_const_term(mpl_floor_quotient(low, c));
        MPL_TRY(mpl_expr_of(ctx, exprs, &whole, out));
    } else if (lone_quotient(exprs, &p, c) != MPL_NONE) { /* its factor is 1 only now */
        mpl_expr outside;

        MPL_TRY(mpl_expr_of(ctx, exprs, &whole, &outside));
        MPL_TRY(mpl_expr_floor_div(ctx, exprs, rest, c, &rest));
        MPL_TRY(mpl_expr_add(ctx, exprs, outside, rest, out));
    } else {
        MPL_TRY(with_atom(ctx, exprs, 1, (mpl_atom){MPL_ATOM_FLOOR, rest, c}, &whole, out));
    }
out:
    mpl_free_each(ctx, p.term, whole.term);
    return st;
}

mpl_status mpl_expr_ceil_div(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr e, int64_t positive,
                             mpl_expr *out)
{
    mpl_expr more;

    MPL_PASS(mpl_expr_const(ctx, exprs, positive - 1, &more));
    MPL_PASS(mpl_expr_add(ctx, exprs, e, more, &more));
    return mpl_expr_floor_div(ctx, exprs, more, positive, out);
}

mpl_status mpl_expr_align_up(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr e, int64_t align,
                             mpl_expr *out)
{
    mpl_expr unit, count;

    MPL_PASS(mpl_expr_ceil_div(ctx, exprs, e, align, &count));
    MPL_PASS(mpl_expr_const(ctx, exprs, align, &unit));
    return mpl_expr_mul(ctx, exprs, count, unit, out);
}

/* poly becomes poly - t * by. */
static mpl_status take_multiple(mpl_ctx *ctx, mpl_poly *poly, mpl_term t, const mpl_poly *by)
{
    mpl_status st = MPL_OK;
    mpl_poly less = {0, poly->n + by->n, NULL}, one = {1, 1, &t};

    t.coefficient = -t.coefficient;
    MPL_TRY(mpl_new(ctx, less.term, less.cap));
    if (!mpl_poly_put(&less, 1, poly) || !mpl_poly_put_product(&less, &one, by) ||
        !mpl_poly_tidy(&less))
        MPL_FAIL(ctx, MPL_EINPUT, MPL_EXPR_TOO_LARGE);
    mpl_free(ctx, poly->term);
    *poly = less, less.term = NULL;
out:
    mpl_free(ctx, less.term);
    return st;
}

mpl_status mpl_expr_exact_div(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr e, mpl_expr by, bool *exact,
                              mpl_expr *out)
{
    mpl_status st = MPL_OK;
    mpl_poly given = mpl_poly_of(exprs, e), divisor = mpl_poly_of(exprs, by),
             p = {0, given.n, NULL}, quotient = {0, 256, NULL};

    if (divisor.n == 0)
        return MPL_REFUSE(ctx, "a size is divided by 0");
    MPL_TRY(mpl_new(ctx, p.term, p.cap));
    MPL_TRY(mpl_new(ctx, quotient.term, quotient.cap));
    mpl_poly_put(&p, 1, &given);
    while (p.n > 0) { /* long division by the first, highest term */
        mpl_term t;

        if (quotient.n == quotient.cap || !mpl_term_without(&p.term[0], &divisor.term[0], &t) ||
            t.coefficient % divisor.term[0].coefficient != 0)
            break;
        t.coefficient /= divisor.term[0].coefficient;
        quotient.term[quotient.n++] = t;
        MPL_TRY(take_multiple(ctx, &p, t, &divisor));
    }
    *exact = p.n == 0;
    if (*exact)
        MPL_TRY(mpl_expr_of(ctx, exprs, &quotient, out));
out:
    mpl_free_each(ctx, p.term, quotient.term);
    return st;
}

/* ---- maxima: max(a, b) = b + max(a - b, 0), min(a, b) = a - max(a - b, 0) ---- */

/* scale times max(e, 0), plus `base`. A common factor is taken out, and max(-e, 0) is max(e, 0) -
 * e, so that of e and -e only the one whose first coefficient is positive has an atom. */
static mpl_status positive_part(mpl_ctx *ctx, mpl_exprs *exprs, int64_t scale, mpl_expr e,
                                mpl_expr base, mpl_expr *out)
{
    mpl_status st = MPL_OK;
    mpl_poly given = mpl_poly_of(exprs, e), p = {0, given.n, NULL}, whole;
    bool turned = given.n > 0 && given.term[0].coefficient < 0;
    uint64_t common = 0;
    mpl_expr rest;

    if (mpl_expr_at_most(exprs, e, 0, NULL))
        return sum(ctx, exprs, base, 1, 0, out);
    if (mpl_expr_at_most(exprs, 0, e, NULL))
        return sum(ctx, exprs, base, scale, e, out);
    for (uint32_t i = 0; i < given.n; i++) {
        if (given.term[i].coefficient == INT64_MIN)
            return MPL_REFUSE(ctx, MPL_EXPR_TOO_LARGE);
        common = mpl_divisor(common, (uint64_t)llabs(given.term[i].coefficient));
    }
    MPL_TRY(mpl_new(ctx, p.term, p.cap));
    for (mpl_poly_put(&p, turned ? -1 : 1, &given); p.n > 0 && given.n > 0; given.n--)
        p.term[given.n - 1].coefficient /= (int64_t)common;
    MPL_TRY(mpl_expr_of(ctx, exprs, &p, &rest));
    if (turned)
        MPL_TRY(sum(ctx, exprs, base, scale, e, &base));
    whole = mpl_poly_of(exprs, base);
    MPL_TRY(with_atom(ctx, exprs, scale * (int64_t)common, (mpl_atom){MPL_ATOM_POSITIVE, rest, 1},
                      &whole, out));
out:
    mpl_free(ctx, p.term);
    return st;
}

mpl_status mpl_expr_max(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr a, mpl_expr b, mpl_expr *out)
{
    mpl_expr more;

    MPL_PASS(mpl_expr_sub(ctx, exprs, a, b, &more));
    return positive_part(ctx, exprs, 1, more, b, out);
}

mpl_status mpl_expr_min(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr a, mpl_expr b, mpl_expr *out)
{
    mpl_expr more;

    MPL_PASS(mpl_expr_sub(ctx, exprs, a, b, &more));
    return positive_part(ctx, exprs, -1, more, a, out);
}
