/* fit.c -- the expression of a size from its values at several points. See fit.h. */
#include "graphs/symbols/fit.h"

#include "graphs/symbols/expr_priv.h"

#define PRIME ((INT64_C(1) << 61) - 1) /* coefficients are solved for modulo this prime */
enum { MAX_DEGREE = 3, MAX_FACTOR = 4, MAX_DIVISOR = 64 };
#define MOST (INT64_C(1) << 50) /* of a coefficient or a size */

struct mpl_fit {
    mpl_exprs *x;
    uint32_t n; /* points */
    const int64_t *value;
    uint32_t n_monomials;
    mpl_term *monomial; /* [n_monomials] */
    int64_t *column;    /* [n * n_monomials] their values at the points */
    int64_t *row;       /* [n * (n_monomials + 1)] scratch */
    int64_t *known;     /* [n_known * n] values of known sizes */
    mpl_expr *expr;     /* [n_known] */
    size_t n_known, cap_known, cap_expr;
};

/* ---- monomials ---- */

static uint32_t n_monomials(uint32_t n)
{
    return (n + 1) * (n + 2) * (n + 3) / 6;
}

uint32_t mpl_fit_points(uint32_t n_symbols)
{
    return n_monomials(n_symbols) + 2;
}

/* All products of at most three counts. */
static void fill_monomials(mpl_fit *fit)
{
    uint32_t n = 0;

    fit->monomial[n++] = mpl_const_term(1);
    for (uint32_t from = 0, degree = 0; degree < MAX_DEGREE; degree++)
        for (uint32_t end = n; from < end; from++)
            for (uint32_t a = 0; a < fit->x->n_atoms; a++) {
                mpl_term t = fit->monomial[from];

                if (fit->x->atom[a].kind != MPL_ATOM_COUNT ||
                    (degree > 0 && a < t.atom[degree - 1]))
                    continue;
                t.atom[degree] = a;
                fit->monomial[n++] = t;
            }
    fit->n_monomials = n;
}

static int64_t at_point(const mpl_fit *fit, const mpl_term *term, uint32_t point)
{
    const int64_t *value = fit->value + (size_t)point * fit->x->n_symbols;
    int64_t product = 1;

    for (uint32_t j = 0; j < MPL_EXPR_DEGREE && term->atom[j] != MPL_NONE; j++) {
        uint32_t i = fit->x->atom[term->atom[j]].of;
        const mpl_symbol *symbol = &fit->x->symbol[i];
        mpl_wide factor = (value[i] - symbol->first) / symbol->step;

        product = (int64_t)(product * factor % PRIME);
    }
    return product;
}

mpl_status mpl_fit_new(mpl_ctx *ctx, mpl_exprs *exprs, uint32_t n_points, const int64_t *value,
                       mpl_fit **out)
{
    mpl_status st = MPL_OK;
    mpl_fit *fit = NULL;
    size_t m = n_monomials((uint32_t)exprs->n_symbols);

    MPL_TRY(mpl_new(ctx, fit, 1));
    fit->x = exprs, fit->n = n_points, fit->value = value;
    MPL_TRY(mpl_new(ctx, fit->monomial, m));
    MPL_TRY(mpl_new(ctx, fit->column, n_points * m));
    MPL_TRY(mpl_new(ctx, fit->row, n_points * (m + 1)));
    fill_monomials(fit);
    for (uint32_t i = 0; i < n_points; i++)
        for (uint32_t j = 0; j < fit->n_monomials; j++)
            fit->column[i * fit->n_monomials + j] = at_point(fit, &fit->monomial[j], i);
    *out = fit, fit = NULL;
out:
    mpl_fit_free(ctx, fit);
    return st;
}

void mpl_fit_free(mpl_ctx *ctx, mpl_fit *fit)
{
    if (fit != NULL)
        mpl_free_each(ctx, fit->monomial, fit->column, fit->row, fit->known, fit->expr, fit);
}

/* ---- what is known ---- */

static bool has_values(const mpl_fit *fit, mpl_expr e, const int64_t *size)
{
    for (uint32_t i = 0; i < fit->n; i++) {
        int64_t got;

        if (!mpl_expr_eval(fit->x, e, fit->value + (size_t)i * fit->x->n_symbols, &got) ||
            got != size[i])
            return false;
    }
    return true;
}

static mpl_status know(mpl_ctx *ctx, mpl_fit *fit, mpl_expr e, const int64_t *size)
{
    MPL_PASS(mpl_reserve(ctx, fit->expr, fit->cap_expr, fit->n_known + 1));
    MPL_PASS(mpl_reserve(ctx, fit->known, fit->cap_known, (fit->n_known + 1) * fit->n));
    memcpy(fit->known + fit->n_known * fit->n, size, fit->n * sizeof *size);
    fit->expr[fit->n_known++] = e;
    return MPL_OK;
}

static bool is_known(const mpl_fit *fit, const int64_t *size, mpl_expr *out)
{
    for (size_t k = 0; k < fit->n_known; k++)
        if (memcmp(fit->known + k * fit->n, size, fit->n * sizeof *size) == 0) {
            *out = fit->expr[k];
            return true;
        }
    return false;
}

mpl_status mpl_fit_learn(mpl_ctx *ctx, mpl_fit *fit, mpl_expr e)
{
    mpl_status st = MPL_OK;
    int64_t *size = NULL;
    mpl_expr other;

    MPL_TRY(mpl_new(ctx, size, fit->n));
    for (uint32_t i = 0; i < fit->n; i++)
        if (!mpl_expr_eval(fit->x, e, fit->value + (size_t)i * fit->x->n_symbols, &size[i]))
            MPL_FAIL(ctx, MPL_EINPUT, "a size does not fit in 64 bits");
    if (!is_known(fit, size, &other))
        MPL_TRY(know(ctx, fit, e, size));
out:
    mpl_free(ctx, size);
    return st;
}

/* ---- polynomials ---- */

static int64_t times(int64_t a, int64_t b)
{
    return (int64_t)((mpl_wide)a * b % PRIME);
}

static int64_t inverse(int64_t a) /* a^(PRIME - 2) */
{
    int64_t result = 1;

    for (int64_t e = PRIME - 2; e > 0; e >>= 1, a = times(a, a))
        if (e & 1)
            result = times(result, a);
    return result;
}

static int64_t in_range(int64_t a)
{
    return (a % PRIME + PRIME) % PRIME;
}

/* Gauss-Jordan on [column | size]; solved[n_monomials]: the row that decides it, or MPL_NONE. */
static void eliminate(mpl_fit *fit, const int64_t *size, uint32_t *solved)
{
    uint32_t m = fit->n_monomials, done = 0;

    for (uint32_t i = 0; i < fit->n; i++) {
        memcpy(fit->row + i * (m + 1), fit->column + i * m, m * sizeof *fit->row);
        fit->row[i * (m + 1) + m] = in_range(size[i]);
    }
    for (uint32_t j = 0; j < m; j++) {
        uint32_t i = done;
        int64_t scale;

        while (i < fit->n && fit->row[i * (m + 1) + j] == 0)
            i++;
        solved[j] = i < fit->n ? done : MPL_NONE;
        if (i == fit->n)
            continue;
        for (uint32_t k = 0; k <= m; k++) {
            int64_t other = fit->row[i * (m + 1) + k];

            fit->row[i * (m + 1) + k] = fit->row[done * (m + 1) + k];
            fit->row[done * (m + 1) + k] = other;
        }
        scale = inverse(fit->row[done * (m + 1) + j]);
        for (uint32_t k = 0; k <= m; k++)
            fit->row[done * (m + 1) + k] = times(fit->row[done * (m + 1) + k], scale);
        for (i = 0; i < fit->n; i++) {
            int64_t factor = fit->row[i * (m + 1) + j];

            for (uint32_t k = j; i != done && factor != 0 && k <= m; k++)
                fit->row[i * (m + 1) + k] = in_range(fit->row[i * (m + 1) + k] -
                                                     times(factor, fit->row[done * (m + 1) + k]));
        }
        done++;
    }
}

static mpl_status as_polynomial(mpl_ctx *ctx, mpl_fit *fit, const int64_t *size, bool *found,
                                mpl_expr *out)
{
    mpl_status st = MPL_OK;
    uint32_t m = fit->n_monomials, *solved = NULL;
    mpl_poly p = {0, m, NULL};

    *found = false;
    MPL_TRY(mpl_new(ctx, solved, m));
    MPL_TRY(mpl_new(ctx, p.term, m));
    eliminate(fit, size, solved);
    for (uint32_t j = 0; j < m; j++) {
        int64_t c = solved[j] == MPL_NONE ? 0 : fit->row[solved[j] * (m + 1) + m];

        c = c > PRIME / 2 ? c - PRIME : c;
        if (c < -MOST || c > MOST)
            goto out;
        p.term[p.n] = fit->monomial[j];
        p.term[p.n++].coefficient = c;
    }
    MPL_TRY(mpl_expr_of(ctx, fit->x, &p, out));
    *found = has_values(fit, *out, size);
out:
    mpl_free_each(ctx, solved, p.term);
    return st;
}

/* ---- from hints ---- */

/* floor((a * h + c) / s): each point leaves an interval of c, all together must leave one c. */
static mpl_status as_quotient(mpl_ctx *ctx, mpl_fit *fit, const int64_t *size, mpl_expr h,
                              int64_t a, int64_t s, bool *found, mpl_expr *out)
{
    int64_t low = INT64_MIN, high = INT64_MAX, at;
    mpl_expr by;

    for (uint32_t i = 0; i < fit->n; i++) {
        int64_t least;

        if (!mpl_expr_eval(fit->x, h, fit->value + (size_t)i * fit->x->n_symbols, &at) || at > MOST)
            return MPL_OK;
        least = size[i] * s - a * at;
        low = least > low ? least : low;
        high = least + s - 1 < high ? least + s - 1 : high;
    }
    if (low != high)
        return MPL_OK;
    MPL_PASS(mpl_expr_const(ctx, fit->x, a, &by));
    MPL_PASS(mpl_expr_mul(ctx, fit->x, h, by, out));
    MPL_PASS(mpl_expr_const(ctx, fit->x, low, &by));
    MPL_PASS(mpl_expr_add(ctx, fit->x, *out, by, out));
    MPL_PASS(mpl_expr_floor_div(ctx, fit->x, *out, s, out));
    *found = has_values(fit, *out, size);
    return MPL_OK;
}

typedef mpl_status two_sizes(mpl_ctx *ctx, mpl_exprs *x, mpl_expr a, mpl_expr b, mpl_expr *out);
static two_sizes *const two[] = {mpl_expr_add, mpl_expr_mul, mpl_expr_max, mpl_expr_min,
                                 mpl_expr_sub};

/* Tries the combinations of a hint with a second one, or with a constant among the sizes. */
static mpl_status of_pair(mpl_ctx *ctx, mpl_fit *fit, const int64_t *size, mpl_expr a, mpl_expr b,
                          bool *found, mpl_expr *out)
{
    for (size_t k = 0; !*found && k < sizeof two / sizeof *two; k++) {
        mpl_status st = two[k](ctx, fit->x, a, b, out);

        if (st != MPL_OK && st != MPL_EINPUT)
            return st;
        *found = st == MPL_OK && has_values(fit, *out, size);
    }
    return MPL_OK;
}

static mpl_status from_hints(mpl_ctx *ctx, mpl_fit *fit, const int64_t *size, uint32_t n,
                             const mpl_expr *hint, bool *found, mpl_expr *out)
{
    for (uint32_t i = 0; i < n; i++)
        for (int64_t s = 1; s <= MAX_DIVISOR; s++)
            for (int64_t a = 1; a <= MAX_FACTOR; a++) {
                MPL_PASS(as_quotient(ctx, fit, size, hint[i], a, s, found, out));
                if (*found)
                    return MPL_OK;
            }
    for (uint32_t i = 0; i < n && !*found; i++) {
        int64_t least = size[0], most = size[0];
        mpl_expr limit;

        for (uint32_t k = 1; k < fit->n; k++) {
            least = size[k] < least ? size[k] : least;
            most = size[k] > most ? size[k] : most;
        }
        MPL_PASS(mpl_expr_const(ctx, fit->x, least, &limit));
        MPL_PASS(of_pair(ctx, fit, size, hint[i], limit, found, out));
        MPL_PASS(mpl_expr_const(ctx, fit->x, most, &limit));
        if (!*found)
            MPL_PASS(of_pair(ctx, fit, size, hint[i], limit, found, out));
        for (uint32_t j = 0; j < n && !*found; j++)
            MPL_PASS(of_pair(ctx, fit, size, hint[i], hint[j], found, out));
    }
    return MPL_OK;
}

mpl_status mpl_fit_find(mpl_ctx *ctx, mpl_fit *fit, const int64_t *size, uint32_t n_hints,
                        const mpl_expr *hint, bool *found, mpl_expr *out)
{
    *found = true;
    if (is_known(fit, size, out))
        return MPL_OK;
    for (uint32_t i = 0; i < fit->n; i++)
        if (size[i] > MOST)
            return MPL_REFUSE(ctx, "a size of %" PRId64 " is too large", size[i]);
    MPL_PASS(as_polynomial(ctx, fit, size, found, out));
    if (!*found)
        MPL_PASS(from_hints(ctx, fit, size, n_hints, hint, found, out));
    return *found ? know(ctx, fit, *out, size) : MPL_OK;
}
