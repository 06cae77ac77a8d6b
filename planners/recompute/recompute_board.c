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

static bool is_inside(const mpl_border *border, uint32_t group)
{
    return group >= border->from && group < border->until;
}

static bool in_region(const mpl_region *region, uint32_t group)
{
    return is_inside(&region->outer, group) && !is_inside(&region->inner, group);
}

bool mpl_border_enters(const mpl_stage_model *model, const mpl_border *border, uint32_t v)
{
    if (model->maker[v] >= border->from)
        return false;
    for (uint32_t i = model->user_begin[v]; i < model->user_begin[v + 1]; i++)
        if (is_inside(border, model->user[i]))
            return true;
    return false;
}

bool mpl_border_leaves(const mpl_stage_model *model, const mpl_border *border, uint32_t v)
{
    for (uint32_t i = model->user_begin[v];
         i < model->user_begin[v + 1] && model->maker[v] < border->until; i++)
        if (model->user[i] >= border->until ||
            (model->user[i] < border->from && model->may[model->user[i]]))
            return true;
    return model->stays[v] && model->maker[v] < border->until;
}

typedef struct builder {
    const mpl_stage_model *model;
    const mpl_region *region;
    mpl_board *board;
    bool full;
} builder;

/* ---- groups ---- */

/* The board's group that a group of the model is part of; MPL_NONE: it runs after them all. */
static uint32_t local(const builder *self, uint32_t group)
{
    const mpl_region *region = self->region;
    uint32_t first = region->outer.from > 0;

    if (group < region->outer.from)
        return 0;
    if (group < region->inner.from)
        return first + group - region->outer.from;
    if (group < region->inner.until)
        return self->board->gap;
    return group < region->outer.until
               ? first + (region->inner.from - region->outer.from) +
                     (self->board->gap != MPL_NONE) + group - region->inner.until
               : MPL_NONE;
}

static void add_groups(builder *self)
{
    const mpl_stage_model *model = self->model;
    const mpl_region *region = self->region;
    mpl_board *board = self->board;
    uint32_t first = region->outer.from > 0,
             before = first + region->inner.from - region->outer.from;

    board->gap = region->inner.from < region->inner.until ? before : MPL_NONE;
    board->n = before + (board->gap != MPL_NONE) + region->outer.until - region->inner.until;
    self->full = board->n > MPL_BOARD_MOST;
    if (self->full)
        return;
    board->all = board->n == MPL_BOARD_MOST ? UINT64_MAX : bit(board->n) - 1;
    board->done = first;
    memset(board->group, 0xff, sizeof board->group);
    for (uint32_t i = region->outer.from; i < region->outer.until; i++)
        if (in_region(region, i)) {
            uint32_t at = local(self, i);

            board->group[at] = i;
            board->work[at] = model->work[i];
            board->inner[at] = model->inner[i];
            board->may |= model->may[i] ? bit(at) : 0;
            if (board->gap != MPL_NONE && i < region->inner.from)
                board->waits[board->gap] |= bit(at);
            else if (board->gap != MPL_NONE)
                board->waits[at] |= bit(board->gap);
        }
}

/* The group that makes v, through views; MPL_NONE: v is an input or weight. */
static uint32_t maker_of(const mpl_stage_model *model, mpl_value v)
{
    const mpl_graph *g = model->g;

    while (g->value_op[v] != MPL_NONE && model->group_of[g->value_op[v]] == MPL_NONE)
        v = g->op_in[g->op_in_begin[g->value_op[v]]];
    return g->value_op[v] == MPL_NONE ? MPL_NONE : model->group_of[g->value_op[v]];
}

/* The operations that must run before one of the region, and those after which it must not run
 * again. */
static void add_waits(builder *self, mpl_op op)
{
    const mpl_stage_model *model = self->model;
    mpl_board *board = self->board;
    uint32_t at = local(self, model->group_of[op]);

    for (uint32_t i = 0; i < mpl_op_n_in(model->g, op); i++) { /* updates wait for what they do not
                                                                * read
                                                                */
        mpl_value v = mpl_op_input(model->g, op, i);

        board->waits[at] |= v != MPL_NONE && maker_of(model, v) != MPL_NONE
                                ? bit(local(self, maker_of(model, v)))
                                : 0;
    }
    for (uint32_t i = model->reads.begin[op]; i < model->reads.begin[op + 1]; i++) {
        uint32_t maker = maker_of(model, model->reads.value[i]);
        mpl_op update = mpl_stage_update(model, op, model->reads.value[i]);
        uint32_t spoils = update != MPL_NONE ? local(self, model->group_of[update]) : MPL_NONE;

        board->waits[at] |= maker != MPL_NONE ? bit(local(self, maker)) : 0;
        board->spoiled_by[at] |= spoils != MPL_NONE ? bit(spoils) : 0;
    }
}

/* ---- lumps ---- */

/* Counts a lump that no group of the region makes or reads. */
static void pass_by(builder *self, uint32_t v, bool enters)
{
    const mpl_stage_model *model = self->model;
    const mpl_region *region = self->region;
    bool made_inside =
        model->maker[v] >= region->inner.from && model->maker[v] < region->inner.until;

    self->board->base[0] += enters ? model->bytes[v] : 0;
    if ((enters && mpl_border_leaves(model, &region->outer, v)) ||
        (made_inside && mpl_border_leaves(model, &region->inner, v)))
        self->board->base[1] += model->bytes[v];
}

static void add_lump(builder *self, uint32_t v, bool enters)
{
    const mpl_stage_model *model = self->model;
    const mpl_region *region = self->region;
    mpl_board *board = self->board;
    uint32_t at = board->n_lumps, maker = local(self, model->maker[v]);
    bool to_gap = board->gap != MPL_NONE && mpl_border_enters(model, &region->inner, v);
    bool stays = mpl_border_leaves(model, &region->outer, v);

    self->full = self->full || at == MPL_BOARD_MOST;
    if (self->full)
        return;
    board->n_lumps++;
    board->lump[at] = v;
    board->bytes[at] = model->bytes[v];
    board->maker[at] = maker;
    board->makes[maker] |= bit(at);
    board->there |= enters ? bit(at) : 0;
    board->passed |= to_gap || maker == board->gap ? bit(at) : 0;
    board->stays |= stays || model->stays[v] ? bit(at) : 0;
    if (model->fixed[v] || enters || maker == board->gap || to_gap || stays)
        board->fixed |= bit(at);
    else
        board->remakes[maker] |= bit(at);
    for (uint32_t i = model->user_begin[v]; i < model->user_begin[v + 1]; i++) {
        uint32_t user =
            model->user[i] >= region->outer.from ? local(self, model->user[i]) : MPL_NONE;

        if (user != MPL_NONE) {
            board->reads[user] |= bit(at);
            board->users[at] |= bit(user);
        }
    }
}

static void add_lumps(builder *self)
{
    const mpl_stage_model *model = self->model;
    const mpl_region *region = self->region;

    self->board->base[0] = self->board->base[1] = model->base;
    for (uint32_t v = 0; v < model->n_lumps && !self->full; v++) {
        bool enters = mpl_border_enters(model, &region->outer, v),
             touched = in_region(region, model->maker[v]);

        if (model->maker[v] >= region->outer.until ||
            (model->maker[v] < region->outer.from && !enters))
            continue;
        for (uint32_t i = model->user_begin[v]; i < model->user_begin[v + 1]; i++)
            touched = touched || in_region(region, model->user[i]);
        if (touched)
            add_lump(self, v, enters);
        else
            pass_by(self, v, enters);
    }
}

static void add_overwritable(builder *self, uint32_t at)
{
    const mpl_stage_model *model = self->model;
    uint32_t group = self->board->group[at];

    for (uint32_t r = model->read_begin[group]; r < model->read_begin[group + 1]; r++)
        for (uint32_t v = 0; v < self->board->n_lumps && model->over[r]; v++)
            self->board->overwritable[at] |= self->board->lump[v] == model->read[r] ? bit(v) : 0;
}

void mpl_board_make(const mpl_stage_model *model, const mpl_region *region, mpl_board *out)
{
    builder x = {.model = model, .region = region, .board = out};

    memset(out, 0, sizeof *out); /* its padding too: boards are compared */
    add_groups(&x);
    if (!x.full)
        add_lumps(&x);
    if (x.full) {
        out->n = 0;
        return;
    }
    for (mpl_op op = 0; op < model->g->n_ops; op++)
        if (model->group_of[op] != MPL_NONE && in_region(region, model->group_of[op]))
            add_waits(&x, op);
    for (uint32_t i = 0; i < out->n; i++)
        if (out->group[i] != MPL_NONE)
            add_overwritable(&x, i);
}
