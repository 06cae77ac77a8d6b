/* tile_search.c -- least peak within a factor of work, least work within a peak: see tile.h.
 *
 * A position of the order, with the form of what lies between its two operations, is a node; an
 * operation as it is or a region with its patches an edge.
 * The peak of a way is the highest of its edges, its work their sum. The least work with a peak of
 * at most B is a shortest way over edges of at most B; the least B is found among the edges' peaks.
 */
#include "graphs/passes/tile/tile_priv.h"

static bool is_less(tile_cost a, tile_cost b)
{
    return a.work != b.work ? a.work < b.work : a.n_patches < b.n_patches;
}

bool tile_least_work(const tile_edges *edges, uint64_t most, tile_cost *cost, uint32_t *via)
{
    const tile_cost far = {UINT64_MAX, UINT64_MAX};
    mpl_op n = edges->g->n_ops;

    for (size_t i = 0; i < tile_node(n + 1, 0); i++)
        cost[i] = i == 0 ? (tile_cost){0, 0} : far, via[i] = MPL_NONE;
    for (size_t i = 0; i < edges->n; i++) {
        const tile_edge *edge = &edges->edge[i];
        tile_cost at = cost[tile_from(edge)];

        if (edge->peak > most || at.work == UINT64_MAX)
            continue;
        at.work += edge->work, at.n_patches += edge->n_patches;
        if (is_less(at, cost[tile_to(edge)]))
            cost[tile_to(edge)] = at, via[tile_to(edge)] = (uint32_t)i;
    }
    return cost[tile_node(n, 0)].work != UINT64_MAX;
}

typedef struct search {
    mpl_ctx *ctx;
    tile_edges e;
    tile_cost *cost; /* [(n_ops + 1) * TILE_FORMS] */
    uint32_t *via;
    int64_t *peak; /* [e.n] of edges, ascending [byte] */
} search;

/* The least peak with at most `most` work; false: none. */
static bool least_peak(search *self, uint64_t most, uint64_t *peak)
{
    size_t low = 0, high = self->e.n;
    mpl_op n = self->e.g->n_ops;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (tile_least_work(&self->e, (uint64_t)self->peak[mid], self->cost, self->via) &&
            self->cost[tile_node(n, 0)].work <= most)
            high = mid;
        else
            low = mid + 1;
    }
    *peak = low < self->e.n ? (uint64_t)self->peak[low] : 0;
    return low < self->e.n;
}

/* The highest step if `edge` alone is by patches. */
static uint64_t peak_with(const search *self, const tile_edge *edge)
{
    uint64_t peak = edge->peak;

    for (size_t k = 0; k < self->e.n; k++) {
        const tile_edge *other = &self->e.edge[k];

        if (other->n_patches == 0 &&
            (other->r.begin < edge->r.begin || other->r.begin >= edge->r.end))
            peak = mpl_max_u64(peak, other->peak);
    }
    return peak;
}

/* The one region that leaves the least peak, then the least work. */
static mpl_status take_one(search *self, const mpl_tile_ask *ask, uint32_t *n,
                           mpl_tile_region **region, uint64_t *peak)
{
    const tile_edge *best = NULL;

    for (size_t i = 0; i < self->e.n; i++) {
        const tile_edge *edge = &self->e.edge[i];
        uint64_t with = edge->n_patches > 0 ? peak_with(self, edge) : 0;

        if (edge->n_patches > 0 &&
            (best == NULL || with < *peak || (with == *peak && edge->work < best->work)))
            best = edge, *peak = with;
    }
    if (best == NULL)
        return MPL_REFUSE(self->ctx,
                          "no region of '%s' lowers the peak by %" PRIu64 " patches of rows",
                          self->e.g->name, ask->patches);
    MPL_PASS(mpl_new(self->ctx, *region, 1));
    (*region)[(*n)++] = best->r;
    return MPL_OK;
}

static mpl_status take_way(search *self, uint32_t *n, mpl_tile_region **region, uint64_t *peak)
{
    MPL_PASS(mpl_new(self->ctx, *region, self->e.g->n_ops));
    for (size_t at = tile_node(self->e.g->n_ops, 0); at > 0;) {
        const tile_edge *edge = &self->e.edge[self->via[at]];

        *peak = mpl_max_u64(*peak, edge->peak);
        if (edge->n_patches > 0)
            (*region)[(*n)++] = edge->r;
        at = tile_from(edge);
    }
    for (uint32_t i = 0; i < *n / 2; i++) {
        mpl_tile_region other = (*region)[i];

        (*region)[i] = (*region)[*n - 1 - i], (*region)[*n - 1 - i] = other;
    }
    return MPL_OK;
}

static uint64_t work_of(const search *self, double factor)
{
    double most = factor * (double)self->e.plain_work;

    return most < 0x1p63 ? (uint64_t)most : UINT64_MAX - 1;
}

static mpl_status choose(search *self, const mpl_tile_ask *ask, uint32_t *n,
                         mpl_tile_region **region, mpl_tile_facts *facts)
{
    uint64_t most = ask->bytes;

    if (ask->goal == MPL_TILE_ROWS)
        return take_one(self, ask, n, region, &facts->model_bytes);
    least_peak(self, UINT64_MAX - 1, &facts->least_bytes);
    if (ask->goal == MPL_TILE_WORK)
        least_peak(self, work_of(self, ask->factor), &most);
    if (!tile_least_work(&self->e, most, self->cost, self->via))
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "no choice of patches of '%s' needs at most %" PRIu64
                         " bytes; the least is %" PRIu64,
                         self->e.g->name, most, facts->least_bytes);
    return take_way(self, n, region, &facts->model_bytes);
}

mpl_status mpl_tile_search(mpl_ctx *ctx, const mpl_graph *g, const mpl_tile_ask *ask, uint32_t *n,
                           mpl_tile_region **region, mpl_tile_facts *facts)
{
    mpl_status st = MPL_OK;
    search s = {.ctx = ctx};

    *n = 0, *region = NULL, *facts = (mpl_tile_facts){0};
    if (g->n_blocks > 1)
        return MPL_REFUSE(ctx, "'%s' has loops or branches, which patches do not go through",
                          g->name);
    MPL_TRY(mpl_graph_check_ssa(ctx, g));
    MPL_TRY(tile_edges_new(ctx, g, ask->goal == MPL_TILE_ROWS ? ask->patches : 0, &s.e));
    MPL_TRY(mpl_new_each(ctx, tile_node(g->n_ops + 1, 0), s.cost, s.via));
    MPL_TRY(mpl_new(ctx, s.peak, s.e.n));
    for (size_t i = 0; i < s.e.n; i++)
        s.peak[i] = (int64_t)s.e.edge[i].peak;
    mpl_sort_i64(s.peak, s.e.n);
    facts->bound_bytes = s.e.bound;
    MPL_TRY(choose(&s, ask, n, region, facts));
out:
    if (st != MPL_OK) {
        mpl_free(ctx, *region);
        *n = 0, *region = NULL;
    }
    mpl_free_each(ctx, s.e.edge, s.cost, s.via, s.peak);
    return st;
}
