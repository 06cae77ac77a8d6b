/* unroll.c -- walks the program of a graph with control flow without executing it. See unroll.h. */
#include "harness/view/unroll.h"

#include "runtime/exec/needs.h"

enum { MOST_ROUNDS = 8, MOST_WITHIN = 3 };

typedef struct spot {
    mpl_buffer buffer; /* MPL_NONE: not planned */
    uint64_t offset;   /* in the arena */
} spot;

typedef struct walker {
    mpl_ctx *ctx;
    const mpl_graph *g;
    const mpl_problem *p;
    const mpl_value_map *map;
    const mpl_plan *plan;
    mpl_program *program;
    mpl_needs *needs;
    mpl_value *holder; /* [n_values] */
    uint32_t *round;   /* [n_blocks] current round; after a loop: its number of rounds */
    uint32_t *rounds;  /* [n_blocks] number of rounds to show */
    uint32_t *branch;  /* [n_ops] current branch of a case */
    uint32_t *open;    /* [n_values] box to extend; MPL_NONE */
    mpl_unrolled *out;
} walker;

static uint32_t least_common(uint32_t a, uint32_t b)
{
    uint32_t x = a, y = b;

    while (y != 0) {
        uint32_t rest = x % y;

        x = y, y = rest;
    }
    return a / x > MOST_ROUNDS ? MOST_ROUNDS : a / x * b;
}

static void count_rounds(walker *self)
{
    const mpl_places *places = self->map->places;
    const mpl_graph *g = self->g;

    for (uint32_t b = 1; b < g->n_blocks; b++) {
        uint32_t first = 0, period = 1, most = g->block_parent[b] == 0 ? MOST_ROUNDS : MOST_WITHIN;
        mpl_op op = g->block_owner[b];

        for (uint32_t i = 0; i < places->n; i++) {
            const mpl_place *place = &places->place[i];

            if (place->kind != MPL_PLACE_CYCLE || place->of != b)
                continue;
            first = place->n_first > first ? place->n_first : first;
            period = least_common(period, place->n - place->n_first);
        }
        if (g->op_kind[op] == MPL_OP_while && mpl_while_most_rounds(g, op) >= 0 &&
            mpl_while_most_rounds(g, op) < most)
            most = (uint32_t)mpl_while_most_rounds(g, op);
        self->rounds[b] = first + period < most ? first + period : most > 0 ? most : 1;
    }
}

static spot spot_of_buffer(const walker *self, mpl_buffer b)
{
    return b == MPL_NONE || self->p->pool[b] != 0 ? (spot){MPL_NONE, 0}
                                                  : (spot){b, self->plan->offset[b]};
}

/* The place of a value in the current round and branch. */
static spot spot_of(walker *self, mpl_value v)
{
    const mpl_places *places = self->map->places;
    uint32_t id = places->value_place[v], behind = 0;
    uint64_t offset = 0;
    spot found;

    if (id == MPL_NONE)
        return spot_of_buffer(self, self->map->value_buffer[v]);
    for (;;) {
        const mpl_place *place = &places->place[id];
        const uint32_t *item = places->item + place->begin;

        if (place->kind == MPL_PLACE_BUFFER || place->kind == MPL_PLACE_PINNED) {
            found = spot_of_buffer(self, place->kind == MPL_PLACE_BUFFER ? place->of : MPL_NONE);
            break;
        }
        if (place->kind == MPL_PLACE_CYCLE) {
            uint32_t round =
                self->round[place->of] - (behind == place->of && self->round[place->of] > 0);

            id = item[round < place->n_first ? round
                                             : place->n_first + (round - place->n_first) %
                                                                    (place->n - place->n_first)];
        } else if (place->kind == MPL_PLACE_FINAL) {
            behind = mpl_op_first_body(self->g, place->of);
            id = item[self->round[behind] > 0];
        } else if (place->kind == MPL_PLACE_BRANCH) {
            id = item[self->branch[place->of] < place->n ? self->branch[place->of] : place->n - 1];
        } else {
            uint32_t most =
                (uint32_t)mpl_while_most_rounds(self->g, self->g->block_owner[place->of]);

            offset += place->bytes * (place->reversed ? most - 1 - self->round[place->of]
                                                      : self->round[place->of]);
            id = item[0];
        }
    }
    found.offset += offset;
    return found;
}

/* Shows a value, or a workspace, at `at` in the newest column. */
static mpl_status show(walker *self, mpl_value v, spot at, uint64_t bytes)
{
    mpl_unrolled *out = self->out;
    uint32_t column = out->n_columns - 1;
    mpl_box *last = v != MPL_NONE && self->open[v] != MPL_NONE ? &out->box[self->open[v]] : NULL;

    if (at.buffer == MPL_NONE || bytes == 0)
        return MPL_OK;
    if (last != NULL && last->to >= column && last->offset == at.offset) {
        last->to = column + 1;
        return MPL_OK;
    }
    MPL_PASS(mpl_reserve(self->ctx, out->box, out->box_cap, (size_t)out->n_boxes + 1));
    out->box[out->n_boxes] = (mpl_box){column, column + 1, at.offset, bytes, v, at.buffer};
    if (v != MPL_NONE)
        self->open[v] = out->n_boxes;
    out->n_boxes++;
    return MPL_OK;
}

/* Adds a column: values needed at the step, and its results. */
static mpl_status add_column(walker *self, uint32_t step)
{
    const mpl_graph *g = self->g;
    mpl_unrolled *out = self->out;
    mpl_op op = self->program->kind[step] == MPL_STEP_OP ? self->program->of[step] : MPL_NONE;
    uint32_t point = op != MPL_NONE && g->op_kind[op] == MPL_OP_case
                         ? mpl_needs_entry(self->needs, step + 1)
                         : step;

    MPL_PASS(mpl_reserve(self->ctx, out->step, out->step_cap, (size_t)out->n_columns + 1));
    out->step[out->n_columns++] = step;
    for (mpl_value v = 0; v < g->n_values; v++)
        if (mpl_needs_has(self->needs, point, v))
            MPL_PASS(show(self, v, spot_of(self, v), g->value_bytes[v]));
    if (op == MPL_NONE)
        return MPL_OK;
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        if (g->op_out[i] != MPL_NONE && self->holder[g->op_out[i]] == g->op_out[i])
            MPL_PASS(show(self, g->op_out[i], spot_of(self, g->op_out[i]),
                          g->value_bytes[g->op_out[i]]));
    if (self->map->op_workspace[op] != MPL_NONE)
        MPL_PASS(show(self, MPL_NONE, spot_of_buffer(self, self->map->op_workspace[op]),
                      self->p->bytes[self->map->op_workspace[op]]));
    return MPL_OK;
}

static mpl_status add_mark(walker *self, uint32_t block, uint32_t number)
{
    mpl_unrolled *out = self->out;

    MPL_PASS(mpl_reserve(self->ctx, out->mark, out->mark_cap, (size_t)out->n_marks + 1));
    out->mark[out->n_marks++] = (mpl_mark){out->n_columns, block, number};
    return MPL_OK;
}

static uint32_t number_of_branch(const mpl_graph *g, uint32_t b)
{
    uint32_t k = 0;

    while (g->op_body[g->op_body_begin[g->block_owner[b]] + k] != b)
        k++;
    return k;
}

/* Walks all steps, with rounds and branches in sequence. */
static mpl_status walk(walker *self)
{
    const mpl_graph *g = self->g;

    for (uint32_t step = 0; step < self->program->n_steps; step++) {
        uint32_t of = self->program->of[step];
        bool loop = self->program->kind[step] != MPL_STEP_OP &&
                    g->op_kind[g->block_owner[of]] == MPL_OP_while;

        if (self->program->kind[step] == MPL_STEP_BEGIN && loop) {
            self->round[of] = 0;
            MPL_PASS(add_mark(self, of, 0));
        } else if (self->program->kind[step] == MPL_STEP_BEGIN) {
            self->branch[g->block_owner[of]] = number_of_branch(g, of);
            MPL_PASS(add_mark(self, of, number_of_branch(g, of)));
        }
        MPL_PASS(add_column(self, step));
        if (self->program->kind[step] != MPL_STEP_END || !loop ||
            ++self->round[of] == self->rounds[of])
            continue;
        MPL_PASS(add_mark(self, of, self->round[of]));
        step = self->program->begin_step[of];
        MPL_PASS(add_column(self, step));
    }
    return MPL_OK;
}

mpl_status mpl_unroll(mpl_ctx *ctx, const mpl_graph *g, const mpl_op *order, const mpl_problem *p,
                      const mpl_value_map *map, const mpl_plan *plan, mpl_unrolled *out)
{
    mpl_status st = MPL_OK;
    mpl_unrolled unrolled = {0};
    walker w = {.ctx = ctx, .g = g, .p = p, .map = map, .plan = plan, .out = &unrolled};

    MPL_TRY(mpl_program_new(ctx, g, order, &w.program));
    MPL_TRY(mpl_new(ctx, w.holder, g->n_values));
    MPL_TRY(mpl_new_each(ctx, g->n_blocks, w.round, w.rounds));
    MPL_TRY(mpl_new(ctx, w.branch, g->n_ops));
    MPL_TRY(mpl_new(ctx, w.open, g->n_values));
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = map->value_root[v];

        w.holder[v] = map->value_buffer[root] != map->value_buffer[v] ? v : root;
        w.open[v] = MPL_NONE;
    }
    MPL_TRY(mpl_needs_new(ctx, g, w.program, w.holder, &w.needs));
    count_rounds(&w);
    MPL_TRY(walk(&w));
    *out = unrolled;
    unrolled = (mpl_unrolled){0};
out:
    mpl_unrolled_fini(ctx, &unrolled);
    mpl_program_free(ctx, w.program);
    mpl_needs_free(ctx, w.needs);
    mpl_free_each(ctx, w.holder, w.round, w.rounds, w.branch, w.open);
    return st;
}

void mpl_unrolled_fini(mpl_ctx *ctx, mpl_unrolled *unrolled)
{
    mpl_free_each(ctx, unrolled->step, unrolled->box, unrolled->mark);
    *unrolled = (mpl_unrolled){0};
}
