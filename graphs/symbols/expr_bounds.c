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
static mpl_status check_symbol(mpl_ctx *ctx, const mpl_exprs *x, const mpl_symbol *s)
{
    if (!is_name(s->name) || strcmp(s->name, "floor") == 0 || strcmp(s->name, "ceil") == 0 ||
        strcmp(s->name, "min") == 0 || strcmp(s->name, "max") == 0)
        return MPL_REFUSE(ctx, "'%s' names no dimension: letters, digits, '_' and '.' do",
                          mpl_shown(s->name));
    if (mpl_exprs_find(x, s->name) != MPL_NONE)
        return MPL_REFUSE(ctx, "the dimension '%s' is given twice", s->name);
    if (x->n_symbols == MPL_MAX_SYMBOLS)
        return MPL_REFUSE(ctx, "more than %d dimensions", MPL_MAX_SYMBOLS);
    if (s->first < 1 || s->last < s->first || s->step < 1 || s->last > INT32_MAX)
        return MPL_REFUSE(ctx,
                          "%s=%" PRId64 "..%" PRId64 ":%" PRId64
                          ": a range goes from 1 or more up to at most 2^31 - 1",
                          s->name, s->first, s->last, s->step);
    return MPL_OK;
}

mpl_status mpl_expr_symbol(mpl_ctx *ctx, mpl_exprs *x, const char *name, int64_t first,
                           int64_t last, int64_t step, mpl_expr *out)
{
    mpl_status st = MPL_OK;
    mpl_symbol s = {NULL, first, last, step};

    MPL_TRY(mpl_copy_text(ctx, s.name, name));
    MPL_TRY(check_symbol(ctx, x, &s));
    s.last -= (last - first) % step;
    MPL_TRY(mpl_reserve(ctx, x->symbol, x->cap_symbols, x->n_symbols + 1));
    MPL_TRY(mpl_reserve(ctx, x->atom, x->cap_atoms, x->n_atoms + 1));
    x->atom[x->n_atoms++] = (mpl_atom){MPL_ATOM_COUNT, (uint32_t)x->n_symbols, 1};
    x->symbol[x->n_symbols++] = s;
    s.name = NULL;
    MPL_TRY(mpl_expr_of_symbol(ctx, x, (uint32_t)x->n_symbols - 1, out));
out:
    mpl_free(ctx, s.name);
    return st;
}

mpl_status mpl_expr_of_symbol(mpl_ctx *ctx, mpl_exprs *x, uint32_t i, mpl_expr *out)
{
    mpl_term term[2] = {mpl_const_term(x->symbol[i].step), mpl_const_term(x->symbol[i].first)};
    mpl_poly p = {2, 2, term};
    uint32_t id = 0;

    while (x->atom[id].kind != MPL_ATOM_COUNT || x->atom[id].of != i)
        id++;
    term[0].atom[0] = id;
    return mpl_expr_of(ctx, x, &p, out);
}

uint32_t mpl_exprs_n_symbols(const mpl_exprs *x)
{
    return (uint32_t)x->n_symbols;
}

const mpl_symbol *mpl_exprs_symbol(const mpl_exprs *x, uint32_t i)
{
    return &x->symbol[i];
}

uint32_t mpl_exprs_find(const mpl_exprs *x, const char *name)
{
    for (uint32_t i = 0; i < x->n_symbols; i++)
        if (strcmp(x->symbol[i].name, name) == 0)
            return i;
    return MPL_NONE;
}

mpl_status mpl_exprs_relation(mpl_ctx *ctx, mpl_exprs *x, mpl_expr at_most_zero)
{
    MPL_PASS(mpl_reserve(ctx, x->relation, x->cap_relations, x->n_relations + 1));
    x->relation[x->n_relations++] = at_most_zero;
    return MPL_OK;
}

uint32_t mpl_exprs_n_relations(const mpl_exprs *x)
{
    return (uint32_t)x->n_relations;
}

mpl_expr mpl_exprs_relation_at(const mpl_exprs *x, uint32_t i)
{
    return x->relation[i];
}

/* ---- boxes and points ---- */

static void whole_range(const mpl_exprs *x, int64_t *low, int64_t *high)
{
    for (size_t i = 0; i < x->n_symbols; i++) {
        low[i] = 0;
        high[i] = (x->symbol[i].last - x->symbol[i].first) / x->symbol[i].step;
    }
}

mpl_status mpl_box_new(mpl_ctx *ctx, const mpl_exprs *x, mpl_box *out)
{
    mpl_box box = {(uint32_t)x->n_symbols, NULL, NULL};

    if (mpl_new_each(ctx, x->n_symbols, box.low, box.high) != MPL_OK) {
        mpl_box_free(ctx, &box);
        return MPL_EMEM;
    }
    whole_range(x, box.low, box.high);
    *out = box;
    return MPL_OK;
}

void mpl_box_free(mpl_ctx *ctx, mpl_box *box)
{
    mpl_free_each(ctx, box->low, box->high);
    *box = (mpl_box){0};
}

mpl_box mpl_box_copy(const mpl_exprs *x, const mpl_box *from, mpl_room *room)
{
    mpl_box box = {(uint32_t)x->n_symbols, room->low, room->high};

    if (from == NULL) {
        whole_range(x, room->low, room->high);
        return box;
    }
    memcpy(room->low, from->low, box.n * sizeof *room->low);
    memcpy(room->high, from->high, box.n * sizeof *room->high);
    return box;
}

bool mpl_point_allowed(const mpl_exprs *x, const int64_t *value)
{
    for (size_t i = 0; i < x->n_symbols; i++) {
        const mpl_symbol *s = &x->symbol[i];

        if (value[i] < s->first || value[i] > s->last || (value[i] - s->first) % s->step != 0)
            return false;
    }
    for (size_t i = 0; i < x->n_relations; i++) {
        int64_t at;

        if (!mpl_expr_eval(x, x->relation[i], value, &at) || at > 0)
            return false;
    }
    return true;
}

/* ---- values ---- */

static bool atom_value(const mpl_exprs *x, uint32_t id, const int64_t *value, int64_t *out)
{
    const mpl_atom *atom = &x->atom[id];
    int64_t inner;

    if (atom->kind == MPL_ATOM_COUNT) {
        const mpl_symbol *s = &x->symbol[atom->of];

        if (__builtin_sub_overflow(value[atom->of], s->first, &inner) || inner % s->step != 0)
            return false;
        *out = inner / s->step;
        return true;
    }
    if (!mpl_expr_eval(x, atom->of, value, &inner))
        return false;
    *out = atom->kind == MPL_ATOM_FLOOR ? mpl_floor_quotient(inner, atom->by)
           : inner > 0                  ? inner
                                        : 0;
    return true;
}

bool mpl_expr_eval(const mpl_exprs *x, mpl_expr e, const int64_t *value, int64_t *out)
{
    mpl_poly p = mpl_poly_of(x, e);
    mpl_wide sum = 0;

    for (uint32_t i = 0; i < p.n; i++) {
        mpl_wide product = p.term[i].coefficient;

        for (uint32_t j = 0; j < MPL_EXPR_DEGREE && p.term[i].atom[j] != MPL_NONE; j++) {
            int64_t factor;

            if (!atom_value(x, p.term[i].atom[j], value, &factor) ||
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

bool mpl_span_of_atom(const mpl_exprs *x, uint32_t id, const mpl_box *box, mpl_span *out)
{
    const mpl_atom *atom = &x->atom[id];
    mpl_poly inner;

    if (atom->kind == MPL_ATOM_COUNT) {
        *out = (mpl_span){box->low[atom->of], box->high[atom->of]};
        return true;
    }
    inner = mpl_poly_of(x, atom->of);
    if (!mpl_poly_span(x, &inner, box, out))
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

static bool times(mpl_span *a, mpl_span b)
{
    mpl_wide corner[4];

    if (__builtin_mul_overflow(a->low, b.low, &corner[0]) ||
        __builtin_mul_overflow(a->low, b.high, &corner[1]) ||
        __builtin_mul_overflow(a->high, b.low, &corner[2]) ||
        __builtin_mul_overflow(a->high, b.high, &corner[3]))
        return false;
    a->low = a->high = corner[0];
    for (uint32_t i = 1; i < 4; i++) {
        a->low = corner[i] < a->low ? corner[i] : a->low;
        a->high = corner[i] > a->high ? corner[i] : a->high;
    }
    return true;
}

bool mpl_span_of_term(const mpl_exprs *x, const mpl_term *t, const mpl_box *box, mpl_span *out)
{
    mpl_span product = {t->coefficient, t->coefficient};

    for (uint32_t j = 0; j < MPL_EXPR_DEGREE && t->atom[j] != MPL_NONE; j++) {
        mpl_span factor;

        if (!mpl_span_of_atom(x, t->atom[j], box, &factor) || !times(&product, factor))
            return false;
    }
    *out = product;
    return true;
}

bool mpl_poly_plain_span(const mpl_exprs *x, const mpl_poly *p, const mpl_box *box, mpl_span *out)
{
    mpl_span sum = {0, 0};

    for (uint32_t i = 0; i < p->n; i++) {
        mpl_span term;

        if (!mpl_span_of_term(x, &p->term[i], box, &term) ||
            __builtin_add_overflow(sum.low, term.low, &sum.low) ||
            __builtin_add_overflow(sum.high, term.high, &sum.high))
            return false;
    }
    *out = sum;
    return true;
}

/* How a thing moves as a symbol's count grows: what both agree on. */
enum { FLAT = 0, RISES = 1, FALLS = 2, UNKNOWN = 3 }; /* as bits: both at once is unknown */

static int way_of_poly(const mpl_exprs *x, const mpl_poly *p, const mpl_box *box, uint32_t symbol);

static int way_of_atom(const mpl_exprs *x, uint32_t id, const mpl_box *box, uint32_t symbol)
{
    const mpl_atom *atom = &x->atom[id];
    mpl_poly inner;

    if (atom->kind == MPL_ATOM_COUNT)
        return atom->of == symbol ? RISES : FLAT;
    inner = mpl_poly_of(x, atom->of);
    return way_of_poly(x, &inner, box, symbol); /* quotients and maxima rise in what they hold */
}

/* A product moves as its factors do where they agree: no atom is negative. */
static int way_of_term(const mpl_exprs *x, const mpl_term *t, const mpl_box *box, uint32_t symbol)
{
    uint32_t n = mpl_term_degree(t);
    int way = FLAT;

    for (uint32_t j = 0; j < n; j++)
        way |= way_of_atom(x, t->atom[j], box, symbol);
    if (t->coefficient < 0 && (way == RISES || way == FALLS))
        way = RISES + FALLS - way;
    return way;
}

/* The sign of the partial derivative of a polynomial in counts alone. */
static int way_of_slope(const mpl_exprs *x, const mpl_poly *p, const mpl_box *box, uint32_t symbol)
{
    mpl_span sum = {0, 0};

    for (uint32_t i = 0; i < p->n; i++) {
        mpl_term t = mpl_const_term(0);
        uint32_t power = 0, n = 0;
        mpl_span s;

        for (uint32_t j = 0; j < MPL_EXPR_DEGREE && p->term[i].atom[j] != MPL_NONE; j++) {
            const mpl_atom *atom = &x->atom[p->term[i].atom[j]];

            if (atom->kind != MPL_ATOM_COUNT)
                return UNKNOWN;
            if (atom->of != symbol || power++ > 0)
                t.atom[n++] = p->term[i].atom[j];
        }
        if (power == 0)
            continue;
        t.coefficient = p->term[i].coefficient;
        if (!mpl_span_of_term(x, &t, box, &s) || !times(&s, (mpl_span){power, power}) ||
            __builtin_add_overflow(sum.low, s.low, &sum.low) ||
            __builtin_add_overflow(sum.high, s.high, &sum.high))
            return UNKNOWN;
    }
    return sum.low >= 0 ? RISES : sum.high <= 0 ? FALLS : UNKNOWN;
}

static int way_of_poly(const mpl_exprs *x, const mpl_poly *p, const mpl_box *box, uint32_t symbol)
{
    int way = FLAT;

    for (uint32_t i = 0; i < p->n; i++)
        way |= way_of_term(x, &p->term[i], box, symbol);
    return way == UNKNOWN ? way_of_slope(x, p, box, symbol) : way;
}

bool mpl_poly_span(const mpl_exprs *x, const mpl_poly *p, const mpl_box *box, mpl_span *out)
{
    mpl_room room[2];
    mpl_box least, most;
    mpl_span a, b;

    if (p->n < 2)
        return mpl_poly_plain_span(x, p, box, out);
    least = mpl_box_copy(x, box, &room[0]), most = mpl_box_copy(x, box, &room[1]);
    for (uint32_t i = 0; i < box->n; i++) {
        int way = box->low[i] == box->high[i] ? FLAT : way_of_poly(x, p, box, i);

        if (way == RISES)
            least.high[i] = least.low[i], most.low[i] = most.high[i];
        else if (way == FALLS)
            least.low[i] = least.high[i], most.high[i] = most.low[i];
    }
    if (!mpl_poly_plain_span(x, p, &least, &a) || !mpl_poly_plain_span(x, p, &most, &b))
        return false;
    *out = (mpl_span){a.low, b.high};
    return true;
}

bool mpl_expr_bounds(const mpl_exprs *x, mpl_expr e, const mpl_box *box, int64_t *low,
                     int64_t *high)
{
    mpl_room room;
    mpl_box whole = mpl_box_copy(x, box, &room);
    mpl_poly p = mpl_poly_of(x, e);
    mpl_span s;

    if (!mpl_poly_span(x, &p, &whole, &s) || s.low < INT64_MIN || s.high > INT64_MAX)
        return false;
    *low = (int64_t)s.low, *high = (int64_t)s.high;
    return true;
}
