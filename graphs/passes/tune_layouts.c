/* tune_layouts.c -- layouts of a small time, by minimum cuts. See layouts.h.
 *
 * One layout is offered to all operations at once (the expansion of Boykov, Veksler and Zabih,
 * 2001). A node for each operation: on the source's side it keeps its layout, on the sink's it
 * takes the offered one; the arc that such a choice cuts carries its time. A value that some reader
 * wants in another layout is reordered once, whatever the number of such readers, so it has one
 * more node a layout: it lies on the readers' side if one of them does, and the arc between it and
 * the value's operation carries the reorder's time. Both kinds of arc make the sum submodular, so
 * the cut is exact (Kolmogorov and Zabih 2004). */
#include "graphs/passes/layouts.h"
#include "graphs/problem/bounds/igraph.h"

typedef struct cut {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_layout_times *times;
    const mpl_laid *laid; /* [n_ops] kept or not */
    mpl_layout offered;
    uint32_t n_nodes, source, sink;
    size_t n_arcs, from_room, to_room, capacity_room;
    uint32_t *from, *to;
    uint64_t *capacity, infinite;
} cut;

static mpl_status arc(cut *self, uint32_t from, uint32_t to, uint64_t capacity)
{
    if (capacity == 0 || from == to)
        return MPL_OK;
    MPL_PASS(mpl_reserve(self->ctx, self->from, self->from_room, self->n_arcs + 1));
    MPL_PASS(mpl_reserve(self->ctx, self->to, self->to_room, self->n_arcs + 1));
    MPL_PASS(mpl_reserve(self->ctx, self->capacity, self->capacity_room, self->n_arcs + 1));
    self->from[self->n_arcs] = from;
    self->to[self->n_arcs] = to;
    self->capacity[self->n_arcs++] = capacity;
    return MPL_OK;
}

/* The layout in which v is made, before the offer: inputs and weights are plain. */
static mpl_layout own_layout(const mpl_graph *g, const mpl_laid *laid, mpl_value v)
{
    return g->value_op[v] != MPL_NONE ? (mpl_layout)laid[g->value_op[v]].layout : MPL_PLAIN;
}

/* The node of what makes v. */
static uint32_t maker(const cut *self, mpl_value v)
{
    if (self->g->value_op[v] != MPL_NONE)
        return self->g->value_op[v];
    return self->offered == MPL_PLAIN ? self->sink : self->source;
}

/* Whether v is plain in the end: an output, or what a branch or round hands on. */
static bool is_output(const mpl_graph *g, mpl_value v)
{
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            if (mpl_result(g, b, i) == v)
                return true;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->output[i] == v)
            return true;
    return false;
}

/* Puts `node` where it belongs if op reads v in `layout` by this operand. */
static mpl_status add_reader(cut *self, uint32_t node, mpl_op op, uint32_t i, mpl_layout layout)
{
    bool follows = mpl_operand_layout(self->g, op, i, MPL_LAST) == MPL_LAST;
    bool offered = layout == self->offered;

    if (!follows && layout == MPL_PLAIN)
        return offered ? arc(self, node, self->sink, self->infinite)
                       : arc(self, self->source, node, self->infinite);
    if (follows && offered)
        return arc(self, node, op, self->infinite);
    return follows && self->laid[op].layout == layout ? arc(self, op, node, self->infinite)
                                                      : MPL_OK;
}

/* The reorder of v to `layout`. */
static mpl_status add_reorder(cut *self, mpl_value v, mpl_layout layout)
{
    const mpl_graph *g = self->g;
    uint64_t ns = self->times->reorder[layout][v];
    uint32_t node = self->n_nodes++;
    bool offered = layout == self->offered;

    if (offered)
        MPL_PASS(arc(self, maker(self, v), node, ns));
    else
        MPL_PASS(arc(self, node,
                     own_layout(g, self->laid, v) == layout ? maker(self, v) : self->sink, ns));
    if (layout == MPL_PLAIN && is_output(g, v))
        MPL_PASS(offered ? arc(self, node, self->sink, self->infinite)
                         : arc(self, self->source, node, self->infinite));
    for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++)
        for (uint32_t i = 0; i < mpl_op_n_in(g, g->value_use[k]); i++)
            if (mpl_op_input(g, g->value_use[k], i) == v)
                MPL_PASS(add_reader(self, node, g->value_use[k], i, layout));
    return MPL_OK;
}

static mpl_status add_op(cut *self, mpl_op op)
{
    uint64_t taken = self->times->op[self->offered][op];

    MPL_PASS(arc(self, self->source, op, taken == UINT64_MAX ? self->infinite : taken));
    if (self->laid[op].layout == (uint8_t)self->offered)
        return arc(self, op, self->sink, self->infinite);
    return arc(self, op, self->sink, self->times->op[self->laid[op].layout][op]);
}

static mpl_status add_all(cut *self)
{
    const mpl_graph *g = self->g;
    uint64_t sum = 1;
    bool fits = true;

    for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++) {
        for (mpl_op op = 0; op < g->n_ops; op++)
            if (self->times->op[k][op] != UINT64_MAX)
                fits = fits && mpl_add_bytes(sum, self->times->op[k][op], &sum);
        for (mpl_value v = 0; v < g->n_values; v++)
            fits = fits && mpl_add_bytes(sum, self->times->reorder[k][v], &sum);
    }
    /* every infinite arc in a cut, and each may be there: their sum must stay exact, too */
    if (!fits || sum >= (UINT64_C(1) << 53) / (6 * ((uint64_t)g->n_ops + g->n_values + 1)))
        return MPL_ERROR(self->ctx, MPL_ELIMIT, "times of operations are too large for a cut");
    self->infinite = sum;
    for (mpl_op op = 0; op < g->n_ops; op++)
        MPL_PASS(add_op(self, op));
    for (mpl_value v = 0; v < g->n_values; v++)
        for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++)
            MPL_PASS(add_reorder(self, v, (mpl_layout)k));
    return MPL_OK;
}

/* Gives the offered layout to the operations for which that makes the sum the least. */
static mpl_status offer(mpl_ctx *ctx, const mpl_graph *g, const mpl_layout_times *times,
                        mpl_layout offered, mpl_laid *laid, uint64_t *ns)
{
    mpl_status st = MPL_OK;
    cut c = {.ctx = ctx, .g = g, .times = times, .source = g->n_ops, .sink = g->n_ops + 1};
    uint8_t *side = NULL;

    c.laid = laid;
    c.offered = offered;
    c.n_nodes = g->n_ops + 2;
    MPL_TRY(add_all(&c));
    MPL_TRY(mpl_new(ctx, side, c.n_nodes));
    MPL_TRY(mpl_max_flow(ctx, c.n_nodes, c.n_arcs, c.from, c.to, c.capacity, c.source, c.sink, ns,
                         side));
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (!side[op])
            laid[op].layout = (uint8_t)offered;
out:
    mpl_free_each(ctx, c.from, c.to, c.capacity, side);
    return st;
}

mpl_status mpl_layouts_choose(mpl_ctx *ctx, const mpl_graph *g, const mpl_layout_times *times,
                              mpl_laid *laid, uint64_t *ns, uint64_t *bound_ns)
{
    uint64_t before = UINT64_MAX;

    *bound_ns = 0;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint64_t least = UINT64_MAX;

        for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++)
            least = mpl_min_u64(least, times->op[k][op]);
        *bound_ns += least;
        laid[op].layout = MPL_PLAIN;
    }
    *ns = mpl_layouts_ns(g, times, laid);
    while (*ns < before) {
        before = *ns;
        for (uint32_t k = 1; k <= MPL_N_LAYOUTS; k++)
            MPL_PASS(offer(ctx, g, times, (mpl_layout)(k % MPL_N_LAYOUTS), laid, ns));
    }
    return MPL_OK;
}

/* Time of the reorders of v to `layout`. */
static uint64_t reorder_ns(const mpl_graph *g, const mpl_layout_times *times, const mpl_laid *laid,
                           mpl_value v, mpl_layout layout)
{
    bool wanted = layout == MPL_PLAIN && is_output(g, v);

    if (own_layout(g, laid, v) == layout)
        return 0;
    for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++) {
        mpl_op op = g->value_use[k];

        for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
            wanted = wanted || (mpl_op_input(g, op, i) == v &&
                                mpl_operand_layout(g, op, i, laid[op].layout) == layout);
    }
    return wanted ? times->reorder[layout][v] : 0;
}

uint64_t mpl_layouts_ns(const mpl_graph *g, const mpl_layout_times *times, const mpl_laid *laid)
{
    uint64_t sum = 0;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        if (times->op[laid[op].layout][op] == UINT64_MAX)
            return UINT64_MAX;
        sum += times->op[laid[op].layout][op];
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++)
            sum += reorder_ns(g, times, laid, v, (mpl_layout)k);
    return sum;
}
