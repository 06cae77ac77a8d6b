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

static bool slice_fits(const mpl_store *s, mpl_value part)
{
    return s->spec->options->views && s->g->value_bytes[part] > 0 &&
           s->g->value_bytes[part] % s->spec->options->align == 0;
}

/* Makes slices of scans parts of the scan, where the alignment allows. */
static void share_slices(mpl_store *s)
{
    const mpl_graph *g = s->g;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint32_t first = 2 + mpl_n_carried(g, op), n_in = mpl_op_n_in(g, op);

        if (g->op_kind[op] != MPL_OP_while)
            continue;
        for (uint32_t i = first; i < n_in; i++) {
            mpl_value part = mpl_param(g, mpl_op_first_body(g, op), i - 1);
            mpl_value scan = s->spec->root[mpl_op_input(g, op, i)];

            /* a scan without slices has no storage */
            if (slice_fits(s, part) && s->how[scan] != MPL_HOW_NOWHERE) {
                s->how[part] = MPL_HOW_SLICE;
                s->of[part] = op;
                s->at[part] = i;
            } else {
                s->in_copied[g->op_in_begin[op] + i] = 1;
            }
        }
    }
}

static bool is_source(const mpl_store *s, mpl_op op, mpl_value root)
{
    const mpl_graph *g = s->g;
    uint32_t body = mpl_op_first_body(g, op);

    for (uint32_t i = 0; i <= mpl_n_carried(g, op); i++)
        if (mpl_result(g, body, i) != MPL_NONE && s->spec->root[mpl_result(g, body, i)] == root)
            return true;
    return false;
}

/* Lets an operation of the body make its row directly where rows are stacked, if the row has no
 * other use after the round. */
static void share_rows(mpl_store *s)
{
    const mpl_graph *g = s->g;

    for (mpl_op op = 0; op < g->n_ops; op++) {
        uint32_t first = mpl_n_carried(g, op), n_out = mpl_op_n_out(g, op);

        if (g->op_kind[op] != MPL_OP_while)
            continue;
        for (uint32_t i = first; i < n_out; i++) {
            uint32_t body = mpl_op_first_body(g, op), at = g->block_result_begin[body] + 1 + i;
            mpl_value row = s->spec->root[g->block_result[at]], out = mpl_op_output(g, op, i);
            mpl_op maker = g->value_op[row];

            if (out == MPL_NONE)
                continue;
            if (maker != MPL_NONE && g->op_block[maker] == body && s->how[row] == MPL_HOW_CELL &&
                !(mpl_op_table[g->op_kind[maker]].traits & MPL_CONTROL) && slice_fits(s, row) &&
                !is_source(s, op, row) && s->how[out] != MPL_HOW_NOWHERE) {
                s->how[row] = MPL_HOW_SLICE;
                s->of[row] = op;
                s->at[row] = i;
            } else {
                s->result_copied[at] = 1;
            }
        }
    }
}

/* Fills hold[]: a slice of a scan has the scan's root; a row made in place has its own. */
static void fill_hold(mpl_store *s)
{
    const mpl_graph *g = s->g;

    for (mpl_value v = 0; v < g->n_values; v++) {
        mpl_value root = s->spec->root[v];

        s->hold[v] = root != v ? s->hold[root] : v;
        if (root == v && s->how[v] == MPL_HOW_SLICE && g->value_op[v] == MPL_NONE)
            s->hold[v] = s->hold[g->op_in[g->op_in_begin[s->of[v]] + s->at[v]]];
    }
}

static void classify(mpl_store *s)
{
    const mpl_graph *g = s->g;

    for (mpl_value v = 0; v < g->n_values; v++) {
        bool needs = s->spec->root[v] == v && g->value_bytes[v] > 0;

        s->how[v] = !needs                                               ? MPL_HOW_NOWHERE
                    : s->spec->pinned[v] && !mpl_is_chosen(g, v)         ? MPL_HOW_PINNED
                    : mpl_is_chosen(g, v) && !s->out_live[v]             ? MPL_HOW_NOWHERE
                    : g->value_role[v] == MPL_PARAMETER && !s->wanted[v] ? MPL_HOW_NOWHERE
                                                                         : MPL_HOW_CELL;
    }
    share_slices(s);
    share_rows(s);
    fill_hold(s);
}

static mpl_status allocate(mpl_store *s)
{
    const mpl_graph *g = s->g;
    uint64_t most = (uint64_t)g->n_values + g->n_blocks, n_results = 0;

    for (uint32_t b = 1; b < g->n_blocks; b++) {
        most += 3 * (uint64_t)g->block_n_params[b]; /* two cells, an initial value */
        n_results += g->block_n_results[b];
    }
    most += n_results; /* homes of a case's outputs */
    if (most >= MPL_NONE)
        return MPL_REFUSE(s->ctx, "graph '%.100s' has too many values", g->name);
    s->most_items = (uint32_t)most;
    s->half = s->words = s->program->n_steps / 64 + 1;
    if (s->spec->options->parallel) {
        MPL_PASS(mpl_units_new(s->ctx, g, s->program, s->spec->options->op_stream, &s->units));
        s->half = s->units->point_words;
        s->words = 2 * s->half;
    }
    MPL_PASS(mpl_new_each(s->ctx, g->n_values, s->hold, s->wanted, s->out_live, s->how, s->of,
                          s->at, s->ref0, s->ref1));
    MPL_PASS(mpl_new_each(s->ctx, g->n_values, s->same, s->dep_begin, s->dep_n));
    MPL_PASS(mpl_new(s->ctx, s->row, (size_t)s->most_items * s->words));
    MPL_PASS(mpl_new_each(s->ctx, s->most_items, s->parent, s->next, s->turn, s->bytes, s->named,
                          s->copy));
    MPL_PASS(mpl_new(s->ctx, s->in_copied, g->op_in_begin[g->n_ops]));
    MPL_PASS(mpl_new(s->ctx, s->result_copied, n_results));
    MPL_PASS(mpl_new(s->ctx, s->staging, g->n_blocks));
    memset(s->staging, 0xff, g->n_blocks * sizeof *s->staging);
    for (mpl_value v = 0; v < g->n_values; v++)
        mpl_item_new(s, v, g->value_bytes[v], 0);
    return MPL_OK;
}

static void store_fini(mpl_store *s)
{
    void *arrays[] = {s->hold,      s->wanted,        s->out_live, s->how,     s->of,
                      s->at,        s->dep_begin,     s->ref0,     s->ref1,    s->dep_n,
                      s->row,       s->parent,        s->next,     s->turn,    s->bytes,
                      s->named,     s->copy,          s->turns,    s->refs,    s->deps,
                      s->in_copied, s->result_copied, s->staging,  s->skipped, s->same};

    MPL_FREE_ALL(s->ctx, arrays);
    mpl_units_free(s->ctx, s->units);
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

void mpl_storage_facts_free(mpl_ctx *ctx, mpl_storage_facts *f)
{
    mpl_free_each(ctx, f->lies, f->out_live, f->result_read);
    *f = (mpl_storage_facts){NULL, NULL, NULL};
}

/* The step at which a value is made; the first step if it comes from outside. */
static uint32_t first_step(const mpl_store *s, mpl_value v)
{
    const mpl_graph *g = s->g;

    return g->value_op[v] != MPL_NONE ? s->program->op_step[g->value_op[v]]
                                      : s->program->begin_step[g->value_block[v]];
}

/* An unread value is needed at the step that makes it; an unread input, at the first step. */
static void give_all_a_step(mpl_store *s)
{
    for (mpl_value v = 0; v < s->g->n_values; v++) {
        bool any = false;

        for (uint32_t w = 0; w < s->words && !any; w++)
            any = mpl_row(s, v)[w] != 0;
        if (!any && s->how[v] == MPL_HOW_CELL)
            mpl_bit_add(mpl_row(s, v), first_step(s, v));
    }
}

/* ---- the result ---- */

/* Initial values are copied before it is known whether the loop runs a round. Values needed after a
 * loop without rounds must not be overwritten by these copies. */
static mpl_status keep_skipped(mpl_store *s, mpl_op op)
{
    mpl_status st = MPL_OK;
    const mpl_graph *g = s->g;
    uint32_t body = mpl_op_first_body(g, op), n_deps = s->n_deps;
    const uint64_t *skipped = s->skipped + (size_t)body * (g->n_values / 64 + 1);
    bool copies = false;

    for (uint32_t i = 0; i < mpl_n_carried(g, op); i++)
        copies = copies || s->in_copied[g->op_in_begin[op] + 2 + i] != 0;
    for (mpl_value v = 0; copies && v < g->n_values; v++)
        if (mpl_bit_has(skipped, v) && s->how[v] != MPL_HOW_NOWHERE)
            MPL_TRY(mpl_add_deps(s, v));
    for (uint32_t i = n_deps; i < s->n_deps; i++)
        mpl_row_set(s, mpl_row(s, s->deps[i]), s->program->begin_step[body]);
out:
    s->n_deps = n_deps;
    return st;
}

typedef struct finisher {
    mpl_store *s;
    mpl_storage *out;
    uint32_t *number;     /* [n_items] cell number of a representative */
    uint32_t *item_place; /* [n_items] MPL_NONE: not made yet */
    size_t place_cap, item_cap;
    uint32_t n_refs;
} finisher;

static mpl_status push_place(finisher *f, mpl_place place, uint32_t *id)
{
    mpl_places *p = f->out->places;

    MPL_PASS(mpl_reserve(f->s->ctx, p->place, f->place_cap, (size_t)p->n + 1));
    p->place[p->n] = place;
    *id = p->n++;
    return MPL_OK;
}

static mpl_status place_of(finisher *f, uint32_t item, uint32_t *id);

/* Adds `place` with the places of n items as its list. */
static mpl_status push_list(finisher *f, mpl_place place, uint32_t n, const uint32_t *item,
                            uint32_t *id)
{
    mpl_status st = MPL_OK;
    mpl_places *p = f->out->places;
    uint32_t *made = NULL;

    MPL_TRY(mpl_new(f->s->ctx, made, n));
    for (uint32_t i = 0; i < n; i++)
        MPL_TRY(place_of(f, item[i], &made[i]));
    MPL_TRY(mpl_reserve(f->s->ctx, p->item, f->item_cap, (size_t)f->n_refs + n));
    place.begin = f->n_refs;
    place.n = n;
    for (uint32_t i = 0; i < n; i++)
        p->item[f->n_refs++] = made[i];
    MPL_TRY(push_place(f, place, id));
out:
    mpl_free(f->s->ctx, made);
    return st;
}

static mpl_status place_slice(finisher *f, mpl_value v, uint32_t *id)
{
    const mpl_graph *g = f->s->g;
    mpl_op op = f->s->of[v];
    bool scan = g->value_op[v] == MPL_NONE;
    uint32_t at = f->s->at[v], n_carried = mpl_n_carried(g, op), n_flags, whole;
    uint32_t n_scans = mpl_op_n_in(g, op) - 2 - n_carried;
    const int64_t *flags = mpl_attr_ints(g, op, MPL_ATTR_scan_reverse, &n_flags);
    uint32_t flag = scan ? at - 2 - n_carried : n_scans + at - n_carried;
    mpl_place place = {.kind = MPL_PLACE_SLICE,
                       .of = mpl_op_first_body(g, op),
                       .bytes = g->value_bytes[v],
                       .reversed = n_flags > 0 && flags[flag] != 0};

    whole = f->s->spec->root[scan ? mpl_op_input(g, op, at) : mpl_op_output(g, op, at)];
    return push_list(f, place, 1, &whole, id);
}

static mpl_status place_branch(finisher *f, mpl_value v, uint32_t *id)
{
    mpl_status st = MPL_OK;
    mpl_store *s = f->s;
    const mpl_graph *g = s->g;
    mpl_op op = s->of[v];
    uint32_t n = g->op_body_begin[op + 1] - g->op_body_begin[op], at = s->at[v], *item = NULL;
    uint32_t bypass = g->op_in_begin[op] + 1 + at;

    MPL_TRY(mpl_new(s->ctx, item, (size_t)n + 1));
    for (uint32_t k = 0; k < n; k++) {
        uint32_t b = g->op_body[g->op_body_begin[op] + k];

        item[k] = s->result_copied[g->block_result_begin[b] + at]
                      ? s->ref0[v]
                      : s->spec->root[mpl_result(g, b, at)];
    }
    item[n] = bypass >= g->op_in_begin[op + 1] ? item[0]
              : s->in_copied[bypass]           ? s->ref0[v]
                                               : s->spec->root[g->op_in[bypass]];
    MPL_TRY(push_list(f, (mpl_place){.kind = MPL_PLACE_BRANCH, .of = op}, n + 1, item, id));
out:
    mpl_free(s->ctx, item);
    return st;
}

static mpl_status place_cell(finisher *f, uint32_t item, uint32_t *id)
{
    mpl_store *s = f->s;
    uint32_t cell = mpl_cell(s, item);
    const mpl_turn *t = s->turn[cell] != MPL_NONE ? &s->turns[s->turn[cell]] : NULL;

    if (t != NULL && t->n_first == 0 && t->n_cycle == 1)
        return place_of(f, s->refs[t->begin], id);
    if (t == NULL)
        return push_place(f, (mpl_place){.kind = MPL_PLACE_BUFFER, .of = f->number[cell]}, id);
    return push_list(f, (mpl_place){.kind = MPL_PLACE_CYCLE, .of = t->block, .n_first = t->n_first},
                     t->n_first + t->n_cycle, s->refs + t->begin, id);
}

/* Makes the place of an item. It refers to places of values with lower ids, of stacked outputs, and
 * of cells in enclosing blocks; recursion is at most as deep as the nesting. */
static mpl_status place_of(finisher *f, uint32_t item, uint32_t *id)
{
    mpl_store *s = f->s;
    mpl_how how = item < s->g->n_values ? (mpl_how)s->how[item] : MPL_HOW_CELL;

    mpl_assert(how != MPL_HOW_NOWHERE);
    if (f->item_place[item] == MPL_NONE) {
        if (how == MPL_HOW_PINNED)
            MPL_PASS(push_place(f, (mpl_place){.kind = MPL_PLACE_PINNED, .of = item}, id));
        else if (how == MPL_HOW_SLICE)
            MPL_PASS(place_slice(f, item, id));
        else if (how == MPL_HOW_BRANCH)
            MPL_PASS(place_branch(f, item, id));
        else if (how == MPL_HOW_FINAL)
            MPL_PASS(push_list(f, (mpl_place){.kind = MPL_PLACE_FINAL, .of = s->of[item]}, 2,
                               (uint32_t[]){s->ref0[item], s->ref1[item]}, id));
        else
            MPL_PASS(place_cell(f, item, id));
        f->item_place[item] = *id;
    }
    *id = f->item_place[item];
    return MPL_OK;
}

/* Whether an item represents a cell that becomes a buffer: the cell stays in one place and is
 * used. */
static bool is_buffer(mpl_store *s, uint32_t item)
{
    if (mpl_cell(s, item) != item || s->turn[item] != MPL_NONE ||
        (item < s->g->n_values && s->how[item] != MPL_HOW_CELL))
        return false;
    for (uint32_t w = 0; w < s->words; w++)
        if (mpl_row(s, item)[w] != 0)
            return true;
    return false;
}

static mpl_status number_cells(finisher *f)
{
    mpl_store *s = f->s;
    mpl_storage *out = f->out;

    for (uint32_t item = 0; item < s->n_items; item++)
        if (is_buffer(s, item))
            f->number[item] = out->n_cells++;
    out->words = s->words;
    MPL_PASS(mpl_new_each(s->ctx, out->n_cells, out->bytes, out->named, out->copy));
    MPL_PASS(mpl_new(s->ctx, out->row, (size_t)out->n_cells * s->words));
    for (uint32_t item = 0; item < s->n_items; item++) {
        uint32_t at = item, n;

        if (!is_buffer(s, item))
            continue;
        n = f->number[item];
        out->bytes[n] = s->bytes[item];
        out->named[n] = s->named[item];
        out->copy[n] = s->copy[item];
        do {
            for (uint32_t w = 0; w < s->words; w++)
                out->row[(size_t)n * s->words + w] |= mpl_row(s, at)[w];
            at = s->next[at];
        } while (at != item);
    }
    return MPL_OK;
}

/* The cell that an item stays in; MPL_NONE when its address changes by round. */
static uint32_t settled_cell(mpl_store *s, uint32_t item)
{
    uint32_t cell = mpl_cell(s, item);

    while (s->turn[cell] != MPL_NONE) {
        const mpl_turn *t = &s->turns[s->turn[cell]];

        item = s->refs[t->begin];
        if (t->n_first > 0 || t->n_cycle > 1 ||
            (item < s->g->n_values && s->how[item] != MPL_HOW_CELL))
            return MPL_NONE;
        cell = mpl_cell(s, item);
    }
    return cell;
}

static mpl_status finish_values(finisher *f)
{
    mpl_store *s = f->s;
    mpl_storage *out = f->out;
    uint32_t n = s->g->n_values;

    MPL_PASS(mpl_new_each(s->ctx, n, out->value_cell, out->places->value_place));
    MPL_PASS(mpl_new(s->ctx, out->places->staging, s->g->n_blocks));
    for (mpl_value v = 0; v < n; v++) {
        uint32_t cell = s->how[v] == MPL_HOW_CELL ? settled_cell(s, v) : MPL_NONE;
        bool stays = cell != MPL_NONE;

        out->value_cell[v] = stays ? f->number[cell] : MPL_NONE;
        out->places->value_place[v] = MPL_NONE;
        if (!stays && s->how[v] != MPL_HOW_NOWHERE && s->how[v] != MPL_HOW_PINNED)
            MPL_PASS(place_of(f, v, &out->places->value_place[v]));
    }
    for (uint32_t b = 0; b < s->g->n_blocks; b++)
        out->places->staging[b] = s->staging[b] == MPL_NONE ? MPL_NONE : f->number[s->staging[b]];
    out->places->in_copied = s->in_copied, s->in_copied = NULL;
    out->places->result_copied = s->result_copied, s->result_copied = NULL;
    return MPL_OK;
}

mpl_status mpl_storage_new(mpl_ctx *ctx, const mpl_storage_spec *spec, mpl_storage **out)
{
    mpl_status st = MPL_OK;
    mpl_store s = {.ctx = ctx, .spec = spec, .g = spec->g, .program = spec->program};
    finisher f = {.s = &s};

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

void mpl_places_free(mpl_ctx *ctx, mpl_places *p)
{
    if (p == NULL)
        return;
    void *arrays[] = {p->place,   p->item, p->value_place, p->in_copied, p->result_copied,
                      p->staging, p};
    MPL_FREE_ALL(ctx, arrays);
}

void mpl_storage_free(mpl_ctx *ctx, mpl_storage *s)
{
    if (s == NULL)
        return;
    mpl_places_free(ctx, s->places);
    mpl_units_free(ctx, s->units);
    void *arrays[] = {s->bytes, s->named, s->copy, s->row, s->value_cell, s};
    MPL_FREE_ALL(ctx, arrays);
}
