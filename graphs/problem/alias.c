/* alias.c -- see alias.h. */
#include "graphs/problem/alias.h"
#include "graphs/problem/liveness.h"
#include "graphs/ir/layout.h"
#include "graphs/ops/move/move_strided_priv.h"

/* Whether a part with those dims is one run of bytes of `whole`: after the first dim with more than
 * one index, it must take all of each dim. */
static bool is_one_run(const mpl_shape *whole, const mpl_shape *part)
{
    uint32_t first = 0;

    while (first < part->rank && part->dim[first] == 1)
        first++;
    for (uint32_t i = first + 1; i < part->rank; i++)
        if (part->dim[i] != whole->dim[i])
            return false;
    return true;
}

/* Makes the outputs of a split or slice parts of its input, if each is one run of bytes and begins
 * at a multiple of the alignment. */
static mpl_status attach_pieces(mpl_ctx *ctx, const mpl_graph *g, const mpl_alias_options *options,
                                mpl_op op, mpl_alias *alias)
{
    mpl_value in = mpl_op_input(g, op, 0);
    const mpl_shape *whole = &g->value_shape[in];
    int64_t start[MPL_MAX_RANK] = {0}, stride[MPL_MAX_RANK], first = 0;
    uint64_t at;
    bool fits = true, steps = false;

    if (g->op_kind[op] == MPL_OP_slice)
        MPL_PASS(mpl_slice_starts(ctx, g, op, whole, start, &steps));
    mpl_strides(whole, stride);
    for (uint32_t i = 0; i < whole->rank; i++)
        first += start[i] * stride[i];
    at = alias->offset[in] + (uint64_t)first * mpl_type_bytes((mpl_type)g->value_type[in]);
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1] && fits; i++) {
        mpl_value out = g->op_out[i];

        fits = !steps && out != MPL_NONE && g->value_bytes[out] > 0 && at % options->align == 0 &&
               is_one_run(whole, &g->value_shape[out]);
        if (!fits)
            break;
        alias->offset[out] = at;
        at += g->value_bytes[out];
    }
    for (uint32_t i = g->op_out_begin[op]; i < g->op_out_begin[op + 1]; i++)
        if (fits)
            alias->root[g->op_out[i]] = alias->root[in];
        else if (g->op_out[i] != MPL_NONE)
            alias->offset[g->op_out[i]] = 0;
    alias->nothing[op] = fits;
    return MPL_OK;
}

/* Whether an assign or fused operation writes into v. It could not do so in place while a part of v
 * is still read. */
static bool is_written(const mpl_graph *g, mpl_value v)
{
    for (uint32_t i = g->value_use_begin[v]; i < g->value_use_begin[v + 1]; i++) {
        mpl_op op = g->value_use[i];

        if ((g->op_kind[op] == MPL_OP_assign || g->op_kind[op] == MPL_OP_fused) &&
            mpl_op_input(g, op, 0) == v)
            return true;
    }
    return false;
}

/* Aliases an access of one run of elements, under the same conditions as a slice. */
static mpl_status attach_box(mpl_ctx *ctx, const mpl_graph *g, const mpl_alias_options *options,
                             mpl_op op, mpl_alias *alias)
{
    mpl_value in = mpl_op_input(g, op, 0), out = mpl_op_output(g, op, 0);
    mpl_strided box;
    uint64_t at;

    MPL_PASS(mpl_strided_of(ctx, g, op, &g->value_shape[in], &box));
    at = alias->offset[in] + (uint64_t)box.offset * mpl_type_bytes((mpl_type)g->value_type[in]);
    if (g->value_bytes[out] == 0 || at % options->align != 0 || !mpl_strided_contiguous(&box) ||
        is_written(g, in) || is_written(g, alias->root[in]))
        return MPL_OK;
    alias->root[out] = alias->root[in];
    alias->offset[out] = at;
    alias->nothing[op] = 1;
    return MPL_OK;
}

/* Whether the operands of a concat are consecutive runs in its result. */
static bool parts_are_runs(const mpl_graph *g, mpl_op op, mpl_value out, uint32_t align)
{
    uint64_t at = 0;

    if (mpl_channels_last(g, out)) /* each pixel has some of every operand */
        return false;
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
        if (at % align != 0 || g->value_bytes[g->op_in[i]] == 0 ||
            !is_one_run(&g->value_shape[out], &g->value_shape[g->op_in[i]]))
            return false;
        at += g->value_bytes[g->op_in[i]];
    }
    return true;
}

/* Attaches the operands of the shared concats, results in ascending order. Whatever lies in a
 * result that is itself an operand moves with it. */
static void attach_operands(const mpl_graph *g, const mpl_alias_options *options, mpl_alias *alias)
{
    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_value out = mpl_op_output(g, op, 0);
        int64_t axis = mpl_attr_int(g, op, MPL_ATTR_axis, 0), start = 0;
        uint64_t at = 0;

        alias->nothing[op] = alias->nothing[op] || options->shared[op];
        for (uint32_t i = g->op_in_begin[op]; options->shared[op] && i < g->op_in_begin[op + 1];
             i++) {
            mpl_value root = alias->root[g->op_in[i]];
            uint32_t along = (uint32_t)(axis < 0 ? axis + g->value_shape[out].rank : axis);
            int64_t size = g->value_shape[g->op_in[i]].dim[along];

            alias->root[root] = out;
            alias->offset[root] = at;
            at += g->value_bytes[g->op_in[i]];
            if (alias->box == NULL)
                continue;
            alias->box[root] = mpl_strided_all(&g->value_shape[out]);
            if (!mpl_strided_take(&alias->box[root], along, start, 1, size))
                mpl_assert(false);
            start += size;
        }
    }
}

/* Expresses v's box, if it has one, in the root of root[v], in which root[v] is `outer`. */
static void pass_on(const mpl_graph *g, mpl_value v, uint64_t offset, const mpl_strided *outer,
                    mpl_strided *box)
{
    mpl_strided inner = *box;

    if (outer->shape.rank == 0)
        return;
    if (inner.shape.rank > 0) {
        if (!mpl_strided_compose(outer, &inner, box))
            mpl_assert(false); /* the box of a box along axes composes */
    } else if (offset == 0 && mpl_shape_equal(&g->value_shape[v], &outer->shape)) {
        *box = *outer;
    }
}

/* Follows roots of roots: an operand's root may itself lie elsewhere, and views follow. Results
 * have higher ids than operands, and views than their roots, so chains are followed one link at a
 * time. */
static void resolve(const mpl_graph *g, mpl_alias *alias)
{
    for (mpl_value v = g->n_values; v-- > 0;) {
        mpl_value root = alias->root[v];
        uint64_t offset = alias->offset[v];

        while (alias->root[root] != root) {
            if (alias->box != NULL)
                pass_on(g, v, offset, &alias->box[root], &alias->box[v]);
            offset += alias->offset[root];
            root = alias->root[root];
        }
        alias->root[v] = root;
        alias->offset[v] = offset;
    }
}

/* Whether a concat whose operands stay boxes lies in the storage of `root`. */
static bool stays_boxed(const mpl_graph *g, const uint8_t *shared, const mpl_alias *alias,
                        mpl_value root)
{
    for (mpl_op op = 0; op < g->n_ops; op++)
        if (shared[op] == MPL_SHARE_BOXES && alias->root[mpl_op_output(g, op, 0)] == root)
            return true;
    return false;
}

/* Turns boxes that are one run at a multiple of the alignment into runs. */
static void keep_boxes(const mpl_graph *g, const mpl_alias_options *options, mpl_alias *alias)
{
    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_strided laid;
        uint64_t at;
        bool last;

        if (alias->box[v].shape.rank == 0)
            continue;
        last = mpl_channels_last(g, alias->root[v]);
        laid = mpl_box_laid(g, alias->root[v], &alias->box[v], last);
        at = (uint64_t)laid.offset * mpl_type_bytes((mpl_type)g->value_type[v]);
        alias->offset[v] = at;
        if (mpl_box_is_run(&laid, last) && at % options->align == 0 &&
            !stays_boxed(g, options->shared, alias, alias->root[v]))
            alias->box[v].shape.rank = 0;
    }
}

/* ---- bases of outputs ---- */

/* Marks the operations from `first` on that must run before `op`, and `op` itself. */
static void mark_before(const mpl_graph *g, mpl_op op, mpl_op first, uint8_t *mark)
{
    memset(mark, 0, g->n_ops);
    mark[op] = 1;
    for (mpl_op k = op + 1; k-- > first;)
        if (mark[k])
            mpl_mark_makers(g, k, mark);
}

/* Whether every reader of the storage of `root` must run before `op`. */
static bool read_before(const mpl_graph *g, const mpl_alias *alias, mpl_value root, mpl_op op,
                        uint8_t *mark)
{
    mark_before(g, op, g->value_op[root], mark);
    for (mpl_value v = root; v < g->n_values; v++)
        for (uint32_t i = g->value_use_begin[v];
             i < g->value_use_begin[v + 1] && alias->root[v] == root; i++)
            if (!mark[g->value_use[i]])
                return false;
    return true;
}

/* The base that `op` writes into, if it may lie where the resulting graph output does; else
 * MPL_NONE. */
static mpl_value base_of_output(const mpl_graph *g, const mpl_alias *alias,
                                const uint8_t *is_output, mpl_op op, uint8_t *mark)
{
    mpl_value base, out;

    if ((g->op_kind[op] != MPL_OP_assign && g->op_kind[op] != MPL_OP_fused) ||
        g->op_in_begin[op] == g->op_in_begin[op + 1])
        return MPL_NONE;
    base = mpl_op_input(g, op, 0);
    out = mpl_op_output(g, op, 0);
    if (base == MPL_NONE || !is_output[alias->root[out]] || g->value_bytes[base] == 0 ||
        g->value_bytes[base] != g->value_bytes[alias->root[out]] || alias->root[base] != base ||
        is_output[base] || g->value_op[base] == MPL_NONE ||
        !mpl_in_place_operand(g, alias->root, alias->offset, op, 0) ||
        !read_before(g, alias, base, op, mark))
        return MPL_NONE;
    return base;
}

/* Visits the last operations first, so that a chain of writes ends up in the one output. */
static mpl_status attach_bases(mpl_ctx *ctx, const mpl_graph *g, mpl_alias *alias)
{
    mpl_status st = MPL_OK;
    uint8_t *is_output = NULL, *mark = NULL;

    MPL_TRY(mpl_new(ctx, is_output, g->n_values));
    MPL_TRY(mpl_new(ctx, mark, g->n_ops));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        is_output[alias->root[g->output[i]]] = 1;
    for (mpl_op op = g->n_ops; op-- > 0;) {
        mpl_value base = base_of_output(g, alias, is_output, op, mark);

        if (base != MPL_NONE)
            alias->root[base] = alias->root[mpl_op_output(g, op, 0)];
    }
    resolve(g, alias);
out:
    mpl_free_each(ctx, is_output, mark);
    return st;
}

mpl_status mpl_alias_new(mpl_ctx *ctx, const mpl_graph *g, const mpl_alias_options *options,
                         mpl_alias *out)
{
    mpl_status st = MPL_OK;
    mpl_alias alias = {NULL, NULL, NULL, NULL};

    MPL_TRY(mpl_new_each(ctx, g->n_values, alias.root, alias.offset));
    MPL_TRY(mpl_new(ctx, alias.nothing, g->n_ops));
    for (mpl_value v = 0; v < g->n_values; v++)
        alias.root[v] = v;
    for (mpl_op op = 0; op < g->n_ops; op++) {
        mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];

        for (uint32_t i = g->op_out_begin[op];
             i < g->op_out_begin[op + 1] && mpl_n_updates(kind) > 0; i++)
            if (g->op_out[i] != MPL_NONE && mpl_updated(g, op, i - g->op_out_begin[op]) != MPL_NONE)
                alias.root[g->op_out[i]] = alias.root[mpl_updated(g, op, i - g->op_out_begin[op])];
        if (!options->views)
            continue;
        if ((mpl_op_table[kind].traits & MPL_VIEW) != 0) {
            mpl_value in = mpl_op_input(g, op, 0), v = mpl_op_output(g, op, 0);

            alias.root[v] = alias.root[in]; /* final: makers of inputs come before */
            alias.offset[v] = alias.offset[in];
            alias.nothing[op] = mpl_op_lone_output(g, op);
        } else if (options->copied != NULL && options->copied[op]) {
            continue;
        } else if ((kind == MPL_OP_split || kind == MPL_OP_slice) && g->n_blocks == 1) {
            MPL_TRY(attach_pieces(ctx, g, options, op, &alias));
        } else if (kind == MPL_OP_access && g->n_blocks == 1) {
            MPL_TRY(attach_box(ctx, g, options, op, &alias));
        }
    }
    if (options->into_outputs && options->views && g->n_blocks == 1)
        MPL_TRY(attach_bases(ctx, g, &alias));
    if (options->shared != NULL) {
        for (mpl_op op = 0; op < g->n_ops && alias.box == NULL; op++)
            if (options->shared[op] == MPL_SHARE_BOXES ||
                (options->shared[op] &&
                 !parts_are_runs(g, op, mpl_op_output(g, op, 0), options->align)))
                MPL_TRY(mpl_new(ctx, alias.box, g->n_values));
        attach_operands(g, options, &alias);
        resolve(g, &alias);
        if (alias.box != NULL)
            keep_boxes(g, options, &alias);
    }
    *out = alias, alias = (mpl_alias){NULL, NULL, NULL, NULL};
out:
    mpl_alias_free(ctx, &alias);
    return st;
}

void mpl_alias_free(mpl_ctx *ctx, mpl_alias *alias)
{
    mpl_free_each(ctx, alias->root, alias->offset, alias->box, alias->nothing);
    *alias = (mpl_alias){NULL, NULL, NULL, NULL};
}

static bool operands_are_free(const mpl_graph *g, mpl_op op, const mpl_alias *alias,
                              bool (*pinned)(const void *arg, mpl_value v), const void *arg,
                              const uint8_t *taken)
{
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++) {
        mpl_value v = g->op_in[i], root = alias->root[v];

        if (alias->offset[v] != 0 || g->value_bytes[root] != g->value_bytes[v] ||
            g->value_op[root] == MPL_NONE || (taken[root] & 1) != 0 || pinned(arg, root))
            return false;
        for (uint32_t k = g->op_in_begin[op]; k < i; k++)
            if (alias->root[g->op_in[k]] == root)
                return false;
    }
    return true;
}

/* Flags of a root in `taken`: it lies in the result of a concat; a view of it has other dims; it
 * must be a box there. */
enum { TAKEN = 1, VIEWED = 2, BOXED = 4 };

/* How operands can lie in the result: not at all, as runs, or as boxes. */
enum { NO_WAY, RUNS, BOXES };

/* NO_WAY or BOXES: whether operands can be boxes of the result. */
static uint8_t parts_are_boxes(const mpl_graph *g, mpl_op op, mpl_value out, const mpl_alias *alias,
                               const uint8_t *taken)
{
    if (g->value_shape[out].rank == 0)
        return NO_WAY;
    for (uint32_t i = g->op_in_begin[op]; i < g->op_in_begin[op + 1]; i++)
        if (g->value_bytes[g->op_in[i]] == 0 || (taken[alias->root[g->op_in[i]]] & VIEWED) != 0)
            return NO_WAY;
    return BOXES;
}

/* How the operands of `op` can lie in its result `out`. An operand of a box is a box itself. */
static uint8_t parts_can_be(const mpl_graph *g, mpl_op op, mpl_value out,
                            const mpl_alias_options *options, const mpl_alias *alias,
                            const uint8_t *taken)
{
    uint8_t boxes = options->boxes ? parts_are_boxes(g, op, out, alias, taken) : NO_WAY;

    if (parts_are_runs(g, op, out, options->align) &&
        ((taken[alias->root[out]] & BOXED) == 0 || boxes == BOXES))
        return RUNS;
    return boxes;
}

uint32_t mpl_concat_sharable(const mpl_graph *g, const mpl_alias_options *options,
                             const mpl_alias *alias, bool (*pinned)(const void *arg, mpl_value v),
                             const void *arg, uint8_t *taken, uint8_t *sharable)
{
    uint32_t n = 0;

    for (mpl_value v = 0; v < g->n_values; v++)
        if (alias->offset[v] != 0 ||
            !mpl_shape_equal(&g->value_shape[v], &g->value_shape[alias->root[v]]))
            taken[alias->root[v]] |= VIEWED;
    for (mpl_op op = g->n_ops; op-- > 0;) {
        mpl_value out = mpl_op_output(g, op, 0);
        uint8_t how_parts = NO_WAY, how = TAKEN;

        if (g->op_kind[op] == MPL_OP_concat && g->n_blocks == 1 && options->views &&
            out != MPL_NONE && mpl_op_n_in(g, op) > 1 && !pinned(arg, alias->root[out]) &&
            operands_are_free(g, op, alias, pinned, arg, taken))
            how_parts = parts_can_be(g, op, out, options, alias, taken);
        sharable[op] = how_parts != NO_WAY;
        n += sharable[op];
        if (how_parts == BOXES || (how_parts == RUNS && (taken[alias->root[out]] & BOXED) != 0))
            how |= BOXED;
        for (uint32_t i = g->op_in_begin[op]; sharable[op] && i < g->op_in_begin[op + 1]; i++)
            taken[alias->root[g->op_in[i]]] |= how;
    }
    return n;
}
