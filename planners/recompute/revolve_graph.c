/* revolve_graph.c -- the graph of loops that keep their tape in part. See revolve.h.
 *
 *     forward    round k: slots = scatter(slots, first[k], state), then as before
 *     backward   round j: while as many rounds as lack: slots = scatter(slots, to[at],
 * round(state)) then as before, with gather(slots, row) for the tape
 *
 * The tables first, lack, from and to are constants made from the schedule. A loop changes in what
 * it carries and scans; `change` says how, for both loops of a tape. */
#include "graphs/passes/copy.h"
#include "planners/recompute/rerun.h"
#include "planners/recompute/revolve.h"

/* The values that a copied loop carries and scans in addition, and those that it no longer has. */
typedef struct change {
    uint32_t n_carried, n_scans;
    mpl_value *init, *param, *next, *out; /* [n_carried] of the new graph */
    mpl_value scan[2], slice[2];          /* [n_scans] */
    const uint32_t *shown;                /* MPL_NONE: the scan stays. NULL: all do */
    const uint8_t *dropped;               /* rows that go; NULL: none does */
    bool named;                           /* the carried values are read after the loop */
} change;

typedef struct weaver {
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_graph *to;
    mpl_status st;               /* of the helpers below, which do nothing after a failure */
    mpl_value *map;              /* [n_values] */
    uint32_t *block;             /* [n_blocks] */
    change **of;                 /* [n_ops] of loops that change */
    uint32_t n_loops;            /* loops that change, each with two changes: forward, backward */
    const mpl_taped_loop **loop; /* [n_loops] */
    change *changes;             /* [2 * n_loops] */
} weaver;

/* ---- helpers ---- */

static mpl_value add_op(weaver *self, mpl_op_kind kind, const char *base, const char *suffix,
                        uint32_t n_in, const mpl_value *in, uint32_t n_attr, const mpl_attr *attr)
{
    char text[MPL_REPEAT_NAME];
    const char *name = mpl_repeat_name(self->g, self->to, base, suffix, NULL, text);
    mpl_value out = MPL_NONE;

    if (self->st == MPL_OK)
        self->st = mpl_graph_add_op(self->ctx, self->to, kind, name, n_in, in, n_attr, attr, 1,
                                    &name, &out);
    return out;
}

static mpl_value add_table(weaver *self, const char *base, const char *suffix, mpl_type type,
                           uint32_t n, const void *data)
{
    char text[MPL_REPEAT_NAME];
    mpl_value v = MPL_NONE;

    if (self->st == MPL_OK)
        self->st = mpl_graph_add_const(self->ctx, self->to,
                                       mpl_repeat_name(self->g, self->to, base, suffix, NULL, text),
                                       type, &(mpl_shape){n > 0, {n}}, data, false, &v);
    return v;
}

static mpl_value add_number(weaver *self, const char *base, const char *suffix, int64_t n)
{
    return add_table(self, base, suffix, MPL_TYPE_i64, 0, &n);
}

/* A parameter of the form of v, or of its slices. */
static mpl_value add_param(weaver *self, const char *base, const char *suffix, mpl_value v,
                           bool slice)
{
    char text[MPL_REPEAT_NAME];
    mpl_shape shape;
    mpl_value out = MPL_NONE;

    if (self->st != MPL_OK)
        return MPL_NONE;
    shape = self->to->value_shape[v];
    if (slice)
        memmove(shape.dim, shape.dim + 1, --shape.rank * sizeof *shape.dim);
    self->st = mpl_graph_add_param(self->ctx, self->to,
                                   mpl_repeat_name(self->g, self->to, base, suffix, NULL, text),
                                   (mpl_type)self->to->value_type[v], &shape, &out);
    return out;
}

static mpl_value binary(weaver *self, mpl_op_kind kind, const char *base, const char *suffix,
                        mpl_value a, mpl_value b)
{
    return add_op(self, kind, base, suffix, 2, (mpl_value[]){a, b}, 0, NULL);
}

static mpl_value row_of(weaver *self, const char *base, const char *suffix, mpl_value whole,
                        mpl_value at)
{
    return add_op(self, MPL_OP_gather, base, suffix, 2, (mpl_value[]){whole, at}, 1,
                  &MPL_INT(axis, 0));
}

/* Dims of `state` after a first one. */
static mpl_shape stacked(const weaver *self, mpl_value state, int64_t rows)
{
    mpl_shape s = self->to->value_shape[state];

    memmove(s.dim + 1, s.dim, s.rank++ * sizeof *s.dim);
    s.dim[0] = rows;
    return s;
}

/* The slots with `state` in row `at`, a number. */
static mpl_value put_row(weaver *self, const char *base, mpl_value slots, mpl_value at,
                         mpl_value state)
{
    mpl_value in[3] = {slots};
    mpl_shape s;

    if (self->st != MPL_OK)
        return MPL_NONE;
    s = stacked(self, state, 1);
    in[1] = add_op(self, MPL_OP_reshape, base, ".at", 1, &at, 1,
                   &MPL_INTS(shape, 2, ((const int64_t[]){1, 1})));
    in[2] =
        add_op(self, MPL_OP_reshape, base, ".state", 1, &state, 1, &MPL_INTS(shape, s.rank, s.dim));
    return add_op(self, MPL_OP_scatter_nd, base, ".slots", 3, in, 0, NULL);
}

/* ---- changed loops ---- */

static bool is_gone(const uint32_t *shown, uint32_t i)
{
    return shown != NULL && shown[i] != MPL_NONE;
}

static mpl_status open_changed(weaver *self, mpl_op op, change *c)
{
    const mpl_graph *g = self->g;
    uint32_t b = mpl_op_first_body(g, op), n = mpl_n_carried(g, op);
    const char *base = g->op_name[op];

    MPL_PASS(mpl_graph_open_block(self->ctx, self->to, g->block_name[b], &self->block[b]));
    for (uint32_t i = 0; i <= g->block_n_params[b]; i++) {
        for (uint32_t k = 0; k < c->n_carried && i == 1 + n; k++)
            c->param[k] = add_param(self, base, ".carried", c->init[k], false);
        if (i < g->block_n_params[b] && !(i > n && is_gone(c->shown, i - 1 - n)) &&
            self->st == MPL_OK) {
            mpl_value v = mpl_param(g, b, i);

            self->st =
                mpl_graph_add_param(self->ctx, self->to, g->value_name[v],
                                    (mpl_type)g->value_type[v], &g->value_shape[v], &self->map[v]);
        }
    }
    for (uint32_t k = 0; k < c->n_scans; k++)
        c->slice[k] = add_param(self, base, ".entry", c->scan[k], true);
    return self->st;
}

static mpl_status close_changed(weaver *self, mpl_op op, const change *c)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint32_t b = mpl_op_first_body(g, op), n = 1 + mpl_n_carried(g, op), at = 0;
    mpl_value *result = NULL;

    MPL_TRY(mpl_new(self->ctx, result, (size_t)g->block_n_results[b] + c->n_carried));
    for (uint32_t i = 0; i <= g->block_n_results[b]; i++) {
        for (uint32_t k = 0; k < c->n_carried && i == n; k++)
            result[at++] = c->next[k];
        if (i < g->block_n_results[b] && !(i >= n && c->dropped != NULL && c->dropped[i - n]))
            result[at++] =
                mpl_result(g, b, i) != MPL_NONE ? self->map[mpl_result(g, b, i)] : MPL_NONE;
    }
    MPL_TRY(mpl_graph_close_block(self->ctx, self->to, at, result));
out:
    mpl_free(self->ctx, result);
    return st;
}

/* Inputs of the new loop; flag[]: of its scans. */
static uint32_t gather_in(const weaver *self, mpl_op op, const change *c, mpl_value *in,
                          int64_t *flag, uint32_t *n_flags)
{
    const mpl_graph *g = self->g;
    uint32_t first = 2 + mpl_n_carried(g, op), n = 0, n_old;
    const int64_t *old = mpl_attr_ints(g, op, MPL_ATTR_scan_reverse, &n_old);

    for (uint32_t i = 0; i <= mpl_op_n_in(g, op); i++) {
        for (uint32_t k = 0; k < c->n_carried && i == first; k++)
            in[n++] = c->init[k];
        if (i == mpl_op_n_in(g, op) || (i >= first && is_gone(c->shown, i - first)))
            continue;
        if (i >= first)
            flag[(*n_flags)++] = n_old > 0 ? old[i - first] : 0;
        in[n++] = mpl_op_input(g, op, i) != MPL_NONE ? self->map[mpl_op_input(g, op, i)] : MPL_NONE;
    }
    for (uint32_t k = 0; k < c->n_scans; k++) {
        flag[(*n_flags)++] = 0;
        in[n++] = c->scan[k];
    }
    return n;
}

/* Outputs of the new loop: which value of the old graph each is, or MPL_NONE; flag[]: of its rows.
 */
static uint32_t list_out(const weaver *self, mpl_op op, const change *c, mpl_value *old_out,
                         int64_t *flag, uint32_t *n_flags)
{
    const mpl_graph *g = self->g;
    uint32_t first = mpl_n_carried(g, op), n = 0, n_old, n_scans = mpl_op_n_in(g, op) - 2 - first;
    const int64_t *old = mpl_attr_ints(g, op, MPL_ATTR_scan_reverse, &n_old);

    for (uint32_t i = 0; i <= mpl_op_n_out(g, op); i++) {
        for (uint32_t k = 0; k < c->n_carried && i == first; k++)
            old_out[n++] = MPL_NONE;
        if (i == mpl_op_n_out(g, op) || (i >= first && c->dropped != NULL && c->dropped[i - first]))
            continue;
        if (i >= first)
            flag[(*n_flags)++] = n_old > 0 ? old[n_scans + i - first] : 0;
        old_out[n++] = mpl_op_output(g, op, i);
    }
    return n;
}

static mpl_status add_changed(weaver *self, mpl_op op, change *c)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    size_t most = (size_t)mpl_op_n_in(g, op) + mpl_op_n_out(g, op) + c->n_carried + c->n_scans;
    uint32_t n = mpl_n_carried(g, op), n_in, n_out, n_flags = 0, number = 1;
    mpl_value *in = NULL, *out = NULL, *old = NULL;
    int64_t *flag = NULL;
    const char **name = NULL;
    char(*text)[MPL_REPEAT_NAME] = NULL;
    mpl_attr attr[3] = {MPL_INT(carried, n + c->n_carried)};
    uint32_t n_attr = 1;

    MPL_TRY(mpl_new_each(self->ctx, most, in, out, old, flag, name));
    MPL_TRY(mpl_new(self->ctx, text, c->n_carried));
    n_in = gather_in(self, op, c, in, flag, &n_flags);
    n_out = list_out(self, op, c, old, flag, &n_flags);
    attr[n_attr++] = MPL_INTS(scan_reverse, n_flags, flag);
    if (mpl_attr_get(g, op, MPL_ATTR_trips, &attr[n_attr]))
        n_attr++;
    for (uint32_t i = 0; i < n_out; i++)
        name[i] = old[i] != MPL_NONE ? g->value_name[old[i]] : NULL;
    for (uint32_t k = 0; k < c->n_carried && c->named; k++)
        name[n + k] = mpl_repeat_name(g, self->to, g->op_name[op], ".kept", &number, text[k]);
    MPL_TRY(mpl_graph_add_control(self->ctx, self->to, MPL_OP_while, g->op_name[op], n_in, in,
                                  n_attr, attr, 1, &self->block[mpl_op_first_body(g, op)], n_out,
                                  name, out));
    for (uint32_t i = 0; i < n_out; i++)
        if (old[i] != MPL_NONE)
            self->map[old[i]] = out[i];
    for (uint32_t k = 0; k < c->n_carried; k++)
        c->out[k] = out[n + k];
out:
    mpl_free_each(self->ctx, in, out, old, flag, name, text);
    return st;
}

/* ---- rounds that run again ---- */

/* Numbers and tables of one loop's way back. */
typedef struct tables {
    mpl_value zero, one, last, to;
    int64_t most; /* rounds that run again before one reversal, at most */
} tables;

/* Slices that a round of the forward loop has, taken by its number. */
static void take_slices(weaver *self, const mpl_taped_loop *loop, const tables *t, mpl_value round,
                        mpl_value *map)
{
    const mpl_graph *g = self->g;
    uint32_t b = mpl_op_first_body(g, loop->forward), n = mpl_n_carried(g, loop->forward), n_flags;
    const int64_t *flag = mpl_attr_ints(g, loop->forward, MPL_ATTR_scan_reverse, &n_flags);

    for (uint32_t i = 1 + n; i < g->block_n_params[b]; i++) {
        mpl_value slice = mpl_param(g, b, i), at = round;
        bool read = false;

        for (uint32_t u = g->value_use_begin[slice]; u < g->value_use_begin[slice + 1]; u++)
            read = read || loop->makes[g->value_use[u]];
        for (uint32_t k = 0; k < loop->n_states; k++) /* a state may be the slice itself */
            read = read || mpl_result(g, b, 1 + loop->state[k]) == slice;
        if (!read)
            continue;
        if (n_flags > 0 && flag[i - 1 - n] != 0)
            at = binary(self, MPL_OP_sub, g->op_name[loop->forward], ".from_end", t->last, round);
        map[slice] = row_of(self, g->value_name[slice], ".again",
                            self->map[mpl_op_input(g, loop->forward, 1 + i)], at);
    }
}

/* The body of the loop that runs rounds again. Carries the row of the state at hand, the place in
 * the table of rows, and the slots. */
static mpl_status again_body(weaver *self, const mpl_taped_loop *loop, const change *c,
                             const tables *t, mpl_value first, mpl_value *map, uint32_t *id)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint32_t b = mpl_op_first_body(g, loop->forward), n = loop->n_states;
    const char *base = g->op_name[loop->forward];
    char text[MPL_REPEAT_NAME];
    mpl_value *result = NULL, *block_slots = NULL, i, row, at, to;
    uint32_t *block = NULL;

    MPL_TRY(mpl_new_each(self->ctx, (size_t)n + 3, result, block_slots));
    MPL_TRY(mpl_new(self->ctx, block, g->n_blocks));
    MPL_TRY(mpl_graph_open_block(
        self->ctx, self->to, mpl_repeat_name(g, self->to, g->block_name[b], ".rounds", NULL, text),
        id));
    i = add_param(self, base, ".again", t->zero, false);
    row = add_param(self, base, ".row", c->slice[1], false);
    at = add_param(self, base, ".place", t->zero, false);
    for (uint32_t k = 0; k < n; k++)
        block_slots[k] = add_param(self, base, ".carried", c->init[1 + k], false);
    map[mpl_param(g, b, 0)] = binary(self, MPL_OP_add, base, ".round", first, i);
    take_slices(self, loop, t, map[mpl_param(g, b, 0)], map);
    for (uint32_t k = 0; k < n; k++) {
        mpl_value state = mpl_param(g, b, 1 + loop->state[k]);

        map[state] = row_of(self, g->value_name[state], ".again", block_slots[k], row);
    }
    MPL_TRY(self->st);
    for (mpl_op op = g->block_op_begin[b]; op < g->block_op_end[b]; op++)
        if (g->op_block[op] == b && loop->makes[op])
            MPL_TRY(mpl_repeat_op(self->ctx, g, op, self->to, map, block));
    to = row_of(self, base, ".row", t->to, at);
    result[0] = MPL_NONE, result[1] = to;
    result[2] = binary(self, MPL_OP_add, base, ".place", at, t->one);
    for (uint32_t k = 0; k < n; k++)
        result[3 + k] =
            put_row(self, base, block_slots[k], to, map[mpl_result(g, b, 1 + loop->state[k])]);
    MPL_TRY(self->st);
    MPL_TRY(mpl_graph_close_block(self->ctx, self->to, n + 3, result));
out:
    mpl_free_each(self->ctx, result, block_slots, block);
    return st;
}

/* Begins the backward body: makes the state that its round needs. */
static mpl_status run_again(weaver *self, const mpl_taped_loop *loop, change *c, const tables *t)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint32_t n = loop->n_states, number = 1, body, b = mpl_op_first_body(g, loop->backward),
             carried = mpl_n_carried(g, loop->backward);
    const char *base = g->op_name[loop->forward], **name = NULL;
    char(*text)[MPL_REPEAT_NAME] = NULL;
    mpl_value *map = NULL, *in = NULL, *out = NULL, first, round;

    MPL_TRY(mpl_new(self->ctx, map, g->n_values));
    MPL_TRY(mpl_new_each(self->ctx, (size_t)n + 5, in, out, name, text));
    memcpy(map, self->map, g->n_values * sizeof *map);
    round = binary(self, MPL_OP_sub, base, ".at", t->last, self->map[mpl_param(g, b, 0)]);
    first = binary(self, MPL_OP_sub, base, ".first", round, c->slice[0]);
    MPL_TRY(self->st);
    MPL_TRY(again_body(self, loop, c, t, first, map, &body));
    in[0] = c->slice[0], in[1] = MPL_NONE, in[2] = c->slice[1], in[3] = c->param[0];
    for (uint32_t k = 0; k < n; k++)
        in[4 + k] = c->param[1 + k];
    for (uint32_t k = 0; k < n + 2; k++)
        name[k] = mpl_repeat_name(g, self->to, base, ".again", &number, text[k]);
    MPL_TRY(mpl_graph_add_control(self->ctx, self->to, MPL_OP_while,
                                  mpl_repeat_name(g, self->to, base, ".again", NULL, text[n + 2]),
                                  n + 4, in, 2,
                                  (mpl_attr[]){MPL_INT(carried, n + 2), MPL_INT(trips, t->most)}, 1,
                                  &body, n + 2, name, out));
    c->next[0] = out[1];
    for (uint32_t k = 0; k < n; k++)
        c->next[1 + k] = out[2 + k];
    for (uint32_t i = 0; 1 + carried + i < g->block_n_params[b]; i++)
        if (loop->shown[i] != MPL_NONE)
            self->map[mpl_param(g, b, 1 + carried + i)] =
                row_of(self, g->value_name[mpl_param(g, b, 1 + carried + i)], ".row",
                       out[2 + loop->shown[i]], out[0]);
    st = self->st;
out:
    mpl_free_each(self->ctx, map, in, out, name, text);
    return st;
}

/* ---- both loops of a tape ---- */

/* The slots begin as the first state in each row. */
static mpl_status begin_forward(weaver *self, const mpl_taped_loop *loop, change *c)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    const mpl_schedule *schedule = &loop->schedule;
    uint32_t b = mpl_op_first_body(g, loop->forward);
    const char *base = g->op_name[loop->forward];
    int32_t *first = NULL;

    MPL_TRY(mpl_new(self->ctx, first, schedule->n_rounds));
    for (uint32_t i = 0; schedule->action[i].step == MPL_ADVANCE; i++)
        for (uint32_t k = schedule->action[i].from + 1; k <= schedule->action[i].to; k++)
            first[k] = (int32_t)schedule->action[i].store;
    c->scan[0] = add_table(self, base, ".first", MPL_TYPE_i32, schedule->n_rounds, first);
    for (uint32_t k = 0; k < loop->n_states && self->st == MPL_OK; k++) {
        mpl_value init = self->map[mpl_op_input(g, loop->forward, 2 + loop->state[k])];
        mpl_shape shape = stacked(self, init, schedule->n_rows);

        c->init[k] = add_op(self, MPL_OP_expand, base, ".slots", 1, &init, 1,
                            &MPL_INTS(shape, shape.rank, shape.dim));
    }
    MPL_TRY(self->st);
    MPL_TRY(open_changed(self, loop->forward, c));
    for (uint32_t k = 0; k < loop->n_states; k++)
        c->next[k] = put_row(self, base, c->param[k], c->slice[0],
                             self->map[mpl_param(g, b, 1 + loop->state[k])]);
    st = self->st;
out:
    mpl_free(self->ctx, first);
    return st;
}

/* Turns what follows the first reversal into tables: rounds that each reversal lacks, the row that
 * it goes on from, and the row of each state that is made. */
static mpl_status add_tables(weaver *self, const mpl_taped_loop *loop, change *c, tables *t)
{
    mpl_status st = MPL_OK;
    const mpl_schedule *schedule = &loop->schedule;
    const char *base = self->g->op_name[loop->forward];
    int64_t *lack = NULL;
    int32_t *from = NULL, *to = NULL;
    uint32_t n = 0, j = 0, i = 0;

    MPL_TRY(mpl_new_each(self->ctx, schedule->n_rounds, lack, from));
    MPL_TRY(mpl_new(self->ctx, to, (size_t)schedule->n_forward + 1));
    while (schedule->action[i].step == MPL_ADVANCE) /* the forward loop did these */
        i++;
    for (; i < schedule->n_actions; i++) {
        const mpl_schedule_action *action = &schedule->action[i];

        if (lack[j] == 0)
            from[j] = (int32_t)action->row;
        if (action->step == MPL_REVERSE) {
            t->most = lack[j] > t->most ? lack[j] : t->most;
            j++;
            continue;
        }
        lack[j] += action->to - action->from;
        for (uint32_t k = action->from; k < action->to; k++)
            to[n++] = (int32_t)action->store;
    }
    t->to = add_table(self, base, ".to", MPL_TYPE_i32, n > 0 ? n : 1, to);
    t->zero = add_number(self, base, ".zero", 0);
    t->one = add_number(self, base, ".one", 1);
    t->last = add_number(self, base, ".last", (int64_t)schedule->n_rounds - 1);
    c->scan[0] = add_table(self, base, ".lack", MPL_TYPE_i64, schedule->n_rounds, lack);
    c->scan[1] = add_table(self, base, ".from", MPL_TYPE_i32, schedule->n_rounds, from);
    st = self->st;
out:
    mpl_free_each(self->ctx, lack, from, to);
    return st;
}

static mpl_status begin_backward(weaver *self, const mpl_taped_loop *loop, const change *forward,
                                 change *c)
{
    tables t = {.most = 0};

    MPL_PASS(add_tables(self, loop, c, &t));
    c->init[0] = t.zero;
    for (uint32_t k = 0; k < loop->n_states; k++)
        c->init[1 + k] = forward->out[k];
    MPL_PASS(open_changed(self, loop->backward, c));
    return run_again(self, loop, c, &t);
}

/* Whoever waits for a tape waits for its loop. */
static void replace_tapes(weaver *self, const mpl_taped_loop *loop, const change *c)
{
    const mpl_graph *g = self->g;
    uint32_t n = mpl_n_carried(g, loop->forward);

    for (uint32_t i = n; i < mpl_op_n_out(g, loop->forward); i++)
        if (loop->dropped[i - n])
            self->map[mpl_op_output(g, loop->forward, i)] = c->out[0];
}

static mpl_status new_change(weaver *self, mpl_op op, uint32_t n_carried, uint32_t n_scans,
                             change *c)
{
    c->n_carried = n_carried;
    c->n_scans = n_scans;
    self->of[op] = c;
    return mpl_new_each(self->ctx, n_carried, c->init, c->param, c->next, c->out);
}

static mpl_status prepare(weaver *self, const mpl_taped_loops *loops)
{
    const mpl_graph *g = self->g;

    MPL_PASS(mpl_new(self->ctx, self->map, g->n_values));
    MPL_PASS(mpl_new(self->ctx, self->block, g->n_blocks));
    MPL_PASS(mpl_new(self->ctx, self->of, g->n_ops));
    MPL_PASS(mpl_new(self->ctx, self->loop, loops->n));
    MPL_PASS(mpl_new(self->ctx, self->changes, 2 * (size_t)loops->n));
    for (uint32_t k = 0; k < loops->n; k++) {
        const mpl_taped_loop *loop = &loops->loop[k];
        change *c = &self->changes[2 * self->n_loops];

        if (loop->schedule.n_rows == 0 || loop->schedule.n_rows >= loop->n_rounds)
            continue;
        self->loop[self->n_loops++] = loop;
        MPL_PASS(new_change(self, loop->forward, loop->n_states, 1, &c[0]));
        MPL_PASS(new_change(self, loop->backward, 1 + loop->n_states, 2, &c[1]));
        c[0].dropped = loop->dropped;
        c[0].named = true;
        c[1].shown = loop->shown;
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_op[v] == MPL_NONE && g->value_role[v] != MPL_PARAMETER)
            MPL_PASS(mpl_repeat_source(self->ctx, g, v, false, self->to, &self->map[v]));
    return MPL_OK;
}

static mpl_status copy_item(weaver *self, mpl_item item, const mpl_walk *at)
{
    const mpl_graph *g = self->g;
    mpl_op op = item == MPL_ITEM_OP ? at->op : g->block_owner[at->block];
    change *c = op != MPL_NONE ? self->of[op] : NULL;
    uint32_t k = c != NULL ? (uint32_t)(c - self->changes) : 0;

    if (item == MPL_ITEM_VALUE)
        return MPL_OK;
    if (item == MPL_ITEM_OPEN && c == NULL)
        return mpl_copy_open(self->ctx, g, at->block, self->to, self->map, &self->block[at->block]);
    if (item == MPL_ITEM_OPEN)
        return k % 2 == 0 ? begin_forward(self, self->loop[k / 2], c)
                          : begin_backward(self, self->loop[k / 2], c - 1, c);
    if (item == MPL_ITEM_CLOSE)
        return c == NULL ? mpl_copy_close(self->ctx, g, at->block, self->to, self->map)
                         : close_changed(self, op, c);
    if (c == NULL)
        return mpl_copy_op(self->ctx, g, op, self->to, self->map, self->block);
    MPL_PASS(add_changed(self, op, c));
    if (k % 2 == 0)
        replace_tapes(self, self->loop[k / 2], c);
    return MPL_OK;
}

mpl_status mpl_taped_graph(mpl_ctx *ctx, const mpl_graph *g, const mpl_taped_loops *loops,
                           mpl_graph **out)
{
    mpl_status st = MPL_OK;
    weaver w = {.ctx = ctx, .g = g};
    mpl_walk walk = mpl_walk_begin();
    mpl_item item;

    MPL_TRY(mpl_graph_new(ctx, g->name, &w.to));
    MPL_TRY(prepare(&w, loops));
    while ((item = mpl_walk_next(g, &walk)) != MPL_ITEM_END)
        MPL_TRY(copy_item(&w, item, &walk));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        MPL_TRY(mpl_graph_add_output(ctx, w.to, w.map[g->output[i]]));
    MPL_TRY(mpl_graph_finish(ctx, w.to));
    MPL_TRY(mpl_graph_check_updates(ctx, w.to));
    *out = w.to, w.to = NULL;
out:
    mpl_graph_free(ctx, w.to);
    for (uint32_t k = 0; k < 2 * w.n_loops; k++)
        mpl_free_each(ctx, w.changes[k].init, w.changes[k].param, w.changes[k].next,
                      w.changes[k].out);
    mpl_free_each(ctx, w.map, w.block, w.of, (void *)w.loop, w.changes);
    return st;
}
