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
static int64_t height_at(check *self, uint32_t j, bool point)
{
    uint32_t n = self->p->n, n_points = mpl_controls_points(self->controls);
    const int64_t *low = self->low + j, *high = self->high + j;
    int64_t scale = mpl_controls_scale(self->controls), top = 0;

    if (self->cell->arena != NULL)
        return self->cell->arena[0] > (uint64_t)(MOST_SUM / scale)
                   ? -1
                   : (int64_t)self->cell->arena[0] * scale;
    for (uint32_t k = 0; k < self->n_order; k++) {
        mpl_buffer r = self->order[k];
        int64_t at = 0, align = (int64_t)self->align[r];

        for (uint32_t i = self->rule_begin[k]; i < self->rule_begin[k + 1]; i++) {
            mpl_buffer a = self->cell->below[self->rule[i]], b = self->cell->above[self->rule[i]];
            int64_t from = self->start[self->root[a]] + high[a * n_points] +
                           high[(n + a) * n_points] - low[b * n_points];

            if (from > MOST_SUM)
                return -1;
            at = from > at ? from : at;
        }
        if (point)
            at = (at / scale + align - 1) / align * align * scale;
        else if (self->uneven[r] && at > 0)
            at += (align - 1) * scale;
        self->start[r] = at;
    }
    for (mpl_buffer b = 0; b < n; b++) {
        int64_t end = self->start[self->root[b]] + high[b * n_points] + high[(n + b) * n_points];

        if (end > MOST_SUM)
            return -1;
        top = self->p->pool[b] == 0 && end > top ? end : top;
    }
    return top;
}

/* The sum of a load at a control point; at one shape, rounded to the grain but for one buffer. */
static int64_t load_at(const check *self, uint32_t k, uint32_t j, bool point)
{
    uint32_t n_points = mpl_controls_points(self->controls);
    int64_t scale = mpl_controls_scale(self->controls), sum = 0, spare = 0,
            grain = (int64_t)mpl_pool_grain(self->p, 0);

    for (uint32_t i = self->tmpl->load_begin[k]; i < self->tmpl->load_begin[k + 1]; i++) {
        int64_t size = self->low[(size_t)(self->p->n + self->tmpl->load[i]) * n_points + j];
        int64_t more = point ? (grain - size / scale % grain) % grain * scale : 0;

        sum = sum + size + more > MOST_SUM ? MOST_SUM : sum + size + more; /* less is sound */
        spare = more > spare ? more : spare;
    }
    return sum - spare;
}

/* Whether no shape of the box is above the regret: at each control point, the arena is at most that
 * of a mean of loads, which gets the best load of the worst point, up to 40 times. */
static bool box_holds(check *self, const mpl_box *box, bool point)
{
    uint32_t n_points = point ? 1 : mpl_controls_points(self->controls), worst = 0;
    wide over = 1;

    if (!mpl_controls_of(self->controls, box, self->low, self->high))
        return false;
    for (uint32_t j = 0; j < n_points; j++) {
        if ((self->arena[j] = height_at(self, j, point)) < 0)
            return false;
        for (uint32_t k = 0; k < self->tmpl->n_loads; k++)
            self->load[(size_t)k * n_points + j] = load_at(self, k, j, point);
        worst = self->arena[j] > self->arena[worst] ? j : worst;
    }
    memset(self->weight, 0, self->tmpl->n_loads * sizeof *self->weight);
    for (int64_t total = 1; total <= 40 && over > 0; total++) {
        uint32_t best = 0, at = worst;

        for (uint32_t k = 1; k < self->tmpl->n_loads; k++)
            if (self->load[(size_t)k * n_points + at] > self->load[(size_t)best * n_points + at])
                best = k;
        self->weight[best]++;
        over = 0;
        for (uint32_t j = 0; j < n_points; j++) {
            wide sum = 0, more;

            for (uint32_t k = 0; k < self->tmpl->n_loads; k++)
                sum += (wide)self->weight[k] * self->load[(size_t)k * n_points + j];
            more = (wide)self->arena[j] * total * (int64_t)MPL_REGRET_ONE -
                   sum * (int64_t)self->cell->regret.most;
            if (more > over)
                over = more, worst = j;
        }
    }
    return over == 0;
}

static mpl_status check_box(check *self, const mpl_box *given, uint32_t depth)
{
    int64_t low[MPL_MAX_SYMBOLS], high[MPL_MAX_SYMBOLS], middle;
    const mpl_exprs *exprs = self->sp->exprs;
    mpl_box box = {given->n, low, high};
    uint32_t cut = MPL_NONE;
    double most = 1;

    memcpy(low, given->low, box.n * sizeof *low);
    memcpy(high, given->high, box.n * sizeof *high);
    if (!mpl_box_narrow(exprs, &box))
        return MPL_OK;
    for (uint32_t s = 0; s < box.n; s++) {
        const mpl_symbol *symbol = mpl_exprs_symbol(exprs, s);
        double wide_by = (double)(symbol->first + high[s] * symbol->step) /
                         (double)(symbol->first + low[s] * symbol->step);

        if (wide_by > most && mpl_controls_use(self->controls, s))
            most = wide_by, cut = s;
    }
    if (depth == 1000 || self->boxes-- == 0)
        return MPL_ERROR(self->ctx, MPL_ELIMIT,
                         "cell %u: its regret is not proved within the boxes allowed", self->k);
    if (box_holds(self, &box, cut == MPL_NONE))
        return MPL_OK;
    if (cut == MPL_NONE)
        return REFUSE(self, "cell %u: a shape has more than the stated regret", self->k);
    middle = low[cut] + (high[cut] - low[cut]) / (most > 2 ? 4 : 2);
    high[cut] = middle;
    MPL_PASS(check_box(self, &box, depth + 1));
    memcpy(low, given->low, box.n * sizeof *low);
    memcpy(high, given->high, box.n * sizeof *high);
    low[cut] = middle + 1;
    return low[cut] > high[cut] ? MPL_OK : check_box(self, &box, depth + 1);
}

/* The stated shape: arena and bound there. */
static mpl_status check_shape(check *self)
{
    mpl_status st = MPL_OK;
    const mpl_regret *regret = &self->cell->regret;
    mpl_problem *p = NULL;
    uint64_t *offset = NULL, *pools = NULL, bound = 0;
    uint32_t where = 0;

    MPL_TRY(mpl_new(self->ctx, offset, self->p->n));
    MPL_TRY(mpl_new(self->ctx, pools, self->p->n_pools));
    MPL_TRY(mpl_template_offsets(self->ctx, self->tmpl, regret->at, offset, NULL, pools));
    MPL_TRY(mpl_template_find(self->ctx, self->tmpl, regret->at, &where));
    MPL_TRY(mpl_sym_problem_at(self->ctx, self->sp, regret->at, &p));
    MPL_TRY(mpl_lower_bound(self->ctx, p, 0, &bound, NULL));
    if (where != self->k || pools[0] != regret->arena || bound != regret->bound)
        st =
            REFUSE(self, "cell %u: the stated shape has %" PRIu64 " bytes over a bound of %" PRIu64,
                   self->k, pools[0], bound);
out:
    mpl_problem_free(self->ctx, p);
    mpl_free_each(self->ctx, offset, pools);
    return st;
}

void mpl_verify_regret_fini(check *self)
{
    mpl_controls_free(self->ctx, self->controls);
    mpl_free_each(self->ctx, self->low, self->high, self->load, self->arena, self->weight);
    self->controls = NULL, self->weight = NULL;
    self->low = self->high = self->load = self->arena = NULL;
}

static mpl_status open_controls(check *self)
{
    size_t n = 2 * (size_t)self->p->n, n_points;

    mpl_verify_regret_fini(self);
    MPL_PASS(
        mpl_controls_new(self->ctx, self->sp->exprs, (uint32_t)n, self->away, &self->controls));
    n_points = mpl_controls_points(self->controls);
    MPL_PASS(mpl_new_each(self->ctx, n * n_points, self->low, self->high));
    MPL_PASS(mpl_new(self->ctx, self->load, self->tmpl->n_loads * n_points));
    MPL_PASS(mpl_new(self->ctx, self->arena, n_points));
    return mpl_new(self->ctx, self->weight, self->tmpl->n_loads);
}

mpl_status mpl_verify_regret(check *self)
{
    if (self->cell->regret.at != NULL && self->cell->regret.bound > 0)
        MPL_PASS(check_shape(self));
    if (self->cell->regret.most == UINT64_MAX)
        return MPL_OK;
    if (self->tmpl->n_loads == 0)
        return REFUSE(self, "a regret is stated, and no loads to prove it");
    MPL_PASS(open_controls(self));
    return check_box(self, &self->cell->box, 0);
}
