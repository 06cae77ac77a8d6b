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
    const mpl_exprs *exprs;
    char *text;
    size_t n, cap;
} writer;

static mpl_status put(writer *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static mpl_status put(writer *out, const char *format, ...)
{
    va_list list;
    int n;

    va_start(list, format);
    n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    MPL_PASS(mpl_reserve(out->ctx, out->text, out->cap, out->n + (size_t)n + 1));
    va_start(list, format);
    vsnprintf(out->text + out->n, (size_t)n + 1, format, list);
    va_end(list);
    out->n += (size_t)n;
    return MPL_OK;
}

/* `rest` times (count + low)^.. for the counts of term, as a polynomial in (value - g) / h:
 * multiplied by `scale`, which the product of all h divides. False: overflow, no room, or no
 * integers. */
static bool put_shifted(const mpl_exprs *exprs, const mpl_term *term, bool values, mpl_poly *out,
                        mpl_poly *room)
{
    uint32_t n = mpl_term_degree(term);

    out->n = 1;
    out->term[0] = mpl_const_term(term->coefficient);
    for (uint32_t j = 0; j < n; j++) {
        const mpl_atom *atom = &exprs->atom[term->atom[j]];
        mpl_term part[2] = {mpl_const_term(1), mpl_const_term(0)};
        mpl_poly factor = {1, 2, part}, last = *out;

        part[0].atom[0] = term->atom[j];
        if (atom->kind == MPL_ATOM_COUNT) {
            const mpl_symbol *symbol = &exprs->symbol[atom->of];

            factor.n = 2;
            part[1].coefficient = values ? -symbol->first : -(symbol->first / symbol->step);
        }
        room->n = 0;
        if (!mpl_poly_put_product(room, &last, &factor) || !mpl_poly_tidy(room))
            return false;
        *out = *room, *room = last;
    }
    return true;
}

/* The product of the steps of a term's counts. */
static bool steps_of(const mpl_exprs *exprs, const mpl_term *term, int64_t *out)
{
    *out = 1;
    for (uint32_t j = 0; j < MPL_EXPR_DEGREE && term->atom[j] != MPL_NONE; j++) {
        const mpl_atom *atom = &exprs->atom[term->atom[j]];

        if (atom->kind == MPL_ATOM_COUNT &&
            __builtin_mul_overflow(*out, exprs->symbol[atom->of].step, out))
            return false;
    }
    return true;
}

/* poly in values (true) or in floor(value / step); `sum` and two rooms are the caller's. */
static bool in_names(const mpl_exprs *exprs, const mpl_poly *poly, bool values, mpl_poly *sum,
                     mpl_poly room[2])
{
    int64_t scale = 1;

    for (uint32_t i = 0; values && i < poly->n; i++) {
        int64_t h;

        if (!steps_of(exprs, &poly->term[i], &h) ||
            __builtin_mul_overflow(scale / (int64_t)mpl_divisor((uint64_t)scale, (uint64_t)h), h,
                                   &scale))
            return false;
    }
    sum->n = 0;
    for (uint32_t i = 0; i < poly->n; i++) {
        int64_t h = 1;

        if ((values && !steps_of(exprs, &poly->term[i], &h)) ||
            !put_shifted(exprs, &poly->term[i], values, &room[0], &room[1]) ||
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

static mpl_status write_atom(writer *out, uint32_t id, bool values)
{
    const mpl_atom *atom = &out->exprs->atom[id];

    if (atom->kind == MPL_ATOM_COUNT) {
        const mpl_symbol *symbol = &out->exprs->symbol[atom->of];

        return values || symbol->step == 1
                   ? put(out, "%s", symbol->name)
                   : put(out, "floor(%s/%" PRId64 ")", symbol->name, symbol->step);
    }
    MPL_PASS(put(out, atom->kind == MPL_ATOM_FLOOR ? "floor((" : "max("));
    MPL_PASS(write_poly(out, atom->of));
    return atom->kind == MPL_ATOM_FLOOR ? put(out, ")/%" PRId64 ")", atom->by) : put(out, ",0)");
}

static mpl_status write_term(writer *out, const mpl_term *term, bool first, bool values)
{
    uint32_t n = mpl_term_degree(term);
    uint64_t size =
        term->coefficient < 0 ? -(uint64_t)term->coefficient : (uint64_t)term->coefficient;

    MPL_PASS(put(out, "%s",
                 first                   ? term->coefficient < 0 ? "-" : ""
                 : term->coefficient < 0 ? " - "
                                         : " + "));
    if (size != 1 || n == 0)
        MPL_PASS(put(out, "%" PRIu64 "%s", size, n > 0 ? "*" : ""));
    for (uint32_t j = 0; j < n; j++) {
        MPL_PASS(write_atom(out, term->atom[j], values));
        if (j + 1 < n)
            MPL_PASS(put(out, "*"));
    }
    return MPL_OK;
}

static mpl_status write_poly(writer *w, mpl_expr e)
{
    mpl_status st = MPL_OK;
    mpl_poly p = mpl_poly_of(w->exprs, e), sum = {0, 64 * (p.n + 1), NULL},
             room[2] = {{0, 256, NULL}, {0, 256, NULL}};
    bool values = true;

    MPL_TRY(mpl_new(w->ctx, sum.term, sum.cap));
    MPL_TRY(mpl_new(w->ctx, room[0].term, room[0].cap));
    MPL_TRY(mpl_new(w->ctx, room[1].term, room[1].cap));
    if (!in_names(w->exprs, &p, true, &sum, room)) {
        values = false;
        if (!in_names(w->exprs, &p, false, &sum, room))
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

mpl_status mpl_expr_write(mpl_ctx *ctx, const mpl_exprs *exprs, mpl_expr e, char **text)
{
    writer w = {.ctx = ctx, .exprs = exprs};
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
    mpl_exprs *exprs;
    const char *all, *at;
    uint32_t depth;
} reader;

static mpl_status wrong(reader *in, const char *what)
{
    return MPL_REFUSE(in->ctx, "'%s', character %zu: %s", mpl_shown(in->all),
                      (size_t)(in->at - in->all) + 1, what);
}

static bool take(reader *in, char c)
{
    while (*in->at == ' ')
        in->at++;
    if (*in->at != c)
        return false;
    in->at++;
    return true;
}

static mpl_status want(reader *in, char c)
{
    char what[] = "'?' is missing";

    what[1] = c;
    return take(in, c) ? MPL_OK : wrong(in, what);
}

static mpl_status read_integer(reader *in, int64_t *out)
{
    int64_t value = 0;

    while (*in->at == ' ')
        in->at++;
    if (!isdigit((unsigned char)*in->at))
        return wrong(in, "an integer is missing");
    for (; isdigit((unsigned char)*in->at); in->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *in->at - '0', &value))
            return wrong(in, "the integer does not fit in 64 bits");
    *out = value;
    return MPL_OK;
}

static mpl_status read_sum(reader *in, mpl_expr *out);

/* What follows "floor(" or "ceil(", "min(" or "max(". */
static mpl_status read_call(reader *in, const char *name, mpl_expr *out)
{
    mpl_expr left, right;
    int64_t by;

    MPL_PASS(read_sum(in, &left));
    if (strcmp(name, "floor") == 0 || strcmp(name, "ceil") == 0) {
        MPL_PASS(want(in, '/'));
        MPL_PASS(read_integer(in, &by));
        MPL_PASS(want(in, ')'));
        return *name == 'f' ? mpl_expr_floor_div(in->ctx, in->exprs, left, by, out)
                            : mpl_expr_ceil_div(in->ctx, in->exprs, left, by, out);
    }
    MPL_PASS(want(in, ','));
    MPL_PASS(read_sum(in, &right));
    MPL_PASS(want(in, ')'));
    return name[1] == 'i' ? mpl_expr_min(in->ctx, in->exprs, left, right, out)
                          : mpl_expr_max(in->ctx, in->exprs, left, right, out);
}

static mpl_status read_name(reader *in, mpl_expr *out)
{
    static const char *const call[] = {"floor", "ceil", "min", "max"};
    char name[128];
    size_t n = 0;
    uint32_t symbol;

    while (isalnum((unsigned char)in->at[n]) || in->at[n] == '_' || in->at[n] == '.')
        n++;
    if (n == 0 || n >= sizeof name)
        return wrong(in, "an integer, a name or '(' is missing");
    memcpy(name, in->at, n);
    name[n] = '\0';
    symbol = mpl_exprs_find(in->exprs, name);
    if (symbol == MPL_NONE)
        for (size_t i = 0; i < sizeof call / sizeof *call; i++)
            if (strcmp(name, call[i]) == 0) {
                in->at += n;
                MPL_PASS(want(in, '('));
                return read_call(in, call[i], out);
            }
    if (symbol == MPL_NONE)
        return MPL_REFUSE(in->ctx, "'%s': no dimension is called '%s'", mpl_shown(in->all), name);
    in->at += n;
    return mpl_expr_of_symbol(in->ctx, in->exprs, symbol, out);
}

static mpl_status read_factor(reader *in, mpl_expr *out)
{
    int64_t value;

    if (take(in, '(')) {
        MPL_PASS(read_sum(in, out));
        return want(in, ')');
    }
    if (!isdigit((unsigned char)*in->at))
        return read_name(in, out);
    MPL_PASS(read_integer(in, &value));
    return mpl_expr_const(in->ctx, in->exprs, value, out);
}

static mpl_status read_product(reader *in, mpl_expr *out)
{
    bool negative = take(in, '-');
    mpl_expr product, factor;

    MPL_PASS(read_factor(in, &product));
    while (take(in, '*')) {
        MPL_PASS(read_factor(in, &factor));
        MPL_PASS(mpl_expr_mul(in->ctx, in->exprs, product, factor, &product));
    }
    return negative ? mpl_expr_sub(in->ctx, in->exprs, 0, product, out)
                    : mpl_expr_add(in->ctx, in->exprs, 0, product, out);
}

static mpl_status read_sum(reader *in, mpl_expr *out)
{
    mpl_expr sum, term;
    bool minus;

    if (in->depth++ == MAX_NESTING)
        return wrong(in, "nested more than 64 deep");
    MPL_PASS(read_product(in, &sum));
    while ((minus = take(in, '-')) || take(in, '+')) {
        MPL_PASS(read_product(in, &term));
        MPL_PASS(minus ? mpl_expr_sub(in->ctx, in->exprs, sum, term, &sum)
                       : mpl_expr_add(in->ctx, in->exprs, sum, term, &sum));
    }
    in->depth--;
    *out = sum;
    return MPL_OK;
}

mpl_status mpl_expr_read(mpl_ctx *ctx, mpl_exprs *exprs, const char *text, mpl_expr *out)
{
    reader r = {ctx, exprs, text, text, 0};
    mpl_expr e;

    MPL_PASS(read_sum(&r, &e));
    while (*r.at == ' ')
        r.at++;
    if (*r.at != '\0')
        return wrong(&r, "this belongs to no expression");
    *out = e;
    return MPL_OK;
}
