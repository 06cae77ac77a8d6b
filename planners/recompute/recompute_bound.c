/* recompute_bound.c -- a lower bound of the work of runs within a budget. See recompute_priv.h.
 *
 * Idea     When an operation first runs, each earlier result that a later first run reads is either
 *          in memory, or is made again later, and then the same holds for its operands. What is in
 *          memory has to fit. The least work is an integer program with one memory row; the bound
 *          of its search, stopped early, holds for all runs. The moments that need most memory are
 *          tried.
 * Limits   First runs are in the order of the graph. No bound where concats, splits or slices share
 *          storage: the model counts their bytes twice; none of graphs with blocks. */
#include <math.h>
#include <stdlib.h>

#include "planners/ilp/lp.h"
#include "planners/recompute/recompute_priv.h"

enum {
    MOMENTS = 3,
    PATH = 12, /* lumps on a path of add_paths() */
    BOUND_MIB = 1024,
    BOUND_NODES = 400,
};
static const uint64_t BOUND_TICKS = 300000000; /* pivots times rows and columns */

typedef struct moment {
    const mpl_stage_model *m;
    uint32_t without;
    uint64_t budget;
    uint32_t t;        /* the group that runs first */
    mpl_op op;         /* its operation */
    double byte, work; /* unit of rows; unit of the objective */
    uint32_t *again;   /* [n] column: the group runs again; or MPL_NONE */
    uint32_t *there;   /* [n_lumps] column: the lump is in memory; or MPL_NONE */
    mpl_lp *lp;
    uint32_t *term; /* scratch for a row */
    double *value;
} moment;

/* Whether the model may count bytes twice. */
static bool may_share(const mpl_stage_model *m)
{
    const mpl_graph *g = m->g;

    for (mpl_op op = 0; op < g->n_ops && g->n_blocks == 1; op++) {
        bool view = m->options->views && mpl_may_be_view(g, op) && m->group_of[op] != MPL_NONE;
        bool inside = g->op_kind[op] == MPL_OP_concat && m->options->concat != MPL_CONCAT_COPY;
        bool update = mpl_n_updates((mpl_op_kind)g->op_kind[op]) > 0 &&
                      (!m->options->pin_outputs || !m->options->pin_weights);

        if (view || inside || update)
            return true;
    }
    return g->n_blocks > 1;
}

static uint32_t last_user(const mpl_stage_model *m, uint32_t v)
{
    return m->user[m->user_begin[v + 1] - 1]; /* every lump has a reader */
}

static bool reads(const mpl_stage_model *m, uint32_t group, uint32_t v)
{
    for (uint32_t r = m->read_begin[group]; r < m->read_begin[group + 1]; r++)
        if (m->read[r] == v)
            return true;
    return false;
}

/* Bytes that a group of this operation alone may share with its operands. */
static uint64_t saved(const mpl_stage_model *m, mpl_op op)
{
    const mpl_graph *g = m->g;
    uint64_t rest = m->options->align - 1;
    mpl_value out =
        g->op_out_begin[op] < g->op_out_begin[op + 1] ? g->op_out[g->op_out_begin[op]] : MPL_NONE;
    bool in_place =
        (mpl_op_table[g->op_kind[op]].traits & (MPL_IN_PLACE_0 | MPL_IN_PLACE_ANY)) != 0 ||
        g->op_kind[op] == MPL_OP_opaque;
    uint64_t bytes = in_place && m->options->in_place && out != MPL_NONE
                         ? (g->value_bytes[out] + rest) & ~rest
                         : 0;

    if (mpl_n_updates((mpl_op_kind)g->op_kind[op]) > 0)
        bytes += m->inner[m->group_of[op]]; /* lies in the place of what it updates */
    return bytes;
}

/* Bytes that are in memory in every run. */
static uint64_t certain(const mpl_stage_model *m, uint32_t t, mpl_op op)
{
    uint64_t need = m->inner[t], less = saved(m, op);

    for (uint32_t v = 0; v < m->n_lumps; v++) {
        bool kept = m->fixed[v] && !m->may[m->maker[v]] && m->maker[v] < t && last_user(m, v) >= t;

        need += m->maker[v] == t || (m->maker[v] < t && reads(m, t, v)) || kept ? m->bytes[v] : 0;
    }
    return need - mpl_min_u64(need, less);
}

/* Whether lump v may be in memory or not. */
static bool is_open(const mpl_stage_model *m, uint32_t t, uint32_t v)
{
    return !m->fixed[v] && m->maker[v] < t && !reads(m, t, v);
}

/* Bytes in memory if no operation ran again. */
static uint64_t all_of(const mpl_stage_model *m, uint32_t t, mpl_op op)
{
    uint64_t need = certain(m, t, op);

    for (uint32_t v = 0; v < m->n_lumps; v++)
        need += is_open(m, t, v) && last_user(m, v) > t ? m->bytes[v] : 0;
    return need;
}

static mpl_status add_columns(moment *c)
{
    const mpl_stage_model *m = c->m;

    for (uint32_t i = 0; i < c->t; i++)
        if (m->may[i])
            MPL_PASS(mpl_lp_add_column(c->lp, true, 0, 1, (double)m->work[i] / c->work, 'a', i,
                                       MPL_NONE, &c->again[i]));
    for (uint32_t v = 0; v < m->n_lumps; v++)
        if (is_open(m, c->t, v))
            MPL_PASS(mpl_lp_add_column(c->lp, true, 0, 1, 0, 't', v, MPL_NONE, &c->there[v]));
    return MPL_OK;
}

/* Row: a later reader of v (MPL_NONE: a first run) finds v in memory or made again. */
static mpl_status add_need(moment *c, uint32_t v, uint32_t reader)
{
    uint32_t n = 0, again = c->again[c->m->maker[v]];

    c->term[n] = c->there[v], c->value[n++] = 1;
    if (again != MPL_NONE)
        c->term[n] = again, c->value[n++] = 1;
    if (reader != MPL_NONE)
        c->term[n] = c->again[reader], c->value[n++] = -1;
    return mpl_lp_add_row(c->lp, reader == MPL_NONE ? 1 : 0, n, c->term, c->value);
}

/* The largest open lump that the maker of v reads; or MPL_NONE. */
static uint32_t before_lump(const moment *c, uint32_t v)
{
    const mpl_stage_model *m = c->m;
    uint32_t maker = m->maker[v], best = MPL_NONE;

    for (uint32_t r = m->read_begin[maker]; r < m->read_begin[maker + 1]; r++)
        if (c->there[m->read[r]] != MPL_NONE &&
            (best == MPL_NONE || m->bytes[m->read[r]] > m->bytes[best]))
            best = m->read[r];
    return best;
}

/* Adds rows that hold for integer points but not for the relaxation: on a path of lumps back from
 * v, which is needed, one lump is in memory or the maker of the path's first lump runs again. */
static mpl_status add_paths(moment *c, uint32_t v)
{
    uint32_t n = 1, end = before_lump(c, v);

    c->term[0] = c->there[v], c->value[0] = 1;
    for (uint32_t depth = 2; depth <= PATH && end != MPL_NONE; depth++, end = before_lump(c, end)) {
        uint32_t again = c->again[c->m->maker[end]];

        c->term[n] = c->there[end], c->value[n++] = 1;
        c->term[n] = again, c->value[n] = 1;
        MPL_PASS(mpl_lp_add_row(c->lp, 1, n + (again != MPL_NONE), c->term, c->value));
    }
    return MPL_OK;
}

static mpl_status add_rows(moment *c)
{
    const mpl_stage_model *m = c->m;
    uint64_t sure = certain(m, c->t, c->op);
    uint32_t n = 0;

    for (uint32_t v = 0; v < m->n_lumps; v++) {
        if (c->there[v] == MPL_NONE)
            continue;
        if (last_user(m, v) > c->t) {
            MPL_PASS(add_need(c, v, MPL_NONE));
            if (mpl_recompute_uses(c->without, MPL_RECOMPUTE_RULE_paths))
                MPL_PASS(add_paths(c, v));
        }
        for (uint32_t u = m->user_begin[v]; u < m->user_begin[v + 1] && m->user[u] < c->t; u++)
            if (c->again[m->user[u]] != MPL_NONE)
                MPL_PASS(add_need(c, v, m->user[u]));
    }
    for (uint32_t v = 0; v < m->n_lumps; v++)
        if (c->there[v] != MPL_NONE)
            c->term[n] = c->there[v], c->value[n++] = -(double)m->bytes[v] / c->byte;
    return mpl_lp_add_row(c->lp, ((double)sure - (double)c->budget) / c->byte, n, c->term,
                          c->value);
}

static mpl_status open_moment(moment *c)
{
    const mpl_stage_model *m = c->m;
    uint64_t most = 1;

    MPL_PASS(mpl_lp_new(m->ctx, "moment", &c->lp));
    MPL_PASS(mpl_new(m->ctx, c->again, m->n));
    MPL_PASS(mpl_new(m->ctx, c->there, m->n_lumps));
    MPL_PASS(mpl_new_each(m->ctx, m->n_lumps + PATH + 4, c->term, c->value));
    memset(c->again, 0xff, m->n * sizeof *c->again);
    memset(c->there, 0xff, m->n_lumps * sizeof *c->there);
    for (uint32_t i = 0; i < m->n; i++)
        most = mpl_max_u64(most, m->work[i]);
    c->work = (double)most / 100;
    c->byte = (double)mpl_max_u64(c->budget, 1) / 1000;
    MPL_PASS(add_columns(c));
    return add_rows(c);
}

static void close_moment(moment *c)
{
    mpl_free_each(c->m->ctx, c->again, c->there, c->term, c->value);
    mpl_lp_free(c->m->ctx, c->lp);
}

/* Raises the bound to that of the moment at which `op` runs first. */
static mpl_status try_moment(const mpl_stage_model *m, mpl_recompute_task *task, mpl_op op,
                             bool *fits)
{
    mpl_status st = MPL_OK;
    moment c = {
        .m = m, .without = task->without, .budget = task->budget, .t = m->group_of[op], .op = op};
    mpl_lp_limits limits = {
        .max_nodes = BOUND_NODES, .max_mib = BOUND_MIB, .deadline_ns = INT64_MAX, .enough = -1};
    mpl_lp_answer answer;
    double *x = NULL, work;

    MPL_TRY(open_moment(&c));
    MPL_TRY(mpl_new(m->ctx, x, mpl_lp_columns(c.lp)));
    limits.max_pivots = 1 + BOUND_TICKS / (1 + mpl_lp_rows(c.lp) + mpl_lp_columns(c.lp));
    MPL_TRY(mpl_lp_solve(c.lp, &limits, &answer, x));
    task->found.ticks += answer.n_pivots;
    *fits = *fits && answer.state != MPL_LP_INFEASIBLE;
    work = answer.bound * c.work * (1 - 1e-9);
    if (work > 0) /* work is an integer, bounds are doubles */
        task->found.bound_work = mpl_max_u64(task->found.bound_work, (uint64_t)ceil(work));
out:
    close_moment(&c);
    mpl_free(m->ctx, x);
    return st;
}

/* ---- choice of moments ---- */

typedef struct need {
    uint64_t bytes;
    mpl_op op;
} need;

MPL_ORDER_BY(by_bytes, need, MPL_FALLING(bytes) MPL_RISING(op))

static mpl_status try_moments(const mpl_stage_model *m, mpl_recompute_task *task, bool *fits)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = m->g;
    need *list = NULL;
    uint32_t n = 0;

    MPL_TRY(mpl_new(m->ctx, list, g->n_ops));
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (m->group_of[op] != MPL_NONE)
            list[n++] = (need){all_of(m, m->group_of[op], op), op};
    qsort(list, n, sizeof *list, by_bytes);
    for (uint32_t i = 0; i < MOMENTS && i < n && *fits && list[i].bytes > task->budget; i++)
        MPL_TRY(try_moment(m, task, list[i].op, fits));
out:
    mpl_free(m->ctx, list);
    return st;
}

mpl_status mpl_recompute_bound(mpl_recompute_task *task, bool *fits)
{
    mpl_status st = MPL_OK;
    mpl_stage_model m = {0};

    *fits = true;
    task->found.has_bound = false;
    task->found.bound_work = 0;
    if (!mpl_recompute_uses(task->without, MPL_RECOMPUTE_RULE_bound))
        return MPL_OK;
    st = mpl_stage_model_new(task->ctx, task->g, task->options, NULL, NULL, &m);
    if (st == MPL_EINPUT) { /* too large: no bound */
        st = MPL_OK;
        goto out;
    }
    MPL_TRY(st);
    if (may_share(&m))
        goto out;
    MPL_TRY(try_moments(&m, task, fits));
    task->found.has_bound = true;
out:
    mpl_stage_model_fini(&m);
    return st;
}
