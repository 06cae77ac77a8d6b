/* regret.c -- the worst arena over bound of a template, from both sides.
 *
 * Idea     An offset is a maximum over paths of sums of sizes, the bound a maximum over loads. On a
 *          box, no path exceeds r times a mean of loads where that holds at the control points of
 *          the box (bernstein.h); there it is one walk over the relations. Boxes are halved, the
 *          worst first, down to single shapes, which are evaluated.
 * Source   this project; means of loads by fictitious play (Brown, 1951)
 * Limits   Sizes that are no multiples of the alignment cost alignment - 1 bytes a relation except
 *          at single shapes. */
#include "graphs/problem/bounds/bounds.h"
#include "graphs/symbols/bernstein.h"
#include "planners/template/template_priv.h"

#include <stdlib.h>

__extension__ typedef __int128 wide;

#define MOST_SUM (INT64_C(1) << 60) /* of sizes at a control point */
enum { ROUNDS = 24, DRAWN = 48, MOST_LOADS = 96 };

typedef struct part {
    uint64_t most; /* regret [millionths] */
    int64_t *end;  /* low[symbols], high[symbols] */
} part;

typedef struct prover {
    mpl_ctx *ctx;
    mpl_template *tmpl;
    const mpl_problem *p;
    mpl_template_cell *cell;
    mpl_controls *controls;
    uint32_t n_points;
    int64_t scale, pool_grain; /* of pool 0 [byte] */
    int64_t *low, *high;       /* [values * points] */
    int64_t *offset;           /* [n] at a control point, times the scale */
    int64_t *arena, *load;     /* [points], [loads * points] */
    uint32_t *weight;          /* [loads] */
    uint64_t *grain;           /* [n] divides the end of each buffer [byte] */
    uint8_t *loose;            /* [bodies] the alignment may cost bytes */
    part *heap;
    size_t n, cap;
    mpl_ratio attained;
} prover;

uint64_t mpl_ratio_parts(mpl_ratio r)
{
    wide bound = r.bound > 0 ? (wide)r.bound : 1,
         parts = ((wide)r.arena * (int64_t)MPL_REGRET_ONE + bound - 1) / bound;

    return r.bound == 0 || parts > MPL_REGRET_MOST ? UINT64_MAX : (uint64_t)parts;
}

mpl_status mpl_template_bound(mpl_ctx *ctx, const mpl_sym_problem *sp, const int64_t *value,
                              uint64_t *bytes)
{
    mpl_problem *p = NULL;
    mpl_status st = mpl_sym_problem_at(ctx, sp, value, &p);

    if (st == MPL_OK)
        st = mpl_lower_bound(ctx, p, 0, bytes, NULL);
    mpl_problem_free(ctx, p);
    return st;
}

/* ---- loads ---- */

/* Adds a set, member[n] of 1s, unless it is there or in another. */
static mpl_status add_load(mpl_ctx *ctx, mpl_template *tmpl, const uint8_t *member)
{
    uint32_t n = 0, *begin = tmpl->load_begin;
    mpl_buffer *load = tmpl->load;

    for (mpl_buffer b = 0; b < tmpl->problem->at->n; b++)
        n += member[b];
    for (uint32_t i = 0; i < tmpl->n_loads; i++) {
        uint32_t shared = 0;

        for (uint32_t k = begin[i]; k < begin[i + 1]; k++)
            shared += member[load[k]];
        if (shared == n)
            return MPL_OK;
    }
    if (tmpl->n_loads == MOST_LOADS)
        return MPL_OK;
    MPL_PASS(mpl_realloc_bytes(ctx, (void **)&tmpl->load_begin, tmpl->n_loads + 1,
                               tmpl->n_loads + 2, sizeof *tmpl->load_begin));
    begin = tmpl->load_begin;
    MPL_PASS(mpl_realloc_bytes(ctx, (void **)&tmpl->load, begin[tmpl->n_loads],
                               begin[tmpl->n_loads] + n, sizeof *tmpl->load));
    begin[tmpl->n_loads + 1] = begin[tmpl->n_loads];
    for (mpl_buffer b = 0; b < tmpl->problem->at->n; b++)
        if (member[b])
            tmpl->load[begin[tmpl->n_loads + 1]++] = b;
    tmpl->n_loads++;
    return MPL_OK;
}

/* Buffers of pool 0 needed at a step, without the outputs (or inputs) of its in-place pairs. */
static uint64_t step_set(const mpl_problem *p, uint32_t step, bool inputs, uint8_t *member)
{
    uint64_t sum = 0;

    for (mpl_buffer b = 0; b < p->n; b++)
        member[b] = p->pool[b] == 0 && mpl_needed_at(p, b, step);
    for (uint32_t i = 0; i < p->n_in_place; i++)
        if (member[p->in_place_in[i]] && member[p->in_place_out[i]])
            member[inputs ? p->in_place_out[i] : p->in_place_in[i]] = 0;
    for (mpl_buffer b = 0; b < p->n; b++)
        sum += member[b] != 0 ? p->bytes[b] : 0;
    return sum;
}

/* The heaviest set of a step, or the largest buffer, where the bound has no witness. */
static void heaviest_set(const mpl_problem *p, uint8_t *member)
{
    uint64_t most = 0;
    uint32_t at = 0;
    mpl_buffer largest = MPL_NONE;

    for (uint32_t i = 0; p->before == NULL && i < 2 * p->n_steps; i++) {
        uint64_t sum = step_set(p, i / 2, i % 2 == 0, member);

        if (sum > most)
            most = sum, at = i;
    }
    if (most > 0) {
        step_set(p, at / 2, at % 2 == 0, member);
        return;
    }
    for (mpl_buffer b = 0; b < p->n; b++) {
        member[b] = 0;
        if (p->pool[b] == 0 && (largest == MPL_NONE || p->bytes[b] > p->bytes[largest]))
            largest = b;
    }
    if (largest != MPL_NONE)
        member[largest] = 1;
}

/* Adds the witness of the bound at a shape; *bound is the house's. */
static mpl_status load_at(mpl_ctx *ctx, mpl_template *tmpl, const int64_t *value, uint64_t *bound)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;
    uint8_t *member = NULL;

    MPL_TRY(mpl_sym_problem_at(ctx, tmpl->problem, value, &p));
    MPL_TRY(mpl_new(ctx, member, p->n));
    MPL_TRY(mpl_lower_bound(ctx, p, 0, bound, member));
    if (memchr(member, 1, p->n) == NULL)
        heaviest_set(p, member);
    MPL_TRY(add_load(ctx, tmpl, member));
out:
    mpl_problem_free(ctx, p);
    mpl_free(ctx, member);
    return st;
}

mpl_status mpl_regret_loads(mpl_ctx *ctx, mpl_template *tmpl)
{
    const mpl_exprs *exprs = tmpl->problem->exprs;
    uint32_t n = mpl_exprs_n_symbols(exprs);
    int64_t value[MPL_MAX_SYMBOLS];
    uint64_t bound;
    mpl_rng rng;

    mpl_rng_init(&rng, 1);
    for (uint32_t corner = 0; corner < (n < 6 ? 1U << n : 64); corner++) {
        for (uint32_t i = 0; i < n; i++)
            value[i] = (corner >> (i % 6) & 1) != 0 ? mpl_exprs_symbol(exprs, i)->last
                                                    : mpl_exprs_symbol(exprs, i)->first;
        if (mpl_point_allowed(exprs, value))
            MPL_PASS(load_at(ctx, tmpl, value, &bound));
    }
    for (uint32_t i = 0; i < DRAWN; i++) {
        MPL_PASS(mpl_shape_draw(ctx, exprs, NULL, i % 2 == 0, &rng, value));
        MPL_PASS(load_at(ctx, tmpl, value, &bound));
    }
    return MPL_OK;
}

/* ---- one box ---- */

/* Finds what divides the ends of buffers, and which bodies the alignment may move. */
static void find_grains(prover *self)
{
    const mpl_template_code *code = self->cell->code;
    const mpl_exprs *exprs = self->tmpl->problem->exprs;

    for (uint32_t k = 0; k < code->n_bodies; k++) {
        uint64_t start = 0;

        for (uint32_t i = code->rule_begin[k]; i < code->rule_begin[k + 1]; i++) {
            mpl_expr away = code->value_of[code->distance[code->upper[i]]];

            start = mpl_divisor(
                start, mpl_divisor(self->grain[code->lower[i]], mpl_expr_divisor(exprs, away)));
        }
        self->loose[k] = start % code->align[k] != 0;
        start = self->loose[k] ? code->align[k] : start;
        for (uint32_t i = code->body_begin[k]; i < code->body_begin[k + 1]; i++) {
            mpl_buffer b = code->member[i];

            start = mpl_divisor(start, mpl_expr_divisor(exprs, code->value_of[code->distance[b]]));
            self->grain[b] =
                mpl_divisor(start, mpl_expr_divisor(exprs, code->value_of[code->bytes[b]]));
        }
    }
}

/* The height of pool 0 at a control point, times the scale, at least; -1: overflow. */
static int64_t height_at(prover *self, uint32_t point, bool exact)
{
    const mpl_template_code *code = self->cell->code;
    const int64_t *low = self->low + point, *high = self->high + point;
    uint32_t n_points = self->n_points;
    int64_t top = 0;

    if (self->cell->arena != NULL)
        return self->cell->arena[0] > (uint64_t)(MOST_SUM / self->scale)
                   ? -1
                   : (int64_t)self->cell->arena[0] * self->scale;
    for (uint32_t k = 0; k < code->n_bodies; k++) {
        int64_t start = 0, align = code->align[k], up = 0;
        uint32_t begin = code->body_begin[k], end = code->body_begin[k + 1];

        for (uint32_t i = begin; i < end; i++) {
            mpl_buffer b = code->member[i], on = code->parent[b];

            self->offset[b] = (on == b ? 0 : self->offset[on]) + low[code->distance[b] * n_points];
        }
        for (uint32_t i = code->rule_begin[k]; i < code->rule_begin[k + 1]; i++) {
            mpl_buffer b = code->lower[i];
            int64_t from =
                self->offset[b] + high[code->bytes[b] * n_points] - self->offset[code->upper[i]];

            start = from > start ? from : start;
        }
        if (exact)
            start = (start / self->scale + align - 1) / align * align * self->scale;
        else if (self->loose[k] && start > 0)
            start += (align - 1) * self->scale;
        for (uint32_t i = begin; i < end; i++) {
            mpl_buffer b = code->member[i], on = code->parent[b];

            /* from here on the end counts: distances at their largest */
            up = on == b ? 0 : self->offset[on] - start;
            self->offset[b] = start + up + high[code->distance[b] * n_points];
            up = self->offset[b] + high[code->bytes[b] * n_points];
            if (up < 0 || up > MOST_SUM)
                return -1;
            top = self->p->pool[b] == 0 && up > top ? up : top;
        }
    }
    return top;
}

/* A load at a control point: sums of sizes; of one shape, rounded as the house's bound is. */
static int64_t load_of(const prover *self, uint32_t which, uint32_t point, bool exact,
                       int64_t grain)
{
    const mpl_template *tmpl = self->tmpl;
    int64_t sum = 0, most = 0;

    for (uint32_t i = tmpl->load_begin[which]; i < tmpl->load_begin[which + 1]; i++) {
        int64_t size =
            self->low[(size_t)self->cell->code->bytes[tmpl->load[i]] * self->n_points + point];

        if (exact) {
            int64_t bytes = size / self->scale, round = (bytes + grain - 1) / grain * grain;

            most = round - bytes > most ? round - bytes : most;
            size = round * self->scale;
        }
        sum = sum + size > MOST_SUM ? MOST_SUM : sum + size; /* less is a bound, too */
    }
    return sum - most * self->scale;
}

/* The largest arena over the mean of loads by weight; *point: where. */
static uint64_t worst_point(const prover *self, uint32_t *point)
{
    uint64_t worst = 0;
    int64_t total = 0;

    for (uint32_t k = 0; k < self->tmpl->n_loads; k++)
        total += self->weight[k];
    for (uint32_t j = 0; j < self->n_points; j++) {
        wide sum = 0, parts;

        for (uint32_t k = 0; k < self->tmpl->n_loads; k++)
            if (self->weight[k] != 0)
                sum += (wide)self->load[(size_t)k * self->n_points + j] * self->weight[k];
        if (sum <= 0) {
            *point = j;
            return UINT64_MAX;
        }
        parts = ((wide)self->arena[j] * total * (int64_t)MPL_REGRET_ONE + sum - 1) / sum;
        if (parts > MPL_REGRET_MOST)
            return UINT64_MAX;
        if ((uint64_t)parts >= worst)
            worst = (uint64_t)parts, *point = j;
    }
    return worst;
}

/* A regret that no shape of the box exceeds; mixes loads while it is above `enough`. */
static uint64_t most_of(prover *self, const mpl_box *box, uint64_t enough)
{
    uint32_t n_loads = self->tmpl->n_loads, point = 0, best_load = 0;
    uint64_t best = UINT64_MAX;
    bool exact = true;

    for (uint32_t s = 0; s < box->n; s++)
        exact = exact && (!mpl_controls_use(self->controls, s) || box->low[s] == box->high[s]);
    if (!mpl_controls_of(self->controls, box, self->low, self->high))
        return UINT64_MAX;
    for (uint32_t j = 0; j < self->n_points; j++) {
        self->arena[j] = exact && j > 0 ? self->arena[0] : height_at(self, j, exact);
        if (self->arena[j] < 0)
            return UINT64_MAX;
        for (uint32_t k = 0; k < n_loads; k++)
            self->load[(size_t)k * self->n_points + j] =
                load_of(self, k, j, exact, self->pool_grain);
    }
    memset(self->weight, 0, n_loads * sizeof *self->weight);
    for (uint32_t k = 0; k < n_loads; k++) {
        uint64_t most;

        self->weight[k] = 1;
        most = worst_point(self, &point);
        self->weight[k] = 0;
        if (most < best)
            best = most, best_load = k;
    }
    self->weight[best_load] = 1;
    for (uint32_t round = 0; !exact && round < ROUNDS && best > enough; round++) {
        uint32_t best_there = 0;
        uint64_t most = worst_point(self, &point);

        best = most < best ? most : best;
        for (uint32_t k = 1; k < n_loads; k++)
            if (self->load[(size_t)k * self->n_points + point] >
                self->load[(size_t)best_there * self->n_points + point])
                best_there = k;
        self->weight[best_there]++;
    }
    return best;
}

/* ---- shapes that attain it ---- */

static mpl_status try_shape(prover *self, const int64_t *count)
{
    mpl_status st = MPL_OK;
    const mpl_exprs *exprs = self->tmpl->problem->exprs;
    int64_t value[MPL_MAX_SYMBOLS];
    mpl_box box = {self->cell->box.n, NULL, NULL};
    mpl_ratio now;
    uint64_t quick;

    for (uint32_t i = 0; i < box.n; i++) {
        const mpl_symbol *symbol = mpl_exprs_symbol(exprs, i);

        value[i] = symbol->first + count[i] * symbol->step;
    }
    if (!mpl_point_allowed(exprs, value))
        return MPL_OK;
    MPL_TRY(mpl_new_each(self->ctx, box.n, box.low, box.high));
    memcpy(box.low, count, box.n * sizeof *count);
    memcpy(box.high, count, box.n * sizeof *count);
    quick = most_of(self, &box, 0);
    if (self->attained.bound > 0 && quick <= mpl_ratio_parts(self->attained))
        goto out;
    now.arena = (uint64_t)(self->arena[0] / self->scale);
    MPL_TRY(load_at(self->ctx, self->tmpl, value, &now.bound));
    if (self->attained.bound == 0 || mpl_ratio_less(self->attained, now)) {
        self->attained = now;
        memcpy(self->cell->regret.at, value, box.n * sizeof *value);
    }
out:
    mpl_box_free(self->ctx, &box);
    return st;
}

/* The corners and the middle of a box. */
static mpl_status try_corners(prover *self, const mpl_box *box)
{
    int64_t count[MPL_MAX_SYMBOLS];
    uint32_t n = box->n < 4 ? box->n : 4;

    for (uint32_t corner = 0; corner <= 1U << n; corner++) {
        for (uint32_t i = 0; i < box->n; i++)
            count[i] = corner == 1U << n ? box->low[i] + (box->high[i] - box->low[i]) / 2
                       : (corner >> (i % 4) & 1) != 0 ? box->high[i]
                                                      : box->low[i];
        MPL_PASS(try_shape(self, count));
    }
    return MPL_OK;
}

/* ---- boxes, the worst first ---- */

static bool worse(const part *a, const part *b)
{
    return a->most > b->most;
}

static void sift_down(prover *self, size_t i)
{
    for (size_t child; (child = 2 * i + 1) < self->n; i = child) {
        part moved = self->heap[i];

        child += child + 1 < self->n && worse(&self->heap[child + 1], &self->heap[child]);
        if (!worse(&self->heap[child], &moved))
            return;
        self->heap[i] = self->heap[child], self->heap[child] = moved;
    }
}

static mpl_status push(prover *self, const mpl_box *box, uint64_t slack)
{
    part one = {0, NULL};
    uint64_t reached = self->attained.bound > 0 ? mpl_ratio_parts(self->attained) : 0;
    mpl_box kept = *box;
    size_t i;

    MPL_PASS(mpl_reserve(self->ctx, self->heap, self->cap, self->n + 1));
    MPL_PASS(mpl_new(self->ctx, one.end, 2 * (size_t)box->n));
    kept.low = one.end, kept.high = one.end + box->n;
    memcpy(kept.low, box->low, box->n * sizeof *one.end);
    memcpy(kept.high, box->high, box->n * sizeof *one.end);
    if (!mpl_box_narrow(self->tmpl->problem->exprs, &kept)) {
        mpl_free(self->ctx, one.end);
        return MPL_OK;
    }
    one.most = most_of(self, &kept, reached + slack);
    for (i = self->n++; i > 0 && worse(&one, &self->heap[(i - 1) / 2]); i = (i - 1) / 2)
        self->heap[i] = self->heap[(i - 1) / 2];
    self->heap[i] = one;
    return MPL_OK;
}

/* The symbol whose values range over the largest ratio, and the count at which to halve it. */
static uint32_t widest(const prover *self, const mpl_box *box, int64_t *middle)
{
    uint32_t best = MPL_NONE;
    double most = 0;

    for (uint32_t i = 0; i < box->n; i++) {
        const mpl_symbol *symbol = mpl_exprs_symbol(self->tmpl->problem->exprs, i);
        double low = (double)(symbol->first + box->low[i] * symbol->step),
               high = (double)(symbol->first + box->high[i] * symbol->step);

        if (mpl_controls_use(self->controls, i) && box->high[i] > box->low[i] &&
            (best == MPL_NONE || high / low > most)) {
            int64_t at = box->low[i];

            best = i, most = high / low;
            /* the largest count whose value is at most the geometric mean */
            for (int64_t step = INT64_C(1) << 31; step > 0; step /= 2) {
                double value = (double)(symbol->first + (at + step) * symbol->step);

                if (at + step < box->high[i] && value * value <= low * high)
                    at += step;
            }
            *middle = at;
        }
    }
    return best;
}

static mpl_status halve(prover *self, const part *one, uint64_t slack)
{
    mpl_status st = MPL_OK;
    uint32_t n = self->cell->box.n, s;
    int64_t room[MPL_MAX_SYMBOLS], middle = 0;
    mpl_box box = {n, one->end, one->end + n}, half = box;

    s = widest(self, &box, &middle);
    mpl_assert(s != MPL_NONE);
    memcpy(room, box.high, n * sizeof *room);
    half.high = room, room[s] = middle;
    MPL_TRY(try_corners(self, &half));
    MPL_TRY(push(self, &half, slack));
    half.high = box.high, half.low = room;
    memcpy(room, box.low, n * sizeof *room);
    room[s] = middle + 1;
    MPL_TRY(try_corners(self, &half));
    MPL_TRY(push(self, &half, slack));
out:
    return st;
}

static mpl_status open_prover(prover *self)
{
    const mpl_template_code *code = self->cell->code;
    size_t n_values;

    MPL_PASS(mpl_controls_new(self->ctx, self->tmpl->problem->exprs, code->n_values, code->value_of,
                              &self->controls));
    self->n_points = mpl_controls_points(self->controls);
    self->scale = mpl_controls_scale(self->controls);
    n_values = (size_t)code->n_values * self->n_points;
    MPL_PASS(mpl_new_each(self->ctx, n_values, self->low, self->high));
    MPL_PASS(mpl_new(self->ctx, self->arena, self->n_points));
    MPL_PASS(mpl_new(self->ctx, self->load, (size_t)MOST_LOADS * self->n_points));
    MPL_PASS(mpl_new(self->ctx, self->weight, MOST_LOADS));
    MPL_PASS(mpl_new_each(self->ctx, self->p->n + 1, self->offset, self->grain, self->loose));
    if (self->cell->regret.at == NULL)
        MPL_PASS(mpl_new(self->ctx, self->cell->regret.at, self->cell->box.n + 1));
    self->pool_grain = (int64_t)mpl_pool_grain(self->p, 0);
    find_grains(self);
    return MPL_OK;
}

mpl_status mpl_regret_of(const mpl_run *run, mpl_template *tmpl, uint32_t k, uint64_t slack,
                         uint32_t most_boxes)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = run->ctx;
    prover v = {.ctx = ctx, .tmpl = tmpl, .p = tmpl->problem->at, .cell = &tmpl->cell[k]};
    mpl_regret *regret = &v.cell->regret;
    uint64_t most = 0; /* of single shapes */

    MPL_TRY(open_prover(&v));
    MPL_TRY(try_corners(&v, &v.cell->box));
    MPL_TRY(push(&v, &v.cell->box, slack));
    for (uint32_t i = 0; i < most_boxes && v.n > 0; i++) {
        uint64_t reached = v.attained.bound > 0 ? mpl_ratio_parts(v.attained) : 0;
        part worst = v.heap[0];
        bool point = true;

        for (uint32_t s = 0; s < v.cell->box.n; s++)
            point = point && (!mpl_controls_use(v.controls, s) ||
                              worst.end[s] == worst.end[v.cell->box.n + s]);
        if (worst.most <= reached + slack || mpl_run_late(run))
            break;
        v.heap[0] = v.heap[--v.n];
        sift_down(&v, 0);
        if (point) /* the loads say no more of it; others may attain more */
            most = mpl_max_u64(most, worst.most);
        st = point ? MPL_OK : halve(&v, &worst, slack);
        mpl_free(ctx, worst.end);
        MPL_TRY(st);
    }
    regret->arena = v.attained.arena, regret->bound = v.attained.bound;
    regret->most = v.n > 0 ? mpl_max_u64(most, v.heap[0].most) : most;
out:
    for (size_t i = 0; i < v.n; i++)
        mpl_free(ctx, v.heap[i].end);
    mpl_controls_free(ctx, v.controls);
    mpl_free_each(ctx, v.low, v.high, v.arena, v.load, v.weight, v.offset, v.grain, v.loose,
                  v.heap);
    return st;
}
