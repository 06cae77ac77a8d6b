/* tune_layouts.c -- layouts of the least time, by a minimum cut. See layouts.h.
 *
 * A node for each operation: on the source's side it is plain, on the sink's its images have their
 * channels last; the arc that such a choice cuts carries its time. A value that some reader wants
 * in the other layout is reordered once, whatever the number of such readers, so it has one more
 * node a direction: it lies on the readers' side if one of them does, and the arc between it and
 * the value's operation carries the reorder's time. Both kinds of arc make the sum submodular, so
 * the cut is exact (Kolmogorov and Zabih 2004; Boykov, Veksler and Zabih 2001). */
#include "graphs/passes/layouts.h"
#include "graphs/problem/bounds/igraph.h"

typedef struct cut {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_layout_times *times;
    uint32_t n_nodes, source, sink;
    size_t n_arcs, from_room, to_room, capacity_room;
    uint32_t *from, *to;
    uint64_t *capacity, infinite;
} cut;

static mpl_status arc(cut *c, uint32_t from, uint32_t to, uint64_t capacity)
{
    if (capacity == 0 || from == to)
        return MPL_OK;
    MPL_PASS(mpl_reserve(c->ctx, c->from, c->from_room, c->n_arcs + 1));
    MPL_PASS(mpl_reserve(c->ctx, c->to, c->to_room, c->n_arcs + 1));
    MPL_PASS(mpl_reserve(c->ctx, c->capacity, c->capacity_room, c->n_arcs + 1));
    c->from[c->n_arcs] = from;
    c->to[c->n_arcs] = to;
    c->capacity[c->n_arcs++] = capacity;
    return MPL_OK;
}

/* The node of what makes v: inputs and weights are plain. */
static uint32_t maker(const cut *c, mpl_value v)
{
    return c->g->value_op[v] != MPL_NONE ? c->g->value_op[v] : c->source;
}

/* Calls for each reader of v, by an operand that follows its layout (`op`) or is plain always
 * (MPL_NONE). */
typedef mpl_status on_reader(cut *c, uint32_t node, mpl_op op);

static mpl_status each_reader(cut *c, mpl_value v, uint32_t node, on_reader *take)
{
    const mpl_graph *g = c->g;

    for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++) {
        mpl_op op = g->value_use[k];

        for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
            if (mpl_op_input(g, op, i) == v)
                MPL_PASS(take(c, node,
                              mpl_operand_layout(g, op, i, MPL_LAST) == MPL_LAST ? op : MPL_NONE));
    }
    return MPL_OK;
}

/* node is on the sink's side if a reader's channels are last */
static mpl_status wants_last(cut *c, uint32_t node, mpl_op op)
{
    return op != MPL_NONE ? arc(c, node, op, c->infinite) : MPL_OK;
}

/* node is on the source's side if a reader is plain */
static mpl_status wants_plain(cut *c, uint32_t node, mpl_op op)
{
    return arc(c, op != MPL_NONE ? op : c->source, node, c->infinite);
}

static bool is_output(const mpl_graph *g, mpl_value v)
{
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->output[i] == v)
            return true;
    return false;
}

static mpl_status add_value(cut *c, mpl_value v)
{
    uint32_t to_last = c->n_nodes++, to_plain = c->n_nodes++;

    MPL_PASS(arc(c, maker(c, v), to_last, c->times->reorder[MPL_LAST][v]));
    MPL_PASS(each_reader(c, v, to_last, wants_last));
    if (maker(c, v) == c->source)
        return MPL_OK;
    MPL_PASS(arc(c, to_plain, maker(c, v), c->times->reorder[MPL_PLAIN][v]));
    if (is_output(c->g, v))
        MPL_PASS(arc(c, c->source, to_plain, c->infinite));
    return each_reader(c, v, to_plain, wants_plain);
}

static mpl_status add_all(cut *c)
{
    const mpl_graph *g = c->g;
    uint64_t sum = 1;
    bool fits = true;

    for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++) {
        for (mpl_op op = 0; op < g->n_ops; op++)
            if (c->times->op[k][op] != UINT64_MAX)
                fits = fits && mpl_add_bytes(sum, c->times->op[k][op], &sum);
        for (mpl_value v = 0; v < g->n_values; v++)
            fits = fits && mpl_add_bytes(sum, c->times->reorder[k][v], &sum);
    }
    /* every infinite arc in a cut, and each may be there: their sum must stay exact, too */
    if (!fits || sum >= (UINT64_C(1) << 53) / (4 * ((uint64_t)g->n_ops + g->n_values + 1)))
        return MPL_ERROR(c->ctx, MPL_ELIMIT, "times of operations are too large for a cut");
    c->infinite = sum;
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++) {
            uint64_t ns = c->times->op[k][op] == UINT64_MAX ? sum : c->times->op[k][op];

            MPL_PASS(k == MPL_PLAIN ? arc(c, op, c->sink, ns) : arc(c, c->source, op, ns));
        }
    for (mpl_value v = 0; v < g->n_values; v++)
        MPL_PASS(add_value(c, v));
    return MPL_OK;
}

mpl_status mpl_layouts_choose(mpl_ctx *ctx, const mpl_graph *g, const mpl_layout_times *times,
                              mpl_laid *laid, uint64_t *least_ns)
{
    mpl_status st = MPL_OK;
    cut c = {.ctx = ctx, .g = g, .times = times, .source = g->n_ops, .sink = g->n_ops + 1};
    uint8_t *side = NULL;

    c.n_nodes = g->n_ops + 2;
    MPL_TRY(add_all(&c));
    MPL_TRY(mpl_new(ctx, side, c.n_nodes));
    MPL_TRY(mpl_max_flow(ctx, c.n_nodes, c.n_arcs, c.from, c.to, c.capacity, c.source, c.sink,
                         least_ns, side));
    for (mpl_op op = 0; op < g->n_ops; op++)
        laid[op].layout = side[op] ? MPL_PLAIN : MPL_LAST;
out:
    mpl_free_each(ctx, c.from, c.to, c.capacity, side);
    return st;
}

/* Time of the reorders of v, which has its operation's layout. */
static uint64_t reorders_ns(const mpl_graph *g, const mpl_layout_times *times, const mpl_laid *laid,
                            mpl_value v)
{
    mpl_op by = g->value_op[v];
    uint32_t own = by == MPL_NONE ? MPL_PLAIN : laid[by].layout, other = 1 - own;
    bool wanted = other == MPL_PLAIN && is_output(g, v);

    for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++) {
        mpl_op op = g->value_use[k];

        for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
            wanted = wanted || (mpl_op_input(g, op, i) == v &&
                                mpl_operand_layout(g, op, i, laid[op].layout) == other);
    }
    return wanted ? times->reorder[other][v] : 0;
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
        sum += reorders_ns(g, times, laid, v);
    return sum;
}
