/* from_graph.c -- the problem of a graph and an order, for given shared concats. See from_graph.h.
 *
 * Storage that contains other values (pieces of a split, operands of a concat) is split where they
 * begin and end. Its parts are a family, each with its own live range. Buffers are numbered by
 * value id, then workspaces by operation. If a graph output is a view, its root counts as an
 * output: the caller gets its storage. */
#include "graphs/problem/derive/from_graph_priv.h"

mpl_problem_options mpl_problem_options_default(void)
{
    return (mpl_problem_options){
        .in_place = true,
        .views = true,
        .pin_weights = true,
        .pin_inputs = true,
        .pin_outputs = true,
        .concat = MPL_CONCAT_AUTO,
        .boxes = true,
        .align = 64,
        .capacity = MPL_NO_CAPACITY,
    };
}

void mpl_value_map_free(mpl_ctx *ctx, mpl_value_map *map)
{
    if (map == NULL)
        return;
    mpl_places_free(ctx, map->places);
    void *arrays[] = {
        map->value_buffer, map->value_buffers, map->value_root, map->value_offset, map->value_box,
        map->op_nothing,   map->op_workspace,  map->step_of,    map->op_stream,    map};
    MPL_FREE_ALL(ctx, arrays);
}

static bool is_pinned(const mpl_maker *m, mpl_value root)
{
    if (m->options->held != NULL && m->options->held[root])
        return true;
    if (m->part[root] != MPL_PART_NONE)
        return false;
    return (m->is_output[root] && m->options->pin_outputs && !mpl_is_chosen(m->g, root)) ||
           (m->g->value_role[root] == MPL_INPUT && m->options->pin_inputs) ||
           (m->g->value_role[root] == MPL_WEIGHT && m->options->pin_weights);
}

/* Takes as many ids as v has parts; returns the lowest. */
static mpl_buffer take_ids(mpl_maker *m, mpl_value v)
{
    mpl_buffer first = m->n;

    m->n += m->cuts.count[v];
    m->any_cut = m->any_cut || m->cuts.count[v] > 1;
    return first;
}

/* Finds the parts of its root's storage that each value spans. */
static mpl_status spread_values(mpl_maker *m)
{
    const mpl_cuts *cuts = &m->cuts;
    mpl_value_map *map = m->map;

    MPL_PASS(mpl_new(m->ctx, map->value_buffers, m->g->n_values));
    for (mpl_value v = 0; v < m->g->n_values; v++) {
        map->value_buffers[v] = cuts->count[v] > 0 ? cuts->count[v] : 1;
        if (map->value_buffer[v] != MPL_NONE && cuts->count[v] > 0)
            map->value_buffer[v] += cuts->first[v] - cuts->first[m->ranges->alias.root[v]];
    }
    return MPL_OK;
}

/* Numbers the buffers: map->value_buffer of roots, then of views, map->op_workspace. Adds up pinned
 * bytes. */
static mpl_status number_buffers(mpl_maker *m)
{
    const mpl_graph *g = m->g;
    mpl_value_map *map = m->map;
    uint64_t bytes;

    for (mpl_value v = 0; v < g->n_values; v++) {
        map->value_buffer[v] = MPL_NONE;
        if (m->ranges->alias.root[v] != v || g->value_bytes[v] == 0)
            continue;
        if (!is_pinned(m, v))
            map->value_buffer[v] = m->storage != NULL ? m->storage->value_cell[v] : take_ids(m, v);
        else if (!mpl_align_bytes(g->value_bytes[v], m->options->align, &bytes) ||
                 !mpl_add_bytes(map->pinned_bytes, bytes, &map->pinned_bytes) ||
                 map->pinned_bytes > INT64_MAX)
            return MPL_REFUSE(m->ctx, "the pinned values of '%.100s' together pass 2^63 bytes",
                              g->name);
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        map->value_buffer[v] = map->value_buffer[m->ranges->alias.root[v]];
    if (m->any_cut)
        MPL_PASS(spread_values(m));
    if (m->storage != NULL)
        m->n = m->storage->n_cells;
    m->n_values = m->n;
    for (mpl_op op = 0; op < g->n_ops; op++)
        map->op_workspace[op] =
            m->options->op_workspace_bytes != NULL && m->options->op_workspace_bytes[op] > 0
                ? m->n++
                : MPL_NONE;
    return MPL_OK;
}

/* Finds the roots that lie in pools of their own. A view's mpl_part also decides its root's pool,
 * unless the root is a weight. */
static mpl_status find_parts(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = m->g;
    uint8_t *part = NULL;

    MPL_TRY(mpl_new(m->ctx, m->part, g->n_values));
    if (m->options->own_pools == 0)
        goto out;
    if (g->n_blocks > 1)
        MPL_FAIL(m->ctx, MPL_EUNAVAIL,
                 "graph '%s': pools of their own are not there for control flow", g->name);
    MPL_TRY(mpl_new(m->ctx, part, g->n_values));
    mpl_graph_parts(g, part);
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = m->ranges->alias.root[v];

        if ((m->options->own_pools >> part[v] & 1) != 0 && part[v] != MPL_PART_NONE &&
            (root == v || g->value_role[root] != MPL_WEIGHT))
            m->part[root] = part[v];
    }
out:
    mpl_free(m->ctx, part);
    return st;
}

static mpl_status add_pools(mpl_maker *m)
{
    bool used[MPL_N_PARTS] = {false};

    for (mpl_value v = 0; v < m->g->n_values; v++)
        if (m->map->value_buffer[v] != MPL_NONE)
            used[m->part[m->ranges->alias.root[v]]] = true;
    for (uint32_t k = MPL_PART_NONE + 1; k < MPL_N_PARTS; k++)
        if (used[k]) {
            m->pool[k] = m->p->n_pools;
            MPL_PASS(mpl_problem_add_pool(m->ctx, m->p, mpl_part_name((mpl_part)k)));
        }
    if (m->n > m->n_values && !m->options->plan_workspaces)
        MPL_PASS(mpl_problem_add_pool(m->ctx, m->p, "workspace"));
    return MPL_OK;
}

/* Live ranges of the parts of split storage. Operations with nothing to do are ignored. */
static mpl_status find_lives(mpl_maker *m)
{
    const mpl_graph *g = m->g;
    const mpl_cuts *cuts = &m->cuts;

    MPL_PASS(mpl_new_each(m->ctx, cuts->n, m->part_first, m->part_last, m->part_kept));
    for (uint32_t i = 0; i < cuts->n; i++)
        m->part_first[i] = MPL_NONE;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint32_t n_read = mpl_n_read(g, op), step = m->ranges->step_of[op];
        uint32_t n = n_read + mpl_op_n_out(g, op);

        for (uint32_t i = 0; i < n && !m->ranges->alias.nothing[op]; i++) {
            mpl_value v =
                i < n_read ? mpl_op_input(g, op, i) : g->op_out[g->op_out_begin[op] + i - n_read];

            for (uint32_t k = 0; v != MPL_NONE && k < cuts->count[v]; k++) {
                uint32_t part = cuts->first[v] + k;

                m->part_first[part] = step < m->part_first[part] ? step : m->part_first[part];
                m->part_last[part] = step > m->part_last[part] ? step : m->part_last[part];
            }
        }
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        for (uint32_t k = 0; k < cuts->count[g->output[i]]; k++)
            m->part_kept[cuts->first[g->output[i]] + k] = 1;
    return MPL_OK;
}

static mpl_status make_problem(mpl_maker *m, const mpl_op *order)
{
    const mpl_problem_options *o = m->options;
    mpl_access *access = NULL;
    mpl_problem *p;

    MPL_PASS(mpl_problem_new(m->ctx, m->g->name, m->n, &m->p));
    p = m->p;
    p->n_steps = m->program->n_steps > 0 ? m->program->n_steps : 1;
    p->pool_capacity[0] = o->capacity;
    MPL_PASS(add_pools(m));
    MPL_PASS(mpl_new_each(m->ctx, p->n, p->buffer_name, p->type_id, p->shape_id, p->no_reuse));
    for (mpl_buffer b = 0; b < p->n; b++)
        p->align[b] = o->align;
    MPL_PASS(m->storage != NULL ? mpl_maker_fill_cells(m) : mpl_maker_fill_values(m));
    MPL_PASS(mpl_maker_fill_workspaces(m));
    MPL_PASS(mpl_maker_fill_shapes(m));
    if (m->storage != NULL && o->parallel)
        MPL_PASS(mpl_maker_fill_points(m));
    if (o->in_place)
        MPL_PASS(mpl_maker_add_pairs(m, order));
    if (m->storage == NULL && (!m->any_cut || o->parallel))
        MPL_PASS(mpl_access_new(m->ctx, m->g, p->n,
                                &(mpl_touches){m->map->value_buffer, m->map->value_buffers,
                                               m->map->op_workspace,
                                               m->any_cut ? m->ranges->alias.nothing : NULL,
                                               o->parallel ? o->op_stream : NULL, order},
                                &access));
    p->access = access;
    if (m->extents == NULL) /* fails where a backend asks for too large a workspace */
        MPL_PASS(mpl_problem_check(m->ctx, p));
    return MPL_OK;
}

static mpl_status assign_storage(mpl_maker *m)
{
    mpl_status st = MPL_OK;
    uint8_t *pinned = NULL, *kept = NULL;

    MPL_TRY(mpl_new_each(m->ctx, m->g->n_values, pinned, kept));
    for (mpl_value v = 0; v < m->g->n_values; v++) {
        pinned[v] = is_pinned(m, v);
        kept[v] = mpl_maker_is_kept(m, v);
    }
    memcpy(m->ranges->step_of, m->program->op_step, m->g->n_ops * sizeof *m->ranges->step_of);
    MPL_TRY(mpl_storage_new(
        m->ctx,
        &(mpl_storage_spec){m->g, m->program, m->options, m->ranges->alias.root, pinned, kept},
        &m->storage));
out:
    mpl_free_each(m->ctx, pinned, kept);
    return st;
}

static mpl_status copy_streams(mpl_maker *m)
{
    MPL_PASS(mpl_new(m->ctx, m->map->op_stream, m->g->n_ops));
    memcpy(m->map->op_stream, m->options->op_stream, m->g->n_ops * sizeof *m->map->op_stream);
    return MPL_OK;
}

mpl_status mpl_problem_build(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                             const mpl_problem_options *options, const uint8_t *shared,
                             mpl_problem **problem, mpl_value_map **map)
{
    mpl_status st = MPL_OK;
    mpl_maker m = {.ctx = ctx, .g = g, .options = options};
    mpl_alias_options alias = {options->views, options->align,
                               shared,         options->in_place && options->pin_outputs,
                               options->boxes, options->split_copied};

    MPL_TRY(mpl_ranges_new(ctx, g, order, &alias, &m.ranges));
    MPL_TRY(mpl_new(ctx, m.is_output, g->n_values));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        m.is_output[m.ranges->alias.root[g->output[i]]] = 1;
    MPL_TRY(find_parts(&m));
    MPL_TRY(mpl_program_new(ctx, g, order, &m.program));
    MPL_TRY(mpl_cuts_new(ctx, g, &m.ranges->alias,
                         options->in_place ? MPL_CUT_NOT_WRITTEN : MPL_CUT_MADE, options->align,
                         &m.cuts));
    MPL_TRY(find_lives(&m));
    if (g->n_blocks > 1)
        MPL_TRY(assign_storage(&m));
    MPL_TRY(mpl_new(ctx, m.map, 1));
    m.map->n_values = g->n_values;
    MPL_TRY(mpl_new(ctx, m.map->value_buffer, g->n_values));
    MPL_TRY(mpl_new(ctx, m.map->op_workspace, g->n_ops));
    MPL_TRY(number_buffers(&m));
    MPL_TRY(make_problem(&m, order));
    if (options->parallel)
        MPL_TRY(mpl_maker_make_parallel(&m));
    m.map->value_root = m.ranges->alias.root, m.ranges->alias.root = NULL;
    m.map->value_offset = m.ranges->alias.offset, m.ranges->alias.offset = NULL;
    m.map->value_box = m.ranges->alias.box, m.ranges->alias.box = NULL;
    m.map->op_nothing = m.ranges->alias.nothing, m.ranges->alias.nothing = NULL;
    m.map->step_of = m.ranges->step_of, m.ranges->step_of = NULL;
    if (m.storage != NULL)
        m.map->places = m.storage->places, m.storage->places = NULL;
    if (options->parallel && options->op_stream != NULL)
        MPL_TRY(copy_streams(&m));
    *problem = m.p, m.p = NULL;
    *map = m.map, m.map = NULL;
out:
    mpl_ranges_free(ctx, m.ranges);
    mpl_cuts_free(ctx, &m.cuts);
    mpl_free_each(ctx, m.part_first, m.part_last, m.part_kept);
    mpl_program_free(ctx, m.program);
    mpl_extents_free(ctx, m.extents);
    mpl_free(ctx, m.points);
    mpl_storage_free(ctx, m.storage);
    mpl_free_each(ctx, m.is_output, m.part);
    mpl_value_map_free(ctx, m.map);
    mpl_problem_free(ctx, m.p);
    return st;
}
