/* bernstein.c -- control values of expressions on a box. See bernstein.h.
 *
 * Idea     A product of counts becomes the products of its factors' Bernstein coefficients. What
 *          is no polynomial is replaced by one that is nowhere below (above) it: floor(p / c) by
 *          p / c or (p - c + 1) / c, max(p, 0) by p, 0 or a constant.
 * Cost     Points are the product of (degree + 1) over the symbols. */
#include "graphs/symbols/bernstein.h"
#include "graphs/symbols/expr_bounds_priv.h"

enum { MOST_DEGREE = 8, MOST_POINTS = 1024, MOST_DEPTH = 4 };
#define MOST_VALUE (INT64_C(1) << 59) /* of a control value: a few may be added */

struct mpl_controls {
    const mpl_exprs *x;
    uint32_t n, n_points;
    const mpl_expr *e;
    uint32_t degree[MPL_MAX_SYMBOLS], stride[MPL_MAX_SYMBOLS];
    int64_t scale;
    bool used[MPL_MAX_SYMBOLS];
    const mpl_box *box;                                                /* of the call */
    mpl_wide power[MPL_MAX_SYMBOLS][MOST_DEGREE + 1][MOST_DEGREE + 1]; /* [symbol][power][point] */
    /* Products of powers, numbered as points are: row[k * n_points ..] once it is needed. */
    mpl_wide *row;
    uint8_t *row_is; /* [n_points] 0: not made for this box */
    mpl_wide *sum;   /* [MOST_DEPTH * n_points] scratch */
};

typedef struct powers {
    uint8_t of[MPL_MAX_SYMBOLS];
} powers;

/* Adds the counts of a term to `all`; other[] receives its other atoms, returns their number. */
static uint32_t split_term(const mpl_exprs *exprs, const mpl_term *term, powers *all,
                           uint32_t *other)
{
    uint32_t n = 0;

    for (uint32_t j = 0; j < MPL_EXPR_DEGREE && term->atom[j] != MPL_NONE; j++) {
        const mpl_atom *atom = &exprs->atom[term->atom[j]];

        if (atom->kind == MPL_ATOM_COUNT)
            all->of[atom->of]++;
        else
            other[n++] = term->atom[j];
    }
    return n;
}

static void find_used(mpl_controls *controls, mpl_poly p)
{
    for (uint32_t i = 0; i < p.n; i++)
        for (uint32_t j = 0; j < MPL_EXPR_DEGREE && p.term[i].atom[j] != MPL_NONE; j++) {
            const mpl_atom *atom = &controls->x->atom[p.term[i].atom[j]];

            if (atom->kind == MPL_ATOM_COUNT)
                controls->used[atom->of] = true;
            else
                find_used(controls, mpl_poly_of(controls->x, atom->of));
        }
}

/* Raises the degrees to what the polynomial times the counts needs. False: too deep or too high. */
static bool find_degrees(mpl_controls *controls, mpl_poly p, powers rest, uint32_t depth)
{
    if (depth == MOST_DEPTH)
        return false;
    for (uint32_t i = 0; i < p.n; i++) {
        uint32_t other[MPL_EXPR_DEGREE];
        powers all = rest;
        uint32_t n = split_term(controls->x, &p.term[i], &all, other);

        for (uint32_t s = 0; s < controls->x->n_symbols; s++) {
            controls->degree[s] = all.of[s] > controls->degree[s] ? all.of[s] : controls->degree[s];
            if (controls->degree[s] > MOST_DEGREE)
                return false;
        }
        if (n == 1 &&
            !find_degrees(controls, mpl_poly_of(controls->x, controls->x->atom[other[0]].of), all,
                          depth + 1))
            return false;
    }
    return true;
}

static int64_t choose(uint32_t n, uint32_t k)
{
    int64_t result = 1;

    for (uint32_t i = 0; i < k; i++)
        result = result * (n - i) / (i + 1);
    return result;
}

/* The least number that each of choose(degree, k) divides. */
static int64_t common_multiple(uint32_t degree)
{
    uint64_t result = 1;

    for (uint32_t k = 0; k <= degree; k++)
        result =
            result / mpl_divisor(result, (uint64_t)choose(degree, k)) * (uint64_t)choose(degree, k);
    return (int64_t)result;
}

mpl_status mpl_controls_new(mpl_ctx *ctx, const mpl_exprs *exprs, uint32_t n, const mpl_expr *expr,
                            mpl_controls **out)
{
    mpl_status st = MPL_OK;
    mpl_controls *controls = NULL;

    MPL_TRY(mpl_new(ctx, controls, 1));
    controls->x = exprs, controls->n = n, controls->e = expr;
    for (uint32_t i = 0; i < n; i++) {
        find_used(controls, mpl_poly_of(exprs, expr[i]));
        if (!find_degrees(controls, mpl_poly_of(exprs, expr[i]), (powers){{0}}, 0))
            MPL_FAIL(ctx, MPL_ELIMIT, "a size of the problem is of too high a degree");
    }
    controls->n_points = 1, controls->scale = 1;
    for (uint32_t s = 0; s < exprs->n_symbols; s++) {
        controls->stride[s] = controls->n_points;
        controls->n_points *= controls->degree[s] + 1;
        controls->scale *= common_multiple(controls->degree[s]);
        if (controls->n_points > MOST_POINTS)
            MPL_FAIL(ctx, MPL_ELIMIT, "the sizes of the problem depend on too many symbols");
    }
    MPL_TRY(mpl_new(ctx, controls->sum, (size_t)MOST_DEPTH * controls->n_points));
    MPL_TRY(mpl_new(ctx, controls->row, (size_t)controls->n_points * controls->n_points));
    MPL_TRY(mpl_new(ctx, controls->row_is, controls->n_points));
    *out = controls, controls = NULL;
out:
    mpl_controls_free(ctx, controls);
    return st;
}

void mpl_controls_free(mpl_ctx *ctx, mpl_controls *controls)
{
    if (controls != NULL)
        mpl_free_each(ctx, controls->sum, controls->row, controls->row_is, controls);
}

uint32_t mpl_controls_points(const mpl_controls *controls)
{
    return controls->n_points;
}

int64_t mpl_controls_scale(const mpl_controls *controls)
{
    return controls->scale;
}

bool mpl_controls_use(const mpl_controls *controls, uint32_t symbol)
{
    return controls->used[symbol];
}

static mpl_wide to_power(int64_t value, uint32_t n)
{
    mpl_wide result = 1;

    while (n-- > 0)
        result *= value;
    return result;
}

/* The coefficients of count^k for each k up to the degree, times the symbol's part of the scale. */
static bool find_powers(mpl_controls *controls, uint32_t s)
{
    uint32_t d = controls->degree[s];
    int64_t low = controls->box->low[s], high = controls->box->high[s], scale = common_multiple(d);

    if (d > 3 && high >= INT64_C(1) << (96 / d))
        return false;
    for (uint32_t k = 0; k <= d; k++)
        for (uint32_t j = 0; j <= d; j++) {
            mpl_wide sum = 0;

            for (uint32_t i = k + j > d ? k + j - d : 0; i <= j && i <= k; i++)
                sum +=
                    choose(j, i) * choose(d - j, k - i) * to_power(high, i) * to_power(low, k - i);
            controls->power[s][k][j] = sum * (scale / choose(d, k));
        }
    return true;
}

enum { ROW_NARROW = 1, ROW_WIDE, ROW_TOO_LARGE }; /* in 64, in 128 bits, in neither */

/* The coefficients of a product of counts. */
static uint8_t make_row(mpl_controls *controls, uint32_t k, const powers *all)
{
    uint8_t is = ROW_NARROW;

    for (uint32_t j = 0; j < controls->n_points; j++) {
        mpl_wide product = 1;

        for (uint32_t s = 0; s < controls->x->n_symbols; s++)
            if (__builtin_mul_overflow(product,
                                       controls->power[s][all->of[s]][j / controls->stride[s] %
                                                                      (controls->degree[s] + 1)],
                                       &product))
                return ROW_TOO_LARGE;
        controls->row[(size_t)k * controls->n_points + j] = product;
        is = product == (int64_t)product ? is : ROW_WIDE;
    }
    return is;
}

/* Adds factor times the coefficients of a product of counts. */
static bool add_product(mpl_controls *controls, const powers *all, mpl_wide factor, mpl_wide *sum)
{
    uint32_t k = 0;
    const mpl_wide *row;
    bool narrow;

    for (uint32_t s = 0; s < controls->x->n_symbols; s++)
        k += all->of[s] * controls->stride[s];
    if (controls->row_is[k] == 0)
        controls->row_is[k] = make_row(controls, k, all);
    if (controls->row_is[k] == ROW_TOO_LARGE)
        return false;
    narrow = controls->row_is[k] == ROW_NARROW && factor == (int64_t)factor;
    row = controls->row + (size_t)k * controls->n_points;
    for (uint32_t j = 0; j < controls->n_points; j++) {
        mpl_wide product = narrow ? (mpl_wide)(int64_t)factor * (int64_t)row[j] : 0;

        if ((!narrow && __builtin_mul_overflow(factor, row[j], &product)) ||
            __builtin_add_overflow(sum[j], product, &sum[j]))
            return false;
    }
    return true;
}

static bool add_poly(mpl_controls *controls, mpl_poly p, const powers *rest, bool upper,
                     uint32_t depth, mpl_wide *sum);

/* Adds coefficient * floor(inner / by) * counts, bounded by real quotients. */
static bool add_floor(mpl_controls *controls, const mpl_atom *atom, int64_t coefficient,
                      const powers *all, bool upper, uint32_t depth, mpl_wide *sum)
{
    mpl_wide *inner = controls->sum + (size_t)depth * controls->n_points;
    bool above = (coefficient > 0) == upper;

    memset(inner, 0, controls->n_points * sizeof *inner);
    if (!add_poly(controls, mpl_poly_of(controls->x, atom->of), all, above, depth + 1, inner) ||
        (!above && !add_product(controls, all, 1 - atom->by, inner)))
        return false;
    for (uint32_t j = 0; j < controls->n_points; j++) {
        mpl_wide whole, quotient;

        if (__builtin_mul_overflow(inner[j], coefficient, &whole))
            return false;
        quotient = whole / atom->by;
        if (whole % atom->by != 0 && (whole > 0) == upper)
            quotient += upper ? 1 : -1; /* away from what must hold */
        if (__builtin_add_overflow(sum[j], quotient, &sum[j]))
            return false;
    }
    return true;
}

/* Adds a term with one atom that is no count, or several. */
static bool add_bounded(mpl_controls *controls, const mpl_term *term, uint32_t n,
                        const uint32_t *other, const powers *all, bool upper, uint32_t depth,
                        mpl_wide *sum)
{
    const mpl_atom *atom = &controls->x->atom[other[0]];
    mpl_term product = mpl_const_term(term->coefficient);
    mpl_span s;

    if (n == 1 && atom->kind == MPL_ATOM_FLOOR)
        return add_floor(controls, atom, term->coefficient, all, upper, depth, sum);
    if (n == 1) {
        mpl_poly inner = mpl_poly_of(controls->x, atom->of);

        if (!mpl_poly_span(controls->x, &inner, controls->box, &s))
            return false;
        if (s.low >= 0) { /* the maximum is what it holds, of either sign of the coefficient */
            mpl_wide *held = controls->sum + (size_t)depth * controls->n_points;

            memset(held, 0, controls->n_points * sizeof *held);
            if (!add_poly(controls, inner, all, (term->coefficient > 0) == upper, depth + 1, held))
                return false;
            for (uint32_t j = 0; j < controls->n_points; j++)
                if (__builtin_mul_overflow(held[j], term->coefficient, &held[j]) ||
                    __builtin_add_overflow(sum[j], held[j], &sum[j]))
                    return false;
            return true;
        }
    }
    memcpy(product.atom, other, n * sizeof *other);
    return mpl_span_of_term(controls->x, &product, controls->box, &s) &&
           add_product(controls, all, upper ? s.high : s.low, sum);
}

/* Adds upper or lower control values of p times the counts in `rest`. */
static bool add_poly(mpl_controls *controls, mpl_poly p, const powers *rest, bool upper,
                     uint32_t depth, mpl_wide *sum)
{
    for (uint32_t i = 0; i < p.n; i++) {
        uint32_t other[MPL_EXPR_DEGREE];
        powers all = *rest;
        uint32_t n = split_term(controls->x, &p.term[i], &all, other);

        if (n == 0 ? !add_product(controls, &all, p.term[i].coefficient, sum)
                   : !add_bounded(controls, &p.term[i], n, other, &all, upper, depth, sum))
            return false;
    }
    return true;
}

/* Values of a box of one point. */
static bool values_of_point(const mpl_controls *controls, const mpl_box *box, int64_t *low,
                            int64_t *high)
{
    int64_t value[MPL_MAX_SYMBOLS];

    for (uint32_t s = 0; s < box->n; s++)
        value[s] = controls->x->symbol[s].first + box->low[s] * controls->x->symbol[s].step;
    for (uint32_t i = 0; i < controls->n; i++) {
        int64_t one;

        if (!mpl_expr_eval(controls->x, controls->e[i], value, &one) ||
            __builtin_mul_overflow(one, controls->scale, &one) || one < -MOST_VALUE ||
            one > MOST_VALUE)
            return false;
        for (size_t j = (size_t)i * controls->n_points; j < (size_t)(i + 1) * controls->n_points;
             j++)
            low[j] = high[j] = one;
    }
    return true;
}

static bool one_side(mpl_controls *controls, uint32_t i, bool upper, int64_t *out)
{
    mpl_wide *sum = controls->sum;
    powers none = {{0}};

    memset(sum, 0, controls->n_points * sizeof *sum);
    if (!add_poly(controls, mpl_poly_of(controls->x, controls->e[i]), &none, upper, 1, sum))
        return false;
    for (uint32_t j = 0; j < controls->n_points; j++) {
        if (sum[j] < -MOST_VALUE || sum[j] > MOST_VALUE)
            return false;
        out[(size_t)i * controls->n_points + j] = (int64_t)sum[j];
    }
    return true;
}

static bool is_polynomial(const mpl_exprs *exprs, mpl_poly p)
{
    for (uint32_t i = 0; i < p.n; i++)
        for (uint32_t j = 0; j < MPL_EXPR_DEGREE && p.term[i].atom[j] != MPL_NONE; j++)
            if (exprs->atom[p.term[i].atom[j]].kind != MPL_ATOM_COUNT)
                return false;
    return true;
}

bool mpl_controls_of(mpl_controls *controls, const mpl_box *box, int64_t *low, int64_t *high)
{
    bool point = true;

    for (uint32_t s = 0; s < box->n; s++)
        point = point && (!controls->used[s] || box->low[s] == box->high[s]);
    if (point)
        return values_of_point(controls, box, low, high);
    controls->box = box;
    memset(controls->row_is, 0, controls->n_points);
    for (uint32_t s = 0; s < box->n; s++)
        if (!find_powers(controls, s))
            return false;
    for (uint32_t i = 0; i < controls->n; i++) {
        size_t from = (size_t)i * controls->n_points;

        if (!one_side(controls, i, true, high))
            return false;
        if (is_polynomial(controls->x, mpl_poly_of(controls->x, controls->e[i])))
            memcpy(low + from, high + from, controls->n_points * sizeof *low);
        else if (!one_side(controls, i, false, low))
            return false;
    }
    return true;
}

uint64_t mpl_expr_divisor(const mpl_exprs *exprs, mpl_expr e)
{
    mpl_poly p = mpl_poly_of(exprs, e);
    uint64_t result = 0;

    for (uint32_t i = 0; i < p.n; i++) {
        int64_t c = p.term[i].coefficient;

        result = mpl_divisor(result, c < 0 ? -(uint64_t)c : (uint64_t)c);
    }
    return result;
}

/* ---- relations ---- */

/* Whether no point whose count of symbol s is in [low, high] keeps relation e. */
static bool excludes(const mpl_exprs *exprs, mpl_expr e, const mpl_box *box, uint32_t s,
                     int64_t low, int64_t high)
{
    mpl_room room;
    mpl_box part = mpl_box_copy(exprs, box, &room);
    int64_t least, most;

    part.low[s] = low, part.high[s] = high;
    return mpl_expr_bounds(exprs, e, &part, &least, &most) && least > 0;
}

/* Moves one end of the box inwards by halving steps, as far as the relation excludes it. */
static void cut_end(const mpl_exprs *exprs, mpl_expr e, mpl_box *box, uint32_t s, bool top)
{
    int64_t step = 1;

    while (step < box->high[s] - box->low[s])
        step *= 2;
    for (; step > 0; step /= 2) {
        int64_t low = box->low[s], high = box->high[s];

        if (step > high - low)
            continue;
        if (top && excludes(exprs, e, box, s, high - step + 1, high))
            box->high[s] -= step;
        else if (!top && excludes(exprs, e, box, s, low, low + step - 1))
            box->low[s] += step;
    }
}

bool mpl_box_narrow(const mpl_exprs *exprs, mpl_box *box)
{
    for (uint32_t r = 0; r < exprs->n_relations; r++) {
        int64_t least, most;

        if (mpl_expr_bounds(exprs, exprs->relation[r], box, &least, &most) && least > 0)
            return false;
        for (uint32_t s = 0; s < box->n; s++) {
            cut_end(exprs, exprs->relation[r], box, s, true);
            cut_end(exprs, exprs->relation[r], box, s, false);
        }
    }
    return true;
}
