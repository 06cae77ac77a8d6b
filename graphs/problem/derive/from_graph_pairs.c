/* from_graph_pairs.c -- finds in-place pairs. See from_graph.c. */
#include "graphs/problem/derive/from_graph_priv.h"

static bool cell_is_kept(const mpl_maker *m, mpl_buffer b)
{
    const uint64_t *row = m->storage->row + (size_t)b * m->storage->words;

    return mpl_bit_has(row, m->p->n_steps);
}

/* Whether cell `in` is needed before `step`, in the same unit or an earlier one. Nothing is before
 * step 0: serial lifetimes begin there, and no pair is in a parallel problem alone. */
static bool is_older(const mpl_maker *m, mpl_buffer in, uint32_t step)
{
    const mpl_units *u = m->storage->units;
    const uint64_t *points = m->points + (size_t)in * m->storage->words;

    for (uint32_t w = 0; w < u->point_words && step > 0; w++)
        if ((points[w] & ~(w == step / 64 ? UINT64_C(1) << (step % 64) : 0)) != 0)
            return true;
    return false;
}

/* Whether `in` is last needed at `step`, and `out` first; either may have gaps elsewhere. */
static bool cells_meet_once(const mpl_maker *m, mpl_buffer in, mpl_buffer out, uint32_t step)
{
    const mpl_problem *p = m->p;

    if (m->extents != NULL)
        return in != out && p->bytes[out] <= p->bytes[in] && is_older(m, in, step) &&
               mpl_extents_meet_at(m->extents, in, out, step);
    return in != out && !cell_is_kept(m, in) && p->birth[in] < step && p->death[in] == step + 1 &&
           p->birth[out] == step && p->bytes[out] <= p->bytes[in];
}

/* Whether a loop or case that begins right after `step` may read cell `in` first; no step shows
 * such a read. */
static bool read_on_entry(const mpl_maker *m, mpl_buffer in, uint32_t step)
{
    const mpl_graph *g = m->g;
    mpl_op owner;

    if (step + 1 >= m->program->n_steps || m->program->kind[step + 1] != MPL_STEP_BEGIN)
        return false;
    owner = g->block_owner[m->program->of[step + 1]];
    for (uint32_t i = g->op_in_begin[owner]; i < g->op_in_begin[owner + 1]; i++) {
        mpl_value v = g->op_in[i];

        if (v != MPL_NONE &&
            (m->map->value_buffer[v] == in ||
             m->storage->places->value_place[m->ranges->alias.root[v]] != MPL_NONE))
            return true;
    }
    return false;
}

/* The same for an input in split storage: it must lie in one part that ends here, of another family
 * than the output's. */
static bool may_overwrite_part(const mpl_maker *m, mpl_op op, uint32_t i)
{
    const mpl_graph *g = m->g;
    mpl_value in = mpl_op_input(g, op, i), out = mpl_op_output(g, op, 0);
    uint32_t part = m->cuts.first[in], step = m->ranges->step_of[op];

    return mpl_cuts_operand(g, &m->ranges->alias, &m->cuts, op, i) && !m->part_kept[part] &&
           m->part_last[part] == step && m->part_first[part] != step &&
           m->ranges->alias.root[in] != m->ranges->alias.root[out] &&
           m->part[m->ranges->alias.root[in]] == m->part[m->ranges->alias.root[out]];
}

/* Whether output 0 of `op` may overwrite its input `i` at its step. */
static bool may_overwrite(const mpl_maker *m, mpl_op op, uint32_t i)
{
    mpl_value in = mpl_op_input(m->g, op, i),
              root = in == MPL_NONE ? MPL_NONE : m->ranges->alias.root[in];

    if (root != MPL_NONE && m->map->value_buffer[in] != MPL_NONE && m->storage == NULL &&
        mpl_cuts_cut(&m->cuts, &m->ranges->alias, in))
        return may_overwrite_part(m, op, i);
    if (root == MPL_NONE || m->map->value_buffer[in] == MPL_NONE || mpl_maker_is_kept(m, root) ||
        mpl_alias_strided(&m->ranges->alias, in) ||
        m->part[root] != m->part[m->ranges->alias.root[mpl_op_output(m->g, op, 0)]])
        return false;
    if (m->storage != NULL)
        return cells_meet_once(m, m->map->value_buffer[in],
                               m->map->value_buffer[mpl_op_output(m->g, op, 0)],
                               m->ranges->step_of[op]) &&
               !read_on_entry(m, m->map->value_buffer[in], m->ranges->step_of[op]) &&
               mpl_in_place_operand(m->g, m->ranges->alias.root, m->ranges->alias.offset, op, i);
    /* A pair needs a step between births: an input that the first operation reads is born with its
     * output. */
    return m->ranges->last[root] == m->ranges->step_of[op] &&
           m->ranges->first[root] != m->ranges->step_of[op] &&
           mpl_in_place_operand(m->g, m->ranges->alias.root, m->ranges->alias.offset, op, i);
}

/* Whether `out`, which `op` writes, fills a buffer alone: as a root, or as a part of split
 * storage. */
static bool has_buffer(const mpl_maker *m, mpl_op op, mpl_value out)
{
    const mpl_alias *alias = &m->ranges->alias;

    if (m->storage != NULL || !mpl_cuts_cut(&m->cuts, alias, out))
        return alias->root[out] == out;
    return m->cuts.count[out] == 1 && m->part_first[m->cuts.first[out]] == m->ranges->step_of[op] &&
           !alias->nothing[op];
}

/* Writes the buffers that output 0 of `op` may overwrite, ascending and distinct, to `found`;
 * returns their number. */
static uint32_t sources_of(const mpl_maker *m, mpl_op op, mpl_buffer *found)
{
    const mpl_graph *g = m->g;
    const mpl_value *in = g->op_in + g->op_in_begin[op];
    uint32_t n_in = mpl_op_n_in(g, op), n = 0;
    mpl_value out = mpl_op_output(g, op, 0);

    if (out == MPL_NONE || m->map->value_buffer[out] == MPL_NONE || !has_buffer(m, op, out))
        return 0;
    for (uint32_t i = 0; i < n_in; i++) {
        uint32_t at = n;
        mpl_buffer b;

        if (!may_overwrite(m, op, i))
            continue;
        b = m->map->value_buffer[in[i]];
        /* a part may extend beyond its value */
        if (m->p->bytes[m->map->value_buffer[out]] > m->p->bytes[b])
            continue;
        while (at > 0 && found[at - 1] > b)
            at--;
        if (at > 0 && found[at - 1] == b)
            continue;
        memmove(found + at + 1, found + at, (n - at) * sizeof *found);
        found[at] = b;
        n++;
    }
    return n;
}

mpl_status mpl_maker_add_pairs(mpl_maker *m, const mpl_op *order)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = m->g;
    mpl_problem *p = m->p;
    mpl_buffer *found = NULL;
    size_t in_cap = 0, out_cap = 0, step_cap = 0;
    uint32_t most = 0;

    for (mpl_op op = 0; op < g->n_ops; op++)
        if (mpl_op_n_in(g, op) > most)
            most = mpl_op_n_in(g, op);
    MPL_TRY(mpl_new(m->ctx, found, (size_t)most + 1));
    for (uint32_t i = 0; i < g->n_ops; i++) {
        mpl_op op = order[i];
        uint32_t n = sources_of(m, op, found);

        MPL_TRY(mpl_reserve(m->ctx, p->in_place_in, in_cap, (size_t)p->n_in_place + n));
        MPL_TRY(mpl_reserve(m->ctx, p->in_place_out, out_cap, (size_t)p->n_in_place + n));
        MPL_TRY(mpl_reserve(m->ctx, p->in_place_step, step_cap, (size_t)p->n_in_place + n));
        for (uint32_t k = 0; k < n; k++) {
            p->in_place_in[p->n_in_place] = found[k];
            p->in_place_out[p->n_in_place] = m->map->value_buffer[mpl_op_output(g, op, 0)];
            p->in_place_step[p->n_in_place++] = m->ranges->step_of[op];
        }
    }
out:
    mpl_free(m->ctx, found);
    return st;
}
