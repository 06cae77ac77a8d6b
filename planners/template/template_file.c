/* template_file.c -- templates as self-contained JSON files. See template_plan.h. */
#include "graphs/core/file.h"
#include "graphs/core/text.h"
#include "planners/plan/plan_json.h"
#include "planners/template/template_plan.h"
#include "planners/verify/verify.h"

#include <stdlib.h>

#define SCHEMA 1

/* ---- writing ---- */

static json_t *ids_of(uint32_t n, const mpl_buffer *id)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < n; i++)
        list = mpl_json_push(list, json_integer(id[i]));
    return list;
}

static json_t *shape_of(uint32_t n, const int64_t *value)
{
    json_t *list = value != NULL ? json_array() : json_null();

    for (uint32_t i = 0; value != NULL && i < n; i++)
        list = mpl_json_push(list, json_integer(value[i]));
    return list;
}

static json_t *symbols_of(const mpl_exprs *exprs)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < mpl_exprs_n_symbols(exprs); i++) {
        const mpl_symbol *symbol = mpl_exprs_symbol(exprs, i);

        list = mpl_json_push(list,
                             json_pack("{s:s, s:I, s:I, s:I}", "name", symbol->name, "first",
                                       (json_int_t)symbol->first, "last", (json_int_t)symbol->last,
                                       "step", (json_int_t)symbol->step));
    }
    return list;
}

/* Adds an expression's text to *list; NULL memory is left to the end, as in plan_json.h. */
static mpl_status push_text(mpl_ctx *ctx, const mpl_exprs *exprs, mpl_expr e, json_t **list)
{
    char *text = NULL;

    MPL_PASS(mpl_expr_write(ctx, exprs, e, &text));
    *list = mpl_json_push(*list, mpl_json_text(text));
    mpl_free(ctx, text);
    return MPL_OK;
}

static json_t *relations_of(const mpl_template_cell *cell)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < cell->n_relations; i++)
        list = mpl_json_push(list, mpl_json_row(2, (uint64_t[]){cell->below[i], cell->above[i]}));
    return list;
}

static json_t *on_of(uint32_t n, const mpl_template_cell *cell)
{
    json_t *list = json_array();

    for (mpl_buffer b = 0; b < n; b++)
        if (cell->on[b] != b)
            list = mpl_json_push(list, mpl_json_row(2, (uint64_t[]){b, cell->on[b]}));
    return list;
}

static json_t *cell_of(const mpl_template *tmpl, const mpl_template_cell *cell)
{
    uint32_t n = tmpl->problem->at->n, n_symbols = cell->box.n;
    const mpl_regret *regret = &cell->regret;
    json_t *one = json_pack("{s:o, s:o, s:o, s:o}", "low", shape_of(n_symbols, cell->box.low),
                            "high", shape_of(n_symbols, cell->box.high), "on", on_of(n, cell),
                            "relations", relations_of(cell));

    one = mpl_json_put(one, "offsets",
                       cell->offset != NULL ? mpl_json_row(n, cell->offset) : json_null());
    one = mpl_json_put(one, "arenas",
                       cell->arena != NULL ? mpl_json_row(tmpl->problem->at->n_pools, cell->arena)
                                           : json_null());
    return mpl_json_put(
        one, "regret",
        json_pack("{s:o, s:o, s:o, s:o}", "arena_bytes", mpl_json_number(regret->arena),
                  "bound_bytes", mpl_json_number(regret->bound), "shape",
                  shape_of(n_symbols, regret->at), "most", mpl_json_number(regret->most)));
}

/* A shape that the template holds: the lowest of a cell, else a drawn one. */
static mpl_status some_shape(mpl_ctx *ctx, const mpl_template *tmpl, int64_t *value)
{
    const mpl_exprs *exprs = tmpl->problem->exprs;
    mpl_rng rng;

    for (uint32_t i = 0; i < mpl_exprs_n_symbols(exprs); i++)
        value[i] = mpl_exprs_symbol(exprs, i)->first;
    if (mpl_point_allowed(exprs, value))
        return MPL_OK;
    mpl_rng_init(&rng, 1);
    return mpl_shape_draw(ctx, exprs, NULL, true, &rng, value);
}

/* The verified plan at one shape, as the object of a plan file. */
static mpl_status plan_at(mpl_ctx *ctx, const mpl_template *tmpl, const int64_t *value,
                          json_t **out)
{
    mpl_status st = MPL_OK;
    mpl_problem *p = NULL;
    mpl_plan *plan = NULL;
    char *text = NULL;

    MPL_TRY(mpl_sym_problem_at(ctx, tmpl->problem, value, &p));
    MPL_TRY(mpl_plan_new(ctx, p, &plan));
    MPL_TRY(mpl_template_offsets(ctx, tmpl, value, plan->offset, NULL, NULL));
    plan->claim = MPL_FEASIBLE;
    MPL_TRY(mpl_verify(ctx, p, plan));
    MPL_TRY(mpl_plan_text(ctx, p, plan, NULL, &text));
    MPL_TRY(mpl_json_parse(ctx, "the plan of a template", text, strlen(text), 0, out));
out:
    mpl_problem_free(ctx, p);
    mpl_plan_free(ctx, plan);
    mpl_free(ctx, text);
    return st;
}

/* The lists of expressions: relations between symbols, sizes, distances. */
static mpl_status put_texts(mpl_ctx *ctx, const mpl_sym_problem *sp, json_t **root)
{
    const mpl_problem *p = sp->at;
    json_t *rules = json_array(), *bytes = json_array(), *inside = json_array();
    mpl_status st = MPL_OK;

    for (uint32_t i = 0; st == MPL_OK && i < mpl_exprs_n_relations(sp->exprs); i++)
        st = push_text(ctx, sp->exprs, mpl_exprs_relation_at(sp->exprs, i), &rules);
    for (mpl_buffer b = 0; st == MPL_OK && b < p->n; b++)
        st = push_text(ctx, sp->exprs, sp->bytes[b], &bytes);
    for (mpl_buffer b = 0; st == MPL_OK && p->inside != NULL && b < p->n; b++)
        st = push_text(ctx, sp->exprs, p->inside[b] != b ? sp->inside_at[b] : 0, &inside);
    *root = mpl_json_put(*root, "at_most_0", rules);
    *root = mpl_json_put(*root, "bytes", bytes);
    *root = mpl_json_put(*root, "inside_at", inside);
    return st;
}

static mpl_status build(mpl_ctx *ctx, const mpl_template *tmpl, const char *fields_json,
                        json_t **out)
{
    mpl_status st = MPL_OK;
    json_t *root = NULL, *plan = NULL, *list = json_array();
    int64_t value[MPL_MAX_SYMBOLS];

    MPL_TRY(mpl_json_begin(ctx, "template", fields_json, &root));
    MPL_TRY(some_shape(ctx, tmpl, value));
    MPL_TRY(plan_at(ctx, tmpl, value, &plan));
    root = mpl_json_put(root, "symbols", symbols_of(tmpl->problem->exprs));
    MPL_TRY(put_texts(ctx, tmpl->problem, &root));
    for (uint32_t i = 0; i < tmpl->n_loads; i++)
        list = mpl_json_push(list, ids_of(tmpl->load_begin[i + 1] - tmpl->load_begin[i],
                                          tmpl->load + tmpl->load_begin[i]));
    root = mpl_json_put(root, "loads", list), list = json_array();
    for (uint32_t i = 0; i < tmpl->n_cells; i++)
        list = mpl_json_push(list, cell_of(tmpl, &tmpl->cell[i]));
    root = mpl_json_put(root, "cells", list), list = NULL;
    root = mpl_json_put(root, "shape", shape_of(mpl_exprs_n_symbols(tmpl->problem->exprs), value));
    root = mpl_json_put(root, "plan", plan), plan = NULL;
    MPL_TRY(root != NULL ? MPL_OK : mpl_json_no_memory(ctx));
    *out = root, root = NULL;
out:
    json_decref(list), json_decref(plan), json_decref(root);
    return st;
}

mpl_status mpl_template_write(mpl_ctx *ctx, const char *path, const mpl_template *tmpl,
                              const char *fields_json)
{
    json_t *root = NULL;
    mpl_status st = build(ctx, tmpl, fields_json, &root);

    if (st == MPL_OK)
        st = mpl_json_write(ctx, path, root);
    json_decref(root);
    return st;
}

/* ---- reading ---- */

typedef struct reader {
    mpl_ctx *ctx;
    const char *path;
    json_t *root;
    mpl_sym_problem *sp;
    mpl_template *tmpl;
} reader;

#define REFUSE(r, ...) MPL_REFUSE((r)->ctx, __VA_ARGS__)

/* Passes a failure on with the file's name before its message. */
static mpl_status name_file(const reader *in, mpl_status st)
{
    if (st != MPL_EINPUT || strncmp(in->ctx->message, in->path, strlen(in->path)) == 0)
        return st;
    return REFUSE(in, "%.150s: %s", in->path, in->ctx->message);
}

/* The list `key` of an object; n: its length, or SIZE_MAX for any below 2^30. */
static mpl_status get_list(const reader *in, const json_t *object, const char *key, size_t n,
                           const json_t **out)
{
    const json_t *list = json_object_get(object, key);

    if (!json_is_array(list) || json_array_size(list) >= MPL_NONE / 4 ||
        (n != SIZE_MAX && json_array_size(list) != n))
        return REFUSE(in, "%s: '%s' is missing or no list of the right length", in->path, key);
    *out = list;
    return MPL_OK;
}

/* A whole number of at least 0; null is `otherwise` where that is not 0. */
static mpl_status get_number(const reader *in, const json_t *value, const char *what,
                             uint64_t otherwise, uint64_t most, uint64_t *out)
{
    if (otherwise != 0 && json_is_null(value)) {
        *out = otherwise;
        return MPL_OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > most)
        return REFUSE(in, "%s: '%s' is missing or holds no number from 0 to %" PRIu64, in->path,
                      what, most);
    *out = (uint64_t)json_integer_value(value);
    return MPL_OK;
}

/* Numbers of a list, which has n. */
static mpl_status get_row(const reader *in, const json_t *object, const char *key, size_t n,
                          uint64_t most, int64_t *out)
{
    const json_t *list = NULL;

    MPL_PASS(get_list(in, object, key, n, &list));
    for (size_t i = 0; i < n; i++) {
        uint64_t number = 0;

        MPL_PASS(get_number(in, json_array_get(list, i), key, 0, most, &number));
        out[i] = (int64_t)number;
    }
    return MPL_OK;
}

static mpl_status read_symbols(reader *in)
{
    const json_t *list = NULL;

    MPL_PASS(mpl_exprs_new(in->ctx, &in->sp->exprs));
    MPL_PASS(get_list(in, in->root, "symbols", SIZE_MAX, &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(one, "name"));
        uint64_t first = 0, last = 0, step = 0;
        mpl_expr e;

        MPL_PASS(get_number(in, json_object_get(one, "first"), "first", 0, INT32_MAX, &first));
        MPL_PASS(get_number(in, json_object_get(one, "last"), "last", 0, INT32_MAX, &last));
        MPL_PASS(get_number(in, json_object_get(one, "step"), "step", 0, INT32_MAX, &step));
        MPL_PASS(mpl_expr_symbol(in->ctx, in->sp->exprs, name != NULL ? name : "", (int64_t)first,
                                 (int64_t)last, (int64_t)step, &e));
    }
    return MPL_OK;
}

/* Entry i of a list of expressions. */
static mpl_status read_expr(const reader *in, const json_t *list, size_t i, mpl_expr *out)
{
    const char *text = json_string_value(json_array_get(list, i));

    if (text == NULL)
        return REFUSE(in, "%s: a size is no text", in->path);
    return mpl_expr_read(in->ctx, in->sp->exprs, text, out);
}

/* Whether an expression has the value that the plan of the shape has for it. */
static mpl_status check_value(const reader *in, mpl_buffer b, mpl_expr e, const int64_t *shape,
                              uint64_t want)
{
    int64_t value = 0;

    if (!mpl_expr_eval(in->sp->exprs, e, shape, &value) || value < 0 || (uint64_t)value != want)
        return REFUSE(in,
                      "%s: the size or place of buffer %u is %" PRId64
                      " at the shape of the plan inside, which has %" PRIu64,
                      in->path, b, value, want);
    return MPL_OK;
}

static mpl_status read_sizes(reader *in)
{
    const mpl_problem *p = in->sp->at;
    uint32_t n_symbols = mpl_exprs_n_symbols(in->sp->exprs);
    int64_t shape[MPL_MAX_SYMBOLS];
    const json_t *bytes = NULL, *inside = NULL, *rules = NULL;

    MPL_PASS(get_list(in, in->root, "at_most_0", SIZE_MAX, &rules));
    MPL_PASS(get_list(in, in->root, "bytes", p->n, &bytes));
    MPL_PASS(get_list(in, in->root, "inside_at", p->inside != NULL ? p->n : 0, &inside));
    MPL_PASS(get_row(in, in->root, "shape", n_symbols, INT32_MAX, shape));
    MPL_PASS(mpl_new_each(in->ctx, p->n, in->sp->bytes, in->sp->inside_at));
    for (size_t i = 0; i < json_array_size(rules); i++) {
        mpl_expr e;

        MPL_PASS(read_expr(in, rules, i, &e));
        MPL_PASS(mpl_exprs_relation(in->ctx, in->sp->exprs, e));
    }
    if (!mpl_point_allowed(in->sp->exprs, shape))
        return REFUSE(in, "%s: the shape of the plan inside is not in the range", in->path);
    for (mpl_buffer b = 0; b < p->n; b++) {
        MPL_PASS(read_expr(in, bytes, b, &in->sp->bytes[b]));
        MPL_PASS(check_value(in, b, in->sp->bytes[b], shape, p->bytes[b]));
        if (p->inside == NULL)
            continue;
        MPL_PASS(read_expr(in, inside, b, &in->sp->inside_at[b]));
        MPL_PASS(check_value(in, b, in->sp->inside_at[b], shape, p->inside_at[b]));
    }
    return MPL_OK;
}

/* The problem of the plan inside. */
static mpl_status read_problem(reader *in)
{
    json_t *plan = json_object_get(in->root, "plan");
    mpl_plan_file file = {0};

    if (!json_is_object(plan))
        return REFUSE(in, "%s: 'plan' is missing or no object", in->path);
    MPL_PASS(mpl_plan_from_json(in->ctx, in->path, plan, &file));
    in->sp->at = file.problem, file.problem = NULL;
    mpl_plan_file_fini(in->ctx, &file);
    return MPL_OK;
}

/* Pairs of buffers: the n-th one. */
static mpl_status get_pair(const reader *in, const json_t *list, size_t i, const char *what,
                           uint64_t pair[2])
{
    const json_t *row = json_array_get(list, i);

    if (json_array_size(row) != 2)
        return REFUSE(in, "%s: '%s' holds something else than pairs", in->path, what);
    for (size_t k = 0; k < 2; k++)
        MPL_PASS(get_number(in, json_array_get(row, k), what, 0, in->sp->at->n - 1, &pair[k]));
    return MPL_OK;
}

static mpl_status read_regret(const reader *in, const json_t *one, mpl_template_cell *cell)
{
    mpl_regret *regret = &cell->regret;

    MPL_PASS(get_number(in, json_object_get(one, "arena_bytes"), "arena_bytes", 0, INT64_MAX,
                        &regret->arena));
    MPL_PASS(get_number(in, json_object_get(one, "bound_bytes"), "bound_bytes", 0, INT64_MAX,
                        &regret->bound));
    MPL_PASS(get_number(in, json_object_get(one, "most"), "most", UINT64_MAX, MPL_REGRET_MOST,
                        &regret->most));
    if (json_is_null(json_object_get(one, "shape")))
        return MPL_OK;
    MPL_PASS(mpl_new(in->ctx, regret->at, cell->box.n));
    return get_row(in, one, "shape", cell->box.n, INT32_MAX, regret->at);
}

static mpl_status read_cell(const reader *in, const json_t *one, mpl_template_cell *cell)
{
    const json_t *list = NULL;
    uint64_t pair[2];

    MPL_PASS(get_row(in, one, "low", cell->box.n, INT32_MAX, cell->box.low));
    MPL_PASS(get_row(in, one, "high", cell->box.n, INT32_MAX, cell->box.high));
    MPL_PASS(get_list(in, one, "on", SIZE_MAX, &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        MPL_PASS(get_pair(in, list, i, "on", pair));
        cell->on[pair[0]] = (mpl_buffer)pair[1];
    }
    MPL_PASS(get_list(in, one, "relations", SIZE_MAX, &list));
    cell->n_relations = (uint32_t)json_array_size(list);
    MPL_PASS(mpl_new_each(in->ctx, cell->n_relations, cell->below, cell->above));
    for (uint32_t i = 0; i < cell->n_relations; i++) {
        MPL_PASS(get_pair(in, list, i, "relations", pair));
        cell->below[i] = (mpl_buffer)pair[0], cell->above[i] = (mpl_buffer)pair[1];
    }
    if (!json_is_null(json_object_get(one, "offsets"))) {
        MPL_PASS(mpl_new(in->ctx, cell->offset, in->sp->at->n));
        MPL_PASS(mpl_new(in->ctx, cell->arena, in->sp->at->n_pools));
        MPL_PASS(
            get_row(in, one, "offsets", in->sp->at->n, INT64_MAX / 4, (int64_t *)cell->offset));
        MPL_PASS(
            get_row(in, one, "arenas", in->sp->at->n_pools, INT64_MAX / 4, (int64_t *)cell->arena));
    }
    return read_regret(in, json_object_get(one, "regret"), cell);
}

static mpl_status read_loads(const reader *in)
{
    mpl_template *tmpl = in->tmpl;
    const json_t *list = NULL;
    size_t n = 0;

    MPL_PASS(get_list(in, in->root, "loads", SIZE_MAX, &list));
    for (size_t i = 0; i < json_array_size(list); i++)
        n += json_array_size(json_array_get(list, i));
    mpl_free(in->ctx, tmpl->load_begin);
    MPL_PASS(mpl_new(in->ctx, tmpl->load_begin, json_array_size(list) + 1));
    MPL_PASS(mpl_new(in->ctx, tmpl->load, n));
    for (size_t i = 0, at = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);

        for (size_t k = 0; k < json_array_size(one); k++) {
            uint64_t id = 0;

            MPL_PASS(get_number(in, json_array_get(one, k), "loads", 0, in->sp->at->n - 1, &id));
            tmpl->load[at++] = (mpl_buffer)id;
        }
        tmpl->load_begin[++tmpl->n_loads] = (uint32_t)at;
    }
    return MPL_OK;
}

static mpl_status read_all(reader *in)
{
    const char *kind = json_string_value(json_object_get(in->root, "kind"));
    const json_t *cells = NULL;

    if (kind == NULL || strcmp(kind, "template") != 0)
        return REFUSE(in, "%s: no template file: 'kind' is not \"template\"", in->path);
    if (json_integer_value(json_object_get(in->root, "schema")) != SCHEMA)
        return REFUSE(in, "%s: 'schema' is not %d, which this memplan reads", in->path, SCHEMA);
    MPL_PASS(mpl_new(in->ctx, in->sp, 1));
    MPL_PASS(read_symbols(in));
    MPL_PASS(read_problem(in));
    if (in->sp->at->n == 0)
        return REFUSE(in, "%s: the template has no buffers", in->path);
    MPL_PASS(read_sizes(in));
    MPL_PASS(get_list(in, in->root, "cells", SIZE_MAX, &cells));
    if (json_array_size(cells) == 0)
        return REFUSE(in, "%s: the template has no cells", in->path);
    MPL_PASS(mpl_template_new(in->ctx, in->sp, (uint32_t)json_array_size(cells), &in->tmpl));
    for (uint32_t i = 0; i < in->tmpl->n_cells; i++)
        MPL_PASS(read_cell(in, json_array_get(cells, i), &in->tmpl->cell[i]));
    MPL_PASS(read_loads(in));
    return mpl_template_ready(in->ctx, in->tmpl);
}

/* The fields of the object that are not the template's own, as text. */
static mpl_status keep_fields(const reader *in, char **out)
{
    static const char *const own[] = {"schema",    "kind",  "symbols", "at_most_0", "bytes",
                                      "inside_at", "loads", "cells",   "shape",     "plan"};
    char *text;

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        json_object_del(in->root, own[i]);
    text = json_dumps(in->root, JSON_COMPACT);
    if (text == NULL)
        return mpl_json_no_memory(in->ctx);
    *out = mpl_strdup(in->ctx, text);
    free(text);
    return *out != NULL ? MPL_OK : MPL_EMEM;
}

mpl_status mpl_template_read(mpl_ctx *ctx, const char *path, mpl_template **out, char **fields_json)
{
    mpl_status st = MPL_OK;
    reader r = {.ctx = ctx, .path = path};
    char *text = NULL;
    size_t size = 0;

    MPL_TRY(mpl_file_read(ctx, path, &text, &size));
    MPL_TRY(mpl_json_parse(ctx, path, text, size, JSON_REJECT_DUPLICATES, &r.root));
    MPL_TRY(name_file(&r, read_all(&r)));
    if (fields_json != NULL)
        MPL_TRY(keep_fields(&r, fields_json));
    r.tmpl->owned = r.sp, r.sp = NULL;
    *out = r.tmpl, r.tmpl = NULL;
out:
    mpl_template_free(ctx, r.tmpl);
    if (r.sp != NULL)
        mpl_exprs_free(ctx, r.sp->exprs);
    mpl_sym_problem_free(ctx, r.sp);
    json_decref(r.root);
    mpl_free(ctx, text);
    return st;
}
