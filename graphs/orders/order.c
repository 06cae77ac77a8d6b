/* order.c -- the list of orders; an order by name and parameters. See order.h, orders.def. */
#include "graphs/problem/liveness.h"
#include "graphs/orders/order_blocks.h"
#include "graphs/orders/orders_priv.h"

#include <stdlib.h>

#define ORDER(name, about)                                                                         \
    static const mpl_order_kind order_##name = {#name, about, mpl_order_##name, NULL, NULL};
#define SEARCH(name, about, params)                                                                \
    static mpl_status make_##name(mpl_ctx *ctx, const mpl_graph *g, mpl_op *order)                 \
    {                                                                                              \
        mpl_order_run run = mpl_order_run_default(ctx);                                            \
                                                                                                   \
        return mpl_order_search_##name(&run, g, order);                                            \
    }                                                                                              \
    static const mpl_order_kind order_##name = {#name, about, make_##name, params,                 \
                                                mpl_order_search_##name};
#include "graphs/orders/orders.def"
#undef ORDER
#undef SEARCH

const mpl_order_kind *const mpl_orders[] = {
#define ORDER(name, about)          &order_##name,
#define SEARCH(name, about, params) &order_##name,
#include "graphs/orders/orders.def"
#undef ORDER
#undef SEARCH
    NULL};

const mpl_order_kind *mpl_order_find(const char *name)
{
    for (size_t i = 0; mpl_orders[i] != NULL; i++)
        if (strcmp(mpl_orders[i]->name, name) == 0)
            return mpl_orders[i];
    return NULL;
}

/* Whether `params`, "a=N,b=N", has the key. */
static bool has_param(const char *params, const char *key)
{
    size_t n = strlen(key);

    for (const char *at = params; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, key, n) == 0 && at[n] == '=')
            return true;
    }
    return false;
}

mpl_status mpl_order_make(mpl_order_run *run, const mpl_order_kind *kind, const mpl_graph *g,
                          mpl_op *order)
{
    run->live_bytes = run->bound_bytes = run->ticks = 0;
    run->stopped_by_clock = false;
    run->method = run->scope = NULL;
    MPL_PASS(mpl_graph_check_ssa(run->ctx, g));
    for (uint32_t i = 0; i < run->n_params; i++)
        if (!has_param(kind->params, run->param_key[i]))
            return MPL_REFUSE(run->ctx, "order %s has no parameter '%.50s'; it takes: %s",
                              kind->name, run->param_key[i],
                              kind->params != NULL ? kind->params : "none");
    if (kind->search != NULL)
        MPL_PASS(kind->search(run, g, order));
    else if (kind->make != mpl_order_given)
        MPL_PASS(mpl_order_each_block(run->ctx, g, kind->make, order));
    else
        MPL_PASS(mpl_order_given(run->ctx, g, order));
    return MPL_OK;
}

mpl_status mpl_order_of(mpl_ctx *ctx, const mpl_graph *g, const mpl_order_kind *kind, mpl_op *order)
{
    mpl_order_run run = mpl_order_run_default(ctx);

    return mpl_order_make(&run, kind, g, order);
}
