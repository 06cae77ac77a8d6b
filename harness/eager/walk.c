/* walk.c -- a graph called operation by operation. See walk.h.
 *
 * A value is a reference of the tape, from the call that makes it to its last use in its block,
 * where the reference goes to the call. Carried values, slices, rows and results of branches are
 * handed over as references; a row's stack is a concat of what the rounds left. */
#include "harness/eager/walk.h"
#include "graphs/orders/work.h"

enum { MOST_DEPTH = 200, HELD = UINT32_MAX };

struct mpl_walker {
    mpl_ctx *ctx;
    mpl_tape *tape;
    const mpl_graph *g;
    const mpl_exec_options *options;
    mpl_handle *value;     /* [n_values] 0: not alive */
    uint32_t *block_begin; /* [n_blocks + 1] into block_op: operations in their order */
    mpl_op *block_op;
    mpl_op *last;          /* [n_values] operation of its block that uses it last; HELD */
    uint8_t *once;         /* [n_values] 1: that operation uses it once, and no block of it does */
    uint32_t *dying_begin; /* [n_ops + 1] into dying: values that end with an operation */
    mpl_value *dying;
    uint8_t *changes; /* [n_values] 1: an updated weight */
    void *contents;   /* scratch for the largest weight */
    mpl_handle *in;   /* scratch for the operation with the most operands; likewise below */
    uint8_t *is_last;
    mpl_attr *attr;
    mpl_handle *out;
    uint8_t *omitted;
    uint32_t depth;
    uint64_t work;
};

/* ---- what ends where ---- */

/* The operation of v's block that `use` is, or is nested in; MPL_NONE: v leaves its block there. */
static mpl_op lifted(const mpl_graph *g, mpl_value v, mpl_op use)
{
    while (use != MPL_NONE && g->op_block[use] != g->value_block[v])
        use = g->block_owner[g->op_block[use]];
    return use;
}

static void find_last(mpl_walker *walker, const uint32_t *at, mpl_value v)
{
    const mpl_graph *g = walker->g;
    mpl_op last = g->value_op[v];
    uint32_t n = 0;
    bool nested = false;

    for (uint32_t k = g->value_use_begin[v]; k < g->value_use_begin[v + 1]; k++) {
        mpl_op use = lifted(g, v, g->value_use[k]);

        if (use == MPL_NONE) {
            walker->last[v] = HELD;
            return;
        }
        if (n == 0 || at[use] > at[last])
            n = 0, nested = false, last = use;
        if (use == last)
            n++, nested = nested || use != g->value_use[k];
    }
    walker->last[v] = last == MPL_NONE ? HELD : last;
    walker->once[v] = n == 1 && !nested;
}

static mpl_status find_ends(mpl_walker *walker, const mpl_op *order)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = walker->g;
    uint32_t *at = NULL, *block = NULL;

    MPL_TRY(mpl_new_each(walker->ctx, g->n_ops, at, block));
    for (uint32_t i = 0; i < g->n_ops; i++) {
        at[order[i]] = i;
        block[i] = g->op_block[order[i]];
    }
    MPL_TRY(mpl_lists_new(walker->ctx, g->n_blocks, g->n_ops, block, order, &walker->block_begin,
                          &walker->block_op));
    for (mpl_value v = 0; v < g->n_values; v++)
        find_last(walker, at, v);
    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_role[v] == MPL_INPUT || g->value_role[v] == MPL_WEIGHT)
            walker->last[v] = HELD;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        walker->last[g->output[i]] = HELD;
    MPL_TRY(mpl_lists_new(walker->ctx, g->n_ops, g->n_values, walker->last, NULL,
                          &walker->dying_begin, &walker->dying));
out:
    mpl_free_each(walker->ctx, at, block);
    return st;
}

/* ---- opening, closing ---- */

static mpl_status add_weights(mpl_walker *walker)
{
    const mpl_graph *g = walker->g;
    uint64_t most = 0;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = 0; i < mpl_op_n_out(g, op); i++)
            if (mpl_updated(g, op, i) != MPL_NONE)
                walker->changes[mpl_updated(g, op, i)] = 1;
    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_role[v] == MPL_WEIGHT)
            most = mpl_max_u64(most, g->value_bytes[v]);
    if ((walker->contents = mpl_alloc(walker->ctx, most, 1)) == NULL)
        return MPL_EMEM;
    for (mpl_value v = 0; v < g->n_values; v++) {
        if (g->value_role[v] != MPL_WEIGHT)
            continue;
        mpl_exec_make_weight(g, walker->options, v, walker->contents);
        MPL_PASS(mpl_tape_weight(walker->tape, g->value_name[v], (mpl_type)g->value_type[v],
                                 &g->value_shape[v], walker->contents, walker->changes[v] != 0,
                                 &walker->value[v]));
    }
    return MPL_OK;
}

mpl_status mpl_walker_renew(mpl_walker *walker)
{
    for (mpl_value v = 0; v < walker->g->n_values; v++)
        if (walker->changes[v]) {
            mpl_exec_make_weight(walker->g, walker->options, v, walker->contents);
            MPL_PASS(mpl_tape_write(walker->tape, walker->value[v], walker->contents));
        }
    return MPL_OK;
}

mpl_status mpl_walker_new(mpl_ctx *ctx, mpl_tape *tape, const mpl_graph *g, const mpl_op *order,
                          const mpl_exec_options *options, mpl_walker **out)
{
    mpl_status st = MPL_OK;
    mpl_walker *walker = NULL;
    uint32_t most_in = 0, most_out = 0, most_attr = 0;

    MPL_TRY(mpl_new(ctx, walker, 1));
    *walker = (mpl_walker){.ctx = ctx, .tape = tape, .g = g, .options = options};
    MPL_TRY(
        mpl_new_each(ctx, g->n_values, walker->value, walker->last, walker->once, walker->changes));
    MPL_TRY(find_ends(walker, order));
    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint32_t n_attr = g->op_attr_begin[op + 1] - g->op_attr_begin[op];

        most_in = mpl_op_n_in(g, op) > most_in ? mpl_op_n_in(g, op) : most_in;
        most_out = mpl_op_n_out(g, op) > most_out ? mpl_op_n_out(g, op) : most_out;
        most_attr = n_attr > most_attr ? n_attr : most_attr;
    }
    MPL_TRY(mpl_new_each(ctx, most_in, walker->in, walker->is_last));
    MPL_TRY(mpl_new_each(ctx, most_out, walker->out, walker->omitted));
    MPL_TRY(mpl_new(ctx, walker->attr, most_attr));
    MPL_TRY(add_weights(walker));
    *out = walker, walker = NULL;
out:
    mpl_walker_free(ctx, walker);
    return st;
}

/* Releases v's reference, if it has one. */
static void end_value(mpl_walker *walker, mpl_value v)
{
    if (walker->value[v] != 0)
        (void)mpl_tape_release(walker->tape, walker->value[v]);
    walker->value[v] = 0;
}

void mpl_walker_free(mpl_ctx *ctx, mpl_walker *walker)
{
    if (walker == NULL)
        return;
    for (mpl_value v = 0; walker->value != NULL && v < walker->g->n_values; v++)
        end_value(walker, v);
    mpl_free_each(ctx, walker->value, walker->block_begin, walker->block_op, walker->last,
                  walker->once, walker->dying_begin, walker->dying, walker->changes,
                  walker->contents, walker->in, walker->is_last, walker->attr, walker->out,
                  walker->omitted, walker);
}

/* ---- references ---- */

static mpl_status release(mpl_walker *walker, mpl_handle *handle)
{
    mpl_handle gone = *handle;

    *handle = 0;
    return gone != 0 ? mpl_tape_release(walker->tape, gone) : MPL_OK;
}

/* A reference of one's own to v, or to nothing. */
static mpl_status refer(mpl_walker *walker, mpl_value v, mpl_handle *out)
{
    if (v == MPL_NONE || walker->value[v] == 0)
        return MPL_OK;
    MPL_PASS(mpl_tape_retain(walker->tape, walker->value[v]));
    *out = walker->value[v];
    return MPL_OK;
}

static mpl_status release_all(mpl_walker *walker, mpl_handle *handle, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        MPL_PASS(release(walker, &handle[i]));
    return MPL_OK;
}

/* What ends with `op` and was not handed over. */
static mpl_status end_dying(mpl_walker *walker, mpl_op op)
{
    for (uint32_t i = walker->dying_begin[op]; i < walker->dying_begin[op + 1]; i++)
        MPL_PASS(release(walker, &walker->value[walker->dying[i]]));
    return MPL_OK;
}

/* The last reference to operand i of `op` if it ends there, else one more. */
static mpl_status take(mpl_walker *walker, mpl_op op, uint32_t i, mpl_handle *out)
{
    mpl_value v = mpl_op_input(walker->g, op, i);

    if (v == MPL_NONE || walker->last[v] != op || !walker->once[v])
        return refer(walker, v, out);
    *out = walker->value[v];
    walker->value[v] = 0;
    return MPL_OK;
}

/* One element of type i64, i32 or bool; `otherwise` for nothing. */
static mpl_status read_number(mpl_walker *walker, mpl_value v, int64_t otherwise, int64_t *out)
{
    union {
        int64_t i64;
        int32_t i32;
        uint8_t b;
    } number = {0};

    *out = otherwise;
    if (v == MPL_NONE)
        return MPL_OK;
    MPL_PASS(mpl_tape_read(walker->tape, walker->value[v], &number));
    *out = walker->g->value_type[v] == MPL_TYPE_i64   ? number.i64
           : walker->g->value_type[v] == MPL_TYPE_i32 ? number.i32
                                                      : number.b != 0;
    return MPL_OK;
}

/* ---- operations ---- */

static mpl_status count_work(mpl_walker *walker, uint64_t work)
{
    walker->work = mpl_add_work(walker->work, work);
    if (walker->options->work_limit == 0 || walker->work <= walker->options->work_limit)
        return MPL_OK;
    return MPL_ERROR(walker->ctx, MPL_ELIMIT,
                     "graph '%s': a step comes to more than %" PRIu64
                     " units of work (--work-limit N lifts it, 0: none)",
                     walker->g->name, walker->options->work_limit);
}

static mpl_status call_op(mpl_walker *walker, mpl_op op)
{
    const mpl_graph *g = walker->g;
    mpl_tape_call call = {.kind = (mpl_op_kind)g->op_kind[op],
                          .n_in = mpl_op_n_in(g, op),
                          .in = walker->in,
                          .last = walker->is_last,
                          .n_attr = g->op_attr_begin[op + 1] - g->op_attr_begin[op],
                          .attr = walker->attr,
                          .n_out = mpl_op_n_out(g, op),
                          .omitted = walker->omitted};

    MPL_PASS(count_work(walker, mpl_run_work(g, op)));
    for (uint32_t i = 0; i < call.n_in; i++) {
        mpl_value v = mpl_op_input(g, op, i);
        bool last = v != MPL_NONE && walker->last[v] == op;

        walker->in[i] = v != MPL_NONE ? walker->value[v] : 0;
        for (uint32_t j = i + 1; j < call.n_in && last; j++)
            last = mpl_op_input(g, op, j) != v;
        walker->is_last[i] = last && walker->in[i] != 0;
    }
    for (uint32_t i = 0; i < call.n_attr; i++)
        walker->attr[i] = mpl_attr_at(g, g->op_attr_begin[op] + i);
    for (uint32_t i = 0; i < call.n_out; i++)
        walker->omitted[i] = mpl_op_output(g, op, i) == MPL_NONE;
    MPL_PASS(mpl_tape_run(walker->tape, &call, walker->out));
    for (uint32_t i = 0; i < call.n_in; i++)
        if (walker->is_last[i])
            walker->value[mpl_op_input(g, op, i)] = 0;
    for (uint32_t i = 0; i < call.n_out; i++)
        if (!walker->omitted[i])
            walker->value[mpl_op_output(g, op, i)] = walker->out[i];
    return MPL_OK;
}

/* An operation that the graph does not have, on references that end with it. */
static mpl_status call_more(mpl_walker *walker, mpl_op_kind kind, uint32_t n_in, mpl_handle *in,
                            const uint8_t *last, uint32_t n_attr, const mpl_attr *attr,
                            mpl_handle *out)
{
    mpl_tape_call call = {.kind = kind,
                          .n_in = n_in,
                          .in = in,
                          .last = last,
                          .n_attr = n_attr,
                          .attr = attr,
                          .n_out = 1};

    MPL_PASS(count_work(walker, MPL_STEP_WORK));
    MPL_PASS(mpl_tape_run(walker->tape, &call, out));
    memset(in, 0, n_in * sizeof *in);
    return MPL_OK;
}

/* ---- blocks ---- */

static mpl_status walk_block(mpl_walker *walker, uint32_t b, bool *left);

static mpl_status end_block(mpl_walker *walker, uint32_t b)
{
    for (mpl_value v = walker->g->block_value_begin[b]; v < walker->g->block_value_end[b]; v++)
        if (walker->g->value_role[v] != MPL_WEIGHT && walker->g->value_role[v] != MPL_INPUT)
            MPL_PASS(release(walker, &walker->value[v]));
    return MPL_OK;
}

/* ---- while ---- */

typedef struct loop {
    mpl_op op;
    uint32_t b, n, n_scans, n_rows; /* body, carried values, scans, rows */
    bool leaves;                    /* the body has an exit_unless */
    int64_t most, round;
    mpl_handle *now, *held; /* [n] carried values; those to go back to */
    mpl_handle *row;        /* [n_rows_left], n_rows a round */
    size_t n_rows_left, room;
} loop;

/* Slice `round` of scan i: one more reference, to a tensor of its own. */
static mpl_status cut_slice(mpl_walker *walker, const loop *l, uint32_t i)
{
    const mpl_graph *g = walker->g;
    uint32_t n_flags = 0;
    const int64_t *flag = mpl_attr_ints(g, l->op, MPL_ATTR_scan_reverse, &n_flags);
    mpl_value scan = mpl_op_input(g, l->op, 2 + l->n + i), slice = mpl_param(g, l->b, 1 + l->n + i);
    int64_t at = i < n_flags && flag[i] != 0 ? l->most - 1 - l->round : l->round, end = at + 1;
    const int64_t axis = 0;
    const mpl_attr attr[] = {MPL_INTS(starts, 1, &at), MPL_INTS(ends, 1, &end),
                             MPL_INTS(axes, 1, &axis)};
    mpl_handle from = walker->value[scan], cut = 0;
    mpl_status st;

    if (g->value_use_begin[slice] == g->value_use_begin[slice + 1])
        return MPL_OK;
    MPL_PASS(call_more(walker, MPL_OP_slice, 1, &from, NULL, 3, attr, &cut));
    st = call_more(walker, MPL_OP_squeeze, 1, &cut, (const uint8_t[]){1}, 1, &attr[2],
                   &walker->value[slice]);
    if (st != MPL_OK)
        (void)release(walker, &cut);
    return st;
}

/* Parameters: the round, the carried values, a slice of each scan. */
static mpl_status begin_round(mpl_walker *walker, loop *l)
{
    const mpl_graph *g = walker->g;
    mpl_value count = mpl_param(g, l->b, 0);

    MPL_PASS(count_work(walker, MPL_STEP_WORK));
    if (g->value_use_begin[count] < g->value_use_begin[count + 1])
        MPL_PASS(mpl_tape_input(walker->tape, g->value_name[count], MPL_TYPE_i64,
                                &g->value_shape[count], &l->round, &walker->value[count]));
    for (uint32_t i = 0; i < l->n; i++) {
        mpl_value param = mpl_param(g, l->b, 1 + i);

        walker->value[param] = l->now[i];
        l->now[i] = 0;
        if (l->leaves)
            MPL_PASS(refer(walker, param, &l->held[i]));
        if (g->value_use_begin[param] == g->value_use_begin[param + 1])
            MPL_PASS(release(walker, &walker->value[param]));
    }
    for (uint32_t i = 0; i < l->n_scans; i++)
        MPL_PASS(cut_slice(walker, l, i));
    return MPL_OK;
}

static mpl_status end_round(mpl_walker *walker, loop *l, bool *go)
{
    int64_t more;

    MPL_PASS(read_number(walker, mpl_result(walker->g, l->b, 0), 1, &more));
    for (uint32_t i = 0; i < l->n; i++)
        MPL_PASS(refer(walker, mpl_result(walker->g, l->b, 1 + i), &l->now[i]));
    MPL_PASS(mpl_reserve(walker->ctx, l->row, l->room, l->n_rows_left + l->n_rows + 1));
    for (uint32_t i = 0; i < l->n_rows; i++) {
        mpl_handle *row = &l->row[l->n_rows_left++];

        *row = 0;
        if (mpl_op_output(walker->g, l->op, l->n + i) != MPL_NONE)
            MPL_PASS(refer(walker, mpl_result(walker->g, l->b, 1 + l->n + i), row));
    }
    l->round++;
    *go = more != 0;
    return MPL_OK;
}

/* Zeros in place of the rows of rounds that did not run. */
static mpl_status add_zeros(mpl_walker *walker, const loop *l, mpl_value out, mpl_handle *zeros)
{
    mpl_status st = MPL_OK;
    mpl_shape shape = walker->g->value_shape[out];
    void *data = mpl_alloc(walker->ctx, walker->g->value_bytes[out], 1);

    if (data == NULL)
        MPL_TRY(MPL_EMEM);
    shape.dim[0] = l->most - l->round;
    MPL_TRY(mpl_tape_input(walker->tape, NULL, (mpl_type)walker->g->value_type[out], &shape, data,
                           zeros));
out:
    mpl_free(walker->ctx, data);
    return st;
}

/* Output n + i: the rows, one above the other. */
static mpl_status stack_rows(mpl_walker *walker, loop *l, uint32_t i)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = walker->g;
    mpl_value out = mpl_op_output(g, l->op, l->n + i);
    uint32_t n_flags = 0, rounds = (uint32_t)l->round, n = rounds + (l->round < l->most);
    const int64_t *flag = mpl_attr_ints(g, l->op, MPL_ATTR_scan_reverse, &n_flags);
    bool turned = l->n_scans + i < n_flags && flag[l->n_scans + i] != 0;
    const int64_t axis = 0;
    const mpl_attr axes = MPL_INTS(axes, 1, &axis), along = MPL_INT(axis, 0);
    mpl_handle *part = NULL;
    uint8_t *last = NULL;

    if (out == MPL_NONE)
        return MPL_OK;
    MPL_TRY(mpl_new_each(walker->ctx, n, part, last));
    for (uint32_t r = 0; r < n; r++)
        last[r] = 1;
    if (l->round < l->most)
        MPL_TRY(add_zeros(walker, l, out, &part[turned ? 0 : rounds]));
    for (uint32_t r = 0; r < rounds; r++)
        MPL_TRY(call_more(walker, MPL_OP_unsqueeze, 1, &l->row[(size_t)r * l->n_rows + i],
                          (const uint8_t[]){1}, 1, &axes, &part[turned ? n - 1 - r : r]));
    if (n == 1)
        walker->value[out] = part[0], part[0] = 0;
    else if (n == 0)
        MPL_TRY(add_zeros(walker, l, out, &walker->value[out]));
    else
        MPL_TRY(call_more(walker, MPL_OP_concat, n, part, last, 1, &along, &walker->value[out]));
out:
    for (uint32_t r = 0; part != NULL && r < n && st != MPL_OK; r++)
        (void)release(walker, &part[r]);
    mpl_free_each(walker->ctx, part, last);
    return st;
}

static mpl_status turn_rounds(mpl_walker *walker, loop *l, int64_t limit, bool go)
{
    while (go && l->round < limit) {
        bool left = false;

        MPL_PASS(begin_round(walker, l));
        MPL_PASS(walk_block(walker, l->b, &left));
        if (left) { /* the round does not count */
            memcpy(l->now, l->held, l->n * sizeof *l->now);
            memset(l->held, 0, l->n * sizeof *l->held);
            return end_block(walker, l->b);
        }
        MPL_PASS(end_round(walker, l, &go));
        MPL_PASS(release_all(walker, l->held, l->n));
        MPL_PASS(end_block(walker, l->b));
    }
    return MPL_OK;
}

static bool leaves(const mpl_walker *walker, uint32_t b)
{
    for (uint32_t i = walker->block_begin[b]; i < walker->block_begin[b + 1]; i++)
        if (walker->g->op_kind[walker->block_op[i]] == MPL_OP_exit_unless)
            return true;
    return false;
}

static mpl_status walk_while(mpl_walker *walker, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = walker->g;
    loop l = {.op = op, .b = mpl_op_first_body(g, op), .n = mpl_n_carried(g, op)};
    int64_t trips, go;

    l.most = mpl_while_most_rounds(g, op);
    l.n_scans = g->block_n_params[l.b] - 1 - l.n;
    l.n_rows = g->block_n_results[l.b] - 1 - l.n;
    l.leaves = leaves(walker, l.b);
    MPL_TRY(mpl_new_each(walker->ctx, (size_t)l.n + 1, l.now, l.held));
    MPL_TRY(read_number(walker, mpl_op_input(g, op, 0), INT64_MAX, &trips));
    MPL_TRY(read_number(walker, mpl_op_input(g, op, 1), 1, &go));
    for (uint32_t i = 0; i < l.n; i++)
        MPL_TRY(take(walker, op, 2 + i, &l.now[i]));
    MPL_TRY(turn_rounds(walker, &l, l.most >= 0 && l.most < trips ? l.most : trips, go != 0));
    for (uint32_t i = 0; i < l.n; i++)
        if (mpl_op_output(g, op, i) != MPL_NONE) {
            walker->value[mpl_op_output(g, op, i)] = l.now[i];
            l.now[i] = 0;
        }
    MPL_TRY(release_all(walker, l.now, l.n));
    for (uint32_t i = 0; i < l.n_rows; i++)
        MPL_TRY(stack_rows(walker, &l, i));
out:
    for (uint32_t i = 0; i < l.n && l.held != NULL; i++) {
        (void)release(walker, &l.now[i]);
        (void)release(walker, &l.held[i]);
    }
    for (size_t i = 0; i < l.n_rows_left; i++)
        (void)release(walker, &l.row[i]);
    mpl_free_each(walker->ctx, l.now, l.held, l.row);
    return st;
}

/* ---- case ---- */

static mpl_status walk_case(mpl_walker *walker, mpl_op op)
{
    const mpl_graph *g = walker->g;
    uint32_t n = g->op_body_begin[op + 1] - g->op_body_begin[op], b = MPL_NONE;
    int64_t index;
    bool left = false;

    MPL_PASS(read_number(walker, mpl_op_input(g, op, 0), 0, &index));
    if (index >= (int64_t)n ||
        (index < 0 && mpl_op_n_out(g, op) > 0 && mpl_op_input(g, op, 1) == MPL_NONE))
        return MPL_REFUSE(walker->ctx,
                          "graph '%s': operation '%s' (case) is to take branch %" PRId64
                          "; it has %u",
                          g->name, g->op_name[op], index, n);
    if (index >= 0) {
        b = g->op_body[g->op_body_begin[op] + (uint32_t)index];
        MPL_PASS(count_work(walker, MPL_STEP_WORK));
        MPL_PASS(walk_block(walker, b, &left));
    }
    for (uint32_t i = 0; i < mpl_op_n_out(g, op); i++)
        if (mpl_op_output(g, op, i) != MPL_NONE)
            MPL_PASS(refer(walker, index < 0 ? mpl_op_input(g, op, 1 + i) : mpl_result(g, b, i),
                           &walker->value[mpl_op_output(g, op, i)]));
    return b != MPL_NONE ? end_block(walker, b) : MPL_OK;
}

/* ---- a step ---- */

static mpl_status walk_op(mpl_walker *walker, mpl_op op, bool *left)
{
    int64_t stay = 1;

    switch ((mpl_op_kind)walker->g->op_kind[op]) {
    case MPL_OP_while:
        MPL_PASS(walk_while(walker, op));
        break;
    case MPL_OP_case:
        MPL_PASS(walk_case(walker, op));
        break;
    case MPL_OP_exit_unless:
        MPL_PASS(read_number(walker, mpl_op_input(walker->g, op, 0), 1, &stay));
        *left = stay == 0;
        break;
    default:
        MPL_PASS(call_op(walker, op));
    }
    return end_dying(walker, op);
}

static mpl_status walk_block(mpl_walker *walker, uint32_t b, bool *left)
{
    if (walker->depth == MOST_DEPTH)
        return MPL_REFUSE(walker->ctx,
                          "graph '%s': blocks nest deeper than %d, which is not walked",
                          walker->g->name, MOST_DEPTH);
    walker->depth++;
    for (uint32_t i = walker->block_begin[b]; i < walker->block_begin[b + 1] && !*left; i++)
        MPL_PASS(walk_op(walker, walker->block_op[i], left));
    walker->depth--;
    return MPL_OK;
}

mpl_status mpl_walker_step(mpl_walker *walker, void *const *input,
                           void *(*at)(void *arg, uint32_t i), void *arg)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = walker->g;
    bool left = false;

    walker->work = 0;
    walker->depth = 0;
    for (uint32_t i = 0; i < g->n_inputs; i++)
        MPL_TRY(mpl_tape_input(walker->tape, g->value_name[g->input[i]],
                               (mpl_type)g->value_type[g->input[i]], &g->value_shape[g->input[i]],
                               input[i], &walker->value[g->input[i]]));
    MPL_TRY(walk_block(walker, 0, &left));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        MPL_TRY(mpl_tape_read(walker->tape, walker->value[g->output[i]], at(arg, i)));
    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_role[v] != MPL_WEIGHT)
            MPL_TRY(release(walker, &walker->value[v]));
    MPL_TRY(mpl_tape_end(walker->tape));
out:
    if (st != MPL_OK)
        for (mpl_value v = 0; v < g->n_values; v++)
            if (g->value_role[v] != MPL_WEIGHT)
                end_value(walker, v);
    return st;
}
