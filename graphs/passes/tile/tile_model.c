/* tile_model.c -- live bytes of a region's program, in its own order.
 *
 * As a planner counts: a step's result beside all that is read there or later; in place where the
 * operator may overwrite an operand that nothing reads later. Operands of a concat of channels lie
 * in its result if the batch is one image. */
#include "graphs/passes/tile/tile_priv.h"

/* Bytes of operands that the result of a step lies on. */
static uint64_t overwritten(const tile_program *p, size_t at, const uint32_t *last)
{
    const tile_step *s = &p->step[at];
    const tile_value *out = &p->value[s->out];
    bool joins = s->what == TILE_OP && p->rule[s->op].kind == TILE_JOIN &&
                 p->g->value_shape[out->of].dim[0] == 1;
    uint64_t bytes = 0;

    for (uint32_t k = 0; k < s->n_in; k++) {
        uint32_t v = p->in[s->in_begin + k];
        bool may = s->what == TILE_ASSIGN ? k == 0
                   : s->what == TILE_OP   ? joins || mpl_op_overwrites(p->g, s->op, k)
                                          : false;

        if (!may || v == MPL_NONE || v < p->n_outside || last[v] != at ||
            (!joins && (p->value[v].bytes != out->bytes ||
                        p->g->value_type[p->value[v].of] != p->g->value_type[out->of])))
            continue;
        if (!joins)
            return out->bytes;
        bytes += p->value[v].bytes;
    }
    return bytes < out->bytes ? bytes : out->bytes;
}

mpl_status tile_peak(const tile_program *p, const uint64_t *outside_bytes, const bool *used_later,
                     bool pinned_result, uint64_t *peak)
{
    mpl_status st = MPL_OK;
    uint32_t *last = NULL, result = p->result[p->n_result - 1];
    uint64_t live = 0;

    *peak = 0;
    MPL_TRY(mpl_new(p->ctx, last, p->n_values));
    for (size_t i = 0; i < p->n_steps; i++)
        for (uint32_t k = 0; k < p->step[i].n_in; k++)
            if (p->in[p->step[i].in_begin + k] != MPL_NONE)
                last[p->in[p->step[i].in_begin + k]] = (uint32_t)i;
    for (size_t i = 0; i < p->n_result; i++)
        last[p->result[i]] = MPL_NONE;
    for (uint32_t v = 0; v < p->n_outside; v++) {
        live += outside_bytes[v];
        last[v] = used_later[v] ? MPL_NONE : last[v];
    }
    for (size_t i = 0; i < p->n_steps; i++) {
        const tile_step *s = &p->step[i];
        const tile_value *out = &p->value[s->out];
        bool pinned =
            pinned_result && p->value[result].of == out->of && out->bytes == p->value[result].bytes;

        *peak = mpl_max_u64(*peak, live + (pinned ? 0 : out->bytes - overwritten(p, i, last)));
        live += pinned ? 0 : out->bytes;
        for (uint32_t k = 0; k < s->n_in; k++) {
            uint32_t v = p->in[s->in_begin + k];

            if (v == MPL_NONE || last[v] != i)
                continue;
            last[v] = MPL_NONE; /* an operand may be read twice */
            if (!(pinned_result && p->value[v].of == p->value[result].of &&
                  p->value[v].bytes == p->value[result].bytes))
                live -= v < p->n_outside ? outside_bytes[v] : p->value[v].bytes;
        }
    }
out:
    mpl_free(p->ctx, last);
    return st;
}
