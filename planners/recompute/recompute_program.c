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
    const mpl_stage_model *m;
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

static uint32_t run_of(const program *p, uint32_t t, uint32_t i)
{
    return p->run[(size_t)t * p->m->n + i];
}
static uint32_t carry_of(const program *p, uint32_t t, uint32_t v)
{
    return p->carry[(size_t)t * p->m->n_lumps + v];
}

static void term(program *p, uint32_t column, double value)
{
    if (column == MPL_NONE)
        return;
    p->column[p->n_terms] = column;
    p->value[p->n_terms++] = value;
}

static mpl_status end_row(program *p, double low)
{
    mpl_status st = mpl_lp_add_row(p->lp, low, p->n_terms, p->column, p->value);

    p->n_terms = 0;
    return st;
}

/* Row a - b >= 0, if both columns exist: a = 0 implies b = 0. */
static mpl_status at_least(program *p, uint32_t a, uint32_t b)
{
    if (b == MPL_NONE)
        return MPL_OK;
    term(p, a, 1);
    term(p, b, -1);
    return end_row(p, 0);
}

/* ---- columns ---- */

static mpl_status add_runs(program *p)
{
    const mpl_stage_model *m = p->m;

    for (uint32_t t = 0; t < m->n; t++)
        for (uint32_t i = 0; i < t; i++)
            if (m->may[i] && t <= m->need[i])
                MPL_PASS(mpl_lp_add_column(p->lp, p->integer, 0, 1, (double)m->work[i] / p->work,
                                           'r', t, i, &p->run[(size_t)t * m->n + i]));
    for (uint32_t t = 0; t < m->n; t++)
        for (uint32_t v = 0; v < m->n_lumps; v++)
            if (!m->fixed[v] && m->maker[v] < t && t <= m->last[v])
                MPL_PASS(mpl_lp_add_column(p->lp, p->integer, 0, 1, 0, 'c', t, v,
                                           &p->carry[(size_t)t * m->n_lumps + v]));
    return MPL_OK;
}

/* Whether the group may run in the stage. */
static bool is_active(const program *p, uint32_t t, uint32_t i)
{
    return i == t || (i < t && run_of(p, t, i) != MPL_NONE);
}

/* The number of active readers of v before `from`. */
static uint32_t first_reader(const program *p, uint32_t t, uint32_t v, uint32_t from)
{
    const mpl_stage_model *m = p->m;
    uint32_t n = 0;

    for (uint32_t i = m->user_begin[v]; i < m->user_begin[v + 1] && m->user[i] <= t; i++) {
        if (m->user[i] >= from)
            break;
        n += is_active(p, t, m->user[i]);
    }
    return n;
}

static bool is_user(const mpl_stage_model *m, uint32_t v, uint32_t group)
{
    for (uint32_t i = m->user_begin[v]; i < m->user_begin[v + 1]; i++)
        if (m->user[i] == group)
            return true;
    return false;
}

/* Adds the presence columns of lump v in stage t, and their rows; none if group t reads it. */
static mpl_status add_presence(program *p, uint32_t t, uint32_t v)
{
    const mpl_stage_model *m = p->m;
    uint32_t maker = m->maker[v], n = first_reader(p, t, v, t + 1), q = MPL_NONE, at = 0, next;

    if (m->fixed[v] || maker >= t || is_user(m, v, t) ||
        (run_of(p, t, maker) == MPL_NONE && carry_of(p, t, v) == MPL_NONE))
        return MPL_OK;
    for (uint32_t a = 0; a < (n == 0 ? 1 : n); a++) {
        MPL_PASS(mpl_lp_add_column(p->lp, false, 0, 1, 0, 'q', t * m->n_lumps + v, a, &next));
        q = a == 0 ? next : q;
    }
    p->presence[(size_t)t * m->n_lumps + v] = q;
    MPL_PASS(at_least(p, q, run_of(p, t, maker)));
    for (uint32_t i = m->user_begin[v]; i < m->user_begin[v + 1] && m->user[i] < t; i++)
        if (is_active(p, t, m->user[i])) {
            MPL_PASS(at_least(p, q + at, run_of(p, t, m->user[i])));
            MPL_PASS(at_least(p, q + at, at + 1 < n ? q + at + 1 : MPL_NONE));
            at++;
        }
    return at_least(p, q + (n == 0 ? 0 : n - 1), carry_of(p, t + 1, v));
}

/* ---- rows ---- */

/* What group j of stage t reads is carried in or made again. */
static mpl_status add_reads(program *p, uint32_t t, uint32_t j)
{
    const mpl_stage_model *m = p->m;

    for (uint32_t r = m->read_begin[j]; r < m->read_begin[j + 1]; r++) {
        uint32_t v = m->read[r];

        if (m->fixed[v])
            continue;
        term(p, run_of(p, t, m->maker[v]), 1);
        term(p, carry_of(p, t, v), 1);
        if (j < t)
            term(p, run_of(p, t, j), -1);
        MPL_PASS(end_row(p, j < t ? 0 : 1));
    }
    return MPL_OK;
}

/* What is carried out was carried in or made. */
static mpl_status add_carries(program *p, uint32_t t)
{
    const mpl_stage_model *m = p->m;

    for (uint32_t v = 0; v < m->n_lumps; v++) {
        if (carry_of(p, t + 1, v) == MPL_NONE || m->maker[v] == t)
            continue;
        term(p, carry_of(p, t, v), 1);
        term(p, run_of(p, t, m->maker[v]), 1);
        term(p, carry_of(p, t + 1, v), -1);
        MPL_PASS(end_row(p, 0));
    }
    return MPL_OK;
}

/* Whether v is certainly in memory while group i of stage t runs; otherwise *column decides. */
static bool is_there(const program *p, uint32_t t, uint32_t i, uint32_t v, uint32_t *column)
{
    const mpl_stage_model *m = p->m;
    uint32_t maker = m->maker[v], from = m->overwrites[i] == v ? i + 1 : i,
             q = p->presence[(size_t)t * m->n_lumps + v], at;

    *column = MPL_NONE;
    if (m->fixed[v])
        return maker == t ? i == t
                          : maker < t && t <= m->last[v] &&
                                !(m->overwrites[i] == v && t == m->last[v] && i == t);
    if (maker > i) {
        *column = maker < t ? carry_of(p, t, v) : MPL_NONE;
        return false;
    }
    if (maker == t || (is_user(m, v, t) && (from <= t)))
        return true;
    at = first_reader(p, t, v, from);
    if (q != MPL_NONE && (maker == i || at < first_reader(p, t, v, t + 1)))
        *column = q + (maker == i ? 0 : at);
    else
        *column = carry_of(p, t + 1, v);
    return false;
}

static mpl_status add_memory(program *p, uint32_t t, uint32_t i, uint64_t budget)
{
    const mpl_stage_model *m = p->m;
    uint64_t there = m->base + (i == t ? m->inner[i] : 0);

    if (i < t)
        term(p, run_of(p, t, i), -(double)m->inner[i] / p->byte);
    for (uint32_t v = 0; v < m->n_lumps; v++) {
        uint32_t column;

        if (is_there(p, t, i, v, &column))
            there += m->bytes[v];
        term(p, column, -(double)m->bytes[v] / p->byte);
    }
    return end_row(p, ((double)there - (double)budget) / p->byte);
}

static mpl_status add_rows(program *p, uint64_t budget)
{
    const mpl_stage_model *m = p->m;

    for (uint32_t t = 0; t < m->n; t++) {
        for (uint32_t v = 0; v < m->n_lumps; v++)
            MPL_PASS(add_presence(p, t, v));
        MPL_PASS(add_carries(p, t));
        for (uint32_t i = 0; i <= t; i++)
            if (is_active(p, t, i)) {
                MPL_PASS(add_reads(p, t, i));
                MPL_PASS(add_memory(p, t, i, budget));
            }
    }
    return MPL_OK;
}

/* The first lump that the maker of v reads and that may be dropped. */
static uint32_t before_lump(const mpl_stage_model *m, uint32_t v)
{
    uint32_t maker = m->maker[v];

    for (uint32_t r = m->read_begin[maker]; r < m->read_begin[maker + 1]; r++)
        if (!m->fixed[m->read[r]])
            return m->read[r];
    return MPL_NONE;
}

/* Adds rows that hold for integer points but not for the relaxation. A reader of v in stage u gets
 * what was carried into stage t or made since. What was made since was made from the lump before
 * it, for which the same holds, and so on. Without these rows, half a carried lump makes both
 * halves of the next lump, in two stages. */
static mpl_status add_paths(program *p, uint32_t v)
{
    const mpl_stage_model *m = p->m;
    uint32_t u = m->user_begin[v] < m->user_begin[v + 1] ? m->user[m->user_begin[v + 1] - 1] : 0;

    for (uint32_t t = m->maker[v] + 1; t <= u && !m->fixed[v]; t++) {
        uint32_t end = before_lump(m, v);

        for (uint32_t depth = 2; depth <= PATH && end != MPL_NONE;
             depth++, end = before_lump(m, end)) {
            for (uint32_t at = v;; at = before_lump(m, at)) {
                term(p, carry_of(p, t, at), 1);
                if (at == end)
                    break;
            }
            for (uint32_t stage = t; stage <= u; stage++)
                term(p, run_of(p, stage, m->maker[end]), 1);
            MPL_PASS(end_row(p, 1));
        }
    }
    return MPL_OK;
}

static void program_fini(program *p)
{
    mpl_free_each(p->m->ctx, p->run, p->carry, p->presence, p->column, p->value);
    mpl_lp_free(p->m->ctx, p->lp);
}

static mpl_status program_init(program *p, uint64_t budget)
{
    const mpl_stage_model *m = p->m;
    mpl_ctx *ctx = m->ctx;
    size_t n_q = (size_t)m->n * m->n_lumps, n_carries = n_q + m->n_lumps,
           n_runs = (size_t)m->n * m->n;
    uint64_t most = 1;

    for (uint32_t i = 0; i < m->n; i++)
        most = mpl_max_u64(most, m->work[i]);
    /* keeps both units in a numerically good range for the simplex method */
    p->work = (double)most / 100;
    p->byte = (double)mpl_max_u64(budget, 1) / 1000;
    MPL_PASS(mpl_lp_new(ctx, "recompute", &p->lp));
    MPL_PASS(mpl_new(ctx, p->run, n_runs));
    MPL_PASS(mpl_new(ctx, p->carry, n_carries));
    MPL_PASS(mpl_new(ctx, p->presence, n_q));
    MPL_PASS(mpl_new_each(ctx, (size_t)m->n_lumps + n_runs + 4, p->column, p->value));
    memset(p->run, 0xff, n_runs * sizeof *p->run);
    memset(p->carry, 0xff, n_carries * sizeof *p->carry);
    memset(p->presence, 0xff, n_q * sizeof *p->presence);
    MPL_PASS(add_runs(p));
    MPL_PASS(add_rows(p, budget));
    for (uint32_t v = 0; v < m->n_lumps && mpl_recompute_uses(p->without, MPL_RECOMPUTE_RULE_paths);
         v++)
        MPL_PASS(add_paths(p, v));
    return MPL_OK;
}

/* ---- answers ---- */

/* Stages from x: a column of at least `least` counts as 1. */
static void read_stages(const program *p, const double *x, double least, mpl_stages *s)
{
    const mpl_stage_model *m = p->m;

    for (uint32_t t = 0; t < m->n; t++) {
        for (uint32_t i = 0; i < t; i++)
            s->runs[(size_t)t * m->n + i] =
                run_of(p, t, i) != MPL_NONE && x[run_of(p, t, i)] >= least;
        for (uint32_t v = 0; v < m->n_lumps; v++)
            s->carried[(size_t)t * m->n_lumps + v] =
                carry_of(p, t, v) != MPL_NONE && x[carry_of(p, t, v)] >= least;
    }
}

static mpl_status solve(program *p, mpl_lp_answer *answer, double **x, uint64_t *ticks)
{
    mpl_lp_limits limits = {
        MOST_NODES, 1 + MOST_TICKS / (1 + mpl_lp_rows(p->lp) + mpl_lp_columns(p->lp)),
        MOST_MIB,   INT64_MAX,
        -1,         false};

    MPL_PASS(mpl_new(p->m->ctx, *x, mpl_lp_columns(p->lp)));
    MPL_PASS(mpl_lp_solve(p->lp, &limits, answer, *x));
    *ticks += answer->n_pivots;
    return MPL_OK;
}

/* The objective as work, rounded up because work is an integer and the objective a double. */
static uint64_t as_work(const program *p, double objective)
{
    double work = objective * p->work * (1 - 1e-9);

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
static mpl_status cut_off(program *p, uint64_t work)
{
    const mpl_stage_model *m = p->m;

    for (uint32_t t = 0; t < m->n; t++)
        for (uint32_t i = 0; i < t; i++)
            term(p, run_of(p, t, i), -(double)m->work[i] / p->work);
    return end_row(p, -((double)work - 1) / p->work);
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
    MPL_TRY(mpl_stages_new(p->m, &s));
    read_stages(p, x, 0.5, &s);
    if (mpl_stages_peak(p->m, &s) > task->budget)
        MPL_TRY(mpl_recompute_refuse(task, task->budget, false));
    found->claim = answer.state == MPL_LP_OPTIMAL ? MPL_RECOMPUTE_OPTIMAL : MPL_RECOMPUTE_FEASIBLE;
    MPL_TRY(mpl_stages_run(p->m, &s, &task->n, &task->run));
out:
    mpl_stages_fini(p->m, &s);
    mpl_free(task->ctx, x);
    return st;
}

mpl_status mpl_recompute_exact(mpl_recompute_task *task, mpl_recompute_choose *start)
{
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = task->ctx;
    const mpl_graph *g = task->g;
    mpl_stage_model m = {0};
    program p = {.m = &m, .integer = true, .without = task->without};
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
static void round_at(mpl_rounding *r, const program *p, const double *x, double least)
{
    mpl_stages swap = r->now;
    uint64_t work;

    read_stages(p, x, least, &r->now);
    mpl_stages_complete(r->m, &r->now);
    /* the first pass may leave runs whose results are no longer read */
    mpl_stages_complete(r->m, &r->now);
    work = mpl_stages_work(r->m, &r->now);
    if (mpl_stages_peak(r->m, &r->now) > r->budget || work >= r->work)
        return;
    r->now = r->best;
    r->best = swap;
    r->work = work;
}

mpl_status mpl_stages_round(mpl_rounding *r, uint64_t within, bool *goes_on)
{
    mpl_status st = MPL_OK;
    program p = {.m = r->m, .without = r->without};
    mpl_lp_answer answer;
    double *x = NULL;

    MPL_TRY(program_init(&p, within));
    MPL_TRY(solve(&p, &answer, &x, &r->ticks));
    *goes_on = answer.state == MPL_LP_OPTIMAL;
    for (int i = 1; i < 20 && *goes_on; i++)
        round_at(r, &p, x, i / 20.0);
out:
    program_fini(&p);
    mpl_free(r->m->ctx, x);
    return st;
}
