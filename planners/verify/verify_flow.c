/* verify_flow.c -- the verifier of control flow. See mpl_verify_places in verify.h.
 *
 * Idea     A forward analysis of what must hold: at each step of the program, in each class of
 *          rounds of the loops around it, the values whose contents certainly stand where they are
 *          said to lie. What an operation writes destroys all that may overlap it; where two ways
 *          meet, only what stands on both is left. Each read must find its value standing. Between
 *          rounds, and into and out of blocks, nothing moves but what is flagged as copied: all
 *          else must lie at the very same address on both sides.
 * Source   this project; the analysis is available expressions' (Aho, Lam, Sethi, Ullman,
 *          Compilers, 9.2.6), with memory for subexpressions.
 * Cost     O(states * values * writes) at worst; a bit for each state and value. */
#include "graphs/problem/steps.h"
#include "planners/verify/verify_flow_priv.h"

#define MOST_WORDS ((uint64_t)1 << 28) /* of all states */

typedef struct flow {
    mpl_flow_map map;
    mpl_ctx *ctx;
    const mpl_graph *g;
    mpl_program *program;
    uint32_t n_words, n_value_words; /* of a state; those of its values, and of loops and cases */
    size_t *node_begin; /* [n_steps + 1] nodes of each step: by class of rounds, the innermost
                           loop's first */
    size_t n_nodes;
    uint32_t *first; /* [n_nodes] the states there, which differ in what came from outside;
                        MPL_NONE: none yet */
    uint32_t *next;  /* [n_states] the next one of the node */
    uint32_t *node;  /* [n_states] */
    uint8_t *queued; /* [n_states] */
    uint64_t *state; /* [n_states * n_words] */
    uint32_t *stack; /* states to go on from */
    uint32_t n_states, n_stack;
    size_t next_room, node_room, queued_room, state_room, stack_room;
    uint64_t *now;               /* [n_words] the state at hand */
    uint64_t *after;             /* [n_words] scratch: one way out of it */
    mpl_value *killer;           /* [n_values] what last destroyed it; MPL_NONE: nothing did */
    mpl_flow_spots *fixed;       /* [n_values] where those lie that never move */
    uint8_t *moves;              /* [n_values] the place depends on the rounds around */
    mpl_flow_spots spots, other; /* scratch */
    uint32_t *given; /* [n_values] number of an input or weight that is planned; MPL_NONE */
    uint32_t n_given;
    bool arriving;           /* what is written now comes from outside */
    uint32_t *last_arrival;  /* [n_values] the last step before which it may come */
    uint32_t *arrival_begin; /* [n_steps + 2] into arrival: what comes before a step, if it has not
                                come yet */
    mpl_value *arrival;
    uint8_t *comes; /* [n_values] scratch: at the step at hand */
} flow;

/* ---- states ---- */

static bool has(const uint64_t *state, mpl_value v)
{
    return (state[v / 64] >> (v % 64) & 1) != 0;
}

static void set(uint64_t *state, mpl_value v, bool on)
{
    uint64_t bit = UINT64_C(1) << (v % 64);

    state[v / 64] = on ? state[v / 64] | bit : state[v / 64] & ~bit;
}

static mpl_value holder(const flow *f, mpl_value v)
{
    return mpl_flow_holder(&f->map, v);
}

/* A loop or case has a bit too: that it has run since its block was entered, or the round began. */
static uint32_t ran(const flow *f, mpl_op op)
{
    return f->g->n_values + op;
}

/* Planned inputs and weights have two more bits: that they came for certain, and that they did not.
 * Until one comes its own bit says nothing. */
static uint32_t came(const flow *f, mpl_value v)
{
    return 64 * f->n_value_words + f->given[v];
}

static uint32_t awaited(const flow *f, mpl_value v)
{
    return 64 * f->n_value_words + f->n_given + f->given[v];
}

static bool stands(const flow *f, const uint64_t *state, mpl_value v)
{
    mpl_value h = holder(f, v);

    return f->g->value_bytes[v] == 0 ||
           (has(state, h) && (f->given[h] == MPL_NONE || has(state, came(f, h))));
}

static bool is_loop(const flow *f, uint32_t block)
{
    return block > 0 && f->g->op_kind[f->g->block_owner[block]] == MPL_OP_while;
}

static uint32_t block_at(const flow *f, uint32_t step)
{
    return f->program->kind[step] == MPL_STEP_OP ? f->g->op_block[f->program->of[step]]
                                                 : f->program->of[step];
}

/* The state of `step` for the rounds at hand. */
static size_t node_of(const flow *f, uint32_t step)
{
    size_t index = 0, factor = 1;

    for (uint32_t b = block_at(f, step); b != MPL_NONE; b = f->g->block_parent[b])
        if (is_loop(f, b)) {
            index += factor * mpl_flow_class(&f->map, b, f->map.round[b]);
            factor *= mpl_flow_classes(&f->map, b);
        }
    return f->node_begin[step] + index;
}

/* Makes the rounds of a state those at hand. */
static void go_to(flow *f, uint32_t step, size_t node)
{
    size_t index = node - f->node_begin[step];

    memset(f->map.round, 0xff, f->g->n_blocks * sizeof *f->map.round);
    for (uint32_t b = block_at(f, step); b != MPL_NONE; b = f->g->block_parent[b])
        if (is_loop(f, b)) {
            f->map.round[b] = (uint32_t)(index % mpl_flow_classes(&f->map, b));
            index /= mpl_flow_classes(&f->map, b);
        }
}

/* What has not come when nobody will read it any more never comes. */
static void settle(const flow *f, uint32_t step, uint64_t *state)
{
    for (mpl_value v = 0; f->n_given > 0 && v < f->g->n_values; v++)
        if (f->given[v] != MPL_NONE && f->last_arrival[v] < step && has(state, awaited(f, v))) {
            set(state, v, false);
            set(state, awaited(f, v), false);
            set(state, came(f, v), true);
        }
}

/* The state of a node with the same from outside as `state`; MPL_NONE: there is none. */
static uint32_t find_state(const flow *f, size_t node, const uint64_t *state)
{
    size_t size = (f->n_words - f->n_value_words) * sizeof *state;
    uint32_t id = f->first[node];

    while (id != MPL_NONE && memcmp(f->state + (size_t)id * f->n_words + f->n_value_words,
                                    state + f->n_value_words, size) != 0)
        id = f->next[id];
    return id;
}

static mpl_status new_state(flow *f, size_t node, const uint64_t *state, uint32_t *id)
{
    mpl_status st = MPL_OK;
    size_t n = (size_t)f->n_states + 1;

    if (n * f->n_words > MOST_WORDS || n >= MPL_NONE)
        MPL_FAIL(f->ctx, MPL_EINPUT, "'%.100s' has too many ways to run to check them all",
                 f->g->name);
    MPL_TRY(mpl_reserve(f->ctx, f->next, f->next_room, n));
    MPL_TRY(mpl_reserve(f->ctx, f->node, f->node_room, n));
    MPL_TRY(mpl_reserve(f->ctx, f->queued, f->queued_room, n));
    MPL_TRY(mpl_reserve(f->ctx, f->stack, f->stack_room, n));
    MPL_TRY(mpl_reserve(f->ctx, f->state, f->state_room, n * f->n_words));
    *id = f->n_states++;
    f->next[*id] = f->first[node];
    f->node[*id] = (uint32_t)node;
    f->queued[*id] = 0;
    f->first[node] = *id;
    memcpy(f->state + (size_t)*id * f->n_words, state, f->n_words * sizeof *state);
out:
    return st;
}

/* Control may come to `step` with `state`. */
static mpl_status arrive(flow *f, uint32_t step, uint64_t *state)
{
    mpl_status st = MPL_OK;
    size_t node = node_of(f, step);
    bool changed = false;
    uint32_t id;

    settle(f, step, state);
    id = find_state(f, node, state);
    if (id == MPL_NONE) {
        changed = true;
        MPL_TRY(new_state(f, node, state, &id));
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
out:
    return st;
}

/* ---- messages ---- */

/* " in round 0 of 'body'", for each loop around, into text of 200 bytes. */
static const char *rounds_text(const flow *f, char *text)
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

/* Whoever reads v now must find its contents. */
static mpl_status need(const flow *f, const uint64_t *state, mpl_value v, const char *who)
{
    mpl_status st = MPL_OK;
    char rounds[200];
    mpl_value killer;

    if (v == MPL_NONE || stands(f, state, v))
        goto out;
    killer = f->killer[holder(f, v)];
    MPL_FAIL(f->ctx, MPL_EINVALID, "'%.80s' reads '%.80s'%s, which %s%.80s%s by then", who,
             f->g->value_name[v], rounds_text(f, rounds),
             killer != MPL_NONE ? "'" : "need not be there ",
             killer != MPL_NONE ? f->g->value_name[killer] : "",
             killer != MPL_NONE ? "' may have overwritten" : "");
out:
    return st;
}

/* ---- memory ---- */

static bool overlap(const mpl_flow_spots *a, const mpl_flow_spots *b)
{
    for (size_t i = 0; i < a->n; i++)
        for (size_t k = 0; k < b->n; k++)
            if (a->at[i].arena == b->at[k].arena && a->at[i].begin < b->at[k].end &&
                b->at[k].begin < a->at[i].end)
                return true;
    return false;
}

/* Where v may lie now; valid until the next call. */
static mpl_status spots_of(flow *f, mpl_value v, const mpl_flow_spots **out)
{
    mpl_status st = MPL_OK;

    *out = &f->fixed[v];
    if (!f->moves[v])
        goto out;
    f->other.n = 0;
    MPL_TRY(mpl_where_spots(&f->map, mpl_flow_where(&f->map, v), f->g->value_bytes[v], &f->other));
    *out = &f->other;
out:
    return st;
}

/* Whether wherever f->spots, of `bytes` bytes, meet `there`, both begin at one byte; false also
 * where either is a slice. */
static bool meet_at_begins(const flow *f, const mpl_flow_spots *there, uint64_t bytes)
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

/* Whether a value may lie where `there` meets f->spots, those of an input that comes, only by
 * having taken over that input: which has come by then. */
static bool took_over(const flow *f, const mpl_flow_spots *there)
{
    for (size_t k = 0; k < there->n; k++)
        for (size_t i = 0; i < f->spots.n; i++) {
            const mpl_flow_spot *a = &f->spots.at[i], *b = &there->at[k];

            if (a->arena == b->arena && a->begin < b->end && b->begin < a->end && a->of != b->of)
                return false;
        }
    return true;
}

/* Whether `writer` is what weight v is from then on. */
static bool updates(const mpl_graph *g, mpl_value writer, mpl_value v)
{
    mpl_op op = g->value_op[writer];

    for (uint32_t i = 0; op != MPL_NONE && i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++)
        if (g->op_out[g->op_out_begin[op] + i] == writer)
            return mpl_updated(g, op, i) == v;
    return false;
}

/* Destroys what may overlap f->spots, where `writer` is written now, but for `writer` itself, and
 * for outputs of which w, where it lies, is a new row. */
static mpl_status destroy(flow *f, uint64_t *state, mpl_value writer, mpl_where w)
{
    mpl_status st = MPL_OK;
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
            MPL_FAIL(f->ctx, MPL_EINVALID,
                     "'%.80s' is written over '%.80s', which belongs to the caller",
                     g->value_name[writer], g->value_name[v]);
    }
    for (mpl_value v = 0; v < g->n_values; v++) {
        bool row;

        if (v % 64 == 0 && state[v / 64] == 0) {
            v += 63;
            continue;
        }
        if (!has(state, v) || v == writer || (f->given[v] != MPL_NONE && has(state, awaited(f, v))))
            continue;
        MPL_TRY(spots_of(f, v, &there));
        if (!overlap(&f->spots, there))
            continue;
        /* What control flow left either there or elsewhere is elsewhere. */
        if (f->arriving && there->n > 1 && took_over(f, there))
            continue;
        MPL_TRY(mpl_where_is_row(&f->map, w, bytes, v, &row));
        if (row)
            continue;
        set(state, v, false);
        f->killer[v] = writer;
    }
out:
    return st;
}

/* Where control flow left something is known only once it has come by. */
static mpl_status settled(const flow *f, const uint64_t *state, mpl_value v, mpl_where w)
{
    mpl_status st = MPL_OK;
    mpl_op op = mpl_where_unsettled(&f->map, w, state, f->g->n_values);
    char rounds[200];

    if (op != MPL_NONE)
        MPL_FAIL(f->ctx, MPL_EINVALID,
                 "'%.80s' lies where '%.80s' leaves it%s, which need not have run by then",
                 f->g->value_name[v], f->g->op_name[op], rounds_text(f, rounds));
out:
    return st;
}

/* Writes `writer` at w: what was there is gone, and it stands if `good`. */
static mpl_status write_at(flow *f, uint64_t *state, mpl_value writer, mpl_where w, bool good)
{
    mpl_status st = MPL_OK;

    MPL_TRY(settled(f, state, writer, w));
    f->spots.n = 0;
    MPL_TRY(mpl_where_spots(&f->map, w, f->g->value_bytes[writer], &f->spots));
    MPL_TRY(destroy(f, state, writer, w));
    if (good != has(state, writer))
        f->killer[writer] = MPL_NONE;
    set(state, writer, good);
out:
    return st;
}

static mpl_status refuse_elsewhere(const flow *f, mpl_value to)
{
    char rounds[200];

    return mpl_fail(f->ctx, MPL_EINVALID, __FILE__, __LINE__,
                    "'%.80s' takes over a value without a copy%s, and lies elsewhere",
                    f->g->value_name[to], rounds_text(f, rounds));
}

/* Copies to `to`, at `there`, out of `bytes` bytes at `here`, that stand or not: over its own
 * source in part, nothing stands. */
static mpl_status copy_at(flow *f, uint64_t *state, mpl_value to, mpl_where there, mpl_where here,
                          uint64_t bytes, bool standing)
{
    mpl_status st = MPL_OK;

    f->spots.n = f->other.n = 0;
    MPL_TRY(mpl_where_spots(&f->map, there, f->g->value_bytes[to], &f->spots));
    MPL_TRY(mpl_where_spots(&f->map, here, bytes, &f->other));
    standing = standing && (!overlap(&f->spots, &f->other) || meet_at_begins(f, &f->other, bytes));
    st = write_at(f, state, to, there, standing);
out:
    return st;
}

/* `to`, at `there`, takes over `from`, at `here`, that stands or not: copied, or because both lie
 * at one address. */
static mpl_status hand_on(flow *f, uint64_t *state, mpl_value to, mpl_where there, mpl_where here,
                          bool standing, bool copied)
{
    mpl_status st = MPL_OK;
    bool same;

    if (there.kind == MPL_WHERE_NOWHERE)
        goto out;
    MPL_TRY(settled(f, state, to, there));
    MPL_TRY(mpl_where_same(&f->map, there, here, &same));
    if (copied && !same)
        return copy_at(f, state, to, there, here, f->g->value_bytes[to], standing);
    if (!same && here.kind != MPL_WHERE_NOWHERE)
        return refuse_elsewhere(f, to);
    f->killer[to] = MPL_NONE;
    set(state, to, standing && same);
out:
    return st;
}

/* Where parameter v of a body is in `round`. */
static mpl_status where_in(flow *f, mpl_value v, uint32_t block, uint32_t round, mpl_where *out)
{
    mpl_status st = MPL_OK;
    uint32_t now = f->map.round[block];

    f->map.round[block] = round;
    *out = mpl_flow_where(&f->map, v);
    f->map.round[block] = now;
    if (out->n_rounds == 0)
        MPL_TRY(mpl_where_in_round(&f->map, out, block, round));
out:
    return st;
}

/* What lies where `op` decides is lost when that decides anew; and so is what `op` made. */
static void forget(flow *f, uint64_t *state, mpl_op op)
{
    for (mpl_value v = 0; v < f->g->n_values; v++)
        if (has(state, v) &&
            (f->g->value_op[v] == op || mpl_where_depends(&f->map, mpl_flow_where(&f->map, v), op)))
            set(state, v, false);
    set(state, ran(f, op), false);
}

/* Values of a block and of those in it end with it. */
static void leave_block(const flow *f, uint64_t *state, uint32_t block)
{
    for (mpl_op op = f->g->block_op_begin[block]; op < f->g->block_op_end[block]; op++)
        set(state, ran(f, op), false);
    for (mpl_value v = 0; v < f->g->n_values; v++)
        if (has(state, v) && mpl_block_within(f->g, f->g->value_block[v], block))
            set(state, v, false);
}

/* ---- what comes from outside ---- */

/* v comes now, if it has not come yet. */
static mpl_status receive(flow *f, uint64_t *state, mpl_value v)
{
    mpl_status st = MPL_OK;

    if (v == MPL_NONE || f->given[holder(f, v)] == MPL_NONE)
        goto out;
    v = holder(f, v);
    if (has(state, came(f, v)))
        goto out;
    f->arriving = true;
    st = write_at(f, state, v, mpl_flow_where(&f->map, v),
                  has(state, v) || has(state, awaited(f, v)));
    f->arriving = false;
    MPL_TRY(st);
    set(state, came(f, v), true);
    set(state, awaited(f, v), false);
out:
    return st;
}

/* What comes at one step comes in any order: of two that overlap, both are lost. */
static mpl_status receive_all(flow *f, uint64_t *state, uint32_t step)
{
    mpl_status st = MPL_OK;
    uint32_t begin = f->arrival_begin[step], end = f->arrival_begin[step + 1];

    memset(f->comes, 0, f->g->n_values);
    for (uint32_t i = begin; i < end; i++)
        f->comes[f->arrival[i]] = !has(state, came(f, f->arrival[i]));
    for (uint32_t i = begin; i < end; i++)
        MPL_TRY(receive(f, state, f->arrival[i]));
    f->arriving = true;
    for (uint32_t i = begin; i < end; i++)
        if (f->comes[f->arrival[i]])
            MPL_TRY(write_at(f, state, f->arrival[i], mpl_flow_where(&f->map, f->arrival[i]),
                             has(state, f->arrival[i])));
out:
    f->arriving = false;
    return st;
}

/* ---- operations ---- */

/* Whether two views of one value show no byte in common. */
static bool apart(const flow *f, mpl_value a, mpl_value b)
{
    const uint64_t *offset = f->map.map->value_offset, *bytes = f->g->value_bytes;

    return offset != NULL &&
           (offset[a] + bytes[a] <= offset[b] || offset[b] + bytes[b] <= offset[a]);
}

/* Whether the operator lets output 0 be written over input i. */
static bool may_overwrite(const flow *f, mpl_op op, uint32_t i)
{
    const mpl_graph *g = f->g;
    unsigned traits = mpl_op_table[g->op_kind[op]].traits;
    const mpl_value *in = g->op_in + g->op_in_begin[op];
    mpl_value out = g->op_out[g->op_out_begin[op]];
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];
    bool any = (traits & MPL_IN_PLACE_ANY) != 0 || ((traits & MPL_IN_PLACE_0) != 0 && i == 0);

    if (!any || g->value_type[in[i]] != g->value_type[out] ||
        g->value_bytes[in[i]] != g->value_bytes[out] ||
        ((traits & MPL_VIEW) == 0 &&
         !mpl_shape_equal(&g->value_shape[in[i]], &g->value_shape[out])))
        return false;
    for (uint32_t k = 0; k < n_in; k++) /* read again as another operand: only where both are read
                                           before the write */
        if (k != i && in[k] != MPL_NONE && holder(f, in[k]) == holder(f, in[i]) &&
            !apart(f, in[k], in[i]) &&
            ((traits & MPL_ELEMENTWISE) == 0 ||
             !mpl_shape_equal(&g->value_shape[in[k]], &g->value_shape[in[i]])))
            return false;
    return true;
}

/* Output o of op, at w, may touch no input but one that it overwrites in place. */
static mpl_status check_inputs(flow *f, mpl_op op, uint32_t o, mpl_where w)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = f->g;
    const mpl_flow_spots *there;
    char rounds[200];
    bool same;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++) {
        mpl_value v = g->op_in[i];

        if (v == MPL_NONE || v == mpl_updated(g, op, o - g->op_out_begin[op]))
            continue;
        f->spots.n = 0;
        MPL_TRY(mpl_where_spots(&f->map, w, g->value_bytes[g->op_out[o]], &f->spots));
        f->other.n = 0;
        MPL_TRY(mpl_where_spots(&f->map, mpl_flow_where(&f->map, v), g->value_bytes[v], &f->other));
        there = &f->other;
        if (!overlap(&f->spots, there))
            continue;
        same = meet_at_begins(f, there, g->value_bytes[v]);
        if (!same)
            MPL_TRY(mpl_where_same(&f->map, w, mpl_flow_where(&f->map, v), &same));
        if (!same || o != g->op_out_begin[op] || !may_overwrite(f, op, i - g->op_in_begin[op]))
            MPL_FAIL(f->ctx, MPL_EINVALID,
                     "'%.80s' writes '%.80s'%s over '%.80s', which it still reads", g->op_name[op],
                     g->value_name[g->op_out[o]], rounds_text(f, rounds), g->value_name[v]);
    }
out:
    return st;
}

/* The workspace must lie apart from all that the operation reads and writes. */
static mpl_status use_workspace(flow *f, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = f->g;
    mpl_buffer b = f->map.map->op_workspace != NULL ? f->map.map->op_workspace[op] : MPL_NONE;
    mpl_where w = {.kind = MPL_WHERE_BUFFER, .id = b};
    const mpl_flow_spots *there;

    if (b == MPL_NONE)
        goto out;
    f->spots.n = 0;
    MPL_TRY(mpl_where_spots(&f->map, w, f->map.p->bytes[b], &f->spots));
    for (int side = 0; side < 2; side++) {
        const uint32_t *begin = side == 0 ? g->op_in_begin : g->op_out_begin;

        for (uint32_t i = begin[op]; i < begin[op + 1]; i++) {
            mpl_value v = side == 0 ? g->op_in[i] : g->op_out[i];

            if (v == MPL_NONE)
                continue;
            MPL_TRY(spots_of(f, holder(f, v), &there));
            if (overlap(&f->spots, there))
                MPL_FAIL(f->ctx, MPL_EINVALID,
                         "the workspace of '%.80s' lies on its operand '%.80s'", g->op_name[op],
                         g->value_name[v]);
        }
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        if (has(f->now, v)) {
            MPL_TRY(spots_of(f, v, &there));
            if (overlap(&f->spots, there))
                set(f->now, v, false), f->killer[v] = MPL_NONE;
        }
out:
    return st;
}

/* A result whose parts were made in it stands if they all do. */
static void join_parts(flow *f, mpl_op op)
{
    const mpl_graph *g = f->g;
    mpl_value out = g->op_out[g->op_out_begin[op]];
    bool all = true;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        all = all && stands(f, f->now, g->op_in[i]);
    f->killer[out] = MPL_NONE;
    set(f->now, out, all);
}

static mpl_status plain_op(flow *f, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = f->g;

    if (mpl_flow_idle(&f->map, op)) {
        if (g->op_kind[op] == MPL_OP_concat)
            join_parts(f, op);
        goto out;
    }
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++)
        MPL_TRY(need(f, f->now, g->op_in[i], g->op_name[op]));
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        if (g->op_out[i] != MPL_NONE)
            MPL_TRY(check_inputs(f, op, i, mpl_flow_where(&f->map, g->op_out[i])));
    MPL_TRY(use_workspace(f, op));
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        mpl_value v = g->op_out[i];

        if (v != MPL_NONE && g->value_bytes[v] > 0 && holder(f, v) == v)
            MPL_TRY(write_at(f, f->now, v, mpl_flow_where(&f->map, v), true));
    }
out:
    return st;
}

/* ---- loops ---- */

typedef struct loop {
    mpl_op op;
    uint32_t body, n_carried, n_scans, n_rows;
    const mpl_value *in, *out, *param, *result;
    const uint8_t *in_copied, *result_copied;
    int64_t rounds, most; /* -1: not known beforehand; without bound */
} loop;

static loop loop_of(const flow *f, mpl_op op)
{
    const mpl_graph *g = f->g;
    const mpl_places *places = f->map.map->places;
    uint32_t body = g->op_body[g->op_body_begin[op]];
    loop l = {
        .op = op, .body = body, .n_carried = (uint32_t)mpl_attr_int(g, op, MPL_ATTR_carried, 0)};

    l.in = g->op_in + g->op_in_begin[op];
    l.out = g->op_out + g->op_out_begin[op];
    l.param = g->block_param + g->block_param_begin[body];
    l.result = g->block_result + g->block_result_begin[body];
    l.in_copied = places->in_copied + g->op_in_begin[op];
    l.result_copied = places->result_copied + g->block_result_begin[body];
    l.n_scans = g->op_in_begin[op + 1] - g->op_in_begin[op] - 2 - l.n_carried;
    l.n_rows = g->op_out_begin[op + 1] - g->op_out_begin[op] - l.n_carried;
    l.rounds = f->map.rounds[op];
    l.most = f->map.most[op];
    return l;
}

/* Behind the loop after `rounds` rounds, whose parameters are set in `state`. */
static mpl_status leave_loop(flow *f, const loop *l, uint64_t *state, uint32_t rounds)
{
    mpl_status st = MPL_OK;
    uint32_t now = f->map.round[l->body];
    mpl_where there, here;

    for (uint32_t i = 0; i < l->n_carried; i++) {
        if (l->out[i] == MPL_NONE || f->g->value_bytes[l->out[i]] == 0)
            continue;
        MPL_TRY(where_in(f, l->param[1 + i], l->body, rounds, &here));
        there = mpl_flow_where(&f->map, l->out[i]);
        f->map.taken[l->op] = 1 + rounds;
        st = hand_on(f, state, l->out[i], there, here, stands(f, state, l->param[1 + i]), false);
        f->map.taken[l->op] = 0;
        MPL_TRY(st);
    }
    for (uint32_t i = l->n_carried; i < l->n_carried + l->n_rows; i++)
        if (l->out[i] != MPL_NONE && f->g->value_bytes[l->out[i]] > 0) /* zeros where no row came */
            MPL_TRY(write_at(f, state, l->out[i], mpl_flow_where(&f->map, l->out[i]),
                             has(state, l->out[i])));
    leave_block(f, state, l->body);
    f->map.round[l->body] = MPL_NONE;
    MPL_TRY(arrive(f, f->program->op_step[l->op], state));
out:
    f->map.taken[l->op] = 0;
    f->map.round[l->body] = now;
    return st;
}

/* Into the loop, or past it: f->after is what there is. */
static mpl_status enter_loop(flow *f, mpl_op op)
{
    mpl_status st = MPL_OK;
    loop l = loop_of(f, op);
    uint64_t *state = f->after;
    mpl_where there, here;

    MPL_TRY(need(f, state, l.in[0], f->g->op_name[op]));
    MPL_TRY(need(f, state, l.in[1], f->g->op_name[op]));
    forget(f, state, op);
    f->map.round[l.body] = 0; /* parameters are where they will be in the first round */
    for (uint32_t i = 0; i < l.n_carried; i++) {
        here = mpl_flow_where(&f->map, l.in[2 + i]);
        MPL_TRY(where_in(f, l.param[1 + i], l.body, 0, &there));
        MPL_TRY(hand_on(f, state, l.param[1 + i], there, here, stands(f, state, l.in[2 + i]),
                        l.in_copied[2 + i] != 0));
    }
    for (uint32_t i = l.n_carried; i < l.n_carried + l.n_rows; i++)
        if (l.out[i] != MPL_NONE && f->g->value_bytes[l.out[i]] > 0) /* from now on rows come */
            MPL_TRY(write_at(f, state, l.out[i], mpl_flow_where(&f->map, l.out[i]), true));
    if (l.most != 0)
        MPL_TRY(arrive(f, f->program->begin_step[l.body], state));
    if (l.rounds <= 0)
        st = leave_loop(f, &l, state, 0);
out:
    f->map.round[l.body] = MPL_NONE;
    return st;
}

static bool is_reversed(const flow *f, const loop *l, uint32_t i)
{
    uint32_t n;
    const int64_t *flag = mpl_attr_ints(f->g, l->op, MPL_ATTR_scan_reverse, &n);

    return i < n && flag[i] != 0;
}

static mpl_status begin_round(flow *f, uint32_t body)
{
    mpl_status st = MPL_OK;
    loop l = loop_of(f, f->g->block_owner[body]);
    mpl_where w = mpl_flow_where(&f->map, l.param[0]);

    if (w.kind != MPL_WHERE_NOWHERE)
        MPL_TRY(write_at(f, f->now, l.param[0], w, true));
    for (uint32_t i = 0; i < l.n_scans; i++) {
        uint32_t in = 2 + l.n_carried + i;
        mpl_value slice = l.param[1 + l.n_carried + i];
        bool good = stands(f, f->now, l.in[in]), is;

        w = mpl_flow_where(&f->map, slice);
        if (w.kind == MPL_WHERE_NOWHERE)
            continue;
        MPL_TRY(settled(f, f->now, slice, w));
        MPL_TRY(mpl_where_slice(&f->map, w, mpl_flow_where(&f->map, l.in[in]), body,
                                f->g->value_bytes[slice], is_reversed(f, &l, i), &is));
        if (l.in_copied[in] && !is) {
            MPL_TRY(copy_at(f, f->now, slice, w, mpl_flow_where(&f->map, l.in[in]),
                            f->g->value_bytes[l.in[in]], good));
        } else if (!is && f->g->value_bytes[l.in[in]] > 0) {
            MPL_TRY(refuse_elsewhere(f, slice));
        } else {
            f->killer[slice] = MPL_NONE;
            set(f->now, slice, good && is);
        }
    }
out:
    return st;
}

/* Rows go where they are stacked, or lie there. */
static mpl_status stack_rows(flow *f, const loop *l)
{
    mpl_status st = MPL_OK;

    for (uint32_t i = l->n_carried; i < l->n_carried + l->n_rows; i++) {
        mpl_value out = l->out[i];
        mpl_flow_row_info row;
        bool good, is;

        if (out == MPL_NONE || f->g->value_bytes[out] == 0 || !mpl_flow_row(f->g, out, &row))
            continue;
        good = has(f->now, out) && stands(f, f->now, row.result);
        MPL_TRY(mpl_where_slice(&f->map, mpl_flow_where(&f->map, row.result),
                                mpl_flow_where(&f->map, out), l->body, row.bytes, row.reversed,
                                &is));
        if (!l->result_copied[1 + i] && !is)
            MPL_TRY(refuse_elsewhere(f, out));
        if (l->result_copied[1 + i] && !is) /* one row is written; which one, is not looked at */
            MPL_TRY(copy_at(f, f->now, out, mpl_flow_where(&f->map, out),
                            mpl_flow_where(&f->map, row.result), row.bytes, good));
        else
            set(f->now, out, good && is);
    }
out:
    return st;
}

/* What is carried by copies, as if at once. */
typedef struct transfer {
    mpl_value param;
    mpl_where source, from, to; /* from: the source until it is put aside */
    uint64_t bytes;
    bool standing, pending, copied, aside;
} transfer;

/* Whether a is copied onto what b is still to be copied from; onto itself, unless to where it
 * is. */
static mpl_status must_wait(flow *f, const transfer *a, const transfer *b, bool *out)
{
    mpl_status st = MPL_OK;
    size_t n = 0;

    f->spots.n = f->other.n = 0;
    MPL_TRY(mpl_where_spots(&f->map, a->to, a->bytes, &f->spots));
    MPL_TRY(mpl_where_spots(&f->map, b->from, b->bytes, &f->other));
    for (size_t i = 0; i < f->other.n; i++) {
        bool stays = false;

        for (size_t k = 0; a == b && k < f->spots.n; k++)
            stays = stays || (f->spots.at[k].arena == f->other.at[i].arena &&
                              f->spots.at[k].begin == f->other.at[i].begin);
        if (!stays)
            f->other.at[n++] = f->other.at[i];
    }
    f->other.n = n;
    *out = overlap(&f->spots, &f->other);
out:
    return st;
}

/* Makes all copies that wait for nobody; *moved: whether there were any. */
static mpl_status copy_what_can(flow *f, const loop *l, transfer *t, bool *moved)
{
    mpl_status st = MPL_OK;

    *moved = false;
    for (uint32_t i = 0; i < l->n_carried; i++) {
        bool waits = false;

        for (uint32_t k = 0; t[i].pending && k < l->n_carried && !waits; k++)
            if (t[k].pending && t[k].from.kind != MPL_WHERE_NOWHERE)
                MPL_TRY(must_wait(f, &t[i], &t[k], &waits));
        *moved = *moved || (t[i].pending && !waits);
        t[i].pending = t[i].pending && waits;
    }
out:
    return st;
}

/* The first of those left that another waits for; MPL_NONE: none is left. */
static mpl_status first_waited_for(flow *f, const loop *l, transfer *t, uint32_t *first)
{
    mpl_status st = MPL_OK;
    bool waits = false;

    for (uint32_t k = 0; k < l->n_carried; k++)
        for (uint32_t i = 0;
             t[k].pending && t[k].from.kind != MPL_WHERE_NOWHERE && i < l->n_carried; i++) {
            if (t[i].pending)
                MPL_TRY(must_wait(f, &t[i], &t[k], &waits));
            *first = k;
            if (waits)
                return MPL_OK;
        }
    *first = MPL_NONE;
out:
    return st;
}

/* Whether the staging buffer still holds something that has not been copied on. */
static bool any_aside(const loop *l, const transfer *t)
{
    for (uint32_t i = 0; i < l->n_carried; i++)
        if (t[i].pending && t[i].aside)
            return true;
    return false;
}

/* Copies all that nobody waits for, by way of the staging buffer where they wait for each other:
 * from its beginning again each time that it has been emptied. */
static mpl_status order_copies(flow *f, const loop *l, transfer *t, bool *staged)
{
    mpl_status st = MPL_OK;
    uint64_t used = 0;
    mpl_buffer staging = f->map.map->places->staging[l->body];
    uint32_t stuck = MPL_NONE;
    bool moved;

    *staged = false;
    for (;;) {
        MPL_TRY(copy_what_can(f, l, t, &moved));
        used = any_aside(l, t) ? used : 0;
        if (moved)
            continue;
        MPL_TRY(first_waited_for(f, l, t, &stuck));
        if (stuck == MPL_NONE)
            break;
        used += t[stuck].bytes;
        if (staging == MPL_NONE || used > f->map.p->bytes[staging])
            MPL_FAIL(f->ctx, MPL_EINVALID,
                     "block '%.80s' carries '%.80s' crosswise, and has no room to stage it",
                     f->g->block_name[l->body], f->g->value_name[t[stuck].param]);
        t[stuck].from = (mpl_where){.kind = MPL_WHERE_NOWHERE};
        t[stuck].aside = *staged = true;
    }
out:
    return st;
}

/* Destroys what copied parameters may overlap, other parameters among them. */
static mpl_status write_params(flow *f, const loop *l, const transfer *t)
{
    mpl_status st = MPL_OK;

    for (uint32_t i = 0; i < l->n_carried; i++) {
        if (!t[i].copied)
            continue;
        f->spots.n = 0;
        MPL_TRY(mpl_where_spots(&f->map, t[i].to, t[i].bytes, &f->spots));
        MPL_TRY(destroy(f, f->now, t[i].param, t[i].to));
    }
out:
    return st;
}

/* The staging buffer is written before the copies that wait are made, and read behind some of them.
 * What is in place already and lies there is lost. */
static mpl_status use_staging(flow *f, const loop *l, transfer *t)
{
    mpl_status st = MPL_OK;
    mpl_where w = {.kind = MPL_WHERE_BUFFER, .id = f->map.map->places->staging[l->body]};

    f->spots.n = 0;
    MPL_TRY(mpl_where_spots(&f->map, w, f->map.p->bytes[w.id], &f->spots));
    for (uint32_t i = 0; i < l->n_carried; i++) {
        f->other.n = 0;
        MPL_TRY(mpl_where_spots(&f->map, t[i].to, t[i].bytes, &f->other));
        if (t[i].copied)
            MPL_TRY(mpl_where_spots(&f->map, t[i].source, t[i].bytes, &f->other));
        if (!overlap(&f->spots, &f->other))
            continue;
        if (t[i].copied)
            MPL_FAIL(f->ctx, MPL_EINVALID,
                     "block '%.80s' copies by way of a place that '%.80s' takes part in",
                     f->g->block_name[l->body], f->g->value_name[t[i].param]);
        t[i].standing = false;
    }
    MPL_TRY(destroy(f, f->now, MPL_NONE, w));
out:
    return st;
}

/* Where the loop leaves things, should this be its last round. */
static mpl_status check_finals(const flow *f, mpl_op op)
{
    mpl_status st = MPL_OK;
    mpl_op inner = mpl_flow_finals_unsettled(&f->map, op, f->now, f->g->n_values);
    char rounds[200];

    if (inner != MPL_NONE)
        MPL_FAIL(f->ctx, MPL_EINVALID,
                 "'%.80s' leaves something where '%.80s' does%s, which need not have run",
                 f->g->op_name[op], f->g->op_name[inner], rounds_text(f, rounds));
out:
    return st;
}

/* The results of the round at hand become the parameters of the next. */
static mpl_status carry(flow *f, const loop *l, transfer *t)
{
    mpl_status st = MPL_OK;
    uint32_t next = f->map.round[l->body] + 1;
    bool staged, same;

    for (uint32_t i = 0; i < l->n_carried; i++) {
        mpl_value result = l->result[1 + i];

        t[i] = (transfer){.param = l->param[1 + i], .bytes = f->g->value_bytes[l->param[1 + i]]};
        t[i].from = mpl_flow_where(&f->map, result);
        if (t[i].from.n_rounds == 0)
            MPL_TRY(mpl_where_in_round(&f->map, &t[i].from, l->body, next - 1));
        t[i].source = t[i].from;
        MPL_TRY(where_in(f, t[i].param, l->body, next, &t[i].to));
        MPL_TRY(mpl_where_same(&f->map, t[i].to, t[i].from, &same));
        t[i].standing = stands(f, f->now, result);
        t[i].copied = t[i].pending =
            l->result_copied[1 + i] && !same && t[i].to.kind != MPL_WHERE_NOWHERE;
        if (!t[i].copied && !same && t[i].to.kind != MPL_WHERE_NOWHERE &&
            t[i].from.kind != MPL_WHERE_NOWHERE)
            MPL_TRY(refuse_elsewhere(f, t[i].param));
        if (!t[i].copied && !same)
            t[i].standing = false;
    }
    MPL_TRY(order_copies(f, l, t, &staged));
    if (staged)
        MPL_TRY(use_staging(f, l, t));
    MPL_TRY(check_finals(f, l->op));
    leave_block(f, f->now, l->body);
    f->map.round[l->body] = next;
    for (uint32_t i = 0; i < l->n_carried; i++) {
        /* else it is where its source was left */
        if (t[i].to.kind != t[i].from.kind || t[i].to.id != t[i].from.id)
            MPL_TRY(settled(f, f->now, t[i].param, t[i].to));
        f->killer[t[i].param] = MPL_NONE;
        set(f->now, t[i].param, t[i].standing && t[i].to.kind != MPL_WHERE_NOWHERE);
    }
    st = write_params(f, l, t);
    f->map.round[l->body] = next - 1;
out:
    return st;
}

static mpl_status end_round(flow *f, uint32_t body)
{
    mpl_status st = MPL_OK;
    loop l = loop_of(f, f->g->block_owner[body]);
    uint32_t round = f->map.round[body];
    bool may_end = l.rounds < 0 || mpl_flow_class(&f->map, body, (uint64_t)l.rounds - 1) == round;
    transfer *t = NULL;

    MPL_TRY(mpl_new(f->ctx, t, l.n_carried));
    MPL_TRY(need(f, f->now, l.result[0], f->g->block_name[body]));
    MPL_TRY(stack_rows(f, &l));
    MPL_TRY(carry(f, &l, t));
    f->map.round[body] = round + 1;
    if (l.most < 0 || round + 1 < l.most) /* a class goes by its lowest round */
        MPL_TRY(arrive(f, f->program->begin_step[body], f->now));
    if (may_end)
        st = leave_loop(f, &l, f->now, round + 1);
    f->map.round[body] = round;
out:
    mpl_free(f->ctx, t);
    return st;
}

/* ---- cases ---- */

/* Outputs of a case take over from[], by branch `taken` (from 1; the last: none), in `state`. */
static mpl_status hand_out(flow *f, mpl_op op, uint64_t *state, const mpl_value *from,
                           const uint8_t *copied, uint32_t taken)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = f->g;

    for (uint32_t i = 0; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++) {
        mpl_value out = g->op_out[g->op_out_begin[op] + i];

        if (out == MPL_NONE || from[i] == MPL_NONE || g->value_bytes[out] == 0)
            continue;
        f->map.taken[op] = taken;
        st = hand_on(f, state, out, mpl_flow_where(&f->map, out), mpl_flow_where(&f->map, from[i]),
                     stands(f, state, from[i]), copied[i] != 0);
        f->map.taken[op] = 0;
        MPL_TRY(st);
    }
out:
    return st;
}

/* To each branch, and to none: f->after is what there is. */
static mpl_status enter_case(flow *f, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = f->g;
    uint32_t in = g->op_in_begin[op], n = g->op_body_begin[op + 1] - g->op_body_begin[op];

    MPL_TRY(need(f, f->after, g->op_in[in], g->op_name[op]));
    forget(f, f->after, op);
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        MPL_TRY(arrive(f, f->program->begin_step[g->op_body[k]], f->after));
    if (g->op_in_begin[op + 1] == in + 1 && g->op_out_begin[op] < g->op_out_begin[op + 1])
        goto out; /* nothing to go on with: an error of the run */
    for (uint32_t i = in + 1; i < g->op_in_begin[op + 1]; i++)
        MPL_TRY(receive(f, f->after, g->op_in[i]));
    MPL_TRY(hand_out(f, op, f->after, g->op_in + in + 1, f->map.map->places->in_copied + in + 1,
                     n + 1));
    MPL_TRY(arrive(f, f->program->op_step[op], f->after));
out:
    return st;
}

static mpl_status end_branch(flow *f, uint32_t block)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = f->g;
    mpl_op op = g->block_owner[block];
    uint32_t at = g->block_result_begin[block], taken = 1;

    while (g->op_body[g->op_body_begin[op] + taken - 1] != block)
        taken++;
    MPL_TRY(hand_out(f, op, f->now, g->block_result + at, f->map.map->places->result_copied + at,
                     taken));
    leave_block(f, f->now, block);
    MPL_TRY(arrive(f, f->program->op_step[op], f->now));
out:
    return st;
}

/* ---- the program ---- */

/* From one step to the next; into blocks by their owners. */
static mpl_status go_on(flow *f, uint32_t step)
{
    mpl_status st = MPL_OK;
    const mpl_program *p = f->program;
    mpl_op op;

    if (step == p->n_steps) {
        for (uint32_t i = 0; i < f->g->n_outputs; i++)
            MPL_TRY(need(f, f->now, f->g->output[i], "the caller"));
        return MPL_OK;
    }
    memcpy(f->after, f->now, f->n_words * sizeof *f->after);
    if (p->kind[step] != MPL_STEP_BEGIN) {
        return arrive(f, step, f->after);
    }
    MPL_TRY(receive_all(f, f->after, step));
    op = f->g->block_owner[p->of[step]];
    return f->g->op_kind[op] == MPL_OP_while ? enter_loop(f, op) : enter_case(f, op);
out:
    return st;
}

static mpl_status run_op(flow *f, uint32_t step, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = f->g;

    if ((mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) == 0) {
        MPL_TRY(plain_op(f, op));
    } else if (g->op_kind[op] == MPL_OP_exit_unless) {
        uint32_t body = g->op_block[op];
        loop l = loop_of(f, g->block_owner[body]);

        MPL_TRY(need(f, f->now, g->op_in[g->op_in_begin[op]], g->op_name[op]));
        memcpy(f->after, f->now, f->n_words * sizeof *f->after);
        MPL_TRY(leave_loop(f, &l, f->after, f->map.round[body]));
    } else {
        set(f->now, ran(f, op), true);
    }
    MPL_TRY(go_on(f, step + 1));
out:
    return st;
}

static mpl_status run_step(flow *f, uint32_t step)
{
    mpl_status st = MPL_OK;
    uint32_t of = f->program->of[step];

    MPL_TRY(receive_all(f, f->now, step));
    switch ((mpl_step_kind)f->program->kind[step]) {
    case MPL_STEP_OP:
        return run_op(f, step, of);
    case MPL_STEP_BEGIN:
        if (is_loop(f, of))
            MPL_TRY(begin_round(f, of));
        return go_on(f, step + 1);
    case MPL_STEP_END:
        return is_loop(f, of) ? end_round(f, of) : end_branch(f, of);
    }
out:
    return st;
}

/* ---- setting up ---- */

/* The order of the operations, from their steps. */
static mpl_status make_program(flow *f)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = f->g;
    const uint32_t *step_of = f->map.map->step_of;
    size_t n_steps = (size_t)g->n_ops + 2 * ((size_t)g->n_blocks - 1);
    mpl_op *at = NULL, *order = NULL;
    uint32_t n = 0;

    MPL_TRY(mpl_new(f->ctx, at, n_steps));
    MPL_TRY(mpl_new(f->ctx, order, g->n_ops));
    if (n_steps > 0)
        memset(at, 0xff, n_steps * sizeof *at);
    for (mpl_op op = 0; op < g->n_ops; op++) {
        if (step_of[op] >= n_steps || at[step_of[op]] != MPL_NONE)
            MPL_FAIL(f->ctx, MPL_EINVALID, "operation '%.80s' has no step of its own",
                     g->op_name[op]);
        at[step_of[op]] = op;
    }
    for (size_t step = 0; step < n_steps; step++)
        if (at[step] != MPL_NONE)
            order[n++] = at[step];
    MPL_TRY(mpl_program_new(f->ctx, g, order, &f->program));
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (f->program->op_step[op] != step_of[op])
            MPL_FAIL(f->ctx, MPL_EINVALID,
                     "operation '%.80s' is said to run at step %u, and runs at step %u",
                     g->op_name[op], step_of[op], f->program->op_step[op]);
out:
    mpl_free(f->ctx, at);
    mpl_free(f->ctx, order);
    return st;
}

/* The step before which what is read at `step` of block b comes: in loops, where the outermost
 * begins. */
static uint32_t arrival_step(const flow *f, uint32_t b, uint32_t step)
{
    for (; b != MPL_NONE && b != 0; b = f->g->block_parent[b])
        if (is_loop(f, b))
            step = f->program->begin_step[b];
    return step;
}

/* Value v is read there: counted, or entered. */
static void note_arrival(flow *f, mpl_value v, uint32_t step, bool count)
{
    if (v == MPL_NONE || f->given[holder(f, v)] == MPL_NONE)
        return;
    v = holder(f, v);
    if (f->last_arrival[v] < step)
        f->last_arrival[v] = step;
    if (count)
        f->arrival_begin[step + 2]++;
    else
        f->arrival[f->arrival_begin[step + 1]++] = v;
}

/* What is read when no branch is taken comes then. */
static void note_bypass(const flow *f, mpl_value v, uint32_t step)
{
    if (v != MPL_NONE && f->given[holder(f, v)] != MPL_NONE && f->last_arrival[holder(f, v)] < step)
        f->last_arrival[holder(f, v)] = step;
}

static void note_arrivals(flow *f, bool count)
{
    const mpl_graph *g = f->g;
    const mpl_program *p = f->program;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        bool owner = g->op_body_begin[op] < g->op_body_begin[op + 1];
        uint32_t step = owner ? p->begin_step[g->op_body[g->op_body_begin[op]]] : p->op_step[op];

        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            if (g->op_kind[op] != MPL_OP_case || i == g->op_in_begin[op])
                note_arrival(f, g->op_in[i], arrival_step(f, g->op_block[op], step), count);
            else if (arrival_step(f, g->op_block[op], MPL_NONE) != MPL_NONE)
                note_arrival(f, g->op_in[i], arrival_step(f, g->op_block[op], step), count);
            else
                note_bypass(f, g->op_in[i], p->op_step[op]);
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        note_arrival(f, g->output[i], 0, count);
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = g->block_result_begin[b];
             i < g->block_result_begin[b] + g->block_n_results[b]; i++)
            note_arrival(f, g->block_result[i], arrival_step(f, b, p->end_step[b]), count);
}

static mpl_status make_arrivals(flow *f)
{
    mpl_status st = MPL_OK;
    uint32_t n_steps = f->program->n_steps;

    MPL_TRY(mpl_new(f->ctx, f->given, f->g->n_values));
    MPL_TRY(mpl_new(f->ctx, f->last_arrival, f->g->n_values));
    MPL_TRY(mpl_new(f->ctx, f->comes, f->g->n_values));
    MPL_TRY(mpl_new(f->ctx, f->arrival_begin, (size_t)n_steps + 3));
    for (mpl_value v = 0; v < f->g->n_values; v++) {
        bool outside = f->g->value_role[v] == MPL_INPUT || f->g->value_role[v] == MPL_WEIGHT;

        f->given[v] = outside && f->map.map->value_buffer[v] != MPL_NONE ? f->n_given++ : MPL_NONE;
    }
    note_arrivals(f, true);
    for (uint32_t step = 0; step < n_steps; step++)
        f->arrival_begin[step + 2] += f->arrival_begin[step + 1];
    MPL_TRY(mpl_new(f->ctx, f->arrival, f->arrival_begin[n_steps + 1]));
    note_arrivals(f, false);
out:
    return st;
}

static mpl_status make_states(flow *f)
{
    mpl_status st = MPL_OK;
    uint64_t n = 0;

    f->n_value_words = (f->g->n_values + f->g->n_ops) / 64 + 1;
    f->n_words = f->n_value_words + (f->n_given > 0 ? 2 * f->n_given / 64 + 1 : 0);
    MPL_TRY(mpl_new(f->ctx, f->node_begin, (size_t)f->program->n_steps + 1));
    for (uint32_t step = 0; step < f->program->n_steps; step++) {
        uint64_t factor = 1;

        for (uint32_t b = block_at(f, step); b != MPL_NONE; b = f->g->block_parent[b])
            if (is_loop(f, b) && factor < MOST_WORDS)
                factor *= mpl_flow_classes(&f->map, b);
        f->node_begin[step] = n;
        n += factor;
        if (n * f->n_words > MOST_WORDS || n >= MPL_NONE)
            MPL_FAIL(f->ctx, MPL_EINPUT, "'%.100s' has too many kinds of rounds to check them all",
                     f->g->name);
    }
    f->node_begin[f->program->n_steps] = f->n_nodes = n;
    MPL_TRY(mpl_new(f->ctx, f->first, f->n_nodes));
    if (f->n_nodes > 0)
        memset(f->first, 0xff, f->n_nodes * sizeof *f->first);
    MPL_TRY(mpl_new(f->ctx, f->now, f->n_words));
    MPL_TRY(mpl_new(f->ctx, f->after, f->n_words));
out:
    return st;
}

/* Whether a value's address depends on the round that its loop, or one around, is in. */
static bool turns(const flow *f, mpl_value v)
{
    mpl_where w = mpl_flow_where(&f->map, v);

    if (f->g->value_bytes[v] > 0 && w.kind == MPL_WHERE_NOWHERE)
        return true; /* it may lie where what it takes over lies */
    for (uint32_t b = f->g->value_block[v]; b > 0; b = f->g->block_parent[b])
        if (mpl_where_depends(&f->map, w, f->g->block_owner[b]))
            return true;
    return false;
}

static mpl_status make_spots(flow *f)
{
    mpl_status st = MPL_OK;

    MPL_TRY(mpl_new(f->ctx, f->killer, f->g->n_values));
    MPL_TRY(mpl_new(f->ctx, f->fixed, f->g->n_values));
    MPL_TRY(mpl_new(f->ctx, f->moves, f->g->n_values));
    for (mpl_value v = 0; v < f->g->n_values; v++) {
        f->killer[v] = MPL_NONE;
        f->moves[v] = turns(f, v);
        if (!f->moves[v])
            MPL_TRY(mpl_where_spots(&f->map, mpl_flow_where(&f->map, v), f->g->value_bytes[v],
                                    &f->fixed[v]));
    }
out:
    return st;
}

/* Where operations may run at the same time, all that comes from outside is there before the
 * first. */
static mpl_status begin(flow *f)
{
    mpl_status st = MPL_OK;

    for (mpl_value v = 0; v < f->g->n_values; v++) {
        if (f->g->value_role[v] != MPL_INPUT && f->g->value_role[v] != MPL_WEIGHT)
            continue;
        set(f->now, v, true);
        if (f->given[v] != MPL_NONE)
            set(f->now, awaited(f, v), true);
        if (f->map.p->before != NULL)
            MPL_TRY(receive(f, f->now, v));
    }
out:
    return st;
}

static mpl_status run(flow *f)
{
    mpl_status st = MPL_OK;

    MPL_TRY(begin(f));
    MPL_TRY(go_on(f, 0));
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
        go_to(f, low, node);
        memcpy(f->now, f->state + (size_t)id * f->n_words, f->n_words * sizeof *f->now);
        MPL_TRY(run_step(f, low));
    }
out:
    return st;
}

mpl_status mpl_verify_places(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                             const mpl_problem *p, const mpl_plan *plan)
{
    mpl_status st = MPL_OK;
    flow f = {.ctx = ctx, .g = g, .map = {.ctx = ctx, .g = g, .map = map, .p = p, .plan = plan}};

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
    void *arrays[] = {f.node_begin,   f.first,         f.next,     f.node,     f.queued,
                      f.state,        f.stack,         f.now,      f.after,    f.killer,
                      f.fixed,        f.moves,         f.spots.at, f.other.at, f.given,
                      f.last_arrival, f.arrival_begin, f.arrival,  f.comes};
    MPL_FREE_ALL(ctx, arrays);
    mpl_program_free(ctx, f.program);
    mpl_flow_map_fini(&f.map);
    return st;
}
