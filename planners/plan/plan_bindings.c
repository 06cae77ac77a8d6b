/* plan_bindings.c -- the `bindings` and `copies: [{value, from, when, block, bytes}, ..]` of a plan
 * file. See plan_bindings.h. Both follow from the graph alone, so the reader recomputes them and
 * requires the file to agree. */
#include "planners/plan/plan_bindings.h"

#include <stdlib.h>

#include "planners/plan/plan_json.h"

static json_t *place_of(const mpl_graph *g, const mpl_places *places, uint32_t id);

static json_t *items_of(const mpl_graph *g, const mpl_places *places, const mpl_place *place,
                        uint32_t from, uint32_t to)
{
    json_t *list = json_array();

    for (uint32_t i = from; i < to; i++)
        list = mpl_json_push(list, place_of(g, places, places->item[place->begin + i]));
    return list;
}

static json_t *place_of(const mpl_graph *g, const mpl_places *places, uint32_t id)
{
    const mpl_place *place = &places->place[id];
    const uint32_t *item = &places->item[place->begin];

    switch ((mpl_place_kind)place->kind) {
    case MPL_PLACE_BUFFER:
        return json_pack("{s:o}", "buffer", mpl_json_number(place->of));
    case MPL_PLACE_PINNED:
        return json_pack("{s:o}", "pinned", mpl_json_text(g->value_name[place->of]));
    case MPL_PLACE_CYCLE:
        return json_pack("{s:o, s:o, s:o}", "loop", mpl_json_text(g->block_name[place->of]),
                         "first", items_of(g, places, place, 0, place->n_first), "cycle",
                         items_of(g, places, place, place->n_first, place->n));
    case MPL_PLACE_FINAL:
        return json_pack("{s:o, s:o, s:o}", "behind", mpl_json_text(g->op_name[place->of]),
                         "no_round", place_of(g, places, item[0]), "last_round",
                         place_of(g, places, item[1]));
    case MPL_PLACE_BRANCH:
        return json_pack("{s:o, s:o, s:o}", "case", mpl_json_text(g->op_name[place->of]),
                         "branches", items_of(g, places, place, 0, place->n - 1), "bypass",
                         place_of(g, places, item[place->n - 1]));
    case MPL_PLACE_SLICE:
        return json_pack("{s:o, s:o, s:b, s:o}", "slice", mpl_json_text(g->block_name[place->of]),
                         "bytes", mpl_json_number(place->bytes), "reversed", (int)place->reversed,
                         "of", place_of(g, places, item[0]));
    }
    return NULL;
}

static json_t *bindings_of(const mpl_graph *g, const mpl_places *places)
{
    json_t *list = json_array();

    for (mpl_value v = 0; v < g->n_values; v++)
        if (places->value_place[v] != MPL_NONE)
            list = mpl_json_push(list,
                                 json_pack("{s:o, s:o}", "value", mpl_json_text(g->value_name[v]),
                                           "at", place_of(g, places, places->value_place[v])));
    return list;
}

static json_t *copies_of(const mpl_graph *g, const mpl_copy *copy, uint32_t n)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < n; i++)
        list = mpl_json_push(list, json_pack("{s:o, s:o, s:s, s:o, s:o}", "value",
                                             mpl_json_text(g->value_name[copy[i].to]), "from",
                                             mpl_json_text(g->value_name[copy[i].from]), "when",
                                             mpl_copy_name(copy[i].when), "block",
                                             mpl_json_text(g->block_name[copy[i].block]), "bytes",
                                             mpl_json_number(copy[i].bytes)));
    return list;
}

/* {"bindings": [..], "copies": [..]} */
static mpl_status make(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map, json_t **out)
{
    mpl_status st = MPL_OK;
    mpl_copy *copy = NULL;
    uint32_t n = 0;

    MPL_TRY(mpl_copies_of(ctx, g, map, &copy, &n));
    *out = json_pack("{s:o, s:o}", "bindings", bindings_of(g, map->places), "copies",
                     copies_of(g, copy, n));
    MPL_TRY(*out != NULL ? MPL_OK : mpl_json_no_memory(ctx));
out:
    mpl_free(ctx, copy);
    return st;
}

/* Parses memplan's own fields of a plan file. */
static mpl_status parse(mpl_ctx *ctx, const char *text, json_t **out)
{
    return mpl_json_parse(ctx, "the fields of a plan file", text, strlen(text),
                          JSON_REJECT_DUPLICATES, out);
}

mpl_status mpl_plan_add_bindings(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                                 char **fields_json)
{
    mpl_status st = MPL_OK;
    json_t *root = NULL, *made = NULL;
    char *dumped = NULL, *text = NULL;

    if (g == NULL || map == NULL || map->places == NULL)
        goto out;
    MPL_TRY(parse(ctx, *fields_json, &root));
    MPL_TRY(make(ctx, g, map, &made));
    MPL_TRY(json_object_update(root, made) == 0 ? MPL_OK : mpl_json_no_memory(ctx));
    MPL_TRY((dumped = json_dumps(root, JSON_COMPACT)) != NULL ? MPL_OK : mpl_json_no_memory(ctx));
    MPL_TRY(mpl_copy_text(ctx, text, dumped));
    mpl_free(ctx, *fields_json);
    *fields_json = text;
out:
    free(dumped);
    json_decref(made);
    json_decref(root);
    return st;
}

/* ---- reading ---- */

static const char *value_of(const json_t *entry)
{
    const char *name = json_string_value(json_object_get(entry, "value"));

    return name != NULL ? name : "?";
}

static mpl_status compare(mpl_ctx *ctx, const char *path, const json_t *want, const json_t *have)
{
    mpl_status st = MPL_OK;
    char *right = NULL, *wrong = NULL;

    if (json_equal(want, have))
        return MPL_OK;
    MPL_TRY((right = json_dumps(want, JSON_COMPACT)) != NULL ? MPL_OK : mpl_json_no_memory(ctx));
    MPL_TRY((wrong = json_dumps(have, JSON_COMPACT)) != NULL ? MPL_OK : mpl_json_no_memory(ctx));
    MPL_FAIL(ctx, MPL_EINVALID,
             "%.150s: the plan says of '%.80s' %.120s, where the graph has %.120s", path,
             value_of(want), wrong, right);
out:
    free(right);
    free(wrong);
    return st;
}

/* Compares one of the two lists, entry by entry. */
static mpl_status compare_lists(mpl_ctx *ctx, const char *path, const json_t *want,
                                const json_t *have, const char *what)
{
    size_t n = json_array_size(want), n_have = json_array_size(have);

    for (size_t i = 0; i < n && i < n_have; i++)
        if (strcmp(value_of(json_array_get(want, i)), value_of(json_array_get(have, i))) == 0)
            MPL_PASS(compare(ctx, path, json_array_get(want, i), json_array_get(have, i)));
        else
            return MPL_ERROR(
                ctx, MPL_EINVALID,
                "%.150s: '%s' of the plan go on with '%.80s', where the graph has '%.80s'", path,
                what, value_of(json_array_get(have, i)), value_of(json_array_get(want, i)));
    if (n_have < n)
        return MPL_ERROR(ctx, MPL_EINVALID, "%.150s: '%s' of the plan say nothing of '%.80s'", path,
                         what, value_of(json_array_get(want, n_have)));
    if (n_have > n)
        return MPL_ERROR(ctx, MPL_EINVALID,
                         "%.150s: '%s' of the plan have '%.80s', and the graph has not", path, what,
                         value_of(json_array_get(have, n)));
    return MPL_OK;
}

mpl_status mpl_plan_check_bindings(mpl_ctx *ctx, const char *path, const char *fields_json,
                                   const mpl_graph *g, const mpl_value_map *map)
{
    mpl_status st = MPL_OK;
    json_t *root = NULL, *want = NULL;

    if (g == NULL || map == NULL || map->places == NULL)
        goto out;
    MPL_TRY(parse(ctx, fields_json != NULL ? fields_json : "{}", &root));
    MPL_TRY(make(ctx, g, map, &want));
    MPL_TRY(compare_lists(ctx, path, json_object_get(want, "bindings"),
                          json_object_get(root, "bindings"), "bindings"));
    MPL_TRY(compare_lists(ctx, path, json_object_get(want, "copies"),
                          json_object_get(root, "copies"), "copies"));
out:
    json_decref(want);
    json_decref(root);
    return st;
}
