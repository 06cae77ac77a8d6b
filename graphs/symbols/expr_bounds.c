/* expr_bounds.c -- symbols, points and boxes; values and intervals of expressions. See expr.h. */
#include "graphs/core/text.h"
#include "graphs/symbols/expr_bounds_priv.h"

#include <ctype.h>

/* ---- symbols and relations ---- */

static bool is_name(const char *text)
{
    if (!isalpha((unsigned char)*text) && *text != '_')
        return false;
    while (isalnum((unsigned char)*text) || *text == '_' || *text == '.')
        text++;
    return *text == '\0';
}

/* A range as rounding down to its steps leaves it. */
static mpl_status check_symbol(mpl_ctx *ctx, const mpl_exprs *exprs, const mpl_symbol *symbol)
{
    if (!is_name(symbol->name) || strcmp(symbol->name, "floor") == 0 ||
        strcmp(symbol->name, "ceil") == 0 || strcmp(symbol->name, "min") == 0 ||
        strcmp(symbol->name, "max") == 0)
        return MPL_REFUSE(ctx, "'%s' names no dimension: letters, digits, '_' and '.' do",
                          mpl_shown(symbol->name));
    if (mpl_exprs_find(exprs, symbol->name) != MPL_NONE)
        return MPL_REFUSE(ctx, "the dimension '%s' is given twice", symbol->name);
    if (exprs->n_symbols == MPL_MAX_SYMBOLS)
        return MPL_REFUSE(ctx, "more than %d dimensions", MPL_MAX_SYMBOLS);
    if (symbol->first < 1 || symbol->last < symbol->first || symbol->step < 1 ||
        symbol->last > INT32_MAX)
        return MPL_REFUSE(ctx,
                          "%s=%" PRId64 "..%" PRId64 ":%" PRId64
                          ": a range goes from 1 or more up to at most 2^31 - 1",
                          symbol->name, symbol->first, symbol->last, symbol->step);
    return MPL_OK;
}

mpl_status mpl_expr_symbol(mpl_ctx *ctx, mpl_exprs *exprs, const char *name, int64_t first,
                           int64_t last, int64_t step, mpl_expr *out)
{
    mpl_status st = MPL_OK;
    mpl_symbol s = {NULL, first, last, step};

    MPL_TRY(mpl_copy_text(ctx, s.name, name));
    MPL_TRY(check_symbol(ctx, exprs, &s));
    s.last -= (last - first) % step;
    MPL_TRY(mpl_reserve(ctx, exprs->symbol, exprs->cap_symbols, exprs->n_symbols + 1));
    MPL_TRY(mpl_reserve(ctx, exprs->atom, exprs->cap_atoms, exprs->n_atoms + 1));
    exprs->atom[exprs->n_atoms++] = (mpl_atom){MPL_ATOM_COUNT, (uint32_t)exprs->n_symbols, 1};
    exprs->symbol[exprs->n_symbols++] = s;
    s.name = NULL;
    MPL_TRY(mpl_expr_of_symbol(ctx, exprs, (uint32_t)exprs->n_symbols - 1, out));
out:
    mpl_free(ctx, s.name);
    return st;
}

mpl_status mpl_expr_of_symbol(mpl_ctx *ctx, mpl_exprs *exprs, uint32_t i, mpl_expr *out)
{
    mpl_term term[2] = {mpl_const_term(exprs->symbol[i].step),
                        mpl_const_term(exprs->symbol[i].first)};
    mpl_poly p = {2, 2, term};
    uint32_t id = 0;

    while (exprs->atom[id].kind != MPL_ATOM_COUNT || exprs->atom[id].of != i)
        id++;
    term[0].atom[0] = id;
    return mpl_expr_of(ctx, exprs, &p, out);
}

uint32_t mpl_exprs_n_symbols(const mpl_exprs *exprs)
{
    return (uint32_t)exprs->n_symbols;
}

const mpl_symbol *mpl_exprs_symbol(const mpl_exprs *exprs, uint32_t i)
{
    return &exprs->symbol[i];
}

uint32_t mpl_exprs_find(const mpl_exprs *exprs, const char *name)
{
    for (uint32_t i = 0; i < exprs->n_symbols; i++)
        if (strcmp(exprs->symbol[i].name, name) == 0)
            return i;
    return MPL_NONE;
}

mpl_status mpl_exprs_relation(mpl_ctx *ctx, mpl_exprs *exprs, mpl_expr at_most_zero)
{
    MPL_PASS(mpl_reserve(ctx, exprs->relation, exprs->cap_relations, exprs->n_relations + 1));
    exprs->relation[exprs->n_relations++] = at_most_zero;
    return MPL_OK;
}

uint32_t mpl_exprs_n_relations(const mpl_exprs *exprs)
{
    return (uint32_t)exprs->n_relations;
}

mpl_expr mpl_exprs_relation_at(const mpl_exprs *exprs, uint32_t i)
{
    return exprs->relation[i];
}

/* ---- boxes and points ---- */

static void whole_range(const mpl_exprs *exprs, int64_t *low, int64_t *high)
{
    for (size_t i = 0; i < exprs->n_symbols; i++) {
        low[i] = 0;
        high[i] = (exprs->symbol[i].last - exprs->symbol[i].first) / exprs->symbol[i].step;
    }
}

mpl_status mpl_box_new(mpl_ctx *ctx, const mpl_exprs *exprs, mpl_box *out)
{
    mpl_box box = {(uint32_t)exprs->n_symbols, NULL, NULL};

    if (mpl_new_each(ctx, exprs->n_symbols, box.low, box.high) != MPL_OK) {
        mpl_box_free(ctx, &box);
        return MPL_EMEM;
    }
    whole_range(exprs, box.low, box.high);
    *out = box;
    return MPL_OK;
}

void mpl_box_free(mpl_ctx *ctx, mpl_box *box)
{
    mpl_free_each(ctx, box->low, box->high);
    *box = (mpl_box){0};
}

mpl_box mpl_box_copy(const mpl_exprs *exprs, const mpl_box *from, mpl_room *room)
{
    mpl_box box = {(uint32_t)exprs->n_symbols, room->low, room->high};

    if (from == NULL) {
        whole_range(exprs, room->low, room->high);
        return box;
    }
    memcpy(room->low, from->low, box.n * sizeof *room->low);
    memcpy(room->high, from->high, box.n * sizeof *room->high);
    return box;
}

bool mpl_point_allowed(const mpl_exprs *exprs, const int64_t *value)
{
    for (size_t i = 0; i < exprs->n_symbols; i++) {
        const mpl_symbol *symbol = &exprs->symbol[i];

        if (value[i] < symbol->first || value[i] > symbol->last ||
            (value[i] - symbol->first) % symbol->step != 0)
            return false;
    }
    for (size_t i = 0; i < exprs->n_relations; i++) {
        int64_t at;

        if (!mpl_expr_eval(exprs, exprs->relation[i], value, &at) || at > 0)
            return false;
    }
    return true;
}

/* ---- values ---- */

static bool atom_value(const mpl_exprs *exprs, uint32_t id, const int64_t *value, int64_t *out)
{
    const mpl_atom *atom = &exprs->atom[id];
    int64_t inner;

    if (atom->kind == MPL_ATOM_COUNT) {
        const mpl_symbol *symbol = &exprs->symbol[atom->of];

        if (__builtin_sub_overflow(value[atom->of], symbol->first, &inner) ||
            inner % symbol->step != 0)
            return false;
        *out = inner / symbol->step;
        return true;
    }
    if (!mpl_expr_eval(exprs, atom->of, value, &inner))
        return false;
    *out = atom->kind == MPL_ATOM_FLOOR ? mpl_floor_quotient(inner, atom->by)
           : inner > 0                  ? inner
                                        : 0;
    return true;
}

bool mpl_expr_eval(const mpl_exprs *exprs, mpl_expr e, const int64_t *value, int64_t *out)
{
    mpl_poly p = mpl_poly_of(exprs, e);
    mpl_wide sum = 0;

    for (uint32_t i = 0; i < p.n; i++) {
        mpl_wide product = p.term[i].coefficient;

        for (uint32_t j = 0; j < MPL_EXPR_DEGREE && p.term[i].atom[j] != MPL_NONE; j++) {
            int64_t factor;

            if (!atom_value(exprs, p.term[i].atom[j], value, &factor) ||
                __builtin_mul_overflow(product, factor, &product))
                return false;
        }
        if (__builtin_add_overflow(sum, product, &sum))
            return false;
    }
    if (sum < INT64_MIN || sum > INT64_MAX)
        return false;
    *out = (int64_t)sum;
    return true;
}

/* ---- intervals ---- */

bool mpl_span_of_atom(const mpl_exprs *exprs, uint32_t id, const mpl_box *box, mpl_span *out)
{
    const mpl_atom *atom = &exprs->atom[id];
    mpl_poly inner;

    if (atom->kind == MPL_ATOM_COUNT) {
        *out = (mpl_span){box->low[atom->of], box->high[atom->of]};
        return true;
    }
    inner = mpl_poly_of(exprs, atom->of);
    if (!mpl_poly_span(exprs, &inner, box, out))
        return false;
    if (atom->kind == MPL_ATOM_FLOOR) {
        out->low = out->low / atom->by - (out->low % atom->by < 0 ? 1 : 0);
        out->high = out->high / atom->by - (out->high % atom->by < 0 ? 1 : 0);
    } else {
        out->low = out->low > 0 ? out->low : 0;
        out->high = out->high > 0 ? out->high : 0;
    }
    return true;
}

static bool times(mpl_span *span, mpl_span b)
{
    mpl_wide corner[4];

    if (__builtin_mul_overflow(span->low, b.low, &corner[0]) ||
        __builtin_mul_overflow(span->low, b.high, &corner[1]) ||
        __builtin_mul_overflow(span->high, b.low, &corner[2]) ||
        __builtin_mul_overflow(span->high, b.high, &corner[3]))
        return false;
    span->low = span->high = corner[0];
    for (uint32_t i = 1; i < 4; i++) {
        span->low = corner[i] < span->low ? corner[i] : span->low;
        span->high = corner[i] > span->high ? corner[i] : span->high;
    }
    return true;
}

bool mpl_span_of_term(const mpl_exprs *exprs, const mpl_term *term, const mpl_box *box,
                      mpl_span *out)
{
    mpl_span product = {term->coefficient, term->coefficient};

    for (uint32_t j = 0; j < MPL_EXPR_DEGREE && term->atom[j] != MPL_NONE; j++) {
        mpl_span factor;

        if (!mpl_span_of_atom(exprs, term->atom[j], box, &factor) || !times(&product, factor))
            return false;
    }
    *out = product;
    return true;
}

bool mpl_poly_plain_span(const mpl_exprs *exprs, const mpl_poly *poly, const mpl_box *box,
                         mpl_span *out)
{
    mpl_span sum = {0, 0};

    for (uint32_t i = 0; i < poly->n; i++) {
        mpl_span term;

        if (!mpl_span_of_term(exprs, &poly->term[i], box, &term) ||
            __builtin_add_overflow(sum.low, term.low, &sum.low) ||
            __builtin_add_overflow(sum.high, term.high, &sum.high))
            return false;
    }
    *out = sum;
    return true;
}

/* How a thing moves as a symbol's count grows: what both agree on. */
enum { FLAT = 0, RISES = 1, FALLS = 2, UNKNOWN = 3 }; /* as bits: both at once is unknown */

static int way_of_poly(const mpl_exprs *exprs, const mpl_poly *poly, const mpl_box *box,
                       uint32_t symbol);

static int way_of_atom(const mpl_exprs *exprs, uint32_t id, const mpl_box *box, uint32_t symbol)
{
    const mpl_atom *atom = &exprs->atom[id];
    mpl_poly inner;

    if (atom->kind == MPL_ATOM_COUNT)
        return atom->of == symbol ? RISES : FLAT;
    inner = mpl_poly_of(exprs, atom->of);
    return way_of_poly(exprs, &inner, box, symbol); /* quotients and maxima rise in what they hold
                                                     */
}

/* A product moves as its factors do where they agree: no atom is negative. */
static int way_of_term(const mpl_exprs *exprs, const mpl_term *term, const mpl_box *box,
                       uint32_t symbol)
{
    uint32_t n = mpl_term_degree(term);
    int way = FLAT;

    for (uint32_t j = 0; j < n; j++)
        way |= way_of_atom(exprs, term->atom[j], box, symbol);
    if (term->coefficient < 0 && (way == RISES || way == FALLS))
        way = RISES + FALLS - way;
    return way;
}

/* The sign of the partial derivative of a polynomial in counts alone. */
static int way_of_slope(const mpl_exprs *exprs, const mpl_poly *poly, const mpl_box *box,
                        uint32_t symbol)
{
    mpl_span sum = {0, 0};

    for (uint32_t i = 0; i < poly->n; i++) {
        mpl_term t = mpl_const_term(0);
        uint32_t power = 0, n = 0;
        mpl_span s;

        for (uint32_t j = 0; j < MPL_EXPR_DEGREE && poly->term[i].atom[j] != MPL_NONE; j++) {
            const mpl_atom *atom = &exprs->atom[poly->term[i].atom[j]];

            if (atom->kind != MPL_ATOM_COUNT)
                return UNKNOWN;
            if (atom->of != symbol || power++ > 0)
                t.atom[n++] = poly->term[i].atom[j];
        }
        if (power == 0)
            continue;
        t.coefficient = poly->term[i].coefficient;
        if (!mpl_span_of_term(exprs, &t, box, &s) || !times(&s, (mpl_span){power, power}) ||
            __builtin_add_overflow(sum.low, s.low, &sum.low) ||
            __builtin_add_overflow(sum.high, s.high, &sum.high))
            return UNKNOWN;
    }
    return sum.low >= 0 ? RISES : sum.high <= 0 ? FALLS : UNKNOWN;
}

static int way_of_poly(const mpl_exprs *exprs, const mpl_poly *poly, const mpl_box *box,
                       uint32_t symbol)
{
    int way = FLAT;

    for (uint32_t i = 0; i < poly->n; i++)
        way |= way_of_term(exprs, &poly->term[i], box, symbol);
    return way == UNKNOWN ? way_of_slope(exprs, poly, box, symbol) : way;
}

bool mpl_poly_span(const mpl_exprs *exprs, const mpl_poly *poly, const mpl_box *box, mpl_span *out)
{
    mpl_room room[2];
    mpl_box least, most;
    mpl_span a, b;

    if (poly->n < 2)
        return mpl_poly_plain_span(exprs, poly, box, out);
    least = mpl_box_copy(exprs, box, &room[0]), most = mpl_box_copy(exprs, box, &room[1]);
    for (uint32_t i = 0; i < box->n; i++) {
        int way = box->low[i] == box->high[i] ? FLAT : way_of_poly(exprs, poly, box, i);

        if (way == RISES)
            least.high[i] = least.low[i], most.low[i] = most.high[i];
        else if (way == FALLS)
            least.low[i] = least.high[i], most.high[i] = most.low[i];
    }
    if (!mpl_poly_plain_span(exprs, poly, &least, &a) ||
        !mpl_poly_plain_span(exprs, poly, &most, &b))
        return false;
    *out = (mpl_span){a.low, b.high};
    return true;
}

bool mpl_expr_bounds(const mpl_exprs *exprs, mpl_expr e, const mpl_box *box, int64_t *low,
                     int64_t *high)
{
    mpl_room room;
    mpl_box whole = mpl_box_copy(exprs, box, &room);
    mpl_poly p = mpl_poly_of(exprs, e);
    mpl_span s;

    if (!mpl_poly_span(exprs, &p, &whole, &s) || s.low < INT64_MIN || s.high > INT64_MAX)
        return false;
    *low = (int64_t)s.low, *high = (int64_t)s.high;
    return true;
}
