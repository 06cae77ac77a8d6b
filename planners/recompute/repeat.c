/* repeat.c -- copies of an operation with its blocks. See rerun.h. */
#include "graphs/passes/copy.h"
#include "planners/recompute/rerun.h"

typedef struct repeater {
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_graph *to;
    mpl_value *map;
    uint32_t *block;
    const char *suffix; /* NULL: the names stay */
} repeater;

/* The name of a copy; text[MPL_REPEAT_NAME] is scratch. */
static const char *name_of(const repeater *self, const char *base, char *text)
{
    return self->suffix == NULL
               ? base
               : mpl_repeat_name(self->g, self->to, base, self->suffix, NULL, text);
}

static mpl_status copy_op(repeater *self, mpl_op op);

static mpl_status copy_block(repeater *self, uint32_t b)
{
    const mpl_graph *g = self->g;
    char text[MPL_REPEAT_NAME];

    MPL_PASS(mpl_graph_open_block(self->ctx, self->to, name_of(self, g->block_name[b], text),
                                  &self->block[b]));
    for (uint32_t i = 0; i < g->block_n_params[b]; i++) {
        mpl_value v = mpl_param(g, b, i);

        MPL_PASS(mpl_graph_add_param(self->ctx, self->to, name_of(self, g->value_name[v], text),
                                     (mpl_type)g->value_type[v], &g->value_shape[v],
                                     &self->map[v]));
    }
    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        if (g->op_block[op] == b)
            MPL_PASS(copy_op(self, op));
    return mpl_copy_close(self->ctx, g, b, self->to, self->map);
}

static mpl_status copy_op(repeater *self, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint32_t n = mpl_op_n_out(g, op);
    const char **name = NULL;
    char(*text)[MPL_REPEAT_NAME] = NULL;

    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        MPL_TRY(copy_block(self, g->op_body[k]));
    MPL_TRY(mpl_new_each(self->ctx, n, name, text));
    for (uint32_t i = 0; i < n; i++)
        if (mpl_op_output(g, op, i) != MPL_NONE)
            name[i] = name_of(self, g->value_name[mpl_op_output(g, op, i)], text[i]);
    MPL_TRY(mpl_copy_op_as(self->ctx, g, op, self->to, self->map, self->block,
                           &(mpl_copy_as){.out_name = name}));
out:
    mpl_free_each(self->ctx, name, text);
    return st;
}

mpl_status mpl_repeat_op(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_graph *to, mpl_value *map,
                         uint32_t *block)
{
    return copy_op(&(repeater){ctx, g, to, map, block, ".again"}, op);
}

mpl_status mpl_copy_unit(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_graph *to, mpl_value *map,
                         uint32_t *block)
{
    return copy_op(&(repeater){ctx, g, to, map, block, NULL}, op);
}
