/* plan_json.c -- JSON values for plan files. See plan_json.h. */
#include "planners/plan/plan_json.h"

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
