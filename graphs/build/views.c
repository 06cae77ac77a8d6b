/* views.c -- trees of views in a program. See views.h. */
#include "graphs/build/views.h"

#include "graphs/ops/move/move_strided_priv.h"

/* Makes *v the elements that slice `op` takes of *v. */
static mpl_status take_slice(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, mpl_strided *view)
{
    int64_t start[MPL_MAX_RANK], step[MPL_MAX_RANK];
    mpl_shape to;

    MPL_PASS(mpl_slice_of(ctx, g, op, &view->shape, &to, start, step));
    for (uint32_t i = 0; i < to.rank; i++)
        if (!mpl_strided_take(view, i, start[i], step[i], to.dim[i]))
            mpl_assert(false);
    return MPL_OK;
}

static void take_part(const mpl_graph *g, mpl_op op, uint32_t k, mpl_strided *view)
{
    int64_t at = mpl_attr_int(g, op, MPL_ATTR_axis, 0), start = 0;
    uint32_t axis = (uint32_t)(at < 0 ? at + view->shape.rank : at), n;
    const int64_t *sizes = mpl_attr_ints(g, op, MPL_ATTR_split, &n);
    uint32_t n_out = g->op_out_begin[op + 1] - g->op_out_begin[op];
    int64_t chunk = (view->shape.dim[axis] + n_out - 1) / n_out, left = view->shape.dim[axis];

    for (uint32_t i = 0;; i++) {
        int64_t size = sizes != NULL ? sizes[i] : chunk < left ? chunk : left;

        if (i == k) {
            if (!mpl_strided_take(view, axis, start, 1, size))
                mpl_assert(false);
            return;
        }
        start += size;
        left -= size;
    }
}

/* Turns *v, the input of `op`, into the view that is output k; *is_view: whether it is one. */
static mpl_status follow(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, uint32_t k, mpl_strided *view,
                         bool *is_view)
{
    const mpl_shape *to = &g->value_shape[g->op_out[g->op_out_begin[op] + k]];
    uint32_t axis[MPL_MAX_RANK];

    *is_view = true;
    switch (g->op_kind[op]) {
    case MPL_OP_identity:
        break;
    case MPL_OP_view:
        MPL_PASS(mpl_strided_index(ctx, view, mpl_attr_text(g, op, MPL_ATTR_index, "")));
        break;
    case MPL_OP_reshape:
    case MPL_OP_flatten:
    case MPL_OP_squeeze:
    case MPL_OP_unsqueeze:
        *is_view = mpl_strided_reshape(view, to);
        break;
    case MPL_OP_slice:
        MPL_PASS(take_slice(ctx, g, op, view));
        break;
    case MPL_OP_split:
        take_part(g, op, k, view);
        break;
    case MPL_OP_transpose:
        for (uint32_t i = 0; i < view->shape.rank; i++)
            axis[i] = mpl_axis_from(g, op, view->shape.rank, i);
        *is_view = mpl_strided_permute(view, axis);
        break;
    case MPL_OP_expand:
        *is_view = mpl_strided_expand(view, to);
        break;
    default:
        *is_view = false;
    }
    return MPL_OK;
}

static mpl_status place(mpl_ctx *ctx, const mpl_graph *g, mpl_op op, uint32_t k, mpl_views *views)
{
    mpl_value v = g->op_out[g->op_out_begin[op] + k], in;
    mpl_strided of_parent, of_root;
    bool is_view;

    if (g->op_in_begin[op] == g->op_in_begin[op + 1] ||
        (in = g->op_in[g->op_in_begin[op]]) == MPL_NONE)
        return MPL_OK;
    if (g->op_kind[op] == MPL_OP_view && !mpl_has_index(g, op)) {
        mpl_value root = views->root[in];

        MPL_PASS(mpl_strided_of(ctx, g, op, &g->value_shape[root], &of_root));
        views->root[v] = views->parent[v] = root;
        views->of_root[v] = views->of_parent[v] = of_root;
        return MPL_OK;
    }
    of_root = views->of_root[in];
    of_parent = mpl_strided_all(&g->value_shape[in]);
    MPL_PASS(follow(ctx, g, op, k, &of_root, &is_view));
    if (!is_view)
        return MPL_OK;
    MPL_PASS(follow(ctx, g, op, k, &of_parent, &is_view));
    mpl_assert(is_view);
    views->root[v] = views->root[in];
    views->parent[v] = in;
    views->of_root[v] = of_root;
    views->of_parent[v] = of_parent;
    return MPL_OK;
}

mpl_status mpl_views_new(mpl_ctx *ctx, const mpl_graph *g, mpl_views **out)
{
    mpl_status st = MPL_OK;
    mpl_views *views = NULL;

    MPL_TRY(mpl_new(ctx, views, 1));
    views->n = g->n_values;
    MPL_TRY(mpl_new_each(ctx, g->n_values, views->root, views->parent, views->of_root,
                         views->of_parent));
    for (mpl_value v = 0; v < g->n_values; v++) {
        views->root[v] = v;
        views->parent[v] = MPL_NONE;
        views->of_root[v] = views->of_parent[v] = mpl_strided_all(&g->value_shape[v]);
    }
    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t k = 0; k < g->op_out_begin[op + 1] - g->op_out_begin[op]; k++)
            if (g->op_out[g->op_out_begin[op] + k] != MPL_NONE)
                MPL_TRY(place(ctx, g, op, k, views));
    *out = views, views = NULL;
out:
    mpl_views_free(ctx, views);
    return st;
}

void mpl_views_free(mpl_ctx *ctx, mpl_views *views)
{
    if (views == NULL)
        return;
    mpl_free_each(ctx, views->root, views->parent, views->of_root, views->of_parent, views);
}
