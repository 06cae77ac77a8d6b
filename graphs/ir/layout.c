/* layout.c -- see layout.h. */
#include "graphs/ir/layout.h"

static const char *const names[MPL_N_LAYOUTS] = {"plain", "channels_last", "blocked8"};

bool mpl_keeps_layout(mpl_op_kind kind)
{
    switch (kind) {
    case MPL_OP_conv:
    case MPL_OP_conv_act:
    case MPL_OP_conv_sum:
    case MPL_OP_max_pool:
    case MPL_OP_avg_pool:
    case MPL_OP_global_max_pool:
    case MPL_OP_global_avg_pool:
    case MPL_OP_batch_norm:
    case MPL_OP_concat:
    case MPL_OP_sum:
    case MPL_OP_identity:
    case MPL_OP_dropout:
        return true;
    default:
        return (mpl_op_table[kind].traits & MPL_ELEMENTWISE) != 0;
    }
}

bool mpl_turns_layout(const mpl_graph *g, mpl_op op)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];

    return (kind == MPL_OP_conv || kind == MPL_OP_conv_act) &&
           g->value_shape[mpl_op_output(g, op, 0)].rank == 4 &&
           strcmp(mpl_attr_text(g, op, MPL_ATTR_mode, ""), names[MPL_LAST]) == 0;
}

uint32_t mpl_n_images(const mpl_graph *g, mpl_op op)
{
    mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];
    bool all = kind == MPL_OP_concat || kind == MPL_OP_sum ||
               (mpl_op_table[kind].traits & MPL_ELEMENTWISE) != 0;

    return kind == MPL_OP_conv_sum ? 2 : all && kind != MPL_OP_clip ? mpl_op_n_in(g, op) : 1;
}

const char *mpl_layout_name(mpl_layout layout)
{
    return names[layout];
}

mpl_layout mpl_layout_named(const char *mode)
{
    uint32_t k = 0;

    while (k < MPL_N_LAYOUTS && strcmp(mode, names[k]) != 0)
        k++;
    return (mpl_layout)k;
}

bool mpl_layout_takes(mpl_layout layout, const mpl_shape *image)
{
    return layout == MPL_PLAIN ||
           (image->rank == 4 && (layout == MPL_LAST || image->dim[1] % MPL_BLOCK == 0));
}

mpl_layout mpl_layout_of(const mpl_graph *g, mpl_value v)
{
    while (v != MPL_NONE && g->value_op[v] != MPL_NONE) {
        mpl_op op = g->value_op[v];
        mpl_op_kind kind = (mpl_op_kind)g->op_kind[op];

        if (kind == MPL_OP_reorder || mpl_turns_layout(g, op))
            return mpl_layout_named(mpl_attr_text(g, op, MPL_ATTR_mode, "plain"));
        if (!mpl_keeps_layout(kind) || g->op_in_begin[op] == g->op_in_begin[op + 1])
            return MPL_PLAIN;
        v = g->op_in[g->op_in_begin[op]];
    }
    return MPL_PLAIN;
}

bool mpl_channels_last(const mpl_graph *g, mpl_value v)
{
    return mpl_layout_of(g, v) == MPL_LAST;
}

/* Dims in channels-last order. */
static const uint32_t last_order[MPL_MAX_RANK] = {0, 2, 3, 1};

mpl_strided mpl_box_laid(const mpl_graph *g, mpl_value root, const mpl_strided *box, bool last)
{
    const mpl_shape *whole = &g->value_shape[root];
    mpl_strided plain = mpl_strided_all(whole), laid = *box;
    int64_t stride[MPL_MAX_RANK], n = 1;

    if (!last)
        return laid;
    mpl_assert(whole->rank == 4 && box->shape.rank == 4);
    for (uint32_t k = 4; k-- > 0; n *= whole->dim[last_order[k]])
        stride[last_order[k]] = n;
    laid.offset = 0;
    for (uint32_t i = 0; i < 4; i++) {
        laid.offset += box->offset / plain.stride[i] % whole->dim[i] * stride[i];
        laid.stride[i] = stride[i];
    }
    return laid;
}

void mpl_box_turn(mpl_strided *laid)
{
    if (!mpl_strided_permute(laid, last_order))
        mpl_assert(false);
}

bool mpl_box_is_run(const mpl_strided *laid, bool last)
{
    mpl_strided turned = *laid;

    if (last)
        mpl_box_turn(&turned);
    return mpl_strided_contiguous(&turned);
}
