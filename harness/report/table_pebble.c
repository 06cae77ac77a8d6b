/* table_pebble.c -- space against time: the pebble game on all connected graphs of up to 6
 * vertices. */
#include <stdlib.h>

#include "graphs/orders/pebble.h"
#include "harness/report/table.h"

enum { LARGEST = 6 };

/* Graphs of the same size with the same frontier. */
typedef struct class
{
    uint32_t vertices, graphs, n_points;
    mpl_pebble_point point[LARGEST];
    mpl_dag first; /* the graph with the lowest code */
} class;

static int by_frontier(const void *a, const void *b)
{
    const class *x = a, *y = b;
    uint32_t n = x->n_points < y->n_points ? x->n_points : y->n_points;

    if (x->vertices != y->vertices)
        return x->vertices > y->vertices ? 1 : -1;
    for (uint32_t i = 0; i < n; i++) {
        if (x->point[i].space != y->point[i].space)
            return x->point[i].space > y->point[i].space ? 1 : -1;
        if (x->point[i].time != y->point[i].time)
            return x->point[i].time > y->point[i].time ? 1 : -1;
    }
    return (x->n_points > y->n_points) - (x->n_points < y->n_points);
}

/* Counts one more graph of its class; classes are in order of first appearance. */
static mpl_status add_graph(mpl_ctx *ctx, const class *x, class **classes, size_t *cap, uint32_t *n)
{
    for (uint32_t i = 0; i < *n; i++)
        if (by_frontier(&(*classes)[i], x) == 0) {
            (*classes)[i].graphs++;
            return MPL_OK;
        }
    MPL_PASS(mpl_reserve(ctx, *classes, *cap, (size_t)*n + 1));
    (*classes)[(*n)++] = *x;
    return MPL_OK;
}

static mpl_status add_row(mpl_ctx *ctx, mpl_grid *grid, const class *x)
{
    char frontier[16 * LARGEST] = "", edges[8 * LARGEST * LARGEST] = "";
    size_t at = 0;

    for (uint32_t i = 0; i < x->n_points; i++)
        at += (size_t)snprintf(frontier + at, sizeof frontier - at, "%s%u:%u", i > 0 ? " " : "",
                               x->point[i].space, x->point[i].time);
    at = 0;
    for (uint32_t v = 0; v < x->first.n; v++)
        for (uint32_t u = 0; u < v; u++)
            if (x->first.before[v] >> u & 1)
                at += (size_t)snprintf(edges + at, sizeof edges - at, "%s%u>%u", at > 0 ? " " : "",
                                       u, v);
    MPL_PASS(mpl_grid_cell(ctx, grid, "%u", x->vertices));
    MPL_PASS(mpl_grid_cell(ctx, grid, "%s", frontier));
    MPL_PASS(mpl_grid_cell(ctx, grid, "%u", x->point[x->n_points - 1].space));
    MPL_PASS(mpl_grid_cell(ctx, grid, "%u", x->graphs));
    return mpl_grid_cell(ctx, grid, "%s", at > 0 ? edges : "-");
}

static mpl_status put_classes(mpl_ctx *ctx, mpl_grid *grid, bool sliding)
{
    static const char *const heads[] = {"vertices", "space:time", "nothing twice", "graphs",
                                        "the first of them"};
    mpl_status st = MPL_OK;
    class *classes = NULL;
    size_t cap = 0;
    uint32_t n = 0;

    for (uint32_t vertices = 1; vertices <= LARGEST; vertices++) {
        int64_t code = -1;
        class x = {.vertices = vertices, .graphs = 1};

        while (mpl_dag_next(vertices, &code, &x.first)) {
            MPL_TRY(mpl_pebble_frontier(ctx, &x.first, sliding, x.point, &x.n_points));
            MPL_TRY(add_graph(ctx, &x, &classes, &cap, &n));
        }
    }
    qsort(classes, n, sizeof *classes, by_frontier);
    grid->n_cols = sizeof heads / sizeof *heads;
    MPL_TRY(mpl_grid_head(ctx, grid, heads));
    for (uint32_t i = 0; i < n; i++)
        MPL_TRY(add_row(ctx, grid, &classes[i]));
out:
    mpl_free(ctx, classes);
    return st;
}

mpl_status mpl_table_pebble(mpl_ctx *ctx, mpl_grid *grid)
{
    return put_classes(ctx, grid, true);
}

mpl_status mpl_table_pebble_still(mpl_ctx *ctx, mpl_grid *grid)
{
    return put_classes(ctx, grid, false);
}
