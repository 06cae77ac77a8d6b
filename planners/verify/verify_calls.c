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
    const mpl_called *c;
    mpl_value *holds; /* [states->n] root whose contents are there; OLD; MPL_NONE: lost */
    uint32_t *lost; /* [n_steps + 1] of one state: buffers over it begin, minus buffers that end */
    uint8_t *is_lost; /* [states->n * n_steps] 1: a buffer over the state is needed at the step */
    mpl_op *at;       /* [n_steps] outermost operation of a step, or MPL_NONE */
} follower;

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

static mpl_status check_states(mpl_ctx *ctx, const mpl_states_at *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t end;

        if (!mpl_add_bytes(s->at[i], s->bytes[i], &end) || end > s->arena_bytes)
            return MPL_ERROR(ctx, MPL_EINVALID,
                             "state '%s' at %" PRIu64 " ends outside of the arena of %" PRIu64
                             " bytes",
                             s->name[i], s->at[i], s->arena_bytes);
        for (uint32_t j = 0; j < i; j++)
            if (overlap(s->at[i], s->bytes[i], s->at[j], s->bytes[j]))
                return MPL_ERROR(ctx, MPL_EINVALID, "states '%s' and '%s' overlap", s->name[j],
                                 s->name[i]);
    }
    return MPL_OK;
}

/* The state that root v lies in by its offset; states->n: none does. */
static uint32_t state_of(const follower *f, mpl_value v)
{
    uint32_t s = 0;

    while (s < f->states->n && (v == MPL_NONE || f->c->held_at[v] != f->states->at[s]))
        s++;
    return s;
}

static mpl_value root_of(const follower *f, mpl_value v)
{
    return v != MPL_NONE ? f->c->map->value_root[v] : MPL_NONE;
}

/* Each root that is held is a whole state; inputs and outputs of states are held. */
static mpl_status check_places(const follower *f)
{
    const mpl_called *c = f->c;

    for (mpl_value v = 0; v < c->g->n_values; v++) {
        uint32_t s = state_of(f, v);

        if (c->held_at[v] == UINT64_MAX)
            continue;
        if (s == f->states->n || c->g->value_bytes[v] != f->states->bytes[s] ||
            c->map->value_root[v] != v || c->map->value_buffer[v] != MPL_NONE)
            return MPL_ERROR(f->ctx, MPL_EINVALID,
                             "entry '%s': value '%s' at %" PRIu64
                             " is not where a state of %" PRIu64 " bytes lies",
                             c->name, c->g->value_name[v], c->held_at[v], c->g->value_bytes[v]);
    }
    for (uint32_t s = 0; s < f->states->n; s++) {
        if (c->before[s] != MPL_NONE && state_of(f, c->before[s]) != s)
            return MPL_ERROR(f->ctx, MPL_EINVALID,
                             "entry '%s': input '%s' is not at %" PRIu64 ", where state '%s' lies",
                             c->name, c->g->value_name[c->before[s]], f->states->at[s],
                             f->states->name[s]);
        if (c->after[s] != MPL_NONE &&
            (state_of(f, root_of(f, c->after[s])) != s || c->map->value_offset[c->after[s]] != 0 ||
             c->g->value_bytes[c->after[s]] != f->states->bytes[s]))
            return MPL_ERROR(
                f->ctx, MPL_EINVALID,
                "entry '%s': output '%s' is not written at %" PRIu64 ", where state '%s' lies",
                c->name, c->g->value_name[c->after[s]], f->states->at[s], f->states->name[s]);
    }
    return MPL_OK;
}

/* Marks the steps at which a buffer over state s is needed. Gaps count as needed. */
static void mark_lost(follower *f, uint32_t s)
{
    const mpl_problem *p = f->c->p;
    uint32_t over = 0;

    memset(f->lost, 0, ((size_t)p->n_steps + 1) * sizeof *f->lost);
    for (mpl_buffer b = 0; b < p->n; b++)
        if (p->pool[b] == 0 &&
            overlap(f->c->plan->offset[b], p->bytes[b], f->states->at[s], f->states->bytes[s])) {
            f->lost[p->birth[b]]++;
            f->lost[p->death[b]]--;
        }
    for (uint32_t step = 0; step < p->n_steps; step++) {
        over += f->lost[step];
        f->is_lost[(size_t)s * p->n_steps + step] = over != 0;
    }
}

static mpl_status check_read(const follower *f, mpl_op op, mpl_value v)
{
    mpl_value root = root_of(f, v);
    uint32_t s = state_of(f, root);

    if (s == f->states->n || f->holds[s] == root)
        return MPL_OK;
    return MPL_ERROR(f->ctx, MPL_EINVALID,
                     "entry '%s': operation '%s' reads '%s' where state '%s' lies; %s is there",
                     f->c->name, f->c->g->op_name[op], f->c->g->value_name[v], f->states->name[s],
                     f->holds[s] >= OLD ? "something else" : f->c->g->value_name[f->holds[s]]);
}

/* All that the operation and its blocks read. */
static mpl_status check_reads(const follower *f, mpl_op op)
{
    const mpl_graph *g = f->c->g;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        MPL_PASS(check_read(f, op, g->op_in[i]));
    for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++) {
        uint32_t b = g->op_body[k];

        for (mpl_op inner = g->block_op_begin[b]; inner < g->block_op_end[b]; inner++)
            MPL_PASS(check_reads(f, inner));
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            MPL_PASS(check_read(f, op, mpl_result(g, b, i)));
    }
    return MPL_OK;
}

/* Whether `op` may write output v over the old contents that it reads there, by the operator table.
 */
static bool may_overwrite(const follower *f, mpl_op op, mpl_value v, mpl_value old)
{
    const mpl_graph *g = f->c->g;
    const mpl_value *in = g->op_in + g->op_in_begin[op];
    uint32_t n = g->op_in_begin[op + 1] - g->op_in_begin[op], reads = 0;
    unsigned traits = mpl_op_table[g->op_kind[op]].traits;
    bool allowed = false;

    for (uint32_t i = 0; i < n; i++) {
        if (root_of(f, in[i]) != old)
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

static mpl_status check_write(follower *f, mpl_op op, mpl_value v, uint32_t step)
{
    mpl_value root = root_of(f, v);
    uint32_t s = state_of(f, root);

    if (s == f->states->n)
        return MPL_OK;
    if (f->is_lost[(size_t)s * f->c->p->n_steps + step])
        return MPL_ERROR(f->ctx, MPL_EINVALID,
                         "entry '%s': operation '%s' writes '%s' into state '%s' at step %" PRIu32
                         "; a buffer there is needed, too",
                         f->c->name, f->c->g->op_name[op], f->c->g->value_name[v],
                         f->states->name[s], step);
    if (f->holds[s] != root && !may_overwrite(f, op, v, f->holds[s]))
        return MPL_ERROR(f->ctx, MPL_EINVALID,
                         "entry '%s': operation '%s' cannot write '%s' over what it reads of state "
                         "'%s'",
                         f->c->name, f->c->g->op_name[op], f->c->g->value_name[v],
                         f->states->name[s]);
    f->holds[s] = root;
    return MPL_OK;
}

static mpl_status follow_step(follower *f, uint32_t step)
{
    const mpl_graph *g = f->c->g;
    mpl_op op = f->at[step];

    for (uint32_t s = 0; s < f->states->n; s++)
        if (f->is_lost[(size_t)s * f->c->p->n_steps + step])
            f->holds[s] = MPL_NONE;
    if (op == MPL_NONE || (f->c->map->op_nothing != NULL && f->c->map->op_nothing[op]))
        return MPL_OK;
    MPL_PASS(check_reads(f, op));
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        MPL_PASS(check_write(f, op, g->op_out[i], step));
    return MPL_OK;
}

/* Other outputs are read after the run; states are what the next call finds. */
static mpl_status check_end(const follower *f)
{
    const mpl_called *c = f->c;

    for (uint32_t s = 0; s < f->states->n; s++) {
        mpl_value want = c->after[s] != MPL_NONE    ? root_of(f, c->after[s])
                         : c->before[s] != MPL_NONE ? c->before[s]
                                                    : OLD;

        if (f->holds[s] != want)
            return MPL_ERROR(f->ctx, MPL_EINVALID,
                             "entry '%s': state '%s' does not hold %s%s at the end", c->name,
                             f->states->name[s],
                             c->after[s] != MPL_NONE ? "output " : "what it held before",
                             c->after[s] != MPL_NONE ? c->g->value_name[c->after[s]] : "");
    }
    for (uint32_t i = 0; i < c->g->n_outputs; i++) {
        uint32_t s = state_of(f, root_of(f, c->g->output[i]));

        if (s < f->states->n && f->holds[s] != root_of(f, c->g->output[i]))
            return MPL_ERROR(f->ctx, MPL_EINVALID,
                             "entry '%s': output '%s' lies in state '%s', which is written later",
                             c->name, c->g->value_name[c->g->output[i]], f->states->name[s]);
    }
    return MPL_OK;
}

static mpl_status follow(mpl_ctx *ctx, const mpl_states_at *states, const mpl_called *c)
{
    mpl_status st = MPL_OK;
    follower f = {.ctx = ctx, .states = states, .c = c};
    uint32_t n_steps = c->p->n_steps;

    MPL_TRY(check_places(&f));
    MPL_TRY(mpl_new(ctx, f.holds, states->n));
    MPL_TRY(mpl_new(ctx, f.lost, (size_t)n_steps + 1));
    MPL_TRY(mpl_new(ctx, f.is_lost, (size_t)states->n * n_steps));
    MPL_TRY(mpl_new(ctx, f.at, n_steps));
    memset(f.at, 0xff, n_steps * sizeof *f.at);
    for (mpl_op op = 0; op < c->g->n_ops; op++)
        if (c->g->op_block[op] == 0)
            f.at[c->map->step_of[op]] = op;
    for (uint32_t s = 0; s < states->n; s++) {
        f.holds[s] = c->before[s] != MPL_NONE ? c->before[s] : OLD;
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
