/* recompute_board.c -- a region of a model as sets of at most 64. See recompute_priv.h.
 *
 * Bytes    A lump that crosses a border belongs to the side that reads it as long as that side
 *          runs, and to the other after that if a reader there may come, a repeat included. So the
 *          bytes of nested regions add up: a region has what its board counts, and what the
 *          regions around it keep over their gaps. */
#include "planners/recompute/recompute_priv.h"

static inline uint64_t bit(uint32_t i)
{
    return UINT64_C(1) << i;
}

static bool is_inside(const mpl_border *b, uint32_t group)
{
    return group >= b->from && group < b->until;
}

static bool in_region(const mpl_region *r, uint32_t group)
{
    return is_inside(&r->outer, group) && !is_inside(&r->inner, group);
}

bool mpl_border_enters(const mpl_stage_model *m, const mpl_border *b, uint32_t v)
{
    if (m->maker[v] >= b->from)
        return false;
    for (uint32_t i = m->user_begin[v]; i < m->user_begin[v + 1]; i++)
        if (is_inside(b, m->user[i]))
            return true;
    return false;
}

bool mpl_border_leaves(const mpl_stage_model *m, const mpl_border *b, uint32_t v)
{
    for (uint32_t i = m->user_begin[v]; i < m->user_begin[v + 1] && m->maker[v] < b->until; i++)
        if (m->user[i] >= b->until || (m->user[i] < b->from && m->may[m->user[i]]))
            return true;
    return m->stays[v] && m->maker[v] < b->until;
}

typedef struct builder {
    const mpl_stage_model *m;
    const mpl_region *r;
    mpl_board *b;
    bool full;
} builder;

/* ---- groups ---- */

/* The board's group that a group of the model is part of; MPL_NONE: it runs after them all. */
static uint32_t local(const builder *b, uint32_t group)
{
    const mpl_region *r = b->r;
    uint32_t first = r->outer.from > 0;

    if (group < r->outer.from)
        return 0;
    if (group < r->inner.from)
        return first + group - r->outer.from;
    if (group < r->inner.until)
        return b->b->gap;
    return group < r->outer.until ? first + (r->inner.from - r->outer.from) +
                                        (b->b->gap != MPL_NONE) + group - r->inner.until
                                  : MPL_NONE;
}

static void add_groups(builder *x)
{
    const mpl_stage_model *m = x->m;
    const mpl_region *r = x->r;
    mpl_board *b = x->b;
    uint32_t first = r->outer.from > 0, before = first + r->inner.from - r->outer.from;

    b->gap = r->inner.from < r->inner.until ? before : MPL_NONE;
    b->n = before + (b->gap != MPL_NONE) + r->outer.until - r->inner.until;
    x->full = b->n > MPL_BOARD_MOST;
    if (x->full)
        return;
    b->all = b->n == MPL_BOARD_MOST ? UINT64_MAX : bit(b->n) - 1;
    b->done = first;
    memset(b->group, 0xff, sizeof b->group);
    for (uint32_t i = r->outer.from; i < r->outer.until; i++)
        if (in_region(r, i)) {
            uint32_t at = local(x, i);

            b->group[at] = i;
            b->work[at] = m->work[i];
            b->inner[at] = m->inner[i];
            b->may |= m->may[i] ? bit(at) : 0;
            if (b->gap != MPL_NONE && i < r->inner.from)
                b->waits[b->gap] |= bit(at);
            else if (b->gap != MPL_NONE)
                b->waits[at] |= bit(b->gap);
        }
}

/* The group that makes v, through views; MPL_NONE: v is an input or weight. */
static uint32_t maker_of(const mpl_stage_model *m, mpl_value v)
{
    const mpl_graph *g = m->g;

    while (g->value_op[v] != MPL_NONE && m->group_of[g->value_op[v]] == MPL_NONE)
        v = g->op_in[g->op_in_begin[g->value_op[v]]];
    return g->value_op[v] == MPL_NONE ? MPL_NONE : m->group_of[g->value_op[v]];
}

/* The operations that must run before one of the region, and those after which it must not run
 * again. */
static void add_waits(builder *x, mpl_op op)
{
    const mpl_stage_model *m = x->m;
    mpl_board *b = x->b;
    uint32_t at = local(x, m->group_of[op]);

    for (uint32_t i = 0; i < mpl_op_n_in(m->g, op); i++) { /* updates wait for what they do not read
                                                            */
        mpl_value v = mpl_op_input(m->g, op, i);

        b->waits[at] |=
            v != MPL_NONE && maker_of(m, v) != MPL_NONE ? bit(local(x, maker_of(m, v))) : 0;
    }
    for (uint32_t i = m->reads.begin[op]; i < m->reads.begin[op + 1]; i++) {
        uint32_t maker = maker_of(m, m->reads.value[i]);
        mpl_op update = mpl_stage_update(m, op, m->reads.value[i]);
        uint32_t spoils = update != MPL_NONE ? local(x, m->group_of[update]) : MPL_NONE;

        b->waits[at] |= maker != MPL_NONE ? bit(local(x, maker)) : 0;
        b->spoiled_by[at] |= spoils != MPL_NONE ? bit(spoils) : 0;
    }
}

/* ---- lumps ---- */

/* Counts a lump that no group of the region makes or reads. */
static void pass_by(builder *x, uint32_t v, bool enters)
{
    const mpl_stage_model *m = x->m;
    const mpl_region *r = x->r;
    bool made_inside = m->maker[v] >= r->inner.from && m->maker[v] < r->inner.until;

    x->b->base[0] += enters ? m->bytes[v] : 0;
    if ((enters && mpl_border_leaves(m, &r->outer, v)) ||
        (made_inside && mpl_border_leaves(m, &r->inner, v)))
        x->b->base[1] += m->bytes[v];
}

static void add_lump(builder *x, uint32_t v, bool enters)
{
    const mpl_stage_model *m = x->m;
    const mpl_region *r = x->r;
    mpl_board *b = x->b;
    uint32_t at = b->n_lumps, maker = local(x, m->maker[v]);
    bool to_gap = b->gap != MPL_NONE && mpl_border_enters(m, &r->inner, v);
    bool stays = mpl_border_leaves(m, &r->outer, v);

    x->full = x->full || at == MPL_BOARD_MOST;
    if (x->full)
        return;
    b->n_lumps++;
    b->lump[at] = v;
    b->bytes[at] = m->bytes[v];
    b->maker[at] = maker;
    b->makes[maker] |= bit(at);
    b->there |= enters ? bit(at) : 0;
    b->passed |= to_gap || maker == b->gap ? bit(at) : 0;
    b->stays |= stays || m->stays[v] ? bit(at) : 0;
    if (m->fixed[v] || enters || maker == b->gap || to_gap || stays)
        b->fixed |= bit(at);
    else
        b->remakes[maker] |= bit(at);
    for (uint32_t i = m->user_begin[v]; i < m->user_begin[v + 1]; i++) {
        uint32_t user = m->user[i] >= r->outer.from ? local(x, m->user[i]) : MPL_NONE;

        if (user != MPL_NONE) {
            b->reads[user] |= bit(at);
            b->users[at] |= bit(user);
        }
    }
}

static void add_lumps(builder *x)
{
    const mpl_stage_model *m = x->m;
    const mpl_region *r = x->r;

    x->b->base[0] = x->b->base[1] = m->base;
    for (uint32_t v = 0; v < m->n_lumps && !x->full; v++) {
        bool enters = mpl_border_enters(m, &r->outer, v), touched = in_region(r, m->maker[v]);

        if (m->maker[v] >= r->outer.until || (m->maker[v] < r->outer.from && !enters))
            continue;
        for (uint32_t i = m->user_begin[v]; i < m->user_begin[v + 1]; i++)
            touched = touched || in_region(r, m->user[i]);
        if (touched)
            add_lump(x, v, enters);
        else
            pass_by(x, v, enters);
    }
}

static void add_overwritable(builder *x, uint32_t at)
{
    const mpl_stage_model *m = x->m;
    uint32_t group = x->b->group[at];

    for (uint32_t r = m->read_begin[group]; r < m->read_begin[group + 1]; r++)
        for (uint32_t v = 0; v < x->b->n_lumps && m->over[r]; v++)
            x->b->overwritable[at] |= x->b->lump[v] == m->read[r] ? bit(v) : 0;
}

void mpl_board_make(const mpl_stage_model *m, const mpl_region *region, mpl_board *out)
{
    builder x = {.m = m, .r = region, .b = out};

    memset(out, 0, sizeof *out); /* its padding too: boards are compared */
    add_groups(&x);
    if (!x.full)
        add_lumps(&x);
    if (x.full) {
        out->n = 0;
        return;
    }
    for (mpl_op op = 0; op < m->g->n_ops; op++)
        if (m->group_of[op] != MPL_NONE && in_region(region, m->group_of[op]))
            add_waits(&x, op);
    for (uint32_t i = 0; i < out->n; i++)
        if (out->group[i] != MPL_NONE)
            add_overwritable(&x, i);
}
