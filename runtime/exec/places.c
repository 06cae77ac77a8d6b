/* places.c -- where the values of a graph with control flow lie as it runs. See exec_priv.h and
 * mpl_places.
 *
 * A place is evaluated when its value is born, and every operand that is the value or a view of it
 * is set to it. So values that never move cost nothing in a round, and operations find their
 * operands ready. */
#include "runtime/exec/exec_priv.h"

static const mpl_spot nowhere = {MPL_NONE, MPL_NONE, 0};

#define COPY(ctx, to, from, n) copy_array(ctx, (void **)&(to), from, n, sizeof *(to))
static mpl_status copy_array(mpl_ctx *ctx, void **to, const void *from, size_t n, size_t size)
{
    if ((*to = mpl_alloc(ctx, n, size)) == NULL)
        return MPL_EMEM;
    if (n > 0)
        memcpy(*to, from, n * size);
    return MPL_OK;
}

static uint32_t n_results(const mpl_graph *g)
{
    uint32_t n = 0;

    for (uint32_t b = 0; b < g->n_blocks; b++)
        n += g->block_n_results[b];
    return n;
}

/* Checks ranges and ids of the map's places, since all later code trusts them. */
static bool place_ok(const mpl_graph *g, const mpl_places *places, uint32_t id, uint32_t n_buffers)
{
    const mpl_place *p = &places->place[id];
    mpl_op op = p->of;

    for (uint32_t i = 0; i < p->n; i++)
        if (places->item[p->begin + i] >= id)
            return false;
    switch ((mpl_place_kind)p->kind) {
    case MPL_PLACE_BUFFER:
        return p->of < n_buffers;
    case MPL_PLACE_PINNED:
        return p->of < g->n_values && places->value_place[p->of] == MPL_NONE;
    case MPL_PLACE_CYCLE:
        return p->of < g->n_blocks && p->n > p->n_first;
    case MPL_PLACE_SLICE:
        return p->of < g->n_blocks && p->n == 1 && g->block_owner[p->of] != MPL_NONE;
    case MPL_PLACE_FINAL:
        return op < g->n_ops && g->op_kind[op] == MPL_OP_while && p->n == 2;
    case MPL_PLACE_BRANCH:
        return op < g->n_ops && g->op_kind[op] == MPL_OP_case &&
               p->n >= g->op_body_begin[op + 1] - g->op_body_begin[op];
    }
    return false;
}

static mpl_status take_places(mpl_exec *exec, const mpl_value_map *map)
{
    const mpl_graph *g = exec->g;
    const mpl_places *from = map->places;
    mpl_control *c = exec->control;
    uint32_t n_items = 0;

    for (uint32_t i = 0; i < from->n; i++) {
        if (!place_ok(g, from, i, exec->n_buffers))
            return MPL_ERROR(exec->ctx, MPL_EINVALID, "graph '%s': place %u of its values is none",
                             g->name, i);
        n_items = from->place[i].begin + from->place[i].n > n_items
                      ? from->place[i].begin + from->place[i].n
                      : n_items;
    }
    c->n_places = from->n;
    MPL_PASS(COPY(exec->ctx, c->place, from->place, from->n));
    MPL_PASS(COPY(exec->ctx, c->item, from->item, n_items));
    MPL_PASS(COPY(exec->ctx, c->value_place, from->value_place, g->n_values));
    MPL_PASS(COPY(exec->ctx, c->in_copied, from->in_copied, g->op_in_begin[g->n_ops]));
    MPL_PASS(COPY(exec->ctx, c->result_copied, from->result_copied, n_results(g)));
    MPL_PASS(mpl_new(exec->ctx, c->known, from->n));
    MPL_PASS(mpl_new(exec->ctx, c->holder, g->n_values));
    for (uint32_t i = 0; i < from->n; i++)
        c->known[i] = nowhere;
    for (mpl_value v = 0; v < g->n_values; v++) {
        c->holder[v] = mpl_exec_holder(map, v);
        if (c->value_place[v] != MPL_NONE && c->value_place[v] >= from->n)
            return MPL_ERROR(exec->ctx, MPL_EINVALID, "value '%s' is at place %u; there is none",
                             g->value_name[v], c->value_place[v]);
    }
    return MPL_OK;
}

mpl_status mpl_control_new(mpl_exec *exec, const mpl_value_map *map)
{
    mpl_ctx *ctx = exec->ctx;
    const mpl_graph *g = exec->g;
    mpl_control *c = exec->control;
    uint32_t results = n_results(g);

    c->unshared = map == NULL;
    if (map != NULL && map->places == NULL)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "graph '%s' has control flow; the map says nothing of places", g->name);
    if (exec->backend->copy == NULL)
        return MPL_ERROR(ctx, MPL_EUNAVAIL,
                         "graph '%s' has control flow, which backend '%s' does not run", g->name,
                         exec->backend->name);
    MPL_PASS(mpl_new(ctx, c->nowhere, g->n_values));
    MPL_PASS(mpl_new(ctx, c->staging, g->n_blocks));
    MPL_PASS(mpl_new_each(ctx, results, c->from, c->to, c->pending));
    MPL_PASS(mpl_new(ctx, c->open, g->n_ops));
    MPL_PASS(mpl_new_each(ctx, g->n_blocks, c->round, c->limit, c->fewest));
    MPL_PASS(mpl_new_each(ctx, g->n_ops, c->branch, c->op_copied_bytes));
    for (uint32_t b = 0; b < g->n_blocks; b++) {
        mpl_buffer staging = map != NULL ? map->places->staging[b] : MPL_NONE;

        if (staging != MPL_NONE && staging >= exec->n_buffers)
            return MPL_ERROR(ctx, MPL_EINVALID,
                             "block '%s' copies by way of buffer %u; there is none",
                             g->block_name[b], staging);
        c->staging[b] = (mpl_spot){MPL_NONE, staging, 0};
    }
    if (map != NULL)
        MPL_PASS(take_places(exec, map));
    return MPL_OK;
}

void mpl_control_free(mpl_ctx *ctx, mpl_control *c)
{
    if (c == NULL)
        return;

    mpl_program_free(ctx, c->program);
    mpl_needs_free(ctx, c->needs);
    mpl_free_each(ctx, c->place, c->item, c->known, c->in_copied, c->result_copied, c->holder,
                  c->value_place, c->member_begin, c->member, c->slot_begin, c->slot,
                  c->final_begin, c->final_item, c->staging, c->from, c->to, c->pending, c->open,
                  c->round, c->limit, c->branch, c->op_copied_bytes, c->block_work, c->nowhere,
                  c->arrival_of, c->arrival_begin, c->arrival, c->arrived, c->fewest, c);
}

/* ---- operands to point at a value that moves ---- */

/* The holder of operand `slot` if it moves. */
static mpl_value moving_holder(const mpl_exec *exec, uint32_t slot)
{
    const mpl_graph *g = exec->g;
    uint32_t n_in = g->op_in_begin[g->n_ops];
    mpl_value v = slot < n_in ? g->op_in[slot] : g->op_out[slot - n_in];

    return v != MPL_NONE && mpl_control_moves(exec, v) ? exec->control->holder[v] : MPL_NONE;
}

mpl_status mpl_control_bind_slots(mpl_exec *exec)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = exec->g;
    mpl_ctx *ctx = exec->ctx;
    mpl_control *c = exec->control;
    uint32_t n_slots = g->op_in_begin[g->n_ops] + g->op_out_begin[g->n_ops];
    uint32_t *of_slot = NULL, *of_value = NULL, *of_place = NULL;

    if (c == NULL || c->unshared)
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, of_slot, n_slots));
    MPL_TRY(mpl_new(ctx, of_value, g->n_values));
    MPL_TRY(mpl_new(ctx, of_place, c->n_places));
    for (uint32_t i = 0; i < n_slots; i++)
        of_slot[i] = moving_holder(exec, i);
    for (mpl_value v = 0; v < g->n_values; v++)
        of_value[v] = mpl_control_moves(exec, v) ? c->holder[v] : MPL_NONE;
    for (uint32_t i = 0; i < c->n_places; i++)
        of_place[i] = c->place[i].kind == MPL_PLACE_FINAL ? c->place[i].of : MPL_NONE;
    MPL_TRY(mpl_lists_new(ctx, g->n_values, n_slots, of_slot, NULL, &c->slot_begin, &c->slot));
    MPL_TRY(
        mpl_lists_new(ctx, g->n_values, g->n_values, of_value, NULL, &c->member_begin, &c->member));
    MPL_TRY(
        mpl_lists_new(ctx, g->n_ops, c->n_places, of_place, NULL, &c->final_begin, &c->final_item));
out:
    mpl_free_each(ctx, of_slot, of_value, of_place);
    return st;
}

/* ---- evaluating ---- */

static uint32_t cycle_item(const mpl_place *p, uint64_t round)
{
    return round < p->n_first ? (uint32_t)round
                              : p->n_first + (uint32_t)((round - p->n_first) % (p->n - p->n_first));
}

/* Offset of slice number `round` of a slice place from its start. */
static uint64_t slice_offset(const mpl_exec *exec, const mpl_place *p)
{
    uint64_t round = exec->control->round[p->of];

    if (p->reversed)
        round = (uint64_t)mpl_while_most_rounds(exec->g, exec->g->block_owner[p->of]) - 1 - round;
    return round * p->bytes;
}

static mpl_spot evaluate(const mpl_exec *exec, uint32_t id)
{
    const mpl_control *c = exec->control;
    const mpl_graph *g = exec->g;
    uint64_t offset = 0;
    mpl_spot spot;

    for (;;) {
        const mpl_place *p = &c->place[id];
        const uint32_t *item = c->item + p->begin;

        if (p->kind == MPL_PLACE_BUFFER || p->kind == MPL_PLACE_PINNED ||
            (p->kind == MPL_PLACE_FINAL && c->round[g->op_body[g->op_body_begin[p->of]]] > 0))
            break;
        if (p->kind == MPL_PLACE_CYCLE) {
            id = item[cycle_item(p, c->round[p->of])];
        } else if (p->kind == MPL_PLACE_BRANCH) {
            id = item[c->branch[p->of] != MPL_NONE ? c->branch[p->of] : p->n - 1];
        } else {
            offset += p->kind == MPL_PLACE_SLICE ? slice_offset(exec, p) : 0;
            id = item[0];
        }
    }
    spot = c->known[id];
    spot.offset += offset;
    return spot;
}

mpl_spot mpl_control_spot(const mpl_exec *exec, mpl_value v)
{
    return mpl_control_moves(exec, v)
               ? evaluate(exec, exec->control->value_place[exec->control->holder[v]])
           : exec->control->nowhere[v] ? nowhere
                                       : mpl_exec_spot(exec, v);
}

void mpl_control_note_final(mpl_exec *exec, mpl_op op)
{
    mpl_control *c = exec->control;

    for (uint32_t i = c->unshared ? 0 : c->final_begin[op];
         !c->unshared && i < c->final_begin[op + 1]; i++)
        c->known[c->final_item[i]] = evaluate(exec, c->item[c->place[c->final_item[i]].begin + 1]);
}

/* Whether all values with a holder, and all their operands, are where the holder is. */
static bool bound_ok(const mpl_exec *exec, mpl_value holder)
{
    const mpl_control *c = exec->control;
    uint32_t n_in = exec->g->op_in_begin[exec->g->n_ops];
    const char *at = mpl_exec_value_at(exec, holder);

    for (uint32_t i = c->member_begin[holder]; i < c->member_begin[holder + 1]; i++)
        if (mpl_exec_value_at(exec, c->member[i]) != at)
            return mpl_broken("value %u lies with value %u, and elsewhere", c->member[i], holder);
    for (uint32_t i = c->slot_begin[holder]; i < c->slot_begin[holder + 1]; i++)
        if ((c->slot[i] < n_in ? exec->in[c->slot[i]] : exec->out[c->slot[i] - n_in]).data != at)
            return mpl_broken("operand %u is not where value %u lies", c->slot[i], holder);
    return true;
}

void mpl_control_bind(mpl_exec *exec, mpl_value v, mpl_spot spot)
{
    const mpl_control *c = exec->control;
    mpl_value holder;
    uint32_t n_in = exec->g->op_in_begin[exec->g->n_ops];
    void *data;

    if (c->nowhere[v]) {
        exec->value_slab[v] = spot.slab;
        exec->value_offset[v] = spot.offset;
        exec->value_block[v] = spot.block;
    }
    if (!mpl_control_moves(exec, v))
        return;
    holder = c->holder[v];
    if (exec->value_slab[holder] == spot.slab && exec->value_offset[holder] == spot.offset &&
        exec->value_block[holder] == spot.block)
        return;
    data = spot.slab != MPL_NONE ? mpl_exec_at(exec, spot.slab, spot.offset) : NULL;
    for (uint32_t i = c->member_begin[holder]; i < c->member_begin[holder + 1]; i++) {
        exec->value_slab[c->member[i]] = spot.slab;
        exec->value_offset[c->member[i]] = spot.offset;
        exec->value_block[c->member[i]] = spot.block;
    }
    for (uint32_t i = c->slot_begin[holder]; i < c->slot_begin[holder + 1]; i++)
        (c->slot[i] < n_in ? &exec->in[c->slot[i]] : &exec->out[c->slot[i] - n_in])->data = data;
    mpl_assert_slow(bound_ok(exec, holder));
}
