/* order_program.c -- orders of graphs with control flow, of the least peak, with a bound.
 *
 * Idea     Nested blocks first, each by its own model, in which a loop or case counts with what its
 *          blocks need at least (model_blocks.h). The bound of block 0 is one of all orders of all
 *          blocks. The order found gets the storage that the planner sees; a plain one is kept if
 *          its peak there is lower.
 * Source   this project
 * Cost     A search of each block, then one problem for each order that is compared. */
#include "graphs/orders/model/model_blocks.h"
#include "graphs/orders/order_blocks.h"
#include "graphs/orders/orders_priv.h"

typedef struct program {
    mpl_order_run *run;
    uint32_t left_out;
    const mpl_graph *g;
    mpl_block_models *models;
    uint64_t ticks, budget;
    bool late;
    const char *method;
} program;

/* Orders one block, and notes what it needs at least. */
static mpl_status search_block(mpl_ctx *ctx, const mpl_graph *g, uint32_t block, void *how,
                               mpl_op *order)
{
    mpl_status st = MPL_OK;
    program *x = how;
    mpl_order_run run = *x->run;
    mpl_order_model *model = NULL;

    MPL_TRY(mpl_block_model_new(x->models, block, &model));
    if (x->budget < UINT64_MAX)
        run.budget_ticks = (x->budget - mpl_min_u64(x->budget, x->ticks)) / 2 + 1;
    run.live_bytes = run.bound_bytes = run.ticks = 0;
    run.method = NULL;
    run.stopped_by_clock = false;
    if (model->n > 0)
        MPL_TRY(mpl_order_search_model(&run, x->left_out, model, g, order));
    x->models->need[block] = mpl_max_u64(run.bound_bytes, mpl_order_model_start(model));
    x->ticks += run.ticks;
    x->late = x->late || run.stopped_by_clock;
    if (run.method != NULL && (x->method == NULL || strcmp(run.method, "search") == 0))
        x->method = run.method;
out:
    mpl_order_model_free(ctx, model);
    return st;
}

/* Keeps the plain order whose peak is the lowest, if it is below *live. */
static mpl_status compare_plain(program *self, const mpl_problem_options *options, mpl_op *order,
                                uint64_t *live)
{
    static mpl_plain_order *const plain[] = {mpl_order_greedy, mpl_order_dfs};
    mpl_status st = MPL_OK;
    mpl_ctx *ctx = self->run->ctx;
    mpl_op *other = NULL;
    uint8_t *shared = NULL;
    uint64_t peak;

    MPL_TRY(mpl_new_each(ctx, self->g->n_ops, other, shared));
    MPL_TRY(mpl_order_live(ctx, self->g, options, order, shared, live));
    for (size_t i = 0; self->models->need[0] < *live && i <= sizeof plain / sizeof *plain; i++) {
        MPL_TRY(i == 0 ? mpl_order_given(ctx, self->g, other)
                       : mpl_order_each_block(ctx, self->g, plain[i - 1], other));
        MPL_TRY(mpl_order_live(ctx, self->g, options, other, shared, &peak));
        self->ticks += self->g->n_ops;
        if (peak >= *live)
            continue;
        *live = peak;
        memcpy(order, other, self->g->n_ops * sizeof *order);
    }
out:
    mpl_free_each(ctx, other, shared);
    return st;
}

static const char *scope_of(const mpl_graph *g)
{
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_kind[op] == MPL_OP_concat || g->op_kind[op] == MPL_OP_split ||
            g->op_kind[op] == MPL_OP_slice)
            return "all orders of every block, with concats and splits copied";
    return "all orders of every block";
}

static mpl_status search_program(mpl_order_run *run, const mpl_graph *g, uint32_t left_out,
                                 mpl_op *order)
{
    mpl_status st = MPL_OK;
    program x = {.run = run, .left_out = left_out, .g = g, .budget = run->budget_ticks};

    MPL_TRY(mpl_block_models_new(run->ctx, g, run->options, &x.models));
    MPL_TRY(mpl_order_by_blocks(run->ctx, g, true, search_block, &x, order));
    MPL_TRY(compare_plain(&x, &x.models->options, order, &run->live_bytes));
    run->bound_bytes = x.models->need[0];
    run->method = x.method;
    run->scope = scope_of(g);
    run->ticks = x.ticks;
    run->stopped_by_clock = x.late;
out:
    mpl_block_models_free(x.models);
    return st;
}

static mpl_status search(mpl_order_run *run, const mpl_graph *g, uint32_t left_out, mpl_op *order)
{
    return g->n_blocks > 1 ? search_program(run, g, left_out, order)
                           : mpl_order_search_flat(run, g, left_out, order);
}

static uint32_t bit(mpl_order_rule rule)
{
    return UINT32_C(1) << rule;
}

mpl_status mpl_order_search_least_peak(mpl_order_run *run, const mpl_graph *g, mpl_op *order)
{
    return search(run, g, bit(MPL_ORDER_RULE_anneal), order);
}

mpl_status mpl_order_search_beam(mpl_order_run *run, const mpl_graph *g, mpl_op *order)
{
    return search(run, g, bit(MPL_ORDER_RULE_search) | bit(MPL_ORDER_RULE_anneal), order);
}

mpl_status mpl_order_search_anneal(mpl_order_run *run, const mpl_graph *g, mpl_op *order)
{
    return search(run, g, bit(MPL_ORDER_RULE_search) | bit(MPL_ORDER_RULE_beam), order);
}
