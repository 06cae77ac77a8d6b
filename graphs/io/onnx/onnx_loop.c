/* onnx_loop.c -- loops of nodes: as one `while`, or unrolled.
 *
 * A loop becomes a `while` if every round has the same shapes. Otherwise, or if the user asks for
 * it, it is unrolled: carried values become ordinary ones, and constants are folded. */
#include "graphs/io/onnx/onnx_priv.h"

#define MOST_ROUNDS 100000 /* of an unrolled loop */

/* Starts from the number of blocks: it only grows, so it names each block once. */
mpl_status onnx_block_name(onnx_reader *in, const char *base, const char *suffix, const char **out)
{
    size_t size = strlen(base) + strlen(suffix) + 24;
    char *text;

    MPL_PASS(onnx_new(in, text, size));
    snprintf(text, size, "%s/%s", base, suffix);
    for (unsigned i = in->g->n_blocks; mpl_graph_find_block(in->g, text) != MPL_NONE; i++)
        snprintf(text, size, "%s/%s~%u", base, suffix, i);
    *out = text;
    return MPL_OK;
}

const char *onnx_written_name(const onnx_reader *in, const Onnx__GraphProto *graph)
{
    const char *producer = in->model->producer_name, *name = graph->name;

    return producer != NULL && strcmp(producer, ONNX_PRODUCER) == 0 && name != NULL &&
                   name[0] != '\0' && mpl_graph_find_block(in->g, name) == MPL_NONE
               ? name
               : NULL;
}

bool onnx_is_unrolled(const onnx_node *node)
{
    for (size_t i = 0; i < node->r->n_unroll; i++)
        if (node->r->unroll[i] == node->proto)
            return true;
    return false;
}

mpl_status onnx_unroll(onnx_reader *in, const Onnx__NodeProto *proto)
{
    for (size_t i = 0; i < in->n_unroll; i++)
        if (in->unroll[i] == proto)
            return MPL_OK;
    MPL_PASS(mpl_reserve(in->ctx, in->unroll, in->cap_unroll, in->n_unroll + 1));
    in->unroll[in->n_unroll++] = proto;
    in->again = true;
    return MPL_OK;
}

static mpl_status new_round(const onnx_loop *loop, mpl_value **state, mpl_value **slice,
                            onnx_round *round)
{
    onnx_reader *in = loop->node->r;

    MPL_PASS(onnx_new(in, *state, loop->n_carried));
    MPL_PASS(onnx_new(in, *slice, loop->n_scans));
    MPL_PASS(onnx_new(in, round->next, loop->n_carried));
    MPL_PASS(onnx_new(in, round->row, loop->n_rows));
    round->state = *state;
    round->slice = *slice;
    round->go = MPL_NONE;
    return MPL_OK;
}

static bool is_true(const mpl_graph *g, mpl_value v)
{
    return *(const uint8_t *)g->value_data[v] != 0;
}

/* The names of the results; a name that the body took meanwhile is changed. */
static mpl_status settle_names(const onnx_loop *loop, const char ***out)
{
    const char **name;

    MPL_PASS(onnx_new(loop->node->r, name, loop->n_carried + loop->n_rows));
    for (uint32_t i = 0; i < loop->n_carried + loop->n_rows; i++) {
        name[i] = loop->out_name[i];
        if (name[i] != NULL)
            MPL_PASS(onnx_settle_name(loop->node->r, &name[i]));
    }
    *out = name;
    return MPL_OK;
}

/* ---- as a while ---- */

static mpl_status add_param(const onnx_loop *loop, const char *base, mpl_type type, mpl_shape shape,
                            mpl_value *out)
{
    const char *name;

    MPL_PASS(onnx_fresh_name(loop->node->r, base[0] != '\0' ? base : loop->node->label, "", &name));
    return onnx_blame(loop->node, mpl_graph_add_param(loop->node->r->ctx, loop->node->r->g, name,
                                                      type, &shape, out));
}

static mpl_status open_body(const onnx_loop *loop, uint32_t *block, onnx_round *round)
{
    onnx_reader *in = loop->node->r;
    mpl_value *state, *slice;
    const char *name = loop->block;

    MPL_PASS(new_round(loop, &state, &slice, round));
    MPL_PASS(mpl_reserve(in->ctx, in->loop, in->cap_loops, in->n_loops + 1));
    if (name == NULL)
        MPL_PASS(onnx_block_name(in, loop->node->label, "body", &name));
    MPL_PASS(onnx_blame(loop->node, mpl_graph_open_block(in->ctx, in->g, name, block)));
    in->loop[in->n_loops++] = (onnx_loop_block){*block, loop->node->proto};
    MPL_PASS(add_param(loop, loop->round != NULL ? loop->round : "round", MPL_TYPE_i64,
                       (mpl_shape){.rank = 0}, &round->index));
    for (uint32_t i = 0; i < loop->n_carried; i++)
        MPL_PASS(add_param(loop, loop->param[i], (mpl_type)in->g->value_type[loop->init[i]],
                           in->g->value_shape[loop->init[i]], &state[i]));
    for (uint32_t i = 0; i < loop->n_scans; i++) {
        mpl_shape shape = in->g->value_shape[loop->scan[i]];

        memmove(shape.dim, shape.dim + 1, --shape.rank * sizeof *shape.dim);
        MPL_PASS(add_param(loop, loop->param[loop->n_carried + i],
                           (mpl_type)in->g->value_type[loop->scan[i]], shape, &slice[i]));
    }
    return MPL_OK;
}

/* Checks that carried values keep type and dims, as a `while` needs; else asks to unroll. */
static mpl_status check_carried(const onnx_loop *loop, const onnx_round *round)
{
    const mpl_graph *g = loop->node->r->g;
    char was[200], is[200];

    for (uint32_t i = 0; i < loop->n_carried; i++) {
        mpl_value first = loop->init[i], next = round->next[i];

        if (g->value_type[first] == g->value_type[next] &&
            mpl_shape_equal(&g->value_shape[first], &g->value_shape[next]))
            continue;
        MPL_PASS(onnx_unroll(loop->node->r, loop->node->proto));
        return ONNX_REFUSE(loop->node,
                           "it carries '%.60s' as %s %s into a round, and as %s %s out of it",
                           loop->param[i], mpl_type_name((mpl_type)g->value_type[first]),
                           mpl_shape_text(&g->value_shape[first], was),
                           mpl_type_name((mpl_type)g->value_type[next]),
                           mpl_shape_text(&g->value_shape[next], is));
    }
    return MPL_OK;
}

static mpl_status close_body(const onnx_loop *loop, const onnx_round *round)
{
    mpl_value *result;

    MPL_PASS(onnx_new(loop->node->r, result, 1 + loop->n_carried + loop->n_rows));
    result[0] = round->go;
    for (uint32_t i = 0; i < loop->n_carried; i++)
        result[1 + i] = round->next[i];
    for (uint32_t i = 0; i < loop->n_rows; i++)
        result[1 + loop->n_carried + i] = round->row[i];
    return onnx_blame(loop->node,
                      mpl_graph_close_block(loop->node->r->ctx, loop->node->r->g,
                                            1 + loop->n_carried + loop->n_rows, result));
}

/* The reverse flags as an attribute; omitted if none is set. */
static mpl_status set_reverse(const onnx_loop *loop, mpl_attr *attr, uint32_t *n_attr)
{
    uint32_t count = loop->n_scans + loop->n_rows;
    int64_t *flag, any = 0;

    MPL_PASS(onnx_new(loop->node->r, flag, count));
    for (uint32_t i = 0; i < count && loop->reverse != NULL; i++)
        any |= flag[i] = loop->reverse[i];
    if (any)
        attr[(*n_attr)++] = (mpl_attr){MPL_ATTR_scan_reverse, count, flag, NULL, NULL};
    return MPL_OK;
}

static mpl_status add_while(const onnx_loop *loop, mpl_value *out)
{
    onnx_reader *r = loop->node->r;
    mpl_attr attr[3] = {MPL_INT(carried, loop->n_carried)};
    uint32_t n_attr = 1, n_in = 2 + loop->n_carried + loop->n_scans, block;
    int64_t most = loop->most;
    mpl_value *in;
    const char **name;
    onnx_round round;

    MPL_PASS(open_body(loop, &block, &round));
    MPL_PASS(loop->body(loop, &round));
    MPL_PASS(check_carried(loop, &round));
    if (round.go != MPL_NONE && onnx_is_constant(loop->node, round.go)) {
        most = most > 1 && !is_true(r->g, round.go) ? 1 : most;
        round.go = is_true(r->g, round.go) ? MPL_NONE : round.go;
    }
    MPL_PASS(close_body(loop, &round));
    MPL_PASS(onnx_new(r, in, n_in));
    in[0] = loop->trips;
    in[1] = loop->go;
    for (uint32_t i = 0; i < loop->n_carried; i++)
        in[2 + i] = loop->init[i];
    for (uint32_t i = 0; i < loop->n_scans; i++)
        in[2 + loop->n_carried + i] = loop->scan[i];
    if (most >= 0 && loop->n_scans == 0)
        attr[n_attr++] = (mpl_attr){MPL_ATTR_trips, 1, &most, NULL, NULL};
    MPL_PASS(set_reverse(loop, attr, &n_attr));
    MPL_PASS(settle_names(loop, &name));
    return onnx_blame(loop->node,
                      mpl_graph_add_control(r->ctx, r->g, MPL_OP_while, loop->node->label, n_in, in,
                                            n_attr, attr, 1, &block, loop->n_carried + loop->n_rows,
                                            name, out));
}

/* ---- unrolled ---- */

/* The slice of scan[k] with the dims that the body has. */
static mpl_status take_slice(const onnx_loop *loop, uint32_t scan, int64_t k, mpl_value *out)
{
    const mpl_attr attr[] = {MPL_INTS(starts, 1, &k), MPL_INTS(ends, 1, ((const int64_t[]){k + 1})),
                             MPL_INTS(axes, 1, (const int64_t[]){0})};

    MPL_PASS(onnx_step(loop->node, MPL_OP_slice, "slice", 1, &loop->scan[scan], 3, attr, out));
    return onnx_step(loop->node, MPL_OP_squeeze, "slice", 1, out, 1, &attr[2], out);
}

static mpl_status make_round(const onnx_loop *loop, int64_t k, const onnx_round *before,
                             onnx_round *round)
{
    onnx_reader *in = loop->node->r;
    mpl_value *state, *slice;
    const char *name;

    MPL_PASS(new_round(loop, &state, &slice, round));
    MPL_PASS(onnx_fresh_name(in, loop->node->label, "round", &name));
    MPL_PASS(mpl_graph_add_const(in->ctx, in->g, name, MPL_TYPE_i64, &(mpl_shape){.rank = 0}, &k,
                                 false, &round->index));
    for (uint32_t i = 0; i < loop->n_carried; i++)
        state[i] = before != NULL ? before->next[i] : loop->init[i];
    for (uint32_t i = 0; i < loop->n_scans; i++)
        MPL_PASS(take_slice(loop, i,
                            loop->reverse != NULL && loop->reverse[i] ? loop->most - 1 - k : k,
                            &slice[i]));
    MPL_PASS(loop->body(loop, round));
    if (round->go != MPL_NONE)
        MPL_PASS(onnx_need_constant(loop->node, round->go,
                                    "condition, for rounds of different shapes,"));
    return MPL_OK;
}

/* Stacks row i of all rounds along a new axis 0. */
static mpl_status stack_row(const onnx_loop *loop, const onnx_round *round, int64_t n_rounds,
                            uint32_t i)
{
    bool reverse = loop->reverse != NULL && loop->reverse[loop->n_scans + i];
    mpl_value *part;

    MPL_PASS(onnx_new(loop->node->r, part, (size_t)n_rounds));
    for (int64_t k = 0; k < n_rounds; k++)
        MPL_PASS(onnx_step(loop->node, MPL_OP_unsqueeze, "row", 1,
                           &round[reverse ? n_rounds - 1 - k : k].row[i], 1,
                           &MPL_INTS(axes, 1, (const int64_t[]){0}), &part[k]));
    return onnx_step(loop->node, MPL_OP_concat, "rows", (uint32_t)n_rounds, part, 1,
                     &MPL_INT(axis, 0), &round[0].row[i]);
}

/* Gives the results the requested names. */
static mpl_status name_results(const onnx_loop *loop, const onnx_round *last, const mpl_value *row,
                               mpl_value *out)
{
    onnx_reader *in = loop->node->r;
    const char **name;

    MPL_PASS(settle_names(loop, &name));
    for (uint32_t i = 0; i < loop->n_carried + loop->n_rows; i++) {
        mpl_value v = i < loop->n_carried ? last->next[i] : row[i - loop->n_carried];

        out[i] = MPL_NONE;
        if (name[i] != NULL)
            MPL_PASS(onnx_blame(loop->node, mpl_graph_add_folded(in->ctx, in->g, MPL_OP_identity,
                                                                 loop->node->label, 1, &v, 0, NULL,
                                                                 1, &name[i], &out[i])));
    }
    return MPL_OK;
}

static mpl_status add_rounds(const onnx_loop *loop, mpl_value *out)
{
    onnx_reader *in = loop->node->r;
    onnx_round *round;
    int64_t n = 0;

    if (loop->trips != MPL_NONE)
        return ONNX_REFUSE(loop->node,
                           "its rounds have different shapes, and their number is not known");
    if (loop->most > MOST_ROUNDS)
        return ONNX_REFUSE(
            loop->node, "its %" PRId64 " rounds would be read one by one; at most %d are supported",
            loop->most, MOST_ROUNDS);
    if (loop->go != MPL_NONE)
        MPL_PASS(
            onnx_need_constant(loop->node, loop->go, "condition, for rounds of different shapes,"));
    MPL_PASS(onnx_new(in, round, (size_t)loop->most));
    do
        MPL_PASS(make_round(loop, n, n > 0 ? &round[n - 1] : NULL, &round[n]));
    while ((round[n].go == MPL_NONE || is_true(in->g, round[n].go)) && ++n < loop->most);
    n += n < loop->most; /* the round that ends the loop counts */
    for (uint32_t i = 0; i < loop->n_rows; i++)
        MPL_PASS(stack_row(loop, round, n, i));
    return name_results(loop, &round[n - 1], round[0].row, out);
}

mpl_status onnx_add_loop(const onnx_loop *loop, mpl_value *out)
{
    return loop->unroll && loop->most > 0 ? add_rounds(loop, out) : add_while(loop, out);
}
