/* poly.c -- polynomials over counts, quotients and maxima, each stored once. See expr_priv.h. */
#include "graphs/symbols/expr_priv.h"

#include <stdlib.h>

int64_t mpl_floor_quotient(int64_t a, int64_t positive)
{
    return a / positive - (a % positive < 0 ? 1 : 0);
}

mpl_poly mpl_poly_of(const mpl_exprs *exprs, mpl_expr e)
{
    return (mpl_poly){(uint32_t)(exprs->begin[e + 1] - exprs->begin[e]), 0,
                      exprs->term + exprs->begin[e]};
}

static int by_atoms(const void *left, const void *right)
{
    const mpl_term *term = left, *b = right;

    for (uint32_t i = 0; i < MPL_EXPR_DEGREE; i++)
        if (term->atom[i] != b->atom[i])
            return term->atom[i] < b->atom[i] ? -1 : 1;
    return 0;
}

bool mpl_poly_tidy(mpl_poly *poly)
{
    uint32_t n = 0;

    if (poly->n > 1)
        qsort(poly->term, poly->n, sizeof *poly->term, by_atoms);
    for (uint32_t i = 0; i < poly->n;) {
        mpl_wide sum = 0;
        uint32_t from = i;

        while (i < poly->n && by_atoms(&poly->term[from], &poly->term[i]) == 0)
            sum += poly->term[i++].coefficient;
        if (sum < INT64_MIN || sum > INT64_MAX)
            return false;
        if (sum != 0) {
            poly->term[n] = poly->term[from];
            poly->term[n++].coefficient = (int64_t)sum;
        }
    }
    poly->n = n;
    return true;
}

uint32_t mpl_term_degree(const mpl_term *term)
{
    uint32_t n = 0;

    while (n < MPL_EXPR_DEGREE && term->atom[n] != MPL_NONE)
        n++;
    return n;
}

/* a * b of two terms; false: overflow, or too many factors. */
static bool multiply_terms(const mpl_term *a, const mpl_term *b, mpl_term *out)
{
    uint32_t n = mpl_term_degree(a), m = mpl_term_degree(b), i = 0, j = 0;
    mpl_term t = mpl_const_term(0);

    if (n + m > MPL_EXPR_DEGREE ||
        __builtin_mul_overflow(a->coefficient, b->coefficient, &t.coefficient))
        return false;
    while (i + j < n + m)
        if (j == m || (i < n && a->atom[i] <= b->atom[j])) {
            t.atom[i + j] = a->atom[i];
            i++;
        } else {
            t.atom[i + j] = b->atom[j];
            j++;
        }
    *out = t;
    return true;
}

bool mpl_term_without(const mpl_term *term, const mpl_term *by, mpl_term *out)
{
    uint32_t n = mpl_term_degree(term), m = mpl_term_degree(by), j = 0, k = 0;
    mpl_term rest = mpl_const_term(term->coefficient);

    for (uint32_t i = 0; i < n; i++)
        if (j < m && term->atom[i] == by->atom[j])
            j++;
        else
            rest.atom[k++] = term->atom[i];
    *out = rest;
    return j == m;
}

bool mpl_poly_put(mpl_poly *p, int64_t scale, const mpl_poly *a)
{
    for (uint32_t i = 0; i < a->n; i++) {
        mpl_term t = a->term[i];

        if (p->n == p->cap || __builtin_mul_overflow(t.coefficient, scale, &t.coefficient))
            return false;
        p->term[p->n++] = t;
    }
    return true;
}

bool mpl_poly_put_product(mpl_poly *p, const mpl_poly *a, const mpl_poly *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t j = 0; j < b->n; j++)
            if (p->n == p->cap || !multiply_terms(&a->term[i], &b->term[j], &p->term[p->n++]))
                return false;
    return true;
}

/* ---- the store ---- */

mpl_status mpl_exprs_new(mpl_ctx *ctx, mpl_exprs **out)
{
    mpl_status st = MPL_OK;
    mpl_exprs *exprs = NULL;
    mpl_poly zero = {0};
    mpl_expr id;

    MPL_TRY(mpl_new(ctx, exprs, 1));
    exprs->n_slots = 64;
    MPL_TRY(mpl_new(ctx, exprs->slot, exprs->n_slots));
    memset(exprs->slot, 0xff, exprs->n_slots * sizeof *exprs->slot);
    MPL_TRY(mpl_reserve(ctx, exprs->begin, exprs->cap_begin, 2));
    MPL_TRY(mpl_expr_of(ctx, exprs, &zero, &id));
    *out = exprs, exprs = NULL;
out:
    mpl_exprs_free(ctx, exprs);
    return st;
}

void mpl_exprs_free(mpl_ctx *ctx, mpl_exprs *exprs)
{
    if (exprs == NULL)
        return;
    for (size_t i = 0; i < exprs->n_symbols; i++)
        mpl_free(ctx, exprs->symbol[i].name);
    mpl_free_each(ctx, exprs->term, exprs->begin, exprs->slot, exprs->atom, exprs->symbol,
                  exprs->relation, exprs);
}

static size_t slot_of(const mpl_exprs *exprs, const mpl_poly *poly)
{
    size_t at =
        mpl_table_hash(MPL_HASH_SEED, poly->term, poly->n * sizeof *poly->term) % exprs->n_slots;

    for (; exprs->slot[at] != MPL_NONE; at = (at + 1) % exprs->n_slots) {
        mpl_poly q = mpl_poly_of(exprs, exprs->slot[at]);

        if (q.n == poly->n &&
            (poly->n == 0 || memcmp(q.term, poly->term, poly->n * sizeof *poly->term) == 0))
            break;
    }
    return at;
}

static mpl_status widen(mpl_ctx *ctx, mpl_exprs *exprs)
{
    uint32_t *slot = NULL;

    if (2 * (exprs->n + 1) <= exprs->n_slots)
        return MPL_OK;
    MPL_PASS(mpl_new(ctx, slot, 2 * exprs->n_slots));
    mpl_free(ctx, exprs->slot);
    exprs->slot = slot, exprs->n_slots *= 2;
    memset(slot, 0xff, exprs->n_slots * sizeof *slot);
    for (mpl_expr e = 0; e < exprs->n; e++) {
        mpl_poly p = mpl_poly_of(exprs, e);

        slot[slot_of(exprs, &p)] = e;
    }
    return MPL_OK;
}

mpl_status mpl_expr_of(mpl_ctx *ctx, mpl_exprs *exprs, mpl_poly *poly, mpl_expr *out)
{
    size_t at;

    if (!mpl_poly_tidy(poly))
        return MPL_REFUSE(ctx, MPL_EXPR_TOO_LARGE);
    MPL_PASS(widen(ctx, exprs));
    at = slot_of(exprs, poly);
    if (exprs->slot[at] == MPL_NONE) {
        if (exprs->n >= MPL_NONE - 1)
            return MPL_ERROR(ctx, MPL_ELIMIT, "more than 2^32 expressions");
        MPL_PASS(mpl_reserve(ctx, exprs->begin, exprs->cap_begin, exprs->n + 2));
        MPL_PASS(mpl_reserve(ctx, exprs->term, exprs->cap_terms, exprs->n_terms + poly->n));
        if (poly->n > 0)
            memcpy(exprs->term + exprs->n_terms, poly->term, poly->n * sizeof *poly->term);
        exprs->n_terms += poly->n;
        exprs->begin[exprs->n + 1] = exprs->n_terms;
        exprs->slot[at] = (uint32_t)exprs->n++;
    }
    *out = exprs->slot[at];
    return MPL_OK;
}
