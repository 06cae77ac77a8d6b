/* dominators.c -- trees of dominators of an acyclic graph. See dominators.h.
 *
 * Idea     In topological order, the parent of v is the nearest common ancestor of what is before
 *          v.
 * Source   Jump pointers: E. Myers, "An applicative random-access stack", 1983. */
#include "graphs/orders/model/dominators.h"

static uint32_t common_ancestor(const mpl_dominators *dominators, uint32_t u, uint32_t v)
{
    if (dominators->depth[u] < dominators->depth[v]) {
        uint32_t other = u;

        u = v, v = other;
    }
    while (dominators->depth[u] > dominators->depth[v])
        u = dominators->depth[dominators->jump[u]] >= dominators->depth[v] ? dominators->jump[u]
                                                                           : dominators->parent[u];
    while (u != v) {
        bool far = dominators->jump[u] != dominators->jump[v];

        u = far ? dominators->jump[u] : dominators->parent[u];
        v = far ? dominators->jump[v] : dominators->parent[v];
    }
    return u;
}

static void set_parent(mpl_dominators *dominators, uint32_t v, uint32_t parent)
{
    uint32_t far = dominators->jump[parent];

    dominators->parent[v] = parent;
    dominators->depth[v] = dominators->depth[parent] + 1;
    dominators->jump[v] = dominators->depth[parent] - dominators->depth[far] ==
                                  dominators->depth[far] - dominators->depth[dominators->jump[far]]
                              ? dominators->jump[far]
                              : parent;
}

/* Numbers the vertices so that subtrees are ranges. Parents come before children in `order`. */
static void number(mpl_dominators *dominators, bool from_end)
{
    uint32_t n = dominators->n, *next = dominators->jump; /* no longer needed */

    for (uint32_t v = 0; v <= n; v++)
        dominators->size[v] = 1;
    for (uint32_t i = n; i-- > 0;) {
        uint32_t v = from_end ? n - 1 - i : i;

        dominators->size[dominators->parent[v]] += dominators->size[v];
    }
    dominators->place[n] = 0;
    dominators->at[0] = n;
    next[n] = 1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = from_end ? n - 1 - i : i;

        dominators->place[v] = next[dominators->parent[v]];
        next[dominators->parent[v]] += dominators->size[v];
        next[v] = dominators->place[v] + 1;
        dominators->at[dominators->place[v]] = v;
    }
}

mpl_status mpl_dominators_new(mpl_ctx *ctx, const mpl_order_model *model, bool from_end,
                              mpl_dominators *dominators)
{
    const mpl_lists *lists = from_end ? &model->after : &model->before;
    uint32_t n = model->n;

    *dominators = (mpl_dominators){.n = n};
    MPL_PASS(mpl_new_each(ctx, (size_t)n + 1, dominators->parent, dominators->depth,
                          dominators->jump, dominators->size, dominators->place, dominators->at));
    dominators->parent[n] = dominators->jump[n] = n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = from_end ? n - 1 - i : i;
        uint32_t parent = lists->begin[v] < lists->begin[v + 1] ? lists->item[lists->begin[v]] : n;

        for (uint32_t k = lists->begin[v]; k < lists->begin[v + 1]; k++)
            parent = common_ancestor(dominators, parent, lists->item[k]);
        set_parent(dominators, v, parent);
    }
    number(dominators, from_end);
    return MPL_OK;
}

void mpl_dominators_fini(mpl_ctx *ctx, mpl_dominators *d)
{
    void *const arrays[] = {d->parent, d->depth, d->jump, d->size, d->place, d->at};

    MPL_FREE_ALL(ctx, arrays);
    memset(d, 0, sizeof *d);
}
