/* tensor_ssa_fuse.c -- step 4 of tensor_ssa: fuses element-wise operations with their producers and
 * the assigns that read them.
 *
 * A node that could be fused has its operations as steps (mpl_fused); until the end, a load's
 * `input` is a value. The node becomes MPL_OP_fused with the first node that it merges. Then input
 * 0 is its base, and the other inputs are what it loads. */
#include "graphs/passes/ssa/tensor_ssa_priv.h"

typedef struct fuser {
    mpl_ssa *ssa;
    bool across;
} fuser;

static bool may_fuse(const mpl_ssa *ssa, const mpl_ssa_node *node)
{
    const mpl_graph *g = ssa->g;
    uint32_t arity = mpl_fused_arity(node->kind);

    return arity > 0 && node->n_in == arity && node->n_out == 1 && node->fused == NULL &&
           mpl_type_in(ssa->value[mpl_ssa_out(ssa, node)].type, MPL_SET_FLOAT) &&
           (node->from == MPL_NONE ||
            g->op_attr_begin[node->from] == g->op_attr_begin[node->from + 1]);
}

/* Turns the node's one operation into steps. */
static mpl_status begin(mpl_ssa *ssa, mpl_ssa_node *node)
{
    mpl_status st = MPL_OK;
    mpl_fused *fused = NULL;

    MPL_TRY(mpl_new(ssa->ctx, fused, 1));
    fused->to = mpl_strided_all(&ssa->value[mpl_ssa_out(ssa, node)].shape);
    for (uint32_t i = 0; i < node->n_in; i++) {
        fused->load[i].input = mpl_ssa_in(ssa, node, i);
        fused->load[i].from = mpl_strided_all(&ssa->value[fused->load[i].input].shape);
        if (!mpl_strided_expand(&fused->load[i].from, &fused->to.shape))
            mpl_assert(false);
        fused->step[i].kind = MPL_STEP_LOAD;
        fused->step[i].of = i;
    }
    fused->step[node->n_in].kind = node->kind;
    fused->n_loads = node->n_in;
    fused->n_steps = node->n_in + 1;
    node->fused = fused, fused = NULL;
out:
    mpl_free(ssa->ctx, fused);
    return st;
}

/* Largest number of values on the stack. */
static uint32_t depth_of(const mpl_fused *fused)
{
    uint32_t depth = 0, most = 0;

    for (uint32_t i = 0; i < fused->n_steps; i++) {
        depth +=
            fused->step[i].kind == MPL_STEP_LOAD ? 1 : 1 - mpl_fused_arity(fused->step[i].kind);
        most = depth > most ? depth : most;
    }
    return most;
}

/* Replaces load k of f by the steps of g, with g's loads composed with that load's box. False when
 * the boxes do not compose or a limit is exceeded; f is then unusable. */
static bool put_in(mpl_fused *f, uint32_t k, const mpl_fused *g)
{
    mpl_fused made = {.to = f->to};
    uint32_t new_of[MPL_FUSED_LOADS];

    if (f->n_loads - 1 + g->n_loads > MPL_FUSED_LOADS ||
        f->n_steps - 1 + g->n_steps > MPL_FUSED_STEPS)
        return false;
    for (uint32_t i = 0; i < f->n_loads; i++) {
        new_of[i] = made.n_loads;
        if (i != k)
            made.load[made.n_loads++] = f->load[i];
    }
    for (uint32_t i = 0; i < f->n_steps; i++) {
        if (f->step[i].kind != MPL_STEP_LOAD || f->step[i].of != k) {
            made.step[made.n_steps] = f->step[i];
            made.step[made.n_steps++].of =
                f->step[i].kind == MPL_STEP_LOAD ? new_of[f->step[i].of] : 0;
            continue;
        }
        for (uint32_t j = 0; j < g->n_steps; j++) {
            made.step[made.n_steps] = g->step[j];
            made.step[made.n_steps++].of =
                g->step[j].kind == MPL_STEP_LOAD ? made.n_loads + g->step[j].of : 0;
        }
    }
    for (uint32_t j = 0; j < g->n_loads; j++) {
        made.load[made.n_loads].input = g->load[j].input;
        if (!mpl_strided_compose(&g->load[j].from, &f->load[k].from,
                                 &made.load[made.n_loads++].from))
            return false;
    }
    *f = made;
    return depth_of(f) <= MPL_FUSED_DEPTH;
}

/* Makes every load read a version that exists at node `at`. False when one does not. */
static bool place_loads(mpl_ssa *ssa, mpl_fused *fused, uint32_t at)
{
    for (uint32_t i = 0; i < fused->n_loads; i++)
        if (!mpl_ssa_version(ssa, fused->load[i].input, &fused->load[i].from, at,
                             &fused->load[i].input))
            return false;
    return true;
}

/* The producer of v as steps: an access as one load, or a chain; NULL: anything else. */
static const mpl_fused *producer(const fuser *fu, uint32_t v, const mpl_strided *from,
                                 mpl_fused *room)
{
    const mpl_ssa *ssa = fu->ssa;
    const mpl_ssa_node *access = mpl_ssa_maker(ssa, v, MPL_OP_access), *node;
    uint64_t had, made;

    if (access != NULL) {
        if (!fu->across)
            return NULL;
        memset(room, 0, sizeof *room);
        room->to = mpl_strided_all(&access->box.shape);
        room->n_loads = room->n_steps = 1;
        room->load[0] = (mpl_fused_load){mpl_ssa_in(ssa, access, 0), access->box};
        room->step[0].kind = MPL_STEP_LOAD;
        return room;
    }
    node = ssa->value[v].node == MPL_NONE ? NULL : &ssa->node[ssa->value[v].node];
    if (node == NULL || node->fused == NULL || ssa->value[v].n_uses != 1 ||
        (node->kind == MPL_OP_fused && mpl_ssa_in(ssa, node, 0) != MPL_NONE))
        return NULL;
    if (!mpl_shape_count(&from->shape, &made) || !mpl_shape_count(&ssa->value[v].shape, &had) ||
        made > had)
        return NULL; /* repeated elements would be computed repeatedly */
    if (!fu->across &&
        !(mpl_strided_whole(from, had) && mpl_shape_equal(&from->shape, &ssa->value[v].shape)))
        return NULL;
    return node->fused;
}

/* Sets the inputs that the steps of a node read: its base, then each value once. */
static mpl_status set_inputs(mpl_ssa *ssa, uint32_t at, uint32_t base)
{
    const mpl_fused *fused = ssa->node[at].fused;
    uint32_t in[MPL_FUSED_LOADS + 1], n = 1;

    in[0] = base;
    for (uint32_t i = 0; i < fused->n_loads; i++) {
        bool seen = false;

        for (uint32_t k = 0; k < n; k++)
            seen = seen || in[k] == fused->load[i].input;
        if (!seen)
            in[n++] = fused->load[i].input;
    }
    ssa->node[at].kind = MPL_OP_fused;
    return mpl_ssa_set_in(ssa, at, n, in);
}

/* Merges producers into node `at` until none fits. */
static mpl_status grow(fuser *fu, uint32_t at)
{
    mpl_ssa *ssa = fu->ssa;
    mpl_ssa_node *node = &ssa->node[at];

    for (uint32_t k = 0; k < node->fused->n_loads;) {
        mpl_fused tried = *node->fused, room;
        const mpl_fused_load *load = &node->fused->load[k];
        const mpl_fused *from = producer(fu, load->input, &load->from, &room);

        if (from == NULL || !put_in(&tried, k, from) || !place_loads(ssa, &tried, at)) {
            k++;
            continue;
        }
        *node->fused = tried;
        MPL_PASS(set_inputs(ssa, at, MPL_NONE));
        mpl_ssa_count(ssa, false);
        k = 0;
    }
    return MPL_OK;
}

/* Whether each box read from the base equals the written box or does not overlap it. */
static bool base_is_safe(mpl_ssa *ssa, const mpl_fused *fused, uint32_t base)
{
    for (uint32_t i = 0; i < fused->n_loads; i++)
        if (fused->load[i].input == base && !mpl_strided_equal(&fused->load[i].from, &fused->to) &&
            !mpl_ssa_apart(ssa, &fused->load[i].from, &fused->to))
            return false;
    return true;
}

/* Merges the chain or box that makes an assign's operand into the assign. */
static mpl_status take_store(fuser *fu, uint32_t at)
{
    mpl_ssa *ssa = fu->ssa;
    mpl_ssa_node *node = &ssa->node[at];
    uint32_t base = mpl_ssa_in(ssa, node, 0), what = mpl_ssa_in(ssa, node, 1);
    mpl_strided all = mpl_strided_all(&ssa->value[what].shape);
    mpl_fused room, tried;
    const mpl_fused *from = producer(fu, what, &all, &room);

    if (from == NULL || !mpl_type_in(ssa->value[base].type, MPL_SET_FLOAT) ||
        !mpl_shape_equal(&all.shape, &node->box.shape))
        return MPL_OK;
    tried = *from;
    tried.to = node->box;
    if (!place_loads(ssa, &tried, at) || !base_is_safe(ssa, &tried, base))
        return MPL_OK;
    MPL_PASS(mpl_new(ssa->ctx, node->fused, 1));
    *node->fused = tried;
    MPL_PASS(set_inputs(ssa, at, base));
    mpl_ssa_count(ssa, false);
    return MPL_OK;
}

static bool read_below(const mpl_ssa *ssa, uint32_t v, uint32_t at)
{
    for (uint32_t i = 0; i < ssa->g->n_outputs; i++)
        if (mpl_ssa_find(ssa, ssa->output[i]) == v)
            return true;
    for (uint32_t i = at + 1; i < ssa->n_nodes; i++)
        for (uint32_t k = 0; k < ssa->node[i].n_in && ssa->node[i].live; k++)
            if (mpl_ssa_in(ssa, &ssa->node[i], k) == v)
                return true;
    return false;
}

/* An input with the result's dims, read in order and not read below; MPL_NONE. */
static uint32_t find_base(mpl_ssa *ssa, uint32_t at)
{
    const mpl_fused *fused = ssa->node[at].fused;

    for (uint32_t i = 0; i < fused->n_loads; i++) {
        uint32_t v = fused->load[i].input;

        if (ssa->value[v].node != MPL_NONE &&
            mpl_shape_equal(&ssa->value[v].shape, &fused->to.shape) &&
            mpl_strided_equal(&fused->load[i].from, &fused->to) && !read_below(ssa, v, at) &&
            base_is_safe(ssa, fused, v))
            return v;
    }
    return MPL_NONE;
}

/* Replaces each load's value by the index of its input. */
static mpl_status finish(mpl_ssa *ssa, uint32_t at)
{
    mpl_ssa_node *node = &ssa->node[at];
    uint32_t base = mpl_ssa_in(ssa, node, 0);

    MPL_PASS(set_inputs(ssa, at, base != MPL_NONE ? base : find_base(ssa, at)));
    for (uint32_t i = 0; i < node->fused->n_loads; i++) {
        uint32_t k = 0;

        while (mpl_ssa_in(ssa, node, k) != node->fused->load[i].input)
            k++;
        node->fused->load[i].input = k;
    }
    return MPL_OK;
}

mpl_status mpl_ssa_fuse(mpl_ssa *ssa, bool across)
{
    fuser fu = {ssa, across};

    mpl_ssa_count(ssa, false);
    for (uint32_t i = 0; i < ssa->n_nodes; i++) {
        if (ssa->node[i].live && may_fuse(ssa, &ssa->node[i])) {
            MPL_PASS(begin(ssa, &ssa->node[i]));
            MPL_PASS(grow(&fu, i));
        } else if (ssa->node[i].live && ssa->node[i].kind == MPL_OP_assign && across) {
            MPL_PASS(take_store(&fu, i));
        }
    }
    for (uint32_t i = 0; i < ssa->n_nodes; i++)
        if (ssa->node[i].live && ssa->node[i].kind == MPL_OP_fused && ssa->node[i].fused != NULL)
            MPL_PASS(finish(ssa, i));
    return MPL_OK;
}
