/* from_graph_pairs.c -- finds in-place pairs. See from_graph.c. */
#include "graphs/problem/derive/from_graph_priv.h"

static bool cell_is_kept(const mpl_maker *maker, mpl_buffer b)
{
    const uint64_t *row = maker->storage->row + (size_t)b * maker->storage->words;

    return mpl_bit_has(row, maker->p->n_steps);
}

/* Whether cell `in` is needed before `step`, in the same unit or an earlier one. Nothing is before
 * step 0: serial lifetimes begin there, and no pair is in a parallel problem alone. */
static bool is_older(const mpl_maker *maker, mpl_buffer in, uint32_t step)
{
    const mpl_units *units = maker->storage->units;
    const uint64_t *points = maker->points + (size_t)in * maker->storage->words;

    for (uint32_t w = 0; w < units->point_words && step > 0; w++)
        if ((points[w] & ~(w == step / 64 ? UINT64_C(1) << (step % 64) : 0)) != 0)
            return true;
    return false;
}

/* Whether `in` is last needed at `step`, and `out` first; either may have gaps elsewhere. */
static bool cells_meet_once(const mpl_maker *maker, mpl_buffer in, mpl_buffer out, uint32_t step)
{
    const mpl_problem *p = maker->p;

    if (maker->extents != NULL)
        return in != out && p->bytes[out] <= p->bytes[in] && is_older(maker, in, step) &&
               mpl_extents_meet_at(maker->extents, in, out, step);
    return in != out && !cell_is_kept(maker, in) && p->birth[in] < step &&
           p->death[in] == step + 1 && p->birth[out] == step && p->bytes[out] <= p->bytes[in];
}

/* Whether a loop or case that begins right after `step` may read cell `in` first; no step shows
 * such a read. */
static bool read_on_entry(const mpl_maker *maker, mpl_buffer in, uint32_t step)
{
    const mpl_graph *g = maker->g;
    mpl_op owner;

    if (step + 1 >= maker->program->n_steps || maker->program->kind[step + 1] != MPL_STEP_BEGIN)
        return false;
    owner = g->block_owner[maker->program->of[step + 1]];
    for (uint32_t i = g->op_in_begin[owner]; i < g->op_in_begin[owner + 1]; i++) {
        mpl_value v = g->op_in[i];

        if (v != MPL_NONE &&
            (maker->map->value_buffer[v] == in ||
             maker->storage->places->value_place[maker->ranges->alias.root[v]] != MPL_NONE))
            return true;
    }
    return false;
}

/* The same for an input in split storage: it must lie in one part that ends here, of another family
 * than the output's. */
static bool may_overwrite_part(const mpl_maker *maker, mpl_op op, uint32_t i)
{
    const mpl_graph *g = maker->g;
    mpl_value in = mpl_op_input(g, op, i), out = mpl_op_output(g, op, 0);
    uint32_t part = maker->cuts.first[in], step = maker->ranges->step_of[op];

    return mpl_cuts_operand(g, &maker->ranges->alias, &maker->cuts, op, i) &&
           !maker->part_kept[part] && maker->part_last[part] == step &&
           maker->part_first[part] != step &&
           maker->ranges->alias.root[in] != maker->ranges->alias.root[out] &&
           maker->part[maker->ranges->alias.root[in]] ==
               maker->part[maker->ranges->alias.root[out]];
}

/* Whether output 0 of `op` may overwrite its input `i` at its step. */
static bool may_overwrite(const mpl_maker *maker, mpl_op op, uint32_t i)
{
    mpl_value in = mpl_op_input(maker->g, op, i),
              root = in == MPL_NONE ? MPL_NONE : maker->ranges->alias.root[in];

    if (root != MPL_NONE && maker->map->value_buffer[in] != MPL_NONE && maker->storage == NULL &&
        mpl_cuts_cut(&maker->cuts, &maker->ranges->alias, in))
        return may_overwrite_part(maker, op, i);
    if (root == MPL_NONE || maker->map->value_buffer[in] == MPL_NONE ||
        mpl_maker_is_kept(maker, root) || mpl_alias_strided(&maker->ranges->alias, in) ||
        maker->part[root] != maker->part[maker->ranges->alias.root[mpl_op_output(maker->g, op, 0)]])
        return false;
    if (maker->storage != NULL)
        return cells_meet_once(maker, maker->map->value_buffer[in],
                               maker->map->value_buffer[mpl_op_output(maker->g, op, 0)],
                               maker->ranges->step_of[op]) &&
               !read_on_entry(maker, maker->map->value_buffer[in], maker->ranges->step_of[op]) &&
               mpl_in_place_operand(maker->g, maker->ranges->alias.root,
                                    maker->ranges->alias.offset, op, i);
    /* A pair needs a step between births: an input that the first operation reads is born with its
     * output. */
    return maker->ranges->last[root] == maker->ranges->step_of[op] &&
           maker->ranges->first[root] != maker->ranges->step_of[op] &&
           mpl_in_place_operand(maker->g, maker->ranges->alias.root, maker->ranges->alias.offset,
                                op, i);
}

/* Whether `out`, which `op` writes, fills a buffer alone: as a root, or as a part of split
 * storage. */
static bool has_buffer(const mpl_maker *maker, mpl_op op, mpl_value out)
{
    const mpl_alias *alias = &maker->ranges->alias;

    if (maker->storage != NULL || !mpl_cuts_cut(&maker->cuts, alias, out))
        return alias->root[out] == out;
    return maker->cuts.count[out] == 1 &&
           maker->part_first[maker->cuts.first[out]] == maker->ranges->step_of[op] &&
           !alias->nothing[op];
}

/* Writes the buffers that output 0 of `op` may overwrite, ascending and distinct, to `found`;
 * returns their number. */
static uint32_t sources_of(const mpl_maker *maker, mpl_op op, mpl_buffer *found)
{
    const mpl_graph *g = maker->g;
    const mpl_value *in = g->op_in + g->op_in_begin[op];
    uint32_t n_in = mpl_op_n_in(g, op), n = 0;
    mpl_value out = mpl_op_output(g, op, 0);

    if (out == MPL_NONE || maker->map->value_buffer[out] == MPL_NONE || !has_buffer(maker, op, out))
        return 0;
    for (uint32_t i = 0; i < n_in; i++) {
        uint32_t at = n;
        mpl_buffer b;

        if (!may_overwrite(maker, op, i))
            continue;
        b = maker->map->value_buffer[in[i]];
        /* a part may extend beyond its value */
        if (maker->p->bytes[maker->map->value_buffer[out]] > maker->p->bytes[b])
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

mpl_status mpl_maker_add_pairs(mpl_maker *maker, const mpl_op *order)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = maker->g;
    mpl_problem *p = maker->p;
    mpl_buffer *found = NULL;
    size_t in_cap = 0, out_cap = 0, step_cap = 0;
    uint32_t most = 0;

    for (mpl_op op = 0; op < g->n_ops; op++)
        if (mpl_op_n_in(g, op) > most)
            most = mpl_op_n_in(g, op);
    MPL_TRY(mpl_new(maker->ctx, found, (size_t)most + 1));
    for (uint32_t i = 0; i < g->n_ops; i++) {
        mpl_op op = order[i];
        uint32_t n = sources_of(maker, op, found);

        MPL_TRY(mpl_reserve(maker->ctx, p->in_place_in, in_cap, (size_t)p->n_in_place + n));
        MPL_TRY(mpl_reserve(maker->ctx, p->in_place_out, out_cap, (size_t)p->n_in_place + n));
        MPL_TRY(mpl_reserve(maker->ctx, p->in_place_step, step_cap, (size_t)p->n_in_place + n));
        for (uint32_t k = 0; k < n; k++) {
            p->in_place_in[p->n_in_place] = found[k];
            p->in_place_out[p->n_in_place] = maker->map->value_buffer[mpl_op_output(g, op, 0)];
            p->in_place_step[p->n_in_place++] = maker->ranges->step_of[op];
        }
    }
out:
    mpl_free(maker->ctx, found);
    return st;
}
