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
    const mpl_stage_model *model;
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
static bool may_share(const mpl_stage_model *model)
{
    const mpl_graph *g = model->g;

    for (mpl_op op = 0; op < g->n_ops && g->n_blocks == 1; op++) {
        bool view =
            model->options->views && mpl_may_be_view(g, op) && model->group_of[op] != MPL_NONE;
        bool inside = g->op_kind[op] == MPL_OP_concat && model->options->concat != MPL_CONCAT_COPY;
        bool update = mpl_n_updates((mpl_op_kind)g->op_kind[op]) > 0 &&
                      (!model->options->pin_outputs || !model->options->pin_weights);

        if (view || inside || update)
            return true;
    }
    return g->n_blocks > 1;
}

static uint32_t last_user(const mpl_stage_model *model, uint32_t v)
{
    return model->user[model->user_begin[v + 1] - 1]; /* every lump has a reader */
}

static bool reads(const mpl_stage_model *model, uint32_t group, uint32_t v)
{
    for (uint32_t r = model->read_begin[group]; r < model->read_begin[group + 1]; r++)
        if (model->read[r] == v)
            return true;
    return false;
}

/* Bytes that a group of this operation alone may share with its operands. */
static uint64_t saved(const mpl_stage_model *model, mpl_op op)
{
    const mpl_graph *g = model->g;
    uint64_t rest = model->options->align - 1;
    mpl_value out =
        g->op_out_begin[op] < g->op_out_begin[op + 1] ? g->op_out[g->op_out_begin[op]] : MPL_NONE;
    bool in_place =
        (mpl_op_table[g->op_kind[op]].traits & (MPL_IN_PLACE_0 | MPL_IN_PLACE_ANY)) != 0 ||
        g->op_kind[op] == MPL_OP_opaque;
    uint64_t bytes = in_place && model->options->in_place && out != MPL_NONE
                         ? (g->value_bytes[out] + rest) & ~rest
                         : 0;

    if (mpl_n_updates((mpl_op_kind)g->op_kind[op]) > 0)
        bytes += model->inner[model->group_of[op]]; /* lies in the place of what it updates */
    return bytes;
}

/* Bytes that are in memory in every run. */
static uint64_t certain(const mpl_stage_model *model, uint32_t t, mpl_op op)
{
    uint64_t need = model->inner[t], less = saved(model, op);

    for (uint32_t v = 0; v < model->n_lumps; v++) {
        bool kept = model->fixed[v] && !model->may[model->maker[v]] && model->maker[v] < t &&
                    last_user(model, v) >= t;

        need += model->maker[v] == t || (model->maker[v] < t && reads(model, t, v)) || kept
                    ? model->bytes[v]
                    : 0;
    }
    return need - mpl_min_u64(need, less);
}

/* Whether lump v may be in memory or not. */
static bool is_open(const mpl_stage_model *model, uint32_t t, uint32_t v)
{
    return !model->fixed[v] && model->maker[v] < t && !reads(model, t, v);
}

/* Bytes in memory if no operation ran again. */
static uint64_t all_of(const mpl_stage_model *model, uint32_t t, mpl_op op)
{
    uint64_t need = certain(model, t, op);

    for (uint32_t v = 0; v < model->n_lumps; v++)
        need += is_open(model, t, v) && last_user(model, v) > t ? model->bytes[v] : 0;
    return need;
}

static mpl_status add_columns(moment *self)
{
    const mpl_stage_model *model = self->model;

    for (uint32_t i = 0; i < self->t; i++)
        if (model->may[i])
            MPL_PASS(mpl_lp_add_column(self->lp, true, 0, 1, (double)model->work[i] / self->work,
                                       'a', i, MPL_NONE, &self->again[i]));
    for (uint32_t v = 0; v < model->n_lumps; v++)
        if (is_open(model, self->t, v))
            MPL_PASS(mpl_lp_add_column(self->lp, true, 0, 1, 0, 't', v, MPL_NONE, &self->there[v]));
    return MPL_OK;
}

/* Row: a later reader of v (MPL_NONE: a first run) finds v in memory or made again. */
static mpl_status add_need(moment *self, uint32_t v, uint32_t reader)
{
    uint32_t n = 0, again = self->again[self->model->maker[v]];

    self->term[n] = self->there[v], self->value[n++] = 1;
    if (again != MPL_NONE)
        self->term[n] = again, self->value[n++] = 1;
    if (reader != MPL_NONE)
        self->term[n] = self->again[reader], self->value[n++] = -1;
    return mpl_lp_add_row(self->lp, reader == MPL_NONE ? 1 : 0, n, self->term, self->value);
}

/* The largest open lump that the maker of v reads; or MPL_NONE. */
static uint32_t before_lump(const moment *self, uint32_t v)
{
    const mpl_stage_model *model = self->model;
    uint32_t maker = model->maker[v], best = MPL_NONE;

    for (uint32_t r = model->read_begin[maker]; r < model->read_begin[maker + 1]; r++)
        if (self->there[model->read[r]] != MPL_NONE &&
            (best == MPL_NONE || model->bytes[model->read[r]] > model->bytes[best]))
            best = model->read[r];
    return best;
}

/* Adds rows that hold for integer points but not for the relaxation: on a path of lumps back from
 * v, which is needed, one lump is in memory or the maker of the path's first lump runs again. */
static mpl_status add_paths(moment *self, uint32_t v)
{
    uint32_t n = 1, end = before_lump(self, v);

    self->term[0] = self->there[v], self->value[0] = 1;
    for (uint32_t depth = 2; depth <= PATH && end != MPL_NONE;
         depth++, end = before_lump(self, end)) {
        uint32_t again = self->again[self->model->maker[end]];

        self->term[n] = self->there[end], self->value[n++] = 1;
        self->term[n] = again, self->value[n] = 1;
        MPL_PASS(mpl_lp_add_row(self->lp, 1, n + (again != MPL_NONE), self->term, self->value));
    }
    return MPL_OK;
}

static mpl_status add_rows(moment *self)
{
    const mpl_stage_model *model = self->model;
    uint64_t sure = certain(model, self->t, self->op);
    uint32_t n = 0;

    for (uint32_t v = 0; v < model->n_lumps; v++) {
        if (self->there[v] == MPL_NONE)
            continue;
        if (last_user(model, v) > self->t) {
            MPL_PASS(add_need(self, v, MPL_NONE));
            if (mpl_recompute_uses(self->without, MPL_RECOMPUTE_RULE_paths))
                MPL_PASS(add_paths(self, v));
        }
        for (uint32_t u = model->user_begin[v];
             u < model->user_begin[v + 1] && model->user[u] < self->t; u++)
            if (self->again[model->user[u]] != MPL_NONE)
                MPL_PASS(add_need(self, v, model->user[u]));
    }
    for (uint32_t v = 0; v < model->n_lumps; v++)
        if (self->there[v] != MPL_NONE)
            self->term[n] = self->there[v],
            self->value[n++] = -(double)model->bytes[v] / self->byte;
    return mpl_lp_add_row(self->lp, ((double)sure - (double)self->budget) / self->byte, n,
                          self->term, self->value);
}

static mpl_status open_moment(moment *self)
{
    const mpl_stage_model *model = self->model;
    uint64_t most = 1;

    MPL_PASS(mpl_lp_new(model->ctx, "moment", &self->lp));
    MPL_PASS(mpl_new(model->ctx, self->again, model->n));
    MPL_PASS(mpl_new(model->ctx, self->there, model->n_lumps));
    MPL_PASS(mpl_new_each(model->ctx, model->n_lumps + PATH + 4, self->term, self->value));
    memset(self->again, 0xff, model->n * sizeof *self->again);
    memset(self->there, 0xff, model->n_lumps * sizeof *self->there);
    for (uint32_t i = 0; i < model->n; i++)
        most = mpl_max_u64(most, model->work[i]);
    self->work = (double)most / 100;
    self->byte = (double)mpl_max_u64(self->budget, 1) / 1000;
    MPL_PASS(add_columns(self));
    return add_rows(self);
}

static void close_moment(moment *self)
{
    mpl_free_each(self->model->ctx, self->again, self->there, self->term, self->value);
    mpl_lp_free(self->model->ctx, self->lp);
}

/* Raises the bound to that of the moment at which `op` runs first. */
static mpl_status try_moment(const mpl_stage_model *model, mpl_recompute_task *task, mpl_op op,
                             bool *fits)
{
    mpl_status st = MPL_OK;
    moment c = {.model = model,
                .without = task->without,
                .budget = task->budget,
                .t = model->group_of[op],
                .op = op};
    mpl_lp_limits limits = {
        .max_nodes = BOUND_NODES, .max_mib = BOUND_MIB, .deadline_ns = INT64_MAX, .enough = -1};
    mpl_lp_answer answer;
    double *x = NULL, work;

    MPL_TRY(open_moment(&c));
    MPL_TRY(mpl_new(model->ctx, x, mpl_lp_columns(c.lp)));
    limits.max_pivots = 1 + BOUND_TICKS / (1 + mpl_lp_rows(c.lp) + mpl_lp_columns(c.lp));
    MPL_TRY(mpl_lp_solve(c.lp, &limits, &answer, x));
    task->found.ticks += answer.n_pivots;
    *fits = *fits && answer.state != MPL_LP_INFEASIBLE;
    work = answer.bound * c.work * (1 - 1e-9);
    if (work > 0) /* work is an integer, bounds are doubles */
        task->found.bound_work = mpl_max_u64(task->found.bound_work, (uint64_t)ceil(work));
out:
    close_moment(&c);
    mpl_free(model->ctx, x);
    return st;
}

/* ---- choice of moments ---- */

typedef struct need {
    uint64_t bytes;
    mpl_op op;
} need;

MPL_ORDER_BY(by_bytes, need, MPL_FALLING(bytes) MPL_RISING(op))

static mpl_status try_moments(const mpl_stage_model *model, mpl_recompute_task *task, bool *fits)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = model->g;
    need *list = NULL;
    uint32_t n = 0;

    MPL_TRY(mpl_new(model->ctx, list, g->n_ops));
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (model->group_of[op] != MPL_NONE)
            list[n++] = (need){all_of(model, model->group_of[op], op), op};
    qsort(list, n, sizeof *list, by_bytes);
    for (uint32_t i = 0; i < MOMENTS && i < n && *fits && list[i].bytes > task->budget; i++)
        MPL_TRY(try_moment(model, task, list[i].op, fits));
out:
    mpl_free(model->ctx, list);
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
