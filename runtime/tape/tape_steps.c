/* tape_steps.c -- the end of a step: its trace is planned and kept, or was followed. See tape.h. */
#include "runtime/tape/tape_priv.h"

/* Makes trace i the most recently used. */
static void touch(mpl_tape *tape, uint32_t i)
{
    mpl_trace *t = tape->kept[i];

    memmove(tape->kept + i, tape->kept + i + 1, (tape->n_kept - i - 1) * sizeof t);
    tape->kept[tape->n_kept - 1] = t;
}

static void evict(mpl_tape *tape, uint32_t i)
{
    touch(tape, i);
    mpl_trace_fini(tape->ctx, tape->kept[--tape->n_kept]);
    mpl_free(tape->ctx, tape->kept[tape->n_kept]);
}

/* One arena for all plans: steps follow one another. */
static mpl_status fit_arena(mpl_tape *tape)
{
    uint64_t most = 0;
    void *arena = NULL;

    for (uint32_t i = 0; i < tape->n_kept; i++)
        most = mpl_max_u64(most, tape->kept[i]->plan_bytes);
    if (most == tape->arena_bytes)
        return MPL_OK;
    if (most > 0)
        MPL_PASS(tape->options.backend->arena_new(tape->options.dev, most, &arena));
    tape->options.backend->arena_free(tape->options.dev, tape->arena, tape->arena_bytes);
    tape->arena = arena;
    tape->arena_bytes = most;
    return MPL_OK;
}

/* Plans the trace of the step and keeps it, unless it is kept already. */
static mpl_status keep(mpl_tape *tape)
{
    mpl_status st = MPL_OK;
    mpl_trace *trace = NULL;

    tape->trace.key = mpl_trace_key(&tape->trace);
    for (uint32_t i = tape->n_kept; i > 0; i--)
        if (tape->kept[i - 1]->key == tape->trace.key &&
            mpl_trace_equal(tape->kept[i - 1], &tape->trace)) {
            touch(tape, i - 1);
            goto out;
        }
    MPL_TRY(mpl_trace_graph(tape, &tape->trace));
    MPL_TRY(mpl_trace_plan(tape, &tape->trace));
    MPL_TRY(mpl_new(tape->ctx, trace, 1));
    *trace = tape->trace;
    memset(&tape->trace, 0, sizeof tape->trace);
    tape->kept[tape->n_kept++] = trace, trace = NULL;
    if (tape->n_kept > tape->options.n_plans) {
        evict(tape, 0);
        tape->facts.n_evictions++;
    }
    tape->facts.n_traces++;
    if ((st = fit_arena(tape)) != MPL_OK)
        evict(tape, tape->n_kept - 1);
out:
    mpl_free(tape->ctx, trace);
    return st;
}

/* Ends a step that ran by its plan; `false`: it did not run to its end. */
static bool followed(mpl_tape *tape)
{
    uint32_t i = 0;

    if (tape->at_op < tape->plan->n_ops || tape->at_release < tape->plan->n_releases)
        return false;
    tape->facts.n_hits++;
    tape->plan->n_used++;
    while (tape->kept[i] != tape->plan)
        i++;
    touch(tape, i);
    return true;
}

mpl_status mpl_tape_end(mpl_tape *tape)
{
    mpl_status st = MPL_OK;

    if (tape->plan != NULL && !followed(tape))
        MPL_PASS(mpl_tape_diverge(tape));
    if (tape->mode == MPL_TAPE_EAGER && !tape->forgoes) {
        tape->facts.n_misses++;
        tape->facts.n_diverged += tape->diverged;
        if (tape->options.n_plans > 0 && tape->trace.n_ops > 0)
            st = keep(tape);
    }
    for (uint32_t i = 0; i < tape->n_slots; i++)
        tape->slot[i].traced = MPL_NONE;
    for (uint32_t i = 0; i < tape->n_stores; i++)
        tape->store[i].traced = MPL_NONE;
    mpl_trace_fini(tape->ctx, &tape->trace);
    tape->plan = NULL;
    tape->mode = MPL_TAPE_START;
    tape->diverged = false;
    mpl_kernels_sweep(tape, false);
    tape->step++;
    return st;
}

void mpl_tape_forgo(mpl_tape *tape, bool plans)
{
    tape->forgoes = plans;
}

mpl_status mpl_tape_reopen(mpl_tape *tape)
{
    mpl_online *online;

    if (mpl_online_facts_of(tape->online).live_bytes > 0)
        return MPL_REFUSE(tape->ctx, "tape: the allocator cannot change while it serves");
    MPL_PASS(mpl_online_new(tape->ctx, tape->options.allocator, tape->range_bytes, &online));
    mpl_online_free(tape->ctx, tape->online);
    tape->online = online;
    return MPL_OK;
}

mpl_tape_facts mpl_tape_facts_of(const mpl_tape *tape)
{
    mpl_tape_facts facts = tape->facts;

    facts.online = mpl_online_facts_of(tape->online);
    facts.n_plans = tape->n_kept;
    facts.arena_bytes = tape->arena_bytes;
    return facts;
}

bool mpl_tape_trace(const mpl_tape *tape, uint32_t i, mpl_trace_facts *facts)
{
    const mpl_trace *trace = i < tape->n_kept ? tape->kept[i] : NULL;

    if (trace == NULL)
        return false;
    *facts =
        (mpl_trace_facts){trace->graph,      trace->hash,  trace->plan_bytes, trace->bound_bytes,
                          trace->plan_bound, trace->claim, trace->n_used};
    return true;
}
