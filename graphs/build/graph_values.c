/* graph_values.c -- names, sizes and storage of values during building. See graph_priv.h. */
#include "graphs/build/graph_priv.h"

static uint32_t slot_of(const mpl_graph *g, const char *name)
{
    uint32_t mask = g->caps->n_slots - 1;
    uint32_t at = (uint32_t)mpl_table_hash(0, name, strlen(name)) & mask;

    while (g->caps->slot[at] != MPL_NONE && strcmp(g->value_name[g->caps->slot[at]], name) != 0)
        at = (at + 1) & mask;
    return at;
}

mpl_value mpl_graph_find(const mpl_graph *g, const char *name)
{
    return g->caps->slot[slot_of(g, name)];
}

/* Keeps more than half of the slots free for `n` names. */
static mpl_status grow_slots(mpl_ctx *ctx, mpl_graph *g, uint32_t n)
{
    mpl_value *fresh = NULL;
    uint32_t n_slots = g->caps->n_slots;

    while (n_slots <= 2 * n)
        n_slots *= 2;
    if (n_slots == g->caps->n_slots)
        return MPL_OK;
    MPL_PASS(mpl_new(ctx, fresh, n_slots));
    memset(fresh, 0xff, n_slots * sizeof *fresh);
    mpl_free(ctx, g->caps->slot);
    g->caps->slot = fresh;
    g->caps->n_slots = n_slots;
    for (mpl_value v = 0; v < g->n_values; v++)
        g->caps->slot[slot_of(g, g->value_name[v])] = v;
    return MPL_OK;
}

mpl_status mpl_graph_bytes_of(mpl_ctx *ctx, const char *name, mpl_type type, const mpl_shape *shape,
                              uint64_t *bytes)
{
    char text[200];
    uint64_t count;

    if (shape->rank > MPL_MAX_RANK)
        return MPL_REFUSE(ctx, "value '%s' has %u dims; at most %d are supported", name,
                          shape->rank, MPL_MAX_RANK);
    if (!mpl_shape_count(shape, &count) || !mpl_type_size(type, count, bytes))
        return MPL_REFUSE(ctx, "value '%s' has dims %s: negative, or more than 2^63 bytes", name,
                          mpl_shape_text(shape, text));
    return MPL_OK;
}

mpl_status mpl_graph_reserve_values(mpl_ctx *ctx, mpl_graph *g, uint32_t n)
{
    struct mpl_graph_caps *caps = g->caps;
    size_t want = (size_t)g->n_values + n;

    if (want >= MPL_NONE / 4)
        return MPL_REFUSE(ctx, "graph '%s' has more than 2^30 values", g->name);
    MPL_PASS(mpl_reserve(ctx, g->value_name, caps->value_name, want));
    MPL_PASS(mpl_reserve(ctx, g->value_type, caps->value_type, want));
    MPL_PASS(mpl_reserve(ctx, g->value_role, caps->value_role, want));
    MPL_PASS(mpl_reserve(ctx, g->value_shape, caps->value_shape, want));
    MPL_PASS(mpl_reserve(ctx, g->value_bytes, caps->value_bytes, want));
    MPL_PASS(mpl_reserve(ctx, g->value_op, caps->value_op, want));
    MPL_PASS(mpl_reserve(ctx, g->value_data, caps->value_data, want));
    MPL_PASS(mpl_reserve(ctx, g->value_splat, caps->value_splat, want));
    MPL_PASS(mpl_reserve(ctx, g->value_block, caps->value_block, want));
    return grow_slots(ctx, g, (uint32_t)want);
}

mpl_value mpl_graph_push_value(mpl_graph *g, char *name, mpl_role role, mpl_type type,
                               const mpl_shape *shape, uint64_t bytes, mpl_op op, uint32_t block)
{
    mpl_value v = g->n_values;

    g->value_name[v] = name;
    g->value_type[v] = (uint8_t)type;
    g->value_role[v] = (uint8_t)role;
    g->value_shape[v] = *shape;
    for (uint32_t i = shape->rank; i < MPL_MAX_RANK; i++)
        g->value_shape[v].dim[i] = 0;
    g->value_bytes[v] = bytes;
    g->value_op[v] = op;
    g->value_data[v] = NULL;
    g->value_splat[v] = 0;
    g->value_block[v] = block;
    g->caps->slot[slot_of(g, name)] = v;
    g->n_values++;
    return v;
}

mpl_status mpl_graph_check_new_name(mpl_ctx *ctx, const mpl_graph *g, const char *name)
{
    if (mpl_graph_find(g, name) == MPL_NONE)
        return MPL_OK;
    return MPL_REFUSE(ctx, "value '%s' is made twice; names must be unique", name);
}
