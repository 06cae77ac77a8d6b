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

static bool is_smaller(const keeping *k, uint32_t s, mpl_value v)
{
    return v != MPL_NONE && !mpl_shape_equal(&k->g->value_shape[v], &k->state[s].shape);
}

static bool is_moved(const keeping *k, uint32_t s)
{
    return k->state[s].after != MPL_NONE &&
           (k->state[s].copied || is_smaller(k, s, k->state[s].after));
}

/* Whether `op` appends rows to the input of state s and makes the whole state of it. */
static bool grows(const keeping *k, uint32_t s, mpl_op op)
{
    const mpl_kept *t = &k->state[s];

    return k->g->op_kind[op] == MPL_OP_concat && mpl_op_n_in(k->g, op) == 2 &&
           mpl_op_input(k->g, op, 0) == t->before && mpl_op_input(k->g, op, 1) != t->before &&
           mpl_op_output(k->g, op, 0) == t->after && is_smaller(k, s, t->before) &&
           !is_smaller(k, s, t->after);
}

static uint32_t grown_by(const keeping *k, mpl_op op)
{
    uint32_t s = 0;

    while (s < k->n && !grows(k, s, op))
        s++;
    return s;
}

static const char *fresh_name(keeping *k, const char *of, const char *end)
{
    uint32_t n = 2;

    sprintf(k->name, "%s.%s", of, end);
    while (mpl_graph_find(k->to, k->name) != MPL_NONE || mpl_graph_find(k->g, k->name) != MPL_NONE)
        sprintf(k->name, "%s.%s%" PRIu32, of, end, n++);
    return k->name;
}

/* Adds an access to, or an assign of, the rows of state s from `first` on along `axis`. */
static mpl_status add_box(keeping *k, mpl_op_kind kind, uint32_t s, const mpl_shape *rows,
                          uint32_t axis, int64_t first, mpl_value part, const char *name,
                          mpl_value *out)
{
    mpl_strided box = mpl_strided_all(&k->state[s].shape);
    mpl_value in[] = {k->whole[s], part};

    box.offset = axis < rows->rank ? first * box.stride[axis] : 0;
    box.shape = *rows;
    return mpl_graph_add_op(k->ctx, k->to, kind, name, part == MPL_NONE ? 1 : 2, in, 3,
                            (const mpl_attr[]){MPL_INTS(dims, rows->rank, box.shape.dim),
                                               MPL_INTS(strides, rows->rank, box.stride),
                                               MPL_INT(offset, box.offset)},
                            1, &name, out);
}

/* Whether something but the concat that grows it reads v, the input of state s. */
static bool is_read_as_rows(const keeping *k, uint32_t s, mpl_value v)
{
    const mpl_graph *g = k->g;

    for (uint32_t i = g->value_use_begin[v]; i < g->value_use_begin[v + 1]; i++)
        if (!grows(k, s, g->value_use[i]))
            return true;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->output[i] == v)
            return true;
    return false;
}

static mpl_status add_value(keeping *k, mpl_value v, bool inside)
{
    const mpl_graph *g = k->g;
    uint32_t s = 0;

    while (s < k->n && k->state[s].before != v)
        s++;
    if (s == k->n || !is_smaller(k, s, v)) {
        MPL_PASS(mpl_copy_value(k->ctx, k->g, v, k->to, &k->map[v]));
        if (s < k->n)
            k->whole[s] = k->map[v];
        return MPL_OK;
    }
    if (inside)
        return MPL_REFUSE(k->ctx, "graph '%s': input '%s' stands inside a block", g->name,
                          g->value_name[v]);
    MPL_PASS(mpl_graph_add_value(k->ctx, k->to, g->value_name[v], MPL_INPUT,
                                 (mpl_type)g->value_type[v], &k->state[s].shape, &k->whole[s]));
    if (is_read_as_rows(k, s, v))
        MPL_PASS(add_box(k, MPL_OP_access, s, &g->value_shape[v], 0, 0, MPL_NONE,
                         fresh_name(k, g->value_name[v], "rows"), &k->map[v]));
    return MPL_OK;
}

/* The concat that grows state s writes the rows into the state instead. */
static mpl_status add_growth(keeping *k, mpl_op op, uint32_t s)
{
    const mpl_graph *g = k->g;
    mpl_value rows = mpl_op_input(g, op, 1), out = mpl_op_output(g, op, 0);
    const mpl_shape *old = &g->value_shape[k->state[s].before];
    int64_t axis = mpl_attr_int(g, op, MPL_ATTR_axis, 0);

    axis += axis < 0 ? old->rank : 0;
    return add_box(k, MPL_OP_assign, s, &g->value_shape[rows], (uint32_t)axis, old->dim[axis],
                   k->map[rows], g->value_name[out], &k->map[out]);
}

static mpl_status add_copies(keeping *k)
{
    const mpl_graph *g = k->g;

    for (uint32_t s = 0; s < k->n; s++) {
        mpl_value v = k->state[s].after;

        if (!is_moved(k, s))
            continue;
        if (k->whole[s] == MPL_NONE)
            MPL_PASS(mpl_graph_add_value(k->ctx, k->to, fresh_name(k, k->state[s].name, "before"),
                                         MPL_INPUT, (mpl_type)g->value_type[v], &k->state[s].shape,
                                         &k->whole[s]));
        MPL_PASS(add_box(k, MPL_OP_assign, s, &g->value_shape[v], 0, 0, k->map[v],
                         fresh_name(k, g->value_name[v], "kept"), &k->made[s]));
        k->state[s].copied_bytes += g->value_bytes[v];
    }
    return MPL_OK;
}

/* Outputs in their order; one that is copied into states is what lies there. */
static mpl_status add_outputs(keeping *k)
{
    for (uint32_t i = 0; i < k->g->n_outputs; i++) {
        mpl_value v = k->g->output[i];
        bool moved = false;

        for (uint32_t s = 0; s < k->n; s++)
            if (k->state[s].after == v && k->made[s] != MPL_NONE) {
                MPL_PASS(mpl_graph_add_output(k->ctx, k->to, k->made[s]));
                moved = true;
            }
        if (!moved)
            MPL_PASS(mpl_graph_add_output(k->ctx, k->to, k->map[v]));
    }
    return MPL_OK;
}

static mpl_status add_all(keeping *k)
{
    mpl_status st = MPL_OK;
    mpl_walk walk = mpl_walk_begin();
    mpl_item item;
    uint32_t *block = NULL, depth = 0, s;

    MPL_TRY(mpl_new(k->ctx, block, k->g->n_blocks));
    while ((item = mpl_walk_next(k->g, &walk)) != MPL_ITEM_END) {
        if (item == MPL_ITEM_VALUE) {
            MPL_TRY(add_value(k, walk.value, depth > 0));
        } else if (item == MPL_ITEM_OPEN) {
            MPL_TRY(mpl_copy_open(k->ctx, k->g, walk.block, k->to, k->map, &block[walk.block]));
            depth++;
        } else if (item == MPL_ITEM_CLOSE) {
            MPL_TRY(mpl_copy_close(k->ctx, k->g, walk.block, k->to, k->map));
            depth--;
        } else if ((s = grown_by(k, walk.op)) < k->n) {
            MPL_TRY(add_growth(k, walk.op, s));
        } else {
            MPL_TRY(mpl_copy_op(k->ctx, k->g, walk.op, k->to, k->map, block));
        }
    }
    MPL_TRY(add_copies(k));
    MPL_TRY(add_outputs(k));
    MPL_TRY(mpl_graph_finish(k->ctx, k->to));
out:
    mpl_free(k->ctx, block);
    return st;
}

/* Room for any name with a suffix and a number. */
static size_t longest_name(const keeping *k)
{
    size_t most = 0;

    for (mpl_value v = 0; v < k->g->n_values; v++)
        most = strlen(k->g->value_name[v]) > most ? strlen(k->g->value_name[v]) : most;
    for (uint32_t s = 0; s < k->n; s++)
        most = strlen(k->state[s].name) > most ? strlen(k->state[s].name) : most;
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
