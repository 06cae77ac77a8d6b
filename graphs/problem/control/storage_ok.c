/* storage_ok.c -- invariants of the storage of loops and branches. See mpl_storage_ok in
 * storage.h. */
#include "graphs/problem/control/storage.h"

static bool cell_ok(const mpl_storage *storage, const mpl_graph *g, uint32_t cell)
{
    mpl_value named = storage->named[cell];
    uint64_t any = 0;

    for (uint32_t w = 0; w < storage->words; w++)
        any |= storage->row[(size_t)cell * storage->words + w];
    if (any == 0)
        return mpl_broken("cell %u is needed at no step", cell);
    if (named != MPL_NONE && (named >= g->n_values || storage->bytes[cell] < g->value_bytes[named]))
        return mpl_broken("cell %u of %" PRIu64 " bytes is too small for value %u", cell,
                          storage->bytes[cell], named);
    return true;
}

static bool place_ok(const mpl_storage *storage, const mpl_graph *g, uint32_t id)
{
    const mpl_places *places = storage->places;
    const mpl_place *place = &places->place[id];
    bool of_block = place->kind == MPL_PLACE_CYCLE || place->kind == MPL_PLACE_SLICE;
    uint32_t n = place->kind == MPL_PLACE_BUFFER   ? storage->n_cells
                 : place->kind == MPL_PLACE_PINNED ? g->n_values
                 : of_block                        ? g->n_blocks
                                                   : g->n_ops;

    if (place->kind > MPL_PLACE_SLICE || place->of >= n)
        return mpl_broken("place %u of kind %u is of %u, and there are %u", id, place->kind,
                          place->of, n);
    if (place->kind == MPL_PLACE_CYCLE && place->n_first >= place->n)
        return mpl_broken("place %u has %u items, none of which comes again", id, place->n);
    for (uint32_t i = 0; i < place->n; i++)
        if (places->item[place->begin + i] >= id)
            return mpl_broken("place %u refers to place %u, which is not below it", id,
                              places->item[place->begin + i]);
    return true;
}

static bool value_ok(const mpl_storage *storage, const mpl_storage_spec *spec, mpl_value v)
{
    uint32_t cell = storage->value_cell[v], place = storage->places->value_place[v];
    bool root = spec->root[v] == v;

    if (cell != MPL_NONE && (cell >= storage->n_cells || !root))
        return mpl_broken("value %u lies in cell %u of %u, or is a view", v, cell,
                          storage->n_cells);
    if (cell != MPL_NONE && storage->bytes[cell] < spec->g->value_bytes[v])
        return mpl_broken("value %u does not fit into cell %u", v, cell);
    if (place != MPL_NONE && (place >= storage->places->n || cell != MPL_NONE))
        return mpl_broken("value %u lies at place %u of %u, or in cell %u as well", v, place,
                          storage->places->n, cell);
    return true;
}

/* Slow. Serial: a cell is needed at the step of each operation that makes or reads a value in
 * it. */
static bool needs_ok(const mpl_storage *storage, const mpl_storage_spec *spec)
{
    const mpl_graph *g = spec->g;

    for (mpl_op op = 0; op < g->n_ops; op++)
        for (uint32_t i = 0; i < mpl_n_read(g, op) + mpl_op_n_out(g, op); i++) {
            mpl_value v = i < mpl_n_read(g, op) ? mpl_op_input(g, op, i)
                                                : mpl_op_output(g, op, i - mpl_n_read(g, op));
            uint32_t cell = v != MPL_NONE ? storage->value_cell[spec->root[v]] : MPL_NONE;

            if ((mpl_op_table[g->op_kind[op]].traits & MPL_CONTROL) == 0 && cell != MPL_NONE &&
                !mpl_bit_has(storage->row + (size_t)cell * storage->words,
                             spec->program->op_step[op]))
                return mpl_broken("operation %u touches cell %u at a step that does not need it",
                                  op, cell);
        }
    return true;
}

bool mpl_storage_ok(const mpl_storage *storage, const mpl_storage_spec *spec)
{
    for (uint32_t cell = 0; cell < storage->n_cells; cell++)
        if (!cell_ok(storage, spec->g, cell))
            return false;
    for (uint32_t id = 0; id < storage->places->n; id++)
        if (!place_ok(storage, spec->g, id))
            return false;
    for (mpl_value v = 0; v < spec->g->n_values; v++)
        if (!value_ok(storage, spec, v))
            return false;
    for (uint32_t b = 0; b < spec->g->n_blocks; b++)
        if (storage->places->staging[b] != MPL_NONE &&
            storage->places->staging[b] >= storage->n_cells)
            return mpl_broken("block %u stages through cell %u of %u", b,
                              storage->places->staging[b], storage->n_cells);
    return MPL_CHECK < 3 || spec->g->n_ops > MPL_CHECK_SMALL || needs_ok(storage, spec);
}
