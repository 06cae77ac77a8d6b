/* verify_calls.c -- several graphs over one memory, called in any sequence. See verify.h.
 *
 * Follows each graph through its steps once. At the start each state holds the contents from before
 * the call, whatever was called before. A state loses them where a buffer that overlaps it is
 * needed, and changes them where an operation writes a value that lies in it. What is read must be
 * there, and so must, at the end, what the next call expects. By induction this holds for every
 * sequence of calls. */
#include "planners/verify/verify.h"

enum { OLD = UINT32_MAX - 1 }; /* contents that this graph has no value for */

typedef struct follower {
    mpl_ctx *ctx;
    const mpl_states_at *states;
    const mpl_called *called;
    mpl_value *holds; /* [states->n] root whose contents are there; OLD; MPL_NONE: lost */
    uint32_t *lost; /* [n_steps + 1] of one state: buffers over it begin, minus buffers that end */
    uint8_t *is_lost; /* [states->n * n_steps] 1: a buffer over the state is needed at the step */
    mpl_op *at;       /* [n_steps] outermost operation of a step, or MPL_NONE */
} follower;

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

static mpl_status check_states(mpl_ctx *ctx, const mpl_states_at *at)
{
    for (uint32_t i = 0; i < at->n; i++) {
        uint64_t end;

        if (!mpl_add_bytes(at->at[i], at->bytes[i], &end) || end > at->arena_bytes)
            return MPL_ERROR(ctx, MPL_EINVALID,
                             "state '%s' at %" PRIu64 " ends outside of the arena of %" PRIu64
                             " bytes",
                             at->name[i], at->at[i], at->arena_bytes);
        for (uint32_t j = 0; j < i; j++)
            if (overlap(at->at[i], at->bytes[i], at->at[j], at->bytes[j]))
                return MPL_ERROR(ctx, MPL_EINVALID, "states '%s' and '%s' overlap", at->name[j],
                                 at->name[i]);
    }
    return MPL_OK;
}

/* The state that root v lies in by its offset; states->n: none does. */
static uint32_t state_of(const follower *self, mpl_value v)
{
    uint32_t s = 0;

    while (s < self->states->n &&
           (v == MPL_NONE || self->called->held_at[v] != self->states->at[s]))
        s++;
    return s;
}

static mpl_value root_of(const follower *self, mpl_value v)
{
    return v != MPL_NONE ? self->called->map->value_root[v] : MPL_NONE;
}

/* Each root that is held is a whole state; inputs and outputs of states are held. */
static mpl_status check_places(const follower *self)
{
    const mpl_called *called = self->called;

    for (mpl_value v = 0; v < called->g->n_values; v++) {
        uint32_t s = state_of(self, v);

        if (called->held_at[v] == UINT64_MAX)
            continue;
        if (s == self->states->n || called->g->value_bytes[v] != self->states->bytes[s] ||
            called->map->value_root[v] != v || called->map->value_buffer[v] != MPL_NONE)
            return MPL_ERROR(self->ctx, MPL_EINVALID,
                             "entry '%s': value '%s' at %" PRIu64
                             " is not where a state of %" PRIu64 " bytes lies",
                             called->name, called->g->value_name[v], called->held_at[v],
                             called->g->value_bytes[v]);
    }
    for (uint32_t s = 0; s < self->states->n; s++) {
        if (called->before[s] != MPL_NONE && state_of(self, called->before[s]) != s)
            return MPL_ERROR(self->ctx, MPL_EINVALID,
                             "entry '%s': input '%s' is not at %" PRIu64 ", where state '%s' lies",
                             called->name, called->g->value_name[called->before[s]],
                             self->states->at[s], self->states->name[s]);
        if (called->after[s] != MPL_NONE &&
            (state_of(self, root_of(self, called->after[s])) != s ||
             called->map->value_offset[called->after[s]] != 0 ||
             called->g->value_bytes[called->after[s]] != self->states->bytes[s]))
            return MPL_ERROR(self->ctx, MPL_EINVALID,
                             "entry '%s': output '%s' is not written at %" PRIu64
                             ", where state '%s' lies",
                             called->name, called->g->value_name[called->after[s]],
                             self->states->at[s], self->states->name[s]);
    }
    return MPL_OK;
}

/* Marks the steps at which a buffer over state s is needed. Gaps count as needed. */
static void mark_lost(follower *self, uint32_t s)
{
    const mpl_problem *p = self->called->p;
    uint32_t over = 0;

    memset(self->lost, 0, ((size_t)p->n_steps + 1) * sizeof *self->lost);
    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == 0 && overlap(self->called->plan->offset[b], p->bytes[b],
                                       self->states->at[s], self->states->bytes[s])) {
            self->lost[p->birth[b]]++;
            self->lost[p->death[b]]--;
        }
    for (uint32_t step = 0; step < p->n_steps; step++) {
        over += self->lost[step];
        self->is_lost[(size_t)s * p->n_steps + step] = over != 0;
    }
}

static mpl_status check_read(const follower *self, mpl_op op, mpl_value v)
{
    mpl_value root = root_of(self, v);
    uint32_t s = state_of(self, root);

    if (s == self->states->n || self->holds[s] == root)
        return MPL_OK;
    return MPL_ERROR(self->ctx, MPL_EINVALID,
                     "entry '%s': operation '%s' reads '%s' where state '%s' lies; %s is there",
                     self->called->name, self->called->g->op_name[op],
                     self->called->g->value_name[v], self->states->name[s],
                     self->holds[s] >= OLD ? "something else"
                                           : self->called->g->value_name[self->holds[s]]);
}

/* All that the operation and its blocks read. */
static mpl_status check_reads(const follower *self, mpl_op op)
{
    const mpl_graph *g = self->called->g;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        MPL_PASS(check_read(self, op, g->op_in[i]));
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++) {
        uint32_t b = g->op_body[k];

        for (mpl_op inner = g->block_op_begin[b]; inner < g->block_op_end[b]; inner++)
            MPL_PASS(check_reads(self, inner));
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            MPL_PASS(check_read(self, op, mpl_result(g, b, i)));
    }
    return MPL_OK;
}

/* Whether `op` may write output v over the old contents that it reads there, by the operator table.
 */
static bool may_overwrite(const follower *self, mpl_op op, mpl_value v, mpl_value old)
{
    const mpl_graph *g = self->called->g;
    const mpl_value *in = g->op_in + g->op_in_begin[op];
    uint32_t n = g->op_in_begin[op + 1] - g->op_in_begin[op], reads = 0;
    unsigned traits = mpl_op_table[g->op_kind[op]].traits;
    bool allowed = false;

    for (uint32_t i = 0; i < n; i++) {
        if (root_of(self, in[i]) != old)
            continue;
        reads++;
        allowed =
            allowed ||
            (((traits & MPL_IN_PLACE_ANY) != 0 || ((traits & MPL_IN_PLACE_0) != 0 && i == 0)) &&
             g->value_type[in[i]] == g->value_type[v] &&
             g->value_bytes[in[i]] == g->value_bytes[v]);
    }
    return reads == 0 || (allowed && v == mpl_op_output(g, op, 0) &&
                          (reads == 1 || (traits & MPL_ELEMENTWISE) != 0));
}

static mpl_status check_write(follower *self, mpl_op op, mpl_value v, uint32_t step)
{
    mpl_value root = root_of(self, v);
    uint32_t s = state_of(self, root);

    if (s == self->states->n)
        return MPL_OK;
    if (self->is_lost[(size_t)s * self->called->p->n_steps + step])
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "entry '%s': operation '%s' writes '%s' into state '%s' at step %" PRIu32
                         "; a buffer there is needed, too",
                         self->called->name, self->called->g->op_name[op],
                         self->called->g->value_name[v], self->states->name[s], step);
    if (self->holds[s] != root && !may_overwrite(self, op, v, self->holds[s]))
        return MPL_ERROR(self->ctx, MPL_EINVALID,
                         "entry '%s': operation '%s' cannot write '%s' over what it reads of state "
                         "'%s'",
                         self->called->name, self->called->g->op_name[op],
                         self->called->g->value_name[v], self->states->name[s]);
    self->holds[s] = root;
    return MPL_OK;
}

static mpl_status follow_step(follower *self, uint32_t step)
{
    const mpl_graph *g = self->called->g;
    mpl_op op = self->at[step];

    for (uint32_t s = 0; s < self->states->n; s++)
        if (self->is_lost[(size_t)s * self->called->p->n_steps + step])
            self->holds[s] = MPL_NONE;
    if (op == MPL_NONE ||
        (self->called->map->op_nothing != NULL && self->called->map->op_nothing[op]))
        return MPL_OK;
    MPL_PASS(check_reads(self, op));
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        MPL_PASS(check_write(self, op, g->op_out[i], step));
    return MPL_OK;
}

/* Other outputs are read after the run; states are what the next call finds. */
static mpl_status check_end(const follower *self)
{
    const mpl_called *called = self->called;

    for (uint32_t s = 0; s < self->states->n; s++) {
        mpl_value want = called->after[s] != MPL_NONE    ? root_of(self, called->after[s])
                         : called->before[s] != MPL_NONE ? called->before[s]
                                                         : OLD;

        if (self->holds[s] != want)
            return MPL_ERROR(
                self->ctx, MPL_EINVALID, "entry '%s': state '%s' does not hold %s%s at the end",
                called->name, self->states->name[s],
                called->after[s] != MPL_NONE ? "output " : "what it held before",
                called->after[s] != MPL_NONE ? called->g->value_name[called->after[s]] : "");
    }
    for (uint32_t i = 0; i < called->g->n_outputs; i++) {
        uint32_t s = state_of(self, root_of(self, called->g->output[i]));

        if (s < self->states->n && self->holds[s] != root_of(self, called->g->output[i]))
            return MPL_ERROR(self->ctx, MPL_EINVALID,
                             "entry '%s': output '%s' lies in state '%s', which is written later",
                             called->name, called->g->value_name[called->g->output[i]],
                             self->states->name[s]);
    }
    return MPL_OK;
}

static mpl_status follow(mpl_ctx *ctx, const mpl_states_at *states, const mpl_called *called)
{
    mpl_status st = MPL_OK;
    follower f = {.ctx = ctx, .states = states, .called = called};
    uint32_t n_steps = called->p->n_steps;

    MPL_TRY(check_places(&f));
    MPL_TRY(mpl_new(ctx, f.holds, states->n));
    MPL_TRY(mpl_new(ctx, f.lost, (size_t)n_steps + 1));
    MPL_TRY(mpl_new(ctx, f.is_lost, (size_t)states->n * n_steps));
    MPL_TRY(mpl_new(ctx, f.at, n_steps));
    memset(f.at, 0xff, n_steps * sizeof *f.at);
    for (mpl_op op = 0; op < called->g->n_ops; op++)
        if (called->g->op_block[op] == 0)
            f.at[called->map->step_of[op]] = op;
    for (uint32_t s = 0; s < states->n; s++) {
        f.holds[s] = called->before[s] != MPL_NONE ? called->before[s] : OLD;
        mark_lost(&f, s);
    }
    for (uint32_t step = 0; step < n_steps; step++)
        MPL_TRY(follow_step(&f, step));
    MPL_TRY(check_end(&f));
out:
    mpl_free_each(ctx, f.holds, f.lost, f.is_lost, f.at);
    return st;
}

mpl_status mpl_verify_calls(mpl_ctx *ctx, const mpl_states_at *states, uint32_t n,
                            const mpl_called *called)
{
    MPL_PASS(check_states(ctx, states));
    for (uint32_t e = 0; e < n; e++) {
        if (called[e].plan->pool_bytes[0] > states->arena_bytes)
            return MPL_ERROR(ctx, MPL_EINVALID, "entry '%s' ends outside of the arena",
                             called[e].name);
        MPL_PASS(follow(ctx, states, &called[e]));
    }
    return MPL_OK;
}
