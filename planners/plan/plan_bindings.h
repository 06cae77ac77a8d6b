/* plan_bindings.h -- where the values of a graph with control flow lie, in a plan file. */
#ifndef MPL_PLAN_BINDINGS_H
#define MPL_PLAN_BINDINGS_H

#include "graphs/problem/places.h"

/* Puts where the values of a graph with control flow lie into the fields of a plan file, as
 * `bindings`, and what it copies, as `copies`: *fields_json, an object's text, is replaced. Nothing
 * for a graph without. */
mpl_status mpl_plan_add_bindings(mpl_ctx *ctx, const mpl_graph *g, const mpl_value_map *map,
                                 char **fields_json);
/* MPL_EINVALID, naming the value, where the fields of plan file `path` (NULL: none) have others
 * than that. */
mpl_status mpl_plan_check_bindings(mpl_ctx *ctx, const char *path, const char *fields_json,
                                   const mpl_graph *g, const mpl_value_map *map);

#endif
