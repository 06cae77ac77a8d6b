/* from_graph_parallel.c -- turns lifetimes into the partial order of parallel safety. See
 * from_graph.c. */
#include "graphs/problem/derive/from_graph_priv.h"

#include "graphs/problem/before.h"

mpl_status mpl_maker_fill_points(mpl_maker *maker)
{
    const mpl_units *units = maker->storage->units;
    size_t stride = maker->storage->words;

    MPL_PASS(mpl_new(maker->ctx, maker->points, maker->n * stride));
    memcpy(maker->points, maker->storage->row, maker->n_values * stride * sizeof *maker->points);
    for (mpl_op op = 0; op < maker->g->n_ops; op++)
        if (maker->map->op_workspace[op] != MPL_NONE)
            mpl_points_set_range(units, maker->ranges->step_of[op], maker->ranges->step_of[op],
                                 maker->points + maker->map->op_workspace[op] * stride);
    return mpl_extents_new(maker->ctx, units, maker->n, maker->points, stride, &maker->extents);
}

/* Makes the partial order. Values that outlive the graph are before nothing; values that exist from
 * the start are after nothing. An input may be overwritten only if the operation is its only last
 * event, so that nothing else can still read it. */
static mpl_status parallel_values(mpl_maker *maker)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = maker->p;
    mpl_before *before = NULL;
    uint64_t *rows = NULL;
    uint32_t n_kept = 0, n_words = p->n / 64 + (p->n % 64 != 0);
    uint8_t *held = NULL, *given = NULL;

    MPL_TRY(mpl_new_each(maker->ctx, p->n, held, given));
    for (mpl_value v = 0; v < maker->g->n_values; v++) {
        mpl_buffer b = maker->map->value_buffer[v];

        if (b == MPL_NONE || maker->ranges->alias.root[v] != v)
            continue;
        held[b] = mpl_maker_is_kept(maker, v);
        given[b] = maker->g->value_op[v] == MPL_NONE;
        for (uint32_t k = 0; maker->cuts.count[v] > 1 && k < maker->cuts.count[v]; k++)
            held[b + k] = maker->part_kept[maker->cuts.first[v] + k];
    }
    MPL_TRY(mpl_before_from_access(maker->ctx, p->n, p->access, &before));
    MPL_TRY(mpl_new(maker->ctx, rows, (size_t)p->n * n_words));
    for (uint32_t a = 0; a < p->n; a++)
        for (uint32_t b = 0; b < p->n && !held[a]; b++)
            if (!given[b] && mpl_is_before(before, a, b))
                mpl_bit_add(rows + (size_t)a * n_words, b);
    mpl_before_free(maker->ctx, before), before = NULL;
    MPL_TRY(mpl_before_from_rows_take(maker->ctx, p->n, &rows, &before));
    p->before = before, before = NULL;
    for (uint32_t i = 0; i < p->n_in_place; i++) {
        mpl_buffer in = p->in_place_in[i];

        if (p->access->last_begin[in + 1] - p->access->last_begin[in] != 1)
            continue;
        p->in_place_in[n_kept] = in;
        p->in_place_out[n_kept] = p->in_place_out[i];
        p->in_place_step[n_kept++] = p->in_place_step[i];
    }
    p->n_in_place = n_kept;
out:
    mpl_free_each(maker->ctx, held, given, rows);
    mpl_before_free(maker->ctx, before);
    return st;
}

/* Two cells may conflict although no run needs both at once, since an order cannot say more. This
 * affects cells of different branches that hold other values, too, and cells that are needed
 * repeatedly within a round. */
static mpl_status parallel_cells(mpl_maker *maker)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = maker->p;
    mpl_before *before = NULL;
    uint64_t *rows = NULL;
    uint32_t n_words = p->n / 64 + (p->n % 64 != 0);

    MPL_TRY(mpl_new(maker->ctx, rows, (size_t)p->n * n_words));
    for (uint32_t a = 0; a < p->n; a++)
        for (uint32_t b = 0; b < p->n; b++)
            if (a != b && mpl_extents_before(maker->extents, a, b))
                mpl_bit_add(rows + (size_t)a * n_words, b);
    MPL_TRY(mpl_before_from_rows_take(maker->ctx, p->n, &rows, &before));
    p->before = before, before = NULL;
out:
    mpl_free(maker->ctx, rows);
    mpl_before_free(maker->ctx, before);
    return st;
}

mpl_status mpl_maker_make_parallel(mpl_maker *maker)
{
    mpl_problem *p = maker->p;

    MPL_PASS(maker->storage != NULL ? parallel_cells(maker) : parallel_values(maker));
    p->n_steps = 0;
    memset(p->birth, 0, p->n * sizeof *p->birth);
    memset(p->death, 0, p->n * sizeof *p->death);
    return mpl_problem_check(maker->ctx, p);
}
