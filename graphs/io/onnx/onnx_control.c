/* onnx_control.c -- nodes that own graphs: If becomes `case`, Loop and Scan become `while`.
 *
 * The branch of a known condition is read in place of the If. If a Loop stacks rows, its trip count
 * decides a shape and must be known; rows of rounds that do not run are zero (an open dimension is
 * planned at its maximum). Other trip counts and conditions stay values. */
#include "graphs/io/onnx/onnx_priv.h"

static mpl_status graph_attr(onnx_node *node, const char *name, const Onnx__GraphProto **out)
{
    const Onnx__AttributeProto *a = onnx_attr(node, name);

    if (a == NULL || a->g == NULL)
        return ONNX_REFUSE(node, "attribute '%s' is missing, or is no graph", name);
    *out = a->g;
    return MPL_OK;
}

/* An operation that makes an output of the node. */
static mpl_status make_output(onnx_node *node, mpl_op_kind kind, mpl_value v, uint32_t n_attr,
                              const mpl_attr *attr, uint32_t output)
{
    MPL_PASS(onnx_settle_name(node->r, &node->out_name[output]));
    return onnx_blame(node, mpl_graph_add_folded(node->r->ctx, node->r->g, kind, node->label, 1, &v,
                                                 n_attr, attr, 1, &node->out_name[output],
                                                 &node->out[output]));
}

/* The single number or truth value of a constant. */
static mpl_status one_constant(onnx_node *node, mpl_value v, const char *what, int64_t *out)
{
    uint32_t count;
    int64_t *ints;

    MPL_PASS(onnx_ints(node, v, what, &count, &ints));
    if (count != 1)
        return ONNX_REFUSE(node, "its %s has %u elements; one is needed", what, count);
    *out = ints[0];
    return MPL_OK;
}

/* ---- If ---- */

static mpl_status read_branch(onnx_node *node, const Onnx__GraphProto *body, bool *used,
                              mpl_value *out)
{
    if (body->n_output < node->n_out)
        return ONNX_REFUSE(node, "a branch has %zu outputs; %u are needed", body->n_output,
                           node->n_out);
    for (uint32_t i = 0; i < node->n_out; i++)
        used[i] = node->out_name[i] != NULL;
    return onnx_read_body(node, body, 0, NULL, (uint32_t)body->n_output, used, out);
}

/* Reads a branch as a block. result[] receives its used outputs. */
static mpl_status add_branch(onnx_node *node, const Onnx__GraphProto *body, const char *suffix,
                             uint32_t *block, mpl_value *result, uint32_t *n_results)
{
    onnx_reader *in = node->r;
    const char *name = onnx_written_name(in, body);
    bool *used;
    mpl_value *all;

    MPL_PASS(onnx_new(in, used, body->n_output + node->n_out));
    MPL_PASS(onnx_new(in, all, body->n_output));
    if (name == NULL)
        MPL_PASS(onnx_block_name(in, node->label, suffix, &name));
    MPL_PASS(onnx_blame(node, mpl_graph_open_block(in->ctx, in->g, name, block)));
    MPL_PASS(read_branch(node, body, used, all));
    *n_results = 0;
    for (uint32_t i = 0; i < node->n_out; i++)
        if (used[i])
            result[(*n_results)++] = all[i];
    return onnx_blame(node, mpl_graph_close_block(in->ctx, in->g, *n_results, result));
}

/* Reads the branch of a known condition in place. */
static mpl_status inline_branch(onnx_node *node, const Onnx__GraphProto *body)
{
    bool *used;
    mpl_value *all;

    MPL_PASS(onnx_new(node->r, used, body->n_output + node->n_out));
    MPL_PASS(onnx_new(node->r, all, body->n_output));
    MPL_PASS(read_branch(node, body, used, all));
    for (uint32_t i = 0; i < node->n_out; i++)
        if (used[i])
            MPL_PASS(make_output(node, MPL_OP_identity, all[i], 0, NULL, i));
    return MPL_OK;
}

/* The branch beside an empty one: it runs, too, where its result is not taken. */
static mpl_status read_unless_empty(onnx_node *node, const Onnx__GraphProto *body,
                                    mpl_value condition, bool empty)
{
    bool *used;
    mpl_value *all;

    MPL_PASS(onnx_new(node->r, used, body->n_output + node->n_out));
    MPL_PASS(onnx_new(node->r, all, body->n_output));
    MPL_PASS(read_branch(node, body, used, all));
    for (uint32_t i = 0; i < node->n_out; i++)
        if (used[i]) {
            MPL_PASS(make_output(node, MPL_OP_identity, all[i], 0, NULL, i));
            MPL_PASS(onnx_empty_where(node, condition, empty, i, all[i]));
        }
    return MPL_OK;
}

/* Branch 0 is `else`: the index is the condition. */
static mpl_status add_case(onnx_node *node, const Onnx__GraphProto *const branch[2],
                           mpl_value condition)
{
    static const char *const suffix[] = {"else", "then"};
    onnx_reader *in = node->r;
    mpl_value *result[2], *made;
    const char **name;
    uint32_t block[2], n_results = 0;

    for (int i = 0; i < 2; i++) {
        MPL_PASS(onnx_new(in, result[i], node->n_out));
        MPL_PASS(add_branch(node, branch[i], suffix[i], &block[i], result[i], &n_results));
    }
    for (uint32_t i = 0; i < n_results; i++)
        if (!mpl_same_form(in->g, result[0][i], result[1][i]))
            MPL_PASS(onnx_need_constant(node, condition,
                                        "condition, which decides the shape of its outputs,"));
    MPL_PASS(onnx_new(in, made, n_results));
    MPL_PASS(onnx_new(in, name, n_results + 1));
    n_results = 0;
    for (uint32_t i = 0; i < node->n_out; i++)
        if ((name[n_results] = node->out_name[i]) != NULL)
            MPL_PASS(onnx_settle_name(in, &name[n_results++]));
    MPL_PASS(onnx_blame(node, mpl_graph_add_control(in->ctx, in->g, MPL_OP_case, node->label, 1,
                                                    &condition, 0, NULL, 2, block, n_results, name,
                                                    made)));
    for (uint32_t i = node->n_out; i-- > 0;)
        if (node->out_name[i] != NULL)
            node->out[i] = made[--n_results];
    return MPL_OK;
}

mpl_status onnx_lower_if(onnx_node *node)
{
    const Onnx__GraphProto *branch[2];
    mpl_value condition = onnx_in(node, 0);
    int64_t which = 0;

    if (condition == MPL_NONE)
        return ONNX_REFUSE(node, "its condition is missing");
    MPL_PASS(graph_attr(node, "else_branch", &branch[0]));
    MPL_PASS(graph_attr(node, "then_branch", &branch[1]));
    for (int i = 0; i < 2 && !onnx_is_constant(node, condition); i++)
        if (onnx_is_empty(branch[i]) && !onnx_is_empty(branch[1 - i]))
            return read_unless_empty(node, branch[1 - i], condition, i == 1);
    if (!onnx_is_constant(node, condition))
        return add_case(node, branch, condition);
    MPL_PASS(one_constant(node, condition, "condition", &which));
    return inline_branch(node, branch[which != 0]);
}

/* ---- bodies ---- */

/* The graph of one round. */
typedef struct body {
    const Onnx__GraphProto *proto;
    bool is_loop; /* inputs start with round and condition, outputs with condition */
    uint32_t n_rows;
    const bool *wanted; /* [n_rows] */
} body;

/* The round's number as the body declares it: a scalar, or a list of one. */
static mpl_status shape_index(onnx_node *node, const Onnx__ValueInfoProto *declared,
                              mpl_value *index)
{
    const Onnx__TypeProto *type = declared->type;

    if (type != NULL && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
        type->tensor_type->shape != NULL && type->tensor_type->shape->n_dim == 1)
        MPL_PASS(onnx_step(node, MPL_OP_reshape, "round", 1, index, 1,
                           &MPL_INTS(shape, 1, (const int64_t[]){1}), index));
    return MPL_OK;
}

/* The condition inside a round is true, since the round has begun. */
static mpl_status true_value(onnx_node *node, mpl_value *out)
{
    const char *name;

    MPL_PASS(onnx_fresh_name(node->r, node->label, "true", &name));
    return mpl_graph_add_const(node->r->ctx, node->r->g, name, MPL_TYPE_bool,
                               &(mpl_shape){.rank = 0}, &(uint8_t){1}, false, out);
}

static mpl_status read_round(const onnx_loop *loop, onnx_round *round)
{
    const body *b = loop->arg;
    uint32_t first = b->is_loop ? 2 : 0, n_in = first + loop->n_carried + loop->n_scans;
    uint32_t go = b->is_loop ? 1 : 0, n_out = go + loop->n_carried + b->n_rows;
    mpl_value *in, *out, *row = round->row;
    bool *wanted;

    MPL_PASS(onnx_new(loop->node->r, in, n_in));
    MPL_PASS(onnx_new(loop->node->r, out, n_out));
    MPL_PASS(onnx_new(loop->node->r, wanted, n_out));
    if (b->is_loop) {
        in[0] = round->index;
        MPL_PASS(shape_index(loop->node, b->proto->input[0], &in[0]));
        MPL_PASS(true_value(loop->node, &in[1]));
    }
    memcpy(in + first, round->state, loop->n_carried * sizeof *in);
    memcpy(in + first + loop->n_carried, round->slice, loop->n_scans * sizeof *in);
    for (uint32_t i = 0; i < n_out; i++)
        wanted[i] = i < go + loop->n_carried || b->wanted[i - go - loop->n_carried];
    MPL_PASS(onnx_read_body(loop->node, b->proto, n_in, in, n_out, wanted, out));
    if (b->is_loop)
        round->go = out[0];
    memcpy(round->next, out + go, loop->n_carried * sizeof *out);
    for (uint32_t i = 0; i < b->n_rows; i++)
        if (b->wanted[i])
            *row++ = out[go + loop->n_carried + i];
    return MPL_OK;
}

/* Reads the body, counts its rows, names its parameters. Needs n_carried and n_scans of loop. */
static mpl_status take_body(onnx_node *node, bool is_loop, onnx_loop *loop, body *b)
{
    uint32_t first = is_loop ? 2 : 0, least_out = loop->n_carried + is_loop;
    const char **param;

    MPL_PASS(graph_attr(node, "body", &b->proto));
    b->is_loop = is_loop;
    if (b->proto->n_input != first + loop->n_carried + loop->n_scans ||
        b->proto->n_output < least_out || b->proto->n_output > UINT16_MAX)
        return ONNX_REFUSE(
            node, "its body has %zu inputs and %zu outputs; it must have %u, and at least %u",
            b->proto->n_input, b->proto->n_output, first + loop->n_carried + loop->n_scans,
            least_out);
    b->n_rows = (uint32_t)b->proto->n_output - least_out;
    if (node->n_out > loop->n_carried + b->n_rows)
        return ONNX_REFUSE(node, "it has %u outputs; its body makes %u", node->n_out,
                           loop->n_carried + b->n_rows);
    MPL_PASS(onnx_new(node->r, param, loop->n_carried + loop->n_scans));
    for (uint32_t i = 0; i < loop->n_carried + loop->n_scans; i++)
        param[i] = onnx_text(b->proto->input[first + i]->name);
    loop->param = param;
    loop->block = onnx_written_name(node->r, b->proto);
    if (is_loop && loop->block != NULL)
        loop->round = b->proto->input[0]->name;
    loop->body = read_round;
    loop->arg = b;
    return MPL_OK;
}

/* Finds the used rows and names the loop's results; if renamed[i], row i gets a new name. */
static mpl_status take_outputs(onnx_node *node, onnx_loop *loop, body *b, const bool *renamed)
{
    const char **name;
    bool *wanted;

    MPL_PASS(onnx_new(node->r, name, loop->n_carried + b->n_rows));
    MPL_PASS(onnx_new(node->r, wanted, b->n_rows));
    for (uint32_t i = 0; i < loop->n_carried && i < node->n_out; i++)
        name[i] = node->out_name[i];
    for (uint32_t i = 0; i < b->n_rows; i++) {
        uint32_t at = loop->n_carried + i;

        wanted[i] = at < node->n_out && node->out_name[at] != NULL;
        if (!wanted[i])
            continue;
        name[loop->n_carried + loop->n_rows] = node->out_name[at];
        if (renamed != NULL && renamed[i])
            MPL_PASS(onnx_fresh_name(node->r, node->out_name[at], "rows",
                                     &name[loop->n_carried + loop->n_rows]));
        loop->n_rows++;
    }
    b->wanted = wanted;
    loop->out_name = name;
    return MPL_OK;
}

/* Makes the loop's values the node's outputs. */
static void hand_out(onnx_node *node, const onnx_loop *loop, const body *b, const mpl_value *made)
{
    const mpl_value *row = made + loop->n_carried;

    for (uint32_t i = 0; i < node->n_out; i++)
        node->out[i] = i < loop->n_carried              ? made[i]
                       : b->wanted[i - loop->n_carried] ? *row++
                                                        : MPL_NONE;
}

/* ---- Loop ---- */

/* The trip count: known, a value, or unlimited. */
static mpl_status take_trips(onnx_node *node, onnx_loop *loop)
{
    loop->trips = onnx_in(node, 0);
    if (loop->trips == MPL_NONE && loop->n_rows > 0)
        return ONNX_REFUSE(node, "it stacks rows without a limit: it has no trip count");
    if (loop->trips == MPL_NONE && loop->unroll)
        return ONNX_REFUSE(node, "its rounds have different shapes, and it has no trip count");
    if (loop->trips == MPL_NONE ||
        (loop->n_rows == 0 && !loop->unroll && !onnx_is_constant(node, loop->trips)))
        return MPL_OK;
    MPL_PASS(one_constant(node, loop->trips, "trip count", &loop->most));
    loop->most = loop->most < 0 ? 0 : loop->most;
    loop->trips = MPL_NONE;
    return MPL_OK;
}

/* The initial condition. With rows it decides their number, so it is bound if the user gives it. */
static mpl_status take_condition(onnx_node *node, onnx_loop *loop)
{
    int64_t begins = 0;
    bool can;

    loop->go = onnx_in(node, 1);
    if (loop->go == MPL_NONE)
        return MPL_OK;
    if (loop->n_rows > 0 && !onnx_is_constant(node, loop->go)) {
        MPL_PASS(onnx_can_be_constant(node, loop->go, &can));
        if (can)
            MPL_PASS(onnx_need_constant(node, loop->go, "condition"));
    }
    if (!onnx_is_constant(node, loop->go))
        return MPL_OK;
    MPL_PASS(one_constant(node, loop->go, "condition", &begins));
    loop->go = MPL_NONE;
    if (!begins) {
        loop->trips = MPL_NONE;
        loop->most = 0;
    }
    return MPL_OK;
}

static mpl_status check_present(onnx_node *node, uint32_t first)
{
    for (uint32_t i = first; i < node->n_in; i++)
        if (node->in[i] == MPL_NONE)
            return ONNX_REFUSE(node, "input %u is missing", i);
    return MPL_OK;
}

mpl_status onnx_lower_loop(onnx_node *node)
{
    onnx_loop l = {.node = node, .most = -1, .unroll = onnx_is_unrolled(node)};
    body b = {0};
    mpl_value *made;

    MPL_PASS(check_present(node, 2));
    l.n_carried = node->n_in > 2 ? node->n_in - 2 : 0;
    l.init = node->n_in > 2 ? node->in + 2 : NULL;
    MPL_PASS(take_body(node, true, &l, &b));
    MPL_PASS(take_outputs(node, &l, &b, NULL));
    MPL_PASS(take_trips(node, &l));
    MPL_PASS(take_condition(node, &l));
    MPL_PASS(onnx_new(node->r, made, l.n_carried + l.n_rows));
    MPL_PASS(onnx_add_loop(&l, made));
    hand_out(node, &l, &b, made);
    return MPL_OK;
}

/* ---- Scan ---- */

/* Number i of an attribute with `count` numbers; 0: the attribute is absent. */
static mpl_status list_attr(onnx_node *node, const char *name, uint32_t count, const int64_t **out)
{
    const Onnx__AttributeProto *a = onnx_attr(node, name);
    int64_t *zero;

    if (a != NULL && a->n_ints != count)
        return ONNX_REFUSE(node, "%s has %zu numbers; %u are needed", name, a->n_ints, count);
    MPL_PASS(onnx_new(node->r, zero, count));
    *out = a != NULL ? a->ints : zero;
    return MPL_OK;
}

static mpl_status flag_attr(onnx_node *node, const char *name, uint32_t count, bool *out)
{
    const int64_t *ints;

    MPL_PASS(list_attr(node, name, count, &ints));
    for (uint32_t i = 0; i < count; i++) {
        if (ints[i] != 0 && ints[i] != 1)
            return ONNX_REFUSE(node, "%s[%u] = %" PRId64 "; 0 is forward, 1 backward", name, i,
                               ints[i]);
        out[i] = ints[i] != 0;
    }
    return MPL_OK;
}

/* Moves axis `axis` of x to the front. */
static mpl_status axis_to_front(onnx_node *node, mpl_value x, uint32_t axis, mpl_value *out)
{
    int64_t perm[MPL_MAX_RANK] = {axis};
    uint32_t rank = node->r->g->value_shape[x].rank;

    for (uint32_t i = 1; i < rank; i++)
        perm[i] = i <= axis ? i - 1 : i;
    *out = x;
    if (axis != 0)
        MPL_PASS(onnx_step(node, MPL_OP_transpose, "scanned", 1, &x, 1, &MPL_INTS(perm, rank, perm),
                           out));
    return MPL_OK;
}

/* Moves axis 0 of x to `axis` of the node's output. */
static mpl_status front_to_axis(onnx_node *node, mpl_value x, uint32_t axis, uint32_t output)
{
    int64_t perm[MPL_MAX_RANK] = {0};
    uint32_t rank = node->r->g->value_shape[x].rank;

    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i < axis ? i + 1 : i == axis ? 0 : i;
    return make_output(node, MPL_OP_transpose, x, 1, &MPL_INTS(perm, rank, perm), output);
}

static mpl_status count_scans(onnx_node *node, uint32_t first, onnx_loop *loop)
{
    int64_t n_scans = onnx_attr_int(node, "num_scan_inputs", 0);

    if (node->n_in < first || n_scans < 1 || n_scans > (int64_t)(node->n_in - first))
        return ONNX_REFUSE(node, "num_scan_inputs is %" PRId64 " of %u inputs", n_scans,
                           node->n_in);
    loop->n_scans = (uint32_t)n_scans;
    loop->n_carried = node->n_in - first - loop->n_scans;
    return check_present(node, first);
}

static mpl_status take_scans(onnx_node *node, onnx_loop *loop)
{
    const int64_t *axis;
    mpl_value *scan;

    MPL_PASS(list_attr(node, "scan_input_axes", loop->n_scans, &axis));
    MPL_PASS(onnx_new(node->r, scan, loop->n_scans));
    for (uint32_t i = 0; i < loop->n_scans; i++) {
        mpl_value x = node->in[loop->n_carried + i];
        uint32_t at = 0;

        MPL_PASS(onnx_axis(node, axis[i], node->r->g->value_shape[x].rank, &at));
        MPL_PASS(axis_to_front(node, x, at, &scan[i]));
        loop->most = node->r->g->value_shape[scan[i]].dim[0];
        if (loop->most != node->r->g->value_shape[scan[0]].dim[0])
            return ONNX_REFUSE(node, "its scan inputs have %" PRId64 " and %" PRId64 " slices",
                               node->r->g->value_shape[scan[0]].dim[0], loop->most);
    }
    loop->scan = scan;
    return MPL_OK;
}

/* The direction of each scan, then of each used row. */
static mpl_status take_directions(onnx_node *node, onnx_loop *loop, const body *b,
                                  const char *of_scans, const char *of_rows)
{
    bool *all, *reverse;
    uint32_t at = loop->n_scans;

    MPL_PASS(onnx_new(node->r, all, b->n_rows));
    MPL_PASS(onnx_new(node->r, reverse, loop->n_scans + b->n_rows));
    MPL_PASS(flag_attr(node, of_scans, loop->n_scans, reverse));
    if (of_rows != NULL)
        MPL_PASS(flag_attr(node, of_rows, b->n_rows, all));
    for (uint32_t i = 0; i < b->n_rows; i++)
        if (b->wanted[i])
            reverse[at++] = all[i];
    loop->reverse = reverse;
    return MPL_OK;
}

mpl_status onnx_lower_scan(onnx_node *node)
{
    onnx_loop l = {
        .node = node, .trips = MPL_NONE, .go = MPL_NONE, .unroll = onnx_is_unrolled(node)};
    body b = {0};
    const int64_t *axis;
    mpl_value *made;
    bool *moved;

    MPL_PASS(count_scans(node, 0, &l));
    l.init = node->in;
    MPL_PASS(take_scans(node, &l));
    MPL_PASS(take_body(node, false, &l, &b));
    MPL_PASS(list_attr(node, "scan_output_axes", b.n_rows, &axis));
    MPL_PASS(onnx_new(node->r, moved, b.n_rows));
    for (uint32_t i = 0; i < b.n_rows; i++)
        moved[i] = axis[i] != 0;
    MPL_PASS(take_outputs(node, &l, &b, moved));
    MPL_PASS(take_directions(node, &l, &b, "scan_input_directions", "scan_output_directions"));
    MPL_PASS(onnx_new(node->r, made, l.n_carried + l.n_rows));
    MPL_PASS(onnx_add_loop(&l, made));
    hand_out(node, &l, &b, made);
    for (uint32_t i = 0; i < b.n_rows; i++) {
        uint32_t output = l.n_carried + i, at = 0;

        if (!b.wanted[i] || !moved[i])
            continue;
        MPL_PASS(onnx_axis(node, axis[i], node->r->g->value_shape[node->out[output]].rank, &at));
        MPL_PASS(front_to_axis(node, node->out[output], at, output));
    }
    return MPL_OK;
}

/* ---- Scan-8: batches outside, sequences inside ---- */

/* The loop over one sequence, nested in the loop over the batch. */
typedef struct sequence {
    onnx_loop loop; /* without operands */
    bool has_lens;
} sequence;

/* Reads one sequence. Slices of the batch: length, states, scans; rows: states, rows. */
static mpl_status read_sequence(const onnx_loop *batch, onnx_round *round)
{
    const sequence *s = batch->arg;
    onnx_loop l = s->loop;
    const char **name;
    char suffix[24];

    l.trips = s->has_lens ? round->slice[0] : MPL_NONE;
    l.init = round->slice + s->has_lens;
    l.scan = l.init + l.n_carried;
    MPL_PASS(onnx_new(l.node->r, name, l.n_carried + l.n_rows));
    for (uint32_t i = 0; i < l.n_carried + l.n_rows; i++) {
        snprintf(suffix, sizeof suffix, "sequence%u", i);
        MPL_PASS(onnx_fresh_name(l.node->r, l.node->label, suffix, &name[i]));
    }
    l.out_name = name;
    return onnx_add_loop(&l, round->row);
}

/* Checks that operands start with the last scan's batch and scans go on with its sequence. */
static mpl_status check_batch(onnx_node *node, const onnx_loop *loop, int64_t *n_steps)
{
    const mpl_graph *g = node->r->g;
    const mpl_shape *last = &g->value_shape[node->in[node->n_in - 1]];

    *n_steps = last->dim[1];
    for (uint32_t i = node->in[0] == MPL_NONE; i < node->n_in; i++) {
        const mpl_shape *shape = &g->value_shape[node->in[i]];
        bool scans = i > loop->n_carried;

        if (last->rank < 2 || shape->rank < 1U + scans || shape->dim[0] != last->dim[0] ||
            (scans && shape->dim[1] != last->dim[1]))
            return ONNX_REFUSE(
                node, "the dims of input %u do not begin with those of the last scan, batch%s", i,
                scans ? " and sequence" : "");
    }
    return MPL_OK;
}

/* Names the outer loop's parameters as the body names its own. */
static mpl_status name_params(onnx_node *node, const onnx_loop *loop, onnx_loop *batch)
{
    const char **param;
    uint32_t has_lens = batch->n_scans - loop->n_carried - loop->n_scans;

    MPL_PASS(onnx_new(node->r, param, batch->n_scans));
    param[0] = "length";
    memcpy(param + has_lens, loop->param, (loop->n_carried + loop->n_scans) * sizeof *param);
    batch->param = param;
    return MPL_OK;
}

/* Inputs: lengths, states, scans, each with the batch first. */
mpl_status onnx_lower_scan_8(onnx_node *node)
{
    sequence s = {
        .loop = {
            .node = node, .trips = MPL_NONE, .go = MPL_NONE, .unroll = onnx_is_unrolled(node)}};
    onnx_loop *loop = &s.loop, batch = *loop;
    body b = {0};
    const char **name;
    char suffix[24];
    mpl_value *made;

    MPL_PASS(count_scans(node, 1, loop));
    s.has_lens = node->in[0] != MPL_NONE;
    MPL_PASS(check_batch(node, loop, &loop->most));
    MPL_PASS(take_body(node, false, loop, &b));
    MPL_PASS(take_outputs(node, loop, &b, NULL));
    MPL_PASS(take_directions(node, loop, &b, "directions", NULL));
    for (uint32_t i = 0; i < loop->n_scans && s.has_lens; i++)
        if (loop->reverse[i])
            return ONNX_REFUSE(
                node,
                "scans that go backward over sequences of different lengths are not supported");
    batch.n_scans = s.has_lens + loop->n_carried + loop->n_scans;
    batch.scan = node->in + !s.has_lens;
    batch.most = node->r->g->value_shape[batch.scan[0]].dim[0];
    batch.n_rows = loop->n_carried + loop->n_rows;
    batch.body = read_sequence;
    batch.arg = &s;
    MPL_PASS(name_params(node, loop, &batch));
    MPL_PASS(onnx_new(node->r, name, batch.n_rows));
    for (uint32_t i = 0; i < batch.n_rows; i++) { /* unread rows need a name, too */
        snprintf(suffix, sizeof suffix, "unused%u", i);
        if ((name[i] = loop->out_name[i]) == NULL)
            MPL_PASS(onnx_fresh_name(node->r, node->label, suffix, &name[i]));
    }
    batch.out_name = name;
    MPL_PASS(onnx_new(node->r, made, batch.n_rows));
    MPL_PASS(onnx_add_loop(&batch, made));
    hand_out(node, loop, &b, made);
    return MPL_OK;
}
