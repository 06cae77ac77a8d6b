/* verify_flow_state.c -- states of a run: what stands, what a write destroys, what arrives from
 * outside. See verify_flow_state.h. */
#include "planners/verify/verify_flow_state.h"

/* ---- states ---- */

bool mpl_flow_stands(const mpl_flow_run *f, const uint64_t *state, mpl_value v)
{
    mpl_value h = mpl_flow_holder(&f->map, v);

    return f->g->value_bytes[v] == 0 ||
           (mpl_bit_has(state, h) &&
            (f->given[h] == MPL_NONE || mpl_bit_has(state, mpl_flow_came(f, h))));
}

/* The node of `step` for the current rounds. */
static size_t node_of(const mpl_flow_run *f, uint32_t step)
{
    size_t index = 0, factor = 1;

    for (uint32_t b = mpl_flow_block_at(f, step); b != MPL_NONE; b = f->g->block_parent[b])
        if (mpl_flow_is_loop(f, b)) {
            index += factor * mpl_flow_class(&f->map, b, f->map.round[b]);
            factor *= mpl_flow_classes(&f->map, b);
        }
    return f->node_begin[step] + index;
}

void mpl_flow_go_to(mpl_flow_run *f, uint32_t step, size_t node)
{
    size_t index = node - f->node_begin[step];

    memset(f->map.round, 0xff, f->g->n_blocks * sizeof *f->map.round);
    for (uint32_t b = mpl_flow_block_at(f, step); b != MPL_NONE; b = f->g->block_parent[b])
        if (mpl_flow_is_loop(f, b)) {
            f->map.round[b] = (uint32_t)(index % mpl_flow_classes(&f->map, b));
            index /= mpl_flow_classes(&f->map, b);
        }
}

/* A value that has not arrived by its last read never arrives. */
static void settle(const mpl_flow_run *f, uint32_t step, uint64_t *state)
{
    for (mpl_value v = 0; f->n_given > 0 && v < f->g->n_values; v++)
        if (f->given[v] != MPL_NONE && f->last_arrival[v] < step &&
            mpl_bit_has(state, mpl_flow_awaited(f, v))) {
            mpl_flow_set(state, v, false);
            mpl_flow_set(state, mpl_flow_awaited(f, v), false);
            mpl_flow_set(state, mpl_flow_came(f, v), true);
        }
}

/* The state of a node with the same arrived values as `state`; MPL_NONE: none. */
static uint32_t find_state(const mpl_flow_run *f, size_t node, const uint64_t *state)
{
    size_t size = (f->n_words - f->n_value_words) * sizeof *state;
    uint32_t id = f->first[node];

    while (id != MPL_NONE && memcmp(f->state + (size_t)id * f->n_words + f->n_value_words,
                                    state + f->n_value_words, size) != 0)
        id = f->next[id];
    return id;
}

static mpl_status new_state(mpl_flow_run *f, size_t node, const uint64_t *state, uint32_t *id)
{
    size_t n = (size_t)f->n_states + 1;

    if (n * f->n_words > MPL_FLOW_MOST_WORDS || n >= MPL_NONE)
        return MPL_REFUSE(f->ctx, "'%.100s' has too many ways to run to check them all",
                          f->g->name);
    MPL_PASS(mpl_reserve(f->ctx, f->next, f->next_room, n));
    MPL_PASS(mpl_reserve(f->ctx, f->node, f->node_room, n));
    MPL_PASS(mpl_reserve(f->ctx, f->queued, f->queued_room, n));
    MPL_PASS(mpl_reserve(f->ctx, f->stack, f->stack_room, n));
    MPL_PASS(mpl_reserve(f->ctx, f->state, f->state_room, n * f->n_words));
    *id = f->n_states++;
    f->next[*id] = f->first[node];
    f->node[*id] = (uint32_t)node;
    f->queued[*id] = 0;
    f->first[node] = *id;
    memcpy(f->state + (size_t)*id * f->n_words, state, f->n_words * sizeof *state);
    return MPL_OK;
}

mpl_status mpl_flow_arrive(mpl_flow_run *f, uint32_t step, uint64_t *state)
{
    size_t node = node_of(f, step);
    bool changed = false;
    uint32_t id;

    settle(f, step, state);
    id = find_state(f, node, state);
    if (id == MPL_NONE) {
        changed = true;
        MPL_PASS(new_state(f, node, state, &id));
    }
    for (uint32_t w = 0; w < f->n_words; w++) {
        uint64_t *there = f->state + (size_t)id * f->n_words + w;

        changed = changed || (*there & ~state[w]) != 0;
        *there &= state[w];
    }
    if (changed && !f->queued[id]) {
        f->queued[id] = 1;
        f->stack[f->n_stack++] = id;
    }
    return MPL_OK;
}

/* ---- messages ---- */

const char *mpl_flow_rounds_text(const mpl_flow_run *f, char *text)
{
    size_t n = 0;

    text[0] = '\0';
    for (uint32_t b = 1; b < f->g->n_blocks && n < 120; b++)
        if (f->map.round[b] != MPL_NONE)
            n += (size_t)snprintf(text + n, 200 - n, "%s round %u%s of '%.24s'",
                                  n == 0 ? " in" : ",", f->map.round[b],
                                  f->map.round[b] < f->map.n_first[b] ? "" : " (and later ones)",
                                  f->g->block_name[b]);
    return text;
}

mpl_status mpl_flow_need(const mpl_flow_run *f, const uint64_t *state, mpl_value v, const char *who)
{
    char rounds[200];
    mpl_value killer;

    if (v == MPL_NONE || mpl_flow_stands(f, state, v))
        return MPL_OK;
    killer = f->killer[mpl_flow_holder(&f->map, v)];
    return MPL_ERROR(f->ctx, MPL_EINVALID, "'%.80s' reads '%.80s'%s, which %s%.80s%s by then", who,
                     f->g->value_name[v], mpl_flow_rounds_text(f, rounds),
                     killer != MPL_NONE ? "'" : "need not be there ",
                     killer != MPL_NONE ? f->g->value_name[killer] : "",
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

mpl_status mpl_flow_spots_of(mpl_flow_run *f, mpl_value v, const mpl_flow_spots **out)
{
    *out = &f->fixed[v];
    if (!f->moves[v])
        return MPL_OK;
    f->other.n = 0;
    MPL_PASS(mpl_where_spots(&f->map, mpl_flow_where(&f->map, v), f->g->value_bytes[v], &f->other));
    *out = &f->other;
    return MPL_OK;
}

bool mpl_flow_meet_at_begins(const mpl_flow_run *f, const mpl_flow_spots *there, uint64_t bytes)
{
    for (size_t i = 0; i < f->spots.n; i++)
        for (size_t k = 0; k < there->n; k++) {
            const mpl_flow_spot *a = &f->spots.at[i], *b = &there->at[k];

            if (a->arena == b->arena && a->begin < b->end && b->begin < a->end &&
                (a->begin != b->begin || a->end - a->begin != bytes || b->end - b->begin != bytes))
                return false;
        }
    return true;
}

/* An arriving input lies at f->spots. Whether a value may lie there only by having taken over that
 * input; then the input has already arrived. */
static bool took_over(const mpl_flow_run *f, const mpl_flow_spots *there)
{
    for (size_t k = 0; k < there->n; k++)
        for (size_t i = 0; i < f->spots.n; i++) {
            const mpl_flow_spot *a = &f->spots.at[i], *b = &there->at[k];

            if (a->arena == b->arena && a->begin < b->end && b->begin < a->end && a->of != b->of)
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

mpl_status mpl_flow_destroy(mpl_flow_run *f, uint64_t *state, mpl_value writer, mpl_where w)
{
    const mpl_graph *g = f->g;
    const mpl_flow_spots *there;
    uint64_t bytes = writer != MPL_NONE ? g->value_bytes[writer] : 0;

    for (size_t i = 0; i < f->spots.n; i++) {
        uint32_t v = f->spots.at[i].arena;

        if (v < f->map.n_arenas || writer == MPL_NONE)
            continue;
        v -= f->map.n_arenas;
        if ((g->value_role[v] == MPL_INPUT || g->value_role[v] == MPL_WEIGHT) &&
            !updates(g, writer, v))
            return MPL_ERROR(f->ctx, MPL_EINVALID,
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
            (f->given[v] != MPL_NONE && mpl_bit_has(state, mpl_flow_awaited(f, v))))
            continue;
        MPL_PASS(mpl_flow_spots_of(f, v, &there));
        if (!mpl_flow_overlap(&f->spots, there))
            continue;
        /* The value has several possible places; control flow has put it in another one. */
        if (f->arriving && there->n > 1 && took_over(f, there))
            continue;
        MPL_PASS(mpl_where_is_row(&f->map, w, bytes, v, &row));
        if (row)
            continue;
        mpl_flow_set(state, v, false);
        f->killer[v] = writer;
    }
    return MPL_OK;
}

mpl_status mpl_flow_settled(const mpl_flow_run *f, const uint64_t *state, mpl_value v, mpl_where w)
{
    mpl_op op = mpl_where_unsettled(&f->map, w, state, f->g->n_values);
    char rounds[200];

    if (op != MPL_NONE)
        return MPL_ERROR(f->ctx, MPL_EINVALID,
                         "'%.80s' lies where '%.80s' leaves it%s, which need not have run by then",
                         f->g->value_name[v], f->g->op_name[op], mpl_flow_rounds_text(f, rounds));
    return MPL_OK;
}

mpl_status mpl_flow_write(mpl_flow_run *f, uint64_t *state, mpl_value writer, mpl_where w,
                          bool good)
{
    MPL_PASS(mpl_flow_settled(f, state, writer, w));
    f->spots.n = 0;
    MPL_PASS(mpl_where_spots(&f->map, w, f->g->value_bytes[writer], &f->spots));
    MPL_PASS(mpl_flow_destroy(f, state, writer, w));
    if (good != mpl_bit_has(state, writer))
        f->killer[writer] = MPL_NONE;
    mpl_flow_set(state, writer, good);
    return MPL_OK;
}

mpl_status mpl_flow_elsewhere(const mpl_flow_run *f, mpl_value to)
{
    char rounds[200];

    return MPL_ERROR(f->ctx, MPL_EINVALID,
                     "'%.80s' takes over a value without a copy%s, and lies elsewhere",
                     f->g->value_name[to], mpl_flow_rounds_text(f, rounds));
}

mpl_status mpl_flow_copy(mpl_flow_run *f, uint64_t *state, mpl_value to, mpl_where there,
                         mpl_where here, uint64_t bytes, bool standing)
{
    f->spots.n = f->other.n = 0;
    MPL_PASS(mpl_where_spots(&f->map, there, f->g->value_bytes[to], &f->spots));
    MPL_PASS(mpl_where_spots(&f->map, here, bytes, &f->other));
    standing = standing && (!mpl_flow_overlap(&f->spots, &f->other) ||
                            mpl_flow_meet_at_begins(f, &f->other, bytes));
    return mpl_flow_write(f, state, to, there, standing);
}

mpl_status mpl_flow_hand_on(mpl_flow_run *f, uint64_t *state, mpl_value to, mpl_where there,
                            mpl_where here, bool standing, bool copied)
{
    bool same;

    if (there.kind == MPL_WHERE_NOWHERE)
        return MPL_OK;
    MPL_PASS(mpl_flow_settled(f, state, to, there));
    MPL_PASS(mpl_where_same(&f->map, there, here, &same));
    if (copied && !same)
        return mpl_flow_copy(f, state, to, there, here, f->g->value_bytes[to], standing);
    if (!same && here.kind != MPL_WHERE_NOWHERE)
        return mpl_flow_elsewhere(f, to);
    f->killer[to] = MPL_NONE;
    mpl_flow_set(state, to, standing && same);
    return MPL_OK;
}

mpl_status mpl_flow_where_in(mpl_flow_run *f, mpl_value v, uint32_t block, uint32_t round,
                             mpl_where *out)
{
    uint32_t now = f->map.round[block];

    f->map.round[block] = round;
    *out = mpl_flow_where(&f->map, v);
    f->map.round[block] = now;
    if (out->n_rounds == 0)
        MPL_PASS(mpl_where_in_round(&f->map, out, block, round));
    return MPL_OK;
}

void mpl_flow_forget(mpl_flow_run *f, uint64_t *state, mpl_op op)
{
    for (mpl_value v = 0; v < f->g->n_values; v++)
        if (mpl_bit_has(state, v) &&
            (f->g->value_op[v] == op || mpl_where_depends(&f->map, mpl_flow_where(&f->map, v), op)))
            mpl_flow_set(state, v, false);
    mpl_flow_set(state, mpl_flow_ran(f, op), false);
}

void mpl_flow_leave_block(const mpl_flow_run *f, uint64_t *state, uint32_t block)
{
    for (mpl_op op = f->g->block_op_begin[block]; op < f->g->block_op_end[block]; op++)
        mpl_flow_set(state, mpl_flow_ran(f, op), false);
    for (mpl_value v = 0; v < f->g->n_values; v++)
        if (mpl_bit_has(state, v) && mpl_block_within(f->g, f->g->value_block[v], block))
            mpl_flow_set(state, v, false);
}

/* ---- inputs and weights that arrive ---- */

mpl_status mpl_flow_receive(mpl_flow_run *f, uint64_t *state, mpl_value v)
{
    mpl_status st = MPL_OK;

    if (v == MPL_NONE || f->given[mpl_flow_holder(&f->map, v)] == MPL_NONE)
        goto out;
    v = mpl_flow_holder(&f->map, v);
    if (mpl_bit_has(state, mpl_flow_came(f, v)))
        goto out;
    f->arriving = true;
    st = mpl_flow_write(f, state, v, mpl_flow_where(&f->map, v),
                        mpl_bit_has(state, v) || mpl_bit_has(state, mpl_flow_awaited(f, v)));
    f->arriving = false;
    MPL_TRY(st);
    mpl_flow_set(state, mpl_flow_came(f, v), true);
    mpl_flow_set(state, mpl_flow_awaited(f, v), false);
out:
    return st;
}

mpl_status mpl_flow_receive_all(mpl_flow_run *f, uint64_t *state, uint32_t step)
{
    mpl_status st = MPL_OK;
    uint32_t begin = f->arrival_begin[step], end = f->arrival_begin[step + 1];

    memset(f->comes, 0, f->g->n_values);
    for (uint32_t i = begin; i < end; i++)
        f->comes[f->arrival[i]] = !mpl_bit_has(state, mpl_flow_came(f, f->arrival[i]));
    for (uint32_t i = begin; i < end; i++)
        MPL_TRY(mpl_flow_receive(f, state, f->arrival[i]));
    f->arriving = true;
    for (uint32_t i = begin; i < end; i++)
        if (f->comes[f->arrival[i]])
            MPL_TRY(mpl_flow_write(f, state, f->arrival[i], mpl_flow_where(&f->map, f->arrival[i]),
                                   mpl_bit_has(state, f->arrival[i])));
out:
    f->arriving = false;
    return st;
}
