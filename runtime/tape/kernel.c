/* kernel.c -- operations prepared once for operands of given forms. See tape_priv.h.
 *
 * A kernel is a graph of one operation, finished, so that a backend prepares it as any other. What
 * it may know of its operands is in its key: types and dims, and which weights never change. */
#include "runtime/tape/tape_priv.h"

#include <stdlib.h>

enum { HEADS = sizeof((mpl_tape *)NULL)->kernel / sizeof(mpl_kernel *) };

static const mpl_slot *slot_of(const mpl_tape *tape, mpl_handle h)
{
    return &tape->slot[(uint32_t)h];
}

/* The weight's handle if its contents never change, else 0. */
static mpl_handle constant(const mpl_tape *tape, mpl_handle h)
{
    return h != 0 && slot_of(tape, h)->is_weight && !slot_of(tape, h)->changes ? h : 0;
}

static bool omitted(const mpl_tape_call *call, uint32_t i)
{
    return call->omitted != NULL && call->omitted[i] != 0;
}

static uint64_t hash_call(const mpl_tape *tape, const mpl_tape_call *call)
{
    uint32_t counts[] = {(uint32_t)call->kind, call->n_in, call->n_out, call->n_attr};
    uint64_t h = mpl_hash(MPL_HASH_SEED, counts, sizeof counts);

    for (uint32_t i = 0; i < call->n_in; i++) {
        mpl_handle weight = constant(tape, call->in[i]);
        const mpl_slot *slot = slot_of(tape, call->in[i]);

        h = mpl_hash(h, &weight, sizeof weight);
        if (call->in[i] != 0)
            h = mpl_hash(h, slot->shape.dim, slot->shape.rank * sizeof *slot->shape.dim);
    }
    for (uint32_t i = 0; i < call->n_attr; i++)
        if (call->attr[i].ints != NULL)
            h = mpl_hash(h, call->attr[i].ints, call->attr[i].n * sizeof *call->attr[i].ints);
    return h;
}

static bool same_attr(const mpl_attr *a, const mpl_attr *b)
{
    return a->key == b->key && a->n == b->n &&
           (a->ints == NULL || memcmp(a->ints, b->ints, a->n * sizeof *a->ints) == 0) &&
           (a->floats == NULL || memcmp(a->floats, b->floats, a->n * sizeof *a->floats) == 0) &&
           (a->text == NULL || memcmp(a->text, b->text, a->n) == 0);
}

bool mpl_kernel_fits(const mpl_tape *tape, const mpl_kernel *kernel, const mpl_tape_call *call)
{
    const mpl_graph *g = kernel->g;

    if (g->op_kind[0] != call->kind || mpl_kernel_n_in(kernel) != call->n_in ||
        mpl_kernel_n_out(kernel) != call->n_out || g->op_attr_begin[1] != call->n_attr)
        return false;
    for (uint32_t i = 0; i < call->n_in; i++) {
        const mpl_slot *slot = slot_of(tape, call->in[i]);

        if ((call->in[i] == 0) != (g->op_in[i] == MPL_NONE))
            return false;
        if (call->in[i] != 0 &&
            (kernel->weight[i] != constant(tape, call->in[i]) || slot->type != kernel->in[i].type ||
             !mpl_shape_equal(&slot->shape, &kernel->in[i].shape)))
            return false;
    }
    for (uint32_t i = 0; i < call->n_out; i++)
        if (omitted(call, i) != (g->op_out[i] == MPL_NONE))
            return false;
    for (uint32_t i = 0; i < call->n_attr; i++) {
        mpl_attr attr = mpl_attr_at(g, i);

        if (!same_attr(&attr, &call->attr[i]))
            return false;
    }
    return true;
}

bool mpl_kernel_is_view(const mpl_kernel *kernel)
{
    return (mpl_op_table[kernel->g->op_kind[0]].traits & MPL_VIEW) != 0 &&
           mpl_op_lone_output(kernel->g, 0);
}

uint32_t mpl_kernel_updated(const mpl_kernel *kernel, uint32_t i)
{
    mpl_value v = mpl_updated(kernel->g, 0, i);

    for (uint32_t at = 0; v != MPL_NONE && at < mpl_kernel_n_in(kernel); at++)
        if (kernel->g->op_in[at] == v)
            return at;
    return MPL_NONE;
}

/* ---- making one ---- */

/* Whether an update operation gives operand i new contents. */
static bool is_updated(const mpl_tape_call *call, uint32_t i)
{
    uint32_t read = mpl_op_table[call->kind].min_in, n = mpl_n_updates(call->kind);

    return n > 0 && i < read && i >= read - n;
}

static mpl_status add_operand(mpl_tape *tape, const mpl_tape_call *call, uint32_t i, mpl_graph *g,
                              mpl_value *out)
{
    const mpl_slot *slot = slot_of(tape, call->in[i]);
    bool is_constant = constant(tape, call->in[i]) != 0;
    mpl_role role = is_constant || is_updated(call, i) ? MPL_WEIGHT : MPL_INPUT;
    char name[24];

    snprintf(name, sizeof name, "in%u", i);
    /* Backends look at constants of one element: bounds of a clip. */
    return is_constant && mpl_count(&slot->shape) == 1
               ? mpl_graph_add_const(tape->ctx, g, name, slot->type, &slot->shape,
                                     tape->store[slot->store].at, false, out)
               : mpl_graph_add_value(tape->ctx, g, name, role, slot->type, &slot->shape, out);
}

static mpl_status make_graph(mpl_tape *tape, const mpl_tape_call *call, mpl_graph **out)
{
    mpl_status st = MPL_OK;
    mpl_graph *g = NULL;
    mpl_value *in = NULL;
    char(*text)[24] = NULL;
    const char **name = NULL;

    MPL_TRY(mpl_new(tape->ctx, in, call->n_in));
    MPL_TRY(mpl_new_each(tape->ctx, call->n_out, text, name));
    MPL_TRY(mpl_graph_new(tape->ctx, mpl_op_table[call->kind].name, &g));
    for (uint32_t i = 0; i < call->n_in; i++) {
        in[i] = MPL_NONE;
        if (call->in[i] != 0)
            MPL_TRY(add_operand(tape, call, i, g, &in[i]));
    }
    for (uint32_t i = 0; i < call->n_out; i++) {
        snprintf(text[i], sizeof *text, "out%u", i);
        name[i] = omitted(call, i) ? NULL : text[i];
    }
    MPL_TRY(mpl_graph_add_op(tape->ctx, g, call->kind, mpl_op_table[call->kind].name, call->n_in,
                             in, call->n_attr, call->attr, call->n_out, name, NULL));
    for (uint32_t i = 0; i < call->n_out; i++)
        if (g->op_out[i] != MPL_NONE)
            MPL_TRY(mpl_graph_add_output(tape->ctx, g, g->op_out[i]));
    MPL_TRY(mpl_graph_finish(tape->ctx, g));
    *out = g, g = NULL;
out:
    mpl_graph_free(tape->ctx, g);
    mpl_free_each(tape->ctx, in, text, name);
    return st;
}

static void kernel_free(mpl_tape *tape, mpl_kernel *kernel)
{
    if (kernel == NULL)
        return;
    if (kernel->prepared != NULL)
        tape->options.backend->release(tape->options.dev, kernel->prepared);
    mpl_graph_free(tape->ctx, kernel->g);
    mpl_free_each(tape->ctx, kernel->in, kernel->out, kernel->weight, kernel);
}

static mpl_status make_operands(mpl_tape *tape, const mpl_tape_call *call, mpl_kernel *kernel)
{
    const mpl_graph *g = kernel->g;

    MPL_PASS(mpl_new(tape->ctx, kernel->in, call->n_in));
    MPL_PASS(mpl_new(tape->ctx, kernel->out, call->n_out));
    MPL_PASS(mpl_new(tape->ctx, kernel->weight, call->n_in));
    for (uint32_t i = 0; i < call->n_in + call->n_out; i++) {
        mpl_value v = i < call->n_in ? g->op_in[i] : g->op_out[i - call->n_in];

        if (v != MPL_NONE)
            *(i < call->n_in ? &kernel->in[i] : &kernel->out[i - call->n_in]) =
                (mpl_tensor){(mpl_type)g->value_type[v], g->value_shape[v], NULL};
    }
    for (uint32_t i = 0; i < call->n_in; i++)
        kernel->weight[i] = constant(tape, call->in[i]);
    return MPL_OK;
}

mpl_status mpl_kernel_get(mpl_tape *tape, const mpl_tape_call *call, mpl_kernel **out)
{
    mpl_status st = MPL_OK;
    uint64_t hash = hash_call(tape, call);
    mpl_kernel *kernel = tape->kernel[hash % HEADS];

    while (kernel != NULL && (kernel->hash != hash || !mpl_kernel_fits(tape, kernel, call)))
        kernel = kernel->next;
    if (kernel != NULL)
        return *out = kernel, MPL_OK;
    MPL_TRY(mpl_new(tape->ctx, kernel, 1));
    kernel->hash = hash;
    MPL_TRY(make_graph(tape, call, &kernel->g));
    MPL_TRY(make_operands(tape, call, kernel));
    if (!mpl_kernel_is_view(kernel))
        MPL_TRY(tape->options.backend->prepare(tape->options.dev, kernel->g, 0, &kernel->prepared,
                                               &kernel->workspace_bytes, NULL));
    kernel->next = tape->kernel[hash % HEADS];
    tape->kernel[hash % HEADS] = kernel;
    tape->facts.n_kernels++;
    *out = kernel, kernel = NULL;
out:
    kernel_free(tape, kernel);
    return st;
}

void mpl_kernels_sweep(mpl_tape *tape, bool all)
{
    for (uint32_t i = 0; i < HEADS; i++)
        for (mpl_kernel **at = &tape->kernel[i]; *at != NULL;) {
            mpl_kernel *kernel = *at;

            if (!all && (kernel->n_held > 0 || kernel->used + 1 >= tape->step)) {
                at = &kernel->next;
                continue;
            }
            *at = kernel->next;
            kernel_free(tape, kernel);
            tape->facts.n_kernels--;
        }
}
