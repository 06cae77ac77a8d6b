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

static bool is_pinned(const mpl_maker *maker, mpl_value root)
{
    if (maker->options->held != NULL && maker->options->held[root])
        return true;
    if (maker->part[root] != MPL_PART_NONE)
        return false;
    return (maker->is_output[root] && maker->options->pin_outputs &&
            !mpl_is_chosen(maker->g, root)) ||
           (maker->g->value_role[root] == MPL_INPUT && maker->options->pin_inputs) ||
           (maker->g->value_role[root] == MPL_WEIGHT && maker->options->pin_weights);
}

/* Takes as many ids as v has parts; returns the lowest. */
static mpl_buffer take_ids(mpl_maker *maker, mpl_value v)
{
    mpl_buffer first = maker->n;

    maker->n += maker->cuts.count[v];
    maker->any_cut = maker->any_cut || maker->cuts.count[v] > 1;
    return first;
}

/* Finds the parts of its root's storage that each value spans. */
static mpl_status spread_values(mpl_maker *maker)
{
    const mpl_cuts *cuts = &maker->cuts;
    mpl_value_map *map = maker->map;

    MPL_PASS(mpl_new(maker->ctx, map->value_buffers, maker->g->n_values));
    for (mpl_value v = 0; v < maker->g->n_values; v++) {
        map->value_buffers[v] = cuts->count[v] > 0 ? cuts->count[v] : 1;
        if (map->value_buffer[v] != MPL_NONE && cuts->count[v] > 0)
            map->value_buffer[v] += cuts->first[v] - cuts->first[maker->ranges->alias.root[v]];
    }
    return MPL_OK;
}

/* Numbers the buffers: map->value_buffer of roots, then of views, map->op_workspace. Adds up pinned
 * bytes. */
static mpl_status number_buffers(mpl_maker *maker)
{
    const mpl_graph *g = maker->g;
    mpl_value_map *map = maker->map;
    uint64_t bytes;

    for (mpl_value v = 0; v < g->n_values; v++) {
        map->value_buffer[v] = MPL_NONE;
        if (maker->ranges->alias.root[v] != v || g->value_bytes[v] == 0)
            continue;
        if (!is_pinned(maker, v))
            map->value_buffer[v] =
                maker->storage != NULL ? maker->storage->value_cell[v] : take_ids(maker, v);
        else if (!mpl_align_bytes(g->value_bytes[v], maker->options->align, &bytes) ||
                 !mpl_add_bytes(map->pinned_bytes, bytes, &map->pinned_bytes) ||
                 map->pinned_bytes > INT64_MAX)
            return MPL_REFUSE(maker->ctx, "the pinned values of '%.100s' together pass 2^63 bytes",
                              g->name);
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        map->value_buffer[v] = map->value_buffer[maker->ranges->alias.root[v]];
    if (maker->any_cut)
        MPL_PASS(spread_values(maker));
    if (maker->storage != NULL)
        maker->n = maker->storage->n_cells;
    maker->n_values = maker->n;
    for (mpl_op op = 0; op < g->n_ops; op++)
        map->op_workspace[op] =
            maker->options->op_workspace_bytes != NULL && maker->options->op_workspace_bytes[op] > 0
                ? maker->n++
                : MPL_NONE;
    return MPL_OK;
}

/* Finds the roots that lie in pools of their own. A view's mpl_part also decides its root's pool,
 * unless the root is a weight. */
static mpl_status find_parts(mpl_maker *maker)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = maker->g;
    uint8_t *part = NULL;

    MPL_TRY(mpl_new(maker->ctx, maker->part, g->n_values));
    if (maker->options->own_pools == 0)
        goto out;
    if (g->n_blocks > 1)
        MPL_FAIL(maker->ctx, MPL_EUNAVAIL,
                 "graph '%s': pools of their own are not there for control flow", g->name);
    MPL_TRY(mpl_new(maker->ctx, part, g->n_values));
    mpl_graph_parts(g, part);
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = maker->ranges->alias.root[v];

        if ((maker->options->own_pools >> part[v] & 1) != 0 && part[v] != MPL_PART_NONE &&
            (root == v || g->value_role[root] != MPL_WEIGHT))
            maker->part[root] = part[v];
    }
out:
    mpl_free(maker->ctx, part);
    return st;
}

static mpl_status add_pools(mpl_maker *maker)
{
    bool used[MPL_N_PARTS] = {false};

    for (mpl_value v = 0; v < maker->g->n_values; v++)
        if (maker->map->value_buffer[v] != MPL_NONE)
            used[maker->part[maker->ranges->alias.root[v]]] = true;
    for (uint32_t k = MPL_PART_NONE + 1; k < MPL_N_PARTS; k++)
        if (used[k]) {
            maker->pool[k] = maker->p->n_pools;
            MPL_PASS(mpl_problem_add_pool(maker->ctx, maker->p, mpl_part_name((mpl_part)k)));
        }
    if (maker->n > maker->n_values && !maker->options->plan_workspaces)
        MPL_PASS(mpl_problem_add_pool(maker->ctx, maker->p, "workspace"));
    return MPL_OK;
}

/* Live ranges of the parts of split storage. Operations with nothing to do are ignored. */
static mpl_status find_lives(mpl_maker *maker)
{
    const mpl_graph *g = maker->g;
    const mpl_cuts *cuts = &maker->cuts;

    MPL_PASS(
        mpl_new_each(maker->ctx, cuts->n, maker->part_first, maker->part_last, maker->part_kept));
    for (uint32_t i = 0; i < cuts->n; i++)
        maker->part_first[i] = MPL_NONE;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint32_t n_read = mpl_n_read(g, op), step = maker->ranges->step_of[op];
        uint32_t n = n_read + mpl_op_n_out(g, op);

        for (uint32_t i = 0; i < n && !maker->ranges->alias.nothing[op]; i++) {
            mpl_value v =
                i < n_read ? mpl_op_input(g, op, i) : g->op_out[g->op_out_begin[op] + i - n_read];

            for (uint32_t k = 0; v != MPL_NONE && k < cuts->count[v]; k++) {
                uint32_t part = cuts->first[v] + k;

                maker->part_first[part] =
                    step < maker->part_first[part] ? step : maker->part_first[part];
                maker->part_last[part] =
                    step > maker->part_last[part] ? step : maker->part_last[part];
            }
        }
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        for (uint32_t k = 0; k < cuts->count[g->output[i]]; k++)
            maker->part_kept[cuts->first[g->output[i]] + k] = 1;
    return MPL_OK;
}

static mpl_status make_problem(mpl_maker *maker, const mpl_op *order)
{
    const mpl_problem_options *options = maker->options;
    mpl_access *access = NULL;
    mpl_problem *p;

    MPL_PASS(mpl_problem_new(maker->ctx, maker->g->name, maker->n, &maker->p));
    p = maker->p;
    p->n_steps = maker->program->n_steps > 0 ? maker->program->n_steps : 1;
    p->pool_capacity[0] = options->capacity;
    MPL_PASS(add_pools(maker));
    MPL_PASS(mpl_new_each(maker->ctx, p->n, p->buffer_name, p->type_id, p->shape_id, p->no_reuse));
    for (mpl_buffer b = 0; b < p->n; b++)
        p->align[b] = options->align;
    MPL_PASS(maker->storage != NULL ? mpl_maker_fill_cells(maker) : mpl_maker_fill_values(maker));
    MPL_PASS(mpl_maker_fill_workspaces(maker));
    MPL_PASS(mpl_maker_fill_shapes(maker));
    if (maker->storage != NULL && options->parallel)
        MPL_PASS(mpl_maker_fill_points(maker));
    if (options->in_place)
        MPL_PASS(mpl_maker_add_pairs(maker, order));
    if (maker->storage == NULL && (!maker->any_cut || options->parallel))
        MPL_PASS(
            mpl_access_new(maker->ctx, maker->g, p->n,
                           &(mpl_touches){maker->map->value_buffer, maker->map->value_buffers,
                                          maker->map->op_workspace,
                                          maker->any_cut ? maker->ranges->alias.nothing : NULL,
                                          options->parallel ? options->op_stream : NULL, order},
                           &access));
    p->access = access;
    if (maker->extents == NULL) /* fails where a backend asks for too large a workspace */
        MPL_PASS(mpl_problem_check(maker->ctx, p));
    return MPL_OK;
}

static mpl_status assign_storage(mpl_maker *maker)
{
    mpl_status st = MPL_OK;
    uint8_t *pinned = NULL, *kept = NULL;

    MPL_TRY(mpl_new_each(maker->ctx, maker->g->n_values, pinned, kept));
    for (mpl_value v = 0; v < maker->g->n_values; v++) {
        pinned[v] = is_pinned(maker, v);
        kept[v] = mpl_maker_is_kept(maker, v);
    }
    memcpy(maker->ranges->step_of, maker->program->op_step,
           maker->g->n_ops * sizeof *maker->ranges->step_of);
    MPL_TRY(mpl_storage_new(maker->ctx,
                            &(mpl_storage_spec){maker->g, maker->program, maker->options,
                                                maker->ranges->alias.root, pinned, kept},
                            &maker->storage));
out:
    mpl_free_each(maker->ctx, pinned, kept);
    return st;
}

static mpl_status copy_streams(mpl_maker *maker)
{
    MPL_PASS(mpl_new(maker->ctx, maker->map->op_stream, maker->g->n_ops));
    memcpy(maker->map->op_stream, maker->options->op_stream,
           maker->g->n_ops * sizeof *maker->map->op_stream);
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
