/* choose_layouts.c -- puts convolutions, and what is between them, into channels-last layout, or
 * each operation into a given one, with explicit reorders around. See passes.h. */

#include "graphs/ops/matrix/conv.h"
#include "graphs/passes/copy.h"
#include "graphs/passes/layouts.h"
#include "graphs/passes/passes.h"

typedef struct laying {
    mpl_ctx *ctx;
    mpl_graph *g, *to;
    mpl_value *map[MPL_N_LAYOUTS]; /* [n_values] MPL_NONE: not made in that layout */
    uint8_t *own;                  /* [n_values] layout that is made first */
    uint8_t *is_output;            /* [n_values] */
    uint8_t *inside;               /* [n_values] read by or in a loop or branch: plain, too */
    uint32_t *block;               /* [n_blocks] of `to` */
    char *name;                    /* room for the longest name and a suffix */
    const mpl_laid *laid;          /* [n_ops], or NULL: convolutions, and what is between them */
} laying;

static bool is_image(const mpl_graph *g, mpl_value v)
{
    return v != MPL_NONE && g->value_type[v] == MPL_TYPE_f32 && g->value_shape[v].rank == 4;
}

/* Whether operand i of two is a pixel or number that is broadcast over the result's images, so that
 * both layouts are the same. Operand 0 must be an image, since it decides the layout
 * (graphs/ir/layout.h). */
static bool is_repeated(const mpl_graph *g, mpl_op op, uint32_t i)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    mpl_value v = mpl_op_input(g, op, i);
    const mpl_shape *shape;

    if (kind != MPL_OP_add && kind != MPL_OP_mul &&
        ((kind != MPL_OP_sub && kind != MPL_OP_div) || i == 0))
        return false;
    shape = &g->value_shape[v];
    if (mpl_shape_equal(shape, &g->value_shape[mpl_op_output(g, op, 0)]) ||
        (i == 0 && (!is_image(g, v) || g->value_role[v] == MPL_WEIGHT)))
        return false;
    for (uint32_t k = 0; k < shape->rank; k++)
        if (shape->dim[k] != 1 && k + 4 - shape->rank >= 2)
            return false;
    return true;
}

/* Whether a convolution with its channels last reads its image as it is, plain: of so few channels
 * a copy that only puts them last costs more memory than it saves time, where windows are small. */
static bool turns(const mpl_graph *g, mpl_op op)
{
    enum { CHANNELS = 4, WINDOW = 9 };
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    mpl_value x, filter;
    const int64_t *window;

    if (kind != MPL_OP_conv && kind != MPL_OP_conv_act)
        return false;
    x = mpl_op_input(g, op, 0), filter = mpl_op_input(g, op, 1);
    window = g->value_shape[filter].dim + 2;
    return is_image(g, x) && g->value_shape[x].dim[1] <= CHANNELS &&
           mpl_attr_int(g, op, MPL_ATTR_group, 1) == 1 && window[0] * window[1] <= WINDOW &&
           g->value_role[filter] == MPL_WEIGHT;
}

/* Whether operand i has the layout of the result. Broadcast weights have none. */
static bool follows(const mpl_graph *g, mpl_op op, uint32_t i)
{
    mpl_value v = mpl_op_input(g, op, i);

    if (i >= mpl_n_images(g, op))
        return false;
    return !is_repeated(g, op, i) || (is_image(g, v) && g->value_role[v] != MPL_WEIGHT);
}

mpl_layout mpl_operand_layout(const mpl_graph *g, mpl_op op, uint32_t i, mpl_layout layout)
{
    return layout != MPL_PLAIN && follows(g, op, i) && !(i == 0 && turns(g, op)) ? layout
                                                                                 : MPL_PLAIN;
}

bool mpl_op_may_be_last(const mpl_graph *g, mpl_op op)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    const mpl_value *in = g->op_in + g->op_in_begin[op];
    mpl_value out = mpl_op_output(g, op, 0);
    bool same = !mpl_is_conv(kind) && kind != MPL_OP_batch_norm && kind != MPL_OP_concat;

    if (!mpl_keeps_layout(kind) || g->op_in_begin[op] == g->op_in_begin[op + 1] ||
        g->op_block[op] != 0)
        return false;
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        if (i > g->op_out_begin[op] ? g->op_out[i] != MPL_NONE : !is_image(g, g->op_out[i]))
            return false;
    for (uint32_t i = 0; i < mpl_n_images(g, op); i++)
        if (!is_repeated(g, op, i) &&
            (!is_image(g, in[i]) ||
             (same && mpl_n_images(g, op) > 1 &&
              !mpl_shape_equal(&g->value_shape[in[i]], &g->value_shape[out]))))
            return false;
    if (kind == MPL_OP_concat) {
        int64_t axis = mpl_attr_int(g, op, MPL_ATTR_axis, 0);

        return axis == 1 || axis == -3;
    }
    return true;
}

/* Whether filters in that layout exist: whole, or a channel each. */
static bool has_filters(const mpl_graph *g, mpl_op op)
{
    mpl_value x = mpl_op_input(g, op, mpl_n_images(g, op) - 1);
    int64_t groups = mpl_attr_int(g, op, MPL_ATTR_group, 1);

    return groups == 1 || (groups == g->value_shape[x].dim[1] &&
                           groups == g->value_shape[mpl_op_output(g, op, 0)].dim[1]);
}

bool mpl_op_may_be(const mpl_graph *g, mpl_op op, mpl_layout layout)
{
    if (layout != MPL_BLOCKED)
        return layout == MPL_PLAIN || mpl_op_may_be_last(g, op);
    if (!mpl_op_may_be_last(g, op) ||
        !mpl_layout_takes(layout, &g->value_shape[mpl_op_output(g, op, 0)]))
        return false;
    for (uint32_t i = 0; i < mpl_n_images(g, op); i++) {
        const mpl_shape *shape = &g->value_shape[mpl_op_input(g, op, i)];

        if (follows(g, op, i) ? is_repeated(g, op, i) || !mpl_layout_takes(layout, shape)
                              : mpl_count(shape) != 1)
            return false;
    }
    return !mpl_is_conv((mpl_op_kind)g->op_kind[op]) || has_filters(g, op);
}

static mpl_layout wanted(const laying *self, mpl_op op)
{
    const mpl_graph *g = self->g;

    if (self->laid != NULL)
        return (mpl_layout)self->laid[op].layout;
    if (!mpl_op_may_be_last(g, op))
        return MPL_PLAIN;
    for (uint32_t i = 0; i < mpl_n_images(g, op) && !mpl_is_conv((mpl_op_kind)g->op_kind[op]); i++)
        if (self->map[MPL_LAST][g->op_in[g->op_in_begin[op] + i]] != MPL_NONE &&
            !is_repeated(g, op, i))
            return MPL_LAST;
    return mpl_is_conv((mpl_op_kind)g->op_kind[op]) ? MPL_LAST : MPL_PLAIN;
}

/* A name in neither graph: v's with a suffix. */
static const char *fresh_name(laying *self, mpl_value v, const char *end)
{
    uint32_t n = sprintf(self->name, "%s.%s", self->g->value_name[v], end) > 0 ? 2 : 0;

    while (mpl_graph_find(self->to, self->name) != MPL_NONE ||
           mpl_graph_find(self->g, self->name) != MPL_NONE)
        sprintf(self->name, "%s.%s%" PRIu32, self->g->value_name[v], end, n++);
    return self->name;
}

/* Ends of names. */
static const char *const ends[MPL_N_LAYOUTS] = {"plain", "last", "blocked"};

/* Makes v in that layout, with a reorder if needed. The plain value keeps an output's name. */
static mpl_status need(laying *self, mpl_value v, mpl_layout layout)
{
    const char *name;
    mpl_attr mode = MPL_TEXT(mode, mpl_layout_name(layout));

    if (self->map[layout][v] != MPL_NONE)
        return MPL_OK;
    name = layout == MPL_PLAIN && self->is_output[v] ? self->g->value_name[v]
                                                     : fresh_name(self, v, ends[layout]);
    return mpl_graph_add_op(self->ctx, self->to, MPL_OP_reorder, name, 1,
                            &self->map[self->own[v]][v], 1, &mode, 1, &name, &self->map[layout][v]);
}

/* Adds an operation on images in a layout that is not plain. */
static mpl_status add_laid(laying *self, mpl_op op, mpl_layout as)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = self->g;
    uint32_t n_in = g->op_in_begin[op + 1] - g->op_in_begin[op];
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op], n_attr;
    mpl_value out = g->op_out[g->op_out_begin[op]], made[2] = {MPL_NONE, MPL_NONE}, *in = NULL;
    const char *name[2] = {NULL, NULL};
    mpl_attr *attr = NULL;

    MPL_TRY(mpl_new(self->ctx, in, n_in));
    MPL_TRY(mpl_copy_attrs(self->ctx, g, op, &n_attr, &attr));
    mpl_add_way(self->laid != NULL ? self->laid[op].way : 0, &n_attr, attr);
    if (turns(g, op))
        attr[n_attr++] = (mpl_attr)MPL_TEXT(mode, mpl_layout_name(as));
    for (uint32_t i = 0; i < n_in; i++) {
        mpl_value v = g->op_in[g->op_in_begin[op] + i];
        mpl_layout layout = mpl_operand_layout(g, op, i, as);

        in[i] = MPL_NONE;
        if (v == MPL_NONE)
            continue;
        MPL_TRY(need(self, v, layout));
        in[i] = self->map[layout][v];
    }
    name[0] = self->is_output[out] ? fresh_name(self, out, ends[as]) : g->value_name[out];
    MPL_TRY(mpl_graph_add_op(self->ctx, self->to, (mpl_op_kind)g->op_kind[op], g->op_name[op], n_in,
                             in, n_attr, attr, n_out, name, made));
    self->map[as][out] = made[0];
    self->own[out] = (uint8_t)as;
    if (self->inside[out])
        MPL_TRY(need(self, out, MPL_PLAIN));
out:
    mpl_free_each(self->ctx, in, attr);
    return st;
}

static mpl_status add_plain(laying *self, mpl_op op)
{
    const mpl_graph *g = self->g;

    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        if (g->op_in[i] != MPL_NONE)
            MPL_PASS(need(self, g->op_in[i], MPL_PLAIN));
    return mpl_copy_op_as(self->ctx, g, op, self->to, self->map[MPL_PLAIN], self->block,
                          &(mpl_copy_as){.way = self->laid != NULL ? self->laid[op].way : 0});
}

static void mark_inside(laying *self)
{
    const mpl_graph *g = self->g;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = 0; i < mpl_op_n_in(g, op); i++)
            if (mpl_op_input(g, op, i) != MPL_NONE &&
                (g->op_block[op] != 0 || g->op_body_begin[op] < g->op_body_begin[op + 1]))
                self->inside[mpl_op_input(g, op, i)] = 1;
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            if (mpl_result(g, b, i) != MPL_NONE)
                self->inside[mpl_result(g, b, i)] = 1;
}

static mpl_status lay_item(laying *self, mpl_item item, const mpl_walk *walk)
{
    mpl_layout layout = item == MPL_ITEM_OP ? wanted(self, walk->op) : MPL_PLAIN;

    if (item == MPL_ITEM_OPEN)
        return mpl_copy_open(self->ctx, self->g, walk->block, self->to, self->map[MPL_PLAIN],
                             &self->block[walk->block]);
    if (item == MPL_ITEM_CLOSE)
        return mpl_copy_close(self->ctx, self->g, walk->block, self->to, self->map[MPL_PLAIN]);
    if (item != MPL_ITEM_OP)
        return MPL_OK;
    return layout != MPL_PLAIN ? add_laid(self, walk->op, layout) : add_plain(self, walk->op);
}

static mpl_status lay(laying *self)
{
    mpl_graph *g = self->g;
    mpl_walk walk = mpl_walk_begin();
    mpl_item item;
    size_t longest = 0;

    for (mpl_value v = 0; v < g->n_values; v++) {
        size_t n = strlen(g->value_name[v]);

        for (uint32_t k = 0; k < MPL_N_LAYOUTS; k++)
            self->map[k][v] = MPL_NONE;
        longest = n > longest ? n : longest;
    }
    MPL_PASS(mpl_new(self->ctx, self->name, longest + 32));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        self->is_output[g->output[i]] = 1;
    mark_inside(self);
    for (mpl_value v = 0; v < g->n_values; v++)
        if (g->value_role[v] == MPL_INPUT || g->value_role[v] == MPL_WEIGHT)
            MPL_PASS(mpl_copy_value(self->ctx, g, v, self->to, &self->map[MPL_PLAIN][v]));
    while ((item = mpl_walk_next(g, &walk)) != MPL_ITEM_END)
        MPL_PASS(lay_item(self, item, &walk));
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        MPL_PASS(need(self, g->output[i], MPL_PLAIN));
        MPL_PASS(mpl_graph_add_output(self->ctx, self->to, self->map[MPL_PLAIN][g->output[i]]));
    }
    return mpl_graph_finish(self->ctx, self->to);
}

static mpl_status replace(mpl_ctx *ctx, mpl_graph **graph, const mpl_laid *laid)
{
    mpl_status st = MPL_OK;
    mpl_graph *g = *graph;
    laying l = {.ctx = ctx, .g = g, .laid = laid};

    for (uint32_t i = 0; i < MPL_N_LAYOUTS; i++)
        MPL_TRY(mpl_new(ctx, l.map[i], g->n_values));
    MPL_TRY(mpl_new_each(ctx, g->n_values, l.own, l.is_output, l.inside));
    MPL_TRY(mpl_new(ctx, l.block, g->n_blocks));
    MPL_TRY(mpl_graph_new(ctx, g->name, &l.to));
    MPL_TRY(lay(&l));
    mpl_graph_free(ctx, g);
    *graph = l.to, l.to = NULL;
out:
    mpl_graph_free(ctx, l.to);
    for (uint32_t i = 0; i < MPL_N_LAYOUTS; i++)
        mpl_free(ctx, l.map[i]);
    mpl_free_each(ctx, l.own, l.is_output, l.inside, l.block, l.name);
    return st;
}

bool mpl_layouts_open(const mpl_graph *g)
{
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (g->op_kind[op] == MPL_OP_reorder || mpl_n_updates((mpl_op_kind)g->op_kind[op]) > 0)
            return false;
    return true;
}

mpl_status mpl_graph_channels_last(mpl_ctx *ctx, mpl_graph **graph)
{
    const mpl_graph *g = *graph;

    for (mpl_op op = 0; op < g->n_ops; op++)
        if (mpl_is_conv((mpl_op_kind)g->op_kind[op]) && mpl_op_may_be_last(g, op))
            return g->n_blocks <= 1 && mpl_layouts_open(g) ? replace(ctx, graph, NULL) : MPL_OK;
    return MPL_OK;
}

mpl_status mpl_graph_lay(mpl_ctx *ctx, mpl_graph **graph, const mpl_laid *laid)
{
    const mpl_graph *g = *graph;

    for (mpl_op op = 0; op < g->n_ops; op++)
        if (!mpl_op_may_be(g, op, (mpl_layout)laid[op].layout))
            return MPL_ERROR(ctx, MPL_EINVALID, "operation '%.100s' cannot have its images %s",
                             g->op_name[op], mpl_layout_name((mpl_layout)laid[op].layout));
    return replace(ctx, graph, laid);
}
