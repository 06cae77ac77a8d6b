/* held.c -- which values of a graph lie in its states. See entries.h. */
#include "graphs/problem/entries/entries.h"

#include "graphs/problem/liveness.h"
#include "graphs/problem/steps.h"

typedef struct holding {
    const mpl_graph *g;
    const mpl_value_map *map;
    uint32_t n_steps;
    uint32_t *first; /* [n_values] of a root: step of its first write; MPL_NONE: none */
    uint32_t *last;  /* [n_values] of a root: one past its last read; 0: never read */
    mpl_op *at;      /* [n_steps] outermost operation of a step, or MPL_NONE */
    mpl_held *held;
} holding;

static void note_read(holding *self, mpl_value v, uint32_t step)
{
    mpl_value root = v != MPL_NONE ? self->map->value_root[v] : MPL_NONE;

    if (root != MPL_NONE && self->last[root] < step + 1)
        self->last[root] = step + 1;
}

/* A value that an operation in a block touches counts as touched until its outermost owner ends. */
static void note_op(holding *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    uint32_t step = self->map->step_of[mpl_op_outermost(g, op)];

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        note_read(self, g->op_in[i], step);
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
        for (uint32_t i = 0; i < g->block_n_results[g->op_body[k]]; i++)
            note_read(self, mpl_result(g, g->op_body[k], i), step);
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        mpl_value root = g->op_out[i] != MPL_NONE ? self->map->value_root[g->op_out[i]] : MPL_NONE;

        if (root != MPL_NONE && step < self->first[root])
            self->first[root] = step;
    }
    if (g->op_block[op] == 0)
        self->at[step] = op;
}

/* Outputs are read after the last step, those of states where the state lies. */
static void note_outputs(holding *self, uint32_t n, const mpl_kept *state)
{
    for (uint32_t i = 0; i < self->g->n_outputs; i++) {
        mpl_value v = self->g->output[i];
        bool of_state = false;

        for (uint32_t s = 0; s < n; s++)
            of_state = of_state || state[s].after == v;
        if (!of_state)
            note_read(self, v, self->n_steps);
    }
}

static void hold(holding *self, mpl_value root, uint32_t s)
{
    self->held->state[root] = s;
    self->held->is_held[root] = 1;
}

/* Whether the value fills storage of its own that an operation makes. */
static bool is_whole(const holding *self, mpl_value v)
{
    mpl_value root = self->map->value_root[v];

    return self->g->value_op[root] != MPL_NONE && self->map->value_offset[v] == 0 &&
           self->g->value_bytes[root] == self->g->value_bytes[v] &&
           !mpl_value_strided(self->map, v) && !mpl_is_chosen(self->g, root) &&
           self->held->state[root] == MPL_NONE;
}

/* The root that the last reader of `root` makes in its place; MPL_NONE: it does not. */
static mpl_value overwritten_by(const holding *self, mpl_value root)
{
    const mpl_graph *g = self->g;
    uint32_t step = self->last[root] - 1;
    mpl_op op = self->last[root] > 0 && step < self->n_steps ? self->at[step] : MPL_NONE;
    mpl_value out = op != MPL_NONE ? mpl_op_output(g, op, 0) : MPL_NONE;

    if (out == MPL_NONE || mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL ||
        self->map->value_root[out] != out || !is_whole(self, out) || self->first[out] != step ||
        g->value_bytes[out] != g->value_bytes[root])
        return MPL_NONE;
    for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
        if (mpl_op_input(g, op, i) != MPL_NONE &&
            self->map->value_root[mpl_op_input(g, op, i)] == root &&
            mpl_in_place_operand(g, self->map->value_root, self->map->value_offset, op, i))
            return out;
    return MPL_NONE;
}

/* Whether a chain of in-place operations leads from `from` to `to`; holds the values on the way. */
static bool hold_chain(holding *self, mpl_value from, mpl_value to, uint32_t s)
{
    mpl_value at = from;

    while (at != MPL_NONE && at != to)
        at = overwritten_by(self, at);
    if (at == MPL_NONE)
        return false;
    while (from != to) {
        mpl_value next = overwritten_by(self, from);

        hold(self, from, s);
        from = next;
    }
    hold(self, to, s);
    return true;
}

static void hold_state(holding *self, uint32_t s, const mpl_kept *state)
{
    mpl_value before = state->before, root;

    if (before != MPL_NONE)
        hold(self, before, s);
    if (state->after == MPL_NONE || state->after == before)
        return;
    root = self->map->value_root[state->after];
    if (root == before && self->map->value_offset[state->after] == 0)
        return;
    if (!is_whole(self, state->after)) {
        self->held->refused[s] = 1;
    } else if (before != MPL_NONE && hold_chain(self, before, root, s)) {
        return;
    } else if (before == MPL_NONE || self->last[before] <= self->first[root]) {
        hold(self, root, s);
        self->held->from[s] = before != MPL_NONE ? self->last[before] : 0;
        self->held->to[s] = self->first[root];
    } else {
        self->held->refused[s] = 1;
    }
}

static mpl_status held_alloc(mpl_ctx *ctx, uint32_t n_values, uint32_t n, mpl_held **out)
{
    MPL_PASS(mpl_new(ctx, *out, 1));
    (*out)->n = n;
    MPL_PASS(mpl_new_each(ctx, n_values, (*out)->state, (*out)->is_held));
    MPL_PASS(mpl_new_each(ctx, n, (*out)->from, (*out)->to, (*out)->refused));
    memset((*out)->state, 0xff, n_values * sizeof *(*out)->state);
    return MPL_OK;
}

mpl_status mpl_held_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                        const mpl_value_map *map, uint32_t n, const mpl_kept *state, mpl_held **out)
{
    mpl_status st = MPL_OK;
    holding h = {.g = g, .map = map};
    mpl_program *program = NULL;

    MPL_TRY(held_alloc(ctx, g->n_values, n, &h.held));
    MPL_TRY(mpl_program_new(ctx, g, order, &program));
    h.n_steps = program->n_steps;
    MPL_TRY(mpl_new_each(ctx, g->n_values, h.first, h.last));
    MPL_TRY(mpl_new(ctx, h.at, h.n_steps));
    memset(h.first, 0xff, g->n_values * sizeof *h.first);
    memset(h.at, 0xff, h.n_steps * sizeof *h.at);
    for (mpl_op op = 0; op < g->n_ops; op++)
        note_op(&h, op);
    note_outputs(&h, n, state);
    for (uint32_t s = 0; s < n; s++)
        hold_state(&h, s, &state[s]);
    *out = h.held, h.held = NULL;
out:
    mpl_program_free(ctx, program);
    mpl_held_free(ctx, h.held);
    mpl_free_each(ctx, h.first, h.last, h.at);
    return st;
}

void mpl_held_free(mpl_ctx *ctx, mpl_held *held)
{
    if (held != NULL)
        mpl_free_each(ctx, held->state, held->is_held, held->from, held->to, held->refused, held);
}
