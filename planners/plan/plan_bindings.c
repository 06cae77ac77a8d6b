/* plan_bindings.c -- where the values of a graph with control flow lie, and what it copies, in a
 * plan file: its `bindings`, and `copies: [{value, from, when, block, bytes}, ..]`. See
 * plan_bindings.h.
 *
 * They are made from the graph alone, so the reader makes them again, and demands the same of the
 * file. */
#include "planners/plan/plan_bindings.h"

#include <jansson.h>
#include <stdlib.h>

static mpl_status no_memory(mpl_ctx *ctx)
{
    return mpl_fail(ctx, MPL_EMEM, __FILE__, __LINE__, "out of memory for the bindings of a plan");
}

static mpl_status parse(mpl_ctx *ctx, const char *text, json_t **out)
{
    json_error_t error = {.line = 0};

    *out = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (*out != NULL)
        return MPL_OK;
    if (error.text[0] == '\0' || json_error_code(&error) == json_error_out_of_memory)
        return no_memory(ctx);
    return mpl_fail(ctx, MPL_EINPUT, __FILE__, __LINE__,
                    "the fields of a plan file are no JSON object: %s", error.text);
}

/* `value` is taken; NULL: it could not be made. */
static mpl_status put(mpl_ctx *ctx, json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0 ? MPL_OK : no_memory(ctx);
}

static mpl_status push(mpl_ctx *ctx, json_t *array, json_t *value)
{
    return json_array_append_new(array, value) == 0 ? MPL_OK : no_memory(ctx);
}

static json_t *number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

/* Bytes that are no UTF-8 become '?', as everywhere in a plan file. */
static mpl_status put_text(mpl_ctx *ctx, json_t *object, const char *key, const char *text)
{
    mpl_status st = MPL_OK;
    char *clean = NULL;
    json_t *value = json_string(text);

    if (value == NULL) {
        MPL_TRY((clean = mpl_strdup(ctx, text)) != NULL ? MPL_OK : MPL_EMEM);
        for (char *c = clean; *c != '\0'; c++)
            *c = (unsigned char)*c < 0x80 ? *c : '?';
        value = json_string(clean);
    }
    st = put(ctx, object, key, value);
out:
    mpl_free(ctx, clean);
    return st;
}

/* Appends items [from, to) of place p to a new list under `key`; or, where `one`, puts the only
 * item there. */
static mpl_status put_items(mpl_ctx *ctx, json_t *ref, const char *key, const mpl_graph *g,
                            const mpl_places *places, const mpl_place *p, uint32_t from,
                            uint32_t to, bool one);

static mpl_status put_place(mpl_ctx *ctx, json_t *ref, const mpl_graph *g, const mpl_places *places,
                            uint32_t id)
{
    mpl_status st = MPL_OK;
    const mpl_place *p = &places->place[id];

    switch ((mpl_place_kind)p->kind) {
    case MPL_PLACE_BUFFER:
        return put(ctx, ref, "buffer", number(p->of));
    case MPL_PLACE_PINNED:
        return put_text(ctx, ref, "pinned", g->value_name[p->of]);
    case MPL_PLACE_CYCLE:
        MPL_TRY(put_text(ctx, ref, "loop", g->block_name[p->of]));
        MPL_TRY(put_items(ctx, ref, "first", g, places, p, 0, p->n_first, false));
        return put_items(ctx, ref, "cycle", g, places, p, p->n_first, p->n, false);
    case MPL_PLACE_FINAL:
        MPL_TRY(put_text(ctx, ref, "behind", g->op_name[p->of]));
        MPL_TRY(put_items(ctx, ref, "no_round", g, places, p, 0, 1, true));
        return put_items(ctx, ref, "last_round", g, places, p, 1, 2, true);
    case MPL_PLACE_BRANCH:
        MPL_TRY(put_text(ctx, ref, "case", g->op_name[p->of]));
        MPL_TRY(put_items(ctx, ref, "branches", g, places, p, 0, p->n - 1, false));
        return put_items(ctx, ref, "bypass", g, places, p, p->n - 1, p->n, true);
    case MPL_PLACE_SLICE:
        MPL_TRY(put_text(ctx, ref, "slice", g->block_name[p->of]));
        MPL_TRY(put(ctx, ref, "bytes", number(p->bytes)));
        MPL_TRY(put(ctx, ref, "reversed", json_boolean(p->reversed)));
        return put_items(ctx, ref, "of", g, places, p, 0, 1, true);
    }
out:
    return st;
}

static mpl_status put_items(mpl_ctx *ctx, json_t *ref, const char *key, const mpl_graph *g,
                            const mpl_places *places, const mpl_place *p, uint32_t from,
                            uint32_t to, bool one)
{
    mpl_status st = MPL_OK;
    json_t *list = json_array();

    if (!one)
        MPL_TRY(put(ctx, ref, key, json_incref(list)));
    for (uint32_t i = from; i < to; i++) {
        json_t *item = json_object();

        MPL_TRY(one ? put(ctx, ref, key, item) : push(ctx, list, item));
        MPL_TRY(put_place(ctx, item, g, places, places->item[p->begin + i]));
    }
out:
    json_decref(list);
    return st;
}

static mpl_status make_bindings(mpl_ctx *ctx, const mpl_graph *g, const mpl_places *places,
                                json_t *list)
{
    mpl_status st = MPL_OK;

    for (mpl_value v = 0; v < g->n_values; v++) {
        json_t *one, *at;

        if (places->value_place[v] == MPL_NONE)
            continue;
        one = json_object();
        MPL_TRY(push(ctx, list, one));
        MPL_TRY(put_text(ctx, one, "value", g->value_name[v]));
        at = json_object();
        MPL_TRY(put(ctx, one, "at", at));
        MPL_TRY(put_place(ctx, at, g, places, places->value_place[v]));
    }
out:
    return st;
}

static mpl_status make_copies(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                              json_t *list)
{
    mpl_status st = MPL_OK;
    mpl_copy *copy = NULL;
    uint32_t n = 0;

    MPL_TRY(mpl_copies_of(ctx, g, map, &copy, &n));
    for (uint32_t i = 0; i < n; i++) {
        json_t *one = json_object();

        MPL_TRY(push(ctx, list, one));
        MPL_TRY(put_text(ctx, one, "value", g->value_name[copy[i].to]));
        MPL_TRY(put_text(ctx, one, "from", g->value_name[copy[i].from]));
        MPL_TRY(put_text(ctx, one, "when", mpl_copy_name(copy[i].when)));
        MPL_TRY(put_text(ctx, one, "block", g->block_name[copy[i].block]));
        MPL_TRY(put(ctx, one, "bytes", number(copy[i].bytes)));
    }
out:
    mpl_free(ctx, copy);
    return st;
}

/* {"bindings": [..], "copies": [..]} */
static mpl_status make(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map, json_t **out)
{
    mpl_status st = MPL_OK;
    json_t *bindings = json_array(), *copies = json_array();

    MPL_TRY((*out = json_object()) != NULL ? MPL_OK : no_memory(ctx));
    MPL_TRY(make_bindings(ctx, g, map->places, bindings));
    MPL_TRY(make_copies(ctx, g, map, copies));
    MPL_TRY(put(ctx, *out, "bindings", json_incref(bindings)));
    MPL_TRY(put(ctx, *out, "copies", json_incref(copies)));
out:
    json_decref(bindings);
    json_decref(copies);
    return st;
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
    MPL_TRY(json_object_update(root, made) == 0 ? MPL_OK : no_memory(ctx));
    MPL_TRY((dumped = json_dumps(root, JSON_COMPACT)) != NULL ? MPL_OK : no_memory(ctx));
    MPL_TRY((text = mpl_strdup(ctx, dumped)) != NULL ? MPL_OK : MPL_EMEM);
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
    MPL_TRY((right = json_dumps(want, JSON_COMPACT)) != NULL ? MPL_OK : no_memory(ctx));
    MPL_TRY((wrong = json_dumps(have, JSON_COMPACT)) != NULL ? MPL_OK : no_memory(ctx));
    MPL_FAIL(ctx, MPL_EINVALID,
             "%.150s: the plan says of '%.80s' %.120s, where the graph has %.120s", path,
             value_of(want), wrong, right);
out:
    free(right);
    free(wrong);
    return st;
}

/* One of the two lists, entry by entry. */
static mpl_status compare_lists(mpl_ctx *ctx, const char *path, const json_t *want,
                                const json_t *have, const char *what)
{
    mpl_status st = MPL_OK;
    size_t n = json_array_size(want), n_have = json_array_size(have);

    for (size_t i = 0; i < n && i < n_have; i++)
        if (strcmp(value_of(json_array_get(want, i)), value_of(json_array_get(have, i))) == 0)
            MPL_TRY(compare(ctx, path, json_array_get(want, i), json_array_get(have, i)));
        else
            MPL_FAIL(ctx, MPL_EINVALID,
                     "%.150s: '%s' of the plan go on with '%.80s', where the graph has '%.80s'",
                     path, what, value_of(json_array_get(have, i)),
                     value_of(json_array_get(want, i)));
    if (n_have < n)
        MPL_FAIL(ctx, MPL_EINVALID, "%.150s: '%s' of the plan say nothing of '%.80s'", path, what,
                 value_of(json_array_get(want, n_have)));
    if (n_have > n)
        MPL_FAIL(ctx, MPL_EINVALID, "%.150s: '%s' of the plan have '%.80s', and the graph has not",
                 path, what, value_of(json_array_get(have, n)));
out:
    return st;
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
