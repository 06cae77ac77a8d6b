/* opaque.c -- operations of which only the memory is known: what a reader found in a file and no
 * backend computes. See graphs/ir/ops.def. */
#include "graphs/ops/ops_priv.h"

/* Copies the next of the words that blanks part; false: there is none, or it is no type. */
static bool next_type(const char **at, mpl_type *type)
{
    char name[32];
    size_t n = strcspn(*at += strspn(*at, " "), " ");

    if (n == 0 || n >= sizeof name)
        return false;
    memcpy(name, *at, n);
    name[n] = '\0';
    *at += n;
    return mpl_type_find(name, type);
}

/* Takes a rank and so many dims from the numbers. */
static bool next_shape(const int64_t **at, const int64_t *end, mpl_shape *shape)
{
    uint64_t count;

    if (*at == end || **at < 0 || **at > MPL_MAX_RANK || end - *at - 1 < **at)
        return false;
    *shape = (mpl_shape){.rank = (uint32_t) * (*at)++};
    for (uint32_t i = 0; i < shape->rank; i++)
        shape->dim[i] = *(*at)++;
    return mpl_shape_count(shape, &count);
}

/* Whether output 0 has the bytes of input 0, as far as that can be told. */
static bool has_bytes_of_input(const mpl_shape_call *call)
{
    uint64_t in, out;

    return call->in_shape[0] != NULL && mpl_shape_count(call->in_shape[0], &in) &&
           mpl_shape_count(&call->out_shape[0], &out) && mpl_type_size(call->in_type[0], in, &in) &&
           mpl_type_size(call->out_type[0], out, &out) && in == out;
}

mpl_status mpl_shape_opaque(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_graph *g = call->graph;
    const char *types = mpl_attr_text(g, call->op, MPL_ATTR_to, "");
    uint32_t n, n_over;
    const int64_t *dims = mpl_attr_ints(g, call->op, MPL_ATTR_shape, &n),
                  *end = dims != NULL ? dims + n : NULL;
    const int64_t *over = mpl_attr_ints(g, call->op, MPL_ATTR_over, &n_over);
    int64_t reads = mpl_attr_int(g, call->op, MPL_ATTR_reads, 0);

    for (uint32_t i = 0; i < call->n_out; i++)
        if (!next_type(&types, &call->out_type[i]) || !next_shape(&dims, end, &call->out_shape[i]))
            return MPL_REFUSE(ctx,
                              "output %u: `to` must name a type for each output, and `shape` hold "
                              "rank and dims of each",
                              i);
    if (dims != end || types[strspn(types, " ")] != '\0')
        return MPL_REFUSE(ctx, "`to` or `shape` say more than the types and dims of %u outputs",
                          call->n_out);
    for (uint32_t i = 0; i < n_over; i++)
        if (over[i] < 0 || over[i] >= call->n_in)
            return MPL_REFUSE(ctx, "over=%" PRId64 " of %u inputs", over[i], call->n_in);
    if (reads < 0 || reads > call->n_in)
        return MPL_REFUSE(ctx, "reads=%" PRId64 " of %u inputs", reads, call->n_in);
    if (g->op_kind[call->op] != MPL_OP_opaque && !has_bytes_of_input(call))
        return MPL_REFUSE(ctx, "output 0 must have the bytes of input 0, in which it lies");
    return MPL_OK;
}

mpl_status mpl_eval_opaque(mpl_ctx *ctx, const mpl_op_call *call)
{
    const char *name = mpl_attr_text(call->graph, call->op, MPL_ATTR_opcode, "");

    return MPL_ERROR(ctx, MPL_EUNAVAIL,
                     "operation '%.100s' (%.60s) is opaque: it can be planned, no backend computes "
                     "it",
                     call->graph->op_name[call->op],
                     *name != '\0' ? name : mpl_op_table[call->graph->op_kind[call->op]].name);
}

mpl_status mpl_graph_check_computed(mpl_ctx *ctx, const mpl_graph *g)
{
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (mpl_is_opaque(g, op))
            return mpl_eval_opaque(ctx, &(mpl_op_call){.graph = g, .op = op});
    return MPL_OK;
}
