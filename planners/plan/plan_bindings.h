/* plan_bindings.h -- bindings of the values of a graph with control flow, in a plan file. */
#pragma once

#include "graphs/problem/places.h"

/* Adds `bindings` and `copies` of a graph with control flow to the fields of a plan file. Replaces
 * *fields_json, the text of an object. Does nothing for a graph without control flow. */
mpl_status mpl_plan_add_bindings(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                                 char **fields_json);
/* MPL_EINVALID, naming the value, if the fields of plan file `path` (or NULL) differ from that. */
mpl_status mpl_plan_check_bindings(mpl_ctx *ctx, const char *path, const char *fields_json,
                                   const mpl_graph *g, const mpl_value_map *map);
