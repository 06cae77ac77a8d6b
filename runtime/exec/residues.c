/* residues.c -- rounds of loops that a device replays as a whole. See exec_priv.h.
 *
 * If carried values alternate among cells, operands are at the same places in all rounds of one
 * residue, in this run and later ones. The first such round is run operation by operation, then
 * captured as it stands; the others are one launch each. So a loop needs neither copies nor a host
 * call for each operation. If operands are elsewhere in each round (slices of scans), only the
 * first rounds are kept, and the others run operation by operation. */
#include "runtime/exec/exec_priv.h"

#define MOST_OF_BLOCK 64 /* most residues kept for a block */

typedef struct residue {
    uint32_t block;
    const void **at; /* addresses of the operands of the block's operations */
    mpl_sequence *sequence;
} residue;

struct mpl_residues {
    uint32_t n;
    size_t room;
    residue *item;
    uint32_t *n_of;     /* [n_blocks] */
    uint8_t **skipped;  /* [n_blocks] of [n_ops]: 1: not run here; NULL: not replayed */
    uint32_t *n_places; /* [n_blocks] operands of the block's operations */
    const void **now;   /* [largest n_places] */
};

/* Whether b is the body of a loop, without nested blocks, and runs at least one operation. */
static bool is_plain(const mpl_exec *exec, uint32_t b)
{
    const mpl_program *program = exec->control->program;
    uint32_t n = 0;

    if (b == 0 || exec->g->op_kind[exec->g->block_owner[b]] != MPL_OP_while)
        return false;
    for (uint32_t step = program->begin_step[b] + 1; step < program->end_step[b]; step++) {
        if (program->kind[step] != MPL_STEP_OP ||
            (mpl_op_table[exec->g->op_kind[program->of[step]]].traits & MPL_CONTROL) != 0)
            return false;
        n += !exec->op_skipped[program->of[step]];
    }
    return n > 0;
}

static uint32_t places_of(const mpl_graph *g, mpl_op op)
{
    return mpl_op_n_in(g, op) + mpl_op_n_out(g, op);
}

static mpl_status add_block(mpl_exec *exec, mpl_residues *residues, uint32_t b)
{
    const mpl_program *program = exec->control->program;

    MPL_PASS(mpl_new(exec->ctx, residues->skipped[b], exec->g->n_ops));
    memset(residues->skipped[b], 1, exec->g->n_ops);
    for (uint32_t step = program->begin_step[b] + 1; step < program->end_step[b]; step++) {
        residues->skipped[b][program->of[step]] = exec->op_skipped[program->of[step]];
        residues->n_places[b] += places_of(exec->g, program->of[step]);
    }
    return MPL_OK;
}

mpl_status mpl_residues_new(mpl_exec *exec)
{
    mpl_residues *residues = NULL;
    uint32_t most = 0;

    if (exec->control == NULL || exec->control->unshared || exec->options.checked ||
        exec->n_arrivals > 0 || exec->backend->sequence_put == NULL ||
        !exec->backend->captures(exec->dev))
        return MPL_OK;
    MPL_PASS(mpl_new(exec->ctx, residues, 1));
    exec->residues = residues;
    MPL_PASS(mpl_new_each(exec->ctx, exec->g->n_blocks, residues->skipped, residues->n_of,
                          residues->n_places));
    for (uint32_t b = 0; b < exec->g->n_blocks; b++) {
        if (is_plain(exec, b))
            MPL_PASS(add_block(exec, residues, b));
        most = residues->n_places[b] > most ? residues->n_places[b] : most;
    }
    return mpl_new(exec->ctx, residues->now, most);
}

void mpl_residues_free(mpl_exec *exec)
{
    mpl_residues *residues = exec->residues;

    if (residues == NULL)
        return;
    for (uint32_t i = 0; i < residues->n; i++) {
        exec->backend->sequence_free(exec->dev, residues->item[i].sequence);
        mpl_free(exec->ctx, residues->item[i].at);
    }
    for (uint32_t b = 0; residues->skipped != NULL && b < exec->g->n_blocks; b++)
        mpl_free(exec->ctx, residues->skipped[b]);
    mpl_free_each(exec->ctx, residues->item, residues->skipped, residues->n_of, residues->n_places,
                  residues->now, residues);
    exec->residues = NULL;
}

/* Binds the outputs of the round, and notes the addresses of all operands. */
static void look_round(mpl_exec *exec, uint32_t b)
{
    const mpl_graph *g = exec->g;
    const mpl_program *program = exec->control->program;
    uint32_t n = 0;

    for (uint32_t step = program->begin_step[b] + 1; step < program->end_step[b]; step++)
        mpl_control_bind_outputs(exec, program->of[step]);
    for (uint32_t step = program->begin_step[b] + 1; step < program->end_step[b]; step++) {
        mpl_op op = program->of[step];

        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            exec->residues->now[n++] = exec->in[i].data;
        for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
            exec->residues->now[n++] = exec->out[i].data;
    }
    mpl_assert(n == exec->residues->n_places[b]);
}

/* Captures the round just run for later ones. */
static mpl_status keep(mpl_exec *exec, uint32_t b)
{
    mpl_status st = MPL_OK;
    mpl_residues *residues = exec->residues;
    residue new = {.block = b};
    mpl_sequence_spec spec = {
        .g = exec->g,
        .order = exec->order,
        .skipped = residues->skipped[b],
        .prepared = exec->op_prepared,
        .call = exec->call,
        .most_lanes = 1, /* even parallel plans share memory inside a block by its order */
        .as_it_stands = true,
    };

    MPL_TRY(mpl_reserve(exec->ctx, residues->item, residues->room, (size_t)residues->n + 1));
    MPL_TRY(mpl_new(exec->ctx, new.at, residues->n_places[b]));
    memcpy(new.at, residues->now, residues->n_places[b] * sizeof *new.at);
    MPL_TRY(exec->backend->sequence_new(exec->dev, &spec, &new.sequence));
    residues->item[residues->n++] = new, new.at = NULL;
    residues->n_of[b]++;
out:
    mpl_free(exec->ctx, new.at);
    return st;
}

mpl_status mpl_residues_round(mpl_exec *exec, uint32_t b, uint32_t *next)
{
    mpl_residues *residues = exec->residues;
    mpl_control *control = exec->control;
    const mpl_program *program = control->program;
    uint32_t i = 0;

    if (residues == NULL || residues->skipped[b] == NULL)
        return MPL_OK;
    look_round(exec, b);
    while (i < residues->n && (residues->item[i].block != b ||
                               memcmp(residues->item[i].at, residues->now,
                                      residues->n_places[b] * sizeof *residues->now) != 0))
        i++;
    if (i == residues->n && residues->n_of[b] == MOST_OF_BLOCK)
        return MPL_OK;
    if (i < residues->n)
        MPL_PASS(exec->backend->sequence_put(exec->dev, residues->item[i].sequence));
    for (uint32_t step = program->begin_step[b] + 1; step < program->end_step[b]; step++) {
        control->copied_bytes += control->op_copied_bytes[program->of[step]];
        if (i == residues->n)
            MPL_PASS(mpl_exec_run_op(exec, program->of[step]));
    }
    if (i == residues->n)
        MPL_PASS(keep(exec, b));
    *next = program->end_step[b];
    return MPL_OK;
}
