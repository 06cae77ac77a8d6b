/* verify_flow.c -- the verifier of control flow. See mpl_verify_places in verify.h.
 *
 * Idea     A forward must-analysis: for each step of the program and each class of rounds of the
 *          loops around it, the values whose contents certainly stand in their places. A write
 *          destroys all values that may overlap it. Where two paths meet, only values that stand on
 *          both remain. Each read must find its value standing. Between rounds, and into and out of
 *          blocks, only what is flagged as copied moves; everything else must have one address on
 *          both sides.
 * Source   this project; the analysis is available expressions (Aho, Lam, Sethi, Ullman, Compilers,
 *          9.2.6), with memory for subexpressions.
 * Cost     O(states * values * writes) at worst; a bit for each state and value. */
#include "planners/verify/verify_flow_state.h"

/* ---- operations ---- */

/* Whether two views of one value have no byte in common. */
static bool apart(const mpl_flow_run *run, mpl_value a, mpl_value b)
{
    const uint64_t *offset = run->map.map->value_offset, *bytes = run->g->value_bytes;

    return offset != NULL &&
           (offset[a] + bytes[a] <= offset[b] || offset[b] + bytes[b] <= offset[a]);
}

/* Whether the operator allows output 0 to overwrite input i. */
static bool may_overwrite(const mpl_flow_run *run, mpl_op op, uint32_t i)
{
    const mpl_graph *g = run->g;
    unsigned traits = mpl_op_table[g->op_kind[op]].traits;
    const mpl_value *in = g->op_in + g->op_in_begin[op];
    mpl_value out = mpl_op_output(g, op, 0);
    uint32_t n_in = mpl_op_n_in(g, op);

    if (!mpl_op_overwrites(g, op, i) || g->value_type[in[i]] != g->value_type[out] ||
        g->value_bytes[in[i]] != g->value_bytes[out] ||
        ((traits & MPL_VIEW) == 0 &&
         !mpl_shape_equal(&g->value_shape[in[i]], &g->value_shape[out])))
        return false;
    /* the same input as another operand: allowed only if both are read before the write */
    for (uint32_t k = 0; k < n_in; k++)
        if (k != i && in[k] != MPL_NONE &&
            mpl_flow_holder(&run->map, in[k]) == mpl_flow_holder(&run->map, in[i]) &&
            !apart(run, in[k], in[i]) &&
            (!mpl_op_reads_along(g, op, k) ||
             !mpl_shape_equal(&g->value_shape[in[k]], &g->value_shape[in[i]])))
            return false;
    return true;
}

/* Output o of op, at w, may overlap no input except one that it overwrites in place. */
static mpl_status check_inputs(mpl_flow_run *run, mpl_op op, uint32_t o, mpl_where w)
{
    const mpl_graph *g = run->g;
    const mpl_flow_spots *there;
    char rounds[200];
    bool same;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++) {
        mpl_value v = g->op_in[i];

        if (v == MPL_NONE || v == mpl_updated(g, op, o - g->op_out_begin[op]))
            continue;
        run->spots.n = 0;
        MPL_PASS(mpl_where_spots(&run->map, w, g->value_bytes[g->op_out[o]], &run->spots));
        run->other.n = 0;
        MPL_PASS(mpl_where_spots(&run->map, mpl_flow_where(&run->map, v), g->value_bytes[v],
                                 &run->other));
        there = &run->other;
        if (!mpl_flow_overlap(&run->spots, there))
            continue;
        same = mpl_flow_meet_at_begins(run, there, g->value_bytes[v]);
        if (!same)
            MPL_PASS(mpl_where_same(&run->map, w, mpl_flow_where(&run->map, v), &same));
        if (!same || o != g->op_out_begin[op] || !may_overwrite(run, op, i - g->op_in_begin[op]))
            return MPL_ERROR(run->ctx, MPL_EINVALID,
                             "'%.80s' writes '%.80s'%s over '%.80s', which it still reads",
                             g->op_name[op], g->value_name[g->op_out[o]],
                             mpl_flow_rounds_text(run, rounds), g->value_name[v]);
    }
    return MPL_OK;
}

/* The workspace must not overlap anything that the operation reads or writes. */
static mpl_status use_workspace(mpl_flow_run *run, mpl_op op)
{
    const mpl_graph *g = run->g;
    mpl_buffer b = run->map.map->op_workspace != NULL ? run->map.map->op_workspace[op] : MPL_NONE;
    mpl_where w = {.kind = MPL_WHERE_BUFFER, .id = b};
    const mpl_flow_spots *there;

    if (b == MPL_NONE)
        return MPL_OK;
    run->spots.n = 0;
    MPL_PASS(mpl_where_spots(&run->map, w, run->map.p->bytes[b], &run->spots));
    for (int side = 0; side < 2; side++) {
        const uint32_t *begin = side == 0 ? g->op_in_begin : g->op_out_begin;

        for (uint32_t i = begin[op]; i < begin[op + 1]; i++) {
            mpl_value v = side == 0 ? g->op_in[i] : g->op_out[i];

            if (v == MPL_NONE)
                continue;
            MPL_PASS(mpl_flow_spots_of(run, mpl_flow_holder(&run->map, v), &there));
            if (mpl_flow_overlap(&run->spots, there))
                return MPL_ERROR(run->ctx, MPL_EINVALID,
                                 "the workspace of '%.80s' lies on its operand '%.80s'",
                                 g->op_name[op], g->value_name[v]);
        }
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        if (mpl_bit_has(run->now, v)) {
            MPL_PASS(mpl_flow_spots_of(run, v, &there));
            if (mpl_flow_overlap(&run->spots, there))
                mpl_flow_set(run->now, v, false), run->killer[v] = MPL_NONE;
        }
    return MPL_OK;
}

/* A concat whose parts were made inside it stands if all of them do. */
static void join_parts(mpl_flow_run *run, mpl_op op)
{
    const mpl_graph *g = run->g;
    mpl_value out = mpl_op_output(g, op, 0);
    bool all = true;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        all = all && mpl_flow_stands(run, run->now, g->op_in[i]);
    run->killer[out] = MPL_NONE;
    mpl_flow_set(run->now, out, all);
}

static mpl_status plain_op(mpl_flow_run *run, mpl_op op)
{
    const mpl_graph *g = run->g;

    if (mpl_flow_idle(&run->map, op)) {
        if (g->op_kind[op] == MPL_OP_concat)
            join_parts(run, op);
        return MPL_OK;
    }
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++)
        MPL_PASS(mpl_flow_need(run, run->now, g->op_in[i], g->op_name[op]));
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        if (g->op_out[i] != MPL_NONE)
            MPL_PASS(check_inputs(run, op, i, mpl_flow_where(&run->map, g->op_out[i])));
    MPL_PASS(use_workspace(run, op));
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        mpl_value v = g->op_out[i];

        if (v != MPL_NONE && g->value_bytes[v] > 0 && mpl_flow_holder(&run->map, v) == v)
            MPL_PASS(mpl_flow_write(run, run->now, v, mpl_flow_where(&run->map, v), true));
    }
    return MPL_OK;
}

/* ---- cases ---- */

/* In `state`, outputs of a case take over from[] of branch `taken`: 1 .. n, or n + 1 for none. */
static mpl_status hand_out(mpl_flow_run *run, mpl_op op, uint64_t *state, const mpl_value *from,
                           const uint8_t *copied, uint32_t taken)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = run->g;

    for (uint32_t i = 0; i < mpl_op_n_out(g, op); i++) {
        mpl_value out = mpl_op_output(g, op, i);

        if (out == MPL_NONE || from[i] == MPL_NONE || g->value_bytes[out] == 0)
            continue;
        run->map.taken[op] = taken;
        st = mpl_flow_hand_on(run, state, out, mpl_flow_where(&run->map, out),
                              mpl_flow_where(&run->map, from[i]),
                              mpl_flow_stands(run, state, from[i]), copied[i] != 0);
        run->map.taken[op] = 0;
        MPL_TRY(st);
    }
out:
    return st;
}

/* Enters each branch, and none, with state run->after. */
static mpl_status enter_case(mpl_flow_run *run, mpl_op op)
{
    const mpl_graph *g = run->g;
    uint32_t in = g->op_in_begin[op], n = g->op_body_begin[op + 1] - g->op_body_begin[op];

    MPL_PASS(mpl_flow_need(run, run->after, g->op_in[in], g->op_name[op]));
    mpl_flow_forget(run, run->after, op);
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        MPL_PASS(mpl_flow_arrive(run, run->program->begin_step[g->op_body[k]], run->after));
    if (g->op_in_begin[op + 1] == in + 1 && g->op_out_begin[op] < g->op_out_begin[op + 1])
        return MPL_OK; /* an error of the run: no states follow */
    for (uint32_t i = in + 1; i < g->op_in_begin[op + 1]; i++)
        MPL_PASS(mpl_flow_receive(run, run->after, g->op_in[i]));
    MPL_PASS(hand_out(run, op, run->after, g->op_in + in + 1,
                      run->map.map->places->in_copied + in + 1, n + 1));
    return mpl_flow_arrive(run, run->program->op_step[op], run->after);
}

static mpl_status end_branch(mpl_flow_run *run, uint32_t block)
{
    const mpl_graph *g = run->g;
    mpl_op op = g->block_owner[block];
    uint32_t at = g->block_result_begin[block], taken = 1;

    while (g->op_body[g->op_body_begin[op] + taken - 1] != block)
        taken++;
    MPL_PASS(hand_out(run, op, run->now, g->block_result + at,
                      run->map.map->places->result_copied + at, taken));
    mpl_flow_leave_block(run, run->now, block);
    return mpl_flow_arrive(run, run->program->op_step[op], run->now);
}

/* ---- the program ---- */

/* Goes from one step to the next. Owners of blocks enter them. */
static mpl_status go_on(mpl_flow_run *run, uint32_t step)
{
    const mpl_program *program = run->program;
    mpl_op op;

    if (step == program->n_steps) {
        for (uint32_t i = 0; i < run->g->n_outputs; i++)
            MPL_PASS(mpl_flow_need(run, run->now, run->g->output[i], "the caller"));
        return MPL_OK;
    }
    memcpy(run->after, run->now, run->n_words * sizeof *run->after);
    if (program->kind[step] != MPL_STEP_BEGIN) {
        return mpl_flow_arrive(run, step, run->after);
    }
    MPL_PASS(mpl_flow_receive_all(run, run->after, step));
    op = run->g->block_owner[program->of[step]];
    return run->g->op_kind[op] == MPL_OP_while ? mpl_flow_enter_loop(run, op) : enter_case(run, op);
    return MPL_OK;
}

static mpl_status run_op(mpl_flow_run *run, uint32_t step, mpl_op op)
{
    const mpl_graph *g = run->g;

    if ((mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) == 0) {
        MPL_PASS(plain_op(run, op));
    } else if (g->op_kind[op] == MPL_OP_exit_unless) {
        MPL_PASS(mpl_flow_need(run, run->now, mpl_op_input(g, op, 0), g->op_name[op]));
        memcpy(run->after, run->now, run->n_words * sizeof *run->after);
        MPL_PASS(mpl_flow_exit_loop(run, g->op_block[op]));
    } else {
        mpl_flow_set(run->now, mpl_flow_ran(run, op), true);
    }
    return go_on(run, step + 1);
}

static mpl_status run_step(mpl_flow_run *run, uint32_t step)
{
    uint32_t of = run->program->of[step];

    MPL_PASS(mpl_flow_receive_all(run, run->now, step));
    switch ((mpl_step_kind)run->program->kind[step]) {
    case MPL_STEP_OP:
        return run_op(run, step, of);
    case MPL_STEP_BEGIN:
        if (mpl_flow_is_loop(run, of))
            MPL_PASS(mpl_flow_begin_round(run, of));
        return go_on(run, step + 1);
    case MPL_STEP_END:
        return mpl_flow_is_loop(run, of) ? mpl_flow_end_round(run, of) : end_branch(run, of);
    }
    return MPL_OK;
}

/* ---- setting up ---- */

/* Derives the order of the operations from their steps. */
static mpl_status make_program(mpl_flow_run *run)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = run->g;
    const uint32_t *step_of = run->map.map->step_of;
    size_t n_steps = (size_t)g->n_ops + 2 * ((size_t)g->n_blocks - 1);
    mpl_op *at = NULL, *order = NULL;
    uint32_t n = 0;

    MPL_TRY(mpl_new(run->ctx, at, n_steps));
    MPL_TRY(mpl_new(run->ctx, order, g->n_ops));
    if (n_steps > 0)
        memset(at, 0xff, n_steps * sizeof *at);
    for (mpl_op op = 0; op < g->n_ops; op++) {
        if (step_of[op] >= n_steps || at[step_of[op]] != MPL_NONE)
            MPL_FAIL(run->ctx, MPL_EINVALID, "operation '%.80s' has no step of its own",
                     g->op_name[op]);
        at[step_of[op]] = op;
    }
    for (size_t step = 0; step < n_steps; step++)
        if (at[step] != MPL_NONE)
            order[n++] = at[step];
    MPL_TRY(mpl_program_new(run->ctx, g, order, &run->program));
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (run->program->op_step[op] != step_of[op])
            MPL_FAIL(run->ctx, MPL_EINVALID,
                     "operation '%.80s' is said to run at step %u, and runs at step %u",
                     g->op_name[op], step_of[op], run->program->op_step[op]);
out:
    mpl_free_each(run->ctx, at, order);
    return st;
}

/* The step before which a value read at `step` of block b arrives; in loops, the outermost begin.
 */
static uint32_t arrival_step(const mpl_flow_run *run, uint32_t b, uint32_t step)
{
    for (; b != MPL_NONE && b != 0; b = run->g->block_parent[b])
        if (mpl_flow_is_loop(run, b))
            step = run->program->begin_step[b];
    return step;
}

/* Counts or records that value v is read there. */
static void note_arrival(mpl_flow_run *run, mpl_value v, uint32_t step, bool count)
{
    if (v == MPL_NONE || run->given[mpl_flow_holder(&run->map, v)] == MPL_NONE)
        return;
    v = mpl_flow_holder(&run->map, v);
    if (run->last_arrival[v] < step)
        run->last_arrival[v] = step;
    if (count)
        run->arrival_begin[step + 2]++;
    else
        run->arrival[run->arrival_begin[step + 1]++] = v;
}

/* Values read when no branch is taken arrive at that step. */
static void note_bypass(const mpl_flow_run *run, mpl_value v, uint32_t step)
{
    if (v != MPL_NONE && run->given[mpl_flow_holder(&run->map, v)] != MPL_NONE &&
        run->last_arrival[mpl_flow_holder(&run->map, v)] < step)
        run->last_arrival[mpl_flow_holder(&run->map, v)] = step;
}

static void note_arrivals(mpl_flow_run *run, bool count)
{
    const mpl_graph *g = run->g;
    const mpl_program *program = run->program;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        bool owner = g->op_body_begin[op] < g->op_body_begin[op + 1];
        uint32_t step =
            owner ? program->begin_step[mpl_op_first_body(g, op)] : program->op_step[op];

        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            if (g->op_kind[op] != MPL_OP_case || i == g->op_in_begin[op])
                note_arrival(run, g->op_in[i], arrival_step(run, g->op_block[op], step), count);
            else if (arrival_step(run, g->op_block[op], MPL_NONE) != MPL_NONE)
                note_arrival(run, g->op_in[i], arrival_step(run, g->op_block[op], step), count);
            else
                note_bypass(run, g->op_in[i], program->op_step[op]);
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        note_arrival(run, g->output[i], 0, count);
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = g->block_result_begin[b];
             i < g->block_result_begin[b] + g->block_n_results[b]; i++)
            note_arrival(run, g->block_result[i], arrival_step(run, b, program->end_step[b]),
                         count);
}

static mpl_status make_arrivals(mpl_flow_run *run)
{
    uint32_t n_steps = run->program->n_steps;

    MPL_PASS(mpl_new_each(run->ctx, run->g->n_values, run->given, run->last_arrival, run->comes));
    MPL_PASS(mpl_new(run->ctx, run->arrival_begin, (size_t)n_steps + 3));
    for (mpl_value v = 0; v < run->g->n_values; v++) {
        bool outside = run->g->value_role[v] == MPL_INPUT || run->g->value_role[v] == MPL_WEIGHT;

        run->given[v] =
            outside && run->map.map->value_buffer[v] != MPL_NONE ? run->n_given++ : MPL_NONE;
    }
    note_arrivals(run, true);
    for (uint32_t step = 0; step < n_steps; step++)
        run->arrival_begin[step + 2] += run->arrival_begin[step + 1];
    MPL_PASS(mpl_new(run->ctx, run->arrival, run->arrival_begin[n_steps + 1]));
    note_arrivals(run, false);
    return MPL_OK;
}

static mpl_status make_states(mpl_flow_run *run)
{
    uint64_t n = 0;

    run->n_value_words = (run->g->n_values + run->g->n_ops) / 64 + 1;
    run->n_words = run->n_value_words + (run->n_given > 0 ? 2 * run->n_given / 64 + 1 : 0);
    MPL_PASS(mpl_new(run->ctx, run->node_begin, (size_t)run->program->n_steps + 1));
    for (uint32_t step = 0; step < run->program->n_steps; step++) {
        uint64_t factor = 1;

        for (uint32_t b = mpl_flow_block_at(run, step); b != MPL_NONE; b = run->g->block_parent[b])
            if (mpl_flow_is_loop(run, b) && factor < MPL_FLOW_MOST_WORDS)
                factor *= mpl_flow_classes(&run->map, b);
        run->node_begin[step] = n;
        n += factor;
        if (n * run->n_words > MPL_FLOW_MOST_WORDS || n >= MPL_NONE)
            return MPL_REFUSE(run->ctx, "'%.100s' has too many kinds of rounds to check them all",
                              run->g->name);
    }
    run->node_begin[run->program->n_steps] = run->n_nodes = n;
    MPL_PASS(mpl_new(run->ctx, run->first, run->n_nodes));
    if (run->n_nodes > 0)
        memset(run->first, 0xff, run->n_nodes * sizeof *run->first);
    MPL_PASS(mpl_new(run->ctx, run->now, run->n_words));
    return mpl_new(run->ctx, run->after, run->n_words);
}

/* Whether a value's address depends on the round of its loop or of one around it. */
static bool turns(const mpl_flow_run *run, mpl_value v)
{
    mpl_where w = mpl_flow_where(&run->map, v);

    if (run->g->value_bytes[v] > 0 && w.kind == MPL_WHERE_NOWHERE)
        return true; /* it may lie where the value that it takes over lies */
    for (uint32_t b = run->g->value_block[v]; b > 0; b = run->g->block_parent[b])
        if (mpl_where_depends(&run->map, w, run->g->block_owner[b]))
            return true;
    return false;
}

static mpl_status make_spots(mpl_flow_run *run)
{
    MPL_PASS(mpl_new_each(run->ctx, run->g->n_values, run->killer, run->fixed, run->moves));
    for (mpl_value v = 0; v < run->g->n_values; v++) {
        run->killer[v] = MPL_NONE;
        run->moves[v] = turns(run, v);
        if (!run->moves[v])
            MPL_PASS(mpl_where_spots(&run->map, mpl_flow_where(&run->map, v),
                                     run->g->value_bytes[v], &run->fixed[v]));
    }
    return MPL_OK;
}

/* Where operations may run at the same time, everything from outside arrives before the first. */
static mpl_status begin(mpl_flow_run *run)
{
    for (mpl_value v = 0; v < run->g->n_values; v++) {
        if (run->g->value_role[v] != MPL_INPUT && run->g->value_role[v] != MPL_WEIGHT)
            continue;
        mpl_flow_set(run->now, v, true);
        if (run->given[v] != MPL_NONE)
            mpl_flow_set(run->now, mpl_flow_awaited(run, v), true);
        if (run->map.p->before != NULL)
            MPL_PASS(mpl_flow_receive(run, run->now, v));
    }
    return MPL_OK;
}

static mpl_status run(mpl_flow_run *f)
{
    MPL_PASS(begin(f));
    MPL_PASS(go_on(f, 0));
    while (f->n_stack > 0) {
        uint32_t id = f->stack[--f->n_stack], low = 0, high = f->program->n_steps;
        size_t node = f->node[id];

        f->queued[id] = 0;
        while (high - low > 1) { /* the last step that begins at or before the node */
            uint32_t mid = low + (high - low) / 2;

            if (f->node_begin[mid] <= node)
                low = mid;
            else
                high = mid;
        }
        mpl_flow_go_to(f, low, node);
        memcpy(f->now, f->state + (size_t)id * f->n_words, f->n_words * sizeof *f->now);
        MPL_PASS(run_step(f, low));
    }
    return MPL_OK;
}

mpl_status mpl_verify_places(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                             const mpl_problem *p, const mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    mpl_flow_run f = {
        .ctx = ctx, .g = g, .map = {.ctx = ctx, .g = g, .map = map, .p = p, .plan = plan}};

    if (map->places == NULL)
        MPL_FAIL(ctx, MPL_EINVALID,
                 "'%.100s' has control flow, and nothing says where its values lie", g->name);
    MPL_TRY(mpl_flow_map_init(&f.map));
    MPL_TRY(make_program(&f));
    MPL_TRY(make_arrivals(&f));
    MPL_TRY(make_states(&f));
    MPL_TRY(make_spots(&f));
    if (p->before != NULL)
        MPL_TRY(mpl_flow_units_apart(&f.map));
    MPL_TRY(run(&f));
out:
    for (mpl_value v = 0; f.fixed != NULL && v < g->n_values; v++)
        mpl_free(ctx, f.fixed[v].at);
    mpl_free_each(ctx, f.node_begin, f.first, f.next, f.node, f.queued, f.state, f.stack, f.now,
                  f.after, f.killer, f.fixed, f.moves, f.spots.at, f.other.at, f.given,
                  f.last_arrival, f.arrival_begin, f.arrival, f.comes);
    mpl_program_free(ctx, f.program);
    mpl_flow_map_fini(&f.map);
    return st;
}
