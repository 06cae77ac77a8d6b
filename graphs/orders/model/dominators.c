/* dominators.c -- trees of dominators of an acyclic graph. See dominators.h.
 *
 * Idea     In topological order, the parent of v is the nearest common ancestor of what is before
 *          v.
 * Source   Jump pointers: E. Myers, "An applicative random-access stack", 1983. */
#include "graphs/orders/model/dominators.h"

static uint32_t common_ancestor(const mpl_dominators *d, uint32_t u, uint32_t v)
{
    if (d->depth[u] < d->depth[v]) {
        uint32_t other = u;

        u = v, v = other;
    }
    while (d->depth[u] > d->depth[v])
        u = d->depth[d->jump[u]] >= d->depth[v] ? d->jump[u] : d->parent[u];
    while (u != v) {
        bool far = d->jump[u] != d->jump[v];

        u = far ? d->jump[u] : d->parent[u];
        v = far ? d->jump[v] : d->parent[v];
    }
    return u;
}

static void set_parent(mpl_dominators *d, uint32_t v, uint32_t parent)
{
    uint32_t far = d->jump[parent];

    d->parent[v] = parent;
    d->depth[v] = d->depth[parent] + 1;
    d->jump[v] = d->depth[parent] - d->depth[far] == d->depth[far] - d->depth[d->jump[far]]
                     ? d->jump[far]
                     : parent;
}

/* Numbers the vertices so that subtrees are ranges. Parents come before children in `order`. */
static void number(mpl_dominators *d, bool from_end)
{
    uint32_t n = d->n, *next = d->jump; /* no longer needed */

    for (uint32_t v = 0; v <= n; v++)
        d->size[v] = 1;
    for (uint32_t i = n; i-- > 0;) {
        uint32_t v = from_end ? n - 1 - i : i;

        d->size[d->parent[v]] += d->size[v];
    }
    d->place[n] = 0;
    d->at[0] = n;
    next[n] = 1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = from_end ? n - 1 - i : i;

        d->place[v] = next[d->parent[v]];
        next[d->parent[v]] += d->size[v];
        next[v] = d->place[v] + 1;
        d->at[d->place[v]] = v;
    }
}

mpl_status mpl_dominators_new(mpl_ctx *ctx, const mpl_order_model *m, bool from_end,
                              mpl_dominators *d)
{
    const mpl_lists *l = from_end ? &m->after : &m->before;
    uint32_t n = m->n;

    *d = (mpl_dominators){.n = n};
    MPL_PASS(
        mpl_new_each(ctx, (size_t)n + 1, d->parent, d->depth, d->jump, d->size, d->place, d->at));
    d->parent[n] = d->jump[n] = n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = from_end ? n - 1 - i : i;
        uint32_t parent = l->begin[v] < l->begin[v + 1] ? l->item[l->begin[v]] : n;

        for (uint32_t k = l->begin[v]; k < l->begin[v + 1]; k++)
            parent = common_ancestor(d, parent, l->item[k]);
        set_parent(d, v, parent);
    }
    number(d, from_end);
    return MPL_OK;
}

void mpl_dominators_fini(mpl_ctx *ctx, mpl_dominators *d)
{
    void *const arrays[] = {d->parent, d->depth, d->jump, d->size, d->place, d->at};

    MPL_FREE_ALL(ctx, arrays);
    memset(d, 0, sizeof *d);
}
