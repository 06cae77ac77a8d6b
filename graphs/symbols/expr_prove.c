/* expr_prove.c -- proves that an expression is never negative.
 *
 * In turn, on one box: the relations narrow the box; its interval; max(q, 0) is split into the
 * cases q <= 0 and q >= 0, each of which is a relation more; floor(q / c) is replaced by (q - c +
 * 1) / c or q / c, whichever is on the safe side; a relation times a product that is never negative
 * is added; the box is halved. */
#include "graphs/symbols/expr_bounds_priv.h"

enum { MAX_TERMS = 160, MAX_FACTS = 24, MAX_BOXES = 400, MAX_STEPS = 12 };

typedef struct prover {
    const mpl_exprs *exprs;
    mpl_poly fact[MAX_FACTS]; /* each <= 0 */
    uint32_t n_facts;
    int boxes; /* left */
} prover;

typedef struct room {
    mpl_term term[MAX_TERMS];
} room;

static mpl_poly in_room(room *self)
{
    return (mpl_poly){0, MAX_TERMS, self->term};
}

static bool is_low(const prover *self, const mpl_poly *poly, const mpl_box *box)
{
    mpl_span s;

    return mpl_poly_span(self->exprs, poly, box, &s) && s.low >= 0;
}

/* ---- relations ---- */

/* Narrows the box by one fact: c * count + rest <= 0. False: no point of the box keeps it. */
static bool narrow(const prover *self, const mpl_poly *fact, mpl_box *box)
{
    for (uint32_t i = 0; i < fact->n; i++) {
        const mpl_term *term = &fact->term[i];
        mpl_span all;
        mpl_wide room_left;
        int64_t c = term->coefficient;
        uint32_t s;

        if (!mpl_poly_plain_span(self->exprs, fact, box, &all))
            return true;
        if (all.low > 0)
            return false;
        if (mpl_term_degree(term) != 1 || self->exprs->atom[term->atom[0]].kind != MPL_ATOM_COUNT ||
            c == INT64_MIN)
            continue;
        s = self->exprs->atom[term->atom[0]].of;
        room_left = -all.low / (c > 0 ? c : -c);
        if (c > 0 && room_left < box->high[s] - box->low[s])
            box->high[s] = box->low[s] + (int64_t)room_left;
        else if (c < 0 && room_left < box->high[s] - box->low[s])
            box->low[s] = box->high[s] - (int64_t)room_left;
    }
    return true;
}

/* poly becomes part * d + m * fact, where m >= 0 and the first negative term that m lets `part` of
 * the fact cancel is gone: where the new d >= 0, so is the old one. False: there is no such term.
 */
static bool add_fact(mpl_poly *poly, const mpl_poly *fact, const mpl_term *part, mpl_poly *sum)
{
    for (uint32_t i = 0; i < poly->n; i++) {
        mpl_term m;
        mpl_poly one = {1, 1, &m}, last = *poly;

        if (poly->term[i].coefficient >= 0 || poly->term[i].coefficient == INT64_MIN ||
            !mpl_term_without(&poly->term[i], part, &m))
            continue;
        m.coefficient = -m.coefficient; /* now m >= 0: no atom is negative */
        sum->n = 0;
        if (!mpl_poly_put(sum, part->coefficient, poly) || !mpl_poly_put_product(sum, &one, fact) ||
            !mpl_poly_tidy(sum))
            return false;
        *poly = *sum, *sum = last;
        return true;
    }
    return false;
}

/* Whether d >= 0 is proved by adding products of one fact, as often as it cancels something. */
static bool by_facts(const prover *self, const mpl_poly *poly, const mpl_box *box)
{
    for (uint32_t f = 0; f < self->n_facts; f++)
        for (uint32_t j = 0; j < self->fact[f].n; j++) {
            const mpl_term *part = &self->fact[f].term[j];
            room r[2];
            mpl_poly now = in_room(&r[0]), other = in_room(&r[1]);

            if (part->coefficient <= 0 || part->atom[0] == MPL_NONE || !mpl_poly_put(&now, 1, poly))
                continue;
            for (uint32_t step = 0; step < MAX_STEPS; step++) {
                if (!add_fact(&now, &self->fact[f], part, &other))
                    break;
                if (is_low(self, &now, box))
                    return true;
            }
        }
    return false;
}

/* ---- atoms ---- */

/* The first atom of this kind in poly; MPL_NONE: none. */
static uint32_t first_atom(const prover *self, const mpl_poly *poly, mpl_atom_kind kind)
{
    for (uint32_t i = 0; i < poly->n; i++)
        for (uint32_t j = 0; j < MPL_EXPR_DEGREE && poly->term[i].atom[j] != MPL_NONE; j++)
            if (self->exprs->atom[poly->term[i].atom[j]].kind == kind)
                return poly->term[i].atom[j];
    return MPL_NONE;
}

/* poly with the atom replaced by a polynomial, once in each product: repeat while it is there. */
static bool replaced(const mpl_poly *poly, uint32_t atom, const mpl_poly *by, mpl_poly *out)
{
    mpl_term single = mpl_const_term(1);

    single.atom[0] = atom;
    for (uint32_t i = 0; i < poly->n; i++) {
        mpl_term rest;
        mpl_poly one = {1, 1, &rest};

        if (mpl_term_without(&poly->term[i], &single, &rest)) {
            if (!mpl_poly_put_product(out, &one, by))
                return false;
        } else {
            rest = poly->term[i];
            if (!mpl_poly_put(out, 1, &one))
                return false;
        }
    }
    return mpl_poly_tidy(out);
}

static bool holds(prover *self, const mpl_poly *poly, const mpl_box *box);

/* The case q <= 0, where max(q, 0) is 0, or q >= 0, where it is q. */
static bool in_case(prover *self, const mpl_poly *poly, const mpl_box *box, uint32_t atom,
                    bool above)
{
    mpl_poly q = mpl_poly_of(self->exprs, self->exprs->atom[atom].of), none = {0};
    room r, turned;
    mpl_poly now = in_room(&r), fact = in_room(&turned);
    bool ok;

    if (self->n_facts == MAX_FACTS || !replaced(poly, atom, above ? &q : &none, &now) ||
        !mpl_poly_put(&fact, above ? -1 : 1, &q))
        return false;
    self->fact[self->n_facts++] = fact;
    ok = holds(self, &now, box);
    self->n_facts--;
    return ok;
}

/* poly times c with c * floor(q / c) replaced by what is not above it (below, for negative terms).
 */
static bool without_floor(const prover *self, const mpl_poly *poly, uint32_t atom, mpl_poly *out)
{
    int64_t c = self->exprs->atom[atom].by;
    mpl_poly q = mpl_poly_of(self->exprs, self->exprs->atom[atom].of);
    mpl_term single = mpl_const_term(1);

    single.atom[0] = atom;
    for (uint32_t i = 0; i < poly->n; i++) {
        mpl_term rest, less = mpl_const_term(1 - c);
        mpl_poly one = {1, 1, &rest}, constant = {1, 1, &less};

        if (!mpl_term_without(&poly->term[i], &single, &rest)) {
            rest = poly->term[i];
            if (!mpl_poly_put(out, c, &one))
                return false;
            continue;
        }
        if (!mpl_poly_put_product(out, &one, &q) ||
            (rest.coefficient > 0 && !mpl_poly_put_product(out, &one, &constant)))
            return false;
    }
    return mpl_poly_tidy(out);
}

static bool by_real_quotients(prover *self, const mpl_poly *poly, const mpl_box *box,
                              uint32_t depth)
{
    uint32_t atom = first_atom(self, poly, MPL_ATOM_FLOOR);
    room r;
    mpl_poly now = in_room(&r);

    if (atom == MPL_NONE || !without_floor(self, poly, atom, &now))
        return false;
    return is_low(self, &now, box) || by_facts(self, &now, box) ||
           (depth > 0 && by_real_quotients(self, &now, box, depth - 1));
}

/* ---- halves ---- */

static bool in_poly(const mpl_exprs *exprs, const mpl_poly *poly, uint32_t symbol)
{
    for (uint32_t i = 0; i < poly->n; i++)
        for (uint32_t j = 0; j < MPL_EXPR_DEGREE && poly->term[i].atom[j] != MPL_NONE; j++) {
            const mpl_atom *atom = &exprs->atom[poly->term[i].atom[j]];
            mpl_poly inner = mpl_poly_of(exprs, atom->kind == MPL_ATOM_COUNT ? 0 : atom->of);

            if (atom->kind == MPL_ATOM_COUNT ? atom->of == symbol : in_poly(exprs, &inner, symbol))
                return true;
        }
    return false;
}

static bool in_halves(prover *self, const mpl_poly *poly, const mpl_box *box)
{
    mpl_room r;
    uint32_t widest = MPL_NONE;
    mpl_box half;
    int64_t middle;

    for (uint32_t i = 0; i < box->n; i++)
        if (box->high[i] > box->low[i] && in_poly(self->exprs, poly, i) &&
            (widest == MPL_NONE ||
             box->high[i] - box->low[i] > box->high[widest] - box->low[widest]))
            widest = i;
    if (widest == MPL_NONE)
        return false;
    middle = box->low[widest] + (box->high[widest] - box->low[widest]) / 2;
    half = mpl_box_copy(self->exprs, box, &r);
    half.high[widest] = middle;
    if (!holds(self, poly, &half))
        return false;
    half = mpl_box_copy(self->exprs, box, &r);
    half.low[widest] = middle + 1;
    return holds(self, poly, &half);
}

static bool holds(prover *self, const mpl_poly *poly, const mpl_box *box)
{
    mpl_room r;
    mpl_box now = mpl_box_copy(self->exprs, box, &r);
    uint32_t atom;

    if (self->boxes-- <= 0)
        return false;
    for (uint32_t f = 0; f < self->n_facts; f++)
        if (!narrow(self, &self->fact[f], &now))
            return true; /* there is no such point */
    if (is_low(self, poly, &now) || by_facts(self, poly, &now))
        return true;
    atom = first_atom(self, poly, MPL_ATOM_POSITIVE);
    if (atom != MPL_NONE)
        return in_case(self, poly, &now, atom, false) && in_case(self, poly, &now, atom, true);
    return by_real_quotients(self, poly, &now, 3) || in_halves(self, poly, &now);
}

/* Whether p >= 0 is proved on the box where relations hold. */
static bool never_negative(const mpl_exprs *exprs, const mpl_poly *poly, const mpl_box *box)
{
    prover v = {.exprs = exprs, .boxes = MAX_BOXES};

    for (size_t i = 0; i < exprs->n_relations && i < MAX_FACTS / 2; i++)
        v.fact[v.n_facts++] = mpl_poly_of(exprs, exprs->relation[i]);
    return holds(&v, poly, box);
}

bool mpl_expr_at_most(const mpl_exprs *exprs, mpl_expr a, mpl_expr b, const mpl_box *box)
{
    mpl_room range;
    room r;
    mpl_box whole = mpl_box_copy(exprs, box, &range);
    mpl_poly d = in_room(&r), left = mpl_poly_of(exprs, a), right = mpl_poly_of(exprs, b);

    return mpl_poly_put(&d, 1, &right) && mpl_poly_put(&d, -1, &left) && mpl_poly_tidy(&d) &&
           never_negative(exprs, &d, &whole);
}
