/* stage.c -- strided values, and contiguous copies for operations that do not support strides. See
 * exec_priv.h.
 *
 * The backend is asked first whether it handles an operation's operands where they lie. Otherwise
 * they are gathered before the operation, or scattered after it, through memory among the
 * workspaces. Copied bytes are counted. */
#include "graphs/ir/layout.h"
#include "runtime/exec/exec_priv.h"

/* Whether v is stored channels-last on this backend. */
static bool is_last(const mpl_exec *exec, mpl_value v)
{
    return exec->backend->lays_channels_last && mpl_channels_last(exec->g, v);
}

mpl_status mpl_stage_values(mpl_exec *exec, const mpl_value_map *map)
{
    const mpl_graph *g = exec->g;

    if (map->value_box == NULL)
        return MPL_OK;
    MPL_PASS(mpl_new(exec->ctx, exec->value_lay, g->n_values));
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = map->value_root[v];
        uint64_t size = mpl_type_bytes((mpl_type)g->value_type[v]);
        int64_t least, most;

        if (!mpl_value_strided(map, v))
            continue;
        exec->value_lay[v] = mpl_box_laid(g, root, &map->value_box[v], is_last(exec, root));
        if (!mpl_strided_bounds(&exec->value_lay[v], &least, &most) ||
            (uint64_t)most >= g->value_bytes[root] / size)
            return MPL_ERROR(exec->ctx, MPL_EINVALID,
                             "value '%s' reaches outside of '%s', which it lies in",
                             g->value_name[v], g->value_name[root]);
    }
    return MPL_OK;
}

uint64_t mpl_stage_offset(const mpl_exec *exec, mpl_value v)
{
    return (uint64_t)exec->value_lay[v].offset * mpl_type_bytes((mpl_type)exec->g->value_type[v]);
}

/* Whether v is not contiguous, or not at the backend's alignment. */
static bool is_strided(const mpl_exec *exec, mpl_value v)
{
    if (v == MPL_NONE || exec->value_lay == NULL || exec->value_lay[v].shape.rank == 0)
        return false;
    return !mpl_box_is_run(&exec->value_lay[v], is_last(exec, v)) ||
           exec->value_offset[v] % exec->backend->align != 0;
}

static mpl_value operand(const mpl_graph *g, mpl_op op, uint32_t i)
{
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];

    return i < n_in ? g->op_in[g->op_in_begin[op] + i] : g->op_out[g->op_out_begin[op] + i - n_in];
}

static uint32_t n_operands(const mpl_graph *g, mpl_op op)
{
    return mpl_op_n_in(g, op) + mpl_op_n_out(g, op);
}

/* Stages the strided operands of an operation. */
static mpl_status stage_operands(mpl_exec *exec, mpl_op op)
{
    const mpl_graph *g = exec->g;

    for (uint32_t i = 0; i < n_operands(g, op); i++) {
        mpl_value v = operand(g, op, i);
        mpl_strided lay;
        mpl_staged *staged;

        if (!is_strided(exec, v))
            continue;
        MPL_PASS(
            mpl_reserve(exec->ctx, exec->staged, exec->staged_cap, (size_t)exec->n_staged + 1));
        staged = &exec->staged[exec->n_staged++];
        *staged = (mpl_staged){.op = op, .operand = i};
        staged->size = mpl_type_bytes((mpl_type)g->value_type[v]);
        lay = exec->value_lay[v];
        lay.offset = 0;
        if (is_last(exec, v))
            mpl_box_turn(&lay);
        mpl_strided_join(&lay, &staged->lay);
        exec->copied_bytes += g->value_bytes[v];
    }
    return MPL_OK;
}

mpl_status mpl_stage_prepare(mpl_exec *exec, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = exec->g;
    const int64_t **stride = NULL;
    bool any = false, done = false;

    for (uint32_t i = 0; i < n_operands(g, op); i++)
        any = any || is_strided(exec, operand(g, op, i));
    if (any && exec->backend->prepare_strided != NULL) {
        MPL_TRY(mpl_new(exec->ctx, stride, n_operands(g, op)));
        for (uint32_t i = 0; i < n_operands(g, op); i++)
            if (is_strided(exec, operand(g, op, i)))
                stride[i] = exec->value_lay[operand(g, op, i)].stride;
        MPL_TRY(exec->backend->prepare_strided(exec->dev, g, op, stride, &exec->op_prepared[op],
                                               &exec->op_workspace_bytes[op], &exec->op_how[op]));
        done = exec->op_prepared[op] != NULL;
    }
    if (any && !done)
        MPL_TRY(stage_operands(exec, op));
    if (!done)
        MPL_TRY(exec->backend->prepare(exec->dev, g, op, &exec->op_prepared[op],
                                       &exec->op_workspace_bytes[op], &exec->op_how[op]));
out:
    mpl_free(exec->ctx, stride);
    return st;
}

/* Bytes of a contiguous row: the last dim, if its stride is 1. */
static uint64_t row_bytes(const mpl_staged *staged)
{
    uint32_t n = staged->lay.shape.rank;

    return n > 0 && staged->lay.stride[n - 1] == 1
               ? (uint64_t)staged->lay.shape.dim[n - 1] * staged->size
               : staged->size;
}

/* Index of the next row; false after the last. */
static bool next_row(const mpl_strided *lay, bool rows, int64_t index[MPL_MAX_RANK])
{
    for (uint32_t i = lay->shape.rank - (rows ? 1 : 0); i-- > 0; index[i] = 0)
        if (++index[i] < lay->shape.dim[i])
            return true;
    return false;
}

static mpl_status move_rows(mpl_exec *exec, const mpl_staged *staged, bool gather)
{
    int64_t index[MPL_MAX_RANK] = {0};
    uint64_t bytes = row_bytes(staged);
    uint32_t rank = staged->lay.shape.rank;
    bool rows = rank > 0 && staged->lay.stride[rank - 1] == 1;
    char *packed = staged->packed;

    do {
        int64_t at = 0;
        char *lies;

        for (uint32_t i = 0; i < rank; i++)
            at += index[i] * staged->lay.stride[i];
        lies = staged->lies + at * (int64_t)staged->size;
        MPL_PASS(
            exec->backend->copy(exec->dev, gather ? packed : lies, gather ? lies : packed, bytes));
        packed += bytes;
    } while (next_row(&staged->lay, rows, index));
    return MPL_OK;
}

mpl_status mpl_stage_run(mpl_exec *exec, mpl_op op)
{
    uint32_t n_in = exec->call[op].n_in, begin = exec->op_staged[op], end = exec->op_staged[op + 1];

    for (uint32_t i = begin; i < end; i++)
        if (exec->staged[i].operand < n_in)
            MPL_PASS(move_rows(exec, &exec->staged[i], true));
    MPL_PASS(exec->backend->run_op(exec->dev, exec->op_prepared[op], &exec->call[op]));
    for (uint32_t i = begin; i < end; i++)
        if (exec->staged[i].operand >= n_in)
            MPL_PASS(move_rows(exec, &exec->staged[i], false));
    return MPL_OK;
}

/* Allots memory among the workspaces; all operations share it if one runs at a time. */
mpl_status mpl_stage_place(mpl_exec *exec, uint32_t slab)
{
    const mpl_graph *g = exec->g;
    uint64_t start, at, top;

    if (exec->n_staged == 0)
        return MPL_OK;
    MPL_PASS(mpl_new(exec->ctx, exec->op_staged, (size_t)g->n_ops + 1));
    if (!mpl_align_bytes(exec->slab[slab].bytes, exec->backend->align, &start))
        return MPL_ERROR(exec->ctx, MPL_EMEM, "graph '%s' needs more than 2^64 bytes", g->name);
    at = top = start;
    for (uint32_t i = 0; i < exec->n_staged; i++) {
        mpl_staged *staged = &exec->staged[i];
        mpl_value v = operand(g, staged->op, staged->operand);

        if (!exec->parallel && i > 0 && exec->staged[i - 1].op != staged->op)
            at = start;
        staged->slab = slab;
        staged->offset = at;
        exec->block[exec->n_blocks] =
            (mpl_block){slab, at, g->value_bytes[v], MPL_NONE, 0, MPL_NONE, v, staged->op, 0};
        staged->block = exec->n_blocks++;
        if (!mpl_add_bytes(at, g->value_bytes[v], &at) ||
            !mpl_align_bytes(at, exec->backend->align, &at))
            return MPL_ERROR(exec->ctx, MPL_EMEM, "graph '%s' needs more than 2^64 bytes", g->name);
        top = mpl_max_u64(top, at);
        exec->op_staged[staged->op + 1]++;
    }
    for (mpl_op op = 0; op < g->n_ops; op++)
        exec->op_staged[op + 1] += exec->op_staged[op];
    exec->slab[slab].bytes = top;
    return MPL_OK;
}

void mpl_stage_bind(mpl_exec *exec)
{
    const mpl_graph *g = exec->g;

    for (uint32_t i = 0; i < exec->n_staged; i++) {
        mpl_staged *staged = &exec->staged[i];
        uint32_t n_in = exec->call[staged->op].n_in;
        mpl_tensor *tensor = staged->operand < n_in
                                 ? &exec->in[g->op_in_begin[staged->op] + staged->operand]
                                 : &exec->out[g->op_out_begin[staged->op] + staged->operand - n_in];

        staged->lies = tensor->data;
        staged->packed = mpl_exec_at(exec, staged->slab, staged->offset);
        tensor->data = staged->packed;
    }
}
