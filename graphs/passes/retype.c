/* retype.c -- a graph of f32 as one of another floating type. See passes.h. */
#include "graphs/ops/ops_priv.h"
#include "graphs/passes/copy.h"
#include "graphs/passes/passes.h"

typedef struct retyping {
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_graph *to;
    mpl_type type;
    mpl_value *map;  /* [n_values of g] */
    uint32_t *block; /* [n_blocks of g] */
} retyping;

static mpl_type type_of(const retyping *self, mpl_value v)
{
    mpl_type type = (mpl_type)self->g->value_type[v];

    return type == MPL_TYPE_f32 ? self->type : type;
}

/* A constant with its elements rounded. */
static mpl_status copy_const(retyping *self, mpl_value v)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    mpl_type from = (mpl_type)g->value_type[v], type = type_of(self, v);
    uint64_t n = g->value_splat[v] ? 1 : (uint64_t)mpl_count(&g->value_shape[v]);
    void *data = NULL;

    if (type != from) {
        if ((data = mpl_alloc(self->ctx, n + 1, mpl_type_bytes(type))) == NULL)
            return MPL_EMEM;
        for (uint64_t i = 0; i < n; i++)
            mpl_put(type, data, (int64_t)i, mpl_get(from, g->value_data[v], (int64_t)i));
    }
    st = mpl_graph_add_const(self->ctx, self->to, g->value_name[v], type, &g->value_shape[v],
                             data != NULL ? data : g->value_data[v], g->value_splat[v],
                             &self->map[v]);
    mpl_free(self->ctx, data);
    return st;
}

static mpl_status open_block(retyping *self, uint32_t b)
{
    const mpl_graph *g = self->g;

    MPL_PASS(mpl_graph_open_block(self->ctx, self->to, g->block_name[b], &self->block[b]));
    for (uint32_t i = 0; i < g->block_n_params[b]; i++) {
        mpl_value v = mpl_param(g, b, i);

        MPL_PASS(mpl_graph_add_param(self->ctx, self->to, g->value_name[v], type_of(self, v),
                                     &g->value_shape[v], &self->map[v]));
    }
    return MPL_OK;
}

/* A cast to f32 becomes one to the type. */
static mpl_status copy_op(retyping *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    mpl_value in = mpl_op_input(g, op, 0), out = mpl_op_output(g, op, 0);

    if (g->op_kind[op] != MPL_OP_cast || g->value_type[out] != MPL_TYPE_f32)
        return mpl_copy_op(self->ctx, g, op, self->to, self->map, self->block);
    return mpl_graph_add_op(self->ctx, self->to, MPL_OP_cast, g->op_name[op], 1, &self->map[in], 1,
                            &MPL_TEXT(to, mpl_type_name(self->type)), 1,
                            (const char *[]){g->value_name[out]}, &self->map[out]);
}

static mpl_status copy_item(retyping *self, mpl_item item, const mpl_walk *at)
{
    const mpl_graph *g = self->g;

    switch (item) {
    case MPL_ITEM_VALUE:
        if (g->value_data[at->value] != NULL)
            return copy_const(self, at->value);
        return mpl_graph_add_value(self->ctx, self->to, g->value_name[at->value],
                                   (mpl_role)g->value_role[at->value], type_of(self, at->value),
                                   &g->value_shape[at->value], &self->map[at->value]);
    case MPL_ITEM_OPEN:
        return open_block(self, at->block);
    case MPL_ITEM_CLOSE:
        return mpl_copy_close(self->ctx, g, at->block, self->to, self->map);
    default:
        return copy_op(self, at->op);
    }
}

mpl_status mpl_graph_retype(mpl_ctx *ctx, const mpl_graph *g, const char *name, mpl_type type,
                            mpl_graph **out)
{
    mpl_status st = MPL_OK;
    retyping r = {.ctx = ctx, .g = g, .type = type};
    mpl_walk walk = mpl_walk_begin();
    mpl_item item;

    MPL_TRY(mpl_new(ctx, r.map, g->n_values));
    MPL_TRY(mpl_new(ctx, r.block, g->n_blocks));
    MPL_TRY(mpl_graph_new(ctx, name, &r.to));
    r.to->program = g->program;
    while ((item = mpl_walk_next(g, &walk)) != MPL_ITEM_END)
        MPL_TRY(copy_item(&r, item, &walk));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        MPL_TRY(mpl_graph_add_output(ctx, r.to, r.map[g->output[i]]));
    MPL_TRY(mpl_graph_finish(ctx, r.to));
    *out = r.to, r.to = NULL;
out:
    mpl_graph_free(ctx, r.to);
    mpl_free_each(ctx, r.map, r.block);
    return st;
}
