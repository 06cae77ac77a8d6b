/* tagged_graph.c -- which values are eventually read, and which operations may run concurrently. */
#include "tests/tagged/tagged_priv.h"

/* ---- values that are eventually read ---- */

static bool mark(machine *m, mpl_value v, bool useful)
{
    if (v == MPL_NONE || !useful || m->useful[v])
        return false;
    m->useful[v] = 1;
    return true;
}

static bool mark_loop(machine *m, mpl_op op)
{
    loop l = tagged_loop_of(m, op);
    bool changed = mark(m, l.in[0], true);

    changed = mark(m, l.in[1], true) || changed;
    changed = mark(m, l.result[0], true) || changed;
    for (uint32_t i = 0; i < l.n_carried; i++) {
        bool useful = tagged_is_useful(m, l.param[1 + i]) || tagged_is_useful(m, l.out[i]);

        changed = mark(m, l.in[2 + i], useful) || changed;
        changed = mark(m, l.result[1 + i], useful) || changed;
        changed = mark(m, l.param[1 + i], useful) || changed;
    }
    for (uint32_t i = 1 + l.n_carried; i < 1 + l.n_carried + l.n_scans; i++)
        changed = mark(m, l.in[1 + i], tagged_is_useful(m, l.param[i])) || changed;
    for (uint32_t i = l.n_carried; i < l.n_carried + l.n_rows; i++)
        changed = mark(m, l.result[1 + i], tagged_is_useful(m, l.out[i])) || changed;
    return changed;
}

static bool mark_case(machine *m, mpl_op op)
{
    const mpl_graph *g = m->g;
    uint32_t in = g->op_in_begin[op];
    bool changed = mark(m, g->op_in[in], true);

    for (uint32_t i = 0; i < g->op_out_begin[op + 1] - g->op_out_begin[op]; i++) {
        bool useful = tagged_is_useful(m, g->op_out[g->op_out_begin[op] + i]);

        if (in + 1 + i < g->op_in_begin[op + 1])
            changed = mark(m, g->op_in[in + 1 + i], useful) || changed;
        for (uint32_t k = g->op_body_begin[op]; k < g->op_body_begin[op + 1]; k++)
            changed = mark(m, g->block_result[g->block_result_begin[g->op_body[k]] + i], useful) ||
                      changed;
    }
    return changed;
}

static bool mark_plain(machine *m, mpl_op op)
{
    const mpl_graph *g = m->g;
    bool useful = !tagged_is_idle(m, op), changed = false;

    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        useful = useful || tagged_is_useful(m, g->op_out[i]);
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        changed = mark(m, g->op_in[i], useful) || changed;
    return changed;
}

void tagged_mark_all(machine *m)
{
    const mpl_graph *g = m->g;
    bool changed = true;

    for (uint32_t i = 0; i < g->n_outputs; i++)
        mark(m, g->output[i], true);
    while (changed) {
        changed = false;
        for (mpl_op op = 0; op < g->n_ops; op++)
            changed = (g->op_kind[op] == MPL_OP_while  ? mark_loop(m, op)
                       : g->op_kind[op] == MPL_OP_case ? mark_case(m, op)
                                                       : mark_plain(m, op)) ||
                      changed;
    }
}

/* ---- concurrent operations ---- */

static mpl_op unit_of(const machine *m, mpl_op op)
{
    while (m->g->op_block[op] != 0)
        op = m->g->block_owner[m->g->op_block[op]];
    return op;
}

/* `unit` runs after the operation that makes v. */
static void note_after(machine *m, mpl_op unit, mpl_value v)
{
    if (v != MPL_NONE && m->g->value_op[v] != MPL_NONE && unit_of(m, m->g->value_op[v]) != unit)
        m->later[unit_of(m, m->g->value_op[v])] |= UINT64_C(1) << unit;
}

void tagged_order_units(machine *m)
{
    const mpl_graph *g = m->g;

    assert_true(g->n_ops <= MOST_OPS);
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            note_after(m, unit_of(m, op), g->op_in[i]);
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            note_after(m, unit_of(m, g->block_owner[b]),
                       g->block_result[g->block_result_begin[b] + i]);
    for (mpl_op k = 0; k < g->n_ops; k++)
        for (mpl_op a = 0; a < g->n_ops; a++)
            m->later[a] |= (m->later[a] >> k & 1) != 0 ? m->later[k] : 0;
}

/* No two concurrent operations may touch one byte unless both read it. */
way tagged_keep_apart(machine *m)
{
    for (uint64_t i = 0; i < m->slab_begin[m->n_slabs]; i++)
        for (mpl_op a = 0; m->writers[i] != 0 && a < m->g->n_ops; a++)
            for (mpl_op b = 0; (m->writers[i] >> a & 1) != 0 && b < m->g->n_ops; b++)
                if (a != b && ((m->readers[i] | m->writers[i]) >> b & 1) != 0 &&
                    (m->later[a] >> b & 1) == 0 && (m->later[b] >> a & 1) == 0)
                    return tagged_wrong(m, "both may run at once, and touch the same bytes",
                                        m->g->op_name[a], m->g->op_name[b]);
    return GO;
}
