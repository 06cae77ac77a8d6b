/* from_graph.c -- the problem of a graph and an order, once it is known which concats share. See
 * from_graph.h.
 *
 * Storage that others lie in (pieces of a split, operands of a concat) is cut where they begin and
 * end; its parts are a family, each there for as long as something in it is needed. Buffers come in
 * the order of their values' ids, workspaces behind them in the order of their operations. A root
 * that a graph output is a view of is an output itself: its storage is what the caller gets. */
#include "graphs/problem/access.h"
#include "graphs/problem/before.h"
#include "graphs/problem/liveness.h"
#include "graphs/problem/derive/concats.h"
#include "graphs/problem/cuts.h"
#include "graphs/problem/control/storage.h"
#include "graphs/problem/control/units.h"
#include "graphs/problem/problem.h"

#include <stdlib.h>

typedef struct maker {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_problem_options *options;
    mpl_ranges *ranges;
    mpl_cuts cuts;
    uint32_t *part_first, *part_last; /* [cuts.n] of those of cut storage [step] */
    uint8_t *part_kept;               /* [cuts.n] likewise: it must still be there at the end */
    bool any_cut;                     /* of what is not pinned */
    mpl_program *program;
    mpl_storage *storage; /* NULL: no control flow, each root has a buffer of its own */
    uint8_t *is_output;   /* [n_values] a root that holds a graph output */
    uint8_t *part;        /* [n_values] of a root: the mpl_part that decides its pool; else none */
    uint32_t pool[MPL_N_PARTS]; /* of the problem; 0: none of its own */
    uint64_t *points;     /* parallel with storage: [n * storage->words] when each buffer is needed;
                             else NULL */
    mpl_extents *extents; /* of them */
    mpl_value_map *map;
    mpl_problem *p;
    uint32_t n_values, n; /* buffers of values; all */
} maker;

mpl_problem_options mpl_problem_options_default(void)
{
    return (mpl_problem_options){
        .in_place = true,
        .views = true,
        .pin_weights = true,
        .pin_inputs = true,
        .pin_outputs = true,
        .concat = MPL_CONCAT_AUTO,
        .boxes = true,
        .align = 64,
        .capacity = MPL_NO_CAPACITY,
    };
}

void mpl_value_map_free(mpl_ctx *ctx, mpl_value_map *map)
{
    if (map == NULL)
        return;
    mpl_free(ctx, map->value_buffer);
    mpl_free(ctx, map->value_buffers);
    mpl_free(ctx, map->value_root);
    mpl_free(ctx, map->value_offset);
    mpl_free(ctx, map->value_box);
    mpl_free(ctx, map->op_nothing);
    mpl_free(ctx, map->op_workspace);
    mpl_free(ctx, map->step_of);
    mpl_places_free(ctx, map->places);
    mpl_free(ctx, map);
}

static bool is_pinned(const maker *m, mpl_value root)
{
    if (m->part[root] != MPL_PART_NONE)
        return false;
    return (m->is_output[root] && m->options->pin_outputs && !mpl_is_chosen(m->g, root)) ||
           (m->g->value_role[root] == MPL_INPUT && m->options->pin_inputs) ||
           (m->g->value_role[root] == MPL_WEIGHT && m->options->pin_weights);
}

/* What must still be there when the last operation is done. */
static bool is_kept(const maker *m, mpl_value root)
{
    return m->is_output[root] || m->g->value_role[root] == MPL_WEIGHT;
}

/* The lowest of as many ids as v has parts. */
static mpl_buffer take_ids(maker *m, mpl_value v)
{
    mpl_buffer first = m->n;

    m->n += m->cuts.count[v];
    m->any_cut = m->any_cut || m->cuts.count[v] > 1;
    return first;
}

/* Which parts of its root's storage each value lies in. */
static mpl_status spread_values(maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_cuts *cuts = &m->cuts;
    mpl_value_map *map = m->map;

    MPL_TRY(mpl_new(m->ctx, map->value_buffers, m->g->n_values));
    for (mpl_value v = 0; v < m->g->n_values; v++) {
        map->value_buffers[v] = cuts->count[v] > 0 ? cuts->count[v] : 1;
        if (map->value_buffer[v] != MPL_NONE && cuts->count[v] > 0)
            map->value_buffer[v] += cuts->first[v] - cuts->first[m->ranges->alias.root[v]];
    }
out:
    return st;
}

/* Numbers the buffers: map->value_buffer of roots first, then of their views, map->op_workspace,
 * and pinned bytes. */
static mpl_status number_buffers(maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = m->g;
    mpl_value_map *map = m->map;
    uint64_t bytes;

    for (mpl_value v = 0; v < g->n_values; v++) {
        map->value_buffer[v] = MPL_NONE;
        if (m->ranges->alias.root[v] != v || g->value_bytes[v] == 0)
            continue;
        if (!is_pinned(m, v))
            map->value_buffer[v] = m->storage != NULL ? m->storage->value_cell[v] : take_ids(m, v);
        else if (!mpl_align_bytes(g->value_bytes[v], m->options->align, &bytes) ||
                 !mpl_add_bytes(map->pinned_bytes, bytes, &map->pinned_bytes) ||
                 map->pinned_bytes > INT64_MAX)
            MPL_FAIL(m->ctx, MPL_EINPUT, "the pinned values of '%.100s' together pass 2^63 bytes",
                     g->name);
    }
    for (mpl_value v = 0; v < g->n_values; v++)
        map->value_buffer[v] = map->value_buffer[m->ranges->alias.root[v]];
    if (m->any_cut)
        MPL_TRY(spread_values(m));
    if (m->storage != NULL)
        m->n = m->storage->n_cells;
    m->n_values = m->n;
    for (mpl_op op = 0; op < g->n_ops; op++)
        map->op_workspace[op] =
            m->options->op_workspace_bytes != NULL && m->options->op_workspace_bytes[op] > 0
                ? m->n++
                : MPL_NONE;
out:
    return st;
}

/* Which roots lie in pools of their own: a view's part is its root's, but that weights are what
 * they are. */
static mpl_status find_parts(maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = m->g;
    uint8_t *part = NULL;

    MPL_TRY(mpl_new(m->ctx, m->part, g->n_values));
    if (m->options->own_pools == 0)
        goto out;
    if (g->n_blocks > 1)
        MPL_FAIL(m->ctx, MPL_EUNAVAIL,
                 "graph '%s': pools of their own are not there for control flow", g->name);
    MPL_TRY(mpl_new(m->ctx, part, g->n_values));
    mpl_graph_parts(g, part);
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = m->ranges->alias.root[v];

        if ((m->options->own_pools >> part[v] & 1) != 0 && part[v] != MPL_PART_NONE &&
            (root == v || g->value_role[root] != MPL_WEIGHT))
            m->part[root] = part[v];
    }
out:
    mpl_free(m->ctx, part);
    return st;
}

static mpl_status add_pool(mpl_ctx *ctx, mpl_problem *p, const char *name)
{
    mpl_status st = MPL_OK;
    uint32_t n = p->n_pools;

    MPL_TRY(mpl_realloc_bytes(ctx, (void **)&p->pool_name, n, n + 1, sizeof *p->pool_name));
    MPL_TRY(mpl_realloc_bytes(ctx, (void **)&p->pool_capacity, n, n + 1, sizeof *p->pool_capacity));
    MPL_TRY(mpl_copy_text(ctx, p->pool_name[n], name));
    p->pool_capacity[n] = MPL_NO_CAPACITY;
    p->n_pools++;
out:
    return st;
}

static mpl_status add_pools(maker *m)
{
    mpl_status st = MPL_OK;
    bool used[MPL_N_PARTS] = {false};

    for (mpl_value v = 0; v < m->g->n_values; v++)
        if (m->map->value_buffer[v] != MPL_NONE)
            used[m->part[m->ranges->alias.root[v]]] = true;
    for (uint32_t k = MPL_PART_NONE + 1; k < MPL_N_PARTS; k++)
        if (used[k]) {
            m->pool[k] = m->p->n_pools;
            MPL_TRY(add_pool(m->ctx, m->p, mpl_part_name((mpl_part)k)));
        }
    if (m->n > m->n_values && !m->options->plan_workspaces)
        MPL_TRY(add_pool(m->ctx, m->p, "workspace"));
out:
    return st;
}

/* Steps that need the parts of storage that is cut: what has nothing to do needs none. */
static mpl_status find_lives(maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = m->g;
    const mpl_cuts *cuts = &m->cuts;

    MPL_TRY(mpl_new(m->ctx, m->part_first, cuts->n));
    MPL_TRY(mpl_new(m->ctx, m->part_last, cuts->n));
    MPL_TRY(mpl_new(m->ctx, m->part_kept, cuts->n));
    for (uint32_t i = 0; i < cuts->n; i++)
        m->part_first[i] = MPL_NONE;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint32_t n_read = mpl_n_read(g, op), step = m->ranges->step_of[op];
        uint32_t n = n_read + mpl_op_n_out(g, op);

        for (uint32_t i = 0; i < n && !m->ranges->alias.nothing[op]; i++) {
            mpl_value v =
                i < n_read ? mpl_op_input(g, op, i) : g->op_out[g->op_out_begin[op] + i - n_read];

            for (uint32_t k = 0; v != MPL_NONE && k < cuts->count[v]; k++) {
                uint32_t part = cuts->first[v] + k;

                m->part_first[part] = step < m->part_first[part] ? step : m->part_first[part];
                m->part_last[part] = step > m->part_last[part] ? step : m->part_last[part];
            }
        }
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        for (uint32_t k = 0; k < cuts->count[g->output[i]]; k++)
            m->part_kept[cuts->first[g->output[i]] + k] = 1;
out:
    return st;
}

/* A part has the name of a value that is all of it, else its root's and where it begins. */
static mpl_status name_part(maker *m, uint32_t part, mpl_buffer b)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = m->g;
    mpl_value root = m->cuts.root[part];
    size_t n = strlen(g->value_name[root]) + 24;

    if (m->p->buffer_name[b] != NULL)
        goto out;
    MPL_TRY((m->p->buffer_name[b] = mpl_alloc(m->ctx, n, 1)) != NULL ? MPL_OK : MPL_EMEM);
    snprintf(m->p->buffer_name[b], n, "%s@%" PRIu64, g->value_name[root], m->cuts.at[part]);
out:
    return st;
}

/* The family of root v, whose storage is cut: buffers from b on. */
static mpl_status fill_family(maker *m, mpl_value v, mpl_buffer b)
{
    mpl_status st = MPL_OK;
    const mpl_cuts *cuts = &m->cuts;
    mpl_problem *p = m->p;
    uint64_t count = 1;

    mpl_shape_count(&m->g->value_shape[v], &count);
    for (uint32_t k = 0; k < cuts->count[v]; k++) {
        uint32_t part = cuts->first[v] + k;

        mpl_assert(m->part_first[part] != MPL_NONE);
        p->bytes[b + k] = cuts->bytes[part];
        p->birth[b + k] = m->part_first[part];
        p->death[b + k] = m->part_kept[part] ? p->n_steps : m->part_last[part] + 1;
        p->pool[b + k] = m->pool[m->part[v]];
        p->inside[b + k] = b;
        p->inside_at[b + k] = cuts->at[part];
        p->type_id[b + k] = m->g->value_type[v];
        p->no_reuse[b + k] = count == 1;
        MPL_TRY(name_part(m, part, b + k));
    }
out:
    return st;
}

/* Names of parts that are a value, the first of those that are the same. */
static mpl_status name_parts(maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_cuts *cuts = &m->cuts;

    for (mpl_value v = 0; v < m->g->n_values; v++) {
        mpl_buffer b = m->map->value_buffer[v];

        if (b == MPL_NONE || cuts->count[v] != 1 || !mpl_cuts_cut(cuts, &m->ranges->alias, v) ||
            m->g->value_bytes[v] != cuts->bytes[cuts->first[v]] || m->p->buffer_name[b] != NULL)
            continue;
        MPL_TRY(mpl_copy_text(m->ctx, m->p->buffer_name[b], m->g->value_name[v]));
    }
out:
    return st;
}

static mpl_status fill_values(maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = m->g;
    mpl_problem *p = m->p;

    if (m->any_cut) {
        MPL_TRY(mpl_new(m->ctx, p->inside, p->n));
        MPL_TRY(mpl_new(m->ctx, p->inside_at, p->n));
        for (mpl_buffer b = 0; b < p->n; b++)
            p->inside[b] = b;
        MPL_TRY(name_parts(m));
    }
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_buffer b = m->map->value_buffer[v];
        uint64_t count = 1;

        if (b == MPL_NONE || m->ranges->alias.root[v] != v)
            continue;
        if (m->cuts.count[v] > 1) {
            MPL_TRY(fill_family(m, v, b));
            continue;
        }
        mpl_shape_count(&g->value_shape[v], &count);
        p->bytes[b] = g->value_bytes[v];
        p->pool[b] = m->pool[m->part[v]];
        p->birth[b] = m->ranges->first[v];
        p->death[b] = is_kept(m, v) ? p->n_steps : m->ranges->last[v] + 1;
        p->type_id[b] = g->value_type[v];
        p->no_reuse[b] = count == 1;
        MPL_TRY(mpl_copy_text(m->ctx, p->buffer_name[b], g->value_name[v]));
    }
out:
    return st;
}

/* The lifetime of a cell: from the first to the last step that needs it, with gaps. */
static mpl_status fill_lifetime(maker *m, mpl_buffer b, size_t *from_cap, size_t *to_cap)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = m->p;
    const uint64_t *row = m->storage->row + (size_t)b * m->storage->words;
    uint32_t n_gaps = p->gap_begin[b], last = MPL_NONE;

    for (uint32_t step = 0; step < p->n_steps; step++) {
        if (!mpl_bit_has(row, step))
            continue;
        if (last == MPL_NONE) {
            p->birth[b] = step;
        } else if (last + 1 < step) {
            MPL_TRY(mpl_reserve(m->ctx, p->gap_from, *from_cap, (size_t)n_gaps + 1));
            MPL_TRY(mpl_reserve(m->ctx, p->gap_to, *to_cap, (size_t)n_gaps + 1));
            p->gap_from[n_gaps] = last + 1;
            p->gap_to[n_gaps++] = step;
        }
        last = step;
    }
    mpl_assert(last != MPL_NONE);
    p->death[b] = last + 1;
    p->gap_begin[b + 1] = n_gaps;
out:
    return st;
}

/* Name of a cell: its value's, with the number of the copy behind the first; or of the loop that
 * copies through it. */
static mpl_status name_cell(maker *m, mpl_buffer b)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = m->g;
    mpl_value v = m->storage->named[b];
    const char *base = v != MPL_NONE ? g->value_name[v] : "staging";
    size_t n = strlen(base) + 16;
    char *name;

    MPL_TRY((name = m->p->buffer_name[b] = mpl_alloc(m->ctx, n, 1)) != NULL ? MPL_OK : MPL_EMEM);
    if (m->storage->copy[b] == 0)
        memcpy(name, base, n - 15);
    else
        snprintf(name, n, "%s:%" PRIu32, base, m->storage->copy[b]);
out:
    return st;
}

static mpl_status fill_cells(maker *m)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = m->p;
    size_t from_cap = 0, to_cap = 0;

    MPL_TRY(mpl_new(m->ctx, p->gap_begin, (size_t)p->n + 1));
    for (mpl_buffer b = 0; b < m->n_values; b++) {
        mpl_value v = m->storage->named[b];
        uint64_t count = 1;

        if (v != MPL_NONE)
            mpl_shape_count(&m->g->value_shape[v], &count);
        p->bytes[b] = m->storage->bytes[b];
        p->type_id[b] = v != MPL_NONE ? m->g->value_type[v] : MPL_N_TYPES;
        p->no_reuse[b] = count == 1;
        p->death[b] = 1; /* parallel: points decide */
        if (!m->options->parallel)
            MPL_TRY(fill_lifetime(m, b, &from_cap, &to_cap));
        MPL_TRY(name_cell(m, b));
    }
    for (mpl_buffer b = m->n_values; b < p->n; b++)
        p->gap_begin[b + 1] = p->gap_begin[b];
    if (p->gap_begin[p->n] == 0) {
        mpl_free(m->ctx, p->gap_begin);
        p->gap_begin = NULL;
    }
out:
    return st;
}

static mpl_status fill_workspaces(maker *m)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = m->p;
    char name[32];

    for (mpl_op op = 0; op < m->g->n_ops; op++) {
        mpl_buffer b = m->map->op_workspace[op];

        if (b == MPL_NONE)
            continue;
        p->bytes[b] = m->options->op_workspace_bytes[op];
        p->pool[b] = m->options->plan_workspaces ? 0 : p->n_pools - 1;
        p->birth[b] = m->ranges->step_of[op];
        p->death[b] = p->birth[b] + 1;
        p->type_id[b] = MPL_N_TYPES;
        snprintf(name, sizeof name, "workspace:%u", op);
        MPL_TRY(mpl_copy_text(m->ctx, p->buffer_name[b], name));
    }
out:
    return st;
}

/* Equal ids for equal dims: the lowest buffer that has them, found through a table with open
 * addressing. A workspace is one dimension of bytes. */
static mpl_status fill_shapes(maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = m->g;
    mpl_problem *p = m->p;
    mpl_shape *shape = NULL;
    mpl_buffer *slot = NULL;
    size_t mask = 15;

    while (mask <= 2 * (size_t)p->n)
        mask = 2 * mask + 1;
    MPL_TRY(mpl_new(m->ctx, shape, p->n));
    MPL_TRY(mpl_new(m->ctx, slot, mask + 1));
    for (mpl_value v = 0; v < g->n_values; v++)
        for (uint32_t k = 0; m->storage == NULL && m->map->value_buffer[v] != MPL_NONE &&
                             m->ranges->alias.root[v] == v && k < m->cuts.count[v];
             k++)
            shape[m->map->value_buffer[v] + k] = g->value_shape[v];
    for (mpl_buffer b = 0; m->storage != NULL && b < m->n_values; b++)
        shape[b] = m->storage->named[b] != MPL_NONE
                       ? g->value_shape[m->storage->named[b]]
                       : (mpl_shape){.rank = 1, .dim = {(int64_t)p->bytes[b]}};
    for (mpl_buffer b = m->n_values; b < p->n; b++)
        shape[b] = (mpl_shape){.rank = 1, .dim = {(int64_t)p->bytes[b]}};
    for (mpl_buffer b = 0; b < p->n; b++) {
        uint64_t h = mpl_table_hash(0, shape[b].dim, shape[b].rank * sizeof *shape[b].dim);
        size_t at = h & mask;

        while (slot[at] != 0 && !mpl_shape_equal(&shape[slot[at] - 1], &shape[b]))
            at = (at + 1) & mask;
        if (slot[at] == 0)
            slot[at] = b + 1;
        p->shape_id[b] = slot[at] - 1;
    }
out:
    mpl_free(m->ctx, shape);
    mpl_free(m->ctx, slot);
    return st;
}

static bool has_gaps(const mpl_problem *p, mpl_buffer b)
{
    return p->gap_begin != NULL && p->gap_begin[b] < p->gap_begin[b + 1];
}

static bool cell_is_kept(const maker *m, mpl_buffer b)
{
    const uint64_t *row = m->storage->row + (size_t)b * m->storage->words;

    return mpl_bit_has(row, m->p->n_steps);
}

/* Whether cell `in` is needed before `step`, in its unit or before that. */
static bool is_older(const maker *m, mpl_buffer in, uint32_t step)
{
    const mpl_units *u = m->storage->units;
    const uint64_t *points = m->points + (size_t)in * m->storage->words;

    for (uint32_t w = 0; w < u->point_words; w++)
        if ((points[w] & ~(w == step / 64 ? UINT64_C(1) << (step % 64) : 0)) != 0)
            return true;
    return false;
}

/* Whether `out` takes over from `in` at `step`: both are needed without a break, the one up to it,
 * the other from it on. */
static bool cells_meet_once(const maker *m, mpl_buffer in, mpl_buffer out, uint32_t step)
{
    const mpl_problem *p = m->p;

    if (m->extents != NULL)
        return in != out && p->bytes[out] <= p->bytes[in] && is_older(m, in, step) &&
               mpl_extents_meet_at(m->extents, in, out, step);
    return in != out && !has_gaps(p, in) && !has_gaps(p, out) && !cell_is_kept(m, in) &&
           p->birth[in] < step && p->death[in] == step + 1 && p->birth[out] == step &&
           p->bytes[out] <= p->bytes[in];
}

/* Whether a loop or case that begins right behind `step` may read cell `in` before it does: no step
 * tells of that. */
static bool read_on_entry(const maker *m, mpl_buffer in, uint32_t step)
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

/* The same of an input that lies in storage that is cut: in one part, which is needed no more, of
 * another family than the output. */
static bool may_overwrite_part(const maker *m, mpl_op op, uint32_t i)
{
    const mpl_graph *g = m->g;
    mpl_value in = mpl_op_input(g, op, i), out = mpl_op_output(g, op, 0);
    uint32_t part = m->cuts.first[in], step = m->ranges->step_of[op];

    return mpl_cuts_operand(g, &m->ranges->alias, &m->cuts, op, i) && !m->part_kept[part] &&
           m->part_last[part] == step && m->part_first[part] != step &&
           m->ranges->alias.root[in] != m->ranges->alias.root[out] &&
           m->part[m->ranges->alias.root[in]] == m->part[m->ranges->alias.root[out]];
}

/* Whether output 0 of `op` may be written over its input `i` at its step. */
static bool may_overwrite(const maker *m, mpl_op op, uint32_t i)
{
    mpl_value in = mpl_op_input(m->g, op, i),
              root = in == MPL_NONE ? MPL_NONE : m->ranges->alias.root[in];

    if (root != MPL_NONE && m->map->value_buffer[in] != MPL_NONE && m->storage == NULL &&
        mpl_cuts_cut(&m->cuts, &m->ranges->alias, in))
        return may_overwrite_part(m, op, i);
    if (root == MPL_NONE || m->map->value_buffer[in] == MPL_NONE || is_kept(m, root) ||
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

/* Whether `out`, which `op` writes, fills a buffer alone: as a root, or as a part of storage that
 * is cut. */
static bool has_buffer(const maker *m, mpl_op op, mpl_value out)
{
    const mpl_alias *alias = &m->ranges->alias;

    if (m->storage != NULL || !mpl_cuts_cut(&m->cuts, alias, out))
        return alias->root[out] == out;
    return m->cuts.count[out] == 1 && m->part_first[m->cuts.first[out]] == m->ranges->step_of[op] &&
           !alias->nothing[op];
}

/* Buffers that output 0 of `op` may overwrite, ascending and distinct, into `found`; their
 * number. */
static uint32_t sources_of(const maker *m, mpl_op op, mpl_buffer *found)
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
        /* a part may end behind its value */
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

/* Steps ascend and each step has one output, so the pairs come out sorted by (step, out, in). */
static mpl_status add_pairs(maker *m, const mpl_op *order)
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

/* When each cell and workspace is needed, and the order that follows. */
static mpl_status fill_points(maker *m)
{
    mpl_status st = MPL_OK;
    const mpl_units *u = m->storage->units;
    size_t stride = m->storage->words;

    MPL_TRY(mpl_new(m->ctx, m->points, m->n * stride));
    memcpy(m->points, m->storage->row, m->n_values * stride * sizeof *m->points);
    for (mpl_op op = 0; op < m->g->n_ops; op++)
        if (m->map->op_workspace[op] != MPL_NONE)
            mpl_points_set_range(u, m->ranges->step_of[op], m->ranges->step_of[op],
                                 m->points + m->map->op_workspace[op] * stride);
    MPL_TRY(mpl_extents_new(m->ctx, u, m->n, m->points, stride, &m->extents));
out:
    return st;
}

static mpl_status make_problem(maker *m, const mpl_op *order)
{
    mpl_status st = MPL_OK;
    const mpl_problem_options *o = m->options;
    mpl_access *access = NULL;
    mpl_problem *p;

    MPL_TRY(mpl_problem_new(m->ctx, m->g->name, m->n, &m->p));
    p = m->p;
    p->n_steps = m->program->n_steps > 0 ? m->program->n_steps : 1;
    p->pool_capacity[0] = o->capacity;
    MPL_TRY(add_pools(m));
    MPL_TRY(mpl_new(m->ctx, p->buffer_name, p->n));
    MPL_TRY(mpl_new(m->ctx, p->type_id, p->n));
    MPL_TRY(mpl_new(m->ctx, p->shape_id, p->n));
    MPL_TRY(mpl_new(m->ctx, p->no_reuse, p->n));
    for (mpl_buffer b = 0; b < p->n; b++)
        p->align[b] = o->align;
    MPL_TRY(m->storage != NULL ? fill_cells(m) : fill_values(m));
    MPL_TRY(fill_workspaces(m));
    MPL_TRY(fill_shapes(m));
    if (m->storage != NULL && o->parallel)
        MPL_TRY(fill_points(m));
    if (o->in_place)
        MPL_TRY(add_pairs(m, order));
    if (m->storage == NULL && (!m->any_cut || o->parallel))
        MPL_TRY(mpl_access_new(m->ctx, m->g, p->n,
                               &(mpl_touches){m->map->value_buffer, m->map->value_buffers,
                                              m->map->op_workspace,
                                              m->any_cut ? m->ranges->alias.nothing : NULL},
                               &access));
    p->access = access;
    if (m->extents == NULL) /* a workspace can be too large: that is the backend's word, not ours */
        MPL_TRY(mpl_problem_check(m->ctx, p));
out:
    return st;
}

/* From lifetimes to the partial order. Values that outlive the graph are before nothing, values
 * that are there from the start are after nothing; an input may be overwritten only where nothing
 * else can still read it: where the operation is its only last event. */
static mpl_status parallel_values(maker *m)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = m->p;
    mpl_before *before = NULL;
    uint64_t *rows = NULL;
    uint32_t n_kept = 0, n_words = p->n / 64 + (p->n % 64 != 0);
    uint8_t *held = NULL, *given = NULL;

    MPL_TRY(mpl_new(m->ctx, held, p->n));
    MPL_TRY(mpl_new(m->ctx, given, p->n));
    for (mpl_value v = 0; v < m->g->n_values; v++) {
        mpl_buffer b = m->map->value_buffer[v];

        if (b == MPL_NONE || m->ranges->alias.root[v] != v)
            continue;
        held[b] = is_kept(m, v);
        given[b] = m->g->value_op[v] == MPL_NONE;
        for (uint32_t k = 0; m->cuts.count[v] > 1 && k < m->cuts.count[v]; k++)
            held[b + k] = m->part_kept[m->cuts.first[v] + k];
    }
    MPL_TRY(mpl_before_from_access(m->ctx, p->n, p->access, &before));
    MPL_TRY(mpl_new(m->ctx, rows, (size_t)p->n * n_words));
    for (uint32_t a = 0; a < p->n; a++)
        for (uint32_t b = 0; b < p->n && !held[a]; b++)
            if (!given[b] && mpl_is_before(before, a, b))
                mpl_bit_add(rows + (size_t)a * n_words, b);
    mpl_before_free(m->ctx, before), before = NULL;
    MPL_TRY(mpl_before_from_rows_take(m->ctx, p->n, &rows, &before));
    p->before = before, before = NULL;
    for (uint32_t i = 0; i < p->n_in_place; i++) {
        mpl_buffer in = p->in_place_in[i];

        if (p->access->last_begin[in + 1] - p->access->last_begin[in] != 1)
            continue;
        p->in_place_in[n_kept] = in;
        p->in_place_out[n_kept] = p->in_place_out[i];
        p->in_place_step[n_kept++] = p->in_place_step[i];
    }
    p->n_in_place = n_kept;
out:
    mpl_free(m->ctx, held);
    mpl_free(m->ctx, given);
    mpl_free(m->ctx, rows);
    mpl_before_free(m->ctx, before);
    return st;
}

/* Cells that are needed at once in no run, though neither is before the other, conflict all the
 * same: an order says no more. They are those of different branches, where something else lies in
 * both, and those that are there again and again in a round. */
static mpl_status parallel_cells(maker *m)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = m->p;
    mpl_before *before = NULL;
    uint64_t *rows = NULL;
    uint32_t n_words = p->n / 64 + (p->n % 64 != 0);

    MPL_TRY(mpl_new(m->ctx, rows, (size_t)p->n * n_words));
    for (uint32_t a = 0; a < p->n; a++)
        for (uint32_t b = 0; b < p->n; b++)
            if (a != b && mpl_extents_before(m->extents, a, b))
                mpl_bit_add(rows + (size_t)a * n_words, b);
    MPL_TRY(mpl_before_from_rows_take(m->ctx, p->n, &rows, &before));
    p->before = before, before = NULL;
out:
    mpl_free(m->ctx, rows);
    mpl_before_free(m->ctx, before);
    return st;
}

static mpl_status make_parallel(maker *m)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = m->p;

    MPL_TRY(m->storage != NULL ? parallel_cells(m) : parallel_values(m));
    p->n_steps = 0;
    memset(p->birth, 0, p->n * sizeof *p->birth);
    memset(p->death, 0, p->n * sizeof *p->death);
    MPL_TRY(mpl_problem_check(m->ctx, p));
out:
    return st;
}

static mpl_status assign_storage(maker *m)
{
    mpl_status st = MPL_OK;
    uint8_t *pinned = NULL, *kept = NULL;

    MPL_TRY(mpl_new(m->ctx, pinned, m->g->n_values));
    MPL_TRY(mpl_new(m->ctx, kept, m->g->n_values));
    for (mpl_value v = 0; v < m->g->n_values; v++) {
        pinned[v] = is_pinned(m, v);
        kept[v] = is_kept(m, v);
    }
    memcpy(m->ranges->step_of, m->program->op_step, m->g->n_ops * sizeof *m->ranges->step_of);
    MPL_TRY(mpl_storage_new(
        m->ctx,
        &(mpl_storage_spec){m->g, m->program, m->options, m->ranges->alias.root, pinned, kept},
        &m->storage));
out:
    mpl_free(m->ctx, pinned);
    mpl_free(m->ctx, kept);
    return st;
}

mpl_status mpl_problem_build(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order,
                             const mpl_problem_options *options, const uint8_t *shared,
                             mpl_problem **problem, mpl_value_map **map)
{
    mpl_status st = MPL_OK;
    maker m = {.ctx = ctx, .g = g, .options = options};
    mpl_alias_options alias = {options->views, options->align, shared,
                               options->in_place && options->pin_outputs, options->boxes};

    MPL_TRY(mpl_ranges_new(ctx, g, order, &alias, &m.ranges));
    MPL_TRY(mpl_new(ctx, m.is_output, g->n_values));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        m.is_output[m.ranges->alias.root[g->output[i]]] = 1;
    MPL_TRY(find_parts(&m));
    MPL_TRY(mpl_program_new(ctx, g, order, &m.program));
    MPL_TRY(mpl_cuts_new(ctx, g, &m.ranges->alias, options->in_place, options->align, &m.cuts));
    MPL_TRY(find_lives(&m));
    if (g->n_blocks > 1)
        MPL_TRY(assign_storage(&m));
    MPL_TRY(mpl_new(ctx, m.map, 1));
    m.map->n_values = g->n_values;
    MPL_TRY(mpl_new(ctx, m.map->value_buffer, g->n_values));
    MPL_TRY(mpl_new(ctx, m.map->op_workspace, g->n_ops));
    MPL_TRY(number_buffers(&m));
    MPL_TRY(make_problem(&m, order));
    if (options->parallel)
        MPL_TRY(make_parallel(&m));
    m.map->value_root = m.ranges->alias.root, m.ranges->alias.root = NULL;
    m.map->value_offset = m.ranges->alias.offset, m.ranges->alias.offset = NULL;
    m.map->value_box = m.ranges->alias.box, m.ranges->alias.box = NULL;
    m.map->op_nothing = m.ranges->alias.nothing, m.ranges->alias.nothing = NULL;
    m.map->step_of = m.ranges->step_of, m.ranges->step_of = NULL;
    if (m.storage != NULL)
        m.map->places = m.storage->places, m.storage->places = NULL;
    *problem = m.p, m.p = NULL;
    *map = m.map, m.map = NULL;
out:
    mpl_ranges_free(ctx, m.ranges);
    mpl_cuts_free(ctx, &m.cuts);
    mpl_free(ctx, m.part_first);
    mpl_free(ctx, m.part_last);
    mpl_free(ctx, m.part_kept);
    mpl_program_free(ctx, m.program);
    mpl_extents_free(ctx, m.extents);
    mpl_free(ctx, m.points);
    mpl_storage_free(ctx, m.storage);
    mpl_free(ctx, m.is_output);
    mpl_free(ctx, m.part);
    mpl_value_map_free(ctx, m.map);
    mpl_problem_free(ctx, m.p);
    return st;
}
