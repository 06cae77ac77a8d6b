/* expr_text.c -- expressions as text. See expr.h.
 *
 * Written in values where the coefficients stay integers (count = (value - first) / step), else in
 * floor(value / step) = count + floor(first / step). */
#include "graphs/core/text.h"
#include "graphs/symbols/expr_priv.h"

#include <ctype.h>
#include <stdarg.h>

/* ---- writing ---- */

typedef struct writer {
    mpl_ctx *ctx;
    const mpl_exprs *x;
    char *text;
    size_t n, cap;
} writer;

static mpl_status put(writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static mpl_status put(writer *w, const char *format, ...)
{
    va_list list;
    int n;

    va_start(list, format);
    n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    MPL_PASS(mpl_reserve(w->ctx, w->text, w->cap, w->n + (size_t)n + 1));
    va_start(list, format);
    vsnprintf(w->text + w->n, (size_t)n + 1, format, list);
    va_end(list);
    w->n += (size_t)n;
    return MPL_OK;
}

/* `rest` times (count + low)^.. for the counts of t, as a polynomial in (value - g) / h: multiplied
 * by `scale`, which the product of all h divides. False: overflow, no room, or no integers. */
static bool put_shifted(const mpl_exprs *x, const mpl_term *t, bool values, mpl_poly *out,
                        mpl_poly *room)
{
    uint32_t n = mpl_term_degree(t);

    out->n = 1;
    out->term[0] = mpl_const_term(t->coefficient);
    for (uint32_t j = 0; j < n; j++) {
        const mpl_atom *atom = &x->atom[t->atom[j]];
        mpl_term part[2] = {mpl_const_term(1), mpl_const_term(0)};
        mpl_poly factor = {1, 2, part}, last = *out;

        part[0].atom[0] = t->atom[j];
        if (atom->kind == MPL_ATOM_COUNT) {
            const mpl_symbol *s = &x->symbol[atom->of];

            factor.n = 2;
            part[1].coefficient = values ? -s->first : -(s->first / s->step);
        }
        room->n = 0;
        if (!mpl_poly_put_product(room, &last, &factor) || !mpl_poly_tidy(room))
            return false;
        *out = *room, *room = last;
    }
    return true;
}

/* The product of the steps of a term's counts. */
static bool steps_of(const mpl_exprs *x, const mpl_term *t, int64_t *out)
{
    *out = 1;
    for (uint32_t j = 0; j < MPL_EXPR_DEGREE && t->atom[j] != MPL_NONE; j++) {
        const mpl_atom *atom = &x->atom[t->atom[j]];

        if (atom->kind == MPL_ATOM_COUNT &&
            __builtin_mul_overflow(*out, x->symbol[atom->of].step, out))
            return false;
    }
    return true;
}

/* p in values (true) or in floor(value / step); `sum` and two rooms are the caller's. */
static bool in_names(const mpl_exprs *x, const mpl_poly *p, bool values, mpl_poly *sum,
                     mpl_poly room[2])
{
    int64_t scale = 1;

    for (uint32_t i = 0; values && i < p->n; i++) {
        int64_t h;

        if (!steps_of(x, &p->term[i], &h) ||
            __builtin_mul_overflow(scale / (int64_t)mpl_divisor((uint64_t)scale, (uint64_t)h), h,
                                   &scale))
            return false;
    }
    sum->n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        int64_t h = 1;

        if ((values && !steps_of(x, &p->term[i], &h)) ||
            !put_shifted(x, &p->term[i], values, &room[0], &room[1]) ||
            !mpl_poly_put(sum, scale / h, &room[0]))
            return false;
    }
    if (!mpl_poly_tidy(sum))
        return false;
    for (uint32_t i = 0; i < sum->n; i++) {
        if (sum->term[i].coefficient % scale != 0)
            return false;
        sum->term[i].coefficient /= scale;
    }
    return true;
}

static mpl_status write_poly(writer *w, mpl_expr e);

static mpl_status write_atom(writer *w, uint32_t id, bool values)
{
    const mpl_atom *atom = &w->x->atom[id];

    if (atom->kind == MPL_ATOM_COUNT) {
        const mpl_symbol *s = &w->x->symbol[atom->of];

        return values || s->step == 1 ? put(w, "%s", s->name)
                                      : put(w, "floor(%s/%" PRId64 ")", s->name, s->step);
    }
    MPL_PASS(put(w, atom->kind == MPL_ATOM_FLOOR ? "floor((" : "max("));
    MPL_PASS(write_poly(w, atom->of));
    return atom->kind == MPL_ATOM_FLOOR ? put(w, ")/%" PRId64 ")", atom->by) : put(w, ",0)");
}

static mpl_status write_term(writer *w, const mpl_term *t, bool first, bool values)
{
    uint32_t n = mpl_term_degree(t);
    uint64_t size = t->coefficient < 0 ? -(uint64_t)t->coefficient : (uint64_t)t->coefficient;

    MPL_PASS(put(w, "%s",
                 first                ? t->coefficient < 0 ? "-" : ""
                 : t->coefficient < 0 ? " - "
                                      : " + "));
    if (size != 1 || n == 0)
        MPL_PASS(put(w, "%" PRIu64 "%s", size, n > 0 ? "*" : ""));
    for (uint32_t j = 0; j < n; j++) {
        MPL_PASS(write_atom(w, t->atom[j], values));
        if (j + 1 < n)
            MPL_PASS(put(w, "*"));
    }
    return MPL_OK;
}

static mpl_status write_poly(writer *w, mpl_expr e)
{
    mpl_status st = MPL_OK;
    mpl_poly p = mpl_poly_of(w->x, e), sum = {0, 64 * (p.n + 1), NULL},
             room[2] = {{0, 256, NULL}, {0, 256, NULL}};
    bool values = true;

    MPL_TRY(mpl_new(w->ctx, sum.term, sum.cap));
    MPL_TRY(mpl_new(w->ctx, room[0].term, room[0].cap));
    MPL_TRY(mpl_new(w->ctx, room[1].term, room[1].cap));
    if (!in_names(w->x, &p, true, &sum, room)) {
        values = false;
        if (!in_names(w->x, &p, false, &sum, room))
            MPL_FAIL(w->ctx, MPL_EINPUT, "an expression of sizes is too large to be written");
    }
    for (uint32_t i = 0; i < sum.n; i++)
        MPL_TRY(write_term(w, &sum.term[i], i == 0, values));
    if (sum.n == 0)
        MPL_TRY(put(w, "0"));
out:
    mpl_free_each(w->ctx, sum.term, room[0].term, room[1].term);
    return st;
}

mpl_status mpl_expr_write(mpl_ctx *ctx, const mpl_exprs *x, mpl_expr e, char **text)
{
    writer w = {.ctx = ctx, .x = x};
    mpl_status st = write_poly(&w, e);

    if (st == MPL_OK)
        *text = w.text;
    else
        mpl_free(ctx, w.text);
    return st;
}

/* ---- reading ---- */

enum { MAX_NESTING = 64 };

typedef struct reader {
    mpl_ctx *ctx;
    mpl_exprs *x;
    const char *all, *at;
    uint32_t depth;
} reader;

static mpl_status wrong(reader *r, const char *what)
{
    return MPL_REFUSE(r->ctx, "'%s', character %zu: %s", mpl_shown(r->all),
                      (size_t)(r->at - r->all) + 1, what);
}

static bool take(reader *r, char c)
{
    while (*r->at == ' ')
        r->at++;
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

static mpl_status want(reader *r, char c)
{
    char what[] = "'?' is missing";

    what[1] = c;
    return take(r, c) ? MPL_OK : wrong(r, what);
}

static mpl_status read_integer(reader *r, int64_t *out)
{
    int64_t value = 0;

    while (*r->at == ' ')
        r->at++;
    if (!isdigit((unsigned char)*r->at))
        return wrong(r, "an integer is missing");
    for (; isdigit((unsigned char)*r->at); r->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *r->at - '0', &value))
            return wrong(r, "the integer does not fit in 64 bits");
    *out = value;
    return MPL_OK;
}

static mpl_status read_sum(reader *r, mpl_expr *out);

/* What follows "floor(" or "ceil(", "min(" or "max(". */
static mpl_status read_call(reader *r, const char *name, mpl_expr *out)
{
    mpl_expr left, right;
    int64_t by;

    MPL_PASS(read_sum(r, &left));
    if (strcmp(name, "floor") == 0 || strcmp(name, "ceil") == 0) {
        MPL_PASS(want(r, '/'));
        MPL_PASS(read_integer(r, &by));
        MPL_PASS(want(r, ')'));
        return *name == 'f' ? mpl_expr_floor_div(r->ctx, r->x, left, by, out)
                            : mpl_expr_ceil_div(r->ctx, r->x, left, by, out);
    }
    MPL_PASS(want(r, ','));
    MPL_PASS(read_sum(r, &right));
    MPL_PASS(want(r, ')'));
    return name[1] == 'i' ? mpl_expr_min(r->ctx, r->x, left, right, out)
                          : mpl_expr_max(r->ctx, r->x, left, right, out);
}

static mpl_status read_name(reader *r, mpl_expr *out)
{
    static const char *const call[] = {"floor", "ceil", "min", "max"};
    char name[128];
    size_t n = 0;
    uint32_t symbol;

    while (isalnum((unsigned char)r->at[n]) || r->at[n] == '_' || r->at[n] == '.')
        n++;
    if (n == 0 || n >= sizeof name)
        return wrong(r, "an integer, a name or '(' is missing");
    memcpy(name, r->at, n);
    name[n] = '\0';
    symbol = mpl_exprs_find(r->x, name);
    if (symbol == MPL_NONE)
        for (size_t i = 0; i < sizeof call / sizeof *call; i++)
            if (strcmp(name, call[i]) == 0) {
                r->at += n;
                MPL_PASS(want(r, '('));
                return read_call(r, call[i], out);
            }
    if (symbol == MPL_NONE)
        return MPL_REFUSE(r->ctx, "'%s': no dimension is called '%s'", mpl_shown(r->all), name);
    r->at += n;
    return mpl_expr_of_symbol(r->ctx, r->x, symbol, out);
}

static mpl_status read_factor(reader *r, mpl_expr *out)
{
    int64_t value;

    if (take(r, '(')) {
        MPL_PASS(read_sum(r, out));
        return want(r, ')');
    }
    if (!isdigit((unsigned char)*r->at))
        return read_name(r, out);
    MPL_PASS(read_integer(r, &value));
    return mpl_expr_const(r->ctx, r->x, value, out);
}

static mpl_status read_product(reader *r, mpl_expr *out)
{
    bool negative = take(r, '-');
    mpl_expr product, factor;

    MPL_PASS(read_factor(r, &product));
    while (take(r, '*')) {
        MPL_PASS(read_factor(r, &factor));
        MPL_PASS(mpl_expr_mul(r->ctx, r->x, product, factor, &product));
    }
    return negative ? mpl_expr_sub(r->ctx, r->x, 0, product, out)
                    : mpl_expr_add(r->ctx, r->x, 0, product, out);
}

static mpl_status read_sum(reader *r, mpl_expr *out)
{
    mpl_expr sum, term;
    bool minus;

    if (r->depth++ == MAX_NESTING)
        return wrong(r, "nested more than 64 deep");
    MPL_PASS(read_product(r, &sum));
    while ((minus = take(r, '-')) || take(r, '+')) {
        MPL_PASS(read_product(r, &term));
        MPL_PASS(minus ? mpl_expr_sub(r->ctx, r->x, sum, term, &sum)
                       : mpl_expr_add(r->ctx, r->x, sum, term, &sum));
    }
    r->depth--;
    *out = sum;
    return MPL_OK;
}

mpl_status mpl_expr_read(mpl_ctx *ctx, mpl_exprs *x, const char *text, mpl_expr *out)
{
    reader r = {ctx, x, text, text, 0};
    mpl_expr e;

    MPL_PASS(read_sum(&r, &e));
    while (*r.at == ' ')
        r.at++;
    if (*r.at != '\0')
        return wrong(&r, "this belongs to no expression");
    *out = e;
    return MPL_OK;
}
