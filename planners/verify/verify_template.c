/* verify_template.c -- that a template is right for every shape, and its regret as stated. See
 * verify_template.h.
 *
 * What conflicts comes from the problem by mpl_verify_conflict, chains of relations from their
 * transitive closure. Regret: on a box, the highest chain at each control point (bernstein.h) is
 * compared with a mean of loads; what that leaves open is halved, down to single shapes. */
#include "graphs/problem/bounds/bounds.h"
#include "graphs/symbols/bernstein.h"
#include "planners/verify/verify_template.h"
#include "planners/verify/verify.h"

__extension__ typedef __int128 wide;

#define MOST_SUM (INT64_C(1) << 60) /* of sizes at a control point, times the scale */

typedef struct check {
    mpl_ctx *ctx;
    const mpl_template *t;
    const mpl_sym_problem *sp;
    const mpl_problem *p;
    const mpl_template_cell *cell;
    uint32_t k;        /* the cell */
    uint32_t n_words;  /* of a row of `under` */
    mpl_buffer *root;  /* [n] what moves with b begins there */
    mpl_expr *away;    /* [n] distance from the root; [n, 2n): the bytes, for control values */
    uint64_t *under;   /* row b: buffers below b by relations */
    mpl_buffer *order; /* [n] roots, each after those below it */
    uint32_t n_order;
    uint32_t *rule_begin, *rule; /* relations by the place of the root above in `order` */
    uint64_t *align;             /* [n] of a root: the largest of its members [byte] */
    uint64_t *grain;             /* [n] divides every end of b [byte] */
    uint8_t *uneven;             /* [n] of a root: the alignment may add bytes */
    mpl_controls *controls;
    int64_t *low, *high, *start; /* [2n * points], [n] by root, times the scale */
    int64_t *load, *arena;       /* [loads * points], [points] */
    uint32_t *weight;            /* [loads] */
    uint32_t boxes;              /* left */
} check;

#define REFUSE(c, ...) MPL_ERROR((c)->ctx, MPL_EINVALID, __VA_ARGS__)

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

/* ---- regret ---- */

/* The height of pool 0 at a control point, no less, times the scale; -1: too large. */
static int64_t height_at(check *c, uint32_t j, bool point)
{
    uint32_t n = c->p->n, n_points = mpl_controls_points(c->controls);
    const int64_t *low = c->low + j, *high = c->high + j;
    int64_t scale = mpl_controls_scale(c->controls), top = 0;

    if (c->cell->arena != NULL)
        return c->cell->arena[0] > (uint64_t)(MOST_SUM / scale)
                   ? -1
                   : (int64_t)c->cell->arena[0] * scale;
    for (uint32_t k = 0; k < c->n_order; k++) {
        mpl_buffer r = c->order[k];
        int64_t at = 0, align = (int64_t)c->align[r];

        for (uint32_t i = c->rule_begin[k]; i < c->rule_begin[k + 1]; i++) {
            mpl_buffer a = c->cell->below[c->rule[i]], b = c->cell->above[c->rule[i]];
            int64_t from = c->start[c->root[a]] + high[a * n_points] + high[(n + a) * n_points] -
                           low[b * n_points];

            if (from > MOST_SUM)
                return -1;
            at = from > at ? from : at;
        }
        if (point)
            at = (at / scale + align - 1) / align * align * scale;
        else if (c->uneven[r] && at > 0)
            at += (align - 1) * scale;
        c->start[r] = at;
    }
    for (mpl_buffer b = 0; b < n; b++) {
        int64_t end = c->start[c->root[b]] + high[b * n_points] + high[(n + b) * n_points];

        if (end > MOST_SUM)
            return -1;
        top = c->p->pool[b] == 0 && end > top ? end : top;
    }
    return top;
}

/* The sum of a load at a control point; at one shape, rounded to the grain but for one buffer. */
static int64_t load_at(const check *c, uint32_t k, uint32_t j, bool point)
{
    uint32_t n_points = mpl_controls_points(c->controls);
    int64_t scale = mpl_controls_scale(c->controls), sum = 0, spare = 0,
            grain = (int64_t)mpl_pool_grain(c->p, 0);

    for (uint32_t i = c->t->load_begin[k]; i < c->t->load_begin[k + 1]; i++) {
        int64_t size = c->low[(size_t)(c->p->n + c->t->load[i]) * n_points + j];
        int64_t more = point ? (grain - size / scale % grain) % grain * scale : 0;

        sum = sum + size + more > MOST_SUM ? MOST_SUM : sum + size + more; /* less is sound */
        spare = more > spare ? more : spare;
    }
    return sum - spare;
}

/* Whether no shape of the box is above the regret: at each control point, the arena is at most that
 * of a mean of loads, which gets the best load of the worst point, up to 40 times. */
static bool box_holds(check *c, const mpl_box *box, bool point)
{
    uint32_t n_points = point ? 1 : mpl_controls_points(c->controls), worst = 0;
    wide over = 1;

    if (!mpl_controls_of(c->controls, box, c->low, c->high))
        return false;
    for (uint32_t j = 0; j < n_points; j++) {
        if ((c->arena[j] = height_at(c, j, point)) < 0)
            return false;
        for (uint32_t k = 0; k < c->t->n_loads; k++)
            c->load[(size_t)k * n_points + j] = load_at(c, k, j, point);
        worst = c->arena[j] > c->arena[worst] ? j : worst;
    }
    memset(c->weight, 0, c->t->n_loads * sizeof *c->weight);
    for (int64_t total = 1; total <= 40 && over > 0; total++) {
        uint32_t best = 0, at = worst;

        for (uint32_t k = 1; k < c->t->n_loads; k++)
            if (c->load[(size_t)k * n_points + at] > c->load[(size_t)best * n_points + at])
                best = k;
        c->weight[best]++;
        over = 0;
        for (uint32_t j = 0; j < n_points; j++) {
            wide sum = 0, more;

            for (uint32_t k = 0; k < c->t->n_loads; k++)
                sum += (wide)c->weight[k] * c->load[(size_t)k * n_points + j];
            more = (wide)c->arena[j] * total * (int64_t)MPL_REGRET_ONE -
                   sum * (int64_t)c->cell->regret.most;
            if (more > over)
                over = more, worst = j;
        }
    }
    return over == 0;
}

static mpl_status check_box(check *c, const mpl_box *given, uint32_t depth)
{
    int64_t low[MPL_MAX_SYMBOLS], high[MPL_MAX_SYMBOLS], middle;
    const mpl_exprs *x = c->sp->x;
    mpl_box box = {given->n, low, high};
    uint32_t cut = MPL_NONE;
    double most = 1;

    memcpy(low, given->low, box.n * sizeof *low);
    memcpy(high, given->high, box.n * sizeof *high);
    if (!mpl_box_narrow(x, &box))
        return MPL_OK;
    for (uint32_t s = 0; s < box.n; s++) {
        const mpl_symbol *v = mpl_exprs_symbol(x, s);
        double wide_by =
            (double)(v->first + high[s] * v->step) / (double)(v->first + low[s] * v->step);

        if (wide_by > most && mpl_controls_use(c->controls, s))
            most = wide_by, cut = s;
    }
    if (depth == 1000 || c->boxes-- == 0)
        return MPL_ERROR(c->ctx, MPL_ELIMIT,
                         "cell %u: its regret is not proved within the boxes allowed", c->k);
    if (box_holds(c, &box, cut == MPL_NONE))
        return MPL_OK;
    if (cut == MPL_NONE)
        return REFUSE(c, "cell %u: a shape has more than the stated regret", c->k);
    middle = low[cut] + (high[cut] - low[cut]) / (most > 2 ? 4 : 2);
    high[cut] = middle;
    MPL_PASS(check_box(c, &box, depth + 1));
    memcpy(low, given->low, box.n * sizeof *low);
    memcpy(high, given->high, box.n * sizeof *high);
    low[cut] = middle + 1;
    return low[cut] > high[cut] ? MPL_OK : check_box(c, &box, depth + 1);
}

/* The stated shape: arena and bound there. */
static mpl_status check_shape(check *c)
{
    mpl_status st = MPL_OK;
    const mpl_regret *r = &c->cell->regret;
    mpl_problem *p = NULL;
    uint64_t *offset = NULL, *pools = NULL, bound = 0;
    uint32_t where = 0;

    MPL_TRY(mpl_new(c->ctx, offset, c->p->n));
    MPL_TRY(mpl_new(c->ctx, pools, c->p->n_pools));
    MPL_TRY(mpl_template_offsets(c->ctx, c->t, r->at, offset, NULL, pools));
    MPL_TRY(mpl_template_find(c->ctx, c->t, r->at, &where));
    MPL_TRY(mpl_sym_problem_at(c->ctx, c->sp, r->at, &p));
    MPL_TRY(mpl_lower_bound(c->ctx, p, 0, &bound, NULL));
    if (where != c->k || pools[0] != r->arena || bound != r->bound)
        st = REFUSE(c, "cell %u: the stated shape has %" PRIu64 " bytes over a bound of %" PRIu64,
                    c->k, pools[0], bound);
out:
    mpl_problem_free(c->ctx, p);
    mpl_free_each(c->ctx, offset, pools);
    return st;
}

static mpl_status open_controls(check *c)
{
    size_t n = 2 * (size_t)c->p->n, n_points;

    mpl_controls_free(c->ctx, c->controls);
    mpl_free_each(c->ctx, c->low, c->high, c->load, c->arena, c->weight);
    c->controls = NULL, c->weight = NULL;
    c->low = c->high = c->load = c->arena = NULL;
    MPL_PASS(mpl_controls_new(c->ctx, c->sp->x, (uint32_t)n, c->away, &c->controls));
    n_points = mpl_controls_points(c->controls);
    MPL_PASS(mpl_new_each(c->ctx, n * n_points, c->low, c->high));
    MPL_PASS(mpl_new(c->ctx, c->load, c->t->n_loads * n_points));
    MPL_PASS(mpl_new(c->ctx, c->arena, n_points));
    return mpl_new(c->ctx, c->weight, c->t->n_loads);
}

static mpl_status check_regret(check *c)
{
    if (c->cell->regret.at != NULL && c->cell->regret.bound > 0)
        MPL_PASS(check_shape(c));
    if (c->cell->regret.most == UINT64_MAX)
        return MPL_OK;
    if (c->t->n_loads == 0)
        return REFUSE(c, "a regret is stated, and no loads to prove it");
    MPL_PASS(open_controls(c));
    return check_box(c, &c->cell->box, 0);
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
        MPL_TRY(check_regret(&c));
    }
out:
    mpl_controls_free(ctx, c.controls);
    mpl_free_each(ctx, c.root, c.order, c.align, c.grain, c.uneven, c.start, c.away, c.under,
                  c.rule_begin, c.rule, c.low, c.high, c.load, c.arena, c.weight);
    return st;
}
