/* copies.c -- lists the copies that control flow makes under given places. See places.h. */
#include "graphs/problem/places.h"

typedef struct lister {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_value_map *map;
    mpl_copy *list;
    uint32_t n;
    size_t room;
} lister;

/* A value without a place is never read, so it is not copied. */
static bool lies_somewhere(const lister *self, mpl_value v)
{
    mpl_value root = v != MPL_NONE ? self->map->value_root[v] : MPL_NONE;

    if (root == MPL_NONE || self->g->value_bytes[v] == 0)
        return false;
    return self->map->places->value_place[root] != MPL_NONE ||
           self->map->value_buffer[root] != MPL_NONE ||
           (self->g->value_role[root] != MPL_PARAMETER && !mpl_is_chosen(self->g, root));
}

static mpl_status add(lister *self, mpl_copy copy)
{
    if (!lies_somewhere(self, copy.to))
        return MPL_OK;
    MPL_PASS(mpl_reserve(self->ctx, self->list, self->room, (size_t)self->n + 1));
    self->list[self->n++] = copy;
    return MPL_OK;
}

static mpl_status add_while(lister *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    const mpl_places *places = self->map->places;
    uint32_t body = mpl_op_first_body(g, op), n = mpl_n_carried(g, op);
    const mpl_value *in = g->op_in + g->op_in_begin[op], *out = g->op_out + g->op_out_begin[op];
    const mpl_value *param = g->block_param + g->block_param_begin[body];
    const mpl_value *result = g->block_result + g->block_result_begin[body];

    for (uint32_t i = 2; i < mpl_op_n_in(g, op); i++)
        if (places->in_copied[g->op_in_begin[op] + i])
            MPL_PASS(add(self, (mpl_copy){i < 2 + n ? MPL_COPY_ENTRY : MPL_COPY_SLICE, body, in[i],
                                          param[i - 1], g->value_bytes[param[i - 1]]}));
    for (uint32_t i = 1; i < g->block_n_results[body]; i++)
        if (places->result_copied[g->block_result_begin[body] + i])
            MPL_PASS(
                add(self, (mpl_copy){i <= n ? MPL_COPY_CARRIED : MPL_COPY_ROW, body, result[i],
                                     i <= n ? param[i] : out[i - 1], g->value_bytes[result[i]]}));
    return MPL_OK;
}

static mpl_status add_case(lister *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    const mpl_places *places = self->map->places;
    const mpl_value *out = g->op_out + g->op_out_begin[op];

    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        for (uint32_t i = 0, b = g->op_body[k]; i < g->block_n_results[b]; i++) {
            uint32_t at = g->block_result_begin[b] + i;

            if (places->result_copied[at])
                MPL_PASS(add(self, (mpl_copy){MPL_COPY_BRANCH, b, g->block_result[at], out[i],
                                              out[i] != MPL_NONE ? g->value_bytes[out[i]] : 0}));
        }
    for (uint32_t i = g->op_in_begin[op] + 1; i < g->op_in_begin[op + 1]; i++)
        if (places->in_copied[i] && i - g->op_in_begin[op] <= mpl_op_n_out(g, op))
            MPL_PASS(add(self,
                         (mpl_copy){MPL_COPY_BYPASS, g->op_block[op], g->op_in[i],
                                    out[i - g->op_in_begin[op] - 1], g->value_bytes[g->op_in[i]]}));
    return MPL_OK;
}

mpl_status mpl_copies_of(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                         mpl_copy **list, uint32_t *n)
{
    mpl_status st = MPL_OK;
    lister l = {.ctx = ctx, .g = g, .map = map};

    for (mpl_op op = 0; map->places != NULL && op < g->n_ops; op++)
        if (g->op_kind[op] == MPL_OP_while)
            MPL_TRY(add_while(&l, op));
        else if (g->op_kind[op] == MPL_OP_case)
            MPL_TRY(add_case(&l, op));
    *list = l.list, l.list = NULL;
    *n = l.n;
out:
    mpl_free(ctx, l.list);
    return st;
}

const char *mpl_copy_name(mpl_copy_when when)
{
    static const char *const name[] = {"entry", "slice", "carried", "row", "branch", "bypass"};

    return name[when];
}
