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
    const mpl_place *place = &places->place[id];
    mpl_op op = place->of;

    for (uint32_t i = 0; i < place->n; i++)
        if (places->item[place->begin + i] >= id)
            return false;
    switch ((mpl_place_kind)place->kind) {
    case MPL_PLACE_BUFFER:
        return place->of < n_buffers;
    case MPL_PLACE_PINNED:
        return place->of < g->n_values && places->value_place[place->of] == MPL_NONE;
    case MPL_PLACE_CYCLE:
        return place->of < g->n_blocks && place->n > place->n_first;
    case MPL_PLACE_SLICE:
        return place->of < g->n_blocks && place->n == 1 && g->block_owner[place->of] != MPL_NONE;
    case MPL_PLACE_FINAL:
        return op < g->n_ops && g->op_kind[op] == MPL_OP_while && place->n == 2;
    case MPL_PLACE_BRANCH:
        return op < g->n_ops && g->op_kind[op] == MPL_OP_case &&
               place->n >= g->op_body_begin[op + 1] - g->op_body_begin[op];
    }
    return false;
}

static mpl_status take_places(mpl_exec *exec, const mpl_value_map *map)
{
    const mpl_graph *g = exec->g;
    const mpl_places *from = map->places;
    mpl_control *control = exec->control;
    uint32_t n_items = 0;

    for (uint32_t i = 0; i < from->n; i++) {
        if (!place_ok(g, from, i, exec->n_buffers))
            return MPL_ERROR(exec->ctx, MPL_EINVALID, "graph '%s': place %u of its values is none",
                             g->name, i);
        n_items = from->place[i].begin + from->place[i].n > n_items
                      ? from->place[i].begin + from->place[i].n
                      : n_items;
    }
    control->n_places = from->n;
    MPL_PASS(COPY(exec->ctx, control->place, from->place, from->n));
    MPL_PASS(COPY(exec->ctx, control->item, from->item, n_items));
    MPL_PASS(COPY(exec->ctx, control->value_place, from->value_place, g->n_values));
    MPL_PASS(COPY(exec->ctx, control->in_copied, from->in_copied, g->op_in_begin[g->n_ops]));
    MPL_PASS(COPY(exec->ctx, control->result_copied, from->result_copied, n_results(g)));
    MPL_PASS(mpl_new(exec->ctx, control->known, from->n));
    MPL_PASS(mpl_new(exec->ctx, control->holder, g->n_values));
    for (uint32_t i = 0; i < from->n; i++)
        control->known[i] = nowhere;
    for (mpl_value v = 0; v < g->n_values; v++) {
        control->holder[v] = mpl_exec_holder(map, v);
        if (control->value_place[v] != MPL_NONE && control->value_place[v] >= from->n)
            return MPL_ERROR(exec->ctx, MPL_EINVALID, "value '%s' is at place %u; there is none",
                             g->value_name[v], control->value_place[v]);
    }
    return MPL_OK;
}

mpl_status mpl_control_new(mpl_exec *exec, const mpl_value_map *map)
{
    mpl_ctx *ctx = exec->ctx;
    const mpl_graph *g = exec->g;
    mpl_control *control = exec->control;
    uint32_t results = n_results(g);

    control->unshared = map == NULL;
    if (map != NULL && map->places == NULL)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "graph '%s' has control flow; the map says nothing of places", g->name);
    if (exec->backend->copy == NULL)
        return MPL_ERROR(ctx, MPL_EUNAVAIL,
                         "graph '%s' has control flow, which backend '%s' does not run", g->name,
                         exec->backend->name);
    MPL_PASS(mpl_new(ctx, control->nowhere, g->n_values));
    MPL_PASS(mpl_new(ctx, control->staging, g->n_blocks));
    MPL_PASS(mpl_new_each(ctx, results, control->from, control->to, control->pending));
    MPL_PASS(mpl_new(ctx, control->open, g->n_ops));
    MPL_PASS(mpl_new_each(ctx, g->n_blocks, control->round, control->limit, control->fewest));
    MPL_PASS(mpl_new_each(ctx, g->n_ops, control->branch, control->op_copied_bytes));
    for (uint32_t b = 0; b < g->n_blocks; b++) {
        mpl_buffer staging = map != NULL ? map->places->staging[b] : MPL_NONE;

        if (staging != MPL_NONE && staging >= exec->n_buffers)
            return MPL_ERROR(ctx, MPL_EINVALID,
                             "block '%s' copies by way of buffer %u; there is none",
                             g->block_name[b], staging);
        control->staging[b] = (mpl_spot){MPL_NONE, staging, 0};
    }
    if (map != NULL)
        MPL_PASS(take_places(exec, map));
    return MPL_OK;
}

void mpl_control_free(mpl_ctx *ctx, mpl_control *control)
{
    if (control == NULL)
        return;

    mpl_program_free(ctx, control->program);
    mpl_needs_free(ctx, control->needs);
    mpl_free_each(ctx, control->place, control->item, control->known, control->in_copied,
                  control->result_copied, control->holder, control->value_place,
                  control->member_begin, control->member, control->slot_begin, control->slot,
                  control->final_begin, control->final_item, control->staging, control->from,
                  control->to, control->pending, control->open, control->round, control->limit,
                  control->branch, control->op_copied_bytes, control->block_work, control->nowhere,
                  control->arrival_of, control->arrival_begin, control->arrival, control->arrived,
                  control->fewest, control);
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
    mpl_control *control = exec->control;
    uint32_t n_slots = g->op_in_begin[g->n_ops] + g->op_out_begin[g->n_ops];
    uint32_t *of_slot = NULL, *of_value = NULL, *of_place = NULL;

    if (control == NULL || control->unshared)
        return MPL_OK;
    MPL_TRY(mpl_new(ctx, of_slot, n_slots));
    MPL_TRY(mpl_new(ctx, of_value, g->n_values));
    MPL_TRY(mpl_new(ctx, of_place, control->n_places));
    for (uint32_t i = 0; i < n_slots; i++)
        of_slot[i] = moving_holder(exec, i);
    for (mpl_value v = 0; v < g->n_values; v++)
        of_value[v] = mpl_control_moves(exec, v) ? control->holder[v] : MPL_NONE;
    for (uint32_t i = 0; i < control->n_places; i++)
        of_place[i] = control->place[i].kind == MPL_PLACE_FINAL ? control->place[i].of : MPL_NONE;
    MPL_TRY(mpl_lists_new(ctx, g->n_values, n_slots, of_slot, NULL, &control->slot_begin,
                          &control->slot));
    MPL_TRY(mpl_lists_new(ctx, g->n_values, g->n_values, of_value, NULL, &control->member_begin,
                          &control->member));
    MPL_TRY(mpl_lists_new(ctx, g->n_ops, control->n_places, of_place, NULL, &control->final_begin,
                          &control->final_item));
out:
    mpl_free_each(ctx, of_slot, of_value, of_place);
    return st;
}

/* ---- evaluating ---- */

static uint32_t cycle_item(const mpl_place *place, uint64_t round)
{
    return round < place->n_first ? (uint32_t)round
                                  : place->n_first + (uint32_t)((round - place->n_first) %
                                                                (place->n - place->n_first));
}

/* Offset of slice number `round` of a slice place from its start. */
static uint64_t slice_offset(const mpl_exec *exec, const mpl_place *place)
{
    uint64_t round = exec->control->round[place->of];

    if (place->reversed)
        round =
            (uint64_t)mpl_while_most_rounds(exec->g, exec->g->block_owner[place->of]) - 1 - round;
    return round * place->bytes;
}

static mpl_spot evaluate(const mpl_exec *exec, uint32_t id)
{
    const mpl_control *control = exec->control;
    const mpl_graph *g = exec->g;
    uint64_t offset = 0;
    mpl_spot spot;

    for (;;) {
        const mpl_place *place = &control->place[id];
        const uint32_t *item = control->item + place->begin;

        if (place->kind == MPL_PLACE_BUFFER || place->kind == MPL_PLACE_PINNED ||
            (place->kind == MPL_PLACE_FINAL &&
             control->round[g->op_body[g->op_body_begin[place->of]]] > 0))
            break;
        if (place->kind == MPL_PLACE_CYCLE) {
            id = item[cycle_item(place, control->round[place->of])];
        } else if (place->kind == MPL_PLACE_BRANCH) {
            id = item[control->branch[place->of] != MPL_NONE ? control->branch[place->of]
                                                             : place->n - 1];
        } else {
            offset += place->kind == MPL_PLACE_SLICE ? slice_offset(exec, place) : 0;
            id = item[0];
        }
    }
    spot = control->known[id];
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
    mpl_control *control = exec->control;

    for (uint32_t i = control->unshared ? 0 : control->final_begin[op];
         !control->unshared && i < control->final_begin[op + 1]; i++)
        control->known[control->final_item[i]] =
            evaluate(exec, control->item[control->place[control->final_item[i]].begin + 1]);
}

/* Whether all values with a holder, and all their operands, are where the holder is. */
static bool bound_ok(const mpl_exec *exec, mpl_value holder)
{
    const mpl_control *control = exec->control;
    uint32_t n_in = exec->g->op_in_begin[exec->g->n_ops];
    const char *at = mpl_exec_value_at(exec, holder);

    for (uint32_t i = control->member_begin[holder]; i < control->member_begin[holder + 1]; i++)
        if (mpl_exec_value_at(exec, control->member[i]) != at)
            return mpl_broken("value %u lies with value %u, and elsewhere", control->member[i],
                              holder);
    for (uint32_t i = control->slot_begin[holder]; i < control->slot_begin[holder + 1]; i++)
        if ((control->slot[i] < n_in ? exec->in[control->slot[i]]
                                     : exec->out[control->slot[i] - n_in])
                .data != at)
            return mpl_broken("operand %u is not where value %u lies", control->slot[i], holder);
    return true;
}

void mpl_control_bind(mpl_exec *exec, mpl_value v, mpl_spot spot)
{
    const mpl_control *control = exec->control;
    mpl_value holder;
    uint32_t n_in = exec->g->op_in_begin[exec->g->n_ops];
    void *data;

    if (control->nowhere[v]) {
        exec->value_slab[v] = spot.slab;
        exec->value_offset[v] = spot.offset;
        exec->value_block[v] = spot.block;
    }
    if (!mpl_control_moves(exec, v))
        return;
    holder = control->holder[v];
    if (exec->value_slab[holder] == spot.slab && exec->value_offset[holder] == spot.offset &&
        exec->value_block[holder] == spot.block)
        return;
    data = spot.slab != MPL_NONE ? mpl_exec_at(exec, spot.slab, spot.offset) : NULL;
    for (uint32_t i = control->member_begin[holder]; i < control->member_begin[holder + 1]; i++) {
        exec->value_slab[control->member[i]] = spot.slab;
        exec->value_offset[control->member[i]] = spot.offset;
        exec->value_block[control->member[i]] = spot.block;
    }
    for (uint32_t i = control->slot_begin[holder]; i < control->slot_begin[holder + 1]; i++)
        (control->slot[i] < n_in ? &exec->in[control->slot[i]]
                                 : &exec->out[control->slot[i] - n_in])
            ->data = data;
    mpl_assert_slow(bound_ok(exec, holder));
}
