/* exec_layout.c -- where each value and workspace lies, and its live range. See exec_priv.h. */
#include "runtime/exec/exec_priv.h"

static uint32_t fixed_slab(const mpl_exec *exec, uint32_t which)
{
    return exec->n_pools + which;
}

/* Appends bytes at the next aligned offset of a slab. */
static mpl_status push(mpl_exec *exec, uint32_t slab, uint64_t bytes, uint64_t *offset)
{
    uint64_t at, end;

    if (!mpl_align_bytes(exec->slab[slab].bytes, exec->backend->align, &at) ||
        !mpl_add_bytes(at, bytes, &end))
        return MPL_ERROR(exec->ctx, MPL_EMEM, "graph '%s' needs more than 2^64 bytes",
                         exec->g->name);
    *offset = at;
    exec->slab[slab].bytes = end;
    return MPL_OK;
}

static void place(mpl_exec *exec, mpl_value v, uint32_t slab, uint64_t offset, uint32_t block)
{
    exec->value_slab[v] = slab;
    exec->value_offset[v] = offset;
    exec->value_block[v] = block;
}

/* A block that nothing has touched yet. */
static mpl_block block_at(uint32_t slab, uint64_t offset, uint64_t bytes)
{
    return (mpl_block){.slab = slab,
                       .offset = offset,
                       .bytes = bytes,
                       .birth = MPL_NONE,
                       .over = MPL_NONE,
                       .value = MPL_NONE,
                       .op = MPL_NONE};
}

/* Memory of its own for `v`, outside of the plan. */
static mpl_status place_alone(mpl_exec *exec, mpl_value v, uint32_t slab)
{
    uint64_t offset = 0, bytes = exec->g->value_bytes[v];
    bool weight =
        slab == fixed_slab(exec, MPL_SLAB_WEIGHTS) || slab == fixed_slab(exec, MPL_SLAB_STATE);

    MPL_PASS(push(exec, slab, bytes, &offset));
    if (weight || bytes == 0) {
        place(exec, v, slab, offset, MPL_NONE);
    } else {
        place(exec, v, slab, offset, exec->n_blocks);
        exec->block[exec->n_blocks] = block_at(slab, offset, bytes);
        exec->block[exec->n_blocks++].value = v;
    }
    exec->weight_bytes += weight ? bytes : 0;
    exec->pinned_bytes += slab == fixed_slab(exec, MPL_SLAB_PINNED) ? bytes : 0;
    return MPL_OK;
}

/* No memory: it moves, or no operation reads it. */
static void place_nowhere(mpl_exec *exec, mpl_value v)
{
    place(exec, v, MPL_NONE, 0, MPL_NONE);
}

static uint32_t own_slab(const mpl_exec *exec, mpl_value v)
{
    return fixed_slab(exec, exec->value_state[v] == v              ? MPL_SLAB_STATE
                            : exec->g->value_role[v] == MPL_WEIGHT ? MPL_SLAB_WEIGHTS
                                                                   : MPL_SLAB_PINNED);
}

/* Room in the arena for all values that block b stages at once. */
static mpl_status place_staging(mpl_exec *exec, uint32_t b)
{
    const mpl_graph *g = exec->g;
    mpl_op owner = g->block_owner[b];
    uint64_t bytes = 0, offset = 0;

    if (g->op_kind[owner] != MPL_OP_while)
        return MPL_OK;
    for (uint32_t i = 1; i < g->block_n_params[b]; i++)
        if (!mpl_add_bytes(bytes, g->value_bytes[g->block_param[g->block_param_begin[b] + i]],
                           &bytes))
            return MPL_ERROR(exec->ctx, MPL_EMEM, "graph '%s' needs more than 2^64 bytes", g->name);
    MPL_PASS(push(exec, 0, bytes, &offset));
    exec->control->staging[b] = (mpl_spot){0, exec->n_blocks, offset};
    exec->block[exec->n_blocks] = block_at(0, offset, bytes);
    exec->block[exec->n_blocks++].op = owner;
    return MPL_OK;
}

static mpl_status place_unshared(mpl_exec *exec)
{
    const mpl_graph *g = exec->g;

    for (mpl_value v = 0; v < g->n_values; v++) {
        bool inner = g->value_role[v] == MPL_TEMPORARY || g->value_role[v] == MPL_PARAMETER;
        mpl_value state = exec->value_state[v];

        if (state != MPL_NONE && state != v) {
            place(exec, v, exec->value_slab[state], exec->value_offset[state],
                  exec->value_block[state]);
            continue;
        }
        MPL_PASS(place_alone(exec, v, inner ? 0 : own_slab(exec, v)));
    }
    for (uint32_t b = 1; b < g->n_blocks; b++)
        MPL_PASS(place_staging(exec, b));
    return MPL_OK;
}

static mpl_status take_buffers(mpl_exec *exec, const mpl_problem *p, const mpl_plan *plan)
{
    for (uint32_t i = 0; i < exec->n_pools; i++)
        exec->slab[i].bytes = plan->spread.n == 0  ? plan->pool_bytes[i]
                              : i < plan->spread.n ? plan->spread.bytes[i]
                                                   : plan->pool_bytes[i - plan->spread.n + 1];
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint32_t arena = mpl_plan_arena(p, plan, b);
        uint64_t end;

        if (arena >= exec->n_pools || !mpl_add_bytes(plan->offset[b], p->bytes[b], &end) ||
            end > exec->slab[arena].bytes || plan->offset[b] % p->align[b] != 0)
            return MPL_ERROR(exec->ctx, MPL_EINVALID,
                             "buffer %u at offset %" PRIu64
                             " lies outside of its arena, or not at a "
                             "multiple of %u bytes",
                             b, plan->offset[b], p->align[b]);
        exec->block[b] = block_at(arena, plan->offset[b], p->bytes[b]);
    }
    exec->n_blocks = p->n;
    if (exec->options.within == NULL)
        return MPL_OK;
    if (exec->slab[0].bytes > exec->options.within->bytes)
        return MPL_ERROR(exec->ctx, MPL_EINVALID,
                         "graph '%s' is planned in %" PRIu64
                         " bytes; the memory given has %" PRIu64,
                         exec->g->name, exec->slab[0].bytes, exec->options.within->bytes);
    exec->slab[0].bytes = exec->options.within->bytes;
    return MPL_OK;
}

static uint64_t held_at(const mpl_exec *exec, mpl_value v)
{
    return exec->options.within != NULL ? exec->options.within->held_at[v] : UINT64_MAX;
}

/* A root that the caller has placed in the arena, for good. */
static mpl_status place_held(mpl_exec *exec, mpl_value v)
{
    uint64_t end, at = held_at(exec, v);

    if (!mpl_add_bytes(at, exec->g->value_bytes[v], &end) || end > exec->slab[0].bytes ||
        at % exec->backend->align != 0)
        return MPL_ERROR(exec->ctx, MPL_EINVALID,
                         "value '%s' at offset %" PRIu64
                         " lies outside of the arena, or not at a multiple of %u bytes",
                         exec->g->value_name[v], at, (unsigned)exec->backend->align);
    place(exec, v, 0, at, MPL_NONE);
    return MPL_OK;
}

/* Offset of a value in its holder's storage. */
static uint64_t part_offset(const mpl_exec *exec, const mpl_value_map *map, mpl_value v)
{
    if (mpl_value_strided(map, v))
        return mpl_stage_offset(exec, v);
    return map->value_offset[v];
}

/* A value that holds storage: a buffer, or memory of its own. */
static mpl_status place_holder(mpl_exec *exec, const mpl_value_map *map, mpl_value v)
{
    const mpl_graph *g = exec->g;
    mpl_buffer b = map->value_buffer[v];

    if (mpl_control_moves(exec, v) ||
        (b == MPL_NONE && (g->value_role[v] == MPL_PARAMETER || mpl_is_chosen(g, v)))) {
        place_nowhere(exec, v);
        if (!mpl_control_moves(exec, v) && g->value_role[v] == MPL_PARAMETER)
            exec->control->nowhere[v] = 1;
        return MPL_OK;
    }
    if (b == MPL_NONE)
        return held_at(exec, v) != UINT64_MAX ? place_held(exec, v)
                                              : place_alone(exec, v, own_slab(exec, v));
    place(exec, v, exec->block[b].slab, exec->block[b].offset, b);
    if (exec->block[b].value == MPL_NONE)
        exec->block[b].value = v;
    return MPL_OK;
}

/* A value that is part of its holder's storage. */
static void place_part(mpl_exec *exec, const mpl_value_map *map, mpl_value v, mpl_value holder)
{
    mpl_buffer b = map->value_buffer[v];
    bool family = map->value_buffers != NULL && b != MPL_NONE;

    if (mpl_control_moves(exec, v) || exec->value_slab[holder] == MPL_NONE)
        place_nowhere(exec, v);
    else
        place(exec, v, exec->value_slab[holder],
              exec->value_offset[holder] + part_offset(exec, map, v),
              family ? b : exec->value_block[holder]);
    if (family && exec->block[b].value == MPL_NONE)
        exec->block[b].value = v;
}

/* Bytes of all buffers that holder v lies in. MPL_EINVALID: there is a gap between them. */
static mpl_status holder_bytes(const mpl_exec *exec, const mpl_value_map *map, mpl_value v,
                               uint64_t *bytes)
{
    mpl_buffer b = map->value_buffer[v];
    uint32_t n = map->value_buffers != NULL ? map->value_buffers[v] : 1;

    *bytes = exec->block[b].bytes;
    for (uint32_t k = 1; k < n; k++) {
        if (exec->block[b + k].slab != exec->block[b].slab ||
            exec->block[b + k].offset != exec->block[b].offset + *bytes)
            return MPL_ERROR(exec->ctx, MPL_EINVALID,
                             "the buffers of value '%s' do not lie end to end",
                             exec->g->value_name[v]);
        *bytes += exec->block[b + k].bytes;
    }
    return MPL_OK;
}

/* Which blocks each value lies in, if there are several. */
static mpl_status know_families(mpl_exec *exec, const mpl_value_map *map)
{
    uint32_t n = exec->g->n_values;

    if (map->value_buffers == NULL)
        return MPL_OK;
    MPL_PASS(mpl_new_each(exec->ctx, n, exec->value_blocks, exec->value_home));
    for (mpl_value v = 0; v < n; v++) {
        mpl_value holder = mpl_exec_holder(map, v);

        exec->value_blocks[v] = map->value_buffer[v] != MPL_NONE ? map->value_buffers[v] : 1;
        exec->value_home[v] = exec->value_block[holder];
    }
    return MPL_OK;
}

static mpl_status place_planned(mpl_exec *exec, const mpl_value_map *map)
{
    const mpl_graph *g = exec->g;

    MPL_PASS(mpl_stage_values(exec, map));
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value holder = mpl_exec_holder(map, v);
        uint64_t end, bytes = 0;

        if (map->value_buffer[v] != MPL_NONE && !mpl_control_moves(exec, v))
            MPL_PASS(holder_bytes(exec, map, holder, &bytes));
        if (map->value_buffer[v] != MPL_NONE && !mpl_control_moves(exec, v) &&
            !mpl_value_strided(map, v) &&
            (!mpl_add_bytes(part_offset(exec, map, v), g->value_bytes[v], &end) || end > bytes))
            return MPL_ERROR(exec->ctx, MPL_EINVALID,
                             "value '%s' has %" PRIu64 " bytes, its buffer %" PRIu64,
                             g->value_name[v], g->value_bytes[v], bytes);
        if (mpl_exec_holder(map, v) == v)
            MPL_PASS(place_holder(exec, map, v));
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        if (mpl_exec_holder(map, v) != v)
            place_part(exec, map, v, mpl_exec_holder(map, v));
    return know_families(exec, map);
}

static mpl_status find_state(mpl_exec *exec)
{
    const mpl_graph *g = exec->g;

    MPL_PASS(mpl_new(exec->ctx, exec->value_state, g->n_values));
    memset(exec->value_state, 0xff, g->n_values * sizeof *exec->value_state);
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
            mpl_value state = mpl_updated(g, op, i - g->op_out_begin[op]);

            if (g->op_out[i] != MPL_NONE && state != MPL_NONE)
                exec->value_state[g->op_out[i]] = exec->value_state[state] = state;
        }
    return MPL_OK;
}

static mpl_spot spot_of_block(const mpl_exec *exec, uint32_t id)
{
    return (mpl_spot){exec->block[id].slab, id, exec->block[id].offset};
}

/* Buffers and pinned storage that places refer to. */
static void know_places(mpl_exec *exec)
{
    mpl_control *control = exec->control;

    for (uint32_t i = 0; i < control->n_places; i++)
        if (control->place[i].kind == MPL_PLACE_BUFFER)
            control->known[i] = spot_of_block(exec, control->place[i].of);
        else if (control->place[i].kind == MPL_PLACE_PINNED)
            control->known[i] = mpl_exec_spot(exec, control->place[i].of);
    for (uint32_t b = 0; b < exec->g->n_blocks; b++)
        if (control->staging[b].block != MPL_NONE)
            control->staging[b] = spot_of_block(exec, control->staging[b].block);
}

mpl_status mpl_layout_values(mpl_exec *exec, const mpl_problem *p, const mpl_value_map *map,
                             const mpl_plan *plan)
{
    mpl_ctx *ctx = exec->ctx;
    const mpl_graph *g = exec->g;
    uint32_t n_buffers = p != NULL ? p->n : 0;

    exec->n_buffers = n_buffers;
    if (p != NULL &&
        (map->n_values != g->n_values || plan->n != p->n || plan->n_pools != p->n_pools))
        return MPL_ERROR(ctx, MPL_EINVALID, "graph, problem and plan do not belong together");
    exec->n_pools = p != NULL ? mpl_plan_n_arenas(plan) : 1;
    exec->n_memories = p != NULL && plan->spread.n > 0 ? plan->spread.n : 1;
    exec->n_slabs = exec->n_pools + MPL_N_FIXED_SLABS;
    MPL_PASS(mpl_new(ctx, exec->slab, exec->n_slabs));
    MPL_PASS(mpl_new(ctx, exec->block,
                     (size_t)n_buffers + g->n_values + g->n_ops + g->n_blocks +
                         g->op_in_begin[g->n_ops] + g->op_out_begin[g->n_ops]));
    MPL_PASS(
        mpl_new_each(ctx, g->n_values, exec->value_slab, exec->value_offset, exec->value_block));
    MPL_PASS(find_state(exec));
    if (exec->control != NULL)
        MPL_PASS(mpl_control_new(exec, map));
    if (p != NULL) {
        MPL_PASS(take_buffers(exec, p, plan));
        MPL_PASS(place_planned(exec, map));
        if (exec->control != NULL)
            know_places(exec);
    } else {
        MPL_PASS(place_unshared(exec));
    }
    return MPL_OK;
}

mpl_status mpl_layout_workspaces(mpl_exec *exec, const mpl_value_map *map)
{
    const mpl_graph *g = exec->g;
    uint32_t slab = fixed_slab(exec, MPL_SLAB_WORKSPACE);

    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_buffer b = map != NULL ? map->op_workspace[op] : MPL_NONE;
        uint64_t bytes = exec->op_workspace_bytes[op], offset = 0;

        exec->op_block[op] = b;
        if (exec->value_lay != NULL && b != MPL_NONE && bytes > exec->block[b].bytes)
            b = exec->op_block[op] = MPL_NONE; /* it was planned for contiguous operands */
        if (b != MPL_NONE && bytes > exec->block[b].bytes)
            return MPL_ERROR(exec->ctx, MPL_EINVALID,
                             "operation '%s' needs a workspace of %" PRIu64
                             " bytes; planned are %" PRIu64,
                             g->op_name[op], bytes, exec->block[b].bytes);
        if (b == MPL_NONE && bytes > 0) { /* not planned: at the end of the workspaces */
            MPL_PASS(push(exec, slab, bytes, &offset));
            exec->op_block[op] = exec->n_blocks;
            exec->block[exec->n_blocks++] = block_at(slab, offset, bytes);
        }
        if (exec->op_block[op] != MPL_NONE)
            exec->block[exec->op_block[op]].op = op;
    }
    return mpl_stage_place(exec, slab);
}

/* All blocks that v lies in. */
static void touch_value(mpl_exec *exec, mpl_value v, uint32_t step, mpl_touch *touch)
{
    for (uint32_t k = 0;
         v != MPL_NONE && exec->value_block[v] != MPL_NONE && k < mpl_exec_n_blocks(exec, v); k++)
        touch(exec, exec->value_block[v] + k, step);
}

void mpl_layout_each_touch(mpl_exec *exec, uint32_t step, mpl_touch *touch)
{
    const mpl_graph *g = exec->g;
    mpl_op op = exec->order[step];

    if (!mpl_layout_touches(exec, op))
        return;
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++)
        touch_value(exec, g->op_in[i], step, touch);
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        touch_value(exec, g->op_out[i], step, touch);
    if (exec->op_block[op] != MPL_NONE)
        touch(exec, exec->op_block[op], step);
    for (uint32_t i = 0, block; mpl_stage_block(exec, op, i, &block); i++)
        touch(exec, block, step);
}

bool mpl_layout_touches(const mpl_exec *exec, mpl_op op)
{
    const mpl_graph *g = exec->g;
    const uint32_t *home = exec->value_home != NULL ? exec->value_home : exec->value_block;

    return !exec->op_skipped[op] ||
           home[g->op_in[g->op_in_begin[op]]] != home[g->op_out[g->op_out_begin[op]]];
}

/* Makes a block's life include steps [from, to). */
static void live(mpl_exec *exec, uint32_t block, uint32_t from, uint32_t to)
{
    mpl_block *b;

    if (block == MPL_NONE)
        return;
    b = &exec->block[block];
    b->birth = b->birth == MPL_NONE || from < b->birth ? from : b->birth;
    b->death = to > b->death ? to : b->death;
}

static void live_at(mpl_exec *exec, uint32_t block, uint32_t step)
{
    live(exec, block, step, step + 1);
}

void mpl_layout_lifetimes(mpl_exec *exec, const mpl_problem *p)
{
    const mpl_graph *g = exec->g;
    uint32_t pinned = fixed_slab(exec, MPL_SLAB_PINNED), end = mpl_exec_n_steps(exec);

    if (exec->control != NULL)
        return;
    for (uint32_t s = 0; s < g->n_ops; s++)
        mpl_layout_each_touch(exec, s, live_at);
    for (uint32_t i = 0; i < g->n_inputs; i++)
        if (exec->value_slab[g->input[i]] == pinned)
            live(exec, exec->value_block[g->input[i]], 0, end);
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        mpl_value v = g->output[i];
        uint32_t b = exec->value_block[v];

        for (uint32_t k = 0; b != MPL_NONE && k < mpl_exec_n_blocks(exec, v); k++)
            live(exec, b + k, exec->block[b + k].birth != MPL_NONE ? exec->block[b + k].birth : 0,
                 end);
    }
    for (uint32_t i = 0; p != NULL && i < p->n_in_place; i++) {
        mpl_block *in = &exec->block[p->in_place_in[i]], *out = &exec->block[p->in_place_out[i]];

        if (in->slab == out->slab && in->offset == out->offset && out->birth != MPL_NONE &&
            in->death == out->birth + 1 && in->bytes >= out->bytes)
            out->over = p->in_place_in[i];
    }
}
