/* plan_json.h -- JSON values for plan files, through jansson. Makers return NULL when memory runs
 * out, and accept NULL arguments as json_pack does, so one check at the end suffices. They take
 * ownership of the values they are given. */
#pragma once

#include <jansson.h>

#include "planners/plan/plan.h"

mpl_status mpl_json_no_memory(mpl_ctx *ctx);
/* flags: jansson's. MPL_EINPUT: not JSON; the message names `where` and the line. */
mpl_status mpl_json_parse(mpl_ctx *ctx, const char *where, const char *text, size_t size,
                          size_t flags, json_t **out);

/* A new object {"schema": 1, "kind": kind, ..} that ends with the caller's fields_json (NULL:
 * none). MPL_EINPUT: these are no JSON object. */
mpl_status mpl_json_begin(mpl_ctx *ctx, const char *kind, const char *fields_json, json_t **root);
/* Writes one line; an older file stays until all is written. */
mpl_status mpl_json_write(mpl_ctx *ctx, const char *path, const json_t *root);

json_t *mpl_json_push(json_t *list, json_t *value);
json_t *mpl_json_put(json_t *object, const char *key, json_t *value);
/* null for 2^63 and above */
json_t *mpl_json_number(uint64_t value);
/* null for NULL. In text that is not UTF-8, '?' replaces bytes beyond ASCII. */
json_t *mpl_json_text(const char *text);
json_t *mpl_json_row(size_t n, const uint64_t *item);

/* mpl_plan_read of an object within another; borrows `root`, whose own fields are removed. */
mpl_status mpl_plan_from_json(mpl_ctx *ctx, const char *path, json_t *root, mpl_plan_file *out);
