/* from_graph_fill.c -- sizes, lifetimes, names, types and shapes of buffers. See from_graph.c. */
#include "graphs/problem/derive/from_graph_priv.h"

/* Names a part after a value that fills it, else after its root and its offset. */
static mpl_status name_part(mpl_maker *maker, uint32_t part, mpl_buffer b)
{
    const mpl_graph *g = maker->g;
    mpl_value root = maker->cuts.root[part];
    size_t n = strlen(g->value_name[root]) + 24;

    if (maker->p->buffer_name[b] != NULL)
        return MPL_OK;
    MPL_PASS((maker->p->buffer_name[b] = mpl_alloc(maker->ctx, n, 1)) != NULL ? MPL_OK : MPL_EMEM);
    snprintf(maker->p->buffer_name[b], n, "%s@%" PRIu64, g->value_name[root], maker->cuts.at[part]);
    return MPL_OK;
}

/* Fills the family of root v, whose storage is split: buffers from b on. */
static mpl_status fill_family(mpl_maker *maker, mpl_value v, mpl_buffer b)
{
    const mpl_cuts *cuts = &maker->cuts;
    mpl_problem *p = maker->p;
    uint64_t count = 1;

    mpl_shape_count(&maker->g->value_shape[v], &count);
    for (uint32_t k = 0; k < cuts->count[v]; k++) {
        uint32_t part = cuts->first[v] + k;

        mpl_assert(maker->part_first[part] != MPL_NONE);
        p->bytes[b + k] = cuts->bytes[part];
        p->birth[b + k] = maker->part_first[part];
        p->death[b + k] = maker->part_kept[part] ? p->n_steps : maker->part_last[part] + 1;
        p->pool[b + k] = maker->pool[maker->part[v]];
        p->inside[b + k] = b;
        p->inside_at[b + k] = cuts->at[part];
        p->type_id[b + k] = maker->g->value_type[v];
        p->no_reuse[b + k] = count == 1;
        MPL_PASS(name_part(maker, part, b + k));
    }
    return MPL_OK;
}

/* Names parts that a single value fills; the first of several equal ones. */
static mpl_status name_parts(mpl_maker *maker)
{
    const mpl_cuts *cuts = &maker->cuts;

    for (mpl_value v = 0; v < maker->g->n_values; v++) {
        mpl_buffer b = maker->map->value_buffer[v];

        if (b == MPL_NONE || cuts->count[v] != 1 || !mpl_cuts_cut(cuts, &maker->ranges->alias, v) ||
            maker->g->value_bytes[v] != cuts->bytes[cuts->first[v]] ||
            maker->p->buffer_name[b] != NULL)
            continue;
        MPL_PASS(mpl_copy_text(maker->ctx, maker->p->buffer_name[b], maker->g->value_name[v]));
    }
    return MPL_OK;
}

mpl_status mpl_maker_fill_values(mpl_maker *maker)
{
    const mpl_graph *g = maker->g;
    mpl_problem *p = maker->p;

    if (maker->any_cut) {
        MPL_PASS(mpl_new_each(maker->ctx, p->n, p->inside, p->inside_at));
        for (mpl_buffer b = 0; b < p->n; b++)
            p->inside[b] = b;
        MPL_PASS(name_parts(maker));
    }
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_buffer b = maker->map->value_buffer[v];
        uint64_t count = 1;

        if (b == MPL_NONE || maker->ranges->alias.root[v] != v)
            continue;
        if (maker->cuts.count[v] > 1) {
            MPL_PASS(fill_family(maker, v, b));
            continue;
        }
        mpl_shape_count(&g->value_shape[v], &count);
        p->bytes[b] = g->value_bytes[v];
        p->pool[b] = maker->pool[maker->part[v]];
        p->birth[b] = maker->ranges->first[v];
        p->death[b] = mpl_maker_is_kept(maker, v) ? p->n_steps : maker->ranges->last[v] + 1;
        p->type_id[b] = g->value_type[v];
        p->no_reuse[b] = count == 1;
        MPL_PASS(mpl_copy_text(maker->ctx, p->buffer_name[b], g->value_name[v]));
    }
    return MPL_OK;
}

/* The lifetime of a cell: from the first to the last step that needs it, with gaps. */
static mpl_status fill_lifetime(mpl_maker *maker, mpl_buffer b, size_t *from_cap, size_t *to_cap)
{
    mpl_problem *p = maker->p;
    const uint64_t *row = maker->storage->row + (size_t)b * maker->storage->words;
    uint32_t n_gaps = p->gap_begin[b], last = MPL_NONE;

    for (uint32_t step = 0; step < p->n_steps; step++) {
        if (!mpl_bit_has(row, step))
            continue;
        if (last == MPL_NONE) {
            p->birth[b] = step;
        } else if (last + 1 < step) {
            MPL_PASS(mpl_reserve(maker->ctx, p->gap_from, *from_cap, (size_t)n_gaps + 1));
            MPL_PASS(mpl_reserve(maker->ctx, p->gap_to, *to_cap, (size_t)n_gaps + 1));
            p->gap_from[n_gaps] = last + 1;
            p->gap_to[n_gaps++] = step;
        }
        last = step;
    }
    mpl_assert(last != MPL_NONE);
    p->death[b] = last + 1;
    p->gap_begin[b + 1] = n_gaps;
    return MPL_OK;
}

/* Names a cell after its value, or "staging"; copies after the first get a number. */
static mpl_status name_cell(mpl_maker *maker, mpl_buffer b)
{
    const mpl_graph *g = maker->g;
    mpl_value v = maker->storage->named[b];
    const char *base = v != MPL_NONE ? g->value_name[v] : "staging";
    size_t n = strlen(base) + 16;
    char *name;

    MPL_PASS((name = maker->p->buffer_name[b] = mpl_alloc(maker->ctx, n, 1)) != NULL ? MPL_OK
                                                                                     : MPL_EMEM);
    if (maker->storage->copy[b] == 0)
        memcpy(name, base, n - 15);
    else
        snprintf(name, n, "%s:%" PRIu32, base, maker->storage->copy[b]);
    return MPL_OK;
}

mpl_status mpl_maker_fill_cells(mpl_maker *maker)
{
    mpl_problem *p = maker->p;
    size_t from_cap = 0, to_cap = 0;

    MPL_PASS(mpl_new(maker->ctx, p->gap_begin, (size_t)p->n + 1));
    for (mpl_buffer b = 0; b < maker->n_values; b++) {
        mpl_value v = maker->storage->named[b];
        uint64_t count = 1;

        if (v != MPL_NONE)
            mpl_shape_count(&maker->g->value_shape[v], &count);
        p->bytes[b] = maker->storage->bytes[b];
        p->type_id[b] = v != MPL_NONE ? maker->g->value_type[v] : MPL_N_TYPES;
        p->no_reuse[b] = count == 1;
        p->death[b] = 1; /* parallel: points decide */
        if (!maker->options->parallel)
            MPL_PASS(fill_lifetime(maker, b, &from_cap, &to_cap));
        MPL_PASS(name_cell(maker, b));
    }
    for (mpl_buffer b = maker->n_values; b < p->n; b++)
        p->gap_begin[b + 1] = p->gap_begin[b];
    if (p->gap_begin[p->n] == 0) {
        mpl_free(maker->ctx, p->gap_begin);
        p->gap_begin = NULL;
    }
    return MPL_OK;
}

mpl_status mpl_maker_fill_workspaces(mpl_maker *maker)
{
    mpl_problem *p = maker->p;
    char name[32];

    for (mpl_op op = 0; op < maker->g->n_ops; op++) {
        mpl_buffer b = maker->map->op_workspace[op];

        if (b == MPL_NONE)
            continue;
        p->bytes[b] = maker->options->op_workspace_bytes[op];
        p->pool[b] = maker->options->plan_workspaces ? 0 : p->n_pools - 1;
        p->birth[b] = maker->ranges->step_of[op];
        p->death[b] = p->birth[b] + 1;
        p->type_id[b] = MPL_N_TYPES;
        snprintf(name, sizeof name, "workspace:%u", op);
        MPL_PASS(mpl_copy_text(maker->ctx, p->buffer_name[b], name));
    }
    return MPL_OK;
}

mpl_status mpl_maker_fill_shapes(mpl_maker *maker)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = maker->g;
    mpl_problem *p = maker->p;
    mpl_shape *shape = NULL;
    mpl_buffer *slot = NULL;
    size_t mask = 15;

    while (mask <= 2 * (size_t)p->n)
        mask = 2 * mask + 1;
    MPL_TRY(mpl_new(maker->ctx, shape, p->n));
    MPL_TRY(mpl_new(maker->ctx, slot, mask + 1));
    for (mpl_value v = 0; v < g->n_values; v++)
        for (uint32_t k = 0; maker->storage == NULL && maker->map->value_buffer[v] != MPL_NONE &&
                             maker->ranges->alias.root[v] == v && k < maker->cuts.count[v];
             k++)
            shape[maker->map->value_buffer[v] + k] = g->value_shape[v];
    for (mpl_buffer b = 0; maker->storage != NULL && b < maker->n_values; b++)
        shape[b] = maker->storage->named[b] != MPL_NONE
                       ? g->value_shape[maker->storage->named[b]]
                       : (mpl_shape){.rank = 1, .dim = {(int64_t)p->bytes[b]}};
    for (mpl_buffer b = maker->n_values; b < p->n; b++)
        shape[b] = (mpl_shape){.rank = 1, .dim = {(int64_t)p->bytes[b]}};
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint64_t h = mpl_table_hash(0, shape[b].dim, shape[b].rank * sizeof *shape[b].dim);
        size_t at = h & mask;

        while (slot[at] != 0 && !mpl_shape_equal(&shape[slot[at] - 1], &shape[b]))
            at = (at + 1) & mask;
        if (slot[at] == 0)
            slot[at] = b + 1;
        p->shape_id[b] = slot[at] - 1;
    }
out:
    mpl_free_each(maker->ctx, shape, slot);
    return st;
}
