/* verify_flow_loop.c -- loops: entry, rounds, carried values, exit. See verify_flow.c. */
#include "planners/verify/verify_flow_state.h"

typedef struct loop {
    mpl_op op;
    uint32_t body, n_carried, n_scans, n_rows;
    const mpl_value *in, *out, *param, *result;
    const uint8_t *in_copied, *result_copied;
    int64_t rounds, most; /* -1: not known beforehand; most -1: unbounded */
} loop;

static loop loop_of(const mpl_flow_run *run, mpl_op op)
{
    const mpl_graph *g = run->g;
    const mpl_places *places = run->map.map->places;
    uint32_t body = mpl_op_first_body(g, op);
    loop l = {.op = op, .body = body, .n_carried = mpl_n_carried(g, op)};

    l.in = g->op_in + g->op_in_begin[op];
    l.out = g->op_out + g->op_out_begin[op];
    l.param = g->block_param + g->block_param_begin[body];
    l.result = g->block_result + g->block_result_begin[body];
    l.in_copied = places->in_copied + g->op_in_begin[op];
    l.result_copied = places->result_copied + g->block_result_begin[body];
    l.n_scans = mpl_op_n_in(g, op) - 2 - l.n_carried;
    l.n_rows = mpl_op_n_out(g, op) - l.n_carried;
    l.rounds = run->map.rounds[op];
    l.most = run->map.most[op];
    return l;
}

/* Leaves the loop after `rounds` rounds, whose parameters are set in `state`. */
static mpl_status leave_loop(mpl_flow_run *run, const loop *l, uint64_t *state, uint32_t rounds)
{
    mpl_status st = MPL_OK;
    uint32_t now = run->map.round[l->body];
    mpl_where there, here;

    for (uint32_t i = 0; i < l->n_carried; i++) {
        if (l->out[i] == MPL_NONE || run->g->value_bytes[l->out[i]] == 0)
            continue;
        MPL_TRY(mpl_flow_where_in(run, l->param[1 + i], l->body, rounds, &here));
        there = mpl_flow_where(&run->map, l->out[i]);
        run->map.taken[l->op] = 1 + rounds;
        st = mpl_flow_hand_on(run, state, l->out[i], there, here,
                              mpl_flow_stands(run, state, l->param[1 + i]), false);
        run->map.taken[l->op] = 0;
        MPL_TRY(st);
    }
    for (uint32_t i = l->n_carried; i < l->n_carried + l->n_rows; i++)
        if (l->out[i] != MPL_NONE && run->g->value_bytes[l->out[i]] > 0) /* zeros without rows */
            MPL_TRY(mpl_flow_write(run, state, l->out[i], mpl_flow_where(&run->map, l->out[i]),
                                   mpl_bit_has(state, l->out[i])));
    mpl_flow_leave_block(run, state, l->body);
    run->map.round[l->body] = MPL_NONE;
    MPL_TRY(mpl_flow_arrive(run, run->program->op_step[l->op], state));
out:
    run->map.taken[l->op] = 0;
    run->map.round[l->body] = now;
    return st;
}

mpl_status mpl_flow_exit_loop(mpl_flow_run *run, uint32_t body)
{
    loop l = loop_of(run, run->g->block_owner[body]);

    return leave_loop(run, &l, run->after, run->map.round[body]);
}

mpl_status mpl_flow_enter_loop(mpl_flow_run *run, mpl_op op)
{
    mpl_status st = MPL_OK;
    loop l = loop_of(run, op);
    uint64_t *state = run->after;
    mpl_where there, here;

    MPL_TRY(mpl_flow_need(run, state, l.in[0], run->g->op_name[op]));
    MPL_TRY(mpl_flow_need(run, state, l.in[1], run->g->op_name[op]));
    mpl_flow_forget(run, state, op);
    run->map.round[l.body] = 0; /* parameters are where the first round has them */
    for (uint32_t i = 0; i < l.n_carried; i++) {
        here = mpl_flow_where(&run->map, l.in[2 + i]);
        MPL_TRY(mpl_flow_where_in(run, l.param[1 + i], l.body, 0, &there));
        MPL_TRY(mpl_flow_hand_on(run, state, l.param[1 + i], there, here,
                                 mpl_flow_stands(run, state, l.in[2 + i]),
                                 l.in_copied[2 + i] != 0));
    }
    for (uint32_t i = l.n_carried; i < l.n_carried + l.n_rows; i++)
        if (l.out[i] != MPL_NONE && run->g->value_bytes[l.out[i]] > 0) /* rows follow from now on */
            MPL_TRY(
                mpl_flow_write(run, state, l.out[i], mpl_flow_where(&run->map, l.out[i]), true));
    if (l.most != 0)
        MPL_TRY(mpl_flow_arrive(run, run->program->begin_step[l.body], state));
    if (l.rounds <= 0)
        st = leave_loop(run, &l, state, 0);
out:
    run->map.round[l.body] = MPL_NONE;
    return st;
}

static bool is_reversed(const mpl_flow_run *run, const loop *l, uint32_t i)
{
    uint32_t n;
    const int64_t *flag = mpl_attr_ints(run->g, l->op, MPL_ATTR_scan_reverse, &n);

    return i < n && flag[i] != 0;
}

mpl_status mpl_flow_begin_round(mpl_flow_run *run, uint32_t body)
{
    loop l = loop_of(run, run->g->block_owner[body]);
    mpl_where w = mpl_flow_where(&run->map, l.param[0]);

    if (w.kind != MPL_WHERE_NOWHERE)
        MPL_PASS(mpl_flow_write(run, run->now, l.param[0], w, true));
    for (uint32_t i = 0; i < l.n_scans; i++) {
        uint32_t in = 2 + l.n_carried + i;
        mpl_value slice = l.param[1 + l.n_carried + i];
        bool good = mpl_flow_stands(run, run->now, l.in[in]), is;

        w = mpl_flow_where(&run->map, slice);
        if (w.kind == MPL_WHERE_NOWHERE)
            continue;
        MPL_PASS(mpl_flow_settled(run, run->now, slice, w));
        MPL_PASS(mpl_where_slice(&run->map, w, mpl_flow_where(&run->map, l.in[in]), body,
                                 run->g->value_bytes[slice], is_reversed(run, &l, i), &is));
        if (l.in_copied[in] && !is) {
            MPL_PASS(mpl_flow_copy(run, run->now, slice, w, mpl_flow_where(&run->map, l.in[in]),
                                   run->g->value_bytes[l.in[in]], good));
        } else if (!is && run->g->value_bytes[l.in[in]] > 0) {
            MPL_PASS(mpl_flow_elsewhere(run, slice));
        } else {
            run->killer[slice] = MPL_NONE;
            mpl_flow_set(run->now, slice, good && is);
        }
    }
    return MPL_OK;
}

/* Copies rows to where they are stacked, or checks that they lie there. */
static mpl_status stack_rows(mpl_flow_run *run, const loop *l)
{
    for (uint32_t i = l->n_carried; i < l->n_carried + l->n_rows; i++) {
        mpl_value out = l->out[i];
        mpl_flow_row_info row;
        bool good, is;

        if (out == MPL_NONE || run->g->value_bytes[out] == 0 || !mpl_flow_row(run->g, out, &row))
            continue;
        good = mpl_bit_has(run->now, out) && mpl_flow_stands(run, run->now, row.result);
        MPL_PASS(mpl_where_slice(&run->map, mpl_flow_where(&run->map, row.result),
                                 mpl_flow_where(&run->map, out), l->body, row.bytes, row.reversed,
                                 &is));
        if (!l->result_copied[1 + i] && !is)
            MPL_PASS(mpl_flow_elsewhere(run, out));
        if (l->result_copied[1 + i] && !is) /* one row is written; its number does not matter */
            MPL_PASS(mpl_flow_copy(run, run->now, out, mpl_flow_where(&run->map, out),
                                   mpl_flow_where(&run->map, row.result), row.bytes, good));
        else
            mpl_flow_set(run->now, out, good && is);
    }
    return MPL_OK;
}

/* A carried value that is copied. All copies act as if at once. */
typedef struct transfer {
    mpl_value param;
    mpl_where source, from, to; /* from: the source, or staging once it is put there */
    uint64_t bytes;
    bool standing, pending, copied, aside;
} transfer;

/* Whether copy a overwrites the source of copy b. For a == b: except where it stays in place. */
static mpl_status must_wait(mpl_flow_run *run, const transfer *a, const transfer *b, bool *out)
{
    size_t n = 0;

    run->spots.n = run->other.n = 0;
    MPL_PASS(mpl_where_spots(&run->map, a->to, a->bytes, &run->spots));
    MPL_PASS(mpl_where_spots(&run->map, b->from, b->bytes, &run->other));
    for (size_t i = 0; i < run->other.n; i++) {
        bool stays = false;

        for (size_t k = 0; a == b && k < run->spots.n; k++)
            stays = stays || (run->spots.at[k].arena == run->other.at[i].arena &&
                              run->spots.at[k].begin == run->other.at[i].begin);
        if (!stays)
            run->other.at[n++] = run->other.at[i];
    }
    run->other.n = n;
    *out = mpl_flow_overlap(&run->spots, &run->other);
    return MPL_OK;
}

/* Makes all copies that need not wait for another one; *moved: whether there were any. */
static mpl_status copy_what_can(mpl_flow_run *run, const loop *l, transfer *t, bool *moved)
{
    *moved = false;
    for (uint32_t i = 0; i < l->n_carried; i++) {
        bool waits = false;

        for (uint32_t k = 0; t[i].pending && k < l->n_carried && !waits; k++)
            if (t[k].pending && t[k].from.kind != MPL_WHERE_NOWHERE)
                MPL_PASS(must_wait(run, &t[i], &t[k], &waits));
        *moved = *moved || (t[i].pending && !waits);
        t[i].pending = t[i].pending && waits;
    }
    return MPL_OK;
}

/* The first remaining copy that another waits for; MPL_NONE: none remains. */
static mpl_status first_waited_for(mpl_flow_run *run, const loop *l, transfer *t, uint32_t *first)
{
    bool waits = false;

    for (uint32_t k = 0; k < l->n_carried; k++)
        for (uint32_t i = 0;
             t[k].pending && t[k].from.kind != MPL_WHERE_NOWHERE && i < l->n_carried; i++) {
            if (t[i].pending)
                MPL_PASS(must_wait(run, &t[i], &t[k], &waits));
            *first = k;
            if (waits)
                return MPL_OK;
        }
    *first = MPL_NONE;
    return MPL_OK;
}

/* Whether the staging buffer still holds a source that is to be copied on. */
static bool any_aside(const loop *self, const transfer *t)
{
    for (uint32_t i = 0; i < self->n_carried; i++)
        if (t[i].pending && t[i].aside)
            return true;
    return false;
}

/* Makes the copies in dependency order. Copies that wait for each other go through the staging
 * buffer, which is filled from its start each time it is empty. */
static mpl_status order_copies(mpl_flow_run *run, const loop *l, transfer *t, bool *staged)
{
    uint64_t used = 0;
    mpl_buffer staging = run->map.map->places->staging[l->body];
    uint32_t stuck = MPL_NONE;
    bool moved;

    *staged = false;
    for (;;) {
        MPL_PASS(copy_what_can(run, l, t, &moved));
        used = any_aside(l, t) ? used : 0;
        if (moved)
            continue;
        MPL_PASS(first_waited_for(run, l, t, &stuck));
        if (stuck == MPL_NONE)
            break;
        used += t[stuck].bytes;
        if (staging == MPL_NONE || used > run->map.p->bytes[staging])
            return MPL_ERROR(run->ctx, MPL_EINVALID,
                             "block '%.80s' carries '%.80s' crosswise, and has no room to stage it",
                             run->g->block_name[l->body], run->g->value_name[t[stuck].param]);
        t[stuck].from = (mpl_where){.kind = MPL_WHERE_NOWHERE};
        t[stuck].aside = *staged = true;
    }
    return MPL_OK;
}

/* Destroys what copied parameters may overlap, other parameters included. */
static mpl_status write_params(mpl_flow_run *run, const loop *l, const transfer *t)
{
    for (uint32_t i = 0; i < l->n_carried; i++) {
        if (!t[i].copied)
            continue;
        run->spots.n = 0;
        MPL_PASS(mpl_where_spots(&run->map, t[i].to, t[i].bytes, &run->spots));
        MPL_PASS(mpl_flow_destroy(run, run->now, t[i].param, t[i].to));
    }
    return MPL_OK;
}

/* The staging buffer is written before the waiting copies, and read after some of them. Values that
 * already lie there are lost. */
static mpl_status use_staging(mpl_flow_run *run, const loop *l, transfer *t)
{
    mpl_where w = {.kind = MPL_WHERE_BUFFER, .id = run->map.map->places->staging[l->body]};

    run->spots.n = 0;
    MPL_PASS(mpl_where_spots(&run->map, w, run->map.p->bytes[w.id], &run->spots));
    for (uint32_t i = 0; i < l->n_carried; i++) {
        run->other.n = 0;
        MPL_PASS(mpl_where_spots(&run->map, t[i].to, t[i].bytes, &run->other));
        if (t[i].copied)
            MPL_PASS(mpl_where_spots(&run->map, t[i].source, t[i].bytes, &run->other));
        if (!mpl_flow_overlap(&run->spots, &run->other))
            continue;
        if (t[i].copied)
            return MPL_ERROR(run->ctx, MPL_EINVALID,
                             "block '%.80s' copies by way of a place that '%.80s' takes part in",
                             run->g->block_name[l->body], run->g->value_name[t[i].param]);
        t[i].standing = false;
    }
    return mpl_flow_destroy(run, run->now, MPL_NONE, w);
}

/* Checks where the loop leaves its values, in case this is the last round. */
static mpl_status check_finals(const mpl_flow_run *run, mpl_op op)
{
    mpl_op inner = mpl_flow_finals_unsettled(&run->map, op, run->now, run->g->n_values);
    char rounds[200];

    if (inner != MPL_NONE)
        return MPL_ERROR(run->ctx, MPL_EINVALID,
                         "'%.80s' leaves something where '%.80s' does%s, which need not have run",
                         run->g->op_name[op], run->g->op_name[inner],
                         mpl_flow_rounds_text(run, rounds));
    return MPL_OK;
}

/* The results of this round become the parameters of the next. */
static mpl_status carry(mpl_flow_run *run, const loop *l, transfer *t)
{
    mpl_status st = MPL_OK;
    uint32_t next = run->map.round[l->body] + 1;
    bool staged, same;

    for (uint32_t i = 0; i < l->n_carried; i++) {
        mpl_value result = l->result[1 + i];

        t[i] = (transfer){.param = l->param[1 + i], .bytes = run->g->value_bytes[l->param[1 + i]]};
        t[i].from = mpl_flow_where(&run->map, result);
        if (t[i].from.n_rounds == 0)
            MPL_TRY(mpl_where_in_round(&run->map, &t[i].from, l->body, next - 1));
        t[i].source = t[i].from;
        MPL_TRY(mpl_flow_where_in(run, t[i].param, l->body, next, &t[i].to));
        MPL_TRY(mpl_where_same(&run->map, t[i].to, t[i].from, &same));
        t[i].standing = mpl_flow_stands(run, run->now, result);
        t[i].copied = t[i].pending =
            l->result_copied[1 + i] && !same && t[i].to.kind != MPL_WHERE_NOWHERE;
        if (!t[i].copied && !same && t[i].to.kind != MPL_WHERE_NOWHERE &&
            t[i].from.kind != MPL_WHERE_NOWHERE)
            MPL_TRY(mpl_flow_elsewhere(run, t[i].param));
        if (!t[i].copied && !same)
            t[i].standing = false;
    }
    MPL_TRY(order_copies(run, l, t, &staged));
    if (staged)
        MPL_TRY(use_staging(run, l, t));
    MPL_TRY(check_finals(run, l->op));
    mpl_flow_leave_block(run, run->now, l->body);
    run->map.round[l->body] = next;
    for (uint32_t i = 0; i < l->n_carried; i++) {
        /* otherwise it is where its source was left */
        if (t[i].to.kind != t[i].from.kind || t[i].to.id != t[i].from.id)
            MPL_TRY(mpl_flow_settled(run, run->now, t[i].param, t[i].to));
        run->killer[t[i].param] = MPL_NONE;
        mpl_flow_set(run->now, t[i].param, t[i].standing && t[i].to.kind != MPL_WHERE_NOWHERE);
    }
    st = write_params(run, l, t);
    run->map.round[l->body] = next - 1;
out:
    return st;
}

mpl_status mpl_flow_end_round(mpl_flow_run *run, uint32_t body)
{
    mpl_status st = MPL_OK;
    loop l = loop_of(run, run->g->block_owner[body]);
    uint32_t round = run->map.round[body];
    bool may_end = l.rounds < 0 || mpl_flow_class(&run->map, body, (uint64_t)l.rounds - 1) == round;
    transfer *t = NULL;

    MPL_TRY(mpl_new(run->ctx, t, l.n_carried));
    MPL_TRY(mpl_flow_need(run, run->now, l.result[0], run->g->block_name[body]));
    MPL_TRY(stack_rows(run, &l));
    MPL_TRY(carry(run, &l, t));
    run->map.round[body] = round + 1;
    if (l.most < 0 || round + 1 < l.most) /* the lowest round stands for the class */
        MPL_TRY(mpl_flow_arrive(run, run->program->begin_step[body], run->now));
    if (may_end)
        st = leave_loop(run, &l, run->now, round + 1);
    run->map.round[body] = round;
out:
    mpl_free(run->ctx, t);
    return st;
}
