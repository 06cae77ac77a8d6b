/* plan_json.c -- JSON values for plan files. See plan_json.h. */
#include "planners/plan/plan_json.h"

#include "graphs/core/file.h"

#include <stdlib.h>

mpl_status mpl_json_no_memory(mpl_ctx *ctx)
{
    return MPL_ERROR(ctx, MPL_EMEM, "out of memory for JSON");
}

mpl_status mpl_json_parse(mpl_ctx *ctx, const char *where, const char *text, size_t size,
                          size_t flags, json_t **out)
{
    json_error_t error = {.line = 0};

    *out = json_loadb(text, size, flags, &error);
    if (*out != NULL)
        return MPL_OK;
    /* jansson leaves its error text empty when an allocation fails */
    if (error.text[0] == '\0' || json_error_code(&error) == json_error_out_of_memory)
        return mpl_json_no_memory(ctx);
    return MPL_REFUSE(ctx, "%.200s:%d: no JSON: %s", where, error.line > 0 ? error.line : 1,
                      error.text);
}

mpl_status mpl_json_begin(mpl_ctx *ctx, const char *kind, const char *fields_json, json_t **root)
{
    mpl_status st = MPL_OK;
    json_t *head = json_pack("{s:i, s:s}", "schema", 1, "kind", kind), *fields = NULL;

    if (fields_json != NULL)
        MPL_TRY(mpl_json_parse(ctx, "the fields of a plan file", fields_json, strlen(fields_json),
                               JSON_REJECT_DUPLICATES, &fields));
    if (fields != NULL && !json_is_object(fields))
        MPL_FAIL(ctx, MPL_EINPUT, "the fields of a plan file are no JSON object");
    if (head == NULL || (fields != NULL && json_object_update_missing(head, fields) != 0))
        MPL_TRY(mpl_json_no_memory(ctx));
    *root = head, head = NULL;
out:
    json_decref(fields), json_decref(head);
    return st;
}

mpl_status mpl_json_write(mpl_ctx *ctx, const char *path, const json_t *root)
{
    mpl_status st = MPL_OK;
    mpl_new_file file = {0};

    MPL_TRY(mpl_file_begin(ctx, path, &file));
    /* A failed write sets the stream's error flag, which the commit checks. */
    if (json_dumpf(root, file.stream, JSON_COMPACT) != 0 && !ferror(file.stream))
        MPL_TRY(mpl_json_no_memory(ctx));
    fputc('\n', file.stream);
    MPL_TRY(mpl_file_commit(ctx, &file));
out:
    mpl_file_end(ctx, &file);
    return st;
}

json_t *mpl_json_push(json_t *list, json_t *value)
{
    if (json_array_append_new(list, value) == 0)
        return list;
    json_decref(list);
    return NULL;
}

json_t *mpl_json_put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) == 0)
        return object;
    json_decref(object);
    return NULL;
}

json_t *mpl_json_number(uint64_t value)
{
    return value <= INT64_MAX ? json_integer((json_int_t)value) : json_null();
}

json_t *mpl_json_text(const char *text)
{
    json_t *value = text != NULL ? json_string(text) : json_null();
    char *plain = value == NULL ? strdup(text) : NULL; /* not UTF-8, or no memory */

    for (char *c = plain; c != NULL && *c != '\0'; c++)
        *c = (unsigned char)*c >= 0x80 ? '?' : *c;
    if (plain != NULL)
        value = json_string(plain);
    free(plain);
    return value;
}

json_t *mpl_json_row(size_t n, const uint64_t *item)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        list = mpl_json_push(list, mpl_json_number(item[i]));
    return list;
}
