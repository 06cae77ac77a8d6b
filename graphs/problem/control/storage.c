/* storage.c -- builds cells, then the places of values. See storage.h. */
#include "graphs/problem/control/storage_priv.h"

#include <stdlib.h>

bool mpl_is_chosen(const mpl_graph *g, mpl_value v)
{
    mpl_op op = g->value_op[v];

    if (op == MPL_NONE || g->op_body_begin[op] == g->op_body_begin[op + 1])
        return false;
    for (uint32_t i = 0; g->op_kind[op] == MPL_OP_while && i < mpl_n_carried(g, op); i++)
        if (mpl_op_output(g, op, i) == v)
            return true;
    return g->op_kind[op] == MPL_OP_case;
}

/* ---- setting up ---- */

static bool slice_fits(const mpl_store *store, mpl_value part)
{
    return store->spec->options->views && store->g->value_bytes[part] > 0 &&
           store->g->value_bytes[part] % store->spec->options->align == 0;
}

/* Makes slices of scans parts of the scan, where the alignment allows. */
static void share_slices(mpl_store *store)
{
    const mpl_graph *g = store->g;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint32_t first = 2 + mpl_n_carried(g, op), n_in = mpl_op_n_in(g, op);

        if (g->op_kind[op] != MPL_OP_while)
            continue;
        for (uint32_t i = first; i < n_in; i++) {
            mpl_value part = mpl_param(g, mpl_op_first_body(g, op), i - 1);
            mpl_value scan = store->spec->root[mpl_op_input(g, op, i)];

            /* a scan without slices has no storage */
            if (slice_fits(store, part) && store->how[scan] != MPL_HOW_NOWHERE) {
                store->how[part] = MPL_HOW_SLICE;
                store->of[part] = op;
                store->at[part] = i;
            } else {
                store->in_copied[g->op_in_begin[op] + i] = 1;
            }
        }
    }
}

static bool is_source(const mpl_store *store, mpl_op op, mpl_value root)
{
    const mpl_graph *g = store->g;
    uint32_t body = mpl_op_first_body(g, op);

    for (uint32_t i = 0; i <= mpl_n_carried(g, op); i++)
        if (mpl_result(g, body, i) != MPL_NONE && store->spec->root[mpl_result(g, body, i)] == root)
            return true;
    return false;
}

/* Lets an operation of the body make its row directly where rows are stacked, if the row has no
 * other use after the round. */
static void share_rows(mpl_store *store)
{
    const mpl_graph *g = store->g;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint32_t first = mpl_n_carried(g, op), n_out = mpl_op_n_out(g, op);

        if (g->op_kind[op] != MPL_OP_while)
            continue;
        for (uint32_t i = first; i < n_out; i++) {
            uint32_t body = mpl_op_first_body(g, op), at = g->block_result_begin[body] + 1 + i;
            mpl_value row = store->spec->root[g->block_result[at]], out = mpl_op_output(g, op, i);
            mpl_op maker = g->value_op[row];

            if (out == MPL_NONE)
                continue;
            if (maker != MPL_NONE && g->op_block[maker] == body &&
                store->how[row] == MPL_HOW_CELL &&
                !(mpl_op_table[g->op_kind[maker]].traits & MPL_CONTROL) && slice_fits(store, row) &&
                !is_source(store, op, row) && store->how[out] != MPL_HOW_NOWHERE) {
                store->how[row] = MPL_HOW_SLICE;
                store->of[row] = op;
                store->at[row] = i;
            } else {
                store->result_copied[at] = 1;
            }
        }
    }
}

/* Fills hold[]: a slice of a scan has the scan's root; a row made in place has its own. */
static void fill_hold(mpl_store *store)
{
    const mpl_graph *g = store->g;

    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = store->spec->root[v];

        store->hold[v] = root != v ? store->hold[root] : v;
        if (root == v && store->how[v] == MPL_HOW_SLICE && g->value_op[v] == MPL_NONE)
            store->hold[v] = store->hold[g->op_in[g->op_in_begin[store->of[v]] + store->at[v]]];
    }
}

static void classify(mpl_store *store)
{
    const mpl_graph *g = store->g;

    for (mpl_value v = 0; v < g->n_values; v++) {
        bool needs = store->spec->root[v] == v && g->value_bytes[v] > 0;

        store->how[v] = !needs                                                   ? MPL_HOW_NOWHERE
                        : store->spec->pinned[v] && !mpl_is_chosen(g, v)         ? MPL_HOW_PINNED
                        : mpl_is_chosen(g, v) && !store->out_live[v]             ? MPL_HOW_NOWHERE
                        : g->value_role[v] == MPL_PARAMETER && !store->wanted[v] ? MPL_HOW_NOWHERE
                                                                                 : MPL_HOW_CELL;
    }
    share_slices(store);
    share_rows(store);
    fill_hold(store);
}

static mpl_status allocate(mpl_store *store)
{
    const mpl_graph *g = store->g;
    uint64_t most = (uint64_t)g->n_values + g->n_blocks, n_results = 0;

    for (uint32_t b = 1; b < g->n_blocks; b++) {
        most += 3 * (uint64_t)g->block_n_params[b]; /* two cells, an initial value */
        n_results += g->block_n_results[b];
    }
    most += n_results; /* homes of a case's outputs */
    if (most >= MPL_NONE)
        return MPL_REFUSE(store->ctx, "graph '%.100s' has too many values", g->name);
    store->most_items = (uint32_t)most;
    store->half = store->words = store->program->n_steps / 64 + 1;
    if (store->spec->options->parallel) {
        MPL_PASS(mpl_units_new(store->ctx, g, store->program, store->spec->options->op_stream,
                               &store->units));
        store->half = store->units->point_words;
        store->words = 2 * store->half;
    }
    MPL_PASS(mpl_new_each(store->ctx, g->n_values, store->hold, store->wanted, store->out_live,
                          store->how, store->of, store->at, store->ref0, store->ref1));
    MPL_PASS(mpl_new_each(store->ctx, g->n_values, store->same, store->dep_begin, store->dep_n));
    MPL_PASS(mpl_new(store->ctx, store->row, (size_t)store->most_items * store->words));
    MPL_PASS(mpl_new_each(store->ctx, store->most_items, store->parent, store->next, store->turn,
                          store->bytes, store->named, store->copy));
    MPL_PASS(mpl_new(store->ctx, store->in_copied, g->op_in_begin[g->n_ops]));
    MPL_PASS(mpl_new(store->ctx, store->result_copied, n_results));
    MPL_PASS(mpl_new(store->ctx, store->staging, g->n_blocks));
    memset(store->staging, 0xff, g->n_blocks * sizeof *store->staging);
    for (mpl_value v = 0; v < g->n_values; v++)
        mpl_item_new(store, v, g->value_bytes[v], 0);
    return MPL_OK;
}

static void store_fini(mpl_store *store)
{
    void *arrays[] = {
        store->hold,      store->wanted,        store->out_live, store->how,     store->of,
        store->at,        store->dep_begin,     store->ref0,     store->ref1,    store->dep_n,
        store->row,       store->parent,        store->next,     store->turn,    store->bytes,
        store->named,     store->copy,          store->turns,    store->refs,    store->deps,
        store->in_copied, store->result_copied, store->staging,  store->skipped, store->same};

    MPL_FREE_ALL(store->ctx, arrays);
    mpl_units_free(store->ctx, store->units);
}

mpl_status mpl_storage_facts_new(mpl_ctx *ctx, const mpl_storage_spec *spec, mpl_storage_facts *out)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = spec->g;
    mpl_store s = {.ctx = ctx, .spec = spec, .g = g, .program = spec->program};
    mpl_storage_facts f = {NULL, NULL, NULL};
    uint32_t n_results = 0;

    for (uint32_t b = 1; b < g->n_blocks; b++)
        n_results += g->block_n_results[b];
    MPL_TRY(allocate(&s));
    mpl_store_wanted(&s);
    classify(&s);
    MPL_TRY(mpl_new(ctx, f.lies, g->n_values));
    MPL_TRY(mpl_new(ctx, f.result_read, n_results));
    for (mpl_value v = 0; v < g->n_values; v++)
        f.lies[v] = s.how[s.hold[v]] == MPL_HOW_CELL ? s.hold[v] : MPL_NONE;
    for (uint32_t b = 1; b < g->n_blocks; b++)
        for (uint32_t i = 0; i < g->block_n_results[b]; i++)
            f.result_read[g->block_result_begin[b] + i] = mpl_result_read(&s, b, i);
    f.out_live = s.out_live, s.out_live = NULL;
    *out = f;
    f = (mpl_storage_facts){NULL, NULL, NULL};
out:
    mpl_storage_facts_free(ctx, &f);
    store_fini(&s);
    return st;
}

void mpl_storage_facts_free(mpl_ctx *ctx, mpl_storage_facts *facts)
{
    mpl_free_each(ctx, facts->lies, facts->out_live, facts->result_read);
    *facts = (mpl_storage_facts){NULL, NULL, NULL};
}

/* The step at which a value is made; the first step if it comes from outside. */
static uint32_t first_step(const mpl_store *store, mpl_value v)
{
    const mpl_graph *g = store->g;

    return g->value_op[v] != MPL_NONE ? store->program->op_step[g->value_op[v]]
                                      : store->program->begin_step[g->value_block[v]];
}

/* An unread value is needed at the step that makes it; an unread input, at the first step. */
static void give_all_a_step(mpl_store *store)
{
    for (mpl_value v = 0; v < store->g->n_values; v++) {
        bool any = false;

        for (uint32_t w = 0; w < store->words && !any; w++)
            any = mpl_row(store, v)[w] != 0;
        if (!any && store->how[v] == MPL_HOW_CELL)
            mpl_bit_add(mpl_row(store, v), first_step(store, v));
    }
}

/* ---- the result ---- */

/* Initial values are copied before it is known whether the loop runs a round. Values needed after a
 * loop without rounds must not be overwritten by these copies. */
static mpl_status keep_skipped(mpl_store *store, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = store->g;
    uint32_t body = mpl_op_first_body(g, op), n_deps = store->n_deps;
    const uint64_t *skipped = store->skipped + (size_t)body * (g->n_values / 64 + 1);
    bool copies = false;

    for (uint32_t i = 0; i < mpl_n_carried(g, op); i++)
        copies = copies || store->in_copied[g->op_in_begin[op] + 2 + i] != 0;
    for (mpl_value v = 0; copies && v < g->n_values; v++)
        if (mpl_bit_has(skipped, v) && store->how[v] != MPL_HOW_NOWHERE)
            MPL_TRY(mpl_add_deps(store, v));
    for (uint32_t i = n_deps; i < store->n_deps; i++)
        mpl_row_set(store, mpl_row(store, store->deps[i]), store->program->begin_step[body]);
out:
    store->n_deps = n_deps;
    return st;
}

typedef struct finisher {
    mpl_store *store;
    mpl_storage *out;
    uint32_t *number;     /* [n_items] cell number of a representative */
    uint32_t *item_place; /* [n_items] MPL_NONE: not made yet */
    size_t place_cap, item_cap;
    uint32_t n_refs;
} finisher;

static mpl_status push_place(finisher *self, mpl_place place, uint32_t *id)
{
    mpl_places *places = self->out->places;

    MPL_PASS(mpl_reserve(self->store->ctx, places->place, self->place_cap, (size_t)places->n + 1));
    places->place[places->n] = place;
    *id = places->n++;
    return MPL_OK;
}

static mpl_status place_of(finisher *self, uint32_t item, uint32_t *id);

/* Adds `place` with the places of n items as its list. */
static mpl_status push_list(finisher *self, mpl_place place, uint32_t n, const uint32_t *item,
                            uint32_t *id)
{
    mpl_status st = MPL_OK;
    mpl_places *places = self->out->places;
    uint32_t *made = NULL;

    MPL_TRY(mpl_new(self->store->ctx, made, n));
    for (uint32_t i = 0; i < n; i++)
        MPL_TRY(place_of(self, item[i], &made[i]));
    MPL_TRY(mpl_reserve(self->store->ctx, places->item, self->item_cap, (size_t)self->n_refs + n));
    place.begin = self->n_refs;
    place.n = n;
    for (uint32_t i = 0; i < n; i++)
        places->item[self->n_refs++] = made[i];
    MPL_TRY(push_place(self, place, id));
out:
    mpl_free(self->store->ctx, made);
    return st;
}

static mpl_status place_slice(finisher *self, mpl_value v, uint32_t *id)
{
    const mpl_graph *g = self->store->g;
    mpl_op op = self->store->of[v];
    bool scan = g->value_op[v] == MPL_NONE;
    uint32_t at = self->store->at[v], n_carried = mpl_n_carried(g, op), n_flags, whole;
    uint32_t n_scans = mpl_op_n_in(g, op) - 2 - n_carried;
    const int64_t *flags = mpl_attr_ints(g, op, MPL_ATTR_scan_reverse, &n_flags);
    uint32_t flag = scan ? at - 2 - n_carried : n_scans + at - n_carried;
    mpl_place place = {.kind = MPL_PLACE_SLICE,
                       .of = mpl_op_first_body(g, op),
                       .bytes = g->value_bytes[v],
                       .reversed = n_flags > 0 && flags[flag] != 0};

    whole = self->store->spec->root[scan ? mpl_op_input(g, op, at) : mpl_op_output(g, op, at)];
    return push_list(self, place, 1, &whole, id);
}

static mpl_status place_branch(finisher *self, mpl_value v, uint32_t *id)
{
    mpl_status st = MPL_OK;
    mpl_store *store = self->store;
    const mpl_graph *g = store->g;
    mpl_op op = store->of[v];
    uint32_t n = g->op_body_begin[op + 1] - g->op_body_begin[op], at = store->at[v], *item = NULL;
    uint32_t bypass = g->op_in_begin[op] + 1 + at;

    MPL_TRY(mpl_new(store->ctx, item, (size_t)n + 1));
    for (uint32_t k = 0; k < n; k++) {
        uint32_t b = g->op_body[g->op_body_begin[op] + k];

        item[k] = store->result_copied[g->block_result_begin[b] + at]
                      ? store->ref0[v]
                      : store->spec->root[mpl_result(g, b, at)];
    }
    item[n] = bypass >= g->op_in_begin[op + 1] ? item[0]
              : store->in_copied[bypass]       ? store->ref0[v]
                                               : store->spec->root[g->op_in[bypass]];
    MPL_TRY(push_list(self, (mpl_place){.kind = MPL_PLACE_BRANCH, .of = op}, n + 1, item, id));
out:
    mpl_free(store->ctx, item);
    return st;
}

static mpl_status place_cell(finisher *self, uint32_t item, uint32_t *id)
{
    mpl_store *store = self->store;
    uint32_t cell = mpl_cell(store, item);
    const mpl_turn *turn = store->turn[cell] != MPL_NONE ? &store->turns[store->turn[cell]] : NULL;

    if (turn != NULL && turn->n_first == 0 && turn->n_cycle == 1)
        return place_of(self, store->refs[turn->begin], id);
    if (turn == NULL)
        return push_place(self, (mpl_place){.kind = MPL_PLACE_BUFFER, .of = self->number[cell]},
                          id);
    return push_list(
        self, (mpl_place){.kind = MPL_PLACE_CYCLE, .of = turn->block, .n_first = turn->n_first},
        turn->n_first + turn->n_cycle, store->refs + turn->begin, id);
}

/* Makes the place of an item. It refers to places of values with lower ids, of stacked outputs, and
 * of cells in enclosing blocks; recursion is at most as deep as the nesting. */
static mpl_status place_of(finisher *self, uint32_t item, uint32_t *id)
{
    mpl_store *store = self->store;
    mpl_how how = item < store->g->n_values ? (mpl_how)store->how[item] : MPL_HOW_CELL;

    mpl_assert(how != MPL_HOW_NOWHERE);
    if (self->item_place[item] == MPL_NONE) {
        if (how == MPL_HOW_PINNED)
            MPL_PASS(push_place(self, (mpl_place){.kind = MPL_PLACE_PINNED, .of = item}, id));
        else if (how == MPL_HOW_SLICE)
            MPL_PASS(place_slice(self, item, id));
        else if (how == MPL_HOW_BRANCH)
            MPL_PASS(place_branch(self, item, id));
        else if (how == MPL_HOW_FINAL)
            MPL_PASS(push_list(self, (mpl_place){.kind = MPL_PLACE_FINAL, .of = store->of[item]}, 2,
                               (uint32_t[]){store->ref0[item], store->ref1[item]}, id));
        else
            MPL_PASS(place_cell(self, item, id));
        self->item_place[item] = *id;
    }
    *id = self->item_place[item];
    return MPL_OK;
}

/* Whether an item represents a cell that becomes a buffer: the cell stays in one place and is
 * used. */
static bool is_buffer(mpl_store *store, uint32_t item)
{
    if (mpl_cell(store, item) != item || store->turn[item] != MPL_NONE ||
        (item < store->g->n_values && store->how[item] != MPL_HOW_CELL))
        return false;
    for (uint32_t w = 0; w < store->words; w++)
        if (mpl_row(store, item)[w] != 0)
            return true;
    return false;
}

static mpl_status number_cells(finisher *self)
{
    mpl_store *store = self->store;
    mpl_storage *out = self->out;

    for (uint32_t item = 0; item < store->n_items; item++)
        if (is_buffer(store, item))
            self->number[item] = out->n_cells++;
    out->words = store->words;
    MPL_PASS(mpl_new_each(store->ctx, out->n_cells, out->bytes, out->named, out->copy));
    MPL_PASS(mpl_new(store->ctx, out->row, (size_t)out->n_cells * store->words));
    for (uint32_t item = 0; item < store->n_items; item++) {
        uint32_t at = item, n;

        if (!is_buffer(store, item))
            continue;
        n = self->number[item];
        out->bytes[n] = store->bytes[item];
        out->named[n] = store->named[item];
        out->copy[n] = store->copy[item];
        do {
            for (uint32_t w = 0; w < store->words; w++)
                out->row[(size_t)n * store->words + w] |= mpl_row(store, at)[w];
            at = store->next[at];
        } while (at != item);
    }
    return MPL_OK;
}

/* The cell that an item stays in; MPL_NONE when its address changes by round. */
static uint32_t settled_cell(mpl_store *store, uint32_t item)
{
    uint32_t cell = mpl_cell(store, item);

    while (store->turn[cell] != MPL_NONE) {
        const mpl_turn *turn = &store->turns[store->turn[cell]];

        item = store->refs[turn->begin];
        if (turn->n_first > 0 || turn->n_cycle > 1 ||
            (item < store->g->n_values && store->how[item] != MPL_HOW_CELL))
            return MPL_NONE;
        cell = mpl_cell(store, item);
    }
    return cell;
}

static mpl_status finish_values(finisher *self)
{
    mpl_store *store = self->store;
    mpl_storage *out = self->out;
    uint32_t n = store->g->n_values;

    MPL_PASS(mpl_new_each(store->ctx, n, out->value_cell, out->places->value_place));
    MPL_PASS(mpl_new(store->ctx, out->places->staging, store->g->n_blocks));
    for (mpl_value v = 0; v < n; v++) {
        uint32_t cell = store->how[v] == MPL_HOW_CELL ? settled_cell(store, v) : MPL_NONE;
        bool stays = cell != MPL_NONE;

        out->value_cell[v] = stays ? self->number[cell] : MPL_NONE;
        out->places->value_place[v] = MPL_NONE;
        if (!stays && store->how[v] != MPL_HOW_NOWHERE && store->how[v] != MPL_HOW_PINNED)
            MPL_PASS(place_of(self, v, &out->places->value_place[v]));
    }
    for (uint32_t b = 0; b < store->g->n_blocks; b++)
        out->places->staging[b] =
            store->staging[b] == MPL_NONE ? MPL_NONE : self->number[store->staging[b]];
    out->places->in_copied = store->in_copied, store->in_copied = NULL;
    out->places->result_copied = store->result_copied, store->result_copied = NULL;
    return MPL_OK;
}

mpl_status mpl_storage_new(mpl_ctx *ctx, const mpl_storage_spec *spec, mpl_storage **out)
{
    mpl_status st = MPL_OK;
    mpl_store s = {.ctx = ctx, .spec = spec, .g = spec->g, .program = spec->program};
    finisher f = {.store = &s};

    MPL_TRY(allocate(&s));
    mpl_store_wanted(&s);
    classify(&s);
    MPL_TRY(mpl_store_live(&s));
    give_all_a_step(&s);
    MPL_TRY(mpl_store_widen(&s));
    for (mpl_op op = 0; op < s.g->n_ops; op++) /* inner ones and makers first */
        if (s.g->op_kind[op] == MPL_OP_while)
            MPL_TRY(mpl_store_while(&s, op));
        else if (s.g->op_kind[op] == MPL_OP_case)
            MPL_TRY(mpl_store_case(&s, op));
    for (mpl_op op = 0; op < s.g->n_ops; op++)
        if (s.g->op_kind[op] == MPL_OP_while)
            MPL_TRY(keep_skipped(&s, op));
    MPL_TRY(mpl_new_each(ctx, 1, f.out, f.out->places));
    MPL_TRY(mpl_new_each(ctx, s.n_items, f.number, f.item_place));
    memset(f.item_place, 0xff, s.n_items * sizeof *f.item_place);
    MPL_TRY(number_cells(&f));
    MPL_TRY(finish_values(&f));
    f.out->units = s.units, s.units = NULL;
    mpl_assert_ok(mpl_storage_ok(f.out, spec));
    *out = f.out, f.out = NULL;
out:
    mpl_storage_free(ctx, f.out);
    mpl_free_each(ctx, f.number, f.item_place);
    store_fini(&s);
    return st;
}

void mpl_places_free(mpl_ctx *ctx, mpl_places *places)
{
    if (places == NULL)
        return;
    void *arrays[] = {places->place,
                      places->item,
                      places->value_place,
                      places->in_copied,
                      places->result_copied,
                      places->staging,
                      places};
    MPL_FREE_ALL(ctx, arrays);
}

void mpl_storage_free(mpl_ctx *ctx, mpl_storage *storage)
{
    if (storage == NULL)
        return;
    mpl_places_free(ctx, storage->places);
    mpl_units_free(ctx, storage->units);
    void *arrays[] = {storage->bytes, storage->named,      storage->copy,
                      storage->row,   storage->value_cell, storage};
    MPL_FREE_ALL(ctx, arrays);
}
