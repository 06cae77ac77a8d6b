/* tensor_ssa_reduce.c -- steps 2 and 3 of tensor_ssa: rewrites nodes and forwards values until no
 * rule applies. See tensor_ssa_priv.h. */
#include "graphs/passes/ssa/tensor_ssa_priv.h"

bool mpl_ssa_apart(mpl_ssa *ssa, const mpl_strided *a, const mpl_strided *b)
{
    switch (mpl_strided_meet(a, b, 0)) {
    case MPL_APART:
        ssa->facts->n_apart++;
        return true;
    case MPL_MEET:
        ssa->facts->n_meet++;
        return false;
    default:
        ssa->facts->n_undecided++;
        return false;
    }
}

/* The first live node above `at` that writes a box of v; MPL_NONE. */
static uint32_t overwriter(const mpl_ssa *ssa, uint32_t v, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (ssa->node[i].live &&
            (ssa->node[i].kind == MPL_OP_assign || ssa->node[i].kind == MPL_OP_fused) &&
            mpl_ssa_in(ssa, &ssa->node[i], 0) == v)
            return i;
    return MPL_NONE;
}

bool mpl_ssa_version(mpl_ssa *ssa, uint32_t v, const mpl_strided *box, uint32_t at,
                     uint32_t *version)
{
    uint32_t at_write;

    while ((at_write = overwriter(ssa, v, at)) != MPL_NONE) {
        const mpl_ssa_node *node = &ssa->node[at_write];

        if (node->kind == MPL_OP_fused && node->fused == NULL) /* the program's own */
            return false;
        if (!mpl_ssa_apart(ssa, box, node->fused != NULL ? &node->fused->to : &node->box))
            return false;
        v = mpl_ssa_find(ssa, mpl_ssa_out(ssa, node));
    }
    *version = v;
    return true;
}

static bool same_dims(const mpl_ssa *ssa, uint32_t v, const mpl_shape *dims)
{
    return mpl_shape_equal(&ssa->value[v].shape, dims);
}

static uint64_t count_of(const mpl_ssa *ssa, uint32_t v)
{
    uint64_t n = 0;

    mpl_shape_count(&ssa->value[v].shape, &n);
    return n;
}

static bool is_empty(const mpl_shape *shape)
{
    uint64_t n;

    return mpl_shape_count(shape, &n) && n == 0;
}

/* The value of an access of that box of v above node `at`, or MPL_NONE. Until nodes are dropped, an
 * unread one will do, too: it is above later writes elsewhere in v. */
static uint32_t find_access(const mpl_ssa *ssa, uint32_t v, const mpl_strided *box, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if ((ssa->node[i].live || !ssa->dropping) && ssa->node[i].kind == MPL_OP_access &&
            mpl_ssa_in(ssa, &ssa->node[i], 0) == v && mpl_strided_equal(&ssa->node[i].box, box) &&
            ssa->value[mpl_ssa_out(ssa, &ssa->node[i])].forward == MPL_NONE)
            return mpl_ssa_out(ssa, &ssa->node[i]);
    return MPL_NONE;
}

/* The value with the contents of box `box` of v, made above node `at`; MPL_NONE: unknown. */
static uint32_t find_contents(mpl_ssa *ssa, uint32_t v, const mpl_strided *box, uint32_t at)
{
    for (;;) {
        const mpl_ssa_node *assign = mpl_ssa_maker(ssa, v, MPL_OP_assign);
        uint32_t found = find_access(ssa, v, box, at);

        if (found != MPL_NONE || assign == NULL)
            return found;
        if (mpl_strided_equal(box, &assign->box) &&
            same_dims(ssa, mpl_ssa_in(ssa, assign, 1), &box->shape))
            return mpl_ssa_in(ssa, assign, 1);
        if (!mpl_ssa_apart(ssa, box, &assign->box))
            return MPL_NONE;
        v = mpl_ssa_in(ssa, assign, 0);
    }
}

static void forward(mpl_ssa *ssa, mpl_ssa_node *node, uint32_t to, bool *changed)
{
    mpl_assert(mpl_ssa_find(ssa, to) != mpl_ssa_out(ssa, node));
    ssa->value[mpl_ssa_out(ssa, node)].forward = to;
    node->live = false;
    *changed = true;
}

static mpl_status reduce_access(mpl_ssa *ssa, uint32_t at, bool *changed)
{
    mpl_ssa_node *node = &ssa->node[at];
    uint32_t v = mpl_ssa_in(ssa, node, 0), found;
    const mpl_ssa_node *assign = mpl_ssa_maker(ssa, v, MPL_OP_assign);

    if (mpl_strided_whole(&node->box, count_of(ssa, v)) && same_dims(ssa, v, &node->box.shape)) {
        forward(ssa, node, v, changed);
        return MPL_OK;
    }
    found = find_contents(ssa, v, &node->box, at);
    if (found != MPL_NONE) {
        forward(ssa, node, found, changed);
        return MPL_OK;
    }
    /* The assigned value is all of v, in the same order. */
    if (assign != NULL && mpl_strided_whole(&assign->box, count_of(ssa, v)) &&
        same_dims(ssa, mpl_ssa_in(ssa, assign, 1), &assign->box.shape)) {
        MPL_PASS(mpl_ssa_set_in(ssa, at, 1, (const uint32_t[]){mpl_ssa_in(ssa, assign, 1)}));
        *changed = true;
    }
    return MPL_OK;
}

/* Drops an earlier assign to the box of v that only later assigns read: it is never seen. */
static void drop_overwritten(mpl_ssa *ssa, uint32_t v, const mpl_strided *box, bool *changed)
{
    mpl_ssa_node *before = mpl_ssa_maker(ssa, v, MPL_OP_assign);

    if (before != NULL)
        mpl_ssa_count(ssa, false); /* rules have changed uses since the round began */
    while (before != NULL && ssa->value[v].n_uses == 1) {
        if (mpl_strided_equal(&before->box, box)) {
            forward(ssa, before, mpl_ssa_in(ssa, before, 0), changed);
            return;
        }
        v = mpl_ssa_in(ssa, before, 0);
        before = mpl_ssa_maker(ssa, v, MPL_OP_assign);
    }
}

static mpl_status reduce_assign(mpl_ssa *ssa, uint32_t at, bool *changed)
{
    mpl_ssa_node *node = &ssa->node[at];
    uint32_t v = mpl_ssa_in(ssa, node, 0), what = mpl_ssa_in(ssa, node, 1);
    const mpl_ssa_node *read = mpl_ssa_maker(ssa, what, MPL_OP_access);

    if (is_empty(&node->box.shape)) {
        forward(ssa, node, v, changed);
    } else if (mpl_strided_whole(&node->box, count_of(ssa, v)) &&
               same_dims(ssa, what, &node->box.shape)) {
        if (same_dims(ssa, what, &ssa->value[v].shape)) {
            forward(ssa, node, what, changed);
            return MPL_OK;
        }
        node->kind = MPL_OP_access; /* the same elements with the dims of v */
        node->box = mpl_strided_all(&ssa->value[v].shape);
        MPL_PASS(mpl_ssa_set_in(ssa, at, 1, &what));
        *changed = true;
    } else if (read != NULL && mpl_ssa_in(ssa, read, 0) == v &&
               mpl_strided_equal(&read->box, &node->box)) {
        forward(ssa, node, v, changed);
    } else if (ssa->dropping) {
        drop_overwritten(ssa, v, &node->box, changed);
    }
    return MPL_OK;
}

/* ---- step 3 ---- */

static mpl_status merge_access(mpl_ssa *ssa, uint32_t at, bool *changed)
{
    mpl_ssa_node *node = &ssa->node[at];
    const mpl_ssa_node *below = mpl_ssa_maker(ssa, mpl_ssa_in(ssa, node, 0), MPL_OP_access);
    mpl_strided box;
    uint32_t from;

    if (below == NULL || !mpl_strided_compose(&below->box, &node->box, &box) ||
        !mpl_ssa_version(ssa, mpl_ssa_in(ssa, below, 0), &box, at, &from))
        return MPL_OK;
    node->box = box;
    MPL_PASS(mpl_ssa_set_in(ssa, at, 1, &from));
    *changed = true;
    return MPL_OK;
}

static bool reads_between(const mpl_ssa *ssa, uint32_t v, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; i++)
        for (uint32_t k = 0; k < ssa->node[i].n_in && ssa->node[i].live; k++)
            if (mpl_ssa_in(ssa, &ssa->node[i], k) == v)
                return true;
    return false;
}

/* If the value assigned to v was itself made by an assign, into v's contents: assigns the small
 * part directly to v, and reads the larger value back where it is still needed. The two nodes swap
 * places. */
static mpl_status merge_assign(mpl_ssa *ssa, uint32_t at, bool *changed)
{
    mpl_ssa_node *node = &ssa->node[at],
                 *part = mpl_ssa_maker(ssa, mpl_ssa_in(ssa, node, 1), MPL_OP_assign);
    uint32_t v = mpl_ssa_in(ssa, node, 0), place, made, made_part, small[2];
    mpl_strided box;

    if (part == NULL || !same_dims(ssa, mpl_ssa_out(ssa, part), &node->box.shape) ||
        !mpl_strided_compose(&node->box, &part->box, &box))
        return MPL_OK;
    place = (uint32_t)(part - ssa->node);
    made = mpl_ssa_out(ssa, node);
    made_part = mpl_ssa_out(ssa, part);
    if (ssa->value[v].node != MPL_NONE && ssa->value[v].node >= place)
        return MPL_OK;
    if (find_contents(ssa, v, &node->box, place) != mpl_ssa_in(ssa, part, 0) ||
        reads_between(ssa, made_part, place + 1, at))
        return MPL_OK;
    small[0] = v;
    small[1] = mpl_ssa_in(ssa, part, 1);
    node->kind = MPL_OP_access;
    ssa->item[node->out] = made_part;
    ssa->item[part->out] = made;
    ssa->value[made_part].node = at;
    ssa->value[made].node = place;
    part->box = box;
    part->from = MPL_NONE;
    MPL_PASS(mpl_ssa_set_in(ssa, place, 2, small));
    MPL_PASS(mpl_ssa_set_in(ssa, at, 1, &made));
    *changed = true;
    return MPL_OK;
}

static mpl_status apply_rules(mpl_ssa *ssa, bool merge)
{
    bool changed;

    do {
        changed = false;
        mpl_ssa_count(ssa, false);
        for (uint32_t i = 0; i < ssa->n_nodes; i++) {
            if (ssa->node[i].live && ssa->node[i].kind == MPL_OP_access)
                MPL_PASS(reduce_access(ssa, i, &changed));
            if (ssa->node[i].live && ssa->node[i].kind == MPL_OP_assign)
                MPL_PASS(reduce_assign(ssa, i, &changed));
            if (merge && ssa->node[i].live && ssa->node[i].kind == MPL_OP_access)
                MPL_PASS(merge_access(ssa, i, &changed));
            if (merge && ssa->node[i].live && ssa->node[i].kind == MPL_OP_assign)
                MPL_PASS(merge_assign(ssa, i, &changed));
        }
    } while (changed);
    return MPL_OK;
}

mpl_status mpl_ssa_reduce(mpl_ssa *ssa, bool merge)
{
    if (!ssa->dropping)
        MPL_PASS(apply_rules(ssa, false));
    ssa->dropping = true;
    return apply_rules(ssa, merge);
}
