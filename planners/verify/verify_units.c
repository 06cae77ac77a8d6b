/* verify_units.c -- checks that units which may run at the same time keep apart in memory. See
 * mpl_verify_places in verify.h.
 *
 * Idea     A unit is a top-level operation with all of its blocks. Of two units that are not
 *          ordered, neither may write what the other reads or writes. Then unordered units commute,
 *          so every order and every concurrent run has the effect of the one order that was checked
 *          step by step.
 * Source   this project; the argument is that of traces of independent actions (Mazurkiewicz,
 *          1977).
 * Cost     O(units * reads / 64 + pairs of touches that overlap). */
#include "planners/verify/verify_flow_priv.h"

#include <stdlib.h>

/* A unit's access to one range of memory. */
typedef struct touch {
    mpl_flow_spot spot;
    mpl_op unit;
    mpl_value value; /* MPL_NONE: a staging buffer or a workspace */
    bool writes;
} touch;

typedef struct units {
    mpl_flow_map *map;
    const mpl_graph *g;
    mpl_op *unit;    /* [n_ops] the top-level operation that it is or is in */
    uint32_t words;  /* of a set of operations */
    uint64_t *later; /* [n_ops * words] units that can only run after it */
    touch *touch;
    size_t n, room;
    mpl_flow_spots spots; /* scratch */
} units;

/* ---- order of the units ---- */

static bool is_later(const units *self, mpl_op early, mpl_op late)
{
    return (self->later[(size_t)early * self->words + late / 64] >> (late % 64) & 1) != 0;
}

/* `reader` reads v in one of its operations. */
static void note_read(units *self, mpl_value v, mpl_op reader)
{
    mpl_op maker = v != MPL_NONE && self->g->value_block[v] == 0 ? self->g->value_op[v] : MPL_NONE;

    if (maker != MPL_NONE)
        self->later[(size_t)maker * self->words + reader / 64] |= UINT64_C(1) << (reader % 64);
}

/* Of two units of one stream, that of the later step runs later. */
static void keep_streams(units *self, const uint32_t *stream, const uint32_t *step_of)
{
    const mpl_graph *g = self->g;

    for (mpl_op a = 0; a < g->n_ops; a++)
        for (mpl_op b = 0; b < g->n_ops && g->op_block[a] == 0; b++)
            if (g->op_block[b] == 0 && stream[a] == stream[b] && step_of[a] < step_of[b])
                self->later[(size_t)a * self->words + b / 64] |= UINT64_C(1) << (b % 64);
}

static mpl_status order_units(units *self)
{
    const mpl_graph *g = self->g;

    self->words = g->n_ops / 64 + 1;
    MPL_PASS(mpl_new(self->map->ctx, self->unit, g->n_ops));
    MPL_PASS(mpl_new(self->map->ctx, self->later, (size_t)g->n_ops * self->words));
    for (mpl_op op = 0; op < g->n_ops; op++) {
        for (self->unit[op] = op; g->op_block[self->unit[op]] != 0;)
            self->unit[op] = g->block_owner[g->op_block[self->unit[op]]];
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
            note_read(self, g->op_in[i], self->unit[op]);
    }
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = g->block_result_begin[b];
             i < g->block_result_begin[b] + g->block_n_results[b]; i++)
            note_read(self, g->block_result[i], self->unit[g->block_owner[b]]);
    if (self->map->map->op_stream != NULL)
        keep_streams(self, self->map->map->op_stream, self->map->map->step_of);
    for (mpl_op b = 0; b < g->n_ops; b++) /* Warshall's: ids need not follow the order of streams */
        for (mpl_op a = 0; a < g->n_ops; a++)
            for (uint32_t w = 0; is_later(self, a, b) && w < self->words; w++)
                self->later[(size_t)a * self->words + w] |=
                    self->later[(size_t)b * self->words + w];
    return MPL_OK;
}

/* ---- memory touched by each unit ---- */

static mpl_status add(units *self, mpl_op op, mpl_value v, mpl_where w, uint64_t bytes, bool writes)
{
    self->spots.n = 0;
    MPL_PASS(mpl_where_spots(self->map, w, bytes, &self->spots));
    MPL_PASS(mpl_reserve(self->map->ctx, self->touch, self->room, self->n + self->spots.n));
    for (size_t i = 0; i < self->spots.n; i++)
        self->touch[self->n++] = (touch){self->spots.at[i], self->unit[op], v, writes};
    return MPL_OK;
}

static mpl_status add_value(units *self, mpl_op op, mpl_value v, bool writes)
{
    return v != MPL_NONE
               ? add(self, op, v, mpl_flow_where(self->map, v), self->g->value_bytes[v], writes)
               : MPL_OK;
}

static mpl_status add_buffer(units *self, mpl_op op, mpl_buffer b)
{
    mpl_where w = {.kind = MPL_WHERE_BUFFER, .id = b};

    return b != MPL_NONE ? add(self, op, MPL_NONE, w, self->map->p->bytes[b], true) : MPL_OK;
}

/* Writes of a loop itself: round numbers, copied slices and carried values, rows. */
static mpl_status add_loop(units *self, mpl_op op)
{
    const mpl_graph *g = self->g;
    const mpl_places *places = self->map->map->places;
    uint32_t body = mpl_op_first_body(g, op), n = mpl_n_carried(g, op);
    const mpl_value *param = g->block_param + g->block_param_begin[body];

    MPL_PASS(add_value(self, op, param[0], true));
    for (uint32_t i = 1; i < g->block_n_params[body]; i++) {
        mpl_where w = mpl_flow_where(self->map, param[i]);
        bool again = i <= n && places->result_copied[g->block_result_begin[body] + i];

        if (!again && !places->in_copied[g->op_in_begin[op] + 1 + i])
            continue;
        if (!again && i <= n)
            MPL_PASS(mpl_where_in_round(self->map, &w, body, 0));
        MPL_PASS(add(self, op, param[i], w, g->value_bytes[param[i]], true));
    }
    for (uint32_t i = g->op_out_begin[op] + n; i < g->op_out_begin[op + 1]; i++)
        MPL_PASS(add_value(self, op, g->op_out[i], true));
    return add_buffer(self, op, places->staging[body]);
}

/* Writes of a case itself: copied outputs. */
static mpl_status add_case(units *self, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    const mpl_places *places = self->map->map->places;
    uint32_t n = g->op_body_begin[op + 1] - g->op_body_begin[op];

    for (uint32_t k = 0; k <= n; k++)
        for (uint32_t i = 0; i < mpl_op_n_out(g, op); i++) {
            uint32_t bypass = g->op_in_begin[op] + 1 + i;
            bool copied =
                k == n ? bypass < g->op_in_begin[op + 1] && places->in_copied[bypass]
                       : places->result_copied
                             [g->block_result_begin[g->op_body[g->op_body_begin[op] + k]] + i];

            self->map->taken[op] = k + 1;
            st = copied ? add_value(self, op, mpl_op_output(g, op, i), true) : MPL_OK;
            self->map->taken[op] = 0;
            MPL_TRY(st);
        }
out:
    return st;
}

static mpl_status list_touches(units *self)
{
    const mpl_graph *g = self->g;
    const mpl_buffer *workspace = self->map->map->op_workspace;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        bool control = (mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) != 0;

        if (!control && mpl_flow_idle(self->map, op))
            continue;
        for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op] + mpl_n_read(g, op); i++)
            MPL_PASS(add_value(self, op, g->op_in[i], false));
        for (uint32_t i = g->op_out_begin[op]; !control && i < g->op_out_begin[op + 1]; i++)
            if (g->op_out[i] != MPL_NONE) /* outputs of a view lie in their input */
                MPL_PASS(add_value(self, op, g->op_out[i],
                                   mpl_flow_holder(self->map, g->op_out[i]) == g->op_out[i]));
        if (workspace != NULL)
            MPL_PASS(add_buffer(self, op, workspace[op]));
        if (g->op_kind[op] == MPL_OP_while)
            MPL_PASS(add_loop(self, op));
        if (g->op_kind[op] == MPL_OP_case)
            MPL_PASS(add_case(self, op));
    }
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = g->block_result_begin[b];
             i < g->block_result_begin[b] + g->block_n_results[b]; i++)
            MPL_PASS(add_value(self, g->block_owner[b], g->block_result[i], false));
    return MPL_OK;
}

/* ---- overlaps ---- */

static int by_place(const void *left, const void *right)
{
    const touch *x = left, *y = right;

    if (x->spot.arena != y->spot.arena)
        return x->spot.arena < y->spot.arena ? -1 : 1;
    if (x->spot.begin != y->spot.begin)
        return x->spot.begin < y->spot.begin ? -1 : 1;
    if (x->spot.end != y->spot.end)
        return x->spot.end < y->spot.end ? -1 : 1;
    if (x->unit != y->unit)
        return x->unit < y->unit ? -1 : 1;
    if (x->writes != y->writes)
        return x->writes ? -1 : 1; /* writes first: they cover reads of the same range */
    return (x->value > y->value) - (x->value < y->value);
}

/* Keeps the first of a unit's accesses to each range. */
static void thin(units *self)
{
    size_t n = 0;

    for (size_t i = 0; i < self->n; i++) {
        const touch *last = n > 0 ? &self->touch[n - 1] : NULL;

        if (last == NULL || last->unit != self->touch[i].unit ||
            last->spot.arena != self->touch[i].spot.arena ||
            last->spot.begin != self->touch[i].spot.begin ||
            last->spot.end != self->touch[i].spot.end)
            self->touch[n++] = self->touch[i];
    }
    self->n = n;
}

static const char *value_name(const units *self, const touch *t)
{
    return t->value != MPL_NONE ? self->g->value_name[t->value] : "what it puts aside";
}

static mpl_status check_pair(const units *self, const touch *a, const touch *b)
{
    if (a->unit == b->unit || (!a->writes && !b->writes) || is_later(self, a->unit, b->unit) ||
        is_later(self, b->unit, a->unit))
        return MPL_OK;
    return MPL_ERROR(
        self->map->ctx, MPL_EINVALID,
        "'%.80s' %s '%.80s', and '%.80s', which need not run before or behind it, %s '%.80s' "
        "at the "
        "same bytes",
        self->g->op_name[a->unit], a->writes ? "writes" : "reads", value_name(self, a),
        self->g->op_name[b->unit], b->writes ? "writes" : "reads", value_name(self, b));
}

mpl_status mpl_flow_units_apart(mpl_flow_map *map)
{
    mpl_status st = MPL_OK;
    units u = {.map = map, .g = map->g};

    MPL_TRY(order_units(&u));
    MPL_TRY(list_touches(&u));
    if (u.n > 0)
        qsort(u.touch, u.n, sizeof *u.touch, by_place);
    thin(&u);
    for (size_t i = 0; i < u.n; i++)
        for (size_t k = i + 1; k < u.n && u.touch[k].spot.arena == u.touch[i].spot.arena &&
                               u.touch[k].spot.begin < u.touch[i].spot.end;
             k++)
            MPL_TRY(check_pair(&u, &u.touch[i], &u.touch[k]));
out:
    mpl_free_each(map->ctx, u.unit, u.later, u.touch, u.spots.at);
    return st;
}
