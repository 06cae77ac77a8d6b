/* read_json.c -- see read_json.h. */
#include "planners/import/json/read_json.h"

mpl_status mpl_json_whole(mpl_ctx *ctx, const char *path, const json_t *object, const char *key,
                          const char *what, size_t i, uint64_t *out)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return MPL_REFUSE(ctx, "%.200s: %s %zu: '%s' is missing or no whole number from 0", path,
                          what, i, key);
    *out = (uint64_t)json_integer_value(value);
    return MPL_OK;
}

mpl_status mpl_json_whole_if(mpl_ctx *ctx, const char *path, const json_t *object, const char *key,
                             const char *what, size_t i, uint64_t *out)
{
    return json_object_get(object, key) == NULL
               ? MPL_OK
               : mpl_json_whole(ctx, path, object, key, what, i, out);
}
