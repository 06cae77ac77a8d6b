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

static mpl_status add(lister *self, mpl_op op, uint64_t bytes, const char *how)
{
    mpl_ways *ways = self->ways;
    uint64_t place = self->n - ways->begin[op] + 1, work = mpl_op_work(self->g, op);

    MPL_PASS(mpl_reserve(self->ctx, ways->bytes, self->bytes_room, (size_t)self->n + 1));
    MPL_PASS(mpl_reserve(self->ctx, ways->cost, self->cost_room, (size_t)self->n + 1));
    MPL_PASS(mpl_reserve(self->ctx, ways->name, self->name_room, (size_t)self->n + 1));
    ways->bytes[self->n] = bytes;
    ways->cost[self->n] = work <= MPL_MOST_WORK / place ? work * place : MPL_MOST_WORK;
    snprintf(ways->name[self->n], sizeof ways->name[self->n], "%s", how);
    self->n++;
    return MPL_OK;
}

/* Adds how op is computed within the limit; *found: there is a way. */
static mpl_status add_within(lister *self, mpl_op op, uint64_t limit, uint64_t *bytes, bool *found)
{
    mpl_status st = MPL_OK;
    mpl_prepared *prepared = NULL;
    const char *how = "";

    *found = true;
    if (self->backend->limit_workspace != NULL)
        self->backend->limit_workspace(self->dev, limit);
    st = self->backend->prepare(self->dev, self->g, op, &prepared, bytes, &how);
    if (st == MPL_EUNAVAIL && limit < UINT64_MAX) {
        *found = false;
        return MPL_OK;
    }
    if (st == MPL_OK)
        st = add(self, op, *bytes, how);
    self->backend->release(self->dev, prepared);
    return st;
}

static mpl_status list_op(lister *self, mpl_op op)
{
    uint64_t bytes = UINT64_MAX;
    bool found = true;

    if (mpl_op_table[self->g->op_kind[op]].traits & MPL_CONTROL)
        return add(self, op, 0, "control flow");
    do {
        uint64_t limit = bytes == UINT64_MAX ? bytes : bytes - 1;

        MPL_PASS(add_within(self, op, limit, &bytes, &found));
        if (found && bytes > limit)
            return MPL_ERROR(self->ctx, MPL_EINVALID,
                             "backend %s: operation '%s' wants %" PRIu64 " bytes where %" PRIu64
                             " are allowed",
                             self->backend->name, self->g->op_name[op], bytes, limit);
    } while (found && bytes > 0 && self->backend->limit_workspace != NULL);
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
