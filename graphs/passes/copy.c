/* copy.c -- see copy.h. */
#include "graphs/passes/copy.h"

#include "graphs/passes/layouts.h"
#include "graphs/passes/passes.h"

const char *mpl_repeat_name(const mpl_graph *g, const mpl_graph *to, const char *base,
                            const char *suffix, uint32_t *number, char *text)
{
    uint32_t from = 1, *k = number != NULL ? number : &from;

    do {
        if (*k <= 1)
            snprintf(text, MPL_REPEAT_NAME, "%.200s%.16s", base, suffix);
        else
            snprintf(text, MPL_REPEAT_NAME, "%.200s%.16s%u", base, suffix, *k);
        ++*k;
    } while (mpl_graph_find(to, text) != MPL_NONE || mpl_graph_find(g, text) != MPL_NONE ||
             mpl_graph_find_block(to, text) != MPL_NONE ||
             mpl_graph_find_block(g, text) != MPL_NONE);
    return text;
}

mpl_status mpl_copy_attrs(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, uint32_t *n, mpl_attr **attr)
{
    *n = op != MPL_NONE ? g->op_attr_begin[op + 1] - g->op_attr_begin[op] : 0;
    MPL_PASS(mpl_new(ctx, *attr, (size_t)*n + 2));
    for (uint32_t i = 0; i < *n; i++)
        (*attr)[i] = mpl_attr_at(g, g->op_attr_begin[op] + i);
    return MPL_OK;
}

void mpl_add_way(uint8_t way, uint32_t *n, mpl_attr *attr)
{
    static const int64_t number[MPL_N_WAYS] = {0, 1, 2, 3};

    if (way > 0)
        attr[(*n)++] = (mpl_attr){MPL_ATTR_way, 1, number + way, NULL, NULL};
}

mpl_status mpl_copy_op_as(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_graph *to,
                          mpl_value *map, const uint32_t *block, const mpl_copy_as *as)
{
    mpl_status st = MPL_OK;
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    const char *op_name = as->name != NULL ? as->name : g->op_name[op], **name = NULL;
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op], n_attr;
    const mpl_value *from_in = g->op_in + g->op_in_begin[op],
                    *from_out = g->op_out + g->op_out_begin[op];
    mpl_value *in = NULL, *out = NULL;
    uint32_t n_bodies = g->op_body_begin[op + 1] - g->op_body_begin[op], *body = NULL;
    mpl_attr *attr = NULL;

    MPL_TRY(mpl_new(ctx, in, (size_t)n_in + as->n_more));
    MPL_TRY(mpl_new_each(ctx, n_out, out, name));
    MPL_TRY(mpl_new(ctx, body, n_bodies));
    MPL_TRY(mpl_copy_attrs(ctx, g, op, &n_attr, &attr));
    mpl_add_way(as->way, &n_attr, attr);
    for (uint32_t i = 0; i < n_in; i++)
        in[i] = from_in[i] != MPL_NONE ? map[from_in[i]] : MPL_NONE;
    for (uint32_t i = 0; i < as->n_more; i++)
        in[n_in++] = as->more[i];
    for (uint32_t i = 0; i < n_out; i++)
        if (from_out[i] != MPL_NONE)
            name[i] = as->out_name != NULL ? as->out_name[i] : g->value_name[from_out[i]];
    for (uint32_t i = 0; i < n_bodies; i++)
        body[i] = block[g->op_body[g->op_body_begin[op] + i]];
    MPL_TRY(as->folded ? mpl_graph_add_folded(ctx, to, kind, op_name, n_in, in, n_attr, attr, n_out,
                                              name, out)
                       : mpl_graph_add_control(ctx, to, kind, op_name, n_in, in, n_attr, attr,
                                               n_bodies, body, n_out, name, out));
    for (uint32_t i = 0; i < n_out; i++)
        if (from_out[i] != MPL_NONE)
            map[from_out[i]] = out[i];
out:
    mpl_free_each(ctx, in, out, name, attr, body);
    return st;
}

mpl_status mpl_copy_op(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_graph *to, mpl_value *map,
                       const uint32_t *block)
{
    return mpl_copy_op_as(ctx, g, op, to, map, block, &(mpl_copy_as){0});
}

mpl_status mpl_copy_value(mpl_ctx *ctx, mpl_graph *g, mpl_value v, mpl_graph *to, mpl_value *made)
{
    bool bound = g->value_role[v] == MPL_WEIGHT && mpl_is_bound(g, v);

    MPL_PASS(mpl_graph_add_value(ctx, to, g->value_name[v],
                                 bound ? MPL_INPUT : (mpl_role)g->value_role[v],
                                 (mpl_type)g->value_type[v], &g->value_shape[v], made));
    if (bound)
        MPL_PASS(mpl_graph_bind_input(ctx, to, *made, g->value_data[v]));
    else {
        to->value_data[*made] = g->value_data[v], g->value_data[v] = NULL;
        to->value_splat[*made] = g->value_splat[v];
    }
    return MPL_OK;
}

mpl_status mpl_copy_open(mpl_ctx *ctx, const mpl_graph *g, uint32_t b, mpl_graph *to,
                         mpl_value *map, uint32_t *made)
{
    MPL_PASS(mpl_graph_open_block(ctx, to, g->block_name[b], made));
    for (uint32_t i = 0; i < g->block_n_params[b]; i++) {
        mpl_value v = g->block_param[g->block_param_begin[b] + i];

        MPL_PASS(mpl_graph_add_param(ctx, to, g->value_name[v], (mpl_type)g->value_type[v],
                                     &g->value_shape[v], &map[v]));
    }
    return MPL_OK;
}

mpl_status mpl_copy_close(mpl_ctx *ctx, const mpl_graph *g, uint32_t b, mpl_graph *to,
                          const mpl_value *map)
{
    mpl_status st = MPL_OK;
    mpl_value *result = NULL;

    MPL_TRY(mpl_new(ctx, result, g->block_n_results[b]));
    for (uint32_t i = 0; i < g->block_n_results[b]; i++) {
        mpl_value v = g->block_result[g->block_result_begin[b] + i];

        result[i] = v == MPL_NONE ? MPL_NONE : map[v];
    }
    MPL_TRY(mpl_graph_close_block(ctx, to, g->block_n_results[b], result));
out:
    mpl_free(ctx, result);
    return st;
}
