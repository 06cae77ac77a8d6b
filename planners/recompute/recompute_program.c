/* recompute_program.c -- the least work within a budget, by an integer program or by rounding its
 * relaxation.
 *
 * Source   P. Jain and others, "Checkmate: Breaking the Memory Wall with Optimal Tensor
 *          Rematerialization", 2020: stages, runs (r), carried lumps (c), section 4; rounding,
 *          section 5.
 * Differs  A lump is in memory while group i of stage t runs if it was carried in and is made
 *          later, or was made before and is carried out or read from here on. The second case has a
 *          column (q) for each reader, at least that reader's r and the next reader's q, which
 *          avoids products of variables. Fixed lumps have no columns.
 * Limits   `budget` takes each operation by itself, in the order of the graph. Bytes are never
 *          below the live bytes, and above them where concats or pieces share storage. */
#include "planners/recompute/recompute_priv.h"

#include "planners/ilp/lp.h"

#include <math.h>

enum {
    MOST_GROUPS = 160, /* of the integer program */
    MOST_NODES = 20000,
    PATH = 8, /* lumps on a path of add_paths() */
    MOST_MIB = 2048,
};
static const uint64_t MOST_TICKS = 100000000; /* pivots times rows and columns */

typedef struct program {
    const mpl_stage_model *model;
    uint32_t without;
    mpl_lp *lp;
    bool integer;
    double byte, work; /* unit of rows; unit of the objective */
    uint32_t *run;     /* [n * n] column of group i in stage t; MPL_NONE: does not run, or i == t */
    uint32_t *carry;   /* [(n + 1) * n_lumps] column; MPL_NONE: not carried */
    uint32_t *presence; /* [n * n_lumps] first presence column of lump v in stage t; or MPL_NONE */
    uint32_t *column;   /* scratch for a row */
    double *value;
    uint32_t n_terms;
} program;

static uint32_t run_of(const program *self, uint32_t t, uint32_t i)
{
    return self->run[(size_t)t * self->model->n + i];
}
static uint32_t carry_of(const program *self, uint32_t t, uint32_t v)
{
    return self->carry[(size_t)t * self->model->n_lumps + v];
}

static void term(program *self, uint32_t column, double value)
{
    if (column == MPL_NONE)
        return;
    self->column[self->n_terms] = column;
    self->value[self->n_terms++] = value;
}

static mpl_status end_row(program *self, double low)
{
    mpl_status st = mpl_lp_add_row(self->lp, low, self->n_terms, self->column, self->value);

    self->n_terms = 0;
    return st;
}

/* Row a - b >= 0, if both columns exist: a = 0 implies b = 0. */
static mpl_status at_least(program *self, uint32_t a, uint32_t b)
{
    if (b == MPL_NONE)
        return MPL_OK;
    term(self, a, 1);
    term(self, b, -1);
    return end_row(self, 0);
}

/* ---- columns ---- */

static mpl_status add_runs(program *self)
{
    const mpl_stage_model *model = self->model;

    for (uint32_t t = 0; t < model->n; t++)
        for (uint32_t i = 0; i < t; i++)
            if (model->may[i] && t <= model->need[i])
                MPL_PASS(mpl_lp_add_column(self->lp, self->integer, 0, 1,
                                           (double)model->work[i] / self->work, 'r', t, i,
                                           &self->run[(size_t)t * model->n + i]));
    for (uint32_t t = 0; t < model->n; t++)
        for (uint32_t v = 0; v < model->n_lumps; v++)
            if (!model->fixed[v] && model->maker[v] < t && t <= model->last[v])
                MPL_PASS(mpl_lp_add_column(self->lp, self->integer, 0, 1, 0, 'c', t, v,
                                           &self->carry[(size_t)t * model->n_lumps + v]));
    return MPL_OK;
}

/* Whether the group may run in the stage. */
static bool is_active(const program *self, uint32_t t, uint32_t i)
{
    return i == t || (i < t && run_of(self, t, i) != MPL_NONE);
}

/* The number of active readers of v before `from`. */
static uint32_t first_reader(const program *self, uint32_t t, uint32_t v, uint32_t from)
{
    const mpl_stage_model *model = self->model;
    uint32_t n = 0;

    for (uint32_t i = model->user_begin[v]; i < model->user_begin[v + 1] && model->user[i] <= t;
         i++) {
        if (model->user[i] >= from)
            break;
        n += is_active(self, t, model->user[i]);
    }
    return n;
}

static bool is_user(const mpl_stage_model *model, uint32_t v, uint32_t group)
{
    for (uint32_t i = model->user_begin[v]; i < model->user_begin[v + 1]; i++)
        if (model->user[i] == group)
            return true;
    return false;
}

/* Adds the presence columns of lump v in stage t, and their rows; none if group t reads it. */
static mpl_status add_presence(program *self, uint32_t t, uint32_t v)
{
    const mpl_stage_model *model = self->model;
    uint32_t maker = model->maker[v], n = first_reader(self, t, v, t + 1), q = MPL_NONE, at = 0,
             next;

    if (model->fixed[v] || maker >= t || is_user(model, v, t) ||
        (run_of(self, t, maker) == MPL_NONE && carry_of(self, t, v) == MPL_NONE))
        return MPL_OK;
    for (uint32_t a = 0; a < (n == 0 ? 1 : n); a++) {
        MPL_PASS(
            mpl_lp_add_column(self->lp, false, 0, 1, 0, 'q', t * model->n_lumps + v, a, &next));
        q = a == 0 ? next : q;
    }
    self->presence[(size_t)t * model->n_lumps + v] = q;
    MPL_PASS(at_least(self, q, run_of(self, t, maker)));
    for (uint32_t i = model->user_begin[v]; i < model->user_begin[v + 1] && model->user[i] < t; i++)
        if (is_active(self, t, model->user[i])) {
            MPL_PASS(at_least(self, q + at, run_of(self, t, model->user[i])));
            MPL_PASS(at_least(self, q + at, at + 1 < n ? q + at + 1 : MPL_NONE));
            at++;
        }
    return at_least(self, q + (n == 0 ? 0 : n - 1), carry_of(self, t + 1, v));
}

/* ---- rows ---- */

/* What group j of stage t reads is carried in or made again. */
static mpl_status add_reads(program *self, uint32_t t, uint32_t j)
{
    const mpl_stage_model *model = self->model;

    for (uint32_t r = model->read_begin[j]; r < model->read_begin[j + 1]; r++) {
        uint32_t v = model->read[r];

        if (model->fixed[v])
            continue;
        term(self, run_of(self, t, model->maker[v]), 1);
        term(self, carry_of(self, t, v), 1);
        if (j < t)
            term(self, run_of(self, t, j), -1);
        MPL_PASS(end_row(self, j < t ? 0 : 1));
    }
    return MPL_OK;
}

/* What is carried out was carried in or made. */
static mpl_status add_carries(program *self, uint32_t t)
{
    const mpl_stage_model *model = self->model;

    for (uint32_t v = 0; v < model->n_lumps; v++) {
        if (carry_of(self, t + 1, v) == MPL_NONE || model->maker[v] == t)
            continue;
        term(self, carry_of(self, t, v), 1);
        term(self, run_of(self, t, model->maker[v]), 1);
        term(self, carry_of(self, t + 1, v), -1);
        MPL_PASS(end_row(self, 0));
    }
    return MPL_OK;
}

/* Whether v is certainly in memory while group i of stage t runs; otherwise *column decides. */
static bool is_there(const program *self, uint32_t t, uint32_t i, uint32_t v, uint32_t *column)
{
    const mpl_stage_model *model = self->model;
    uint32_t maker = model->maker[v], from = model->overwrites[i] == v ? i + 1 : i,
             q = self->presence[(size_t)t * model->n_lumps + v], at;

    *column = MPL_NONE;
    if (model->fixed[v])
        return maker == t ? i == t
                          : maker < t && t <= model->last[v] &&
                                !(model->overwrites[i] == v && t == model->last[v] && i == t);
    if (maker > i) {
        *column = maker < t ? carry_of(self, t, v) : MPL_NONE;
        return false;
    }
    if (maker == t || (is_user(model, v, t) && (from <= t)))
        return true;
    at = first_reader(self, t, v, from);
    if (q != MPL_NONE && (maker == i || at < first_reader(self, t, v, t + 1)))
        *column = q + (maker == i ? 0 : at);
    else
        *column = carry_of(self, t + 1, v);
    return false;
}

static mpl_status add_memory(program *self, uint32_t t, uint32_t i, uint64_t budget)
{
    const mpl_stage_model *model = self->model;
    uint64_t there = model->base + (i == t ? model->inner[i] : 0);

    if (i < t)
        term(self, run_of(self, t, i), -(double)model->inner[i] / self->byte);
    for (uint32_t v = 0; v < model->n_lumps; v++) {
        uint32_t column;

        if (is_there(self, t, i, v, &column))
            there += model->bytes[v];
        term(self, column, -(double)model->bytes[v] / self->byte);
    }
    return end_row(self, ((double)there - (double)budget) / self->byte);
}

static mpl_status add_rows(program *self, uint64_t budget)
{
    const mpl_stage_model *model = self->model;

    for (uint32_t t = 0; t < model->n; t++) {
        for (uint32_t v = 0; v < model->n_lumps; v++)
            MPL_PASS(add_presence(self, t, v));
        MPL_PASS(add_carries(self, t));
        for (uint32_t i = 0; i <= t; i++)
            if (is_active(self, t, i)) {
                MPL_PASS(add_reads(self, t, i));
                MPL_PASS(add_memory(self, t, i, budget));
            }
    }
    return MPL_OK;
}

/* The first lump that the maker of v reads and that may be dropped. */
static uint32_t before_lump(const mpl_stage_model *model, uint32_t v)
{
    uint32_t maker = model->maker[v];

    for (uint32_t r = model->read_begin[maker]; r < model->read_begin[maker + 1]; r++)
        if (!model->fixed[model->read[r]])
            return model->read[r];
    return MPL_NONE;
}

/* Adds rows that hold for integer points but not for the relaxation. A reader of v in stage u gets
 * what was carried into stage t or made since. What was made since was made from the lump before
 * it, for which the same holds, and so on. Without these rows, half a carried lump makes both
 * halves of the next lump, in two stages. */
static mpl_status add_paths(program *self, uint32_t v)
{
    const mpl_stage_model *model = self->model;
    uint32_t u = model->user_begin[v] < model->user_begin[v + 1]
                     ? model->user[model->user_begin[v + 1] - 1]
                     : 0;

    for (uint32_t t = model->maker[v] + 1; t <= u && !model->fixed[v]; t++) {
        uint32_t end = before_lump(model, v);

        for (uint32_t depth = 2; depth <= PATH && end != MPL_NONE;
             depth++, end = before_lump(model, end)) {
            for (uint32_t at = v;; at = before_lump(model, at)) {
                term(self, carry_of(self, t, at), 1);
                if (at == end)
                    break;
            }
            for (uint32_t stage = t; stage <= u; stage++)
                term(self, run_of(self, stage, model->maker[end]), 1);
            MPL_PASS(end_row(self, 1));
        }
    }
    return MPL_OK;
}

static void program_fini(program *self)
{
    mpl_free_each(self->model->ctx, self->run, self->carry, self->presence, self->column,
                  self->value);
    mpl_lp_free(self->model->ctx, self->lp);
}

static mpl_status program_init(program *self, uint64_t budget)
{
    const mpl_stage_model *model = self->model;
    mpl_ctx *ctx = model->ctx;
    size_t n_q = (size_t)model->n * model->n_lumps, n_carries = n_q + model->n_lumps,
           n_runs = (size_t)model->n * model->n;
    uint64_t most = 1;

    for (uint32_t i = 0; i < model->n; i++)
        most = mpl_max_u64(most, model->work[i]);
    /* keeps both units in a numerically good range for the simplex method */
    self->work = (double)most / 100;
    self->byte = (double)mpl_max_u64(budget, 1) / 1000;
    MPL_PASS(mpl_lp_new(ctx, "recompute", &self->lp));
    MPL_PASS(mpl_new(ctx, self->run, n_runs));
    MPL_PASS(mpl_new(ctx, self->carry, n_carries));
    MPL_PASS(mpl_new(ctx, self->presence, n_q));
    MPL_PASS(mpl_new_each(ctx, (size_t)model->n_lumps + n_runs + 4, self->column, self->value));
    memset(self->run, 0xff, n_runs * sizeof *self->run);
    memset(self->carry, 0xff, n_carries * sizeof *self->carry);
    memset(self->presence, 0xff, n_q * sizeof *self->presence);
    MPL_PASS(add_runs(self));
    MPL_PASS(add_rows(self, budget));
    for (uint32_t v = 0;
         v < model->n_lumps && mpl_recompute_uses(self->without, MPL_RECOMPUTE_RULE_paths); v++)
        MPL_PASS(add_paths(self, v));
    return MPL_OK;
}

/* ---- answers ---- */

/* Stages from x: a column of at least `least` counts as 1. */
static void read_stages(const program *self, const double *x, double least, mpl_stages *stages)
{
    const mpl_stage_model *model = self->model;

    for (uint32_t t = 0; t < model->n; t++) {
        for (uint32_t i = 0; i < t; i++)
            stages->runs[(size_t)t * model->n + i] =
                run_of(self, t, i) != MPL_NONE && x[run_of(self, t, i)] >= least;
        for (uint32_t v = 0; v < model->n_lumps; v++)
            stages->carried[(size_t)t * model->n_lumps + v] =
                carry_of(self, t, v) != MPL_NONE && x[carry_of(self, t, v)] >= least;
    }
}

static mpl_status solve(program *self, mpl_lp_answer *answer, double **x, uint64_t *ticks)
{
    mpl_lp_limits limits = {
        MOST_NODES, 1 + MOST_TICKS / (1 + mpl_lp_rows(self->lp) + mpl_lp_columns(self->lp)),
        MOST_MIB,   INT64_MAX,
        -1,         false};

    MPL_PASS(mpl_new(self->model->ctx, *x, mpl_lp_columns(self->lp)));
    MPL_PASS(mpl_lp_solve(self->lp, &limits, answer, *x));
    *ticks += answer->n_pivots;
    return MPL_OK;
}

/* The objective as work, rounded up because work is an integer and the objective a double. */
static uint64_t as_work(const program *self, double objective)
{
    double work = objective * self->work * (1 - 1e-9);

    return work > 0 ? (uint64_t)ceil(work) : 0;
}

/* ---- the integer program ---- */

/* The run of `start`, if it finds one, with a bound that holds for all runs. */
static mpl_status find_known(mpl_recompute_task *known, mpl_recompute_choose *start, uint64_t *work)
{
    mpl_rerun_facts facts = {0};
    uint64_t peak;
    mpl_status st = start(known);

    if (st == MPL_OK)
        st = mpl_rerun_peak(known->ctx, known->g, known->n, known->run, known->options, &peak,
                            &facts);
    *work = facts.extra_work;
    return st == MPL_EINPUT || st == MPL_ELIMIT || st == MPL_EINVALID ? MPL_OK : st;
}

/* Allows only less work than that of the known run. */
static mpl_status cut_off(program *self, uint64_t work)
{
    const mpl_stage_model *model = self->model;

    for (uint32_t t = 0; t < model->n; t++)
        for (uint32_t i = 0; i < t; i++)
            term(self, run_of(self, t, i), -(double)model->work[i] / self->work);
    return end_row(self, -((double)work - 1) / self->work);
}

/* The program has no solution: the known run is optimal, or no run exists. */
static mpl_status take_known(mpl_recompute_task *task, mpl_recompute_task *known, uint64_t work,
                             bool proved)
{
    if (known->run == NULL)
        return mpl_recompute_refuse(task, task->budget, proved);
    if (proved) {
        task->found.claim = MPL_RECOMPUTE_OPTIMAL;
        task->found.has_bound = true;
        task->found.bound_work = work;
    }
    task->found.n_regions = known->found.n_regions;
    task->found.n_plain = known->found.n_plain;
    if (!proved)
        task->found.claim = known->found.claim;
    task->n = known->n;
    task->run = known->run, known->run = NULL;
    return MPL_OK;
}

/* Solves the program p, which is cut off at the known run. */
static mpl_status solve_exactly(mpl_recompute_task *task, program *p, mpl_recompute_task *known,
                                uint64_t known_work)
{
    mpl_status st = MPL_OK;
    mpl_recompute_found *found = &task->found;
    mpl_stages s = {0};
    mpl_lp_answer answer;
    double *x = NULL;

    found->ticks += known->found.ticks;
    MPL_TRY(solve(p, &answer, &x, &found->ticks));
    if (answer.bound > -INFINITY || known->found.has_bound) {
        found->has_bound = true;
        found->bound_work = answer.bound > -INFINITY ? as_work(p, answer.bound) : 0;
        found->bound_work = mpl_max_u64(found->bound_work, known->found.bound_work);
    }
    if (answer.state == MPL_LP_INFEASIBLE || answer.state == MPL_LP_NOTHING) {
        MPL_TRY(take_known(task, known, known_work, answer.state == MPL_LP_INFEASIBLE));
        goto out;
    }
    MPL_TRY(mpl_stages_new(p->model, &s));
    read_stages(p, x, 0.5, &s);
    if (mpl_stages_peak(p->model, &s) > task->budget)
        MPL_TRY(mpl_recompute_refuse(task, task->budget, false));
    found->claim = answer.state == MPL_LP_OPTIMAL ? MPL_RECOMPUTE_OPTIMAL : MPL_RECOMPUTE_FEASIBLE;
    MPL_TRY(mpl_stages_run(p->model, &s, &task->n, &task->run));
out:
    mpl_stages_fini(p->model, &s);
    mpl_free(task->ctx, x);
    return st;
}

mpl_status mpl_recompute_exact(mpl_recompute_task *task, mpl_recompute_choose *start)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = task->ctx;
    const mpl_graph *g = task->g;
    mpl_stage_model m = {0};
    program p = {.model = &m, .integer = true, .without = task->without};
    mpl_recompute_task known = *task;
    uint64_t work;

    MPL_TRY(mpl_stage_model_new(ctx, g, task->options, NULL, NULL, &m));
    if (m.n > MOST_GROUPS)
        MPL_FAIL(ctx, MPL_EINPUT,
                 "graph '%s' has %" PRIu32
                 " operations; the integer program takes %d: method round",
                 g->name, m.n, MOST_GROUPS);
    task->found.n_groups = m.n;
    MPL_TRY(find_known(&known, start, &work));
    if (!mpl_recompute_uses(task->without, MPL_RECOMPUTE_RULE_program)) {
        task->found = known.found;
        MPL_TRY(take_known(task, &known, work, false));
        goto out;
    }
    MPL_TRY(program_init(&p, task->budget));
    if (known.run != NULL)
        MPL_TRY(cut_off(&p, work));
    MPL_TRY(solve_exactly(task, &p, &known, work));
out:
    program_fini(&p);
    mpl_stage_model_fini(&m);
    mpl_free(ctx, known.run);
    return st;
}

/* ---- rounding ---- */

/* Rounds the relaxation at one threshold. */
static void round_at(mpl_rounding *rounding, const program *p, const double *x, double least)
{
    mpl_stages swap = rounding->now;
    uint64_t work;

    read_stages(p, x, least, &rounding->now);
    mpl_stages_complete(rounding->model, &rounding->now);
    /* the first pass may leave runs whose results are no longer read */
    mpl_stages_complete(rounding->model, &rounding->now);
    work = mpl_stages_work(rounding->model, &rounding->now);
    if (mpl_stages_peak(rounding->model, &rounding->now) > rounding->budget ||
        work >= rounding->work)
        return;
    rounding->now = rounding->best;
    rounding->best = swap;
    rounding->work = work;
}

mpl_status mpl_stages_round(mpl_rounding *rounding, uint64_t within, bool *goes_on)
{
    mpl_status st = MPL_OK;
    program p = {.model = rounding->model, .without = rounding->without};
    mpl_lp_answer answer;
    double *x = NULL;

    MPL_TRY(program_init(&p, within));
    MPL_TRY(solve(&p, &answer, &x, &rounding->ticks));
    *goes_on = answer.state == MPL_LP_OPTIMAL;
    for (int i = 1; i < 20 && *goes_on; i++)
        round_at(rounding, &p, x, i / 20.0);
out:
    program_fini(&p);
    mpl_free(rounding->model->ctx, x);
    return st;
}
