/* poly.c -- polynomials over counts, quotients and maxima, each stored once. See expr_priv.h. */
#include "graphs/symbols/expr_priv.h"

#include <stdlib.h>

int64_t mpl_floor_quotient(int64_t a, int64_t positive)
{
    return a / positive - (a % positive < 0 ? 1 : 0);
}

mpl_poly mpl_poly_of(const mpl_exprs *x, mpl_expr e)
{
    return (mpl_poly){(uint32_t)(x->begin[e + 1] - x->begin[e]), 0, x->term + x->begin[e]};
}

static int by_atoms(const void *left, const void *right)
{
    const mpl_term *a = left, *b = right;

    for (uint32_t i = 0; i < MPL_EXPR_DEGREE; i++)
        if (a->atom[i] != b->atom[i])
            return a->atom[i] < b->atom[i] ? -1 : 1;
    return 0;
}

bool mpl_poly_tidy(mpl_poly *p)
{
    uint32_t n = 0;

    if (p->n > 1)
        qsort(p->term, p->n, sizeof *p->term, by_atoms);
    for (uint32_t i = 0; i < p->n;) {
        mpl_wide sum = 0;
        uint32_t from = i;

        while (i < p->n && by_atoms(&p->term[from], &p->term[i]) == 0)
            sum += p->term[i++].coefficient;
        if (sum < INT64_MIN || sum > INT64_MAX)
            return false;
        if (sum != 0) {
            p->term[n] = p->term[from];
            p->term[n++].coefficient = (int64_t)sum;
        }
    }
    p->n = n;
    return true;
}

uint32_t mpl_term_degree(const mpl_term *t)
{
    uint32_t n = 0;

    while (n < MPL_EXPR_DEGREE && t->atom[n] != MPL_NONE)
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

bool mpl_term_without(const mpl_term *t, const mpl_term *by, mpl_term *out)
{
    uint32_t n = mpl_term_degree(t), m = mpl_term_degree(by), j = 0, k = 0;
    mpl_term rest = mpl_const_term(t->coefficient);

    for (uint32_t i = 0; i < n; i++)
        if (j < m && t->atom[i] == by->atom[j])
            j++;
        else
            rest.atom[k++] = t->atom[i];
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
    mpl_exprs *x = NULL;
    mpl_poly zero = {0};
    mpl_expr id;

    MPL_TRY(mpl_new(ctx, x, 1));
    x->n_slots = 64;
    MPL_TRY(mpl_new(ctx, x->slot, x->n_slots));
    memset(x->slot, 0xff, x->n_slots * sizeof *x->slot);
    MPL_TRY(mpl_reserve(ctx, x->begin, x->cap_begin, 2));
    MPL_TRY(mpl_expr_of(ctx, x, &zero, &id));
    *out = x, x = NULL;
out:
    mpl_exprs_free(ctx, x);
    return st;
}

void mpl_exprs_free(mpl_ctx *ctx, mpl_exprs *x)
{
    if (x == NULL)
        return;
    for (size_t i = 0; i < x->n_symbols; i++)
        mpl_free(ctx, x->symbol[i].name);
    mpl_free_each(ctx, x->term, x->begin, x->slot, x->atom, x->symbol, x->relation, x);
}

static size_t slot_of(const mpl_exprs *x, const mpl_poly *p)
{
    size_t at = mpl_table_hash(MPL_HASH_SEED, p->term, p->n * sizeof *p->term) % x->n_slots;

    for (; x->slot[at] != MPL_NONE; at = (at + 1) % x->n_slots) {
        mpl_poly q = mpl_poly_of(x, x->slot[at]);

        if (q.n == p->n && (p->n == 0 || memcmp(q.term, p->term, p->n * sizeof *p->term) == 0))
            break;
    }
    return at;
}

static mpl_status widen(mpl_ctx *ctx, mpl_exprs *x)
{
    uint32_t *slot = NULL;

    if (2 * (x->n + 1) <= x->n_slots)
        return MPL_OK;
    MPL_PASS(mpl_new(ctx, slot, 2 * x->n_slots));
    mpl_free(ctx, x->slot);
    x->slot = slot, x->n_slots *= 2;
    memset(slot, 0xff, x->n_slots * sizeof *slot);
    for (mpl_expr e = 0; e < x->n; e++) {
        mpl_poly p = mpl_poly_of(x, e);

        slot[slot_of(x, &p)] = e;
    }
    return MPL_OK;
}

mpl_status mpl_expr_of(mpl_ctx *ctx, mpl_exprs *x, mpl_poly *p, mpl_expr *out)
{
    size_t at;

    if (!mpl_poly_tidy(p))
        return MPL_REFUSE(ctx, MPL_EXPR_TOO_LARGE);
    MPL_PASS(widen(ctx, x));
    at = slot_of(x, p);
    if (x->slot[at] == MPL_NONE) {
        if (x->n >= MPL_NONE - 1)
            return MPL_ERROR(ctx, MPL_ELIMIT, "more than 2^32 expressions");
        MPL_PASS(mpl_reserve(ctx, x->begin, x->cap_begin, x->n + 2));
        MPL_PASS(mpl_reserve(ctx, x->term, x->cap_terms, x->n_terms + p->n));
        if (p->n > 0)
            memcpy(x->term + x->n_terms, p->term, p->n * sizeof *p->term);
        x->n_terms += p->n;
        x->begin[x->n + 1] = x->n_terms;
        x->slot[at] = (uint32_t)x->n++;
    }
    *out = x->slot[at];
    return MPL_OK;
}
