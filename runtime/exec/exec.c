/* exec.c -- binds a graph to a device inside a plan's arenas, and runs it. See exec.h. */
#include "runtime/exec/exec_priv.h"

/* ---- binding ---- */

static mpl_status check_made(mpl_exec *exec, const uint8_t *done, mpl_value v, uint32_t s,
                             mpl_op op)
{
    const mpl_graph *g = exec->g;

    if (v == MPL_NONE || g->value_op[v] == MPL_NONE || done[g->value_op[v]])
        return MPL_OK;
    return MPL_REFUSE(exec->ctx, "graph '%s': step %u, operation '%s' comes before what makes '%s'",
                      g->name, s, g->op_name[op], g->value_name[v]);
}

/* All that `op` reads, and all results of its blocks, are made. */
static mpl_status check_reads(mpl_exec *exec, const uint8_t *done, uint32_t s, mpl_op op)
{
    const mpl_graph *g = exec->g;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        MPL_PASS(check_made(exec, done, g->op_in[i], s, op));
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        for (uint32_t i = 0; i < g->block_n_results[g->op_body[k]]; i++)
            MPL_PASS(check_made(exec, done,
                                g->block_result[g->block_result_begin[g->op_body[k]] + i], s, op));
    return MPL_OK;
}

/* Operations in blocks must keep their planned steps: one worker runs them in one order. */
static mpl_status check_blocks(mpl_exec *exec, const mpl_program *program, const uint32_t *step_of)
{
    const mpl_graph *g = exec->g;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_op owner = g->op_block[op] != 0 ? g->block_owner[g->op_block[op]] : op;

        if (program->op_step[owner] - program->op_step[op] != step_of[owner] - step_of[op])
            return MPL_REFUSE(
                exec->ctx,
                "graph '%s': operation '%s' stands elsewhere in its block than planned; only "
                "outermost "
                "operations can change places",
                g->name, g->op_name[op]);
    }
    return MPL_OK;
}

/* The order must be a permutation of the operations that respects the graph, and for a serial plan
 * the one that the problem was made for. */
static mpl_status take_order(mpl_exec *exec, const mpl_op *order, const mpl_problem *p,
                             const mpl_value_map *map)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = exec->g;
    mpl_program *program = NULL;
    uint8_t *done = NULL;

    if (exec->order == NULL)
        MPL_TRY(mpl_new(exec->ctx, exec->order, g->n_ops));
    MPL_TRY(mpl_new(exec->ctx, done, g->n_ops));
    if (g->n_blocks > 1) {
        MPL_TRY(mpl_program_new(exec->ctx, g, order, &program));
        if (map != NULL || exec->control->program != NULL)
            st = check_blocks(exec, program,
                              map != NULL ? map->step_of : exec->control->program->op_step);
        mpl_program_free(exec->ctx, exec->control->program);
        exec->control->program = program;
        MPL_TRY(st);
    }
    for (uint32_t s = 0; s < g->n_ops; s++) {
        mpl_op op = order[s];
        uint32_t step;

        if (op >= g->n_ops || done[op])
            MPL_FAIL(exec->ctx, MPL_EINPUT, "graph '%s': the order is no permutation at step %u",
                     g->name, s);
        MPL_TRY(check_reads(exec, done, s, op));
        step = program != NULL ? program->op_step[op] : s;
        if (p != NULL && !mpl_exec_any_order(exec) && map->step_of[op] != step)
            MPL_FAIL(exec->ctx, MPL_EINPUT,
                     "graph '%s': operation '%s' stands at step %u; it was planned for step %u",
                     g->name, g->op_name[op], step, map->step_of[op]);
        done[op] = 1;
        exec->order[s] = op;
    }
out:
    mpl_free(exec->ctx, done);
    return st;
}

bool mpl_exec_hands_on(const mpl_exec *exec, mpl_op op)
{
    const mpl_graph *g = exec->g;
    mpl_value in, out;

    if ((mpl_op_table[g->op_kind[op]].traits & MPL_VIEW) == 0)
        return false;
    in = g->op_in[g->op_in_begin[op]];
    out = g->op_out[g->op_out_begin[op]];
    if (g->value_bytes[out] == 0)
        return true;
    if (mpl_control_moves(exec, in) || mpl_control_moves(exec, out))
        return mpl_control_moves(exec, in) && mpl_control_moves(exec, out) &&
               exec->control->holder[in] == exec->control->holder[out];
    return exec->value_slab[in] == exec->value_slab[out] &&
           exec->value_offset[in] == exec->value_offset[out];
}

static bool runs_nothing(const mpl_exec *exec, mpl_op op)
{
    if (exec->op_nothing != NULL && exec->op_nothing[op] &&
        (mpl_op_table[exec->g->op_kind[op]].traits & MPL_VIEW) == 0)
        return true;
    return mpl_op_lone_output(exec->g, op) && mpl_exec_hands_on(exec, op);
}

/* Bytes that operation `op` only moves. Concat, split, access and copied views move all of them. An
 * operation that writes a box into another value moves the box, and also that value if it lies
 * elsewhere. A box that is computed while it is written is not moved. */
static uint64_t moved_bytes(const mpl_exec *exec, mpl_op op)
{
    const mpl_graph *g = exec->g;
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    bool view = (mpl_op_table[kind].traits & MPL_VIEW) != 0;
    uint32_t n_out = view ? 1 : g->op_out_begin[op + 1] - g->op_out_begin[op];
    mpl_value in =
        g->op_in_begin[op] < g->op_in_begin[op + 1] ? g->op_in[g->op_in_begin[op]] : MPL_NONE;
    mpl_value out = n_out > 0 ? g->op_out[g->op_out_begin[op]] : MPL_NONE;
    uint64_t bytes = 0, box;

    if (kind == MPL_OP_assign || kind == MPL_OP_fused) {
        box = mpl_box_bytes(g, op);
        if (in == MPL_NONE || out == MPL_NONE)
            return 0;
        if (exec->value_slab[in] != exec->value_slab[out] ||
            exec->value_offset[in] != exec->value_offset[out])
            bytes += kind == MPL_OP_fused && box == g->value_bytes[out] ? 0 : g->value_bytes[out];
        return kind == MPL_OP_assign ? bytes + box : bytes;
    }
    if (kind != MPL_OP_concat && kind != MPL_OP_split && kind != MPL_OP_access && !view)
        return 0;
    for (uint32_t i = 0; i < n_out; i++)
        if (g->op_out[g->op_out_begin[op] + i] != MPL_NONE)
            bytes += g->value_bytes[g->op_out[g->op_out_begin[op] + i]];
    return bytes;
}

static mpl_status prepare_op(mpl_exec *exec, mpl_op op)
{
    const mpl_graph *g = exec->g;

    if (mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) {
        exec->op_how[op] = "control flow";
        return MPL_OK;
    }
    exec->op_skipped[op] = runs_nothing(exec, op);
    if (exec->op_skipped[op]) {
        exec->op_how[op] =
            g->op_kind[op] == MPL_OP_concat ? "nothing: made in place" : "nothing: a view";
        return MPL_OK;
    }
    if (g->op_kind[op] == MPL_OP_reorder)
        exec->reordered_bytes += g->value_bytes[g->op_out[g->op_out_begin[op]]];
    *(g->op_block[op] == 0 ? &exec->copied_bytes : &exec->control->op_copied_bytes[op]) +=
        moved_bytes(exec, op);
    if (exec->options.op_workspace_limit != NULL && exec->backend->limit_workspace != NULL)
        exec->backend->limit_workspace(exec->dev, exec->options.op_workspace_limit[op]);
    return mpl_stage_prepare(exec, op);
}

static mpl_status prepare_all(mpl_exec *exec)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = exec->g;

    MPL_TRY(mpl_new_each(exec->ctx, g->n_ops, exec->op_skipped, exec->op_block,
                         exec->op_workspace_bytes, exec->op_prepared, exec->op_how));
    for (mpl_op op = 0; op < g->n_ops; op++)
        MPL_TRY(prepare_op(exec, op));
out:
    if (exec->backend->limit_workspace != NULL)
        exec->backend->limit_workspace(exec->dev, UINT64_MAX);
    exec->options.op_workspace_limit = NULL;
    return st;
}

static mpl_status allocate(mpl_exec *exec)
{
    uint64_t guard = exec->options.checked ? MPL_GUARD_BYTES : 0;

    for (uint32_t i = 0; i < exec->n_slabs; i++) {
        mpl_slab *slab = &exec->slab[i];
        uint64_t bytes;

        if (i == 0 && exec->options.within != NULL) { /* the caller frees it */
            slab->base = exec->options.within->arena;
            continue;
        }
        if (!mpl_add_bytes(slab->bytes, 2 * guard, &bytes))
            return MPL_ERROR(exec->ctx, MPL_EMEM, "out of memory: an arena of %" PRIu64 " bytes",
                             slab->bytes);
        MPL_PASS(exec->backend->arena_new(exec->dev, bytes, &slab->memory));
        slab->guard = guard;
        slab->base = (char *)slab->memory + guard;
    }
    return MPL_OK;
}

static mpl_tensor tensor_of(const mpl_exec *exec, mpl_value v)
{
    if (v == MPL_NONE)
        return (mpl_tensor){0};
    return (mpl_tensor){(mpl_type)exec->g->value_type[v], exec->g->value_shape[v],
                        mpl_exec_value_at(exec, v)};
}

static mpl_status make_calls(mpl_exec *exec)
{
    const mpl_graph *g = exec->g;

    MPL_PASS(mpl_new(exec->ctx, exec->in, g->op_in_begin[g->n_ops]));
    MPL_PASS(mpl_new(exec->ctx, exec->out, g->op_out_begin[g->n_ops]));
    MPL_PASS(mpl_new(exec->ctx, exec->call, g->n_ops));
    for (uint32_t i = 0; i < g->op_in_begin[g->n_ops]; i++)
        exec->in[i] = tensor_of(exec, g->op_in[i]);
    for (uint32_t i = 0; i < g->op_out_begin[g->n_ops]; i++)
        exec->out[i] = tensor_of(exec, g->op_out[i]);
    for (mpl_op op = 0; op < g->n_ops; op++) {
        const mpl_block *block =
            exec->op_block[op] != MPL_NONE ? &exec->block[exec->op_block[op]] : NULL;

        exec->call[op] = (mpl_op_call){
            .graph = g,
            .op = op,
            .n_in = g->op_in_begin[op + 1] - g->op_in_begin[op],
            .n_out = g->op_out_begin[op + 1] - g->op_out_begin[op],
            .in = exec->in + g->op_in_begin[op],
            .out = exec->out + g->op_out_begin[op],
            .workspace = block != NULL ? mpl_exec_at(exec, block->slab, block->offset) : NULL,
        };
    }
    mpl_stage_bind(exec);
    return MPL_OK;
}

/* Inputs and weights in an arena need home memory: they own the arena's bytes only for a time. */
static mpl_status make_arrivals(mpl_exec *exec)
{
    const mpl_graph *g = exec->g;

    MPL_PASS(mpl_new_each(exec->ctx, g->n_values, exec->arrival_value, exec->arrival_home));
    for (mpl_value v = 0; v < g->n_values; v++) {
        if ((g->value_role[v] != MPL_INPUT && g->value_role[v] != MPL_WEIGHT) ||
            exec->value_slab[v] >= exec->n_pools || exec->value_block[v] == MPL_NONE)
            continue; /* it stays where it is from run to run */
        exec->arrival_value[exec->n_arrivals] = v;
        MPL_PASS(mpl_new(exec->ctx, exec->arrival_home[exec->n_arrivals], g->value_bytes[v]));
        exec->n_arrivals++;
    }
    if (exec->control != NULL)
        MPL_PASS(mpl_control_list_arrivals(exec));
    return MPL_OK;
}

static char *home_of(const mpl_exec *exec, mpl_value v)
{
    for (uint32_t i = 0; i < exec->n_arrivals; i++)
        if (exec->arrival_value[i] == v)
            return exec->arrival_home[i];
    return NULL;
}

static mpl_status put_value(void *arg, mpl_value v, uint64_t offset, const void *data,
                            uint64_t bytes)
{
    mpl_exec *exec = arg;
    char *home = home_of(exec, v);

    if (bytes == 0)
        return MPL_OK;
    if (home == NULL)
        return exec->backend->upload(exec->dev, mpl_exec_value_at(exec, v) + offset, data, bytes);
    memcpy(home + offset, data, bytes);
    return MPL_OK;
}

static mpl_status fill_weights(mpl_exec *exec)
{
    for (mpl_value v = 0; v < exec->g->n_values; v++)
        if (exec->g->value_role[v] == MPL_WEIGHT)
            MPL_PASS(mpl_weights_make(exec->g, &exec->options, v, put_value, exec));
    exec->fresh = true;
    return MPL_OK;
}

/* After a run, copies home what carries over between runs but lies in an arena. */
static mpl_status depart(mpl_exec *exec)
{
    for (uint32_t i = 0; exec->options.iterate && i < exec->n_arrivals; i++) {
        mpl_value v = exec->arrival_value[i];

        if (exec->value_state[v] == v)
            MPL_PASS(exec->backend->download(exec->dev, exec->arrival_home[i],
                                             mpl_exec_value_at(exec, v), exec->g->value_bytes[v]));
    }
    return MPL_OK;
}

mpl_status mpl_exec_renew(mpl_exec *exec)
{
    for (mpl_value v = 0; !exec->fresh && !exec->options.iterate && v < exec->g->n_values; v++)
        if (exec->value_state[v] == v)
            MPL_PASS(mpl_weights_make(exec->g, &exec->options, v, put_value, exec));
    exec->fresh = false;
    return MPL_OK;
}

/* Not if checks, or arrivals of a serial plan, need single steps. */
static bool takes_whole(const mpl_exec *exec)
{
    return exec->backend->sequence_new != NULL && !exec->options.checked && exec->control == NULL &&
           exec->n_staged == 0 && (exec->n_arrivals == 0 || exec->parallel);
}

/* Copies the weights that runs update to host memory, or back from there. */
static mpl_status copy_state(mpl_exec *exec, char *host, bool back)
{
    for (mpl_value v = 0; v < exec->g->n_values; v++) {
        uint64_t bytes = exec->g->value_bytes[v];

        if (exec->value_state[v] != v || home_of(exec, v) != NULL)
            continue;
        MPL_PASS(back
                     ? exec->backend->upload(exec->dev, mpl_exec_value_at(exec, v), host, bytes)
                     : exec->backend->download(exec->dev, host, mpl_exec_value_at(exec, v), bytes));
        host += bytes;
    }
    return MPL_OK;
}

static uint64_t state_bytes(const mpl_exec *exec)
{
    uint64_t bytes = 0;

    for (mpl_value v = 0; v < exec->g->n_values; v++)
        bytes += exec->value_state[v] == v ? exec->g->value_bytes[v] : 0;
    return bytes;
}

/* A device that captures runs the graph once meanwhile. The state that this changes is restored. */
static mpl_status make_sequence(mpl_exec *exec, uint32_t lanes)
{
    mpl_status st = MPL_OK;
    bool runs = exec->backend->captures != NULL && exec->backend->captures(exec->dev);
    char *state = NULL;
    mpl_sequence_spec spec = {
        .g = exec->g,
        .order = exec->order,
        .skipped = exec->op_skipped,
        .prepared = exec->op_prepared,
        .call = exec->call,
        .most_lanes = lanes,
    };

    if (exec->sequence != NULL)
        exec->backend->sequence_free(exec->dev, exec->sequence);
    exec->sequence = NULL;
    if (runs && (state = mpl_alloc(exec->ctx, state_bytes(exec), 1)) == NULL)
        MPL_TRY(MPL_EMEM);
    if (runs)
        MPL_TRY(copy_state(exec, state, false));
    MPL_TRY(exec->backend->sequence_new(exec->dev, &spec, &exec->sequence));
    exec->sequence_lanes = lanes;
    if (runs)
        MPL_TRY(copy_state(exec, state, true));
out:
    mpl_free(exec->ctx, state);
    return st;
}

mpl_status mpl_exec_new(mpl_ctx *ctx, const mpl_backend *backend, mpl_device *dev,
                        const mpl_graph *g, const mpl_op *order, const mpl_problem *p,
                        const mpl_value_map *map, const mpl_plan *plan,
                        const mpl_exec_options *options, mpl_exec **out)
{
    mpl_status st = MPL_OK;
    mpl_exec *exec = NULL;

    mpl_assert((p == NULL) == (map == NULL) && (p == NULL) == (plan == NULL));
    MPL_TRY(mpl_graph_check_ssa(ctx, g));
    MPL_TRY(mpl_new(ctx, exec, 1));
    exec->ctx = ctx;
    exec->backend = backend;
    exec->dev = dev;
    exec->g = g;
    exec->options = *options;
    exec->parallel = p != NULL && p->before != NULL;
    if (map != NULL && map->op_stream != NULL) {
        MPL_TRY(mpl_new(ctx, exec->op_stream, g->n_ops));
        memcpy(exec->op_stream, map->op_stream, g->n_ops * sizeof *exec->op_stream);
    }
    if (g->n_blocks > 1)
        MPL_TRY(mpl_new(ctx, exec->control, 1));
    MPL_TRY(mpl_control_count_work(exec));
    MPL_TRY(take_order(exec, order, p, map));
    MPL_TRY(mpl_layout_values(exec, p, map, plan));
    MPL_TRY(mpl_control_bind_slots(exec));
    exec->op_nothing = map != NULL ? map->op_nothing : NULL;
    MPL_TRY(prepare_all(exec));
    exec->op_nothing = NULL;
    MPL_TRY(mpl_layout_workspaces(exec, map));
    mpl_layout_lifetimes(exec, p);
    MPL_TRY(allocate(exec));
    MPL_TRY(make_calls(exec));
    MPL_TRY(make_arrivals(exec));
    MPL_TRY(fill_weights(exec));
    exec->options.within = NULL; /* the executor needs no more of it */
    if (exec->options.checked)
        MPL_TRY(mpl_checked_init(exec));
    if (options->checked && exec->control != NULL)
        MPL_TRY(mpl_witness_new(exec, p));
    if (takes_whole(exec))
        MPL_TRY(make_sequence(exec, mpl_exec_any_order(exec) ? 0 : 1));
    MPL_TRY(mpl_residues_new(exec));
    if (options->n_workers > 0)
        MPL_TRY(mpl_exec_set_workers(exec, options->n_workers));
    *out = exec, exec = NULL;
out:
    mpl_exec_free(ctx, exec);
    return st;
}

void mpl_exec_free(mpl_ctx *ctx, mpl_exec *exec)
{
    if (exec == NULL)
        return;
    mpl_team_free(exec->team);
    if (exec->sequence != NULL)
        exec->backend->sequence_free(exec->dev, exec->sequence);
    mpl_residues_free(exec);
    mpl_reside_free(ctx, exec->reside);
    for (mpl_op op = 0; exec->op_prepared != NULL && op < exec->g->n_ops; op++)
        exec->backend->release(exec->dev, exec->op_prepared[op]);
    for (uint32_t i = 0; exec->slab != NULL && i < exec->n_slabs; i++)
        if (exec->slab[i].memory != NULL)
            exec->backend->arena_free(exec->dev, exec->slab[i].memory,
                                      exec->slab[i].bytes + 2 * exec->slab[i].guard);
    for (uint32_t i = 0; i < exec->n_arrivals; i++)
        mpl_free(ctx, exec->arrival_home[i]);
    mpl_control_free(ctx, exec->control);
    mpl_witness_free(ctx, exec->witness);
    mpl_census_free(ctx, exec->census);
    mpl_free_each(ctx, exec->order, exec->slab, exec->block, exec->value_slab, exec->value_offset,
                  exec->value_block, exec->value_blocks, exec->value_home, exec->value_lay,
                  exec->staged, exec->op_staged, exec->op_block, exec->op_skipped,
                  exec->op_workspace_bytes, exec->op_prepared, exec->op_how, exec->in, exec->out,
                  exec->call, exec->arrival_value, exec->arrival_home, exec->value_state,
                  exec->op_stream, exec->by_place, exec->stage, exec);
}

mpl_status mpl_exec_workspaces(mpl_ctx *ctx, const mpl_backend *backend, mpl_device *dev,
                               const mpl_graph *g, uint64_t *op_workspace_bytes)
{
    (void)ctx;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_prepared *prepared = NULL;

        if (mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) {
            op_workspace_bytes[op] = 0;
            continue;
        }
        MPL_PASS(backend->prepare(dev, g, op, &prepared, &op_workspace_bytes[op], NULL));
        backend->release(dev, prepared);
    }
    return MPL_OK;
}

/* ---- running ---- */

mpl_status mpl_exec_set_input(mpl_exec *exec, uint32_t i, const void *data)
{
    if (i >= exec->g->n_inputs)
        return MPL_REFUSE(exec->ctx, "graph '%s' has %u inputs; there is no input %u",
                          exec->g->name, exec->g->n_inputs, i);
    return put_value(exec, exec->g->input[i], 0, data, exec->g->value_bytes[exec->g->input[i]]);
}

mpl_status mpl_exec_arrive_one(mpl_exec *exec, uint32_t arrival)
{
    mpl_value v = exec->arrival_value[arrival];

    mpl_assert(arrival < exec->n_arrivals && exec->value_slab[v] < exec->n_pools);
    return exec->backend->upload(exec->dev, mpl_exec_value_at(exec, v), exec->arrival_home[arrival],
                                 exec->g->value_bytes[v]);
}

static mpl_status arrive(mpl_exec *exec, uint32_t step)
{
    for (uint32_t i = 0; i < exec->n_arrivals; i++)
        if (exec->block[exec->value_block[exec->arrival_value[i]]].birth == step)
            MPL_PASS(mpl_exec_arrive_one(exec, i));
    return MPL_OK;
}

mpl_status mpl_exec_arrive_all(mpl_exec *exec)
{
    for (uint32_t i = 0; i < exec->n_arrivals; i++)
        MPL_PASS(mpl_exec_arrive_one(exec, i));
    return MPL_OK;
}

mpl_status mpl_exec_run_op(mpl_exec *exec, mpl_op op)
{
    mpl_assert((mpl_op_table[exec->g->op_kind[op]].traits & MPL_CONTROL) == 0);
    if (exec->op_skipped[op])
        return MPL_OK;
    if (exec->op_staged != NULL && exec->op_staged[op] < exec->op_staged[op + 1])
        return mpl_stage_run(exec, op);
    return exec->backend->run_op(exec->dev, exec->op_prepared[op], &exec->call[op]);
}

/* Arrivals and checks before a step; *apart_ns grows by their time. */
static mpl_status prepare_step(mpl_exec *exec, uint32_t step, int64_t *apart_ns)
{
    int64_t begin = mpl_clock_ns();

    MPL_PASS(arrive(exec, step));
    if (exec->options.checked)
        MPL_PASS(mpl_checked_before(exec, step));
    *apart_ns += mpl_clock_ns() - begin;
    return MPL_OK;
}

static mpl_status check_step(mpl_exec *exec, uint32_t step, int64_t *apart_ns)
{
    int64_t begin;

    MPL_PASS(exec->backend->wait(exec->dev));
    begin = mpl_clock_ns();
    MPL_PASS(mpl_checked_after(exec, step));
    *apart_ns += mpl_clock_ns() - begin;
    return MPL_OK;
}

/* The whole run at once with at most `lanes` operations at the same time (0: the device's choice).
 * Only if takes_whole. */
static mpl_status run_whole(mpl_exec *exec, uint32_t lanes, int64_t *ns)
{
    if (exec->sequence == NULL || exec->sequence_lanes != lanes)
        MPL_PASS(make_sequence(exec, lanes));
    MPL_PASS(mpl_exec_arrive_all(exec));
    MPL_PASS(exec->backend->sequence_run(exec->dev, exec->sequence, ns));
    return depart(exec);
}

/* Resident pages of the arena; they stay resident once touched, so only the first run counts. */
static mpl_status measure(mpl_exec *exec)
{
    for (uint32_t i = 0; !exec->ran && i < exec->n_memories; i++) {
        uint64_t bytes = 0;

        MPL_PASS(
            exec->backend->resident(exec->dev, exec->slab[i].base, exec->slab[i].bytes, &bytes));
        exec->measured_bytes += bytes;
    }
    exec->ran = true;
    return MPL_OK;
}

/* One operation with its blocks, in a run in order; notes its time if asked for. */
static mpl_status run_next(mpl_exec *exec, mpl_op op, int64_t *apart_ns)
{
    int64_t before = *apart_ns, begin = exec->op_ns != NULL ? mpl_clock_ns() : 0, ns;

    MPL_PASS(mpl_exec_run_unit(exec, op, apart_ns));
    if (exec->op_ns == NULL)
        return MPL_OK;
    MPL_PASS(exec->backend->wait(exec->dev));
    ns = exec->op_skipped[op] ? 0 : mpl_clock_ns() - begin - (*apart_ns - before);
    exec->op_ns[op] = mpl_min_u64(exec->op_ns[op], (uint64_t)ns);
    return MPL_OK;
}

static mpl_status run_steps(mpl_exec *exec, int64_t *apart_ns)
{
    for (uint32_t s = 0; s < mpl_exec_n_steps(exec); s++) {
        if (exec->control == NULL && (exec->n_arrivals > 0 || exec->options.checked))
            MPL_PASS(prepare_step(exec, s, apart_ns));
        if (exec->reside != NULL)
            MPL_PASS(mpl_reside_before(exec, s));
        if (mpl_exec_op_of(exec, s) != MPL_NONE && exec->g->op_block[exec->order[s]] == 0)
            MPL_PASS(run_next(exec, exec->order[s], apart_ns));
        if (exec->control == NULL && exec->options.checked)
            MPL_PASS(check_step(exec, s, apart_ns));
    }
    return exec->backend->wait(exec->dev);
}

mpl_status mpl_exec_run(mpl_exec *exec, int64_t *ns)
{
    int64_t begin, apart_ns = 0;

    mpl_assert_ok(mpl_exec_ok(exec));
    MPL_PASS(mpl_exec_renew(exec));
    if (takes_whole(exec)) {
        MPL_PASS(run_whole(exec, mpl_exec_any_order(exec) ? exec->n_workers : 1, ns));
        return measure(exec);
    }
    if (exec->options.checked)
        MPL_PASS(mpl_checked_begin(exec));
    if (exec->team != NULL && exec->op_ns == NULL) {
        MPL_PASS(mpl_team_run(exec->team, ns));
    } else {
        mpl_control_reset(exec);
        begin = mpl_clock_ns();
        MPL_PASS(run_steps(exec, &apart_ns));
        if (ns != NULL)
            *ns = mpl_clock_ns() - begin - apart_ns;
    }
    MPL_PASS(depart(exec));
    if (exec->options.checked)
        MPL_PASS(mpl_checked_end(exec));
    return measure(exec);
}

mpl_status mpl_exec_op_times(mpl_exec *exec, uint32_t n, uint64_t *ns)
{
    mpl_status st = MPL_OK;

    if (takes_whole(exec))
        MPL_FAIL(exec->ctx, MPL_EUNAVAIL, "backend %s does not tell the times of operations",
                 exec->backend->name);
    for (mpl_op op = 0; op < exec->g->n_ops; op++)
        ns[op] = exec->g->op_block[op] == 0 ? UINT64_MAX : 0;
    exec->op_ns = ns;
    for (uint32_t i = 0; i < n; i++)
        MPL_TRY(mpl_exec_run(exec, NULL));
out:
    exec->op_ns = NULL;
    return st;
}

mpl_status mpl_exec_set_order(mpl_exec *exec, const mpl_op *order)
{
    if (!mpl_exec_any_order(exec) || exec->options.checked)
        return MPL_REFUSE(
            exec->ctx, "graph '%s': only an unchecked plan of safety parallel can change its order",
            exec->g->name);
    MPL_PASS(take_order(exec, order, NULL, NULL));
    for (uint32_t b = 0; b < exec->n_blocks; b++) {
        exec->block[b].birth = MPL_NONE;
        exec->block[b].death = 0;
    }
    mpl_layout_lifetimes(exec, NULL);
    if (exec->control != NULL)
        MPL_PASS(mpl_control_list_arrivals(exec));
    if (takes_whole(exec))
        MPL_PASS(make_sequence(exec, 0));
    return MPL_OK;
}

mpl_status mpl_exec_output(mpl_exec *exec, uint32_t i, void *data)
{
    mpl_value v;

    if (i >= exec->g->n_outputs)
        return MPL_REFUSE(exec->ctx, "graph '%s' has %u outputs; there is no output %u",
                          exec->g->name, exec->g->n_outputs, i);
    v = exec->g->output[i];
    if (exec->g->value_bytes[v] > 0)
        MPL_PASS(exec->backend->download(exec->dev, data, mpl_exec_value_at(exec, v),
                                         exec->g->value_bytes[v]));
    return MPL_OK;
}

const char *mpl_exec_how(const mpl_exec *exec, mpl_op op)
{
    return exec->op_how[op];
}

static void count_how(mpl_exec_facts *facts, const char *how)
{
    uint32_t i = 0;

    while (i < facts->n_hows &&
           strncmp(facts->how[i].name, how, sizeof facts->how[i].name - 1) != 0)
        i++;
    if (i == MPL_MOST_HOWS)
        i--;
    if (i == facts->n_hows) {
        snprintf(facts->how[i].name, sizeof facts->how[i].name, "%s",
                 i + 1 < MPL_MOST_HOWS ? how : "others");
        facts->n_hows++;
    }
    facts->how[i].n++;
}

static void device_facts(const mpl_exec *exec, mpl_exec_facts *facts)
{
    mpl_device_facts device = {0};

    exec->backend->facts(exec->dev, &device);
    snprintf(facts->device, sizeof facts->device, "%s", device.about);
    snprintf(facts->math, sizeof facts->math, "%s", device.math);
    facts->tolerance = device.tolerance;
    facts->device_allocations = device.n_while_running;
    facts->device_before = device.used_before;
    facts->device_after = device.used_after;
    facts->device_taken = device.taken;
    facts->two_ways = device.two_ways && exec->sequence != NULL;
    facts->clocks = device.clocks;
    for (uint32_t i = 0; i < exec->n_slabs; i++) {
        facts->device_asked += exec->slab[i].bytes + 2 * exec->slab[i].guard;
        facts->device_slack += device.granularity;
    }
}

mpl_status mpl_exec_facts_get(mpl_exec *exec, mpl_exec_facts *facts)
{
    *facts = (mpl_exec_facts){
        .measured_bytes = exec->measured_bytes,
        .workspace_bytes = exec->slab[exec->n_pools + MPL_SLAB_WORKSPACE].bytes,
        .weight_bytes = exec->weight_bytes,
        .pinned_bytes = exec->pinned_bytes,
        .copied_bytes = exec->copied_bytes,
        .reordered_bytes = exec->reordered_bytes,
        .moved_bytes = mpl_reside_moved(exec),
    };
    for (mpl_op op = 0; exec->backend->packed_bytes != NULL && op < exec->g->n_ops; op++)
        if (exec->op_prepared[op] != NULL)
            facts->packed_bytes += exec->backend->packed_bytes(exec->op_prepared[op]);
    for (mpl_op op = 0; op < exec->g->n_ops; op++)
        if (!exec->op_skipped[op] && !(mpl_op_table[exec->g->op_kind[op]].traits & MPL_CONTROL)) {
            facts->n_kernels++;
            count_how(facts, exec->op_how[op]);
        }
    if (exec->control != NULL) {
        facts->copied_bytes += exec->control->copied_bytes;
        facts->loop_carry_bytes = exec->control->carried_bytes;
    }
    for (uint32_t i = 0; i < exec->n_pools; i++)
        *(i < exec->n_memories ? &facts->arena_bytes : &facts->workspace_bytes) +=
            exec->slab[i].bytes;
    if (exec->backend->facts != NULL)
        device_facts(exec, facts);
    return MPL_OK;
}
