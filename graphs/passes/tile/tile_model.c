/* tile_model.c -- live bytes of a region's program, in its own order.
 *
 * As a planner counts: a step's result beside all that is read there or later; in place where the
 * operator may overwrite an operand that nothing reads later. Operands of a concat of channels lie
 * in its result if the batch is one image. */
#include "graphs/passes/tile/tile_priv.h"

/* Bytes of operands that the result of a step lies on. */
static uint64_t overwritten(const tile_program *program, size_t at, const uint32_t *last)
{
    const tile_step *step = &program->step[at];
    const tile_value *out = &program->value[step->out];
    bool joins = step->what == TILE_OP && program->rule[step->op].kind == TILE_JOIN &&
                 program->g->value_shape[out->of].dim[0] == 1;
    uint64_t bytes = 0;

    for (uint32_t k = 0; k < step->n_in; k++) {
        uint32_t v = program->in[step->in_begin + k];
        bool may = step->what == TILE_ASSIGN ? k == 0
                   : step->what == TILE_OP   ? joins || mpl_op_overwrites(program->g, step->op, k)
                                             : false;

        if (!may || v == MPL_NONE || v < program->n_outside || last[v] != at ||
            (!joins &&
             (program->value[v].bytes != out->bytes ||
              program->g->value_type[program->value[v].of] != program->g->value_type[out->of])))
            continue;
        if (!joins)
            return out->bytes;
        bytes += program->value[v].bytes;
    }
    return bytes < out->bytes ? bytes : out->bytes;
}

mpl_status tile_peak(const tile_program *program, const uint64_t *outside_bytes,
                     const bool *used_later, bool pinned_result, uint64_t *peak)
{
    mpl_status st = MPL_OK;
    uint32_t *last = NULL, result = program->result[program->n_result - 1];
    uint64_t live = 0;

    *peak = 0;
    MPL_TRY(mpl_new(program->ctx, last, program->n_values));
    for (size_t i = 0; i < program->n_steps; i++)
        for (uint32_t k = 0; k < program->step[i].n_in; k++)
            if (program->in[program->step[i].in_begin + k] != MPL_NONE)
                last[program->in[program->step[i].in_begin + k]] = (uint32_t)i;
    for (size_t i = 0; i < program->n_result; i++)
        last[program->result[i]] = MPL_NONE;
    for (uint32_t v = 0; v < program->n_outside; v++) {
        live += outside_bytes[v];
        last[v] = used_later[v] ? MPL_NONE : last[v];
    }
    for (size_t i = 0; i < program->n_steps; i++) {
        const tile_step *step = &program->step[i];
        const tile_value *out = &program->value[step->out];
        bool pinned = pinned_result && program->value[result].of == out->of &&
                      out->bytes == program->value[result].bytes;

        *peak =
            mpl_max_u64(*peak, live + (pinned ? 0 : out->bytes - overwritten(program, i, last)));
        live += pinned ? 0 : out->bytes;
        for (uint32_t k = 0; k < step->n_in; k++) {
            uint32_t v = program->in[step->in_begin + k];

            if (v == MPL_NONE || last[v] != i)
                continue;
            last[v] = MPL_NONE; /* an operand may be read twice */
            if (!(pinned_result && program->value[v].of == program->value[result].of &&
                  program->value[v].bytes == program->value[result].bytes))
                live -= v < program->n_outside ? outside_bytes[v] : program->value[v].bytes;
        }
    }
out:
    mpl_free(program->ctx, last);
    return st;
}
