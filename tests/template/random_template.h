/* random_template.h -- random problems whose sizes are expressions, and every point of a range. */
#pragma once

#include "tests/support/test.h"

#include "graphs/symbols/symbols.h"
#include "planners/template/template_plan.h"
#include "planners/verify/verify.h"

enum { SYM_PAIRS = 1, SYM_FAMILIES = 2, SYM_ALIGNED = 4, SYM_WIDE = 8, SYM_RELATED = 16 };

static inline uint32_t drawn(mpl_rng *rng, uint32_t n)
{
    return (uint32_t)mpl_rng_below(rng, n);
}

static inline void free_sym(mpl_ctx *ctx, mpl_sym_problem *sp)
{
    if (sp != NULL)
        mpl_exprs_free(ctx, sp->exprs);
    mpl_sym_problem_free(ctx, sp);
}

/* a * x + b * y + c, x * y, x * x, floor, max: at least 1 everywhere. */
static inline mpl_expr random_size(mpl_ctx *ctx, mpl_exprs *x, mpl_rng *rng)
{
    char text[200];
    uint32_t n = mpl_exprs_n_symbols(x);
    const char *a = mpl_exprs_symbol(x, drawn(rng, n))->name,
               *b = mpl_exprs_symbol(x, drawn(rng, n))->name;
    uint32_t k = 1 + drawn(rng, 9), l = 1 + drawn(rng, 9), c = drawn(rng, 20);
    mpl_expr e = 0;

    switch (drawn(rng, 7)) {
    case 0:
        snprintf(text, sizeof text, "%u * %s + %u", k, a, c);
        break;
    case 1:
        snprintf(text, sizeof text, "%u * %s + %u * %s + %u", k, a, l, b, c);
        break;
    case 2:
        snprintf(text, sizeof text, "%u * %s * %s + %u", k, a, b, c);
        break;
    case 3:
        snprintf(text, sizeof text, "%u * floor((%s + %u) / %u) + %u", k, a, c, l + 1, 1 + c);
        break;
    case 4:
        snprintf(text, sizeof text, "max(%u * %s, %u * %s + %u)", k, a, l, b, c);
        break;
    case 5:
        snprintf(text, sizeof text, "%s * floor((%u * %s + 1) / 2) + 1", a, l, b);
        break;
    default:
        snprintf(text, sizeof text, "%u", 1 + 10 * c);
    }
    assert_ok(ctx, mpl_expr_read(ctx, x, text, &e));
    return e;
}

/* Symbols "x", "y", ..; SYM_WIDE: ranges of 4096, else of a few values. */
static inline mpl_exprs *random_symbols(mpl_ctx *ctx, mpl_rng *rng, uint32_t n, unsigned flags)
{
    mpl_exprs *x = NULL;
    mpl_expr e, sum = 0;

    assert_ok(ctx, mpl_exprs_new(ctx, &x));
    for (uint32_t i = 0; i < n; i++) {
        char name[2] = {(char)('x' + i), 0};
        int64_t first = 1 + drawn(rng, 3), step = 1 + drawn(rng, 2),
                last = first + step * ((flags & SYM_WIDE) != 0 ? 4000 : 1 + drawn(rng, 5));

        assert_ok(ctx, mpl_expr_symbol(ctx, x, name, first, last, step, &e));
        assert_ok(ctx, mpl_expr_add(ctx, x, sum, e, &sum));
    }
    if ((flags & SYM_RELATED) != 0) {
        assert_ok(ctx, mpl_expr_const(ctx, x, (flags & SYM_WIDE) != 0 ? 4096 : 8 * n, &e));
        assert_ok(ctx, mpl_expr_sub(ctx, x, sum, e, &sum));
        assert_ok(ctx, mpl_exprs_relation(ctx, x, sum));
    }
    return x;
}

/* Pairs whose output is born when the input dies, where sizes prove it. */
static inline void add_pairs(mpl_ctx *ctx, mpl_sym_problem *sp, mpl_rng *rng)
{
    mpl_problem *p = sp->at;
    size_t room = (size_t)p->n * p->n;

    assert_ok(ctx, mpl_new_each(ctx, room, p->in_place_in, p->in_place_out, p->in_place_step));
    for (uint32_t step = 0; step < p->n_steps; step++)
        for (mpl_buffer out = 0; out < p->n; out++)
            for (mpl_buffer in = 0; in < p->n; in++) {
                if (in == out || p->birth[out] != step || p->death[in] != step + 1 ||
                    p->birth[in] >= step || drawn(rng, 3) == 0 ||
                    (p->inside != NULL && p->inside[in] == p->inside[out]) ||
                    !mpl_expr_at_most(sp->exprs, sp->bytes[out], sp->bytes[in], NULL))
                    continue;
                p->in_place_in[p->n_in_place] = in;
                p->in_place_out[p->n_in_place] = out;
                p->in_place_step[p->n_in_place++] = step;
            }
}

/* The buffers 0 .. k lie one after the other. */
static inline void add_family(mpl_ctx *ctx, mpl_sym_problem *sp, uint32_t k)
{
    mpl_problem *p = sp->at;
    mpl_expr at = 0;

    assert_ok(ctx, mpl_new_each(ctx, p->n, p->inside, p->inside_at));
    assert_ok(ctx, mpl_new(ctx, sp->inside_at, p->n));
    for (mpl_buffer b = 0; b < p->n; b++) {
        p->inside[b] = b <= k ? 0 : b;
        p->align[b] = b <= k ? 1 : p->align[b];
        sp->inside_at[b] = b <= k ? at : 0;
        if (b <= k)
            assert_ok(ctx, mpl_expr_add(ctx, sp->exprs, at, sp->bytes[b], &at));
    }
}

/* n buffers over n_symbols dimensions. */
static inline mpl_sym_problem *random_sym(mpl_ctx *ctx, mpl_rng *rng, uint32_t n,
                                          uint32_t n_symbols, unsigned flags)
{
    mpl_sym_problem *sp = NULL;
    uint32_t steps = 3 + drawn(rng, n);
    int64_t value[MPL_MAX_SYMBOLS], size;

    assert_ok(ctx, mpl_new(ctx, sp, 1));
    sp->exprs = random_symbols(ctx, rng, n_symbols, flags);
    assert_ok(ctx, mpl_problem_new(ctx, "random", n, &sp->at));
    assert_ok(ctx, mpl_new(ctx, sp->bytes, n));
    sp->at->n_steps = steps + 1;
    assert_ok(ctx, mpl_point_corner(ctx, sp->exprs, 0, value));
    for (mpl_buffer b = 0; b < n; b++) {
        sp->at->birth[b] = drawn(rng, steps);
        sp->at->death[b] = sp->at->birth[b] + 1 + drawn(rng, steps - sp->at->birth[b]);
        if ((flags & SYM_ALIGNED) != 0)
            sp->at->align[b] = 4U << drawn(rng, 2);
        sp->bytes[b] = random_size(ctx, sp->exprs, rng);
    }
    if ((flags & SYM_FAMILIES) != 0)
        add_family(ctx, sp, 1 + drawn(rng, n - 2));
    for (mpl_buffer b = 0; b < n; b++) {
        assert_true(mpl_expr_eval(sp->exprs, sp->bytes[b], value, &size));
        sp->at->bytes[b] = (uint64_t)size;
        if (sp->inside_at != NULL) {
            assert_true(mpl_expr_eval(sp->exprs, sp->inside_at[b], value, &size));
            sp->at->inside_at[b] = (uint64_t)size;
        }
    }
    if ((flags & SYM_PAIRS) != 0)
        add_pairs(ctx, sp, rng);
    assert_ok(ctx, mpl_problem_check(ctx, sp->at));
    return sp;
}

/* The next point of the range in the order of counting; false: there is none. Begin with -1 in
 * value[0]. */
static inline bool next_point(const mpl_exprs *x, int64_t *value)
{
    uint32_t n = mpl_exprs_n_symbols(x);

    if (value[0] < 0) {
        for (uint32_t i = 0; i < n; i++)
            value[i] = mpl_exprs_symbol(x, i)->first;
        if (mpl_point_allowed(x, value))
            return true;
    }
    for (;;) {
        uint32_t i = 0;

        while (i < n && value[i] == mpl_exprs_symbol(x, i)->last)
            value[i] = mpl_exprs_symbol(x, i)->first, i++;
        if (i == n)
            return false;
        value[i] += mpl_exprs_symbol(x, i)->step;
        if (mpl_point_allowed(x, value))
            return true;
    }
}

/* Asserts that the template's plan of a shape is valid, by the verifier. Returns pool 0: where the
 * plan ends; of a constant plan what is reserved, which no plan's end exceeds. */
static inline uint64_t assert_valid_at(mpl_ctx *ctx, const mpl_template *t, const int64_t *value)
{
    owned_problem *p = NULL;
    owned_plan *plan = NULL;
    uint64_t pool[8] = {0};

    assert_ok(ctx, mpl_sym_problem_at(ctx, t->problem, value, &p));
    assert_ok(ctx, mpl_plan_new(ctx, p, &plan));
    assert_ok(ctx, mpl_template_offsets(ctx, t, value, plan->offset, NULL, pool));
    plan->claim = MPL_FEASIBLE;
    assert_ok(ctx, mpl_verify(ctx, p, plan));
    assert_true(t->cell[0].arena != NULL ? plan->peak_bytes <= pool[0]
                                         : plan->peak_bytes == pool[0]);
    return pool[0];
}
