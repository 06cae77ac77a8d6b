/* op_control.c -- shape rules of operators that own blocks, and of the exit test. The executor runs
 * them. */
#include "graphs/ops/ops_priv.h"

static mpl_status check_same(mpl_ctx *ctx, const mpl_graph *g, mpl_value v, mpl_type type,
                             const mpl_shape *shape, const char *what, uint32_t i)
{
    char mine[200], theirs[200];

    if (v == MPL_NONE || g->value_type[v] != type || !mpl_shape_equal(&g->value_shape[v], shape))
        return MPL_REFUSE(ctx, "%s %u is %s %s; it must be %s %s", what, i,
                          v == MPL_NONE ? "left out" : mpl_type_name((mpl_type)g->value_type[v]),
                          v == MPL_NONE ? "" : mpl_shape_text(&g->value_shape[v], mine),
                          mpl_type_name(type), mpl_shape_text(shape, theirs));
    return MPL_OK;
}

/* Checks for one element of a type in the set. */
static mpl_status check_one(mpl_ctx *ctx, mpl_type type, const mpl_shape *shape, unsigned set,
                            const char *what)
{
    char text[200];

    if (!mpl_type_in(type, set) || mpl_count(shape) != 1)
        return MPL_REFUSE(ctx, "%s is %s %s; it must be one element of type %s", what,
                          mpl_type_name(type), mpl_shape_text(shape, text),
                          set == MPL_SET(bool)  ? "bool"
                          : set == MPL_SET(i64) ? "i64"
                                                : "i64, i32 or bool");
    return MPL_OK;
}

mpl_status mpl_shape_exit_unless(mpl_ctx *ctx, const mpl_shape_call *call)
{
    return check_one(ctx, call->in_type[0], call->in_shape[0], MPL_SET(bool), "the test");
}

/* ---- while ---- */

typedef struct loop {
    uint32_t n_carried, n_scans, n_rows;
    const mpl_value *param, *result; /* starting with round and `go` */
} loop;

static mpl_status loop_counts(mpl_ctx *ctx, const mpl_shape_call *call, loop *l)
{
    const mpl_graph *g = call->graph;
    uint32_t b = call->body[0];
    int64_t carried = mpl_attr_int(g, call->op, MPL_ATTR_carried, 0);

    if (call->n_bodies != 1)
        return MPL_REFUSE(ctx, "%u blocks; a while has one, its body", call->n_bodies);
    if (call->n_in < 2 || carried < 0 || carried > (int64_t)call->n_in - 2)
        return MPL_REFUSE(ctx, "carried=%" PRId64 " of %u inputs; the first two are trips and go",
                          carried, call->n_in);
    l->n_carried = (uint32_t)carried;
    l->n_scans = call->n_in - 2 - l->n_carried;
    if (g->block_n_params[b] != 1 + l->n_carried + l->n_scans)
        return MPL_REFUSE(
            ctx, "the body has %u parameters; the round, %u carried and %u slices make %u",
            g->block_n_params[b], l->n_carried, l->n_scans, 1 + l->n_carried + l->n_scans);
    if (g->block_n_results[b] < 1 + l->n_carried)
        return MPL_REFUSE(ctx, "the body has %u results; `go` and %u carried make at least %u",
                          g->block_n_results[b], l->n_carried, 1 + l->n_carried);
    l->n_rows = g->block_n_results[b] - 1 - l->n_carried;
    if (call->n_out != l->n_carried + l->n_rows)
        return MPL_REFUSE(ctx, "%u outputs; %u carried and %u stacked make %u", call->n_out,
                          l->n_carried, l->n_rows, l->n_carried + l->n_rows);
    l->param = g->block_param + g->block_param_begin[b];
    l->result = g->block_result + g->block_result_begin[b];
    return MPL_OK;
}

/* Whether the loop has a test or a limit on its rounds. */
static bool can_end(const mpl_shape_call *call, const loop *l)
{
    const mpl_graph *g = call->graph;
    uint32_t b = call->body[0];

    if (call->in_shape[0] != NULL || l->result[0] != MPL_NONE || l->n_scans > 0 ||
        mpl_attr_int(g, call->op, MPL_ATTR_trips, -1) >= 0)
        return true;
    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        if (g->op_kind[op] == MPL_OP_exit_unless && g->op_block[op] == b)
            return true;
    return false;
}

static mpl_status check_control(mpl_ctx *ctx, const mpl_shape_call *call, const loop *l)
{
    const mpl_graph *g = call->graph;

    if (call->in_shape[0] != NULL)
        MPL_PASS(
            check_one(ctx, call->in_type[0], call->in_shape[0], MPL_SET(i64), "input 0, trips,"));
    if (call->in_shape[1] != NULL)
        MPL_PASS(
            check_one(ctx, call->in_type[1], call->in_shape[1], MPL_SET(bool), "input 1, go,"));
    MPL_PASS(check_same(ctx, g, l->param[0], MPL_TYPE_i64, &(mpl_shape){0}, "parameter", 0));
    if (l->result[0] != MPL_NONE)
        MPL_PASS(check_one(ctx, (mpl_type)g->value_type[l->result[0]],
                           &g->value_shape[l->result[0]], MPL_SET(bool), "result 0, go,"));
    if (!can_end(call, l))
        return MPL_REFUSE(
            ctx, "nothing can end it: no trips, no `go` among the results, no exit test, no scan");
    return MPL_OK;
}

/* Dims of one slice, and the number of slices. */
static mpl_status slice_of(mpl_ctx *ctx, const mpl_shape_call *call, uint32_t in, int64_t *most,
                           mpl_shape *slice)
{
    const mpl_shape *whole = call->in_shape[in];

    if (whole == NULL || whole->rank == 0)
        return MPL_REFUSE(ctx, "input %u is scanned along its first axis, but has none", in);
    if (*most >= 0 && whole->dim[0] != *most)
        return MPL_REFUSE(ctx,
                          "input %u has %" PRId64 " slices where others, or trips=, say %" PRId64,
                          in, whole->dim[0], *most);
    if (mpl_type_bits(call->in_type[in]) < 8)
        return MPL_REFUSE(ctx, "input %u is scanned, but its type %s has less than a byte", in,
                          mpl_type_name(call->in_type[in]));
    *most = whole->dim[0];
    slice->rank = whole->rank - 1;
    for (uint32_t i = 0; i < slice->rank; i++)
        slice->dim[i] = whole->dim[i + 1];
    return MPL_OK;
}

mpl_status mpl_shape_while(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_graph *g = call->graph;
    int64_t most = mpl_attr_int(g, call->op, MPL_ATTR_trips, -1);
    uint32_t n_flags;
    loop l = {0};

    MPL_PASS(loop_counts(ctx, call, &l));
    if (mpl_attr_get(g, call->op, MPL_ATTR_trips, &(mpl_attr){0}) && most < 0)
        return MPL_REFUSE(ctx, "trips=%" PRId64 "; it must be at least 0", most);
    MPL_PASS(check_control(ctx, call, &l));
    for (uint32_t i = 0; i < l.n_carried; i++) {
        const mpl_shape *shape = call->in_shape[2 + i];

        if (shape == NULL)
            return MPL_REFUSE(ctx, "input %u, a carried value's first, is left out", 2 + i);
        MPL_PASS(
            check_same(ctx, g, l.param[1 + i], call->in_type[2 + i], shape, "parameter", 1 + i));
        MPL_PASS(check_same(ctx, g, l.result[1 + i], call->in_type[2 + i], shape, "result", 1 + i));
        call->out_type[i] = call->in_type[2 + i];
        call->out_shape[i] = *shape;
    }
    for (uint32_t i = 0; i < l.n_scans; i++) {
        uint32_t in = 2 + l.n_carried + i;
        mpl_shape slice = {0};

        MPL_PASS(slice_of(ctx, call, in, &most, &slice));
        MPL_PASS(check_same(ctx, g, l.param[1 + l.n_carried + i], call->in_type[in], &slice,
                            "parameter", 1 + l.n_carried + i));
    }
    for (uint32_t i = 0; i < l.n_rows; i++) {
        mpl_value row = l.result[1 + l.n_carried + i];
        mpl_shape *out = &call->out_shape[l.n_carried + i];

        if (row == MPL_NONE || g->value_shape[row].rank == MPL_MAX_RANK || most < 0 ||
            mpl_type_bits((mpl_type)g->value_type[row]) < 8)
            return MPL_REFUSE(ctx, "row %u cannot be stacked: %s", i,
                              row == MPL_NONE ? "it is left out"
                              : mpl_type_bits((mpl_type)g->value_type[row]) < 8
                                  ? "its elements have less than a byte"
                              : most < 0 ? "trips=N must say how many rounds there can be"
                                         : "it has the most dims that a value can have");
        *out = (mpl_shape){.rank = g->value_shape[row].rank + 1, .dim = {most}};
        memcpy(out->dim + 1, g->value_shape[row].dim, (out->rank - 1) * sizeof *out->dim);
        call->out_type[l.n_carried + i] = (mpl_type)g->value_type[row];
    }
    mpl_attr_ints(g, call->op, MPL_ATTR_scan_reverse, &n_flags);
    if (n_flags != 0 && n_flags != l.n_scans + l.n_rows)
        return MPL_REFUSE(ctx, "scan_reverse has %u flags for %u scans and %u rows", n_flags,
                          l.n_scans, l.n_rows);
    return MPL_OK;
}

/* ---- case ---- */

mpl_status mpl_shape_case(mpl_ctx *ctx, const mpl_shape_call *call)
{
    const mpl_graph *g = call->graph;

    if (call->n_in == 0 || call->in_shape[0] == NULL)
        return MPL_REFUSE(ctx, "input 0, the index of the branch, is missing");
    MPL_PASS(check_one(ctx, call->in_type[0], call->in_shape[0], MPL_SET_INDEX | MPL_SET(bool),
                       "the index"));
    if (call->n_in != 1 && call->n_in != 1 + call->n_out)
        return MPL_REFUSE(ctx, "%u bypass inputs for %u outputs; there is one for each, or none",
                          call->n_in - 1, call->n_out);
    for (uint32_t k = 0; k < call->n_bodies; k++) {
        uint32_t b = call->body[k];
        const mpl_value *result = g->block_result + g->block_result_begin[b];

        if (g->block_n_params[b] != 0 || g->block_n_results[b] != call->n_out)
            return MPL_REFUSE(
                ctx, "branch %u has %u parameters and %u results; it must have none and %u", k,
                g->block_n_params[b], g->block_n_results[b], call->n_out);
        for (uint32_t i = 0; i < call->n_out; i++) {
            if (k == 0 && result[i] != MPL_NONE) {
                call->out_type[i] = (mpl_type)g->value_type[result[i]];
                call->out_shape[i] = g->value_shape[result[i]];
            }
            if (k == 0 && result[i] == MPL_NONE)
                return MPL_REFUSE(ctx, "branch 0 leaves result %u out", i);
            MPL_PASS(check_same(ctx, g, result[i], call->out_type[i], &call->out_shape[i],
                                "a branch's result", i));
        }
    }
    for (uint32_t i = 1; i < call->n_in; i++)
        if (call->in_shape[i] == NULL || call->in_type[i] != call->out_type[i - 1] ||
            !mpl_shape_equal(call->in_shape[i], &call->out_shape[i - 1]))
            return MPL_REFUSE(ctx, "bypass input %u has not the type and dims of output %u", i,
                              i - 1);
    return MPL_OK;
}

mpl_status mpl_eval_control(mpl_ctx *ctx, const mpl_op_call *call)
{
    return MPL_REFUSE(ctx, "'%.100s' (%s) is control flow, no computation",
                      call->graph->op_name[call->op],
                      mpl_op_table[call->graph->op_kind[call->op]].name);
}
