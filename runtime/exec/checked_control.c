/* checked_control.c -- --checked with control flow: bytes that may be needed later stay as they
 * are, all others hold the pattern.
 *
 * Which values may be needed from a point of the program on follows from the graph alone (needs.h).
 * Around each step, the places of the values needed now and of those needed next are looked up. A
 * step may write only to its own outputs and to what it hands on. Other needed values must not
 * change, and bytes that are not needed must hold the pattern; a value that is no longer needed is
 * filled with it. Cost: each step reads all slabs but the weights. */
#include "runtime/exec/exec_priv.h"

#include <stdlib.h>

typedef struct range {
    uint32_t slab;
    uint64_t from, to;
    mpl_value value; /* MPL_NONE: a workspace, or a place of no value */
} range;

typedef struct ranges {
    range *at;
    uint32_t n;
    size_t cap;
} ranges;

struct mpl_witness {
    /* [n_values] of a row made in place in a stacked output: that output; MPL_NONE: none */
    mpl_value *stack_of;
    uint64_t *sum;       /* [n_values] hash of the value's bytes */
    mpl_spot *sum_at;    /* [n_values] where it lay then */
    uint64_t *sum_epoch; /* [n_values] epoch of the hash, the only one in which it is valid */
    uint64_t epoch;
    uint8_t *made;    /* [n_values] 1: the current step gives it new contents */
    uint32_t n_pairs; /* in-place pairs of buffers */
    mpl_buffer *pair_in, *pair_out;
    ranges before, after, written;
};

static mpl_value holder(const mpl_exec *exec, mpl_value v)
{
    return exec->control->holder != NULL ? exec->control->holder[v] : v;
}

/* Result i of a body is a row. If it is made in place, it is part of the output. An output that no
 * operation reads has no rows. */
static void note_stack(mpl_exec *exec, uint32_t b, uint32_t i)
{
    const mpl_graph *g = exec->g;
    mpl_value out = g->op_out[g->op_out_begin[g->block_owner[b]] + i - 1];

    if (out != MPL_NONE && !mpl_control_result_copied(exec, b, i))
        exec->witness->stack_of[holder(exec, mpl_control_results(g, b)[i])] = out;
}

mpl_status mpl_witness_new(mpl_exec *exec, const mpl_problem *p)
{
    const mpl_graph *g = exec->g;
    mpl_witness *witness;

    MPL_PASS(mpl_new(exec->ctx, exec->witness, 1));
    witness = exec->witness;
    MPL_PASS(mpl_new_each(exec->ctx, g->n_values, witness->stack_of, witness->sum, witness->sum_at,
                          witness->sum_epoch, witness->made));
    witness->n_pairs = p != NULL ? p->n_in_place : 0;
    MPL_PASS(mpl_new_each(exec->ctx, witness->n_pairs, witness->pair_in, witness->pair_out));
    for (uint32_t i = 0; i < witness->n_pairs; i++) {
        witness->pair_in[i] = p->in_place_in[i];
        witness->pair_out[i] = p->in_place_out[i];
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        witness->stack_of[v] = MPL_NONE;
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 1 + mpl_n_carried(g, g->block_owner[b]);
             g->op_kind[g->block_owner[b]] == MPL_OP_while && i < g->block_n_results[b]; i++)
            note_stack(exec, b, i);
    return MPL_OK;
}

void mpl_witness_free(mpl_ctx *ctx, mpl_witness *witness)
{
    if (witness == NULL)
        return;

    mpl_free_each(ctx, witness->stack_of, witness->sum, witness->sum_at, witness->sum_epoch,
                  witness->made, witness->pair_in, witness->pair_out, witness->before.at,
                  witness->after.at, witness->written.at, witness);
}

/* ---- where it lies ---- */

static mpl_status push(mpl_exec *exec, ranges *list, mpl_spot spot, uint64_t bytes, mpl_value v)
{
    if (spot.slab == MPL_NONE || bytes == 0 || mpl_checked_is_weights(exec, spot.slab))
        return MPL_OK;
    MPL_PASS(mpl_reserve(exec->ctx, list->at, list->cap, (size_t)list->n + 1));
    list->at[list->n++] = (range){spot.slab, spot.offset, spot.offset + bytes, v};
    return MPL_OK;
}

MPL_ORDER_BY(compare_range, range, MPL_RISING(slab) MPL_RISING(from) MPL_RISING(value))

static void sort(ranges *list)
{
    if (list->n > 0)
        qsort(list->at, list->n, sizeof *list->at, compare_range);
}

/* An input whose contents the next run reuses. */
static bool is_lasting(const mpl_exec *exec, mpl_value v)
{
    return exec->g->value_role[v] == MPL_INPUT &&
           exec->value_slab[v] == exec->n_pools + MPL_SLAB_PINNED;
}

static bool has_arrived(const mpl_exec *exec, mpl_value v)
{
    uint32_t arrival = exec->control->arrival_of[v];

    return arrival == MPL_NONE || exec->control->arrived[arrival];
}

/* Places of all values that are needed when control reaches `step`. */
static mpl_status list_needed(mpl_exec *exec, uint32_t step, ranges *list)
{
    const mpl_graph *g = exec->g;
    uint32_t point = mpl_control_point(exec, step);

    list->n = 0;
    for (mpl_value v = 0; v < g->n_values; v++)
        if ((mpl_needs_has(exec->control->needs, point, v) && has_arrived(exec, v)) ||
            is_lasting(exec, v))
            MPL_PASS(push(exec, list, mpl_exec_spot(exec, v), g->value_bytes[v], v));
    sort(list);
    return MPL_OK;
}

/* ---- around a step ---- */

static mpl_status sum_range(mpl_exec *exec, const range *r, uint64_t *sum)
{
    return mpl_checked_sum(exec, mpl_exec_at(exec, r->slab, r->from), r->to - r->from, sum);
}

static void note_sum(mpl_witness *witness, const range *r, uint64_t sum)
{
    witness->sum[r->value] = sum;
    witness->sum_at[r->value] = (mpl_spot){r->slab, MPL_NONE, r->from};
    witness->sum_epoch[r->value] = witness->epoch;
}

/* The sum is from that epoch and of the same place. */
static bool is_known(const mpl_witness *witness, const range *r, uint64_t epoch)
{
    return witness->sum_epoch[r->value] == epoch && witness->sum_at[r->value].slab == r->slab &&
           witness->sum_at[r->value].offset == r->from;
}

static bool meet(const range *a, const range *b)
{
    return a->slab == b->slab && a->from < b->to && b->from < a->to;
}

/* Whether an operation writes to its outputs at this step. */
static bool computes(const mpl_exec *exec, uint32_t step)
{
    const mpl_program *program = exec->control->program;
    uint32_t of = program->of[step];

    return program->kind[step] == MPL_STEP_OP &&
           (mpl_op_table[exec->g->op_kind[of]].traits & MPL_CONTROL) == 0 && !exec->op_skipped[of];
}

static void mark(const mpl_exec *exec, mpl_value v)
{
    if (v != MPL_NONE)
        exec->witness->made[holder(exec, v)] = 1;
}

static void mark_outs(const mpl_exec *exec, mpl_op op)
{
    const mpl_graph *g = exec->g;

    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++) {
        mark(exec, g->op_out[i]);
        if (g->op_out[i] != MPL_NONE) /* made in place in the stacked output */
            mark(exec, exec->witness->stack_of[holder(exec, g->op_out[i])]);
    }
}

/* Marks the values that a step may change. */
static void mark_made(const mpl_exec *exec, uint32_t step)
{
    const mpl_graph *g = exec->g;
    uint32_t of = exec->control->program->of[step];
    mpl_step_kind kind = (mpl_step_kind)exec->control->program->kind[step];
    mpl_op op = kind == MPL_STEP_OP ? of : g->block_owner[of];
    bool loop = g->op_kind[op] == MPL_OP_while,
         enters = kind == MPL_STEP_BEGIN && !exec->control->open[op];
    uint32_t n = mpl_n_carried(g, op);

    memset(exec->witness->made, 0, g->n_values);
    if (kind == MPL_STEP_OP || kind == MPL_STEP_END || (loop && enters))
        mark_outs(exec, op);
    for (uint32_t i = 0; loop && kind != MPL_STEP_OP && i < g->block_n_params[of]; i++)
        if ((i > 0 && i <= n) == (enters || kind == MPL_STEP_END))
            mark(exec, mpl_control_params(g, of)[i]);
}

/* Whether block `out` may lie where value v, in another block, does. */
static bool may_take_over(const mpl_exec *exec, mpl_value v, uint32_t out)
{
    const mpl_witness *witness = exec->witness;
    uint32_t in = exec->value_block[v];

    for (uint32_t i = 0; i < witness->n_pairs; i++)
        if (witness->pair_in[i] == in && witness->pair_out[i] == out &&
            exec->block[in].offset == exec->block[out].offset)
            return true;
    return in == out;
}

/* Fills the outputs of a step with the pattern, unless they may take over another value. */
static mpl_status bare_outputs(mpl_exec *exec, uint32_t step)
{
    const mpl_graph *g = exec->g;
    const ranges *before = &exec->witness->before;
    mpl_op op = exec->control->program->of[step];

    if (!computes(exec, step))
        return MPL_OK;
    for (uint32_t i = g->op_out_begin[op] + mpl_exec_hands_on(exec, op);
         i < g->op_out_begin[op + 1]; i++) {
        mpl_spot spot = g->op_out[i] != MPL_NONE ? mpl_control_spot(exec, g->op_out[i])
                                                 : (mpl_spot){MPL_NONE, 0, 0};
        range out = {spot.slab, spot.offset, 0, MPL_NONE};
        bool takes_over =
            spot.slab == MPL_NONE || mpl_updated(g, op, i - g->op_out_begin[op]) != MPL_NONE;

        out.to = g->op_out[i] == MPL_NONE ? 0 : spot.offset + g->value_bytes[g->op_out[i]];
        for (uint32_t k = 0; k < before->n && !takes_over; k++)
            takes_over =
                meet(&before->at[k], &out) && may_take_over(exec, before->at[k].value, spot.block);
        if (!takes_over)
            MPL_PASS(mpl_checked_fill(exec, spot.slab, out.from, out.to));
    }
    return MPL_OK;
}

void mpl_witness_reset(mpl_exec *exec)
{
    if (exec->witness != NULL)
        exec->witness->epoch++; /* starts at 1: older sums, and those never made, are invalid */
}

mpl_status mpl_witness_before(mpl_exec *exec, uint32_t step)
{
    mpl_witness *witness = exec->witness;
    uint64_t sum;

    MPL_PASS(list_needed(exec, step, &witness->before));
    for (uint32_t i = 0; i < witness->before.n; i++) {
        const range *r = &witness->before.at[i];

        if (is_known(witness, r, witness->epoch)) /* otherwise it has just arrived */
            continue;
        MPL_PASS(sum_range(exec, r, &sum));
        note_sum(witness, r, sum);
    }
    witness->written.n = 0;
    mark_made(exec, step);
    return bare_outputs(exec, step);
}

mpl_status mpl_witness_wrote(mpl_exec *exec, mpl_spot spot, uint64_t bytes)
{
    return exec->witness != NULL ? push(exec, &exec->witness->written, spot, bytes, MPL_NONE)
                                 : MPL_OK;
}

/* Adds what the operation itself wrote to. */
static mpl_status add_written(mpl_exec *exec, uint32_t step)
{
    const mpl_graph *g = exec->g;
    mpl_op op = exec->control->program->of[step];
    uint32_t block;

    if (!computes(exec, step))
        return MPL_OK;
    for (uint32_t i = g->op_out_begin[op] + mpl_exec_hands_on(exec, op);
         i < g->op_out_begin[op + 1]; i++)
        if (g->op_out[i] != MPL_NONE)
            MPL_PASS(push(exec, &exec->witness->written, mpl_exec_spot(exec, g->op_out[i]),
                          g->value_bytes[g->op_out[i]], g->op_out[i]));
    block = exec->op_block[op];
    if (block != MPL_NONE)
        MPL_PASS(push(exec, &exec->witness->written,
                      (mpl_spot){exec->block[block].slab, block, exec->block[block].offset},
                      exec->block[block].bytes, MPL_NONE));
    return MPL_OK;
}

static const char *step_text(const mpl_exec *exec, uint32_t step, char text[160])
{
    const mpl_program *program = exec->control->program;
    const mpl_graph *g = exec->g;
    uint32_t of = program->of[step];

    if (program->kind[step] == MPL_STEP_OP)
        snprintf(text, 160, "operation '%.120s'", g->op_name[of]);
    else
        snprintf(text, 160, "the %s of block '%.120s'",
                 program->kind[step] == MPL_STEP_END ? "end" : "beginning", g->block_name[of]);
    return text;
}

/* A range written by the step that overlaps `r`; NULL: none. */
static const range *writer_of(const mpl_exec *exec, const range *r)
{
    const ranges *written = &exec->witness->written;

    for (uint32_t i = 0; i < written->n; i++)
        if (meet(&written->at[i], r))
            return &written->at[i];
    return NULL;
}

static mpl_status report(mpl_exec *exec, uint32_t step, const range *changed)
{
    const mpl_graph *g = exec->g;
    const range *writer = writer_of(exec, changed);
    char who[160], text[32], overlap[128] = "";

    if (writer != NULL)
        snprintf(overlap, sizeof overlap, ", which its '%.100s' overlaps",
                 writer->value != MPL_NONE ? g->value_name[writer->value] : "copy or workspace");
    return MPL_ERROR(exec->ctx, MPL_EINVALID,
                     "step %u, %s changed '%.100s', which is still needed%s: bytes [%" PRIu64
                     ", %" PRIu64 ") of %s",
                     step, step_text(exec, step, who), g->value_name[changed->value], overlap,
                     changed->from, changed->to, mpl_checked_slab(exec, changed->slab, text));
}

/* Values needed next that the step did not make must be unchanged and not written to. */
static mpl_status check_needed(mpl_exec *exec, uint32_t step)
{
    mpl_witness *witness = exec->witness;
    uint64_t epoch = witness->epoch++, sum;

    for (uint32_t i = 0; i < witness->after.n; i++) {
        const range *r = &witness->after.at[i];

        MPL_PASS(sum_range(exec, r, &sum));
        if (!witness->made[r->value] &&
            ((is_known(witness, r, epoch) && sum != witness->sum[r->value]) ||
             writer_of(exec, r) != NULL))
            MPL_PASS(report(exec, step, r));
        note_sum(witness, r, sum);
    }
    return MPL_OK;
}

/* Bytes that were neither needed before the step nor written by it must hold the pattern. Both
 * kinds are in w->before by now. */
static mpl_status check_dead(mpl_exec *exec, uint32_t step)
{
    const ranges *list = &exec->witness->before;
    char who[160];
    uint32_t k = 0;

    step_text(exec, step, who);
    for (uint32_t slab = 0; slab < exec->n_slabs; slab++) {
        uint64_t end = 0;

        if (mpl_checked_is_weights(exec, slab))
            continue;
        for (; k < list->n && list->at[k].slab == slab; k++) {
            MPL_PASS(mpl_checked_dead(exec, slab, end, list->at[k].from, step, who));
            end = mpl_max_u64(end, list->at[k].to);
        }
        MPL_PASS(mpl_checked_dead(exec, slab, end, exec->slab[slab].bytes, step, who));
    }
    return MPL_OK;
}

/* Fills what is no longer needed with the pattern. */
static mpl_status fill_unneeded(mpl_exec *exec)
{
    const ranges *before = &exec->witness->before, *after = &exec->witness->after;

    for (uint32_t i = 0; i < before->n; i++) {
        const range *r = &before->at[i];
        uint64_t end = r->from;

        for (uint32_t k = 0; k < after->n; k++) {
            if (!meet(r, &after->at[k]))
                continue;
            MPL_PASS(mpl_checked_fill(exec, r->slab, end, mpl_min_u64(after->at[k].from, r->to)));
            end = mpl_max_u64(end, after->at[k].to);
        }
        MPL_PASS(mpl_checked_fill(exec, r->slab, end, r->to));
    }
    return MPL_OK;
}

mpl_status mpl_witness_after(mpl_exec *exec, uint32_t step, uint32_t next)
{
    mpl_witness *witness = exec->witness;
    char who[160];

    MPL_PASS(exec->backend->wait(exec->dev));
    MPL_PASS(mpl_checked_guards(exec, step, step_text(exec, step, who)));
    MPL_PASS(add_written(exec, step));
    MPL_PASS(list_needed(exec, next, &witness->after));
    MPL_PASS(check_needed(exec, step));
    for (uint32_t i = 0; i < witness->written.n; i++) {
        const range *r = &witness->written.at[i];

        MPL_PASS(push(exec, &witness->before, (mpl_spot){r->slab, MPL_NONE, r->from},
                      r->to - r->from, r->value));
    }
    sort(&witness->before);
    MPL_PASS(check_dead(exec, step));
    return fill_unneeded(exec);
}
