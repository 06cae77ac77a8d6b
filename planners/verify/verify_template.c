/* verify_template.c -- that a template is right for every shape. See verify_template.h.
 *
 * What conflicts comes from the problem by mpl_verify_conflict, chains of relations from their
 * transitive closure. Regret is checked by verify_regret.c. */
#include "planners/verify/verify_template_priv.h"

__extension__ typedef __int128 wide;

typedef mpl_template_check check;

static bool is_pair(const mpl_problem *p, mpl_buffer in, mpl_buffer out)
{
    for (uint32_t i = 0; i < p->n_in_place; i++)
        if (p->in_place_in[i] == in && p->in_place_out[i] == out)
            return true;
    return false;
}

/* Whether a and b may have one offset: an in-place pair whose output is never larger. */
static bool may_share(const check *c, mpl_buffer a, mpl_buffer b)
{
    const mpl_expr *bytes = c->sp->bytes;
    const mpl_box *box = &c->cell->box;

    return (is_pair(c->p, a, b) && mpl_expr_at_most(c->sp->x, bytes[b], bytes[a], box)) ||
           (is_pair(c->p, b, a) && mpl_expr_at_most(c->sp->x, bytes[a], bytes[b], box));
}

/* The boxes are in the range, apart, and as large as it together. */
static mpl_status check_boxes(check *c)
{
    wide left = 1;

    for (uint32_t k = 0; k <= c->t->n_cells; k++) { /* the range itself, then the cells */
        const mpl_box *a = k > 0 ? &c->t->cell[k - 1].box : NULL;
        wide size = 1;

        for (uint32_t s = 0; s < mpl_exprs_n_symbols(c->sp->x); s++) {
            const mpl_symbol *v = mpl_exprs_symbol(c->sp->x, s);
            int64_t low = a != NULL ? a->low[s] : 0, last = (v->last - v->first) / v->step,
                    high = a != NULL ? a->high[s] : last;

            if (low < 0 || low > high || high > last ||
                __builtin_mul_overflow(size, high - low + 1, &size))
                return REFUSE(c, "cell %u leaves the range of '%.60s'", k, v->name);
        }
        left = k == 0 ? size : left - size;
        for (uint32_t i = 0; i + 1 < k; i++) {
            const mpl_box *b = &c->t->cell[i].box;
            bool apart = false;

            for (uint32_t s = 0; s < a->n; s++)
                apart = apart || a->high[s] < b->low[s] || b->high[s] < a->low[s];
            if (!apart)
                return REFUSE(c, "cells %u and %u share shapes", i, k - 1);
        }
    }
    return left == 0 ? MPL_OK : REFUSE(c, "the cells do not hold all shapes of the range");
}

/* Finds where each buffer lies in what moves with it; checks pairs and alignment there. */
static mpl_status find_bodies(check *c)
{
    const mpl_problem *p = c->p;

    for (mpl_buffer b = 0; b < p->n; b++) {
        mpl_buffer at = b;

        c->away[b] = 0, c->away[p->n + b] = c->sp->bytes[b];
        for (uint32_t steps = 0;; steps++) {
            bool part = p->inside != NULL && p->inside[at] != at;
            mpl_buffer on = part ? p->inside[at] : c->cell->on[at];

            if (on == at)
                break;
            if (steps == p->n || on >= p->n || p->pool[on] != p->pool[b] ||
                (part && c->cell->on[at] != at) || (!part && !may_share(c, at, on)))
                return REFUSE(c, "cell %u: buffer %u cannot lie on buffer %u", c->k, at, on);
            if (part)
                MPL_PASS(
                    mpl_expr_add(c->ctx, c->sp->x, c->away[b], c->sp->inside_at[at], &c->away[b]));
            at = on;
        }
        c->root[b] = at;
        if (mpl_expr_divisor(c->sp->x, c->away[b]) % p->align[b] != 0 ||
            !mpl_expr_at_most(c->sp->x, 0, c->away[b], &c->cell->box))
            return REFUSE(c, "cell %u: buffer %u is not always aligned to %u bytes", c->k, b,
                          p->align[b]);
    }
    memset(c->align, 0, p->n * sizeof *c->align);
    for (mpl_buffer b = 0; b < p->n; b++)
        c->align[c->root[b]] = mpl_max_u64(c->align[c->root[b]], p->align[b]);
    return MPL_OK;
}

/* Places root r in the order: closes the relations into its body, and finds what divides its ends.
 */
static void place_root(check *c, mpl_buffer r)
{
    const mpl_template_cell *cell = c->cell;
    const mpl_exprs *x = c->sp->x;
    uint32_t n_rules = c->rule_begin[c->n_order];
    uint64_t start = 0;

    for (uint32_t i = 0; i < cell->n_relations; i++) {
        mpl_buffer a = cell->below[i], b = cell->above[i];
        uint64_t *row = c->under + (size_t)b * c->n_words;

        if (c->root[b] != r)
            continue;
        c->rule[n_rules++] = i;
        mpl_bit_add(row, a);
        for (uint32_t w = 0; w < c->n_words; w++)
            row[w] |= c->under[(size_t)a * c->n_words + w];
        start = mpl_divisor(start, mpl_divisor(c->grain[a], mpl_expr_divisor(x, c->away[b])));
    }
    c->uneven[r] = start % c->align[r] != 0;
    for (mpl_buffer b = 0; b < c->p->n; b++)
        if (c->root[b] == r)
            c->grain[b] = mpl_divisor(
                c->uneven[r] ? c->align[r] : start,
                mpl_divisor(mpl_expr_divisor(x, c->away[b]), mpl_expr_divisor(x, c->sp->bytes[b])));
    c->order[c->n_order++] = r;
    c->rule_begin[c->n_order] = n_rules;
}

/* Closes the relations: each root after those below it. */
static mpl_status close_relations(check *c)
{
    const mpl_template_cell *cell = c->cell;
    uint32_t n = c->p->n, begin, *waits = NULL; /* by root; MPL_NONE: placed */
    mpl_status st = MPL_OK;

    mpl_free(c->ctx, c->rule);
    c->rule = NULL;
    MPL_TRY(mpl_new(c->ctx, c->rule, cell->n_relations));
    MPL_TRY(mpl_new(c->ctx, waits, n));
    memset(c->under, 0, (size_t)n * c->n_words * sizeof *c->under);
    c->n_order = c->rule_begin[0] = 0;
    do {
        begin = c->n_order;
        for (uint32_t i = 0; i < cell->n_relations; i++)
            if (waits[c->root[cell->below[i]]] != MPL_NONE && waits[c->root[cell->above[i]]] == 0)
                waits[c->root[cell->above[i]]] = 1;
        for (mpl_buffer r = 0; r < n; r++)
            if (c->root[r] == r && waits[r] == 0) {
                place_root(c, r);
                waits[r] = MPL_NONE;
            } else if (waits[r] == 1) {
                waits[r] = 0;
            }
    } while (c->n_order > begin);
    for (mpl_buffer r = 0; r < n; r++)
        if (c->root[r] == r && waits[r] != MPL_NONE)
            MPL_FAIL(c->ctx, MPL_EINVALID, "cell %u: relations run in a circle through buffer %u",
                     c->k, r);
out:
    mpl_free(c->ctx, waits);
    return st;
}

/* Whether a is proved to end before b begins: distances from one root or of a constant plan. */
static mpl_status ends_before(check *c, mpl_buffer a, mpl_buffer b, bool *proved)
{
    mpl_exprs *x = c->sp->x;
    const uint64_t *offset = c->cell->offset;
    mpl_expr end, begin = c->away[b], base;

    MPL_PASS(mpl_expr_add(c->ctx, x, c->away[a], c->sp->bytes[a], &end));
    if (c->root[a] != c->root[b]) {
        MPL_PASS(mpl_expr_const(c->ctx, x, (int64_t)offset[c->root[a]], &base));
        MPL_PASS(mpl_expr_add(c->ctx, x, end, base, &end));
        MPL_PASS(mpl_expr_const(c->ctx, x, (int64_t)offset[c->root[b]], &base));
        MPL_PASS(mpl_expr_add(c->ctx, x, begin, base, &begin));
    }
    *proved = mpl_expr_at_most(x, end, begin, &c->cell->box);
    return MPL_OK;
}

/* The offsets of a constant plan are aligned, and each buffer is proved to end within its arena. */
static mpl_status check_constant(check *c)
{
    const mpl_problem *p = c->p;
    const mpl_template_cell *cell = c->cell;

    for (mpl_buffer b = 0; b < p->n; b++) {
        mpl_buffer r = c->root[b];
        mpl_expr end, base;

        if (cell->offset[r] > INT64_MAX / 4 || cell->offset[r] % c->align[r] != 0)
            return REFUSE(c, "cell %u: buffer %u is not aligned", c->k, r);
        MPL_PASS(mpl_expr_add(c->ctx, c->sp->x, c->away[b], c->sp->bytes[b], &end));
        MPL_PASS(mpl_expr_const(c->ctx, c->sp->x,
                                (int64_t)mpl_min_u64(cell->arena[p->pool[b]], INT64_MAX / 2) -
                                    (int64_t)cell->offset[r],
                                &base));
        if (!mpl_expr_at_most(c->sp->x, end, base, &cell->box))
            return REFUSE(c, "cell %u: buffer %u may end beyond the arena", c->k, b);
    }
    return MPL_OK;
}

static mpl_status check_conflicts(check *c)
{
    const mpl_problem *p = c->p;
    const mpl_template_cell *cell = c->cell;

    if (cell->offset != NULL)
        MPL_PASS(check_constant(c));
    for (mpl_buffer b = 0; b < p->n; b++)
        for (mpl_buffer a = 0; a < b; a++) {
            bool together = c->root[a] == c->root[b], holds = false;

            if (!mpl_verify_conflict(p, a, b))
                continue;
            if (!together && cell->offset == NULL)
                holds = mpl_bit_has(c->under + (size_t)b * c->n_words, a) ||
                        mpl_bit_has(c->under + (size_t)a * c->n_words, b);
            else if (together && c->away[a] == c->away[b] && may_share(c, a, b))
                holds = true;
            else
                MPL_PASS(ends_before(c, a, b, &holds));
            if (!holds && (together || cell->offset != NULL))
                MPL_PASS(ends_before(c, b, a, &holds));
            if (!holds)
                return REFUSE(c, "cell %u: nothing keeps buffers %u and %u apart", c->k, a, b);
        }
    return MPL_OK;
}

static mpl_status check_loads(check *c)
{
    const mpl_template *t = c->t;

    for (uint32_t k = 0; k < t->n_loads; k++)
        for (uint32_t i = t->load_begin[k]; i < t->load_begin[k + 1]; i++)
            for (uint32_t j = t->load_begin[k]; j <= i; j++) {
                mpl_buffer a = t->load[j], b = t->load[i];

                if (c->p->pool[b] != 0 || (i != j && (!mpl_verify_conflict(c->p, a, b) ||
                                                      is_pair(c->p, a, b) || is_pair(c->p, b, a))))
                    return REFUSE(c, "load %u: buffers %u and %u do not add up in pool 0", k, a, b);
            }
    return MPL_OK;
}

mpl_status mpl_verify_template(mpl_ctx *ctx, const mpl_template *t, uint32_t most_boxes)
{
    mpl_status st = MPL_OK;
    const mpl_sym_problem *sp = t->problem;
    uint32_t n = sp->at->n;
    check c = {.ctx = ctx, .t = t, .sp = sp, .p = sp->at, .n_words = (n + 63) / 64};

    MPL_TRY(mpl_new_each(ctx, n, c.root, c.order, c.align, c.grain, c.uneven, c.start));
    MPL_TRY(mpl_new(ctx, c.rule_begin, n + 1));
    MPL_TRY(mpl_new(ctx, c.away, 2 * (size_t)n));
    MPL_TRY(mpl_new(ctx, c.under, (size_t)n * c.n_words));
    MPL_TRY(check_boxes(&c));
    MPL_TRY(check_loads(&c));
    for (c.k = 0; c.k < t->n_cells; c.k++) {
        c.cell = &t->cell[c.k], c.boxes = most_boxes;
        MPL_TRY(find_bodies(&c));
        MPL_TRY(close_relations(&c));
        MPL_TRY(check_conflicts(&c));
        MPL_TRY(mpl_verify_regret(&c));
    }
out:
    mpl_verify_regret_fini(&c);
    mpl_free_each(ctx, c.root, c.order, c.align, c.grain, c.uneven, c.start, c.away, c.under,
                  c.rule_begin, c.rule);
    return st;
}
