/* keep_state.c -- see keep_state.h. */
#include "graphs/passes/keep_state.h"

#include "graphs/ir/strided.h"
#include "graphs/passes/copy.h"

typedef struct keeping {
    mpl_ctx *ctx;
    mpl_graph *g, *to;
    uint32_t n;
    mpl_kept *state;
    mpl_value *map;   /* [n_values] */
    mpl_value *whole; /* [n] in `to`: the input of the whole state; MPL_NONE: none yet */
    mpl_value *made;  /* [n] in `to`: what replaces the output; MPL_NONE: its own copy does */
    char *name;       /* room for the longest name and a suffix */
} keeping;

static bool is_smaller(const keeping *self, uint32_t s, mpl_value v)
{
    return v != MPL_NONE && !mpl_shape_equal(&self->g->value_shape[v], &self->state[s].shape);
}

static bool is_moved(const keeping *self, uint32_t s)
{
    return self->state[s].after != MPL_NONE &&
           (self->state[s].copied || is_smaller(self, s, self->state[s].after));
}

/* Whether `op` appends rows to the input of state s and makes the whole state of it. */
static bool grows(const keeping *self, uint32_t s, mpl_op op)
{
    const mpl_kept *kept = &self->state[s];

    return self->g->op_kind[op] == MPL_OP_concat && mpl_op_n_in(self->g, op) == 2 &&
           mpl_op_input(self->g, op, 0) == kept->before &&
           mpl_op_input(self->g, op, 1) != kept->before &&
           mpl_op_output(self->g, op, 0) == kept->after && is_smaller(self, s, kept->before) &&
           !is_smaller(self, s, kept->after);
}

static uint32_t grown_by(const keeping *self, mpl_op op)
{
    uint32_t s = 0;

    while (s < self->n && !grows(self, s, op))
        s++;
    return s;
}

static const char *fresh_name(keeping *self, const char *of, const char *end)
{
    uint32_t n = 2;

    sprintf(self->name, "%s.%s", of, end);
    while (mpl_graph_find(self->to, self->name) != MPL_NONE ||
           mpl_graph_find(self->g, self->name) != MPL_NONE)
        sprintf(self->name, "%s.%s%" PRIu32, of, end, n++);
    return self->name;
}

/* Adds an access to, or an assign of, the rows of state s from `first` on along `axis`. */
static mpl_status add_box(keeping *self, mpl_op_kind kind, uint32_t s, const mpl_shape *rows,
                          uint32_t axis, int64_t first, mpl_value part, const char *name,
                          mpl_value *out)
{
    mpl_strided box = mpl_strided_all(&self->state[s].shape);
    mpl_value in[] = {self->whole[s], part};

    box.offset = axis < rows->rank ? first * box.stride[axis] : 0;
    box.shape = *rows;
    return mpl_graph_add_op(self->ctx, self->to, kind, name, part == MPL_NONE ? 1 : 2, in, 3,
                            (const mpl_attr[]){MPL_INTS(dims, rows->rank, box.shape.dim),
                                               MPL_INTS(strides, rows->rank, box.stride),
                                               MPL_INT(offset, box.offset)},
                            1, &name, out);
}

/* Whether something but the concat that grows it reads v, the input of state s. */
static bool is_read_as_rows(const keeping *self, uint32_t s, mpl_value v)
{
    const mpl_graph *g = self->g;

    for (uint32_t i = g->value_use_begin[v]; i < g->value_use_begin[v + 1]; i++)
        if (!grows(self, s, g->value_use[i]))
            return true;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->output[i] == v)
            return true;
    return false;
}

static mpl_status add_value(keeping *self, mpl_value v, bool inside)
{
    const mpl_graph *g = self->g;
    uint32_t s = 0;

    while (s < self->n && self->state[s].before != v)
        s++;
    if (s == self->n || !is_smaller(self, s, v)) {
        MPL_PASS(mpl_copy_value(self->ctx, self->g, v, self->to, &self->map[v]));
        if (s < self->n)
            self->whole[s] = self->map[v];
        return MPL_OK;
    }
    if (inside)
        return MPL_REFUSE(self->ctx, "graph '%s': input '%s' stands inside a block", g->name,
                          g->value_name[v]);
    MPL_PASS(mpl_graph_add_value(self->ctx, self->to, g->value_name[v], MPL_INPUT,
                                 (mpl_type)g->value_type[v], &self->state[s].shape,
                                 &self->whole[s]));
    if (is_read_as_rows(self, s, v))
        MPL_PASS(add_box(self, MPL_OP_access, s, &g->value_shape[v], 0, 0, MPL_NONE,
                         fresh_name(self, g->value_name[v], "rows"), &self->map[v]));
    return MPL_OK;
}

/* The concat that grows state s writes the rows into the state instead. */
static mpl_status add_growth(keeping *self, mpl_op op, uint32_t s)
{
    const mpl_graph *g = self->g;
    mpl_value rows = mpl_op_input(g, op, 1), out = mpl_op_output(g, op, 0);
    const mpl_shape *old = &g->value_shape[self->state[s].before];
    int64_t axis = mpl_attr_int(g, op, MPL_ATTR_axis, 0);

    axis += axis < 0 ? old->rank : 0;
    return add_box(self, MPL_OP_assign, s, &g->value_shape[rows], (uint32_t)axis, old->dim[axis],
                   self->map[rows], g->value_name[out], &self->map[out]);
}

static mpl_status add_copies(keeping *self)
{
    const mpl_graph *g = self->g;

    for (uint32_t s = 0; s < self->n; s++) {
        mpl_value v = self->state[s].after;

        if (!is_moved(self, s))
            continue;
        if (self->whole[s] == MPL_NONE)
            MPL_PASS(mpl_graph_add_value(
                self->ctx, self->to, fresh_name(self, self->state[s].name, "before"), MPL_INPUT,
                (mpl_type)g->value_type[v], &self->state[s].shape, &self->whole[s]));
        MPL_PASS(add_box(self, MPL_OP_assign, s, &g->value_shape[v], 0, 0, self->map[v],
                         fresh_name(self, g->value_name[v], "kept"), &self->made[s]));
        self->state[s].copied_bytes += g->value_bytes[v];
    }
    return MPL_OK;
}

/* Outputs in their order; one that is copied into states is what lies there. */
static mpl_status add_outputs(keeping *self)
{
    for (uint32_t i = 0; i < self->g->n_outputs; i++) {
        mpl_value v = self->g->output[i];
        bool moved = false;

        for (uint32_t s = 0; s < self->n; s++)
            if (self->state[s].after == v && self->made[s] != MPL_NONE) {
                MPL_PASS(mpl_graph_add_output(self->ctx, self->to, self->made[s]));
                moved = true;
            }
        if (!moved)
            MPL_PASS(mpl_graph_add_output(self->ctx, self->to, self->map[v]));
    }
    return MPL_OK;
}

static mpl_status add_all(keeping *self)
{
    mpl_status st = MPL_OK;
    mpl_walk walk = mpl_walk_begin();
    mpl_item item;
    uint32_t *block = NULL, depth = 0, s;

    MPL_TRY(mpl_new(self->ctx, block, self->g->n_blocks));
    while ((item = mpl_walk_next(self->g, &walk)) != MPL_ITEM_END) {
        if (item == MPL_ITEM_VALUE) {
            MPL_TRY(add_value(self, walk.value, depth > 0));
        } else if (item == MPL_ITEM_OPEN) {
            MPL_TRY(mpl_copy_open(self->ctx, self->g, walk.block, self->to, self->map,
                                  &block[walk.block]));
            depth++;
        } else if (item == MPL_ITEM_CLOSE) {
            MPL_TRY(mpl_copy_close(self->ctx, self->g, walk.block, self->to, self->map));
            depth--;
        } else if ((s = grown_by(self, walk.op)) < self->n) {
            MPL_TRY(add_growth(self, walk.op, s));
        } else {
            MPL_TRY(mpl_copy_op(self->ctx, self->g, walk.op, self->to, self->map, block));
        }
    }
    MPL_TRY(add_copies(self));
    MPL_TRY(add_outputs(self));
    MPL_TRY(mpl_graph_finish(self->ctx, self->to));
out:
    mpl_free(self->ctx, block);
    return st;
}

/* Room for any name with a suffix and a number. */
static size_t longest_name(const keeping *self)
{
    size_t most = 0;

    for (mpl_value v = 0; v < self->g->n_values; v++)
        most = strlen(self->g->value_name[v]) > most ? strlen(self->g->value_name[v]) : most;
    for (uint32_t s = 0; s < self->n; s++)
        most = strlen(self->state[s].name) > most ? strlen(self->state[s].name) : most;
    return most + 32;
}

mpl_status mpl_graph_keep_state(mpl_ctx *ctx, mpl_graph **graph, uint32_t n, mpl_kept *state)
{
    mpl_status st = MPL_OK;
    keeping k = {.ctx = ctx, .g = *graph, .n = n, .state = state};
    bool needed = false;

    for (uint32_t s = 0; s < n; s++)
        needed = needed || is_moved(&k, s) || is_smaller(&k, s, state[s].before);
    if (!needed)
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, k.map, k.g->n_values));
    MPL_TRY(mpl_new_each(ctx, n, k.whole, k.made));
    memset(k.whole, 0xff, n * sizeof *k.whole);
    memset(k.made, 0xff, n * sizeof *k.made);
    MPL_TRY(mpl_new(ctx, k.name, longest_name(&k)));
    MPL_TRY(mpl_graph_new(ctx, k.g->name, &k.to));
    MPL_TRY(add_all(&k));
    for (uint32_t s = 0; s < n; s++) {
        state[s].before = k.whole[s];
        state[s].after = k.made[s] != MPL_NONE        ? k.made[s]
                         : state[s].after != MPL_NONE ? k.map[state[s].after]
                                                      : MPL_NONE;
    }
    mpl_graph_free(ctx, k.g);
    *graph = k.to, k.to = NULL;
out:
    mpl_graph_free(ctx, k.to);
    mpl_free_each(ctx, k.map, k.whole, k.made, k.name);
    return st;
}
