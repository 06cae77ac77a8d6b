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
static bool may_share(const check *self, mpl_buffer a, mpl_buffer b)
{
    const mpl_expr *bytes = self->sp->bytes;
    const mpl_box *box = &self->cell->box;

    return (is_pair(self->p, a, b) && mpl_expr_at_most(self->sp->exprs, bytes[b], bytes[a], box)) ||
           (is_pair(self->p, b, a) && mpl_expr_at_most(self->sp->exprs, bytes[a], bytes[b], box));
}

/* The boxes are in the range, apart, and as large as it together. */
static mpl_status check_boxes(check *self)
{
    wide left = 1;

    for (uint32_t k = 0; k <= self->tmpl->n_cells; k++) { /* the range itself, then the cells */
        const mpl_box *a = k > 0 ? &self->tmpl->cell[k - 1].box : NULL;
        wide size = 1;

        for (uint32_t s = 0; s < mpl_exprs_n_symbols(self->sp->exprs); s++) {
            const mpl_symbol *symbol = mpl_exprs_symbol(self->sp->exprs, s);
            int64_t low = a != NULL ? a->low[s] : 0,
                    last = (symbol->last - symbol->first) / symbol->step,
                    high = a != NULL ? a->high[s] : last;

            if (low < 0 || low > high || high > last ||
                __builtin_mul_overflow(size, high - low + 1, &size))
                return REFUSE(self, "cell %u leaves the range of '%.60s'", k, symbol->name);
        }
        left = k == 0 ? size : left - size;
        for (uint32_t i = 0; i + 1 < k; i++) {
            const mpl_box *b = &self->tmpl->cell[i].box;
            bool apart = false;

            for (uint32_t s = 0; s < a->n; s++)
                apart = apart || a->high[s] < b->low[s] || b->high[s] < a->low[s];
            if (!apart)
                return REFUSE(self, "cells %u and %u share shapes", i, k - 1);
        }
    }
    return left == 0 ? MPL_OK : REFUSE(self, "the cells do not hold all shapes of the range");
}

/* Finds where each buffer lies in what moves with it; checks pairs and alignment there. */
static mpl_status find_bodies(check *self)
{
    const mpl_problem *p = self->p;

    for (mpl_buffer b = 0; b < p->n; b++) {
        mpl_buffer at = b;

        self->away[b] = 0, self->away[p->n + b] = self->sp->bytes[b];
        for (uint32_t steps = 0;; steps++) {
            bool part = p->inside != NULL && p->inside[at] != at;
            mpl_buffer on = part ? p->inside[at] : self->cell->on[at];

            if (on == at)
                break;
            if (steps == p->n || on >= p->n || p->pool[on] != p->pool[b] ||
                (part && self->cell->on[at] != at) || (!part && !may_share(self, at, on)))
                return REFUSE(self, "cell %u: buffer %u cannot lie on buffer %u", self->k, at, on);
            if (part)
                MPL_PASS(mpl_expr_add(self->ctx, self->sp->exprs, self->away[b],
                                      self->sp->inside_at[at], &self->away[b]));
            at = on;
        }
        self->root[b] = at;
        if (mpl_expr_divisor(self->sp->exprs, self->away[b]) % p->align[b] != 0 ||
            !mpl_expr_at_most(self->sp->exprs, 0, self->away[b], &self->cell->box))
            return REFUSE(self, "cell %u: buffer %u is not always aligned to %u bytes", self->k, b,
                          p->align[b]);
    }
    memset(self->align, 0, p->n * sizeof *self->align);
    for (mpl_buffer b = 0; b < p->n; b++)
        self->align[self->root[b]] = mpl_max_u64(self->align[self->root[b]], p->align[b]);
    return MPL_OK;
}

/* Places root r in the order: closes the relations into its body, and finds what divides its ends.
 */
static void place_root(check *self, mpl_buffer r)
{
    const mpl_template_cell *cell = self->cell;
    const mpl_exprs *exprs = self->sp->exprs;
    uint32_t n_rules = self->rule_begin[self->n_order];
    uint64_t start = 0;

    for (uint32_t i = 0; i < cell->n_relations; i++) {
        mpl_buffer a = cell->below[i], b = cell->above[i];
        uint64_t *row = self->under + (size_t)b * self->n_words;

        if (self->root[b] != r)
            continue;
        self->rule[n_rules++] = i;
        mpl_bit_add(row, a);
        for (uint32_t w = 0; w < self->n_words; w++)
            row[w] |= self->under[(size_t)a * self->n_words + w];
        start =
            mpl_divisor(start, mpl_divisor(self->grain[a], mpl_expr_divisor(exprs, self->away[b])));
    }
    self->uneven[r] = start % self->align[r] != 0;
    for (mpl_buffer b = 0; b < self->p->n; b++)
        if (self->root[b] == r)
            self->grain[b] = mpl_divisor(self->uneven[r] ? self->align[r] : start,
                                         mpl_divisor(mpl_expr_divisor(exprs, self->away[b]),
                                                     mpl_expr_divisor(exprs, self->sp->bytes[b])));
    self->order[self->n_order++] = r;
    self->rule_begin[self->n_order] = n_rules;
}

/* Closes the relations: each root after those below it. */
static mpl_status close_relations(check *self)
{
    const mpl_template_cell *cell = self->cell;
    uint32_t n = self->p->n, begin, *waits = NULL; /* by root; MPL_NONE: placed */
    mpl_status st = MPL_OK;

    mpl_free(self->ctx, self->rule);
    self->rule = NULL;
    MPL_TRY(mpl_new(self->ctx, self->rule, cell->n_relations));
    MPL_TRY(mpl_new(self->ctx, waits, n));
    memset(self->under, 0, (size_t)n * self->n_words * sizeof *self->under);
    self->n_order = self->rule_begin[0] = 0;
    do {
        begin = self->n_order;
        for (uint32_t i = 0; i < cell->n_relations; i++)
            if (waits[self->root[cell->below[i]]] != MPL_NONE &&
                waits[self->root[cell->above[i]]] == 0)
                waits[self->root[cell->above[i]]] = 1;
        for (mpl_buffer r = 0; r < n; r++)
            if (self->root[r] == r && waits[r] == 0) {
                place_root(self, r);
                waits[r] = MPL_NONE;
            } else if (waits[r] == 1) {
                waits[r] = 0;
            }
    } while (self->n_order > begin);
    for (mpl_buffer r = 0; r < n; r++)
        if (self->root[r] == r && waits[r] != MPL_NONE)
            MPL_FAIL(self->ctx, MPL_EINVALID,
                     "cell %u: relations run in a circle through buffer %u", self->k, r);
out:
    mpl_free(self->ctx, waits);
    return st;
}

/* Whether a is proved to end before b begins: distances from one root or of a constant plan. */
static mpl_status ends_before(check *self, mpl_buffer a, mpl_buffer b, bool *proved)
{
    mpl_exprs *exprs = self->sp->exprs;
    const uint64_t *offset = self->cell->offset;
    mpl_expr end, begin = self->away[b], base;

    MPL_PASS(mpl_expr_add(self->ctx, exprs, self->away[a], self->sp->bytes[a], &end));
    if (self->root[a] != self->root[b]) {
        MPL_PASS(mpl_expr_const(self->ctx, exprs, (int64_t)offset[self->root[a]], &base));
        MPL_PASS(mpl_expr_add(self->ctx, exprs, end, base, &end));
        MPL_PASS(mpl_expr_const(self->ctx, exprs, (int64_t)offset[self->root[b]], &base));
        MPL_PASS(mpl_expr_add(self->ctx, exprs, begin, base, &begin));
    }
    *proved = mpl_expr_at_most(exprs, end, begin, &self->cell->box);
    return MPL_OK;
}

/* The offsets of a constant plan are aligned, and each buffer is proved to end within its arena. */
static mpl_status check_constant(check *self)
{
    const mpl_problem *p = self->p;
    const mpl_template_cell *cell = self->cell;

    for (mpl_buffer b = 0; b < p->n; b++) {
        mpl_buffer r = self->root[b];
        mpl_expr end, base;

        if (cell->offset[r] > INT64_MAX / 4 || cell->offset[r] % self->align[r] != 0)
            return REFUSE(self, "cell %u: buffer %u is not aligned", self->k, r);
        MPL_PASS(mpl_expr_add(self->ctx, self->sp->exprs, self->away[b], self->sp->bytes[b], &end));
        MPL_PASS(mpl_expr_const(self->ctx, self->sp->exprs,
                                (int64_t)mpl_min_u64(cell->arena[p->pool[b]], INT64_MAX / 2) -
                                    (int64_t)cell->offset[r],
                                &base));
        if (!mpl_expr_at_most(self->sp->exprs, end, base, &cell->box))
            return REFUSE(self, "cell %u: buffer %u may end beyond the arena", self->k, b);
    }
    return MPL_OK;
}

static mpl_status check_conflicts(check *self)
{
    const mpl_problem *p = self->p;
    const mpl_template_cell *cell = self->cell;

    if (cell->offset != NULL)
        MPL_PASS(check_constant(self));
    for (mpl_buffer b = 0; b < p->n; b++)
        for (mpl_buffer a = 0; a < b; a++) {
            bool together = self->root[a] == self->root[b], holds = false;

            if (!mpl_verify_conflict(p, a, b))
                continue;
            if (!together && cell->offset == NULL)
                holds = mpl_bit_has(self->under + (size_t)b * self->n_words, a) ||
                        mpl_bit_has(self->under + (size_t)a * self->n_words, b);
            else if (together && self->away[a] == self->away[b] && may_share(self, a, b))
                holds = true;
            else
                MPL_PASS(ends_before(self, a, b, &holds));
            if (!holds && (together || cell->offset != NULL))
                MPL_PASS(ends_before(self, b, a, &holds));
            if (!holds)
                return REFUSE(self, "cell %u: nothing keeps buffers %u and %u apart", self->k, a,
                              b);
        }
    return MPL_OK;
}

static mpl_status check_loads(check *self)
{
    const mpl_template *tmpl = self->tmpl;

    for (uint32_t k = 0; k < tmpl->n_loads; k++)
        for (uint32_t i = tmpl->load_begin[k]; i < tmpl->load_begin[k + 1]; i++)
            for (uint32_t j = tmpl->load_begin[k]; j <= i; j++) {
                mpl_buffer a = tmpl->load[j], b = tmpl->load[i];

                if (self->p->pool[b] != 0 ||
                    (i != j && (!mpl_verify_conflict(self->p, a, b) || is_pair(self->p, a, b) ||
                                is_pair(self->p, b, a))))
                    return REFUSE(self, "load %u: buffers %u and %u do not add up in pool 0", k, a,
                                  b);
            }
    return MPL_OK;
}

mpl_status mpl_verify_template(mpl_ctx *ctx, const mpl_template *tmpl, uint32_t most_boxes)
{
    mpl_status st = MPL_OK;
    const mpl_sym_problem *sp = tmpl->problem;
    uint32_t n = sp->at->n;
    check c = {.ctx = ctx, .tmpl = tmpl, .sp = sp, .p = sp->at, .n_words = (n + 63) / 64};

    MPL_TRY(mpl_new_each(ctx, n, c.root, c.order, c.align, c.grain, c.uneven, c.start));
    MPL_TRY(mpl_new(ctx, c.rule_begin, n + 1));
    MPL_TRY(mpl_new(ctx, c.away, 2 * (size_t)n));
    MPL_TRY(mpl_new(ctx, c.under, (size_t)n * c.n_words));
    MPL_TRY(check_boxes(&c));
    MPL_TRY(check_loads(&c));
    for (c.k = 0; c.k < tmpl->n_cells; c.k++) {
        c.cell = &tmpl->cell[c.k], c.boxes = most_boxes;
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
