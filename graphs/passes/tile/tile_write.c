/* tile_write.c -- the graph with regions by patches. See tile.h. */
#include "graphs/ops/matrix/conv.h"
#include "graphs/passes/copy.h"
#include "graphs/passes/tile/tile_priv.h"

enum { MOST_NAME = 400 };

typedef struct writer {
    mpl_ctx *ctx;
    mpl_graph *g, *to;
    tile_rule *rule;
    mpl_value *map;  /* [values of g] in `to` */
    uint32_t *block; /* [blocks of g] in `to` */
    mpl_value *made; /* [values of the program] in `to` */
    mpl_value *band; /* of the result of the region before */
    size_t cap_made, cap_band;
    tile_program program;
    uint32_t n_names;
} writer;

/* "NAME.tile12" */
static const char *piece_name(writer *out, const char *of, char text[MOST_NAME])
{
    do
        snprintf(text, MOST_NAME, "%.*s.tile%" PRIu32, MOST_NAME - 20, of, out->n_names++);
    while (mpl_graph_find(out->to, text) != MPL_NONE);
    return text;
}

static mpl_status add_op(writer *w, mpl_op_kind kind, const char *op_name, uint32_t n_in,
                         const mpl_value *in, uint32_t n_attr, const mpl_attr *attr,
                         const char *name, mpl_value *out)
{
    return mpl_graph_add_op(w->ctx, w->to, kind, op_name, n_in, in, n_attr, attr, 1, &name, out);
}

static mpl_status write_slice(writer *w, const tile_value *from, const tile_value *to, mpl_value in,
                              const char *name, mpl_value *out)
{
    int64_t starts[TILE_AXES], ends[TILE_AXES];
    const int64_t axes[TILE_AXES] = {1, 2, 3};
    mpl_attr attr[3];

    for (uint32_t a = 0; a < TILE_AXES; a++) {
        starts[a] = to->box.at[a].low - from->box.at[a].low;
        ends[a] = to->box.at[a].high - from->box.at[a].low;
    }
    attr[0] = MPL_INTS(starts, TILE_AXES, starts);
    attr[1] = MPL_INTS(ends, TILE_AXES, ends);
    attr[2] = MPL_INTS(axes, TILE_AXES, axes);
    return add_op(w, MPL_OP_slice, name, 1, &in, 3, attr, name, out);
}

static mpl_status write_pad(writer *w, const tile_value *from, const tile_value *to, mpl_value in,
                            const char *name, mpl_value *out)
{
    int64_t pads[8] = {0};
    mpl_attr attr;

    for (uint32_t a = 0; a < TILE_AXES; a++) {
        pads[1 + a] = from->box.at[a].low - to->box.at[a].low;
        pads[5 + a] = to->box.at[a].high - from->box.at[a].high;
    }
    attr = MPL_INTS(pads, 8, pads);
    return add_op(w, MPL_OP_pad, name, 1, &in, 1, &attr, name, out);
}

/* in[1], a box of the value, into in[0], a larger one. */
static mpl_status write_assign(writer *w, const tile_step *step, const tile_value *piece,
                               const mpl_value in[2], const char *name, mpl_value *out)
{
    const tile_value *to = &w->program.value[step->out];
    int64_t dims[4] = {w->g->value_shape[to->of].dim[0]}, strides[4] = {0, 0, 0, 1}, offset = 0;
    mpl_attr attr[3];

    for (uint32_t a = TILE_AXES; a-- > 0;) {
        const tile_span *all = &to->box.at[a], *part = &piece->box.at[a];

        dims[1 + a] = part->high - part->low;
        strides[a] = strides[1 + a] * (all->high - all->low);
        offset += (part->low - all->low - (a == step->axis ? step->up : 0)) * strides[1 + a];
    }
    attr[0] = MPL_INTS(dims, 4, dims);
    attr[1] = MPL_INTS(strides, 4, strides);
    attr[2] = (mpl_attr){MPL_ATTR_offset, 1, &offset, NULL, NULL};
    return add_op(w, MPL_OP_assign, name, 2, in, 3, attr, name, out);
}

/* Items of the channels of operand v. */
static mpl_status cut_channels(writer *w, mpl_value v, uint32_t axis, tile_span channels,
                               mpl_value *out)
{
    char text[MOST_NAME];
    const char *name = piece_name(w, w->g->value_name[v], text);
    int64_t axes = axis;
    const mpl_attr attr[3] = {{MPL_ATTR_starts, 1, &channels.low, NULL, NULL},
                              {MPL_ATTR_ends, 1, &channels.high, NULL, NULL},
                              {MPL_ATTR_axes, 1, &axes, NULL, NULL}};

    return add_op(w, MPL_OP_slice, name, 1, &w->map[v], 3, attr, name, out);
}

/* Operands of an operation on a piece. */
static mpl_status piece_operands(writer *out, const tile_step *step, const tile_value *to,
                                 mpl_value *in)
{
    tile_span channels = to->box.at[TILE_CHANNELS];
    bool all = channels.high - channels.low == out->g->value_shape[to->of].dim[1];

    for (uint32_t k = 0; k < step->n_in; k++) {
        mpl_value v = mpl_op_input(out->g, step->op, k);
        uint32_t from = out->program.in[step->in_begin + k], axis;

        in[k] = from != MPL_NONE ? out->made[from] : v != MPL_NONE ? out->map[v] : MPL_NONE;
        if (from != MPL_NONE || v == MPL_NONE || all)
            continue;
        axis = tile_channel_axis(out->g, step->op, k);
        if (axis != MPL_NONE)
            MPL_PASS(cut_channels(out, v, axis, channels, &in[k]));
    }
    return MPL_OK;
}

/* What a window over the box reads outside of the image. */
static void piece_pads(const writer *w, const tile_step *step, const tile_value *to,
                       int64_t pads[4])
{
    const tile_rule *rule = &w->rule[step->op];
    uint32_t k = mpl_fused_first((mpl_op_kind)w->g->op_kind[step->op]);
    const mpl_shape *shape = &w->g->value_shape[mpl_op_input(w->g, step->op, k)];

    for (uint32_t a = 0; a < 2; a++) {
        const tile_span *out = &to->box.at[TILE_ROWS + a];
        int64_t low = out->low * rule->stride[a] - rule->before[a];
        int64_t high = (out->high - 1) * rule->stride[a] - rule->before[a] + rule->reach[a];

        pads[a] = low < 0 ? -low : 0;
        pads[2 + a] = high > shape->dim[2 + a] ? high - shape->dim[2 + a] : 0;
    }
}

/* Attributes for a piece: pads, groups and sizes are its own. attr has room for one more. */
static uint32_t piece_attrs(writer *out, const tile_step *step, const tile_value *to, uint32_t n,
                            mpl_attr *attr, int64_t numbers[5])
{
    const tile_rule *rule = &out->rule[step->op];
    const tile_box *box = &to->box;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n; i++) {
        bool sized = rule->kind == TILE_RESIZE &&
                     (attr[i].key == MPL_ATTR_sizes || attr[i].key == MPL_ATTR_scales ||
                      attr[i].key == MPL_ATTR_axes);

        if ((rule->kind == TILE_WINDOW && attr[i].key == MPL_ATTR_pads) || sized)
            continue;
        attr[kept] = attr[i];
        if (rule->kind == TILE_WINDOW && attr[i].key == MPL_ATTR_group && !rule->mixes &&
            !rule->joint) {
            numbers[4] = box->at[TILE_CHANNELS].high - box->at[TILE_CHANNELS].low;
            attr[kept].ints = &numbers[4];
        }
        kept++;
    }
    if (rule->kind == TILE_WINDOW) {
        piece_pads(out, step, to, numbers);
        attr[kept++] = MPL_INTS(pads, 4, numbers);
    } else if (rule->kind == TILE_RESIZE) {
        numbers[0] = out->g->value_shape[to->of].dim[0];
        for (uint32_t a = 0; a < TILE_AXES; a++)
            numbers[1 + a] = box->at[a].high - box->at[a].low;
        attr[kept++] = MPL_INTS(sizes, 4, numbers);
    }
    return kept;
}

static mpl_status write_piece(writer *w, const tile_step *step, const tile_value *to,
                              const char *name, mpl_value *out)
{
    mpl_status st = MPL_OK;
    int64_t numbers[5];
    uint32_t n;
    mpl_attr *attr = NULL, *more = NULL;
    mpl_value *in = NULL;

    MPL_TRY(mpl_new(w->ctx, in, step->n_in));
    MPL_TRY(piece_operands(w, step, to, in));
    MPL_TRY(mpl_copy_attrs(w->ctx, w->g, step->op, &n, &attr));
    MPL_TRY(mpl_new(w->ctx, more, (size_t)n + 1));
    memcpy(more, attr, n * sizeof *attr);
    n = piece_attrs(w, step, to, n, more, numbers);
    MPL_TRY(add_op(w, (mpl_op_kind)w->g->op_kind[step->op], w->g->op_name[step->op], step->n_in, in,
                   n, more, name, out));
out:
    mpl_free_each(w->ctx, attr, more, in);
    return st;
}

static mpl_status write_step(writer *w, const tile_step *step, bool last)
{
    const tile_value *to = &w->program.value[step->out];
    const uint32_t *in = w->program.in + step->in_begin;
    const tile_value *from = step->what == TILE_OP ? NULL : &w->program.value[in[step->n_in - 1]];
    const char *of = w->g->value_name[to->of];
    char text[MOST_NAME];
    const char *name = last ? of : piece_name(w, of, text);
    mpl_value *out = &w->made[step->out];

    switch (step->what) {
    case TILE_SLICE:
        return write_slice(w, from, to, w->made[in[0]], name, out);
    case TILE_PAD:
        return write_pad(w, from, to, w->made[in[0]], name, out);
    case TILE_ASSIGN:
        return write_assign(w, step, from, (const mpl_value[]){w->made[in[0]], w->made[in[1]]},
                            name, out);
    default:
        return write_piece(w, step, to, name, out);
    }
}

static mpl_status write_region(writer *out, const mpl_tile_region *region, mpl_tile_facts *facts)
{
    tile_program *program = &out->program;
    mpl_value in =
        region->band > 0 ? out->g->op_out[out->g->op_out_begin[region->begin - 1]] : MPL_NONE;
    uint32_t n_bands = 0;

    MPL_PASS(tile_walk(program, region));
    MPL_PASS(mpl_reserve(out->ctx, out->made, out->cap_made, program->n_values));
    for (uint32_t i = 0; i < program->n_outside; i++)
        out->made[i] =
            program->value[i].of == in ? out->band[n_bands++] : out->map[program->value[i].of];
    for (size_t i = 0; i < program->n_steps; i++)
        MPL_PASS(write_step(out, &program->step[i], !region->banded && i + 1 == program->n_steps));
    MPL_PASS(mpl_reserve(out->ctx, out->band, out->cap_band, program->n_result));
    for (size_t i = 0; i < program->n_result; i++)
        out->band[i] = out->made[program->result[i]];
    out->map[mpl_tile_result(out->g, region)] = out->band[0]; /* of bands, nobody asks */
    facts->n_patches += program->n_patches;
    facts->work += program->work;
    return MPL_OK;
}

/* Copies the graph; a region stands where its last operation stood. */
static mpl_status write_all(writer *out, uint32_t n, const mpl_tile_region *region,
                            mpl_tile_facts *facts)
{
    mpl_walk walk = mpl_walk_begin();
    mpl_item item;
    uint32_t next = 0;

    while ((item = mpl_walk_next(out->g, &walk)) != MPL_ITEM_END) {
        bool within = item == MPL_ITEM_OP && next < n && walk.op >= region[next].begin;

        if (item == MPL_ITEM_VALUE)
            MPL_PASS(mpl_copy_value(out->ctx, out->g, walk.value, out->to, &out->map[walk.value]));
        else if (item == MPL_ITEM_OPEN)
            MPL_PASS(mpl_copy_open(out->ctx, out->g, walk.block, out->to, out->map,
                                   &out->block[walk.block]));
        else if (item == MPL_ITEM_CLOSE)
            MPL_PASS(mpl_copy_close(out->ctx, out->g, walk.block, out->to, out->map));
        else if (!within)
            MPL_PASS(mpl_copy_op(out->ctx, out->g, walk.op, out->to, out->map, out->block));
        else if (walk.op + 1 == region[next].end)
            MPL_PASS(write_region(out, &region[next++], facts));
        if (item == MPL_ITEM_OP) {
            uint64_t products = tile_products(out->g, walk.op);

            facts->plain_work += products;
            facts->work += within ? 0 : products;
        }
    }
    for (uint32_t i = 0; i < out->g->n_outputs; i++)
        MPL_PASS(mpl_graph_add_output(out->ctx, out->to, out->map[out->g->output[i]]));
    return mpl_graph_finish(out->ctx, out->to);
}

/* Whether the region hands over bands exactly as the next one, or NULL, reads them. */
static bool bands_fit(const writer *out, const mpl_tile_region *region, const mpl_tile_region *next)
{
    const mpl_shape *shape = &out->g->value_shape[mpl_tile_result(out->g, region)];

    if (!region->banded)
        return next == NULL || next->band == 0;
    return next != NULL && next->begin == region->end && next->band == region->patch.rows &&
           region->patch.channels >= shape->dim[1] &&
           (region->patch.across || region->patch.columns >= shape->dim[3]) &&
           tile_reads_bands(out->g, out->rule, next->begin, next->end);
}

static mpl_status check_regions(writer *out, uint32_t n, const mpl_tile_region *region)
{
    for (uint32_t i = 0; i < n; i++) {
        const mpl_tile_region *r = &region[i];

        if (!tile_is_region(out->g, out->rule, r->begin, r->end) ||
            (i > 0 ? r->begin < region[i - 1].end : r->band != 0) || r->patch.channels < 1 ||
            r->patch.rows < 1 || r->patch.columns < 1 ||
            !bands_fit(out, r, i + 1 < n ? r + 1 : NULL))
            return MPL_REFUSE(out->ctx,
                              "operations %" PRIu32 " to %" PRIu32 " of '%s' are no region",
                              r->begin, r->end, out->g->name);
    }
    return MPL_OK;
}

mpl_status mpl_graph_tile(mpl_ctx *ctx, mpl_graph **graph, uint32_t n,
                          const mpl_tile_region *region, mpl_tile_facts *facts)
{
    mpl_status st = MPL_OK;
    mpl_graph *g = *graph;
    writer w = {.ctx = ctx, .g = g};

    facts->n_regions = n, facts->n_patches = 0;
    facts->plain_work = facts->work = 0;
    MPL_TRY(tile_rules_new(ctx, g, &w.rule));
    MPL_TRY(check_regions(&w, n, region));
    MPL_TRY(tile_program_new(ctx, g, w.rule, &w.program));
    MPL_TRY(mpl_new(ctx, w.map, g->n_values));
    MPL_TRY(mpl_new(ctx, w.block, g->n_blocks));
    MPL_TRY(mpl_graph_new(ctx, g->name, &w.to));
    MPL_TRY(write_all(&w, n, region, facts));
    mpl_graph_free(ctx, g);
    *graph = w.to, w.to = NULL;
out:
    mpl_graph_free(ctx, w.to);
    tile_program_fini(&w.program);
    mpl_free_each(ctx, w.rule, w.map, w.block, w.made, w.band);
    return st;
}
