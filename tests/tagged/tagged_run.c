/* tagged_run.c -- see tagged_run.h.
 *
 * Nothing is computed. An operation writes tags to its results' bytes that name the value and the
 * rounds. Expected contents are kept separately, and each read compares the two, byte by byte.
 * Every data-dependent decision is free: number of rounds, branch, exit test. Executions run one
 * after the other from the start, by a list of decisions. One that reaches a known state ends
 * there. */
#include "tests/tagged/tagged_priv.h"

/* ---- operations ---- */

/* An operation without code: its result takes its operand's contents and location. */
static way show(machine *m, mpl_op op)
{
    const mpl_graph *g = m->g;
    mpl_value in = g->op_in[g->op_in_begin[op]];
    uint64_t at = 0;

    if (g->op_kind[op] == MPL_OP_concat) {
        mpl_value out = g->op_out[g->op_out_begin[op]];

        TRY(tagged_bind(m, out));
        m->lost[out] = 0;
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
            mpl_value part = g->op_in[i];

            m->lost[out] |= tagged_is_lost(m, part);
            memcpy(truth_of(m, out) + at, truth_of(m, part), bytes_of(m, part) * sizeof at);
            at += bytes_of(m, part);
        }
        m->made[out] = 1;
        return GO;
    }
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        mpl_value out = g->op_out[i];

        if (out == MPL_NONE)
            continue;
        at =
            m->map->value_offset != NULL ? m->map->value_offset[out] - m->map->value_offset[in] : 0;
        m->bound[out] = m->bound[in];
        m->bound[out].at += at;
        tagged_take_truth(m, out, in, at);
    }
    return GO;
}

/* Whether result `out` may occupy exactly the bytes of operand i. */
static bool may_overwrite(const machine *m, mpl_op op, uint32_t i, mpl_value out)
{
    const mpl_graph *g = m->g;
    unsigned traits = mpl_op_table[g->op_kind[op]].traits;
    mpl_value in = g->op_in[g->op_in_begin[op] + i];

    return ((traits & MPL_IN_PLACE_ANY) != 0 || ((traits & MPL_IN_PLACE_0) != 0 && i == 0)) &&
           out == g->op_out[g->op_out_begin[op]] && g->value_bytes[in] == g->value_bytes[out] &&
           g->value_type[in] == g->value_type[out];
}

/* The operation must not write bytes that it still reads, and its workspace must be disjoint. */
static way keep_operands(machine *m, mpl_op op, mpl_value out)
{
    const mpl_graph *g = m->g;
    mpl_buffer b = m->map->op_workspace != NULL ? m->map->op_workspace[op] : MPL_NONE;

    for (uint32_t i = 0; i < mpl_n_read(g, op); i++) {
        mpl_value in = g->op_in[g->op_in_begin[op] + i];

        if (in == MPL_NONE)
            continue;
        if (m->strict && out != MPL_NONE &&
            tagged_may_meet(m, in, out, may_overwrite(m, op, i, out)))
            return tagged_wrong(m, "may be written over what is still read", g->op_name[op],
                                name_of(m, in));
        if (out != MPL_NONE &&
            meet(m->bound[in], bytes_of(m, in), m->bound[out], bytes_of(m, out)) &&
            !(same_spot(m->bound[in], m->bound[out]) && may_overwrite(m, op, i, out)))
            return tagged_wrong(m, "written over what is still read", g->op_name[op],
                                name_of(m, in));
        if (b != MPL_NONE &&
            meet(m->bound[in], bytes_of(m, in), tagged_buffer_spot(m, b), m->p->bytes[b]))
            return tagged_wrong(m, "its workspace lies on what it reads", g->op_name[op],
                                name_of(m, in));
    }
    if (b != MPL_NONE && out != MPL_NONE &&
        meet(m->bound[out], bytes_of(m, out), tagged_buffer_spot(m, b), m->p->bytes[b]))
        return tagged_wrong(m, "its workspace lies on what it writes", g->op_name[op],
                            name_of(m, out));
    return GO;
}

static way run_plain(machine *m, mpl_op op)
{
    const mpl_graph *g = m->g;
    uint32_t begin = g->op_out_begin[op], end = g->op_out_begin[op + 1];

    if (tagged_is_idle(m, op))
        return show(m, op);
    for (uint32_t i = begin; i < end; i++)
        if (g->op_out[i] != MPL_NONE)
            TRY(tagged_bind(m, g->op_out[i]));
    for (uint32_t i = 0; i < mpl_n_read(g, op); i++)
        TRY(tagged_find(m, g->op_in[g->op_in_begin[op] + i], g->op_name[op]));
    for (uint32_t i = begin; i < end; i++)
        TRY(keep_operands(m, op, g->op_out[i]));
    if (m->map->op_workspace != NULL && m->map->op_workspace[op] != MPL_NONE) {
        tagged_claim_buffer(m, m->map->op_workspace[op]);
        tagged_fill(m, tagged_buffer_spot(m, m->map->op_workspace[op]), RUBBISH,
                    m->p->bytes[m->map->op_workspace[op]]);
    }
    for (uint32_t i = begin; i < end; i++)
        if (g->op_out[i] != MPL_NONE) {
            tagged_claim(m, g->op_out[i], false);
            tagged_make_new(m, WRITTEN, g->op_out[i]);
            TRY(tagged_lay_down(m, g->op_out[i]));
        }
    return GO;
}

/* ---- blocks ---- */

static way run_block(machine *m, uint32_t block);

/* Ends the values of a block and its nested blocks; fixes the places of its results that depend on
 * decisions made there. */
static void end_block(machine *m, uint32_t block)
{
    const mpl_graph *g = m->g;

    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_block[v] != 0 && mpl_block_within(g, g->value_block[v], block))
            m->made[v] = 0;
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (mpl_block_within(g, g->op_block[op], block))
            m->ran[op] = 0;
}

/* ---- loops ---- */

/* Whether another round is a free decision, rather than fixed by constants in the graph. */
static bool is_open(const machine *m, const loop *l)
{
    const mpl_graph *g = m->g;
    mpl_value test = m->round[l->body] == 0 ? l->in[1] : l->result[0];

    return test != MPL_NONE || (l->in[0] != MPL_NONE && (g->value_role[l->in[0]] != MPL_WEIGHT ||
                                                         g->value_data[l->in[0]] == NULL));
}

/* The most rounds that constants in the graph allow. */
static int64_t most_rounds(const machine *m, const loop *l)
{
    const mpl_graph *g = m->g;
    int64_t bound = mpl_while_most_rounds(g, l->op), trips = INT64_MAX;

    if (l->in[0] != MPL_NONE && g->value_role[l->in[0]] == MPL_WEIGHT &&
        g->value_data[l->in[0]] != NULL)
        memcpy(&trips, g->value_data[l->in[0]], sizeof trips);
    assert_true(bound >= 0);
    trips = trips < bound ? trips : bound;
    return trips > 0 ? trips : 0;
}

/* Decides whether there is another round. */
static way go_round(machine *m, const loop *l, bool *more)
{
    uint32_t chosen = 1;

    if (m->strict ? m->fixed_rounds[l->op] < 0 : is_open(m, l))
        TRY(tagged_decide(m, 3 * (uint64_t)l->op, 2, &chosen));
    *more = m->round[l->body] < (uint64_t)m->most[l->op] && chosen != 0;
    return GO;
}

static bool is_reversed(const machine *m, const loop *l, uint32_t i)
{
    uint32_t n = 0;
    const int64_t *flag = mpl_attr_ints(m->g, l->op, MPL_ATTR_scan_reverse, &n);

    return i < n && flag[i] != 0;
}

/* Location of a parameter or row of l; without a place of its own, that of its source. */
static way place_param(machine *m, mpl_value param, spot source)
{
    TRY(tagged_bind(m, param));
    if (m->bound[param].slab == MPL_NONE)
        m->bound[param] = source;
    return GO;
}

static way enter_loop(machine *m, const loop *l)
{
    TRY(tagged_find(m, l->in[0], m->g->op_name[l->op]));
    TRY(tagged_find(m, l->in[1], m->g->op_name[l->op]));
    tagged_forget(m, l->op);
    m->done[l->op] = 0;
    m->counted[l->body] = 1;
    m->round[l->body] = 0;
    for (uint32_t i = 0; i < l->n_carried; i++) {
        mpl_value init = l->in[2 + i], param = l->param[1 + i];

        TRY(place_param(m, param, m->bound[init]));
        TRY(tagged_hand_on(m, m->bound[init], m->bound[param], bytes_of(m, param),
                           l->in_copied[2 + i] != 0, param));
        tagged_take_truth(m, param, init, 0);
    }
    for (uint32_t i = l->n_carried; i < l->n_carried + l->n_rows; i++)
        if (l->out[i] != MPL_NONE) {
            TRY(tagged_bind(m, l->out[i]));
            tagged_claim(m, l->out[i], false);
            tagged_make_new(m, NO_ROW, l->out[i]);
        }
    return GO;
}

static way begin_round(machine *m, const loop *l)
{
    TRY(tagged_bind(m, l->param[0]));
    tagged_claim(m, l->param[0], false);
    tagged_make_new(m, ROUND, l->param[0]);
    TRY(tagged_lay_down(m, l->param[0]));
    for (uint32_t i = 0; i < l->n_scans; i++) {
        mpl_value scan = l->in[2 + l->n_carried + i], slice = l->param[1 + l->n_carried + i];
        uint64_t at = tagged_slice_number(m, l->body, is_reversed(m, l, i)) * bytes_of(m, slice);
        spot from = m->bound[scan];

        from.at += at;
        TRY(place_param(m, slice, from));
        TRY(tagged_hand_on(m, from, m->bound[slice], bytes_of(m, slice),
                           l->in_copied[2 + l->n_carried + i] != 0, slice));
        tagged_take_truth(m, slice, scan, at);
    }
    return GO;
}

static way stack_rows(machine *m, const loop *l)
{
    for (uint32_t i = 0; i < l->n_rows; i++) {
        mpl_value row = l->result[1 + l->n_carried + i], out = l->out[l->n_carried + i];
        uint64_t at =
            tagged_slice_number(m, l->body, is_reversed(m, l, l->n_scans + i)) * bytes_of(m, row);
        spot to;

        if (out == MPL_NONE)
            continue;
        to = m->bound[out];
        to.at += at;
        TRY(tagged_hand_on(m, m->bound[row], to, bytes_of(m, row),
                           l->result_copied[1 + l->n_carried + i] != 0, out));
        memcpy(truth_of(m, out) + at, truth_of(m, row), bytes_of(m, row) * sizeof at);
        m->lost[out] |= tagged_is_lost(m, row);
    }
    return GO;
}

/* A carried value, transferred as if simultaneously. */
typedef struct transfer {
    mpl_value param, result;
    spot from, to, source;
    uint64_t bytes;
    bool made, lost, copied, pending, staged;
} transfer;

static bool waits_for(const transfer *a, const transfer *b)
{
    return b->pending && meet(a->to, a->bytes, b->from, b->bytes);
}

static bool must_wait(const transfer *t, uint32_t n, uint32_t i)
{
    for (uint32_t k = 0; k < n; k++)
        if (waits_for(&t[i], &t[k]))
            return true;
    return false;
}

/* Puts aside the first value that another transfer waits for, after `used` staged bytes. */
static way put_aside(machine *m, const loop *l, transfer *t, uint32_t n, uint64_t *used)
{
    mpl_buffer staging = m->map->places->staging[l->body];
    uint32_t k = 0;
    bool awaited = false;
    spot to;

    for (; k < n; k += !awaited) {
        for (uint32_t i = 0; !t[k].staged && i < n; i++)
            awaited = awaited || (t[i].pending && waits_for(&t[i], &t[k]));
        if (awaited)
            break;
    }
    if (k == n)
        return tagged_wrong(m, "it is copied to where something was put aside",
                            m->g->op_name[l->op], "");
    if (staging == MPL_NONE || *used + t[k].bytes > m->p->bytes[staging])
        return tagged_wrong(m, "no room to carry crosswise", m->g->op_name[l->op],
                            name_of(m, t[k].param));
    to = tagged_buffer_spot(m, staging);
    to.at += *used;
    *used += t[k].bytes;
    TRY(tagged_hand_on(m, t[k].from, to, t[k].bytes, true, MPL_NONE));
    t[k].from = to;
    t[k].staged = true;
    return GO;
}

static way copy_all(machine *m, const loop *l, transfer *t, uint32_t n)
{
    uint64_t used = 0;
    uint32_t n_left = 0, n_aside = 0;

    for (uint32_t i = 0; i < n; i++)
        n_left += t[i].pending;
    while (n_left > 0) {
        uint32_t before = n_left;

        for (uint32_t i = 0; i < n; i++)
            if (t[i].pending && !must_wait(t, n, i)) {
                tagged_touch(m, t[i].from, t[i].bytes, m->readers);
                TRY(tagged_put(m, t[i].to, memory_at(m, t[i].from), t[i].bytes, t[i].param));
                t[i].pending = false;
                n_left--;
                n_aside -= t[i].staged;
                used = n_aside > 0 ? used : 0;
            }
        if (n_left == before) {
            TRY(put_aside(m, l, t, n, &used));
            n_aside++;
        }
    }
    return GO;
}

/* Where the loop leaves its results if this is its last round. */
static way note_finals(machine *m, mpl_op op)
{
    for (uint32_t i = 0; i < m->map->places->n; i++)
        if (place_of(m, i)->kind == MPL_PLACE_FINAL && place_of(m, i)->of == op &&
            !tagged_evaluate(m, item_of(m, i, 1), &m->final[i]))
            return tagged_wrong(m, "where it leaves things is not decided", m->g->op_name[op], "");
    return GO;
}

/* By the rules, no carried value lies in the staging area while it is in use. */
static way keep_staging(machine *m, const loop *l, transfer *t)
{
    mpl_buffer b = m->map->places->staging[l->body];
    bool staged = false;

    for (uint32_t i = 0; i < l->n_carried; i++)
        staged = staged || t[i].staged;
    for (uint32_t i = 0; m->strict && staged && i < l->n_carried; i++) {
        spot s = tagged_buffer_spot(m, b), source = t[i].staged ? t[i].source : t[i].from;
        bool there = meet(s, m->p->bytes[b], t[i].to, t[i].bytes);

        if (t[i].copied && (there || meet(s, m->p->bytes[b], source, t[i].bytes)))
            return tagged_wrong(m, "lies where things are put aside", name_of(m, t[i].param), "");
        t[i].lost = t[i].lost || there;
    }
    if (staged)
        tagged_claim_buffer(m, b);
    return GO;
}

static way carry(machine *m, const loop *l)
{
    transfer t[MOST_CARRIED];
    uint64_t truth[MOST_CARRIED][MOST_BYTES];
    bool by_copy[MOST_CARRIED];

    assert_true(l->n_carried <= MOST_CARRIED);
    TRY(note_finals(m, l->op));
    for (uint32_t i = 0; i < l->n_carried; i++) {
        t[i] = (transfer){.param = l->param[1 + i], .result = l->result[1 + i]};
        t[i].bytes = bytes_of(m, t[i].param);
        t[i].from = t[i].source = m->bound[t[i].result];
        t[i].made = m->made[t[i].result] != 0;
        t[i].lost = tagged_is_lost(m, t[i].result);
        assert_true(t[i].bytes <= MOST_BYTES);
        memcpy(truth[i], truth_of(m, t[i].result), t[i].bytes * sizeof truth[i][0]);
    }
    m->round[l->body]++;
    for (uint32_t i = 0; i < l->n_carried; i++) {
        bool copied = l->result_copied[1 + i] != 0;

        TRY(place_param(m, t[i].param, t[i].from));
        t[i].to = m->bound[t[i].param];
        t[i].pending = copied && t[i].bytes > 0 && t[i].from.slab != MPL_NONE &&
                       !same_spot(t[i].from, t[i].to);
        t[i].copied = t[i].pending;
        if (!copied)
            TRY(tagged_hand_on(m, t[i].from, t[i].to, t[i].bytes, false, t[i].param));
    }
    for (uint32_t i = 0; i < l->n_carried; i++)
        by_copy[i] = t[i].copied;
    TRY(tagged_keep_room(m, l, by_copy));
    TRY(copy_all(m, l, t, l->n_carried));
    TRY(keep_staging(m, l, t));
    end_block(m, l->body);
    for (uint32_t i = 0; i < l->n_carried; i++) {
        memcpy(truth_of(m, t[i].param), truth[i], t[i].bytes * sizeof truth[i][0]);
        m->made[t[i].param] = t[i].made;
        m->lost[t[i].param] = t[i].lost;
    }
    for (uint32_t i = 0; i < l->n_carried; i++)
        if (t[i].copied)
            tagged_claim(m, t[i].param, false);
    return GO;
}

/* Rows of rounds that did not run are zero. */
static way clear_rows(machine *m, const loop *l)
{
    uint64_t most = (uint64_t)mpl_while_most_rounds(m->g, l->op), rounds = m->round[l->body];

    for (uint32_t i = 0; i < l->n_rows; i++) {
        mpl_value out = l->out[l->n_carried + i];
        uint64_t bytes = bytes_of(m, l->result[1 + l->n_carried + i]);
        uint64_t at = is_reversed(m, l, l->n_scans + i) ? 0 : rounds * bytes,
                 n = (most - rounds) * bytes;
        spot to;

        if (out == MPL_NONE || n == 0)
            continue;
        to = m->bound[out];
        to.at += at;
        for (uint64_t k = 0; k < n; k++)
            truth_of(m, out)[at + k] = ZERO;
        if (to.slab != MPL_NONE)
            TRY(tagged_put(m, to, truth_of(m, out) + at, n, out));
    }
    return GO;
}

static way leave_loop(machine *m, const loop *l)
{
    m->done[l->op] = 1;
    m->settling = l->op;
    for (uint32_t i = 0; i < l->n_carried; i++) {
        mpl_value out = l->out[i], param = l->param[1 + i];

        if (out == MPL_NONE)
            continue;
        TRY(tagged_bind(m, out));
        TRY(tagged_hand_on(m, m->bound[param], m->bound[out], bytes_of(m, out), false, out));
        tagged_take_truth(m, out, param, 0);
    }
    m->settling = MPL_NONE;
    for (uint32_t i = l->n_carried; i < l->n_carried + l->n_rows; i++)
        if (l->out[i] != MPL_NONE)
            tagged_claim(m, l->out[i], false);
    TRY(clear_rows(m, l));
    end_block(m, l->body);
    m->ran[l->op] = 1;
    return GO;
}

static way receive_results(machine *m, const loop *l)
{
    for (uint32_t i = 0; i < 1 + l->n_carried + l->n_rows; i++)
        if (m->strict || i == 0 || tagged_is_useful(m, l->out[i - 1]) ||
            (i <= l->n_carried && tagged_is_useful(m, l->param[i])))
            TRY(tagged_receive(m, l->result[i]));
    return GO;
}

static way run_loop(machine *m, mpl_op op)
{
    loop l = tagged_loop_of(m, op);
    way w = GO;
    bool more;

    TRY(enter_loop(m, &l));
    TRY(go_round(m, &l, &more));
    while (more) {
        TRY(begin_round(m, &l));
        w = run_block(m, l.body);
        if (w == STOP)
            return STOP;
        if (w == LEAVE)
            break;
        TRY(receive_results(m, &l));
        TRY(tagged_find(m, l.result[0], m->g->op_name[op]));
        TRY(stack_rows(m, &l));
        TRY(carry(m, &l));
        TRY(go_round(m, &l, &more));
    }
    return leave_loop(m, &l);
}

/* ---- cases ---- */

static way hand_out(machine *m, mpl_op op, const mpl_value *from, const uint8_t *copied)
{
    const mpl_graph *g = m->g;

    for (uint32_t i = 0; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++)
        if (m->strict || tagged_is_useful(m, g->op_out[g->op_out_begin[op] + i]))
            TRY(tagged_receive(m, from[i]));
    for (uint32_t i = 0; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++) {
        mpl_value out = g->op_out[g->op_out_begin[op] + i];

        if (out == MPL_NONE)
            continue;
        m->settling = op;
        TRY(tagged_bind(m, out));
        TRY(tagged_hand_on(m, m->bound[from[i]], m->bound[out], bytes_of(m, out), copied[i] != 0,
                           out));
        tagged_take_truth(m, out, from[i], 0);
    }
    m->settling = MPL_NONE;
    m->ran[op] = 1;
    return GO;
}

static way run_case(machine *m, mpl_op op)
{
    const mpl_graph *g = m->g;
    uint32_t in = g->op_in_begin[op], n = g->op_body_begin[op + 1] - g->op_body_begin[op], chosen;
    bool bypass = g->op_in_begin[op + 1] > in + 1 || g->op_out_begin[op + 1] == g->op_out_begin[op];
    uint32_t block;

    TRY(tagged_find(m, g->op_in[in], g->op_name[op]));
    tagged_forget(m, op);
    TRY(tagged_decide(m, 3 * (uint64_t)op + 1, n + bypass, &chosen));
    m->taken[op] = chosen < n ? (int32_t)chosen : NO_BRANCH;
    if (chosen == n)
        return hand_out(m, op, g->op_in + in + 1, m->map->places->in_copied + in + 1);
    block = g->op_body[g->op_body_begin[op] + chosen];
    TRY(run_block(m, block));
    TRY(hand_out(m, op, g->block_result + g->block_result_begin[block],
                 m->map->places->result_copied + g->block_result_begin[block]));
    end_block(m, block);
    return GO;
}

/* ---- executions ---- */

/* Whether input i of an operation is read by it, or by whatever it passes it on to. */
static bool is_wanted(const machine *m, mpl_op op, uint32_t i)
{
    const mpl_graph *g = m->g;
    bool wanted = !tagged_is_idle(m, op);

    if (g->op_kind[op] == MPL_OP_case)
        return i == 0;
    if (g->op_kind[op] == MPL_OP_while && i >= 2) {
        loop l = tagged_loop_of(m, op);

        return tagged_is_useful(m, l.param[i - 1]) ||
               (i < 2 + l.n_carried && tagged_is_useful(m, l.out[i - 2]));
    }
    for (uint32_t k = g->op_out_begin[op]; k < g->op_out_begin[op + 1]; k++)
        wanted = wanted || tagged_is_useful(m, g->op_out[k]);
    return wanted;
}

/* By the rules, all inputs read in a loop arrive before the outermost loop begins, in any order. */
static bool comes_with(const machine *m, mpl_op op, mpl_value v)
{
    const mpl_graph *g = m->g;
    uint32_t body = g->op_kind[op] == MPL_OP_while ? g->op_body[g->op_body_begin[op]] : MPL_NONE;

    for (mpl_op k = 0; k < g->n_ops; k++)
        for (uint32_t i = g->op_in_begin[k]; i < g->op_in_begin[k + 1]; i++)
            if (g->op_in[i] != MPL_NONE && m->map->value_root[g->op_in[i]] == v &&
                ((k == op && (g->op_kind[op] != MPL_OP_case || i == g->op_in_begin[k])) ||
                 (body != MPL_NONE && mpl_block_within(g, g->op_block[k], body))))
                return true;
    for (uint32_t b = 1; body != MPL_NONE && b < g->n_blocks; b++)
        for (uint32_t i = g->block_result_begin[b];
             i < g->block_result_begin[b] + g->block_n_results[b]; i++)
            if (g->block_result[i] != MPL_NONE && m->map->value_root[g->block_result[i]] == v &&
                mpl_block_within(g, b, body))
                return true;
    for (uint32_t i = 0; !m->begun && i < g->n_outputs; i++)
        if (m->map->value_root[g->output[i]] == v)
            return true;
    return false;
}

static way receive_strictly(machine *m, mpl_op op)
{
    for (mpl_value v = 0; v < m->g->n_values; v++)
        m->comes[v] = m->awaited[v] && comes_with(m, op, v);
    for (mpl_value v = 0; v < m->g->n_values; v++)
        if (m->comes[v])
            TRY(tagged_receive(m, v));
    for (mpl_value v = 0; v < m->g->n_values; v++)
        if (m->comes[v])
            tagged_claim(m, v, true);
    m->begun = true;
    return GO;
}

/* Inputs that arrive before an operation, loop or case begins; before the first, also those that
 * only the caller reads. */
static way receive_operands(machine *m, mpl_op op)
{
    const mpl_graph *g = m->g;

    if (m->strict)
        return receive_strictly(m, op);
    for (uint32_t i = 0; i < g->op_in_begin[op + 1] - g->op_in_begin[op]; i++)
        if (is_wanted(m, op, i))
            TRY(tagged_receive(m, g->op_in[g->op_in_begin[op] + i]));
    for (uint32_t i = 0; !m->begun && i < g->n_outputs; i++)
        TRY(tagged_receive(m, g->output[i]));
    m->begun = true;
    return GO;
}

static way run_op(machine *m, mpl_op op)
{
    uint32_t stay;

    TRY(receive_operands(m, op));
    switch (m->g->op_kind[op]) {
    case MPL_OP_while:
        return run_loop(m, op);
    case MPL_OP_case:
        return run_case(m, op);
    case MPL_OP_exit_unless:
        TRY(tagged_find(m, m->g->op_in[m->g->op_in_begin[op]], m->g->op_name[op]));
        TRY(tagged_decide(m, 3 * (uint64_t)op + 2, 2, &stay));
        return stay ? GO : LEAVE;
    default:
        return run_plain(m, op);
    }
}

/* Runs the operations of a block in order. */
static way run_block(machine *m, uint32_t block)
{
    const mpl_graph *g = m->g;
    uint32_t step = 0;

    for (;;) {
        mpl_op next = MPL_NONE;

        for (mpl_op op = 0; op < g->n_ops; op++)
            if (g->op_block[op] == block && m->map->step_of[op] >= step &&
                (next == MPL_NONE || m->map->step_of[op] < m->map->step_of[next]))
                next = op;
        if (next == MPL_NONE)
            return GO;
        m->unit = block == 0 && m->p->before != NULL ? next : m->unit;
        TRY(run_op(m, next));
        step = m->map->step_of[next] + 1;
    }
}

/* ---- executions ---- */

/* The state before anything runs. */
static void begin(machine *m)
{
    const mpl_graph *g = m->g;

    for (uint64_t i = 0; i < m->slab_begin[m->n_slabs]; i++)
        m->memory[i] = RUBBISH;
    memset(m->made, 0, g->n_values);
    memset(m->awaited, 0, g->n_values);
    memset(m->lost, 0, g->n_values);
    for (mpl_value v = 0; v < g->n_values; v++) {
        m->bound[v] = (spot){MPL_NONE, 0};
        if (g->value_role[v] != MPL_INPUT && g->value_role[v] != MPL_WEIGHT)
            continue;
        tagged_make_new(m, FROM_OUTSIDE, v);
        tagged_where(m, v, &m->bound[v]);
        m->awaited[v] = m->map->value_buffer[v] != MPL_NONE && m->p->before == NULL;
        if (m->bound[v].slab != MPL_NONE && !m->awaited[v])
            memcpy(memory_at(m, m->bound[v]), truth_of(m, v), bytes_of(m, v) * sizeof *m->memory);
    }
    for (uint32_t i = 0; i < m->map->places->n; i++)
        m->final[i] = (spot){MPL_NONE, 0};
    for (mpl_op op = 0; op < g->n_ops; op++)
        m->taken[op] = UNDECIDED;
    memset(m->counted, 0, g->n_blocks);
    memset(m->done, 0, g->n_ops);
    memset(m->ran, 0, g->n_ops);
    m->settling = MPL_NONE;
    m->at = 0;
    m->begun = false;
    m->unit = MPL_NONE;
}

/* Advances to the next list of decisions; false after the last. */
static bool next_choices(machine *m)
{
    while (m->n_choices > 0 && m->choice[m->n_choices - 1] + 1 == m->of[m->n_choices - 1])
        m->n_choices--;
    if (m->n_choices > 0)
        m->choice[m->n_choices - 1]++;
    return m->n_choices > 0;
}

static void read_outputs(machine *m)
{
    m->unit = MPL_NONE;
    for (uint32_t i = 0; i < m->g->n_outputs; i++)
        tagged_find(m, m->g->output[i], "the caller");
}

static void count_rounds(machine *m)
{
    const mpl_graph *g = m->g;

    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_kind[op] == MPL_OP_while) {
            loop l = tagged_loop_of(m, op);
            bool open = l.in[1] != MPL_NONE || l.result[0] != MPL_NONE || is_open(m, &l);

            for (mpl_op exit = 0; exit < g->n_ops; exit++)
                open =
                    open || (g->op_block[exit] == l.body && g->op_kind[exit] == MPL_OP_exit_unless);
            m->most[op] = most_rounds(m, &l);
            m->fixed_rounds[op] = open ? -1 : m->most[op];
        }
}

static void run_all(machine *m)
{
    m->n_choices = 0;
    m->n_seen = 0;
    memset(m->seen, 0, MOST_SEEN * sizeof *m->seen);
    do {
        begin(m);
        m->verdict.too_many = m->verdict.too_many || m->verdict.executions++ >= MOST_EXECUTIONS;
        if (run_block(m, 0) == GO)
            read_outputs(m);
    } while (m->verdict.right && !m->verdict.too_many && next_choices(m));
    if (m->p->before != NULL && m->verdict.right && !m->verdict.too_many) {
        begin(m);
        (m->strict ? tagged_keep_all_apart : tagged_keep_apart)(m);
    }
}

tagged_verdict tagged_run(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                          const mpl_problem *p, const mpl_plan *plan)
{
    machine m = {.g = g, .map = map, .p = p, .plan = plan, .verdict = {.right = true}};

    m.n_arenas = mpl_plan_n_arenas(plan);
    m.n_slabs = m.n_arenas + g->n_values;
    assert_ok(ctx, mpl_new(ctx, m.slab_begin, m.n_slabs + 1));
    assert_ok(ctx, mpl_new(ctx, m.truth_begin, g->n_values + 1));
    tagged_lay_out(&m);
    assert_ok(ctx, mpl_new(ctx, m.memory, m.slab_begin[m.n_slabs]));
    assert_ok(ctx, mpl_new(ctx, m.truth, m.truth_begin[g->n_values]));
    assert_ok(ctx, mpl_new(ctx, m.made, g->n_values));
    assert_ok(ctx, mpl_new(ctx, m.bound, g->n_values));
    assert_ok(ctx, mpl_new(ctx, m.awaited, g->n_values));
    assert_ok(ctx, mpl_new(ctx, m.useful, g->n_values));
    assert_ok(ctx, mpl_new(ctx, m.lost, g->n_values));
    assert_ok(ctx, mpl_new(ctx, m.comes, g->n_values));
    assert_ok(ctx, mpl_new(ctx, m.ran, g->n_ops));
    assert_ok(ctx, mpl_new(ctx, m.most, g->n_ops));
    assert_ok(ctx, mpl_new(ctx, m.assumed, g->n_ops));
    memset(m.assumed, 0xff, g->n_ops * sizeof *m.assumed);
    assert_ok(ctx, mpl_new(ctx, m.fixed_rounds, g->n_ops));
    assert_ok(ctx, mpl_new(ctx, m.counted, g->n_blocks));
    assert_ok(ctx, mpl_new(ctx, m.round, g->n_blocks));
    assert_ok(ctx, mpl_new(ctx, m.done, g->n_ops));
    assert_ok(ctx, mpl_new(ctx, m.taken, g->n_ops));
    assert_ok(ctx, mpl_new(ctx, m.final, map->places->n));
    assert_ok(ctx, mpl_new(ctx, m.seen, MOST_SEEN));
    assert_ok(ctx, mpl_new(ctx, m.readers, m.slab_begin[m.n_slabs]));
    assert_ok(ctx, mpl_new(ctx, m.writers, m.slab_begin[m.n_slabs]));
    tagged_order_units(&m);
    tagged_mark_all(&m);
    count_rounds(&m);
    run_all(&m);
    m.verdict.by_rules = m.verdict.right;
    if (m.verdict.right && !m.verdict.too_many) {
        m.strict = true;
        run_all(&m);
        m.verdict.by_rules = m.verdict.right;
        m.verdict.right = true;
    }
    void *arrays[] = {m.slab_begin, m.truth_begin, m.memory,       m.truth,   m.made,  m.bound,
                      m.counted,    m.round,       m.done,         m.taken,   m.final, m.seen,
                      m.awaited,    m.useful,      m.readers,      m.writers, m.lost,  m.comes,
                      m.ran,        m.most,        m.fixed_rounds, m.assumed};
    MPL_FREE_ALL(ctx, arrays);
    return m.verdict;
}
