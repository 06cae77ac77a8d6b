/* expr_priv.h -- the normal form, shared by poly.c and expr*.c. */
#pragma once

#include "graphs/symbols/expr.h"

__extension__ typedef __int128 mpl_wide;

#define MPL_EXPR_TOO_LARGE "an expression of sizes does not fit in 64 bits and 6 factors"

enum { MPL_EXPR_DEGREE = 6 }; /* factors of a product, at most */

/* Atoms ascending, MPL_NONE after the last: terms compare as arrays, the constant comes last. */
typedef struct mpl_term {
    int64_t coefficient; /* not 0 */
    uint32_t atom[MPL_EXPR_DEGREE];
} mpl_term;

/* Terms, ascending and different once mpl_poly_tidy has been called; storage is the caller's. */
typedef struct mpl_poly {
    uint32_t n, cap;
    mpl_term *term;
} mpl_poly;

/* No atom is negative in the range: of a floor's dividend all coefficients are from 0 to by - 1,
 * since what `by` divides is taken out. */
typedef enum mpl_atom_kind { MPL_ATOM_COUNT, MPL_ATOM_FLOOR, MPL_ATOM_POSITIVE } mpl_atom_kind;

typedef struct mpl_atom {
    uint32_t kind; /* count of symbol `of`; floor(of / by); max(of, 0) */
    uint32_t of;   /* symbol, or expression */
    int64_t by;
} mpl_atom;

struct mpl_exprs {
    mpl_term *term; /* of all expressions */
    size_t n_terms, cap_terms;
    size_t *begin; /* [n + 1] into term */
    size_t n, cap_begin;
    uint32_t *slot; /* [n_slots] hash table of expressions; MPL_NONE: free */
    size_t n_slots;
    mpl_atom *atom; /* each after those in it */
    size_t n_atoms, cap_atoms;
    mpl_symbol *symbol;
    mpl_expr *relation;
    size_t n_symbols, cap_symbols, n_relations, cap_relations;
};

/* An expression as a polynomial, borrowed. */
mpl_poly mpl_poly_of(const mpl_exprs *exprs, mpl_expr e);
/* Sorts, adds equal products, drops zeros. False: a coefficient leaves 64 bits. */
bool mpl_poly_tidy(mpl_poly *poly);
/* Appends scale * a, or a * b; not tidy afterwards. False: no room, or overflow. */
bool mpl_poly_put(mpl_poly *p, int64_t scale, const mpl_poly *a);
bool mpl_poly_put_product(mpl_poly *p, const mpl_poly *a, const mpl_poly *b);
/* Factors of a term. */
uint32_t mpl_term_degree(const mpl_term *term);
/* The term without factors of `by`, whose atoms must all be in it; false: they are not. */
bool mpl_term_without(const mpl_term *term, const mpl_term *by, mpl_term *out);
/* The expression of a polynomial, which is tidied. */
mpl_status mpl_expr_of(mpl_ctx *ctx, mpl_exprs *exprs, mpl_poly *poly, mpl_expr *out);
int64_t mpl_floor_quotient(int64_t a, int64_t positive);

static inline mpl_term mpl_const_term(int64_t value)
{
    return (mpl_term){value, {MPL_NONE, MPL_NONE, MPL_NONE, MPL_NONE, MPL_NONE, MPL_NONE}};
}
