/* exec_ways.c -- the ways in which a device can compute each operation. See mpl_exec_ways. */
#include "graphs/orders/work.h"
#include "runtime/exec.h"

typedef struct lister {
    mpl_ctx *ctx;
    const mpl_backend *backend;
    mpl_device *dev;
    const mpl_graph *g;
    mpl_ways *ways;
    uint32_t n;
    size_t bytes_room, cost_room, name_room;
} lister;

static mpl_status add(lister *l, mpl_op op, uint64_t bytes, const char *how)
{
    mpl_ways *w = l->ways;
    uint64_t place = l->n - w->begin[op] + 1, work = mpl_op_work(l->g, op);

    MPL_PASS(mpl_reserve(l->ctx, w->bytes, l->bytes_room, (size_t)l->n + 1));
    MPL_PASS(mpl_reserve(l->ctx, w->cost, l->cost_room, (size_t)l->n + 1));
    MPL_PASS(mpl_reserve(l->ctx, w->name, l->name_room, (size_t)l->n + 1));
    w->bytes[l->n] = bytes;
    w->cost[l->n] = work <= MPL_MOST_WORK / place ? work * place : MPL_MOST_WORK;
    snprintf(w->name[l->n], sizeof w->name[l->n], "%s", how);
    l->n++;
    return MPL_OK;
}

/* Adds how op is computed within the limit; *found: there is a way. */
static mpl_status add_within(lister *l, mpl_op op, uint64_t limit, uint64_t *bytes, bool *found)
{
    mpl_status st = MPL_OK;
    mpl_prepared *prepared = NULL;
    const char *how = "";

    *found = true;
    if (l->backend->limit_workspace != NULL)
        l->backend->limit_workspace(l->dev, limit);
    st = l->backend->prepare(l->dev, l->g, op, &prepared, bytes, &how);
    if (st == MPL_EUNAVAIL && limit < UINT64_MAX) {
        *found = false;
        return MPL_OK;
    }
    if (st == MPL_OK)
        st = add(l, op, *bytes, how);
    l->backend->release(l->dev, prepared);
    return st;
}

static mpl_status list_op(lister *l, mpl_op op)
{
    uint64_t bytes = UINT64_MAX;
    bool found = true;

    if (mpl_op_table[l->g->op_kind[op]].traits & MPL_CONTROL)
        return add(l, op, 0, "control flow");
    do {
        uint64_t limit = bytes == UINT64_MAX ? bytes : bytes - 1;

        MPL_PASS(add_within(l, op, limit, &bytes, &found));
        if (found && bytes > limit)
            return MPL_ERROR(l->ctx, MPL_EINVALID,
                             "backend %s: operation '%s' wants %" PRIu64 " bytes where %" PRIu64
                             " are allowed",
                             l->backend->name, l->g->op_name[op], bytes, limit);
    } while (found && bytes > 0 && l->backend->limit_workspace != NULL);
    return MPL_OK;
}

mpl_status mpl_exec_ways(mpl_ctx *ctx, const mpl_backend *backend, mpl_device *dev,
                         const mpl_graph *g, mpl_ways **out)
{
    mpl_status st = MPL_OK;
    lister l = {.ctx = ctx, .backend = backend, .dev = dev, .g = g};

    MPL_TRY(mpl_new(ctx, l.ways, 1));
    l.ways->n_ops = g->n_ops;
    MPL_TRY(mpl_new(ctx, l.ways->begin, (size_t)g->n_ops + 1));
    for (mpl_op op = 0; op < g->n_ops; op++) {
        l.ways->begin[op] = l.n;
        MPL_TRY(list_op(&l, op));
    }
    l.ways->begin[g->n_ops] = l.n;
    *out = l.ways, l.ways = NULL;
out:
    if (backend->limit_workspace != NULL)
        backend->limit_workspace(dev, UINT64_MAX);
    mpl_ways_free(ctx, l.ways);
    return st;
}
