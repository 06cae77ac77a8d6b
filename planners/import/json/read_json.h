/* read_json.h -- what readers of JSON share: numbers and texts of objects, or what is wrong. */
#pragma once

#include "planners/import/base/import_priv.h"
#include "planners/plan/plan_json.h"

/* A whole number from 0 below 2^63 of an object, which `what` and `i` name: "event 3". MPL_EINPUT,
 * one line: it is missing, or something else. */
mpl_status mpl_json_whole(mpl_ctx *ctx, const char *path, const json_t *object, const char *key,
                          const char *what, size_t i, uint64_t *out);
/* The same of a number that may be missing: *out stays. */
mpl_status mpl_json_whole_if(mpl_ctx *ctx, const char *path, const json_t *object, const char *key,
                             const char *what, size_t i, uint64_t *out);
