/* verify_regret.c -- that no shape of a template's cell exceeds its stated regret.
 *
 * On a box, the highest chain of relations at each control point (bernstein.h) is compared with a
 * mean of loads; what that leaves open is halved, down to single shapes. */
#include "graphs/problem/bounds/bounds.h"
#include "planners/verify/verify_template_priv.h"

__extension__ typedef __int128 wide;
typedef mpl_template_check check;

#define MOST_SUM (INT64_C(1) << 60) /* of sizes at a control point, times the scale */

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

void mpl_verify_regret_fini(check *c)
{
    mpl_controls_free(c->ctx, c->controls);
    mpl_free_each(c->ctx, c->low, c->high, c->load, c->arena, c->weight);
    c->controls = NULL, c->weight = NULL;
    c->low = c->high = c->load = c->arena = NULL;
}

static mpl_status open_controls(check *c)
{
    size_t n = 2 * (size_t)c->p->n, n_points;

    mpl_verify_regret_fini(c);
    MPL_PASS(mpl_controls_new(c->ctx, c->sp->x, (uint32_t)n, c->away, &c->controls));
    n_points = mpl_controls_points(c->controls);
    MPL_PASS(mpl_new_each(c->ctx, n * n_points, c->low, c->high));
    MPL_PASS(mpl_new(c->ctx, c->load, c->t->n_loads * n_points));
    MPL_PASS(mpl_new(c->ctx, c->arena, n_points));
    return mpl_new(c->ctx, c->weight, c->t->n_loads);
}

mpl_status mpl_verify_regret(check *c)
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
