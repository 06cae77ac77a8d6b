/* verify_flow_state.c -- states of a run: what stands, what a write destroys, what arrives from
 * outside. See verify_flow_state.h. */
#include "planners/verify/verify_flow_state.h"

/* ---- states ---- */

bool mpl_flow_stands(const mpl_flow_run *run, const uint64_t *state, mpl_value v)
{
    mpl_value h = mpl_flow_holder(&run->map, v);

    return run->g->value_bytes[v] == 0 ||
           (mpl_bit_has(state, h) &&
            (run->given[h] == MPL_NONE || mpl_bit_has(state, mpl_flow_came(run, h))));
}

/* The node of `step` for the current rounds. */
static size_t node_of(const mpl_flow_run *run, uint32_t step)
{
    size_t index = 0, factor = 1;

    for (uint32_t b = mpl_flow_block_at(run, step); b != MPL_NONE; b = run->g->block_parent[b])
        if (mpl_flow_is_loop(run, b)) {
            index += factor * mpl_flow_class(&run->map, b, run->map.round[b]);
            factor *= mpl_flow_classes(&run->map, b);
        }
    return run->node_begin[step] + index;
}

void mpl_flow_go_to(mpl_flow_run *run, uint32_t step, size_t node)
{
    size_t index = node - run->node_begin[step];

    memset(run->map.round, 0xff, run->g->n_blocks * sizeof *run->map.round);
    for (uint32_t b = mpl_flow_block_at(run, step); b != MPL_NONE; b = run->g->block_parent[b])
        if (mpl_flow_is_loop(run, b)) {
            run->map.round[b] = (uint32_t)(index % mpl_flow_classes(&run->map, b));
            index /= mpl_flow_classes(&run->map, b);
        }
}

/* A value that has not arrived by its last read never arrives. */
static void settle(const mpl_flow_run *run, uint32_t step, uint64_t *state)
{
    for (mpl_value v = 0; run->n_given > 0 && v < run->g->n_values; v++)
        if (run->given[v] != MPL_NONE && run->last_arrival[v] < step &&
            mpl_bit_has(state, mpl_flow_awaited(run, v))) {
            mpl_flow_set(state, v, false);
            mpl_flow_set(state, mpl_flow_awaited(run, v), false);
            mpl_flow_set(state, mpl_flow_came(run, v), true);
        }
}

/* The state of a node with the same arrived values as `state`; MPL_NONE: none. */
static uint32_t find_state(const mpl_flow_run *run, size_t node, const uint64_t *state)
{
    size_t size = (run->n_words - run->n_value_words) * sizeof *state;
    uint32_t id = run->first[node];

    while (id != MPL_NONE && memcmp(run->state + (size_t)id * run->n_words + run->n_value_words,
                                    state + run->n_value_words, size) != 0)
        id = run->next[id];
    return id;
}

static mpl_status new_state(mpl_flow_run *run, size_t node, const uint64_t *state, uint32_t *id)
{
    size_t n = (size_t)run->n_states + 1;

    if (n * run->n_words > MPL_FLOW_MOST_WORDS || n >= MPL_NONE)
        return MPL_REFUSE(run->ctx, "'%.100s' has too many ways to run to check them all",
                          run->g->name);
    MPL_PASS(mpl_reserve(run->ctx, run->next, run->next_room, n));
    MPL_PASS(mpl_reserve(run->ctx, run->node, run->node_room, n));
    MPL_PASS(mpl_reserve(run->ctx, run->queued, run->queued_room, n));
    MPL_PASS(mpl_reserve(run->ctx, run->stack, run->stack_room, n));
    MPL_PASS(mpl_reserve(run->ctx, run->state, run->state_room, n * run->n_words));
    *id = run->n_states++;
    run->next[*id] = run->first[node];
    run->node[*id] = (uint32_t)node;
    run->queued[*id] = 0;
    run->first[node] = *id;
    memcpy(run->state + (size_t)*id * run->n_words, state, run->n_words * sizeof *state);
    return MPL_OK;
}

mpl_status mpl_flow_arrive(mpl_flow_run *run, uint32_t step, uint64_t *state)
{
    size_t node = node_of(run, step);
    bool changed = false;
    uint32_t id;

    settle(run, step, state);
    id = find_state(run, node, state);
    if (id == MPL_NONE) {
        changed = true;
        MPL_PASS(new_state(run, node, state, &id));
    }
    for (uint32_t w = 0; w < run->n_words; w++) {
        uint64_t *there = run->state + (size_t)id * run->n_words + w;

        changed = changed || (*there & ~state[w]) != 0;
        *there &= state[w];
    }
    if (changed && !run->queued[id]) {
        run->queued[id] = 1;
        run->stack[run->n_stack++] = id;
    }
    return MPL_OK;
}

/* ---- messages ---- */

const char *mpl_flow_rounds_text(const mpl_flow_run *run, char *text)
{
    size_t n = 0;

    text[0] = '\0';
    for (uint32_t b = 1; b < run->g->n_blocks && n < 120; b++)
        if (run->map.round[b] != MPL_NONE)
            n +=
                (size_t)snprintf(text + n, 200 - n, "%s round %u%s of '%.24s'",
                                 n == 0 ? " in" : ",", run->map.round[b],
                                 run->map.round[b] < run->map.n_first[b] ? "" : " (and later ones)",
                                 run->g->block_name[b]);
    return text;
}

mpl_status mpl_flow_need(const mpl_flow_run *run, const uint64_t *state, mpl_value v,
                         const char *who)
{
    char rounds[200];
    mpl_value killer;

    if (v == MPL_NONE || mpl_flow_stands(run, state, v))
        return MPL_OK;
    killer = run->killer[mpl_flow_holder(&run->map, v)];
    return MPL_ERROR(run->ctx, MPL_EINVALID, "'%.80s' reads '%.80s'%s, which %s%.80s%s by then",
                     who, run->g->value_name[v], mpl_flow_rounds_text(run, rounds),
                     killer != MPL_NONE ? "'" : "need not be there ",
                     killer != MPL_NONE ? run->g->value_name[killer] : "",
                     killer != MPL_NONE ? "' may have overwritten" : "");
}

/* ---- memory ---- */

bool mpl_flow_overlap(const mpl_flow_spots *a, const mpl_flow_spots *b)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < b->n; k++)
            if (a->at[i].arena == b->at[k].arena && a->at[i].begin < b->at[k].end &&
                b->at[k].begin < a->at[i].end)
                return true;
    return false;
}

mpl_status mpl_flow_spots_of(mpl_flow_run *run, mpl_value v, const mpl_flow_spots **out)
{
    *out = &run->fixed[v];
    if (!run->moves[v])
        return MPL_OK;
    run->other.n = 0;
    MPL_PASS(mpl_where_spots(&run->map, mpl_flow_where(&run->map, v), run->g->value_bytes[v],
                             &run->other));
    *out = &run->other;
    return MPL_OK;
}

bool mpl_flow_meet_at_begins(const mpl_flow_run *run, const mpl_flow_spots *there, uint64_t bytes)
{
    for (size_t i = 0; i < run->spots.n; i++)
        for (size_t k = 0; k < there->n; k++) {
            const mpl_flow_spot *spot = &run->spots.at[i], *b = &there->at[k];

            if (spot->arena == b->arena && spot->begin < b->end && b->begin < spot->end &&
                (spot->begin != b->begin || spot->end - spot->begin != bytes ||
                 b->end - b->begin != bytes))
                return false;
        }
    return true;
}

/* An arriving input lies at run->spots. Whether a value may lie there only by having taken over
 * that input; then the input has already arrived. */
static bool took_over(const mpl_flow_run *run, const mpl_flow_spots *there)
{
    for (size_t k = 0; k < there->n; k++)
        for (size_t i = 0; i < run->spots.n; i++) {
            const mpl_flow_spot *spot = &run->spots.at[i], *b = &there->at[k];

            if (spot->arena == b->arena && spot->begin < b->end && b->begin < spot->end &&
                spot->of != b->of)
                return false;
        }
    return true;
}

/* Whether `writer` is weight v after an update. */
static bool updates(const mpl_graph *g, mpl_value writer, mpl_value v)
{
    mpl_op op = g->value_op[writer];

    for (uint32_t i = 0; op != MPL_NONE && i < mpl_op_n_out(g, op); i++)
        if (mpl_op_output(g, op, i) == writer)
            return mpl_updated(g, op, i) == v;
    return false;
}

mpl_status mpl_flow_destroy(mpl_flow_run *run, uint64_t *state, mpl_value writer, mpl_where w)
{
    const mpl_graph *g = run->g;
    const mpl_flow_spots *there;
    uint64_t bytes = writer != MPL_NONE ? g->value_bytes[writer] : 0;

    for (size_t i = 0; i < run->spots.n; i++) {
        uint32_t v = run->spots.at[i].arena;

        if (v < run->map.n_arenas || writer == MPL_NONE)
            continue;
        v -= run->map.n_arenas;
        if ((g->value_role[v] == MPL_INPUT || g->value_role[v] == MPL_WEIGHT) &&
            !updates(g, writer, v))
            return MPL_ERROR(run->ctx, MPL_EINVALID,
                             "'%.80s' is written over '%.80s', which belongs to the caller",
                             g->value_name[writer], g->value_name[v]);
    }
    for (mpl_value v = 0; v < g->n_values; v++) {
        bool row;

        if (v % 64 == 0 && state[v / 64] == 0) {
            v += 63;
            continue;
        }
        if (!mpl_bit_has(state, v) || v == writer ||
            (run->given[v] != MPL_NONE && mpl_bit_has(state, mpl_flow_awaited(run, v))))
            continue;
        MPL_PASS(mpl_flow_spots_of(run, v, &there));
        if (!mpl_flow_overlap(&run->spots, there))
            continue;
        /* The value has several possible places; control flow has put it in another one. */
        if (run->arriving && there->n > 1 && took_over(run, there))
            continue;
        MPL_PASS(mpl_where_is_row(&run->map, w, bytes, v, &row));
        if (row)
            continue;
        mpl_flow_set(state, v, false);
        run->killer[v] = writer;
    }
    return MPL_OK;
}

mpl_status mpl_flow_settled(const mpl_flow_run *run, const uint64_t *state, mpl_value v,
                            mpl_where w)
{
    mpl_op op = mpl_where_unsettled(&run->map, w, state, run->g->n_values);
    char rounds[200];

    if (op != MPL_NONE)
        return MPL_ERROR(run->ctx, MPL_EINVALID,
                         "'%.80s' lies where '%.80s' leaves it%s, which need not have run by then",
                         run->g->value_name[v], run->g->op_name[op],
                         mpl_flow_rounds_text(run, rounds));
    return MPL_OK;
}

mpl_status mpl_flow_write(mpl_flow_run *run, uint64_t *state, mpl_value writer, mpl_where w,
                          bool good)
{
    MPL_PASS(mpl_flow_settled(run, state, writer, w));
    run->spots.n = 0;
    MPL_PASS(mpl_where_spots(&run->map, w, run->g->value_bytes[writer], &run->spots));
    MPL_PASS(mpl_flow_destroy(run, state, writer, w));
    if (good != mpl_bit_has(state, writer))
        run->killer[writer] = MPL_NONE;
    mpl_flow_set(state, writer, good);
    return MPL_OK;
}

mpl_status mpl_flow_elsewhere(const mpl_flow_run *run, mpl_value to)
{
    char rounds[200];

    return MPL_ERROR(run->ctx, MPL_EINVALID,
                     "'%.80s' takes over a value without a copy%s, and lies elsewhere",
                     run->g->value_name[to], mpl_flow_rounds_text(run, rounds));
}

mpl_status mpl_flow_copy(mpl_flow_run *run, uint64_t *state, mpl_value to, mpl_where there,
                         mpl_where here, uint64_t bytes, bool standing)
{
    run->spots.n = run->other.n = 0;
    MPL_PASS(mpl_where_spots(&run->map, there, run->g->value_bytes[to], &run->spots));
    MPL_PASS(mpl_where_spots(&run->map, here, bytes, &run->other));
    standing = standing && (!mpl_flow_overlap(&run->spots, &run->other) ||
                            mpl_flow_meet_at_begins(run, &run->other, bytes));
    return mpl_flow_write(run, state, to, there, standing);
}

mpl_status mpl_flow_hand_on(mpl_flow_run *run, uint64_t *state, mpl_value to, mpl_where there,
                            mpl_where here, bool standing, bool copied)
{
    bool same;

    if (there.kind == MPL_WHERE_NOWHERE)
        return MPL_OK;
    MPL_PASS(mpl_flow_settled(run, state, to, there));
    MPL_PASS(mpl_where_same(&run->map, there, here, &same));
    if (copied && !same)
        return mpl_flow_copy(run, state, to, there, here, run->g->value_bytes[to], standing);
    if (!same && here.kind != MPL_WHERE_NOWHERE)
        return mpl_flow_elsewhere(run, to);
    run->killer[to] = MPL_NONE;
    mpl_flow_set(state, to, standing && same);
    return MPL_OK;
}

mpl_status mpl_flow_where_in(mpl_flow_run *run, mpl_value v, uint32_t block, uint32_t round,
                             mpl_where *out)
{
    uint32_t now = run->map.round[block];

    run->map.round[block] = round;
    *out = mpl_flow_where(&run->map, v);
    run->map.round[block] = now;
    if (out->n_rounds == 0)
        MPL_PASS(mpl_where_in_round(&run->map, out, block, round));
    return MPL_OK;
}

void mpl_flow_forget(mpl_flow_run *run, uint64_t *state, mpl_op op)
{
    for (mpl_value v = 0; v < run->g->n_values; v++)
        if (mpl_bit_has(state, v) &&
            (run->g->value_op[v] == op ||
             mpl_where_depends(&run->map, mpl_flow_where(&run->map, v), op)))
            mpl_flow_set(state, v, false);
    mpl_flow_set(state, mpl_flow_ran(run, op), false);
}

void mpl_flow_leave_block(const mpl_flow_run *run, uint64_t *state, uint32_t block)
{
    for (mpl_op op = run->g->block_op_begin[block]; op < run->g->block_op_end[block]; op++)
        mpl_flow_set(state, mpl_flow_ran(run, op), false);
    for (mpl_value v = 0; v < run->g->n_values; v++)
        if (mpl_bit_has(state, v) && mpl_block_within(run->g, run->g->value_block[v], block))
            mpl_flow_set(state, v, false);
}

/* ---- inputs and weights that arrive ---- */

mpl_status mpl_flow_receive(mpl_flow_run *run, uint64_t *state, mpl_value v)
{
    mpl_status st = MPL_OK;

    if (v == MPL_NONE || run->given[mpl_flow_holder(&run->map, v)] == MPL_NONE)
        goto out;
    v = mpl_flow_holder(&run->map, v);
    if (mpl_bit_has(state, mpl_flow_came(run, v)))
        goto out;
    run->arriving = true;
    st = mpl_flow_write(run, state, v, mpl_flow_where(&run->map, v),
                        mpl_bit_has(state, v) || mpl_bit_has(state, mpl_flow_awaited(run, v)));
    run->arriving = false;
    MPL_TRY(st);
    mpl_flow_set(state, mpl_flow_came(run, v), true);
    mpl_flow_set(state, mpl_flow_awaited(run, v), false);
out:
    return st;
}

mpl_status mpl_flow_receive_all(mpl_flow_run *run, uint64_t *state, uint32_t step)
{
    mpl_status st = MPL_OK;
    uint32_t begin = run->arrival_begin[step], end = run->arrival_begin[step + 1];

    memset(run->comes, 0, run->g->n_values);
    for (uint32_t i = begin; i < end; i++)
        run->comes[run->arrival[i]] = !mpl_bit_has(state, mpl_flow_came(run, run->arrival[i]));
    for (uint32_t i = begin; i < end; i++)
        MPL_TRY(mpl_flow_receive(run, state, run->arrival[i]));
    run->arriving = true;
    for (uint32_t i = begin; i < end; i++)
        if (run->comes[run->arrival[i]])
            MPL_TRY(mpl_flow_write(run, state, run->arrival[i],
                                   mpl_flow_where(&run->map, run->arrival[i]),
                                   mpl_bit_has(state, run->arrival[i])));
out:
    run->arriving = false;
    return st;
}
